"""Encoded images that several rows share: each is decoded for the first of them, and kept until the last.

Rows have keys instead of the bytes of such images.

Tests: tests/rows/training/test_windows.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import ordered
from tfrecord_io.bytes import Array
from tfrecord_io.columns import int64_array

_MARK = b"\0key\0img"  # no image begins so
_KEY = np.dtype([("mark", "S8"), ("group", "<i8"), ("index", "<i8")])
_groups = count()

Read = Callable[[tuple[int, Any]], tuple[int, Array]]


class SharedImages:
    """Columns of encoded images, which rows name by keys."""

    def __init__(self, columns: Mapping[str, pa.Array]) -> None:
        self.number = next(_groups)
        self.columns = dict(columns)
        self._uses = {name: np.zeros(len(images), np.int64) for name, images in columns.items()}
        self._decoded: dict[tuple[str, int], Array] = {}

    def expect(self, name: str, indices: Array) -> None:
        """Keep each of these images until it was used once more."""
        np.add.at(self._uses[name], indices, 1)

    def keys(self, name: str, indices: Array) -> pa.Array:
        """Keys of these images, of the type of their column."""
        keys = np.empty(len(indices), _KEY)
        keys["mark"], keys["group"], keys["index"] = _MARK, self.number, indices
        offsets = np.arange(len(keys) + 1, dtype=np.int64) * _KEY.itemsize
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(keys)]
        return pa.Array.from_buffers(pa.large_binary(), len(keys), buffers).cast(self.columns[name].type)

    def encoded_image(self, name: str, index: int) -> Any:
        """The bytes of an image; None if it is missing."""
        return self.columns[name][index].as_py()

    def get(self, name: str, index: int) -> Array | None:
        """The pixels of an image that was decoded."""
        return self._decoded.get((name, index))

    def keep(self, name: str, index: int, pixels: Array) -> None:
        """Keep the pixels of an image for further uses."""
        self._decoded[name, index] = pixels

    def use(self, name: str, indices: Array) -> None:
        """Let go of images that were used as often as expected."""
        uses = self._uses[name]
        np.subtract.at(uses, indices, 1)
        for index in indices[uses[indices] <= 0].tolist():
            self._decoded.pop((name, index), None)


Groups = Mapping[int, Any]
"""Owners of `SharedImages` as `images`, by their numbers."""


def resolve_keys(groups: Groups, cells: Sequence[Any]) -> tuple[Array, Array]:
    """The group and index of each cell that is a key; -1 where it is an image."""
    is_key = [cell is not None and len(cell) == _KEY.itemsize and cell.startswith(_MARK) for cell in cells]
    found, rows = np.full((2, len(cells)), -1), np.flatnonzero(is_key)
    keys = np.frombuffer(b"".join(cells[row] for row in rows.tolist()), _KEY)
    known = np.isin(keys["group"], [*groups])
    found[:, rows[known]] = keys["group"][known], keys["index"][known]
    return found[0], found[1]


def encoded_bytes(groups: Groups, name: str, array: pa.Array) -> int:
    """Bytes of the images that cells of a column are, or are keys of."""
    owners, indices = resolve_keys(groups, cells := array.to_pylist())
    size = sum(len(cells[row] or b"") for row in np.flatnonzero(owners < 0).tolist())
    for owner in np.unique(owners[owners >= 0]).tolist():
        images = groups[owner].images.columns[name].take(int64_array(indices[owners == owner]))
        size += images.nbytes
    return int(size)


def decode_shared(
    groups: Groups, name: str, images: list[tuple[int, Any]], read: Read, threads: int
) -> Iterator[tuple[int, Array]]:
    """The number of each image, or key of one, and its pixels; an image is decoded once for all of its uses."""
    owners, indices = resolve_keys(groups, [data for _, data in images])
    places = list(zip(owners.tolist(), indices.tolist(), strict=True))
    decoded: dict[Any, Array] = {}  # by place; by number where a cell is an image
    wanted: dict[Any, tuple[int, Any]] = {}
    for (row, data), (owner, index) in zip(images, places, strict=True):
        place = row if owner < 0 else (owner, index)
        if place in decoded or place in wanted:
            continue
        pixels = None if owner < 0 else groups[owner].images.get(name, index)
        if pixels is not None:
            decoded[place] = pixels
        else:
            wanted[place] = row, data if owner < 0 else groups[owner].images.encoded_image(name, index)
    calls = (partial(read, item) for item in wanted.values())
    for place, (_, pixels) in zip(wanted, ordered(calls, min(threads, len(wanted)), "images"), strict=True):
        decoded[place] = pixels
        if isinstance(place, tuple):
            groups[place[0]].images.keep(name, place[1], pixels)
    for (row, _), (owner, index) in zip(images, places, strict=True):
        yield row, decoded[row if owner < 0 else (owner, index)]
    for owner in np.unique(owners[owners >= 0]).tolist():
        groups[owner].images.use(name, indices[owners == owner])
