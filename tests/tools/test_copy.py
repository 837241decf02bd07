"""Copies of files and datasets: which bytes arrive, what is checked on the way, and what a failed copy leaves."""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import time
import warnings
from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import crc32c
import fsspec
import pyarrow as pa
import pyarrow.compute
import pyarrow.fs
import pytest
from fsspec.implementations.dirfs import DirFileSystem

import tfrecord_io as tfr
from chaos import Chaos
from gcs_server import GcsServer
from limited import set_limits
from messages import published_by
from rounds import COMPLETE
from servers import Bucket, Web, around_requests
from tfrecord_io.options import MIB, StorageOptions
from tfrecord_io.storage.filesystem.locate import locate
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile
from tfrecord_io.storage.paths.resolve_output import identity
from tfrecord_io.storage.read.source import Source
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.tools import copy as copy_module
from tfrecord_io.tools import store_copy
from tfrecord_io.tools.copied_dataset import CopiedDataset, plan
from tfrecord_io.tools.file_transfer import Traffic
from transfers import transfer

pytestmark = pytest.mark.matrix

TABLE = pa.table(
    {"x": range(1000), "day": [at % 3 for at in range(1000)], "text": ["a" * (at % 50) for at in range(1000)]}
)
STORES = ["disk", "s3", "gcs", "azure"]
# Otherwise: within each store, from and to the disk, and between two stores; tests/laws/test_copy_laws.py has others.
SOME = [*((store, store) for store in STORES), ("disk", "s3"), ("s3", "disk"), ("s3", "gcs"), ("azure", "s3")]
PAIRS = [(a, b) for a in STORES for b in STORES if {"gcs", "azure"} != {a, b}] if COMPLETE else SOME


class Store:
    """A directory of a store, and the options of paths in it."""

    def __init__(self, root: str, options: dict[str, Any] | None) -> None:
        self.root, self.options = root, options

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, table: pa.Table = TABLE, **keywords: Any) -> str:
        if self.options is None:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        tfr.write_tfrecord(table, self.path(name), storage_options=self.options, **keywords)
        return self.path(name)

    def read(self, name: str) -> pa.Table:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return tfr.read_table(self.path(name), storage_options=self.options)

    def files(self, name: str) -> dict[str, bytes]:
        """The content of all files below a directory."""
        import fsspec

        fs, root = fsspec.core.url_to_fs(self.path(name), **(self.options or {}))
        fs.invalidate_cache()
        root = root.rstrip("/")
        return {found[len(root) + 1 :]: fs.cat_file(found) for found in fs.find(root)} if fs.exists(root) else {}


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return _store(request, request.param, tmp_path)


def _store(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Store:
    if kind == "disk":
        return Store(str(tmp_path), None)
    bucket: Bucket = request.getfixturevalue(kind)
    return Store(bucket.url("root"), bucket.storage_options)


def copied(source: Store, name: str, target: Store, to: str, **keywords: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path, options = transfer(source.path(name), source.options, target.options)
        return tfr.copy(path, target.path(to), **options, **keywords)


def data(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if not name.startswith("_MANIFEST")}


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(pair))
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Store]:
    return _store(request, request.param[0], tmp_path), _store(request, request.param[1], tmp_path)


FORMS: list[dict[str, Any]] = [
    {"name": "d/train@4", "write_index": True},
    {"name": "d/", "max_shard_bytes": 8000},
    {"name": "d/", "mode": "append", "compression": "gzip"},
    {"name": "d/", "partition_by": "day", "compression": "zstd"},
]


@pytest.mark.parametrize("form", FORMS, ids=["shards", "sizes", "append", "folders"])
def test_a_dataset_arrives_with_all_that_belongs_to_it(pair: tuple[Store, Store], form: dict[str, Any]) -> None:
    source, target = pair
    source.write(**form)
    report = copied(source, "d", target, "e")
    assert data(source.files("d")) == data(target.files("e"))
    assert set(source.files("d")) == set(target.files("e"))
    assert target.read("e").equals(source.read("d"))
    shards = [name for name in source.files("d") if not name.startswith("_") and not name.endswith(".index")]
    assert set(report.copied) == set(data(source.files("d")))
    assert report.bytes == sum(map(len, data(source.files("d")).values()))
    if source.options is None or source.options != target.options:
        assert report.records == len(TABLE)
    again = copied(source, "d", target, "e", update=True)
    assert (again.copied, again.kept, again.removed) == ((), len(shards), ())
    assert not tfr.verify(target.path("e"), storage_options=target.options).problem_lines()
    with pytest.raises(FileExistsError, match="update=True copies what differs"):
        copied(source, "d", target, "e")


