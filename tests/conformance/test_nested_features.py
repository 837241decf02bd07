"""The features of nested columns are those that TensorFlow reads as ragged tensors."""

from pathlib import Path
from typing import Any

import pyarrow as pa
from scipy import sparse

import tfrecord_io as tfr

LISTS = pa.list_(pa.list_(pa.int32()))


def ragged(tf: Any, dtype: Any, stem: str, depth: int = 1) -> Any:
    lengths = [tf.io.RaggedFeature.RowLengths(f"{stem}/ragged_row_lengths_{level}") for level in range(depth)]
    return tf.io.RaggedFeature(dtype, f"{stem}/ragged_flat_values", lengths)


def test_tensorflow_reads_columns_under_the_names_of_its_description(tf: Any, tmp_path: Path) -> None:
    rows = [[[1, 2], [], [3]], [], None]
    parts = tf.io.RaggedFeature.RowLengths("l"), tf.io.RaggedFeature.UniformRowLength(2)
    description = {
        "x": tf.io.RaggedFeature(tf.int64, "v", parts[:1], validate=True),
        "y": tf.io.RaggedFeature(tf.int64, "w", parts[1:], validate=True),
    }
    schema = tfr.Schema.from_feature_description(description)
    tfr.write_tfrecord({"x": rows, "y": [[[1, 2]], [], [[3, 4], [5, 6]]]}, tmp_path / "a", schema=schema)
    records = list(tf.data.TFRecordDataset(str(tmp_path / "a")).as_numpy_iterator())
    parsed = {name: value.to_list() for name, value in tf.io.parse_example(records, description).items()}
    assert parsed == {"x": [rows[0], [], []], "y": [[[1, 2]], [], [[3, 4], [5, 6]]]}


def test_tensorflow_reads_nested_columns(tf: Any, tmp_path: Path) -> None:
    table = pa.table(
        {
            "ll": pa.array([[[1, 2], []], None, []], LISTS),
            "lll": pa.array([[[[1], []], [[2, 3]]], [], None], pa.list_(LISTS)),
            "m": pa.array([[("a", [1.5, 2.0]), ("c", [])], None, []], pa.map_(pa.string(), pa.list_(pa.float32()))),
            "n": pa.array([[1, None], None, []], pa.list_(pa.int64())),
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a")
    records = list(tf.data.TFRecordDataset(str(tmp_path / "a")).as_numpy_iterator())
    spec = {
        "ll": ragged(tf, tf.int64, "ll"),
        "lll": ragged(tf, tf.int64, "lll", 2),
        "m/key": tf.io.RaggedFeature(tf.string),
        "m/value": ragged(tf, tf.float32, "m/value"),
        "n": tf.io.RaggedFeature(tf.int64),
        "n/null_positions": tf.io.RaggedFeature(tf.int64),
    }
    parsed = {name: value.to_list() for name, value in tf.io.parse_example(records, spec).items()}
    assert parsed == {
        "ll": [[[1, 2], []], [], []],
        "lll": [[[[1], []], [[2, 3]]], [], []],
        "m/key": [[b"a", b"c"], [], []],
        "m/value": [[[1.5, 2.0], []], [], []],
        "n": [[1, 0], [], []],
        "n/null_positions": [[1], [], []],
    }


def test_tensorflow_reads_a_matrix_of_scipy(tf: Any, tmp_path: Path) -> None:
    matrix = sparse.random(20, 9, 0.3, "csr", random_state=0, dtype="float32")
    tfr.write_tfrecord({"x": matrix}, tmp_path / "a")
    records = list(tf.data.TFRecordDataset(str(tmp_path / "a")).as_numpy_iterator())
    feature = tf.io.SparseFeature("x/indices", "x/values", tf.float32, 9, already_sorted=True)
    parsed = tf.io.parse_example(records, {"x": feature})["x"]
    assert tf.sparse.to_dense(parsed).numpy().tolist() == matrix.toarray().tolist()
    arrays = tfr.read_arrays(tmp_path / "a", schema={"x": feature}, ragged="csr")
    assert (arrays["x"] != matrix).nnz == 0
