"""Images declared by a schema are decoded into arrays; errors name the record, and decompression bombs are refused."""

from __future__ import annotations

import io
import struct
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from records import blobs, example, int64s, written

Image = pytest.importorskip("PIL.Image")
rng = np.random.default_rng(0)


def encoded(pixels: np.ndarray, kind: str = "PNG", mode: str | None = None) -> bytes:
    buffer = io.BytesIO()
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(buffer, kind)
    return buffer.getvalue()


def colours(height: int, width: int) -> np.ndarray:
    return rng.integers(0, 256, (height, width, 3), np.uint8)


@pytest.fixture
def same(tmp_path: Path) -> tuple[Path, list[np.ndarray]]:
    pixels = [colours(5, 7) for _ in range(12)]
    return written(
        tmp_path / "a.tfrecord", [example(x=blobs(encoded(p)), n=int64s(i)) for i, p in enumerate(pixels)]
    ), pixels


@pytest.fixture
def uneven(tmp_path: Path) -> tuple[Path, list[np.ndarray]]:
    pixels = [colours(3 + i, 8 - i) for i in range(5)]
    return written(
        tmp_path / "b.tfrecord", [example(x=blobs(encoded(p)), n=int64s(i)) for i, p in enumerate(pixels)]
    ), pixels


@pytest.mark.parametrize("threads", [1, 3])
def test_images_of_equal_size_are_stacked(same: tuple[Path, list[np.ndarray]], threads: int, engine: str) -> None:
    path, pixels = same
    for maker in (tfr.image(), tfr.image((5, 7, 3)), tfr.image((None, None, 3))):
        images = tfr.read_arrays(path, schema={"x": maker}, threads=threads)["x"]
        assert images.dtype == np.uint8
        assert (images == np.stack(pixels)).all()
    assert tfr.read_table(path, schema={"x": tfr.image()})["x"][0].as_py() == encoded(
        pixels[0]
    )  # tables hold the encoded bytes


def test_images_of_different_sizes(uneven: tuple[Path, list[np.ndarray]]) -> None:
    path, pixels = uneven
    objects = tfr.read_arrays(path, schema={"x": tfr.image()})["x"]
    assert objects.dtype == object
    assert all((got == expected).all() for got, expected in zip(objects, pixels, strict=True))
    padded = tfr.read_arrays(path, schema={"x": tfr.image()}, ragged="pad", pad_value=9)
    assert padded["x"].shape == (5, 7, 8, 3)
    assert padded["x/shape"].tolist() == [list(p.shape) for p in pixels]
    assert (padded["x"][0, :3, :8] == pixels[0]).all()
    assert (padded["x"][0, 3:] == 9).all()
    resized = tfr.read_arrays(path, schema={"x": tfr.image(resize=(4, 6))})["x"]
    assert resized.shape == (5, 4, 6, 3)
    assert (resized[0] == np.array(Image.fromarray(pixels[0]).resize((6, 4), Image.Resampling.BILINEAR))).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_batches_of_images(same: tuple[Path, list[np.ndarray]], threads: int) -> None:
    path, pixels = same
    schema = {"x": tfr.image((5, 7, 3)), "n": "int64"}
    seen = []
    for batch in tfr.iter_arrays(path, batch_size=5, shuffle_buffer=4, seed=2, schema=schema, threads=threads):
        assert batch["x"].shape == (len(batch["n"]), 5, 7, 3)
        assert all((image == pixels[n]).all() for image, n in zip(batch["x"], batch["n"], strict=True))
        seen += batch["n"].tolist()
    assert sorted(seen) == list(range(12))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
@pytest.mark.parametrize(("mode", "channels"), [("RGB", 3), ("L", 1), ("RGBA", 4)])
def test_formats_and_modes(tmp_path: Path, kind: str, mode: str, channels: int) -> None:
    data = encoded(colours(6, 4), kind)
    got = tfr.read_arrays(written(tmp_path / "a", [example(x=blobs(data))]), schema={"x": tfr.image(mode=mode)})["x"]
    expected = np.array(Image.open(io.BytesIO(data)).convert(mode)).reshape(1, 6, 4, channels)
    assert (got == expected).all()


