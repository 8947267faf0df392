"""Functions of roost as methods of polars: `import roost.polars` gives frames `df.roost.merge(...)`,
`group_by`, `drop_duplicates` and `duplicated`, and columns `s.roost.unique()`, `value_counts`, `isin`,
`factorize`, `nunique`, `drop_duplicates` and `duplicated`."""

from polars import api as _api

from ._accessors import FrameMethods, SeriesMethods

__all__ = ["FrameMethods", "SeriesMethods"]

_api.register_dataframe_namespace("roost")(FrameMethods)
_api.register_lazyframe_namespace("roost")(FrameMethods)  # whose functions say what to do instead
_api.register_series_namespace("roost")(SeriesMethods)
