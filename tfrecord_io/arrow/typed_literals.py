"""Literals in conditions get the type of the column that they are compared with: text that of dates, as in SQL.

Numbers are compared exactly, whatever their type; see `exact_numbers`.

Arrow would cast the column, which rounds large integers, or fails: no decimal has the digits of both sides.
"""

from __future__ import annotations

import datetime
import math
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.expression_columns import Node, expression_of, expression_tree
from tfrecord_io.arrow.simple_conditions import COMPARISONS
from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.schema.type_names import short_type_name

if TYPE_CHECKING:
    import pyarrow.compute as pc


_FORMS = {"date": "2024-01-31", "time": "12:30:00", "timestamp": "2024-01-31T12:30:00"}
MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


def with_typed_literals(expression: pc.Expression, schema: pa.Schema) -> pc.Expression:
    """The same condition, where literals that are compared with a column have its type.

    Text is a date, time or timestamp where the column is; a timestamp without an offset from UTC is in the time zone of
    the column. Numbers of other types become one of the column's, and ``in`` has those that the column can have.

    >>> import pyarrow.compute as pc
    >>> with_typed_literals(pc.field("day") >= "2024-01-31", pa.schema({"day": pa.date32()}))
    <pyarrow.compute.Expression (day >= 2024-01-31)>
    >>> with_typed_literals(pc.field("n") > 1.5, pa.schema({"n": pa.int64()}))
    <pyarrow.compute.Expression (n > 1)>

    Raises
    ------
    SchemaError
        The text is not of this form, or a column of text is compared with a number.
    """
    tree = expression_tree(expression)
    typed = _typed(tree, schema)
    return expression if typed is tree else expression_of(typed)


def _typed(node: Node, schema: pa.Schema) -> Node:
    arguments = node.arguments
    if node.kind != "call":
        return node
    kinds = [argument.kind for argument in arguments]
    if node.name in COMPARISONS and kinds == ["literal", "field"]:
        mirrored = Node("call", MIRRORED[node.name], arguments=arguments[::-1])
        typed = _typed(mirrored, schema)
        return node if typed is mirrored else typed
    field = _field(arguments[0], schema) if kinds[:1] == ["field"] else None
    if field is not None and node.name in COMPARISONS and kinds == ["field", "literal"]:
        return _typed_comparison(node, field)
    if field is not None and node.name == "is_in" and kinds == ["field"]:
        return _typed_members(node, field)
    return node.replaced([_typed(argument, schema) for argument in arguments])


def _field(node: Node, schema: pa.Schema) -> pa.Field | None:
    """What a field refers to, of a dictionary its values; None if it is not there."""
    at = schema.get_field_index(node.path[0])
    field = schema.field(at) if at >= 0 else None
    for name in node.path[1:]:
        at = field.type.get_field_index(name) if field is not None and t.is_struct(field.type) else -1
        field = field.type.field(at) if field is not None and at >= 0 else None
    is_dictionary = field is not None and t.is_dictionary(field.type)
    return field.with_type(field.type.value_type) if field is not None and is_dictionary else field


def _typed_comparison(node: Node, field: pa.Field) -> Node:
    column, literal = node.arguments
    assert literal.value is not None
    exact = exact_comparison(node.name, literal.value, field.type)
    if exact is not None:
        return Node("call", exact[0], arguments=(column, Node("literal", value=exact[1])))
    converted = _converted(literal.value, field)
    return node if converted is None else node.replaced([column, Node("literal", value=converted)])


def _typed_members(node: Node, field: pa.Field) -> Node:
    assert node.value is not None
    values = node.value["value_set"].values
    members = pa.nulls(len(values), field.type) if t.is_null(values.type) else exact_members(values, field.type)
    if members is None:
        return node
    children = dict(node.value.items())
    children["value_set"] = pa.ListArray.from_arrays([0, len(members)], members)[0]
    arrays = [pa.repeat(child, 1) for child in children.values()]
    return Node(
        "call", node.name, value=pa.StructArray.from_arrays(arrays, list(children))[0], arguments=node.arguments
    )


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


