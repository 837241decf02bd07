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
_NO_PLAIN_TEXT = re.compile(r"""['"\[\]{}]|\s(?:and|or)\s.*[=<>]|&&|\|\|""")


def parse_condition(text: str) -> tuple[str, str, Any]:
    """A column, an operator and a value, which is JSON or else text.

    >>> parse_condition("label == 3"), parse_condition('name="3"'), parse_condition("day in [1, 2]")
    (('label', '==', 3), ('name', '==', '3'), ('day', 'in', [1, 2]))
    >>> parse_condition("label is null"), parse_condition("label is not null"), parse_condition("tags contains cat")
    (('label', '==', None), ('label', '!=', None), ('tags', 'contains', 'cat'))

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
        value = json.loads(match["value"])
    except ValueError:
        value = match["value"]
        if _NO_PLAIN_TEXT.search(value):
            raise ValueError(
                f"{value} is neither JSON nor plain text: quote text as in 'name == \"x\"'; of several conditions, "
                "which must all hold, give each its own --where"
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
    help="Only rows such as 'label == 3', 'name in [\"a\", \"b\"]', 'tags contains cat' or 'label is not null'; "
    "repeated, all must hold.",
)
