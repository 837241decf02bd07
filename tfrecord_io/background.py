"""Threads that end before the interpreter does.

While the interpreter shuts down, a daemon thread that asks for the GIL is unwound on the spot, which aborts the process
where C++ code is on its stack. So every thread that may outlive the call that started it is one of these: they are
stopped and joined at exit.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_EXIT_SECONDS = 10.0  # to wait for a thread at exit: one may hang in a read that nothing ends

_running: set[BackgroundThread] = set()


class BackgroundThread(threading.Thread):
    """A daemon thread with a way to stop it.

    Parameters
    ----------
    target : callable
    args : tuple
    stop : callable
        Makes `target` return soon; may be called from any thread, more than once. Neither it nor `args` may refer to
        the object that owns the thread, which can be dropped without being closed.
    name : str
    """

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], stop: Callable[[], None], name: str) -> None:
        super().__init__(target=target, args=args, name=f"tfrecord_io {name}", daemon=True)
        self.stop = stop
        _running.add(self)
        self.start()

    def run(self) -> None:
        try:
            super().run()
        finally:
            _running.discard(self)

    def end(self, timeout: float | None = None) -> None:
        """Stop the thread, and wait until it has ended."""
        self.stop()
        if self is not threading.current_thread():
            self.join(timeout)


def _end_all() -> None:
    threads = list(_running)
    for thread in threads:
        thread.stop()
    for thread in threads:
        with suppress(RuntimeError):  # of a thread that Ctrl-C kept from starting
            thread.join(_EXIT_SECONDS)


def _do_nothing() -> None:
    pass


def _forget_all() -> None:
    """In a forked process, which has none of the threads; their locks may be held for ever."""
    for thread in list(_running):
        thread.stop = _do_nothing
    _running.clear()


atexit.register(_end_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
