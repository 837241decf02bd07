"""Schemas from TFDS's features.json, and the columns read with them from files written by TFDS."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import blobs, example, int64s, written
from tfrecord_io.columns.schema.formats.tfds_info import TfdsInfo
from tfrecord_io.columns.schema.schema import Schema

MODULE = "tensorflow_datasets.core.features"


@pytest.fixture
def tfds(data: Path) -> Path:
    return data / "tfds"


def read(directory: Path, schema: Schema) -> pa.Table:
    table = tfr.read_table(directory, schema=schema)
    table.validate(full=True)
    return table


def expected(directory: Path) -> list[dict[str, Any]]:
    """The records as TFDS read them, nested keys joined, the steps of a nested dataset as lists."""

    def flat(value: Any, name: str) -> dict[str, Any]:
        if isinstance(value, dict) and set(value) == {"base64"}:
            return {name: base64.b64decode(value["base64"])}
        if isinstance(value, dict) and set(value) == {"steps"} and isinstance(value["steps"], list):
            steps = [flat(step, name) for step in value["steps"]]
            return {key: [step[key] for step in steps] for key in (steps[0] if steps else ())}
        if isinstance(value, dict):
            return {
                k: v for key, each in value.items() for k, v in flat(each, f"{name}/{key}" if name else key).items()
            }
        if isinstance(value, list):
            return {name: [flat(each, "")[""] for each in value]}
        return {name: value}

    records = json.loads((directory / "expected.json").read_text(encoding="utf-8"))
    return [flat(record, "") for record in records]


def rows_of(column: pa.ChunkedArray) -> list[Any]:
    """Values with their shape; text as the bytes that TFDS returns."""

    def as_bytes(value: Any) -> Any:
        if isinstance(value, list):
            return [as_bytes(each) for each in value]
        return value.encode() if isinstance(value, str) else value

    if isinstance(column.type, pa.FixedShapeTensorType):
        chunks = [chunk.to_numpy_ndarray() for chunk in column.chunks]
        return [row.tolist() for chunk in chunks for row in chunk]
    return [as_bytes(value) for value in column.to_pylist()]


@pytest.mark.parametrize("name", ["everything", "episodes"])
def test_files_are_read_as_by_tfds(engine: str, tfds: Path, name: str) -> None:
    directory = tfds / name
    table = read(directory, Schema.from_tfds(directory))
    records = expected(directory)
    assert table.num_rows == len(records)
    for column in table.schema.names:
        rows = rows_of(table[column])
        for row, record in zip(rows, records, strict=True):
            expected_row = record.get(column, [])  # an episode without steps has no keys to show
            if column == "optional" and row is None:
                assert expected_row == -(2**31)  # TFDS's value for None
            elif column == "optional_text" and row is None:
                assert expected_row == b""
            else:
                assert row == expected_row, column
    assert set(table.schema.names) >= {key for record in records for key in record}


def test_none_of_an_optional_feature_is_null(tfds: Path) -> None:
    table = read(tfds / "everything", Schema.from_tfds(tfds / "everything"))
    assert table["optional"].null_count == 1
    assert table["optional_text"].null_count == 1
    assert table["optional_text"].to_pylist().count(b"") == 3


def test_action_of_an_episode_is_a_list_of_seven(tfds: Path) -> None:
    schema = Schema.from_tfds(tfds / "episodes")
    assert schema["steps/action"].type == pa.list_(pa.list_(pa.float32(), 7))
    assert read(tfds / "episodes", schema)["steps/action"].combine_chunks().value_lengths().to_pylist().count(0) == 1


def test_class_labels_by_name(tfds: Path) -> None:
    directory = tfds / "everything"
    schema = Schema.from_tfds(directory, class_labels="names")
    assert schema["label"].type == pa.dictionary(pa.int32(), pa.string())
    named, coded = read(directory, schema), read(directory, Schema.from_tfds(directory))
    names = ["cat", "dog", "größe"]
    assert named["label"].to_pylist() == [None if code == -1 else names[code] for code in coded["label"].to_pylist()]
    assert named["labels"].to_pylist() == [["ab"[code] for code in codes] for codes in coded["labels"].to_pylist()]
    assert named["objects/label"].to_pylist() == [
        ["xy"[code] for code in codes] for codes in coded["objects/label"].to_pylist()
    ]
    assert named["label"].chunk(0).dictionary.to_pylist() == names
    with pytest.raises(ValueError, match="codes, names"):
        Schema.from_tfds(directory, class_labels="both")


def test_both_forms_of_the_file_give_the_same_schema(tfds: Path) -> None:
    new, old = Schema.from_tfds(tfds / "everything"), Schema.from_tfds(tfds / "old" / "features.json")
    assert sorted(new.names) == sorted(old.names)
    for field in new:
        assert old[field.column] == field
        assert old[field.column].metadata == field.metadata


def described(directory: Path, features: dict[str, Any]) -> Path:
    document = {"type": f"{MODULE}.features_dict.FeaturesDict", "content": features}
    (directory / "features.json").write_text(json.dumps(document))
    return directory


def test_oldest_form_has_plain_content(tmp_path: Path) -> None:
    """The form in the docstring of FeatureConnector.to_json: no proto_cls, numbers as numbers, null as unknown."""
    features = {
        "input": {"type": f"{MODULE}.image_feature.Image", "content": {"shape": [None, None, 3], "dtype": "uint8"}},
        "target": {"type": f"{MODULE}.class_label_feature.ClassLabel", "content": {"num_classes": 10}},
        "ids": {"type": f"{MODULE}.text_feature.Text", "content": {"use_encoder": True}},
        "steps": {
            "type": f"{MODULE}.sequence_feature.Sequence",
            "content": {
                "feature": {"type": f"{MODULE}.feature.Tensor", "content": {"shape": [], "dtype": "float32"}},
                "length": None,
            },
        },
    }
    schema = Schema.from_tfds(described(tmp_path, features))
    assert {f.column: str(f.type) for f in schema} == {
        "input": "binary",
        "target": "int64",
        "ids": "list<item: int64>",
        "steps": "list<item: float>",
    }


def test_scalar_shape_is_an_empty_message(tmp_path: Path) -> None:
    tensor = {"pythonClassName": "my.own.Subclass", "tensor": {"shape": {}, "dtype": "uint64", "encoding": "none"}}
    document = {"pythonClassName": f"{MODULE}.features_dict.FeaturesDict", "featuresDict": {"features": {"n": tensor}}}
    (tmp_path / "features.json").write_text(json.dumps(document))
    assert Schema.from_tfds(tmp_path)["n"].type == pa.uint64()


@pytest.mark.parametrize("encoding", ["none", "bytes", "zlib"])
def test_a_tensor_of_bools_is_marked_uint8(engine: str, tmp_path: Path, encoding: str) -> None:
    values = np.array([[[True, False], [True, True]], [[False, False], [True, False]]])
    stored = {
        "none": lambda row: int64s(*row.reshape(-1).tolist()),
        "bytes": lambda row: blobs(row.tobytes()),
        "zlib": lambda row: blobs(zlib.compress(row.tobytes())),
    }
    content = {"shape": {"dimensions": ["2", "2"]}, "dtype": "bool", "encoding": encoding}
    directory = described(tmp_path, {"mask": {"type": f"{MODULE}.tensor_feature.Tensor", "content": content}})
    path = written(directory / "d-train.tfrecord-00000-of-00001", [example(mask=stored[encoding](v)) for v in values])
    column = tfr.read_table(path)["mask"].combine_chunks()
    assert column.type == pa.fixed_shape_tensor(pa.uint8(), (2, 2))
    assert np.array_equal(column.to_numpy_ndarray(), values)
    for array in (tfr.read_arrays(path)["mask"], np.stack(list(tfr.read_tfrecord(path)["mask"]))):
        assert array.dtype == np.bool_
        assert np.array_equal(array, values)
    schema = Schema.from_tfds(directory)
    assert Schema.from_json(schema.to_json()) == schema == Schema.from_arrow(schema.to_arrow())


def test_unknown_class_is_refused_by_name(tmp_path: Path) -> None:
    features = {"sound": {"type": "my.own.Spectrum", "content": {}}}
    with pytest.raises(tfr.errors.SchemaError, match="Spectrum") as caught:
        Schema.from_tfds(described(tmp_path, features))
    assert caught.value.feature == "sound"
    assert caught.value.path == str(tmp_path / "features.json")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"type": "x.Tensor"}', '{"type": "x.Text", "content": {}}', "[" * 100_000]
)
def test_damaged_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "features.json").write_text(text)
    with pytest.raises(tfr.errors.SchemaError):
        Schema.from_tfds(tmp_path)


def test_a_dtype_that_is_no_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(tfr.errors.SchemaError, match="dtype , has no Arrow type"):
        Schema.from_tfds(described(tmp_path, {"x": {"type": "x.Tensor", "content": {"shape": [], "dtype": ","}}}))


def test_an_error_in_the_names_of_classes_names_their_file(tmp_path: Path) -> None:
    (tmp_path / "label.labels.txt").write_bytes(b"\xff")
    with pytest.raises(tfr.errors.SchemaError, match="not UTF-8") as caught:
        Schema.from_tfds(described(tmp_path, {"label": {"type": "x.ClassLabel", "content": {}}}), class_labels="names")
    assert caught.value.path == str(tmp_path / "label.labels.txt")


def test_deep_nesting_is_refused(tmp_path: Path) -> None:
    feature: dict[str, Any] = {"type": "x.Text", "content": {}}
    for _ in range(200):
        feature = {"type": "x.Sequence", "content": {"feature": feature, "length": None}}
    with pytest.raises(tfr.errors.SchemaError, match="deep"):
        Schema.from_tfds(described(tmp_path, {"x": feature}))


def test_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"features\.json"):
        Schema.from_tfds(tmp_path)


# ---- dataset_info.json


def test_shard_lengths_are_those_of_the_files(tfds: Path) -> None:
    lengths = TfdsInfo.lengths_in(tfds / "everything")
    assert lengths == {"everything-train.tfrecord-00000-of-00001": 4}


def test_without_dataset_info_no_number_is_known(tmp_path: Path) -> None:
    assert TfdsInfo.lengths_in(tmp_path) == {}


def test_names_of_shards_follow_the_template(tmp_path: Path) -> None:
    splits = [
        {
            "name": "train",
            "shardLengths": ["2", "3"],
            "filepathTemplate": "{DATASET}/{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
        },
        {"name": "test", "shardLengths": [1]},
        {"name": "none"},
    ]
    (tmp_path / "dataset_info.json").write_text(json.dumps({"name": "d", "splits": splits}))
    assert TfdsInfo.lengths_in(tmp_path) == {
        "d/train.tfrecord-00000-of-00002": 2,
        "d/train.tfrecord-00001-of-00002": 3,
        "d-test.tfrecord-00000-of-00001": 1,
    }
    (tmp_path / "dataset_info.json").write_text("{")
    with pytest.raises(tfr.errors.SchemaError):
        TfdsInfo.lengths_in(tmp_path)


@pytest.mark.parametrize(("count", "first"), [(99_999, "00000-of-99999"), (100_000, "000000-of-100000")])
def test_indexes_of_shards_have_the_digits_of_their_number(tmp_path: Path, count: int, first: str) -> None:
    splits = [{"name": "train", "shardLengths": ["1"] * count}]
    (tmp_path / "dataset_info.json").write_text(json.dumps({"name": "d", "splits": splits}))
    names = list(TfdsInfo.lengths_in(tmp_path))
    assert (names[0], len({len(name) for name in names})) == (f"d-train.tfrecord-{first}", 1)
