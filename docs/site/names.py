"""Links from names in prose: of this library to the reference, of others to their sites."""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.util.nodes import make_refnode

LIBRARIES = {
    "cuCollections": "https://github.com/NVIDIA/cuCollections",
    "spconv": "https://github.com/traveller59/spconv",
    "thrust": "https://nvidia.github.io/cccl/thrust/",
    "CUB": "https://nvidia.github.io/cccl/cub/",
    "BGHT": "https://github.com/owensgroup/BGHT",
    "WarpCore": "https://github.com/sleeepyjack/warpcore",
    "NCCL": "https://docs.nvidia.com/deeplearning/nccl/",
    "RMM": "https://github.com/rapidsai/rmm",
    "oneTBB": "https://github.com/uxlfoundation/oneTBB",
    "xxHash": "https://github.com/Cyan4973/xxHash",
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "polars": "https://docs.pola.rs/",
    "torch": "https://docs.pytorch.org/docs/stable/",
    "jax": "https://docs.jax.dev/",
    "CuPy": "https://docs.cupy.dev/",
    "Arrow": "https://arrow.apache.org/docs/python/",
    "Dask": "https://docs.dask.org/",
    "OpenCV": "https://docs.opencv.org/",
    "OpenVDB": "https://www.openvdb.org/",
}
PAPERS = {
    r"Alcantara et al\. 2009": "https://doi.org/10.1145/1618452.1618500",
    r"Alcantara et al\.": "https://doi.org/10.1145/1618452.1618500",
    r"Lefebvre and Hoppe 2006": "https://doi.org/10.1145/1141911.1141926",
    r"Khorasani et al\.,? 2015": "https://hgpu.org/?p=14742",
    r"F\. Khorasani, M\. Belviranli, R\. Gupta, L\. Bhuyan, 2015": "https://hgpu.org/?p=14742",
    r"Amble and Knuth, Ordered hash tables, 1974": "https://doi.org/10.1093/comjnl/17.2.135",
    r"Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016": "https://"
    "research.nvidia.com/publication/2016-03_single-pass-parallel-prefix-scan-decoupled-look-back",
    r"Shi and Tomasi 1994": "https://doi.org/10.1109/CVPR.1994.323794",
    r"A simple GPU hash table, 2020": "https://nosferalatu.com/SimpleGPUHashTable.html",
}
PROSE = re.compile(
    "|".join([*(f"(?:{paper})" for paper in PAPERS), *(rf"\b{name}\b(?![.'-]\w)" for name in LIBRARIES)])
)
DOCS = {  # of names of other libraries
    "numpy": "https://numpy.org/doc/stable/reference/generated/{}.html",
    "pandas": "https://pandas.pydata.org/docs/reference/api/{}.html",
    "torch": "https://docs.pytorch.org/docs/stable/{}.html",
    "std": "https://en.cppreference.com/w/cpp/container/{}",
    "boost": "https://www.boost.org/doc/libs/latest/libs/unordered/",
    "absl": "https://abseil.io/docs/cpp/guides/container",
    "cuco": LIBRARIES["cuCollections"],
    "thrust": LIBRARIES["thrust"],
    "spconv": LIBRARIES["spconv"],
}
TORCH = {  # what has no page of its own name there
    "torch.Tensor": "tensors",
    "torch.backends.cudnn": "backends",
    "torch.device": "tensor_attributes",
    "torch.distributed": "distributed",
    "torch.dtype": "tensor_attributes",
    "torch.nn.Module.load_state_dict": "generated/torch.nn.Module",
    "torch.nn.Parameter": "generated/torch.nn.parameter.Parameter",
    "torch.nn.init.normal_": "nn.init",
    "torch.optim.Optimizer": "optim",
}
THEIRS = re.compile(
    r"(?:(numpy|pandas|torch(?!\.ops)|spconv)\.\w+(?:\.\w+)*|(std)::(unordered_\w+)"
    r"|(boost|absl)::\w+_map|(cuco|thrust)::\w+)"
)
OURS = re.compile(r"(?:roost(?:::|\.))?\w+(?:(?:::|\.)\w+)*")
FILES = re.compile(
    r"(?:include/)?(?:roost/)?(?:\w+/)?(\w+)\.hpp|((?:examples|papers)/\w+\.\w+)|(docs/[\w-]+)\.md"
)
IN_DOCSTRINGS = re.compile(r"\broost::\w+|\b[a-z]+(?:_[a-z]+)+\b")  # of C++, where few names are marked
# Names of this library that are words, too: they are linked where they stand with their namespace.
WORDS = set(
    "array distributed error file found info none operation order pair path place rank room save sparse "
    "torch trim".split()
)


def theirs(text):
    """The address of a name of another library, or None."""
    if not (match := THEIRS.fullmatch(re.sub(r"(<.*>)?(\(\))?$", "", text))):
        return None
    library, name = match[1] or match[2] or match[4] or match[5], match[3] or match[0]
    return DOCS[library].format(TORCH.get(name, f"generated/{name}") if library == "torch" else name)


