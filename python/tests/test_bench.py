"""python -m roost.bench --h2o: the libraries have the same answers, and it notices where one has another."""

import importlib.util
import pathlib

import numpy as np
import pytest
from roost import bench
from roost.bench import h2o

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")
pacsv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

QUESTIONS = [*h2o.GROUPS, *h2o.JOINS]


@pytest.mark.parametrize("options", [[], ["--nulls", "5", "--sorted"], ["--categories"]], ids=str)
def test_answers_are_equal(options, tmp_path, capsys):
    arguments = ["--h2o", "--rows", "1000", "--threads", "2", *options]
    done = bench.main(arguments if options == ["--categories"] else [*arguments, "--data", str(tmp_path)])
    printed = capsys.readouterr().out
    assert done == 0, printed
    for question in QUESTIONS:
        assert printed.count(f"| {question}: ") == 1
    for name, title in h2o.LIBRARIES.items():
        if importlib.util.find_spec(name):
            assert printed.count(f"| {title} ") == 2, printed
        else:
            assert f"{title} is not installed" in printed


@pytest.mark.parametrize("data", [["--categories"], ["--nulls", "5"]], ids=str)
def test_through_a_device(data, capfd):
    """Each question is printed as soon as it is known if rows are made in memory."""
    pytest.importorskip("polars")
    arguments = ["--h2o", "--rows", "3000", "--threads", "2", "--device", "simulated", "--limit", "16MB"]
    done = bench.main([*arguments, "--only", "polars", "--repeats", "1", *data])
    printed = capfd.readouterr().out
    assert done == 0, printed
    for question in QUESTIONS:
        assert printed.count(f"{question}: roost through a GPU: ") == (data == ["--categories"])
        assert printed.count(f"| {question}: ") == 1


def test_made():
    """Rows in memory: the columns that questions name, as the files have them."""
    tables = h2o._made(["q3", "q10"], 20_000)
    assert list(tables) == ["x"] and "v2" not in tables["x"].column_names
    x = tables["x"]
    for name, distinct in (("id1", 100), ("id3", 200), ("id4", 100), ("id6", 200)):
        assert len(x[name].unique()) == distinct
    assert x["id1"].type == pa.dictionary(pa.int8(), pa.string())
    assert pc.min_max(x["id3"].cast("string")).as_py() == {"min": "id0000000001", "max": "id0000000200"}
    assert h2o._made(["q7"], 20_000)["x"]["id3"] == x["id3"]

    tables = h2o._made(["j4", "j5"], 20_000)
    assert list(tables) == ["x", "medium", "big"]
    for name, key in (("medium", "id2"), ("medium", "id5"), ("big", "id3")):
        left, right = (set(tables[n][key].to_pylist()) for n in ("x", name))
        n = tables[name].num_rows
        assert (len(left), len(right), len(left & right)) == (n, n, n * 0.9)
    for table in tables.values():
        assert table["id5"].to_pylist() == [f"id{number}" for number in table["id2"].to_pylist()]


