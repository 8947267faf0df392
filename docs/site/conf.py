"""The site: what Sphinx is to do, and how its pages are made from this repository. scripts/docs runs it.

The pages are README.md (as the first one), docs/*.md and others of the root as they are; a page for each
public header, from what Doxygen has read; a page for each Python module; and the source of what they link to.
"""

import os
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from sphinx.domains.cpp import CPPDomain
from sphinx.errors import SphinxError
from sphinx.ext.autodoc.mock import _MockObject

ROOT = Path(__file__).resolve().parents[2]
XML = ROOT / "build/docs/xml"
sys.path.insert(0, str(ROOT / "python"))

project = "roost"
extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "roost"
html_static_path = [str(ROOT / "docs/site/static")]
html_css_files = ["roost.css"]
html_copy_source = html_use_index = html_domain_indices = False
myst_heading_anchors = 4
pygments_style, pygments_dark_style = "friendly", "monokai"

breathe_projects, breathe_default_project = {"roost": str(XML)}, "roost"
breathe_show_include = False
maximum_signature_line_length = 70
suppress_warnings = [
    "duplicate_declaration.cpp",  # namespace roost, on each page anew
    "myst.header",  # a page whose sections are of the third level
]

autodoc_mock_imports = ["roost._host", "roost._cuda", "torch"]  # so that nothing need be built
napoleon_use_param = napoleon_use_rtype = False  # types are words, no links
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": True}

# What stands for torch in annotations goes with `| None`, too.
_MockObject.__or__ = _MockObject.__ror__ = lambda self, other: self

# Parameters are no names to search for.
_all_objects = CPPDomain.get_objects
CPPDomain.get_objects = lambda self: (each for each in _all_objects(self) if not each[2].endswith("Param"))

MODULES = ("roost", "roost.torch", "roost.sparse", "roost.sparse.nn", "roost.distributed")
CONTENTS = {
    "Use": "docs/guide docs/choosing docs/coming-from docs/python docs/groups docs/concurrent docs/stadium "
    "docs/several-gpus docs/sparse",
    "Applications": "docs/voxels docs/matching",
    "Reference": "cpp/index python/index",
    "Results": "docs/performance apps/bench/peers/README docs/reproduction",
    "Project": "packaging/README CONTRIBUTING docs/internals docs/mutants CHANGELOG SECURITY CODE_OF_CONDUCT",
}
# Pages of the reference that are no public headers: a table names its layout.
LAYOUT_FILES = {
    Path(f"include/roost/{name}.hpp")
    for name in ("detail/table/ref", "detail/frozen/bucketed", "detail/frozen/compact",
                 "detail/concurrent/indexed", "detail/concurrent/probing", "stadium/detail/ticket_board")
}
LAYOUTS = [f"roost::{name}" for name in "compact bucketed probing indexed ticket_board".split()]
LAYOUT_NAMES = f"roost::lookups|roost::(probing|ticket_board)::table|({'|'.join(LAYOUTS)})(::options)?"
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".cu": "cuda", ".cuh": "cuda", ".py": "python"}


def toctree(names, *options):
    return "\n".join(["", "```{toctree}", *options, "", *names, "```", ""])


