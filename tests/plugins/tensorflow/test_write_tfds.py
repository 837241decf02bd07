"""Tables written as datasets of TFDS; TFDS itself reads them in tests/conformance/test_tfds_written.py."""

from __future__ import annotations

import json
import random
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import COMPLETE, rounds
from sample_images import image_of
from transfers import convert_flat

INT, FLOAT = st.integers(-(2**15) + 1, 2**15 - 1), st.floats(-4, 4, width=16)
ITEMS = {
    pa.int16(): INT,
    pa.float32(): FLOAT,
    pa.string(): st.text("aß"),
    pa.list_(pa.float32(), 2): st.lists(FLOAT, min_size=2, max_size=2),
}
PLAIN = {**ITEMS, pa.uint64(): st.integers(0, 2**64 - 1), pa.bool_(): st.booleans(), pa.binary(): st.binary()}


@st.composite
def columns(draw: Any) -> pa.Table:
    """A table of columns that TFDS has features for."""
    rows = draw(st.integers(1, 5))
    arrays = {}
    for number in range(draw(st.integers(1, 4))):
        levels = draw(st.integers(0, 3))
        kinds = ITEMS if levels else PLAIN
        type_ = draw(st.sampled_from(list(kinds)))
        values = kinds[type_]
        for _ in range(levels):
            values, type_ = st.lists(values, max_size=3), pa.list_(type_)
        arrays[f"group/c{number}"] = pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), type_)
    return pa.table(arrays)


@given(columns(), st.integers(1, 3))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, table: pa.Table, shards: int) -> None:
    path = tmp_path_factory.mktemp("tfds") / "mine" / "1.0.0"
    report = tfr.formats.write_tfds(table, path, shards=shards)
    assert (report.records, report.columns) == (table.num_rows, tuple(table.schema.names))
    back = tfr.read_table(tfr.dataset(path, split="train")).select(table.schema.names)
    assert back.schema.types == table.schema.types
    assert back.to_pylist() == table.to_pylist()
    info = json.loads((path / "dataset_info.json").read_text())
    assert info["splits"][0]["statistics"]["numExamples"] == str(table.num_rows)


def test_views_and_run_ends_are_written(tmp_path: Path) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array(["a"]))
    lists = pa.array([[1], [2, 3]], pa.list_view(pa.int64()))
    table = pa.table({"lists": lists, "runs": runs, "text": pa.array(["x", "y"], pa.string_view())})
    tfr.formats.write_tfds(table, tmp_path / "mine" / "1.0.0")
    assert tfr.read_table(tmp_path / "mine" / "1.0.0").to_pylist() == table.to_pylist()


def test_tensors_structs_and_classes(tmp_path: Path) -> None:
    path = tmp_path / "mine" / "2.0.1"
    table = tfr.read_table
    rows = {
        "mask": np.arange(12).reshape(2, 2, 3).astype(bool),
        "grid": np.arange(12, dtype=np.int16).reshape(2, 2, 3),
        "sizes": [np.zeros((1, 2), np.uint8), np.ones((3, 1), np.uint8)],
    }
    tfr.write_tfrecord(rows, tmp_path / "a.tfrecord")
    data = table(tmp_path / "a.tfrecord")
    data = data.append_column("of", pa.array([{"x": 1, "y": ["a"]}, {"x": 2, "y": []}]))
    data = data.append_column("objects", pa.array([[{"k": 1, "box": [0.5, 1.0]}], []]))
    data = data.append_column("pet", pa.array(["dog", None]).dictionary_encode())
    tfr.formats.write_tfds(data, path)
    back = table(tfr.dataset(path, split="train"))
    assert back["mask"].combine_chunks().to_numpy_ndarray().tolist() == rows["mask"].astype(int).tolist()
    assert back["grid"].combine_chunks().to_numpy_ndarray().tolist() == rows["grid"].tolist()
    assert back["sizes"].to_pylist() == [[[0, 0]], [[1], [1], [1]]]
    assert back.select(["of/x", "of/y"]).to_pylist() == [{"of/x": 1, "of/y": ["a"]}, {"of/x": 2, "of/y": []}]
    assert back.select(["objects/k", "objects/box"]).to_pylist()[0] == {"objects/k": [1], "objects/box": [[0.5, 1.0]]}
    assert back["pet"].to_pylist() == [0, -1]
    schema = tfr.Schema.from_tfds(path, class_labels="names")
    assert table(tfr.dataset(path, split="train"), schema=schema)["pet"].to_pylist() == ["dog", None]
    classes = pa.chunked_array([pa.array(["cat"]).dictionary_encode(), pa.array(["dog"]).dictionary_encode()])
    data = data.set_column(data.schema.get_field_index("pet"), "pet", classes)
    tfr.formats.write_tfds(data, path, split="test")
    assert (path / "pet.labels.txt").read_text() == "dog\ncat\n"
    assert table(tfr.dataset(path, split="test"))["pet"].to_pylist() == [1, 0]


