"""Batches of numbered records, and a plain shuffle buffer that the fast one must equal."""

from __future__ import annotations

import itertools
import json
import pickle
import tempfile
from collections import Counter
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
        set_limits(patch, batch_rows=rows)
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


Rows = list[tuple[int, int]]


def rows_of(batches: Iterator[dict[str, Any]]) -> Rows:
    """(dataset, number) of each row of a mixture."""
    return [pair for batch in batches for pair in zip(batch["source"].tolist(), batch["n"].tolist(), strict=True)]


def is_an_epoch(mixture: tfr.typing.MixedDataset, rows: Rows, of_parts: set[tuple[int, int]]) -> Any:
    """Check that all calls give these rows: each once at most, or all of the parts; the table."""
    assert rows_of(mixture.iter_arrays(batch_size=7)) == rows
    table = mixture.to_table()
    assert list(zip(table["source"].to_pylist(), table["n"].to_pylist(), strict=True)) == rows
    assert mixture.count_rows() == len(rows)
    assert len(mixture.iter_arrays(batch_size=7)) == -(-len(rows) // 7)
    assert mixture.head(9).equals(table[:9])
    source = mixture.to_grain()
    assert [(row["source"], row["n"]) for row in map(source.__getitem__, range(len(source)))] == rows
    if mixture.stop == "first":
        assert max(Counter(rows).values()) == 1
    else:
        assert set(rows) == of_parts
    return table


def is_continued(mixture: tfr.typing.MixedDataset, at: int, **keywords: Any) -> None:
    """Check that a state after `at` batches continues with the next ones, and that a copy begins alike."""
    keywords |= {"seed": 3, "epochs": 2}
    whole = mixture.iter_arrays(**keywords)
    before = rows_of(itertools.islice(whole, at))
    state = json.loads(json.dumps(whole.state()))
    rest = rows_of(itertools.islice(going_on(whole), 9))
    assert rows_of(itertools.islice(mixture.iter_arrays(**keywords, state=state), 9)) == rest
    again = pickle.loads(pickle.dumps(mixture)).iter_arrays(**keywords)
    assert rows_of(itertools.islice(again, at)) == before


def opened(source: Any, options: dict[str, Any]) -> tfr.typing.ArrayIterator:
    """An iterator over files, or over a mixture."""
    return read_by(tfr.iter_arrays, source, **options) if isinstance(source, list) else source.iter_arrays(**options)


def as_lists(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: array.tolist() for name, array in batch.items()}


def state_between(source: Any, options: dict[str, Any], expected: list[dict[str, Any]], taken: int) -> dict[str, Any]:
    """Check the batches of a read, of one that stops in between, and of those that go on from its state: the state."""
    with opened(source, options) as batches:
        got = [as_lists(batch) for batch in itertools.islice(batches, taken)]
        assert got == expected[:taken]
        state: dict[str, Any] = json.loads(json.dumps(batches.state()))
        assert [as_lists(batch) for batch in going_on(batches)] == expected[taken:]
    with opened(source, {**options, "state": state}) as resumed:
        got = [as_lists(batch) for batch in itertools.islice(resumed, 1)]
        again = json.loads(json.dumps(resumed.state()))
        assert got + [as_lists(batch) for batch in going_on(resumed)] == expected[taken:]
    with opened(source, {**options, "state": again}) as resumed:
        assert [as_lists(batch) for batch in resumed] == expected[taken + 1 :]
    return state
