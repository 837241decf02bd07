"""How many rounds randomised tests run, and from which seeds.

`TIER` is the tier of tests that runs (`tiers`). All rounds run in ``make test-full STORM=1``, fewer in the others. The
examples are the same each time, so that a commit passes or fails for what it changed; ``RANDOM=1`` makes new ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from hypothesis import HealthCheck

TIERS = ("first", "fast", "near", "full", "storm")
TIER = os.environ.get("TFRECORD_IO_TESTS") or "full"
if TIER not in TIERS:
    raise ValueError(f"TFRECORD_IO_TESTS={TIER}: expected one of {', '.join(TIERS)}")
COMPLETE = TIER == "storm"
QUICK = TIER in ("first", "fast", "near")
RANDOM = os.environ.get("TFRECORD_IO_RANDOM") == "1"

FAST_ROUNDS = 25  # most rounds of a test in the fast tier

_folder = ""

# Examples that share a bucket write to a folder of its own each.
IN_A_BUCKET = [HealthCheck.function_scoped_fixture]


def rounds(complete: int, reduced: int | None = None) -> int:
    """Number of rounds: `complete` in a storm; otherwise `reduced`, by default a tenth of them, but not fewer than 10.

    The fast tier runs at most 25, and at least as many of a law in tests/laws. All quick tiers run at most 5 rounds of
    what is `reduced` to a few, which takes seconds for each.
    """
    if COMPLETE:
        return complete
    some = min(complete, max(10, complete // 10)) if reduced is None else reduced
    if TIER == "fast" and reduced is None:
        return min(complete, FAST_ROUNDS) if is_law() else min(some, FAST_ROUNDS)
    return min(some, 5) if QUICK else some


def is_law() -> bool:
    """True while a file of tests/laws is imported, or one of its tests runs."""
    return _folder == "laws"


@contextmanager
def rounds_of(folder: str) -> Iterator[None]:
    """Run the rounds of the tests in a folder."""
    global _folder
    _folder = folder
    try:
        yield
    finally:
        _folder = ""


def each_step(first: int = 0, every: int = 3, most: int = 1000) -> Iterator[int]:
    """The steps of a writer at which something happens to it, until the test ends: a writer makes fewer than `most`.

    All in the complete run, otherwise every third one, from `first` modulo 3 on.
    """
    yield from range(most) if COMPLETE else range(first % every, most, every)
    raise AssertionError(f"a writer makes fewer than {most} steps")


def near(borders: Sequence[int], values: Sequence[int], reach: int = 3) -> list[int]:
    """All `values` in the complete run; otherwise those at most `reach` from a border, and each 16th."""
    return [v for v in values if COMPLETE or v % 16 == 0 or any(abs(v - border) <= reach for border in borders)]
