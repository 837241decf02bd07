"""Annotated images as folders of COCO, Pascal VOC and YOLO: round trips, what other programs read, what is refused."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import tempfile
import threading
import warnings
from functools import partial
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
from rounds import COMPLETE, rounds
from servers import Bucket
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.plugins.vision.masks_and_keypoints import draw
from transfers import convert_flat

OBJECT = "image/object/"
WIDTH, HEIGHT = 40, 20
TARGETS = ("coco", "voc", "yolo")


def encoded(pixels: np.ndarray, format: str) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format)
    return file.getvalue()


def png(pixels: np.ndarray) -> bytes:
    return encoded(pixels, "PNG")


ENCODED = png(np.zeros((HEIGHT, WIDTH), "uint8"))  # the name of a file does not say what it holds


def image(
    name: str = "a.jpg", *boxes: tuple[float, float, float, float], label: int = 1, **more: Any
) -> dict[str, Any]:
    """A record as the Object Detection API has it; boxes are xmin, ymin, xmax, ymax."""
    sides = zip(("xmin", "ymin", "xmax", "ymax"), zip(*boxes, strict=True) if boxes else [()] * 4, strict=True)
    record = {f"{OBJECT}bbox/{side}": np.array(values, "float32").tolist() for side, values in sides}
    record |= {f"{OBJECT}class/label": [label] * len(boxes), f"{OBJECT}class/text": [f"class {label}"] * len(boxes)}
    return (
        {"image/encoded": ENCODED, "image/filename": name, "image/height": HEIGHT, "image/width": WIDTH} | record | more
    )


def write(folder: Path, *records: dict[str, Any]) -> Path:
    lists = {name: pa.list_(pa.float32()) for name in records[0] if name.startswith(f"{OBJECT}bbox")}
    lists |= {f"{OBJECT}class/label": pa.list_(pa.int64()), f"{OBJECT}class/text": pa.list_(pa.string())}
    table = pa.Table.from_pylist(list(records))
    for name, type_ in lists.items():
        if name in table.schema.names:
            at = table.schema.names.index(name)
            table = table.set_column(at, name, table[name].cast(type_))
    tfr.write_tfrecord(table, folder / "a.tfrecord", embed_schema=False)
    return folder / "a.tfrecord"


def read(folder: Path, format: str, **keywords: Any) -> pa.Table:
    if format == "coco":
        return tfr.formats.open_coco(folder / "instances.json", folder / "images", **keywords).read_all()
    return (tfr.formats.open_voc if format == "voc" else tfr.formats.open_yolo)(folder, **keywords).read_all()


FRACTIONS = st.integers(0, 2**24).map(lambda n: n / 2**24)  # the centre and size of a box in text have all digits
BOXES = st.tuples(FRACTIONS, FRACTIONS, FRACTIONS, FRACTIONS).map(
    lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
)
REAL = BOXES.filter(lambda b: b[2] - b[0] > 1e-6 and b[3] - b[1] > 1e-6)
NAMES = st.text("abé日 -_&<'\"", min_size=1, max_size=8).map(str.strip).filter(bool)


@pytest.mark.parametrize("format", TARGETS)
@settings(max_examples=rounds(100))
@given(st.lists(st.tuples(NAMES, st.lists(REAL, max_size=4), st.integers(1, 3)), max_size=4, unique_by=lambda i: i[0]))
def test_all_boxes_and_classes_come_back(format: str, images: list[tuple[str, Any, int]]) -> None:
    records = [image(f"{name}.jpg", *boxes, label=label) for name, boxes, label in images] or [image()]
    with tempfile.TemporaryDirectory() as temporary:
        path, folder = write(Path(temporary), *records), Path(temporary, "out")
        report = tfr.convert(path, folder, target_format=format)
        assert (report.records, report.bytes) == (len(records), len(ENCODED) * len(records))
        classes = {} if format == "coco" else {"class_names": [f"class {label}" for label in (1, 2, 3)]}
        if format == "yolo" and not any(boxes for _, boxes, _ in images):
            classes = {"class_names": []}
        if format == "yolo":
            convert_flat(path, Path(temporary, "named"), target_format=format, **classes)
            folder = Path(temporary, "named")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rows = {row["image/filename"]: row for row in read(folder, format, **classes).to_pylist()}
    assert len(rows) == len(records)
    for record in records:
        row = rows[record["image/filename"]]
        assert {name: row[name] for name in record} == record


CENTS = st.integers(0, 200_000).map(lambda n: n / 100)
COCO_BOXES = st.tuples(CENTS, CENTS, CENTS, CENTS).filter(lambda b: b[2] > 0 and b[3] > 0)
SHAPES = st.sampled_from(
    [
        [[1, 2, 30.25, 2, 30, 15]],
        [[1, 2, 3, 4, 5, 6], [7, 8, 9, 8, 9, 10.5]],
        {"size": [4000, 4000], "counts": [0, 16_000_000]},
    ]
)


@settings(max_examples=rounds(100))
@given(
    st.lists(
        st.tuples(COCO_BOXES, st.sampled_from([1, 5, 18]), st.integers(0, 1), SHAPES, st.integers(0, 2)), max_size=6
    )
)
def test_a_coco_file_comes_back(objects: list[tuple[Any, ...]]) -> None:
    keypoints = {1: ["nose", "tail"], 5: [], 18: ["nose"]}
    document = {
        "images": [{"id": id_, "file_name": f"{id_}é.jpg", "width": 4000, "height": 4000} for id_ in (139, 2)],
        "categories": [{"id": 1, "name": "person"}, {"id": 5, "name": "car"}, {"id": 18, "name": "dög"}],
        "annotations": [
            {
                "id": at + 1,
                "image_id": 139 if at < 3 else 2,
                "category_id": category,
                "bbox": list(box),
                "area": round(box[2] * box[3], 1),
                "iscrowd": crowd,
                "segmentation": shape,
            }
            | (
                {
                    "keypoints": [12.5, 30, visible, 0, 0, 0][: 3 * len(keypoints[category])],
                    "num_keypoints": int(visible > 0),
                }
                if keypoints[category]
                else {}
            )
            for at, (box, category, crowd, shape, visible) in enumerate(objects)
        ],
    }
    for category in document["categories"]:
        names = keypoints[category["id"]]
        category |= {"keypoints": names, "skeleton": []} if names else {}
    with tempfile.TemporaryDirectory() as temporary:
        (photos := Path(temporary, "photos")).mkdir()
        for each in document["images"]:
            (photos / each["file_name"]).write_bytes(ENCODED)
        Path(temporary, "i.json").write_text(json.dumps(document))
        stream = tfr.formats.open_coco(
            Path(temporary, "i.json"), photos, masks="json", invalid_boxes="keep", check_sizes=False
        )
        tfr.write_tfrecord(stream, Path(temporary, "a.tfrecord"))
        unseen = {"check_sizes": False}
        tfr.convert(Path(temporary, "a.tfrecord"), Path(temporary, "out"), target_format="coco", target_options=unseen)
        back = json.loads(Path(temporary, "out/instances.json").read_text())
    assert back["images"] == document["images"]
    assert back["categories"] == document["categories"]
    for old, new in zip(document["annotations"], back["annotations"], strict=True):
        assert new["area"] == pytest.approx(old["area"], rel=1e-7)
        assert new | {"area": old["area"]} == old


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('aé"\\', max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
    max_leaves=4,
)
STATED = st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(0, 1, width=32), JSON_VALUES, st.booleans())


@settings(max_examples=rounds(100))
@given(st.lists(STATED, max_size=4))
def test_what_coco_states_of_objects_comes_back(objects: list[tuple[Any, ...]]) -> None:
    """Ids, scores, attributes and supercategories, by convert to TFRecord and back."""
    objects = list({each[0]: each for each in objects}.values())
    categories = [{"id": 1, "name": "dog", "supercategory": "animal"}, {"id": 2, "name": "person"}]
    annotations = [
        {"id": id_, "image_id": 7, "category_id": 1 + is_person, "bbox": [1, 2, 3, 4], "area": 12, "iscrowd": 0}
        | {"score": score, "attributes": {"of": attributes}}
        for id_, score, attributes, is_person in objects
    ]
    images = [{"id": 7, "file_name": "a.png", "width": WIDTH, "height": HEIGHT}]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "images").mkdir()
        (folder / "images" / "a.png").write_bytes(ENCODED)
        document = {"images": images, "categories": categories, "annotations": annotations}
        (folder / "instances.json").write_text(json.dumps(document))
        tfr.convert(
            folder / "instances.json", folder / "a", source_format="coco", source_options={"images": folder / "images"}
        )
        tfr.convert(folder / "a", folder / "out", target_format="coco")
        back = json.loads((folder / "out/instances.json").read_text())
    for each, original in zip(back["annotations"], annotations, strict=True):
        assert np.float32(each.pop("score")) == np.float32(original.pop("score"))
        assert each == original
    assert back["categories"] == categories


def test_what_voc_states_of_objects_comes_back(tmp_path: Path) -> None:
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30</xmax><ymax>15</ymax></bndbox>"
    head = "<part><name>head</name><bndbox><xmin>1.5</xmin><ymin>2</ymin><xmax>9</xmax><ymax>7</ymax></bndbox></part>"
    hand = "<part><name>hand</name><bndbox><xmin>01</xmin></bndbox></part>"
    flags = "<pose>Left</pose><truncated>1</truncated><difficult>0</difficult>"
    objects = [f"<occluded>1</occluded>{box}{head}{hand}", box, f"<occluded>0</occluded>{box}"]
    text = "".join(f"<object><name>person</name>{flags}{each}</object>" for each in objects)
    for name in ("Annotations", "JPEGImages"):
        (tmp_path / "voc" / name).mkdir(parents=True)
    (tmp_path / "voc/JPEGImages/a.png").write_bytes(ENCODED)
    xml = f"<annotation><filename>a.png</filename>{text}</annotation>"
    (tmp_path / "voc/Annotations/a.xml").write_text(xml)
    first = tfr.formats.open_voc(tmp_path / "voc").read_all()
    assert first[f"{OBJECT}occluded"].to_pylist() == [[1, 0, 0]]
    parts: list[dict[str, Any]] = [{"name": "head", "bndbox": {"xmin": 1.5, "ymin": 2, "xmax": 9, "ymax": 7}}]
    parts += [{"name": "hand", "bndbox": {"xmin": "01"}}]
    assert [json.loads(each) for each in first[f"{OBJECT}part"][0].as_py()] == [parts, [], []]
    tfr.write_tfrecord(first, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "out", target_format="voc")
    assert tfr.formats.open_voc(tmp_path / "out").read_all().equals(first)
    with pytest.warns(UserWarning, match=r"occluded, .*part"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "coco", target_format="coco")
    more = "<actions><jumping>1</jumping></actions>"
    (tmp_path / "voc/Annotations/a.xml").write_text(xml.replace(box, box + more))
    with pytest.warns(UserWarning, match="no column holds it, here or in other annotations: actions of objects"):
        tfr.formats.open_voc(tmp_path / "voc").read_all()


@pytest.mark.parametrize(
    ("format", "more", "reason"),
    [
        ("coco", {"annotation_id": [3, 3]}, "two annotations have the id 3"),
        ("coco", {"is_crowd": [1, 2]}, "the value of object 1 is 2, expected 0 or 1"),
        ("coco", {"attributes": ["{", ""]}, "is not JSON"),
        ("coco", {"class/supercategory": ["a", "b"]}, "the label 1 has two supercategories"),
        ("voc", {"difficult": [3, 0]}, "the value of object 0 is 3, expected 0 or 1"),
        ("voc", {"occluded": [0, -1]}, "the value of object 1 is -1, expected 0 or 1"),
        ("voc", {"part": ["[", ""]}, "is not JSON"),
        ("voc", {"part": ["{}", ""]}, "a part of object 0 is not a name with a box"),
        ("voc", {"part": ['[{"name": "a", "bndbox": {"x": 1}}]', ""]}, "is not a name with a box"),
    ],
)
def test_values_of_objects_that_are_none(tmp_path: Path, format: str, more: dict[str, Any], reason: str) -> None:
    boxes = [(0.0, 0.0, 0.5, 0.5)] * 2
    path = write(tmp_path, image("a.jpg", *boxes, **{OBJECT + name: values for name, values in more.items()}))
    with pytest.raises(tfr.errors.EncodeError, match=reason):
        tfr.convert(path, tmp_path / "out", target_format=format)
    columns = [f"!{OBJECT}{name}" for name in more]
    tfr.convert(path, tmp_path / "out", target_format=format, columns=columns)


@pytest.mark.parametrize("format", TARGETS)
@pytest.mark.parametrize("missing", ["bbox/xmin", "bbox/ymax", "class/label", "class/text", "keypoint/x"])
def test_missing_values_in_lists_are_not_zero(tmp_path: Path, format: str, missing: str) -> None:
    """Tables with a schema have them; they were read as 0 and as empty text."""
    points = ("keypoint/x", "keypoint/y") if missing == "keypoint/x" else ()
    row = image("a.jpg", *[(0.0, 0.0, 0.5, 0.5)] * 2, **{f"{OBJECT}{name}": [0.5, 0.5] for name in points})
    row[f"{OBJECT}{missing}"] = [None, row[f"{OBJECT}{missing}"][1]]
    kinds = {float: pa.list_(pa.float32()), int: pa.list_(pa.int64()), str: pa.list_(pa.string())}
    types = {name: kinds[type(value[1])] for name, value in row.items() if isinstance(value, list)}
    table = pa.table({name: pa.array([value], types.get(name)) for name, value in row.items()})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    convert = partial(tfr.convert, tmp_path / "a.tfrecord", tmp_path / "out", target_format=format)
    if missing == "class/label":  # the name is enough
        convert()
        texts = read(tmp_path / "out", format)[f"{OBJECT}class/text"].to_pylist()
        assert texts == [["class 1", "class 1"]]
        return
    reason = "has no name|has no class" if missing == "class/text" else "a value is missing in the list"
    with pytest.raises(tfr.errors.EncodeError, match=reason) as caught:
        convert()
    assert (caught.value.record, caught.value.feature) == (0, f"{OBJECT}{missing}")


def test_values_of_coco_that_some_objects_lack(tmp_path: Path) -> None:
    boxes = [(0.0, 0.0, 0.5, 0.5)] * 2
    row = image("a.jpg", *boxes, **{f"{OBJECT}score": [None, 0.5], f"{OBJECT}annotation_id": [None, 7]})
    floats, integers = pa.list_(pa.float32()), pa.list_(pa.int64())
    types = {f"{OBJECT}score": floats, f"{OBJECT}annotation_id": integers, f"{OBJECT}class/label": integers}
    types |= {name: floats for name in row if "bbox" in name}
    table = pa.table({name: pa.array([value], types.get(name)) for name, value in row.items()})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "out", target_format="coco")
    found = json.loads((tmp_path / "out" / "instances.json").read_text())["annotations"]
    assert [(each["id"], each.get("score")) for each in found] == [(1, None), (7, 0.5)]


@pytest.mark.parametrize(("box", "side"), [((0.5, 0.25, 0.25, 0.5), "xmax"), ((0.25, 0.5, 0.5, 0.25), "ymax")])
def test_coco_refuses_boxes_that_end_before_they_begin(tmp_path: Path, box: tuple[float, ...], side: str) -> None:
    """They got a negative area."""
    path = write(tmp_path, image("a.jpg"), image("b.jpg", (0.0, 0.0, 0.5, 0.5), box))
    with pytest.raises(
        tfr.errors.EncodeError, match=r"object 1 of image 'b\.jpg' ends before it begins.* pixels"
    ) as caught:
        tfr.convert(path, tmp_path / "out", target_format="coco")
    assert (caught.value.record, caught.value.feature) == (1, f"{OBJECT}bbox/{side}")


def test_an_object_of_coco_without_a_mask_has_none_again(tmp_path: Path) -> None:
    box = (0.1, 0.1, 0.75, 0.9)
    masks = [png(np.zeros((HEIGHT, WIDTH), "uint8")), png(draw([[0, 0, 10, 0, 10, 20]], HEIGHT, WIDTH))]
    path = write(tmp_path, image("a.jpg", box, box, **{f"{OBJECT}mask": masks}))
    tfr.convert(path, tmp_path / "out", target_format="coco")
    found = json.loads((tmp_path / "out" / "instances.json").read_text())["annotations"]
    assert ["segmentation" in each for each in found] == [False, True]


def test_pycocotools_reads_it(tmp_path: Path) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    polygon = [[4.5, 2, 30, 2, 30.25, 15, 7, 18]]
    mask = draw([[0, 0, 10, 0, 10, 20]], HEIGHT, WIDTH)
    box = (0.1, 0.1, 0.75, 0.9)
    for column, values in (("segmentation", [json.dumps(polygon), "[]"]), ("mask", [png(mask)] * 2)):
        path = write(tmp_path, image("a.jpg", box, box, **{OBJECT + column: values, "image/source_id": "7"}))
        tfr.convert(path, tmp_path / column, target_format="coco")
        with contextlib.redirect_stdout(io.StringIO()):
            opened = coco.COCO(str(tmp_path / column / "instances.json"))
            opened.loadRes([{"image_id": 7, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}])
        assert opened.getImgIds() == [7]
        assert opened.loadCats(1)[0]["name"] == "class 1"
        first = opened.loadAnns(opened.getAnnIds(imgIds=[7]))[0]
        np.testing.assert_allclose(first["bbox"], (4, 2, 26, 16))
        assert (opened.annToMask(first) == (draw(polygon, HEIGHT, WIDTH) if column == "segmentation" else mask)).all()
        table = tfr.formats.open_coco(
            tmp_path / column / "instances.json", tmp_path / column / "images", masks="png"
        ).read_all()
        pixels = np.asarray(Image.open(io.BytesIO(table[f"{OBJECT}mask"][0].as_py()[0])))
        assert (pixels == opened.annToMask(first)).all()


def test_the_layout_of_yolo(tmp_path: Path) -> None:
    """As https://docs.ultralytics.com/datasets/detect/ describes it."""
    records = image("a/1.jpg", (0.1, 0.2, 0.3, 0.4), label=90), image("b.jpg", (0, 0, 1, 1), (0.5, 0.5, 1, 1), label=2)
    path = write(tmp_path, *records, image("c.jpg"))
    tfr.convert(path, tmp_path / "out", target_format="yolo")
    names = sorted(str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file())
    images = ["a/1", "b", "c"]
    assert names == sorted(["data.yaml", *(f"images/{n}.jpg" for n in images), *(f"labels/{n}.txt" for n in images)])
    data = yaml.safe_load((tmp_path / "out/data.yaml").read_text())
    assert data == {"train": "images", "val": "images", "names": {0: "class 2", 1: "class 90"}}
    assert (tmp_path / "out/labels/a/1.txt").read_text() == "1 0.2 0.3 0.2 0.2\n"
    assert (tmp_path / "out/labels/b.txt").read_text() == "0 0.5 0.5 1 1\n0 0.75 0.75 0.5 0.5\n"
    assert (tmp_path / "out/labels/c.txt").read_text() == ""


