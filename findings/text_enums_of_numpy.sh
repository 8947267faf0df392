#!/bin/bash
# numpy 2.4.6: members of an enum of texts become the beginning of their names.
# Guess: a member of `class Shop(str, Enum)` is a str, equal to "york" and as a key of a dict the same, so that
# an array of members holds "york"; or it is refused.
# Seen: the array is as wide as the texts, but holds str(member), cut: "Shop.YORK" and "Shop.BATH" both become
# "Shop", so different members are equal. StrEnum, whose str() is the text, and arrays of objects are right.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q numpy==2.4.6
"$folder/env/bin/python" -W error - <<'PYTHON'
import enum
import numpy as np

class Shop(str, enum.Enum):
    YORK = "york"
    BATH = "bath"

class Town(enum.StrEnum):
    YORK = "york"
    BATH = "bath"

made = np.array([Shop.YORK, Shop.BATH])
seen = {
    "array": made.tolist(),
    "type": made.dtype.str,
    "unique": np.unique(made).tolist(),
    "equal in Python": Shop.YORK == "york" and {"york": 1}[Shop.YORK] == 1,
    "StrEnum": np.array([Town.YORK, Town.BATH]).tolist(),
}
for name, value in seen.items():
    print(f"{name}: {value}")
raise SystemExit(list(seen.values()) != [["Shop", "Shop"], "<U4", ["Shop"], True, ["york", "bath"]])
PYTHON
