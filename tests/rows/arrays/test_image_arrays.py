"""Images declared by a schema are decoded into arrays; errors name the record, and decompression bombs are refused."""

from __future__ import annotations

import io
import struct
import sys
import tempfile
import warnings
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import blobs, example, int64s, written
from rounds import rounds
from sample_images import image_of, mask, png_of_16_bits, saved
from strategies import sequence_example
from tfrecord_io.columns.arrow.image_decoder import PixelReader, jpeg_decoder
from tfrecord_io.columns.arrow.output.to_numpy import Dense
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.image_form import image_form
from tfrecord_io.rows.arrays.array_options import ColumnLayout
from tfrecord_io.rows.arrays.image_arrays import ImageDecoder

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")
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
        images = tfr.read_arrays(tfr.dataset(path, threads=threads), schema={"x": maker})["x"]
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
    for batch in tfr.iter_arrays(
        tfr.dataset(path, threads=threads), batch_size=5, shuffle_buffer=4, seed=2, schema=schema
    ):
        assert batch["x"].shape == (len(batch["n"]), 5, 7, 3)
        assert all((image == pixels[n]).all() for image, n in zip(batch["x"], batch["n"], strict=True))
        seen += batch["n"].tolist()
    assert sorted(seen) == list(range(12))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
@pytest.mark.parametrize(("mode", "channels"), [("RGB", 3), ("L", 1), ("RGBA", 4)])
def test_formats_and_modes(tmp_path: Path, kind: str, mode: str, channels: int) -> None:
    data = encoded(colours(6, 4), kind)
    got = tfr.read_arrays(written(tmp_path / "a", [example(x=blobs(data))]), schema={"x": tfr.image(mode=mode)})["x"]
    expected = np.array(Image.open(io.BytesIO(data)).convert(mode)).reshape(1, 6, 4, channels)
    assert (got == expected).all()


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "unchanged"])
def test_the_upper_8_of_16_bits_are_taken(tmp_path: Path, channels: int, mode: str) -> None:
    """Like ``tf.io.decode_png`` of TensorFlow 2.21, with the same values."""
    values = np.array([0, 255, 300, 1000, 2000, 65535], np.uint16)
    path = written(
        tmp_path / "a", [example(x=blobs(png_of_16_bits(np.repeat(values[None, :, None], channels, axis=2))))]
    )
    if mode == "unchanged" and channels > 1:
        with pytest.raises(
            tfr.errors.DecodeError, match=r'16 bits in each .*tfr\.image\(mode="RGB"\) takes the upper 8'
        ):
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


@pytest.mark.parametrize("field", [tfr.image(mode="unchanged"), tfr.list_(tfr.image(mode="unchanged"))])
@pytest.mark.parametrize("ragged", ["pad", "offsets"])
def test_unchanged_images_are_not_one_array(tmp_path: Path, field: Any, ragged: Any) -> None:
    path = written(tmp_path / "a", [example(x=blobs(encoded(colours(side, 2)))) for side in (2, 3)])
    with pytest.raises(tfr.errors.SchemaError, match=r'images of mode "unchanged".* ragged=.* cannot represent.*"RGB"'):
        tfr.read_arrays(path, schema={"x": field}, ragged=ragged)
    assert tfr.read_arrays(path, schema={"x": field}, ragged={})["x"].shape == (2,)


def oriented(pixels: np.ndarray, orientation: int, kind: str) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, exif=exif)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("mode", ["RGB", "L", "unchanged"])
def test_the_orientation_of_exif_data_is_applied(tmp_path: Path, kind: str, mode: str) -> None:
    pixels = colours(5, 7)
    files = [oriented(pixels, orientation, kind) for orientation in range(1, 9)]
    path = written(tmp_path / "a", [example(x=blobs(data)) for data in files])
    rows = tfr.read_arrays(path, schema={"x": tfr.image(mode=mode)})["x"]
    stored = tfr.read_arrays(path, schema={"x": tfr.image(mode=mode, orient=False)})["x"]
    for orientation, (data, row) in enumerate(zip(files, rows, strict=True), 1):
        turned = Image.open(io.BytesIO(data))
        if kind != "TIFF":  # which Pillow turns when it is loaded
            turned = ImageOps.exif_transpose(turned)
        expected = np.array(turned if mode == "unchanged" else turned.convert(mode)).reshape(row.shape)
        assert row.shape[:2] == ((5, 7) if orientation < 5 else (7, 5))
        assert (row == expected).all()
        assert (stored[orientation - 1] == rows[0]).all()
    if kind == "PNG" and mode == "RGB":
        assert (rows[0] == pixels).all()


