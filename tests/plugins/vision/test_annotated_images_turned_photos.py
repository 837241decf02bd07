"""Photos with an EXIF orientation: whatever is trained on, pixels and boxes are in one orientation."""

from __future__ import annotations

import io
import json
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import tfrecord_io as tfr
from rounds import COMPLETE, rounds
from tfrecord_io.columns.arrow.image_header import ImageHeader

ORIENTATIONS = range(1, 9)
QUARTERS = (5, 6, 7, 8)
FORMS = ("jpeg", "png", "webp", "tiff")


def photo(orientation: int, width: int = 48, height: int = 32, form: str = "jpeg", xmp: bool = False) -> bytes:
    """A black photo with a white object, of which the stored pixels are 8 … 24 across and 4 … 12 down."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[4:12, 8:24] = 255
    exif = Image.Exif()
    exif[0x112] = orientation
    file = io.BytesIO()
    more: dict[str, Any] = {"quality": 95} if form == "jpeg" else {"lossless": True} if form == "webp" else {}
    stated: dict[str, Any] = {"exif": exif}
    if xmp:
        stated = {"xmp": f'<x:xmpmeta><rdf:Description tiff:Orientation="{orientation}"/></x:xmpmeta>'.encode()}
    Image.fromarray(pixels).save(file, form, **stated, **more)
    return file.getvalue()


def object_of(pixels: np.ndarray) -> tuple[int, int, int, int]:
    """The box around what is white: x, y, width and height."""
    rows, columns = (np.flatnonzero((pixels[:, :, 0] > 128).any(axis)) for axis in (1, 0))
    return int(columns[0]), int(rows[0]), len(columns), len(rows)


def turned(data: bytes) -> np.ndarray:
    return np.asarray(ImageOps.exif_transpose(Image.open(io.BytesIO(data))))


def write_coco(folder: Path, photos: dict[str, tuple[bytes, Any, Any]]) -> Path:
    """Photos, each with its box and (width, height), or None where no size is stated."""
    (folder / "photos").mkdir()
    images, annotations = [], []
    for number, (name, (data, box, size)) in enumerate(photos.items()):
        (folder / "photos" / name).write_bytes(data)
        stated = {} if size is None else {"width": size[0], "height": size[1]}
        images.append({"id": number, "file_name": name, **stated})
        annotations.append({"id": number, "image_id": number, "category_id": 1, "bbox": list(box), "area": 1})
    document = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "white"}]}
    (folder / "instances.json").write_text(json.dumps(document))
    return folder / "instances.json"


def check_training(path: Path, count: int) -> None:
    """The boxes of the arrays that are trained on are around what is white."""
    lists = {f"image/object/bbox/{side}": tfr.list_("float32") for side in ("xmin", "ymin", "xmax", "ymax")}
    sizes = {"image/height": "int64", "image/width": "int64"}
    schema = {"image/encoded": tfr.image(), **lists, **sizes}
    rows = 0
    for batch in tfr.iter_arrays(path, batch_size=1, schema=schema):
        pixels = batch["image/encoded"][0]
        height, width = pixels.shape[:2]
        assert (batch["image/height"][0], batch["image/width"][0]) == (height, width)
        x0, y0, x1, y1 = (float(batch[name][0][0]) for name in lists)
        box = [round(x0 * width), round(y0 * height), round((x1 - x0) * width), round((y1 - y0) * height)]
        assert tuple(box) == object_of(pixels), (rows, box)
        rows += 1
    assert rows == count


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("of_turned", [False, True])
def test_a_photo_of_each_orientation_is_trained_on(tmp_path: Path, form: str, of_turned: bool) -> None:
    photos = {}
    for orientation in ORIENTATIONS:
        data = photo(orientation, form=form)
        shown = turned(data) if of_turned else turned(photo(1, form=form))
        photos[f"{orientation}.{form}"] = data, object_of(shown), (shown.shape[1], shown.shape[0])
    annotations = write_coco(tmp_path, photos)
    orient = True if of_turned else None  # what is only mirrored has one size
    with pytest.warns(UserWarning, match="EXIF orientation") as caught:
        tfr.write_tfrecord(
            tfr.formats.open_coco(annotations, tmp_path / "photos", orient=orient), tmp_path / "a.tfrecord"
        )
    (text,) = (str(warning.message) for warning in caught)
    assert ("7 of 8 images keep an EXIF" if of_turned else "3 of 8 images have an EXIF") in text
    check_training(tmp_path / "a.tfrecord", 8)
    encoded = tfr.read_table(tmp_path / "a.tfrecord")["image/encoded"].to_pylist()
    for data, (original, *_) in zip(encoded, photos.values(), strict=True):
        assert np.array_equal(
            np.asarray(Image.open(io.BytesIO(data))), np.asarray(Image.open(io.BytesIO(original)))
        ) or (
            form == "tiff"  # which Pillow turns
        )
        assert of_turned == (data == original) or data == photos[f"1.{form}"][0]
        if not of_turned:
            assert Image.open(io.BytesIO(data)).getexif().get(0x112, 1) == 1


@pytest.mark.parametrize("orientation", QUARTERS)
@pytest.mark.parametrize("of_turned", [False, True])
def test_the_stated_size_tells_of_which_picture_boxes_are(tmp_path: Path, orientation: int, of_turned: bool) -> None:
    data = photo(orientation)
    shown = turned(data) if of_turned else turned(photo(1))
    annotations = write_coco(tmp_path, {"a.jpg": (data, object_of(shown), shown.shape[1::-1])})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tfr.write_tfrecord(tfr.formats.open_coco(annotations, tmp_path / "photos"), tmp_path / "a.tfrecord")
    assert len(caught) == of_turned
    check_training(tmp_path / "a.tfrecord", 1)
    with pytest.raises(tfr.errors.DecodeError, match=r"pixels, but '.*' states") as error:
        tfr.formats.open_coco(annotations, tmp_path / "photos", orient=not of_turned).read_all()
    assert ("orient=True uses that" in str(error.value)) == of_turned


def test_without_a_size_the_caller_tells(tmp_path: Path) -> None:
    data = photo(6, 32, 32)
    boxes = {False: object_of(turned(photo(1, 32, 32))), True: object_of(turned(data))}
    for of_turned, box in boxes.items():
        folder = tmp_path / str(of_turned)
        folder.mkdir()
        annotations = write_coco(folder, {"a.jpg": (data, box, None)})
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            stream = tfr.formats.open_coco(annotations, folder / "photos", orient=of_turned)
            tfr.write_tfrecord(stream, folder / "a.tfrecord")
        assert len(caught) == of_turned
        check_training(folder / "a.tfrecord", 1)
    with pytest.warns(UserWarning, match="taken as those of the stored pixels"):
        tfr.write_tfrecord(
            tfr.formats.open_coco(tmp_path / "False" / "instances.json", tmp_path / "False" / "photos"),
            tmp_path / "b.tfrecord",
        )
    check_training(tmp_path / "b.tfrecord", 1)


def test_photos_of_yolo_are_turned(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "labels").mkdir()
    for orientation in ORIENTATIONS:
        shown = turned(photo(orientation))
        (tmp_path / "images" / f"{orientation}.jpg").write_bytes(photo(orientation))
        x, y, width, height = object_of(shown)
        line = [(x + width / 2) / shown.shape[1], (y + height / 2) / shown.shape[0]]
        line += [width / shown.shape[1], height / shown.shape[0]]
        (tmp_path / "labels" / f"{orientation}.txt").write_text("0 " + " ".join(map(str, line)))
    with pytest.warns(UserWarning, match="7 of 8 images keep an EXIF orientation"):
        tfr.write_tfrecord(tfr.formats.open_yolo(tmp_path, class_names=["white"]), tmp_path / "a.tfrecord")
    check_training(tmp_path / "a.tfrecord", 8)
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "coco", target_format="coco")
    stream = tfr.formats.open_coco(tmp_path / "coco" / "instances.json", tmp_path / "coco" / "images", orient=True)
    with pytest.warns(UserWarning, match="keep an EXIF"):
        tfr.write_tfrecord(stream, tmp_path / "b.tfrecord")
    check_training(tmp_path / "b.tfrecord", 8)


@pytest.mark.filterwarnings("ignore:.* keep an EXIF orientation:UserWarning")
def test_photos_for_yolo_lose_an_orientation_that_their_boxes_lack(tmp_path: Path) -> None:
    """Records of other programs keep the orientation, and have boxes of the stored pixels."""
    x, y, width, height = object_of(turned(photo(1)))
    lists = {"xmin": x / 48, "xmax": (x + width) / 48, "ymin": y / 32, "ymax": (y + height) / 32, "label": 1}
    columns = {f"image/object/{'class' if name == 'label' else 'bbox'}/{name}": [[v]] * 4 for name, v in lists.items()}
    photos = {"image/encoded": [photo(n) for n in QUARTERS], "image/height": [32] * 4, "image/width": [48] * 4}
    tfr.write_tfrecord({**photos, **columns}, tmp_path / "a.tfrecord", float64="round")
    options = {"target_format": "yolo", "target_options": {"class_names": ["white"]}}
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "yolo", **options)
    tfr.write_tfrecord(tfr.formats.open_yolo(tmp_path / "yolo"), tmp_path / "b.tfrecord")
    check_training(tmp_path / "b.tfrecord", 4)
    without = ["!image/height"]  # without a size, nothing says what the boxes are of
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "kept", columns=without, **options)
    assert (tmp_path / "kept" / "images" / "00000001.jpg").read_bytes() == photo(6)


@pytest.mark.parametrize("form", ["jpeg", "webp"])
def test_an_orientation_in_xmp_is_taken_out_too(tmp_path: Path, form: str) -> None:
    data = photo(6, form=form, xmp=True)
    annotations = write_coco(tmp_path, {f"a.{form}": (data, object_of(turned(photo(1))), (48, 32))})
    tfr.write_tfrecord(tfr.formats.open_coco(annotations, tmp_path / "photos"), tmp_path / "a.tfrecord")
    check_training(tmp_path / "a.tfrecord", 1)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
def test_mutants_of_photos_are_read_or_refused(tmp_path: Path, form: str) -> None:
    """Whatever the metadata became, the pixels of what is read are turned as its boxes are."""
    data = photo(6, form=form)
    annotations = write_coco(tmp_path, {f"a.{form}": (data, (8, 4, 16, 8), (48, 32))})
    rng = random.Random(form)
    for _ in range(rounds(5_000 if COMPLETE else 60)):
        mutant = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(min(len(data), 200)) if rng.random() < 0.7 else -1 - rng.randrange(min(len(data), 120))
            mutant[at] = rng.randrange(256)
        (tmp_path / "photos" / f"a.{form}").write_bytes(mutant)
        try:
            (row,) = tfr.formats.open_coco(annotations, tmp_path / "photos").read_all().to_pylist()
        except tfr.errors.DecodeError:
            continue
        header = ImageHeader.read(row["image/encoded"], "")
        assert (row["image/height"], row["image/width"]) == header.turned_size


def test_other_readers_agree(tmp_path: Path) -> None:
    torchvision = pytest.importorskip("torchvision.datasets", exc_type=(ImportError, RuntimeError))
    pytest.importorskip("pycocotools.coco")
    photos = {f"{n}.jpg": (photo(n), object_of(turned(photo(1))), (48, 32)) for n in ORIENTATIONS}
    annotations = write_coco(tmp_path, photos)
    with pytest.warns(UserWarning, match="3 of 8"):
        tfr.write_tfrecord(tfr.formats.open_coco(annotations, tmp_path / "photos"), tmp_path / "a.tfrecord")
    rows = tfr.read_arrays(tmp_path / "a.tfrecord", schema={"image/encoded": tfr.image()})["image/encoded"]
    dataset = torchvision.CocoDetection(str(tmp_path / "photos"), str(annotations))
    for (image, objects), pixels in zip(dataset, rows, strict=True):
        assert np.array_equal(np.asarray(image), pixels)
        assert tuple(objects[0]["bbox"]) == object_of(pixels)