def test_lists_of_text_of_one_length(tmp_path: Path) -> None:
    path = tmp_path / "mine" / "1.0.0"
    pair = pa.list_(pa.string(), 2)
    table = pa.table({"x": pa.array([["a", ""], ["b", "c"]], pair), "y": pa.array([[["a", ""]], []], pa.list_(pair))})
    tfr.formats.write_tfds(table, path)
    assert [features_of(path)[name]["sequence"]["length"] for name in ("x", "y")] == ["2", "-1"]
    back = tfr.read_table(tfr.dataset(path, split="train"))
    assert back["x"].type == pair
    assert back.to_pylist() == table.to_pylist()
    video = features_of(path) | {"x": {"pythonClassName": "x.Video", "video": {"shape": {"dimensions": [2, 1, 1, 3]}}}}
    document = {"pythonClassName": "x.FeaturesDict", "featuresDict": {"features": video}}
    (path / "features.json").write_text(json.dumps(document))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # one about another way of storing
        tfr.formats.write_tfds(tfr.dataset(path, split="train"), tmp_path / "copy" / "1.0.0")
    assert features_of(tmp_path / "copy" / "1.0.0") == video


def test_missing_values_are_optional_features(tmp_path: Path) -> None:
    path = tmp_path / "mine" / "1.0.0"
    table = pa.table({"n": pa.array([1, None], pa.int32()), "t": pa.array(["a", None]), "x": [1.0, 2.0]})
    tfr.formats.write_tfds(table, path, float64="round")
    features = json.loads((path / "features.json").read_text())["featuresDict"]["features"]
    assert features["n"]["tensor"]["optional"] is features["t"]["tensor"]["optional"] is True
    assert "optional" not in features["x"]["tensor"]
    assert tfr.read_table(tfr.dataset(path, split="train"))["n"].to_pylist() == [1, None]
    tfr.formats.write_tfds(table.slice(0, 1), path, split="test", float64="round")
    assert '"optional": true' in (path / "features.json").read_text()
    assert tfr.read_table(tfr.dataset(path, split="train+test"))["n"].to_pylist() == [1, None, 1]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([[1, None]]), "no missing value in this feature"),
        (pa.array([None, [1]], pa.list_(pa.int64())), "no missing value in this feature"),
        (pa.array([True, None]), "no missing value in this feature"),
        (pa.array([[1.0, None]], pa.list_(pa.float32(), 2)), "no missing value in a tensor"),
    ],
)
def test_what_cannot_be_missing_is_an_error(tmp_path: Path, column: pa.Array, reason: str) -> None:
    with pytest.raises(tfr.errors.EncodeError, match=reason):
        tfr.formats.write_tfds({"x": column}, tmp_path / "mine" / "1.0.0")
    assert not (tmp_path / "mine" / "1.0.0" / "dataset_info.json").exists()


