"""Tables in partition folders (``day=1/``): the columns of folders are as in reading TFRecord files there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv, feather, orc

import tfrecord_io as tfr
from reading import read_by
from rounds import rounds
from servers import Bucket
from transfers import convert_flat

FRAME = pd.DataFrame({"x": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]})


def write_lines(table: pa.Table, path: Path) -> None:
    table.to_pandas().to_json(path, orient="records", lines=True)


WRITERS: dict[str, Callable[[pa.Table, Path], object]] = {
    "parquet": lambda table, path: pq.write_table(table, path),
    "orc": lambda table, path: orc.write_table(table, str(path)),
    "arrow": lambda table, path: feather.write_feather(table, str(path)),
    "csv": lambda table, path: csv.write_csv(table, path),
    "tsv": lambda table, path: csv.write_csv(table, path, csv.WriteOptions(delimiter="\t")),
    "jsonl": write_lines,
    "csv.gz": lambda table, path: csv.write_csv(table, pa.CompressedOutputStream(str(path), "gzip")),
    "tar": lambda table, path: tfr.convert(_record_file(table, path), path),
}
FOLDERS = ["label=cat/year=2020", "label=big%20dog/year=2021", "label=__HIVE_DEFAULT_PARTITION__/year=-5", "."]


def _record_file(table: pa.Table, path: Path) -> str:
    columns = {"__key__": [f"k{n}" for n in table["x"].to_pylist()], "cls": table["x"], "txt": table["s"]}
    return tfr.write_tfrecord(columns, f"{path}.tfrecord").path


@pytest.fixture(params=WRITERS)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of tables, and next to it ``records``, one of TFRecord files with their rows."""
    for n, folder in enumerate(FOLDERS):
        table = pa.Table.from_pandas(FRAME[n : n + 1], preserve_index=False)
        for kind in ("records", "tables"):
            (tmp_path / kind / folder).mkdir(parents=True, exist_ok=True)
        path = tmp_path / "tables" / folder / f"part-{n}.{request.param}"
        WRITERS[request.param](table, path)
        if request.param == "tar":
            Path(f"{path}.tfrecord").unlink()
            table = pa.table({"__key__": [f"k{n + 1}"], "cls": table["x"], "txt": table["s"]})
        tfr.write_tfrecord(table, tmp_path / "records" / folder / f"part-{n}.tfrecord")
        (tmp_path / "tables" / folder / "_SUCCESS").touch()
    return tmp_path / "tables"


def converted(source: Any, **keywords: Any) -> pa.Table:
    with tempfile.TemporaryDirectory() as folder:
        convert_flat(source, f"{folder}/x.tfrecord", **keywords)
        return tfr.read_table(f"{folder}/x.tfrecord")


@pytest.mark.matrix
@pytest.mark.parametrize("form", ["{}", "{}/", "{}/**/part-*", "{}/*=*/*/part-*"])
def test_columns_of_folders_are_those_of_reading(root: Path, form: str) -> None:
    expected = tfr.read_table(form.format(root.parent / "records"))
    assert converted(form.format(root)).equals(expected)
    assert expected.column_names[-2:] == ["label", "year"]


@pytest.mark.matrix
@pytest.mark.parametrize(
    "keywords",
    [
        {"columns": ["year"]},
        {"columns": ["!year"]},
        {"columns": ["label", "*"]},
        {"columns": ["y*", "l*"]},
        {"filters": [("year", "==", 2021)]},
        {"filters": [("year", ">", 0)], "columns": ["label"]},
        {"schema_overrides": {"year": "string"}},
        {"schema_overrides": {"y*": "float32", "label": "binary"}},
    ],
    ids=str,
)
def test_keywords_apply_to_columns_of_folders(root: Path, keywords: dict[str, Any]) -> None:
    try:
        expected = read_by(tfr.read_table, root.parent / "records", **keywords)
    except tfr.errors.FeatureNotFoundError:  # of a glob in schema_overrides=, which has to match a feature too
        expected = tfr.read_table(
            tfr.dataset(root.parent / "records", schema_overrides={"year": "float32", "label": "binary"})
        )
        keywords = {"schema_overrides": {"year": "float32", "label": "binary"}}
    assert converted(root, **keywords).equals(expected)


def test_other_folders_are_left_out(root: Path) -> None:
    for name in ("_temporary", ".hidden", "notes"):
        (root / "label=cat" / name).mkdir()
        (root / "label=cat" / name / next(root.rglob("part-0*")).name).write_bytes(b"unfinished")
    assert converted(root).equals(tfr.read_table(root.parent / "records"))


def test_a_declared_schema_has_types_of_folders(root: Path) -> None:
    first = tfr.read_table(root.parent / "records").schema.field(0)
    name, schema = first.name, pa.schema({"year": pa.string(), first.name: first.type})
    with pytest.warns(tfr.errors.SchemaWarning, match="leaves out"):
        table = converted(root, schema=schema)
    assert table.equals(tfr.read_table(root.parent / "records", schema=schema).select(["year", name]))


def test_files_named_one_by_one_have_no_folders(root: Path) -> None:
    files = sorted(root.rglob("part-*"))
    assert not {"label", "year"} & {*converted(files).column_names}
    assert "label" not in converted(root / "label=cat").column_names
    assert "year" in converted(root / "label=cat").column_names


def test_conversion_goes_on_in_folders(root: Path, tmp_path: Path) -> None:
    report = tfr.convert(root, f"{tmp_path}/shards/", resume=True)
    assert len(report.files) == len(FOLDERS)
    assert tfr.read_table(tmp_path / "shards").equals(tfr.read_table(tmp_path / "records"))
    assert tfr.convert(root, f"{tmp_path}/shards/", resume=True).records == 4


