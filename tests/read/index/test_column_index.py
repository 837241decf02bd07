"""A column index has the values of all records, of each type; a damaged one is an error of the package."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import assert_equal
from limited import set_limits
from reading_modes import matching_records_only, opened_scans, small_index_groups
from rounds import rounds
from tfrecord_io.base.options.limits import Expansion
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.bytes.format.framing import FrameHeader
from tfrecord_io.read.index import column_index
from tfrecord_io.read.index.column_index import COLUMNS_SUFFIX, ColumnIndex, write_columns
from tfrecord_io.read.index.find_index import open_columns
from tfrecord_io.read.index.fingerprint import Fingerprint
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.read.index_search import indexed_fields
from tfrecord_io.read.scan import Scan
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.paths.sidecars import find_sidecars
from tfrecord_io.store.read.random_access_file import RandomAccessFile
from traced import peak

UTC = datetime.UTC
DAY = datetime.date(2020, 1, 2)
COLUMNS = {
    **{name: pa.array([1, None, 3], name) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")},
    "uint64": pa.array([2**63 - 1, None, 0], pa.uint64()),
    "large": pa.array([2**63 - 1, None, -(2**63)], pa.int64()),
    "half": pa.array(np.array([1, np.nan, -0.0], np.float16)),
    "float": pa.array([float("nan"), None, -0.0], pa.float32()),
    "bool": pa.array([True, None, False]),
    "text": pa.array(["a", None, ""]),
    "large_text": pa.array(["é", None, "x"], pa.large_string()),
    "view": pa.array(["a", None, "b" * 20], pa.string_view()),
    "bytes": pa.array([b"\xff", None, b""]),
    "fixed": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "category": pa.array(["red", None, "blue"]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
    "ordered": pa.array([3, None, 1]).dictionary_encode().cast(pa.dictionary(pa.int32(), pa.int64(), ordered=True)),
    **{f"time_{unit}": pa.array([1, None, 3], pa.timestamp(unit, "UTC")) for unit in ("s", "ms", "us", "ns")},
    **{f"duration_{unit}": pa.array([1, None, 3], pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    **{f"clock_{unit}": pa.array([1, None, 3], pa.time32(unit)) for unit in ("s", "ms")},
    "clock_ns": pa.array([1, None, 3], pa.time64("ns")),
    "date": pa.array([DAY, None, DAY], pa.date32()),
    "date_ms": pa.array([DAY, None, DAY], pa.date64()),
    "decimal": pa.array([decimal.Decimal("1.5"), None, decimal.Decimal("-2.5")], pa.decimal128(10, 2)),
    "a.b/c": pa.array([1, None, 2]),
    "a": pa.array([4, None, 5]),
}


def opened(path: Path) -> tuple[ColumnIndex, Any]:
    (source,) = resolve_inputs([Path(f"{path}.column_index")])
    file = RandomAccessFile.open(source)
    return ColumnIndex(file, source.path, path.stat().st_size), file


def fields(path: Path, *names: str) -> list[pa.Field]:
    """How columns of a file are read."""
    dataset = tfr.dataset(path, columns=list(names))
    return indexed_fields(Scan.unwrap(dataset), names)


def test_only_the_columns_that_are_needed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, rng = tmp_path / "a.tfrecord", np.random.default_rng(0)
    names = [f"column {at} {'x' * 1000}" for at in range(100)]  # the metadata is longer than what is read first
    table = pa.table({name: rng.integers(0, 2**62, 3000) for name in names})
    tfr.write_tfrecord(table, path)
    tfr.build_index(path, columns="*")
    monkeypatch.setattr(column_index, "_WHOLE_BYTES", 0)
    wanted = fields(path, names[20], names[3])
    index, file = opened(path)
    read: list[int] = []

    def spans_read(spans: list[tuple[int, int]]) -> list[Any]:
        read.extend(end - begin for begin, end in spans)
        return [file.read(begin, end) for begin, end in spans]

    monkeypatch.setattr(file, "_read_spans", spans_read)
    with file:
        columns = index.columns(wanted)
        assert columns.to_pydict() == {name: table[name].to_pylist() for name in (names[20], names[3])}
        assert index.records().end == path.stat().st_size
    assert len(read) == 3
    assert sum(read) < file.size / 4


@given(span=st.lists(st.integers(0, 20), min_size=2, max_size=2, unique=True).map(sorted))
def test_only_the_groups_of_a_span_are_read(in_groups: Path, span: list[int]) -> None:
    whole, file = opened(in_groups)
    bounds = whole.records().bounds
    begin, end = span
    (source,) = resolve_inputs([in_groups])
    with file, RandomAccessFile.open(source) as data:
        (sidecar,) = find_sidecars([source], [COLUMNS_SUFFIX])
        assert sidecar is not None
        with open_columns(sidecar, source, data, (int(bounds[begin]), int(bounds[end]))) as (index, records):
            assert records is not None
            first, last = 3 * (begin // 3), min(20, -(-end // 3) * 3)
            assert (index.numbers.start, index.is_last) == (first, last == 20)
            assert records.bounds.tolist() == bounds[first : last + 1].tolist()
            assert index.columns(fields(in_groups, "x"))["x"].to_pylist() == list(range(first, last))


@given(limit=st.integers(1, 3000))
def test_records_are_counted_without_their_offsets_where_none_can_be_too_long(in_groups: Path, limit: int) -> None:
    whole, file = opened(in_groups)
    with file:
        sizes = whole.records().sizes
    read = Mock(wraps=ColumnIndex.records)
    dataset = tfr.dataset(in_groups, limits=tfr.Limits(record_bytes=limit))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ColumnIndex, "records", lambda index: read(index))
        if limit < sizes.max() - FrameHeader.FRAME_BYTES:
            with pytest.raises(tfr.errors.CorruptRecordError, match="limits"):
                tfr.count(dataset)
        else:
            assert tfr.count(dataset) == 20
    groups = [sizes[begin : begin + 3].sum() for begin in range(0, 20, 3)]
    assert read.called == (limit < max(groups))


def test_memory_of_writing_an_index_is_that_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of all its records: their sizes are not found again for each group."""
    monkeypatch.setattr(column_index, "_GROUP_ROWS", 1000)
    records = RecordIndex.from_sizes(np.full(300_000, 40))
    batches = [pa.record_batch({"x": np.zeros(1000, np.int8)})] * 300
    schema, fingerprint = batches[0].schema, Fingerprint(None)
    assert peak(lambda: write_columns(io.BytesIO(), "a", records, schema, iter(batches), fingerprint)) < 1 << 20


