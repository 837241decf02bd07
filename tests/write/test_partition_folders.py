"""Rows in folders of their partition columns."""

from __future__ import annotations

import io
import os
import pickle
import re
import subprocess
import sys
import tempfile
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from rounds import COMPLETE, rounds
from servers import Bucket
from tfrecord_io.columns.arrow.input.batch_source import open_input
from tfrecord_io.store import clean
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.write.partition_folders import PartitionFolders

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20) | st.sampled_from(
    ["__HIVE_DEFAULT_PARTITION__", "1", "01", "a/b", "a=b", "%41", "..", " ", "", "a:b\\c", "é", "[x]*?{y}"]
)
COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "text": (pa.string(), TEXTS),
    "_odd name=%": (pa.string(), TEXTS),
    "small": (pa.int16(), st.integers(-5, 5)),
    "large": (pa.uint64(), st.integers(0, 2**63 - 1)),
    "flag": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates()),
    "time": (pa.timestamp("us", "UTC"), st.integers(0, 2**50)),
    "price": (pa.decimal128(9, 2), st.decimals(-999, 999, places=2)),
    "float": (pa.float64(), st.floats(allow_nan=False)),
}


def rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


@settings(max_examples=rounds(80))
@given(
    data=st.data(),
    columns=st.lists(st.sampled_from([*COLUMNS]), min_size=1, max_size=3, unique=True),
    count=st.integers(1, 12),
    batches=st.integers(1, 4),
)
def test_any_values_come_back(data: Any, columns: list[str], count: int, batches: int) -> None:
    arrays = {"id": pa.array(range(count))}
    for name in columns:
        type_, values = COLUMNS[name]
        drawn = data.draw(st.lists(st.none() | values, min_size=count, max_size=count))
        arrays[name] = pa.array(drawn, type_)
    table = pa.table(arrays)
    with tempfile.TemporaryDirectory() as folder:
        with tfr.open_writer(f"{folder}/d/", partition_by=columns, mode="append") as writer:
            for batch in table.to_batches(max_chunksize=-(-count // batches)):
                writer.write(batch)
        found = tfr.read_table(f"{folder}/d/")
        assert {field.name: field.type for field in found.schema} == {f.name: f.type for f in table.schema}
        assert rows(found) == rows(table)
        assert tfr.verify(f"{folder}/d").ok
        in_folder = [
            found.filter(pa.array([row == value for row in found[columns[0]].to_pylist()]))["id"].to_pylist()
            for value in set(found[columns[0]].to_pylist())
        ]
        assert all(ids == sorted(ids) for ids in in_folder) or len(columns) > 1, "in the order of the rows"


def unescaped_by_spark(text: str) -> str:
    """As ``ExternalCatalogUtils.unescapePathName``, which makes a character of each byte."""
    return re.sub("%([0-9a-fA-F]{2})", lambda match: chr(int(match[1], 16)), text)


@given(TEXTS)
def test_spark_and_pyarrow_read_the_folders(value: str) -> None:
    folder = ColumnFolder("k", value).name
    assert folder.count("=") == 1
    assert "/" not in folder
    assert unescaped_by_spark(folder.partition("=")[2]) == value
    hive = ds.partitioning(pa.schema([("k", pa.string())]), flavor="hive")
    if value not in ("", "__HIVE_DEFAULT_PARTITION__"):  # which pyarrow takes for null, also where it is escaped
        assert hive.parse(f"/{folder}/").equals(ds.field("k") == value)
    assert ColumnFolder("k", None).name == "k=__HIVE_DEFAULT_PARTITION__"


@pytest.mark.parametrize("type_", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())])
def test_texts_of_other_layouts_are_read_back_as_texts(type_: pa.DataType, tmp_path: Path) -> None:
    """Those of Polars, pandas and Daft."""
    table = pa.table({"id": [1, 2, 3], "day": pa.array(["a", None, "a"], pa.large_string()).cast(type_)})
    for mode in ("error", "append"):
        tfr.write_tfrecord(table, tmp_path, partition_by=["day"], mode=mode)
    found = tfr.read_table(tmp_path)
    assert found.schema.field("day").type == pa.string()
    assert sorted(found["id"].to_pylist()) == [1, 1, 2, 2, 3, 3]
    assert found["day"].null_count == 2