@pytest.mark.parametrize(
    ("type_", "least"),
    [
        *((pa.int8(), -(2**7)), (pa.int16(), -(2**15)), (pa.int32(), -(2**31)), (pa.int64(), -(2**63))),
        *((pa.float16(), np.finfo(np.float16).min), (pa.float32(), np.finfo(np.float32).min)),
    ],
    ids=str,
)
def test_the_least_value_is_an_error_beside_missing_ones(tmp_path: Path, type_: pa.DataType, least: Any) -> None:
    """TFDS has it for None."""
    path = tmp_path / "mine" / "1.0.0"
    five = np.float16(5) if type_ == pa.float16() else 5
    values, missing = pa.table({"x": pa.array([five, least], type_)}), pa.table({"x": pa.array([None], type_)})
    tfr.formats.write_tfds(values, path)
    assert tfr.read_table(tfr.dataset(path, split="train")).equals(values)
    for batches in ([*values.to_batches(), *missing.to_batches()], [pa.concat_tables([values, missing])]):
        with pytest.raises(tfr.errors.EncodeError, match="stands for a missing value") as caught:
            tfr.formats.write_tfds(iter(batches), path, mode="overwrite")
        assert (caught.value.feature, caught.value.record) == ("x", 1)
    tfr.formats.write_tfds(missing, path, mode="overwrite")
    with pytest.raises(tfr.errors.EncodeError, match="the least value"):
        tfr.formats.write_tfds(values, path, split="test")  # the feature is optional in all splits


@pytest.mark.parametrize(
    ("data", "keywords", "reason"),
    [
        ({"x": pa.array([1], pa.timestamp("s"))}, {}, "no feature of this type"),
        ({"a": [1], "a/b": [2]}, {}, "is that of another"),
        ({"a//b": [1]}, {}, "is that of another, or empty"),
        ({"x": [1]}, {"images": ["y"]}, "no column of this name"),
        ({"x": [b"a"]}, {"images": {"x": "CMYK"}}, "unknown image mode 'CMYK'"),
        ({"x": [1]}, {"prefix": "steps"}, "no column has this prefix"),
        ({"steps/x": [1]}, {"prefix": "steps"}, "a column of steps is a list"),
        ({"x": [2]}, {"class_names": {"x": ["a", "b"]}}, "2 is not a number of 2 classes"),
        ({"x": ["a"]}, {"class_names": {"x": ["a", "b"]}}, "class_names= is for columns of integers"),
        ({"x": [1]}, {"images": ["x"]}, "images= is for columns of bytes"),
        ({"x": [0]}, {"class_names": {"x": ["a", "a"]}}, "has a name twice"),
        ({"x": [0]}, {"split": "all"}, "the name of a split"),
        ({"x": [1]}, {"split": "../x"}, "the name of a split"),
        ({"x": [1]}, {"name": "../x"}, "is not a name of a dataset"),
        ({"x": [1]}, {"float64": "raw"}, "cannot be used"),
        ({"x": [1]}, {"shards": 100_000}, "shards=100000: expected at most 99999"),
    ],
)
def test_refusals(tmp_path: Path, data: Any, keywords: dict[str, Any], reason: str) -> None:
    with pytest.raises((tfr.TFRecordError, ValueError), match=reason):
        tfr.formats.write_tfds(data, tmp_path / "mine" / "1.0.0", **keywords)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("float64", [None, "error"])
@pytest.mark.parametrize("value", [0.1, 1e300])
def test_rounding_is_advised_of_in_words_that_can_be_followed(tmp_path: Path, float64: Any, value: float) -> None:
    with pytest.raises((tfr.errors.PrecisionWarning, tfr.errors.EncodeError), match="float32") as caught:
        tfr.formats.write_tfds({"x": [value]}, tmp_path / "mine" / "1.0.0", float64=float64)
    assert ("round" in str(caught.value)) == (value == 0.1)


@pytest.mark.parametrize("name", ["", " ", " a", "a\n", "a\nb", "a\rb"])
def test_names_of_classes_are_lines(tmp_path: Path, name: str) -> None:
    path = tmp_path / "mine" / "1.0.0"
    for data in ({"x": [0, 1]}, {"x": pa.array(["z", name]).dictionary_encode()}):
        with pytest.raises(tfr.errors.EncodeError, match="cannot be a line of a file of labels"):
            tfr.formats.write_tfds(data, path, class_names={"x": ["z", name]})
        assert not path.exists()


