"""Each row of the tables of calls in docs/coming-from.md, run with pandas and polars themselves."""

import pathlib
import re

import numpy as np
import pandas as pd
import pytest
import roost

pl = pytest.importorskip("polars")

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "coming-from.md"
TEXTS = np.array(["a", "b", "", "a long text", None], object)
N = 40


def tables():
    """For each library the names that the text defines, and the rows of its table."""
    section = PAGE.read_text().partition("### Calls of pandas and polars\n")[2].partition("\n## ")[0]
    for library in ("pandas", "polars"):
        text, _, rest = section.partition(f"\n{library}, with ")[2].partition("\n|")
        names = dict(re.findall(r"`(\w+) = (.+?)`", text))
        lines = rest.partition("\n\n")[0].splitlines()[2:]
        yield library, names, [tuple(cell.strip() for cell in line[1:-1].split(" | ")) for line in lines]


def with_others(theirs, ours, says):
    """A row, and those for the other methods for which it says "the same for"."""
    yield theirs, ours, says
    for name in re.findall(r"`(\w+)`", says.partition("the same for")[2]):
        method = re.findall(r"(\w+)\(", ours)[-1]
        yield theirs.replace(method, name), ours.replace(method, name), says


ROWS = [
    (library, names, *each) for library, names, rows in tables() for row in rows for each in with_others(*row)
]


def frames(library):
    """Kinds of frames, `df` and `other`. What a row says of a kind is true for it alone."""
    rng = np.random.default_rng(5)
    numbers, big = rng.integers(0, 6, N), rng.integers(2**60, 2**60 + 5, N)
    has, texts = rng.random(N) < 0.7, TEXTS[rng.integers(0, 5, N)].tolist()
    halves = np.where(has, rng.integers(0, 5, N) / 2, np.nan)
    known = [*TEXTS[[1, 2, 0]], "unused"]
    kinds = {
        "": (numbers, [1, 3, 9, 4]),
        "empty": (numbers[:0], [1, 2]),
        "one row": (numbers[:1], [1, numbers[0]]),
    }
    kinds["beyond 2^53"] = numbers, [1, 3, 9, 4]
    values = {"beyond 2^53": big}
    if library == "pandas":
        nulls = pd.array(np.where(numbers == 2, None, numbers).tolist(), "Int64")
        times = pd.Series(pd.to_datetime(numbers * 3600, unit="s", utc=True)).dt.tz_convert("Europe/Paris")
        category = pd.CategoricalDtype(["a", "b", "", "a long text", "unused"])
        kinds["null texts"] = pd.Series(texts, dtype="str").array, pd.array(["b", None, "other"], "str")
        kinds["NaN"] = np.where(numbers == 2, np.nan, numbers), [np.nan, 1, 7]
        kinds["nullable"] = nulls, pd.array([1, None, 7], "Int64")
        kinds["unused categories"] = (
            pd.Categorical(texts, dtype=category),
            pd.Categorical(known, dtype=category),
        )
        kinds["zone"] = times.where(numbers != 2).array, times.where(numbers != 2).drop_duplicates().array[:3]
        kinds["names twice"] = numbers, [1, 3, 9, 4]
        values["nullable"] = pd.array([int(2 * v) if h else None for v, h in zip(halves, has)], "Int64")
        values["null texts"] = values["NaN"] = halves
    else:
        nulls = [None if n == 2 else int(n) for n in numbers]
        zone, enum = pl.Datetime("us", "Europe/Paris"), pl.Enum([*TEXTS[:4], "unused"])
        kinds["null texts"] = texts, ["b", None, "other"]
        kinds["NaN"] = np.where(numbers == 2, np.nan, numbers), [np.nan, 1, 7]
        kinds["beyond 2^53 and null"] = nulls, [1, None, 7]
        kinds["categories"] = pl.Series(texts, dtype=pl.Categorical), pl.Series(known, dtype=pl.Categorical)
        kinds["enum"] = pl.Series(texts, dtype=enum), pl.Series(known, dtype=enum)
        times = (pl.Series(nulls) * 3_600_000_000).cast(zone)
        kinds["zone"] = times, times.drop_nulls().unique()[:2]
        values["beyond 2^53 and null"] = [int(n) if h else None for n, h in zip(big, has)]
        values["null texts"] = [v if h else None for v, h in zip(halves.tolist(), has)]
    for kind, (keys, others) in kinds.items():
        n, of = len(keys), pd.DataFrame if library == "pandas" else pl.DataFrame
        v, j, w = (
            values.get(kind, rng.integers(-9, 9, N))[:n],
            rng.integers(0, 3, n),
            rng.integers(-50, 50, n) / 4,
        )
        df, other = (
            of({"k": keys, "j": j, "v": v, "w": w}),
            of({"k": others, "x": np.arange(len(others)) * 2.0}),
        )
        if library == "pandas":
            df.index = rng.permutation(n) * 3
        if kind == "names twice":
            df = df.assign(d=v, e=w).set_axis(["k", "j", "v", "w", "d", "d"], axis=1)
        yield kind, df, other


