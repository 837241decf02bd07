"""What goes wrong with a filesystem behind a network: what may pass, and the OSError that the rest becomes."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

TRIES = 5
_BACKOFF = 0.1  # seconds before the second try; twice as long before each one after it

# Nothing that a second try would mend. Those about arguments, or mistakes of a program, are not worded anew either.
ARGUMENTS = (ImportError, LookupError, TypeError, ValueError, AttributeError, NotImplementedError, MemoryError)
_LASTING = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError, *ARGUMENTS)
_LASTING_NUMBERS = {errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENAMETOOLONG, errno.ESTALE}
_PASSING_STATUS = {408, 425, 429}  # come again later
_NUMBERS = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    PermissionError: errno.EACCES,
    TimeoutError: errno.ETIMEDOUT,
}


def may_pass(error: Exception) -> bool:
    """Whether the same request may succeed when it is made again.

    Examples
    --------
    >>> may_pass(ConnectionResetError()), may_pass(PermissionError("Forbidden"))
    (True, False)
    """
    if isinstance(error, _LASTING) or getattr(error, "errno", None) in _LASTING_NUMBERS:
        return False
    status = _status(error)
    return status is None or status >= 500 or status in _PASSING_STATUS


def _status(error: Exception) -> int | None:
    """What an HTTP server answered, as aiohttp and gcsfs tell it."""
    said = getattr(error, "status", None) or getattr(error, "code", None)
    return int(said) if isinstance(said, int | str) and str(said).isdigit() and 400 <= int(said) < 600 else None


def pauses() -> Iterator[float | None]:
    """For each try, the seconds to wait behind it if it fails; None behind the last."""
    for i in range(TRIES - 1):
        yield _BACKOFF * 2**i
    yield None


def tried_again(call: Callable[[], T]) -> T:
    """Make a call, again if it fails by what may pass."""
    for pause in pauses():
        try:
            return call()
        except Exception as error:  # of whatever library
            if pause is None or not may_pass(error):
                raise
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def to_os_error(error: Exception, path: str, doing: str = "") -> OSError:
    """Word what a library of the network raised as an OSError with number, text and path."""
    if isinstance(error, OSError) and error.filename is not None and error.errno is not None:
        return error
    if isinstance(error, OSError):
        number = error.errno or next((n for kind, n in _NUMBERS.items() if isinstance(error, kind)), errno.EIO)
        text = error.strerror or str(error) or type(error).__name__
    else:
        number = errno.EACCES if _status(error) in (401, 403) else errno.EIO
        text = f"{type(error).__name__}: {error}"
    made = OSError(number, f"{text}{doing}", path)
    made.__cause__ = error
    return made


def replaced(path: str) -> OSError:
    """Word that a file is not the one any more that was opened."""
    return OSError(errno.ESTALE, "the file was replaced or deleted while being read", path)


@contextmanager
def told_as_os_error(path: str) -> Iterator[None]:
    """Let nothing of a network library's own classes out; errors about arguments pass as they are."""
    try:
        yield
    except ARGUMENTS:
        raise
    except Exception as error:
        told = to_os_error(error, path)
        if told is error:
            raise
        raise told from error
