"""The state of an iterator, in a form that can be saved: all that determines the batches to come."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tfrecord_io.display import counted
from tfrecord_io.errors import printable
from tfrecord_io.options import INT64_MAX
from tfrecord_io.options.arrays import IterOptions
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.sources import ChosenRecords
from tfrecord_io.schema.type_names import logical_name
from tfrecord_io.storage.read.source import Source

_VERSION = 2
# They determine the order.
_OPTIONS = ("batch_size", "shuffle_buffer", "drop_last", "worker", "uneven", "offset", "limit")
_OF_ARRANGEMENT = ("bucket_by", "bucket_sizes", "pack", "max_length")  # they, too, if lengths decide about batches
_CHECKSUMS = "checksums"  # in those of datasets with a manifest
_SELECTIONS = "selections"  # in those of lists with datasets of some rows
_LEFT_OUT = "left_out"
_HELD = "held"  # in states with such options
_KEYS = {"version", "seed", "epoch", "given", "next", "buffer", "files", "options"}


@dataclass(frozen=True, slots=True)
class IteratorPosition:
    """A position between two batches."""

    epoch: int
    delivered: int  # number of records of this epoch that were delivered
    next: int  # where reading goes on: number of a record in the order of the epoch's files
    buffer: Sequence[int] = ()  # numbers of the records in the shuffle buffer, in its order
    # Numbers of the records that were delivered to a bucket, and wait for others, in their order.
    held: Sequence[int] = ()

    @property
    def begin(self) -> int:
        """The first record that is needed to go on."""
        return min([self.next, *self.buffer, *self.held])


@dataclass(frozen=True, slots=True)
class ReadIdentity:
    """The files and options that an iterator's batches depend on."""

    files: dict[str, Any]
    options: dict[str, Any]

    @classmethod
    def of_scan(cls, scan: Scan, options: IterOptions) -> Self:
        """The identity of the rows of a scan.

        Records that are left out have no number. Which ones cannot be decoded depends on the columns and their types.
        """
        own = cls.of_read(scan.sources, options)
        if scan.row_filter is not None:
            own.options["filter"] = scan.row_filter.condition.key
        if scan.options.damage.goes_on:
            fields = [(f.name, logical_name(f.type, f.metadata), f.nullable) for f in scan.without_filter().schema]
            own.options[_LEFT_OUT] = hashlib.sha256(repr(sorted(fields)).encode()).hexdigest()
        return own

    @classmethod
    def of_read(cls, sources: Sequence[Source], options: IterOptions) -> Self:
        """The identity of a read of all records; files count by name and size, so that a folder may be moved.

        Of shards that a manifest names, their checksums count, too: the next version has files of the same names, and
        often of the same sizes; of the files of a dataset in a list, which rows it selects.
        """
        digest, size, selecting = hashlib.sha256(), 0, dict[int, Scan]()
        for source in sources:
            size += source.size or 0
            digest.update(f"{os.path.basename(source.path)}\0{source.size}\0".encode("utf-8", "surrogateescape"))
            if source.span is not None:  # of a slice: others may have its size
                digest.update("{}\0{}\0".format(*source.span).encode())
            if isinstance(source.derived, ChosenRecords):
                selecting[id(source.derived.scan)] = source.derived.scan
        files = {"count": len(sources), "bytes": size, "digest": digest.hexdigest()}
        if stated := [source.shard.crc32c for source in sources if source.shard is not None]:
            files[_CHECKSUMS] = hashlib.sha256(repr(stated).encode()).hexdigest()
        if selecting:
            selections = [_selection(scan, options) for scan in selecting.values()]
            files[_SELECTIONS] = hashlib.sha256(repr(selections).encode("utf-8", "surrogateescape")).hexdigest()
        names = (*_OPTIONS, *_OF_ARRANGEMENT) if options.arranges else _OPTIONS
        values: dict[str, Any] = {name: getattr(options, name) for name in names}
        values["worker"] = _part_of(values["worker"])
        values[_LEFT_OUT] = None
        return cls(files, json.loads(json.dumps(values, default=int)))

    def state(self, seed: int, position: IteratorPosition) -> dict[str, Any]:
        """A position as dicts, lists, numbers and text, for `restored`."""
        held = {_HELD: [int(record) for record in position.held]} if "pack" in self.options else {}
        return {
            "version": _VERSION,
            "seed": seed,
            "epoch": position.epoch,
            "given": position.delivered,
            "next": position.next,
            "buffer": [int(record) for record in position.buffer],
            "files": dict(self.files),
            "options": dict(self.options),
            **held,
        }

    def restored(self, state: Mapping[str, Any], seed: int | None) -> tuple[int, IteratorPosition]:
        """The seed and the position in a state.

        ValueError if it is not a state, or one of other files, other options or another seed.
        """
        _check_state(state)
        names = dict.fromkeys([*state["files"], *self.files])
        differing = [name for name in names if state["files"].get(name) != self.files.get(name)]
        if differing == [_SELECTIONS]:
            raise ValueError("the state is that of other rows of these files: pass datasets that select the same")
        if differing:
            before, now = (
                f"{counted(files['count'], 'file')} of {counted(files['bytes'], 'byte')} in all"
                for files in (state["files"], self.files)
            )
            difference = "others of the same size" if before == now else f"those were {before}, these are {now}"
            raise ValueError(f"the state is that of other files: {difference}; pass the files that it was made with")
        of_state = {**state["options"], "worker": _part_of(state["options"].get("worker"))}
        changes: list[tuple[str, object, object, str]] = [
            (name, of_state.get(name, getattr(IterOptions, name, None)), self.options.get(name), "the same")
            for name in (*_OPTIONS, *_OF_ARRANGEMENT, "filter", "mixture", "windows")
        ]
        changes.append(("seed", state["seed"], state["seed"] if seed is None else seed, "the same, or none"))
        for name, saved, given, advice in changes:
            if saved != given:
                before, now = printable(repr(saved)), printable(repr(given))
                raise ValueError(f"the state was made with {name}={before}, and this is {name}={now}; pass {advice}")
        own = self.options[_LEFT_OUT]
        if own != (left_out := state["options"].get(_LEFT_OUT)):
            changed = "another on_error" if None in (own, left_out) else "other columns or types"
            raise ValueError(f"the state was made with {changed}, so other records are left out; pass the same")
        numbers = (state["epoch"], state["given"], state["next"])
        return state["seed"], IteratorPosition(*numbers, state["buffer"], state.get(_HELD, []))


