"""Whether nothing else runs on the machine, by its pressure stall information: figures of a busy one say little.

``/proc/pressure/cpu`` has the share of the last ten seconds in which some task waited for a processor, the others that
for memory and for disks: https://docs.kernel.org/accounting/psi.html.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

FOLDER = Path("/proc/pressure")
LIMITS = {"cpu": 5.0, "memory": 1.0, "io": 10.0}  # per cent of the time
PATIENCE = 60.0  # seconds: the part that was measured before is in the figures for some time
PAUSE = 2.0


def pressure(folder: Path = FOLDER) -> dict[str, float]:
    """The shares of the last ten seconds in per cent; OSError if the system does not state them."""
    found = {}
    for name in LIMITS:
        match = re.search(r"^some avg10=([0-9.]+)", (folder / name).read_text(), re.MULTILINE)
        if match is None:
            raise OSError(f"{folder / name}: no average over ten seconds")
        found[name] = float(match[1])
    return found


def disturbance(folder: Path = FOLDER) -> str:
    """What makes the machine too busy, or unknown to be quiet; empty if it is quiet."""
    try:
        found = pressure(folder)
    except OSError as error:
        return f"it is unknown whether the machine is quiet ({error})"
    over = [
        f"{name} {share:.0f} % (limit {LIMITS[name]:.0f} %)" for name, share in found.items() if share > LIMITS[name]
    ]
    return f"the machine is busy: tasks waited for {', '.join(over)} in the last ten seconds" if over else ""


def wait_until_quiet(patience: float = PATIENCE) -> None:
    """Return once the machine is quiet; SystemExit if it is not after so many seconds."""
    end = time.monotonic() + patience
    while reason := disturbance():
        if time.monotonic() >= end:
            raise SystemExit(f"{reason}. Measure when nothing else runs; --busy goes on all the same, and says so")
        print(f"{reason}; waiting …", file=sys.stderr, flush=True)
        time.sleep(PAUSE)
