"""A schema round-trips through JSON, Arrow, pickles and Python source."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arrow_tables import TYPES
from tfrecord_io.columns.schema import field_makers as makers
from tfrecord_io.columns.schema.field import CONTEXT, Field
from tfrecord_io.columns.schema.field_makers import image, list_, scalar, sequence, tensor
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.errors import SchemaError

EVERYTHING = Schema(
    {
        "a": scalar("int32", default=-1, required=True),
        "b": scalar("float32", default=float("nan"), feature="größe\n"),
        "c": scalar("binary", default=b"\x00\xff"),
        "d": scalar("timestamp[us, UTC]", default=dt.datetime(2020, 1, 2, 3, 4, 5, 6, dt.UTC)),
        "e": scalar("date32", default=dt.date(2020, 1, 2)),
        "f": scalar("time64[us]", default=dt.time(1, 2, 3)),
        "g": scalar("duration[us]", default=dt.timedelta(days=-1, microseconds=3)),
        "h": scalar("decimal128(10, 2)", default=decimal.Decimal("1.50")),
        "i": scalar("bool", default=False),
        "j": list_("float64", encoding="raw"),
        "k": list_("int64", 2, default=[1, 2]),
        "l": tensor("uint8", (2, 3), default=7),
        "m": tensor("float32", (None, 2), encoding="raw"),
        "n": tensor("float32", ()),
        "o": tensor("bytes", (2, 3)),
        "p": sequence(tensor("float32", (4,)), required=True),
        "q": sequence(scalar("string"), default=["a"]),
        "r": image((None, None, 3)),
        "s": "dictionary<values=string, indices=int8, ordered=1>",
        "t": scalar("struct<x: int8, y: list<item: string>>", default={"x": 1, "y": None}),
        "u": Field("", pa.list_(pa.list_(pa.int64())), part=CONTEXT),
        "v": pa.uuid(),
        "w\x1b[31m": pa.large_list(pa.large_string()),
        "x": pa.struct([("a, b: c>", pa.int8())]),
        "y": pa.list_(pa.field("item", pa.int8(), nullable=False)),
        "z": scalar("string", default='"\\'),
        "empty": scalar("int64", empty="null"),
        "empty list": list_("float32", 2, empty="null", feature="l", default=0.5),
        "empty image": image((2, 2, 3), empty="null"),
        "empty tensor": tensor("float32", (None, 2), empty="null"),
        "empty text": scalar("string", empty="null", required=True),
    }
)


@pytest.mark.parametrize("name", EVERYTHING.names)
@pytest.mark.parametrize(
    "again",
    [
        lambda schema: Schema.from_json(schema.to_json()),
        lambda schema: Schema.from_json(schema.to_json(indent=None).encode()),
        lambda schema: Schema.from_arrow(schema.to_arrow()),
        lambda schema: Schema.parse(schema.to_arrow()),
        lambda schema: pickle.loads(pickle.dumps(schema)),
        lambda schema: from_source(schema.to_python()),
    ],
    ids=["json", "compact", "from_arrow", "parse", "pickle", "python"],
)
def test_schema_round_trips(name: str, again: Any) -> None:
    schema = EVERYTHING.select([name])
    assert again(schema) == schema


def from_source(source: str) -> Schema:
    """The schema that the source makes when executed."""

    class tfr:
        pass

    tfr.Schema = Schema  # type: ignore[attr-defined]
    for name in ("image", "list_", "scalar", "sequence", "tensor"):
        setattr(tfr, name, staticmethod(getattr(makers, name)))
    first, _, rest = source.partition("\n")
    assert first == "import tfrecord_io as tfr"
    space: dict[str, Any] = {"tfr": tfr}
    exec(rest, space)
    return space["schema"]


@given(TYPES, st.booleans(), st.sampled_from([None, "other"]))
def test_any_type_round_trips(type_: pa.DataType, required: bool, feature: str | None) -> None:
    schema = Schema([Field("x", type_, feature, required=required and type_ != pa.null())])  # type: ignore[arg-type]
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_arrow(schema.to_arrow()) == schema
    assert from_source(schema.to_python()) == schema


@given(TYPES, st.booleans())
def test_structs_of_any_type_round_trip_through_python(type_: pa.DataType, in_list: bool) -> None:
    struct = pa.struct({"a": pa.list_(type_), "b": type_})
    schema = Schema([Field("x", pa.list_(struct) if in_list else struct, encoding="nested")])
    assert from_source(schema.to_python()) == schema


def test_metadata_round_trip() -> None:
    schema = Schema([Field("x", pa.int8(), metadata={b"k": b"\xff", b"l": b"text"})], {b"pandas": b"{}"})
    back = Schema.from_json(schema.to_json())
    assert back.metadata == schema.metadata
    assert back["x"].metadata == schema["x"].metadata


def test_python_source() -> None:
    schema = Schema(
        {
            "label": scalar("int32", default=0),
            "tokens": "list<int64>",
            "box": list_("float32", 4, required=True),
            "digits": tensor("uint8", (28, 28), feature="image_raw"),
            "frames": sequence(tensor("float32", (None, 2))),
            "words": sequence("string"),
            "name": scalar("string", default="?"),
            "photo": image((None, None, 3), required=True),
        }
    )
    assert schema.to_python().splitlines()[3:-1] == [
        '    "label": tfr.scalar("int32", default=0),',
        '    "tokens": "list<int64>",',
        '    "box": tfr.list_("float32", 4, required=True),',
        '    "digits": tfr.tensor("uint8", (28, 28), feature="image_raw"),',
        '    "frames": tfr.sequence(tfr.tensor("float32", (None, 2))),',
        '    "words": tfr.sequence("string"),',
        '    "name": tfr.scalar("string", default="?"),',
        '    "photo": tfr.image((None, None, 3), required=True),',
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"version": 2, "fields": []}',
        '{"version": 1}',
        '{"version": 1, "fields": [{}]}',
        '{"version": 1, "fields": [{"column": "a", "type": "int31"}]}',
        '{"version": 1, "fields": [{"column": "a", "type": "int8", "color": 1}]}',
        '{"version": 1, "fields": [{"column": "a", "type": {"arrow": "AAAA"}}]}',
        '{"version": 1, "fields": [{"column": "a", "type": "int8", "default": {"pickle": "x"}}]}',
        '{"version": 1, "fields": [{"column": "a", "type": "int8", "shape": [2]}]}',
        '{"version": 1, "fields": [{"column": "a", "type": "int8", "required": "false"}]}',
        '{"version": 1, "fields": [{"column": true, "type": "int8"}]}',
        '{"version": 1, "fields": [{"column": "a", "type": "int8", "feature": 1}]}',
        "[" * 100_000,
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        Schema.from_json(text)


@pytest.mark.parametrize("key", [b"tfrecord_io.shape", b"tfrecord_io.default"])
@pytest.mark.parametrize("value", [b"{", b"\xff", b'{"bytes": 1}', b'{"a": 1, "b": 2}', b"[" * 100_000])
def test_damaged_metadata_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(SchemaError):
        Schema.from_arrow(pa.schema([pa.field("a", pa.list_(pa.int8()), metadata={key: value})]))


def test_json_is_plain() -> None:
    document = json.loads(Schema({"a": scalar("int32", required=True, feature="b")}).to_json())
    assert document == {"version": 1, "fields": [{"column": "a", "type": "int32", "feature": "b", "required": True}]}
