#!/bin/bash
# DuckDB 2.0.1, polars 2.1.0, pandas 3.1.1: of right rows with equal times, as-of joins take different ones.
# Guess: the last one of the input, as a quote that comes later replaces one with the same time; or at least
# the same row each time.
# Seen: pandas and polars take the last one. DuckDB takes the first one of few rows. Of 300,000 rows the same
# query on the same table gives row 0, 122,880 or 245,760, from one run to the next.
set -e
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/env"
"$folder/env/bin/pip" install -q duckdb==2.0.1 polars==2.1.0 pandas==3.1.1 pyarrow==26.0.1
"$folder/env/bin/python" - <<'PYTHON'
import duckdb
import pandas as pd
import polars as pl

trade = pd.DataFrame({"time": [5]})
rows = {}
for n in (3, 300_000):
    quotes = pd.DataFrame({"time": [5] * n, "row": range(n)})
    rows["pandas", n] = int(pd.merge_asof(trade, quotes, on="time")["row"][0])
    joined = pl.DataFrame({"time": [5]}).join_asof(pl.from_pandas(quotes), on="time")
    rows["polars", n] = joined["row"][0]
    database = duckdb.connect()
    database.execute("SET threads = 4; CREATE TABLE stored AS FROM quotes")
    query = "SELECT row FROM trade ASOF JOIN stored ON trade.time >= stored.time"
    rows["DuckDB", n] = sorted({database.sql(query).fetchall()[0][0] for _ in range(60)})
for (name, n), row in rows.items():
    print(f"{name}, {n:,} rows of one time: row {row}")
some = rows.pop(("DuckDB", 300_000))
wanted = {(name, n): n - 1 for name in ("pandas", "polars") for n in (3, 300_000)} | {("DuckDB", 3): [0]}
raise SystemExit(rows != wanted or len(some) < 2)
PYTHON
