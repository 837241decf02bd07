"""Windows of consecutive steps of episodes, of tables that have one row for each episode."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrays.random_rows import RandomRows, empty_batches, row_numbers, row_options
from tfrecord_io.arrays.representation import TableRepresentation, slice_columns
from tfrecord_io.arrow.buffers import int64_array
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import TFRecordError, say
from tfrecord_io.options import LIMITS, MIB, IterOptions, ReadOptions
from tfrecord_io.read.explode import rows_and_numbers, step_counts, step_field, step_values
from tfrecord_io.read.open_scan import open_scan
from tfrecord_io.read.report import ReadReport
from tfrecord_io.read.scan import PIECE_BYTES, Scan
from tfrecord_io.remedies import Written
from tfrecord_io.storage.read.source import Source
from tfrecord_io.training.checkpoint import IteratorPosition, ReadIdentity
from tfrecord_io.training.epochs import EpochRows, Epochs, RowPool
from tfrecord_io.training.mixture import Mixture
from tfrecord_io.typing import WindowPad

_BITS = 24  # of the number of a window in its episode; the others are the number of the episode
_BATCH_BYTES = 4 * MIB  # of the steps of windows that are made together


@dataclass(frozen=True, slots=True)
class WindowForm:
    """What a window is.

    Attributes
    ----------
    names : tuple of str
        The columns of steps.
    length, stride : int
    pad : {"none", "edge"}
    """

    names: tuple[str, ...]
    length: int
    stride: int
    pad: WindowPad

    def counts(self, steps: Array) -> Array:
        """The number of windows of episodes with so many steps."""
        if self.pad == "edge":
            return -(-steps // self.stride)
        return np.maximum(0, (steps - self.length) // self.stride + 1)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Of windows, of episodes with this schema."""
        return _Episodes(empty_batches(schema)[0], self).windows(np.empty(0, np.int64), np.empty(0, np.int64)).schema

    def stream(self, episodes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The windows of batches of episodes."""
        begin = 0
        for batch in episodes:
            for rows, numbers, part in _Episodes(batch, self, begin).parts():
                yield part.windows(rows, numbers)
            begin += len(batch)


class _Episodes:
    """The steps of a batch of episodes; `begin`: see `step_counts`."""

    def __init__(self, batch: pa.RecordBatch, form: WindowForm, begin: int | None = None) -> None:
        self._batch, self._form = batch, form
        self.steps = step_counts(batch, list(form.names), begin)
        self._first = np.cumsum(self.steps) - self.steps
        self._values = {name: step_values(batch[name], batch.schema.field(name)) for name in form.names}

    def parts(self) -> Iterator[tuple[Array, Array, _Episodes]]:
        """The windows, some at a time: the row of the episode and the number in it of each."""
        counts = self._form.counts(self.steps)
        rows, numbers = rows_and_numbers(counts)
        step_bytes = self._batch.nbytes / max(1, int(self.steps.sum()))
        size = int(max(1, min(LIMITS.input_rows, _BATCH_BYTES / max(1, step_bytes * self._form.length))))
        for at in range(0, len(rows), size):
            yield rows[at : at + size], numbers[at : at + size], self

    def windows(self, rows: Array, numbers: Array) -> pa.RecordBatch:
        """The windows with these numbers, of the episodes in these rows."""
        form, schema = self._form, self._batch.schema
        steps = numbers[:, None] * form.stride + np.arange(form.length)
        steps = np.minimum(steps, self.steps[rows][:, None] - 1) + self._first[rows][:, None]
        taken = int64_array(steps.reshape(-1))
        others = self._batch.select([name for name in schema.names if name not in form.names]).take(int64_array(rows))
        arrays, fields = list[pa.Array](), list[pa.Field]()
        for field in schema:
            if field.name not in form.names:
                arrays.append(others[field.name])
                fields.append(field)
                continue
            array = _joined(self._values[field.name], taken, form.length)
            arrays.append(array)
            fields.append(step_field(field, array.type))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _joined(values: pa.Array, taken: pa.Array, length: int) -> pa.Array:
    """Lists of `length` of the values at some indices; tensors get an axis in front."""
    if not isinstance(values.type, pa.FixedShapeTensorType):
        return pa.FixedSizeListArray.from_arrays(values.take(taken), length)
    inner = values.storage.take(taken)
    type_ = pa.fixed_shape_tensor(values.type.value_type, [length, *values.type.shape])
    size = int(np.prod(type_.shape))
    return pa.ExtensionArray.from_storage(type_, pa.FixedSizeListArray.from_arrays(inner.flatten(), size))


# ---- in training


@dataclass(frozen=True, repr=False)
class Windows:
    """The windows of the episodes of a scan, whose place it takes in training; see `tfrecord_io.windows`."""

    scan: Scan
    form: WindowForm

    @cached_property
    def schema(self) -> pa.Schema:
        """Of the windows."""
        return self.form.schema(self.scan.schema)

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.scan.sources

    @property
    def options(self) -> ReadOptions:
        return self.scan.options

    @property
    def schema_source(self) -> str:
        return self.scan.schema_source

    @property
    def row_filter(self) -> Any:
        return self.scan.row_filter

    def files_and_columns(self) -> str:
        """For display."""
        return self.scan.files_and_columns()

    def describe(self) -> str:
        """For display, and for checkpoints that compare it."""
        form = self.form
        return say(
            "{} steps, {stride=}, {pad=}, of {}",
            form.length,
            self.scan.describe(),
            stride=Written(form.stride),
            pad=form.pad,
        )

    def over(self, **changes: Any) -> Self:
        """See `Scan.over`."""
        return replace(self, scan=self.scan.over(**changes))

    def pruned(self) -> Self:
        """See `Scan.pruned`."""
        return replace(self, scan=self.scan.pruned())

    def split(self, n: int | None, max_bytes: int = PIECE_BYTES) -> list[Self]:
        """See `Scan.split`."""
        return [replace(self, scan=scan) for scan in self.scan.split(n, max_bytes)]

    def lengths(self) -> list[int]:
        """See `count_rows`; ValueError, as it is known after all episodes were read only."""
        raise ValueError(say("{uneven=} is not possible with windows: how many a worker has depends on its episodes"))

    def random_rows(self, **representation: Any) -> WindowRandomRows:
        """The windows by number."""
        return WindowRandomRows(self, **representation)

    def identity(self, options: IterOptions) -> ReadIdentity:
        """What the batches depend on; see `ReadIdentity`."""
        own, form = ReadIdentity.of_read(self.scan, options), self.form
        return replace(own, options={**own.options, "windows": [*form.names, form.length, form.stride, form.pad]})

    def __getstate__(self) -> dict[str, Any]:
        return {"scan": self.scan, "form": self.form}  # some schemas cannot be unpickled

    def batches(self) -> Generator[pa.RecordBatch]:
        """All windows, in order."""
        with open_scan(self.scan) as episodes:
            yield from self.form.stream(episodes)


class WindowEpochs:
    """The windows of every epoch; see `tfrecord_io.training.epochs.Epochs`."""

    def __init__(self, windows: Windows, options: IterOptions, seed: int, counts: Sequence[int] | None = None) -> None:
        assert counts is None
        self._form, self._epochs = windows.form, Epochs(windows.scan, options, seed)
        self.warnings, self.damage = self._epochs.warnings, self._epochs.damage
        self.rows: WindowRows | None = None

    def open(self, position: IteratorPosition) -> WindowRows:
        """See `Epochs.open`."""
        episode = IteratorPosition(position.epoch, 0, position.begin >> _BITS)
        return WindowRows(self._epochs.open(episode), self._form, position.begin)

    def warn_of_damage(self, rows: EpochRows) -> None:
        """See `Epochs.warn_of_damage`."""
        self._epochs.warn_of_damage(rows)

    def records(self) -> int:
        """See `Epochs.records`."""
        raise TypeError("the number of batches is unknown: that of windows depends on the lengths of all episodes")


class WindowRows(EpochRows):
    """The windows of the episodes of an epoch. Their numbers have those of the episodes in front."""

    def __init__(self, episodes: EpochRows, form: WindowForm, begin: int) -> None:
        super().__init__(iter(()), begin, None)  # type: ignore[arg-type]
        self._episodes, self._form, self._begin = episodes, form, begin

    def _read(self) -> Iterator[RowPool]:
        for pool in self._episodes:
            yield from self._of_pool(pool)
            self.next = max(self.next, (int(pool.numbers[-1]) + 1) << _BITS)
        self._episodes.raise_error()

    def _of_pool(self, pool: RowPool) -> Iterator[RowPool]:
        """The windows of some episodes."""
        try:
            episodes = _Episodes(pool.rows, self._form)
        except RowFault as fault:
            if fault.row:
                yield from self._of_pool(pool.slice(0, fault.row))
            raise self._episodes.row_error(fault.at(int(pool.numbers[fault.row]))) from fault.__cause__
        for rows, windows, part in episodes.parts():
            if windows.max(initial=0) >> _BITS:
                raise ValueError(say("an episode has more than {} windows: pass a larger {stride=}", 1 << _BITS))
            numbers = (pool.numbers[rows] << _BITS) + windows
            wanted = np.flatnonzero(numbers >= self._begin)
            if len(wanted):
                rows, windows, numbers = rows[wanted], windows[wanted], numbers[wanted]
                self.next = int(numbers[-1]) + 1
                size = pool.row_bytes[rows] * self._form.length / np.maximum(part.steps[rows], 1)
                yield RowPool(numbers, part.windows(rows, windows), size)

    @property
    def failed(self) -> bool:
        return self._error is not None or self._episodes.failed

    @property
    def report(self) -> ReadReport:
        return self._episodes.report

    @property
    def goes_on(self) -> bool:
        return self._episodes.goes_on

    def leave_out(self, fault: RowFault) -> bool:
        return self._episodes.leave_out(fault.at(fault.row >> _BITS))

    def row_error(self, fault: RowFault) -> TFRecordError:
        return self._episodes.row_error(fault.at(fault.row >> _BITS))

    def close(self) -> None:
        self._episodes.close()


class WindowRandomRows:
    """Windows by number, for which the lengths of all episodes are read; see `RandomRows`."""

    def __init__(self, windows: Windows, **representation: Any) -> None:
        self.scan = windows
        self._options = row_options(windows.options, **representation)
        TableRepresentation(windows.schema, self._options, complete=False)  # refuses names and types
        self._rows = RandomRows(windows.scan)
        steps = [np.empty(0, np.int64)]
        with open_scan(windows.scan.select([windows.form.names[0]])) as reader:
            steps += [step_counts(batch, [windows.form.names[0]]) for batch in reader]
        self._ends = np.cumsum(windows.form.counts(np.concatenate(steps)))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def row(self, number: int) -> None:
        """See `RandomRows.row`; windows are made by `arrays`."""

    def arrays(self, rows: Any) -> dict[str, Any]:
        """See `RandomRows.arrays`."""
        rows = row_numbers(rows, len(self))
        of_rows = self._ends.searchsorted(rows, side="right")
        first = np.concatenate([[0], self._ends])[of_rows]
        numbers, places = np.unique(of_rows, return_inverse=True)
        table = self._rows.table(numbers).combine_chunks()
        batches = table.to_batches() or empty_batches(table.schema)
        try:
            made = _Episodes(batches[0], self.scan.form).windows(places, rows - first)
        except RowFault as fault:
            raise self._rows.row_error(fault.at(int(numbers[fault.row]))) from fault.__cause__
        representation = TableRepresentation(self.scan.schema, self._options, complete=False)
        try:
            return slice_columns(representation.represent([made]), 0, len(rows))
        except RowFault as fault:
            raise self._rows.row_error(fault.at(int(of_rows[fault.row]))) from fault.__cause__


Trainable = Scan | Mixture | Windows
"""What batches for training are made of."""