def test_groups_of_large_texts_have_fewer_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a group have offsets of 32 bits."""
    texts = [f"{at:04}" * 250 for at in range(100)]
    tfr.write_tfrecord({"x": texts}, tmp_path / "a.tfrecord")
    set_limits(monkeypatch, batch_bytes=10_000)
    tfr.build_index(tmp_path / "a.tfrecord", columns="x")
    index, file = opened(tmp_path / "a.tfrecord")
    with file:
        assert index.columns(fields(tmp_path / "a.tfrecord", "x"))["x"].to_pylist() == texts
    assert max(group.rows for group in index._groups) < 20


@pytest.fixture(scope="module")
def in_groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with records of different sizes, and an index in groups of three of them."""
    path = tmp_path_factory.mktemp("groups") / "a.tfrecord"
    tfr.write_tfrecord({"x": list(range(20)), "pad": [bytes(n * n) for n in range(20)]}, path, embed_schema=False)
    time.sleep(0.1)  # until the file system distinguishes later changes of the file from its writing
    with small_index_groups():
        tfr.build_index(path, columns=["x"])
    return path


def test_a_span_of_a_file_that_is_shorter_now(in_groups: Path, tmp_path: Path) -> None:
    """Without a version, as after an upload, its offsets tell."""
    whole, file = opened(in_groups)
    with file:
        end = int(whole.records().bounds[10])
    path = tmp_path / "a.tfrecord"
    path.write_bytes(in_groups.read_bytes()[: end + 5])
    shutil.copy(f"{in_groups}.column_index", tmp_path)
    (source,) = resolve_inputs([path])
    (sidecar,) = find_sidecars([source], [COLUMNS_SUFFIX])
    assert sidecar is not None
    reason = rf"its last record ends at byte \d+, but the file has {end + 5}"
    with (
        RandomAccessFile.open(source) as data,
        pytest.raises(tfr.errors.CorruptRecordError, match=reason),
        open_columns(sidecar, source, data, (0, end)),
    ):
        pass


