"""Mixture of datasets: a source whose rows are each drawn from one dataset, by weights and a seed.

The order of an epoch is a sequence of choices (`rows/training/mixture_choices.py`), one for each row: the n-th row of
the sequence that chooses a part is the n-th row of that part. A balanced mixture chooses among groups of one class
(`rows/training/label_classes.py`). `Mixture` is the source, `MixtureLookup` its rows by number; epochs are those of
`rows/training/mixed_rows.py`.

Tests: tests/rows/training/test_mixture.py and tests/rows/training/test_mixed_rows.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.base import MIB, ScanOptions, Selection, cached_property
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, ImageForm, RawImageForm, RowFault, int64_array, offsets_of, selectable
from tfrecord_io.errors import SchemaError, TFRecordError
from tfrecord_io.read import Scan
from tfrecord_io.rows.arrays.rows_by_number import Lookup
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition, ReadIdentity
from tfrecord_io.rows.training.label_classes import Classes, find_classes
from tfrecord_io.rows.training.mixture_choices import Choices
from tfrecord_io.rows.training.row_source import RowSource
from tfrecord_io.rows.training.scan_row_source import source_of
from tfrecord_io.typing import MixStop

_MOST_ORDERED_BYTES = 512 * MIB  # of rows that are put in order at a time


@dataclass(frozen=True, repr=False)
class Mixture(RowSource):
    """Datasets to mix, and how; see `tfrecord_io.mix`."""

    mixed: tuple[Any, ...]  # scans and sources with the same columns, in the same order
    weights: tuple[float, ...]  # of each part; they sum up to 1
    seed: int
    stop: MixStop
    source_column: str | None = None
    classes: Classes | None = None  # groups that rows are drawn from, instead of the parts
    worker: tuple[int, int] = (0, 1)  # number of this part of the rows, and number of such parts; see `split`

    @classmethod
    def of(
        cls,
        parts: Sequence[Any],
        weights: Sequence[float] | None,
        *,
        seed: int,
        stop: MixStop,
        source_column: str | None = None,
    ) -> Self:
        """Mix scans and sources; `weights` are scaled, and columns brought into the order of the first part.

        SchemaError if columns differ, or one is named `source_column`; TypeError or ValueError for other weights.
        """
        shares = _shares(weights, len(parts))
        return cls(_same_columns(parts, source_column), shares, seed=seed, stop=stop, source_column=source_column)

    @cached_property
    def schema(self) -> pa.Schema:
        """Schema of the parts, and the source column."""
        nullable = [any(part.schema.field(i).nullable for part in self.mixed) for i in range(len(self.names))]
        fields = [field.with_nullable(null) for field, null in zip(self.mixed[0].schema, nullable, strict=True)]
        source = [] if self.source_column is None else [pa.field(self.source_column, pa.int64(), False)]
        return pa.schema([*fields, *source])

    @property
    def names(self) -> list[str]:
        """The columns of the parts."""
        return list(self.mixed[0].schema.names)

    @property
    def members(self) -> list[RowSource]:
        """The parts as sources."""
        return list(map(source_of, self.mixed))

    @property
    def scans(self) -> tuple[Scan, ...]:
        return tuple(scan for member in self.members for scan in member.scans)

    @property
    def options(self) -> ScanOptions:
        """Options that the parts have in common."""
        return self.mixed[0].options

    @property
    def selection(self) -> Selection:
        """All rows: they are limited by each part."""
        return Selection.ALL

    def files_and_columns(self) -> str:
        return f"{len(self.mixed)} datasets: {self.mixed[0].files_and_columns()}"

    def describe(self) -> str:
        mixed = ", ".join(
            f"{weight} of {part.describe()}" for part, weight in zip(self.mixed, self.weights, strict=True)
        )
        balanced = "" if self.classes is None else f", balance={self.classes.column!r}"
        return f"{mixed}; stop={self.stop!r}, seed={self.seed}{balanced}"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "schema"}  # as `Windows`

    def map_scans(self, change: Callable[[Any], Any]) -> Self:
        """Return this mixture with changed parts."""
        parts = (change(part) if isinstance(part, Scan) else part.map_scans(change) for part in self.mixed)
        return replace(self, mixed=tuple(parts))

    def balance(self, column: str) -> Self:
        """Return a mixture that draws these rows by their classes; see `find_classes`."""
        lookups: list[Any] = [member.lookup() for member in self.members]
        return replace(self, classes=find_classes(lookups, column, self.weights))

    def rebalance(self) -> Self:
        """Find the classes again after parts have changed. Their column need not be selected any more."""
        if self.classes is None:
            return self
        column, steps = self.classes.column, self.members[0].steps
        of_classes = self.map_scans(lambda scan: replace(scan, selected=(column, *steps)))
        return replace(self, classes=of_classes.balance(column).classes)

    def split(self, n: int | None, max_bytes: int = 0) -> list[Self]:
        """Split the rows into at most `n` parts that are read apart; by default as many as each dataset has files."""
        fewest_files = max(1, min(len(part.sources) for part in self.mixed))
        count = min(n or fewest_files, fewest_files)
        return [replace(self, worker=(index, count)) for index in range(count)]

    def worker_of(self, options: IterOptions) -> tuple[int, int]:
        """Number of a worker of this part among all workers of all parts, and their number."""
        (outer, outers), (worker, workers) = self.worker, options.share
        return outer * workers + worker, outers * workers

    def has_own_files(self, workers: int) -> bool:
        """True if each of several workers mixes files of its own, by a sequence of its own."""
        members = self.members
        fewest = min(len(member.sources) for member in members)
        return self.classes is None and 1 < workers <= fewest and not any(member.is_limited for member in members)

    def most_parts(self, count: int) -> int:
        if self.classes is not None:  # rows are read by number
            return count
        fewest = min(count, *(len(member.sources) for member in self.members))
        return fewest if self.has_own_files(fewest) and not self.options.damage.ends_quietly else 1

    def choices(self, worker: int = 0) -> Choices:
        """Sequence of the choices: that of all workers, or of one `worker` with files of its own."""
        weights = self.weights if self.classes is None else self.classes.weights
        return Choices(weights, self.seed, self.stop, worker)

    def counts(self) -> list[int]:
        """Number of rows that each choice draws from."""
        return [member.count_rows() for member in self.members] if self.classes is None else self.classes.lengths

    def count_rows(self) -> int:
        """Number of rows of an epoch, rows that are drawn again included; TypeError if the epoch never ends."""
        return self.choices().length(self.counts())

    def lookup(self) -> MixtureLookup:
        return MixtureLookup(self)

    def batches(self) -> Generator[pa.RecordBatch]:
        """Rows of an epoch; the rows of each part come in the order of its files."""
        schema = self.schema
        with closing(self.epochs(IterOptions(batch_size=1), 0).open(IteratorPosition(0, 0, 0))) as rows:
            for batch in rows:
                made = batch.make_windows(shares=False).rows.columns
                columns = [column.cast(type_) for column, type_ in zip(made, schema.types, strict=True)]
                nothing = pa.RecordBatch.from_arrays([pa.nulls(len(batch))], ["x"]).select([])  # with rows
                yield pa.RecordBatch.from_arrays(columns, schema=schema) if columns else nothing
            rows.raise_error()

    def to_table(self) -> pa.Table:
        """Rows of an epoch as a table; ValueError if the epoch never ends."""
        if self.stop == "never":
            raise ValueError('stop="never": a mixture without an end is not a table')
        return pa.Table.from_batches(self.batches(), self.schema)

    def read_rows(self, lookups: Sequence[Lookup], datasets: Array, rows: Array) -> pa.Table:
        """Read rows by dataset and row number."""
        used = np.unique(datasets) if len(datasets) else np.zeros(1, np.int64)
        places = [np.flatnonzero(datasets == dataset) for dataset in used]
        tables = [lookups[dataset].table(rows[at]) for dataset, at in zip(used, places, strict=True)]
        table = pa.concat_tables(_merge_rows(tables, places, 0, len(rows)))
        source = [] if self.source_column is None else [pa.chunked_array([int64_array(datasets.astype(np.int64))])]
        return pa.Table.from_arrays([*table.columns, *source], schema=self.schema)

    def identity(self, options: IterOptions) -> ReadIdentity:
        worker = self.worker_of(options)
        has_equal_parts = options.uneven != "keep" and self.stop != "never"
        own_files = worker if self.has_own_files(worker[1]) and not has_equal_parts else None
        of_members = options.changed(worker=own_files, uneven="keep")
        identities = [member.identity(of_members) for member in self.members]
        mixed = ReadIdentity.from_sources(self.sources, options, self.selection)
        parts = []
        for identity, part in zip(identities, self.mixed, strict=True):
            windows = [identity.options["windows"]] if "windows" in identity.options else []
            of_part = part.selection.offset, part.selection.limit, identity.options.get("filter")
            parts.append([identity.files["digest"], *of_part, *windows])
        column = [] if self.classes is None else [self.classes.column]
        of_mixture = [self.seed, self.stop, list(self.weights), list(self.worker), parts, *column]
        left_out = [identity.options["left_out"] for identity in identities]
        runs = [identity.options.get("run") for identity in identities]
        of_all = {"mixture": of_mixture, "left_out": left_out if any(left_out) else None}
        return replace(mixed, options={**mixed.options, **of_all, **({"run": runs} if any(runs) else {})})

    def list_lengths(self, options: IterOptions) -> dict[str, int]:
        of_members = [member.list_lengths(options).items() for member in self.members]
        return dict(set(of_members[0]).intersection(*of_members[1:]))

    def refuse_own_seeds(self, options: IterOptions) -> None:
        _, workers = self.worker_of(options)
        is_drawn = options.shuffle_buffer > 0 and options.seed is None and options.state is None
        if not is_drawn or workers == 1 or self.classes is not None or self.has_own_files(workers):
            return
        if any(len(member.sources) > 1 and not member.is_limited for member in self.members):
            reason = "they share its rows, in a shuffled order of the files"
            raise ValueError(f"a mixture with shuffle_buffer= needs the same seed= in all workers: {reason}")


def _same_columns(parts: Sequence[Any], added: str | None = None) -> tuple[Any, ...]:
    """Bring the columns of all parts into one order; SchemaError if columns differ, or one is named `added`."""
    first, *further = parts
    if added in first.schema.names:
        raise SchemaError("the datasets have a column of this name", feature=added, hint="choose another")
    ordered, fields = [first], {field.name: field for field in first.schema}
    for number, part in enumerate(further, 1):
        of_part = {field.name: field for field in part.schema}
        for name in fields | of_part:
            if (difference := _difference(fields.get(name), of_part.get(name))) is not None:
                feature, had, has = difference
                advice = "open the datasets with the same schema=, or select the columns that they have in common"
                reason = f"dataset 0 has {had}, dataset {number} has {has}"
                raise SchemaError(reason, feature=feature or name, expected=had, got=has, hint=advice)
        ordered.append(part if part.schema.names == first.schema.names else part.only(first.schema.names))
    return tuple(ordered)


def _difference(a: pa.Field | None, b: pa.Field | None) -> tuple[str | None, str, str] | None:
    """Difference of two datasets in a column, if any: the array if only arrays differ, and both descriptions."""
    if a is None or b is None or a.type != b.type:
        had, has = ("no such column" if field is None else _describe_column(field) for field in (a, b))
        return None, had, has
    for x, y in zip(Column.leaf_fields(pa.schema([a])), Column.leaf_fields(pa.schema([b])), strict=True):
        if (had := _describe_column(x)) != (has := _describe_column(y)):
            return x.name, had, has
    return None


def _describe_column(field: pa.Field) -> str:
    """Describe the arrays of a column: type, shape of lists, form of images."""
    text = Column(field).logical_name
    if Column(field.type).is_list and (shape := Column(field).declared_shape) is not None:
        text += f" of shape {shape}"
    image = ImageForm.from_metadata(field.metadata, field.name)
    raw = RawImageForm.from_metadata(field.metadata, field.name)
    if image is not None:
        keywords = {"size": image.size, "mode": image.mode, **image.keywords()}
    elif raw is not None and raw.resize is not None:
        keywords = {"layout": raw.layout, **raw.keywords()}
    else:
        return text
    return f"{text} of image({', '.join(f'{name}={value!r}' for name, value in keywords.items() if value is not None)})"


class MixtureLookup(Lookup):
    """Rows of a mixture by number."""

    def __init__(self, mixture: Mixture) -> None:
        self.schema, self._mixture = mixture.schema, mixture
        self._parts = [member.lookup() for member in mixture.members]
        classes, choices = mixture.classes, mixture.choices()
        counts = [len(part) for part in self._parts] if classes is None else classes.lengths
        choices.refuse_endless()
        choices.refuse_empty(counts)
        blocks = [(np.empty(0, np.int64), np.empty(0, np.int64)), *choices.draw(counts)]
        parts, rows = (np.concatenate(arrays) for arrays in zip(*blocks, strict=True))
        rows %= np.maximum(counts, 1)[parts]
        if classes is not None:
            parts, rows = classes.rows_at(parts, rows)
        self._datasets, self._rows = parts.astype(np.int32), rows  # of each row of the mixture

    def __len__(self) -> int:
        return len(self._datasets)

    def table(self, numbers: Array) -> pa.Table:
        return self._mixture.read_rows(self._parts, self._datasets[numbers], self._rows[numbers])

    def record(self, number: int) -> Mapping[str, Any] | None:
        dataset, column = int(self._datasets[number]), self._mixture.source_column
        record = self._parts[dataset].record(int(self._rows[number]))
        return record if record is None or column is None else {**record, column: dataset}

    def row_error(self, fault: RowFault) -> TFRecordError:
        return self._parts[self._datasets[fault.row]].row_error(fault.renumber(int(self._rows[fault.row])))

    def describe(self) -> str:
        return self._mixture.describe()

    def measure_rows(self, names: Sequence[str], measure: Callable[[pa.RecordBatch], Array]) -> Array:
        of_parts = [part.measure_rows(names, measure) for part in self._parts]
        first = offsets_of(np.array(list(map(len, of_parts))))
        return np.concatenate(of_parts)[first[self._datasets] + self._rows]

    def check_unchanged(self) -> None:
        for part in self._parts:
            part.check_unchanged()


def _merge_rows(tables: Sequence[pa.Table], places: Sequence[Array], begin: int, end: int) -> list[pa.Table]:
    """Merge the rows whose `places` are in [begin, end), in that order, into tables that 32-bit offsets reach."""
    parts = [slice(*at.searchsorted([begin, end])) for at in places]
    rows = pa.concat_tables([table[part] for table, part in zip(tables, parts, strict=True)])
    if rows.nbytes > _MOST_ORDERED_BYTES and end - begin > 1:
        middle = (begin + end) // 2
        return [*_merge_rows(tables, places, begin, middle), *_merge_rows(tables, places, middle, end)]
    rows = rows.combine_chunks()
    if len(tables) == 1:
        return [rows]
    order = np.argsort(np.concatenate([at[part] for at, part in zip(places, parts, strict=True)]))
    return [selectable(rows).take(int64_array(order))]


def _shares(weights: Sequence[float] | None, count: int) -> tuple[float, ...]:
    """Scale weights so that their sum is 1; ValueError if a weight becomes 0."""
    expected = f"weights={weights!r}: expected a positive number for each of {count} datasets"
    try:
        ratios = [1.0] * count if weights is None else [float(weight) for weight in weights]
    except (TypeError, ValueError):
        raise TypeError(expected) from None
    if len(ratios) == count and min(ratios) > 0 and sum(ratios) < math.inf:
        scaled = tuple(ratio / math.fsum(ratios) for ratio in ratios)
        if min(scaled) > 0:
            return scaled
    raise ValueError(expected)
