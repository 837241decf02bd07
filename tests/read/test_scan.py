"""A scan is a value: pickled, opened again or split, it reads the same rows under the same schema."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from in_processes import batches_of, in_other_process, record_of, table_of_scan
from records import blobs, example, framed, int64s, written
from tfrecord_io.base import ReadOptions
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.scan_rows import ScanRows

ROWS = {"n": [1, 2, 3], "word": ["a", None, "c"]}


def scan_of(path: Any, **keywords: Any) -> Scan:
    return CallSource(path).scan(ReadOptions.from_keywords(keywords))


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two files; the embedded schema of the second has one more column."""
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"n": [3], "extra": ["x"]}, tmp_path / "b.tfrecord")
    return [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_scan_refuses_a_later_file_with_more_columns(two: list[Path], threads: int) -> None:
    first = scan_of(two[:1], threads=threads)
    later = pickle.loads(pickle.dumps(first)).with_sources(scan_of(two[1:]).sources)
    with ScanRows(later).open() as reader, pytest.raises(tfr.errors.SchemaError, match="has more columns") as caught:
        reader.read_all()
    assert (caught.value.path, caught.value.record) == (str(two[1]), 0)
    with tfr.open_reader(two, schema=first.schema) as reader:  # a selection by the caller
        assert reader.read_all().column_names == ["n"]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"schema": "infer"},
        {"schema": {"n": "int32"}},
        {"columns": ["word"]},
        {"record_type": "bytes"},
        {"sample": 1},
    ],
)
def test_a_pickled_scan_reads_the_same(tmp_path: Path, keywords: dict[str, Any], threads: int) -> None:
    for number in range(3):
        (tmp_path / f"label={number}").mkdir()
        tfr.write_tfrecord(ROWS, tmp_path / f"label={number}" / "part.tfrecord")
    keywords = {**keywords, "threads": threads, "include_file_paths": "path"}
    scan = scan_of(tmp_path, **keywords)
    copy = pickle.loads(pickle.dumps(scan))
    assert copy.schema.equals(scan.schema, check_metadata=True)
    assert copy.settings.plan._replace(select=None) == scan.settings.plan._replace(select=None)
    expected = tfr.read_table(tfr.dataset(tmp_path, **{**keywords, "sample": "all"}))
    for opened in (scan, copy, scan):
        with ScanRows(opened).open() as reader:
            assert reader.read_all().to_pylist() == expected.to_pylist()


def test_a_scan_is_opened_in_a_spawned_process(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(n=int64s(n), b=blobs(b"x")) for n in range(20)])
    scan = scan_of(path)
    assert in_other_process(table_of_scan, pickle.dumps(scan)) == tfr.read_table(path).to_pylist()


def test_a_pickled_scan_filters_by_a_column_that_its_schema_does_not_have(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3], "y": [1, 2, 3]}, tmp_path / "a.tfrecord")
    opened = tfr.dataset(tmp_path / "a.tfrecord", schema={"x": "int64"}).filter([("y", ">", 1)])
    copy = pickle.loads(pickle.dumps(opened))
    assert copy.to_table().to_pydict() == opened.to_table().to_pydict() == {"x": [2, 3]}