@pytest.mark.matrix
@pytest.mark.parametrize("form", FORMS[:2] + FORMS[3:], ids=["shards", "sizes", "folders"])
def test_an_update_copies_what_differs_and_removes_what_is_gone(
    pair: tuple[Store, Store], form: dict[str, Any]
) -> None:
    source, target = pair
    source.write(**form)
    copied(source, "d", target, "e")
    for change in ({"mode": "append"} if form["name"].endswith("/") else {"mode": "overwrite"}, {"mode": "overwrite"}):
        keywords = {name: each for name, each in form.items() if name != "name"}
        source.write(form["name"], TABLE.slice(300), **{**keywords, **change})
        planned = copied(source, "d", target, "e", update=True, dry_run=True)
        before = target.files("e")
        report = copied(source, "d", target, "e", update=True)
        assert (planned.copied, planned.removed, planned.bytes) == (report.copied, report.removed, report.bytes)
        assert data(source.files("d")) == data(target.files("e"))
        assert target.read("e").equals(source.read("d"))
        assert set(report.removed) == set(data(before)) - set(data(target.files("e")))
        assert copied(source, "d", target, "e", update=True).copied == ()


@pytest.mark.parametrize("store", STORES[1:], indirect=True)
def test_an_update_replaces_numbered_shards_in_folders(store: Store) -> None:
    for name, rows in (("old", 2), ("new", 3)):
        for day in (0, 1):
            store.write(f"{name}/day={day}/part-00000-of-00001", pa.table({"x": [rows] * rows}))
        tfr.adopt(store.path(name), storage_options=store.options)
    copied(store, "old", store, "target")
    copied(store, "new", store, "target", update=True)
    assert store.read("target").equals(store.read("new"))
    assert data(store.files("target")) == data(store.files("new"))


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_no_name_of_a_shard_that_was_replaced_is_used_again_in_a_bucket(store: Store, tmp_path: Path) -> None:
    """The writer that replaced it may still be removing the file of this name."""
    source = Store(str(tmp_path / "source"), None)
    source.write("d/", partition_by="day")
    tfr.build_index(source.path("d/"), columns=["x"])
    names = set(data(source.files("d")))
    copied(source, "d", store, "e")
    seen = [set(data(store.files("e")))]
    assert seen == [names]
    for _ in range(2):
        store.write("e/", TABLE.slice(300), partition_by="day", mode="overwrite")
        report = copied(source, "d", store, "e", update=True)
        files = data(store.files("e"))
        assert set(report.copied) == set(files)
        assert sorted(files.values()) == sorted(data(source.files("d")).values())
        assert store.read("e").equals(source.read("d"))
        assert copied(source, "d", store, "e", update=True).copied == ()
        seen.append(set(files))
    if store.options is None:  # a lock keeps writers apart
        assert seen == [names] * 3
    else:
        assert len(set().union(*seen)) == 3 * len(names)


def test_no_staged_name_is_used_that_a_writer_may_still_be_removing() -> None:
    wanted = Manifest("a", "0" * 16, (ManifestFile("a-00000-of-00001", 1, 20, 7),))
    known = replace(wanted, id="1" * 16, files=(ManifestFile("a-00000-of-00001", 1, 30, 8),))

    def staged(removed: tuple[str, ...]) -> str:
        target = replace(known, staged_before=removed)
        return plan(wanted, target, {}, keeps=True, stages_all=False, by_store=False).staged["a-00000-of-00001"]

    first = staged(())
    second = staged((first,))
    assert len({first, second, staged((first, second))}) == 3
    assert second == staged((first, "_0123456789abcdef-00000.staged")) == staged((first,)), (
        "a copy that goes on finds it"
    )


