"""Compaction: fewer shards, the same rows in the same order, also for those who write or die meanwhile."""

from __future__ import annotations

import errno
import json
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from appending_writer import appenders
from folder_trees import content
from rounds import COMPLETE, each_step, rounds
from servers import Bucket
from stopped_steps import stopping
from tfrecord_io.apps.cli import tfr as group
from tfrecord_io.store import clean
from tfrecord_io.store.write.publication import Publication

NOW = timedelta(0)


def named(folder: Path) -> list[str]:
    """The files that the manifest names, and itself."""
    document = json.loads((folder / "_MANIFEST.json").read_text())
    assert "replaces" not in document
    return sorted(["_MANIFEST.json", *(file["path"] for file in document["files"])])


def days(path: Any, number: int = 5, **keywords: Any) -> pa.Table:
    """A dataset that grew, one shard at a time."""
    for day in range(number):
        tfr.write_tfrecord({"x": [day, day], "s": ["a" * day, None]}, path, mode="append", **keywords)
    return tfr.read_table(path, storage_options=keywords.get("storage_options"))


part = st.tuples(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["a", "b", None])), max_size=8),
    st.integers(0, 2),  # columns and types that it adds
    st.sampled_from(["infer", None, "gzip"]),
    st.sampled_from([1, 60, None]),
)


@settings(max_examples=rounds(80))
@given(
    parts=st.lists(part, min_size=1, max_size=6),
    most=st.integers(1, 3000),
    partitioned=st.booleans(),
    times=st.integers(1, 2),
)
def test_the_rows_are_those_of_before(
    parts: list[Any], most: int, partitioned: bool, times: int, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("compact")
    for rows, more, compression, shard_bytes in parts:
        table = pa.table({"x": pa.array([x for x, _ in rows], pa.int64() if more else pa.int8())})
        table = table.append_column("day", pa.array([day for _, day in rows], pa.string()))
        if more == 2:
            table = table.append_column("new", pa.array([[x] * x for x, _ in rows], pa.list_(pa.float32())))
        keywords = {"partition_by": ["day"]} if partitioned else {}
        options = {"max_shard_bytes": shard_bytes, "compression": compression, **keywords}
        tfr.write_tfrecord(table, f"{folder}/", mode="append", evolve=True, **options)
    if not any(rows for rows, *_ in parts) and partitioned:
        return  # a dataset without files
    before, files = tfr.read_table(folder), content(folder)
    for _ in range(times):
        report = tfr.compact(folder, max_shard_bytes=most)
    after = tfr.read_table(folder)
    assert after.equals(before)
    assert after.schema.equals(before.schema)
    assert sorted(content(folder)) == named(folder)
    assert tfr.verify(folder).ok
    kept = {name: data for name, data in content(folder).items() if name in files and name != "_MANIFEST.json"}
    assert all(files[name] == data for name, data in kept.items())
    if not report.files and times == 1:
        assert content(folder) == files
    for path in (path for path in folder.rglob("part-*")):
        starts = [payload.startswith(b"\xb2\xc4\x0a") for payload in tfr.RecordReader(path)]
        assert not any(starts[1:]), "only the first record has the schema"
        assert all(starts[:1])


def test_neighbours_are_joined_up_to_the_size_and_large_shards_stay(tmp_path: Path) -> None:
    for rows in (1, 1, 500, 1, 1, 1):
        tfr.write_tfrecord({"x": list(range(rows))}, f"{tmp_path}/", mode="append", embed_schema=True)
    before, inodes = tfr.read_table(tmp_path), {path.name: path.stat().st_ino for path in tmp_path.iterdir()}
    sizes = [file["bytes"] for file in json.loads((tmp_path / "_MANIFEST.json").read_text())["files"]]
    report = tfr.compact(tmp_path, max_shard_bytes=3 * sizes[0])
    assert [file.records for file in report.files] == [2, 3]
    assert report.records == 5
    names = sorted(path.name for path in tmp_path.glob("part-*"))
    assert len(names) == 3
    assert inodes[names[1]] == (tmp_path / names[1]).stat().st_ino
    assert tfr.read_table(tmp_path).equals(before)
    by_name = tfr.read_table([tmp_path / name for name in names])
    assert by_name["x"].equals(before["x"]), "programs without the manifest go by the names"


def test_only_the_named_folder_is_joined(tmp_path: Path) -> None:
    for _ in range(3):
        data = pa.table({"x": [1, 2, 3], "day": ["a", "b", "b"]})
        tfr.write_tfrecord(data, tmp_path, partition_by=["day"], mode="append")
    before = tfr.read_table(tmp_path)
    report = tfr.compact(tmp_path / "day=b")
    assert [file.records for file in report.files] == [6]
    assert len([*tmp_path.glob("day=a/*")]) == 3
    assert tfr.read_table(tmp_path).equals(before)
    tfr.compact(tmp_path)
    assert len([*tmp_path.glob("*/*")]) == 2
    tfr.write_tfrecord(data, tmp_path, partition_by=["day"], mode="overwrite_partitions")
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1, 2, 3]


