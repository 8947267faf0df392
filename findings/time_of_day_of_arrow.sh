#!/bin/bash
# pyarrow 26.0.1: whether nanoseconds of a time of day are refused or lost depends on pandas being installed.
# Guess: Python's datetime.time has microseconds, so a time64[ns] with nanoseconds is refused, or comes as
# another type, whatever else is installed; pandas has no type for a time of day.
# Seen: without pandas `to_pylist` and `as_py` raise a ValueError, which advises to install pandas. With
# pandas 3.1.1 beside it, not even imported, the same calls cut the last three digits off without a warning,
# and two different values come back equal. (A timestamp with nanoseconds is then a pandas.Timestamp.)
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
cat >"$folder/see.py" <<'PYTHON'
import pyarrow as pa

times = pa.array([1_000_000_001, 1_000_000_002], pa.time64("ns"))
try:
    print(len(set(times.to_pylist())), "different times of 2")
except ValueError:
    print("refused")
PYTHON
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q pyarrow==26.0.1
without=$("$folder/env/bin/python" -W error "$folder/see.py")
"$folder/env/bin/pip" install -q pandas==3.1.1
with=$("$folder/env/bin/python" -W error "$folder/see.py")
echo "without pandas: $without"
echo "with pandas: $with"
[[ $without == refused && $with == "1 different times of 2" ]]
