"""Expand the braces of a path: ``{train,test}`` and ``{000..999}``.

Tests: tests/store/paths/test_expand_braces.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_RANGE = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)")
_MOST = 1_000_000  # paths that a pattern may expand to
_MAX_DEPTH = 100


def expand_braces(text: str) -> list[str]:
    """Expand the braces of a pattern.

    Braces nest. A pair with neither a comma nor a range, and a single brace, are literal text. More than a million
    results, or choices that are nested more than 100 deep, are a ValueError.

    >>> expand_braces("{train,test}-{08..10}")
    ['train-08', 'train-09', 'train-10', 'test-08', 'test-09', 'test-10']
    """
    return _expand(text, _pairs(text), begin=0, end=len(text), depth=0) if "{" in text else [text]


def _pairs(text: str) -> dict[int, tuple[int, list[int]]]:
    """Matching braces: for each opening one the position of its partner, and of the commas at its own level."""
    pairs: dict[int, tuple[int, list[int]]] = {}
    begins: list[tuple[int, list[int]]] = []
    for at, character in enumerate(text):
        if character == "{":
            begins.append((at, []))
        elif character == "}" and begins:
            begin, commas = begins.pop()
            pairs[begin] = at, commas
        elif character == "," and begins:
            begins[-1][1].append(at)
    return pairs


def _expand(text: str, pairs: dict[int, tuple[int, list[int]]], begin: int, end: int, depth: int) -> list[str]:
    """Expand the braces between two positions, which split no pair."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"the braces of this pattern are nested more than {_MAX_DEPTH} deep")
    paths, literal, at = [""], begin, text.find("{", begin, end)
    while at >= 0:
        choices = _choices(text, pairs, at, depth) if at in pairs else None
        if choices is not None:
            if len(paths) * len(choices) > _MOST:
                raise _too_many()
            prefix = text[literal:at]
            paths = [path + prefix + choice for path in paths for choice in choices]
            at = pairs[at][0]
            literal = at + 1
        at = text.find("{", at + 1, end)
    behind = text[literal:end]
    return [path + behind for path in paths]


def _choices(text: str, pairs: dict[int, tuple[int, list[int]]], begin: int, depth: int) -> list[str] | None:
    """The alternatives of the pair of braces at `begin`; None if the braces are literal text."""
    end, commas = pairs[begin]
    match = _RANGE.fullmatch(text, begin + 1, end)
    if match is not None:
        return list(_count(match[1], match[2]))
    if not commas:
        return None
    choices: list[str] = []
    for a, b in pairwise([begin, *commas, end]):
        choices += _expand(text, pairs, begin=a + 1, end=b, depth=depth + 1)
        if len(choices) > _MOST:
            raise _too_many()
    return choices


def _too_many() -> ValueError:
    return ValueError(f"the braces of this pattern expand to more than {_MOST:,} paths")


def _count(first: str, last: str) -> Iterator[str]:
    a, b = int(first), int(last)
    if abs(b - a) >= _MOST:
        raise _too_many()
    padded = any(len(t.lstrip("-")) > 1 and t.lstrip("-")[0] == "0" for t in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return (f"{i:0{width}d}" for i in range(a, b + (1 if b >= a else -1), 1 if b >= a else -1))
