"""The types of Python's functions and methods, as their files write them, for autodoc."""

import ast
import inspect
import re
from pathlib import Path

from sphinx.ext.autodoc.mock import undecorate


class Stub:
    """The types of a module, as its .pyi has them, or itself without one."""

    def __init__(self, module):
        source = Path(module.__file__)
        stub = source.with_suffix(".pyi")
        body = ast.parse((stub if stub.exists() else source).read_text(encoding="utf-8")).body
        self.module = module
        self.functions = overloads_of(body)
        self.classes = {each.name: each for each in body if isinstance(each, ast.ClassDef)}
        self.aliases = {}
        for each in body[:] if stub.exists() else ():
            if isinstance(each, ast.ImportFrom) and each.module == "_types":
                shared = next(up / "_types.pyi" for up in stub.parents if (up / "_types.pyi").exists())
                body += ast.parse(shared.read_text(encoding="utf-8")).body
        for each in body if stub.exists() else ():
            if isinstance(each, (ast.Assign, ast.AnnAssign)) and not isinstance(
                each.value, (ast.Call, ast.List)
            ):
                name = each.targets[0].id if isinstance(each, ast.Assign) else each.target.id
                text = ast.unparse(each.value) if each.value else name
                self.aliases[name] = name[1:] if text == "Any" else text  # Any: its name says more

    def text(self, annotation):
        """A type as the site shows it; None for one that says nothing."""
        text = annotation.value if isinstance(annotation, ast.Constant) else None
        text = text or ast.unparse(annotation)
        for name, meaning in self.aliases.items():
            text = re.sub(rf"\b{name}\b", meaning, text)
        return None if re.search(r"^Any$|\b_[A-Za-z]", text) else text

    def annotate(self):
        """Gives the functions and methods of the module their types, which autodoc then shows."""
        for name, overloads in self.functions.items():
            self.annotate_one(getattr(self.module, name, None), overloads)
        for name in self.classes:
            if hasattr(self.module, name):
                for member, overloads in self.members(name):
                    method = inspect.getattr_static(getattr(self.module, name), member, None)
                    self.annotate_one(method, overloads)

    def members(self, name):
        """The methods of a class, and those that it inherits from others of the module."""
        for base in self.classes[name].bases:
            base = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(base, ast.Name) and base.id in self.classes:
                yield from self.members(base.id)
        yield from overloads_of(self.classes[name].body).items()

    def annotate_one(self, function, overloads):
        function = function.fget if isinstance(function, property) else function
        function = function.__func__ if isinstance(function, (classmethod, staticmethod)) else function
        function = undecorate(function)  # what torch decorates is a mock, too
        function = inspect.unwrap(function) if callable(function) else function
        if not inspect.isfunction(function):
            return
        each = [self.types(stub) for stub in overloads]
        common = {name: text for name, text in each[0].items() if all(text == e.get(name) for e in each)}
        function.__annotations__ = {name: text for name, text in common.items() if text}

    def types(self, stub):
        """The types of the arguments and the result of a function; not of a result that a decorator makes."""
        given = stub.args
        arguments = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        types = {each.arg: self.text(each.annotation) for each in arguments if each and each.annotation}
        if stub.returns and not any(ast.unparse(each)[0] == "_" for each in stub.decorator_list):
            types["return"] = self.text(stub.returns)
        return types


def overloads_of(body):
    """The functions of a module or a class by name, with all their overloads; no setters."""
    found = {}
    for each in body:
        setter = any(getattr(made, "attr", "") == "setter" for made in getattr(each, "decorator_list", ()))
        if isinstance(each, ast.FunctionDef) and not setter:
            found.setdefault(each.name, []).append(each)
    return found
