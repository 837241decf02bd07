"""Copies from and to stores: requests, errors, and what a store does by itself."""

from __future__ import annotations

import contextlib
import errno
import os
import time
import warnings
from base64 import b64encode
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import crc32c
import pytest

import tfrecord_io as tfr
from chaos import Chaos
from copy_stores import TABLE, Store, copied
from gcs_server import GcsServer
from limited import set_limits
from messages import published_by
from servers import Bucket, Web, around_requests
from tfrecord_io.base import MIB, StorageOptions
from tfrecord_io.store.copies import copy_files as copy_module
from tfrecord_io.store.copies import store_copy
from tfrecord_io.store.copies.file_transfer import Traffic
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.read.source import Source
from tfrecord_io.store.write.output_file import OutputFile
from tfrecord_io.store.write.publication import Publication

pytestmark = pytest.mark.matrix


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

    monkeypatch.setattr("tfrecord_io.store.write.atomic_local.LocalOutput._write", fail)
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

    def copy_within(source: Source, *arguments: Any, **keywords: Any) -> store_copy.StoreCopy:
        tries.append(source.path)
        if source.path.endswith("/a.tfrecord") and len(traffic) == 1:
            raise tfr.errors.ReplacedError(errno.ESTALE, "replaced", source.path)
        answer = real(source, *arguments, **keywords)
        end = time.monotonic() + 10
        while len(traffic) == 1 and not traffic[0].stopped.is_set:
            assert time.monotonic() < end
            time.sleep(0.01)
        return answer

    monkeypatch.setattr(copy_module, "copy_within", copy_within)
    monkeypatch.setattr(copy_module, "Traffic", lambda *each: traffic.append(Traffic(*each)) or traffic[-1])
    assert copied(store, "d", store, "e", threads=2).retries == 1
    assert store.files("e") == store.files("d")


def test_an_index_that_is_removed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that replaces a file without a manifest removes its index first."""
    (tmp_path / "d").mkdir()
    tfr.write_tfrecord(TABLE, tmp_path / "d" / "a.tfrecord", write_index=True)
    real = copy_module.transfer

    def transfer(source: Source, *arguments: Any, **keywords: Any) -> Any:
        if source.path.endswith(".index"):
            os.unlink(source.path)
        return real(source, *arguments, **keywords)

    monkeypatch.setattr(copy_module, "transfer", transfer)
    assert tfr.copy(tmp_path / "d", tmp_path / "e").retries == 1
    assert os.listdir(tmp_path / "e") == ["a.tfrecord"]


@pytest.mark.parametrize("step", ["settle", "indexes"])
def test_an_error_after_a_copy_is_published_says_so(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "d/train@4", write_index=True)

    def fail(*_: Any) -> None:
        raise OSError(errno.EIO, "Input/output error")

    owner, name = {"settle": (Publication, "_settle"), "indexes": (copy_module._Mover, "_move_indexes")}[step]
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
    real = Publication._settle

    def settle(self: Publication, *arguments: Any) -> None:
        monkeypatch.undo()
        store.write("e/train@4", TABLE.slice(900), mode="overwrite")
        real(self, *arguments)

    monkeypatch.setattr(Publication, "_settle", settle)
    with pytest.raises(OSError, match="another writer has written this dataset meanwhile: copy it again"):
        copied(store, "d/", store, "e/", mode="overwrite")
    assert store.read("e/") == TABLE.slice(900)


@pytest.mark.parametrize("how", [{}, {"all_files": True}, {"update": True}], ids=str)
@pytest.mark.parametrize("name", ["nope", "nope/", "a/nope/"])
def test_a_missing_folder_is_an_error_with_a_reason(s3: Bucket, tmp_path: Path, name: str, how: dict[str, Any]) -> None:
    tfr.write_tfrecord({"x": [1]}, s3.url("a/b.tfrecord"), storage_options=s3.storage_options)
    for target in (str(tmp_path / "out"), s3.url("out/")):
        with pytest.raises(FileNotFoundError) as caught:
            tfr.copy(s3.url(name), target, storage_options=s3.storage_options, **how)
        assert caught.value.filename == s3.url(name)
        assert caught.value.strerror.lower().startswith("no such file")


def test_a_store_copies_large_objects_in_parts(s3: Bucket) -> None:
    from tfrecord_io.base import StorageOptions
    from tfrecord_io.store.copies import store_copy
    from tfrecord_io.store.filesystem.locate import Location
    from tfrecord_io.store.paths.resolve import resolve_inputs

    content = os.urandom(12 * MIB)
    s3.fs.pipe_file(f"{s3.name}/a.tfrecord", content)
    (source,) = resolve_inputs(s3.url("a.tfrecord"), StorageOptions(s3.storage_options))
    fs, name = Location.of(s3.url("b.tfrecord"), StorageOptions(s3.storage_options))
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
        assert store_copy.copy_within(source, fs, name, largest=6 * MIB).crc32c == crc32c.crc32c(content)
    assert s3.fs.cat_file(name) == content
    assert not s3.uploads()
    assert {arguments.get("CopySourceIfMatch") for arguments in sent} == {(source.info or {})["ETag"], None}


@pytest.mark.parametrize("megabytes", [1, 7, 8])
def test_what_google_received_is_compared_with_what_was_sent(
    google: Bucket, gcs_server: GcsServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, megabytes: int
) -> None:
    """Objects of one request are compared by the store, larger ones by its checksum; 8 MiB end with a block."""
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
    from tfrecord_io.store.read.range_requests import S3Object

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
    """Copies between them are not copies of a file to itself; the address is an option of either form."""
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
    one, two, same = (Location.of("abfs://container/a.tfrecord", each).identity for each in storage)
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


@pytest.fixture
def without_crc32c(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores answer copies without the CRC32C that is asked for, as Ceph and older servers do, but with the MD5."""
    monkeypatch.setattr(store_copy, "_crc32c_in", lambda answer: None)
    monkeypatch.setattr(store_copy, "_PROOFS", WeakKeyDictionary())


