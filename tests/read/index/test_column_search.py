"""A column index finds records only in the file that it was written for."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from limited import limited, set_limits
from reading_modes import matching_records_only
from tfrecord_io.read.index import column_index, column_search

SCHEMA = pa.schema([("label", pa.int64()), ("x", pa.int64()), ("pad", pa.binary())])
THREES = [("label", "==", 3)]


def write(path: Path, shift: int = 0) -> Path:
    """A file in which records of the same number have the same size, whatever the `shift` of their labels."""
    rows = {"label": (np.arange(1000) + shift) % 100, "x": np.arange(1000), "pad": [b"p" * 3000] * 1000}
    tfr.write_tfrecord(rows, path, embed_schema=False, mode="overwrite")
    return path


def selected(path: Path) -> pa.Table:
    with tfr.open_random(path, schema=SCHEMA) as records:
        return records.select(THREES).to_table()


READS: list[Callable[[Path], pa.Table]] = [lambda path: tfr.read_table(path, filters=THREES, schema=SCHEMA), selected]


@pytest.fixture(params=[64 << 20, 500_000], ids=["one group", "several groups"])
def path(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file with a column index, whose rows are in one group or in several."""
    path = write(tmp_path / "a.tfrecord")
    time.sleep(0.06)  # of a file that was just written, an index states no identity
    monkeypatch.setattr(column_index, "_GROUP_ROWS", 300)
    with limited(batch_bytes=request.param):
        tfr.build_index(path, columns=["label"])
    return path


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("seconds", [-1000, 0, 1000])
@pytest.mark.parametrize("shift", [50, 1])
def test_another_version_of_the_file(
    path: Path, tmp_path: Path, read: Callable[[Path], pa.Table], seconds: int, shift: int
) -> None:
    other = write(tmp_path / "b.tfrecord", shift)
    time = path.stat().st_mtime + seconds
    os.utime(other, (time, time))
    other.replace(path)
    Path(f"{path}.column_index").touch()
    with pytest.warns(tfr.errors.StaleIndexWarning, match=r"checksum.*; rewrite it .*the index is not used") as caught:
        assert set(read(path)["label"].to_pylist()) == {3}
    assert len(caught) == 1
    tfr.build_index(path, columns=["label"])
    assert set(read(path)["label"].to_pylist()) == {3}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("read", READS)
def test_a_copy_with_its_index(path: Path, tmp_path: Path, read: Callable[[Path], pa.Table]) -> None:
    index, other = Path(f"{path}.column_index"), tmp_path / "other"
    other.mkdir()
    shutil.copy2(path, other)
    shutil.copy2(index, other)
    os.utime(other / index.name, (0, 0))  # the index may be of any age
    assert len(read(other / path.name)) == 10
    time = path.stat().st_mtime_ns + 10**9
    os.utime(other / path.name, ns=(time, time))  # so may the file
    with matching_records_only() as used:
        assert len(read(other / path.name)) == 10
    assert used or read is selected


def test_a_file_that_is_replaced_after_its_index_was_read(path: Path) -> None:
    with tfr.open_reader(path, filters=THREES, schema=SCHEMA) as reader:
        write(path, 50)
        with pytest.raises(tfr.errors.ReplacedError, match="was replaced while it was read"):
            reader.read_all()


def test_a_file_that_is_replaced_and_indexed_after_it_was_opened(path: Path) -> None:
    with tfr.open_random(path, schema=SCHEMA) as records:
        write(path, 50)
        tfr.build_index(path, columns=["label"])
        assert records.select(THREES).numbers.tolist() == list(range(3, 1000, 100))  # of the file that is open


@pytest.mark.parametrize("read", READS)
def test_an_index_that_is_removed_after_it_was_listed(
    path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path], pa.Table]
) -> None:
    find = column_search.find_sidecars

    def removing(*arguments: Any) -> Any:
        found = find(*arguments)
        Path(f"{path}.column_index").unlink()
        return found

    monkeypatch.setattr(column_search, "find_sidecars", removing)
    assert len(read(path)) == 10


@pytest.mark.parametrize("only", [False, True])
def test_a_part_that_cannot_be_applied_to_a_record_that_is_not_read(path: Path, only: bool) -> None:
    fails = pc.divide(pc.scalar(10), pc.field("label") - 50) < 100
    condition = fails if only else (pc.field("label") < 2) & fails
    with tfr.open_reader(path, filters=condition, schema=SCHEMA, limit=2, batch_size=20) as reader:
        assert reader.read_all()["x"].to_pylist() == [0, 1]
    if not only:
        assert len(tfr.read_table(path, filters=condition, schema=SCHEMA)) == 20


def test_pieces_that_are_read_as_fast_without_the_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = tfr.dataset(path, schema=SCHEMA).filter(THREES)

    def rows(parts: int) -> list[int]:
        return [x for piece in dataset.pieces(parts) for x in piece.read()["x"].to_pylist()]

    with matching_records_only() as used:
        assert rows(3) == list(range(3, 1000, 100))
        assert len(used) == 3
        set_limits(monkeypatch, index_row_bytes=(1e9, 1e9))
        assert rows(3) == list(range(3, 1000, 100))  # the index has as many rows
        monkeypatch.setattr(column_search, "open_columns", None)
        set_limits(monkeypatch, least_piece_bytes=2_000_000)
        assert rows(3) == list(range(3, 1000, 100))  # they are small
        assert len(used) == 3


def test_pieces_of_a_file_without_an_index_do_not_look_for_one(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(f"{path}.column_index").unlink()
    with matching_records_only() as used:
        pieces = tfr.dataset(path, schema=SCHEMA).filter(THREES).pieces(3)
        monkeypatch.setattr(column_search, "find_sidecars", None)
        for parts in (pieces, pickle.loads(pickle.dumps(pieces))):
            assert [x for piece in parts for x in piece.read()["x"].to_pylist()] == list(range(3, 1000, 100))
        assert not used


def test_a_piece_of_a_file_that_was_replaced(path: Path) -> None:
    with matching_records_only():
        pieces = tfr.dataset(path, schema=SCHEMA).filter(THREES).pieces(3)
        rows = {"label": [1] * 500, "x": [2] * 500, "pad": [b"p" * 5000] * 500}
        tfr.write_tfrecord(rows, path, embed_schema=False)
        tfr.build_index(path, columns=["label"])
        with pytest.raises(tfr.errors.CorruptRecordError):
            pieces[1].read()
