"""A generator in a thread: its items in order, its error after them, and no thread left running."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator

import pytest

from running_threads import ends, running
from tfrecord_io.rows.training.background_generator import BackgroundGenerator


def test_items_are_in_order_and_the_error_follows_them() -> None:
    def numbers() -> Generator[int]:
        yield from range(20)
        raise OSError("torn")

    ahead = BackgroundGenerator(numbers, 3)
    got = []
    with pytest.raises(OSError, match="torn"):
        got.extend(ahead)
    assert got == list(range(20))
    with pytest.raises(OSError, match="torn"):  # further calls raise it again
        next(ahead)


def test_no_more_than_its_depth_is_made_ahead() -> None:
    made = []
    third = threading.Event()

    def numbers() -> Generator[int]:
        for n in range(100):
            made.append(n)
            if n == 2:
                third.set()
            yield n

    ahead = BackgroundGenerator(numbers, 2)
    assert next(ahead) == 0
    assert third.wait(10)
    ahead.close()
    assert len(made) == 3


@pytest.mark.parametrize("how", ["close", "drop"])
def test_the_generator_is_closed_in_its_thread(how: str) -> None:
    closed: list[str] = []

    def numbers() -> Generator[int]:
        try:
            while True:
                yield 1
        finally:
            closed.append(threading.get_ident())

    ahead = BackgroundGenerator(numbers, 1)
    next(ahead)
    (thread,) = running("batches")
    if how == "close":
        ahead.close()
    del ahead
    gc.collect()
    assert ends(thread)
    assert closed == [thread._ident]


def test_an_error_before_the_first_item_is_raised() -> None:
    def broken() -> Generator[int]:
        raise ValueError("no files")

    with pytest.raises(ValueError, match="no files"):
        next(BackgroundGenerator(broken, 1))
