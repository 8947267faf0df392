#!/bin/bash
# pyarrow 26.0.1: chunks whose dictionaries of float16 differ change their values when they are put together.
# Guess: take, combine_chunks, concat_arrays, unify_dictionaries and unique keep values, as they do for
# dictionaries of every other type.
# Seen: the values that come out are the bits of those that went in, read as numbers: 1.0, whose bits are
# 0x3C00, becomes 15360.0. No error, and validate(full=True) accepts the result. Dictionaries of float32, of
# decimals and of dates are right, and so is cast(float16) of the same chunks.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pyarrow==26.0.1 numpy
"$folder/env/bin/python" -W error - <<'PYTHON'
import numpy as np
import pyarrow as pa

def chunks(dtype):
    numbers = pa.array([0, 1], pa.int8())
    dictionaries = [pa.array(np.array(values, dtype)) for values in ([1, 2], [2, 3])]
    return pa.chunked_array([pa.DictionaryArray.from_arrays(numbers, values) for values in dictionaries])

def seen(column):
    every = pa.array(range(len(column)))
    together = [column.take(every), column.combine_chunks(), pa.concat_arrays(column.chunks)]
    together += [column.unify_dictionaries()]
    for made in together:
        made.validate(full=True)
    return [made.to_pylist() for made in together] + [column.unique().to_pylist()]

right, bits = [1.0, 2.0, 2.0, 3.0], [15360.0, 16384.0, 16384.0, 16896.0]
half, single = chunks(np.float16), chunks(np.float32)
print("float16:", seen(half), "cast:", half.cast(pa.float16()).to_pylist())
print("float32:", seen(single))
raise SystemExit(
    seen(half) != [bits] * 4 + [[15360.0, 16384.0, 16896.0]]
    or half.cast(pa.float16()).to_pylist() != right
    or seen(single) != [right] * 4 + [[1.0, 2.0, 3.0]]
)
PYTHON
