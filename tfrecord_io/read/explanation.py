"""Explain a read: the files to open and the columns to decode, with the reasons.

`explain_scan` takes a scan and returns an `Explanation`; no record is decoded.

Tests: tests/laws/test_explain_laws.py and tests/apps/test_lazy_dataset.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal

from tfrecord_io.base import Report, Summary, byte_size, counted, printable
from tfrecord_io.read.chunks.chunk_reader import reads_on
from tfrecord_io.read.index.picked_records import PickedSource
from tfrecord_io.read.index_search import reason_not_to_search, search_indexes
from tfrecord_io.read.row_filter import RowFilter
from tfrecord_io.read.scan import Scan
from tfrecord_io.store import SourcePrefetcher, Sources

_OF_INDEX = "column index"
_OF_OFFSET = "offset, by the column index"


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FilePlan:
    """How a file, or a piece of one, is read.

    Attributes
    ----------
    path : str
    read : {"whole", "records", "index", "left out"}
        "records": only those that a column index names. "index": its column index instead of the file.
    why : str
        The condition on folders, or the index, that leaves out the file or other records; empty for a whole file.
    records : int or None
        The number of records that are read; None if unknown.
    bytes : int or None
        Of a file that is read whole: its size, or that of the piece.
    """

    path: str
    read: Literal["whole", "records", "index", "left out"]
    why: str = ""
    records: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True, weakref_slot=True)
class FilterPlan:
    """Where a part of the filter is applied.

    Attributes
    ----------
    condition : str
    applied : {"folders", "decoding", "rows"}
        "folders": before any file is opened. "decoding": its columns are decoded first, and the others of records that
        pass. "rows": to decoded rows.
    """

    condition: str
    applied: Literal["folders", "decoding", "rows"]


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Report):
    """The files, columns and filters that a read will open and decode; made by `Dataset.explain`.

    Attributes
    ----------
    files : tuple of FilePlan
        In the order of reading, those that are left out included.
    columns : tuple of str
        That are decoded.
    filters : tuple of FilterPlan
        The parts of the filter, all of which a row meets.
    index : str
        Whether column indexes are used, and why not.
    rows : str
        The offset and the limit, if there are any.
    requests : tuple of int or None
        The least and the greatest number of requests to a store for the content of files; None for local files.
    """

    files: tuple[FilePlan, ...]
    columns: tuple[str, ...]
    filters: tuple[FilterPlan, ...]
    index: str
    rows: str
    requests: tuple[int, int] | None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _summary(self) -> Summary:
        read = [file for file in self.files if file.read not in ("index", "left out")]
        rows = [_row([*group]) for _, group in groupby(self.files, attrgetter("read", "why"))]
        lines = [f"decodes {counted(len(self.columns), 'column')}: {', '.join(map(printable, self.columns))}"]
        lines += [f"filter on {_PLACES[part.applied]}: {part.condition}" for part in self.filters]
        lines += [f"column indexes: {self.index}"]
        lines += [self.rows] if self.rows else []
        if self.requests is not None:
            low, high = self.requests
            lines.append(f"requests: {low:,}" + (f" to {high:,}" if high > low else ""))
        title = f"reads {len(read):,} of {counted(len(self.files), 'file')}"
        return Summary(title, ("files", "read", "why", "first"), rows, lines, paths=("first",))


_PLACES = {"folders": "folders", "decoding": "columns that are decoded first", "rows": "decoded rows"}


def _row(files: Sequence[FilePlan]) -> tuple[str, ...]:
    """The row of the summary for files in succession that are read alike, for the same reason."""
    first, counts = files[0], [file.records for file in files if file.records is not None]
    sizes = [file.bytes for file in files if file.bytes is not None]
    what = first.read if first.read != "records" else counted(sum(counts), "record")
    if first.read == "whole" and len(sizes) == len(files):
        what += f", {byte_size(sum(sizes))}"
    return f"{len(files):,}", what, printable(first.why), printable(first.path, None)


def explain_scan(scan: Scan) -> Explanation:
    """The plan of opening a scan; column indexes are searched for it."""
    needed = scan.prune_files().with_required_columns()
    indexed = search_indexes(needed, needed.row_filter)
    opened = needed if indexed is None else indexed
    reason = reason_not_to_search(needed, needed.row_filter)
    use = f"not searched: {reason}" if reason else "none would save reading" if indexed is None else "used"
    order = {path: number for number, path in enumerate(scan.files)}
    files = [*_left_out_by_folders(scan, needed), *_read(needed, opened)]
    return Explanation(
        tuple(sorted(files, key=lambda file: order[file.path])),
        tuple(opened.features.names),
        filters=tuple(_filters(opened)),
        index=use,
        rows=scan.row_range,
        requests=_requests(opened),
    )


def _left_out_by_folders(scan: Scan, needed: Scan) -> Iterator[FilePlan]:
    """The pruned files, each with the first part of the condition that leaves it out."""
    kept = set(map(id, needed.sources))
    left_out = Sources(source for source in scan.sources if id(source) not in kept)
    if scan.row_filter is None or not left_out:
        return
    reasons: dict[Any, str] = {}
    for part in scan.row_filter.words.conjuncts:
        possible = {source.partitions for source in RowFilter(part, part.columns).possible(left_out, scan.partitions)}
        without = (source.partitions for source in left_out if source.partitions not in possible)
        reasons = dict.fromkeys(without, part.text) | reasons
    for source in left_out:
        yield FilePlan(source.path, "left out", reasons.get(source.partitions, scan.row_filter.words.text))


def _read(needed: Scan, opened: Scan) -> Iterator[FilePlan]:
    """The files to open, and the files that column indexes leave out."""
    picked = opened.picked
    if picked is None:
        picked = tuple(PickedSource(source, None, None) for source in opened.sources)
    paths = set[str]()
    for file in picked:
        source = file.source
        if source is None:
            plan = FilePlan(file.path, "left out", _OF_INDEX, 0)
        elif file.values is not None:
            plan = FilePlan(source.path, "index", _OF_INDEX, file.count)
        elif file.records is not None:
            plan = FilePlan(source.path, "records", _OF_INDEX, len(file.records))
        else:
            records = file.count
            if records is None and source.shard is not None and source.span is None:
                records = source.shard.records
            plan = FilePlan(source.path, "whole", why="", records=records, bytes=source.size)
        paths.add(plan.path)
        yield plan
    for source in needed.sources:
        if source.path not in paths:
            yield FilePlan(source.path, "left out", _OF_OFFSET, 0)


def _filters(opened: Scan) -> Iterator[FilterPlan]:
    """The parts of the filter, each with the first place where it can be applied."""
    if opened.row_filter is None:
        return
    early = opened.early_filter(rereads=False)
    first = () if early is None else early.row_filter.words.conjuncts
    texts = {part.text for part in first}
    for part in opened.row_filter.words.conjuncts:
        is_of_folders = bool(part.columns) and set(part.columns) <= set(opened.partitions.names)
        applied: Literal["folders", "decoding", "rows"] = "decoding" if part.text in texts else "rows"
        yield FilterPlan(part.text, "folders" if is_of_folders else applied)


def _requests(opened: Scan) -> tuple[int, int] | None:
    """The least and the greatest number of requests to stores, None without one; one that is made again counts once."""
    of_index = {id(file.source) for file in opened.picked or () if file.values is not None}
    read = [source for source in opened.sources if id(source) not in of_index and source.remote is not None]
    sizes = [source.size for source in read if source.size is not None]
    frames = {file.frames for file in opened.picked or () if file.frames is not None}
    chosen = sum(picked.requests for picked in frames)
    if not sizes and not chosen:
        return None

    bounds = [SourcePrefetcher.requests_for(size, stream=reads_on(opened.decode_selection)) for size in sizes]
    return chosen + sum(low for low, _ in bounds), chosen + sum(high for _, high in bounds)
