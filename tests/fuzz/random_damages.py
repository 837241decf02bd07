"""Random damages: how many of the records that they leave intact `salvage` finds, and whether it invents any.

::

    python tests/fuzz/random_damages.py [--rounds 10000] [--damages 1] [--seed 0]

Each round writes a plain file of up to 120 records of 12 bytes to 20 kB, a tenth of which hold a TFRecord file of their
own, and damages it: a flipped bit, a cut, a range of zeros, a range written twice, inserted bytes, or a block of 4 KiB
that is lost. Then it salvages the file. Counted are the records of which every byte is left, and of these

- reached: they are salvaged;
- hidden: they begin before the end that the intact header of a damaged record states, and are not salvaged, as they
  may be a part of its payload;
- unproven: fewer than 64 of them stand between two damages, and are not salvaged;
- missed: all others that are not salvaged;

and salvaged payloads that were never written, or more often than they are in the file. Apart from hidden and unproven
ones, all are to be reached, and none invented: the exit code is 1 otherwise. Not invented but standing are records of
an inner file that a range written twice has put where a record of the outer file ends: they are records of it now.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "support")]

import tfrecord_io as tfr
from records import framed

KINDS = ("flip", "cut", "zeros", "twice", "insert", "lost block")
_BLOCK = 4 << 10
_CONFIRMED = 64  # records that prove a place to go on


def payloads_of(rng: random.Random) -> list[bytes]:
    """Different payloads."""
    payloads = []
    for number in range(rng.randint(1, 120)):
        size = rng.choice((0, 10, 100, 1000, 20_000))
        payload = rng.randbytes(8) + number.to_bytes(4, "little") + rng.randbytes(rng.randint(0, size))
        if rng.random() < 0.1:
            inner = [framed(b"inner" + payload[:12] + bytes([i])) for i in range(rng.choice((1, 3, 70)))]
            whole = b"".join(inner)
            payload = tfr.encode_example({"id": payload[:12], "file": whole}) if number % 2 else payload[:12] + whole
        payloads.append(payload)
    return payloads


def damaged(content: bytes, kind: str, rng: random.Random) -> bytes:
    """`content` with one damage at a random byte."""
    at = rng.randrange(len(content))
    end = min(len(content), at + rng.randint(1, 8000))
    if kind == "flip":
        return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
    if kind == "cut":
        return content[:at]
    if kind == "zeros":
        return content[:at] + bytes(end - at) + content[end:]
    if kind == "twice":
        return content[:end] + content[at:end] + content[end:]
    if kind == "insert":
        return content[:at] + rng.randbytes(rng.randint(1, 200)) + content[at:]
    block = at // _BLOCK * _BLOCK
    return content[:block] + content[block + _BLOCK :]


def places(content: bytes, frame: bytes) -> list[int]:
    found, at = [], content.find(frame)
    while at >= 0:
        found.append(at)
        at = content.find(frame, at + 1)
    return found


def hidden_parts(content: bytes, frames: list[bytes]) -> list[tuple[int, int]]:
    """From the begin to the stated end of each damaged record whose header is intact."""
    parts = []
    for frame in frames:
        for at in places(content, frame[:20]):
            if content[at : at + len(frame)] != frame:
                parts.append((at, at + len(frame)))
    return parts


def is_standing(content: bytes, payload: bytes, ends: dict[int, int]) -> bool:
    """Whether a record stands where the one before it ends; then it counts as one of the file, with its `ends`."""
    frame = framed(payload)
    begins = [at for at in places(content, frame) if at in ends.values()]
    ends.update((at, at + len(frame)) for at in begins)
    return bool(begins)


def unproven_places(content: bytes, ends: dict[int, int]) -> set[int]:
    """The begins of intact records in runs that the rule need not accept; `ends` has the end of each by its begin."""
    unproven: set[int] = set()
    run: list[int] = []
    for begin in sorted(ends):
        if run and ends[run[-1]] != begin:
            unproven |= set() if run[0] == 0 or len(run) >= _CONFIRMED else {*run}
            run = []
        run.append(begin)
    if run and run[0] != 0 and len(run) < _CONFIRMED and ends[run[-1]] != len(content):
        unproven |= {*run}
    return unproven


def one_round(path: Path, target: Path, damages: int, rng: random.Random, counts: Counter[str]) -> None:
    """Damage a file, salvage it, and count."""
    payloads = payloads_of(rng)
    frames = [framed(payload) for payload in payloads]
    content = b"".join(frames)
    kinds = [rng.choice(KINDS) for _ in range(damages)]
    for kind in kinds:
        content = damaged(content, kind, rng) if content else content
    path.write_bytes(content)
    tfr.salvage(path, target)
    salvaged = Counter(payloads_in := list(tfr.RecordReader(target)))
    intact = {payload: places(content, frame) for payload, frame in zip(payloads, frames, strict=True)}
    ends = {at: at + len(payload) + 16 for payload, ats in intact.items() for at in ats}
    hidden, unproven = hidden_parts(content, frames), unproven_places(content, ends)
    counts["intact"] += len(ends)
    for payload, count in salvaged.items():
        if payload not in intact and is_standing(content, payload, ends):
            counts["standing"] += count
        elif count > len(intact.get(payload, ())):
            counts["invented" if payload not in intact else "too often"] += count
    for payload, ats in intact.items():
        counts["reached"] += min(len(ats), salvaged[payload])
        lost = max(0, len(ats) - salvaged[payload])
        behind = min(lost, sum(any(begin < at < end for begin, end in hidden) for at in ats))
        between = min(lost - behind, sum(at in unproven for at in ats))
        counts["hidden"] += behind
        counts["unproven"] += between
        counts["missed"] += lost - behind - between
    if "twice" not in kinds:
        order = {payload: number for number, payload in enumerate(payloads)}
        numbers = [order[payload] for payload in payloads_in if payload in order]
        counts["out of order"] += numbers != sorted(set(numbers))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--damages", type=int, default=1, help="of each file")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            rng = random.Random(f"{options.seed}.{number}")
            path, target = Path(folder) / "damaged.tfrecord", Path(folder) / "salvaged.tfrecord"
            one_round(path, target, options.damages, rng, counts)
    print(f"{options.rounds:,} files, {options.damages} damage(s) each, {time.monotonic() - started:.0f} s")
    wrong = ("missed", "invented", "too often", "out of order")
    names = ("intact", "reached", "hidden", "unproven", "standing", *wrong)
    print(", ".join(f"{counts[name]:,} {name}" for name in names))
    return int(any(counts[name] for name in wrong))


if __name__ == "__main__":
    sys.exit(main())