@given(
    keys=st.lists(st.integers(0, 4), min_size=1, max_size=40),
    cuts=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3)),
    data=st.data(),
)
def test_rows_have_their_folders_in_whatever_order_they_are_asked_for(
    keys: list[int], cuts: tuple[int, int, int], data: st.DataObject
) -> None:
    """Batches may be taken far ahead of the rows, and rows of several batches be encoded together."""
    batch_rows, piece_rows, first = cuts
    table = pa.table({"k": keys, "x": range(len(keys))})
    columns = PartitionFolders(["k"])
    source = open_input(iter(table.to_batches(max_chunksize=batch_rows)))
    for _ in range(2):  # data that could not be written is followed by other data
        source.batches = iter(table.to_batches(max_chunksize=batch_rows))
        rest = columns.split(source, first)
        batches = [*rest.batches]
    assert [row["x"] for batch in batches for row in batch.to_pylist()] == [*range(len(keys))]
    for begin in data.draw(st.permutations(range(0, len(keys), piece_rows))):
        wanted = keys[begin : begin + piece_rows]
        numbers = columns.take(first + begin, len(wanted))
        assert [columns.folders[number] for number in numbers] == [f"k={key}/" for key in wanted]
    assert columns._batches == []


DAYS = pa.table({"id": range(6), "day": ["1", "2", "1", "3", "2", "1"]})


def ids(path: Any, **keywords: Any) -> list[int]:
    return read_by(tfr.read_table, path, **keywords)["id"].to_pylist()


def test_modes(tmp_path: Path) -> None:
    target = f"{tmp_path}/d/"
    tfr.write_tfrecord(DAYS, target, partition_by=["day"])
    assert ids(target) == [0, 2, 5, 1, 4, 3]
    with pytest.raises(FileExistsError, match="mode='overwrite' replaces it"):
        tfr.write_tfrecord(DAYS, target, partition_by=["day"])
    changed = pa.table({"id": [10, 11], "day": ["2", "4"]})
    tfr.write_tfrecord(changed, target, partition_by=["day"], mode="overwrite_partitions")
    assert ids(target) == [0, 2, 5, 10, 3, 11]
    tfr.write_tfrecord(changed, target, partition_by=["day"], mode="append")
    assert ids(target) == [0, 2, 5, 10, 10, 3, 11, 11]
    assert ids(f"{target}day=2") == ids(f"{target}day=2/*") == [10, 10]
    assert ids(f"{target}day=[24]/*") == ids(target, filters=[("day", "in", ["2", "4"])]) == [10, 10, 11, 11]
    assert len(os.listdir(f"{target}day=2")) == 2, "the replaced shards are gone"
    tfr.write_tfrecord(changed, target, partition_by=["day"], mode="overwrite")
    assert ids(target) == [10, 11]


@pytest.mark.parametrize(("mode", "has_index"), [("overwrite", False), ("overwrite_partitions", True)])
def test_indexes_go_with_their_shards(mode: str, has_index: bool, tmp_path: Path) -> None:
    tfr.write_tfrecord(DAYS, tmp_path, partition_by=["day"])
    tfr.build_index(tmp_path, columns=["id"])
    before = {*tmp_path.glob("day=*/*")}
    kept = {path for path in before if has_index and path.parent.name != "day=1"}
    tfr.write_tfrecord(DAYS.slice(0, 1), tmp_path, partition_by=["day"], mode=mode)
    after = {*tmp_path.glob("day=*/*")}
    assert kept <= after
    (shard,) = {path for path in after - before if path.suffix == ".tfrecord"}
    indexes = {shard.with_name(f"{shard.name}.column_index")} if has_index else set()
    assert after == kept | {shard} | indexes, "those of the replaced shards are gone, a dataset with indexes keeps them"


