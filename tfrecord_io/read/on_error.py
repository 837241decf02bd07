"""The one policy for errors that end a read: `on_error`.

"raise" raises the error after the records before it; "stop" ends the read there with a warning. With "skip" or a
callable, `tfrecord_io.read.chunks.recovery` goes on behind damage; what comes here then is not about damage, or was not
accepted.
"""

from __future__ import annotations

from tfrecord_io.errors import StoppedEarlyWarning, warn


def end_read(error: Exception, on_error: object) -> str:
    """End a read at `error`: raise it, or warn and return its text."""
    if on_error != "stop":
        raise error
    warn(f"reading stopped early: {error}", StoppedEarlyWarning)
    return str(error)
