"""The schema in front of a file's first record round-trips, and hostile bytes are refused."""

from __future__ import annotations

import os
import pickle
import random
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arrow_tables import batches
from rounds import rounds
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.encode.encode_plan import plan_writing
from tfrecord_io.columns.arrow.encode.slice_encoder import dictionaries
from tfrecord_io.columns.schema import embedded
from tfrecord_io.columns.schema.embedded import (
    EmbeddedSchemaUnreadable,
    embedded_schema,
    equal_types,
    field_bytes,
    pack,
    unpack,
)
from tfrecord_io.columns.schema.tensor_types import tensor_field, variable_shape_tensor
from tfrecord_io.errors import SchemaError, SchemaWarning
from tfrecord_io.testing.tensor_encoding_suite import NAMES

RICH = pa.schema(
    [
        pa.field("i", pa.int32(), nullable=False, metadata={b"unit": b"m"}),
        pa.field("f", pa.float64(), metadata={b"tfrecord_io.encoding": b"raw"}),
        ("t", pa.timestamp("ms", "Europe/Paris")),
        ("d", pa.dictionary(pa.int8(), pa.string(), ordered=True)),
        ("s", pa.struct([("l", pa.list_(pa.dictionary(pa.int16(), pa.string()))), ("u", pa.uuid())])),
        ("q", pa.list_(pa.struct([("d", pa.dictionary(pa.int8(), pa.int64()))]), 2)),
        ("j", pa.json_()),
        ("b", pa.list_(pa.bool8())),
        ("n", pa.null()),
        pa.field(
            "image",
            pa.fixed_shape_tensor(pa.uint8(), (2, 3), dim_names=["h", "w"]),
            metadata={b"tfrecord_io.encoding": b"raw"},
        ),
        pa.field(
            "waves",
            variable_shape_tensor(pa.float32(), (None, 3, 2), ("a", "b", "c")),
            metadata={b"tfrecord_io.encoding": b"tensor_proto", b"tfrecord_io.dtype": b"complex64"},
        ),
    ],
    metadata={b"pandas": b'{"a": "ARROW:extension:name"}'},
)
DICTIONARIES = {"d": pa.array(["x", "ARROW:extension:name"]), "s/l": pa.array(["é"]), "q/d": pa.array([3, 1])}


def test_schema_and_dictionaries_round_trip() -> None:
    found = unpack(pack(RICH, DICTIONARIES))
    assert found.schema.equals(RICH, check_metadata=True)
    assert dict(found.dictionaries) == DICTIONARIES
    assert unpack(pack(RICH)).dictionaries == {}
    assert unpack(pack(pa.schema([]))).schema == pa.schema([])


@settings(max_examples=rounds(150))
@given(batches())
def test_any_written_schema_round_trips(batch: pa.RecordBatch) -> None:
    plan = plan_writing(batch.schema)
    schema, categories = embedded_schema(plan.schema), dictionaries(batch, plan)
    found = unpack(pack(schema, categories))
    assert found.schema.equals(schema, check_metadata=True)
    values = [{k: repr(v.to_pylist()) for k, v in by_name.items()} for by_name in (found.dictionaries, categories)]
    assert values[0] == values[1]  # as text, in which NaN equals itself


def test_layout_of_the_field() -> None:
    assert embedded.FIELD == 21574
    content = pack(pa.schema([("a", pa.int8())]))
    assert content[:6] == b"TFRA\x01\x00"
    assert field_bytes(content) == b"\xb2\xc4\x0a" + bytes([len(content) & 127 | 128, len(content) >> 7]) + content
    assert pa.ipc.open_stream(content[6:]).schema == pa.schema([("a", pa.int8())])


def test_large_schemas_are_compressed() -> None:
    schema = pa.schema([(f"column {i}", pa.int8()) for i in range(1000)])
    content = pack(schema)
    assert content[5] == 1
    assert len(content) < 32_768
    assert unpack(content).schema == schema


