"""Runs the fuzzer's target "frames" on each mutant of the kernel's framing and search for headers.

The target compares the kernel with a plain reading of the format, on seeds and the same mutated inputs each time; see
tests/fuzz/frames.cc. A program of these sources alone is compiled for each mutant.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kernel_mutants import Mutant, kernel_mutants
from sampling import is_sampled

_RUNS = 5_000
_SECONDS = 15  # of processor time
_FLAGS = [
    "-std=c++20",
    "-O0",
    "-ftrivial-auto-var-init=zero",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
]
_SOURCES = ("frame.cc", "frame_extents.cc", "resync.cc", "resync_x86.cc", "frames.cc")
_UNCHANGED = ("driver.cc", "crc32c.cc", "crc32c_x86.cc", "crc32c_avx512.cc", "crc32c_arm.cc", "crc32c_combine.cc")
# The sources to recompile for a mutant.
_READERS = {"frame.cc": ("frame.cc",), "frame.h": _SOURCES, "resync_loop.inc": ("resync.cc", "resync_x86.cc")}


class KernelMutants:
    """The mutants of a source file of the kernel."""

    def __init__(self, root: Path, name: str, folder: Path) -> None:
        self._root, self._name, self._folder = root, name, folder

    def run(self, jobs: int, most: int) -> dict[str, bool]:
        """Whether each mutant was killed. One that does not compile is none."""
        shutil.rmtree(self._folder, ignore_errors=True)
        base = self._copy("base")
        with ThreadPoolExecutor(jobs) as pool:
            if not all(pool.map(lambda source: self._compile(base, source), [*_SOURCES, *_UNCHANGED])):
                raise SystemExit(f"{self._name}: the kernel does not compile")
            if self._is_killed(base):
                raise SystemExit(f"{self._name}: the fuzzer fails without a mutation")
            text = (self._root / "tfrecord_io/bytes/_native" / self._name).read_text()
            every = list(_numbered(kernel_mutants(text)))
            chosen = [one for number, one in enumerate(every) if is_sampled(number, len(every), most)]
            mutants = {f"{mutant.key} ({number})": mutant for number, mutant in chosen}
            outcomes = pool.map(self._outcome, range(len(mutants)), mutants.values())
            found = dict(zip(mutants, outcomes, strict=True))
        return {key.removesuffix(" (1)"): killed for key, killed in found.items() if killed is not None}

    def _copy(self, name: str) -> Path:
        folder = self._folder / name
        folder.mkdir(parents=True)
        for place in ("tfrecord_io/bytes/_native", "tests/fuzz"):
            for source in (self._root / place).iterdir():
                if source.suffix in (".cc", ".h", ".inc"):
                    shutil.copy(source, folder)
        return folder

    def _compile(self, folder: Path, source: str) -> bool:
        compiler = os.environ.get("CXX", "g++")
        command = [compiler, *_FLAGS, "-c", source, "-o", source.replace(".cc", ".o")]
        return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0

    def _outcome(self, number: int, mutant: Mutant) -> bool | None:
        folder = self._copy(f"mutant{number}")
        try:
            (folder / self._name).write_text(mutant.text)
            changed = _READERS[self._name]
            for source in {*_SOURCES, *_UNCHANGED} - {*changed}:
                shutil.copy(self._folder / "base" / source.replace(".cc", ".o"), folder)
            if not all(self._compile(folder, source) for source in changed):
                return None
            return self._is_killed(folder)
        finally:
            shutil.rmtree(folder)

    def _is_killed(self, folder: Path) -> bool:
        """Link the program and run it; the other targets, which it lacks, are not called."""
        objects = [source.replace(".cc", ".o") for source in (*_SOURCES, *_UNCHANGED)]
        link = [
            os.environ.get("CXX", "g++"),
            *_FLAGS,
            "-no-pie",
            "-Wl,--unresolved-symbols=ignore-all",
            *objects,
            "-o",
            "fuzz",
        ]
        subprocess.run(link, cwd=folder, capture_output=True, check=True)
        data = self._root / "tests/data/fuzz"
        options = ["--runs", _RUNS, "--target", "frames", "--seeds", data, "--dictionary", data / "dictionary"]
        limits = f'ulimit -t {_SECONDS}; exec ./fuzz "$@"'
        run = subprocess.run(
            ["sh", "-c", limits, "fuzz", *map(str, options)], cwd=folder, capture_output=True, check=False
        )
        return run.returncode != 0


def _numbered(mutants: Iterable[Mutant]) -> Iterable[tuple[int, Mutant]]:
    """Mutants of equal lines are distinguished by a number."""
    counts: dict[str, int] = {}
    for mutant in mutants:
        counts[mutant.key] = counts.get(mutant.key, 0) + 1
        yield counts[mutant.key], mutant
