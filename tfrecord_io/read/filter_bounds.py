"""Whether a condition on partition columns can be true in folders of which only the bounds of their values are known.

Tests: tests/read/test_filter_bounds.py.
"""

from __future__ import annotations

from tfrecord_io.base import Condition

_LEAST, _GREATEST = "least ", "greatest "  # before the name of a column, as `Sources.select_by_folder` names bounds
_MOST_MEMBERS = 50  # of ``in``: of more, their own bounds are compared
_COMPARED = {  # the bound that fulfils a comparison if any value does
    "less": _LEAST,
    "less_equal": _LEAST,
    "greater": _GREATEST,
    "greater_equal": _GREATEST,
}


def condition_of_bounds(condition: Condition) -> Condition | None:
    """Make a condition on bounds, which is false only where no value within the bounds fulfils `condition`.

    Literals must have the types of the columns. None if bounds do not tell: any value may fulfil the condition.

    >>> from tfrecord_io.base import condition_of
    >>> condition_of_bounds(condition_of("day > 7")).columns
    ('greatest day',)
    >>> condition_of_bounds(condition_of([("name", "startswith", "a")])) is None
    True
    """
    if condition.name in ("and_kleene", "or_kleene"):
        parts = [part for part in map(condition_of_bounds, condition.arguments) if part is not None]
        if condition.name == "and_kleene":
            return Condition.all_of(parts) if parts else None
        return Condition.any_of(parts) if len(parts) == len(condition.arguments) else None
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
    if function == "equal":
        return _overlap(column, literal, literal)
    if function == "not_equal":
        return Condition.any_of([_call("not_equal", bound + column, literal) for bound in (_LEAST, _GREATEST)])
    return None


def _overlap(column: str, low: Condition, high: Condition) -> Condition:
    """The condition that the bounds and the values from one literal to another have some in common."""
    return Condition.all_of(
        [_call("less_equal", _LEAST + column, high), _call("greater_equal", _GREATEST + column, low)]
    )


def _is_in(column: str, condition: Condition) -> Condition | None:
    import pyarrow.compute as pc

    assert condition.value is not None
    members = condition.value["value_set"].values
    if members.null_count or not len(members):
        return None
    if len(members) <= _MOST_MEMBERS:
        literals = [Condition("literal", value=member) for member in members]
        return Condition.any_of([_overlap(column, literal, literal) for literal in literals])
    hull = pc.min_max(members)
    return _overlap(column, *[Condition("literal", value=hull[name]) for name in ("min", "max")])


def _call(function: str, name: str, literal: Condition) -> Condition:
    return Condition("call", function, arguments=(Condition("field", path=(name,)), literal))
