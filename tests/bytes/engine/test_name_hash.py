"""Feature names that collide under a hash without a key cost no more than others, and no result depends on the key."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from engine_comparison import NATIVE
from records import entry, field, framed, int64s, written
from tfrecord_io.bytes.engine.contract import Plan

ROOT = Path(__file__).parents[3]
FIRST, MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
ASCII = np.uint64(0x7F7F7F7F7F7F7F7F)
COUNT = 20_000


def mixed(words: np.ndarray) -> np.ndarray:
    """A step of the hash without a key that the kernel used to have."""
    product = words * MIX
    return product ^ product >> np.uint64(32)


def old_hash(names: np.ndarray) -> np.ndarray:
    """That hash, of names of 16 bytes."""
    with np.errstate(over="ignore"):
        hashes = mixed(mixed(mixed(np.uint64(16) * FIRST ^ names[:, 0]) ^ names[:, 1]))
    return hashes ^ hashes >> np.uint64(29)


def colliding_names(count: int) -> list[bytes]:
    """Names of 16 ASCII characters that all have the same `old_hash`."""
    random, parts, found = np.random.default_rng(7), [], 0
    while found < count:
        with np.errstate(over="ignore"):
            first = random.integers(0, 2**63, 1 << 20, np.uint64) & ASCII
            second = mixed(np.uint64(16) * FIRST ^ first) ^ np.uint64(0x4142434445464748)
        parts.append(np.stack([first, second], axis=1)[second & ~ASCII == 0])
        found += len(parts[-1])
    names = np.concatenate(parts)[:count]
    assert len(set(old_hash(names).tolist())) == 1
    return [name.tobytes() for name in names.astype("<u8")]


def ordinary_names(count: int) -> list[bytes]:
    return [b"feature_%08d" % number for number in range(count)]


def record_of(names: list[bytes]) -> bytes:
    return field(1, b"".join(entry(name, int64s(1)) for name in names))


def decoding_time(names: list[bytes]) -> float:
    data, times = framed(record_of(names)), []
    for _ in range(3):
        decoder = NATIVE.decoder(Plan())
        begin = time.process_time()
        assert decoder.feed(data).records == 1
        times.append(time.process_time() - begin)
        assert len(decoder.take()) == len(names)
    return min(times)


def test_names_that_collide_without_a_key_are_decoded_like_others() -> None:
    assert decoding_time(colliding_names(COUNT)) < 10 * decoding_time(ordinary_names(COUNT))


def test_the_hash_uses_every_byte_and_the_length() -> None:
    kernel = pytest.importorskip("tfrecord_io.bytes._native._kernel")
    names = {bytes(size) for size in range(40)}
    names |= {bytes([*range(at), 77, *range(at + 1, size)]) for size in range(1, 40) for at in range(size)}
    assert len({kernel.hash_name(name) for name in map(to_array, names)}) == len(names)


def to_array(name: bytes) -> np.ndarray:
    return np.frombuffer(name, np.uint8)


READ = """
import hashlib, sys
import numpy as np
import tfrecord_io as tfr
from tfrecord_io.bytes._native import _kernel
table = tfr.read_table(tfr.dataset(sys.argv[1], threads=1))
tfr.write_tfrecord(table, sys.argv[2], mode='overwrite')
written = hashlib.sha256(open(sys.argv[2], "rb").read()).hexdigest()
print(_kernel.hash_name(np.frombuffer(b"name", np.uint8)))
print(hashlib.sha256(repr((table.schema, table.to_pydict())).encode()).hexdigest(), written)
"""


def test_processes_have_different_keys_and_equal_results(tmp_path: Path) -> None:
    pytest.importorskip("tfrecord_io.bytes._native._kernel")
    names = ordinary_names(300)
    path = written(tmp_path / "a", [record_of(names[at : at + 50] + names[:at:-7]) for at in range(0, 250, 5)])
    command = [sys.executable, "-c", READ, str(path), str(tmp_path / "b")]
    outputs = [subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    keys, results = zip(*(output.splitlines() for output in outputs), strict=True)
    assert keys[0] != keys[1]
    assert results[0] == results[1]
