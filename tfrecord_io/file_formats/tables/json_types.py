"""Types of JSON columns: what pyarrow parses, and what becomes of it."""

from __future__ import annotations

import base64
import binascii

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.output.to_json import BYTES_KEY
from tfrecord_io.schema.types import is_list_like

_BASE64 = pa.struct([(BYTES_KEY, pa.string())])


def read_type(inferred: pa.DataType) -> pa.DataType:
    """The type of a column of which pyarrow inferred another: text is never a time, and base64 objects are bytes.

    >>> read_type(pa.list_(pa.timestamp("s"))), read_type(pa.struct([("base64", pa.string())]))
    (ListType(list<item: string>), DataType(binary))
    """
    if t.is_timestamp(inferred):
        return pa.string()
    if inferred == _BASE64:
        return pa.binary()
    if t.is_list(inferred):
        return pa.list_(read_type(inferred.value_type))
    if t.is_struct(inferred):
        return pa.struct([(child.name, read_type(child.type)) for child in inferred])
    return inferred


def parsed_type(type_: pa.DataType) -> pa.DataType | None:
    """The type that pyarrow parses for a column of `type_`; None if there is none.

    >>> parsed_type(pa.list_(pa.binary()))
    ListType(list<item: struct<base64: string>>)
    """
    if t.is_binary(type_) or t.is_large_binary(type_) or t.is_fixed_size_binary(type_):
        return _BASE64
    if t.is_dictionary(type_):
        return parsed_type(type_.value_type)
    if t.is_struct(type_):
        children = {child.name: parsed_type(child.type) for child in type_}
        return None if None in children.values() else pa.struct(list(children.items()))
    if is_list_like(type_) and not isinstance(type_, pa.BaseExtensionType):
        item = parsed_type(type_.value_type)
        return None if item is None else pa.list_(item)
    if t.is_nested(type_) or isinstance(type_, pa.BaseExtensionType):
        return None
    return pa.string() if t.is_large_string(type_) or t.is_date(type_) or t.is_time(type_) else type_


def decoded(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A parsed array as its column: objects with base64 become bytes, text in the form of ISO 8601 dates and times.

    ArrowInvalid if text is not base64 or of this form, or a value does not fit.
    """
    array = _restored(array, type_)
    return array if array.type == type_ else array.cast(type_)


def _restored(array: pa.Array, type_: pa.DataType) -> pa.Array:
    if t.is_dictionary(type_):
        return _restored(array, type_.value_type)
    if array.type == _BASE64 and not t.is_struct(type_):
        return _bytes(array)
    if t.is_time(type_) and t.is_string(array.type):
        return _times(array, type_)
    if t.is_struct(array.type):
        children = [_restored(array.field(at), child.type) for at, child in enumerate(type_)]
        names = [child.name for child in type_]
        return pa.StructArray.from_arrays(children, names, mask=array.is_null())
    if t.is_list(array.type):
        values = _restored(array.values, type_.value_type)
        return pa.ListArray.from_arrays(array.offsets, values, mask=array.is_null())
    return array


def _bytes(array: pa.Array) -> pa.Array:
    nulls = array.is_null().to_pylist()
    texts = array.field(0).to_pylist()
    values = []
    for missing, text in zip(nulls, texts, strict=True):
        if not missing and text is None:
            raise pa.ArrowInvalid(f'an object with the key "{BYTES_KEY}" has no text')
        try:
            values.append(None if missing else base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError) as error:
            raise pa.ArrowInvalid(f'the text of an object with the key "{BYTES_KEY}" is not base64') from error
    return pa.array(values, pa.binary())


def _times(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Text such as 12:30 and 12:30:00.5 as times, which pyarrow parses of timestamps only."""
    import pyarrow.compute as pc

    return pc.binary_join_element_wise("1970-01-01", array, "T").cast(pa.timestamp(type_.unit)).cast(type_)
