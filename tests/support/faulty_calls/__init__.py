"""Read and write in processes where one call of the C library fails, is cut short, or is the last.

`FaultyProcess` runs jobs of `worker.py`, each in a process that is forked for it, under the library of `shim.c`, which
counts the calls for files below a folder. Jobs and answers are JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import pytest

HERE = Path(__file__).parent
READ, WRITE, NAME, OPEN, SYNC, STATUS = (1 << i for i in range(6))  # kinds of calls, as in shim.c
WRITING, READING = WRITE | NAME | SYNC, READ | OPEN | STATUS
KILL, TORN, SHORT, FAIL = range(4)
NEVER = -1


@contextmanager
def build_shim() -> Iterator[Path]:
    """The compiled library; skips the test where it cannot be made or preloaded."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not sys.platform.startswith("linux"):
        pytest.skip("counts calls by LD_PRELOAD and /proc, which are Linux's")
    if compiler is None:
        pytest.skip("needs a C compiler for a library that counts calls")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # LD_PRELOAD is split at spaces, which TMPDIR may have
        library = Path(folder, "shim.so")
        flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra"]
        subprocess.run([compiler, *flags, "-o", str(library), str(HERE / "shim.c"), "-ldl"], check=True)
        yield library


class FaultyProcess:
    """A process that forks one for each job; a forked process starts at once, a new interpreter takes half a second."""

    def __init__(self, folder: Path, shim: Path | None, **variables: str) -> None:
        environment = {**os.environ, **variables}
        if shim is not None:
            environment["LD_PRELOAD"] = os.pathsep.join(filter(None, [str(shim), environment.get("LD_PRELOAD")]))
        start = f"import sys; sys.path.insert(0, {str(HERE.parent)!r}); from faulty_calls import worker"
        command = [sys.executable, "-c", f"{start}; worker.main()", str(folder)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._answer({})

    def __call__(self, job: str, **arguments: Any) -> dict[str, Any]:
        """Run a job; see `worker.py`. The answer has ``killed``, and unless it was killed what the job returns."""
        return self._answer({"job": job, **arguments})

    def _answer(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
