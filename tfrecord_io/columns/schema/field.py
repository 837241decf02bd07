"""One field of a schema: a column, the feature it is read from, and the default for records without it."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from operator import attrgetter
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import printable
from tfrecord_io.bytes import Array, Dtype, ShapeSource
from tfrecord_io.columns.schema.column_features import (
    COMPOSITE_KEY,
    DEFAULT_KEY,
    EMPTY_KEY,
    ENCODING_KEY,
    FEATURE_KEY,
    FEATURE_LIST,
    LIST,
    PART_KEY,
    as_shape,
    check_shape,
    encoding_of,
    is_list_of_tensors,
    shape_entries,
    shape_of,
    size_of,
    stored_as,
)
from tfrecord_io.columns.schema.column_features import CONTEXT as CONTEXT
from tfrecord_io.columns.schema.tensor_types import (
    TENSOR_ENCODINGS,
    Shape,
    element_and_shape,
    encoding_rules,
    is_any_tensor,
    is_composed,
    is_fixed_shape_tensor,
    register_variable_shape_tensor,
)
from tfrecord_io.columns.schema.types import (
    UnsupportedType,
    is_list_like,
    plain_kind,
    refuse_deep,
    store_bools_as_bytes,
)
from tfrecord_io.errors import SchemaError

# What conversions raise for a value or a text that does not fit a type.
CONVERSION_ERRORS = (
    pa.ArrowException,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
)


def _base64() -> ModuleType:
    import base64  # few fields have values in JSON

    return base64


_MICROSECOND = dt.timedelta(microseconds=1)
# Values that JSON lacks are objects with a single key, the name of the class. A datetime is a date: it comes first.
_TAGS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {
    "bytes": (bytes, lambda v: _base64().b64encode(v).decode(), lambda text: _base64().b64decode(text)),
    "datetime": (dt.datetime, dt.datetime.isoformat, dt.datetime.fromisoformat),
    "date": (dt.date, dt.date.isoformat, dt.date.fromisoformat),
    "time": (dt.time, dt.time.isoformat, dt.time.fromisoformat),
    "microseconds": (dt.timedelta, lambda v: v // _MICROSECOND, lambda n: n * _MICROSECOND),
    "decimal": (decimal.Decimal, str, decimal.Decimal),
    "float": (float, str, float),
    "struct": (
        dict,
        lambda d: {k: to_json_value(v) for k, v in d.items()},
        lambda d: {k: from_json_value(v) for k, v in d.items()},
    ),
}


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON text, with keys in their order and without escapes for characters outside of ASCII."""
    import json  # few fields have values in JSON

    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def to_json_value(value: Any) -> Any:
    """A value as what JSON has; TypeError if its class is not supported.

    >>> to_json_value([1, b"ab"])
    [1, {'bytes': 'YWI='}]
    """
    if isinstance(value, np.float16):  # of a pa.Array, before pyarrow 21
        value = float(value)
    if value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    for tag, (class_, write, _) in _TAGS.items():
        if isinstance(value, class_):
            return {tag: write(value)}
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def from_json_value(value: Any) -> Any:
    """The value that `to_json_value` converted.

    >>> from_json_value({"float": "inf"})
    inf
    """
    if isinstance(value, list):
        return [from_json_value(item) for item in value]
    if not isinstance(value, dict):
        return value
    ((tag, content),) = value.items()
    return _TAGS[tag][2](content)


# ---- defaults of tensor columns


