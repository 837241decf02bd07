"""Columns that get other names on the way from a source to a target of each format."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from sample_images import saved

COLUMNS = {
    "image/encoded": [b"a", b"b", b"c"],
    "image/label": [1, 2, 3],
    "lists": [[1.5], [2.5, 3.0], []],
    "array": np.arange(12, dtype="u1").reshape(3, 2, 2),
    "word": pa.array(["x", "y", "x"]).dictionary_encode(),
    "struct": [{"p": 1, "q": "a"}, {"p": 2, "q": "b"}, None],
}
NAMES = {"image/encoded": "jpg", "image/label": "cls", "lists": "l", "array": "a", "word": "w", "struct": "s/t"}


@pytest.fixture
def records(tmp_path: Path) -> Path:
    tfr.write_tfrecord(COLUMNS, tmp_path / "a.tfrecord")
    return tmp_path / "a.tfrecord"


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("filters", [None, 'word == "x"'])
@pytest.mark.parametrize("columns", [None, ["word", "array", "image/*"]])
def test_values_are_those_of_the_source(tmp_path: Path, embedded: bool, filters: str | None, columns: Any) -> None:
    source = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(COLUMNS, source, embed_schema=embedded)
    before = tfr.read_table(source, filters=filters, columns=columns)
    names = {name: NAMES[name] for name in before.column_names if name in NAMES}
    tfr.convert(source, tmp_path / "a.arrow", target_options={"rename": names}, filters=filters, columns=columns)
    after = pa.ipc.open_file(tmp_path / "a.arrow").read_all()
    assert after.column_names == [names.get(name, name) for name in before.column_names]
    assert after.to_pylist() == before.rename_columns(after.column_names).to_pylist()
    assert after.schema.types == before.schema.types


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("columns", [None, ["a"]])
def test_new_names_that_other_features_have(tmp_path: Path, embedded: bool, columns: Any) -> None:
    source = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"a": [1, 2], "b": [b"x", b"y"]}, source, embed_schema=embedded)
    names = {"a": "b", "b": "a"} if columns is None else {"a": "b"}
    tfr.convert(source, tmp_path / "a.jsonl", columns=columns, target_options={"rename": names})
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [row["b"] for row in rows] == [1, 2]
    assert [*rows[0]] == (["b", "a"] if columns is None else ["b"])


def test_to_each_kind_of_target(records: Path, tmp_path: Path) -> None:
    names = {"image/encoded": "jpg", "image/label": "cls"}
    tfr.convert(records, tmp_path / "a.tar", target_options={"rename": names}, columns="image/*")
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert archive.getnames()[:2] == ["00000000.jpg", "00000000.cls"]
    tfr.convert(
        records, tmp_path / "a.npz", target_options={"rename": {"array": "x"}}, columns=["array", "image/label"]
    )
    assert sorted(np.load(tmp_path / "a.npz")) == ["image/label", "x"]
    tfr.convert(
        records,
        tmp_path / "tables/",
        target_format="parquet",
        target_options={"rename": names},
        columns=[*names],
        shards=2,
    )
    assert pq.read_table(tmp_path / "tables").column_names == ["jpg", "cls"]
    tfr.convert(records, tmp_path / "b.tfrecord", target_options={"rename": NAMES})
    assert {*tfr.read_table(tmp_path / "b.tfrecord").column_names} == {*NAMES.values()}
    pytest.importorskip("h5py")
    tfr.convert(records, tmp_path / "a.h5", target_options={"rename": {"array": "images/left"}}, columns=["array"])
    tfr.convert(tmp_path / "a.h5", tmp_path / "c.tfrecord", target_options={"rename": {"images/left": "array"}})
    assert (tfr.read_arrays(tmp_path / "c.tfrecord")["array"] == COLUMNS["array"]).all()


def test_to_a_folder_of_images(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    png = saved(image.new("RGB", (2, 3), (7, 0, 0)))
    tfr.write_tfrecord({"picture": [png], "name": ["x.png"]}, tmp_path / "a.tfrecord")
    names = {"picture": "image/encoded", "name": "image/filename"}
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "images", files="images", target_options={"rename": names})
    assert (tmp_path / "images" / "x.png").read_bytes() == png


@pytest.mark.parametrize("resume", [False, True])
def test_from_tables(tmp_path: Path, resume: bool) -> None:
    pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]}).to_csv(tmp_path / "a.csv", index=False)
    options: dict[str, Any] = {"resume": resume, "target_options": {"rename": {"a": "n", "b": "a"}}}
    target = tmp_path / ("out@*" if resume else "out")
    tfr.convert(tmp_path / "a.csv", target, filters=[("a", ">", 1)], **options)
    assert tfr.read_table(target).to_pydict() == {"n": [2, 3], "a": ["y", "z"]}


def test_names_that_do_not_fit(records: Path, tmp_path: Path) -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"'image': no column has this name.*valid names: array"):
        tfr.convert(records, tmp_path / "a.jsonl", target_options={"rename": {"image": "x"}})
    with pytest.raises(tfr.errors.SchemaError, match="'word': two columns would have this name"):
        tfr.convert(records, tmp_path / "a.jsonl", target_options={"rename": {"array": "word"}})
    tfr.write_tfrecord({"x": [1], "day": [3]}, tmp_path / "days", partition_by="day")
    with pytest.raises(tfr.errors.SchemaError, match="a column of folders or paths keeps its name"):
        tfr.convert(tmp_path / "days", tmp_path / "a.jsonl", target_options={"rename": {"day": "d"}})
    with pytest.raises(
        tfr.errors.EncodeError, match=r"target_options=\{'rename': \{'image/encoded': 'jpg'\}\} gives it another name"
    ):
        tfr.convert(records, tmp_path / "a.tar", columns=["image/*"])


@pytest.mark.parametrize(
    "narrow",
    [
        lambda dataset: dataset.select(["image/label", "image/encoded"]),
        lambda dataset: dataset.filter('word == "x"').select(["image/label", "image/encoded"]),
        lambda dataset: tfr.dataset(dataset.files, schema={"image/label": "int8"}),
        lambda dataset: tfr.dataset(dataset.files, columns=["image/label", "image/encoded"], limit=2),
    ],
)
@pytest.mark.parametrize("target", ["a.jsonl", "a.parquet", "a.tar", "b.tfrecord"])
def test_a_dataset_keeps_its_columns_and_rows(records: Path, tmp_path: Path, narrow: Any, target: str) -> None:
    source = narrow(tfr.dataset(records))
    before = tfr.read_table(source)
    names = {name: NAMES[name] for name in before.column_names}
    report = tfr.convert(source, tmp_path / target, target_options={"rename": names})
    assert report.columns == tuple(names.get(name, name) for name in before.column_names)
    assert report.records == len(before)
