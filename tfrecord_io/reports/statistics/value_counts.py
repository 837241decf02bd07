"""How often each value of a feature occurs, in bounded memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.arrow.output.to_python import python_values
from tfrecord_io.schema.types import is_text_or_bytes

MOST_DISTINCT = 10_000  # beyond it, rare values are forgotten
SHOWN = 12
VALUE_BYTES = 256  # longer values on average, such as images, are not counted


@dataclass(frozen=True, slots=True)
class ValueCounts:
    """How often values occur.

    Attributes
    ----------
    total : int
        Number of all values.
    distinct : int
        Number of different values; if not `exact`, there are more.
    exact : bool
        Whether all values are counted; else the numbers of rare values are too small.
    counts : dict
        By value.
    """

    total: int
    distinct: int
    exact: bool
    counts: dict[Any, int] = field(repr=False)

    @property
    def top(self) -> list[tuple[Any, int]]:
        """The most frequent values, the first `SHOWN` of them; of equal frequency, in their order."""
        return sorted(self.counts.items(), key=lambda item: (-item[1], _order(item[0])))[:SHOWN]

    def to_dict(self) -> dict[str, Any]:
        top = [{"value": value, "count": count} for value, count in self.top]
        return {"distinct": self.distinct, "exact": self.exact, "top": top}


def _order(value: Any) -> Any:
    return (0, value, "") if isinstance(value, int) else (1, 0, str(value))


class ValueCounter:
    """Counts the values of arrays of text, bytes, bools or integers.

    >>> counter = ValueCounter()
    >>> counter.add(pa.array(["a", "b", "a"]))
    >>> counter.result().top
    [('a', 2), ('b', 1)]
    """

    def __init__(self) -> None:
        self._counts: Counter[Any] = Counter()
        self._total = 0
        self._exact = True
        self._too_long = False

    def add(self, values: pa.Array) -> None:
        """Add values without nulls."""
        textual = is_text_or_bytes(values.type)
        self._too_long = self._too_long or (textual and values.nbytes > VALUE_BYTES * max(len(values), 1))
        if self._too_long:
            return
        counted = pc.value_counts(values)
        self._total += len(values)
        numbers = counted.field("counts")
        if len(counted) > MOST_DISTINCT:
            self._exact = False
            most = pc.select_k_unstable(numbers, MOST_DISTINCT, sort_keys=[("", "descending")])
            counted, numbers = counted.take(most), numbers.take(most)
        self._counts.update(dict(zip(python_values(counted.field("values")), numbers.to_pylist(), strict=True)))
        if len(self._counts) > MOST_DISTINCT:
            self._exact = False
            self._counts = Counter(dict(self._counts.most_common(MOST_DISTINCT // 2)))

    def result(self) -> ValueCounts | None:
        """None if there are no values, or the values are too long to be counted."""
        if self._too_long or not self._total:
            return None
        distinct = len(self._counts) if self._exact else MOST_DISTINCT
        return ValueCounts(self._total, distinct, self._exact, dict(self._counts))


def is_countable(type_: pa.DataType) -> bool:
    """Whether values of a type are counted one by one."""
    return is_text_or_bytes(type_) or pa.types.is_boolean(type_) or pa.types.is_integer(type_)