def test_splits_have_the_same_features(tmp_path: Path) -> None:
    path = tmp_path / "mine" / "1.0.0"
    tfr.formats.write_tfds({"x": [1]}, path)
    with pytest.raises(FileExistsError, match="the split 'train' exists"):
        tfr.formats.write_tfds({"x": [1]}, path)
    with pytest.raises(tfr.errors.SchemaError, match="the splits train have another feature here"):
        tfr.formats.write_tfds({"x": ["a"]}, path, split="test")
    with pytest.raises(ValueError, match="the last directory is a version"):
        tfr.formats.write_tfds({"x": [1]}, tmp_path / "mine")
    with pytest.raises(tfr.errors.SchemaError, match="it describes the dataset 'mine'"):
        tfr.formats.write_tfds({"x": [1]}, path, split="test", name="other")
    tfr.formats.write_tfds({"x": ["a", "b"]}, path, mode="overwrite", shards=2)
    assert tfr.read_table(tfr.dataset(path, split="train"))["x"].to_pylist() == ["a", "b"]
    tfr.formats.write_tfds({"x": [1]}, tmp_path / "mine" / "small" / "1.0.0", name="mine")
    assert '"configName": "small"' in (tmp_path / "mine" / "small" / "1.0.0" / "dataset_info.json").read_text()


def test_mutants_of_what_is_there_are_clear_errors(tmp_path: Path) -> None:
    """Bytes of features.json and of the names of classes are changed before another split is added."""
    path = tmp_path / "mine" / "1.0.0"
    table = pa.table({"n": [1, 2], "pet": pa.array(["a", "b"]).dictionary_encode(), "boxes": [[[1.0]], []]})
    tfr.formats.write_tfds(table, path, float64="round")
    originals = {name: (path / name).read_bytes() for name in ("features.json", "pet.labels.txt", "dataset_info.json")}
    rng = random.Random(9)
    values = [b"null", b"-1", b"[]", b"{}", b'"x"', b"1e999", b"\xff", b'"-1"', b"true"]
    for _ in range(rounds(100_000 if COMPLETE else 800)):
        for name, content in originals.items():
            text = bytearray(content)
            for _ in range(rng.randint(0, 2)):
                at = rng.randrange(len(text))
                piece = rng.choice(values) if rng.random() < 0.5 else bytes([rng.randrange(256)])
                text[at : at + rng.choice([0, 1, len(piece)])] = piece
            (path / name).write_bytes(text)
        try:
            tfr.formats.write_tfds(table.slice(0, 1), path, split="test", mode="overwrite", float64="round")
            tfr.read_table(tfr.dataset(path, split="test"), schema="infer")
        except tfr.TFRecordError as error:
            assert str(error)  # noqa: PT017


def test_episodes_come_back_from_tfds_and_go_there(data: Path, tmp_path: Path) -> None:
    table = tfr.read_table(data / "tfds" / "episodes")
    path = tmp_path / "robots" / "1.0.0"
    tfr.formats.write_tfds(table, path, prefix="steps", images=["steps/observation/image"])
    back = tfr.read_table(tfr.dataset(path, split="train"))
    assert back.select(table.schema.names).equals(table)
    steps = json.loads((path / "features.json").read_text())["featuresDict"]["features"]["steps"]
    assert steps["pythonClassName"].endswith("dataset_feature.Dataset")


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_columns_of_steps_have_one_length(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], others: list[int]
) -> None:
    path = tmp_path_factory.mktemp("tfds") / "mine" / "1.0.0"
    others = others[: len(lengths)]
    columns = {"steps/a": lengths, "steps/o/b": lengths, "steps/o/c": others}
    table = pa.table({name: pa.array([[1] * n for n in each], pa.list_(pa.int64())) for name, each in columns.items()})
    if lengths == others:
        tfr.formats.write_tfds(table, path, prefix="steps")
        assert tfr.read_table(tfr.dataset(path, split="train")).select(list(columns)).equals(table)
        return
    with pytest.raises(tfr.errors.EncodeError, match=r"steps here, and \d in 'steps/a'") as caught:
        tfr.formats.write_tfds(iter([table.slice(0, 1), table.slice(1)]), path, prefix="steps")
    first = next(row for row, n in enumerate(lengths) if n != others[row])
    assert (caught.value.feature, caught.value.record) == ("steps/o/c", first)
    assert not path.exists()


