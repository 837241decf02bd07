"""Prints what of ``make test-all`` a change touches, a command a line: python .ci/touched.py [COMMIT]

The change is what differs from COMMIT: by default from where the branch left main, and on main itself from the commit
before. If that is unknown, as in a clone without history, everything is printed.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]
KERNEL = r"tfrecord_io/(_native|engine|format)/|tests/(engine|fuzz)/|CMakeLists\.txt$"
RULES = {  # by command, which files it is run for; the adapters are those of the Makefile
    "make test STORM=1 PYTEST_ARGS=tests/engine": KERNEL,
    "make speed-guard": KERNEL,
    "make test STORM=1 PYTEST_ARGS=tests/simulation": r"tests/simulation/",
    "make fuzz fuzz-differential SECONDS=60": KERNEL,
    "make conformance": r"tfrecord_io/(_native|engine|format|tf_compat|plugins/tensorflow)/|tests/conformance/",
    "make wheel-test PYTEST_ARGS='tests/test_importing.py tests/test_layout.py tests/engine/test_golden.py'": (
        r"pyproject\.toml$|CMakeLists\.txt$|\.ci/wheel|docs/reference/(stub|backend)\.py$"
    ),
    "make test STORM=1 PYTEST_ARGS=tests/plugins/engines/test_dask_distributed.py": (
        r"tfrecord_io/plugins/engines/(dask|distributed)|tests/plugins/engines/test_dask|"
        r"tests/support/suites/distributed_suite\.py$"
    ),
}


def rules() -> dict[str, str]:
    (adapters,) = re.findall(r"^ADAPTERS := (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    own = {
        f"make test-adapter-{name}": rf"(tfrecord_io|tests)/(adapters|plugins/\w+)/(test_)?{name}(_\w+)?\.py$"
        for name in adapters.split()
    }
    return {**RULES, **own}


def git(*arguments: str) -> str | None:
    """What git prints, or none if it fails, or there is none."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def changed(since: str | None = None) -> list[str] | None:
    """The files that differ, or none if that is unknown."""
    head = git("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        since = since or git("merge-base", "HEAD", main)
    names = git("diff", "--name-only", "HEAD^" if since == head else since) if since else None
    return None if names is None else names.splitlines()


def touched(names: Iterable[str] | None) -> list[str]:
    return [
        command for command, files in rules().items() if names is None or any(re.match(files, name) for name in names)
    ]


if __name__ == "__main__":
    print("\n".join(touched(changed(*sys.argv[1:]))))
