"""Paths are resolved to the files to read."""

import io
import os
import pickle
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from folder_trees import shards
from forked import interpreter
from tfrecord_io.base import StorageOptions
from tfrecord_io.errors import MissingDependencyError
from tfrecord_io.store.paths.file_names import natural_key
from tfrecord_io.store.paths.plain_files import PathMatch
from tfrecord_io.store.paths.resolve import resolve_inputs


def test_a_file(tree):
    tree.make("a.tfrecord")
    (source,) = resolve_inputs(f"{tree.root}/a.tfrecord")
    assert (source.size, source.local) == (10, tree.root.startswith("/"))
    raw = source.open()
    buffer = bytearray(20)
    assert raw.readinto(memoryview(buffer)) == 10
    assert buffer.startswith(b"a.tfrecord")
    raw.close()
    assert pickle.loads(pickle.dumps(source)).path == source.path


@pytest.mark.parametrize(
    "name", ["a*.tfrecord", "a[1].tfrecord", "{a,b}.tfrecord", "name@8", "{1..3}", "train@*", "what?"]
)
def test_file_of_exactly_this_name_wins_over_a_pattern(tree, name):
    tree.make(name, "a1.tfrecord", "a.tfrecord", "b.tfrecord", *shards("name", 8), "1", "2", "3", "whatx")
    assert tree.found(name) == [name]


def test_existing_directory_is_taken_literally_in_a_pattern(tree):
    tree.make("run[1]/a.tfrecord", "run1/b.tfrecord", "{x,y}/c.tfrecord")
    assert tree.found("run[1]") == ["run[1]/a.tfrecord"]
    assert tree.found("run[1]/*.tfrecord") == ["run[1]/a.tfrecord"]
    assert tree.found("run?/*") == ["run1/b.tfrecord"]


def test_directory_means_its_tfrecord_files(tree):
    good = [
        *("a.tfrecord", "a.tfrecords", "a.tfrec", "a.tf_record", "a.record", "a.records", "a_tfrecord", "a.TFRecord"),
        *("b.tfrecord.gz", "b.tfrecord.zlib", "b.tfrecord.zz", "b.tfrec.gzip"),
        *shards("c", 2),
    ]
    bad = [
        "_SUCCESS",
        "_a.tfrecord",
        ".a.tfrecord",
        "a.tfrecord.index",
        "a.tfrecord.idx",
        "a.tfrecord.md5",
        "features.json",
        "label.labels.txt",
    ]
    bad += [
        "a.parquet",
        "model.ckpt.data-00000-of-00001",
        "a.classes",
        "a.pbtxt",
        "notes",
        "a.gz",
        "c-00000-of-00002.json",
        "sub/d.tfrecord",
    ]
    tree.make(*good, *bad)
    assert sorted(tree.found("")) == sorted(good)


@pytest.mark.fault(24)
@pytest.mark.parametrize("path", ["a.tfrecord", "a*.tfrecord", "{a,b}.tfrecord", "a@8", "no/where/*", ""])
def test_no_match_names_the_path(tree, path):
    tree.make("z.parquet")
    with pytest.raises(FileNotFoundError) as caught:
        tree.found(path)
    assert caught.value.filename.removeprefix(tree.root).strip("/") in (path, "b.tfrecord") or "{" in path
    assert tree.root in str(caught.value)


@pytest.mark.fault(24)
def test_directory_without_tfrecord_files_lists_the_suffixes(tree):
    tree.make("z.parquet", "sub/a.txt")
    with pytest.raises(FileNotFoundError, match=r"end in \.tfrecord .*; it has 2 other entries"):
        tree.found("")


