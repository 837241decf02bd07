"""The interface of an engine, and the types it takes and returns.

An engine decodes bytes into columns and encodes columns as bytes. It has no paths and no error messages: a problem is a
`Fault`, a value with a code and a position. The engine is ``native`` (C++); the tests compare it with a reference
engine (protobuf, in tests/support/reference_engine), which lacks what may be None here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeAlias

import numpy as np

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes.engine.faults import Fault as Fault
from tfrecord_io.bytes.engine.faults import FaultCode as FaultCode
from tfrecord_io.bytes.engine.faults import Plan as Plan
from tfrecord_io.bytes.engine.faults import PlanColumn as PlanColumn
from tfrecord_io.bytes.engine.faults import RecordCounts as RecordCounts
from tfrecord_io.bytes.format.feature_types import Array as Array
from tfrecord_io.bytes.format.feature_types import Kind, Layout


class Checks(IntEnum):
    """The checksums of frames to verify; the values equal those of the kernel."""

    NONE = 0
    LENGTHS = 1
    ALL = 2  # those of payloads, too

    @classmethod
    def from_check_crc(cls, check_crc: bool, *, payloads: bool = False) -> Checks:
        """The checksums that a call with `check_crc` compares, as far as it reads payloads."""
        return cls.NONE if not check_crc else cls.ALL if payloads else cls.LENGTHS


class Frames(NamedTuple):
    """Extents of the payloads in a block: int64 arrays of the same length."""

    starts: Array  # first byte of each payload
    lengths: Array  # bytes of each payload
    consumed: int  # bytes of the complete and valid records of the block


class Members(NamedTuple):
    """Fields of messages: int64 arrays of the same length."""

    fields: Array  # the number of each
    records: Array  # the index of its message
    starts: Array  # first byte of its content, in the call's data
    lengths: Array  # bytes of its content


class FieldForm(NamedTuple):
    """A field of a message, and how it is read."""

    number: int
    wire_type: int  # of packed values: that of one
    repeated: bool
    wanted: bool = True  # else its values are skipped
    oneof: int = -1  # the fields with one number exclude each other in a message; −1: none
    keeps_all: bool = False  # all values of a field that is not repeated are returned


class FieldValues(NamedTuple):
    """The values of a field in messages.

    A field that is not repeated has one for each row, the last one in its message; but of content (lengths and groups)
    it has all, as protobuf merges messages.
    """

    rows: Array  # int32: the row of each, ascending
    values: Array  # int64: the 64 bits of a number (zeros after 32), or where its content begins in the call's data
    lengths: Array  # int64: bytes of its content; empty for numbers


class MessageFields(NamedTuple):
    """The values of some fields of messages, and how many fields there are of other numbers or wire types."""

    fields: Sequence[FieldValues]
    unknown: dict[int, int]  # by number


_VALUES = {Kind.INT64: np.int64, Kind.FLOAT: np.float32, Kind.BYTES: np.uint8}


class ColumnBuffers:
    """One column in Arrow's layout: the output of a decoder and the input of an encoder.

    ``layout`` SCALAR: `values` (BYTES: `value_offsets`) has a zeroed (empty) slot for a null row.
    ``layout`` LIST: `offsets` split the values into rows, null rows are empty.
    A feature list has ``steps``: `offsets` count its steps, and `steps` is a column with one row per step.
    `others` are the rows (of `steps`: the steps) whose values are of other kinds, a column for each kind, in the order
    of `Kind`; these rows are null here.
    """

    def __init__(
        self,
        name: str,
        kind: Kind,
        layout: Layout,
        rows: int,
        null_count: int = 0,
        validity: Array | None = None,
        offsets: Array | None = None,
        value_offsets: Array | None = None,
        values: Array | None = None,
        text: bool = False,
        first_row: int = -1,
        list_row: int = -1,
        binary_row: int = -1,
        steps: ColumnBuffers | None = None,
        others: tuple[ColumnBuffers, ...] = (),
    ) -> None:
        self.name = name
        self.kind = kind
        self.layout = layout
        self.rows = rows
        self.null_count = null_count
        self.validity = validity  # uint8 bitmap, least significant bit first; None: no nulls, or only nulls (NULL)
        self.offsets = offsets  # int32 (or int64 into an encoder), rows + 1
        self.value_offsets = value_offsets  # BYTES: the same, values + 1
        self.values = values  # int64, float32, or uint8 (BYTES)
        self.text = text  # every value is text (Text.TRACK)
        self.first_row = first_row  # with values
        self.list_row = list_row  # the first whose number of values is not one
        self.binary_row = binary_row  # the first with bytes that are not text
        self.steps = steps
        self.others = others

    def __repr__(self) -> str:
        return f"ColumnBuffers({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    def replace(self, **attributes: Any) -> ColumnBuffers:
        """Copy this column with other values of these attributes."""
        return ColumnBuffers(**{**vars(self), **attributes})

    @property
    def is_list(self) -> bool:
        """True if the column is a feature list."""
        return self.steps is not None

    @property
    def value_row(self) -> int:
        """The first row with a value, of this kind; -1 if all lists are empty."""
        if self.offsets is None or self.first_row < 0:
            return self.first_row
        row = int(self.offsets.searchsorted(self.offsets[0], side="right")) - 1
        return row if row < self.rows else -1

    @property
    def has_others(self) -> bool:
        """True if some row has values of another kind."""
        return bool(self.others or (self.steps is not None and self.steps.others))

    @property
    def mask(self) -> Array:
        """True for the rows that are not null."""
        return self.mask_of(self.validity if self.null_count else None, self.rows)

    @staticmethod
    def mask_of(validity: Array | None, count: int) -> Array:
        """True where a slot has a value, by a bitmap of `count` slots."""
        if validity is None:
            return np.ones(count, bool)
        return np.unpackbits(validity, count=count, bitorder="little").view(bool)

    @classmethod
    def nulls(cls, name: str, rows: int, kind: Kind, layout: Layout) -> Self:
        """A column of `rows` nulls."""
        column = cls(name, kind, layout, rows, null_count=rows)
        if layout is Layout.NULL:
            return column
        column.validity = np.zeros((rows + 7) // 8, np.uint8)
        slots = rows if layout is Layout.SCALAR else 0
        column.values = np.zeros(0 if kind is Kind.BYTES else slots, _VALUES[kind])
        if kind is Kind.BYTES:
            column.value_offsets = np.zeros(slots + 1, np.int32)
        if layout is Layout.LIST:
            column.offsets = np.zeros(rows + 1, np.int32)
        return column

    def cut(self, begin: int, end: int) -> ColumnBuffers:
        """Rows [begin, end): views of the values under a bitmap and offsets of their own."""
        part = self.replace()
        first, last = begin, end
        if self.offsets is not None:
            part.offsets, first, last = _cut_offsets(self.offsets, first, last)
        if self.steps is not None:
            part.steps = self.steps.cut(first, last)
        if self.value_offsets is not None:
            part.value_offsets, first, last = _cut_offsets(self.value_offsets, first, last)
        if self.values is not None:
            part.values = self.values[first:last]
        mask = self.mask_of(self.validity, self.rows)[begin:end]
        kinds = [kind.cut(begin, end) for kind in self.others]
        part.others = tuple(kind for kind in kinds if kind.null_count < kind.rows)
        part.rows = end - begin
        part.null_count = part.rows - int(np.count_nonzero(mask))
        part.validity = np.packbits(mask, bitorder="little") if part.null_count else None
        if self.layout is Layout.NULL:
            part.null_count = part.rows
        part.first_row, part.list_row, part.binary_row = (
            row - begin if begin <= row < end else -1  # not observed
            for row in (self.first_row, self.list_row, self.binary_row)
        )
        return part

    @staticmethod
    def cut_all(columns: Mapping[str, ColumnBuffers], begin: int, end: int) -> Mapping[str, ColumnBuffers]:
        """Rows [begin, end) of columns, by name."""
        return {name: column.cut(begin, end) for name, column in columns.items()}


def _cut_offsets(offsets: Array, begin: int, end: int) -> tuple[Array, int, int]:
    first, last = int(offsets[begin]), int(offsets[end])
    return offsets[begin : end + 1] - offsets[begin], first, last


class Progress(NamedTuple):
    """The result of one `Decoder.feed`."""

    records: int  # records decoded by this call
    consumed: int  # their bytes in the data
    fault: Fault | None = None
    embedded: tuple[bytes, ...] = ()  # the embedded schemas of the next record, which waits for `accept_embedded`
    full: bool = False  # stopped because the rows held take as much memory as `Plan.max_expansion` allows


FeatureName = tuple[str, bool]
"""A name, and whether it is that of a feature list: the two maps of a SequenceExample have separate names."""


class FileView(NamedTuple):
    """An open file, and memory for windows of it: each begins at its offset in a page (4,096 bytes) of the file."""

    descriptor: int
    file_bytes: int
    memory: Array  # uint8; more bytes after it may be read
    window_bytes: int
    max_record_bytes: int
    most_record_bytes: int  # a larger frame is left to the caller


class Decoder(Protocol):
    """Appends records to columns until they are taken. Used by one thread at a time."""

    @property
    def rows(self) -> int:
        """Number of rows held."""

    @property
    def value_bytes(self) -> int:
        """Payload bytes of the rows held."""

    @property
    def integer_bytes(self) -> int:
        """Bytes of the integers in lists held: of features that have another number than one in some row, or may."""

    def lengths(self, begin: int = 0) -> Array:
        """Payload bytes of each of the rows held, from row `begin` on; needs `Plan.keep_lengths`."""

    @property
    def kept(self) -> Array | None:
        """The numbers of the rows that the columns have, where others are known not to pass a filter; None: all."""

    @property
    def counts(self) -> RecordCounts:
        """The records since the decoder was made."""

    @property
    def sequence(self) -> bool:
        """True if records are SequenceExamples: by the plan, or because one has a feature list (RecordType.DETECT)."""

    @property
    def new_names(self) -> list[FeatureName]:
        """The names of features outside the plan, in the order in which they were first met."""

    def know(self, names: Iterable[FeatureName]) -> None:
        """Begin as a decoder that has met these names: they count towards `max_features`. Called before any `feed`."""

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

        With `max_expansion` in the plan it also stops before a record, not the first, with which the rows held would
        have more cells, of 8 bytes, than `max_expansion` and 512 bytes for each payload byte held allow.

        With `stop_at_embedded` in the plan it also stops before a record with embedded schemas, whose contents are in
        `Progress.embedded`; after `accept_embedded` the next call continues with that record. A record that is not
        valid protobuf may stop it first, or be a fault at once.
        """

    def feed_file(self, file: FileView, begin: int, end: int, *, max_bytes: int) -> int:
        """Decode the records that begin in [begin, end) of a file, the first of which begins there.

        Returns how many bytes they have: fewer, or 0, where there is a reason to look at what follows, such as a fault,
        which `feed` finds again.
        """

    def accept_embedded(self) -> None:
        """Let the next `feed` decode the record with an embedded schema before which the last one stopped."""

    def take_columns(self) -> Mapping[str, ColumnBuffers]:
        """Return the rows as columns, in the plan's order and then in that of discovery, and reset the decoder.

        Where the context and the feature lists have the same name, it is that of the context feature; with the
        `LIST_MARK` of `FeatureColumns` it is that of the feature list. The columns may be made only when they are asked
        for: `FeatureColumns`.
        """

    # A batch that several threads decode parts of: each part has a decoder with the same plan.

    def complete(self) -> None:
        """End a part; its rows are appended next."""

    def append(self, part: Self, begin: int, end: int, payload_bytes: int) -> bool:
        """Append the rows [begin, end) of a completed part, whose payloads have `payload_bytes`, as if they were fed.

        Returns False, and appends nothing, if that might not be exact, such as near `max_expansion`, or where the parts
        found different layouts: the records are fed then.
        """

    def clear(self) -> None:
        """Empty a part, whose memory is used for the next one."""


