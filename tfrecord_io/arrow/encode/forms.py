"""The columns of a plan that an engine can encode from Arrow arrays as they are."""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.encode.plan import WritePlan
from tfrecord_io.engine.contract import PlainForm, PlainValue
from tfrecord_io.format.kinds import Layout
from tfrecord_io.schema.leaf import LIST

_BYTES = {
    pa.lib.Type_BINARY: (PlainValue.BYTES, False),
    pa.lib.Type_LARGE_BINARY: (PlainValue.BYTES, True),
    pa.lib.Type_STRING: (PlainValue.TEXT, False),
    pa.lib.Type_LARGE_STRING: (PlainValue.TEXT, True),
}


def plain_forms(plan: WritePlan) -> list[PlainForm | None]:
    """The form of each column whose rows are single values that are stored as they are or widened to int64, else None.

    Values of the other types are checked, rounded or converted by `encode_columns`.
    """
    forms: list[PlainForm | None] = []
    for field, parts, in_steps in zip(plan.schema, plan.columns, plan.in_steps, strict=True):
        plain = len(parts) == 1 and not parts[0].path and not in_steps and parts[0].layout is Layout.SCALAR
        forms.append(_form(parts[0].feature, field.type) if plain and parts[0].encoding == LIST else None)
    return forms


def _form(feature: str, type_: pa.DataType) -> PlainForm | None:
    if type_.id in _BYTES:
        value, large = _BYTES[type_.id]
        return PlainForm(feature, value, large=large)
    if t.is_float32(type_):
        return PlainForm(feature, PlainValue.FLOAT, bits=32)
    if t.is_boolean(type_):
        return PlainForm(feature, PlainValue.BOOL, bits=1)
    is_number = t.is_integer(type_) and not t.is_uint64(type_)
    if is_number or t.is_timestamp(type_) or t.is_duration(type_) or t.is_date32(type_):
        return PlainForm(feature, PlainValue.INT, bits=type_.bit_width, signed=not t.is_unsigned_integer(type_))
    return None
