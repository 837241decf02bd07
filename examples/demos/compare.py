"""Run with_tensorflow.py and with_tfrecord_io.py in turn, and print the best time of each and whether arrays are equal.

``python compare.py`` needs both packages; an argument is the Python of an environment that has TensorFlow. The time is
that of a whole process, with imports. meadow.tfrec is in the working directory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

PROGRAMS = ("with_tensorflow.py", "with_tfrecord_io.py")
ROUNDS = 5
SAVE = "\nimport sys, numpy\nnumpy.savez(sys.argv[1], **arrays)\n"


def run(python: str, program: str, target: str) -> None:
    """Run a program, and save its arrays."""
    code = (Path(__file__).parent / program).read_text(encoding="utf-8") + SAVE
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([python, "-c", code, target], check=True, env=quiet, stderr=subprocess.DEVNULL)


def main(of_tensorflow: str = sys.executable) -> None:
    pythons = dict(zip(PROGRAMS, (of_tensorflow, sys.executable), strict=True))
    seconds: dict[str, list[float]] = {program: [] for program in PROGRAMS}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(ROUNDS):
            for program in PROGRAMS:
                begin = time.perf_counter()
                run(pythons[program], program, f"{folder}/{program}.npz")
                seconds[program].append(time.perf_counter() - begin)
        expected, actual = (np.load(f"{folder}/{program}.npz") for program in PROGRAMS)
        for program in PROGRAMS:
            print(f"{program} {min(seconds[program]):.1f} s")
        for name in expected:
            assert np.array_equal(expected[name], actual[name]), f"{name} differs"
            print(f"equal: {name} {actual[name].dtype} {list(actual[name].shape)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
