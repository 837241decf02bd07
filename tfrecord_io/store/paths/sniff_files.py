"""Find TFRecord files by their content, among those whose names are not those of TFRecord files.

Tests: tests/store/paths/test_resolve_shards.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tfrecord_io.base import ordered
from tfrecord_io.bytes import FrameHeader
from tfrecord_io.errors import CompressionError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.paths.resolve_output import OtherSuffix
from tfrecord_io.store.read.source import Source

# Suffixes of files that are not looked into. They only save requests: what may be written is decided elsewhere.
_NEVER_RECORDS = frozenset(
    ".txt .xml .html .yaml .yml .toml .md .py .log .xls .xlsx .avro .sqlite .db .lance .nc .hdf "
    ".mat .pkl .pickle .joblib .pt .pth .ckpt .safetensors .onnx .zip .tgz .bz2 .xz .lzma .snappy .br .7z "
    ".jpg .jpeg .png .gif .webp .wav .mp4".split()
)
MOST_SNIFFED = 1000  # a directory with more files is rather one of images
MOST_CHECKED = 100  # files next to those that are read
_MOST_READERS = 16


def files_with_records(fs: FileSystem, files: Sequence[Entry], *, most: int | None = None) -> list[Entry]:
    """Files whose (decompressed) content begins with a record header; none if there are over `most` files.

    `most` is `MOST_SNIFFED` by default.
    """
    regular = [entry for entry in files if entry.size]  # a FIFO or a dangling link has no size
    if not regular or len(files) > (MOST_SNIFFED if most is None else most):
        return []
    calls = (partial(_begins_with_record, fs, entry) for entry in regular)
    matches = ordered(calls, min(_MOST_READERS, len(regular)), "sniff")
    return [entry for entry, match in zip(regular, matches, strict=True) if match]


def readable_files_with_records(fs: FileSystem, files: Sequence[Entry], *, most: int | None = None) -> list[Entry]:
    """`files_with_records` of files that are not to be read: none if one of them cannot be opened.

    Names with the suffix of another format, such as ``.csv``, are skipped.
    """
    possible = []
    for entry in files:
        file_suffix = OtherSuffix.of_path(entry.basename)
        if file_suffix is None or not (file_suffix.is_known or file_suffix.suffix in _NEVER_RECORDS):
            possible.append(entry)
    try:
        return files_with_records(fs, possible, most=most)
    except OSError:
        return []


def _begins_with_record(fs: FileSystem, entry: Entry) -> bool:
    head = memoryview(bytearray(FrameHeader.BYTES))
    done = 0
    try:
        stream = Source.from_entry(fs, entry).open_stream()
        try:
            while done < len(head) and (n := stream.readinto(head[done:])):
                done += n
        finally:
            stream.close()
    except (CompressionError, FileNotFoundError):  # other data, or removed since the directory was listed
        return False
    return FrameHeader(bytes(head[:done])).is_intact
