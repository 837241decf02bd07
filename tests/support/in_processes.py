"""Functions that tests run in other processes; a spawned process imports them from this module."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import time
from collections.abc import Callable
from typing import Any

if "forkserver" in multiprocessing.get_all_start_methods():
    OTHERS = multiprocessing.get_context("forkserver")
    OTHERS.set_forkserver_preload(["tfrecord_io.apps.api", "tfrecord_io.store.write.atomic_remote", "s3fs"])
else:
    OTHERS = multiprocessing.get_context("spawn")


def in_other_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function of this module in a fresh process, and return its result."""
    with OTHERS.Pool(1) as pool:
        return pool.apply(function, arguments)


def in_killed_process(function: Callable[..., Any], *arguments: Any) -> None:
    """Run a function of this module that kills its process, in a fresh process."""
    process = OTHERS.Process(target=function, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def _without_planning() -> None:
    """Fail if a schema is inferred or resolved in this process."""
    from tfrecord_io.read import resolve_schema

    def refuse(*_: Any) -> None:
        raise AssertionError("the schema was planned again")

    resolve_schema._Planner.plan = refuse  # type: ignore[assignment,method-assign]


def record_of(pickled: bytes, number: int) -> dict[str, Any]:
    """A record of a pickled RandomAccess."""
    _without_planning()
    record: dict[str, Any] = pickle.loads(pickled)[number]
    return record


def batches_of(pickled: bytes) -> list[list[int]]:
    """The column ``x`` of the batches of a pickled ArrayIterator."""
    _without_planning()
    return [batch["x"].tolist() for batch in pickle.loads(pickled)]


def table_of_scan(pickled: bytes) -> list[dict[str, Any]]:
    """The rows that a pickled scan reads."""
    from tfrecord_io.read.scan_rows import ScanRows

    rows: list[dict[str, Any]] = ScanRows(pickle.loads(pickled)).read().to_pylist()
    return rows


def sum_of(records: Any, numbers: list[int]) -> int:
    """The sum of the ids of some records."""
    return sum(records[number]["id"] for number in numbers)


def first_of(pickled: bytes) -> int:
    """The id of the first record of what was pickled."""
    return int(pickle.loads(pickled)[0]["id"])


def read_and_write(path: str, target: str, batches: Any, records: Any) -> tuple[int, int, int, int]:
    """Read a file in several ways, by objects of another process too, and copy it; the numbers of records."""
    import tfrecord_io as tfr

    with tfr.open_reader(tfr.dataset(path, threads=2)) as reader:
        report = tfr.write_tfrecord(reader, target, threads=2)
    iterated = sum(
        len(batch["label"])
        for batch in tfr.iter_arrays(tfr.dataset(path, threads=2), batch_size=99, shuffle_buffer=500)
    )
    return report.records, iterated, sum(len(batch["label"]) for batch in batches), records[:].num_rows


def rows_of_piece(pickled: bytes) -> list[dict[str, Any]]:
    """The rows that a pickled piece of a dataset reads."""
    _without_planning()
    rows: list[dict[str, Any]] = pickle.loads(pickled).read().to_pylist()
    return rows


def parts_of_tasks(pickled: bytes, tasks: range) -> list[bytes]:
    """Run tasks of a pickled DistributedWriter; return the pickled parts that they wrote."""
    return [pickle.dumps(pickle.loads(pickled).write_part(task, [{"n": [task]}, {"n": [task]}])) for task in tasks]


def die_in_task(pickled: bytes, task: int) -> None:
    """Kill this process while it writes the part of a task of a pickled DistributedWriter, whose upload has begun."""
    from tfrecord_io.store.write.atomic_remote import unfinished_uploads

    writer = pickle.loads(pickled)
    fs, directory = writer.target.output.location(writer.target.storage)

    def tables() -> Any:
        for _ in range(16):
            yield {"n": [task], "day": [0], "blob": [os.urandom(1 << 20)]}
        while not any(unfinished_uploads(fs, directory)):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGKILL)

    writer.write_part(task, tables())


def rows_of_keys(records: Any, keys: list[Any]) -> list[Any]:
    """A number of each record that a RandomAccess finds by its key."""
    return [records.lookup(key)["number"] for key in keys]


def put_epochs(stream: Any, workers: int, answers: Any) -> None:
    """Put the rows of two epochs of a stream of torch in a queue, as a rank that trains."""
    from torch.utils.data import DataLoader

    context = {"multiprocessing_context": "fork"} if workers else {}
    loader = DataLoader(stream, batch_size=None, num_workers=workers, **context)  # type: ignore[arg-type]
    answers.put([[n for batch in loader for n in batch["x"].tolist()] for _ in range(2)])
