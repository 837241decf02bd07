"""Writes the datasets next to this file with TFDS.

Run ``pip install tensorflow-cpu tensorflow-datasets`` and ``python -P write.py``.

`splits` has three splits in several shards, and in expected.json the numbers of its records that TFDS reads for each of many
values of split=, null where it refuses. `everything` has each feature class that serializes in a way of its own, `episodes` is shaped as RLDS datasets are. The expected
values (expected.json) are those that TFDS reads back, images and other encoded bytes as they are stored. `old` is a features.json
in the form before TFDS 4, by ``FeatureConnector.to_json``.
"""

import base64
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_datasets as tfds
from etils import epath

HERE = Path(__file__).parent
f = tfds.features

EVERYTHING = f.FeaturesDict(
    {
        "audio": f.Audio(shape=(None, 2), dtype=np.int16),
        "bbox": f.BBoxFeature(),
        "bool": f.Scalar(np.bool_),
        "bytes": f.Tensor(shape=(), dtype=np.object_),
        "caption": f.Translation(languages=["de", "en"]),
        "captions": f.TranslationVariableLanguages(),
        "double": f.Scalar(np.float64),
        "double_bytes": f.Tensor(shape=(2,), dtype=np.float64, encoding="bytes"),
        "dynamic": f.Tensor(shape=(None, None, 2), dtype=np.uint8, encoding="zlib"),
        "dynamics": f.Sequence(f.Tensor(shape=(None, None), dtype=np.int32, encoding="bytes")),
        "fixed": f.Tensor(shape=(2, 3), dtype=np.int16),
        "free": f.Tensor(shape=(None, 3), dtype=np.float32),
        "free_last": f.Tensor(shape=(2, None), dtype=np.float32),
        "half_bytes": f.Tensor(shape=(2, 2), dtype=np.float16, encoding="bytes"),
        "image": f.Image(shape=(4, 4, 3), encoding_format="png"),
        "label": f.ClassLabel(names=["cat", "dog", "größe"]),
        "labels": f.Sequence(f.ClassLabel(names=["a", "b"])),
        "labeled": f.LabeledImage(labels=3, shape=(None, None, 1)),
        "mask": f.Tensor(shape=(None,), dtype=np.bool_, encoding="bytes"),
        "nested": {"a": {"b": np.int8, "c/d": f.Sequence({"x": np.int64, "name": f.Text()})}},
        "objects": f.Sequence(
            {"bbox": f.BBoxFeature(), "label": f.ClassLabel(names=["x", "y"]), "parts": f.Sequence(np.int32)}
        ),
        "optional": f.Scalar(np.int32, optional=True),
        "optional_text": f.Scalar(np.str_, optional=True),
        "pairs": f.Sequence(f.Tensor(shape=(2,), dtype=np.int64), length=2),
        "ragged3": f.Sequence(f.Sequence(f.Sequence(f.Tensor(shape=(2,), dtype=np.uint8)))),
        "text": f.Text(),
        "uint64": f.Scalar(np.uint64),
        "uint64s": f.Sequence(np.uint64),
        "vector": f.Tensor(shape=(3,), dtype=np.float32),
        "video": f.Video(shape=(None, 2, 2, 3)),
        "words": f.Sequence(f.Text()),
        "zlib": f.Tensor(shape=(2, 2), dtype=np.int64, encoding="zlib"),
        "zlibs": f.Sequence(f.Tensor(shape=(3,), dtype=np.float32, encoding="zlib")),
    }
)

EPISODES = f.FeaturesDict(
    {
        "episode_metadata": {"file_path": f.Text()},
        "steps": f.Dataset(
            {
                "action": f.Tensor(shape=(7,), dtype=np.float32),
                "is_first": f.Scalar(np.bool_),
                "language_instruction": f.Text(),
                "observation": {"image": f.Image(shape=(2, 2, 3)), "state": f.Tensor(shape=(2, 2), dtype=np.float64)},
                "reward": f.Scalar(np.float32),
            }
        ),
    }
)