def normalized_tensor_default(default: Any, field: pa.Field) -> Any:
    """The default as a field stores it; ValueError or TypeError if it does not have the shape, or the dtype.

    For tensors of one shape: one value for every element, or a flat list of Arrow's values. For others: nested lists.

    >>> from tfrecord_io.bytes.format.dtypes import Dtype
    >>> from tfrecord_io.columns.schema.tensor_types import tensor_field
    >>> normalized_tensor_default([[1 + 2j], [0]], tensor_field("x", Dtype.of_name("complex64"), (2, 1)))
    [1.0, 2.0, 0.0, 0.0]
    """
    element, shape = element_and_shape(field)
    if not is_fixed_shape_tensor(field.type):
        if element.marked:
            raise ValueError(f"no default of {element.name} tensors whose shapes vary")
        return _variable_shape_array(default, element, shape).tolist()
    size = field.type.storage_type.list_size
    if element.marked and _is_normalized(default, element, size):
        return default
    if element.marked or isinstance(default, np.ndarray | list | tuple):
        data = np.ascontiguousarray(_fixed_shape_array(default, element, shape)).reshape(-1).view(np.uint8)
        width = max(element.arrow.bit_width // 8, 1)
        return pa.Array.from_buffers(element.arrow, data.size // width, [None, pa.py_buffer(data)]).to_pylist()
    return default.item() if isinstance(default, np.generic) else default


def tensor_default_array(default: Any, field: pa.Field) -> pa.Array:
    """A normalized default as an array of one row."""
    element, shape = element_and_shape(field)
    if is_fixed_shape_tensor(field.type):
        values = default if isinstance(default, list) else [default] * field.type.storage_type.list_size
        storage = pa.array([values], field.type.storage_type)
    else:
        array = _variable_shape_array(default, element, shape)
        storage = pa.array([{"data": array.reshape(-1).tolist(), "shape": list(array.shape)}], field.type.storage_type)
    return pa.ExtensionArray.from_storage(field.type, storage)


def narrow(numbers: Array, element: Dtype) -> tuple[Array, int]:
    """Cast numbers to a dtype, floats rounded; return the index of the first that does not fit, or −1.

    Of floats, that is one without an infinity to round it to.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        values = numbers.astype(element.dtype)
        kept = values.astype(element.wide)
        is_lost = (kept != numbers if element.wide.kind in "iu" else np.isnan(kept) & ~np.isnan(numbers)).reshape(-1)
    return values, int(is_lost.argmax()) if is_lost.any() else -1


def _fixed_shape_array(default: Any, element: Dtype, shape: Shape) -> Array:
    array = np.asarray(default)
    if array.dtype == object:  # dates and times
        array = np.asarray(default, element.dtype)
    if not np.can_cast(array.dtype, element.wide, "same_kind") and array.dtype.kind not in "iub":
        raise ValueError(f"expected {element.name}, got {array.dtype}")
    cast, misfit = narrow(array, element) if element.wide.kind in "iuf" else (array.astype(element.dtype), -1)
    if misfit >= 0:
        raise ValueError(f"{array.reshape(-1)[misfit]} does not fit {element.name}")
    sizes: Any = shape  # these shapes have no unknown dimension
    return cast.reshape(sizes) if cast.ndim else np.broadcast_to(cast, sizes)


def _variable_shape_array(default: Any, element: Dtype, shape: Shape) -> Array:
    array = np.asarray(default, element.dtype)
    if not array.size:
        array = array.reshape([axis or 0 for axis in shape])
    if array.ndim != len(shape) or any(axis not in (None, size) for axis, size in zip(shape, array.shape, strict=True)):
        raise ValueError(f"expected the shape {shape}, got {array.shape}")
    return array


def _is_normalized(default: Any, element: Dtype, size: int) -> bool:
    if not isinstance(default, list) or len(default) != size:
        return False
    if element.is_extension:  # Arrow makes bytes of text, too
        return all(isinstance(value, bytes) and len(value) == element.itemsize for value in default)
    try:
        pa.array(default, element.arrow)
    except (pa.ArrowException, TypeError, ValueError):
        return False
    return True


# Further keys in the metadata of a pa.Field, as in `column_features`.
SHAPE_KEY = b"tfrecord_io.shape"  # JSON: numbers, null for an unknown dimension
IMAGE_KEY = b"tfrecord_io.image"  # JSON: the arguments of tfrecord_io.image
RAW_IMAGE_KEY = b"tfrecord_io.raw_image"  # JSON: those for raw pixels, in a column of tensors
ROW_DIMENSION = "record"  # the dimension of the rows, in what is made of columns
TYPE_ATTRIBUTE = "tfrecord_io.type"  # of times that NumPy has as another type: the name of the original type
BOXES_KEY = b"tfrecord_io.boxes"  # of TFDS: the order and unit of a box's numbers, if that is not "REL_YXYX"

_COLUMN_PROPERTIES = {
    FEATURE_KEY: "feature=",
    DEFAULT_KEY: "default=",
    EMPTY_KEY: "empty=",
    SHAPE_KEY: "a shape beside its type",
    IMAGE_KEY: "the form of an image",
    RAW_IMAGE_KEY: "the form of an image",
}
_TYPE_WIDTH = 1000  # characters of a type's name

NULL = "null"  # the value of `Field.empty`
PARTS = (CONTEXT, FEATURE_LIST)
_NONE: Mapping[bytes, bytes] = MappingProxyType({})


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False, repr=False)
class Field:
    """A column and the feature that it is read from.

    >>> Field("label", pa.int32())
    Field(label: int32)

    Parameters
    ----------
    column : str
        Name of the column. The field makers leave it empty: the key in a Schema's dict gives it.
    type : pa.DataType
        Type of the column.
    feature : str, optional
        Name of the feature in the records; the column's name if not given.
    encoding : {"list", "raw", "wire", "tensor_proto", "npy", "nested", "json"}
        "list": the values themselves; "raw": the bytes of an array; "wire": raw where a record has bytes, values where
        it has numbers; "tensor_proto": a serialized TensorProto; "npy": what ``numpy.save`` writes; "nested" and
        "json": several features, or a text, of structs, maps and lists of lists.
    required : bool, optional
        True: a record without the feature is an error; in Arrow a field that is not nullable. False: the feature may be
        missing, from all records too. None, not stated: the same, but a read warns if no record has it. False and None
        compare equal and are the same in Arrow and JSON; a pickle keeps the difference.
    default : object, optional
        The value where the feature is absent (see `empty` too). None: null. For a fixed number of values either all of
        them (nested as the shape is, or flat) or one for every element.
    shape : tuple of int or None, optional
        Of a value, or of one step of a feature list; None (or −1) is an unknown dimension. Types of fixed size imply
        it. For lists the number of values is checked; for text and binary it describes what the bytes decode to.
    part : {"context", "feature_list"}, optional
        Where a SequenceExample has it; an Example is all context. By default lists of lists and lists of tensors are
        feature lists.
    empty : {None, "null"}
        "null": a feature that has a type but no values, as Ray writes nulls, is treated as absent. None: it is an
        error, or an empty list in a column of lists.
    metadata : mapping of bytes to bytes
        Metadata of the Arrow field; not compared.
    """

    column: str
    type: pa.DataType
    feature: str = None  # type: ignore[assignment]  # always a str after __post_init__
    encoding: str = LIST
    required: bool | None = None
    default: Any = None
    metadata: Mapping[bytes, bytes] = field(default_factory=dict)
    shape: Shape | None = None
    part: str = None  # type: ignore[assignment]  # always one of PARTS after __post_init__
    empty: str | None = None
    is_common: bool = field(init=False)  # whether type, name and feature say all: such a field needs no checks

    def __post_init__(self) -> None:
        if self.feature is None:
            object.__setattr__(self, "feature", self.column)
        is_bare = self.encoding == LIST and self.shape is None and self.default is None and self.empty is None
        is_common = is_bare and self.part in (None, CONTEXT) and plain_kind(self.type) is not None
        is_common = is_common and COMPOSITE_KEY not in self.metadata and ShapeSource.entry_of(self.metadata) is None
        object.__setattr__(self, "is_common", is_common)
        if is_common:
            object.__setattr__(self, "part", CONTEXT)
            object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)) if self.metadata else _NONE)
            return
        if not TENSOR_ENCODINGS.has(self.encoding):
            names = TENSOR_ENCODINGS.names()
            reason = f"{self.encoding!r} is not a tensor encoding; valid names: {', '.join(names)}"
            raise SchemaError(reason, feature=self.feature or None, expected=names, got=self.encoding)
        if self.required and t.is_null(self.type):
            raise SchemaError("a column of nulls cannot be required", feature=self.feature or None)
        try:
            refuse_deep(self.feature, self.type)
        except UnsupportedType as error:
            raise SchemaError(error.reason, feature=self.feature or None, hint=error.advice) from error
        self._set_part()
        if t.is_nested(self.type):
            may_have = not is_composed(self.encoding) and self.part != FEATURE_LIST and self.default is None
            self._refuse_open_parts(self.type, may_have=may_have)
        if self.empty not in (None, NULL) or (self.empty and self.part == FEATURE_LIST):
            expected = f"None or {NULL!r}" if self.part == CONTEXT else "None for a feature list"
            reason = f"empty={self.empty!r}: expected {expected}"
            raise SchemaError(reason, feature=self.feature or None, expected=expected, got=self.empty)
        self._set_bool_tensors()
        self._set_shape()
        if self.default is not None:
            self._set_default()
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)) if self.metadata else _NONE)

    def _refuse_open_parts(self, type_: pa.DataType, *, may_have: bool, in_list: bool = False) -> None:
        """Refuse a nested type with an array whose shape is stored in features, where plain features cannot store it.

        They store fields of structs, of which the column, or a row of it, may be one list.
        """
        is_struct, in_list = t.is_struct(type_), in_list or is_list_like(type_)
        for child in map(type_.field, range(type_.num_fields if t.is_nested(type_) else 0)):
            source, is_list = ShapeSource.from_metadata(child.metadata, self.feature), is_list_like(child.type)
            may_be = may_have and is_struct and not (in_list and is_list)
            if source is not None and source.is_open:
                self._refuse_open_part(child, may_be=may_be)
            elif t.is_nested(child.type):
                may_have_inside = may_be or (may_have and is_list_like(type_) and t.is_struct(child.type))
                self._refuse_open_parts(child.type, may_have=may_have_inside, in_list=in_list)

    def _refuse_open_part(self, part: pa.Field, *, may_be: bool) -> None:
        """Refuse an array whose shape is stored in features, unless it `may_be` in this place."""
        reason = f"'{printable(part.name)}' in it has the shape of other features"
        advice = "declare its feature as a column of its own"
        if may_be:
            name = column_property(part.metadata)
            if name is None:
                return
            reason = f"{reason} and {name}, as only columns may"
        else:
            reason = f"{reason}, as only columns and fields of structs may"
            advice = f"{advice}; lists of arrays by list_(tensor(…))"
        raise SchemaError(reason, feature=self.feature or None, got=str(self.type), hint=advice)

    def _set_part(self) -> None:
        if self.part is None:
            object.__setattr__(self, "part", default_part(self.type, self.encoding))
        if self.part not in PARTS:
            reason: str = f"unknown part={self.part!r}; valid names: {', '.join(map(repr, PARTS))}"
            raise SchemaError(reason, feature=self.feature or None, expected=PARTS, got=self.part)
        if self.part == FEATURE_LIST and not is_list_like(self.type):
            from tfrecord_io.columns.schema.type_names import type_name

            reason = f"a feature list is a list of its steps, not {type_name(self.type)}"
            raise SchemaError(reason, feature=self.feature, hint="make it of sequence()")

    def _set_bool_tensors(self) -> None:
        if is_composed(self.encoding) or (not t.is_nested(self.type) and not is_any_tensor(self.type)):
            return
        try:
            field = store_bools_as_bytes(pa.field(self.column, self.type, metadata=dict(self.metadata) or None))
        except UnsupportedType as error:
            raise SchemaError(error.reason, feature=self.feature, hint=error.advice) from error
        if field.type != self.type:
            object.__setattr__(self, "type", field.type)
            object.__setattr__(self, "metadata", field.metadata or {})

    def _set_shape(self) -> None:
        """Set the shape to the declared one, if the type allows that, else to the shape implied by the type."""
        implied = None
        try:
            implied = shape_of(self.value, self.metadata)
            declared = None if self.shape is None else as_shape(self.shape)
            if declared is not None:
                check_shape(declared, self.value, implied)
        except ValueError as error:
            raise SchemaError(str(error), feature=self.feature, expected=implied, got=self.shape) from None
        shape = implied if declared is None else declared
        is_single = not is_list_like(self.value) and not is_any_tensor(self.value)
        object.__setattr__(self, "shape", None if shape == () and is_single else shape)

    def _set_default(self) -> None:
        default = self.default
        try:
            if is_any_tensor(self.type):
                default = normalized_tensor_default(default, self.tensor)
            else:
                default = _plain(default, self.type)
                if self.part == CONTEXT and self.shape is not None and isinstance(default, list | tuple):
                    default = list(_flat(default))
            object.__setattr__(self, "default", default)
            self.default_array()
            to_json_value(default)
        except CONVERSION_ERRORS as error:
            reason = f"the default {printable(repr(default))} does not fit the type {self.type_name}"
            raise SchemaError(reason, feature=self.feature, expected=self.type_name, got=default) from error

    @property
    def value(self) -> pa.DataType:
        """Type of a row's value; for a feature list that of one step, for a list of arrays that of one array."""
        return self.type.value_type if self.part == FEATURE_LIST or self.is_list_of_arrays else self.type

    @property
    def shape_source(self) -> ShapeSource | None:
        """Where the shape and the dtype of the arrays stand, if that is in other features than companions."""
        return ShapeSource.from_metadata(self.metadata, self.feature)

    @property
    def shape_sources(self) -> tuple[ShapeSource, ...]:
        """As `shape_source`, of the column and of the fields of its structs; empty for most columns."""
        entries = () if self.is_common else shape_entries(self.type, self.metadata).values()
        return tuple(ShapeSource.from_entry(entry, self.feature) for entry in entries)

    @property
    def is_stored_as_bytes(self) -> bool:
        """True if each value, or array, is one of bytes in a record, as far as that is known without a record.

        Arrays whose shape is stored in other features are, unless the sampled records have lists of numbers.
        """
        if encoding_rules(self.encoding).one_value_per_cell:
            return True
        source = self.shape_source
        return source is not None and source.encoding != LIST

    @property
    def is_list_of_arrays(self) -> bool:
        """True if the arrays of a row are the values of one context feature: see `tfrecord_io.list_`."""
        if self.part != CONTEXT or ShapeSource.entry_of(self.metadata) is None:
            return False
        return is_list_of_tensors(self.type)

    @property
    def tensor(self) -> pa.Field:
        """The field of a row's tensor; for a feature list that of one step's, in a list that of one array."""
        return pa.field(self.column, self.value, metadata=dict(self.metadata))

    @property
    def type_name(self) -> str:
        """Name of the type, for display; for tensors with the dtype and the shape that NumPy has."""
        from tfrecord_io.columns.schema.type_names import logical_name

        return printable(logical_name(self.type, self.metadata), _TYPE_WIDTH)

    def default_array(self) -> pa.Array:
        """The default as an array of one row; for a dictionary column its plain value."""
        if is_any_tensor(self.type):
            return tensor_default_array(self.default, self.tensor)
        type_ = self.type.value_type if t.is_dictionary(self.type) else self.type
        storage = type_.storage_type if isinstance(type_, pa.BaseExtensionType) else type_
        default = self.default
        if t.is_fixed_size_list(storage) and not isinstance(default, list | tuple):
            default = [default] * storage.list_size
        array = pa.array([default], storage)
        if _loses_part(default, storage):
            raise ValueError("Arrow would drop the fraction, the time of day or the zone")
        return pa.ExtensionArray.from_storage(type_, array) if isinstance(type_, pa.BaseExtensionType) else array

    def _key(self) -> tuple[Any, ...]:
        """Key for comparisons; the default as text, in which 0, False and 0.0 differ and NaN equals itself."""
        default = None if self.default is None else json_text(to_json_value(self.default))
        entries = () if self.is_common else tuple(shape_entries(self.type, self.metadata).items())
        stated = *map(self.metadata.get, (Dtype.KEY, IMAGE_KEY, RAW_IMAGE_KEY)), entries
        required = bool(self.required)
        plain = (self.column, self.type, self.feature, self.encoding, self.shape, self.part, self.empty)
        return *plain, *stated, required, default

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Field) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.column, self.feature, self.encoding, bool(self.required), self.shape, self.part))

    def __repr__(self) -> str:
        text = "".join(f", {k} {v}".rstrip() for k, v in self.notes().items())
        name = f"{printable(self.column)}: " if self.column else ""
        return f"Field({name}{self.type_name}{text})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (pa.schema([self.to_arrow()]).serialize().to_pybytes(), self.default, self.required)

    def notes(self) -> dict[str, str]:
        """Notes of the field beside name and type, for display."""
        noted = [*_image_notes(self.metadata.get(IMAGE_KEY, b"")), *_raw_image_notes(self.metadata)]
        image = {name: printable(str(value), 40) for name, value in noted}
        notes = {
            "feature list": "" if self.part == FEATURE_LIST else None,
            "feature": printable(self.feature) if self.feature != self.column else None,
            "encoding": self.encoding if self.encoding != LIST else None,
            "list of arrays": "" if self.is_list_of_arrays else None,
            "stored as": stored_as(self.to_arrow()),
            "shape": str(self.shape) if self.shape != shape_of(self.value, self.metadata) else None,
            **_source_notes(self),
            **image,
            "required": "" if self.required else None,
            "empty": self.empty,
            "default": printable(repr(self.default)) if self.default is not None else None,
        }
        return {name: note for name, note in notes.items() if note is not None}

    def named(self, column: str) -> Field:
        """Return this field as column `column`; the feature is renamed too, unless it has a name of its own."""
        return replace(self, column=column, feature=column if self.feature == self.column else self.feature)

    @classmethod
    def from_arrow(cls, source: pa.Field) -> Field:
        """Convert a pa.Field; one that is not nullable is required.

        SchemaError if its metadata is damaged, or describes an invalid field.
        """
        metadata = dict(source.metadata or {})
        if not metadata:
            return cls(source.name, source.type, required=None if source.nullable else True)
        metadata.pop(ENCODING_KEY, None)
        feature = metadata.pop(FEATURE_KEY, source.name.encode()).decode("utf-8", "replace")
        part, empty = (metadata.pop(key, b"").decode("utf-8", "replace") or None for key in (PART_KEY, EMPTY_KEY))
        try:
            shape, default = (_from_json(metadata.pop(key, None)) for key in (SHAPE_KEY, DEFAULT_KEY))
            default = from_json_value(default)
        except CONVERSION_ERRORS as error:
            reason = "its metadata is damaged: tfrecord_io.shape, tfrecord_io.default"
            raise SchemaError(reason, feature=feature) from error
        encoding, required = encoding_of(source) or LIST, None if source.nullable else True
        attributes = (feature, encoding, required, default, metadata, shape, part, empty)
        return cls(source.name, source.type, *attributes)  # type: ignore[arg-type]

    def to_arrow(self) -> pa.Field:
        """Convert to a pa.Field; its metadata holds what a pa.Field has no attribute for."""
        metadata = dict(self.metadata)
        if self.feature != self.column:
            metadata[FEATURE_KEY] = self.feature.encode()
        if self.is_common:
            return pa.field(self.column, self.type, nullable=not self.required, metadata=metadata or None)
        if self.encoding != LIST:
            metadata[ENCODING_KEY] = self.encoding.encode()
        if self.part != default_part(self.type, self.encoding):
            metadata[PART_KEY] = self.part.encode()
        if self.shape != shape_of(self.value, self.metadata):
            metadata[SHAPE_KEY] = json_text(self.shape).encode()
        if self.empty is not None:
            metadata[EMPTY_KEY] = self.empty.encode()
        if self.default is not None:
            metadata[DEFAULT_KEY] = json_text(to_json_value(self.default)).encode()
        return pa.field(self.column, self.type, nullable=not self.required, metadata=metadata or None)

    @property
    def size(self) -> int | None:
        """The number of values in a row (or step), where it is fixed."""
        return None if self.shape is None else size_of(self.shape)


