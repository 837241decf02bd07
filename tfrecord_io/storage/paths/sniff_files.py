"""Find TFRecord files by their content, in directories where no name is that of one."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tfrecord_io.errors import CompressionError
from tfrecord_io.format.framing import HEADER_BYTES, is_record_header
from tfrecord_io.storage.filesystem.base import Entry, FileSystem
from tfrecord_io.storage.read.open_stream import open_source
from tfrecord_io.storage.read.source import source_of

MOST_SNIFFED = 1000  # files: a directory with more of them is rather one of images
_MOST_READERS = 16


def files_with_records(fs: FileSystem, files: Sequence[Entry]) -> list[Entry]:
    """Those that begin with a record header, decompressed if need be; none if there are over `MOST_SNIFFED` files."""
    regular = [entry for entry in files if entry.size]  # a FIFO or a dangling link has no size
    if not regular or len(files) > MOST_SNIFFED:
        return []
    with ThreadPoolExecutor(min(_MOST_READERS, len(regular)), thread_name_prefix="tfrecord_io") as pool:
        matches = pool.map(lambda entry: _begins_with_record(fs, entry), regular)
        return [entry for entry, match in zip(regular, matches, strict=True) if match]


def _begins_with_record(fs: FileSystem, entry: Entry) -> bool:
    head = memoryview(bytearray(HEADER_BYTES))
    done = 0
    try:
        stream = open_source(source_of(fs, entry))
        try:
            while done < len(head) and (n := stream.readinto(head[done:])):
                done += n
        finally:
            stream.close()
    except (CompressionError, FileNotFoundError):  # other data, or removed since the directory was listed
        return False
    return is_record_header(bytes(head[:done]))
