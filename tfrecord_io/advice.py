"""Advice in messages, and what is left of it for a call, or a command, that does not have the keywords it names.

A message is a reason and, after each "; ", advice, which has alternatives, separated by ", or ". Each alternative is a
phrase of its own, so that the ones that a caller cannot follow can be left out. Keywords are written with their sign,
``limit=``, and with a value or without one. In parentheses after the name of a function they are that function's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tfrecord_io.errors import TFRecordError

_CLAUSES, _ALTERNATIVES = "; ", ", or "

# float64="raw", overwrite=True, limit=5, column_encoding={"x": "raw"}, columns=; not day=1/a.tfrecord, or 'a=1'
_MENTION = re.compile(
    r"""(?<![\w./'"\\-])(?P<name>[a-z_][a-z_0-9]*)=(?:"""
    r"""(?P<value>"[^"]*"|'[^']*'|True\b|False\b|None\b|-?\d+\b|\{[^{}]*\}|\[[^\][]*\]|\([^()]*\))(?![\w/])"""
    r"""|(?![^\s,;:.)]))"""
)
_CALL = re.compile(r"[\w.]+\((?:[^()]|\([^()]*\))*=(?:[^()]|\([^()]*\))*\)")  # with keywords of its own

Spelling = Callable[[re.Match[str]], str | None]
"""How a caller writes a keyword, a match with its name and value; None if it does not have it."""


def mentions(text: str) -> Iterator[re.Match[str]]:
    """The keywords that a text names as those of the caller.

    >>> [match["name"] for match in mentions('pass missing="mask", or read it with read_arrays(ragged="pad")')]
    ['missing']
    """
    calls = [call.span() for call in _CALL.finditer(text)]
    for match in _MENTION.finditer(text):
        if not any(begin <= match.start() < end for begin, end in calls):
            yield match


def fitting(text: str, spelling: Spelling, *, calls: bool = True) -> str:
    """The advice that a caller can follow, with the keywords as it writes them; empty if there is none.

    Without `calls`, calls of Python functions are nothing that it can follow.

    >>> only = lambda *names: lambda match: match[0] if match["name"] in names else None
    >>> fitting('pass schema=, or a larger sample=; see on_error=', only("schema"))
    'pass schema='
    """
    clauses = []
    for clause in text.split(_CLAUSES):
        alternatives = [a for a in clause.split(_ALTERNATIVES) if calls or not _CALL.search(a)]
        written = [spelled(a, spelling) for a in alternatives if all(map(spelling, mentions(a)))]
        if written:
            clauses.append(_ALTERNATIVES.join(written))
    return _CLAUSES.join(clauses)


def spelled(text: str, spelling: Spelling) -> str:
    """The text with the keywords as a caller writes them; those that it does not have stay."""
    for match in reversed([*mentions(text)]):
        text = text[: match.start()] + (spelling(match) or match[0]) + text[match.end() :]
    return text


def fitting_message(text: str, spelling: Spelling, *, calls: bool = True) -> str:
    """A message, whose reason stays, with the advice that a caller can follow."""
    reason, separator, advice = text.partition(_CLAUSES)
    followed = fitting(advice, spelling, calls=calls) if separator else ""
    return spelled(reason, spelling) + (followed and f"{_CLAUSES}{followed}")


def fit(error: Exception, spelling: Spelling) -> None:
    """Change an error so that its advice is what a caller can follow."""
    if isinstance(error, TFRecordError):
        error.reason = spelled(error.reason, spelling)
        error.advice = (error.advice and fitting(error.advice, spelling)) or None
    elif isinstance(error, OSError) and error.strerror is not None:
        error.strerror = fitting_message(error.strerror, spelling)
        error.args = (error.errno, error.strerror, *error.args[2:])
    elif error.args and isinstance(error.args[0], str):
        error.args = (fitting_message(error.args[0], spelling), *error.args[1:])