@pytest.mark.fault(24)
@pytest.mark.skipif(os.geteuid() != 0 and sys.platform != "linux", reason="needs to become another user")
def test_permission_error_has_the_path(tmp_path):
    for name in ("locked/a.tfrecord", "secret.tfrecord"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "locked").chmod(0)
    (tmp_path / "secret.tfrecord").chmod(0)
    code = (
        "import os, sys\n"
        "from tfrecord_io.store.paths.resolve import resolve_inputs\n"
        "root = sys.argv[1]\n"
        "os.geteuid() or os.seteuid(65534)\n"
        "for path in ('locked', 'locked/a.tfrecord', 'secret.tfrecord'):\n"
        "    try:\n"
        "        for source in resolve_inputs(root + '/' + path): source.open()\n"
        "    except PermissionError as error:\n"
        "        assert error.filename == root + '/' + path, error\n"
        "    else:\n"
        "        raise SystemExit(path + ' was read')\n"
    )
    parents = [p for p in tmp_path.parents if p.stat().st_uid == os.geteuid() and p != p.parent]
    modes = [(p, p.stat().st_mode) for p in (tmp_path, *parents)]
    try:
        for p, mode in modes:
            p.chmod(mode | 0o011)
        subprocess.run([*interpreter(), "-c", code, str(tmp_path)], check=True, cwd=os.getcwd())
    finally:
        for p, mode in modes:
            p.chmod(mode)
        (tmp_path / "locked").chmod(0o700)


def test_pathlike_home_and_file_urls(tmp_path, monkeypatch):
    (tmp_path / "a.tfrecord").write_bytes(b"abc")
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (tmp_path / "a.tfrecord", "~/a.tfrecord", f"file://{tmp_path}/a.tfrecord", tmp_path):
        (source,) = resolve_inputs(path)
        assert (source.path, source.local, source.size) == (str(tmp_path / "a.tfrecord"), True, 3)


@pytest.mark.parametrize("name", ["a b", "50%", "a%20b", "a::b", "é#1?", "\udcff"])
def test_file_urls_are_percent_encoded(tmp_path, name):
    """As pathlib writes them; a plain path is not."""
    path = tmp_path / f"{name}.tfrecord"
    path.write_bytes(b"abc")
    for form in (path, path.as_uri()):
        (source,) = resolve_inputs(form)
        assert (source.path, source.local, source.size) == (str(path), True, 3)
    (source,) = resolve_inputs(path.as_uri(), StorageOptions(filesystem=fsspec.filesystem("file")))
    assert source.path == str(path)


@pytest.mark.parametrize("name", ["a b", "50%", "a%20b", "é#1?"])
def test_file_urls_of_archives_are_percent_encoded(tmp_path, name):
    path = tmp_path / name / "a.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a%20b.tfrecord", b"abc")
    for url in (f"zip://a%20b.tfrecord::{path.as_uri()}", f"simplecache::{path.as_uri()}"):
        (source,) = resolve_inputs(url)
        assert source.size == (path.stat().st_size if "cache" in url else 3)


