"""A selection of columns and rows: two in a row are one read where its order allows that, and an offset is split."""

from __future__ import annotations

import pytest

from tfrecord_io.base import ReadOptions, ScanOptions
from tfrecord_io.base.options.selection import Selection

FILTERS = ReadOptions(filters=[("n", ">", 1)]).selection.filters


def test_options_of_a_scan_have_no_selection() -> None:
    options = ReadOptions(columns="a", filters=[("n", ">", 1)], offset=2, limit=3, threads=4)
    assert options.selection == Selection(("a",), options.filters, 2, 3)
    assert vars(options.of_scan) == vars(ScanOptions(threads=4))
    assert options.selection.choices.keys() == {"columns", "filters", "offset", "limit"}
    assert not any(hasattr(options.of_scan, name) for name in options.selection.choices)


@pytest.mark.parametrize(
    ("first", "later", "both"),
    [
        (Selection.ALL, Selection.ALL, Selection.ALL),
        (Selection.ALL, Selection(("a",), FILTERS, 1, 2), Selection(("a",), FILTERS, 1, 2)),
        (Selection(offset=1), Selection(filters=FILTERS, limit=2), Selection(None, FILTERS, 1, 2)),
        (Selection(("a",), limit=2), Selection.ALL, Selection(("a",), limit=2)),
        (Selection(limit=2), Selection(("a",)), Selection(("a",), limit=2)),
        (Selection(filters=FILTERS), Selection(limit=0), Selection(filters=FILTERS, limit=0)),
        (Selection(limit=2), Selection(filters=FILTERS), None),
        (Selection(filters=FILTERS), Selection(offset=1), None),
        (Selection(limit=2), Selection(limit=2), None),
        (Selection(("a",)), Selection(("a",)), None),
    ],
)
def test_two_selections_are_one_read_in_its_order(first: Selection, later: Selection, both: Selection | None) -> None:
    assert first.then(later) == both


@pytest.mark.parametrize(("on_error", "expected"), [("raise", (5, 0)), ("stop", (0, 5)), ("skip", (0, 5))])
def test_an_offset_skips_records_only_where_all_of_them_count(on_error: str, expected: tuple[int, int]) -> None:
    assert ReadOptions.from_keywords({"on_error": on_error}).damage.split_offset(5) == expected
    assert ScanOptions().damage.split_offset(0) == (0, 0)


def test_an_offset_and_a_limit_make_a_range() -> None:
    assert Selection(offset=1).is_range
    assert Selection(limit=0).is_range
    assert not Selection(("a",), FILTERS).is_range
