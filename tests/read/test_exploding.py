"""One row a step of tables with one row an episode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits

episodes = st.lists(st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=4), max_size=12)


@given(
    lists=episodes,
    type_=st.sampled_from([pa.list_(pa.int64()), pa.large_list(pa.int16())]),
    batch_rows=st.integers(1, 9),
    most=st.integers(1, 9),
    skipped=st.integers(0, 3),
)
def test_steps_are_those_of_the_lists(
    lists: list[Any], type_: pa.DataType, batch_rows: int, most: int, skipped: int
) -> None:
    names = [f"e{i}" for i in range(len(lists))]
    texts = [None if cells is None else [str(cell) for cell in cells] for cells in lists]
    teams = pa.array([name if i % 2 else None for i, name in enumerate(names)], pa.string()).dictionary_encode()
    table = pa.table(
        {
            "id": names,
            "steps/n": pa.array(lists, type_),
            "team": teams,
            "steps/text": pa.array(texts, pa.list_(pa.string())),
        }
    ).slice(skipped)
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, batch_rows=most)
        reader = tfr.explode(table.to_batches(max_chunksize=batch_rows) or table)
        batches = list(reader)
    expected = [
        {
            "record": i,
            "step": j,
            "id": names[i + skipped],
            "steps/n": cell,
            "team": teams[i + skipped].as_py(),
            "steps/text": str(cell),
        }
        for i, cells in enumerate(lists[skipped:])
        for j, cell in enumerate(cells or [])
    ]
    assert pa.Table.from_batches(batches, reader.schema).to_pylist() == expected
    assert all(len(batch) <= max(most, 4) for batch in batches)
    assert reader.schema.field("steps/n").type == type_.value_type


def test_tensors_lose_their_first_axis(tmp_path: Path) -> None:
    images = np.arange(24, dtype="uint8").reshape(2, 3, 2, 2)
    rewards = np.arange(6, dtype="float32").reshape(2, 3)
    tfr.write_tfrecord({"steps/image": images, "steps/reward": rewards, "id": [7, 8]}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    tfr.write_tfrecord(tfr.explode(dataset), tmp_path / "b.tfrecord")
    arrays = tfr.read_arrays(tmp_path / "b.tfrecord")
    assert (arrays["steps/image"] == images.reshape(6, 2, 2)).all()
    assert (arrays["steps/reward"] == rewards.reshape(6)).all()
    assert arrays["id"].tolist() == [7, 7, 7, 8, 8, 8]
    assert arrays["record"].tolist() == [0, 0, 0, 1, 1, 1]
    assert arrays["step"].tolist() == [0, 1, 2, 0, 1, 2]


EMPTY_SHAPES = [(0,), (0, 2), (2, 0), (0, 0)]


@pytest.mark.parametrize("keep_empty", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("shape", EMPTY_SHAPES)
def test_steps_are_counted_where_tensors_have_no_values(
    tmp_path: Path, shape: tuple[int, ...], dtype: str, keep_empty: bool
) -> None:
    tfr.write_tfrecord({"steps/x": np.zeros((2, 3, *shape), dtype), "id": [1, 2]}, tmp_path / "a.tfrecord")
    steps = tfr.explode(tmp_path / "a.tfrecord", keep_empty=keep_empty)
    tfr.write_tfrecord(steps, tmp_path / "b.tfrecord")
    arrays = tfr.read_arrays(tmp_path / "b.tfrecord")
    np.testing.assert_array_equal(arrays["steps/x"], np.zeros((6, *shape), dtype), strict=True)
    assert arrays["id"].tolist() == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("shape", EMPTY_SHAPES)
def test_steps_of_any_number_are_counted_where_tensors_have_no_values(tmp_path: Path, shape: tuple[int, ...]) -> None:
    schema = {"id": "int64", "steps/x": tfr.tensor("float32", (None, *shape))}
    episodes = [np.zeros((steps, *shape), "float32") for steps in (2, 0, 3)]
    tfr.write_tfrecord({"id": [1, 2, 3], "steps/x": episodes}, tmp_path / "a.tfrecord", schema=schema)
    steps = tfr.explode(tfr.dataset(tmp_path / "a.tfrecord", schema=schema)).read_all()
    assert steps.schema.field("steps/x").type == pa.fixed_shape_tensor(pa.float32(), shape)
    assert steps["id"].to_pylist() == [1, 1, 3, 3, 3]


def test_lists_of_different_lengths_are_named() -> None:
    table = pa.table({"steps/a": [[1], [1, 2], [3]], "steps/b": [[1], [1, 2], [3, 4]]})
    with pytest.raises(
        tfr.errors.SchemaError, match=r"'steps/b': row 2 has 2 steps in this column, but 1 in 'steps/a'"
    ):
        tfr.explode(table.to_batches(max_chunksize=2)).read_all()
    with pytest.raises(tfr.errors.SchemaError, match="row 0 has 0 steps"):
        tfr.explode({"steps/a": pa.array([[1]]), "steps/b": pa.array([None], pa.list_(pa.int64()))}).read_all()


def test_another_prefix_and_a_column_that_is_no_list() -> None:
    table = pa.table({"frames/x": [[1, 2]], "steps": [5], "frames": ["a"]})
    assert tfr.explode(table, prefix="frames").read_all().to_pydict() == {
        "record": [0, 0],
        "step": [0, 1],
        "frames/x": [1, 2],
        "steps": [5, 5],
        "frames": ["a", "a"],
    }
    assert tfr.explode(table, prefix="frames/").read_all() == tfr.explode(table, prefix="frames").read_all()
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="the columns are frames/x, steps, frames"):
        tfr.explode(table)
    with pytest.raises(tfr.errors.SchemaError, match="a column of steps is a list"):
        tfr.explode({"steps/x": [1, 2]})
    with pytest.raises(tfr.errors.SchemaError, match="explode adds a column of this name"):
        tfr.explode({"steps/x": [[1], [2]], "step": [1, 2]})


def test_only_steps() -> None:
    steps = tfr.explode(pa.table({"steps/x": [[1, 2], [3]]})).read_all()
    assert steps.to_pydict() == {"record": [0, 0, 1], "step": [0, 1, 0], "steps/x": [1, 2, 3]}


@pytest.mark.parametrize(
    ("dtype", "scalar"),
    [
        ("bfloat16", "float32"),
        ("bool", "bool"),
        ("complex64", "complex64"),
        ("U2", "U2"),
        ("datetime64[Y]", "datetime64[Y]"),
        ("float32", "float32"),
    ],
)
def test_steps_keep_their_dtype(tmp_path: Path, dtype: str, scalar: str) -> None:
    numbers = np.arange(12).reshape(2, 3, 2) % 5
    tensors = numbers.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    values = {"steps/pair": tensors, "steps/one": tensors[:, :, 0], "whole": tensors}
    tfr.write_tfrecord(values, tmp_path / "a.tfrecord", column_encoding=dict.fromkeys(values, "raw"))
    tfr.write_tfrecord(tfr.explode(tfr.dataset(tmp_path / "a.tfrecord")), tmp_path / "b.tfrecord")
    arrays = tfr.read_arrays(tmp_path / "b.tfrecord")
    np.testing.assert_array_equal(arrays["steps/pair"], tensors.reshape(6, 2), strict=True)
    np.testing.assert_array_equal(arrays["steps/one"], tensors[:, :, 0].reshape(6).astype(scalar), strict=True)
    np.testing.assert_array_equal(arrays["whole"], tensors.repeat(3, axis=0), strict=True)


@pytest.mark.parametrize(
    ("dtype", "scalar"),
    [("bfloat16", "float32"), ("int4", "int8"), ("U2", "U2"), ("S3", "S3"), ("datetime64[Y]", "datetime64[Y]")],
)
def test_steps_of_any_number_keep_their_dtype(tmp_path: Path, dtype: str, scalar: str) -> None:
    tensors = (np.arange(6) % 5).astype(getattr(ml_dtypes, dtype, dtype))
    data = {"steps/x": [tensors[:1], None, tensors[1:1], tensors[1:]]}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord", column_encoding={"steps/x": "raw"})
    table = tfr.read_table(tmp_path / "a.tfrecord")
    for begin, steps in ((0, tensors), (1, tensors[1:])):
        exploded = tfr.explode(table.slice(begin))
        tfr.write_tfrecord(exploded, tmp_path / "b.tfrecord")
        found = tfr.read_arrays(tmp_path / "b.tfrecord")["steps/x"]
        np.testing.assert_array_equal(found, steps.astype(scalar), strict=True)
        windows = tfr.windows(table.slice(begin), length=2, pad="edge").read_all()
        assert len(windows) == len(steps)


def test_tensors_whose_first_axis_is_not_that_of_steps_are_refused() -> None:
    storage = pa.array([[1, 2, 3, 4, 5, 6]], pa.list_(pa.int64(), 6))
    permuted = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int64(), [2, 3], permutation=[1, 0]), storage)
    with pytest.raises(tfr.errors.SchemaError, match="permuted axes"):
        tfr.explode(pa.table({"steps/x": permuted}))
    complex_ = np.array([1j, 2])  # one value a row, which Arrow holds as two
    with pytest.raises(tfr.errors.SchemaError, match="a column of steps is a list"):
        tfr.explode({"steps/x": complex_})


def test_tables_of_any_layout() -> None:
    ids = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"], pa.string_view()))
    steps = pa.array([["x"], ["y", None]], pa.list_view(pa.string_view()))
    inside = pa.StructArray.from_arrays([ids], ["id"])
    found = tfr.explode(pa.table({"id": ids, "inside": inside, "steps/a": steps})).read_all()
    assert found["inside"].to_pylist() == [{"id": "a"}] * 3
    assert found.select(["id", "steps/a"]).to_pylist() == [{"id": "a", "steps/a": step} for step in ("x", "y", None)]


LISTS = pa.list_view(pa.int16())
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([1, 4], pa.int32()), pa.array(["x", "y"]))


@pytest.mark.parametrize("begin", [0, 1])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([[("a", [1]), ("b", [2, 3])], [], [("c", None)], None], pa.map_(pa.string_view(), LISTS)),
        pa.array([[[1], [2, 3]], None, [None, []], [[4], []]], pa.list_(LISTS, 2)),
        pa.FixedSizeListArray.from_arrays(RUNS, 1),
        pa.UnionArray.from_sparse(
            pa.array([0, 1, 0, 1], pa.int8()), [pa.array(list("abcd"), pa.string_view()), pa.array([[1]] * 4, LISTS)]
        ),
        pa.UnionArray.from_dense(
            pa.array([1, 1, 0, 1], pa.int8()),
            pa.array([2, 0, 0, 1], pa.int32()),
            [pa.array(["a"], pa.string_view()), pa.array([[1], None, [2, 3]], LISTS)],
        ),
    ],
    ids=lambda column: str(column.type),
)
def test_views_inside_of_other_columns(column: pa.Array, begin: int) -> None:
    table = pa.table({"x": column, "steps/n": [[1], [2, 3], [], [4]]}).slice(begin)
    exploded = tfr.explode(table).read_all()
    exploded.validate(full=True)
    rows = [at for at, steps in enumerate([1, 2, 0, 1]) for _ in range(steps) if at >= begin]
    assert exploded["x"].to_pylist() == [column[at].as_py() for at in rows]


@pytest.mark.parametrize("begin", [0, 1, 3])
def test_slices_of_matrices_as_fixed_size_lists(begin: int) -> None:
    """Arrow takes rows of such slices from a wrong place."""
    cells = [[[4 * i, 4 * i + 1], [4 * i + 2, 4 * i + 3]] for i in range(5)]
    matrix = pa.list_(pa.list_(pa.int64(), 2), 2)
    steps = pa.array([[cell, cell] for cell in cells], pa.list_(matrix))
    table = pa.table({"whole": pa.array(cells, matrix), "steps/x": steps}).slice(begin)
    expected = [cell for cell in cells[begin:] for _ in range(2)]
    exploded = tfr.explode(table).read_all()
    assert exploded["whole"].to_pylist() == exploded["steps/x"].to_pylist() == expected
    windows = tfr.windows(table, length=1).read_all()
    assert windows["whole"].to_pylist() == expected
    assert windows["steps/x"].to_pylist() == [[cell] for cell in expected]


@pytest.mark.parametrize("call", [tfr.explode, tfr.formats.implode])
@pytest.mark.parametrize("arguments", [{}, {"lists": "x"}])
def test_a_file_that_is_no_tfrecord_is_named_before_its_columns(tmp_path: Path, call: Any, arguments: Any) -> None:
    (tmp_path / "a").write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(tfr.errors.CorruptRecordError, match="not TFRecord: looks like a Parquet file"):
        call(tmp_path / "a", **arguments)


@pytest.mark.parametrize("vary", [False, True])
def test_arrays_in_lists_keep_their_dtype_and_remain_pictures(tmp_path: Path, vary: bool) -> None:
    shapes = [(2, 3, 3), (4, 3, 3)] if vary else [(2, 3, 3)] * 2
    masks = [np.ones(shape, bool) for shape in shapes]
    pictures = tfr.list_(tfr.image(tfr.tensor("uint8", ("height", "width", 3))))
    schema = {"mask": tfr.list_(tfr.tensor("bool", (None, 3, 3) if vary else (2, 3, 3))), "picture": pictures}
    data = {"mask": [masks], "picture": [[mask.astype("uint8") for mask in masks]]}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord", schema=schema)
    tfr.write_tfrecord(tfr.explode(tmp_path / "a.tfrecord", lists=["mask", "picture"]), tmp_path / "b.tfrecord")
    rows = tfr.read_tfrecord(tmp_path / "b.tfrecord")
    for found, mask in zip(rows["mask"], masks, strict=True):
        assert found.dtype == bool
        assert np.array_equal(found, mask)
    resized = tfr.dataset(tmp_path / "b.tfrecord").schema.field("picture").metadata
    assert b"tfrecord_io.raw_image" in resized
