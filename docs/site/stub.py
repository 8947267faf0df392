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
        self.functions = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
        self.classes = {each.name: each for each in body if isinstance(each, ast.ClassDef)}
        self.aliases = {}
        for each in body if stub.exists() else ():
            if isinstance(each, ast.Assign) and each.targets[0].id != "__all__":
                name, text = each.targets[0].id, ast.unparse(each.value)
                self.aliases[name] = name[1:] if text == "Any" else text  # Any: its name says more

    def text(self, annotation):
        """A type as the site shows it; None for one that says nothing."""
        text = annotation.value if isinstance(annotation, ast.Constant) else None
        text = text or ast.unparse(annotation)
        for name, meaning in self.aliases.items():
            text = re.sub(rf"\b{name}\b", meaning, text)
        return None if text == "Any" else text

    def annotate(self):
        """Gives the functions and methods of the module their types, which autodoc then shows."""
        for name, function in self.functions.items():
            self.annotate_one(getattr(self.module, name, None), function)
        for name in self.classes:
            if hasattr(self.module, name):
                for member in self.members(name):
                    method = inspect.getattr_static(getattr(self.module, name), member.name, None)
                    self.annotate_one(method, member)

    def members(self, name):
        """The methods of a class, and those that it inherits from others of the module."""
        for base in self.classes[name].bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                yield from self.members(base.id)
        for each in self.classes[name].body:
            if isinstance(each, ast.FunctionDef) and not any(
                isinstance(decorator, ast.Attribute) and decorator.attr == "setter"
                for decorator in each.decorator_list
            ):
                yield each

    def annotate_one(self, function, stub):
        function = function.fget if isinstance(function, property) else function
        function = function.__func__ if isinstance(function, (classmethod, staticmethod)) else function
        function = undecorate(function)  # what torch decorates is a mock, too
        function = inspect.unwrap(function) if callable(function) else function
        if not inspect.isfunction(function):
            return
        given = stub.args
        arguments = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        types = {each.arg: self.text(each.annotation) for each in arguments if each and each.annotation}
        if stub.returns:
            types["return"] = self.text(stub.returns)
        function.__annotations__ = {name: text for name, text in types.items() if text}
