"""What is tried again, and what people are told."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from tfrecord_io.storage.filesystem import errors as failures
from tfrecord_io.storage.filesystem.errors import (
    is_transient,
    pauses,
    raise_os_errors,
    replaced_error,
    retry,
    to_os_error,
)


class OfALibrary(Exception):
    """As aiohttp's and gcsfs', which are no OSErrors."""

    def __init__(self, status: Any = None) -> None:
        super().__init__("of a library")
        self.status = status


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "_BACKOFF", 0.0001)


@pytest.mark.fault(62)
@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        TimeoutError(),
        OSError(errno.EBUSY, "SlowDown"),
        OSError("nobody knows"),
        EOFError(),
        OfALibrary(),
        OfALibrary(503),
        OfALibrary("429"),
    ],
)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
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
def test_what_will_not_pass_is_not(error: Exception) -> None:
    assert not is_transient(error)
    seen = []

    def call() -> None:
        seen.append(1)
        raise error

    with pytest.raises(type(error)):
        retry(call)
    assert len(seen) == 1


def test_tries_are_few_and_pauses_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    waits = list(pauses())
    assert len(waits) == failures.TRIES
    assert waits[-1] is None
    between = [wait for wait in waits if wait is not None]
    assert between == sorted(between)
    assert sum(between) < 5


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (PermissionError("Forbidden"), PermissionError, "Forbidden"),
        (FileNotFoundError("bucket/key"), FileNotFoundError, "bucket/key"),
        (TimeoutError(), TimeoutError, "TimeoutError"),
        (OSError(errno.EBUSY, "SlowDown"), OSError, "SlowDown"),
        (OfALibrary(), OSError, "OfALibrary: of a library"),
        (OfALibrary(403), PermissionError, "of a library"),
    ],
)
def test_what_libraries_raise_is_told_as_an_oserror_with_the_path(
    error: Exception, kind: type[OSError], text: str
) -> None:
    told = to_os_error(error, "s3://bucket/key")
    assert isinstance(told, kind)
    assert told.filename == "s3://bucket/key"
    assert told.errno is not None
    assert text in str(told)
    assert told.__cause__ is error
    assert to_os_error(told, "other") is told
    with pytest.raises(kind, match=text), raise_os_errors("s3://bucket/key"):
        raise error


def test_mistakes_in_a_program_are_not_worded_anew() -> None:
    with pytest.raises(TypeError, match="as it was"), raise_os_errors("p"):
        raise TypeError("as it was")
