"""Arrays of each dtype as records made by hand (raw bytes, shape and dtype), and a fixture that reads them back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import blobs, example, int64s, written
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.tensor_values import column_to_cells

DTYPES = [
    *(
        "bool",
        "int8",
        "uint16",
        "int32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
        *(name for name, row in Dtype.TABLE.items() if row.is_extension),
    ),
    *("S1", "S10", "U3", "datetime64[D]", "datetime64[us]", "timedelta64[ms]", "datetime64[as]"),
]


def dtype_of(name: str) -> np.dtype[Any]:
    return Dtype.of_name(name).dtype


def cells(table: pa.Table, name: str = "x") -> list[np.ndarray | None]:
    field = table.schema.field(name)
    return [cell for chunk in table[name].chunks for cell in column_to_cells(chunk, field)]


def assert_same(found: list[Any], expected: list[np.ndarray | None]) -> None:
    """Dtype, shape and bits."""
    assert all(cell is None or type(cell) is np.ndarray for cell in found)
    assert [None if cell is None else (Dtype.name_of(cell.dtype), cell.shape) for cell in found] == [
        None if array is None else (Dtype.name_of(array.dtype), array.shape) for array in expected
    ]
    assert [None if cell is None else cell.tobytes() for cell in found] == [
        None if array is None else array.tobytes() for array in expected
    ]


# ---- folding


@pytest.fixture
def read(tmp_path: Path, engine: str) -> Iterator[Any]:
    """Read payloads, whole or as a stream by a sample of so many records."""

    def read(payloads: list[bytes], sample: int | None = None, **keywords: Any) -> pa.Table:
        path = written(tmp_path / "x.tfrecord", payloads)
        if sample is None:
            table = read_by(tfr.read_table, path, **keywords)
        else:
            with read_by(tfr.open_reader, path, sample=sample, **keywords) as reader:
                table = reader.read_all()
        table.validate(full=True)
        return table

    return read


MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


def companions(array: np.ndarray) -> dict[str, bytes]:
    """The three features of an array by their suffixes, put together by hand."""
    shape = int64s(*array.shape) if array.ndim else b"\x1a\x00"  # an Int64List without values
    return {"": blobs(array.tobytes()), "/shape": shape, "/dtype": blobs(Dtype.name_of(array.dtype).encode())}


def record(arrays: Mapping[str, np.ndarray | None], **features: bytes) -> bytes:
    """An Example of arrays; None is left out."""
    found = {
        name + suffix: value
        for name, array in arrays.items()
        if array is not None
        for suffix, value in companions(array).items()
    }
    return example(**found, **features)
