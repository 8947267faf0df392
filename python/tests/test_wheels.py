"""The module for GPUs in a package of its own, as the wheels roost-cu13 and roost-cu12 bring it. A stand-in
takes its place, so that no GPU is needed."""

import importlib.util
import sys

import pytest
import roost
from roost import _gpu
from roost._arrays import libraries

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("roost._cuda") is not None, reason="the module lies beside the package"
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Makes a package with a stand-in for the module: package(name, version)."""
    names = "roost_cu12", "roost_cu13"
    known = {*names, *(f"{name}._cuda" for name in names)}
    if known & set(sys.modules) or any(map(importlib.util.find_spec, names)):
        pytest.skip("a package with the module is installed")
    monkeypatch.syspath_prepend(tmp_path)

    def make(name, version, module="def devices():\n    return 0\n"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"__version__ = {version!r}\n")
        if module is not None:
            (tmp_path / name / "_cuda.py").write_text(module)
        importlib.invalidate_caches()

    yield make
    for name in known:
        sys.modules.pop(name, None)


def test_there_is_none(package):
    assert _gpu.loaded() is None
    with pytest.raises(ImportError, match=r"pip install 'roost\[cu13\]'"):
        _gpu.module()
    assert roost.info()["cuda"] is False


@pytest.mark.parametrize("name", ["roost_cu12", "roost_cu13"])
def test_it_is_taken_from_its_package(package, name):
    package(name, roost.__version__)
    assert _gpu.module().__name__ == f"{name}._cuda"
    assert _gpu.loaded() is _gpu.module()
    assert roost.info()["cuda"] is True


def test_it_is_of_another_version(package):
    package("roost_cu12", "0.0.1")
    advice = rf"roost_cu12, is 0.0.1; pip install 'roost\[cu12\]=={roost.__version__}'"
    with pytest.raises(ImportError, match=advice):
        _gpu.module()
    with pytest.raises(NotImplementedError, match="an array on a GPU, but roost is .* to the CPU$"):
        libraries.library_of(("a test", 0), _gpu.module)


def test_it_lacks_what_it_needs(package):
    package("roost_cu13", roost.__version__, "import no_such_module\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        _gpu.module()


def test_it_is_half_installed(package):
    package("roost_cu13", roost.__version__, None)
    with pytest.raises(ImportError, match="no module for GPUs"):
        _gpu.module()
