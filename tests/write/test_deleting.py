"""Delete: the rows that remain are those of a filter, also for those who write, read or die meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from folder_trees import content
from rounds import COMPLETE, IN_A_BUCKET, each_step, rounds
from servers import Bucket
from stopped_steps import stopping
from tfrecord_io.apps.cli import tfr as group
from tfrecord_io.store import clean
from tfrecord_io.store.read.source import Source


def payloads(path: Any) -> list[bytes]:
    """The payloads of all records, without embedded schemas."""
    found = []
    for payload in tfr.RecordReader(path):
        if payload[:2] == b"\xb2\xc4":
            size, at = 0, 3
            for position in range(5):
                size |= (payload[3 + position] & 0x7F) << (7 * position)
                at = 4 + position
                if payload[3 + position] < 0x80:
                    break
            payload = payload[at + size :]
        found.append(payload)
    return found


users = st.one_of(st.none(), st.integers(0, 4))
rows_ = st.lists(st.tuples(users, st.sampled_from(["a", "b", "c"])), max_size=12)
part = st.tuples(rows_, st.sampled_from(["infer", None, "gzip", "zstd"]), st.sampled_from([1, 200, None]))
CONDITIONS: dict[str, Any] = {
    "user": [("user", "==", 1)],
    "users": [("user", "in", [0, 2, 4])],
    "not": ~(pc.field("user") == 3),
    "null": pc.field("user").is_null(),
    "folder": [("day", "==", "a")],
    "folders": [("day", "!=", "b")],
    "both": [("day", "==", "b"), ("user", ">", 1)],
    "either": [[("day", "==", "c")], [("user", "==", 0)]],
    "list": [("tags", "contains", 2)],
    "struct": pc.field("s", "n") > 1,
    "other column": [("text", "==", "u1")],
    "nothing": [("user", "==", 99)],
}


def table_of(rows: list[tuple[int | None, str]], first: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(first, first + len(rows)), pa.int64()),
            "user": pa.array([user for user, _ in rows], pa.int32()),
            "day": pa.array([day for _, day in rows], pa.string()),
            "text": pa.array([None if user is None else f"u{user}" for user, _ in rows], pa.string()),
            "tags": pa.array([None if user is None else list(range(user)) for user, _ in rows], pa.list_(pa.int64())),
            "s": pa.array([{"n": user} for user, _ in rows], pa.struct({"n": pa.int16()})),
        }
    )


def kept(table: pa.Table, condition: Any) -> pa.Table:
    """The rows of a table where a condition is not true."""
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(table, f"{folder}/all.tfrecord")
        gone = tfr.read_table(f"{folder}/all.tfrecord", filters=condition)["id"].to_pylist()
    return table.filter(pc.invert(pc.is_in(table["id"], pa.array(gone, pa.int64()))))


def check_program(
    url: str, parts: Any, partitioned: bool, indexes: list[str], steps: list[str], storage: Any, meanwhile: bool
) -> None:
    keywords: dict[str, Any] = {"partition_by": ["day"]} if partitioned else {}
    tables, first = [], 0
    for rows, compression, shard_bytes in parts:
        table = table_of(rows, first)
        first += len(rows)
        tables.append(table)
        options = {"compression": compression, "max_shard_bytes": shard_bytes, "storage_options": storage, **keywords}
        tfr.write_tfrecord(table, url, mode="append", **options)
    everything = pa.concat_tables(tables)
    if not len(everything):
        return
    for names in indexes:
        files = [source for source in _files(url, storage) if not source.endswith((".gz", ".zst"))]
        if files:
            tfr.build_index(files, columns=[names], storage_options=storage)
    for number, step in enumerate(steps):
        before = tfr.read_table(url, storage_options=storage)
        assert sorted(before["id"].to_pylist()) == sorted(everything["id"].to_pylist())
        planned = tfr.delete(url, filters=CONDITIONS[step], dry_run=True, storage_options=storage)
        assert tfr.read_table(url, storage_options=storage).equals(before)
        added = table_of([(1, "a"), (None, "z")], 1000 * (number + 1)) if meanwhile else None
        progress: Any = False
        if added is not None:
            progress = once(
                lambda rows=added: tfr.write_tfrecord(rows, url, mode="append", storage_options=storage, **keywords)
            )
        report = tfr.delete(url, filters=CONDITIONS[step], progress=progress, storage_options=storage)
        assert (report.records, report.dropped, report.rewritten) == (
            planned.records, planned.dropped, planned.rewritten
        )  # fmt: skip
        rest = kept(everything, CONDITIONS[step])
        assert report.records == len(everything) - len(rest)
        assert report.kept == len(rest)
        everything = rest
        if added is not None and progress.done:
            everything = pa.concat_tables([rest, added])
        after = tfr.read_table(url, storage_options=storage)
        assert after.schema.equals(before.schema)
        by_id = after.select(everything.column_names).sort_by("id")
        assert by_id.cast(everything.schema).equals(everything.sort_by("id"))
        stay = set(rest["id"].to_pylist())
        old, new = ([each for each in table["id"].to_pylist() if each in stay] for table in (before, after))
        assert new == old, "the order stays"
        assert tfr.verify(url, storage_options=storage).ok
        for name in indexes:  # also by the indexes that were made again
            wanted = 1 if name == "user" else "u1"
            found = tfr.read_table(url, filters=[(name, "==", wanted)], storage_options=storage)["id"]
            expected = everything.filter(pc.equal(everything[name], wanted))["id"]
            assert sorted(found.to_pylist()) == sorted(expected.to_pylist())
        if not len(everything):
            return


def _files(url: str, storage: Any) -> list[str]:
    return tfr.dataset(url, storage_options=storage).files


class once:
    """A `progress` that does something once, after all that is read was."""

    def __init__(self, action: Callable[[], Any]) -> None:
        self.action, self.done = action, False

    def __call__(self, state: tfr.typing.Progress) -> None:
        if state.done == state.total and not self.done:
            self.done = True
            self.action()


programs: dict[str, Any] = {
    "parts": st.lists(part, min_size=1, max_size=4),
    "partitioned": st.booleans(),
    "indexes": st.lists(st.sampled_from(["user", "text"]), max_size=1),
    "steps": st.lists(st.sampled_from(list(CONDITIONS)), min_size=1, max_size=3),
    "meanwhile": st.booleans(),
}


@pytest.mark.timeout(1800)  # on a busy machine
@settings(max_examples=rounds(300, 12))
@given(**programs)
def test_what_remains_is_what_a_filter_leaves(
    parts: Any, partitioned: bool, indexes: list[str], steps: list[str], meanwhile: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_program(f"{folder}/d/", parts, partitioned, indexes, steps, None, meanwhile)


number = count()


@settings(max_examples=rounds(6, 3), suppress_health_check=IN_A_BUCKET)
@given(**programs)
def test_what_remains_in_a_bucket(
    bucket: Bucket, parts: Any, partitioned: bool, indexes: list[str], steps: list[str], meanwhile: bool
) -> None:
    url = bucket.url(f"{next(number)}/")
    check_program(url, parts, partitioned, indexes, steps[:1], bucket.storage_options, meanwhile)


def test_records_that_stay_are_the_same_bytes_and_the_first_one_has_the_schema(tmp_path: Path) -> None:
    for compression, name in ((None, "a.tfrecord"), ("gzip", "a.tfrecord.gz")):
        path = tmp_path / name
        tfr.write_tfrecord({"x": [1, 2, None, 4], "s": ["p", "q", "r", None]}, path, compression=compression)
        before, schema = payloads(path), tfr.read_table(path).schema
        assert tfr.delete(path, filters=[("x", "<", 3)]).records == 2
        assert payloads(path) == before[2:]
        assert [payload[:2] == b"\xb2\xc4" for payload in tfr.RecordReader(path)] == [True, False]
        assert tfr.read_table(path).schema == schema
        assert tfr.delete(path, filters=[("x", "==", 4)]).records == 1
        assert payloads(path) == before[2:3]
        assert (path.read_bytes()[:2] == b"\x1f\x8b") is (compression == "gzip")


def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the data files that are opened."""
    paths: list[str] = []
    open_file = Source.open

    def open_counted(self: Source) -> Any:
        paths.extend([os.path.basename(self.path)] * self.path.endswith(".tfrecord"))
        return open_file(self)

    monkeypatch.setattr(Source, "open", open_counted)
    return paths


