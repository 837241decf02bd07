"""Filling the caller's arrays batch by batch; with memmaps the data may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrays.representation import ColumnArrays, TableRepresentation, reader_options
from tfrecord_io.arrow.output.ragged import Ragged
from tfrecord_io.arrow.output.to_numpy import Dense
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import SchemaError
from tfrecord_io.options import MIB, ArrayOptions
from tfrecord_io.read.fitting_parts import fitting_parts
from tfrecord_io.read.on_error import end_read
from tfrecord_io.read.resolve_schema import open_scan

_BATCH_BYTES = 8 * MIB


def fill_arrays(path: Any, options: ArrayOptions, out: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the arrays of `out`, which have a row for each record, and return them in the order of the columns."""
    rows = _common_rows(out)
    if options.missing == "mask":
        advice = "omit out=, or declare defaults for missing values by schema="
        raise ValueError(f'missing="mask" cannot be combined with out=: {advice}')
    columns = options.columns if options.columns is not None else tuple(out)
    plain = replace(reader_options(options), columns=columns, batch_bytes=min(options.batch_bytes, _BATCH_BYTES))
    with open_scan(path, plain) as reader:
        representation = TableRepresentation(reader.schema, replace(options, ragged="object"), complete=False)
        names = [field.name for field in representation.fields]
        for name in names:
            if name not in out:
                advice = "add one, or exclude the column with columns="
                raise SchemaError("out= has no array for it", feature=name, advice=advice)
        for name in out:
            if name not in names:
                raise SchemaError("out= has an array for it, but it is not among the columns read", feature=name)
        reader.defer_warning()
        done = read = 0

        def passes(fault: RowFault) -> bool:
            return reader.goes_on and reader.leave_out(fault.at(read + fault.row))

        for batch in reader:
            if done + len(batch) > rows:
                raise ValueError(f"the arrays of out= have {rows} rows, but there are more records; pass limit={rows}")
            filled, failure = _fill(representation, batch, out, done, passes)
            done, read = done + filled, read + len(batch)
            if failure is not None:
                error = reader.row_error(failure.at(read - len(batch) + failure.row))
                error.records_intact = done
                end_read(error, options.on_error)
                break
        reader.report.skipped.warn()
    is_complete = reader.report.stopped is None and not reader.report.skipped.total
    if done < rows and is_complete and options.on_error != "stop":
        got = f"there are {done} records"
        raise ValueError(f"the arrays of out= have {rows} rows, but {got}; pass arrays of that length")
    return {name: out[name] for name in names}


def _fill(
    representation: TableRepresentation,
    batch: pa.RecordBatch,
    out: Mapping[str, Any],
    begin: int,
    passes: Callable[[RowFault], bool],
) -> tuple[int, RowFault | None]:
    """Fill the arrays from row `begin` on; returns the number of rows, and the fault of the row that ends them."""
    done = 0

    def make(first: int, end: int) -> int | RowFault:
        try:
            for column in representation.represent([batch.slice(first, end - first)]):
                _fill_rows(column, out[column.name], begin + done)
        except RowFault as fault:
            return fault
        return end - first

    for _, _, part in fitting_parts(len(batch), make, passes):
        if isinstance(part, RowFault):
            return done, part
        done += part
    return done, None


def _common_rows(out: Mapping[str, Any]) -> int:
    counts = set()
    for name, array in out.items():
        if not isinstance(array, np.ndarray) or array.ndim == 0:
            raise TypeError(f"out[{name!r}]: expected an array with a row for each record, got {type(array).__name__}")
        if not array.flags.writeable:
            raise ValueError(f"out[{name!r}] cannot be written to; open a memmap with mode 'r+' or 'w+'")
        counts.add(len(array))
    if not counts:
        raise ValueError("out= has no array")
    if len(counts) > 1:
        raise ValueError(f"the arrays of out= have different numbers of rows: {sorted(counts)}")
    return counts.pop()


def _fill_rows(column: ColumnArrays, target: Array, begin: int) -> None:
    rows, count = column.rows, len(column.rows)
    if isinstance(rows, Ragged):
        shape = target.shape[1:]
        shapes = rows.lengths[:, None] if rows.shapes is None else rows.shapes
        if len(shape) < shapes.shape[1]:
            raise _mismatch(column.name, f"[rows, {', '.join('?' * shapes.shape[1])}]", rows.values.dtype, target)
        if rows.valid is not None:
            reason = "it has no value, which an array of out= cannot represent"
            raise RowFault(int(rows.valid.argmin()), reason, feature=column.name, error=SchemaError)
        bad = (shapes != shape[: shapes.shape[1]]).any(axis=1)
        if bad.any():
            row = int(bad.argmax())
            got = tuple(shapes[row].tolist())
            reason = f"its shape is {got}, but the array of out= has {shape}"
            raise RowFault(row, reason, feature=column.name, expected=shape, got=got, error=SchemaError)
        rows = Dense(rows.stacked(tuple(shapes.shape[1] and shape[: shapes.shape[1]])))
    if rows.values.dtype != target.dtype or rows.values.shape[1:] != target.shape[1:]:
        sizes = "".join(f", {size}" for size in rows.values.shape[1:])
        raise _mismatch(column.name, f"[rows{sizes}]", rows.values.dtype, target)
    target[begin : begin + count] = rows.values


def _mismatch(name: str, shape: str, dtype: Any, target: Array) -> SchemaError:
    expected = f"{dtype} {shape}"
    got = f"{target.dtype} {list(target.shape)}"
    reason = f"the array of out= is {got}, but the column is {expected}"
    advice = "pass such an array, or a schema with another type"
    return SchemaError(reason, feature=name, expected=expected, got=got, advice=advice)
