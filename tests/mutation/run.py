"""Mutation testing of framing, the search for headers, and rules of schemas and nulls: ``make mutation``, or

``python tests/mutation/run.py [--module NAME] [--sample 60]``. Each mutant of a module runs the tests named here, up to
the first that fails. A mutant that passes all of them survives: a finding, unless equivalent.txt says why no test can
tell it from the original. The exit code is 1 if a survivor is not listed, or if a listed one is gone or killed.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

os.environ["TFRECORD_IO_TESTS"] = "storm"  # all rounds of the tests, on both engines
ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from in_kernel import KernelMutants
from in_python import PythonMutants

FRAMING = ["bytes/engine/test_reference_frames.py", "bytes/engine/test_find_header.py"]
# Those tests of pieces that need no server.
_PIECES = [
    f"read/test_byte_ranges.py::test_{name}"
    for name in (
        "the_boundary_after_any_byte_is_found",
        "boundaries_inside_a_nested_file_are_not_accepted",
        "a_nested_file_in_a_damaged_record_is_not_read",
        "a_long_chain_is_accepted",
        "a_payload_full_of_headers_takes_bounded_time",
    )
]
_CRCS = "bytes/engine/test_equivalence.py::test_the_crc_of_two_parts_follows_from_those_of_each"

# Modules of the package, and of tests/support, and the tests that each mutant of them runs.
PYTHON = {
    "bytes/format/framing.py": ["bytes/format/test_framing.py"],
    "reference_engine/frames.py": [*FRAMING, _CRCS],
    "columns/schema/inferred_type.py": ["columns/schema/test_inferred_type.py"],
    "bytes/format/missing_values.py": ["bytes/format/test_missing_values.py"],
    "read/find_boundaries.py": ["read/test_find_boundaries.py", *_PIECES],
    "columns/schema/embedded.py": ["columns/schema/test_embedded_limits.py", "columns/schema/test_embedded.py"],
    "columns/schema/inferred_schema.py": ["columns/schema/test_inferred_schema.py"],
}
# Sources of the kernel, whose mutants run the fuzzer's target "frames".
KERNEL = ["frame.cc", "frame.h", "resync_loop.inc"]


@dataclass
class Tally:
    """What came of the mutants of one module."""

    killed: int = 0
    equivalent: set[str] = field(default_factory=set)
    survived: list[str] = field(default_factory=list)
    outdated: list[str] = field(default_factory=list)  # lines of equivalent.txt

    def row(self, name: str) -> str:
        tested = self.killed + len(self.survived)
        counts = f"{self.killed:>4} killed, {len(self.survived):>2} survived, {len(self.equivalent):>2} equivalent"
        share = 100 * self.killed / max(tested, 1)
        return f"{name:<32} {tested + len(self.equivalent):>4} mutants: {counts}: {share:.1f} %"


def read_equivalent() -> dict[str, set[str]]:
    """The mutants that are known to be equivalent, by module; a line that begins with "#" gives the reason."""
    listed: dict[str, set[str]] = {}
    module = ""
    for line in (HERE / "equivalent.txt").read_text().splitlines():
        if line.startswith("["):
            module = line.strip("[]")
        elif line.strip() and not line.startswith("#"):
            listed.setdefault(module, set()).add(line)
    return listed


def tally(results: dict[str, bool], listed: set[str]) -> Tally:
    """Sort mutants, of which `results` say whether they were killed."""
    found = Tally()
    for key, is_killed in results.items():
        if is_killed:
            found.killed += 1
        elif key in listed:
            found.equivalent.add(key)
        else:
            found.survived.append(key)
    found.outdated = sorted(listed - found.equivalent)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--module", choices=[*PYTHON, *KERNEL], action="append")
    parser.add_argument(
        "--sample", type=int, default=10**6, help="at most so many mutants of each module, evenly chosen"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--build", type=Path, default=ROOT / "build/mutation", help="where the kernel is built")
    options = parser.parse_args()
    listed, tallies = read_equivalent(), []
    for name in options.module or [*PYTHON, *KERNEL]:
        if name in PYTHON:
            results = PythonMutants(ROOT, name, PYTHON[name]).run(options.jobs, options.sample)
        else:
            results = KernelMutants(ROOT, name, options.build).run(options.jobs, options.sample)
        tallies.append(tally(results, listed.get(name, set())))
        if len(results) == options.sample:
            tallies[-1].outdated.clear()  # others may be among those that were not run
        print(tallies[-1].row(name), flush=True)
        for key in tallies[-1].survived:
            print(f"  survived: {key}", flush=True)
        for key in tallies[-1].outdated:
            print(f"  listed as equivalent, but killed or gone: {key}", flush=True)
    total = Tally(sum(one.killed for one in tallies))
    total.equivalent = {f"{number} {key}" for number, one in enumerate(tallies) for key in one.equivalent}
    total.survived = [key for one in tallies for key in one.survived]
    print(total.row("all"))
    return 1 if total.survived or any(one.outdated for one in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
