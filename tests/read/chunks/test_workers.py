"""The threads that work on segments."""

from __future__ import annotations

import pytest

from tfrecord_io.read.chunks import workers


def test_threads_beyond_the_cores_are_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "cpu_count", lambda: 2)
    assert [workers.Workers(threads).count for threads in (1, 2, 8)] == [0, 2, 2]
