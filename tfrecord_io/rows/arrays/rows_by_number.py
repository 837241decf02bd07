"""Look up rows by number: rows of a scan as record batches, and rows of any lookup as arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import OnDamage, ScanOptions, cached_property
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, RowFault, empty_batch, int64_array
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read import NumberedRows, Scan, ScanRows
from tfrecord_io.rows.arrays.array_options import ColumnLayout, RepresentationOptions
from tfrecord_io.rows.arrays.shared_images import Groups
from tfrecord_io.rows.arrays.stacked_or_ragged import BatchForm, TableRepresentation

if TYPE_CHECKING:
    from tfrecord_io.typing import RandomAccess

OF_ROWS = frozenset({"pad_value", "max_length", "pad_to", "missing"})
_PLAIN = ColumnLayout()
_TEXT = (t.is_string, t.is_large_string, t.is_binary, t.is_large_binary)


class Lookup(ABC):
    """The rows of a dataset, or of what is made of some, by number. It can be pickled."""

    schema: pa.Schema

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def table(self, numbers: Array) -> pa.Table:
        """The rows of numbers from 0 to the length, in this order."""

    def shared_table(self, numbers: Array) -> tuple[pa.Table, Groups]:
        """The rows, with the images behind their keys."""
        return self.table(numbers), {}

    def record(self, number: int) -> Mapping[str, Any] | None:
        """The values of a row, which take less time than a table of it; None if they are not to be had alone."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """For display, and for checkpoints that compare it."""

    @abstractmethod
    def row_error(self, fault: RowFault) -> TFRecordError:
        """The error of the row with the number ``fault.row``."""

    @abstractmethod
    def measure_rows(self, names: Sequence[str], measure: Callable[[pa.RecordBatch], Array]) -> Array:
        """An array of numbers of all rows, which `measure` finds of batches with these columns."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """See `IndexedFiles.check_unchanged`."""


class PartLookup(Lookup):
    """The rows of a dataset, from which those of balanced mixtures are drawn."""

    @abstractmethod
    def column(self, name: str) -> pa.ChunkedArray:
        """The values of a column in all rows, as dictionary arrays: of repeated text, offsets may not reach all."""

    @abstractmethod
    def rescan(self, scan: Scan) -> Self:
        """Return these rows with the columns of a scan of the same files."""

    @property
    @abstractmethod
    def bytes_read(self) -> int:
        """Bytes of the records."""

    @property
    @abstractmethod
    def mean_bytes(self) -> float:
        """Mean size of a record with its frame."""


class ScanLookup(PartLookup):
    """The rows of a scan by number; files are opened in each process when a row is read.

    ValueError if a file is compressed, whose rows can only be read from its start, or the scan has an `on_error`.
    """

    def __init__(self, scan: Scan) -> None:
        self.scan = scan.prune_files()
        if not scan.options.damage.is_strict:
            reason = "rows that are left out have none"
            raise ValueError(f"on_error= cannot be combined with access by number: {reason}; {OnDamage.SALVAGE}")
        if (compression := scan.options.compression) not in (None, "infer"):
            reason = "only plain files have records by number"
            stated, advice = f"compression={compression!r}", "tfr.convert(dataset, target) writes them"
            raise ValueError(f"{stated} cannot be combined with access by number: {reason}; {advice}")
        selection = self.scan.selection
        self._files = ScanRows(self.scan).indexed_files()
        self._files.forget()
        self._numbers: Array | range  # of the records
        if self.scan.row_filter is None:
            stop = len(self._files) if selection.limit is None else selection.offset + selection.limit
            self._numbers = range(len(self._files))[selection.offset : stop]
        else:
            self._numbers = _fulfilling(self.scan)
            self.check_unchanged()  # the filter opened the files, too

    @property
    def schema(self) -> pa.Schema:
        return self.scan.schema

    @cached_property
    def _records(self) -> RandomAccess:
        rows = ScanRows(replace(self.scan, row_filter=None).without_filter())
        return rows.random_access(self._files)

    def __len__(self) -> int:
        return len(self._numbers)

    def describe(self) -> str:
        return self.scan.describe()

    def record(self, number: int) -> Mapping[str, Any]:
        return self._records[int(self._numbers[number])]

    def table(self, numbers: Array) -> pa.Table:
        return self._records[self._records_of(numbers)].select(self.scan.schema.names)

    def column(self, name: str) -> pa.ChunkedArray:
        rows = ScanRows(replace(self.scan, row_filter=None).only([name]).without_filter())
        chunks = rows.random_access(self._files).values()
        type_ = self.schema.field(name).type
        type_ = type_.value_type if t.is_dictionary(type_) else type_
        values = pa.chunked_array([chunk.cast(type_) for chunk in chunks], type_).dictionary_encode()
        return values if len(self) == len(self._files) else values.take(int64_array(np.asarray(self._numbers)))

    def measure_rows(self, names: Sequence[str], measure: Callable[[pa.RecordBatch], Array]) -> Array:
        with ScanRows(self.scan.only(names)).open() as reader:
            parts = [measure(batch) for batch in reader]
        return np.concatenate(parts or [measure(empty_batch(self.scan.only(names).schema))])

    def check_unchanged(self) -> None:
        self._files.check_unchanged()

    def rescan(self, scan: Scan) -> Self:
        rows = copy(self)
        rows.__dict__ = {**self.__getstate__(), "scan": scan}
        return rows

    @property
    def bytes_read(self) -> int:
        return self._records.report.bytes

    @property
    def mean_bytes(self) -> float:
        return sum(index.end for index in self._files.indexes) / max(1, len(self._files))

    def row_error(self, fault: RowFault) -> TFRecordError:
        (file,), (record,) = self._files.locate(self._records_of(np.array([fault.row])))
        return fault.to_error(self._files.sources[file].path, int(record))

    def _records_of(self, rows: Array) -> Array:
        """The numbers of the records of rows."""
        return self._numbers.start + rows if isinstance(self._numbers, range) else self._numbers[rows]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_records"}


class ItemsByNumber(ABC):
    """Rows or batches by number. They can be pickled."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of the rows."""

    @abstractmethod
    def describe(self) -> str:
        """Text for display, and for checkpoints, which compare it."""

    @abstractmethod
    def row(self, number: int) -> dict[str, Any] | None:
        """A row, as `arrays` of it without their first axis, in less time; None if `arrays` has to make it.

        Of batches, None: `BatchesByNumber.take` makes them.
        """

    @abstractmethod
    def arrays(self, rows: Any) -> dict[str, Any]:
        """The rows of these numbers, in this order, as arrays by column; IndexError if one is out of range.

        TypeError of batches.
        """


