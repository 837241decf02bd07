"""Raw pixels declared as images: every consumer has the pixels that NumPy made.

The laws cross the layout, the dtype, the number of channels, and sizes that are numbers or stored in other features.
"""

from __future__ import annotations

import io
import json
import pickle
import struct
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.rows.arrays.image_columns import ImageColumns
from tfrecord_io.train import BytesList, Feature, FeatureList, FeatureLists, SequenceExample
from tfrecord_io.typing import OpenedDataset

Image = pytest.importorskip("PIL.Image")
Array = np.ndarray[Any, Any]
SIZES: dict[str, Any] = {  # the shape of `tfr.tensor`, [height, width, channels]
    "numbers": (),
    "features": ("height", "width", "depth"),
    "one feature": "image/shape",
    "varying features": ("height", "width", "depth"),
}
RESIZED = (4, 6)


class Case(NamedTuple):
    layout: str
    dtype: str
    channels: int
    sizes: str

    def images(self) -> list[Array]:
        """The pixels [height, width, channels] of each record."""
        rng = np.random.default_rng(0)
        shapes = [(5 + row * (self.sizes == "varying features"), 7, self.channels) for row in range(3)]
        most = np.iinfo(self.dtype).max
        return [rng.integers(0, most, shape, endpoint=True).astype(self.dtype) for shape in shapes]

    def stored(self, image: Array) -> Array:
        return image.transpose(2, 0, 1) if self.layout == "CHW" else image

    def restored(self, array: Array) -> Array:
        return array.transpose(1, 2, 0) if self.layout == "CHW" else array

    def image(self, **keywords: Any) -> Any:
        shape = (5, 7, self.channels) if self.sizes == "numbers" else SIZES[self.sizes]
        if self.layout == "CHW" and not isinstance(shape, str):
            shape = (shape[2], *shape[:2])
        return tfr.image(tfr.tensor(self.dtype, shape), layout=self.layout, **keywords)

    def record(self, image: Array) -> dict[str, Any]:
        stated: dict[str, Any] = dict(zip(("height", "width", "depth"), image.shape, strict=True))
        stated["image/shape"] = [*self.stored(image).shape]
        boxes = {f"image/object/bbox/{side}": [at / 8] for at, side in enumerate(("xmin", "ymin", "xmax", "ymax"))}
        classes = {"image/object/class/label": [1], "image/object/class/text": ["cat"]}
        shape = SIZES[self.sizes]
        sizes = {name: stated[name] for name in ([shape] if isinstance(shape, str) else shape)}
        return {"image_raw": self.stored(image).tobytes(), **sizes, **boxes, **classes}

    def dataset(self, folder: Path, **keywords: Any) -> OpenedDataset:
        with tfr.RecordWriter(folder / "a.tfrecord") as writer:
            for image in self.images():
                writer.write(tfr.encode_example(self.record(image)))
        overrides = {"image_raw": self.image(**keywords)}
        return tfr.dataset(folder / "a.tfrecord", schema_overrides=overrides, sample="all")


pytestmark = [
    pytest.mark.parametrize("layout", ["HWC", "CHW"]),
    pytest.mark.parametrize("dtype", ["uint8", "uint16"]),
    pytest.mark.parametrize("channels", [1, 3, 4]),
    pytest.mark.parametrize("sizes", [*SIZES]),
]


@pytest.fixture
def case(layout: str, dtype: str, channels: int, sizes: str) -> Case:
    return Case(layout, dtype, channels, sizes)


def pixels_of_png(data: bytes) -> Array:
    """The pixels of a PNG without a palette, whose lines are stored as they are or as differences from those above."""
    at, chunks = 8, list[tuple[bytes, bytes]]()
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + content)
        chunks.append((name, content))
        at += 12 + size
    width, height, bits, colour = struct.unpack(">IIBB", dict(chunks)[b"IHDR"][:10])
    channels = {0: 1, 4: 2, 2: 3, 6: 4}[colour]
    lines = np.frombuffer(zlib.decompress(dict(chunks)[b"IDAT"]), np.uint8).reshape(height, -1)
    assert {*lines[:, 0].tolist()} == {2}
    values = np.ascontiguousarray(np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8))
    return values.view(f">u{bits // 8}").astype(f"uint{bits}").reshape(height, width, channels)


def nearest(image: Array, size: tuple[int, int]) -> Array:
    rows, columns = (
        np.floor((np.arange(new) + 0.5) * old / new).astype(int) for new, old in zip(size, image.shape, strict=False)
    )
    return image[rows][:, columns]


