"""Save a position in an order, with which any number of ranks and workers can go on.

A state of version 3 has what `rows/training/iterator_state.py` says of "seed", "epoch", "files" and "options", and::

    {
        "version": 3,
        "parts": [4, 1],  # lanes and turns
        "step": 8,  # rows of a step of all ranks, in the run that began
        "rows": 1000,  # of an epoch, if they were counted; else None
        "turn": 0,  # of the next step
        "taken": [24],  # positions of each turn that were taken
        # Positions in parts, by their numbers, each with the number of the next row, or batch, of the part.
        "marks": {"2": {"row": 6, "given": 6, "next": 9, "buffer": [5, 7, 8], "epoch": 0}},
    }

All but "marks" is the same in the states of all ranks after a step. Marks save reading a part again from its start.
A state of version 2 that one worker saved is one of a single part.

Tests: tests/rows/training/test_order_state.py and tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfrecord_io.base import LIMITS
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.rows.training.iterator_state import IteratorPosition, ReadIdentity, workers_in_state
from tfrecord_io.rows.training.order import Order, OrderPosition, Seat
from tfrecord_io.rows.training.plan_order import OrderedRead, RowCounts
from tfrecord_io.rows.training.row_source import RowSource

VERSION = 3
_KEYS = {"version", "seed", "epoch", "parts", "step", "rows", "turn", "taken", "marks", "files", "options"}
# Options that may change, as the order does not depend on them.
_FREE = ("worker", "run", "uneven", "drop_last")


def order_state(identity: ReadIdentity, read: OrderedRead, seed: int, position: OrderPosition) -> dict[str, Any]:
    """Save a position as dicts, lists, numbers and text."""
    order = read.order
    marks = {str(part): {"row": row, **_mark(place)} for part, (row, place) in sorted(position.marks.items())}
    return {
        "version": VERSION,
        "seed": seed,
        "epoch": position.epoch,
        "parts": [order.lanes, order.turns],
        "step": order.size,
        "rows": order.rows,
        "turn": position.turn,
        "taken": list(position.taken),
        "marks": marks,
        "files": dict(identity.files),
        "options": {name: value for name, value in identity.options.items() if name not in _free(identity)},
    }


def _free(identity: ReadIdentity) -> tuple[str, ...]:
    """Options of a state that may change; batches that parts make by lengths of lists keep their size."""
    return _FREE if "pack" in identity.options else (*_FREE, "batch_size")


def _mark(position: IteratorPosition) -> dict[str, Any]:
    mark = {"given": position.delivered, "next": position.next, "buffer": [int(record) for record in position.buffer]}
    if position.waiting or position.cut:
        mark |= {"held": [int(record) for record in position.waiting], "cut": position.cut}
    return {**mark, "epoch": position.epoch}


def read_states(
    identity: ReadIdentity,
    source: RowSource,
    states: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    options: IterOptions,
    seat: Seat,
    counts: RowCounts,
) -> tuple[int, OrderedRead | None, IteratorPosition | OrderPosition]:
    """Seed, order and position in a state, or in those of several ranks, of which the most advanced counts.

    The order is None where workers have parts of their own, as in states of version 2 of several workers.
    ValueError for a value that is not a state, or a state of other files, other options or another seed.
    """
    all_states = [states] if isinstance(states, Mapping) else list(states)
    if not all_states:
        raise ValueError("state= is an empty list: pass a state, or those of all ranks")
    is_order = [isinstance(state, Mapping) and state.get("version") == VERSION for state in all_states]
    if not all(is_order):
        if len(all_states) > 1:
            reason = "state= is a list of states, one of them of a worker with files of its own"
            raise ValueError(f"{reason}: pass the state of this worker, or begin with parts=")
        return _read_earlier(identity, all_states[0], options, seat)
    position, marks = None, dict[int, tuple[int, IteratorPosition]]()
    for state in all_states:
        _check(state)
        of_state = _position(state)
        if position is None or (of_state.epoch, of_state.delivered) > (position.epoch, position.delivered):
            position, first = of_state, state
    assert position is not None
    for state in all_states:
        if _order_of(state) != _order_of(first):
            raise ValueError("state= is a list of states of different reads: pass those of one")
        if state["epoch"] != position.epoch and position.delivered:
            epochs = f"epochs {state['epoch']} and {position.epoch}"
            raise ValueError(
                f"state= is a list of states of {epochs}: pass states of one step; where rows are not counted, "
                "uneven= gives all ranks as many steps"
            )
        marks |= _position(state).marks if state["epoch"] == position.epoch else {}
    seed = identity.read_seed(first, options.seed, _free(identity))
    (lanes, turns), rows = first["parts"], first["rows"]
    by_file = _counts(source, counts, rows, lanes * turns, may_read=options.uneven != "keep")
    read = OrderedRead(Order.from_row_count(lanes, turns, first["step"], rows), by_file)
    return seed, read, replace(position, marks=marks, ahead=seat.worker)


def _order_of(state: Mapping[str, Any]) -> list[Any]:
    """What decides the order of a read; ranks that do not shuffle draw seeds that mean nothing."""
    return [state["options"].get("shuffle_buffer") and state["seed"], state["parts"], state["step"]]


def _read_earlier(
    identity: ReadIdentity, state: Mapping[str, Any], options: IterOptions, seat: Seat
) -> tuple[int, OrderedRead | None, IteratorPosition | OrderPosition]:
    """A state of version 2: one worker's is of a single part, on which others can go on."""
    if workers_in_state(state) != 1 or seat.is_alone or options.arranges:
        seed, place = identity.read_state(state, options.seed)
        return seed, None, place
    seed, place = identity.read_state(state, options.seed, (*_FREE, "batch_size"))
    position = OrderPosition(place.epoch, 0, (place.delivered,), {0: (place.delivered, place)}, ahead=seat.worker)
    return seed, OrderedRead(Order(1, 1, int(state["options"]["batch_size"]))), position


