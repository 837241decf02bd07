"""Runs the tests of a Python module on each of its mutants.

The tests are collected once. Each mutant then gets a forked process, in which the changed functions replace
those that the tests have imported.
"""

from __future__ import annotations

import importlib
import mmap
import os
import resource
import struct
from collections.abc import Sequence
from pathlib import Path
from types import FunctionType
from typing import Any

from python_mutants import Mutant, python_mutants
from sampling import is_sampled

_MEMORY = 12 << 30
_PASSED, _FAILED = 0, 1


class PythonMutants:
    """The mutants of a module of the package, or of tests/support, and the tests that they run."""

    def __init__(self, root: Path, name: str, tests: Sequence[str]) -> None:
        self._root, self._name, self._tests = root, name, tests

    def run(self, jobs: int, most: int) -> dict[str, bool]:
        """Whether each mutant was killed; in a process, since each module needs a fresh interpreter."""
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(read)
                code = self._in_child(write, jobs, most)
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read) as lines:
            results = {line[2:].rstrip("\n"): line[0] == "+" for line in lines}
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) != 0:
            raise SystemExit(f"{self._name}: the tests fail without a mutation")
        return results

    def _in_child(self, write: int, jobs: int, most: int) -> int:
        import pytest

        loop = _Loop(self._name, jobs, most)
        paths = [str(self._root / "tests" / test) for test in self._tests]
        code = pytest.main(["-q", "-p", "no:cacheprovider", f"--rootdir={self._root}", *paths], plugins=[loop])
        for key, is_killed in loop.results.items():
            os.write(write, f"{'+' if is_killed else '-'} {key}\n".encode())
        return int(code) if loop.results else 1


class _Loop:
    """A plugin that runs the collected tests on each mutant."""

    def __init__(self, name: str, jobs: int, most: int) -> None:
        self.results: dict[str, bool] = {}
        self._name, self._jobs, self._most = name, jobs, most
        self._running: dict[int, tuple[str, mmap.mmap]] = {}
        self._items: list[Any] = []

    def pytest_runtestloop(self, session: Any) -> bool:
        if session.testsfailed:
            return False
        self._items = list(session.items)
        pid = self._start(None, 3000, mmap.mmap(-1, 4))
        _, status, usage = os.wait4(pid, 0)
        if os.waitstatus_to_exitcode(status) != _PASSED:
            return True  # without results
        limit = 3 + 3 * int(usage.ru_utime + usage.ru_stime)
        name = self._name.removesuffix(".py").replace("/", ".")
        module = importlib.import_module(name if name.startswith("reference_engine.") else f"tfrecord_io.{name}")
        path = Path(str(module.__file__))
        source = path.read_text()
        count = sum(1 for _ in python_mutants(source, str(path)))
        for number, mutant in enumerate(python_mutants(source, str(path))):
            if not is_sampled(number, count, self._most):
                continue
            key = mutant.key
            while key in self.results:
                key += " (again)"
            self.results[key] = False
            while len(self._running) >= self._jobs:
                self._collect()
            failed = mmap.mmap(-1, 4)
            self._running[self._start((module, mutant), limit, failed)] = key, failed
        while self._running:
            self._collect()
        return True

    def _collect(self) -> None:
        pid, status = os.wait()
        key, failed = self._running.pop(pid)
        self.results[key] = os.waitstatus_to_exitcode(status) != _PASSED
        (number,) = struct.unpack("<i", failed[:])
        if number:  # the test that killed one is the first to try on the next
            self._items.insert(0, self._items.pop(number - 1))

    def _start(self, change: tuple[Any, Mutant] | None, seconds: int, failed: mmap.mmap) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = _FAILED
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if change is not None:
                _install(*change)
            code = self._run_tests(failed)
        finally:
            os._exit(code)

    def _run_tests(self, failed: mmap.mmap) -> int:
        from _pytest.runner import runtestprotocol

        for number, item in enumerate(self._items):
            following = self._items[number + 1] if number + 1 < len(self._items) else None
            if any(report.failed for report in runtestprotocol(item, nextitem=following, log=False)):
                failed[:] = struct.pack("<i", number + 1)
                return _FAILED
        return _PASSED


def _install(module: Any, mutant: Mutant) -> None:
    """Change a module that is loaded."""
    changed: dict[str, Any] = {**{name: vars(module)[name] for name in ("__name__", "__file__", "__package__")}}
    exec(mutant.code, changed)
    for name, new in changed.items():
        old = vars(module).get(name)
        if getattr(new, "__module__", None) == module.__name__:
            _adopt(old, new)
        elif not mutant.place and isinstance(new, int | bytes | tuple | frozenset | dict) and new != old:
            _replace_everywhere(name, old, new)


def _replace_everywhere(name: str, old: Any, new: Any) -> None:
    import sys

    for module_name, other in list(sys.modules.items()):
        is_ours = module_name.startswith(("tfrecord_io", "reference_engine"))
        if is_ours and vars(other).get(name) is old:
            setattr(other, name, new)


def _adopt(old: Any, new: Any) -> None:
    """Give a function, or the methods of a class, the code of another."""
    old, new = _function(old), _function(new)
    if isinstance(new, type):
        for name, value in vars(new).items():
            if isinstance(_function(value), FunctionType):
                _adopt(vars(old)[name], value)
    elif isinstance(new, FunctionType):
        old.__code__, old.__defaults__, old.__kwdefaults__ = new.__code__, new.__defaults__, new.__kwdefaults__
        for mine, other in zip(old.__closure__ or (), new.__closure__ or (), strict=True):
            if isinstance(other.cell_contents, int):  # the default of a dataclass
                mine.cell_contents = other.cell_contents


def _function(value: Any) -> Any:
    if isinstance(value, property):
        return value.fget
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    return getattr(value, "__wrapped__", value)