def png_of_16_bits(values: np.ndarray, channels: int) -> bytes:
    """One row of grey, grey and alpha, RGB, or RGBA."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", len(values), 1, 16, {1: 0, 2: 4, 3: 2, 4: 6}[channels], 0, 0, 0)
    row = b"\0" + np.repeat(values[:, None], channels, axis=1).astype(">u2").tobytes()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(row)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "unchanged"])
def test_the_upper_8_of_16_bits_are_taken(tmp_path: Path, channels: int, mode: str) -> None:
    """Like ``tf.io.decode_png`` of TensorFlow 2.21, with the same values."""
    values = np.array([0, 255, 300, 1000, 2000, 65535], np.uint16)
    path = written(tmp_path / "a", [example(x=blobs(png_of_16_bits(values, channels)))])
    if mode == "unchanged" and channels > 1:
        with pytest.raises(tfr.DecodeError, match=r'16 bits in each .*tfr\.image\(mode="RGB"\) takes the upper 8'):
            tfr.read_arrays(path, schema={"x": tfr.image(mode=mode)})
        return
    got = tfr.read_arrays(path, schema={"x": tfr.image(mode=mode)})["x"][0, 0]
    if mode == "unchanged":
        assert got[:, 0].tolist() == values.tolist()
        return
    colours = got[:, :3]
    assert (colours == np.array([0, 0, 1, 3, 7, 255])[:, None]).all()
    if mode == "RGBA":
        assert got[:, 3].tolist() == ([0, 0, 1, 3, 7, 255] if channels in (2, 4) else [255] * 6)
    if mode == "RGB" and channels == 1:
        resized = tfr.read_arrays(path, schema={"x": tfr.image(mode=mode, resize=(1, 6))})["x"][0, 0]
        assert (resized == got).all()


def other_modes() -> dict[str, tuple[bytes, dict[str, list[list[int]]]]]:
    palette = Image.fromarray(np.array([[0, 1]], np.uint8)).convert("P")
    palette.putpalette([10, 20, 30, 40, 50, 60])
    buffer = io.BytesIO()
    palette.save(buffer, "PNG", transparency=1)
    grey = encoded(np.array([[[100, 0], [200, 128]]], np.uint8))
    with_alpha = [[10, 20, 30, 255], [40, 50, 60, 0]]
    return {
        "palette": (
            buffer.getvalue(),
            {"RGB": [[10, 20, 30], [40, 50, 60]], "RGBA": with_alpha, "unchanged": with_alpha},
        ),
        "grey and alpha": (
            grey,
            {
                "L": [[100], [200]],
                "RGB": [[100] * 3, [200] * 3],
                "RGBA": [[100, 100, 100, 0], [200, 200, 200, 128]],
                "unchanged": [[100, 0], [200, 128]],
            },
        ),
        "one bit": (encoded(np.array([[0, 255]], np.uint8), mode="1"), {"L": [[0], [255]], "unchanged": [[0], [255]]}),
    }


@pytest.mark.parametrize("name", other_modes())
def test_alpha_is_kept_if_requested(tmp_path: Path, name: str) -> None:
    data, expected = other_modes()[name]
    path = written(tmp_path / "a", [example(x=blobs(data))])
    for mode, pixels in expected.items():
        assert tfr.read_arrays(path, schema={"x": tfr.image(mode=mode)})["x"][0, 0].tolist() == pixels, mode


def test_cmyk_is_converted_to_rgb(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    Image.fromarray(np.full((8, 8, 4), 50, np.uint8), "CMYK").save(buffer, "JPEG")
    path = written(tmp_path / "a", [example(x=blobs(buffer.getvalue()))])
    for mode, channels in (("L", 1), ("RGB", 3), ("unchanged", 3)):
        pixels = tfr.read_arrays(path, schema={"x": tfr.image(mode=mode)})["x"][0]
        assert pixels.shape == (8, 8, channels)
        assert (abs(pixels.astype(int) - 165) < 3).all()


@pytest.mark.parametrize(
    ("pixels", "mode", "expected"),
    [
        (np.arange(12, dtype=np.uint16).reshape(3, 4) * 5000, None, (np.uint16, (3, 4, 1))),
        (np.zeros((3, 4), np.uint8), None, (np.uint8, (3, 4, 1))),
        (np.zeros((3, 4, 4), np.uint8), None, (np.uint8, (3, 4, 4))),
        (np.zeros((3, 4, 3), np.uint8), "P", (np.uint8, (3, 4, 3))),
        (np.zeros((3, 4), np.uint8), "1", (np.uint8, (3, 4, 1))),
    ],
)
def test_unchanged_keeps_dtype_and_channels(
    tmp_path: Path, pixels: np.ndarray, mode: str | None, expected: Any
) -> None:
    path = written(tmp_path / "a", [example(x=blobs(encoded(pixels, mode=mode)))] * 2)
    got = tfr.read_arrays(path, schema={"x": tfr.image(mode="unchanged")})["x"]
    assert (got.dtype, got.shape) == (expected[0], (2, *expected[1]))
    if pixels.dtype == np.uint16:
        assert (got[0, :, :, 0] == pixels).all()
    mixed = written(
        tmp_path / "b", [example(x=blobs(encoded(pixels, mode=mode))), example(x=blobs(encoded(colours(2, 2))))]
    )
    rows = tfr.read_arrays(mixed, schema={"x": tfr.image(mode="unchanged")})["x"]
    assert [(row.dtype, row.shape) for row in rows] == [expected, (np.uint8, (2, 2, 3))]


def bomb() -> bytes:
    """A PNG that declares 40,000 × 40,000 pixels."""
    data = bytearray(encoded(np.zeros((1, 1), np.uint8)))
    data[16:24] = (40_000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("bad", ["truncated", "text", "empty", "bomb", "large", "gif"])
def test_a_bad_image_is_named_by_its_record(tmp_path: Path, bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    good = encoded(colours(30, 40), "JPEG")
    if bad == "large":
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
        good = encoded(colours(5, 5))
    payload = {
        "truncated": good[:-200],
        "text": b"no image",
        "empty": b"",
        "bomb": bomb(),
        "large": encoded(colours(35, 35)),
        "gif": encoded(colours(3, 3), "GIF"),
    }[bad]
    path = written(tmp_path / "a.tfrecord", [example(x=blobs(image)) for image in (good, good, payload, good)])
    schema = {"x": tfr.image()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        for threads in (1, 2):
            with pytest.raises(
                tfr.DecodeError,
                match=r"record 2: feature 'x': its .*(not an image|cannot be identified|more than PIL.Image)",
            ) as caught:
                tfr.read_arrays(path, schema=schema, threads=threads)
            assert (caught.value.path, caught.value.records_intact) == (str(path), 2)
            assert "object at 0x" not in str(caught.value)
            batches = tfr.iter_arrays(path, batch_size=4, schema=schema, threads=threads)
            assert len(next(batches)["x"]) == 2
            with pytest.raises(tfr.DecodeError, match="record 2"):
                next(batches)
        with pytest.warns(tfr.StoppedEarlyWarning, match="record 2"):
            assert len(tfr.read_arrays(path, schema=schema, on_error="stop")["x"]) == 2
        with pytest.warns(tfr.StoppedEarlyWarning, match="record 2"):
            assert [len(b["x"]) for b in tfr.iter_arrays(path, batch_size=4, schema=schema, on_error="stop")] == [2]


def test_an_image_of_another_shape_is_an_error(uneven: tuple[Path, list[np.ndarray]]) -> None:
    with pytest.raises(tfr.DecodeError, match=r"record 1.*expected an image of shape \(None, 8, 3\), got \(4, 7, 3\)"):
        tfr.read_arrays(uneven[0], schema={"x": tfr.image((None, 8, 3))})


def test_a_missing_image(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a", [example(x=blobs(encoded(colours(2, 2)))), example(), example(x=blobs(encoded(colours(3, 3))))]
    )
    rows = tfr.read_arrays(path, schema={"x": tfr.image()})["x"]
    assert [None if row is None else row.shape for row in rows] == [(2, 2, 3), None, (3, 3, 3)]
    with pytest.raises(tfr.FeatureNotFoundError, match="record 1"):
        tfr.read_arrays(path, schema={"x": tfr.image(resize=(2, 2))})
    masked = tfr.read_arrays(path, schema={"x": tfr.image(resize=(2, 2))}, missing="mask")["x"]
    assert masked.mask.all(axis=(1, 2, 3)).tolist() == [False, True, False]


def test_without_pillow_the_error_names_the_extra(
    same: tuple[Path, list[np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(tfr.MissingDependencyError, match=r"tfrecord_io\[image\]"):
        tfr.read_arrays(same[0], schema={"x": tfr.image()})
    assert tfr.read_arrays(same[0], schema={"x": "binary"})["x"].dtype == object


def test_golden_images(data: Path) -> None:
    images = tfr.read_arrays(data / "images.tfrecord", schema={"image_raw": tfr.image()})["image_raw"]
    plain = tfr.read_arrays(data / "images.tfrecord", schema={"image_raw": "binary"})["image_raw"]
    for got, data_ in zip(images, plain, strict=True):
        assert (got == np.array(Image.open(io.BytesIO(data_)).convert("RGB"))).all()
