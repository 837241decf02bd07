"""Add the columns of a table to the records of files, by key: the table is in memory, the files are read in batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import nan, prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.base import LIMITS, ReadOptions, Selection, check_keywords
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, EmbeddedSchema, int64_array, open_input, runs_within, selectable
from tfrecord_io.errors import EncodeError, FeatureNotFoundError, FeatureTypeError, SchemaError, TFRecordError
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.reader import Reader
from tfrecord_io.typing import UNSET, InputPath, ProgressLike, StorageLike, TableLike, Unset

_OF_NO_RECORD = "leave out the rows of the table whose keys no record can have"


@check_keywords
def join(
    source: InputPath,
    table: TableLike,
    *,
    on: str | Sequence[str],
    columns: Sequence[str] | str | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> pa.RecordBatchReader:
    """Read records with the columns of a table added, by key.

    All records are kept, in their order; those whose key is not in the table have missing values in its columns, as
    have those with a missing key. -0.0 equals 0.0, and NaN equals NaN. The table is held in memory, the records are
    read batch by batch: the result can be written by `write_tfrecord`, or by whatever takes a stream of Arrow, and
    the data may be larger than memory.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"id": [1, 2, 3], "text": ["a", "b", "c"]}, "texts.tfrecord")
    >>> scores = {"id": [3, 1], "score": [0.5, 0.25]}
    >>> _ = tfr.write_tfrecord(
    ...     tfr.join("texts.tfrecord", scores, on="id"), "scored.tfrecord", float64="raw"
    ... )
    >>> tfr.read_tfrecord("scored.tfrecord")
       id text  score
    0   1    a   0.25
    1   2    b    NaN
    2   3    c   0.50

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`.
    table : DataFrame, pyarrow Table, dict of arrays, or another table
        As in `write_tfrecord`: the columns of the key, each key once, and others. The index of a DataFrame is one of
        them if it has a name.
    on : str or sequence of str
        The columns of the key, which both have: texts, bytes, numbers, bools or times.
    columns, storage_options, progress
        As for `dataset`.

    Returns
    -------
    pyarrow.RecordBatchReader
        The columns of the records, then those of the table. Closing it closes the files.

    Raises
    ------
    FeatureNotFoundError, FeatureTypeError
        A column of the key is missing, or has another type in the table than in the records.
    SchemaError
        Both have a column of one name that is not part of the key.
    ValueError
        The table has two rows of one key.
    TFRecordError
        A file is damaged.
    """
    names = Selection.check_names("on", on)
    try:
        added_rows = open_input(table).with_plain_layouts()
        right = pa.Table.from_batches(added_rows.batches, added_rows.schema).combine_chunks()
    except EncodeError as error:
        if error.feature in names:
            error.hint = f"{error.hint}, or {_OF_NO_RECORD}" if error.hint else _OF_NO_RECORD
        raise
    stated: dict[str, Any] = {"columns": columns, "storage_options": storage_options, "progress": progress}
    reader = CallSource(source).open(options_from_call(ReadOptions, join, source, **stated))
    try:
        _check_columns(reader.schema, right.schema, names)
        keys = _Keys([(name, right[name], reader.schema.field(name).type) for name in names])
        # Row labels that the caller did not name say nothing about a record, as in a merge of pandas.
        labels = [name for name in EmbeddedSchema.index_levels(right.schema) if name.startswith("__index_level_")]
        added = right.drop_columns([*names, *labels])
        fields = [field.with_nullable(True) for field in added.schema]
        schema = pa.schema([*reader.schema, *fields], reader.schema.metadata)
        return pa.RecordBatchReader.from_batches(
            schema, _join_batches(reader, keys, names=names, added=added, schema=schema)
        )
    except BaseException:
        reader.close()
        raise


def _check_columns(records: pa.Schema, table: pa.Schema, names: list[str]) -> None:
    for name in names:
        for schema, what in ((records, "the records"), (table, "the table")):
            if name not in schema.names:
                raise FeatureNotFoundError(f"no such column in {what}, and on= needs it", feature=name)
    other_columns = {*records.names}.difference(names)
    for name in table.names:
        if name in other_columns:
            advice = "rename it in the table, or leave it out of the records by columns="
            advice_cli = "rename it in the table, or leave it out of the records by --columns"
            raise SchemaError(
                "both the records and the table have this column", feature=name, hint=advice, hint_cli=advice_cli
            )


def _join_batches(
    reader: Reader, keys: _Keys, names: list[str], added: pa.Table, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Read batches, and append the columns `added` of the table to each."""
    sizes = _row_bytes(added)
    with reader:
        for batches in _groups(reader, added.num_rows):
            key_columns = [pa.chunked_array([part.column(name) for part in batches]) for name in names]
            table_rows, first = keys.rows(key_columns), 0
            for batch in batches:
                rows, first = table_rows.slice(first, len(batch)), first + len(batch)
                # Runs keep the memory of a batch, and its 32-bit offsets, within limits.
                runs = runs_within(sizes[rows.fill_null(-1).to_numpy()], LIMITS.batch_bytes)
                for begin, end in [*runs] or [(0, 0)]:
                    batch_part, part = batch.slice(begin, end - begin), rows.slice(begin, end - begin)
                    columns = [_take_rows(column, part) for column in added.columns]
                    yield pa.RecordBatch.from_arrays([*batch_part.columns, *columns], schema=schema)


def _groups(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Group batches until they have as many rows as the table, as Arrow hashes all keys of it for each search."""
    group: list[pa.RecordBatch] = []
    size = 0
    try:
        for batch in batches:
            group.append(batch)
            size += batch.nbytes
            if size >= LIMITS.batch_bytes or sum(map(len, group)) >= rows:
                yield group
                group, size = [], 0
    except TFRecordError:  # after the rows before the damage
        if group:
            yield group
        raise
    if group:
        yield group


def _row_bytes(table: pa.Table) -> Array:
    """Estimate the bytes of each row, by the lengths of its texts and lists; with a last 0, for the row -1."""
    sizes = np.zeros(table.num_rows + 1)
    for column in table.columns:
        if Column(column.type).is_text or Column(column.type).is_bytes:
            lengths = pc.binary_length(column)
        elif Column(column.type).is_list:
            lengths = pc.list_value_length(column)
        else:
            lengths = pa.repeat(1, len(column))
        counts = lengths.fill_null(0).to_numpy()
        sizes[:-1] += counts * (column.nbytes / max(int(counts.sum()), 1))
    return sizes


def _take_rows(column: pa.ChunkedArray, rows: pa.Array) -> pa.Array:
    """Take rows of a column, null for a null row; ``column.take`` would join chunks, which offsets may not reach."""
    if not column.num_chunks:
        return pa.nulls(len(rows), column.type)
    if column.num_chunks == 1:
        return selectable(column.chunk(0)).take(rows)
    firsts, numbers = np.cumsum([0, *map(len, column.chunks)]), rows.drop_null().to_numpy()
    chunk_of = firsts.searchsorted(numbers, side="right") - 1
    numbered = enumerate(column.chunks)
    parts = [selectable(chunk).take(int64_array(numbers[chunk_of == at] - firsts[at])) for at, chunk in numbered]
    is_null, places = rows.is_null().to_numpy(zero_copy_only=False), np.zeros(len(rows), np.int64)
    places[np.flatnonzero(~is_null)[np.argsort(chunk_of, kind="stable")]] = np.arange(len(numbers))
    return pa.concat_arrays(parts).take(pa.array(places, mask=is_null))


class _Keys:
    """Finds rows of a table by key; each of `columns` has a name, values, and the type in the records."""

    def __init__(self, columns: list[tuple[str, pa.ChunkedArray, pa.DataType]]) -> None:
        self._values = []  # the distinct values of each column
        codes = []
        for name, column, type_ in columns:
            values = _plain(column, type_, name)
            self._values.append(values.unique())
            codes.append(_indices(values, self._values[-1]))
        if prod(len(values) for values in self._values) >= 2**63:
            raise ValueError("on= has too many distinct values: join by fewer columns")
        combined = self._combine_codes(codes)
        self._order = np.flatnonzero(combined >= 0)
        self._order = self._order[np.argsort(combined[self._order], kind="stable")]
        self._sorted = combined[self._order]
        repeated = np.flatnonzero(self._sorted[1:] == self._sorted[:-1])
        if len(repeated):
            row, second_row = self._order[repeated[0] : repeated[0] + 2].tolist()
            values = [Column(column.type).python_rows(column.slice(row, 1))[0] for _, column, _ in columns]
            key = ", ".join(map(repr, values))
            raise ValueError(f"rows {row} and {second_row} of the table have the key {key}: expected each key once")

    def _combine_codes(self, codes: list[Array]) -> Array:
        """Combine the codes of all columns into one; -1 if one is missing."""
        combined = codes[0]
        for column_codes, values in zip(codes[1:], self._values[1:], strict=True):
            missing = (combined < 0) | (column_codes < 0)
            combined = np.where(missing, -1, combined * len(values) + column_codes)
        return combined

    def rows(self, columns: list[pa.Array]) -> pa.Array:
        """Find the row of the table for each key; null if no row has the key."""
        codes = [
            _indices(_plain(column, values.type), values) for column, values in zip(columns, self._values, strict=True)
        ]
        combined = self._combine_codes(codes)
        places = np.searchsorted(self._sorted, combined)
        places = np.minimum(places, max(len(self._sorted) - 1, 0))
        is_in_table = (combined >= 0) & (self._sorted[places] == combined) if len(self._sorted) else combined < -1
        rows = self._order[places] if len(self._sorted) else places
        return pa.array(rows, mask=~is_in_table)


def _plain(column: Any, type_: pa.DataType, name: str | None = None) -> Any:
    """Convert a column of the key to single values of a type, without a dictionary."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_dictionary(type_):
        type_ = type_.value_type
    if any(map(_is_nested, (column.type, type_))):
        reason: str = f"its type is {type_}, but on= needs a column of single values"
        raise FeatureTypeError(reason, feature=name, of_argument=True)
    reason = f"its type is {type_} in the records, and {column.type} in the table"
    advice = f"convert the column of the table, or {_OF_NO_RECORD}"
    is_other = _kind(column.type) != _kind(type_)  # "02" is not 2
    if name is not None and any(isinstance(side, pa.BaseExtensionType) for side in (column.type, type_)):
        is_other = column.type != type_  # a period of a day is none of a month
    if is_other and not pa.types.is_null(column.type):
        raise FeatureTypeError(reason, feature=name, hint=advice)
    try:
        plain = Column.hashable(column).cast(type_)  # Arrow (26.0) casts no decimal32 to integers
        is_part = pa.types.is_date(type_) or pa.types.is_time(type_)  # Arrow (26.0) drops the rest of a timestamp
        if is_part and pa.types.is_temporal(column.type) and plain.cast(column.type) != column:
            raise pa.ArrowInvalid("a time is not midnight" if pa.types.is_date(type_) else "the dates would be lost")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise FeatureTypeError(f"{reason}: {error}", feature=name, hint=advice) from error
    plain = Column.hashable(plain)
    type_ = plain.type
    if pa.types.is_floating(type_):
        plain = pc.if_else(pc.is_nan(plain), pa.scalar(nan).cast(type_), plain)  # Arrow (26.0) compares the bits of NaN
        return pc.add(plain, pa.scalar(0.0).cast(type_))  # -0.0 becomes 0.0
    return plain


def _is_nested(type_: pa.DataType) -> bool:
    return pa.types.is_nested(type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_)


def _kind(type_: pa.DataType) -> int | None:
    """Number of the kind of a type: values of different kinds never match."""
    has_zone = lambda t: pa.types.is_timestamp(t) and t.tz is not None  # noqa: E731
    kinds = (lambda t: Column(t).is_text or Column(t).is_bytes, pa.types.is_boolean, has_zone, pa.types.is_temporal)
    return next((number for number, is_kind in enumerate(kinds) if is_kind(type_)), None)


def _indices(values: Any, distinct: pa.Array) -> Array:
    """Find the index of each value among distinct values; -1 for a missing or absent value."""
    indices = pc.index_in(values, value_set=distinct, skip_nulls=True)
    return np.asarray(indices.cast(pa.int64()).fill_null(-1))