def test_large_dictionaries_are_left_out() -> None:
    schema = pa.schema([(name, pa.dictionary(pa.int32(), pa.string())) for name in "ab"])
    found = unpack(pack(schema, {"a": pa.array(["x" * 1_100_000]), "b": pa.array(["y"])}))
    assert found.schema == schema
    assert found.dictionaries == {"b": pa.array(["y"])}
    many = pa.schema([(str(i), pa.dictionary(pa.int32(), pa.binary())) for i in range(20)])
    noise = pa.array([random.Random(1).randbytes(1_000_000)])
    assert len(unpack(pack(many, {str(i): noise for i in range(20)})).dictionaries) == 8


def test_schema_above_the_limit_names_the_option_to_omit_it() -> None:
    with pytest.raises(SchemaError, match="embed_schema=False"):
        pack(pa.schema([("a", pa.int8())], metadata={b"big": b"x" * (17 << 20)}))


def test_memory_layouts_are_not_restored() -> None:
    schema = pa.schema(
        [("a", pa.string_view()), ("b", pa.large_list(pa.large_string())), ("c", pa.float64())], metadata={b"k": b"v"}
    )
    plain = pa.schema([("a", pa.string()), ("b", pa.list_(pa.string())), ("c", pa.float64())], metadata={b"k": b"v"})
    assert embedded_schema(schema).equals(plain, check_metadata=True)


def test_equal_types_compares_names_and_types_only() -> None:
    a = pa.schema(
        [
            pa.field("x", pa.list_(pa.field("item", pa.int8(), False)), False, {b"a": b"b"}),
            ("y", pa.struct([("z", pa.int8())])),
        ]
    )
    b = pa.schema(
        [("x", pa.list_(pa.field("element", pa.int8()))), ("y", pa.struct([pa.field("z", pa.int8(), False)]))]
    )
    assert equal_types(a, b.with_metadata({b"c": b"d"}))
    assert not equal_types(a, pa.schema([b.field(1), b.field(0)]))
    assert not equal_types(pa.schema([("x", pa.int8())]), pa.schema([("x", pa.int16())]))
    for wrap in (pa.list_, lambda type: pa.struct([("z", type)])):
        assert not equal_types(pa.schema([("x", wrap(pa.int8()))]), pa.schema([("x", wrap(pa.int16()))]))
    marked = pa.field("x", pa.int8(), metadata={b"tfrecord_io.dtype": b"bool"})
    assert equal_types(pa.schema([marked]), pa.schema([("x", pa.int8())]))  # only tensors have one
    assert not equal_types(pa.schema([("x", pa.timestamp("s"))]), pa.schema([("x", pa.timestamp("s", "UTC"))]))


