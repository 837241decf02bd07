"""Queries in SQL that come from the page: of one table, which is the dataset, in a process that ends with the query.

What a query may take is bounded there, and is not kept by the server.

Tests: tests/plugins/browse/test_browse_server.py and tests/plugins/browse/test_browse_server_memory.py.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress

from tfrecord_io.apps.views import value_text
from tfrecord_io.kit import Scan, needs

_SECONDS = 120
_ROOM = 300 << 20  # bytes that a query may take besides the libraries, where the system can limit them
_TOO_LARGE = f"the query needs more than {_ROOM >> 20} MB of memory: select fewer columns or rows"
_SETTINGS = (
    "python_enable_replacements = false",  # variables of this program are not tables
    "enable_external_access = false",
    "enable_progress_bar = false",  # which would be printed between the answer
    "memory_limit = '100MB'",
    "threads = 1",
    "lock_configuration = true",
)


def query_rows(scan: Scan, sql: str, limit: int) -> tuple[list[str], list[list[str | None]]]:
    """The columns and the first rows of a query, whose only table is ``data``: it reads no other file, and writes none.

    Values are texts. ValueError if DuckDB refuses it, or it takes too much memory or time.
    """
    command = [sys.executable, "-P", "-c", f"from {__name__} import main; main()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "ARROW_DEFAULT_MEMORY_POOL": "system"}
    task = pickle.dumps((scan, sql, limit))
    try:
        done = subprocess.run(command, input=task, capture_output=True, timeout=_SECONDS, env=environment)
    except subprocess.TimeoutExpired as error:
        raise ValueError(f"the query takes more than {_SECONDS} seconds") from error
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        is_refused = done.returncode < 0 or "MemoryError" in last or "bad_alloc" in last
        raise ValueError(_TOO_LARGE if is_refused else last)
    answer = json.loads(done.stdout)
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer["names"], answer["rows"]


def main() -> None:
    """Answer the query that the standard input has; at the standard output, as JSON."""
    scan, sql, limit = pickle.load(sys.stdin.buffer)
    with needs("duckdb"):
        import duckdb
    import tfrecord_io as tfr

    with duckdb.connect() as connection:
        tfr.register_duckdb(connection, scan.with_options(threads=1), name="data")  # a block at a time
        for setting in _SETTINGS:
            connection.execute(f"SET {setting}")
        _limit()
        try:
            answer = connection.execute(sql)
            if answer is None:  # there is no statement in the text
                print(json.dumps({"error": "the query is empty: SELECT * FROM data shows all rows"}))
                return
            rows: list[list[str | None]] = []
            while len(rows) < limit and (row := answer.fetchone()) is not None:
                rows.append([None if value is None else value_text(value, 80) for value in row])
            print(json.dumps({"names": [column[0] for column in answer.description or ()], "rows": rows}))
        except (duckdb.OutOfMemoryException, MemoryError):
            print(json.dumps({"error": _TOO_LARGE}))
        except duckdb.Error as error:
            print(json.dumps({"error": str(error)}))


def _limit() -> None:
    """Limit the memory of this process from now on, and its time if it outlives the server; only Linux can do both."""
    with suppress(ImportError, OSError, AttributeError):
        import resource

        signal.alarm(_SECONDS)
        with open("/proc/self/status") as status:
            now = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmData"))
        resource.setrlimit(resource.RLIMIT_DATA, (now + _ROOM, now + _ROOM))
