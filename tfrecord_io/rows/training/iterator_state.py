"""Save the position of an iterator, with the identity of the files and options, as a dict.

A state determines all batches to come. `ReadIdentity.read_state` is the way back, and refuses a state of other files or
options. States are stored by users, so that names and forms of the layout remain; "given" is what the code calls
`delivered`, and "held" is `waiting`. A state of version 2, after the records 0, 2, 1 and 4 of an epoch::

    {
        "version": 2,
        "seed": 5,
        "epoch": 0,
        "given": 4,  # number of records of the epoch that were delivered
        "next": 6,  # number of the record at which reading goes on, in the order of the epoch's files
        "buffer": [3],  # numbers of the records in the shuffle buffer
        "held": [5],  # only with `pack`: records that were taken for a row, and wait for others
        "files": {
            "count": 1,
            "bytes": 825,
            "digest": "d7ae83c8",  # of names and sizes
            "checksums": "5a5f2c83",  # only with a manifest
            "selections": "0e1f6c5d",  # only of lists of datasets of which some select rows
        },
        "options": {  # by their names, as far as the order of the records depends on them
            "batch_size": 2,
            "shuffle_buffer": 2,
            "drop_last": False,
            "worker": None,
            "uneven": "keep",
            "offset": 0,
            "limit": None,
            "bucket_by": None,  # this and the next three only where lengths of lists decide about batches
            "bucket_sizes": None,
            "pack": {"t": 6},
            "max_length": None,
            "left_out": None,  # a digest of columns and types, if damaged records are left out
            "run": [120, 240],  # only of a worker that has a run of the files of a manifest in parts: its begin and end
        },
    }

Tests: tests/rows/training/test_iterator_state.py and tests/rows/training/test_iterator_state_saved.py.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tfrecord_io.base import LIMITS, Selection, counted, printable
from tfrecord_io.columns import Column
from tfrecord_io.read import Scan, ScanRows
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.store import Source

_VERSION = 2
# Options that determine the order of the records.
_OPTIONS = ("batch_size", "shuffle_buffer", "drop_last", "worker", "uneven")
_OF_SELECTION = ("offset", "limit")
_OF_ARRANGEMENT = ("bucket_by", "bucket_sizes", "pack", "max_length")  # so do these, if lengths decide about batches
_OF_CUT = ("cut", "end_token")  # only in states of documents that are cut
_CHECKSUMS = "checksums"  # only in states of datasets with a manifest
_SELECTIONS = "selections"  # only in states of lists of datasets of which some select rows
_LEFT_OUT = "left_out"
_RUN = "run"  # only in states of workers that have runs of files; others have every n-th

# Keys of a state.
_DELIVERED = "given"
_WAITING = "held"  # only in states with `pack`
_CUT_VALUES = "cut"  # only in states with `cut`
_KEYS = {"version", "seed", "epoch", _DELIVERED, "next", "buffer", "files", "options"}


@dataclass(frozen=True, slots=True)
class IteratorPosition:
    """A position between two batches."""

    epoch: int
    delivered: int  # number of records of this epoch that were delivered
    next: int  # where reading goes on: number of a record in the order of the epoch's files
    buffer: Sequence[int] = ()  # numbers of the records in the shuffle buffer, in its order
    # Numbers of the records that were delivered to a bucket, and wait for others, in their order.
    waiting: Sequence[int] = ()
    cut: int = 0  # values of the first of these that were delivered

    @classmethod
    def from_saved(cls, saved: Mapping[str, Any]) -> Self:
        """The position in a state, or in a mark of one."""
        numbers = saved["epoch"], saved[_DELIVERED], saved["next"]
        return cls(*numbers, saved["buffer"], saved.get(_WAITING, []), saved.get(_CUT_VALUES, 0))

    @property
    def begin(self) -> int:
        """Number of the first record that is needed to go on."""
        return min([self.next, *self.buffer, *self.waiting])


@dataclass(frozen=True, slots=True)
class ReadIdentity:
    """Files and options that an iterator's batches depend on."""

    files: dict[str, Any]
    options: dict[str, Any]

    @classmethod
    def from_scan(cls, scan: Scan, options: IterOptions) -> Self:
        """Identity of a read of the rows of a scan: as `from_sources`, with the filter and what may be left out.

        Records that are left out have no number, and the columns and their types decide which cannot be decoded.
        """
        identity = cls.from_sources(scan.sources, options, scan.selection)
        if scan.row_filter is not None:
            identity.options["filter"] = scan.row_filter.condition.key
        if scan.options.damage.goes_on:
            fields = [(f.name, Column(f).logical_name, f.nullable) for f in scan.without_filter().schema]
            identity.options[_LEFT_OUT] = hashlib.sha256(repr(sorted(fields)).encode()).hexdigest()
        worker, workers = _part_of(options.worker) or (0, 1)
        are_own = workers > 1 and options.uneven == "keep" and have_own_files(scan, workers)
        if are_own and (run := scan.sources.run(worker, workers)) is not None:
            identity.options[_RUN] = [*run]
        return identity

    @classmethod
    def from_sources(cls, sources: Sequence[Source], options: IterOptions, selection: Selection) -> Self:
        """Identity of a read of all records; files are distinguished by name and size, so that a folder may be moved.

        Checksums of shards that a manifest names count, too: the next version has files of the same names, and often of
        the same sizes. Where a list has datasets that select rows, the selections count.
        """
        digest, size, selecting = hashlib.sha256(), 0, ScanRows.selections(sources)
        for source in sources:
            size += source.size or 0
            digest.update(f"{os.path.basename(source.path)}\0{source.size}\0".encode("utf-8", "surrogateescape"))
            if source.span is not None:  # a slice: other slices may have its size
                digest.update("{}\0{}\0".format(*source.span).encode())
        files = {"count": len(sources), "bytes": size, "digest": digest.hexdigest()}
        if checksums := [source.shard.crc32c for source in sources if source.shard is not None]:
            files[_CHECKSUMS] = hashlib.sha256(repr(checksums).encode()).hexdigest()
        if selecting:
            selections = [_selection(scan, options) for scan in selecting]
            files[_SELECTIONS] = hashlib.sha256(repr(selections).encode("utf-8", "surrogateescape")).hexdigest()
        values: dict[str, Any] = {name: getattr(options, name) for name in _OPTIONS}
        values |= {name: getattr(selection, name) for name in _OF_SELECTION}
        if options.arranges:
            values |= {name: getattr(options, name) for name in _OF_ARRANGEMENT}
        if options.cut:
            values |= {name: getattr(options, name) for name in _OF_CUT}
        values["worker"] = _part_of(values["worker"])
        values[_LEFT_OUT] = None
        return cls(files, json.loads(json.dumps(values, default=int)))

    def state(self, seed: int, position: IteratorPosition) -> dict[str, Any]:
        """Save a position as dicts, lists, numbers and text, for `read_state`."""
        waiting: dict[str, Any] = {}
        if "pack" in self.options:
            waiting[_WAITING] = [int(record) for record in position.waiting]
        if self.options.get("cut"):
            waiting[_CUT_VALUES] = position.cut
        return {
            "version": _VERSION,
            "seed": seed,
            "epoch": position.epoch,
            _DELIVERED: position.delivered,
            "next": position.next,
            "buffer": [int(record) for record in position.buffer],
            "files": dict(self.files),
            "options": dict(self.options),
            **waiting,
        }

    def read_state(
        self, state: Mapping[str, Any], seed: int | None, free: Sequence[str] = ()
    ) -> tuple[int, IteratorPosition]:
        """Seed and position in a state; options that are `free` may have changed.

        ValueError for a value that is not a state, or a state of other files, other options or another seed.
        """
        _check_state(state)
        position = IteratorPosition.from_saved(state)
        return self.read_seed(state, seed, free), position

    def read_seed(self, state: Mapping[str, Any], seed: int | None, free: Sequence[str]) -> int:
        """Seed in a state; ValueError for one of other files, another seed, or other options that are not `free`."""
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
            for name in (*_OPTIONS, *_OF_SELECTION, *_OF_ARRANGEMENT, "filter", "mixture", "windows")
            if name not in free
        ]
        changes += [(name, of_state.get(name), self.options.get(name), "the same") for name in _OF_CUT]
        if _RUN not in free and (saved_run := of_state.get(_RUN)) != (run := self.options.get(_RUN)):
            before, now = map(_name_files, (saved_run, run))
            reason = f"the state was made when this worker had {before} of the dataset, and now it has {now}"
            raise ValueError(f"{reason}: begin at the start of an epoch")
        changes.append(("seed", state["seed"], state["seed"] if seed is None else seed, "the same, or none"))
        for name, saved, current, advice in changes:
            if saved != current:
                before, now = printable(repr(saved)), printable(repr(current))
                raise ValueError(f"the state was made with {name}={before}, and this is {name}={now}; pass {advice}")
        left_out = self.options[_LEFT_OUT]
        if left_out != (saved_left_out := state["options"].get(_LEFT_OUT)):
            changed = "another on_error" if None in (left_out, saved_left_out) else "other columns or types"
            raise ValueError(f"the state was made with {changed}, so other records are left out; pass the same")
        seed_of_state: int = state["seed"]
        return seed_of_state