LINE = st.lists(st.integers(0, 10**6).map(lambda n: n / 10**6), min_size=3, max_size=6)


@settings(max_examples=rounds(100))
@given(st.lists(st.tuples(st.integers(0, 1), LINE, LINE), max_size=4))
def test_labels_of_polygons_come_back(objects: list[tuple[int, list[float], list[float]]]) -> None:
    lines = []
    for label, x, y in objects:
        if max(x[: len(y)]) > min(x[: len(y)]) and max(y[: len(x)]) > min(y[: len(x)]):
            numbers = [f"{value:.6f}".rstrip("0").rstrip(".") for point in zip(x, y, strict=False) for value in point]
            lines.append(" ".join([str(label), *numbers]))
    text = "".join(f"{line}\n" for line in lines)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "in")
        for place, content in (("images/a.jpg", ENCODED), ("labels/a.txt", text.encode())):
            (folder / place).parent.mkdir(parents=True)
            (folder / place).write_bytes(content)
        stream = tfr.formats.open_yolo(folder, class_names=["a", "b"], masks="json")
        tfr.write_tfrecord(stream, Path(temporary, "a.tfrecord"))
        tfr.convert(
            Path(temporary, "a.tfrecord"),
            Path(temporary, "out"),
            target_format="yolo",
            target_options={"class_names": ["a", "b"]},
        )
        back = Path(temporary, "out/labels/a.txt").read_text()
    assert [list(map(float, line.split())) for line in back.splitlines()] == [
        list(map(float, line.split())) for line in lines
    ]


