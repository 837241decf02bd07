"""Tests of read/verifying/record_check.py: the records of one block, without a file."""

from __future__ import annotations

import pyarrow as pa
import pytest

from records import blobs, example, floats, framed, int64s
from tfrecord_io.bytes.engine.contract import FaultCode
from tfrecord_io.bytes.format.feature_types import Kind
from tfrecord_io.columns.schema.embedded import field_bytes, pack
from tfrecord_io.read.verifying.record_check import FileContents, RecordChecker

INTEGER, OTHER_INTEGER = example(x=int64s(1)), example(x=int64s(2, 3))
FLOAT, WITH_NEW_NAME = example(x=floats(0.5)), example(x=int64s(4), y=blobs(b"a"))


def checker(contents: FileContents, record_type: str | None = None) -> RecordChecker:
    return RecordChecker(contents, "a.tfrecord", record_type, max_record_bytes=1 << 20)


def with_schema(schema: pa.Schema, payload: bytes) -> bytes:
    return payload + field_bytes(pack(schema))


def test_the_first_record_with_values_decides_the_type_of_a_feature() -> None:
    contents = FileContents()
    records = checker(contents)
    assert records.feed(framed(INTEGER), final=False).records == 1
    assert contents.kinds == {("x", False): Kind.INT64}
    progress = records.feed(framed(OTHER_INTEGER, FLOAT), final=True)
    assert progress.records == 1
    assert progress.fault is not None
    assert (progress.fault.code, progress.fault.record, progress.fault.feature) == (FaultCode.KIND, 1, "x")
    records.finish()
    assert contents.counts.seen == 2


def test_of_bytes_only_frames_are_checked() -> None:
    records = checker(FileContents(), "bytes")
    data = framed(b"no message", b"")
    progress = records.feed(data, final=True)
    assert (progress.records, progress.consumed) == (2, len(data))
    damaged = data[:-1] + bytes([data[-1] ^ 1])
    fault = records.feed(damaged, final=True).fault
    assert fault is not None
    assert fault.code is FaultCode.PAYLOAD_CRC


@pytest.mark.parametrize(
    ("payload", "is_joined"), [(OTHER_INTEGER, True), (WITH_NEW_NAME, False)], ids=["known", "new name"]
)
def test_a_part_is_joined_if_it_brings_nothing_new(payload: bytes, is_joined: bool) -> None:
    contents = FileContents()
    records = checker(contents)
    records.feed(framed(INTEGER), final=False)
    part = records.part()
    data = framed(payload, payload)
    read, consumed, fault = part(data, True)
    assert fault is None
    assert (read, consumed) == (2, len(data))
    assert records.join(part) is is_joined
    records.finish()
    assert contents.counts.seen == (3 if is_joined else 1)


def test_a_part_with_an_older_plan_is_not_joined() -> None:
    records = checker(FileContents())
    records.feed(framed(INTEGER), final=False)
    part = records.part()
    records.feed(framed(WITH_NEW_NAME), final=False)
    part(framed(INTEGER), True)
    assert not records.join(part)


def test_embedded_schemas_are_compared() -> None:
    contents = FileContents()
    records = checker(contents)
    schema = pa.schema({"x": pa.int64()})
    data = framed(with_schema(schema, INTEGER))
    progress = records.feed(data, final=True)
    assert (progress.records, len(progress.embedded)) == (0, 1)
    assert records.check_schema(progress.embedded[0], 0, 0) is None
    assert contents.schema is not None
    assert contents.schema.schema.names == ["x"]
    assert records.feed(data, final=True).records == 1
    error = records.check_schema(pack(pa.schema({"x": pa.list_(pa.int64())})), 7, 70)
    assert error is not None
    assert (error.record, error.offset, error.path) == (7, 70, "a.tfrecord")
    unreadable = records.check_schema(b"no schema", 8, 80)
    assert unreadable is not None
