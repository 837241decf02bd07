"""Several datasets as one: each row is drawn from one of them, by weights and a seed.

The order of an epoch is a sequence of choices, one for each row, which a seed alone determines: the n-th row of the
sequence that chooses a part is the n-th row of that part. So the position in the sequence is all that has to be known
to go on from it, and workers share the sequence as they share the rows of files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrays.random_rows import RandomRows, row_numbers
from tfrecord_io.arrow.output.to_numpy import declared_shape, leaf_fields
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import SchemaError, say
from tfrecord_io.options import IterOptions, ReadOptions
from tfrecord_io.read.open_scan import count_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.schema.image_form import ImageForm
from tfrecord_io.schema.type_names import logical_name
from tfrecord_io.schema.types import is_list_like
from tfrecord_io.storage.read.source import Source
from tfrecord_io.training.checkpoint import ReadIdentity
from tfrecord_io.training.classes import Classes, find_classes
from tfrecord_io.training.shuffle_buffer import sorting
from tfrecord_io.typing import MixStop

_CHOICES = 2  # the purpose of a stream of random numbers; `shuffle_buffer` has others
_FIRST_COUNTED, _COUNTED = 1 << 10, 1 << 20  # choices at a time


@dataclass(frozen=True, repr=False)
class Mixture:
    """What is mixed, and how; see `tfrecord_io.mix`. It can be pickled, and takes the place of a `Scan` in training.

    Attributes
    ----------
    parts : tuple of Scan
        With the same columns, in the same order.
    weights : tuple of float
        Of each part; they sum up to 1.
    seed : int
    stop : {"first", "all", "never"}
    source_column : str or None
    classes : Classes or None
        What rows are drawn from in place of the parts.
    worker : tuple of int
        The part of the rows that this is, and how many there are.
    """

    parts: tuple[Scan, ...]
    weights: tuple[float, ...]
    seed: int
    stop: MixStop
    source_column: str | None = None
    classes: Classes | None = None
    worker: tuple[int, int] = (0, 1)

    @property
    def schema(self) -> pa.Schema:
        """Of the rows: that of the parts, and the source column."""
        nullable = [any(part.schema.field(i).nullable for part in self.parts) for i in range(len(self.names))]
        own = self.parts[0].schema
        fields = [field.with_nullable(null) for field, null in zip(own, nullable, strict=True)]
        source = [] if self.source_column is None else [pa.field(self.source_column, pa.int64(), False)]
        return pa.schema([*fields, *source])

    @property
    def names(self) -> list[str]:
        """The columns of the parts."""
        return list(self.parts[0].schema.names)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The files of all parts."""
        return tuple(source for part in self.parts for source in part.sources)

    @property
    def options(self) -> ReadOptions:
        """Those that the parts have in common; rows are limited by each part."""
        return replace(self.parts[0].options, offset=0, limit=None)

    @property
    def schema_source(self) -> str:
        return self.parts[0].schema_source

    @property
    def row_filter(self) -> None:
        """The parts have filters of their own."""

    def files_and_columns(self) -> str:
        """For display."""
        return f"{len(self.parts)} datasets: {self.parts[0].files_and_columns()}"

    def describe(self) -> str:
        """For display, and for checkpoints that compare it."""
        mixed = ", ".join(
            f"{weight:.3g} of {part.describe()}" for part, weight in zip(self.parts, self.weights, strict=True)
        )
        balanced = "" if self.classes is None else f", balance={self.classes.column!r}"
        return f"{mixed}; stop={self.stop!r}, seed={self.seed}{balanced}"

    def each(self, change: Callable[[Scan], Scan]) -> Self:
        """The same mixture of changed parts."""
        return replace(self, parts=tuple(map(change, self.parts)))

    def balanced(self, column: str) -> Self:
        """The same rows, drawn by their classes; see `find_classes`."""
        return replace(self, classes=find_classes(self.parts, column, self.weights))

    def rebalanced(self) -> Self:
        """The rows of changed parts, drawn by the same column, which need not be selected any more."""
        if self.classes is None:
            return self
        column = self.classes.column
        of_classes = self.each(lambda part: replace(part, selected=(column,)))
        return replace(self, classes=of_classes.balanced(column).classes)

    def over(self, **changes: Any) -> Self:
        """See `Scan.over`."""
        return self.each(lambda part: part.over(**changes))

    def pruned(self) -> Self:
        """See `Scan.pruned`."""
        return self.each(lambda part: part.pruned())

    def split(self, n: int | None, _: int = 0) -> list[Self]:
        """At most `n` parts of the rows, which are read apart; by default as many as each dataset has files."""
        most = max(1, min(len(part.sources) for part in self.parts))
        count = min(n or most, most)
        return [replace(self, worker=(index, count)) for index in range(count)]

    def worker_of(self, options: IterOptions) -> tuple[int, int]:
        """The part of all rows that a worker of this part has, and how many such parts there are."""
        (outer, outers), (worker, workers) = self.worker, options.worker or (0, 1)
        return outer * workers + worker, outers * workers

    def lengths(self) -> list[int]:
        """How many rows each choice can be; files without an index or a manifest are read for it."""
        return [count_scan(part) for part in self.parts] if self.classes is None else self.classes.lengths

    def rows(self) -> int:
        """The number of rows of an epoch, found as `lengths`; TypeError if it never ends."""
        return Choices(self).length(self.lengths())

    def random_rows(self, **representation: Any) -> MixedRandomRows:
        """The rows of an epoch by number."""
        return MixedRandomRows(self, **representation)

    def identity(self, options: IterOptions) -> ReadIdentity:
        """What the batches depend on; see `ReadIdentity`."""
        own = [ReadIdentity.of_read(part, options) for part in self.parts]
        mixed = ReadIdentity.of_read(self, options)
        parts = [
            [identity.files["digest"], part.options.offset, part.options.limit, identity.options.get("filter")]
            for part, identity in zip(self.parts, own, strict=True)
        ]
        column = [] if self.classes is None else [self.classes.column]
        of_mixture = [self.seed, self.stop, list(self.weights), list(self.worker), parts, *column]
        return replace(mixed, options={**mixed.options, "mixture": of_mixture})