def of_arrays(dataset: OpenedDataset) -> list[Array]:
    return list(tfr.read_arrays(dataset, ragged="object")["image_raw"])


def of_batches(dataset: OpenedDataset) -> list[Array]:
    return [array for batch in dataset.iter_arrays(batch_size=2, ragged="object") for array in batch["image_raw"]]


def of_random_access(dataset: OpenedDataset) -> list[Array]:
    records = tfr.open_random(dataset)
    return [records[row]["image_raw"] for row in range(len(records))]


def of_pickle(dataset: OpenedDataset) -> list[Array]:
    return of_arrays(pickle.loads(pickle.dumps(dataset)))


def of_written(dataset: OpenedDataset) -> list[Array]:
    """What is written again has the sizes in the same features, and its schema has the images."""
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(tfr.read_table(dataset), Path(folder) / "b.tfrecord")
        again = tfr.dataset(Path(folder) / "b.tfrecord")
        (field,) = (f for f in tfr.Schema(again.schema) if f.column == "image_raw")
        assert "raw image" in field.notes()
        return of_arrays(again)


@pytest.mark.parametrize("reader", [of_arrays, of_batches, of_random_access, of_pickle, of_written])
def test_arrays_have_the_pixels_in_their_layout(
    case: Case, tmp_path: Path, reader: Callable[[OpenedDataset], list[Array]]
) -> None:
    for found, expected in zip(reader(case.dataset(tmp_path)), case.images(), strict=True):
        assert found.dtype == case.dtype
        np.testing.assert_array_equal(found, case.stored(expected))


@pytest.mark.parametrize("reader", [of_arrays, of_batches, of_written])
def test_resized_arrays_have_the_nearest_pixels(
    case: Case, tmp_path: Path, reader: Callable[[OpenedDataset], list[Array]]
) -> None:
    dataset = case.dataset(tmp_path, resize=RESIZED, resample="nearest")
    for found, expected in zip(reader(dataset), case.images(), strict=True):
        assert found.dtype == case.dtype
        np.testing.assert_array_equal(found, case.stored(nearest(expected, RESIZED)))


@pytest.mark.parametrize("fit", ["stretch", "contain", "crop", "pad"])
def test_resized_pixels_are_those_of_the_encoded_image(case: Case, tmp_path: Path, fit: Any) -> None:
    """Of 16 bits those of the upper 8, within the rounding of both."""
    mode = {1: "L", 3: "RGB", 4: "RGBA"}[case.channels]
    images = case.images()
    if case.dtype == "uint16":
        images = [(image >> 8).astype("uint8") for image in images]
        if case.channels == 4:
            pytest.skip("8 bits of RGBA are weighted by their opacity, 16 bits are not")
    files = [_png(image) for image in images]
    tfr.write_tfrecord({"x": files}, tmp_path / "encoded.tfrecord")
    encoded = tfr.dataset(tmp_path / "encoded.tfrecord", schema={"x": tfr.image(mode=mode, resize=RESIZED, fit=fit)})
    expected = list(tfr.read_arrays(encoded, ragged="object")["x"])
    found = list(tfr.read_arrays(case.dataset(tmp_path, resize=RESIZED, fit=fit), ragged="object")["image_raw"])
    for own, other in zip(found, expected, strict=True):
        values = case.restored(own).astype(int)
        if case.dtype == "uint8":
            np.testing.assert_array_equal(values, other)
        else:
            assert np.abs(values / 257 - other).max() < 2


