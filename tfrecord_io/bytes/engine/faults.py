"""Faults of data, and the one table from their codes to exceptions, reasons and advice.

A fault is about records that a plan reads.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

from tfrecord_io.base import LIMITS, OnDamage, printable
from tfrecord_io.bytes.format.companions import ShapeSource
from tfrecord_io.bytes.format.feature_types import Kind, Layout, RecordType, Text
from tfrecord_io.bytes.format.framing import FrameHeader, wrong_checksums
from tfrecord_io.errors import (
    CorruptRecordError,
    DecodeError,
    FeatureNotFoundError,
    FeatureTypeError,
    SchemaError,
    TFRecordError,
    TruncatedRecordError,
)

TFRECORD, EXAMPLE = "TFRecord", "Example"  # what errors state as expected


class FaultCode(IntEnum):
    """The kind of a fault. Below 16: framing; 16 to 31: wire format; from 32 on: values against the plan."""

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

    WIRE = 31  # of the tests' reference engine: protobuf refuses without a reason

    KIND = 32  # expected, got = Kind
    VALUE_COUNT = 33  # `got` values for a scalar column
    NOT_TEXT = 34  # bytes that are not text for a STRICT column
    NOT_UTF8 = 35  # bytes that are not UTF-8 for a UTF8 column
    UNKNOWN_FEATURE = 36  # a feature that the plan does not name
    MISSING_FEATURE = 37  # a required feature is absent or has no values
    TOO_MANY_FEATURES = 38  # expected = limit
    NAME_IN_BOTH = 39  # one name in the context and in the feature lists


class Fault(NamedTuple):
    """A problem with its record and byte; numbers are relative to the start of the call's data."""

    code: FaultCode
    record: int  # index among the records of this call
    offset: int  # first byte of the record's header, in this call's data
    byte: int = -1  # byte inside the payload, −1 if unknown
    feature: str | None = None
    expected: int = 0
    got: int = 0

    @property
    def is_of_message(self) -> bool:
        """True if a payload is not a message of its expected type, whatever its frame is."""
        return FaultCode.VARINT_TRUNCATED <= self.code <= FaultCode.WIRE

    def to_error(self, **context: Any) -> TFRecordError:
        """The exception, with the keywords of `_to_error`: where the data is, and how it is read."""
        return _to_error(self, **context)

    def error_in(self, path: str, *, record: int, offset: int, data: Any = b"", **context: Any) -> TFRecordError:
        """The exception for a fault in `data` of a file: see `_record_error`."""
        return _record_error(path, self, record=record, offset=offset, data=data, **context)

    def wire_reason(self, what: str = "payload") -> str:
        """The fault in the bytes of a message: of a record's payload, or nested in one."""
        return _message_reason(self, what)

    @staticmethod
    def of_other_format(path: str, kind: str, detail: str = "") -> CorruptRecordError:
        """The exception for a file that looks like a `kind` of another format; `detail` is said after it."""
        from tfrecord_io.bytes.format.foreign_files import ForeignFile, reader_hints

        hint = Hint(*reader_hints(kind))
        return CorruptRecordError(
            f"not TFRecord: looks like {kind}{detail}",
            path=path,
            record=0,
            offset=0,
            expected=TFRECORD,
            got=kind,
            records_intact=0,
            hint=hint.text,
            hint_cli=hint.cli,
            of_other_format=kind != ForeignFile.ZEROS,  # a hole at the start of a file is damage
        )

    @staticmethod
    def is_other_format(error: TFRecordError) -> bool:
        """True if an error is one of `of_other_format`."""
        return error.expected == TFRECORD


class PlanColumn(NamedTuple):
    """One column for a decoder to fill, and the checks of its values.

    A column of ``layout`` NULL has no value in any row: values in a record are a KIND fault.
    """

    name: str
    kind: Kind = Kind.NONE  # NONE: that of the first value; if all lists are empty, that of the first list
    layout: Layout = Layout.ANY
    text: Text = Text.TRACK
    required: bool = False
    steps: bool = False  # a feature list; kind, layout and text are those of its steps
    splits: bool = False  # values of other kinds are not a fault, and make `ColumnBuffers.others`


