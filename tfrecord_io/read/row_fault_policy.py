"""Decide how a `Reader` treats rows that do not fit their target: arrays, or images.

A value may fit its column, and yet no array, so its record is found to be damaged only after the reader. `on_error=`
decides on it as on any other damage: a `RowFaultPolicy` leaves the row out, or ends the read.

Tests: tests/rows/arrays/test_read_arrays.py, tests/rows/arrays/test_read_arrays_out_arrays.py and
tests/apps/adapters/test_hf.py.
"""

from __future__ import annotations

from tfrecord_io.base import OnDamage
from tfrecord_io.columns import RowFault
from tfrecord_io.read.chunks.recovery import fitting_parts
from tfrecord_io.read.reader import Reader


class RowFaultPolicy:
    """The policy of `on_error` for rows that were delivered; without a reader, each fault ends the read.

    It takes the warning of left-out records over from the reader, as there may be more of them: call
    `warn_of_left_out` at the end.
    """

    fitting_parts = staticmethod(fitting_parts)

    def __init__(self, reader: Reader | None, on_error: object) -> None:
        self._reader, self._on_error = reader, on_error
        self.first_row = 0  # of the rows that faults count from, among all that the reader delivered
        if reader is not None:
            reader.warns_of_damage = False

    def leave_out(self, fault: RowFault) -> bool:
        """Leave out the row of a fault, if that may be; it counts as skipped."""
        if self._reader is None or not self._reader.goes_on:
            return False
        return self._reader.leave_out(self._renumber(fault))

    def end(self, fault: RowFault, records_intact: int | None = None) -> None:
        """End the read at the row of a fault: raise its error, or warn, as `on_error` says."""
        fault = self._renumber(fault)
        error = fault.to_error(None, None) if self._reader is None else self._reader.row_error(fault)
        error.records_intact = records_intact
        OnDamage.of(self._on_error).end_read(error)

    def warn_of_left_out(self) -> None:
        """Warn of the records that were left out, by the reader or here."""
        if self._reader is not None:
            self._reader.report.warn_of_skipped()

    def _renumber(self, fault: RowFault) -> RowFault:
        return fault.renumber(self.first_row + fault.row)
