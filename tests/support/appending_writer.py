"""A process that appends its number to a dataset; `appenders` runs several at a time.

Arguments: the dataset, a number, how many rows and times, and storage options as JSON. It waits for a line, so that all
begin together, and prints the number of appends that returned.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import tfrecord_io as tfr


def append(target: str, number: int, rows: int, times: int, storage: dict[str, Any] | None) -> int:
    done = 0
    for at in range(times):
        table = {"writer": [number] * rows, "at": [at] * rows}
        try:
            tfr.write_tfrecord(table, target, mode="append", threads=1, storage_options=storage)
        except OSError as error:
            print(error, file=sys.stderr)
        else:
            done += 1
    return done


def appenders(target: str, writers: int, *, rows: int = 3, times: int = 1, storage: Any = None) -> list[int]:
    """How many appends of each writer returned, of writers in processes of their own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, target, str(number), str(rows), str(times), json.dumps(storage)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    return [int(process.communicate()[0]) for process in processes]


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    path, number, rows, times = sys.argv[1:5]
    print(append(path, int(number), int(rows), int(times), json.loads(sys.argv[5])))
