"""The embedded schema's limits, and streams that Arrow reads but this package never writes."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain

import pyarrow as pa
import pytest

from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.schema.column_features import FEATURE_KEY
from tfrecord_io.columns.schema.embedded import EmbeddedSchemaUnreadable, embedded_schema, pack, unpack
from tfrecord_io.columns.schema.tensor_types import tensor_field
from tfrecord_io.errors import SchemaError

PLAIN = b"TFRA\x01\x00"
LIMIT = 16 << 20
CATEGORIES = pa.schema([("d", pa.dictionary(pa.int8(), pa.string()))])


def with_metadata(size: int) -> pa.Schema:
    """A schema with one number of bytes as metadata."""
    return pa.schema([("a", pa.int8())], metadata={b"big": bytes(size)})


def stream_size(schema: pa.Schema) -> int:
    sink = pa.MockOutputStream()
    pa.ipc.new_stream(sink, schema).close()
    return int(sink.size())


def test_a_schema_of_16_mib_is_the_largest() -> None:
    largest = with_metadata(LIMIT - stream_size(with_metadata(800)) + 800)
    assert stream_size(largest) == LIMIT
    assert unpack(pack(largest)).schema.equals(largest, check_metadata=True)
    with pytest.raises(SchemaError):
        pack(with_metadata(len(largest.metadata[b"big"]) + 8))


def test_content_of_16_mib_is_the_longest() -> None:
    content = pack(pa.schema([("a", pa.int8())]))
    longest = content + bytes(LIMIT - len(content))
    assert unpack(longest).schema.names == ["a"]
    with pytest.raises(EmbeddedSchemaUnreadable, match="above the limit of 16777216"):
        unpack(longest + b"\0")


def test_a_stream_that_inflates_to_16_mib_is_the_longest() -> None:
    for size, reason in ((LIMIT, "is not a stream"), (LIMIT + 1, "inflates to more than 16777216 bytes")):
        with pytest.raises(EmbeddedSchemaUnreadable, match=reason):
            unpack(b"TFRA\x01\x01" + zlib.compress(bytes(size), 1))


def test_categories_of_1_mib_are_the_largest() -> None:
    for size, kept in ((1 << 20, True), ((1 << 20) + 1, False)):
        values = pa.array(["x" * (size - 4)])
        assert values.nbytes == size
        assert bool(unpack(pack(CATEGORIES, {"d": values})).dictionaries) == kept


def test_a_schema_without_categories_has_no_batch() -> None:
    assert list(pa.ipc.open_stream(pack(CATEGORIES)[6:])) == []


def test_what_a_field_says_about_reading_is_removed() -> None:
    described = pa.field("a", pa.int8(), metadata={FEATURE_KEY: b"b", b"unit": b"m"})
    assert embedded_schema(pa.schema([described])).field("a").metadata == {b"unit": b"m"}


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Dtype.of_name("bfloat16")
    content = pack(embedded_schema(pa.schema([tensor_field("x", row, (2,))])))
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    monkeypatch.delitem(row.__dict__, "dtype")  # as in a process that has not loaded it
    Dtype.of_name.cache_clear()
    with pytest.raises(EmbeddedSchemaUnreadable, match="cannot be used"):
        unpack(content)


@pytest.mark.parametrize(("name", "storage"), [(b"arrow.uuid", pa.int8()), (b"arrow.bool8", pa.int16())])
def test_an_extension_over_another_storage_is_that_storage(name: bytes, storage: pa.DataType) -> None:
    field = pa.field("x", storage, metadata={b"arrow.extension:name": name, b"arrow.extension:metadata": b""})
    content = pack(pa.schema([field])).replace(b"arrow.extension", b"ARROW:extension")
    assert unpack(content).schema.field("x").type == storage


# --- categories


@pytest.mark.parametrize(("count", "kept"), [(LIMIT, True), (LIMIT + 1, False)])
def test_categories_of_no_bytes_are_limited_in_number(count: int, kept: bool) -> None:
    values = pa.FixedSizeBinaryArray.from_buffers(pa.binary(0), count, [None, pa.py_buffer(b"")])
    array = pa.DictionaryArray.from_arrays(pa.array([], pa.int32()), values)
    batch = pa.record_batch({"d": array})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content = PLAIN + sink.getvalue().to_pybytes()
    if kept:
        assert len(unpack(content).dictionaries["d"]) == count
    else:
        with pytest.raises(EmbeddedSchemaUnreadable, match="a dictionary that is too long"):
            unpack(content)


def test_categories_in_structs_in_structs() -> None:
    struct = pa.struct([("x", pa.int8()), ("b", pa.struct([("y", pa.int8()), ("c", CATEGORIES.field("d").type)]))])
    schema = embedded_schema(pa.schema([("a", struct)]))
    assert unpack(pack(schema, {"a/b/c": pa.array(["u", "v"])})).dictionaries["a/b/c"].to_pylist() == ["u", "v"]


@pytest.mark.fault(57)
def test_the_name_of_a_time_zone_is_text() -> None:
    content = pack(pa.schema([("t", pa.timestamp("s", "Europe/Paris"))]))
    with pytest.raises(EmbeddedSchemaUnreadable, match=r"damaged \(UnicodeDecodeError\)"):
        unpack(content.replace(b"Europe/Paris", b"Europe/Par\xff\xff"))


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"\0\0\0\0\4\0\0\0\x08\0\0\0", b"\0\0\0\0\x64\0\0\0\x08\0\0\0"), (b"aaaabbbb", b"\xff\xff\xff\xffbbbb")],
    ids=["offsets", "text"],
)
@pytest.mark.fault(57)
def test_categories_are_checked(before: bytes, after: bytes) -> None:
    content = pack(CATEGORIES, {"d": pa.array(["aaaa", "bbbb"])})
    assert content.count(before) == 1
    with pytest.raises(EmbeddedSchemaUnreadable, match="damaged"):
        unpack(content.replace(before, after))


def messages(*values: list[str], **options: object) -> Iterator[pa.Message]:
    """Those of a stream with a batch for each list of categories: the schema, then dictionaries and batches."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, CATEGORIES, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for categories in values:
            array = pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), pa.array(categories))
            writer.write_batch(pa.record_batch([array], schema=CATEGORIES))
    return iter(pa.ipc.MessageReader.open_stream(sink.getvalue()))


