"""`tfr clean` finds what killed writers left behind, and nothing else."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import fsspec
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from counted_calls import calls
from servers import Bucket, Web, around_requests
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.store.write.atomic import open_output
from tfrecord_io.store.write.cleaning import DAY, clean

NOW = timedelta(0)


def begin_upload(s3: Bucket, key: str, *sizes: int) -> str:
    """An upload whose writer was killed."""
    upload = s3.fs.call_s3("create_multipart_upload", Bucket=s3.name, Key=key)["UploadId"]
    for number, size in enumerate(sizes, 1):
        s3.fs.call_s3("upload_part", Bucket=s3.name, Key=key, UploadId=upload, PartNumber=number, Body=bytes(size))
    return str(upload)


def test_uploads_under_a_prefix_are_listed_and_aborted_by_id(s3: Bucket) -> None:
    uploads = [
        begin_upload(s3, "data/a.tfrecord", 1000, 500),
        begin_upload(s3, "data/a.tfrecord"),
        begin_upload(s3, "data/sub/b"),
    ]
    other = begin_upload(s3, "data.other/c", 10)
    leftovers = clean(s3.url("data/"), older_than=NOW, storage_options=s3.storage_options)
    assert {leftover.upload for leftover in leftovers} == set(uploads)
    assert sorted((leftover.path, leftover.bytes) for leftover in leftovers) == [
        (s3.url("data/a.tfrecord"), 0),
        (s3.url("data/a.tfrecord"), 1500),
        (s3.url("data/sub/b"), 0),
    ]
    assert len(s3.uploads()) == 4
    assert not clean(s3.url("data/"), remove=True, older_than=100 * 365 * DAY, storage_options=s3.storage_options)
    assert clean(s3.url("data/"), remove=True, older_than=NOW, storage_options=s3.storage_options) == leftovers
    assert [upload["UploadId"] for upload in s3.uploads()] == [other]
    assert len(clean(s3.url(), older_than=NOW, storage_options=s3.storage_options)) == 1


def test_more_uploads_than_fit_in_a_page(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = {begin_upload(s3, f"{i % 5}") for i in range(12)}
    call = s3.fs.call_s3

    def small_pages(method: str, **arguments: object) -> object:
        return call(method, **({"MaxUploads": 5} if method == "list_multipart_uploads" else {}), **arguments)

    monkeypatch.setitem(vars(s3.fs), "call_s3", small_pages)
    assert {leftover.upload for leftover in clean(s3.url(), older_than=NOW, storage_options=s3.storage_options)} == ids


def leave(path: Path, age: float) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(b"half")
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_temporary_files_of_a_folder_and_below(tmp_path: Path) -> None:
    old = [leave(tmp_path / f"{folder}.a.tfrecord.0123456789abcdef.tmp", 100_000) for folder in ("", "sub/")]
    young = leave(tmp_path / ".b.0123456789abcdef.tmp", 10)
    others = [
        leave(tmp_path / n, 100_000)
        for n in ("a.tfrecord", ".a.tmp", "a.0123456789abcdef.tmp", ".a.0123456789ABCDEF.tmp")
    ]
    assert sorted(leftover.path for leftover in clean(tmp_path)) == sorted(map(str, old))
    clean(tmp_path, remove=True)
    assert not any(path.exists() for path in old)
    assert all(path.exists() for path in (young, *others))
    with pytest.raises(FileNotFoundError):
        clean(tmp_path / "none")


def test_the_folder_of_a_killed_writer_is_removed_whole(tmp_path: Path) -> None:
    image = leave(tmp_path / "sub" / ".pictures.0123456789abcdef.tmp" / "cat" / "1.jpg", 100_000)
    folder = image.parent.parent
    leave(folder / ".metadata.csv.0123456789abcdef.tmp", 100_000)
    (tmp_path / ".link.0123456789abcdef.tmp").symlink_to(tmp_path / "sub")
    assert clean(tmp_path, remove=True) == []  # its folders are young
    for path in (folder, image.parent):
        os.utime(path, (time.time() - 100_000,) * 2)
    (leftover,) = clean(tmp_path, remove=True)
    assert (leftover.path, leftover.bytes) == (str(folder), 8)
    assert not folder.exists()
    assert sorted(os.listdir(tmp_path)) == [".link.0123456789abcdef.tmp", "sub"]


def test_files_whose_writers_finish_during_the_search_are_no_leftovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left, renamed = (leave(tmp_path / f".{name}.0123456789abcdef.tmp", 100_000) for name in "ab")
    image = leave(tmp_path / ".pictures.0123456789abcdef.tmp" / "1.jpg", 100_000)
    lstat = os.lstat

    def finish(path: str) -> os.stat_result:
        if Path(path) in (renamed, image):
            os.unlink(path)
        return lstat(path)

    monkeypatch.setattr(os, "lstat", finish)
    found = clean(tmp_path, older_than=NOW)
    assert [leftover.path for leftover in found] == [str(left), str(image.parent)]
    monkeypatch.undo()
    left.unlink()
    image.parent.rmdir()
    for leftover in found:
        leftover._remove()


def test_temporary_files_of_a_killed_writer_are_found(tmp_path: Path) -> None:
    out = open_output(tmp_path / ("long name " * 9))
    out.write(b"half")
    (leftover,) = clean(tmp_path, older_than=NOW)
    assert os.listdir(tmp_path) == [os.path.basename(leftover.path)]
    out.discard()
    fs = fsspec.filesystem("memory")
    fs.makedirs("/cleaned", exist_ok=True)
    remote = open_output("memory://cleaned/a.tfrecord")
    remote.write(b"half")
    remote._file.close()  # type: ignore[attr-defined]
    assert [leftover.bytes for leftover in clean("memory://cleaned", remove=True, older_than=NOW)] == [4]
    assert not fs.ls("/cleaned")


def test_unpublished_shards_are_found_unless_a_manifest_lists_them(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3, 4]}, tmp_path / "train@2")
    left = tmp_path / "_0123456789abcdef-00000.staged"
    awaited = tmp_path / "_fedcba9876543210-00000.staged"
    left.write_bytes(b"")
    (tmp_path / "train-00000-of-00002").rename(awaited)
    manifest = tmp_path / "_MANIFEST-train.json"
    document = json.loads(manifest.read_text())
    document["files"][0]["staged"] = awaited.name
    manifest.write_text(json.dumps(document))
    assert [os.path.basename(leftover.path) for leftover in clean(tmp_path, remove=True, older_than=NOW)] == [left.name]
    assert tfr.read_table(tmp_path / "train@2")["x"].to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize("content", [b"[", b"\0" * 10, None], ids=["not JSON", "zeros", "a directory"])
def test_a_damaged_manifest_does_not_stop_the_search(tmp_path: Path, content: bytes | None) -> None:
    """Staged shards next to the manifest are kept, as it may list them; everything else is found."""
    damaged = tmp_path / "a" / "_MANIFEST-train.json"
    damaged.parent.mkdir()
    damaged.mkdir() if content is None else damaged.write_bytes(content)
    staged = damaged.with_name("_0123456789abcdef-00000.staged")
    staged.write_bytes(b"")
    left = [leave(tmp_path / folder / ".a.0123456789abcdef.tmp", 100_000) for folder in ("a", "b")]
    with nullcontext() if content is None else pytest.warns(UserWarning, match="staged shards are kept, as a manifest"):
        found = clean(tmp_path, remove=True, older_than=NOW)
    removed = {*left, staged} if content is None else {*left}
    assert {Path(leftover.path) for leftover in found} == removed
    assert staged.exists() == (content is not None)


def test_an_empty_path_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The empty path of an unset variable does not stand for the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".a.tfrecord.0123456789abcdef.tmp").touch()
    with pytest.raises(FileNotFoundError):
        clean("", remove=True, older_than=timedelta(0))
    assert len(clean(".", older_than=timedelta(0))) == 1


def test_storage_without_leftovers_raises(web: Web) -> None:
    with pytest.raises(ValueError, match="leave nothing behind"):
        clean(web.url("folder/"))


def test_the_command_lists_first_and_removes_with_yes(tmp_path: Path) -> None:
    path = leave(tmp_path / ".a.0123456789abcdef.tmp", 100_000)
    run = CliRunner().invoke(command, ["clean", str(tmp_path)])
    assert (run.exit_code, path.exists()) == (0, True)
    assert str(path) in run.output
    assert "4 bytes" in run.output
    assert "use --yes to remove them" in run.output
    assert "no leftovers found" in CliRunner().invoke(command, ["clean", str(tmp_path), "--older-than", "2d"]).output
    assert json.loads(CliRunner().invoke(command, ["clean", str(tmp_path), "--json"]).output)[0]["bytes"] == 4
    assert "1 removed" in CliRunner().invoke(command, ["clean", str(tmp_path), "--yes"]).output
    assert not path.exists()
    assert CliRunner().invoke(command, ["clean", str(tmp_path), "--older-than", "soon"]).exit_code == 2


def test_shards_that_were_not_added_to_their_dataset_are_left(tmp_path: Path) -> None:
    for name in ("a@*", "b@*"):
        tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/{name}", mode="append")
        (tmp_path / f"{name[0]}-00001-0123456789abcdef.tfrecord").write_bytes(b"")
    (tmp_path / "_MANIFEST-b.json").unlink()  # then its shards are files like others
    claims = tmp_path / "_APPEND-a"
    claims.mkdir()
    (claims / "0123456789abcdef.claim").write_bytes(b"")
    left = clean(tmp_path, remove=True, older_than=timedelta(0))
    assert {Path(each.path).name for each in left} == {"a-00001-0123456789abcdef.tfrecord", "0123456789abcdef.claim"}
    assert tfr.read_table(f"{tmp_path}/a@*")["x"].to_pylist() == [1]


def test_indexes_of_other_tools_are_not_taken_for_those_of_shards_that_are_gone(tmp_path: Path) -> None:
    names = ["x-00001-of-00002", "faiss-00000-of-00008", "x-00003-0123456789abcdef.tfrecord"]
    for folder in ("other", "own"):
        for name in names:
            for suffix in (".index", ".column_index"):
                (tmp_path / folder).mkdir(exist_ok=True)
                (tmp_path / folder / f"{name}{suffix}").write_bytes(b"")
    tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/own/x@1")
    left = {str(Path(each.path).relative_to(tmp_path)) for each in clean(tmp_path, older_than=NOW)}
    expected = {f"other/{names[2]}", f"own/{names[0]}", f"own/{names[2]}"}
    assert left == {f"{name}{suffix}" for name in expected for suffix in (".index", ".column_index")}


def test_a_folder_that_may_not_be_listed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = leave(tmp_path / ".a.0123456789abcdef.tmp", 100_000)
    (tmp_path / "sub").mkdir()
    real = os.scandir

    def scandir(path: str) -> Any:
        if os.path.basename(path) == "sub":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.warns(UserWarning, match=r"sub: this folder was not searched \(Permission denied\)"):
        assert [each.path for each in clean(tmp_path)] == [str(path)]
    with pytest.raises(PermissionError):  # not: no leftovers
        clean(tmp_path / "sub")


def test_a_file_is_not_a_folder_without_leftovers(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    with pytest.raises(NotADirectoryError):
        clean(tmp_path / "a.tfrecord")


def test_a_manifest_is_read_once_for_all_folders(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"x": range(40), "p": range(40)}, s3.url("d/"), partition_by=["p"], **options)
    s3.fs.pipe_file(f"{s3.name}/d/p=3/part-00001-0123456789abcdef.tfrecord", b"")
    requests: list[str] = []

    async def handle(name: str, key: str, call: Callable[[], Awaitable[Any]]) -> Any:
        requests.append(name)
        return await call()

    around_requests(s3, monkeypatch, handle)
    (left,) = clean(s3.url("d/"), older_than=NOW, **options)
    assert left.path == s3.url("d/p=3/part-00001-0123456789abcdef.tfrecord")
    assert len(requests) < 10


def test_the_time_is_linear_in_the_folders(tmp_path: Path) -> None:
    counts = []
    for folders in (20, 200):
        path = tmp_path / f"{folders}"
        tfr.write_tfrecord({"p": range(folders)}, f"{path}/", partition_by=["p"], mode="append")
        counts.append(calls(lambda path=path: clean(path, older_than=NOW)))
    assert counts[1] < 11 * counts[0], counts


def test_a_manifest_that_is_replaced_while_folders_are_listed_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"x": range(3), "p": range(3)}
    tfr.write_tfrecord(rows, f"{tmp_path}/d/", partition_by=["p"])
    real = os.walk

    def walk(root: str, **keywords: Any) -> Iterator[Any]:
        for number, found in enumerate(real(root, **keywords)):
            yield found
            if number == 1:
                tfr.write_tfrecord(rows, f"{tmp_path}/d/", partition_by=["p"], mode="append")

    monkeypatch.setattr(os, "walk", walk)
    assert clean(tmp_path / "d", older_than=-DAY) == []
