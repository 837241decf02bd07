"""The output of ``tfr schema --as`` can be pasted: running or parsing it restores the schema."""

from __future__ import annotations

import tempfile
import types
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.apps.cli.schema_text import resolve_schema, schema_text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "id": pa.array([1, 2], pa.int32()),
            "seen": pa.array([0, 1], pa.timestamp("us", "UTC")),
            "kind": pa.array(["a", None]).dictionary_encode(),
            "price": pa.array(["1.50", "2.00"]).cast(pa.decimal128(10, 2)),
            "box": pa.array([{"x": 1.0, "on": True}, None], pa.struct([("x", pa.float32()), ("on", pa.bool_())])),
            "tags": pa.array([["a"], []], pa.list_(pa.string())),
            "pair": pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)),
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    return tmp_path / "a.tfrecord"


def pasted(text: str, **names: Any) -> dict[str, Any]:
    exec(text, names)
    return names


def test_arrow_code_restores_the_schema(run: Any, path: Path) -> None:
    shown = run("schema", "--as", "arrow", path)
    assert shown.exit_code == 0
    assert pasted(shown.output)["schema"].equals(tfr.read_table(path).schema)


def test_python_code_restores_the_schema(run: Any, path: Path) -> None:
    schema = pasted(run("schema", "--as", "python", path).output)["schema"]
    assert tfr.read_table(path, schema=schema).to_pylist() == tfr.read_table(path).to_pylist()


@pytest.mark.parametrize("form", ["python", "arrow"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"a": [[1], [2, 3]], "b": "c"}]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[[("a", {"b": 1})]]], pa.list_(pa.map_(pa.string(), pa.struct({"b": pa.int8()}), keys_sorted=True))),
    ],
    ids=lambda column: str(column.type),
)
def test_code_restores_nested_columns(run: Any, tmp_path: Path, column: pa.Array, form: str) -> None:
    tfr.write_tfrecord({"x": column}, tmp_path / "a.tfrecord")
    shown = run("schema", "--as", form, tmp_path / "a.tfrecord")
    assert shown.exit_code == 0
    read = tfr.Schema.parse(pasted(shown.output)["schema"])
    assert read == tfr.Schema.from_arrow(tfr.read_table(tmp_path / "a.tfrecord").schema)


def test_json_restores_the_schema(run: Any, path: Path) -> None:
    assert tfr.Schema.from_json(run("schema", "--as", "json", path).output) == tfr.Schema.from_arrow(
        tfr.read_table(path).schema
    )


def test_tfx_text_is_read_back(run: Any, path: Path) -> None:
    names = tfr.Schema.from_tfx(run("schema", "--as", "tfx", path).output).names
    assert {"id", "tags", "pair"} <= set(names)


