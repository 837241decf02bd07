"""Sharded datasets are published atomically, despite failures and concurrent writers and readers."""

from __future__ import annotations

import errno
import fcntl
import io
import itertools
import os
import stat
import subprocess
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from folder_trees import content
from forked import interpreter
from reading import read_by
from tfrecord_io.base import StorageOptions
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.store.operating_systems import System
from tfrecord_io.store.write.atomic import open_output
from tfrecord_io.store.write.commit_place_local import LocalPlace


def table(value: int, rows: int = 60) -> pa.Table:
    return pa.table({"n": [1000 + value] * rows})


def values(path: Any) -> set[int]:
    return {n - 1000 for n in tfr.read_table(tfr.dataset(path, threads=1))["n"].to_pylist()}


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    folder = tmp_path / "d"
    tfr.write_tfrecord(table(0), folder / "train@3")
    return folder


@pytest.mark.fault(66)
@pytest.mark.parametrize("target", ["train@3", "train@2", "new@3"])
def test_a_full_disk_leaves_the_old_dataset(dataset: Path, target: str) -> None:
    before = content(dataset)
    code = f"""
        import resource, pyarrow as pa, tfrecord_io as tfr
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        table = pa.table({{"x": pa.array([bytes(1000)] * 400)}})
        try:
            tfr.write_tfrecord(table, {str(dataset / target)!r}, mode='overwrite')
        except OSError as error:
            assert error.filename.startswith({str(dataset / target.partition("@")[0])!r}), error
            assert "at byte 100000" in str(error), error
        else:
            raise SystemExit("no error")
    """
    subprocess.run([*interpreter(), "-c", textwrap.dedent(code)], check=True)
    assert content(dataset) == before


def after(step: int, real: Callable[..., Any], event: Callable[..., Any]) -> Callable[..., Any]:
    """`real`, except for the calls from number `step` on, which are `event` with `real` and the number since then."""
    numbers = itertools.count(-step)

    def called(*args: Any) -> Any:
        number = next(numbers)
        return real(*args) if number < 0 else event(number, real, *args)

    return called


