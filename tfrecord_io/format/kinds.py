"""The kinds of a Feature and the layouts of a column: the words in which records and columns are compared."""

from __future__ import annotations

from enum import IntEnum

EMBEDDED_FIELD = 21574  # the unknown field of a record that carries our schema


class Kind(IntEnum):
    """The oneof of tf.train.Feature; the numbers are its field numbers (feature.proto)."""

    NONE = 0
    BYTES = 1
    FLOAT = 2
    INT64 = 3

    @property
    def words(self) -> str:
        """As messages name it.

        >>> Kind.INT64.words
        'an Int64List'
        """
        return ("no values", "a BytesList", "a FloatList", "an Int64List")[self]


class Layout(IntEnum):
    """How many values a row of a column has."""

    ANY = 0  # in a plan only: as the records say
    NULL = 1  # no row has a value
    SCALAR = 2  # exactly one, or null
    LIST = 3  # any number, or null


class Text(IntEnum):
    """What a plan asks of the bytes values of a column."""

    NO = 0  # any bytes, never looked at
    TRACK = 1  # any bytes; say whether all are text
    UTF8 = 2  # valid UTF-8 or a fault
    STRICT = 3  # text (valid UTF-8, no control characters but \t \n \r) or a fault


class RecordType(IntEnum):
    """Which message a payload is parsed as."""

    EXAMPLE = 1
    SEQUENCE_EXAMPLE = 2
    DETECT = 3  # Example until a feature list parses, SequenceExample from then on