def test_coco_has_one_list_of_names_for_the_key_points_of_a_class(tmp_path: Path) -> None:
    points = {"x": [0.25, 0.5], "y": [0.5, 0.5], "visibility": [2, 1], "text": ["nose", "tail"]}
    record = image("a.jpg", (0, 0, 1, 1), (0, 0, 0.5, 0.5), **{f"{OBJECT}keypoint/{k}": v for k, v in points.items()})
    with pytest.raises(tfr.errors.EncodeError, match=r"label 1 have two lists of names, .*'nose'.* and .*'tail'"):
        tfr.convert(write(tmp_path, record), tmp_path / "out", target_format="coco")


def test_key_points_of_yolo(tmp_path: Path) -> None:
    points = {"x": [0.25, 0.5, 0.0, 0.0], "y": [0.5, 0.5, 0.0, 0.0], "visibility": [2, 1, 0, 0]}
    record = image("a.jpg", (0, 0, 1, 1), (0, 0, 0.5, 0.5), **{f"{OBJECT}keypoint/{k}": v for k, v in points.items()})
    tfr.convert(write(tmp_path, record), tmp_path / "out", target_format="yolo")
    lines = (tmp_path / "out/labels/a.txt").read_text().splitlines()
    assert lines == ["0 0.5 0.5 1 1 0.25 0.5 2 0.5 0.5 1", "0 0.25 0.25 0.5 0.5 0 0 0 0 0 0"]
    assert yaml.safe_load((tmp_path / "out/data.yaml").read_text())["kpt_shape"] == [2, 3]
    (row,) = read(tmp_path / "out", "yolo").to_pylist()
    assert {name: row[f"{OBJECT}keypoint/{name}"] for name in points} == points