def test_a_user_in_three_of_many_shards_costs_reading_these(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = 1000 if COMPLETE else 200
    holding = {3, shards // 2, shards - 2}
    users = [[7, number + 10] if number in holding else [number + 10, number + 10] for number in range(shards)]
    tfr.write_tfrecord({"user": np.ravel(users)}, f"{tmp_path}/", shards=shards)
    tfr.build_index(tmp_path, columns=["user"])
    before = content(tmp_path)
    paths = opened(monkeypatch)
    report = tfr.delete(tmp_path, filters=[("user", "==", 7)])
    read = set(paths)
    assert (report.records, report.kept, len(report.rewritten)) == (3, 2 * shards - 3, 3)
    old = {os.path.basename(path) for path in report.rewritten}
    assert {name for name in read if name in before} == old
    monkeypatch.undo()
    after = content(tmp_path)
    gone = {name for name in before if before[name] != after.get(name)} - {"_MANIFEST.json"}
    assert gone == old | {f"{name}.column_index" for name in old}
    assert 7 not in tfr.read_table(tmp_path)["user"].to_pylist()
    assert len([name for name in after if name.endswith(".column_index")]) == shards


def test_folders_are_dropped_without_opening_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3], "day": [1, 2, 3], "c": ["a", "b", "a"]}, tmp_path, partition_by=["day", "c"])
    paths = opened(monkeypatch)
    report = tfr.delete(tmp_path, filters=[("day", "<", 3)])
    assert report.folders == ("day=1/c=a", "day=2/c=b")
    assert (report.records, report.kept, report.written_bytes, paths) == (2, 1, 0, paths[:1])  # for its schema
    assert tfr.read_table(tmp_path).to_pylist() == [{"x": 3, "day": 3, "c": "a"}]
    report = tfr.delete(tmp_path / "day=3", filters=[("x", "==", 9)])
    assert (report.records, report.kept) == (0, 1)


