"""Looks at the site in a browser: browse_docs.py SITE [PICTURES].

Every page fits a phone and a wide screen, without errors, and the search finds what is looked for. Writes a
picture of some pages to the folder PICTURES.
"""

import functools
import http.server
import sys
import threading
from pathlib import Path

from browser import Browser

SEARCHES = {
    "frozen_map": "cpp/frozen_map.html",
    "insert_or_apply": "cpp/concurrent_map.html",
    "group_by": "python/roost.html",
    "duplicates": "docs/guide.html",
}


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    site, pictures = Path(sys.argv[1]), [Path(folder) for folder in sys.argv[2:]]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    root = f"http://127.0.0.1:{server.server_port}/"
    wrong = []
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    with Browser() as browser:
        tab = browser.open("about:blank")
        ready = "document.readyState == 'complete'"
        for width in (390, 1280):
            tab.resize(width, 844, mobile=width < 600)
            for page in pages:
                tab.call("Page.navigate", url=root + page)
                tab.wait(f"location.href == {root + page!r} && {ready}")
                if (wide := tab.evaluate("document.documentElement.scrollWidth")) > width:
                    wrong.append(f"{page}: {wide} pixels wide on a screen of {width}")
                for folder in pictures:
                    if not page.startswith("source/"):
                        folder.mkdir(parents=True, exist_ok=True)
                        (folder / f"{page.replace('/', '-')}-{width}.png").write_bytes(tab.png())
        for word, page in SEARCHES.items():
            tab.call("Page.navigate", url=f"{root}search.html?q={word}")
            done = "document.querySelector('#search-results .search-summary')?.innerText.includes('found')"
            tab.wait(f"location.search.endsWith({word!r}) && {done}")
            links = "[...document.querySelectorAll('#search-results li a')].map(a => a.pathname.slice(1))"
            found = tab.evaluate(links)
            if page not in found[:10]:
                wrong.append(f"a search for {word} does not find {page}, but {found[:10]}")
            for folder in pictures:
                (folder / f"search-{word}.png").write_bytes(tab.png())
        wrong += [f"the browser says {entry}" for entry in browser.log if "favicon" not in str(entry)]
    print("\n".join(wrong) or f"browse_docs: {len(pages)} pages, {len(SEARCHES)} searches, all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
