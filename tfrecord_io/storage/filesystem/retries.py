"""Which requests to remote filesystems are made again after an error, and how often."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from tfrecord_io.options import LIMITS

T = TypeVar("T")

# Errors that a retry cannot fix. Those about arguments, or bugs, are also raised unchanged.
ARGUMENT_ERRORS = (ImportError, LookupError, TypeError, ValueError, AttributeError, NotImplementedError, MemoryError)
_PERMANENT = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
_PERMANENT_ERRNO = {errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENAMETOOLONG, errno.ESTALE}
_TRANSIENT_STATUS = {408, 425, 429}  # timeout, too early, too many requests


def is_transient(error: Exception) -> bool:
    """Whether a retry of the same request may succeed.

    >>> is_transient(ConnectionResetError()), is_transient(PermissionError("Forbidden"))
    (True, False)
    """
    if isinstance(error, (*_PERMANENT, *ARGUMENT_ERRORS)) or getattr(error, "errno", None) in _PERMANENT_ERRNO:
        return False
    status = http_status(error)
    return status is None or status >= 500 or status in _TRANSIENT_STATUS


def http_status(error: Exception) -> int | None:
    """The HTTP status of an error of aiohttp or gcsfs."""
    status = getattr(error, "status", None) or getattr(error, "code", None)
    return int(status) if isinstance(status, int | str) and str(status).isdigit() and 400 <= int(status) < 600 else None


def pauses() -> Iterator[float | None]:
    """For each try, the seconds to wait if it fails; None for the last."""
    for i in range(LIMITS.tries - 1):
        yield LIMITS.backoff_seconds * 2**i
    yield None


def retry(call: Callable[[], T]) -> T:
    """Make a call; repeat it after transient errors."""
    for pause in pauses():
        try:
            return call()
        except Exception as error:  # of any library
            if pause is None or not is_transient(error):
                raise
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")
