"""The stub has the names and the signatures of the package."""

import ast
import inspect
import pathlib

import pytest
import roost

STUB = ast.parse((pathlib.Path(roost.__file__).parent / "__init__.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
SPECIAL = {f"__{name}__" for name in "init len contains getitem setitem iter".split()}


def parameters_of_stub(function):
    """(name, kind, whether it has a default) of each."""
    a = function.args
    plain = [*a.posonlyargs, *a.args]
    first_default = len(plain) - len(a.defaults)
    found = [(p.arg, "positional", i >= first_default) for i, p in enumerate(plain)]
    found += [(a.vararg.arg, "*", False)] if a.vararg else []
    return found + [(p.arg, "keyword", d is not None) for p, d in zip(a.kwonlyargs, a.kw_defaults)]


def parameters_of(function):
    kinds = {"VAR_POSITIONAL": "*", "KEYWORD_ONLY": "keyword"}
    return [
        (p.name, kinds.get(p.kind.name, "positional"), p.default is not p.empty)
        for p in inspect.signature(function).parameters.values()
    ]


def members_of_stub(name):
    members = {}
    for base in CLASSES[name].bases:
        members |= members_of_stub(base.id)
    return members | {node.name: node for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)}


def members_of(cls):
    return {
        name: member
        for base in reversed(cls.__mro__[:-1])
        for name, member in vars(base).items()
        if (not name.startswith("_") or name in SPECIAL) and (callable(member) or hasattr(member, "__get__"))
    }


def test_names():
    functions = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
    assert {*functions, *(name for name in CLASSES if name[0] != "_")} == set(roost.__all__)
    for name, node in functions.items():
        assert parameters_of_stub(node) == parameters_of(getattr(roost, name)), name


@pytest.mark.parametrize("name", [name for name in CLASSES if name[0] != "_"])
def test_members(name):
    stub, real = members_of_stub(name), members_of(getattr(roost, name))
    if name == "GroupBy":  # which group_by makes
        del real["__init__"]
    assert set(stub) == set(real)
    for member, node in stub.items():
        decorators = {d.id for d in node.decorator_list}
        here = real[member]
        assert ("property" in decorators) == isinstance(here, property), member
        assert ("classmethod" in decorators) == isinstance(here, classmethod), member
        if not isinstance(here, property):
            here = here.__func__ if isinstance(here, classmethod) else here
            assert parameters_of_stub(node) == parameters_of(here), member
