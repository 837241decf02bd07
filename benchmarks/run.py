"""The command: write the workloads, time all contenders in one run, print the ratios."""

from __future__ import annotations

import argparse
import importlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import report
from benchmarks.contest import READERS, WRITERS, Result, contest
from benchmarks.workloads import PLAIN, WORKLOADS, Workload, ensure

NOTES = """\
Seconds, best of up to {repeat} alternating rounds; ratios are the best peer's time divided by that of
tfrecord_io. Floor: memcpy + CRC32C of the file's bytes. `~`: timed with a part of the rows and scaled."""

SPECIAL = {  # module: what it measures
    "remote": "an object store behind a slow link (needs s3fs)",
    "tensors": "tensors as raw bytes, to and from NumPy",
    "training": "shuffled batches of arrays",
}


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--workloads", nargs="+", choices=PLAIN, default=list(PLAIN), metavar="NAME", help=", ".join(PLAIN)
    )
    parser.add_argument("--gzip", action="store_true", help="use files compressed with gzip")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument(
        "--read", dest="directions", action="store_const", const=("read",), help="file → columns (the default)"
    )
    direction.add_argument("--write", dest="directions", action="store_const", const=("write",), help="columns → file")
    direction.add_argument("--all", dest="directions", action="store_const", const=("read", "write"), help="both")
    parser.set_defaults(directions=("read",))
    parser.add_argument("--repeat", type=int, default=7, help="maximum number of rounds (default 7)")
    parser.add_argument(
        "--budget", type=float, default=30.0, metavar="S", help="do not repeat contenders after S seconds (default 30)"
    )
    parser.add_argument("--no-peers", action="store_true", help="only tfrecord_io and the floor")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write to FILE, between its markers")
    for name, what in SPECIAL.items():
        parser.add_argument(
            f"--{name}", dest="special", action="store_const", const=name, help=f"instead, measure {what}"
        )
    options = parser.parse_args(argv)
    if options.gzip:
        options.workloads = [f"{name}.gz" for name in options.workloads]
    return options


def _geometric_mean(results: Sequence[tuple[Workload, list[Result]]], contender: int) -> str:
    quotients = []
    for _, all_results in results:
        times = [r.seconds for r in all_results[2:-1] if r.error is None]
        if all_results[contender].error is not None or not times:
            return "–"
        quotients.append(min(times) / all_results[contender].seconds)
    return f"{math.exp(sum(map(math.log, quotients)) / len(quotients)):.1f}×"


def measure(direction: str, options: argparse.Namespace) -> str:
    """Run one direction and return its part of the report."""
    specs = READERS if direction == "read" else WRITERS
    if options.no_peers:
        specs = tuple(s for s in specs if "TfrecordIo" in s or "Floor" in s)
    results = []
    for name in options.workloads:
        print(f"{direction}: {WORKLOADS[name].title} …", file=sys.stderr, flush=True)
        results.append((WORKLOADS[name], contest(specs, WORKLOADS[name], options.repeat, options.budget)))
    title = {"read": "File → Arrow", "write": "Arrow → file"}[direction] + (", gzip" if options.gzip else "")
    parts = [f"### {title}", report.ratios(results, options.no_peers)]
    if not options.no_peers:
        parts.append(
            f"Geometric mean: {_geometric_mean(results, 0)} on one thread, {_geometric_mean(results, 1)} on two."
        )
        parts.append(report.peers(results))
    if options.gzip and direction == "write":
        parts.append(report.sizes(results))
    failed = report.errors(results)
    return "\n\n".join([*parts, f"Did not run:\n\n{failed}"] if failed else parts)


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(argv)
    if options.special is not None:
        text, passed = importlib.import_module(f"benchmarks.{options.special}").measure(options.repeat)
        print(f"{report.machine()}.\n\n{text}")
        return 0 if passed else 1
    ensure(options.workloads)
    parts = [report.machine() + ".", NOTES.format(repeat=options.repeat)]
    parts += [measure(direction, options) for direction in options.directions]
    text = "\n\n".join(parts)
    print(text)
    if options.markdown is not None:
        report.put(options.markdown, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