def test_a_damaged_orientation_is_none(tmp_path: Path) -> None:
    pixels = colours(5, 7)
    for orientation in (0, 9, 600):
        data = oriented(pixels, orientation, "PNG")
        path = written(tmp_path / "a", [example(x=blobs(data))])
        assert (tfr.read_arrays(path, schema={"x": tfr.image()})["x"][0] == pixels).all()
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG", exif=b"Exif\0\0no TIFF header")
    path = written(tmp_path / "b", [example(x=blobs(buffer.getvalue()))])
    assert (tfr.read_arrays(path, schema={"x": tfr.image()})["x"][0] == pixels).all()


SIDES = st.integers(1, 60)


@given(st.tuples(SIDES, SIDES), st.tuples(SIDES, SIDES), st.sampled_from(["RGB", "L", "RGBA"]), st.integers(1, 8))
@settings(max_examples=rounds(60), deadline=None)
def test_fit(own: tuple[int, int], size: tuple[int, int], mode: str, orientation: int) -> None:
    data = oriented(rng.integers(0, 256, (*own, 3), np.uint8), orientation, "PNG")
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert(mode)
    bilinear, target = Image.Resampling.BILINEAR, size[::-1]
    expected = {"stretch": image.resize(target, bilinear), "crop": ImageOps.fit(image, target, bilinear)}
    with suppress(ValueError):
        inner = ImageOps.contain(image, target, bilinear)
        if all(inner.size):  # else Pillow makes a side of 0 pixels
            expected |= {"contain": inner, "pad": ImageOps.pad(image, target, bilinear, color=0)}
    for fit, whole in expected.items():
        (row,) = decoded([data], tfr.image(mode=mode, resize=size, fit=fit))
        assert (row == np.array(whole).reshape(row.shape)).all(), fit


def decoded(files: list[bytes], field: Any) -> Any:
    decoder = ImageDecoder.from_field(field.named("x").to_arrow())
    assert decoder is not None
    rows = decoder.rows(pa.array(files, pa.binary()), 1, ColumnLayout())
    return rows.values if isinstance(rows, Dense) else rows.objects(0, len(rows))


def test_contain_keeps_one_pixel() -> None:
    for shape, expected in (((1, 60), (1, 10, 3)), ((60, 1), (10, 1, 3))):
        (row,) = decoded([encoded(colours(*shape))], tfr.image(resize=(10, 10), fit="contain"))
        assert row.shape == expected


def photo(height: int, width: int) -> np.ndarray:
    """Smooth, as photos are."""
    small = Image.fromarray(rng.integers(64, 192, (6, 6, 3), np.uint8))
    return np.array(small.resize((width, height), Image.Resampling.BICUBIC))


