"""A manifest of many files has them in parts, which answer as the files themselves, and of which few are read."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from servers import Bucket
from tfrecord_io.base import StorageOptions
from tfrecord_io.bytes import Array, get_engine
from tfrecord_io.errors import CorruptRecordError, ReplacedError
from tfrecord_io.store import clean
from tfrecord_io.store.filesystem.interface import LocalFileSystem
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths import manifest_parts, manifest_sources
from tfrecord_io.store.paths.file_names import FileName, Kind, natural_key
from tfrecord_io.store.paths.folder_bounds import FolderBounds
from tfrecord_io.store.paths.manifest import Manifest, Upkeep, format_manifest, parse_manifest
from tfrecord_io.store.paths.manifest_files import SIZES, ManifestColumns, ManifestFiles, all_files
from tfrecord_io.store.paths.manifest_parts import PartedFiles, StoredPart, arrange, ask_again, pack, unpack
from tfrecord_io.store.read.source import ManifestFile, Source
from tfrecord_io.store.write.publication import place_of

PATH = "data/_MANIFEST.json"
ID, OTHER = "0123456789abcdef", "fedcba9876543210"
FILES = tuple(
    ManifestFile(f"day={number // 3}/part-{number:05d}-{ID}.tfrecord", number, 100 + number, 2**32 - 1 - number)
    for number in range(11)
)
NEW = ManifestFile(f"day=7/part-00099-{OTHER}.tfrecord", 5, 6, 7)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"many": 3, "part": 4, "tail": 2, "retired": 2}.items():
        monkeypatch.setattr(SIZES, name, size)


def columns(files: tuple[ManifestFile, ...]) -> ManifestColumns:
    made = ManifestColumns.of(files)
    assert made is not None
    return made


def kept(files: ManifestColumns) -> StoredPart:
    return StoredPart(pack(files, "part")[0], files=files)


def parted(files: tuple[ManifestFile, ...] = FILES) -> PartedFiles:
    """Files of which three are in each part, and the last ones in none."""
    pieces = [kept(columns(files[first : first + 3])) for first in range(0, len(files) - 2, 3)]
    return PartedFiles([*pieces, columns(files[3 * len(pieces) :])])


def test_the_files_of_a_part_are_read_back() -> None:
    for files in (FILES, FILES[3:5], (ManifestFile("part-00000.tfrecord", 0, 0, 0), NEW)):
        part, body = pack(columns(files), "part")
        assert tuple(unpack(body, part, PATH)) == files
        assert (part.files, part.records, part.bytes) == (
            len(files),
            sum(file.records for file in files),
            sum(file.bytes for file in files),
        )
    assert part.largest == 99
    assert not part.have_ids


@pytest.mark.parametrize(
    "change",
    [
        *({name: 5} for name in ("size", "crc32c", "raw", "files", "records", "bytes", "largest")),
        {"raw": 2**40},
        {"have_ids": False},
        {"values": (("day", FolderBounds(("1", "3"), (1, 3), nulls=False)),)},
        {"values": (("week", FolderBounds(("0", "3"), (0, 3), nulls=False)),)},
    ],
    ids=str,
)
def test_a_part_that_is_not_what_is_stated_is_refused(change: dict[str, Any]) -> None:
    part, body = pack(columns(FILES), "part")
    with pytest.raises(CorruptRecordError):
        unpack(body, part._replace(**change), PATH)


def test_a_part_with_other_columns_is_refused() -> None:
    part, _ = pack(columns(FILES), "part")
    sink = pa.BufferOutputStream()
    table = pa.table({"x": [1] * len(FILES)})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    raw = sink.getvalue()
    body = pa.compress(raw, codec="zstd", asbytes=True)
    right = part._replace(size=len(body), raw=raw.size, crc32c=get_engine().crc32c(body))
    with pytest.raises(CorruptRecordError, match="its columns"):
        unpack(body, right, PATH)


def test_parts_answer_as_their_files() -> None:
    files, listed = parted(), all_files(FILES)
    assert len(files.parts) == 3
    assert tuple(files) == FILES
    assert files == FILES == files == columns(FILES)
    assert files != FILES[1:]
    assert [files[at] for at in range(-len(FILES), len(FILES))] == [*FILES, *FILES]
    names = ("path_list", "counts", "record_count", "byte_count", "staged", "folder_names", "largest_number")
    for name in (*names, "have_ids"):
        assert getattr(files, name) == getattr(listed, name), name
    assert files.has_path_with(ID)
    assert not files.has_path_with(OTHER)
    paths = [FILES[7].path, "none", FILES[0].path, FILES[10].path]
    assert files.numbers_of(paths) == [7, None, 0, 10]
    for folders in ({"day=0"}, {"day=0", "day=3"}, set[str]()):
        assert files.leave_out_folders(folders) == listed.leave_out_folders(folders)
    assert files.then((NEW,)) == (*FILES, NEW)
    assert files.then(()) is files
    assert isinstance(files.then((NEW._replace(staged=f"_{ID}-00000.staged"),)), tuple)


@pytest.mark.parametrize(
    ("gone", "added"),
    [([3], []), ([0, 1, 2], []), ([0, 4, 10], [4]), ([2, 1], [1]), ([*range(11)], [9]), ([9, 10], [])],
    ids=str,
)
def test_files_are_replaced_in_their_parts_alone(gone: list[int], added: list[int]) -> None:
    new = [(number, NEW) for number in added]
    files = parted().replace(gone, new)
    assert files == all_files(FILES).replace(gone, new)
    assert isinstance(files, PartedFiles)
    untouched = [number for number in range(3) if not {*range(3 * number, 3 * number + 3)} & {*gone}]
    assert len(files.parts) == len(untouched)


def test_files_that_others_lack_are_looked_for_in_other_parts_alone() -> None:
    files = parted()
    assert files.paths_without(all_files(FILES[:9])) == [file.path for file in FILES[9:]]
    with_new = files.replace([4], [(4, NEW)]).then((NEW._replace(path="day=8/part-00100.tfrecord"),))
    assert files.paths_without(all_files(with_new)) == [FILES[4].path]
    assert all_files(with_new).paths_without(files) == [NEW.path, "day=8/part-00100.tfrecord"]
    unread = PartedFiles([StoredPart(part) for part in files.parts])  # an error if one is read
    assert unread.paths_without(PartedFiles([*unread.pieces, columns((NEW,))])) == []
    assert all_files(unread.without_parts_of(files)).path_list == []
    assert (unread.record_count, unread.largest_number, unread.have_ids) == (36, 8, True)


FOLDERS = ["", "a=1", "a=02", "a=2", "a=10", "a=1/b=2", "a=1/b=10", "a=1x", "a=é", "b=1"]


@given(st.lists(st.sampled_from(FOLDERS), min_size=1, max_size=9), st.integers(1, 4), st.randoms(use_true_random=False))
def test_an_order_that_is_known_is_that_of_reading(folders: list[str], size: int, rng: random.Random) -> None:
    names = [f"{folder}/part-{rng.randrange(20):05d}-{at:016x}.tfrecord" for at, folder in enumerate(folders)]
    paths = [name.removeprefix("/") for name in names]
    if rng.random() < 0.7:
        paths.sort(key=natural_key)
    files = columns(tuple(ManifestFile(path, 1, 1, 1) for path in paths))
    pieces = [kept(files[first : first + size]) for first in range(0, len(files), size)]
    first_paths: dict[str, str] = {}
    for path in paths:
        first_paths.setdefault(path.rpartition("/")[0], path)
    places = sorted(first_paths, key=lambda folder: natural_key(first_paths[folder]))
    by_folder = sorted(paths, key=lambda path: places.index(path.rpartition("/")[0]))
    is_known = PartedFiles(pieces).are_in_order
    assert not is_known or by_folder == paths
    for parts in (PartedFiles(pieces), PartedFiles([*pieces[:-1], files[size * (len(pieces) - 1) :]])):
        assert files.take(parts.reading_order.all_numbers).path_list == by_folder
    assert files.take(files.reading_order.all_numbers).path_list == by_folder
    chosen = np.array([rng.randrange(len(files)) for _ in range(5)])
    assert PartedFiles(pieces).take(chosen) == files.take(chosen)


def test_files_that_follow_in_the_order_of_folders_are_known_to() -> None:
    pieces = [kept(columns(FILES[:5])), kept(columns(FILES[5:8]))]
    assert PartedFiles([*pieces, columns(FILES[8:])]).are_in_order
    assert not PartedFiles([*pieces, columns(FILES[8:]), columns(FILES[:1])]).are_in_order
    assert not PartedFiles(pieces[::-1]).are_in_order


@given(
    st.lists(st.sampled_from(FOLDERS), max_size=9),
    st.lists(st.sampled_from(FOLDERS), min_size=1, max_size=4),
    st.integers(1, 4),
)
def test_added_files_are_read_behind_those_of_their_folders(before: list[str], added: list[str], size: int) -> None:
    paths = [f"{folder}/part-{at:05d}-{at:016x}.tfrecord".removeprefix("/") for at, folder in enumerate(before + added)]
    key = dict(reversed([(path.rpartition("/")[0], natural_key(path)) for path in paths]))
    old = sorted(paths[: len(before)], key=lambda path: (key[path.rpartition("/")[0]], path))
    every = columns(tuple(ManifestFile(path, 1, 1, 1) for path in old + paths[len(before) :]))
    pieces = [kept(every[first : min(first + size, len(old))]) for first in range(0, len(old), size)]
    parted_files = PartedFiles([*pieces, every[len(old) :]])
    order, expected = parted_files.reading_order, every.reading_order.all_numbers
    assert every.take(order.all_numbers).path_list == every.take(expected).path_list
    assert order.numbers(np.arange(len(every))[::-1]).tolist() == order.all_numbers.tolist()[::-1]
    assert order.last == expected[-1]


def test_of_added_files_the_parts_of_their_folders_alone_are_read() -> None:
    pieces = [kept(columns(FILES[:3])), StoredPart(pack(columns(FILES[3:6]), "part")[0]), kept(columns(FILES[6:9]))]
    tail = columns((NEW._replace(path=f"day=0/part-00099-{OTHER}.tfrecord"), NEW))
    order = PartedFiles([*pieces, tail]).reading_order.all_numbers  # an error if the second one is read
    assert order.tolist() == [0, 1, 2, 9, 3, 4, 5, 6, 7, 8, 10]


def test_the_order_of_a_dataset_that_has_grown_is_known_without_its_parts() -> None:
    pieces = [StoredPart(pack(columns(FILES[:6]), "part")[0]), columns(FILES[6:])]
    manifest = Manifest("part", ID, PartedFiles(pieces), partition_by=("day",))
    dataset = manifest_sources._Dataset(manifest.version(LocalFileSystem(), PATH), ("day",), 7, PartedFiles(pieces))
    assert dataset.order.all_numbers.tolist() == [*range(7)]  # an error if the first one is read


def arranged(files: ManifestFiles) -> tuple[ManifestFiles, list[int]]:
    stored: list[int] = []

    def store(part: ManifestColumns) -> StoredPart:
        stored.append(len(part))
        return kept(part)

    made = arrange(files, store)
    assert made == files
    return made, stored


def test_added_files_wait_in_the_manifest_and_fill_the_last_part() -> None:
    assert arranged(FILES[:3])[1] == []
    files, stored = arranged(FILES[:6])
    assert stored == [4, 2]
    for number, expected in ((6, []), (7, []), (8, [3]), (9, []), (10, [])):
        files, stored = arranged(all_files(files).then(FILES[number : number + 1]))
        assert stored == expected
    assert isinstance(files, PartedFiles)
    assert [part.files for part in files.parts] == [4, 2, 3]
    full, half, last, tail = files.pieces
    assert arranged(PartedFiles([full, columns((NEW,)), half, last, tail]))[1] == [1]
    assert arranged(PartedFiles([kept(columns(FILES[:1])), columns((NEW,)), half, last, tail]))[1] == [2]
    assert arranged(PartedFiles([full, half, columns(FILES[6:9])]))[1] == [3]
    assert arranged(PartedFiles([half, columns(FILES[6:8])]))[1] == []
    assert arranged(parted().replace([*range(8)], []))[0] == FILES[8:]
    assert isinstance(arranged(parted().replace([*range(8)], []))[0], tuple)


def test_files_that_state_more_are_in_no_part() -> None:
    staged = FILES[3]._replace(staged=f"_{ID}-00000.staged")
    assert arranged((*FILES, staged)) == ((*FILES, staged), [])


def test_the_text_states_the_parts() -> None:
    upkeep = Upkeep(7, (OTHER,))
    stated = Manifest("part", ID, parted(), None, b"schema", partition_by=("day",), upkeep=upkeep)
    again = parse_manifest(format_manifest(stated), PATH)
    assert again is not None
    assert again.parts == stated.parts
    assert (again.upkeep.revision, again.upkeep.retired) == (7, (OTHER,))
    assert again.records == stated.records
    assert again.part_ids == {OTHER, *(part.id for part in stated.parts)}
    document = json.loads(format_manifest(stated))
    assert len(document["files"]) == 2
    assert document["version"].startswith("2, for tfrecord_io ")
    for key in (*document, *document["parts"][0]):
        assert f"`{key}`" in (Path(__file__).parents[3] / "docs" / "format.md").read_text("utf-8"), key


@pytest.mark.parametrize(
    "change",
    [
        {"id": "../../etc"},
        {"id": "0" * 15},
        {"files": 0},
        {"files": -1},
        {"records": 1.5},
        {"raw": 2**30},
        {"crc32c": 7},
        {"largest": -2},
        {"have_ids": 1},
        {"folders": ["a"]},
        {"folders": [1, 2]},
        {"values": []},
        {"values": {"day": 7}},
        *(
            {"values": {"day": {"texts": ["3", "5"], "integers": [3, 5], "nulls": False} | wrong}}
            for wrong in ({"texts": ["5", "3"]}, {"texts": ["3"]}, {"integers": ["3", "5"]}, {"nulls": 0})
        ),
        {"size": None},
    ],
    ids=str,
)
def test_a_wrong_statement_about_a_part_is_refused(change: dict[str, Any]) -> None:
    document = json.loads(format_manifest(Manifest("part", ID, parted(), partition_by=("day",))))
    document["parts"][1] |= change
    with pytest.raises(CorruptRecordError):
        parse_manifest(json.dumps(document).encode(), PATH)


def test_a_part_that_is_named_twice_is_refused() -> None:
    document = json.loads(format_manifest(Manifest("part", ID, parted(), partition_by=("day",))))
    document["parts"].append(document["parts"][0])
    with pytest.raises(CorruptRecordError):
        parse_manifest(json.dumps(document).encode(), PATH)


def test_a_part_must_not_lead_out_of_the_directory(tmp_path: Path) -> None:
    for path in ("../part-00000.tfrecord", "day=1/../part-00000.tfrecord", "x=1/part-00000.tfrecord"):
        part, body = pack(columns((NEW._replace(path=path),)), "part")
        name = tmp_path / FileName.manifest_part("part", part.id)
        name.parent.mkdir(exist_ok=True)
        name.write_bytes(body)
        stated = Manifest("part", ID, PartedFiles([StoredPart(part)]), partition_by=("day",))
        again = Manifest.parse(format_manifest(stated), LocalFileSystem(), f"{tmp_path}/_MANIFEST.json")
        assert again is not None
        with pytest.raises(CorruptRecordError, match="leads out of its directory"):
            again.load()


def test_the_names_of_parts() -> None:
    for stem, folder in (("part", "_MANIFEST"), ("train", "_MANIFEST-train"), ("a-b", "_MANIFEST-a-b")):
        name = FileName.manifest_part(stem, ID)
        assert name == f"{folder}/{ID}.arrow.zst"
        file = FileName.of_path(f"d/{name}")
        assert (file.kind, file.dataset, file.id, file.is_of_tool) == (Kind.MANIFEST_PART, stem, ID, True)
    assert FileName.of_path(f"d/{ID}.arrow.zst").kind is Kind.OTHER


def test_a_manifest_is_asked_again_where_a_part_is_gone() -> None:
    answers = iter(["first", "second"])

    def ask(manifest: str) -> str:
        if manifest == "first":
            raise manifest_parts.PartGoneError("a")
        return manifest

    assert ask_again(lambda: next(answers), ask) == "second"
    with pytest.raises(CorruptRecordError, match="it is missing"):
        ask_again(lambda: "first", ask)


# ---- datasets


def append(path: str, first: int, count: int = 2, **storage: Any) -> None:
    table = {"x": list(range(first, first + count)), "day": [number % 3 for number in range(first, first + count)]}
    tfr.write_tfrecord(table, path, partition_by=["day"], mode="append", **storage)


def values(path: str, **keywords: Any) -> list[int]:
    return sorted(tfr.read_table(path, **keywords)["x"].to_pylist())


@pytest.fixture(params=["disk", "s3", "gcs", "azure"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any], Callable[[], list[str]]]:
    """The path of a dataset, how it is reached, and its parts."""
    if request.param == "disk":
        folder = tmp_path / "d" / "_MANIFEST"
        return f"{tmp_path}/d/", {}, lambda: sorted(os.listdir(folder)) if folder.exists() else []
    bucket: Bucket = request.getfixturevalue(request.param)
    storage = {"storage_options": bucket.storage_options}
    return bucket.url("d/"), storage, lambda: [n for n in bucket.names() if n.endswith(".arrow.zst")]


def test_all_changes_of_a_dataset_with_parts(target: Any) -> None:
    path, storage, parts = target
    for first in range(0, 20, 2):
        append(path, first, **storage)
        assert values(path, **storage) == list(range(first + 2))
    assert parts()
    old = tfr.dataset(path, **storage)
    assert old.to_table().num_rows == tfr.count(path, **storage) == 20
    tfr.delete(path, filters=[("day", "==", 1)], **storage)
    left = [x for x in range(20) if x % 3 != 1]
    assert values(path, **storage) == left
    with pytest.raises(ReplacedError):
        old.to_table()
    tfr.write_tfrecord({"x": [100], "day": [2]}, path, partition_by=["day"], mode="overwrite_partitions", **storage)
    left = [*(x for x in left if x % 3 == 0), 100]
    assert values(path, **storage) == left
    tfr.compact(path, **storage)
    assert values(path, **storage) == left
    assert values(path, filters=[("day", "==", 2)], **storage) == [100]
    assert tfr.verify(path, **storage).ok
    copied = f"{path.rstrip('/')}-copy/"
    append(path, 200, 9, **storage)
    tfr.copy(path, copied, **storage)
    assert values(copied, **storage) == values(path, **storage) == [*left, *range(200, 209)]
    assert tfr.verify(copied, **storage).ok
    tfr.write_tfrecord({"x": [1], "day": [1]}, path, partition_by=["day"], mode="overwrite", **storage)
    assert values(path, **storage) == [1]
    assert len(parts()) <= SIZES.retired + 3, "a few that readers may need"


def test_compact_brings_the_files_of_a_folder_together(tmp_path: Path) -> None:
    path = f"{tmp_path}/"
    for first in range(0, 24, 2):
        append(path, first)
    before, version = tfr.read_table(path), tfr.dataset(path).version
    assert version is not None
    append(path, 100)
    read = place_of(LocalFileSystem(), path, "part").read
    unsorted = read()
    assert unsorted is not None
    assert isinstance(unsorted.files, PartedFiles)
    assert not unsorted.files.is_order_found
    tfr.compact(path, max_shard_bytes=1)  # joins nothing
    compacted = read()
    assert compacted is not None
    assert isinstance(compacted.files, PartedFiles)
    assert compacted.files.are_in_order
    assert sorted(compacted.paths) == sorted(unsorted.paths)
    assert dict(compacted.parts[0].values)["day"].integers == (0, 0)
    table = tfr.read_table(path)
    assert table.filter(pc.field("x") < 100) == before
    assert [sorted(added.to_table()["x"].to_pylist()) for added in tfr.follow(path, version, every=None)] == [
        [100, 101]
    ]
    tfr.compact(path, max_shard_bytes=1)
    again = read()
    assert again == compacted, "it is left alone"
    append(path, 200)
    tfr.compact(path)
    assert tfr.read_table(path).filter(pc.field("x") < 200) == table
    (added,) = tfr.follow(path, version, every=None)
    assert sorted(added.to_table()["x"].to_pylist()) == [100, 101, 200, 201]


def test_a_filter_on_folders_reads_the_parts_of_these_alone(tmp_path: Path) -> None:
    path = f"{tmp_path}/"
    rows = [{"x": [day], "day": [day]} for day in range(20)]
    for row in rows:
        tfr.write_tfrecord(row, path, partition_by=["day"], mode="append")
    manifest = place_of(LocalFileSystem(), path, "part").read()
    assert manifest is not None
    assert len(manifest.parts) > 3
    needed = [part.id for part in manifest.parts if dict(part.values)["day"].may_have_text("7")]
    assert len(needed) == 1
    for part in manifest.parts:
        if part.id not in needed:
            (tmp_path / FileName.manifest_part("part", part.id)).unlink()
    for filters in ("day = 7", "day > 6 and day < 8", [("day", "in", [7])]):
        assert tfr.read_table(path, filters=filters)["x"].to_pylist() == [7]
    assert tfr.count(path) == 20
    tfr.write_tfrecord({"x": [77], "day": [7]}, path, partition_by=["day"], mode="overwrite_partitions")
    assert tfr.read_table(path, filters="day = 7")["x"].to_pylist() == [77]
    assert tfr.delete(path, filters="day = 7").folders == ("day=7",)
    assert tfr.count(path) == 19


def test_parts_without_bounds_are_read(tmp_path: Path) -> None:
    path, name = f"{tmp_path}/", tmp_path / "_MANIFEST.json"
    for first in range(0, 10, 2):
        append(path, first)
    document = json.loads(name.read_text())
    for part in document["parts"]:
        del part["values"]
    name.write_text(json.dumps(document))
    assert values(path, filters="day = 1") == [1, 4, 7]
    tfr.write_tfrecord({"x": [100], "day": [1]}, path, partition_by=["day"], mode="overwrite_partitions")
    assert values(path, filters="day = 1") == [100]
    tfr.delete(path, filters="day = 2")
    assert values(path) == [0, 3, 6, 9, 100]


def test_a_reader_goes_on_beside_appends_that_replace_parts(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, storage, parts = target
    monkeypatch.setattr(SIZES, "part", 100)
    for first in range(0, 10, 2):
        append(path, first, **storage)
    before = tfr.dataset(path, **storage)
    old = set(parts())
    for first in range(10, 40, 2):
        append(path, first, **storage)
    assert not old <= set(parts())
    assert sorted(before.to_table()["x"].to_pylist()) == list(range(10))


def test_a_dataset_of_one_document_gets_parts(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, storage, parts = target
    with monkeypatch.context() as patch:
        patch.setattr(SIZES, "many", 1000)
        for first in range(0, 10, 2):
            append(path, first, **storage)
    assert not parts()
    assert values(path, **storage) == list(range(10))
    append(path, 10, **storage)
    assert parts()
    assert values(path, **storage) == list(range(12))


def test_a_part_that_is_lost_is_an_error_that_names_it(tmp_path: Path) -> None:
    for first in range(0, 10, 2):
        append(f"{tmp_path}/", first)
    (part, *_) = (tmp_path / "_MANIFEST").iterdir()
    for other in (tmp_path / "_MANIFEST").iterdir():
        other.unlink()
    for call in (tfr.read_table, lambda path: tfr.delete(path, filters="x < 3"), tfr.compact):
        with pytest.raises(CorruptRecordError, match="the manifest names this part, but it is missing"):
            call(f"{tmp_path}/")
    (tmp_path / "_MANIFEST.json").unlink()
    tfr.adopt(f"{tmp_path}/")
    assert values(f"{tmp_path}/") == list(range(10))
    assert part.parent.exists()


def test_a_lost_manifest_is_made_of_its_parts(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path, storage, _ = target
    for first in range(0, 20, 2):
        append(path, first, **storage)
    tfr.write_tfrecord({"x": [100], "day": [2]}, path, partition_by=["day"], mode="overwrite_partitions", **storage)
    fs, directory = Location.of(path, StorageOptions(storage.get("storage_options")))
    place = place_of(fs, f"{directory.rstrip('/')}/", "part")
    before, expected = place.read(), tfr.read_table(path, **storage)
    assert before is not None
    in_parts = {file.path for file in Manifest.files_in_lost_parts(fs, place.directory, "part").values()}
    assert len(in_parts.intersection(before.paths)) > 4
    place.remove("_MANIFEST.json")
    read: list[str] = []
    checksum = Source.checksum
    monkeypatch.setattr(Source, "checksum", lambda self, crc: read.append(self.location[1]) or checksum(self, crc))
    report = tfr.adopt(path, **storage)
    after = place.read()
    assert after is not None
    assert sorted(after.files) == sorted(before.files)
    assert {name.removeprefix(place.directory) for name in read} == {*before.paths} - in_parts
    assert report.records == before.records
    assert tfr.read_table(path, **storage).sort_by("x") == expected.sort_by("x")
    assert tfr.verify(path, **storage).ok


def test_damaged_parts_of_a_lost_manifest_are_passed_over(tmp_path: Path) -> None:
    for first in range(0, 10, 2):
        append(f"{tmp_path}/", first)
    (tmp_path / "_MANIFEST.json").unlink()
    for number, part in enumerate((tmp_path / "_MANIFEST").iterdir()):
        part.write_bytes(part.read_bytes()[:-1] if number % 2 else b"")
    assert Manifest.files_in_lost_parts(LocalFileSystem(), f"{tmp_path}/", "part") == {}
    assert Manifest.files_in_lost_parts(LocalFileSystem(), f"{tmp_path}/", "none") == {}
    tfr.adopt(f"{tmp_path}/")
    assert values(f"{tmp_path}/") == list(range(10))


def test_parts_that_no_manifest_names_are_cleaned(target: Any) -> None:
    path, storage, parts = target
    for first in range(0, 10, 2):
        append(path, first, **storage)
    before = parts()
    fs, directory = Location.of(path, StorageOptions(storage.get("storage_options")))
    directory = f"{directory.rstrip('/')}/"
    place = place_of(fs, directory, "part")
    place._store_part(FileName.manifest_part("part", OTHER), b"of a writer that was killed")
    manifest = place.read()
    assert manifest is not None
    assert len(parts()) == len(before) + 1
    assert not clean(path, remove=True, older_than=timedelta(days=1), **storage)
    found = clean(path, remove=True, older_than=timedelta(days=-1), **storage)
    assert [leftover.path.rpartition("/")[2] for leftover in found] == [f"{OTHER}.arrow.zst"]
    assert parts() == before
    now = place_of(fs, directory, "part").read()
    assert now is not None
    assert now.upkeep.revision > manifest.upkeep.revision, "who has read the manifest before is refused"
    assert values(path, **storage) == list(range(10))


def in_pieces(counts: list[int], ends: list[int]) -> PartedFiles:
    """Files of so many records each, which are in parts up to these numbers, and the others in none."""
    files = tuple(ManifestFile(f"part-{number:05d}-{ID}.tfrecord", n, n, 0) for number, n in enumerate(counts))
    pieces: list[StoredPart | ManifestColumns] = [
        kept(columns(files[first:last])) for first, last in pairwise([0, *ends]) if first < last
    ]
    if ends[-1] < len(files):
        pieces.append(columns(files[ends[-1] :]))
    return PartedFiles(pieces)


@given(counts=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 10**15)), min_size=1, max_size=30), data=st.data())
def test_runs_are_those_of_the_records_whatever_the_parts(counts: list[int], data: st.DataObject) -> None:
    total, largest = sum(counts), max(counts)
    workers = data.draw(st.integers(1, len(counts)))
    ends = st.lists(st.integers(1, len(counts)), min_size=1, max_size=5).map(sorted)
    files, others = (in_pieces(counts, data.draw(ends)) for _ in range(2))
    runs = [files.run(worker, workers) for worker in range(workers)]
    assert runs == [others.run(worker, workers) for worker in range(workers)]
    assert runs == [all_files(files).columns.run(worker, workers) for worker in range(workers)]  # type: ignore[union-attr]
    assert [begin for begin, _ in runs] == [0, *(end for _, end in runs[:-1])]
    assert runs[-1][1] == len(counts)
    assert all(begin < end for begin, end in runs)
    if largest * workers <= total and min(counts) > 0:  # else a file has more than a share
        assert all(abs(sum(counts[begin:end]) - total / workers) <= largest + 1 for begin, end in runs)
    longer = in_pieces([*counts, *counts], ends=[len(counts) + 1])
    assert [longer.first(len(counts)).run(worker, workers) for worker in range(workers)] == runs


def test_a_run_is_in_few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    files, asked = in_pieces([5] * 40, ends=[8, 16, 24, 32]), set[int]()
    records_of = PartedFiles.records_of_piece

    def note(files: PartedFiles, piece: int) -> Array:
        asked.add(piece)
        return records_of(files, piece)

    monkeypatch.setattr(PartedFiles, "records_of_piece", note)
    assert files.run(7, 10) == (28, 32)
    assert asked == {3, 4}