class Plan(NamedTuple):
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
    check_crc: bool = True  # the checksums of lengths and payloads; False: none
    max_record_bytes: int = LIMITS.MAX_RECORD_BYTES
    max_features: int = 100_000
    max_expansion: int | None = None  # see `Decoder.feed`; None: no limit
    stop_at_embedded: bool = False  # see `Decoder.feed`
    splits: bool = False  # of discovered columns: see `PlanColumn`
    keep_lengths: bool = False  # see `Decoder.lengths`: 4 bytes a row, which cost 3 % of the time of small records
    # An empty list of another kind than its column's is a KIND fault, as in TensorFlow's parsers; else it has no kind.
    typed_empties: bool = False
    names_in_both: bool = False  # whether the context and the feature lists may have a discovered name in common


class _Counts(NamedTuple):
    seen: int = 0  # records with a feature or an unknown field
    foreign: int = 0  # those of `seen` that are probably another message: with unknown fields but no feature, or nested
    # Those of `foreign` in which no feature has a value and each name is itself a serialized map entry:
    # ExampleListWithContext.
    nested: int = 0


class RecordCounts(_Counts):
    """Numbers of records that tell whether these are Examples."""

    __slots__ = ()

    OTHER_MESSAGE: ClassVar = (  # advice where they are not
        'tfr.dataset(path, record_type="bytes") reads any bytes, and record_type=MessageClass the fields of another '
        "message; tfr.formats.open_elwc reads ExampleListWithContext"
    )
    OTHER_MESSAGE_CLI: ClassVar = (
        "pass --record-type bytes to read any bytes, or read the fields of another message with "
        "tfr head --message; tfr convert --from elwc reads ExampleListWithContext"
    )

    def __add__(self, other: RecordCounts) -> RecordCounts:  # type: ignore[override]
        return RecordCounts(self.seen + other.seen, self.foreign + other.foreign, self.nested + other.nested)

    def __sub__(self, other: RecordCounts) -> RecordCounts:
        return RecordCounts(self.seen - other.seen, self.foreign - other.foreign, self.nested - other.nested)

    def not_examples(self, path: str | None, *, is_declared: bool = False) -> DecodeError | None:
        """The error for records that are not Examples or SequenceExamples: see `_not_examples`."""
        return _not_examples(self, path, is_declared=is_declared)

    @staticmethod
    def no_examples(path: str | None, reason: str, *, record: int = 0) -> DecodeError:
        """The error for a file whose records are intact and none of which is an Example, as `record` shows."""
        return _no_examples(path, reason, record=record)

    @staticmethod
    def is_no_examples(error: Exception) -> bool:
        """True for an error of `no_examples` or `not_examples`, which is not about damage."""
        return isinstance(error, DecodeError) and error.expected == EXAMPLE


class Hint(NamedTuple):
    """The advice about a fault, in Python, and in the command where that differs."""

    text: str | None = None
    cli: str | None = None


_HEAD_BYTES = 4096  # enough to recognize a file format
_LEAST_HEAD_BYTES = 4  # fewer bytes may be a truncated record length

WITHOUT_CRC = (
    "pass check_crc=False to read them unchecked, or write them again with tfr.salvage(path, target, check_crc=False)"
)
WITHOUT_CRC_CLI = "write them again with tfr salvage --no-check-crc SOURCE TARGET"
NO_VALUES = "declare it with tfr.scalar(…, empty='null') to read null, or declare it as a list: tfr.list_"
NO_VALUES_CLI = "declare it as a list, as with --type NAME=list<int64>"


