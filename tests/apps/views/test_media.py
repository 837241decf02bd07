"""Images, boxes and sounds in records."""

from __future__ import annotations

import io
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.apps.views.media import SIDE, Box, Gallery, audio_mime, png_of, thumbnail
from tfrecord_io.base import ReadOptions
from tfrecord_io.columns.arrow.image_decoder import PixelReader
from tfrecord_io.columns.schema.field import BOXES_KEY
from tfrecord_io.columns.schema.image_form import ImageForm

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")
dataset_statistics = pytest.importorskip("tfrecord_io.plugins.report.dataset_statistics").dataset_statistics
SampleLimits = pytest.importorskip("tfrecord_io.plugins.report.report_sample").SampleLimits


def encoded(format: str = "JPEG", size: tuple[int, int] = (40, 30)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, (200, 30, 60)).save(out, format)
    return out.getvalue()


def galleries(tmp_path: Path, data: object) -> dict[str, Gallery]:
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord", float64="round")
    found = dataset_statistics(tmp_path / "a.tfrecord", ReadOptions(), SampleLimits())
    return {gallery.feature: gallery for gallery in found.galleries}


@pytest.mark.parametrize("format", ["JPEG", "PNG", "GIF", "WEBP", "BMP", "TIFF"])
def test_images_are_found_by_their_first_bytes(tmp_path: Path, format: str) -> None:
    found = galleries(tmp_path, {"picture": [encoded(format)] * 3, "label": [1, 2, 3]})
    (sample, *_) = found["picture"].samples
    assert found["picture"].kind == "image"
    assert sample.captions == (("label", "1"),)
    assert sample.note.startswith("40 × 30, ")
    with Image.open(io.BytesIO(sample.data)) as shown:
        assert shown.size == (40, 30)


def test_large_images_become_thumbnails() -> None:
    made = thumbnail(encoded(size=(2000, 1000)))
    assert (made.width, made.height, made.mime) == (2000, 1000, "image/jpeg")
    with Image.open(io.BytesIO(made.data)) as shown:
        assert shown.size == (SIDE, SIDE // 2)


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_photos_are_turned_as_their_boxes_are(tmp_path: Path, format: str, orientation: int) -> None:
    pixels = np.zeros((30, 40, 3), np.uint8)
    pixels[:15, :20] = 255
    exif, out = Image.Exif(), io.BytesIO()
    exif[0x112] = orientation
    Image.fromarray(pixels).save(out, format, exif=exif, quality=100)
    turned = np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(out.getvalue()))))

    def shown(height: int, width: int, **keywords: object) -> np.ndarray:
        row = {"image/encoded": [out.getvalue()], "image/height": [height], "image/width": [width]}
        tfr.write_tfrecord(row, tmp_path / "a.tfrecord", mode="overwrite", **keywords)
        found = dataset_statistics(tmp_path / "a.tfrecord", ReadOptions(), SampleLimits())
        return np.asarray(Image.open(io.BytesIO(found.galleries[0].samples[0].data)))

    def is_like(image: np.ndarray, other: np.ndarray) -> bool:
        return image.shape == other.shape and bool(((image > 127) == (other > 127)).all())

    assert is_like(shown(*turned.shape[:2]), turned)
    assert is_like(shown(30, 40), pixels if orientation > 4 else turned)  # only a quarter turn shows in the size
    of_stored = tfr.image(orient=False)
    assert is_like(
        shown(30, 40, schema={"image/encoded": of_stored, "image/height": "int64", "image/width": "int64"}), pixels
    )


def test_grey_of_16_bits_is_not_white() -> None:
    out = io.BytesIO()
    Image.fromarray(np.arange(0, 65536, 64, dtype=np.uint16).reshape(32, 32)).save(out, "PNG")
    with Image.open(io.BytesIO(thumbnail(out.getvalue()).data)) as shown:
        np.testing.assert_array_equal(np.asarray(shown), (np.arange(0, 65536, 64) >> 8).reshape(32, 32))


