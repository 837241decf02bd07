"""Columns of TFRecord files as NumPy's files, row by row: the way back."""

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
from tfrecord_io.file_formats.npy import header
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.reader import Reader
from tfrecord_io.storage.write.atomic import open_output
from tfrecord_io.storage.write.output_stream import OutputStream
from tfrecord_io.write.frame_sink import FrameSink
from tfrecord_io.write.writer import WriteReport

_MISSING = 'read it with read_arrays(missing="mask"), or leave the column out by columns='
_AS_RAW = 'column_encoding={"%s": "raw"}'
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
        The file appears whole, or not at all; compressed where its name says so (``x.npy.gz``, ``.zlib``, ``.zst``).
    column : str, optional
        Which one; needed where there are several.
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
        Rows have different shapes or are missing (dates and times are NaT then), or the values are bytes, which no ``.npy``
        holds without pickles.
    FeatureNotFoundError
        There is no such column, or there are several and `column` is not given.

    Examples
    --------
    >>> import numpy as np, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": np.eye(3, dtype=np.float32)}, "eye.tfrecord")
    >>> tfr.to_npy("eye.tfrecord", "eye.npy").records
    3
    >>> np.load("eye.npy").shape
    (3, 3)
    """
    names = _columns(source, keywords)
    if column is None and len(names) != 1:
        advice = (
            f"say which: {', '.join(names)}"
            if names
            else "the files have no column: they hold no records, and no schema says more"
        )
        raise FeatureNotFoundError("a .npy file holds one array", expected="column=", got=names, advice=advice)
    chosen = names[0] if column is None else column
    options, filesystem = keywords.get("storage_options"), keywords.get("filesystem")
    sink = FrameSink(target, overwrite=overwrite, storage_options=options, filesystem=filesystem)
    try:
        rows = _write_array(sink, source, chosen, keywords)
    except BaseException:
        sink.discard()
        raise
    sink.commit()
    return WriteReport(os.fspath(target), rows, sink.bytes, sink.compression, (chosen,), {})


def to_npz(
    source: Any, target: Any, *, compressed: bool = False, overwrite: bool | None = None, **keywords: Any
) -> WriteReport:
    """Write the columns of TFRecord files as an ``.npz`` archive, an array each; the files are read once for each column.

    Parameters
    ----------
    source, target, overwrite, **keywords
        As of `to_npy`.
    compressed : bool
        Deflate the arrays, as ``numpy.savez_compressed``.

    Returns
    -------
    WriteReport

    Raises
    ------
    EncodeError
        As of `to_npy`.

    Examples
    --------
    >>> import numpy as np, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": np.eye(3), "y": np.arange(3)}, "pair.tfrecord", float64="raw")
    >>> tfr.to_npz("pair.tfrecord", "pair.npz").columns
    ('x', 'y')
    >>> sorted(np.load("pair.npz"))
    ['x', 'y']
    """
    names = _columns(source, keywords)
    fsspec = {"storage_options": keywords.get("storage_options"), "filesystem": keywords.get("filesystem")}
    rows = 0
    with open_output(target, overwrite=overwrite, **fsspec) as output:
        method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        with zipfile.ZipFile(OutputStream(output), "w", method) as archive:
            for name in names:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    rows = _write_array(member, source, name, keywords)
        return WriteReport(os.fspath(target), rows, output.offset, None, tuple(names), {})


def _columns(source: Any, keywords: Mapping[str, Any]) -> list[str]:
    if any(
        hasattr(each, "read")
        for each in ([source] if isinstance(source, str) or not isinstance(source, Sequence) else source)
    ):
        raise TypeError("the files are read several times: pass a path, not a file object")
    with Reader(source, ReadOptions.of(keywords)) as reader:
        return [field.name for field in leaf_fields(reader.schema)]


def _write_array(file: Any, source: Any, column: str, keywords: Mapping[str, Any]) -> int:
    """Header and values. Their number stands in front of them, so the files are read twice: memory holds a batch."""
    dtype, shape, rows = np.dtype(np.float32), (), 0
    for block in _blocks(source, column, keywords):
        if not rows:
            dtype, shape = block.dtype, block.shape[1:]
        elif len(block) and block.shape[1:] != shape:
            reason = f"the rows from here on have the shape {block.shape[1:]}, and those before {shape}"
            raise EncodeError(reason, feature=column, record=rows, expected=shape, got=block.shape[1:], advice=_RAGGED)
        dtype = np.promote_types(dtype, block.dtype)  # of texts the widest
        rows += len(block)
    file.write(header(dtype, (rows, *shape)))
    written = 0
    for block in _blocks(source, column, keywords):
        written += len(block)
        file.write(
            np.ascontiguousarray(block, dtype).reshape(-1).view(np.uint8).data if block.size and dtype.itemsize else b""
        )
    if written != rows:
        reason = f"the files had {rows} rows, and {written} when they were read again"
        raise EncodeError(
            reason, feature=column, expected=rows, got=written, advice="try again when nobody writes to them"
        )
    return rows


def _blocks(source: Any, column: str, keywords: Mapping[str, Any]) -> Iterator[Array]:
    """The column of each batch, and at the end of no batch an empty array of its dtype."""
    options = ReadOptions.of({"batch_bytes": BLOCK_BYTES, **keywords, "columns": [column]})
    with Reader(source, options) as reader:
        fields = leaf_fields(reader.schema)
        at = [field.name for field in fields].index(column)
        row = 0
        for batch in chain(reader, [_empty(reader.schema)]):
            if len(batch) or not row:
                array = leaf_arrays(batch)[at]
                if array.null_count and not _has_nat(array.type):
                    where = row + array.is_null().index(True).as_py()
                    reason = "it has no value, and a .npy file has no place for that"
                    raise EncodeError(reason, feature=column, record=where, advice=_MISSING)
                if (missing := missing_step(array, fields[at])) is not None:
                    reason = "one of its steps has no value, and a .npy file has no place for that"
                    raise EncodeError(
                        reason, feature=column, record=row + missing, advice="leave the column out by columns="
                    )
                stacked = _stacked(to_rows(array, fields[at]), column, row)
                if array.null_count:
                    stacked[np.asarray(array.is_null())] = "NaT"
                yield stacked
            row += len(batch)


def _has_nat(type_: pa.DataType) -> bool:
    """Whether NumPy has a value for what is missing."""
    dtype = None if pa.types.is_nested(type_) or isinstance(type_, pa.BaseExtensionType) else numpy_dtype(type_)
    return dtype is not None and dtype.kind in "mM"


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _stacked(rows: Rows, column: str, first: int) -> Array:
    """One array of rows of which none is missing.

    Raises
    ------
    EncodeError
        They have several shapes, or are bytes.
    """
    if isinstance(rows, Ragged):
        shape = rows.common_shape()
        if shape is None and len(rows):
            raise EncodeError(
                f"from row {first} on are rows of several shapes", feature=column, record=first, advice=_RAGGED
            )
        return rows.stacked(shape) if shape is not None else np.empty((0, 0), rows.values.dtype)
    if rows.values.dtype == object:
        reason = "bytes are objects in NumPy, which a .npy file holds as pickles"
        advice = f"leave the column out by columns=; NumPy's bytes of one width, such as S3, come back if written with {_AS_RAW % column}"
        raise EncodeError(reason, feature=column, advice=advice)
    if rows.values.dtype.kind == "T":
        return rows.values.astype(f"U{max(1, int(np.strings.str_len(rows.values).max(initial=1)))}")
    return rows.values
