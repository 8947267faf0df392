"""A join and sums by two columns, with nulls, in frames of pandas, polars and Arrow.

    python examples/frames.py
"""

import pandas
import polars
import pyarrow
import roost

shops, days, sold = ["Bath", "Bath", None, "York", "York"], [1, 1, 1, 2, None], [3, None, 2, 5, 1]
stocks = {"shop": ["Bath", "York"], "day": [1, 2], "stock": [20, 30]}

# pandas
sales = pandas.DataFrame({"shop": shops, "day": days, "sold": sold}).convert_dtypes()
totals = roost.group_by(sales, ["shop", "day"]).agg(n=("sold", "count"), total=("sold", "sum"))
joined = roost.merge(sales, pandas.DataFrame(stocks).convert_dtypes(), on=["shop", "day"])
assert dict(zip(totals["total"], totals["n"])) == {3: 1, 2: 1, 5: 1, 1: 1}
assert joined["stock"].tolist() == [20, 20, 30]

# polars
sales = polars.DataFrame({"shop": shops, "day": days, "sold": sold})
totals = roost.group_by(sales, ["shop", "day"]).agg(n=("sold", "count"), total=("sold", "sum"))
joined = roost.merge(sales, polars.DataFrame(stocks), on=["shop", "day"])
assert sorted(totals["total"]) == [1, 2, 3, 5] and joined["stock"].to_list() == [20, 20, 30]

# Arrow
sales = pyarrow.table({"shop": shops, "day": days, "sold": sold})
totals = roost.group_by(sales, ["shop", "day"]).agg(n=("sold", "count"), total=("sold", "sum"))
joined = roost.merge(sales, pyarrow.table(stocks), on=["shop", "day"])
assert sorted(totals["total"].to_pylist()) == [1, 2, 3, 5]
assert joined["stock"].to_pylist() == [20, 20, 30]
print(totals, joined, sep="\n")
