"""Answers about a column in features, in Arrow and in arrays, from its type and the metadata of its field.

Tests: tests/columns/test_column.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import column_list
from tfrecord_io.columns.arrow import buffers
from tfrecord_io.columns.schema import column_features, tensor_types, types
from tfrecord_io.columns.schema import field as fields
from tfrecord_io.errors import SchemaError

if TYPE_CHECKING:
    from tfrecord_io.bytes import Array, Dtype, Kind
    from tfrecord_io.columns.arrow.output.to_numpy import Rows, TensorLists
    from tfrecord_io.columns.arrow.tensor_values import TensorValues


class Column:
    """A column of Arrow, or a type of its values: what its type and its metadata say.

    >>> Column(pa.list_(pa.string())).is_list, Column(pa.list_(pa.string())).value_type
    (True, DataType(string))

    Parameters
    ----------
    of : pyarrow.Field or pyarrow.DataType
    metadata : dict, optional
        Of the field, where `of` is its type alone.
    """

    LIST, RAW, BY_WIRE = column_features.LIST, column_features.RAW, column_features.BY_WIRE
    NESTED, JSON = tensor_types.NESTED, tensor_types.JSON  # encodings that make several plain columns, or JSON
    CONTEXT, FEATURE_LIST = PARTS = fields.CONTEXT, column_features.FEATURE_LIST  # the parts of a SequenceExample
    ENCODING_KEY = column_features.ENCODING_KEY  # of the metadata of a field, as are the next
    COMPOSITE_KEY = column_features.COMPOSITE_KEY
    BOXES_KEY = fields.BOXES_KEY
    ROW_DIMENSION, TYPE_ATTRIBUTE = fields.ROW_DIMENSION, fields.TYPE_ATTRIBUTE
    UnsupportedType = types.UnsupportedType  # raised for a type that cannot be stored in a TFRecord

    __slots__ = ("_field", "metadata", "type")

    def __init__(self, of: pa.Field | pa.DataType, metadata: Mapping[bytes, bytes] | None = None) -> None:
        self.type: pa.DataType
        self.metadata: Mapping[bytes, bytes] | None
        self._field: pa.Field | None
        if isinstance(of, pa.DataType):
            self.type, self.metadata, self._field = of, metadata, None
        else:
            self.type, self.metadata, self._field = of.type, of.metadata, of

    @classmethod
    def of_tensors(cls, name: str, dtype: Dtype, shape: tensor_types.Shape) -> Column:
        """A column of tensors of this shape, in which None is an unknown dimension; SchemaError if it is too large."""
        return cls(tensor_types.tensor_field(name, dtype, shape))

    @staticmethod
    def check_dtypes(fields: Iterable[pa.Field], library: str) -> None:
        """Raise SchemaError for a column of an `unknown_dtype`, which a library does not have."""
        for column in map(Column, fields):
            if dtype := column.unknown_dtype:
                advice = "leave the column out by select, or call read_arrays"
                advice_cli = "leave the column out by select"
                raise SchemaError(
                    f"{library} has no {dtype}", feature=column.field.name, got=dtype, hint=advice, hint_cli=advice_cli
                )

    @staticmethod
    def leaf_fields(schema: pa.Schema) -> list[pa.Field]:
        """The columns that arrays are made of: those of a schema, with ``outer/inner`` instead of structs."""
        from tfrecord_io.columns.arrow.output.to_numpy import leaf_fields

        return leaf_fields(schema)

    @staticmethod
    def leaf_arrays(batch: pa.RecordBatch) -> list[pa.Array]:
        """The arrays of the `leaf_fields` of a batch."""
        from tfrecord_io.columns.arrow.output.to_numpy import leaf_arrays

        return leaf_arrays(batch)

    @staticmethod
    def declaration(name: str, type_name: str) -> tuple[str, str]:
        """How to declare the type of a column, in Python and in the command."""
        from tfrecord_io.columns.schema.column_advice import declaration

        return declaration(name, type_name)

    @staticmethod
    def column_list(names: Sequence[str]) -> str:
        """The names of columns in a line of text, the first ones of many; empty if there are none."""
        return column_list(names)

    @staticmethod
    def uncommon_columns(schema: pa.Schema) -> list[int]:
        """The positions of the columns whose types are not of the most common ones, of which there may be thousands."""
        return types.uncommon_columns(schema)

    @staticmethod
    def number_dtypes(schema: pa.Schema) -> list[np.dtype[Any] | None]:
        """The `number_dtype` of each column."""
        return list(map(types.number_dtype, schema.types))

    @staticmethod
    def bytes_of(batch: pa.RecordBatch) -> int:
        """The bytes of the values of all columns."""
        return sum(map(buffers.value_bytes, batch.columns))

    @staticmethod
    def register_types() -> None:
        """Register the type of tensors whose shapes vary, where Arrow does not have it."""
        tensor_types.register_variable_shape_tensor()

    @classmethod
    def parse(cls, source: Any) -> Column:
        """A column of a type, its name, a Python type or a dtype; SchemaError if it is none of these."""
        from tfrecord_io.columns.schema.type_names import as_arrow_type

        return cls(as_arrow_type(source))

    @staticmethod
    def parse_shape(source: Any, *, is_sparse: bool = False) -> tensor_types.Shape:
        """A shape from numbers, None and −1, from one number, or from a TensorShape; SchemaError for others."""
        return column_features.as_shape(source, is_sparse=is_sparse)

    @property
    def field(self) -> pa.Field:
        """The field; without a name if only a type is known."""
        if self._field is None:
            return pa.field("", self.type, metadata=dict(self.metadata or {}) or None)
        return self._field

    # ---- the type

    @property
    def is_text(self) -> bool:
        """True if values are text, with offsets of 32 or 64 bits."""
        return types.is_text(self.type)

    @property
    def is_bytes(self) -> bool:
        """True if values are bytes of any number, with offsets of 32 or 64 bits."""
        return types.is_bytes(self.type)

    @property
    def is_text_or_bytes(self) -> bool:
        """True if values are text or bytes, of any layout."""
        return types.is_text_or_bytes(self.type)

    @property
    def is_number(self) -> bool:
        """True if values are plain NumPy numbers, so that the encoding "raw" applies."""
        return types.is_number(self.type)

    @property
    def is_list(self) -> bool:
        """True for lists of any layout; a map is not one."""
        return types.is_list_like(self.type)

    @property
    def is_feature_list(self) -> bool:
        """True if the metadata says that the lists are a feature list of a SequenceExample."""
        return column_features.is_marked_feature_list(self.field)

    @property
    def is_other_time(self) -> bool:
        """True if NumPy has the values as those of another type: without a zone, or as durations."""
        from tfrecord_io.columns.schema.array_attributes import is_other_time

        return is_other_time(self.type)

    @property
    def value_type(self) -> pa.DataType:
        """The type of one value: list, dictionary, run-end, extension and view wrappers are removed."""
        return types.value_type(self.type)

    @property
    def kind(self) -> Kind:
        """The feature type of one value, which is neither a list nor a struct; UnsupportedType if it has none."""
        return types.kind_of(self.type, "" if self._field is None else self._field.name)

    @property
    def plain_kind(self) -> Kind | None:
        """The feature type of the most common types, which are handed over as they are; else None."""
        return types.plain_kind(self.type)

    def has_dictionary(self) -> bool:
        """True if a dictionary is in the type."""
        return types.has_dictionary(self.type)

    def types_within(self, *, storage: bool = False) -> Iterator[pa.DataType]:
        """The type and all those nested in it; with `storage`, those in which extension types are stored, too."""
        return types.types_within(self.type, storage=storage)

    def relist(self, values: pa.DataType | pa.Field) -> pa.DataType:
        """The list type with other values."""
        return types.relist(self.type, values)

    def map_fields(self, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
        """Change the fields of a list, struct, map or union; any other type stays as it is."""
        return types.map_fields(self.type, change)

    # ---- tensors

    @property
    def is_tensor(self) -> bool:
        """True for the two types of tensors."""
        return tensor_types.is_any_tensor(self.type)

    @property
    def is_fixed_shape_tensor(self) -> bool:
        """True for Arrow's type of tensors of one shape."""
        return tensor_types.is_fixed_shape_tensor(self.type)

    @property
    def is_variable_shape_tensor(self) -> bool:
        """True for Arrow's type of tensors of shapes that vary."""
        return tensor_types.is_variable_shape_tensor(self.type)

    @property
    def varies(self) -> bool:
        """True if rows may have different shapes: lists without a fixed size, and tensors of shapes that vary."""
        is_fixed_list = pa.types.is_fixed_size_list(self.type) and not self.has_tensor_lists
        return self.is_variable_shape_tensor or (self.is_list and not is_fixed_list)

    @property
    def has_tensor_lists(self) -> bool:
        """True for lists of tensors of shapes that vary; a list of values is a tensor of one axis."""
        if not self.is_list:
            return False
        value = self.type.value_type
        if pa.types.is_list(value) or pa.types.is_large_list(value):
            return not value.value_type.num_fields and not tensor_types.is_any_tensor(value.value_type)
        return tensor_types.is_variable_shape_tensor(value)

    @property
    def axes(self) -> tensor_types.Shape:
        """The axes of a type of tensors, in their logical order; None where they vary."""
        return tensor_types.axes_of(self.type)

    @property
    def tensor_axes(self) -> tensor_types.Shape:
        """The axes of the tensors in the column or in its lists, in NumPy's order; None where an axis varies."""
        from tfrecord_io.columns.arrow.output.to_numpy import tensor_axes

        return tensor_axes(self.field)

    @property
    def permutation(self) -> tuple[int, ...] | None:
        """The stored axis of each logical axis; None if no axis is permuted."""
        return tensor_types.permutation_of(self.type)

    @property
    def dtype_and_shape(self) -> tuple[Dtype, tensor_types.Shape]:
        """The dtype and the shape of a column of tensors, as NumPy has them; ValueError if it is none."""
        return tensor_types.element_and_shape(self.field)

    @property
    def unknown_dtype(self) -> str | None:
        """The dtype of which a library that takes Arrow's storage would make another, or None."""
        return tensor_types.unknown_dtype(self.field)

    def tensors(self, array: pa.Array) -> TensorValues:
        """The bytes of a column's tensors in their logical order."""
        from tfrecord_io.columns.arrow.tensor_values import column_to_tensors

        return column_to_tensors(array, self.field)

    @staticmethod
    def fixed_shape_tensors(values: pa.Array, shape: Sequence[int], rows: int) -> pa.Array:
        """Cut `values` into tensors of a shape, which may have no values."""
        return buffers.fixed_shape_tensors(values, shape, rows)

    def cells(self, array: pa.Array) -> Array:
        """The tensors of a column as an object array of ndarrays, None where null."""
        from tfrecord_io.columns.arrow.tensor_values import column_to_cells

        return column_to_cells(array, self.field)

    # ---- names of types

    @property
    def type_name(self) -> str:
        """The name of the type, as it is parsed."""
        from tfrecord_io.columns.schema.type_names import type_name

        return type_name(self.type)

    @property
    def logical_name(self) -> str:
        """The name of the type; of tensors with the dtype in the metadata, and the shape that NumPy has."""
        from tfrecord_io.columns.schema.type_names import logical_name

        return logical_name(self.type, self.metadata)

    @property
    def short_name(self) -> str:
        """The name of the type in tables and reports."""
        from tfrecord_io.columns.schema.type_names import short_type_name

        return short_type_name(self.type, self.metadata)

    # ---- features

    @property
    def encoding(self) -> str | None:
        """The encoding in the metadata, or None."""
        return column_features.encoding_of(self.field)

    @property
    def stored_as(self) -> str | None:
        """The type in which a record has the numbers of the column, if it holds less than the column's; else None."""
        return column_features.stored_as(self.field)

    def shown_as(self, name: str) -> str:
        """The `name` of the type for display, followed by the type of the stored values where that differs."""
        return column_features.shown_type(name, self.field)

    @property
    def leaves(self) -> list[column_features.Leaf]:
        """The features that the column is written as; UnsupportedType if it cannot be."""
        return column_features.leaves(self.field)

    @property
    def nested_leaves(self) -> list[column_features.NestedLeaf]:
        """The features of a column of the encoding `NESTED`."""
        return list(column_features.nested_leaves(self.field))

    # ---- attributes of labelled arrays

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the column, such as ``units``."""
        from tfrecord_io.columns.schema.array_attributes import attributes_of

        return attributes_of(self.field)

    @property
    def dimensions(self) -> list[str]:
        """The names of the dimensions, without that of the rows."""
        from tfrecord_io.columns.schema.array_attributes import dimensions_of

        return dimensions_of(self.field)

    def add_labels(self, attributes: Mapping[Any, Any] | None = None, dimensions: Sequence[str] = ()) -> pa.Field:
        """The field with attributes, and with the names of the dimensions without that of the rows."""
        from tfrecord_io.columns.schema.array_attributes import add_attributes, add_dimensions

        name = self.field.name
        schema = add_attributes(pa.schema([self.field]), {name: attributes or {}})
        return add_dimensions(schema, {name: dimensions}).field(0)

    def name_dimensions(self, shape: Sequence[int], sizes: dict[str, int], *, stated: bool = True) -> list[str]:
        """Name the axes of an array, without that of the rows; those `stated` by the column, or else made of its name.

        `sizes` has the sizes of the dimensions that were named before, and gets the new ones.
        """
        from tfrecord_io.columns.schema.array_attributes import dimension_names

        return dimension_names(self.field.name, shape, self.dimensions if stated else [], sizes)

    # ---- values

    @property
    def declared_shape(self) -> tuple[int | None, ...] | None:
        """The shape that a schema declares for the values of each list."""
        from tfrecord_io.columns.arrow.output.to_numpy import declared_shape

        return declared_shape(self.field)

    @property
    def numpy_dtype(self) -> np.dtype[Any] | None:
        """The dtype of values of fixed width; None of others."""
        return buffers.numpy_dtype(self.type)

    @property
    def offset_dtype(self) -> np.dtype[Any]:
        """The dtype of the offsets of lists, maps, text or bytes."""
        return buffers.offset_dtype(self.type)

    def rows(self, array: pa.Array, *, missing: bool = False) -> Rows:
        """The rows of the column as arrays: dense, or ragged."""
        from tfrecord_io.columns.arrow.output import to_numpy  # a function of it takes thrice as long to import again

        return to_numpy.to_rows(array, self.field, missing=missing)

    def python_rows(self, column: pa.ChunkedArray) -> list[Any]:
        """The rows of the column as Python values."""
        from tfrecord_io.columns.arrow.output.to_python import rows_of

        return rows_of(column, self.field)

    def cell(self, array: pa.Array, row: int) -> Any:
        """The value of one row as a Python value."""
        from tfrecord_io.columns.arrow.output.to_python import cell

        return cell(array, row, self.field)

    @property
    def number_dtype(self) -> np.dtype[Any] | None:
        """The dtype of integers and floats of a common width; None of other types."""
        return types.number_dtype(self.type)

    def missing_step(self, array: pa.Array, *, as_objects: bool = True) -> int | None:
        """The first row whose list lacks a value for which NumPy has no None; tensors have one `as_objects`."""
        if not self.is_list:
            return None
        from tfrecord_io.columns.arrow.output.to_numpy import missing_step

        return missing_step(array, self.field, as_objects=as_objects)

    def tensor_lists(self, array: pa.Array) -> TensorLists:
        """The rows of lists of tensors of shapes that vary, of which none is null."""
        from tfrecord_io.columns.arrow.output.to_numpy import TensorLists

        return TensorLists.from_lists(array, self.field)

    def shape_of(self, length: int) -> tuple[int, ...]:
        """The shape of a list of this length, by the declared shape."""
        from tfrecord_io.columns.arrow.tensor_values import shapes_of_counts

        return tuple(shapes_of_counts(np.array([length]), self.declared_shape or (None,))[0].tolist())

    # ---- statistics

    @property
    def is_ordered(self) -> bool:
        """True if values are ordered like numbers."""
        from tfrecord_io.columns.arrow.output.column_statistics import is_ordered

        return is_ordered(self.type)

    def time_of(self, value: float) -> Any:
        """The date or time that an integer from `times_to_integers` stands for."""
        from tfrecord_io.columns.arrow.output.column_statistics import temporal_value

        return temporal_value(self.type, value)

    @staticmethod
    def lengths_of(array: pa.Array) -> pa.Array:
        """Count the characters of texts, or the bytes of bytes."""
        from tfrecord_io.columns.arrow.output.column_statistics import lengths_of

        return lengths_of(array)

    @staticmethod
    def numbers_of(array: pa.Array) -> pa.Array:
        """View dates and times as integers; other values stay."""
        from tfrecord_io.columns.arrow.output.column_statistics import times_to_integers

        return times_to_integers(array)

    # ---- other forms of the values

    @property
    def plain_form(self) -> pa.DataType:
        """The type of lists and structs in which there is no map, union or interval; the type itself if it has none."""
        from tfrecord_io.columns.arrow.plain_forms import plain_form

        return plain_form(self.type)

    def to_plain_form(self, array: pa.Array) -> pa.Array:
        """The values of an array of this type as its `plain_form`."""
        from tfrecord_io.columns.arrow.plain_forms import to_plain_form

        return to_plain_form(array)

    def from_plain_form(self, array: pa.Array) -> pa.Array:
        """The array of this type whose `plain_form` an array has; ArrowInvalid where it is not one of the type."""
        from tfrecord_io.columns.arrow.plain_forms import from_plain_form

        return from_plain_form(array, self.type)

    @property
    def is_compared_as_storage(self) -> bool:
        """True for an extension type of single values that Arrow knows nothing of."""
        from tfrecord_io.columns.arrow.evaluate_condition import is_compared_as_storage

        return is_compared_as_storage(self.type)

    @property
    def handed_type(self) -> pa.DataType:
        """The type of a declared nested column in a result: without views and run-ends; large types stay."""
        return column_features.nested_handed(self.type)

    def flat_values(self, array: pa.Array) -> pa.Array:
        """All values of tensors without nulls; those that Arrow cannot hold, or that have no order, are nulls."""
        from tfrecord_io.columns.arrow.tensor_values import flat_values

        return flat_values(array, self.field)[0]

    def cast_tensors(self, array: pa.Array, source: pa.Field) -> pa.Array:
        """A column of the field `source` cast to this type, if one of the types is a tensor type."""
        from tfrecord_io.columns.arrow.input.tensor_cast import tensor_cast

        return tensor_cast(array, source, self.field)

    @staticmethod
    def hashable(array: pa.Array) -> pa.Array:
        """The values as a type that Arrow (26.0) has a hash of, none of them changed."""
        return types.hashable(array)

    @staticmethod
    def numbers(array: pa.Array, *, writable: bool = False) -> Array:
        """The numbers of an array of `number_dtype` as a view; null slots hold anything."""
        dtype = types.number_dtype(array.type)
        assert dtype is not None
        numbers = buffers.number_items(array, dtype)
        return buffers.writable(numbers) if writable else numbers

    @property
    def can_unify(self) -> bool:
        """True if Arrow (26.0) can make one dictionary of those of several arrays: not of nested types, for example."""
        from tfrecord_io.columns.arrow.casts import can_unify

        return can_unify(self.type)

    @staticmethod
    def one_dictionary(column: pa.ChunkedArray) -> pa.ChunkedArray:
        """A dictionary column with one dictionary."""
        from tfrecord_io.columns.arrow.casts import one_dictionary

        return one_dictionary(column)

    @staticmethod
    def struct_fields(array: pa.StructArray) -> list[pa.Array]:
        """The fields of a struct, null where it is."""
        return buffers.struct_fields(array)

    # ---- other columns of the same name

    @property
    def lacks_type(self) -> bool:
        """True if the column is null throughout, or has fields or items that are."""
        from tfrecord_io.columns.schema.merged_schema import lacks_type

        return lacks_type(self.type)

    def lacks_only_values(self, type_: pa.DataType) -> bool:
        """True if this is `type_`, or would be if its columns, fields or items that are null throughout had a type."""
        from tfrecord_io.columns.schema.merged_schema import lacks_only_values

        return lacks_only_values(self.type, type_)

    def common_field(self, other: pa.Field) -> pa.Field | None:
        """The field for a column that is `other` in another file; None if no type holds the values of both."""
        from tfrecord_io.columns.schema.merged_schema import common_field

        return common_field(self.field, other)
