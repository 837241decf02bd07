"""Conditions as text, ``label = 1 and day >= DATE '2026-01-01'``: of ``filters=``, and of the option --where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date, datetime
from itertools import islice
from typing import Any

from tfrecord_io.base.messages.display import printable
from tfrecord_io.base.options.operators import BY_SYMBOL, NAMES, Operand, Operator

Term = tuple[str, str, Any]
Alternatives = list[list["Term | Alternatives"]]  # of each all parts hold; those in parentheses are lists again

_AFTER_WORD = {Operand.NONE: "", Operand.LIST: r"(?=[\s\[(])"}


def _pattern(operator: Operator, symbol: str) -> str:
    """The regular expression of an operator: of a word in any case, with any spaces in it."""
    if not symbol[0].isalpha():
        return re.escape(symbol)
    return f"(?i:{symbol.replace(' ', r'[ ]+')})" + _AFTER_WORD.get(operator.operand, r"(?=[\s'\"])")


def _any_of(*operands: Operand) -> str:
    """The regular expression of all operators with such an operand, the longest symbol first."""
    rows = [(symbol, operator) for symbol, operator in BY_SYMBOL.items() if operator.operand in operands]
    return "|".join(_pattern(operator, symbol) for symbol, operator in sorted(rows, key=lambda row: -len(row[0])))


_CONDITION = re.compile(
    r"\s*(?P<column>[^\s=!<>](?:.*?\S)??)(?<![!<=>~])\s*(?:(?<=\s)|(?=[=!<>]))(?:"
    rf"(?P<operator>{_any_of(Operand.VALUE, Operand.TEXT, Operand.LIST)})\s*(?P<value>(?!=).*\S)"
    rf"|(?P<pair>{_any_of(Operand.PAIR)})\s*(?P<least>'(?:[^']|'')*'|.*?\S)\s+(?i:and)\s+(?P<greatest>.*\S)"
    rf"|(?P<test>{_any_of(Operand.NONE)}))\s*"
)
_APART = re.compile(r"[!<>=]\s+=")
_QUOTED = re.compile(r"""["](?:[^"\\]|\\.)*["]|'((?:[^']|'')*)'""")
_TIME = re.compile(r"(?P<type>date|timestamp)\s*'(?P<text>[^']*)'", re.IGNORECASE)
_LIST_ITEM = re.compile(rf"(?P<time>{_TIME.pattern})|{_QUOTED.pattern}", re.IGNORECASE)
_NO_PLAIN_TEXT = re.compile(r"""['"\[\]{}]|^[!<=>]|^~\s|\s[<=>]|\s(?i:and|or)(?:\s.*[<=>]|$)|&&|\|\|""")
_WORD = re.compile(r"\s+(?P<word>and|or)(?=[\s(])", re.IGNORECASE)
_CONSTANTS = {"null": None, "true": True, "false": False}
_MOST_DEEP = 50  # parentheses


def parse_alternatives(text: str, depth: int = 0) -> Alternatives:
    """The parts of a condition, as its parentheses group them; ValueError if it is not a condition.

    Conditions as `parse_condition` takes them are joined by ``and`` and ``or``, of which ``and`` binds more closely.

    >>> parse_alternatives("(a = 1 or b = 2) and c is null")
    [[[[('a', '==', 1)], [('b', '==', 2)]], ('c', 'is null', None)]]
    """
    if depth > _MOST_DEEP:
        raise ValueError(f"expected at most {_MOST_DEEP} parentheses inside each other")
    alternatives: Alternatives = []
    for word, text_of_part in _parts(text):
        inner = _strip_parentheses(text_of_part)
        part = parse_condition(text_of_part) if inner is None else parse_alternatives(inner, depth + 1)
        if word == "and":
            alternatives[-1].append(part)
        else:
            alternatives.append([part])
    return alternatives


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """The parts between ``and`` and ``or``, with the word before each; a word in a value of plain text is one of it."""
    begins, hidden = [(0, 0, "")], _hidden(text)
    for match in _WORD.finditer(hidden):
        before, behind = text[begins[-1][1] : match.start()], text[match.end() :]
        ends = [word.start() for word in islice(_WORD.finditer(hidden[match.end() :]), 2)]
        first, second = (behind[:end] for end in (*ends, None, None)[:2])
        if _looks(before) and (_looks(first) or _is_pair(second)):
            begins.append((match.start(), match.end(), match["word"].lower()))
    ends = [begin for begin, _, _ in begins[1:]] + [len(text)]
    for (_, begin, word), end in zip(begins, ends, strict=True):
        yield word, text[begin:end]


