"""Which record goes into which shard."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.write.shard_assignment import BySize, Contiguous, RoundRobin

SIZES = st.lists(st.integers(16, 60), max_size=40)


def dealt(dealer, sizes, cut):
    """Record numbers by shard; the records come in pieces of `cut`."""
    shards = {}
    for at in range(0, len(sizes), cut):
        piece = np.array(sizes[at : at + cut])
        for shard, chosen in dealer.deal(piece):
            assert shard >= dealer.current or isinstance(dealer, RoundRobin)
            shards.setdefault(shard, []).extend(np.arange(at, at + len(piece))[chosen].tolist())
    return shards


@given(SIZES, st.integers(1, 50), st.integers(1, 8))
def test_parts_follow_each_other_and_differ_by_one_row_at_most(sizes, cut, shards):
    found = dealt(Contiguous(len(sizes), shards), sizes, cut)
    assert [r for i in sorted(found) for r in found[i]] == list(range(len(sizes)))
    lengths = [len(found.get(i, [])) for i in range(shards)]
    assert sum(lengths) == len(sizes)
    assert max(lengths) - min(lengths) <= 1


@given(SIZES, st.integers(1, 50), st.integers(1, 8))
def test_in_turn_each_record_goes_to_its_number_modulo_shards(sizes, cut, shards):
    found = dealt(RoundRobin(shards), sizes, cut)
    assert found == {i: list(range(i, len(sizes), shards)) for i in range(min(shards, len(sizes)))}


@given(SIZES, st.integers(1, 50), st.integers(1, 200), st.integers(0, 50))
def test_by_size_a_shard_ends_before_the_record_that_is_too_much(sizes, cut, most, extra):
    found = dealt(BySize(most, extra), sizes, cut)
    assert sorted(found) == list(range(len(found)))
    assert [r for i in sorted(found) for r in found[i]] == list(range(len(sizes)))
    for shard, records in found.items():
        size = extra + sum(sizes[r] for r in records)
        assert size <= most or len(records) == 1
        following = found.get(shard + 1)
        assert following is None or size + sizes[following[0]] > most
