"""Each module is held by tests, and `near.py` finds them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location("near", Path(__file__).parent / "near.py")
assert spec is not None
assert spec.loader is not None
near = importlib.util.module_from_spec(spec)
spec.loader.exec_module(near)


def test_each_module_is_held_by_tests() -> None:
    if not near.PACKAGE.is_dir():
        pytest.skip("the package is installed elsewhere")
    modules = [path for path in near.PACKAGE.rglob("*.py") if path.stat().st_size and path.name != "__main__.py"]
    assert [path for path in modules if not near.near(path)] == []  # else add a test, and name it after the module


def test_a_module_without_tests_of_its_name_states_its_tests() -> None:
    """In its docstring, as ``Tests: tests/read/test_scan.py.``; those of public modules are for users."""
    if not near.PACKAGE.is_dir():
        pytest.skip("the package is installed elsewhere")
    modules = [path for path in near.PACKAGE.glob("*/**/*.py") if path.name not in ("__init__.py", "__main__.py")]
    assert [path for path in modules if not near.named_after(path) and not near.stated(path)] == []


def test_tests_that_use_a_public_name(capsys: pytest.CaptureFixture[str]) -> None:
    if not near.PACKAGE.is_dir():
        pytest.skip("the package is installed elsewhere")
    near.main(["write/rearranging/dedupe"])
    assert "tests/write/rearranging/test_split_assignment.py" in capsys.readouterr().out.split()
    assert near.public_homes()["io.parse_tensor"] == "tfrecord_io.bytes.format.serialized_tensor"
    assert len(near.users()["tfrecord_io.apps.api"]) <= near.MOST_USES  # of `infer_schema`: most tests use the others


def test_tests_named_after_a_module_and_tests_that_import_it() -> None:
    if not near.PACKAGE.is_dir():
        pytest.skip("the package is installed elsewhere")
    found = near.near(near.PACKAGE / "read/reader.py")
    assert "test_reader.py" in {path.name for path in found}
    assert all("reader" in path.name or "tfrecord_io.read.reader" in near.imported(path) for path in found)


def test_tests_that_a_docstring_names_exist_and_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    if not near.PACKAGE.is_dir():
        pytest.skip("the package is installed elsewhere")
    for module in near.PACKAGE.rglob("*.py"):
        assert [path for path in near.stated(module) if not path.is_file()] == [], module
    near.main(["read/index_search"])
    laws = ["tests/laws/test_indexed_filter_laws.py", "tests/laws/test_indexed_values_laws.py"]
    assert capsys.readouterr().out.split()[:2] == laws


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(SystemExit, match="no module"):
        near.main(["read/nothing"])
