"""Faults 22–24: very large files, files that change, unreadable files; and which of several faults is reported."""

from __future__ import annotations

import gzip
import io
import os
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from records import blobs, example, framed, header, int64s, written

PAYLOADS = [example(n=int64s(i)) for i in range(4)]


class Virtual(io.RawIOBase):
    """Records of a MiB each, whose payloads are whatever was in the buffer, and `tail` behind them: nothing is held."""

    SIZE = 1 << 20

    def __init__(self, count: int, tail: bytes) -> None:
        head = header(self.SIZE - 16)
        self.at, self.end = 0, count * self.SIZE
        self.head, self.tail = head, tail

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = min(len(buffer), self.end + len(self.tail) - self.at)
        for number in range(self.at // self.SIZE, (self.at + n) // self.SIZE + 1):
            start = number * self.SIZE
            content = self.head if start < self.end else self.tail
            begin, stop = max(start, self.at), min(start + len(content), self.at + n)
            if begin < stop:
                buffer[begin - self.at : stop - self.at] = content[begin - start : stop - start]
        self.at += n
        return n


@pytest.mark.fault(22)
def test_offsets_beyond_4_gib(engine: str) -> None:
    count = 4200
    end = count * Virtual.SIZE
    good = framed(PAYLOADS[0], PAYLOADS[1])
    reader = tfr.open_reader(
        tfr.dataset(Virtual(count, good + b"\0" * 12), offset=count - 1, check_crc=False, record_type="bytes")
    )
    rows = []
    with pytest.raises(tfr.errors.CorruptRecordError) as caught:
        rows.extend(len(value) for batch in reader for value in batch["record"].to_pylist())
    assert rows == [Virtual.SIZE - 16, len(PAYLOADS[0]), len(PAYLOADS[1])]
    assert (caught.value.record, caught.value.offset) == (count + 2, end + len(good))
    assert end + len(good) > 2**32
    with pytest.raises(tfr.errors.DecodeError) as caught:
        tfr.read_table(tfr.dataset(Virtual(count, framed(b"", b"\x0a\xff")), offset=count, check_crc=False, threads=2))
    assert (caught.value.record, caught.value.offset) == (count + 1, end + 16)


@pytest.mark.fault(23)
def test_a_file_that_shrinks_or_changes_while_it_is_read(engine: str, tmp_path: Path) -> None:
    rows = [example(n=int64s(i), s=blobs(bytes(1 << 20))) for i in range(24)]
    for threads in (1, 2):
        path = written(tmp_path / "a", rows)
        reader = tfr.open_reader(tfr.dataset(path, sample=1, threads=threads), batch_size=1)
        next(reader)
        os.truncate(path, 100)
        with pytest.raises((tfr.errors.TruncatedRecordError, OSError)):
            list(reader)
        path = written(tmp_path / "b", rows)
        reader = tfr.open_reader(tfr.dataset(path, sample=1, threads=threads), batch_size=1)
        next(reader)
        with path.open("r+b") as over:
            over.seek(12 << 20)
            over.write(b"\xa5" * (11 << 20))
        with pytest.raises(tfr.errors.CorruptRecordError):
            list(reader)


OPENED: dict[str, Callable[[Path], Any]] = {
    "open_reader": lambda path: tfr.open_reader(tfr.dataset(path, sample=1, threads=1), batch_size=1),
    "open_reader, threads": lambda path: tfr.open_reader(tfr.dataset(path, sample=1, threads=2), batch_size=1),
    "RecordReader": tfr.RecordReader,
    "iter_arrays": lambda path: tfr.iter_arrays(
        tfr.dataset(path, threads=2), batch_size=1, schema={"n": "int64", "s": "binary"}
    ),
}


LARGE = 48  # records of half a MiB


@cache
def large_file(compression: str | None) -> bytes:
    """Larger than what readers read ahead."""
    noise = random.Random(0).randbytes(1 << 19)
    content = framed(*[example(n=int64s(i), s=blobs(bytes([i]) + noise)) for i in range(LARGE)])
    return content if compression is None else gzip.compress(content, 0)


@pytest.mark.matrix
@pytest.mark.fault(23)
@pytest.mark.parametrize("opened", OPENED.values(), ids=OPENED)
@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("change", ["cut", "emptied", "overwritten", "replaced", "deleted"])
def test_every_reader_of_a_file_that_changes(
    engine: str, tmp_path: Path, opened: Callable[[Path], Any], compression: str | None, change: str
) -> None:
    """What is behind an open file stays readable if another takes its name; changed content is an error."""
    path = tmp_path / "a.tfrecord"
    path.write_bytes(large_file(compression))
    size = path.stat().st_size
    with opened(path) as reader:
        next(reader)
        if change == "cut":
            os.truncate(path, size - 5)
        elif change == "emptied":
            os.truncate(path, 0)
        elif change == "overwritten":
            with path.open("r+b") as file:
                file.seek(-(1 << 19), os.SEEK_END)
                file.write(b"\xa5" * (1 << 18))
        elif change == "replaced":
            os.replace(written(tmp_path / "b", PAYLOADS), path)
        else:
            path.unlink()
        if change in ("replaced", "deleted"):
            assert len(list(reader)) == LARGE - 1
        else:
            with pytest.raises((tfr.errors.CorruptRecordError, tfr.errors.CompressionError, OSError)):
                list(reader)


@pytest.mark.fault(24)
def test_missing_directory_and_no_permission(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for read in (
        tfr.read_table,
        tfr.open_reader,
        tfr.read_tfrecord,
        tfr.RecordReader,
        tfr.verify,
        tfr.read_metadata,
        tfr.infer_schema,
    ):
        for gone in (tmp_path / "gone", f"{tmp_path}/gone*", f"{tmp_path}/gone@3", tmp_path / "gone" / "a", tmp_path):
            with pytest.raises(FileNotFoundError, match="gone" if gone is not tmp_path else tmp_path.name):
                read(gone)
    with pytest.raises(IsADirectoryError, match=tmp_path.name):
        tfr.RecordWriter(tmp_path)
    locked = written(tmp_path / "locked", PAYLOADS)

    def refuse(*args: Any, **keywords: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(locked))

    monkeypatch.setattr("builtins.open", refuse)
    for read in (tfr.read_table, tfr.open_reader, lambda path: list(tfr.RecordReader(path))):
        with pytest.raises(PermissionError, match="locked"):
            read(locked)


@pytest.mark.fault(7)
def test_the_lowest_record_of_several_faults_wins(engine: str, tmp_path: Path) -> None:
    def file(content: bytes) -> Path:
        path = tmp_path / "a"
        path.write_bytes(content)
        return path

    bad = framed(b"\x0a\xff")
    flipped = bytearray(framed(PAYLOADS[1]))
    flipped[-1] ^= 1
    corrupt_first = file(framed(PAYLOADS[0]) + bytes(flipped) + bad + b"\0" * 12)
    for threads in (1, 2):
        with pytest.raises(tfr.errors.CorruptRecordError) as caught:
            tfr.read_table(tfr.dataset(corrupt_first, threads=threads))
        assert caught.value.record == 1
    undecodable_first = file(framed(PAYLOADS[0]) + bad + bytes(flipped))
    for threads in (1, 2):
        with pytest.raises(tfr.errors.DecodeError) as error:
            tfr.read_table(tfr.dataset(undecodable_first, threads=threads))
        assert (error.value.record, error.value.offset) == (1, len(framed(PAYLOADS[0])))