def _name_files(run: Any) -> str:
    return "every n-th file" if run is None else f"the files {printable(repr(run))}"


def have_own_files(scan: Scan, workers: int) -> bool:
    """True if each of several workers has files of its own, unless their parts are to be of equal size."""
    return not scan.selection.is_range and len(scan.sources) >= workers


def workers_in_state(state: Mapping[str, Any]) -> int | None:
    """Number of workers among which the rows were split when a state was made; None if any number goes on with it.

    ValueError if the value is not a state.
    """
    if isinstance(state, Mapping) and "parts" in state:
        return None
    _check_state(state)
    return (_part_of(state["options"].get("worker")) or (0, 1))[1]


def _selection(scan: Scan, options: IterOptions) -> tuple[Any, ...]:
    """Selection of a dataset in a list: its files, filter, offset and limit."""
    identity = ReadIdentity.from_scan(scan, options)
    return identity.files, identity.options.get("filter"), scan.selection.offset, scan.selection.limit


def _part_of(worker: Sequence[int] | None) -> Sequence[int] | None:
    """Worker number and count; None for a single worker, as without `worker`."""
    return None if worker is None or worker[1] == 1 else worker


def _check_state(state: Mapping[str, Any]) -> None:
    if not isinstance(state, Mapping) or set(state) - {_WAITING, _CUT_VALUES} != _KEYS or state["version"] != _VERSION:
        raise ValueError("this is not a state of an iterator of this version: pass the result of state()")
    numbers = [state[name] for name in ("seed", "epoch", _DELIVERED, "next")] + [state.get(_CUT_VALUES, 0)]
    buffer, waiting, files, options = state["buffer"], state.get(_WAITING, []), state["files"], state["options"]
    valid = all(type(n) is int and n >= 0 for n in numbers) and max(numbers[1:]) <= LIMITS.INT64_MAX
    valid = valid and isinstance(buffer, list) and isinstance(waiting, list)
    buffer = [*buffer, *waiting] if valid else []
    valid &= all(type(n) is int and n >= 0 for n in buffer)
    valid &= isinstance(files, dict) and isinstance(options, dict)
    valid = valid and len(set(buffer)) == len(buffer)
    valid = valid and set(files) - {_CHECKSUMS, _SELECTIONS} == {"count", "bytes", "digest"}
    valid = valid and (not state.get(_CUT_VALUES) or len(waiting) == 1)
    if not valid or any(n >= state["next"] for n in buffer):
        raise ValueError("the state is damaged: pass the result of state()")
