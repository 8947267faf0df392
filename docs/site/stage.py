"""Writes the pages that Sphinx reads: see conf.py."""

import importlib
import inspect
import os
import re
import shutil
import tomllib
from pathlib import Path
from xml.etree import ElementTree

from sphinx.ext.autodoc.mock import mock
from stub import Stub

ROOT = Path(__file__).resolve().parents[2]
XML = ROOT / "build/docs/xml"
PACKAGE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PACKAGE.get("urls", {}).get("Repository")  # its address, if it has one

CONTENTS = {
    "Start": "install quickstart",
    "Use": "docs/guide docs/choosing docs/coming-from docs/python docs/c docs/groups docs/time docs/concurrent "
    "docs/stadium docs/larger-than-memory docs/several-gpus docs/sparse docs/embeddings docs/torch",
    "Applications": "docs/voxels docs/matching",
    "Reference": "cpp/index python/index",
    "Results": "papers/roost docs/performance apps/bench/peers/README docs/reproduction",
    "Project": "packaging/README CONTRIBUTING docs/internals docs/testing docs/mutants CHANGELOG SECURITY "
    "CODE_OF_CONDUCT",
}
# Pages that sections of others make, each up to its first picture: the page, which of its sections (or None:
# what stands before them), and their heading if it is not their own.
PARTS = {
    "install": [
        ("README.md", "^install$|^use it from", None),
        ("docs/python.md", "^install$", "Python"),
        ("packaging/README.md", None, "Packages"),
    ],
    "quickstart": [("README.md", "six lines|on a gpu|in python", None)],
}
# Programs that the quickstart shows in full.
PROGRAMS = {
    "On a CPU": "first_steps.cpp",
    "On a GPU": "first_steps_cuda.cu",
    "In a kernel": "kernel.cu",
    "In Python": "first_steps.py",
}
# So that nothing need be built.
MOCKED = ["roost._host", "roost._apps", "roost._cuda", "torch", "pandas", "polars"]
HEADERS = {  # the public headers, as the C++ reference lists them
    "Tables that are built once": "frozen_map frozen_set frozen_multimap sorted_map frozen_options",
    "Tables that change": "concurrent_map concurrent_set block_map concurrent_options operation",
    "Distinct keys, sums and joins": "two_way_index group_by join",
    "Order inside groups": "grouped_rows running rolling sessions asof_join interval_join",
    "Rows of columns, and texts": "columns texts string_index arrow",
    "Tables of any size": "stadium_map stadium_file stadium_options",
    "Trainable embedding tables": "embedding_table embedding_options gather_rows",
    "Rows and ids": "reduce_rows group_ids",
    "Voxels": "coordinate_index kernel_map sparse_conv sparse_options",
    "Columns larger than GPU memory": "out_of_core",
    "Several GPUs and processes": "shards gpus rank sharded_map sharded_set sharded_multimap sharded_index "
    "sharded_concurrent_map sharded_join sharded_file sharded_table",
    "Places and memory": "place host cuda error file fwd",
    "Lookups": "bulk pair ref single_keys lanes",
    "Building blocks": "hash partition functional kernels",
    "Layouts": "compact bucketed probing indexed ticket_board",
}
# Pages of the reference that are no public headers: a table names its layout.
LAYOUT_FILES = {
    Path(f"include/roost/{name}.hpp")
    for name in (
        "detail/table/ref",
        "detail/table/single_keys",
        "detail/frozen/bucketed",
        "detail/frozen/compact",
        "detail/concurrent/indexed",
        "detail/concurrent/probing",
        "stadium/detail/ticket_board",
    )
}
LAYOUTS = [f"roost::{name}" for name in "compact bucketed probing indexed ticket_board".split()]
LAYOUT_NAMES = f"roost::lookups|roost::(probing|ticket_board)::table|{'|'.join(LAYOUTS)}"
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".cu": "cuda", ".cuh": "cuda", ".py": "python", ".sh": "bash"}


