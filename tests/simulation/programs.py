"""Programs: what each actor calls, how their calls change a dataset, and what must hold at the end."""

from __future__ import annotations

import errno
import io
import json
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from fsspec import AbstractFileSystem
from fsspec.implementations.memory import MemoryFile, MemoryFileSystem
from model import Call, Finding, Version, explain, explain_both, overlapping
from scheduler import Actor, Death, Scheduler
from worlds import World

import tfrecord_io as tfr
from messages import published_by
from reading import read_by
from tfrecord_io.base import LIMITS, StorageOptions
from tfrecord_io.base.closing import Unconfirmed
from tfrecord_io.base.options.limits import TunedLimits
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.bytes.format.framing import crc32c
from tfrecord_io.read.file_indexes import check_indexes
from tfrecord_io.store import clean
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths import manifest_parts
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.paths.manifest import parse_manifest
from tfrecord_io.store.paths.manifest_files import SIZES
from tfrecord_io.store.write import atomic_remote
from tfrecord_io.store.write.publication import place_of
from tfrecord_io.typing import DeleteReport
from tfrecord_io.write.distributed import DistributedWriter

_ALL = timedelta(days=-40_000)  # older than the end of all clocks
_RETRIES = 2
_INCOMPLETE = ("the dataset is incomplete", "the mark of a shard that a writer is removing")  # of a new dataset
_NO_MATCH = "index does not match"
_TWO = "has 2 families of shards"  # of a path that does not say which dataset it means
_BESIDE = "b"  # the name of another dataset in the directory
_NOTE = "note-"  # keys of metadata, before the number of the call that added it
_FIRST_NOTE = 1000  # marks of notes are below those of transactions
_PARTS = 4  # files in a part of a manifest, unless a program says otherwise
_IN_PARTS = TunedLimits()
_IN_PARTS.s3_part_bytes = 100  # a shard has more bytes

Batch = tuple[int, ...]


def batch(number: int, rows: int) -> Batch:
    """The rows of the call with this number, of which no other has one."""
    return tuple(number * 10 + i for i in range(rows))


@lru_cache(maxsize=2000)
def table(rows: Batch, form: str = "", more: str = "") -> pa.Table:
    """The rows, with a column of folders, and one that the dataset may not have."""
    columns: dict[str, list[Any]] = {"x": list(rows), "y": [7 * x for x in rows]}
    if form == "folders":
        columns["p"] = [x % 2 for x in rows]
    if more:
        columns[more] = [1.5] * len(rows)
    return pa.table(columns)


@dataclass(frozen=True)
class Step:
    """One call of a program: its name in `WRITERS` or `READERS`, and a number for its rows.

    `stem` is the name of the dataset in the directory, as of ``b.append:1``; "": the path is that of the directory.
    """

    name: str
    number: int = 0
    stem: str = ""

    def __str__(self) -> str:
        named = f"{self.stem}.{self.name}" if self.stem else self.name
        return f"{named}:{self.number}" if self.number else named


def _rows_of(step: Step) -> Batch:
    return batch(step.number, 1 + step.number % 3)


@dataclass(frozen=True)
class Program:
    """The calls of each actor, in a kind of world, on a form of dataset.

    As a text: ``s3 grown append:1 table | append:2``. What precedes ``;`` is done before the actors begin. With
    ``grown+parts``, manifests of more than one file have parts of up to four, with ``grown+parts1`` of one. Calls as
    ``b.append:1`` are those of another dataset, named ``b``, in the same directory, whose own one is named ``part``.
    """

    world: str
    form: str
    before: tuple[Step, ...]
    actors: tuple[tuple[Step, ...], ...]
    retries: bool = False
    parts: int = 0  # files in a part of the manifest, at most; 0: it has no parts

    def __str__(self) -> str:
        actors = " | ".join(" ".join(map(str, steps)) for steps in self.actors)
        before = "".join(f"{step} " for step in self.before)
        flags = "+retries" * self.retries + {_PARTS: "+parts", 0: ""}.get(self.parts, f"+parts{self.parts}")
        return f"{self.world} {self.form}{flags} {before}; {actors}"

    @property
    def steps(self) -> list[Step]:
        """All calls."""
        return [*self.before, *(step for steps in self.actors for step in steps)]

    @property
    def has_beside(self) -> bool:
        """Whether there may be another dataset in the directory."""
        return any(step.stem == _BESIDE for step in self.steps)

    @staticmethod
    def parse(text: str) -> Program:
        head, _, tail = text.partition(";")
        world, form, *before = head.split()
        form, *flags = form.split("+")
        actors = tuple(tuple(map(_step, each.split())) for each in tail.split("|"))
        parts = next((int(flag[5:] or _PARTS) for flag in flags if flag.startswith("parts")), 0)
        return Program(world, form, tuple(map(_step, before)), actors, "retries" in flags, parts)


def _step(text: str) -> Step:
    name, _, number = text.partition(":")
    stem, _, name = name.rpartition(".")
    return Step(name, int(number or 0), stem)


# ---- calls that write: how each is made, and its effect on a version


