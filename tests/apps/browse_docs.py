"""Looks at the site in a browser: browse_docs.py SITE [PICTURES].

Every page fits a phone and a wide screen, without errors, has an icon, a description and the version; its
code has the right colours and is not cut off; what scrolls shows that it does; names are links; a search
finds first what is looked for; and versions lead to each other. Writes a picture of some pages to the folder
PICTURES.
"""

import functools
import http.server
import shutil
import sys
import tempfile
import threading
import tomllib
from pathlib import Path
from urllib.parse import quote

from browser import Browser

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs/site"))
import versions  # noqa: E402

# What is searched, and what comes first: the text of the result, and its page.
SEARCHES = {
    "frozen_map": ("roost::frozen_map", "cpp/frozen_map.html"),
    "group_by": ("roost::group_by", "cpp/group_by.html"),
    "Store": ("roost.Store", "python/roost.html"),
    "insert_or_apply": ("roost::concurrent_map::insert_or_apply", "cpp/concurrent_map.html"),
    "frozen map": ("roost::frozen_map", "cpp/frozen_map.html"),
    "install": ("Install", "install.html"),
    "join": ("roost.join", "python/roost.html"),
    "merge": ("roost.merge", "python/roost.html"),
    "unique": ("roost.unique", "python/roost.html"),
    "factorize": ("roost.factorize", "python/roost.html"),
    "isin": ("roost.isin", "python/roost.html"),
    "multimap": ("roost.MultiMap", "python/roost.html"),
    "concurrent_map": ("roost::concurrent_map", "cpp/concurrent_map.html"),
    "pandas": ("roost.pandas", "python/roost.pandas.html"),
    "cuCollections": ("Coming from other libraries > cuCollections", "docs/coming-from.html"),
    "torch": ("roost.torch", "python/roost.torch.html"),
    "spconv": ("roost.spconv", "python/roost.spconv.html"),
    "performance": ("Performance", "docs/performance.html"),
    "embedding_table": ("roost::embedding_table", "cpp/embedding_table.html"),
    "groupby": ("roost.GroupBy", "python/roost.html"),
    "value_counts": ("roost.value_counts", "python/roost.html"),
    "sparse convolution": ("roost.sparse", "python/roost.sparse.html"),
    "load factor": ("roost::concurrent_map::load_factor", "cpp/concurrent_map.html"),
}
# Pages, and where a link on each leads.
LINKS = {
    "index.html": (
        *("install.html", "quickstart.html", "cpp/frozen_map.html", "python/roost.html"),
        "https://github.com/NVIDIA/cuCollections",
    ),
    "docs/guide.html": ("cpp/place.html", "https://doi.org/10.1145/1618452.1618500"),
    "docs/python.html": ("python/roost.html", "https://numpy.org/"),
    "docs/coming-from.html": ("https://github.com/traveller59/spconv",),
    "python/roost.html": ("https://numpy.org/doc/stable/reference/generated/numpy.unique.html",),
    "cpp/index.html": ("cpp/operation.html", "cpp/kernel_map.html"),
}
LANGUAGES = {"cpp": {"cpp"}, "python": {"default"}}  # by folder: these are doctests, coloured as Python
OTHER_LANGUAGES = {"bash", "c", "cpp", "cuda", "python", "console", "cmake", "text", "none"}

