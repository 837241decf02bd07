"""Text in conditions that is compared with dates and times: it has the type of the column, as in SQL.

An expression is pickled as an Arrow batch of its literals, whose metadata has the steps (see `expression_columns`): a
literal of another type is another column of that batch.
"""

from __future__ import annotations

import datetime
import io
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.expression_columns import expression_entries
from tfrecord_io.arrow.simple_conditions import COMPARISONS
from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.schema.type_names import short_type_name

if TYPE_CHECKING:
    import pyarrow.compute as pc

_FORMS = {"date": "2024-01-31", "time": "12:30:00", "timestamp": "2024-01-31T12:30:00"}


def with_typed_text(expression: pc.Expression, schema: pa.Schema) -> pc.Expression:
    """The same condition, where text that is compared with a column of dates, times or timestamps has its type.

    A timestamp without an offset from UTC is in the time zone of the column.

    >>> import pyarrow.compute as pc
    >>> with_typed_text(pc.field("day") >= "2024-01-31", pa.schema({"day": pa.date32()}))
    <pyarrow.compute.Expression (day >= 2024-01-31)>

    Raises
    ------
    SchemaError
        The text is not of this form, or a column of text is compared with a number.
    """
    entries, literals = expression_entries(expression)
    typed: dict[int, pa.Scalar] = {}
    for (kind, name), *pair in zip(entries, entries[1:], entries[2:], strict=False):
        column, value = pair if pair[0][0] == b"field_ref" else pair[::-1]
        if (kind, column[0], value[0]) == (b"call", b"field_ref", b"literal") and name.decode() in COMPARISONS:
            field_index = schema.get_field_index(column[1].decode())
            scalar = literals.column(int(value[1]))[0]
            if field_index >= 0 and (converted := _converted(scalar, schema.field(field_index))) is not None:
                typed[int(value[1])] = converted
    return _with_literals(expression, entries, literals, typed) if typed else expression


def _converted(value: pa.Scalar, field: pa.Field) -> pa.Scalar | None:
    """Text as a date or time; None if the comparison stays as it is."""
    if t.is_string(field.type) and (t.is_integer(value.type) or t.is_floating(value.type)):
        reason, advice = f"the filter compares text with the number {value}", f'write text, such as "{value}"'
        raise SchemaError(reason, feature=field.name, expected=pa.string(), got=value.type, advice=advice)
    if not t.is_string(value.type) or not value.is_valid:
        return None
    form = next((form for name, form in _FORMS.items() if getattr(t, f"is_{name}")(field.type)), None)
    if form is None:
        return None
    try:
        return _parsed(value, field.type)
    except (pa.ArrowException, ValueError) as error:
        kind = short_type_name(field.type)
        reason = f"the filter compares {kind} with '{printable(value.as_py())}'"
        raise SchemaError(reason, feature=field.name, expected=kind, advice=f"write it as {form}") from error


def _parsed(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    if t.is_time(type_):
        time = datetime.time.fromisoformat(value.as_py())
        if time.tzinfo is not None:
            raise ValueError("a time has no offset")
        return pa.scalar(time, type_)
    if not t.is_timestamp(type_) or type_.tz is None:
        return value.cast(type_)
    try:
        return value.cast(type_)
    except pa.ArrowInvalid:  # it has no offset
        import pyarrow.compute as pc

        return pc.assume_timezone(value.cast(pa.timestamp(type_.unit)), type_.tz)


def _with_literals(
    expression: pc.Expression,
    entries: list[tuple[bytes, bytes]],
    literals: pa.RecordBatch,
    changed: dict[int, pa.Scalar],
) -> pc.Expression:
    columns = [pa.array([changed[at]]) if at in changed else column for at, column in enumerate(literals.columns)]
    fields = [pa.field(name, column.type) for name, column in zip(literals.schema.names, columns, strict=True)]
    schema = pa.schema(fields, pa.KeyValueMetadata(entries))  # which keeps entries with the same key
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    make, _ = expression.__reduce__()
    return make(pa.py_buffer(sink.getvalue()))
