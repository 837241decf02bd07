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

from limited import set_limits
from records import written
from tfrecord_io.read import index_search, reader
from tfrecord_io.read.byte_ranges import SplitFiles, align_sources
from tfrecord_io.read.chunks import chunk_reader, segments
from tfrecord_io.read.chunks.filtering_decoder import DecodingChoice
from tfrecord_io.read.index import column_index
from tfrecord_io.read.scan import Scan
from tfrecord_io.store.read.source import Source, Sources


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        set_limits(
            patch,
            block_bytes=size,
            window_bytes=size,
            decoded_file_bytes=0,
            copied_share=100,
            segment_records=0,
            segment_column_bytes=1,
            skipped_record_bytes=4 * size,
            ahead_bytes=8 * size,
        )
        patch.setattr(chunk_reader, "_FEW_ROWS", 0)
        patch.setattr(segments, "cpu_count", lambda: 8)
        yield


def pieces_of(source: Source, n: int) -> list[Source]:
    """Split a file into `n` pieces, and keep those in which a record begins."""
    return [part for run in SplitFiles(Sources([source]), n) for part in align_sources(run)]


@contextmanager
def matching_records_only() -> Iterator[list[int]]:
    """No file is too small to be read in parts; yields the number of sources of each read by a column index."""
    used: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, gap_bytes=(0, 0))
        set_limits(
            patch, largest_share=(0.999, 0.999), least_piece_bytes=0, index_row_bytes=(0.001, 0.001), task_ranges=3
        )
        search = index_search.search_indexes

        def counted(*args: Any) -> Any:
            indexed = search(*args)
            used.extend([] if indexed is None else [len(indexed.sources)])
            return indexed

        patch.setattr(index_search, "search_indexes", counted)
        yield used


def opened_scans(patch: pytest.MonkeyPatch) -> list[Scan]:
    """The scans that are opened from now on."""
    opened: list[Scan] = []
    original = reader.plan_read
    patch.setattr(reader, "plan_read", lambda scan, *rest, **more: opened.append(scan) or original(scan, *rest, **more))
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
