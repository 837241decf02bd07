"""The keyword ``split``: which rows of which splits of a dataset of TFDS, in the notation of TFDS.

The rules are those of tensorflow_datasets/core/splits.py: a boundary is a number of rows, a percentage, which is
rounded to the closest row (halves to even numbers), or a number of shards; a negative one counts from the end. Where
only one boundary of a slice has a unit, it is that of both. What TFDS refuses is refused here, and so are slices that
end before they begin, which it reads in unexpected ways.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

ALL = "all"
_MOST_PARTS = 10_000
_PART = re.compile(r"([\w-]+)(?:\[([\w%:.-]+)\])?")
_BOUNDARY = re.compile(r"(-?[0-9_.]{1,30})(%|shard)?")
_UNITS = ("%", "shard", "abs")
_ROUNDING = ("closest", "pct1_dropremainder")
_EXPECTED = "expected 'train', 'train[:100]', 'train[10%:-10%]', 'train[2shard:4shard]', 'all', or several joined by +"
_REMAINDER_ROWS = 100  # of which pct1_dropremainder takes a hundredth as 1 %


@dataclass(frozen=True, slots=True)
class SplitSlice:
    """Some rows of a split; without boundaries all."""

    name: str
    begin: float | None = None
    end: float | None = None
    unit: str = "abs"  # "%", "shard"
    rounding: str = "closest"

    def __str__(self) -> str:
        if self.begin is None and self.end is None:
            return self.name
        unit = "" if self.unit == "abs" else self.unit
        digits = (None if bound is None else f"{Decimal(repr(bound)):f}" for bound in (self.begin, self.end))
        begin, end = ("" if text is None else text.removesuffix(".0") + unit for text in digits)
        return f"{self.name}[{begin}:{end}]"

    def __repr__(self) -> str:
        return repr(str(self))

    def rows(self, lengths: Sequence[int]) -> tuple[int, int]:
        """The first row and the end, of a split whose shards have these numbers of rows.

        ValueError if the boundaries are not within the split, or not in order.
        """
        count = sum(lengths)
        if self.unit == "shard":
            begin, end = (None if bound is None else int(bound) for bound in (self.begin, self.end))
            first, last = self._bounds(begin, end or None, len(lengths), "shards")  # up to 0shard is up to the last
            return sum(lengths[:first]), sum(lengths[:last])
        begin, end = (None if bound is None else self._row(bound, count) for bound in (self.begin, self.end))
        return self._bounds(begin, end, count, "rows")

    def _row(self, bound: float, count: int) -> int:
        if self.unit == "abs":
            return int(bound)
        if self.rounding == "closest":
            return round(bound * count / 100.0)
        if count < _REMAINDER_ROWS:
            reason = f"the rounding pct1_dropremainder needs at least {_REMAINDER_ROWS} rows"
            raise ValueError(f"split={self!r}: {reason}, and the split has {count}")
        return math.trunc(bound * (count // 100))

    def _bounds(self, begin: int | None, end: int | None, count: int, unit: str) -> tuple[int, int]:
        for bound in (begin, end):
            if bound is not None and abs(bound) > count:
                raise ValueError(f"split={self!r}: {bound:,} is out of range, as '{self.name}' has {count:,} {unit}")
        first = 0 if begin is None else begin + count if begin < 0 else begin
        last = count if end is None else end + count if end < 0 else end
        if first > last:
            reason = f"split={self!r}: it ends before it begins"
            raise ValueError(f"{reason}; '{self.name}' has {count:,} {unit}")
        return first, last


@dataclass(frozen=True, slots=True)
class Split:
    """The value of ``split``: slices, one after the other."""

    parts: tuple[SplitSlice, ...]

    def __str__(self) -> str:
        return "+".join(map(str, self.parts))

    def __repr__(self) -> str:
        return repr(str(self))

    def ranges(self, splits: Mapping[str, Sequence[int]]) -> Iterator[tuple[str, int, int]]:
        """The names, first rows and ends, of splits whose shards have these numbers of rows.

        ValueError if no split has that name, or it does not have these rows.
        """
        for part in self.parts:
            if part.name == ALL and ALL not in splits:
                yield from ((name, 0, sum(lengths)) for name, lengths in splits.items())
            elif part.name not in splits:
                names = " and ".join(", ".join(f"'{name}'" for name in splits).rsplit(", ", 1)) or "none"
                reason = f"split={self!r}: the dataset has no split '{part.name}'"
                raise ValueError(f"{reason}; its splits are {names}")
            else:
                yield part.name, *part.rows(splits[part.name])


def parse_split(value: Any) -> Split:
    """The value of the keyword: text, or a ReadInstruction of TFDS or a sum of them, read by their attributes.

    >>> str(parse_split("train[:80%]+test"))
    'train[:80%]+test'
    >>> list(parse_split("train[1:-25%]").ranges({"train": [4, 4]}))
    [('train', 0, 6)]

    TypeError or ValueError if it is not such a value.
    """
    if isinstance(value, Split):
        return value
    if isinstance(value, str):
        texts = re.split(r"\s*\+\s*", value, maxsplit=_MOST_PARTS)
        if len(texts) > _MOST_PARTS:
            raise ValueError(f"split= joins more than {_MOST_PARTS:,} parts")
        return Split(tuple(_slice(text, value) for text in texts))
    if hasattr(value, "left") and hasattr(value, "right"):
        return Split(parse_split(value.left).parts + parse_split(value.right).parts)
    if hasattr(value, "split_name") and hasattr(value, "from_"):
        bounds, unit, rounding = (value.from_, value.to), str(value.unit), str(value.rounding)
        if unit in _UNITS and rounding in _ROUNDING and all(isinstance(b, int | float | None) for b in bounds):
            return Split((SplitSlice(str(value.split_name), *bounds, unit, rounding),))
    raise TypeError(f"split={value!r}: {_EXPECTED}")


def _slice(text: str, given: str) -> SplitSlice:
    error = ValueError(f"split={given[:200]!r}: {_EXPECTED}")
    match = _PART.fullmatch(text)
    if match is None:
        raise error
    name, selector = match.groups()
    if selector is None:
        return SplitSlice(name)
    if name == ALL:
        raise ValueError(f"split={given[:200]!r}: 'all' cannot be sliced; slice each split")
    bounds = [_BOUNDARY.fullmatch(bound) for bound in selector.split(":")]
    if len(bounds) not in (1, 2) or not any(bounds):
        raise error
    if any(match is None and bound for match, bound in zip(bounds, selector.split(":"), strict=True)):
        raise error
    units = {bound[2] for bound in bounds if bound is not None and bound[2]}
    if len(units) > 1:
        raise ValueError(f"split={given[:200]!r}: the boundaries of '{text[:200]}' have two units")
    unit = units.pop() if units else "abs"
    number = float if unit == "%" else int
    try:
        values: list[float | None] = [None if bound is None else number(bound[1]) for bound in bounds]
    except ValueError:
        raise error from None
    if unit == "%" and any(bound is not None and abs(bound) > 100 for bound in values):
        raise ValueError(f"split={given[:200]!r}: percentages are from -100% to 100%")
    if len(values) == 2:
        return SplitSlice(name, values[0], values[1], unit)
    if unit != "shard" or values[0] is None:
        reason = f"split={given[:200]!r}: one number is that of a shard, as in 'train[0shard]'"
        raise ValueError(f"{reason}; {_EXPECTED}")
    return SplitSlice(name, values[0], values[0] + 1, unit)
