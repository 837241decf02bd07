"""Messages for faults: the one table from codes to exceptions, reasons and advice."""

from __future__ import annotations

from typing import Any, NamedTuple

from tfrecord_io.bytes.engine.contract import MAX_RECORD_BYTES, Fault, FaultCode, Plan, RecordCounts
from tfrecord_io.bytes.format.companions import feature_of_companion
from tfrecord_io.bytes.format.feature_types import Kind, Layout
from tfrecord_io.bytes.format.foreign_files import ZEROS, looks_like, reader_hints
from tfrecord_io.bytes.format.framing import FrameHeader, wrong_checksums
from tfrecord_io.errors import (
    ON_ERROR,
    ON_ERROR_CLI,
    CorruptRecordError,
    DecodeError,
    FeatureNotFoundError,
    FeatureTypeError,
    SchemaError,
    TFRecordError,
    TruncatedRecordError,
    printable,
)


class Hint(NamedTuple):
    """The advice about a fault, in Python, and in the command where that differs."""

    text: str | None = None
    cli: str | None = None


_HEAD_BYTES = 4096  # enough to recognize a file format
_LEAST_HEAD_BYTES = 4  # fewer bytes may be a truncated record length

OTHER_MESSAGE = (
    'pass record_type="bytes" to read any bytes, or read the fields of another message with '
    "tfr.dataset(path, record_type=MessageClass); tfr.formats.open_elwc reads "
    "ExampleListWithContext"
)
OTHER_MESSAGE_CLI = (
    "pass --record-type bytes to read any bytes, or read the fields of another message with "
    "tfr head --message; tfr convert --from elwc reads ExampleListWithContext"
)
WITHOUT_CRC = (
    "pass check_crc=False to read them, which compares no checksums, or write them anew with "
    "tfr.salvage(path, target, check_crc=False)"
)
WITHOUT_CRC_CLI = "write them anew with tfr salvage --no-check-crc SOURCE TARGET"
NO_VALUES = "declare it with tfr.scalar(…, empty='null') to read null, or declare it as a list: tfr.list_"
NO_VALUES_CLI = "declare it as a list, as with --type NAME=list<int64>"


_DAMAGE = Hint(ON_ERROR, ON_ERROR_CLI)
_OTHER = Hint(OTHER_MESSAGE, OTHER_MESSAGE_CLI)
_EXAMPLE = "Example or SequenceExample"  # what a payload is read as
_NESTED = "\n"  # the tag of field 1: names begin with it where another message has messages instead of features
_TFRECORD = "TFRecord"  # what is expected where a file looks like another format
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
        "the schema requires this feature and the record has no value for it",
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


def _is_companion(feature: str | None, plan: Plan) -> bool:
    """True if a feature is read only as a companion of a tensor, of whatever type it has in the first record."""
    is_named = feature is not None and feature_of_companion(feature) is not None
    return is_named and any(c.name == feature and c.kind is Kind.NONE for c in plan.columns)


def other_kind_hint(expected: Kind, got: Kind, layout: Layout | None) -> Hint:
    """The hint where a feature of a layout has another type than its column reads."""
    text = "pass schema= with a type that fits, or exclude the feature with columns="
    if got is Kind.BYTES and expected in (Kind.INT64, Kind.FLOAT) and layout is Layout.LIST:
        text = f"declare arrays that are stored as bytes with tfr.tensor(dtype, shape), or {text}"
    return Hint(text, "pass --type with a type that fits, or exclude the feature with --columns")


def wire_reason(fault: Fault, what: str = "payload") -> str:
    """The fault in the bytes of a message: of a record's payload, or nested in one."""
    return f"the {what} is not a valid protobuf message: {_wire_detail(fault, what)}"


def _wire_detail(fault: Fault, what: str = "payload") -> str:
    at = f" at byte {fault.byte} of the {what}" if fault.byte >= 0 else ""
    return _WIRE_FAULTS[fault.code].format(f=fault) + at


def is_wire_fault(fault: Fault) -> bool:
    """True if a payload is not a message of its expected type, whatever its frame is."""
    return fault.code in _WIRE_FAULTS


def _two_columns(fault: Fault) -> str:
    """How to read a feature of both parts of a record."""
    name = printable(fault.feature or "")
    columns = f"{{'{name}': tfr.scalar(…, part='context'), '{name}_steps': tfr.sequence(…, feature='{name}')}}"
    return f"schema={columns}"


def _reason(fault: Fault, message: str = _EXAMPLE) -> str:
    if is_wire_fault(fault):
        return f"the payload is not a valid {message}: {_wire_detail(fault)}"
    if fault.code is FaultCode.KIND:
        return f"expected {Kind(fault.expected).description}, got {Kind(fault.got).description}"
    if fault.code is FaultCode.TOO_MANY_FEATURES:
        return f"more than tfr.dataset(…, limits=tfr.Limits(features={fault.expected!r})) different feature names"
    length = f", length {fault.byte}" if fault.byte >= 0 else ""
    return _FAULTS[fault.code][1].format(f=fault, length=length)


