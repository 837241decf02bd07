"""Histograms, bars and lines as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfrecord_io.apps.views.elements import element, number, percent
from tfrecord_io.apps.views.number_statistics import Histogram

_WIDTH, _HEIGHT = 400.0, 100.0

Label = Callable[[float], str]  # a number of an axis as HTML


def histogram_chart(histograms: Sequence[Histogram], high: float, label: Label = number) -> str:
    """Histograms with the same edges, drawn over each other, with the ends of the axis below; `high` is the last value.

    Heights are shares of the values, so that datasets of different sizes can be compared.
    """
    sums = [sum(h.counts) or 1 for h in histograms]
    highest = max(count / total for h, total in zip(histograms, sums, strict=True) for count in h.counts) or 1.0
    series = "".join(
        _bars(h, total, highest=highest, high=high, label=label, kind=f"s{i}")
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
        first, last = histogram.edges[i], histogram.edges[i + 1]
        last = min(last - 1, high) if histogram.integers else last
        interval = label(first) if first == last else f"{label(first)} to {label(last)}"
        tip = f"<title>{interval}: {n:,} ({percent(n / total)})</title>"
        box = f'x="{i * step + gap / 2:.2f}" y="{_HEIGHT - height:.2f}" width="{step - gap:.2f}" height="{height:.2f}"'
        parts.append(f"<rect {box}>{tip}</rect>")
    return element("g", "".join(parts), class_=kind)


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
