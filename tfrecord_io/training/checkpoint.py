"""Where an iterator stands, as what can be saved: everything that decides the batches to come."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from tfrecord_io.options import INT64_MAX, IterOptions
from tfrecord_io.storage.read.source import Source

_VERSION = 1
_DECIDING = (
    "batch_size",
    "shuffle_buffer",
    "drop_last",
    "worker",
    "offset",
    "limit",
)  # options that decide which record comes when
_KEYS = {"version", "seed", "epoch", "given", "next", "buffer", "files", "options"}


@dataclass(frozen=True, slots=True)
class Position:
    """A place between two batches.

    Attributes
    ----------
    epoch : int
    given : int
        Records given in this epoch.
    next : int
        Where reading goes on: number of a record in the order of the epoch's files.
    buffer : sequence of int
        The numbers of the records in the shuffle buffer, in its order.
    """

    epoch: int
    given: int
    next: int
    buffer: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """What an iterator's batches depend on besides the position."""

    files: dict[str, Any]
    options: dict[str, Any]

    @classmethod
    def of(cls, sources: list[Source], options: IterOptions) -> Self:
        """Files count by name and size, so that a folder may be moved."""
        digest = hashlib.sha256()
        for source in sources:
            digest.update(f"{os.path.basename(source.path)}\0{source.size}\0".encode("utf-8", "surrogateescape"))
        files = {
            "count": len(sources),
            "bytes": sum(source.size or 0 for source in sources),
            "digest": digest.hexdigest(),
        }
        chosen = {name: getattr(options, name) for name in _DECIDING}
        return cls(files, json.loads(json.dumps(chosen, default=int)))

    def state(self, seed: int, position: Position) -> dict[str, Any]:
        """What `restored` understands: dicts, lists, numbers and text."""
        return {
            "version": _VERSION,
            "seed": seed,
            "epoch": position.epoch,
            "given": position.given,
            "next": position.next,
            "buffer": [int(record) for record in position.buffer],
            "files": dict(self.files),
            "options": dict(self.options),
        }

    def restored(self, state: Mapping[str, Any], seed: int | None) -> tuple[int, Position]:
        """The seed and the position that a state says.

        Raises
        ------
        ValueError
            It is none, or that of other files, options or another seed.
        """
        _check_form(state)
        theirs = state["files"]
        if theirs != self.files:
            had, have = (f"{files['count']} files of {files['bytes']} bytes in all" for files in (theirs, self.files))
            how = "others of the same size" if have == had else f"those were {had}, these are {have}"
            raise ValueError(f"the state is that of other files: {how}; pass the files that it was made with")
        for name in _DECIDING:
            if state["options"].get(name) != self.options[name]:
                had, have = state["options"].get(name), self.options[name]
                raise ValueError(f"the state was made with {name}={had!r}, and this is {name}={have!r}; pass the same")
        if seed is not None and seed != state["seed"]:
            raise ValueError(
                f"the state was made with seed={state['seed']}, and this is seed={seed}; pass the same, or none"
            )
        return state["seed"], Position(state["epoch"], state["given"], state["next"], state["buffer"])


def _check_form(state: Mapping[str, Any]) -> None:
    if not isinstance(state, Mapping) or set(state) != _KEYS or state["version"] != _VERSION:
        raise ValueError("this is no state of an iterator of this version: pass what state() gave")
    numbers = [state[name] for name in ("seed", "epoch", "given", "next")]
    buffer, files, options = state["buffer"], state["files"], state["options"]
    sound = all(type(n) is int and n >= 0 for n in numbers) and max(numbers[1:]) <= INT64_MAX
    sound &= isinstance(buffer, list) and all(type(n) is int and n >= 0 for n in buffer)
    if not (sound and len(set(buffer)) == len(buffer) and isinstance(files, dict) and isinstance(options, dict)):
        raise ValueError("the state is damaged: pass what state() gave")
    if set(files) != {"count", "bytes", "digest"} or any(n >= state["next"] for n in buffer):
        raise ValueError("the state is damaged: pass what state() gave")
