"""Which requests to remote filesystems are made again after an error, and how often.

A request is made again by one layer alone. botocore, gcsfs, Azure's library and pyarrow's stores do so themselves, as
often as their options say, with pauses that grow and vary. A request that they gave up is not begun again here, nor by
s3fs around botocore: the numbers of tries would multiply.
"""

from __future__ import annotations

import copy
import errno
import inspect
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any, TypeVar

from tfrecord_io.base import LIMITS, logger, printable

T = TypeVar("T")

# Errors that a retry cannot fix. Those about arguments, or bugs, are also raised unchanged.
ARGUMENT_ERRORS = (ImportError, LookupError, TypeError, ValueError, AttributeError, NotImplementedError, MemoryError)
_PERMANENT = (FileNotFoundError, FileExistsError, PermissionError, IsADirectoryError, NotADirectoryError)
_PERMANENT_ERRNO = {errno.EINVAL, errno.ENOSYS, errno.EPERM, errno.ENAMETOOLONG, errno.ESTALE}
_S3_CONNECTIONS = 64  # of a filesystem that is made here; s3fs has 10
_STATUS = ("status", "code", "status_code")
_TRANSIENT_STATUS = {408, 425, 429}  # timeout, too early, too many requests
_CREDENTIALS = re.compile("Credential|Token|Auth")  # in names of errors of the libraries of stores
# The variable that counts the tries in a module that makes requests again, and its value in the first one: of errors of
# connections, nothing else says so.
_COUNTERS = {"gcsfs.retry": ("retry", 0), "aiobotocore.endpoint": ("attempts", 1)}
_CLIENT = "aiobotocore.client"  # its functions have the client as `self`
_TWIN = "_twin_of_tfrecord_io"  # an attribute of a filesystem
# The most requests for one; botocore's pauses are of 0 to 1 s, 2 s, … 16 s.
_S3_RETRIES = {"total_max_attempts": 6, "mode": "legacy"}


def is_transient(error: Exception) -> bool:
    """True if the same request may succeed later, and the store's library has not retried yet.

    >>> is_transient(ConnectionResetError()), is_transient(PermissionError("Forbidden"))
    (True, False)
    """
    if isinstance(error, (*_PERMANENT, *ARGUMENT_ERRORS)) or getattr(error, "errno", None) in _PERMANENT_ERRNO:
        return False
    if is_about_credentials(error) or _was_tried_again(error) or type(error).__name__ == "error_perm":  # of ftplib
        return False
    status = http_status(error)
    return status is None or status >= 500 or status in _TRANSIENT_STATUS


def is_about_credentials(error: BaseException) -> bool:
    """True if credentials are missing or expired; judged by class names, as several libraries have such classes.

    >>> class NoCredentialsError(Exception): ...
    >>> is_about_credentials(NoCredentialsError())
    True
    """
    return any(_CREDENTIALS.search(kind.__name__) for kind in type(error).__mro__)


def _was_tried_again(error: BaseException) -> bool:
    """True if the library of a store made the request again that ended with this error, or was told not to.

    Nothing is guessed: botocore states the number of tries in what a store has answered, Azure's library makes each
    request again that can succeed, and so do the stores of pyarrow, whose errors are raised in pyarrow itself. Of a
    connection that failed, and in gcsfs, the number is nowhere but in the variable by which their loops count, which
    the traceback holds, as it holds the client of S3 with the most tries. Where a release names it otherwise, requests
    are made again here, too, with the same results; tests count them.
    """
    cause: BaseException | None = error
    while cause is not None:
        if cause is not error and _is_handled(cause):  # as what is removed after an error of another request
            return False
        if any(kind.__name__ == "AzureError" for kind in type(cause).__mro__):
            return True
        answer = getattr(cause, "response", None)
        if isinstance(answer, dict) and answer.get("ResponseMetadata", {}).get("RetryAttempts"):
            return True
        trace, module = cause.__traceback__, ""
        while trace is not None:
            module = str(trace.tb_frame.f_globals.get("__name__"))
            if module in _COUNTERS:
                counter, first = _COUNTERS[module]
                if trace.tb_frame.f_locals.get(counter, first) > first:
                    return True
            if module == _CLIENT and _is_to_try_once(trace.tb_frame.f_locals.get("self")):
                return True
            trace = trace.tb_next
        if module.partition(".")[0] == "pyarrow":
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _is_to_try_once(client: Any) -> bool:
    """True if a client of botocore has the option to make no request again."""
    retries = getattr(getattr(getattr(client, "meta", None), "config", None), "retries", None)
    return isinstance(retries, dict) and retries.get("total_max_attempts") == 1


