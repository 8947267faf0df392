#!/bin/bash
# torch 2.11.0: index_add and addmm of integers truncate a fractional alpha; add, sub and addr refuse it.
# Guess: "For integral input tensors, argument alpha must not be a floating point number.", as add raises.
# Seen: index_add with alpha=0.5 adds nothing, and with 2.5 twice the source, without a warning; so does
# addmm.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.11.0 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
import torch

zero, ten, square = torch.tensor([0]), torch.tensor([10]), torch.tensor([[10]])
calls = {
    "index_add": lambda alpha: torch.index_add(zero, 0, zero, ten, alpha=alpha),
    "addmm": lambda alpha: torch.addmm(zero, square, torch.tensor([[1]]), alpha=alpha),
    "add": lambda alpha: torch.add(zero, ten, alpha=alpha),
    "sub": lambda alpha: torch.sub(zero, ten, alpha=alpha),
    "addr": lambda alpha: torch.addr(torch.tensor([[0]]), ten, torch.tensor([1]), alpha=alpha),
}
seen = {}
for name, call in calls.items():
    for alpha in (0.5, 2.5):
        try:
            seen[name, alpha] = call(alpha).item()
        except RuntimeError as error:
            seen[name, alpha] = "refused" if "must not be a floating point number" in str(error) else error
        print(f"{name}(0, 10, alpha={alpha}): {seen[name, alpha]}")
wanted = [0, 20, 0, 20] + 6 * ["refused"]
raise SystemExit(list(seen.values()) != wanted)
PYTHON
