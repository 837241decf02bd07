"""Conditions as text, ``label = 1 and day >= DATE '2026-01-01'``: of ``filters=``, and of the option --where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from itertools import product
from typing import Any

from tfrecord_io.errors import printable

Term = tuple[str, str, Any]

_OPERATORS = r"==|=|!=|<=|>=|<|>|not in(?=[\s\[])|in(?=[\s\[])|contains(?=\s)"
_CONDITION = re.compile(
    rf"\s*(?P<column>[^\s=!<>].*?)(?<![!<=>~])\s*(?:(?<=\s)|(?=[=!<>]))(?P<operator>{_OPERATORS})\s*(?P<value>(?!=).*\S)\s*"
)
_NULL = re.compile(r"\s*(?P<column>\S.*?)\s+is\s+(?P<negation>not\s+)?null\s*", re.IGNORECASE)
_QUOTED = re.compile(r"""["](?:[^"\\]|\\.)*["]|'((?:[^']|'')*)'""")
_TIME = re.compile(r"(?P<type>date|timestamp)\s*'(?P<text>[^']*)'", re.IGNORECASE)
_NO_PLAIN_TEXT = re.compile(r"""['"\[\]{}]|^[!<=>]|^~\s|\s[<=>]|\s(?i:and|or)(?:\s.*[<=>]|$)|&&|\|\|""")
_KNOWN = "==, !=, <, <=, >, >=, in, not in or contains"
_WORD = re.compile(r"\s+(?P<word>and|or)(?=[\s(])", re.IGNORECASE)
_MOST = 1000  # alternatives


def parse_filters(text: str) -> list[list[Term]]:
    """The terms of a condition: a list of alternatives, of each a list of terms that all hold.

    Conditions as `parse_condition` takes them are joined by ``and`` and ``or``, of which ``and`` binds more closely,
    and grouped by parentheses.

    >>> parse_filters("label = 1 and day >= DATE '2026-01-01'")
    [[('label', '==', 1), ('day', '>=', '2026-01-01')]]
    >>> parse_filters("a = 1 or (b = 2 or c is null) and d in ['x']")
    [[('a', '==', 1)], [('b', '==', 2), ('d', 'in', ['x'])], [('c', '==', None), ('d', 'in', ['x'])]]

    ValueError if it is not a condition.
    """
    alternatives: list[list[list[Term]]] = []
    for word, part in _parts(text):
        inner = _strip_parentheses(part)
        terms = [[parse_condition(part)]] if inner is None else parse_filters(inner)
        if word == "and":
            terms = [[*first, *then] for first, then in product(alternatives.pop(), terms)]
        alternatives.append(terms)
        if sum(map(len, alternatives)) > _MOST:
            raise ValueError(f"expected at most {_MOST:,} alternatives")
    return [terms for alternative in alternatives for terms in alternative]


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The parts between ``and`` and ``or``, with the word before each; a word in a value of plain text is one of it."""
    begins, hidden = [(0, 0, "")], _hidden(text)
    for match in _WORD.finditer(hidden):
        before, behind = text[begins[-1][1] : match.start()], _WORD.split(hidden[match.end() :])[0]
        if _looks(before) and _looks(text[match.end() :][: len(behind)]):
            begins.append((match.start(), match.end(), match["word"].lower()))
    ends = [begin for begin, _, _ in begins[1:]] + [len(text)]
    for (_, begin, word), end in zip(begins, ends, strict=True):
        yield word, text[begin:end]


def _looks(text: str) -> bool:
    """True if a text has the form of a condition, or is one in parentheses."""
    is_condition = _CONDITION.fullmatch(text) is not None or _NULL.fullmatch(text) is not None
    return is_condition or _strip_parentheses(text) is not None


def _hidden(text: str) -> str:
    """The text with other characters for what is in quotes, brackets and parentheses, where no word counts."""
    shown = list(_QUOTED.sub(lambda match: "'" * len(match[0]), text))
    depth = 0
    for at, character in enumerate(shown):
        depth += character in "(["
        if depth:
            shown[at] = character if character in "([)]" and depth == 1 else "'"
        depth -= character in ")]" and depth > 0
    return "".join(shown)


def _strip_parentheses(text: str) -> str | None:
    """The text inside parentheses around the whole; None without such parentheses."""
    text = text.strip()
    if not text.startswith("(") or not text.endswith(")"):
        return None
    return text[1:-1] if re.fullmatch(r"\([^()]*\)", _hidden(text)) else None


def parse_condition(text: str) -> Term:
    """A column, an operator and a value: JSON, whose texts may have single quotes, or else plain text.

    >>> parse_condition("label == 3"), parse_condition('name="3"'), parse_condition("day in [1, 2]")
    (('label', '==', 3), ('name', '==', '3'), ('day', 'in', [1, 2]))
    >>> parse_condition("label is null"), parse_condition("label is not null"), parse_condition("tags contains cat")
    (('label', '==', None), ('label', '!=', None), ('tags', 'contains', 'cat'))
    >>> parse_condition("name = 'O''Hara'"), parse_condition("name in ['a', 'b']")
    (('name', '==', "O'Hara"), ('name', 'in', ['a', 'b']))

    Dates and timestamps are text, which is compared with a column of these as one. ValueError if it is not a condition.
    """
    match = _CONDITION.fullmatch(text)
    if match is None and (null := _NULL.fullmatch(text)) is not None:
        return null["column"], "==" if null["negation"] is None else "!=", None
    if match is None:
        raise ValueError(
            f"expected COLUMN OPERATOR VALUE, such as 'label == 3', with {_KNOWN}, or 'label is null', "
            f"'label is not null', and not '{printable(text.strip())}'; and, or join conditions"
        )
    operator = "==" if match["operator"] == "=" else match["operator"]
    try:
        value = _parse_value(match["value"])
    except json.JSONDecodeError:
        value = match["value"]
        if _NO_PLAIN_TEXT.search(value):
            raise ValueError(
                f"cannot read the value {value} after {operator}: quote text as in \"name == 'x'\"; the operators are "
                f"{_KNOWN}; conditions are joined by and, or"
            ) from None
    if (operator in ("in", "not in")) != isinstance(value, list):
        raise ValueError("expected a list after in and not in, such as 'label in [1, 2]', and only there")
    if (value is None and operator not in ("==", "!=")) or isinstance(value, dict):
        raise ValueError("expected a number, true, false, text or a list")
    return match["column"], operator, value


def _parse_value(text: str) -> Any:
    """The value of JSON in which texts may have single quotes, and null any case, as in SQL, or of a date."""
    if text.lower() == "null":
        return None
    if (time := _TIME.fullmatch(text)) is not None:
        try:
            (date if time["type"].lower() == "date" else datetime).fromisoformat(time["text"])
        except ValueError:
            expected = "a date, such as DATE '2026-01-31', or a time, TIMESTAMP '2026-01-31 12:00:00'"
            raise ValueError(f"expected {expected}, and not {printable(text)}") from None
        return time["text"]
    try:
        return json.loads(text)
    except ValueError:
        if "'" not in text:  # nothing to replace
            raise
        return json.loads(_QUOTED.sub(_use_double_quotes, text))


def _use_double_quotes(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else json.dumps(match[1].replace("''", "'"))