@pytest.mark.parametrize("fit", ["stretch", "contain", "crop", "pad"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_drafts_differ_by_a_few_levels(fit: str, orientation: int) -> None:
    data = oriented(photo(301, 403), orientation, "JPEG")
    plain, draft = (decoded([data], tfr.image(resize=(50, 60), fit=fit, draft=d))[0].astype(int) for d in (False, True))
    assert plain.shape == draft.shape
    assert 0 < abs(plain - draft).max() <= 8
    assert abs(plain - draft).mean() < 1
    for same in (encoded(photo(60, 80), "JPEG"), encoded(photo(301, 403))):  # not twice as large; no JPEG
        plain, draft = (decoded([same], tfr.image(resize=(50, 60), fit=fit, draft=d))[0] for d in (False, True))
        assert (plain == draft).all()


def test_the_first_frame_is_decoded() -> None:
    pixels = [np.full((3, 4), value, np.uint8) for value in (50, 100)]
    for kind in ("GIF", "TIFF", "WEBP", "PNG"):
        buffer = io.BytesIO()
        first, second = map(Image.fromarray, pixels)
        first.save(
            buffer, kind, save_all=True, append_images=[second], **({"lossless": True} if kind == "WEBP" else {})
        )
        (row,) = decoded([buffer.getvalue()], tfr.image(mode="L"))
        assert (row[:, :, 0] == pixels[0]).all(), kind


def test_tiffs_of_other_depths() -> None:
    deep = np.array([[0, 300, 65535]], np.uint16)
    for order in ("<", ">"):
        data = encoded(deep.astype(f"{order}u2"), "TIFF")
        assert decoded([data], tfr.image(mode="unchanged"))[0][0, :, 0].tolist() == deep[0].tolist()
        assert decoded([data], tfr.image(mode="L"))[0][0, :, 0].tolist() == [0, 1, 255]
    for pixels in (np.array([[0.5, 2]], np.float32), np.array([[-1, 70_000]], np.int32)):
        data = encoded(pixels, "TIFF")
        assert (decoded([data], tfr.image(mode="unchanged"))[0][:, :, 0] == pixels).all()
        with pytest.raises(RowFault, match="no 8 bits to take") as caught:
            decoded([data], tfr.image(mode="L"))
        assert caught.value.hint == 'declare tfr.image(mode="unchanged")'


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_simplejpeg_gives_the_pixels_of_pillow(subsampling: int) -> None:
    pytest.importorskip("simplejpeg")
    assert jpeg_decoder() is not None
    files = []
    for height, width in ((1, 1), (7, 16), (33, 70), (64, 48), (101, 203)):
        for mode in ("RGB", "L", "CMYK"):
            for progressive in (False, True):
                buffer = io.BytesIO()
                image = Image.fromarray(photo(height, width)).convert(mode)
                image.save(buffer, "JPEG", quality=85, subsampling=subsampling, progressive=progressive)
                files.append(buffer.getvalue())
    fields = [tfr.image(mode=mode) for mode in ("RGB", "L")]
    damaged = [bytes(data) for data in (mutated(files[-1], seed) for seed in range(rounds(100)))]
    for field in fields:
        fast, plain = (PixelReader.from_form("x", image_form(field)) for _ in range(2))
        plain = replace(plain, decode_jpeg=None)
        for data in files + damaged:
            assert outcome(fast, data) == outcome(plain, data)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_damage_is_found_while_the_orientation_is_looked_up(kind: str) -> None:
    fields = tfr.image(), tfr.image(orient=False)
    readers = [PixelReader.from_form("x", image_form(field)) for field in fields]
    data = encoded(colours(40, 50), kind)
    for seed in range(rounds(100)):
        damaged = bytes(mutated(data, seed))
        found, expected = (outcome(reader, damaged) for reader in readers)
        assert isinstance(found, str) == isinstance(expected, str), seed


def mutated(data: bytes, seed: int) -> bytearray:
    random = np.random.default_rng(seed)
    changed = bytearray(data)
    for at in random.integers(len(data), size=3):
        changed[at] = random.integers(256)
    return changed if seed % 3 else changed[: random.integers(len(data))]


def outcome(reader: PixelReader, data: bytes) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pixels = reader.read((0, data))[1]
            return pixels.shape, pixels.tobytes()
        except RowFault as fault:
            return fault.reason


def bomb() -> bytes:
    """A PNG that declares 40,000 × 40,000 pixels."""
    data = bytearray(encoded(np.zeros((1, 1), np.uint8)))
    data[16:24] = (40_000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(bytes(data[12:29])).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize("bad", ["truncated", "text", "empty", "bomb", "large", "ppm"])
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
        "ppm": encoded(colours(3, 3), "PPM"),  # Pillow could, but the list of formats is closed
    }[bad]
    path = written(tmp_path / "a.tfrecord", [example(x=blobs(image)) for image in (good, good, payload, good)])
    schema = {"x": tfr.image()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Image.DecompressionBombWarning)
        for threads in (1, 2):
            with pytest.raises(
                tfr.errors.DecodeError,
                match=r"record 2: feature 'x': its .*(not an image|cannot be identified|more than PIL.Image)",
            ) as caught:
                tfr.read_arrays(tfr.dataset(path, threads=threads), schema=schema)
            assert (caught.value.path, caught.value.records_intact) == (str(path), 2)
            assert "object at 0x" not in str(caught.value)
            batches = tfr.iter_arrays(tfr.dataset(path, threads=threads), batch_size=4, schema=schema)
            assert len(next(batches)["x"]) == 2
            with pytest.raises(tfr.errors.DecodeError, match="record 2"):
                next(batches)
        with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 2"):
            assert len(tfr.read_arrays(path, schema=schema, on_error="stop")["x"]) == 2
        with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 2"):
            assert [
                len(b["x"]) for b in tfr.iter_arrays(tfr.dataset(path, on_error="stop"), batch_size=4, schema=schema)
            ] == [2]


# ---- lists of images


def frames(path: Path, lists: list[list[np.ndarray] | None]) -> Path:
    rows = [{} if each is None else {"x": blobs(*map(encoded, each))} for each in lists]
    return written(path, [example(n=int64s(i), **row) for i, row in enumerate(rows)])


def test_lists_of_images_of_one_size(tmp_path: Path, engine: str) -> None:
    lists = [[colours(4, 5) for _ in range(2)] for _ in range(5)]
    path = frames(tmp_path / "a", lists)
    for item in (tfr.image(), tfr.image((4, 5, 3)), tfr.image((None, None, 3))):
        for field in (tfr.list_(item), tfr.list_(item, 2)):
            images = tfr.read_arrays(path, schema={"x": field})["x"]
            assert (images.shape, images.dtype) == ((5, 2, 4, 5, 3), np.uint8)
            assert (images == np.array(lists)).all()
    for batch in tfr.iter_arrays(path, batch_size=2, schema={"x": tfr.list_(tfr.image((4, 5, 3)), 2)}, drop_last=True):
        assert batch["x"].shape == (2, 2, 4, 5, 3)
    for batch in tfr.iter_arrays(path, batch_size=2, schema={"x": tfr.list_(tfr.image((4, 5, 3)))}):
        assert [row.shape for row in batch["x"]] == [(2, 4, 5, 3)] * len(batch["x"])  # lists of any length
    assert tfr.read_table(path, schema={"x": tfr.list_(tfr.image())})["x"][0].as_py() == [*map(encoded, lists[0])]
    with pytest.raises(tfr.errors.DecodeError, match=r"record 0: .*image 0 of its list: expected .* \(4, 4, 3\), got"):
        tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image((4, 4, 3)))})