LOOK = """({
  width: document.documentElement.scrollWidth,
  languages: [...new Set([...document.querySelectorAll('div[class*="highlight-"]')]
    .map(block => block.className.match(/highlight-([-+\\w]+)/)[1]))],
  cut: [...document.querySelectorAll('.highlight pre')]
    .filter(code => code.scrollWidth > code.clientWidth).map(code => code.innerText.split('\\n')[0]),
  silent: [...document.querySelectorAll('.highlight pre, .table-wrapper')]
    .filter(one => one.scrollWidth > one.clientWidth)
    .filter(one => !getComputedStyle(one).backgroundAttachment.includes('local'))
    .map(one => one.innerText.split('\\n')[0]),
  description: document.querySelector('meta[name=description]')?.content ?? null,
  card: document.querySelector('meta[property="og:title"]')?.content ?? null,
  copies: document.querySelectorAll('article .highlight pre').length ===
    document.querySelectorAll('article .highlight button.copybtn').length,
  icon: document.querySelector('link[rel~=icon]')?.href ?? null,
  name: document.querySelector('.sidebar-brand-text')?.innerText ?? null,
  links: [...document.querySelectorAll('article a')].map(link => link.href),
  functions: document.querySelector('article dl.function')?.getBoundingClientRect().top ?? null,
  misread: [...document.querySelectorAll('dl.py.property dl.field-list dt')].map(field => field.innerText),
  classes: document.querySelector('article dl.py.class')?.getBoundingClientRect().top ?? null,
})"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def faults(page, seen, width, root, version):
    """What is wrong with a page of which `seen` is what LOOK says."""
    if seen["width"] > width:
        yield f"{seen['width']} pixels wide on a screen of {width}"
    folder = page.partition("/")[0]
    if extra := set(seen["languages"]) - LANGUAGES.get(folder, OTHER_LANGUAGES):
        yield f"code coloured as {', '.join(sorted(extra))}"
    if width > 600 and folder not in ("source", "_modules") and seen["cut"]:
        yield f"code is cut off: {seen['cut']}"
    if seen["silent"]:
        yield f"nothing shows that these scroll: {seen['silent']}"
    if not seen["description"] and page not in ("search.html",):
        yield "no description"
    if not seen["card"]:
        yield "no card for those who link to it"
    if not seen["copies"]:
        yield "a block of code without a button to copy it"
    if not (seen["icon"] or "").startswith(root):
        yield f"no icon of its own, but {seen['icon']}"
    if version not in (seen["name"] or ""):
        yield f"the sidebar says {seen['name']}, and not version {version}"
    for link in LINKS.get(page, ()):
        target = link if link.startswith("https:") else root + link
        if not any(one.startswith(target) for one in seen["links"]):
            yield f"no link to {link}"
    if seen["misread"]:
        yield f"the docstring of a property is read as {', '.join(seen['misread'])}"
    if folder == "python" and None not in (seen["functions"], seen["classes"]):
        if seen["functions"] > seen["classes"]:
            yield "classes come before functions"


def search(tab, root, word, first, pictures):
    """What is wrong with the results of a search."""
    address = f"{root}search.html?q={quote(word)}"
    tab.call("Page.navigate", url=address)
    done = "document.querySelector('#search-results .search-summary')?.innerText.includes('found')"
    tab.wait(f"location.href == {address!r} && {done}")
    links = "[...document.querySelectorAll('#search-results li > a')]"
    found = tab.evaluate(f"{links}.map(link => [link.innerText, link.pathname.slice(1)])")
    for folder in pictures:
        (folder / f"search-{word}.png").write_bytes(tab.png())
    if tuple(found[0]) != first:
        yield f"a search for {word} finds first {found[:3]}, and not {first}"


def serve(folder):
    """The address of a folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def visit(tab, address):
    tab.call("Page.navigate", url=address)
    tab.wait(f"location.href == {address!r} && document.readyState == 'complete'")


def choose_versions(tab, site):
    """What is wrong where a site has another version, without some pages."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "site")
        shutil.copytree(site, copy, ignore=shutil.ignore_patterns("source", "_modules"))
        for page in ("index.html", "docs/guide.html", "_static", "_images"):
            (copy / "v0.0.1" / page).parent.mkdir(parents=True, exist_ok=True)
            (copy / "v0.0.1" / page).symlink_to(copy / page)
        versions.write(copy)
        root = serve(copy)
        choice = "document.querySelector('#versions')"
        for page, other, there in (
            ("docs/guide.html", "v0.0.1", "v0.0.1/docs/guide.html"),
            ("v0.0.1/docs/guide.html", "main", "docs/guide.html"),
            ("docs/python.html", "v0.0.1", "v0.0.1/index.html"),
        ):
            visit(tab, root + page)
            shown = tab.evaluate(f"[{choice}.selectedOptions[0].text, {choice}.checkVisibility()]")
            if shown != ["main" if other == "v0.0.1" else "v0.0.1", True]:
                yield f"{page} shows another version, or hides it: {shown}"
            option = f"[...{choice}].find(one => one.text == {other!r})"
            address = tab.evaluate(f"new URL({option}.value, location).href")
            if address != root + there:
                yield f"{page} leads to {address}, and not to {there}"
            visit(tab, address)
            if tab.evaluate("document.title").startswith("Error"):
                yield f"{page} leads to {there}, which is not there"


def main():
    site, pictures = Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]]
    for folder in pictures:
        folder.mkdir(parents=True, exist_ok=True)
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if repository := package.get("urls", {}).get("Repository"):
        LINKS["index.html"] += (repository,)
    root = serve(site)
    wrong = []
    pages = [f"{page}.html" for page in versions.pages_of(site)]
    with Browser() as browser:
        tab = browser.open("about:blank")
        for width in (390, 1280):
            tab.resize(width, 844, mobile=width < 600)
            for page in pages:
                visit(tab, root + page)
                seen = tab.evaluate(LOOK)
                wrong += [f"{page}: {fault}" for fault in faults(page, seen, width, root, package["version"])]
                for folder in pictures:
                    if not page.startswith(("source/", "_modules/")):
                        (folder / f"{page.replace('/', '-')}-{width}.png").write_bytes(tab.png())
        for word, first in SEARCHES.items():
            wrong += search(tab, root, word, first, pictures)
        tab.resize(1280, 844, mobile=False)
        wrong += choose_versions(tab, site)
        wrong += [f"the browser says {entry}" for entry in browser.log]
    print("\n".join(wrong) or f"browse_docs: {len(pages)} pages, {len(SEARCHES)} searches, all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
