"""Mutants of C++ sources: their text with one token or statement changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKENS = {
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "&&": "||",
    "||": "&&",
    "&": "|",
    "|": "&",
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "<<": ">>",
    ">>": "<<",
    "+=": "-=",
    "-=": "+=",
}
_OPERATOR = re.compile(rf"(?<= )({'|'.join(map(re.escape, sorted(_TOKENS, key=len, reverse=True)))})(?= )")
_NUMBER = re.compile(r"(?<![\w.\"<])\d+(?![\w.\"])")
_NEGATION = re.compile(r"(?<=[ (])!(?=\w)|~(?=\w|\()")
_TRUTH = re.compile(r"\b(true|false)\b")
_STATEMENT = re.compile(r"(?:(?:[\w.\[\]>*-]+ (?:[&|+-]?=) |[\w.>:-]+\().*|break|return);$")
_NOT_CODE = re.compile(r"\s*(//|#|using|namespace|template|enum|constexpr size_t kStep)")


@dataclass(frozen=True)
class Mutant:
    """One change: the line before and after, and the whole text."""

    before: str
    after: str
    text: str

    @property
    def key(self) -> str:
        return f"{self.before} -> {self.after}"


def kernel_mutants(text: str) -> Iterator[Mutant]:
    """All mutants of a source file.

    Comparisons get or lose equality or are negated, numbers are one more and one less, && and || are exchanged, as are
    operators; negations, assignments, calls, `break` and `return` without a value are removed.
    """
    lines = text.split("\n")
    for number, line in enumerate(lines):
        code = line.split("  //")[0].rstrip()
        if not code.strip() or _NOT_CODE.match(code):
            continue
        for changed in dict.fromkeys(_changed(code)):
            mutated = "\n".join([*lines[:number], changed, *lines[number + 1 :]])
            yield Mutant(code.strip(), changed.strip(), mutated)


def _changed(code: str) -> Iterator[str]:
    def put(match: re.Match[str], text: str) -> str:
        return code[: match.start()] + text + code[match.end() :]

    for match in _OPERATOR.finditer(code):
        yield put(match, _TOKENS[match[0]])
    for match in _NUMBER.finditer(code):
        yield put(match, str(int(match[0]) + 1))
        if match[0] != "0":
            yield put(match, str(int(match[0]) - 1))
    for match in _NEGATION.finditer(code):
        yield put(match, "")
    for match in _TRUTH.finditer(code):
        yield put(match, "false" if match[0] == "true" else "true")
    statement = _STATEMENT.search(code)
    if statement and code[: statement.start()].strip() in ("", *_HEADS):
        yield put(statement, ";")


_HEADS = ("else",)
