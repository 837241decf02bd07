"""Tests of rows/training/mixture_choices.py: sequences of choices, without rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tfrecord_io.rows.training.mixture_choices import Choices

WEIGHTS = (0.5, 0.3, 0.2)


def drawn(choices: Choices, rows: list[int], begin: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Choices and their ordinals."""
    blocks = choices.draw(rows, begin, end)
    return [pair for chosen, ordinals in blocks for pair in zip(chosen.tolist(), ordinals.tolist(), strict=True)]


def test_choices_follow_the_weights_and_the_seed() -> None:
    counts = Choices(WEIGHTS, 5, "never").counts(100_000)
    assert np.abs(counts / 100_000 - WEIGHTS).max() < 0.01
    assert Choices(WEIGHTS, 5, "never").counts(100_000).tolist() == counts.tolist()
    assert Choices(WEIGHTS, 6, "never").counts(100_000).tolist() != counts.tolist()
    assert Choices(WEIGHTS, 5, "never", worker=1).counts(100_000).tolist() != counts.tolist()


@pytest.mark.parametrize("begin", [1, 77, 2000])
def test_a_position_is_enough_to_go_on(begin: int) -> None:
    choices = Choices(WEIGHTS, 5, "never")
    whole = drawn(choices, [9, 9, 9], 0, 3000)
    assert whole[begin:] == drawn(choices, [9, 9, 9], begin, 3000)
    for part in range(3):
        assert [ordinal for chosen, ordinal in whole if chosen == part] == [*range(choices.counts(3000)[part])]


def test_the_first_part_that_ends_ends_the_epoch() -> None:
    rows = drawn(Choices(WEIGHTS, 5, "first"), [4, 400, 400])
    following = drawn(Choices(WEIGHTS, 5, "never"), [4, 400, 400], 0, len(rows) + 1)
    assert following[:-1] == rows
    assert following[-1] == (0, 4)  # the row that the part does not have


def test_all_parts_are_complete_at_the_end_of_an_epoch() -> None:
    sizes = [4, 40, 4]
    rows = drawn(Choices(WEIGHTS, 5, "all"), sizes)
    assert rows[-1] in [(part, size - 1) for part, size in enumerate(sizes)]
    assert set(rows) >= {(part, ordinal) for part, size in enumerate(sizes) for ordinal in range(size)}
    assert Choices(WEIGHTS, 5, "all").length(sizes) == len(rows)


@pytest.mark.parametrize(
    ("stop", "error", "message"),
    [("never", TypeError, "no end"), ("all", ValueError, "dataset 1 of the mixture has no rows")],
)
def test_epochs_without_a_length_are_refused(stop: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Choices(WEIGHTS, 5, stop).length([4, 0, 4] if stop == "all" else [4, 4, 4])
    assert Choices(WEIGHTS, 5, "first").length([0, 0, 0]) == 0