def test_a_dataset_by_its_name_and_suffix(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3]}, tmp_path / "t.tfrecords@3")
    tfr.write_tfrecord({"x": [4]}, tmp_path / "t.tfrecords", mode="append")
    tfr.write_tfrecord({"y": [1]}, tmp_path / "other@1")
    report = tfr.compact(tmp_path / "t@*")
    assert report.records == 4
    for path in (tmp_path / "t", tmp_path / "t.tfrecords@*", tmp_path / "t-*"):
        assert tfr.read_table(path)["x"].to_pylist() == [1, 2, 3, 4]


def test_nothing_to_join_changes_nothing(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path, shards=2)
    before = content(tmp_path)
    assert tfr.compact(tmp_path, max_shard_bytes=1).files == ()
    assert content(tmp_path) == before


def test_other_paths_are_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "one.tfrecord")
    tfr.write_tfrecord({"x": [1, 2]}, f"{tmp_path}/a/", shards=2)
    for day in (1, 2):
        tfr.write_tfrecord({"x": [1, 2]}, f"{tmp_path}/days/day={day}/", shards=2)
    (tmp_path / "a/_MANIFEST.json").unlink()
    with pytest.raises(ValueError, match=r"a single file: .*manifest.*merge writes"):
        tfr.compact(tmp_path / "one.tfrecord")
    with pytest.raises(ValueError, match="2 datasets, each of which can be compacted"):
        tfr.compact(tmp_path / "days")
    with pytest.raises(ValueError, match=r"no manifest: .*merge writes"):
        tfr.compact(tmp_path / "a")
    with pytest.raises(TypeError, match=r"compact takes the path of one dataset, .* not a list"):
        tfr.compact([tmp_path])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_shard_bytes=0"):
        tfr.compact(tmp_path / "days/day=1", max_shard_bytes=0)


def test_a_damaged_shard_changes_nothing(tmp_path: Path) -> None:
    days(tmp_path)
    path = sorted(tmp_path.glob("part-*"))[2]
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    before = content(tmp_path)
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.compact(tmp_path)
    assert content(tmp_path) == before


def test_a_shard_without_the_records_of_the_manifest_changes_nothing(tmp_path: Path) -> None:
    days(tmp_path)
    manifest = tmp_path / "_MANIFEST.json"
    document = json.loads(manifest.read_text())
    document["files"][1]["records"] += 1
    document["records"] += 1
    document["history"]["runs"][-1][1] += 1
    manifest.write_text(json.dumps(document))
    before = content(tmp_path)
    with pytest.raises(tfr.errors.CorruptRecordError, match="have 10 records, and the manifest states 11"):
        tfr.compact(tmp_path)
    assert content(tmp_path) == before


def test_indexes_of_joined_shards_are_replaced(tmp_path: Path) -> None:
    before = days(tmp_path)
    tfr.build_index(tmp_path, columns=["x"])
    for path in tmp_path.glob("part-*[0-9a-f].tfrecord"):
        (tmp_path / f"{path.name}.index").touch()
    report = tfr.compact(tmp_path, write_index=True)
    name = os.path.basename(report.files[0].path)
    assert sorted(os.listdir(tmp_path)) == ["_MANIFEST.json", name, f"{name}.column_index", f"{name}.index"]
    with tfr.open_random(tmp_path) as records:
        assert [records[at]["x"] for at in range(10)] == before["x"].to_pylist()


