"""Images with Pascal VOC annotations: the features of create_pascal_tf_record.py, layouts, classes, what is refused."""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from pictures import jpeg
from servers import Bucket
from tfrecord_io.plugins.vision import annotated_images, pascal_voc

BOX = (10.0, 5.0, 30.0, 15.0)


def element(name: str, content: Any) -> str:
    return f"<{name}>{content}</{name}>"


def dog(name: str = "dog", box: tuple[float, ...] = BOX, more: str = "") -> str:
    corners = "".join(map(element, ("xmin", "ymin", "xmax", "ymax"), box))
    return element("object", element("name", escape(name)) + more + element("bndbox", corners))


def xml(*objects: str, filename: str = "a.jpg", size: str = "<width>40</width><height>20</height>") -> str:
    return element("annotation", element("filename", escape(filename)) + element("size", size) + "".join(objects))


def write(folder: Path, annotations: dict[str, str]) -> Path:
    """A folder in the layout of VOC, with an image for each annotation."""
    for name in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, content in annotations.items():
        (folder / "Annotations" / f"{name}.xml").write_text(content)
        (folder / "JPEGImages" / f"{name}.jpg").write_bytes(jpeg())
    return folder


def rows(folder: Path, *objects: str, **keywords: Any) -> list[dict[str, Any]]:
    return list(tfr.formats.open_voc(write(folder, {"a": xml(*objects)}), **keywords).read_all().to_pylist())


NAMES = st.sampled_from(["dog", "cat", "Türschild", "a & b"])
CORNERS = st.tuples(st.floats(0, 20, width=32), st.floats(0, 10, width=32), st.integers(21, 40), st.integers(11, 20))
FLAGS = st.tuples(st.integers(0, 1), st.integers(0, 1), st.sampled_from(["Left", "Unspecified"]))


@given(st.lists(st.tuples(NAMES, CORNERS, FLAGS)))
def test_features_equal_those_of_the_script(objects: list[tuple[Any, ...]]) -> None:
    """Computed as in create_pascal_tf_record.py, which has a label map; floats are rounded by protobuf."""
    labels = {name: number for number, name in enumerate(sorted({name for name, *_ in objects}), start=1)}
    texts = [
        dog(name, box, element("difficult", difficult) + element("truncated", truncated) + element("pose", pose))
        for name, box, (difficult, truncated, pose) in objects
    ]
    with tempfile.TemporaryDirectory() as temporary:
        folder = write(Path(temporary), {"a": xml(*texts)})
        tfr.write_tfrecord(tfr.formats.open_voc(folder), folder / "a.tfrecord")
        (row,) = tfr.read_table(folder / "a.tfrecord").to_pylist()
    corners = [np.array([box[at] / (40, 20)[at % 2] for _, box, _ in objects], "float32").tolist() for at in range(4)]
    assert row == {
        "image/height": 20,
        "image/width": 40,
        "image/filename": "a.jpg",
        "image/source_id": "a.jpg",
        "image/key/sha256": hashlib.sha256(jpeg()).hexdigest(),
        "image/encoded": jpeg(),
        "image/format": "jpeg",
        "image/object/bbox/xmin": corners[0],
        "image/object/bbox/ymin": corners[1],
        "image/object/bbox/xmax": corners[2],
        "image/object/bbox/ymax": corners[3],
        "image/object/class/text": [name for name, *_ in objects],
        "image/object/class/label": [labels[name] for name, *_ in objects],
        "image/object/difficult": [flags[0] for *_, flags in objects],
        "image/object/truncated": [flags[1] for *_, flags in objects],
        "image/object/view": [flags[2] for *_, flags in objects],
    }


def test_values_that_may_be_absent(tmp_path: Path) -> None:
    folder = write(tmp_path, {"a": xml(dog(more="<occluded>0</occluded>"), size="<width>0</width>")})
    (row,) = tfr.formats.open_voc(folder).read_all().to_pylist()
    assert row["image/object/occluded"] == [0]
    assert (row["image/height"], row["image/width"], row["image/object/bbox/xmin"]) == (20, 40, [0.25])
    assert [row[f"image/object/{name}"] for name in ("difficult", "truncated", "view")] == [[0], [0], ["Unspecified"]]


def test_parts_of_objects_are_no_objects(tmp_path: Path) -> None:
    part = element("part", element("name", "head") + element("bndbox", "<xmin>1</xmin>"))
    (row,) = rows(tmp_path, dog(more=part))
    assert row["image/object/class/text"] == ["dog"]


def test_a_folder_of_images_and_annotations(tmp_path: Path) -> None:
    for name in ("2", "10"):
        (tmp_path / f"{name}.xml").write_text(xml(dog(), filename=f"{name}.jpg"))
        (tmp_path / f"{name}.jpg").write_bytes(jpeg())
    assert tfr.formats.open_voc(tmp_path).read_all()["image/filename"].to_pylist() == ["2.jpg", "10.jpg"]
    (tmp_path / "elsewhere").mkdir()
    for name in ("2", "10"):
        (tmp_path / f"{name}.jpg").rename(tmp_path / "elsewhere" / f"{name}.jpg")
    assert tfr.formats.open_voc(tmp_path, tmp_path / "elsewhere").read_all().num_rows == 2
    with pytest.raises(FileNotFoundError, match="is images= the right folder"):
        tfr.formats.open_voc(tmp_path)


