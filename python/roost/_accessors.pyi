from typing import Any, Generic, Literal, TypeVar, Unpack, overload

import pandas as pd
import polars as pl

from . import GroupBy, _How, _IndexDtype, _Keep, _M, _No, _OfPandas, _Validate
from ._types import _Array, _On, _Polars

_OfPolars = TypeVar("_OfPolars", bound=_Polars)

class _Both(Generic[_M]):
    def __init__(self, of: _M) -> None: ...
    def drop_duplicates(self, subset: Any = ..., *, keep: _Keep = ..., **at: Unpack[_On]) -> _M: ...
    @overload
    def duplicated(self: _Both[_OfPandas], *, keep: _Keep = ..., **at: Unpack[_On]) -> pd.Series[bool]: ...
    @overload
    def duplicated(self: _Both[_OfPolars], *, keep: _Keep = ..., **at: Unpack[_On]) -> pl.Series: ...

class FrameMethods(_Both[_M]):
    def merge(self, right: Any, on: Any = ..., *, left_on: Any = ..., right_on: Any = ...,
              left_index: bool = ..., right_index: bool = ..., how: _How | Literal["cross"] = ...,
              suffixes: tuple[str | None, str | None] = ..., indicator: bool | str = ...,
              validate: _Validate | None = ..., nulls_equal: bool = ..., **at: Unpack[_On]) -> _M: ...
    def group_by(self, by: Any = ..., *, dropna: bool = ..., skipna: bool | None = ...,
                 **at: Unpack[_On]) -> GroupBy: ...

class SeriesMethods(_Both[_M]):
    @overload
    def unique(self, *, sorted: bool = ..., return_index: _No = ..., return_inverse: _No = ...,
               return_counts: _No = ..., index_dtype: _IndexDtype = ..., **at: Unpack[_On]) -> _M: ...
    @overload
    def unique(self, *, sorted: bool = ..., return_index: bool = ..., return_inverse: bool = ...,
               return_counts: bool = ..., index_dtype: _IndexDtype = ...,
               **at: Unpack[_On]) -> tuple[Any, ...]: ...
    def value_counts(self, *, sort: bool = ..., normalize: bool = ...,
                     **at: Unpack[_On]) -> tuple[_M, Any]: ...
    @overload
    def isin(self: SeriesMethods[_OfPandas], y: _Array, *, assume_unique: bool = ..., invert: bool = ...,
             nulls_equal: bool = ..., **at: Unpack[_On]) -> pd.Series[bool]: ...
    @overload
    def isin(self: SeriesMethods[_OfPolars], y: _Array, *, assume_unique: bool = ..., invert: bool = ...,
             nulls_equal: bool = ..., **at: Unpack[_On]) -> pl.Series: ...
    def factorize(self, *, use_na_sentinel: bool = ..., index_dtype: _IndexDtype = ...,
                  **at: Unpack[_On]) -> tuple[Any, _M]: ...
    def nunique(self, *, dropna: bool = ..., **at: Unpack[_On]) -> int: ...
