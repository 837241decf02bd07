"""Errors of temporary files, which have no name of their own."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


@contextmanager
def named_temporary_folder() -> Iterator[None]:
    """Name the folder of temporary files in an error about a full disk that names no file.

    Examples
    --------
    >>> with named_temporary_folder():
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device, for a temporary file in /tmp (TMPDIR names another folder): '/tmp'
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        folder = tempfile.gettempdir()
        text = f"{error.strerror}, for a temporary file in {folder} (TMPDIR names another folder)"
        raise OSError(error.errno, text, folder) from error
