"""Shards that are added to a dataset in a bucket."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import Barrier, Thread
from typing import Any, ClassVar

import pytest
from fsspec.implementations.memory import MemoryFileSystem

import tfrecord_io as tfr
from appending_writer import appenders
from limited import set_limits
from rounds import each_step
from servers import Bucket, around_requests
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.paths import manifest, manifest_files
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.write import commit_place_remote
from tfrecord_io.store.write.commit_place_remote import AzurePlace, ClaimedPlace, GcsPlace, S3Place, remote_place


def write(bucket: Bucket, value: int, name: str = "d/", **keywords: Any) -> None:
    options = {"storage_options": bucket.storage_options, "threads": 1, **keywords}
    tfr.write_tfrecord({"x": [value] * 2}, bucket.url(name), **options)


def values(bucket: Bucket, name: str = "d/") -> list[int]:
    return tfr.read_table(bucket.url(name), storage_options=bucket.storage_options)["x"].to_pylist()[::2]


def test_what_is_appended_follows_what_was_there(bucket: Bucket) -> None:
    write(bucket, 1)
    for value in (2, 3):
        write(bucket, value, mode="append")
    assert values(bucket) == [1, 2, 3]
    assert len(bucket.names()) == 4, "three shards, the manifest, no claim"
    assert tfr.verify(bucket.url("d/"), storage_options=bucket.storage_options).ok
    write(bucket, 4, mode="overwrite")
    assert values(bucket) == [4]
    assert len(bucket.names()) == 2


def test_the_first_append_begins_a_dataset(bucket: Bucket) -> None:
    write(bucket, 1, "t@*", mode="append")
    write(bucket, 2, "t", mode="append")
    assert values(bucket, "t") == [1, 2]


@pytest.mark.parametrize(("kind", "place"), [("s3", S3Place), ("gcs", ClaimedPlace), ("azure", AzurePlace)])
def test_what_keeps_writers_apart(kind: str, place: type, request: pytest.FixtureRequest) -> None:
    """The emulator of Google's storage ignores conditions, as some servers that speak S3's protocol do."""
    bucket: Bucket = request.getfixturevalue(kind)
    store = remote_place(FsspecFileSystem(bucket.fs), f"{bucket.name}/", f"{bucket.name}/_MANIFEST.json")
    assert type(store) is place
    assert bucket.names() == []


@pytest.fixture
def requests(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Methods and keys."""
    made: list[tuple[str, str]] = []
    real = type(s3.fs)._call_s3

    async def call(self: Any, method: Any, *arguments: Any, **keywords: Any) -> Any:
        made.append((getattr(method, "__name__", method), str(keywords.get("Key", ""))))
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    return made


def test_an_append_takes_few_requests_whatever_the_number_of_shards(
    s3: Bucket, requests: list[tuple[str, str]]
) -> None:
    write(s3, 1)
    fs = FsspecFileSystem(s3.fs)
    store = remote_place(fs, f"{s3.name}/d/", f"{s3.name}/d/_MANIFEST.json")

    def with_many(manifest: Manifest | None) -> Manifest:
        assert manifest is not None
        file = manifest.files[0]
        names = [f"part-{at:05d}-of-10000.tfrecord" for at in range(10_000)]
        return manifest._replace(files=tuple(file._replace(path=name) for name in names))

    store.update(with_many, lambda manifest: False)
    s3.fs.invalidate_cache()
    requests.clear()
    tfr.write_tfrecord({"x": [2] * 100_000}, s3.url("d/"), mode="append", storage_options=s3.storage_options)
    others = [(method, key) for method, key in requests if "part-10000-" not in key]
    assert [key.endswith(".arrow.zst") for _, key in others] == [False, True, False, False]
    part = others.pop(1)[0]  # which names the last shard
    assert part == "get_object"
    look = ("head_object", "d/part-09999-of-10000.tfrecord.column_index")  # which new shards get, too
    assert others == [("get_object", "d/_MANIFEST.json"), look, ("put_object", "d/_MANIFEST.json")]


def test_a_writer_that_is_killed_appends_all_or_nothing(conditional: Bucket, dying: dict[str, Any]) -> None:
    outcomes = set()
    for left in each_step():
        dying.update(left=None)
        write(conditional, 1, f"{left}/")
        dying.update(left=left, killed=False)
        try:
            write(conditional, 2, f"{left}/", mode="append")
        except OSError:
            assert dying["killed"]
        dying.update(left=None)
        found = values(conditional, f"{left}/")
        assert found in ([1], [1, 2])
        outcomes.add(len(found))
        write(conditional, 3, f"{left}/", mode="append")
        assert values(conditional, f"{left}/") == [*found, 3]
        if not dying["killed"]:
            break
    assert outcomes == {1, 2}


