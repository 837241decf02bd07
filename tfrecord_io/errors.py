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
from typing import Any, Self

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
    of_other_format : bool
        The file is not a TFRecord file at all, so that no record follows.
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
        of_other_format: bool = False,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.of_memory = of_memory
        self.of_argument = of_argument
        self.of_image = of_image
        self.of_other_format = of_other_format
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
        from tfrecord_io.base import hide_secrets, printable  # `import tfrecord_io` does not need them

        text = self._problem()
        if hint:
            text += f"; {printable(hint, 400)}"
        return hide_secrets(text, shorten=True)

    def _problem(self) -> str:
        """Say what is wrong, and where."""
        from tfrecord_io.base import printable

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
        from tfrecord_io.base import printable

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
