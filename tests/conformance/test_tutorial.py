"""examples/tutorial.md, which needs no TensorFlow: TensorFlow reads its files, and its descriptions are accepted."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr

PAGE = Path(__file__).parent.parent.parent / "examples" / "tutorial.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.filterwarnings("ignore::tfrecord_io.errors.PrecisionWarning")


@pytest.fixture(scope="module")
def tutorial(tf: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the page defines, after it has run in the folder "HERE"."""
    folder = tmp_path_factory.mktemp("tutorial")
    found: dict[str, Any] = {"__name__": "tutorial", "HERE": folder}
    with contextlib.chdir(folder):
        exec(compile("\n".join(PYTHON.findall(PAGE.read_text(encoding="utf-8"))), str(PAGE), "exec"), found)
    return found


@pytest.fixture(scope="module")
def described(tf: Any, tutorial: dict[str, Any]) -> dict[str, Any]:
    """The page's feature description, of TensorFlow's own objects."""
    return {
        "feature0": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature1": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "feature2": tf.io.FixedLenFeature([], tf.string, default_value=""),
        "feature3": tf.io.FixedLenFeature([], tf.float32, default_value=0.0),
    }


def _records(tf: Any, tutorial: dict[str, Any], name: str, compression: str = "") -> list[bytes]:
    return [
        record.numpy() for record in tf.data.TFRecordDataset(str(tutorial["HERE"] / name), compression_type=compression)
    ]


def _assert_columns(tutorial: dict[str, Any], parsed: dict[str, Any]) -> None:
    """What went in; the bool as 0 and 1, float64 rounded."""
    dtypes = {"feature0": np.int64, "feature1": np.int64, "feature2": object, "feature3": np.float32}
    assert set(parsed) == set(dtypes)
    for name, dtype in dtypes.items():
        assert parsed[name].dtype == dtype, name
        assert parsed[name].tolist() == tutorial[name].astype(dtype).tolist(), name


@pytest.mark.parametrize("name", ["test.tfrecord", "short.tfrecord"])
def test_tensorflow_reads_the_file(tf: Any, tutorial: dict[str, Any], described: dict[str, Any], name: str) -> None:
    """As TensorFlow's tutorial does: the record by hand, and the short way."""
    dataset = tf.data.TFRecordDataset(str(tutorial["HERE"] / name))
    rows = list(dataset.map(lambda record: tf.io.parse_single_example(record, described)).as_numpy_iterator())
    assert len(rows) == tutorial["n_observations"]
    one_by_one = {key: [row[key] for row in rows] for key in rows[0]}
    _assert_columns(
        tutorial,
        {key: np.array(each, object if key == "feature2" else each[0].dtype) for key, each in one_by_one.items()},
    )
    batch = tf.io.parse_example(_records(tf, tutorial, name), described)
    _assert_columns(tutorial, {key: value.numpy() for key, value in batch.items()})


def test_tensorflows_messages_are_as_ours(tf: Any, tutorial: dict[str, Any]) -> None:
    def serialize(feature0: Any, feature1: Any, feature2: Any, feature3: Any) -> bytes:
        feature = {
            "feature0": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(feature0)])),
            "feature1": tf.train.Feature(int64_list=tf.train.Int64List(value=[feature1])),
            "feature2": tf.train.Feature(bytes_list=tf.train.BytesList(value=[feature2])),
            "feature3": tf.train.Feature(float_list=tf.train.FloatList(value=[feature3])),
        }
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    reference = tf.train.Example.FromString(serialize(False, 4, b"goat", 0.9876))
    assert tf.train.Example.FromString(tutorial["serialized"]) == reference
    assert tfr.train.Example.FromString(reference.SerializeToString()) == tutorial["example"]
    written = _records(tf, tutorial, "test.tfrecord")[:200]
    rows = zip(*(tutorial[f"feature{i}"][:200] for i in range(4)), strict=True)
    for record, row in zip(written, rows, strict=True):
        assert tf.train.Example.FromString(record) == tf.train.Example.FromString(serialize(*row))


