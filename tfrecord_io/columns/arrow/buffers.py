"""Buffers as Arrow arrays and Arrow arrays as buffers, without copies; arithmetic of masks and offsets.

Functions take buffers, bitmaps, offsets or columns of an engine (`ColumnBuffers`) and return arrays, or the reverse.

Tests: tests/columns/arrow/decode/test_batch_builder.py and tests/columns/arrow/decode/test_batch_builder_types.py.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import ConsumedOnce
from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, Kind, Layout
from tfrecord_io.columns.schema.types import has_wide_offsets, replace_fields, types_within
from tfrecord_io.errors import SchemaError

_FIELDS = attrgetter("num_fields")  # of a type; most have none

D = TypeVar("D", pa.Array, pa.ChunkedArray, pa.RecordBatch, pa.Table)


def runs_within(sizes: Any, most: int) -> Iterator[tuple[int, int]]:
    """Ranges of consecutive rows whose `sizes` are at most `most` in all, or of a single row that is larger.

    >>> list(runs_within([2, 3, 9, 1], 5))
    [(0, 2), (2, 3), (3, 4)]
    """
    ends, begin = np.append(0, np.cumsum(sizes)), 0
    while begin < len(sizes):
        end = max(begin + 1, int(ends.searchsorted(ends[begin] + most, side="right")) - 1)
        yield begin, end
        begin = end


# ---- NumPy to Arrow


def empty_batch(schema: pa.Schema) -> pa.RecordBatch:
    """A batch without rows; ``schema.empty_table`` does not know unions."""
    return pa.RecordBatch.from_arrays([pa.nulls(0, type_) for type_ in schema.types], schema=schema)


def replace_columns(table: pa.Table, columns: Mapping[int, tuple[pa.Field, pa.Array | pa.ChunkedArray]]) -> pa.Table:
    """Replace columns of a table, by number; ``table.set_column`` would copy all columns for each of them."""
    if not columns:
        return table
    schema = replace_fields(table.schema, {at: field for at, (field, _) in columns.items()})
    arrays = [columns[at][1] if at in columns else column for at, column in enumerate(table.columns)]
    return pa.Table.from_arrays(arrays, schema=schema)


def fixed_width(type_: pa.DataType, count: int, nulls: int, validity: Array | None, values: Array) -> pa.Array:
    """An array of a fixed-width type over `values`, whose items have that width."""
    return pa.Array.from_buffers(type_, count, [_validity(nulls, validity), pa.py_buffer(values)], nulls)


def int64_array(values: Array) -> pa.Array:
    """An int64 array over `values`, without the import of pandas by ``pa.array``."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(np.ascontiguousarray(values, np.int64))])


