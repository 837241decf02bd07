"""Writes records for ``digests``: those that ``differential.py`` compares with the same numbers, three frames each.

``python tests/fuzz/corpus.py build/arm/corpus --runs 20000 --seed 1``. An entry of the file is its size in four bytes,
and frames: a seed, the mutant, and a seed, so that the fast path is taken, too.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "support")]

from differential import REFERENCE, payloads
from mutation import Mutator, read_dictionary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    seeds = payloads()
    mutator = Mutator(seeds, read_dictionary("dictionary"), options.seed)
    options.path.parent.mkdir(parents=True, exist_ok=True)
    with options.path.open("wb") as file:
        for _ in range(options.runs):
            mutant = mutator.mutant()
            draw = random.Random(mutant)
            frames = REFERENCE.frame([draw.choice(seeds), mutant, draw.choice(seeds)])
            file.write(len(frames).to_bytes(4, "little") + frames)


if __name__ == "__main__":
    main()
