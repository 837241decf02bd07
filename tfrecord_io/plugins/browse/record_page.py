"""The page of a record, with what is stored of it, and the values of a column, as HTML.

Tests: tests/plugins/browse/test_browse_server.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tfrecord_io.apps.views import Row, box_forms_of, bytes_cell, element, feature_card, table, text, value_cell
from tfrecord_io.kit import Column, byte_size, counted
from tfrecord_io.plugins.browse.browsed_dataset import BrowsedDataset, Problem, Summary

_MOST_FEATURES, _HEAD = 1000, 4096  # features, and bytes of a record that has none, that are shown
_HEADINGS = [("Feature", ""), ("Kind", ""), ("Values", ""), ("Bytes", "num")]

Url = Callable[[str], str]  # of the whole value of a column


def record_page(dataset: BrowsedDataset, address: int, row: Row | Problem, *, names: Sequence[str], url: Url) -> str:
    """A record: where it is, the values of columns, and its features as they are stored."""
    file, record = dataset.map.place(address)
    begin, end = dataset.map.extent(address)
    number = dataset.map.number(address)
    facts = {"File": text(dataset.map.sources[file].path, 300), "Record": f"{record:,}"}
    facts |= {} if number is None else {"Row": f"{number:,}"}
    facts |= {"Bytes": f"{begin:,} to {end:,}", "Size": byte_size(end - begin)}
    stored, entries = "", []
    if isinstance(row, Problem):
        facts["Problem"] = element("span", text(row, 1000), class_="broken")
    else:
        forms = box_forms_of(map(dataset.schema.field, row))
        for field in map(dataset.schema.field, names):
            badge = element("span", text(Column(field).type_name, 120), class_="badge")
            heading = element("h2", text(field.name, 300) or "(empty name)") + badge
            entries.append(
                element("section", element("header", heading) + value_cell(row, field, forms, url, large=True))
            )
        if more := len(dataset.schema) - len(names):
            entries.append(element("p", f"{more:,} more columns are not shown here", class_="note"))
    if dataset.map.damage(address) is None:
        stored = _stored(dataset.map.stored(address), facts)
    table_of_facts = "".join(
        element("div", element("dt", name) + element("dd", value)) for name, value in facts.items()
    )
    return element("dl", table_of_facts, class_="facts") + element("div", "".join(entries), class_="entries") + stored


def _stored(record: Any, facts: dict[str, str]) -> str:
    """The features of a record in the order of the file, and fields that no message has."""
    stated, actual = record.checksums
    verdict = "good" if actual == stated else f"does not match: the payload has {actual:08x}"
    facts["Checksum"] = f"{stated:08x}, {verdict}"
    try:
        features = record.features[:_MOST_FEATURES]
        rows = [[_name(f), text(f.kind), f.amount, f"{len(f.content):,}"] for f in features]
    except ValueError:
        rows = []
    if not rows:
        head = bytes_cell(record.payload[:_HEAD].read(), "", large=True)
        return element("details", element("summary", "The record's bytes") + head)
    more = "more than " if record.has_more else ""
    summary = element("summary", f"As stored: {more}{counted(len(record.features), 'feature')}")
    return element("details", summary + table(_HEADINGS, rows))


def _name(feature: Any) -> str:
    return "–" if feature.name is None else text(feature.name, 200) or "(empty)"


def summary_page(job: Summary) -> str:
    """The values of a column: how many there are, and a histogram or the most frequent ones."""
    if job.error:
        return element("p", text(job.error, 500), class_="broken")
    if job.statistics is None:
        return element("p", "…", class_="note")
    large = f" {counted(job.large, 'large value')} not looked at." if job.large else ""
    return element("p", f"Of {job.words}.{large}", class_="note") + feature_card([job.statistics])
