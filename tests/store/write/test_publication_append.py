"""Shards that are added to a dataset on the local disk."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from appending_writer import appenders
from rounds import COMPLETE, rounds
from tfrecord_io.store.paths.manifest import Manifest, parse_manifest


def values(path: Any) -> list[Any]:
    return tfr.read_table(path)["x"].to_pylist()


def left_over(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(("_", ".")) and name != "_MANIFEST.json"]


@settings(max_examples=rounds(60))
@given(
    parts=st.lists(st.lists(st.integers(0, 99), max_size=5), min_size=1, max_size=4),
    shards=st.integers(1, 3),
    name=st.sampled_from(["d/", "d/t@3", "d/t@*", "d/t.tfrecord@*", "d/t.tfrecord.gz@*"]),
)
def test_what_is_appended_follows_what_was_there(
    parts: list[list[int]], shards: int, name: str, tmp_path_factory: Any
) -> None:
    target = f"{tmp_path_factory.mktemp('append')}/{name}"
    for at, part in enumerate(parts):
        number = {} if "@3" in name else {"shards": shards}
        tfr.write_tfrecord({"x": pa.array(part, pa.int64())}, target, mode="append" if at else None, **number)
        assert values(target) == [value for before in parts[: at + 1] for value in before]
    assert tfr.verify(target).ok
    assert tfr.count(target) == sum(map(len, parts))


def test_every_path_of_the_dataset_has_what_was_appended(tmp_path: Path) -> None:
    target = f"{tmp_path}/train"
    tfr.write_tfrecord({"x": [1, 2]}, f"{target}@2")
    tfr.write_tfrecord({"x": [3]}, f"{target}@2", mode="append")
    tfr.write_tfrecord({"x": [4]}, target, mode="append")
    with tfr.open_writer(f"{target}@*", mode="append", max_shard_bytes=1) as writer:
        writer.write({"x": [5]})
        writer.write({"x": [6]})
    for path in (target, f"{target}@2", f"{target}@*", f"{target}-*", tmp_path):
        assert values(path) == [1, 2, 3, 4, 5, 6]
    with tfr.open_random(target) as records:
        assert [records[at]["x"] for at in (5, 0, 2)] == [6, 1, 3]


def test_the_first_append_begins_a_dataset(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/new/", mode="append")
    tfr.write_tfrecord({"x": [2]}, f"{tmp_path}/new", mode="append")
    assert values(tmp_path / "new") == [1, 2]
    assert left_over(tmp_path / "new") == []


class Replaced(MemoryFileSystem):
    """Another writer replaces the dataset as soon as the first claim is withdrawn."""

    cachable = False
    is_replaced = False

    def rm_file(self, path: str) -> None:
        super().rm_file(path)
        if path.endswith(".claim") and not self.is_replaced:
            self.is_replaced = True
            tfr.write_tfrecord({"x": [7, 8]}, "/replaced/", shards=2, mode="overwrite", filesystem=self)


def test_a_dataset_that_is_replaced_meanwhile_keeps_its_shards() -> None:
    """They have the names of those that the writer before is about to remove."""
    fs = Replaced()
    tfr.write_tfrecord({"x": [1, 2]}, "/replaced/", shards=2, filesystem=fs)
    tfr.compact("/replaced/", storage_options=fs)
    assert fs.is_replaced
    assert tfr.read_table(tfr.dataset("/replaced/", filesystem=fs))["x"].to_pylist() == [7, 8]


def test_no_rows_add_no_file(tmp_path: Path) -> None:
    empty = {"x": pa.array([], pa.int64())}
    tfr.write_tfrecord(empty, tmp_path, mode="append")
    assert tfr.read_table(tmp_path).schema.names == ["x"]
    tfr.write_tfrecord({"x": [1]}, tmp_path, mode="append")
    before = sorted(os.listdir(tmp_path))
    report = tfr.write_tfrecord(empty, tmp_path, mode="append")
    assert (report.files, sorted(os.listdir(tmp_path))) == ((), before)


@pytest.mark.parametrize("rows", [0, 1])
def test_an_overwrite_is_known_by_later_manifests(tmp_path: Path, rows: int) -> None:
    """A writer whose answer was lost looks for its id; without rows, no shard has it in its name."""
    some = pa.table({"k": ["a"], "x": [1]})

    def manifest(table: pa.Table) -> Manifest:
        tfr.write_tfrecord(table, f"{tmp_path}/d/", mode="overwrite", partition_by=["k"])
        found = parse_manifest((tmp_path / "d" / "_MANIFEST.json").read_bytes(), "d")
        assert found is not None
        return found

    manifest(some)
    id = manifest(some[:rows]).id
    for _ in range(3):
        assert manifest(some).has_shards_of(id)


@pytest.mark.parametrize("rows", [0, 1])
def test_shards_without_rows_have_no_index(tmp_path: Path, rows: int) -> None:
    tfr.write_tfrecord({"x": [7]}, tmp_path, mode="append", write_index=True)
    column = pa.array([8] * rows, pa.int64())
    report = tfr.write_tfrecord({"x": column}, tmp_path, mode="append", write_index=True, shards=2)
    assert len(report.files) == rows
    assert len(list(tmp_path.glob("*.index"))) == 1 + rows
    assert values(tmp_path) == [7] + [8] * rows


def test_a_dataset_without_rows_takes_the_categories_of_the_first_ones(tmp_path: Path) -> None:
    table = pa.table({"x": pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array([3.3, 0.1]))})
    for part in (table[:0], table):
        tfr.write_tfrecord(part, tmp_path, mode="append", float64="round")
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [0.1, 3.3]
    tfr.write_tfrecord({"x": pa.array([], pa.dictionary(pa.int8(), pa.string()))}, f"{tmp_path}/text/", mode="append")
    frame = pd.DataFrame({"x": pd.Categorical(["L", "S"], categories=["S", "M", "L"])})
    tfr.write_tfrecord(frame, f"{tmp_path}/text/", mode="append")
    assert tfr.read_tfrecord(f"{tmp_path}/text/")["x"].cat.categories.tolist() == ["S", "M", "L"]


def test_ordered_categories_are_those_of_the_dataset(tmp_path: Path) -> None:
    def frame(values: list[str], categories: list[str]) -> pd.DataFrame:
        return pd.DataFrame({"x": pd.Categorical(values, categories=categories, ordered=True)})

    for values in (["L", "S"], ["S"]):
        tfr.write_tfrecord(frame(values, ["S", "L"]), tmp_path, mode="append")
    assert tfr.read_tfrecord(tmp_path)["x"].max() == "L"
    tfr.write_tfrecord(frame(["S"], ["S"]), tmp_path, mode="append")  # the first of them, or others behind them
    tfr.write_tfrecord(frame(["XL"], ["S", "L", "XL"]), tmp_path, mode="append")
    assert tfr.read_tfrecord(tmp_path)["x"].max() == "XL"
    for other in (["L", "S"], ["S", "M", "L"]):
        with pytest.raises(tfr.errors.SchemaError, match=r"'x': its ordered categories are not those .* evolve=True"):
            tfr.write_tfrecord(frame(["S"], other), tmp_path, mode="append")
    tfr.write_tfrecord(frame(["M"], ["S", "M", "L"]), tmp_path, mode="append", evolve=True)
    assert tfr.read_table(tmp_path)["x"].to_pylist() == ["L", "S", "S", "S", "XL", "M"]
    assert tfr.read_table(tmp_path).schema.field("x").type == pa.string()


def test_the_compression_of_the_dataset_is_kept(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path, compression="gzip")
    assert tfr.write_tfrecord({"x": [2]}, tmp_path, mode="append").compression == "gzip"
    assert tfr.write_tfrecord({"x": [3]}, tmp_path, mode="append", compression=None).compression is None
    assert values(tmp_path) == [1, 2, 3]


def test_a_path_begins_a_directory(tmp_path: Path) -> None:
    """It cannot end in a slash; a name with the suffix of a file remains that of one."""
    for n in range(3):
        tfr.write_tfrecord({"x": [n]}, tmp_path / "new" / "d", mode="append")
    assert values(tmp_path / "new" / "d") == [0, 1, 2]
    tfr.write_tfrecord({"x": [1]}, tmp_path / "train@2")
    tfr.write_tfrecord({"x": [2]}, tmp_path / "train", mode="append")  # a dataset of this name
    assert values(tmp_path / "train@*") == [1, 2]
    assert not (tmp_path / "train").exists()
    for name in ("a.tfrecord", "a.gz"):
        with pytest.raises(ValueError, match="this path is one file"):
            tfr.write_tfrecord({"x": [2]}, tmp_path / name, mode="append")
    with pytest.raises(ValueError, match="append to a directory"):
        tfr.write_tfrecord({"x": [2]}, str(tmp_path / "other"), mode="append")


@pytest.mark.parametrize("rows", [0, 1])
def test_columns_are_added_with_and_without_rows(tmp_path: Path, rows: int) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path, mode="append")
    wider = pa.table({"x": pa.array([2] * rows, pa.int64()), "y": pa.array(["b"] * rows, pa.string())})
    tfr.write_tfrecord(wider, tmp_path, mode="append", evolve=True)
    assert tfr.read_table(tmp_path)["y"].to_pylist() == [None, *["b"] * rows]
    assert tfr.read_table(tmp_path).schema.field("y").type == pa.string()
    with pytest.raises(tfr.errors.SchemaError):
        tfr.write_tfrecord({"x": [3], "y": [3]}, tmp_path, mode="append")


@pytest.mark.parametrize("mode", ["overwrite", "error"])
def test_a_dataset_of_folders_without_rows_keeps_its_types(tmp_path: Path, mode: Any) -> None:
    table = pa.table({"p": pa.array([1], pa.int8()), "x": pa.array([1], pa.int16())})
    if mode == "overwrite":
        tfr.write_tfrecord(table, tmp_path, partition_by="p")
    tfr.write_tfrecord(table.slice(0, 0), tmp_path, partition_by="p", mode=mode)
    for name in table.column_names:
        other = table.set_column(table.column_names.index(name), name, pa.array([1], pa.int64()))
        with pytest.raises(tfr.errors.SchemaError):
            tfr.write_tfrecord(other, tmp_path, partition_by="p", mode="append")
    with pytest.raises(FileExistsError):
        tfr.write_tfrecord(table, tmp_path, partition_by="p")
    tfr.write_tfrecord(table, tmp_path, partition_by="p", mode="append")
    assert sorted(tfr.read_table(tmp_path).schema.types, key=str) == [pa.int16(), pa.int8()]


@pytest.mark.parametrize("exists", [True, False])
def test_a_single_file_is_refused(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "one.tfrecord"
    if exists:
        tfr.write_tfrecord({"x": [1]}, path)
    with pytest.raises(ValueError, match=r"mode='append': this path is one file, .*append to a directory"):
        tfr.write_tfrecord({"x": [2]}, path, mode="append")
    with pytest.raises(ValueError, match="a file object is one file"), open(os.devnull, "wb") as file:
        tfr.write_tfrecord({"x": [2]}, file, mode="append")


def test_shards_without_a_manifest_are_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path)
    (tmp_path / "_MANIFEST.json").unlink()
    with pytest.raises(FileExistsError, match="not of the dataset"):
        tfr.write_tfrecord({"x": [2]}, tmp_path, mode="append")


def test_appending_to_named_shards_without_a_manifest_does_not_advise_to_replace_them(tmp_path: Path) -> None:
    target = f"{tmp_path}/train@2"
    tfr.write_tfrecord({"x": [1, 2]}, target)
    (tmp_path / "_MANIFEST-train.json").unlink()
    with pytest.raises(FileExistsError, match=r"which mode='append' needs; tfrecord_io\.adopt writes one"):
        tfr.write_tfrecord({"x": [3]}, target, mode="append")
    tfr.adopt(target)
    tfr.write_tfrecord({"x": [3]}, target, mode="append")
    assert values(f"{tmp_path}/train") == [1, 2, 3]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": ["a"]}, "is string, but the dataset's is int32: no type holds both; cast the column$"),
        (
            pa.table({"x": pa.array([1], pa.int8()), "y": [1]}),
            "'y': the dataset has no such column; leave it out, or pass evolve=True",
        ),
        ({"x": pa.array([1], pa.int64())}, "'x': the appended column is int64, but the dataset's is int32, whi"),
    ],
)
def test_other_columns_are_refused(tmp_path: Path, data: Any, message: str) -> None:
    tfr.write_tfrecord({"x": pa.array([1], pa.int32())}, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(tfr.errors.SchemaError, match=message):
        tfr.write_tfrecord(data, tmp_path, mode="append")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_narrower_types_and_absent_columns_are_read_as_those_of_the_dataset(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1], pa.int64()), "y": ["a"]})
    tfr.write_tfrecord(table, tmp_path)
    tfr.write_tfrecord({"x": pa.array([2], pa.int8())}, tmp_path, mode="append")
    assert tfr.read_table(tmp_path).schema.types == table.schema.types
    assert tfr.read_table(tmp_path).to_pylist() == [{"x": 1, "y": "a"}, {"x": 2, "y": None}]


def test_a_schema_evolves(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": pa.array([1], pa.int32())}, tmp_path)
    wide = pa.table({"x": pa.array([2**40], pa.int64()), "y": ["new"]})
    tfr.write_tfrecord(wide, tmp_path, mode="append", evolve=True)
    assert tfr.read_table(tmp_path).to_pylist() == [{"x": 1, "y": None}, {"x": 2**40, "y": "new"}]
    with tfr.open_reader(tmp_path) as reader:
        assert dict(zip(reader.schema.names, reader.schema.types, strict=True)) == {"x": pa.int64(), "y": pa.string()}
    with pytest.raises(tfr.errors.SchemaError):
        tfr.write_tfrecord({"x": ["text"]}, tmp_path, mode="append", evolve=True)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"mode": "add"}, "expected one of"),
        ({"evolve": True}, "evolve=True is for mode='append'"),
        ({"mode": "append", "embed_schema": False}, "compares the schemas"),
    ],
)
def test_keywords_that_do_not_go_together(tmp_path: Path, keywords: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tfr.write_tfrecord({"x": [1]}, tmp_path, **keywords)


def test_error_and_overwrite_are_those_of_overwrite(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path, mode="error")
    with pytest.raises(FileExistsError):
        tfr.write_tfrecord({"x": [2]}, tmp_path, mode="error")
    tfr.write_tfrecord({"x": [3]}, tmp_path, mode="append")
    tfr.write_tfrecord({"x": [4]}, tmp_path, mode="overwrite")
    assert values(tmp_path) == [4]
    assert sorted(os.listdir(tmp_path)) == ["_MANIFEST.json", "part-00000-of-00001.tfrecord"]


def test_a_reader_that_is_open_goes_on(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": range(3000)}, tmp_path, shards=3)
    with tfr.open_reader(tfr.dataset(tmp_path, threads=1), batch_size=10) as reader:
        first = next(reader)
        tfr.write_tfrecord({"x": [-1]}, tmp_path, mode="append")
        rows = first.num_rows + sum(batch.num_rows for batch in reader)
    assert rows == 3000
    assert len(values(tmp_path)) == 3001


def test_an_append_that_fails_leaves_nothing(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path)
    before = sorted(os.listdir(tmp_path))
    writer = tfr.open_writer(tmp_path, mode="append")
    writer.write({"x": [2]})
    writer.discard()
    assert sorted(os.listdir(tmp_path)) == before
    with tfr.open_writer(tmp_path, mode="append") as writer:
        writer.write({"x": [2]})
        (tmp_path / "_MANIFEST.json").write_text("{")
        with pytest.raises(tfr.errors.CorruptRecordError, match="manifest"):
            writer.close()
    assert sorted(os.listdir(tmp_path)) == before


def test_a_dataset_that_another_writer_begins_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a look for the manifest, and before one for files that are none of the dataset's."""
    listed, started = os.listdir, []

    def listdir(path: str) -> list[str]:
        if not started:
            started.append(path)
            tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/d/", mode="append")
        return listed(path)

    monkeypatch.setattr(os, "listdir", listdir)
    tfr.write_tfrecord({"x": [2]}, f"{tmp_path}/d/", mode="append")
    assert started
    assert values(f"{tmp_path}/d") == [1, 2]


def test_a_filesystem_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(fd: int, how: int) -> None:
        raise OSError(37, "No locks available")

    tfr.write_tfrecord({"x": [1]}, tmp_path)
    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(OSError, match="no locks, without which two writers could lose"):
        tfr.write_tfrecord({"x": [2]}, tmp_path, mode="append")
    assert values(tmp_path) == [1]


@pytest.mark.storm
def test_writers_at_the_same_time_are_all_in(tmp_path: Path, record_property: Any) -> None:
    races = 70 if COMPLETE else 1
    for race in range(races):
        target, writers = tmp_path / str(race), 2 + race % 5
        done = appenders(f"{target}/", writers, times=3)
        table = tfr.read_table(target)
        counts = Counter(zip(table["writer"].to_pylist(), table["at"].to_pylist(), strict=True))
        assert done == [3] * writers
        assert counts == {(writer, at): 3 for writer in range(writers) for at in range(3)}
        of_each = [[at for w, at in counts if w == writer] for writer in range(writers)]
        assert of_each == [[0, 1, 2]] * writers, "each writer's appends are in their order"
        assert tfr.verify(target).ok
    record_property("races of appending processes on the local disk", races)