def test_killed_at_each_step_it_is_as_before_or_done(tmp_path: Path) -> None:
    outcomes = set()
    for step in each_step():
        folder = tmp_path / str(step)
        days(f"{folder}/", 3)
        tfr.write_tfrecord({"x": [7], "s": ["b"]}, folder, mode="append")
        tfr.build_index(folder, columns=["x"])
        before = tfr.read_table(folder)
        with pytest.MonkeyPatch.context() as patch:
            left = stopping(patch, step)
            try:
                tfr.compact(tfr.dataset(folder, threads=1))
            except KeyboardInterrupt:
                assert left[0] < 0
        assert tfr.read_table(folder).equals(before)
        files = len(json.loads((folder / "_MANIFEST.json").read_text())["files"])
        outcomes.add(files)
        clean(folder, remove=True, older_than=NOW)
        assert tfr.read_table(folder).equals(before)
        data = sorted(name for name in os.listdir(folder) if "index" not in name)
        assert len(data) == files + 1, "nothing is left"
        tfr.write_tfrecord({"x": [8], "s": ["c"]}, folder, mode="append")
        tfr.compact(folder)
        indexes = {f"{name}.column_index" for name in named(folder)}
        assert sorted({*os.listdir(folder)} - indexes) == named(folder)
        assert tfr.read_table(folder)["x"].to_pylist() == [*before["x"].to_pylist(), 8]
        if left[0] >= 0:
            break
    assert outcomes == {1, 4}


def meanwhile(action: Callable[[], Any]) -> Callable[[tfr.typing.Progress], None]:
    """A `progress` that does something once, after all shards were read."""
    done = []

    def progress(state: tfr.typing.Progress) -> None:
        if state.done == state.total and not done:
            done.append(state)
            action()

    return progress


def test_what_is_appended_meanwhile_stands_behind(tmp_path: Path) -> None:
    before = days(tmp_path)
    wide = {"x": [2**40], "s": ["z"], "new": [1.5]}
    append = meanwhile(lambda: tfr.write_tfrecord(wide, tmp_path, mode="append", evolve=True))
    tfr.compact(tmp_path, progress=append)
    table = tfr.read_table(tmp_path)
    assert table["x"].to_pylist() == [*before["x"].to_pylist(), 2**40]
    assert table["new"].to_pylist() == [None] * 10 + [1.5]
    assert sorted(os.listdir(tmp_path)) == named(tmp_path)
    assert len(named(tmp_path)) == 3


@pytest.mark.parametrize("action", ["overwrite", "compact"])
def test_what_is_replaced_meanwhile_is_not_compacted(tmp_path: Path, action: str) -> None:
    days(tmp_path)
    actions: dict[str, Callable[[], Any]] = {
        "overwrite": lambda: tfr.write_tfrecord({"x": [1, 2]}, tmp_path, shards=2, mode="overwrite"),
        "compact": lambda: tfr.compact(tmp_path),
    }
    with pytest.raises(OSError, match="another writer has replaced this dataset meanwhile"):
        tfr.compact(tmp_path, progress=meanwhile(actions[action]))
    assert sorted(os.listdir(tmp_path)) == named(tmp_path)
    assert tfr.verify(tmp_path).ok


@pytest.mark.parametrize("call", ["compact", "delete"])
def test_what_a_writer_left_that_died_is_completed(call: str, tmp_path: Path) -> None:
    """It had published the dataset, and given none of the shards its name, or some."""
    unnamed = 0
    for step in each_step(every=1):
        folder = tmp_path / f"{step}"
        tfr.write_tfrecord({"x": [1, 2, 6]}, f"{folder}/", shards=3, write_index=True)
        with pytest.MonkeyPatch.context() as patch:
            left = stopping(patch, step)
            with suppress(KeyboardInterrupt):
                tfr.write_tfrecord({"x": [3, 3, 4, 4, 5, 5]}, folder, shards=3, mode="overwrite", threads=1)
        rows = tfr.read_table(folder)["x"].to_pylist()
        unnamed += "staged" in (folder / "_MANIFEST.json").read_text()
        if call == "compact":
            tfr.compact(folder)
        else:
            tfr.delete(folder, filters=[("x", "in", [1, 3])])
            rows = [row for row in rows if row not in (1, 3)]
        assert tfr.read_table(folder)["x"].to_pylist() == rows
        assert tfr.verify(folder).ok
        clean(folder, remove=True, older_than=NOW)
        assert {name.removesuffix(".index") for name in os.listdir(folder)} == {*named(folder)}
        if left[0] >= 0:
            break
    assert unnamed > 3


