"""Several datasets as one: each row is drawn from one of them, by weights and a seed.

The order of an epoch is a sequence of choices, one for each row, which a seed alone determines: the n-th row of the
sequence that chooses a part is the n-th row of that part. So the position in the sequence is all that has to be known
to go on from it, and workers share the sequence as they share the rows of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrays.random_rows import RandomRows, row_numbers
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import SchemaError
from tfrecord_io.options import IterOptions, ReadOptions
from tfrecord_io.read.open_scan import count_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.storage.read.source import Source
from tfrecord_io.training.checkpoint import ReadIdentity
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
    worker : tuple of int
        The part of the rows that this is, and how many there are.
    """

    parts: tuple[Scan, ...]
    weights: tuple[float, ...]
    seed: int
    stop: MixStop
    source_column: str | None = None
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
        return f"{mixed}; stop={self.stop!r}, seed={self.seed}"

    def each(self, change: Callable[[Scan], Scan]) -> Self:
        """The same mixture of changed parts."""
        return replace(self, parts=tuple(map(change, self.parts)))

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

    def lengths(self) -> list[int]:
        """The number of rows of each part, for which files without an index or a manifest are read."""
        return [count_scan(part) for part in self.parts]

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
        of_mixture = [self.seed, self.stop, list(self.weights), list(self.worker), parts]
        return replace(mixed, options={**mixed.options, "mixture": of_mixture})


def same_columns(scans: Sequence[Scan]) -> tuple[Scan, ...]:
    """Scans whose columns have the order of the first one's; SchemaError if their names or types differ."""
    first, *others = scans
    ordered = [first]
    for number, scan in enumerate(others, 1):
        for name in [*first.schema.names, *scan.schema.names]:
            types = [each.schema.field(name).type if name in each.schema.names else None for each in (first, scan)]
            if types[0] != types[1]:
                had, has = ("no such column" if type_ is None else str(type_) for type_ in types)
                advice = "open the datasets with the same schema=, or select the columns that they have in common"
                reason = f"dataset 0 has {had}, dataset {number} has {has}"
                raise SchemaError(reason, feature=name, expected=had, got=has, advice=advice)
        ordered.append(scan if scan.schema.names == first.schema.names else scan.only(first.schema.names))
    return tuple(ordered)


class Choices:
    """Which part each row of a mixture is drawn from: the sequence of a seed, of one worker where each has its own."""

    def __init__(self, mixture: Mixture, worker: int = 0) -> None:
        self.count = len(mixture.weights)
        self._stop = mixture.stop
        self._bounds = np.cumsum(mixture.weights)[:-1]
        self._seed = [mixture.seed, worker, _CHOICES]

    def stream(self, begin: int) -> np.random.Generator:
        """The random numbers from position `begin` on; see `datasets`."""
        bits = np.random.PCG64(np.random.SeedSequence(self._seed))
        bits.advance(begin)
        return np.random.Generator(bits)

    def datasets(self, numbers: Array) -> Array:
        """The choices that random numbers make."""
        return self._bounds.searchsorted(numbers, side="right")

    def blocks(self, end: int | None = None) -> Iterator[Array]:
        """The choices up to a position, from the first on."""
        stream, at = self.stream(0), 0
        while end is None or at < end:
            size = min(_COUNTED, max(at, _FIRST_COUNTED))
            size = size if end is None else min(size, end - at)
            yield self.datasets(stream.random(size))
            at += size

    def counts(self, end: int) -> Array:
        """How often each part is chosen before a position."""
        counts = np.zeros(self.count, np.int64)
        for block in self.blocks(end):
            counts += np.bincount(block, minlength=self.count)
        return counts

    def length(self, rows: Sequence[int]) -> int:
        """The number of rows of an epoch, if the parts have so many; TypeError if it never ends."""
        if self._stop == "never":
            raise TypeError('the number of rows is unknown: stop="never" has no end')
        refuse_empty(rows, self._stop)
        left, at = np.array(rows, np.int64), 0
        ended = np.full(self.count, -1)  # where each part is used up: "first": by the row that it lacks
        lacks = self._stop == "first"
        for block in self.blocks():
            for part in np.flatnonzero(ended < 0):
                places = np.flatnonzero(block == part)
                needed = left[part] + lacks
                if len(places) >= needed:
                    ended[part] = at + (places[needed - 1] if needed else -1)
                left[part] -= len(places)
            at += len(block)
            if lacks and (ended >= 0).any():
                return int(ended[ended >= 0].min())
            if not lacks and (ended >= 0).all():
                return int(ended.max()) + 1
        raise AssertionError("the choices never end")


def refuse_empty(rows: Sequence[int], stop: str) -> None:
    """Raise ValueError for a part without rows, from which none can be drawn again."""
    if stop != "first" and 0 in rows:
        raise ValueError(f"stop={stop!r}: dataset {list(rows).index(0)} of the mixture has no rows")


class MixedRandomRows:
    """The rows of a mixture by number; see `tfrecord_io.arrays.random_rows.RandomRows`."""

    def __init__(self, mixture: Mixture, **representation: Any) -> None:
        self.scan, self._parts = mixture, [RandomRows(part, **representation) for part in mixture.parts]
        counts = [len(part) for part in self._parts]
        choices = Choices(mixture)
        blocks = [np.empty(0, np.int64), *choices.blocks(choices.length(counts))]
        self._chosen = np.concatenate(blocks).astype(np.int32)
        self._ordinals = np.empty(len(self._chosen), np.int64)
        for number, count in enumerate(counts):
            where = np.flatnonzero(self._chosen == number)
            self._ordinals[where] = np.arange(len(where)) % max(count, 1)

    def __len__(self) -> int:
        return len(self._chosen)

    def row(self, number: int) -> dict[str, Any] | None:
        """See `RandomRows.row`."""
        if not -len(self) <= number < len(self):
            return None
        chosen, column = int(self._chosen[number]), self.scan.source_column
        row = self._parts[chosen].row(int(self._ordinals[number]))
        return row if row is None or column is None else {**row, column: np.int64(chosen)}

    def arrays(self, rows: Array) -> dict[str, Any]:
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
