"""``storage_options=`` takes a filesystem in every call, instead of options for one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from pyarrow import fs as pyarrow_fs

import tfrecord_io as tfr
from tfrecord_io.base.public_names import SHOWN_IN

KINDS: dict[str, Callable[[str], Any]] = {
    "fsspec": lambda folder: DirFileSystem(folder, LocalFileSystem()),
    "pyarrow": lambda folder: pyarrow_fs.SubTreeFileSystem(folder, pyarrow_fs.LocalFileSystem()),
}
TABLE = pa.table({"n": range(20), "key": [f"k{n % 3}" for n in range(20)]})
f = pc.field


@pytest.fixture(params=KINDS)
def there(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A filesystem whose names no local path has."""
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    filesystem = KINDS[request.param](str(tmp_path / "there"))
    tfr.write_tfrecord(TABLE, "a/", storage_options=filesystem, shards=2)
    return filesystem


READS: dict[str, Callable[[Any], Any]] = {
    "read_table": lambda fs: tfr.read_table("a/", storage_options=fs).num_rows,
    "read_tfrecord": lambda fs: len(tfr.read_tfrecord("a/", storage_options=fs)),
    "read_arrays": lambda fs: len(tfr.read_arrays("a/", storage_options=fs)["n"]),
    "iter_arrays": lambda fs: sum(len(batch["n"]) for batch in tfr.iter_arrays("a/", batch_size=3, storage_options=fs)),
    "open_reader": lambda fs: tfr.open_reader("a/", storage_options=fs).read_all().num_rows,
    "RecordReader": lambda fs: len(list(tfr.RecordReader("a/", storage_options=fs))),
    "dataset": lambda fs: tfr.dataset("a/", storage_options=fs).count_rows(),
    "count": lambda fs: tfr.count("a/", storage_options=fs),
    "verify": lambda fs: tfr.verify("a/", storage_options=fs).records,
    "read_metadata": lambda fs: tfr.read_metadata("a/", storage_options=fs).records,
    "describe": lambda fs: tfr.describe("a/", storage_options=fs).records,
    "report": lambda fs: tfr.report("a/", storage_options=fs).to_dict()["sampling"]["records"],
    "diff": lambda fs: 20 if tfr.diff("a/", "a/", storage_options=fs).equal else 0,
    "infer_schema": lambda fs: 10 * len(tfr.infer_schema("a/", storage_options=fs).names),
    "open_random": lambda fs: len(tfr.open_random("a/", storage_options=fs)),
    "join": lambda fs: (
        tfr.join("a/", {"key": ["k0", "k1", "k2"], "m": [1, 2, 3]}, on="key", storage_options=fs).read_all().num_rows
    ),
    "build_index": lambda fs: sum(each.records for each in tfr.build_index("a/", columns="n", storage_options=fs)),
    "compact": lambda fs: tfr.compact("a/", storage_options=fs).records,
    "delete": lambda fs: 20 * tfr.delete("a/", filters=f("n") == 3, storage_options=fs).records,
}
WRITES: dict[str, Callable[[Any], Any]] = {
    "write_tfrecord": lambda fs: tfr.write_tfrecord(TABLE, "out/", storage_options=fs),
    "merge": lambda fs: tfr.merge("a/", "out/", storage_options=fs),
    "split": lambda fs: tfr.split("a/", "out@3", storage_options=fs),
    "shuffle": lambda fs: tfr.shuffle("a/", "out/", storage_options=fs),
    "sample": lambda fs: tfr.sample("a/", "out/", n=20, storage_options=fs),
    "dedupe": lambda fs: tfr.dedupe("a/", "out/", by="n", storage_options=fs),
    "salvage": lambda fs: tfr.salvage("a/", "out/", storage_options=fs),
    "copy": lambda fs: tfr.copy("a/", "out/", storage_options=fs),
    "convert": lambda fs: tfr.convert("a/", "out/", storage_options=fs),
    "convert of one side": lambda fs: tfr.convert(
        "a/", "out/", source_options={"storage_options": fs}, target_options={"storage_options": fs}
    ),
}


@pytest.mark.parametrize("call", READS)
def test_a_call_reads_what_is_in_a_filesystem(there: Any, call: str) -> None:
    assert READS[call](there) == 20


@pytest.mark.parametrize("call", WRITES)
def test_a_call_writes_into_a_filesystem(there: Any, call: str) -> None:
    WRITES[call](there)
    path = "out@3" if call == "split" else "out/"
    written = tfr.read_table(path, storage_options=there).sort_by("n")
    assert written.select(["n", "key"]).equals(TABLE)


def test_one_side_is_in_a_filesystem(there: Any) -> None:
    """A dataset has its own; the one of a call is that of the target."""
    inside = tfr.dataset("a/", storage_options=there)
    tfr.merge(inside, "local.tfrecord")
    tfr.merge("local.tfrecord", "back.tfrecord", storage_options=None)
    tfr.merge(tfr.dataset("back.tfrecord"), "back.tfrecord", storage_options=there)
    assert tfr.read_table("back.tfrecord", storage_options=there).equals(tfr.read_table("local.tfrecord"))
    tfr.convert(inside, "local.parquet")
    tfr.convert("local.parquet", "p.tfrecord", target_options={"storage_options": there})
    assert tfr.read_table("p.tfrecord", storage_options=there).equals(TABLE)