def test_lists_of_images_of_several_lengths(tmp_path: Path) -> None:
    lists = [[colours(4, 5) for _ in range(n)] for n in (2, 0, 3)]
    path = frames(tmp_path / "a", lists)
    fixed = {"x": tfr.list_(tfr.image((4, 5, 3)))}
    rows = tfr.read_arrays(path, schema=fixed)["x"]
    assert [row.shape for row in rows] == [(2, 4, 5, 3), (0, 4, 5, 3), (3, 4, 5, 3)]
    assert (rows[2] == np.array(lists[2])).all()
    padded = tfr.read_arrays(path, schema=fixed, ragged="pad", pad_to=4)
    assert padded["x"].shape == (3, 4, 4, 5, 3)
    assert padded["x/length"].tolist() == [2, 0, 3]
    assert (padded["x"][2, :3] == np.array(lists[2])).all()
    assert not padded["x"][2, 3:].any()
    cut = tfr.read_arrays(path, schema=fixed, max_length={"x": (1, "left")}, ragged="pad")
    assert (cut["x"].shape, cut["x/length"].tolist()) == ((3, 1, 4, 5, 3), [1, 0, 1])
    assert (cut["x"][2, 0] == lists[2][2]).all()
    values, offsets = tfr.read_arrays(path, schema=fixed, ragged="offsets")["x"]
    assert (values.shape, offsets.tolist()) == ((5, 4, 5, 3), [0, 2, 2, 5])
    some = tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image())}, ragged="pad")
    assert some["x/length"].tolist() == [2, 0, 3]
    assert some["x/shape"].tolist() == [[[4, 5, 3] if at < n else [0, 0, 0] for at in range(3)] for n in (2, 0, 3)]
    assert (some["x"][0, :2] == np.array(lists[0])).all()


