"""Functions of roost as methods of pandas: `import roost.pandas` gives frames `df.roost.merge(...)`,
`group_by`, `drop_duplicates` and `duplicated`, and columns `s.roost.unique()`, `value_counts`, `isin`,
`factorize`, `nunique`, `drop_duplicates` and `duplicated`."""

from pandas.api import extensions as _extensions

from ._accessors import FrameMethods, SeriesMethods

__all__ = ["FrameMethods", "SeriesMethods"]

_extensions.register_dataframe_accessor("roost")(FrameMethods)
_extensions.register_series_accessor("roost")(SeriesMethods)
