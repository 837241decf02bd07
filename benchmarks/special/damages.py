"""Random damages: how many of the records that they leave intact `salvage` finds, and whether it invents any.

::

    python -m benchmarks.special.damages [--rounds 10000] [--seed 0]

Each round writes a plain file of up to 120 records of 8 bytes to 20 kB, a tenth of which hold a TFRecord file of their
own, and damages it one to three times: a flipped bit, a cut, a range of zeros, a range written twice, inserted bytes,
or a block of 4 KiB that is lost. Then it salvages the file. Counted are the records of which every byte is left, those
of them that were salvaged, and salvaged payloads that are not one of the file's. A record counts as hidden if it begins
before the end that the intact header of a damaged record states: the rule may take it for a part of that payload.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import crc32c

import tfrecord_io as tfr

KINDS = ("flip", "cut", "zeros", "twice", "insert", "lost block")
_BLOCK = 4 << 10


def masked(data: bytes) -> bytes:
    crc = crc32c.crc32c(data)
    return ((((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF).to_bytes(4, "little")


def framed(payload: bytes) -> bytes:
    length = len(payload).to_bytes(8, "little")
    return length + masked(length) + payload + masked(payload)


def payloads_of(rng: random.Random) -> list[bytes]:
    """Different payloads."""
    payloads = []
    for number in range(rng.randint(1, 120)):
        size = rng.choice((0, 10, 100, 1000, 20_000))
        payload = rng.randbytes(8) + number.to_bytes(4, "little") + rng.randbytes(rng.randint(0, size))
        if rng.random() < 0.1:
            inner = [framed(b"inner" + payload[:12] + bytes([i])) for i in range(rng.choice((1, 3, 70)))]
            payload = payload[:12] + b"".join(inner) + rng.randbytes(rng.randint(0, 20))
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


def one_round(path: Path, target: Path, rng: random.Random, counts: Counter[str]) -> None:
    """Damage a file, salvage it, and count."""
    payloads = payloads_of(rng)
    frames = [framed(payload) for payload in payloads]
    content = b"".join(frames)
    kinds = [rng.choice(KINDS) for _ in range(rng.choice((1, 1, 2, 3)))]
    for kind in kinds:
        content = damaged(content, kind, rng) if content else content
    path.write_bytes(content)
    tfr.salvage(path, target)
    salvaged = list(tfr.RecordReader(target))
    hidden = hidden_parts(content, frames)
    missing = Counter(salvaged)
    known = set(payloads)
    counts["records"] += len(payloads)
    counts["salvaged"] += len(salvaged)
    counts["invented"] += sum(payload not in known for payload in salvaged)
    intact = {payload: places(content, frame) for payload, frame in zip(payloads, frames, strict=True)}
    counts["too often"] += sum(count > len(intact.get(payload, [])) for payload, count in missing.items())
    for payload, ats in intact.items():
        counts["intact"] += len(ats)
        lost = len(ats) - missing[payload]
        inside = sum(any(begin < at < end for begin, end in hidden) for at in ats)
        counts["hidden"] += min(lost, inside) if lost > 0 else 0
        counts["missed"] += max(0, lost - inside)
    if "twice" not in kinds:
        numbers = [payloads.index(payload) for payload in salvaged if payload in known]
        counts["out of order"] += numbers != sorted(set(numbers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.rounds):
            rng = random.Random(f"{options.seed}.{number}")
            one_round(Path(folder) / "damaged.tfrecord", Path(folder) / "salvaged.tfrecord", rng, counts)
    seconds = time.monotonic() - started
    print(f"{options.rounds:,} damaged files, {counts['records']:,} records written, {seconds:.0f} s")
    names = ("intact", "salvaged", "hidden", "missed", "invented", "too often", "out of order")
    print(", ".join(f"{counts[name]:,} {name}" for name in names))


if __name__ == "__main__":
    main()
