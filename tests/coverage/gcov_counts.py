"""Counts of branches of the kernel, from gcov's JSON."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# A line of a file of the kernel, and how often each of its branches was taken.
Branches = dict[tuple[str, int], list[int]]


def branch_counts(root: Path, builds: Sequence[Path]) -> Branches:
    """The branches of each line of the kernel, over all builds whose programs ran.

    A line that is compiled more than once, in a template or in a header, counts once: a branch is taken if it is in any
    of them. Where the compiler made another number of branches of it, by `if constexpr`, each form counts.
    """
    forms: dict[tuple[str, int], dict[int, list[int]]] = defaultdict(dict)
    for source in _sources(builds):
        name = (root / source["file"]).resolve()
        if not name.is_relative_to(root / "tfrecord_io/bytes/_native"):
            continue
        for line in source["lines"]:
            counts = _counts(line["branches"])
            if counts:
                form = forms[name.name, line["line_number"]].setdefault(len(counts), [0] * len(counts))
                form[:] = map(sum, zip(form, counts, strict=True))
    return {place: [count for form in by_size.values() for count in form] for place, by_size in forms.items()}


def _counts(branches: list[dict[str, Any]]) -> list[int]:
    """How often each branch was taken, without those of exceptions: the call that returns, and the one that throws."""
    kept: list[int] = []
    for branch in branches:
        if branch["throw"]:
            del kept[-1:]
        else:
            kept.append(branch["count"])
    return kept


def _sources(builds: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """What gcov says of each source of each object."""
    objects = [path for build in builds for path in sorted(build.rglob("*.gcda"))]
    if not objects:
        raise SystemExit(f"no program of {', '.join(map(str, builds))} has run")
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for report in pool.map(_report, objects):
            yield from report["files"]


def _report(counts: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        command = [os.environ.get("GCOV", "gcov"), "--json-format", "--branch-probabilities", str(counts.resolve())]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        (report,) = Path(folder).iterdir()
        found: dict[str, Any] = json.loads(gzip.decompress(report.read_bytes()))
        return found
