"""Compute the order in which a shuffle buffer delivers records, from a seed alone.

The buffer works as in ``tf.data.Dataset.shuffle``: it is filled with the first records; each record delivered is drawn
uniformly from it and replaced by the next record read; at the end the remaining records are drawn. Records are only
numbers here, so that the order depends neither on their content nor on how many of them are handled at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

import numpy as np

from tfrecord_io.bytes import Array, get_engine

_SORTED_FAST = 2**16  # NumPy sorts 16-bit numbers by radix


class Purpose(IntEnum):
    """What a stream of random numbers is for: the last part of its seed. States depend on the numbers.

    NumPy pads seeds with zeros, so that `ROW_ORDER` of epoch 0 has the stream of `FILE_ORDER` of another epoch; no
    read uses both.
    """

    FILE_ORDER = 0
    BUFFER_DRAWS = 1
    CHOICES = 2  # of the parts of a mixture
    GROUP_ORDER = 3  # the rows of a group of a balanced mixture
    ROW_ORDER = 4  # rows that are read by number


def random_stream(*seed: int, begin: int = 0) -> np.random.Generator:
    """Random numbers of a seed, whose last part is their `Purpose`, from number `begin` on."""
    bits = np.random.PCG64(np.random.SeedSequence(seed))
    bits.advance(begin)
    return np.random.Generator(bits)


def random_numbers(seed: int, epoch: int, worker: int, begin: int = 0) -> np.random.Generator:
    """Draws of one epoch: one uniform number in [0, 1) for each record, from number `begin` on."""
    return random_stream(seed, epoch, worker, Purpose.BUFFER_DRAWS, begin=begin)


def permutation(count: int, seed: int, epoch: int) -> list[int]:
    """Order of files in an epoch.

    >>> sorted(permutation(5, seed=0, epoch=0))
    [0, 1, 2, 3, 4]
    """
    order: list[int] = np.argsort(random_stream(seed, epoch, Purpose.FILE_ORDER).random(count), kind="stable").tolist()
    return order


def stable_argsort(numbers: Array, end: int) -> Array:
    """Indices that sort numbers from 0 to `end` - 1; equal numbers keep their order."""
    return np.argsort(numbers.astype(np.uint16) if end <= _SORTED_FAST else numbers, kind="stable")


def exchange(numbers: Array, size: int) -> tuple[Array, Array]:
    """Draw from a full buffer by numbers in [0, 1), replacing each record drawn by a new one.

    Records are identified by index: those in the buffer from 0 to `size` - 1, the new ones from `size` on. Returns the
    record of each draw, and the record in each slot afterwards, as int64.

    >>> drawn, buffer = exchange(np.array([0.5, 0.5, 0.0]), 2)
    >>> drawn.tolist(), buffer.tolist()
    ([1, 2, 0], [4, 3])
    """
    return get_engine().exchange([numbers], np.array([size]))


def drain(numbers: Array, size: int) -> tuple[list[int], list[int]]:
    """Draw from a buffer that receives no new records; its last record moves into the slot of each record drawn.

    There is a number in [0, 1) for each draw, at most `size`. Returns slots of the original buffer: of the record of
    each draw, and of the remaining records, in their order.

    >>> drain(np.array([0.0, 0.0]), 3)
    ([0, 2], [1])
    """
    remaining = list(range(size))
    drawn = []
    for slot in (numbers * np.arange(size, size - len(numbers), -1)).astype(np.int64).tolist():
        slot = min(slot, len(remaining) - 1)
        drawn.append(remaining[slot])
        last = remaining.pop()
        if slot < len(remaining):
            remaining[slot] = last
    return drawn, remaining


def buffer_after(draws: int, size: int, numbers: Callable[[int], np.random.Generator]) -> Array:
    """Records in a full buffer after some draws: int64, by slot, numbered as read.

    `numbers` gives the random numbers of the draws, from one of them on. Only the last draws are repeated, until each
    slot was drawn from: about ``size * log(size)`` of them.

    >>> buffer_after(3, 2, lambda begin: random_numbers(0, 0, 0, begin)).tolist()
    [4, 3]
    """
    repeated = min(draws, 4 * size)
    while True:
        begin = draws - repeated
        buffer = exchange(numbers(begin).random(repeated), size)[1]
        if repeated == draws or buffer.min(initial=size) >= size:
            return np.where(buffer < size, buffer, buffer + begin)
        repeated = min(draws, 2 * repeated)