def exact_comparison(function: str, value: pa.Scalar, type_: pa.DataType) -> tuple[str, pa.Scalar] | None:
    """The function and the value of the comparison of a column of `type_` with a number; None: as they are.

    A float that is compared with decimals is the number as it is written: 0.1 is a tenth.

    >>> exact_comparison("greater", pa.scalar(1.5), pa.int64())
    ('greater', <pyarrow.Int64Scalar: 1>)
    >>> exact_comparison("equal", pa.scalar(1.5), pa.int8())  # which no value is
    ('less', <pyarrow.Int8Scalar: -128>)
    """
    if value.type == type_ or not value.is_valid or not _is_number(value.type):
        return None
    if t.is_floating(type_):
        return _with_float(function, value)
    if not (t.is_integer(type_) or t.is_decimal(type_)):
        return None
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
    """Those of the numbers that a column of `type_` can have, as its type; None: as they are."""
    if values.type == type_ or not _is_number(values.type):
        return None
    if t.is_integer(type_) and t.is_integer(values.type):
        with suppress(pa.ArrowInvalid):
            return values.cast(type_)
    if t.is_integer(type_) or t.is_decimal(type_):
        low, high = _range(type_)
        scale = Fraction(10) ** _scale(type_)
        numbers = [_fraction(value, type_) for value in values if value.is_valid]
        units = [number * scale for number in numbers if isinstance(number, Fraction)]
        found = [_scalar_of(int(unit), type_) for unit in units if unit.denominator == 1 and low <= unit <= high]
        nulls = [pa.scalar(None, type_)] if values.null_count else []
        return pa.array([scalar.as_py() for scalar in (*found, *nulls)], type_)
    if t.is_floating(type_) and not t.is_floating(values.type):
        numbers = [value for value in values.to_pylist() if value is None or _has_float(value)]
        return pa.array([None if value is None else float(value) for value in numbers], pa.float64())
    return None


def _has_float(number: Any) -> bool:
    """Whether a float stands for a number: for an integer exactly, for another decimal the nearest."""
    return bool(float(number) == number or Fraction(number).denominator != 1)


def _is_number(type_: pa.DataType) -> bool:
    return bool(t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_))


def _scale(type_: pa.DataType) -> int:
    return int(type_.scale) if t.is_decimal(type_) else 0


def _range(type_: pa.DataType) -> tuple[int, int]:
    """The least and the largest value; of decimals without their point."""
    if t.is_decimal(type_):
        return 1 - 10**type_.precision, 10**type_.precision - 1
    info = np.iinfo(type_.to_pandas_dtype())
    return int(info.min), int(info.max)


def _fraction(value: pa.Scalar, type_: pa.DataType) -> Fraction | float | None:
    """The number; an infinite one as a float, None for NaN."""
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


def _constant(is_true: bool, low: int, type_: pa.DataType) -> tuple[str, pa.Scalar]:
    """A comparison that is true, or false, for all values, and null for null."""
    return "greater_equal" if is_true else "less", _scalar_of(low, type_)


def _scalar_of(unit: int, type_: pa.DataType) -> pa.Scalar:
    if t.is_integer(type_):
        return pa.scalar(unit, type_)
    digits = tuple(map(int, str(abs(unit))))
    return pa.scalar(Decimal((int(unit < 0), digits, -_scale(type_))), type_)


def _with_float(function: str, value: pa.Scalar) -> tuple[str, Any] | None:
    """The comparison of a column of floats with an integer, or with the float that is nearest to another decimal."""
    if t.is_floating(value.type):
        return None
    number = value.as_py()
    near = float(number)
    if not _has_float(number):
        if function in ("equal", "not_equal"):
            return function, pa.scalar(math.nan)
        is_below = near < number
        if function in ("less", "greater_equal"):
            near = math.nextafter(near, math.inf) if is_below else near
        else:
            near = near if is_below else math.nextafter(near, -math.inf)
    return function, pa.scalar(near)
