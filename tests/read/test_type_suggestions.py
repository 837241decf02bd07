"""Suggestions for columns of bytes: right for the layouts of well-known programs, none for other files."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.read.type_suggestions import Suggestion, TypeSample

Rows = list[dict[str, Any]]
rng = np.random.default_rng(7)
SHAPES = {"uniform": [(28, 28, 3)] * 5, "varying": [(4, 5, 3), (6, 5, 3), (7, 3, 3), (2, 9, 3)]}
NAMES = {
    "TensorFlow's tutorial": ("image_raw", ("height", "width", "depth")),
    "TF-Slim": ("image/encoded", ("image/height", "image/width", "image/channels")),
    "MNIST of TensorFlow": ("image_raw", ("rows", "cols", "depth")),
    "words with underscores": ("img", ("img_height", "img_width", "n_channels")),
    "camel case": ("imageRaw", ("imageHeight", "imageWidth", "numChannels")),
}
DTYPES = {"uint8": [], "uint16": ["int16", "float16"], "float32": ["int32"], "float64": ["int64"]}


def array(shape: tuple[int, ...], dtype: str = "uint8") -> np.ndarray[Any, Any]:
    return rng.integers(0, 200, shape).astype(dtype)


def suggestions_for(rows: pa.Table) -> tuple[Suggestion, ...]:
    sample = TypeSample()
    for batch in rows.to_batches():
        sample.add(batch)
    return sample.suggestions()


def suggestions(rows: Rows) -> dict[str, Any]:
    return {found.column: found for found in suggestions_for(pa.Table.from_pylist(rows))}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("program", NAMES)
def test_sizes_in_features(program: str, shapes: str, dtype: str) -> None:
    column, names = NAMES[program]
    rows = [
        {"label": label, column: array(shape, dtype).tobytes(), **dict(zip(names, shape, strict=True))}
        for label, shape in enumerate(SHAPES[shapes])
    ]
    (found,) = suggestions(rows).values()
    assert found.schema == f"tfr.tensor({dtype!r}, {names!r})"
    assert [other.split()[0] for other in found.others] == DTYPES[dtype], "the bytes do not decide"


@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize(
    ("column", "feature"), [("data", "shape"), ("image/encoded", "image/shape"), ("frames", "frames_dims")]
)
def test_all_sizes_in_one_feature(column: str, feature: str, shapes: str) -> None:
    """StyleGAN, DeepVariant."""
    rows = [{column: array(shape).tobytes(), feature: list(shape)} for shape in SHAPES[shapes]]
    assert suggestions(rows)[column].schema == f"tfr.tensor('uint8', {feature!r})"


@pytest.mark.parametrize("shapes", SHAPES)
def test_channels_that_no_feature_states(shapes: str) -> None:
    rows = [{"image": array(s).tobytes(), "height": s[0], "width": s[1], "id": 5} for s in SHAPES[shapes]]
    assert suggestions(rows)["image"].schema == "tfr.tensor('uint8', ('height', 'width', 3))"


def test_sizes_without_telling_names_need_lengths_that_differ() -> None:
    rows = [{"x": bytes(4 * a * b), "nx": a, "ny": b} for a, b in [(2, 3), (5, 7), (1, 9), (4, 4)]]
    assert suggestions(rows)["x"].schema == "tfr.tensor('float32', ('nx', 'ny'))"
    assert suggestions([{"x": bytes(24), "nx": 2, "ny": 3}] * 9) == {}


def test_lists_of_numbers() -> None:
    rows = pa.table(
        {"target": pa.array([[0.5] * 12, [1.0] * 6], pa.list_(pa.float32())), "rows": [3, 2], "cols": [4, 3]}
    )
    (found,) = suggestions_for(rows)
    assert found.schema == "tfr.tensor('float32', ('rows', 'cols'))"


def npy(value: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, value)
    return file.getvalue()


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ([b"\xff\xd8\xff\xe0" + bytes(20)] * 3, "tfr.image()"),
        ([b"\x89PNG\r\n\x1a\n" + bytes(20)] * 3, "tfr.image()"),
        (
            [tfr.io.serialize_tensor(np.zeros((2, n), np.float32)) for n in (1, 2)],
            "tfr.tensor('float32', (2, None), encoding='tensor_proto')",
        ),
        ([npy(np.zeros((2, 3)))] * 2, "tfr.tensor('float64', (2, 3), encoding='npy')"),
        ([b"RIFF\x24\0\0\0WAVEfmt " + bytes(20)] * 2, None),
        ([b"\x1f\x8b\x08" + bytes(20)] * 2, None),
    ],
)
def test_content(values: list[bytes], field: str | None) -> None:
    (found,) = suggestions([{"x": value} for value in values]).values()
    assert found.schema == field


EXAMPLE = tfr.encode_example({"a": [1, 200], "b": [b"\xff"]})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (['{"a": 1}', "[1, 2]", ' {"b": {}}'], "JSON in 3 sampled records"),
        ([EXAMPLE, EXAMPLE * 2], "protobuf messages in 2 sampled records, with the fields 1"),
        ([b"fLaC\0\0\0\x22\xff"] * 2, "each of 2 sampled records has a FLAC file"),
        ([b"OggS\0\2\xff"] * 2, "each of 2 sampled records has an Ogg file"),
        ([b"\0\0\0\x18ftypmp42\xff"] * 2, "each of 2 sampled records has an MP4 video"),
        (["{x}", '{"a": 1}'], None),
        (["1", "null"], None),
        ([EXAMPLE, EXAMPLE[:-1]], None),
        ([b"\x08\x96\x01"] * 3, None),
        ([b"\xff" * 12] * 3, None),
    ],
)
def test_content_that_is_only_named(values: list[Any], reason: str | None) -> None:
    found = suggestions([{"x": value} for value in values])
    assert [(each.reason, each.schema) for each in found.values()] == ([] if reason is None else [(reason, None)])


def test_random_files_have_none() -> None:
    """The names are those of sizes, and the numbers are not."""
    found = []
    source = random.Random(3)
    for _ in range(200):
        rows: Rows = [
            {
                "a": source.randbytes(source.randint(0, 60)),
                "b": source.randint(0, 40),
                "height": source.randint(1, 9),
                "width": source.randint(1, 9),
                "label": source.randint(0, 3),
            }
            for _ in range(source.randint(3, 10))
        ]
        found += suggestions(rows).values()
    assert found == []


def test_each_suggestion_reads_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    arrays = [array(shape) for shape in SHAPES["varying"]]
    with tfr.RecordWriter(path) as writer:
        for pixels in arrays:
            sizes = dict(zip(("height", "width", "depth"), pixels.shape, strict=True))
            writer.write(tfr.encode_example({"image_raw": pixels.tobytes(), **sizes}))
    (found,) = tfr.describe(path).suggestions
    assert (found,) == tfr.infer_schema(path).suggestions
    for type_ in (eval(found.schema, {"tfr": tfr}), found.type):
        read = tfr.read_tfrecord(tfr.dataset(path, schema_overrides={"image_raw": type_}))["image_raw"]
        for own, expected in zip(read, arrays, strict=True):
            np.testing.assert_array_equal(own, expected)
    assert "height × width × depth" in str(tfr.describe(path))
    assert "height × width × depth" in repr(tfr.infer_schema(path))
    tfr.write_tfrecord({"image_raw": [b"\0\1"], "height": [1], "width": [2]}, path, mode="overwrite")
    assert tfr.describe(path).suggestions == (), "a file with an embedded schema says what its columns are"