def directive(name, argument, *options):
    return "\n".join(["", f"```{{{name}}} {argument}", *options, "```", ""])


def toctree(names, *options):
    return directive("toctree", "", *options, "", *names)


def sections(page, wanted):
    """Headings and texts of the sections whose headings match, or of what stands before all of them."""
    text = (ROOT / page).read_text(encoding="utf-8").partition("\n")[2]
    if wanted is None:
        return [(page, text.partition("\n## ")[0])]
    parts = re.split(r"^## (.+)$", text, flags=re.M)
    found = [(name, body) for name, body in zip(parts[1::2], parts[2::2]) if re.search(wanted, name, re.I)]
    if not found:
        raise ValueError(f"{page}: no section is called {wanted}; mend PARTS in docs/site/stage.py")
    return found


def first_sentence(text):
    return re.split(r"(?<=\.)\s", " ".join((text or "").partition("\n\n")[0].split()), maxsplit=1)[0]


class Stage:
    """Writes the pages to the folder that Sphinx reads."""

    def __init__(self, to):
        self.to, self.made = to, set()  # pages of the repository, and its sources that have one
        shutil.rmtree(to, ignore_errors=True)
        self.headers = {
            path.relative_to(ROOT): f"cpp/{path.stem}.md"
            for path in (ROOT / "include/roost").rglob("*.hpp")
            if "detail" not in path.parts and path.stem != "roost"
        } | {path: f"cpp/{path.stem}.md" for path in LAYOUT_FILES}
        of_contents = [ROOT / f"{name}.md" for names in CONTENTS.values() for name in names.split()]
        for page in [ROOT / "README.md", *of_contents, *sorted((ROOT / "docs").glob("*.md"))]:
            if page.is_file():  # the other pages are made below
                self.page(page.relative_to(ROOT))
        shutil.copytree(ROOT / "docs/pictures", to / "docs/pictures")
        self.parts()
        clean_xml()
        self.cpp()
        self.python()

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
        text = self.with_links((ROOT / page).read_text(encoding="utf-8"), page, staged)
        if staged.name == "index.md":
            title, _, rest = text.partition("\n")
            ways = "[Install](install.md) · [Quickstart](quickstart.md) · [Guide](docs/guide.md) · "
            ways += "[C++ reference](cpp/index.md) · [Python reference](python/index.md)"
            ways += f" · [Repository]({REPOSITORY})" if REPOSITORY else ""
            text = f"{title}\n\n{ways}\n{rest}" + "".join(
                toctree(names.split(), ":hidden:", f":caption: {part}") for part, names in CONTENTS.items()
            )
        elif page.parent != Path("docs") and not any(
            str(page.with_suffix("")) in names.split() for names in CONTENTS.values()
        ):
            text = "---\norphan: true\n---\n\n" + text
        self.write(staged, text)

    def with_links(self, text, page, staged, here=()):
        """Text of a page of the repository in a page of the site, which has the anchors `here` of it."""

        def place(path):
            return os.path.relpath(self.place_of(path), staged.parent)

        def link(match):
            target = (ROOT / page.parent / match[2]).resolve() if match[2] else ROOT / page
            if target.suffix in (".png", ".svg"):
                return f"[{match[1]}]({os.path.relpath(target.relative_to(ROOT), staged.parent)})"
            stays = staged in (page, Path("index.md")) or match[3] in here
            if not target.exists() or (not match[2] and stays):
                return match[0]
            text = match[1]
            if text.endswith(".md") and target.suffix == ".md":  # on the site a page is called as its heading
                text = re.search(r"^# (.*)", target.read_text(encoding="utf-8"), re.M)[1]
            return f"[{text}]({place(target.relative_to(ROOT))}{match[3] or ''})"

        def excerpt(match):  # a block of code, and where it is from
            source = place(Path(match[1]))
            return f"```{{code-block}} {match[2]}\n:caption: '[{match[1]}]({source})'\n\n{match[3]}"

        text = re.sub(r"\[((?:[^][]|\[[^]]*\])*)\]\(([\w./-]*)(#[\w-]*)?\)", link, text)
        return re.sub(r"^<!-- (\S+/\S+) -->\n```(\w+)\n(.*?^```)$", excerpt, text, flags=re.M | re.S)

    def parts(self):
        """Pages that sections of others make."""
        for name, parts in PARTS.items():
            text = f"# {name.capitalize()}\n"
            for page, wanted, title in parts:
                found = sections(page, wanted)
                here = {"#" + re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each, _ in found}
                for heading, body in found:
                    text += f"\n## {title or heading}\n" if heading.lower() != name or title else ""
                    body = body.partition("\n![")[0] + "\n"
                    text += self.with_links(body, Path(page), Path(f"{name}.md"), here)
            if name == "quickstart":
                text = text.replace("\n", "\n\n[Install roost](install.md) first.\n", 1)
                text += "\n## Whole programs\n\nThe blocks above are excerpts of these. Each program checks "
                text += "its own results.\n"
                for title, program in PROGRAMS.items():
                    file = os.path.relpath(ROOT / "examples" / program, self.to)
                    language = f":language: {LANGUAGES[Path(program).suffix]}"
                    text += f"\n### {title}\n"
                    text += directive("literalinclude", file, language, f":caption: examples/{program}")
            self.write(f"{name}.md", text)

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
            text += directive("literalinclude", file, f":language: {language}")
        self.write(page, text)
        return page

    def cpp(self):
        """The C++ reference: a page for each public header."""
        free = {}  # what is in no class, by header
        for member in ElementTree.parse(XML / "namespaceroost.xml").iter("memberdef"):
            names = free.setdefault(member.find("location").get("file"), {})
            names[member.findtext("name")] = member.get("kind")
        rows = {}
        for path, page in self.headers.items():
            stem, header = path.stem, path.relative_to("include").as_posix()
            file = ElementTree.parse(XML / xml_name(path)).find("compounddef")
            public = LAYOUT_NAMES if path in LAYOUT_FILES else r"roost::\w+"
            classes = [c for c in file.findall("innerclass") if re.fullmatch(public, c.text)]
            classes.sort(key=lambda each: each.text != f"roost::{stem}")  # which names the page
            source = os.path.relpath(self.source(path), "cpp")
            text = f"```{{highlight}} cpp\n```\n\n# {stem}\n\n`#include <{header}>` · [source]({source})\n"
            named = any(each.text == f"roost::{stem}" for each in classes)
            if not named:  # else its docstring says more
                text += directive("doxygenfile", path.name, ":sections: briefdescription detaileddescription")
            parts = []
            for each in classes:
                kind = re.match("class|struct", each.get("refid"))[0]
                members = [":members:"] if each.text not in LAYOUTS else []
                members += [":undoc-members:"] if path not in LAYOUT_FILES else []
                parts.append(directive(f"doxygen{kind}", each.text, *members))
            functions = free.get(header, {})
            if functions:
                first = not named and any(stem in name for name in functions)
                part = directive("doxygenfile", path.name, ":sections: innernamespace enum typedef var func")
                parts.insert(0 if first else len(parts), part)
            self.write(page, text + "".join(parts))
            names = dict.fromkeys([each.text.removeprefix("roost::") for each in classes] + sorted(functions))
            names = ", ".join(f"`{name}`" for name in names)
            brief = self.brief(file, classes)
            rows[stem] = f"| [{stem}]({Path(page).name}) | {brief} | {names} |\n"
        self.cpp_index(rows)

    def cpp_index(self, rows):
        listed = [name for names in HEADERS.values() for name in names.split()]
        if wrong := set(listed) ^ set(rows):
            raise ValueError(f"{', '.join(sorted(wrong))}: mend HEADERS in docs/site/stage.py")
        text = "# C++ reference\n\nThe headers of `roost/`, and the names in each. `roost/roost.hpp` "
        text += "includes the core; the headers of other libraries are included by name.\n"
        for title, names in HEADERS.items():
            text += f"\n## {title}\n\n| header | what it has | names |\n|---|---|---|\n"
            text += "".join(rows[name] for name in names.split())
        self.write("cpp/index.md", text + toctree(sorted(rows), ":hidden:"))

    @staticmethod
    def brief(file, classes):
        """What a header has: as its head says, or the docstring of its first class."""
        brief = "".join(file.find("briefdescription").itertext()).strip()
        if not brief and classes:
            of_class = ElementTree.parse(XML / f"{classes[0].get('refid')}.xml").find("compounddef")
            brief = "".join(of_class.find("briefdescription").itertext()).strip()
        return brief

    def python(self):
        """The Python reference: a page for each module with names of its own, functions before classes."""
        text, pages, seen = "# Python reference\n\n| module | |\n|---|---|\n", [], set()
        for name in python_modules():
            with mock(MOCKED):
                module = importlib.import_module(name)
            Stub(module).annotate()
            kinds = {"function": [], "class": []}
            for each in sorted(module.__all__):
                value = getattr(module, each)
                if not inspect.ismodule(value) and id(value) not in seen:
                    seen.add(id(value))
                    kinds["class" if inspect.isclass(value) else "function"].append((each, value.__doc__))
            if not any(kinds.values()):
                continue
            pages.append(name)
            text += f"| [`{name}`]({name}.md) | {first_sentence(module.__doc__)} |\n"
            page = f"# {name}\n\n```{{eval-rst}}\n.. automodule:: {name}\n```\n"
            for (kind, names), title in zip(kinds.items(), ("Functions", "Classes")):
                if names:
                    page += f"\n## {title}\n\n| | |\n|---|---|\n"
                for each, docstring in names:
                    if not docstring:
                        raise ValueError(f"{name}.{each} has no docstring")
                    page += f"| {{py:obj}}`~{name}.{each}` | {first_sentence(docstring)} |\n"
                options = "   :members:\n   :inherited-members:\n" if kind == "class" else ""
                for each, _ in names:
                    page += f"\n```{{eval-rst}}\n.. auto{kind}:: {name}.{each}\n{options}```\n"
            self.write(f"python/{name}.md", page)
        self.write("python/index.md", text + toctree(pages, ":hidden:"))


