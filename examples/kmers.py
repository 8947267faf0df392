"""Counts the k-mers of a genome: every word of k letters, as a number of 2 k bits.

    python examples/kmers.py [--fasta FILE] [-k 21] [--plot kmers.png]

Without a file, a made-up genome with repeats is read. The picture shows how many k-mers
come how often: in real reads errors come once, and the genome's own k-mers as often as
it was read.
"""

import argparse

import numpy as np
import roost


def read(path):
    """The letters of a FASTA file as 0 to 3, anything else as 4."""
    code = np.full(256, 4, np.uint8)
    for number, letters in enumerate(("Aa", "Cc", "Gg", "Tt")):
        for letter in letters:
            code[ord(letter)] = number
    with open(path, "rb") as file:
        lines = [b"N" if line.startswith(b">") else line.strip() for line in file]
    return code[np.frombuffer(b"".join(lines), np.uint8)]


def made_up(length, reads, rng):
    """Reads of a random genome, with an error in a hundred letters."""
    genome = rng.integers(0, 4, length, dtype=np.uint8)
    starts = rng.integers(0, length - 100, reads)
    letters = genome[starts[:, None] + np.arange(100)]
    wrong = rng.random(letters.shape) < 0.01
    letters[wrong] = (letters[wrong] + rng.integers(1, 4, wrong.sum())) % 4
    # No word spans two reads.
    return np.pad(letters, ((0, 0), (0, 1)), constant_values=4).ravel()


def words(letters, k):
    """Each word of k letters as a number, without those of letters beside ACGT."""
    n = len(letters) - k + 1
    if n <= 0:
        return np.empty(0, np.uint64)
    numbers, good = np.zeros(n, np.uint64), np.ones(n, bool)
    for i in range(k):
        numbers = numbers << np.uint64(2) | letters[i : i + n]
        good &= letters[i : i + n] < 4
    return numbers[good]


def spell(number, k):
    return "".join("ACGT"[int(number) >> 2 * (k - 1 - i) & 3] for i in range(k))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fasta")
    parser.add_argument(
        "-k", type=int, default=21, choices=range(1, 32), metavar="1..31"
    )
    parser.add_argument("--plot")
    options = parser.parse_args()
    letters = (
        read(options.fasta)
        if options.fasta
        else made_up(50_000, 10_000, np.random.default_rng(1))
    )

    found = words(letters, options.k)
    # The whole count is this line.
    kmers, counts = roost.unique(found, return_counts=True)

    often = np.argsort(-counts, kind="stable")[:3]
    print(
        f"{len(letters)} letters, {len(found)} words of {options.k}, "
        f"{len(kmers)} distinct; the most"
        " frequent: "
        + ", ".join(f"{spell(kmers[i], options.k)} ({counts[i]})" for i in often)
    )
    assert counts.sum() == len(found)
    times, number = np.unique(counts, return_counts=True)
    if options.plot:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(7, 4), constrained_layout=True)
        axes.bar(times, number, width=1)
        axes.set(
            xlabel=f"occurrences of a {options.k}-mer",
            ylabel="k-mers",
            yscale="log",
            xlim=(0, None),
        )
        axes.set_title(f"{len(kmers)} distinct {options.k}-mers")
        figure.savefig(options.plot, dpi=120)


if __name__ == "__main__":
    main()
