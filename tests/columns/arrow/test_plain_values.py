"""Arrays of plain values are those that ``pyarrow.array`` makes, and no value imports pandas."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.columns.arrow.plain_values import array_of_numbers, array_of_values

PLAIN = [st.integers(-(2**65), 2**65), st.floats(), st.booleans(), st.text(st.characters()), st.binary()]


@given(st.sampled_from(PLAIN).flatmap(lambda plain: st.lists(plain | st.none(), max_size=5)))
def test_values_make_the_array_of_pyarrow(values: list[Any]) -> None:
    array = array_of_values(values)
    if array is None:
        return
    array.validate(full=True)
    expected = pa.array(values)
    assert array.type == expected.type
    assert array.null_count == expected.null_count
    assert repr(array.to_pylist()) == repr(expected.to_pylist())  # −0.0 and NaN as well


@pytest.mark.parametrize("values", [[1, 2.0], [True, 1], [], [None], [2**63], ["\ud800"], [[1]], [np.int8(1)]])
def test_other_values_are_left_to_pyarrow(values: list[Any]) -> None:
    assert array_of_values(values) is None


@pytest.mark.parametrize("dtype", ["int8", "uint64", "float16", "float64", "bool"])
def test_numbers_make_the_array_of_pyarrow(dtype: str) -> None:
    values = np.arange(20).astype(dtype)[::3]
    array = array_of_numbers(values)
    assert array is not None
    array.validate(full=True)
    assert array.equals(pa.array(values))


@pytest.mark.parametrize("dtype", ["S1", "M8[s]", "complex64", ">i4"])
def test_other_dtypes_are_left_to_pyarrow(dtype: str) -> None:
    assert array_of_numbers(np.zeros(2, dtype)) is None


def test_a_first_write_of_a_dict_does_not_import_pandas(tmp_path: Any) -> None:
    data = "{'a': [1, None], 'b': ['x', 'y'], 'c': np.arange(2.0, dtype='float32'), 'd': np.ones((2, 3), 'uint8')}"
    program = (
        "import sys, numpy as np, tfrecord_io as tfr\n"
        f"tfr.write_tfrecord({data}, {str(tmp_path / 'a.tfrecord')!r})\n"
        "assert not {'pandas', 'fsspec'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