@dataclass(frozen=True)
class Target:
    """The dataset of a program, as one actor reaches it."""

    world: World
    form: str
    options: dict[str, Any]
    actor: int = -1
    others: dict[str, Any] = field(default_factory=dict)  # as of another store
    below: str = "d/"
    has_parts: bool = False
    stem: str = ""  # the name of the dataset, if its path has it

    @property
    def path(self) -> str:
        """Its directory."""
        return self.world.path[:-2] + self.below

    def written(self, rows: Batch) -> str:
        """As a call writes it with these rows: in the form with numbered names, to one, two or three shards."""
        stem = "a" if self.form == "fixed" else self.stem
        return self.path + (f"{stem}@{1 + rows[0] // 10 % 3}" if stem else "")

    def copy(self) -> str:
        """A new file next to the dataset."""
        self.world.copies += 1
        return f"{self.world.path[:-2]}copy-{self.world.copies}.tfrecord"

    def own(self, name: str) -> str:
        """Where this actor keeps what it makes of the dataset."""
        return f"{self.world.path[:-2]}{name}-{self.actor + 1}/"

    def source(self, rows: Batch) -> Target:
        """A dataset of these rows next to the other one, of which `Run` writes those that a program copies."""
        return replace(self, below=f"source-{rows[0]}/", stem="")

    @property
    def read(self) -> str:
        return self.path + ("a" if self.form == "fixed" else self.stem)

    @property
    def shards(self) -> str:
        """The path of all shards, which are in one directory but where they are in folders of columns."""
        return self.read if self.form == "folders" else f"{self.path}{self.of_shards}@*"

    @property
    def of_shards(self) -> str:
        """The name with which those of its shards begin."""
        return "a" if self.form == "fixed" else self.stem or FileName.DIRECTORY_STEM

    def write(self, rows: Batch, more: str = "", *, has_rows: bool = True, **keywords: Any) -> None:
        if self.form == "folders":
            keywords["partition_by"] = ["p"]
        data = table(rows, self.form, more)
        tfr.write_tfrecord(data if has_rows else data[:0], self.written(rows), **keywords, **self.options)

    def note(self, rows: Batch) -> None:
        """Append no rows, and a note of the number of the call."""
        self.write(rows, mode="append", metadata={f"{_NOTE}{rows[0] // 10}": ""}, has_rows=False)

    def write_source(self, rows: Batch) -> None:
        """Write a dataset to copy from: of folders in a bucket, a third are adopted, with numbered names in each."""
        if self.form != "folders" or rows[0] // 10 % 3 or self.world.has_locks:
            return self.write(rows)
        for part in _batches(self.form, rows):
            tfr.write_tfrecord(table(part), f"{self.path}p={part[0] % 2}/part-00000-of-00001", **self.options)
        tfr.adopt(self.path, **self.options)
        return None


def _batches(form: str, rows: Batch) -> tuple[Batch, ...]:
    if form != "folders":
        return (rows,)
    return tuple(part for part in (tuple(x for x in rows if x % 2 == p) for p in (0, 1)) if part)


Effect = Callable[[Version], list[Version]]


@dataclass(frozen=True)
class WriterKind:
    """How a call is made, and which versions it makes of one; `changes`: open readers may not go on."""

    call: Callable[[Target, Batch], Any]
    effect: Callable[[str, Batch], Effect]
    changes: bool
    rows: bool = True


def _appended(form: str, rows: Batch) -> Effect:
    return lambda version: [((version or ()) + _batches(form, rows))]


def _replaced(form: str, rows: Batch) -> Effect:
    return lambda version: [_batches(form, rows)]


def _created(form: str, rows: Batch) -> Effect:
    return lambda version: [] if version else [_batches(form, rows)]


def _replaced_folders(form: str, rows: Batch) -> Effect:
    folders = {x % 2 for x in rows}

    def effect(version: Version) -> list[Version]:
        return [tuple(b for b in version or () if b[0] < 0 or b[0] % 2 not in folders) + _batches(form, rows)]

    return effect


