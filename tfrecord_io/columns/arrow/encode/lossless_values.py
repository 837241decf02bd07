"""Values as features store them, int64 and float32; what would change is an EncodeError.

Tests: tests/columns/arrow/encode/test_encode_columns.py.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, and_more, counted, printable, warn
from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.buffers import ArrayBuffers
from tfrecord_io.columns.arrow.row_fault import first_failing
from tfrecord_io.columns.schema.types import DAY, is_text
from tfrecord_io.errors import EncodeError, PrecisionWarning

if TYPE_CHECKING:
    from tfrecord_io.columns.arrow.flatten import Rows

_NAMES_IN_WARNING = 10


class Rounding:
    """Counts, over all batches of a write, the floats that a narrower type does not hold: mostly float64 in float32."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._halves: set[str] = set()  # features that were rounded to float16
        self._lock = threading.Lock()

    def add(self, feature: str, count: int, dtype: str = "float32") -> None:
        """Note `count` values of `feature`, rounded to `dtype`; batches may be encoded by several threads."""
        with self._lock:
            self.counts[feature] += count
            if dtype == "float16":
                self._halves.add(feature)

    def merge(self, other: Rounding) -> None:
        """Add what `other` has counted."""
        self.counts.update(other.counts)
        self._halves |= other._halves

    def to_dict(self) -> dict[str, Any]:
        """As a value of JSON; `from_document` reads it."""
        return {"counts": dict(self.counts), "float16": sorted(self._halves)}

    @classmethod
    def from_document(cls, document: dict[str, Any]) -> Rounding:
        rounding = cls()
        rounding.counts.update({str(name): int(count) for name, count in document["counts"].items()})
        rounding._halves.update(map(str, document["float16"]))
        return rounding

    def __reduce__(self) -> tuple[Any, ...]:
        return Rounding.from_document, (self.to_dict(),)

    def warn(self) -> None:
        """Issue the one PrecisionWarning of a write, if a value was rounded."""
        if not self.counts:
            return
        frequent = self.counts.most_common(_NAMES_IN_WARNING)
        named = [f"'{printable(name)}' ({counted(count, 'value')})" for name, count in frequent]
        text = ", ".join(named) + and_more(len(self.counts) - len(named), "column")
        advice = 'float64="raw" keeps the bits, or float64="round" accepts the rounding silently'
        if self._halves:
            warn(f"floats were rounded to the schema's float16 or to float32 in {text}", PrecisionWarning)
            return
        rounded = f"float64 values were rounded to float32 in {text}"
        text_cli = "--float64 raw keeps the bits, or --float64 round accepts the rounding silently"
        reason = f"{rounded}; a TFRecord has no float64"
        warn(f"{reason}; {advice}", PrecisionWarning, f"{reason}; {text_cli}")


def int64_values(array: pa.Array, rows: Rows) -> Array:
    """Integers, bools and temporal values; the slots of null rows hold anything."""
    numbers = ArrayBuffers(array).numbers
    if t.is_time(array.type):
        bad = (numbers < 0) | (numbers >= DAY[array.type.unit])
        _refuse(
            bad,
            numbers,
            rows=rows,
            reason=f"the number of this {array.type} is not a time of day",
            hint="cast it to a duration",
        )
    elif t.is_date64(array.type):
        advice = "cast the column to timestamp[ms], or to date32"
        _refuse(numbers % DAY["ms"] != 0, numbers, rows=rows, reason="a date64 is not at midnight", hint=advice)
    if numbers.dtype == np.uint64:
        reason = "an unsigned integer above 2**63 - 1 cannot be stored in a TFRecord"
        raw, option = f"{{'{printable(rows.feature)}': 'raw'}}", f"{printable(rows.feature)}=raw"
        text = "or convert the column to text"
        advice, advice_cli = f"pass column_encoding={raw}, {text}", f"pass --column-encoding {option}, {text}"
        _refuse(numbers > LIMITS.INT64_MAX, numbers, rows=rows, reason=reason, hint=advice, hint_cli=advice_cli)
        return numbers.view(np.int64)
    return numbers.astype(np.int64, copy=False)


def float32_values(array: pa.Array, rows: Rows, float64: str | None, rounding: Rounding) -> Array:
    """Floats, float64 rounded to nearest; NaN stays NaN."""
    exact = ArrayBuffers(array).numbers
    if exact.dtype != np.float64:
        return exact.astype(np.float32, copy=False)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        rounded = exact.astype(np.float32)
    infinite = np.isinf(rounded)
    if infinite.any():
        reason, advice = "a finite float64 is too large for float32", 'write the column with float64="raw"'
        _refuse(infinite & np.isfinite(exact), exact, rows=rows, reason=reason, hint=advice)
    if float64 == "round":
        return rounded
    changed = rounded != exact
    if changed.any():
        changed &= ~np.isnan(exact)
        if float64 == "error":
            hint = 'float64="raw" keeps its bits, or float64="round" rounds it'
            hint_cli = "--float64 raw keeps its bits, or --float64 round rounds it"
            _refuse(changed, exact, rows=rows, reason="float32 cannot hold a float64", hint=hint, hint_cli=hint_cli)
        count = np.count_nonzero(_clear_unwritten(changed, rows))
        if count:
            rounding.add(rows.feature, int(count))
    return rounded


def _clear_unwritten(flags: Array, rows: Rows) -> Array:
    """Clear the flags of values that are not written."""
    return flags & rows.valid if rows.valid is not None and rows.offsets is None else flags


def _refuse(bad: Array, numbers: Array, rows: Rows, reason: str, hint: str, hint_cli: str | None = None) -> None:
    bad = _clear_unwritten(bad, rows)
    if bad.any():
        slot = int(np.argmax(bad))
        raise rows.error(slot, reason, hint, got=numbers[slot].item(), hint_cli=hint_cli)


def refuse_invalid(array: pa.Array, data: Array, rows: Rows) -> None:
    """Refuse text, the bytes of which are `data`, that is not UTF-8, and decimals of too many digits.

    Arrow's strings may hold any bytes, and its decimals any number of their width.
    """
    import pyarrow.compute as pc

    if t.is_decimal(array.type):
        reason = f"the number has more digits than {array.type}"
        advice = "cast the column to a decimal of more digits, or to text"
    elif is_text(array.type) and data.size and data.view(np.int8).min() < 0:  # not ASCII
        reason, advice = "the text is not UTF-8", "cast the column to binary, or decode it first"
    else:
        return
    if rows.valid is not None and rows.offsets is None:
        array = pc.if_else(pa.array(rows.valid), array, pa.nulls(len(array), array.type))
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        bad = first_failing(len(array), lambda begin, end: array[begin:end].validate(full=True), pa.ArrowInvalid)
        raise rows.error(bad, reason, advice) from None


def refuse_invalid_categories(values: pa.Array, feature: str) -> None:
    """Refuse categories that are not values of their type, which no reader of the embedded schema would accept."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        reason = f"its categories are not all valid values of the type {values.type}"
        advice = "cast the column, or pass embed_schema=False"
        advice_cli = "cast the column, or pass --no-embed-schema"
        raise EncodeError(reason, feature=feature, hint=advice, hint_cli=advice_cli) from None
