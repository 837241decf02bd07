"""A large dataset with a manifest is not listed: its files are those that are looked up of a small one."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.errors import CorruptRecordError, ReplacedError
from tfrecord_io.read import scan as scans
from tfrecord_io.store.filesystem.interface import LocalFileSystem
from tfrecord_io.store.paths import manifest_files
from tfrecord_io.store.paths.manifest_sources import ManifestSources
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.source import Sources

DAYS = ["3", "10", "a b", None, "é"]


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_files.SIZES, "many", 3)
    monkeypatch.setattr(manifest_files.SIZES, "large_bytes", 0)
    monkeypatch.setattr(scans, "_MOST_PACKED", 2)


def rows(first: int) -> dict[str, Any]:
    return {"x": list(range(first, first + 2 * len(DAYS))), "day": DAYS * 2}


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    """Shards of two writings in folders, of which the second adds to folders of the first."""
    for first in (0, 100):
        tfr.write_tfrecord(rows(first), tmp_path / "d/", partition_by=["day"], mode="append")
    return f"{tmp_path}/d"


def large(path: str, **keywords: Any) -> ManifestSources:
    sources = resolve_inputs(path, **keywords)
    assert isinstance(sources, ManifestSources)
    return sources


def test_files_are_those_that_are_looked_up(dataset: str, few_are_many: None) -> None:
    looked_up = resolve_inputs(dataset, unnamed={})
    assert not looked_up.are_of_manifest
    sources = large(dataset)
    unseen = [s._replace(is_unseen=True) for source in looked_up if (s := source.shard) is not None]
    assert [source.shard for source in sources] == [s._replace(manifest=sources[0].shard.manifest) for s in unseen]  # type: ignore[union-attr]
    for name in ("path", "size", "local", "partitions", "span", "pipe"):
        assert [getattr(source, name) for source in sources] == [getattr(source, name) for source in looked_up]
    for name in ("bytes", "stated_records", "paths", "are_local", "can_be_read_again", "have_partitions", "metadata"):
        assert getattr(sources, name) == getattr(looked_up, name), name
    assert sources.partition_names == looked_up.partition_names == ["day"]
    assert sources.sizes.tolist() == [source.size for source in looked_up]
    for part in (sources, sources[3:7], sources[::-2], sources.take(np.array([5, 0])), sources[:0]):
        texts, numbers = part.folders(["day", "other"])
        expected, places = Sources(part).folders(["day", "other"])
        for name in texts:
            assert texts[name].take(numbers).to_pylist() == expected[name].take(places).to_pylist()


def test_a_file_is_one_object(dataset: str, few_are_many: None) -> None:
    sources = large(dataset)
    assert sources[2] is sources[2] is list(sources)[2] is sources[1:][1] is sources.take(np.array([2]))[0]
    assert sources[1:3] == sources[1:3] == list(sources)[1:3] != sources[2:4]


@pytest.mark.parametrize("call", [tfr.read_table, tfr.count, lambda path: tfr.dataset(path).count_rows()])
def test_calls_list_no_folder(dataset: str, few_are_many: None, monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    expected = call(dataset)
    for name in ("listing", "glob", "files_in_partition_folders"):
        monkeypatch.setattr(LocalFileSystem, name, lambda *_, **__: pytest.fail("a folder was listed"))
    assert call(dataset) == expected


@pytest.mark.parametrize(
    "filters",
    [[("day", "==", "a b")], [("day", "is null")], [("day", ">", "3"), ("x", "<", 105)], "x > 100 or day = '10'"],
)
def test_filters_leave_out_files(
    dataset: str, few_are_many: None, monkeypatch: pytest.MonkeyPatch, filters: Any
) -> None:
    table = tfr.read_table(dataset, filters=filters)
    explained = tfr.dataset(dataset).filter(filters).explain()
    monkeypatch.setattr(manifest_files.SIZES, "many", 1000)
    assert table.num_rows
    assert table == tfr.read_table(dataset, filters=filters)
    assert explained == tfr.dataset(dataset).filter(filters).explain()


def test_pieces_have_all_rows_in_order(dataset: str, few_are_many: None) -> None:
    whole = tfr.dataset(dataset)
    for n in (1, 3, 7, 50):
        pieces = whole.pieces(n)
        assert pa.concat_tables(map(tfr.read_table, pieces)) == whole.to_table()


def test_pickles_are_references(dataset: str, few_are_many: None, tmp_path: Path) -> None:
    opened = tfr.dataset(dataset)
    table, pickled = opened.to_table(), pickle.dumps(opened.filter([("day", "!=", "10")]))
    tfr.write_tfrecord(rows(200), dataset, partition_by=["day"], mode="append")  # which is not in the dataset
    again = pickle.loads(pickled)
    expected = [
        x for x, day in zip(table["x"].to_pylist(), table["day"].to_pylist(), strict=True) if day not in (None, "10")
    ]
    assert again.to_table()["x"].to_pylist() == expected
    assert pickle.loads(pickle.dumps(again)).to_table()["x"].to_pylist() == expected
    tfr.write_tfrecord(rows(0), dataset, partition_by=["day"], mode="overwrite")
    with pytest.raises(ReplacedError):
        pickle.loads(pickled).to_table()


def test_pickles_are_small(dataset: str, few_are_many: None) -> None:
    sources = large(dataset)
    many = type(sources)(sources._dataset, np.arange(1_000_000))
    many.__dict__["_totals"] = (1, 1)
    few = many.take(np.array([7, 3, 3, 900_000, 1]))
    for part in (many, many[::1000], many[7:], many[:100:-7], few, many[:1], many[:0]):
        part.__dict__["_totals"] = (1, 1)
        assert len(pickle.dumps(part)) < 10_000
        assert isinstance(part, ManifestSources)
        assert np.array_equal(pickle.loads(pickle.dumps(part))._picked, part._picked)


def test_relative_paths_stay_in_their_working_directory(
    dataset: str, few_are_many: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    opened, expected = tfr.dataset("d"), tfr.read_table(dataset)
    pickled = pickle.dumps(opened)
    monkeypatch.chdir("/")
    assert opened.to_table() == expected
    assert pickle.loads(pickled).to_table() == expected


def test_a_missing_file_is_an_error_where_it_is_opened(dataset: str, few_are_many: None) -> None:
    opened = tfr.dataset(dataset)
    os.remove(opened.files[-1])
    assert tfr.count(dataset) == 4 * len(DAYS)
    assert tfr.dataset(dataset).head(1).num_rows == 1
    for read in (tfr.read_table, tfr.verify):
        with pytest.raises(FileNotFoundError):
            read(dataset)
    with pytest.raises(FileNotFoundError):
        tfr.read_table(dataset, filters=f"day = '{DAYS[-1]}'")
    assert tfr.read_table(tfr.dataset(dataset, allow_missing_shards=True)).num_rows == 4 * len(DAYS) - 2


@pytest.mark.parametrize("change", [lambda content: content[:-1], lambda content: content + content])
def test_another_size_is_an_error_where_the_file_is_opened(dataset: str, few_are_many: None, change: Any) -> None:
    path = Path(tfr.dataset(dataset).files[0])
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(CorruptRecordError, match=r"bytes, but '.*_MANIFEST.json' states"):
        tfr.read_table(dataset)
    assert not tfr.verify(dataset).ok


def test_files_are_listed_beside_another_manifest(dataset: str, few_are_many: None) -> None:
    tfr.write_tfrecord({"x": [1]}, f"{dataset}/other@*", mode="append")
    sources = resolve_inputs(dataset)
    assert not sources.are_of_manifest
    assert len(sources) == 2 * len(DAYS) + 1


def test_a_damaged_manifest_is_an_error(dataset: str, few_are_many: None) -> None:
    path = Path(dataset) / "_MANIFEST.json"
    path.write_text(path.read_text().replace('"complete": true', '"complete": false'))
    with pytest.raises(CorruptRecordError, match="incomplete"):
        resolve_inputs(dataset)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(CorruptRecordError, match="cannot be used"):
        resolve_inputs(dataset)


@pytest.mark.parametrize(
    "days", [[3, 10, 1, 0, 1000, 27], [3, -1, 10, 2], ["03", "3", "20", "1"], ["a10", "a9", "a", "b"]]
)
def test_folders_are_in_natural_order(tmp_path: Path, few_are_many: None, days: list[Any]) -> None:
    tfr.write_tfrecord({"x": range(len(days)), "day": days}, tmp_path / "d/", partition_by=["day"])
    assert large(f"{tmp_path}/d").paths == resolve_inputs(f"{tmp_path}/d", unnamed={}).paths


def test_files_behind_the_parts_are_found_by_folder_alone(
    tmp_path: Path, few_are_many: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts of appends to all folders have some files each of those that are read: only these are put in order."""
    monkeypatch.setattr(manifest_files.SIZES, "part", 4)
    monkeypatch.setattr(manifest_files.SIZES, "tail", 1)
    for first in range(0, 60, 10):
        tfr.write_tfrecord(rows(first), tmp_path / "d/", partition_by=["day"], mode="append")
    path, ordered = f"{tmp_path}/d", list[int]()
    expected = tfr.dataset(path, allow_missing_shards=True)  # whose files are looked up
    order_of = manifest_files.ManifestColumns.reading_order.fget  # type: ignore[attr-defined]

    def note(files: manifest_files.ManifestColumns) -> Any:
        ordered.append(len(files))
        return order_of(files)

    monkeypatch.setattr(manifest_files.ManifestColumns, "reading_order", property(note))
    for filters in ('day = "3"', [("day", "in", ["10", "é"])], "day is null", 'day = "none"', 'day >= "1"'):
        assert tfr.read_table(path, filters=filters) == pa.table(expected.filter(filters))
        assert filters in ('day = "none"', 'day >= "1"') or max(ordered, default=0) < 30
