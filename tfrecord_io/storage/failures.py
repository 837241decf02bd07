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
_NUMBERS = {FileNotFoundError: errno.ENOENT, FileExistsError: errno.EEXIST, PermissionError: errno.EACCES, TimeoutError: errno.ETIMEDOUT}


def may_pass(error: Exception) -> bool:
    """Whether the same request may succeed when it is made again.

    Examples
    --------
    >>> may_pass(ConnectionResetError()), may_pass(PermissionError("Forbidden"))
    (True, False)
    """
    return not isinstance(error, _LASTING) and getattr(error, "errno", None) not in _LASTING_NUMBERS


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
        number, text = errno.EIO, f"{type(error).__name__}: {error}"
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
