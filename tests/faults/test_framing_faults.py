"""Faults 1–25: damaged framing, and files that are not TFRecord files."""

from __future__ import annotations

import io
import pickle
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import blobs, example, framed, header, int64s, written

SECRET = b"SECRETVALUE"
PAYLOADS = [example(n=int64s(i), s=blobs(SECRET + b"%d" % i)) for i in range(4)]
ENDS = [len(framed(*PAYLOADS[: i + 1])) for i in range(4)]


def table_of(path: Any, **keywords: Any) -> int:
    return read_by(tfr.read_table, path, **keywords).num_rows


def bytes_of(path: Any, **keywords: Any) -> int:
    return read_by(tfr.read_table, path, record_type="bytes", **keywords).num_rows


def threads_of(path: Any, **keywords: Any) -> int:
    return read_by(tfr.read_table, path, threads=2, **keywords).num_rows


WHOLE = [table_of, bytes_of, threads_of, lambda path, **k: len(read_by(tfr.read_tfrecord, path, **k))]


def delivered(stream: Any, count: Callable[[Any], int]) -> tuple[int, Exception]:
    """How much an iterator gives before it raises, and what it raises."""
    given = 0
    try:
        for item in stream:
            given += count(item)
    except tfr.TFRecordError as error:
        return given, error
    pytest.fail(f"no error after {given}")


def expect_error(
    path: Path, cls: type[Exception], *, record: int, offset: int, reason: str = "", **keywords: Any
) -> tfr.TFRecordError:
    """Read by every call: the same error, after all intact records; returns it."""
    errors = []
    for read in WHOLE:
        with pytest.raises(cls) as caught:
            read(path, **keywords)
        errors.append(caught.value)
    for more in ({}, {"threads": 2}, {"record_type": "bytes"}, {"schema": {"n": "int64"}}):
        reader = read_by(tfr.open_reader, path, **keywords, **more)
        given, error = delivered(reader, len)
        assert given == record
        assert reader.fault is error
        errors.append(error)
    given, error = delivered(read_by(tfr.RecordReader, path, **keywords), lambda payload: 1)
    assert given == record
    errors.append(error)
    report = tfr.verify(path).files[0] if not keywords else None
    if report is not None:
        assert report.records == record
        errors.append(report.error)
    for error in errors:
        assert type(error) is cls, repr(error)
        assert (error.path, error.record, error.offset, error.records_intact) == (str(path), record, offset, record), (
            repr(error)
        )
        assert reason in error.reason
        check_message(error)
    for read in WHOLE:
        with pytest.warns(tfr.errors.StoppedEarlyWarning):
            assert read(path, on_error="stop", **keywords) == record
    return errors[0]


def check_message(error: tfr.TFRecordError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), vars(again), str(again)) == (type(error), vars(error), str(error))
    assert len(str(error).encode()) <= 1024
    assert str(error).isprintable()
    assert SECRET.decode() not in str(error)
    assert "\n" not in str(error)


@pytest.fixture
def file(tmp_path: Path) -> Callable[[bytes], Path]:
    def make(content: bytes) -> Path:
        path = tmp_path / "a.tfrecord"
        path.write_bytes(content)
        return path

    return make


@pytest.mark.fault(1)
def test_an_empty_file_has_no_records(engine: str, file: Callable[[bytes], Path]) -> None:
    path = file(b"")
    assert [read(path) for read in WHOLE] == [0] * 4
    assert list(tfr.open_reader(path)) == list(tfr.RecordReader(path)) == []
    assert tfr.read_table(path, schema={"n": "int8"}).schema == pa.schema([("n", pa.int8())])
    assert tfr.verify(path).ok
    assert tfr.read_table([path, written(path.with_name("b"), PAYLOADS), path]).num_rows == 4


@pytest.mark.parametrize("record", [0, 1, 3])
@pytest.mark.parametrize(
    ("part", "at"),
    [
        pytest.param("header", 4, marks=pytest.mark.fault(2)),
        pytest.param("header", 11, marks=pytest.mark.fault(2)),
        pytest.param("payload", 12, marks=pytest.mark.fault(3)),
        pytest.param("payload", -5, marks=pytest.mark.fault(3)),
        pytest.param("footer", -4, marks=pytest.mark.fault(4)),
        pytest.param("footer", -1, marks=pytest.mark.fault(4)),
    ],
)
def test_a_truncated_file(engine: str, file: Callable[[bytes], Path], record: int, part: str, at: int) -> None:
    start = ENDS[record - 1] if record else 0
    path = file(framed(*PAYLOADS)[: (start if at > 0 else ENDS[record]) + at])
    error = expect_error(path, tfr.errors.TruncatedRecordError, record=record, offset=start, reason=part)
    assert isinstance(error, EOFError)
    assert isinstance(error.expected, int)
    assert isinstance(error.got, int)


