"""The indexes of files in read-only folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tfrecord_io as tfr
from command_runs import run  # noqa: F401
from tfrecord_io.store.read import index_cache


@pytest.fixture
def read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two files, to which nothing more is written; the cache is next to it."""
    folder = tmp_path / "input"
    folder.mkdir()
    for name, rows in (("a", 3), ("b", 4)):
        tfr.write_tfrecord({"x": np.arange(rows)}, folder / f"{name}.tfrec", embed_schema=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(index_cache, "_is_writable", lambda place: not place.startswith(str(folder)))
    return folder


def files_below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_the_number_of_batches_is_known_from_an_index_in_the_cache(
    run,  # noqa: F811
    read_only: Path,
    tmp_path: Path,
) -> None:
    batches = tfr.dataset(read_only).iter_arrays(batch_size=2)
    with pytest.raises(TypeError, match="make one with `tfr index`"):
        len(batches)
    shown = run("index", read_only)
    assert shown.exit_code == 0, shown.output
    place = f"tfrecord_io/indexes{read_only}"
    assert files_below(tmp_path / "cache") == [f"{place}/a.tfrec.index", f"{place}/b.tfrec.index"]
    assert f"{tmp_path}/cache/{place}/a.tfrec.index" in shown.stdout
    assert files_below(read_only) == ["a.tfrec", "b.tfrec"]
    assert len(tfr.dataset(read_only).iter_arrays(batch_size=2)) == 4
    assert run("index", "--check", read_only).exit_code == 0


def test_a_column_index_in_the_cache_answers_filters(read_only: Path) -> None:
    (index, _) = tfr.build_index(read_only, columns=["x"])
    assert index.index is not None
    assert "/cache/" in index.index
    with tfr.open_random(read_only) as records:
        assert records.select([("x", "==", 3)]).numbers.tolist() == [6]
    plans = tfr.dataset(read_only, filters="x == 3").explain().files
    assert [plan.read for plan in plans] == ["left out", "records"]


def test_a_stale_index_in_the_cache_is_not_used(read_only: Path) -> None:
    tfr.build_index(read_only, columns=["x"])
    with open(read_only / "a.tfrec", "ab") as file:
        file.write((read_only / "b.tfrec").read_bytes())
    with pytest.warns(tfr.errors.StaleIndexWarning, match="cache"), tfr.open_random(read_only) as records:
        assert records.select([("x", "==", 3)]).numbers.tolist() == [6, 10]


def test_an_index_beside_the_file_comes_first(read_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.build_index(read_only / "a.tfrec", columns=["x"])
    monkeypatch.undo()
    (index,) = tfr.build_index(read_only / "a.tfrec", columns=["x"])
    assert index.index == str(read_only / "a.tfrec.column_index")


@pytest.mark.parametrize("path", ["/input/a.tfrec", "a.tfrec"])
def test_paths_of_the_cache_are_those_of_the_files(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert index_cache.cached_path(path) == f"/cache/tfrecord_io/indexes{Path(path).absolute()}"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert index_cache.cached_path("/a").startswith("/home/ada/.cache/tfrecord_io/")
