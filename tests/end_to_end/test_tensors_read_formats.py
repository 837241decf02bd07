"""Tensors that TensorFlow wrote, as TensorProtos, in pandas, of steps, and the fields that describe them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import blobs, example, floats, int64s, written
from strategies import sequence_example
from tensor_cells import DTYPES, MATRIX, assert_same, cells, companions, dtype_of, record
from tfrecord_io.columns.arrow.tensor_values import column_to_cells
from tfrecord_io.columns.schema.tensor_types import is_variable_shape_tensor

# ---- bytes that others wrote


def test_images_that_tensorflow_wrote(data: Path, engine: str) -> None:
    expected = np.load(data / "fashion.npz")
    schema = {"image": tfr.tensor("float32", (28, 28, 1)), "label": tfr.tensor("float64", (10,))}
    table = tfr.read_table(data / "fashion.tfrecord", schema=schema)
    for name in schema:
        found = np.stack(cells(table, name))
        assert found.dtype == schema[name].type.value_type.to_pandas_dtype()
        key = next(key for key in expected.files if key.startswith(name))
        np.testing.assert_array_equal(found, expected[key].reshape(found.shape))


@pytest.mark.parametrize("name", ["bool", "complex64", "bfloat16", "datetime64[D]", "timedelta64[ms]", "float16"])
def test_lists_of_numbers_are_reshaped(read: Any, name: str) -> None:
    write = floats if name in ("complex64", "bfloat16", "float16") else int64s
    parts = [1, 0, 0, 1, 1, 1, 0, 1] if name == "complex64" else [1, 0, 0, 1]
    expected = (
        np.array([1, 0, 0, 1]).astype(dtype_of(name)) if name != "complex64" else np.array([1, 1j, 1 + 1j, 1j], name)
    )
    for shape in ((2, 2), (None, 2)):
        found = cells(read([example(x=write(*parts)), b""], schema={"x": tfr.tensor(name, shape)}))
        assert_same(found, [expected.reshape(2, 2), None])
    with pytest.raises(tfr.errors.DecodeError, match="values"):
        read([example(x=write(*parts[:-1]))], schema={"x": tfr.tensor(name, (2, 2))})


@pytest.mark.parametrize("name", ["S3", "U3"])
def test_numbers_are_not_text(read: Any, name: str) -> None:
    with pytest.raises(tfr.errors.FeatureTypeError):
        read([example(x=int64s(1))], schema={"x": tfr.tensor(name, (1,))})
    with pytest.raises(tfr.errors.SchemaError):
        read([b""], schema={"x": tfr.tensor(name, (1,), encoding="list")})


def protos(data: Path) -> list[tuple[str, np.ndarray, bytes]]:
    """What TensorFlow has serialized: name, array, bytes."""
    table = tfr.read_table(data / "tensors.tfrecord", schema={"name": "string", "tensor": "binary"})
    arrays = np.load(data / "tensors.npz")
    found = [
        (name, arrays[name], content)
        for name, content in zip(*table.to_pydict().values(), strict=True)
        if name in arrays.files
    ]
    return [each for each in found if each[1].dtype.kind != "S" and "_as_" not in each[0]]


def test_tensor_protos_that_tensorflow_wrote(data: Path, read: Any) -> None:
    golden = protos(data)
    assert len(golden) > 60
    for _, array, content in golden:
        for shape in {array.shape, (None,) * array.ndim}:
            schema = {"x": tfr.tensor(array.dtype.name, shape, encoding="tensor_proto")}
            assert_same(
                cells(read([example(x=blobs(content)), b"", example(x=blobs(content))], schema=schema)),
                [array, None, array],
            )


@pytest.mark.fault(52)
def test_a_tensor_proto_fits_its_column(data: Path, read: Any) -> None:
    by_name = {name: content for name, _, content in protos(data)}
    good, payload = by_name["float32_2x3"], lambda name: example(x=blobs(by_name[name]))
    schema = {"x": tfr.tensor("float32", (2, 3), encoding="tensor_proto")}
    for name, words in [
        ("int32_2x3", "float32.*int32|int32.*float32"),
        ("float32_3", r"\(3,\).*\(2, 3\)"),
        ("float32_2x0x4", "2, 0, 4"),
    ]:
        with pytest.raises(tfr.errors.DecodeError, match=f"record 2.*feature 'x'.*({words})"):
            read([example(x=blobs(good)), b"", payload(name)], schema=schema)
    with pytest.raises(tfr.errors.DecodeError, match=r"record 0.*int32.*float32"):
        read([payload("int32_2x3")], schema=schema)
    with pytest.raises(tfr.errors.DecodeError, match=r"record 0.*TensorProto"):
        read([example(x=blobs(b"\xff"))], schema=schema)
    with pytest.raises(tfr.errors.FeatureTypeError):
        read([example(x=floats(1))], schema=schema)


# ---- pandas


@pytest.mark.parametrize("backend", [None, "numpy_nullable", "pyarrow"])
def test_pandas_gets_arrays(tmp_path: Path, backend: str | None) -> None:
    arrays = {
        name: np.arange(4).astype("i8").astype(dtype_of(name)).reshape(2, 2)
        for name in ("complex64", "bfloat16", "S10", "U3")
    }
    arrays |= {"varying": MATRIX, "b": np.eye(2, dtype=bool), "day": np.array([["2020-01-01"]], "M8[D]")}
    payloads = [record(arrays, n=int64s(1)), b"", record({**arrays, "varying": MATRIX[:1]}, n=int64s(2))]
    frame = tfr.read_tfrecord(written(tmp_path / "x", payloads), dtype_backend=backend)
    assert list(frame) == sorted([*arrays, "n"])
    for name, array in arrays.items():
        assert frame[name].dtype == object
        assert_same(frame[name].tolist(), [array, None, array if name != "varying" else MATRIX[:1]])


@pytest.mark.parametrize("backend", [None, "numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("name", ["bool", "complex64", "bfloat16", "U3", "float64"])
def test_pandas_gets_arrays_inside_structs(tmp_path: Path, name: str, backend: str | None) -> None:
    array = np.arange(4).astype("i8").astype(dtype_of(name)).reshape(2, 2)
    column = tfr.read_table(written(tmp_path / "x", [record({"t": array}), record({"t": array[::-1]})]))
    fields = [column.schema.field("t"), pa.field("n", pa.int64())]
    inner = pa.StructArray.from_arrays([column["t"].combine_chunks(), pa.array([1, 2])], fields=fields)
    tfr.write_tfrecord(pa.table({"s": inner.take(pa.array([0, None, 1]))}), tmp_path / "s.tfrecord")
    found = tfr.read_tfrecord(tmp_path / "s.tfrecord", dtype_backend=backend)["s"].tolist()
    assert [None if row is None else row["n"] for row in found] == [1, None, 2]
    assert_same([found[0]["t"], found[2]["t"]], [array, array[::-1]])


def test_pandas_gets_arrays_of_steps(tmp_path: Path) -> None:
    steps = {"x": [blobs(MATRIX.tobytes())] * 2, "y": [blobs(MATRIX.tobytes()), blobs(MATRIX[:1].tobytes())]}
    path = written(tmp_path / "x", [sequence_example({}, steps), b""])
    schema = {"x": tfr.sequence(tfr.tensor("float32", (2, 3))), "y": tfr.sequence(tfr.tensor("float32", (None, 3)))}
    frame = tfr.read_tfrecord(tfr.dataset(path, record_type="sequence_example"), schema=schema)
    assert frame["x"][0].shape == (2, 2, 3)
    assert [step.shape for step in frame["y"][0]] == [(2, 3), (1, 3)]
    assert frame["x"][1] is None


def test_steps_have_companions_of_their_own(read: Any) -> None:
    arrays = [MATRIX, MATRIX[:1], MATRIX[:, :2].copy()]
    lists = {f"x{suffix}": [companions(array)[suffix] for array in arrays] for suffix in ("", "/shape", "/dtype")}
    payloads = [
        sequence_example({}, lists),
        b"",
        sequence_example({}, {name: steps[:1] for name, steps in lists.items()}),
    ]
    schema = {"x": tfr.sequence(tfr.tensor("float32", (None, None)))}
    column = read(payloads, schema=schema, record_type="sequence_example")["x"].combine_chunks()
    assert column.value_lengths().to_pylist() == [3, None, 1]
    assert_same(list(column_to_cells(column.values, pa.field("", column.type.value_type))), [*arrays, MATRIX])
    payloads.append(sequence_example({}, {**lists, "x/dtype": [blobs(b"float32"), blobs(b"int32"), blobs(b"float32")]}))
    with pytest.raises(tfr.errors.DecodeError, match=r"record 3.*feature 'x'.*int32"):
        read(payloads, schema=schema, record_type="sequence_example")
    with pytest.raises(tfr.errors.DecodeError, match=r"record 0.*feature 'x'.*x/shape"):
        read([sequence_example({}, {"x": lists["x"]})], schema=schema, record_type="sequence_example")


# ---- what fields say


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (None, 3), (None, None), (4,)])
def test_tensor_fields_survive_ipc(name: str, shape: Any) -> None:
    import pickle

    schema = tfr.Schema({"x": tfr.tensor(name, shape), "y": "int8"})
    axes = ",".join("?" if axis is None else str(axis) for axis in shape)
    assert schema["x"].shape == shape
    assert f"[{axes}]" in repr(schema)
    for again in (
        pickle.loads(pickle.dumps(schema)),
        tfr.Schema.from_json(schema.to_json()),
        tfr.Schema.from_arrow(schema.to_arrow()),
    ):
        assert again == schema
    assert "from_json" not in schema.to_python()
    found: dict[str, Any] = {}
    exec(schema.to_python(), found)
    assert found["schema"] == schema
    assert schema != tfr.Schema({"x": tfr.tensor("int16" if name != "int16" else "uint16", shape), "y": "int8"})


def test_fields_of_one_storage_and_two_dtypes_differ() -> None:
    assert tfr.tensor("bool", (2,)) != tfr.tensor("uint8", (2,))
    assert tfr.tensor("datetime64[D]", (2,)) != tfr.tensor("int64", (2,))
    assert tfr.tensor("U1", (2,)) != tfr.tensor("S4", (2,))


def test_names_of_types_of_tensors() -> None:
    schema = tfr.Schema({"a": "tensor<complex64>[2,3]", "b": "tensor<float32>[?,3]", "c": "tensor<bfloat16>[?]"})
    assert schema["a"].shape == (2, 3)
    assert is_variable_shape_tensor(schema["b"].type)
    assert [f.type_name for f in schema] == ["tensor<complex64>[2,3]", "tensor<float32>[?,3]", "tensor<bfloat16>[?]"]
    with pytest.raises(tfr.errors.SchemaError):
        tfr.Schema({"a": "tensor<object>[2]"})
