"""Faults 62, 68 and 69 on a bucket: with network faults the data is right or there is an OSError; no upload is left."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fsspec
import pytest

from chaos import FAULTS, Chaos, Schedule
from limited import set_limits
from rounds import rounds
from servers import Bucket, quick_retries
from tfrecord_io.base import LIMITS, StorageOptions
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.block_reader import BlockReader
from tfrecord_io.store.read.files_ahead import SourcePrefetcher
from tfrecord_io.store.write import atomic_remote
from tfrecord_io.store.write.atomic import open_output

SCHEDULES = rounds(500, 30)
TOGETHER = 16
SIZE = 20_000
STORM = 10**9


pytestmark = pytest.mark.storm


@pytest.fixture
def stormy(
    conditional: Bucket, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Chaos, dict[str, Any]]]:
    """A proxy, and storage_options by way of it, with small ranges and parts, and tries one right after the other."""
    set_limits(
        monkeypatch,
        backoff_seconds=0.001,
        first_range_bytes=SIZE // 4,
        stream_range_bytes=SIZE // 4,
        largest_range_bytes=SIZE // 4,
        s3_part_bytes=SIZE // 4,
    )
    monkeypatch.setattr(atomic_remote, "_PENDING_BYTES", SIZE // 2)
    if conditional.protocol == "s3":
        s3fs = pytest.importorskip("s3fs")
        monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
        monkeypatch.setattr("moto.s3.models.S3_UPLOAD_PART_MIN_SIZE", 1)
        chaos = Chaos(request.getfixturevalue("s3_endpoint"))
        monkeypatch.setattr("random.random", lambda: 0.0)  # by which botocore multiplies its pauses
        config = {"retries": {"total_max_attempts": LIMITS.tries, "mode": "legacy"}, "max_pool_connections": 64}
        options = {**conditional.storage_options, "endpoint_url": chaos.endpoint, "config_kwargs": config}
    else:
        upstream = request.getfixturevalue("azure_endpoint")
        chaos = Chaos(upstream)
        connection = conditional.storage_options["connection_string"].replace(upstream, chaos.endpoint)
        options = {"connection_string": connection}
        quick_retries(fsspec.filesystem("abfs", **options), tries=LIMITS.tries)
    yield chaos, options
    chaos.close()


def content(seed: int) -> bytes:
    return random.Random(seed).randbytes(SIZE + seed % 7)


def faults(seed: int) -> int:
    """A storm without end in one run of ten; in the others so few that a request gets through in the end."""
    return STORM if seed % 10 == 9 else seed % 5


def each_seed(chaos: Chaos, run: Callable[[int], str]) -> Counter[str]:
    """Run all seeds, several at a time; how many came to what."""
    for seed in range(SCHEDULES):
        is_storm = faults(seed) == STORM
        odds, kinds = (0.9, ("reset", "lost", "busy")) if is_storm else (0.5, FAULTS)
        chaos.schedules[str(seed)] = Schedule(seed, faults(seed), odds, kinds)
    with ThreadPoolExecutor(TOGETHER) as pool:
        return Counter(pool.map(run, range(SCHEDULES)))


def check(seed: int, read: bytes | bytearray, error: OSError) -> str:
    """An error comes with the path, behind nothing but right bytes, and only where there was no getting through."""
    assert content(seed).startswith(read), seed
    assert str(error.filename).endswith(f"/{seed}"), seed
    assert error.strerror, seed
    assert faults(seed) == STORM, (seed, error)
    return "error"


@pytest.mark.fault(62)
def test_reads_with_network_faults_are_right_or_an_oserror(
    conditional: Bucket, stormy: tuple[Chaos, dict[str, Any]]
) -> None:
    chaos, options = stormy
    conditional.fs.pipe({f"{conditional.name}/{seed}": content(seed) for seed in range(SCHEDULES)})

    def run(seed: int) -> str:
        out = bytearray()
        path = conditional.url(str(seed))
        try:
            with SourcePrefetcher(resolve_inputs(path, StorageOptions(options))) as upcoming:
                blocks = BlockReader(next(upcoming).open_stream(None), 3000)
                while (block := blocks.next_block()) is not None:
                    out += block.data.tobytes()
                    blocks.consume(len(block.data))
        except OSError as error:
            return check(seed, out, error)
        assert bytes(out) == content(seed), seed
        return "right"

    came_to = each_seed(chaos, run)
    assert came_to["right"] >= SCHEDULES * 9 // 10
    assert came_to["error"] > 0
    assert {fault.split()[0] for s in chaos.schedules.values() for fault in s.injected} == {
        "reset",
        "cut",
        "lost",
        "busy",
        "slow",
    }


@pytest.mark.fault(62)
@pytest.mark.fault(69)
def test_writes_with_network_faults_are_atomic_and_leave_no_upload(
    conditional: Bucket, stormy: tuple[Chaos, dict[str, Any]]
) -> None:
    chaos, options = stormy

    def run(seed: int) -> str:
        data = content(seed)[: SIZE if seed % 3 else SIZE // 5]  # parts, or one request
        path = conditional.url(str(seed))
        try:
            with open_output(path, StorageOptions(options), mode="error" if seed % 2 else None) as out:
                for at in range(0, len(data), 3000):
                    out.write(data[at : at + 3000])
                if seed % 7 == 6:
                    raise RuntimeError("of the writer's own")
        except OSError as error:
            return check(seed, b"", error)
        except RuntimeError:
            return "left"
        assert conditional.fs.cat_file(path) == data, seed
        return "right"

    came_to = each_seed(chaos, run)
    assert came_to["right"] >= SCHEDULES * 7 // 10
    for name in conditional.names():  # also of those that ended by an error: an answer may be lost
        data = conditional.fs.cat_file(f"{conditional.name}/{name}")
        assert data in (content(int(name))[:SIZE], content(int(name))[: SIZE // 5]), name
        assert int(name) % 7 != 6 or faults(int(name)) == STORM
    if conditional.protocol != "s3":
        return  # Azure removes blocks that are of no blob by itself
    left = {upload["Key"] for upload in conditional.uploads()}
    assert all(faults(int(key)) == STORM for key in left), (
        left
    )  # where nothing gets through, nothing can be ended either
    assert len(left) < max(5, SCHEDULES // 50)
