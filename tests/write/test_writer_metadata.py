"""Texts of the caller in a manifest: what keeps them, what adds to them, and what refuses them."""

from __future__ import annotations

import io
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.errors import CorruptRecordError, ReplacedError
from tfrecord_io.store.paths.manifest import Manifest, format_manifest, parse_manifest
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.write.distributed import DistributedWriter
from tfrecord_io.write.sharded_sink import manifest_metadata

TABLE = pa.table({"x": [1, 2, 3, 4], "day": [1, 1, 2, 2]})
TEXTS = {"source": "https://example.com/?a=b", "Lizenz": "ä — ☃", "": "", "id": "0" * 16}


def metadata(path: Any) -> dict[str, str]:
    return tfr.read_metadata(path).metadata


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    tfr.write_tfrecord(TABLE, f"{tmp_path}/d/", mode="append", metadata=TEXTS)
    tfr.write_tfrecord(TABLE, f"{tmp_path}/d/", mode="append")
    return f"{tmp_path}/d/"


@given(st.dictionaries(st.text(), st.text(), max_size=4))
def test_any_texts_are_read_back(texts: dict[str, str]) -> None:
    options = WriteOptions(metadata=texts)
    manifest = Manifest("train", "0" * 16, (), metadata=manifest_metadata(options))
    assert parse_manifest(format_manifest(manifest), "_MANIFEST-train.json") == manifest
    assert dict(manifest.metadata) == texts


@pytest.mark.parametrize("value", [7, [], "x", {"a": 1}, {"a": None}])
def test_a_manifest_with_other_metadata_is_refused(value: Any) -> None:
    document = json.loads(format_manifest(Manifest("train", "0" * 16, ())))
    with pytest.raises(CorruptRecordError, match="its 'metadata' is"):
        parse_manifest(json.dumps({**document, "metadata": value}).encode(), "_MANIFEST-train.json")


