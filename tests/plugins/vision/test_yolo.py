"""Images with the labels of YOLO: the layouts that are published, and what is refused."""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import tfrecord_io as tfr
from pictures import jpeg
from servers import Bucket

DATA = "train: images\nval: images\nnames:\n  0: cat\n  1: 'dog'\n"


def write(folder: Path, labels: dict[str, str | None], data: str | None = DATA, images: str = "images") -> Path:
    """A folder in the layout of YOLO, with an image for each name, and labels but for None."""
    for name, text in labels.items():
        for place, suffix in ((images, ".jpg"), (images.replace("images", "labels"), ".txt")):
            (folder / place / name).parent.mkdir(parents=True, exist_ok=True)
            if suffix == ".jpg":
                (folder / place / f"{name}.jpg").write_bytes(jpeg())
            elif text is not None:
                (folder / place / f"{name}.txt").write_text(text)
    if data is not None:
        (folder / "data.yaml").write_text(data)
    return folder


def rows(folder: Path, text: str, **keywords: Any) -> list[dict[str, Any]]:
    return list(tfr.formats.open_yolo(write(folder, {"a": text}), **keywords).read_all().to_pylist())


def boxes(row: dict[str, Any]) -> list[tuple[float, ...]]:
    corners = (row[f"image/object/bbox/{name}"] for name in ("xmin", "ymin", "xmax", "ymax"))
    return list(zip(*corners, strict=True))


def test_boxes_classes_and_images_without_labels(tmp_path: Path) -> None:
    folder = write(tmp_path, {"a/1": "1 0.5 0.5 0.5 1\n\n0 0.25 0.25 .5 5e-1\n", "a/2": "", "b": None})
    first, second, third = tfr.formats.open_yolo(folder).read_all().to_pylist()
    assert boxes(first) == [(0.25, 0.0, 0.75, 1.0), (0.0, 0.0, 0.5, 0.5)]
    assert first["image/object/class/text"] == ["dog", "cat"]
    assert first["image/object/class/label"] == [2, 1]
    assert (first["image/filename"], first["image/source_id"], first["image/format"]) == ("a/1.jpg", "a/1.jpg", "jpeg")
    assert (first["image/height"], first["image/width"], first["image/encoded"]) == (20, 40, jpeg())
    assert boxes(second) == boxes(third) == []


PARTS = st.integers(0, 10**6).map(lambda n: n / 10**6)


@given(st.lists(st.tuples(PARTS, PARTS, PARTS, PARTS, st.integers(0, 1))))
def test_boxes_are_those_of_the_lines(objects: list[tuple[Any, ...]]) -> None:
    made = []
    for x0, x1, y0, y1, label in objects:
        if x0 != x1 and y0 != y1:
            x, y, w, h = (x0 + x1) / 2, (y0 + y1) / 2, abs(x1 - x0), abs(y1 - y0)
            made.append((label, *(round(value, 6) for value in (x, y, w, h))))
    with tempfile.TemporaryDirectory() as temporary:
        (row,) = rows(Path(temporary), "".join(" ".join(map(str, line)) + "\n" for line in made))
    expected = [(x - w / 2, y - h / 2, x + w / 2, y + h / 2) for _, x, y, w, h in made]
    assert len(boxes(row)) == len(expected)  # although a rounded edge may be beyond the image
    np.testing.assert_allclose(np.reshape(boxes(row), (-1, 4)), np.reshape(expected, (-1, 4)), atol=2e-6)


def test_polygons(tmp_path: Path) -> None:
    text = "0 0.25 0.5 0.75 0.5 0.5 0.75\n1 0.5 0.5 0.5 0.5\n"
    (row,) = rows(tmp_path, text, masks="json")
    assert boxes(row) == [(0.25, 0.5, 0.75, 0.75), (0.25, 0.25, 0.75, 0.75)]
    polygons = [[[10, 10, 30, 10, 20, 15]], [[10, 5, 30, 5, 30, 15, 10, 15]]]
    assert list(map(json.loads, row["image/object/segmentation"])) == polygons
    (row,) = rows(tmp_path, text, masks="png")
    mask = np.asarray(Image.open(io.BytesIO(row["image/object/mask"][1])))
    assert mask.sum() == 200
    assert mask[5:15, 10:30].all()
    assert "image/object/segmentation" not in rows(tmp_path, text)[0]