_DAMAGE = Hint(OnDamage.ADVICE, OnDamage.ADVICE_CLI)
_OTHER = Hint(RecordCounts.OTHER_MESSAGE, RecordCounts.OTHER_MESSAGE_CLI)
_EXAMPLE = "Example or SequenceExample"  # what a payload is read as
_NESTED = "\n"  # the tag of field 1: names begin with it where another message has messages instead of features
_INSIDE = "the file ends inside the record's {part} (expected {{f.expected}} bytes, got {{f.got}})"
_CRC = "{part} CRC mismatch (stored 0x{{f.got:08x}}, computed 0x{{f.expected:08x}}{{length}})"
_FAULTS: dict[FaultCode, tuple[type[TFRecordError], str, Hint]] = {
    FaultCode.TRUNCATED_HEADER: (TruncatedRecordError, _INSIDE.format(part="header"), _DAMAGE),
    FaultCode.TRUNCATED_PAYLOAD: (TruncatedRecordError, _INSIDE.format(part="payload"), _DAMAGE),
    FaultCode.TRUNCATED_FOOTER: (TruncatedRecordError, _INSIDE.format(part="footer"), _DAMAGE),
    FaultCode.LENGTH_CRC: (CorruptRecordError, _CRC.format(part="length"), _DAMAGE),
    FaultCode.PAYLOAD_CRC: (CorruptRecordError, _CRC.format(part="payload"), _DAMAGE),
    FaultCode.LENGTH_TOO_LARGE: (
        CorruptRecordError,
        "its length {f.got} is over the limit of {f.expected} bytes",
        Hint(
            "raise tfr.dataset(…, limits=tfr.Limits(record_bytes=…)) if such records are intended (protobuf's own "
            "limit is 2147483647)",
            "read it in Python with tfr.dataset(…, limits=tfr.Limits(record_bytes=…)) if such records are intended",
        ),
    ),
    FaultCode.KIND: (FeatureTypeError, "", Hint()),
    FaultCode.VALUE_COUNT: (
        DecodeError,
        "expected exactly 1 value, got {f.got}",
        Hint(
            "declare the feature as a list: tfr.list_", "declare the feature as a list, as with --type NAME=list<int64>"
        ),
    ),
    FaultCode.NOT_TEXT: (
        DecodeError,
        "expected text, got bytes that are not text",
        Hint(
            "it was text so far; pass infer_text=False, or declare it as binary with schema=, or pass sample='all'",
            "it was text so far; declare it as binary with --type, or pass --sample all",
        ),
    ),
    FaultCode.NOT_UTF8: (DecodeError, "expected UTF-8, got other bytes", Hint("declare the feature as binary")),
    FaultCode.UNKNOWN_FEATURE: (
        SchemaError,
        "the schema does not name this feature",
        Hint(
            "pass on_new='ignore' to leave it out, or pass sample='all', or declare it with schema= (a feature list by "
            "tfr.sequence)",
            "pass --on-new ignore to leave it out, or pass --sample all",
        ),
    ),
    FaultCode.MISSING_FEATURE: (
        FeatureNotFoundError,
        "the schema requires this feature, but the record has no value for it",
        Hint(),
    ),
    FaultCode.TOO_MANY_FEATURES: (
        SchemaError,
        "more than {f.expected} different feature names",
        Hint(
            "raise tfr.dataset(…, limits=tfr.Limits(features=…)) if they are intended",
            "read them in Python with tfr.dataset(…, limits=tfr.Limits(features=…)) if they are intended",
        ),
    ),
    FaultCode.NAME_IN_BOTH: (SchemaError, "the name is used in the context and in the feature lists", Hint()),
}
_WIRE_FAULTS = {
    FaultCode.VARINT_TRUNCATED: "a varint is truncated",
    FaultCode.VARINT_TOO_LONG: "a varint is too long (a length has at most 5 bytes, a number 10)",
    FaultCode.LENGTH_PAST_END: "a field of {f.got} bytes, but only {f.expected} are left",
    FaultCode.BAD_WIRE_TYPE: "wire type {f.got}",
    FaultCode.FIELD_ZERO: "field number 0",
    FaultCode.GROUP_END_UNEXPECTED: "the end of a group that is not open",
    FaultCode.GROUP_UNCLOSED: "a group is not closed",
    FaultCode.GROUP_TOO_DEEP: "groups are nested deeper than 100",
    FaultCode.KEY_NOT_UTF8: "a feature's name is not UTF-8",
    FaultCode.PACKED_FLOAT_SIZE: "packed floats of {f.got} bytes, not a multiple of 4",
    FaultCode.FIXED_TRUNCATED: "a fixed-size field is truncated",
    FaultCode.TAG_TOO_LONG: "a tag is longer than five bytes",
    FaultCode.WIRE: "protobuf refuses it",
}


def _column_described_by(fault: Fault, plan: Plan | None) -> str | None:
    """The column whose companion an unknown feature would be, for display; None if no column has one of this name."""
    described = ShapeSource.described_feature(fault.feature or "")
    is_column = plan is not None and any(column.name == described for column in plan.columns)
    return printable(described) if described is not None and is_column else None


def _is_companion(feature: str | None, plan: Plan) -> bool:
    """True if a feature is read only as a companion of a tensor, of whatever type it has in the first record."""
    is_named = feature is not None and ShapeSource.described_feature(feature) is not None
    return is_named and any(c.name == feature and c.kind is Kind.NONE for c in plan.columns)


def _message_reason(fault: Fault, what: str = "payload") -> str:
    """The fault in the bytes of a message: of a record's payload, or nested in one."""
    return f"the {what} is not a valid protobuf message: {_wire_detail(fault, what)}"


def _wire_detail(fault: Fault, what: str = "payload") -> str:
    at = f" at byte {fault.byte} of the {what}" if fault.byte >= 0 else ""
    return _WIRE_FAULTS[fault.code].format(f=fault) + at