def variable_width(
    type_: pa.DataType, count: int, nulls: int, validity: Array | None, offsets: Array, values: Array
) -> pa.Array:
    """An array of (large_)binary or (large_)string over `values`; 32-bit offsets are widened where the type asks."""
    offsets = offsets.astype(offset_dtype(type_), copy=False)
    buffers = [_validity(nulls, validity), pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(type_, count, buffers, nulls)


def list_array(
    type_: pa.DataType, rows: int, nulls: int, validity: Array | None, offsets: Array, values: pa.Array
) -> pa.Array:
    """An array of list or large_list that cuts `values` into rows."""
    offsets = offsets.astype(offset_dtype(type_), copy=False)
    buffers = [_validity(nulls, validity), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(type_, rows, buffers, nulls, children=[values])


def fixed_shape_tensors(values: pa.Array, shape: Sequence[int], rows: int) -> pa.Array:
    """Cut `values` into tensors of a shape, which may have no values.

    Of these, ``FixedSizeListArray.from_arrays`` would not know the number.

    >>> fixed_shape_tensors(pa.array([1, 2, 3, 4]), [2], 2).storage.to_pylist()
    [[1, 2], [3, 4]]
    """
    type_ = pa.fixed_shape_tensor(values.type, list(shape))
    storage = pa.Array.from_buffers(type_.storage_type, rows, [None], 0, children=[values])
    storage.validate()  # there are as many values: a read beyond them would end the process
    return pa.ExtensionArray.from_storage(type_, storage)


def _validity(nulls: int, validity: Array | None) -> pa.Buffer | None:
    return pa.py_buffer(validity) if nulls and validity is not None else None


def arrow_file(data: bytes | memoryview) -> pa.BufferReader:
    """A copy of `data`, in memory of Arrow, as a file for its parsers.

    Their threads live on after an error, and may be the last to hold the file. To free memory of Python they would need
    the GIL, which ends the process by an abort where the interpreter is just ending.
    """
    buffer = pa.allocate_buffer(len(data))
    memoryview(buffer).cast("B")[:] = data
    return pa.BufferReader(buffer)


# ---- Arrow to NumPy


class ArrayBuffers(NamedTuple):
    """The buffers of an Arrow array as NumPy arrays: views, where that is possible.

    >>> buffers = ArrayBuffers(pa.array([[1, 2], None, [3]]))
    >>> buffers.lengths, buffers.valid
    (array([2, 0, 1]), array([ True, False,  True]))
    """

    array: pa.Array

    @property
    def valid(self) -> Array | None:
        """One bool for each slot, None where there are no nulls. Not for run-ends and unions."""
        array = self.array
        if array.null_count == 0:
            return None
        if t.is_null(array.type):
            return np.zeros(len(array), np.bool_)
        return _bits(array.buffers()[0], array.offset, len(array))

    @property
    def numbers(self) -> Array:
        """The numbers of integers, floats, bools or times; null slots hold anything. A view, except of bools."""
        array, type_ = self.array, self.array.type
        if t.is_boolean(type_):
            return _bits(array.buffers()[1], array.offset, len(array))
        dtype = np.dtype(f"i{type_.bit_width // 8}" if t.is_temporal(type_) else type_.to_pandas_dtype())
        return typed_view(array.buffers()[1], dtype, array.offset, len(array))

    @property
    def offsets(self) -> Array:
        """The offsets of a list or binary array, one more than it has slots. A view."""
        array = self.array
        dtype = offset_dtype(array.type)
        if len(array) == 0:  # Arrow allows such an array to have no offsets at all
            return np.zeros(1, dtype)
        return typed_view(array.buffers()[1], dtype, array.offset, len(array) + 1)

    @property
    def content(self) -> Array:
        """The bytes that the offsets of text or binary point into; those of other slots of the buffer, too."""
        data = self.array.buffers()[-1]
        return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)

    @property
    def lengths(self) -> Array:
        """Number of values of each list, of any layout, 0 where it is null."""
        return np.asarray(self.array.value_lengths().fill_null(0)).astype(np.int64)


def offset_dtype(type_: pa.DataType) -> np.dtype:
    """The dtype of the offsets of lists, maps, text or bytes.

    >>> offset_dtype(pa.large_string()), offset_dtype(pa.list_(pa.int8()))
    (dtype('int64'), dtype('int32'))
    """
    return np.dtype(np.int64 if has_wide_offsets(type_) else np.int32)


def bytes_values(array: pa.Array) -> tuple[Array, Array]:
    """Values and value offsets, from 0, of text, binary and decimals."""
    if t.is_decimal(array.type):
        array = array.cast(pa.string())
    whole = ArrayBuffers(array).content
    if t.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        offsets = np.arange(len(array) + 1, dtype=np.int64) * width
        return whole[array.offset * width :][: offsets[-1]], offsets
    offsets = ArrayBuffers(array).offsets
    begin, end = offsets[0], offsets[-1]
    return whole[begin:end], offsets - begin if begin else offsets


def typed_view(buffer: pa.Buffer | None, dtype: np.dtype, begin: int, count: int) -> Array:
    """Items [begin, begin + count) of a buffer of `dtype`."""
    if buffer is None or count == 0:
        return np.zeros(count, dtype)
    return np.frombuffer(buffer, dtype, count, begin * dtype.itemsize)


def number_items(array: pa.Array, dtype: np.dtype[Any]) -> Array:
    """The numbers of an array as a view; null slots hold anything."""
    return typed_view(array.buffers()[1], dtype, array.offset, len(array))


def value_bytes(array: pa.Array) -> int:
    """The bytes of an array's values; of unions those of all buffers, as ``nbytes`` of Arrow (26.0) crashes on them.

    Each row of a dictionary array counts as a category of average size: a slice of it holds the whole dictionary.
    """
    if t.is_dictionary(array.type):
        categories = array.dictionary
        return int(array.indices.nbytes) + len(array) * value_bytes(categories) // max(1, len(categories))
    try:
        return int(array.get_total_buffer_size() if _holds_union(array.type) else array.nbytes)
    except pa.ArrowTypeError:  # of views, before Arrow 20
        return int(array.get_total_buffer_size())


def is_same_memory(array: pa.Array, other: pa.Array | None) -> bool:
    """True if two arrays without children are views of the same memory."""
    if other is None or not array.type.equals(other.type) or array.type.num_fields or len(array) != len(other):
        return False
    places = [[buffer and buffer.address for buffer in view.buffers()] for view in (array, other)]
    return array.offset == other.offset and places[0] == places[1]


def _holds_union(type_: pa.DataType) -> bool:
    return any(map(t.is_union, types_within(type_, storage=True)))


def selectable(data: D) -> D:
    """Prepare rows for ``take`` and ``filter``: a copy of fixed-size lists that are in fixed-size lists.

    Arrow (26.0) reads the values of a slice of them at a wrong place, also beyond the end of their memory.

    >>> rows = pa.array([[[1], [2]], [[3], [4]], [[5], [6]]], pa.list_(pa.list_(pa.int8(), 1), 2))
    >>> selectable(rows.slice(1)).take(pa.array([0])).to_pylist()
    [[[3], [4]]]
    """
    if isinstance(data, pa.RecordBatch | pa.Table):
        if not any(map(_nests_fixed_sizes, filter(_FIELDS, data.schema.types))):
            return data
        return type(data).from_arrays(list(map(selectable, data.columns)), schema=data.schema)
    if not data.type.num_fields or not _nests_fixed_sizes(data.type):
        return data
    if isinstance(data, pa.ChunkedArray):
        return pa.chunked_array(list(map(selectable, data.chunks)), data.type)
    return pa.concat_arrays([data])


def _nests_fixed_sizes(type_: pa.DataType) -> bool:
    lists = filter(t.is_fixed_size_list, types_within(type_, storage=True))
    return any(t.is_fixed_size_list(list_type.value_type) for list_type in lists)


def struct_fields(array: pa.StructArray) -> list[pa.Array]:
    """The fields of a struct, null where it is: ``flatten``, which in Arrow 26.0 ends the process at masked unions.

    >>> struct_fields(pa.array([{"a": 1}, None]))[0].to_pylist()
    [1, None]
    """
    if not len(array):  # of which Arrow (26.0) has no buffers where an extension type is stored as a union
        return [array.field(at) for at in range(array.type.num_fields)]
    if not _holds_union(array.type) or array.buffers()[0] is None:
        return list(array.flatten())
    missing = array.is_null()
    rows = pa.array(np.arange(len(array)), mask=np.asarray(missing))
    return [
        field.take(rows)
        if _holds_union(field.type)
        else pa.StructArray.from_arrays([field], [""], mask=missing).flatten()[0]
        for field in map(array.field, range(array.type.num_fields))
    ]


def writable(values: Array) -> Array:
    """Return the memory as writable: for what was just decoded, which has no other owner. Arrow's imports are not."""
    if values.flags.writeable:
        return values
    if Dtype.extension_of(values.dtype) is None:
        return np.asarray(_Memory(values))
    return np.asarray(_Memory(values.view(f"u{values.itemsize}"))).view(values.dtype)  # ``<f1`` is no dtype of NumPy


class _Memory:
    """Memory that an array has a view of, for NumPy's ``__array_interface__``."""

    def __init__(self, values: Array) -> None:
        interface = values.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}
        self.kept = values