def same_columns(scans: Sequence[Scan], added: str | None = None) -> tuple[Scan, ...]:
    """Scans whose columns have the order of the first one's; SchemaError if they differ, or have an `added` one."""
    first, *others = scans
    if added in first.schema.names:
        raise SchemaError("the datasets have a column of this name", feature=added, advice="choose another")
    ordered = [first]
    for number, scan in enumerate(others, 1):
        for name in dict.fromkeys([*first.schema.names, *scan.schema.names]):
            fields = (each.schema.field(name) if name in each.schema.names else None for each in (first, scan))
            if (difference := _difference(*fields)) is not None:
                feature, had, has = difference
                advice = (
                    say("open the datasets with the same {schema=}") | "select the columns that they have in common"
                )
                reason = f"dataset 0 has {had}, dataset {number} has {has}"
                raise SchemaError(reason, feature=feature or name, expected=had, got=has, advice=advice)
        ordered.append(scan if scan.schema.names == first.schema.names else scan.only(first.schema.names))
    return tuple(ordered)


def _difference(a: pa.Field | None, b: pa.Field | None) -> tuple[str | None, str, str] | None:
    """What two datasets have in a column, if that differs; with the name of the array, if the types are equal."""
    if a is None or b is None or a.type != b.type:
        had, has = ("no such column" if each is None else _described(each) for each in (a, b))
        return None, had, has
    for x, y in zip(leaf_fields(pa.schema([a])), leaf_fields(pa.schema([b])), strict=True):
        if (had := _described(x)) != (has := _described(y)):
            return x.name, had, has
    return None


def _described(field: pa.Field) -> str:
    """What the arrays of a column hold: its type, the shape of its lists, and what its images become."""
    text = logical_name(field.type, field.metadata)
    if is_list_like(field.type) and (shape := declared_shape(field)) is not None:
        text += f" of shape {shape}"
    image = ImageForm.from_metadata(field.metadata, field.name)
    if image is None:
        return text
    stated = {"size": image.size, "mode": image.mode, **image.keywords()}
    return f"{text} of image({', '.join(f'{name}={value!r}' for name, value in stated.items() if value is not None)})"