@pytest.mark.parametrize("shape", [(), (2, 3), (0, 2), (None,), (None, 3), (None, None)], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_tensors_of_every_dtype_round_trip(name: str, shape: tuple[int | None, ...]) -> None:
    tensor = tensor_field("x", Dtype.of_name(name), shape)
    schema = pa.schema([tensor, ("s", pa.struct([tensor]))])
    written = embedded_schema(plan_writing(schema).schema)
    assert written.field("x").metadata[b"tfrecord_io.encoding"] == b"raw"
    found = unpack(pack(written)).schema
    assert found.equals(written, check_metadata=True)
    assert (found.field("x").type, found.field("s").type) == (schema.field("x").type, schema.field("s").type)
    steps = plan_writing(pa.schema([tensor.with_type(pa.list_(tensor.type))]), sequence=True)
    assert unpack(pack(embedded_schema(steps.schema))).schema.equals(embedded_schema(steps.schema), check_metadata=True)


def test_tensors_are_restored_in_c_order_with_their_dtype() -> None:
    permuted = pa.fixed_shape_tensor(pa.bool_(), (2, 3), permutation=[1, 0], dim_names=["h", "w"])
    (found,) = embedded_schema(pa.schema([("x", permuted)]))
    assert found.type == pa.fixed_shape_tensor(pa.uint8(), (3, 2), dim_names=["w", "h"])
    assert found.metadata == {b"tfrecord_io.dtype": b"bool"}


def test_tensors_of_two_dtypes_in_one_arrow_type_differ() -> None:
    complex_, floats = (
        tensor_field("x", Dtype.of_name("complex64"), (3,)),
        tensor_field("x", Dtype.of_name("float32"), (3, 2)),
    )
    assert complex_.type == floats.type
    for wrap in (
        pa.schema,
        lambda fields: pa.schema([("s", pa.struct(fields))]),
        lambda fields: pa.schema([field.with_type(pa.list_(field.type)) for field in fields]),
    ):
        assert not equal_types(wrap([complex_]), wrap([floats]))
        assert equal_types(wrap([complex_]), wrap([complex_]))


# --- hostile content


def stream(schema: pa.Schema, batch: pa.RecordBatch | None = None, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        if batch is not None:
            writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def zlib_of_zeros(mebibytes: int) -> bytes:
    """One compressed block of 1 MiB, repeated: much faster than compressing all of them."""
    compressor = zlib.compressobj(1, wbits=-15)
    block = compressor.compress(bytes(1 << 20)) + compressor.flush(zlib.Z_FULL_FLUSH)
    checksum = ((mebibytes << 20) % 65521) << 16 | 1
    return b"\x78\x01" + block * mebibytes + b"\x03\x00" + checksum.to_bytes(4, "big")


PLAIN = b"TFRA\x01\x00"
COMPRESSED = b"TFRA\x01\x01"
CATEGORIES = pa.record_batch([pa.array(["a" * 1000] * 9).dictionary_encode()[:0]], names=["d"])


@pytest.mark.fault(57)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "TFRA"),
        (b"TFRA", "TFRA"),
        (b"TFRA\x01", "TFRA"),
        (b"ARFT\x01\x00" + stream(RICH), "TFRA"),
        (b"TFRA\x02\x00" + stream(RICH), "version 2"),
        (b"TFRA\x01\x02" + stream(RICH), "flags 2"),
        (PLAIN, "not a stream"),
        (PLAIN + stream(RICH)[:-60], "damaged"),
        (PLAIN + bytes(17 << 20), "limit"),
        (COMPRESSED + b"xx", "does not inflate"),
        (COMPRESSED + zlib.compress(stream(RICH))[:-9], "truncated"),
        (COMPRESSED + zlib_of_zeros(1024), "more than"),
        (PLAIN + stream(CATEGORIES.schema, CATEGORIES, compression="zstd"), "compressed"),
        (PLAIN + stream(pa.schema([("m", pa.map_(pa.string(), pa.int8()))])), "does not read"),
        (PLAIN + stream(pa.schema([("v", pa.string_view())])), "never written"),
        (PLAIN + stream(pa.schema([("a", pa.int8()), ("a", pa.int8())])), "never written"),
        (
            PLAIN + stream(pa.schema([pa.field("a", pa.int8(), metadata={b"tfrecord_io.encoding": b"hdf5"})])),
            "does not read",
        ),
        (
            PLAIN + stream(pa.schema([pa.field("a", pa.int8(), metadata={b"tfrecord_io.encoding": b"\xff"})])),
            "does not read",
        ),
        (
            PLAIN + stream(pa.schema([("a", pa.decimal128(5, 2**30))])),
            "does not read",
        ),  # to parse such a number crashes Arrow
        (
            PLAIN + stream(pa.schema([("a", pa.timestamp("s", "Mars"))])).replace(b"Mars", b"\xff\xfe\xfd\xfc"),
            "damaged",
        ),
    ],
    ids=range(20),
)
def test_unreadable_content_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(EmbeddedSchemaUnreadable, match=reason):
        unpack(content)


def tensor(name: str, storage: pa.DataType, metadata: bytes, mark: bytes = b"") -> bytes:
    """A schema of one column with any extension type."""
    metadata = {
        b"ARROW:extension:name": name.encode(),
        b"ARROW:extension:metadata": metadata,
        b"tfrecord_io.encoding": b"raw",
    }
    if mark:
        metadata[b"tfrecord_io.dtype"] = mark
    tamed = {
        key.replace(b"ARROW:extension", b"arrow.extension"): value for key, value in metadata.items()
    }  # so that Arrow writes it
    return PLAIN + stream(pa.schema([pa.field("x", storage, metadata=tamed)])).replace(
        b"arrow.extension", b"ARROW:extension"
    )


FIXED, VARIABLE = "arrow.fixed_shape_tensor", "arrow.variable_shape_tensor"
SIX, PAIRS = pa.list_(pa.int8(), 6), pa.list_(pa.float32(), 4)
ANY_TWO = pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.list_(pa.int32(), 2))])


