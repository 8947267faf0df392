"""What pandas does, and the same with roost: python examples/coming_from_pandas.py."""

import numpy as np
import pandas as pd
import roost
import roost.pandas

orders = pd.DataFrame({"customer": [7, 3, 7, 5], "amount": [10.0, 20.0, 5.0, 1.0]})
customers = pd.DataFrame({"id": [3, 7, 9], "region": [1, 2, 1]})

# Sums of each key.
in_pandas = orders.groupby("customer", as_index=False)["amount"].sum()

in_roost = roost.group_by(orders, "customer").agg(amount=("amount", "sum"))

assert in_pandas.equals(in_roost.sort_values("customer", ignore_index=True))

# What becomes of each row beside the others of its key.
by_customer = orders.groupby("customer")
share = orders["amount"] / by_customer["amount"].transform("sum")
place = by_customer["amount"].rank(method="min", ascending=False)

groups = roost.group_by(orders, "customer")
roost_share = orders["amount"] / groups["amount"].transform("sum")
roost_place = groups["amount"].rank(method="min", ascending=False)

assert share.equals(roost_share)
assert place.equals(roost_place.astype(float))

# Columns of groups, several results of each, rows of each key, and the groups.
total = groups["amount"].sum()  # an array, in the order of groups.keys
both = groups[["amount"]].mean()  # a frame: customer, amount
found = groups.agg({"amount": ["sum", "max"]})  # customer, amount_sum, amount_max
latest = groups.tail(1)
for customer, rows in groups:
    print(customer, rows["amount"].tolist())

assert found["amount_sum"].tolist() == total.tolist()
assert latest.index.tolist() == [1, 2, 3]
assert dict(zip(both["customer"], both["amount"])) == {7: 7.5, 3: 20.0, 5: 1.0}

# Rows that match, and rows of both, matched or not.
in_pandas = orders.merge(customers, left_on="customer", right_on="id", how="outer")

outer = roost.merge(orders, customers, left_on="customer", right_on="id", how="outer")
left, right = roost.join(orders["customer"], customers["id"], "outer")  # row numbers

assert left.tolist() == [0, 1, 2, 3, -1] and right.tolist() == [1, 0, 1, -1, 2]
key = in_pandas["customer"].fillna(in_pandas["id"]).astype(int)
in_pandas = in_pandas.assign(customer=key).drop(columns="id")
order = ["customer", "amount"]
a, b = (x.sort_values(order, ignore_index=True) for x in (in_pandas, outer))
assert a.equals(b)

# The same as methods.
in_pandas = orders.merge(customers, left_on="customer", right_on="id", validate="m:1")
last_in_pandas = orders.drop_duplicates("customer", keep="last")

in_roost = orders.roost.merge(
    customers, left_on="customer", right_on="id", validate="m:1"
)
last = orders.roost.drop_duplicates("customer", keep="last")

assert in_roost.equals(in_pandas.drop(columns="id")) and last.equals(last_in_pandas)

shops = (
    orders.roost.merge(customers, left_on="customer", right_on="id", how="full")
    .roost.drop_duplicates("region", keep="last")
    .sort_values("region")
)
regions = customers["region"].roost.nunique()  # 2

assert shops["customer"].tolist() == [9, 7, 5] and regions == 2

# Keys as numbers, and keys that are in another column.
codes, uniques = pd.factorize(orders["customer"])
known = orders["customer"].isin(customers["id"])

roost_codes, roost_uniques = roost.factorize(orders["customer"])
roost_known = roost.isin(orders["customer"], customers["id"])

assert np.array_equal(codes, roost_codes) and np.array_equal(uniques, roost_uniques)
assert np.array_equal(known, roost_known) and list(known) == [True, True, True, False]
print("coming_from_pandas: right")
