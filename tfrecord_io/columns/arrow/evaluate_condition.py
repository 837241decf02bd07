"""Evaluate simple conditions on record batches, and give literals in conditions the types of columns.

pyarrow takes a fifth of a millisecond to bind an expression for each batch, as long as decoding thousands of records. A
simple condition is evaluated by pyarrow's functions, without an expression. A condition for which pyarrow would cast a
column first, other than from float32 to float64, is not simple.

A literal gets the type of the column that it is compared with; text becomes a date or a time, as in SQL. pyarrow would
cast the column instead: large integers would be rounded, and a comparison would fail where no decimal has the digits of
both sides. Only the values of ``in`` would get the type of the column. Here all operators compare numbers exactly,
whatever their type, with one exception: among floats of fewer bits, a float is rounded to the nearest of them, so that
0.1 equals the 0.1 of a float32 column (`exact_comparison`, `exact_members`).
"""

from __future__ import annotations

import datetime
import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import Condition, Operand, Operator, printable
from tfrecord_io.columns.schema.tensor_types import is_any_tensor
from tfrecord_io.columns.schema.type_names import short_type_name
from tfrecord_io.columns.schema.types import EXTENSIONS, is_bytes, is_list_like, is_text, is_value_extension
from tfrecord_io.errors import SchemaError

_OF_BOOLS = frozenset(["and_kleene", "or_kleene", "invert"])

_PLAIN = (pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary())  # compared as they are, as integers are

_FORMS = {"date": "2024-01-31", "time": "12:30:00", "timestamp": "2024-01-31T12:30:00"}
COMPARISONS = frozenset(Operator.MIRRORED)
_FUNCTIONS = COMPARISONS | _OF_BOOLS | {"is_valid"}


class _NotSimple(Exception):
    pass


def values_of(condition: Condition, batch: pa.RecordBatch) -> pa.BooleanArray | None:
    """The values of a simple condition for the rows of a batch; None if it is not simple, or depends on no column.

    A simple condition has no calls but comparisons, ``&``, ``|``, ``~`` and ``is_valid()``, and needs no other cast.
    """
    if not condition.functions <= _FUNCTIONS:
        return None
    try:
        values = _values(condition, batch)
    except _NotSimple:
        return None
    return values if isinstance(values, pa.BooleanArray) else None


def _values(part: Condition, batch: pa.RecordBatch) -> Any:
    import pyarrow.compute as pc

    if part.kind == "literal":
        return part.value
    if part.kind == "field":
        column = batch.column(part.path[0])
        return column.storage if is_compared_as_storage(column.type) else column
    arguments = [_values(argument, batch) for argument in part.arguments]
    if part.name in COMPARISONS:
        arguments = _unify_argument_types(*arguments)
    elif part.name in _OF_BOOLS and not all(t.is_boolean(argument.type) for argument in arguments):
        raise _NotSimple
    return pc.call_function(part.name, arguments)


def _unify_argument_types(first: Any, second: Any) -> list[Any]:
    """The arguments of a comparison, a literal number in the type of the column if that has its value."""
    if isinstance(first, pa.Scalar) and not isinstance(second, pa.Scalar):
        return _unify_argument_types(second, first)[::-1]
    type_ = first.type
    if isinstance(first, pa.Scalar) or not (t.is_integer(type_) or type_ in _PLAIN):
        raise _NotSimple
    if second.type == type_:
        return [first, second]
    is_integer = t.is_integer(type_) and t.is_integer(second.type)
    is_float = t.is_float32(type_) and t.is_float64(second.type)
    if not isinstance(second, pa.Scalar) or not (is_integer or is_float) or not second.is_valid:
        raise _NotSimple
    try:
        cast = second.cast(type_)
    except pa.ArrowInvalid:
        raise _NotSimple from None
    if cast.as_py() == second.as_py():
        return [first, cast]
    if is_float:  # such as 0.1, which no float32 is
        return [first.cast(pa.float64()), second]
    raise _NotSimple


