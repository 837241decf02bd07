"""Plain Arrow values as the values of features: int64, float32, or bytes with offsets."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.arrow.buffers import number_view, offset_view, offsets_of
from tfrecord_io.arrow.casts import DAY
from tfrecord_io.arrow.encode.encode_plan import Rounding
from tfrecord_io.arrow.encode.flatten import Rows
from tfrecord_io.arrow.row_fault import first_refused
from tfrecord_io.arrow.tensor_values import TensorValues
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.dtypes import element_of

_INT64_MAX = 2**63 - 1


def int64_values(array: pa.Array, rows: Rows) -> Array:
    """Integers, bools and temporal values; the slots of null rows hold anything."""
    numbers = number_view(array)
    if t.is_time(array.type):
        bad = (numbers < 0) | (numbers >= DAY[array.type.unit])
        _refuse(bad, numbers, rows, f"the number of this {array.type} is not a time of day", "cast it to a duration")
    elif t.is_date64(array.type):
        advice = "cast the column to timestamp[ms], or to date32"
        _refuse(numbers % DAY["ms"] != 0, numbers, rows, "a date64 is not at midnight", advice)
    if numbers.dtype == np.uint64:
        reason = "an unsigned integer above 2**63 - 1 cannot be stored in a TFRecord"
        _refuse(numbers > _INT64_MAX, numbers, rows, reason, "write the column as text or raw")
        return numbers.view(np.int64)
    return numbers.astype(np.int64, copy=False)


def float32_values(array: pa.Array, rows: Rows, float64: str | None, rounding: Rounding) -> Array:
    """Floats, float64 rounded to nearest; NaN stays NaN."""
    exact = number_view(array)
    if exact.dtype != np.float64:
        return exact.astype(np.float32, copy=False)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = exact.astype(np.float32)
    infinite = np.isinf(rounded)
    if infinite.any():
        reason, advice = "a finite float64 is too large for float32", 'write the column with float64="raw"'
        _refuse(infinite & np.isfinite(exact), exact, rows, reason, advice)
    if float64 == "round":
        return rounded
    changed = rounded != exact
    if changed.any():
        changed &= ~np.isnan(exact)
        if float64 == "error":
            reason, advice = "float32 cannot hold a float64", 'float64="raw" keeps its bits, "round" rounds it'
            _refuse(changed, exact, rows, reason, advice)
        count = np.count_nonzero(_written(changed, rows))
        if count:
            rounding.add(rows.feature, int(count))
    return rounded


def _written(flags: Array, rows: Rows) -> Array:
    """Only the flags of values that are written."""
    return flags & rows.valid if rows.valid is not None and rows.offsets is None else flags


def _refuse(bad: Array, numbers: Array, rows: Rows, reason: str, advice: str) -> None:
    bad = _written(bad, rows)
    if bad.any():
        slot = int(np.argmax(bad))
        raise rows.error(slot, reason, advice, got=numbers[slot].item())


def bytes_values(array: pa.Array) -> tuple[Array, Array]:
    """Values and value offsets, from 0, of text, binary and decimals."""
    if t.is_decimal(array.type):
        array = array.cast(pa.string())
    data = array.buffers()[-1]
    whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    if t.is_fixed_size_binary(array.type):
        width = array.type.byte_width
        offsets = np.arange(len(array) + 1, dtype=np.int64) * width
        return whole[array.offset * width :][: offsets[-1]], offsets
    wide = t.is_large_string(array.type) or t.is_large_binary(array.type)
    offsets = offset_view(array, np.dtype(np.int64 if wide else np.int32))
    begin, end = offsets[0], offsets[-1]
    return whole[begin:end], offsets - begin if begin else offsets


def refuse_invalid_text(array: pa.Array, data: Array, rows: Rows) -> None:
    """Refuse text, the bytes of which are `data`, that is not UTF-8: Arrow's strings may hold any bytes."""
    if not data.size or data.view(np.int8).min() >= 0:  # ASCII
        return
    if rows.valid is not None and rows.offsets is None:
        array = pc.if_else(pa.array(rows.valid), array, None)
    if not _is_valid(array):
        bad = first_refused(len(array), lambda begin, end: not _is_valid(array[begin:end]))
        raise rows.error(bad, "the text is not UTF-8", "cast the column to binary, or decode it first")


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def refuse_invalid_categories(values: pa.Array, feature: str) -> None:
    """Refuse categories that are not values of their type, which no reader of the embedded schema would accept."""
    if not _is_valid(values):
        advice = "cast the column, or pass embed_schema=False"
        raise EncodeError(
            f"its categories are not all valid values of the type {values.type}", feature=feature, advice=advice
        )


def number_cells(rows: Rows, values: pa.Array) -> TensorValues:
    """The cells of a plain column as tensors: single numbers have no dimension, lists of them one."""
    element = element_of(values.type)
    numbers = number_view(values)
    data = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).view(np.uint8)
    if rows.offsets is None:
        if rows.valid is not None:
            data = data.reshape(-1, element.itemsize)[rows.valid].reshape(-1)
        offsets = np.arange(len(data) // element.itemsize + 1) * element.itemsize
        return TensorValues(element, data, offsets, (), rows.valid)
    lengths = np.diff(rows.offsets) if rows.valid is None else np.diff(rows.offsets)[rows.valid]
    return TensorValues(element, data, offsets_of(lengths) * element.itemsize, lengths[:, None], rows.valid)
