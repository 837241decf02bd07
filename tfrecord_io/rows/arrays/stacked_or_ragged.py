"""Represent columns as NumPy arrays: stacked, masked, as objects, as values and offsets, or padded.

`TableRepresentation` takes record batches, and returns a dict of arrays by name as the options of the call ask.

Tests: tests/rows/arrays/test_stacked_or_ragged_layouts.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.base import MIB, Expansion, Task, WorkerPool, counted, cpu_count
from tfrecord_io.bytes import Array, Dtype, NumberColumn
from tfrecord_io.columns import Column, Dense, Ragged, RowFault, TensorLists, empty_batch
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, SchemaError
from tfrecord_io.rows.arrays.array_budget import ArrayBudget
from tfrecord_io.rows.arrays.array_options import ColumnLayout, Layouts, RepresentationOptions
from tfrecord_io.rows.arrays.image_arrays import RawImageDecoder, image_decoder, stack_equal
from tfrecord_io.rows.arrays.shared_images import Groups
from tfrecord_io.rows.arrays.sparse_matrices import SparseMatrix, csr_matrix, matrix_indices, sparse_matrices

_MOST_TEXT = 2**31  # bytes that 32-bit offsets can count
_SHARED_ROWS = 10_000  # of text; fewer are represented in about the time that it takes to start a thread
LENGTH, SHAPE, MASK = "length", "shape", "mask"  # of the arrays ``<name>/length``, ``<name>/shape``, …
SEGMENT_IDS, POSITIONS = "segment_ids", "positions"
CU_SEQLENS, MAX_SEQLEN = "cu_seqlens", "max_seqlen"  # as attention kernels for packed rows name them
_BLOCK_BYTES = 16 * MIB  # of arrays that share memory; a larger block would keep too much for one that is kept
_OWN_BYTES = 4 * MIB  # from this size on NumPy asks for huge pages
_ALIGNMENT = 64


_PLAIN, _IN_MATRIX = ColumnLayout(), ColumnLayout("csr")


class BatchForm(NamedTuple):
    """Form of the rows of a batch, where it is not a row for each."""

    length: int | None = None  # of the padded rows of columns by which batches are bucketed
    bins: Array | None = None  # the row of packed arrays that each row belongs to, ascending
    bin_count: int = 0  # the number of rows of packed arrays
    segments: Array | None = None  # the number of each row within its row of packed arrays
    ended: Array | None = None  # whether a row is followed by its end token


@dataclass(slots=True)
class ColumnArrays:
    """The rows of a column, from which batches of arrays are sliced."""

    name: str
    rows: Dense | Ragged
    ragged: str | None  # how ragged rows are represented
    masked: bool
    pad_value: Any = None
    end: Any = None  # the value after each row that is cut
    layout: ColumnLayout = _PLAIN  # of rows that are padded
    missing: Array | None = None  # the mask, if it is known already
    of_images: bool = False  # whose mask has one bool for a row, not for each of its pixels
    indices: Ragged | None = None  # of the values of a sparse matrix,
    size: int = 0  # which has so many columns

    def slice(self, begin: int, end: int, form: BatchForm | None = None) -> dict[str, Any]:
        """The arrays of the rows [begin, end), by name."""
        rows = self.rows
        if isinstance(rows, Dense):
            if self.missing is not None and self.masked:
                return {self.name: np.ma.MaskedArray(rows.values[begin:end], self.missing[begin:end])}
            return self._add_mask(rows.values[begin:end], rows.valid, begin, end)
        if self.ragged == "object":
            return {self.name: rows.objects(begin, end)}
        if self.indices is not None:
            return {self.name: self._matrix(begin, end)}
        if self.ragged == "offsets":
            shapes = rows.cut_shapes(begin, end)
            return {self.name: rows.cut(begin, end)} | ({} if shapes is None else {f"{self.name}/{SHAPE}": shapes})
        layout, length = self.layout, self.layout.length
        if form is not None and form.bins is not None and layout.packed:
            return self._pack(rows, begin, end, form)
        if form is not None and layout.bucketed:
            length = form.length
        values = rows.pad(begin, end, fill=self.pad_value, length=length, multiple=layout.multiple)
        arrays = self._add_mask(values, rows.valid, begin, end)
        if rows.shapes is None:
            arrays[f"{self.name}/{LENGTH}"] = rows.lengths_of(begin, end)
        if (shapes := rows.pad_shapes(begin, end, length, layout.multiple)) is not None:
            arrays[f"{self.name}/{SHAPE}"] = shapes
        return arrays

    def _pack(self, rows: Ragged, begin: int, end: int, form: BatchForm) -> dict[str, Any]:
        """The rows [begin, end) in packed rows, with their segments and positions."""
        assert self.layout.length is not None
        assert form.bins is not None
        assert form.segments is not None
        arrays = rows.pack(
            begin,
            end,
            bins=form.bins,
            segments=form.segments,
            count=form.bin_count,
            length=self.layout.length,
            fill=self.pad_value,
            ended=form.ended,
            last=self.end,
        )
        names = (self.name, f"{self.name}/{SEGMENT_IDS}", f"{self.name}/{POSITIONS}")
        packed = dict(zip(names, arrays, strict=True))
        if self.layout.cumulative:
            bounds = cumulative_lengths(arrays[1])
            longest = np.array(np.diff(bounds).max(initial=0), np.int32)
            packed |= {f"{self.name}/{CU_SEQLENS}": bounds, f"{self.name}/{MAX_SEQLEN}": longest}
        return packed

    @property
    def lengths(self) -> Array:
        """How many values each row has, where rows have different numbers."""
        assert isinstance(self.rows, Ragged)
        return self.rows.lengths

    def cut(self, rows: Array, begins: Array) -> ColumnArrays:
        """Cut the rows into pieces, which begin so many values after the first one of some rows.

        The last place is the end of the last piece.
        """
        assert isinstance(self.rows, Ragged)
        return replace(self, rows=Ragged(self.rows.values, self.rows.offsets[rows] + begins))

    def _matrix(self, begin: int, end: int) -> Any:
        """The rows [begin, end) as a csr_matrix."""
        assert isinstance(self.rows, Ragged)
        assert self.indices is not None
        values, offsets = self.rows.cut(begin, end)
        indices, _ = self.indices.cut(begin, end)
        return csr_matrix()((values, indices, offsets), shape=(end - begin, self.size))

    def _add_mask(self, values: Array, valid: Array | None, begin: int, end: int) -> dict[str, Array]:
        if not self.masked:
            return {self.name: values}
        mask = np.zeros(len(values) if self.of_images else values.shape, np.bool_)
        if valid is not None:
            mask[...] = ~valid[begin:end].reshape(-1, *(1,) * (mask.ndim - 1))
        if self.of_images:
            return {self.name: values, f"{self.name}/{MASK}": mask}
        return {self.name: np.ma.MaskedArray(values, mask)}


class ColumnRepresentation:
    """How one column is represented; see `TableRepresentation`. `layouts` is None if no option says it of lists."""

    def __init__(
        self,
        field: pa.Field,
        options: RepresentationOptions,
        complete: bool,
        length: int | None,
        layouts: Layouts | None,
        in_matrix: bool = False,
        has_mask: bool = False,
    ) -> None:
        self.field, self.options, self.complete, self.length = field, options, complete, length
        self.masked = options.missing == "mask" and not has_mask
        self.may_lack = not complete and field.nullable  # other batches may have rows without a value
        self.decoder = image_decoder(field)
        self.layout = _PLAIN
        if in_matrix:
            self.layout, self.length = _IN_MATRIX, None
        elif layouts is not None and (Column(field.type).varies or self.decoder is not None):
            layout = layouts.layout(field.name)
            self.layout = replace(layout, ragged=None) if layout.ragged == "csr" else layout
        if self.decoder is not None and self.decoder.size is None:
            self.length = None  # each row has a shape of its own
            if self.layout.packed:
                advice = "declare tfr.image(resize=(height, width))"
                raise SchemaError("pack= is for lists of images of one size", feature=field.name, hint=advice)

    def _share_images(self, shared: Groups) -> ColumnRepresentation:
        """Return this representation with images that are keys of shared ones."""
        if self.decoder is None or isinstance(self.decoder, RawImageDecoder):
            return self
        column = copy(self)
        column.decoder = replace(self.decoder, shared=shared)
        return column

    def _join(self, arrays: list[pa.Array]) -> Dense | Ragged:
        column = Column(self.field)
        if self.decoder is None and self.complete and self.layout.ragged is None:
            equal = self._lists_of_one_shape(arrays, column)
            if equal is not None:
                return equal
        if self.decoder is not None and not self.options.declares_schema:
            self.decoder.refuse_expansion(arrays, Expansion(self.options.limits.expansion_bytes))
        if self.decoder is None and column.is_bytes:
            return Dense.of_bytes(arrays, self.options.thread_count)
        if len(arrays) > 1 and column.is_text and sum(array.nbytes for array in arrays) < _MOST_TEXT:
            arrays = [pa.concat_arrays(arrays)]  # cheaper than joining NumPy's text
        parts, before = [], 0
        for array in arrays:
            try:
                parts.append(self._rows(array, column))
            except RowFault as fault:
                fault.row += before
                raise
            before += len(array)
        if len(parts) > 1 and self._are_objects(parts):
            return Dense(Ragged.joined_objects(parts))  # type: ignore[arg-type]
        if (
            self.decoder is not None and len({type(part) for part in parts}) > 1
        ):  # lists of images of one size, and of several
            parts = [Dense(part.objects(0, len(part))) if isinstance(part, Ragged) else part for part in parts]
        return Ragged.join(parts, self.options.thread_count)

    def _lists_of_one_shape(self, arrays: list[pa.Array], column: Column) -> Ragged | None:
        """The rows of lists of tensors whose type has several shapes, but which all have one; else None."""
        if not column.has_tensor_lists or Column(self.field.type.value_type).is_list:
            return None
        if any(column.missing_step(a, as_objects=False) is not None for a in arrays):
            return None
        rows = Ragged.join([self._truncate(column.tensor_lists(a)) for a in arrays], self.options.thread_count)
        assert isinstance(rows, TensorLists)
        return rows.of_one_shape()

    def _truncate(self, rows: Ragged) -> Ragged:
        max_length = self.layout.max_length
        return rows if max_length is None else rows.truncate(max_length, from_left=self.layout.from_left)

    def _are_objects(self, parts: list[Dense | Ragged]) -> bool:
        """True if the rows of all chunks become an array of objects, for which their values need not be joined."""
        if not self.complete or self.length is not None or self.layout.ragged not in (None, "object"):
            return False
        ragged = [part for part in parts if isinstance(part, Ragged)]
        return len(ragged) == len(parts) and (self.layout.ragged == "object" or Ragged.shape_of_all(ragged) is None)

    def _rows(self, array: pa.Array, column: Column) -> Dense | Ragged:
        if self.decoder is not None:
            return self.decoder.rows(array, self.options.thread_count, self.layout)
        of_tensors = self.layout.ragged in ("pad", "offsets") and has_tensor_lists(self.field)
        if (row := column.missing_step(array, as_objects=not of_tensors)) is not None:
            reason = "an item of its list has no value, and an array cannot mark missing values"
            advice = "read it with read_table, which returns null, or exclude it with columns="
            raise self._fault(row, reason, "a value", hint=advice, error=DecodeError)
        if of_tensors:
            return self._truncate(column.tensor_lists(array))
        rows = column.rows(array, missing=self.may_lack)
        return self._truncate(rows) if isinstance(rows, Ragged) else rows

    @property
    def is_image(self) -> bool:
        """True if the column has images, which are decoded."""
        return self.decoder is not None

    def padded_shape(self, empty: Array, name: str) -> tuple[int | None, ...] | None:
        """The shape of a row of the array `name`, by the array of no rows; None if no axis depends on the rows.

        A length that depends on the longest row of a batch, or on the bucket, is None in it.
        """
        column, length = Column(self.field), None if self.layout.bucketed else self.layout.length
        if self.layout.ragged != "pad":
            return None
        if name == f"{self.field.name}/{SHAPE}" and has_tensor_lists(self.field):
            return (length, *empty.shape[2:])
        if name != self.field.name:
            return None
        if self.decoder is not None:
            return self.decoder.padded_shape(length)
        if column.has_tensor_lists:
            return (length, *column.tensor_axes)
        is_tensor = column.is_variable_shape_tensor
        declared = column.tensor_axes if is_tensor else column.declared_shape or (None, *empty.shape[2:])
        return (length, *declared[1:])

    @property
    def image_form(self) -> tuple[np.dtype[Any], tuple[int | None, ...]] | None:
        """The dtype and the axes of each image, None where they vary; None if images have no common dtype."""
        return None if self.decoder is None else self.decoder.common_form

    def empty_arrays(self) -> dict[str, Any]:
        """The arrays of no rows, by name."""
        no_rows = np.empty(0, np.int64)
        arrays = self._represent([pa.nulls(0, self.field.type)], None)
        return arrays.slice(0, 0, BatchForm(bins=no_rows, segments=no_rows))

    def _represent(self, arrays: list[pa.Array], budget: ArrayBudget | None) -> ColumnArrays:
        """Join Arrow arrays, decode images, and choose the representation; RowFault if a row cannot be represented."""
        name = self.field.name
        rows = self._join(arrays)
        if self.layout is _IN_MATRIX:
            return ColumnArrays(name, _as_ragged(rows), "csr", False)
        masked, of_images = self.masked, self.decoder is not None
        mask_bytes = int(masked and not of_images)
        if isinstance(rows, Ragged):
            shape = None  # of each row, if rows are to be stacked
            if self.length is not None:
                self._refuse_lengths(rows, self.length)
                shape = Column(self.field).shape_of(self.length)
            elif self.complete and self.layout.ragged is None:
                shape = rows.common_shape()
            if shape is not None:
                if budget is not None:
                    budget.take_missing(rows, shape, mask_bytes, name)
                rows = Dense(rows.stack(shape), rows.valid)
        if isinstance(rows, Ragged):
            layout, pads = self.layout, self.layout.ragged == "pad"
            ragged = layout.ragged or "object"
            if ragged != "object":
                self._refuse_missing(rows.valid, f"ragged={ragged!r}", maskable=pads)
            value = cast_pad_value(layout.pad_value, rows.values.dtype, name) if pads else None
            last = None if layout.end is None else _end_value(layout.end, rows.values.dtype, name)
            if layout.length is not None and not layout.cut:
                self._refuse_longer(rows, layout.length)
            if pads and budget is not None and (layout.length is None or rows.has_inner_axes):
                budget.take_padding(rows, mask_bytes, name, layout.length)
            column = ColumnArrays(name, rows, ragged, pads and masked, layout=layout, of_images=of_images)
            return replace(column, pad_value=value, end=last)
        kind = rows.values.dtype.kind
        if kind == "O" and self.decoder is not None and self.complete and self.layout.ragged is None:
            rows = Dense(stack_equal(rows.values))
        if self.may_lack and rows.values.dtype.kind == "T" and rows.values.dtype != Dtype.text(missing=True):
            rows = Dense(rows.values.astype(Dtype.text(missing=True)))
        if kind in "OT":
            return ColumnArrays(name, rows, None, False)
        if rows.valid is not None:
            self._refuse_missing(rows.valid, f"an array of {rows.values.dtype}")
        return ColumnArrays(name, rows, None, masked, of_images=of_images)

    def _represent_numbers(self, column: NumberColumn) -> ColumnArrays:
        """Represent the joined numbers of a column; RowFault if one is missing that may not be."""
        if column.missing is not None and not self.masked:
            self._refuse_missing(~column.missing, f"an array of {column.values.dtype}")
        return ColumnArrays(self.field.name, Dense(column.values), None, self.masked, missing=column.missing)

    def _refuse_longer(self, rows: Ragged, most: int) -> None:
        lengths = rows.extents[:, 0]
        if (lengths > most).any():
            row = int((lengths > most).argmax())
            got = int(lengths[row])
            reason = f"it has {got} values, but {self.layout.named_by} has room for {most}"
            advice = f"pass max_length={ {self.field.name: most}!r} to truncate longer ones, or a larger length"
            raise self._fault(row, reason, f"at most {most}", got=got, hint=advice, error=SchemaError)

    def _refuse_lengths(self, rows: Ragged, length: int) -> None:
        bad = rows.lengths != length
        if rows.valid is not None:
            bad &= rows.valid
        if bad.any():
            row = int(bad.argmax())
            got = int(rows.lengths[row])
            reason = f"it has {got} values, but all records of the sample have {length}"
            advice = 'pass ragged="object", "offsets" or "pad", or pass a larger sample='
            raise self._fault(row, reason, length, got=got, hint=advice, error=SchemaError)

    def _refuse_missing(self, valid: Array | None, representation: str, *, maskable: bool = True) -> None:
        if valid is None or (maskable and self.options.missing == "mask"):
            return
        reason = f"it has no value, and {representation} cannot mark missing values"
        advice = 'pass ragged="object", which has None'
        if maskable:
            advice = 'pass missing="mask", or declare a default with schema='
        raise self._fault(int(valid.argmin()), reason, "a value", hint=advice, error=DecodeError)

    def _fault(self, row: int, reason: str, expected: object, **details: Any) -> RowFault:
        return RowFault(row, reason, feature=self.field.name, expected=expected, **details)


def _columns_with_mask(fields: Sequence[pa.Field]) -> frozenset[str]:
    """Columns with a mask of their own, as windows have them, which say what has no value; and these masks."""
    masks = {field.name for field in fields if not field.nullable and field.name.endswith(f"/{MASK}")}
    masked = {field.name for field in fields if f"{field.name}/{MASK}" in masks}
    return frozenset({*masked, *(f"{name}/{MASK}" for name in masked)})


class TableRepresentation:
    """How the columns of a schema are represented.

    If `complete`, all rows are available, and ``ragged=None`` may choose by their values. `lengths` has the columns of
    lists that are to be stacked, with the number of values required of each list. `images` are the columns that have
    images to decode.
    """

    def __init__(
        self,
        schema: pa.Schema,
        options: RepresentationOptions,
        *,
        complete: bool,
        lengths: dict[str, int] | None = None,
    ) -> None:
        self.fields = Column.leaf_fields(schema)  # one for each column, with the fields of structs as columns
        lengths = lengths or {}
        names = list(map(attrgetter("name"), self.fields))
        self._has_structs = schema.names != names
        self._threads = min(options.thread_count, cpu_count())
        layouts = options.layouts if options.has_layouts else None  # asked once, as there may be thousands of columns
        self._matrices = [] if layouts is None else sparse_matrices(self.fields, options)
        parts = set(chain.from_iterable(map(attrgetter("values", "indices"), self._matrices)))
        self._columns, self.images = list[ColumnRepresentation](), set[str]()
        have_mask = _columns_with_mask(self.fields) if options.missing == "mask" else frozenset()
        for at, (name, field) in enumerate(zip(names, self.fields, strict=True)):
            length, in_matrix = lengths.get(name), at in parts
            column = ColumnRepresentation(
                field, options, complete, length, layouts=layouts, in_matrix=in_matrix, has_mask=name in have_mask
            )
            self._columns.append(column)
            if column.decoder is not None:
                self.images.add(name)
        self._cuts = layouts is not None and any(column.layout.cut for column in self._columns)
        if layouts is not None:
            _refuse_others(self.fields, options)
            _refuse_nested(self.fields, options)
        for name, count in Counter(names).items():
            if count > 1:
                reason = f'two columns would have the name "{name}"'
                raise SchemaError(
                    reason, feature=name, hint="exclude one with columns=", hint_cli="exclude one with --columns"
                )

    @staticmethod
    def slice(columns: list[ColumnArrays], begin: int, end: int, form: BatchForm | None = None) -> dict[str, Any]:
        """The arrays of the rows [begin, end) of all columns; SchemaError if two have the same name."""
        arrays: dict[str, Any] = {}
        for column in columns:
            # The fast path: this runs for every batch that has columns of other kinds, too; see `dense_values`.
            if isinstance(column.rows, Dense) and not column.masked and column.name not in arrays:
                arrays[column.name] = column.rows.values[begin:end]
                continue
            for name, array in column.slice(begin, end, form).items():
                if name in arrays:
                    reason = f'two arrays would have the name "{name}"'
                    advice = 'exclude one with columns=, or pass ragged="object"'
                    advice_cli = "exclude one with --columns"
                    raise SchemaError(reason, feature=name, hint=advice, hint_cli=advice_cli)
                arrays[name] = array
        return arrays

    def empty_arrays(self, schema: pa.Schema) -> dict[str, Any]:
        """The arrays of a batch without rows of a schema."""
        no_rows = np.empty(0, np.int64)
        form = BatchForm(bins=no_rows, segments=no_rows, ended=np.empty(0, np.bool_))
        return self.slice(self.represent([empty_batch(schema)]), 0, 0, form)

    def represent(
        self, batches: list[pa.RecordBatch], budget: ArrayBudget | None = None, shared: Groups | None = None
    ) -> list[ColumnArrays]:
        """Join and represent the columns of all batches; empties the list, to free memory.

        The arrays may take what `budget` has left; images may be keys of `shared` ones.

        The RowFault it may raise is that of the first bad row, numbered through all batches.
        """
        arrays_of = Column.leaf_arrays if self._has_structs else attrgetter("columns")
        parts, rows = list(map(list, map(arrays_of, batches))), sum(map(len, batches))
        numbers = {} if self._has_structs else number_columns(batches, parts, self._threads)
        batches.clear()
        arrays, fault = [], None
        texts: dict[int, Task[ColumnArrays]] = {}  # columns that other threads represent meanwhile: they need no GIL
        with ExitStack() as stack:
            if self._threads > 1 and rows >= _SHARED_ROWS:
                pool = stack.enter_context(WorkerPool(self._threads - 1, "text"))
                for i, column in enumerate(self._columns):
                    if Column(column.field.type).is_text:
                        texts[i] = pool.submit(partial(column._represent, [part[i] for part in parts], None))
            for i, column in enumerate(self._columns):
                if shared:
                    column = column._share_images(shared)
                try:
                    if i in numbers:
                        arrays.append(column._represent_numbers(numbers[i]))
                    elif i in texts:
                        arrays.append(texts[i].result())
                    else:
                        arrays.append(column._represent([part[i] for part in parts], budget))
                except RowFault as error:
                    if fault is None or error.row < fault.row:
                        fault = error
                for part in parts:
                    part[i] = None  # free it: representing a column may have copied it
        if fault is not None:
            raise fault
        if self._cuts:
            _refuse_other_lengths([column for column in arrays if column.layout.cut])
        return join_matrices(arrays, self._matrices) if self._matrices else arrays


def dense_values(columns: list[ColumnArrays]) -> dict[str, Array] | None:
    """Values by name that `TableRepresentation.slice` slices; None if it makes other arrays of a column."""
    dense = dict[str, Array]()
    for column in columns:
        if not isinstance(column.rows, Dense) or column.masked or column.name in dense:
            return None
        dense[column.name] = column.rows.values
    return dense


def has_tensor_lists(field: pa.Field) -> bool:
    """True for columns of lists of tensors of several shapes, of images of several sizes, or of lists."""
    decoder = image_decoder(field)
    return Column(field.type).has_tensor_lists if decoder is None else decoder.in_lists and decoder.size is None


def cast_pad_value(value: Any, dtype: np.dtype[Any], name: str) -> Any:
    """Convert a padding value to a dtype; text and bytes are padded with empty values unless `value` is one.

    >>> [cast_pad_value(-1, np.dtype(dtype), "x") for dtype in ("int64", "M8[s]")]
    [np.int64(-1), np.datetime64('1969-12-31T23:59:59')]
    """
    if dtype.kind == "T":
        return value if isinstance(value, str) else ""
    if dtype.kind == "O":
        return value if isinstance(value, bytes) else b""
    if dtype.kind in "US" and not isinstance(value, str | bytes):
        return dtype.type()
    converted = _cast_exactly(value, dtype)
    if converted is None:
        reason = f"cannot pad {dtype} with {value!r}"
        raise SchemaError(reason, feature=name, expected=str(dtype), got=value, hint="pass another pad_value=")
    return converted


def _refuse_other_lengths(columns: list[ColumnArrays]) -> None:
    """Raise RowFault for a row whose lists in these columns, which are cut together, have different lengths."""
    first, *others = [column.lengths for column in columns] or [np.empty(0)]
    for row in np.flatnonzero(sum(lengths != first for lengths in others))[:1].tolist():
        at = next(at for at, lengths in enumerate(others) if lengths[row] != first[row])
        expected, got, name = int(first[row]), int(others[at][row]), columns[at + 1].name
        reason = f"it has {counted(got, 'value')}, but {counted(expected, 'value')} in '{columns[0].name}'"
        advice = "cut=True cuts columns at the same places: exclude one of them"
        raise RowFault(row, reason, feature=name, expected=expected, got=got, hint=advice, error=SchemaError)


def cumulative_lengths(segments: Array) -> Array:
    """Begins of the segments in packed rows, row by row, and the end of the last, as int32.

    >>> cumulative_lengths(np.array([[1, 1, 2, 0], [1, 1, 1, 1]]))
    array([0, 2, 3, 4, 8], dtype=int32)
    """
    begins = np.ones(segments.shape, np.bool_)
    begins[:, 1:] = segments[:, 1:] != segments[:, :-1]
    return np.append(np.flatnonzero(begins), segments.size).astype(np.int32)


def _as_ragged(rows: Dense | Ragged) -> Ragged:
    """Rows as rows of different lengths, also where all have the same."""
    if isinstance(rows, Ragged):
        return rows
    count, width = rows.values.shape
    return Ragged(rows.values.reshape(-1), np.arange(count + 1, dtype=np.int64) * width, valid=rows.valid)


def join_matrices(columns: list[ColumnArrays], matrices: Sequence[SparseMatrix]) -> list[ColumnArrays]:
    """Replace the values and indices of each matrix by one column; RowFault if they do not fit."""
    replaced: dict[int, ColumnArrays] = {}
    for matrix in matrices:
        values, indices = columns[matrix.values].rows, columns[matrix.indices].rows
        assert isinstance(values, Ragged)
        assert isinstance(indices, Ragged)
        indices = matrix_indices(values, indices, matrix)
        replaced[matrix.values] = ColumnArrays(
            matrix.name, values, "csr", masked=False, indices=indices, size=matrix.size
        )
    left_out = {matrix.indices for matrix in matrices}
    return [replaced.get(at, column) for at, column in enumerate(columns) if at not in left_out]


def _refuse_others(fields: list[pa.Field], options: RepresentationOptions) -> None:
    """Raise FeatureNotFoundError or SchemaError if options name what is not a column of lists."""
    types, layouts = {field.name: field.type for field in fields}, options.layouts.column_layouts()
    images = {field.name for field in fields if image_decoder(field) is not None}
    for name, layout in layouts.items():
        if layout.ragged == "csr":  # which may be the name of a matrix: `sparse_matrices`
            continue
        if name not in types:
            advice = f"the columns are {', '.join(types)}" if types else "no record was read; pass schema="
            advice_cli = f"the columns are {', '.join(types)}" if types else "no record was read; pass --type"
            raise FeatureNotFoundError(
                "an option names a column that is not read", feature=name, hint=advice, hint_cli=advice_cli
            )
        if not Column(types[name]).varies and (
            name not in images or layout.packed or layout.bucketed or layout.max_length
        ):
            reason = "an option for lists names it, but its values are not lists of varying length"
            raise SchemaError(reason, feature=name, got=str(types[name]), hint="leave it out of the option")
        if (layout.packed or layout.bucketed) and Column(types[name]).is_variable_shape_tensor:
            reason = f"{layout.named_by} is for lists, and it has tensors"
            raise SchemaError(reason, feature=name, got=str(types[name]), hint="leave it out of the option")
    unpacked = [name for name in types if name not in layouts or not layouts[name].packed]
    if any(layout.packed for layout in layouts.values()) and unpacked:
        advice = "exclude it with columns=, or name it in pack="
        advice_cli = "exclude it with --columns"
        raise SchemaError(
            "pack= makes one row of several, where it has no place",
            feature=unpacked[0],
            hint=advice,
            hint_cli=advice_cli,
        )


def _refuse_nested(fields: list[pa.Field], options: RepresentationOptions) -> None:
    for field in fields:
        if not Column(field.type).is_list or pa.types.is_fixed_size_list(field.type):
            continue
        layout, value = options.layouts.layout(field.name), field.type.value_type
        if layout.ragged in (None, "object", "csr") and layout.max_length is None:
            continue
        is_list = Column(value).is_list and not pa.types.is_fixed_size_list(value)
        is_deep = is_list and not has_tensor_lists(field)
        is_packed = layout.packed and has_tensor_lists(field)
        if is_deep or is_packed:
            of_length = layout.named_by if layout.max_length is None else f"max_length={layout.max_length}"
            values = "lists of lists" if is_deep else "lists" if is_list else "arrays of several shapes"
            reason = f"{of_length or f'ragged={layout.ragged!r}'} cannot represent lists of {values}"
            advice = 'pass ragged="object"' if of_length is None else "name other columns in a dict"
            if not is_list:
                advice += "; declare pictures by tfr.image(…, resize=(height, width))"
            raise SchemaError(
                reason,
                feature=field.name,
                got=str(field.type),
                hint=f"exclude it with columns=, or {advice}",
                hint_cli="exclude it with --columns",
            )


def number_columns(
    batches: Sequence[pa.RecordBatch], columns: Sequence[Sequence[pa.Array]], threads: int
) -> dict[int, NumberColumn]:
    """The columns by their number in the schema; those of one batch are its memory.

    `columns` are those of each batch.
    """
    rows, row_bytes, dtypes = sum(map(len, batches)), 0, dict[int, np.dtype[Any]]()
    for index, dtype in enumerate(Column.number_dtypes(batches[0].schema)):
        if dtype is not None:
            dtypes[index] = dtype
            row_bytes += dtype.itemsize + 1
    memory, by_number, copied = Blocks(rows * row_bytes), dict[int, NumberColumn](), list[NumberColumn]()
    null_count = attrgetter("null_count")
    for index, dtype in dtypes.items():
        arrays = list(map(itemgetter(index), columns))
        has_nulls = any(map(null_count, arrays))
        values = memory.take(rows, dtype) if len(arrays) > 1 else Column.numbers(arrays[0], writable=True)
        number = NumberColumn(index, values, memory.take(rows, np.dtype(np.bool_)) if has_nulls else None)
        by_number[index] = number
        if len(arrays) > 1 or has_nulls:
            copied.append(number)
    if copied:
        NumberColumn.join(batches, copied, threads)
    return by_number


class Blocks:
    """Memory for arrays of medium size, in huge pages: the first use of small pages takes longer than filling them.

    `total` is the size of all arrays, about.
    """

    def __init__(self, total: int) -> None:
        self._size = min(total, _BLOCK_BYTES) if total >= _OWN_BYTES else 0  # little memory is not worth a block
        self._block = np.empty(0, np.uint8)

    def take(self, count: int, dtype: np.dtype[Any]) -> Array:
        """An array of undefined values."""
        size = count * dtype.itemsize
        if size >= min(_OWN_BYTES, self._size):
            return np.empty(count, dtype)
        if size > len(self._block):
            self._block = np.empty(self._size, np.uint8)
        values, self._block = self._block[:size].view(dtype), self._block[-(-size // _ALIGNMENT) * _ALIGNMENT :]
        return values


def _end_value(value: Any, dtype: np.dtype[Any], name: str) -> Any:
    """Convert an end token to a dtype; SchemaError if the dtype cannot hold it."""
    is_text = dtype.kind == "T" or dtype.kind in "OSU"
    converted = value if dtype.kind == "T" and isinstance(value, str) else None
    if not is_text and not isinstance(value, str):
        converted = _cast_exactly(value, dtype)
    if converted is None:
        reason, advice = f"end_token={value!r} is not a value of {dtype}", "pass a dict by column, or another token"
        raise SchemaError(reason, feature=name, expected=str(dtype), got=value, hint=advice)
    return converted


def _cast_exactly(value: Any, dtype: np.dtype[Any]) -> Any:
    """`value` as `dtype`, None if the dtype cannot hold it."""
    try:
        if dtype.kind in "mM":
            return np.asarray(value, np.int64 if isinstance(value, int) else dtype).astype(dtype)[()]
        original = np.asarray(value)
        converted = original.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        return None
    equal = converted == original or (original != original and dtype.kind in "fc")  # NaN is a value of floats
    return converted[()] if original.ndim == 0 and equal else None