class EngineDecoder(Decoder, Protocol):
    """The decoder of an engine."""

    plan: Plan  # that it decodes by

    @property
    def column_bytes(self) -> int:
        """About how many bytes the values of the rows held have in their columns."""

    def take(self) -> Sequence[ColumnBuffers]:
        """The columns of `take_columns`, all of which are made."""

    def feed_file(
        self, file: FileView, begin: int, end: int, *, max_records: int = -1, max_bytes: int, keeps: bool = False
    ) -> int:
        """See `Decoder`; `keeps`: all bytes from `begin` on stay in the memory, and it ends where that is full."""

    def feed_kept(self, data: Any, begin: int, lengths: Array, kept: Array) -> Progress:
        """Decode some of the records of `data` from byte `begin` on, which `feed` of another decoder has decoded.

        `lengths` has their payload bytes, as uint32, and `kept` whether each of them is decoded. Checksums are not
        checked again. `Progress` counts the other records, too, up to the last one, or to where `feed` would stop.
        """


class ObjectForm(NamedTuple):
    """How the value of a column in one record becomes a Python object."""

    name: str
    slot: int  # of the column in `Plan.columns`
    form: Array  # int64: the numbers of a `Form` (see `BatchBuilder`)
    dtype: Any  # of the array that a list of numbers becomes; None: a list