def test_lists_of_images_of_several_sizes(tmp_path: Path) -> None:
    lists = [[colours(2, 2), colours(2, 2)], [colours(3, 2), colours(2, 2)], None]
    path = frames(tmp_path / "a", lists)
    first, second, third = tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image())})["x"]
    assert (first == np.array(lists[0])).all()
    assert [image.shape for image in second] == [(3, 2, 3), (2, 2, 3)]
    assert third is None
    padded = tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image())}, ragged="pad", missing="mask")
    assert padded["x"].shape == (3, 2, 3, 2, 3)
    assert padded["x/shape"].tolist() == [[[2, 2, 3], [2, 2, 3]], [[3, 2, 3], [2, 2, 3]], [[0, 0, 0], [0, 0, 0]]]
    assert padded["x/mask"].tolist() == [False, False, True]
    for row, images in enumerate(lists[:2]):
        for at, image in enumerate(images):
            assert (padded["x"][row, at, : len(image)] == image).all()
    cut = tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image())}, ragged="offsets", limit=2)
    (values, offsets), (shapes, steps) = cut["x"], cut["x/shape"]
    assert (offsets.tolist(), steps.tolist()) == ([0, 24, 54], [0, 2, 4])
    assert (values[42:].reshape(shapes[3]) == lists[1][1]).all()
    with pytest.raises(tfr.errors.SchemaError, match=r'record 1.*mode "unchanged".*ragged=\'pad\' cannot'):
        tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image(mode="unchanged"))}, ragged="pad", missing="mask")
    out = {"x": np.ones((2, 2, 3, 3, 3), np.uint8), "x/shape": np.zeros((2, 2, 3), np.int64)}
    tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image())}, ragged="pad", limit=2, out=out)
    assert (out["x"][:, :, :, :2] == padded["x"][:2]).all()
    assert not out["x"][:, :, :, 2].any()
    assert out["x/shape"].tolist() == padded["x/shape"][:2].tolist()
    resized = tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image(resize=(2, 2)))}, ragged="pad", missing="mask")
    assert resized["x"].shape == (3, 2, 2, 2, 3)
    assert resized["x/mask"].tolist() == [False, False, True]
    for batch in tfr.iter_arrays(path, batch_size=1, schema={"x": tfr.list_(tfr.image())}, columns=["x"]):
        assert batch["x"].dtype == object


def test_lists_of_images_are_packed_and_bucketed(tmp_path: Path) -> None:
    lists = [[colours(2, 2) for _ in range(n)] for n in (2, 1, 3, 1)]
    path = frames(tmp_path / "a", lists)
    fixed = {"x": tfr.list_(tfr.image((2, 2, 3)))}
    (batch,) = tfr.iter_arrays(path, batch_size=4, schema=fixed, pack={"x": 4})
    assert batch["x"].shape == (2, 4, 2, 2, 3)
    assert batch["x/segment_ids"].tolist() == [[1, 1, 2, 3], [1, 1, 1, 0]]
    assert (batch["x"][1, :3] == np.array(lists[2])).all()
    with pytest.raises(tfr.errors.SchemaError, match="pack= is for lists of images of one size"):
        tfr.iter_arrays(path, batch_size=4, schema={"x": tfr.list_(tfr.image())}, pack={"x": 4})
    for schema in (fixed, {"x": tfr.list_(tfr.image())}):
        batches = tfr.iter_arrays(path, batch_size=2, schema=schema, bucket_by="x", bucket_sizes=[1, 4])
        shapes = sorted(batch["x"].shape for batch in batches)
        assert shapes == [(2, 1, 2, 2, 3), (2, 4, 2, 2, 3)]


def test_embedded_sizes_of_lists_are_limited(tmp_path: Path) -> None:
    schema = {"x": tfr.list_(tfr.image(resize=(2**14, 2**14)))}
    tfr.write_tfrecord({"x": [[encoded(colours(2, 2))], [encoded(colours(2, 2))] * 9]}, tmp_path / "a", schema=schema)
    with pytest.raises(tfr.errors.DecodeError, match=r"record 0: .*10 images of \(16384, 16384, 3\).*expansion_bytes"):
        tfr.read_arrays(tmp_path / "a")
    small = tfr.read_arrays(tmp_path / "a", schema={"x": tfr.list_(tfr.image(resize=(2, 2)))})["x"]
    assert [row.shape for row in small] == [(1, 2, 2, 3), (9, 2, 2, 3)]


