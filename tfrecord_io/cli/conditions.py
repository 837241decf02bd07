"""Conditions of the option ``--where``, as the tuples that ``filters=`` takes."""

from __future__ import annotations

import json
import re
from typing import Any

import click

_OPERATORS = r"==|=|!=|<=|>=|<|>|not in(?=[\s\[])|in(?=[\s\[])|contains(?=\s)"
_CONDITION = re.compile(
    rf"\s*(?P<column>[^\s=!<>].*?)\s*(?:(?<=\s)|(?=[=!<>]))(?P<operator>{_OPERATORS})\s*(?P<value>(?!=).*\S)\s*"
)
_NULL = re.compile(r"\s*(?P<column>\S.*?)\s+is\s+(?P<negation>not\s+)?null\s*", re.IGNORECASE)
_QUOTED = re.compile(r"""["](?:[^"\\]|\\.)*["]|'((?:[^']|'')*)'""")
_NO_PLAIN_TEXT = re.compile(r"""['"\[\]{}]|\s(?:and|or)\s.*[=<>]|&&|\|\|""")


def _parsed(text: str) -> Any:
    """The value of JSON in which texts may have single quotes, as in SQL."""
    try:
        return json.loads(text)
    except ValueError:
        if "'" not in text:  # nothing to replace
            raise
        return json.loads(_QUOTED.sub(_in_double_quotes, text))


def _in_double_quotes(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else json.dumps(match[1].replace("''", "'"))


def parse_condition(text: str) -> tuple[str, str, Any]:
    """A column, an operator and a value: JSON, whose texts may have single quotes, or else plain text.

    >>> parse_condition("label == 3"), parse_condition('name="3"'), parse_condition("day in [1, 2]")
    (('label', '==', 3), ('name', '==', '3'), ('day', 'in', [1, 2]))
    >>> parse_condition("label is null"), parse_condition("label is not null"), parse_condition("tags contains cat")
    (('label', '==', None), ('label', '!=', None), ('tags', 'contains', 'cat'))
    >>> parse_condition("name = 'O''Hara'"), parse_condition("name in ['a', 'b']")
    (('name', '==', "O'Hara"), ('name', 'in', ['a', 'b']))

    ValueError if it is not a condition.
    """
    match = _CONDITION.fullmatch(text)
    if match is None and (null := _NULL.fullmatch(text)) is not None:
        return null["column"], "==" if null["negation"] is None else "!=", None
    if match is None:
        raise ValueError(
            "expected COLUMN OPERATOR VALUE, such as 'label == 3', with ==, !=, <, <=, >, >=, in, not in or contains, "
            "or 'label is null', 'label is not null'"
        )
    operator = "==" if match["operator"] == "=" else match["operator"]
    try:
        value = _parsed(match["value"])
    except ValueError:
        value = match["value"]
        if _NO_PLAIN_TEXT.search(value):
            raise ValueError(
                f"cannot read the value {value}: quote text as in \"name == 'x'\"; pass each of several conditions, "
                "all of which must hold, with its own --where"
            ) from None
    if (operator in ("in", "not in")) != isinstance(value, list):
        raise ValueError("expected a list after in and not in, such as 'label in [1, 2]', and only there")
    if (value is None and operator not in ("==", "!=")) or isinstance(value, dict):
        raise ValueError("expected a number, true, false, text or a list")
    return match["column"], operator, value


def _conditions(
    ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]
) -> list[tuple[str, str, Any]] | None:
    try:
        return [parse_condition(text) for text in texts] or None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


where = click.option(
    "--where",
    "filters",
    multiple=True,
    metavar="CONDITION",
    callback=_conditions,
    help='Only rows that meet a condition, such as "label == 3", "name in [\'a\', \'b\']", "tags contains cat" or '
    '"label is not null". If repeated, all conditions must hold.',
)
