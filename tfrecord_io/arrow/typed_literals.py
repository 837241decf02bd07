"""Literals in conditions get the type of the column that they are compared with: text that of dates, as in SQL.

Numbers are compared exactly, whatever their type; see `exact_numbers`.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.exact_numbers import MIRRORED, exact_comparison, exact_members
from tfrecord_io.arrow.expression_columns import Node, expression_of, expression_tree
from tfrecord_io.arrow.simple_conditions import COMPARISONS
from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.schema.type_names import short_type_name

if TYPE_CHECKING:
    import pyarrow.compute as pc

_FORMS = {"date": "2024-01-31", "time": "12:30:00", "timestamp": "2024-01-31T12:30:00"}


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
