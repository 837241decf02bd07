"""A process that runs jobs, each in a process forked for it; see `FaultyProcess`.

Reads jobs as lines of JSON and answers each with a line. A job is a function of `JOBS` and its arguments; ``fault``
says which call fails, and how: see `armed`.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import resource
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

import tfrecord_io as tfr
from reading_modes import blocks_of
from tfrecord_io.base import LIMITS
from tfrecord_io.write import writer

# ---- writing

SHARDED: list[dict[str, Any]] = [{"path": "@3"}, {"path": "@*", "max_shard_bytes": 30_000}, {"path": "@5"}]


def table_of(generation: int) -> pa.Table:
    """All rows hold their generation; the number of rows and their sizes differ from those of the one before."""
    rows = 500 + 7 * (generation % 5)
    blobs = [random.Random(row).randbytes(100 + generation % 9) for row in range(rows)]
    return pa.table({"generation": [10_000 + generation] * rows, "blob": blobs})


def write_file(target: str, generation: int, **keywords: Any) -> None:
    tfr.write_tfrecord(table_of(generation), target, **keywords)


def write_shards(target: str, generation: int, **keywords: Any) -> None:
    """Each form twice, so that the names of the shards stay the same, and change."""
    form = {**SHARDED[generation // 2 % 3], **keywords}
    tfr.write_tfrecord(table_of(generation), target + form.pop("path"), mode="overwrite", **form)


def write_records(target: str, generation: int) -> None:
    rows = table_of(generation).to_pylist()
    with tfr.RecordWriter(target) as records:
        for row in rows:
            records.write(tfr.encode_example(row))


def write_batches(target: str, generation: int) -> None:
    with tfr.open_writer(target, table_of(generation).schema, threads=1) as output:
        for batch in table_of(generation).to_batches(max_chunksize=100):
            output.write(batch)


WRITES: dict[str, Callable[[str, int], None]] = {
    "file": lambda target, generation: write_file(target, generation, threads=1),
    "threads": lambda target, generation: write_file(target, generation, threads=4),
    "gzip": lambda target, generation: write_file(target, generation, threads=2, compression="gzip"),
    "index": lambda target, generation: write_file(target, generation, threads=1, write_index=True),
    "shards": lambda target, generation: write_shards(target, generation, threads=1),
    "shards and indexes": lambda target, generation: write_shards(target, generation, threads=1, write_index=True),
    "gzip shards": lambda target, generation: write_shards(target, generation, threads=2, compression="gzip"),
    "RecordWriter": write_records,
    "open_writer": write_batches,
}


@contextmanager
def small_pieces() -> Iterator[None]:
    LIMITS.piece_bytes = 5000
    writer.cpu_count = lambda: 8  # type: ignore[attr-defined]
    yield


def write(form: str, target: str, generation: int, fault: dict[str, Any]) -> dict[str, Any]:
    """Write the generation before this one, unless this is the first, and this one with a fault."""
    with small_pieces():
        if generation > 1:
            WRITES[form](target, generation - 1)
        return armed(fault, lambda: WRITES[form](target, generation))


# ---- reading


def taken(records: Any) -> list[Any]:
    with records:
        return list(records)


def picked(path: str) -> list[Any]:
    with tfr.open_random(path) as records:
        return [records[i] for i in range(0, len(records), 7)]


READS: dict[str, Callable[[str], Any]] = {
    "read_table": lambda path: tfr.read_table(tfr.dataset(path, threads=1)).to_pydict(),
    "threads": lambda path: tfr.read_table(tfr.dataset(path, threads=4)).to_pydict(),
    "open_reader": lambda path: [
        batch.to_pydict() for batch in taken(tfr.open_reader(tfr.dataset(path, threads=2), batch_size=99))
    ],
    "RecordReader": lambda path: taken(tfr.RecordReader(path)),
    "iter_arrays": lambda path: [
        {name: column.tolist() for name, column in batch.items()}
        for batch in taken(tfr.iter_arrays(tfr.dataset(path, threads=2), batch_size=99, shuffle_buffer=200, seed=0))
    ],
    "open_random": picked,
    "count": lambda path: tfr.count(path, check_crc=True),
    "verify": lambda path: [check.records for check in verified(path)],
}


def verified(path: str) -> Any:
    """The report's files; an error in it is raised, so that it is described like others."""
    report = tfr.verify(path)
    for check in report.files:
        if check.error is not None:
            raise check.error
    return report.files