def parts_of(state: Mapping[str, Any]) -> int:
    """Into how many parts the rows are split, of which a state is that of one; ValueError if it is not a state."""
    _check_state(state)
    return (_part_of(state["options"].get("worker")) or (0, 1))[1]


def _selection(scan: Scan, options: IterOptions) -> tuple[Any, ...]:
    """What a dataset in a list selects of its files, of which not all is read."""
    own = ReadIdentity.of_scan(scan, options)
    return own.files, own.options.get("filter"), scan.options.offset, scan.options.limit


def _part_of(worker: Sequence[int] | None) -> Sequence[int] | None:
    """The part of a worker; None of one that reads all, as without `worker`."""
    return None if worker is None or worker[1] == 1 else worker


def _check_state(state: Mapping[str, Any]) -> None:
    if not isinstance(state, Mapping) or set(state) - {_HELD} != _KEYS or state["version"] != _VERSION:
        raise ValueError("this is not a state of an iterator of this version: pass the result of state()")
    numbers = [state[name] for name in ("seed", "epoch", "given", "next")]
    buffer, held, files, options = state["buffer"], state.get(_HELD, []), state["files"], state["options"]
    valid = all(type(n) is int and n >= 0 for n in numbers) and max(numbers[1:]) <= INT64_MAX
    valid = valid and isinstance(buffer, list) and isinstance(held, list)
    buffer = [*buffer, *held] if valid else []
    valid &= all(type(n) is int and n >= 0 for n in buffer)
    valid &= isinstance(files, dict) and isinstance(options, dict)
    valid = valid and len(set(buffer)) == len(buffer)
    valid = valid and set(files) - {_CHECKSUMS, _SELECTIONS} == {"count", "bytes", "digest"}
    if not valid or any(n >= state["next"] for n in buffer):
        raise ValueError("the state is damaged: pass the result of state()")
