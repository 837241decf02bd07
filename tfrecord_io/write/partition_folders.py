"""The columns whose values name the folders of rows: ``day=1/country=nl/``."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import printable
from tfrecord_io.bytes import Array
from tfrecord_io.columns import BatchSource, Column, EmbeddedSchema, plain_layout
from tfrecord_io.errors import EncodeError, FeatureNotFoundError, SchemaError
from tfrecord_io.store import ColumnFolder, FileName


class PartitionFolders:
    """Takes the partition columns out of batches, and knows the folder of each row.

    Parameters
    ----------
    columns : sequence of str
    where : mapping of str to object, optional
        See `replaced`.
    known : pyarrow.Schema, optional
        The types that the columns have in the dataset, of which one of nothing but nulls gets its own.

    Attributes
    ----------
    folders : list of str
        By number, each with its slash.
    types : pyarrow.Schema or None
        Of the columns, once there is data.
    replaced : dict of str to str or None
        The texts of `where`, the values of columns of all folders that are replaced, once there is data.
    """

    def __init__(
        self, columns: Sequence[str], where: Mapping[str, Any] | None = None, known: pa.Schema | None = None
    ) -> None:
        self._columns, self._where, self._known = tuple(columns), dict(where or {}), known
        self.replaced: dict[str, str | None] = {}
        self._numbers: dict[str, int] = {}  # of folders
        self.folders: list[str] = []
        self.types: pa.Schema | None = None
        self._batches: list[_BatchFolders] = []  # whose rows were not taken yet
        self._lock = threading.Lock()

    @property
    def schema(self) -> bytes:
        """The packed schema of the columns."""
        return EmbeddedSchema.of(self.types).pack()

    def split(self, source: BatchSource, row: int) -> BatchSource:
        """The batches, the first of which begins with `row`, without their partition columns."""
        kept_columns = stored_columns(source.schema, self._columns)
        types = pa.schema([(name, self._type(source.schema.field(name))) for name in self._columns])
        if self.types is not None and types != self.types:
            raise SchemaError("its partition columns have other types than those of the data before it")
        self.types = types
        self.replaced = folder_texts(self._where, types)
        self._batches.clear()  # of data that could not be written
        schema = pa.schema([source.schema.field(at) for at in kept_columns], source.schema.metadata)

        def batches(row: int) -> Iterator[pa.RecordBatch]:
            for batch in source.batches:
                numbers = self._folder_numbers(batch)
                with self._lock:
                    self._batches.append(_BatchFolders(row, numbers, len(numbers)))
                row += len(batch)
                columns = [batch.column(at) for at in kept_columns]
                if columns:
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
                else:
                    yield batch.select([])

        return BatchSource(schema, batches(row), source.rows, None)

    def _type(self, field: pa.Field) -> pa.DataType:
        """The type of a column's values in the names of folders: that of the dataset if it holds them."""
        dataset_types, plain = self.types or self._known, Column(field.type).handed_type
        type_ = plain.value_type if pa.types.is_dictionary(plain) else plain
        if dataset_types is None:
            return type_
        stored = dataset_types.field(field.name).type
        common = Column(pa.field(field.name, stored)).common_field(pa.field(field.name, type_))
        if common is not None and common.type != stored and pa.types.is_floating(stored):
            reason = (
                f"the column is {type_}, but folders of the dataset are named by {stored}: their values would change"
            )
            raise SchemaError(reason, feature=field.name, expected=str(stored), got=str(type_), hint="cast the column")
        return stored if common is not None and common.type == stored else type_

    def take(self, row: int, rows: int) -> Array:
        """The numbers of the folders of rows, each of which is asked for once, in any order and by any thread."""
        numbers: list[Array] = []
        with self._lock:
            for batch in [*self._batches]:
                begin, end = max(row - batch.row, 0), min(row + rows - batch.row, len(batch.numbers))
                if begin < end:
                    numbers.append(batch.numbers[begin:end])
                    batch.left -= end - begin
                    if not batch.left:
                        self._batches.remove(batch)
        return numbers[0] if len(numbers) == 1 else np.concatenate(numbers)

    def _folder_numbers(self, batch: pa.RecordBatch) -> Array:
        """For each row, the number of its folder."""
        numbers = np.zeros(len(batch), np.int64)
        folders = [""]
        assert self.types is not None
        for column in self._columns:
            codes, texts = _values_of(batch.column(column), self.types.field(column))
            for text in texts if column in self.replaced else ():
                replaced_text = self.replaced[column]
                # The folders of equal values are replaced together: 0 and -0 are.
                values = (folder_values([(column, spelling)], self.schema) for spelling in {text, replaced_text})
                if len({*values}) > 1:
                    reason: str = f"the data has the value {printable(text)}, and the folders to replace are those of "
                    reason += f"{printable(self._where[column])}: it would be in a folder that is not replaced"
                    raise EncodeError(reason, feature=column, hint="leave the row out, or state its value")
            names = [f"{ColumnFolder(column, text).name}/" for text in texts]
            for name in names:
                if len(name.encode()) > FileName.MOST_BYTES:
                    reason = f"its value makes the name of a folder longer than {FileName.MOST_BYTES} bytes"
                    raise EncodeError(
                        reason,
                        feature=column,
                        hint="leave it out of partition_by=",
                        hint_cli="leave it out of --partition-by",
                    )
            used, numbers = np.unique(numbers * len(names) + codes, return_inverse=True)
            folders = [folders[at // len(names)] + names[at % len(names)] for at in used.tolist()]
        for folder in folders:
            if folder not in self._numbers:
                self._numbers[folder] = len(self.folders)
                self.folders.append(folder)
        folder_numbers = [self._numbers[folder] for folder in folders]
        return np.array(folder_numbers, np.int64)[numbers] if folder_numbers else numbers


@dataclass(slots=True, eq=False)
class _BatchFolders:
    """The folders of the rows of a batch, whose first one is `row`; `left` of them were not taken."""

    row: int
    numbers: Array
    left: int


def stored_columns(schema: pa.Schema, partition_by: Sequence[str] | None) -> list[int]:
    """The positions of the columns that are features, and not in the names of folders.

    Raises
    ------
    FeatureNotFoundError
        A column of `partition_by` is missing.
    """
    for column in partition_by or ():
        if column not in schema.names:
            reason = "the data does not have this column, of whose values folders are made"
            raise FeatureNotFoundError(reason, feature=column, hint=f"it has: {', '.join(schema.names)}")
    return [at for at, name in enumerate(schema.names) if name not in (partition_by or ())]


@lru_cache(maxsize=1)  # asked for each folder of a dataset
def _types_of(schema: bytes) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in EmbeddedSchema.parse(schema).schema}


def folder_values(texts: Iterable[tuple[str, str | None]], schema: bytes | None) -> frozenset[tuple[str, object]]:
    """The columns and values that names of folders state, as a reader reads them."""
    types = {} if schema is None else _types_of(schema)
    return frozenset((name, pa.scalar(text, pa.string()).cast(types.get(name, pa.string()))) for name, text in texts)


def folder_texts(where: Mapping[str, Any], types: pa.Schema) -> dict[str, str | None]:
    """The texts of values of partition columns in the names of folders; see `_text_of`."""
    return {name: _text_of(value, types.field(name)) for name, value in where.items()}


def _text_of(value: Any, field: pa.Field) -> str | None:
    """The text of a value of a partition column in the names of folders; the value means what it does in a filter.

    Raises
    ------
    EncodeError
        It is not a value of the column.
    """
    import pyarrow.compute as pc

    from tfrecord_io.base import condition_of
    from tfrecord_io.columns import type_literals

    if value is None:
        return None
    reason = f"overwrite_where= states {printable(repr(value), 100)}, but the column is {field.type}"
    try:
        literal = pa.scalar(value) if isinstance(value, str) else None  # as it would be in the name of a folder
        if literal is None or pa.types.is_temporal(field.type):
            typed = type_literals(condition_of([(field.name, "==", value)]), pa.schema([field]))
            literal = typed.arguments[1].value if typed.name == "equal" else None  # else no value is equal
        value_of_type = None if literal is None else literal.cast(field.type)
        if value_of_type is None or not (isinstance(value, str) or pc.equal(value_of_type, literal).as_py()):
            raise EncodeError(reason, feature=field.name)
        array = pa.repeat(value_of_type, 1)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, SchemaError) as error:
        raise EncodeError(reason, feature=field.name) from error
    (text,) = _values_of(array, field)[1]
    return text


