"""The types of Python's functions and methods, from .pyi files, for autodoc."""

import ast
import inspect
import re
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2] / "python"


class Stub:
    """The types of a module, as its .pyi has them."""

    def __init__(self, module):
        folder = PACKAGES / module.replace(".", "/")
        file = folder / "__init__.pyi" if folder.is_dir() else folder.with_suffix(".pyi")
        body = ast.parse(file.read_text(encoding="utf-8")).body
        self.functions = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
        self.classes = {each.name: each for each in body if isinstance(each, ast.ClassDef)}
        values = {each.targets[0].id: each.value for each in body if isinstance(each, ast.Assign)}
        self.public = ast.literal_eval(values.pop("__all__"))
        self.aliases = {}
        for name, value in values.items():  # Any: its name says more
            text = ast.unparse(value)
            self.aliases[name] = name[1:] if text == "Any" else text

    def text(self, annotation):
        """A type as the site shows it; None for one that says nothing."""
        text = ast.unparse(annotation)
        for name, meaning in self.aliases.items():
            text = re.sub(rf"\b{name}\b", meaning, text)
        return None if text == "Any" else text

    def annotate(self, module):
        """Gives the functions and methods of a module their types, which autodoc then shows."""
        for name, function in self.functions.items():
            self.annotate_one(getattr(module, name, None), function)
        for name in self.classes:
            if hasattr(module, name):
                for member in self.members(name):
                    method = inspect.getattr_static(getattr(module, name), member.name, None)
                    self.annotate_one(method, member)

    def members(self, name):
        """The methods of a class, and those that it inherits from others of the module."""
        for base in self.classes[name].bases:
            if isinstance(base, ast.Name) and base.id in self.classes:
                yield from self.members(base.id)
        yield from (each for each in self.classes[name].body if isinstance(each, ast.FunctionDef))

    def annotate_one(self, function, stub):
        function = getattr(function, "fget", None) or getattr(function, "__func__", function)
        function = inspect.unwrap(function) if callable(function) else function
        if not inspect.isfunction(function):
            return
        given = stub.args
        arguments = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        types = {each.arg: self.text(each.annotation) for each in arguments if each and each.annotation}
        if stub.returns:
            types["return"] = self.text(stub.returns)
        function.__annotations__ = {name: text for name, text in types.items() if text}