def test_handwritten_tensor_types_are_read() -> None:
    assert unpack(tensor(FIXED, SIX, b'{"shape": [2, 3]}')).schema.field("x").type == pa.fixed_shape_tensor(
        pa.int8(), (2, 3)
    )
    assert unpack(tensor(VARIABLE, ANY_TWO, b"")).schema.field("x").type == variable_shape_tensor(
        pa.int8(), (None, None)
    )
    found = unpack(tensor(FIXED, PAIRS, b'{"shape": [2, 2]}', b"complex64")).schema
    assert found.field("x").metadata == {b"tfrecord_io.dtype": b"complex64", b"tfrecord_io.encoding": b"raw"}


@pytest.mark.fault(53)
@pytest.mark.fault(57)
@pytest.mark.parametrize(
    ("name", "storage", "metadata"),
    [
        (FIXED, SIX, b""),
        (FIXED, SIX, b"{"),
        (FIXED, SIX, b"[2, 3]"),
        (FIXED, SIX, b"[" * 100_000),
        (FIXED, SIX, b'{"shape": ' + b"[" * 50_000),
        (FIXED, SIX, b'{"shape": [2, 4]}'),
        (FIXED, SIX, b'{"shape": [-2, -3]}'),
        (FIXED, SIX, b'{"shape": [2, 3.0]}'),
        (FIXED, SIX, b'{"shape": [true, 6]}'),
        (FIXED, SIX, b'{"shape": [2, null]}'),
        (FIXED, SIX, b'{"shape": "23"}'),
        (FIXED, SIX, b'{"shape": [2, 3], "permutation": [1, 0]}'),
        (FIXED, SIX, b'{"shape": [2, 3], "dim_names": ["a"]}'),
        (FIXED, SIX, b'{"shape": [2, 3], "dim_names": [1, 2]}'),
        (FIXED, SIX, b'{"shape": [2, 3], "dim_names": ["\\ud800", "b"]}'),
        (FIXED, SIX, b'{"shape": [6' + b", 1" * 70 + b"]}"),
        (FIXED, SIX, b'{"shape": [6], "more": 1}'),
        (FIXED, pa.list_(pa.int8(), 0), b'{"shape": [0, 4000000000]}'),
        (FIXED, pa.list_(pa.int8(), 0), b'{"shape": [0, 100000, 100000]}'),
        (FIXED, pa.list_(pa.int8()), b'{"shape": [2, 3]}'),
        (FIXED, pa.list_(pa.string(), 6), b'{"shape": [2, 3]}'),
        (FIXED, pa.list_(pa.bool_(), 6), b'{"shape": [2, 3]}'),
        (FIXED, pa.list_(pa.list_(pa.int8()), 6), b'{"shape": [2, 3]}'),
        (VARIABLE, ANY_TWO, b'{"uniform_shape": [2]}'),
        (VARIABLE, ANY_TWO, b'{"uniform_shape": [-1, null]}'),
        (VARIABLE, ANY_TWO, b'{"permutation": [1, 0]}'),
        (VARIABLE, ANY_TWO, b'{"dim_names": ["a"]}'),
        (VARIABLE, pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.list_(pa.int64(), 2))]), b""),
        (VARIABLE, pa.struct([("shape", pa.list_(pa.int32(), 2)), ("data", pa.list_(pa.int8()))]), b""),
        (VARIABLE, pa.struct([("data", pa.list_(pa.int8())), ("shape", pa.list_(pa.int32(), 2**31 - 1))]), b""),
        (VARIABLE, pa.int8(), b""),
    ],
    ids=range(31),
)
def test_invalid_tensor_types_are_refused(name: str, storage: pa.DataType, metadata: bytes) -> None:
    with pytest.raises(EmbeddedSchemaUnreadable):
        unpack(tensor(name, storage, metadata))


@pytest.mark.fault(53)
@pytest.mark.parametrize(
    "mark", [b"object", b"O", b"V8", b"complex128", b"int8", b"\xff", b"bool", b"__import__('os')"]
)
def test_dtypes_that_do_not_fit_are_refused(mark: bytes) -> None:
    with pytest.raises(EmbeddedSchemaUnreadable):
        unpack(tensor(FIXED, PAIRS, b'{"shape": [2, 2]}', mark))


