"""Read all records into one array per column."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfrecord_io.base import MIB, check_keywords
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column, Dense, Ragged, RowFault, empty_batch
from tfrecord_io.errors import SchemaError
from tfrecord_io.read import CallSource, LazyScan, Reader, RowFaultPolicy, options_from_call
from tfrecord_io.rows.arrays.array_budget import ArrayBudget
from tfrecord_io.rows.arrays.array_options import ArrayOptions, ColumnLayout, RepresentationOptions
from tfrecord_io.rows.arrays.stacked_or_ragged import (
    LENGTH,
    SHAPE,
    ColumnArrays,
    TableRepresentation,
    cast_pad_value,
    has_tensor_lists,
)
from tfrecord_io.typing import (
    UNSET,
    ArrayLayout,
    InputPath,
    Lengths,
    Missing,
    OnError,
    ProgressLike,
    SchemaLike,
    StorageLike,
    Unset,
)

_JOINED_BYTES = MIB  # of a column, on average: copying it at once costs less than representing each of its chunks
_MANY_ROWS = 16_384  # the chunks of columns with fewer are joined at once before they are represented
_VALUE_BYTES = 8  # of a number, at most
_BATCH_BYTES = 1024 * MIB  # one thread makes one batch of a file of usual size, whose arrays are not copies
_OUT_BATCH_BYTES = 8 * MIB


@check_keywords
def read_arrays(
    source: InputPath,
    *,
    columns: Sequence[str] | str | None = None,
    filters: Any = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    limit: int | None = None,
    on_error: OnError | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
    progress: ProgressLike | Unset = UNSET,
    ragged: ArrayLayout | Mapping[str, ArrayLayout] | None = None,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
    missing: Missing = "error",
    out: Mapping[str, npt.NDArray[Any]] | None = None,
) -> dict[str, npt.NDArray[Any]]:
    """Read TFRecord files of tf.train.Example into NumPy arrays, one per column, with a row for each record.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"label": [1, 0], "box": [[1, 2, 3, 4], [5, 6, 7, 8]]}, "boxes.tfrecord"
    ... )
    >>> arrays = tfr.read_arrays("boxes.tfrecord")
    >>> arrays["box"].shape, arrays["label"].dtype
    ((2, 4), dtype('int64'))
    >>> import numpy as np
    >>> box = np.zeros((2, 4), np.int64)
    >>> _ = tfr.read_arrays("boxes.tfrecord", out={"box": box})
    >>> box[1]
    array([5, 6, 7, 8])
    >>> _ = tfr.write_tfrecord({"t": [[1, 2, 3], [4], [5, 6]]}, "texts.tfrecord")
    >>> texts = tfr.read_arrays(
    ...     "texts.tfrecord", max_length=2, pad_to=2, pad_value={"t": -1}
    ... )
    >>> texts["t"].tolist(), texts["t/length"]
    ([[1, 2], [4, -1], [5, 6]], array([2, 1, 2]))

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more reading options.
    columns, filters, schema, limit, on_error, storage_options, filesystem, progress
        As in `read_tfrecord`.
    ragged : {None, "object", "offsets", "pad", "csr"} or dict
        Representation of lists without a declared length, and of tensors whose shapes vary. None: a regular array if
        all rows have the same shape, else as "object"; in batches, lists that ``schema=`` declares are always as
        "object". "object": an object array of arrays. "offsets": a tuple (values, offsets), where row i is
        ``values[offsets[i]:offsets[i + 1]]``. "pad": a regular array, padded with `pad_value`. "offsets" and "pad" add
        an array ``<name>/shape`` of shape [rows, rank] for tensors, and "pad" an array ``<name>/length`` for lists,
        both int64. Lists of lists, and of tensors or images of several shapes, have ``<name>/shape`` of [rows, steps,
        rank] with "pad", and (shapes, offsets) with "offsets", where a row of shapes cuts the values of its row. "csr":
        sparse columns, which were written from matrices of scipy.sparse or are declared by
        `tfrecord_io.io.SparseFeature`, are one ``scipy.sparse.csr_matrix`` for their indices and values; a row without
        them is empty. A dict says it by column: ``{"tokens": "pad", "boxes": "offsets"}``.
    pad_value : scalar or dict, default 0
        Padding for "pad", also by column: ``{"labels": -100}``; of columns that are not padded it is an error. Text and
        bytes are padded with empty values unless it is text or bytes.
    max_length : int, (int, "left") or dict, optional
        Truncate longer lists, and tensors along their first axis, to their first values, or with "left" to their last
        ones; also by column: ``{"tokens": 512}``.
    pad_to : int, (int, "multiple") or dict, optional
        Pad to this length, or with "multiple" to the next multiple of it, instead of the longest list of a batch; also
        by column: ``{"tokens": 512}``. A longer list is an error, also with ``on_error="skip"``, as no data is damaged;
        `max_length` truncates it.
    missing : {"error", "mask"}
        What to do with missing values in columns of numbers, bools, times or tensors, which cannot represent them.
        "mask" returns such a column as a ``numpy.ma.MaskedArray``; of images there is an array ``<name>/mask``, a bool
        for each row. In object arrays and text, missing values are None.
    out : dict of ndarray, optional
        Arrays to fill, by column, such as ``numpy.memmap``: with the dtype and shape of the column, and a row for each
        record. Without `columns`, only these columns are read. The files are streamed: memory holds a few batches. With
        ``ragged="pad"`` rows are padded to the shape of the array, and ``<column>/length`` and ``<column>/shape`` may
        be among the arrays.

    Returns
    -------
    dict of str to ndarray
        In the order of the columns. Numbers, bools and times (datetime64, timedelta64) have one axis; lists of equal
        length and tensors of equal shape are stacked to [rows, ...], lists of such tensors to [rows, steps, ...]; for
        others see `ragged`. Text has NumPy's StringDType, bytes are an object array of ``bytes`` (NumPy's ``S`` drops
        trailing NULs), both with None if missing. Categories are represented by their values. The fields of a struct
        are columns ``outer/inner``. Images that the schema declares by `tfrecord_io.image` are decoded: uint8, [rows,
        height, width, channels].

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        See `read_tfrecord`.
    DecodeError
        A record has no value for a column of numbers, bools, times or tensors; see `missing`.
    """
    options = options_from_call(
        ArrayOptions,
        read_arrays,
        source,
        columns=columns,
        filters=filters,
        schema=schema,
        limit=limit,
        on_error=on_error,
        storage_options=storage_options,
        filesystem=filesystem,
        progress=progress,
        ragged=ragged,
        pad_value=pad_value,
        max_length=max_length,
        pad_to=pad_to,
        missing=missing,
        out=out,
    )
    if options.out is not None:
        return fill_arrays(source, options, options.out)
    with CallSource(source).open(options.changed(batch_bytes=_BATCH_BYTES), whole=True) as reader:
        return arrays_of(reader, options)


def scan_arrays(scan: LazyScan, **representation: Any) -> dict[str, npt.NDArray[Any]]:
    """All rows of a scan; `representation` are keywords of `RepresentationOptions`, see `read_arrays`."""
    options = RepresentationOptions.from_scan(scan.options, **representation)
    with scan.open_all(batch_bytes=_BATCH_BYTES) as reader:
        return arrays_of(reader, options)


def arrays_of(reader: Reader, options: RepresentationOptions) -> dict[str, npt.NDArray[Any]]:
    """All rows of a reader that was opened for a whole read; see `read_arrays`."""
    policy = RowFaultPolicy(reader, options.on_error)
    table = reader.read_all()
    representation = TableRepresentation(reader.schema, options, complete=True)
    joins = table.num_rows >= _MANY_ROWS and _joins_all(reader.schema)
    joined_bytes = _JOINED_BYTES * table.num_columns
    at_most = (reader.payload_bytes + table.num_rows * table.num_columns) * _VALUE_BYTES
    # The buffers are counted last, which takes long for many columns.
    if not joins and (at_most <= joined_bytes or table.get_total_buffer_size() <= joined_bytes):
        table = table.combine_chunks()
    row_bytes = reader.payload_bytes / max(table.num_rows, 1)
    limit, failure = options.limits.expansion_bytes, None
    while True:
        try:
            arrays = _arrays(representation, table, row_bytes, limit)
            break
        except RowFault as fault:
            if reader.goes_on:
                failure, table = _fitting(policy, representation, table=table, row_bytes=row_bytes, limit=limit)
            else:
                failure, table = fault, table.slice(0, fault.row)
            if failure is not None and not options.damage.ends_quietly:
                break
    if failure is not None:
        policy.end(failure, table.num_rows)
    policy.warn_of_left_out()
    return arrays


def _joins_all(schema: pa.Schema) -> bool:
    """True if the chunks of every column are joined at once: the columns are numbers, text and bytes."""
    dtypes = Column.number_dtypes(schema)
    no_numbers = [Column(type_) for type_, dtype in zip(schema.types, dtypes, strict=True) if dtype is None]
    return all(column.is_text or column.is_bytes for column in no_numbers)


def _fitting(
    policy: RowFaultPolicy, representation: TableRepresentation, table: pa.Table, row_bytes: float, limit: int
) -> tuple[RowFault | None, pa.Table]:
    """The rows that arrays can hold, and the fault of a row that may not be left out."""

    def make(begin: int, end: int) -> pa.Table:
        part = table.slice(begin, end - begin)
        _arrays(representation, part, row_bytes, limit)
        return part

    kept = [table.slice(0, 0)]
    for _, _, part in RowFaultPolicy.fitting_parts(table.num_rows, make, policy.leave_out):
        if isinstance(part, RowFault):
            return part, pa.concat_tables(kept)
        kept.append(part)
    return None, pa.concat_tables(kept)


def _arrays(representation: TableRepresentation, table: pa.Table, row_bytes: float, limit: int) -> dict[str, Any]:
    batches = table.to_batches() or [empty_batch(table.schema)]
    budget = ArrayBudget(limit, table.num_rows, lambda: np.full(table.num_rows, row_bytes))
    return TableRepresentation.slice(representation.represent(batches, budget), 0, table.num_rows)


def fill_arrays(path: Any, options: ArrayOptions, out: Mapping[str, Any]) -> dict[str, Any]:
    """Fill the arrays of `out`, which have a row for each record, and return them in the order of the columns."""
    rows = _common_rows(out)
    if options.missing == "mask":
        advice = "omit out=, or declare defaults for missing values with schema="
        raise ValueError(f'missing="mask" cannot be combined with out=: {advice}')
    padded = {name: layout for name in out if (layout := options.layouts.layout(name)).ragged == "pad"}
    sizes = {f"{name}/{size}" for name in padded for size in (LENGTH, SHAPE)} & {*out}
    columns = options.columns if options.columns is not None else tuple(name for name in out if name not in sizes)
    plain = replace(options, columns=columns, batch_bytes=min(options.batch_bytes, _OUT_BATCH_BYTES))
    with CallSource(path).open(plain) as reader:
        fields = [field for field in Column.leaf_fields(reader.schema) if field.name in padded]
        forms: dict[str, ArrayLayout] = {field.name: "pad" for field in fields if has_tensor_lists(field)}
        representation = TableRepresentation(
            reader.schema, replace(options, ragged=forms or "object", pad_value=0, out=None), complete=False
        )
        names = [field.name for field in representation.fields]
        sizes -= set(names)
        _check_names(out, names, sizes)
        policy, done = RowFaultPolicy(reader, options.on_error), 0
        for batch in reader:
            if done + len(batch) > rows:
                raise ValueError(f"the arrays of out= have {rows} rows, but there are more records; pass limit={rows}")
            filled, failure = _fill(representation, batch, out=out, padded=padded, begin=done, passes=policy.leave_out)
            done += filled
            if failure is not None:
                policy.end(failure, done)
                break
            policy.first_row += len(batch)
        policy.warn_of_left_out()
    is_complete = reader.report.stopped is None and not reader.report.skipped.total
    if done < rows and is_complete and not options.damage.ends_quietly:
        got = f"there are {done} records"
        raise ValueError(f"the arrays of out= have {rows} rows, but {got}; pass arrays of that length")
    keys = [name for column in names for name in (column, f"{column}/{LENGTH}", f"{column}/{SHAPE}")]
    return {name: out[name] for name in keys if name in names or name in sizes}


def _check_names(out: Mapping[str, Any], names: Sequence[str], sizes: Set[str]) -> None:
    """Check that each column of the read has one array; arrays for the sizes of padded rows are extra."""
    for name in names:
        if name not in out:
            advice = "add one, or exclude the column with columns="
            advice_cli = "add one, or exclude the column with --columns"
            raise SchemaError("out= has no array for it", feature=name, hint=advice, hint_cli=advice_cli)
    for name in out:
        if name not in names and name not in sizes:
            raise SchemaError("out= has an array for it, but it is not among the columns read", feature=name)


def _fill(
    representation: TableRepresentation,
    batch: pa.RecordBatch,
    out: Mapping[str, Any],
    padded: Mapping[str, ColumnLayout],
    begin: int,
    passes: Callable[[RowFault], bool],
) -> tuple[int, RowFault | None]:
    """Fill the arrays from row `begin` on; returns the number of rows, and the fault of the row that ends them."""
    done = 0

    def make(first: int, end: int) -> int:
        for column in representation.represent([batch.slice(first, end - first)]):
            if isinstance(column.rows, Ragged) and (layout := padded.get(column.name)) is not None:
                _fill_padded(column.name, column.rows, out=out, layout=layout, begin=begin + done)
            else:
                _fill_rows(column, out[column.name], begin + done)
        return end - first

    for _, _, part in RowFaultPolicy.fitting_parts(len(batch), make, passes):
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
        shape, shapes = target.shape[1:], _shapes_that_fit(column.name, rows, target)
        bad = (shapes != shape[: shapes.shape[1]]).any(axis=1)
        if bad.any():
            row = int(bad.argmax())
            got = tuple(shapes[row].tolist())
            reason = f"its shape is {got}, but the array of out= has {shape}"
            raise RowFault(row, reason, feature=column.name, expected=shape, got=got, error=SchemaError)
        rows = Dense(rows.stack(tuple(shapes.shape[1] and shape[: shapes.shape[1]])))
    if rows.values.dtype != target.dtype or rows.values.shape[1:] != target.shape[1:]:
        sizes = "".join(f", {size}" for size in rows.values.shape[1:])
        raise _mismatch(column.name, f"[rows{sizes}]", rows.values.dtype, target)
    target[begin : begin + count] = rows.values


def _shapes_that_fit(name: str, rows: Ragged, target: Array) -> Array:
    """The shape of each row; SchemaError for an array with fewer axes, RowFault for a missing row."""
    shapes = rows.extents
    if target.ndim <= shapes.shape[1]:
        raise _mismatch(name, f"[rows, {', '.join('?' * shapes.shape[1])}]", rows.values.dtype, target)
    if rows.valid is not None:
        reason = "it has no value, and an array of out= cannot mark missing values"
        raise RowFault(int(rows.valid.argmin()), reason, feature=name, error=SchemaError)
    return shapes


def _fill_padded(name: str, rows: Ragged, out: Mapping[str, Any], layout: ColumnLayout, begin: int) -> None:
    """Fill an array with rows padded to its shape, and the arrays of their sizes, if there are any."""
    target, shapes = out[name], _shapes_that_fit(name, rows, out[name])
    room = target.shape[1 : shapes.shape[1] + 1]
    if (longer := (shapes > room).any(axis=1)).any():
        row = int(longer.argmax())
        got = tuple(shapes[row].tolist())
        reason = f"its shape is {got}, but the array of out= has room for {room}"
        raise RowFault(row, reason, feature=name, expected=room, got=got, error=SchemaError)
    fill = cast_pad_value(layout.pad_value, rows.values.dtype, name)
    values = rows.pad(0, len(rows), fill)
    inner = shapes.shape[1] + 1
    if (values.dtype, values.shape[inner:]) != (target.dtype, target.shape[inner:]):
        axes = [*("?" * len(room)), *map(str, values.shape[inner:])]
        raise _mismatch(name, f"[rows, {', '.join(axes)}]", values.dtype, target)
    target = target[begin : begin + len(rows)]
    target[...] = fill
    target[(slice(None), *map(slice, values.shape[1:inner]))] = values
    numbers = {LENGTH: rows.lengths} if rows.shapes is None else {}
    if (padded := rows.pad_shapes(0, len(rows), room[0])) is not None:
        numbers[SHAPE] = padded
    for size in (LENGTH, SHAPE):
        array, number = out.get(f"{name}/{size}"), numbers.get(size)
        if array is None:
            continue
        if number is None:
            raise SchemaError(f"the sizes of its rows are in '{name}/{next(iter(numbers))}'", feature=f"{name}/{size}")
        if array.dtype != number.dtype or array.shape[1:] != number.shape[1:]:
            axes = [f", {axis}" for axis in number.shape[1:]]
            raise _mismatch(f"{name}/{size}", f"[rows{''.join(axes)}]", number.dtype, array)
        array[begin : begin + len(rows)] = number


def _mismatch(name: str, shape: str, dtype: Any, target: Array) -> SchemaError:
    expected = f"{dtype} {shape}"
    got = f"{target.dtype} {list(target.shape)}"
    reason = f"the array of out= is {got}, but the column is {expected}"
    advice = "pass such an array, or a schema with another type"
    return SchemaError(reason, feature=name, expected=expected, got=got, hint=advice)