def test_a_writer_that_others_precede_reads_no_part_at_each_try(
    s3: Bucket, requests: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of its tries would take longer than those of writers that have just begun, which precede it again."""
    for name, most in {"many": 4, "tail": 8}.items():
        monkeypatch.setattr(manifest_files.SIZES, name, most)
    monkeypatch.setattr(commit_place_remote, "_FIRST_PAUSE", 0.001)
    other = {**s3.storage_options, "default_cache_type": "none"}  # a filesystem and a loop of its own
    for value in range(6):
        write(s3, value, mode="append")
    put, preceding = S3Place._put, [*range(10, 50)]

    async def put_after_others(self: S3Place, key: str, body: bytes, version: str | None) -> str:
        if key.endswith("_MANIFEST.json") and preceding and self.fs.fsspec.default_cache_type != "none":
            values = [preceding.pop(0), preceding.pop(0)]
            thread = Thread(target=lambda: [write(s3, v, mode="append", storage_options=other) for v in values])
            before = len(requests)
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(0.01)
            del requests[before:]  # of the others
        return await put(self, key, body, version)

    monkeypatch.setattr(S3Place, "_put", put_after_others)
    requests.clear()
    write(s3, 99, mode="append")
    assert not preceding
    parts = Counter(key for method, key in requests if method == "get_object" and key.endswith(".arrow.zst"))
    assert len(parts) > 2
    assert max(parts.values()) <= 2, "more than to look for its own shard, and to add it to the part"
    assert values(s3)[-1] == 99
    assert sorted(values(s3)) == [*range(6), *range(10, 50), 99]


def test_a_lost_response_is_no_second_append(conditional: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    write(conditional, 1)
    lost = []

    async def handle(name: str, key: str, call: Callable[[], Awaitable[Any]]) -> Any:
        answer = await call()
        if name == "put_object" and "_MANIFEST" in key and not lost:
            lost.append(key)
            raise conditional.lost
        return answer

    around_requests(conditional, monkeypatch, handle)
    write(conditional, 2, mode="append")
    assert lost
    assert values(conditional) == [1, 2]


@pytest.mark.parametrize("mode", ["compact", "overwrite_partitions", "overwrite"])
def test_a_lost_response_after_which_the_shards_are_replaced(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """The writer finds that its shards were added, and does not add them again."""
    options: dict[str, Any] = {"partition_by": ["day"], "threads": 1}
    other = {**s3.storage_options, "default_cache_type": "none"}  # a filesystem and a loop of its own
    tfr.write_tfrecord({"x": [1], "day": ["1"]}, s3.url("d/"), storage_options=s3.storage_options, **options)
    real, done = type(s3.fs)._call_s3, []

    def replacing() -> None:
        if mode == "compact":
            tfr.compact(tfr.dataset(s3.url("d/"), threads=1, storage_options=other))
        else:
            tfr.write_tfrecord({"x": [3], "day": ["1"]}, s3.url("d/"), mode=mode, storage_options=other, **options)

    async def call(self: Any, method: Any, *arguments: Any, **keywords: Any) -> Any:
        answer = await real(self, method, *arguments, **keywords)
        if method == "put_object" and "_MANIFEST" in keywords["Key"] and not done:
            done.append(True)
            thread = Thread(target=replacing)
            thread.start()
            while thread.is_alive():
                await asyncio.sleep(0.01)
            raise ConnectionResetError
        return answer

    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    rows = {"x": [2], "day": ["1"]}
    tfr.write_tfrecord(rows, s3.url("d/"), mode="append", storage_options=s3.storage_options, **options)
    assert done
    found = tfr.read_table(s3.url("d/"), storage_options=s3.storage_options)["x"].to_pylist()
    assert found == ([1, 2] if mode == "compact" else [3])
    assert tfr.verify(s3.url("d/"), storage_options=s3.storage_options).ok


def test_an_append_during_an_overwrite_is_kept(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes after the new dataset is published, and before its shards have their names."""
    write(s3, 1)
    real, done = type(s3.fs)._call_s3, []

    async def call(self: Any, method: Any, *arguments: Any, **keywords: Any) -> Any:
        if method == "copy_object" and not done:
            done.append(True)
            appending = Thread(target=write, args=(s3, 3), kwargs={"mode": "append", "storage_options": other})
            appending.start()
            while appending.is_alive():
                await asyncio.sleep(0.01)
        return await real(self, method, *arguments, **keywords)

    other = {**s3.storage_options, "default_cache_type": "none"}  # a filesystem and a loop of its own
    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    write(s3, 2, mode="overwrite")
    assert done
    assert values(s3) == [2, 3]


@pytest.mark.fault(68)
def test_two_writers_append_to_a_dataset_that_one_of_them_begins(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one publishes while the first one, which has begun the dataset, uploads."""
    real, inner = type(s3.fs)._call_s3, []

    async def call(self: Any, method: Any, *arguments: Any, **keywords: Any) -> Any:
        if method == "put_object" and "part-00000" in keywords["Key"] and not inner:
            inner.append(keywords["Key"])
            other = Thread(target=write, args=(s3, 2), kwargs={"mode": "append"})
            appended.append(other)
        return await real(self, method, *arguments, **keywords)

    appended: list[Thread] = []
    update = S3Place.update

    def updated(self: S3Place, change: Any, is_done: Any) -> Any:
        while appended:  # the first one's shard is stored, and its manifest is next
            other = appended.pop()
            other.start()
            other.join()
        return update(self, change, is_done)

    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    monkeypatch.setattr(S3Place, "update", updated)
    write(s3, 1, mode="append")
    assert sorted(values(s3)) == [1, 2]


def test_an_append_after_the_manifest_was_looked_up(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read whole, old or new, also where the server ignores the version that is asked for."""
    write(bucket, 1)
    real: Any = manifest.read_manifest
    left = [2, 3]

    def after_an_append(*arguments: Any) -> bytes:
        if left:
            write(bucket, left.pop(0), mode="append")
        text: bytes = real(*arguments)
        return text

    monkeypatch.setattr(manifest, "read_manifest", after_an_append)
    assert values(bucket) == [1, 2]
    assert left == [3], "what was appended was not listed, so it is looked up by the name that the manifest has"


@pytest.mark.complete  # tests/write/test_compacting.py has two writers, beside one that compacts
@pytest.mark.storm
@pytest.mark.parametrize("kind", ["s3", "gcs", "azure"])
def test_writers_at_the_same_time_are_all_in_or_get_an_error(
    kind: str, request: pytest.FixtureRequest, record_property: Any
) -> None:
    bucket: Bucket = request.getfixturevalue(kind)
    races = 65
    for race in range(races):
        writers = 2 + race % 5
        target, storage = bucket.url(f"{race}/"), bucket.storage_options
        done = appenders(target, writers, times=2, storage=storage)
        table = tfr.read_table(target, storage_options=storage)
        counts = Counter(table["writer"].to_pylist())
        assert counts == {writer: 3 * times for writer, times in enumerate(done) if times}
        assert sum(done) >= writers
        assert tfr.verify(target, storage_options=storage).ok
    record_property(f"races of appending processes on {kind}", races)


class Shared(MemoryFileSystem):
    """A filesystem without conditional writes."""

    protocol = "shared"
    cachable = False
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]


def test_claims_keep_writers_apart() -> None:
    fs = Shared()
    barrier, errors = Barrier(4), []

    def append(value: int) -> None:
        barrier.wait()
        try:
            tfr.write_tfrecord({"x": [value]}, "/claims/d/", mode="append", filesystem=fs, threads=1)
        except OSError as error:
            errors.append(error)

    threads = [Thread(target=append, args=(value,)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = tfr.read_table(tfr.dataset("/claims/d/", filesystem=fs))["x"].to_pylist()
    assert len(found) + len(errors) == 4
    assert len(set(found)) == len(found) > 0
    assert [name for name in fs.find("/claims") if "claim" in name.rpartition("/")[2]] == []


def test_a_claim_that_was_left_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfrecord_io.store.write.commit_place_remote._TRIES", 2)
    fs = Shared()
    tfr.write_tfrecord({"x": [1]}, "/left/d/", filesystem=fs)
    fs.pipe_file("/left/d/_APPEND-part/0123456789abcdef.claim", b"")
    before = fs.find("/left")
    with pytest.raises(OSError, match=r"if it was killed, delete its claim, '.*0123456789abcdef.claim'"):
        tfr.write_tfrecord({"x": [2]}, "/left/d/", mode="append", filesystem=fs)
    assert fs.find("/left") == before
    assert tfr.read_table(tfr.dataset("/left/d/", filesystem=fs))["x"].to_pylist() == [1]


class Renames(Shared):
    """One that renames in one step; the next one of a staged shard meets an error, before its effect or after it."""

    protocol = "renames"
    error: ClassVar[type[OSError] | None] = None
    is_lost: ClassVar[bool] = False  # only the answer
    left: ClassVar[int] = 0  # staged shards before that one

    def mv(self, name: str, target: str, *_: Any, **__: Any) -> None:
        fails = False
        if name.endswith(".staged") and self.error is not None:
            Renames.left, fails = self.left - 1, self.left == 0
        if not fails or self.is_lost:
            self.cp_file(name, target)
            self.rm_file(name)
        if fails and self.error is not None:
            raise self.error("the server has failed")


@pytest.fixture
def renames(monkeypatch: pytest.MonkeyPatch) -> Renames:
    set_limits(monkeypatch, backoff_seconds=0.001)
    for name in ("error", "is_lost", "left"):
        monkeypatch.setattr(Renames, name, getattr(Renames, name))
    return Renames()


@pytest.mark.parametrize("shard", range(3))
def test_a_rename_whose_answer_is_lost_is_no_failure(renames: Renames, shard: int) -> None:
    path = f"/lost-{shard}/d@3"
    tfr.write_tfrecord({"x": [1] * 6}, path, filesystem=renames, threads=1)
    Renames.error, Renames.is_lost, Renames.left = ConnectionResetError, True, shard
    tfr.write_tfrecord({"x": [2] * 6}, path, filesystem=renames, mode="overwrite", threads=1)
    assert Renames.left < 0
    assert tfr.read_table(path[:-2], storage_options=renames)["x"].to_pylist() == [2] * 6


@pytest.mark.parametrize("shard", range(3))
def test_a_conversion_that_ended_between_its_renames_is_completed(renames: Renames, tmp_path: Path, shard: int) -> None:
    sources, target = [str(tmp_path / f"{i}.tfrecord") for i in range(3)], f"/converted-{shard}/d@*"
    for i, source in enumerate(sources):
        tfr.write_tfrecord({"x": [i]}, source)
    options = {"resume": True, "target_options": {"filesystem": renames, "threads": 1}}
    Renames.error, Renames.left = PermissionError, shard
    with pytest.raises(PermissionError, match="published nevertheless, and can be read; writing it again completes it"):
        tfr.convert(sources, target, **options)
    Renames.error = None
    assert tfr.read_table(target, storage_options=renames)["x"].to_pylist() == [0, 1, 2]
    tfr.convert(sources, target, **options)
    assert tfr.read_table(target, storage_options=renames)["x"].to_pylist() == [0, 1, 2]
    assert [name for name in renames.find("/") if "staged" in name or "_RESUME" in name] == []


def test_generations_are_the_condition_in_google_cloud_storage(gcs: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator ignores conditions: this checks them in front of it, by the generations that it states."""
    from gcsfs.retry import HttpError

    real, asked = type(gcs.fs)._call, []
    generations: Counter[str] = Counter()

    async def call(self: Any, method: str, path: str, *arguments: Any, **keywords: Any) -> Any:
        wanted = keywords.get("ifGenerationMatch")
        if wanted is not None:
            key = json.loads(keywords["data"].split(b"\r\n\r\n")[1].split(b"\r\n")[0])["name"]
            asked.append((key.rpartition(".")[2], wanted))
            if wanted != str(generations[key]):
                raise HttpError({"code": 412, "message": "conditionNotMet"})
            generations[key] += 1
        answer = await real(self, method, path, *arguments, **keywords)
        if wanted is not None:
            answer = {**answer, "generation": str(generations[key])}
        if keywords.get("alt") == "media" and not keywords.get("json_out"):
            answer = ({**answer[0], "x-goog-generation": str(generations[arguments[1]])}, answer[1])
        return answer

    monkeypatch.setattr(type(gcs.fs), "_call", call)
    store = remote_place(FsspecFileSystem(gcs.fs), f"{gcs.name}/d/", f"{gcs.name}/d/_MANIFEST.json")
    assert type(store) is GcsPlace
    write(gcs, 1, mode="append")
    write(gcs, 2, mode="append")
    assert values(gcs) == [1, 2]
    assert asked[0] == ("condition", "1"), "one that cannot hold"
    assert [wanted for kind, wanted in asked if kind == "json"] == ["0", "1", "2"]
    assert [wanted for kind, wanted in asked if kind == "tfrecord"] == ["0", "0"], "a shard is stored once"
    old = store.read()
    write(gcs, 3, mode="append")

    def with_nothing(manifest: Manifest | None) -> Manifest:
        assert manifest is not None
        return Manifest(manifest.dataset, manifest.id, manifest.files, None, manifest.schema)

    first, new = store.update(with_nothing, lambda manifest: False)
    assert first is not None
    assert old is not None
    assert len(new.files) == len(old.files) + 1 == 3, "read again, as another writer preceded"