@pytest.mark.parametrize("bit", [0, 7])
@pytest.mark.parametrize("record", [0, 2])
@pytest.mark.parametrize(
    ("at", "reason"),
    [
        pytest.param(0, "length CRC", marks=pytest.mark.fault(5)),
        pytest.param(7, "length CRC", marks=pytest.mark.fault(5)),
        pytest.param(8, "length CRC", marks=pytest.mark.fault(6)),
        pytest.param(11, "length CRC", marks=pytest.mark.fault(6)),
        pytest.param(12, "payload CRC", marks=pytest.mark.fault(7)),
        pytest.param(30, "payload CRC", marks=pytest.mark.fault(7)),
        pytest.param(-4, "payload CRC", marks=pytest.mark.fault(8)),
        pytest.param(-1, "payload CRC", marks=pytest.mark.fault(8)),
    ],
)
def test_a_flipped_bit(engine: str, file: Callable[[bytes], Path], record: int, at: int, reason: str, bit: int) -> None:
    start = ENDS[record - 1] if record else 0
    content = bytearray(framed(*PAYLOADS))
    content[(start if at >= 0 else ENDS[record]) + at] ^= 1 << bit
    error = expect_error(
        file(bytes(content)), tfr.errors.CorruptRecordError, record=record, offset=start, reason=reason
    )
    assert f"0x{error.got:08x}" in str(error)
    assert f"0x{error.expected:08x}" in str(error)


@pytest.mark.parametrize(
    ("length", "cls", "reason"),
    [
        pytest.param(2**63, tfr.errors.CorruptRecordError, str(2**63), marks=pytest.mark.fault(9)),
        pytest.param(2**64 - 1, tfr.errors.CorruptRecordError, str(2**64 - 1), marks=pytest.mark.fault(9)),
        pytest.param(2**31 - 1, tfr.errors.TruncatedRecordError, "payload", marks=pytest.mark.fault(10)),
        pytest.param(2**31, tfr.errors.CorruptRecordError, "2147483647", marks=pytest.mark.fault(11)),
        pytest.param(2**40, tfr.errors.CorruptRecordError, "2147483647", marks=pytest.mark.fault(11)),
    ],
)
def test_a_wrong_length_with_a_valid_crc(
    engine: str, file: Callable[[bytes], Path], length: int, cls: type[Exception], reason: str
) -> None:
    path = file(framed(*PAYLOADS[:2]) + header(length) + b"some bytes")
    tracemalloc.start()
    error = expect_error(path, cls, record=2, offset=ENDS[1], reason=reason)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100 << 20
    assert error.got is not None


@pytest.mark.fault(11)
def test_a_record_over_the_limit_of_its_bytes(engine: str, file: Callable[[bytes], Path]) -> None:
    path = file(framed(*PAYLOADS, example(s=blobs(bytes(100)))))
    limits = tfr.Limits(record_bytes=99)
    place: dict[str, Any] = {"record": 4, "offset": ENDS[3]}
    error = expect_error(path, tfr.errors.CorruptRecordError, **place, reason="limit of 99", limits=limits)
    assert error.expected == 99
    assert "limits=tfr.Limits(record_bytes=" in str(error)
    assert table_of(path, limits=tfr.Limits(record_bytes=150)) == 5


@pytest.mark.fault(12)
def test_an_empty_payload_is_a_record(engine: str, file: Callable[[bytes], Path]) -> None:
    path = file(framed(b"", PAYLOADS[1], b""))
    assert tfr.read_table(path)["n"].to_pylist() == [None, 1, None]
    assert list(tfr.RecordReader(path)) == [b"", PAYLOADS[1], b""]


@pytest.mark.fault(13)
@pytest.mark.parametrize("zeros", [12, 16, 100, 5 << 20])
def test_a_gap_of_zeros_is_corrupt(engine: str, file: Callable[[bytes], Path], zeros: int) -> None:
    expect_error(
        file(framed(*PAYLOADS[:2]) + bytes(zeros) + framed(*PAYLOADS[2:])),
        tfr.errors.CorruptRecordError,
        record=2,
        offset=ENDS[1],
    )
    expect_error(file(bytes(zeros)), tfr.errors.CorruptRecordError, record=0, offset=0, reason="zeros")


def arrow_file() -> bytes:
    sink = io.BytesIO()
    pyarrow.feather.write_feather(pa.table({"x": [1]}), sink)
    return sink.getvalue()


def parquet_file() -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pa.table({"x": [1]}), sink)
    return sink.getvalue()


