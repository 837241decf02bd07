"""Images with COCO annotations: the features of create_coco_tf_record.py, and what is refused."""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import tfrecord_io as tfr
from limited import set_limits
from pictures import jpeg
from servers import Bucket

Coco = dict[str, Any]


def annotation(id_: int = 1, **fields: Any) -> Coco:
    made = {"id": id_, "image_id": 7, "category_id": 18, "bbox": [10, 5, 20, 10], "area": 150.5, "iscrowd": 0}
    return made | fields


def coco(*annotations: Coco, **fields: Any) -> Coco:
    return {
        "info": {"year": 2017},
        "images": [{"id": 7, "file_name": "a.jpg", "width": 40, "height": 20, "license": 1}],
        "categories": [{"id": 18, "name": "dog", "supercategory": "animal"}, {"id": 1, "name": "person"}],
        "annotations": list(annotations),
    } | fields


def write(folder: Path, document: Any, *names: str) -> Path:
    (folder / "photos").mkdir(exist_ok=True)
    for name in names or ("a.jpg",):
        (folder / "photos" / name).write_bytes(jpeg())
    (folder / "instances.json").write_text(document if isinstance(document, str) else json.dumps(document))
    return folder / "instances.json"


def rows(folder: Path, document: Any, *names: str, **keywords: Any) -> list[dict[str, Any]]:
    stream = tfr.formats.open_coco(write(folder, document, *names), images=folder / "photos", **keywords)
    return list(stream.read_all().to_pylist())


def boxes(row: dict[str, Any]) -> list[tuple[float, ...]]:
    corners = (row[f"image/object/bbox/{name}"] for name in ("xmin", "ymin", "xmax", "ymax"))
    return list(zip(*corners, strict=True))


def of_the_script(document: Coco, folder: Path) -> list[dict[str, Any]]:
    """Compute the features as create_coco_tf_record.py does, in plain Python; protobuf rounds floats."""
    names = {category["id"]: category["name"] for category in document["categories"]}
    made = []
    for image in document["images"]:
        content = (folder / image["file_name"]).read_bytes()
        height, width = image["height"], image["width"]
        columns: dict[str, list[Any]] = {
            name: []
            for name in (
                "bbox/xmin bbox/xmax bbox/ymin bbox/ymax class/text class/label is_crowd area".split()  # all lists
            )
        }
        for of in document["annotations"]:
            x, y, w, h = of["bbox"]
            if of["image_id"] != image["id"] or w <= 0 or h <= 0 or x + w > width or y + h > height:
                continue
            values = [x / width, (x + w) / width, y / height, (y + h) / height]
            values += [names[of["category_id"]], of["category_id"], of["iscrowd"], of["area"]]
            for column, value in zip(columns.values(), values, strict=True):
                column.append(value)
        floats = {name: np.array(columns[name], "float32").tolist() for name in columns if name[:4] in ("bbox", "area")}
        made.append(
            {
                "image/height": height,
                "image/width": width,
                "image/filename": image["file_name"],
                "image/source_id": str(image["id"]),
                "image/key/sha256": hashlib.sha256(content).hexdigest(),
                "image/encoded": content,
                "image/format": "jpeg",
            }
            | {f"image/object/{name}": values for name, values in (columns | floats).items()}
        )
    return made


PARTS = st.one_of(st.integers(0, 50), st.floats(0, 50).map(lambda part: round(part, 3)))  # x + width is more than x


@given(st.lists(st.tuples(PARTS, PARTS, PARTS, PARTS, st.sampled_from([1, 18]), st.sampled_from([7, 9]))))
def test_features_equal_those_of_the_script(objects: list[tuple[Any, ...]]) -> None:
    images = [{"id": i, "file_name": name, "width": 40, "height": 20} for i, name in ((7, "a.jpg"), (9, "b.jpg"))]
    annotations = [
        annotation(at, bbox=box, area=at / 3, category_id=category, image_id=image, iscrowd=at % 2)
        for at, (*box, category, image) in enumerate(objects)
    ]
    document = coco(*annotations, images=images)
    with tempfile.TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # boxes that are left out
        folder = Path(temporary)
        stream = tfr.formats.open_coco(write(folder, document, "a.jpg", "b.jpg"), images=folder / "photos")
        tfr.write_tfrecord(stream, folder / "a.tfrecord")
        found, expected = tfr.read_table(folder / "a.tfrecord"), of_the_script(document, folder / "photos")
    assert found.select(list(expected[0])).to_pylist() == expected
    more = {"class/supercategory"} | ({"annotation_id"} if objects else set())  # which the script leaves out
    assert {*found.column_names} - {*expected[0]} == {f"image/object/{name}" for name in more}


