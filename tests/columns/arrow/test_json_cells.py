"""Columns that are stored as JSON."""

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import tfrecord_io as tfr

STRUCT = pa.struct([("n", pa.list_(pa.int64())), ("t", pa.timestamp("ns", "UTC")), ("b", pa.binary())])


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        (pa.array([1, None]), ["1", None]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([0.1, 1e300]), ["0.1", "1e+300"]),
        (pa.array(["é", '"']), ['"é"', '"\\""']),
        (pa.array([Decimal("1.50")], pa.decimal128(5, 2)), ['"1.50"']),
        (pa.array([[1, None], []]), ["[1,null]", "[]"]),
        (pa.array([{"n": [1], "t": 7, "b": b"\xff"}, None], STRUCT), ['{"n":[1],"t":7,"b":"/w=="}', None]),
        (pa.array([[("k", None)]], pa.map_(pa.string(), pa.int8())), ['[{"key":"k","value":null}]']),
        (pa.array([b"a", b"b"]).dictionary_encode(), ['"YQ=="', '"Yg=="']),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_the_text_of_a_row(engine: str, tmp_path: Path, column: pa.Array, texts: list[str | None]) -> None:
    tfr.write_tfrecord(pa.table({"x": column}), tmp_path / "a", column_encoding={"x": "json"})
    read = [tfr.decode_example(record).get("x") for record in tfr.RecordReader(tmp_path / "a")]
    assert [None if cell is None else cell[0].decode() for cell in read] == texts
    table = tfr.read_table(tmp_path / "a")
    assert table["x"].type == column.type
    assert table["x"].to_pylist() == column.to_pylist()
    tfr.write_tfrecord(table, tmp_path / "b")  # and is written so again
    assert [*tfr.RecordReader(tmp_path / "b")] == [*tfr.RecordReader(tmp_path / "a")]


@pytest.mark.parametrize("number", [float("nan"), float("-inf")])
def test_numbers_that_json_does_not_have(engine: str, tmp_path: Path, number: float) -> None:
    with pytest.raises(tfr.errors.EncodeError, match="JSON has no NaN and no infinity") as caught:
        tfr.write_tfrecord(pa.table({"x": [[1.0], [number]]}), tmp_path / "a", column_encoding={"x": "json"})
    assert (caught.value.record, caught.value.feature) == (1, "x")


@pytest.mark.parametrize(
    ("type_", "text", "message"),
    [
        (pa.list_(pa.int64()), "[1", "not JSON"),
        (pa.list_(pa.int64()), "[" * 100_000, "not JSON"),
        (pa.list_(pa.int64()), '["a"]', "not a value of list<item: int64>"),
        (pa.list_(pa.int8()), "[300]", "not a value of"),
        (pa.map_(pa.string(), pa.int8()), '[{"key": null, "value": 1}]', "the key of a map is null"),
        (pa.binary(), '"?"', "not base64"),
    ],
)
def test_text_that_does_not_fit(engine: str, tmp_path: Path, type_: pa.DataType, text: str, message: str) -> None:
    with tfr.RecordWriter(tmp_path / "a") as writer:
        for cell in ({}, {"x": text}, {}):
            writer.write(tfr.encode_example({"id": 1, **cell}))
    schema = pa.schema([pa.field("x", type_, metadata={"tfrecord_io.encoding": "json"})])
    with pytest.raises(tfr.errors.DecodeError, match=message) as caught:
        tfr.read_table(tmp_path / "a", schema=schema)
    assert (caught.value.record, caught.value.feature) == (1, "x")


def test_json_of_other_writers(engine: str, tmp_path: Path) -> None:
    with tfr.RecordWriter(tmp_path / "a") as writer:
        writer.write(tfr.encode_example({"x": json.dumps({"b": [1.5], "other": 1, "a": "t"}, indent=1)}))
    type_ = pa.struct([("a", pa.string()), ("b", pa.list_(pa.float32())), ("c", pa.int8())])
    read = tfr.read_table(tmp_path / "a", schema={"x": tfr.scalar(type_, encoding="json")})
    assert read["x"].to_pylist() == [{"a": "t", "b": [1.5], "c": None}]