def _from_json(text: bytes | None) -> Any:
    """The value of JSON text; None without a text."""
    if text is None:
        return None
    import json  # few fields have values in JSON

    return json.loads(text)


def column_property(metadata: Mapping[bytes, bytes] | None) -> str | None:
    """The property of columns alone, never of fields of structs, in the metadata of a field; None without one."""
    return next((name for key, name in _COLUMN_PROPERTIES.items() if key in (metadata or {})), None)


def default_part(type_: pa.DataType, encoding: str) -> str:
    if is_composed(encoding) or not is_list_like(type_):
        return CONTEXT
    return FEATURE_LIST if is_list_like(type_.value_type) or is_any_tensor(type_.value_type) else CONTEXT


def _source_notes(field: Field) -> dict[str, str]:
    """The features that state the shape and the dtype of a tensor."""
    source = field.shape_source
    if source is None:
        return {}
    notes = {"shape from": printable(repr(source.axes), 80)} if source.sizes else {}
    return notes if source.dtype is None else {**notes, "dtype from": printable(source.dtype)}


def _image_notes(text: bytes) -> Iterator[tuple[str, Any]]:
    """The mode and other arguments in the metadata of an image column."""
    try:
        metadata = _from_json(text)
    except CONVERSION_ERRORS:
        return
    if isinstance(metadata, dict):
        yield "image", metadata.get("mode", "")
        for name, value in metadata.items():
            if name != "mode" and value is not None:
                yield printable(name, 40), tuple(value) if isinstance(value, list) else value