def test_key_points(tmp_path: Path) -> None:
    folder = write(tmp_path, {"a": "1 0.5 0.5 0.5 0.5 0.25 0.5 2 0 0 0\n"}, f"kpt_shape: [2, 3]\n{DATA}")
    (row,) = tfr.formats.open_yolo(folder).read_all().to_pylist()
    assert row["image/object/keypoint/x"] == [0.25, 0.0]
    assert row["image/object/keypoint/y"] == [0.5, 0.0]
    assert row["image/object/keypoint/visibility"] == [2, 0]
    assert row["image/object/keypoint/num"] == [1]
    folder = write(tmp_path, {"a": "1 0.5 0.5 0.5 0.5 0.25 0.5 0 0\n"}, f"kpt_shape: [2, 2]\n{DATA}")
    (row,) = tfr.formats.open_yolo(folder).read_all().to_pylist()
    assert row["image/object/keypoint/visibility"] == [2, 0]


def test_data_yaml_is_read_where_class_names_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, {"a": "1 0.5 0.5 0.5 0.5 0.25 0.5 0 0\n"}, f"kpt_shape: [2, 2]\n{DATA}")
    (row,) = tfr.formats.open_yolo(folder, class_names=["a", "b"]).read_all().to_pylist()
    assert boxes(row) == [(0.25, 0.25, 0.75, 0.75)]
    monkeypatch.setitem(sys.modules, "yaml", None)  # without it, key points would be the corners of a polygon
    with pytest.raises(
        tfr.errors.MissingDependencyError,
        match=r"data\.yaml needs yaml, which cannot .*; pip install 'tfrecord_io\[yolo\]'",
    ):
        tfr.formats.open_yolo(folder, class_names=["a", "b"])


@pytest.mark.parametrize("images", ["images/train", "train/images"])
def test_image_sets(tmp_path: Path, images: str) -> None:
    write(tmp_path, {"a": "0 .5 .5 1 1"}, images=images)
    write(tmp_path, {"b": "0 .5 .5 1 1", "c": ""}, images=images.replace("train", "valid"))
    (tmp_path / "data.yaml").write_text(f"train: ../{images}\nval: {images.replace('train', 'valid')}\nnames: [cat]\n")
    for path in (tmp_path, tmp_path / "data.yaml"):
        table = tfr.formats.open_yolo(path, image_set="val").read_all()
        assert table["image/filename"].to_pylist() == ["b.jpg", "c.jpg"]
        assert tfr.formats.open_yolo(path, image_set="train").read_all()["image/object/class/label"].to_pylist() == [
            [1]
        ]
    named = tfr.formats.open_yolo(tmp_path, image_set="valid", class_names=["x"]).read_all()
    assert named["image/object/class/text"].to_pylist() == [["x"], []]
    with pytest.raises(FileNotFoundError, match="no such image set"):
        tfr.formats.open_yolo(tmp_path, image_set="test")


def test_a_list_of_images(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"train/a": "0 .5 .5 1 1", "b": "1 .5 .5 1 1", "c": ""},
        f"val: val.txt\n{DATA}".replace("val: images\n", ""),
    )
    (tmp_path / "val.txt").write_text("./images/b.jpg\nimages/train/a.jpg\n")
    table = tfr.formats.open_yolo(tmp_path, image_set="val").read_all()
    assert table["image/object/class/label"].to_pylist() == [[2], [1]]
    assert table["image/filename"].to_pylist() == ["images/b.jpg", "images/train/a.jpg"]  # names that can be written
    (tmp_path / "val.txt").write_text("../b.jpg\n")
    with pytest.raises(tfr.errors.DecodeError, match="does not stay below the folder"):
        tfr.formats.open_yolo(tmp_path, image_set="val")


def test_names_of_classes(tmp_path: Path) -> None:
    text = "1 .5 .5 1 1"
    for data in (
        "names: [no, 'ö: #']",
        'names:\n- no\n- "ö: #"',
        "names: {1: 'ö: #', 0: no}",
        "names: &a [no, 'ö: #']",
    ):
        (row,) = tfr.formats.open_yolo(write(tmp_path, {"a": text}, data)).read_all().to_pylist()
        assert row["image/object/class/text"] == ["ö: #"]
    (tmp_path / "data.yaml").unlink()
    with pytest.raises(FileNotFoundError, match="class_names="):
        tfr.formats.open_yolo(tmp_path)
    for end in ("", "\n", "\n\n", "\r\n \r\n"):
        (tmp_path / "classes.txt").write_text(f"no\nyes{end}")
        (row,) = tfr.formats.open_yolo(tmp_path).read_all().to_pylist()
        assert row["image/object/class/text"] == ["yes"]
    (tmp_path / "classes.txt").write_text("no\n\nyes\n\n")
    with pytest.raises(tfr.errors.DecodeError, match=r"classes\.txt: line 2 is empty"):
        tfr.formats.open_yolo(tmp_path)


