"""Batches as an Arrow C stream whose consumer sees our own sentence where reading stops.

https://arrow.apache.org/docs/format/CStreamInterface.html: an error crosses as a number and a text. pyarrow writes the name
of its status before the text and chooses the number by the exception's class; here all errors are Invalid, and the text is
that of the exception.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import ClassVar, Self

import pyarrow as pa


class _CStream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = [
        (name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")
    ]


_GetLastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _Told:
    """Iterates over batches and keeps the text of the error that ends them. The stream owns it, and it the C callback."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.said: list[ctypes.Array[ctypes.c_char]] = []
        self.callback: object = None

    def __iter__(self) -> _Told:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except StopIteration:
            raise
        except Exception as error:
            self.said[:] = [ctypes.create_string_buffer(str(error).encode("utf-8", "backslashreplace"))]
            raise pa.ArrowInvalid(str(error)) from error


def export_stream(schema: pa.Schema, batches: Iterator[pa.RecordBatch], requested_schema: object = None) -> object:
    """The capsule that ``__arrow_c_stream__`` gives.

    Parameters
    ----------
    schema : pyarrow.Schema
    batches : iterator of pyarrow.RecordBatch
        Of that schema; it may raise.
    requested_schema : capsule, optional
        What the consumer would like; pyarrow casts to it.
    """
    told = _Told(batches)
    capsule = pa.RecordBatchReader.from_batches(schema, told).__arrow_c_stream__(requested_schema)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    stream = _CStream.from_address(address(capsule, b"arrow_array_stream"))
    pyarrows, said = _GetLastError(stream.get_last_error), told.said
    told.callback = callback = _GetLastError(lambda this: ctypes.addressof(said[0]) if said else pyarrows(this))
    stream.get_last_error = ctypes.cast(callback, ctypes.c_void_p)
    return capsule


class BatchStream(ABC):
    """Record batches that are given once: what all streams of ours have in common.

    A context manager and an iterator; anything that takes ``__arrow_c_stream__`` reads from it.

    Attributes
    ----------
    fault : Exception or None
        What stopped the reading; across ``__arrow_c_stream__`` a consumer sees only its text.
    """

    _word: ClassVar[str]  # what messages call it
    _batches: Iterator[pa.RecordBatch]

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self._closed = self._started = self._ended = False

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """Of every batch."""

    @abstractmethod
    def close(self) -> None:
        """Close the files; reading is over."""

    def _end(self) -> None:
        """No batch comes any more."""
        self._ended = True

    def _fail(self, error: Exception) -> None:
        """Nor after an error, which is told again to whoever asks again."""
        self.fault = error
        self._end()

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._refuse_used()
        return self

    def __next__(self) -> pa.RecordBatch:
        return self.read_next_batch()

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch.

        Raises
        ------
        StopIteration
            At the end.
        TFRecordError
            After all rows before the damage were given.
        """
        if self._closed:
            raise ValueError(f"the {self._word} is closed")
        if self.fault is not None:
            raise self.fault
        self._started = True
        try:
            return next(self._batches)
        except StopIteration:
            self._end()
            raise
        except Exception as error:
            self._fail(error)
            raise

    def from_start(self) -> Self:
        """The same, of which nothing was read.

        Raises
        ------
        ValueError
            Something was: what would follow is not the whole.
        """
        self._refuse_used()
        if self._started:
            raise ValueError(f"a part of the {self._word} has been consumed; open it again")
        return self

    def _refuse_used(self) -> None:
        if self._closed:
            raise ValueError(f"the {self._word} is closed")
        if self._ended:
            raise ValueError(f"the {self._word} has been consumed; open it again")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return export_stream(self.schema, self.from_start(), requested_schema)
