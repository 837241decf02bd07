"""Objects that hold files or threads: shared by threads, used after a fork, pickled and copied."""

from __future__ import annotations

import copy
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.base.closing import cached_property
from tfrecord_io.store.write.atomic import open_output
from tfrecord_io.write.frame_sink import FrameSink

THREADS = 8
NEEDS_FORK = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
WRITERS: dict[str, Callable[[str], Any]] = {
    "table": tfr.open_writer,
    "compressed": lambda path: tfr.open_writer(f"{path}.gz", threads=2),
    "shards": lambda path: tfr.open_writer(f"{path}@3"),
    "shards by size": lambda path: tfr.open_writer(path, max_shard_bytes=4096),
    "records": tfr.RecordWriter,
    "compressed records": lambda path: tfr.RecordWriter(f"{path}.gz"),
}
READERS: dict[str, Callable[[str], Any]] = {
    "reader": lambda path: tfr.open_reader(tfr.dataset(path, threads=1), batch_size=1000),
    "reader, two threads": lambda path: tfr.open_reader(tfr.dataset(path, threads=2), batch_size=1000),
    "reader, four threads": lambda path: tfr.open_reader(tfr.dataset(path, threads=4), batch_size=1000),
    "records": tfr.RecordReader,
    "arrays": lambda path: tfr.iter_arrays(tfr.dataset(path, threads=2), batch_size=1000),
    "array stream": lambda path: tfr.formats.open_npz(path.replace(".tfrecord", ".npz")),
}
INTERNAL: dict[str, Callable[[str], Any]] = {"sink": FrameSink, "output": open_output}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Numbers that several blocks hold."""
    tfr.write_tfrecord({"n": np.arange(200_000)}, tmp_path / "in.tfrecord")
    np.savez(tmp_path / "in.npz", n=np.arange(200_000))
    return f"{tmp_path}/in.tfrecord"


def in_threads(work: Callable[[int], None]) -> None:
    """Run `work` with 0, 1, … in as many threads; raise the first of their errors."""
    errors: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def numbers_of(item: Any) -> list[int]:
    """The numbers in what a reader yields."""
    if isinstance(item, bytes):
        return [int(tfr.io.parse_example(item, {"n": tfr.io.FixedLenFeature([], "int64")})["n"])]
    values: list[int] = (item["n"] if isinstance(item, dict) else item.column("n").to_numpy()).tolist()
    return values


# Threads --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WRITERS)
def test_threads_can_share_a_writer(tmp_path: Path, kind: str) -> None:
    calls, rows = 60, 50

    def write(thread: int) -> None:
        for call in range(calls):
            first = (thread * calls + call) * rows
            if isinstance(writer, tfr.RecordWriter):
                for number in range(first, first + rows):
                    writer.write(b"%d" % number * (1 + number % 50))
            else:
                writer.write({"n": np.arange(first, first + rows)})

    with WRITERS[kind](f"{tmp_path}/out.tfrecord") as writer:
        in_threads(write)
    files = sorted(p for p in map(str, tmp_path.iterdir()) if "MANIFEST" not in p)
    if isinstance(writer, tfr.RecordWriter):
        expected = Counter(b"%d" % number * (1 + number % 50) for number in range(THREADS * calls * rows))
        assert Counter(tfr.RecordReader(files)) == expected
        return
    numbers = tfr.read_table(files)["n"].to_numpy()
    np.testing.assert_array_equal(np.sort(numbers), np.arange(THREADS * calls * rows))
    assert writer.report.records == len(numbers)
    # The rows of a call stay together.
    assert (numbers.reshape(-1, rows) - np.arange(rows) == numbers[::rows, None]).all()


@pytest.mark.parametrize("kind", READERS)
def test_threads_that_share_a_reader_get_different_items(path: str, kind: str) -> None:
    items: list[Any] = []

    def read(thread: int) -> None:
        while (item := next(reader, None)) is not None:
            items.append(item)

    with READERS[kind](path) as reader:
        in_threads(read)
    seen = sorted(n for item in items for n in ([] if isinstance(item, bytes) else numbers_of(item)))
    if kind == "records":
        assert Counter(items) == Counter(tfr.RecordReader(path))
    else:
        assert seen == list(range(200_000))


def test_a_writer_refuses_to_be_written_to_by_the_data_it_is_writing(tmp_path: Path) -> None:
    class Nested:
        def __init__(self, writer: Any) -> None:
            self.writer = writer

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            self.writer.write({"n": [1]})
            raise AssertionError("the nested write must raise")

    with tfr.open_writer(tmp_path / "out.tfrecord") as writer:
        with pytest.raises(RuntimeError, match="writes to its own writer"):
            writer.write(Nested(writer))
        writer.write({"n": [2]})
    assert tfr.read_arrays(tmp_path / "out.tfrecord")["n"].tolist() == [2]


# Forks ----------------------------------------------------------------------------------------------------------------


def in_a_fork(work: Callable[[], None]) -> None:
    """Run `work` in a forked process, which must end by itself, without an error, within 30 seconds."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        text = b"ok"
        try:
            signal.alarm(30)
            work()
        except BaseException as error:
            text = repr(error).encode()
        os.write(into, text)
        os._exit(0)
    os.close(into)
    with open(out, "rb") as answer:
        assert answer.read() == b"ok"
    assert os.waitpid(child, 0)[1] == 0