@pytest.mark.filterwarnings("ignore:Image size")
def test_broken_images_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"image/encoded": [encoded()[:60], b"\xff\xd8\xff<script>", b"text", encoded()]}
    samples = galleries(tmp_path, rows)["image/encoded"].samples
    assert [sample.data is None for sample in samples] == [True, True, True, False]
    assert all(sample.problem.startswith("cannot be decoded: ") for sample in samples[:3])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    assert "MAX_IMAGE_PIXELS" in thumbnail(encoded()).problem


def test_without_pillow_a_tiff_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    image = encoded("TIFF")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert thumbnail(image).data is None
    assert "pillow" in thumbnail(image).problem


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_tiff_is_turned_as_it_is_decoded(orientation: int) -> None:
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[:10, :20] = 255
    out, exif = io.BytesIO(), Image.Exif()
    exif[0x112] = orientation
    Image.fromarray(pixels).save(out, "TIFF", exif=exif)
    reader = PixelReader.from_form("x", ImageForm(mode="RGB"))
    with Image.open(io.BytesIO(thumbnail(out.getvalue()).data)) as shown:
        assert np.array_equal(np.asarray(shown), reader.read((0, out.getvalue()))[1])


def test_a_tiff_without_8_bits_says_so() -> None:
    out = io.BytesIO()
    Image.fromarray(np.ones((9, 9), np.float32)).save(out, "TIFF")
    assert "floats" in thumbnail(out.getvalue()).problem


def test_without_pillow_small_images_are_embedded_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL.Image", None)
    assert thumbnail(encoded()).data == encoded()
    large = thumbnail(encoded("PNG") + b"\0" * 1_000_000)
    assert large.data is None
    assert "pillow" in large.problem


def test_uint8_tensors_are_pictures(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 28, 20), np.uint8)
    found = galleries(tmp_path, {"digit": pixels, "other": np.zeros((5, 3, 2), np.uint8)})
    assert list(found) == ["digit"]
    for sample, expected in zip(found["digit"].samples, pixels, strict=True):
        with Image.open(io.BytesIO(sample.data)) as shown:
            assert np.array_equal(np.asarray(shown), expected)
        assert sample.pixelated


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_has_the_pixels(channels: int) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (9, 7, channels), np.uint8)
    with Image.open(io.BytesIO(png_of(pixels))) as shown:
        assert np.array_equal(np.asarray(shown).reshape(pixels.shape), pixels)


def test_boxes_are_within_the_image(tmp_path: Path) -> None:
    boxes = {
        "image/object/bbox/ymin": [[0.1, float("nan")], [0.9]],
        "image/object/bbox/xmin": [[-1.0, 0.0], [0.2]],
        "image/object/bbox/ymax": [[0.5, 1.0], [0.3]],
        "image/object/bbox/xmax": [[7.0, 1.0], [0.4]],
    }
    lists = {name: pa.array(values, pa.list_(pa.float32())) for name, values in boxes.items()}
    texts = pa.array([["cat", "dog"], ["<b>"]])
    table = pa.table({"image/encoded": [encoded()] * 2, **lists, "image/object/class/text": texts})
    first, second = galleries(tmp_path, table)["image/encoded"].samples
    assert first.boxes == (Box(pytest.approx(0.1), 0.0, 0.5, 1.0, "cat"),)
    assert second.boxes == (Box(pytest.approx(0.3), pytest.approx(0.2), pytest.approx(0.9), pytest.approx(0.4), "<b>"),)


def test_boxes_of_tfds(data: Path) -> None:
    found = dataset_statistics(data / "tfds" / "everything", ReadOptions(), SampleLimits())
    boxes = [sample.boxes for gallery in found.galleries if gallery.feature == "image" for sample in gallery.samples]
    assert any(boxes)
    assert all(0 <= box.ymin <= box.ymax <= 1 for found in boxes for box in found)


def test_boxes_of_tfds_in_another_order(data: Path, tmp_path: Path) -> None:
    copied = shutil.copytree(data / "tfds" / "everything", tmp_path / "copied")
    features = copied / "features.json"
    features.write_text(features.read_text().replace('"REL_YXYX"', '"REL_XYXY"'))
    expected, found = all_boxes(data / "tfds" / "everything"), all_boxes(copied)
    assert found
    assert found == [Box(box.xmin, box.ymin, box.xmax, box.ymax, box.label) for box in expected]


