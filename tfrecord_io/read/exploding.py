"""Explode tables with one row for each episode to one row for each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, ReadOptions, Selection, check_keywords, counted
from tfrecord_io.bytes import Array, Dtype
from tfrecord_io.columns import (
    ArrayBuffers,
    BatchSource,
    Column,
    ImageForm,
    Projection,
    RawImageForm,
    RowFault,
    empty_batch,
    int64_array,
    open_input,
    runs_within,
    selectable,
)
from tfrecord_io.errors import FeatureNotFoundError, SchemaError
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.typing import FilesLike, TableLike


@check_keywords
def explode(
    data: FilesLike | TableLike,
    *,
    prefix: str = "steps",
    lists: Sequence[str] | str | None = None,
    keep_empty: bool = False,
) -> pa.RecordBatchReader:
    """Turn each row, such as an episode, into a row for each item of its lists, such as a step.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"id": ["a", "b"], "steps/reward": [[0.5, 1.0], [2.0]]}, "runs.tfrecord"
    ... )
    >>> steps = tfr.explode(tfr.dataset("runs.tfrecord")).read_all()
    >>> steps.select(["record", "step", "id", "steps/reward"]).to_pylist()[1]
    {'record': 0, 'step': 1, 'id': 'a', 'steps/reward': 1.0}

    Several lists side by side, such as the boxes of a record:

    >>> boxes = {"file": ["a"], "xmin": [[0.1, 0.5]], "xmax": [[0.2, 0.75]]}
    >>> boxes["tags"] = [["x", "y", "z"]]
    >>> rows = tfr.explode(boxes, lists=["xmin", "xmax"]).read_all()
    >>> rows.drop_columns("tags").to_pylist()[1]
    {'record': 0, 'step': 1, 'file': 'a', 'xmin': 0.5, 'xmax': 0.75}

    Parameters
    ----------
    data : path, Dataset, Reader, DataFrame, Table or any other table
        As for `write_tfrecord`: also a stream of batches.
    prefix : str, default "steps"
        The columns of steps are those named ``<prefix>/…``: lists with a value for each step, or tensors whose first
        axis counts the steps. A slash at the end is ignored.
    lists : str or sequence of str, optional
        These columns instead: names, globs and ``!name``, such as ``["image/object/bbox/*", "image/object/class/*"]``.
        Where all of them have single values, as in a file with one box in each image, these count as lists of one.
    keep_empty : bool, default False
        A row whose lists are empty or null becomes one row, in which ``step`` and the values of the lists are null.

    Returns
    -------
    pyarrow.RecordBatchReader
        A stream in bounded memory, which `write_tfrecord` and others accept: ``record``, the number of the row in
        `data`, and ``step``, both int64 and from 0; then the columns of `data` in their order. Those of steps have one
        value of their lists in each row, the others the value of their episode. An episode without steps has no rows,
        unless `keep_empty` is given. Tensors keep their dtype; single values of a dtype of ml_dtypes become
        the wider one of NumPy, which holds them exactly. `formats.implode` goes back.

    Raises
    ------
    FeatureNotFoundError
        No column has the prefix, or a name of `lists`.
    SchemaError
        A column of steps is not a list, or has permuted axes, or `data` has a column ``record`` or ``step``. From the
        stream: the lists of an episode have different lengths; the message names its row and the columns.
    """
    source = open_rows(data, explode)
    names = Steps.columns(source.schema, prefix) if lists is None else list_columns(source.schema, lists)
    for name in (Steps.RECORD, Steps.STEP):
        if name in source.schema.names:
            raise SchemaError("explode adds a column of this name", feature=name, hint="rename it")
    first, rows = empty_batch(source.schema), source.batches
    if lists is not None and all(_is_single(first.schema.field(name).type) for name in names):
        first, rows = _single_values_as_lists(first, names), (_single_values_as_lists(batch, names) for batch in rows)
    empty = _explode_batch(first, names, keep_empty)
    batches = _batches(rows, names, keep_empty, noun="step" if lists is None else "value")
    return pa.RecordBatchReader.from_batches(empty.schema, batches)


def open_rows(data: FilesLike | TableLike, call: Callable[..., Any]) -> BatchSource:
    """Open the rows that a call takes; where there is no column, the first rows say why, such as damage of the file."""
    if CallSource(data).may_be_read:
        data = CallSource(data).open(options_from_call(ReadOptions, call, data))
    source = open_input(data).with_plain_layouts()
    if not source.schema.names:
        next(iter(source.batches), None)
    return source


def list_columns(schema: pa.Schema, lists: Sequence[str] | str) -> list[str]:
    """The columns that `lists` names; FeatureNotFoundError if one of its entries names none."""
    projection = Projection(Selection.check_names("lists", lists))
    projection.check(schema.names, "lists")
    names = projection.order(schema.names)
    if not names:
        raise SchemaError("lists= names no column", got=lists, hint=f"the columns are {', '.join(schema.names)}")
    return names


def _is_single(type_: pa.DataType) -> bool:
    return not t.is_nested(type_) and not isinstance(type_, pa.BaseExtensionType)


def _single_values_as_lists(batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Make lists of single values, as in a file with one box for each image."""
    for name in names:
        at, column = batch.schema.get_field_index(name), batch[name]
        field = batch.schema.field(at)
        offsets = np.append(0, np.cumsum(column.is_valid().to_numpy(zero_copy_only=False)))
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), column.drop_null())
        batch = batch.set_column(at, pa.field(name, lists.type, metadata=field.metadata), lists)
    return batch


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of the rows of a batch, such as episodes: the items of the lists in some columns."""

    RECORD: ClassVar = "record"  # what `explode` names the column with the number of the row
    STEP: ClassVar = "step"  # and the one with the number of the step

    batch: pa.RecordBatch
    names: Sequence[str]

    @staticmethod
    def columns(schema: pa.Schema, prefix: str) -> list[str]:
        """The columns of steps; FeatureNotFoundError if none has the prefix."""
        below = Steps.below(prefix)
        names = [name for name in schema.names if name.startswith(below)]
        if not names:
            advice = f"the columns are {', '.join(schema.names) or 'none'}; pass prefix="
            advice_cli = f"the columns are {', '.join(schema.names) or 'none'}; pass --prefix"
            raise FeatureNotFoundError("no column has this prefix", feature=below, hint=advice, hint_cli=advice_cli)
        return names

    @staticmethod
    def below(prefix: str) -> str:
        """What the names of the columns of steps begin with; TypeError if the prefix is not text."""
        if not isinstance(prefix, str):
            raise TypeError(f"prefix={prefix!r}: expected what stands before / in the names of the columns of steps")
        return f"{prefix.rstrip('/')}/"

    def lengths(self) -> Array:
        """How many steps each row has in the first column."""
        return _lengths(self.batch[self.names[0]])

    def counts(self, begin: int | None = None, noun: str = "step") -> Array:
        """How many steps each row has.

        RowFault if the columns of a row differ, or SchemaError if rows are numbered from `begin`.
        """
        first = self.lengths()
        for name in self.names[1:]:
            lengths = _lengths(self.batch[name])
            if (lengths != first).any():
                row = int((lengths != first).argmax())
                expected, got, advice = int(first[row]), int(lengths[row]), "exclude one of the columns"
                which = "the row" if begin is None else f"row {begin + row}"
                reason = f"{which} has {counted(got, noun)} in this column, but {expected} in '{self.names[0]}'"
                fault = RowFault(row, reason, feature=name, expected=expected, got=got, hint=advice, error=SchemaError)
                raise fault if begin is None else fault.to_error(None, None)
        return first

    @staticmethod
    def numbers(counts: Array) -> tuple[Array, Array]:
        """The row of each item of lists with these lengths, and its number in the list."""
        rows = np.repeat(np.arange(len(counts)), counts)
        return rows, np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)

    def values(self) -> dict[str, pa.Array]:
        """The values of all lists of each column, one after the other."""
        return {name: _step_values(self.batch[name], self.batch.schema.field(name)) for name in self.names}

    def replace(self, rows: Array, values: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """Replace the columns of steps by new values, and take the values of the other columns from these rows."""
        others = [name for name in self.batch.schema.names if name not in values]
        repeated = selectable(self.batch.select(others)).take(int64_array(rows))
        fields, arrays = [], []
        for field in self.batch.schema:
            array = values[field.name] if field.name in values else repeated[field.name]
            fields.append(_step_field(field, array.type) if field.name in values else field)
            arrays.append(array)
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _batches(
    episodes: Iterator[pa.RecordBatch], names: list[str], keep_empty: bool, noun: str
) -> Iterator[pa.RecordBatch]:
    begin = 0
    for batch in episodes:
        counts = Steps(batch, names).counts(begin, noun)
        counts = np.maximum(counts, 1) if keep_empty else counts
        for first, end in runs_within(counts, LIMITS.batch_rows):
            yield _explode_batch(batch.slice(first, end - first), names, keep_empty, begin=begin + first)
        begin += len(batch)


def _lengths(column: pa.Array) -> Array:
    """The number of steps of each row: 0 if it is null."""
    if isinstance(column.type, pa.FixedShapeTensorType):
        lengths = np.full(len(column), column.type.shape[0], np.int64)
        return np.where(column.is_valid().to_numpy(zero_copy_only=False), lengths, 0)
    if Column(column.type).is_variable_shape_tensor:
        shapes = column.storage.flatten()[1]
        steps = shapes.values.to_numpy(zero_copy_only=False).reshape(-1, shapes.type.list_size)
        steps = steps[shapes.offset : shapes.offset + len(shapes), 0]
        return np.where(shapes.is_valid().to_numpy(zero_copy_only=False), steps, 0).astype(np.int64)
    if not Column(column.type).is_list:
        return np.zeros(len(column), np.int64)  # `_step_values` refuses it
    return ArrayBuffers(column).lengths


def _explode_batch(batch: pa.RecordBatch, names: list[str], keep_empty: bool, *, begin: int = 0) -> pa.RecordBatch:
    """The steps of some episodes, which begin with the row `begin`; one without steps if they `keep_empty`."""
    source = Steps(batch, names)
    values, counts = source.values(), source.lengths()
    rows, steps = Steps.numbers(np.maximum(counts, 1) if keep_empty else counts)
    numbers = int64_array(steps)
    if keep_empty:
        is_empty = (counts == 0)[rows]
        positions = pa.array(np.cumsum(~is_empty) - 1, mask=is_empty)
        values = {name: selectable(array).take(positions) for name, array in values.items()}
        numbers = pa.array(steps, mask=is_empty)
    exploded = source.replace(rows, values)
    fields = [pa.field(Steps.RECORD, pa.int64(), False), pa.field(Steps.STEP, pa.int64(), keep_empty), *exploded.schema]
    arrays = [int64_array(rows + begin), numbers, *exploded.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _step_field(field: pa.Field, type_: pa.DataType) -> pa.Field:
    """The field of a column of steps whose lists become values, or lists, of this type."""
    item, before = (kind.value_type if Column(kind).is_list else kind for kind in (type_, field.type))
    keys: tuple[bytes, ...] = (ImageForm.KEY,)
    if Column(item).is_tensor:
        keys = (Dtype.KEY, Column.ENCODING_KEY, *[RawImageForm.KEY] * (item == before))  # else parts of pictures
    kept = {key: value for key, value in (field.metadata or {}).items() if key in keys}
    return pa.field(field.name, type_, metadata=kept or None)


def _step_values(column: pa.Array, field: pa.Field) -> pa.Array:
    """The values of all lists, one after the other."""
    type_ = column.type
    if t.is_list(type_) or t.is_large_list(type_) or t.is_fixed_size_list(type_):
        return column.flatten()
    if isinstance(type_, pa.FixedShapeTensorType):
        if Column(type_).permutation is not None:
            advice = "store its axes in their order"
            advice_cli = "store its axes in their order"
            raise SchemaError(
                "a column of steps has permuted axes",
                feature=field.name,
                got=str(type_),
                hint=advice,
                hint_cli=advice_cli,
            )
        marked = Dtype.KEY in (field.metadata or {})
        axes = Column(field).dtype_and_shape[1] if marked else tuple(type_.shape)
        if len(axes) == 1 and not marked:
            return column.storage.flatten()
        element = Column(field).dtype_and_shape[0] if len(axes) == 1 else None
        if element is not None and (element.is_extension or element.kind == "b"):
            return Column(field).flat_values(column)
        if axes:
            steps = int(_lengths(column).sum())
            return Column.fixed_shape_tensors(column.storage.flatten(), type_.shape[1:], steps)
    if Column(type_).is_variable_shape_tensor and Column(type_).permutation is None:
        inner_shape = [axis for axis in Column(type_).axes[1:] if axis is not None]
        if len(inner_shape) < len(Column(type_).axes) - 1:
            reason = "the tensors of the steps have no shape in common"
            declared = f'schema={{"{field.name}": tfr.tensor("float32", (None, 3))}}'
            advice = f"declare it, as in {declared}, or exclude it"
            advice_cli = f"declare it, as in {declared}, or exclude it"
            raise SchemaError(reason, feature=field.name, got=str(type_), hint=advice, hint_cli=advice_cli)
        values = column.storage.flatten()[0].flatten()
        marked = Dtype.KEY in (field.metadata or {})
        if not inner_shape and marked and Column(field).dtype_and_shape[0].is_extension:
            return Column(field).flat_values(column)
        if not inner_shape and not marked:
            return values
        return Column.fixed_shape_tensors(values, inner_shape, int(_lengths(column).sum()))
    advice = "exclude it, or read it as a list or a tensor of one shape with open_reader(schema=…)"
    advice_cli = "exclude it"
    raise SchemaError(
        "a column of steps is a list", feature=field.name, got=str(type_), hint=advice, hint_cli=advice_cli
    )
