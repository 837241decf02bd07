"""Brace expansion: ``{a,b}`` and ``{0000..0999}``, as shells do it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

_RANGE = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)")
_MOST = 1_000_000


def expand_braces(text: str) -> list[str]:
    """Expand the braces of a pattern.

    Braces nest. A pair with neither a comma nor a range, and a single brace, are literal text. More than a million
    results are a ValueError.

    >>> expand_braces("{train,test}-{08..10}")
    ['train-08', 'train-09', 'train-10', 'test-08', 'test-09', 'test-10']
    """
    begin = text.find("{")
    while begin >= 0:
        end, commas = _partner(text, begin)
        if end >= 0:
            choices = _choices(text[begin + 1 : end], [c - begin - 1 for c in commas])
            if choices is not None:
                tails = expand_braces(text[end + 1 :])
                if len(choices) * len(tails) > _MOST:
                    raise ValueError(f"the braces of this pattern expand to more than {_MOST:,} paths")
                return [text[:begin] + c + t for c in choices for t in tails]
        begin = text.find("{", begin + 1)
    return [text]


def _partner(text: str, begin: int) -> tuple[int, list[int]]:
    """Find the brace that closes the one at `begin` (−1: none) and the commas between, at its own level."""
    depth = 0
    commas: list[int] = []
    for i in range(begin, len(text)):
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                return i, commas
        elif text[i] == "," and depth == 1:
            commas.append(i)
    return -1, []


def _choices(inside: str, commas: list[int]) -> list[str] | None:
    match = _RANGE.fullmatch(inside)
    if match is not None:
        return list(_count(match[1], match[2]))
    if not commas:
        return None
    cuts = [-1, *commas, len(inside)]
    return [c for a, b in pairwise(cuts) for c in expand_braces(inside[a + 1 : b])]


def _count(first: str, last: str) -> Iterator[str]:
    a, b = int(first), int(last)
    if abs(b - a) >= _MOST:
        raise ValueError(f"the braces of this pattern expand to more than {_MOST:,} paths")
    padded = any(len(t.lstrip("-")) > 1 and t.lstrip("-")[0] == "0" for t in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return (f"{i:0{width}d}" for i in range(a, b + (1 if b >= a else -1), 1 if b >= a else -1))
