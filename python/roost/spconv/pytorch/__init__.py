"""The names of `spconv.pytorch`, over `roost.sparse`: see `roost.spconv`."""

from . import functional, ops, utils
from .conv import *
from .conv import __all__ as _conv
from .core import ConvAlgo, SparseConvTensor
from .modules import *
from .modules import __all__ as _modules
from .pool import *
from .pool import __all__ as _pool
from .tables import AddTable, AddTableMisaligned, ConcatTable, JoinTable

__all__ = ["AddTable", "AddTableMisaligned", "ConcatTable", "ConvAlgo", "JoinTable", "SparseConvTensor"]
__all__ += ["functional", "ops", "utils"]
__all__ += _conv + _modules + _pool