def type_literals(condition: Condition, schema: pa.Schema) -> Condition:
    """Give literals the type of the column that they are compared with, in functions that Arrow has.

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
    kinds = [argument.kind for argument in arguments]
    if part.name in COMPARISONS and kinds == ["literal", "field"]:
        mirrored = Condition("call", Operator.MIRRORED[part.name], arguments=arguments[::-1])
        typed = type_literals(mirrored, schema)
        return part if typed is mirrored else typed
    field = _field(arguments[0], schema) if kinds[:1] == ["field"] else None
    operator = Operator.BY_FUNCTION.get(part.name)
    if operator is not None and field is not None and _family(field.type) not in operator.types.families:
        _check_family(part, field, operator)
    if operator is not None and operator.comparisons is not None:
        column, *operands = arguments
        type_ = pa.null() if field is None else field.type
        compared = operator.comparisons([operand.value for operand in operands], type_)
        literals = ((function, Condition("literal", value=value)) for function, value in compared)
        parts = [Condition("call", function, arguments=(column, literal)) for function, literal in literals]
        return type_literals(Condition.all_of(parts), schema)
    if field is not None and part.name in COMPARISONS and kinds == ["field", "literal"]:
        return _typed_comparison(part, field)
    if field is not None and part.name == "is_in" and kinds == ["field"]:
        return _typed_members(part, field)
    return part.replace_arguments([type_literals(argument, schema) for argument in arguments])


def _check_family(part: Condition, field: pa.Field, operator: Operator) -> None:
    """SchemaError if an operator does not take the type of a column, unless it asks for missing values alone."""
    family, types = column_family(field.type), operator.types
    if family in types.families:
        return
    operands = [argument.value for argument in part.arguments[1:]]
    if operator.operand is Operand.LIST:
        operands = [*part.value["value_set"].values]  # type: ignore[index]
    if any(value is None or value.is_valid for value in operands):
        kind = short_type_name(field.type, field.metadata)
        raise SchemaError(types.reason.format(kind), feature=field.name, got=str(field.type), hint=types.hint)


def column_family(type_: pa.DataType) -> str:
    """Family of a column type, as `Operator.types` names it."""
    if not t.is_map(type_) and is_list_like(type_):
        return "lists"
    return "structs" if t.is_nested(type_) or is_any_tensor(type_) else _family(type_) or "others"


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


def is_compared_as_storage(type_: pa.DataType) -> bool:
    """True for an extension type of single values that Arrow knows nothing of."""
    return is_value_extension(type_) and type_.extension_name not in EXTENSIONS


def _typed_comparison(part: Condition, field: pa.Field) -> Condition:
    column, literal = part.arguments
    assert literal.value is not None
    converted = _convert_literal(literal.value, field)
    exact = exact_comparison(part.name, literal.value if converted is None else converted, field.type)
    if exact is not None:
        compared = column if exact[1] is None else Condition("literal", value=_comparable(exact[1]))
        return Condition("call", exact[0], arguments=(column, compared))
    if converted is None and not t.is_float16(literal.value.type):
        return part
    compared = literal.value if converted is None else converted
    return part.replace_arguments([column, Condition("literal", value=_comparable(compared))])


def _comparable(values: Any) -> Any:
    """A value, or values, of float16 as float32; see `cast_comparable_columns`."""
    return values.cast(pa.float32()) if t.is_float16(values.type) else values


def cast_comparable_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Turn columns of float16 into float32, which has all of their values: Arrow (26.0) compares no float16.

    Columns of an extension type that `is_compared_as_storage` are that.
    """
    for at, field in enumerate(batch.schema):
        if is_compared_as_storage(field.type):
            field = field.with_type(field.type.storage_type)
            batch = batch.set_column(at, field, batch.column(at).storage)
        if t.is_float16(field.type):
            batch = batch.set_column(at, field.with_type(pa.float32()), _comparable(batch.column(at)))
    return batch