WRITES: dict[str, Callable[[str], Any]] = {
    "directory": lambda path: tfr.write_tfrecord(TABLE, path, shards=2, metadata=TEXTS),
    "append": lambda path: tfr.write_tfrecord(TABLE, path, mode="append", metadata=TEXTS),
    "folders": lambda path: tfr.write_tfrecord(TABLE, path, partition_by="day", metadata=TEXTS),
    "sizes": lambda path: tfr.write_tfrecord(TABLE, path, max_shard_bytes=20, metadata=TEXTS),
    "no rows": lambda path: tfr.write_tfrecord(TABLE.slice(0, 0), path, mode="append", metadata=TEXTS),
    "replaced": lambda path: [
        tfr.write_tfrecord(TABLE, path, metadata={"old": "x"}),
        tfr.write_tfrecord(TABLE, path, mode="overwrite", metadata=TEXTS),
    ],
    "convert": lambda path: [
        tfr.write_tfrecord(TABLE, f"{path[:-1]}.tfrecord"),
        tfr.convert(f"{path[:-1]}.tfrecord", path, target_options={"metadata": TEXTS}),
    ],
    "resumed": lambda path: [
        tfr.write_tfrecord(TABLE, f"{path[:-1]}.tfrecord"),
        tfr.convert(f"{path[:-1]}.tfrecord", path, target_options={"metadata": TEXTS}, resume=True),
    ],
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_written_dataset_has_them(write: Callable[[str], Any], tmp_path: Path) -> None:
    write(f"{tmp_path}/d/")
    assert metadata(f"{tmp_path}/d/") == TEXTS
    assert "source: https://example.com/?a=b" in str(tfr.read_metadata(f"{tmp_path}/d/"))


def test_a_writer_has_them(tmp_path: Path) -> None:
    with tfr.open_writer(tmp_path / "train@2", metadata=TEXTS) as writer:
        writer.write(TABLE)
    assert metadata(tmp_path / "train@2") == TEXTS


@pytest.mark.parametrize("partition_by", [None, "day"])
def test_a_job_of_several_processes_has_them(partition_by: str | None, tmp_path: Path) -> None:
    with DistributedWriter.begin(f"{tmp_path}/d/", WriteOptions(metadata=TEXTS, partition_by=partition_by)) as job:
        job.commit([job.write_part(task, [TABLE]) for task in range(2)])
    assert metadata(f"{tmp_path}/d/") == TEXTS


def test_an_append_adds_them_and_new_texts_win(dataset: str) -> None:
    tfr.write_tfrecord(TABLE, dataset, mode="append", metadata={"Lizenz": "CC0", "new": "n"})
    assert metadata(dataset) == {**TEXTS, "Lizenz": "CC0", "new": "n"}
    assert tfr.count(dataset) == 12


def test_an_append_without_rows_changes_them(dataset: str) -> None:
    before = tfr.read_table(dataset)
    tfr.write_tfrecord(TABLE.slice(0, 0), dataset, mode="append", metadata={"source": "s"})
    assert metadata(dataset) == {**TEXTS, "source": "s"}
    assert tfr.read_table(dataset) == before


def test_replaced_folders_add_them(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path, partition_by="day", metadata={"a": "1", "b": "2"})
    keywords: dict[str, Any] = {"partition_by": "day", "mode": "overwrite_partitions"}
    tfr.write_tfrecord(TABLE.slice(0, 1), tmp_path, metadata={"b": "3"}, **keywords)
    assert metadata(tmp_path) == {"a": "1", "b": "3"}
    tfr.write_tfrecord(TABLE, tmp_path, partition_by="day", mode="overwrite")
    assert metadata(tmp_path) == {}


KEEPS: dict[str, Callable[[str, str], Any]] = {
    "compact": lambda source, _: tfr.compact(source),
    "delete": lambda source, _: tfr.delete(source, filters="x > 3"),
    "delete all": lambda source, _: tfr.delete(source, filters="x > 0"),
    "copy": tfr.copy,
    "copy again": lambda source, target: [
        tfr.copy(source, target),
        tfr.write_tfrecord(TABLE, source, mode="append", metadata={"source": "s"}),
        tfr.copy(source, target, update=True),
        tfr.write_tfrecord(TABLE, source, mode="append", metadata=TEXTS),
        tfr.copy(source, target, update=True),
    ],
    "merge": tfr.merge,
    "shuffle": lambda source, target: tfr.shuffle(source, target, seed=1),
    "dedupe": lambda source, target: tfr.dedupe(source, target, by="x"),
    "salvage": lambda source, target: tfr.salvage(source, target),
    "split": lambda source, target: tfr.split(source, target, shards=2),
    "convert": tfr.convert,
    "convert by file": lambda source, target: tfr.convert(source, target, resume=True),
    "convert in its place": lambda source, _: tfr.convert(source, source, mode="overwrite"),
}


@pytest.mark.parametrize("change", KEEPS.values(), ids=KEEPS)
def test_a_changed_or_copied_dataset_keeps_them(
    change: Callable[[str, str], Any], dataset: str, tmp_path: Path
) -> None:
    target = f"{tmp_path}/e/"
    change(dataset, target)
    assert metadata(target if Path(target).exists() else dataset) == TEXTS


def test_a_copy_that_changes_only_them_is_made(dataset: str, tmp_path: Path) -> None:
    tfr.copy(dataset, tmp_path / "e")
    tfr.write_tfrecord(TABLE.slice(0, 0), dataset, mode="append", metadata={"source": "s"})
    tfr.copy(dataset, tmp_path / "e", update=True)
    assert metadata(tmp_path / "e") == {**TEXTS, "source": "s"}


def test_split_parts_have_them(dataset: str, tmp_path: Path) -> None:
    tfr.split(dataset, f"{tmp_path}/parts/", fractions={"train": 0.5, "test": 0.5}, shards=2)
    for name in ("train", "test"):
        assert metadata(f"{tmp_path}/parts/{name}@2") == TEXTS


def test_of_several_datasets_the_texts_without_contradiction_are_kept(tmp_path: Path) -> None:
    for name, texts in {"a": {"license": "CC0", "source": "a"}, "b": {"source": "b", "by": "me"}, "c": {}}.items():
        tfr.write_tfrecord(TABLE, f"{tmp_path}/{name}/", shards=2, metadata=texts)
    sources = [f"{tmp_path}/{name}/" for name in "abc"]
    assert metadata(sources) == {"license": "CC0", "by": "me"}
    tfr.merge(sources, f"{tmp_path}/d/", shards=2)
    assert metadata(f"{tmp_path}/d/") == {"license": "CC0", "by": "me"}


def test_the_texts_of_a_call_win_over_those_of_its_source(dataset: str, tmp_path: Path) -> None:
    tfr.convert(dataset, f"{tmp_path}/e/", target_options={"metadata": {"source": "s"}})
    assert metadata(f"{tmp_path}/e/") == {**TEXTS, "source": "s"}


def test_rows_of_a_dataset_are_added_to_another_without_its_texts(dataset: str, tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, f"{tmp_path}/e/", mode="append", metadata={"source": "e"})
    tfr.convert(dataset, f"{tmp_path}/e/", mode="append")
    assert metadata(f"{tmp_path}/e/") == {"source": "e"}


def test_one_file_refuses_them_and_is_not_made(tmp_path: Path) -> None:
    for path in (tmp_path / "x.tfrecord", str(tmp_path / "x"), io.BytesIO()):
        with pytest.raises(ValueError, match=r"this path is one file; write a directory .*, or leave out metadata="):
            tfr.write_tfrecord(TABLE, path, metadata=TEXTS)
        with pytest.raises(ValueError, match="this path is one file"):
            tfr.open_writer(path, metadata=TEXTS)
    assert list(tmp_path.iterdir()) == []
    tfr.write_tfrecord(TABLE, tmp_path / "x.tfrecord", metadata={})  # there is nothing to lose
    assert metadata(tmp_path / "x.tfrecord") == {}


def test_a_copy_to_one_file_is_without_them(dataset: str, tmp_path: Path) -> None:
    tfr.merge(dataset, tmp_path / "x.tfrecord")
    tfr.convert(dataset, tmp_path / "y.tfrecord")
    assert metadata(tmp_path / "x.tfrecord") == metadata(tmp_path / "y.tfrecord") == {}


@pytest.mark.parametrize(("value", "error", "text"), [
    ("source=x", TypeError, "expected a dict such as"),
    ([("a", "b")], TypeError, "expected a dict such as"),
    ({1: "x"}, TypeError, "metadata has the key 1: expected names"),
    ({"rows": 7}, TypeError, "metadata={'rows': 7}: expected a str, as in {'rows': '7'}"),
    ({"a": None}, TypeError, "expected a str"),
    ({"a": "\ud800"}, ValueError, "is not Unicode text"),
    ({"\udcff": "a"}, ValueError, "is not Unicode text"),
])  # fmt: skip
def test_other_values_are_refused_before_anything_is_written(
    value: Any, error: type[Exception], text: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        tfr.write_tfrecord(TABLE, tmp_path / "train@2", metadata=value)
    assert text in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_later_changes_of_the_dict_have_no_effect(tmp_path: Path) -> None:
    texts = {"a": "1"}
    with tfr.open_writer(tmp_path / "train@1", metadata=texts) as writer:
        texts["a"] = "2"
        writer.write(TABLE)
    assert metadata(tmp_path / "train@1") == {"a": "1"}


def test_a_resumed_call_with_other_texts_is_another_call(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "x.tfrecord")
    tfr.convert(tmp_path / "x.tfrecord", f"{tmp_path}/d/", target_options={"metadata": {"a": "1"}}, resume=True)
    with pytest.raises(FileExistsError):
        tfr.convert(tmp_path / "x.tfrecord", f"{tmp_path}/d/", target_options={"metadata": {"a": "2"}}, resume=True)
    assert metadata(f"{tmp_path}/d/") == {"a": "1"}


def test_a_replaced_dataset_is_noticed_although_its_metadata_name_the_old_one(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "train@1")
    shard = pickle.loads(pickle.dumps(resolve_inputs(tmp_path / "train@1")[0].shard))
    tfr.write_tfrecord(TABLE, tmp_path / "train@1", mode="overwrite", metadata={"id": shard.manifest.id})
    with pytest.raises(ReplacedError):
        shard.manifest.check_unchanged()
