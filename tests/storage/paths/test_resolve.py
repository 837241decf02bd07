"""Paths are resolved to the files to read."""

import io
import os
import pickle
import subprocess
import sys

import fsspec
import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.errors import MissingDependencyError
from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.paths.shard_names import is_record_file, natural_key, parse_shard, parse_spec


class FileSystem:
    """A folder on disk or in memory, for the same relative paths."""

    def __init__(self, root, fs):
        self.root, self.fs = root, fs

    def make(self, *names):
        for name in names:
            path = f"{self.root}/{name}"
            self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(path, name.encode())

    def found(self, path, **kwargs):
        sources = resolve_inputs(f"{self.root}/{path}" if isinstance(path, str) else path, **kwargs)
        return [s.path.removeprefix(f"{self.root}/") for s in sources]


@pytest.fixture(params=["local", "memory"])
def tree(request, tmp_path):
    if request.param == "local":
        yield FileSystem(str(tmp_path), fsspec.filesystem("file"))
    else:
        fs = fsspec.filesystem("memory")
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]
        yield FileSystem("memory:///top", fs)
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]


def shards(base, count, suffix=""):
    return [f"{base}-{i:05d}-of-{count:05d}{suffix}" for i in range(count)]


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


@pytest.mark.parametrize(
    "name",
    [
        "t-00000-of-00001",
        "t.tfrecord-00000-of-00001",
        "t-00000-of-00001.tfrecord",
        "t-00000-of-00001.tfrecord.gz",
        "t.tfrecord-00000-of-00001.gz",
        "t.tfrecord.gz-00000-of-00001",
        "t-0-of-1.tfrec",
        "v1.0-t-00000-of-00001",
    ],
)
def test_shards_of_every_form_are_record_files(name):
    assert is_record_file(name)
    assert parse_shard(name) is not None


def test_files_come_in_natural_order(tree):
    names = [f"part{i}.tfrecord" for i in range(12)]
    tree.make(*names, "sub10/x.tfrecord", "sub9/x.tfrecord")
    assert tree.found("") == names
    assert tree.found("part*.tfrecord") == names
    assert tree.found("sub*/*") == ["sub9/x.tfrecord", "sub10/x.tfrecord"]


def test_several_families_in_a_directory_are_refused_with_a_glob_for_each_that_works(tree):
    tree.make(
        *shards("mnist-train.tfrecord", 3),
        *shards("mnist-test.tfrecord", 1),
        *shards("x[1]", 2, ".tfrec"),
        "x1-00000-of-00002.tfrec",
    )
    with pytest.raises(ValueError, match="families of shards; name one") as caught:
        tree.found("")
    globs = [g for g in str(caught.value).split("'") if "-*-of-" in g]
    assert len(globs) == 4
    sizes = [len(resolve_inputs(g, allow_missing_shards=True)) for g in globs]
    assert sorted(sizes) == [1, 1, 2, 3]


def test_a_glob_may_join_families(tree):
    tree.make(*shards("mnist-train", 2), *shards("mnist-test", 1))
    assert tree.found("mnist-*") == [*shards("mnist-test", 1), *shards("mnist-train", 2)]


def test_one_family_with_two_counts_is_refused(tree):
    tree.make(*shards("train", 2), *shards("train", 3))
    with pytest.raises(ValueError, match=r"train-\*-of-00002.*train-\*-of-00003"):
        tree.found("")
    with pytest.raises(FileNotFoundError, match="exists twice"):
        tree.found("train-*")
    assert tree.found("train@3") == shards("train", 3)
    with pytest.raises(ValueError, match="2 families"):
        tree.found("train@*")


def test_sidecars_and_directories_never_match_a_glob(tree):
    tree.make("a.tfrecord", "a.tfrecord.index", "a.json", "_a.tfrecord", "asub/b.tfrecord")
    assert tree.found("*") == ["a.tfrecord"]
    assert tree.found("a*") == ["a.tfrecord"]
    assert tree.found("_a*") == ["_a.tfrecord"]
    with pytest.raises(FileNotFoundError, match="directories or not data"):
        tree.found("*.index")
    assert tree.found("a.tfrecord.index") == ["a.tfrecord.index"]


def test_recursive_globs(tree):
    tree.make("x/a.tfrecord", "x/y/b.tfrecord", "c.tfrecord")
    assert sorted(tree.found("**/*.tfrecord")) == ["c.tfrecord", "x/a.tfrecord", "x/y/b.tfrecord"]


def test_a_missing_shard_is_named(tree):
    names = shards("train.tfrecord", 12)
    tree.make(*[n for n in names if "00007" not in n and "00009" not in n])
    for path in ("", "train*", "train@12", "train.tfrecord@*"):
        with pytest.raises(
            FileNotFoundError, match=r"shard 7 of 12 is missing \(and 1 more\); allow_missing_shards=True"
        ) as caught:
            tree.found(path)
        assert caught.value.filename == f"{tree.root}/{names[7]}"
        assert len(tree.found(path, allow_missing_shards=True)) == 10


def test_duplicate_shard_is_named(tree):
    tree.make(*shards("train", 2), "train-00001-of-00002.gz")
    with pytest.raises(FileNotFoundError, match="shard 1 exists twice"):
        tree.found("")
    assert len(tree.found("", allow_missing_shards=True)) == 3


