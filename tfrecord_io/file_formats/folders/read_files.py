"""Whole files, read by several threads in order."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from tfrecord_io.background import ordered
from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.errors import DamagedDataWarning, EncodeError, printable, warn
from tfrecord_io.options.checked_options import check_choice, check_integer, cpu_count
from tfrecord_io.storage.filesystem.interface import Entry, FileSystem
from tfrecord_io.storage.filesystem.local import LocalFileSystem
from tfrecord_io.storage.read.source import read_whole

T = TypeVar("T")

REMOTE_READERS = 16
_LARGE = 16 << 20  # a larger file is read in its turn, so that memory holds one of them
_BATCH_BYTES, _BATCH_ROWS = 32 << 20, 4096


def check_reading(on_error: str, threads: int | None, shuffle_seed: int | None) -> None:
    """Raise TypeError or ValueError for keywords of reading files that have no valid value."""
    check_choice("on_error", on_error, ("raise", "skip"))
    check_integer("threads", threads, 1, optional=True)
    check_integer("shuffle_seed", shuffle_seed, 0, optional=True)


def reader_threads(threads: int | None, *filesystems: FileSystem | None) -> int:
    """The value of `threads`; by default the number of CPU cores, or more if a file is not local."""
    is_local = all(isinstance(fs, LocalFileSystem | None) for fs in filesystems)
    return threads or (cpu_count() if is_local else REMOTE_READERS)


def read_files(files: Iterable[tuple[T, Any, Entry | None]], threads: int) -> Generator[tuple[T, bytes | None]]:
    """The content of files, in order; None where there is no entry.

    Threads read up to two files each in advance, if these have at most 16 MiB.

    Raises
    ------
    EncodeError
        A file is too large for a record.
    """
    tasks = (partial(_read, key, fs, entry, in_advance=True) for key, fs, entry in files)
    for key, fs, entry, content in ordered(tasks, threads):
        if entry is not None and content is None:
            content = _read(key, fs, entry, in_advance=False)[3]
        yield key, content


def _read(key: T, fs: Any, entry: Entry | None, *, in_advance: bool) -> tuple[T, Any, Entry | None, bytes | None]:
    if entry is None or (in_advance and (entry.size or 0) > _LARGE):
        return key, fs, entry, None
    content = read_whole(fs, entry, MAX_RECORD_BYTES)
    if len(content) > MAX_RECORD_BYTES:
        reason = f"the file is larger than a record can be, {MAX_RECORD_BYTES} bytes"
        raise EncodeError(reason, path=fs.display_path(entry.name), expected=MAX_RECORD_BYTES, got=entry.size)
    return key, fs, entry, content


@dataclass(slots=True)
class LeftOut:
    """How many images, files or annotations are left out, and why the first of them is.

    >>> left_out = LeftOut("images", 1200)
    >>> left_out.add("'a.png' is damaged")
    >>> str(left_out)
    "1 of 1,200 images left out, the first: 'a.png' is damaged"
    """

    kind: str
    total: int
    count: int = 0
    first: str = ""

    def add(self, reason: object, count: int = 1) -> None:
        self.first = self.first or str(reason)
        self.count += count

    def __str__(self) -> str:
        return f"{self.count:,} of {self.total:,} {self.kind} left out, the first: {self.first}"

    def warn(self, path: str) -> None:
        """Warn, if anything is left out."""
        if self.count:
            warn(f"{printable(path)}: {self}", DamagedDataWarning)


def row_batches(rows: Iterable[tuple[Sequence[Any], int]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Batches of rows, each with its size in bytes: a batch ends at the row that makes it large enough.

    >>> schema = pa.schema({"n": pa.int64()})
    >>> [batch["n"].to_pylist() for batch in row_batches([([1], 1), ([2], 64 << 20), ([3], 1)], schema)]
    [[1, 2], [3]]
    """
    batch: list[Sequence[Any]] = []
    size = 0
    for row, row_bytes in rows:
        batch.append(row)
        size += row_bytes
        if size >= _BATCH_BYTES or len(batch) == _BATCH_ROWS:
            yield _batch(batch, schema)
            batch, size = [], 0
    if batch:
        yield _batch(batch, schema)


def _batch(rows: list[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