def everything(rng):
    for i in range(4):
        n = i % 3
        yield (
            f"{i}",
            {
                "audio": rng.integers(-9, 9, (5 * n, 2), dtype=np.int16),
                "bbox": f.BBox(0.0, 0.25, 0.5, 1.0),
                "bool": i % 2 == 0,
                "bytes": bytes([0, 255, i]),
                "caption": {"de": f"größe {i}", "en": f"size {i}"},
                "captions": {"de": ["ja"] * (n + 1), "en": "yes"},
                "double": 0.1 + i,
                "double_bytes": np.array([0.1, -1e300]),
                "dynamic": rng.integers(0, 255, (i, n, 2), dtype=np.uint8),
                "dynamics": [rng.integers(-9, 9, (n, 2), dtype=np.int32) for _ in range(i + 1)],  # TFDS stacks them
                "fixed": rng.integers(-9, 9, (2, 3), dtype=np.int16),
                "free": rng.standard_normal((n, 3)).astype(np.float32),
                "free_last": rng.standard_normal((2, n)).astype(np.float32),
                "half_bytes": rng.standard_normal((2, 2)).astype(np.float16),
                "image": rng.integers(0, 255, (4, 4, 3), dtype=np.uint8),
                "label": -1 if i == 3 else i,
                "labels": ["a", "b"][:n],
                "labeled": rng.integers(0, 3, (3, 2, 1), dtype=np.uint8),
                "mask": rng.integers(0, 2, n).astype(bool),
                "nested": {"a": {"b": -i, "c/d": {"x": list(range(n)), "name": ["n"] * n}}},
                "objects": [
                    {"bbox": f.BBox(0.0, 0.0, 1.0, 0.5), "label": k % 2, "parts": list(range(k))} for k in range(n)
                ],
                "optional": None if i == 1 else i - 2,
                "optional_text": None if i == 2 else "",
                "pairs": rng.integers(-9, 9, (2, 2)),
                "ragged3": [[[[1, 2]] * k for k in range(j)] for j in range(i)],
                "text": ["", "größe", "a\x00b", "plain"][i],
                "uint64": 2**64 - 1 - i,
                "uint64s": [2**63, 7][:n],
                "vector": rng.standard_normal(3).astype(np.float32),
                "video": rng.integers(0, 255, (n, 2, 2, 3), dtype=np.uint8),
                "words": ["ein", "zwei"][:n],
                "zlib": rng.integers(-9, 9, (2, 2)),
                "zlibs": rng.standard_normal((n, 3)).astype(np.float32),
            },
        )


def episodes(rng):
    for i in range(3):
        steps = [
            {
                "action": rng.standard_normal(7).astype(np.float32),
                "is_first": k == 0,
                "language_instruction": "pick up the größe",
                "observation": {
                    "image": rng.integers(0, 255, (2, 2, 3), dtype=np.uint8),
                    "state": rng.standard_normal((2, 2)),
                },
                "reward": float(k),
            }
            for k in range(2 * i)
        ]
        yield f"{i}", {"episode_metadata": {"file_path": f"/data/{i}.hdf5"}, "steps": steps}


def make_builder(builder_name, features, examples):
    class Builder(tfds.core.GeneratorBasedBuilder):
        name = builder_name
        VERSION = tfds.core.Version("1.0.0")
        RELEASE_NOTES = {"1.0.0": "first"}  # noqa: RUF012
        pkg_dir_path = epath.Path(HERE)  # or it takes this file for a package

        def _info(self):
            return self.dataset_info_from_configs(features=features)

        def _split_generators(self, dl_manager):
            return {"train": self._generate_examples()}

        def _generate_examples(self):
            yield from examples(np.random.default_rng(7))

    return Builder


