"""All records at once, as an array for each column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from tfrecord_io.arrays.out_arrays import fill
from tfrecord_io.arrays.representation import TableRepresentation, cut, plain_options
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.errors import StoppedEarlyWarning, warn
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import MIB, ArrayOptions
from tfrecord_io.read.reader import Reader

_BATCH_BYTES = 256 * MIB  # a file of usual size is one batch, and its tensors an array without a copy


@document_keywords(ArrayOptions, streaming=False)
def read_arrays(path: Any, **keywords: Any) -> dict[str, Any]:
    """Read TFRecord files of tf.train.Example into NumPy arrays, one for each column, with a row for each record.

    Parameters
    ----------
    {path}
    {keywords}

    Returns
    -------
    dict of str to ndarray
        In the order of the columns. Numbers, bools and times (datetime64, timedelta64) have one axis; lists of one length and
        tensors of one shape are stacked to [rows, ...]; for those of several see `ragged`. Text is of NumPy's StringDType,
        with None where it is missing. Bytes are an object array of ``bytes``, None where missing (NumPy's ``S`` drops trailing
        NULs). Categories are their values. The fields of a struct are columns ``outer/inner``. Images that
        the schema declares by `tfrecord_io.image` are decoded: uint8, [rows, height, width, channels].

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As `read_tfrecord`.
    FeatureNotFoundError
        A record has no value for a column of numbers, bools, times or tensors; see `missing`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"label": [1, 0], "box": [[1, 2, 3, 4], [5, 6, 7, 8]], "name": ["cat", "dog"]}, "boxes.tfrecord")
    >>> arrays = tfr.read_arrays("boxes.tfrecord")
    >>> arrays["box"].shape, arrays["label"].dtype
    ((2, 4), dtype('int64'))
    >>> import numpy as np
    >>> box = np.zeros((2, 4), np.int64)
    >>> _ = tfr.read_arrays("boxes.tfrecord", out={"box": box})
    >>> box[1]
    array([5, 6, 7, 8])
    """
    options = ArrayOptions.of(keywords)
    if options.out is not None:
        return fill(path, options, options.out)
    plain = plain_options(options)
    if options.filters is None:
        plain = replace(plain, batch_bytes=_BATCH_BYTES)
    with Reader(path, plain, whole=True) as reader:
        table = reader.read_all()
        forms = TableRepresentation(reader.schema, options, whole=True)
        try:
            return _arrays(forms, table)
        except RowFault as fault:
            error = fault.to_error(*reader.origins.of(fault.row))
            error.records_intact = fault.row
            if options.on_error == "raise":
                raise error from fault.__cause__
            warn(f"reading stopped early: {error}", StoppedEarlyWarning)
            return _arrays(forms, table.slice(0, fault.row))


def _arrays(forms: TableRepresentation, table: pa.Table) -> dict[str, Any]:
    nothing = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in table.schema], schema=table.schema)
    return cut(forms.settle(table.to_batches() or [nothing]), 0, table.num_rows)