@given(st.lists(st.tuples(st.integers(0, 39), st.integers(0, 19), st.integers(1, 40), st.integers(1, 20))))
def test_boxes_of_whole_pixels_come_back(objects: list[tuple[int, ...]]) -> None:
    inside = [(x, y, min(w, 40 - x), min(h, 20 - y)) for x, y, w, h in objects]
    document = coco(*(annotation(at, bbox=box) for at, box in enumerate(inside)))
    with tempfile.TemporaryDirectory() as temporary:
        (row,) = rows(Path(temporary), document)
    back = [tuple(round(value * size) for value, size in zip(box, (40, 20) * 2, strict=True)) for box in boxes(row)]
    assert [(x0, y0, x1 - x0, y1 - y0) for x0, y0, x1, y1 in back] == inside


def test_the_file_has_the_features_and_types_of_the_script(tmp_path: Path) -> None:
    tfr.write_tfrecord(tfr.formats.open_coco(write(tmp_path, coco(annotation())), tmp_path / "photos"), tmp_path / "a")
    (payload,) = tfr.RecordReader(tmp_path / "a")
    features = tfr.train.Example.FromString(payload).features.feature
    kinds = {name: feature.WhichOneof("kind") for name, feature in features.items()}
    bytes_, floats, ints = "bytes_list", "float_list", "int64_list"
    assert kinds == {
        "image/height": ints,
        "image/width": ints,
        "image/filename": bytes_,
        "image/source_id": bytes_,
        "image/key/sha256": bytes_,
        "image/encoded": bytes_,
        "image/format": bytes_,
        "image/object/bbox/xmin": floats,
        "image/object/bbox/xmax": floats,
        "image/object/bbox/ymin": floats,
        "image/object/bbox/ymax": floats,
        "image/object/class/text": bytes_,
        "image/object/class/label": ints,
        "image/object/is_crowd": ints,
        "image/object/area": floats,
        "image/object/annotation_id": ints,
        "image/object/class/supercategory": bytes_,
    }
    assert features["image/source_id"].bytes_list.value == [b"7"]


def test_an_image_without_objects_has_empty_lists(tmp_path: Path) -> None:
    (row,) = rows(tmp_path, coco())
    assert {name: value for name, value in row.items() if "object" in name} == {
        f"image/object/{name}": []
        for name in (
            "bbox/xmin bbox/xmax bbox/ymin bbox/ymax class/text class/label is_crowd area class/supercategory".split()
        )
    }


def test_values_that_may_be_absent(tmp_path: Path) -> None:
    image = {"id": "x7", "file_name": "a.jpg"}
    given = {"id": 1, "image_id": "x7", "category_id": 18, "bbox": [1, 2, 4, 5], "area": None}
    (row,) = rows(tmp_path, coco(given, images=[image]))
    assert (row["image/height"], row["image/width"], row["image/source_id"]) == (20, 40, "x7")
    assert (row["image/object/is_crowd"], row["image/object/area"]) == ([0], [20.0])


INVALID = [[5, 5, 0, 5], [5, 5, 5, -1], [35, 5, 6, 5], [5, 15, 5, 5.5], [-1, 5, 5, 5], [50, 5, 5, 5]]