def write_splits(target):
    """A dataset of numbers in three splits of several shards, and what TFDS reads of it by expressions."""
    rows = {"train": (0, 103), "test": (1000, 17), "dev-small_2": (2000, 8)}

    def numbers(begin, count):
        yield from ((i, {"n": begin + i}) for i in range(count))

    Splits = make_builder("splits", f.FeaturesDict({"n": np.int64}), None)
    Splits._split_generators = lambda self, dl_manager: {split: numbers(*size) for split, size in rows.items()}
    with tempfile.TemporaryDirectory() as scratch:
        builder = Splits(data_dir=scratch)
        builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=5))
        read_config = tfds.ReadConfig(interleave_cycle_length=1)
        expected = {}
        for text in expressions(np.random.default_rng(11), list(rows)):
            try:
                read = builder.as_dataset(split=text, read_config=read_config)
                expected[text] = [int(record["n"]) for record in read]
            except (ValueError, AssertionError, NotImplementedError, KeyError):
                expected[text] = None
        shutil.copytree(builder.data_dir, target)
    (target / "expected.json").write_text(json.dumps(expected))


def expressions(rng, names):
    """Values of split=, of which none ends before it begins, as TFDS reads all records from there on."""
    yield from ["all", "train", "train+test", "train + dev-small_2", "test[:100%]", "train[33%:66%]", "train[-5%:]"]
    yield from ["train[12.5%:]", "train[:.5%]", "train[50%:75]", "train[1_0:2_0]", "train[2shard]", "train[-1shard]"]
    yield from ["train[:0]", "train[5:5]", "train[104:]", "train[:-103]", "val", "train[3]", "train[5%]", "all[:5]"]
    yield from ["", "train[", "train[]", "train[:]", "train[1:2:3]", "train[a:]", "train[:101%]", "train+", " train"]
    yield from ["train[6shard:]", "train[:1.5]", "train[1shard:0shard]", "train[--1:]", "train[..%:]", "train[:5][:5]"]
    for _ in range(150):
        parts = []
        for _ in range(int(rng.choice([1, 1, 1, 2]))):
            name, unit = str(rng.choice(names)), str(rng.choice(["", "%", "%", "shard"]))
            size = {"train": 103, "test": 17, "dev-small_2": 8}[name]
            most = {"": size, "%": 100, "shard": 5}[unit]
            first, last = sorted(int(each) for each in rng.integers(0, most + 1, 2))
            texts = [str(each - most if rng.random() < 0.3 and each < most else each) for each in (first, last)]
            first_text = "" if rng.random() < 0.2 else texts[0] + unit
            last_text = "" if rng.random() < 0.2 and first_text else texts[1] + unit
            parts.append(f"{name}[{first_text}:{last_text}]")
        yield "+".join(parts)


def plain(value):
    """What TFDS read, in the terms of JSON; bytes as {"base64": …}."""
    if isinstance(value, tf.data.Dataset):
        steps = [plain(step) for step in value]
        return {"steps": steps}
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tf.RaggedTensor):
        return plain(value.to_list())
    if isinstance(value, tf.Tensor):
        return plain(value.numpy())
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def skip(features):
    """Leave encoded bytes as they are."""
    found = {}
    for key, feature in features.items():
        if isinstance(feature, f.Image | f.Video):
            found[key] = tfds.decode.SkipDecoding()
    return found


def main():
    for name, features, examples in (("everything", EVERYTHING, everything), ("episodes", EPISODES, episodes)):
        target = HERE / name
        shutil.rmtree(target, ignore_errors=True)
        with tempfile.TemporaryDirectory() as scratch:
            builder = make_builder(name, features, examples)(data_dir=scratch)
            builder.download_and_prepare()
            decoders = (
                skip(features)
                if name == "everything"
                else {"steps": {"observation": {"image": tfds.decode.SkipDecoding()}}}
            )
            read = builder.as_dataset(split="train", decoders=decoders, shuffle_files=False)
            records = [plain(record) for record in read]
            shutil.copytree(builder.data_dir, target)
        (target / "expected.json").write_text(json.dumps(records, ensure_ascii=False))
    shutil.rmtree(HERE / "splits", ignore_errors=True)
    write_splits(HERE / "splits")
    old = HERE / "old"
    old.mkdir(exist_ok=True)
    (old / "features.json").write_text(json.dumps(EVERYTHING.to_json(), indent=1))


main()
