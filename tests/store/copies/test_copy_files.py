"""Copies of files and datasets: which bytes arrive, what is checked on the way, and what a failed copy leaves."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.fs
import pytest

import tfrecord_io as tfr
from copy_stores import STORES, TABLE, Store, copied, data
from tfrecord_io.store.copies.copied_dataset import plan
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.read.source import ManifestFile

pytestmark = pytest.mark.matrix


FORMS: list[dict[str, Any]] = [
    {"name": "d/train@4", "write_index": True},
    {"name": "d/", "max_shard_bytes": 20_000},
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
    known = wanted._replace(id="1" * 16, files=(ManifestFile("a-00000-of-00001", 1, 30, 8),))

    def staged(removed: tuple[str, ...]) -> str:
        target = known._replace(staged_before=removed)
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