class Choices:
    """What each row of a mixture is drawn from: the sequence of a seed, of one worker where each has its own.

    The choices are the parts, or else the groups of `Classes`.
    """

    def __init__(self, mixture: Mixture, worker: int = 0) -> None:
        weights = mixture.weights if mixture.classes is None else mixture.classes.weights
        self.count = len(weights)
        self._stop = mixture.stop
        self._bounds = np.cumsum(weights)[:-1]
        self._seed = [mixture.seed, worker, _CHOICES]

    def stream(self, begin: int) -> np.random.Generator:
        """The random numbers from position `begin` on; see `datasets`."""
        bits = np.random.PCG64(np.random.SeedSequence(self._seed))
        bits.advance(begin)
        return np.random.Generator(bits)

    def datasets(self, numbers: Array) -> Array:
        """The choices that random numbers make."""
        return self._bounds.searchsorted(numbers, side="right")

    def blocks(self, begin: int = 0, end: int | None = None) -> Iterator[Array]:
        """The choices at the positions [begin, end)."""
        stream, at, size = self.stream(begin), begin, _FIRST_COUNTED
        while end is None or at < end:
            size = size if end is None else min(size, end - at)
            yield self.datasets(stream.random(size))
            at, size = at + size, min(2 * size, _COUNTED)

    def counts(self, end: int) -> Array:
        """How often each choice is made before a position."""
        counts = np.zeros(self.count, np.int64)
        for block in self.blocks(0, end):
            counts += np.bincount(block, minlength=self.count)
        return counts

    def drawn(self, rows: Sequence[int], begin: int = 0, end: int | None = None) -> Iterator[tuple[Array, Array]]:
        """The choices from a position on, each of so many rows, and how often it was made before; until the epoch ends.

        A choice of no rows is complete from the beginning; see `refuse_empty`.
        """
        sizes, before = np.array(rows, np.int64), self.counts(begin)
        for block in self.blocks(begin, end):
            if self._stop == "all" and (before >= sizes).all():
                return
            order = sorting(block, self.count)
            counts = np.bincount(block, minlength=self.count)
            ordinals = np.empty(len(block), np.int64)
            ordinals[order] = np.arange(len(block)) - np.repeat(np.cumsum(counts) - counts - before, counts)
            before += counts
            lacking = ordinals >= sizes[block] if self._stop == "first" else np.zeros(1, np.bool_)
            size = int(lacking.argmax()) if lacking.any() else len(block)
            if self._stop == "all" and (before >= sizes).all():
                size = int(np.flatnonzero(ordinals == sizes[block] - 1)[-1]) + 1
            yield block[:size], ordinals[:size]
            if size < len(block):
                return

    def length(self, rows: Sequence[int]) -> int:
        """The number of rows of an epoch, if the choices have so many; TypeError if it never ends."""
        refuse_empty(rows, self._stop)
        return self.own_length(rows)

    def own_length(self, rows: Sequence[int]) -> int:
        """That of a worker, which has no rows of some choices, perhaps."""
        self.refuse_endless()
        return sum(len(block) for block, _ in self.drawn(rows))

    def refuse_endless(self) -> None:
        """Raise TypeError if no epoch ends."""
        if self._stop == "never":
            raise TypeError(say('the number of rows is unknown: {stop="never"} has no end'))


def refuse_empty(rows: Sequence[int], stop: str) -> None:
    """Raise ValueError for a part without rows, from which none can be drawn again."""
    if stop != "first" and 0 in rows:
        raise ValueError(say("{stop=}: dataset {} of the mixture has no rows", list(rows).index(0), stop=stop))


class MixedRandomRows:
    """The rows of a mixture by number; see `tfrecord_io.arrays.random_rows.RandomRows`."""

    def __init__(self, mixture: Mixture, **representation: Any) -> None:
        self.scan, self._parts = mixture, [RandomRows(part, **representation) for part in mixture.parts]
        classes = mixture.classes
        counts = [len(part) for part in self._parts] if classes is None else classes.lengths
        choices = Choices(mixture)
        choices.refuse_endless()
        refuse_empty(counts, mixture.stop)
        drawn = [(np.empty(0, np.int64), np.empty(0, np.int64)), *choices.drawn(counts)]
        chosen, ordinals = (np.concatenate(arrays) for arrays in zip(*drawn, strict=True))
        ordinals %= np.maximum(counts, 1)[chosen]
        if classes is not None:
            chosen, ordinals = classes.rows_at(chosen, ordinals)
        self._chosen, self._ordinals = chosen.astype(np.int32), ordinals

    def __len__(self) -> int:
        return len(self._chosen)

    def row(self, number: int) -> dict[str, Any] | None:
        """See `RandomRows.row`."""
        if not -len(self) <= number < len(self):
            return None
        chosen, column = int(self._chosen[number]), self.scan.source_column
        row = self._parts[chosen].row(int(self._ordinals[number]))
        return row if row is None or column is None else {**row, column: np.int64(chosen)}

    def arrays(self, rows: Any) -> dict[str, Any]:
        """See `RandomRows.arrays`."""
        rows = row_numbers(rows, len(self))
        chosen = self._chosen[rows]
        used = [int(part) for part in np.unique(chosen)] or [0]
        places = [np.flatnonzero(chosen == part) for part in used]
        own = [self._parts[part].arrays(self._ordinals[rows[at]]) for part, at in zip(used, places, strict=True)]
        order = np.argsort(np.concatenate(places))
        arrays = {name: _joined([part[name] for part in own])[order] for name in own[0]}
        column = self.scan.source_column
        return arrays if column is None else {**arrays, column: chosen.astype(np.int64)}


def _joined(arrays: list[Array]) -> Array:
    """Arrays one after the other, masked if they are."""
    if isinstance(arrays[0], np.ma.MaskedArray):
        masked: Array = np.ma.concatenate(arrays)  # type: ignore[no-untyped-call]
        return masked
    return np.concatenate(arrays)


def shares(weights: Sequence[float] | None, count: int) -> tuple[float, ...]:
    """Weights whose sum is 1; ValueError if one of them has no share in it."""
    expected = say("{weights=}: expected a positive number for each of {} datasets", count, weights=weights)
    try:
        ratios = [1.0] * count if weights is None else [float(weight) for weight in weights]
    except (TypeError, ValueError):
        raise TypeError(expected) from None
    if len(ratios) == count and min(ratios) > 0 and sum(ratios) < math.inf:
        own = tuple(ratio / math.fsum(ratios) for ratio in ratios)
        if min(own) > 0:
            return own
    raise ValueError(expected)
