"""Joins two data frames and sums by key, beside pandas, polars and DuckDB.

    python examples/frames.py [--rows 1000000] [--plot frames.png]

Each library does the same: orders get the region of their customer, and the amounts of
each region are summed. Those that are not installed are left out. All sums must agree.
"""

import argparse
import time

import numpy as np
import roost


def with_roost(orders, customers):
    row = roost.Index(customers["id"]).get_indexer(orders["customer"])
    by_region = roost.group_by(customers["region"][row])
    return dict(zip(by_region.keys.tolist(), by_region.sum(orders["amount"]).tolist()))


def with_pandas(orders, customers):
    import pandas

    joined = pandas.DataFrame(orders).merge(
        pandas.DataFrame(customers), left_on="customer", right_on="id"
    )
    return joined.groupby("region")["amount"].sum().to_dict()


def with_polars(orders, customers):
    import polars

    joined = polars.DataFrame(orders).join(
        polars.DataFrame(customers), left_on="customer", right_on="id"
    )
    return dict(joined.group_by("region").agg(polars.col("amount").sum()).iter_rows())


def with_duckdb(orders, customers):
    import duckdb
    import pandas

    o, c = pandas.DataFrame(orders), pandas.DataFrame(customers)
    return dict(
        duckdb.sql(
            "select region, sum(amount) from o join c on o.customer = c.id "
            "group by region"
        ).fetchall()
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--plot")
    options = parser.parse_args()
    rng = np.random.default_rng(3)
    ids = rng.permutation(options.rows // 4) * 11 + 3
    customers = {"id": ids, "region": rng.integers(0, 500, len(ids))}
    orders = {
        "customer": rng.choice(ids, options.rows),
        "amount": rng.random(options.rows),
    }
    seconds, expected = {}, None
    for name, run in [
        ("roost", with_roost),
        ("pandas", with_pandas),
        ("polars", with_polars),
        ("DuckDB", with_duckdb),
    ]:
        try:
            run(orders, customers)  # once, so that the library has been loaded
        except ImportError:
            continue
        seconds[name] = float("inf")
        for _ in range(3):
            start = time.perf_counter()
            sums = run(orders, customers)
            seconds[name] = min(seconds[name], time.perf_counter() - start)
        expected = expected or sums
        assert sums.keys() == expected.keys() and all(
            np.isclose(sums[k], expected[k]) for k in sums
        )
    for name, took in seconds.items():
        print(f"{name:7} {options.rows / took / 1e6:8.1f} million orders a second")
    if options.plot:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(6, 3), constrained_layout=True)
        bars = axes.barh(
            list(seconds), [options.rows / s / 1e6 for s in seconds.values()]
        )
        axes.bar_label(bars, fmt="%.0f", padding=3)
        axes.invert_yaxis()
        axes.set(
            xlabel="million orders a second",
            title=f"join and sum of {options.rows} orders",
        )
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(options.plot, dpi=120)


if __name__ == "__main__":
    main()