def _two_columns(fault: Fault) -> str:
    """How to read a feature of both parts of a record."""
    name = printable(fault.feature or "")
    columns = f"{{'{name}': tfr.scalar(…, part='context'), '{name}_steps': tfr.sequence(…, feature='{name}')}}"
    return f"schema={columns}"


def _reason(fault: Fault, message: str = _EXAMPLE) -> str:
    if fault.is_of_message:
        return f"the payload is not a valid {message}: {_wire_detail(fault)}"
    if fault.code is FaultCode.KIND:
        return f"expected {Kind(fault.expected).description}, got {Kind(fault.got).description}"
    if fault.code is FaultCode.TOO_MANY_FEATURES:
        return f"more than tfr.dataset(…, limits=tfr.Limits(features={fault.expected!r})) different feature names"
    length = f", length {fault.byte}" if fault.byte >= 0 else ""
    return _FAULTS[fault.code][1].format(f=fault, length=length)


def _to_error(
    fault: Fault,
    *,
    path: str | None = None,
    record: int = 0,
    offset: int = 0,
    contradicts_sample: bool = False,
    plan: Plan | None = None,
    message: str = _EXAMPLE,
) -> TFRecordError:
    """The exception for a fault.

    `record` and `offset` are those of the file at which the call's data begins; the fault's own are relative to them.
    With `contradicts_sample` the `plan` was made from a sample of the records, not by the caller: a record that does
    not fit is a SchemaError. `message` is what payloads are read as.
    """
    error, _, hint = _FAULTS.get(fault.code, (DecodeError, "", _OTHER))
    if contradicts_sample and fault.code in (FaultCode.KIND, FaultCode.VALUE_COUNT, FaultCode.NOT_TEXT):
        error = SchemaError
    if fault.feature is not None and fault.feature.startswith(_NESTED):
        hint = _OTHER
    else:
        hint = _special_hint(fault, plan, contradicts_sample) or hint
    return error(
        _reason(fault, message),
        path=path,
        record=record + fault.record,
        offset=offset + fault.offset,
        feature=fault.feature,
        expected=_value(fault, fault.expected),
        got=_value(fault, fault.got),
        records_intact=record + fault.record,
        hint=hint.text,
        hint_cli=hint.cli,
    )


def _special_hint(fault: Fault, plan: Plan | None, contradicts_sample: bool) -> Hint | None:
    """The hint that depends on the fault's values or on the plan; None where the hint of the code is the best."""
    match fault.code:
        case FaultCode.KIND:
            return _kind_hint(fault, plan, contradicts_sample)
        case FaultCode.VALUE_COUNT if contradicts_sample:
            text = "declare the feature as a list in {}, or pass {}"
            return Hint(text.format("schema=", "sample='all'"), text.format("--type", "--sample all"))
        case FaultCode.VALUE_COUNT if fault.got == 0:
            return Hint(NO_VALUES, NO_VALUES_CLI)
        case FaultCode.UNKNOWN_FEATURE if plan is not None and any(c.name == fault.feature for c in plan.columns):
            return Hint(
                "the record has it in its other part: tfr.sequence declares a feature list, all else a context "
                f"feature; if it is in both, read two columns: {_two_columns(fault)}"
            )
        case FaultCode.UNKNOWN_FEATURE if not contradicts_sample and (tensor := _column_described_by(fault, plan)):
            text = f"if it belongs to '{tensor}', override that as a tensor, or not at all; "
            return Hint(
                f"{text}columns= with the names of others leaves it out, schema='infer' makes it a column",
                f"{text}--columns with the names of others leaves it out",
            )
        case FaultCode.UNKNOWN_FEATURE if not contradicts_sample:
            text = "the embedded schema does not have it; "
            return Hint(
                f"{text}schema='infer' reads all features of the records",
                f"{text}--columns with the names of others leaves it out",
            )
        case FaultCode.LENGTH_TOO_LARGE if fault.got > LIMITS.MAX_RECORD_BYTES:
            text = f"{LIMITS.MAX_RECORD_BYTES} is protobuf's own limit, which cannot be raised; "
            return Hint(text + OnDamage.ADVICE, text + OnDamage.ADVICE_CLI)
        case FaultCode.NAME_IN_BOTH:
            excluded = f"'!{printable(fault.feature or '')}'"
            read_both = f"or read both as two columns: {_two_columns(fault)}"
            return Hint(f"leave it out with columns={excluded}, {read_both}", f"leave it out with --columns {excluded}")
    return None


