"""A region of a file that a read left out.

Tests: tests/read/test_report_collected_regions.py.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SkippedRegion:
    """A damaged part of a file that a reader left out, because of ``on_error="skip"``, ``"collect"`` or a callable.

    Attributes
    ----------
    path : str
        The file.
    begin, end : int or None
        The bytes [begin, end) of the uncompressed file; None if unknown. An unknown end is that of the file.
    reason : str
        What is wrong, in a clause.
    records_before : int
        The number of records before it, which is the index of the first damaged record. Earlier regions count as one
        record each.
    error : str
        The class of the error that ``on_error="raise"`` raises here.
    counted_from : int
        The byte after which `records_before` counts: 0, or where the read of a piece of a file begins.
    """

    path: str
    begin: int | None
    end: int | None
    reason: str
    records_before: int
    error: str
    counted_from: int = 0

    @property
    def bytes(self) -> int | None:
        """The size of the region; None if unknown."""
        return None if self.begin is None or self.end is None else self.end - self.begin

    @property
    def first_record(self) -> int | None:
        """The index in the file of the first damaged record; None if records were counted in a piece of the file."""
        return None if self.counted_from else self.records_before

    @property
    def record_text(self) -> str:
        """The number of the first damaged record, in words."""
        after = f" after byte {self.counted_from}" if self.counted_from else ""
        return f"record {self.records_before}{after}"