def _typed_members(part: Condition, field: pa.Field) -> Condition:
    assert part.value is not None
    values = part.value["value_set"].values
    for value in values.drop_null()[:1]:
        _convert_literal(value, field)  # refuses what cannot be compared
    if t.is_null(values.type) or t.is_null(field.type):  # a column without values has no other member than null
        members = pa.nulls(values.null_count, field.type)
    elif t.is_timestamp(field.type) and (t.is_string(values.type) or t.is_date(values.type)):
        times = _convert_literals(values, field)
        exact = [time if time.type == field.type else exact_members(time, field.type) for time in times]
        members = pa.concat_arrays([*exact, pa.nulls(values.null_count, field.type)])
    elif t.is_time(field.type) and t.is_string(values.type):
        missing = pa.nulls(values.null_count, pa.time64("ns"))
        members = _possible_times(pa.concat_arrays([*_convert_literals(values, field), missing]), field.type)
    elif (t.is_date(field.type) and t.is_timestamp(values.type)) or (t.is_time(field.type) and t.is_time(values.type)):
        members = _possible_times(values, field.type)
    else:
        members = exact_members(values, field.type)
    typed = values if members is None else members
    are_floats = t.is_floating(field.type) and t.is_floating(typed.type)
    if are_floats and (typed.drop_null().to_numpy(zero_copy_only=False) == 0).any():
        zeros = np.array([0.0, -0.0], typed.type.to_pandas_dtype())  # which are equal, but not as members
        members = pa.concat_arrays([typed, pa.array(zeros, typed.type)])
    if members is None and not t.is_float16(typed.type):
        return part
    members = _comparable(typed if members is None else members)
    children = dict(part.value.items())
    children["value_set"] = pa.ListArray.from_arrays([0, len(members)], members)[0]
    arrays = [pa.repeat(child, 1) for child in children.values()]
    return Condition(
        "call", part.name, value=pa.StructArray.from_arrays(arrays, list(children))[0], arguments=part.arguments
    )


def _convert_literals(values: pa.Array, field: pa.Field) -> list[pa.Array]:
    """Convert the values that are not null by `_convert_literal`, to an array for each value."""
    return [pa.repeat(_convert_literal(value, field), 1) for value in values.drop_null()]


