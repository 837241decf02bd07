"""The feature types, the layouts of a column and the record types: what engines, plans and columns are described by.

Tests: tests/bytes/engine/test_fast_paths.py and tests/bytes/engine/test_equivalence.py.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]


class Kind(IntEnum):
    """The feature type: the oneof of tf.train.Feature, numbered as its fields are (feature.proto)."""

    NONE = 0
    BYTES = 1
    FLOAT = 2
    INT64 = 3

    @property
    def description(self) -> str:
        """The name for error messages.

        >>> Kind.INT64.description
        'an Int64List'
        """
        return ("no values", "a BytesList", "a FloatList", "an Int64List")[self]

    @property
    def list_name(self) -> str:
        """The name of its field in tf.train.Feature, empty for `NONE`.

        >>> Kind.INT64.list_name
        'int64_list'
        """
        return ("", "bytes_list", "float_list", "int64_list")[self]

    def hint_for(self, got: Kind, layout: Layout | None) -> tuple[str, str]:
        """The hint, and that for the command, where a feature of a layout has another type than its column reads."""
        text = "pass schema= with a type that fits, or exclude the feature with columns="
        if got is Kind.BYTES and self in (Kind.INT64, Kind.FLOAT) and layout is Layout.LIST:
            text = f"declare arrays that are stored as bytes with tfr.tensor(dtype, shape), or {text}"
        return text, "pass --type with a type that fits, or exclude the feature with --columns"

    @staticmethod
    def image_advice(value: object) -> str | None:
        """How to store an image of Pillow, which no feature type holds; None for other values."""
        if type(value).__module__.partition(".")[0] != "PIL":
            return None
        encoded = "buffer = io.BytesIO(); image.save(buffer, 'PNG'); buffer.getvalue()"
        return f"store its encoded file: {encoded}; or its pixels: np.asarray(image)"


class Layout(IntEnum):
    """How many values a row of a column has."""

    ANY = 0  # in a plan only: as the records say
    NULL = 1  # no row has a value
    SCALAR = 2  # exactly one, or null
    LIST = 3  # any number, or null


class Text(IntEnum):
    """The requirement of a plan on the bytes values of a column."""

    NO = 0  # any bytes, not checked
    TRACK = 1  # any bytes; report whether all are text
    UTF8 = 2  # valid UTF-8 or a fault
    STRICT = 3  # text (valid UTF-8, no control characters but \t \n \r) or a fault


class RecordType(IntEnum):
    """Which message a payload is parsed as."""

    EXAMPLE = 1
    SEQUENCE_EXAMPLE = 2
    DETECT = 3  # Example until a feature list parses, SequenceExample from then on

    @staticmethod
    def by_option() -> dict[object, RecordType]:
        """The types by the value of ``record_type=``; "bytes" records are not parsed."""
        return {None: RecordType.DETECT, "example": RecordType.EXAMPLE, "sequence_example": RecordType.SEQUENCE_EXAMPLE}