def test_no_row_remains_and_the_columns_do(tmp_path: Path) -> None:
    for keywords in ({}, {"partition_by": ["day"]}):
        folder = tmp_path / str(len(keywords))
        tfr.write_tfrecord({"x": [1, 2], "day": [1, 2]}, f"{folder}/", mode="append", **keywords)  # type: ignore[arg-type]
        schema = tfr.read_table(folder).schema
        assert tfr.delete(folder, filters=[("day", ">", 0)]).kept == 0
        assert tfr.read_table(folder).num_rows == 0
        assert tfr.read_table(folder).schema.equals(schema)
        tfr.write_tfrecord({"x": [5], "day": [3]}, f"{folder}/", mode="append", **keywords)  # type: ignore[arg-type]
        assert tfr.read_table(folder)["x"].to_pylist() == [5]


def test_by_a_column_that_older_shards_lack_and_by_declared_types(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, f"{tmp_path}/a/", mode="append")
    tfr.write_tfrecord({"x": [3, 4], "new": [7, 8]}, f"{tmp_path}/a/", mode="append", evolve=True)
    report = tfr.delete(tmp_path / "a", filters=[("new", "!=", 8)])
    assert (report.records, tfr.read_table(tmp_path / "a")["x"].to_pylist()) == (1, [1, 2, 4])
    tfr.write_tfrecord({"day": [1, 2**40]}, tmp_path / "b.tfrecord", embed_schema=False)
    declared = tfr.dataset(tmp_path / "b.tfrecord", schema_overrides={"day": "timestamp[s]"})
    report = tfr.delete(declared, filters=[("day", "<", "2000-01-01")])
    assert (report.records, tfr.read_table(tmp_path / "b.tfrecord")["day"].to_pylist()) == (1, [2**40])


