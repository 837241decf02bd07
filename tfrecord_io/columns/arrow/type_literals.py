"""Give the literals of a condition the types of the columns that they are compared with.

A literal gets the type of its column; text becomes a date or a time, as in SQL. pyarrow would cast the column instead,
and only the values of ``in`` would get the type of the column. `exact_comparison` compares numbers of different types.
What cannot be compared is refused, by a SchemaError, in two functions that convert nothing: `_check_operator` and
`_check_literal`.

Tests: tests/columns/arrow/test_type_literals.py and tests/laws/test_operator_rows.py.
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import Condition, Operator, printable
from tfrecord_io.columns.arrow.evaluate_condition import comparable, is_comparable, is_compared_as_storage
from tfrecord_io.columns.arrow.exact_comparison import exact_comparison, exact_members, is_number
from tfrecord_io.columns.arrow.times_in_conditions import NotOneTimeError, assign_zone, parse_text
from tfrecord_io.columns.schema.tensor_types import is_any_tensor
from tfrecord_io.columns.schema.type_names import short_type_name
from tfrecord_io.columns.schema.types import is_bytes, is_list_like, is_text
from tfrecord_io.errors import SchemaError

_FORMS = {"date": "2024-01-31", "time": "12:30:00", "timestamp": "2024-01-31T12:30:00"}
_COMPARED = (("times", "text"), ("numbers", "bools"))  # families; without a schema, flags are integers


def type_literals(condition: Condition, schema: pa.Schema) -> Condition:
    """Cast the literals of a condition to the type of their column, with Arrow's functions.

    Text is a date, time or timestamp where the column is; a timestamp without an offset from UTC is in the time zone of
    the column, and a date is its first moment there. Numbers of other types become one of the column's, and ``in`` has
    those that the column can have.

    >>> from tfrecord_io.base.options.filters import condition_of
    >>> type_literals(condition_of([("day", ">=", "2024-01-31")]), pa.schema({"day": pa.date32()})).text
    "day >= DATE '2024-01-31'"
    >>> type_literals(condition_of([("n", ">", 1.5)]), pa.schema({"n": pa.int64()})).text
    'n > 1'
    >>> type_literals(condition_of([("n", "between", (1.5, 3))]), pa.schema({"n": pa.int64()})).text
    'n >= 2 and n <= 3'

    SchemaError if the text is not of this form, a column of text is compared with a number, or an operator does not
    take the type of its column.
    """
    part, arguments = condition, condition.arguments
    if part.kind != "call":
        return part
    kinds = list(map(attrgetter("kind"), arguments))
    operator = part.operator
    if operator is not None and kinds == ["literal", "field"] and (mirror := operator.mirror()) is not None:
        mirrored = Condition("call", mirror.function, arguments=arguments[::-1])
        typed = type_literals(mirrored, schema)
        return part if typed is mirrored else typed
    field = _field(arguments[0], schema) if kinds[:1] == ["field"] else None
    if operator is not None and field is not None:
        _check_operator(part, field, operator)
    if operator is not None and operator.comparisons is not None:
        column, *operands = arguments
        type_ = pa.null() if field is None else field.type
        compared = operator.comparisons([operand.value for operand in operands], type_)
        literals = ((function, Condition("literal", value=value)) for function, value in compared)
        parts = [Condition("call", function, arguments=(column, literal)) for function, literal in literals]
        return type_literals(Condition.all_of(parts), schema)
    if field is not None and part.is_comparison and kinds == ["field", "literal"]:
        return _retype_comparison(part, field)
    if field is not None and part.name == "is_in" and kinds == ["field"]:
        return _retype_members(part, field)
    return part.replace_arguments([type_literals(argument, schema) for argument in arguments])


def _field(part: Condition, schema: pa.Schema) -> pa.Field | None:
    """The field that a part of a condition names, with the type of the values of a dictionary; None if missing."""
    at = schema.get_field_index(part.path[0])
    field = schema.field(at) if at >= 0 else None
    for name in part.path[1:]:
        at = field.type.get_field_index(name) if field is not None and t.is_struct(field.type) else -1
        field = field.type.field(at) if field is not None and at >= 0 else None
    if field is not None and is_compared_as_storage(field.type):
        return field.with_type(field.type.storage_type)
    is_dictionary = field is not None and t.is_dictionary(field.type)
    return field.with_type(field.type.value_type) if field is not None and is_dictionary else field


# ---- families of types, and refusals


def _value_family(type_: pa.DataType) -> str | None:
    """Family of the types of single values that may be compared; None: that is left to pyarrow."""
    if t.is_boolean(type_):
        return "bools"
    if is_number(type_):
        return "numbers"
    if is_text(type_) or is_bytes(type_):
        return "text"
    return "times" if t.is_temporal(type_) else None


def column_family(type_: pa.DataType) -> str:
    """Family of a column type, as `Operator.types` names it."""
    if not t.is_map(type_) and is_list_like(type_):
        return "lists"
    return "structs" if t.is_nested(type_) or is_any_tensor(type_) else _value_family(type_) or "others"


def _check_operator(part: Condition, field: pa.Field, operator: Operator) -> None:
    """SchemaError if an operator does not take the type of a column, unless it asks for missing values alone."""
    types = operator.types
    if _value_family(field.type) in types.families or column_family(field.type) in types.families:
        return
    operands = [argument.value for argument in part.arguments[1:]]
    if operator.function == "is_in":  # whose values are options of the call
        operands = [*part.value["value_set"].values]  # type: ignore[index]
    if any(value is None or value.is_valid for value in operands):
        kind = short_type_name(field.type, field.metadata)
        raise SchemaError(types.reason.format(kind), feature=field.name, got=str(field.type), hint=types.hint)


def _check_literal(value: pa.Scalar, field: pa.Field) -> None:
    """SchemaError if a value cannot be compared with a column."""
    family, value_family = _value_family(field.type), _value_family(value.type)
    if family == "numbers" and (family == value_family or not value.is_valid):
        return
    kind = short_type_name(field.type, field.metadata)
    if t.is_string(field.type) and (t.is_integer(value.type) or t.is_floating(value.type)):
        reason, advice = f"the filter compares text with the number {value}", f'write text, such as "{value}"'
    elif family == "numbers" and t.is_string(value.type):
        reason = f'the filter compares {kind} with the text "{printable(value.as_py())}"'
        advice = "write a number, such as 5"
    elif t.is_date(field.type) and t.is_timestamp(value.type) and value.type.tz is not None:
        reason, advice = "the filter compares dates with a time in a time zone", "write a date, such as 2024-01-31"
    elif (
        value.is_valid
        and None not in (family, value_family)
        and family != value_family
        and (family, value_family) not in _COMPARED
    ):
        reason, advice = f"the filter compares {kind} with {value.type}", "write values of the type of the column"
    else:
        return
    raise SchemaError(reason, feature=field.name, expected=field.type, got=value.type, hint=advice)


# ---- conversions


def _retype_comparison(part: Condition, field: pa.Field) -> Condition:
    column, literal = part.arguments
    assert literal.value is not None
    if literal.value.type == field.type and is_comparable(field.type):
        return part
    _check_literal(literal.value, field)
    converted = _parse_literal(literal.value, field)
    exact = exact_comparison(part.name, literal.value if converted is None else converted, field.type)
    if exact is not None:
        compared = column if exact[1] is None else Condition("literal", value=comparable(exact[1]))
        return Condition("call", exact[0], arguments=(column, compared))
    if converted is None and is_comparable(literal.value.type):
        return part
    compared = literal.value if converted is None else converted
    return part.replace_arguments([column, Condition("literal", value=comparable(compared))])


def _retype_members(part: Condition, field: pa.Field) -> Condition:
    assert part.value is not None
    values = part.value["value_set"].values
    for value in values.drop_null()[:1]:
        _check_literal(value, field)
        _parse_literal(value, field)  # an error if a date is no date; other text is parsed below
    if t.is_null(values.type) or t.is_null(field.type):  # a column without values has no other member than null
        members = pa.nulls(values.null_count, field.type)
    elif t.is_timestamp(field.type) and (t.is_string(values.type) or t.is_date(values.type)):
        times = _parse_literals(values, field)
        exact = [time if time.type == field.type else exact_members(time, field.type) for time in times]
        members = pa.concat_arrays([*exact, pa.nulls(values.null_count, field.type)])
    elif t.is_time(field.type) and t.is_string(values.type):
        missing = pa.nulls(values.null_count, pa.time64("ns"))
        members = _possible_times(pa.concat_arrays([*_parse_literals(values, field), missing]), field.type)
    elif (t.is_date(field.type) and t.is_timestamp(values.type)) or (t.is_time(field.type) and t.is_time(values.type)):
        members = _possible_times(values, field.type)
    else:
        members = exact_members(values, field.type)
    typed = values if members is None else members
    are_floats = t.is_floating(field.type) and t.is_floating(typed.type)
    if are_floats and (typed.drop_null().to_numpy(zero_copy_only=False) == 0).any():
        zeros = np.array([0.0, -0.0], typed.type.to_pandas_dtype())  # which are equal, but not as members
        members = pa.concat_arrays([typed, pa.array(zeros, typed.type)])
    if members is None and is_comparable(typed.type):
        return part
    members = comparable(typed if members is None else members)
    children = dict(part.value.items())
    children["value_set"] = pa.ListArray.from_arrays([0, len(members)], members)[0]
    arrays = [pa.repeat(child, 1) for child in children.values()]
    return Condition(
        "call", part.name, value=pa.StructArray.from_arrays(arrays, list(children))[0], arguments=part.arguments
    )


def _parse_literal(value: pa.Scalar, field: pa.Field) -> pa.Scalar | None:
    """The date or time that a text or a day stands for; None: it is compared as it is. SchemaError: there is none."""
    is_day = t.is_timestamp(field.type) and t.is_date(value.type)
    if not (t.is_string(value.type) or is_day) or not value.is_valid:
        return None
    form = next((form for name, form in _FORMS.items() if getattr(t, f"is_{name}")(field.type)), None)
    if form is None:
        return None
    try:
        return assign_zone(value.cast(pa.timestamp("s")), field.type.tz) if is_day else parse_text(value, field.type)
    except NotOneTimeError as error:
        kind = short_type_name(field.type, field.metadata)
        reason = f"the filter compares {kind} with '{printable(str(value.as_py()))}', {error}"
        raise SchemaError(reason, feature=field.name, expected=kind, hint=error.advice) from error
    except (pa.ArrowException, ValueError) as error:
        kind = short_type_name(field.type, field.metadata)
        reason = f"the filter compares {kind} with '{printable(value.as_py())}'"
        raise SchemaError(reason, feature=field.name, expected=kind, hint=f"write it as {form}") from error


def _parse_literals(values: pa.Array, field: pa.Field) -> list[pa.Array]:
    """Parse the values that are not null by `_parse_literal`, to an array for each value."""
    return [pa.repeat(_parse_literal(value, field), 1) for value in values.drop_null()]


def _possible_times(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Select the times that a column of `type_` can have; a cast alone would shorten the others."""
    import pyarrow.compute as pc

    times = values.cast(type_, safe=False)
    return times.filter(pc.equal(times.cast(values.type), values).fill_null(True))