@pytest.mark.parametrize("box", INVALID, ids=str)
def test_invalid_boxes(tmp_path: Path, box: list[float]) -> None:
    document = coco(annotation(1), annotation(2, bbox=box), annotation(3, category_id=1))
    with pytest.warns(UserWarning, match="1 of 3 boxes left out, .* the first: the box of annotation 2 of image '7'"):
        (row,) = rows(tmp_path, document)
    assert row["image/object/class/text"] == ["dog", "person"]
    with pytest.raises(
        tfr.errors.DecodeError, match="annotation 2 of image '7' is empty or beyond the image"
    ) as caught:
        rows(tmp_path, document, invalid_boxes="raise")
    assert caught.value.path == str(tmp_path / "instances.json")
    (row,) = rows(tmp_path, document, invalid_boxes="keep")
    x, y, w, h = box
    assert boxes(row)[1] == tuple(np.array([x / 40, y / 20, (x + w) / 40, (y + h) / 20], "float32").tolist())


def test_boxes_are_clipped_to_the_image(tmp_path: Path) -> None:
    document = coco(annotation(1, bbox=[-10, 5, 30, 30]), annotation(2, bbox=[50, 5, 5, 5]))
    with pytest.warns(UserWarning, match="1 of 2 boxes left out"):
        (row,) = rows(tmp_path, document, invalid_boxes="clip")
    assert boxes(row) == [(0.0, 0.25, 0.5, 1.0)]


def without(name: str) -> Coco:
    return {key: value for key, value in coco().items() if key != name}


@pytest.mark.fault(54)
@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ('{"images": [{"id": NaN}]}', "NaN is not a number"),
        ("[" * 100_000, "not valid JSON"),
        ("[1" + "0" * 5000 + "]", "not valid JSON"),
        ("\x1f\x8b", "not valid JSON"),
        ("[]", "no list 'images'"),
        (without("annotations"), "no list 'annotations'"),
        (without("categories") | {"categories": {}}, "no list 'categories'"),
        (coco(images=[]), "no images"),
        (coco(images=[3]), "image 0 has no valid 'id'"),
        (coco(images=[{"id": True, "file_name": "a.jpg"}]), "image 0 has no valid 'id'"),
        (coco(images=[{"id": 2**63, "file_name": "a.jpg"}]), "image 0 has no valid 'id'"),
        (coco(images=[{"id": "\ud800", "file_name": "a.jpg"}]), "image 0 has no valid 'id'"),
        (coco(images=[{"id": 1}]), "image 1 has no valid 'file_name'"),
        (coco(images=[{"id": 1, "file_name": "\ud800.jpg"}]), "image 1 has no valid 'file_name'"),
        (coco(images=[{"id": 1, "file_name": "a.jpg", "width": 0}]), "'width' is not a size"),
        (coco(images=[{"id": 1, "file_name": "a.jpg", "height": 2**70}]), "'height' is not a size"),
        (coco(images=coco()["images"] * 2), "two images have this id: 7"),
        (coco(categories=[{"id": 1, "name": "a"}] * 2), "two categories have this id: 1"),
        (coco(categories=[{"id": "1", "name": "a"}]), "the id is not an integer"),
        (coco(categories=[{"id": 1}]), "category 1 has no valid 'name'"),
        (coco(None), "annotation 0 has no valid 'image_id'"),  # type: ignore[arg-type]
        (coco(annotation(5, image_id=8)), "annotation 5: no image has the id 8"),
        (coco(annotation(5, image_id=[])), "annotation 5 has no valid 'image_id'"),
        (coco(annotation(5, category_id=2)), "annotation 5: no category has the id 2"),
        (coco(annotation(5, bbox=[])), "annotation 5: 'bbox' is not a box"),
        (coco(annotation(5, bbox=[1, 2, 3, "4"])), "annotation 5: 'bbox' is not a box"),
        (coco(annotation(5, bbox=[1, 2, 3, 10**400])), "annotation 5: 'bbox' is not a box"),
        (coco(annotation(5, bbox=[1, 2, 3, 1e300])), "annotation 5: 'bbox' is not a box"),
        (coco(annotation(5, bbox={"x": 1})), "annotation 5: 'bbox' is not a box"),
        (coco(annotation(5, area="x")), "annotation 5: 'area' is not one"),
        (coco(annotation(5, area=-1)), "annotation 5: 'area' is not one"),
        (coco(annotation(5, area=10**400)), "annotation 5: 'area' is not one"),
        (coco(annotation(5, iscrowd=2)), "annotation 5: 'iscrowd' is not a flag"),
    ],
)
def test_what_is_not_coco_is_an_error_that_names_it(tmp_path: Path, document: Any, reason: str) -> None:
    with pytest.raises(tfr.errors.DecodeError) as caught:
        rows(tmp_path, document)
    assert reason in str(caught.value)
    assert caught.value.path == str(tmp_path / "instances.json")