@pytest.mark.parametrize("before", [{"shards": 3}, {"partition_by": ["day"]}])
@pytest.mark.parametrize("change", ['"complete": false', "{"])
def test_a_damaged_dataset_is_overwritten_with_folders(before: Any, change: str, tmp_path: Path) -> None:
    tfr.write_tfrecord(DAYS, tmp_path, **before)
    manifest = tmp_path / "_MANIFEST.json"
    manifest.write_text(manifest.read_text().replace('"complete": true', change))
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.write_tfrecord(DAYS, tmp_path, mode="append", partition_by=["day"])
    tfr.write_tfrecord(DAYS.slice(0, 2), tmp_path, mode="overwrite", partition_by=["day"])
    assert ids(tmp_path) == [0, 1]
    assert not [*tmp_path.glob("part-*")]
    clean(tmp_path, older_than=timedelta(0), remove=True)
    assert len([*tmp_path.glob("*/part-*")]) == 2, "the damaged manifest named the others"
    tfr.write_tfrecord(DAYS.slice(2, 1), tmp_path, mode="append", partition_by=["day"])
    assert ids(tmp_path) == [0, 2, 1]


def test_a_flat_dataset_is_overwritten_with_folders(tmp_path: Path) -> None:
    tfr.write_tfrecord(DAYS, tmp_path, shards=2)
    with pytest.raises(ValueError, match="the dataset is not partitioned; leave out partition_by="):
        tfr.write_tfrecord(DAYS, tmp_path, mode="append", partition_by=["day"])
    tfr.write_tfrecord(DAYS, tmp_path, mode="overwrite", partition_by=["day"])
    assert sorted(os.listdir(tmp_path)) == ["_MANIFEST.json", "day=1", "day=2", "day=3"]
    assert ids(tmp_path) == [0, 2, 5, 1, 4, 3]
    with pytest.raises(ValueError, match=r"is partitioned by \['day'\]"):
        tfr.write_tfrecord(DAYS, f"{tmp_path}/", mode="append")


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"partition_by": ["nope"]}, tfr.errors.FeatureNotFoundError, "the data does not have"),
        ({"partition_by": "nope"}, tfr.errors.FeatureNotFoundError, "the data does not have"),
        ({"partition_by": [1]}, TypeError, "expected one or several names"),
        ({"partition_by": ""}, TypeError, "expected one or several names"),
        ({"partition_by": ["day", "day"]}, ValueError, "named twice"),
        ({"partition_by": ["day"], "shards": 2}, ValueError, "without partition_by=; a folder has as many shards"),
        ({"mode": "overwrite_partitions"}, ValueError, "needs partition_by="),
    ],
)
def test_invalid_keywords(tmp_path: Path, keywords: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tfr.write_tfrecord(DAYS, f"{tmp_path}/d/", **keywords)
    assert os.listdir(tmp_path) == []


def test_a_column_of_nulls_needs_a_type(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "day": pa.nulls(2)})
    with pytest.raises(
        tfr.errors.EncodeError, match=r"feature 'day': a column of nothing but nulls has no type.*schema="
    ):
        tfr.write_tfrecord(table, f"{tmp_path}/d/", partition_by="day")
    schema = pa.schema({"id": pa.int64(), "day": pa.string()})
    tfr.write_tfrecord(table, f"{tmp_path}/d/", partition_by="day", schema=schema)
    assert tfr.read_table(tmp_path / "d")["day"].to_pylist() == [None, None]


