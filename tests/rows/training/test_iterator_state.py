"""Tests of rows/training/iterator_state.py: the layout of a state, without an iterator."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tfrecord_io.rows.training import iterator_state
from tfrecord_io.rows.training.iterator_state import IteratorPosition, ReadIdentity, workers_in_state

POSITION = IteratorPosition(epoch=0, delivered=4, next=6, buffer=[3], waiting=[5])


def documented_state() -> dict[str, Any]:
    """The example in the docstring of the module."""
    example = inspect.getdoc(iterator_state) or ""
    state: dict[str, Any] = ast.literal_eval(example[example.index("{") : example.rindex("}") + 1])
    return state


def identity() -> ReadIdentity:
    state = documented_state()
    return ReadIdentity(state["files"], state["options"])


def test_the_documented_state_is_read() -> None:
    assert identity().read_state(documented_state(), None) == (5, POSITION)
    assert workers_in_state(documented_state()) == 1


@pytest.mark.parametrize("packs", [True, False])
def test_states_have_the_documented_layout(packs: bool) -> None:
    expected, position = documented_state(), POSITION
    if not packs:
        del expected["held"], expected["options"]["pack"]
        position = IteratorPosition(epoch=0, delivered=4, next=6, buffer=[3], waiting=[])
    read = ReadIdentity(expected["files"], expected["options"])
    state = read.state(5, position)
    assert state == expected
    assert read.read_state(state, 5) == (5, position)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("given"), "not a state of an iterator of this version"),
        (lambda state: state.update(version=1), "not a state of an iterator of this version"),
        (lambda state: state.update(delivered=4), "not a state of an iterator of this version"),
        (lambda state: state.update(given=-1), "the state is damaged"),
        (lambda state: state.update(held=[6]), "the state is damaged"),
        (lambda state: state.update(held=[3]), "the state is damaged"),
        (lambda state: state["files"].update(count=2), "that of other files"),
        (lambda state: state["files"].update(selections="other"), "other rows of these files"),
        (lambda state: state["options"].update(batch_size=3), "batch_size=3, and this is batch_size=2"),
        (lambda state: state["options"].update(left_out="digest"), "another on_error"),
        (lambda state: state.update(seed=6), "seed=6, and this is seed=5"),
    ],
)
def test_other_states_are_refused(change: Callable[[dict[str, Any]], object], message: str) -> None:
    state = copy.deepcopy(documented_state())
    change(state)
    with pytest.raises(ValueError, match=message):
        identity().read_state(state, 5)