class Registered(pa.ExtensionType):
    made = 0

    def __init__(self) -> None:
        super().__init__(pa.int32(), "tests.registered")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Registered:
        cls.made += 1
        return cls()


def test_registered_extension_types_come_back_and_others_are_named_by_metadata() -> None:
    types = pa.schema([("a", Registered()), ("b", pa.list_(Registered()))])
    mark = {"ARROW:extension:name": "tests.registered", "ARROW:extension:metadata": ""}
    named = pa.field("a", pa.int32(), metadata=mark), pa.list_(pa.field("item", pa.int32(), metadata=mark))
    content = pack(embedded_schema(types))
    assert unpack(content).schema.equals(pa.schema([named[0], ("b", named[1])]), check_metadata=True)
    pa.register_extension_type(Registered())
    try:
        assert unpack(content).schema == types
    finally:
        pa.unregister_extension_type("tests.registered")


def named(storage: pa.DataType, name: str, parameters: bytes = b"{}") -> bytes:
    """A schema of one column whose metadata names an extension type."""
    metadata = {b"arrow.extension:name": name.encode(), b"arrow.extension:metadata": parameters}
    tamed = stream(pa.schema([pa.field("a", storage, metadata=metadata)]))
    return PLAIN + tamed.replace(b"arrow.extension", b"ARROW:extension")


def test_parameters_that_a_registered_type_refuses_stay_metadata() -> None:
    pa.register_extension_type(Registered())
    try:
        with pytest.warns(SchemaWarning, match=r"column 'a': .* tests.registered .* \(its storage is int32\)"):
            field = unpack(named(pa.int64(), "tests.registered")).schema.field("a")
        with pytest.warns(SchemaWarning, match=r"arrow.opaque .*\(Arrow\w+\)"):
            unpack(named(pa.int64(), "arrow.opaque"))
        # a struct that is stored as a plain one would be decoded otherwise
        assert unpack(named(pa.struct({"x": pa.int32()}), "tests.registered")).schema.types == [
            pa.struct({"x": pa.int32()})
        ]
    finally:
        pa.unregister_extension_type("tests.registered")
    assert field.type == pa.int64()
    assert field.metadata == {b"ARROW:extension:name": b"tests.registered", b"ARROW:extension:metadata": b"{}"}


def test_a_pickle_among_the_parameters_is_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "loaded"),)

    content = named(pa.int64(), "arrow.py_extension_type", pickle.dumps(Bomb()))
    field = unpack(content).schema.field("a")
    assert field.type == pa.int64()
    assert field.metadata[b"ARROW:extension:name"] == b"arrow.py_extension_type"
    assert not (tmp_path / "loaded").exists()


@pytest.mark.fault(57)
@settings(max_examples=rounds(1500))
@given(st.data())
def test_damaged_content_is_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    content = bytearray(pack(RICH, DICTIONARIES))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(6, len(content) - 1))
        change = data.draw(st.sampled_from(["bit", "byte", "word", "cut", "insert"]))
        if change == "bit":
            content[at] ^= 1 << data.draw(st.integers(0, 7))
        elif change == "byte":
            content[at] = data.draw(st.integers(0, 255))
        elif change == "word":
            content[at & ~3 : (at & ~3) + 4] = data.draw(
                st.sampled_from([b"\xff\xff\xff\xff", bytes(4), b"\xff\xff\xff\x7f", b"\0\0\0\x80"])
            )
        elif change == "cut":
            del content[at : at + data.draw(st.integers(1, 16))]
        else:
            content[at:at] = data.draw(st.binary(max_size=16))
    try:
        found = unpack(bytes(content))
    except EmbeddedSchemaUnreadable:
        return
    str(found.schema)
    for values in found.dictionaries.values():
        values.validate(full=True)


def test_ordered_categories_in_nested_columns_of_earlier_versions_are_read_without_their_order() -> None:
    def nested(ordered: bool) -> pa.Schema:
        type_ = pa.list_(pa.list_(pa.dictionary(pa.int8(), pa.string(), ordered=ordered)))
        return pa.schema([pa.field("x", type_, metadata={b"tfrecord_io.encoding": b"nested"})])

    assert unpack(pack(nested(ordered=True))).schema.equals(nested(ordered=False), check_metadata=True)
