"""Adopt: a tree of another tool becomes a dataset, whose rows are those of before."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from folder_trees import content
from rounds import rounds
from servers import Bucket
from tfrecord_io.apps.cli import tfr as group


def spark_name(number: int, compression: str | None) -> str:
    suffix = {None: "", "gzip": ".gz", "zstd": ".zst"}[compression]
    return f"part-{number:05d}-{uuid.UUID(int=number)}-c000.tfrecord{suffix}"


def spark_tree(
    root: Path, folders: dict[str, list[pa.Table]], compression: str | None = "gzip", **keywords: Any
) -> None:
    """Make the files that spark-tfrecord leaves: folders, parts with ids, files of tools."""
    number = 0
    for folder, tables in folders.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for table in tables:
            path = root / folder / spark_name(number, compression)
            tfr.write_tfrecord(table, path, **{"embed_schema": False, **keywords})
            number += 1
    (root / "_SUCCESS").touch()
    (root / "_temporary/0").mkdir(parents=True)
    shutil.copy(path, root / "_temporary/0" / path.name)


values = st.lists(st.one_of(st.none(), st.integers(-3, 3)), max_size=5)
columns = {
    "n": lambda some: pa.array(some, pa.int64()),
    "f": lambda some: pa.array(some, pa.float32()),
    "t": lambda some: pa.array([None if value is None else f"t{value}" for value in some], pa.string()),
    "l": lambda some: pa.array(
        [None if value is None else [value] * abs(value) for value in some], pa.list_(pa.int64())
    ),
}


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
@settings(max_examples=rounds(60))
@given(
    parts=st.lists(st.tuples(st.sampled_from(["day=1/c=a", "day=2/c=a", "day=2/c=b"]), values), min_size=1, max_size=5),
    names=st.lists(st.sampled_from(list(columns)), min_size=1, unique=True),
    partitioned=st.booleans(),
    compression=st.sampled_from([None, "gzip"]),
    embedded=st.sampled_from([True, False, None]),
    steps=st.booleans(),
)
def test_reads_give_the_rows_of_before(
    parts: Any, names: list[str], partitioned: bool, compression: Any, embedded: Any, steps: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "d")
        for number, (where, some) in enumerate(parts):
            table = pa.table({name: columns[name](some) for name in names})
            path = root / (where if partitioned else "")
            path.mkdir(parents=True, exist_ok=True)
            keywords: dict[str, Any] = {"embed_schema": number % 2 == 0 if embedded is None else embedded}
            if steps and "l" in names:
                keywords |= {"record_type": "sequence_example"}
            tfr.write_tfrecord(table, path / spark_name(number, compression), **keywords)
        try:
            before = tfr.read_table(root)
        except tfr.TFRecordError as error:  # such as no type that both embedded and inferred ones have
            with pytest.raises(type(error)):
                tfr.adopt(root)
            return
        files = content(root)
        report = tfr.adopt(root)
        assert {name: data for name, data in content(root).items() if name != "_MANIFEST.json"} == files
        assert report.records == before.num_rows
        after = tfr.read_table(root)
        assert after.select(before.column_names).equals(before)
        assert after.schema.equals(before.schema)
        assert tfr.verify(root).ok
        assert tfr.count(root) == before.num_rows


def test_everything_works_on_it(tmp_path: Path) -> None:
    days = {f"day=2026-01-0{day}": [pa.table({"user": [day, 7]}), pa.table({"user": [8]})] for day in (1, 2, 3)}
    spark_tree(tmp_path, days)
    report = tfr.adopt(tmp_path)
    assert (len(report.files), report.records, report.compression) == (6, 9, "gzip")
    assert report.columns == ("user", "day")
    late = {"user": [9], "day": ["2026-01-01"]}
    tfr.write_tfrecord(late, tmp_path, mode="append", partition_by="day")
    assert len([*tmp_path.glob("day=2026-01-01/*.gz")]) == 3, "in the compression of the files"
    assert tfr.read_table(tmp_path)["user"].to_pylist() == [1, 7, 8, 9, 2, 7, 8, 3, 7, 8]
    wrong = {"user": ["text"], "day": ["2026-01-01"]}
    with pytest.raises(tfr.errors.SchemaError, match="user"):
        tfr.write_tfrecord(wrong, tmp_path, mode="append", partition_by="day")
    corrected = {"user": [5], "day": ["2026-01-02"]}
    tfr.write_tfrecord(corrected, tmp_path, mode="overwrite_partitions", partition_by="day")
    assert tfr.read_table(tmp_path)["user"].to_pylist() == [1, 7, 8, 9, 5, 3, 7, 8]
    assert tfr.delete(tmp_path, filters=[("user", "==", 7)]).records == 2
    assert len(tfr.compact(tmp_path).files) == 2
    assert sorted(tfr.read_table(tmp_path)["user"].to_pylist()) == [1, 3, 5, 8, 8, 9]
    assert tfr.verify(tmp_path).ok
    assert {path.name for path in tmp_path.rglob("part-*-c000*")} == {path.name for path in tmp_path.glob("_temp*/0/*")}
    assert tfr.count(tmp_path) == 6


def test_a_copied_dataset_and_one_of_a_name(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2], "d": [1, 2]}, tmp_path / "a", partition_by="d")
    tfr.write_tfrecord({"x": [3], "d": [1]}, tmp_path / "a", partition_by="d", mode="append")
    before = tfr.read_table(tmp_path / "a")
    (tmp_path / "a/_MANIFEST.json").unlink()
    tfr.adopt(tmp_path / "a")
    assert tfr.read_table(tmp_path / "a").equals(before)
    tfr.write_tfrecord({"x": [3], "d": [2]}, tmp_path / "a", partition_by="d", mode="append")
    for name in ("train", "test"):
        tfr.write_tfrecord({"x": [1, 2]}, tmp_path / f"b/{name}@2")
        (tmp_path / f"b/_MANIFEST-{name}.json").unlink()
    with pytest.raises(ValueError, match="2 families"):
        tfr.adopt(tmp_path / "b")
    tfr.adopt(tmp_path / "b/train@*")
    tfr.write_tfrecord({"x": [3]}, tmp_path / "b/train", mode="append")
    assert tfr.read_table(tmp_path / "b/train")["x"].to_pylist() == [1, 2, 3]
    assert tfr.read_table(tmp_path / "b/test@2")["x"].to_pylist() == [1, 2]


def test_what_cannot_be_adopted_is_an_error_and_nothing_is_written(tmp_path: Path) -> None:
    spark_tree(tmp_path / "a", {"day=1": [pa.table({"x": [1]})], "day=2": [pa.table({"x": ["text"]})]})
    with pytest.raises(tfr.errors.SchemaError) as raised:
        tfr.adopt(tmp_path / "a")
    assert all(spark_name(number, "gzip") in str(raised.value) for number in (0, 1)), "both files are named"
    spark_tree(
        tmp_path / "e", {"day=1": [pa.table({"x": [1]})], "day=2": [pa.table({"x": ["text"]})]}, embed_schema=True
    )
    with pytest.raises(tfr.errors.SchemaError) as raised:
        tfr.adopt(tmp_path / "e")
    assert all(spark_name(number, "gzip") in str(raised.value) for number in (0, 1)), "both files are named"
    spark_tree(tmp_path / "b", {"day=1": [pa.table({"x": [1]})], "day=2/c=1": [pa.table({"x": [2]})]})
    with pytest.raises(ValueError, match=r"in folders of \['day'\], .* in folders of \['day', 'c'\]"):
        tfr.adopt(tmp_path / "b")
    spark_tree(tmp_path / "c", {"": [pa.table({"x": [1] * 100})]}, None)
    (path,) = (tmp_path / "c").glob("part-*")
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    with pytest.raises(tfr.errors.TruncatedRecordError):
        tfr.adopt(tmp_path / "c")
    assert not [*tmp_path.rglob("_MANIFEST*")]
    path.write_bytes(data)
    for name in ("a\\b.tfrecord", "\udcff.tfrecord"):  # the second has a byte that is not UTF-8
        shutil.copy(path, path.with_name(name))
        with pytest.raises(ValueError, match=r"/?(a.b|.udcff)\.tfrecord': names of shards must be UTF-8"):
            tfr.adopt(tmp_path / "c")
        path.with_name(name).unlink()
    tfr.adopt(tmp_path / "c")
    with pytest.raises(FileExistsError, match="names this file already"):
        tfr.adopt(tmp_path / "c")
    with pytest.raises(NotADirectoryError, match="of a directory"):
        tfr.adopt(_single(tmp_path))


def test_a_file_that_is_replaced_by_one_of_its_size_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d" / "a.tfrecord"
    path.parent.mkdir()
    tfr.write_tfrecord({"x": [1, 2]}, path)
    with pytest.raises(OSError, match="files were added, removed or changed"):
        tfr.adopt(path.parent, progress=lambda _: tfr.write_tfrecord({"x": [3, 4]}, path))
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def _single(folder: Path) -> Path:
    tfr.write_tfrecord({"x": [1]}, folder / "one.tfrecord")
    return folder / "one.tfrecord"


def test_errors_of_other_calls_lead_here(tmp_path: Path) -> None:
    spark_tree(tmp_path, {"": [pa.table({"x": [1]})]})
    with pytest.raises(FileExistsError, match=r"mode='append' needs a manifest .*; tfrecord_io\.adopt writes one"):
        tfr.write_tfrecord({"x": [2]}, f"{tmp_path}/", mode="append")
    tfr.adopt(tmp_path)
    tfr.write_tfrecord({"x": [2]}, f"{tmp_path}/", mode="append")
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1, 2]


def test_files_of_the_other_tool_that_come_later_are_not_read(tmp_path: Path) -> None:
    spark_tree(tmp_path, {"": [pa.table({"x": [1]})]}, None)
    tfr.adopt(tmp_path)
    spark_tree(tmp_path / "later", {"": [pa.table({"x": [2]})]}, None)
    (later,) = (tmp_path / "later").glob("part-*")
    later.rename(tmp_path / spark_name(9, None))
    with pytest.warns(UserWarning, match="does not name them"):
        assert tfr.read_table(tmp_path)["x"].to_pylist() == [1]
    (tmp_path / "_MANIFEST.json").unlink()
    tfr.adopt(tmp_path)
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1, 2]


def test_a_salvaged_tree(tmp_path: Path) -> None:
    spark_tree(tmp_path / "a", {"day=1": [pa.table({"x": [1]})], "day=2": [pa.table({"x": [2]})]})
    tfr.adopt(tmp_path / "a")
    tfr.salvage(tmp_path / "a", f"{tmp_path}/b/")
    if not (tmp_path / "b/_MANIFEST.json").exists():
        tfr.adopt(tmp_path / "b")
    assert tfr.read_table(tmp_path / "b").to_pylist() == tfr.read_table(tmp_path / "a").to_pylist()


def test_in_a_bucket(bucket: Bucket, tmp_path: Path) -> None:
    options = bucket.storage_options
    spark_tree(tmp_path, {"day=1": [pa.table({"x": [1, 2]})], "day=2": [pa.table({"x": [2]})]})
    for name, data in content(tmp_path).items():
        bucket.fs.pipe_file(f"{bucket.name}/d/{name}", data)
    bucket.fs.invalidate_cache()
    assert tfr.adopt(bucket.url("d"), storage_options=options).records == 3
    added = {"x": [3], "day": [3]}
    tfr.write_tfrecord(added, bucket.url("d/"), mode="append", partition_by="day", storage_options=options)
    tfr.delete(bucket.url("d"), filters=[("x", "==", 2)], storage_options=options)
    assert tfr.read_table(bucket.url("d"), storage_options=options)["x"].to_pylist() == [1, 3]
    assert tfr.verify(bucket.url("d"), storage_options=options).ok


def test_the_command(tmp_path: Path) -> None:
    spark_tree(tmp_path, {"day=1": [pa.table({"x": [1, 2]})]})
    run = CliRunner().invoke(group, ["adopt", str(tmp_path), "--json"])
    document = json.loads(run.output)
    assert (document["records"], document["files"], document["columns"]) == (2, 1, ["x", "day"])
    run = CliRunner().invoke(group, ["adopt", str(tmp_path)])
    assert (run.exit_code, "already" in run.output) == (3, True)


def test_an_append_to_the_folder_of_an_adopted_name_says_the_name(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a-00000-of-00001.tfrecord")
    tfr.adopt(tmp_path)
    with pytest.raises(FileExistsError) as info:
        tfr.write_tfrecord({"x": [2]}, f"{tmp_path}/", mode="append")
    assert f"; name their dataset, '{tmp_path}/a@*'" in str(info.value)
    tfr.write_tfrecord({"x": [2]}, f"{tmp_path}/a@*", mode="append")
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1, 2]
