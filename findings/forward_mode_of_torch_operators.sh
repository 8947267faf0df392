#!/bin/bash
# torch 2.11.0: forward-mode derivatives of operators made by torch.library.custom_op are 0.
# Guess: an operator with register_autograd, which has a backward formula and none for forward mode, is refused
# by torch.func.jvp, as a torch.autograd.Function without jvp() is; or jvp is made of two backward passes.
# Seen: jvp returns a tangent of 0 for x ** 3, without an error, and in a dual_level the result
# has no tangent. Backward is right. The Function raises, as guessed.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q torch==2.11.0 numpy==2.4.6
"$folder/env/bin/python" - <<'PYTHON'
import torch
from torch.autograd import forward_ad

@torch.library.custom_op("findings::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x**3

def keep(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])

def backward(context, gradient):
    return gradient * 3 * context.saved_tensors[0] ** 2

cube.register_autograd(backward, setup_context=keep)

class Cube(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x**3

    backward = staticmethod(backward)

two, one = torch.tensor([2.0]), torch.tensor([1.0])
with forward_ad.dual_level():
    dual = forward_ad.make_dual(two, one)
    seen = {
        "operator, tangent": forward_ad.unpack_dual(cube(dual)).tangent,
        "x ** 3, tangent": forward_ad.unpack_dual(dual**3).tangent.item(),
    }
    try:
        seen["Function, tangent"] = forward_ad.unpack_dual(Cube.apply(dual)).tangent
    except NotImplementedError as error:
        seen["Function, tangent"] = type(error).__name__
seen["operator, jvp"] = torch.func.jvp(cube, (two,), (one,))[1].item()
leaf = two.clone().requires_grad_()
seen["operator, backward"] = torch.autograd.grad(cube(leaf).sum(), leaf)[0].item()
for name, value in seen.items():
    print(f"{name}: {value}")
raise SystemExit(list(seen.values()) != [None, 12.0, "NotImplementedError", 0.0, 12.0])
PYTHON
