"""Columns of NumPy arrays that become tensors batch by batch.

The type is decided over the whole column; values are converted, if needed, only for the rows of a batch. So an array in
a file (``np.memmap``) is never entirely in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.tensor_builder import cells_to_tensors, element_of_dtype, from_ndarray, shape_of_cells
from tfrecord_io.engine.contract import Array
from tfrecord_io.format.missing_values import unmasked_rows
from tfrecord_io.schema.tensor_types import tensor_field


class Tensors(Protocol):
    """A column of tensors that is not converted to Arrow yet."""

    nbytes: int

    def __len__(self) -> int: ...

    def field(self, name: str) -> pa.Field:
        """The column's field; its type is that of every slice."""
        ...

    def slice(self, begin: int, end: int) -> pa.Array:
        """Rows [begin, end)."""
        ...


class ArrayTensors:
    """The tensors of an array, whose first axis counts the rows. A row is null if all of its values are masked.

    A dtype that is not in the table of dtypes, or a row that is masked in part, is an EncodeError.
    """

    def __init__(self, values: Array, valid: Array | None = None) -> None:
        if isinstance(values, np.ma.MaskedArray):
            own = unmasked_rows(values)
            valid = own if valid is None else own & valid
        self._values: Array = np.asarray(values)
        self._valid = None if valid is None or valid.all() else valid
        self._element = element_of_dtype(self._values.dtype)
        self.nbytes = self._values.nbytes

    def __len__(self) -> int:
        return len(self._values)

    def field(self, name: str) -> pa.Field:
        return tensor_field(name, self._element, self._values.shape[1:])

    def slice(self, begin: int, end: int) -> pa.Array:
        valid = None if self._valid is None else self._valid[begin:end]
        return from_ndarray(self._values[begin:end], valid)[0]


class CellTensors:
    """The tensors of a sequence of arrays, which have one dtype and rank, or are None; errors as `shape_of_cells`."""

    def __init__(self, cells: Sequence[Any]) -> None:
        self._cells = [None if cell is None else np.asarray(cell) for cell in cells]
        self._element, self._shape = shape_of_cells(self._cells)
        self.nbytes = sum(cell.nbytes for cell in self._cells if cell is not None)

    def __len__(self) -> int:
        return len(self._cells)

    @property
    def rank(self) -> int:
        return len(self._shape)

    def field(self, name: str) -> pa.Field:
        return tensor_field(name, self._element, self._shape)

    def slice(self, begin: int, end: int) -> pa.Array:
        return cells_to_tensors(self._cells[begin:end], self._element, self._shape)

    def scalars(self) -> pa.Array:
        """The plain column of tensors without dimensions."""
        missing = np.array([cell is None for cell in self._cells], np.bool_)
        nothing = np.zeros((), self._element.dtype)
        values = np.array([nothing if cell is None else cell for cell in self._cells], self._element.dtype)
        return pa.array(values, mask=missing)


@dataclass(frozen=True, slots=True)
class Columns:
    """A table with columns that are not converted yet."""

    table: pa.Table  # a column that is in `tensors` has the null type here
    tensors: Mapping[int, Tensors]  # by the number of the column

    @property
    def schema(self) -> pa.Schema:
        schema = self.table.schema
        for at, tensors in self.tensors.items():
            schema = schema.set(at, tensors.field(schema.field(at).name))
        return schema

    def batches(self, most_bytes: int, begin: int = 0, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """Rows [begin, end), in batches whose tensors have about `most_bytes`."""
        rows, schema = self.table.num_rows, self.schema
        heavy = -(-sum(tensors.nbytes for tensors in self.tensors.values()) // most_bytes)
        part = self.table.slice(begin, None if end is None else end - begin)
        for batch in part.to_batches(max_chunksize=max(1, -(-rows // max(heavy, 1)))):
            columns, end = batch.columns, begin + batch.num_rows
            for at, tensors in self.tensors.items():
                columns[at] = tensors.slice(begin, end)
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            begin = end
