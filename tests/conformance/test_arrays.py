"""Arrays as raw bytes and as TensorProtos, exchanged with TensorFlow both ways; shuffling as in tf.data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.testing.tensor_encoding_suite import dtype_of, values_of

RAW = ["bool", "float16", "float32", "float64", "bfloat16", "complex64", "complex128"]  # that decode_raw takes
RAW += ["int8", "int16", "int32", "int64", "uint8", "uint16"]
PROTO = [*RAW, "uint32", "uint64"]
SHAPES = [(), (3,), (2, 3), (1, 2, 3, 1), (0,), (2, 0, 4)]


def same(found: Any, expected: np.ndarray[Any, Any]) -> bool:
    found = np.asarray(found)
    return (found.dtype, found.shape, found.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def parsed(tf: Any, path: Path) -> list[Any]:
    """Feature x of each record, as TensorFlow parses it."""
    description = {"x": tf.io.FixedLenFeature([], tf.string)}
    return [tf.io.parse_single_example(record, description)["x"] for record in tf.data.TFRecordDataset(str(path))]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", RAW)
def test_decode_raw_and_reshape_read_our_tensors(
    tf: Any, engine: str, tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    values = values_of(name, (3, *shape), 1)
    tfr.write_tfrecord({"x": values}, tmp_path / "a", column_encoding={"x": "raw"})
    for row, content in enumerate(parsed(tf, tmp_path / "a")):
        found = tf.reshape(tf.io.decode_raw(content, name), shape).numpy()
        assert same(found != 0 if name == "bool" else found, values[row, ...])


@pytest.mark.parametrize("name", RAW)
def test_the_companions_say_how_to_decode(tf: Any, engine: str, tmp_path: Path, name: str) -> None:
    """With rows of several shapes, by what the record alone contains."""
    cells = [values_of(name, (2, size), size) for size in (1, 3, 0)]
    tfr.write_tfrecord({"x": cells}, tmp_path / "a", column_encoding={"x": "raw"})
    description = {
        "x": tf.io.FixedLenFeature([], tf.string),
        "x/shape": tf.io.VarLenFeature(tf.int64),
        "x/dtype": tf.io.FixedLenFeature([], tf.string),
    }
    for record, cell in zip(tf.data.TFRecordDataset(str(tmp_path / "a")), cells, strict=True):
        found = tf.io.parse_single_example(record, description)
        values = tf.io.decode_raw(found["x"], tf.as_dtype(found["x/dtype"].numpy().decode()))
        values = tf.reshape(values, found["x/shape"].values).numpy()
        assert same(values != 0 if name == "bool" else values, cell)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", PROTO)
def test_parse_tensor_reads_our_tensor_protos(
    tf: Any, engine: str, tmp_path: Path, name: str, shape: tuple[int, ...]
) -> None:
    values = values_of(name, (2, *shape), 2)
    tfr.write_tfrecord({"x": values}, tmp_path / "a", column_encoding={"x": "tensor_proto"})
    for row, content in enumerate(parsed(tf, tmp_path / "a")):
        assert same(tf.io.parse_tensor(content, name).numpy(), values[row, ...])
    assert same(tfr.read_arrays(tmp_path / "a")["x"], values)


@pytest.mark.parametrize("encoding", ["raw", "tensor_proto"])
@pytest.mark.parametrize("name", PROTO)
def test_we_read_what_tensorflow_writes(
    tf: Any, engine: str, tmp_path: Path, write_records: Any, name: str, encoding: str
) -> None:
    values = values_of(name, (4, 2, 3), 3)
    contents = [
        row.tobytes() if encoding == "raw" else tf.io.serialize_tensor(tf.constant(row)).numpy() for row in values
    ]
    features = [{"x": tf.train.Feature(bytes_list=tf.train.BytesList(value=[content]))} for content in contents]
    payloads = [tf.train.Example(features=tf.train.Features(feature=each)).SerializeToString() for each in features]
    path = write_records(tmp_path / "a", payloads)
    for shape in ((2, 3), (None, 3)):
        found = tfr.read_arrays(path, schema={"x": tfr.tensor(name, shape, encoding=encoding)})["x"]
        assert same(found, values)
    decode = (
        (lambda data: tfr.io.decode_raw(data, name).reshape(2, 3))
        if encoding == "raw"
        else (lambda data: tfr.io.parse_tensor(data, name))
    )
    for row, content in enumerate(tfr.read_arrays(path, schema={"x": "binary"})["x"]):
        assert same(decode(content), values[row])


def test_idx_files_made_records(tf: Any, engine: str, data: Path, tmp_path: Path) -> None:
    images, labels = data / "train-images-idx3-ubyte.gz", data / "train-labels-idx1-ubyte.gz"
    tfr.write_tfrecord(tfr.formats.open_idx(images, labels), tmp_path / "a")
    wanted_images = tf.io.decode_raw(tf.io.decode_compressed(images.read_bytes(), "GZIP"), tf.uint8)[16:]
    wanted_labels = tf.io.decode_raw(tf.io.decode_compressed(labels.read_bytes(), "GZIP"), tf.uint8)[8:]
    description = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    found = tf.io.parse_example(next(iter(tf.data.TFRecordDataset(str(tmp_path / "a")).batch(10_000))), description)
    pixels = tf.reshape(tf.io.decode_raw(found["image"], tf.uint8), [-1, 28, 28])
    assert same(pixels.numpy(), wanted_images.numpy().reshape(-1, 28, 28))
    assert found["label"].numpy().tolist() == wanted_labels.numpy().tolist()


@pytest.mark.parametrize("name", ["S3", "U2", "datetime64[D]", "timedelta64[ps]"])
def test_dtypes_that_tensorflow_lacks_are_their_bytes(tf: Any, engine: str, tmp_path: Path, name: str) -> None:
    values = values_of(name, (3, 2), 4)
    tfr.write_tfrecord({"x": values}, tmp_path / "a")
    for row, content in enumerate(parsed(tf, tmp_path / "a")):
        assert same(np.frombuffer(content.numpy(), dtype_of(name)), values[row])


# ---- shuffling

RECORDS, BUFFER, ORDERS = 400, 50, 60


def positions(orders: list[list[int]]) -> np.ndarray[Any, Any]:
    """Where each record was given, for each order."""
    return np.argsort(np.array(orders), axis=1)


def test_shuffled_as_tf_data_does(tf: Any, engine: str, tmp_path: Path) -> None:
    """How far records move from their position: the same mean and spread as in tf.data, for the whole file."""
    path = str(tmp_path / "a")
    tfr.write_tfrecord({"n": np.arange(RECORDS)}, path)
    actual = [
        [
            n
            for batch in tfr.iter_arrays(path, batch_size=64, shuffle_buffer=BUFFER, seed=seed)
            for n in batch["n"].tolist()
        ]
        for seed in range(ORDERS)
    ]
    dataset = tf.data.Dataset.range(RECORDS)
    reference = [[int(n) for n in dataset.shuffle(BUFFER, seed=seed).as_numpy_iterator()] for seed in range(ORDERS)]
    for orders in (actual, reference):
        assert all(sorted(order) == list(range(RECORDS)) for order in orders)
        assert len({tuple(order) for order in orders}) == ORDERS
        assert all(
            n < at + BUFFER for order in orders for at, n in enumerate(order)
        )  # none is given before it was read
    moved = [positions(orders) - np.arange(RECORDS) for orders in (actual, reference)]
    for begin in range(0, RECORDS, 50):
        part = [each[:, begin : begin + 50] for each in moved]
        error = BUFFER * 4 / np.sqrt(part[0].size)
        assert abs(part[0].mean() - part[1].mean()) < error, begin
        assert abs(part[0].std() - part[1].std()) < error, begin
    quantiles = [np.quantile(each, [0.05, 0.25, 0.5, 0.75, 0.95]) for each in moved]
    assert np.abs(quantiles[0] - quantiles[1]).max() < 4
