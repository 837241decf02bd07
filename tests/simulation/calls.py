"""The calls of programs: how each is made, and its effect on a version of the dataset."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from fsspec import AbstractFileSystem
from model import Finding, Version
from programs import Batch, batches, rows_in, table
from worlds import World

import tfrecord_io as tfr
from reading import read_by
from tfrecord_io.base import StorageOptions
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.store import clean
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.write.publication import place_of
from tfrecord_io.typing import DeleteReport
from tfrecord_io.write.distributed import DistributedWriter

NOTE = "note-"  # keys of metadata, before the number of the call that added it
FIRST_NOTE = 1000  # marks of notes are below those of transactions


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
        self.write(rows, mode="append", metadata={f"{NOTE}{rows[0] // 10}": ""}, has_rows=False)

    def write_source(self, rows: Batch) -> None:
        """Write a dataset to copy from: of folders in a bucket, a third are adopted, with numbered names in each."""
        if self.form != "folders" or rows[0] // 10 % 3 or self.world.has_locks:
            return self.write(rows)
        for part in batches(self.form, rows):
            tfr.write_tfrecord(table(part), f"{self.path}p={part[0] % 2}/part-00000-of-00001", **self.options)
        tfr.adopt(self.path, **self.options)
        return None


Effect = Callable[[Version], list[Version]]


@dataclass(frozen=True)
class WriterKind:
    """How a call is made, and which versions it makes of one; `changes`: open readers may not go on."""

    call: Callable[[Target, Batch], Any]
    effect: Callable[[str, Batch], Effect]
    changes: bool
    has_rows: bool = True

    @property
    def deletes(self) -> bool:
        """Whether it takes rows away, which other calls have added."""
        return self.effect is _deleted

    @property
    def has_own_rows(self) -> bool:
        """Whether no other call adds its rows, and it always does."""
        return self.has_rows and self.effect not in (_deleted, _transacted, _noted)

    @property
    def can_be_repeated(self) -> bool:
        """Whether it had no effect if it is refused, so that it can be made again."""
        return self.effect in (_appended, _created, _deleted, _transacted)


def _appended(form: str, rows: Batch) -> Effect:
    return lambda version: [((version or ()) + batches(form, rows))]


def _replaced(form: str, rows: Batch) -> Effect:
    return lambda version: [batches(form, rows)]


def _created(form: str, rows: Batch) -> Effect:
    return lambda version: [] if version else [batches(form, rows)]


def _replaced_folders(form: str, rows: Batch) -> Effect:
    folders = {x % 2 for x in rows}

    def effect(version: Version) -> list[Version]:
        return [tuple(b for b in version or () if b[0] < 0 or b[0] % 2 not in folders) + batches(form, rows)]

    return effect


def _transacted(form: str, rows: Batch) -> Effect:
    """The rows are appended unless this number of the job, or a later one, is in, which a batch of its own shows."""
    number = -(rows[0] // 10)

    def effect(version: Version) -> list[Version]:
        before = [b for b in version or () if -FIRST_NOTE < b[0] < 0]
        if any(b[0] <= number for b in before):
            return [version]
        return [(*(b for b in version or () if b not in before), *batches(form, rows), (number,))]

    return effect


def _noted(form: str, rows: Batch) -> Effect:
    mark = (-FIRST_NOTE - rows[0] // 10,)
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
    "compact": WriterKind(lambda t, rows: tfr.compact(t.read, **t.options), _same, True, has_rows=False),
    "delete": WriterKind(lambda t, rows: _delete(t, rows), _deleted, True),
    "copy_in": WriterKind(lambda t, rows: _copy_in(t, rows), _replaced, True),
    "index": WriterKind(lambda t, rows: _index(t), _same, False, has_rows=False),
    "clean": WriterKind(lambda t, rows: _clean(t), _same, False, has_rows=False),
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


def _by_names(target: Target) -> list[int]:
    """By a pattern of the names of shards, as of the dataset of an actor."""
    folder = "*/" if target.form == "folders" else ""
    return rows_in(read_by(tfr.read_table, f"{target.path}{folder}{target.of_shards}-*", **target.options))


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
    return [row for piece in unpickler.load() for row in rows_in(read_by(tfr.read_table, piece))]


def _stream(target: Target) -> list[int]:
    rows: list[int] = []
    with read_by(tfr.open_reader, target.read, batch_size=2, **target.options) as reader:
        for each in reader:
            rows += rows_in(each)
    return rows


def _by_number(target: Target) -> list[int]:
    with read_by(tfr.open_random, target.read, **target.options) as records:
        return rows_in(records[np.arange(len(records))]) if len(records) else []


def _by_key(target: Target) -> list[int]:
    with read_by(tfr.open_random, target.read, key="x", **target.options) as records:
        rows = rows_in(records[np.arange(len(records))])
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
    return rows_in(read_by(tfr.read_table, copy, **target.options))


def _salvaged(target: Target) -> list[int]:
    copy = target.copy()
    report = tfr.salvage(target.read, copy, **target.options)
    if not report.ok:  # what is kept of a dataset that is incomplete is not a version of it
        raise tfr.errors.CorruptRecordError("; ".join(report.loss_lines()))
    return rows_in(read_by(tfr.read_table, copy, **target.options))


def _split(target: Target) -> list[int]:
    copy = target.copy().removesuffix(".tfrecord")
    tfr.split(target.read, copy, shards=2, **target.options)
    return rows_in(read_by(tfr.read_table, copy, **target.options))


def _copied(target: Target) -> list[int]:
    copy = target.own("copied")
    tfr.copy(target.read, copy, update=True, **target.options)
    return rows_in(read_by(tfr.read_table, copy + target.stem, **target.options))  # others may be copied to there, too


def _converted(target: Target) -> list[int]:
    """What a process that was interrupted has converted is gone on with; one that is complete is replaced."""
    copy = target.own("converted")
    options = {"source_options": target.options, "target_options": target.options}
    tfr.convert(target.read, copy, resume=True, mode="overwrite", **options)
    return rows_in(read_by(tfr.read_table, copy, **target.options))


def _followed(target: Target) -> list[int]:
    """The rows of a dataset, then those that appends add meanwhile, which are the others that it has later."""
    dataset = tfr.dataset(target.read, **target.options)
    before, rows = rows_in(dataset.to_table()), tfr.follow(dataset, since=dataset.version, every=None)
    added = [row for part in rows for row in rows_in(part.to_table())]
    later = dataset.refresh()
    after = rows_in(later.to_table())
    if later.version != rows.version:  # another writer was faster
        return before
    if sorted(added) != sorted(set(after).difference(before)):
        raise Finding(f"followed {added} after {before}, and the dataset has {after}")
    return after


READERS: dict[str, Callable[[Target], list[int] | int]] = {
    "table": lambda t: rows_in(read_by(tfr.read_table, t.read, **t.options)),
    "shards": lambda t: rows_in(read_by(tfr.read_table, t.shards, **t.options)),
    "names": _by_names,
    "pieces": _in_pieces,
    "stream": _stream,
    "dataset": lambda t: rows_in(tfr.dataset(t.read, **t.options).to_table()),
    "filter": lambda t: rows_in(read_by(tfr.read_table, t.read, filters=[("x", ">=", 0)], **t.options)),
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