class ObjectDecoder(Protocol):
    """Decodes single records as Python objects. Used by one thread at a time."""

    def row(self, data: Any) -> dict[str, Any] | None:
        """The record that `data` consists of, by the names of its columns.

        None if it has a fault or an embedded schema, or a value that is not plainly of its form: for a `Decoder`.
        """


class KeyTable(Protocol):
    """Finds the rows of keys. Threads may share it."""

    @property
    def repeated(self) -> int:
        """How many rows have a key of an earlier row; of equal keys the first one is found."""

    @property
    def nbytes(self) -> int:
        """Memory besides that of the keys."""

    def find(self, key: bytes) -> int:
        """The row of a key; −1 if no row has it."""

    def examples(self) -> Sequence[tuple[int, int]]:
        """The first few rows with a key of an earlier row: that one, and the row."""


class PlainValue(IntEnum):
    """The type of value in a plain Arrow array. The kernel has the same numbers, of `Value`."""

    INT = 1
    BOOL = 2
    FLOAT = 3
    BYTES = 5
    TEXT = 6


class PlainForm(NamedTuple):
    """The form of an Arrow array with one value in each row, and of its feature."""

    name: str
    value: PlainValue
    bits: int = 0  # of a number
    signed: bool = True
    large: bool = False  # offsets of 64 bits

    @classmethod
    def of_bytes(cls, name: str, *, is_text: bool, large: bool) -> Self:
        """The form of an array of bytes, or of text."""
        return cls(name, PlainValue.TEXT if is_text else PlainValue.BYTES, large=large)

    @classmethod
    def of_bools(cls, name: str) -> Self:
        """The form of an array of booleans."""
        return cls(name, PlainValue.BOOL, bits=1)

    @classmethod
    def of_integers(cls, name: str, bits: int, *, signed: bool) -> Self:
        """The form of an array of integers, or of what Arrow stores as such."""
        return cls(name, PlainValue.INT, bits=bits, signed=signed)

    @classmethod
    def of_floats(cls, name: str) -> Self:
        """The form of an array of float32."""
        return cls(name, PlainValue.FLOAT, bits=32)