def test_steps_of_images(tmp_path: Path) -> None:
    pixels = colours(2, 3)
    steps = sequence_example({}, {"x": [blobs(encoded(pixels)), blobs(encoded(pixels))]})
    path = written(tmp_path / "a", [steps])
    assert (tfr.read_arrays(path, schema={"x": tfr.sequence(tfr.image((2, 3, 3)))})["x"][0] == pixels).all()


def test_a_bad_image_of_a_list_is_named(tmp_path: Path) -> None:
    good = encoded(colours(2, 2))
    path = written(tmp_path / "a", [example(x=blobs(good)), example(x=blobs(good, good, b"bad"))])
    with pytest.raises(tfr.errors.DecodeError, match="record 1: feature 'x': image 2 of its list: its 3 bytes cannot"):
        tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image())})
    with pytest.warns(tfr.errors.DamagedDataWarning, match="1 damaged"):
        assert len(tfr.read_arrays(path, schema={"x": tfr.list_(tfr.image())}, on_error="skip")["x"]) == 1


def test_windows_and_steps_of_episodes_keep_images(tmp_path: Path) -> None:
    lists = [[colours(2, 2) for _ in range(3)]]
    tfr.write_tfrecord({"steps/image": [[*map(encoded, lists[0])]]}, tmp_path / "a")
    data = tfr.dataset(tmp_path / "a", schema={"steps/image": tfr.list_(tfr.image((2, 2, 3)))})
    (batch,) = tfr.windows(data, length=2).iter_arrays(batch_size=2)
    assert (batch["steps/image"] == np.array([lists[0][:2], lists[0][1:]])).all()
    tfr.write_tfrecord(tfr.explode(data), tmp_path / "b")
    assert (tfr.read_arrays(tmp_path / "b")["steps/image"] == np.array(lists[0])).all()


def test_an_image_of_another_shape_is_an_error(uneven: tuple[Path, list[np.ndarray]]) -> None:
    with pytest.raises(
        tfr.errors.DecodeError, match=r"record 1.*expected an image of shape \(None, 8, 3\), got \(4, 7, 3\)"
    ):
        tfr.read_arrays(uneven[0], schema={"x": tfr.image((None, 8, 3))})


def test_a_missing_image(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a", [example(x=blobs(encoded(colours(2, 2)))), example(), example(x=blobs(encoded(colours(3, 3))))]
    )
    rows = tfr.read_arrays(path, schema={"x": tfr.image()})["x"]
    assert [None if row is None else row.shape for row in rows] == [(2, 2, 3), None, (3, 3, 3)]
    with pytest.raises(tfr.errors.DecodeError, match="record 1"):
        tfr.read_arrays(path, schema={"x": tfr.image(resize=(2, 2))})
    masked = tfr.read_arrays(path, schema={"x": tfr.image(resize=(2, 2))}, missing="mask")
    assert type(masked["x"]) is np.ndarray
    assert not masked["x"][1].any()
    assert masked["x/mask"].tolist() == [False, True, False]  # of a row, not of each pixel
    padded = tfr.read_arrays(path, schema={"x": tfr.image()}, missing="mask", ragged="pad")
    assert (padded["x"].shape, padded["x/shape"].tolist()) == ((3, 3, 3, 3), [[2, 2, 3], [0, 0, 0], [3, 3, 3]])
    assert padded["x/mask"].tolist() == [False, True, False]
    (batch,) = tfr.iter_arrays(path, batch_size=3, schema={"x": tfr.image(resize=(2, 2))}, missing="mask")
    assert batch["x/mask"].tolist() == [False, True, False]


