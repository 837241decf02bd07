"""The type map: which kind of Feature, and how many of its values, an Arrow column becomes.

This is the one place that knows it. A column is written as its *leaves*: itself, or for a struct its
children, joined by "/". What a column of a given type is written as, and with which encoding, is the
same for the writer, for the embedded schema and for the reader that restores it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.format.dtypes import Element
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.schema.tensor_types import Shape, element_and_shape, is_any_tensor, value_type_of

ENCODING_KEY = b"tfrecord_io.encoding"  # field metadata; absent means LIST
PART_KEY = b"tfrecord_io.part"  # field metadata: the part of a SequenceExample that a list column stands in
FEATURE_LIST = "feature_list"
LIST = "list"  # the values as they are
RAW = "raw"  # the values' bytes, C order, little-endian, beside companions
TENSOR_PROTO = "tensor_proto"
BY_WIRE = "wire"  # of a declared tensor: bytes are RAW, numbers are LIST, as a record has it
ENCODINGS = (LIST, RAW, TENSOR_PROTO, BY_WIRE)

# The extension types that are written as their storage and restored; see also schema.embedded.
EXTENSIONS = ("arrow.bool8", "arrow.json", "arrow.uuid")


class UnsupportedType(TypeError):
    """A type that has no form in a record; callers make an EncodeError or SchemaError of it."""

    def __init__(self, feature: str, reason: str, advice: str) -> None:
        super().__init__(f"feature '{feature}': {reason}; {advice}")
        self.feature = feature
        self.reason = reason
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Leaf:
    """One feature of the wire and the Arrow values that it stands for.

    Attributes
    ----------
    feature : str
        The feature's name; a struct's children are joined to it by "/".
    path : tuple of str
        Struct children from the column down to the leaf, empty for a plain column.
    type : pyarrow.DataType
        Logical type. Inside a list of structs it is a list of the child's type; run-ends are taken off.
    kind, layout
        Of the feature ``feature`` on the wire: NONE and NULL where nothing is written, BYTES and SCALAR where raw or
        "tensor_proto".
    encoding : str
        "list", "raw" or "tensor_proto".
    element : Element, optional
        Of a column of tensors: the dtype.
    """

    feature: str
    path: tuple[str, ...]
    type: pa.DataType
    kind: Kind
    layout: Layout
    encoding: str = LIST
    element: Element | None = None

    @property
    def companions(self) -> tuple[str, ...]:
        """Names of the features written beside this one: shape (INT64, LIST) and dtype (BYTES, SCALAR)."""
        return companions(self.feature) if self.encoding in (RAW, BY_WIRE) else ()


def companions(feature: str) -> tuple[str, str]:
    """Names of the shape and the dtype companion of a raw feature."""
    return f"{feature}/shape", f"{feature}/dtype"


def feature_of_companion(name: str) -> str | None:
    """The feature that stands beside one of this name, if it is a companion.

    >>> feature_of_companion("x/shape")
    'x'
    """
    feature, slash, last = name.rpartition("/")
    return feature if slash and last in ("shape", "dtype") else None


def encoding_of(field: pa.Field) -> str | None:
    """The encoding that a field's metadata asks for, None where it asks for none."""
    value = (field.metadata or {}).get(ENCODING_KEY)
    return None if value is None else value.decode("utf-8", "backslashreplace")


def with_encoding(field: pa.Field, encoding: str | None) -> pa.Field:
    """`field` with this encoding in its metadata; None and "list", the default, take it out."""
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != ENCODING_KEY}
    if encoding not in (None, LIST):
        metadata[ENCODING_KEY] = encoding.encode()
    return field.with_metadata(metadata or None)


def step_of(field: pa.Field) -> pa.Field | None:
    """The field of one step, where a column is a feature list of a SequenceExample: lists of lists, or lists marked so.

    Raises
    ------
    UnsupportedType
        The steps are structs.
    """
    type = off_run_ends(field.type)
    if not is_list_like(type):
        return None
    marked = (field.metadata or {}).get(PART_KEY) == FEATURE_LIST.encode()
    step = off_run_ends(type.value_type)
    if not marked and not is_list_like(step) and not is_any_tensor(step):
        return None
    if t.is_struct(step.value_type if is_list_like(step) else step):
        raise UnsupportedType(
            field.name,
            f"a feature list of structs ({field.type}) has no form in a record",
            "make its fields columns of their own",
        )
    return field.with_type(type.value_type)


def leaves(field: pa.Field) -> list[Leaf]:
    """Say what a column is written as.

    Parameters
    ----------
    field : pyarrow.Field
        A column. Its metadata (or that of a struct's child) may carry ``tfrecord_io.encoding``.

    Raises
    ------
    UnsupportedType
        The type, or the encoding for this type, has no form in a record.

    Examples
    --------
    >>> [leaf.feature for leaf in leaves(pa.field("a", pa.struct([("x", pa.int8()), ("y", pa.string())])))]
    ['a/x', 'a/y']
    """
    found: list[Leaf] = []
    _collect(field, field.name, (), None, LIST, found)
    return found


