"""What a decoded column shows about its type."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from tfrecord_io.arrow.buffers import mask_of
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.schema.observation import Observation, RecordRef


def observe(column: ColumnBuffers, path: str | None = None, first_record: int = 0, file: int = 0) -> Observation:
    """What `column` shows, with evidence.

    Row 0 was decoded from the record `first_record` of the file `path`, the `file`-th in the order of reading.
    """

    def where(row: int) -> RecordRef | None:
        return RecordRef(path, first_record + row, file) if row >= 0 else None

    if column.layout is Layout.NULL or column.null_count == column.rows:
        return Observation()
    if column.steps is None:
        return _observation(column, False, where)
    assert column.offsets is not None
    row = int(mask_of(column.validity, column.rows).argmax()) if column.null_count else 0
    step = _observe_steps(column.steps, column.offsets, where)
    return Observation(Kind.NONE, Layout.LIST, True, False, where(row), None, None, step)


def _observation(column: ColumnBuffers, nulls: bool, where: Callable[[int], RecordRef | None]) -> Observation:
    text = column.kind is not Kind.BYTES or column.text
    first, listed, binary = (where(row) for row in (column.first_row, column.list_row, column.binary_row))
    return Observation(column.kind, column.layout, text, nulls, first, listed, binary)


def observe_all(
    columns: Iterable[ColumnBuffers], path: str | None = None, first_record: int = 0, file: int = 0
) -> dict[str, Observation]:
    """`observe` for each column, by name."""
    return {column.name: observe(column, path, first_record, file) for column in columns}


def adds_nothing(column: ColumnBuffers, seen: Observation | None, first_record: int = 0, file: int = 0) -> bool:
    """Whether `seen`, of earlier records, stays the same when it is joined with what `column` shows.

    False where that takes more than a look: for feature lists, and columns that were not seen.
    """
    if seen is None or seen.first is None or seen.steps is not None or column.steps is not None:
        return False
    if column.layout is Layout.NULL or column.null_count == column.rows:
        return True
    text = column.kind is not Kind.BYTES or column.text
    if column.kind is not seen.kind or column.layout > seen.layout or (seen.text and not text):
        return False
    refs: list[RecordRef | None] = [seen.first]
    refs += [] if column.list_row < 0 else [seen.listed]
    refs += [] if column.binary_row < 0 else [seen.binary]
    return all(ref is not None and (ref.file, ref.record) < (file, first_record) for ref in refs)


def _observe_steps(steps: ColumnBuffers, offsets: Array, where: Callable[[int], RecordRef | None]) -> Observation:
    def of_step(step: int) -> RecordRef | None:
        return where(int(np.searchsorted(offsets, step, side="right")) - 1) if step >= 0 else None

    nulls = steps.null_count > 0 or (steps.layout is Layout.NULL and steps.rows > 0)
    if steps.layout is Layout.NULL or steps.null_count == steps.rows:
        return Observation(nulls=nulls)
    return _observation(steps, nulls, of_step)