def python_modules():
    """The public modules of the package: those that list their public names."""
    for file in sorted((ROOT / "python/roost").rglob("*.py")):
        parts = file.relative_to(ROOT / "python").with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        lists = re.search(r"^__all__\b", file.read_text(encoding="utf-8"), re.M)
        if lists and not any(part.startswith("_") for part in parts):
            yield ".".join(parts)
        elif len(parts) == 2 and parts[1][0] != "_" and parts[1] != "bench":  # which is a program
            raise ValueError(f"{file}: give it an __all__, or a name with _")


def xml_name(path):
    return path.name.replace("_", "__").replace(".", "_8") + ".xml"


def clean_xml():
    """Takes `inline`, deduction guides and the name of a header before its brief out of Doxygen's files."""
    classes = {path.stem.removeprefix("classroost_1_1").replace("__", "_") for path in XML.glob("class*.xml")}
    for path in XML.glob("*.xml"):
        tree = ElementTree.parse(path)
        brief = tree.find("compounddef/briefdescription/para")
        if brief is not None and (match := re.match(r"(?:roost::)?\w+: (.)", brief.text or "")):
            brief.text = match[1].upper() + brief.text[match.end() :]
        for section in tree.iter("sectiondef"):
            for member in list(section):
                if member.get("inline"):
                    member.set("inline", "no")
                is_free = "namespace" in path.name or "_8hpp" in path.name
                if is_free and member.tag in ("memberdef", "member") and member.findtext("name") in classes:
                    if (member.get("kind") or "function") == "function":
                        section.remove(member)
        tree.write(path, encoding="utf-8", xml_declaration=True)