def content_of(parts: list[pa.Message]) -> bytes:
    """An embedded schema of these messages and the mark of the end."""
    return PLAIN + b"".join(part.serialize().to_pybytes() for part in parts) + b"\xff\xff\xff\xff\0\0\0\0"


def test_a_stream_of_messages_is_read() -> None:
    schema, dictionary, batch = messages(["x", "y"])
    assert unpack(content_of([schema, dictionary, batch])).dictionaries["d"].to_pylist() == ["x", "y"]
    assert unpack(content_of([schema])).dictionaries == {}


@pytest.mark.fault(57)
def test_other_sequences_of_messages_are_refused() -> None:
    schema, dictionary, batch = messages(["x", "y"])
    for parts in (
        [],
        [batch],
        [schema, dictionary],
        [schema, batch, batch],
        [schema, dictionary, batch, batch],
        [schema, dictionary, batch, dictionary],
        [schema, schema, dictionary, batch],
    ):
        with pytest.raises(EmbeddedSchemaUnreadable):
            unpack(content_of(parts))


@pytest.mark.fault(57)
def test_two_batches_are_refused() -> None:
    """Also of a schema without categories, of which Arrow reads the first one."""
    batch, sink = pa.record_batch({"a": pa.array([], pa.int8())}), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    schema, part = pa.ipc.MessageReader.open_stream(sink.getvalue())
    assert unpack(content_of([schema, part])).schema.names == ["a"]
    with pytest.raises(EmbeddedSchemaUnreadable, match="not a stream of one schema"):
        unpack(content_of([schema, part, part]))


@pytest.mark.fault(57)
def test_categories_in_parts_are_refused() -> None:
    schema, dictionary, batch, delta, _ = messages(["x"], ["x", "y"], emit_dictionary_deltas=True)
    with pytest.raises(EmbeddedSchemaUnreadable, match="a dictionary in parts"):
        unpack(content_of([schema, dictionary, delta, batch]))
    assert unpack(content_of([schema, dictionary, batch])).dictionaries["d"].to_pylist() == ["x"]
    whole, found = delta.serialize().to_pybytes(), []
    for at in (
        at for at, byte in enumerate(whole[: len(delta.metadata) + 8]) if byte == 1
    ):  # one is DictionaryBatch.isDelta
        content = content_of([schema, dictionary, batch])
        replaced = whole[:at] + b"\0" + whole[at + 1 :]
        with suppress(EmbeddedSchemaUnreadable):
            found.append(
                unpack(content.replace(dictionary.serialize().to_pybytes(), replaced)).dictionaries["d"].to_pylist()
            )
    assert ["y"] in found


@pytest.mark.fault(57)
def test_categories_that_are_compressed_are_refused() -> None:
    """Also where the batch is not."""
    plain, packed = (list(messages(["a" * 1000], **options)) for options in ({}, {"compression": "zstd"}))
    for dictionary, batch in ((packed[1], plain[2]), (plain[1], packed[2])):
        with pytest.raises(EmbeddedSchemaUnreadable, match="compressed"):
            unpack(content_of(list(chain(plain[:1], [dictionary, batch]))))