@pytest.mark.parametrize("name", ["../a.jpg", "/etc/passwd", "x/../../a.jpg", "file:///etc/passwd", "a\0.jpg", "link"])
def test_names_do_not_lead_out_of_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.jpg").write_bytes(jpeg())
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "link").symlink_to(tmp_path / "a.jpg")
    path = tmp_path / "instances.json"
    path.write_text(json.dumps(coco(images=[{"id": 1, "file_name": name}])))
    for on_error in ("raise", "skip"):
        with pytest.raises(tfr.errors.DecodeError, match="image '1' does not stay below the folder of images"):
            tfr.formats.open_coco(path, images=tmp_path / "photos", on_error=on_error)  # type: ignore[arg-type]


def test_names_of_files_have_no_parts_that_say_nothing(tmp_path: Path) -> None:
    document = coco(annotation(), images=[{"id": 7, "file_name": ".//./a.jpg"}])
    tfr.write_tfrecord(tfr.formats.open_coco(write(tmp_path, document), tmp_path / "photos"), tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["image/filename"].to_pylist() == ["a.jpg"]
    assert tfr.convert(tmp_path / "a.tfrecord", tmp_path / "again", target_format="coco").records == 1


def three(**sizes: int) -> Coco:
    images = [{"id": at, "file_name": f"{at}.jpg", "width": 40, "height": 20, **sizes} for at in range(3)]
    return coco(images=images)


def test_images_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"image '1' of .* does not exist; 2 of 3 images are missing.*skip"):
        rows(tmp_path, three(), "0.jpg")
    with pytest.warns(
        tfr.errors.DamagedDataWarning, match=r"2 of 3 images left out, the first: '.*1\.jpg' does not exist"
    ):
        assert [row["image/source_id"] for row in rows(tmp_path, three(), on_error="skip")] == ["0"]
    (tmp_path / "photos" / "0.jpg").unlink()
    with pytest.raises(FileNotFoundError, match="is images= the right folder"):
        rows(tmp_path, three(), on_error="skip")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        tfr.formats.open_coco(tmp_path / "instances.json", images=tmp_path / "none")
    with pytest.raises(NotADirectoryError):
        tfr.formats.open_coco(tmp_path / "instances.json", images=tmp_path / "instances.json")
    with pytest.raises(FileNotFoundError, match="expected a COCO file"):
        tfr.formats.open_coco(tmp_path / "none.json", images=tmp_path / "photos")
    with pytest.raises(IsADirectoryError):
        tfr.formats.open_coco(tmp_path, images=tmp_path / "photos")


def test_damaged_images_and_other_sizes(tmp_path: Path) -> None:
    path = write(tmp_path, three(), "0.jpg", "1.jpg", "2.jpg")
    photos = tmp_path / "photos"
    (photos / "1.jpg").write_bytes(jpeg()[:50])
    (photos / "2.jpg").write_bytes(jpeg(20, 40))
    stream = tfr.formats.open_coco(path, photos)
    with pytest.raises(tfr.errors.DecodeError, match="not an image") as caught:
        stream.read_all()
    assert caught.value.path == str(photos / "1.jpg")
    with pytest.warns(tfr.errors.DamagedDataWarning, match=r"2 of 3 images left out, the first: .*1\.jpg"):
        table = tfr.formats.open_coco(path, photos, on_error="skip").read_all()
    assert table["image/source_id"].to_pylist() == ["0"]
    (photos / "1.jpg").write_bytes(jpeg())
    with pytest.raises(tfr.errors.DecodeError, match=r"has 20×40 pixels, but .* states 40×20 for image '2'"):
        tfr.formats.open_coco(path, photos).read_all()
    assert tfr.formats.open_coco(path, photos, check_sizes=False).read_all()["image/width"].to_pylist() == [40, 40, 40]


