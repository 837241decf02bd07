"""Whole files, read by several threads in order."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from functools import partial
from typing import Any, TypeVar

from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.errors import EncodeError
from tfrecord_io.storage.filesystem.base import Entry
from tfrecord_io.storage.read.source import read_whole
from tfrecord_io.write.in_order import in_order

T = TypeVar("T")

_LARGE = 16 << 20  # a larger file is read in its turn, so that memory holds one of them
REMOTE_READERS = 16


def read_files(files: Iterable[tuple[T, Any, Entry | None]], threads: int) -> Generator[tuple[T, bytes | None]]:
    """The content of files, in order; None where there is no entry.

    Threads read up to two files each in advance, if these have at most 16 MiB.

    Raises
    ------
    EncodeError
        A file is too large for a record.
    """
    tasks = (partial(_read, key, fs, entry, in_advance=True) for key, fs, entry in files)
    for key, fs, entry, content in in_order(tasks, threads):
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