def sets(folder: Path) -> Path:
    names = {"1": "cat", "2": "dog", "3": "ape"}
    write(folder, {at: xml(dog(name), filename=f"{at}.jpg") for at, name in names.items()})
    (folder / "ImageSets/Main/train.txt").write_text("2\n\n1  -1\n", "utf-8-sig")  # as some editors write it
    return folder


def test_image_sets_have_the_labels_of_all_annotations(tmp_path: Path) -> None:
    table = tfr.formats.open_voc(sets(tmp_path), image_set="train").read_all()
    assert table["image/filename"].to_pylist() == ["2.jpg", "1.jpg"]
    assert table["image/object/class/label"].to_pylist() == [[3], [2]]
    (tmp_path / "Annotations/3.xml").write_text("<")
    table = tfr.formats.open_voc(tmp_path, image_set="train", class_names=["dog", "cat"]).read_all()
    assert table["image/object/class/label"].to_pylist() == [[1], [2]]  # 3.xml is not read


def test_image_sets_that_do_not_fit(tmp_path: Path) -> None:
    folder = sets(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such image set"):
        tfr.formats.open_voc(folder, image_set="val")
    for name in ("../../secret", "..", ""):
        with pytest.raises(ValueError, match="image_set="):
            tfr.formats.open_voc(folder, image_set=name)
    (folder / "ImageSets/Main/val.txt").write_text("1\n../4\n")
    with pytest.raises(tfr.errors.DecodeError, match=r"line 2: no annotation '\.\./4\.xml'"):
        tfr.formats.open_voc(folder, image_set="val")
    (folder / "ImageSets/Main/val.txt").write_text("\n")
    with pytest.raises(tfr.errors.DecodeError, match="the image set is empty"):
        tfr.formats.open_voc(folder, image_set="val")


def test_classes(tmp_path: Path) -> None:
    assert rows(tmp_path, dog(), class_names=["cat", "dog"])[0]["image/object/class/label"] == [2]
    with pytest.raises(tfr.errors.DecodeError, match="object 0: the class 'dog' is not among the given names"):
        rows(tmp_path, dog(), class_names=["cat"])
    with pytest.raises(ValueError, match="twice"):
        rows(tmp_path, dog(), class_names=["cat", "cat"])
    with pytest.raises(TypeError, match="a list of names"):
        rows(tmp_path, dog(), class_names="cat")


@pytest.mark.parametrize("box", [(30.0, 5.0, 10.0, 15.0), (5.0, 5.0, 41.0, 15.0), (5.0, 5.0, 5.0, 6.0)], ids=str)
def test_invalid_boxes(tmp_path: Path, box: tuple[float, ...]) -> None:
    with pytest.warns(UserWarning, match="1 of 2 boxes left out, .* the box of object 1 of image 'a.jpg'"):
        assert rows(tmp_path, dog(), dog(box=box))[0]["image/object/class/label"] == [1]
    assert rows(tmp_path, dog(), dog(box=box), invalid_boxes="keep")[0]["image/object/class/label"] == [1, 1]


LAUGHS = "<!DOCTYPE a [<!ENTITY x 'xxxxxxxxxx'><!ENTITY y '&x;&x;&x;&x;&x;'>]><annotation>&y;</annotation>"
EXTERNAL = "<!DOCTYPE a [<!ENTITY x SYSTEM 'file:///etc/passwd'>]><annotation>&x;</annotation>"


@pytest.mark.fault(54)
@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not well-formed XML: no element found"),
        ("<annotation>", "not well-formed"),
        ("<annotation>&x;</annotation>", "not well-formed XML: undefined entity"),
        ("<?xml version='1.0' encoding='none'?><annotation/>", "not"),
        ("\0", "not well-formed"),
        (LAUGHS, "it has a DOCTYPE"),
        (EXTERNAL, "it has a DOCTYPE"),
        ("<!DOCTYPE annotation SYSTEM 'http://127.0.0.1/x.dtd'><annotation/>", "it has a DOCTYPE"),
        ("<a>" * 100_000, "nested more than 64 levels deep"),
        ("<html/>", "the root element is 'html'"),
        ("<annotation/>", "the annotation has no 'filename'"),
        (xml(filename=""), "the annotation has no 'filename'"),
        (xml(filename="a.jpg</filename><filename>b.jpg").replace("&lt;", "<").replace("&gt;", ">"), "has 2 elements"),
        (xml(size="<width>x</width>"), "the size 'width' is 'x'"),
        (xml(size="<width>-3</width>"), "the size 'width' is -3"),
        (xml(size=f"<width>{10**30}</width>"), "the size 'width' is 1000"),
        (xml("<object><name>dog</name></object>"), "object 0 has no 'bndbox'"),
        (xml(dog(""), dog()), "object 0 has no 'name'"),
        (xml(dog(), dog(box=(1, 2, 3))), "object 1 has no 'ymax'"),
        (xml(dog(box=(1, 2, 3, float("nan")))), "object 0 'ymax' is 'nan'"),
        (xml(dog(box=(1, 2, 3, 1e300))), "object 0 'ymax' is '1e+300'"),
        (xml(dog(more="<difficult>maybe</difficult>")), "object 0 'difficult' is 'maybe'"),
        (xml(size="<width>1_0</width>"), "the size 'width' is '1_0'"),
        (xml(size="<width>٣</width>"), "the size 'width' is '٣'"),
        (xml(dog(box=("1_0", 2, 30, 40))), "object 0 'xmin' is '1_0'"),
        (xml(dog(box=("٣", 2, 30, 40))), "object 0 'xmin' is '٣'"),
        (xml(dog(box=("inf", 2, 30, 40))), "object 0 'xmin' is 'inf'"),
        (xml(dog(more="<difficult>١</difficult>")), "object 0 'difficult' is '١'"),
        (xml(dog(more="<truncated>2</truncated>")), "object 0 'truncated' is 2"),
    ],
)
def test_what_is_no_annotation_is_an_error_that_names_it(tmp_path: Path, content: str, reason: str) -> None:
    write(tmp_path, {"a": xml(dog()), "b": content})
    with pytest.raises(tfr.errors.DecodeError) as caught:
        tfr.formats.open_voc(tmp_path)
    assert reason in str(caught.value)
    assert caught.value.path == str(tmp_path / "Annotations" / "b.xml")


