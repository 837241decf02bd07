"""Folders of tables: a target that ends in a slash, in every store, with partitions, shards, sizes and modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from servers import Bucket

FORMATS = ["parquet", "csv", "tsv", "jsonl", "arrow", "orc"]
TABLE = pa.table(
    {
        "n": pa.array(range(12), pa.int64()),
        "s": [f"t{n}" for n in range(12)],
        "day": ["a", "b/c", None] * 4,
        "k": pa.array([1, 1, 2, 2] * 3, pa.int64()),
    }
)
MODES = {"mode": "overwrite"}


@pytest.fixture
def records(tmp_path: Path) -> str:
    return tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord").path


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def read(folder: Any, tmp_path: Path, form: str, **storage: Any) -> list[dict[str, Any]]:
    """The rows of a folder, as they are converted back, in order of the first column."""
    options = {"storage_options": storage} if storage else {}
    tfr.convert(folder, tmp_path / "back.tfrecord", source_format=form, mode="overwrite", source_options=options)
    return sorted(tfr.read_table(tmp_path / "back.tfrecord").to_pylist(), key=lambda row: row["n"])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("target", ["out/", "out.{}/", "d/e/out/"])
def test_a_target_with_a_slash_is_a_folder(records: str, tmp_path: Path, form: str, target: str) -> None:
    target = target.format(form)
    report = tfr.convert(records, f"{tmp_path}/{target}", target_format=form)
    folder = tmp_path / target
    assert files(folder) == [f"part-0.{form}"]
    assert (report.records, report.path, report.columns) == (
        12,
        f"{tmp_path}/{target}".rstrip("/"),
        ("n", "s", "day", "k"),
    )
    assert [(file.path, file.records, file.bytes) for file in report.files] == [
        (f"{folder}/part-0.{form}", 12, (folder / f"part-0.{form}").stat().st_size)
    ]
    assert read(folder, tmp_path, form) == TABLE.to_pylist()
    with pytest.raises(FileExistsError, match="not empty"):
        tfr.convert(records, f"{tmp_path}/{target}", target_format=form)
    assert files(folder) == [f"part-0.{form}"]


def test_a_suffix_before_the_slash_and_a_directory_on_the_disk_need_no_format(records: str, tmp_path: Path) -> None:
    tfr.convert(records, f"{tmp_path}/out.parquet/")
    assert files(tmp_path / "out.parquet") == ["part-0.parquet"]
    (tmp_path / "made").mkdir()
    tfr.convert(records, tmp_path / "made", target_format="csv")
    assert files(tmp_path / "made") == ["part-0.csv"]


@pytest.mark.parametrize("form", FORMATS)
def test_partitions_are_read_by_pyarrow_and_by_convert(records: str, tmp_path: Path, form: str) -> None:
    options = {"partition_by": ["day", "k"]}
    report = tfr.convert(records, tmp_path / "out", target_format=form, target_options=options)
    assert report.records == 12
    assert sum(file.records for file in report.files) == 12
    assert "day=b%2Fc/k=1" in {path.rpartition("/")[0] for path in files(tmp_path / "out")}
    assert read(tmp_path / "out", tmp_path, form) == TABLE.to_pylist()
    if form in ("parquet", "arrow"):
        rows = ds.dataset(tmp_path / "out", format=form, partitioning="hive").to_table().sort_by("n")
        assert rows.select(TABLE.column_names).to_pylist() == TABLE.to_pylist()


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("shards", [1, 5, 12, 15])
def test_shards_have_the_rows_in_order(records: str, tmp_path: Path, form: str, shards: int) -> None:
    report = tfr.convert(records, tmp_path / "out", target_format=form, shards=shards)
    assert [file.records for file in report.files] == [(n + 1) * 12 // shards - n * 12 // shards for n in range(shards)]
    assert files(tmp_path / "out")[0] == f"part-00000-of-{shards:05d}.{form}"
    if shards < 15:  # a file of CSV or JSON lines without rows has no types
        assert read(tmp_path / "out", tmp_path, form) == TABLE.to_pylist()


@pytest.mark.parametrize("form", FORMATS)
def test_files_of_about_a_size(tmp_path: Path, form: str) -> None:
    tfr.write_tfrecord({"n": range(10_000), "x": np.zeros(10_000, np.float32)}, tmp_path / "b.tfrecord")
    options = {"max_file_bytes": 12_000}
    report = tfr.convert(tmp_path / "b.tfrecord", tmp_path / "out", target_format=form, target_options=options)
    assert len(report.files) == 10
    assert max(file.records for file in report.files) <= 1001
    assert [row["n"] for row in read(tmp_path / "out", tmp_path, form)] == [*range(10_000)]
    with pytest.raises(ValueError, match="pass only one of them"):
        tfr.convert(tmp_path / "b.tfrecord", tmp_path / "c", target_format=form, target_options=options, shards=2)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_modes(records: str, tmp_path: Path, form: str) -> None:
    def convert(mode: str, rows: pa.Table, **options: Any) -> None:
        tfr.write_tfrecord(rows, tmp_path / "b.tfrecord", mode="overwrite")
        tfr.convert(tmp_path / "b.tfrecord", f"{tmp_path}/out/", target_format=form, mode=mode, target_options=options)

    more = TABLE.set_column(0, "n", pa.array(range(100, 112), pa.int64()))
    convert("append", TABLE)
    convert("append", more)
    assert read(tmp_path / "out", tmp_path, form) == [*TABLE.to_pylist(), *more.to_pylist()]
    (tmp_path / "out" / "notes.txt").write_text("mine")
    convert("overwrite", more)
    assert read(tmp_path / "out", tmp_path, form) == more.to_pylist()
    assert (tmp_path / "out" / "notes.txt").exists()
    convert("overwrite", TABLE, partition_by=["k"])
    assert read(tmp_path / "out", tmp_path, form) == TABLE.select(["n", "s", "day", "k"]).to_pylist()
    convert("overwrite_partitions", more.filter(pa.compute.equal(more["k"], 1)), partition_by=["k"])
    kept = TABLE.filter(pa.compute.equal(TABLE["k"], 2)).to_pylist()
    assert read(tmp_path / "out", tmp_path, form) == [*kept, *more.filter(pa.compute.equal(more["k"], 1)).to_pylist()]


def test_rows_of_other_columns_are_not_appended(records: str, tmp_path: Path) -> None:
    tfr.convert(records, f"{tmp_path}/out.parquet/")
    tfr.write_tfrecord({"n": ["text"]}, tmp_path / "b.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="write to another folder"):
        tfr.convert(tmp_path / "b.tfrecord", f"{tmp_path}/out.parquet/", mode="append")
    assert files(tmp_path / "out.parquet") == ["part-0.parquet"]


@pytest.mark.parametrize("form", FORMATS)
def test_no_row_is_a_file_with_the_columns(records: str, tmp_path: Path, form: str) -> None:
    tfr.convert(records, f"{tmp_path}/out/", target_format=form, filters=[("n", "<", 0)])
    assert files(tmp_path / "out") == [f"part-0.{form}"]


def test_what_cannot_be_written_leaves_nothing(records: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1], "x": [b"\xff"], "v": [[1, 2]]}, tmp_path / "b.tfrecord")
    before = files(tmp_path)
    for options, form, error in (
        ({"partition_by": ["absent"]}, "parquet", tfr.errors.FeatureNotFoundError),
        ({"partition_by": ["v"]}, "parquet", tfr.errors.EncodeError),
        ({}, "csv", tfr.errors.EncodeError),
        ({"partition_by": ["n", "x", "v"]}, "parquet", tfr.errors.EncodeError),
        ({"partition_by": ["n"], "shards": 2}, "parquet", ValueError),
        ({"shards": 0}, "parquet", ValueError),
    ):
        with pytest.raises(error):
            tfr.convert(tmp_path / "b.tfrecord", f"{tmp_path}/out/", target_format=form, target_options=options)
        assert files(tmp_path) == before
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    with pytest.raises(TypeError, match="adds to a folder"):
        tfr.convert(records, tmp_path / "x.parquet", mode="append")
    with pytest.raises(OSError, match="a file, not a folder"):
        tfr.convert(records, f"{records}/", target_format="csv")


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
@pytest.mark.parametrize(
    ("values", "match"),
    [
        (pa.array(["a", None, "__HIVE_DEFAULT_PARTITION__"]), "that of missing values"),
        (pa.array([b"a", b"__HIVE_DEFAULT_PARTITION__"]), "that of missing values"),
        (pa.array(["a", "__HIVE_DEFAULT_PARTITION__"]).dictionary_encode(), "that of missing values"),
        (pa.array([b"a", b"\xff"]), "UTF-8, and holds no other bytes"),
    ],
    ids=["text", "bytes", "categories", "not UTF-8"],
)
def test_values_that_no_folder_states(tmp_path: Path, values: pa.Array, match: str, form: str) -> None:
    tfr.write_tfrecord(pa.table({"k": values, "n": range(len(values))}), tmp_path / "a.tfrecord")
    options = {"partition_by": ["k"]}
    with pytest.raises(tfr.errors.EncodeError, match=rf"'k': .*{match}; leave it out of partition_by="):
        tfr.convert(tmp_path / "a.tfrecord", f"{tmp_path}/out/", target_format=form, target_options=options)
    assert not (tmp_path / "out").exists()


@settings(max_examples=rounds(30), deadline=None)
@given(
    values=st.lists(st.one_of(st.none(), st.text(max_size=4)), min_size=1, max_size=6),
    form=st.sampled_from(["parquet", "jsonl"]),
)
def test_values_of_folders_come_back(tmp_path_factory: Any, values: list[str | None], form: str) -> None:
    """As far as a name may have them: pyarrow decides."""
    folder = tmp_path_factory.mktemp("values")
    rows = {"n": range(len(values)), "v": pa.array(values, pa.string())}
    tfr.write_tfrecord(rows, folder / "a.tfrecord")
    overrides = {"schema_overrides": {"v": "string"}} if form == "jsonl" else {}
    try:
        tfr.convert(folder / "a.tfrecord", f"{folder}/out/", target_format=form, target_options={"partition_by": "v"})
    except (tfr.errors.EncodeError, OSError):
        return
    schema = pa.schema({"n": pa.int64(), "v": pa.string()})
    tfr.convert(f"{folder}/out/", folder / "b.tfrecord", source_format=form, schema=schema, source_options=overrides)
    got = tfr.read_table(folder / "b.tfrecord").sort_by("n")["v"].to_pylist()
    assert got == values


@pytest.mark.parametrize("form", FORMATS)
def test_buckets(records: str, bucket: Bucket, tmp_path: Path, form: str) -> None:
    storage: dict[str, Any] = {"storage_options": bucket.storage_options}
    for name, options in {
        "a": {},
        "b": {"partition_by": ["k"]},
        "c": {"shards": 3},
        "d": {"max_file_bytes": 100},
    }.items():
        target = bucket.url(f"{name}/")
        report = tfr.convert(records, target, target_format=form, target_options={**storage, **options})
        assert all(file.path.startswith(target) and file.path.endswith(form) for file in report.files)
        assert read(target, tmp_path, form, **bucket.storage_options) == TABLE.to_pylist()
        with pytest.raises(FileExistsError):
            tfr.convert(records, target, target_format=form, target_options={**storage, **options})
        tfr.convert(records, target, target_format=form, mode="overwrite", target_options={**storage, **options})
        assert read(target, tmp_path, form, **bucket.storage_options) == TABLE.to_pylist()


def test_formats_of_one_file_are_not_written_to_a_slash(bucket: Bucket, records: str, tmp_path: Path) -> None:
    """In a bucket, too, where any name could be that of an object."""
    storage: dict[str, Any] = {"storage_options": bucket.storage_options}
    for form in ("npy", "npz", "hdf5", "netcdf", "tar", "array_record"):
        for target, options in ((bucket.url("out/"), storage), (f"{tmp_path}/out/", {})):
            with pytest.raises(IsADirectoryError, match="written as one file"):
                tfr.convert(records, target, target_format=form, target_options=options, columns=["n"])
