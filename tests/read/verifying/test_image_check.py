"""`verify` with ``images=``: images that are empty, broken, mislabelled, or of another size than the record states."""

from __future__ import annotations

import io
import os
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import tfrecord_io as tfr
from servers import Bucket
from tfrecord_io.read.verifying.verify import verify


def encoded(format: str = "JPEG", size: tuple[int, int] = (32, 24), **keywords: Any) -> bytes:
    file, noise = io.BytesIO(), np.random.default_rng(size[0]).integers(0, 255, (size[1], size[0], 3), "uint8")
    Image.fromarray(noise).save(file, format, **keywords)
    return file.getvalue()


GOOD = encoded()
EXIF = Image.Exif()
EXIF[0x112] = 6
# The record, and what is said of it; only by images="full" where that begins with "full:".
CASES: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"image/format": "JPG"}, None),
    ({"image/format": "image/jpeg"}, None),
    ({"image/format": ""}, None),
    ({"image/filename": "no-suffix"}, None),
    ({"image/height": 0, "image/width": 0}, None),
    ({"image/encoded": encoded(exif=EXIF), "image/height": 32, "image/width": 24}, None),  # turned
    ({"image/encoded": encoded("PNG"), "image/format": "png", "image/filename": "a.png"}, None),
    ({"image/encoded": b""}, "it has no bytes"),
    ({"image/encoded": None}, "there is no image"),
    ({"image/encoded": b"\0" * 900}, "its 900 bytes are not an image of a known format"),
    ({"image/encoded": GOOD[:40]}, "its 40 bytes are not an image"),
    ({"image/encoded": b"<html>no such file</html>"}, "an HTML page"),
    ({"image/encoded": encoded("PNG"), "image/filename": "a.x"}, "its format is 'jpeg', but the image is png"),
    ({"image/encoded": encoded("PNG"), "image/format": ""}, "its filename is 'a.jpg', but the image is png"),
    ({"image/height": 32, "image/width": 24}, "the image has 32×24 pixels, but the record states 24×32"),
    ({"image/width": 33}, "the image has 32×24 pixels, but the record states 33×24"),
    ({"image/encoded": GOOD[:-200]}, "full:OSError"),
    ({"image/encoded": encoded("PNG")[:-900], "image/format": "png", "image/filename": "a.png"}, "full:"),
]


def write(path: Path | str, *changes: dict[str, Any], **keywords: Any) -> None:
    record = {"image/encoded": GOOD, "image/format": "jpeg", "image/height": 24, "image/width": 32}
    record |= {"image/filename": "a.jpg", "label": 1}
    types = {"image/encoded": pa.binary(), "image/format": pa.string(), "image/filename": pa.string()}
    rows = [record | change for change in changes]
    schema = pa.schema({**types, "image/height": pa.int64(), "image/width": pa.int64(), "label": pa.int64()})
    tfr.write_tfrecord(pa.Table.from_pylist(rows, schema), path, **keywords)


@pytest.mark.parametrize("embed_schema", [True, False])
@pytest.mark.parametrize("images", [True, "full"])
def test_what_is_wrong_with_images(tmp_path: Path, images: Any, embed_schema: bool) -> None:
    write(tmp_path / "a.tfrecord", *(change for change, _ in CASES), embed_schema=embed_schema)
    assert verify(tmp_path / "a.tfrecord").ok
    report = verify(tmp_path / "a.tfrecord", images=images)
    (file,) = report.files
    expected = {at: reason for at, (_, reason) in enumerate(CASES) if reason is not None}
    if images is True:
        expected = {at: reason for at, reason in expected.items() if not reason.startswith("full:")}
    assert [problem.record for problem in file.problems] == [*expected]
    for problem in file.problems:
        assert expected[problem.record or 0].removeprefix("full:") in problem.reason
        assert (problem.part, problem.error.path) == ("images", str(tmp_path / "a.tfrecord"))  # type: ignore[union-attr]
        assert isinstance(problem.error, tfr.errors.DecodeError)
    assert (file.status, file.images, file.bad_images) == ("bad images", len(CASES), len(expected))
    assert not report.ok
    assert file.intact == len(CASES)
    assert f"{len(CASES)} images, {len(expected)} of them bad" in str(report)


def test_good_images(tmp_path: Path) -> None:
    write(tmp_path / "a@2.tfrecord", *[{}] * 10)
    report = verify(tmp_path / "a@2.tfrecord", images="full")
    assert (report.ok, [file.images for file in report.files]) == (True, [5, 5])
    assert ": good, 10 intact records, 10 images, " in str(report)
    assert [file.to_dict()["images"] for file in report.files] == [5, 5]
    assert [file.images for file in verify(tmp_path / "a@2.tfrecord").files] == [None, None]
    assert "images" not in str(verify(tmp_path / "a@2.tfrecord"))


def test_a_shard_whose_images_are_all_broken(tmp_path: Path) -> None:
    """Neither a name nor a declaration says that the column has images, but the other shards have images in it."""
    for shard, content in enumerate((encoded("PNG"), b"\0" * 50)):
        data = {"picture": [content] * 3, "vector": [b"\xff\0\1"] * 3}
        tfr.write_tfrecord(data, tmp_path / f"a-{shard}.tfrecord", embed_schema=False)
    report = verify(str(tmp_path / "a-*.tfrecord"), images=True)
    assert [(file.status, file.images, file.bad_images) for file in report.files] == [
        ("good", 3, 0),
        ("bad images", 3, 3),
    ]


