"""`join_numbers`: columns of batches as arrays, alike on any number of threads."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limited import set_limits
from tfrecord_io.bytes.engine.numpy_output import NumberColumn

DTYPES = ["int8", "uint16", "int32", "float32", "int64", "uint64", "float64"]


@st.composite
def columns_of_batches(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Batches of one column for each dtype, sliced, with runs of nulls; null slots have values of their own."""
    batches = []
    for _ in range(draw(st.integers(0, 3))):
        rows, rng = draw(st.integers(0, 200)), np.random.default_rng(draw(st.integers(0, 99)))
        share = draw(st.sampled_from([0.0, 0.05, 0.5, 1.0]))
        arrays = [
            pa.array(rng.integers(1, 100, rows).astype(dtype), mask=np.array(rng.random(rows) < share))
            for dtype in DTYPES
        ]
        first = draw(st.integers(0, rows))
        batch = pa.record_batch(arrays, names=DTYPES).slice(first)
        batches.append(batch.slice(0, draw(st.integers(0, len(batch)))))
    return batches


@pytest.mark.parametrize("threads", [1, 2, 8])
@given(batches=columns_of_batches(), with_masks=st.booleans())
def test_columns_are_joined(batches: list[pa.RecordBatch], threads: int, with_masks: bool) -> None:
    rows = sum(map(len, batches))
    columns = []
    for index, dtype in enumerate(DTYPES):
        has_nulls = any(batch.column(index).null_count for batch in batches)
        missing = np.full(rows, 77, np.uint8).view(np.bool_) if has_nulls or with_masks else None
        columns.append(NumberColumn(index, np.full(rows, 9).astype(dtype), missing))
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, joined_bytes=0)
        NumberColumn.join(batches, columns, threads)
    for column, dtype in zip(columns, DTYPES, strict=True):
        expected = [value for batch in batches for value in batch[dtype].to_pylist()]
        assert column.values.tolist() == [0 if value is None else value for value in expected]
        assert column.missing is None or column.missing.tolist() == [value is None for value in expected]


@pytest.mark.parametrize("nulls", ["of any value", "of zeros", "none"])
def test_nulls_of_one_batch_become_zeros_in_its_memory(nulls: str) -> None:
    values, valid = np.arange(1, 201), np.arange(200) % 3 != 0
    if nulls == "of zeros":
        values[~valid] = 0
    if nulls == "none":
        valid[:] = True
    bits = None if nulls == "none" else pa.py_buffer(np.packbits(valid, bitorder="little"))
    batch = pa.record_batch([pa.Array.from_buffers(pa.int64(), 200, [bits, pa.py_buffer(values)])], names=["x"])
    missing = np.empty(200, np.bool_)
    NumberColumn.join([batch], [NumberColumn(0, values, missing)])
    assert values.tolist() == np.where(valid, np.arange(1, 201), 0).tolist()
    assert (missing == ~valid).all()
    assert batch.column(0).null_count == np.count_nonzero(~valid)
