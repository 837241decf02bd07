"""Whatever exception leaves a writing call: the target is what it was, or the message says that it is published."""

from __future__ import annotations

import errno
import itertools
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.bytes.format.known_formats import FORMATS
from tfrecord_io.write.distributed import DistributedWriter
from transfers import convert_flat

DOUBLES = pa.table({"x": [0.1, 0.2, 0.3, 0.4]})
INTEGERS = pa.table({"x": [1, 2, 3, 4]})
EMPTY = pa.table({"x": pa.array([], pa.int32()), "label": pa.array([], pa.string())})
MESSAGES = ("published", "the new dataset can be read")  # in those of errors after which the new records are there


class BatchesFail(Exception):
    """Of the data that is written."""


def write_in_steps(data: pa.Table, target: str, **keywords: Any) -> None:
    with tfr.open_writer(target, **keywords) as writer:
        for batch in data.to_batches(max_chunksize=1) or [data]:
            writer.write(batch)


def write_and_close(data: pa.Table, target: str, **keywords: Any) -> None:
    writer = tfr.open_writer(target, **keywords)
    writer.write(data)
    writer.close()


def write_in_tasks(data: pa.Table, target: str, **keywords: Any) -> None:
    with DistributedWriter.begin(target, WriteOptions(**keywords)) as writer:
        writer.commit([writer.write_part(task, [data.slice(2 * task, 2)]) for task in range(2)])


def failing(data: pa.Table, fails: bool) -> Any:
    """The batches of a table, after which comes an error."""

    def batches() -> Iterator[pa.RecordBatch]:
        yield from data.to_batches(max_chunksize=1)
        if fails:
            raise BatchesFail

    return pa.RecordBatchReader.from_batches(data.schema, batches())


WRITERS: dict[str, Callable[..., Any]] = {
    "write_tfrecord": tfr.write_tfrecord,
    "batches": lambda data, target, **keywords: tfr.write_tfrecord(failing(data, False), target, **keywords),
    "failing batches": lambda data, target, **keywords: tfr.write_tfrecord(failing(data, True), target, **keywords),
    "pandas": lambda data, target, **keywords: tfr.write_tfrecord(data.to_pandas(), target, **keywords),
    "open_writer": write_in_steps,
    "close": write_and_close,
    "tasks": write_in_tasks,
}
FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    "file": ("one.tfrecord", {}),
    "compressed": ("one.tfrecord.gz", {}),
    "index": ("one.tfrecord", {"write_index": True}),
    "shards": ("many@2", {"mode": "overwrite"}),
    "shards of a size": ("many@*", {"mode": "overwrite", "max_shard_bytes": 60}),
    "indexed shards": ("many@2", {"mode": "overwrite", "write_index": True}),
    "folder": ("folder/", {"mode": "overwrite"}),
}


def contents() -> dict[str, bytes]:
    """The files that readers read; an index is removed before its file is replaced."""
    found = [path for path in sorted(Path().rglob("*")) if path.is_file() and path.suffix != ".index"]
    return {str(path): path.read_bytes() for path in found if path.name[0] not in "._" or "_MANIFEST" in path.name}


def left_over() -> list[str]:
    return [str(path) for path in Path().rglob("[._]*") if path.suffix in (".tmp", ".staged")]


