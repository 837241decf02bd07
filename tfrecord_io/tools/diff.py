"""Compare two datasets: their columns, numbers of records, and values."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.output.to_python import rows_of
from tfrecord_io.display import LINE_WIDTH, Report, Summary, counted, short
from tfrecord_io.errors import printable
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import ReadOptions, check_integer
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.open_scan import open_path
from tfrecord_io.read.reader import Reader
from tfrecord_io.schema.type_names import short_type_name
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.source import Source, total
from tfrecord_io.typing import InputPath, ProgressLike

HEADINGS = ("record", "column", "a", "b")
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class SchemaDifference:
    """A column that only one dataset has, or that has two types; None: there is no such column."""

    column: str
    a: str | None
    b: str | None


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """Two values that differ, shortened; regardless of order, a value of a record that only `a` or only `b` has."""

    record: int
    column: str
    a: str | None
    b: str | None


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
    """

    records: tuple[int, int]
    schema: tuple[SchemaDifference, ...]
    differing: int
    values: tuple[ValueDifference, ...]

    @property
    def equal(self) -> bool:
        """Whether columns, types, numbers of records and values agree."""
        return not self.schema and not self.differing and self.records[0] == self.records[1]

    def title(self) -> str:
        """What differs, in a line."""
        if self.equal:
            return f"equal: {counted(self.records[0], 'record')}"
        counts = " and ".join(counted(count, "record") for count in self.records)
        differing = f"{counted(self.differing, 'record')} {'differs' if self.differing == 1 else 'differ'}"
        return f"{counts}, {differing}, {counted(len(self.schema), 'column')} of another type or missing"

    def schema_lines(self) -> list[str]:
        """A line for each column that differs."""
        return [f"column {printable(d.column)}: {d.a or 'missing'} in a, {d.b or 'missing'} in b" for d in self.schema]

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each value, for the columns `HEADINGS`."""
        return [(f"{d.record:,}", printable(d.column, LINE_WIDTH), d.a or "", d.b or "") for d in self.values]

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it."""
        schema = [{"column": d.column, "a": d.a, "b": d.b} for d in self.schema]
        values = [{"record": d.record, "column": d.column, "a": d.a, "b": d.b} for d in self.values]
        return {
            "equal": self.equal,
            "records": list(self.records),
            "differing": self.differing,
            "schema": schema,
            "values": values,
        }

    def _summary(self) -> Summary:
        return Summary(self.title(), HEADINGS, self.rows(), self.schema_lines())


