"""Packed sources unpack to equal sources, for any names and sizes."""

from __future__ import annotations

import pickle
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.storage.filesystem.local import LocalFileSystem
from tfrecord_io.storage.paths.packed_sources import PackedSources
from tfrecord_io.storage.read.source import ManifestShard, ManifestVersion, Source

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
sources = st.builds(
    lambda name, size, fs, span, shard, partitions: Source(
        f"/data/{name}",
        size,
        fs is None,
        fs,
        None if fs is None else f"bucket/{name}",
        span=span,
        shard=None if shard is None else replace(shard, bytes=0 if span or size is None else size),
        partitions=partitions,
    ),
    names | shard_names,
    st.none() | numbers,
    st.none() | st.sampled_from(["a filesystem", "another one"]),
    st.none() | st.tuples(numbers, numbers),
    st.none() | shards,
    st.sampled_from([(), (("label", "cat"),), (("label", None), ("year", "1999"))]),
)


@given(st.lists(sources, max_size=30))
def test_what_was_packed_comes_back(given_sources: list[Source]) -> None:
    packed = PackedSources.pack(given_sources)
    pickle.loads(pickle.dumps(packed))
    assert list(packed.unpack()) == given_sources


def test_consecutive_shards_take_no_room_for_their_names() -> None:
    of_shards = [Source(f"/data/train-{at:05d}-of-10000.tfrecord", 1 << 20, True) for at in range(10_000)]
    assert len(pickle.dumps(PackedSources.pack(of_shards))) < 1000
