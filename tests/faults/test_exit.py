"""A process ends as Python ends it, whatever threads are running: exit status, stderr, threads, descriptors, files."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interrupted_calls
import tfrecord_io as tfr
from in_processes import read_and_write
from rounds import COMPLETE, rounds
from running_threads import collect_garbage, ends, running

ROUNDS = 12 if COMPLETE else 1  # each is a process of its own
START = "import sys, tfrecord_io as tfr\npath = sys.argv[1]\n"
RAISED_IN_A_STEP = """
def train():
    source = tfr.dataset(path, threads={threads})
    batches = tfr.iter_arrays(source, batch_size=100, epochs=None, seed=0, shuffle_buffer=1000)
    for step, batch in enumerate(batches):
        if step == 5:
            raise ValueError("a bug in the training step")
train()
"""
HELD_BY_A_CYCLE = """
class Holder: pass
holder = Holder()
holder.itself = holder
source = tfr.dataset(path, threads={threads})
holder.batches = tfr.iter_arrays(source, batch_size=100, epochs=None, seed=0, shuffle_buffer=1000)
next(holder.batches)
"""
HELD_READER = """
reader = tfr.open_reader(tfr.dataset(path, threads={threads}), batch_size=100)
reader.read_next_batch()
"""
HELD_STREAM = """
tfr.write_tfrecord(dict.fromkeys("abcdefgh", range(99_999)), path + "-numbers")
reader = tfr.open_reader(tfr.dataset(path + "-numbers", threads={threads}), batch_size=100)
reader.read_next_batch()
"""
HELD_RECORD_READER = """
records = tfr.RecordReader(path)
next(records)
"""
UNTIL_INTERRUPTED = {
    "read_table": "tfr.read_table(tfr.dataset(path, threads={threads}))",
    "iter_arrays": "for _ in tfr.dataset(path, threads={threads}).iter_arrays(batch_size=99, shuffle_buffer=500): pass",
    "open_reader": "for _ in tfr.open_reader(tfr.dataset(path, threads={threads}), batch_size=99): pass",
    "numbers": "for _ in tfr.open_reader(tfr.dataset(path, threads={threads}), columns='tokens', batch_size=99): pass",
    "RecordReader": "for _ in tfr.RecordReader(path): pass",
    "open_random": "with tfr.open_random(path) as records: [records[i] for i in range(0, len(records), 100)]",
    "write gzip": "tfr.write_tfrecord(table, out + '/x.tfrecord.gz', threads={threads}, mode='overwrite')",
    "write shards": "tfr.write_tfrecord(iter(table.to_batches(99)), out + '/x@3', threads={threads}, mode='overwrite')",
    "RecordWriter": "with tfr.RecordWriter(out + '/r.tfrecord') as w: [w.write(bytes(500)) for _ in range(9999)]",
}
FORKS = """
import gc, os, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12 and later, about forks
def rows(threads):
    source = tfr.dataset(path, threads=threads)
    return sum(len(b["label"]) for b in tfr.iter_arrays(source, batch_size=99, shuffle_buffer=500))
held = [tfr.iter_arrays(tfr.dataset(path, threads=n), batch_size=99, shuffle_buffer=500, epochs=None) for n in (2, 4)]
held.append(tfr.open_reader(tfr.dataset(path, threads=2), batch_size=99))
held.append(tfr.open_reader(tfr.dataset(path, threads=4), columns="tokens", batch_size=99))
children = []
for i in range(8):
    for each in held:
        next(each)
    pid = os.fork()
    if not pid:
        if i % 2:
            held.clear()
            gc.collect()
        assert rows(1 + i % 3) == rows(4) == {rows}
        assert tfr.read_table(tfr.dataset(path, threads=2)).num_rows == {rows}
        tfr.write_tfrecord(tfr.read_table(path), f"{path}.{i}.gz", threads=2)
        sys.exit(7)
    children.append(pid)