def _values_of(array: pa.Array, field: pa.Field) -> tuple[Array, list[str | None]]:
    """For each row of a partition column, the number of its value, and the text of each value.

    Raises
    ------
    EncodeError
        A value has no text that it could be read back from.
    """
    import pyarrow.compute as pc

    values = plain_layout(array)  # Arrow (26.0) encodes null of views as ""
    column, type_ = field.name, field.type
    if pa.types.is_null(type_):
        reason = "a column of nothing but nulls has no type, and cannot name folders"
        raise EncodeError(
            reason,
            feature=column,
            hint="state its type with schema=, or leave it out of partition_by=",
            hint_cli="state its type with --type, or leave it out of --partition-by",
        )
    try:
        plain = values.cast(type_)
        encoded = plain.dictionary_encode(null_encoding="encode")
        texts = encoded.dictionary.cast(pa.string())
        is_same = pc.equal(texts.cast(type_), encoded.dictionary).fill_null(True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        reason = f"a column of the type {type_} cannot name folders ({printable(error, 100)})"
        raise EncodeError(
            reason, feature=column, hint="leave it out of partition_by=", hint_cli="leave it out of --partition-by"
        ) from error
    if pc.any(pc.invert(is_same)).as_py():
        value = encoded.dictionary.filter(pc.invert(is_same))[0]
        reason = f"the name of a folder does not hold the value {printable(value)} exactly"
        raise EncodeError(
            reason,
            feature=column,
            hint="leave it out of partition_by=, or convert the column to texts",
            hint_cli="leave it out of --partition-by, or convert the column to texts",
        )
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), texts.to_pylist()