def test_annotations_of_images_that_are_not_in_the_file(tmp_path: Path) -> None:
    document = coco(annotation(1), annotation(2, image_id=8), annotation(3, image_id=9))
    with pytest.warns(
        tfr.errors.DamagedDataWarning, match="2 of 3 annotations left out, the first: annotation 2: no image"
    ):
        (row,) = rows(tmp_path, document, on_error="skip")
    assert row["image/object/class/label"] == [18]


def test_order_and_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{at}.jpg" for at in (3, 1, 2, 0, 4)]
    document = coco(images=[{"id": at, "file_name": name} for at, name in enumerate(names)])
    assert [row["image/filename"] for row in rows(tmp_path, document, *names)] == names
    path = tmp_path / "instances.json"
    orders = [
        tfr.formats.open_coco(path, tmp_path / "photos", shuffle_seed=seed, threads=threads)
        .read_all()["image/filename"]
        .to_pylist()
        for seed, threads in ((1, 1), (1, 3), (2, 1))
    ]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == sorted(names)
    set_limits(monkeypatch, file_batch_bytes=2 * len(jpeg()))
    assert [batch.num_rows for batch in tfr.formats.open_coco(path, tmp_path / "photos")] == [2, 2, 1]


def test_other_formats_of_images(tmp_path: Path) -> None:
    path = write(tmp_path, coco(annotation()))
    (tmp_path / "photos" / "a.jpg").write_bytes(jpeg(form="png"))
    assert tfr.formats.open_coco(path, tmp_path / "photos").read_all()["image/format"].to_pylist() == ["png"]


def test_keywords_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path, coco())
    for keywords in ({"invalid_boxes": "cut"}, {"on_error": "stop"}, {"threads": 0}, {"shuffle_seed": -1}):
        with pytest.raises(ValueError, match=next(iter(keywords))):
            tfr.formats.open_coco(path, tmp_path / "photos", **keywords)  # type: ignore[arg-type]


def test_buckets(bucket: Bucket) -> None:
    for at in range(3):
        bucket.fs.pipe(bucket.url(f"photos/{at}.jpg"), jpeg())
    bucket.fs.pipe(bucket.url("instances.json"), json.dumps(three()).encode())
    keywords = {"storage_options": bucket.storage_options}
    stream = tfr.formats.open_coco(bucket.url("instances.json"), bucket.url("photos"), **keywords)
    assert stream.read_all()["image/source_id"].to_pylist() == ["0", "1", "2"]
    bucket.fs.rm(bucket.url("photos/1.jpg"))
    with pytest.raises(FileNotFoundError, match="image '1' of"):
        tfr.formats.open_coco(bucket.url("instances.json"), bucket.url("photos"), **keywords)


# ---- masks and key points

POLYGON = [[10, 5, 30, 5, 30, 15, 10, 15]]
RLE = {"size": [20, 40], "counts": [0, 400, 400]}
NAMED = [{"id": 18, "name": "dog", "keypoints": ["nose", "tail"]}, {"id": 1, "name": "person"}]


def test_masks_are_text_or_images(tmp_path: Path) -> None:
    shapes = (POLYGON, RLE, [], None)
    document = coco(*(annotation(at, segmentation=shape) for at, shape in enumerate(shapes)))
    (row,) = rows(tmp_path, document, masks="json")
    assert [json.loads(text) for text in row["image/object/segmentation"]] == [POLYGON, RLE, [], []]
    (row,) = rows(tmp_path, document, masks="png")
    masks = [np.asarray(Image.open(io.BytesIO(png))) for png in row["image/object/mask"]]
    assert [mask.sum() for mask in masks] == [200, 400, 0, 0]
    assert {(mask.shape, str(mask.dtype)) for mask in masks} == {((20, 40), "uint8")}
    assert "image/object/mask" not in rows(tmp_path, document)[0]
    with pytest.raises(ValueError, match="masks="):
        rows(tmp_path, document, masks="rle")