def test_a_wrong_answer_is_an_error(monkeypatch, tmp_path, capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    run = h2o._run

    def wrong(name, *arguments):
        results = run(name, *arguments)
        if name == "pandas":
            file = pathlib.Path(arguments[-1], "pandas q3.npz")
            with np.load(file) as saved:
                values = dict(saved)
            values["v3"][4] *= 1 + 1e-6
            np.savez(file, **values)
        return results

    arguments = ["--h2o", "--rows", "1000", "--questions", "q3,q4", "--only", "pandas,polars"]
    monkeypatch.setattr(h2o, "_run", wrong)
    assert bench.main([*arguments, "--data", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert printed.count("(another answer!)") == 1
    assert "q3: polars and pandas have different answers: 1 of 10 values of v3" in printed


def test_a_library_that_fails_is_an_error(tmp_path, capsys):
    pytest.importorskip("pandas")
    arguments = ["--h2o", "--rows", "1000", "--only", "pandas", "--questions", "q1,j1,j5"]
    arguments += ["--data", str(tmp_path)]
    assert bench.main(arguments) == 0
    file = tmp_path / "J1_1e3_1e3_0_0.parquet"
    pq.write_table(pq.read_table(file).drop_columns(["id3"]), file)  # the questions before it work
    assert bench.main(arguments) == 1
    printed = capsys.readouterr().out
    assert "j5, pandas: KeyError: 'id3'" in printed and printed.count("failed") == 1
    file.write_bytes(b"")
    assert bench.main(arguments) == 1
    assert "pandas ended with 1: pyarrow.lib.ArrowInvalid" in capsys.readouterr().out


TABLE = pa.table(
    {
        "id1": ["id001", "id002", None, "id1", "id001"],
        "id4": pa.array([1, None, 3, 1, 2], pa.int32()),
        "v": [0.5, 1e9, None, -0.0, 1.0],
        "x": [0.1, 0.2, 0.3, None, 0.5],
    }
)


def test_differences_of_many_rows(monkeypatch):
    """Of these only sums are compared, in any order."""
    monkeypatch.setattr(h2o, "_MANY", 4)
    monkeypatch.setattr(h2o, "_PART", 2)
    first = digest(TABLE)
    coded = TABLE.set_column(0, "id1", pa.chunked_array([c.dictionary_encode() for c in TABLE["id1"].chunks]))
    pieces = pa.concat_tables([coded.take([3, 1]), coded.take([4, 0, 2])])
    assert len(first["rows"]) == 2 and h2o.difference(first, digest(pieces)) is None
    for name, row, value in (("id1", 2, "id0"), ("id4", 0, 2), ("v", 0, 1e4), ("x", 1, 0.3)):
        assert h2o.difference(first, digest(put(name, row, value))), name
    assert h2o.difference(first, digest(TABLE.set_column(1, "id4", TABLE["id4"].take([1, 0, 2, 3, 4]))))
    assert h2o.difference(first, digest(TABLE.take([0, 1, 2, 3, 3])))


def put(name, row, value):
    values = TABLE[name].to_pylist()
    values[row] = value
    return TABLE.set_column(TABLE.column_names.index(name), name, pa.array(values, TABLE[name].type))


def digest(table):
    return h2o.digest(table, ["id1", "id4", "x"])


@pytest.mark.parametrize(
    "table, what",
    [
        (TABLE.take([3, 1, 4, 0, 2]), None),
        (
            TABLE.cast(
                pa.schema([("id1", "large_string"), ("id4", "int64"), ("v", "double"), ("x", "double")])
            ),
            None,
        ),
        (put("v", 0, 0.5 + 1e-12), None),
        (put("v", 2, float("nan")), None),
        (TABLE.slice(1), "5 rows and 4"),
        (put("id1", 0, "id01"), "other values of id1"),
        (put("id1", 2, "id0"), "other values of id1"),
        (put("id4", 1, 0), "other values of id4"),
        (put("x", 0, np.nextafter(0.1, 1)), "other values of x"),
        (put("v", 0, 0.5 + 1e-8), "1 of 5 values of v"),
        (put("v", 2, 0.0), "1 of 5 values of v"),
        (TABLE.set_column(2, "v", TABLE["v"].take([1, 0, 2, 3, 4])), "2 of 5 values of v"),
        (
            TABLE.set_column(1, "id4", TABLE["id4"].take([1, 0, 2, 3, 4])),
            "the values of other rows stand together",
        ),
    ],
)
def test_differences(table, what):
    assert h2o.difference(digest(TABLE), digest(table)) == what


def test_a_sum_of_nothing_may_be_zero():
    zero = digest(put("v", 2, 0.0))
    assert h2o.difference(digest(TABLE), zero, ["v"]) is None
    assert h2o.difference(digest(TABLE), zero, ["x"]) == "1 of 5 values of v"


def test_data(tmp_path):
    """What the tables hold, and that files are read if they are there, as CSV, too."""
    made = h2o._files(tmp_path, False, 20_000, 5, False)["x"]
    assert made.name == "G1_2e4_1e2_5_0.parquet"
    x = pq.read_table(made)
    assert [x[f"v{i}"].null_count for i in (1, 2, 3)] == [1000] * 3
    for name, distinct in (
        ("id1", 100),
        ("id2", 100),
        ("id3", 200),
        ("id4", 100),
        ("id5", 100),
        ("id6", 200),
    ):
        assert pc.count_distinct(x[name]).as_py() == distinct * 0.95
        assert 0 < x[name].null_count < 3000
    in_order = pq.read_table(h2o._files(tmp_path, False, 20_000, 5, True)["x"])
    keys = [f"id{i}" for i in range(1, 7)]
    assert in_order.select(keys) == x.sort_by([(k, "ascending") for k in keys]).select(keys)

    folder = tmp_path / "csv"
    folder.mkdir()
    pacsv.write_csv(x, folder / "G1_2e4_1e2_5_0.csv")
    assert pq.read_table(h2o._files(folder, False, 20_000, 5, False)["x"]) == x
    time = made.stat().st_mtime_ns
    assert h2o._files(tmp_path, False, 20_000, 5, False)["x"].stat().st_mtime_ns == time

    tables = {n: pq.read_table(f) for n, f in h2o._files(tmp_path, True, 20_000, 0, False).items()}
    assert {name: table.num_rows for name, table in tables.items()} == {
        "x": 20_000,
        "small": 10,
        "medium": 20,
        "big": 20_000,
    }
    for name, key in (("small", "id1"), ("medium", "id2"), ("big", "id3")):
        left, right = (set(tables[n][key].to_pylist()) for n in ("x", name))
        n = tables[name].num_rows
        assert (len(left), len(right), len(left & right)) == (n, n, n * 0.9)
    for table in tables.values():
        assert "id6" not in table.column_names or table["id6"][5].as_py() == f"id{table['id3'][5].as_py()}"
    (folder / "J1_2e4_NA_0_0.csv").write_text("id1\n")
    with pytest.raises(SystemExit, match="only some files of the joins; J1_2e4_1e1_0_0.csv"):
        h2o._files(folder, True, 20_000, 0, False)


@pytest.mark.parametrize(
    "options, message",
    [
        (["--questions", "q1,j6"], "no question j6"),
        (["--only", "roost,spark"], "no library spark"),
        (["--nulls", "100"], "less than 100 percent"),
    ],
)
def test_wrong_questions(options, message):
    with pytest.raises(SystemExit, match=message):
        bench.main(["--h2o", *options])


def test_frames(capsys, monkeypatch):
    """The libraries have the same answers, and it notices another one."""
    for library in ("pandas", "polars"):
        pytest.importorskip(library)
    from roost.bench import frames

    monkeypatch.setattr(frames, "MOST_SECONDS", 0)
    assert bench.main(["--frames", "--rows", "1000", "20"]) == 0
    printed = capsys.readouterr().out
    assert "another" not in printed and printed.count("\n| ") == 2 * 13
    monkeypatch.setattr(frames.roost, "unique", lambda x: x[:1])
    assert bench.main(["--frames", "--rows", "1000"]) == 1
    assert "| unique |" in [line for line in capsys.readouterr().out.splitlines() if "another" in line][0]


@pytest.mark.parametrize(
    "options, message",
    [
        (["--rows", "0"], "--rows: '0'; give a whole number from 1 on"),
        (["--copies", "-3"], "--copies: '-3'; give a whole number from 1 on"),
        (["--threads", "-1"], "--threads: '-1'; give a whole number from 0 on"),
        (["--repeats", "few"], "--repeats: 'few'; give a whole number from 1 on"),
        (["--only", "polars"], "--only, --categories and --limit are options of --h2o"),
        (["--limit", "1GB"], "--only, --categories and --limit are options of --h2o"),
        (["--h2o", "--limit", "1GB"], "--limit is an option of --device cuda, or simulated; give both"),
        (["--h2o", "--device", "simulated"], "--limit is an option of --device cuda, or simulated; give"),
        (["--h2o", "--categories", "--sorted"], "leave out --data, --nulls and --sorted"),
        (["--csv", "x.csv"], "--csv is an option of --device cuda"),
        (["--rows", "10", "20"], "several numbers of --rows are for --frames and --device cuda; give one"),
    ],
)
def test_wrong_options(options, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        bench.main(options)
    assert message in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("how", bench.SPREADS)
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_keys_of_each_spread_are_different_and_fit(how, dtype):
    for most in (1, 2, 70_000, 1_000_000):
        keys = bench.spread(np.arange(most, dtype=np.int64), how, dtype, most)
        assert len(np.unique(keys.astype(dtype))) == most
        assert (keys.astype(dtype) == keys).all()
    if how == "random":
        assert keys.min() < 0.99 * np.iinfo(dtype).min and keys.max() > 0.99 * np.iinfo(dtype).max


@pytest.mark.parametrize("how", bench.SPREADS)
def test_libraries_agree_on_keys_of_each_spread(how, capsys):
    for dtype in ("int32", "int64"):
        arguments = ["--rows", "20000", "--copies", "4", "--threads", "2", "--repeats", "1"]
        assert bench.main([*arguments, "--keys", how, "--dtype", dtype]) == 0
        assert f"{dtype}, {how} keys, 4 copies" in capsys.readouterr().out
