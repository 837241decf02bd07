"""Datasets made by TFDS are read as TFDS reads them, by the features.json next to them."""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr

DATASETS = Path(__file__).parent.parent / "data" / "tfds"
pytestmark = pytest.mark.filterwarnings(r"ignore:label\(\) is deprecated:DeprecationWarning")  # TFDS's own
STAND_INS = {"optional": -(2**31), "optional_text": b""}  # what TFDS gives for None, where we give null


@pytest.fixture(scope="session")
def tfds(tf: Any) -> Any:
    reason = "needs tensorflow-datasets, which make conformance installs"
    return pytest.importorskip("tensorflow_datasets", reason=reason, exc_type=ImportError)


@pytest.fixture(scope="session")
def write(tfds: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What tests/data/tfds/write.py defines, after a copy of it has written its datasets into the folder "HERE"."""
    script = shutil.copy(DATASETS / "write.py", tmp_path_factory.mktemp("tfds"))
    with _quiet():
        return runpy.run_path(script)


@contextlib.contextmanager
def _quiet() -> Any:
    """No progress bars."""
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        yield


def _flat(tf: Any, value: Any, name: str = "") -> dict[str, Any]:
    """What TFDS read, nested keys joined by "/", the steps of a nested dataset as one list of each key."""
    if isinstance(value, tf.data.Dataset):
        steps = [_flat(tf, step, name) for step in value]
        return {key: [step[key] for step in steps] for key in _keys(value.element_spec, name)}
    if isinstance(value, dict):
        return {
            key: each
            for part, inner in value.items()
            for key, each in _flat(tf, inner, f"{name}/{part}" if name else part).items()
        }
    return {name: value}


def _keys(spec: Any, name: str) -> list[str]:
    if isinstance(spec, dict):
        return [key for part, inner in spec.items() for key in _keys(inner, f"{name}/{part}" if name else part)]
    return [name]


def _plain(tf: Any, value: Any) -> Any:
    """Lists and Python's values; floats keep their bits, as those of float32 fit in Python's."""
    if isinstance(value, list):
        return [_plain(tf, each) for each in value]
    if isinstance(value, tf.RaggedTensor):
        return value.to_list()
    return value.numpy().tolist() if hasattr(value.numpy(), "tolist") else value.numpy()


def _rows(column: pa.ChunkedArray) -> list[Any]:
    """The values of tfrecord_io in the same terms: text as bytes, tensors as nested lists."""

    def as_bytes(value: Any) -> Any:
        if isinstance(value, list):
            return [as_bytes(each) for each in value]
        return value.encode() if isinstance(value, str) else value

    if isinstance(column.type, pa.FixedShapeTensorType):
        return [row.tolist() for chunk in column.chunks for row in chunk.to_numpy_ndarray()]
    return [as_bytes(value) for value in column.to_pylist()]


def _value_type(type_: pa.DataType) -> pa.DataType:
    while True:
        if isinstance(type_, pa.BaseExtensionType):
            type_ = type_.storage_type
        elif pa.types.is_nested(type_):
            type_ = type_.value_type
        else:
            return type_


def _dtype(value: Any) -> np.dtype[Any] | None:
    """Of what TFDS read; None of no step."""
    while isinstance(value, list):
        if not value:
            return None
        value = value[0]
    return np.dtype(value.dtype.as_numpy_dtype)


def _assert_same(tf: Any, table: pa.Table, dataset: Any) -> None:
    """The same rows, in their order, with the same dtypes."""
    records = [_flat(tf, record) for record in dataset]
    assert table.num_rows == len(records) > 0
    assert sorted(table.schema.names) == sorted(records[0])
    for name in table.schema.names:
        field = table.schema.field(name)
        marked = (field.metadata or {}).get(b"tfrecord_io.dtype")
        actual, type_ = _rows(table[name]), pa.bool_() if marked == b"bool" else _value_type(field.type)
        for row, record in zip(actual, records, strict=True):
            reference = _plain(tf, record[name])
            assert (STAND_INS[name] if row is None else row) == reference, name
            dtype = _dtype(record[name])
            if dtype is not None:
                assert np.dtype(object if dtype.kind in "SUO" else dtype) == np.dtype(type_.to_pandas_dtype()), name


def _encoded(tfds: Any, features: Any) -> dict[str, Any]:
    """Decoders that leave images and videos as they are stored, at any depth."""
    f = tfds.features
    found = {}
    for name, feature in features.items():
        inner = feature.feature if isinstance(feature, f.Dataset) else feature
        if isinstance(inner, f.Image | f.Video):
            found[name] = tfds.decode.SkipDecoding()
        elif isinstance(inner, f.FeaturesDict) and (below := _encoded(tfds, inner)):
            found[name] = below
    return found


@pytest.mark.parametrize("name", ["everything", "episodes"])
def test_a_dataset_comes_back_equal(engine: str, name: str, tf: Any, tfds: Any, write: dict[str, Any]) -> None:
    directory = write["HERE"] / name
    builder = tfds.builder_from_directory(directory)
    dataset = builder.as_dataset(split="train", decoders=_encoded(tfds, builder.info.features))
    _assert_same(tf, tfr.read_table(directory), dataset)
    assert tfr.read_metadata(directory).schema is not None


def test_images_are_those_that_tfds_decodes(engine: str, tf: Any, tfds: Any, write: dict[str, Any]) -> None:
    records = tfds.builder_from_directory(write["HERE"] / "everything").as_dataset(split="train")
    table = tfr.read_table(write["HERE"] / "everything", columns=["image", "labeled", "video"])
    for row, record in zip(table.to_pylist(), records, strict=True):
        assert tf.io.decode_image(row["image"]).numpy().tolist() == record["image"].numpy().tolist()
        assert tf.io.decode_image(row["labeled"]).numpy().tolist() == record["labeled"].numpy().tolist()
        assert [tf.io.decode_image(frame).numpy().tolist() for frame in row["video"]] == record[
            "video"
        ].numpy().tolist()


def test_none_of_an_optional_feature_is_null(engine: str, write: dict[str, Any]) -> None:
    table = tfr.read_table(write["HERE"] / "everything")
    assert table["optional"].null_count == 1
    assert table["optional_text"].null_count == 1


@pytest.fixture(scope="session")
def pets(tfds: Any, write: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The builder of a dataset in two splits and many shards."""
    f = tfds.features
    features = f.FeaturesDict(
        {
            "image": f.Image(shape=(None, None, 1)),
            "label": f.ClassLabel(names=["cat", "dog"]),
            "note": f.Text(),
            "weights": f.Sequence(np.float32),
            "mask": f.Tensor(shape=(2, 2), dtype=np.bool_),
            "toys": f.Sequence({"kind": f.Text(), "size": f.Tensor(shape=(2,), dtype=np.int16)}),
        }
    )

    def examples(rng: np.random.Generator) -> Any:
        for i in range(40):
            n = int(rng.integers(0, 4))
            yield (
                f"{i}",
                {
                    "image": rng.integers(0, 255, (n + 1, 2, 1), dtype=np.uint8),
                    "label": int(rng.integers(0, 2)),
                    "note": "größe" * n,
                    "mask": rng.integers(0, 2, (2, 2)).astype(bool),
                    "weights": rng.standard_normal(n).astype(np.float32),
                    "toys": [{"kind": f"ball {k}", "size": [k, -k]} for k in range(n)],
                },
            )

    Pets = write["make_builder"]("pets", features, examples)
    Pets._split_generators = lambda self, dl_manager: {
        "train": self._generate_examples(),
        "test": self._generate_examples(),
    }
    builder = Pets(data_dir=os.fspath(tmp_path_factory.mktemp("pets")))
    with _quiet():
        builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=4))
    return builder


