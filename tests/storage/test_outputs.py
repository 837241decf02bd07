"""From a path to the file or the shards to write."""

import io
import os

import pytest

from tfrecord_io.storage.outputs import resolve_output
from tfrecord_io.storage.paths import resolve_inputs
from tfrecord_io.storage.shards import shard_name


def test_written_shards_are_named_as_reading_finds_them(tmp_path):
    for path in (f"{tmp_path}/d/", f"{tmp_path}/e/train@3", f"{tmp_path}/f/train.tfrecord.gz@3"):
        targets = list(resolve_output(path, shards=3).targets())
        os.makedirs(os.path.dirname(targets[0]))
        for target in targets:
            open(target, "wb").close()
        assert [s.path for s in resolve_inputs(path.rpartition("/")[0])] == targets
        assert [s.path for s in resolve_inputs(path)] == targets
    assert shard_name("x", 3, 8) == "x-00003-of-00008"


@pytest.mark.parametrize(
    ("path", "kwargs", "first", "count"),
    [
        ("a.tfrecord", {}, "a.tfrecord", 1),
        ("a*{b,c}.tfrecord", {}, "a*{b,c}.tfrecord", 1),
        ("a@4", {}, "a-00000-of-00004", 4),
        ("a@4", {"shards": 4}, "a-00000-of-00004", 4),
        ("a@*", {"shards": 2}, "a-00000-of-00002", 2),
        ("a.tfrecord", {"shards": 2}, "a.tfrecord-00000-of-00002", 2),
        ("d/", {}, "d/part-00000-of-00001.tfrecord", 1),
        ("d/", {"shards": 2, "suffix": ".tfrecord.gz"}, "d/part-00000-of-00002.tfrecord.gz", 2),
        ("memory://d/a@2", {}, "memory://d/a-00000-of-00002", 2),
        ("memory://d/", {}, "memory://d/part-00000-of-00001.tfrecord", 1),
    ],
)
def test_where_is_written(path, kwargs, first, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = resolve_output(path, **kwargs)
    targets = list(output.targets())
    assert (targets[0], len(targets), output.count) == (first, count, count)


def test_an_existing_directory_is_written_as_shards(tmp_path):
    assert list(resolve_output(tmp_path).targets()) == [f"{tmp_path}/part-00000-of-00001.tfrecord"]


def test_a_size_limit_leaves_the_count_open():
    output = resolve_output("a.tfrecord", max_shard_bytes=100)
    assert (output.sharded, output.count, output.shard(1, 3)) == (True, None, "a.tfrecord-00001-of-00003")
    with pytest.raises(ValueError, match="known only at the end"):
        next(output.targets())


@pytest.mark.parametrize(
    ("path", "kwargs"),
    [("a@4", {"shards": 2}), ("a@0", {}), ("a@*", {}), ("a", {"shards": 0}), ("a", {"shards": True}), ("a", {"max_shard_bytes": -1})],
)
def test_contradicting_arguments_for_writing_are_refused(path, kwargs):
    with pytest.raises(ValueError):
        resolve_output(path, **kwargs)
    with pytest.raises(ValueError, match="need a path"):
        resolve_output(io.BytesIO(), shards=2)
