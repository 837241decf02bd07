"""The page of a record, with what is stored of it, and the values of a column, as HTML.

Tests: tests/plugins/browse/test_browse_server.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from tfrecord_io.plugins.browse.browsed_dataset import BrowsedDataset, Summary
from tfrecord_io.plugins.browse.core_names import (
    Array,
    Damage,
    EmbeddedSchema,
    FrameHeader,
    Row,
    byte_size,
    bytes_cell,
    counted,
    crc32c,
    element,
    fields_of,
    histogram_chart,
    number,
    text,
    text_if_any,
    value_bars,
    value_cell,
    value_text,
)

Url = Callable[[str], str]  # of the whole value of a column


def record_page(
    dataset: BrowsedDataset, address: int, row: Row | Damage, *, names: Sequence[str], url: Url, forms: dict[str, str]
) -> str:
    """A record: where it is, the values of columns, and its features as they are stored."""
    file, record = dataset.map.place(address)
    begin, end = dataset.map.extent(address)
    shard = dataset.map.number(address)
    facts = [("File", text(dataset.map.sources[file].path, 300)), ("Record", f"{record:,}")]
    facts += [] if shard is None else [("Row", f"{shard:,}")]
    facts += [("Bytes", f"{begin:,} to {end:,}"), ("Size", byte_size(end - begin))]
    if isinstance(row, Damage):
        facts.append(("Problem", element("span", text(row.reason, 1000), class_="broken")))
    frame = dataset.map.frame(address) if dataset.map.damage(address) is None else None
    stored = "" if frame is None else _stored_features(frame, facts)
    entries = [] if isinstance(row, Damage) else [_entry(dataset, row, name, forms=forms, url=url) for name in names]
    more = len(dataset.names) - len(names)
    if entries and more:
        entries.append(element("p", f"{more:,} more columns are not shown here", class_="note"))
    table = "".join(element("div", element("dt", name) + element("dd", value)) for name, value in facts)
    return element("dl", table, class_="facts") + element("div", "".join(entries), class_="entries") + stored


def _entry(dataset: BrowsedDataset, row: Row, name: str, *, forms: dict[str, str], url: Url) -> str:
    field = dataset.schema.field(name)
    heading = element("h2", text(name, 300) or "(empty name)") + element(
        "span", text(dataset.scan.shown_type(field), 120), class_="badge"
    )
    return element("section", element("header", heading) + value_cell(row, field, forms, url, large=True))


def _stored_features(frame: Array, facts: list[tuple[str, str]]) -> str:
    """The features of a record in the order of the file, and fields that no message has."""
    payload, stated = (
        frame.data[FrameHeader.BYTES : -FrameHeader.FOOTER_BYTES],
        int.from_bytes(frame[-FrameHeader.FOOTER_BYTES :].tobytes(), "little"),
    )
    crc = crc32c(payload)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    verdict = "good" if masked == stated else f"does not match: the payload has {masked:08x}"
    facts.append(("Checksum", f"{stated:08x}, {verdict}"))
    schema = EmbeddedSchema.content_of(frame, check_crc=False)
    facts += [] if schema is None else [("Embedded schema", byte_size(len(schema)))]
    try:
        rows = list(_features(payload))
    except (ValueError, IndexError):
        rows = []
    if not rows:
        start = bytes(payload[:_HEAD])
        return element("details", element("summary", "The record's bytes") + bytes_cell(start, "", large=True))
    cells = "".join(element("tr", "".join(element("td", cell) for cell in row)) for row in rows[:_MOST_FEATURES])
    head = "".join(element("th", name, scope="col") for name in ("Feature", "Kind", "Values", "Bytes"))
    body = element("table", f"<thead><tr>{head}</tr></thead><tbody>{cells}</tbody>")
    return element("details", element("summary", f"As stored: {counted(len(rows), 'feature')}") + body)


_MOST_FEATURES, _HEAD = 1000, 4096  # features, and bytes of a record that has none, that are shown
_KINDS = {1: "bytes", 2: "float", 3: "int64"}
_MESSAGES = {1: "features", 2: "feature lists"}


def _features(payload: memoryview) -> list[list[str]]:
    """A row for each feature of an Example or a SequenceExample, and for each field of another number."""
    rows = []
    for field, value in fields_of(payload):
        if field not in _MESSAGES or not isinstance(value, memoryview):
            rows.append([f"field {field}", "unknown field", "", _extent(value)])
            continue
        for _, entry in fields_of(value):
            parts = dict(fields_of(entry)) if isinstance(entry, memoryview) else {}
            name, feature = parts.get(1, b""), parts.get(2, b"")
            steps = [step for _, step in fields_of(feature)] if field == 2 else [feature]
            kinds = Counter(_KINDS.get(kind, f"field {kind}") for step in steps for kind, _ in fields_of(step))
            counts = [_count(values, kind) for step in steps for kind, values in fields_of(step)]
            words = counted(len(steps), "step") if field == 2 else f"{sum(counts):,}" if counts else "none"
            rows.append([text(bytes(name), 200) or "(empty)", ", ".join(kinds) or "no kind", words, _extent(feature)])
    return rows


def _extent(value: Any) -> str:
    return f"{len(value):,}" if isinstance(value, memoryview) else ""


def _count(values: Any, kind: int) -> int:
    fields = fields_of(values)
    if kind == 1:
        return len(fields)
    size = sum(len(part) for _, part in fields if isinstance(part, memoryview))
    unpacked = sum(not isinstance(part, memoryview) for _, part in fields)
    if kind == 2:
        return unpacked + size // 4
    return unpacked + sum(byte < 128 for _, part in fields if isinstance(part, memoryview) for byte in part)


# ---- the values of a column


def summary_page(job: Summary) -> str:
    """The values of a column: how many there are, and a histogram or the most frequent ones."""
    if job.error:
        return element("p", text(job.error, 500), class_="broken")
    parts = [element("p", f"Of {job.words or f'{job.rows:,} rows so far'}.", class_="note")]
    if job.nulls:
        parts.append(element("p", f"{job.nulls:,} of {job.rows:,} are null."))
    if job.has_numbers:
        numbers = job.numbers.result()
        drawn = numbers.histogram
        if drawn is not None:
            parts.append(histogram_chart([drawn], numbers.maximum or 0.0))
            named = [("mean", numbers.mean), ("deviation", numbers.deviation), ("zeros", numbers.zeros)]
            parts.append(element("p", ", ".join(f"{name} {number(value)}" for name, value in named), class_="note"))
    if job.values and not (job.has_numbers and len(job.values) > 12):
        total = sum(job.values.values())
        top = job.values.most_common(12)
        parts.append(value_bars([(value_text(text_if_any(v)), [(count, count / total)]) for v, count in top]))
        distinct = f"{'more than ' if job.has_more else ''}{len(job.values):,} distinct values"
        parts.append(element("p", distinct, class_="note"))
    return "".join(parts)
