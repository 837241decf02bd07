"""The CPU time of imports and of first calls in fresh processes: ``python -m benchmarks.import_time``.

The best of several processes counts, of which each case takes one in turn. First calls are of small local files, and
count beyond ``import pyarrow``; the other cases count beyond Python itself. The exit code is 1 if a case takes longer
than its limit, which is for a machine that nothing else uses.

Tests: tests/test_importing.py looks which modules each call imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.results import Row

REPEAT = 15


class Case(NamedTuple):
    """A program, in which ``{folder}`` has the files, and the CPU seconds that it may take beyond another one."""

    program: str
    limit: float
    beyond: str


_PYTHON, _PYARROW = "pass", "import pyarrow"
_CALL = "import tfrecord_io as tfr; "
_COMMAND = "import sys; sys.argv = ['tfr', {!r}]; from tfrecord_io.apps.cli import main; main()"
CASES = {
    "import tfrecord_io": Case("import tfrecord_io", 0.015, _PYTHON),
    "tfr --help": Case(_COMMAND.format("--help"), 0.1, _PYTHON),
    "tfr --version": Case(_COMMAND.format("--version"), 0.1, _PYTHON),
    "count": Case(_CALL + "tfr.count('{folder}/embedded.tfrecord')", 0.05, _PYARROW),
    "read_table, embedded schema": Case(_CALL + "tfr.read_table('{folder}/embedded.tfrecord')", 0.06, _PYARROW),
    "read_table, inferred schema": Case(_CALL + "tfr.read_table('{folder}/plain.tfrecord')", 0.06, _PYARROW),
    "write_tfrecord, dict": Case(
        _CALL + "tfr.write_tfrecord({{'a': [1, 2], 'b': ['x', 'y']}}, '{folder}/new.tfrecord')", 0.06, _PYARROW
    ),
    "write_tfrecord, table": Case(
        "import pyarrow as pa; table = pa.table({{'a': pa.nulls(3, pa.int64())}}); "
        + _CALL
        + "tfr.write_tfrecord(table, '{folder}/new.tfrecord')",
        0.06,
        _PYARROW,
    ),
}


def cpu_seconds(program: str) -> float:
    """The CPU time of a process that runs a program, whose modules were compiled by an earlier one."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # The threads of NumPy's BLAS wait actively: on idle processors they take as much time as all that is measured.
    env["OPENBLAS_NUM_THREADS"] = "1"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL, env=env) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, program)
    return usage.ru_utime + usage.ru_stime


def measure() -> dict[str, float]:
    """CPU seconds of each case beyond what it is compared with."""
    with tempfile.TemporaryDirectory() as folder:
        write = (
            "import tfrecord_io as tfr; data = {{'a': list(range(200)), 'b': [f'w{{n}}' for n in range(200)]}}; "
            "tfr.write_tfrecord(data, '{folder}/embedded.tfrecord'); "
            "tfr.write_tfrecord(data, '{folder}/plain.tfrecord', embed_schema=False)"
        )
        cpu_seconds(write.format(folder=folder))
        programs = {name: case.program.format(folder=folder) for name, case in CASES.items()}
        programs |= {_PYTHON: _PYTHON, _PYARROW: _PYARROW}
        best = dict.fromkeys(programs, float("inf"))
        for _ in range(REPEAT):
            for name, program in programs.items():
                best[name] = min(best[name], cpu_seconds(program))
                Path(folder, "new.tfrecord").unlink(missing_ok=True)
    return {name: best[name] - best[case.beyond] for name, case in CASES.items()}


def rows(settings: Any) -> Iterator[Row]:
    for name, seconds in measure().items():
        yield Row("import", name, "tfrecord_io", seconds=seconds)


def main() -> int:
    seconds = measure()
    for name, case in CASES.items():
        beyond = "Python" if case.beyond == _PYTHON else "pyarrow"
        print(f"{name:28} {seconds[name] * 1e3:6.1f} ms of CPU beyond {beyond:7} (limit {case.limit * 1e3:.0f})")
    return int(any(seconds[name] > case.limit for name, case in CASES.items()))


if __name__ == "__main__":
    sys.exit(main())
