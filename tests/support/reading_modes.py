"""Ways of reading that must not change the result: block sizes, engines, files on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from records import written
from tfrecord_io.engine.filtering_decoder import DecodingChoice
from tfrecord_io.index import column_index, column_search
from tfrecord_io.read import open_scan as ways_in
from tfrecord_io.read import reader
from tfrecord_io.read.chunks import chunk_reader as decoding
from tfrecord_io.read.chunks import decode_segments, segments
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.splitting import aligned, split_sources
from tfrecord_io.storage.read import random_access_file
from tfrecord_io.storage.read.source import Source
from tfrecord_io.tools import file_check


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_BLOCK_BYTES", size)
        patch.setattr(decoding, "_SMALL_BLOCK_BYTES", size)
        patch.setattr(decoding, "_FEW_ROWS", 0)
        patch.setattr(segments, "_BLOCK_BYTES", size)
        patch.setattr(segments, "_LARGE_BLOCK_BYTES", size)
        patch.setattr(decode_segments, "_LEAST_BYTES", size)
        patch.setattr(decode_segments, "_TINY_BYTES", 0)
        patch.setattr(decode_segments, "_PART_BYTES", size)
        patch.setattr(decode_segments, "_FILTERED_PARTS", 1)
        patch.setattr(decode_segments, "_PART_BYTES_OF_LISTS", size)
        patch.setattr(decode_segments, "_RECORDS_PER_PART", 0)
        patch.setattr(decode_segments, "_MOST_COPIED", 1)
        patch.setattr(decode_segments, "_LEAST_RECORDS", 0)
        patch.setattr(decode_segments, "_BYTES_PER_COLUMN", 1)
        patch.setattr(segments, "_WALKED_BYTES", size)
        patch.setattr(segments, "_LEAST_BYTES", size)
        patch.setattr(segments, "_LEAST_RECORDS", 0)
        patch.setattr(segments, "_SKIP_BYTES", 4 * size)
        patch.setattr(segments, "_MOST_RECORD_BYTES", 8 * size)
        patch.setattr(segments, "cpu_count", lambda: 8)
        patch.setattr(file_check, "_PARSED_BYTES", size)
        yield


def pieces_of(source: Source, n: int) -> list[Source]:
    """Those of `n` pieces of a file in which a record begins."""
    return [part for run in split_sources([source], n) for part in aligned(run)]


@contextmanager
def matching_records_only() -> Iterator[list[int]]:
    """No file is too small to be read in parts; yields the number of sources of each read by a column index."""
    used: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_access_file.LocalRandomAccessFile, "gap_bytes", 0)
        patch.setattr(random_access_file.RemoteRandomAccessFile, "gap_bytes", 0)
        patch.setattr(column_search, "_LARGEST_SHARE", {True: 0.999, False: 0.999})
        patch.setattr(column_search, "_LEAST_PIECE_BYTES", 0)
        patch.setattr(column_search, "_ROW_BYTES", {True: 0.001, False: 0.001})
        patch.setattr(column_search, "_TASK_RANGES", 3)
        patch.setattr(column_search, "_AHEAD_RANGES", 7)
        search = ways_in.search_indexes

        def counted(*args: Any) -> Any:
            indexed = search(*args)
            used.extend([] if indexed is None else [len(indexed.sources)])
            return indexed

        patch.setattr(ways_in, "search_indexes", counted)
        yield used


def opened_scans(patch: pytest.MonkeyPatch) -> list[Scan]:
    """The scans that are opened from now on."""
    opened: list[Scan] = []
    original = reader.begin
    patch.setattr(reader, "begin", lambda scan, *rest, **more: opened.append(scan) or original(scan, *rest, **more))
    return opened


@contextmanager
def small_index_groups() -> Iterator[None]:
    """Column indexes are written in row groups of three records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_index, "_groups", _groups_of_three)
        yield


def _groups_of_three(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    for batch in batches:
        for begin in range(0, len(batch), 3):
            yield pa.Table.from_batches([batch.slice(begin, 3)])


@contextmanager
def engine_of(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFRECORD_IO_ENGINE", name)
        yield


@contextmanager
def decoded_by(ways: Sequence[tuple[bool, int | None]]) -> Iterator[None]:
    """Let reads with a filter decode in these ways, in turn: in two steps or not, and how many bytes at a time."""
    turns = cycle(ways)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DecodingChoice, "next", lambda choice, available: next(turns))
        yield


@contextmanager
def on_disk(contents: list[list[bytes]]) -> Iterator[list[Path]]:
    with tempfile.TemporaryDirectory() as folder:
        yield [written(Path(folder) / f"{i}.tfrecord", payloads) for i, payloads in enumerate(contents)]
