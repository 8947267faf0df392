"""Trains a table, kills the process, loads the last file and goes on.

    python examples/goes_on.py [--device cuda]

One process trains and writes a file every few steps, while training goes on. It is
killed at any point. Another one loads the file, which is whole, and repeats the steps
since: both learn the same, bit by bit.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

import roost.torch
import torch

IDS, DIM, BATCH = 100_000, 16, 4096


def make_table(device):
    return roost.torch.Table(DIM, IDS // 2, optimizer="adagrad", lr=0.1, device=device)


def train(table, first, last):
    """Steps with batches that follow from their numbers; yields after each."""
    for step in range(first, last):
        generator = torch.Generator().manual_seed(step)
        ids = (
            (torch.rand(BATCH, generator=generator) ** 4 * IDS).long().to(table.device)
        )
        loss = (table(ids).sum(1) - (ids % 7)).square().mean()
        loss.backward()
        yield step, loss.item()


def child(file, device):
    table, written = make_table(device), None
    for step, _ in train(table, 0, 10**9):
        if step % 5 == 0 and (written is None or written.done()):
            written = table.snapshot(file, wait=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.device)
        return

    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "table.pt")
        command = [
            sys.executable,
            __file__,
            "--child",
            file,
            "--device",
            options.device,
        ]
        process = subprocess.Popen(command)
        while not os.path.exists(file):
            assert process.poll() is None
            time.sleep(0.1)
        time.sleep(1)
        process.kill()
        process.wait()

        table = make_table(options.device)
        table.load(file)
    done = table.counts()["steps"]
    whole = make_table(options.device)  # a table that was never killed
    before = [loss for _, loss in train(whole, 0, done + 20)]
    now = [loss for _, loss in train(table, done, done + 20)]
    print(f"step {done} of the file; loss {before[0]:.2f} at first, {now[-1]:.2f} now")
    ids = torch.arange(IDS, device=options.device)
    assert now == before[done:] and now[-1] < before[0]
    assert torch.equal(table.find(ids)[0], whole.find(ids)[0])


if __name__ == "__main__":
    main()
