"""A join and sums by two columns, with nulls, in frames of pandas, polars and Arrow.

    python examples/frames.py
"""

import pandas
import polars
import pyarrow
import roost

columns = {
    "shop": ["Bath", "Bath", None, "York", "York"],
    "day": [1, 1, 1, 2, None],
    "sold": [3, None, 2, 5, 1],
}
others = {"shop": ["Bath", "York"], "day": [1, 2], "stock": [20, 30]}
by = ["shop", "day"]

# pandas
sales = pandas.DataFrame(columns).convert_dtypes()
stock = pandas.DataFrame(others).convert_dtypes()
totals = roost.group_by(sales, by).agg(n=("sold", "count"), total=("sold", "sum"))
joined = roost.merge(sales, stock, on=by)
assert dict(zip(totals["total"], totals["n"])) == {3: 1, 2: 1, 5: 1, 1: 1}
assert joined["stock"].tolist() == [20, 20, 30]

# polars
sales, stock = polars.DataFrame(columns), polars.DataFrame(others)
totals = roost.group_by(sales, by).agg(n=("sold", "count"), total=("sold", "sum"))
joined = roost.merge(sales, stock, on=by)
assert sorted(totals["total"]) == [1, 2, 3, 5]
assert joined["stock"].to_list() == [20, 20, 30]

# Arrow
sales, stock = pyarrow.table(columns), pyarrow.table(others)
totals = roost.group_by(sales, by).agg(n=("sold", "count"), total=("sold", "sum"))
joined = roost.merge(sales, stock, on=by)
assert sorted(totals["total"].to_pylist()) == [1, 2, 3, 5]
assert joined["stock"].to_pylist() == [20, 20, 30]
print(totals, joined, sep="\n")
