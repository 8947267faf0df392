from ._accessors import FrameMethods, SeriesMethods

__all__ = ["FrameMethods", "SeriesMethods"]