def value_of(value):
    """A value of Python, None for null and NaN; floats to 10 digits, as sums may be added in any order."""
    if isinstance(value, (list, tuple)):
        return tuple(map(value_of, value))
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        return None
    if isinstance(value, float):
        value = round(float(f"{value:.10g}"), 14)
        return int(value) if value.is_integer() else value
    return getattr(value, "item", lambda: value)()


def table_of(result):
    """The names, the labels and the rows of a result; None for no names and no labels."""
    if isinstance(result, tuple):  # columns side by side
        names, _, rows = zip(*map(table_of, result))
        return [name for some in names for name in some or [None]], None, [sum(row, ()) for row in zip(*rows)]
    if isinstance(result, dict):
        result = [*result.items()]
    if isinstance(result, list) and result and isinstance(result[0], pl.DataFrame):
        return None, None, [tuple(map(value_of, frame.rows())) for frame in result]
    if isinstance(result, list) and result and isinstance(result[0], tuple):
        return None, None, [tuple(map(value_of, row)) for row in result]
    if isinstance(result, pl.DataFrame):
        return result.columns, None, [tuple(map(value_of, row)) for row in result.rows()]
    if isinstance(result, pl.Series):
        return [result.name or None], None, [(value_of(value),) for value in result.to_list()]
    if isinstance(result, (pd.Series, pd.DataFrame)):
        labels = list(result.index)
        if result.index.names[0] is not None:  # keys
            labels, result = None, result.reset_index()
        frame = pd.DataFrame(result)
        names = ["_".join(filter(None, name)) if isinstance(name, tuple) else name for name in frame.columns]
        columns = [frame.iloc[:, i].tolist() for i in range(len(names))]
        return names, labels, [tuple(map(value_of, row)) for row in zip(*columns)]
    values = result if hasattr(result, "__len__") else [result]
    return None, None, [(value_of(value),) for value in values]


def difference(theirs, ours):
    """What differs: nothing, the order of rows, or something else."""
    if isinstance(theirs, tuple):
        found = {difference(*each) for each in zip(theirs, ours, strict=True)} - {""}
        return " ".join(found)
    (names, labels, rows), (our_names, our_labels, our_rows) = table_of(theirs), table_of(ours)
    named = [n for n in zip(names or [], our_names or []) if None not in n and 0 not in n]
    if any(a != b for a, b in named) or (names and our_names and len(names) != len(our_names)):
        return f"names {names} {our_names}"
    if sorted(map(repr, rows)) != sorted(map(repr, our_rows)):
        return f"values {rows[:5]} {our_rows[:5]}"
    if rows != our_rows:
        return "order"
    return (
        ""
        if labels is None or our_labels is None or labels == our_labels
        else f"labels {labels} {our_labels}"
    )


def evaluated(code, names, given):
    """The value of code of the page."""
    known = {"pd": pd, "pl": pl, "np": np, "roost": roost, **given}
    for name, definition in names.items():
        known[name] = eval(definition, known)
    found = eval(code, known)
    return given["df"].select(found).to_series() if isinstance(found, pl.Expr) else found


@pytest.mark.parametrize("library, names, theirs, ours, says", ROWS, ids=[row[2] for row in ROWS])
def test_row(library, names, theirs, ours, says):
    theirs, (code, *instead) = re.fullmatch("`(.+)`", theirs)[1], re.findall("`(.+?)`", ours)
    if ours.startswith("no "):
        assert not any(hasattr(owner, code) for owner in (roost, roost.GroupBy))
        assert f".{code}(" in theirs
    else:
        instead = [code]
    found = {}
    for kind, df, other in frames(library):
        given = {"df": df, "other": other}
        result = evaluated(theirs, names, given)
        if instead:
            found[kind] = difference(result, evaluated(instead[0], names, given))
    for kind, what in found.items():
        if kind and kind.split(" and ")[0] in says:
            assert what not in ("", "order"), f"{kind}: no difference"
        else:
            assert what == "" or ("order" in says and what == "order"), f"{kind}: {what}"
    assert not re.match("order(;|$)", says) or "order" in found.values()


def test_tables_are_read():
    assert len(ROWS) > 80 and {row[0] for row in ROWS} == {"pandas", "polars"}
    assert difference(pd.Series([1, 2]), [2, 1]) == "order" and difference([1], [2]).startswith("values")
    assert difference(pd.Series([1], [5]), pd.Series([1], [6])).startswith("labels")
    assert difference(pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})).startswith("names")
