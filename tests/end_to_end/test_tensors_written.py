"""Tensors in records: parsed with protobuf alone, they are NumPy's bytes, shape and dtype."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from tensors_of_arrays import Given, columns
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.schema.column_features import set_encoding
from tfrecord_io.columns.schema.tensor_types import tensor_field
from tfrecord_io.testing.tensor_encoding_suite import PLAIN, dtype_of, values_of


def records(data: Any, path: Path, **keywords: Any) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*no records were written", tfr.errors.SchemaWarning)
        tfr.write_tfrecord(data, path, **keywords)
    return [tfr.decode_example(payload) for payload in tfr.RecordReader(path)]


def check(record: dict[str, Any], column: str, name: str, cell: np.ndarray[Any, Any] | None) -> None:
    """Check that a record has the three features of a tensor, or none of them."""
    features = (column, f"{column}/shape", f"{column}/dtype")
    if cell is None:
        assert not set(features) & set(record)
        return
    value, shape, dtype = (record[feature] for feature in features)
    little = cell.astype(dtype_of(name).newbyteorder("<"))
    assert value.tolist() == [little.tobytes()]
    assert (shape.dtype, shape.tolist()) == (np.int64, list(cell.shape))
    assert dtype.tolist() == [name.encode()]


@given(st.data())
def test_any_arrays_are_their_bytes_shape_and_dtype(
    engine: str, new_folder: Callable[[], Path], data: st.DataObject
) -> None:
    tmp_path = new_folder()
    rows = data.draw(st.integers(0, 4))
    inputs: dict[str, Given] = {
        name: data.draw(columns(rows)) for name in data.draw(st.sampled_from([["x"], ["x", "y"]]))
    }
    encodings = dict.fromkeys(inputs, "raw")
    features = records(
        {name: column.data for name, column in inputs.items()}, tmp_path / "a", column_encoding=encodings
    )
    assert len(features) == rows
    for row, record in enumerate(features):
        for name, column in inputs.items():
            check(record, name, column.name, column.cells[row])
    assert set().union(*features) <= {f"{name}{suffix}" for name in inputs for suffix in ("", "/shape", "/dtype")}


@given(st.data())
def test_any_arrow_tensors_are_their_bytes_shape_and_dtype(
    engine: str, new_folder: Callable[[], Path], data: st.DataObject
) -> None:
    """Permuted, with arbitrary values under nulls, sliced and in chunks."""
    tmp_path = new_folder()
    name = data.draw(st.sampled_from(PLAIN))
    shape = tuple(data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    order = data.draw(st.permutations(range(len(shape))))
    rows = 6
    values = values_of(name, (rows, *shape), data.draw(st.integers(0, 2**32 - 1)))
    type_ = pa.fixed_shape_tensor(
        pa.from_numpy_dtype(values.dtype), shape, permutation=order, dim_names=list("abc")[: len(shape)]
    )
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=rows, max_size=rows)))
    storage = pa.FixedSizeListArray.from_arrays(
        pa.array(values.reshape(-1)), type=type_.storage_type, mask=pa.array(mask)
    )
    begin, middle = sorted(data.draw(st.tuples(st.integers(0, rows), st.integers(0, rows))))
    whole = pa.ExtensionArray.from_storage(type_, storage)
    features = records(pa.table({"x": pa.chunked_array([whole[begin:middle], whole[middle:]], type_)}), tmp_path / "a")
    for row, record in enumerate(features, begin):
        check(record, "x", name, None if mask[row] else values[row].transpose(order))
    assert len(features) == rows - begin


def test_a_dataframe_of_arrays(engine: str, tmp_path: Path) -> None:
    images = [np.arange(6, dtype=np.uint8).reshape(2, 3), None, np.ones((1, 4), np.uint8), float("nan")]
    frame = pd.DataFrame(
        {
            "image": images,
            "label": pd.Categorical(["a", "b", "a", None]),
            "wave": np.array([1j, 2, complex("nan"), 4], np.complex64),
            "embedding": [np.arange(2, dtype=np.float32)] * 3 + [None],
        },
        index=pd.Index([5, 6, 7, 8], name="key"),
    )
    for record, row in zip(records(frame, tmp_path / "a"), range(4), strict=True):
        check(record, "image", "uint8", images[row] if isinstance(images[row], np.ndarray) else None)
        check(record, "wave", "complex64", None if row == 2 else frame.wave.to_numpy()[row : row + 1].reshape(()))
        assert "embedding/shape" not in record  # a list, not a tensor
        assert ("embedding" in record) == (row < 3)
        assert record["key"].tolist() == [5 + row]


def test_a_structured_array_is_a_table(engine: str, tmp_path: Path) -> None:
    data = np.zeros(3, [("a", ">i4"), ("b", "f4", (2, 2)), ("c", "S4")])
    data["a"], data["b"], data["c"] = [1, 2, 3], np.arange(12).reshape(3, 2, 2), [b"x", b"yy", b""]
    for row, record in enumerate(records(data, tmp_path / "a")):
        check(record, "b", "float32", data["b"][row])
        assert (record["a"].tolist(), record["c"].tolist()) == ([row + 1], [data["c"][row]])


def test_raw_single_values_and_lists(engine: str, tmp_path: Path) -> None:
    when = np.array(["2020-01-01T00:00:01", "1969-12-31T23:59:59"], "datetime64[ns]")
    data = {"when": when, "yes": np.array([True, False]), "took": [np.array([1, 2], "m8[ms]"), np.array([], "m8[ms]")]}
    for row, record in enumerate(records(data, tmp_path / "a", column_encoding=dict.fromkeys(data, "raw"))):
        check(record, "when", "datetime64[ns]", when[row : row + 1].reshape(()))
        check(record, "yes", "bool", data["yes"][row : row + 1].reshape(()))
        check(record, "took", "timedelta64[ms]", data["took"][row])


@pytest.mark.parametrize("dtype", ["float32", "bool", "int16", "uint64", "datetime64[s]"])
def test_lists_are_the_values_in_c_order(engine: str, tmp_path: Path, dtype: str) -> None:
    values = (np.arange(12).reshape(2, 2, 3) % 5).astype(dtype)
    type_ = pa.fixed_shape_tensor(pa.float32(), (2, 3), permutation=[1, 0])
    permuted = pa.ExtensionArray.from_storage(type_, pa.array([list(range(6)), None], type_.storage_type))
    features = records({"x": values, "p": permuted}, tmp_path / "a", column_encoding={"x": "list", "p": "list"})
    for row, record in enumerate(features):
        assert (
            record["x"].tolist()
            == values[row].astype(np.float32 if dtype == "float32" else np.int64).reshape(-1).tolist()
        )
        assert set(record) == {"x", "p"} - ({"p"} if row else set())
    assert features[0]["p"].tolist() == np.arange(6).reshape(2, 3).T.reshape(-1).tolist()


PERMUTED = pa.fixed_shape_tensor(pa.int64(), (2, 3), permutation=[1, 0])


@pytest.mark.parametrize("text", [pa.string(), pa.string_view()], ids=str)
def test_permuted_axes_in_a_declared_struct(tmp_path: Path, text: pa.DataType) -> None:
    values = np.arange(6).reshape(1, 3, 2)
    tfr.write_tfrecord({"s/a": values, "s/b": ["x"]}, tmp_path / "a.tfrecord")
    tensor = set_encoding(pa.field("a", PERMUTED), "raw")
    for struct in (pa.struct([tensor, ("b", text)]), pa.struct([tensor])):
        schema = pa.schema({"s": struct})
        column = tfr.read_table(tfr.dataset(tmp_path / "a.tfrecord", schema=schema))["s"].combine_chunks()
        assert column.field("a").to_tensor().to_numpy().tolist() == values.tolist()


@pytest.mark.parametrize("encoding", ["nested", "json"])
def test_permuted_axes_in_a_nested_column_are_refused(tmp_path: Path, encoding: str) -> None:
    """Such a file had an embedded schema that could not be used."""
    tensors = pa.ExtensionArray.from_storage(PERMUTED, pa.array([list(range(6))], PERMUTED.storage_type))
    in_list = pa.ListArray.from_arrays([0, 1], tensors)
    for column in (in_list, pa.StructArray.from_arrays([in_list], ["a"]), pa.StructArray.from_arrays([tensors], ["a"])):
        with pytest.raises(tfr.errors.EncodeError, match="the axes of tensors in a nested column are permuted"):
            tfr.write_tfrecord(pa.table({"s": column}), tmp_path / "a.tfrecord", column_encoding={"s": encoding})
    with pytest.raises(tfr.errors.EncodeError, match="the axes of tensors in a nested column are permuted"):
        tfr.write_tfrecord(pa.table({"s": in_list}), tmp_path / "a.tfrecord")


@pytest.mark.parametrize("record_type", ["example", "sequence_example"])
@pytest.mark.parametrize("encoding", ["raw", "tensor_proto", "npy"])
def test_columns_of_nulls_with_an_encoding_are_read(tmp_path: Path, encoding: str, record_type: Any) -> None:
    """Such a file had an embedded schema that could not be used."""
    table = pa.table({"x": pa.nulls(2), "y": [1, 2]})
    tfr.write_tfrecord(table, tmp_path / "a", column_encoding={"x": encoding}, record_type=record_type)
    assert tfr.read_table(tmp_path / "a").to_pylist() == table.to_pylist()
    tfr.write_tfrecord({"x": np.zeros((1, 2, 2)), "y": [3]}, tmp_path / "b", column_encoding={"x": encoding})
    if record_type == "example":
        assert tfr.read_table([tmp_path / "a", tmp_path / "b"])["x"].null_count == 2


def test_lists_of_float64_are_rounded_and_raw_ones_are_not(engine: str, tmp_path: Path) -> None:
    values = np.full((2, 2, 2), 0.1)
    check(records({"x": values}, tmp_path / "a")[0], "x", "float64", values[0])
    with pytest.warns(tfr.errors.PrecisionWarning, match=r"'x' \(8 values\)"):
        tfr.write_tfrecord({"x": values}, tmp_path / "b", column_encoding={"x": "list"})
    with pytest.raises(tfr.errors.EncodeError, match="float64"):
        tfr.write_tfrecord({"x": values}, tmp_path / "b", column_encoding={"x": "list"}, float64="error")


# --- serialized tensors


@given(st.data())
def test_any_serialized_tensors_are_tensorflows_bytes(
    engine: str, new_folder: Callable[[], Path], data: st.DataObject
) -> None:
    tmp_path = new_folder()
    inputs = data.draw(columns(3).filter(lambda column: "64[" not in column.name))  # TensorFlow has no times
    features = records({"x": inputs.data}, tmp_path / "a", column_encoding={"x": "tensor_proto"})
    for record, cell in zip(features, inputs.cells, strict=True):
        assert set(record) == (set() if cell is None else {"x"})
        assert cell is None or record["x"].tolist() == [tfr.io.serialize_tensor(cell)]


def test_text_and_bytes_are_serialized_as_strings(engine: str, tmp_path: Path) -> None:
    data = {
        "a": ["é", None],
        "b": [[b"\xff", b""], []],
        "c": np.array([["x"], ["yy"]]),
        "d": pd.Series(["x", "y"], dtype="str"),
    }
    features = records(data, tmp_path / "a", column_encoding=dict.fromkeys(data, "tensor_proto"))
    parsed = [{name: tfr.io.parse_tensor(value[0]).tolist() for name, value in record.items()} for record in features]
    assert parsed == [
        {"a": "é".encode(), "b": [b"\xff", b""], "c": [b"x"], "d": b"x"},
        {"b": [], "c": [b"yy"], "d": b"y"},
    ]


# --- unsupported values


@pytest.mark.fault(53)
@pytest.mark.parametrize(
    ("data", "keywords", "record", "message"),
    [
        ({"x": np.array([[None, "a"]], object)}, {}, None, "not pickled"),
        ({"x": [np.zeros((1, 1)), np.array([["a"]], object)]}, {}, None, "not pickled"),
        ({"x": np.zeros((2, 2), "V8")}, {}, None, "V8"),
        ({"x": np.zeros((2, 2), [("a", "i4")])}, {}, None, "dtype"),
        ({"x": np.zeros(2, "M8[25s]")}, {}, None, "datetime64"),
        ({"x": np.array(3)}, {}, None, "first axis"),
        ({"x": [None, np.zeros((2, 2)), np.zeros(2)]}, {}, 2, "has 1 dimension"),
        ({"x": [np.zeros((2, 2)), np.zeros((2, 2), "i4")]}, {}, 1, "int32"),
        (pd.DataFrame({"x": [np.zeros((2, 2)), np.zeros(2)]}), {}, 1, "has 1 dimension"),
        ([{"x": np.zeros((2, 2, 2))}, pd.DataFrame({"x": [np.zeros((2, 2)), np.zeros(2)]})], {}, 3, "has 1 dimension"),
        ({"x": np.ma.masked_array(np.zeros((2, 2)), [[1, 1], [0, 1]])}, {}, 1, "masked"),
        ({"x": np.zeros((2, 2), "c8")}, {"column_encoding": {"x": "list"}}, None, 'encoding "raw"'),
        ({"x": [np.zeros((2, 2)), np.zeros((1, 2))]}, {"column_encoding": {"x": "list"}}, None, 'encoding "raw"'),
        ({"x": np.zeros((2, 2), "M8[s]")}, {"column_encoding": {"x": "tensor_proto"}}, None, 'encoding "raw"'),
        ({"x/shape": [1, 2], "x": np.zeros((2, 2))}, {}, None, "rename"),
        (
            {"x": pa.array([[1, 2], [None, 2]], pa.list_(pa.int8(), 2)).cast(pa.fixed_shape_tensor(pa.int8(), (2,)))},
            {},
            1,
            "null",
        ),
    ],
    ids=range(16),
)
def test_unsupported_values_are_refused(
    tmp_path: Path, data: Any, keywords: dict[str, Any], record: int | None, message: str
) -> None:
    with pytest.raises(tfr.errors.EncodeError, match=message) as caught:
        tfr.write_tfrecord(data, tmp_path / "a", **keywords)
    assert caught.value.feature in ("x", "x/shape")
    assert caught.value.record == record
    assert list(tmp_path.iterdir()) == []


def test_rows_are_numbered_over_several_writes(tmp_path: Path) -> None:
    with tfr.open_writer(tmp_path / "a") as writer:
        writer.write({"x": np.zeros((3, 2, 2))})
        with pytest.raises(tfr.errors.EncodeError) as caught:
            writer.write({"x": [np.zeros((2, 2)), np.zeros(2)]})
    assert caught.value.record == 4


# --- large data


def test_a_mapped_file_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.arange(40 * 6, dtype=">i2").reshape(40, 2, 3)
    np.save(tmp_path / "a.npy", values)
    set_limits(monkeypatch, batch_bytes=100)
    sizes = []
    monkeypatch.setattr("tfrecord_io.columns.arrow.input.tensor_cast.ndarray_to_column", _counting(sizes))
    features = records({"x": np.load(tmp_path / "a.npy", mmap_mode="r")}, tmp_path / "a")
    for row, record in enumerate(features):
        check(record, "x", "int16", values[row])
    assert max(sizes) * 12 <= 120


def _counting(sizes: list[int]) -> Any:
    from tfrecord_io.columns.arrow.tensor_values import ndarray_to_column

    def counted(values: np.ndarray[Any, Any], valid: Any = None) -> Any:
        sizes.append(len(values))
        return ndarray_to_column(values, valid)

    return counted


# --- several tables, and a schema


IMAGES = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)


def test_tables_of_different_shapes_need_a_schema(engine: str, tmp_path: Path) -> None:
    parts = [{"x": IMAGES}, {"x": IMAGES[:, :1]}]
    with pytest.raises(tfr.errors.SchemaError, match=r"tfr.tensor\('uint8', \(None, 3\)\)"):
        tfr.write_tfrecord(parts, tmp_path / "a")
    free = pa.schema([tensor_field("x", Dtype.of_name("uint8"), (None, 3))])
    features = records(parts, tmp_path / "a", schema=free)
    for record, cell in zip(features, [*IMAGES, *IMAGES[:, :1]], strict=True):
        check(record, "x", "uint8", cell)
    with pytest.raises(tfr.errors.EncodeError, match="does not fit") as caught:
        tfr.write_tfrecord(parts, tmp_path / "b", schema={"x": tfr.tensor("uint8", (2, 3))})
    assert caught.value.record == 2


def test_a_table_of_uniform_shape_may_follow_one_of_varying_shapes(engine: str, tmp_path: Path) -> None:
    parts = [pd.DataFrame({"x": [IMAGES[0], IMAGES[0, :1], None]}), {"x": IMAGES}, pd.DataFrame({"x": [None]})]
    for record, cell in zip(
        records(parts, tmp_path / "a"), [IMAGES[0], IMAGES[0, :1], None, *IMAGES, None], strict=True
    ):
        check(record, "x", "uint8", cell)


def test_a_schema_reshapes_lists(engine: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [IMAGES[0].reshape(-1), None, IMAGES[1].reshape(-1)]})
    features = records(frame, tmp_path / "a", schema={"x": tfr.tensor("uint8", (2, 3))})
    for record, cell in zip(features, [IMAGES[0], None, IMAGES[1]], strict=True):
        check(record, "x", "uint8", cell)
    with pytest.raises(tfr.errors.EncodeError, match=r"shape \(3,\)") as caught:
        tfr.write_tfrecord({"x": [[1] * 6, None, [1] * 3]}, tmp_path / "b", schema={"x": tfr.tensor("uint8", (2, 3))})
    assert (caught.value.record, caught.value.feature) == (2, "x")


# --- SequenceExamples


def test_lists_of_tensors_are_feature_lists(engine: str, tmp_path: Path) -> None:
    type_ = pa.list_(pa.fixed_shape_tensor(pa.int16(), (2, 2)))
    steps = pa.array([[1, 2, 3, 4], [5, 6, 7, 8], None], pa.list_(pa.int16(), 4))
    tensors = pa.ExtensionArray.from_storage(type_.value_type, steps)
    array = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3]), tensors, mask=pa.array([False, True, False]))
    tfr.write_tfrecord(pa.table({"x": array}), tmp_path / "a", record_type="sequence_example")
    features = [tfr.train.SequenceExample.FromString(payload) for payload in tfr.RecordReader(tmp_path / "a")]
    lists = [message.feature_lists.feature_list for message in features]
    first = [feature.bytes_list.value[0] for feature in lists[0]["x"].feature]
    assert first == [np.array(cell, "<i2").tobytes() for cell in ([1, 2, 3, 4], [5, 6, 7, 8])]
    assert [list(feature.int64_list.value) for feature in lists[0]["x/shape"].feature] == [[2, 2], [2, 2]]
    assert [list(feature.bytes_list.value) for feature in lists[0]["x/dtype"].feature] == [[b"int16"], [b"int16"]]
    assert not set(lists[1])
    assert [
        feature.WhichOneof("kind") for name in ("x", "x/shape", "x/dtype") for feature in lists[2][name].feature
    ] == [None] * 3
    tfr.write_tfrecord(pa.table({"x": array}), tmp_path / "b")  # Examples with a nested column
    assert tfr.read_table(tmp_path / "b")["x"].combine_chunks().equals(array)


def test_declared_tensors_of_bools_are_read_as_bools(engine: str, tmp_path: Path) -> None:
    bools = pa.fixed_shape_tensor(pa.bool_(), (2, 2))
    storage = pa.array([[True, False, True, True], None], bools.storage_type)
    table = pa.table({"x": pa.ExtensionArray.from_storage(bools, storage)})
    for schema in (table.schema, None):
        tfr.write_tfrecord(table, tmp_path / "a", schema=schema, column_encoding={"x": "list"})
        for declared in (table.schema, None):
            read = tfr.read_table(tmp_path / "a", schema=declared)
            assert read.schema.field("x").type == pa.fixed_shape_tensor(pa.uint8(), (2, 2))
            assert tfr.write_tfrecord(read, tmp_path / "b", column_encoding={"x": "list"}).records == 2
            for path in (tmp_path / "a", tmp_path / "b"):
                array = tfr.read_arrays(path, schema=declared, missing="mask")["x"]
                assert (array.dtype, array[0].tolist()) == (np.bool_, [[True, False], [True, True]])
                assert array.mask[1].all()


@pytest.mark.parametrize("permutation", [None, [0, 1]])
@pytest.mark.parametrize("in_struct", [False, True])
def test_lists_of_tensors_whose_type_states_the_order_of_axes(
    tmp_path: Path, permutation: list[int] | None, in_struct: bool
) -> None:
    """As those of `pa.FixedShapeTensorArray.from_numpy_ndarray`, whose schema could not be read back."""
    type_ = pa.fixed_shape_tensor(pa.uint8(), [4, 3], permutation=permutation)
    flat = pa.array(np.arange(60, dtype=np.uint8))
    tensors = pa.ExtensionArray.from_storage(type_, pa.FixedSizeListArray.from_arrays(flat, 12))
    column = pa.ListArray.from_arrays(pa.array([0, 3, 5], pa.int32()), tensors)
    if in_struct:
        column = pa.StructArray.from_arrays([column], ["frames"])
    tfr.write_tfrecord(pa.table({"x": column}), tmp_path / "a.tfrecord")
    back = tfr.read_table(tmp_path / "a.tfrecord")["x"].combine_chunks()
    found = back.field("frames") if in_struct else back
    assert found.type.value_type == pa.fixed_shape_tensor(pa.uint8(), [4, 3])
    assert found.values.storage.equals(tensors.storage)