@pytest.mark.plugins("tensorflow")
def test_a_feature_description_parses_the_file(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "b.tfrecord"
    tfr.write_tfrecord({"id": [1, 2], "tags": [["a"], []]}, path, embed_schema=False)
    text = run("schema", "--as", "feature_description", path).output.replace("import tensorflow as tf", "")
    tensorflow = types.SimpleNamespace(io=tfr.io, int64="int64", string="string", float32="float32")
    description = pasted(text, tf=tensorflow)["feature_description"]
    with tfr.RecordReader(path) as records:
        parsed = tfr.io.parse_example(list(records), description)
    assert parsed["id"].tolist() == [1, 2]
    assert parsed["tags"].dense_shape.tolist() == [2, 1]


@given(
    lengths=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    values=st.sampled_from([1, 0.5, "a", b"\xff"]),
    embed_schema=st.booleans(),
)
def test_lists_of_one_length_are_fixed_length_features(lengths: list[int], values: Any, embed_schema: bool) -> None:
    type_ = pa.list_(pa.array([values]).type)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        table = pa.table({"x": pa.array([[values] * length for length in lengths], type_)})
        tfr.write_tfrecord(table, path, embed_schema=embed_schema, float64="round")
        schema, *_ = resolve_schema(path, "feature_description", {})
        features = schema.to_feature_description()
        if not features:  # no record has a value
            assert set(lengths) == {0}
            return
        n = lengths[0] if len(set(lengths)) == 1 and lengths[0] else None
        if n is not None:
            fixed = (n,) if embed_schema or n > 1 else ()  # without a schema, one value in each record is not a list
            assert isinstance(features["x"], tfr.io.FixedLenFeature)
            assert features["x"].shape == fixed
        else:
            assert not isinstance(features["x"], tfr.io.FixedLenFeature)
        tfr.io.parse_example(list(tfr.RecordReader(path)), features)


def test_tensors_are_described_with_their_companion_features(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    tfr.write_tfrecord({"x": np.ones((2, 3, 4), "f4"), "maybe": [None, np.ones((2, 2))], "x_shape": [1, 2]}, path)
    text = run("schema", "--as", "feature_description", path).output
    assert "'x': tf.io.FixedLenFeature(shape=(), dtype=tf.string)," in text
    assert "'x/shape': tf.io.FixedLenFeature(shape=(2,), dtype=tf.int64)," in text
    assert "'x/dtype': tf.io.FixedLenFeature(shape=(), dtype=tf.string)," in text
    assert "'maybe/shape': tf.io.VarLenFeature(dtype=tf.int64)," in text
    assert "# 'x': tf.reshape(tf.io.decode_raw(parsed['x'], tf.float32), [3, 4])" in text
    assert "# 'maybe': tf.reshape(tf.io.decode_raw(parsed['maybe'].values[0], tf.float64), [2, 2])" in text
    tensorflow = types.SimpleNamespace(io=tfr.io, int64="int64", string="string", float32="float32")
    with tfr.RecordReader(path) as records:
        parsed = tfr.io.parse_example(
            list(records), pasted(text.replace("import tensorflow as tf", ""), tf=tensorflow)["feature_description"]
        )
    assert parsed["x/shape"].tolist() == [[3, 4], [3, 4]]
    assert tfr.Schema.from_tfx(run("schema", "--as", "tfx", path).output)["x"].encoding == "raw"
    assert "type: BYTES" in run("schema", "--as", "tfx", path).output


def test_numbers_stored_as_bytes_are_described_with_their_dtype(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    data = {"d": [0.5, 1.5], "l": [[1, 2], [3]], "b": [b"x", b"y"], "f": [True, False]}
    tfr.write_tfrecord(data, path, column_encoding=dict.fromkeys("dlf", "raw"), float64="raw")
    for keywords in ({}, {"embed_schema": False}):
        tfr.write_tfrecord(data, path, column_encoding=dict.fromkeys("dlf", "raw"), **keywords)
        text = run("schema", "--as", "feature_description", path).output
        assert "# 'd': tf.reshape(tf.io.decode_raw(parsed['d'], tf.float64), [])" in text
        assert "# 'l': tf.reshape(tf.io.decode_raw(parsed['l'], tf.int64), [-1])" in text
        assert "# 'f': tf.reshape(tf.io.decode_raw(parsed['f'], tf.bool), [])" in text
        assert "# 'b'" not in text


def test_an_unknown_format_is_a_usage_error(run: Any, path: Path) -> None:
    assert run("schema", "--as", "xml", path).exit_code == 2


@pytest.mark.parametrize("form", ["json", "tfx", "python", "arrow", "feature_description"])
def test_unprintable_names_are_escaped(tmp_path: Path, form: str) -> None:
    name = "a\x9b31m\u202e\u2028\x1b[0m\n\U000e0001é\\"
    tfr.write_tfrecord({name: [1, 2]}, tmp_path / "a")
    schema = resolve_schema(tmp_path / "a", form, {})[0]
    text = schema_text(schema, form)
    assert all(character.isprintable() for line in text.split("\n") for character in line)
    assert "é" in text
    if form in ("json", "tfx"):
        again = tfr.Schema.from_json(text) if form == "json" else tfr.Schema.from_tfx(text)
        assert again.names == [name]


@pytest.mark.parametrize("embed_schema", [True, False])
@pytest.mark.parametrize("form", ["feature_description", "tfx"])
def test_columns_of_folders_are_no_features(run: Any, tmp_path: Path, form: str, embed_schema: bool) -> None:
    """TensorFlow would parse a feature that no record has without an error, as an empty column."""
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        tfr.write_tfrecord({"n": [1, 2]}, tmp_path / f"day={day}" / "a.tfrecord", embed_schema=embed_schema)
    text = run("schema", "--as", form, tmp_path).output
    assert "'n'" in text or '"n"' in text
    assert "day" not in text
    assert "day" in run("schema", "--as", "python", tmp_path).output, "a schema to read the folder with has it"


def test_columns_of_folders_are_no_features_of_declared_types(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "day=1" / "a.tfrecord")
    schema, source, _ = resolve_schema(tmp_path, "feature_description", {"schema": {"n": "int32"}})
    assert (schema.names, source) == (["n"], "schema=")


def test_descriptions_of_arrays_have_the_features_with_their_sizes() -> None:
    pixels = tfr.tensor("uint8", ("height", "width", 3))
    schema = tfr.Schema(
        {
            "image": pixels,
            "needed": tfr.tensor("uint8", ("rows", None), required=True),
            "data": tfr.tensor("uint8", "shape"),
            "frames": tfr.list_(pixels),
            "width": "int64",
        }
    )
    text = schema_text(schema, "feature_description")
    for line in (
        "'image': tf.io.VarLenFeature(dtype=tf.string)",
        "'needed': tf.io.FixedLenFeature(shape=(), dtype=tf.string)",
        "'frames': tf.io.VarLenFeature(dtype=tf.string)",
        "'height': tf.io.FixedLenFeature(shape=(), dtype=tf.int64, default_value=0)",
        "'rows': tf.io.FixedLenFeature(shape=(), dtype=tf.int64)",
        "'width': tf.io.VarLenFeature(dtype=tf.int64)",
        "decode_raw(parsed['image'].values[0], tf.uint8), [parsed['height'], parsed['width'].values[0], 3])",
        "decode_raw(parsed['needed'], tf.uint8), [parsed['rows'], -1])",
    ):
        assert line in text
    assert all(word not in text for word in ("image/shape", "needed/shape", "# 'frames'"))


def test_tfx_and_arrow_schemas_keep_where_shapes_stand() -> None:
    pixels = tfr.tensor("uint8", ("height", "width", 3))
    schema = tfr.Schema({"image": pixels, "frames": tfr.list_(pixels), "pair": tfr.list_(pixels, 2, required=True)})
    assert tfr.Schema.from_tfx(schema.to_tfx()) == schema
    assert schema.to_tfx().count("type: BYTES") == 3
    names: dict[str, Any] = {}
    exec(schema_text(schema, "arrow"), names)
    assert tfr.Schema.from_arrow(names["schema"]) == schema
