"""A process that forks writers and kills them. A forked writer starts at once, a new interpreter takes half a second.

Reads jobs as lines of JSON: ``target``, ``first`` (the first generation; the writer writes one after the other until it
is killed), and when it dies: ``delay`` (seconds), or ``step`` (the number of calls that change a directory before it
dies). Answers with the last generation whose write returned, and whether the writer was killed.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import time
from typing import Any

import pyarrow as pa

import tfrecord_io as tfr

ROWS = 600
FORMS: list[dict[str, Any]] = [{"path": "@3"}, {"path": "@*", "max_shard_bytes": 20_000}, {"path": "@5"}]


def write(target: str, generation: int) -> None:
    """All rows hold their generation; files of all generations have the same sizes."""
    table = pa.table({"generation": pa.array([10_000 + generation] * ROWS), "blob": pa.array([bytes(100)] * ROWS)})
    if target.endswith(".tfrecord"):
        tfr.write_tfrecord(table, target, threads=1)
    elif target.endswith("/"):
        tfr.write_tfrecord(table, target, threads=1, mode="append")
    else:
        form = FORMS[generation // 2 % 3]  # each one twice, so that names stay and change
        tfr.write_tfrecord(
            table, target + form["path"], threads=1, mode="overwrite", max_shard_bytes=form.get("max_shard_bytes")
        )


def die_after(steps: int) -> None:
    """Kill the process at the call after this many that change a directory, or sync."""
    left = [steps]

    def counted(call: Any) -> Any:
        def step(*args: Any, **keywords: Any) -> Any:
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return call(*args, **keywords)

        return step

    for name in ("replace", "unlink", "fsync"):
        setattr(os, name, counted(getattr(os, name)))


def writer(job: dict[str, Any], done: mmap.mmap) -> None:
    if "step" in job:
        die_after(job["step"])
    generation = job["first"]
    while "step" not in job or generation == job["first"]:
        write(job["target"], generation)
        done[:8] = generation.to_bytes(8, "little")
        generation += 1


def run(job: dict[str, Any]) -> dict[str, Any]:
    done = mmap.mmap(-1, 8)
    pid = os.fork()
    if not pid:
        try:
            writer(job, done)
        finally:
            os._exit(0)
    if "delay" in job:
        time.sleep(job["delay"])
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    return {"done": int.from_bytes(done[:8], "little"), "killed": os.WIFSIGNALED(status)}


if __name__ == "__main__":
    write(sys.argv[1], 0)  # all that is imported late is there when the first writer is forked
    write(sys.argv[2], 0)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)
