"""Columns larger than GPU memory, and a Parquet file larger than host memory.

    python examples/larger_than_memory.py

Without a GPU, a part of the host's memory stands for that of one.
"""

import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet
import roost

rng = np.random.default_rng(3)
customers = rng.integers(0, 5000, 200_000)
amounts = rng.random(200_000)
known = rng.permutation(10_000)[:2000]
gpu = "cuda" if roost.info()["devices"] else "simulated"

inverse = roost.unique(customers, return_inverse=True, device=gpu, limit="1GB")[1]
with roost.options(device=gpu, limit="1GB"):     # the same for all calls here
    spent = roost.group_by(customers)
    total, orders = spent.sum(amounts), spent.size()
    left, right = roost.join(customers, known)   # customers[left] == known[right]

assert (spent.keys[inverse] == customers).all() and orders.sum() == len(customers)
assert (customers[left] == known[right]).all()
assert len(left) == np.isin(customers, known).sum()
here = roost.group_by(customers)                 # the same sums, bit by bit
by_key = np.argsort(here.keys), np.argsort(spent.keys)
assert (here.sum(amounts)[by_key[0]] == total[by_key[1]]).all()


def first_of_each(source, target, keys, **device):
    """Copies a file without rows whose keys have come before. Only the columns of the
    keys are in memory as a whole: rows go from file to file in batches."""
    with parquet.ParquetFile(source) as file:
        again = roost.duplicated(file.read(columns=keys), **device)
        with parquet.ParquetWriter(target, file.schema_arrow) as made:
            row = 0
            for batch in file.iter_batches():
                stays = pc.invert(again.slice(row, len(batch)))
                made.write_batch(batch.filter(stays))
                row += len(batch)


with tempfile.TemporaryDirectory() as folder:
    visits = pa.table(
        {
            "shop": pa.array(customers % 50),
            "day": pa.array(customers // 50).cast(pa.string()),
            "sum": pa.array(amounts),
        }
    )
    parquet.write_table(visits, f"{folder}/all.parquet", row_group_size=30_000)
    ends = f"{folder}/all.parquet", f"{folder}/first.parquet"
    first_of_each(*ends, ["shop", "day"], device=gpu, limit="1GB", spill=folder)
    made = parquet.read_table(ends[1])
    print(f"{len(made)} of {len(visits)} rows")  # 5000 of 200000 rows
    first_rows = np.sort(np.unique(customers, return_index=True)[1])
    assert made.equals(visits.take(first_rows))
