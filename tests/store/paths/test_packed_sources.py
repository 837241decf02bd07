"""Packed sources unpack to equal sources, for any names and sizes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import fsspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from servers import Bucket
from tfrecord_io.store.filesystem.interface import LocalFileSystem
from tfrecord_io.store.paths.packed_sources import PackedSources
from tfrecord_io.store.read.source import ManifestShard, ManifestVersion, Source

MANIFESTS = [ManifestVersion(LocalFileSystem(), f"/data/_MANIFEST-{name}.json", "0" * 16, None) for name in "ab"]
numbers = st.integers(0, 2**62)
shards = st.builds(
    ManifestShard,
    st.sampled_from(MANIFESTS),
    numbers,
    numbers,
    st.integers(0, 2**32 - 1),
    st.none() | st.just("/data/_staged"),
    st.booleans(),
)
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
shard_names = st.integers(0, 20).map(lambda at: f"train-{at:05d}-of-00020.tfrecord")
STORE, OTHER = fsspec.filesystem("memory"), fsspec.filesystem("file")
sources = st.builds(
    lambda name, size, fs, span, shard, partitions: Source(
        f"/data/{name}",
        size,
        fs is None,
        fs,
        None if fs is None else f"bucket/{name}",
        span=span,
        shard=None if shard is None else shard._replace(bytes=(size or 0) if span is None else shard.bytes),
        partitions=partitions,
    ),
    names | shard_names,
    st.none() | numbers,
    st.none() | st.sampled_from([STORE, OTHER]),
    st.none() | st.tuples(numbers, numbers),
    st.none() | shards,
    st.sampled_from([(), (("label", "cat"),), (("label", None), ("year", "1999"))]),
)


@given(st.lists(sources, max_size=30))
def test_what_was_packed_comes_back(given_sources: list[Source]) -> None:
    packed = PackedSources.pack(given_sources)
    pickle.loads(pickle.dumps(packed))
    assert list(packed.unpack()) == given_sources


INFOS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a-00000-of-00001", {"ETag": '"tag=1"', "mtime": 3}, {"ETag": '"tag=1"'}),
    ("a-00000-of-00001", {"etag": "x", "generation": "17"}, {"generation": "17"}),
    ("a-00000-0123456789abcdef.tfrecord", {"ETag": "x"}, {}),  # of a dataset, no other file gets the name
]


@pytest.mark.parametrize("span", [None, (10, 20)])
@pytest.mark.parametrize(("name", "info", "kept"), INFOS)
def test_the_version_of_an_object_comes_back(
    name: str, info: dict[str, Any], kept: dict[str, Any], span: tuple[int, int] | None
) -> None:
    shard = ManifestShard(MANIFESTS[0], 1, 30, None, None, False)
    size = 30 if span is None else 10
    source = Source(
        f"s3://b/{name}", size, False, STORE, f"b/{name}", span=span, shard=shard, info={**info, "size": 30}
    )
    without = [Source("s3://b/c", 1, False, STORE, "b/c"), Source("/d", 1, True)]
    again, *others = PackedSources.pack([source, *without]).unpack()
    assert again.info is not None
    assert {key: value for key, value in again.info.items() if key != "incomplete"} == {**kept, "size": 30}
    assert [each.info for each in others] == [None, None]


READS: dict[str, Callable[[Any], Any]] = {
    "table": tfr.read_table,
    "first batch": lambda data: next(tfr.open_reader(data)),
    "arrays": lambda data: next(iter(tfr.iter_arrays(data, batch_size=2))),
}


@pytest.mark.parametrize("store", ["s3", "google", "azure"])
def test_what_was_pickled_reads_no_later_version(store: str, request: pytest.FixtureRequest) -> None:
    bucket: Bucket = request.getfixturevalue(store)
    path, options = bucket.url("d/a@2"), {"storage_options": bucket.storage_options}
    tfr.write_tfrecord({"x": [1, 2, 3, 4]}, path, **options)
    data = tfr.dataset(path, **options)
    records = tfr.open_random(data)
    kept = pickle.dumps([data, *data.pieces(2)])
    kept_records = pickle.dumps(records)
    assert [tfr.read_table(each)["x"].to_pylist() for each in pickle.loads(kept)] == [[1, 2, 3, 4], [1, 2], [3, 4]]
    assert pickle.loads(kept_records)[1]["x"] == 2
    tfr.write_tfrecord({"x": [5, 6, 7, 8]}, path, mode="overwrite", **options)
    for each in pickle.loads(kept):
        for read in READS.values():
            with pytest.raises(tfr.errors.ReplacedError):
                read(each)
    with pytest.raises(tfr.errors.ReplacedError):
        _ = pickle.loads(kept_records)[1]


def test_what_was_pickled_says_that_its_files_are_gone(bucket: Bucket) -> None:
    path, options = bucket.url("d/"), {"storage_options": bucket.storage_options}
    for at in range(2):
        tfr.write_tfrecord({"x": [at]}, path, mode="append", **options)
    kept = pickle.dumps(tfr.dataset(path, **options))
    tfr.compact(path, **options)
    with pytest.raises(tfr.errors.ReplacedError, match="was replaced while it was read"):
        tfr.read_table(pickle.loads(kept))


def test_consecutive_shards_take_no_room_for_their_names() -> None:
    of_shards = [Source(f"/data/train-{at:05d}-of-10000.tfrecord", 1 << 20, True) for at in range(10_000)]
    assert len(pickle.dumps(PackedSources.pack(of_shards))) < 1000
