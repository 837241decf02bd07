"""Schemas of TFX (TensorFlow Data Validation's ``schema.pbtxt``), read and written without tensorflow_metadata.

What TFX says, and what becomes of it:

========================================  ==================================================================================
TFX                                       here
========================================  ==================================================================================
type INT, FLOAT, BYTES, none              int64, float, binary, null
bool_domain, of INT                       bool
int_domain                                an integer type where the range is exactly that type's, else int64
time_domain with integer_format           timestamp of that unit, date32 for UNIX_DAYS
string, natural language, URL, MID …      string; a string_domain with ``is_categorical: CATEGORICAL_YES`` a dictionary of strings.
domains                                   The values of a domain are not enforced, as TFX only reports those that are none
shape                                     ``{}`` a value, one axis a fixed_size_list, more a tensor
value_count, value_counts                 min = max = 1 a value, min = max a fixed_size_list, else a list
presence                                  required where min_fraction is 1
STRUCT ``##SEQUENCE##``                   its features are feature lists: list<list<T>>, list<T> if the second of value_counts is 1
STRUCT of another name                    a struct column, read from ``outer/inner``
deprecated, lifecycle stages not in use   left out, as tfx_bsl does
tensor_representation_group               dense: shape, default, or required; varlen: list; ragged: lists in lists; columns get the
                                          names of the tensors
sparse_feature, sparse tensors            the features of indices and values, as lists
========================================  ==================================================================================

Written is the same, read backwards. What TFX has no words for (text that is not categorical, int16 in a tensor, …) stands in an
annotation's tag, which counts as long as the feature is left as it was written; all others pass it by.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from google.protobuf import text_format
from google.protobuf.message import DecodeError as ProtobufError

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.formats.tfx_export import message_of
from tfrecord_io.schema.formats.tfx_messages import SchemaMessage
from tfrecord_io.schema.formats.tfx_read import Import
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.paths.folders import Folder

_BINARY_BYTES = bytes(set(range(32)) - set(b"\t\n\v\f\r"))  # in a message's tags and lengths, never in its text


def from_tfx(
    source: str | bytes | os.PathLike[str],
    *,
    tensor_representation_group: str = "",
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> Schema:
    """The schema that a TFX schema describes.

    Parameters
    ----------
    source : str, PathLike or bytes
        A file, local or behind a URL, in text (``schema.pbtxt``) or binary form; or its content. A str with a "{" is content.
    tensor_representation_group : str
        Which group's tensors are meant, where there are several.
    storage_options, filesystem
        For fsspec.

    Returns
    -------
    Schema
        See the module's text.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    SchemaError
        It is no TFX schema, or describes what no record can be.

    Examples
    --------
    >>> from_tfx('''
    ... feature { name: "age" type: INT presence { min_fraction: 1 } shape {} int_domain { min: 0 max: 255 } }
    ... feature { name: "tokens" type: BYTES string_domain { value: "a" } }
    ... ''')
    Schema of 2 columns
      age     uint8               required
      tokens  list<item: string>
    """
    path = None
    if isinstance(source, bytes | bytearray | memoryview):
        content = bytes(source)
    elif isinstance(source, str) and ("{" in source or not source.strip()):
        content = source.encode()
    else:
        path = os.fspath(source)
        content = _read(path, storage_options, filesystem)
    try:
        return Schema(Import(_parsed(content), tensor_representation_group).fields())
    except SchemaError as error:
        error.path = path
        raise


def to_tfx(schema: Schema) -> str:
    """A schema in TFX's words, as the text of a ``schema.pbtxt``.

    Parameters
    ----------
    schema : Schema
        A struct column becomes the features that it is written as.

    Returns
    -------
    str
        Read back by `from_tfx` it is the same schema, but for structs.

    Raises
    ------
    SchemaError
        A type has no form in a record.

    Examples
    --------
    >>> from tfrecord_io.schema.field_makers import scalar
    >>> print(to_tfx(Schema({"label": scalar("bool", required=True)})))
    feature {
      name: "label"
      type: INT
      bool_domain {
      }
      presence {
        min_fraction: 1...
        min_count: 1
      }
      shape {
      }
    }
    <BLANKLINE>
    """
    return str(text_format.MessageToString(message_of(Schema.parse(schema)), as_utf8=True))


def _read(path: str, storage_options: Mapping[str, Any] | None, filesystem: Any) -> bytes:
    head, _, name = path.replace(os.sep, "/").rpartition("/")
    content = Folder(head or ("/" if path.startswith("/") else "."), storage_options, filesystem).read(name)
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
        raise SchemaError(f"it is no TFX schema ({error})") from error
    return message
