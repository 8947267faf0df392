"""The stubs have the names and the signatures of the package."""

import ast
import importlib
import importlib.util
import inspect
import pathlib
from typing import NoReturn

import pytest
import roost
from roost import _device

SPECIAL = {f"__{name}__" for name in "init len contains getitem setitem delitem iter add".split()}


class Stub:
    """A module and its stub."""

    def __init__(self, name, file):
        self.module = importlib.import_module(name)
        tree = ast.parse((pathlib.Path(roost.__file__).parent / file).read_text())
        for node in [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.level]:
            source = pathlib.Path(roost.__file__).parent / f"{node.module}.pyi"
            tree.body += ast.parse(source.read_text()).body if node.module else []  # names of another stub
        self.classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        self.functions = named(tree.body)
        (names,) = (n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "__all__")
        self.all = ast.literal_eval(names)

    def members(self, name):
        """The members of a class and of its bases in this stub."""
        members = {}
        for base in self.classes[name].bases:
            base = base.value if isinstance(base, ast.Subscript) else base
            members |= self.members(base.id) if getattr(base, "id", None) in self.classes else {}
        return members | named(self.classes[name].body)


def named(body):
    """The functions of a module or a class by name, each with all of its overloads."""
    functions = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            functions.setdefault(node.name, []).append(node)
    return functions


STUBS = {
    "roost": Stub("roost", "__init__.pyi"),
    "roost.distributed": Stub("roost.distributed", "distributed.pyi"),
    "roost.sparse": Stub("roost.sparse", "sparse/__init__.pyi"),
    "roost.match": Stub("roost.match", "match.pyi"),
    "roost.solids": Stub("roost.solids", "solids.pyi"),
    "roost.stars": Stub("roost.stars", "stars.pyi"),
}
for library in ("pandas", "polars"):
    if importlib.util.find_spec(library):
        STUBS[f"roost.{library}"] = Stub(f"roost.{library}", f"{library}.pyi")
if importlib.util.find_spec("torch"):
    STUBS["roost.torch"] = Stub("roost.torch", "torch/__init__.pyi")
if importlib.util.find_spec("jax"):
    STUBS["roost.jax"] = Stub("roost.jax", "jax/__init__.pyi")
    STUBS["roost.sparse.nn"] = Stub("roost.sparse.nn", "sparse/nn.pyi")


def parameters_of_stub(function):
    """(name, kind, whether it has a default) of each."""
    a = function.args
    plain = [*a.posonlyargs, *a.args]
    first_default = len(plain) - len(a.defaults)
    found = [(p.arg, "positional", i >= first_default) for i, p in enumerate(plain)]
    found += [(a.vararg.arg, "*", False)] if a.vararg else []
    found += [(p.arg, "keyword", d is not None) for p, d in zip(a.kwonlyargs, a.kw_defaults)]
    if a.kwarg and ast.unparse(a.kwarg.annotation) == "Unpack[_On]":
        return found + [(name, "keyword", True) for name in _device._Options._fields]
    return found + ([(a.kwarg.arg, "**", False)] if a.kwarg else [])


def assert_same_parameters(overloads, function):
    """Each overload has the parameters of the function; what has a default there may be required here. The
    values of `*values` may be single parameters, or added by a decorator."""
    declared, real = [parameters_of_stub(node) for node in overloads], parameters_of(function)
    if ("values", "*", False) in real:
        real.remove(("values", "*", False))
        known = {name for name, _, _ in real}
        declared = [[p for p in each if p[0] in known] for each in declared]
    for each in declared:
        assert [p[:2] for p in each] == [p[:2] for p in real], function
    defaults = [tuple(p[2] for p in each) for each in declared]
    assert [any(each) for each in zip(*defaults)] == [p[2] for p in real], function


def parameters_of(function):
    kinds = {"VAR_POSITIONAL": "*", "KEYWORD_ONLY": "keyword", "VAR_KEYWORD": "**"}
    return [
        (p.name, kinds.get(p.kind.name, "positional"), p.default is not p.empty)
        for p in inspect.signature(function).parameters.values()
    ]


def members_of(cls):
    """The public members of a class, with those of its bases in roost. Those that only say why not are in no
    stub, so that type checkers say it, too."""
    members = {
        name: member
        for base in reversed(cls.__mro__)
        if base.__module__.startswith("roost")
        for name, member in vars(base).items()
        if (not name.startswith("_") or name in SPECIAL) and (callable(member) or hasattr(member, "__get__"))
    }
    return {
        name: member
        for name, member in members.items()
        if getattr(member, "__annotations__", {}).get("return") is not NoReturn
    }


@pytest.mark.parametrize("stub", STUBS.values(), ids=STUBS)
def test_names(stub):
    public = [name for name in stub.classes if name[0] != "_"]
    assert sorted(stub.all) == sorted(stub.module.__all__) == sorted([*stub.functions, *public])
    for name, overloads in stub.functions.items():
        assert_same_parameters(overloads, getattr(stub.module, name))


@pytest.mark.parametrize(
    "stub, name",
    [
        pytest.param(stub, name, id=f"{module}.{name}")
        for module, stub in STUBS.items()
        for name in stub.classes
        if name[0] != "_"
    ],
)
def test_members(stub, name):
    declared, real = stub.members(name), members_of(getattr(stub.module, name))
    if stub.module is not roost:  # what torch calls is no matter of users
        for its in ("get_extra_state", "set_extra_state", "extra_repr"):
            real.pop(its, None)
    assert set(declared) == set(real)
    for member, overloads in declared.items():
        # that of a setter, which comes after its property, is an attribute: "lr.setter"
        decorators = {d.id if isinstance(d, ast.Name) else "property" for d in overloads[-1].decorator_list}
        here = real[member]
        assert ("property" in decorators) == isinstance(here, property), member
        assert ("classmethod" in decorators) == isinstance(here, classmethod), member
        if not isinstance(here, property):
            here = here.__func__ if isinstance(here, classmethod) else here
            assert_same_parameters(overloads, here)
