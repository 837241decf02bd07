"""What is written as tensors is read as the same tensors: dtype, shape, bits and nulls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tensors_of_arrays import columns
from tfrecord_io.columns.arrow.tensor_values import column_to_cells
from tfrecord_io.testing.tensor_encoding_suite import dtype_of


def bits(cells: Any, name: str) -> list[Any]:
    little = dtype_of(name).newbyteorder("<")
    return [None if cell is None else (cell.shape, np.ascontiguousarray(cell, little).tobytes()) for cell in cells]


@pytest.mark.parametrize("encoding", ["raw", "tensor_proto"])
@given(data=st.data())
def test_tensors_come_back(engine: str, new_folder: Callable[[], Path], encoding: str, data: st.DataObject) -> None:
    """Arrays of two and more dimensions, which become tensors whatever the dtype."""
    tmp_path = new_folder()
    ranks = columns(3).filter(lambda each: all(cell is None or cell.ndim > 1 for cell in each.cells))
    given_ = data.draw(ranks.filter(lambda each: encoding == "raw" or "64[" not in each.name))
    if all(cell is None for cell in given_.cells):
        return
    embed = encoding == "tensor_proto" or data.draw(st.booleans())
    tfr.write_tfrecord({"x": given_.data}, tmp_path / "a", column_encoding={"x": encoding}, embed_schema=embed)
    table = tfr.read_table(tmp_path / "a")
    table.validate(full=True)
    assert table.column_names == ["x"]
    field = table.schema.field("x")
    found = [cell for chunk in table["x"].chunks for cell in column_to_cells(chunk, field)]
    assert bits(found, given_.name) == bits(given_.cells, given_.name)
    assert {cell.dtype for cell in found if cell is not None} <= {dtype_of(given_.name)}
    frame = tfr.read_tfrecord(tmp_path / "a")
    assert bits([None if cell is None else cell for cell in frame["x"]], given_.name) == bits(given_.cells, given_.name)
