"""Batches as an Arrow C stream whose consumer gets the text of the exception that stops the reading.

https://arrow.apache.org/docs/format/CStreamInterface.html: an error is passed on as a number and a text. pyarrow puts
the name of its status in front of the text and chooses the number by the exception's class; here all errors are
Invalid.
"""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Iterator
from typing import Self

import pyarrow as pa

from tfrecord_io.closing import ConsumedOnce


class _CStream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = [
        (name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")
    ]


_GetLastError = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class _Batches:
    """Iterates over batches, keeps the text of the error that ends them. The stream owns it; it owns the C callback."""

    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self._batches = batches
        self.text: list[ctypes.Array[ctypes.c_char]] = []
        self.callback: object = None

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except StopIteration:
            raise
        except Exception as error:
            self.text[:] = [ctypes.create_string_buffer(str(error).encode("utf-8", "backslashreplace"))]
            raise pa.ArrowInvalid(str(error)) from error


def export_stream(schema: pa.Schema, batches: Iterator[pa.RecordBatch], requested_schema: object = None) -> object:
    """The capsule that ``__arrow_c_stream__`` returns.

    Parameters
    ----------
    schema : pyarrow.Schema
    batches : iterator of pyarrow.RecordBatch
        Of that schema; the iterator may raise.
    requested_schema : capsule, optional
        The schema that the consumer requests; pyarrow casts to it.
    """
    source = _Batches(batches)
    capsule = pa.RecordBatchReader.from_batches(schema, source).__arrow_c_stream__(requested_schema)
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    stream = _CStream.from_address(address(capsule, b"arrow_array_stream"))
    original, text = _GetLastError(stream.get_last_error), source.text
    source.callback = callback = _GetLastError(lambda this: ctypes.addressof(text[0]) if text else original(this))
    stream.get_last_error = ctypes.cast(callback, ctypes.c_void_p)
    return capsule


class BatchStream(ConsumedOnce[pa.RecordBatch]):
    """Base class of streams of record batches, which can be read once.

    A context manager and an iterator; anything that takes ``__arrow_c_stream__`` can read it.

    Attributes
    ----------
    fault : Exception or None
        The error that stopped the reading; through ``__arrow_c_stream__`` a consumer gets only its text.
    """

    _batches: Iterator[pa.RecordBatch]

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The schema of every batch."""

    def __next__(self) -> pa.RecordBatch:
        return self.read_next_batch()

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch.

        Raises
        ------
        StopIteration
            At the end.
        TFRecordError
            After all rows before the damage were returned.
        """
        return self._take(self._batches)

    def from_start(self) -> Self:
        """This stream, if nothing has been read from it.

        Raises
        ------
        ValueError
            Batches have been read, so the rest would be incomplete.
        """
        self._refuse_used()
        if self._started:
            raise ValueError(f"a part of the {self._word} has been consumed; open it again")
        return self

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return export_stream(self.schema, self.from_start(), requested_schema)