def test_masks_that_yolo_does_not_hold(tmp_path: Path) -> None:
    parts = "[[0,0,10,0,10,10,0,10],[20,0,30,0,30,10,20,10]]"
    rle = '{"size":[20,40],"counts":[0,800]}'
    record = image("a.jpg", *[(0.0, 0.0, 1.0, 1.0)] * 3, **{f"{OBJECT}segmentation": [parts, rle, "[]"]})
    with pytest.warns(UserWarning, match="1 of 3 objects left out, .* run-length"):
        tfr.convert(write(tmp_path, record), tmp_path / "out", target_format="yolo")
    (row,) = read(tmp_path / "out", "yolo", masks="json").to_pylist()
    joined, box = map(json.loads, row[f"{OBJECT}segmentation"])
    assert (draw(joined, 20, 40) == draw(json.loads(parts), 20, 40)).all()
    assert box == [[0, 0, 40, 0, 40, 20, 0, 20]]


def test_columns_that_a_format_does_not_hold_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, image("a.jpg", (0.0, 0.0, 1.0, 1.0), **{f"{OBJECT}difficult": [1], "caption": "x"}))
    with pytest.warns(UserWarning, match="COCO files do not hold these columns, left out: caption, image/object/diff"):
        tfr.convert(path, tmp_path / "out", target_format="coco")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.convert(path, tmp_path / "some", target_format="coco", columns=["image*", "!*difficult"])
        tfr.convert(path, tmp_path / "voc", target_format="voc", columns="!caption")
    assert read(tmp_path / "voc", "voc")[f"{OBJECT}difficult"].to_pylist() == [[1]]