def test_index_files_are_made_anew(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": range(10), "t": ["a", "b"] * 5}, f"{tmp_path}/", shards=2, write_index=True)
    tfr.build_index(tmp_path, columns=["x", "t"])
    tfr.delete(tmp_path, filters=[("x", "==", 1)])
    names = sorted(os.listdir(tmp_path))
    assert len([name for name in names if name.endswith(".tfrecord.index")]) == 2
    assert len([name for name in names if name.endswith(".column_index")]) == 2
    with tfr.open_random(tmp_path) as records:
        assert records.select([("t", "==", "b")]).to_table()["x"].to_pylist() == [3, 5, 7, 9]


def test_index_files_of_columns_that_a_file_lacks_are_made_anew(tmp_path: Path) -> None:
    data, alone = f"{tmp_path}/data/", tmp_path / "alone.tfrecord"
    tfr.write_tfrecord({"x": [1, 2], "t": [7, 8]}, data, mode="append", write_index=["x", "t"])
    tfr.write_tfrecord({"x": [3, 4]}, data, mode="append")  # with an index of the same columns
    tfr.delete(data, filters=[("x", "==", 3)])
    assert str(tfr.dataset(data).filter([("t", "==", 7)]).explain()).startswith("reads 1 of 2 files")
    tfr.write_tfrecord({"x": [5, 6]}, alone)
    tfr.build_index([data, alone], columns=["x", "t"])
    tfr.delete(alone, filters=[("x", "==", 5)])
    assert len([*tmp_path.rglob("*.column_index")]) == 3


def test_index_files_are_made_anew_although_another_dataset_begins(tmp_path: Path) -> None:
    """A path that is a directory with two datasets means none of them."""
    tfr.write_tfrecord({"x": range(10)}, f"{tmp_path}/", mode="append", write_index=["x"])
    other = once(lambda: tfr.write_tfrecord({"y": [1]}, tmp_path / "b@*", mode="append"))
    assert tfr.delete(tmp_path, filters=[("x", "==", 3)], progress=other).records == 1
    assert len([*tmp_path.glob("part-*.column_index")]) == 1


def test_damage_is_an_error_before_anything_is_changed(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": range(300)}, f"{tmp_path}/", shards=3)
    path = sorted(tmp_path.glob("part-*"))[1]
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    before = content(tmp_path)
    with pytest.raises(tfr.errors.CorruptRecordError, match=path.name):
        tfr.delete(tmp_path, filters=[("x", ">=", 150)])
    assert content(tmp_path) == before


def test_other_paths_and_conditions_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tfr.write_tfrecord({"x": [1]}, tmp_path / f"{name}.tfrecord")
    with pytest.raises(ValueError, match=r"these files have no manifest: .*tfr\.adopt"):
        tfr.delete(tmp_path, filters=[("x", "==", 1)])
    with pytest.raises(TypeError, match="filters=None"):
        tfr.delete(tmp_path / "a.tfrecord", filters=None)
    with pytest.raises(TypeError, match="not a list"):
        tfr.delete([tmp_path], filters=[("x", "==", 1)])  # type: ignore[arg-type]
    tfr.write_tfrecord({"x": [1, 2], "d": [1, 2]}, tmp_path / "days", partition_by="d")
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "train@2")
    for file in (next((tmp_path / "days").glob("d=1/*")), next(tmp_path.glob("train-00000*"))):
        with pytest.raises(ValueError, match="names this file: pass the path of the dataset"):
            tfr.delete(file, filters=[("x", "==", 1)])
    for file in tmp_path.glob("*train*"):
        file.unlink()
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="y"):
        tfr.delete(tmp_path / "a.tfrecord", filters=[("y", "==", 1)])
    assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == [1]


def test_the_name_that_a_dataset_was_written_to_still_reads_it(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "train@2")
    tfr.delete(tmp_path / "train@2", filters=[("x", ">", 0)])
    assert tfr.count(tmp_path / "train@2") == 0
    tfr.write_tfrecord({"x": [3, 4]}, tmp_path / "train@2", mode="append")
    assert tfr.read_table(tmp_path / "train@2")["x"].to_pylist() == [3, 4]
    tfr.compact(tmp_path / "train@2")
    assert tfr.count(tmp_path / "train@2") == 2


