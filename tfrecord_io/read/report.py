"""What a reader has read so far, and what it left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from tfrecord_io.read.chunks.recovery import SkippedRegions


@dataclass
class ReadReport:
    """What a reader has read so far.

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