class Stage:
    """Writes the pages to the folder that Sphinx reads."""

    def __init__(self, to):
        self.to, self.made = to, set()  # pages of the repository, and its sources that have one
        shutil.rmtree(to, ignore_errors=True)
        self.headers = {
            path.relative_to(ROOT): f"cpp/{path.stem}.md" for path in (ROOT / "include/roost").rglob("*.hpp")
            if "detail" not in path.parts and path.stem != "roost"
        } | {path: f"cpp/{path.stem}.md" for path in LAYOUT_FILES}
        of_contents = [ROOT / f"{name}.md" for names in CONTENTS.values() for name in names.split()]
        for page in [ROOT / "README.md", *of_contents, *sorted((ROOT / "docs").glob("*.md"))]:
            if page.is_file():  # pages of the reference are made below
                self.page(page.relative_to(ROOT))
        shutil.copytree(ROOT / "docs/pictures", to / "docs/pictures")
        self.cpp()
        self.write("python/index.md", "# Python reference\n" + toctree(MODULES))
        for module in MODULES:
            text = f"# `{module}`\n\n```{{eval-rst}}\n.. automodule:: {module}\n```\n"
            self.write(f"python/{module}.md", text)

    def write(self, name, text):
        path = self.to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def page(self, page):
        """A page of the repository, with links to what the site has."""
        if page in self.made:
            return
        self.made.add(page)
        staged = Path("index.md") if page == Path("README.md") else page

        def place(path):
            return os.path.relpath(self.place_of(path), staged.parent)

        def link(match):
            target = (ROOT / page.parent / match[1]).resolve()
            if not match[1] or not target.exists() or target.suffix in (".png", ".svg"):
                return match[0]
            return f"]({place(target.relative_to(ROOT))}{match[2] or ''})"

        def excerpt(match):  # a block of code, and where it is from
            source = place(Path(match[1]))
            return f"```{{code-block}} {match[2]}\n:caption: '[{match[1]}]({source})'\n\n{match[3]}"

        text = (ROOT / page).read_text(encoding="utf-8")
        text = re.sub(r"\]\(([\w./-]*)(#[\w-]*)?\)", link, text)
        text = re.sub(r"^<!-- (\S+/\S+) -->\n```(\w+)\n(.*?^```)$", excerpt, text, flags=re.M | re.S)
        if staged.name == "index.md":
            text += "".join(
                toctree(names.split(), ":hidden:", f":caption: {part}") for part, names in CONTENTS.items()
            )
        elif not any(str(page.with_suffix("")) in names.split() for names in CONTENTS.values()):
            text = "---\norphan: true\n---\n\n" + text
        self.write(staged, text)

    def place_of(self, path):
        """The page of a file or folder of the repository."""
        if path == Path("README.md"):
            return Path("index.md")
        if path.suffix == ".md":
            self.page(path)
            return path
        if path == Path("include/roost"):
            return Path("cpp/index.md")
        return Path(self.headers.get(path) or self.source(path))

    def source(self, path):
        """Makes the page that shows a file or a folder."""
        page = Path(f"source/{path}.md")
        if path in self.made:
            return page
        self.made.add(path)
        text = f"---\norphan: true\nnosearch: true\n---\n\n# {path}\n\n"
        if (ROOT / path).is_dir():
            for inner in sorted((ROOT / path).iterdir()):
                if inner.suffix in LANGUAGES:
                    shown = os.path.relpath(self.source(inner.relative_to(ROOT)), page.parent)
                    text += f"- [{inner.name}]({shown})\n"
        else:
            language = LANGUAGES.get(path.suffix, "python" if path.parts[0] == "scripts" else "text")
            file = os.path.relpath(ROOT / path, (self.to / page).parent)
            text += f"```{{literalinclude}} {file}\n:language: {language}\n```\n"
        self.write(page, text)
        return page

    def cpp(self):
        """The C++ reference: a page for each public header."""
        free = {}  # what is in no class, by header
        for member in ElementTree.parse(XML / "namespaceroost.xml").iter("memberdef"):
            free.setdefault(member.find("location").get("file"), set()).add(member.findtext("name"))
        rows = []
        for path, page in sorted(self.headers.items(), key=lambda pair: Path(pair[1]).stem):
            header = path.relative_to("include").as_posix()
            xml = XML / (path.name.replace("_", "__").replace(".", "_8") + ".xml")
            file = ElementTree.parse(xml).find("compounddef")
            classes = [c for c in file.findall("innerclass") if re.fullmatch(r"roost::\w+", c.text)]
            if path in LAYOUT_FILES:  # what else is in there is no user's
                classes = [c for c in file.findall("innerclass") if re.fullmatch(LAYOUT_NAMES, c.text)]
            classes.sort(key=lambda each: each.text != f"roost::{path.stem}")  # which names the page
            source = os.path.relpath(self.source(path), "cpp")
            text = f"# {path.stem}\n\n`#include <{header}>` · [source]({source})\n\n"
            text += f"```{{doxygenfile}} {path.name}\n:sections: briefdescription detaileddescription\n```\n"
            for each in classes:
                kind = re.match("class|struct", each.get("refid"))[0]
                members = ":members:\n" if each.text not in LAYOUTS else ""
                members += ":undoc-members:\n" if path not in LAYOUT_FILES else ""
                text += f"\n```{{doxygen{kind}}} {each.text}\n{members}```\n"
            if header in free:
                sections = "innernamespace enum typedef var func"
                text += f"\n```{{doxygenfile}} {path.name}\n:sections: {sections}\n```\n"
            self.write(page, text)
            names = [each.text.removeprefix("roost::") for each in classes] + sorted(free.get(header, ()))
            brief = "".join(file.find("briefdescription").itertext()).strip()
            names = ", ".join(f"`{name}`" for name in names)
            rows.append(f"| [{path.stem}]({Path(page).name}) | {names} | {brief} |\n")
        text = "# C++ reference\n\nEach header of `roost/`, and what it has.\n\n"
        text += "| header | names | |\n|---|---|---|\n" + "".join(rows)
        pages = sorted(Path(page).stem for page in self.headers.values())
        self.write("cpp/index.md", text + toctree(pages, ":hidden:"))


class Links(HTMLParser):
    """The anchors of a page, and what it links to."""

    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loads = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.anchors.add(attributes.get("id"))
        if tag == "a" and attributes.get("href"):
            self.links.add(attributes["href"])
        for name in ("src", "href") if tag in ("img", "script", "link") else ():
            if attributes.get(name):
                self.loads.add(attributes[name])


def check_links(app, exception):
    """Every link within the site leads somewhere, and no page loads anything from elsewhere."""
    if exception or app.builder.format != "html":
        return
    site = Path(app.outdir)
    pages = {path: Links(path) for path in site.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        for link in page.links | page.loads:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    wrong.append(f"{path.relative_to(site)}: loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if not target.exists() or (anchor and anchor not in pages[target].anchors):
                wrong.append(f"{path.relative_to(site)}: links to {link}, which is not there")
    if wrong:
        raise SphinxError("\n".join(sorted(wrong)))


def setup(app):
    app.connect("builder-inited", lambda app: Stage(Path(app.srcdir)))
    app.connect("build-finished", check_links)
