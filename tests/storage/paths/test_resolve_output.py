"""Paths are resolved to the file or the shards to write."""

import io
import os

import pytest

from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.paths.resolve_output import resolve_output
from tfrecord_io.storage.paths.shard_names import shard_name


def targets(output):
    return [output.shard(i) for i in range(output.count)] if output.sharded else [output.path]


@pytest.mark.parametrize("compression", ["infer", "gzip"])
def test_written_shards_are_named_as_reading_finds_them(tmp_path, compression):
    for path in (
        f"{tmp_path}/d/",
        f"{tmp_path}/e/train@3",
        f"{tmp_path}/f/train.tfrecord.gz@3",
        f"{tmp_path}/g/train_tfrecord@3",
    ):
        names = targets(resolve_output(path, shards=3, compression=compression))
        os.makedirs(os.path.dirname(names[0]))
        for name in names:
            open(name, "wb").close()
        assert [s.path for s in resolve_inputs(path.rpartition("/")[0])] == names
        assert [s.path for s in resolve_inputs(path)] == names
    assert shard_name("x", 3, 8) == "x-00003-of-00008"


@pytest.mark.parametrize("compression", ["infer", "gzip"])
@pytest.mark.parametrize("name", ["", "train@*", "train.tfrecord@*", "train.tfrec.gz@*", "a_tfrecord@*", "b.c@*"])
def test_shards_of_limited_size_are_found_without_a_count(tmp_path, name, compression):
    output = resolve_output(f"{tmp_path}/{name}", max_shard_bytes=100, compression=compression)
    assert (output.sharded, output.count) == (True, None)
    names = [output.shard(i) for i in range(3)]
    for each in names:
        open(each, "wb").close()
    assert [s.path for s in resolve_inputs(tmp_path)] == names
    assert [s.path for s in resolve_inputs(f"{tmp_path}/{output.stem}@*")] == names


@pytest.mark.parametrize(
    ("path", "kwargs", "first", "count"),
    [
        ("a.tfrecord", {}, "a.tfrecord", 1),
        ("a*{b,c}.tfrecord", {}, "a*{b,c}.tfrecord", 1),
        ("a@4", {}, "a-00000-of-00004", 4),
        ("a@4", {"shards": 4}, "a-00000-of-00004", 4),
        ("a@4", {"compression": "zlib"}, "a-00000-of-00004.zlib", 4),
        ("a@*", {"shards": 2}, "a-00000-of-00002", 2),
        ("a.tfrecord", {"shards": 2}, "a.tfrecord-00000-of-00002", 2),
        ("d/", {}, "d/part-00000-of-00001.tfrecord", 1),
        ("d/", {"shards": 2, "compression": "gzip"}, "d/part-00000-of-00002.tfrecord.gz", 2),
        ("memory://d/a@2", {}, "memory://d/a-00000-of-00002", 2),
        ("memory://d/", {}, "memory://d/part-00000-of-00001.tfrecord", 1),
    ],
)
def test_output_names(path, kwargs, first, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = resolve_output(path, **kwargs)
    names = targets(output)
    assert (names[0], len(names), output.count) == (first, count, count)


def test_an_existing_directory_is_written_as_shards(tmp_path):
    assert targets(resolve_output(tmp_path)) == [f"{tmp_path}/part-00000-of-00001.tfrecord"]


@pytest.mark.parametrize(
    ("path", "kwargs"),
    [
        ("a@4", {"shards": 2}),
        ("a@4", {"max_shard_bytes": 100}),
        ("a@0", {}),
        ("a@*", {}),
        ("a@100001", {}),
        ("a", {"shards": 2, "max_shard_bytes": 100}),
    ],
)
def test_contradicting_arguments_for_writing_are_refused(path, kwargs):
    with pytest.raises(ValueError):
        resolve_output(path, **kwargs)
    with pytest.raises(ValueError, match="need a path"):
        resolve_output(io.BytesIO(), shards=2)


def test_more_shards_than_five_digits_are_refused():
    assert resolve_output("a", max_shard_bytes=1).shard(99_999) == "a-99999.tfrecord"
    with pytest.raises(ValueError, match="larger max_shard_bytes"):
        resolve_output("a", max_shard_bytes=1).shard(100_000)


@pytest.mark.parametrize("path", ["d/a\\b@2", os.fsdecode(b"d/a\xff@2")])
def test_names_invalid_in_a_manifest_are_refused_before_anything_is_written(path):
    with pytest.raises(ValueError, match="choose another name"):
        resolve_output(path)
    assert not resolve_output(path.removesuffix("@2")).sharded


def test_the_root_of_a_filesystem_is_a_directory_of_it():
    assert resolve_output("memory://", shards=1).shard(0) == "memory://part-00000-of-00001.tfrecord"
    assert resolve_output("/", shards=1).shard(0) == "/part-00000-of-00001.tfrecord"
