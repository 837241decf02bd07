"""A folder of files, each of which is one object: one row a file, whose arrays keep their whole shape."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.input.batch_source import open_input
from tfrecord_io.arrow.tensor_builder import element_of_dtype, from_items
from tfrecord_io.arrow.tensor_values import TensorValues
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import EncodeError
from tfrecord_io.file_formats.array_file import BLOCK_BYTES, ArrayFile
from tfrecord_io.file_formats.array_stream import ArrayStream
from tfrecord_io.format.dtypes import Element
from tfrecord_io.schema.tensor_types import tensor_field
from tfrecord_io.storage.read.source import Source

OpenObject = Callable[[Source], AbstractContextManager[dict[str, ArrayFile]]]

_MOST_ROWS = 4096


@dataclass(frozen=True, slots=True)
class _Column:
    """What the arrays of one name have in common, over all files."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | None, ...]  # None: it varies
    first: str  # the file that said so

    @property
    def is_tensor(self) -> bool:
        """Rank 0 and 1 have a plain form, unless Arrow has no such values."""
        return len(self.shape) > 1 or self.dtype.kind in "cV"

    @property
    def element(self) -> Element:
        return element_of_dtype(self.dtype)

    def field(self) -> pa.Field:
        if self.is_tensor:
            free = None in self.shape
            return tensor_field(self.name, self.element, (None,) * len(self.shape) if free else self.shape)
        plain = open_input({self.name: np.empty(0, self.dtype)}).schema.field(0)
        return plain if not self.shape else plain.with_type(pa.list_(plain.type))

    def join(self, array: ArrayFile) -> _Column:
        """With one more file."""
        if len(array.shape) != len(self.shape):
            raise self._differs(array, f"{len(array.shape)} dimensions", f"{len(self.shape)}", "number of dimensions")
        dtype = self.dtype
        if array.dtype.newbyteorder("=") != dtype.newbyteorder("="):
            if array.dtype.kind not in "SU" or array.dtype.kind != dtype.kind:
                raise self._differs(array, f"dtype {array.dtype}", str(dtype), "dtype")
            dtype = max(array.dtype, dtype, key=lambda each: each.itemsize)
        shape = tuple(a if a == b else None for a, b in zip(self.shape, array.shape, strict=True))
        return replace(self, dtype=dtype, shape=shape)

    def _differs(self, array: ArrayFile, got: str, expected: str, what: str) -> EncodeError:
        return EncodeError(
            f"its array has {got}, where that of '{self.first}' has {expected}",
            path=array.path,
            feature=self.name,
            expected=expected,
            got=got,
            advice=f"give all files one {what}",
        )

    def array(self, values: list[Array]) -> pa.Array:
        """The column of these arrays, one a row."""
        if not self.is_tensor:
            if not self.shape:
                return _plain(np.array([each[()] for each in values], self.dtype))
            return pa.ListArray.from_arrays(
                np.cumsum([0, *map(len, values)], dtype=np.int32), _plain(np.concatenate(values))
            )
        of = self.element
        data = [np.ascontiguousarray(each.astype(of.dtype, copy=False)).reshape(-1).view(np.uint8) for each in values]
        offsets = np.cumsum([0, *map(len, data)])
        shapes = np.array([each.shape for each in values], np.int64).reshape(len(values), len(self.shape))
        items = TensorValues(of, np.concatenate(data), offsets, shapes if None in self.shape else self.shape)  # type: ignore[arg-type]
        return from_items(items, len(values))


def _plain(values: Array) -> pa.Array:
    """Single values as Arrow holds them."""
    return pa.concat_arrays([batch.column(0) for batch in open_input({"": values})] or [pa.array(values)])


def stream_of_objects(sources: list[Source], open_object: OpenObject) -> ArrayStream:
    """One row for each file.

    The headers of all files are read first: they say whether shapes vary, and what contradicts is told before anything is written.

    Raises
    ------
    EncodeError
        A file has other arrays than the first, or of another dtype or rank, or a larger one than any record.
    """
    columns = _common(sources, open_object)
    schema = pa.schema([column.field() for column in columns.values()])

    def batch(rows: dict[str, list[Array]]) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([columns[name].array(values) for name, values in rows.items()], schema=schema)

    def batches() -> Generator[pa.RecordBatch]:
        rows: dict[str, list[Array]] = {name: [] for name in columns}
        count = size = 0
        for source in sources:
            with open_object(source) as arrays:
                for name in columns:
                    rows[name].append(arrays[name].whole())
            count += 1
            size += sum(values[-1].nbytes for values in rows.values())
            if count == _MOST_ROWS or size >= BLOCK_BYTES:
                yield batch(rows)
                rows, count, size = {name: [] for name in columns}, 0, 0
        if count:
            yield batch(rows)

    rows = batches()
    return ArrayStream(schema, rows, len(sources), rows.close, num_files=len(sources))


def _common(sources: list[Source], open_object: OpenObject) -> dict[str, _Column]:
    columns: dict[str, _Column] = {}
    for source in sources:
        with open_object(source) as arrays:
            for each in arrays.values():
                each.check_record(each.size)
            if not columns:
                columns = {name: _Column(name, array.dtype, array.shape, source.path) for name, array in arrays.items()}
                continue
            if odd := sorted(columns.keys() ^ arrays.keys()):
                here = "has no" if odd[0] in columns else "has an"
                reason = f"the file {here} array of this name, unlike '{sources[0].path}'"
                raise EncodeError(reason, path=source.path, feature=odd[0], advice="give all files the same arrays")
            columns = {name: column.join(arrays[name]) for name, column in columns.items()}
    return columns
