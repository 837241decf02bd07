"""Repeat a call, with a KeyboardInterrupt at each point in turn where Python handles Ctrl-C.

These are the begin of a Python function and the end of a call of a C function: what a profiler sees. It is run as a
program, as an interrupt may leave the process unfit for other tests: CODE PATH OUT FIRST EVERY.
"""

import faulthandler
import gc
import os
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import tfrecord_io as tfr

MOST_SECONDS = 60.0  # of a call that is interrupted

Place = tuple[str, int, str]


class Interrupts:
    """The profiler: it collects the positions in a call, or interrupts the call at the first pass of one of them."""

    def __init__(self) -> None:
        self.places: dict[Place, None] = {}
        self.at: Place | None = None
        self.passed = False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "c_return"):
            return
        place = frame.f_code.co_filename, frame.f_lineno, event
        if self.at is None:
            self.places[place] = None
        elif place == self.at and not self.passed:
            self.passed = True
            raise KeyboardInterrupt

    def outcome(self, call: Callable[[], object]) -> str:
        """Outcome of a call; with `at` set, the interrupt is raised there."""
        self.passed = False
        faulthandler.dump_traceback_later(MOST_SECONDS, exit=True)
        sys.setprofile(self)
        try:
            call()
        except KeyboardInterrupt:
            return "interrupted"
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        else:
            return "completed"
        finally:
            sys.setprofile(None)
            faulthandler.cancel_dump_traceback_later()


def main(code: str, path: str, out: str, first: int, every: int) -> None:
    """Print each place at which the interrupt is lost, or leaves files, with what becomes of the call."""
    printed: list[object] = []  # by Python, which goes on after an interrupt in a finalizer
    sys.unraisablehook = printed.append
    names = {"sys": sys, "tfr": tfr, "path": path, "out": out, "table": tfr.read_table(path)}
    compiled = compile(code, "work", "exec")

    def call() -> None:
        exec(compiled, dict(names))

    for _ in range(2):  # what is imported and made once
        call()
    gc.collect()
    gc.disable()  # it runs finalizers at other places each time
    interrupts = Interrupts()
    assert interrupts.outcome(call) == "completed"
    for place in list(interrupts.places)[first % every :: every]:
        interrupts.at = place
        before = set(os.listdir(out))
        printed.clear()
        outcome = interrupts.outcome(call)
        left = set(os.listdir(out)) - before
        if left or (outcome != "interrupted" and interrupts.passed and not printed):
            print(*place, outcome, *left)


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
