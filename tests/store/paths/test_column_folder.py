"""Partition folders: which ones are read, and their values."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import fsspec
import pytest

import tfrecord_io as tfr
from tfrecord_io.errors import SchemaError
from tfrecord_io.store import clean
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.resolve import resolve_inputs

FILES = [
    "label=cat/part-0.tfrecord",
    "label=cat/year=2020/a-00000-of-00001",
    "label=dog/part-0.tfrecord",
    "label=dog/part-1.tfrecord",
    "_k=1/x.tfrecord",
    "label=dog/notes/x.tfrecord",
    "label=dog/_temporary/x.tfrecord",
    "label=dog/_SUCCESS",
    ".hidden=1/x.tfrecord",
    "other/x.tfrecord",
    "other/label=emu/x.tfrecord",
]


@pytest.fixture(params=["", "memory://"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    import fsspec

    for name in FILES:
        path = f"{request.param}{tmp_path}/{name}"
        fs, _, (inner,) = fsspec.get_fs_token_paths(path)
        fs.makedirs(inner.rpartition("/")[0], exist_ok=True)
        fs.pipe_file(inner, b"x")
    return f"{request.param}{tmp_path}"


def found(path: object) -> list[tuple[str, dict[str, str | None]]]:
    return [("/".join(s.path.rsplit("/", 3)[1:]), dict(s.partitions)) for s in resolve_inputs(path)]


def names(path: object, folder: str) -> list[str]:
    return [s.path.removeprefix(f"{folder}/") for s in resolve_inputs(path)]


@pytest.mark.parametrize("slash", ["", "/", "//"])
def test_directory_is_searched_in_partition_folders_only(folder: str, slash: str) -> None:
    assert names(folder + slash, folder) == sorted(FILES[:5])
    partitions = {s.path.removeprefix(f"{folder}/"): s.partitions for s in resolve_inputs(folder + slash)}
    assert partitions[FILES[0]] == (("label", "cat"),)
    assert partitions[FILES[1]] == (("label", "cat"), ("year", "2020"))
    assert partitions[FILES[4]] == (("_k", "1"),)


def test_partition_folders_of_a_glob_start_at_its_first_wildcard(folder: str) -> None:
    for pattern in ("label=*/*.tfrecord", "label=[cd]*/part-*", "*/part-?.tfrecord", "label={cat,dog}/part-*"):
        assert [dict(s.partitions) for s in resolve_inputs(f"{folder}/{pattern}")] == [
            {"label": v} for v in ("cat", "dog", "dog")
        ]
    assert {s.partitions for s in resolve_inputs(f"{folder}/label=dog/part-*.tfrecord")} == {()}
    assert {s.partitions for s in resolve_inputs(f"{folder}/label=dog")} == {()}
    assert {s.partitions for s in resolve_inputs([f"{folder}/label=dog/part-0.tfrecord"])} == {()}
    everywhere = {
        s.path.removeprefix(f"{folder}/"): dict(s.partitions) for s in resolve_inputs(f"{folder}/**/*.tfrecord")
    }
    assert everywhere["other/x.tfrecord"] == {}
    assert everywhere["other/label=emu/x.tfrecord"] == {"label": "emu"}
    assert everywhere["label=dog/notes/x.tfrecord"] == {"label": "dog"}


def test_each_folder_is_a_separate_dataset(folder: str, tmp_path: Path) -> None:
    root = tmp_path / "more"
    for name in ("k=1/a-00000-of-00002", "k=1/a-00001-of-00002", "k=2/a-00000-of-00001"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    assert len(resolve_inputs(root)) == 3
    (root / "k=1/a-00001-of-00002").unlink()
    with pytest.raises(FileNotFoundError, match="shard 1 of 2"):
        resolve_inputs(root)
    (root / "k=1/b-00000-of-00001").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"k=1' has 2 families"):
        resolve_inputs(root)


def test_names_and_values_are_percent_decoded() -> None:
    assert ColumnFolder.parse("a%2Fb=c%3Dd%20%C3%BC") == ("a/b", "c=d ü")
    assert ColumnFolder.parse("k=a=b") == ("k", "a=b")
    assert ColumnFolder.parse("k=") == ("k", "")
    for plain in ("", "a", "=b", "_k", ".k=1"):
        assert ColumnFolder.parse(plain) is None
    with pytest.raises(SchemaError, match="not UTF-8"):
        ColumnFolder.parse("k=%ff")
    with pytest.raises(SchemaError, match="two folders"):
        ColumnFolder.pairs_in("d/k=1/k=2/x", "d/")
    assert ColumnFolder.pairs_in("elsewhere/k=1/x", "d/") == ()
    assert [ColumnFolder.root_of(p) for p in ("k=*/x", "a/b/c", "a/b{c,d}/e", "a/*/b*")] == ["", "a/b/", "a/", "a/"]


def test_dataset_with_folders_is_read_once_with_two_slashes_at_its_end(tmp_path: Path) -> None:
    path = f"{tmp_path}/d"
    tfr.write_tfrecord({"x": [1, 2, 3], "p": ["a", "b", "a"]}, f"{path}//", partition_by=["p"])
    assert tfr.read_table(f"{path}//").num_rows == tfr.count(f"{path}//") == 3
    tfr.delete(f"{path}//", filters=[("x", "==", 1)])
    tfr.compact(f"{path}//")
    assert tfr.read_table(path)["x"].to_pylist() == [3, 2]


@pytest.mark.parametrize("store", ["", "memory://"])
def test_a_dataset_that_is_named_like_a_folder_of_a_column_has_its_manifest(store: str, tmp_path: Path) -> None:
    path = f"{store}{tmp_path}/month=5"
    rows = {"x": [1, 2, 3], "p": ["a", "b", "a"]}
    for mode in ("append", "overwrite_partitions"):
        tfr.write_tfrecord(rows, path, partition_by=["p"], mode=mode)
    fs, (name,) = fsspec.core.get_fs_token_paths(f"{path}/p=a/part-00007-0123456789abcdef.tfrecord")[::2]
    with fs.open(name, "wb") as file:  # of a writer that was killed
        tfr.write_tfrecord({"x": [9]}, file)
    assert tfr.read_table(f"{path}/p=a/")["x"].to_pylist() == [1, 3]
    left = [leftover.path for leftover in clean(path, older_than=timedelta(-1))]
    assert [each.endswith("-0123456789abcdef.tfrecord") for each in left] == [True]
    assert tfr.delete(f"{path}/p=a/", filters=[("x", "==", 1)]).records == 1
    assert len(tfr.compact(f"{path}/p=b/").files) == 0
