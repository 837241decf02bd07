"""Mutations of seeds with a dictionary, and the loop that runs them against one target after the other."""

from __future__ import annotations

import argparse
import random
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data"
SEEDS = DATA / "fuzz"
_BYTES = [0, 1, 2, 4, 8, 10, 18, 26, 0x20, 0x22, 0x2C, 0x30, 0x39, 0x5B, 0x5D, 0x7B, 0x7D, 0x7F, 0x80, 0xFE, 0xFF]
_NUMBERS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x7FFFFFFF, 0x80000000, 2**63 - 1, 2**63, 2**64 - 1]
_MEMORY = 6 << 30  # of the address space
_SECONDS = 20  # of processor time for one input
_WORD = re.compile(rb'"((?:\\x[0-9a-f]{2})*)"')


def read_dictionary(name: str = "dictionary") -> list[bytes]:
    """The words of a dictionary in libFuzzer's format."""
    text = (SEEDS / name).read_bytes()
    return [bytes.fromhex(word.replace(b"\\x", b"").decode()) for word in _WORD.findall(text)]


class Mutator:
    """Draws mutants of seeds."""

    def __init__(self, seeds: Sequence[bytes], words: Sequence[bytes], seed: int) -> None:
        self.random = random.Random(seed)
        self._seeds, self._words = list(seeds), list(words)

    def mutant(self, most: int = 1 << 16) -> bytes:
        data = bytearray(self.random.choice(self._seeds))
        for _ in range(1 << self.random.choice([0, 0, 0, 1, 2, 3])):
            self._mutate(data)
        return bytes(data[:most])

    def _mutate(self, data: bytearray) -> None:
        draw = self.random
        at = draw.randint(0, len(data))
        change = draw.randrange(9)
        if change == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif change == 1 and at < len(data):
            data[at] = draw.choice(_BYTES)
        elif change == 2:
            number = draw.choice(_NUMBERS).to_bytes(8, draw.choice(["little", "big"]))
            size = draw.choice([1, 2, 4, 8])
            data[at : at + size] = number[:size]
        elif change == 3:
            del data[at : at + draw.randint(1, draw.choice([2, 8, 64]))]
        elif change == 4:
            to = draw.randint(0, len(data))
            data[to:to] = data[at : at + draw.randint(1, draw.choice([4, 32]))]
        elif change == 5:
            data[at:at] = draw.choice(self._words)
        elif change == 6:
            word = draw.choice(self._words)
            data[at : at + len(word)] = word
        elif change == 7:
            other = draw.choice(self._seeds)
            data[at:] = other[draw.randint(0, len(other)) :]
        else:
            digits = list(re.finditer(rb"-?[0-9]+", data))  # of JSON, protobuf text, array headers
            if digits:
                place = draw.choice(digits)
                data[place.start() : place.end()] = str(draw.choice([-1, 0, 1, 2, 10**6, *_NUMBERS, 10**30])).encode()


@dataclass(frozen=True)
class Target:
    """A function that takes any bytes and raises one of `accepted`, or nothing."""

    run: Callable[[bytes], Any]
    seeds: Sequence[bytes]
    accepted: tuple[type[BaseException], ...]
    words: str = "dictionary"


def _keep(folder: Path, name: str, data: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"crash-{name}"
    path.write_bytes(data)
    return path


def _attempt(name: str, target: Target, data: bytes, folder: Path) -> bool:
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        target.run(data)
    except target.accepted:
        return True
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        traceback.print_exc()
        print(f"{name}: the input is in {_keep(folder, name, data)}", file=sys.stderr)
        return False
    return True


def _out_of_time(*_: object) -> None:
    raise TimeoutError(f"an input takes more than {_SECONDS} s")


def main(description: str, targets: Callable[[], Mapping[str, Target]]) -> None:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, default=1e9, help="for all targets together")
    parser.add_argument("--runs", type=int, default=10**12, help="for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", help="one target only")
    parser.add_argument("--input", type=Path, help="run the target on this file only")
    parser.add_argument("--artifacts", type=Path, default=Path("build/fuzz"), help="where inputs that fail are kept")
    parser.add_argument("--keep-going", action="store_true", help="go on after an input that fails")
    options = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _out_of_time)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))
    warnings.simplefilter("ignore")
    chosen = {name: target for name, target in targets().items() if options.target in (None, name)}
    failed, total = False, 0
    for name, target in chosen.items():
        if options.input:
            failed |= not _attempt(name, target, options.input.read_bytes(), options.artifacts)
            continue
        mutator = Mutator(target.seeds, read_dictionary(target.words), options.seed)
        for data in target.seeds:
            failed |= not _attempt(name, target, data, options.artifacts)
        end, runs = time.monotonic() + options.seconds / len(chosen), 0
        while runs < options.runs and time.monotonic() < end:
            runs += 1
            if not _attempt(name, target, mutator.mutant(), options.artifacts):
                failed = True
                if not options.keep_going:
                    break
        print(f"{name:<16} {runs:>10} runs", flush=True)
        total += runs
    print(f"{total} runs")
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    sys.exit(failed)
