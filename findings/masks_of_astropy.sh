#!/bin/bash
# astropy 8.0.2 with numpy 2.4.6: two kinds of masked columns, and neither is masked as numpy's arrays are.
# Guess: `.data` of a numpy.ma.MaskedArray is a plain array, also for astropy's MaskedColumn, which is one;
# and numpy.ma.isMaskedArray, or numpy.asarray, notices the mask of what an astropy.table.QTable holds.
# Seen: `MaskedColumn.data` is masked again, so that code which calls itself with `.data` never gets to plain
# numbers. The column of a QTable with a unit becomes a MaskedQuantity, to numpy no masked array at all:
# numpy.asarray returns the numbers under the mask, without a warning.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q astropy==8.0.2 numpy==2.4.6
"$folder/env/bin/python" -W error - <<'PYTHON'
import numpy as np
from astropy.table import MaskedColumn, QTable

column = MaskedColumn([1.0, -999.0, 3.0], mask=[False, True, False], unit="m")
quantity = QTable({"a": column})["a"]
seen = {
    "column is a masked array": np.ma.isMaskedArray(column),
    "column.data is one, too": np.ma.isMaskedArray(column.data),
    "numpy's own .data is not": not np.ma.isMaskedArray(np.ma.masked_array([1.0], [True]).data),
    "type in a QTable": type(quantity).__name__,
    "is it a masked array": np.ma.isMaskedArray(quantity),
    "numpy.asarray": np.asarray(quantity).tolist(),
}
for name, value in seen.items():
    print(f"{name}: {value}")
raise SystemExit(list(seen.values()) != [True, True, True, "MaskedQuantity", False, [1.0, -999.0, 3.0]])
PYTHON