def read(way: str, path: str, fault: dict[str, Any], most: int | None = None) -> dict[str, Any]:
    """Read a file without a fault, and then with a fault at each of its calls, or at some of them, at most `most`.

    ``answers`` has what came of each: whether the data was ``right``, or the error.
    """
    with blocks_of(4000):
        whole = armed({**fault, "at": -1}, lambda: READS[way](path))
        if whole["error"] is not None:
            raise AssertionError(whole["error"]["trace"])
        calls = range(whole["calls"])
        numbers = calls if most is None else sorted(random.Random(way).sample(calls, most))
        answers = [armed({**fault, "at": at}, lambda: READS[way](path)) for at in numbers]
    for answer in answers:
        answer["right"] = answer.pop("value", None) == whole["value"]
    return {"calls": whole["calls"], "answers": answers}


# ---- limits of memory


def address_space() -> int:
    """The bytes of address space that this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def within(room: int, way: str, path: str, target: str) -> dict[str, Any]:
    """Read a file, or write one record as large, with so much more address space; ``afterwards`` without a limit."""
    rows = pa.table({"x": [Path(path).read_bytes()]}) if way.startswith("write") else None
    tasks: dict[str, Callable[[], Any]] = {
        "read_table": lambda: tfr.read_table(tfr.dataset(path, threads=1)).num_rows,
        "read_arrays": lambda: len(tfr.read_arrays(tfr.dataset(path, threads=1))["n"]),
        "write": lambda: tfr.write_tfrecord(rows, target, threads=1).records,
        "write gzip": lambda: tfr.write_tfrecord(rows, target, threads=1, compression="gzip").records,
        "read_table, threads": lambda: tfr.read_table(tfr.dataset(path, threads=4)).num_rows,
        "open_reader, threads": lambda: sum(map(len, tfr.open_reader(tfr.dataset(path, threads=4), batch_size=100))),
        "iter_arrays, threads": lambda: sum(
            len(batch["n"]) for batch in tfr.iter_arrays(tfr.dataset(path, threads=4), batch_size=100)
        ),
        "write gzip, threads": lambda: tfr.write_tfrecord(rows, target, threads=4, compression="gzip").records,
    }
    for name in ("iter_arrays", "open_reader", "read_arrays", "read_table", "write_tfrecord"):
        getattr(tfr, name)  # Python's import without memory may be a SystemError
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (address_space() + room, hard))
    limited = armed({}, tasks[way])
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    content = Path(target).read_bytes() if os.path.exists(target) else b""
    return {**limited, "target": content[:3].decode("latin-1"), "afterwards": armed({}, tasks[way])}


# ---- the memory of reads

READ: dict[str, Callable[[Any], Any]] = {
    "read_table": tfr.read_table,
    "stream": lambda source: streamed(tfr.open_reader(tfr.dataset(source, sample=100))),
    "arrays": lambda source: streamed(tfr.iter_arrays(source, batch_size=8, ragged="object")),
    **{
        f"{lanes} lanes": lambda source, lanes=lanes: streamed(
            tfr.iter_arrays(source, batch_size=64, shuffle_buffer=4096, seed=1, parts=lanes)
        )
        for lanes in (1, 16, 64)
    },
    "kept": lambda source: taken(tfr.open_reader(source, batch_size=8))[-1],
    "record": lambda source: tfr.open_random(source)[0] and None,
    "shuffle": lambda source: tfr.shuffle(source, os.devnull, memory_bytes=1 << 20) and None,
}


def streamed(batches: Any) -> None:
    """Read all batches, of which none is kept."""
    with batches:
        for batch in batches:
            del batch


def status_of(name: str) -> int:
    """A number of bytes that Linux has about this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def peak(work: str, path: str, small: str, threads: int) -> dict[str, Any]:
    """Peak of the bytes that a read allocates, after a read of a small file, and the bytes of the result."""

    def run(path: str) -> Any:
        if work == "convert":
            return tfr.convert(path, f"{path}.tfrecord", target_options={"threads": threads}) and None
        return READ[work](tfr.dataset(path, threads=threads))

    run(small)
    Path("/proc/self/clear_refs").write_text("5")
    before = status_of("VmRSS")
    result = run(path)
    return {"used": status_of("VmHWM") - before, "size": 0 if result is None else result.nbytes}


# ---- what a file is expanded to