def test_a_damaged_source_is_an_error_with_file_record_and_byte(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "d/train@4")
    tfr.copy(tmp_path / "d", tmp_path / "old")
    before = {name: (tmp_path / "old" / name).read_bytes() for name in os.listdir(tmp_path / "old")}
    path = tmp_path / "d/train-00002-of-00004"
    content = bytearray(path.read_bytes())
    content[5000] ^= 1
    path.write_bytes(content)
    with pytest.raises(tfr.errors.CorruptRecordError, match=r"salvage.*verify='bytes'.*on_error='skip'") as caught:
        tfr.copy(tmp_path / "d", tmp_path / "e")
    with pytest.raises(tfr.errors.CorruptRecordError) as expected:
        tfr.count(path, check_crc=True)
    of = ("path", "record", "offset", "expected", "got", "records_intact")
    assert [getattr(caught.value, name) for name in of] == [getattr(expected.value, name) for name in of]
    with pytest.raises(tfr.errors.CorruptRecordError, match="the CRC32C"):
        tfr.copy(tmp_path / "d", tmp_path / "e", verify="bytes")
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.copy(tmp_path / "d", tmp_path / "old", mode="overwrite")
    after = {name: (tmp_path / "old" / name).read_bytes() for name in before}
    assert after == before
    assert tfr.read_table(tmp_path / "old").equals(TABLE)
    tfr.copy(path, tmp_path / "one.tfrecord", verify="bytes")
    assert (tmp_path / "one.tfrecord").read_bytes() == content
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.copy(path, tmp_path / "two.tfrecord")
    assert not (tmp_path / "two.tfrecord").exists()


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("at", [0, 8, 12, 3_000_000, 9_999_999, 10_000_100, 15_000_000, -1])
def test_records_larger_than_a_block_are_checked_as_others_are(tmp_path: Path, suffix: str, at: int) -> None:
    source, plain = tmp_path / f"a.tfrecord{suffix}", tmp_path / "plain.tfrecord"
    rows = {"x": [bytes(10_000_000), b"b" * 5_000_000, b"c"]}
    tfr.write_tfrecord(rows, source)
    report = tfr.copy(source, tmp_path / f"copied.tfrecord{suffix}")
    assert (report.records, report.bytes) == (3, source.stat().st_size)
    assert (tmp_path / f"copied.tfrecord{suffix}").read_bytes() == source.read_bytes()
    tfr.write_tfrecord(rows, plain)
    content = bytearray(plain.read_bytes())
    damaged = [bytes(content[:at])]
    content[at] ^= 4
    damaged.append(bytes(content))
    for each in damaged:
        packed = each
        if suffix == ".gz":
            packed = gzip.compress(each, 1)
        path = tmp_path / f"damaged.tfrecord{suffix if suffix != '.zst' else ''}"
        path.write_bytes(packed)
        if not each:
            continue
        with pytest.raises(tfr.TFRecordError) as expected:
            tfr.count(path, check_crc=True)
        with pytest.raises(type(expected.value)) as caught:
            tfr.copy(path, tmp_path / "out.tfrecord", mode="overwrite")
        of = ("path", "record", "offset", "expected", "got", "records_intact", "reason")
        assert [getattr(caught.value, name) for name in of] == [getattr(expected.value, name) for name in of]


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_single_files_and_patterns(store: Store, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        tfr.write_tfrecord(TABLE, tmp_path / f"{name}.tfrecord", write_index=True)
    here = Store(str(tmp_path), None)
    assert copied(here, "a.tfrecord", store, "to/x.tfrecord").copied == ("x.tfrecord", "x.tfrecord.index")
    assert copied(here, "a.tfrecord", store, "to/").copied == ("a.tfrecord", "a.tfrecord.index")
    assert set(copied(here, "[bc].tfrecord", store, "to").copied) == {
        *("b.tfrecord", "b.tfrecord.index", "c.tfrecord", "c.tfrecord.index")
    }
    assert set(store.files("to")) == {f"{a}.tfrecord{b}" for a in "abcx" for b in ("", ".index")}
    with pytest.raises(FileExistsError, match="update=True"):
        copied(here, "a.tfrecord", store, "to/")
    assert copied(here, "?.tfrecord", store, "to", update=True).copied == ()
    tfr.write_tfrecord(TABLE.slice(5), tmp_path / "b.tfrecord", write_index=True)
    assert copied(here, "?.tfrecord", store, "to/", update=True).copied == ("b.tfrecord", "b.tfrecord.index")
    assert copied(store, "to/?.tfrecord", here, "back").records == 4 * len(TABLE) - 5
    assert store.files("to") == here.files("back")
    with tfr.open_random(store.path("to/x.tfrecord"), storage_options=store.options) as records:
        assert len(records) == len(TABLE)


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
    """Its readers would not see them, and an update would remove the files that its manifest names."""
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


def test_a_shard_is_restored_from_a_copy(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, f"{tmp_path}/d/", max_shard_bytes=9000)
    name = min(name for name in os.listdir(tmp_path / "d") if name.startswith("part"))
    (tmp_path / "backup").mkdir()
    (tmp_path / "d" / name).replace(tmp_path / "backup" / name)
    tfr.copy(tmp_path / "backup", tmp_path / "d", mode="overwrite")
    assert tfr.read_table(tmp_path / "d").equals(TABLE)


def test_filters_select_folders(pair: tuple[Store, Store]) -> None:
    source, target = pair
    source.write("d/", partition_by="day")
    report = copied(source, "d", target, "e", filters=[("day", "==", 1)])
    assert target.read("e").equals(source.read("d").filter(pa.compute.field("day") == 1))
    source.write("d/", TABLE.slice(500), partition_by="day", mode="overwrite")
    report = copied(source, "d", target, "e", filters=[("day", ">", 1)], update=True)
    assert (len(report.copied), report.kept, report.removed) == (1, 1, ())
    days = target.read("e")["day"].to_pylist()
    assert (days.count(1), days.count(2)) == (
        TABLE["day"].to_pylist().count(1),
        TABLE["day"].to_pylist()[500:].count(2),
    )
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'x'"):
        copied(source, "d", target, "f", filters=[("x", "==", 1)])
    with pytest.raises(FileNotFoundError, match="no folder"):
        copied(source, "d", target, "f", filters=[("day", "==", 7)])
    with pytest.raises(ValueError, match="select folders by filters="):
        copied(source, "d/day=1/", target, "e", update=True)
    assert copied(source, "d/day=1/", target, "g").copied == tuple(
        name for name in source.files("d") if name.startswith("day=1")
    )


@pytest.mark.parametrize("store", STORES, indirect=True)
def test_readers_go_on_while_an_update_adds_shards(store: Store) -> None:
    store.write("d/", mode="append", max_shard_bytes=8000)
    copied(store, "d", store, "e")
    reader = tfr.open_reader(tfr.dataset(store.path("e/"), threads=1, storage_options=store.options), batch_size=100)
    first = reader.read_next_batch()
    store.write("d/", mode="append")
    copied(store, "d", store, "e", update=True)
    assert len(first) + sum(map(len, reader)) == len(TABLE)
    assert len(store.read("e")) == 2 * len(TABLE)


def test_what_is_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "d/train@2")
    tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord")
    copy = tfr.copy
    for arguments, keywords, error, text in [
        (("d", "d"), {}, ValueError, "is in the directory|is the directory"),
        (("a.tfrecord", "a.tfrecord"), {"mode": "overwrite"}, ValueError, "is the file that would be written"),
        (("d", "e"), {"update": True, "mode": "overwrite"}, ValueError, "pass only one"),
        (("d", "e"), {"verify": "no"}, ValueError, "verify='no'"),
        (("d", "e"), {"limit_rate": "fast"}, ValueError, "limit_rate='fast'"),
        (("d", "e"), {"limit_rate": 0}, ValueError, "at least 1 byte"),
        (("d", "e"), {"threads": 0}, ValueError, "threads=0"),
        (("d", "e"), {"update": "yes"}, TypeError, "update='yes'"),
        (("none", "e"), {}, FileNotFoundError, "none"),
        (("d", "e"), {"colums": 1}, TypeError, "colums"),
        (("a.tfrecord", "e"), {"filters": [("x", "==", 1)]}, ValueError, "have none"),
    ]:
        source, target = (str(tmp_path / name) for name in arguments)
        with pytest.raises(error, match=text):
            copy(source, target, **keywords)
    assert not (tmp_path / "e").exists()
    tfr.write_tfrecord(TABLE, f"{tmp_path}/p/", max_shard_bytes=9000)
    (tmp_path / "f").mkdir()
    tfr.write_tfrecord(TABLE, tmp_path / "f/a.tfrecord")
    with pytest.raises(FileExistsError, match="choose another directory"):
        copy(tmp_path / "p", tmp_path / "f")
    with pytest.raises(ValueError, match="one name"):
        copy([tmp_path / "a.tfrecord", tmp_path / "f/a.tfrecord"], tmp_path / "g")