def test_nulls_that_are_added_have_the_type_of_the_dataset(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "day": [7, None]})
    nulls = pa.table({"id": [3], "day": pa.nulls(1)})
    path = f"{tmp_path}/d/"
    tfr.write_tfrecord(table, path, partition_by="day")
    tfr.write_tfrecord(nulls, path, partition_by="day", mode="append")
    with tfr.open_writer(path, partition_by="day", mode="append") as writer:  # after other data, too
        writer.write(table.slice(0, 1))
        writer.write(nulls)
    with tfr.open_writer(f"{tmp_path}/new/", partition_by="day") as writer:
        writer.write(table.slice(0, 1))
        writer.write(nulls)
    assert tfr.verify(path).ok
    read = tfr.read_table(path)
    assert read.schema.field("day").type == pa.int64()
    assert sorted(read["day"].to_pylist(), key=str) == [7, 7, None, None, None]
    assert sorted(tfr.read_table(tmp_path / "new")["day"].to_pylist(), key=str) == [7, None]
    tfr.write_tfrecord(nulls, path, partition_by="day", mode="overwrite_partitions")
    assert sorted(tfr.read_table(path)["day"].to_pylist(), key=str) == [7, 7, None]
    with pytest.raises(tfr.errors.EncodeError, match="a column of nothing but nulls has no type"):
        tfr.write_tfrecord(nulls, path, partition_by="day", mode="overwrite")  # which has no types yet


def test_a_dataset_without_folders_does_not_replace_one_with_folders(tmp_path: Path) -> None:
    tfr.write_tfrecord(DAYS, f"{tmp_path}/d/", partition_by="day")
    with pytest.raises(FileExistsError, match=r"is partitioned by \[.day.\].* pass partition_by=\[.day.\]"):
        tfr.write_tfrecord(DAYS, f"{tmp_path}/d/", mode="overwrite")
    assert ids(tmp_path / "d") == [0, 2, 5, 1, 4, 3]


@pytest.mark.parametrize("name", ["visits@*", "visits@2", "visits.tfrecord", "visits.tfrecord.gz"])
def test_a_name_of_shards_or_a_file_is_no_directory(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="with partition_by= this is a directory"):
        tfr.write_tfrecord(DAYS, tmp_path / name, partition_by=["day"])
    with pytest.raises(TypeError, match="partition_by= writes to a directory, not to a BytesIO"):
        tfr.write_tfrecord(DAYS, io.BytesIO(), partition_by=["day"])
    assert os.listdir(tmp_path) == []


def test_a_directory_needs_no_slash(tmp_path: Path) -> None:
    tfr.write_tfrecord(DAYS, tmp_path / "new" / "visits", partition_by=["day"])
    assert ids(tmp_path / "new" / "visits") == [0, 2, 5, 1, 4, 3]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pa.array([float("nan")]), "does not hold the value nan exactly"),
        (pa.array([[1]]), "cannot name folders"),
        (pa.array(["x" * 300]), "longer than 255 bytes"),
    ],
)
def test_values_that_name_no_folder(tmp_path: Path, values: pa.Array, message: str) -> None:
    with pytest.raises(tfr.errors.EncodeError, match=message):
        tfr.write_tfrecord({"id": [1], "k": values}, f"{tmp_path}/d/", partition_by=["k"])
    assert os.listdir(tmp_path) == []


def test_shards_of_a_size_in_each_folder(tmp_path: Path) -> None:
    report = tfr.write_tfrecord(DAYS, f"{tmp_path}/d/", partition_by=["day"], max_shard_bytes=150, compression="gzip")
    assert len(report.files) > 3
    assert ids(f"{tmp_path}/d") == [0, 2, 5, 1, 4, 3]


