"""Columns of TFRecord files as NumPy's files, row by row: the way back."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tfrecord_io.array_iterator import iter_arrays
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError, FeatureNotFoundError
from tfrecord_io.numpy_files.array_file import BLOCK_BYTES
from tfrecord_io.numpy_files.npy import header
from tfrecord_io.storage.commit import open_output
from tfrecord_io.storage.output_stream import OutputStream
from tfrecord_io.writer import WriteReport

_MOST_ROWS = 4096


def to_npy(source: Any, target: Any, column: str | None = None, *, overwrite: bool | None = None, **keywords: Any) -> WriteReport:
    """Write one column of TFRecord files as a ``.npy`` file, row by row.

    Parameters
    ----------
    source
        TFRecord files, as in `tfrecord_io.read_table`.
    target : str or PathLike
        The file appears whole, or not at all.
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
        Rows have different shapes or are missing, or the values are bytes, which no ``.npy`` holds without pickles.
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
    names = _names(source, keywords)
    if column is None and len(names) != 1:
        raise FeatureNotFoundError("a .npy file holds one array", expected="column=", got=names, advice=f"say which column: {', '.join(names)}")
    chosen = names[0] if column is None else column
    fsspec = {"storage_options": keywords.get("storage_options"), "filesystem": keywords.get("filesystem")}
    with open_output(target, overwrite=overwrite, **fsspec) as output:
        rows = _write_array(output, source, chosen, keywords)
        return WriteReport(os.fspath(target), rows, output.offset, None, (chosen,), {})


def to_npz(source: Any, target: Any, *, compressed: bool = False, overwrite: bool | None = None, **keywords: Any) -> WriteReport:
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
    names = _names(source, keywords)
    fsspec = {"storage_options": keywords.get("storage_options"), "filesystem": keywords.get("filesystem")}
    rows = 0
    with open_output(target, overwrite=overwrite, **fsspec) as output:
        method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        with zipfile.ZipFile(OutputStream(output), "w", method) as archive:
            for name in names:
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    rows = _write_array(member, source, name, keywords)
        return WriteReport(os.fspath(target), rows, output.offset, None, tuple(names), {})


def _names(source: Any, keywords: Mapping[str, Any]) -> list[str]:
    with iter_arrays(source, batch_size=1, **{**keywords, "limit": 0}) as batches:
        return list(batches.schema.names)


def _write_array(file: Any, source: Any, column: str, keywords: Mapping[str, Any]) -> int:
    """Header and values; the number of rows stands in front of them, so the files are gone through twice."""
    dtype, shape, rows = None, None, 0
    for block in _blocks(source, column, keywords):
        if dtype is None:
            dtype, shape = block.dtype, block.shape[1:]
        elif block.shape[1:] != shape:
            raise EncodeError(
                f"from row {rows} on its shape is {block.shape[1:]}, and before {shape}", feature=column, record=rows, expected=shape, got=block.shape[1:]
            )
        dtype = np.promote_types(dtype, block.dtype)  # texts of several widths
        rows += len(block)
    file.write(header(dtype, (rows, *shape)))
    written = 0
    for block in _blocks(source, column, keywords):
        file.write(memoryview(np.ascontiguousarray(block, dtype).reshape(-1).view(np.uint8)))
        written += len(block)
    if written != rows:
        raise EncodeError(f"the files had {rows} rows, and {written} when they were read again", feature=column, expected=rows, got=written)
    return rows


def _blocks(source: Any, column: str, keywords: Mapping[str, Any]) -> Iterator[Array]:
    ...
