"""Errors of remote filesystems, as OSError."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from tfrecord_io.base import LIMITS, did_you_mean, hide_secrets, printable, secret_url
from tfrecord_io.errors import ReplacedError
from tfrecord_io.store.filesystem.retries import (
    ARGUMENT_ERRORS,
    http_status,
    is_about_credentials,
    is_transient,
    log_retry,
    pauses,
    retry,
)

T = TypeVar("T")

_UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")
_NO_OPTIONS = ("self", "args", "kwargs")
_OF_INNER = ("target_options", "fo")  # of a filesystem around another: that one's
_ERRNO = {
    FileNotFoundError: errno.ENOENT,
    FileExistsError: errno.EEXIST,
    PermissionError: errno.EACCES,
    TimeoutError: errno.ETIMEDOUT,
}
_AZURE_ERRNO = {
    **dict.fromkeys(("BlobNotFound", "ContainerNotFound", "ResourceNotFound"), errno.ENOENT),
    **dict.fromkeys(("BlobAlreadyExists", "ConditionNotMet", "PendingCopyOperation"), errno.EEXIST),
}


def azure_code(error: BaseException) -> str | None:
    """The code of an error that Azure answered."""
    code = getattr(error, "error_code", None)
    return None if code is None else str(getattr(code, "value", code))


def to_os_error(error: Exception, path: str, *, retried: bool = False) -> OSError:
    """Convert any exception of a remote filesystem to an OSError with errno, message and path.

    Its cause is the exception, unless a traceback would show secrets of a URL by that.
    """
    if type(error).__name__ == "FileExpired":  # of s3fs's own file object
        return replaced_error(path)
    refused = http_status(error) in (401, 403) or is_about_credentials(error)
    if isinstance(error, OSError):
        if error.filename is not None and error.errno is not None and not retried:
            error.filename = secret_url(error.filename)
            return error
        default = errno.EACCES if refused else errno.EIO
        number = error.errno or next((n for kind, n in _ERRNO.items() if isinstance(error, kind)), default)
        if number == errno.EBUSY:  # as s3fs says of SlowDown: here it says that another writer was first
            number = errno.EIO
        text = error.strerror or str(error) or type(error).__name__
        if path.rstrip("/").endswith(text.rstrip("/")):  # fsspec's errors often have the path alone
            text = os.strerror(number)
        if isinstance(error, FileNotFoundError) and "://" in text:  # gcsfs has the address of its request there
            text = "there is no such bucket or file"
    else:
        code = azure_code(error)
        number = errno.EACCES if refused else _AZURE_ERRNO.get(code or "", errno.EIO)
        text = f"{type(error).__name__}: {error}"
        if code is not None:  # further lines have ids and XML
            text = text.partition("\n")[0]
    text = hide_secrets(text)
    text = f"{text} (tried {LIMITS.tries} times)" if retried else text
    if any("Credential" in kind.__name__ for kind in type(error).__mro__):
        advice = "configure them as for the store's own tools, or pass storage_options="
        text += f"; {advice}, with anon=true for a public bucket of S3"
    converted = OSError(number, text, secret_url(path))
    converted.__cause__ = None if _shows_secrets(error) else error
    return converted


def _shows_secrets(error: BaseException | None) -> bool:
    """True if a message in an error's chain of causes has secrets of URLs."""
    seen = set[int]()  # an error that is raised again may be among its own causes
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if hide_secrets(text := str(error)) != text:
            return True
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return False


async def request_async(request: Callable[[], Awaitable[T]], path: str) -> T:
    """Make a request, again after transient errors; other errors are OSErrors that name `path`."""
    import asyncio  # as slow to import as fsspec, and only needed for remote files

    for pause in pauses():
        try:
            return await request()
        except ARGUMENT_ERRORS:
            raise
        except Exception as error:  # of any library
            if pause is None or not is_transient(error):
                failure = to_os_error(error, path, retried=pause is None)  # has the cause, or is the error itself
                raise failure from failure.__cause__
            log_retry(error, pause, path)
        await asyncio.sleep(pause)
    raise AssertionError("the last try returns or raises")


def refused_option(
    error: BaseException, options: Mapping[str, Any], path: str, known: Iterable[str] = ()
) -> ValueError | None:
    """The error for an unknown option of the storage; None if `error` is about something else.

    `known` are names of options, of which one may have been meant. No message shows a value.
    """
    unexpected = _UNEXPECTED.search(str(error)) if isinstance(error, TypeError) else None
    where = None if unexpected is None else next(_places(options, unexpected[1]), None)
    if where is not None:
        names = [] if "." in where else [name for name in known if name not in _NO_OPTIONS]
        advice = f"; {did_you_mean(where, names, lists_names=True)}" if names else ""
        return ValueError(f"'{printable(path)}': storage_options= has no option '{printable(where)}'{advice}")
    wrong = [name for name, value in options.items() if name.endswith("_kwargs") and not isinstance(value, dict | None)]
    if wrong and isinstance(error, TypeError | AttributeError | ValueError):
        return ValueError(f"'{printable(path)}': '{printable(wrong[0])}' of storage_options= is a dict of options")
    return None


def _places(options: Mapping[str, Any], name: str) -> Iterator[str]:
    """Where nested options have a name: ``client_kwargs.name``."""
    for key, value in options.items():
        if key == name:
            yield str(key)
        elif isinstance(value, Mapping):
            prefix = "" if key in _OF_INNER else f"{key}."
            yield from (f"{prefix}{place}" for place in _places(value, name))


def replaced_error(path: str, what: str = "file") -> ReplacedError:
    """The error for a file or dataset replaced since the lookup."""
    text = f"the {what} was replaced while it was read; read it again (a Dataset: what its refresh() returns)"
    return ReplacedError(errno.ESTALE, text, secret_url(path))


def stale_error(path: str) -> ReplacedError:
    """The error for a file of which a cache has another version."""
    text = "the cache has a copy of another version of the file: remove the copy, or read the URL without the cache"
    return ReplacedError(errno.ESTALE, text, secret_url(path))


@contextmanager
def raise_os_errors(path: str) -> Iterator[None]:
    """Convert exceptions of a remote filesystem to OSError; errors about arguments pass unchanged."""
    try:
        yield
    except ARGUMENT_ERRORS as error:
        if isinstance(error, ValueError) and _shows_secrets(error):  # aiohttp says so of an address
            raise ValueError(f"'{printable(path)}': {type(error).__name__}") from None
        raise
    except Exception as error:
        converted = to_os_error(error, path)
        if converted is error:
            raise
        raise converted from converted.__cause__


def request_blocking(call: Callable[[], T], path: str) -> T:
    """Make a request by a call that waits for its answer; otherwise as `request_async`."""
    with raise_os_errors(path):
        try:
            return retry(call, path)
        except Exception as error:  # of any library
            if not is_transient(error):
                raise
            failure = to_os_error(error, path, retried=True)
            raise failure from failure.__cause__
