"""Learns vectors of users and items by their ids, which are any 64-bit numbers, with
torch.

    python examples/embedding.py [--steps 200] [--plot embedding.png]

Ratings are made up: the product of two hidden vectors. Users and items come as they
like; rows grow. The picture shows how the error falls while the number of rows grows.
"""

import argparse

import roost.torch
import torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--plot")
    options = parser.parse_args()
    torch.manual_seed(4)
    torch.set_default_device(options.device)
    ids = torch.randint(-(2**62), 2**62, (2, 2000))
    hidden = torch.randn(2, 2000, 3)

    users, items = roost.torch.Embedding(8), roost.torch.Embedding(8)
    optimizer = torch.optim.SparseAdam(
        [*users.parameters(), *items.parameters()], lr=0.02
    )
    users.follow(optimizer)  # so that what the optimizer keeps of each row grows, too
    items.follow(optimizer)

    errors, rows = [], []
    for step in range(options.steps):
        known = 2000 * (step + 1) // options.steps + 1  # more of them each time
        u, i = torch.randint(0, min(known, 2000), (2, 4096))
        rating = (hidden[0, u] * hidden[1, i]).sum(1)
        error = ((users(ids[0, u]) * items(ids[1, i])).sum(1) - rating).pow(2).mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        errors.append(error.item())
        rows.append(len(users))
    print(
        f"{len(users)} users and {len(items)} items; "
        f"squared error {errors[0]:.2f}, then {errors[-1]:.2f}"
    )
    assert len(users) > 1000 and users.weight.grad.is_sparse
    assert torch.equal(users.rows(users.keys[: len(users)]), torch.arange(len(users)))

    if options.plot:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7, 4), constrained_layout=True)
        (left,) = axes.plot(errors, color="C0")
        axes.set(xlabel="step", ylabel="squared error", yscale="log")
        other = axes.twinx()
        (right,) = other.plot(rows, color="C1")
        other.set(ylabel="rows of users", ylim=(0, None))
        axes.legend(
            [left, right],
            ["squared error", "rows of users"],
            loc="upper center",
            frameon=False,
        )
        axes.set_title("embeddings by 64-bit ids that nobody numbered")
        figure.savefig(options.plot, dpi=120)


if __name__ == "__main__":
    main()