HOSTILE = [
    "../x.jpg",
    "/tmp/x.jpg",
    "a/../../x.jpg",
    "C:\\x.jpg",
    "",
    ".x/a.jpg",
    "x.jpg\n",
    "CON.jpg",
    "a\u202eb.jpg",
    "x" * 300,
]


@pytest.mark.parametrize("format", TARGETS)
@pytest.mark.parametrize("name", HOSTILE)
def test_names_that_would_leave_the_folder_are_refused(tmp_path: Path, name: str, format: str) -> None:
    path = write(tmp_path, image("a.jpg"), image(name))
    with pytest.raises(tfr.errors.EncodeError, match="of a file cannot be used") as caught:
        tfr.convert(path, tmp_path / "out", target_format=format)
    assert (caught.value.record, caught.value.path) == (1, str(path))
    assert os.listdir(tmp_path) == ["a.tfrecord"]


@pytest.mark.parametrize("format", TARGETS)
def test_names_that_come_twice_are_refused(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, image("a.jpg"), image("b.jpg"), image("a.jpg"))
    with pytest.raises(tfr.errors.EncodeError, match="written for another record") as caught:
        tfr.convert(path, tmp_path / "out", target_format=format)
    assert caught.value.record == 2
    assert os.listdir(tmp_path) == ["a.tfrecord"]
    tfr.convert(path, tmp_path / "out", target_format=format, columns="!image/filename")
    assert len(list((tmp_path / "out").rglob("0*.png"))) == 3