def test_tensorflows_descriptions_give_the_same(
    engine: str, tf: Any, tutorial: dict[str, Any], described: dict[str, Any]
) -> None:
    records, actual = _records(tf, tutorial, "test.tfrecord"), tutorial["feature_description"]
    reference = tfr.io.parse_example(records, described)
    _assert_columns(tutorial, reference)
    expected = tf.io.parse_example(records, described)
    for name, mine in tfr.io.parse_example(records, actual).items():
        for other in (reference[name], expected[name].numpy()):
            assert (mine.dtype, mine.shape, mine.tolist()) == (other.dtype, other.shape, other.tolist()), name
    one = tf.io.parse_single_example(records[0], described)
    for description in (actual, described):
        for name, mine in tfr.io.parse_example(records[0], description).items():
            assert mine == one[name].numpy(), name
            assert np.shape(mine) == one[name].shape, name


def test_tensorflows_descriptions_are_schemas(engine: str, tutorial: dict[str, Any], described: dict[str, Any]) -> None:
    schema = tfr.Schema.from_feature_description(described)
    assert schema == tfr.Schema.from_feature_description(tutorial["feature_description"])
    table = tfr.read_table(tutorial["HERE"] / "test.tfrecord", schema=schema)
    for name in ("feature0", "feature1", "feature2"):
        assert table[name].to_pylist() == tutorial[name].tolist(), name
    assert table["feature3"].to_pylist() == tutorial["feature3"].astype(np.float32).tolist()


def test_defaults_fill_alike(engine: str, tf: Any, described: dict[str, Any]) -> None:
    """Feature descriptions of both libraries, for records that lack features or have them without a kind."""
    bare = tf.train.Example()
    bare.features.feature["feature1"].SetInParent()
    records = [
        b"",
        bare.SerializeToString(),
        tfr.encode_example({"feature1": 7, "feature2": b"\xff", "feature3": -0.0}),
    ]
    expected = tf.io.parse_example(records, described)
    found = tfr.io.parse_example(records, described)
    for name, value in expected.items():
        assert found[name].tolist() == value.numpy().tolist(), name
        assert found[name].dtype == value.numpy().dtype, name


def test_tensorflow_reads_any_bytes(tf: Any, tutorial: dict[str, Any]) -> None:
    assert _records(tf, tutorial, "lines.tfrecord.gz", "GZIP") == [b"one", b"two", b""]


def test_tensorflow_reads_the_images(engine: str, tf: Any, tutorial: dict[str, Any]) -> None:
    numbers = {name: tf.io.FixedLenFeature([], tf.int64) for name in ("height", "width", "depth", "label")}
    reference = {**numbers, "image_raw": tf.io.FixedLenFeature([], tf.string)}
    records = _records(tf, tutorial, "images.tfrecord")
    parsed = tf.io.parse_example(records, reference)
    assert {name: value.numpy().tolist() for name, value in parsed.items()} == tutorial["images"]
    assert {name: value.tolist() for name, value in tfr.io.parse_example(records, reference).items()} == tutorial[
        "images"
    ]
    assert tf.io.decode_gif(parsed["image_raw"][0]).shape == (1, 1, 1, 3)


def test_tensorflow_reads_the_sequences(engine: str, tf: Any, tutorial: dict[str, Any]) -> None:
    context = {"length": tf.io.FixedLenFeature([], tf.int64)}
    lists = {"words": tf.io.FixedLenSequenceFeature([], tf.int64), "frames": tf.io.VarLenFeature(tf.float32)}
    sentences = tutorial["sentences"]
    for at, record in enumerate(_records(tf, tutorial, "sequences.tfrecord")):
        parsed, steps = tf.io.parse_single_sequence_example(
            record, context, {**lists, "frames": tf.io.RaggedFeature(tf.float32)}
        )
        assert parsed["length"].numpy() == sentences["length"][at]
        assert steps["words"].numpy().tolist() == sentences["words"][at]
        assert steps["frames"].to_list() == sentences["frames"][at]
    schema = tfr.Schema.from_feature_description(context, lists)
    table = tfr.read_table(tutorial["HERE"] / "sequences.tfrecord", schema=schema)
    assert {name: table[name].to_pylist() for name in sentences} == sentences