def _counts(source: RowSource, counts: RowCounts, rows: int | None, parts: int, may_read: bool) -> list[int] | None:
    """The counts of files, of which a state counted the rows; ValueError if they are other ones, or not known."""
    if rows is None:
        return None
    by_file = counts.of(source, may_read)
    if by_file is None and parts == 1:
        row_counts = source.count_rows()
    elif by_file is None:
        advice = "make an index with `tfr index`, or pass uneven='drop', which counts them"
        raise ValueError(f"the state counts {rows} rows, but nothing states how many these files have; {advice}")
    else:
        row_counts = sum(by_file)
    if row_counts != rows:
        raise ValueError(f"the state is that of {rows} rows, and these files have {row_counts}: pass the same files")
    return by_file


def _position(state: Mapping[str, Any]) -> OrderPosition:
    marks = {int(part): (mark["row"], IteratorPosition.from_saved(mark)) for part, mark in state["marks"].items()}
    return OrderPosition(state["epoch"], state["turn"], tuple(state["taken"]), marks)


def _check(state: Mapping[str, Any]) -> None:
    """Raise ValueError for a state that is damaged."""
    valid = set(state) == _KEYS and isinstance(state["parts"], list) and isinstance(state["taken"], list)
    valid = (
        valid
        and isinstance(state["marks"], dict)
        and all(isinstance(state[name], dict) for name in ("files", "options"))
    )
    if valid:
        numbers = [*state["parts"], state["step"], state["turn"], state["epoch"], *state["taken"], state["rows"] or 0]
        valid = all(type(n) is int and 0 <= n <= LIMITS.INT64_MAX for n in [*numbers, *_numbers(state["marks"])])
        valid = valid and type(state["seed"]) is int and state["seed"] >= 0
        valid = valid and len(state["parts"]) == 2 and min(*state["parts"], state["step"]) > 0
        valid = valid and len(state["taken"]) == state["parts"][1] and state["turn"] < state["parts"][1]
    if not valid:
        raise ValueError("the state is damaged: pass the result of state()")


def _numbers(marks: Mapping[str, Any]) -> list[Any]:
    """All numbers of marks; a value that is none where a mark is damaged."""
    numbers = list[Any]()
    for part, mark in marks.items():
        names = {"row", "epoch", "given", "next", "buffer"}
        if not part.isdecimal() or not isinstance(mark, dict) or set(mark) - {"held", "cut"} != names:
            return [None]
        lists = [mark["buffer"], mark.get("held", [])]
        if not all(isinstance(values, list) for values in lists):
            return [None]
        numbers += [mark["row"], mark["epoch"], mark["given"], mark["next"], mark.get("cut", 0), *lists[0], *lists[1]]
    return numbers
