"""The one policy for errors that end a read: `on_error`.

"raise" raises the error after the records before it; "stop" ends the read there with a warning. A fault in the frames
goes through `tfrecord_io.read.chunks.block_walker.BlockWalker.fail` first, where a read could resume after the damage.
"""

from __future__ import annotations

from tfrecord_io.errors import StoppedEarlyWarning, warn


def end_read(error: Exception, on_error: object, cause: BaseException | None = None) -> str:
    """End a read at `error`: raise it, or warn and return its text."""
    if on_error == "raise":
        if cause is not None:
            raise error from cause
        raise error
    warn(f"reading stopped early: {error}", StoppedEarlyWarning)
    return str(error)
