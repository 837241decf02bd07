"""The threads that tfrecord_io has started and that have not ended."""

from __future__ import annotations

from tfrecord_io import background
from tfrecord_io.background import BackgroundThread


def running(name: str = "") -> list[BackgroundThread]:
    """Those whose name begins like this."""
    return [thread for thread in list(background._running) if thread.name.startswith(f"tfrecord_io {name}")]