def test_a_schema_and_convert(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,day\n1,2024-01-01\n2,2024-01-02\n")
    tfr.convert(tmp_path / "a.csv", f"{tmp_path}/d/", target_options={"partition_by": ["day"]})
    assert sorted(os.listdir(tmp_path / "d")) == ["_MANIFEST.json", "day=2024-01-01", "day=2024-01-02"]
    schema = {"id": "int32", "day": "string"}
    tfr.write_tfrecord(DAYS, f"{tmp_path}/e/", partition_by=["day"], schema=schema)
    assert tfr.read_table(tmp_path / "e").schema.types == [pa.int32(), pa.string()]


def test_in_a_bucket(bucket: Bucket) -> None:
    options = {"storage_options": bucket.storage_options, "partition_by": ["day"]}
    target = bucket.url("d/")
    tfr.write_tfrecord(DAYS, target, **options)
    tfr.write_tfrecord(DAYS.slice(0, 1), target, mode="overwrite_partitions", **options)
    assert ids(target, storage_options=bucket.storage_options) == [0, 1, 4, 3]
    assert len(bucket.names()) == 4


def test_a_write_that_fails_leaves_nothing(tmp_path: Path) -> None:
    target = f"{tmp_path}/d/"
    writer = tfr.open_writer(target, partition_by=["day"])
    writer.write(DAYS)
    with pytest.raises(tfr.errors.SchemaError):
        writer.write({"id": ["text"], "day": ["9"]})
    writer.discard()
    assert os.listdir(tmp_path) == []


LIMITED = """
import os, sys, threading, resource
import numpy as np, pyarrow as pa, tfrecord_io as tfr

def batches():
    rng = np.random.default_rng(7)
    for _ in range(20):
        keys = pa.array(rng.integers(0, int(sys.argv[2]), 20_000))
        yield pa.table({"key": keys, "blob": pa.array([bytes(80)] * 20_000), "copy": keys})

most, stop = [0], threading.Event()
def watch():
    while not stop.wait(0.005):
        most[0] = max(most[0], len(os.listdir("/proc/self/fd")))
thread = threading.Thread(target=watch)
thread.start()
before, rss = len(os.listdir("/proc/self/fd")), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
report = tfr.write_tfrecord(batches(), sys.argv[1], partition_by=["key"], threads=2)
stop.set()
thread.join()
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - rss
print(len(report.files), report.records, most[0] - before, used >> 10)
"""


def test_many_folders_take_bounded_memory_and_few_open_files(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    folders = 10_000 if COMPLETE else 1_000
    command = [sys.executable, "-c", LIMITED, f"{tmp_path}/d/", str(folders)]
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    files, records, opened, mebibytes = map(int, done.stdout.split())
    assert (files, records) == (folders, 400_000)
    assert opened <= 64
    assert mebibytes <= 256
    table = tfr.read_table(f"{tmp_path}/d/key=77")
    assert set(table["copy"].to_pylist()) == {77}


def _check_dataset_without_files(path: str, storage_options: Any) -> None:
    options: dict[str, Any] = {"partition_by": ["day"], "storage_options": storage_options}
    none = pa.table({"user": pa.array([], pa.int64()), "day": pa.array([], pa.string())})
    tfr.write_tfrecord(none, path, **options)
    dataset = tfr.dataset(path, storage_options=storage_options)
    assert dataset.to_table().equals(none)
    assert pickle.loads(pickle.dumps(dataset)).filter([("day", "==", "05-01")]).to_table().equals(none)
    assert tfr.count(dataset) == 0
    assert tfr.verify(dataset).ok
    assert len(tfr.open_random(dataset)) == 0
    assert tfr.build_index(dataset, columns=["user"]) == []
    with pytest.raises(FileNotFoundError, match="names no file"):
        tfr.salvage(dataset, path.replace("d/", "salvaged/"), storage_options=storage_options)
    tfr.write_tfrecord({"user": [1], "day": ["05-01"]}, path, mode="append", **options)
    assert dataset.refresh().to_table().to_pylist() == [{"user": 1, "day": "05-01"}]
    tfr.delete(path, filters=[("user", "==", 1)], storage_options=storage_options)
    assert dataset.refresh().to_table().equals(none)
    tfr.write_tfrecord({"user": [2], "day": ["05-02"]}, path, mode="append", **options)
    assert dataset.refresh().to_table().to_pylist() == [{"user": 2, "day": "05-02"}]


def test_a_dataset_without_files_is_a_table_without_rows(tmp_path: Path) -> None:
    _check_dataset_without_files(f"{tmp_path}/d/", None)


def test_a_dataset_without_files_in_a_bucket_is_a_table_without_rows(bucket: Bucket) -> None:
    _check_dataset_without_files(bucket.url("d/"), bucket.storage_options)


def test_partition_columns_of_any_layout(tmp_path: Path) -> None:
    views = pa.array(["a", None], pa.string_view())
    coded = pa.DictionaryArray.from_arrays(pa.array([0, None], pa.int8()), views[:1])
    ends = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), views)
    for number, column in enumerate((views, coded, ends)):
        path = f"{tmp_path}/{number}/"
        tfr.write_tfrecord(pa.table({"p": column, "x": [1, 2]}), path, partition_by="p")
        assert sorted(tfr.read_table(path).to_pylist(), key=str) == [{"x": 1, "p": "a"}, {"x": 2, "p": None}]


