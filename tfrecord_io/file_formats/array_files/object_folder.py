"""A folder of files with one object each: one row per file, in which each array keeps its whole shape."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.input.batch_source import open_input
from tfrecord_io.arrow.tensor_builder import element_of_dtype, tensor_array
from tfrecord_io.arrow.tensor_values import TensorValues
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.file_formats.array_files.array_file import BLOCK_BYTES, ArrayFile
from tfrecord_io.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.format.dtypes import Element
from tfrecord_io.schema.tensor_types import tensor_field
from tfrecord_io.storage.read.source import Source

OpenObject = Callable[[Source], AbstractContextManager[dict[str, ArrayFile]]]

_MAX_ROWS = 4096


@dataclass(frozen=True, slots=True)
class _Column:
    """The common dtype and shape of the arrays with one name, over all files."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]  # None: it varies
    first_path: str

    @property
    def is_tensor(self) -> bool:
        """Whether the column holds tensors: rank 0 and 1 are plain, unless Arrow lacks the type of the values."""
        return len(self.shape) > 1 or self.dtype.kind in "cV"

    @property
    def element(self) -> Element:
        return element_of_dtype(self.dtype)

    def field(self) -> pa.Field:
        if self.is_tensor:
            shape = (None,) * len(self.shape) if None in self.shape else self.shape
            return tensor_field(self.name, self.element, shape)
        plain = open_input({self.name: np.empty(0, self.dtype)}).schema.field(0)
        return plain if not self.shape else plain.with_type(pa.list_(plain.type))

    def merge(self, array: ArrayFile) -> _Column:
        """The column with the array of one more file."""
        if len(array.shape) != len(self.shape):
            raise self._conflict(array, f"{len(array.shape)} dimensions", f"{len(self.shape)}", "number of dimensions")
        dtype = self.dtype
        if array.dtype.newbyteorder("=") != dtype.newbyteorder("="):
            if array.dtype.kind not in "SU" or array.dtype.kind != dtype.kind:
                raise self._conflict(array, f"dtype {array.dtype}", str(dtype), "dtype")
            dtype = max(array.dtype, dtype, key=lambda dtype: dtype.itemsize)
        shape = tuple(a if a == b else None for a, b in zip(self.shape, array.shape, strict=True))
        return replace(self, dtype=dtype, shape=shape)

    def _conflict(self, array: ArrayFile, got: str, expected: str, what: str) -> EncodeError:
        reason = f"its array has {got}, but that of '{self.first_path}' has {expected}"
        advice = f"use the same {what} in all files"
        return EncodeError(reason, path=array.path, feature=self.name, expected=expected, got=got, advice=advice)

    def array(self, values: list[Array]) -> pa.Array:
        """The column with these arrays as rows."""
        if not self.shape and not self.is_tensor:
            return _plain(np.array([value[()] for value in values], self.dtype))
        if not self.is_tensor:
            offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
            return pa.ListArray.from_arrays(offsets, _plain(np.concatenate(values)))
        element = self.element
        data = [np.ascontiguousarray(v.astype(element.dtype, copy=False)).reshape(-1).view(np.uint8) for v in values]
        offsets = np.cumsum([0, *map(len, data)])
        shapes: Any = self.shape
        if None in self.shape:
            shapes = np.array([value.shape for value in values], np.int64).reshape(len(values), len(self.shape))
        return tensor_array(TensorValues(element, np.concatenate(data), offsets, shapes), len(values))


def _plain(values: Array) -> pa.Array:
    """Single values as an Arrow array."""
    return pa.concat_arrays([batch.column(0) for batch in open_input({"": values})] or [pa.array(values)])


def stream_of_objects(sources: list[Source], open_object: OpenObject) -> ArrayStream:
    """A stream with one row for each file.

    The headers of all files are read first: they show whether shapes vary, and conflicts of names, dtypes and ranks are
    raised before anything is written.
    """
    columns = _common_columns(sources, open_object)
    schema = pa.schema([column.field() for column in columns.values()])

    def batch(rows: dict[str, list[Array]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([columns[name].array(values) for name, values in rows.items()], schema=schema)

    def batches() -> Generator[pa.RecordBatch]:
        rows: dict[str, list[Array]] = {name: [] for name in columns}
        count = size = 0
        for source in sources:
            with open_object(source) as arrays:
                for name in columns:
                    rows[name].append(arrays[name].read())
            count += 1
            size += sum(values[-1].nbytes for values in rows.values())
            if count == _MAX_ROWS or size >= BLOCK_BYTES:
                yield batch(rows)
                rows, count, size = {name: [] for name in columns}, 0, 0
        if count:
            yield batch(rows)

    rows = batches()
    return ArrayStream(schema, rows, len(sources), rows.close, num_files=len(sources))


def _common_columns(sources: list[Source], open_object: OpenObject) -> dict[str, _Column]:
    columns: dict[str, _Column] = {}
    for source in sources:
        with open_object(source) as arrays:
            for array in arrays.values():
                array.check_record(array.size)
            if not columns:
                columns = {name: _Column(name, array.dtype, array.shape, source.path) for name, array in arrays.items()}
                continue
            if different := sorted(columns.keys() ^ arrays.keys()):
                name, advice = different[0], "use the same arrays in all files"
                article = "no" if name in columns else "an"
                reason = f"the file has {article} array of this name, unlike '{sources[0].path}'"
                raise EncodeError(reason, path=source.path, feature=name, advice=advice)
            columns = {name: column.merge(arrays[name]) for name, column in columns.items()}
    return columns
