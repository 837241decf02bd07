"""Compare two datasets: their columns, numbers of records, and values."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import (
    ProgressMeter,
    ReadOptions,
    Report,
    ScanOptions,
    Selection,
    Summary,
    check_integer,
    check_keywords,
    counted,
    for_cli,
    printable,
    short,
)
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, RowHashes, selectable
from tfrecord_io.errors import FeatureNotFoundError
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.source_resolution import Files
from tfrecord_io.store import Source
from tfrecord_io.typing import InputPath, ProgressLike, StorageLike

_DIGEST_BYTES = RowHashes.DTYPE.itemsize
_EPOCH, _EPOCH_UTC = dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}  # in units of NumPy
_SIMPLE = (int, float, str, bytes, Decimal)  # of which `==` compares two of one type as `_canonical` does


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """A column that is missing in one dataset, or has two types; None: the column does not exist."""

    column: str
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """Two values that differ, shortened; or a value of a record that only `a` or only `b` has.

    With a key, `record` is the number of the record in `a`, of added ones in `b`, and `key` is its key.
    """

    record: int
    column: str
    a: str | None
    b: str | None
    key: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class DiffReport(Report):
    """The result of `diff`; it prints as a line, a line for each column that differs, and a table of values.

    Attributes
    ----------
    records : tuple of int
        Numbers of records of both.
    schema : tuple of SchemaDifference
    differing : int
        Number of records that differ; regardless of order, of those that only one dataset has.
    values : tuple of ValueDifference
        Of the first records that differ.
    changed, added, removed : int or None
        With a key, the number of records that both have with other values, that only `b` has, and that only `a` has.
    """

    records: tuple[int, int]
    schema: tuple[SchemaDifference, ...]
    differing: int
    values: tuple[ValueDifference, ...]
    changed: int | None = None
    added: int | None = None
    removed: int | None = None

    @property
    def equal(self) -> bool:
        """True if columns, types, numbers of records and values agree."""
        return not self.schema and not self.differing and self.records[0] == self.records[1]

    def title(self) -> str:
        """Summary of the differences in a line."""
        if self.equal:
            return f"equal: {counted(self.records[0], 'record')}"
        counts = " and ".join(counted(count, "record") for count in self.records)
        differing = f"{counted(self.differing, 'record')} {'differs' if self.differing == 1 else 'differ'}"
        if self.changed is not None:
            differing = f"{self.changed:,} changed, {self.added:,} added, {self.removed:,} removed"
        return f"{counts}, {differing}, {counted(len(self.schema), 'column')} of another type or missing"

    def schema_lines(self) -> list[str]:
        """Lines of text, one for each column that differs."""
        return [f"column {printable(d.column)}: {d.a or 'missing'} in a, {d.b or 'missing'} in b" for d in self.schema]

    def rows(self) -> list[tuple[str, ...]]:
        """Rows of a table, one for each value, in the order of `headings`."""
        return [(d.key or f"{d.record:,}", printable(d.column, None), d.a or "", d.b or "") for d in self.values]

    @property
    def headings(self) -> tuple[str, ...]:
        """Headings of the table of values."""
        return ("record" if self.changed is None else "key", "column", "a", "b")

    def to_dict(self) -> dict[str, Any]:
        """Convert to types of JSON."""
        values = [asdict(difference) for difference in self.values]
        result = {
            "equal": self.equal,
            "records": list(self.records),
            "differing": self.differing,
            "schema": [asdict(difference) for difference in self.schema],
            "values": values,
        }
        if self.changed is not None:
            return {**result, "changed": self.changed, "added": self.added, "removed": self.removed}
        for value in values:
            del value["key"]
        return result

    def _summary(self) -> Summary:
        return Summary(self.title(), self.headings, self.rows(), self.schema_lines())


@check_keywords
def diff(
    a: InputPath,
    b: InputPath,
    *,
    any_order: bool = False,
    key: str | Sequence[str] | None = None,
    limit: int = 10,
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> DiffReport:
    """Compare two datasets: columns and types, numbers of records, and the values of each record.

    Records are compared by the values of the columns that both have, not by their bytes: the order of features in a
    record, compression and shards make no difference. NaN equals NaN, and -0.0 equals 0.0. Values of columns of two
    types may be equal: 1, 1.0 and a decimal 1.00, or one instant in two units or time zones. Regardless of order,
    values and keys are compared by hashes of 128 bits.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3], "s": ["a", "b", "c"]}, "a.tfrecord")
    >>> _ = tfr.write_tfrecord({"x": [1, 5, 3], "s": ["a", "b", "c"]}, "b.tfrecord")
    >>> print(tfr.diff("a.tfrecord", "b.tfrecord"))
    3 records and 3 records, 1 record differs, 0 columns of another type or missing
    record  column  a  b
    1       x       2  5
    >>> tfr.diff("a.tfrecord", "a.tfrecord").equal
    True
    >>> print(tfr.diff("a.tfrecord", "b.tfrecord", key="x"))
    3 records and 3 records, 0 changed, 1 added, 1 removed, 0 columns of another type or missing
    key  column  a  b
    2    x       2
    2    s       b
    5    x          5
    5    s          b

    Parameters
    ----------
    a, b : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more reading options.
    any_order : bool, default False
        Compare the records regardless of their order; each record takes some 60 bytes of memory, and data
        that differs is read twice.
    key : str or sequence of str, optional
        The columns that identify a record, regardless of order: records with one key are compared, and others are added
        or removed. Each record takes some 120 bytes of memory, and data that differs is read twice.
    limit : int, default 10
        Number of records whose differences are reported.
    storage_options, progress
        As in `read_tfrecord`.

    Returns
    -------
    DiffReport
        ``equal``, ``records``, ``schema``, ``differing`` and ``values``.

    Raises
    ------
    TFRecordError
        A file is damaged.
    FileNotFoundError
        Nothing matches `a` or `b`.
    FeatureNotFoundError, ValueError
        A dataset has no such column as `key`, or two records of one key.
    """
    is_given = key is not None and not (isinstance(key, list | tuple) and not key)
    names = Selection.check_names("key", key) if is_given else []
    if any_order and names:
        error = ValueError("any_order= and key= are two ways to compare regardless of order: pass only one of them")
        raise for_cli(error, "--any-order and --key are two ways to compare regardless of order: pass only one of them")
    limit = check_integer("limit", limit, 0)
    keywords: dict[str, Any] = {"storage_options": storage_options, "progress": progress}
    options = ReadOptions(sample="all", **keywords)
    sides = [
        _Side(Files.from_source(path, options_from_call(ReadOptions, diff, path, {"sample": "all"}, **keywords)))
        for path in (a, b)
    ]
    size = Source.total(side.files.sources.bytes for side in sides)
    with (
        ProgressMeter(options.progress, size, "bytes") as meter,
        sides[0].open(meter.part()) as first,
        sides[1].open(meter.part()) as second,
    ):
        schema = _compare_schemas(first.schema, second.schema)
        columns = _common_columns(first.schema, second.schema)
        for name in names:
            if name not in columns:
                sides_of = ((a, first), (b, second))
                without, reader = next((path, side) for path, side in sides_of if name not in side.schema.names)
                if not reader.schema.names:
                    next(iter(reader), None)  # raises why: it is not a TFRecord file
                reason = f"{printable(str(without))} has no such column, by which records are to be matched"
                raise FeatureNotFoundError(reason, feature=name)
        if not any_order and not names:
            return _compare_in_order(first, second, columns=columns, schema=schema, limit=limit)
        alike = _alike(first.schema, second.schema, columns)
        rows = [_RecordHashes.read(reader, columns, names, alike) for reader in (first, second)]
    if names:
        return _compare_by_key(sides=sides, rows=rows, columns=columns, names=names, schema=schema, limit=limit)
    return _compare_in_any_order(sides, rows, columns=columns, schema=schema, limit=limit)


@dataclass(frozen=True, slots=True)
class _Side:
    """Side of the comparison: the files of one dataset, and how they are read."""

    files: Files[ScanOptions]

    def open(self, progress: ProgressLike = False) -> Reader:
        return self.files.with_options(self.files.options.changed(progress=progress)).open()

    def rows_of(self, columns: list[str], numbers: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        """Read the values of records by number."""
        wanted = np.unique(np.array(numbers, np.int64))
        rows_by_number: dict[int, tuple[Any, ...]] = {}
        if len(wanted):
            with self.open() as reader:
                begin = 0
                for batch in reader:
                    numbers_of_batch = wanted[
                        np.searchsorted(wanted, begin) : np.searchsorted(wanted, begin + len(batch))
                    ]
                    rows = (
                        _rows(selectable(batch).take(pa.array(numbers_of_batch - begin)), columns)
                        if len(numbers_of_batch)
                        else ()
                    )
                    rows_by_number.update(zip(numbers_of_batch.tolist(), rows, strict=False))
                    begin += len(batch)
                    if len(rows_by_number) == len(wanted):
                        break
        return rows_by_number


@dataclass(frozen=True, slots=True)
class _RecordHashes:
    """Hashes of the records of a dataset, in order: of their values, and of their keys if a key is compared."""

    values: Array
    keys: Array

    @classmethod
    def read(cls, reader: Reader, columns: list[str], names: list[str], alike: set[str]) -> _RecordHashes:
        values, keys = [np.empty(0, RowHashes.DTYPE)], [np.empty(0, RowHashes.DTYPE)]
        for batch in reader:
            hashes = {name: _hashes(batch, name, name in alike) for name in columns}
            values.append(RowHashes.join([*hashes.values()], len(batch)).values)
            if names:
                keys.append(RowHashes.join([hashes[name] for name in names], len(batch)).values)
        return cls(np.concatenate(values), np.concatenate(keys))

    def __len__(self) -> int:
        return len(self.values)


def _alike(a: pa.Schema, b: pa.Schema, columns: list[str]) -> set[str]:
    """Columns of the same type in both datasets, with values that `RowHashes` can compare."""
    return {
        name
        for name in columns
        if a.field(name).type == b.field(name).type
        and RowHashes.is_for(a.field(name).type)
        and a.field(name).metadata == b.field(name).metadata
    }


def _hashes(batch: pa.RecordBatch, name: str, alike: bool) -> list[Array]:
    """Two hashes of each value of a column; for values without a simple type, of their representations in Python."""
    if alike:
        return RowHashes.hash_column(batch.column(name))
    digests = b"".join(_digest(value) for value in _values(batch, name))
    parts = np.frombuffer(digests, RowHashes.DTYPE)
    return [parts["first"], parts["second"]]


def _compare_in_any_order(
    sides: list[_Side], rows: list[_RecordHashes], columns: list[str], schema: tuple[SchemaDifference, ...], limit: int
) -> DiffReport:
    """Find records of only one dataset, counted with repetitions."""
    hashes = np.concatenate([side_rows.values for side_rows in rows])
    order, starts = RowHashes(hashes).runs()
    groups = np.empty(len(hashes), np.int64)
    groups[order] = np.cumsum(starts)
    del hashes, order, starts  # they take as much memory as what follows
    distinct = int(groups.max(initial=0)) + 1
    of_a, of_b = (np.bincount(part, minlength=distinct) for part in np.split(groups, [len(rows[0])]))
    surplus = of_a - of_b  # for each distinct record
    values: list[ValueDifference] = []
    begin = 0
    for side, side_hashes, sign in zip(sides, rows, (1, -1), strict=True):
        mine = groups[begin : begin + len(side_hashes)]
        begin += len(side_hashes)
        order = np.argsort(mine, kind="stable")
        ordered = mine[order]
        rank = np.empty(len(side_hashes), np.int64)  # among the records that are equal
        rank[order] = np.arange(len(side_hashes)) - np.searchsorted(ordered, ordered)
        numbers = np.flatnonzero(rank < surplus[mine] * sign)[:limit].tolist()
        values_by_number = side.rows_of(columns, numbers)
        for number in numbers:
            for name, value in zip(columns, values_by_number[number], strict=True):
                text = short(value)
                values.append(ValueDifference(number, name, *((text, None) if sign > 0 else (None, text))))
    counts = len(rows[0]), len(rows[1])
    return DiffReport(counts, schema, int(np.abs(surplus).sum()), tuple(values))


def _compare_by_key(
    sides: list[_Side],
    rows: list[_RecordHashes],
    columns: list[str],
    names: list[str],
    schema: tuple[SchemaDifference, ...],
    limit: int,
) -> DiffReport:
    """Compare the records of each key."""
    counts = len(rows[0]), len(rows[1])
    keys = np.concatenate([side_rows.keys for side_rows in rows])
    numbers = np.concatenate([np.arange(count) for count in counts])
    side = np.repeat([0, 1], counts)
    order = np.lexsort((numbers, side, keys["second"], keys["first"]))
    keys, numbers, side = keys[order], numbers[order], side[order]
    repeats = keys[1:] == keys[:-1]  # True where a record has the key of the one before it
    _check_keys(
        sides=sides,
        columns=columns,
        names=names,
        numbers=numbers,
        side=side,
        repeated=np.flatnonzero(repeats & (side[1:] == side[:-1])),
    )
    pairs = np.flatnonzero(repeats)
    differs = rows[0].values[numbers[pairs]] != rows[1].values[numbers[pairs + 1]]
    changed = np.stack([numbers[pairs], numbers[pairs + 1]], axis=1)[differs]
    alone = np.ones(len(keys), np.bool_)
    alone[pairs] = alone[pairs + 1] = False
    removed, added = (np.sort(numbers[alone & (side == side_number)]) for side_number in (0, 1))
    of_a = [*map(tuple, changed.tolist()), *((number, None) for number in removed.tolist())]
    differing = [*sorted(of_a, key=lambda pair: pair[0]), *((None, number) for number in added.tolist())]
    values = tuple(_describe_pairs(sides, columns, names, differing[:limit]))
    changes = {"changed": len(changed), "added": len(added), "removed": len(removed)}
    return DiffReport(counts, schema, sum(changes.values()), values, **changes)


def _describe_pairs(
    sides: list[_Side], columns: list[str], names: list[str], pairs: Sequence[tuple[int | None, int | None]]
) -> Iterator[ValueDifference]:
    """Read the records of some keys, by their numbers in both datasets, and describe the values that differ.

    A number is None where a dataset lacks the key.
    """
    a = sides[0].rows_of(columns, [first for first, _ in pairs if first is not None])
    b = sides[1].rows_of(columns, [second for _, second in pairs if second is not None])
    key_positions = [columns.index(name) for name in names]
    for first, second in pairs:
        left, right = (None if number is None else rows.get(number) for rows, number in ((a, first), (b, second)))
        number = second if first is None else first
        assert number is not None
        key = ", ".join(short((left or right or ())[position]) for position in key_positions)
        for column, name in enumerate(columns):
            if left is None or right is None:
                texts = tuple(None if row is None else short(row[column]) for row in (left, right))
            elif _is_equal(left[column], right[column]):
                continue
            else:
                texts = _show_difference(left[column], right[column])
            yield ValueDifference(number, name, a=texts[0], b=texts[1], key=key)


def _check_keys(
    sides: list[_Side], columns: list[str], names: list[str], numbers: Array, side: Array, repeated: Array
) -> None:
    """Raise an error about the first record with the key of an earlier one; `repeated` has the numbers of the pairs."""
    if not len(repeated):
        return
    at = min(repeated.tolist(), key=lambda position: (side[position], numbers[position + 1]))
    earlier, number, which = int(numbers[at]), int(numbers[at + 1]), int(side[at])
    row = sides[which].rows_of(columns, [number])[number]
    shown = ", ".join(short(row[columns.index(name)]) for name in names)
    text = f"records {earlier} and {number} of {'ab'[which]} have the key {shown}"
    error = ValueError(f"{text}: key= takes columns that identify a record; tfr.dedupe leaves one of each")
    raise for_cli(error, f"{text}: --key takes columns that identify a record; tfr dedupe leaves one of each")


def _common_columns(a: pa.Schema, b: pa.Schema) -> list[str]:
    of_b = {*b.names}
    return [name for name in a.names if name in of_b]


def _compare_schemas(a: pa.Schema, b: pa.Schema) -> tuple[SchemaDifference, ...]:
    types = [{f.name: Column(f.type, f.metadata).short_name for f in schema} for schema in (a, b)]
    names = dict.fromkeys([*types[0], *types[1]])
    pairs = [(name, types[0].get(name), types[1].get(name)) for name in names]
    return tuple(SchemaDifference(*pair) for pair in pairs if pair[1] != pair[2])


def _compare_in_order(
    a: Reader, b: Reader, columns: list[str], schema: tuple[SchemaDifference, ...], limit: int
) -> DiffReport:
    """Compare the records of equal numbers."""
    values: list[ValueDifference] = []
    record = differing = 0
    counts = [0, 0]
    for batches in _align_batches(a, b):
        sizes = [0 if batch is None else len(batch) for batch in batches]
        counts = [count + size for count, size in zip(counts, sizes, strict=True)]
        first, second = batches
        if first is None or second is None:
            differing += sum(sizes)
            continue
        rows: dict[int, list[ValueDifference]] = {}
        for name in columns:
            for row, left, right in _find_differences(first, second, name):
                rows.setdefault(row, []).append(ValueDifference(record + row, name, *_show_difference(left, right)))
        for row in sorted(rows):
            if differing < limit:
                values += rows[row]
            differing += 1
        record += len(first)
    return DiffReport((counts[0], counts[1]), schema, differing, tuple(values))


def _align_batches(a: Reader, b: Reader) -> Iterator[tuple[pa.RecordBatch | None, pa.RecordBatch | None]]:
    """Read batches of the same rows from both readers; None for a reader that has ended."""
    left = right = None
    while True:
        left = next(a, None) if left is None else left
        right = next(b, None) if right is None else right
        if left is None and right is None:
            return
        size = min(len(batch) for batch in (left, right) if batch is not None)
        yield (left[:size] if left is not None else None), (right[:size] if right is not None else None)
        left = left[size:] if left is not None and len(left) > size else None
        right = right[size:] if right is not None and len(right) > size else None


def _find_differences(a: pa.RecordBatch, b: pa.RecordBatch, name: str) -> Iterator[tuple[int, Any, Any]]:
    """Find the rows of a column whose values differ, with both values."""
    left, right = a.column(name), b.column(name)
    if left.equals(right):
        return
    values = (_values(batch, name) for batch in (a, b))
    for row, (x, y) in enumerate(zip(*values, strict=True)):
        if not _is_equal(x, y):
            yield row, x, y


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    return Column(batch.schema.field(name)).python_rows(pa.chunked_array([batch.column(name)]))


def _is_equal(a: Any, b: Any) -> bool:
    """True if two values are equal, NaN to itself."""
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_is_equal, a, b))
    if isinstance(a, _SIMPLE) and type(a) is type(b) and a == b:  # fast, as most are
        return True
    return bool(_canonical(a) == _canonical(b))


def _show_difference(a: Any, b: Any) -> tuple[str, str]:
    """Shorten two differing values so that the difference is visible: long lists and bytes to the differing items."""
    texts = short(a), short(b)
    if texts[0] != texts[1]:
        return texts
    if isinstance(a, list | bytes) and isinstance(b, list | bytes) and len(a) == len(b):
        at = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not _is_equal(x, y))
        kind = "byte" if isinstance(a, bytes) else "item"
        inner = _show_difference(a[at], b[at])
        return f"{kind} {at} of {len(a):,}: {inner[0]}", f"{kind} {at} of {len(b):,}: {inner[1]}"
    return short(a, 1000), short(b, 1000)


def _rows(batch: pa.RecordBatch, columns: list[str]) -> list[tuple[Any, ...]]:
    """Convert the rows of a batch to tuples of values."""
    return list(zip(*(_values(batch, name) for name in columns), strict=True)) if columns else [()] * len(batch)


def _digest(value: Any) -> bytes:
    text = repr(_canonical(value)).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def _canonical(value: Any) -> Any:
    """Choose one representative of all values that count as equal, such as -0.0, 0.0, 0, False and Decimal("0.00").

    Equal ones have the same repr. Times are counted in nanoseconds; a time of a zone is that in UTC.
    """
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, int | str | bytes):
        return value
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(value[key]) for key in sorted(value)}
    if value != value:  # NaN, NaT
        return (str(value).lower(),)
    if isinstance(value, float | np.floating):
        return int(value) if value.is_integer() else float(value)
    if isinstance(value, Decimal):
        numerator, denominator = value.as_integer_ratio()
        rounded = numerator if denominator == 1 else numerator / denominator
        return rounded if rounded == value else (numerator, denominator)
    if isinstance(value, dt.datetime):
        if value.tzinfo is None:
            return ("time", _nanoseconds(value - _EPOCH))
        return ("instant", _nanoseconds(value - _EPOCH_UTC))
    if isinstance(value, np.datetime64):  # beyond Python's dates, or of a zone that it does not know
        return ("instant", _nanoseconds(value))
    if isinstance(value, dt.timedelta | np.timedelta64):
        return ("duration", _nanoseconds(value))
    return value


def _nanoseconds(duration: dt.timedelta | np.timedelta64 | np.datetime64) -> int:
    """A duration of Python, pandas or NumPy in nanoseconds; of a time of NumPy, the one since 1970."""
    if isinstance(duration, np.timedelta64 | np.datetime64):
        return int(duration.astype(np.int64)) * _NANOSECONDS[np.datetime_data(duration.dtype)[0]]
    microseconds = (duration.days * 86_400 + duration.seconds) * 10**6 + duration.microseconds
    return microseconds * 1000 + getattr(duration, "nanoseconds", 0)  # which those of pandas have