def test_formats_read_and_write_in_a_filesystem(there: Any, tmp_path: Path) -> None:
    formats = tfr.formats
    formats.write_npy(tfr.dataset("a/", storage_options=there), "n.npy", "n", storage_options=there)
    formats.write_npz(tfr.dataset("a/", storage_options=there), "n.npz", storage_options=there)
    assert formats.open_npy("n.npy", storage_options=there).read_all().num_rows == 20
    assert formats.open_npz("n.npz", storage_options=there).read_all().num_rows == 20
    (tmp_path / "there" / "folder" / "x").mkdir(parents=True)
    for name in ("1", "2"):
        (tmp_path / "there" / "folder" / "x" / name).write_bytes(b"123")
    with formats.open_file_folder("folder", storage_options=there) as stream:
        rows = stream.read_all()
    assert rows.num_rows == 2
    paths = pa.table({"path": ["folder/x/1", "folder/x/2"]})
    embedded = formats.embed_files(paths, {"data": "path"}, storage_options=there).read_all()
    assert embedded["data"].to_pylist() == [b"123", b"123"]
    schema = tmp_path / "there" / "schema.pbtxt"
    schema.write_text(tfr.Schema({"n": "int64"}).to_tfx())
    assert tfr.Schema.from_tfx("schema.pbtxt", storage_options=there).names == ["n"]
    array = np.arange(6, dtype=np.float32)
    formats.write_tfds({"x": array}, "named/1.0.0", storage_options=there)
    assert tfr.Schema.from_tfds("named/1.0.0", storage_options=there).names == ["x"]


def _calls() -> Iterator[tuple[str, Any]]:
    for module in (tfr, *(getattr(tfr, name) for name in SHOWN_IN)):
        for name in module.__all__ if hasattr(module, "__all__") else dir(module):
            item = getattr(module, name)
            if inspect.isfunction(item):
                yield name, item


OPENING = ["read_table", "read_tfrecord", "read_arrays", "iter_arrays", "open_reader", "RecordReader", "dataset"]
OPENING += ["infer_schema", "open_random"]


@pytest.mark.parametrize("call", OPENING)
def test_calls_that_open_data_take_a_filesystem_by_its_own_name(there: Any, call: str) -> None:
    def rows(value: Any) -> int:
        return int(READS[call](value))

    assert rows(there) == 20
    function = getattr(tfr, call)
    more = {"batch_size": 3} if call == "iter_arrays" else {}
    by_name = function("a/", filesystem=there, **more)
    by_options = function("a/", storage_options=there, **more)
    assert type(by_name) is type(by_options)
    if call in ("iter_arrays", "RecordReader"):
        assert sum(1 for _ in by_name) == sum(1 for _ in by_options) > 0


def test_writers_take_a_filesystem_by_its_own_name(there: Any) -> None:
    tfr.write_tfrecord(TABLE, "one.tfrecord", filesystem=there)
    with tfr.open_writer("two.tfrecord", filesystem=there) as writer:
        writer.write(TABLE)
    with tfr.RecordWriter("three.tfrecord", filesystem=there) as writer:
        for payload in tfr.RecordReader("one.tfrecord", filesystem=there):
            writer.write(payload)
    for name in ("one", "two", "three"):
        assert tfr.read_table(f"{name}.tfrecord", filesystem=there).equals(TABLE)


def test_calls_that_open_data_and_write_it_have_both_keywords() -> None:
    """``filesystem=``, as in pyarrow and pandas, says the same there; tools have one keyword for where paths are."""
    both = {name for name, call in _calls() if "filesystem" in inspect.signature(call).parameters}
    assert both | {"RecordReader"} == {*OPENING, "write_tfrecord", "open_writer"}


def test_a_filesystem_and_another_value_are_errors(there: Any) -> None:
    with pytest.raises(ValueError, match="storage_options= is a filesystem: leave out filesystem="):
        tfr.write_tfrecord(TABLE, "x.tfrecord", storage_options=there, filesystem=there)
    with pytest.raises(ValueError, match="filesystem= differs from that of the dataset"):
        tfr.read_table(tfr.dataset("a/", storage_options=there), storage_options=LocalFileSystem())
    assert tfr.read_table(tfr.dataset("a/", filesystem=there), storage_options=there).num_rows == 20
    with pytest.raises(
        TypeError, match=r"storage_options=3: expected a dict such as .* or a filesystem of fsspec or pyarrow"
    ):
        tfr.read_table("a/", storage_options=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'filesystem': did you mean storage_options=\?"):
        tfr.merge("a/", "b/", filesystem=there)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"'fs': did you mean filesystem=\?"):
        tfr.read_table("a/", fs=there)  # type: ignore[call-arg]
