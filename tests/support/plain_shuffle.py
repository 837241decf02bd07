"""A shuffle buffer as a person would write it: what the fast one must equal."""

from __future__ import annotations


def plain_buffer(numbers: list[float], records: int, size: int) -> list[int]:
    """A shuffle buffer as a person would write it down."""
    buffer: list[int] = []
    given, draws = [], iter(numbers)
    for record in range(records):
        if len(buffer) < size:
            buffer.append(record)
            continue
        place = int(next(draws) * size)
        given.append(buffer[place])
        buffer[place] = record
    while buffer:
        place = int(next(draws) * len(buffer))
        given.append(buffer[place])
        buffer[place] = buffer[-1]
        buffer.pop()
    return given