class ArraysByNumber(ItemsByNumber):
    """Rows by number as arrays; columns with `lengths` are stacked (`TableRepresentation`). It can be pickled."""

    def __init__(self, rows: Lookup, options: RepresentationOptions, lengths: dict[str, int] | None = None) -> None:
        self.rows, self._options, self._lengths = rows, options, lengths
        self._representation = TableRepresentation(rows.schema, options, complete=False, lengths=lengths)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def schema(self) -> pa.Schema:
        return self.rows.schema

    def describe(self) -> str:
        return self.rows.describe()

    @cached_property
    def _scalars(self) -> list[tuple[str, type[np.generic] | None]] | None:
        """By column, the NumPy scalar type of single numbers, else None; None if a column needs handling of its own."""
        scalars: list[tuple[str, type[np.generic] | None]] = []
        for field in self.rows.schema:
            type_, is_list = field.type, Column(field.type).is_list or Column(field.type).is_fixed_shape_tensor
            value = type_.value_type if is_list else type_
            is_number = t.is_integer(value) or t.is_float32(value) or t.is_float64(value) or t.is_boolean(value)
            is_text = not is_list and any(is_of(value) for is_of in _TEXT)
            is_shaped = self._options.layouts.layout(field.name) != _PLAIN or self._options.missing != "error"
            is_marked = bool(set(field.metadata or ()) - {Column.ENCODING_KEY})
            if is_shaped or is_marked or not (is_number or is_text):
                return None
            scalars.append((field.name, np.dtype(value.to_pandas_dtype()).type if is_number and not is_list else None))
        return scalars

    def row(self, number: int) -> dict[str, Any] | None:
        count = len(self.rows)
        if self._scalars is None or not -count <= number < count:
            return None
        record = self.rows.record(number if number >= 0 else number + count)
        if record is None:
            return None
        row = {}
        for name, scalar in self._scalars:
            value = record[name]
            if value is None:
                return None
            row[name] = value if scalar is None else scalar(value)
        return row

    def arrays(
        self, rows: Any, form: BatchForm | None = None, cuts: tuple[Array, Array] | None = None
    ) -> dict[str, Any]:
        """As `ItemsByNumber.arrays`, in the form of a batch.

        `cuts` are the arguments of `ColumnArrays.cut`.
        """
        numbers = row_numbers(rows, len(self))
        table, shared = self.rows.shared_table(numbers)
        try:
            columns = self._representation.represent(table.to_batches() or [empty_batch(table.schema)], None, shared)
        except RowFault as fault:
            raise self.rows.row_error(fault.renumber(int(numbers[fault.row]))) from fault.__cause__
        if cuts is None:
            return TableRepresentation.slice(columns, 0, len(table), form)
        return TableRepresentation.slice([column.cut(*cuts) for column in columns], 0, len(cuts[0]) - 1, form)

    def __reduce__(self) -> tuple[Any, ...]:
        return ArraysByNumber, (self.rows, self._options, self._lengths)


def row_options(options: ScanOptions, **representation: Any) -> RepresentationOptions:
    """The options of a reader and keywords of `OF_ROWS`; ValueError if a row's length would depend on other rows."""
    pad_to = representation.get("pad_to")
    for length in pad_to.values() if isinstance(pad_to, Mapping) else [pad_to]:
        if isinstance(length, tuple | list):
            raise ValueError(f"pad_to={length!r}: a row by its number has a length of its own; pass an integer")
    return RepresentationOptions.from_scan(options, **representation)


def row_numbers(rows: Any, count: int) -> Array:
    """Numbers of rows, of which negative ones count from the end; IndexError if one of `count` rows is out of range.

    TypeError if they are not integers.
    """
    numbers = np.asarray(rows)
    if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
        raise TypeError(f"expected numbers of rows, got {type(rows).__name__} of {numbers.dtype}")
    rows = numbers.astype(np.int64)
    invalid = (rows < -count) | (rows >= count)
    if invalid.any():
        raise IndexError(f"row {rows[invalid.argmax()]} is out of range: there are {count} rows")
    return np.where(rows < 0, rows + count, rows)


def _fulfilling(scan: Scan) -> Array:
    """The numbers of the records that fulfil the filter of a scan."""
    assert scan.row_filter is not None
    numbers = [np.empty(0, np.int64)]
    with ScanRows(scan.only([]).without_filter()).open_indexed(scan.row_filter, whole=True) as reader:
        for of_batch, batch in NumberedRows(reader, scan.selection.offset):
            numbers.append(scan.row_filter.rows(batch, of_batch))
    return np.concatenate(numbers)[: scan.selection.limit]
