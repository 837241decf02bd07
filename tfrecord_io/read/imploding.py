"""Implode tables with one row for each step to one row for each episode: the way back from `explode`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tfrecord_io.base import check_keywords
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, empty_batch, int64_array, python_values, selectable
from tfrecord_io.errors import SchemaError
from tfrecord_io.read.exploding import Steps, list_columns, open_rows
from tfrecord_io.typing import FilesLike, TableLike


@check_keywords
def implode(data: FilesLike | TableLike, *, lists: Sequence[str] | str = "steps/*") -> pa.RecordBatchReader:
    """Turn consecutive rows that differ in some columns only, such as the boxes of an image, into one row with lists.

    >>> import tfrecord_io as tfr
    >>> boxes = {"file": ["a", "a", "b"], "width": [32, 32, 64], "xmin": [0.1, 0.5, 0.2]}
    >>> for row in tfr.formats.implode(boxes, lists="xmin").read_all().to_pylist():
    ...     print(row)
    {'file': 'a', 'width': 32, 'xmin': [0.1, 0.5]}
    {'file': 'b', 'width': 64, 'xmin': [0.2]}

    What `explode` made is restored:

    >>> runs = {"id": ["a", "b"], "steps/reward": [[0.5, 1.0], []]}
    >>> steps = tfr.explode(runs, keep_empty=True)
    >>> tfr.formats.implode(steps).read_all().to_pydict() == runs
    True

    Parameters
    ----------
    data : path, Dataset, Reader, DataFrame, Table or any other table
        As for `write_tfrecord`: also a stream of batches. Rows of one group stand one after the other; sort others
        first.
    lists : str or sequence of str, default "steps/*"
        The columns that become lists: names, globs and ``!name``, as in ``"!file"`` for all but one. All others are
        the key: consecutive rows with equal values in them become one row. Nulls are equal, and so are NaNs.

    Returns
    -------
    pyarrow.RecordBatchReader
        A stream that `write_tfrecord` and others accept, with the columns of `data` in their order. It holds the rows
        of one key, and a batch, in memory. The numbers ``record`` and ``step`` that `explode` adds, of which ``record``
        is part of the key, are left out, and a row in which ``step`` is null becomes empty lists. All lists are plain
        ones, and tensors whose first axis `explode` took become lists of tensors. A list that was null has become an
        empty one, or no row without ``keep_empty=True``.

    Raises
    ------
    FeatureNotFoundError
        There is no column to make lists of.
    SchemaError
        From the stream, of rows that `explode` numbered: a column of the key has several values in one record; the
        message names row and column.
    """
    source = open_rows(data, implode)
    plan = _Plan.make(source.schema, lists)
    empty = plan.rows(empty_batch(source.schema), np.zeros(0, np.int64), 0)
    return pa.RecordBatchReader.from_batches(empty.schema, _batches(source.batches, plan))


@dataclass(frozen=True, slots=True)
class _Plan:
    """The columns that become lists, and those by whose values rows are grouped."""

    keys: list[str]
    lists: list[str]
    constant: list[str]  # columns that have one value in each group
    left_out: list[str]

    @classmethod
    def make(cls, schema: pa.Schema, lists: Sequence[str] | str) -> _Plan:
        left_out = [Steps.RECORD, Steps.STEP] if {Steps.RECORD, Steps.STEP} <= {*schema.names} else []
        names = [name for name in list_columns(schema, lists) if name not in left_out]
        others = [name for name in schema.names if name not in names and name not in left_out]
        if not names or not (others or left_out):
            reason = f"lists= names {'all columns' if names else 'no column'} to make lists of"
            raise SchemaError(reason, got=lists, hint="name some, and leave at least one as the key")
        return cls([Steps.RECORD], names, others, left_out) if left_out else cls(others, names, [], [])

    def rows(self, batch: pa.RecordBatch, starts: Array, begin: int) -> pa.RecordBatch:
        """One row for each group of a batch, whose first rows are `starts`; its first row is number `begin`."""
        self._refuse_other_values(batch, starts, begin)
        counts = np.diff(starts, append=len(batch))
        values = {name: batch[name] for name in self.lists}
        if self.left_out and batch[Steps.STEP].null_count:
            is_step = np.asarray(batch[Steps.STEP].is_valid())
            counts = np.add.reduceat(is_step.astype(np.int64), starts)
            kept = int64_array(np.flatnonzero(is_step))
            values = {name: selectable(array).take(kept) for name, array in values.items()}
        offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
        made = {name: pa.ListArray.from_arrays(offsets, array) for name, array in values.items()}
        return Steps(batch.drop_columns(self.left_out), self.lists).replace(starts, made)

    def _refuse_other_values(self, batch: pa.RecordBatch, starts: Array, begin: int) -> None:
        """Raise SchemaError if a column that has one value in each group has several."""
        for name in self.constant:
            differs = _changes(batch[name])
            differs[starts[starts > 0] - 1] = False
            if differs.any():
                row = int(differs.argmax()) + 1
                reason = f"row {begin + row} has another value than the row before it, of the same {Steps.RECORD} "
                advice = "name the column in lists=, or exclude it"
                advice_cli = "name the column in --lists, or exclude it"
                reason += str(batch[Steps.RECORD][row].as_py())
                raise SchemaError(reason, feature=name, hint=advice, hint_cli=advice_cli)


def _batches(batches: Iterator[pa.RecordBatch], plan: _Plan) -> Iterator[pa.RecordBatch]:
    """The rows of all complete groups of each batch; the last group waits for the next batch."""
    held: list[pa.RecordBatch] = []  # of one group
    begin = 0  # the number of the first held row
    for batch in batches:
        if not len(batch):
            continue
        is_first = _starts(held[-1] if held else None, batch, plan.keys)
        starts = np.flatnonzero(is_first)
        if not len(starts):
            held.append(batch)
            continue
        end, rows_held = int(starts[-1]), sum(map(len, held))
        if complete := [*held, batch[:end]] if rows_held + end else []:
            whole = pa.concat_batches(complete)
            own = starts[:-1] + rows_held
            yield plan.rows(whole, np.concatenate([[0], own]) if held else own, begin)
        held, begin = [batch[end:]], begin + rows_held + end
    if held:
        yield plan.rows(pa.concat_batches(held), np.zeros(1, np.int64), begin)


def _starts(before: pa.RecordBatch | None, batch: pa.RecordBatch, keys: Sequence[str]) -> Array:
    """Which rows of a batch begin a group: bool [rows]. The last row of the batch `before` precedes them."""
    starts = np.zeros(len(batch), np.bool_)
    starts[0] = before is None
    for name in keys:
        array = batch[name]
        if before is not None:
            array = pa.concat_arrays([before[name][len(before) - 1 :], array])
        changes = _changes(array)
        starts[len(starts) - len(changes) :] |= changes
    return starts


def _changes(array: pa.Array) -> Array:
    """Which values differ from the one before: bool [rows - 1]. Nulls are equal, and so are NaNs."""
    values = array.storage if isinstance(array.type, pa.BaseExtensionType) else array
    values = values.dictionary_decode() if isinstance(values, pa.DictionaryArray) else values
    try:
        codes = Column.hashable(values).dictionary_encode(null_encoding="encode")
        numbers = np.asarray(codes.indices)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):  # lists, structs
        texts = pa.array(map(repr, python_values(values)), pa.string())
        numbers = np.asarray(texts.dictionary_encode().indices)
    return np.asarray(numbers[1:] != numbers[:-1])
