"""Reading all records into one array per column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfrecord_io.arrays.array_budget import ArrayBudget
from tfrecord_io.arrays.out_arrays import fill_arrays
from tfrecord_io.arrays.representation import TableRepresentation, reader_options, representation_options, slice_columns
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import MIB, ArrayOptions, RepresentationOptions
from tfrecord_io.read.fitting_parts import fitting_parts
from tfrecord_io.read.on_error import end_read
from tfrecord_io.read.query import Query
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.resolve_schema import open_scan
from tfrecord_io.typing import InputPath

_JOINED_BYTES = MIB  # of a column, on average: copying it at once costs less than representing each of its chunks
_MANY_ROWS = 16_384  # the chunks of columns with fewer are joined at once before they are represented
_VALUE_BYTES = 8  # of a number, at most
_BATCH_BYTES = 1024 * MIB  # one thread makes one batch of a file of usual size, whose arrays are no copies


@document_keywords(ArrayOptions, streaming=False)
def read_arrays(path: InputPath, **keywords: Any) -> dict[str, npt.NDArray[Any]]:
    """Read TFRecord files of tf.train.Example into NumPy arrays, one per column, with a row for each record.

    Parameters
    ----------
    {path}
    {keywords}

    Returns
    -------
    dict of str to ndarray
        In the order of the columns. Numbers, bools and times (datetime64, timedelta64) have one axis; lists of equal
        length and tensors of equal shape are stacked to [rows, ...], lists of such tensors to [rows, steps, ...]; for
        others see `ragged`. Text has NumPy's
        StringDType, bytes are an object array of ``bytes`` (NumPy's ``S`` drops trailing NULs), both with None if
        missing. Categories are represented by their values. The fields of a struct are columns ``outer/inner``. Images
        that the schema declares by `tfrecord_io.image` are decoded: uint8, [rows, height, width, channels].

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        See `read_tfrecord`.
    FeatureNotFoundError
        A record has no value for a column of numbers, bools, times or tensors; see `missing`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"label": [1, 0], "box": [[1, 2, 3, 4], [5, 6, 7, 8]]}, "boxes.tfrecord")
    >>> arrays = tfr.read_arrays("boxes.tfrecord")
    >>> arrays["box"].shape, arrays["label"].dtype
    ((2, 4), dtype('int64'))
    >>> import numpy as np
    >>> box = np.zeros((2, 4), np.int64)
    >>> _ = tfr.read_arrays("boxes.tfrecord", out={"box": box})
    >>> box[1]
    array([5, 6, 7, 8])
    """
    options = ArrayOptions.of(keywords, read_arrays)
    if options.out is not None:
        return fill_arrays(path, options, options.out)
    plain = replace(reader_options(options), batch_bytes=_BATCH_BYTES)
    with open_scan(path, plain, whole=True) as reader:
        return arrays_of(reader, options)


def query_arrays(query: Query, **representation: Any) -> dict[str, npt.NDArray[Any]]:
    """All rows of a query; `representation` are `ragged`, `pad_value` and `missing`, see `read_arrays`."""
    scan = query.scan.over(batch_bytes=_BATCH_BYTES)
    options = representation_options(scan.options, **representation)
    with replace(query, scan=scan).open(whole=True, warns=True) as reader:
        return arrays_of(reader, options)


def arrays_of(reader: Reader, options: RepresentationOptions) -> dict[str, npt.NDArray[Any]]:
    """All rows of a reader that was opened for a whole read; see `read_arrays`."""
    reader.defer_warning()
    table = reader.read_all()
    representation = TableRepresentation(reader.schema, options, complete=True)
    joins = representation.joins_all and table.num_rows >= _MANY_ROWS
    if not joins and _is_small(table, reader.payload_bytes):
        table = table.combine_chunks()
    row_bytes = reader.payload_bytes / max(table.num_rows, 1)
    failure: RowFault | None = None
    while True:
        try:
            arrays = _arrays(representation, table, row_bytes, options.max_expansion)
            break
        except RowFault as fault:
            if reader.goes_on:
                failure, table = _fitting(reader, representation, table, row_bytes, options.max_expansion)
            else:
                failure, table = fault, table.slice(0, fault.row)
            if failure is not None and options.on_error != "stop":
                break
    if failure is not None:
        error = reader.row_error(failure)
        error.records_intact = table.num_rows
        end_read(error, options.on_error)
    reader.report.skipped.warn()
    return arrays


def _is_small(table: pa.Table, payload_bytes: int) -> bool:
    most = _JOINED_BYTES * table.num_columns
    at_most = (payload_bytes + table.num_rows * table.num_columns) * _VALUE_BYTES
    return at_most <= most or table.get_total_buffer_size() <= most  # to count those of many columns takes long


def _fitting(
    reader: Reader, representation: TableRepresentation, table: pa.Table, row_bytes: float, limit: int
) -> tuple[RowFault | None, pa.Table]:
    """The rows that arrays can hold, and the fault of one that may not be left out."""

    def make(begin: int, end: int) -> pa.Table | RowFault:
        part = table.slice(begin, end - begin)
        try:
            _arrays(representation, part, row_bytes, limit)
        except RowFault as fault:
            return fault
        return part

    kept = [table.slice(0, 0)]
    for _, _, part in fitting_parts(table.num_rows, make, reader.leave_out):
        if isinstance(part, RowFault):
            return part, pa.concat_tables(kept)
        kept.append(part)
    return None, pa.concat_tables(kept)


def _arrays(representation: TableRepresentation, table: pa.Table, row_bytes: float, limit: int) -> dict[str, Any]:
    batches = table.to_batches()
    if not batches:
        batches = [pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in table.schema], schema=table.schema)]
    budget = ArrayBudget(limit, np.broadcast_to(np.float64(row_bytes), table.num_rows))
    return slice_columns(representation.represent(batches, budget), 0, table.num_rows)