class Names:
    """The names of this library, and where each is described."""

    def __init__(self, env):
        self.cpp, self.python = {}, {}
        rank = {"class": 0, "struct": 0, "enum": 1, "type": 1, "function": 2}
        for name, _, kind, page, anchor, _ in sorted(
            env.domains["cpp"].get_objects(), key=lambda each: (rank.get(each[2], 3), "sharded" in each[3])
        ):
            if name.startswith("roost::"):
                self.cpp.setdefault(name.removeprefix("roost::"), (page, anchor))
        for name, _, kind, page, anchor, _ in env.domains["py"].get_objects():
            self.python[name.removeprefix("roost.")] = (page, anchor)
            if kind == "class":  # also by its last name, unless module roost has that
                self.python.setdefault(name.rpartition(".")[2], (page, anchor))
            elif name.startswith("roost.sparse.nn."):
                self.python[name.removeprefix("roost.sparse.")] = (page, anchor)

    def place_of(self, text, python, known=False):
        """Page and anchor of a name that stands in prose of C++ or of Python, or None. `known`: it is one."""
        name = re.sub(r"(<.*>)?(\(\))?$", "", text, flags=re.S)
        if not OURS.fullmatch(name):
            return None
        if name.startswith("roost::"):
            return self.cpp.get(name.removeprefix("roost::"))
        if name.startswith("roost."):
            return self.python.get(name.removeprefix("roost."))
        if name in WORDS and not known:
            return None
        if python and name in self.python:
            return self.python[name]
        return self.cpp.get(name) or (self.python.get(name) if name[0].isupper() else None)


def is_prose(node):
    """True if a node stands where links belong: in no heading, link, code or signature."""
    while (node := node.parent) is not None:
        if isinstance(node, (nodes.reference, nodes.title, nodes.literal, nodes.FixedTextElement)):
            return False
        if node.tagname in ("desc_signature", "pending_xref", "raw", "caption"):
            return False
    return True


def about_python(node, page):
    """True if names that C++ has, too, mean those of Python here."""
    if page.startswith(("docs/python", "python/")):
        return True
    while node.parent is not None and not isinstance(node, (nodes.paragraph, nodes.row, nodes.list_item)):
        node = node.parent
    return "Python" in node.astext()


def section_of(node):
    while node.parent is not None and not isinstance(node, (nodes.section, nodes.row)):
        node = node.parent
    return id(node)


def outside(address, child):
    return nodes.reference("", "", child, internal=False, refuri=address)


def link_names(app, tree, page):
    """Links the first mention of a name in each section, and of another library or paper in each page."""
    if page.startswith("source/"):
        return
    names, seen = app.env.roost_names, set()
    for node in list(tree.findall(nodes.literal)):
        text = node.astext()
        if not is_prose(node) or "\n" in text:
            continue
        if address := theirs(text):
            if address not in seen:
                seen.add(address)
                node.replace_self(outside(address, node.deepcopy()))
            continue
        place = names.place_of(text, about_python(node, page), page == "cpp/index") or file_of(app.env, text)
        key = (section_of(node), place)
        if place and place[0] != page and key not in seen:
            seen.add(key)
            node.replace_self(make_refnode(app.builder, page, *place, node.deepcopy()))
    for node in list(tree.findall(nodes.Text)):
        if is_prose(node):
            link_text(app, page, node, seen)


def file_of(env, text):
    """The page of a file of this repository, or None."""
    if not (match := FILES.fullmatch(text)):
        return None
    page = match[3] or (f"source/{match[2]}" if match[2] else f"cpp/{match[1]}")
    return (page, "") if page in env.found_docs else None


def link_text(app, page, node, seen):
    text, at, parts = node.astext(), 0, []
    kinds = [PROSE, FILES, IN_DOCSTRINGS] if page.startswith("cpp/") else [PROSE, FILES]
    found = [match for kind in kinds for match in kind.finditer(text)]
    for match in sorted(found, key=lambda each: each.start()):
        if match.start() < at:
            continue
        if match.re is PROSE:
            key = LIBRARIES.get(match[0]) or next(
                address for paper, address in PAPERS.items() if re.fullmatch(paper, match[0])
            )
            link = outside(key, nodes.Text(match[0]))
        else:
            ours = app.env.roost_names.cpp.get(match[0].removeprefix("roost::"))
            key = ours or file_of(app.env, match[0])
            link = key and make_refnode(app.builder, page, *key, nodes.Text(match[0]))
        if link and key not in seen and key[0] != page:
            seen.add(key)
            parts += [nodes.Text(text[at : match.start()]), link]
            at = match.end()
    if parts:
        node.parent.replace(node, [*parts, nodes.Text(text[at:])])


def link_theirs(app, tree):
    """Links what Python's docstrings name of other libraries, before Sphinx takes torch for roost.torch."""
    for node in list(tree.findall(pending_xref)):
        if node.get("refdomain") == "py" and (address := theirs(node["reftarget"])):
            node.replace_self(outside(address, node[0]))


def know_names(app, env):
    app.env.roost_names = Names(env)


def setup(app):
    app.connect("doctree-read", link_theirs)
    app.connect("env-updated", know_names)
    app.connect("doctree-resolved", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
