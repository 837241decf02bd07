"""Facts of a record about its image, on the way to COCO, Pascal VOC or YOLO: size, fractions, classes, bytes."""

from __future__ import annotations

import io
import itertools
import json
import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.apps.cli import tfr as command

OBJECT = "image/object/"
WIDTH, HEIGHT = 32, 24
TARGETS = ("coco", "voc", "yolo")
SIDES = ("xmin", "ymin", "xmax", "ymax")
QUARTER = (0.25, 0.25, 0.75, 0.75)
POINTS = ("x", "y", "visibility")


def jpeg(height: int = HEIGHT, width: int = WIDTH, orientation: int = 1) -> bytes:
    file, exif = io.BytesIO(), Image.Exif()
    if orientation != 1:
        exif[0x112] = orientation
    Image.new("RGB", (width, height)).save(file, "JPEG", exif=exif)
    return file.getvalue()


def record(
    name: str, *boxes: tuple[float, ...], classes: list[str] | None = None, labels: list[int] | None = None, **more: Any
) -> dict[str, Any]:
    sides = zip(SIDES, zip(*boxes, strict=True) if boxes else [()] * 4, strict=True)
    values: dict[str, Any] = {"image/encoded": jpeg(), "image/filename": name}
    values |= {"image/height": HEIGHT, "image/width": WIDTH}
    values |= {f"{OBJECT}bbox/{side}": [*map(float, each)] for side, each in sides}
    values[f"{OBJECT}class/text"] = ["cat"] * len(boxes) if classes is None else classes
    if labels is not None or classes is None:
        values[f"{OBJECT}class/label"] = [1] * len(boxes) if labels is None else labels
    return values | {name.replace("__", "/"): value for name, value in more.items()}


def write(folder: Path, *records: dict[str, Any]) -> Path:
    kinds = {"bbox": pa.float32(), "keypoint/x": pa.float32(), "keypoint/y": pa.float32(), "text": pa.string()}
    types = {"image/encoded": pa.binary(), "image/filename": pa.string()}
    types |= {"image/height": pa.int64(), "image/width": pa.int64()}
    for name in dict.fromkeys(itertools.chain.from_iterable(records)):
        kind = next((kind for part, kind in kinds.items() if part in name), pa.int64())
        types.setdefault(name, pa.list_(kind))
    present = {name: type_ for name, type_ in types.items() if any(name in each for each in records)}
    table = pa.Table.from_pylist(list(records), pa.schema(present))
    tfr.write_tfrecord(table, folder / "a.tfrecord", embed_schema=False)
    return folder / "a.tfrecord"


def convert(path: Path, target: Path, format: str, **options: Any) -> None:
    tfr.convert(path, target, target_format=format, target_options=options)  # type: ignore[arg-type]


def refused(path: Path, format: str, reason: str, feature: str, at: int = 1, **options: Any) -> str:
    """The message of the error, which names the record, and leaves nothing behind."""
    with pytest.raises(tfr.TFRecordError, match=reason) as caught:
        convert(path, path.parent / "out", format, **options)
    error: Any = caught.value
    assert (error.path, error.record, error.feature) == (str(path), at, feature)
    assert os.listdir(path.parent) == ["a.tfrecord"]
    return str(error)


# ---- the size of the image


@pytest.mark.parametrize("format", TARGETS)
@pytest.mark.parametrize(
    "stated", [(WIDTH, HEIGHT), (HEIGHT * 2, WIDTH * 2), (HEIGHT, WIDTH + 1), (HEIGHT + 1, WIDTH), (0, WIDTH * 2)]
)
def test_a_stated_size_is_that_of_the_image(tmp_path: Path, format: str, stated: tuple[int, int]) -> None:
    height, width = stated
    wrong = record("b.jpg", QUARTER, image__height=height, image__width=width)
    path = write(tmp_path, record("a.jpg", QUARTER), wrong)
    feature = "image/height" if height not in (0, HEIGHT) else "image/width"
    text = re.escape(f"the image has 32×24 pixels, but the record states {width}×{height or '?'}")
    message = refused(path, format, text, feature)
    assert "check_sizes=False" in message
    convert(path, tmp_path / "out", format, check_sizes=False)  # as stated, unseen


@pytest.mark.parametrize("format", TARGETS)
def test_a_size_that_is_not_stated_is_that_of_the_image(tmp_path: Path, format: str) -> None:
    rows = [record(f"{n}.jpg", QUARTER, image__height=h, image__width=w) for n, (h, w) in enumerate([(0, 0), (24, 0)])]
    convert(write(tmp_path, *rows), tmp_path / "out", format)
    if format == "coco":
        images = json.loads((tmp_path / "out/instances.json").read_text())["images"]
        assert [(each["width"], each["height"]) for each in images] == [(WIDTH, HEIGHT)] * 2