@settings(max_examples=rounds(60))
@given(
    st.lists(st.none() | st.text("aé%/=_\x01 01", max_size=4) | st.integers(-3, 30).map(str), min_size=1, max_size=3),
    st.sampled_from(["parquet", "csv", "jsonl"]),
)
def test_values_are_read_by_the_same_rules(values: list[str | None], suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = pa.table({"x": [1, 2]})
        for value in values:
            name = f"k={'__HIVE_DEFAULT_PARTITION__' if value is None else quote(value, safe='')}"
            for kind in ("tables", "records"):
                Path(folder, kind, name).mkdir(parents=True, exist_ok=True)
            WRITERS[suffix](table, Path(folder, "tables", name, f"a.{suffix}"))
            tfr.write_tfrecord(table, Path(folder, "records", name, "a.tfrecord"))
        assert converted(f"{folder}/tables").equals(tfr.read_table(f"{folder}/records"))


def test_what_pandas_partitioned(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": range(6), "day": [1, 2] * 3, "name": ["a b", "c/d", "é"] * 2})
    frame.to_parquet(tmp_path / "pq", partition_cols=["day", "name"])
    table = converted(tmp_path / "pq").to_pandas().sort_values("x", ignore_index=True)
    pd.testing.assert_frame_equal(table, frame, check_dtype=False)
    frame.to_parquet(tmp_path / "x.parquet", partition_cols=["day"])  # a folder named like a file, as Spark writes
    assert converted(tmp_path / "x.parquet").sort_by("x")["day"].to_pylist() == [1, 2] * 3


def test_a_column_with_the_name_of_a_folder(tmp_path: Path) -> None:
    for suffix in ("parquet", "csv", "jsonl"):
        (tmp_path / suffix / "x=1").mkdir(parents=True)
        WRITERS[suffix](pa.table({"x": [1]}), tmp_path / suffix / "x=1" / f"a.{suffix}")
        with pytest.raises(
            tfr.errors.SchemaError, match=r"x=1/a\..*: feature 'x': a feature and the directory 'x=1' both"
        ):
            converted(tmp_path / suffix)


def test_types_that_folders_cannot_have(tmp_path: Path) -> None:
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "day=1" / "a.parquet")
    with pytest.raises(tfr.errors.SchemaError, match="'day=1' is not a value of the declared type date32"):
        converted(tmp_path, schema={"day": "date32", "x": "int64"})
    with pytest.raises(TypeError, match=r"schema_overrides.* declares 'x', but is only for columns of folders"):
        converted(tmp_path, schema_overrides={"x": "int8"})
    np.save(tmp_path / "a.npy", [1])
    with pytest.raises(TypeError, match=r"source_options= has 'schema_overrides', which \.npy does not have"):
        converted(tmp_path / "a.npy", schema_overrides={"x": "int8"})


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "arrow"])
def test_two_columns_of_one_name_are_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["a", "b", "a"])
    if suffix == "arrow":
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write(table)
    else:
        WRITERS[suffix](table, path)
    message = rf"a.{suffix}: feature 'a': 2 columns have this name; rename them in the file, or exclude them"
    for keywords in ({}, {"columns": ["a"]}, {"filters": [("b", "==", 2)]}, {"schema": {"a": "int64", "b": "int64"}}):
        with pytest.raises(tfr.errors.EncodeError, match=message):
            converted(path, **keywords)
    for keywords in ({"columns": ["b"]}, {"columns": ["!a"]}, {"columns": ["b"], "filters": [("b", "==", 2)]}):
        assert converted(path, **keywords).to_pydict() == {"b": [2]}  # the advice works


def test_columns_without_a_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,,\n1,2,3\n")
    with pytest.raises(tfr.errors.EncodeError, match="feature '': 2 columns have this name"):
        converted(tmp_path / "a.csv")


def test_folders_in_buckets(bucket: Bucket) -> None:
    keywords = {"storage_options": bucket.storage_options}
    for day in (1, 2):
        bucket.fs.pipe_file(bucket.url(f"d/day={day}/a.csv").removeprefix(f"{bucket.protocol}://"), b"x\n5\n")
    convert_flat(bucket.url("d"), bucket.url("out.tfrecord"), **keywords)
    assert read_by(tfr.read_table, bucket.url("out.tfrecord"), **keywords).to_pydict() == {"x": [5, 5], "day": [1, 2]}


def test_globs_leave_out_what_tools_write_and_names_with_a_dot(tmp_path: Path) -> None:
    tools = ["_SUCCESS", "_metadata", "_common_metadata", "_MANIFEST-a.json", "_RESUME-a.json", "_0-00000.staged"]
    for name in ["_a.csv", "a.csv", "_MANIFEST.csv", ".b.csv", *tools]:
        (tmp_path / name).write_text(f"x\n{name}\n" if name.endswith(".csv") else "")
    expected = {"*.csv": ["_a.csv", "a.csv"], "_*.csv": ["_a.csv"], "*": ["_a.csv", "a.csv"], ".*": [".b.csv"]}
    for pattern, names in {**expected, "": ["a.csv"]}.items():
        tfr.convert(tmp_path / pattern, tmp_path / "out.tfrecord", source_format="csv")
        assert tfr.read_table(tmp_path / "out.tfrecord")["x"].to_pylist() == names
        (tmp_path / "out.tfrecord").unlink()
