"""Runs frames of polars through libroost.so with ctypes alone, by Arrow's C stream interface.

    python3 examples/c/frames.py build/release/c/libroost.so

Numbers and texts of the frames are read where they lie. Any language that can call C can do the same.
"""

import ctypes
import sys

import polars as pl


class ArrowSchema(ctypes.Structure):
    _fields_ = [
        *[(name, ctypes.c_char_p) for name in ("format", "name", "metadata")],
        *[(name, ctypes.c_int64) for name in ("flags", "n_children")],
        *[
            (name, ctypes.c_void_p)
            for name in ("children", "dictionary", "release", "private_data")
        ],
    ]


class ArrowDeviceArray(ctypes.Structure):
    """Begins with an ArrowArray."""

    _fields_ = [
        *[
            (name, ctypes.c_int64)
            for name in ("length", "null_count", "offset", "n_buffers", "n_children")
        ],
        *[
            (name, ctypes.c_void_p)
            for name in ("buffers", "children", "dictionary", "release", "private_data")
        ],
        ("device_id", ctypes.c_int64),
        ("device_type", ctypes.c_int32),
        ("sync_event", ctypes.c_void_p),
        ("reserved", ctypes.c_int64 * 3),
    ]


# Of Python's capsules, in which it passes Arrow's structs.
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
address_in = ctypes.pythonapi.PyCapsule_GetPointer
address_in.restype = ctypes.c_void_p
address_in.argtypes = [ctypes.py_object, ctypes.c_char_p]


class Result:
    """An array that roost has made. polars takes it, and its memory, without a copy."""

    def __init__(self, roost):
        self.roost, self.schema, self.array = roost, ArrowSchema(), ArrowDeviceArray()

    def __arrow_c_array__(self, requested_schema=None):
        return (
            new_capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
            new_capsule(ctypes.addressof(self.array), b"arrow_array", None),
        )

    def __del__(self):  # what nobody has taken
        self.roost.roost_release_schema(ctypes.byref(self.schema))
        self.roost.roost_release_array(ctypes.byref(self.array))


class Table:
    """A frame for roost, as long as this lives."""

    def __init__(self, roost, frame):
        self.roost, self.handle = roost, ctypes.c_void_p()
        capsule = frame.__arrow_c_stream__()
        stream = address_in(capsule, b"arrow_array_stream")
        check(roost, roost.roost_table_of_stream(stream, ctypes.byref(self.handle)))

    def take(self, rows):
        """The rows of these numbers as a frame."""
        result = Result(self.roost)
        targets = ctypes.byref(result.schema), ctypes.byref(result.array)
        check(
            self.roost,
            self.roost.roost_take(self.handle, ctypes.byref(rows.array), *targets),
        )
        return pl.DataFrame(result)

    def __del__(self):
        self.roost.roost_table_destroy(self.handle)


def load(path):
    roost = ctypes.CDLL(path)
    roost.roost_last_error.restype = ctypes.c_char_p
    roost.roost_table_of_stream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    return roost


def check(roost, status):
    if status != 0:
        raise RuntimeError(roost.roost_last_error().decode())


def join(roost, left, right, on, nulls_equal=False):
    """The inner join of two frames, as polars' `left.join(right, on=on, maintain_order="left_right")`."""
    keys = Table(roost, left.select(on)), Table(roost, right.select(on))
    left_rows, right_rows = Result(roost), Result(roost)
    targets = ctypes.byref(left_rows.array), ctypes.byref(right_rows.array)
    check(
        roost,
        roost.roost_join(keys[0].handle, keys[1].handle, 0, int(nulls_equal), *targets),
    )
    columns = (
        Table(roost, left).take(left_rows),
        Table(roost, right.drop(on)).take(right_rows),
    )
    return pl.concat(columns, how="horizontal")


def main():
    roost = load(sys.argv[1])
    n = 100_000
    sales = pl.DataFrame(
        {
            "shop": [f"shop {i * i % 977}" if i % 50 else None for i in range(n)],
            "day": [i * 7 % 31 if i % 60 else None for i in range(n)],
            "sold": [i % 1000 / 8 for i in range(n)],
        }
    )
    plans = pl.DataFrame(
        {
            "shop": [f"shop {i % 977}" for i in range(20_000)],
            "day": [i % 29 for i in range(20_000)],
            "plan": [f"plan number {i} of a shop" for i in range(20_000)],
        }
    )
    for nulls_equal in (False, True):
        found = join(roost, sales, plans, ["shop", "day"], nulls_equal)
        expected = sales.join(
            plans,
            on=["shop", "day"],
            maintain_order="left_right",
            nulls_equal=nulls_equal,
        )
        assert found.equals(expected) and len(found) > n / 2
    print(f"{len(sales)} and {len(plans)} rows joined to {len(found)}, as polars does")
    try:
        join(
            roost,
            sales,
            plans.with_columns(pl.col("day").cast(pl.String)),
            ["shop", "day"],
        )
    except RuntimeError as error:
        print("refused:", error)
    else:
        sys.exit("numbers were joined with texts")


if __name__ == "__main__":
    main()
