"""The columns that a pyarrow expression refers to, without a schema to evaluate it with.

pyarrow has no call for it, but pickles an expression as an Arrow schema, whose metadata has an entry for each step of
the expression. Several entries have the same key, so that only the C data interface gives all of them:
https://arrow.apache.org/docs/format/CDataInterface.html.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.compute as pc


class _CSchema(ctypes.Structure):
    """The first members of struct ArrowSchema."""

    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p)]


def expression_columns(expression: pc.Expression) -> tuple[str, ...]:
    """The names of the columns of an expression, each once; for a field of a struct, that of the struct.

    >>> import pyarrow.compute as pc
    >>> expression_columns((pc.field("b") > 1) & pc.field("a", "x").is_valid())
    ('b', 'a')
    """
    names = []
    entries = iter(expression_entries(expression)[0])
    for key, value in entries:
        if key == b"nested_field_ref":
            parts = [next(entries)[1] for _ in range(int(value))]
            names.append(parts[0])
        elif key == b"field_ref":
            names.append(value)
    return tuple(name.decode() for name in dict.fromkeys(names))


def expression_entries(expression: pc.Expression) -> tuple[list[tuple[bytes, bytes]], pa.RecordBatch]:
    """The steps of an expression, a call and its ``end`` around its arguments, and a batch of its literals."""
    _, (pickled, *_) = expression.__reduce__()
    with pa.ipc.open_file(pickled) as file:
        return list(_metadata(file.schema)), file.get_batch(0)


def _metadata(schema: pa.Schema) -> Iterator[tuple[bytes, bytes]]:
    """The entries of the metadata of a schema, also those with the same key."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = _CSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    if not address:
        return
    count, address = ctypes.c_int32.from_address(address).value, address + 4
    for _ in range(count):
        entry = []
        for _ in range(2):
            size = ctypes.c_int32.from_address(address).value
            entry.append(ctypes.string_at(address + 4, size))
            address += 4 + size
        yield entry[0], entry[1]
    del capsule  # which the metadata belongs to
