"""The interface of an engine, and the types it takes and returns.

An engine decodes bytes into columns and encodes columns as bytes. It has no paths and no error messages: a problem is a
`Fault`, a value with a code and a position. There are two engines, ``native`` (C++) and ``reference`` (protobuf); the
tests run on both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from tfrecord_io.format.dtypes import Array as Array
from tfrecord_io.format.kinds import EMBEDDED_FIELD as EMBEDDED_FIELD
from tfrecord_io.format.kinds import Kind, Layout, RecordType, Text
from tfrecord_io.options import MAX_RECORD_BYTES as MAX_RECORD_BYTES


class FaultCode(IntEnum):
    """What is wrong. Below 16: framing; 16 to 31: wire format; from 32 on: values against the plan."""

    TRUNCATED_HEADER = 1
    TRUNCATED_PAYLOAD = 2
    TRUNCATED_FOOTER = 3
    LENGTH_CRC = 4  # expected = computed CRC, got = stored CRC
    PAYLOAD_CRC = 5  # the same; `byte` = length of the payload
    LENGTH_TOO_LARGE = 6  # expected = limit, got = length; the length's CRC is right

    VARINT_TRUNCATED = 16
    VARINT_TOO_LONG = 17
    LENGTH_PAST_END = 18  # expected = bytes left, got = length
    BAD_WIRE_TYPE = 19  # got = wire type
    FIELD_ZERO = 20
    GROUP_END_UNEXPECTED = 21
    GROUP_UNCLOSED = 22
    GROUP_TOO_DEEP = 23
    KEY_NOT_UTF8 = 24
    PACKED_FLOAT_SIZE = 25  # got = length of the packed run
    FIXED_TRUNCATED = 26
    TAG_TOO_LONG = 27

    WIRE = 31  # of the reference engine: protobuf refuses without a reason

    KIND = 32  # expected, got = Kind
    VALUE_COUNT = 33  # `got` values for a scalar column
    NOT_TEXT = 34  # bytes that are not text for a STRICT column
    NOT_UTF8 = 35  # bytes that are not UTF-8 for a UTF8 column
    UNKNOWN_FEATURE = 36  # a feature that the plan does not name
    MISSING_FEATURE = 37  # a required feature is absent or has no values
    TOO_MANY_FEATURES = 38  # expected = limit
    NAME_IN_BOTH = 39  # one name in the context and in the feature lists


@dataclass(frozen=True, slots=True)
class Fault:
    """A problem with its record and byte; numbers are relative to the start of the call's data."""

    code: FaultCode
    record: int  # index among the records of this call
    offset: int  # first byte of the record's header, in this call's data
    byte: int = -1  # byte inside the payload, −1 if unknown
    feature: str | None = None
    expected: int = 0
    got: int = 0


@dataclass(frozen=True, slots=True)
class Frames:
    """Extents of the payloads in a block: int64 arrays of the same length."""

    starts: Array  # first byte of each payload
    lengths: Array  # bytes of each payload
    consumed: int  # bytes of the complete and valid records of the block


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """One column that a decoder fills, and the checks of its values.

    A column of ``layout`` NULL has no value in any row: values in a record are a KIND fault.
    """

    name: str
    kind: Kind = Kind.NONE  # NONE: that of the first record with values
    layout: Layout = Layout.ANY
    text: Text = Text.TRACK
    required: bool = False
    steps: bool = False  # a feature list; kind, layout and text are those of its steps


@dataclass(frozen=True, slots=True)
class Plan:
    """A schema compiled for a decoder.

    ``unknown`` applies to features outside ``columns`` and ``ignored``: "skip" leaves them out; where ``select(name)``
    is true, "discover" makes them columns of layout ANY and "fault" makes them a fault, else they are left out. A
    feature that is left out is skipped by its length: its values are not parsed.
    """

    columns: tuple[PlanColumn, ...] = ()
    unknown: str = "discover"
    select: Callable[[str], bool] | None = None  # None: all
    ignored: frozenset[str] = frozenset()  # known features that are left out
    text: Text = Text.TRACK  # of discovered columns
    record_type: RecordType = RecordType.EXAMPLE
    check_crc: bool = True
    max_record_bytes: int = MAX_RECORD_BYTES
    max_features: int = 100_000
    stop_at_embedded: bool = False  # see `Decoder.feed`