@contextmanager
def working_in(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


@contextmanager
def failing_disk(call: str | None, number: int, lasting: bool) -> Iterator[None]:
    """From its call `number` on, or only then, a function of the system fails."""
    if call is None:
        yield
        return
    real, numbers = getattr(os, call), itertools.count()

    def fails(*arguments: Any, **keywords: Any) -> Any:
        now = next(numbers)
        if now == number or (lasting and now > number):
            raise OSError(errno.EIO, "Input/output error")
        return real(*arguments, **keywords)

    with mock.patch.object(os, call, fails):
        yield


def checked(write: Callable[[], Any]) -> Exception | None:
    """Write, where warnings are errors; after an exception all files are as before, or its message says so."""
    before, error = contents(), None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            write()
    except Exception as raised:
        error = raised
    if error is not None and not says_published(error):
        assert contents() == before, error
    return error


def says_published(error: Exception) -> bool:
    text = "; ".join([str(error), *getattr(error, "__notes__", [])])
    return any(message in text for message in MESSAGES)


def write_old(target: str, **keywords: Any) -> None:
    name = target if "max_shard_bytes" in keywords else target.replace("@*", "@1")
    tfr.write_tfrecord({"x": [1, 2]}, name, **{**keywords, "mode": "overwrite"})


FAULTS = st.tuples(
    st.sampled_from([None, None, "write", "fsync", "replace", "open", "unlink"]), st.integers(0, 12), st.booleans()
)


@settings(max_examples=rounds(300))
@given(
    name=st.sampled_from([*WRITERS]),
    form=st.sampled_from([*FORMS]),
    data=st.sampled_from([DOUBLES, EMPTY, INTEGERS]),
    exists=st.booleans(),
    fault=FAULTS,
    threads=st.sampled_from([1, 2]),
)
def test_of_tables(
    name: str, form: str, data: pa.Table, exists: bool, fault: tuple[str | None, int, bool], threads: int
) -> None:
    target, keywords = FORMS[form]
    if name == "tasks":
        target, keywords = ("many@*" if "@" in target else "folder/"), {"mode": "overwrite"}
    with tempfile.TemporaryDirectory() as folder, working_in(folder):
        if exists:
            write_old(target, **keywords)
        with failing_disk(*fault):
            error = checked(lambda: WRITERS[name](data, target, threads=threads, **keywords))
        if data is INTEGERS and (error is None or says_published(error)):
            assert tfr.read_table(target).sort_by("x") == INTEGERS
        if fault[0] is None:
            is_file = target.startswith("one")
            expected: Any = BatchesFail if name == "failing batches" else tfr.errors.PrecisionWarning
            if data is EMPTY and name != "failing batches":
                expected = tfr.errors.SchemaWarning if is_file else type(None)
            elif data is INTEGERS and name != "failing batches":
                expected = type(None)
            assert isinstance(error, expected)
            assert left_over() == []


def make_source(name: str) -> None:
    stem, _, suffix = name.partition(".")
    table = EMPTY if stem == "empty" else DOUBLES
    if stem == "damaged":
        tfr.write_tfrecord({"x": [1, 2, 3]}, name)
        content = bytearray(Path(name).read_bytes())
        content[-20] ^= 1
        Path(name).write_bytes(content)
    elif suffix == "npy":
        np.save(name, table["x"].to_numpy())
    elif suffix == "csv":
        table.to_pandas().to_csv(name, index=False)
    elif suffix == "parquet":
        pq.write_table(table, name)
    elif stem == "empty":
        tfr.write_tfrecord(EMPTY, f"{name}/")  # its manifest keeps the schema
    else:
        tfr.write_tfrecord(table, name, float64="round")


FILES = [f"x{row.suffixes[0]}" for row in FORMATS.own if row.is_target and row.suffixes]
CONVERSIONS = {
    **{("doubles.npy", target): {} for target in ("one.tfrecord", "one.tfrecord.gz", "many@2", "folder/")},
    **{("doubles.csv", target): {} for target in ("one.tfrecord", "many@2", "folder/")},
    **{("doubles.parquet", target): {"resume": True} for target in ("many@*", "folder/")},
    **{("damaged.tfrecord", target): {"on_error": "skip"} for target in ("one.tfrecord", "many@2", "a.csv.gz", *FILES)},
}


@settings(max_examples=rounds(300))
@given(conversion=st.sampled_from([*CONVERSIONS]), by_command=st.booleans(), exists=st.booleans(), fault=FAULTS)
def test_of_conversions(
    conversion: tuple[str, str], by_command: bool, exists: bool, fault: tuple[str | None, int, bool]
) -> None:
    (source, target), keywords = conversion, {**CONVERSIONS[conversion]}
    is_file = "@" not in target and "/" not in target
    with tempfile.TemporaryDirectory() as folder, working_in(folder):
        make_source(source)
        if exists and is_file:
            Path(target).write_bytes(b"what was there")
        elif exists:
            write_old(target)
            keywords["mode"] = "overwrite"
        with failing_disk(*fault):
            if by_command:
                options = [f"--{name.replace('_', '-')}" for name in keywords if name != "on_error"]
                options += ["--on-error", "skip"] if "on_error" in keywords else []
                error = checked(lambda: run_command("convert", source, target, *options))
            else:
                error = checked(lambda: convert_flat(source, target, **keywords))
        if fault[0] is None:
            expected = tfr.errors.PrecisionWarning | tfr.errors.DamagedDataWarning | CommandFails
            is_folder = exists and target.endswith(".zarr")  # but a file is there
            assert isinstance(error, expected | FileExistsError if is_folder else expected)
            assert left_over() == [] or "resume" in keywords


class CommandFails(Exception):
    """With what it printed."""


def run_command(*arguments: str) -> None:
    result = CliRunner().invoke(command, arguments)
    if result.exit_code:
        raise CommandFails(result.output)


COPIES: dict[str, Callable[[str], Any]] = {
    "merge": lambda source: tfr.merge(source, "out/one.tfrecord"),
    "merge to shards": lambda source: tfr.merge(source, "out/many@2"),
    "merge folders": lambda source: tfr.merge(source, "out/", partitions="folders", mode="overwrite"),
    "shuffle": lambda source: tfr.shuffle(source, "out/one.tfrecord"),
    "split": lambda source: tfr.split(source, "out/many", shards=3, mode="overwrite"),
    "split at random": lambda source: tfr.split(source, "out", fractions=[0.5, 0.5]),
    "split to shards": lambda source: tfr.split(source, "out", fractions=[0.5, 0.5], shards=2, mode="overwrite"),
    "split by": lambda source: tfr.split(source, "out", by="k"),
    "sample": lambda source: tfr.sample(source, "out/one.tfrecord", n=1),
    "sample nothing": lambda source: tfr.sample(source, "out/one.tfrecord", n=0),
    "salvage": lambda source: tfr.salvage(source, "out/", mode="overwrite"),
}


@settings(max_examples=rounds(160))
@given(
    name=st.sampled_from([*COPIES]),
    rows=st.sampled_from([0, 1, 5]),
    exists=st.booleans(),
    damaged=st.booleans(),
    fault=FAULTS,
)
def test_of_copies(name: str, rows: int, exists: bool, damaged: bool, fault: tuple[str | None, int, bool]) -> None:
    with tempfile.TemporaryDirectory() as folder, working_in(folder):
        for k in (1, 2):
            part = pa.table({"x": pa.array(range(rows), pa.int32())})
            tfr.write_tfrecord(part, f"in/k={k}/")
        os.mkdir("out")
        if exists:
            COPIES[name]("in")
        if damaged and rows:
            path = Path("in/k=2/part-00000-of-00001.tfrecord")
            path.write_bytes(path.read_bytes()[:-1])
        with failing_disk(*fault):
            error = checked(lambda: COPIES[name]("in"))
        if fault[0] is None:
            assert left_over() == []
            if damaged and rows and name != "salvage":
                assert error is not None
