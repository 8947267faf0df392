"""What pandas does, and the same with roost: python examples/coming_from_pandas.py."""

import numpy as np
import pandas as pd
import roost

orders = pd.DataFrame({"customer": [7, 3, 7, 5], "amount": [10.0, 20.0, 5.0, 1.0]})
customers = pd.DataFrame({"id": [3, 7, 9], "region": [1, 2, 1]})

# Sums of each key.
in_pandas = orders.groupby("customer", sort=False)["amount"].sum()

by_customer = roost.group_by(orders["customer"])
in_roost = pd.Series(by_customer.sum(orders["amount"]), by_customer.keys)

assert in_pandas.to_dict() == in_roost.to_dict() == {7: 15.0, 3: 20.0, 5: 1.0}

# Rows that match.
merged = orders.merge(customers, left_on="customer", right_on="id")

left, right = roost.join(orders["customer"], customers["id"])  # row numbers
left, right = orders.iloc[left], customers.iloc[right]
joined = pd.concat([left.reset_index(drop=True), right.reset_index(drop=True)], axis=1)

order = ["customer", "amount"]
assert (
    merged.sort_values(order).values.tolist()
    == joined.sort_values(order).values.tolist()
)
assert len(joined) == 3

# Rows of both, matched or not.
every = orders.merge(customers, left_on="customer", right_on="id", how="outer")

left, right = roost.join(orders["customer"], customers["id"], "outer")
# Row -1 stands for no match: reindex makes NaN of it.
left, right = orders.reindex(left), customers.reindex(right)
outer = pd.concat([left.reset_index(drop=True), right.reset_index(drop=True)], axis=1)

order = ["customer", "amount", "id", "region"]
a, b = (frame[order].sort_values(order, ignore_index=True) for frame in (every, outer))
assert a.equals(b) and len(outer) == 5

# Keys as numbers, and keys that are in another column.
codes, uniques = pd.factorize(orders["customer"])
known = orders["customer"].isin(customers["id"])

roost_codes, roost_uniques = roost.factorize(orders["customer"])
roost_known = roost.isin(orders["customer"], customers["id"])

assert np.array_equal(codes, roost_codes) and np.array_equal(uniques, roost_uniques)
assert np.array_equal(known, roost_known) and list(known) == [True, True, True, False]
print("coming_from_pandas: right")