def test_without_pillow_the_error_names_the_extra(
    same: tuple[Path, list[np.ndarray]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(tfr.errors.MissingDependencyError, match=r"tfrecord_io\[image\]"):
        tfr.read_arrays(same[0], schema={"x": tfr.image()})
    assert tfr.read_arrays(same[0], schema={"x": "binary"})["x"].dtype == object


def test_golden_images(data: Path) -> None:
    images = tfr.read_arrays(data / "images.tfrecord", schema={"image_raw": tfr.image()})["image_raw"]
    plain = tfr.read_arrays(data / "images.tfrecord", schema={"image_raw": "binary"})["image_raw"]
    for got, data_ in zip(images, plain, strict=True):
        assert (got == np.array(Image.open(io.BytesIO(data_)).convert("RGB"))).all()


# ---- masks of classes


def numbers_of(path: Path, data: list[bytes], **keywords: Any) -> Any:
    tfr.write_tfrecord({"x": data}, path, mode="overwrite")
    return tfr.read_arrays(path, schema={"x": tfr.image(mode="index", **keywords)})["x"]


@pytest.mark.parametrize(("form", "bits"), [("PNG", 8), ("PNG", 2), ("PNG", 4), ("GIF", 8), ("BMP", 8), ("TIFF", 8)])
def test_the_numbers_of_a_palette_are_read(tmp_path: Path, form: str, bits: int) -> None:
    data, numbers = mask(form, **{"bits": bits} if bits < 8 else {})
    assert np.array_equal(numbers_of(tmp_path / "a", [data])[0, :, :, 0], numbers)


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_the_numbers_of_grey_are_read(tmp_path: Path, bits: int) -> None:
    numbers = (np.arange(24).reshape(4, 6) % 2**bits).astype(np.uint8)
    lines = [np.packbits(np.unpackbits(line[:, None], axis=1)[:, -bits:]).tobytes() for line in numbers]
    header = b"IHDR" + struct.pack(">IIBBBBB", 6, 4, bits, 0, 0, 0, 0)
    chunks = [header, b"IDAT" + zlib.compress(b"".join(b"\0" + line for line in lines)), b"IEND"]
    parts = ((len(each) - 4).to_bytes(4) + each + zlib.crc32(each).to_bytes(4) for each in chunks)
    data = b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    assert np.array_equal(numbers_of(tmp_path / "a", [data])[0, :, :, 0], numbers)


@given(st.integers(1, 9), st.integers(1, 9), st.sampled_from(["stretch", "crop", "pad", "contain"]))
def test_resized_masks_have_no_new_numbers(height: int, width: int, fit: str) -> None:
    numbers = np.array([[0, 7, 200], [7, 7, 0]], np.uint8).repeat(2, 0).repeat(3, 1)
    data = saved(Image.fromarray(numbers))
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord({"x": [data]}, Path(folder, "a"))
        for field in ("index", "L"):
            chosen = tfr.image(mode=field, resize=(height, width), fit=fit, resample="nearest")  # type: ignore[arg-type]
            found = tfr.read_arrays(Path(folder, "a"), schema={"x": chosen})["x"]
            assert {*np.ravel(found[0]).tolist()} <= {0, 7, 200}
            if field == "index":
                default = tfr.image(mode="index", resize=(height, width), fit=fit)  # type: ignore[arg-type]
                assert np.array_equal(tfr.read_arrays(Path(folder, "a"), schema={"x": default})["x"], found)


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "L16", "RGB16"])
def test_pixels_that_are_no_numbers_of_classes(tmp_path: Path, mode: str) -> None:
    with pytest.raises(tfr.errors.DecodeError, match="its pixels are not numbers of classes") as caught:
        numbers_of(tmp_path / "a", [mask()[0], image_of(mode)])
    assert caught.value.record == 1


# ---- TIFF of any channels and bits


def tiff(values: np.ndarray, **keywords: Any) -> bytes:
    tifffile = pytest.importorskip("tifffile")
    file = io.BytesIO()
    kind = "rgb" if values.shape[2] in (3, 4) else "minisblack"
    planes = np.moveaxis(values, 2, 0) if keywords.get("planarconfig") == "separate" else values
    tifffile.imwrite(file, planes, photometric=kind, **{"planarconfig": "contig"} | keywords)
    return file.getvalue()


@pytest.mark.parametrize("keywords", [{}, {"planarconfig": "separate"}, {"bigtiff": True}])
@pytest.mark.parametrize(
    ("channels", "dtype"), [(5, "uint16"), (3, "uint16"), (7, "uint8"), (2, "float32"), (4, "int16")]
)
def test_tiffs_are_read_as_they_are(tmp_path: Path, channels: int, dtype: str, keywords: dict[str, Any]) -> None:
    values = (np.random.default_rng(1).random((4, 6, channels)) * 30000).astype(dtype)
    tfr.write_tfrecord({"x": [tiff(values, **keywords)]}, tmp_path / "a")
    found = tfr.read_arrays(tmp_path / "a", schema={"x": tfr.image(mode="unchanged")})["x"][0]
    assert found.dtype == dtype
    assert np.array_equal(found, values)
    turned = tiff(values, extratags=[(0x112, 3, 1, 6, True)], **keywords)
    tfr.write_tfrecord({"x": [turned]}, tmp_path / "b")
    found = tfr.read_arrays(tmp_path / "b", schema={"x": tfr.image(mode="unchanged")})["x"][0]
    assert np.array_equal(found, np.rot90(values, -1))