def _raw_image_notes(metadata: Mapping[bytes, bytes]) -> Iterator[tuple[str, Any]]:
    """The layout and other arguments in the metadata of a column of raw pixels."""
    for name, value in _image_notes(metadata.get(RAW_IMAGE_KEY, b"")):
        if name == "layout":
            yield "raw image", value
        elif name != "image":
            yield name, value


def _plain(default: Any, type_: pa.DataType) -> Any:
    """The default without classes of NumPy; times with nanoseconds, which Python lacks, as numbers of the type's unit.

    ValueError if the unit does not hold a time.
    """
    if isinstance(default, np.ndarray):
        default = list(default) if default.ndim and default.dtype.kind in "mM" else default.tolist()
    if isinstance(default, list | tuple) and is_list_like(type_):
        return [_plain(item, type_.value_type) for item in default]
    if isinstance(default, dict) and t.is_struct(type_):
        children = {child.name: child.type for child in type_}
        return {name: _plain(item, children.get(name, type_)) for name, item in default.items()}
    type_ = type_.value_type if t.is_dictionary(type_) else type_
    is_of_pandas = getattr(default, "nanosecond", 0) or getattr(default, "nanoseconds", 0)
    time = default.to_numpy() if is_of_pandas else default
    if isinstance(time, np.datetime64 | np.timedelta64) and isinstance(time.tolist(), int):
        is_misplaced = getattr(default, "tzinfo", None) is not None and getattr(type_, "tz", None) is None
        if is_misplaced or not (t.is_timestamp(type_) or t.is_duration(type_)):
            raise ValueError("the type holds no such time")
        number = time.astype(f"{time.dtype.kind}8[{type_.unit}]")
        if number != time:
            raise ValueError("the unit is too coarse")
        return int(number.astype(np.int64))
    return default.tolist() if isinstance(default, np.generic) else default


