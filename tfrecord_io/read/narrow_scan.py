"""Narrow a scan: to the rows and columns that a call selects, or that a condition leaves.

Tests: tests/read/test_scan_narrowing.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from tfrecord_io.base import LIMITS, ReadOptions, check_integer
from tfrecord_io.columns import Schema
from tfrecord_io.read.call_options import pace_options
from tfrecord_io.read.index_search import search_indexes
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan

if TYPE_CHECKING:
    from tfrecord_io.base import Condition

AnyScan = TypeVar("AnyScan", bound=Scan)


def apply_selection(scan: AnyScan, options: ReadOptions) -> AnyScan:
    """Apply the selection of a call to a dataset, and the size of batches.

    The records of a piece are found now, as training reads its files in another way than `ScanRows.open`.
    """
    scan = scan.align_ranges()
    if options.columns is not None:
        scan = scan.select(options.columns)
    if options.offset:
        scan = skip_rows(scan, options.offset)
    if options.filters is not None:
        scan = apply_filter(scan, options.filters)
    if options.limit is not None:
        scan = scan.limit_rows(options.limit)
    return scan.with_options(**pace_options(options))


def skip_rows(scan: AnyScan, rows: int) -> AnyScan:
    """Skip the first rows; ValueError if the scan has a filter, which may have left out some of them."""
    if scan.row_filter is not None:
        raise ValueError("an offset counts the records of the files, before the filter: call offset() before filter()")
    limit, offset = scan.selection.limit, scan.selection.offset + rows
    offset = check_integer("offset", offset, 0, LIMITS.INT64_MAX)
    return scan.with_selection(offset=offset, limit=None if limit is None else max(0, limit - rows))


def apply_filter(scan: AnyScan, filters: Any) -> AnyScan:
    """Only the rows that meet a condition, and those of earlier calls; null counts as false.

    Parameters
    ----------
    filters : pyarrow.compute.Expression, str, list of tuples, or list of lists of tuples
        ``pc.field("label") == 3`` or, as in pandas, a list of tuples, ``[("label", "==", 3), ("score", ">", 0.5)]``,
        all of which must hold, or a list of such lists, one of which must hold. The operators are ``==``, ``!=``,
        ``<``, ``>``, ``<=``, ``>=``, ``in``, ``not in``, ``between`` (``("n", "between", (1, 5))``), for text
        ``startswith``, for lists ``contains``, and ``("label", "is null")`` and ``is not null``. The same as text is
        ``"label = 3 and n between 1 and 5"``, with ``or``, parentheses and ``DATE '2026-01-31'``. The condition may
        name columns that are not selected. Files in directories such as ``label=3/`` are not opened if they have no
        matching rows.

    Raises
    ------
    FeatureNotFoundError
        No column has that name.
    SchemaError
        The condition does not apply to the type of a column.
    """
    from tfrecord_io.base import condition_of

    condition = condition_of(filters)
    return Scan.filter(_resolve_remaining_types(add_condition_columns(scan, condition), condition), condition)


def _resolve_remaining_types(scan: AnyScan, condition: Condition) -> AnyScan:
    """Resolve the types of a scan from only the files that a condition on folders leaves.

    Only types that are inferred, or that files contradict, are others than before.
    """
    if not (scan.partitions.fields and (scan.resolved.is_inferred or scan.conflicts())) or scan.selection.offset:
        return scan
    from tfrecord_io.read.row_filter import RowFilter

    every = condition if scan.row_filter is None else scan.row_filter.condition & condition
    left = RowFilter(every, every.columns).possible(scan.sources, scan.partitions)
    if not left or len(left) == len(scan.sources) or any(source.span for source in scan.sources):
        return scan
    names = tuple(scan.schema.names)
    planned = _add_absent_columns(_plan_filtered(scan, every), scan)
    planned_names = planned.compiled.schema.names
    selected = names if scan.selected is not None or list(names) != planned_names else None
    return replace(scan, selected=selected, sidecar=None, **_plan_of(planned, scan))


def add_condition_columns(scan: AnyScan, condition: Condition) -> AnyScan:
    """Add the columns of a condition to a scan of the same rows and columns, if the files have them."""
    names = condition.columns
    schema = scan.compiled.schema
    is_limited = _has_types_of_limit(scan)
    if ({*schema.names}.issuperset(names) and not is_limited) or any(source.span for source in scan.sources):
        return scan
    planned = _plan_filtered(scan, condition)
    if is_limited:
        planned = planned if scan.selected is None else _add_absent_columns(planned, scan)
        selected = planned.selected if scan.selected is None else scan.selected
        return replace(scan, selected=selected, sidecar=None, **_plan_of(planned, scan))
    selected, wider = tuple(scan.schema.names), planned.compiled.schema
    if any(wider.field(name) != schema.field(name) for name in selected):  # types from other records
        return scan
    narrow = planned.narrow if scan.narrow is None else scan.narrow
    return replace(scan, selected=selected, sidecar=None, narrow=narrow, **_plan_of(planned, scan))


def _has_types_of_limit(scan: Scan) -> bool:
    """True if the types are inferred from the first rows, of ``limit=``; a filter has others delivered."""
    is_limited = scan.origin is not None and scan.origin.selection.limit is not None
    return is_limited and scan.resolved.is_inferred and scan.row_filter is None


def _plan_filtered(scan: Scan, condition: Condition) -> Scan:
    """Plan the scan again with the columns of a condition."""
    return plan_scan(scan.sources, scan.options, scan.selection._replace(filters=condition), only_sample=True).close()


def _add_absent_columns(planned: Scan, scan: Scan) -> Scan:
    """Add the columns of a scan that no file has which the condition leaves: their values are null."""
    absent = {*scan.schema.names}.difference(planned.compiled.schema.names)
    if not absent:
        return planned
    resolved = planned.resolved
    fields = [field for field in scan.resolved.schema if field.column in absent]
    resolved = replace(
        resolved,
        schema=Schema([*resolved.schema, *fields], resolved.schema.metadata),
        folded=resolved.folded | (scan.resolved.folded & absent),
    )
    return replace(planned, resolved=resolved, compiled=None)  # type: ignore[arg-type]


def _plan_of(planned: Scan, scan: Scan) -> dict[str, Any]:
    """The fields of a scan that decide how columns are read, planned again for the same rows."""
    plan = {name: getattr(planned, name) for name in ("options", "resolved", "partitions", "compiled")}
    return {**plan, "selection": planned.selection._replace(limit=scan.selection.limit)}


def exclude_rows(scan: AnyScan, filters: Any) -> AnyScan:
    """Exclude files, and records of indexed files, that cannot fulfil a condition.

    The caller filters again: rows that fail the condition remain where decoding them takes less time.
    """
    filtered = scan.filter(filters).prune_files()
    assert filtered.row_filter is not None
    if scan.row_filter is not None:  # its opening searches
        return scan.with_sources(filtered.sources, offset=filtered.selection.offset)
    indexed = search_indexes(filtered.with_required_columns(), filtered.row_filter)
    if indexed is not None:
        return scan.with_sources(indexed.sources, offset=indexed.selection.offset)
    if 2 * len(scan.schema) < len(scan.compiled.schema):  # most of the time is spent on the names of the features
        return scan.with_sources(filtered.sources)
    return replace(filtered, row_filter=replace(filtered.row_filter, is_hint=True), may_be_indexed=False)
