"""The threads that work on segments."""

from __future__ import annotations

import pytest

from limited import set_processors
from tfrecord_io.read.chunks import segments


def test_threads_beyond_the_cores_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    set_processors(monkeypatch, 2)
    for threads, expected in ((1, 0), (2, 2), (8, 2)):
        with segments.segment_pool(threads) as pool:
            assert pool.threads == expected