@pytest.mark.parametrize("format", ["voc", "yolo"])
def test_images_whose_annotations_would_have_one_name_are_refused(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, image("a.jpg"), image("b.jpg"), image("a.png"))
    with pytest.raises(tfr.errors.EncodeError, match=r"a\.(xml|txt)' has been written for another record") as caught:
        tfr.convert(path, tmp_path / "out", target_format=format)
    assert (caught.value.record, os.listdir(tmp_path)) == (2, ["a.tfrecord"])


WHOLE = (0.0, 0.0, 1.0, 1.0)
GIF = encoded(np.zeros((HEIGHT, WIDTH), "uint8"), "GIF")
WRONG = [
    ("coco", {"image/source_id": "x7"}, "is not an integer, as that of the first image is"),
    ("coco", {"image/source_id": "7"}, "two images have the id 7"),
    ("coco", {f"{OBJECT}class/text": ["other"]}, "the label 1 has two names, 'class 1' and 'other'"),
    ("yolo", {f"{OBJECT}class/text": ["other"]}, "the label 1 has two names, 'class 1' and 'other'"),
    *((format, {f"{OBJECT}class/text": [""]}, "the class of object . has an empty name") for format in TARGETS),
    ("coco", {f"{OBJECT}class/label": [1, 2]}, "2 values for 1 objects"),
    ("voc", {f"{OBJECT}bbox/xmin": []}, "1 values for 0 objects"),
    ("coco", {f"{OBJECT}bbox/xmin": [float("nan")]}, "a value is not finite"),
    ("yolo", {f"{OBJECT}bbox/xmax": [1.05]}, "is empty or beyond the image"),
    ("voc", {"image/filename": "a/b.jpg"}, "is in a folder"),
    ("voc", {f"{OBJECT}class/text": ["a\x01"]}, "U\\+0001, which XML cannot hold"),
    ("yolo", {"image/filename": "b.GIF"}, "YOLO finds no image"),
    ("yolo", {"image/filename": None, "image/encoded": GIF}, "YOLO finds no image"),
    ("yolo", {"image/filename": "images/b.jpg"}, "YOLO finds no image"),
    ("coco", {"image/height": 0, "image/encoded": b"x"}, "not an image of a known format"),
    ("coco", {"image/encoded": None, "image/filename": None}, "it has no image bytes"),
]


@pytest.mark.parametrize(("format", "change", "reason"), WRONG)
def test_records_that_a_format_cannot_hold(tmp_path: Path, format: str, change: dict[str, Any], reason: str) -> None:
    first = image("a.jpg", WHOLE) | {"image/source_id": "7"}
    path = write(tmp_path, first, image("b.jpg", WHOLE) | {"image/source_id": "8"} | change)
    with pytest.raises(tfr.TFRecordError, match=reason) as caught:
        tfr.convert(path, tmp_path / "out", target_format=format)
    assert caught.value.record == 1  # type: ignore[attr-defined]
    assert os.listdir(tmp_path) == ["a.tfrecord"]