def test_a_limited_rate(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [os.urandom(1000)] * 100}, tmp_path / "d/train@4")
    begin = time.monotonic()
    tfr.copy(tmp_path / "d", tmp_path / "e", limit_rate="200kB")
    assert 0.4 < time.monotonic() - begin < 10


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_an_error_of_writing_names_the_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / name)

    def fail(output: OutputFile, piece: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("tfrecord_io.storage.write.atomic_local.LocalOutput._write", fail)
    with pytest.raises(OSError, match="No space left on device, at byte 0:") as caught:
        tfr.copy(tmp_path / name, tmp_path / "b" / name)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "b" / name))
    assert os.listdir(tmp_path / "b") == []


def test_a_source_that_is_replaced_again_and_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "d/train@4")
    real, calls, left = copy_module.transfer, 0, 3

    def transfer(source: Any, *arguments: Any, **keywords: Any) -> Any:
        nonlocal calls, left
        calls += 1
        if left and calls % 2 == 0:
            left -= 1
            tfr.write_tfrecord({"x": [left] * 1000}, tmp_path / "d/train@4", mode="overwrite")
        return real(source, *arguments, **keywords)

    monkeypatch.setattr(copy_module, "transfer", transfer)
    report = tfr.copy(tmp_path / "d", tmp_path / "e", threads=1)
    assert report.retries == 3
    assert tfr.read_table(tmp_path / "e")["x"].to_pylist() == [0] * 1000
    left = 100
    with pytest.raises(tfr.errors.ReplacedError):
        tfr.copy(tmp_path / "d", tmp_path / "f", threads=1)
    with pytest.raises(FileNotFoundError):
        tfr.read_table(tmp_path / "f")