statuses = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
assert statuses == [7] * 8, statuses
assert sum(len(batch) for batch in held[2]) == sum(len(batch) for batch in held[3]) > 0
for each in held[:2]:
    next(each)
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images in several blocks, so that there is something to read ahead."""
    path = tmp_path_factory.mktemp("exit") / "images.tfrecord"
    tfr.write_tfrecord({"image": np.zeros((20_000, 28, 28), "uint8"), "label": np.arange(20_000) % 10}, path)
    return path


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of many small values, which a stream decodes on all threads."""
    path = tmp_path_factory.mktemp("exit") / "numbers.tfrecord"
    tfr.write_tfrecord({f"column {i}": np.arange(20_000) for i in range(20)}, path)
    return path


ROWS = 3000


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("small") / "images.tfrecord"
    images, tokens = np.zeros((ROWS, 28, 28), "uint8"), np.arange(ROWS * 100).reshape(ROWS, 100)
    tfr.write_tfrecord({"image": images, "label": np.arange(ROWS) % 10, "tokens": tokens}, path)
    return path


def run(code: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", START + code, path], capture_output=True, text=True, check=False)


@pytest.mark.matrix
@pytest.mark.storm
@pytest.mark.parametrize(
    ("code", "status", "threads"),
    [
        *((RAISED_IN_A_STEP, 1, threads) for threads in (1, 2, 4)),
        *((HELD_BY_A_CYCLE, 0, threads) for threads in (1, 2, 4)),
        *((HELD_READER, 0, threads) for threads in (1, 2, 4)),
        (HELD_STREAM, 0, 4),
        (HELD_RECORD_READER, 0, 1),
    ],
)
def test_exit_with_threads_running(path: Path, code: str, status: int, threads: int) -> None:
    for _ in range(ROUNDS):
        done = run(code.format(threads=threads), path)
        assert done.returncode == status, done.stderr
        last = done.stderr.strip().splitlines()[-1:]
        assert last == (["ValueError: a bug in the training step"] if status else [])


@pytest.mark.parametrize(
    "abandon",
    [
        lambda path: next(tfr.iter_arrays(tfr.dataset(path, threads=4), batch_size=10, shuffle_buffer=50, seed=0)),
        lambda path: tfr.open_reader(tfr.dataset(path, threads=2), batch_size=10).read_next_batch(),
        lambda path: tfr.open_reader(tfr.dataset(path, threads=4), batch_size=10).read_next_batch(),
        lambda path: next(tfr.RecordReader(path)),
    ],
    ids=["iter_arrays", "read ahead", "decoding threads", "RecordReader"],
)
@pytest.mark.parametrize("content", ["path", "numbers"])
def test_abandoned_readers_leave_no_threads_and_descriptors(
    abandon: Callable[[Path], Any], content: str, request: pytest.FixtureRequest
) -> None:
    path = request.getfixturevalue(content)
    abandon(path)  # what is imported and opened once
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(rounds(200, 10)):
        abandon(path)
    collect_garbage()
    for thread in running():
        assert ends(thread), thread.name
    if descriptors:
        end = time.monotonic() + 10  # the last file is closed by a thread
        while len(os.listdir("/proc/self/fd")) > descriptors and time.monotonic() < end:
            time.sleep(0.01)
        assert len(os.listdir("/proc/self/fd")) <= descriptors


# Python prints an exception in a finalizer or a callback of a weak reference, and goes on.
INTERRUPTED_FINALIZER = re.compile(r"Exception ignored in: .*\nTraceback .*\n(?: .*\n)*\nKeyboardInterrupt: ?\n")


def interrupted(code: str, path: Path, out: Path, delay: float) -> tuple[int, str]:
    """Exit status and stderr of a process that repeats `code` until Ctrl-C, `delay` seconds after it first ran.

    The first run imports what `code` needs. Python before 3.12 raises RuntimeError for an interrupt while a class
    is made (https://github.com/python/cpython/issues/77757).
    """
    start = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in background jobs
    start += "out = sys.argv[2]\ntable = tfr.read_table(path)\nfirst = True\nwhile True:\n    "
    process = subprocess.Popen(
        [sys.executable, "-c", START + start + code + "\n    if first: first = print(flush=True)\n", path, out],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    try:
        _, stderr = process.communicate(timeout=20)
    except subprocess.TimeoutExpired as late:  # the machine may have stood still, too
        if INTERRUPTED_FINALIZER.search((late.stderr or b"").decode()):
            process.send_signal(signal.SIGINT)
        try:
            _, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, INTERRUPTED_FINALIZER.sub("", stderr)


@pytest.mark.storm
@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
@pytest.mark.parametrize("work", UNTIL_INTERRUPTED)
def test_an_interrupt_at_any_moment(small: Path, tmp_path: Path, work: str) -> None:
    """Ends the process as it ends any Python program: by the signal, after its traceback; no temporary file is left."""
    moments = random.Random(work)
    for number in range(ROUNDS):
        code = UNTIL_INTERRUPTED[work].format(threads=1 + 2 * (number % 2))
        status, stderr = interrupted(code, small, tmp_path, moments.random() * 0.3)
        assert status == -signal.SIGINT, stderr
        assert stderr.count("Traceback") == 1 + stderr.count("another exception occurred:"), stderr
        assert "\nKeyboardInterrupt\n" in stderr
        for text in ("terminate called", "Exception ignored", "Exception in thread"):
            assert text not in stderr
        names = {"x.tfrecord.gz", "r.tfrecord", *(f"x-{i:05}-of-00003" for i in range(3)), "_MANIFEST-x.json"}
        assert set(os.listdir(tmp_path)) <= names


@pytest.mark.storm
@pytest.mark.parametrize("work", UNTIL_INTERRUPTED)
def test_an_interrupt_at_each_place(small: Path, tmp_path: Path, work: str) -> None:
    """It ends the call, and no lock is left held for which another thread waits."""
    for threads in (1, 3) if COMPLETE else (3,):
        code = UNTIL_INTERRUPTED[work].format(threads=threads).replace("9999", "9")
        program = [sys.executable, interrupted_calls.__file__, code, small, tmp_path]
        done = subprocess.run(
            [*program, *("0", "1" if COMPLETE else "8")], capture_output=True, text=True, check=False, timeout=900
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.fault(65)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_forks_while_threads_run(small: Path) -> None:
    for _ in range(ROUNDS):
        done = run(FORKS.replace("{rows}", str(ROWS)), small)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.fault(65)
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_multiprocessing_while_threads_run(small: Path, tmp_path: Path, method: str) -> None:
    with (
        tfr.iter_arrays(tfr.dataset(small, threads=4), batch_size=99, shuffle_buffer=500, seed=0) as batches,
        tfr.open_reader(tfr.dataset(small, threads=2), batch_size=99) as reader,
        tfr.open_random(small) as records,
    ):
        next(batches)
        next(reader)
        fresh = tfr.iter_arrays(tfr.dataset(small, threads=2), batch_size=99, shuffle_buffer=500, seed=0)
        with multiprocessing.get_context(method).Pool(2) as pool:
            jobs = [(str(small), str(tmp_path / f"{i}.tfrecord.gz"), fresh, records) for i in range(4)]
            assert pool.starmap(read_and_write, jobs) == [(ROWS, ROWS, ROWS, ROWS)] * 4
            pool.close()
            pool.join()
        assert sum(len(batch["label"]) for batch in batches) == ROWS - 99
        assert sum(map(len, reader)) == ROWS - 99
    assert sorted(os.listdir(tmp_path)) == [f"{i}.tfrecord.gz" for i in range(4)]


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz", "a@3"])
@pytest.mark.filterwarnings("ignore:.*never closed:ResourceWarning")
def test_abandoned_writers_leave_no_files_and_descriptors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nor does what they spool."""
    spools, target = tmp_path / "spools", tmp_path / "target"
    spools.mkdir()
    target.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spools))
    tfr.open_writer(target / name).write({"x": range(1000)})  # what is imported and opened once
    gc.collect()
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(rounds(200, 10)):
        tfr.open_writer(target / name, threads=2).write({"x": range(1000)})
    gc.collect()
    assert not os.listdir(target)
    assert not os.listdir(spools)
    if descriptors:
        assert len(os.listdir("/proc/self/fd")) <= descriptors
