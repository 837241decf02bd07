"""Sharded datasets in a bucket that replace another: readers get the old or the new one, whatever happens."""

from __future__ import annotations

import errno
import pickle
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any, ClassVar

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import tfrecord_io as tfr
from interposed import on_commit
from rounds import each_step
from servers import CHANGES, Bucket, around_requests
from tfrecord_io.base import ReadOptions
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.scan_rows import ScanRows
from tfrecord_io.store import clean
from tfrecord_io.store.write import commit_place_remote
from tfrecord_io.store.write.commit_place_remote import RemotePlace
from tfrecord_io.store.write.publication import Publication


def write(fs: Any, path: str, value: int, mode: Any = "overwrite") -> None:
    tfr.write_tfrecord({"n": [value] * 6}, path, filesystem=fs, mode=mode, threads=1)


def values(fs: Any, path: str) -> set[int]:
    return set(tfr.read_table(tfr.dataset(path, filesystem=fs))["n"].to_pylist())


def names(fs: Any, folder: str) -> list[str]:
    fs.invalidate_cache()
    return sorted(name.rpartition("/")[2] for name in fs.find(folder))


def published(shards: int) -> list[str]:
    return ["_MANIFEST-train.json", *(f"train-{i:05d}-of-{shards:05d}" for i in range(shards))]


class Mortal(MemoryFileSystem):
    """A filesystem without atomic commits that refuses every change after some: as if the writer had been killed."""

    protocol = "mortal"
    cachable = False
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    left: ClassVar[int | None] = None

    @classmethod
    def change(cls) -> None:
        if cls.left is not None:
            if cls.left == 0:
                raise PermissionError("killed")
            cls.left -= 1

    def _open(self, path: Any, mode: str = "rb", **keywords: Any) -> Any:
        if mode != "rb":
            self.change()
        return super()._open(path, mode, **keywords)

    def cp_file(self, *arguments: Any, **keywords: Any) -> None:
        self.change()
        super().cp_file(*arguments, **keywords)

    def rm_file(self, *arguments: Any) -> None:
        self.change()
        super().rm_file(*arguments)

    def _rm(self, *arguments: Any) -> None:
        self.change()
        super()._rm(*arguments)


Dying = tuple[Any, str, Callable[[int | None], None]]