def _transacted(form: str, rows: Batch) -> Effect:
    """The rows are appended unless this number of the job, or a later one, is in, which a batch of its own tells."""
    number = -(rows[0] // 10)

    def effect(version: Version) -> list[Version]:
        before = [b for b in version or () if -_FIRST_NOTE < b[0] < 0]
        if any(b[0] <= number for b in before):
            return [version]
        return [(*(b for b in version or () if b not in before), *_batches(form, rows), (number,))]

    return effect


def _noted(form: str, rows: Batch) -> Effect:
    mark = (-_FIRST_NOTE - rows[0] // 10,)
    return lambda version: [version if version and mark in version else (*(version or ()), mark)]


def _same(form: str, rows: Batch) -> Effect:
    return lambda version: [version]


def _deleted(form: str, rows: Batch) -> Effect:
    def effect(version: Version) -> list[Version]:
        left = (tuple(x for x in b if x < 0 or x > _last_deleted(rows)) for b in version or ())
        return [] if version is None else [tuple(b for b in left if b)]

    return effect


def _last_deleted(rows: Batch) -> int:
    """A call with these rows deletes the batches before the last one, and the first row of that."""
    return rows[0] - 10


_NOT_TWICE = (_appended, _created, _deleted, _transacted)  # one that is refused can be made again, as it had no effect

_NOT_OWN = (_deleted, _transacted, _noted)  # other calls may have the rows, or there are none


def _is_incomplete(error: BaseException) -> bool:
    """Whether an error says that a new dataset is not there as a whole."""
    return isinstance(error, tfr.errors.CorruptRecordError) and any(text in str(error) for text in _INCOMPLETE)


def _dataset_of(error: BaseException) -> str:
    """The name of the dataset whose manifest or shard an error is of."""
    name = str(getattr(error, "path", "")).rpartition("/")[2]
    is_beside = name == FileName.manifest(_BESIDE) or name.startswith(f"{_BESIDE}-")
    return _BESIDE if is_beside else FileName.DIRECTORY_STEM


def _is_refused(error: BaseException) -> bool:
    """Whether an error says that another writer was first."""
    return isinstance(error, OSError) and error.errno in (errno.EBUSY, errno.EEXIST)


WRITERS: dict[str, WriterKind] = {
    "append": WriterKind(lambda t, rows: t.write(rows, mode="append"), _appended, False),
    "indexed": WriterKind(lambda t, rows: t.write(rows, mode="append", write_index=True), _appended, False),
    "evolve": WriterKind(lambda t, rows: t.write(rows, mode="append", evolve=True, more="z"), _appended, False),
    "txn": WriterKind(lambda t, rows: t.write(rows, mode="append", txn=_txn(rows)), _transacted, False),
    "txn_tasks": WriterKind(lambda t, rows: _tasks(t, rows, "append", txn=_txn(rows)), _transacted, False),
    "note": WriterKind(lambda t, rows: t.note(rows), _noted, False),
    "tasks": WriterKind(lambda t, rows: _tasks(t, rows, "append"), _appended, False),
    "tasks_over": WriterKind(lambda t, rows: _tasks(t, rows, "overwrite"), _replaced, True),
    "overwrite": WriterKind(lambda t, rows: t.write(rows, mode="overwrite"), _replaced, True),
    "new": WriterKind(lambda t, rows: t.write(rows, mode="error"), _created, True),
    "folders": WriterKind(lambda t, rows: t.write(rows, mode="overwrite_partitions"), _replaced_folders, True),
    "write": WriterKind(lambda t, rows: t.write(rows, mode="overwrite"), _replaced, True),
    "write_indexed": WriterKind(lambda t, rows: t.write(rows, mode="overwrite", write_index=True), _replaced, True),
    "create": WriterKind(lambda t, rows: t.write(rows), _created, True),
    "compact": WriterKind(lambda t, rows: tfr.compact(t.read, **t.options), _same, True, rows=False),
    "delete": WriterKind(lambda t, rows: _delete(t, rows), _deleted, True),
    "copy_in": WriterKind(lambda t, rows: _copy_in(t, rows), _replaced, True),
    "index": WriterKind(lambda t, rows: _index(t), _same, False, rows=False),
    "clean": WriterKind(lambda t, rows: _clean(t), _same, False, rows=False),
}


def _clean(target: Target) -> None:
    """Clean, and remove parts that the manifest does not name as if they were old."""
    clean(target.world.path, remove=True, **target.options)
    if target.has_parts:
        fs, directory = Location.of(target.path, StorageOptions(filesystem=target.options.get("storage_options")))
        directory = f"{directory.rstrip('/')}/"
        stem = target.of_shards
        folder = FileName.manifest_part(stem, "").rpartition("/")[0]
        with suppress(FileNotFoundError):
            parts = [entry.name for entry in fs.listing(directory + folder)]
            used = place_of(fs, directory, stem).part_ids_for_good()
            for name in parts:
                if (id := FileName.of_path(name).id) and id not in used:
                    fs.remove(name)


def _txn(rows: Batch) -> tuple[str, int]:
    """The number of a call as that of its job, so that it may be made twice."""
    return "job", rows[0] // 10


def _tasks(target: Target, rows: Batch, mode: str, **keywords: Any) -> None:
    """Two tasks, of which the first is tried twice, and an attempt of the second that comes after all is published."""
    options = {
        "mode": mode,
        **keywords,
        **({"partition_by": ["p"]} if target.form == "folders" else {}),
        **target.options,
    }
    with DistributedWriter.begin(target.world.path, WriteOptions.from_keywords(options)) as writer:
        first, second = table(rows[:1], target.form), table(rows[1:], target.form)
        parts = [writer.write_part(0, [first]), writer.write_part(0, [first]), writer.write_part(1, [second])]
        writer.commit(parts)
    with suppress(OSError):
        writer.write_part(1, [second])


def _delete(target: Target, rows: Batch) -> DeleteReport:
    found: DeleteReport = read_by(tfr.delete, target.read, filters=[("x", "<=", _last_deleted(rows))], **target.options)
    return found


def _copy_in(target: Target, rows: Batch) -> None:
    """Replace the dataset by another: copied by its store, or, of every other one, read and written."""
    source = target.source(rows).path
    options = target.others if rows[0] // 10 % 2 else target.options
    tfr.copy(tfr.dataset(source, **options), target.path, update=True, **target.options)


def _index(target: Target) -> None:
    read_by(tfr.build_index, target.read, columns=["x"], **target.options)


# ---- calls that read


def _rows(table: Any) -> list[int]:
    if not len(table):  # a single file without records has no schema
        return []
    rows, others = table["x"].to_pylist(), table["y"].to_pylist()
    if [7 * x for x in rows] != others:
        raise Finding(f"values of other records: {rows}, {others}")
    return list(rows)


def _by_names(target: Target) -> list[int]:
    """By a pattern of the names of shards, as of the dataset of an actor."""
    folder = "*/" if target.form == "folders" else ""
    return _rows(read_by(tfr.read_table, f"{target.path}{folder}{target.of_shards}-*", **target.options))


def _in_pieces(target: Target) -> list[int]:
    """By pieces as another process gets them, that has the same filesystem."""
    stored, filesystems = io.BytesIO(), list[Any]()
    pickler, unpickler = pickle.Pickler(stored), pickle.Unpickler(stored)

    def number_of(value: Any) -> int | None:
        if not isinstance(value, AbstractFileSystem):
            return None
        filesystems.append(value)
        return len(filesystems) - 1

    pickler.persistent_id, unpickler.persistent_load = number_of, filesystems.__getitem__  # type: ignore[method-assign]
    pickler.dump(list(tfr.dataset(target.read, **target.options).pieces()))
    stored.seek(0)
    return [row for piece in unpickler.load() for row in _rows(read_by(tfr.read_table, piece))]


def _stream(target: Target) -> list[int]:
    rows: list[int] = []
    with read_by(tfr.open_reader, target.read, batch_size=2, **target.options) as reader:
        for each in reader:
            rows += _rows(each)
    return rows


def _by_number(target: Target) -> list[int]:
    with read_by(tfr.open_random, target.read, **target.options) as records:
        return _rows(records[np.arange(len(records))]) if len(records) else []


def _by_key(target: Target) -> list[int]:
    with read_by(tfr.open_random, target.read, key="x", **target.options) as records:
        rows = _rows(records[np.arange(len(records))])
        found = records.lookup(rows[:3])["y"].to_pylist()
        if found != [7 * x for x in rows[:3]]:
            raise Finding(f"looked up {rows[:3]}, found {found}")
        return rows


def _arrays(target: Target) -> list[int]:
    rows: list[int] = []
    with read_by(tfr.iter_arrays, target.read, batch_size=3, columns=["x"], **target.options) as batches:
        for each in batches:
            rows += map(int, each["x"])
    return rows


def _arrays_resumed(target: Target) -> list[int]:
    rows: list[int] = []
    with read_by(tfr.iter_arrays, target.read, batch_size=2, columns=["x"], **target.options) as batches:
        for each in batches:
            rows += map(int, each["x"])
            break
        state = batches.state()
    with read_by(tfr.iter_arrays, target.read, batch_size=2, columns=["x"], state=state, **target.options) as batches:
        for each in batches:
            rows += map(int, each["x"])
    return rows


def _verified(target: Target) -> int:
    report = read_by(tfr.verify, target.read, **target.options)
    for file in report.files:
        if file.error is not None:
            raise file.error
    return report.records


def _merged(target: Target) -> list[int]:
    copy = target.copy()
    tfr.merge(target.read, copy, **target.options)
    return _rows(read_by(tfr.read_table, copy, **target.options))


def _salvaged(target: Target) -> list[int]:
    copy = target.copy()
    report = tfr.salvage(target.read, copy, **target.options)
    if not report.ok:  # what is kept of a dataset that is incomplete is not a version of it
        raise tfr.errors.CorruptRecordError("; ".join(report.loss_lines()))
    return _rows(read_by(tfr.read_table, copy, **target.options))


def _split(target: Target) -> list[int]:
    copy = target.copy().removesuffix(".tfrecord")
    tfr.split(target.read, copy, shards=2, **target.options)
    return _rows(read_by(tfr.read_table, copy, **target.options))


def _copied(target: Target) -> list[int]:
    copy = target.own("copied")
    tfr.copy(target.read, copy, update=True, **target.options)
    return _rows(read_by(tfr.read_table, copy + target.stem, **target.options))  # others may be copied to there, too


def _converted(target: Target) -> list[int]:
    """What a process that was interrupted has converted is gone on with; one that is complete is replaced."""
    copy = target.own("converted")
    options = {"source_options": target.options, "target_options": target.options}
    tfr.convert(target.read, copy, resume=True, mode="overwrite", **options)
    return _rows(read_by(tfr.read_table, copy, **target.options))


def _followed(target: Target) -> list[int]:
    """The rows of a dataset, then those that appends add meanwhile, which are the others that it has later."""
    dataset = tfr.dataset(target.read, **target.options)
    before, rows = _rows(dataset.to_table()), tfr.follow(dataset, since=dataset.version, every=None)
    added = [row for part in rows for row in _rows(part.to_table())]
    later = dataset.refresh()
    after = _rows(later.to_table())
    if later.version != rows.version:  # another writer was faster
        return before
    if sorted(added) != sorted(set(after).difference(before)):
        raise Finding(f"followed {added} after {before}, and the dataset has {after}")
    return after


READERS: dict[str, Callable[[Target], list[int] | int]] = {
    "table": lambda t: _rows(read_by(tfr.read_table, t.read, **t.options)),
    "shards": lambda t: _rows(read_by(tfr.read_table, t.shards, **t.options)),
    "names": _by_names,
    "pieces": _in_pieces,
    "stream": _stream,
    "dataset": lambda t: _rows(tfr.dataset(t.read, **t.options).to_table()),
    "filter": lambda t: _rows(read_by(tfr.read_table, t.read, filters=[("x", ">=", 0)], **t.options)),
    "number": _by_number,
    "key": _by_key,
    "arrays": _arrays,
    "resumed": _arrays_resumed,
    "count": lambda t: read_by(tfr.count, t.read, **t.options),
    "verify": _verified,
    "merge": _merged,
    "salvage": _salvaged,
    "split": _split,
    "copy": _copied,
    "convert": _converted,
    "follow": _followed,
}


# ---- one run

_prepared: dict[tuple[Any, ...], tuple[Any, list[Call], float]] = {}  # by world, form and steps
_MOST_PREPARED = 10_000  # so that a million programs keep no more in memory


class Run:
    """A program in a world, under a schedule.

    Attributes
    ----------
    calls : list of Call
        What was called, in the order of the beginnings.
    thorough : bool
        Whether more is looked at in the end, and shards are stored in parts where the world has them.
    """

    def __init__(self, program: Program, world: World, scheduler: Scheduler) -> None:
        self.program, self.world, self.scheduler = program, world, scheduler
        self.calls: list[Call] = []
        self.thorough = sum(map(ord, str(program))) % 8 == 0

    def __call__(self) -> None:
        """Run it, and raise `Finding` for what the model does not allow."""
        with _sizes_of(self.program):
            self._run()

    def _run(self) -> None:
        with self.scheduler.alone(random.Random(0)):
            self._prepare(self._target())
        atomic_remote.LIMITS = _IN_PARTS if self.thorough and self.world.takes_parts else LIMITS
        self.scheduler.run([self._body(actor, steps) for actor, steps in self._actors()])
        self._check_errors()
        atomic_remote.LIMITS = LIMITS
        with self.scheduler.alone(random.Random(1)):
            self._check_end(self._target())

    def _target(self) -> Target:
        """As a process that begins now reaches the dataset."""
        options = self.world.options(self.scheduler.main)
        return Target(self.world, self.program.form, options, has_parts=self.program.parts > 0)

    def _prepare(self, target: Target) -> None:
        """Make the calls before the actors begin, which leave the same in each program: once."""
        copied = [step for steps in self.program.actors for step in steps if step.name == "copy_in"]
        if not (self.program.before or copied):
            return
        which = self.program.world, self.program.form, self.program.parts, self.program.before, *copied
        if which in _prepared:
            state, calls, self.scheduler.now = _prepared[which]
            self.world.restore(state)
            self.calls = [replace(call) for call in calls]
            return
        for step in self.program.before:
            self._call(step, target, 0)
        for step in dict.fromkeys(copied):
            rows = _rows_of(step)
            target.source(rows).write_source(rows)
        if len(_prepared) >= _MOST_PREPARED:
            _prepared.clear()
        _prepared[which] = self.world.state(), [replace(call) for call in self.calls], self.scheduler.now

    def _actors(self) -> list[tuple[Actor, tuple[Step, ...]]]:
        return list(zip(self.scheduler.actors, self.program.actors, strict=True))

    def _body(self, actor: Actor, steps: Sequence[Step]) -> Callable[[], None]:
        def body() -> None:
            options, others = self.world.options(actor), self.world.other_options(actor)
            target = Target(
                self.world, self.program.form, options, actor.number, others, has_parts=self.program.parts > 0
            )
            for step in steps:
                retries = self.program.retries or step.name.startswith("txn")
                for _ in range(1 + retries * _RETRIES):
                    call = self._call(step, target, actor.number, actor)
                    if call.state == "done" or not isinstance(call.error, OSError) or call.effect is None:
                        break

        return body

    def _call(self, step: Step, target: Target, number: int, actor: Actor | None = None) -> Call:
        call = Call(number, str(step), self.scheduler.step, stem=step.stem)
        target = replace(target, stem=step.stem)
        self.calls.append(call)
        faults = 0 if actor is None else actor.faults
        writer = WRITERS.get(step.name)
        rows: Batch = ()
        if writer is not None:
            rows = _rows_of(step) if writer.rows else ()
            call.effect, call.changes = writer.effect(self.program.form, rows), writer.changes
        try:
            if writer is not None:
                made = writer.call(target, rows)
                if isinstance(made, DeleteReport) and not made.records:
                    call.is_durable = False  # what it saw, without these rows, may be lost
            else:
                call.seen = READERS[step.name](target)
            call.state = "done"
        except Death:
            call.end = self.scheduler.step if self.world.has_locks else call.end
            raise
        except Exception as error:
            call.state, call.error = "failed", error
            call.seen = None
            if step.name == "verify" and _NO_MATCH in str(error):
                call.matches = self._index_matches(error.path)
            if published := published_by(error):
                call.state = "done"
                call.is_durable = not isinstance(published, Unconfirmed)
                is_replaced = isinstance(error, tfr.errors.ReplacedError)  # before its indexes were made
                is_documented = is_replaced or getattr(error, "errno", None) == errno.EBUSY
                if actor is not None and actor.faults == faults and not is_documented:
                    raise Finding(f"an error that is not documented, of {call.name}", self.calls) from error
            elif writer is not None and writer.effect in _NOT_TWICE and (_is_refused(error) or _TWO in str(error)):
                call.state = "refused"
        if actor is not None and actor.dead:  # what its process made of a call that never returned
            call.state, call.seen, call.error, call.end = "died", None, None, self.scheduler.step
            raise Death
        call.end = self.scheduler.step
        is_own = writer is not None and writer.effect not in _NOT_OWN
        is_new = writer is not None and writer.rows and is_own and not self.program.retries
        can_look = actor is not None and actor.faults < faults + 2
        if is_new and can_look and call.state == "failed" and self._is_named(rows):
            raise Finding(f"an error does not say that its rows are published, of {call.name}", self.calls)
        if call.error is not None and call.state != "done":
            self._judge(call, met_fault=actor is not None and actor.faults > faults)
        if call.error is not None:
            call.error = call.error.with_traceback(None)  # which would keep what is open
        return call

    def _judge(self, call: Call, *, met_fault: bool) -> None:
        """Decide what an error means; those that are not documented are looked at in the end."""
        error = call.error
        if isinstance(error, Finding):
            raise error
        if isinstance(error, FileNotFoundError) and call.effect is None:
            call.absent = True
        elif self._has_two(call, error):
            call.present = call.effect is None
        elif _is_incomplete(error):
            call.absent = call.effect is None
            if call.absent and self.program.has_beside:  # of a directory, too, the error is of one dataset
                call.stem = _dataset_of(error)
        elif not (met_fault and isinstance(error, OSError | tfr.errors.CorruptRecordError)):
            return
        elif isinstance(error, OSError):
            call.error = None

    def _check(self) -> None:
        """Look at errors that no fault explains, then search for the moments of all calls."""
        self._check_errors()
        begin = (
            self.scheduler.lost_at
        )  # what a reader saw before a loss of power may have been lost, if nobody was told
        before = [call for call in self.calls if call.begin <= begin]
        after = [
            call if call.is_durable or call.end > begin else replace(call, state="failed")
            for call in self.calls
            if call.effect is not None or call.begin > begin
        ]
        if not (self._explains(before) and self._explains(after)):
            raise Finding("no order of the calls explains what was seen", self.calls)

    def _explains(self, calls: Sequence[Call]) -> bool:
        if not self.program.has_beside:
            return explain(calls)
        written = (s for s in self.program.steps if s.name in WRITERS and WRITERS[s.name].effect is not _deleted)
        numbers = {step.number for step in written if step.stem == _BESIDE}
        return explain_both(calls, _BESIDE, lambda row: row // 10 in numbers)

    def _has_two(self, call: Call, error: BaseException) -> bool:
        """Whether an error says that a path is that of two datasets."""
        return isinstance(error, ValueError) and _TWO in str(error) and self.program.has_beside and not call.stem

    def _check_errors(self) -> None:
        for call in self.calls:
            error = call.error
            if error is None or call.absent or call.present or call.state not in ("failed", "refused"):
                continue
            if not self._is_documented(call, error):
                raise Finding(f"an error that is not documented, of {call.name}", self.calls) from error

    def _is_documented(self, call: Call, error: BaseException) -> bool:
        if isinstance(error, tfr.errors.ReplacedError):
            return overlapping(call, self.calls, changes=True)
        if call.effect is None:  # files that are not those of the state are refused by their number and sizes
            if call.name == "verify" and _NO_MATCH in str(error):
                # It could not be removed with its shard, of which that writer has warned; or its shard was replaced
                # before it was written, and the call that wrote it removes it.
                return self._is_disturbed or not call.matches
            if call.name == "verify" and "does not name it" in str(error):  # a shard of a writer that was overtaken
                return overlapping(call, self.calls, changes=False) or self._is_disturbed
            is_other = isinstance(error, ValueError) and "the state is that of other files" in str(error)
            return is_other and overlapping(call, self.calls, changes=False)
        name = call.name.partition(":")[0].removeprefix(f"{call.stem}.")
        if self._has_two(call, error):
            return True
        if _is_incomplete(error):
            return overlapping(call, self.calls, changes=True) or self._is_disturbed
        if isinstance(error, FileExistsError):
            is_foreign = "not of the dataset" in str(error) or "of no dataset with a manifest" in str(error)
            return name in ("new", "create") or (self.program.has_beside and is_foreign)
        if name in ("compact", "delete", "index", "clean") and isinstance(error, FileNotFoundError):
            return True
        if name in ("tasks", "txn_tasks", "tasks_over") and isinstance(error, FileNotFoundError):
            return "begin it again" in str(error) and overlapping(call, self.calls, changes=False)
        if not (isinstance(error, OSError) and error.errno == errno.EBUSY):
            return False
        return overlapping(call, self.calls, changes=False) or (self._is_disturbed and not self.world.has_locks)

    @property
    def _is_disturbed(self) -> bool:
        """Whether a process has ended early, or met a fault: what it was writing may be left."""
        return any(actor.dead or actor.faults for actor in self.scheduler.actors)

    # ---- the end

    def _check_end(self, target: Target) -> None:
        """Clean, look for what is left, read, and of some programs write again, alone and without faults."""
        self.scheduler.step += 1
        if (self.thorough and self.world.names()) or self._left():
            clean(self.world.path, remove=True, older_than=_ALL, **target.options)
        if left := self._left():
            raise Finding(f"left after `clean`: {left}", self.calls)
        self._look(target)
        self._look_at_marks()
        if self.thorough:
            for stem in self._stems:
                self._call(Step("verify", stem=stem), target, -1)
                self._call(Step("count", stem=stem), target, -1)
            self._call(Step("write" if self.program.form == "fixed" else "append", 999), target, -1)
            for stem in self._stems:
                self._call(Step("table", stem=stem), target, -1)
        self._check()

    @property
    def _stems(self) -> tuple[str, ...]:
        """The names of the datasets; "" if there is one, which needs none."""
        return (FileName.DIRECTORY_STEM, _BESIDE) if self.program.has_beside else ("",)

    def _look(self, target: Target) -> None:
        """See the rows: of some programs, and where not all that the manifest names is there, by a call that reads."""
        rows = None if self.thorough or self.program.has_beside else self._named_rows()
        for stem in self._stems if self.program.has_beside else ():
            self._call(Step("table", stem=stem), target, -1)
        if rows is None:
            self._call(Step("table"), target, -1)
        else:
            step = self.scheduler.step
            self.calls.append(Call(-1, "look", step, step, "done", seen=rows or None, absent=not rows))

    def _look_at_marks(self) -> None:
        """See which transaction and which notes the manifest states."""
        step, manifests = self.scheduler.step, self._manifests()
        for stem in self._stems:
            marks = list[int]()
            for name in manifests:
                if stem and FileName.parse(name).dataset != stem:
                    continue
                stated = json.loads(self.world.content(name))
                marks += [-number for number, *_ in stated.get("txn", {}).values()]
                notes = [key for key in stated.get("metadata", {}) if key.startswith(_NOTE)]
                marks += [-_FIRST_NOTE - int(key.removeprefix(_NOTE)) for key in notes]
            self.calls.append(Call(-1, "marks", step, step, "done", marks=frozenset(marks), stem=stem))

    def _manifests(self) -> list[str]:
        """The names of manifests in the directory of the dataset."""
        return [name for name in self.world.names() if name.startswith("_MANIFEST") and "/" not in name]

    def _named_rows(self) -> list[int] | None:
        """The rows of the files that the manifest names; None if they are not all there, complete."""
        names = set(self.world.names())
        manifests = self._manifests()
        if len(manifests) != 1:
            return None
        manifest = self._stated(manifests[0])
        rows: list[int] = []
        for file in sorted(manifest["files"], key=lambda file: str(file["path"]).rpartition("/")[0]):
            body = self.world.content(file["path"]) if file["path"] in names else b""
            if len(body) != file["bytes"] or "staged" in file:
                return None
            if _checksum(body) != file["crc32c"] and manifest.get("complete") is not False:
                raise Finding(f"another file has the name of one of the manifest: {file['path']}", self.calls)
            if len(found := _decoded(body)) != file["records"]:
                return None
            rows += found
        return None if manifest.get("complete") is False else rows

    def _stated(self, name: str) -> Any:
        """The content of a manifest, with the files in its parts."""
        stated = json.loads(self.world.content(name))
        files: list[dict[str, Any]] = []
        if not stated.get("parts"):
            return stated
        manifest = parse_manifest(self.world.content(name), name)
        for part in () if manifest is None else manifest.parts:
            path = self._part_name(name, part.id)
            if path not in self.world.names():
                raise Finding(f"a part of the manifest is missing: {path}", self.calls)
            for file in manifest_parts.unpack(self.world.content(path), part, path):
                files.append({**file._asdict(), "crc32c": f"{file.crc32c:08x}"})
                files[-1].pop("staged")
        return {**stated, "files": [*files, *stated["files"]]}

    @staticmethod
    def _part_name(manifest: str, id: str) -> str:
        folder, slash, base = manifest.rpartition("/")
        return folder + slash + FileName.manifest_part(FileName.parse(base).dataset or "", id)

    def _is_named(self, rows: Batch) -> bool:
        """Whether the manifest names files that have these rows now."""
        found, names = set[int](), set(self.world.names())
        for manifest in self._manifests():
            stated = self._stated(manifest)
            for file in stated["files"] if stated.get("complete") is not False else ():
                bodies = [self.world.content(file[key]) for key in ("staged", "path") if file.get(key) in names]
                found.update(*(_decoded(body) for body in bodies if _checksum(body) == file["crc32c"]))
        return found.issuperset(rows)

    def _index_matches(self, path: str) -> bool:
        """Whether an index is there now, and is that of its file."""
        index = path[path.rindex("/d/") + 3 :]
        name = index.removesuffix(index[index.rindex(".") :])
        if not {index, name} <= set(self.world.names()):
            return False
        copies = MemoryFileSystem(skip_instance_cache=True)
        copies.store = {f"/{each}": MemoryFile(copies, f"/{each}", self.world.content(each)) for each in (index, name)}
        return check_indexes(f"/{name}", storage_options=copies)[0].error is None

    def _left(self) -> list[str]:
        """What is there next to the manifests, the files that they name, and the indexes of those."""
        names = self.world.names()
        used = set[str]()
        for name in names:
            folder, slash, base = name.rpartition("/")
            if base.startswith("_MANIFEST"):
                used.add(name)
                stated = self._stated(name)
                for file in stated["files"]:
                    used.update(folder + slash + each for each in (file["path"], file.get("staged")) if each)
                parts = [*stated.get("retired", ()), *(part["id"] for part in stated.get("parts", ()))]
                used.update(self._part_name(name, id) for id in parts)
        used.update([index for name in used for index in FileName.indexes(name)])
        left = [name for name in names if name not in used]
        if self._is_disturbed:  # numbered names tell of no writing: the next one to this dataset removes such shards
            left = [name for name in left if "-of-" not in name]
        return left + self.world.open_uploads()


@contextmanager
def _sizes_of(program: Program) -> Iterator[None]:
    """Let manifests have small parts during a block, of which none is kept longer than to the next change."""
    names = ("many", "part", "tail", "retired")
    before = [getattr(SIZES, name) for name in names]
    try:
        for name, size in zip(names, (1, program.parts, 1, 0) if program.parts else before, strict=True):
            setattr(SIZES, name, size)
        yield
    finally:
        for name, size in zip(names, before, strict=True):
            setattr(SIZES, name, size)


@lru_cache(maxsize=2000)
def _decoded(body: bytes) -> tuple[int, ...]:
    """The rows of a file."""
    return tuple(_rows(tfr.read_table(io.BytesIO(body)))) if body else ()


@lru_cache(maxsize=2000)
def _checksum(body: bytes) -> str:
    return f"{crc32c(body):08x}"


# ---- at random

_GROWN = (
    "append",
    "append",
    "note",
    "append",
    "evolve",
    "indexed",
    "overwrite",
    "overwrite",
    "tasks",
    "txn",
    "txn",
    "txn_tasks",
    "tasks_over",
    "new",
    "compact",
    "delete",
    "copy_in",
    "index",
    "clean",
)
_FOLDERS = (
    "append",
    "append",
    "note",
    "tasks",
    "txn",
    "txn_tasks",
    "overwrite",
    "folders",
    "folders",
    "compact",
    "delete",
    "copy_in",
    "clean",
)
_FIXED = (
    "write",
    "write",
    "write_indexed",
    "write_indexed",
    "create",
    "compact",
    "delete",
    "copy_in",
    "copy_in",
    "index",
    "clean",
)
_CLAIMED = (
    "append",
    "append",
    "note",
    "tasks",
    "txn",
    "txn_tasks",
    "evolve",
    "compact",
    "delete",
    "clean",
)  # what a store without conditions keeps apart
_ALL_FORMS = {"grown": _GROWN, "folders": _FOLDERS, "fixed": _FIXED}
FORMS_OF = {**dict.fromkeys(("s3", "kms", "gcs", "azure", "disk"), _ALL_FORMS), "plain": {"grown": _CLAIMED}}
"""The calls that write, by kind of world and form of dataset; more often drawn where they are named twice."""


_OF_DIRECTORIES = ("tasks", "tasks_over", "copy_in")  # calls that name no dataset
_OF_ONE = ("delete", "shards", "names")  # calls that always name one
_ADDING = ("append", "indexed", "evolve", "txn", "overwrite")
_FIRST_BESIDE = 200  # numbers of calls that are added to a program
_SAME_NAMES = (3, 12)  # from one call to the next: numbered shards have the same names; by 12, other sizes
_MEETINGS_DRAWN = 0.2
_REPEATED = 0.6  # transactions
_MEETINGS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("fixed", (("write_indexed",), ("write", "write_indexed", "delete"), ("verify", "verify", "number", "key"))),
    ("fixed", (("write_indexed",), ("verify", "number"), ("write_indexed",))),
    ("fixed", (("write_indexed",), ("verify", "number", "key"), ("write_indexed", "index"))),
    ("fixed", ((), ("copy_in",), ("write", "write_indexed", "copy_in"))),
    ("grown", (("append",), ("append", "indexed", "evolve", "tasks"), ("overwrite", "tasks_over"))),
    ("grown", (("append",), ("txn", "txn_tasks"), ("txn", "txn_tasks"))),
    ("folders", ((), ("note",), ("note", "append", "txn"))),
)
"""Forms, with calls before, of the actor that begins, and of another one, which programs of any calls seldom make: in
numbered shards of one name, an index is used while its file is replaced, a copy is made where another call writes; a
dataset is replaced while a shard that no manifest names yet is added to it; one is begun by a call without rows, of
which there is no shard."""


def first_step(form: str) -> str:
    """The call that makes a dataset of a form."""
    return "write" if form == "fixed" else "append"


def random_program(rng: random.Random, worlds: Sequence[str]) -> Program:
    """Draw a program of two or three actors, each with one to three calls; a third have parts."""
    program = _random_program(rng, worlds)
    return with_parts(program) if sum(map(ord, str(program))) % 3 == 0 else program


def with_parts(program: Program) -> Program:
    """The program with a manifest that has parts, of one file or of up to four."""
    if program.parts:
        return program
    return replace(program, parts=1 if sum(map(ord, str(program))) % 2 else _PARTS)


def with_beside(program: Program) -> Program:
    """The program with another dataset in the directory, to which some of its calls go, and with parts.

    There are some shards before, as only the manifest of several files is believed to be alone. Programs of other forms
    than that to which shards are added are left as they are.
    """
    if program.form != "grown":
        return program
    stems = ("", FileName.DIRECTORY_STEM, _BESIDE)
    rng = random.Random(f"{program} beside")
    stem_of_job = rng.choice(stems)

    def changed(step: Step) -> Step:
        if step.name.startswith("txn"):  # numbers of the job are repeated
            return replace(step, name="txn", stem=stem_of_job)
        if step.name in _OF_DIRECTORIES:
            return step
        return replace(step, stem=rng.choice(stems[1:] if step.name in _OF_ONE else stems))

    before = [changed(step) for step in program.before]
    before += [Step("append", _FIRST_BESIDE + i) for i in range(rng.choice((0, 2, 3)))]
    actors = [[changed(step) for step in steps] for steps in program.actors]
    if not any(step.stem == _BESIDE and step.name in _ADDING for steps in actors for step in steps):
        steps = rng.choice(actors)
        steps.insert(rng.randrange(len(steps) + 1), Step("append", _FIRST_BESIDE + 3, _BESIDE))
    beside = replace(program, before=tuple(before), actors=tuple(map(tuple, actors)))
    return with_parts(beside) if rng.random() < 0.8 else beside


def _random_program(rng: random.Random, worlds: Sequence[str]) -> Program:
    world = rng.choice(worlds)
    meets = len(FORMS_OF[world]) > 1 and rng.random() < _MEETINGS_DRAWN
    form = rng.choice(
        ("grown", "grown", "folders", "fixed", "fixed") if len(FORMS_OF[world]) > 1 else tuple(FORMS_OF[world])
    )
    if meets:
        form, (prepared, *calls) = rng.choice(_MEETINGS)
    number = rng.randrange(3) if form == "fixed" else 0  # one, two or three shards
    last = 0
    transacted: list[int] = []  # numbers of the job

    def step(names: Sequence[str]) -> Step:
        nonlocal number
        name = rng.choice(names)
        if name == "delete":
            return Step(name, last + 1)  # rows of the calls before the actors begin, which none of them writes again
        if name.startswith("txn") and transacted and rng.random() < _REPEATED:
            return Step(name, rng.choice(transacted))
        if name in WRITERS and WRITERS[name].rows:
            number += rng.choice(_SAME_NAMES if meets else (1, *_SAME_NAMES)) if form == "fixed" else 1
            if name.startswith("txn"):
                transacted.append(number)
            return Step(name, number)
        return Step(name)

    if meets:
        before = (step(prepared),) if prepared else ()
        last = number
        return Program(world, form, before, tuple((step(names),) for names in calls))
    writers, readers = FORMS_OF[world][form], tuple(READERS)
    first = [name for name in ("append", "indexed", "write", "write_indexed") if name in writers]
    before = tuple(step(first) for _ in range(rng.choice((0, 0, 1, 2))))
    last = number if before else 0
    actors = []
    for _ in range(rng.choice((2, 2, 2, 3))):
        reads = rng.random() < 0.45
        actors.append(tuple(step(readers if reads else writers) for _ in range(rng.choice((1, 1, 1, 1, 2, 3)))))
    return Program(world, form, before, tuple(actors), rng.random() < 0.3)
