"""Datasets that tfrecord_io writes are read by TFDS, with their features, splits and values."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from sample_images import image_of

pytestmark = pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")  # TFDS's own


@pytest.fixture(scope="session")
def tfds(tf: Any) -> Any:
    reason = "needs tensorflow-datasets, which make conformance installs"
    return pytest.importorskip("tensorflow_datasets", reason=reason, exc_type=ImportError)


def png(pixels: Any) -> bytes:
    image = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    value = value.to_list() if hasattr(value, "to_list") else value.numpy()
    return value.tolist() if hasattr(value, "tolist") else value


PIXELS = np.random.default_rng(1).integers(0, 255, (3, 4, 5, 3), dtype=np.uint8)
COLUMNS = {
    "n": pa.array([-1, 2, 3], pa.int16()),
    "big": pa.array([2**64 - 1, 0, 1], pa.uint64()),
    "x": pa.array([0.5, 1, 2], pa.float32()),
    "half": pa.array(np.array([0.5, 1, 2], np.float16)),
    "ok": pa.array([True, False, True]),
    "word": pa.array(["größe", "", "b"]),
    "raw": pa.array([b"\xff\0", b"", b"a"]),
    "list": pa.array([[1, 2], [], [3]], pa.list_(pa.int32())),
    "words": pa.array([["a"], [], ["b", "c"]]),
    "pair": pa.array([["a", ""], ["b", "c"], ["d", "e"]], pa.list_(pa.string(), 2)),
    "pairs": pa.array([[["a", ""]], [], [["d", "e"], ["f", "g"]]], pa.list_(pa.list_(pa.string(), 2))),
    "vector": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2)),
    "vectors": pa.array([[[1, 2]], [], [[3, 4], [5, 6]]], pa.list_(pa.list_(pa.float32(), 2))),
    "ragged": pa.array([[[1], [2, 3]], [], [[], [4]]], pa.list_(pa.list_(pa.int64()))),
    "ragged3": pa.array([[[["a"], []], [["b", "c"]]], [], [[], [["d"]]]]),
    "of": pa.array([{"a": 1, "b": ["q"]}, {"a": 2, "b": []}, {"a": 3, "b": ["z"]}]),
    "objects": pa.array([[{"a": 1, "c": [1, 2]}], [], [{"a": 2, "c": []}, {"a": 3, "c": [9]}]]),
    "nested/deep/n": pa.array([1, 2, 3]),
}


@pytest.fixture(scope="session")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "mine" / "1.0.0"
    table = pa.table(COLUMNS)
    table = table.append_column("image", pa.array([png(each) for each in PIXELS]))
    table = table.append_column("pet", pa.array(["dog", "cat", None]).dictionary_encode())
    table = table.append_column("maybe", pa.array([1, None, 2], pa.int32()))
    table = table.append_column("text", pa.array(["a", None, "b"]))
    tfr.formats.write_tfds(table, path, shards=2, images=["image"])
    tfr.formats.write_tfds(table.slice(1), path, split="test", images=["image"])
    return path


def test_values(tf: Any, tfds: Any, path: Path) -> None:
    builder = tfds.builder_from_directory(path)
    config = tfds.ReadConfig(interleave_cycle_length=1)
    rows = [plain(row) for row in builder.as_dataset(split="train", read_config=config)]

    def as_bytes(value: Any) -> Any:
        if isinstance(value, list):
            return [as_bytes(each) for each in value]
        if isinstance(value, dict):
            return {key: as_bytes(each) for key, each in value.items()}
        return value.encode() if isinstance(value, str) else value

    for name, column in COLUMNS.items():
        expected = as_bytes(column.to_pylist())
        found = [row["nested"]["deep"]["n"] if name.startswith("nested") else row[name] for row in rows]
        if name == "objects":  # TFDS gives the lists of each key
            expected = [{key: [each[key] for each in row] for key in ("a", "c")} for row in expected]
        assert found == expected, name
    assert [row["image"] for row in rows] == PIXELS.tolist()
    assert [row["pet"] for row in rows] == [0, 1, -1]
    assert [row["maybe"] for row in rows] == [1, -(2**31), 2]
    assert [row["text"] for row in rows] == [b"a", b"", b"b"]


def test_features_and_splits(tfds: Any, path: Path) -> None:
    info = tfds.builder_from_directory(path).info
    features = info.features
    assert info.full_name == "mine/1.0.0"
    assert {name: split.num_examples for name, split in info.splits.items()} == {"train": 3, "test": 2}
    assert info.splits["train"].num_shards == 2
    assert features["pet"].names == ["dog", "cat"]
    assert isinstance(features["image"], tfds.features.Image)
    assert isinstance(features["word"], tfds.features.Text)
    assert (features["vectors"].shape, features["vectors"].dtype) == ((None, 2), np.float32)
    statistics = info.splits["train"].get_proto() if hasattr(info.splits["train"], "get_proto") else None
    assert statistics is None or statistics.statistics.num_examples == 3


@pytest.mark.parametrize("split", ["test+train[:2]", "train[50%:]", "all", "train[1shard]"])
def test_splits_are_read_alike(tf: Any, tfds: Any, path: Path, split: str) -> None:
    config = tfds.ReadConfig(interleave_cycle_length=1)
    rows = tfds.builder_from_directory(path).as_dataset(split=split, read_config=config)
    assert [int(row["n"]) for row in rows] == tfr.read_table(tfr.dataset(path, split=split))["n"].to_pylist()


def test_tfds_load_finds_it_by_name(tf: Any, tfds: Any, path: Path) -> None:
    assert len(list(tfds.load("mine", data_dir=path.parent.parent, split="train[1:]"))) == 2


def test_read_instructions_are_taken_as_they_are(tf: Any, tfds: Any, tmp_path: Path) -> None:
    path = tmp_path / "numbers" / "1.0.0"
    tfr.formats.write_tfds({"n": np.arange(1050)}, path, shards=3)
    Instruction = tfds.core.ReadInstruction
    config = tfds.ReadConfig(interleave_cycle_length=1)
    percent = Instruction("train", from_=10, to=-33, unit="%", rounding="pct1_dropremainder")
    for split in (percent, Instruction("train", to=7), Instruction("train", from_=95, unit="%") + percent):
        rows = tfds.builder_from_directory(path).as_dataset(split=split, read_config=config)
        assert [int(row["n"]) for row in rows] == tfr.read_table(tfr.dataset(path, split=split))["n"].to_pylist()


def test_episodes(tf: Any, tfds: Any, tmp_path: Path, data: Path) -> None:
    episodes = tfr.read_table(data / "tfds" / "episodes")
    path = tmp_path / "robots" / "1.0.0"
    tfr.formats.write_tfds(episodes, path, prefix="steps", images=["steps/observation/image"])
    original = tfds.builder_from_directory(data / "tfds" / "episodes").as_dataset(split="train")
    written = tfds.builder_from_directory(path).as_dataset(split="train")
    for a, b in zip(original, written, strict=True):
        assert plain(a["episode_metadata"]) == plain(b["episode_metadata"])
        steps = [[plain(step) for step in row["steps"]] for row in (a, b)]
        assert steps[0] == steps[1]


def test_any_expression_means_the_same(tfds: Any, tmp_path: Path) -> None:
    """Of random splits of random lengths; TFDS reads reversed slices in its own ways."""
    rng = np.random.default_rng(3)
    path = tmp_path / "numbers" / "1.0.0"
    tfr.formats.write_tfds({"n": np.arange(103)}, path, shards=7)
    splits = tfds.builder_from_directory(path).info.splits
    for _ in range(400):
        unit = str(rng.choice(["", "%", "shard"]))
        most = {"": 110, "%": 100, "shard": 8}[unit]
        first, last = (f"{each}{unit}" if rng.random() < 0.9 else "" for each in rng.integers(-most, most + 1, 2))
        text = f"train[{first}:{last}]"
        try:
            files = splits[text].file_instructions
        except ValueError:
            files = []
        if any(file.take < -1 for file in files):
            continue
        expected = sum(file.take if file.take >= 0 else file.examples_in_shard - file.skip for file in files)
        try:
            count = tfr.count(tfr.dataset(path, split=text))
        except ValueError as error:
            assert str(error).startswith("split=")  # noqa: PT017
            is_out_of_range = unit == "shard" and "out of range" in str(error)
            assert expected == 0 or is_out_of_range or "before it begins" in str(error), text  # noqa: PT017
        else:
            assert count == expected, text


@pytest.mark.parametrize(
    "name", ["L", "RGB", "RGBA", "1", "L.JPEG", "RGB.JPEG", "CMYK.JPEG", "RGB.BMP", "L16", "RGB16"]
)
def test_images_are_decoded_as_their_headers_state(tf: Any, tfds: Any, tmp_path: Path, name: str) -> None:
    """Also of several images: TFDS decodes what the others make of one."""
    images = pytest.importorskip("PIL.Image")
    mode, _, form = name.partition(".")
    some = [image_of(mode, form or "PNG") for _ in range(2)] + [image_of("RGB")] * (mode == "L")
    tfr.formats.write_tfds({"x": some}, tmp_path / "mine" / "1.0.0", images=["x"])
    builder = tfds.builder_from_directory(tmp_path / "mine" / "1.0.0")
    for data, row in zip(some, builder.as_dataset(split="train"), strict=True):
        found = row["x"].numpy()
        assert found.shape == (4, 6, 1 if mode in ("1", "L16") else 4 if mode == "RGBA" else 3)
        if mode.endswith("16"):
            assert found.dtype == np.uint16
            assert np.array_equal(found, tf.io.decode_png(data, dtype=tf.uint16).numpy())
        else:
            converted = images.open(io.BytesIO(data)).convert({1: "L", 3: "RGB", 4: "RGBA"}[found.shape[-1]])
            expected = np.asarray(converted).reshape(found.shape).astype(int)
            assert np.abs(expected - found).max() <= (4 if form == "JPEG" else 0)


@pytest.mark.filterwarnings("ignore:.*stored in another way than there")
@pytest.mark.parametrize("name", ["everything", "episodes", "splits"])
def test_copies_are_read_alike(tf: Any, tfds: Any, tmp_path: Path, data: Path, name: str) -> None:
    path = tmp_path / "mine" / "1.0.0"
    columns = ["!double*"] if name == "everything" else None  # which a file of tfrecord_io has not as TFDS has
    tfr.convert(data / "tfds" / name, path, target_format="tfds", source_options={"split": "train"}, columns=columns)
    first, copy = (tfds.builder_from_directory(each) for each in (data / "tfds" / name, path))
    kept = [key for key in first.info.features if not key.startswith("double")]
    assert {*copy.info.features} == {*kept}
    config = tfds.ReadConfig(interleave_cycle_length=1)
    rows = [builder.as_dataset(split="train", read_config=config, shuffle_files=False) for builder in (first, copy)]
    for old, new in zip(*rows, strict=True):
        for key in kept:
            found, expected = (
                [list(map(plain, each[key])) if hasattr(each[key], "element_spec") else plain(each[key])]
                for each in (new, old)
            )
            assert repr(found) == repr(expected), key
