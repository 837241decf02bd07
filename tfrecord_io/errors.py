"""Every error and warning of tfrecord_io.

::

    TFRecordError
    ├── CorruptRecordError (ValueError)      framing: a CRC or a length does not fit
    │   └── TruncatedRecordError (EOFError)  the file ends inside a record
    ├── DecodeError (ValueError)             a payload is not a valid record
    │   └── FeatureTypeError (TypeError)     a feature has another type than declared
    ├── EncodeError (ValueError)             a value cannot be stored in a record
    ├── SchemaError (ValueError)             records or files contradict a schema
    │   └── FeatureNotFoundError (KeyError)  a named feature does not exist
    ├── CompressionError (OSError)           a compressed stream is damaged
    └── MissingDependencyError (ImportError) a package, or the compiled engine, is missing
    ReplacedError (OSError)                  a file or dataset was replaced while it was read: read it again

Each `TFRecordError` has these attributes: ``path``, ``record`` (index in its file), ``offset`` (first byte of the
record's header in the uncompressed stream), ``feature``, ``reason``, ``expected``, ``got`` and ``records_intact``; None
if unknown. Its message states the same facts, and what to do.
"""

from __future__ import annotations

import errno
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self, TypeVar

__all__ = [
    "CompressionError",
    "CorruptRecordError",
    "DamagedDataWarning",
    "DecodeError",
    "EncodeError",
    "FeatureNotFoundError",
    "FeatureTypeError",
    "MissingDependencyError",
    "PrecisionWarning",
    "ReplacedError",
    "SchemaError",
    "SchemaWarning",
    "StaleIndexWarning",
    "StoppedEarlyWarning",
    "TFRecordError",
    "TruncatedRecordError",
]


def __dir__() -> list[str]:
    return __all__


# What to do about damage.
SALVAGE = "keep the intact records with tfr.salvage(path, target)"
SALVAGE_CLI = "keep the intact records with tfr salvage SOURCE TARGET"
ON_ERROR = f"see on_error=, or {SALVAGE}"
ON_ERROR_CLI = f"see --on-error, or {SALVAGE_CLI}"

_MESSAGE_BYTES = 1024
_PACKAGE = __name__.partition(".")[0]


# URLs in a text, or urllib3's part of a URL; not paths of the local disk, where names may have all these signs.
# The patterns are compiled when needed.
_URL = r"(?:(?<![\w./+-])(?!file:|local:)[A-Za-z][A-Za-z0-9+.-]*://|(?<=exceeded with url: )/)[^\s\"<>]+"
_PASSWORD = r"(?<=://)([^/?#:]*:)[^/?#]+(?=@)"
_SECRET = (
    r"(?i)([?&;#](?:[\w.-]*(?:signature|token|secret|passw|credential|access_?key|api_?key)[\w.-]*"
    r"|(?:[\w.-]*[._-])?(?:sig|key|pwd|pass|auth|authorization|code|jwt))=)[^\s&;#'\"]*[^\s&;#'\".:,)\]}]"
)


def hide_secrets(text: str) -> str:
    """Hide passwords in URLs, and signatures and tokens in their queries; paths stay as they are.

    >>> hide_secrets("https://user:x@host/a.tfrecord?v=1&sig=x: not found"), hide_secrets("a?sig=b")
    ('https://user:…@host/a.tfrecord?v=1&sig=…: not found', 'a?sig=b')
    """
    if not ("@" in text or "?" in text or "#" in text):
        return text
    return re.sub(_URL, lambda url: re.sub(_SECRET, r"\1…", re.sub(_PASSWORD, r"\1…", url[0])), text)


