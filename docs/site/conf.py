"""The site: what Sphinx is to do. scripts/docs runs it.

The pages are README.md (as the first one), docs/*.md and others of the root as they are; a page for each
public header, from what Doxygen has read; a page for each Python module; and the source of what they link to.
stage.py writes them, stub.py knows the types of Python's functions, names.py makes links of names in prose.
"""

import functools
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Union
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

from docutils import nodes
from sphinx.addnodes import desc, desc_signature
from sphinx.domains.cpp import CPPDomain
from sphinx.errors import SphinxError
from sphinx.ext.autodoc.mock import _MockObject
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.transforms import SphinxTransform

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "docs/site")]
import stage  # noqa: E402
import versions  # noqa: E402

package = stage.PACKAGE
project, release, language = "roost", package["version"], "en"
author = copyright = "The roost maintainers"
extensions = ["myst_parser", "breathe", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["sphinx_copybutton", "names"]
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True
viewcode_line_numbers = True
html_theme = "furo"
html_title = f"roost {release}"
html_static_path = [str(ROOT / "docs/site/static")]
html_favicon = str(ROOT / "docs/site/static/favicon.svg")
html_search_scorer = str(ROOT / "docs/site/static/scorer.js")
html_css_files = ["roost.css"]
templates_path = [str(ROOT / "docs/site/templates")]
html_sidebars = {
    "**": [
        *("sidebar/brand.html", "versions.html", "sidebar/search.html", "sidebar/scroll-start.html"),
        *("sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
html_copy_source = html_use_index = html_domain_indices = False
myst_heading_anchors = 4
pygments_style, pygments_dark_style = "friendly", "monokai"
if stage.REPOSITORY:
    html_theme_options = {
        "footer_icons": [{"name": "Repository", "url": stage.REPOSITORY, "html": "Repository", "class": ""}]
    }

breathe_projects, breathe_default_project = {"roost": str(ROOT / "build/docs/xml")}, "roost"
breathe_show_include = False
maximum_signature_line_length = 70
suppress_warnings = [
    "duplicate_declaration.cpp",  # namespace roost, on each page anew
    "myst.header",  # a page whose sections are of the third level
]

default_role = "py:obj"  # a name in a docstring
autodoc_mock_imports = stage.MOCKED
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # Table, not <class ...>
napoleon_use_param = napoleon_use_rtype = False  # types are words, no links
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"

# What stands for torch in annotations goes with `| None`, too.
_MockObject.__or__ = lambda *both: Union[both]  # noqa: UP007
_MockObject.__ror__ = lambda *both: Union[both[::-1]]  # noqa: UP007

# A class derived from it has the signature of its __init__.
del _MockObject.__new__

# The docstring of a property is prose, also where it has a colon; the stubs have its type.
GoogleDocstring._parse_attribute_docstring = GoogleDocstring._consume_to_end

# Parameters are no names to search for, and a constructor has the name of its class.
_all_objects = CPPDomain.get_objects


def _objects(self):
    for each in _all_objects(self):
        *scope, name = re.sub(r"<.*>", "", each[0]).split("::")
        if not each[2].endswith("Param") and (not scope or scope[-1] != name):
            yield each


CPPDomain.get_objects = _objects


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
        if "_modules" in path.parts:  # back to names, some of which another page has
            page.links.clear()
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


def describe(app, page, template, context, tree):
    """Gives a page its description: its first paragraph."""
    first = tree and next((each for each in tree.findall(nodes.paragraph) if len(each.astext()) > 40), None)
    text = " ".join(first.astext().split()) if first else package["description"]
    text = text if len(text) <= 160 else text[:157].rsplit(" ", 1)[0] + " ..."
    text = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    title = re.sub("<.*?>", "", context.get("title", project)).replace('"', "&quot;")
    card = {"title": title, "description": text, "type": "website", "site_name": html_title}
    context["metatags"] = context.get("metatags", "") + f'<meta name="description" content="{text}"/>\n'
    for name, value in card.items():
        context["metatags"] += f'<meta property="og:{name}" content="{value}"/>\n'


class Unwrap(SphinxTransform):
    """Takes what is declared in namespace roost out of the box that Breathe draws around it."""

    default_priority = 300

    def apply(self):
        for each in list(self.document.findall(desc)):
            if each["objtype"] == "type" and each[0].astext() == "namespace roost":
                ids = [name for node in each[0].findall(nodes.Element) for name in node["ids"]]
                each.replace_self([nodes.target("", "", ids=ids), *each[-1].children])


@functools.cache
def lines_of_names():
    """The header and the line that declare what Doxygen calls so."""
    found = {}
    for path in stage.XML.glob("*.xml"):
        for each in ElementTree.parse(path).iter():
            if each.tag in ("memberdef", "compounddef") and (at := each.find("location")) is not None:
                found[each.get("id")] = (
                    at.get("declfile") or at.get("file"),
                    at.get("declline") or at.get("line"),
                )
    return found


class Source(SphinxTransform):
    """Links each name of the C++ reference to the line that declares it."""

    default_priority = 310

    def apply(self):
        for each in self.document.findall(desc_signature):
            names = [name for node in each.findall(nodes.target) for name in node["ids"]]
            file, line = next((lines_of_names()[n] for n in names if n in lines_of_names()), (None, None))
            if f"source/include/{file}" in self.env.found_docs:
                page = self.app.builder.get_relative_uri(self.env.docname, f"source/include/{file}")
                text = nodes.inline("", "[source]", classes=["viewcode-link"])
                each += nodes.reference("", "", text, internal=True, refuri=f"{page}#L{line}")


def anchor_lines(app, page, template, context, tree):
    """Gives each line of a source page an anchor."""
    if page.startswith("source/"):
        before, begin, rest = context["body"].partition("<pre>")
        code, end, after = rest.partition("</pre>")
        lines = (f'<span id="L{n}"></span>{line}' for n, line in enumerate(code.split("\n"), 1))
        context["body"] = before + begin + "\n".join(lines) + end + after


def link_pages(app, what, name, obj, options, lines):
    """Pages of docs/ that docstrings name become links."""
    lines[:] = [re.sub(r"\bdocs/([\w-]+)\.md", r":doc:`/docs/\1`", line) for line in lines]


def setup(app):
    app.connect("builder-inited", lambda app: stage.Stage(Path(app.srcdir)))
    app.connect("autodoc-process-docstring", link_pages)
    app.add_transform(Unwrap)
    app.add_transform(Source)
    app.connect("html-page-context", anchor_lines)
    app.connect("html-page-context", describe)
    app.connect("build-finished", lambda app, _: versions.write(Path(app.outdir)))
    app.connect("build-finished", check_links)
