"""The form in which each column is handed over: stacked, masked, as objects, offsets or padded."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrays.image_decoding import Images, stack_equal
from tfrecord_io.arrays.padding import pad_value
from tfrecord_io.arrow.output.ragged import Ragged
from tfrecord_io.arrow.output.to_numpy import Dense, Rows, joined, leaf_arrays, leaf_fields, missing_step, to_rows
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import FeatureNotFoundError, SchemaError
from tfrecord_io.options import ReadOptions, RepresentationOptions
from tfrecord_io.schema.tensor_types import is_variable_shape_tensor
from tfrecord_io.schema.types import is_list_like

LENGTH, SHAPE = "length", "shape"  # of the arrays ``<name>/length`` and ``<name>/shape``


@dataclass(slots=True)
class ColumnArrays:
    """Rows of a column in the form that they are handed over in."""

    name: str
    rows: Rows
    form: str | None
    masked: bool
    fill: Any = None
    plain: Array | None = None  # the values, where a slice of them is all that there is to a batch

    def __post_init__(self) -> None:
        if isinstance(self.rows, Dense) and not self.masked:
            self.plain = self.rows.values

    def cut(self, begin: int, end: int) -> dict[str, Any]:
        """The arrays of the rows [begin, end), by name."""
        rows = self.rows
        if isinstance(rows, Dense):
            return {self.name: self._with_mask(rows.values[begin:end], rows.valid, begin, end)}
        if self.form == "object":
            return {self.name: rows.objects(begin, end)}
        sizes = {} if rows.shapes is None else {f"{self.name}/{SHAPE}": rows.shapes[begin:end]}
        if self.form == "offsets":
            return {self.name: rows.cut(begin, end), **sizes}
        padded = self._with_mask(rows.padded(begin, end, self.fill), rows.valid, begin, end)
        return {self.name: padded, **(sizes or {f"{self.name}/{LENGTH}": rows.lengths[begin:end]})}

    def _with_mask(self, values: Array, valid: Array | None, begin: int, end: int) -> Array:
        if not self.masked:
            return values
        missing = np.zeros(len(values), np.bool_) if valid is None else ~valid[begin:end]
        mask = np.empty(values.shape, np.bool_)
        mask[...] = missing.reshape(-1, *(1,) * (values.ndim - 1))
        return np.ma.MaskedArray(values, mask)


@dataclass(frozen=True, slots=True)
class ColumnRepresentation:
    """How one column is handed over.

    Attributes
    ----------
    field : pyarrow.Field
    options : FormOptions
    whole : bool
        All rows are at hand: what ``ragged=None`` makes of lists may depend on their values.
    length : int, optional
        How many values each list has to have, for it is to be stacked.
    images : Images, optional
    threads : int
    """

    field: pa.Field
    options: RepresentationOptions
    whole: bool
    length: int | None = None
    images: Images | None = None
    threads: int = 1

    def rows(self, array: pa.Array) -> Rows:
        """Decode what is to be decoded.

        Raises
        ------
        RowFault
        """
        if self.images is not None:
            return self.images.rows(array.to_pylist(), self.threads)
        if (row := missing_step(array, self.field)) is not None:
            reason = "one of its steps has no value, and an array has no place for that"
            advice = "read it with read_table, which has null there, or leave it out by columns="
            raise RowFault(
                row, reason, feature=self.field.name, expected="a value", advice=advice, error=FeatureNotFoundError
            )
        return to_rows(array, self.field)

    def settle(self, rows: Rows) -> ColumnArrays:
        """Bring rows into the form.

        Raises
        ------
        RowFault
            A row has no place in it.
        """
        options, name = self.options, self.field.name
        if isinstance(rows, Ragged):
            shape = self._shape(rows)
            if shape is not None:
                rows = Dense(rows.stacked(shape), rows.valid)
        if isinstance(rows, Ragged):
            form = options.ragged or "object"
            if form != "object":
                self._refuse_missing(rows.valid, "the form of offsets", maskable=form == "pad")
            fill = pad_value(options.pad_value, rows.values.dtype, name) if form == "pad" else None
            return ColumnArrays(name, rows, form, form == "pad" and options.missing == "mask", fill)
        kind = rows.values.dtype.kind
        if kind == "O" and self.images is not None and self.whole and options.ragged is None:
            rows = Dense(stack_equal(rows.values))
        if kind == "T" and not self.whole and self.field.nullable:
            rows = Dense(rows.values.astype(np.dtypes.StringDType(na_object=None)))
        if kind in "OT":
            return ColumnArrays(name, rows, None, False)
        self._refuse_missing(rows.valid, f"an array of {rows.values.dtype}")
        return ColumnArrays(name, rows, None, options.missing == "mask")

    def _shape(self, rows: Ragged) -> tuple[int, ...] | None:
        """The shape of a row, if they are to be stacked."""
        if self.length is not None:
            self._refuse_lengths(rows, self.length)
            return (self.length,)
        return rows.common_shape() if self.whole and self.options.ragged is None else None

    def _refuse_lengths(self, rows: Ragged, length: int) -> None:
        bad = rows.lengths != length
        if rows.valid is not None:
            bad &= rows.valid
        if bad.any():
            row = int(bad.argmax())
            got = int(rows.lengths[row])
            reason = f"it has {got} values, where all records of the sample have {length}"
            advice = 'pass ragged="object", "offsets" or "pad", or a larger sample='
            raise RowFault(
                row, reason, feature=self.field.name, expected=length, got=got, advice=advice, error=SchemaError
            )

    def _refuse_missing(self, valid: Array | None, what: str, *, maskable: bool = True) -> None:
        if valid is None or (maskable and self.options.missing == "mask"):
            return
        advice = (
            'pass missing="mask", or a schema with a default' if maskable else 'pass ragged="object", where it is None'
        )
        reason = f"it has no value, and {what} has no place for that"
        row, name = int(valid.argmin()), self.field.name
        raise RowFault(row, reason, feature=name, expected="a value", advice=advice, error=FeatureNotFoundError)


class TableRepresentation:
    """The forms of the columns of a schema.

    Parameters
    ----------
    schema : pyarrow.Schema
    options : FormOptions
    whole : bool
        See `ColumnRepresentation`.
    lengths : dict of str to int
        Columns of lists that are to be stacked, with the number of values that each list has to have.

    Attributes
    ----------
    fields : list of pyarrow.Field
        One for each column, structs taken apart.

    Raises
    ------
    SchemaError
        A column has no form, or two arrays would have one name.
    """

    def __init__(
        self, schema: pa.Schema, options: RepresentationOptions, *, whole: bool, lengths: dict[str, int] | None = None
    ) -> None:
        self.fields = leaf_fields(schema)
        self._forms = [
            ColumnRepresentation(f, options, whole, (lengths or {}).get(f.name), Images.of(f), options.thread_count)
            for f in self.fields
        ]
        _refuse_nested(self.fields, options.ragged)
        _refuse_doubles(self.fields)

    @property
    def has_images(self) -> bool:
        """Whether any column is decoded."""
        return any(form.images is not None for form in self._forms)

    def settle(self, batches: list[pa.RecordBatch]) -> list[ColumnArrays]:
        """The columns of all batches together, which the list then holds no longer.

        Raises
        ------
        RowFault
            Of several the one of the first row; the row counts through all batches.
        """
        columns = [leaf_arrays(batch) for batch in batches]
        batches.clear()
        settled, first = [], None
        for at, form in enumerate(self._forms):
            try:
                settled.append(form.settle(_rows(form, [column[at] for column in columns])))
            except RowFault as error:
                if first is None or error.row < first.row:
                    first = error
            for column in columns:
                column[at] = None  # each column may be a copy: two at a time are enough
        if first is not None:
            raise first
        return settled


def _rows(form: ColumnRepresentation, arrays: list[pa.Array]) -> Rows:
    parts, before = [], 0
    for array in arrays:
        try:
            parts.append(form.rows(array))
        except RowFault as error:
            error.row += before
            raise
        before += len(array)
    return joined(parts)


def cut(columns: list[ColumnArrays], begin: int, end: int) -> dict[str, Any]:
    """The arrays of the rows [begin, end) of all columns.

    Raises
    ------
    SchemaError
        Two have one name.
    """
    found: dict[str, Any] = {}
    for column in columns:
        if column.plain is not None and column.name not in found:  # the way of most columns, once for every batch
            found[column.name] = column.plain[begin:end]
            continue
        for name, array in column.cut(begin, end).items():
            if name in found:
                raise SchemaError(
                    f'two arrays would have the name "{name}"',
                    feature=name,
                    advice='leave one out by columns=, or pass ragged="object"',
                )
            found[name] = array
    return found


def plain_options(options: RepresentationOptions) -> ReadOptions:
    """The part of the options that any reader has."""
    return ReadOptions(**{f.name: getattr(options, f.name) for f in fields(ReadOptions)})


def _refuse_nested(fields: list[pa.Field], ragged: str | None) -> None:
    if ragged in (None, "object"):
        return
    for field in fields:
        if not is_list_like(field.type) or pa.types.is_fixed_size_list(field.type):
            continue
        value = field.type.value_type
        if (is_list_like(value) and not pa.types.is_fixed_size_list(value)) or is_variable_shape_tensor(value):
            raise SchemaError(
                f"lists of lists have no form as ragged={ragged!r}",
                feature=field.name,
                got=str(field.type),
                advice='leave it out by columns=, or pass ragged="object"',
            )


def _refuse_doubles(fields: list[pa.Field]) -> None:
    names = [field.name for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(
                f'two columns would have the name "{name}"', feature=name, advice="leave one out by columns="
            )
