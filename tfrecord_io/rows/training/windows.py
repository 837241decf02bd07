"""Turn rows that are episodes, with lists of steps, into windows of consecutive steps, one window in a row."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import dataclass, replace
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, MIB, LateTypes, Selection, cached_property, printable
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, ImageForm, NamePattern, RowFault, empty_batch, int64_array, selectable
from tfrecord_io.errors import CorruptRecordError, FeatureNotFoundError, SchemaError, TFRecordError
from tfrecord_io.read import ReadReport, Scan, ScanRows, Steps
from tfrecord_io.rows.arrays.rows_by_number import PartLookup, ScanLookup
from tfrecord_io.rows.arrays.shared_images import Groups, SharedImages
from tfrecord_io.rows.arrays.stacked_or_ragged import MASK
from tfrecord_io.rows.training.epochs import LATE, EpochReader, Epochs, NumberedBatch, RowFacts, Share
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition, ReadIdentity
from tfrecord_io.rows.training.row_source import RowSource
from tfrecord_io.rows.training.scan_row_source import FileEpochs, ScanRowSource
from tfrecord_io.typing import WindowPad

if TYPE_CHECKING:
    from tfrecord_io import read
else:
    read = LateTypes("tfrecord_io.read")

_BITS = 24  # lower bits of a row number: the window in its episode; the upper ones are the number of the episode
_BATCH_BYTES = 4 * MIB  # of the steps of windows that are made at a time


class StepsOfWindows(NamedTuple):
    """Steps of a column in some windows."""

    steps: Array  # int64 [windows, steps]; they may be beyond an end of the episode
    in_lists: bool = True  # else each window has one value
    masked: bool = False  # a mask says which steps are not beyond an end


class Form(ABC):
    """Form of windows; `names` are the columns of steps, `length` is the most steps of a column, `stride` as stated."""

    names: tuple[str, ...]
    length: int
    stride: int
    is_late = False  # windows are made when they are drawn

    @staticmethod
    def from_length(schema: pa.Schema, prefix: str, *, length: int, stride: int, pad: WindowPad) -> Form:
        """The form of windows of the same steps of all columns with the prefix."""
        return WindowForm(tuple(Steps.columns(schema, prefix)), length, stride, pad)

    @staticmethod
    def from_offsets(schema: pa.Schema, prefix: str, offsets: Mapping[str, Any], stride: int) -> Form:
        """The form of windows with steps of their own for the columns of `offsets`; see `ColumnForm.from_patterns`."""
        return ColumnForm.from_patterns(schema, offsets, prefix, stride)

    @abstractmethod
    def describe(self) -> str:
        """Text for display."""

    @abstractmethod
    def identity(self) -> list[Any]:
        """The form as a state has it, read from JSON."""

    @abstractmethod
    def only(self, names: tuple[str, ...]) -> Form:
        """The form of these columns of steps alone."""

    @abstractmethod
    def counts(self, steps: Array) -> Array:
        """Number of windows of each episode, by its number of steps."""

    @abstractmethod
    def steps(self, name: str, numbers: Array) -> StepsOfWindows:
        """The steps of a column that windows have, by the numbers of the windows."""

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Schema of windows of episodes with this schema."""
        return _Episodes(empty_batch(schema), self).windows(np.empty(0, np.int64), np.empty(0, np.int64)).schema

    def stream(self, episodes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Make windows of batches of episodes."""
        begin = 0
        for batch in episodes:
            of_batch = _Episodes(batch, self, begin)
            yield from starmap(of_batch.windows, of_batch.numbers())
            begin += len(batch)


@dataclass(frozen=True, slots=True)
class WindowForm(Form):
    """Windows of the same steps of all columns: length, stride, padding at the end."""

    names: tuple[str, ...]
    length: int
    stride: int
    pad: WindowPad

    def describe(self) -> str:
        return f"{self.length} steps, stride={self.stride}, pad={self.pad!r}"

    def identity(self) -> list[Any]:
        return [*self.names, self.length, self.stride, self.pad]

    def only(self, names: tuple[str, ...]) -> WindowForm:
        return replace(self, names=names)

    def counts(self, steps: Array) -> Array:
        if self.pad == "edge":
            return -(-steps // self.stride)
        return np.maximum(0, (steps - self.length) // self.stride + 1)

    def steps(self, name: str, numbers: Array) -> StepsOfWindows:
        return StepsOfWindows(numbers[:, None] * self.stride + np.arange(self.length))


@dataclass(frozen=True, slots=True)
class ColumnForm(Form):
    """Windows with steps of their own for each column, relative to every `stride`-th step of an episode."""

    names: tuple[str, ...]
    offsets: tuple[tuple[int, ...] | int, ...]  # of each column; one number: a window has a value, not a list
    stride: int

    is_late = True

    @classmethod
    def from_patterns(cls, schema: pa.Schema, offsets: Mapping[str, Any], prefix: str, stride: int) -> ColumnForm:
        """The form of the columns that names and globs stand for, with or without the prefix.

        A name wins over a glob, and the first glob over others; columns with the prefix that none stands for have the
        step itself. FeatureNotFoundError if an entry names no column.
        """
        Selection.check_mapping("offsets", offsets, "{'steps/image': range(-1, 1)}")
        below = Steps.below(prefix)
        found: dict[str, tuple[int, ...] | int] = {name: 0 for name in schema.names if name.startswith(below)}
        globs = [entry for entry in offsets if NamePattern(entry).is_glob and entry not in schema.names]
        for entry in [*reversed(globs), *(entry for entry in offsets if entry not in globs)]:
            names = [name for name in schema.names if NamePattern(entry).matches(name)]
            names = names or [name for name in found if NamePattern(below + entry).matches(name)]
            if not names:
                valid = f"the columns are {', '.join(schema.names) or 'none'}"
                raise FeatureNotFoundError("offsets= names no column", feature=entry, hint=valid)
            found |= dict.fromkeys(names, _check_offsets(entry, offsets[entry]))
        names = [name for name in schema.names if name in found] or Steps.columns(schema, prefix)
        form = cls(tuple(names), tuple(found[name] for name in names), stride)
        for name in names:
            if form.steps(name, np.empty(0, np.int64)).masked and f"{name}/{MASK}" in schema.names:
                reason = f"windows add a column '{name}/{MASK}', which exists"
                raise SchemaError(reason, feature=name, hint="rename one of the columns")
        return form

    @property
    def length(self) -> int:  # type: ignore[override]
        return max(1 if isinstance(own, int) else len(own) for own in self.offsets)

    def describe(self) -> str:
        own = ", ".join(f"{name}: {own}" for name, own in zip(self.names, self.offsets, strict=True))
        return f"steps {{{own}}}, stride={self.stride}"

    def identity(self) -> list[Any]:
        own = [own if isinstance(own, int) else [*own] for own in self.offsets]
        return [*map(list, zip(self.names, own, strict=True)), self.stride]

    def only(self, names: tuple[str, ...]) -> ColumnForm:
        offsets = dict(zip(self.names, self.offsets, strict=True))
        return replace(self, names=names, offsets=tuple(offsets[name] for name in names))

    def counts(self, steps: Array) -> Array:
        return -(-steps // self.stride)

    def steps(self, name: str, numbers: Array) -> StepsOfWindows:
        own = self.offsets[self.names.index(name)]
        return StepsOfWindows(numbers[:, None] * self.stride + np.atleast_1d(own), not isinstance(own, int), own != 0)


def _check_offsets(name: str, value: Any) -> tuple[int, ...] | int:
    """Offsets of steps as numbers; TypeError or ValueError for others."""
    if hasattr(value, "__index__") and not isinstance(value, bool):
        return operator.index(value)
    try:
        offsets = tuple(map(operator.index, value))
    except TypeError:
        raise TypeError(f"offsets of {name!r}: expected steps such as range(-1, 1), got {value!r}") from None
    if not offsets:
        raise ValueError(f"offsets of {name!r}: expected at least one step")
    return offsets


class _Episodes:
    """Steps of a batch of episodes; `begin`: see `Steps.counts`."""

    def __init__(self, batch: pa.RecordBatch, form: Form, begin: int | None = None) -> None:
        self._batch, self._form, self._of_rows = batch, form, Steps(batch, form.names)
        self.steps = self._of_rows.counts(begin)
        self._first = np.cumsum(self.steps) - self.steps
        self._values = self._of_rows.values()
        images = {name for name in form.names if ImageForm.KEY in (batch.schema.field(name).metadata or {})}
        self.images = SharedImages({name: self._values[name] for name in images})

    def numbers(self) -> Iterator[tuple[Array, Array]]:
        """Number all windows, some at a time: the row of the episode of each, and the number in the episode."""
        yield from self.split(*self.all_numbers())

    def all_numbers(self) -> tuple[Array, Array]:
        """Number all windows at once."""
        return Steps.numbers(self._form.counts(self.steps))

    def split(self, rows: Array, numbers: Array) -> Iterator[tuple[Array, Array]]:
        """Split the rows and numbers of windows into parts of limited memory."""
        step_bytes = self._batch.nbytes / max(1, int(self.steps.sum()))
        size = int(max(1, min(LIMITS.batch_rows, _BATCH_BYTES / max(1, step_bytes * self._form.length))))
        for at in range(0, len(rows), size):
            yield rows[at : at + size], numbers[at : at + size]

    def _places(self, steps: Array, rows: Array) -> tuple[Array, Array]:
        """The positions of steps among the values of a column, and False where a step beyond an end repeats one."""
        last = self.steps[rows][:, None] - 1
        return np.clip(steps, 0, last) + self._first[rows][:, None], (steps >= 0) & (steps <= last)

    def windows(self, rows: Array, numbers: Array, shares: bool = False) -> pa.RecordBatch:
        """Make the windows with these numbers, of the episodes in these rows; with `shares`, images are keys."""
        values, masks = dict[str, pa.Array](), dict[str, pa.Array]()
        for name in self._form.names:
            steps, in_lists, masked = self._form.steps(name, numbers)
            places, exist = self._places(steps, rows)
            own, indices = self._values[name], int64_array(places.reshape(-1))
            if shares and name in self.images.columns:
                items = self.images.keys(name, places.reshape(-1))
            elif isinstance(own.type, pa.FixedShapeTensorType):
                items = pa.ExtensionArray.from_storage(own.type, own.storage.take(indices))
            else:
                items = selectable(own).take(indices)
            values[name] = _wrap_in_lists(items, places.shape[1]) if in_lists else items
            if masked:
                bools = pa.array(exist.reshape(-1))
                masks[name] = _wrap_in_lists(bools, exist.shape[1]) if in_lists else bools
        batch = self._of_rows.replace(rows, values)
        for name, array in masks.items():
            at = batch.schema.get_field_index(name) + 1
            batch = batch.add_column(at, pa.field(f"{name}/{MASK}", array.type, nullable=False), array)
        return batch

    def expect(self, rows: Array, numbers: Array) -> None:
        """Keep decoded images until all of their windows have them."""
        for name in self.images.columns:
            places, _ = self._places(self._form.steps(name, numbers).steps, rows)
            self.images.expect(name, places.reshape(-1))

    def late(self, rows: Array, numbers: Array) -> pa.RecordBatch:
        """Number windows that `windows` makes later."""
        self.expect(rows, numbers)
        owner = np.full(len(rows), self.images.number)
        return pa.RecordBatch.from_arrays(list(map(int64_array, (owner, rows, numbers))), schema=LATE)


def _wrap_in_lists(values: pa.Array, length: int) -> pa.Array:
    """Values in lists of `length`; tensors get an axis in front."""
    if not isinstance(values.type, pa.FixedShapeTensorType):
        return pa.FixedSizeListArray.from_arrays(values, length)
    return Column.fixed_shape_tensors(values.storage.flatten(), [length, *values.type.shape], len(values) // length)


# ---- Windows as a source of rows


@dataclass(frozen=True, repr=False)
class Windows(RowSource):
    """Windows of the episodes of a scan; see `tfrecord_io.windows`."""

    episodes: Scan
    form: Form

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the windows."""
        return self.form.schema(self.episodes.schema)

    @property
    def scans(self) -> tuple[Scan, ...]:
        return (self.episodes,)

    def map_scans(self, change: Callable[[Any], Any]) -> Self:
        """Return the windows of a changed scan; ValueError if it has no column of steps."""
        scan = change(self.episodes)
        names = tuple(name for name in self.form.names if name in scan.schema.names)
        if not names:
            advice = f"select one of {', '.join(map(printable, self.form.names))}, too"
            raise ValueError(f"windows need a column of steps: {advice}")
        return replace(self, episodes=scan, form=self.form.only(names))

    def only(self, names: Sequence[str]) -> Self:
        """See `Scan.only`; masks belong to their columns."""
        names = [name for name in names if name in self.episodes.schema.names]
        return self.map_scans(lambda scan: scan.only(names))

    @property
    def is_late(self) -> bool:
        return self.form.is_late

    @property
    def steps(self) -> tuple[str, ...]:
        return self.form.names

    @property
    def size(self) -> int | None:
        size = super().size
        return None if size is None else size * max(1, self.form.length // self.form.stride)

    def describe(self) -> str:
        return f"{self.form.describe()}, of {self.episodes.describe()}"

    def split(self, n: int | None, max_bytes: int = Scan.PIECE_BYTES) -> list[Self]:
        """See `Scan.split`."""
        return [replace(self, episodes=scan) for scan in self.episodes.split(n, max_bytes)]

    def epochs(self, options: IterOptions, seed: int, counts: WindowCounts | None = None) -> WindowEpochs:
        return WindowEpochs(self, options, seed, counts)

    def part_epochs(
        self,
        options: IterOptions,
        seed: int,
        epoch: int,
        count: int,
        *,
        counts: Any = None,
        sizes: Any = None,
        boundaries: read.KnownBoundaries | None = None,
    ) -> list[WindowEpochs]:
        parts = FileEpochs(self.episodes, options, seed).parts(epoch, count, boundaries=boundaries)
        return [WindowEpochs(self, options, seed, episodes=part) for part in parts]

    def counts(self) -> WindowCounts:
        """Count the records and windows of each file; the lengths of all episodes are read."""
        records = ScanRows(self.episodes).records_of_files()
        windows, ends = np.zeros(len(records), np.int64), np.cumsum(records)
        epochs = FileEpochs(self.episodes.only([self.form.names[0]]), IterOptions(batch_size=1), 0)
        epochs.records = records
        with closing(epochs.open(IteratorPosition(0, 0, 0))) as episodes:
            for batch in episodes:
                of_episodes = self.form.counts(Steps(batch.rows, [self.form.names[0]]).counts())
                np.add.at(windows, ends.searchsorted(batch.numbers, side="right"), of_episodes)
            episodes.raise_error()
        return WindowCounts(tuple(records), tuple(windows.tolist()))

    def count_rows(self) -> int:
        """Count the windows; the lengths of all episodes are read."""
        return sum(self.counts().windows)

    def lookup(self) -> WindowLookup:
        return WindowLookup(self)

    def identity(self, options: IterOptions) -> ReadIdentity:
        identity = ReadIdentity.from_scan(self.episodes, options)
        return replace(identity, options={**identity.options, "windows": self.form.identity()})

    def list_lengths(self, options: IterOptions) -> dict[str, int]:
        other_columns = [name for name in self.episodes.schema.names if name not in self.form.names]
        return ScanRowSource(self.episodes.only(other_columns)).list_lengths(options)

    def __getstate__(self) -> dict[str, Any]:
        return {"episodes": self.episodes, "form": self.form}  # some schemas cannot be unpickled

    def batches(self) -> Generator[pa.RecordBatch]:
        """All windows, in order."""
        with ScanRows(self.episodes).open() as episodes:
            yield from self.form.stream(episodes)

    def to_table(self) -> pa.Table:
        """All windows as a table."""
        return pa.Table.from_batches(self.batches(), self.schema)


class WindowCounts(NamedTuple):
    """Numbers of records and of windows of each file."""

    records: tuple[int, ...]
    windows: tuple[int, ...]


class WindowEpochs(Epochs):
    """Windows of every epoch: workers share the episodes, or with `counts` have runs of the windows, of equal size.

    The number of a window has the number of its episode in front; in a second run, numbers of episodes continue after
    the last one of all files.
    """

    def __init__(
        self,
        windows: Windows,
        options: IterOptions,
        seed: int,
        counts: WindowCounts | None = None,
        episodes: FileEpochs | None = None,
    ) -> None:
        super().__init__()
        self.form, self.counts = windows.form, counts
        self._share = Share(*options.share, options.uneven if counts is not None else "keep")
        of_episodes = options if counts is None else options.changed(worker=None, uneven="keep")
        self.episodes = episodes or FileEpochs(windows.episodes, of_episodes, seed)
        self.warnings, self.damage = self.episodes.warnings, self.episodes.damage
        self.varies = counts is None and self.episodes.every_nth.workers > 1  # episodes differ in the number of windows
        self.runs: Sequence[tuple[int, int | None]] = [(0, None)]
        self.surplus = 0
        if counts is not None:
            self.episodes.records = counts.records
            self.runs = self._share.runs(sum(counts.windows))
            self.surplus = self._share.surplus(sum(counts.windows))

    def warn_through(self, other: Epochs) -> None:
        super().warn_through(other)
        self.episodes.warn_through(other)

    def open(self, position: IteratorPosition) -> WindowReader:
        return WindowReader(self, position.epoch, position.begin)

    def ends(self, epoch: int) -> tuple[Array, Array]:
        """Counted numbers of episodes and of windows before each file of an epoch, and of all files."""
        assert self.counts is not None
        order = self.episodes.order(epoch)
        records, windows = (np.cumsum([0, *(of_files[i] for i in order)]) for of_files in self.counts)
        return records, windows

    def open_episodes(self, epoch: int, episode: int, window: int) -> tuple[EpochReader, int, int]:
        """Open the episodes from the file on that has an episode and a window; with that file and its first window.

        Without counts, from the episode on; then file and window are 0.
        """
        before = file = 0
        if self.counts is not None:
            records, windows = self.ends(epoch)
            file = max(
                int(records.searchsorted(episode, side="right")), int(windows.searchsorted(window, side="right"))
            )
            file -= 1
            episode, before = int(records[file]), int(windows[file])
        return self.episodes.open(IteratorPosition(epoch, 0, episode)), file, before

    def count(self) -> int:
        if self.counts is not None:
            return self._share.size(sum(self.counts.windows))
        raise TypeError("the number of batches is unknown: that of windows depends on the lengths of all episodes")


class WindowReader(EpochReader):
    """Reads the windows of an epoch."""

    def __init__(self, epochs: WindowEpochs, epoch: int, begin: int) -> None:
        super().__init__(begin)
        self._epochs, self._form, self._epoch, self._begin = epochs, epochs.form, epoch, begin
        self._per_run = 0 if epochs.counts is None else sum(epochs.counts.records)  # numbers of episodes
        # Run of the first reader of episodes to be opened.
        self._first_run = (begin >> _BITS) // self._per_run if self._per_run else 0
        if epochs.counts is not None:
            self._ends = epochs.ends(epoch)

    def _read(self) -> Generator[NumberedBatch]:
        for run, (first, last) in enumerate(self._epochs.runs[self._first_run :], self._first_run):
            shift, end = run * self._per_run, last and last + self._epochs.surplus
            begin = max(0, (self._begin >> _BITS) - shift)
            episodes, self._file, self._ordinal = self._epochs.open_episodes(self._epoch, begin, first)
            self._opened.append(episodes)
            for batch in episodes:
                yield from self._windows(batch, shift, first, last)
                self.next = max(self.next, (int(batch.numbers[-1]) + shift + 1) << _BITS)
                if end is not None and self._is_read(end):
                    break
            episodes.raise_error()
            if end is not None:
                episodes.close()
                if not self._is_read(end):
                    self._compare(self._ends[0][-1:], np.zeros(1, np.int64))

    def _is_read(self, end: int) -> bool:
        """True if the windows before the `end` have been read, and the files that end there compared."""
        counted = self._ends[1]
        at = int(counted.searchsorted(end, side="right")) - 1
        return self._ordinal >= end and (counted[at] < end or self._file >= at)

    def _compare(self, numbers: Array, windows: Array) -> None:
        """Compare the windows of the files that end before some episodes with the counts.

        `numbers` and `windows`: numbers of these episodes, and how many windows they have. CorruptRecordError if a file
        has more or fewer windows than were counted.
        """
        (records, ends), episodes = self._ends, self._epochs.episodes
        before = self._ordinal + np.cumsum([0, *windows])
        while self._file + 1 < len(records) and records[self._file + 1] <= numbers[-1]:
            ordinal = int(before[numbers.searchsorted(records[self._file + 1])])
            if ordinal != ends[self._file + 1]:
                counted, got = (int(end - ends[self._file]) for end in (ends[self._file + 1], ordinal))
                path = episodes.sources[episodes.order(self._epoch)[self._file]].path
                reason = f"the file has {got} windows, but {counted} were counted"
                raise CorruptRecordError(reason, path=path, expected=counted, got=got, hint="open the files again")
            self._file += 1

    def _windows(self, batch: NumberedBatch, shift: int, first: int, last: int | None) -> Iterator[NumberedBatch]:
        """Make the windows of some episodes that are in [first, last), counted from the first window of all."""
        try:
            episodes = _Episodes(batch.rows, self._form)
        except RowFault as fault:
            if fault.row:
                yield from self._windows(batch.slice(0, fault.row), shift, first, last)
            raise self._opened[-1].row_error(batch, fault) from fault.__cause__
        if last is not None:
            self._compare(batch.numbers, self._form.counts(episodes.steps))
        for rows, windows in [episodes.all_numbers()] if self._form.is_late else episodes.numbers():
            if windows.max(initial=0) >> _BITS:
                raise ValueError(f"an episode has more than {1 << _BITS} windows: pass a larger stride=")
            numbers = (batch.numbers[rows] + shift << _BITS) + windows
            wanted = numbers >= self._begin
            wanted[: max(0, first - self._ordinal)] = False
            if last is not None:
                wanted[max(0, last - self._ordinal) :] = False
            self._ordinal += len(rows)
            indices = np.flatnonzero(wanted)
            if len(indices) < len(rows):
                rows, windows, numbers = rows[indices], windows[indices], numbers[indices]
            if len(rows):
                self.next = int(numbers[-1]) + 1
                size = batch.facts.row_bytes[rows] * self._form.length / np.maximum(episodes.steps[rows], 1)
                if self._form.is_late:
                    made = {episodes.images.number: episodes}
                    yield NumberedBatch(RowFacts(numbers, size), episodes.late(rows, windows), made, is_late=True)
                else:
                    yield NumberedBatch(RowFacts(numbers, size), episodes.windows(rows, windows))

    def origin(self, fault: RowFault) -> tuple[Any, RowFault]:
        """Reader of the episode of a window, and the fault with the number of the episode."""
        run, episode = divmod(fault.row >> _BITS, self._per_run) if self._per_run else (0, fault.row >> _BITS)
        return self._opened[run - self._first_run].origin(fault.renumber(episode))

    def reports(self) -> list[ReadReport]:
        return [report for episodes in self._opened for report in episodes.reports()]


class WindowLookup(PartLookup):
    """Windows by number; the lengths of all episodes are read first."""

    def __init__(self, windows: Windows) -> None:
        self._windows, self._episodes = windows, ScanLookup(windows.episodes)
        steps = [np.empty(0, np.int64)]
        with ScanRows(windows.episodes.only([windows.form.names[0]])).open() as reader:
            steps += [Steps(batch, [windows.form.names[0]]).counts() for batch in reader]
        self._counts = windows.form.counts(np.concatenate(steps))
        self._ends = np.cumsum(self._counts)
        self.check_unchanged()  # steps were counted in files that were opened again

    @property
    def schema(self) -> pa.Schema:
        return self._windows.schema

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    def table(self, numbers: Array) -> pa.Table:
        return self._table(numbers, shares=False)[0]

    def shared_table(self, numbers: Array) -> tuple[pa.Table, Groups]:
        return self._table(numbers, shares=self._windows.is_late)

    def _table(self, numbers: Array, shares: bool) -> tuple[pa.Table, Groups]:
        of_rows = self._ends.searchsorted(numbers, side="right")
        first = np.concatenate([[0], self._ends])[of_rows]
        episodes, places = np.unique(of_rows, return_inverse=True)
        table = self._episodes.table(episodes).combine_chunks()
        batches = table.to_batches() or [empty_batch(table.schema)]
        try:
            of_batch = _Episodes(batches[0], self._windows.form)
            if shares:
                of_batch.expect(places, numbers - first)
            parts = [of_batch.windows(*part, shares) for part in of_batch.split(places, numbers - first)]
        except RowFault as fault:
            raise self._episodes.row_error(fault.renumber(int(episodes[fault.row]))) from fault.__cause__
        return pa.Table.from_batches(parts, self.schema), {of_batch.images.number: of_batch} if shares else {}

    def describe(self) -> str:
        return self._windows.describe()

    def row_error(self, fault: RowFault) -> TFRecordError:
        return self._episodes.row_error(fault.renumber(int(self._ends.searchsorted(fault.row, side="right"))))

    def column(self, name: str) -> pa.ChunkedArray:
        of_rows = np.repeat(np.arange(len(self._counts)), self._counts)
        return self._episodes.column(name).take(int64_array(of_rows))

    def measure_rows(self, names: Sequence[str], measure: Callable[[pa.RecordBatch], Array]) -> Array:
        narrow = self._windows.only([*dict.fromkeys([*names, self._windows.form.names[0]])])
        measures = [measure(batch) for batch in narrow.batches()]
        return np.concatenate(measures or [measure(empty_batch(narrow.schema))])

    def check_unchanged(self) -> None:
        self._episodes.check_unchanged()

    def rescan(self, scan: Scan) -> Self:
        lookup = copy(self)
        lookup._windows, lookup._episodes = self._windows.map_scans(lambda _: scan), self._episodes.rescan(scan)
        return lookup

    @property
    def bytes_read(self) -> int:
        return self._episodes.bytes_read

    @property
    def mean_bytes(self) -> float:
        return self._episodes.mean_bytes * max(1, self._windows.form.length // self._windows.form.stride)