@settings(max_examples=rounds(60))
@given(
    rows=st.lists(st.tuples(st.sampled_from([1, 2, None]), st.sampled_from(["a", "b", "", None])), max_size=8),
    new=st.lists(st.sampled_from(["a", "c", None]), max_size=4),
    where=st.sampled_from([{"day": 1}, {"day": None}, {"day": 2, "c": "a"}, {"c": "a"}, {"day": 9}]),
)
def test_all_folders_of_a_value_are_replaced(rows: Any, new: Any, where: dict[str, Any]) -> None:
    """Also those that the data has no rows for."""
    with tempfile.TemporaryDirectory() as folder:
        types = pa.schema({"x": pa.int64(), "day": pa.int32(), "c": pa.string()})
        old = pa.Table.from_pylist([{"x": x, "day": day, "c": c} for x, (day, c) in enumerate(rows)], types)
        target = f"{folder}/d/"
        tfr.write_tfrecord(old, target, partition_by=["day", "c"], mode="append")
        added = [{"x": 100 + x, "day": where.get("day", 2), "c": where.get("c", c)} for x, c in enumerate(new)]
        options: dict[str, Any] = {"partition_by": ["day", "c"], "mode": "overwrite_partitions"}
        tfr.write_tfrecord(pa.Table.from_pylist(added, types), target, overwrite_where=where, **options)
        kept = [row for row in old.to_pylist() if any(row[name] != value for name, value in where.items())]
        expected = {tuple(row.values()) for row in (*kept, *added)}
        assert {(row["x"], row["day"], row["c"]) for row in tfr.read_table(target).to_pylist()} == expected
        assert tfr.verify(target).ok


def test_a_folder_without_rows_is_replaced_in_a_bucket(bucket: Bucket) -> None:
    options: dict[str, Any] = {"partition_by": ["day"], "storage_options": bucket.storage_options}
    rows = pa.table({"x": [1, 2], "day": [1, 2]})
    tfr.write_tfrecord(rows, bucket.url("d/"), **options)
    options |= {"mode": "overwrite_partitions", "overwrite_where": {"day": 1}}
    tfr.write_tfrecord(rows.slice(0, 0), bucket.url("d/"), **options)
    assert tfr.read_table(bucket.url("d/"), storage_options=bucket.storage_options)["x"].to_pylist() == [2]
    assert not [name for name in bucket.names() if "day=1" in name]


def test_a_time_of_pandas_states_its_own_folder(tmp_path: Path) -> None:
    times = pa.array([0, 1], pa.timestamp("ns"))
    tfr.write_tfrecord({"time": times, "x": [0, 1]}, tmp_path / "d/", partition_by="time")
    where = {"time": pd.Timestamp(1)}
    rows = pa.table({"time": times, "x": [0, 2]})
    for data, left in ((rows.slice(1), [0, 2]), (rows.slice(2), [0])):  # its row, and none
        options: dict[str, Any] = {"partition_by": "time", "mode": "overwrite_partitions", "overwrite_where": where}
        tfr.write_tfrecord(data, tmp_path / "d/", **options)
        assert tfr.read_table(tmp_path / "d/").sort_by("time")["x"].to_pylist() == left