def _is_handled(error: BaseException) -> bool:
    """True if a function that still runs has caught the error."""
    caller = None if error.__traceback__ is None else error.__traceback__.tb_frame
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame is not caller:
        frame = frame.f_back
    return frame is not None


def s3_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of s3fs, unless they say otherwise: botocore makes requests again more often, with more connections.

    botocore changes the dicts that it gets; those of the caller stay as they are. Options of the bucket that a chained
    URL leads to are below its protocol.
    """
    config = options.get("config_kwargs") or {}
    if not isinstance(config, dict):
        return dict(options)
    ours = {"retries": _S3_RETRIES, "max_pool_connections": _S3_CONNECTIONS}
    return {**options, "config_kwargs": copy.deepcopy({**ours, **config})}


def disable_s3fs_retries(fsspec: Any) -> Any:
    """A filesystem whose requests to S3 only botocore makes again, as s3fs has no option for its own loop around it.

    Other filesystems are returned as they are. One of s3fs, and one around it, is not changed, as others may use it:
    a twin shares its connections.
    """
    attributes: dict[str, Any] = object.__getattribute__(fsspec, "__dict__")  # a cache shows those of what it is around
    if _TWIN in attributes:
        return attributes[_TWIN]
    changed: dict[str, Any] = {}
    if type(fsspec).__module__.partition(".")[0] == "s3fs" and getattr(fsspec, "retries", 1) != 1:
        changed = {"retries": 1}
    elif hasattr(inner := attributes.get("fs"), "storage_options"):
        single = disable_s3fs_retries(inner)
        changed = {} if single is inner else {"fs": single}
    if not changed:
        return fsspec
    kind = type(fsspec)
    twin = object.__new__(kind)
    # fsspec gives an object functions that wait for its coroutines: those of the original are left out.
    copied = {k: v for k, v in attributes.items() if not inspect.iscoroutinefunction(getattr(kind, f"_{k}", None))}
    # The original is kept, as it closes the connections when it goes.
    object.__getattribute__(twin, "__dict__").update({**copied, **changed, "_original": fsspec})
    if kind.async_impl:
        from fsspec.asyn import mirror_sync_methods

        mirror_sync_methods(twin)
    attributes[_TWIN] = twin
    return twin


def http_status(error: Exception) -> int | None:
    """The HTTP status of an error of aiohttp, gcsfs or Azure's library; gcsfs's 403 is an OSError with a text alone."""
    if isinstance(error, OSError) and error.errno is None and str(error).startswith("Forbidden: "):
        return 403
    status = next((value for name in _STATUS if (value := getattr(error, name, None))), None)
    return int(status) if isinstance(status, int | str) and str(status).isdigit() and 400 <= int(status) < 600 else None


def pauses() -> Iterator[float | None]:
    """For each try, the seconds to wait if it fails; None for the last.

    They vary, so that many clients that were refused together do not return together.
    """
    import random

    for i in range(LIMITS.tries - 1):
        yield LIMITS.backoff_seconds * 2**i * random.uniform(0.7, 1.3)
        _count(1)
    yield None


_counter: ContextVar[Callable[[int], None] | None] = ContextVar("retries", default=None)


@contextmanager
def counting_retries(count: Callable[[int], None]) -> Iterator[None]:
    """Call `count` with the number of retries of each request begun in the block by this thread."""
    token = _counter.set(count)
    try:
        yield
    finally:
        _counter.reset(token)


def log_retry(error: Exception, pause: float, path: str = "") -> None:
    """Log that a request is made again after a pause."""
    where = f"{printable(path)}: " if path else ""
    logger.debug("%srequest made again in %.2f s, after %s: %s", where, pause, type(error).__name__, printable(error))


def note_retries(answer: Mapping[str, Any]) -> None:
    """Count how often botocore made a request again before this answer."""
    retries = answer.get("ResponseMetadata", {}).get("RetryAttempts", 0)
    if retries:
        logger.debug("request made again by botocore: %d times", retries)
    _count(retries)


def _count(made: int) -> None:
    counter = _counter.get()
    if counter is not None and made:
        counter(made)


def retry(call: Callable[[], T], path: str = "") -> T:
    """Make a call; repeat it after transient errors, which are logged with the path."""
    for pause in pauses():
        try:
            return call()
        except Exception as error:  # of any library
            if pause is None or not is_transient(error):
                raise
            log_retry(error, pause, path)
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")
