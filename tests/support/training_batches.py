"""Batches of numbered records, and a plain shuffle buffer that the fast one must equal."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from records import example, int64s, written


@contextmanager
def chunks_of(rows: int) -> Iterator[None]:
    """Files read in small pieces."""
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, shuffled_chunk_rows=rows)
        yield


def values(paths: Any, **keywords: Any) -> list[list[int]]:
    with read_by(tfr.iter_arrays, paths, **{"schema": {"x": "int64"}, **keywords}) as batches:
        return [batch["x"].tolist() for batch in batches]


def plain_buffer(numbers: list[float], records: int, size: int) -> list[int]:
    """A shuffle buffer as a person would write it down."""
    buffer: list[int] = []
    given, draws = [], iter(numbers)
    for record in range(records):
        if len(buffer) < size:
            buffer.append(record)
            continue
        place = int(next(draws) * size)
        given.append(buffer[place])
        buffer[place] = record
    while buffer:
        place = int(next(draws) * len(buffer))
        given.append(buffer[place])
        buffer[place] = buffer[-1]
        buffer.pop()
    return given


@contextmanager
def numbered(counts: list[int]) -> Iterator[list[Path]]:
    """Files of records numbered consecutively from 0."""
    with tempfile.TemporaryDirectory() as folder:
        paths, begin = [], 0
        for i, count in enumerate(counts):
            payloads = [example(x=int64s(n)) for n in range(begin, begin + count)]
            paths.append(written(Path(folder) / f"{i}.tfrecord", payloads))
            begin += count
        yield paths


def joined(batches: list[list[int]]) -> list[int]:
    return [x for batch in batches for x in batch]


def going_on(batches: Iterator[Any]) -> Iterator[Any]:
    """The batches that are left, of which there may be none: a loop over an iterator at its end is an error."""
    while (batch := next(batches, None)) is not None:
        yield batch