def test_a_scan_of_a_thousand_files_pickles_small(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for number in range(1000):
        values = [example(n=int64s(*range(1 + number % 50)), name=blobs(b"x" * number))]
        written(tmp_path / "data" / f"train-{number:05d}-of-01000.tfrecord", values)
    tfr.write_tfrecord({"n": list(range(2000))}, f"{tmp_path}/own/", shards=1000, threads=1)
    for folder in ("data", "own"):
        scan = scan_of(tmp_path / folder)
        pickled = pickle.dumps(scan)
        checksums = 4 * 1000 if folder == "own" else 0  # of the manifest
        assert len(pickled) <= 3000 + checksums, folder
        copy = pickle.loads(pickled)
        assert [source.path for source in copy.sources] == [source.path for source in scan.sources]
        assert [source.size for source in copy.sources] == [source.size for source in scan.sources]
    with ScanRows(copy).open() as reader:
        assert reader.read_all()["n"].to_pylist() == list(range(2000))


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 100])
def test_pieces_are_the_whole_in_order(tmp_path: Path, n: int, suffix: str) -> None:
    table = pa.table({"n": pa.array(range(300), pa.int16()), "text": ["x" * (row % 40) for row in range(300)]})
    paths = [tmp_path / f"{at}.tfrecord{suffix}" for at in range(3)]
    for at, path in enumerate(paths):
        tfr.write_tfrecord(table.slice(at * 100, 100), path)
    pieces = scan_of(paths).split(n)
    assert 1 <= len(pieces) <= n
    if not suffix:
        assert len(pieces) == n
    assert pa.concat_tables([ScanRows(pickle.loads(pickle.dumps(piece))).read() for piece in pieces]) == table


def test_a_damaged_record_in_a_piece_has_its_offset_in_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(n=int64s(n)) for n in range(100)])
    pieces = scan_of(path, schema={"n": "int64"}).split(4)
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    offsets = []
    for piece in pieces:
        try:
            ScanRows(piece).read()
        except tfr.errors.CorruptRecordError as error:
            offsets.append(error.offset)
    assert len(offsets) == 1
    assert offsets[0] is not None
    assert offsets[0] > len(content) - 40


def test_pieces_of_a_limited_read_are_refused(two: list[Path]) -> None:
    with pytest.raises(ValueError, match="cannot be split"):
        scan_of(two[:1], limit=1).split(2)
    with pytest.raises(ValueError, match="at least 1"):
        scan_of(two[:1]).split(0)


def test_over_other_columns_keeps_the_types(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.tfrecord", [example(a=int64s(1, 2), b=blobs(b"x")), example(a=int64s(1), b=blobs(b"\xff"))]
    )
    scan = scan_of(path)
    with ScanRows(scan.with_selection(columns=("b",), limit=1)).open() as reader:
        assert reader.read_all() == pa.table({"b": pa.array([b"x"], pa.binary())})
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'c'"):
        scan.with_selection(columns=("c",))


@pytest.mark.parametrize("schema", [None, "infer", {"n": "int64", "word": "string"}])
def test_a_scan_without_others_reads_the_same_by_a_plan_of_its_columns(tmp_path: Path, schema: Any) -> None:
    path = tmp_path / "key=1" / "a.tfrecord"
    path.parent.mkdir()
    tfr.write_tfrecord({**ROWS, "more": [[1.5], [], None]}, path)
    scan = scan_of(tmp_path, schema=schema)
    for names in (["word"], ["key", "n"], []):
        narrow = scan.filter("n >= 2").leave_out_others(names)
        assert narrow.schema == scan.only(names).schema
        assert {column.name for column in narrow.settings.plan.columns} == {*names, "n"} - {"key"}
        with ScanRows(narrow).open() as reader, ScanRows(scan.filter("n >= 2").only(names)).open() as expected:
            assert reader.read_all() == expected.read_all()


def test_random_access_and_iterators_infer_nothing_in_a_spawned_process(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n), b=blobs(b"x")) for n in range(20)])
    with tfr.open_random(path) as records:
        assert in_other_process(record_of, pickle.dumps(records), 7) == {"b": "x", "x": 7}
    batches = tfr.iter_arrays(path, batch_size=6, shuffle_buffer=8, seed=3)
    pickled = pickle.dumps(batches)
    assert in_other_process(batches_of, pickled) == [batch["x"].tolist() for batch in batches]


def test_a_read_of_a_file_object_does_not_pickle() -> None:
    scan = scan_of(io.BytesIO(framed(example(x=int64s(1)))))
    with pytest.raises(TypeError, match="cannot be pickled: pass a path"):
        pickle.dumps(scan)