EXPANDED: dict[str, Callable[[str], Any]] = {
    "read_table": lambda path: tfr.read_table(path),
    "read_tfrecord": lambda path: tfr.read_tfrecord(path),
    "read_arrays": lambda path: tfr.read_arrays(path),
    "read_metadata": lambda path: tfr.read_metadata(path),
    "one thread": lambda path: tfr.read_table(tfr.dataset(path, threads=1)),
    "open_reader": lambda path: sum(map(len, tfr.open_reader(path))),
    "open_random": lambda path: tfr.open_random(path)[0],
    "iter_arrays": lambda path: list(tfr.iter_arrays(path, batch_size=10)),
    "padded": lambda path: tfr.read_arrays(path, ragged="pad"),
    "padded batches": lambda path: list(tfr.iter_arrays(path, batch_size=50_000, ragged="pad")),
    "masked": lambda path: tfr.read_arrays(path, missing="mask"),
    "masked batches": lambda path: list(tfr.iter_arrays(path, batch_size=50_000, missing="mask")),
    "tensors": lambda path: tfr.read_table(path, schema={"x": tfr.tensor("int32", (None,), encoding="tensor_proto")}),
    "parse_tensor": lambda path: tfr.io.parse_tensor(Path(path).read_bytes()),
    "verify": verified,
    "write_npy": lambda path: tfr.formats.write_npy(path, f"{path}.npy"),
    "write_npz": lambda path: tfr.formats.write_npz(path, f"{path}.npz"),
    "parse_example": lambda path: tfr.io.parse_example(
        list(tfr.RecordReader(path)), {"x": tfr.io.FixedLenSequenceFeature([], "int64", allow_missing=True)}
    ),
    "text": lambda path: tfr.read_table(path, schema={"x": tfr.list_("string", encoding="tensor_proto")}),
}


def most() -> int:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def expanded(path: str, calls: list[str]) -> dict[str, Any]:
    """The error of each call, or None, and the memory that the calls took at most."""
    results: dict[str, Any] = {}
    import_all()  # a forked process has the pages of libraries that it has used
    before = most()
    warnings.simplefilter("ignore")
    for call in calls:
        try:
            EXPANDED[call](path)
            results[call] = None
        except tfr.TFRecordError as error:
            results[call] = [str(error), error.feature, error.record]
    return {"results": results, "memory": most() - before}


# ---- jobs


def armed(fault: dict[str, Any], call: Callable[[], Any]) -> dict[str, Any]:
    """Result of a call while one call of the C library for files in ``folder`` fails.

    ``kinds`` are counted; that with the number ``at`` gets ``action``: SIGKILL, half of its bytes, the error
    ``number``. With ``lasting``, all later ones get it too. No call reads more than ``most`` bytes.
    """
    library = ctypes.CDLL(None)
    arm = getattr(library, "fault_arm", None)
    answer: dict[str, Any] = {"error": None}
    if arm is not None and fault:
        library.fault_name.restype = library.fault_path.restype = ctypes.c_char_p
        library.fault_disarm.restype = ctypes.c_long
        folder = fault["folder"].encode()
        arm(
            folder,
            fault["kinds"],
            ctypes.c_long(fault["at"]),
            fault["action"],
            fault.get("number", 0),
            fault.get("lasting", 0),
            ctypes.c_long(fault.get("most", 0)),
        )
    try:
        answer["value"] = repr(call())
    except Exception as error:
        answer["error"] = described(error)
    if arm is not None and fault:
        answer["calls"] = library.fault_disarm()
        answer["call"], answer["path"] = library.fault_name().decode(), library.fault_path().decode()
    return answer


def described(error: BaseException) -> dict[str, Any]:
    names = [kind.__name__ for kind in type(error).__mro__]
    return {
        "class": names[0],
        "classes": names,
        "errno": getattr(error, "errno", None),
        "filename": getattr(error, "filename", None),
        "text": str(error),
        "notes": getattr(error, "__notes__", []),
        "trace": "".join(traceback.format_exception(error)),
    }


JOBS: dict[str, Callable[..., dict[str, Any]]] = {
    "write": write,
    "read": read,
    "within": within,
    "peak": peak,
    "expanded": expanded,
}


def run(job: dict[str, Any]) -> dict[str, Any]:
    receiver, sender = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.close(receiver)
            os.environ.update(job.pop("environment", {}))
            answer = json.dumps(JOBS[job.pop("job")](**job)).encode()
            with open(sender, "wb") as pipe:
                pipe.write(answer)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as pipe:
        content = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return {"killed": status == -9, "status": status, **(json.loads(content) if content else {})}


def import_all() -> None:
    """Write and read once, so that all that is imported late is there when processes are forked; without threads."""
    path = f"{sys.argv[1]}/a.tfrecord"
    write_file(path, 0, threads=1)
    tfr.read_table(tfr.dataset(path, threads=1)).to_pydict()
    taken(tfr.RecordReader(path))


def main() -> None:
    """Answer each line of standard input, until it ends."""
    for line in sys.stdin:
        request = json.loads(line)
        if not request:
            import_all()
            gc.freeze()  # no process looks for garbage in what all share
        print(json.dumps(run(request) if request else {}), flush=True)
