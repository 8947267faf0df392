#!/bin/bash
# DuckDB 2.0.1 with pyarrow 26.0.1: a HUGEINT column leaves as decimals that have more digits than their type.
# Guess: Arrow's decimal128(38, 0) holds at most 38 digits, so 2^127 - 1, which has 39, is refused, or leaves
# as a wider type or a text.
# Seen: the column is of type decimal128(38, 0) and holds 39 digits. Its values are right when they are read,
# but `validate(full=True)` calls the column invalid, and pyarrow makes no such column of Python's decimals.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q duckdb==2.0.1 pyarrow==26.0.1
"$folder/env/bin/python" -W error - <<'PYTHON'
import decimal
import duckdb
import pyarrow as pa

def refused(call):
    try:
        call()
    except pa.ArrowInvalid:
        return True
    return False

query = duckdb.sql("select 170141183460469231731687303715884105727::hugeint as k")
column = pa.table(query)["k"].combine_chunks()
seen = {
    "type": str(column.type),
    "value": str(column[0].as_py()),
    "is invalid": refused(lambda: column.validate(full=True)),
    "the same from Python": refused(lambda: pa.array([decimal.Decimal(2**127 - 1)], column.type)),
}
for name, value in seen.items():
    print(f"{name}: {value}")
raise SystemExit(list(seen.values()) != ["decimal128(38, 0)", str(2**127 - 1), True, True])
PYTHON