def test_what_a_store_has_copied_is_not_in_the_way_of_a_copy_that_begins_again(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(s3.url("root"), s3.storage_options)
    for name in ("a", "b"):
        store.write(f"d/{name}.tfrecord")
    real, traffic, tries = store_copy.copy_within, [], []

    def copy_within(source: Source, *arguments: Any, **keywords: Any) -> int | None:
        tries.append(source.path)
        if source.path.endswith("/a.tfrecord") and len(traffic) == 1:
            raise tfr.errors.ReplacedError(errno.ESTALE, "replaced", source.path)
        crc = real(source, *arguments, **keywords)
        if len(traffic) == 1:
            assert traffic[0].stopped.wait(10)
        return crc

    monkeypatch.setattr(store_copy, "copy_within", copy_within)
    monkeypatch.setattr(copy_module, "Traffic", lambda *each: traffic.append(Traffic(*each)) or traffic[-1])
    assert copied(store, "d", store, "e", threads=2).retries == 1
    assert store.files("e") == store.files("d")


@pytest.mark.parametrize("step", ["settle", "indexes"])
def test_an_error_after_a_copy_is_published_says_so(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "d/train@4", write_index=True)

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    owner, name = {"settle": (CopiedDataset, "_settle"), "indexes": (copy_module._Copy, "_move_indexes")}[step]
    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(OSError, match="error; the new dataset is published nevertheless, and can be read") as caught:
        tfr.copy(tmp_path / "d", tmp_path / "e")
    assert published_by(caught.value)
    assert "tfr.copy(source, target, update=True) completes it" in str(caught.value)
    monkeypatch.undo()
    assert tfr.read_table(tmp_path / "e") == TABLE
    tfr.copy(tmp_path / "d", tmp_path / "e", update=True)
    assert sorted(os.listdir(tmp_path / "e")) == sorted(os.listdir(tmp_path / "d"))


def test_a_copy_that_is_replaced_before_it_has_its_names_claims_nothing(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(s3.url("root"), s3.storage_options)
    store.write("d/train@4")
    store.write("e/train@4", TABLE.slice(500))
    real = CopiedDataset._settle

    def settle(self: CopiedDataset, *arguments: Any) -> None:
        monkeypatch.undo()
        store.write("e/train@4", TABLE.slice(900), mode="overwrite")
        real(self, *arguments)

    monkeypatch.setattr(CopiedDataset, "_settle", settle)
    with pytest.raises(OSError, match="another writer has written this dataset meanwhile: copy it again"):
        copied(store, "d/", store, "e/", mode="overwrite")
    assert store.read("e/") == TABLE.slice(900)


def test_a_store_copies_large_objects_in_parts(s3: Bucket) -> None:
    from tfrecord_io.options import StorageOptions
    from tfrecord_io.storage.filesystem.locate import locate
    from tfrecord_io.storage.paths.resolve import resolve_inputs
    from tfrecord_io.tools import store_copy

    content = os.urandom(12 * MIB)
    s3.fs.pipe_file(f"{s3.name}/a.tfrecord", content)
    (source,) = resolve_inputs(s3.url("a.tfrecord"), StorageOptions(s3.storage_options))
    fs, name = locate(s3.url("b.tfrecord"), StorageOptions(s3.storage_options))
    assert store_copy.can_copy(source, fs)
    real, sent = store_copy._S3Copy._call, list[dict[str, Any]]()

    def call(self: Any, method: str, **arguments: Any) -> Any:
        """With the checksums of parts, which S3 states and this server does not."""
        answer = real(self, method, **arguments)
        sent.append(arguments)
        if method == "upload_part_copy":
            begin, end = map(int, arguments["CopySourceRange"].removeprefix("bytes=").split("-"))
            crc = crc32c.crc32c(content[begin : end + 1]).to_bytes(4, "big")
            answer["CopyPartResult"]["ChecksumCRC32C"] = b64encode(crc).decode()
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_copy._S3Copy, "_call", call)
        patch.setattr(store_copy, "_PART", 5 * MIB)
        assert store_copy.copy_within(source, fs, name, largest=6 * MIB) == crc32c.crc32c(content)
    assert s3.fs.cat_file(name) == content
    assert not s3.uploads()
    assert {arguments.get("CopySourceIfMatch") for arguments in sent} == {(source.info or {})["ETag"], None}


@pytest.mark.parametrize("megabytes", [1, 7, 8])
def test_what_google_received_is_compared_with_what_was_sent(
    google: Bucket, gcs_server: GcsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, megabytes: int
) -> None:
    """Of objects of one request by the store, of larger ones by what it states; 8 MiB end with a block."""
    payload = os.urandom(megabytes * MIB - 16)
    with tfr.RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(payload)
    target = google.url("d/a.tfrecord")
    options = {"storage_options": google.storage_options}
    assert tfr.copy(tmp_path / "a.tfrecord", target, **options).records == 1
    real = GcsServer._store

    def damaged(self: GcsServer, bucket: str, key: str, data: bytes, *arguments: Any) -> Any:
        return real(self, bucket, key, data[:-9] + bytes([data[-9] ^ 1]) + data[-8:], *arguments)

    monkeypatch.setattr(GcsServer, "_store", damaged)
    other = google.url("d/b.tfrecord")
    with pytest.raises(OSError, match="CRC32C"):
        tfr.copy(tmp_path / "a.tfrecord", other, **options)
    assert not google.fs.exists(other)


def test_ranges_of_a_large_file_are_requested_side_by_side(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tfrecord_io.storage.read.range_requests import S3Object

    now, most, read_range = 0, 0, S3Object.read_range

    async def count(self: S3Object, begin: int, end: int) -> bytes:
        nonlocal now, most
        now, most = now + 1, max(most, now + 1)
        try:
            return await read_range(self, begin, end)
        finally:
            now -= 1

    monkeypatch.setattr(S3Object, "read_range", count)
    tfr.write_tfrecord({"x": [os.urandom(1 << 20)] * 25}, s3.url("a.tfrecord"), storage_options=s3.storage_options)
    source = tfr.dataset(s3.url("a.tfrecord"), storage_options=s3.storage_options)
    assert tfr.copy(source, tmp_path / "a.tfrecord").records == 25
    assert most > 2
    assert (tmp_path / "a.tfrecord").read_bytes() == s3.fs.cat_file(s3.url("a.tfrecord"))


def test_a_file_is_copied_from_a_bucket_that_may_not_be_listed(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Indexes are looked for by their names; absent ones are denied, too."""
    options = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"x": range(10)}, s3.url("a.tfrecord"), index=True, **options)
    tfr.write_tfrecord({"x": range(10)}, s3.url("b.tfrecord"), **options)

    async def handle(name: str, key: str, request: Callable[[], Awaitable[Any]]) -> Any:
        if name.startswith("list"):
            raise PermissionError("Access Denied")
        try:
            return await request()
        except FileNotFoundError as error:
            raise PermissionError("Forbidden") from error

    around_requests(s3, monkeypatch, handle)
    for name in ("a.tfrecord", "b.tfrecord"):
        tfr.copy(s3.url(name), tmp_path / name, **options)
        assert tfr.count(tmp_path / name) == 10


def test_stores_at_two_addresses_have_the_same_names(s3: Bucket, chaos: Chaos) -> None:
    """Copies between them are no copies of a file to itself; the address is an option of either form."""
    keys = {name: s3.storage_options[name] for name in ("key", "secret")}
    addresses = [s3.storage_options["endpoint_url"], chaos.endpoint]
    one, other = ({**keys, "client_kwargs": {"endpoint_url": address}} for address in addresses)
    Store(s3.url("root"), s3.storage_options).write("a.tfrecord")
    path = s3.url("root/a.tfrecord")
    for same in (one, s3.storage_options):
        with pytest.raises(ValueError, match="is the file that would be written"):
            tfr.copy(tfr.dataset(path, storage_options=one), path, storage_options=same, mode="overwrite")
    report = tfr.copy(tfr.dataset(path, storage_options=one), path, storage_options=other, mode="overwrite")
    assert report.records == len(TABLE)


def test_accounts_of_azure_have_the_same_names() -> None:
    pytest.importorskip("adlfs")
    storage = [StorageOptions({"account_name": name, "account_key": "a2V5"}) for name in ("one", "two", "one")]
    one, two, same = (identity(*locate("abfs://container/a.tfrecord", each)) for each in storage)
    assert one == same != two


def test_damage_of_a_file_that_the_store_copies_is_found(s3: Bucket) -> None:
    store = Store(s3.url("root"), s3.storage_options)
    store.write("d/train@4")
    name = f"{s3.name}/root/d/train-00001-of-00004"
    content = bytearray(s3.fs.cat_file(name))
    content[5000] ^= 1
    s3.fs.pipe_file(name, bytes(content))
    with pytest.raises(tfr.errors.CorruptRecordError, match="train-00001-of-00004: record"):
        copied(store, "d", store, "e")
    with pytest.raises(tfr.errors.CorruptRecordError, match="incomplete"):
        store.read("e")
    store.write("d/train@4", mode="overwrite")
    copied(store, "d", store, "e", update=True)
    assert store.read("e").equals(TABLE)


def test_a_damaged_copy_of_a_store_without_checksums_is_removed(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_copy, "_stated", lambda answer: None)  # as older servers answer
    store = Store(s3.url("root"), s3.storage_options)
    store.write("a.tfrecord")
    assert copied(store, "a.tfrecord", store, "b.tfrecord").records == len(TABLE)
    name = f"{s3.name}/root/a.tfrecord"
    content = s3.fs.cat_file(name)
    s3.fs.pipe_file(name, content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    with pytest.raises(tfr.errors.CorruptRecordError, match="record"):
        copied(store, "a.tfrecord", store, "c.tfrecord")
    assert not s3.fs.exists(f"{s3.name}/root/c.tfrecord")


def test_from_a_web_server(web: Web, tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord.gz")
    web.files["a.tfrecord.gz"] = (tmp_path / "a.tfrecord.gz").read_bytes()
    report = tfr.copy(web.url("a.tfrecord.gz"), tmp_path / "b.tfrecord.gz")
    assert (report.copied, report.records) == (("b.tfrecord.gz",), len(TABLE))
    assert (tmp_path / "b.tfrecord.gz").read_bytes() == web.files["a.tfrecord.gz"]


def test_requests_that_are_made_again_are_counted(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, backoff_seconds=0.001)
    tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord")
    web.files["a.tfrecord"] = (tmp_path / "a.tfrecord").read_bytes()
    real = web.files["a.tfrecord"]
    report = tfr.copy(web.url("a.tfrecord"), tmp_path / "b.tfrecord")
    assert report.retries == 0
    from tfrecord_io.storage.read.range_requests import HttpObject

    failing, read_range = [OSError(5, "reset")] * 2, HttpObject.read_range

    async def fail(self: HttpObject, begin: int, end: int) -> bytes:
        if failing:
            raise failing.pop()
        return await read_range(self, begin, end)

    monkeypatch.setattr(HttpObject, "read_range", fail)
    assert tfr.copy(web.url("a.tfrecord"), tmp_path / "c.tfrecord").retries == 2
    assert (tmp_path / "c.tfrecord").read_bytes() == real


def test_the_report(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "d/train@2")
    planned = tfr.copy(tmp_path / "d", tmp_path / "e", dry_run=True)
    assert not (tmp_path / "e").exists()
    assert str(planned).splitlines()[1:] == ["copy train-00000-of-00002", "copy train-00001-of-00002"]
    assert "would copy 2 files" in planned.title()
    seen: list[tfr.typing.Progress] = []
    report = tfr.copy(tmp_path / "d", tmp_path / "e", progress=seen.append)
    assert report.to_dict() == {
        "path": str(tmp_path / "e"),
        "files": 2,
        "bytes": planned.bytes,
        "records": 1000,
        "kept": 0,
        "removed": 0,
        "retries": 0,
        "dry_run": False,
    }
    assert (seen[-1].done, seen[-1].total, seen[-1].unit) == (planned.bytes, planned.bytes, "bytes")


def test_the_same_call_completes_a_copy_within_a_store_that_was_killed(
    conditional: Bucket, dying: dict[str, Any]
) -> None:
    options = {"storage_options": conditional.storage_options}
    source = conditional.url("source/")
    tfr.write_tfrecord(TABLE, source + "a@3", write_index=True, **options)
    for killed_at in range(12):
        target = conditional.url(f"target-{killed_at}/")
        dying.update(left=killed_at, killed=False)
        with warnings.catch_warnings(), contextlib.suppress(PermissionError):
            warnings.simplefilter("ignore", UserWarning)  # files that it could not remove
            tfr.copy(source, target, threads=1, **options)
        dying["left"] = None
        if not dying["killed"]:
            break
        with contextlib.suppress(FileExistsError):  # it was published
            tfr.copy(source, target, **options)
        assert tfr.read_table(target, **options).equals(TABLE)
    assert 3 < killed_at < 11


@pytest.mark.parametrize("target", ["x.tfrecord", "x.tfrecord.gz", "x@8", "x-00000-of-00001"])
@pytest.mark.parametrize("form", ["d/", "d/*.tfrecord", "d"])
def test_a_dataset_is_not_copied_to_the_name_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, form: str
) -> None:
    """It would be the name of a directory; one that exists, or is called one, is taken."""
    monkeypatch.chdir(tmp_path)
    os.mkdir("d")
    for name in "ab":
        tfr.write_tfrecord({"x": [1]}, f"d/{name}.tfrecord")
    with pytest.raises(ValueError, match=f"'{target}' is named like TFRecord files.*write '{target}/'"):
        tfr.copy(form, target)
    assert os.listdir() == ["d"]
    assert tfr.copy(form, f"{target}/").records == 2
    assert tfr.copy(form, target, update=True).kept == 2
    assert sorted(os.listdir(target)) == ["a.tfrecord", "b.tfrecord"]


def test_a_mirror_of_folders_of_an_emptied_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = pa.table({"x": [1, 2], "k": ["a", "b"]})
    tfr.write_tfrecord(rows, "d/", partition_by="k")
    tfr.copy("d/", "mirror/")
    for value in "ab":
        options: dict[str, Any] = {"mode": "overwrite_partitions", "overwrite_where": {"k": value}}
        tfr.write_tfrecord(rows.slice(2), "d/", partition_by="k", **options)
    report = tfr.copy("d/", "mirror/", update=True, filters=[("k", "==", "a")])
    assert (len(report.copied), len(report.removed)) == (0, 1)
    assert tfr.read_table("mirror/").to_pylist() == [{"x": 2, "k": "b"}]
    assert tfr.copy("d/", "mirror/", update=True).removed
    tfr.write_tfrecord(rows, "e/", partition_by="k")
    with pytest.raises(FileNotFoundError, match="no folder meets"):
        tfr.copy("e/", "f/", filters=[("k", "==", "c")])