@document_keywords(ReadOptions, only={"storage_options", "filesystem", "progress"})
def diff(
    a: InputPath,
    b: InputPath,
    *,
    any_order: bool = False,
    limit: int = 10,
    a_storage_options: Mapping[str, Any] | None = None,
    b_storage_options: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> DiffReport:
    """Compare two datasets: columns and types, numbers of records, and the values of each record.

    Records are compared by the values of the columns that both have, not by their bytes: the order of features in a
    record, compression and shards make no difference. NaN equals NaN, and
    -0.0 equals 0.0.

    Parameters
    ----------
    a, b : str, PathLike, list of those, or binary file object
        As in `read_tfrecord`.
    any_order : bool, default False
        Compare the records regardless of their order; each distinct record takes some 150 bytes of memory, and data
        that differs is read twice.
    limit : int, default 10
        Number of records whose differences are reported.
    a_storage_options, b_storage_options : dict, optional
        Storage options of `a` or `b` alone, in place of `storage_options`.
    {keywords}

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

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3], "s": ["a", "b", "c"]}, "a.tfrecord")
    >>> _ = tfr.write_tfrecord({"x": [1, 5, 3], "s": ["a", "b", "c"]}, "b.tfrecord")
    >>> print(tfr.diff("a.tfrecord", "b.tfrecord"))
    3 records and 3 records, 1 record differs, 0 columns of another type or missing
    record  column  a  b
    1       x       2  5
    >>> tfr.diff("a.tfrecord", "a.tfrecord").equal
    True
    """
    check_integer("limit", limit, 0)
    options = ReadOptions.of({**keywords, "sample": "all"}, diff)
    sides = [_Side.of(a, options, a_storage_options), _Side.of(b, options, b_storage_options)]
    size = total(source.size for side in sides for source in side.sources)
    with (
        ProgressMeter(options.progress, size, "bytes") as meter,
        sides[0].open(meter.part()) as first,
        sides[1].open(meter.part()) as second,
    ):
        schema = _compare_schemas(first.schema, second.schema)
        columns = [name for name in first.schema.names if name in second.schema.names]
        if not any_order:
            return _in_order(first, second, columns, schema, limit)
        counts: Counter[bytes] = Counter()
        records = (_count(first, columns, counts, 1), _count(second, columns, counts, -1))
    differing = sum(map(abs, counts.values()))
    values: list[ValueDifference] = []
    for side, sign in zip(sides, (1, -1), strict=True):
        values += side.only(columns, {digest: n * sign for digest, n in counts.items() if n * sign > 0}, limit, sign)
    return DiffReport(records, schema, differing, tuple(values))


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the datasets."""

    sources: list[Source]
    options: ReadOptions

    @classmethod
    def of(cls, path: Any, options: ReadOptions, own_storage: Mapping[str, Any] | None) -> _Side:
        if own_storage is not None:
            options = replace(options, storage_options=own_storage)
        return cls(resolve_inputs(path, options.storage), options)

    def open(self, progress: ProgressLike = False) -> Reader:
        return open_path(self.sources, replace(self.options, progress=progress))

    def only(self, columns: list[str], counts: dict[bytes, int], limit: int, sign: int) -> list[ValueDifference]:
        """The values of the first `limit` records of those counted."""
        found: list[ValueDifference] = []
        left = limit if counts else 0
        with self.open() as reader:
            for number, row in enumerate(_rows(reader, columns) if left else ()):
                digest = _digest(row)
                if counts.get(digest, 0) > 0 and left:
                    counts[digest] -= 1
                    left -= 1
                    shown = [(name, short(value)) for name, value in zip(columns, row, strict=True)]
                    found += [
                        ValueDifference(number, name, *((text, None) if sign > 0 else (None, text)))
                        for name, text in shown
                    ]
        return found


def _compare_schemas(a: pa.Schema, b: pa.Schema) -> tuple[SchemaDifference, ...]:
    types = [{f.name: short_type_name(f.type, f.metadata) for f in schema} for schema in (a, b)]
    names = dict.fromkeys([*types[0], *types[1]])
    pairs = [(name, types[0].get(name), types[1].get(name)) for name in names]
    return tuple(SchemaDifference(*pair) for pair in pairs if pair[1] != pair[2])


def _in_order(a: Reader, b: Reader, columns: list[str], schema: tuple[SchemaDifference, ...], limit: int) -> DiffReport:
    values: list[ValueDifference] = []
    record = differing = 0
    counts = [0, 0]
    for batches in _aligned(a, b):
        sizes = [0 if batch is None else len(batch) for batch in batches]
        counts = [count + size for count, size in zip(counts, sizes, strict=True)]
        first, second = batches
        if first is None or second is None:
            differing += sum(sizes)
            continue
        rows: dict[int, list[ValueDifference]] = {}
        for name in columns:
            for row, left, right in _differing(first, second, name):
                rows.setdefault(row, []).append(ValueDifference(record + row, name, *_shown(left, right)))
        for row in sorted(rows):
            if differing < limit:
                values += rows[row]
            differing += 1
        record += len(first)
    return DiffReport((counts[0], counts[1]), schema, differing, tuple(values))


def _aligned(a: Reader, b: Reader) -> Iterator[tuple[pa.RecordBatch | None, pa.RecordBatch | None]]:
    """Batches of the same rows of both; None for the one that has ended."""
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


def _differing(a: pa.RecordBatch, b: pa.RecordBatch, name: str) -> Iterator[tuple[int, Any, Any]]:
    """The rows of a column whose values differ, with both values."""
    left, right = a.column(name), b.column(name)
    if left.equals(right):
        return
    values = (_values(batch, name) for batch in (a, b))
    for row, (x, y) in enumerate(zip(*values, strict=True)):
        if not _is_equal(x, y):
            yield row, x, y


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    return rows_of(pa.chunked_array([batch.column(name)]), batch.schema.field(name))


def _is_equal(a: Any, b: Any) -> bool:
    """Whether two values are equal, NaN to itself."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_is_equal(a[key], b[key]) for key in a)
    return bool(a == b) or bool(a is not None and b is not None and a != a and b != b)


def _shown(a: Any, b: Any) -> tuple[str, str]:
    """Two values that differ, so that the difference can be seen: of long lists and bytes the first items that do."""
    texts = short(a), short(b)
    if texts[0] != texts[1]:
        return texts
    if isinstance(a, list | bytes) and isinstance(b, list | bytes) and len(a) == len(b):
        at = next(i for i, (x, y) in enumerate(zip(a, b, strict=True)) if not _is_equal(x, y))
        kind = "byte" if isinstance(a, bytes) else "item"
        inner = _shown(a[at], b[at])
        return f"{kind} {at} of {len(a):,}: {inner[0]}", f"{kind} {at} of {len(b):,}: {inner[1]}"
    return short(a, 1000), short(b, 1000)


def _rows(reader: Reader, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    for batch in reader:
        if columns:
            yield from zip(*(_values(batch, name) for name in columns), strict=True)
        else:
            yield from [()] * len(batch)


def _count(reader: Reader, columns: list[str], counts: Counter[bytes], sign: int) -> int:
    """Add `sign` to the count of each record; returns their number."""
    number = 0
    for row in _rows(reader, columns):
        counts[_digest(row)] += sign
        number += 1
    return number


def _digest(row: tuple[Any, ...]) -> bytes:
    text = repr(_canonical(row)).encode(errors="surrogatepass")
    return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def _canonical(value: Any) -> Any:
    """One value for all that `_is_equal` takes for equal, such as -0.0, 0.0, 0 and False."""
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(value[key]) for key in sorted(value)}
    if isinstance(value, float | np.floating):
        return int(value) if value.is_integer() else float(value)
    return int(value) if isinstance(value, bool) else value
