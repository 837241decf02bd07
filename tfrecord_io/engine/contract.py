"""What an engine takes and gives: the nouns that carry the data across the floors.

An engine turns bytes into columns and back. It knows no path and words no message: trouble is a
`Fault`, a value with a code and a position. Two engines fulfil this contract, ``native`` (C++) and
``reference`` (protobuf); every test runs on both.
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

    WIRE = 31  # the reference engine's: protobuf refused, it does not say why

    KIND = 32  # expected, got = Kind
    VALUE_COUNT = 33  # a scalar column met `got` values
    NOT_TEXT = 34  # a STRICT column met bytes that are no text
    NOT_UTF8 = 35  # a UTF8 column met bytes that are not UTF-8
    UNKNOWN_FEATURE = 36  # a feature that the plan does not name
    MISSING_FEATURE = 37  # a required feature is absent or has no kind
    TOO_MANY_FEATURES = 38  # expected = limit
    NAME_IN_BOTH = 39  # one name in the context and in the feature lists


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong, in which record, at which byte. Numbers count from the start of the call's data."""

    code: FaultCode
    record: int  # index among the records of this call
    offset: int  # first byte of the record's header, in this call's data
    byte: int = -1  # byte inside the payload where it shows, −1 where unknown
    feature: str | None = None
    expected: int = 0
    got: int = 0


@dataclass(frozen=True, slots=True)
class Frames:
    """Extents of the payloads in a block: int64 arrays of the same length."""

    starts: Array  # first byte of each payload
    lengths: Array  # bytes of each payload
    consumed: int  # bytes of the block that are whole, good records


@dataclass(frozen=True, slots=True)
class PlanColumn:
    """One column that a decoder fills, and what it refuses.

    A column of ``layout`` NULL has no value in any row: a kind in a record is a KIND fault.
    """

    name: str
    kind: Kind = Kind.NONE  # NONE: the first record that has one decides
    layout: Layout = Layout.ANY
    text: Text = Text.TRACK
    required: bool = False
    steps: bool = False  # a feature list of a SequenceExample; kind, layout and text are its steps'


@dataclass(frozen=True, slots=True)
class Plan:
    """A schema compiled for a decoder.

    ``unknown`` says what a feature outside ``columns`` and ``ignored`` gets: "skip" leaves it out; where
    ``select(name)`` is true "discover" makes it a column of layout ANY and "fault" makes it a fault, else it is left
    out. A feature that is left out is walked over by its length: its values are not parsed.
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
    """One column in Arrow's layout; what a decoder gives and an encoder takes.

    ``layout`` SCALAR: `values` (BYTES: `value_offsets`) has a zeroed (empty) slot for a null row.
    ``layout`` LIST: `offsets` cut the values into rows, null rows are empty.
    A feature list has ``steps``: `offsets` count its steps, and `steps` is a column with one row a step.
    """

    name: str
    kind: Kind
    layout: Layout
    rows: int
    null_count: int = 0
    validity: Array | None = None  # uint8 bitmap, least significant bit first; None: no nulls, or nothing else (NULL)
    offsets: Array | None = None  # int32 (or int64 into an encoder), rows + 1
    value_offsets: Array | None = None  # BYTES: the same, values + 1
    values: Array | None = None  # int64, float32, or uint8 (BYTES)
    text: bool = False  # every value is text (Text.TRACK)
    first_row: int = -1  # first row that has a kind
    list_row: int = -1  # first row that has other than one value
    binary_row: int = -1  # first row that has bytes that are no text
    steps: ColumnBuffers | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """What one `Decoder.feed` did."""

    records: int  # records decoded by this call
    consumed: int  # bytes of the data they took
    fault: Fault | None = None
    embedded: tuple[bytes, ...] = ()  # the embedded schemas of the next record, which waits for `accept_embedded`


class Decoder(Protocol):
    """Appends records to columns until they are taken. Used by one thread at a time."""

    @property
    def rows(self) -> int:
        """Rows held."""
        ...

    @property
    def value_bytes(self) -> int:
        """Payload bytes of the rows held."""
        ...

    @property
    def seen(self) -> int:
        """Non-empty records met since the decoder was made."""
        ...

    @property
    def foreign(self) -> int:
        """Those of them that hold unknown fields and no feature."""
        ...

    @property
    def sequence(self) -> bool:
        """A feature list was met (RecordType.DETECT), or the plan says so."""
        ...

    def expect(self, payload_bytes: int) -> None:
        """Say how many payload bytes the rows until the next `take` will have, as far as one knows: a hint for memory."""
        ...

    def feed(
        self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True
    ) -> Progress:
        """Decode the records of `data` from byte `begin` on.

        Stops after `max_records` rows or before the record that would bring `value_bytes` over `max_bytes`
        (a first record is always taken), at the first fault (the rows before it are held, the faulty record
        left no trace), or at the end of the data. A record that is cut by the end of `data` is a fault only
        where `final`; else it is left for the next call.

        Where the plan says `stop_at_embedded` it also stops before a record that carries embedded schemas, whose
        contents are in `Progress.embedded`; `accept_embedded` lets the next call go on with that record.
        """
        ...

    def accept_embedded(self) -> None:
        """Decode the record before which the last call of `feed` stopped, although it carries an embedded schema."""
        ...

    def take(self) -> list[ColumnBuffers]:
        """Hand over the rows as columns, in the plan's order and then in that of discovery, and start anew."""
        ...


class Engine(Protocol):
    """The functions of an engine."""

    name: str

    def crc32c(self, data: Any, value: int = 0) -> int:
        """CRC32C (Castagnoli), unmasked, of `data` appended to what gave `value`."""
        ...

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
        """Find the records of `data`; `check_crc` is about payloads, lengths are always checked."""
        ...

    def find_header(self, data: Any, begin: int = 0, *, max_record_bytes: int = MAX_RECORD_BYTES) -> int:
        """The first byte of `data` from `begin` on at which a record's header stands: a length and its right CRC.

        −1: none of which all 12 bytes are there. One header says little: look whether a chain of records follows.
        """
        ...

    def payloads(self, data: Any, frames: Frames) -> Array:
        """The payloads of `data`, one behind the other, without their frames: a uint8 array."""
        ...

    def frame(self, payloads: Sequence[Any]) -> bytes:
        """Put payloads into frames, one after the other."""
        ...

    def decoder(self, plan: Plan) -> Decoder: ...

    def encode(
        self, columns: Sequence[ColumnBuffers], begin: int, end: int, *, prefix: bytes = b"", sequence: bool = False
    ) -> tuple[Any, int]:
        """Encode rows [begin, end) as framed records, feature order = column order.

        `prefix` is put in front of the first record's payload. Gives (buffer, rows encoded): fewer rows
        than asked only where the next record would be over MAX_RECORD_BYTES.
        """
        ...
