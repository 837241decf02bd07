"""Arrays that TensorFlow wrote as bytes: read by their dtype and shape, with an error where those are mixed up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tfrecord_io as tfr

FASHION = {"image": tfr.tensor("float32", (28, 28, 1)), "label": tfr.tensor("float64", (10,))}


def same(found: Any, expected: np.ndarray[Any, Any]) -> bool:
    return (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def test_images_and_one_hot_labels(engine: str, data: Path) -> None:
    golden = np.load(data / "fashion.npz")
    found = tfr.read_arrays(data / "fashion.tfrecord", schema=FASHION)
    assert found.keys() == FASHION.keys()
    assert all(same(found[name], golden[name]) for name in FASHION)
    images = [batch["image"] for batch in tfr.iter_arrays(data / "fashion.tfrecord", batch_size=50, schema=FASHION)]
    assert same(np.concatenate(images), golden["image"])
    label = tfr.read_arrays(tfr.dataset(data / "fashion.tfrecord", schema_overrides={"label": FASHION["label"]}))
    assert same(label["label"], golden["label"])
    assert label["image"].tolist() == [image.tobytes() for image in golden["image"]]


@pytest.mark.fault(51)
@pytest.mark.parametrize(
    ("column", "dtype", "shape", "message"),
    [
        (
            "image",
            "float64",
            (28, 28, 1),
            "3136 bytes do not make float64 of the shape (28, 28, 1), which has 6272; they are 784",
        ),
        ("image", "uint8", (28, 28, 1), "which has 784; they are 784 values of float32"),
        ("image", "float16", (28, 28, 1), "which has 1568; they are 784 values of float32"),
        ("image", "complex64", (28, 28), "which has 6272; they are 784 values of float32"),
        ("image", "float32", (28, 28, 3), "which has 9408; they are 3136 uint8 or 784 float32"),
        ("image", "float32", (28, 14, 1), "which has 1568"),
        ("image", "float32", (None, 3), "3136 bytes"),
        ("label", "float32", (10,), "which has 40; they are 10 values of float64"),
        ("label", "float64", (9,), "which has 72; they are 80 uint8 or 20 float32 or 10 float64"),
    ],
)
def test_a_mix_up_is_detected_by_the_length(
    engine: str, data: Path, column: str, dtype: str, shape: Any, message: str
) -> None:
    with pytest.raises(tfr.errors.DecodeError, match=rf"record 0.*feature '{column}'") as caught:
        tfr.read_arrays(data / "fashion.tfrecord", schema={column: tfr.tensor(dtype, shape)})
    assert message in str(caught.value)
    assert (caught.value.record, caught.value.feature) == (0, column)


def test_values_of_the_same_width_cannot_be_told_apart(engine: str, data: Path) -> None:
    """Bytes of others say nothing of themselves: what the schema says is believed."""
    golden = np.load(data / "fashion.npz")["image"]
    for dtype, shape in [("int32", (28, 28, 1)), ("float32", (784,)), ("float64", (14, 28, 1)), ("uint8", (None,))]:
        found = tfr.read_arrays(data / "fashion.tfrecord", schema={"image": tfr.tensor(dtype, shape)})["image"]
        assert same(found, golden.view(np.uint8).reshape(120, -1).view(dtype).reshape(found.shape))


@pytest.mark.parametrize("shape", [(8,), (4, 2), (2, 2, 2)])
def test_arrays_written_here_keep_dtype_and_shape(engine: str, tmp_path: Path, shape: tuple[int, ...]) -> None:
    values = np.arange(8, dtype=np.int32).reshape(1, *shape)
    tfr.write_tfrecord({"x": values}, tmp_path / "a", column_encoding={"x": "raw"}, embed_schema=False)
    assert tfr.decode_example(next(iter(tfr.RecordReader(tmp_path / "a"))))["x"].tolist() == [bytes(values)]
    assert same(tfr.read_arrays(tmp_path / "a")["x"], values)
    for dtype, other in [
        ("uint8", (32,)),
        ("float32", shape),
        ("uint32", shape),
        ("complex64", (4,)),
        ("uint8", (None,)),
    ]:
        with pytest.raises(
            tfr.errors.DecodeError, match=rf"its 32 bytes are int32 according to 'x/dtype', but the column is {dtype}"
        ):
            tfr.read_arrays(tmp_path / "a", schema={"x": tfr.tensor(dtype, other)})
    for other in [(8,), (4, 2), (2, 2, 2)]:
        if other != shape:
            with pytest.raises(
                tfr.errors.DecodeError, match=r"have the shape .* according to 'x/shape', but the column"
            ):
                tfr.read_arrays(tmp_path / "a", schema={"x": tfr.tensor("int32", other)})
    with pytest.raises(
        tfr.errors.DecodeError, match=r"32 bytes do not make int32 of the shape \(3,\), which has 12; they are 32 uint8"
    ):
        tfr.read_arrays(tmp_path / "a", schema={"x": tfr.tensor("int32", (3,))})


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "complex64"])
def test_the_bytes_of_one_record_are_the_array(engine: str, dtype: str) -> None:
    values = np.arange(8).astype(dtype)
    record = tfr.decode_example(tfr.encode_example({"x": values.tobytes()}))
    assert same(tfr.io.decode_raw(record["x"][0], dtype), values)


def golden_tensors(data: Path) -> list[tuple[str, np.ndarray[Any, Any]]]:
    """Each record's name and array."""
    arrays = np.load(data / "tensors.npz")
    names = tfr.read_arrays(data / "tensors.tfrecord", columns=["name"])["name"].tolist()
    return [(name, _golden(name, arrays)) for name in names]


def _golden(name: str, arrays: Any) -> np.ndarray[Any, Any]:
    if name == "string":
        return np.array(arrays[name].tolist(), object)
    return arrays[name] if name in arrays else arrays[f"{name}_as_float32"].astype(ml_dtypes.bfloat16)


def test_each_serialized_tensor_is_parsed(engine: str, data: Path) -> None:
    found = tfr.read_arrays(data / "tensors.tfrecord")
    assert len(found["tensor"]) == 72
    for content, (name, expected) in zip(found["tensor"], golden_tensors(data), strict=True):
        parsed = tfr.io.parse_tensor(content)
        if name == "string":  # the archive's S4 has lost the NULs at the end
            assert [value.rstrip(b"\0") for value in parsed.reshape(-1)] == expected.reshape(-1).tolist()
        else:
            assert same(parsed, expected), name


def test_serialized_tensors_by_their_schema(engine: str, data: Path) -> None:
    """One record at a time, as each is of another dtype and shape."""
    for row, (name, expected) in enumerate(golden_tensors(data)):
        if name == "string":
            continue
        dtype = expected.dtype.name
        for shape in (expected.shape, (None,) * expected.ndim):
            schema = {"tensor": tfr.tensor(dtype, shape, encoding="tensor_proto")}
            found = tfr.read_arrays(tfr.dataset(data / "tensors.tfrecord", offset=row), limit=1, schema=schema)[
                "tensor"
            ]
            assert same(found, expected[None]), name
        other = "int16" if dtype != "int16" else "float32"
        schema = {"tensor": tfr.tensor(other, expected.shape, encoding="tensor_proto")}
        with pytest.raises(tfr.errors.DecodeError, match="feature 'tensor'"):
            tfr.read_arrays(tfr.dataset(data / "tensors.tfrecord", offset=row), limit=1, schema=schema)