@pytest.mark.parametrize("stated", [0.0, -0.0])
def test_zeros_of_both_signs_are_replaced_together(stated: float, tmp_path: Path) -> None:
    options: dict[str, Any] = {"partition_by": "k", "mode": "overwrite_partitions"}
    old = {"k": np.array([0.0, -0.0, 1.0], np.float32), "v": [1, 2, 3]}
    tfr.write_tfrecord(old, tmp_path / "d", **options)
    new = {"k": np.array([-0.0, 0.0, -0.0], np.float32), "v": [4, 5, 6]}
    tfr.write_tfrecord(new, tmp_path / "d", overwrite_where={"k": stated}, **options)
    read = tfr.read_table(tmp_path / "d").to_pydict()
    assert sorted(zip(map(str, read["k"]), read["v"], strict=True)) == [
        ("-0.0", 4),
        ("-0.0", 6),
        ("0.0", 5),
        ("1.0", 3),
    ]
    with pytest.raises(tfr.errors.EncodeError, match="the data has the value 1, "):
        tfr.write_tfrecord(old, tmp_path / "d", overwrite_where={"k": stated}, **options)


def test_what_overwrite_where_does_not_take(tmp_path: Path) -> None:
    rows = pa.table({"x": [1, 2], "day": [1, 2]})
    tfr.write_tfrecord(rows, tmp_path / "d", partition_by="day")
    options: dict[str, Any] = {"partition_by": "day", "mode": "overwrite_partitions"}
    for where, error, match in (
        ({"day": 1}, tfr.errors.EncodeError, "the data has the value 2, and the folders to replace are those of 1"),
        ({"day": "one"}, tfr.errors.EncodeError, "states 'one', but the column is int64"),
        ({"x": 1}, ValueError, r"expected values of columns of partition_by=\['day'\]"),
        ({}, ValueError, "expected values of columns"),
        (["day"], TypeError, "expected a dict"),
    ):
        with pytest.raises(error, match=match):
            tfr.write_tfrecord(rows, tmp_path / "d", overwrite_where=where, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pass that mode"):
        tfr.write_tfrecord(rows, tmp_path / "d", partition_by="day", mode="append", overwrite_where={"day": 1})
    assert tfr.read_table(tmp_path / "d").equals(rows)


NUMBERS = {
    "decimals": (pa.array([Decimal("1.50")]), pa.array([Decimal("1.5")])),
    "narrower floats": (pa.array([0.5, float(np.float32(0.1))]), pa.array([0.5, 0.1], pa.float32())),
    "integers": (pa.array([5]), pa.array([5], pa.int8())),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_rows_of_a_narrower_type_replace_those_of_their_values(case: str, tmp_path: Path) -> None:
    old, new = NUMBERS[case]
    tfr.write_tfrecord({"id": [1] * len(old), "p": old}, tmp_path / "d", partition_by="p")
    rows = {"id": [2] * len(new), "p": new}
    tfr.write_tfrecord(rows, tmp_path / "d", partition_by="p", mode="overwrite_partitions")
    read = tfr.read_table(tmp_path / "d").sort_by("p")
    assert read["id"].to_pylist() == [2] * len(new)
    assert sorted(read["p"].to_pylist()) == sorted(old.to_pylist())


@pytest.mark.parametrize("evolve", [False, True])
def test_folders_named_by_float32_are_not_read_as_float64(tmp_path: Path, evolve: bool) -> None:
    tfr.write_tfrecord({"id": [1], "p": pa.array([0.1], pa.float32())}, tmp_path / "d", partition_by="p")
    before = tfr.read_table(tmp_path / "d")
    rows = {"id": [2], "p": pa.array([0.1])}
    with pytest.raises(tfr.errors.SchemaError, match="float"):
        tfr.write_tfrecord(rows, tmp_path / "d", partition_by="p", mode="append", evolve=evolve)
    assert tfr.read_table(tmp_path / "d").equals(before)


@pytest.mark.parametrize("stated", [False, True], ids=["rows", "overwrite_where"])
@pytest.mark.parametrize(
    ("folders", "value"),
    [(["m=05", "m=5", "m=6"], 5), (["m=a b", "m=a%20b", "m=a%2fb"], "a b"), (["m=a%2fb", "m=a b"], "a/b")],
)
def test_folders_that_others_named_are_replaced_by_their_values(
    folders: list[str], value: Any, stated: bool, tmp_path: Path
) -> None:
    """Programs spell a value in several ways, such as with leading zeros, or with a space."""
    for at, folder in enumerate(folders):
        (tmp_path / folder).mkdir()
        tfr.write_tfrecord({"id": [at]}, tmp_path / folder / "part-0.tfrecord", embed_schema=False)
    tfr.adopt(tmp_path)
    before = tfr.read_table(tmp_path).to_pylist()
    new = pa.table({"id": [9], "m": pa.array([value])}).slice(int(stated))
    where = {"overwrite_where": {"m": value}} if stated else {}
    tfr.write_tfrecord(new, tmp_path, partition_by="m", mode="overwrite_partitions", **where)
    kept = [row for row in before if row["m"] != value]
    assert 0 < len(kept) < len(before)
    assert sorted(map(str, tfr.read_table(tmp_path).to_pylist())) == sorted(map(str, [*kept, *new.to_pylist()]))


ZONED = pa.array([datetime(2024, 5, 1), datetime(2024, 4, 30, 22)], pa.timestamp("us", "Europe/Berlin"))  # of UTC


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        (pa.array([date(2024, 5, 1)]), datetime(2024, 5, 1, 13), None),
        (pa.array([date(2024, 5, 1)]), datetime(2024, 5, 1), [0]),
        (pa.array([True, False]), 0.5, None),
        (pa.array(["1", "1.0"]), 1.0, None),
        (ZONED, date(2024, 5, 1), [1]),
        (ZONED, datetime(2024, 5, 1), None),
        (ZONED, datetime(2024, 5, 1, tzinfo=UTC), [0]),
    ],
)
def test_overwrite_where_means_what_a_filter_means(column: Any, value: Any, expected: Any, tmp_path: Path) -> None:
    path = tmp_path / "d"
    tfr.write_tfrecord({"id": range(len(column)), "p": column}, path, partition_by="p")
    nothing = tfr.read_table(path).slice(0, 0)
    keywords = {"partition_by": "p", "mode": "overwrite_partitions", "overwrite_where": {"p": value}}
    if expected is None:
        with pytest.raises(tfr.errors.EncodeError, match="overwrite_where"):
            tfr.write_tfrecord(nothing, path, **keywords)
        assert tfr.count(path) == len(column)
    else:
        found = tfr.delete(path, filters=[("p", "==", value)], dry_run=True).records
        tfr.write_tfrecord(nothing, path, **keywords)
        left = tfr.read_table(path)["id"].to_pylist()
        assert sorted({*range(len(column))} - {*left}) == expected
        assert found == len(expected)


