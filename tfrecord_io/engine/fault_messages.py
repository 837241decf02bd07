"""A fault in words: the one table from codes to exceptions and sentences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfrecord_io.engine.contract import Fault, FaultCode, Plan
from tfrecord_io.errors import (
    CorruptRecordError,
    DecodeError,
    FeatureNotFoundError,
    FeatureTypeError,
    SchemaError,
    TFRecordError,
    TruncatedRecordError,
)
from tfrecord_io.format.kinds import Kind
from tfrecord_io.format.magic import looks_like

_HEAD_BYTES = 4096  # enough to recognize a file format
_LEAST_HEAD_BYTES = 4  # fewer bytes may be a truncated record length

ON_ERROR = "see on_error="
OTHER_MESSAGE = 'if these records are other messages or plain bytes, pass record_type="bytes"'


def _crc(what: str) -> Callable[[Fault], str]:
    def reason(fault: Fault) -> str:
        length = f", length {fault.byte}" if fault.byte >= 0 else ""
        return f"{what} CRC mismatch (stored 0x{fault.got:08x}, computed 0x{fault.expected:08x}{length})"

    return reason


def _too_large(fault: Fault) -> str:
    length = fault.got + 2**64 if fault.got < 0 else fault.got
    return f"its length {length} is over the limit of {fault.expected} bytes"


def _wire(what: str) -> Callable[[Fault], str]:
    def reason(fault: Fault) -> str:
        at = f" at byte {fault.byte} of the payload" if fault.byte >= 0 else ""
        return f"the payload is no valid protobuf message: {what.format(fault=fault)}{at}"

    return reason


@dataclass(frozen=True)
class _Words:
    error: type[TFRecordError]
    reason: Callable[[Fault], str]
    advice: str | None = None


_NO_TEXT = "it was text so far: pass infer_text=False, or a schema with pa.binary() for it, or sample='all'"
_WORDS: dict[FaultCode, _Words] = {
    FaultCode.TRUNCATED_HEADER: _Words(
        TruncatedRecordError,
        lambda f: f"the file ends inside the record's header (expected {f.expected} bytes, got {f.got})",
        ON_ERROR,
    ),
    FaultCode.TRUNCATED_PAYLOAD: _Words(
        TruncatedRecordError,
        lambda f: f"the file ends inside the record's payload (expected {f.expected} bytes, got {f.got})",
        ON_ERROR,
    ),
    FaultCode.TRUNCATED_FOOTER: _Words(
        TruncatedRecordError,
        lambda f: f"the file ends inside the record's footer (expected {f.expected} bytes, got {f.got})",
        ON_ERROR,
    ),
    FaultCode.LENGTH_CRC: _Words(CorruptRecordError, _crc("length"), ON_ERROR),
    FaultCode.PAYLOAD_CRC: _Words(CorruptRecordError, _crc("payload"), ON_ERROR),
    FaultCode.LENGTH_TOO_LARGE: _Words(
        CorruptRecordError,
        _too_large,
        "raise max_record_bytes= if such records are meant (protobuf's own limit is 2147483647)",
    ),
    FaultCode.VARINT_TRUNCATED: _Words(DecodeError, _wire("a varint is cut"), OTHER_MESSAGE),
    FaultCode.VARINT_TOO_LONG: _Words(DecodeError, _wire("a varint is longer than ten bytes"), OTHER_MESSAGE),
    FaultCode.LENGTH_PAST_END: _Words(
        DecodeError, _wire("a field of {fault.got} bytes where {fault.expected} are left"), OTHER_MESSAGE
    ),
    FaultCode.BAD_WIRE_TYPE: _Words(DecodeError, _wire("wire type {fault.got}"), OTHER_MESSAGE),
    FaultCode.FIELD_ZERO: _Words(DecodeError, _wire("field number 0"), OTHER_MESSAGE),
    FaultCode.GROUP_END_UNEXPECTED: _Words(DecodeError, _wire("the end of a group that is not open"), OTHER_MESSAGE),
    FaultCode.GROUP_UNCLOSED: _Words(DecodeError, _wire("a group is not closed"), OTHER_MESSAGE),
    FaultCode.GROUP_TOO_DEEP: _Words(DecodeError, _wire("groups are nested deeper than 100"), OTHER_MESSAGE),
    FaultCode.KEY_NOT_UTF8: _Words(DecodeError, _wire("a feature's name is not UTF-8"), OTHER_MESSAGE),
    FaultCode.PACKED_FLOAT_SIZE: _Words(
        DecodeError, _wire("packed floats of {fault.got} bytes, no multiple of 4"), OTHER_MESSAGE
    ),
    FaultCode.FIXED_TRUNCATED: _Words(DecodeError, _wire("a fixed-size field is cut"), OTHER_MESSAGE),
    FaultCode.TAG_TOO_LONG: _Words(DecodeError, _wire("a tag is longer than five bytes"), OTHER_MESSAGE),
    FaultCode.WIRE: _Words(DecodeError, _wire("protobuf refuses it"), OTHER_MESSAGE),
    FaultCode.KIND: _Words(
        FeatureTypeError,
        lambda f: f"expected {Kind(f.expected).description}, got {Kind(f.got).description}",
        "pass a schema that fits the records, or leave the feature out",
    ),
    FaultCode.VALUE_COUNT: _Words(
        DecodeError,
        lambda f: f"expected exactly 1 value, got {f.got}",
        "declare the feature as a list in schema=, or pass sample='all'",
    ),
    FaultCode.NOT_TEXT: _Words(DecodeError, lambda f: "expected text, got bytes that are no text", _NO_TEXT),
    FaultCode.NOT_UTF8: _Words(
        DecodeError, lambda f: "expected UTF-8, got other bytes", "declare the feature as binary"
    ),
    FaultCode.UNKNOWN_FEATURE: _Words(
        SchemaError,
        lambda f: "the schema does not name this feature",
        "pass on_new='ignore' to leave it out, or sample='all', or name it in schema= (a feature list by tfr.sequence)",
    ),
    FaultCode.MISSING_FEATURE: _Words(
        FeatureNotFoundError, lambda f: "the schema requires this feature and the record has no value for it"
    ),
    FaultCode.TOO_MANY_FEATURES: _Words(
        SchemaError,
        lambda f: f"more than max_features={f.expected} different feature names",
        "raise max_features= if they are meant",
    ),
    FaultCode.NAME_IN_BOTH: _Words(
        SchemaError,
        lambda f: "the name stands in the context and in the feature lists",
        "name one of the two by schema=",
    ),
}


def to_error(
    fault: Fault,
    *,
    path: str | None = None,
    record: int = 0,
    offset: int = 0,
    contradicts_sample: bool = False,
    plan: Plan | None = None,
) -> TFRecordError:
    """The exception for a fault.

    Parameters
    ----------
    record, offset : int
        What the fault's own numbers count from: the record and byte of the file at which the call's data began.
    contradicts_sample : bool
        `plan` was made from a sample of the records, not by the caller: a misfit is a SchemaError.
    """
    words = _WORDS[fault.code]
    error = words.error
    advice = words.advice
    if contradicts_sample and fault.code in (FaultCode.KIND, FaultCode.VALUE_COUNT, FaultCode.NOT_TEXT):
        error = SchemaError
        if fault.code is FaultCode.KIND:
            advice = "the schema was fixed from a sample: pass sample='all' or schema="
    if (
        fault.code is FaultCode.UNKNOWN_FEATURE
        and plan is not None
        and any(column.name == fault.feature for column in plan.columns)
    ):
        advice = "the record has it in its other part: tfr.sequence declares a feature list, all else a context feature"
    elif fault.code is FaultCode.UNKNOWN_FEATURE and not contradicts_sample:
        advice = "the file carries a schema without it: schema='infer' reads what the records hold"
    return error(
        words.reason(fault),
        path=path,
        record=record + fault.record,
        offset=offset + fault.offset,
        feature=fault.feature,
        expected=_value(fault, fault.expected),
        got=_value(fault, fault.got),
        records_intact=record + fault.record,
        advice=advice,
    )


def record_error(
    path: str, fault: Fault, *, record: int, offset: int, data: Any = b"", **context: Any
) -> TFRecordError:
    """Build the exception for a fault in `data`, which starts at byte `offset` and record number `record` of a file.

    If the fault is in the first header of the file, the message names the format that the first bytes look like.
    """
    if fault.code in (FaultCode.LENGTH_CRC, FaultCode.TRUNCATED_HEADER) and offset + fault.offset == 0:
        head = bytes(memoryview(data)[:_HEAD_BYTES])
        kind = looks_like(head) if len(head) >= _LEAST_HEAD_BYTES else None
        if kind is not None:
            reason = f"not TFRecord: looks like {kind}"
            return CorruptRecordError(
                reason, path=path, record=0, offset=0, expected="TFRecord", got=kind, records_intact=0
            )
    return to_error(fault, path=path, record=record, offset=offset, **context)


def _value(fault: Fault, number: int) -> object:
    if fault.code is FaultCode.KIND:
        return Kind(number).name
    if fault.code < 16 or fault.code in (FaultCode.LENGTH_PAST_END, FaultCode.VALUE_COUNT, FaultCode.TOO_MANY_FEATURES):
        return number
    return None
