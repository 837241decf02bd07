"""TensorFlow reads what we write, with the schema embedded or not, compressed or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FLOATS = np.array([0.0, -0.0, 1e-45, 3.4028235e38, np.inf, -np.inf, np.nan], np.float32)
TABLE = pa.table(
    {
        "whole": pa.array([1, None, INT64_MIN, INT64_MAX, 0, -1, 7], pa.int64()),
        "flag": pa.array([True, False, None, True, False, True, False]),
        "score": pa.array(FLOATS),
        "name": pa.array(["cat", "größe", "日本", "", None, "a\nb", "dog"]),
        "raw": pa.array([b"\x00\xff", b"", None, b"x" * 300, b"\x80", b"1", b"2"], pa.binary()),
        "fixed": pa.array([[float(i), i + 0.5] for i in range(7)], pa.list_(pa.float32(), 2)),
        "ragged": pa.array([[1, 2], [], None, [INT64_MIN], [0] * 100, [5], []], pa.list_(pa.int64())),
        "größe/日本 x": pa.array(list(range(7)), pa.uint8()),
        "": pa.array(list(range(7)), pa.int16()),
    }
)


@pytest.fixture(params=[True, False], ids=["schema embedded", "no schema"])
def embed_schema(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(params=[None, "gzip", "zlib"])
def compression(request: pytest.FixtureRequest) -> str | None:
    return request.param


@pytest.fixture
def dataset(tf: Any, engine: str, embed_schema: bool, compression: str | None, tmp_path: Path) -> Any:
    """TABLE, written by us, as TensorFlow's dataset of payloads."""
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(TABLE, path, compression=compression, embed_schema=embed_schema)
    return tf.data.TFRecordDataset(str(path), compression_type=(compression or "").upper())


def _description(tf: Any) -> dict[str, Any]:
    fixed = tf.io.FixedLenFeature
    return {
        "whole": fixed([], tf.int64, default_value=42),
        "flag": fixed([], tf.int64, default_value=9),
        "score": fixed([], tf.float32),
        "name": fixed([], tf.string, default_value="?"),
        "raw": fixed([], tf.string, default_value="?"),
        "fixed": fixed([2], tf.float32),
        "ragged": tf.io.RaggedFeature(tf.int64),
        "größe/日本 x": fixed([], tf.int64),
        "": fixed([], tf.int64),
    }


def _assert_parsed(parsed: dict[str, Any]) -> None:
    assert parsed["whole"].numpy().tolist() == [1, 42, INT64_MIN, INT64_MAX, 0, -1, 7]
    assert parsed["flag"].numpy().tolist() == [1, 0, 9, 1, 0, 1, 0]
    assert parsed["score"].numpy().view(np.uint32).tolist() == FLOATS.view(np.uint32).tolist()
    assert [v.decode() for v in parsed["name"].numpy()] == ["cat", "größe", "日本", "", "?", "a\nb", "dog"]
    assert parsed["raw"].numpy().tolist() == [b"\x00\xff", b"", b"?", b"x" * 300, b"\x80", b"1", b"2"]
    assert parsed["fixed"].numpy().tolist() == [[float(i), i + 0.5] for i in range(7)]
    assert parsed["größe/日本 x"].numpy().tolist() == list(range(7))
    assert parsed[""].numpy().tolist() == list(range(7))


def test_parse_example(tf: Any, dataset: Any) -> None:
    parsed = tf.io.parse_example(next(iter(dataset.batch(100))), _description(tf))
    _assert_parsed(parsed)
    assert parsed["ragged"].to_list() == [[1, 2], [], [], [INT64_MIN], [0] * 100, [5], []]


def test_parse_single_example(tf: Any, dataset: Any) -> None:
    rows = [tf.io.parse_single_example(record, _description(tf)) for record in dataset]
    assert [row["ragged"].numpy().tolist() for row in rows] == [[1, 2], [], [], [INT64_MIN], [0] * 100, [5], []]
    del_ragged = [{k: v for k, v in row.items() if k != "ragged"} for row in rows]
    _assert_parsed({name: tf.stack([row[name] for row in del_ragged]) for name in del_ragged[0]})


def test_messages_leave_out_nulls_and_keep_empty_lists(tf: Any, dataset: Any) -> None:
    examples = [tf.train.Example.FromString(record.numpy()) for record in dataset]
    for name in TABLE.schema.names:
        present = [name in example.features.feature for example in examples]
        assert present == TABLE[name].is_valid().to_pylist(), name
    empty = examples[1].features.feature["ragged"]
    assert empty.WhichOneof("kind") == "int64_list"
    assert list(empty.int64_list.value) == []


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
        pa.uint64(),
        pa.timestamp("us", "UTC"),
        pa.date32(),
        pa.duration("ns"),
    ],
    ids=str,
)
def test_every_whole_number_type_is_an_int64_feature(tf: Any, engine: str, kind: pa.DataType, tmp_path: Path) -> None:
    path = tmp_path / "whole.tfrecord"
    values = pa.array([0, 1, 100, None], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
    tfr.write_tfrecord(pa.table({"x": values}), path)
    records = next(iter(tf.data.TFRecordDataset(str(path)).batch(4)))
    parsed = tf.io.parse_example(records, {"x": tf.io.FixedLenFeature([], tf.int64, default_value=-1)})
    assert parsed["x"].numpy().tolist() == [0, 1, 100, -1]


def test_a_dataframe_of_many_rows_by_two_threads(tf: Any, engine: str, tmp_path: Path) -> None:
    path = tmp_path / "many.tfrecord"
    rng = np.random.default_rng(7)
    frame = pd.DataFrame(
        {"i": rng.integers(INT64_MIN, INT64_MAX, 50_000), "f": rng.standard_normal(50_000, np.float32)}
    )
    tfr.write_tfrecord(frame, path, threads=2)
    description = {"i": tf.io.FixedLenFeature([], tf.int64), "f": tf.io.FixedLenFeature([], tf.float32)}
    parsed = [tf.io.parse_example(batch, description) for batch in tf.data.TFRecordDataset(str(path)).batch(8192)]
    np.testing.assert_array_equal(np.concatenate([p["i"] for p in parsed]), frame["i"])
    np.testing.assert_array_equal(np.concatenate([p["f"] for p in parsed]), frame["f"])


def test_record_writer_and_encode_example(tf: Any, compression: str | None, tmp_path: Path) -> None:
    path = tmp_path / "records.tfrecord"
    payloads = [b"", b"line of text", bytes(range(256)) * 100, tfr.encode_example({"n": [1, 2], "s": b"x", "f": 0.5})]
    with tfr.RecordWriter(path, compression=compression) as writer:
        for payload in payloads:
            writer.write(payload)
    read = [r.numpy() for r in tf.data.TFRecordDataset(str(path), compression_type=(compression or "").upper())]
    assert read == payloads
    feature = tf.train.Example.FromString(read[-1]).features.feature
    assert list(feature["n"].int64_list.value) == [1, 2]
    assert list(feature["s"].bytes_list.value) == [b"x"]
    assert list(feature["f"].float_list.value) == [0.5]