def _bits(buffer: pa.Buffer | None, begin: int, count: int) -> Array:
    """Bits [begin, begin + count) of a bitmap as bools."""
    if buffer is None or count == 0:
        return np.zeros(count, np.bool_)
    first = begin // 8
    packed = np.frombuffer(buffer, np.uint8)[first : (begin + count + 7) // 8]
    return np.unpackbits(packed, bitorder="little")[begin - 8 * first :][:count].view(np.bool_)


# ---- masks and offsets


def bitmap_of(mask: Array) -> Array:
    """The validity bitmap of a mask."""
    return np.packbits(mask, bitorder="little")


def bitmap_buffer(mask: Array | None) -> pa.Buffer | None:
    """The validity bitmap of a mask as Arrow takes it; None, of no nulls, as it is."""
    return None if mask is None else pa.py_buffer(bitmap_of(mask))


def offsets_of(lengths: Array, dtype: type = np.int64) -> Array:
    """Offsets from 0 on of runs of these lengths: one more than there are runs."""
    offsets: Array = np.zeros(len(lengths) + 1, dtype)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def scatter(values: Array, mask: Array) -> Array:
    """Items of `values` in the rows where the mask is True, zeros in the others."""
    if len(values) == len(mask):
        return values
    rows = np.zeros((len(mask), *values.shape[1:]), values.dtype)
    rows[mask] = values
    return rows


# ---- parts of decoded columns


def split_by_kind(column: ColumnBuffers) -> list[ColumnBuffers]:
    """The rows of a column as columns of one kind each; of a feature list, by the kind of its steps."""
    if column.steps is not None:
        return [column.replace(steps=steps) for steps in split_by_kind(column.steps)]
    if not column.others:
        return [column]
    first_kind = column.replace(others=())
    return [*column.others] if column.null_count == column.rows else [first_kind, *column.others]


def take_rows(columns: Sequence[ColumnBuffers], rows: Array) -> ColumnBuffers:
    """The rows of these numbers, counted through all of the columns, as one column; the number −1 is a null row.

    The columns have one kind and layout. Their rows are single values, or lists of numbers.
    """
    first, is_list = columns[0], columns[0].layout is Layout.LIST
    assert not is_list or first.kind is not Kind.BYTES
    mask = np.concatenate([*(column.mask for column in columns), [False]])[rows]  # the last one is that of −1
    part = first.replace(rows=len(rows), null_count=len(rows) - int(np.count_nonzero(mask)))
    part.validity = bitmap_of(mask) if part.null_count else None
    bounds = [column.offsets if is_list else column.value_offsets for column in columns]
    values: list[Any] = [column.values for column in columns]
    if not is_list and first.kind is not Kind.BYTES:
        part.values = np.concatenate([*values, [0]])[rows]
        return part
    pieces = [held[own[0] : own[-1]] for held, own in zip(values, bounds, strict=True)]  # type: ignore[index]
    lengths = np.concatenate([*map(np.diff, bounds), [0]])  # type: ignore[arg-type]
    counts = np.where(mask, lengths[rows], 0)
    offsets = offsets_of(counts)
    begins = offsets_of(lengths[:-1])[rows] - offsets[:-1]
    part.values = np.concatenate(pieces)[np.repeat(begins, counts) + np.arange(offsets[-1])]
    part.offsets, part.value_offsets = (offsets, None) if is_list else (None, offsets)
    return part


def numpy_dtype(type_: pa.DataType) -> np.dtype[Any] | None:
    """The dtype of an Arrow type of fixed width; None where values are objects or text.

    >>> numpy_dtype(pa.timestamp("us", "UTC")), numpy_dtype(pa.time32("s"))
    (dtype('<M8[us]'), dtype('<m8[s]'))
    """
    if t.is_boolean(type_) or t.is_integer(type_) or t.is_floating(type_):
        return np.dtype(type_.to_pandas_dtype())
    if t.is_timestamp(type_):
        return np.dtype(f"M8[{type_.unit}]")
    if t.is_duration(type_) or t.is_time(type_):
        return np.dtype(f"m8[{type_.unit}]")
    if t.is_date(type_):
        return np.dtype("M8[D]" if t.is_date32(type_) else "M8[ms]")
    return None


class _CStream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = [
        (name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")
    ]


_GetLastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _Batches:
    """Iterates over batches, and keeps the text of an error that ends them; the stream owns the iterator."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.text: list[ctypes.Array[ctypes.c_char]] = []
        self.callback: object = None

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except StopIteration:
            raise
        except Exception as error:
            self.text[:] = [ctypes.create_string_buffer(str(error).encode("utf-8", "backslashreplace"))]
            raise pa.ArrowInvalid(str(error)) from error


class BatchStream(ConsumedOnce[pa.RecordBatch]):
    """Base class of streams of record batches, which can be read once.

    A context manager and an iterator; anything that takes ``__arrow_c_stream__`` can read it.

    Attributes
    ----------
    fault : Exception or None
        The error that stopped the reading; through ``__arrow_c_stream__`` a consumer gets only its text.
    """

    _batches: Iterator[pa.RecordBatch]

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of every batch."""

    def __next__(self) -> pa.RecordBatch:
        return self._take(self._batches)

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch.

        Raises
        ------
        StopIteration
            At the end.
        TFRecordError
            After all rows before the damage were returned.
        """
        return self._take(self._batches)

    def from_start(self) -> Self:
        """This stream, if nothing has been read from it.

        Raises
        ------
        ValueError
            Batches have been read, so the rest would be incomplete.
        """
        self._refuse_used()
        if self._started:
            raise ValueError(f"a part of the {self._word} has been consumed; open it again")
        return self

    @staticmethod
    def check_names(schema: pa.Schema) -> None:
        """Raise SchemaError for a name with a NUL, which ends it in the C data interface of Arrow."""
        for field in schema:
            structs = filter(t.is_struct, types_within(field.type))
            if any("\0" in name for name in (field.name, *(inner.name for struct in structs for inner in struct))):
                reason = "the name has a NUL, at which Arrow ends it on the way to other libraries"
                raise SchemaError(
                    reason, feature=field.name, hint="leave it out by columns=", hint_cli="leave it out by --columns"
                )

    @staticmethod
    def export(schema: pa.Schema, batches: Iterator[pa.RecordBatch], requested_schema: object = None) -> object:
        """The capsule that ``__arrow_c_stream__`` returns, for batches of the schema, which may raise.

        The consumer requests a schema, to which pyarrow casts.
        """
        BatchStream.check_names(schema)
        source = _Batches(batches)
        capsule = pa.RecordBatchReader.from_batches(schema, source).__arrow_c_stream__(requested_schema)
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        stream = _CStream.from_address(address(capsule, b"arrow_array_stream"))
        original, text = _GetLastError(stream.get_last_error), source.text
        source.callback = callback = _GetLastError(lambda this: ctypes.addressof(text[0]) if text else original(this))
        stream.get_last_error = ctypes.cast(callback, ctypes.c_void_p)
        return capsule

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.export(self.schema, self.from_start(), requested_schema)