def _collect(
    field: pa.Field, feature: str, path: tuple[str, ...], outer: pa.DataType | None, encoding: str, found: list[Leaf]
) -> None:
    """Add the leaves below `field`; `outer` is the list type that they are inside of."""
    encoding = encoding_of(field) or encoding
    type = off_run_ends(field.type)
    if t.is_struct(type):
        if type.num_fields == 0:
            raise UnsupportedType(feature, "a struct without fields has no values to write", "leave the column out")
        for child in type:
            _collect(child, f"{feature}/{child.name}", (*path, child.name), outer, encoding, found)
    elif is_any_tensor(type):
        found.append(_tensor_leaf(field.with_type(type), feature, path, outer, encoding))
    elif is_list_like(type):
        if outer is not None:
            advice = 'write it with record_type="sequence_example", or flatten it'
            raise UnsupportedType(feature, f"a list of lists ({field.type}) has no form in an Example", advice)
        _collect(type.value_field, feature, path, type, encoding, found)
    else:
        logical = type if outer is None else relist(outer, type)
        kind = kind_of(type, feature)
        layout = Layout.NULL if kind == Kind.NONE else Layout.SCALAR if outer is None else Layout.LIST
        if _is_whole(encoding, type, feature):
            kind, layout = Kind.BYTES, Layout.SCALAR
        else:
            encoding = LIST
        found.append(Leaf(feature, path, logical, kind, layout, encoding))


def _is_whole(encoding: str, type: pa.DataType, feature: str) -> bool:
    """Whether the values of a cell are one value on the wire; the encoding is checked."""
    if encoding in (LIST, BY_WIRE) or t.is_null(type):
        return False
    if encoding not in (RAW, TENSOR_PROTO):
        raise UnsupportedType(feature, f"unknown column encoding {encoding!r}", f"use one of {', '.join(ENCODINGS)}")
    if encoding == RAW and not (is_number(type) or t.is_timestamp(type) or t.is_duration(type)):
        kinds = "integers, floats, bools, timestamps and durations"
        raise UnsupportedType(
            feature, f'the encoding "raw" is for {kinds}, not for {type}', "cast the column or leave its encoding out"
        )
    if encoding == TENSOR_PROTO and not (is_number(type) or is_text_or_bytes(type)):
        kinds = "integers, floats, bools, text and bytes"
        raise UnsupportedType(
            feature,
            f'the encoding "tensor_proto" is for {kinds}, not for {type}',
            "cast the column or leave its encoding out",
        )
    return True


_NUMERIC = "biuf"
_TIMES = "mM"


def _tensor_leaf(
    field: pa.Field, feature: str, path: tuple[str, ...], outer: pa.DataType | None, encoding: str
) -> Leaf:
    if outer is not None:
        raise UnsupportedType(
            feature, "a list of tensors has no form in an Example", 'write it with record_type="sequence_example"'
        )
    of, shape = described_column(field, feature)
    kind = "V" if of.name == "bfloat16" else of.dtype.kind
    if encoding in (LIST, BY_WIRE):
        if kind not in _NUMERIC + _TIMES:
            raise UnsupportedType(feature, f"values of {of.name} are none of a record's", f'use the encoding "{RAW}"')
        if len(shape) > 1 and None in shape:
            reason = f"lists do not tell the shapes of tensors that vary in {len(shape)} dimensions"
            raise UnsupportedType(feature, reason, f'use the encoding "{RAW}"')
        return Leaf(feature, path, field.type, Kind.FLOAT if kind == "f" else Kind.INT64, Layout.LIST, LIST, of)
    if encoding not in (RAW, TENSOR_PROTO):
        raise UnsupportedType(feature, f"unknown column encoding {encoding!r}", f"use one of {', '.join(ENCODINGS)}")
    if encoding == TENSOR_PROTO and kind in _TIMES:
        raise UnsupportedType(feature, f"a TensorProto has no {of.name}", f'use the encoding "{RAW}"')
    return Leaf(feature, path, field.type, Kind.BYTES, Layout.SCALAR, encoding, of)


def described_column(field: pa.Field, feature: str) -> tuple[Element, Shape]:
    """The dtype and the shape of a column of tensors; UnsupportedType where no tensors are of its type."""
    try:
        return element_and_shape(field)
    except ValueError as error:
        raise UnsupportedType(feature, str(error), "cast the column to its storage type") from error


