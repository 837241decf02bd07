"""Payloads are read as they were written, whatever their bytes, the compression and the blocks."""

from __future__ import annotations

import io
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import framed, written
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.testing.codec_suite import read

payloads = st.lists(st.binary(max_size=200) | st.sampled_from([b"", bytes(5000)]), max_size=12)


@given(payloads=payloads, suffix=st.sampled_from(["", *CODECS.suffixes()]))
def test_payloads_are_read_as_they_were_written(payloads: list[bytes], suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.tfrecord" + suffix)
        with tfr.RecordWriter(path) as writer:
            for payload in payloads:
                writer.write(payload)
        content = Path(path).read_bytes()
        assert read(content, CODECS.of_path(path))[0] == framed(*payloads)
        with tfr.RecordReader(path) as reader:
            assert list(reader) == payloads


def test_each_record_is_a_copy(engine: str, tmp_path: Path) -> None:
    values = [bytes([i]) * 1000 for i in range(200)]
    path = written(tmp_path / "a", values * 40)  # more than a block
    reader = tfr.RecordReader(path)
    held = [next(reader) for _ in range(3)]
    rest = list(reader)
    assert all(type(record) is bytes for record in rest)
    assert held + rest == values * 40


def test_many_files_and_file_objects(engine: str, tmp_path: Path) -> None:
    for i in range(3):
        written(tmp_path / f"{i}.tfrecord", [b"%d" % i] * i)
    assert list(tfr.RecordReader(tmp_path)) == [b"1", b"2", b"2"]
    assert list(tfr.RecordReader(f"{tmp_path}/*.tfrecord")) == [b"1", b"2", b"2"]
    file = io.BytesIO()
    with tfr.RecordWriter(file) as writer:
        writer.write(b"in memory")
    assert not file.closed
    assert file.getvalue() == framed(b"in memory")
    file.seek(0)
    assert list(tfr.RecordReader(file)) == [b"in memory"]


def test_damage_comes_after_the_records_before_it(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [b"a", b"b", b"c"])
    content = bytearray(path.read_bytes())
    content[17 + 12] ^= 1
    path.write_bytes(content)
    reader = tfr.RecordReader(path)
    assert next(reader) == b"a"
    with pytest.raises(tfr.errors.CorruptRecordError, match="payload CRC mismatch") as caught:
        next(reader)
    assert (caught.value.record, caught.value.offset, caught.value.records_intact) == (1, 17, 1)
    with pytest.warns(tfr.errors.StoppedEarlyWarning) as warned:
        assert list(tfr.RecordReader(path, on_error="stop")) == [b"a"]
    assert warned[0].filename == __file__
    assert list(tfr.RecordReader(tfr.dataset(path, check_crc=False))) == [b"a", bytes([content[29]]), b"c"]


def test_a_closed_reader_raises(engine: str, tmp_path: Path) -> None:
    reader = tfr.RecordReader(written(tmp_path / "a", [b"a", b"b"]))
    next(reader)
    reader.close()
    for use in (iter, next, list):
        with pytest.raises(ValueError, match="the reader is closed"):
            use(reader)


def test_a_consumed_reader_raises_as_a_reader_of_batches(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1, 2]}, path)
    with tfr.RecordReader(path) as records, tfr.open_reader(path) as batches:
        next(records)
        assert len(list(records)) == 1  # the rest, as nothing has ended yet
        list(batches)
        for reader in (records, batches):
            assert next(reader, None) is None
            with pytest.raises(ValueError, match="the reader has been consumed; open it again"):
                list(reader)


def test_an_error_is_raised_again(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [b"a", b"b"])
    path.write_bytes(path.read_bytes()[:-1])
    reader = tfr.RecordReader(path)
    assert next(reader) == b"a"
    for _ in range(2):
        with pytest.raises(tfr.errors.TruncatedRecordError):
            next(reader)
    assert isinstance(reader.fault, tfr.errors.TruncatedRecordError)


def test_options_are_checked_before_reading(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [b"abc"])
    for value in ("leave", "ignore"):
        with pytest.raises(ValueError, match="on_error"):
            tfr.RecordReader(path, on_error=value)
    with pytest.raises(FileNotFoundError, match="gone"):
        tfr.RecordReader(tmp_path / "gone")
    with pytest.raises(ValueError, match="compression"):
        list(tfr.RecordReader(tfr.dataset(path, compression="lzma2")))
    with pytest.raises(tfr.errors.CorruptRecordError, match=r"limits=tfr\.Limits\(record_bytes="):
        list(tfr.RecordReader(tfr.dataset(path, limits=tfr.Limits(record_bytes=2))))
    with pytest.raises(TypeError):
        tfr.RecordReader(path, columns=["a"])
