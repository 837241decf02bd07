"""Old files that may not be removed: the new dataset is published, and a warning says so."""

from __future__ import annotations

import errno
import os
import pickle
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from messages import published_by
from reading import read_by
from servers import Bucket, around_requests
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.store.write.commit_place_local import LocalPlace
from tfrecord_io.store.write.publication import Publication
from tfrecord_io.write.distributed import DistributedWriter

NOT_REMOVED = r"the new dataset is published, but 1 old file could not be removed \(.*\); this package does not read"


def table(value: int) -> pa.Table:
    return pa.table({"n": [value] * 6})


def write_in_tasks(path: str, value: int, **options: Any) -> None:
    with DistributedWriter.begin(path.replace("@2", "@*"), WriteOptions(**options)) as writer:
        writer.commit([writer.write_part(task, [table(value).slice(3 * task, 3)]) for task in range(2)])


WAYS: dict[str, Callable[..., Any]] = {
    "staged": lambda path, value, **options: tfr.write_tfrecord(table(value), path, **options),
    "tasks": write_in_tasks,
}

Refusing = Callable[[], AbstractContextManager[None]]


@pytest.fixture(params=["local", "s3", "azure"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, dict[str, Any], Refusing]:
    """A folder, the options of its storage, and a context in which no shard of it can be removed."""
    refused = PermissionError(errno.EACCES, "Forbidden")

    @contextmanager
    def local() -> Iterator[None]:
        real = os.unlink

        def unlink(path: Any, **keywords: Any) -> None:
            if "-of-" in os.fspath(path):
                raise refused
            real(path, **keywords)

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", unlink)
            yield

    if request.param == "local":
        return str(tmp_path), {}, local
    bucket: Bucket = request.getfixturevalue(request.param)

    @contextmanager
    def remote() -> Iterator[None]:
        async def handle(name: str, key: str, call: Callable[[], Awaitable[Any]]) -> Any:
            if name.startswith("delete_object"):
                raise refused
            return await call()

        with monkeypatch.context() as patch:
            around_requests(bucket, patch, handle)
            yield

    return bucket.url("d"), {"storage_options": bucket.storage_options}, remote


@pytest.mark.matrix
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("action", ["always", "error"])
def test_what_is_left_is_a_warning_that_the_new_dataset_is_published(
    place: tuple[str, dict[str, Any], Refusing], way: str, action: Any
) -> None:
    folder, options, refusing = place
    path, write = f"{folder}/train@2", WAYS[way]
    tfr.write_tfrecord(table(1), f"{folder}/train@3", **options)
    left = r"train-0000\d-of-00003: " if "://" not in folder else ""
    with refusing(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        if action == "error":
            with pytest.raises(UserWarning, match=f"{left}the new dataset is published"):
                write(path, 2, mode="overwrite", **options)
        else:
            write(path, 2, mode="overwrite", **options)
            (warning,) = [str(w.message) for w in caught if w.category is UserWarning]
            assert "the new dataset is published, but" in warning
            assert "could not be removed" in warning
            assert "Forbidden" in warning
    for name in ("", "/train@*", "/train-*"):
        assert read_by(tfr.read_table, f"{folder}{name}", **options) == table(2)
    assert read_by(tfr.count, folder, **options) == 6
    assert read_by(tfr.verify, folder, **options).ok
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(path, 3, mode="overwrite", **options)
    assert read_by(tfr.read_table, folder, **options) == table(3)


def test_an_error_after_publication_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord(table(1), tmp_path / "train@2")
    real = os.replace

    def replace(source: Any, target: Any) -> None:
        if str(source).endswith(".staged"):
            raise OSError(errno.EIO, "Input/output error")
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="error; the new dataset is published nevertheless, and can be read") as caught:
        tfr.write_tfrecord(table(2), tmp_path / "train@2", mode="overwrite")
    monkeypatch.undo()
    assert published_by(pickle.loads(pickle.dumps(caught.value)))
    assert tfr.read_table(tmp_path) == table(2)


@pytest.mark.parametrize("sees", [True, False])
@pytest.mark.parametrize(
    ("mode", "text"), [("append", "appended nevertheless.* do not append"), ("overwrite", "published nevertheless")]
)
def test_an_error_after_publication_says_so_where_nothing_can_be_read_any_more(
    mode: Any, text: str, sees: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfr.write_tfrecord(table(1), f"{tmp_path}/", mode="append")
    path = f"{tmp_path}/" if mode == "append" else tmp_path / "train@2"

    def fail(*_: Any) -> None:
        raise OSError(errno.EBUSY, "Please reduce your request rate.")  # as s3fs does

    def settle(*_: Any) -> None:
        if not sees:
            monkeypatch.setattr(LocalPlace, "find", fail)
        fail()

    monkeypatch.setattr(Publication, "_settle", settle)
    with pytest.raises(OSError, match=f"request rate.; the .*{text}") as caught:
        tfr.write_tfrecord(table(2), path, mode=mode)
    monkeypatch.undo()
    assert published_by(caught.value)
    assert tfr.read_table(path).num_rows == (12 if mode == "append" else 6)


def test_an_index_that_cannot_be_removed_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord(table(1), tmp_path / "train@1", write_index=True)
    real = os.unlink

    def unlink(path: Any, **keywords: Any) -> None:
        if str(path).endswith(".index"):
            raise PermissionError(errno.EPERM, "Operation not permitted")
        real(path, **keywords)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.warns(UserWarning, match=rf"train-00000-of-00001\.index: {NOT_REMOVED}"):
        tfr.write_tfrecord({"n": [2] * 9}, tmp_path / "train@1", mode="overwrite")
    with pytest.warns(tfr.errors.StaleIndexWarning):
        records = tfr.open_random(tmp_path)
    with records:
        assert records[8]["n"] == 2