class SecretURL(str):
    """A URL with secrets: programs have it as it is, and no message of an OSError, and no ``repr``, shows these."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(hide_secrets(self))


def secret_url(path: str) -> str:
    """The ``filename`` for an OSError: the path, as a `SecretURL` if it is a URL with secrets."""
    return path if hide_secrets(path) == path else SecretURL(path)


def printable(text: object, limit: int = 200) -> str:
    """Hide the secrets of URLs, escape control characters and shorten to `limit` characters, for any message.

    >>> printable("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    raw = hide_secrets(text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text))
    cut = raw if len(raw) <= limit else raw[:limit] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def within_message_limit(text: str) -> str:
    """Hide the secrets of URLs in a message, and shorten it to 1,024 bytes of UTF-8."""
    text = hide_secrets(text)
    encoded = text.encode("utf-8", "backslashreplace")
    if len(encoded) <= _MESSAGE_BYTES:
        return text
    return encoded[: _MESSAGE_BYTES - len("…".encode())].decode("utf-8", "ignore") + "…"


class TFRecordError(Exception):
    """Base of all errors of tfrecord_io.

    Attributes
    ----------
    reason : str
        What is wrong, in a clause.
    path : str or None
    record : int or None
        The index of the record in its file.
    offset : int or None
        The first byte of the record's header, in the uncompressed file.
    feature : str or None
        The feature, or the column.
    expected, got : object
        What was expected and what was found, where that can be stated.
    records_intact : int or None
        The number of records before the damage.
    hint : str or None
        What the user can do about it, in the words of Python. ``advice`` is another name of it.
    hint_cli : str or None
        The same in the words of the command ``tfr``, where they differ.
    of_memory : bool
        The record may be intact, but `Limits.expansion_bytes` leaves no room for it.
    of_argument : bool
        An argument is wrong, whatever the records are.
    of_image : bool
        The record is intact, but an image in it cannot be decoded: ``verify(images="full")`` finds it.
    region : SkippedRegion or None
        What is left out if reading goes on, where a callable passed as ``on_error`` decides about that.
    """

    def __init__(
        self,
        reason: str,
        *,
        path: str | None = None,
        record: int | None = None,
        offset: int | None = None,
        feature: str | None = None,
        expected: object = None,
        got: object = None,
        records_intact: int | None = None,
        hint: str | None = None,
        hint_cli: str | None = None,
        advice: str | None = None,
        of_memory: bool = False,
        of_argument: bool = False,
        of_image: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.of_memory = of_memory
        self.of_argument = of_argument
        self.of_image = of_image
        self.path = path
        self.record = record
        self.offset = offset
        self.feature = feature
        self.expected = expected
        self.got = got
        self.records_intact = records_intact
        self.hint = hint if advice is None else advice
        self.hint_cli = hint_cli
        self.region: Any = None  # the class is of recovery, on a floor above

    @property
    def advice(self) -> str | None:
        """Another name of `hint`."""
        return self.hint

    @advice.setter
    def advice(self, text: str | None) -> None:
        self.set_hint(text)

    def set_hint(self, hint: str | None, hint_cli: str | None = None) -> None:
        """Replace the hint, and the one for the command."""
        self.hint, self.hint_cli = hint, hint_cli

    def __str__(self) -> str:
        return self._join_hint(self.hint)

    def text_cli(self) -> str:
        """Return the message in the words of the command ``tfr``."""
        return self._join_hint(self.hint if self.hint_cli is None else self.hint_cli)

    def _join_hint(self, hint: str | None) -> str:
        text = self._problem()
        if hint:
            text += f"; {printable(hint, 400)}"
        return within_message_limit(text)

    def _problem(self) -> str:
        """Say what is wrong, and where."""
        where = []
        if self.path is not None:
            where.append(printable(self.path))
        if self.record is not None:
            at = "" if self.offset is None else f" at byte {self.offset}"
            where.append(f"record {self.record}{at}")
        elif self.offset is not None:
            where.append(f"byte {self.offset}")
        text = ": ".join([*where, self.detail])
        if self.records_intact:
            count = self.records_intact
            text += "; the record before it is intact" if count == 1 else f"; the {count} records before it are intact"
        return text

    @property
    def detail(self) -> str:
        """The reason, after the feature that it is about."""
        reason = self.reason
        if "\nOriginal Traceback (most recent call last):\n" in reason:  # PyTorch's, of an error in a worker process
            first, *_, last = reason.strip().splitlines()
            reason = f"{first.rstrip('.')}: {last}"
        reason = printable(reason, 600)
        return reason if self.feature is None else f"feature '{printable(self.feature)}': {reason}"

    def count_from_piece(self, begin: int) -> Self:
        """State that the record is counted from the start of a piece of a file, at byte `begin`."""
        if begin and self.record is not None:
            self.reason = f"record {self.record} after byte {begin}: {self.reason}"
            self.record = None
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.reason,), {**self.__dict__, "path": self.path}  # ImportError has a slot for `path`


class CorruptRecordError(TFRecordError, ValueError):
    """A record's length or checksum is wrong, or the file is not a TFRecord file."""


class TruncatedRecordError(CorruptRecordError, EOFError):
    """The file ends inside a record."""


class DecodeError(TFRecordError, ValueError):
    """A record's payload is not a valid message, or a value does not fit its column."""


class FeatureTypeError(DecodeError, TypeError):
    """A feature has another type than declared for its column."""


class EncodeError(TFRecordError, ValueError):
    """A value or a column cannot be stored in a TFRecord file."""


class SchemaError(TFRecordError, ValueError):
    """Records, files or arguments contradict each other about names or types."""


class FeatureNotFoundError(SchemaError, KeyError):
    """A selected or required feature does not exist."""


class CompressionError(TFRecordError, OSError):
    """A compressed stream is damaged, or not compressed as declared."""


class MissingDependencyError(TFRecordError, ImportError):
    """An optional package is needed, or the compiled engine cannot be loaded; the message says how to get it."""


@contextmanager
def needs(
    extra: str,
    what: str = "",
    *,
    requirement: str = "",
    hint: str = "",
    hint_cli: str = "",
    path: str | None = None,
    feature: str | None = None,
) -> Iterator[None]:
    """Turn the ImportError of an import in its block into one that names the extra which installs the library.

    `what` needs the library, if that is not the caller as a whole; `requirement` is installed instead of an extra of
    this package. The hints are other ways out, besides the installation.

    >>> with needs("polars"):
    ...     import absent_module
    Traceback (most recent call last):
    tfrecord_io.errors.MissingDependencyError: absent_module cannot be imported (No module named 'absent_module'); ...
    """
    try:
        yield
    except MissingDependencyError:  # of what is imported
        raise
    except ImportError as error:
        raise missing_error(
            error, extra, what, requirement=requirement, hint=hint, hint_cli=hint_cli, path=path, feature=feature
        ) from error


def missing_error(
    error: ImportError,
    extra: str,
    what: str = "",
    *,
    requirement: str = "",
    hint: str = "",
    hint_cli: str = "",
    path: str | None = None,
    feature: str | None = None,
) -> MissingDependencyError:
    """The error of `needs` for an import that has failed."""
    name = error.name or getattr(error.__cause__, "name", None) or requirement or extra
    library = name.partition(".")[0]
    reason = f"{what} needs {library}, which cannot be imported" if what else f"{library} cannot be imported"
    of_extra = f"[{extra.replace('_', '-')}]"
    install = f"pip install '{requirement or _PACKAGE + of_extra}'"
    if not requirement:
        install += f", in a clone '.{of_extra}'"
    hints = [f"{install}; {other}" if other else install for other in (hint, hint_cli or hint)]
    return MissingDependencyError(f"{reason} ({error})", path=path, feature=feature, hint=hints[0], hint_cli=hints[1])


class ReplacedError(OSError):
    """A file or a dataset was replaced or removed while it was read; reading it again reads the new one.

    It is the same for every reader and store. ``errno`` is ESTALE, ``filename`` the file or the manifest.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.errno = errno.ESTALE  # also if it was made again of its text alone, as PyTorch does


class PrecisionWarning(UserWarning):
    """float64 values were rounded to float32, the only float type in a TFRecord."""


class SchemaWarning(UserWarning):
    """An embedded schema could not be used, was found late, or was lost for lack of a record to embed it in; or the
    columns are unknown, as files have no records; or no record has a declared column; or a schema leaves out columns of
    the data to write; or ``record_type="example"`` ignores feature lists; or arrays of a file have times as another
    type, such as without their zone; or soft links of an HDF5 file lead nowhere.
    """


class StaleIndexWarning(UserWarning):
    """An index file next to a file does not match it, and was not used."""


class StoppedEarlyWarning(UserWarning):
    """Reading stopped at damage, because of ``on_error="stop"``."""


class DamagedDataWarning(UserWarning):
    """Damaged parts of files were left out, because of ``on_error="skip"`` or a callable; see the reader's report."""


class Published(str):
    """A remark on an error: what was written can be read all the same. Such an error has it as `published`."""

    __slots__ = ()


class Unconfirmed(Published):
    """A remark that written data can be read, but may be lost at a loss of power."""

    __slots__ = ()


class RecordMemoryError(MemoryError):
    """Not enough memory for a record; the message names its file."""


def undo_after(error: BaseException, undo: Callable[[], object], path: str) -> None:
    """Remove partial output after `error`, which stays the exception raised even if the removal fails."""
    try:
        undo()
    except Exception as second:
        error.add_note(f"'{printable(path)}': removing what was written failed as well: {printable(second)}")


def add_remark(error: BaseException, text: str) -> None:
    """Append a clause to the message of an error of this package or of the system; to another one, add it as a note.

    >>> error = OSError(28, "No space left on device", "a.tfrecord")
    >>> add_remark(error, "the file is published")
    >>> str(error)
    "[Errno 28] No space left on device; the file is published: 'a.tfrecord'"
    """
    if isinstance(text, Published):
        error.published = text  # type: ignore[attr-defined]
    if isinstance(error, TFRecordError):
        error.reason = f"{error.reason}; {text}"
    elif isinstance(error, OSError) and isinstance(error.strerror, str):
        error.strerror = f"{error.strerror}; {text}"
        error.args = (error.errno, error.strerror)  # for pickling
    else:
        error.add_note(text)


E = TypeVar("E", bound=BaseException)


def for_cli(error: E, message: str) -> E:
    """Give an error or a warning of Python the message that the command ``tfr`` shows in place of its own.

    >>> error = for_cli(ValueError("shards=0: expected at least 1"), "--shards 0: expected at least 1")
    >>> error.message_cli
    '--shards 0: expected at least 1'
    """
    error.message_cli = message  # type: ignore[attr-defined]
    return error


def warn(text: str, category: type[Warning], text_cli: str | None = None) -> None:
    """Warn at the line of the caller outside this package, at any depth of calls."""
    warning = category(within_message_limit(text))
    if text_cli is not None:
        for_cli(warning, text_cli)
    warnings.warn(warning, stacklevel=_caller()[1])


def caller_line() -> tuple[str, int]:
    """The file and line of the caller outside this package, at any depth of calls."""
    frame, _ = _caller()
    return frame.f_code.co_filename, frame.f_lineno


def _caller() -> tuple[FrameType, int]:
    """The frame of the caller outside this package, and its level above the caller of this function."""
    level = 0
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame = frame.f_back
        level += 1
    return frame, level