@pytest.mark.parametrize("split", ["train", "test"])
def test_a_split_in_shards(engine: str, split: str, tf: Any, tfds: Any, pets: Any) -> None:
    directory = Path(os.fspath(pets.data_dir))
    assert len(list(directory.glob(f"pets-{split}*"))) == 4
    config = tfds.ReadConfig(interleave_cycle_length=1)  # one shard after the other
    decoders = {"image": tfds.decode.SkipDecoding()}
    dataset = tfds.load("pets", data_dir=directory.parent.parent, split=split, read_config=config, decoders=decoders)
    for path in (directory / f"pets-{split}.tfrecord*", f"{directory}/pets-{split}.tfrecord@4"):
        for threads in (1, 2):
            _assert_same(tf, tfr.read_table(tfr.dataset(path, threads=threads)), dataset)


def test_a_folder_of_two_splits_names_them(pets: Any) -> None:
    with pytest.raises(ValueError, match=r"pets-test.*pets-train.*tfr\.dataset\(…, split=…\) reads one"):
        tfr.read_table(os.fspath(pets.data_dir))


def test_class_labels_by_name(engine: str, tfds: Any, pets: Any) -> None:
    directory = Path(os.fspath(pets.data_dir))
    schema = tfr.Schema.from_tfds(directory, class_labels="names")
    names = tfr.read_table(directory / "pets-train*", schema=schema)["label"].to_pylist()
    codes = tfr.read_table(directory / "pets-train*")["label"].to_pylist()
    assert names == [pets.info.features["label"].int2str(code) for code in codes]
