"""The content of small objects of a store, which a call reads once, and uses several times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tfrecord_io.base import LIMITS, MIB
from tfrecord_io.store.filesystem.google import is_encoded
from tfrecord_io.store.read.source import HeldContent, Source

_HELD_BYTES = 256 * MIB  # of small objects, so that a call reads each once


def is_small(source: Source) -> bool:
    """True if one request for the whole object costs no more than a range request."""
    is_object = source.remote is not None and not is_encoded(source.info)
    return is_object and source.span is None and source.size is not None and source.size <= LIMITS.whole_object_bytes


def hold(sources: Iterable[Source]) -> list[Source]:
    """Let sources hold the content of small objects in memory, up to `_HELD_BYTES` in all."""
    holding, room = [], _HELD_BYTES
    for source in sources:
        if is_small(source) and (room := room - (source.size or 0)) >= 0:
            source = replace(source, held=HeldContent())
        holding.append(source)
    return holding


_NOTHING = HeldContent()
_NOTHING.drop()


def drop_held_content(source: Source) -> Source:
    """A copy of the source without held content: each read finds out whether the object was replaced."""
    return source if source.remote is None else replace(source, held=_NOTHING)
