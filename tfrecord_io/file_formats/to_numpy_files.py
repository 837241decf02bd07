"""Write columns of TFRecord files as ``.npy`` and ``.npz`` files, row by row."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.output.ragged import Ragged
from tfrecord_io.arrow.output.to_numpy import Rows, leaf_arrays, leaf_fields, missing_step, numpy_dtype, to_rows
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError, FeatureNotFoundError
from tfrecord_io.file_formats.array_file import BLOCK_BYTES
from tfrecord_io.format.npy_header import header
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.storage.write.atomic import open_output
from tfrecord_io.storage.write.output_file import OutputStream
from tfrecord_io.write.frame_sink import FrameSink
from tfrecord_io.write.writer import WriteReport

_MISSING = 'read it with read_arrays(missing="mask"), or exclude the column with columns='
_RAGGED = "a .npy file holds rows of one shape: read it with read_arrays(ragged=)"


def to_npy(
    source: Any, target: Any, column: str | None = None, *, overwrite: bool | None = None, **keywords: Any
) -> WriteReport:
    """Write one column of TFRecord files as a ``.npy`` file, row by row.

    Parameters
    ----------
    source
        TFRecord files, as in `tfrecord_io.read_table`.
    target : str or PathLike
        Written atomically; compressed according to its suffix (``x.npy.gz``, ``.zlib``, ``.zst``).
    column : str, optional
        The column to write; required if there are several.
    overwrite : bool, optional
        False: an existing file is an error.
    **keywords
        Those of `tfrecord_io.open_reader`.

    Returns
    -------
    WriteReport

    Raises
    ------
    EncodeError
        Rows differ in shape or are missing (missing dates and times are written as NaT), or the values are bytes, which
        a ``.npy`` file can only store as pickles.
    FeatureNotFoundError
        The column does not exist, or there are several and `column` is not given.

    Examples
    --------
    >>> import numpy as np, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": np.eye(3, dtype=np.float32)}, "eye.tfrecord")
    >>> tfr.to_npy("eye.tfrecord", "eye.npy").records
    3
    >>> np.load("eye.npy").shape
    (3, 3)
    """
    scan = _scan(source, keywords)
    names = [field.name for field in leaf_fields(scan.schema)]
    if column is None and len(names) != 1:
        without = "the files have no column: they hold no records and no schema"
        advice = f"pass one of: {', '.join(names)}" if names else without
        raise FeatureNotFoundError("a .npy file holds one array", expected="column=", got=names, advice=advice)
    column = names[0] if column is None else column
    sink = FrameSink(target, scan.options.storage, overwrite=overwrite)
    try:
        rows = _write_array(sink, scan, column)
    except BaseException:
        sink.discard()
        raise
    sink.commit()
    return WriteReport(os.fspath(target), rows, sink.bytes, sink.compression, (column,), {})


def to_npz(
    source: Any, target: Any, *, compressed: bool = False, overwrite: bool | None = None, **keywords: Any
) -> WriteReport:
    """Write the columns of TFRecord files as the arrays of an ``.npz`` archive; the files are read for each column.

    Parameters
    ----------
    source, target, overwrite, **keywords
        As in `to_npy`.
    compressed : bool
        Deflate the arrays, as ``numpy.savez_compressed`` does.

    Returns
    -------
    WriteReport

    Raises
    ------
    EncodeError
        As in `to_npy`.

    Examples
    --------
    >>> import numpy as np, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": np.eye(3), "y": np.arange(3)}, "pair.tfrecord", float64="raw")
    >>> tfr.to_npz("pair.tfrecord", "pair.npz").columns
    ('x', 'y')
    >>> sorted(np.load("pair.npz"))
    ['x', 'y']
    """
    scan = _scan(source, keywords)
    names = [field.name for field in leaf_fields(scan.schema)]
    rows = 0
    with open_output(target, scan.options.storage, overwrite=overwrite) as output:
        method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        with zipfile.ZipFile(OutputStream(output), "w", method) as archive:
            for name in names:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    rows = _write_array(member, scan, name)
        return WriteReport(os.fspath(target), rows, output.offset, None, tuple(names), {})


def _scan(source: Any, keywords: Mapping[str, Any]) -> Scan:
    """Plan a read that is opened several times."""
    paths = [source] if isinstance(source, str) or not isinstance(source, Sequence) else source
    if any(hasattr(path, "read") for path in paths):
        raise TypeError("the files are read several times: pass a path, not a file object")
    return plan_scan(source, ReadOptions.of({"batch_bytes": BLOCK_BYTES, **keywords})).close()


def _write_array(file: Any, scan: Scan, column: str) -> int:
    """Write header and values. The header has the number of rows, so the files are read twice: memory holds a batch."""
    dtype, shape, rows = np.dtype(np.float32), (), 0
    for block in _blocks(scan, column):
        if not rows:
            dtype, shape = block.dtype, block.shape[1:]
        elif len(block) and block.shape[1:] != shape:
            reason = f"from here on, the rows have the shape {block.shape[1:]}; the rows before have {shape}"
            raise EncodeError(reason, feature=column, record=rows, expected=shape, got=block.shape[1:], advice=_RAGGED)
        dtype = np.promote_types(dtype, block.dtype)  # the widest dtype of text
        rows += len(block)
    file.write(header(dtype, (rows, *shape)))
    written = 0
    for block in _blocks(scan, column):
        written += len(block)
        if block.size and dtype.itemsize:
            file.write(np.ascontiguousarray(block, dtype).reshape(-1).view(np.uint8).data)
    if written != rows:
        reason = f"the files had {rows} rows, but {written} when they were read again"
        advice = "try again when no program writes to them"
        raise EncodeError(reason, feature=column, expected=rows, got=written, advice=advice)
    return rows


def _blocks(scan: Scan, column: str) -> Iterator[Array]:
    """The column of each batch; if there is no batch, an empty array of its dtype."""
    outer = (field.name for field in scan.schema if column in (leaf.name for leaf in leaf_fields(pa.schema([field]))))
    with scan.over(columns=(next(outer, column),)).open() as reader:
        fields = leaf_fields(reader.schema)
        i = [field.name for field in fields].index(column)
        row = 0
        empty = pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in reader.schema], schema=reader.schema)
        for batch in chain(reader, [empty]):
            if len(batch) or not row:
                array = leaf_arrays(batch)[i]
                if array.null_count and not _has_nat(array.type):
                    record = row + array.is_null().index(True).as_py()
                    reason = "it has no value, which a .npy file cannot represent"
                    raise EncodeError(reason, feature=column, record=record, advice=_MISSING)
                if (missing := missing_step(array, fields[i])) is not None:
                    reason = "one of its steps has no value, which a .npy file cannot represent"
                    advice = "exclude the column with columns="
                    raise EncodeError(reason, feature=column, record=row + missing, advice=advice)
                stacked = _stacked(to_rows(array, fields[i]), column, row)
                if array.null_count:
                    stacked[np.asarray(array.is_null())] = "NaT"
                yield stacked
            row += len(batch)


def _has_nat(type_: pa.DataType) -> bool:
    """Whether NumPy represents missing values of this type as NaT."""
    dtype = None if pa.types.is_nested(type_) or isinstance(type_, pa.BaseExtensionType) else numpy_dtype(type_)
    return dtype is not None and dtype.kind in "mM"


def _stacked(rows: Rows, column: str, first: int) -> Array:
    """One array of rows without missing ones; EncodeError if they differ in shape, or are bytes."""
    if isinstance(rows, Ragged):
        shape = rows.common_shape()
        if shape is None and len(rows):
            reason = f"from row {first} on, the rows have several shapes"
            raise EncodeError(reason, feature=column, record=first, advice=_RAGGED)
        return rows.stacked(shape) if shape is not None else np.empty((0, 0), rows.values.dtype)
    if rows.values.dtype == object:
        reason = "bytes are objects in NumPy, which a .npy file stores as pickles"
        advice = "exclude the column with columns=; NumPy's bytes of fixed width, such as S3, are restored if written "
        raise EncodeError(reason, feature=column, advice=f'{advice}with column_encoding={{"{column}": "raw"}}')
    if rows.values.dtype.kind == "T":
        return rows.values.astype(f"U{max(1, int(np.strings.str_len(rows.values).max(initial=1)))}")
    return rows.values