def test_images_without_objects_come_back_from_yolo(tmp_path: Path) -> None:
    path = write(tmp_path, image("a.jpg"), image("b.jpg"))
    tfr.convert(path, tmp_path / "out", target_format="yolo")
    assert yaml.safe_load((tmp_path / "out" / "data.yaml").read_text())["names"] == []
    table = read(tmp_path / "out", "yolo")
    assert table["image/filename"].to_pylist() == ["a.jpg", "b.jpg"]
    assert table[f"{OBJECT}class/text"].to_pylist() == [[], []]
    with pytest.raises(ValueError, match=r"class_names.* has an empty name"):
        tfr.convert(path, tmp_path / "named", target_format="yolo", target_options={"class_names": ["a", ""]})


@pytest.mark.parametrize("column", ["segmentation", "mask"])
@pytest.mark.parametrize(
    "value", ["x", "[", "[[1,2]]", "[" * 10**5, '{"size":[1,1],"counts":[1]}', "\x89PNG" + "\0" * 50]
)
def test_masks_that_are_none(tmp_path: Path, column: str, value: str) -> None:
    stored = value if column == "segmentation" else value.encode("latin1")
    path = write(tmp_path, image("a.jpg", WHOLE, **{OBJECT + column: [stored]}))
    with pytest.raises(tfr.errors.EncodeError, match="the mask of object 0 cannot be used"):
        tfr.convert(path, tmp_path / "out", target_format="coco")


@pytest.mark.parametrize("missing", ["image/encoded", f"{OBJECT}bbox/ymin", f"{OBJECT}class/"])
def test_columns_that_are_needed(tmp_path: Path, missing: str) -> None:
    path = write(tmp_path, {name: value for name, value in image("a.jpg", WHOLE).items() if missing not in name})
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=missing):
        tfr.convert(path, tmp_path / "out", target_format="coco")


def test_labels_without_names_and_names_without_labels(tmp_path: Path) -> None:
    records = [image("a.jpg", WHOLE, label=2), image("b.jpg", WHOLE, label=1)]
    for format in TARGETS:
        unnamed = write(tmp_path, *({k: v for k, v in r.items() if k != f"{OBJECT}class/text"} for r in records))
        with pytest.raises(tfr.errors.EncodeError, match=r"the label . has no name.*class_names"):
            tfr.convert(unnamed, tmp_path / "out", target_format=format)
        tfr.convert(unnamed, tmp_path / f"{format}1", target_format=format, target_options={"class_names": ["x", "y"]})
        assert read(tmp_path / f"{format}1", format)[f"{OBJECT}class/text"].to_pylist() == [["y"], ["x"]]
        only = write(tmp_path, *({k: v for k, v in r.items() if k != f"{OBJECT}class/label"} for r in records))
        tfr.convert(only, tmp_path / f"{format}2", target_format=format)
        assert read(tmp_path / f"{format}2", format)[f"{OBJECT}class/text"].to_pylist() == [["class 2"], ["class 1"]]


def test_categories_of_coco_without_objects_are_those_of_class_names(tmp_path: Path) -> None:
    path = write(tmp_path, image("a.jpg", WHOLE, label=2), image("b.jpg", WHOLE, label=18))
    names = ["person", "class 2", "class 18", "cat"]
    tfr.convert(path, tmp_path / "out", target_format="coco", target_options={"class_names": names})
    categories = json.loads((tmp_path / "out/instances.json").read_bytes())["categories"]
    expected = {1: "person", 2: "class 2", 4: "cat", 18: "class 18"}
    assert categories == [{"id": id_, "name": name} for id_, name in expected.items()]


@pytest.mark.parametrize("format", TARGETS)
def test_filters_and_limits(tmp_path: Path, format: str) -> None:
    path = write(tmp_path, *(image(f"{n}.jpg", WHOLE, label=n, n=n) for n in (3, 1, 2)))
    tfr.convert(path, tmp_path / "out", target_format=format, filters=[("n", ">", 1)], columns="image*")
    assert read(tmp_path / "out", format)[f"{OBJECT}class/text"].to_pylist() == (
        [["class 3"], ["class 2"]] if format == "coco" else [["class 2"], ["class 3"]]
    )
    tfr.convert(path, tmp_path / "one", target_format=format, limit=1, columns="image*")
    assert read(tmp_path / "one", format)["image/filename"].to_pylist() == ["3.jpg"]


def test_what_another_program_wrote(tmp_path: Path, data: Path) -> None:
    """Records of create_coco_tf_record.py: masks as PNG images, and features that are absent without objects."""
    path = data / "public" / "coco_train.record-00000-of-00100"
    for format in TARGETS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # columns that are left out
            tfr.convert(path, tmp_path / format, target_format=format)
        table = read(tmp_path / format, format)
        assert list(table[f"{OBJECT}class/text"].to_pylist()) == [["person", "dog"], [], ["person"]]
        assert table[f"{OBJECT}bbox/xmin"].to_pylist() == [[0.25, 0.0], [], [0.125]]


