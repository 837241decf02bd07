"""Raw pixels as images: PNG files of them, and what is refused. All consumers: tests/laws/test_raw_images.py."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.columns.arrow.raw_images import RawImages, encode_png
from tfrecord_io.columns.schema.field import RAW_IMAGE_KEY
from tfrecord_io.columns.schema.image_form import RawImageForm

Image = pytest.importorskip("PIL.Image")
NAMES = ("height", "width", "depth")
PIXELS = tfr.tensor("uint8", NAMES)


def write(path: Path, *images: np.ndarray, **more: Any) -> Path:
    with tfr.RecordWriter(path) as writer:
        for image in images:
            sizes = dict(zip(NAMES, image.shape, strict=True))
            writer.write(tfr.encode_example({"image_raw": image.tobytes(), **sizes, **more}))
    return path


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (20, 30)])
def test_png_files_are_those_that_pillow_reads(channels: int, size: tuple[int, int]) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (*size, channels)).astype("uint8")
    with Image.open(io.BytesIO(encode_png(pixels))) as image:
        assert image.mode == {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[channels]
        np.testing.assert_array_equal(np.asarray(image).reshape(pixels.shape), pixels)


def test_png_files_of_16_bits_are_those_that_pillow_reads() -> None:
    pixels = np.random.default_rng(0).integers(0, 1 << 16, (5, 6, 1)).astype("uint16")
    with Image.open(io.BytesIO(encode_png(pixels))) as image:
        np.testing.assert_array_equal(np.asarray(image).reshape(pixels.shape), pixels)


@pytest.mark.parametrize(
    ("pixels", "arguments", "reason"),
    [
        (tfr.tensor("uint8", (28, 28)), {}, "raw pixels have a height, a width and channels, and the shape (28, 28)"),
        (tfr.tensor("uint8", (28, 28, 2)), {}, "2 channels in the layout HWC: an image has 1, 3 or 4"),
        (tfr.tensor("uint8", (3, 28, 28)), {}, "layout= is the order of the axes"),
        (tfr.tensor("uint8", (28, 28, 3)), {"layout": "CHW"}, "28 channels in the layout CHW"),
        (tfr.tensor("float32", NAMES), {}, "raw pixels are uint8 or uint16, not float32"),
        (tfr.tensor("uint8", NAMES), {"mode": "RGB"}, "mode= is for encoded images"),
        (tfr.tensor("uint8", NAMES), {"orient": False}, "orient= is for encoded images"),
        (tfr.tensor("uint8", NAMES), {"draft": True, "resize": (2, 2)}, "draft= is for encoded images"),
        (tfr.tensor("uint8", NAMES), {"default": b""}, "default= is for encoded images"),
        (tfr.tensor("uint8", NAMES), {"layout": "WHC"}, "layout='WHC'"),
        (tfr.tensor("uint8", NAMES), {"fit": "pad"}, "fit='pad' is for images that are resized"),
        (tfr.scalar("binary"), {}, "an image is not made of this field"),
        (tfr.list_("uint8"), {}, "an image is not made of this field"),
        (None, {"layout": "CHW"}, "layout= is for raw pixels"),
        ((None, None, 3), {"layout": "CHW"}, "layout= is for raw pixels"),
    ],
)
def test_arguments_that_raw_pixels_do_not_have_are_refused(pixels: Any, arguments: Any, reason: str) -> None:
    with pytest.raises(tfr.errors.SchemaError, match=re.escape(reason)):
        tfr.image(pixels, **arguments)


def test_a_field_of_raw_pixels_keeps_what_the_tensor_states() -> None:
    pixels = tfr.tensor("uint8", (4, 4, 1), feature="image", required=True, empty="null")
    assert repr(tfr.image(pixels)) == repr(pixels)[:-1].replace(", required", ", raw image HWC, required") + ")"
    field = tfr.image(tfr.tensor("uint8", (4, 4, 1)), feature="image", required=True, empty="null")
    assert field == tfr.image(pixels)


def test_sizes_in_another_order_are_refused_by_the_sample(tmp_path: Path) -> None:
    path = write(tmp_path / "a", np.zeros((28, 30, 3), "uint8"))
    schema = {"image_raw": tfr.image(tfr.tensor("uint8", ("depth", "height", "width")))}
    with pytest.raises(tfr.errors.SchemaError, match=r"'image_raw'.*30 channels .*layout= is the order"):
        tfr.read_table(path, schema=schema)


@pytest.mark.parametrize("make", ["resize", "files", "report"])
def test_a_record_that_is_no_image_is_named(tmp_path: Path, make: str) -> None:
    """Channels may vary, and a later record may have another number of them."""
    images = [np.zeros((6, 6, channels), "uint8") for channels in (1, 3, 2)]
    path = write(tmp_path / "a", *images)
    form = tfr.image(PIXELS, resize=(4, 4) if make == "resize" else None)
    dataset = tfr.dataset(path, schema={"image_raw": form}, sample="all")
    if make == "report":
        problems = [sample.problem for sample in tfr.report(dataset).statistics[0].galleries[0].samples]
        assert [p for p in problems if p] == [
            "cannot be shown: its pixels of shape (6, 6, 2) have 2 channels in the layout HWC: an image has 1, 3 or 4"
        ]
        return
    calls = {"resize": tfr.read_arrays, "files": lambda data: tfr.formats.write_image_folder(data, tmp_path / "files")}
    with pytest.raises(tfr.errors.DecodeError, match=r"\(6, 6, 2\) have 2 channels") as caught:
        calls[make](dataset)
    assert (caught.value.record, caught.value.feature) == (2, "image_raw")
    assert not (tmp_path / "files").exists()


def test_an_image_without_pixels_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a", np.zeros((6, 6, 1), "uint8"), np.zeros((0, 6, 1), "uint8"))
    form = tfr.image(PIXELS, resize=(4, 4))
    with pytest.raises(tfr.errors.DecodeError, match=r"shape \(0, 6, 1\) has no pixels") as caught:
        tfr.read_arrays(tfr.dataset(path, schema={"image_raw": form}, sample="all"))
    assert caught.value.record == 1


def test_sizes_that_are_not_those_of_the_bytes_are_named(tmp_path: Path) -> None:
    with tfr.RecordWriter(tmp_path / "a") as writer:
        writer.write(tfr.encode_example({"image_raw": bytes(100), "height": 5, "width": 5, "depth": 3}))
    schema = {"image_raw": tfr.image(PIXELS)}
    with pytest.raises(tfr.errors.DecodeError, match=r"record 0: .*75 values of uint8, .* 100 values in 100 bytes"):
        tfr.read_table(tmp_path / "a", schema=schema)


@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_the_dtype_may_stand_in_a_feature(tmp_path: Path, dtype: str) -> None:
    image = np.arange(4 * 4 * 3, dtype=dtype).reshape(4, 4, 3)
    path = write(tmp_path / "a", image, **{"image/dtype": dtype})
    schema = {"image_raw": tfr.image(tfr.tensor("image/dtype", NAMES))}
    if dtype == "float32":
        with pytest.raises(tfr.errors.SchemaError, match="raw pixels are uint8 or uint16, not float32"):
            tfr.read_arrays(path, schema=schema)
        return
    np.testing.assert_array_equal(tfr.read_arrays(path, schema=schema)["image_raw"][0], image)


@pytest.mark.parametrize("missing", [None, "mask"])
def test_a_missing_image_is_zeros_with_a_mask(tmp_path: Path, missing: Any) -> None:
    images = [np.full((4, 4, 1), 7, "uint8"), None]
    schema = {"x": tfr.image(tfr.tensor("uint8", (4, 4, 1)), resize=(2, 2))}
    tfr.write_tfrecord({"x": images}, tmp_path / "a", schema=schema)
    if missing is None:
        with pytest.raises(tfr.errors.DecodeError, match="has no value"):
            tfr.read_arrays(tmp_path / "a")
        return
    arrays = tfr.read_arrays(tmp_path / "a", missing="mask")
    assert arrays["x"].tolist() == [[[[7]] * 2] * 2, [[[0]] * 2] * 2]
    assert arrays["x/mask"].tolist() == [False, True]


def test_damaged_metadata_is_named() -> None:
    field = tfr.Schema({"x": tfr.image(tfr.tensor("uint8", (4, 4, 1)))}).to_arrow().field(0)
    for text in (b"{", b"[]", b'{"layout": "HCW"}', b'{"other": 1}'):
        with pytest.raises(tfr.errors.SchemaError, match=r"'x': its metadata is damaged: tfrecord_io.raw_image"):
            RawImages.from_field(field.with_metadata({RAW_IMAGE_KEY: text}))
    assert RawImageForm.from_metadata({}, "x") is None


def test_a_shell_declares_raw_images_by_text(tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, (3, 20, 30)).astype("uint8")
    with tfr.RecordWriter(tmp_path / "a") as writer:
        writer.write(tfr.encode_example({"image_raw": image.tobytes(), "h": 20, "w": 30}))
    type_ = "image_raw=image(uint8,(3,h,w),CHW)"
    run = lambda *words: CliRunner().invoke(command, [*map(str, words), "--type", type_])  # noqa: E731
    shown = run("convert", "--files", "images", tmp_path / "a", tmp_path / "files")
    assert shown.exit_code == 0, shown.output
    with Image.open(tmp_path / "files" / "00000000.png") as found:
        np.testing.assert_array_equal(np.asarray(found), image.transpose(1, 2, 0))
    shown = run("report", tmp_path / "a", tmp_path / "a.html")
    assert shown.exit_code == 0, shown.output
    assert "3 × 20 × 30, uint8, CHW" in (tmp_path / "a.html").read_text()
    shown = run("convert", tmp_path / "a", tmp_path / "b.tfrecord", "--column-encoding", "image_raw=png")
    assert shown.exit_code == 0, shown.output
    assert tfr.read_arrays(tmp_path / "b.tfrecord")["image_raw"].shape == (1, 20, 30, 3)
