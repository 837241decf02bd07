"""Schemas by the first values of large records, and conditions on them: those of whole records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.base import ReadOptions
from tfrecord_io.read import first_values, row_filter, stored_record
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.record_map import RecordMap

LONG = "é" * 600


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records above 1,000 bytes are large."""
    monkeypatch.setattr(first_values, "LARGE", 1000)
    monkeypatch.setattr(RecordMap, "LARGE", 1000)
    monkeypatch.setattr(stored_record, "_SMALL", 100)
    monkeypatch.setattr(stored_record, "_CUT", 400)
    monkeypatch.setattr(row_filter, "_MOST_BYTES", 90)


@pytest.fixture
def table() -> pa.Table:
    """Rows of which some have long values, which begin alike."""
    return pa.table(
        {
            "n": [0, 1, 2, 3, 4, 5],
            "text": [LONG, "é", LONG + "a", None, "", "b" * 1200],
            "data": pa.array([b"x" * 1200, b"x", None, b"x" * 1201, b"", b"y"], pa.binary()),
            "numbers": [[7] * 1100, [7], None, [], list(range(800)), [300] * 800],
            "floats": pa.array([[0.5] * 400, [], None, [1.5], [2.5] * 300, [0.5]], pa.list_(pa.float32())),
            "words": [["w" * 1200, "v"], ["v"], [], None, ["u"] * 200, ["w"]],
        }
    )


def dataset(path: Path, first_files: int | None = 8, **keywords: Any) -> Any:
    return CallSource(path).dataset(ReadOptions(**keywords), first_files)


@pytest.mark.parametrize("embed_schema", [True, False])
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_the_schema_is_that_of_whole_records(
    tmp_path: Path, table: pa.Table, embed_schema: bool, compression: str | None
) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(table, path, embed_schema=embed_schema, compression=compression)
    assert dataset(path).schema == dataset(path, None).schema
    assert (first_values.cut_to_first_values(dataset(path).sources, ReadOptions().of_scan) is None) == bool(compression)
    found = dataset(path)
    assert found.origin is not None
    assert [source.derived for source in found.sources] == [None]


def test_the_schema_of_sequences_is_that_of_whole_records(tmp_path: Path) -> None:
    schema = {"n": "int64", "frames": tfr.sequence("float32"), "names": tfr.sequence("string")}
    data = {"n": [1, 2], "frames": [[0.5] * 500, [1.5]], "names": [["a" * 700, "b"], []]}
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(data, path, schema=schema, record_type="sequence_example", embed_schema=False)
    assert dataset(path).schema == dataset(path, None).schema


@pytest.mark.parametrize("size", [1, 399, 400, 401, 1200])
@pytest.mark.parametrize("record_type", ["example", "sequence_example"])
def test_two_long_values_are_a_list(tmp_path: Path, record_type: Any, size: int) -> None:
    data = {"n": ["x" * 2000] * 2, "words": [["a" * size, "b" * size]] * 2}
    schema = {"n": "string", "words": tfr.sequence("string") if record_type != "example" else tfr.list_("string")}
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(data, path, schema=schema, record_type=record_type, embed_schema=False)
    assert dataset(path).schema == dataset(path, None).schema
    assert dataset(path).schema.field("words").type == pa.list_(pa.string())


def test_a_damaged_file_is_left_to_the_read(tmp_path: Path, table: pa.Table) -> None:
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    (tmp_path / "a.tfrecord").write_bytes((tmp_path / "a.tfrecord").read_bytes()[:500])
    assert dataset(tmp_path / "a.tfrecord").schema == dataset(tmp_path / "a.tfrecord", None).schema


CONDITIONS = [
    f"text == '{LONG}'",
    "text == 'é'",
    "text != 'é'",
    "text > 'éé'",
    "text <= 'éé' and n < 4",
    "text in ['é', 'b']",
    "text startswith 'éé' or data startswith 'xx'",
    f"text startswith '{LONG}'",
    "text between 'a' and 'c'",
    "text is null",
    "data < 'xx'",
    "data == 'x'",
    "numbers is not null",
    "numbers contains 7",
    "floats contains 0.5",
    "words contains v",
    "n >= 3",
]


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("compression", [None, "gzip"])
def test_conditions_find_the_rows_of_whole_records(
    tmp_path: Path, table: pa.Table, where: str, compression: str | None
) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(table, path, compression=compression)
    expected = tfr.read_table(path, filters=where, columns=["n"])["n"].to_pylist()
    found = RecordMap(dataset(path))
    (*_, (addresses, _)) = found.search(where)
    assert not addresses.unread & set(addresses[:])
    assert set(addresses[:]) == set(expected) - addresses.unread
    assert bool(addresses.unread) == ("contains" in where or LONG in where)
    found.close()


def test_values_that_are_cut_for_the_condition_are_delivered_as_null(tmp_path: Path, table: pa.Table) -> None:
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    found = RecordMap(dataset(tmp_path / "a.tfrecord"))
    for takes_large, expected in ((True, [LONG, "é", LONG + "a"]), (False, [None, "é", None])):
        rows = found.read(["text"], "text startswith 'é'", takes_large=takes_large)
        assert [value for _, batch, _ in rows for value in batch["text"].to_pylist()] == expected
    found.close()