def test_sources_that_can_be_read_only_once(tmp_path: Path) -> None:
    path = write(tmp_path, image("a.jpg"))
    with open(path, "rb") as file, pytest.raises(TypeError, match="path"):
        tfr.convert(file, tmp_path / "out", target_format="coco")  # type: ignore[arg-type]
    os.mkfifo(tmp_path / "pipe")
    for keywords in ({"target_format": "yolo"}, {"files": "image/encoded", "columns": []}):
        feeder = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(path.read_bytes(),))
        feeder.start()
        with pytest.raises(ValueError, match="is a pipe, and the files are read twice"):
            convert_flat(tmp_path / "pipe", tmp_path / "out", source_format="tfrecord", **keywords)
        feeder.join()


def test_targets_that_are_no_new_folder(tmp_path: Path) -> None:
    path = write(tmp_path, image("a.jpg"))
    with pytest.raises(ValueError, match="the name of a file"):
        tfr.convert(path, tmp_path / "out.json", target_format="coco")
    with pytest.raises(FileExistsError):
        tfr.convert(path, tmp_path, target_format="coco")
    with pytest.raises(ValueError, match="image_set"):
        tfr.convert(path, tmp_path / "out", target_format="voc", target_options={"image_set": "../x"})
    with pytest.raises(TypeError, match="has 'class_names', which TFRecord"):
        tfr.convert(path, tmp_path / "out.csv", source_options={"class_names": ["x"]})


def test_buckets_and_the_command_line(tmp_path: Path, bucket: Bucket) -> None:
    path = write(tmp_path, image("a b.jpg", WHOLE))
    tfr.convert(path, bucket.url("out"), target_format="coco", storage_options=bucket.storage_options)
    assert bucket.names() == ["out/images/a b.jpg", "out/instances.json"]
    result = CliRunner().invoke(
        command, ["convert", str(path), f"{tmp_path}/voc", "--to", "voc", "--image-set", "train"]
    )
    assert "1 record" in result.output
    assert (tmp_path / "voc/ImageSets/Main/train.txt").read_text() == "a b\n"
    assert len(tfr.formats.open_voc(tmp_path / "voc", image_set="train").read_all()) == 1


# ---- mutants of annotation files: read, or refused with the file


def mutated(content: bytes, random_: random.Random) -> bytes:
    mutant = bytearray(content)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(mutant) + 1)
        kind = random_.randrange(5)
        if kind == 0 and at < len(mutant):
            mutant[at] = random_.choice(b'\0\n "{}[]<>/&:,.-0179e\x80\xff')
        elif kind == 1:
            del mutant[at : at + random_.randint(1, 30)]
        elif kind == 2:
            mutant[at:at] = mutant[random_.randrange(len(mutant) + 1) :][: random_.randint(1, 30)]
        elif kind == 3:
            mutant[at:at] = random_.choice(
                [b"null", b"-1", b"1e99", b"NaN", b"99999999999999999999", b"<!DOCTYPE a>", b"&a;"]
            )
        else:
            mutant = mutant[: max(at, 1)]
    return bytes(mutant)


@pytest.mark.fault(54)
@pytest.mark.parametrize("format", TARGETS)
def test_mutants_of_annotations_are_read_or_refused(tmp_path: Path, format: str) -> None:
    shapes = {f"{OBJECT}segmentation": ["[[1,2,30,2,30,15]]", '{"size":[20,40],"counts":"0Pi0"}']}
    points = {f"{OBJECT}keypoint/{axis}": [0.25, 0.5] for axis in "xy"} | {f"{OBJECT}keypoint/visibility": [2, 0]}
    record = image(
        "a.jpg",
        WHOLE,
        (0.1, 0.2, 0.3, 0.4),
        **(shapes if format == "coco" else {}),
        **(points if format != "voc" else {}),
    )
    tfr.convert(write(tmp_path, record), tmp_path / "out", target_format=format)
    files = {"coco": ["instances.json"], "voc": ["Annotations/a.xml"], "yolo": ["labels/a.txt", "data.yaml"]}[format]
    keywords: dict[str, Any] = {"invalid_boxes": "clip"} | ({} if format == "voc" else {"masks": "png"})
    random_ = random.Random(28)
    for name in files:
        content = (tmp_path / "out" / name).read_bytes()
        for _ in range(rounds(25_000) if COMPLETE else 250):
            (tmp_path / "out" / name).write_bytes(mutated(content, random_))
            with warnings.catch_warnings(), contextlib.suppress(tfr.TFRecordError, FileNotFoundError):
                warnings.simplefilter("ignore")
                read(tmp_path / "out", format, **keywords)
        (tmp_path / "out" / name).write_bytes(content)