@pytest.mark.fault(54)
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("2 .5 .5 1 1", "'2' is not one of the 2 classes"),
        ("-1 .5 .5 1 1", "'-1' is not one"),
        ("0.5 .5 .5 1 1", "'0.5' is not one"),
        ("0", "it has 1 numbers"),
        ("0 .5 .5 1", "it has 4 numbers"),
        ("0 .5 .5 1 1 0.9", "it has 6 numbers"),
        ("0 .5 .5 1 1 0.9 1 1", "it has 8 numbers"),
        ("0 .5 .5 1 nan", "'nan' is not a number"),
        ("0 .5 .5 1 1_0", "'1_0' is not a number"),
        ("0 .5 .5 1 1e999", "'1e999' is not a number"),
        ("0 .5 .5 1 " + "1" * 50, "is not a number"),
        ("dog .5 .5 1 1", "'dog' is not a number"),
        ("\0", "is not a number"),
    ],
)
def test_what_is_no_label_is_an_error_that_names_it(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(tfr.errors.DecodeError) as caught:
        rows(tmp_path, f"0 .5 .5 1 1\n{line}\n")
    assert "line 2: " in str(caught.value)
    assert reason in str(caught.value)
    assert caught.value.path == str(tmp_path / "labels" / "a.txt")


@pytest.mark.fault(54)
@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("[", "not valid YAML"),
        ("- a", "not a mapping"),
        ("", "not a mapping"),
        ("names: 3", "'names' are not"),
        ("names: {0: a, 2: b}", "lack that of a class"),
        ("names: [[a]]", "lack that of a class"),
        ("names: {a: 1}", "'names' are not"),
        ("a: &a [*a]", "not valid YAML"),
        ("[" * 5000, "not valid YAML"),
        ("names: [a]\nkpt_shape: [0, 3]", "'kpt_shape'"),
        ("names: [a]\nkpt_shape: [17, 4]", "'kpt_shape'"),
        ("names: [a]\nkpt_shape: x", "'kpt_shape'"),
        ("\x00", "not valid YAML"),
        ("a: " + "x" * (1 << 20), "more than 1,048,576 bytes"),
    ],
)
def test_what_is_no_data_yaml_is_an_error(tmp_path: Path, data: str, reason: str) -> None:
    folder = write(tmp_path, {"a": "0 .5 .5 1 1"}, data)
    with pytest.raises(tfr.errors.DecodeError, match=reason) as caught:
        tfr.formats.open_yolo(folder)
    assert caught.value.path == str(tmp_path / "data.yaml")


def test_entities_that_expand_are_not_expanded(tmp_path: Path) -> None:
    levels = "\n".join(f"x{n}: &x{n} [{','.join([f'*x{n - 1}'] * 9)}]" for n in range(1, 30))
    folder = write(tmp_path, {"a": "0 .5 .5 1 1"}, f"x0: &x0 [x]\n{levels}\nnames: *x29\n")
    with pytest.raises(tfr.errors.DecodeError, match="lack that of a class"):
        tfr.formats.open_yolo(folder)


