"""Ways of reading that must not change the result: block sizes, engines, files on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from records import written
from tfrecord_io.engine.decoding_choice import DecodingChoice
from tfrecord_io.read.chunks import chunk_reader as decoding
from tfrecord_io.read.chunks import file_windows, segment_reader, segment_walk, workers
from tfrecord_io.tools import record_check


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_BLOCK_BYTES", size)
        patch.setattr(decoding, "_SMALL_BLOCK_BYTES", size)
        patch.setattr(decoding, "_FEW_ROWS", 0)
        patch.setattr(file_windows, "_BLOCK_BYTES", size)
        patch.setattr(file_windows, "_LARGE_BLOCK_BYTES", size)
        patch.setattr(segment_reader, "_LEAST_BYTES", size)
        patch.setattr(segment_reader, "_TINY_BYTES", 0)
        patch.setattr(segment_reader, "_PART_BYTES", size)
        patch.setattr(segment_reader, "_FILTERED_PARTS", 1)
        patch.setattr(segment_reader, "_PART_BYTES_OF_LISTS", size)
        patch.setattr(segment_reader, "_RECORDS_PER_PART", 0)
        patch.setattr(segment_reader, "_MOST_COPIED", 1)
        patch.setattr(segment_reader, "_LEAST_RECORDS", 0)
        patch.setattr(segment_reader, "_BYTES_PER_COLUMN", 1)
        patch.setattr(segment_walk, "_SEGMENT_BYTES", size)
        patch.setattr(segment_walk, "_LEAST_BYTES", size)
        patch.setattr(segment_walk, "_LEAST_RECORDS", 0)
        patch.setattr(segment_walk, "_SKIP_BYTES", 4 * size)
        patch.setattr(segment_walk, "_MOST_RECORD_BYTES", 8 * size)
        patch.setattr(workers, "cpu_count", lambda: 8)
        patch.setattr(record_check, "_PARSED_BYTES", size)
        yield


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
