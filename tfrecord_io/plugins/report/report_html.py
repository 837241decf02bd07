"""Write a report as one HTML page of bounded size, without scripts, that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from typing import Any

import numpy as np

from tfrecord_io.apps.views.charts import Label, histogram_chart, share_bar, value_bars
from tfrecord_io.apps.views.drawings import figure
from tfrecord_io.apps.views.elements import element, number, percent, table, text, value_text
from tfrecord_io.apps.views.number_statistics import QUANTILES, NumberStatistics, edges_of, histogram
from tfrecord_io.base import byte_size, short
from tfrecord_io.columns import Column
from tfrecord_io.kit import counted
from tfrecord_io.plugins.report.dataset_statistics import DatasetStatistics
from tfrecord_io.plugins.report.drift import FeatureDrift
from tfrecord_io.plugins.report.feature_statistics import FeatureStatistics, convert_to_one_unit, nanoseconds_of

_FEW = 12  # integers with at most so many distinct values are shown as values, not as a histogram
_NAMED_QUANTILES = ((0.05, "5 %"), (0.25, "25 %"), (0.5, "median"), (0.75, "75 %"), (0.95, "95 %"))
_PART = {"feature_list": "feature list"}

Sides = Sequence[FeatureStatistics | None]  # of one dataset, or of two that are compared


def card(sides: Sides, texts: Sequence[str], anchor: str, drift: FeatureDrift | None = None) -> str:
    """The card of a feature; `anchor` is its id in the page."""
    present = [side for side in sides if side is not None]
    body = [_presence(sides)]
    if drift is not None and drift.distance is not None:
        words = f"{drift.measure} distance {drift.distance:.3f}"
        body.append(element("div", words, class_="drift notable" if drift.is_notable else "drift"))
    body += [_values(sides), _chart(sides), _numbers(sides)]
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


MAX_BYTES = 8_000_000  # of a page
_LIMITS = (
    f"This page is smaller than {byte_size(MAX_BYTES)}, contains no scripts and loads nothing. "
    "Control characters are shown as escapes, long values are shortened."
)
_CARDS_BYTES, _IMAGES_BYTES, _SOUNDS_BYTES = 2_500_000, 2_500_000, 1_500_000
_LINKS = 200  # of the table of contents

Datasets = Sequence[DatasetStatistics]  # one, or two that are compared
_DRIFT_ROWS = 200
_DISTANCES = (
    "L-infinity: the largest difference between the shares of one value. Jensen-Shannon: the divergence of "
    "histograms with 20 bins, one for NaN and one for infinities, in bits. Both are 0 for equal and 1 for disjoint "
    "values."
)


def document(title: str, datasets: Datasets, drifts: Sequence[FeatureDrift] = (), version: str = "") -> str:
    """The whole page; `title` is a line about each dataset, of any content, `version` that of tfrecord_io."""
    packages = ("tfrecord_io.apps.views", "tfrecord_io.plugins.report")
    style = "\n".join(resources.files(package).joinpath("style.css").read_text("utf-8") for package in packages)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; media-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{text(title, 120)}</title><style>{style}</style>"
    )
    body = "".join(_sections(title, datasets, drifts))
    footer = element("footer", f"{text(_LIMITS)} tfrecord_io {text(version)}")
    main = element("main", body + footer)
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>\n'


def _sections(title: str, datasets: Datasets, drifts: Sequence[FeatureDrift]) -> Iterable[str]:
    yield _top(title, datasets)
    cards, names = _cards(datasets, drifts)
    yield names
    if len(datasets) == 2:
        words = "A to B; marked from 0.1 on"
        yield _section("Drift", words, drift_table(drifts) + element("p", _DISTANCES, class_="note"))
    yield from _galleries(datasets)
    count = len({feature.name for dataset in datasets for feature in dataset.features})
    yield _section("Features", f"{count:,}", cards)
    for i, dataset in enumerate(datasets):
        side = f" of {'AB'[i]}" if len(datasets) == 2 else ""
        yield _section(f"First records{side}", "", first_table(dataset))
        checks = element("p", text(dataset.checks, 500), class_="lead")
        yield _section(f"Files{side}", f"{dataset.file_count:,}", files_table(dataset) + checks)


def _galleries(datasets: Datasets) -> Iterable[str]:
    """The images and sounds of each dataset, as far as there is room for them."""
    for i, dataset in enumerate(datasets):
        side = f" of {'AB'[i]}" if len(datasets) == 2 else ""
        images, sounds = _Budget(_IMAGES_BYTES // len(datasets)), _Budget(_SOUNDS_BYTES // len(datasets))
        for gallery in dataset.galleries:
            shown = (images if gallery.kind == "image" else sounds).take(
                figure(sample, gallery.kind) for sample in gallery.samples
            )
            noun = "Images" if gallery.kind == "image" else "Sounds"
            left = len(gallery.samples) - len(shown)
            is_all = len(gallery.samples) == dataset.sampling.records
            note = f"of all {len(shown)} records" if is_all and not left else f"of {len(shown)} random records"
            note += f"; {left} more would make the page too large" if left else ""
            grid = "gallery" if gallery.kind == "image" else "gallery sounds"
            yield _section(f"{noun}{side}: {gallery.feature}", note, element("div", "".join(shown), class_=grid))


class _Budget:
    """Takes parts of the page as long as there is room for them."""

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, parts: Iterable[str]) -> list[str]:
        """The first parts that fit."""
        chosen_parts = []
        for part in parts:
            self._left -= len(part.encode())
            if self._left < 0:
                break
            chosen_parts.append(part)
        return chosen_parts


def _section(heading: str, note: str, content: str) -> str:
    small = element("small", text(note, 200)) if note else ""
    return element("section", element("h2", text(heading, 160) + small) + content)


def _top(title: str, datasets: Datasets) -> str:
    kicker = element("p", "TFRecord report" if len(datasets) == 1 else "TFRecord report: two datasets", class_="kicker")
    if len(datasets) == 1:
        words = element("p", text(datasets[0].sampling.text, 400), class_="lead")
        return element("header", kicker + element("h1", text(title, 300)) + words) + _tiles(datasets[0])
    parts = [kicker]
    for i, (name, dataset) in enumerate(zip(title.split("\n"), datasets, strict=True)):
        key = element("span", "", class_=f"key s{i}")
        heading = element("h1", key + element("span", f"{'AB'[i]}: {text(name, 300)}"))
        parts += [heading, element("p", text(dataset.sampling.text, 400), class_="lead"), _tiles(dataset)]
    return element("header", element("div", "".join(parts), class_="pair"))


def _tiles(dataset: DatasetStatistics) -> str:
    sampling = dataset.sampling
    records = f"{sampling.records if sampling.total is None else sampling.total:,}"
    examined = "" if sampling.complete else f"{sampling.records:,} examined"
    compressions = sorted({file.compression or "not compressed" for file in dataset.files})
    tiles = [
        (
            "Records" if sampling.total is not None else "Records examined",
            records,
            examined if sampling.total is not None else "",
        ),
        ("Features", f"{len(dataset.features):,}", ""),
        ("Size", "unknown" if dataset.bytes is None else byte_size(dataset.bytes), ", ".join(compressions)),
        ("Files", f"{dataset.file_count:,}", ""),
        ("Schema", text(dataset.schema_source), ""),
    ]
    if sampling.skipped:
        tiles.append(("Damaged", counted(sampling.skipped, "region"), "left out"))
    cells = [
        element("div", element("dt", name) + element("dd", value + (element("small", text(note)) if note else "")))
        for name, value, note in tiles
    ]
    return element("dl", "".join(cells), class_="tiles")


def _cards(datasets: Datasets, drifts: Sequence[FeatureDrift]) -> tuple[str, str]:
    """The cards of the features, and the links to them."""
    sides = [{feature.name: feature for feature in dataset.features} for dataset in datasets]
    drift = {feature_drift.name: feature_drift for feature_drift in drifts}
    names = list(dict.fromkeys(feature.name for dataset in datasets for feature in dataset.features))
    cards = (
        card([side.get(name) for side in sides], datasets[-1].texts.get(name, ()), f"f{i}", drift.get(name))
        for i, name in enumerate(names)
    )
    shown = _Budget(_CARDS_BYTES).take(cards)
    links = "".join(
        element("li", element("a", text(name, 60) or "(empty)", href=f"#f{i}"))
        for i, name in enumerate(names[: len(shown)][:_LINKS])
    )
    unlisted = names[len(shown) :]
    note = ""
    if unlisted:
        listed_names = ", ".join(text(name, 60) for name in unlisted[:_LINKS])
        note = element(
            "p",
            f"{len(unlisted):,} more features, without cards, as the page would be too large: {listed_names}",
            class_="note",
        )
    contents = element("nav", element("ul", links, class_="contents"), aria_label="Features") if len(names) > 1 else ""
    return element("div", "".join(shown), class_="cards") + note, contents


def files_table(statistics: DatasetStatistics) -> str:
    """A row for each of the first files."""
    has_status = any(file.status for file in statistics.files)
    headings = [("File", "mono"), ("Size", "num"), ("Compression", ""), *([("Verified", "")] if has_status else [])]
    rows = [
        [
            text(file.path, 300),
            "unknown" if file.bytes is None else byte_size(file.bytes),
            text(file.compression or "none"),
            *([text(file.status)] if has_status else []),
        ]
        for file in statistics.files
    ]
    more = statistics.file_count - len(statistics.files)
    return table(headings, rows) + (element("p", f"… and {more:,} more files", class_="note") if more > 0 else "")


def first_table(statistics: DatasetStatistics) -> str:
    """The first records."""
    names, rows = statistics.first
    if not rows:
        return element("p", "There are no records.", class_="note")
    numeric = {f.name for f in statistics.features if f.numbers is not None and f.values_per_record is None}
    headings = [(text(name, 60) or "(empty)", "num" if name in numeric else "") for name in names]
    cells = [
        [element("span", "null", class_="null") if cell is None else text(cell, 80) for cell in row] for row in rows
    ]
    more = len(statistics.features) - len(names)
    note = (
        element("p", f"The first {len(names)} columns; {more:,} more are not shown.", class_="note") if more > 0 else ""
    )
    return table(headings, cells) + note


def drift_table(drifts: Sequence[FeatureDrift]) -> str:
    """A row for each feature, those that differ most first."""
    headings = [
        ("Feature", "mono"),
        ("Distance", "num"),
        ("Measure", ""),
        ("Presence A", "num"),
        ("Presence B", "num"),
        ("Mean A", "num"),
        ("Mean B", "num"),
        ("Notes", "wrap"),
    ]
    rows = []
    for drift in drifts[:_DRIFT_ROWS]:
        distance = "–" if drift.distance is None else f"{drift.distance:.3f}"
        marked = element("span", distance, class_="notable") if (drift.distance or 0) >= 0.1 else distance
        presence = ["–" if share is None else percent(share) for share in drift.presence]
        means = [number(mean) for mean in drift.means]
        rows.append([text(drift.name, 100), marked, drift.measure or "–", *presence, *means, _notes(drift)])
    more = len(drifts) - len(rows)
    note = element("p", f"… and {more:,} features that differ less", class_="note") if more > 0 else ""
    return table(headings, rows) + note


def _notes(drift: FeatureDrift) -> str:
    if None in drift.types:
        return element("span", f"only in {'B' if drift.types[0] is None else 'A'}", class_="notable")
    notes = []
    if drift.types[0] != drift.types[1]:
        types = f"type {text(drift.types[0], 60)} → {text(drift.types[1], 60)}"
        notes.append(element("span", types, class_="notable"))
    for name, count, values in (
        ("new in B", drift.new_count, drift.new_values),
        ("not in B", drift.lost_count, drift.lost_values),
    ):
        if count:
            shown = ", ".join(value_text(value, 24) for value in values[:4])
            notes.append(f"{count:,} {name}: {shown}{', …' if count > 4 else ''}")
    return "<br>".join(notes)