@NEEDS_FORK
@pytest.mark.parametrize("kind", READERS)
def test_a_forked_process_cannot_use_a_reader_and_does_not_disturb_it(path: str, kind: str) -> None:
    def use() -> None:
        with pytest.raises(RuntimeError, match="was opened in another process; open one in each process"):
            next(reader)
        reader.close()
        with READERS[kind](path) as own:
            next(own)

    with READERS[kind](path) as reader:
        items = [next(reader)]
        in_a_fork(use)
        items.extend(reader)
    with READERS[kind](path) as reader:
        assert [numbers_of(a) for a in items[:100]] == [numbers_of(a) for a in islice(reader, 100)]


@NEEDS_FORK
@pytest.mark.parametrize("kind", WRITERS)
def test_a_forked_process_cannot_use_a_writer_and_does_not_disturb_it(tmp_path: Path, kind: str) -> None:
    data: Any = b"x" if "records" in kind else {"n": [1]}

    def use() -> None:
        message = "was opened in another process; open one in each process"
        with pytest.raises(RuntimeError, match=message):
            writer.write(data)
        with pytest.raises(RuntimeError, match=message):
            writer.close()
        with pytest.raises(ZeroDivisionError), writer:  # an error in the block does not discard the parent's data
            raise ZeroDivisionError

    with WRITERS[kind](f"{tmp_path}/out.tfrecord") as writer:
        writer.write(data)
        in_a_fork(use)
        writer.write(data)
    files = [p for p in map(str, tmp_path.iterdir()) if "MANIFEST" not in p]
    assert tfr.count(files) == 2


@NEEDS_FORK
def test_an_iterator_that_has_not_begun_can_be_used_in_a_forked_process(path: str) -> None:
    batches = tfr.iter_arrays(tfr.dataset(path, threads=2), batch_size=1000)

    def use() -> None:
        assert sum(len(batch["n"]) for batch in batches) == 200_000

    in_a_fork(use)
    use()


# Pickling and copying -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", [*WRITERS, *INTERNAL])
def test_a_writer_can_be_neither_pickled_nor_copied(tmp_path: Path, kind: str, duplicate: Callable[[Any], Any]) -> None:
    writer = {**WRITERS, **INTERNAL}[kind](f"{tmp_path}/out.tfrecord")
    with pytest.raises(TypeError, match=r"cannot pickle or copy a '.*': it holds an open file, a thread or a lock"):
        duplicate(writer)
    writer.close() if kind in WRITERS else writer.commit()


@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", [kind for kind in READERS if kind != "arrays"])
def test_a_reader_can_be_neither_pickled_nor_copied(path: str, kind: str, duplicate: Callable[[Any], Any]) -> None:
    with READERS[kind](path) as reader:
        next(reader)
        with pytest.raises(TypeError, match=r"cannot pickle or copy a '.*': it holds an open file"):
            duplicate(reader)
        assert next(reader)


def test_objects_that_outlive_the_modules_end_silently(tmp_path: Path) -> None:
    """As when a library keeps modules and objects alive until the interpreter has ended."""
    for name in ("a.tfrecord", "b.tfrecord.gz"):
        tfr.write_tfrecord({"a": range(1000)}, tmp_path / name)
    program = """
import builtins, ctypes, sys
import tfrecord_io as tfr
a, b, c = sys.argv[1:]
kept = builtins.kept = [tfr.open_random(a), tfr.open_reader([a, b], batch_size=10), tfr.open_writer(c)]
kept.append(iter(tfr.iter_arrays([a, b], batch_size=10)))
kept[0][1], next(kept[1]), next(kept[3]), kept[2].write({"a": [1]})
for module in list(sys.modules.values()):
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
"""
    paths = [str(tmp_path / name) for name in ("a.tfrecord", "b.tfrecord.gz", "c.tfrecord")]
    done = subprocess.run([sys.executable, "-c", program, *paths], capture_output=True, text=True, check=True)
    assert not done.stderr
    assert not (tmp_path / "c.tfrecord").exists()


@pytest.mark.parametrize("kind", ["Reader", "ArrayStream", "ArrayIterator", "RandomAccess", "Writer"])
def test_close_has_its_own_help_and_signature(kind: str) -> None:
    close = getattr(tfr.typing, kind).close
    assert inspect.getdoc(close)
    assert [*inspect.signature(close).parameters] == ["self"]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # it has threads, and forks
def test_a_process_that_is_forked_while_a_thread_computes_a_value_computes_it_itself() -> None:
    begun, ended = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self) -> int:
            begun.set()
            ended.wait(60)
            return 1

    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    begun.wait()
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        ended.set()
        os._exit(Slow().value - 1)
    ended.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_threads_that_compute_a_value_at_once_get_the_same() -> None:
    both = threading.Barrier(2)

    class Meeting:
        @cached_property
        def value(self) -> object:
            both.wait(60)
            return object()

    meeting, found = Meeting(), list[object]()
    threads = [threading.Thread(target=lambda: found.append(meeting.value)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is found[1] is meeting.value
