# Types of the stubs; there is no such module. Arguments are told apart by a method that only they have, not
# by their class: where a library or its stubs are not installed, that is Any, which all arguments match.
# pandas comes before tensors: with its stubs, Series have methods of all names.
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from decimal import Decimal
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

class _Torch(Protocol):
    def requires_grad_(self, *args: Any, **kwargs: Any) -> Any: ...

class _Cupy(Protocol):
    def toDlpack(self, *args: Any, **kwargs: Any) -> Any: ...

class _Jax(Protocol):
    def block_until_ready(self, *args: Any, **kwargs: Any) -> Any: ...

class _Polars(Protocol):  # Series and DataFrame
    def is_duplicated(self) -> Any: ...

class _Pandas(Protocol):  # Series and DataFrame
    @property
    def iloc(self) -> Any: ...

class _PandasIndex(Protocol):
    def get_indexer(self, *args: Any, **kwargs: Any) -> Any: ...

class _PandasArray(Protocol):
    @classmethod
    def _concat_same_type(cls, *args: Any, **kwargs: Any) -> Any: ...

class _Arrow(Protocol):  # Array and RecordBatch of pyarrow
    def copy_to(self, *args: Any, **kwargs: Any) -> Any: ...

class _ArrowColumn(Protocol):  # Array and ChunkedArray
    def dictionary_encode(self, *args: Any, **kwargs: Any) -> Any: ...

class _Chunked(Protocol):  # ChunkedArray and Table
    def combine_chunks(self, *args: Any, **kwargs: Any) -> Any: ...

class _Stream(Protocol):  # these, and what others have
    def __arrow_c_stream__(self, *args: Any, **kwargs: Any) -> Any: ...

class _PandasFrame(Protocol):
    def iterrows(self, *args: Any, **kwargs: Any) -> Any: ...

class _PolarsFrame(Protocol):
    def iter_columns(self, *args: Any, **kwargs: Any) -> Any: ...

class _Table(_Chunked, Protocol):
    def itercolumns(self, *args: Any, **kwargs: Any) -> Any: ...

class _Series(Protocol):  # of pandas and polars
    def to_frame(self, *args: Any, **kwargs: Any) -> Any: ...

class _ArrowArray(_Arrow, _ArrowColumn, Protocol): ...
class _PandasSeries(_Pandas, _Series, Protocol): ...
class _PolarsSeries(_Polars, _Series, Protocol): ...

class _Unknown: ...  # of no library

class _On(TypedDict, total=False):  # through which device a call goes
    device: str | None
    limit: int | str | None
    progress: bool | Callable[[int, int], object]
    spill: str | PathLike[str] | None
    host_limit: int | str | None

_Made_co = TypeVar("_Made_co", covariant=True)
_Beside_co = TypeVar("_Beside_co", covariant=True)

class _PolarsOf(Protocol[_Made_co, _Beside_co]):
    def clone(self) -> _Made_co: ...
    def is_duplicated(self) -> _Beside_co: ...

class _PandasOf(Protocol[_Made_co, _Beside_co]):
    def copy(self) -> _Made_co: ...
    def value_counts(self) -> _Beside_co: ...
    @property
    def iloc(self) -> Any: ...

class _TableOf(Protocol[_Made_co, _Beside_co]):
    def combine_chunks(self) -> _Made_co: ...
    def column(self, i: int) -> _Beside_co: ...

# An array of numpy, torch, CuPy or jax, a column of pandas, polars or Arrow, or what numpy.asarray takes.
_Array: TypeAlias = Any
_Keys: TypeAlias = Any  # an array, or several columns: a tuple of arrays or lists, or a frame
_Tensor: TypeAlias = _Torch | _Cupy | _Jax
_Value: TypeAlias = int | float | complex | str | bytes | date | timedelta | Decimal | np.generic | None
_List: TypeAlias = list[Any] | Sequence[_Value] | set[Any] | frozenset[Any]  # a tuple of others has columns
_Bools: TypeAlias = NDArray[np.bool_]
_Int32: TypeAlias = NDArray[np.int32]
_Int64: TypeAlias = NDArray[np.int64]
_Column: TypeAlias = _Tensor | _Polars | _Pandas | _ArrowColumn | _Chunked
_X = TypeVar("_X")
_First: TypeAlias = _X | tuple[_X, *tuple[Any, ...]]  # the first column decides

_AnyPandas: TypeAlias = _Pandas | _PandasIndex | _PandasArray
_Numpy: TypeAlias = np.ndarray[Any, Any] | _List | memoryview
_Frame: TypeAlias = _PandasFrame | _PolarsFrame | _Table
_Host: TypeAlias = _First[np.ndarray[Any, Any] | _AnyPandas | _Polars | _Arrow | _Stream]
_Rest: TypeAlias = _List | tuple[Any, ...] | _PandasIndex | _PandasArray | _Arrow | _Stream
