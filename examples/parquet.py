"""Joins two tables in many Parquet files: Dask brings equal keys together, roost joins.

    python examples/parquet.py [--rows 200000] [--workers 2]

Dask reads the files, and shuffles rows between its workers by their keys: processes
here, and any number of machines with a scheduler of Dask (dask.distributed). Each
worker then calls roost for its partitions. The result is checked against pandas.
"""

import argparse
import tempfile

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import roost


def join_partitions(orders, customers):
    """The rows of both with equal ids; a partition has all rows of its ids."""
    left, right = roost.join(orders["id"].to_numpy(), customers["id"].to_numpy())
    return pd.DataFrame(
        {
            "id": orders["id"].to_numpy()[left],
            "amount": orders["amount"].to_numpy()[left],
            "country": customers["country"].to_numpy()[right],
        }
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    rng = np.random.default_rng(3)
    n = options.rows
    orders = pd.DataFrame(
        {"id": rng.integers(0, n, n), "amount": rng.random(n).astype("f4")}
    )
    customers = pd.DataFrame(
        {"id": rng.permutation(n)[: n // 2], "country": rng.integers(0, 90, n // 2)}
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set(scheduler="processes", num_workers=options.workers),
    ):
        dd.from_pandas(orders, npartitions=7).to_parquet(f"{folder}/orders")
        dd.from_pandas(customers, npartitions=3).to_parquet(f"{folder}/customers")

        left = dd.read_parquet(f"{folder}/orders").shuffle("id", npartitions=6)
        right = dd.read_parquet(f"{folder}/customers").shuffle("id", npartitions=6)
        joined = left.map_partitions(
            join_partitions, right, meta={"id": "i8", "amount": "f4", "country": "i8"}
        )
        found = joined.compute()

    columns = ["id", "amount", "country"]
    wanted = orders.merge(customers, on="id")[columns].sort_values(
        columns, ignore_index=True
    )
    right_rows = found[columns].sort_values(columns, ignore_index=True).equals(wanted)
    print(
        f"{len(found)} rows of {left.npartitions} partitions: "
        f"{'right' if right_rows else 'wrong'}"
    )
    return 0 if right_rows else 1


if __name__ == "__main__":
    raise SystemExit(main())
