"""One field of a schema: a column, the feature it is read from, and what a record without it gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.format.dtypes import DTYPE_KEY
from tfrecord_io.schema.default_values import settled_default, tensor_default
from tfrecord_io.schema.jsons import DEFECTS, dumps, from_plain, loads, to_plain
from tfrecord_io.schema.shapes import Shape, as_shape, check_shape, shape_of, size_of
from tfrecord_io.schema.tensor_types import is_any_tensor, register_variable_shape_tensor
from tfrecord_io.schema.type_names import logical_name, type_name
from tfrecord_io.schema.types import ENCODING_KEY, ENCODINGS, LIST, encoding_of, is_list_like

# Keys in the metadata of a pa.Field, each only where it says something that name and type do not.
FEATURE_KEY = b"tfrecord_io.feature"  # the feature's name, where it is not the column's
PART_KEY = b"tfrecord_io.part"
SHAPE_KEY = b"tfrecord_io.shape"  # JSON: numbers, null for a free axis
DEFAULT_KEY = b"tfrecord_io.default"  # JSON
IMAGE_KEY = b"tfrecord_io.image"  # JSON: mode and, where images are resized, height and width

CONTEXT = "context"
FEATURE_LIST = "feature_list"
PARTS = (CONTEXT, FEATURE_LIST)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Field:
    """One column and the feature that it is read from.

    Parameters
    ----------
    column : str
        Name of the column. The field makers leave it empty: the key in a Schema's dict gives it.
    type : pa.DataType
        Type of the column.
    feature : str, optional
        Name of the feature in the records; the column's name if not given.
    encoding : {"list", "raw", "wire", "tensor_proto"}
        "list": values are values; "raw": the bytes of an array; "wire": bytes are raw, numbers are values, whichever a
        record has; "tensor_proto": a serialized TensorProto.
    required : bool
        A record without the feature is an error. In Arrow: a field that is not nullable.
    default : object, optional
        Stands where the feature is absent or has no kind. None: null. For a fixed number of values it is all of them
        (nested as the shape is, or flat) or one that stands for each.
    shape : tuple of int or None, optional
        Of a value, of a feature list that of one step; None (or −1) is a free axis. Types of fixed size say it
        themselves. Of a list it is checked by count; of text and binary it only tells what the bytes decode to.
    part : {"context", "feature_list"}, optional
        Where a SequenceExample has it; an Example is all context. Lists of lists and lists of tensors are feature
        lists if nothing is said.
    metadata : mapping of bytes to bytes
        Metadata of the Arrow field; no part of equality.

    Examples
    --------
    >>> Field("label", pa.int32())
    Field(label: int32)
    """

    column: str
    type: pa.DataType
    feature: str = None  # type: ignore[assignment]  # always a str once made
    encoding: str = LIST
    required: bool = False
    default: Any = None
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)
    shape: Shape | None = None
    part: str = None  # type: ignore[assignment]  # always one of PARTS once made

    def __post_init__(self) -> None:
        if self.feature is None:
            object.__setattr__(self, "feature", self.column)
        if self.encoding not in ENCODINGS:
            raise SchemaError(
                f"there is no encoding {self.encoding!r}", feature=self.feature, expected=ENCODINGS, got=self.encoding
            )
        if self.required and t.is_null(self.type):
            raise SchemaError("a column of nulls cannot be required", feature=self.feature)
        self._settle_part()
        self._settle_shape()
        if self.default is not None:
            self._settle_default()
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def _settle_part(self) -> None:
        if self.part is None:
            object.__setattr__(self, "part", _usual_part(self.type))
        if self.part not in PARTS:
            raise SchemaError(f"there is no part {self.part!r}", feature=self.feature, expected=PARTS, got=self.part)
        if self.part == FEATURE_LIST and not is_list_like(self.type):
            raise SchemaError(
                f"a feature list is a list of its steps, not {type_name(self.type)}",
                feature=self.feature,
                advice="make it of sequence()",
            )

    def _settle_shape(self) -> None:
        """The shape that the type says, and else the one given, if the type may have it."""
        said = None
        try:
            said = shape_of(self.value, self.metadata)
            given = None if self.shape is None else as_shape(self.shape)
            if given is not None:
                check_shape(given, self.value, said)
        except ValueError as error:
            raise SchemaError(str(error), feature=self.feature, expected=said, got=self.shape) from None
        shape = said if given is None else given
        is_single = not is_list_like(self.value) and not is_any_tensor(self.value)
        object.__setattr__(self, "shape", None if shape == () and is_single else shape)

    def _settle_default(self) -> None:
        default = self.default
        if is_any_tensor(self.type):
            try:
                default = settled_default(default, self.tensor)
            except (ValueError, TypeError) as error:
                raise self._bad_default(default) from error
        elif isinstance(default, np.ndarray | np.generic):
            default = default.tolist()
        if (
            self.part == CONTEXT
            and not is_any_tensor(self.type)
            and self.shape is not None
            and isinstance(default, list | tuple)
        ):
            default = list(_flat(default))
        object.__setattr__(self, "default", default)
        try:
            self.default_array()
            to_plain(default)
        except DEFECTS as error:
            raise self._bad_default(default) from error

    def _bad_default(self, default: Any) -> SchemaError:
        reason = f"the default {printable(repr(default))} is no {self.type_name}"
        return SchemaError(reason, feature=self.feature, expected=self.type_name, got=default)

    @property
    def value(self) -> pa.DataType:
        """Type of a row's value; of a feature list that of one step."""
        return self.type.value_type if self.part == FEATURE_LIST else self.type

    @property
    def tensor(self) -> pa.Field:
        """Type and mark of a row's tensor; of a feature list those of one step's."""
        return pa.field(self.column, self.value, metadata=dict(self.metadata))

    @property
    def type_name(self) -> str:
        """Name of the type; of tensors with the dtype and the shape that NumPy sees."""
        return logical_name(self.type, self.metadata)

    def default_array(self) -> pa.Array:
        """The default as an array of one row; of a dictionary column its plain value."""
        if is_any_tensor(self.type):
            return tensor_default(self.default, self.tensor)
        type_ = self.type.value_type if t.is_dictionary(self.type) else self.type
        storage = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
        default = self.default
        if t.is_fixed_size_list(storage) and not isinstance(default, list | tuple):
            default = [default] * storage.list_size
        array = pa.array([default], storage)
        return pa.ExtensionArray.from_storage(type_, array) if isinstance(type_, pa.BaseExtensionType) else array

    def _key(self) -> tuple[Any, ...]:
        """What two equal fields share; the default as text, for 0, False and 0.0 are three defaults and NaN is one."""
        default = None if self.default is None else dumps(to_plain(self.default))
        dtype = self.metadata.get(DTYPE_KEY)
        return self.column, self.type, dtype, self.feature, self.encoding, self.required, default, self.shape, self.part

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Field) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.column, self.feature, self.encoding, self.required, self.shape, self.part))

    def __repr__(self) -> str:
        text = "".join(f", {k} {v}".rstrip() for k, v in self.notes().items())
        name = f"{printable(self.column)}: " if self.column else ""
        return f"Field({name}{self.type_name}{text})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (pa.schema([self.to_arrow()]).serialize().to_pybytes(), self.default)

    def notes(self) -> dict[str, str]:
        """What the field has besides a name and a type, in words."""
        notes = {}
        if self.part == FEATURE_LIST:
            notes["feature list"] = ""
        if self.feature != self.column:
            notes["feature"] = printable(self.feature)
        if self.encoding != LIST:
            notes["encoding"] = self.encoding
        if self.shape != shape_of(self.value, self.metadata):
            notes["shape"] = str(self.shape)
        if IMAGE_KEY in self.metadata:
            notes |= {name: printable(str(said), 40) for name, said in _image_words(self.metadata[IMAGE_KEY])}
        if self.required:
            notes["required"] = ""
        if self.default is not None:
            notes["default"] = printable(repr(self.default))
        return notes

    def named(self, column: str) -> Field:
        """The same field as column `column`; the feature goes along unless it was named on its own."""
        return replace(self, column=column, feature=column if self.feature == self.column else self.feature)

    @classmethod
    def from_arrow(cls, source: pa.Field) -> Field:
        """The field that a pa.Field describes; one that is not nullable is required.

        Raises
        ------
        SchemaError
            Its metadata says what no field can be.
        """
        metadata = dict(source.metadata or {})
        metadata.pop(ENCODING_KEY, None)
        feature = metadata.pop(FEATURE_KEY, source.name.encode()).decode("utf-8", "replace")
        part = metadata.pop(PART_KEY, b"").decode("utf-8", "replace") or None
        try:
            shape = loads(metadata.pop(SHAPE_KEY, b"null"))
            default = from_plain(loads(metadata.pop(DEFAULT_KEY, b"null")))
        except DEFECTS as error:
            raise SchemaError(
                "its metadata is damaged: tfrecord_io.shape, tfrecord_io.default", feature=feature
            ) from error
        encoding = encoding_of(source) or LIST
        return cls(source.name, source.type, feature, encoding, not source.nullable, default, metadata, shape, part)  # type: ignore[arg-type]

    def to_arrow(self) -> pa.Field:
        """The pa.Field of this; what has no place in one goes into its metadata."""
        metadata = dict(self.metadata)
        if self.feature != self.column:
            metadata[FEATURE_KEY] = self.feature.encode()
        if self.encoding != LIST:
            metadata[ENCODING_KEY] = self.encoding.encode()
        if self.part != _usual_part(self.type):
            metadata[PART_KEY] = self.part.encode()
        if self.shape != shape_of(self.value, self.metadata):
            metadata[SHAPE_KEY] = dumps(self.shape).encode()
        if self.default is not None:
            metadata[DEFAULT_KEY] = dumps(to_plain(self.default)).encode()
        return pa.field(self.column, self.type, nullable=not self.required, metadata=metadata or None)

    @property
    def size(self) -> int | None:
        """How many values a value (or step) has, where that is fixed."""
        return None if self.shape is None else size_of(self.shape)


def _usual_part(type_: pa.DataType) -> str:
    return (
        FEATURE_LIST
        if is_list_like(type_) and (is_list_like(type_.value_type) or is_any_tensor(type_.value_type))
        else CONTEXT
    )


def _image_words(said: bytes) -> Iterator[tuple[str, Any]]:
    """What the metadata of an image column says."""
    try:
        found = loads(said)
    except DEFECTS:
        return
    if isinstance(found, dict):
        yield "image", found.get("mode", "")
        if found.get("resize") is not None:
            yield "resize", tuple(found["resize"])


def _flat(values: Any) -> Iterator[Any]:
    """The values of nested lists; bytes are values."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def _unpickle(source: bytes, default: Any) -> Field:
    """The field of a schema message: Arrow's own tensor types of shapes that vary cannot be pickled."""
    register_variable_shape_tensor()
    return replace(Field.from_arrow(pa.ipc.read_schema(pa.py_buffer(source)).field(0)), default=default)
