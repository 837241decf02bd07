"""Processes that append to a dataset, several at a time."""

from __future__ import annotations

import sys
from typing import Any

import tfrecord_io as tfr
from in_processes import OTHERS


def append(begin: Any, answers: Any, target: str, number: int, times: int, storage: dict[str, Any] | None) -> None:
    """Append three rows with the writer's number, so many times; answer with it and the appends that returned."""
    done = 0
    begin.wait(60)
    for at in range(times):
        table = {"writer": [number] * 3, "at": [at] * 3}
        try:
            tfr.write_tfrecord(table, target, mode="append", threads=1, storage_options=storage)
        except OSError as error:
            print(error, file=sys.stderr)
        else:
            done += 1
    answers.put((number, done))


def appenders(target: str, writers: int, *, times: int, storage: Any = None) -> list[int]:
    """How many appends of each writer returned, of writers in processes of their own that begin together."""
    begin, answers = OTHERS.Barrier(writers), OTHERS.SimpleQueue()
    some = [(begin, answers, target, number, times, storage) for number in range(writers)]
    processes = [OTHERS.Process(target=append, args=arguments) for arguments in some]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return [done for _, done in sorted(answers.get() for _ in processes)]