def test_key_points_are_those_of_the_script(tmp_path: Path) -> None:
    """create_coco_tf_record.py: fractions in one list for all objects, and how many of an object are labelled."""
    points = [10, 5, 2, 0, 0, 0]
    document = coco(annotation(1, keypoints=points, num_keypoints=1), annotation(2, category_id=1), categories=NAMED)
    (row,) = rows(tmp_path, document)
    assert row["image/object/keypoint/x"] == [0.25, 0.0, 0.0, 0.0]
    assert row["image/object/keypoint/y"] == [0.25, 0.0, 0.0, 0.0]
    assert row["image/object/keypoint/visibility"] == [2, 0, 0, 0]
    assert row["image/object/keypoint/num"] == [1, 0]
    assert row["image/object/keypoint/text"] == ["nose", "tail", "", ""]
    assert "image/object/keypoint/x" not in rows(tmp_path, coco(annotation(1)))[0]


@pytest.mark.fault(54)
@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (coco(annotation(5, segmentation=[[1, 2]])), "annotation 5: 'segmentation' is not one"),
        (coco(annotation(5, segmentation=RLE | {"counts": [1]})), "do not add up"),
        (coco(annotation(5, segmentation={"size": [40, 20], "counts": [800]})), "that of the image"),
        (coco(annotation(5, keypoints=[1, 2])), "annotation 5: 'keypoints' are not points"),
        (coco(annotation(5, keypoints=[1, 2, 3])), "annotation 5: 'keypoints' are not points"),
        (coco(annotation(5, keypoints=[1, "2", 1])), "annotation 5: 'keypoints' are not points"),
        (coco(annotation(5, keypoints=[1, 2, 1], num_keypoints=2)), "'num_keypoints' is not a number of them"),
        (coco(annotation(5, keypoints=[1, 2, 1] * 1001)), "of at most 1000 points"),
        (coco(annotation(5, keypoints=[1, 2, 1]), categories=NAMED), "has 1 points, its category 2 names"),
        (coco(annotation(5), categories=[{"id": 18, "name": "a", "keypoints": [3]}]), "'keypoints' are not names"),
    ],
)
def test_what_is_no_mask_and_no_key_point_is_an_error(tmp_path: Path, document: Any, reason: str) -> None:
    with pytest.raises(tfr.errors.DecodeError) as caught:
        rows(tmp_path, document, masks="png")
    assert reason in str(caught.value)
    assert caught.value.path == str(tmp_path / "instances.json")


def test_images_whose_masks_cannot_be_drawn_are_left_out(tmp_path: Path) -> None:
    document = coco(annotation(1, segmentation={"size": [40, 20], "counts": [800]}), annotation(2))
    document["images"].append({"id": 9, "file_name": "b.jpg"})
    with pytest.warns(tfr.errors.DamagedDataWarning, match="1 of 2 images left out, the first: .* a mask of image '7'"):
        assert [
            row["image/source_id"] for row in rows(tmp_path, document, "a.jpg", "b.jpg", masks="json", on_error="skip")
        ] == ["9"]


def test_what_only_some_annotations_state(tmp_path: Path) -> None:
    """Lists of a feature have no missing values: columns are of what all annotations have, the rest is named."""
    some = [annotation(1, score=0.5, track_id=3), {**annotation(2), "id": None}]
    document = coco(
        *some, images=[{"id": 7, "file_name": "a.jpg", "width": 40, "height": 20, "depth": 8, "license": 1}]
    )
    document["categories"][1] |= {"keypoints": ["nose"], "skeleton": [[1, 2]]}
    with pytest.warns(UserWarning, match="left out, as no column holds it") as caught:
        (row,) = rows(tmp_path, document)
    named = ["depth of images", "skeleton of categories", "track_id of annotations", "id of annotations, which not"]
    assert all(name in str(caught[0].message) for name in [*named, "score of annotations, which not all"])
    assert not {name for name in row if name.endswith(("score", "annotation_id", "attributes"))}
    assert row["image/object/class/supercategory"] == ["animal", "animal"]
