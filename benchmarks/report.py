"""Results as aligned Markdown tables, and a description of the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contest import Result
from benchmarks.workloads import Workload

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
PACKAGES = ("tfrecord_io", "numpy", "pyarrow", "tensorflow-cpu", "tensorflow", "tfx-bsl", "tfrecord", "crc32c")


def machine() -> str:
    """CPU, cores, Python and package versions in one line."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return f"{cpu}, {cores} cores, {platform.system()}; Python {platform.python_version()}, " + ", ".join(versions)


def _width(text: str) -> int:
    return sum(0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF") for c in text)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns, all but the first to the right.

    >>> print(table(["a", "b"], [["x", "10"]]))
    | a |  b |
    |:--|---:|
    | x | 10 |
    """
    widths = [max(_width(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = []
    for row in [header, *rows]:
        pads = [" " * (w - _width(cell)) for cell, w in zip(row, widths, strict=True)]
        cells = [cell + pad if i == 0 else pad + cell for i, (cell, pad) in enumerate(zip(row, pads, strict=True))]
        lines.append("| " + " | ".join(cells) + " |")
    rule = "|:" + "-" * (widths[0] + 1) + "|" + "".join("-" * (w + 1) + ":|" for w in widths[1:])
    return "\n".join([lines[0], rule, *lines[1:]])


def _seconds(result: Result) -> str:
    if result.error is not None or not result.runs:
        return "–"
    return ("~" if result.share < 1 else "") + f"{result.seconds:.3f}"


def _ratio(over: Result, under: Result) -> str:
    if not (over.runs and under.runs) or over.error or under.error:
        return "–"
    value = over.seconds / under.seconds
    return f"{value:.1f}×" if value >= 3 else f"{value:.2f}×"


def _best(peers: Sequence[Result]) -> Result:
    return min((p for p in peers if p.error is None), key=lambda p: p.seconds, default=peers[0])


def ratios(results: Sequence[tuple[Workload, list[Result]]], alone: bool = False) -> str:
    """tfrecord_io in relation to the best peer and the floor; results begin with tfrecord_io and end with the floor.

    `alone`: there are no peers.
    """
    own = ["tfrecord_io, 1 thread", "tfrecord_io, 2 threads"]
    if alone:
        rows = [
            [w.title, _seconds(one), _seconds(two), _seconds(floor), _ratio(one, floor)]
            for w, (one, two, floor) in results
        ]
        return table(["workload", *own, "floor", "tfrecord_io / floor"], rows)
    peer = ["best peer", "which", "1 thread", "2 threads"]
    header = ["workload", "MB", *own, *peer, "floor", "tfrecord_io / floor"]
    rows = []
    for workload, (one, two, *peers, floor) in results:
        best = _best(peers)
        size = f"{workload.path.stat().st_size / 1e6:.0f}"
        times = [_seconds(one), _seconds(two), _seconds(best), f"{best.name} {best.setting}".strip()]
        rows.append(
            [workload.title, size, *times, _ratio(best, one), _ratio(best, two), _seconds(floor), _ratio(one, floor)]
        )
    return table(header, rows)


def peers(results: Sequence[tuple[Workload, list[Result]]]) -> str:
    """Best time and setting of every peer."""
    names = [peer.name for peer in results[0][1][2:-1]]
    rows = []
    for workload, (_one, _two, *contenders, _floor) in results:
        rows.append([workload.title, *(f"{_seconds(p)} {p.setting}".strip() for p in contenders)])
    return table(["seconds", *names], rows)


def sizes(results: Sequence[tuple[Workload, list[Result]]]) -> str:
    """Size of each writer's file, and the ratio of tfrecord_io's to TensorFlow's."""
    writers = [r.name for r in results[0][1][1:-1]]
    rows = []
    for workload, (_one, *contenders, _floor) in results:
        own, peer = contenders[0].size, next((r.size for r in contenders[1:] if r.size), 0.0)
        ratio = f"{own / peer:.3f}" if peer else "–"
        rows.append([workload.title, *(f"{r.size / 1e6:.1f}" if r.size else "–" for r in contenders), ratio])
    return table(["MB", *writers, f"tfrecord_io / {writers[1] if writers[1:] else 'peer'}"], rows)


def errors(results: Sequence[tuple[Workload, list[Result]]]) -> str:
    """The errors of contenders that failed."""
    failed = [(w.name, r) for w, all_results in results for r in all_results if r.error is not None]
    return "\n".join(f"- {workload}, {r.name}: {r.error}" for workload, r in failed)


def put(path: Path, text: str) -> None:
    """Write `text` to a file, between its markers if it has them."""
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    begin, end = old.find(BEGIN), old.find(END)
    if 0 <= begin < end:
        text = f"{old[: begin + len(BEGIN)]}\n\n{text}\n\n{old[end:]}"
    path.write_text(text.rstrip("\n") + "\n", encoding="utf-8")