def image_feature(path: Path, name: str = "x") -> tuple[str, str]:
    """The dtype and the channels that features.json states."""
    image = json.loads((path / "features.json").read_text())["featuresDict"]["features"][name]["image"]
    return image["dtype"], image["shape"]["dimensions"][-1]


@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        (["L"], ("uint8", "1")),
        (["L", "L"], ("uint8", "1")),
        (["RGB"], ("uint8", "3")),
        (["RGBA"], ("uint8", "4")),
        (["L", "RGB", "L"], ("uint8", "3")),
        (["1"], ("uint8", "1")),
        (["L16"], ("uint16", "1")),
        (["RGB16"], ("uint16", "3")),
    ],
)
def test_images_are_what_their_headers_state(tmp_path: Path, modes: list[str], expected: tuple[str, str]) -> None:
    images = [image_of(mode) for mode in modes]
    path = tmp_path / "mine" / "1.0.0"
    tfr.formats.write_tfds(
        {"x": images, "steps/x": [images] * len(images)}, path, images=["x", "steps/x"], prefix="steps"
    )
    assert image_feature(path) == expected
    other = {"x": [image_of("RGB16" if expected == ("uint8", "4") else "RGBA")], "steps/x": [images]}
    with pytest.raises(tfr.errors.EncodeError, match="as of the other splits") as caught:
        tfr.formats.write_tfds(other, path, split="test", images=["x", "steps/x"], prefix="steps")
    assert (caught.value.feature, caught.value.record) == ("x", 0)
    assert not list(path.glob("*test*"))
    with pytest.raises(tfr.errors.SchemaError, match="have another feature here"):
        tfr.formats.write_tfds({"x": images, "steps/x": [images] * len(images)}, path, split="test", prefix="steps")
    field = tfr.image(mode={"1": "L", "3": "RGB", "4": "RGBA"}[expected[1]])
    tfr.write_tfrecord({"x": images}, tmp_path / "a.tfrecord", schema={"x": field})
    tfr.formats.write_tfds(tfr.read_table(tmp_path / "a.tfrecord"), tmp_path / "declared" / "1.0.0")
    assert image_feature(tmp_path / "declared" / "1.0.0") == expected


@pytest.mark.parametrize(
    ("images", "mode", "reason"),
    [
        (["P"], None, "has a palette, whose numbers TFDS replaces by colours"),
        (["P"], "RGBA", "is a PNG of P; expected what TFDS decodes to 4 channels"),
        (["RGB", "RGBA"], None, "has 4 channels; expected 3, as of those before it"),
        (["L", "L16"], None, "has values of uint16; expected uint8"),
        (["L", "L16"], "L", "has values of uint16; expected uint8"),
        (["LA"], None, "is a PNG of LA"),
        (["RGB.JPEG"], "RGBA", "is a JPEG of RGB"),
        (["CMYK.JPEG"], "L", "is a JPEG of CMYK"),
        (["RGB.BMP"], "L", "is a BMP of RGB"),
        (["RGB.GIF"], None, "is a GIF; expected JPEG, PNG or BMP"),
        (["RGB.TIFF"], None, "is a TIFF"),
        (["RGB.WEBP"], "RGB", "is a WEBP"),
    ],
)
def test_images_that_tfds_cannot_decode(tmp_path: Path, images: list[str], mode: str | None, reason: str) -> None:
    encoded = [image_of(*name.split(".")) for name in images]
    with pytest.raises(tfr.errors.EncodeError, match=reason) as caught:
        tfr.formats.write_tfds({"x": encoded}, tmp_path / "mine" / "1.0.0", images={"x": mode})
    assert (caught.value.feature, caught.value.record) == ("x", len(images) - 1)
    assert not (tmp_path / "mine").exists()


