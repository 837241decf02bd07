"""Which errors are retried, and how they are reported."""

from __future__ import annotations

import errno
import traceback
from typing import Any

import pytest

from limited import set_limits
from tfrecord_io.base import LIMITS
from tfrecord_io.store.filesystem.os_errors import raise_os_errors, replaced_error, to_os_error
from tfrecord_io.store.filesystem.retries import is_transient, pauses, retry


class OfALibrary(Exception):
    """Like those of aiohttp and gcsfs, which are not OSErrors."""

    def __init__(self, status: Any = None) -> None:
        super().__init__("of a library")
        self.status = status


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, backoff_seconds=0.0001)


@pytest.mark.fault(62)
@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        TimeoutError(),
        OSError(errno.EBUSY, "SlowDown"),
        OSError("unknown reason"),
        EOFError(),
        OfALibrary(),
        OfALibrary(503),
        OfALibrary("429"),
    ],
)
def test_transient_errors_are_retried(error: Exception) -> None:
    assert is_transient(error)
    calls = iter([error, error, None])
    seen = []

    def call() -> str:
        seen.append(1)
        if (raised := next(calls)) is not None:
            raise raised
        return "done"

    assert retry(call) == "done"
    assert len(seen) == 3


@pytest.mark.parametrize(
    "error",
    [
        PermissionError(),
        FileNotFoundError(),
        replaced_error("p"),
        OSError(errno.EINVAL, "x"),
        TypeError(),
        OfALibrary(403),
    ],
)
def test_permanent_errors_are_not_retried(error: Exception) -> None:
    assert not is_transient(error)
    seen = []

    def call() -> None:
        seen.append(1)
        raise error

    with pytest.raises(type(error)):
        retry(call)
    assert len(seen) == 1


def test_number_of_tries_is_limited_and_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    waits = list(pauses())
    assert len(waits) == LIMITS.tries
    assert waits[-1] is None
    between = [wait for wait in waits if wait is not None]
    assert between == sorted(between)
    assert sum(between) < 5


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (PermissionError("Forbidden"), PermissionError, "Forbidden"),
        (FileNotFoundError("bucket/key"), FileNotFoundError, "] No such file or directory: 's3://bucket/key'"),
        (NotADirectoryError(errno.ENOTDIR, "bucket/key/"), NotADirectoryError, "] Not a directory: 's3://bucket/key'"),
        (FileNotFoundError("https://storage.googleapis.com/b/o"), FileNotFoundError, "there is no such bucket or file"),
        (TimeoutError(), TimeoutError, "TimeoutError"),
        (OSError(errno.EBUSY, "SlowDown"), OSError, "SlowDown"),
        (OfALibrary(), OSError, "OfALibrary: of a library"),
        (OfALibrary(403), PermissionError, "of a library"),
    ],
)
def test_errors_of_libraries_become_oserror_with_the_path(error: Exception, kind: type[OSError], text: str) -> None:
    converted = to_os_error(error, "s3://bucket/key")
    assert isinstance(converted, kind)
    assert converted.filename == "s3://bucket/key"
    assert converted.errno is not None
    assert text in str(converted)
    assert converted.__cause__ is error
    assert to_os_error(converted, "other") is converted
    with pytest.raises(kind, match=text), raise_os_errors("s3://bucket/key"):
        raise error


def test_programming_errors_are_raised_unchanged() -> None:
    with pytest.raises(TypeError, match="as it was"), raise_os_errors("p"):
        raise TypeError("as it was")


def test_missing_credentials_say_where_they_come_from() -> None:
    class NoCredentialsError(Exception):
        """As botocore names it."""

    error = to_os_error(NoCredentialsError("Unable to locate credentials"), "s3://b/a")
    assert isinstance(error, PermissionError)
    assert "Unable to locate credentials; configure them as for the store's own tools, or pass storage" in str(error)


def test_messages_of_libraries_show_no_secrets() -> None:
    """Some have a part of a URL; the error that has it is not shown as a cause, either."""
    error = OSError("Max retries exceeded with url: /info?alt=json&access_token=qz (Caused by: refused)")
    converted = to_os_error(error, "https://user:qz@host/a?sig=qz")
    assert str(converted).startswith(
        "[Errno 5] Max retries exceeded with url: /info?alt=json&access_token=… (Caused by"
    )
    assert "qz" not in "".join(traceback.format_exception(converted))
    assert converted.filename == "https://user:qz@host/a?sig=qz"
    other = OSError("refused")
    assert to_os_error(other, "s3://bucket/a").__cause__ is other


def test_an_error_may_be_among_its_own_causes() -> None:
    error, cause = RuntimeError("failed"), RuntimeError("before")
    error.__context__, cause.__context__ = cause, error
    assert to_os_error(error, "s3://b/a").__cause__ is error
