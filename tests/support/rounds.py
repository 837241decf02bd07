"""How many rounds randomised tests run, and from which seeds.

All rounds with ``make test STORM=1``, a part of them otherwise, the fewest with ``make quick``; the same examples each
time, so that a commit passes or fails for what it changed, and new ones with ``make test RANDOM=1``, which searches for
what no run has found yet.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from hypothesis import HealthCheck

COMPLETE = os.environ.get("TFRECORD_IO_STORM") == "1"
RANDOM = os.environ.get("TFRECORD_IO_RANDOM") == "1"
QUICK = os.environ.get("TFRECORD_IO_QUICK", "") != ""
SAMPLED = os.environ.get("TFRECORD_IO_QUICK") == "1"  # only some cases of each test

# Examples that share a bucket write to a folder of its own each.
IN_A_BUCKET = [HealthCheck.function_scoped_fixture]


def rounds(complete: int, reduced: int | None = None) -> int:
    """`complete` rounds in the complete run; otherwise `reduced`, by default a tenth of them, but not fewer than 10.

    A quick run has 5 rounds at most. What is `reduced` to a few takes seconds for each.
    """
    if COMPLETE:
        return complete
    some = min(complete, max(10, complete // 10)) if reduced is None else reduced
    return min(some, 5) if QUICK else some


def each_step(first: int = 0, every: int = 3, most: int = 1000) -> Iterator[int]:
    """The steps of a writer at which something happens to it, until the test ends: a writer makes fewer than `most`.

    All in the complete run, otherwise every third one, from `first` modulo 3 on.
    """
    yield from range(most) if COMPLETE else range(first % every, most, every)
    raise AssertionError(f"a writer makes fewer than {most} steps")


def near(borders: Sequence[int], values: Sequence[int], reach: int = 3) -> list[int]:
    """All `values` in the complete run; otherwise those at most `reach` from a border, and each 16th."""
    return [v for v in values if COMPLETE or v % 16 == 0 or any(abs(v - border) <= reach for border in borders)]
