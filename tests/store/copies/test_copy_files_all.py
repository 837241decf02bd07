"""Copies of single files, of directories without a manifest, and of all files below a directory."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.compute
import pyarrow.fs
import pytest
from fsspec.implementations.dirfs import DirFileSystem

import tfrecord_io as tfr
from copy_stores import STORES, TABLE, Store, copied
from servers import Bucket

pytestmark = pytest.mark.matrix


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_folders_of_a_dataset_are_copied_as_one_dataset(store: Store) -> None:
    store.write("d/", partition_by="day")
    folders = [store.path("d/day=0/"), store.path("d/day=2/")]
    report = tfr.copy(folders, store.path("e"), storage_options=store.options)
    assert len(report.copied) == 2
    assert store.read("e")["x"].to_pylist() == [x for day in (0, 2) for x in range(day, 1000, 3)]
    assert tfr.copy(folders, store.path("e"), mode="overwrite", storage_options=store.options).copied == report.copied


def test_no_two_files_are_copied_to_one_name(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3]}, f"{tmp_path}/d/", shards=3)
    (tmp_path / "o").mkdir()
    tfr.write_tfrecord({"x": [4]}, tmp_path / "o/part-00000-of-00003.tfrecord")
    other = tmp_path / "o/part-00000-of-00003.tfrecord"
    for source, text in [
        ([other, tmp_path / "d"], "d/part-00000-of-00003.tfrecord' would have one name in the target"),
        ([other, other], "part-00000-of-00003.tfrecord' would be copied twice"),
        ([tmp_path / "d", tmp_path / "d/"], "d/_MANIFEST.json' would be copied twice"),
        ([tmp_path / "d", tmp_path / "d/part-00001*"], "d/_MANIFEST.json' would be copied twice"),
        (tfr.dataset(tmp_path / "d") + tfr.dataset(tmp_path / "d"), "d/_MANIFEST.json' would be copied twice"),
    ]:
        with pytest.raises(ValueError, match=text):
            tfr.copy(source, tmp_path / "e")
        assert not (tmp_path / "e").exists()


def test_question_marks_in_names_are_not_the_query_of_an_address(s3: Bucket, tmp_path: Path) -> None:
    names = ["a?v=1.tfrecord", "a?v=2.tfrecord"]
    for name in names:
        tfr.write_tfrecord({"x": [1]}, s3.url(name), storage_options=s3.storage_options, write_index=True)
    paths = tfr.dataset([*map(s3.url, names)], storage_options=s3.storage_options)
    tfr.copy(paths, tmp_path / "d")
    assert {path.name for path in (tmp_path / "d").iterdir()} == {*names, *(f"{name}.index" for name in names)}


def test_a_directory_without_a_manifest_with_its_files_of_tfds(tmp_path: Path) -> None:
    tfr.formats.write_tfds({"x": [1, 2, 3], "y": [b"a", b"b", b"c"]}, tmp_path / "d/1.0.0")
    for name in ("notes.md", "sub/more.txt"):
        (tmp_path / "d/1.0.0" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "d/1.0.0" / name).write_text(name)
    (tmp_path / "d/1.0.0/.x.tfrecord.0123456789abcdef.tmp").write_text("")
    source, others = tmp_path / "d/1.0.0", {"notes.md", "sub/more.txt"}
    expected = {str(path.relative_to(source)) for path in source.rglob("*") if path.is_file()}
    expected = {name for name in expected if not name.startswith(("_MANIFEST", "."))}
    report = tfr.copy(source, tmp_path / "e/1.0.0")
    assert set(report.copied) == expected - others
    assert report.copied[-1] == "dataset_info.json"
    assert tfr.read_table(tfr.dataset(tmp_path / "e", split="all"))["x"].to_pylist() == [1, 2, 3]
    assert set(tfr.copy(source, tmp_path / "f/1.0.0", all_files=True).copied) == expected
    again = tfr.copy(source, tmp_path / "f/1.0.0", all_files=True, update=True)
    assert (again.copied, again.kept) == ((), len(expected))
    (source / "notes.md").write_text("other!!!")
    assert tfr.copy(source, tmp_path / "f/1.0.0", all_files=True, update=True).copied == ("notes.md",)


def test_all_files_have_those_of_other_datasets_below(pair: tuple[Store, Store]) -> None:
    source, target = pair
    source.write("d/a.tfrecord")
    source.write("d/sub/b.tfrecord")
    source.write("d/sub/train@2", write_index=True)
    for _ in range(2):
        source.write("d/grows/", mode="append")
    source.write("d/sub/folders/", partition_by="day")
    report = copied(source, "d", target, "e", all_files=True)
    assert target.files("e") == source.files("d")
    assert target.read("e/grows").num_rows == 2 * len(TABLE)
    again = copied(source, "d", target, "e", all_files=True, update=True)
    assert (again.copied, again.kept, again.removed) == ((), len(report.copied), ())
    assert target.files("e") == source.files("d")


def test_an_update_removes_only_files_that_readers_of_the_directory_read(tmp_path: Path) -> None:
    for name in ("d/a", "e/b", "e/p=1/b", "e/sub/b", "e/p=1/sub/b"):
        Store(str(tmp_path), None).write(f"{name}.tfrecord")
    report = tfr.copy(tmp_path / "d", tmp_path / "e", all_files=True, update=True)
    assert report.removed == ("b.tfrecord", "p=1/b.tfrecord")
    assert {str(path.relative_to(tmp_path / "e")) for path in (tmp_path / "e").rglob("*.tfrecord")} == {
        *("a.tfrecord", "sub/b.tfrecord", "p=1/sub/b.tfrecord")
    }


def test_all_files_are_also_those_behind_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("d/sub/more.txt", "other/far.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "d/link").symlink_to(tmp_path / "other")
    (tmp_path / "other/back").symlink_to(tmp_path / "d")
    (tmp_path / "d/sub/above").symlink_to("..")
    os.mkfifo(tmp_path / "d/fifo")
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(("d", f"{tmp_path}/d/")):
        assert tfr.copy(name, f"e{number}/", all_files=True).copied == ("link/far.txt", "sub/more.txt")
    monkeypatch.chdir(tmp_path / "d")
    assert tfr.copy(".", "../f/", all_files=True).copied == ("link/far.txt", "sub/more.txt")
    (tmp_path / "d/sub/gone.txt").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match=r"sub/gone\.txt"):
        tfr.copy(tmp_path / "d", tmp_path / "g", all_files=True)


def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d/sub").mkdir(parents=True)
    (tmp_path / "d/notes.txt").write_text("")
    real = os.listdir

    def listdir(path: Any) -> list[str]:
        if os.path.basename(path) == "sub":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    with pytest.raises(PermissionError, match="sub"):
        tfr.copy(tmp_path / "d", tmp_path / "e", all_files=True)
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize("store", STORES[1:3], indirect=True)
def test_objects_of_folders_themselves_are_not_copied(store: Store, tmp_path: Path) -> None:
    store.write("d/a.tfrecord")
    bucket = store.root.partition("://")[2]
    fs = fsspec.filesystem(store.root.partition(":")[0], **store.options or {})
    for name in ("d/", "d/sub/", "d/sub/notes.txt", "d/p=1/"):
        body = b"" if name.endswith("/") else b"text"
        if fs.protocol[0] == "s3":  # s3fs (2025.3) writes "d/" as "d"
            fs.call_s3("put_object", Bucket=bucket.split("/")[0], Key=f"{bucket}/{name}".partition("/")[2], Body=body)
        else:
            fs.pipe_file(f"{bucket}/{name}", body)
    for target in (str(tmp_path / "e"), store.path("e")):
        report = tfr.copy(store.path("d"), target, all_files=True, storage_options=store.options)
        assert report.copied == ("a.tfrecord", "sub/notes.txt")


@pytest.mark.parametrize("kind", ["fsspec", "pyarrow"])
def test_the_folders_of_other_filesystems_are_made(tmp_path: Path, kind: str) -> None:
    for name in ("d/a.tfrecord", "d/p=1/b.tfrecord"):
        Store(str(tmp_path), None).write(name)
    fs: Any = DirFileSystem(str(tmp_path), fs=fsspec.filesystem("file"))
    if kind == "pyarrow":
        fs = pyarrow.fs.SubTreeFileSystem(str(tmp_path), pyarrow.fs.LocalFileSystem())
    tfr.copy("d", "new/e/", storage_options=fs)
    tfr.copy("d/a.tfrecord", "f/a.tfrecord", storage_options=fs)
    for path in ("new/e/a.tfrecord", "new/e/p=1/b.tfrecord", "f/a.tfrecord"):
        assert tfr.count(tmp_path / path) == len(TABLE)


@pytest.mark.parametrize("part", ["..", ".", ""])
def test_no_key_of_an_object_leads_out_of_the_target(s3: Bucket, tmp_path: Path, part: str) -> None:
    store = Store(s3.url("root"), s3.storage_options)
    store.write("d/a.tfrecord")
    key = f"sub/{part}/{part}/notes.txt"
    s3.fs.call_s3("put_object", Bucket=s3.name, Key=f"root/d/{key}", Body=b"text")
    with pytest.raises(ValueError, match=f"has the part '{part}': give the object another key"):
        copied(store, "d", Store(str(tmp_path / "x"), None), "y/z", all_files=True)
    assert not any(tmp_path.iterdir())
    assert copied(store, "d", Store(str(tmp_path), None), "e").copied == ("a.tfrecord",)
    assert set(copied(store, "d", store, "e", all_files=True).copied) == {"a.tfrecord", key}


@pytest.mark.parametrize("store", STORES[:2], indirect=True)
def test_all_files_are_not_copied_into_themselves(store: Store) -> None:
    store.write("d/sub/a.tfrecord")
    for target in ("d", "d/sub", "d/new/e"):
        with pytest.raises(ValueError, match="is in the directory of which all_files=True copies all"):
            copied(store, "d", store, target, all_files=True, mode="overwrite")
    assert set(copied(store, "d", store, "d-new", all_files=True).copied) == {"sub/a.tfrecord"}


def test_an_update_of_a_directory_without_a_manifest_removes_what_is_gone(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        tfr.write_tfrecord(TABLE, tmp_path / f"d/{name}.tfrecord", write_index=True)
    tfr.copy(tmp_path / "d", tmp_path / "e")
    (tmp_path / "d/b.tfrecord").unlink()
    (tmp_path / "e/notes.txt").write_text("of the target")
    report = tfr.copy(tmp_path / "d", tmp_path / "e", update=True)
    assert report.removed == ("b.tfrecord", "b.tfrecord.index")
    assert set(os.listdir(tmp_path / "e")) == {"a.tfrecord", "a.tfrecord.index", "notes.txt"}


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_files_without_a_manifest_are_not_copied_into_a_dataset(store: Store, tmp_path: Path) -> None:
    """Readers of the dataset would not see the files, and an update would remove files that the manifest names."""
    (tmp_path / "files").mkdir()
    source = Store(str(tmp_path), None)
    source.write("files/b.tfrecord")
    store.write("d/", max_shard_bytes=9000)
    before = store.files("d")
    for path, into, update in [("files", "d", False), ("files/", "d/", True), ("files/b.tfrecord", "d/", True)]:
        with pytest.raises(FileExistsError, match=r"manifest would not name|update=True would remove"):
            copied(source, path, store, into, update=update)
        assert store.files("d") == before
    assert store.read("d").equals(TABLE)


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_files_are_copied_into_a_folder_of_a_dataset_only_if_it_has_them(store: Store, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    source = Store(str(tmp_path), None)
    source.write("files/b.tfrecord")
    store.write("d/", partition_by=["day"])
    folder = min(name.rpartition("/")[0] for name in store.files("d") if "=" in name)
    shard = min(name for name in store.files("d") if name.startswith(folder))
    source.write("whole/", shards=2)
    for path, into in [("files", folder), ("files/b.tfrecord", f"{folder}/c.tfrecord"), ("whole", folder)]:
        with pytest.raises(FileExistsError, match=r"a dataset, whose manifest would not name '.*'.*d/'?$"):
            copied(source, path, store, f"d/{into}")
    (tmp_path / "backup").mkdir()
    copied(store, f"d/{shard}", source, "backup/")
    copied(source, f"backup/{shard.rpartition('/')[2]}", store, f"d/{folder}/", mode="overwrite")  # it was damaged
    assert store.read("d").num_rows == TABLE.num_rows


def test_an_update_removes_no_file_that_another_dataset_of_the_directory_has(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "d/train@2")
    (tmp_path / "files").mkdir()
    tfr.write_tfrecord(TABLE, tmp_path / "files/a.tfrecord")
    with pytest.raises(FileExistsError, match=r"'train-00000-of-00002'.*update=True would remove"):
        tfr.copy(tmp_path / "files", tmp_path / "d", update=True)
    assert tfr.copy(tmp_path / "files", tmp_path / "d").copied == ("a.tfrecord",)
    assert tfr.read_table(tmp_path / "d/train@2").equals(TABLE)