@pytest.fixture(params=["s3", "gcs", "azure", "renames"])
def dying(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dying]:
    """A filesystem, a folder in it, and a function that sets the number of changes that it still accepts."""
    if request.param == "renames":
        yield Mortal(), "folder", lambda left: setattr(Mortal, "left", left)
        Mortal.left = None
        Mortal.store.clear()
        return
    bucket: Bucket = request.getfixturevalue(request.param)
    state: dict[str, int | None] = {"left": None}

    def change() -> None:
        left = state["left"]
        if left is not None:
            if left == 0:
                raise PermissionError("killed")
            state["left"] = left - 1

    async def handle(name: str, key: str, made: Callable[[], Awaitable[Any]]) -> Any:
        if name in CHANGES:
            change()
        return await made()

    if request.param != "gcs":
        around_requests(bucket, monkeypatch, handle)
        yield bucket.fs, f"{bucket.name}/d", lambda left: state.update(left=left)
        return
    real = type(bucket.fs)._request

    async def call(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        if method in {"POST", "PUT", "DELETE"}:
            change()
        if method == "DELETE" and "/upload/" in str(arguments[:1]):  # of a session, which the emulator does not have
            return 204, {}, None, b""
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(type(bucket.fs), "_request", call)
    yield bucket.fs, f"{bucket.name}/d", lambda left: state.update(left=left)


@pytest.mark.fault(67)
def test_a_writer_killed_after_any_change_leaves_the_old_or_the_new_dataset(dying: Dying) -> None:
    """Each writer replaces what the one before left, with another number of shards."""
    fs, folder, live = dying
    write(fs, f"{folder}/train@3", 0, None)
    current, seen = 0, set()
    for changes in each_step():
        live(changes)
        shards = 2 + changes % 2
        try:
            write(fs, f"{folder}/train@{shards}", changes + 1)
        except PermissionError:
            pass
        else:
            live(None)
            break
        live(None)
        (value,) = values(fs, folder)
        assert value in (current, changes + 1)
        seen.add(value == current)
        for path in (f"{folder}/train@*", f"{folder}/train-*", f"{folder}/train") if fs.protocol == "mortal" else ():
            assert values(fs, path) == {value}
        assert tfr.verify(tfr.dataset(folder, filesystem=fs)).ok
        current = value
    assert seen == {True, False}
    assert values(fs, folder) == {changes + 1}
    assert set(names(fs, folder)) >= set(published(shards))
    clean(folder, storage_options=fs, remove=True, older_than=timedelta(0))
    left = [name for name in names(fs, folder) if not name.startswith(".")]
    assert left == published(shards)
    assert values(fs, folder) == {changes + 1}


def test_completed_shards_have_their_usual_names(bucket: Bucket) -> None:
    fs, folder = bucket.fs, f"{bucket.name}/d"
    for value, shards in enumerate((3, 3, 2, 4)):
        write(fs, f"{folder}/train@{shards}", value)
        assert names(fs, folder) == published(shards)
        assert values(fs, folder) == {value}
        assert tfr.verify(tfr.dataset(folder, filesystem=fs)).ok
    fs.touch(f"{folder}/train-00000-of-00004.index", truncate=True)
    write(fs, f"{folder}/train@4", 9)
    assert names(fs, folder) == published(4)


@pytest.fixture
def unfinished(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder with a dataset whose writer was killed after it was published: no shard has its final name yet."""
    folder = f"{s3.name}/d"
    write(s3.fs, f"{folder}/train@2", 1)

    def die(*_: Any) -> None:
        raise PermissionError(errno.EACCES, "killed")

    with monkeypatch.context() as patch:
        patch.setattr(Publication, "_settle", die)
        with pytest.raises(PermissionError, match="killed") as caught:
            write(s3.fs, f"{folder}/train@3", 2)
    text = "killed; the new dataset is published nevertheless, and can be read; writing it again completes it"
    assert caught.value.strerror == text
    assert sum(name.endswith(".staged") for name in names(s3.fs, folder)) == 3
    return folder


def test_all_calls_read_a_dataset_whose_shards_have_only_staged_names(s3: Bucket, unfinished: str) -> None:
    fs = s3.fs
    assert values(fs, unfinished) == values(fs, f"{unfinished}/train@3") == {2}
    assert tfr.count(tfr.dataset(unfinished, filesystem=fs)) == 6
    assert tfr.verify(tfr.dataset(unfinished, filesystem=fs)).ok
    assert tfr.read_metadata(tfr.dataset(unfinished, filesystem=fs)).records == 6
    assert str(tfr.describe(tfr.dataset(unfinished, filesystem=fs)))
    with tfr.open_random(tfr.dataset(unfinished, filesystem=fs)) as records:
        assert records[[0, 5]]["n"].to_pylist() == [2, 2]
    batches = list(tfr.iter_arrays(tfr.dataset(unfinished, filesystem=fs), batch_size=2, worker=(1, 2)))
    assert {n for batch in batches for n in batch["n"].tolist()} == {2}
    assert list(tfr.RecordReader(tfr.dataset(unfinished, filesystem=fs)))
    with tfr.open_reader(tfr.dataset(unfinished, include_file_paths="file", filesystem=fs)) as reader:
        assert set(reader.read_all()["file"].to_pylist()) == {f"s3://{unfinished}/{name}" for name in published(3)[1:]}


def test_a_scan_survives_that_its_shards_get_their_final_names(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    fs, folder = s3.fs, f"{s3.name}/d"
    write(fs, f"{folder}/train@2", 1)
    kept: list[Any] = []
    real = Publication._settle

    def complete(self: Any, *arguments: Any) -> None:
        scan = CallSource(folder).scan(ReadOptions(filesystem=fs))
        kept.extend([scan, pickle.dumps(scan), tfr.open_random(tfr.dataset(folder, filesystem=fs))])
        real(self, *arguments)

    monkeypatch.setattr(Publication, "_settle", complete)
    write(fs, f"{folder}/train@2", 2)
    monkeypatch.undo()
    assert names(fs, folder) == published(2)
    scan, pickled, records = kept
    assert all(source.shard.staged is not None for source in scan.sources)
    for current in (scan, pickle.loads(pickled)):
        assert set(ScanRows(current).read()["n"].to_pylist()) == {2}
    assert records[0]["n"] == 2
    write(fs, f"{folder}/train@2", 3)
    with pytest.raises(OSError, match="was replaced while it was read"):
        ScanRows(scan).read()


def test_the_next_writer_replaces_an_unfinished_dataset(s3: Bucket, unfinished: str) -> None:
    with pytest.raises(FileExistsError):
        write(s3.fs, f"{unfinished}/train@3", 3, None)
    write(s3.fs, f"{unfinished}/train@3", 3)
    assert names(s3.fs, unfinished) == published(3)
    assert values(s3.fs, unfinished) == {3}


def test_clean_keeps_staged_shards_that_a_manifest_lists(s3: Bucket, unfinished: str) -> None:
    s3.fs.pipe(f"{unfinished}/_0123456789abcdef-00000.staged", b"left")
    s3.fs.pipe(f"{unfinished}/sub/_0123456789abcdef-00000.staged", b"left")
    found = clean(unfinished, storage_options=s3.fs, remove=True, older_than=timedelta(0))
    assert sorted(leftover.path for leftover in found) == [
        f"s3://{unfinished}/_0123456789abcdef-00000.staged",
        f"s3://{unfinished}/sub/_0123456789abcdef-00000.staged",
        *(f"s3://{unfinished}/train-0000{number}-of-00002" for number in range(2)),  # which it replaces
    ]
    assert values(s3.fs, unfinished) == {2}
    manifest = f"{unfinished}/_MANIFEST-train.json"
    s3.fs.pipe(manifest, b"{")
    with pytest.warns(UserWarning, match="staged shards are kept"):
        assert clean(unfinished, storage_options=s3.fs, older_than=timedelta(0)) == []
    s3.fs.rm_file(manifest)
    assert len(clean(unfinished, storage_options=s3.fs, remove=True, older_than=timedelta(0))) == 3


def test_clean_finds_staged_shards_in_gcs(gcs: Bucket) -> None:
    gcs.fs.pipe(f"{gcs.name}/d/_0123456789abcdef-00000.staged", b"left")
    found = clean(gcs.url("d/"), storage_options=gcs.storage_options, remove=True, older_than=timedelta(0))
    assert [leftover.bytes for leftover in found] == [4]
    assert gcs.names() == []


@pytest.mark.fault(69)
@pytest.mark.parametrize("stored", [False, True], ids=["not stored", "stored"])
@pytest.mark.parametrize("failing", range(3))
def test_a_failed_upload_leaves_the_old_dataset(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, failing: int, stored: bool
) -> None:
    fs, folder = s3.fs, f"{s3.name}/d"
    write(fs, f"{folder}/train@3", 1)

    def commit(output: Any, real: Any) -> None:
        if output.path.endswith(published(3)[1 + failing]):
            if stored:
                real()
            else:
                output.discard()
            raise OSError(5, "mine")
        real()

    on_commit(monkeypatch, commit)
    with pytest.raises(OSError, match="mine"):
        write(fs, f"{folder}/train@3", 2)
    monkeypatch.undo()
    assert values(fs, folder) == {1}
    assert names(fs, folder) == published(3)
    assert s3.uploads() == []


@pytest.mark.fault(68)
def test_the_last_of_two_writers_wins_and_the_other_raises(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second writer publishes between two copies of the first."""
    fs, folder = s3.fs, f"{s3.name}/d"
    write(fs, f"{folder}/train@3", 1)
    monkeypatch.setattr(commit_place_remote, "_MOVES", 1)
    real = RemotePlace.move
    inner: list[str] = []

    def copy(self: Any, staged: str, name: str, **k: Any) -> bool:
        moved = real(self, staged, name, **k)
        if not inner:
            inner.append(name)
            write(fs, f"{folder}/train@3", 2)
        return moved

    monkeypatch.setattr(RemotePlace, "move", copy)
    with pytest.raises(OSError, match="another writer has written this dataset at the same time"):
        write(fs, f"{folder}/train@3", 3)
    assert values(fs, folder) == {2}
    assert tfr.verify(tfr.dataset(folder, filesystem=fs)).ok


def test_a_copy_of_another_size_is_reported(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    fs, folder = s3.fs, f"{s3.name}/d"
    write(fs, f"{folder}/train@2", 1)
    monkeypatch.setattr(RemotePlace, "move", lambda self, staged, name, **k: fs.touch(self.directory + name) or True)
    with pytest.raises(OSError, match="has another size"):
        write(fs, f"{folder}/train@2", 2)
    assert values(fs, folder) == {2}
