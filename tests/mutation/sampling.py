"""An even choice of some mutants of many."""

from __future__ import annotations


def is_sampled(number: int, count: int, most: int) -> bool:
    """Whether the mutant with this number, of `count`, is among the `most` that are run."""
    return count <= most or number * most // count != (number - 1) * most // count
