#!/bin/bash
# polars 2.1.0 with numpy 2.4.6: numpy.asarray(series) and series.to_numpy() give different texts.
# Guess: both hand over the same values, as they do for numbers.
# Seen: to_numpy() gives an array of objects with the texts as they are. numpy.asarray gives texts of fixed
# width, which cannot end in NUL characters: "a\0" becomes "a", so two different texts become equal.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install -q polars==2.1.0 numpy==2.4.6
cat > look.py <<'PYTHON'
import numpy
import polars

texts = polars.Series(["a", "a\0", "b\0c"])
for name, array in (("asarray", numpy.asarray(texts)), ("to_numpy", texts.to_numpy())):
    print(name, array.dtype.kind, array.tolist(), len(set(array.tolist())), "different")
PYTHON
env/bin/python look.py | tee seen
diff seen - <<'SEEN'
asarray U ['a', 'a', 'b\x00c'] 2 different
to_numpy O ['a', 'a\x00', 'b\x00c'] 3 different
SEEN