def test_values_and_types_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(pa.table(COLUMNS), path)
    table, frame = tfr.read_table(path), tfr.read_tfrecord(path)
    (built,) = tfr.build_index(path, columns="*")
    assert (built.records, built.bytes) == (3, path.stat().st_size)
    index, file = opened(path)
    with file:
        for names in (["a"], ["text", "a.b/c"], table.column_names):
            columns = index.columns(fields(path, *names))
            assert columns.schema.types == table.select(names).schema.types
            assert repr(columns.to_pylist()) == repr(table.select(names).to_pylist())
        records = index.records()
    assert records.end == path.stat().st_size
    set_limits(monkeypatch, decoded_file_bytes=0)
    scans = opened_scans(monkeypatch)
    with matching_records_only():
        assert_equal(tfr.read_table(path, columns=table.column_names), table)
        pd.testing.assert_frame_equal(tfr.read_tfrecord(path, columns=table.column_names), frame)
    assert all(scan.has_values for scan in scans)


@pytest.mark.parametrize("name", sorted(set(COLUMNS) - {"half"}))  # pyarrow does not compare it
def test_each_type_can_be_filtered_by(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(pa.table({name: COLUMNS[name]}), path)
    tfr.build_index(path, columns=[name])
    table, field = tfr.read_table(path), pc.field(name)
    with tfr.open_random(path) as records:
        for condition in (field == table[name][0], field.is_null(), field.is_valid(), field != table[name][2]):
            expected = table.append_column("#", [range(3)]).filter(condition)["#"]
            assert records.select(condition).numbers.tolist() == expected.to_pylist()


def test_columns_that_have_no_single_values(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"list": [[1], [1, 2]], "x": [1, 2], "t": np.zeros((2, 2, 2))}, path)
    for name, reason in (("list", "not of list"), ("t", "single values")):
        with pytest.raises(tfr.errors.SchemaError, match=reason):
            tfr.build_index(path, columns=[name])
    with pytest.raises(tfr.errors.FeatureNotFoundError):
        tfr.build_index(path, columns=["absent"])
    assert not Path(f"{path}.column_index").exists()


def test_a_file_without_records(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1]}, path)
    schema = tfr.Schema({"x": "int64"})
    path.write_bytes(b"")
    assert [index.records for index in tfr.build_index(tfr.dataset(path, schema=schema), columns=["x"])] == [0]
    with tfr.open_random(path, schema=schema) as records:
        assert len(records.select(pc.field("x") == 1)) == 0


