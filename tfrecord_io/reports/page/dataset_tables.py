"""The tables of a report: files, first records, and the drift between two datasets."""

from __future__ import annotations

from collections.abc import Sequence

from tfrecord_io.display import byte_size
from tfrecord_io.reports.page.markup import element, number, percent, table, text, value_text
from tfrecord_io.reports.statistics.dataset_statistics import DatasetStatistics
from tfrecord_io.reports.statistics.drift import FeatureDrift

_DRIFT_ROWS = 200


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
    rows = [_drift_row(drift) for drift in drifts[:_DRIFT_ROWS]]
    more = len(drifts) - len(rows)
    note = element("p", f"… and {more:,} features that differ less", class_="note") if more > 0 else ""
    return table(headings, rows) + note


def _drift_row(drift: FeatureDrift) -> list[str]:
    distance = "–" if drift.distance is None else f"{drift.distance:.3f}"
    marked = element("span", distance, class_="notable") if (drift.distance or 0) >= 0.1 else distance
    presence = ["–" if share is None else percent(share) for share in drift.presence]
    means = [number(mean) for mean in drift.means]
    return [text(drift.name, 100), marked, drift.measure or "–", *presence, *means, _notes(drift)]


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