def test_a_reader_that_is_open_gets_an_error_and_no_mixture(tmp_path: Path) -> None:
    for first in range(0, 3000, 1000):
        tfr.write_tfrecord({"x": range(first, first + 1000)}, tmp_path, mode="append")
    with tfr.open_reader(tfr.dataset(tmp_path, threads=1), batch_size=10) as reader:
        rows = next(reader)["x"].to_pylist()
        tfr.compact(tmp_path)

        def read_on() -> None:
            for batch in reader:
                rows.extend(batch["x"].to_pylist())

        with pytest.raises(OSError, match="the dataset was replaced while it was read; read it again"):
            read_on()
    assert rows == list(range(len(rows)))
    assert tfr.read_table(tmp_path)["x"].to_pylist() == list(range(3000))


def test_replaced_files_that_could_not_be_removed_are_removed_by_the_next_writer(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path, shards=2)
    unlink = os.unlink

    def refuse(path: Any, *arguments: Any, **keywords: Any) -> None:
        if str(path).endswith("of-00002.tfrecord"):
            raise PermissionError(13, "Permission denied", path)
        unlink(path, *arguments, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        with pytest.warns(UserWarning, match="2 old files could not be removed"):
            tfr.compact(tmp_path)
    assert len(os.listdir(tmp_path)) == 4
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1, 2]
    tfr.write_tfrecord({"x": [3]}, tmp_path, mode="append")
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [1, 2, 3]
    assert sorted(os.listdir(tmp_path)) == named(tmp_path)


def test_in_a_bucket(bucket: Bucket) -> None:
    options = bucket.storage_options
    before = days(bucket.url("d/"), 4, storage_options=options)
    report = tfr.compact(bucket.url("d/"), storage_options=options)
    assert report.files[0].path.startswith(bucket.url("d/"))
    assert tfr.read_table(bucket.url("d/"), storage_options=options).equals(before)
    assert len(bucket.names()) == 2
    assert tfr.verify(bucket.url("d/"), storage_options=options).ok


def test_killed_in_a_bucket(conditional: Bucket, dying: dict[str, Any]) -> None:
    outcomes, options = set(), conditional.storage_options
    for left in each_step():
        url = conditional.url(f"{left}/")
        dying.update(left=None)
        before = days(url, 2, storage_options=options)
        dying.update(left=left, killed=False)
        try:
            tfr.compact(url, storage_options=options)
        except OSError:
            assert dying["killed"]
        except UserWarning:  # what was replaced could not be removed
            assert dying["killed"]
        dying.update(left=None)
        conditional.fs.invalidate_cache()
        assert tfr.read_table(url, storage_options=options).equals(before)
        clean(url, remove=True, older_than=NOW, storage_options=options)
        own = [name for name in conditional.names() if name.startswith(f"{left}/")]
        outcomes.add(len(own))
        assert tfr.read_table(url, storage_options=options).equals(before)
        if not dying["killed"]:
            break
    assert outcomes == {2, 3}


def test_a_dataset_whose_overwriter_was_killed_is_completed_by_the_call_that_the_error_names(
    conditional: Bucket, dying: dict[str, Any]
) -> None:
    options: dict[str, Any] = {"storage_options": conditional.storage_options}
    url = conditional.url("d/")
    tfr.write_tfrecord({"x": [1, 2]}, url, shards=2, **options)
    dying.update(left=3, killed=False)  # its shards and its manifest
    with pytest.raises(OSError):
        tfr.write_tfrecord({"x": [3, 4]}, url, shards=2, mode="overwrite", **options)
    dying.update(left=None)
    assert dying["killed"]
    calls: list[Callable[[], Any]] = [
        lambda: tfr.compact(url, **options),
        lambda: tfr.delete(url, filters=[("x", "==", 3)], **options),
    ]
    for call in calls:
        with pytest.raises(OSError, match=r"tfr\.convert\(path, path, mode='overwrite'\) completes") as caught:
            call()
        assert caught.value.errno == errno.EBUSY
    tfr.convert(url, url, mode="overwrite", **options)
    for call in calls:
        call()
    assert tfr.read_table(url, **options)["x"].to_pylist() == [4]