class ArrowColumns(Protocol):
    """The Arrow columns of one batch, encoded without conversion."""

    @property
    def taken(self) -> Sequence[bool]:
        """A boolean for each column, true if it is taken; not those without a form or with text that is not UTF-8."""


class ArrowReader(Protocol):
    """Takes columns from the batches of one schema. Threads may share it."""

    def read(self, batch: Any) -> ArrowColumns:
        """The columns of a batch, which has ``__arrow_c_array__``."""

    def value_bytes(self, batch: Any) -> int:
        """The bytes of the values of those columns that have a form."""


class Encoder(Protocol):
    """Encodes rows of columns as framed records, with features in the order of the columns. Threads may share it."""

    def encode(self, begin: int, end: int, *, prefix: bytes = b"", memory: Any = None) -> tuple[Any, int]:
        """Encode rows [begin, end).

        `prefix` is put in front of the first record's payload. Returns (buffer, rows encoded), with fewer rows only if
        the next record would exceed `LIMITS.MAX_RECORD_BYTES`. With `memory`, made by `Engine.memory`, the buffer is
        valid until the next call with it, which must not begin before this one has returned.
        """


class GatheredValues(NamedTuple):
    """The values of cells that are ``bytes``, or arrays of one axis or lists of numbers or ``bytes``."""

    dtype: str  # "f4", "?"; "S": bytes
    valid: Array | None  # bool; None: no cell is missing
    offsets: Array | None  # int32, of the cells among the values; None: each cell is a value
    values: Array  # uint8: the memory of all
    value_offsets: Array | None  # int32, of bytes


