"""`Column`: what other libraries ask about a column or a type.

Tests: tests/test_kit.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from tfrecord_io.bytes import Dtype
from tfrecord_io.columns import Column as RoomColumn


class Column:
    """A column, or the type of one.

    >>> column = Column(pa.field("x", pa.list_(pa.string())))
    >>> column.is_list, column.is_text, column.type_name
    (True, False, 'list<string>')
    """

    __slots__ = ("_column",)

    def __init__(self, column: pa.Field | pa.DataType) -> None:
        self._column = RoomColumn(pa.field("", column) if isinstance(column, pa.DataType) else column)

    # ---- its values

    @property
    def is_list(self) -> bool:
        """True for lists of any layout; a map is not one."""
        return self._column.is_list

    @property
    def is_text(self) -> bool:
        """True for text, with offsets of 32 or 64 bits."""
        return self._column.is_text

    @property
    def is_bytes(self) -> bool:
        """True for bytes of any number, with offsets of 32 or 64 bits."""
        return self._column.is_bytes

    @property
    def is_tensor(self) -> bool:
        """True for tensors, of one shape or of shapes that vary."""
        return self._column.is_tensor

    @property
    def is_variable_tensor(self) -> bool:
        """True for tensors of shapes that vary."""
        return self._column.is_variable_shape_tensor

    @property
    def axes(self) -> tuple[int | None, ...]:
        """Tensors: the sizes of the axes in Arrow, None where they vary."""
        return self._column.axes

    @property
    def dtype_and_shape(self) -> tuple[Dtype, tuple[int | None, ...]]:
        """Of tensors: their dtype and shape in NumPy, where complex numbers have no axis of their own."""
        return self._column.dtype_and_shape

    @property
    def tensor_axes(self) -> tuple[int | None, ...]:
        """The sizes of the axes of tensors, or of lists of tensors, in NumPy's order; None where an axis varies."""
        return self._column.tensor_axes

    @property
    def list_shape(self) -> tuple[int | None, ...] | None:
        """The shape that a schema declares for the values of each list; None if it declares none, or one dimension."""
        return self._column.declared_shape

    @property
    def unknown_dtype(self) -> str | None:
        """The name of its dtype, if a library that takes Arrow's storage would make another of it."""
        return self._column.unknown_dtype

    @property
    def type_name(self) -> str:
        """The short name of its type, as `tfrecord_io.describe` shows it."""
        return self._column.short_name

    @staticmethod
    def check_dtypes(schema: pa.Schema, library: str) -> None:
        """Raise SchemaError for a column with an `unknown_dtype`, which `library` does not have."""
        RoomColumn.check_dtypes(schema, library)

    # ---- nested types

    def walk(self, *, storage: bool = False) -> Iterator[pa.DataType]:
        """Iterate over its type and all those nested in it; with `storage`, also those that extension types have."""
        return self._column.types_within(storage=storage)

    def map_fields(self, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
        """Return the type with changed fields, of a list, struct, map or union; any other type stays as it is."""
        return self._column.map_fields(change)

    @staticmethod
    def leaves(schema: pa.Schema) -> list[pa.Field]:
        """The columns that arrays are made of: those of a schema, with ``outer/inner`` instead of structs."""
        return RoomColumn.leaf_fields(schema)

    # ---- the metadata of arrays

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes that an array of NetCDF, HDF5, Zarr or xarray had."""
        return self._column.attributes

    def dimensions(self, shape: Sequence[int], sizes: dict[str, int], *, stated: bool = True) -> list[str]:
        """Name the axes of an array, without that of the rows: as the file that it is from did, if that is `stated`.

        `sizes` has the sizes of the dimensions that were named before, and gets the new ones.
        """
        return self._column.name_dimensions(shape, sizes, stated=stated)

    # ---- values

    @staticmethod
    def register_types() -> None:
        """Let Arrow know the types of tensors, in a process that gets columns from another one."""
        RoomColumn.register_types()

    def cast(self, array: pa.Array, source: pa.Field) -> pa.Array:
        """Cast an array of the column `source` to this one, where one of them has tensors."""
        return self._column.cast_tensors(array, source)

    def to_python(self, column: pa.ChunkedArray) -> list[Any]:
        """The rows as Python values: lists and tensors as lists."""
        return self._column.python_rows(column)