def _looks(text: str) -> bool:
    """True if a text has the form of a condition, or is one in parentheses."""
    return _CONDITION.fullmatch(text) is not None or _strip_parentheses(text) is not None


def _is_pair(text: str) -> bool:
    """True if a text has the form of a condition with an ``and`` of its own: ``n between 1 and 5``."""
    match = _CONDITION.fullmatch(text)
    return match is not None and match["pair"] is not None


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
    >>> parse_condition("label is null"), parse_condition("tags contains cat"), parse_condition("n between 1 and 5")
    (('label', 'is null', None), ('tags', 'contains', 'cat'), ('n', 'between', [1, 5]))
    >>> parse_condition("name = 'O''Hara'"), parse_condition("name startswith 'O'")
    (('name', '==', "O'Hara"), ('name', 'startswith', 'O'))

    Dates and timestamps are text, which is compared with a column of these as one. ValueError if it is not a condition.
    """
    if (apart := _APART.search(_hidden(text))) is not None:
        symbol = "".join(apart[0].split())
        raise ValueError(f"cannot read '{apart[0]}': write '{symbol}'; the operators are {NAMES}")
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(
            f"expected COLUMN OPERATOR VALUE, such as 'label == 3', 'n between 1 and 5' or 'label is null', and not "
            f"'{printable(text.strip())}'; the operators are {NAMES}; 'and' and 'or' join conditions"
        )
    symbol = " ".join((match["operator"] or match["pair"] or match["test"]).lower().split())
    operator = BY_SYMBOL[symbol]
    names = ("least", "greatest") if operator.operand is Operand.PAIR else ("value",) * (match["test"] is None)
    values = [_parse_operand(match[name], operator) for name in names]
    if operator.operand is Operand.PAIR:
        return match["column"], operator.symbol, values
    return match["column"], operator.symbol, values[0] if values else None


def _parse_operand(text: str, operator: Operator) -> Any:
    if operator.operand is Operand.LIST:
        text = _list_as_json(text)
    try:
        value = _parse_value(text)
    except json.JSONDecodeError:
        value = text
        if _NO_PLAIN_TEXT.search(value):
            raise ValueError(
                f"cannot read the value {value} after {operator.symbol}: quote text as in \"name == 'x'\"; the "
                f"operators are {NAMES}; 'and' and 'or' join conditions"
            ) from None
    if (operator.operand is Operand.LIST) != isinstance(value, list):
        raise ValueError("expected a list after in and not in, such as 'label in [1, 2]', and only there")
    if (value is None and operator.for_missing is None) or isinstance(value, dict):
        raise ValueError("expected a number, true, false, text or a list")
    return value


def _parse_value(text: str) -> Any:
    """The value of JSON in which texts may have single quotes, and constants any case, as in SQL, or of a date."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
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


def _list_as_json(text: str) -> str:
    """A list with the parentheses of SQL in brackets, and its dates as text."""
    if text.startswith("(") and text.endswith(")"):
        text = f"[{text[1:-1]}]"

    def as_text(match: re.Match[str]) -> str:
        return match[0] if match["time"] is None else json.dumps(_parse_value(match["time"]))

    return _LIST_ITEM.sub(as_text, text) if "'" in text else text


def _use_double_quotes(match: re.Match[str]) -> str:
    return match[0] if match[1] is None else json.dumps(match[1].replace("''", "'"))
