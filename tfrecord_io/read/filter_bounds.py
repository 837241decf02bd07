"""Whether a condition on partition columns can be true in folders of which only the bounds of their values are known.

Tests: tests/read/test_filter_bounds.py.
"""

from __future__ import annotations

from tfrecord_io.base import Condition

_LEAST, _GREATEST = "least ", "greatest "  # before the name of a column, as `Sources.leave_out_parts` names bounds
_MOST_MEMBERS = 50  # of ``in``: of more, their own bounds are compared
_COMPARED = {  # the bound that fulfils a comparison if any value does
    "less": _LEAST,
    "less_equal": _LEAST,
    "greater": _GREATEST,
    "greater_equal": _GREATEST,
}


def condition_of_bounds(condition: Condition) -> Condition | None:
    """The condition on bounds that holds, or is null, where a value within them may fulfil the given one.

    Its literals must have the types of the columns. None if it says nothing: any value may fulfil it.

    >>> from tfrecord_io.base import condition_of
    >>> condition_of_bounds(condition_of("day > 7")).columns
    ('greatest day',)
    >>> condition_of_bounds(condition_of([("name", "startswith", "a")])) is None
    True
    """
    parts = [condition_of_bounds(argument) for argument in condition.arguments]
    if condition.name == "and_kleene":
        known = [part for part in parts if part is not None]
        return Condition.all_of(known) if known else None
    if condition.name == "or_kleene":
        known = [part for part in parts if part is not None]
        return Condition.any_of(known) if len(known) == len(parts) else None
    kinds = [argument.kind for argument in condition.arguments]
    operator = condition.operator
    if operator is not None and kinds == ["literal", "field"] and (mirror := operator.mirror()) is not None:
        return condition_of_bounds(Condition("call", mirror.function, arguments=condition.arguments[::-1]))
    column = condition.arguments[0].path if kinds[:1] == ["field"] else ()
    if len(column) != 1:
        return None
    if condition.is_comparison and kinds == ["field", "literal"]:
        return _compare(column[0], condition.name, condition.arguments[1])
    return _is_in(column[0], condition) if condition.name == "is_in" else None


def _compare(column: str, function: str, literal: Condition) -> Condition | None:
    if function in _COMPARED:
        return _call(function, _COMPARED[function] + column, literal)
    least, greatest = _LEAST + column, _GREATEST + column
    if function == "equal":
        return Condition.all_of([_call("less_equal", least, literal), _call("greater_equal", greatest, literal)])
    if function == "not_equal":
        return Condition.any_of([_call("not_equal", least, literal), _call("not_equal", greatest, literal)])
    return None


def _is_in(column: str, condition: Condition) -> Condition | None:
    import pyarrow.compute as pc

    assert condition.value is not None
    members = condition.value["value_set"].values
    if members.null_count or not len(members):
        return None
    if len(members) <= _MOST_MEMBERS:
        found = [_compare(column, "equal", Condition("literal", value=member)) for member in members]
        return Condition.any_of([part for part in found if part is not None])
    hull = pc.min_max(members)
    bounds = [Condition("literal", value=hull[name]) for name in ("min", "max")]
    least, greatest = _LEAST + column, _GREATEST + column
    return Condition.all_of([_call("less_equal", least, bounds[1]), _call("greater_equal", greatest, bounds[0])])


def _call(function: str, name: str, literal: Condition) -> Condition:
    return Condition("call", function, arguments=(Condition("field", path=(name,)), literal))
