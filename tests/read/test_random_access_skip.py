"""Records by number of damaged files: those that can be found have numbers, and tables lack the damaged ones."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import blobs, example, flip, framed, int64s, written

pytestmark = pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")

ROWS = [example(x=int64s(i), t=blobs(b"t" * 20)) for i in range(200)]
SIZE = len(framed(ROWS[-1]))


def at(record: int) -> int:
    return len(framed(*ROWS[:record]))


@given(seed=st.integers(0, 10**6))
def test_records_are_those_of_a_read_that_skips(engine: str, tmp_path_factory: Any, seed: int) -> None:
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("random")
    paths = [written(folder / name, ROWS[: rng.randrange(1, 200)]) for name in "abc"]
    for path in paths:
        size = path.stat().st_size
        flip(path, *(rng.randrange(size) for _ in range(rng.randrange(3))))
    schema = {"x": "int64"}
    expected = tfr.read_table(paths, schema=schema, on_error="skip")
    framed_only = tfr.count(paths, on_error="skip")
    with tfr.open_random(paths, schema=schema, on_error="skip") as records:
        assert len(records) == framed_only
        table = records[:]
        assert table.equals(expected)
        skipped = list(records.report.skipped)
        assert records.report.records == expected.num_rows
        assert records[:].equals(expected)
        assert list(records.report.skipped) == skipped  # each counts once
        with tfr.open_reader(paths, schema=schema, on_error="skip") as reader:
            reader.read_all()
        assert skipped == list(reader.report.skipped)


def test_one_record_alone_is_an_error(engine: str, tmp_path: Path) -> None:
    path = flip(written(tmp_path / "a", ROWS), at(3) + 30)
    with tfr.open_random(path, on_error="skip") as records:
        assert records[[2, 3, 4, 3]]["x"].to_pylist() == [2, 4]
        assert records.report.skipped.total == 1
        (region,) = records.report.skipped
        assert (region.begin, region.end, region.records_before) == (at(3), at(4), 3)
        with pytest.raises(tfr.errors.CorruptRecordError, match="record 3 at byte"):
            records[3]
        assert records[4]["x"] == 4
    with tfr.open_random(path) as records, pytest.raises(tfr.errors.CorruptRecordError, match="record 3 at byte"):
        records[[2, 3]]


def test_numbers_are_those_of_the_records_that_can_be_found(engine: str, tmp_path: Path) -> None:
    path = flip(written(tmp_path / "a", ROWS), at(3))
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.open_random(path)
    with pytest.warns(tfr.errors.DamagedDataWarning, match="1 damaged region"):
        records = tfr.open_random(path, on_error="skip")
    assert len(records) == 199
    assert [records[number]["x"] for number in (2, 3, -1)] == [2, 4, 199]
    assert records[[0, 3, 198]]["x"].to_pylist() == [0, 4, 199]
    again = pickle.loads(pickle.dumps(records))
    assert again[[0, 3, 198]]["x"].to_pylist() == [0, 4, 199]
    assert again.report.skipped.total == 1
    records.close()
    content = path.read_bytes()
    path.write_bytes(content[: at(50) + 5])  # truncated, too
    with tfr.open_random(path, on_error="skip") as records:
        numbers = records[:]["x"].to_pylist()
    assert numbers == tfr.read_table(path, on_error="skip")["x"].to_pylist()


def test_an_index_has_the_places_of_all_records(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(100)}, path, write_index=True, embed_schema=False)
    size = path.stat().st_size
    stamp = (tmp_path / "a.tfrecord.index").stat()
    flip(path, size // 2)
    os.utime(tmp_path / "a.tfrecord.index", (stamp.st_atime + 10, stamp.st_mtime + 10))
    with tfr.open_random(path, on_error="skip") as records:
        assert len(records) == 100
        assert records[:].num_rows == 99


def test_values_that_do_not_fit(engine: str, tmp_path: Path) -> None:
    payloads = [*ROWS[:5], example(t=blobs(b"no x")), *ROWS[5:9], b"\xff", *ROWS[9:20]]
    path = written(tmp_path / "a", payloads)
    schema = {"x": tfr.scalar("int64", required=True)}
    with tfr.open_random(path, schema=schema, on_error="skip") as records:
        assert records[:]["x"].to_pylist() == list(range(20))
        assert records[[5]].num_rows == records[[10, 5]].num_rows == 0
        assert [region.records_before for region in records.report.skipped] == [5, 10]
    vectors = written(tmp_path / "b", [example(v=int64s(1, 2)), example(v=int64s(1)), example(v=int64s(3, 4))])
    with tfr.open_random(vectors, schema={"v": tfr.tensor("int64", (2,))}, on_error="skip") as records:
        assert records[:].num_rows == 2


def test_a_function_decides(engine: str, tmp_path: Path) -> None:
    path = flip(written(tmp_path / "a", ROWS), at(3) + 30, at(100), at(150) + 30)
    asked: list[int | None] = []

    def decide(error: tfr.TFRecordError) -> bool:
        asked.append(error.record)
        return error.record != 150

    with tfr.open_random(path, on_error=decide) as records:
        assert asked == [100]
        assert records[:110].num_rows == 109
        assert records[:110].num_rows == 109
        assert asked == [100, 3]
        with pytest.raises(tfr.errors.CorruptRecordError, match="record 150 at byte"):
            records[:]
    with pytest.raises(tfr.errors.CorruptRecordError, match="record 100 at byte"):
        tfr.open_random(path, on_error=lambda error: False)
    with pytest.raises(ValueError, match="on_error='stop'"):
        tfr.open_random(path, on_error="stop")