def test_zeros_of_both_signs_have_folders_as_of_pyarrow(tmp_path: Path) -> None:
    """A filter, and what replaces folders, takes them for equal."""
    rows = pa.table({"k": pa.array([0.0, -0.0, 1.0]), "n": [1, 2, 3]})
    tfr.write_tfrecord(rows, tmp_path / "d", partition_by="k", mode="append")
    ds.write_dataset(rows, tmp_path / "p", format="parquet", partitioning=["k"], partitioning_flavor="hive")
    assert {path.name for path in (tmp_path / "d").glob("k=*")} == {path.name for path in (tmp_path / "p").iterdir()}
    for zero in (0.0, -0.0):
        found = tfr.read_table(tmp_path / "d", filters=[("k", "==", zero)])
        assert [str(k) for k in found["k"].to_pylist()] == ["0.0", "-0.0"]
    tfr.write_tfrecord({"k": [-0.0], "n": [4]}, tmp_path / "d", partition_by="k", mode="overwrite_partitions")
    assert sorted(tfr.read_table(tmp_path / "d")["n"].to_pylist()) == [3, 4]


@pytest.mark.parametrize("folders", [2, 7])
def test_many_rows_of_a_folder_keep_their_order(folders: int, tmp_path: Path) -> None:
    days = np.random.default_rng(folders).integers(0, folders, 2000)
    tfr.write_tfrecord({"x": np.arange(2000), "day": days}, tmp_path / "d", partition_by="day")
    for day in range(folders):
        assert tfr.read_table(tmp_path / f"d/day={day}")["x"].to_pylist() == np.flatnonzero(days == day).tolist()
