"""New sharded datasets in a bucket, which are written behind a manifest that readers refuse."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import tfrecord_io as tfr
from interposed import on_commit
from servers import Bucket
from tfrecord_io.store.write.commit_place_remote import ConditionalPlace
from tfrecord_io.store.write.publication import Publication

BIG = 6 << 20  # a multipart upload, with small parts


@pytest.fixture
def fs(s3: Bucket) -> Any:
    return s3.fs


@pytest.fixture
def folder(s3: Bucket) -> str:
    return f"{s3.name}/d"


def table(value: int, rows: int = 6, size: int = 10) -> pa.Table:
    return pa.table({"n": [1000 + value] * rows, "x": pa.array([bytes(size)] * rows, pa.binary())})


def names(fs: Any, folder: str) -> list[str]:
    fs.invalidate_cache()
    return sorted(name.rpartition("/")[2] for name in fs.find(folder))


def uploads(fs: Any, folder: str) -> list[Any]:
    return fs.call_s3("list_multipart_uploads", Bucket=folder.partition("/")[0]).get("Uploads", [])


def values(fs: Any, path: str) -> set[int]:
    return {n - 1000 for n in tfr.read_table(tfr.dataset(path, filesystem=fs))["n"].to_pylist()}


SHARDS = [f"train-{i:05d}-of-00003" for i in range(3)]


@pytest.mark.parametrize("size", [10, BIG])
@pytest.mark.parametrize(
    "keywords", [{"shards": 3}, {"max_shard_bytes": BIG}, {"shards": 2, "compression": "gzip"}], ids=str
)
def test_written_manifest_is_read_back(fs: Any, folder: str, size: int, keywords: dict[str, Any]) -> None:
    data = table(1, 3, size)
    with tfr.open_writer(f"{folder}/", filesystem=fs, **keywords) as writer:
        writer.write(data)
        assert names(fs, folder) == []
    assert names(fs, folder) == ["_MANIFEST.json", *(f.path.rpartition("/")[2] for f in writer.report.files)]
    assert tfr.read_table(tfr.dataset(folder, filesystem=fs)) == data
    assert tfr.count(tfr.dataset(f"{folder}/part-*", filesystem=fs)) == 3
    assert tfr.verify(tfr.dataset(folder, filesystem=fs)).ok
    assert uploads(fs, folder) == []
    with pytest.raises(FileExistsError, match="mode='overwrite'"):
        tfr.write_tfrecord(data, f"{folder}/", filesystem=fs, **keywords)


@pytest.mark.fault(69)
@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("mode", [None, "overwrite"])
def test_failed_completion_leaves_nothing(
    fs: Any, folder: str, monkeypatch: pytest.MonkeyPatch, failing: int, mode: str | None
) -> None:
    def commit(output: Any, real: Any) -> None:
        if output.path.endswith(SHARDS[failing]):
            output.discard()
            raise OSError(5, "mine")
        real()

    on_commit(monkeypatch, commit)
    with pytest.raises(OSError, match="mine"):
        tfr.write_tfrecord(table(2), f"{folder}/train@3", filesystem=fs, mode=mode)
    monkeypatch.undo()
    assert names(fs, folder) == []
    assert uploads(fs, folder) == []
    tfr.write_tfrecord(table(3), f"{folder}/train@2", filesystem=fs)
    assert values(fs, folder) == {3}
    assert len(names(fs, folder)) == 3


@pytest.mark.fault(67)
@pytest.mark.parametrize("last", range(5))
def test_a_writer_that_is_killed_leaves_nothing_or_a_dataset_that_is_refused(
    fs: Any, folder: str, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """The writer dies after this many completions (the first and the last are the manifest's), without cleaning up."""
    left = [last]

    def step() -> None:
        if left[0] == 0:
            raise SystemExit
        left[0] -= 1

    def commit(output: Any, real: Any) -> None:
        try:
            step()
        except SystemExit:
            output.discard()
            raise
        real()

    def update(self: ConditionalPlace, change: Any, is_done: Any) -> Any:
        def changed(manifest: Any) -> Any:
            step()
            return change(manifest)

        return real_update(self, changed, is_done)

    real_update = ConditionalPlace.update
    on_commit(monkeypatch, commit)
    monkeypatch.setattr(ConditionalPlace, "update", update)
    monkeypatch.setattr(Publication, "_withdraw", lambda *a: None)
    with pytest.raises(SystemExit):
        tfr.write_tfrecord(table(2), f"{folder}/train@3", filesystem=fs)
    monkeypatch.undo()
    if last == 0:
        assert names(fs, folder) == []
    else:
        for path in (folder, f"{folder}/train@3", f"{folder}/train-*"):
            with pytest.raises(tfr.errors.CorruptRecordError, match="incomplete"):
                values(fs, path)
        with pytest.raises(FileExistsError):
            tfr.write_tfrecord(table(3), f"{folder}/train@3", filesystem=fs)
    tfr.write_tfrecord(table(3), f"{folder}/train@3", filesystem=fs, mode="overwrite")
    assert values(fs, folder) == {3}


@pytest.mark.fault(68)
@pytest.mark.parametrize("kind", ["s3", "memory"])
def test_a_dataset_that_appears_meanwhile_is_not_replaced_in_place(s3: Bucket, kind: str) -> None:
    """Nothing was there when the writer began, so its shards have the names of those of the other writer."""
    fs, folder = (s3.fs, f"{s3.name}/d") if kind == "s3" else (MemoryFileSystem(), "meanwhile")
    with (  # noqa: PT012
        pytest.raises(OSError, match="another writer has written this dataset at the same time; write it again"),
        tfr.open_writer(f"{folder}/train@3", filesystem=fs, mode="overwrite") as writer,
    ):
        writer.write(table(1))
        tfr.write_tfrecord(table(2), f"{folder}/train@3", filesystem=fs, mode="overwrite")
    assert values(fs, folder) == {2}
    assert tfr.verify(tfr.dataset(folder, filesystem=fs)).ok
    assert len(names(fs, folder)) == 4


@pytest.mark.fault(68)
def test_one_of_two_writers_wins_or_raises(fs: Any, folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second writer publishes between two completions of the first."""
    inner: list[str] = []

    def commit(output: Any, real: Any) -> None:
        real()
        if not inner and output.path.endswith(SHARDS[1]):
            inner.append("once")
            tfr.write_tfrecord(table(2), f"{folder}/train@3", filesystem=fs, mode="overwrite")

    on_commit(monkeypatch, commit)
    with pytest.raises(OSError, match="another writer has written this dataset at the same time"):
        tfr.write_tfrecord(table(1), f"{folder}/train@3", filesystem=fs)
    assert values(fs, folder) == {2}
    assert tfr.verify(tfr.dataset(folder, filesystem=fs)).ok


def test_dataset_replaced_while_it_is_read_is_an_error(fs: Any, folder: str) -> None:
    tfr.write_tfrecord(table(1), f"{folder}/train@3", filesystem=fs)
    with tfr.open_reader(tfr.dataset(folder, filesystem=fs, threads=1), batch_size=1) as reader:
        reader.read_next_batch()
        tfr.write_tfrecord(table(2), f"{folder}/train@3", filesystem=fs, mode="overwrite")
        with pytest.raises(OSError, match="was replaced while it was read"):
            list(reader)