def test_relative_paths(tmp_path, monkeypatch):
    for name in (*shards("t", 2), "x/u.tfrecord"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    for path in ("t@2", "t-*", "."):
        assert [os.path.normpath(s.path) for s in resolve_inputs(path)] == shards("t", 2)
    assert [s.path for s in resolve_inputs("x/*")] == ["x/u.tfrecord"]


def test_fsspec_and_pyarrow_filesystems(tree, tmp_path):
    from pyarrow import fs

    (tmp_path / "a.tfrecord").write_bytes(b"abc")
    (source,) = resolve_inputs(str(tmp_path), StorageOptions(filesystem=fs.LocalFileSystem()))
    buffer = bytearray(5)
    assert source.open().readinto(memoryview(buffer)) == 3
    assert source.size == 3
    tree.make("b.tfrec")
    (source,) = resolve_inputs(f"{tree.root}/*.tfrec".removeprefix("memory://"), StorageOptions(filesystem=tree.fs))
    assert source.path == f"{tree.root}/b.tfrec"
    with pytest.raises(TypeError, match="filesystem= takes"):
        resolve_inputs("x", StorageOptions(filesystem=3))


def test_file_objects_are_read_from_their_position_and_left_open(tmp_path):
    file = io.BytesIO(b"abcdef")
    file.seek(2)
    (source,) = resolve_inputs(file)
    assert (source.path, source.size, source.local) == ("<BytesIO>", None, False)
    raw = source.open()
    buffer = bytearray(10)
    assert raw.readinto(memoryview(buffer)) == 4
    assert buffer[:4] == b"cdef"
    raw.close()
    assert not file.closed


def test_file_object_with_read_only():
    class Reader:
        def __init__(self):
            self.parts = [b"abc", b"de"]

        def read(self, n):
            return self.parts.pop(0) if self.parts else b""

    raw = resolve_inputs([Reader()])[0].open()
    buffer = memoryview(bytearray(3))
    assert [raw.readinto(buffer), raw.readinto(buffer), raw.readinto(buffer)] == [3, 2, 0]


def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(TypeError, match="text mode"):
        resolve_inputs(io.StringIO("x"))
    with open(tmp_path / "x", "wb") as file, pytest.raises(ValueError, match="not open for reading"):
        resolve_inputs(file)
    for path in (b"x", 3, None, [3], [b"x"]):
        with pytest.raises(TypeError, match=r"not (bytes|int|NoneType)"):
            resolve_inputs(path)
    for paths in ({"x"}, frozenset({"x"})):
        with pytest.raises(TypeError, match="set has no order that the rows could be in: pass a list"):
            resolve_inputs(paths)
        with pytest.raises(TypeError, match="pass a list"):
            tfr.dataset(paths)
    with pytest.raises(ValueError, match="storage_options= is for URLs"):
        resolve_inputs("x", StorageOptions({"key": "a"}))
    with pytest.raises(FileNotFoundError, match="empty list"):
        resolve_inputs([])
    with pytest.raises(ValueError, match="nonsense"):
        resolve_inputs("nonsense://x")


def test_a_protocol_whose_package_is_missing_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, "s3", raising=False)
    with pytest.raises(MissingDependencyError, match="s3fs"):
        resolve_inputs("s3://bucket/a.tfrecord")


def test_natural_order_is_total():
    names = ["a", "a1", "a01", "a2", "a10", "b", "a/b", "a-1", "1", "01", "1a", ""]
    ordered = sorted(names, key=natural_key)
    names.reverse()
    assert sorted(names, key=natural_key) == ordered
    assert ordered.index("a2") < ordered.index("a10")


PARTS = st.text(st.sampled_from("ab019-=é"), max_size=5)


@given(st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), max_size=30, unique=True))
def test_natural_order_is_that_of_texts_and_numbers_in_turn(names):
    def key(name):
        parts = [re.split("([0-9]+)", part) for part in name.split("/")]
        return [[int(text) if at % 2 else text for at, text in enumerate(part)] for part in parts], name

    assert sorted(names, key=natural_key) == sorted(names, key=key)


@pytest.mark.parametrize(
    "read", [tfr.read_arrays, tfr.read_table, tfr.open_reader, tfr.count], ids=lambda read: read.__name__
)
def test_data_instead_of_a_path_is_refused(tmp_path, read):
    np.save(tmp_path / "x.npy", np.arange(3))
    with tfr.formats.open_npy(tmp_path / "x.npy") as stream:
        for data in (stream, pa.table({"x": [1]})):
            with pytest.raises(TypeError, match=r"expected a path, got data .* write_tfrecord takes"):
                read(data)
        assert stream.read_all().num_rows == 3


@pytest.mark.parametrize("pattern", ["**/" * 500 + "x", "**//" * 500 + "x", "**/" * 500 + "a/" + "**/" * 500 + "x"])
def test_repeated_recursive_wildcards_are_one(tmp_path: Path, pattern: str) -> None:
    deep = tmp_path / "a/b/c/d/e/f"
    deep.mkdir(parents=True)
    (deep / "x").touch()
    assert [source.path for source in resolve_inputs(f"{tmp_path}/{pattern}")] == [str(deep / "x")]


def test_an_empty_directory_has_no_files(tmp_path):
    (tmp_path / "d").mkdir()
    for suffixes, text in (("", "this directory has no files"), (".npy", "has no .npy files"), ((), "has no files")):
        with pytest.raises(FileNotFoundError, match=f"{text}:"):
            PathMatch.find(tmp_path / "d", suffixes)
