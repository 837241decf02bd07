"""A card for each feature: type, presence, a chart, statistics, values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tfrecord_io.display import shape_ranges, short
from tfrecord_io.plugins.report.drift import FeatureDrift
from tfrecord_io.plugins.report.feature_statistics import FeatureStatistics, temporal_value
from tfrecord_io.plugins.report.markup import element, number, percent, text, value_text
from tfrecord_io.plugins.report.number_statistics import QUANTILES, Histogram, NumberStatistics, edges_of, histogram

_FEW = 12  # integers with at most so many distinct values are shown as values, not as a histogram
_NAMED_QUANTILES = ((0.05, "5 %"), (0.25, "25 %"), (0.5, "median"), (0.75, "75 %"), (0.95, "95 %"))
_PART = {"feature_list": "feature list"}

Sides = Sequence[FeatureStatistics | None]  # of one dataset, or of two that are compared
_WIDTH, _HEIGHT = 400.0, 100.0

Label = Callable[[float], str]  # a number of an axis as HTML


def card(sides: Sides, texts: Sequence[str], anchor: str, drift: FeatureDrift | None = None) -> str:
    """The card of a feature; `anchor` is its id in the page."""
    known = [side for side in sides if side is not None]
    body = [
        _presence(sides),
        *([] if drift is None else [_drift(drift)]),
        _values(sides),
        _chart(sides),
        _numbers(sides),
    ]
    if texts:
        quotes = "".join(element("li", text(value, 300)) for value in texts)
        body.append(element("h4", "Samples") + element("ul", quotes, class_="quotes"))
    return element("article", _header(known) + "".join(body), class_="card", id=anchor)


def _header(known: Sequence[FeatureStatistics]) -> str:
    first = known[0]
    types = list(dict.fromkeys(side.summary.shown_type for side in known))
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


def _drift(drift: FeatureDrift) -> str:
    if drift.distance is None:
        return ""
    words = f"{drift.measure} distance {drift.distance:.3f}"
    return element("div", words, class_="drift notable" if drift.is_notable else "drift")


def _is_listed(side: FeatureStatistics) -> bool:
    """Whether values are listed, and not drawn as a histogram."""
    if side.counts is None or not side.counts.counts:
        return False
    return side.numbers is None or (side.counts.exact and side.counts.distinct <= _FEW)


def _chart(sides: Sides) -> str:
    known = [side for side in sides if side is not None]
    if any(side.numbers is not None for side in known) and not all(map(_is_listed, known)):
        drawn = [side.numbers for side in sides if side is not None]
        label = _label(next(side for side in known if side.numbers is not None))
        return _histograms(sides, drawn, label, "Values")
    for name, parts in (
        ("Length of values", [side.lengths for side in known]),
        ("Values per record", [side.values_per_record for side in known]),
    ):
        varies = [part for part in parts if part is not None and part.minimum != part.maximum]
        if varies and not (name[0] == "L" and all(map(_is_listed, known)) and _has_few(known)):
            return _histograms(sides, parts, number, name)
    return ""


def _has_few(known: Sequence[FeatureStatistics]) -> bool:
    return all(side.counts is not None and side.counts.exact and side.counts.distinct <= _FEW for side in known)


def _histograms(sides: Sides, parts: Sequence[NumberStatistics | None], label: Label, title: str) -> str:
    present = [part for part in parts if part is not None and part.maximum is not None]
    if not present:
        return ""
    edges = edges_of(*present)
    empty = np.empty(0)
    drawn = [histogram(empty if part is None else part.kept, edges) for part in parts]
    return element("h4", title) + histogram_chart(drawn, max(part.maximum or 0.0 for part in present), label)


def _label(side: FeatureStatistics) -> Label:
    if not side.is_temporal:
        return number
    return lambda value: text(short(temporal_value(side.value_type, value), 40))


def _numbers(sides: Sides) -> str:
    """A table of statistics, a column for each dataset."""
    lines: list[tuple[str, list[str]]] = []

    def add(name: str, cell: Callable[[FeatureStatistics], str]) -> None:
        cells = ["" if side is None else cell(side) for side in sides]
        if any(cells):
            lines.append((name, cells))

    add("mean", lambda s: _of(s, "mean"))
    add("std. dev.", lambda s: _of(s, "deviation"))
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
    add(
        "shape",
        lambda s: "" if s.summary.min_shape is None else text(shape_ranges(s.summary.min_shape, s.summary.max_shape)),
    )
    rows = "".join(
        element("div", element("dt", name) + "".join(element("dd", cell or "–") for cell in cells))
        for name, cells in lines
    )
    is_wide = len(sides) > 1 or any(side is not None and side.is_temporal for side in sides)
    return element("dl", rows, class_="numbers two" if is_wide else "numbers") if rows else ""


def _of(side: FeatureStatistics, name: str) -> str:
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
    known = [side for side in sides if side is not None]
    listed = [side for side in known if _is_listed(side)]
    if len(listed) < len(known):
        return ""
    values: dict[Any, None] = {}
    for side in listed:
        assert side.counts is not None
        is_short = side.counts.distinct <= _FEW
        values.update(dict.fromkeys(value for value, count in side.counts.top if count > 1 or is_short))
    if not values:
        return element("p", "Every value occurs once.", class_="note")
    shown = sorted(values) if all(isinstance(v, int) for v in values) and len(values) <= _FEW else list(values)[:_FEW]
    lines = [(value_text(value), [_share(side, value) for side in known]) for value in shown]
    more = max(side.counts.distinct for side in listed if side.counts is not None) - len(shown)
    note = element("p", f"… and {more:,} other values", class_="note") if more > 0 else ""
    return element("h4", "Values") + value_bars(lines) + note


def _share(side: FeatureStatistics, value: Any) -> tuple[int, float]:
    if side.counts is None:
        return 0, 0.0
    count = side.counts.counts.get(value, 0)
    return count, count / side.counts.total


def histogram_chart(histograms: Sequence[Histogram], high: float, label: Label = number) -> str:
    """Histograms with the same edges, drawn over each other, with the ends of the axis below; `high` is the last value.

    Heights are shares of the values, so that datasets of different sizes can be compared.
    """
    sums = [sum(h.counts) or 1 for h in histograms]
    highest = max(count / total for h, total in zip(histograms, sums, strict=True) for count in h.counts) or 1.0
    series = "".join(
        _bars(h, total, highest, high, label, f"s{i}")
        for i, (h, total) in enumerate(zip(histograms, sums, strict=True))
    )
    chart = element(
        "svg",
        series,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        class_="histogram",
        role="img",
        aria_label="Histogram",
    )
    ends = element("span", label(histograms[0].edges[0])) + element("span", label(high))
    return chart + element("div", ends, class_="axis", aria_hidden="true")


def _bars(histogram: Histogram, total: int, highest: float, high: float, label: Label, kind: str) -> str:
    count = len(histogram.counts)
    step = _WIDTH / max(count, 1)
    gap = min(1.5, step * 0.12)
    parts = []
    for i, n in enumerate(histogram.counts):
        if not n:
            continue
        height = max(1.5, n / total / highest * (_HEIGHT - 2))
        tip = f"<title>{_interval(histogram, i, high, label)}: {n:,} ({percent(n / total)})</title>"
        box = f'x="{i * step + gap / 2:.2f}" y="{_HEIGHT - height:.2f}" width="{step - gap:.2f}" height="{height:.2f}"'
        parts.append(f"<rect {box}>{tip}</rect>")
    return element("g", "".join(parts), class_=kind)


def _interval(histogram: Histogram, i: int, last: float, label: Label) -> str:
    low, high = histogram.edges[i], histogram.edges[i + 1]
    high = min(high - 1, last) if histogram.integers else high
    return label(low) if low == high else f"{label(low)} to {label(high)}"


def value_bars(values: Sequence[tuple[str, Sequence[tuple[int, float]]]]) -> str:
    """A line for each value, as HTML, with its count and share in one or two datasets."""
    highest = max((share for _, sides in values for _, share in sides), default=0.0) or 1.0
    lines = []
    for name, sides in values:
        bars = "".join(share_bar(share / highest, kind=f"s{i}") for i, (_, share) in enumerate(sides))
        counts = "".join(element("span", f"{count:,}", title=percent(share)) for count, share in sides)
        line = element("span", name, class_="v") + element("span", bars, class_="bars")
        lines.append(element("li", line + element("span", counts, class_="n")))
    return element("ul", "".join(lines), class_="values")


def share_bar(share: float, *, kind: str = "s0", **attributes: Any) -> str:
    """A bar that fills a share of its width."""
    width = 100 * min(1.0, max(0.0, share))
    rect = f'<rect class="fill {kind}" width="{max(width, 0.8 if share else 0):.2f}" height="8"/>'
    back = '<rect class="back" width="100" height="8"/>'
    size = {"viewBox": "0 0 100 8", "preserveAspectRatio": "none", "class_": "bar", "aria_hidden": "true"}
    return element("svg", back + rect, **size, **attributes)
