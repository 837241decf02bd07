"""The order of a shuffle buffer, decided by a seed alone.

The buffer is that of ``tf.data.Dataset.shuffle``: it is filled with the first records; each record given is a uniform draw from
it, and the next record read takes the place of the one given; at the end the rest is drawn. Records are only numbers
here, so that the order depends neither on their content nor on how many of them are handled at a time.
"""

from __future__ import annotations

import numpy as np

from tfrecord_io.engine.contract import Array

_FILES, _RECORDS = 0, 1  # what a stream of random numbers is for
_SORTED_FAST = 2**16  # NumPy sorts 16-bit numbers by radix


class Draws:
    """The random numbers of one epoch, one for each record given.

    The n-th number does not depend on the ones that were taken before: one may begin anywhere.

    Parameters
    ----------
    seed, epoch, worker : int
    begin : int
        How many numbers to pass over.
    """

    def __init__(self, seed: int, epoch: int, worker: int, begin: int = 0) -> None:
        bits = np.random.PCG64(np.random.SeedSequence([seed, epoch, worker, _RECORDS]))
        bits.advance(begin)
        self._numbers = np.random.Generator(bits)

    def take(self, count: int) -> Array:
        """The next numbers, uniform in [0, 1)."""
        return self._numbers.random(count)


def permutation(count: int, seed: int, epoch: int) -> list[int]:
    """The order of files in an epoch.

    Examples
    --------
    >>> sorted(permutation(5, seed=0, epoch=0))
    [0, 1, 2, 3, 4]
    """
    bits = np.random.PCG64(np.random.SeedSequence([seed, epoch, _FILES]))
    order: list[int] = np.argsort(np.random.Generator(bits).random(count), kind="stable").tolist()
    return order


def exchange(numbers: Array, size: int) -> tuple[Array, Array]:
    """Draw from a full buffer, a new record taking the place of each one given.

    Records are numbered by where they stand: those in the buffer from 0 to `size` - 1, the new ones from `size` on.

    Parameters
    ----------
    numbers : float64 ndarray
        One for each draw, in [0, 1).
    size : int
        Of the buffer.

    Returns
    -------
    given : int64 ndarray
        The record of each draw.
    buffer : int64 ndarray of shape [size]
        The record in each place afterwards.

    Examples
    --------
    >>> given, buffer = exchange(np.array([0.5, 0.5, 0.0]), 2)
    >>> given.tolist(), buffer.tolist()
    ([1, 2, 0], [4, 3])
    """
    places = places_of(numbers, size)
    buffer = np.arange(size)
    if not len(places):
        return np.empty(0, np.int64), buffer
    # In each place stands what the last draw of that place let in, so draws are sorted by place, in their order within one.
    order = np.argsort(places.astype(np.uint16) if size <= _SORTED_FAST else places, kind="stable")
    by_place = places[order]
    first = np.concatenate([[True], by_place[1:] != by_place[:-1]])
    given = np.empty(len(places), np.int64)
    given[order] = np.where(first, by_place, size + np.concatenate([[0], order[:-1]]))
    last = np.concatenate([first[1:], [True]])
    buffer[by_place[last]] = size + order[last]
    return given, buffer


def places_of(numbers: Array, size: int) -> Array:
    """The places in a buffer that numbers in [0, 1) mean."""
    return np.minimum((numbers * size).astype(np.int64), size - 1)


def drain(numbers: Array, size: int) -> tuple[list[int], list[int]]:
    """Draw from a buffer that no new records come to; the last one takes the place of each one given.

    Parameters
    ----------
    numbers : float64 ndarray
        One for each draw, at most `size`.
    size : int
        How many records are in the buffer.

    Returns
    -------
    given, left : list of int
        Places in the buffer as it was: of the record of each draw, and of those that are left, in their order.

    Examples
    --------
    >>> drain(np.array([0.0, 0.0]), 3)
    ([0, 2], [1])
    """
    left = list(range(size))
    given = []
    for place in (numbers * np.arange(size, size - len(numbers), -1)).astype(np.int64).tolist():
        place = min(place, len(left) - 1)
        given.append(left[place])
        last = left.pop()
        if place < len(left):
            left[place] = last
    return given, left