@pytest.mark.fault(56)
def test_a_file_that_is_replaced_meanwhile_gets_no_index(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1, 2]}, path)
    with pytest.raises(tfr.errors.ReplacedError):
        tfr.build_index(path, columns=["x"], progress=lambda _: tfr.write_tfrecord({"x": [3, 4]}, path))
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_damaged_index_is_a_corrupt_record_error(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": list(range(50)), "text": ["a", "b"] * 25}, path)
    tfr.build_index(path, columns=["x", "text"])
    index = Path(f"{path}.column_index")
    content, rng = index.read_bytes(), random.Random(0)
    expected = list(range(0, 50, 2))
    wanted = fields(path, "text", "x")
    for round_ in range(rounds(400, 100)):
        damaged = bytearray(content)
        if round_ % 4 == 0:
            del damaged[rng.randrange(len(content)) :]
        else:
            for _ in range(rng.choice((1, 1, 3))):
                damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        index.write_bytes(damaged)
        try:
            columns, file = opened(path)
            with file:
                columns.records()
                texts = columns.columns(wanted)
        except tfr.errors.CorruptRecordError:
            continue
        assert texts["text"].to_pylist() == ["a", "b"] * 25  # nothing depends on the bit
        assert texts["x"].to_pylist() == list(range(50))
    index.write_bytes(content)
    with tfr.open_random(path) as records:
        assert records.select(pc.field("text") == "a").numbers.tolist() == expected


def rewritten(path: Path, change: Callable[[dict[str, Any], Any], object]) -> None:
    """Write an index with another directory, and right checksums."""
    index = Path(f"{path}.column_index")
    content = index.read_bytes()
    sizes = column_index._TAIL.unpack(content[-column_index._TAIL.size :])
    begin = len(content) - column_index._TAIL.size - sizes[0] - sizes[1]
    stated = json.loads(content[begin : begin + sizes[0]])
    width = 2 + 6 * (1 + len(stated["columns"]))
    table = np.frombuffer(content, "<i8", sizes[1] // 8, begin + sizes[0]).reshape(-1, width).copy()
    change(stated, table)
    index.write_bytes(content[:begin] + directory(json.dumps(stated).encode(), table.tobytes()))


def directory(description: bytes, table: bytes) -> bytes:
    checksum = get_engine().crc32c(description + table)
    return description + table + column_index._TAIL.pack(len(description), len(table), checksum, column_index._MAGIC)


def read_index(path: Path, *names: str) -> pa.Table:
    index, file = opened(path)
    with file:
        index.records()
        return index.columns(fields(path, *names))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda stated, table: stated.update(version=3), "of another form"),
        (lambda stated, table: stated.update(groups=-1), "contradicts itself"),
        (lambda stated, table: stated.update(groups=2), "its table has"),
        (lambda stated, table: stated.update(columns=[["x"]]), "other columns"),
        (lambda stated, table: stated["columns"].append(stated["columns"][0]), "contradicts itself"),
        (lambda stated, table: table.put(0, -1), "a group of -1 records"),
        (lambda stated, table: table.put(0, 10**6), "it has 1000000 rows"),
        (lambda stated, table: table.put(0, 2), "cannot have 24 bytes"),
        (lambda stated, table: table.put(1, 16), "its rows are not the records"),
        (lambda stated, table: table.put(2, 2**62), "a chunk of 3 values"),
        (lambda stated, table: table.put(3, -5), "a chunk of 3 values"),
        (lambda stated, table: table.put(3, 5), "checksum"),
        (lambda stated, table: table.put(5, 4), "a chunk of 3 values"),
        (lambda stated, table: table.put(7, 2**40), "cannot have 1099511627776 bytes"),
    ],
)
def test_an_index_that_states_something_else(
    tmp_path: Path, change: Callable[[dict[str, Any], Any], object], reason: str
) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1, 2, 3]}, path)
    tfr.build_index(path, columns=["x"])
    rewritten(path, change)
    with pytest.raises(tfr.errors.CorruptRecordError, match=reason):
        read_index(path, "x")


def built(path: Path, **values: pa.Array) -> None:
    """Write an index with other values than the file has."""
    index = Path(f"{path}.column_index")
    whole, file = opened(path)
    with file, index.open("wb") as sink:
        schema = pa.schema(fields(path, *values))
        batch = pa.record_batch(list(values.values()), schema=schema)
        write_columns(sink, path.name, whole.records(), schema, [batch], whole.content)


def test_texts_larger_than_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Expansion, "DEFAULT_BYTES", 1000)
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": ["a"] * 3000}, path)
    tfr.build_index(path, columns=["x"])
    built(path, x=pa.array(["a" * 100] * 3000))
    with pytest.raises(tfr.errors.CorruptRecordError, match="its texts have 300000 bytes"):
        read_index(path, "x")
    built(path, x=pa.array([f"{n:0100}" for n in range(3000)]))
    with pytest.raises(tfr.errors.CorruptRecordError, match="3000 values of string cannot have"):
        read_index(path, "x")


def test_seconds_beyond_the_range_of_milliseconds(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    times = pa.array([1, None, 2**61], pa.timestamp("s", "UTC"))
    tfr.write_tfrecord(pa.table({"time": times}), path)
    tfr.build_index(path, columns=["time"])
    assert read_index(path, "time")["time"].cast(pa.int64()).to_pylist() == [1, None, 2**61]


@pytest.mark.fault(56)
def test_forged_indexes_are_errors_of_the_package() -> None:
    """In a process of its own, as what is looked for may end it; ``make fuzz`` runs more rounds."""
    script = Path(__file__).parents[2] / "fuzz" / "metadata.py"
    command = [sys.executable, str(script), "--target", "column_index", "--rounds", "400"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
