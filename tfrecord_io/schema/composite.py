"""Columns that are put together from features: an array's bytes and its shape, values and the lengths of the lists they are cut into.

An `Composite` says how, and travels in the metadata of a field, so a schema stays a list of plain fields. Reading has two steps:
by `parts_schema`, whose columns are the features as they stand in a record; then `arrow.assembling` makes the columns of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.field import CONTEXT, Field
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.shapes import Shape, as_shape, fixed_part
from tfrecord_io.schema.type_names import type_from_name
from tfrecord_io.schema.types import is_number

ASSEMBLY_KEY = b"tfrecord_io.assembly"  # in the metadata of a field: JSON

VALUES = "values"  # one bytes value is one value; any other encoding is a row of arrow.array_bytes.ENCODINGS


@dataclass(frozen=True, slots=True)
class Composite:
    """How a column is made: items of a shape, in lists in lists.

    Parameters
    ----------
    values : str
        The feature with the values of all items, or with a bytes value for each item.
    dtype : str
        Arrow's name of the type of a value.
    encoding : str
        "values", or how the bytes of an item are its array: "bytes" (C order, little-endian), "zlib" (those, compressed).
    shape : tuple of int or None
        Of an item. One free axis follows from the number of values.
    shape_feature : str, optional
        The feature with the shapes of the items, one after another.
    sequence : tuple of int or None
        Lengths of the lists around the items, outermost first; None: any.
    lengths : tuple of str or None
        Per list inside the outermost: the feature with their lengths. None: all have the length in `sequence`.
    labels : tuple of str, optional
        Values are indices into these; −1 is no label.
    sentinel : bool
        A row of nothing but the least value of the type is null (TFDS's ``optional=True``); for signed numbers only.

    Examples
    --------
    >>> Assembly("steps/action", "float", shape=(7,), sequence=(None,)).type
    ListType(list<item: fixed_size_list<item: float>[7]>)
    """

    values: str
    dtype: str
    encoding: str = VALUES
    shape: Shape = ()
    shape_feature: str | None = None
    sequence: Shape = ()
    lengths: tuple[str | None, ...] = ()
    labels: tuple[str, ...] | None = None
    sentinel: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", as_shape(self.shape))
        object.__setattr__(self, "sequence", as_shape(self.sequence))
        object.__setattr__(self, "lengths", tuple(self.lengths))
        object.__setattr__(self, "labels", None if self.labels is None else tuple(self.labels))
        self._check()

    def _check(self) -> None:
        value = self.value_type
        free = self.shape.count(None)
        if len(self.lengths) != max(len(self.sequence) - 1, 0):
            raise SchemaError("lists in lists need lengths for each level but the outermost", feature=self.values)
        if any(name is None and not size for name, size in zip(self.lengths, self.sequence[1:], strict=True)):
            raise SchemaError("a list inside a list needs a length, or a feature with lengths", feature=self.values)
        of_values_in_lists = (
            bool(self.sequence) and self.encoding == VALUES
        )  # where the items end, only their size says
        if free > (0 if of_values_in_lists else 1 if self.shape_feature is None else len(self.shape)):
            raise SchemaError("no feature says how long the free axes are", feature=self.values, got=self.shape)
        if self.encoding != VALUES and not is_number(value):
            raise SchemaError(
                f"{self.encoding!r} bytes are arrays of numbers, not of {self.dtype}", feature=self.values
            )

    @property
    def value_type(self) -> pa.DataType:
        """Type of one value."""
        return type_from_name(self.dtype)

    @property
    def is_tensor(self) -> bool:
        """Whether every row is an array of one shape, of two axes or more."""
        return (
            len(self.shape) > 1
            and not self.sequence
            and None not in self.shape
            and self.labels is None
            and is_number(self.value_type)
        )

    @property
    def type(self) -> pa.DataType:
        """Type of the column."""
        made = self.value_type if self.labels is None else pa.dictionary(pa.int32(), pa.string())
        if self.is_tensor:
            return pa.fixed_shape_tensor(made, self.shape)
        for size in reversed(self.sequence + self.shape):
            made = pa.list_(made) if size is None else pa.list_(made, size)
        return made

    def field(self, column: str, **attributes: Any) -> Field:
        """The field of this column."""
        text = json.dumps(
            {name: value for name, value in asdict(self).items() if value not in (None, (), False)}, ensure_ascii=False
        )
        return Field(column, self.type, self.values, part=CONTEXT, metadata={ASSEMBLY_KEY: text.encode()}, **attributes)

    def parts(self) -> Iterator[tuple[str, pa.DataType]]:
        """Each feature with the type it is read as: first the values, then the lengths, then the shapes."""
        yield self.values, self._stored_type()
        for name in (*self.lengths, self.shape_feature):
            if name is not None:
                yield name, pa.list_(pa.int64())

    def _stored_type(self) -> pa.DataType:
        if self.encoding != VALUES:
            stored = pa.binary()
        else:
            as_int64 = (
                self.labels is not None or self.value_type == pa.uint64()
            )  # above 2^63−1 the bits are those of an int64
            stored = pa.int64() if as_int64 else self.value_type
        several = self.sequence or (self.shape and self.encoding == VALUES)
        return pa.list_(stored) if several else stored

    @property
    def item_size(self) -> int:
        """What the number of an item's values is a multiple of."""
        return fixed_part(self.shape)


def assembly_of(field: Field) -> Composite | None:
    """How a field's column is put together; None where it is one plain feature.

    Raises
    ------
    SchemaError
        The metadata is damaged.
    """
    text = field.metadata.get(ASSEMBLY_KEY)
    if text is None:
        return None
    try:
        return Composite(**json.loads(text))
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError("its metadata is damaged: tfrecord_io.assembly", feature=field.feature) from error


def part_column(column: str, at: int) -> str:
    """Name of the column of a part; no other column has such a name."""
    return f"{column}\0{at}"


def parts_schema(schema: Schema) -> Schema:
    """The schema to read by: assembled columns give way to their parts."""
    fields: list[Field] = []
    for f in schema:
        assembly = assembly_of(f)
        if assembly is None:
            fields.append(f)
            continue
        for at, (feature, type_) in enumerate(assembly.parts()):
            fields.append(
                Field(part_column(f.column, at), type_, feature, part=CONTEXT, required=f.required and at == 0)
            )
    return Schema(fields, schema.metadata)


def assembled_schema(schema: Schema) -> Schema:
    """The schema of what comes out: the same columns, plain ones, for nothing is left to put together."""
    return Schema([_plain(f) for f in schema], schema.metadata)


def _plain(field: Field) -> Field:
    kept: Mapping[bytes, bytes] = {key: value for key, value in field.metadata.items() if key != ASSEMBLY_KEY}
    return field if len(kept) == len(field.metadata) else replace(field, metadata=kept)