@pytest.mark.parametrize("format", TARGETS)
def test_a_photo_has_the_size_of_its_pixels_or_of_the_turned_picture(tmp_path: Path, format: str) -> None:
    for stated in ((HEIGHT, WIDTH), (WIDTH, HEIGHT)):
        row = record("a.jpg", QUARTER, image__height=stated[0], image__width=stated[1])
        path = write(tmp_path, row | {"image/encoded": jpeg(orientation=6)})
        convert(path, tmp_path / f"{format}{stated[0]}", format)
    path = write(tmp_path, row | {"image/encoded": jpeg(orientation=6), "image/height": 99})
    with pytest.raises(tfr.errors.EncodeError, match="the image has 32×24 pixels, or 24×32 turned"):
        convert(path, tmp_path / "out", format)


@pytest.mark.parametrize("format", TARGETS)
def test_bytes_that_are_no_image_are_refused(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, record("a.jpg", QUARTER), record("b.jpg", QUARTER) | {"image/encoded": b"\xff" * 40})
    refused(path, format, "its 40 bytes are not an image of a known format", "image/encoded")
    convert(path, tmp_path / "out", format, check_sizes=False)


@pytest.mark.parametrize("format", TARGETS)
def test_a_folder_that_is_written_can_be_read(tmp_path: Path, format: str) -> None:
    """The library refused its own folder."""
    convert(write(tmp_path, record("a.jpg", QUARTER), record("b.jpg", (0, 0, 1, 1))), tmp_path / "out", format)
    opened = {
        "coco": lambda: tfr.formats.open_coco(tmp_path / "out/instances.json", tmp_path / "out/images"),
        "voc": lambda: tfr.formats.open_voc(tmp_path / "out"),
        "yolo": lambda: tfr.formats.open_yolo(tmp_path / "out"),
    }
    table = opened[format]().read_all()
    assert table[f"{OBJECT}bbox/xmax"].to_pylist() == [[0.75], [1.0]]


# ---- fractions


def is_near(place: float) -> bool:
    return bool(np.float32(-0.1) <= place <= np.float32(1.1))


@pytest.mark.parametrize("format", TARGETS)
@settings(max_examples=rounds(40), deadline=None)
@given(box=st.tuples(*[st.floats(-1e4, 1e4, width=32)] * 4).filter(lambda box: not all(-0.1 <= v <= 1.1 for v in box)))
def test_boxes_of_pixels_are_refused(format: str, box: tuple[float, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), record("a.jpg", QUARTER), record("b.jpg", QUARTER, box))
        first = next(side for side, value in zip(SIDES, box, strict=True) if not is_near(value))
        message = refused(path, format, "of object 1 of image 'b.jpg' is", f"{OBJECT}bbox/{first}")
    assert "-0.1 to 1.1" in message
    assert "image/width" in message or "image/height" in message


@pytest.mark.parametrize("format", ["coco", "yolo"])
@pytest.mark.parametrize("axis", ["x", "y"])
def test_key_points_of_pixels_are_refused(tmp_path: Path, format: str, axis: str) -> None:
    points = {f"{OBJECT}keypoint/{name}": values for name, values in zip(POINTS, ([0.5], [0.5], [2]), strict=True)}
    wrong = points | {f"{OBJECT}keypoint/{axis}": [320.0]}
    path = write(tmp_path, record("a.jpg", QUARTER) | points, record("b.jpg", QUARTER) | wrong)
    refused(path, format, "a key point of object 0 of image 'b.jpg' is at 320.0", f"{OBJECT}keypoint/{axis}")
    convert(
        write(tmp_path, record("a.jpg", QUARTER) | wrong | {f"{OBJECT}keypoint/visibility": [0]}),
        tmp_path / "out",
        format,
    )  # of a point that is not labelled, the place says nothing


@pytest.mark.parametrize("format", ["coco", "voc"])
@pytest.mark.parametrize("edge", [-0.1, 1.1])
def test_fractions_a_little_beyond_the_image_are_written(tmp_path: Path, format: str, edge: float) -> None:
    edge = float(np.float32(edge))
    box = (min(edge, 0.5), 0.0, max(edge, 0.5), 1.0)
    convert(write(tmp_path, record("a.jpg", box)), tmp_path / "out", format)


# ---- classes