def test_convert_and_buckets(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "again" / "1.0.0"
    keywords: dict[str, Any] = {"split": "train[:50%]", "target_format": "tfds", "target_split": "small", "shards": 2}
    assert convert_flat(data / "tfds" / "splits", path, **keywords).records == 52
    assert tfr.count(tfr.dataset(tmp_path / "again", split="small")) == 52
    tfr.formats.write_tfds({"x": [1, 2]}, "memory://buckets/mine/1.0.0")
    assert tfr.read_table(tfr.dataset("memory://buckets/mine", split="train[1:]"))["x"].to_pylist() == [2]


def features_of(path: Path) -> dict[str, Any]:
    return dict(json.loads((path / "features.json").read_text())["featuresDict"]["features"])


@pytest.mark.filterwarnings("ignore:.*they have features by their types")
@pytest.mark.parametrize("name", ["everything", "episodes", "splits"])
def test_a_copy_has_the_features_of_the_dataset(data: Path, tmp_path: Path, name: str) -> None:
    """Features that are stored in the same way are copied, with all columns or some, and the names of classes."""
    source, path = data / "tfds" / name, tmp_path / "mine" / "1.0.0"
    expected = features_of(source)
    every = tfr.dataset(source, split="train").columns
    columns = [each for each in every if not each.startswith("double")]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tfr.convert(source, path, target_format="tfds", source_options={"split": "train"}, columns=columns, shards=2)
    changed = str(caught[0].message).rpartition(": ")[2].split(", ") if caught else []
    assert (name == "everything") == bool(changed) == (len(caught) == 1)
    kept = {key for key in expected if not key.startswith("double")}
    found = features_of(path)
    assert found.keys() == kept
    assert {key for key in kept if found[key] != expected[key]} == {*changed}
    labels = {file.name: file.read_text() for file in source.glob("*.labels.txt")}
    assert {file.name: file.read_text() for file in path.glob("*.labels.txt")} == labels
    back, original = (tfr.read_table(tfr.dataset(each, split="train"), columns=columns) for each in (path, source))
    assert back.select(original.column_names).to_pylist() == original.to_pylist()
    for column in columns:  # any part of the tree
        part = tmp_path / "part" / "1.0.0"
        tfr.formats.write_tfds(
            tfr.dataset(source, split="train").select([column]), part, split=f"s{columns.index(column)}"
        )
        inner, whole = features_of(part), expected
        for key in (part.replace("+", "/") for part in column.replace("c/d", "c+d").split("/")):  # a key with a slash
            assert list(inner) == [key]
            if inner[key] == whole[key] or column in changed or "translation" in whole[key]:  # of several languages
                break
            assert inner[key]["pythonClassName"] == whole[key]["pythonClassName"]
            inner, whole = (
                (each[key].get("sequence", {}).get("feature") or each[key])["featuresDict"]["features"]
                for each in (inner, whole)
            )
        shutil.rmtree(tmp_path / "part")


@pytest.mark.filterwarnings("ignore:.*they have features by their types")
def test_a_copy_with_the_names_of_classes_has_the_features_of_the_dataset(data: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(data / "tfds" / "everything", tmp_path / "everything"))
    (source / "labeled.labels.txt").write_text("sky\nroad\nother\n")  # of the pixels of an image
    names = tfr.Schema.from_tfds(source, class_labels="names")
    columns = ["label", "labels", "labeled", "objects/label", "nested/a/b"]
    paths = [tmp_path / "data" / name / "1.0.0" for name in ("numbers", "names")]
    for path, schema in zip(paths, (None, names), strict=True):
        tfr.formats.write_tfds(tfr.dataset(source, schema=schema).select(columns), path)
    assert features_of(paths[0]) == features_of(paths[1])
    assert features_of(paths[0])["labeled"]["pythonClassName"].endswith("LabeledImage")
    for path in paths:
        labels = {file.name: file.read_text() for file in path.glob("*.labels.txt")}
        assert labels == {file.name: file.read_text() for file in source.glob("*.labels.txt")}


def test_the_names_of_classes_of_a_key_with_a_slash(tmp_path: Path) -> None:
    source, path = tmp_path / "mine" / "1.0.0", tmp_path / "copy" / "1.0.0"
    tfr.formats.write_tfds({"a/b": [1, 0]}, source, class_names={"a/b": ["cat", "dog"]})
    document = json.loads((source / "features.json").read_text())
    nested = document["featuresDict"]["features"].pop("a")
    document["featuresDict"]["features"]["a/b"] = nested["featuresDict"]["features"]["b"]
    (source / "features.json").write_text(json.dumps(document))
    (source / "a-b.labels.txt").rename(source / "a.b.labels.txt")
    names = tfr.Schema.from_tfds(source, class_labels="names")
    for split in ("train", "test"):
        tfr.formats.write_tfds(tfr.dataset(source, schema=names), path, split=split)
    assert features_of(path) == features_of(source)
    assert [file.name for file in path.glob("*.labels.txt")] == ["a.b.labels.txt"]
    copied = tfr.dataset(path, split="test", schema=tfr.Schema.from_tfds(path, class_labels="names"))
    assert tfr.read_table(copied)["a/b"].to_pylist() == ["dog", "cat"]


def test_the_features_of_a_list_of_datasets_are_not_copied(tmp_path: Path) -> None:
    source = tmp_path / "mine" / "1.0.0"
    tfr.formats.write_tfds({"x": [1, 0]}, source, class_names={"x": ["cat", "dog"]})
    kinds = set()
    for count in (1, 2):
        path = tmp_path / f"copy{count}" / "1.0.0"
        tfr.formats.write_tfds([tfr.dataset(source)] * count, path)
        kinds.add(features_of(path)["x"]["pythonClassName"].rpartition(".")[2])
    assert kinds == {"Scalar"}


def test_a_copy_of_a_dataset_with_a_folder_for_each_split(data: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(data / "tfds" / "episodes", tmp_path / "episodes"))
    (file,) = source.glob("*.tfrecord-*")
    (source / "train").mkdir()
    file.rename(source / "train" / "data.tfrecord-00000-of-00001")
    info = json.loads((source / "dataset_info.json").read_text())
    info["splits"][0]["filepathTemplate"] = "{SPLIT}/data.{FILEFORMAT}-{SHARD_X_OF_Y}"
    (source / "dataset_info.json").write_text(json.dumps(info))
    tfr.formats.write_tfds(tfr.dataset(source, split="train"), tmp_path / "mine" / "1.0.0")
    assert features_of(tmp_path / "mine" / "1.0.0") == features_of(source)


def test_copies_with_other_columns_and_types(data: Path, tmp_path: Path) -> None:
    source, path = data / "tfds" / "episodes", tmp_path / "mine" / "1.0.0"
    keywords: dict[str, Any] = {"split": "train", "target_format": "tfds", "include_file_paths": "steps/from"}
    with pytest.raises(tfr.errors.SchemaError, match="a column of steps"):
        tfr.formats.write_tfds(
            tfr.dataset(source, split="train", include_file_paths="steps/from"), path, prefix="steps"
        )
    convert_flat(source, path, **keywords | {"include_file_paths": "from"})
    found, expected = features_of(path), features_of(source)
    assert found.pop("from")["pythonClassName"].endswith("Text")
    assert found == expected
    overrides = {"steps/reward": tfr.list_("float64")}
    with pytest.warns(UserWarning, match="they have features by their types: steps/reward"):
        convert_flat(
            source, path, **keywords | {"schema_overrides": overrides, "include_file_paths": None}, mode="overwrite"
        )
    inner, whole = (
        each["steps"]["sequence"]["feature"]["featuresDict"]["features"] for each in (features_of(path), expected)
    )
    assert inner.pop("reward")["tensor"]["dtype"] == "float64"
    assert whole.pop("reward")["tensor"]["dtype"] != "float64"
    assert inner == whole


def test_copies_are_added_to_splits_with_the_same_classes(data: Path, tmp_path: Path) -> None:
    source, path = data / "tfds" / "everything", tmp_path / "mine" / "1.0.0"
    rows = tfr.dataset(source, split="train").select(["label"])
    tfr.formats.write_tfds(rows, path)
    tfr.formats.write_tfds(rows, path, split="test")
    (path / "label.labels.txt").write_text("a\nb\n")
    with pytest.raises(tfr.errors.SchemaError, match="other splits have other class names"):
        tfr.formats.write_tfds(rows, path, split="third")