def test_explicit_list_keeps_its_order_and_is_not_checked(tree):
    names = shards("train", 4)
    tree.make(*names, "x.tfrecord")
    listed = [f"{tree.root}/{n}" for n in (names[2], "x.tfrecord", names[0], names[0])]
    assert tree.found(listed) == [names[2], "x.tfrecord", names[0], names[0]]
    assert tree.found(iter(listed)) == tree.found(tuple(listed))
    assert tree.found([f"{tree.root}/train-0000[12]*"]) == names[1:3]


def test_missing_element_of_a_list_is_named(tree):
    tree.make("a.tfrecord")
    with pytest.raises(FileNotFoundError, match=r"no such file.*b\.tfrecord"):
        tree.found([f"{tree.root}/a.tfrecord", f"{tree.root}/b.tfrecord"])


@pytest.mark.parametrize(
    ("spec", "files"),
    [
        ("name@3", shards("name", 3)),
        ("name@*", shards("name", 3)),
        ("mnist-train@3", shards("mnist-train.tfrecord", 3)),
        ("mnist-train.tfrecord@3", shards("mnist-train.tfrecord", 3)),
        ("name.tfrecord@3", shards("name", 3, ".tfrecord")),
        ("name@3", shards("name", 3, ".tfrecord.gz")),
        ("name.tfrecord.gz@3", shards("name", 3, ".tfrecord.gz")),
        ("name.tfrecord@3", shards("name.tfrecord", 3, ".gz")),
    ],
)
def test_shard_specs_find_every_form(tree, spec, files):
    tree.make("sub/other-00000-of-00003", *(f"sub/{f}" for f in files))
    assert tree.found(f"sub/{spec}") == [f"sub/{f}" for f in files]


def test_form_that_matches_the_stem_exactly_wins(tree):
    tree.make(*shards("train", 2), *shards("train.tfrecord", 2))
    assert tree.found("train@2") == shards("train", 2)
    assert tree.found("train.tfrecord@2") == shards("train.tfrecord", 2)


def test_a_spec_that_fits_several_forms_is_refused(tree):
    tree.make(*shards("train.tfrecord", 2), *shards("train.tfrec", 2))
    with pytest.raises(ValueError, match=r"train\.tfrec-\*-of-00002.*train\.tfrecord-\*-of-00002"):
        tree.found("train@2")


def test_spec_with_wrong_count_names_the_existing_one(tree):
    tree.make(*shards("train", 2))
    with pytest.raises(FileNotFoundError, match="no shards such as 'train-00000-of-00008'; there is train@2"):
        tree.found("train@8")
    with pytest.raises(FileNotFoundError, match="no shards such as"):
        tree.found("nowhere/train@8")


def test_at_sign_elsewhere_is_not_a_spec():
    for name in ("a@b", "a@8b", "@8", "a/@8", "a@", "a@-1"):
        assert parse_spec(name) is None
    assert parse_spec("s3://user@2/x@8") == ("s3://user@2/x", 8)


def test_braces(tree):
    tree.make("a.tfrecord", "b.tfrecord", *(f"f{i:04d}.tfrec" for i in range(20)))
    assert tree.found("{b,a}.tfrecord") == ["a.tfrecord", "b.tfrecord"]
    assert tree.found("f{0000..0019}.tfrec") == [f"f{i:04d}.tfrec" for i in range(20)]
    assert tree.found("{a,f000[12]}.*") == ["a.tfrecord", "f0001.tfrec", "f0002.tfrec"]
    assert tree.found("{a,a*}.tfrecord") == ["a.tfrecord"]


def test_missing_file_of_braces_is_named(tree):
    tree.make("f0.tfrec", "f2.tfrec")
    with pytest.raises(FileNotFoundError, match=r"f1\.tfrec"):
        tree.found("f{0..2}.tfrec")
    assert tree.found("f{0..2}.tfrec", allow_missing_shards=True) == ["f0.tfrec", "f2.tfrec"]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        tree.found("g{0..2}.tfrec", allow_missing_shards=True)


def test_shards_named_by_braces_are_a_list(tree):
    tree.make(*shards("train", 8))
    assert tree.found("train-{00002..00004}-of-00008") == shards("train", 8)[2:5]
    with pytest.raises(FileNotFoundError, match="shard 0 of 8 is missing"):
        tree.found("train-0000[2-4]-of-00008")


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
    tree.make("z.parquet", "sub/a.tfrecord")
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
        "from tfrecord_io.storage import resolve_inputs, open_source\n"
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
        subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, cwd=os.getcwd())
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
    with pytest.raises(ValueError, match="storage_options are for URLs"):
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


@pytest.mark.parametrize(
    "read", [tfr.read_arrays, tfr.read_table, tfr.open_reader, tfr.count_records], ids=lambda read: read.__name__
)
def test_data_instead_of_a_path_is_refused(tmp_path, read):
    np.save(tmp_path / "x.npy", np.arange(3))
    with tfr.from_npy(tmp_path / "x.npy") as stream:
        for data in (stream, pa.table({"x": [1]})):
            with pytest.raises(TypeError, match=r"expected a path, got data .* write_tfrecord takes"):
                read(data)
        assert stream.read_all().num_rows == 3