def _kind_hint(fault: Fault, plan: Plan | None, contradicts_sample: bool) -> Hint:
    """The hint for a feature of another feature type than expected."""
    if contradicts_sample:
        text = "the schema was fixed from a sample; pass {}, or pass {}"
        return Hint(text.format("sample='all'", "schema="), text.format("--sample all", "--type"))
    if plan is not None and _is_companion(fault.feature, plan):
        tensor = printable(ShapeSource.described_feature(fault.feature or "") or "")
        text = f"it is read as a companion of the tensor '{tensor}', but had another type before; pass "
        cli = f"{text}--type {tensor}=binary to read the bytes without it"
        return Hint(f"{text}schema={ {tensor: 'binary'}!r} to read the bytes without it", cli)
    layouts = [] if plan is None else [column.layout for column in plan.columns if column.name == fault.feature]
    return Hint(*Kind(fault.expected).hint_for(Kind(fault.got), layouts[0] if layouts else None))


def _not_examples(counts: RecordCounts, path: str | None, *, is_declared: bool = False) -> DecodeError | None:
    """The error for records that are not Examples or SequenceExamples, if all conclusive ones are another message.

    If the type of the records `is_declared`, records without a feature are accepted, but not ExampleListWithContext.
    """
    if not 0 < counts.seen == counts.foreign or (is_declared and not counts.nested):
        return None
    reason, got = "none of them holds a feature", "another message"
    if is_declared or counts.nested == counts.foreign:
        reason = "they look like ExampleListWithContext (TensorFlow Ranking), which has Examples instead of features"
        got = "ExampleListWithContext"
    return _no_examples(path, reason, got)


def _record_error(
    path: str, fault: Fault, *, record: int, offset: int, data: Any = b"", **context: Any
) -> TFRecordError:
    """Build the exception for a fault in `data`, which starts at byte `offset` and record number `record` of a file.

    If the fault is in the first record of the file, the message names the format that the first bytes look like, or
    what its writer stores as checksums.
    """
    from tfrecord_io.bytes.format.foreign_files import ForeignFile

    is_first = fault.code <= FaultCode.LENGTH_TOO_LARGE and offset + fault.offset == 0
    head = bytes(memoryview(data)[:_HEAD_BYTES]) if is_first else b""
    is_other = len(head) >= _LEAST_HEAD_BYTES and not FrameHeader(head).is_intact
    kind = ForeignFile.looks_like(head) if is_other else None
    if is_first and kind is None and (stored := wrong_checksums(data)) is not None:
        error = _to_error(fault, path=path, record=record, offset=offset, **context)
        error.reason = f"{error.reason}: {stored}"
        error.set_hint(WITHOUT_CRC, WITHOUT_CRC_CLI)
        return error
    if kind is None:
        error = _to_error(fault, path=path, record=record, offset=offset, **context)
        if fault.is_of_message and (kind := _kind_of_payload(data, fault.offset)) is not None:
            error.reason = f"{error.reason}; it looks like {kind}"
        return error
    return Fault.of_other_format(path, kind)


def _kind_of_payload(data: Any, at: int) -> str | None:
    """The kind of file that the payload of the record at byte `at` looks like; None if it is unknown."""
    from tfrecord_io.bytes.format.foreign_files import ForeignFile

    frame = bytes(memoryview(data)[at : at + FrameHeader.BYTES + _HEAD_BYTES])
    payload = frame[FrameHeader.BYTES :][: FrameHeader(frame).payload_length] if FrameHeader(frame).is_intact else b""
    kind = ForeignFile.looks_like(payload) if len(payload) >= _LEAST_HEAD_BYTES else None
    return None if kind == ForeignFile.ZEROS else kind


def _no_examples(path: str | None, reason: str, got: str = "another message", record: int = 0) -> DecodeError:
    """The error for a file whose records are intact and none of which is an Example, as `record` shows."""
    return DecodeError(
        f"the records are not tf.train.Examples: {reason}",
        path=path,
        record=record,
        expected=EXAMPLE,
        got=got,
        records_intact=record,
        hint=RecordCounts.OTHER_MESSAGE,
        hint_cli=RecordCounts.OTHER_MESSAGE_CLI,
    )


def _value(fault: Fault, number: int) -> object:
    if fault.code is FaultCode.KIND:
        return Kind(number).name
    if fault.code < 16 or fault.code in (FaultCode.LENGTH_PAST_END, FaultCode.VALUE_COUNT, FaultCode.TOO_MANY_FEATURES):
        return number
    return None
