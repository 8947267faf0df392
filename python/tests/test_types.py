"""What the stubs say is true, for type checkers and at run time, and says more than Any."""

import ast
import importlib.util
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys
import typing

import numpy as np
import numpy.typing as npt
import pytest
import roost

HERE, PACKAGE = pathlib.Path(__file__).parent, pathlib.Path(roost.__file__).parent
TORCH = importlib.util.find_spec("torch") is not None
TYPED = [HERE / name for name in ("typed_calls.py", *(["typed_torch.py"] if TORCH else []))]
# README.md shows a part of one of them.
NOT_TYPED = {
    "backbone.py": "roost.spconv has no stubs",
    "coming_from_pandas.py": "pandas' stubs take any name of a frame for a column, .roost too",
    "frames.py": "pyarrow's stubs take no dict of lists with None",
    "ranks.py": "for torch, any name of a module is a tensor or a module, len() has neither",
    "unet.py": "pyright takes the class that is a default for the only one",
}
EXAMPLES = sorted((HERE.parents[1] / "examples").glob("*.py"))
EXAMPLES = [file for file in EXAMPLES if file.name not in NOT_TYPED]
LACKING = [name for name in ("pandas", "polars", "pyarrow") if not importlib.util.find_spec(name)]

UNKNOWN = {
    "from_arrow": "an array of numpy, or of the library that is there for the device of the column",
    "_Mapping.get": "one value, of Python or an array, or what is passed",
    "_Mapping.__getitem__": "a value for a key, values for several",
    "Index.__getitem__": "a key as Python has it",
    "Sequential.forward": "what the last module returns",
    "EmbeddingBagCollection.forward": "a KeyedTensor of TorchRec, or what is like it",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With the package alone: checkers say what is wrong in it, as they do not in installed packages."""
    folder = tmp_path_factory.mktemp("types")
    (folder / "roost").symlink_to(PACKAGE)
    return folder


def lines_of(folder, *command, env=()):
    """What a checker prints about stubs, examples and calls."""
    run = subprocess.run(command, cwd=folder, env=os.environ | dict(env), text=True, capture_output=True)
    assert run.returncode in (0, 1) and not run.stderr, run.stdout + run.stderr
    return run.stdout


# What examples leave out, and what they do with other libraries.
LENIENT = "--allow-untyped-defs --allow-untyped-calls --check-untyped-defs --allow-redefinition".split()
LENIENT += [
    f"--disable-error-code={code}"
    for code in "import-not-found import-untyped union-attr assignment return-value misc type-var".split()
]


@pytest.mark.skipif(LACKING != [], reason=f"needs {', '.join(LACKING)}")
def test_mypy(folder):
    pytest.importorskip("mypy")
    stubs = [folder / "roost" / file.relative_to(PACKAGE) for file in stubs_of()]
    options = "--strict", "--no-error-summary", "--disable-error-code=overload-overlap", *LENIENT
    command = (sys.executable, "-m", "mypy", *options, *stubs, *TYPED, *EXAMPLES)
    found = lines_of(folder, *command, env={"MYPYPATH": str(folder)}.items())
    wrong = [
        line
        for line in found.splitlines()
        if not re.match(r"roost/\S*\.py:|.*: note:|.*\"None\" has no", line)
    ]
    assert wrong == []


@pytest.mark.skipif(LACKING != [], reason=f"needs {', '.join(LACKING)}")
def test_pyright(folder):
    pytest.importorskip("pyright")
    rules = dict.fromkeys(
        ("reportMissingImports", "reportMissingModuleSource", "reportOptionalMemberAccess"), False
    )
    files = [os.path.relpath(file, folder) for file in (*TYPED, *EXAMPLES)]
    config = {"include": files, "typeCheckingMode": "basic"} | rules
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = (sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson")
    found = json.loads(lines_of(folder, *command))
    assert found["summary"]["filesAnalyzed"] == len(files)
    wrong = found["generalDiagnostics"]
    assert [(d["file"], d["range"]["start"]["line"] + 1, d["message"]) for d in wrong] == []


def is_of(value, kind, names):
    """Whether a value is of a type, as far as values know theirs. Names without parameters are texts."""
    if isinstance(kind, str):
        kind = eval(kind.partition("[")[0], names)
    if kind is typing.Any:
        return True
    origin, parts = typing.get_origin(kind) or kind, typing.get_args(kind)
    if not isinstance(value, origin):
        return False
    if origin is np.ndarray:
        scalar = typing.get_args(parts[1])[0]
        return scalar is typing.Any or value.dtype == scalar
    if origin is tuple and parts[-1] is not ...:
        return len(value) == len(parts) and all(is_of(*each, names) for each in zip(value, parts))
    return origin is not list or all(is_of(each, parts[0], names) for each in value)


@pytest.mark.skipif(LACKING != [], reason=f"needs {', '.join(LACKING)}")
@pytest.mark.parametrize("file", TYPED, ids=lambda file: file.stem)
def test_types_at_run_time(file, monkeypatch):
    checked = []

    def assert_type(value, kind):
        names = sys._getframe(1).f_globals
        line = f"{file.name}:{sys._getframe(1).f_lineno}"
        assert is_of(value, kind, names), f"{line}: {kind}, but it is {type(value)}: {value!r}"
        checked.append(line)

    monkeypatch.setattr(typing, "assert_type", assert_type)
    runpy.run_path(str(file))
    assert len(checked) > 30


def test_is_of():
    """It tells types apart."""
    numbers = np.arange(2)
    assert is_of((numbers, 1), tuple[npt.NDArray[np.int64], "int[str]"], {})
    for value, kind in (
        (numbers, npt.NDArray[np.int32]),
        ((numbers,), tuple[npt.NDArray[np.int64], int]),
        ((numbers, 1.5), tuple[npt.NDArray[np.int64], "int[str]"]),
        ([1, "a"], list[int]),
        (numbers, list[int]),
    ):
        assert not is_of(value, kind, {})


def stubs_of():
    return [file for file in sorted(PACKAGE.rglob("*.pyi")) if TORCH or "torch" not in file.read_text()]


def results_of(file):
    """Names and results of all functions and methods of a stub that users can call."""
    tree = ast.parse(file.read_text())
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef)):
            of = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and "_Unknown" not in ast.unparse(each.args):
                    yield of + each.name, each.returns


def test_results_are_known():
    """No result is Any, or another name for it, unless the list says why."""
    unknown, count = set(), 0
    for file in sorted(PACKAGE.rglob("*.pyi")):
        if file.name == "_types.pyi":  # of what arguments have
            continue
        for name, result in results_of(file):
            count += 1
            if result is None or ast.unparse(result) in ("Any", "_Array", "_Keys", "object"):
                unknown.add(name)
    assert unknown == set(UNKNOWN) and count > 300