def _png(image: Array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(image[:, :, 0] if image.shape[2] == 1 else image).save(file, "PNG")
    return file.getvalue()


def test_padded_batches_state_the_sizes(case: Case, tmp_path: Path) -> None:
    dataset = case.dataset(tmp_path, resize=RESIZED, fit="contain", resample="nearest").select(["image_raw"])
    arrays, found = (tfr.read_arrays(dataset, ragged=ragged) for ragged in ("pad", "object"))
    for padded, shape, image in zip(arrays["image_raw"], arrays["image_raw/shape"], found["image_raw"], strict=True):
        assert tuple(shape) == image.shape
        np.testing.assert_array_equal(padded[tuple(map(slice, shape))], image)


def test_lists_of_pixels_have_the_resized_images(case: Case, tmp_path: Path) -> None:
    """The columns that libraries without arrays get."""
    dataset = case.dataset(tmp_path, resize=RESIZED, resample="nearest").select(["image_raw"])
    table = tfr.read_table(dataset)
    found = ImageColumns(table.schema, 1).decode(table)["image_raw"].to_pylist()
    for own, expected in zip(found, case.images(), strict=True):
        np.testing.assert_array_equal(np.array(own), case.stored(nearest(expected, RESIZED)))


def test_a_report_shows_the_pixels(case: Case, tmp_path: Path) -> None:
    (gallery,) = tfr.report(case.dataset(tmp_path)).statistics[0].galleries
    assert (gallery.feature, gallery.kind) == ("image_raw", "image")
    expected = {(i if case.dtype == "uint8" else (i >> 8).astype("uint8")).tobytes() for i in case.images()}
    assert {pixels_of_png(sample.data or b"").tobytes() for sample in gallery.samples} == expected
    for sample in gallery.samples:
        assert (len(sample.boxes), sample.problem) == (1, None)
        assert case.dtype in sample.note


def test_files_have_the_pixels(case: Case, tmp_path: Path) -> None:
    dataset, images = case.dataset(tmp_path), case.images()
    tfr.formats.write_image_folder(dataset, tmp_path / "files", columns=[])
    for row, image in enumerate(images):
        data = (tmp_path / "files" / f"{row:08d}.png").read_bytes()
        np.testing.assert_array_equal(pixels_of_png(data), image)
        if case.dtype == "uint8" or case.channels == 1:
            np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(data))).reshape(image.shape), image)


@pytest.mark.parametrize("format", ["coco", "voc", "yolo"])
def test_annotated_images_have_the_pixels(case: Case, tmp_path: Path, format: str) -> None:
    tfr.convert(case.dataset(tmp_path), tmp_path / format, target_format=format)
    below = {"coco": "images", "voc": "JPEGImages", "yolo": "images"}[format]
    for row, image in enumerate(case.images()):
        (path,) = (tmp_path / format / below).rglob(f"{row:08d}.png")
        np.testing.assert_array_equal(pixels_of_png(path.read_bytes()), image)
    if format == "coco":
        stated = json.loads((tmp_path / "coco" / "instances.json").read_text())["images"]
        assert [(one["height"], one["width"]) for one in stated] == [i.shape[:2] for i in case.images()]


def test_png_files_are_written_on_request(case: Case, tmp_path: Path) -> None:
    dataset = case.dataset(tmp_path).select(["image_raw"])
    write = lambda: tfr.write_tfrecord(tfr.read_table(dataset), tmp_path / "b", column_encoding={"image_raw": "png"})  # noqa: E731
    if case.dtype == "uint16" and case.channels > 1:
        with pytest.raises(tfr.errors.EncodeError, match="images of 16 bits have 1 channel"):
            write()
        return
    write()
    assert tfr.read_table(tmp_path / "b").schema.field("image_raw").type == pa.binary()
    for found, expected in zip(tfr.read_arrays(tmp_path / "b")["image_raw"], case.images(), strict=True):
        assert found.dtype == case.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("resize", [None, RESIZED])
def test_the_schema_is_its_own_source(case: Case, resize: Any) -> None:
    schema = tfr.Schema({"image_raw": case.image(resize=resize), "frames": tfr.sequence(case.image(resize=resize))})
    made: dict[str, Any] = {}
    exec(schema.to_python(), made)
    assert made["schema"] == schema
    assert tfr.Schema.from_json(schema.to_json()) == schema


def test_frames_of_a_feature_list_are_resized(case: Case, tmp_path: Path) -> None:
    if case.sizes != "numbers":
        pytest.skip("sizes in the steps: tests/laws/test_shapes_from_features.py")
    frames = case.images()
    with tfr.RecordWriter(tmp_path / "a") as writer:
        for count in (3, 1):
            values = [BytesList(value=[case.stored(image).tobytes()]) for image in frames[:count]]
            steps = FeatureList(feature=[Feature(bytes_list=value) for value in values])
            lists = FeatureLists(feature_list={"frames": steps})
            writer.write(SequenceExample(feature_lists=lists).SerializeToString())
    schema = tfr.Schema({"frames": tfr.sequence(case.image(resize=RESIZED, resample="nearest"))})
    found = tfr.read_arrays(tmp_path / "a", schema=schema, ragged="object")["frames"]
    padded = tfr.read_arrays(tmp_path / "a", schema=schema, ragged="pad")
    assert padded["frames/length"].tolist() == [3, 1]
    for own, other in zip(found, padded["frames"], strict=True):
        np.testing.assert_array_equal(np.stack(list(own)), other[: len(own)])
    for own, count in zip(found, (3, 1), strict=True):
        np.testing.assert_array_equal(np.stack(list(own)), [case.stored(nearest(i, RESIZED)) for i in frames[:count]])