def all_boxes(path: Path) -> list[Box]:
    shown = dataset_statistics(path, ReadOptions(), SampleLimits()).galleries
    return [box for each in shown if each.feature == "image" for sample in each.samples for box in sample.boxes]


@pytest.mark.parametrize(
    ("form", "box"),
    [("XYWH", [1, 0, 2, 1]), ("XYXY", [1, 0, 3, 1]), ("YXYX", [0, 1, 1, 3]), ("REL_XYXY", [0.25, 0, 0.75, 0.5])],
)
def test_boxes_of_a_stated_format(tmp_path: Path, form: str, box: list[float]) -> None:
    field = pa.field("objects/bbox", pa.list_(pa.list_(pa.float32(), 4)), metadata={BOXES_KEY: form.encode()})
    image = pa.array([encoded(size=(4, 2))])
    table = pa.table([image, pa.array([[box]], field.type)], pa.schema([pa.field("image", pa.binary()), field]))
    (sample,) = galleries(tmp_path, table)["image"].samples
    assert sample.boxes == (Box(0.0, 0.25, 0.5, 0.75),)


def test_boxes_in_pixels_are_not_drawn(tmp_path: Path) -> None:
    """``[x, y, width, height]``, as of COCO: they would be at another place."""
    parts = [[[0.1, 0.2, 0.5, 0.6]], [[0.1, 0.2, 0.5, 0.6], [1.0, 2.0, 5.0, 3.0]]]
    boxes = pa.array(parts, pa.list_(pa.list_(pa.float32(), 4)))
    table = pa.table({"image": [encoded()] * 2, "objects/bbox": boxes})
    assert [len(sample.boxes) for sample in galleries(tmp_path, table)["image"].samples] == [1, 0]


def wav(samples: int) -> bytes:
    data = b"\0\0" * samples
    head = struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    return (
        b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + head + b"data" + struct.pack("<I", len(data)) + data
    )


def test_sounds_are_embedded_up_to_a_size(tmp_path: Path) -> None:
    found = galleries(tmp_path, {"audio": [wav(100), wav(300_000)], "label": ["a", "b"]})["audio"]
    small, large = found.samples
    assert (found.kind, small.mime, small.data) == ("audio", "audio/wav", wav(100))
    assert large.data is None
    assert "not embedded" in large.problem


def test_sounds_are_told_by_their_first_bytes() -> None:
    assert [audio_mime(d) for d in (b"OggS", b"ID3", b"\xff\xfb", b"\xff\xd8\xff", b"", None)] == [
        "audio/ogg", "audio/mpeg", "audio/mpeg", None, None, None,
    ]  # fmt: skip


def test_lists_of_images_show_the_first(tmp_path: Path) -> None:
    table = pa.table({"frames": pa.array([[encoded(), encoded()], [encoded()], []], pa.list_(pa.binary()))})
    samples = galleries(tmp_path, table)["frames"].samples
    assert [sample.note.rpartition(", ")[2] for sample in samples] == ["the first of 2", "the first of 1"]


@pytest.mark.parametrize(
    ("name", "companions", "shape", "note"),
    [
        ("x", {}, (6, 20, 20), "20 × 20, uint8, the first of 6"),
        ("x", {"channels": 6}, (6, 20, 20), "20 × 20, uint8, channel 1 of 6"),
        ("x", {"channels": 5}, (6, 20, 20), "20 × 20, uint8, the first of 6"),
        ("x", {"x/channels": 7}, (20, 30, 7), "20 × 30, uint8, channel 1 of 7"),
        ("bands", {}, (6, 20, 30), "20 × 30, uint8, channel 1 of 6"),
        ("image/encoded", {}, (100, 221, 7), "100 × 221, uint8, channel 1 of 7"),
    ],
)
def test_channels_are_no_frames_where_a_companion_or_the_name_says_so(
    name: str, companions: dict[str, int], shape: tuple[int, ...], note: str, tmp_path: Path
) -> None:
    tensors = np.arange(2 * np.prod(shape)).reshape(2, *shape).astype("uint8")
    columns = {name: tensors, **{key: [value] * 2 for key, value in companions.items()}}
    samples = galleries(tmp_path, columns)[name].samples
    assert [sample.note for sample in samples] == [note] * 2