def kind_of(type: pa.DataType, feature: str = "") -> Kind:
    """Kind of Feature for one value of `type`, which is no list and no struct; NONE for the null type."""
    if t.is_null(type):
        return Kind.NONE
    if t.is_dictionary(type):
        value = type.value_type
        if t.is_nested(value) or t.is_null(value) or t.is_dictionary(value) or isinstance(value, pa.BaseExtensionType):
            raise UnsupportedType(
                feature, f"a dictionary of {value} values", "decode it first (Array.dictionary_decode)"
            )
        return kind_of(value, feature)
    if is_any_tensor(type):
        return kind_of(value_type_of(type), feature)
    if isinstance(type, pa.BaseExtensionType):
        if type.extension_name not in EXTENSIONS:
            raise UnsupportedType(
                feature,
                f"the extension type {type.extension_name} is not known here",
                "cast the column to its storage type",
            )
        return kind_of(type.storage_type, feature)
    if t.is_boolean(type) or t.is_integer(type) or (t.is_temporal(type) and not t.is_interval(type)):
        return Kind.INT64
    if t.is_floating(type):
        return Kind.FLOAT
    if t.is_decimal(type):
        _refuse_odd_scale(type, feature)
        return Kind.BYTES
    if is_text_or_bytes(type):
        return Kind.BYTES
    raise UnsupportedType(feature, f"values of type {type} have no form in a record", _advice(type))


def _advice(type: pa.DataType) -> str:
    if t.is_map(type):
        return "make it a list of structs, or two list columns, one of keys and one of values"
    if t.is_union(type):
        return "make it a struct with one child for each type"
    return "cast the column to integers or text"


_DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}  # most of a decimal, by its width in bits


def _refuse_odd_scale(type: pa.DataType, feature: str) -> None:
    """Beyond these scales Arrow writes no number as text, and crashes where it reads one (26.0)."""
    digits = _DIGITS[type.bit_width]
    if type.scale > digits or type.precision - type.scale > digits:
        raise UnsupportedType(
            feature, f"numbers of {type} cannot be written as text", "cast it to a scale from 0 to its precision"
        )


def is_text(type: pa.DataType) -> bool:
    """Whether values of `type` are text, with offsets of 32 or 64 bits."""
    return bool(t.is_string(type) or t.is_large_string(type))


def is_text_or_bytes(type: pa.DataType) -> bool:
    """Whether values of `type` are text or bytes, of any layout."""
    plain = t.is_binary(type) or t.is_string(type) or t.is_large_binary(type) or t.is_large_string(type)
    return bool(plain or t.is_fixed_size_binary(type) or _is_view(type))


def _is_view(type: pa.DataType) -> bool:
    return bool(t.is_string_view(type) or t.is_binary_view(type))


def is_number(type: pa.DataType) -> bool:
    """Whether values of `type` are plain NumPy numbers, so that "raw" applies."""
    return bool(t.is_boolean(type) or t.is_integer(type) or t.is_floating(type))


def is_list_like(type: pa.DataType) -> bool:
    """Whether `type` is any kind of list; a map is none."""
    return bool(t.is_list(type) or t.is_large_list(type) or t.is_fixed_size_list(type) or is_list_view(type))


def is_list_view(type: pa.DataType) -> bool:
    """Whether `type` is a list view or a large one."""
    return bool(t.is_list_view(type) or t.is_large_list_view(type))


def relist(outer: pa.DataType, values: pa.DataType | pa.Field) -> pa.DataType:
    """The list type `outer` with other values."""
    if t.is_fixed_size_list(outer):
        return pa.list_(values, outer.list_size)
    if t.is_large_list(outer):
        return pa.large_list(values)
    if t.is_list_view(outer):
        return pa.list_view(values)
    return pa.large_list_view(values) if t.is_large_list_view(outer) else pa.list_(values)


def off_run_ends(type: pa.DataType) -> pa.DataType:
    """The type of the values of run-ends; any other as it is."""
    while t.is_run_end_encoded(type):
        type = type.value_type
    return type


def value_type(type: pa.DataType) -> pa.DataType:
    """Take off list, dictionary, run-end, extension and view wrappers: the type of one value.

    >>> value_type(pa.list_(pa.dictionary(pa.int8(), pa.string_view())))
    DataType(string)
    """
    if is_list_like(type) or t.is_dictionary(type) or t.is_run_end_encoded(type):
        return value_type(type.value_type)
    if is_any_tensor(type):
        return value_type_of(type)
    if isinstance(type, pa.BaseExtensionType):
        return value_type(type.storage_type)
    if _is_view(type):
        return pa.string() if t.is_string_view(type) else pa.binary()
    return type


_WIRE = {Kind.NONE: pa.null(), Kind.BYTES: pa.binary(), Kind.FLOAT: pa.float32(), Kind.INT64: pa.int64()}


def wire_storage(type: pa.DataType) -> pa.DataType:
    """Arrow type of the values on the wire: int64, float32, binary, or null where nothing is written.

    >>> wire_storage(pa.list_(pa.timestamp("ms")))
    DataType(int64)
    """
    return _WIRE[kind_of(value_type(type))]
