"""Print the slow checks that a change touches, a command a line: python .ci/touched.py [COMMIT]

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
sys.path.insert(0, str(ROOT / "dev"))
from environment import ADAPTERS  # noqa: E402

KERNEL = r"tfrecord_io/bytes/(_native|engine|format)/|tests/(bytes/engine|fuzz)/|CMakeLists\.txt$"
RULES = {  # by command, which files it is run for
    "make test-full STORM=1 PYTEST_ARGS=tests/bytes/engine": KERNEL,
    "dev/bench .venv -m benchmarks.guard": KERNEL,
    "make test-full STORM=1 PYTEST_ARGS=tests/simulation": r"tests/simulation/",
    "make fuzz SECONDS=60": KERNEL,
    "make conformance": (
        r"tfrecord_io/(bytes/(_native|engine|format)|apps/tf_compat|plugins/tensorflow)/|tests/conformance/"
    ),
    "make wheel-test PYTEST_ARGS='tests/test_importing.py tests/test_layout.py tests/bytes/engine/test_golden.py'": (
        r"pyproject\.toml$|CMakeLists\.txt$|\.ci/wheel|docs/reference/(stub|backend)\.py$"
    ),
    "make test-full STORM=1 PYTEST_ARGS=tests/plugins/engines/test_dask_distributed.py": (
        r"tfrecord_io/plugins/engines/(dask|distributed)|tests/plugins/engines/test_dask|"
        r"tests/support/suites/distributed_suite\.py$"
    ),
}


def rules() -> dict[str, str]:
    """Map each command to the pattern of the files that it is run for."""
    adapters = {
        f"make test-adapters ONLY={name}": (
            rf"(tfrecord_io|tests)/(apps/adapters|plugins/\w+)/(test_)?{name}(_\w+)?\.py$"
        )
        for name in ADAPTERS
    }
    return {**RULES, **adapters}


def tests_near(names: Iterable[str]) -> list[str]:
    """List the arguments of tests/near.py: changed modules, and changed files of tests."""
    modules = [
        name.removeprefix("tfrecord_io/").removesuffix(".py")
        for name in names
        if re.fullmatch(r"tfrecord_io/.+\.py", name) and (ROOT / name).exists() and (ROOT / name).stat().st_size
    ]
    tests = [name for name in names if re.fullmatch(r"tests/.*test_\w+\.py", name) and (ROOT / name).exists()]
    return [*modules, *tests]


def git(*arguments: str) -> str | None:
    """Run git and return its output, or None if git fails or is missing."""
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def base_commit(since: str | None = None) -> str | None:
    """Find the commit that the change is compared with."""
    for main in ("origin/main", "main"):
        since = since or git("merge-base", "HEAD", main)
    return "HEAD^" if since == git("rev-parse", "HEAD") else since


def changed(since: str | None = None) -> list[str] | None:
    """List the files that differ, or return None if they are unknown."""
    base = base_commit(since)
    names = git("diff", "--name-only", base) if base else None
    return None if names is None else names.splitlines()


def change_messages(since: str | None = None) -> str | None:
    """Return the messages of the commits of the change, or None if they are unknown."""
    base = base_commit(since)
    return git("log", "--format=%B", f"{base}..HEAD") if base else None


def touched(names: Iterable[str] | None) -> list[str]:
    """List the commands for the changed files: all of them if the files are unknown."""
    commands = [
        command for command, files in rules().items() if names is None or any(re.match(files, name) for name in names)
    ]
    near = " ".join(tests_near(names or ()))
    return commands + ([f'make test-full PYTEST_ARGS="$(python3 tests/near.py {near} | xargs)"'] if near else [])


if __name__ == "__main__":
    print("\n".join(touched(changed(*sys.argv[1:]))))
