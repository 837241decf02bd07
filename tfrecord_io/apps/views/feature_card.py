"""The statistics of a feature as HTML: how many records have it, its values, a histogram, numbers.

Tests: tests/plugins/browse/test_browse_server.py and tests/plugins/report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrecord_io.apps.views.charts import Label, histogram_chart, share_bar, value_bars
from tfrecord_io.apps.views.elements import element, number, percent, text, value_text
from tfrecord_io.apps.views.feature_statistics import FeatureStatistics, convert_to_one_unit, nanoseconds_of
from tfrecord_io.apps.views.number_statistics import QUANTILES, NumberStatistics, edges_of, histogram
from tfrecord_io.columns import Column
from tfrecord_io.kit import short

_FEW = 12  # integers with at most so many distinct values are shown as values, not as a histogram
_NAMED_QUANTILES = ((0.05, "5 %"), (0.25, "25 %"), (0.5, "median"), (0.75, "75 %"), (0.95, "95 %"))
_PART = {"feature_list": "feature list"}

Sides = Sequence[FeatureStatistics | None]  # of one dataset, or of two that are compared


def feature_card(sides: Sides, texts: Sequence[str] = (), anchor: str | None = None, drift: str = "") -> str:
    """The card of a feature; `anchor` is its id in the page, `drift` the HTML of how much its sides differ."""
    present = [side for side in sides if side is not None]
    body = [_presence(sides), drift, _values(sides), _chart(sides), _numbers(sides)]
    if texts:
        quotes = "".join(element("li", text(value, 300)) for value in texts)
        body.append(element("h4", "Samples") + element("ul", quotes, class_="quotes"))
    return element("article", _header(present) + "".join(body), class_="card", id=anchor)


def _header(present: Sequence[FeatureStatistics]) -> str:
    first = present[0]
    types = list(dict.fromkeys(side.summary.shown_type for side in present))
    details = [part for part in (first.kind, _PART.get(first.part, "")) if part]
    badges = "".join(element("span", text(name, 80), class_="badge") for name in types)
    badges += "".join(element("span", text(detail), class_="detail") for detail in details)
    return element(
        "header", element("h3", text(first.name, 120) or "(empty name)") + element("div", badges, class_="badges")
    )


def _presence(sides: Sides) -> str:
    lines = []
    for i, side in enumerate(sides):
        if side is None:
            lines.append(element("div", "not in this dataset", class_="presence missing"))
            continue
        nulls = f"{side.summary.nulls:,} of {side.records:,} records lack it"
        share = "all records" if side.presence == 1 else f"{percent(side.presence)} of the records"
        words = f"in {share}" if side.records else "no records"
        missing = element("span", f"{side.summary.nulls:,} missing", class_="missing") if side.summary.nulls else ""
        bar = share_bar(side.presence, kind=f"s{i}")
        lines.append(element("div", bar + element("span", words) + missing, class_="presence", title=nulls))
    return "".join(lines)


def _is_listed(side: FeatureStatistics) -> bool:
    """True if values are listed, and not drawn as a histogram."""
    if side.counts is None or not side.counts.counts:
        return False
    return side.numbers is None or _has_few(side)


def _chart(sides: Sides) -> str:
    present = [side for side in sides if side is not None]
    if any(side.numbers is not None for side in present) and not all(map(_is_listed, present)):
        sides_in_one_unit = convert_to_one_unit(present)
        return "" if sides_in_one_unit is None else _histograms(sides_in_one_unit, _label_of_all(present), "Values")
    for name, parts in (
        ("Length of values", [side.lengths for side in present]),
        ("Values per record", [side.values_per_record for side in present]),
    ):
        varies = [part for part in parts if part is not None and part.minimum != part.maximum]
        if varies and not (name[0] == "L" and all(_is_listed(side) and _has_few(side) for side in present)):
            return _histograms(parts, number, name)
    return ""


def _has_few(side: FeatureStatistics) -> bool:
    return side.counts is not None and side.counts.exact and side.counts.distinct <= _FEW


def _histograms(parts: Sequence[NumberStatistics | None], label: Label, title: str) -> str:
    present = [part for part in parts if part is not None and part.maximum is not None]
    if not present:
        return ""
    edges = edges_of(*present)
    empty = np.empty(0)
    histograms = [histogram(empty if part is None else part.kept, edges) for part in parts]
    return element("h4", title) + histogram_chart(histograms, max(part.maximum or 0.0 for part in present), label)


def _label(side: FeatureStatistics) -> Label:
    if not side.is_temporal:
        return number
    return lambda value: text(short(Column(side.value_type).time_of(value), 40))


def _label_of_all(sides: Sequence[FeatureStatistics]) -> Label:
    """Label numbers that `convert_to_one_unit` made; times in the coarsest unit of all sides."""
    numbered = [side for side in sides if side.numbers is not None]
    units = [nanoseconds_of(side.value_type) for side in numbered]
    label, ratio = _label(numbered[units.index(max(units))]), max(units) // min(units)
    return lambda value: label(value / ratio)


def _numbers(sides: Sides) -> str:
    """A table of statistics, a column for each dataset."""
    lines: list[tuple[str, list[str]]] = []

    def add(name: str, cell: Callable[[FeatureStatistics], str]) -> None:
        cells = ["" if side is None else cell(side) for side in sides]
        if any(cells):
            lines.append((name, cells))

    add("mean", lambda s: _number_text(s, "mean"))
    add("std. dev.", lambda s: _number_text(s, "deviation"))
    add("min", lambda s: "" if s.summary.minimum is None else value_text(s.summary.minimum))
    for share, name in _NAMED_QUANTILES:
        add(name, lambda s, q=share: _quantile(s, q))  # type: ignore[misc]
    add("max", lambda s: "" if s.summary.maximum is None else value_text(s.summary.maximum))
    add("zeros", lambda s: _count(s, "zeros"))
    add("NaN", lambda s: _count(s, "nans"))
    add("infinite", lambda s: _count(s, "infinities"))
    add("distinct", _distinct)
    add("length", lambda s: _range(s.lengths))
    add("mean length", lambda s: _mean(s.lengths))
    add("per record", lambda s: _range(s.values_per_record))
    add("mean per record", lambda s: _mean(s.values_per_record))
    add("shape", lambda s: text(s.summary.shape_range))
    rows = "".join(
        element("div", element("dt", name) + "".join(element("dd", cell or "–") for cell in cells))
        for name, cells in lines
    )
    is_wide = len(sides) > 1 or any(side is not None and side.is_temporal for side in sides)
    return element("dl", rows, class_="numbers two" if is_wide else "numbers") if rows else ""


def _number_text(side: FeatureStatistics, name: str) -> str:
    value = None if side.numbers is None or side.is_temporal or _is_constant(side) else getattr(side.numbers, name)
    return "" if value is None else number(value)


def _is_constant(side: FeatureStatistics) -> bool:
    numbers = side.numbers
    return numbers is not None and numbers.minimum == numbers.maximum and not numbers.nans


def _quantile(side: FeatureStatistics, share: float) -> str:
    if side.numbers is None or not side.numbers.quantiles or _is_constant(side):
        return ""
    value = side.numbers.quantiles[QUANTILES.index(share)]
    return _label(side)(value)


def _count(side: FeatureStatistics, name: str) -> str:
    numbers = side.numbers
    count = 0 if numbers is None or side.is_temporal else getattr(numbers, name)
    return f"{count:,} ({percent(count / numbers.count)})" if count and numbers is not None else ""


def _distinct(side: FeatureStatistics) -> str:
    if side.counts is not None:
        return f"{side.counts.distinct:,}" if side.counts.exact else f"&gt; {side.counts.distinct:,}"
    return "" if side.summary.distinct is None else f"{side.summary.distinct:,}"


def _range(lengths: NumberStatistics | None) -> str:
    if lengths is None or lengths.minimum is None:
        return ""
    ends = dict.fromkeys((number(lengths.minimum), number(lengths.maximum)))
    return " – ".join(ends)


def _mean(lengths: NumberStatistics | None) -> str:
    return "" if lengths is None or lengths.minimum == lengths.maximum else number(lengths.mean)


def _values(sides: Sides) -> str:
    """The most frequent values of both sides, with their counts."""
    present = [side for side in sides if side is not None]
    side_counts = [side.counts for side in present if side.counts is not None and _is_listed(side)]
    if len(side_counts) < len(present):
        return ""
    values: dict[Any, None] = {}
    for value_counts in side_counts:
        is_short = value_counts.distinct <= _FEW
        values.update(dict.fromkeys(value for value, count in value_counts.top if count > 1 or is_short))
    if not values:
        return element("p", "Every value occurs once.", class_="note")
    shown = sorted(values) if all(isinstance(v, int) for v in values) and len(values) <= _FEW else list(values)[:_FEW]
    lines = []
    for value in shown:
        both = [(value_counts.counts.get(value, 0), value_counts.total) for value_counts in side_counts]
        lines.append((value_text(value), [(count, count / total) for count, total in both]))
    more = max(value_counts.distinct for value_counts in side_counts) - len(shown)
    note = element("p", f"… and {more:,} other values", class_="note") if more > 0 else ""
    return element("h4", "Values") + value_bars(lines) + note
