"""Arrays of the caller, filled batch by batch: what does not fit in memory fits in a memmap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from tfrecord_io.arrays.representation import ColumnArrays, TableRepresentation, plain_options
from tfrecord_io.arrow.output.ragged import Ragged
from tfrecord_io.arrow.output.to_numpy import Dense
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import SchemaError, StoppedEarlyWarning, warn
from tfrecord_io.options import MIB, ArrayOptions
from tfrecord_io.read.reader import Reader

_BATCH_BYTES = 8 * MIB


def fill(path: Any, options: ArrayOptions, out: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the arrays of `out`, which have a row for each record, and give them in the order of the columns.

    Raises
    ------
    TypeError
        What is to be filled is no array.
    SchemaError
        Its dtype or shape is not the column's, or there is no array for a column.
    ValueError
        There are more or fewer records than the arrays have rows.
    """
    rows = _common_rows(out)
    if options.missing == "mask":
        raise ValueError(
            'missing="mask" needs arrays of its own: leave out=, or fill them with a schema that has defaults'
        )
    columns = options.columns if options.columns is not None else tuple(out)
    plain = replace(plain_options(options), columns=columns, batch_bytes=min(options.batch_bytes, _BATCH_BYTES))
    with Reader(path, plain) as reader:
        forms = TableRepresentation(reader.schema, replace(options, ragged="object"), whole=False)
        names = [field.name for field in forms.fields]
        for name in names:
            if name not in out:
                raise SchemaError(
                    "there is no array for it in out=",
                    feature=name,
                    advice="add one, or leave the column out by columns=",
                )
        for name in out:
            if name not in names:
                raise SchemaError("out= has an array for it, and it is not among the columns read", feature=name)
        done = 0
        for batch in reader:
            if done + len(batch) > rows:
                raise ValueError(
                    f"the arrays of out= have {rows} rows, and there are more records; pass limit={rows} for the first"
                )
            try:
                settled = forms.settle([batch])
                for column in settled:
                    _put(column, out[column.name], done)
            except RowFault as fault:
                error = fault.to_error(*reader.origins.of(done + fault.row))
                error.records_intact = done
                if options.on_error == "raise":
                    raise error from fault.__cause__
                warn(f"reading stopped early: {error}", StoppedEarlyWarning)
                break
            done += len(batch)
    if done < rows and reader.report.stopped is None and options.on_error == "raise":
        raise ValueError(
            f"the arrays of out= have {rows} rows, and there are {done} records; pass arrays of that length"
        )
    return {name: out[name] for name in names}


def _common_rows(out: Mapping[str, Any]) -> int:
    counts = set()
    for name, array in out.items():
        if not isinstance(array, np.ndarray) or array.ndim == 0:
            raise TypeError(f"out[{name!r}] is {type(array).__name__}: expected an array with a row for each record")
        if not array.flags.writeable:
            raise ValueError(f"out[{name!r}] cannot be written to; open a memmap with mode 'r+' or 'w+'")
        counts.add(len(array))
    if len(counts) != 1:
        raise ValueError(
            f"the arrays of out= have different numbers of rows: {sorted(counts)}" if counts else "out= has no array"
        )
    return counts.pop()


def _put(column: ColumnArrays, target: Array, begin: int) -> None:
    rows, count = column.rows, len(column.rows)
    if isinstance(rows, Ragged):
        shape = target.shape[1:]
        shapes = rows.lengths[:, None] if rows.shapes is None else rows.shapes
        if len(shape) < shapes.shape[1]:
            raise _misfit(column.name, f"[rows, {', '.join('?' * shapes.shape[1])}]", rows.values.dtype, target)
        if rows.valid is not None:
            reason = "it has no value, and out= has no place for that"
            raise RowFault(int(rows.valid.argmin()), reason, feature=column.name, error=SchemaError)
        bad = (shapes != shape[: shapes.shape[1]]).any(axis=1)
        if bad.any():
            row = int(bad.argmax())
            got = tuple(shapes[row].tolist())
            reason = f"its shape is {got}, and the array of out= has {shape}"
            raise RowFault(row, reason, feature=column.name, expected=shape, got=got, error=SchemaError)
        rows = Dense(rows.stacked(tuple(shapes.shape[1] and shape[: shapes.shape[1]])))
    if rows.values.dtype != target.dtype or rows.values.shape[1:] != target.shape[1:]:
        raise _misfit(
            column.name, f"[rows{''.join(f', {size}' for size in rows.values.shape[1:])}]", rows.values.dtype, target
        )
    target[begin : begin + count] = rows.values


def _misfit(name: str, shape: str, dtype: Any, target: Array) -> SchemaError:
    expected = f"{dtype} {shape}"
    got = f"{target.dtype} {list(target.shape)}"
    reason = f"the array of out= is {got}, and the column is {expected}"
    return SchemaError(
        reason,
        feature=name,
        expected=expected,
        got=got,
        advice="pass an array like that, or a schema with another type",
    )
