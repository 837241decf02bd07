"""`os.fsync` that does not wait for the disk: no test can see what a power failure would leave.

What is synced, and in which order, is the subject of tests that replace `os.fsync` by what counts or fails, and of the
simulated disk, which forgets what was not synced. A sync of the real disk takes some milliseconds, and each file takes
two. In a storm, and in processes that tests start, files are synced.
"""

from __future__ import annotations

import os
import stat

_fsync = os.fsync


def fsync(descriptor: int) -> None:
    """Fail for what is not a file or a folder, as `os.fsync` does."""
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        _fsync(descriptor)
