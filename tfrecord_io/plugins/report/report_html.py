"""Write a report as one HTML page of bounded size, without scripts, that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources

from tfrecord_io.apps.views import element, feature_card, figure, number, percent, style, table, text, value_text
from tfrecord_io.kit import byte_size, counted
from tfrecord_io.plugins.report.dataset_statistics import DatasetStatistics
from tfrecord_io.plugins.report.drift import FeatureDrift

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
    rules = style() + resources.files("tfrecord_io.plugins.report").joinpath("style.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(rules.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; media-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{text(title, 120)}</title><style>{rules}</style>"
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
    drift = {feature_drift.name: _distance(feature_drift) for feature_drift in drifts}
    names = list(dict.fromkeys(feature.name for dataset in datasets for feature in dataset.features))
    cards = (
        feature_card([side.get(name) for side in sides], datasets[-1].texts.get(name, ()), f"f{i}", drift.get(name, ""))
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


def _distance(drift: FeatureDrift) -> str:
    if drift.distance is None:
        return ""
    words = f"{drift.measure} distance {drift.distance:.3f}"
    return element("div", words, class_="drift notable" if drift.is_notable else "drift")


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