class Engine(ABC):
    """The functions of an engine, and the types that only they take and return."""

    # What reads records
    Decoder: TypeAlias = EngineDecoder
    FileView: TypeAlias = FileView
    Progress: TypeAlias = Progress
    ObjectDecoder: TypeAlias = ObjectDecoder
    ObjectForm: TypeAlias = ObjectForm
    # What reads other messages
    Frames: TypeAlias = Frames
    Members: TypeAlias = Members
    FieldForm: TypeAlias = FieldForm
    FieldValues: TypeAlias = FieldValues
    # What writes records
    Encoder: TypeAlias = Encoder
    ArrowReader: TypeAlias = ArrowReader
    PlainForm: TypeAlias = PlainForm

    name: str

    @abstractmethod
    def crc32c(self, data: Any, value: int = 0) -> int:
        """CRC32C (Castagnoli), unmasked, of `data`; `value` is the CRC of the bytes before it."""

    @abstractmethod
    def crc32c_combine(self, first: int, second: int, second_bytes: int) -> int:
        """The CRC of two parts that follow one another, the second of `second_bytes`, from the CRC of each."""

    @abstractmethod
    def scan(
        self,
        data: Any,
        begin: int = 0,
        *,
        max_records: int = -1,
        checks: Checks = Checks.ALL,
        max_record_bytes: int = LIMITS.MAX_RECORD_BYTES,
        final: bool = True,
    ) -> tuple[Frames, Fault | None]:
        """Find the records of `data`; that their lengths fit is always checked."""

    @abstractmethod
    def find_header(self, data: Any, begin: int = 0, *, max_record_bytes: int = LIMITS.MAX_RECORD_BYTES) -> int:
        """The offset of the first record header in `data` from `begin` on: a length and its CRC; −1 if none is found.

        A single header proves little: check whether a chain of records follows.
        """

    @abstractmethod
    def payloads(self, data: Any, frames: Frames) -> Array:
        """The payloads of `data` without their frames, one after another: a uint8 array."""

    @abstractmethod
    def frame(self, payloads: Sequence[Any]) -> bytes:
        """Put a frame around each payload and join them."""

    @abstractmethod
    def members(self, data: Any, frames: Frames, most: int) -> tuple[Members, Fault | None]:
        """Find the length-delimited fields with the numbers 1 to `most` in the payloads of `data`, which are messages.

        Ends before the first payload that is not a message. Contents are not parsed, and other fields are skipped.
        """

    @abstractmethod
    def message_fields(
        self, data: Any, extents: Frames, rows: Array, forms: Sequence[FieldForm]
    ) -> tuple[MessageFields, Fault | None]:
        """Read fields of messages of any type, in extents of `data`.

        Those that follow one another with the same row (int32) are parts of one message. Contents are not parsed. Ends
        before the first that is not a message: `Fault.record` is its index, and `Fault.offset` has no meaning.
        """

    @abstractmethod
    def frame_extents(self, data: Any, starts: Array, lengths: Array, parts: int) -> Array:
        """Put frames around payloads, of each of which `parts` extents of `data` are the parts: a uint8 array."""

    @abstractmethod
    def frame_window(self, data: Any, starts: Array, lengths: Array, skip: int, out: Array) -> int:
        """Put frames around extents of `data`, and write them to `out`, a uint8 array, without the first `skip` bytes.

        Returns the number of bytes, at most those that `out` has room for. The CRCs of payloads are 0.
        """

    @abstractmethod
    def decoder(self, plan: Plan) -> EngineDecoder:
        """A decoder of records by a plan."""

    @abstractmethod
    def row_decoder(self, plan: Plan, forms: Sequence[ObjectForm]) -> ObjectDecoder | None:
        """A decoder of single records with these columns; None if the engine has none."""

    @abstractmethod
    def key_table(self, data: Any, offsets: Any, valid: Any) -> KeyTable:
        """A table of fewer than 2**32 keys, which borrows the arrays.

        Key i is ``data[offsets[i]:offsets[i + 1]]`` (int32 or int64), without `offsets` the 8 bytes at ``8 * i``. Rows
        where `valid` (of bools, or None) has False have no key.
        """

    @abstractmethod
    def arrow_reader(self, forms: Sequence[PlainForm | None]) -> ArrowReader | None:
        """A reader of batches with these columns; None if the engine takes no columns from Arrow."""

    @abstractmethod
    def encoder(
        self, columns: Sequence[ColumnBuffers | int], *, sequence: bool = False, arrow: ArrowColumns | None = None
    ) -> Encoder:
        """An encoder of columns; a number stands for that column of `arrow`."""

    @abstractmethod
    def memory(self) -> Any:
        """Memory to reuse for the results of `Encoder.encode`, without new page faults."""

    @abstractmethod
    def gather_objects(self, cells: Array, nan_is_missing: bool) -> GatheredValues | bool | None:
        """The values of an array of objects, if all have one type; False if Python has to look at each cell.

        None: the values, at any depth of lists and dicts, are exactly None, bool, int and float, and either str or
        bytes. True: they are others, but no cell is, or holds, a masked array, and no cell is one of the values that
        only tensors hold. A cell that is None, or NaN where `nan_is_missing`, is missing; a NaN inside an array or a
        list is a value.
        """

    @abstractmethod
    def first_fit(self, lengths: Array, capacity: Array, bins: int) -> tuple[Array, list[int]]:
        """Assign rows, in order, to the first of some bins that has room; one for which none has, begins new bins.

        The `lengths`, int64 of shape [rows, columns], are at most the `capacity`, int64 of shape [columns], of each
        bin; `bins` of them are filled side by side. Returns the bin of each row, as int64 of shape [rows], and the rows
        that begin new bins, without the first row.
        """

    @abstractmethod
    def exchange(self, draws: Sequence[Array], sizes: Array) -> tuple[Array, Array]:
        """Draw rows from full shuffle buffers, each of which is replaced by the next row.

        Each number of `draws`, in [0, 1), draws a row from a buffer of ``sizes[i]`` rows: float64 of each buffer, and
        int64. Rows are numbered: first those in the buffers, one buffer after the other, then the next rows, in the
        order in which they come in. Returns the row of each draw, and the row in each slot afterwards, as int64.
        """


