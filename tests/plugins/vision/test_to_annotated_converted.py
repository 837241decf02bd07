"""`convert` and ``tfr convert`` from COCO and Pascal VOC: what `open_coco` and `open_voc` read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from PIL import Image

import tfrecord_io as tfr
from servers import Bucket
from tfrecord_io.apps.cli import tfr as command
from transfers import convert_flat

BOXES = {1: [(8, 6, 16, 12), (0, 0, 4, 24)], 2: [(4, 0, 8, 24)], 3: [(20, 10, 30, 10)]}  # the last is beyond its image
LEFT_OUT = pytest.mark.filterwarnings("ignore:.*boxes left out")


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(command, ["convert", *map(str, arguments)])


def xml(number: int) -> str:
    text = f"<filename>{number}.jpg</filename><size><width>32</width><height>24</height></size>"
    for x, y, width, height in BOXES[number]:
        corners = {"xmin": x, "ymin": y, "xmax": x + width, "ymax": y + height}
        box = "".join(f"<{name}>{value}</{name}>" for name, value in corners.items())
        text += f"<object><name>dog</name><bndbox>{box}</bndbox></object>"
    return f"<annotation>{text}</annotation>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images with boxes, annotated in both forms: ``instances.json`` and ``photos/``, ``voc/``."""
    for name in ("photos", "voc/Annotations", "voc/ImageSets/Main"):
        (tmp_path / name).mkdir(parents=True)
    annotations = []
    for number, boxes in BOXES.items():
        Image.new("RGB", (32, 24), (number, 0, 0)).save(tmp_path / f"photos/{number}.jpg")
        (tmp_path / f"voc/Annotations/{number}.xml").write_text(xml(number))
        annotations += [{"image_id": number, "category_id": 18, "bbox": box} for box in boxes]
    shutil.copytree(tmp_path / "photos", tmp_path / "voc/JPEGImages")
    (tmp_path / "voc/ImageSets/Main/val.txt").write_text("3\n1\n")
    images = [{"id": i, "file_name": f"{i}.jpg", "width": 32, "height": 24} for i in BOXES]
    coco = {"images": images, "categories": [{"id": 18, "name": "dog"}], "annotations": annotations}
    (tmp_path / "instances.json").write_text(json.dumps(coco))
    return tmp_path


@LEFT_OUT
def test_coco(folder: Path) -> None:
    """With shards, compression, columns and a filter, by the function and the command."""
    source, images, target = folder / "instances.json", folder / "photos", folder / "a.tfrecord"
    expected = tfr.formats.open_coco(source, images=images).read_all()
    report = tfr.convert(source, target, source_format="coco", source_options={"images": images})
    assert (report.records, report.columns) == (3, tuple(expected.column_names))
    assert tfr.read_table(target).to_pylist() == expected.to_pylist()
    shown = run(
        source, folder / "out@2.tfrecord", "--from", "coco", "--images", images, "--compression", "gzip", "--json"
    )
    assert (shown.exit_code, json.loads(shown.stdout)["records"]) == (0, 3)
    assert (folder / "out-00001-of-00002.tfrecord.gz").read_bytes().startswith(b"\x1f\x8b")
    assert tfr.read_table(folder / "out@2.tfrecord").to_pylist() == expected.to_pylist()
    columns = ["image/source_id", "image/object/bbox/*"]
    few = {
        "source_format": "coco",
        "images": images,
        "columns": columns,
        "filters": [("image/filename", "!=", "2.jpg")],
    }
    assert convert_flat(source, target, **few).records == 2  # type: ignore[arg-type]
    assert tfr.read_table(target).column_names == expected.select(tfr.read_table(target).column_names).column_names
    assert tfr.read_table(target)["image/source_id"].to_pylist() == ["1", "3"]


@LEFT_OUT
def test_pascal_voc(folder: Path) -> None:
    """A folder in its layout is recognised; ``--from voc`` is for others."""
    expected = tfr.formats.open_voc(folder / "voc").read_all()
    apart = [folder / "voc/Annotations", folder / "b.tfrecord", "--from", "voc", "--images", folder / "photos"]
    assert run(*apart).exit_code == 0
    for source, target in ((folder / "voc", "a.tfrecord"), (f"{folder}/voc/", "c.tfrecord")):
        assert tfr.convert(source, folder / target).records == 3
    for target in ("a.tfrecord", "b.tfrecord", "c.tfrecord"):
        assert tfr.read_table(folder / target).to_pylist() == expected.to_pylist()
    shown = run(folder / "voc", folder / "d.tfrecord", "--image-set", "val", "--class-names", "cat,dog")
    assert shown.exit_code == 0
    rows = tfr.read_table(folder / "d.tfrecord").to_pylist()
    assert [(row["image/filename"], row["image/object/class/label"]) for row in rows] == [
        ("3.jpg", []),
        ("1.jpg", [2, 2]),
    ]


@LEFT_OUT
def test_a_folder_with_that_layout_can_still_be_read_as_images(folder: Path) -> None:
    tfr.convert(folder / "voc", folder / "a.tfrecord", files="images")
    assert tfr.read_table(folder / "a.tfrecord")["label/text"].to_pylist() == ["JPEGImages"] * 3


