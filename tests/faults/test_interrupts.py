"""Fault 64: Ctrl-C ends a long read or write within 100 ms, on disk and over a network, and leaves no partial file."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from chaos import Chaos
from records import example, framed, int64s
from servers import Bucket
from tfrecord_io.storage.read import range_reader as ranges
from tfrecord_io.storage.write import atomic_s3 as commit_s3

LIMIT = 0.1
TRIES = 4  # other programs on the machine may take the time that one run needs

pytestmark = [pytest.mark.fault(64), pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")]


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def seconds_to_stop(work: Callable[[], Any], begun: Callable[[], bool] = lambda: True, after: float = 0.02) -> float:
    """From a Ctrl-C, some time after work has `begun`, to the moment at which all that it opened is closed again."""
    sent = []

    def interrupt() -> None:
        deadline = time.monotonic() + 20
        while not begun() and time.monotonic() < deadline:
            threading.Event().wait(0.001)
        threading.Event().wait(after)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        thread.start()
        work()
        threading.Event().wait(5)  # it was done before
        sent.clear()
    thread.join()
    assert sent, "the work was too short to be interrupted"
    return time.perf_counter() - sent[0]


def best(run: Callable[[], float]) -> float:
    """The least of some tries, as few as it takes."""
    least = float("inf")
    for _ in range(TRIES):
        least = min(least, run())
        if least < LIMIT:
            break
    return least


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """400 MiB of small records."""
    path = tmp_path_factory.mktemp("large") / "large.tfrecord"
    piece = framed(*[example(n=int64s(i, i), m=int64s(i)) for i in range(20_000)])
    with path.open("wb") as file:
        for _ in range(400 * (1 << 20) // len(piece)):
            file.write(piece)
    return path


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_long_read_of_a_file(large: Path, threads: int) -> None:
    assert best(lambda: seconds_to_stop(lambda: tfr.read_table(large, threads=threads))) < LIMIT


def test_a_long_look_at_a_file(large: Path) -> None:
    for work in (
        lambda: list(tfr.RecordReader(large)),
        lambda: [tfr.count_records(large) for _ in range(20)],
        lambda: tfr.verify(large),
    ):
        assert best(lambda work=work: seconds_to_stop(work)) < LIMIT  # type: ignore[misc]


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_a_long_write_of_a_file(tmp_path: Path, name: str) -> None:
    table = pa.table({"x": np.arange(6_000_000), "s": pa.array(["words"] * 6_000_000)})
    (tmp_path / name).write_bytes(b"old")
    assert (
        best(
            lambda: seconds_to_stop(
                lambda: tfr.write_tfrecord(table, tmp_path / name), lambda: len(os.listdir(tmp_path)) > 1
            )
        )
        < LIMIT
    )
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"old"


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_read_from_a_bucket_that_gives_no_answer(
    s3: Bucket, chaos: Chaos, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(ranges, "_STREAM_BYTES", 1 << 16)
    monkeypatch.setattr(ranges, "_LARGEST_BYTES", 1 << 16)
    tfr.write_tfrecord({"x": [bytes(1000)] * 20_000}, tmp_path / "a")
    s3.fs.put_file(str(tmp_path / "a"), f"{s3.name}/a")
    options = {**s3.storage_options, "endpoint_url": chaos.endpoint}

    def run() -> float:
        chaos.stalled = ""

        def work() -> None:
            with tfr.open_reader(s3.url("a"), storage_options=options, threads=threads, batch_size=1000) as reader:
                next(reader)
                chaos.stalled = "GET"
                for _ in reader:
                    pass

        return seconds_to_stop(work, lambda: chaos.stalled == "GET")

    assert best(run) < LIMIT


def test_a_write_to_a_bucket_that_gives_no_answer(s3: Bucket, chaos: Chaos, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_s3, "_PART_BYTES", 5 << 20)
    monkeypatch.setattr(commit_s3, "_MOST_BYTES", 20 << 20)
    options = {**s3.storage_options, "endpoint_url": chaos.endpoint}

    def run() -> float:
        def work() -> None:
            with tfr.RecordWriter(s3.url("a"), storage_options=options) as writer:
                chaos.stalled = "PUT"
                for _ in range(60):
                    writer.write(bytes(1 << 20))

        return seconds_to_stop(work, lambda: bool(s3.uploads()), after=0.1)

    assert best(run) < LIMIT
    assert not s3.names()
    assert not s3.uploads()