@pytest.fixture
def without_checksums(without_crc32c: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores state an ETag that is not an MD5, as of objects that are encrypted with a key of the user."""
    monkeypatch.setattr(store_copy, "stated_digests", lambda info: {})


def counted_requests(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The requests to a bucket from now on, by their name in S3."""
    asked = Counter[str]()

    async def handle(name: str, key: str, request: Callable[[], Awaitable[Any]]) -> Any:
        asked[name] += 1
        return await request()

    around_requests(bucket, monkeypatch, handle)
    return asked


def dataset_or_files(bucket: Bucket, way: str, count: int) -> Store:
    """A store with many files in `d/`: those of a dataset, or with way "files" of no manifest."""
    store = Store(bucket.url("root"), bucket.storage_options)
    store.write("d/", shards=count)
    if way == "files":
        bucket.fs.rm_file(f"{bucket.name}/root/d/_MANIFEST.json")
    return store


@pytest.mark.parametrize("states", ["crc32c", "md5"])
@pytest.mark.parametrize("way", ["dataset", "files"])
def test_a_store_copies_each_file_by_one_request(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, way: str, states: str, request: pytest.FixtureRequest
) -> None:
    """Also the first one, by whose answer a store is known to state no CRC32C; 24 more requests are for all of them."""
    if states == "md5":
        request.getfixturevalue("without_crc32c")
    count = 64
    store = dataset_or_files(s3, way, count)
    asked = counted_requests(s3, monkeypatch)
    for target in ("e/", "f/"):
        asked.clear()
        report = copied(store, "d/", store, target)
        assert (len(report.copied), report.records) == (count, None)
        assert asked["copy_object"] == count
        assert asked["get_object"] + asked["put_object"] + asked["delete_object"] < 8, "of manifests alone"
        assert asked.total() <= count + 24, asked
        assert store.read(target).equals(TABLE)


@pytest.mark.usefixtures("without_checksums")
@pytest.mark.parametrize("way", ["dataset", "files"])
def test_the_first_answer_that_proves_no_copy_decides_for_the_store(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """It is copied twice, all others are read and stored: by two requests."""
    count = 24
    store = dataset_or_files(s3, way, count)
    asked = counted_requests(s3, monkeypatch)
    for target, most in (("e/", 25), ("f/", 15)):
        asked.clear()
        report = copied(store, "d/", store, target)
        assert (len(report.copied), report.records) == (count, len(TABLE))
        assert asked["copy_object"] <= (3 if target == "e/" else 0)
        assert asked.total() <= 2 * count + most, asked
        assert store.read(target).equals(TABLE)


@pytest.mark.usefixtures("without_crc32c")
def test_an_object_of_several_parts_has_no_md5_and_is_read(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not decide for the others, whose MD5 is stated."""
    store = dataset_or_files(s3, "files", 4)
    name = sorted(s3.fs.ls(f"{s3.name}/root/d", detail=False))[0]
    content = s3.fs.cat_file(name)
    place = dict(zip(("Bucket", "Key"), s3.fs.split_path(name)[:2], strict=True))
    place["UploadId"] = s3.fs.call_s3("create_multipart_upload", **place)["UploadId"]
    part = s3.fs.call_s3("upload_part", **place, PartNumber=1, Body=content)
    tags = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.fs.call_s3("complete_multipart_upload", **place, MultipartUpload=tags)
    s3.fs.invalidate_cache()
    assert "-" in s3.fs.info(name)["ETag"]
    asked = counted_requests(s3, monkeypatch)
    for target, made in (("e/", 4), ("f/", 3)):
        asked.clear()
        copied(store, "d/", store, target)
        assert (asked["copy_object"], asked["get_object"], asked["put_object"]) == (made, 1, 1)
        assert store.files(target) == store.files("d/")


@pytest.mark.usefixtures("without_crc32c")
def test_a_copy_of_another_size_than_the_manifest_states_is_an_error(s3: Bucket) -> None:
    """By the size of the object: its MD5 is that of the source, as the damage was there before."""
    store = dataset_or_files(s3, "dataset", 4)
    name = next(name for name in sorted(s3.fs.ls(f"{s3.name}/root/d", detail=False)) if "00002" in name)
    s3.fs.pipe_file(name, s3.fs.cat_file(name)[:-1])
    with pytest.raises(tfr.errors.CorruptRecordError, match="00002"):
        copied(store, "d/", store, "e/")


@pytest.mark.usefixtures("without_checksums")
def test_a_damaged_copy_of_a_store_without_checksums_is_removed(s3: Bucket) -> None:
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


@pytest.mark.parametrize("times", [1, 2])
def test_a_dataset_of_a_web_server_that_was_appended_to(web: Web, tmp_path: Path, times: int) -> None:
    """The manifest has the names of all shards, as no folder can be listed."""
    for at in range(times + 1):
        tfr.write_tfrecord(TABLE.slice(100 * at, 100), tmp_path / "d/t@2", mode="append" if at else "error")
    web.files.update((path.name, path.read_bytes()) for path in (tmp_path / "d").iterdir())
    report = tfr.copy(web.url("t@2"), tmp_path / "e/")
    assert (len(report.copied), report.records) == (2 * times + 2, 100 * times + 100)
    assert tfr.read_table(tmp_path / "e/t@2").equals(TABLE.slice(0, 100 * times + 100))
    assert tfr.copy(web.url("t@2"), tmp_path / "e/", update=True).kept == 2 * times + 2
    path = tmp_path / "d" / sorted(os.listdir(tmp_path / "d"))[-1]
    web.files[path.name] = path.read_bytes()[:-1] + b"?"
    with pytest.raises(tfr.errors.CorruptRecordError, match=path.name):
        tfr.copy(web.url("t@2"), tmp_path / "f/")
    assert not (tmp_path / "f/_MANIFEST-t.json").exists()


def test_requests_that_are_made_again_are_counted(web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, backoff_seconds=0.001)
    tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord")
    web.files["a.tfrecord"] = (tmp_path / "a.tfrecord").read_bytes()
    real = web.files["a.tfrecord"]
    report = tfr.copy(web.url("a.tfrecord"), tmp_path / "b.tfrecord")
    assert report.retries == 0
    from tfrecord_io.store.read.range_requests import HttpObject

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