def to_error(
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
        case FaultCode.UNKNOWN_FEATURE if not contradicts_sample:
            text = "the embedded schema does not have it; "
            return Hint(
                f"{text}schema='infer' reads all features of the records",
                f"{text}--columns with the names of others leaves it out",
            )
        case FaultCode.LENGTH_TOO_LARGE if fault.got > MAX_RECORD_BYTES:
            text = f"{MAX_RECORD_BYTES} is protobuf's own limit, which cannot be raised; "
            return Hint(text + ON_ERROR, text + ON_ERROR_CLI)
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
        tensor = printable(feature_of_companion(fault.feature or "") or "")
        text = f"it is read as a companion of the tensor '{tensor}', and had another type before; pass "
        cli = f"{text}--type {tensor}=binary to read the bytes without it"
        return Hint(f"{text}schema={ {tensor: 'binary'}!r} to read the bytes without it", cli)
    layouts = [] if plan is None else [column.layout for column in plan.columns if column.name == fault.feature]
    return other_kind_hint(Kind(fault.expected), Kind(fault.got), layouts[0] if layouts else None)


def not_examples(counts: RecordCounts, path: str | None, *, is_declared: bool = False) -> DecodeError | None:
    """The error for records that are not Examples or SequenceExamples, if all conclusive ones are another message.

    If the type of the records `is_declared`, records without a feature are accepted, but not ExampleListWithContext.
    """
    if not 0 < counts.seen == counts.foreign or (is_declared and not counts.nested):
        return None
    reason, got = "none of them holds a feature", "another message"
    if is_declared or counts.nested == counts.foreign:
        reason = "they look like ExampleListWithContext (TensorFlow Ranking), which has Examples where features are"
        got = "ExampleListWithContext"
    return no_examples(path, reason, got)


def record_error(
    path: str, fault: Fault, *, record: int, offset: int, data: Any = b"", **context: Any
) -> TFRecordError:
    """Build the exception for a fault in `data`, which starts at byte `offset` and record number `record` of a file.

    If the fault is in the first record of the file, the message names the format that the first bytes look like, or
    what its writer stores as checksums.
    """
    is_first = fault.code <= FaultCode.LENGTH_TOO_LARGE and offset + fault.offset == 0
    head = bytes(memoryview(data)[:_HEAD_BYTES]) if is_first else b""
    is_other = len(head) >= _LEAST_HEAD_BYTES and not FrameHeader(head).is_intact
    kind = looks_like(head) if is_other else None
    if is_first and kind is None and (stored := wrong_checksums(data)) is not None:
        error = to_error(fault, path=path, record=record, offset=offset, **context)
        error.reason = f"{error.reason}: {stored}"
        error.set_hint(WITHOUT_CRC, WITHOUT_CRC_CLI)
        return error
    if kind is None:
        error = to_error(fault, path=path, record=record, offset=offset, **context)
        if is_wire_fault(fault) and (kind := _kind_of_payload(data, fault.offset)) is not None:
            error.reason = f"{error.reason}; it looks like {kind}"
        return error
    reason = f"not TFRecord: looks like {kind}"
    hint = Hint(*reader_hints(kind))
    return CorruptRecordError(
        reason,
        path=path,
        record=0,
        offset=0,
        expected=_TFRECORD,
        got=kind,
        records_intact=0,
        hint=hint.text,
        hint_cli=hint.cli,
    )


def _kind_of_payload(data: Any, at: int) -> str | None:
    """The kind of file that the payload of the record at byte `at` looks like; None if it is unknown."""
    frame = bytes(memoryview(data)[at : at + FrameHeader.BYTES + _HEAD_BYTES])
    payload = frame[FrameHeader.BYTES :][: FrameHeader(frame).payload_length] if FrameHeader(frame).is_intact else b""
    kind = looks_like(payload) if len(payload) >= _LEAST_HEAD_BYTES else None
    return None if kind == ZEROS else kind


def no_examples(path: str | None, reason: str, got: str = "another message", record: int = 0) -> DecodeError:
    """The error for a file whose records are intact and none of which is an Example, as `record` shows."""
    return DecodeError(
        f"the records are not tf.train.Examples: {reason}",
        path=path,
        record=record,
        expected="Example",
        got=got,
        records_intact=record,
        hint=OTHER_MESSAGE,
        hint_cli=OTHER_MESSAGE_CLI,
    )


def is_about_no_examples(error: Exception) -> bool:
    """True for an error of `no_examples`, which is not about damage."""
    return isinstance(error, DecodeError) and error.expected == "Example"


def is_other_format(error: TFRecordError) -> bool:
    """True if an error of `record_error` is about the first bytes of a file, which look like another format."""
    return error.expected == _TFRECORD


def _value(fault: Fault, number: int) -> object:
    if fault.code is FaultCode.KIND:
        return Kind(number).name
    if fault.code < 16 or fault.code in (FaultCode.LENGTH_PAST_END, FaultCode.VALUE_COUNT, FaultCode.TOO_MANY_FEATURES):
        return number
    return None