def test_declared_images_lists_and_sequences(tmp_path: Path) -> None:
    frames = [[encoded("PNG"), b"x"], [], [b"", encoded("JPEG")]]
    schema = {"frames": tfr.list_(tfr.image()), "mask": tfr.image(mode="L")}
    tfr.write_tfrecord({"frames": frames, "mask": [b"x", GOOD, GOOD]}, tmp_path / "a.tfrecord", schema=schema)
    report = verify(tmp_path / "a.tfrecord", images=True)
    found = [(p.record, p.error.feature, p.reason[:20]) for p in report.files[0].problems]  # type: ignore[union-attr]
    assert found == [
        (0, "frames", "image 1 of its list:"),
        (0, "mask", "its 1 bytes are not "),
        (2, "frames", "image 0 of its list:"),
    ]
    assert (report.files[0].images, report.files[0].bad_images) == (7, 3)
    steps = pa.table({"video": pa.array(frames, pa.list_(pa.binary()))})
    schema = {"video": tfr.sequence(tfr.image())}
    tfr.write_tfrecord(steps, tmp_path / "b.tfrecord", schema=schema, record_type="sequence_example")
    assert verify(tmp_path / "b.tfrecord", images="full").files[0].bad_images == 2


def test_two_images_with_names_of_their_own(tmp_path: Path) -> None:
    """The size and name at the top are those of neither."""
    data = {"photo": [GOOD], "mask": [encoded("PNG", (8, 4))], "height": [24], "width": [32], "filename": ["a.jpg"]}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord", embed_schema=False)
    assert verify(tmp_path / "a.tfrecord", images=True).ok
    one = {name: values for name, values in data.items() if name != "photo"}
    tfr.write_tfrecord(one, tmp_path / "b.tfrecord", embed_schema=False)
    assert verify(tmp_path / "b.tfrecord", images=True).files[0].problem_count == 2


def test_damage_of_the_file_is_reported_besides(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", *({"label": n} | ({"image/encoded": b""} if n == 5 else {}) for n in range(6)))
    content = bytearray((tmp_path / "a.tfrecord").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "a.tfrecord").write_bytes(content)
    (file,) = verify(tmp_path / "a.tfrecord", images=True).files
    assert [problem.part for problem in file.problems] == ["frames", "images"]
    assert (file.status, file.intact, file.images, file.bad_images) == ("damaged", 5, 5, 1)
    assert file.problems[1].record == 5


def test_only_100_problems_are_kept(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", {}, *[{"image/encoded": b""}] * 150)
    (file,) = verify(tmp_path / "a.tfrecord", images=True).files
    assert (len(file.problems), file.problem_count, file.bad_images) == (100, 150, 150)


def test_files_without_images(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1], "vector": [b"\xff\0"]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"no column has images.*vector"):
        verify(tmp_path / "a.tfrecord", images=True)
    write(tmp_path / "b.tfrecord", {})
    report = verify([tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"], images=True)
    assert [file.images for file in report.files] == [0, 1]


def test_what_cannot_be_asked(tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", {})
    with pytest.raises(ValueError, match="images='all': expected one of False, True, 'full'"):
        verify(tmp_path / "a.tfrecord", images="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="read twice"):
        verify(io.BytesIO((tmp_path / "a.tfrecord").read_bytes()), images=True)
    with pytest.raises(ValueError, match="record_type"):
        verify(tfr.dataset(tmp_path / "a.tfrecord", record_type="bytes"), images=True)
    os.mkfifo(tmp_path / "pipe")
    feeder = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=((tmp_path / "a.tfrecord").read_bytes(),))
    feeder.start()
    with pytest.raises(ValueError, match="read twice"):
        verify(tmp_path / "pipe", images=True)
    (tmp_path / "pipe").read_bytes()
    feeder.join()


def test_too_many_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `tfr.image` refuses them."""
    write(tmp_path / "a.tfrecord", {})
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 500)
    (problem,) = verify(tmp_path / "a.tfrecord", images=True).files[0].problems
    assert "more than PIL.Image.MAX_IMAGE_PIXELS" in problem.reason


def test_buckets(bucket: Bucket) -> None:
    write(bucket.url("a@2.tfrecord"), {}, {"image/encoded": b""}, storage_options=bucket.storage_options)
    report = verify(bucket.url("a@2.tfrecord"), images=True, storage_options=bucket.storage_options)
    assert [file.status for file in report.files] == ["good", "bad images"]


# ---- the warning that images were left out


@pytest.mark.parametrize("call", ["read_arrays", "iter_arrays"])
def test_the_warning_about_images_names_the_way(tmp_path: Path, call: str) -> None:
    """The warning once named ``tfr verify``, which said "good", and `open_reader`, which decodes no images."""
    write(tmp_path / "a.tfrecord", *[{}, {"image/encoded": GOOD[:-200]}] * 2)
    dataset = tfr.dataset(tmp_path / "a.tfrecord", schema={"image/encoded": tfr.image()}, on_error="skip")
    reads: dict[str, Any] = {
        "read_arrays": lambda: tfr.read_arrays(dataset),
        "iter_arrays": lambda: list(dataset.iter_arrays(batch_size=1)),
    }
    with pytest.warns(tfr.errors.DamagedDataWarning, match=r"verify\(.*images='full'\)") as caught:
        reads[call]()
    assert "open_reader" not in str(caught[0].message)
    assert verify(tmp_path / "a.tfrecord", images="full").files[0].bad_images == 2