def test_nothing_leads_out_of_the_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "data", {"a": "0 .5 .5 1 1"})
    for place in ("/etc", "../../x", "a/../../x", "s3://bucket/x"):
        (folder / "data.yaml").write_text(f"train: {place}\nnames: [a]\n")
        with pytest.raises(tfr.errors.DecodeError, match="does not stay below the folder"):
            tfr.formats.open_yolo(folder, image_set="train")
    for name in ("../x", "a/b", "/etc", ".."):
        with pytest.raises(ValueError, match="expected the name of a set"):
            tfr.formats.open_yolo(folder, image_set=name)
    (tmp_path / "secret.txt").write_text("0 .5 .5 1 1")
    (folder / "labels" / "a.txt").unlink()
    (folder / "labels" / "a.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(tfr.errors.DecodeError, match="a link leads out"):
        tfr.formats.open_yolo(folder, class_names=["a"])
    (folder / "labels" / "a.txt").unlink()
    (folder / "labels" / "a.txt").write_text("")
    (tmp_path / "secret.jpg").write_bytes(jpeg())
    (folder / "images" / "b.jpg").symlink_to(tmp_path / "secret.jpg")
    with pytest.raises(tfr.errors.DecodeError, match="a link leads out"):
        tfr.formats.open_yolo(folder, class_names=["a"])


def test_images_and_labels_in_other_places(tmp_path: Path) -> None:
    write(tmp_path, {"b/a": "\ufeff1 .5 .5 1 1"})
    beside = (tmp_path / "images").rename(tmp_path / "photos")
    for path in (tmp_path, tmp_path / "labels"):  # in the folder `labels`, or in that of the labels itself
        (row,) = tfr.formats.open_yolo(path, beside, class_names=["a", "b"]).read_all().to_pylist()
        assert (row["image/filename"], row["image/object/class/text"]) == ("b/a.jpg", ["b"])
    (beside / "b" / "a.txt").write_text("0 .5 .5 1 1")
    (row,) = tfr.formats.open_yolo(beside, class_names=["a"]).read_all().to_pylist()  # side by side
    assert row["image/object/class/text"] == ["a"]
    with pytest.raises(FileNotFoundError, match="no such folder"):
        tfr.formats.open_yolo(tmp_path, tmp_path / "none", class_names=["a"])
    with pytest.raises(FileNotFoundError, match=r"has no \.jpg"):
        tfr.formats.open_yolo(tmp_path / "labels", class_names=["a"])


@pytest.mark.parametrize("train", ["../train", "train/images"])
def test_labels_next_to_the_folders_of_images(tmp_path: Path, train: str) -> None:
    """The layout of Roboflow's exports, with ``data.yaml`` as it comes and corrected."""
    for number, part in enumerate(("train", "valid")):
        write(tmp_path, {part: f"{number} .5 .5 1 1"}, images=f"{part}/images")
    (tmp_path / "data.yaml").write_text(f"train: {train}\nval: ../valid/images\nnames: [a, b]\n")
    read = tfr.formats.open_yolo(tmp_path).read_all()
    assert read["image/filename"].to_pylist() == ["train/images/train.jpg", "valid/images/valid.jpg"]
    assert read["image/object/class/label"].to_pylist() == [[1], [2]]
    assert tfr.formats.open_yolo(tmp_path, image_set="train").read_all()["image/object/class/label"].to_pylist() == [
        [1]
    ]
    (row,) = tfr.formats.open_yolo(tmp_path, tmp_path / "valid" / "images").read_all().to_pylist()
    assert (row["image/filename"], row["image/object/class/label"]) == ("valid.jpg", [2])
    names = {"class_names": ["a", "b"]}
    with pytest.raises(FileNotFoundError, match=r"none of its 1 images has labels, the first in '.*valid.txt'; pass"):
        tfr.formats.open_yolo(tmp_path / "valid" / "images", **names)
    write(tmp_path / "sets", {"x": "1 .5 .5 1 1"}, None, "images/train")
    (row,) = tfr.formats.open_yolo(tmp_path / "sets", tmp_path / "sets/images/train", **names).read_all().to_pylist()
    assert row["image/object/class/label"] == [2]


def test_files_that_are_no_images_are_named(tmp_path: Path) -> None:
    folder = write(tmp_path, {"a": "0 .5 .5 1 1", "b": "1 .5 .5 1 1"})
    (folder / "images" / "b.jpg").rename(folder / "images" / "b.jfif")
    (folder / "images" / "train.cache").write_bytes(b"")
    assert tfr.formats.open_yolo(folder).read_all()["image/filename"].to_pylist() == ["a.jpg", "b.jfif"]
    (folder / "images" / "c.ppm").write_bytes(b"P6")
    with pytest.warns(UserWarning, match=r"not an image, left out: 'c\.ppm'"):
        tfr.formats.open_yolo(folder)


def test_boxes_beyond_the_image(tmp_path: Path) -> None:
    text = "0 .5 .5 1.000009 1\n0 .9 .5 .5 .5\n"
    with pytest.warns(UserWarning, match="1 of 2 boxes left out, .* the first: the box of object 2"):
        assert boxes(rows(tmp_path, text)[0]) == [(0, 0, 1, 1)]
    (row,) = rows(tmp_path, text, invalid_boxes="clip")
    np.testing.assert_allclose(boxes(row)[1], (0.65, 0.25, 1, 0.75), rtol=1e-6)
    with pytest.raises(tfr.errors.DecodeError, match="object 2"):
        rows(tmp_path, text, invalid_boxes="raise")


def test_convert_finds_the_layout_and_reads_a_bucket(tmp_path: Path, bucket: Bucket) -> None:
    folder = write(tmp_path / "data", {"a": "0 .5 .5 1 1"})
    assert tfr.convert(folder, tmp_path / "a.tfrecord").records == 1
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.fs.pipe(bucket.url(f"data/{path.relative_to(folder)}"), path.read_bytes())
    stream = tfr.formats.open_yolo(bucket.url("data"), storage_options=bucket.storage_options)
    assert stream.read_all().equals(tfr.formats.open_yolo(folder).read_all())
