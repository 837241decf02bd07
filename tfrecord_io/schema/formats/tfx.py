"""Schemas of TFX (TensorFlow Data Validation's ``schema.pbtxt``), read and written without tensorflow_metadata.

How TFX's descriptions are converted:

========================================  ==============================================================================
TFX                                       this package
========================================  ==============================================================================
type INT, FLOAT, BYTES, none              int64, float, binary, null
bool_domain, of INT                       bool
int_domain                                an integer type where the range is exactly that type's, else int64
time_domain with integer_format           timestamp of that unit, date32 for UNIX_DAYS
string, natural language, URL, MID …      string; a categorical string_domain (CATEGORICAL_YES) a dictionary of strings
domains                                   the values of a domain are not enforced: TFX only reports other values
shape                                     ``{}`` a value, one axis a fixed_size_list, more a tensor
value_count, value_counts                 min = max = 1 a value, min = max a fixed_size_list, else a list
presence                                  nothing: a feature that is absent or has no type is null, as in tfx_bsl
STRUCT ``##SEQUENCE##``, or the only one  feature lists: list<list<T>>, or list<T> if the second value_count is 1;
                                          ``##SEQUENCE##.x`` is the column of a list x if the context has an x too
other STRUCTs                             a struct column, read from ``outer/inner``
deprecated, lifecycle stages not in use   left out, as tfx_bsl does
tensor_representation_group               dense: shape, and a default or required; varlen: list; ragged: nested lists;
                                          columns are named after the tensors
sparse_feature, sparse tensors            the features of indices and values, as lists
========================================  ==============================================================================

Writing is the reverse. What TFX cannot describe (text that is not categorical, int16 in a tensor, …) is written to an
annotation's tag, which is used as long as the feature is as it was written; other programs ignore it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError as ProtobufError
from google.protobuf.message import Message
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.options import StorageOptions
from tfrecord_io.schema.composite import composite_of
from tfrecord_io.schema.field import Field, check_names
from tfrecord_io.schema.formats.json import to_json
from tfrecord_io.schema.formats.tfx_messages import STRUCT, SchemaMessage
from tfrecord_io.schema.formats.tfx_read import SEQUENCE, TAG, TfxSchemaReader
from tfrecord_io.schema.formats.tfx_write import feature_message, representation_of
from tfrecord_io.schema.leaf import FEATURE_LIST
from tfrecord_io.storage.paths.plain_files import Directory

_BINARY_BYTES = bytes(set(range(32)) - set(b"\t\n\v\f\r"))  # in a message's tags and lengths, never in its text


def from_tfx(
    source: str | bytes | os.PathLike[str],
    tensor_representation_group: str,
    sequence_feature: str | None,
    storage_options: Mapping[str, Any] | None,
    filesystem: Any,
) -> list[Field]:
    """The fields that a TFX schema describes; see `Schema.from_tfx`."""
    path = None
    if isinstance(source, bytes | bytearray | memoryview):
        content = bytes(source)
    elif isinstance(source, str) and ("{" in source or not source.strip()):
        content = source.encode()
    else:
        path = os.fspath(source)
        content = _read(path, StorageOptions(storage_options, filesystem))
    try:
        fields = TfxSchemaReader(_parsed(content), tensor_representation_group, sequence_feature).fields()
        check_names(fields)
        return fields
    except SchemaError as error:
        error.path = path
        raise


def _read(path: str, storage: StorageOptions) -> bytes:
    head, _, name = path.replace(os.sep, "/").rpartition("/")
    content = Directory(head or ("/" if path.startswith("/") else "."), storage).read(name)
    if content is None:
        raise FileNotFoundError(2, "no such file", path)
    return content


def _parsed(content: bytes) -> Any:
    message = SchemaMessage()
    try:
        if content.translate(None, _BINARY_BYTES) == content:
            text_format.Parse(content.decode(), message, allow_unknown_extension=True, allow_unknown_field=True)
        else:
            message.ParseFromString(content)
    except (text_format.ParseError, ProtobufError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaError(f"it is not a TFX schema ({error})") from error
    if not _is_text_valid(message):
        raise SchemaError("it is not a TFX schema (a name or another text in it is not UTF-8)")
    return message


def _is_text_valid(message: Any) -> bool:
    """Whether all strings of a message are UTF-8, which parsers of proto2 do not check."""
    try:
        for field, value in message.ListFields():
            is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
            single = isinstance(value, Message | str | bytes | int | float)
            values = [value] if single else [*value, *value.values()] if is_map else value
            for item in values:
                if isinstance(item, bytes):
                    if field.type != field.TYPE_BYTES:
                        return False
                elif isinstance(item, Message) and not _is_text_valid(item):
                    return False
    except UnicodeDecodeError:
        return False
    return True


def to_tfx(fields: Iterable[Field]) -> str:
    """A schema of these fields as the text of a ``schema.pbtxt``; see `Schema.to_tfx`."""
    message = SchemaMessage()
    for column in fields:
        for field in _flat(column):
            single = SchemaMessage()  # of this feature and its tensor, unless that uses other features, too
            _add_feature(field, single)
            _add_representation(field, single, with_sparse=False)
            target = _add_feature(field, message)
            if TfxSchemaReader(single).fields() != [field]:
                target.annotation.tag.append(TAG + to_json([field]))
            _add_components(field, message)
            _add_representation(field, message)
    text = text_format.MessageToString(message, as_utf8=True)
    return "".join(c if c.isprintable() or c == "\n" else _octal(c) for c in text)


def _octal(character: str) -> str:
    """A character of a string as the text format escapes its bytes."""
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def _add_feature(field: Field, message: Any) -> Any:
    """Add the feature to the message, or to its ``##SEQUENCE##``; returns it."""
    target = message.feature
    if field.part == FEATURE_LIST:
        steps = next((f for f in message.feature if f.name == SEQUENCE and f.type == STRUCT), None)
        target = (steps or message.feature.add(name=SEQUENCE, type=STRUCT)).struct_domain.feature
    added = target.add()
    added.CopyFrom(feature_message(field))
    return added


def _add_representation(field: Field, message: Any, *, with_sparse: bool = True) -> None:
    tensor = representation_of(field)
    if tensor is not None and (with_sparse or tensor[1].WhichOneof("kind") != "sparse_tensor"):
        message.tensor_representation_group[""].tensor_representation[tensor[0]].CopyFrom(tensor[1])


def _flat(field: Field) -> Iterator[Field]:
    """The field, or for a struct a field for each leaf, as it is stored."""
    if not t.is_struct(field.type):
        yield field
        return
    for child in field.type:
        yield from _flat(Field(f"{field.column}/{child.name}", child.type, f"{field.feature}/{child.name}"))


def _add_components(field: Field, message: Any) -> None:
    """Add the features of a composite column other than its values."""
    composite = composite_of(field)
    for feature, type_ in [] if composite is None else list(composite.components())[1:]:
        message.feature.add().CopyFrom(feature_message(Field(feature, type_)))