# 5 channels of 16 bits, 2 × 1 pixels, little-endian: 9 tags, then the bits of each channel, then the pixels
_TAGS = [(256, 4, 1, 2), (257, 4, 1, 1), (258, 3, 5, 122), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 132)]
_TAGS += [(277, 3, 1, 5), (278, 4, 1, 1), (279, 4, 1, 20)]
FIVE_BANDS = (
    b"II*\0"
    + struct.pack("<IH", 8, len(_TAGS))
    + b"".join(struct.pack("<HHII", *tag) for tag in _TAGS)
    + bytes(4)
    + struct.pack("<5H", *[16] * 5)
    + struct.pack("<10H", *range(10))
)


def test_tiffs_that_pillow_does_not_decode_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"x": [FIVE_BANDS]}, tmp_path / "a")
    with pytest.raises(tfr.errors.DecodeError, match="its TIFF has 5 channels of 16 bits, of which no RGB image"):
        tfr.read_arrays(tmp_path / "a", schema={"x": tfr.image()})
    with pytest.raises(tfr.errors.DecodeError, match="5 channels of 16 bits, which cannot be resized"):
        tfr.read_arrays(tmp_path / "a", schema={"x": tfr.image(mode="unchanged", resize=(2, 2))})
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with pytest.raises(tfr.errors.MissingDependencyError, match=r"tifffile .*pip install 'tfrecord_io\[tiff\]'"):
        tfr.read_arrays(tmp_path / "a", schema={"x": tfr.image(mode="unchanged")})
    monkeypatch.undo()
    pytest.importorskip("tifffile")
    found = tfr.read_arrays(tmp_path / "a", schema={"x": tfr.image(mode="unchanged")})["x"][0]
    assert found.tolist() == [[[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]]


def grey_tiff(bits: int, sample_format: int, width: int, data: bytes) -> bytes:
    """A TIFF of one line: 10 tags, then the pixels."""
    tags = [(256, 4, width), (257, 4, 1), (258, 3, bits), (259, 3, 1), (262, 3, 1), (273, 4, 134)]
    tags += [(277, 3, 1), (278, 4, 1), (279, 4, len(data)), (339, 3, sample_format)]
    entries = b"".join(struct.pack("<HHII", tag, type_, 1, value) for tag, type_, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + bytes(4) + data


@pytest.mark.parametrize(("dtype", "values"), [("int8", [-128, -1, 127]), ("uint32", [0, 2**31, 2**32 - 1])])
def test_the_sign_of_a_tiff_is_kept(dtype: str, values: list[int]) -> None:
    pixels = np.array(values, f"<{np.dtype(dtype).str[1:]}")
    data = grey_tiff(8 * pixels.itemsize, 2 if dtype == "int8" else 1, len(values), pixels.tobytes())
    for form in (tfr.image(), tfr.image(mode="L", resize=(1, 2))):
        with pytest.raises(RowFault, match="with a sign, which have no 8 bits to take"):
            decoded([data], form)
    with pytest.raises(RowFault, match="its pixels are not numbers of classes"):
        decoded([data], tfr.image(mode="index"))
    with pytest.raises(RowFault, match=f"1 channel of {8 * pixels.itemsize} bits, which cannot be resized"):
        decoded([data], tfr.image(mode="unchanged", resize=(1, 2)))
    pytest.importorskip("tifffile")
    (found,) = decoded([data], tfr.image(mode="unchanged"))
    assert (found.dtype, found[0, :, 0].tolist()) == (dtype, values)


def test_the_upper_8_of_12_bits_are_used() -> None:
    data = grey_tiff(12, 1, 2, bytes.fromhex("ABC012"))  # 0xABC and 0x012
    assert decoded([data], tfr.image(mode="unchanged"))[0][0, :, 0].tolist() == [0xABC, 0x012]
    assert decoded([data], tfr.image(mode="L"))[0][0, :, 0].tolist() == [0xAB, 0x01]