@pytest.mark.fault(66)
@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_failing_commit_leaves_the_old_dataset_or_the_new(
    dataset: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """One call of this kind fails, and all calls after it."""

    def fails(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    before, real, outcomes = content(dataset), getattr(os, call), set()
    for step in range(100):
        monkeypatch.setattr(os, call, after(step, real, fails))
        try:
            tfr.write_tfrecord(table(1), dataset / "train@3", mode="overwrite", threads=1)
        except OSError as error:
            text = str(error)
            monkeypatch.undo()
            found = values(dataset / "train@3")
            outcomes.add(tuple(found))
            if found == {0}:
                assert content(dataset) == before
            else:
                assert "can be read" in text
                tfr.write_tfrecord(table(0), dataset / "train@3", mode="overwrite")
                assert sorted(content(dataset)) == sorted(before)
                before = content(dataset)
        else:
            break
    monkeypatch.undo()
    assert values(dataset) == {1}
    assert step > 3
    assert (0,) in outcomes


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_an_interrupted_commit_leaves_no_staged_files(
    dataset: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Ctrl-C just after one call of this kind: the old dataset or the new one, which is completed."""

    def is_interrupted(number: int, real: Callable[..., Any], *args: Any) -> None:
        real(*args)
        if number == 0:
            raise KeyboardInterrupt

    before = content(dataset)
    real = getattr(os, call)
    found = []
    for step in range(100):
        monkeypatch.setattr(os, call, after(step, real, is_interrupted))
        try:
            tfr.write_tfrecord(table(1), dataset / "train@3", mode="overwrite", threads=1)
        except KeyboardInterrupt:
            monkeypatch.undo()
            found.append(values(dataset / "train@3"))
            assert sorted(content(dataset)) == sorted(before)
            assert tfr.verify(dataset).ok
            tfr.write_tfrecord(table(0), dataset / "train@3", mode="overwrite")
        else:
            break
    assert found[-1] == {1}
    assert all(each in ({0}, {1}) for each in found)


@pytest.mark.fault(68)
@pytest.mark.parametrize("step", range(3))
def test_concurrent_writer_is_detected_without_locks(dataset: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """The other writer publishes while the shards are being renamed."""
    monkeypatch.setattr(fcntl, "flock", lambda *a: (_ for _ in ()).throw(OSError(errno.ENOLCK, "no locks here")))
    real = LocalPlace.move
    left = [step]

    def rename(self: Any, staged: str, name: str, **k: Any) -> bool:
        moved = real(self, staged, name, **k)
        left[0] -= 1
        if left[0] == -1:
            tfr.write_tfrecord(table(2), dataset / "train@3", mode="overwrite")
        return moved

    monkeypatch.setattr(LocalPlace, "move", rename)
    with pytest.raises(OSError, match="another writer has written this dataset at the same time"):
        tfr.write_tfrecord(table(1), dataset / "train@3", mode="overwrite")
    assert values(dataset) == {2}
    assert tfr.verify(dataset).ok
    assert not [n for n in content(dataset) if n.endswith((".tmp", ".staged"))]


@pytest.mark.fault(68)
def test_reader_during_writing_gets_the_old_or_new_dataset_or_an_error(dataset: Path) -> None:
    stop = threading.Event()

    def work() -> None:
        for i in range(1, 40):
            tfr.write_tfrecord(table(i), dataset / f"train@{2 + i % 3}", mode="overwrite", threads=1)
        stop.set()

    writer = threading.Thread(target=work)
    writer.start()
    whole = 0
    try:
        while not stop.is_set():
            try:
                found = tfr.read_table(tfr.dataset(dataset, threads=1))
            except (OSError, tfr.errors.CorruptRecordError):
                continue
            whole += 1
            assert found.num_rows == 60
            assert len(set(found["n"].to_pylist())) == 1
    finally:
        writer.join()
    assert whole > 0
    assert values(dataset) == {39}


def test_a_replaced_shard_keeps_its_mode(dataset: Path) -> None:
    (dataset / "train-00001-of-00003").chmod(0o600)
    tfr.write_tfrecord(table(1), dataset / "train@3", mode="overwrite")
    assert stat.S_IMODE((dataset / "train-00001-of-00003").stat().st_mode) == 0o600


@pytest.mark.parametrize("shards", [3, 5])
def test_private_shards_stay_private_while_they_are_replaced(
    dataset: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    """Also those of a dataset that gets more shards."""
    for path in dataset.glob("train-*"):
        path.chmod(0o600)
    modes = set()
    real = os.write

    def write(fd: int, data: Any) -> int:
        modes.update(stat.S_IMODE(p.stat().st_mode) for p in dataset.iterdir() if "MANIFEST" not in p.name)
        return real(fd, data)

    monkeypatch.setattr(os, "write", write)
    tfr.write_tfrecord(table(1), dataset / f"train@{shards}", mode="overwrite")
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in dataset.glob("train-*")} == {0o600}


def test_temporary_names_are_ignored_by_readers(tmp_path: Path) -> None:
    with tfr.open_writer(tmp_path / "train@*", max_shard_bytes=1) as writer:
        writer.write(table(0))
        names = os.listdir(tmp_path)
        assert len(names) > 1
        assert all(n.startswith(".") and n.endswith(".tmp") for n in names)
        with pytest.raises(FileNotFoundError):
            tfr.read_table(tmp_path)
    assert values(tmp_path) == {0}


def test_leftovers_of_another_writer_are_ignored(dataset: Path) -> None:
    for name in ("_0123456789abcdef-00000.staged", "._0123456789abcdef-00001.staged.0123456789abcdef.tmp"):
        (dataset / name).write_bytes(b"half")
    assert values(dataset) == {0}
    tfr.write_tfrecord(table(1), dataset / "train@3", mode="overwrite")
    assert values(dataset) == values(dataset / "**") == {1}


def test_dangling_link_does_not_hide_a_dataset(dataset: Path) -> None:
    (dataset / "latest").symlink_to("gone")
    (dataset / "loop").symlink_to("loop")
    for path in (dataset, dataset / "train@3", dataset / "train@*", dataset / "train-*"):
        assert values(path) == {0}
    with pytest.raises(FileExistsError, match="mode='overwrite'"):
        tfr.write_tfrecord(table(1), dataset / "train@2")
    tfr.write_tfrecord(table(1), dataset / "train@2", mode="overwrite")
    assert len(list(dataset.glob("train-*"))) == 2


def test_shard_that_is_a_dangling_link_is_missing(dataset: Path) -> None:
    (dataset / "train-00001-of-00003").unlink()
    (dataset / "train-00001-of-00003").symlink_to("gone")
    for read in (tfr.read_table, tfr.count):
        with pytest.raises(FileNotFoundError, match=r"is missing.*train-00001-of-00003"):
            read(dataset)
    (dataset / "_MANIFEST-train.json").unlink()
    with pytest.raises(FileNotFoundError, match="train-00001-of-00003"):
        tfr.read_table(dataset)


def test_folder_of_links_is_replaced_but_not_their_targets(dataset: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    for path in dataset.iterdir():
        (links / path.name).symlink_to(path)
    before = content(dataset)
    tfr.write_tfrecord(table(1), links / "train@2", mode="overwrite")
    assert (values(links), values(dataset)) == ({1}, {0})
    assert content(dataset) == before


@pytest.mark.fault(67)
@pytest.mark.parametrize("target", ["train@3", "train@2"])
def test_random_access_reads_the_staged_shards_of_a_killed_writer(dataset: Path, target: str) -> None:
    code = f"""
        import os, pyarrow as pa, tfrecord_io as tfr
        from tfrecord_io.store.write.commit_place_local import LocalPlace
        LocalPlace.move = lambda self, staged, name, **k: os._exit(9)
        tfr.write_tfrecord(pa.table({{"n": [1001] * 60}}), {str(dataset / target)!r}, mode='overwrite')
    """
    assert subprocess.run([*interpreter(), "-c", textwrap.dedent(code)], check=False).returncode == 9
    assert values(dataset) == {1}
    for _ in range(2):
        with tfr.open_random(dataset) as records:
            assert {records[i]["n"] for i in range(60)} == {1001}
        write_indexes(dataset)
    assert tfr.count(dataset) == 60


def test_a_shard_in_a_folder_waits_for_a_manifest_that_another_writer_could_not_make_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is open before there is a manifest; a loss of power would leave a shard that no writer finds."""
    calls: list[str] = []
    sync, replace = System.sync_directory, System.replace

    def sync_or_fail(self: System, directory: str) -> None:
        if calls[-1:] == ["_MANIFEST.json"] and "failed" not in calls:
            calls.append("failed")
            raise OSError(errno.EIO, "it fails", directory)
        sync(self, directory)
        calls.append(f"sync {os.path.basename(directory.rstrip('/'))}")

    def note_name(self: System, source: str, target: str) -> None:
        replace(self, source, target)
        calls.append(os.path.basename(target))

    def data() -> Iterator[pa.Table]:
        yield pa.table({"n": [0] * 1000, "p": ["a"] * 1000})
        calls.clear()
        with pytest.raises(OSError, match="it fails"):
            tfr.write_tfrecord(pa.table({"n": [1], "p": ["b"]})[:0], path, partition_by="p", mode="append")
        yield pa.table({"n": [0], "p": ["a"]})

    monkeypatch.setattr(System, "sync_directory", sync_or_fail)
    monkeypatch.setattr(System, "replace", note_name)
    path = tmp_path / "d"
    tfr.write_tfrecord(data(), path, partition_by="p", mode="append", threads=1)
    shard = next(at for at, name in enumerate(calls) if name.endswith(".tfrecord"))
    assert calls[shard - 3 : shard] == ["_MANIFEST.json", "failed", "sync d"]
    assert tfr.count(path) == 1001


@pytest.mark.parametrize("below", ["", "deeper/"])
def test_a_file_where_the_directory_should_be_is_named(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("gone")
    for name in ("file", "link"):
        with pytest.raises(NotADirectoryError, match=f"expected a directory.*{name}'"):
            tfr.write_tfrecord(table(1), f"{tmp_path}/{name}/{below}train@2", mode="overwrite")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "link"]


@pytest.fixture(params=["local", "s3", "azure"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    """A folder, on disk and in a bucket, and the keywords to read and write in it."""
    if request.param == "local":
        return str(tmp_path), {}
    bucket = request.getfixturevalue(request.param)
    return bucket.url("d"), {"storage_options": bucket.storage_options}


def write_record(path: str, keywords: dict[str, Any]) -> None:
    if "://" not in path:
        os.makedirs(os.path.dirname(path), exist_ok=True)
    file = io.BytesIO()
    with tfr.RecordWriter(file) as writer:
        writer.write(tfr.encode_example({"n": 1001}))
    output = open_output(path, StorageOptions(**keywords))  # under any name
    output.write(file.getvalue())
    output.commit()


@pytest.mark.matrix
@pytest.mark.parametrize("mode", [None, "overwrite"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "name", ["a.tfrecord", "train-00000-of-00001", "part-00000-of-00001.tfrecord", "x=1/a.tfrec", "noext"]
)
def test_a_directory_with_foreign_files_is_refused(
    folder: tuple[str, dict[str, Any]], name: str, late: bool, mode: str | None
) -> None:
    """Whether they exist when writing begins, or are created meanwhile."""
    path, keywords = folder
    if not late:
        write_record(f"{path}/{name}", keywords)
    refused = pytest.raises(FileExistsError, match="choose another directory")
    with refused as caught, tfr.open_writer(f"{path}/", mode=mode, **keywords) as writer:
        writer.write(table(2))
        write_record(f"{path}/{name}", keywords)
    assert caught.value.filename == f"{path}/{name}"
    assert f"('{name}')" in str(caught.value)
    assert read_by(tfr.read_table, f"{path}/**", **keywords)["n"].to_pylist() == [1001]


def test_a_directory_with_other_files_is_accepted(folder: tuple[str, dict[str, Any]]) -> None:
    path, keywords = folder
    for name in ("README.txt", "_old.tfrecord", "a.csv", "sub/a.tfrecord"):
        write_record(f"{path}/{name}", keywords)
    for value, mode in ((1, None), (2, "overwrite")):
        tfr.write_tfrecord(table(value), f"{path}/", shards=2, mode=mode, **keywords)
        assert set(read_by(tfr.read_table, path, **keywords)["n"].to_pylist()) == {1000 + value}
    with pytest.raises(FileExistsError, match="mode='overwrite' replaces it"):
        tfr.write_tfrecord(table(3), f"{path}/", **keywords)
    tfr.write_tfrecord(table(4), f"{path}/train@2", **keywords)  # a name of its own: readers can tell it apart
    assert set(read_by(tfr.read_table, f"{path}/train@2", **keywords)["n"].to_pylist()) == {1004}
