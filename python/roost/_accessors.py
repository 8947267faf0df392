"""What `df.roost` and `s.roost` are: functions of roost as methods of frames and columns."""

import functools
import inspect

from . import _functions
from ._group_by import group_by
from ._merge import merge


def _methods(*functions):
    """Decorates a class: gives it functions as methods, whose first argument is what the object is of."""

    def method_of(function):
        @functools.wraps(function)
        def method(self, *args, **options):
            return function(self._of, *args, **options)

        first, *rest = inspect.signature(function).parameters.values()
        method.__signature__ = inspect.Signature([first.replace(name="self"), *rest])
        return method

    def decorate(cls):
        for function in functions:
            setattr(cls, function.__name__, method_of(function))
        return cls

    return decorate


@_methods(_functions.drop_duplicates, _functions.duplicated)
class _Both:
    def __init__(self, of):
        self._of = of


@_methods(merge, group_by)
class FrameMethods(_Both):
    """`df.roost`: functions of roost whose first argument is the frame `df`."""


@_methods(
    _functions.unique,
    _functions.value_counts,
    _functions.isin,
    _functions.factorize,
    _functions.nunique,
)
class SeriesMethods(_Both):
    """`s.roost`: functions of roost whose first argument is the column `s`."""