def test_a_reader_that_is_open_goes_on_or_gets_an_error(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": range(3000)}, f"{tmp_path}/", shards=3)
    with tfr.open_reader(tfr.dataset(tmp_path, threads=1), batch_size=10) as reader:
        read = next(reader)["x"].to_pylist()
        tfr.delete(tmp_path, filters=[("x", "<", 5)])
        try:
            for batch in reader:
                read += batch["x"].to_pylist()
        except tfr.errors.ReplacedError:
            pass
    assert read == list(range(len(read)))
    assert tfr.read_table(tmp_path)["x"].to_pylist() == list(range(5, 3000))


def test_what_is_replaced_meanwhile_is_an_error(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": range(10)}, f"{tmp_path}/", shards=3)
    other = once(lambda: tfr.write_tfrecord({"x": [1, 2]}, tmp_path, shards=2, mode="overwrite"))
    with pytest.raises(OSError, match="replaced"):
        tfr.delete(tmp_path, filters=[("x", "==", 2)], progress=other)
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1, 2]
    assert tfr.verify(tmp_path).ok


def test_a_file_that_is_replaced_meanwhile_keeps_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(10)}, path)
    other = once(lambda: tfr.write_tfrecord({"x": range(9, -1, -1)}, path, mode="overwrite"))
    with pytest.raises(OSError, match="replaced it meanwhile"):
        tfr.delete(path, filters=[("x", "==", 2)], progress=other)
    assert tfr.read_table(path)["x"].to_pylist() == [*range(9, -1, -1)]
    assert os.listdir(tmp_path) == [path.name]


def test_killed_at_each_step_it_is_as_before_or_done(tmp_path: Path) -> None:
    outcomes = set()
    for step in each_step():
        folder = tmp_path / str(step)
        tfr.write_tfrecord({"x": [1, 2, 3, 4], "d": [1, 1, 2, 3]}, folder, partition_by="d")
        with pytest.MonkeyPatch.context() as patch:
            left = stopping(patch, step)
            try:
                tfr.delete(tfr.dataset(folder, threads=1), filters=[("x", "in", [1, 4])])
            except KeyboardInterrupt:
                assert left[0] < 0
        rows = tuple(tfr.read_table(folder)["x"].to_pylist())
        outcomes.add(rows)
        clean(folder, remove=True, older_than=timedelta(0))
        assert tuple(tfr.read_table(folder)["x"].to_pylist()) == rows
        if left[0] >= 0:
            break
    assert outcomes == {(1, 2, 3, 4), (2, 3)}


def test_appending_threads_lose_nothing(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [0], "writer": [-1]}, f"{tmp_path}/", mode="append")
    stop = threading.Event()

    def append() -> None:
        for at in range(8):
            tfr.write_tfrecord({"x": [at], "writer": [1]}, f"{tmp_path}/", mode="append")
        stop.set()

    thread = threading.Thread(target=append)
    thread.start()
    removed = 0
    while not stop.is_set():
        removed += tfr.delete(tmp_path, filters=[("x", "==", 3)]).records
    thread.join()
    removed += tfr.delete(tmp_path, filters=[("x", "==", 3)]).records
    assert removed == 1
    assert sorted(tfr.read_table(tmp_path)["x"].to_pylist()) == [0, 0, 1, 2, 4, 5, 6, 7]


def test_what_was_converted_is_not_converted_again(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"x,y\n1,{name}\n2,{name}\n")
    sources = [str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]
    tfr.convert(sources, f"{tmp_path}/out/", resume=True)
    tfr.delete(tmp_path / "out", filters=[[("y", "==", "a")], [("x", "==", 1)]])
    tfr.convert(sources, f"{tmp_path}/out/", resume=True)
    assert tfr.read_table(tmp_path / "out").to_pylist() == [{"x": 2, "y": "b"}]


def test_files_whose_records_tfds_has_counted(data: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(data / "tfds" / "everything", tmp_path / "everything"))
    (file,) = folder.glob("*.tfrecord-*")
    before = content(folder)
    names = tfr.Schema.from_tfds(folder, class_labels="names")
    for source, value in ((folder, 1), (file, 1), (tfr.dataset(folder, schema=names), "dog")):
        with pytest.raises(ValueError, match="TFDS states how many records the file has; write the dataset again"):
            tfr.delete(source, filters=[("label", "==", value)])
    assert content(folder) == before


def test_the_command(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3], "d": [1, 1, 2]}, tmp_path, partition_by="d")
    run = CliRunner().invoke(group, ["delete", str(tmp_path), "--where", "x >= 2", "--dry-run"])
    assert (run.exit_code, "2 records would be removed, 1 kept" in run.output) == (0, True)
    run = CliRunner().invoke(group, ["delete", str(tmp_path), "--where", "x >= 2", "--json"])
    document = json.loads(run.output)
    assert (document["records"], document["kept"], document["folders"]) == (2, 1, ["d=2"])
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1]
    run = CliRunner().invoke(group, ["delete", str(tmp_path)])
    assert (run.exit_code, "--where" in run.output) == (2, True)