@settings(max_examples=rounds(20), deadline=None)
@given(st.permutations([("b.jpg", ["dog"]), ("a.jpg", ["cat", "ant"]), ("c.jpg", ["dog", "cat"]), ("d.jpg", [])]))
def test_ids_of_categories_do_not_depend_on_the_order_of_rows(rows: list[tuple[str, list[str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        records = [record(name, *[QUARTER] * len(classes), classes=classes) for name, classes in rows]
        path = write(Path(folder), *records)
        convert(path, Path(folder, "coco"), "coco")
        convert(path, Path(folder, "yolo"), "yolo")
        categories = json.loads(Path(folder, "coco/instances.json").read_text())["categories"]
        names = yaml.safe_load(Path(folder, "yolo/data.yaml").read_text())["names"]
    assert categories == [{"id": at, "name": name} for at, name in enumerate(["ant", "cat", "dog"], start=1)]
    assert names == {0: "ant", 1: "cat", 2: "dog"}


@pytest.mark.parametrize("reverse", [False, True])
def test_names_without_labels_beside_those_with_labels(tmp_path: Path, reverse: bool) -> None:
    """A name that has a label elsewhere has it here; others get the first numbers that no label is."""
    rows = [
        record("a.jpg", QUARTER, QUARTER, classes=["dog", "cat"], labels=[2, 7]),
        record("b.jpg", *[QUARTER] * 3, classes=["elk", "dog", "bee"], labels=[]),
    ]
    path = write(tmp_path, *(reversed(rows) if reverse else rows))
    convert(path, tmp_path / "coco", "coco")
    document = json.loads((tmp_path / "coco/instances.json").read_text())
    expected = {1: "bee", 2: "dog", 3: "elk", 7: "cat"}
    assert {each["id"]: each["name"] for each in document["categories"]} == expected
    convert(path, tmp_path / "yolo", "yolo")
    names = yaml.safe_load((tmp_path / "yolo/data.yaml").read_text())["names"]
    assert names == {0: "bee", 1: "dog", 2: "elk", 3: "cat"}


# ---- records without an image


@pytest.mark.parametrize("format", TARGETS)
@pytest.mark.parametrize("content", [b"", None])
def test_a_record_without_an_image_is_an_error(tmp_path: Path, format: str, content: bytes | None) -> None:
    path = write(tmp_path, record("a.jpg", QUARTER), record("b.jpg", QUARTER) | {"image/encoded": content})
    assert 'images="none"' in refused(path, format, "it has no image bytes", "image/encoded")


@pytest.mark.parametrize("format", TARGETS)
def test_annotations_alone(tmp_path: Path, format: str) -> None:
    rows = [record("a.jpg", QUARTER), record("b.jpg", QUARTER) | {"image/encoded": b""}]
    convert(write(tmp_path, *rows), tmp_path / "out", format, images="none")
    files = {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file()}
    assert (
        files
        == {
            "coco": {"instances.json"},
            "voc": {"Annotations/a.xml", "Annotations/b.xml", "ImageSets/Main/trainval.txt"},
            "yolo": {"data.yaml", "labels/a.txt", "labels/b.txt"},
        }[format]
    )
    without = [{name: value for name, value in row.items() if name != "image/encoded"} for row in rows]
    path = write(tmp_path, *without)
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"no column 'image/encoded'.*images=\"none\"") as raised:
        convert(path, tmp_path / "no", format)
    assert (
        raised.value.hint_cli
        == "--images none writes annotations without images; " + raised.value.hint.split("; ", 1)[1]
    )
    run = CliRunner().invoke(command, ["convert", str(path), f"{tmp_path}/cli", "--to", format, "--images", "none"])
    assert run.exit_code == 0, run.output
    for name in files:
        assert (tmp_path / "cli" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
    with pytest.raises(ValueError, match="expected one of None, 'none'"):
        convert(path, tmp_path / "no", format, images="photos")


def test_annotations_alone_are_still_those_of_the_image(tmp_path: Path) -> None:
    path = write(tmp_path, record("a.jpg", QUARTER), record("b.jpg", QUARTER, image__height=WIDTH, image__width=HEIGHT))
    refused(path, "coco", "the image has 32×24 pixels, but the record states 24×32", "image/height", images="none")


@pytest.mark.parametrize("format", TARGETS)
def test_names_get_the_suffix_of_their_image(tmp_path: Path, format: str) -> None:
    convert(write(tmp_path, record("ISIC_0", QUARTER), record("b.v2", QUARTER)), tmp_path / "out", format)
    assert {path.name for path in (tmp_path / "out").rglob("*.jpg")} == {"ISIC_0.jpg", "b.v2.jpg"}


def test_nothing_is_said_of_good_records(tmp_path: Path) -> None:
    path = write(tmp_path, record("a.jpg", QUARTER))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for format in TARGETS:
            convert(path, tmp_path / format, format)


# ---- the same rules where such folders are read


def yolo_folder(folder: Path, lines: str, data: str = "names: [cat]\n") -> Path:
    for name in ("images", "labels"):
        (folder / name).mkdir(parents=True)
    (folder / "images/a.jpg").write_bytes(jpeg())
    (folder / "labels/a.txt").write_text(lines)
    (folder / "data.yaml").write_text(data)
    return folder


@pytest.mark.parametrize(
    ("line", "data", "place"),
    [
        ("0 320 120 16 12", "", 320.0),
        ("0 .5 .5 16 .1", "", 16.0),
        ("0 .5 .5 .1 1.2", "", 1.2),
        ("0 .1 .1 20 .1 .5 -7", "", 20.0),
        ("0 .5 .5 .5 .5 12 .5 2", "kpt_shape: [1, 3]\n", 12.0),
        ("0 .5 .5 .5 .5 .1 12", "kpt_shape: [1, 2]\n", 12.0),
    ],
)
def test_lines_of_yolo_in_pixels_are_refused(tmp_path: Path, line: str, data: str, place: float) -> None:
    """All boxes were left out, with a warning."""
    folder = yolo_folder(
        tmp_path, f"0 .5 .5 .5 .5{' .5 .5 2'[: 0 if not data else None]}\n{line}\n", f"names: [cat]\n{data}"
    )
    if data and "2]" in data:
        (folder / "labels/a.txt").write_text(f"{line}\n")
    with pytest.raises(tfr.errors.DecodeError, match=rf"line \d: {place} is not a fraction .* it looks like pixels"):
        tfr.formats.open_yolo(folder, masks=None)


def test_a_key_point_that_is_not_labelled_may_be_anywhere(tmp_path: Path) -> None:
    folder = yolo_folder(tmp_path, "0 .5 .5 .5 .5 12 .5 0\n", "names: [cat]\nkpt_shape: [1, 3]\n")
    assert tfr.formats.open_yolo(folder).read_all()[f"{OBJECT}keypoint/num"].to_pylist() == [[0]]


@pytest.mark.parametrize(("visibility", "invalid"), [(2, "skip"), (2, "keep"), (0, "skip")])
def test_key_points_of_coco_far_beyond_the_image(tmp_path: Path, visibility: int, invalid: Any) -> None:
    (tmp_path / "a.jpg").write_bytes(jpeg())
    places = {"keypoints": [320, 12, visibility], "num_keypoints": 1}
    document = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": WIDTH, "height": HEIGHT}],
        "categories": [{"id": 1, "name": "cat"}],
        "annotations": [{"id": 9, "image_id": 1, "category_id": 1, "bbox": [1, 1, 9, 9], **places}],
    }
    (tmp_path / "i.json").write_text(json.dumps(document))
    stream = tfr.formats.open_coco(tmp_path / "i.json", tmp_path, invalid_boxes=invalid)
    if visibility and invalid == "skip":
        with pytest.raises(tfr.errors.DecodeError, match="a key point of annotation 9 of image '1' is far beyond"):
            stream.read_all()
    else:
        assert stream.read_all()[f"{OBJECT}keypoint/x"].to_pylist() == [[10.0]]


# ---- classes of no object


CATEGORIES = [
    {"id": 3, "name": "cat", "supercategory": "animal"},
    {"id": 5, "name": "dog", "keypoints": ["nose", "tail"], "skeleton": []},
    {"id": 90, "name": "tree"},
]


def coco_folder(folder: Path, *annotated: int) -> Path:
    folder.mkdir(parents=True)
    (folder / "1.jpg").write_bytes(jpeg())
    boxes = [{"id": n, "image_id": 1, "category_id": id_, "bbox": [1, 1, 9, 9]} for n, id_ in enumerate(annotated)]
    images = [{"id": 1, "file_name": "1.jpg", "width": WIDTH, "height": HEIGHT}]
    (folder / "i.json").write_text(json.dumps({"images": images, "categories": CATEGORIES, "annotations": boxes}))
    return folder


def test_categories_of_no_object_come_back(tmp_path: Path) -> None:
    """They vanished, and numbers of YOLO's classes in training and validation differed."""
    found = {}
    for part, annotated in {"train": (3, 90), "val": (90,), "none": ()}.items():
        folder = coco_folder(tmp_path / part, *annotated)
        tfr.write_tfrecord(tfr.formats.open_coco(folder / "i.json", folder), tmp_path / f"{part}.tfrecord@2")
        for format in ("coco", "yolo"):
            convert(tmp_path / f"{part}.tfrecord@2", tmp_path / f"{part}-{format}", format)
        document = json.loads((tmp_path / f"{part}-coco/instances.json").read_text())
        assert document["categories"] == CATEGORIES
        found[part] = yaml.safe_load((tmp_path / f"{part}-yolo/data.yaml").read_text())["names"]
    assert [*found.values()] == [{0: "cat", 1: "dog", 2: "tree"}] * 3
    assert (tmp_path / "val-yolo/labels/1.txt").read_text().startswith("2 ")


def test_classes_of_yolo_keep_their_numbers(tmp_path: Path) -> None:
    folder = yolo_folder(tmp_path / "in", "2 .5 .5 .5 .5\n", "names: [zebra, cat, ant, bee]\n")
    tfr.convert(folder, tmp_path / "a.tfrecord")
    convert(tmp_path / "a.tfrecord", tmp_path / "out", "yolo")
    names = yaml.safe_load((tmp_path / "out/data.yaml").read_text())["names"]
    assert [*names.values()] == ["zebra", "cat", "ant", "bee"]
    assert (tmp_path / "out/labels/a.txt").read_text() == "2 0.5 0.5 0.5 0.5\n"
    tfr.copy(tmp_path / "a.tfrecord", tmp_path / "b.tfrecord")
    tfr.shuffle(tmp_path / "b.tfrecord", tmp_path / "c.tfrecord", seed=1)
    convert(tmp_path / "c.tfrecord", tmp_path / "again", "yolo", class_names=["ant"])  # as stated now
    assert yaml.safe_load((tmp_path / "again/data.yaml").read_text())["names"] == {0: "ant"}


def test_labels_without_names_have_those_of_the_schema(tmp_path: Path) -> None:
    folder = yolo_folder(tmp_path / "in", "1 .5 .5 .5 .5\n", "names: [cat, dog]\n")
    tfr.convert(folder, tmp_path / "a.tfrecord")
    for format in TARGETS:
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / format, target_format=format, columns=f"!{OBJECT}class/text")
    assert "<name>dog</name>" in (tmp_path / "voc/Annotations/a.xml").read_text()
    assert json.loads((tmp_path / "coco/instances.json").read_text())["annotations"][0]["category_id"] == 2


@pytest.mark.parametrize("text", [b"[", b"[1]", b'[{"id": "x", "name": "a"}]', b'[{"id": 1, "name": "a", "b": 1}]'])
def test_damaged_classes_are_named(tmp_path: Path, text: bytes) -> None:
    folder = yolo_folder(tmp_path / "in", "0 .5 .5 .5 .5\n")
    table = tfr.formats.open_yolo(folder).read_all()
    at = table.schema.get_field_index(f"{OBJECT}class/label")
    field = table.schema.field(at).with_metadata({"tfrecord_io.classes": text})
    tfr.write_tfrecord(table.set_column(at, field, table.column(at)), tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match=r"its metadata is damaged: tfrecord_io\.classes"):
        convert(tmp_path / "a.tfrecord", tmp_path / "out", "yolo")
    convert(tmp_path / "a.tfrecord", tmp_path / "out", "yolo", class_names=["cat"])


# ---- files of a folder that nothing names


def test_labels_of_yolo_without_an_image_are_named(tmp_path: Path) -> None:
    folder = yolo_folder(tmp_path, "0 .5 .5 .5 .5\n")
    for name in ("b.txt", "c.txt", "classes.txt"):
        (folder / "labels" / name).write_text("0 .5 .5 .5 .5\n")
    with pytest.warns(UserWarning, match=r"labels: without an image, left out: 'b\.txt' and 1 more$"):
        assert tfr.formats.open_yolo(folder).read_all().num_rows == 1


def test_images_of_voc_without_an_annotation_are_named(tmp_path: Path) -> None:
    convert(write(tmp_path, record("a.jpg", QUARTER), record("b.jpg", QUARTER)), tmp_path / "voc", "voc")
    (tmp_path / "voc/JPEGImages/c.jpg").write_bytes(jpeg())
    (tmp_path / "voc/JPEGImages/ISIC_0").write_bytes(jpeg())
    with pytest.warns(UserWarning, match=r"JPEGImages: without an annotation, left out: 'ISIC_0' and 1 more$"):
        assert tfr.formats.open_voc(tmp_path / "voc").read_all().num_rows == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.formats.open_voc(tmp_path / "voc", image_set="trainval").read_all()  # which says what is read
