"""Masked values and nulls inside arrays are refused or become nulls; the number behind a mask is never stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import tfrecord_io as tfr
from tfrecord_io.bytes.format.missing_values import NestedValues
from tfrecord_io.columns.arrow.input.masked_cells import unmask_cells
from tfrecord_io.columns.arrow.input.tensor_cast import unmasked_rows

PARTLY = np.ma.masked_array([1, 2, 3], [False, True, False])
WHOLE = np.ma.masked_array([4, 5, 6], True)
PLAIN = np.ma.masked_array([7, 8, 9])

masked_arrays = nps.array_shapes(max_dims=2, max_side=3).flatmap(
    lambda shape: st.builds(np.ma.masked_array, nps.arrays("i8", shape), nps.arrays("?", shape))
)


@given(st.recursive(masked_arrays | st.integers() | st.none(), lambda inner: st.lists(inner, max_size=3)))
def test_a_masked_array_is_none_or_refused(cell: Any) -> None:
    def leaves(value: Any) -> list[Any]:
        return [leaf for item in value for leaf in leaves(item)] if isinstance(value, list) else [value]

    arrays = [leaf for leaf in leaves(cell) if isinstance(leaf, np.ma.MaskedArray)]
    partly = [array for array in arrays if array.mask.any() and not array.mask.all()]
    assert NestedValues([cell]).has_missing == any(array.mask.any() for array in arrays)
    if partly:
        with pytest.raises(tfr.errors.EncodeError, match="part of its array is masked") as caught:
            unmask_cells([None, cell])
        assert caught.value.record == 1
        return
    found = unmask_cells([cell])
    assert (found is None) == (not arrays)
    for before, after in zip(leaves(cell), leaves(found[0] if found else cell), strict=True):
        if isinstance(before, np.ma.MaskedArray):
            assert after is None if before.mask.any() else np.array_equal(after, before.data)
        else:
            assert after is before


FORMS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda cells: {"a": cells},
    "rows": lambda cells: [{"a": cell, "b": 1} for cell in cells],
    "frame": lambda cells: pd.DataFrame({"a": cells}),
    "series": lambda cells: {"a": pd.Series(cells)},
    "structs": lambda cells: {"a": [{"x": cell} for cell in cells]},
}


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_masked_arrays(form: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    with pytest.raises(tfr.errors.EncodeError, match="part of its array is masked") as caught:
        tfr.write_tfrecord(FORMS[form]([PLAIN, PARTLY]), path)
    assert (caught.value.feature, caught.value.record) == ("a", 1)
    tfr.write_tfrecord(FORMS[form]([PLAIN, WHOLE]), path)
    column = tfr.read_table(path)["a"].to_pylist()
    column = [row and row["x"] for row in column] if form == "structs" else column
    assert column == [[7, 8, 9], None]


def test_single_masked_values_are_null(tmp_path: Path) -> None:
    tfr.write_tfrecord({"a": [1, np.ma.masked, 3]}, tmp_path / "x.tfrecord")
    assert tfr.read_table(tmp_path / "x.tfrecord")["a"].to_pylist() == [1, None, 3]


def test_masked_objects_are_null(tmp_path: Path) -> None:
    """Also the first one, by which the kind of column is decided."""
    objects = np.ma.masked_array(["a", "b", "c"], [True, False, True], dtype=object)
    for values in (objects, list(objects)):
        tfr.write_tfrecord({"a": values}, tmp_path / "x.tfrecord")
        assert tfr.read_table(tmp_path / "x.tfrecord")["a"].to_pylist() == [None, "b", None]


MISSING = [
    PARTLY,
    WHOLE,
    [PLAIN, PARTLY],
    [1, np.ma.masked],
    pa.array([2**53 + 1, None]),
    pa.chunked_array([[2**53 + 1], [None]]),
    pd.array([2**53 + 1, None], dtype="Int64"),
    pd.Series([2**53 + 1, None], dtype="Int64"),
    pd.Series(["a", None], dtype="string"),
]


@pytest.mark.parametrize("value", MISSING, ids=lambda value: type(value).__name__)
def test_examples_and_tensors_have_no_missing_values(value: Any) -> None:
    with pytest.raises(tfr.errors.EncodeError, match="cannot be missing individually") as caught:
        tfr.encode_example({"a": value})
    assert caught.value.feature == "a"
    with pytest.raises(tfr.errors.EncodeError, match="masked or null"):
        tfr.io.serialize_tensor(value)


@pytest.mark.parametrize("value", [pa.array([2**53 + 1]), pd.array([2**53 + 1], dtype="Int64"), PLAIN + (2**53 - 6)])
def test_arrays_without_missing_values_are_exact(value: Any) -> None:
    assert tfr.decode_example(tfr.encode_example({"a": value}))["a"][0] == 2**53 + 1
    assert tfr.io.parse_tensor(tfr.io.serialize_tensor(value)).reshape(-1)[0] == 2**53 + 1


def test_a_masked_record_array_is_refused_by_its_dtype() -> None:
    records = np.ma.masked_array([(1, 2)], mask=[(1, 0)], dtype=[("x", int), ("y", int)])
    with pytest.raises(tfr.errors.EncodeError, match=r"an array of dtype \[\('x'"):
        tfr.encode_example({"a": records})
    with pytest.raises(tfr.errors.EncodeError, match="part of its array is masked"):
        tfr.write_tfrecord({"a": [records]}, "unused.tfrecord")


def test_arrays_of_objects_may_hold_masked_arrays() -> None:
    objects = np.empty((2, 2), object)
    objects[0, 0], objects[0, 1], objects[1, 1] = WHOLE, 3, "x"
    for cells in ([objects], [None, (objects,)]):
        found = unmask_cells(cells)
        assert found is not None
        rows = found[0] if len(cells) == 1 else found[1][0]
        assert rows[0] == [None, 3]
        assert list(rows[1]) == [None, "x"]
    objects[1, 0] = PARTLY
    with pytest.raises(tfr.errors.EncodeError, match="part of its array is masked") as caught:
        unmask_cells([3, objects])
    assert caught.value.record == 1
    assert unmask_cells([np.array([1, "x"], object), {"x": [2]}]) is None


def test_structs_may_hold_masked_arrays() -> None:
    assert unmask_cells([{"x": 1, "y": [WHOLE]}, None]) == [{"x": 1, "y": [None]}, None]


def test_rows_without_elements_are_not_masked() -> None:
    assert unmasked_rows(np.ma.masked_array(np.empty((2, 0)), np.empty((2, 0), bool))).tolist() == [True, True]
    assert unmasked_rows(np.ma.masked_array([[1], [2]], [[True], [False]])).tolist() == [False, True]


@pytest.mark.parametrize("value", [5, "x", None, np.array([np.nan]), [1, [2]], [], pa.array([1]), pd.Series([1.5])])
def test_values_that_are_not_missing(value: Any) -> None:
    assert NestedValues([value]).has_missing is False


def test_nulls_of_polars_are_counted_by_a_method() -> None:
    polars = pytest.importorskip("polars")
    assert NestedValues([polars.Series([1, None])]).has_missing
    assert not NestedValues([polars.Series([1, 2])]).has_missing


def test_values_of_a_masked_column_are_plain() -> None:
    found = unmask_cells(np.ma.masked_array([1, 2], [True, False]))
    assert found == [None, 2]
    assert type(found[1]) is int


@pytest.mark.parametrize("cell", [WHOLE, 3], ids=["masked", "plain"])
def test_values_are_nested_120_levels_deep_at_most(cell: Any) -> None:
    cells = [cell]
    for _ in range(120):
        cells = [cells]
    assert NestedValues(cells).holds_masked == (cell is WHOLE)
    with pytest.raises(tfr.errors.EncodeError, match="nested more than 120 levels deep"):
        _ = NestedValues([cells]).holds_masked
