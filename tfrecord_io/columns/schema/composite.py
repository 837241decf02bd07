"""Columns built from several features: an array's bytes and its shape, values and the lengths of their lists.

A `Composite` describes how, and is stored in the metadata of a field. Only schemas of other programs have composites. A
writer with such a schema writes the named features, and embeds them as plain columns.

Tests: tests/columns/arrow/decode/test_composite_decoder.py and tests/columns/arrow/encode/test_composite_columns.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, ClassVar

import pyarrow as pa

from tfrecord_io.base import printable
from tfrecord_io.bytes import Dtype
from tfrecord_io.columns.schema.column_features import COMPOSITE_KEY, Node, as_shape, fixed_part
from tfrecord_io.columns.schema.field import CONTEXT, Field
from tfrecord_io.columns.schema.tensor_types import Shape, dtype_metadata, tensor_type
from tfrecord_io.columns.schema.type_names import type_from_name
from tfrecord_io.columns.schema.types import is_number
from tfrecord_io.errors import SchemaError

VALUES = "values"  # each bytes value is a value; arrow.decode.composite_decoder has the other encodings
ENCODINGS = (VALUES, "bytes", "zlib")


@dataclass(slots=True, repr=False)
class Composite:
    """How a column is built: items of a shape, in nested lists.

    >>> Composite("steps/action", "float", shape=(7,), sequence=(None,)).type
    ListType(list<item: fixed_size_list<item: float>[7]>)
    """

    BY_VALUE: ClassVar[str] = VALUES

    values: str  # the feature with the values of all items, or with a bytes value for each item
    dtype: str  # Arrow's name of the type of a value
    encoding: str = VALUES  # or of an item's array: "bytes" (C order, little-endian), "zlib" (those, compressed)
    shape: Shape = ()  # of an item; the size of one unknown dimension follows from the number of values
    shape_feature: str | None = None  # the feature with the shapes of the items, one after another
    sequence: Shape = ()  # lengths of the lists around the items, outermost first; None: any
    # For each list inside the outermost the feature with their lengths; None: all have the length in `sequence`.
    lengths: tuple[str | None, ...] = ()
    labels: tuple[str, ...] | None = None  # values are indices into these; −1 means none
    sentinel: bool = False  # TFDS's optional=True: rows of only the least value of the (signed) type are null

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", as_shape(self.shape))
        object.__setattr__(self, "sequence", as_shape(self.sequence))
        object.__setattr__(self, "lengths", tuple(self.lengths))
        object.__setattr__(self, "labels", None if self.labels is None else tuple(self.labels))
        value_type = self.value_type  # SchemaError for an unknown dtype
        if self.encoding not in ENCODINGS:
            reason = f"the encoding {printable(repr(self.encoding), 60)} is not supported"
            raise SchemaError(reason, feature=self.values, expected=ENCODINGS, got=self.encoding)
        if len(self.lengths) != max(len(self.sequence) - 1, 0):
            raise SchemaError("nested lists need lengths for each level but the outermost", feature=self.values)
        if any(name is None and not size for name, size in zip(self.lengths, self.sequence[1:], strict=True)):
            raise SchemaError("a list inside a list needs a length, or a feature with lengths", feature=self.values)
        max_unknown = 1 if self.shape_feature is None else len(self.shape)
        if self.sequence and self.encoding == VALUES:
            max_unknown = 0  # only the size of the items separates them
        if self.shape.count(None) > max_unknown:
            reason = "the sizes of the unknown dimensions are in no feature"
            raise SchemaError(reason, feature=self.values, got=self.shape)
        if self.encoding != VALUES and not is_number(value_type):
            reason = f"{self.encoding!r} bytes are arrays of numbers, not of {self.dtype}"
            raise SchemaError(reason, feature=self.values)

    @staticmethod
    def of(field: Field) -> Composite | None:
        """How a field's column is built, None where it is one plain feature; SchemaError if the metadata is damaged."""
        return composite_of(field)

    @property
    def value_type(self) -> pa.DataType:
        """Type of one value."""
        return type_from_name(self.dtype)

    @property
    def is_tensor(self) -> bool:
        """True if all rows are arrays of one shape, of two dimensions or more."""
        is_fixed = len(self.shape) > 1 and None not in self.shape
        return is_fixed and not self.sequence and self.labels is None and is_number(self.value_type)

    @property
    def type(self) -> pa.DataType:
        """Type of the column."""
        type_ = self.value_type if self.labels is None else pa.dictionary(pa.int32(), pa.string())
        if self.is_tensor:
            return tensor_type(Dtype.of_arrow(type_), self.shape)
        for size in reversed(self.sequence + self.shape):
            type_ = pa.list_(type_) if size is None else pa.list_(type_, size)
        return type_

    def field(self, column: str, **attributes: Any) -> Field:
        """The field of this column."""
        entries = {name: value for name, value in asdict(self).items() if value not in (None, (), False)}
        metadata = {COMPOSITE_KEY: json.dumps(entries, ensure_ascii=False).encode()}
        metadata |= dtype_metadata(Dtype.of_arrow(self.value_type)) if self.is_tensor else {}
        return Field(column, self.type, self.values, part=CONTEXT, metadata=metadata, **attributes)

    def components(self) -> Iterator[tuple[str, pa.DataType]]:
        """Each feature with the type it is read as: first the values, then the lengths, then the shapes."""
        if self.encoding != VALUES:
            stored = pa.binary()
        elif self.labels is not None or self.value_type == pa.uint64():
            stored = pa.int64()  # values above 2^63−1 are stored as the same bits
        else:
            stored = self.value_type
        has_many = self.sequence or (self.shape and self.encoding == VALUES)
        yield self.values, pa.list_(stored) if has_many else stored
        for name in (*self.lengths, self.shape_feature):
            if name is not None:
                yield name, pa.list_(pa.int64())

    @property
    def item_size(self) -> int:
        """The number of values of an item is a multiple of this."""
        return fixed_part(self.shape)


@dataclass(slots=True, repr=False)
class Built(Node):
    """A column that a composite describes."""

    _: KW_ONLY
    composite: Composite


def composite_of(field: Field) -> Composite | None:
    """How a field's column is built, None where it is one plain feature; SchemaError if the metadata is damaged."""
    text = field.metadata.get(COMPOSITE_KEY)
    if text is None:
        return None
    try:
        return Composite(**json.loads(text))
    except SchemaError:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise SchemaError("its metadata is damaged: tfrecord_io.assembly", feature=field.feature) from error
