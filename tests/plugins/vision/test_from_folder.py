"""Folders of images and files: columns, labels, order, what is refused."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import tfrecord_io as tfr
from limited import set_limits
from servers import Bucket
from tfrecord_io.bytes.format.foreign_files import ForeignFile

FORMATS = {"jpg": "jpeg", "JPEG": "jpeg", "png": "png", "gif": "gif", "bmp": "bmp", "webp": "webp", "tif": "tiff"}


def encoded(suffix: str = "png", size: tuple[int, int] = (4, 3)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size).save(file, FORMATS[suffix])
    return file.getvalue()


def make(folder: Path, names: list[str]) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded())


def rows(stream: tfr.typing.ArrayStream, column: str = "image/filename") -> list[Any]:
    return stream.read_all()[column].to_pylist()


@pytest.mark.parametrize("suffix", FORMATS)
def test_formats_and_sizes(tmp_path: Path, suffix: str) -> None:
    content = encoded(suffix, (7, 5))
    (tmp_path / f"a.{suffix}").write_bytes(content)
    assert tfr.formats.open_image_folder(tmp_path).read_all().to_pylist() == [
        {
            "image/encoded": content,
            "image/format": FORMATS[suffix],
            "image/height": 5,
            "image/width": 7,
            "image/filename": f"a.{suffix}",
        }
    ]


def test_every_format_that_is_imported_is_decoded(tmp_path: Path) -> None:
    assert set(FORMATS.values()) == set(ForeignFile.IMAGES)
    (tmp_path / "in").mkdir()
    for suffix in FORMATS:
        (tmp_path / "in" / f"a.{suffix}").write_bytes(encoded(suffix, (7, 5)))
    tfr.write_tfrecord(tfr.formats.open_image_folder(tmp_path / "in"), tmp_path / "a")
    images = tfr.read_arrays(tmp_path / "a", schema={"image/encoded": tfr.image((5, 7, 3))})["image/encoded"]
    assert images.shape == (len(FORMATS), 5, 7, 3)


def test_several_images_in_a_file_are_a_jpeg(tmp_path: Path) -> None:
    image = Image.new("RGB", (7, 5))
    image.save(tmp_path / "a.jpg", format="MPO", save_all=True, append_images=[image])
    assert tfr.formats.open_image_folder(tmp_path).read_all()["image/format"].to_pylist() == ["jpeg"]


def test_folders_are_classes_in_the_order_of_their_names(tmp_path: Path) -> None:
    make(tmp_path, ["dog/2.png", "dog/10.png", "cat/deep/1.png", "Ape/1.png", ".git/1.png", "__MACOSX/1.png"])
    make(tmp_path, ["dog/@eaDir/1.png", "$RECYCLE.BIN/1.png"])
    (tmp_path / "Thumbs.db").write_bytes(b"")
    make(tmp_path, ["dog/.x.png", "dog/_1.png", "_dog/1.png"])
    (tmp_path / "empty").mkdir()
    table = tfr.formats.open_image_folder(tmp_path).read_all()
    assert list(zip(*(table[n].to_pylist() for n in ("image/filename", "label", "label/text")), strict=True)) == [
        ("Ape/1.png", 0, "Ape"),
        ("_dog/1.png", 1, "_dog"),
        ("cat/deep/1.png", 2, "cat"),
        ("dog/2.png", 3, "dog"),
        ("dog/10.png", 3, "dog"),
        ("dog/_1.png", 3, "dog"),
    ]
    named = tfr.formats.open_image_folder(tmp_path, class_names=["dog", "cow", "cat", "Ape", "_dog"]).read_all()
    assert named["label"].to_pylist() == [3, 4, 2, 0, 0, 0]
    assert "label" not in tfr.formats.open_image_folder(tmp_path, labels=False).schema.names
    with pytest.raises(ValueError, match="class_names= names labels, which labels=False leaves out"):
        tfr.formats.open_image_folder(tmp_path, labels=False, class_names=["cat"])
    with pytest.raises(ValueError, match="'dog' is not among class_names"):
        tfr.formats.open_image_folder(tmp_path, class_names=["cat", "Ape", "_dog"])
    with pytest.raises(ValueError, match="twice"):
        tfr.formats.open_image_folder(tmp_path, class_names=["dog", "cat", "Ape", "dog", "_dog"])
    with pytest.raises(TypeError, match="a list of names"):
        tfr.formats.open_image_folder(tmp_path, class_names="dog")


def test_unclear_folders_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "mixed", ["cat/1.png", "2.png"])
    with pytest.raises(ValueError, match=r"both in folders .* and outside .*labels=True"):
        tfr.formats.open_image_folder(tmp_path / "mixed")
    table = tfr.formats.open_image_folder(tmp_path / "mixed", labels=True).read_all()
    assert table["label"].to_pylist() == [None, 0]
    make(tmp_path / "parts", ["train/cat/1.png", "test/cat/1.png"])
    with pytest.raises(ValueError, match=r"look like parts of a dataset \(test, train\)"):
        tfr.formats.open_image_folder(tmp_path / "parts")
    assert rows(tfr.formats.open_image_folder(tmp_path / "parts", labels=True), "label") == [0, 1]


def test_shuffled_order_depends_on_names_and_seed_alone(tmp_path: Path) -> None:
    make(tmp_path, [f"{label}/{i}.png" for label in "ab" for i in range(20)])
    orders = [
        rows(tfr.formats.open_image_folder(tmp_path, shuffle_seed=seed, threads=t))
        for seed, t in ((1, 1), (1, 4), (2, 2))
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(rows(tfr.formats.open_image_folder(tmp_path)))
    assert orders[0][:3] == ["a/6.png", "a/0.png", "b/4.png"]


def bomb() -> bytes:
    """A PNG whose header declares 2³¹ − 1 × 2³¹ − 1 pixels."""
    chunk = b"IHDR" + struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + struct.pack(">I", 13)
        + chunk
        + struct.pack(">I", zlib.crc32(chunk))
        + b"\0\0\0\0IDAT5\xaf\x06\x1e"
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 bytes are not an image"),
        (b"<html>", "not an image"),
        (encoded()[:20], "not an image"),
        (bomb(), "more pixels than"),
        (b"\x1f\x8b" + b"x" * 50, "they look like"),
    ],
)
def test_broken_images_are_named_or_left_out(tmp_path: Path, content: bytes, reason: str) -> None:
    make(tmp_path, ["cat/1.png", "cat/3.png"])
    (tmp_path / "cat" / "2.png").write_bytes(content)
    with pytest.raises(tfr.errors.DecodeError, match=reason) as caught:
        tfr.convert(tmp_path, tmp_path.parent / f"{tmp_path.name}.tfrecord")
    assert caught.value.path == str(tmp_path / "cat" / "2.png")
    assert not (tmp_path.parent / f"{tmp_path.name}.tfrecord").exists()
    with pytest.warns(tfr.errors.DamagedDataWarning, match=r"1 of 3 files left out, the first: .*2\.png"):
        assert rows(tfr.formats.open_image_folder(tmp_path, on_error="skip")) == ["cat/1.png", "cat/3.png"]


def test_large_headers_are_no_reason_to_decode(tmp_path: Path) -> None:
    Image.MAX_IMAGE_PIXELS, limit = 10, Image.MAX_IMAGE_PIXELS
    try:
        (tmp_path / "a.png").write_bytes(encoded(size=(5, 3)))
        assert rows(tfr.formats.open_image_folder(tmp_path), "image/width") == [5]
    finally:
        Image.MAX_IMAGE_PIXELS = limit


def test_other_files_are_left_out_with_a_warning(tmp_path: Path) -> None:
    make(tmp_path, ["a.png"])
    (tmp_path / "notes.txt").write_text("x")
    with pytest.warns(UserWarning, match=r"not an image, left out: 'notes\.txt'"):
        assert rows(tfr.formats.open_image_folder(tmp_path)) == ["a.png"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="the folder has no"):
        tfr.formats.open_image_folder(tmp_path / "empty")
    with pytest.raises(NotADirectoryError):
        tfr.formats.open_image_folder(tmp_path / "a.png")
    with pytest.raises(FileNotFoundError):
        tfr.formats.open_image_folder(tmp_path / "none")


def test_batches_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, [f"{i}.png" for i in range(50)])
    set_limits(monkeypatch, file_batch_bytes=3 * len(encoded()), ahead_bytes=10)
    sizes = [batch.num_rows for batch in tfr.formats.open_image_folder(tmp_path)]
    assert sizes == [3] * 16 + [2]


def test_a_file_larger_than_a_record_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.bin").write_bytes(b"x" * 200_000)
    set_limits(monkeypatch, MAX_RECORD_BYTES=100_000)
    with pytest.raises(tfr.errors.EncodeError, match="larger than a record"):
        tfr.formats.open_file_folder(tmp_path).read_all()


def test_any_files(tmp_path: Path) -> None:
    for name in ("yes/a.wav", "no/b", "no/c.tfrecord"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    assert tfr.formats.open_file_folder(tmp_path).read_all().to_pylist() == [
        {"file/encoded": b"no/b", "file/name": "no/b", "label": 0, "label/text": "no"},
        {"file/encoded": b"no/c.tfrecord", "file/name": "no/c.tfrecord", "label": 0, "label/text": "no"},
        {"file/encoded": b"yes/a.wav", "file/name": "yes/a.wav", "label": 1, "label/text": "yes"},
    ]


def test_buckets(tmp_path: Path, bucket: Bucket) -> None:
    for name in ("cat/1.png", "dog/1.png"):
        bucket.fs.pipe(bucket.url(f"photos/{name}"), encoded())
    options = {"storage_options": bucket.storage_options}
    assert rows(tfr.formats.open_image_folder(bucket.url("photos"), **options)) == ["cat/1.png", "dog/1.png"]
    tfr.convert(bucket.url("photos/"), tmp_path / "a.tfrecord", storage_options=bucket.storage_options)
    assert tfr.read_table(tmp_path / "a.tfrecord")["label"].to_pylist() == [0, 1]


def test_shards_of_a_known_number_of_rows(tmp_path: Path) -> None:
    make(tmp_path / "photos", [f"{i}.png" for i in range(10)])
    report = tfr.convert(tmp_path / "photos", tmp_path / "out.tfrecord@2")
    assert [file.records for file in report.files] == [5, 5]


def test_images_without_a_suffix_are_read(tmp_path: Path) -> None:
    """Folders as clusters and older versions wrote them: the images were left out, and metadata.csv converted alone."""
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("ISIC_0", "ISIC_1", "c.v2"):
        Image.new("RGB", (4, 3)).save(folder / name, "JPEG")
    (folder / "notes").write_text("not one")
    (folder / "metadata.csv").write_text("image_name\nISIC_0\nISIC_1\n")
    with pytest.warns(UserWarning, match=r"not an image, left out: 'metadata.csv' and 1 more"):
        report = tfr.convert(folder, tmp_path / "a.tfrecord")
    assert report.records == 3
    assert tfr.read_table(tmp_path / "a.tfrecord")["image/filename"].to_pylist() == ["ISIC_0", "ISIC_1", "c.v2"]
    for name in ("ISIC_0", "ISIC_1", "c.v2"):
        (folder / name).unlink()
    tfr.convert(folder, tmp_path / "b.tfrecord")  # a table and no image is a table
    assert tfr.read_table(tmp_path / "b.tfrecord").column_names == ["image_name"]