@dataclass(slots=True)
class ColumnBuffers:
    """One column in Arrow's layout: the output of a decoder and the input of an encoder.

    ``layout`` SCALAR: `values` (BYTES: `value_offsets`) has a zeroed (empty) slot for a null row.
    ``layout`` LIST: `offsets` split the values into rows, null rows are empty.
    A feature list has ``steps``: `offsets` count its steps, and `steps` is a column with one row per step.
    """

    name: str
    kind: Kind
    layout: Layout
    rows: int
    null_count: int = 0
    validity: Array | None = None  # uint8 bitmap, least significant bit first; None: no nulls, or only nulls (NULL)
    offsets: Array | None = None  # int32 (or int64 into an encoder), rows + 1
    value_offsets: Array | None = None  # BYTES: the same, values + 1
    values: Array | None = None  # int64, float32, or uint8 (BYTES)
    text: bool = False  # every value is text (Text.TRACK)
    first_row: int = -1  # first row with values
    list_row: int = -1  # first row whose number of values is not one
    binary_row: int = -1  # first row with bytes that are not text
    steps: ColumnBuffers | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The result of one `Decoder.feed`."""

    records: int  # records decoded by this call
    consumed: int  # their bytes in the data
    fault: Fault | None = None
    embedded: tuple[bytes, ...] = ()  # the embedded schemas of the next record, which waits for `accept_embedded`


class Decoder(Protocol):
    """Appends records to columns until they are taken. Used by one thread at a time."""

    @property
    def rows(self) -> int:
        """Number of rows held."""

    @property
    def value_bytes(self) -> int:
        """Payload bytes of the rows held."""

    @property
    def seen(self) -> int:
        """Number of non-empty records since the decoder was made."""

    @property
    def foreign(self) -> int:
        """Number of those that have unknown fields and no feature."""

    @property
    def sequence(self) -> bool:
        """Whether records are SequenceExamples: by the plan, or because one has a feature list (RecordType.DETECT)."""

    def expect(self, payload_bytes: int) -> None:
        """Announce the payload bytes of the rows until the next `take`: a hint for the allocation of memory."""

    def feed(
        self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True
    ) -> Progress:
        """Decode the records of `data` from byte `begin` on.

        Stops after `max_records` rows, before the record with which `value_bytes` would exceed `max_bytes` (a first
        record is always decoded), at the first fault (the rows before it are held, nothing of the faulty record is), or
        at the end of the data. A record that is truncated by the end of `data` is a fault only if `final`; else it is
        left for the next call.

        With `stop_at_embedded` in the plan it also stops before a record with embedded schemas, whose contents are in
        `Progress.embedded`; after `accept_embedded` the next call continues with that record. A record that is not
        valid protobuf may stop it first, or be a fault at once.
        """

    def accept_embedded(self) -> None:
        """Let the next `feed` decode the record with an embedded schema before which the last one stopped."""

    def take(self) -> list[ColumnBuffers]:
        """Return the rows as columns, in the plan's order and then in that of discovery, and reset the decoder."""


class Engine(Protocol):
    """The functions of an engine."""

    name: str

    def crc32c(self, data: Any, value: int = 0) -> int:
        """CRC32C (Castagnoli), unmasked, of `data`; `value` is the CRC of the bytes before it."""

    def scan(
        self,
        data: Any,
        begin: int = 0,
        *,
        max_records: int = -1,
        check_crc: bool = True,
        max_record_bytes: int = MAX_RECORD_BYTES,
        final: bool = True,
    ) -> tuple[Frames, Fault | None]:
        """Find the records of `data`; `check_crc` applies to payloads, lengths are always checked."""

    def find_header(self, data: Any, begin: int = 0, *, max_record_bytes: int = MAX_RECORD_BYTES) -> int:
        """The offset of the first record header in `data` from `begin` on: a length and its CRC; −1 if there is none.

        A single header proves little: check whether a chain of records follows.
        """

    def payloads(self, data: Any, frames: Frames) -> Array:
        """The payloads of `data` without their frames, one after another: a uint8 array."""

    def frame(self, payloads: Sequence[Any]) -> bytes:
        """Put a frame around each payload and join them."""

    def decoder(self, plan: Plan) -> Decoder: ...

    def encode(
        self, columns: Sequence[ColumnBuffers], begin: int, end: int, *, prefix: bytes = b"", sequence: bool = False
    ) -> tuple[Any, int]:
        """Encode rows [begin, end) as framed records, with features in the order of the columns.

        `prefix` is put in front of the first record's payload. Returns (buffer, rows encoded), with fewer rows only if
        the next record would exceed MAX_RECORD_BYTES.
        """