@given(st.binary(max_size=200) | st.text(alphabet="<>&!/?='\"annotationDOCTYPE[] ", max_size=200).map(str.encode))
def test_any_bytes_are_an_element_or_an_error(content: bytes) -> None:
    with suppress(tfr.errors.DecodeError):
        pascal_voc.parse_xml(content, "a.xml")


def test_large_annotations_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(annotated_images, "MOST_BYTES", 100)
    with pytest.raises(tfr.errors.DecodeError, match="annotations of"):
        rows(tmp_path, dog())


@pytest.mark.parametrize("name", ["../a.jpg", "/etc/passwd", "x/../../a.jpg", "file:///etc/passwd"])
def test_names_do_not_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"a": xml(dog(), filename=name)})
    with pytest.raises(tfr.errors.DecodeError, match="does not stay below the folder of images") as caught:
        tfr.formats.open_voc(tmp_path)
    assert caught.value.path == str(tmp_path / "Annotations" / "a.xml")


def test_two_annotations_of_one_image(tmp_path: Path) -> None:
    write(tmp_path, {"a": xml(dog()), "b": xml(dog())})
    with pytest.raises(tfr.errors.DecodeError, match=r"the image 'a\.jpg' is also that of '.*a\.xml'") as caught:
        tfr.formats.open_voc(tmp_path)
    assert caught.value.path == str(tmp_path / "Annotations" / "b.xml")


def test_folders_without_annotations(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"has \.xml files"):
        tfr.formats.open_voc(tmp_path)
    (tmp_path / "Annotations").mkdir()
    (tmp_path / "Annotations" / "._1.xml").write_text("")  # of macOS
    with pytest.raises(FileNotFoundError, match=r"has \.xml files"):
        tfr.formats.open_voc(tmp_path)
    with pytest.raises(FileNotFoundError, match="no such folder"):
        tfr.formats.open_voc(tmp_path / "none")


def test_buckets(bucket: Bucket) -> None:
    for at in range(3):
        content = xml(dog(), filename=f"{at}.jpg")
        bucket.fs.pipe(bucket.url(f"VOC/Annotations/{at}.xml"), content.encode())
        bucket.fs.pipe(bucket.url(f"VOC/JPEGImages/{at}.jpg"), jpeg())
    bucket.fs.pipe(bucket.url("VOC/ImageSets/Main/val.txt"), b"2\n")
    keywords = {"storage_options": bucket.storage_options}
    assert tfr.formats.open_voc(bucket.url("VOC"), **keywords).read_all().num_rows == 3
    assert tfr.formats.open_voc(bucket.url("VOC/"), image_set="val", **keywords).read_all().num_rows == 1


def test_suffixes_in_any_case_and_folders_of_annotations(tmp_path: Path) -> None:
    folder = write(tmp_path, {"1": xml(), "2": xml(filename="2.jpg")})
    (folder / "Annotations/2.xml").rename(folder / "Annotations/2.XML")
    (folder / "ImageSets/Main/val.txt").write_text("2\n")
    (folder / "JPEGImages/a.jpg").write_bytes(jpeg())
    for name in ("more", ".git"):
        (folder / "Annotations" / name).mkdir()
        (folder / "Annotations" / name / "3.xml").write_text(xml())
    for image_set, expected in ((None, ["a.jpg", "2.jpg"]), ("val", ["2.jpg"])):
        with pytest.warns(UserWarning, match=r": in a folder, left out: 'more/3\.xml'$"):
            table = tfr.formats.open_voc(folder, image_set=image_set).read_all()
        assert table["image/source_id"].to_pylist() == expected
