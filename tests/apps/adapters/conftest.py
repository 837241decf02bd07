"""Fixtures of the tests of adapters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrecord_io as tfr
from column_indexes_used import column_indexes_are_used  # noqa: F401
from records import example, int64s, written


@pytest.fixture
def numbers(tmp_path: Path) -> tfr.Dataset:
    """61 rows in five files."""
    for file, rows in enumerate([range(20), range(20, 21), range(21, 40), range(40, 40), range(40, 61)]):
        written(tmp_path / f"{file}.tfrecord", [example(x=int64s(n)) for n in rows])
    return tfr.dataset(tmp_path, schema={"x": "int64"})


@pytest.fixture
def forgotten_state() -> Iterator[None]:
    """Forget the state of accelerate that a Trainer or loader makes: it calls each process forked later the first."""
    state = pytest.importorskip("accelerate.state")
    yield
    state.AcceleratorState._reset_state(reset_partial_state=True)
    state.GradientState._reset_state()
