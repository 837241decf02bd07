"""Which record goes to which shard."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.write.sharded_sink import BySize, Contiguous

SIZES = st.lists(st.integers(16, 60), max_size=40)


def assigned(assigner, sizes, step):
    """Record numbers by shard, if the assigner receives `step` records at a time."""
    shards = {}
    for begin in range(0, len(sizes), step):
        part = np.array(sizes[begin : begin + step])
        for shard, selection in assigner.assign(part):
            assert shard >= assigner.current
            shards.setdefault(shard, []).extend(np.arange(begin, begin + len(part))[selection].tolist())
    return shards


@given(SIZES, st.integers(1, 50), st.integers(1, 8))
def test_contiguous_parts_differ_by_one_row_at_most(sizes, step, shards):
    records = assigned(Contiguous(len(sizes), shards), sizes, step)
    assert [r for i in sorted(records) for r in records[i]] == list(range(len(sizes)))
    lengths = [len(records.get(i, [])) for i in range(shards)]
    assert sum(lengths) == len(sizes)
    assert max(lengths) - min(lengths) <= 1


@given(SIZES, st.integers(1, 50), st.integers(1, 200), st.integers(0, 50))
def test_by_size_a_shard_ends_before_the_record_that_exceeds_the_limit(sizes, step, max_bytes, prefix_bytes):
    records = assigned(BySize(max_bytes, prefix_bytes), sizes, step)
    assert sorted(records) == list(range(len(records)))
    assert [r for i in sorted(records) for r in records[i]] == list(range(len(sizes)))
    for shard, numbers in records.items():
        size = prefix_bytes + sum(sizes[r] for r in numbers)
        assert size <= max_bytes or len(numbers) == 1
        following = records.get(shard + 1)
        assert following is None or size + sizes[following[0]] > max_bytes
