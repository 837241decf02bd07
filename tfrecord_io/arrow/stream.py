"""Batches as an Arrow C stream whose consumer sees our own sentence where reading stops.

https://arrow.apache.org/docs/format/CStreamInterface.html: an error crosses as a number and a text. pyarrow writes the name
of its status before the text and chooses the number by the exception's class; here all errors are Invalid, and the text is
that of the exception.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pyarrow as pa


class _CStream(ctypes.Structure):
    """struct ArrowArrayStream."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("get_schema", "get_next", "get_last_error", "release", "private_data")]


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
