"""Compares the branches of the kernel that tests take with a list of those that none takes: ``make coverage``, or

``python tests/coverage/branches.py BUILD...``, where each BUILD is a folder of programs that were compiled with
``--coverage`` and have run. not_covered.txt names lines of the kernel with branches that no test takes, each with the
reason. The exit code is 1 if a branch is neither taken nor listed; listed ones that are taken, or gone, are reported.

These are the sources of framing, the wire format, parsers, columns and the encoder. The bindings, the exchange of
Arrow arrays and the buffers behind columns are left out: ANOTHER_PART.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE)]

from gcov_counts import Branches, branch_counts

NATIVE = ROOT / "tfrecord_io/bytes/_native"
ANOTHER_PART = ("bindings", "bindings_numpy", "arrow_export", "arrow_import", "buffer", "text_numpy")

Line = tuple[str, str]  # file, text


def read_listed() -> Counter[Line]:
    """How many branches of each line are listed; a line that begins with "#" gives the reason."""
    listed: Counter[Line] = Counter()
    file = ""
    for line in (HERE / "not_covered.txt").read_text().splitlines():
        if line.startswith("["):
            file = line.strip("[]")
        elif line.strip() and not line.startswith("#"):
            number, text = line.split(" ", 1)
            listed[file, text] += int(number)
    return listed


def not_taken(branches: Branches) -> tuple[Counter[Line], int]:
    """How many branches of each line no test takes, and the number of all branches."""
    missing: Counter[Line] = Counter()
    total = 0
    for (file, number), counts in sorted(branches.items()):
        if file.split(".")[0] in ANOTHER_PART:
            continue
        total += len(counts)
        if 0 in counts:
            text = (NATIVE / file).read_text().splitlines()[number - 1].split("  //")[0].strip()
            missing[file, text] += counts.count(0)
    return missing, total


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("build", type=Path, nargs="+")
    missing, total = not_taken(branch_counts(ROOT, parser.parse_args().build))
    listed = read_listed()
    for (file, text), number in sorted((missing - listed).items()):
        print(f"{file}: {number} of its branches are neither taken nor listed: {text}")
    for (file, text), number in sorted((listed - missing).items()):
        print(f"{file}: listed, but taken or gone: {number} {text}")
    taken, known = total - missing.total(), (missing & listed).total()
    print(f"{total} branches: {taken} taken, {known} listed with a reason, {(missing - listed).total()} neither")
    return 1 if missing - listed else 0


if __name__ == "__main__":
    sys.exit(main())