def _loses_part(default: Any, type_: pa.DataType) -> bool:
    """True if Arrow would drop a part silently: a fraction, the time of day, or a time zone."""
    while is_list_like(type_):
        type_ = type_.value_type
    values = list(_flat(default)) if isinstance(default, list | tuple) else [default]
    if t.is_struct(type_):
        return any(_loses_part(v.get(child.name), child.type) for v in values if isinstance(v, dict) for child in type_)
    if t.is_integer(type_):
        return any(isinstance(v, float | Decimal) and v != v // 1 for v in values)
    if t.is_date(type_):
        return any(isinstance(v, dt.datetime) and (v.tzinfo is not None or v.time() != dt.time()) for v in values)
    has_unit = t.is_timestamp(type_) or t.is_time(type_) or t.is_duration(type_)
    step = {"s": 1_000_000, "ms": 1000}.get(type_.unit, 1) if has_unit else 1  # in microseconds
    if any(getattr(v, name, 0) % step for v in values for name in ("microsecond", "microseconds")):
        return True
    is_naive = t.is_time(type_) or (t.is_timestamp(type_) and type_.tz is None)
    return is_naive and any(getattr(v, "tzinfo", None) is not None for v in values)


def _flat(values: Any) -> Iterator[Any]:
    """The values of nested lists."""
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value


def check_names(fields: Sequence[Field]) -> None:
    """See `check_columns`."""
    check_columns(list(map(attrgetter("column"), fields)), map(attrgetter("feature"), fields))


def check_columns(columns: Sequence[str], features: Iterable[str] = ()) -> None:
    """Raise SchemaError where two columns have the same name, or a name is not a str or has a lone surrogate."""
    names = [*columns, *features]
    try:
        "".join(names).encode()
    except TypeError:
        name = next(name for name in names if not isinstance(name, str))
        raise SchemaError(f"a column's name is a str, not {type(name).__name__}", expected="str", got=name) from None
    except UnicodeEncodeError as error:
        name = next(name for name in names if error.object[error.start] in name)
        raise SchemaError("the name cannot be encoded as UTF-8 (a lone surrogate)", feature=name) from None
    if len(set(columns)) == len(columns):
        return
    for column, count in Counter(columns).items():
        if count > 1:
            raise SchemaError("a schema names this column twice", feature=column)


def _unpickle(source: bytes, default: Any, required: bool | None) -> Field:
    """The field from a schema message, since Arrow's own type of tensors whose shapes vary cannot be pickled."""
    register_variable_shape_tensor()
    return replace(
        Field.from_arrow(pa.ipc.read_schema(pa.py_buffer(source)).field(0)), default=default, required=required
    )
