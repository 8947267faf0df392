"""The module for GPUs, which is loaded at the first use of a GPU. It is in this package if nvcc built it
there, or in a separate package, roost-cu13 or roost-cu12."""

import importlib
import os
import sys

_PACKAGES = ("roost", "roost_cu13", "roost_cu12")


def loaded():
    """The module if it has been loaded, otherwise None."""
    return next((sys.modules[f"{p}._cuda"] for p in _PACKAGES if f"{p}._cuda" in sys.modules), None)


def module():
    """The module. ImportError: there is none, or it was built for another version of roost."""
    from . import __version__

    if there := loaded():
        return there
    for package in _PACKAGES:
        name = f"{package}._cuda"
        try:
            version = importlib.import_module(package).__version__
            if version == __version__:
                return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in (package, name):
                raise
            continue
        extra = package.removeprefix("roost_")
        raise ImportError(
            f"roost is {__version__}, but its module for GPUs, {package}, is {version}; "
            f"pip install 'roost[{extra}]=={__version__}'"
        )
    raise ImportError("no module for GPUs is installed; pip install 'roost[cu13]', build roost where nvcc is")


_lost = False  # whether the module was loaded before a fork: CUDA does not work in the child


def _after_fork():
    global _lost
    _lost = _lost or loaded() is not None


os.register_at_fork(after_in_child=_after_fork)


def trim():
    """Returns memory that is kept for the next call: of GPUs, and of the host for results from them."""
    if loaded() and not _lost:
        loaded().trim()