FOREIGN = [
    pytest.param(b"SECRETVALUE,b\n1,2\n", "plain text", marks=pytest.mark.fault(14)),
    pytest.param(b'{"a": 1}\n', "JSON", marks=pytest.mark.fault(14)),
    pytest.param(b"\x89PNG\r\n\x1a\n" + bytes(40), "a PNG image", marks=pytest.mark.fault(15)),
    pytest.param(parquet_file(), "a Parquet file", marks=pytest.mark.fault(16)),
    pytest.param(arrow_file(), "an Arrow IPC (Feather) file", marks=pytest.mark.fault(16)),
    pytest.param(
        bytes.fromhex("83af70d10d884a3f") + bytes(60), "a Riegeli or ArrayRecord file", marks=pytest.mark.fault(17)
    ),
    pytest.param(b"\x93NUMPY\x01\x00" + bytes(60), "a NumPy .npy file", marks=pytest.mark.fault(17)),
    pytest.param(b"PK\x03\x04" + bytes(60), "a zip archive", marks=pytest.mark.fault(17)),
    pytest.param(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer", marks=pytest.mark.fault(25)
    ),
    pytest.param(b"<!DOCTYPE html><html><body>404</body></html>", "HTML", marks=pytest.mark.fault(25)),
]


@pytest.mark.parametrize(("content", "looks"), FOREIGN)
def test_another_format_is_named(engine: str, file: Callable[[bytes], Path], content: bytes, looks: str) -> None:
    error = expect_error(
        file(content), tfr.errors.CorruptRecordError, record=0, offset=0, reason="not TFRecord: looks like "
    )
    assert looks in error.reason
    assert looks in str(error.got)


def changed(content: bytes, record: int, kind: str) -> bytes:
    """A file in which a record, but no other, was changed as some program may do it."""
    begin, end = ENDS[record] - len(framed(PAYLOADS[record])), ENDS[record]
    if kind == "text mode":
        return content[:begin] + content[begin:end].replace(b"\n", b"\r\n") + content[end:]
    at = begin + 20
    return content[:at] + b"\0" * 7 + content[at:] if kind == "inserted" else content[:at] + content[at + 7 :]


@pytest.mark.fault(18)
@pytest.mark.parametrize("record", [0, 1, 2])
@pytest.mark.parametrize("kind", ["text mode", "inserted", "deleted"])
def test_text_mode_and_bytes_inserted_or_deleted(
    engine: str, file: Callable[[bytes], Path], record: int, kind: str
) -> None:
    """All records before are intact; those behind, which have other offsets now, come back with ``skip``."""
    path = file(changed(framed(*PAYLOADS), record, kind))
    assert path.stat().st_size != ENDS[-1]
    start = ENDS[record - 1] if record else 0
    expect_error(path, tfr.errors.CorruptRecordError, record=record, offset=start)
    with tfr.RecordReader(path, on_error="skip") as records, pytest.warns(tfr.errors.DamagedDataWarning):
        assert list(records) == PAYLOADS[:record] + PAYLOADS[record + 1 :]


@pytest.mark.fault(18)
def test_text_mode_anywhere(engine: str, file: Callable[[bytes], Path]) -> None:
    """Every LF of the file has become CR LF, in lengths and checksums too."""
    payloads = [example(n=int64s(i), s=blobs(b"x" * (10 + i))) for i in range(64)]
    whole = framed(*payloads)
    hit = [b"\n" in framed(payload) for payload in payloads]
    path = file(whole.replace(b"\n", b"\r\n"))
    assert all(hit)  # the tag of an Example is an LF
    with pytest.raises(tfr.errors.CorruptRecordError) as caught:
        tfr.read_table(path)
    assert caught.value.record == 0


@pytest.mark.fault(19)
def test_concatenated_files_are_one(engine: str, file: Callable[[bytes], Path]) -> None:
    path = file(framed(*PAYLOADS) + framed() + framed(*PAYLOADS))
    assert tfr.read_table(path)["n"].to_pylist() == [0, 1, 2, 3] * 2
    tfr.write_tfrecord({"n": [1, 2]}, path)
    path.write_bytes(path.read_bytes() * 3)
    assert tfr.read_table(path)["n"].to_pylist() == [1, 2] * 3


@pytest.mark.fault(20)
@pytest.mark.parametrize(
    "junk", [b"\n", b"junk", b"0123456789ab", b"text that follows\n" * 9, bytes(11), bytes(range(255, 55, -1))]
)
def test_junk_behind_the_last_record(engine: str, file: Callable[[bytes], Path], junk: bytes) -> None:
    cls = tfr.errors.TruncatedRecordError if len(junk) < 12 else tfr.errors.CorruptRecordError
    expect_error(file(framed(*PAYLOADS) + junk), cls, record=4, offset=ENDS[3])


@pytest.mark.parametrize(
    "cls", [tfr.errors.CompressionError, tfr.errors.FeatureNotFoundError, tfr.errors.MissingDependencyError]
)
def test_errors_keep_their_path_when_pickled(cls: type[tfr.TFRecordError]) -> None:
    """An OSError, a KeyError and an ImportError, each with attributes of its own."""
    error = pickle.loads(pickle.dumps(cls("damaged", path="a.tfrecord", record=3)))
    assert (type(error), error.path, str(error)) == (cls, "a.tfrecord", "a.tfrecord: record 3: damaged")