class ColumnNames:
    """The names of a decoder's columns; the same object for all takes with these columns."""

    def __init__(self, features: Sequence[FeatureName]) -> None:
        self.names = list(map(itemgetter(0), features))
        # The number of the column of each feature; see `Decoder.take_columns`.
        self.index = dict(zip(self.names, range(len(self.names)), strict=True))
        if len(self.index) < len(self.names):
            context = {name for name, is_list in features if not is_list}
            both = [is_list and name in context for name, is_list in features]
            self.index = {name + FeatureColumns.LIST_MARK * both[at]: at for at, name in enumerate(self.names)}


class FeatureColumns(Mapping[str, ColumnBuffers]):
    """Decoded columns by feature, in an engine, to take one by one or as Arrow arrays."""

    Name: TypeAlias = FeatureName
    LIST_MARK: ClassVar = "\udc80"  # not part of any name: names are UTF-8

    class Fact(IntEnum):
        """The properties of a column as numbers: fields of `ColumnBuffers`. The kernel has the same order."""

        KIND = 0
        LAYOUT = 1
        TEXT = 2
        ROWS = 3
        NULL_COUNT = 4
        FIRST_ROW = 5
        LIST_ROW = 6
        BINARY_ROW = 7
        IS_LIST = 8  # whether it is a feature list
        HAS_OTHERS = 9
        VALUE_ROW = 10

    @staticmethod
    def facts_of(columns: Mapping[str, ColumnBuffers]) -> Array:
        """The facts of columns by feature: int64, a row for each column and a column for each `Fact`."""
        if isinstance(columns, FeatureColumns):
            return columns.facts()
        facts = [
            (
                *(c.kind, c.layout, c.text, c.rows, c.null_count, c.first_row, c.list_row, c.binary_row),
                *(c.is_list, c.has_others, c.value_row),
            )
            for c in columns.values()
        ]
        return np.array(facts, np.int64).reshape(-1, len(FeatureColumns.Fact))

    @abstractmethod
    def facts(self) -> Array:
        """The facts of the columns in the order of iteration; see `facts_of`."""

    @abstractmethod
    def distinct_facts(self) -> bytes:
        """The facts without numbers of rows: where names and these facts are equal, columns show the same."""

    @abstractmethod
    def arrow_arrays(self, forms: tuple[Array, Array], features: Iterable[str]) -> tuple[object, int, list[int]]:
        """Make Arrow arrays of the columns of features in these forms (see `BatchBuilder`).

        Returns (owner, batch, addresses). The owner releases the arrays that were not imported, which are valid as long
        as it exists. Where all were made and none is large, `batch` is the address of a ``struct ArrowArray`` of the C
        data interface, which has all of them as its children and is freed as a whole. Else it is 0, and the addresses
        are those of the array of each column; 0 where the column is absent or its rows are not plainly of the form.
        """