@pytest.mark.parametrize("call", [tfr.compact, partial(tfr.delete, filters=[("x", "==", 1)])])
def test_an_error_after_publishing_names_what_removes_the_old_files(
    call: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second call finds nothing to do."""
    path = f"{tmp_path}/d/"
    tfr.write_tfrecord({"x": [1, 2]}, path, shards=2)

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Publication, "_settle", fail)
        with pytest.raises(OSError, match="published nevertheless, and can be read; tfr clean --yes removes the files"):
            call(path)
    rows = tfr.read_table(path)
    call(path)
    assert len(os.listdir(path)) > 2
    clean(path, remove=True, older_than=NOW)
    assert len(os.listdir(path)) == 2
    assert tfr.read_table(path).equals(rows)


def test_an_append_to_a_bucket_meanwhile_is_kept(conditional: Bucket) -> None:
    options = conditional.storage_options
    before = days(conditional.url("d/"), 3, storage_options=options)
    row = {"x": [9], "s": ["z"]}
    append = meanwhile(lambda: tfr.write_tfrecord(row, conditional.url("d/"), mode="append", storage_options=options))
    tfr.compact(conditional.url("d/"), storage_options=options, progress=append)
    table = tfr.read_table(conditional.url("d/"), storage_options=options)
    assert table["x"].to_pylist() == [*before["x"].to_pylist(), 9]
    assert len(conditional.names()) == 3


@pytest.mark.parametrize("kind", ["local", "s3", "gcs", "azure"])
def test_appending_processes_lose_nothing(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    bucket: Bucket | None = None if kind == "local" else request.getfixturevalue(kind)
    target, storage = (f"{tmp_path}/", None) if bucket is None else (bucket.url("d/"), bucket.storage_options)
    writers, times = (3, 6) if COMPLETE else (2, 2)
    tfr.write_tfrecord({"writer": [-1], "at": [-1]}, target, storage_options=storage)
    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(appenders, target, writers, times=times, storage=storage)
        while not appending.done():
            with suppress(OSError):  # another writer was faster
                tfr.compact(tfr.dataset(target, threads=1, storage_options=storage))
            rows = tfr.read_table(tfr.dataset(target, threads=1, storage_options=storage)).num_rows
            assert rows % 3 == 1, "whole appends, for a reader that opens the dataset now"
        done = appending.result()
    tfr.compact(target, storage_options=storage)
    table = tfr.read_table(target, storage_options=storage)
    rows = list(zip(table["writer"].to_pylist(), table["at"].to_pylist(), strict=True))
    assert len(rows) == 1 + 3 * sum(done)
    assert set(Counter(rows).values()) == {1, 3}
    for writer in range(writers):
        own = [at for each, at in rows if each == writer]
        assert own == sorted(own), "each writer's appends are in their order"
    assert done == [times] * writers or kind == "gcs", "claims refuse some appends"
    assert tfr.verify(target, storage_options=storage).ok


def test_the_command(tmp_path: Path) -> None:
    days(tmp_path)
    joined = len([*tmp_path.glob("part-*")])
    run = CliRunner().invoke(group, ["compact", str(tmp_path)])
    (path,) = tmp_path.glob("part-*")
    line = f"{tmp_path}: {joined} files joined into 1, 10 records, {path.stat().st_size:,} bytes\n"
    assert (run.exit_code, run.output) == (0, line)
    run = CliRunner().invoke(group, ["compact", "--json", str(tmp_path)])
    assert json.loads(run.output) == {"path": str(tmp_path), "records": 0, "bytes": 0, "files": 0, "joined": 0}
    run = CliRunner().invoke(group, ["compact", "--max-shard-bytes", "9", str(tmp_path)])
    assert run.output == f"{tmp_path}: nothing to join\n"
    assert str(tfr.compact(tmp_path)) == f"{tmp_path}: nothing to join"
