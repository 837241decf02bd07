"""What a reader has read so far, and what it left out.

"raise" raises the error after the records before it; "stop" ends the read there with a warning. With "skip" or a
callable, `tfrecord_io.read.chunks.recovery` goes on behind damage; what comes here then is not about damage, or was not
accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tfrecord_io.display import Report, Summary, byte_size, counted
from tfrecord_io.errors import StoppedEarlyWarning, printable, warn
from tfrecord_io.options import stops
from tfrecord_io.read.chunks.recovery import SkippedRegions


@dataclass(repr=False)
class ReadReport(Report):
    """What a reader has read so far; it prints as a line, and a table of what was left out.

    Attributes
    ----------
    records, bytes : int
        Rows delivered, and uncompressed bytes of the records read.
    files : int
        Files opened.
    schema_source : str
        "schema=", "embedded", "features.json", "companions" (companion features make bytes tensors) or "inferred".
    stopped : str or None
        Why reading ended early, with ``on_error="stop"``.
    skipped : sequence of SkippedRegion
        What was left out, with ``on_error="skip"`` or a callable: the first 1,000 regions in the order of the files.
        ``skipped.total`` is the number of all of them, and ``skipped.bytes`` the sum of their sizes.
    """

    records: int = 0
    bytes: int = 0
    files: int = 0
    schema_source: str = "inferred"
    stopped: str | None = None
    skipped: SkippedRegions = field(default_factory=SkippedRegions)

    def _summary(self) -> Summary:
        amounts = f"{counted(self.records, 'record')} of {counted(self.files, 'file')}, {byte_size(self.bytes)}"
        rows = [
            (
                printable(region.path),
                f"{region.records_before:,}",
                "" if region.begin is None else f"{region.begin:,}",
                "" if region.end is None else f"{region.end:,}",
                printable(region.reason),
            )
            for region in self.skipped
        ]
        lines = [self.skipped.summary()] if self.skipped.total else []
        lines += [f"Stopped early: {printable(self.stopped)}"] if self.stopped is not None else []
        title = f"Read {amounts}, schema {self.schema_source}"
        return Summary(title, ("file", "records before", "begin", "end", "left out because"), rows, lines)


def end_read(error: Exception, on_error: object) -> str:
    """End a read at `error`: raise it, or warn and return its text."""
    if not stops(on_error):
        raise error
    warn(f"reading stopped early: {error}", StoppedEarlyWarning)
    return str(error)
