"""Learns which advertisements are clicked, from ids without end, with rows for a part
of them: a small DLRM whose table gives the rows of ids that stay away to others.

    python examples/clicks.py [--steps 400] [--device cuda] [--hbm-rows 4000]
                              [--plot clicks.png]

Clicks are made up: each id of three features has a hidden weight, few ids are frequent,
and half of all ids that come are new. Halfway the table is written to a file and a new
one goes on from there. The loss stands beside that of nn.Embedding, which has a row for
each id there is.
"""

import argparse
import os
import tempfile

import roost.torch
import torch

FEATURES, IDS, DIM, BATCH = 3, 30_000, 8, 2048


class Model(torch.nn.Module):
    """Rows of three features, and what is made of them."""

    def __init__(self, embeddings):
        super().__init__()
        self.embeddings = embeddings
        self.top = torch.nn.Sequential(
            torch.nn.Linear(FEATURES * DIM, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )

    def forward(self, rows):
        return self.top(rows.flatten(1)).squeeze(1)


def clicks(step, weights):
    """Ids of a batch, and which were clicked. Ids become popular and are forgotten."""
    center = step * 20
    offset = (torch.rand(BATCH, FEATURES) ** 6 * 6000).long()
    ids = (center + offset) % IDS
    each = torch.stack([weights[f][ids[:, f]] for f in range(FEATURES)])
    chance = torch.sigmoid(each.sum(0))
    return ids, (torch.rand(BATCH) < chance).float()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--hbm-rows", type=int, help="the others lie in host memory")
    parser.add_argument("--plot")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_default_device(options.device)
    weights = torch.randn(FEATURES, IDS) * 1.5

    def make_table():
        # Rows for a quarter of all ids; Adam is part of the table.
        return roost.torch.Table(
            DIM,
            FEATURES * IDS // 4,
            features=True,
            optimizer="adam",
            lr=0.01,
            initializer=("normal", 0, 0.1),
            hbm_rows=options.hbm_rows,
            device=options.device,
        )

    table = make_table()
    feature = torch.arange(FEATURES).repeat(BATCH).to(torch.uint8)
    dense = torch.nn.Embedding(FEATURES * IDS, DIM, sparse=True)
    torch.nn.init.normal_(dense.weight, 0, 0.1)
    with_table, with_dense = Model(table), Model(dense)
    with_dense.top.load_state_dict(with_table.top.state_dict())
    tops = [*with_table.top.parameters(), *with_dense.top.parameters()]
    optimizers = [
        torch.optim.Adam(tops, lr=0.01),
        torch.optim.SparseAdam(dense.parameters(), lr=0.01),
    ]
    shift = torch.arange(FEATURES) * IDS

    losses = []
    ahead = clicks(0, weights)
    for step in range(options.steps):
        ids, clicked = ahead
        ahead = clicks(step + 1, weights)
        rows = table(ids, table=feature)
        outputs = [with_table(rows), with_dense(dense(ids + shift))]
        each = [
            torch.nn.functional.binary_cross_entropy_with_logits(out, clicked)
            for out in outputs
        ]
        for optimizer in optimizers:
            optimizer.zero_grad()
        table.prefetch(ahead[0], table=feature)  # of host memory, beside the next line
        torch.stack(each).sum().backward()  # which changes the rows of the table
        for optimizer in optimizers:
            optimizer.step()
        losses.append([loss.item() for loss in each])
        if step == options.steps // 2:
            with tempfile.TemporaryDirectory() as folder:
                file = os.path.join(folder, "table.pt")
                table.snapshot(file)
                table = make_table()
                table.load(file)

    last = torch.tensor(losses[-50:]).mean(0).tolist()
    counts = table.counts()
    print(
        f"loss {last[0]:.3f} with {table.capacity} rows, {last[1]:.3f} with "
        f"{FEATURES * IDS}; {counts['evicted']} ids lost their rows since the file"
    )
    assert counts["unplaced"] == 0 and len(table) <= table.capacity
    if options.steps >= 300:
        assert last[0] < 0.55 and last[0] < last[1] + 0.01

    if options.plot:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        mean = torch.tensor(losses).unfold(0, 10, 1).mean(-1)
        figure, axes = pyplot.subplots(figsize=(7, 4), constrained_layout=True)
        axes.plot(mean[:, 0], label=f"Table, {table.capacity} rows")
        axes.plot(mean[:, 1], label=f"nn.Embedding, {FEATURES * IDS} rows")
        axes.set(xlabel="step", ylabel="loss, mean of 10 steps")
        axes.legend(frameon=False)
        axes.set_title("clicks on ids that come and go")
        figure.savefig(options.plot, dpi=120)


if __name__ == "__main__":
    main()