@pytest.mark.parametrize("form", ["coco", "voc"])
def test_boxes_sizes_order_and_damage(folder: Path, form: str) -> None:
    source = folder / ("instances.json" if form == "coco" else "voc/Annotations")
    target, options = folder / "a.tfrecord", ["--from", form, "--images", folder / "photos"]

    def rows() -> list[dict[str, Any]]:
        return list(tfr.read_table(target).to_pylist())

    assert "1 of 4 boxes left out" in run(source, target, *options).output
    assert run(source, target, *options, "--invalid-boxes", "clip").exit_code == 0
    assert rows()[2]["image/object/bbox/xmax"] == [1.0]
    shown = run(source, target, *options, "--invalid-boxes", "raise")
    assert shown.exit_code == 1
    assert "beyond" in shown.output
    orders = set()
    for seed in range(4):
        assert run(source, target, *options, "--shuffle-seed", seed).exit_code == 0
        orders.add(tuple(row["image/filename"] for row in rows()))
    assert len(orders) > 1
    Image.new("RGB", (64, 48)).save(folder / "photos/1.jpg")
    shown = run(source, target, *options)
    assert shown.exit_code == 1
    assert "--on-error skip leaves it out; --no-check-sizes uses the stated size" in shown.output
    assert run(source, target, *options, "--no-check-sizes").exit_code == 0
    assert rows()[0]["image/width"] == 32
    shown = run(source, target, *options, "--on-error", "skip")
    assert (shown.exit_code, len(rows())) == (0, 2)
    assert "1 of 3 images left out" in shown.output


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("instances.json", [], "looks like a COCO file; --from coco with --images reads its boxes; --from json reads"),
        ("instances.json", ["--from", "coco"], "COCO needs --images, the folder"),
        (
            "instances.json",
            ["--images", "photos"],
            "COCO, Pascal VOC and YOLO files, and 'instances.json' is JSON, 'out.tfrecord' is TFRecord; --from or --to",
        ),
        (
            "photos",
            ["--images", "photos"],
            "--images is only for COCO, Pascal VOC and YOLO files, and 'photos' is a folder",
        ),
        (
            "a.tfrecord",
            ["--image-set", "val"],
            "--image-set is only for Pascal VOC and YOLO sources and Pascal VOC targets",
        ),
        ("a.tfrecord", ["--invalid-boxes", "clip"], "--invalid-boxes is only for COCO, Pascal VOC and YOLO sources"),
        ("a.tfrecord", ["--no-check-sizes"], "--check-sizes is only for COCO, Pascal VOC and YOLO files"),
        ("instances.json", ["--from", "coco", "--images", "photos", "--image-set", "val"], "'instances.json' is COCO"),
        ("instances.json", ["--from", "coco", "--images", "photos", "--class-names", "a"], "'instances.json' is COCO"),
        ("voc", ["--files", "images", "--from", "voc"], "--files is for folders, and 'voc' is Pascal VOC"),
        ("voc", ["--image-set", "test"], "no such image set"),
        ("voc", ["--on-error", "stop"], "--on-error stop: expected one of 'raise', 'skip'"),
        ("voc", ["--class-names", "cat"], "the class 'dog' is not among the given names; add it to --class-names"),
        ("photos", ["--from", "voc"], "has .xml files"),
        ("voc", ["--from", "coco", "--images", "photos"], "expected a COCO file"),
        ("instances.json", ["--from", "coco", "--images", "voc"], "is --images the right folder?"),
        pytest.param(
            "voc",
            ["--record-type", "bytes", "--sample", "3"],
            "only for TFRecord, ArrayRecord and TFDS sources, and 'voc' is Pascal VOC",
            marks=pytest.mark.plugins("tensorflow"),
        ),
    ],
)
def test_wrong_combinations(
    folder: Path, monkeypatch: pytest.MonkeyPatch, source: str, options: list[str], message: str
) -> None:
    monkeypatch.chdir(folder)
    tfr.write_tfrecord({"x": [1]}, "a.tfrecord")
    shown = run(source, "out.tfrecord", *options)
    assert shown.exit_code in (1, 2)
    assert message in " ".join(shown.output.split())
    assert not Path("out.tfrecord").exists()


def test_another_target_than_tfrecord(folder: Path) -> None:
    shown = run(folder / "voc", folder / "out.parquet")
    assert shown.exit_code == 2
    assert "Pascal VOC to Parquet: source or target must be TFRecord" in shown.output


@LEFT_OUT
def test_buckets(folder: Path, bucket: Bucket) -> None:
    for file in [*folder.rglob("*.jpg"), *folder.rglob("*.xml"), folder / "instances.json"]:
        bucket.fs.pipe(bucket.url(str(file.relative_to(folder))), file.read_bytes())
    options = [f"--source-option={name}={json.dumps(value)}" for name, value in bucket.storage_options.items()]
    assert run(bucket.url("voc"), folder / "a.tfrecord", *options).exit_code == 0
    coco = ["--from", "coco", "--images", bucket.url("photos")]
    assert run(bucket.url("instances.json"), folder / "b.tfrecord", *coco, *options).exit_code == 0
    name = "image/encoded"
    assert tfr.read_table(folder / "a.tfrecord")[name] == tfr.read_table(folder / "b.tfrecord")[name]