def _possible_times(values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Select the times that a column of `type_` can have; a cast alone would shorten the others."""
    import pyarrow.compute as pc

    times = values.cast(type_, safe=False)
    return times.filter(pc.equal(times.cast(values.type), values).fill_null(True))


_COMPARED = (("times", "text"), ("numbers", "bools"))  # without a schema, flags are integers


def _family(type_: pa.DataType) -> str | None:
    """Family of comparable types; None: that is left to pyarrow."""
    if t.is_boolean(type_):
        return "bools"
    if _is_number(type_):
        return "numbers"
    if is_text(type_) or is_bytes(type_):
        return "text"
    return "times" if t.is_temporal(type_) else None


def _convert_literal(value: pa.Scalar, field: pa.Field) -> pa.Scalar | None:
    """Text as a date or time; None if the comparison stays as it is."""
    family, value_family = _family(field.type), _family(value.type)
    if family == "numbers" and (family == value_family or not value.is_valid):
        return None
    kind, refused = short_type_name(field.type, field.metadata), None
    if t.is_string(field.type) and (t.is_integer(value.type) or t.is_floating(value.type)):
        refused = f"the filter compares text with the number {value}", f'write text, such as "{value}"'
    elif family == "numbers" and t.is_string(value.type):
        refused = f'the filter compares {kind} with the text "{printable(value.as_py())}"', "write a number, such as 5"
    elif t.is_date(field.type) and t.is_timestamp(value.type) and value.type.tz is not None:
        refused = "the filter compares dates with a time in a time zone", "write a date, such as 2024-01-31"
    elif (
        value.is_valid
        and None not in (family, value_family)
        and family != value_family
        and (family, value_family) not in _COMPARED
    ):
        refused = f"the filter compares {kind} with {value.type}", "write values of the type of the column"
    if refused is not None:
        raise SchemaError(refused[0], feature=field.name, expected=field.type, got=value.type, hint=refused[1])
    form = next((form for name, form in _FORMS.items() if getattr(t, f"is_{name}")(field.type)), None)
    is_day = t.is_timestamp(field.type) and t.is_date(value.type)
    if form is None or not (t.is_string(value.type) or is_day) or not value.is_valid:
        return None
    try:
        return _assign_zone(value.cast(pa.timestamp("s")), field.type.tz) if is_day else _parse_text(value, field.type)
    except _NotOneTime as error:
        reason = f"the filter compares {kind} with '{printable(str(value.as_py()))}', {error}"
        raise SchemaError(reason, feature=field.name, expected=kind, hint=error.advice) from error
    except (pa.ArrowException, ValueError) as error:
        reason = f"the filter compares {kind} with '{printable(value.as_py())}'"
        raise SchemaError(reason, feature=field.name, expected=kind, hint=f"write it as {form}") from error


def _parse_text(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    if t.is_time(type_):
        return _parsed_time(value.as_py())
    if not t.is_timestamp(type_):
        return value.cast(type_)
    with suppress(pa.ArrowInvalid):  # it has more than six digits of a second
        return _parsed_timestamp(value, pa.timestamp("us", type_.tz))  # which has every year
    return _parsed_timestamp(value, pa.timestamp("ns", type_.tz))


def _parsed_time(text: str) -> pa.Scalar:
    time = datetime.time.fromisoformat(text)  # which drops what is after six digits of a second
    if time.tzinfo is not None:
        raise ValueError("a time has no offset")
    digits = text.replace(",", ".").partition(".")[2]
    if digits[9:].strip("0"):
        raise ValueError("a time has nanoseconds")
    seconds = (time.hour * 60 + time.minute) * 60 + time.second
    nanoseconds = time.microsecond * 1000 + int(digits[6:9].ljust(3, "0"))
    return pa.scalar(seconds * 10**9 + nanoseconds, pa.time64("ns"))


def _parsed_timestamp(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    try:
        return value.cast(type_)
    except pa.ArrowInvalid:
        if type_.tz is None:
            raise
    return _assign_zone(value.cast(pa.timestamp(type_.unit)), type_.tz)  # it has no offset


class _NotOneTime(ValueError):
    """A local time that a time zone has twice, or never."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.advice = advice


def _assign_zone(local: pa.Scalar, zone: str | None) -> pa.Scalar:
    """A local time in a time zone, if there is one."""
    import pyarrow.compute as pc

    if zone is None:
        return local
    around = [
        pc.assume_timezone(local, zone, ambiguous=choice, nonexistent=choice) for choice in ("earliest", "latest")
    ]
    first, second = (time.cast(pa.timestamp("s", zone), safe=False) for time in around)
    if first.value == second.value:
        return around[0]
    text = str(local.cast(pa.timestamp("s"), safe=False).as_py())
    with suppress(pa.ArrowInvalid):
        pc.assume_timezone(local, zone, ambiguous="earliest")
        times = " or ".join(f"'{first_or_second.as_py().isoformat()}'" for first_or_second in (first, second))
        raise _NotOneTime(f"and {text} occurs twice in {zone}", f"write the one that is meant: {times}")
    advice = f"write a time that exists, such as '{second.as_py().isoformat()}'"
    raise _NotOneTime(f"and {text} never occurs in {zone}: the clocks are put forward", advice)


def exact_comparison(function: str, value: pa.Scalar, type_: pa.DataType) -> tuple[str, pa.Scalar | None] | None:
    """The function and the value of the comparison of a column of `type_` with a number or time; None: as they are.

    Without a value, the column is compared with itself: no time of its type is as early, or as late. A float that is
    compared with decimals is the number as it is written: 0.1 is a tenth; one that is compared with floats of fewer
    bits is the nearest of these.

    >>> exact_comparison("greater", pa.scalar(1.5), pa.int64())
    ('greater', <pyarrow.Int64Scalar: 1>)
    >>> exact_comparison("equal", pa.scalar(1.5), pa.int8())  # which no value is
    ('less', <pyarrow.Int8Scalar: -128>)
    """
    if value.type == type_ or not value.is_valid or not _is_comparable(value.type, type_):
        return None
    if t.is_floating(type_):
        return _compare_with_float(function, value, type_)
    low, high = _range(type_)
    number = _fraction(value, type_)
    if number is None:  # NaN
        return _constant(function == "not_equal", low, type_)
    scaled = number if isinstance(number, float) else number * Fraction(10) ** _scale(type_)
    if scaled > high or scaled < low:
        is_true = function == "not_equal" or function.startswith("less" if scaled > high else "greater")
        return _constant(is_true, low, type_)
    floor, ceil = math.floor(scaled), math.ceil(scaled)
    if function in ("equal", "not_equal") and floor != ceil:
        return _constant(function == "not_equal", low, type_)
    return function, _scalar_of(ceil if function in ("less", "greater_equal") else floor, type_)


def exact_members(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Convert numbers or times to `type_`, without values that a column of the type cannot have; None: leave all."""
    if values.type == type_ or not _is_comparable(values.type, type_):
        return None
    if t.is_integer(type_) and t.is_integer(values.type):
        with suppress(pa.ArrowInvalid):
            return values.cast(type_)
    if not t.is_floating(type_):
        compared = filter(None, (exact_comparison("equal", value, type_) for value in values.drop_null()))
        members = [pa.repeat(value, 1) for function, value in compared if function == "equal" and value is not None]
        return pa.concat_arrays([*members, pa.nulls(values.null_count, type_)])
    floats = [(value, _nearest(value, type_)) for value in values.to_pylist()]
    return pa.array([near for value, near in floats if value is None or near is not None], type_)


def _nearest(number: Any, type_: pa.DataType) -> float | None:
    """The float of a type that stands for a number: for an integer exactly, else the nearest, or None."""
    if number is None:
        return None
    with np.errstate(over="ignore"):
        near = float(type_.to_pandas_dtype()(float(number)))
    if isinstance(number, float):
        return None if math.isinf(near) and not math.isinf(number) else near
    is_integer = Fraction(number).denominator == 1
    return None if math.isinf(near) or (is_integer and near != number) else near


def _is_number(type_: pa.DataType) -> bool:
    return bool(t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_))


def _is_comparable(own: pa.DataType, type_: pa.DataType) -> bool:
    """True if both are numbers, or both times with a zone, or without."""
    if t.is_timestamp(own) and t.is_timestamp(type_):
        return (own.tz is None) == (type_.tz is None)
    return _is_number(own) and _is_number(type_)


def _scale(type_: pa.DataType) -> int:
    if t.is_timestamp(type_):
        return {"s": 0, "ms": 3, "us": 6, "ns": 9}[type_.unit]
    return int(type_.scale) if t.is_decimal(type_) else 0


def _range(type_: pa.DataType) -> tuple[int, int]:
    """The least and the largest value; of decimals without their point."""
    if t.is_decimal(type_):
        return 1 - 10**type_.precision, 10**type_.precision - 1
    info = np.iinfo(np.int64 if t.is_timestamp(type_) else type_.to_pandas_dtype())
    return int(info.min), int(info.max)


def _fraction(value: pa.Scalar, type_: pa.DataType) -> Fraction | float | None:
    """The number, or the seconds of a time; an infinite one as a float, None for NaN."""
    if t.is_timestamp(type_):
        return Fraction(value.value, 10 ** _scale(value.type))
    if not t.is_floating(value.type):
        return Fraction(value.as_py())
    number = float(value.as_py())
    if math.isnan(number):
        return None
    if math.isinf(number):
        return number
    if t.is_decimal(type_) and not number.is_integer():
        return Fraction(str(value.type.to_pandas_dtype()(number)))
    return Fraction(number)


def _constant(is_true: bool, low: int, type_: pa.DataType) -> tuple[str, pa.Scalar | None]:
    """A comparison that is true, or false, for all values, and null for null."""
    if t.is_timestamp(type_):  # Python does not have its least value
        return "equal" if is_true else "not_equal", None
    return "greater_equal" if is_true else "less", _scalar_of(low, type_)


def _scalar_of(unit: int, type_: pa.DataType) -> pa.Scalar:
    if t.is_integer(type_):
        return pa.scalar(unit, type_)
    if t.is_timestamp(type_):
        return pa.scalar(unit, pa.int64()).cast(type_)
    digits = tuple(map(int, str(abs(unit))))
    return pa.scalar(Decimal((int(unit < 0), digits, -_scale(type_))), type_)


def _compare_with_float(function: str, value: pa.Scalar, type_: pa.DataType) -> tuple[str, Any]:
    """The comparison of a column of floats with a number of another type."""
    number = value.as_py()
    near = _nearest(number, type_)
    if near is not None:
        return function, pa.scalar(near, type_)
    if function in ("equal", "not_equal"):
        return function, pa.scalar(math.nan, type_)
    float_type = type_.to_pandas_dtype()
    with np.errstate(over="ignore"):
        near = float_type(float(number))  # the next one, or infinite
    below = near if float(near) < number else np.nextafter(near, float_type(-math.inf))
    return "less_equal" if function.startswith("less") else "greater", pa.scalar(below, type_)
