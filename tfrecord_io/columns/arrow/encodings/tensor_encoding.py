"""The base class of tensor encodings, and functions that several encodings share.

An encoding turns tensors into the bytes or values of cells (`encode`) and back (`decode`).

Tests: tests/columns/arrow/encodings, by the suite in tfrecord_io/testing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from tfrecord_io.base import Expansion
from tfrecord_io.bytes import Array, Dtype, Kind
from tfrecord_io.columns.arrow.buffers import offsets_of
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.arrow.tensor_values import TensorValues, first_invalid, misfits
from tfrecord_io.columns.schema.tensor_types import EncodingRules, Shape, encoding_rules, written_encodings


class DecodedCells(NamedTuple):
    """Cells of a column, decoded."""

    data: Array  # uint8: the values of all cells, C order, little-endian, no gaps
    sizes: Array  # int64: bytes of each cell in it
    shapes: Array | None = None  # int64 [cells, rank], where the encoding is self-describing

    def check(self, element: Dtype) -> DecodedCells:
        """Return the cells; RowFault for bytes that are not values of the dtype, see `first_invalid`."""
        at = first_invalid(element, self.data)
        if at < 0:
            return self
        offsets = offsets_of(self.sizes)
        row = int(offsets.searchsorted(at, side="right")) - 1
        reason = f"the bytes at {at - offsets[row]} are not a valid {element.name}"
        got = self.data[at : at + element.itemsize].tobytes().hex()
        raise RowFault(row, reason, expected=element.name, got=got)


class TensorEncoding(EncodingRules):
    """A tensor encoding: a subclass, and a row of `tfrecord_io.columns.schema.tensor_types.TENSOR_ENCODINGS`.

    A cell of a column of numbers is a tensor of shape ``()``, one of a column of lists has a shape ``(n,)``. Null rows,
    companion features and the location of errors are up to the caller.
    """

    @abstractmethod
    def encode(self, cells: TensorValues) -> tuple[Array, Array]:
        """The values of the feature, and the offsets that cut them into cells.

        Returns
        -------
        (ndarray, ndarray of int64)
            Bytes (uint8) and the offset of each cell's value in them; or, if a cell has many values, numbers of the
            dtype of `cells` and the offset of each cell's first.
        """

    @abstractmethod
    def decode(self, values: Array, offsets: Array, element: Dtype, shape: Shape) -> DecodedCells:
        """Decode the cells of a column.

        Parameters
        ----------
        values : ndarray
            The values of the feature: uint8, or int64 or float32 as ``kind(element)`` says.
        offsets : ndarray
            Where each cell begins in `values`, from 0 on, and the end of the last.
        element, shape
            Dtype and shape of the column's tensors; None is an unknown dimension.

        Raises
        ------
        RowFault
            A cell cannot be decoded, or states another dtype or shape; ``row`` is its index.
        """

    def encode_text(self, cells: Sequence[Any]) -> tuple[Array, Array]:
        """As `encode`, for object arrays of bytes, of any shape. Only if the encoding stores text."""
        raise NotImplementedError

    def decode_text(self, values: Array, offsets: Array, shape: Shape) -> list[list[bytes]]:
        """As `decode`: the text or bytes of each cell. Only if the encoding stores text."""
        raise NotImplementedError

    @staticmethod
    def join(pieces: Sequence[bytes]) -> tuple[Array, Array]:
        """Return the bytes of all pieces, and their offsets."""
        offsets = offsets_of(np.fromiter(map(len, pieces), np.int64, len(pieces)))
        return np.frombuffer(b"".join(pieces), np.uint8), offsets

    @staticmethod
    def reserve(row: int, size: int, reason: str) -> None:
        """Take so many bytes for a value that expands; RowFault where `Limits.expansion_bytes` has no room for them."""
        expansion = Expansion.current()
        if not expansion.take(size):
            advice = expansion.advice(size)
            text = expansion.excess(reason)
            raise RowFault(row, text, expected=expansion.room, got=size, hint=advice, of_memory=True)

    def for_kind(self, kind: Kind, element: Dtype) -> TensorEncoding:
        """The encoding of records whose feature is of this type; itself, if it is not adaptive."""
        return self

    @staticmethod
    def of(name: str) -> TensorEncoding:
        """Find an encoding by its name; ValueError, with the valid names, if it is unknown."""
        return tensor_encoding(name)

    @staticmethod
    def written_names() -> list[str]:
        """The names of the encodings that columns can be written with."""
        return written_encodings()

    def __repr__(self) -> str:
        return f"<tensor encoding {self.name}>"


def tensor_encoding(name: str) -> TensorEncoding:
    """Find an encoding by its name; see `encoding_rules`."""
    return cast(TensorEncoding, encoding_rules(name))


# ---- bytes values that are a header and then the values


def prepend_headers(cells: TensorValues, header: Callable[[tuple[int, ...]], bytes]) -> tuple[Array, Array]:
    """Put a header before each cell's values, made for the shape of the cell."""
    if isinstance(cells.shapes, tuple):
        front = np.frombuffer(header(cells.shapes), np.uint8)
        count = len(cells)
        size = (int(cells.offsets[-1]) - int(cells.offsets[0])) // max(count, 1)
        table = np.empty((count, len(front) + size), np.uint8)
        table[:, : len(front)] = front
        table[:, len(front) :] = cells.data.reshape(count, size)
        return table.reshape(-1), np.arange(count + 1, dtype=np.int64) * table.shape[1]
    data, at, pieces = cells.data.data, cells.offsets.tolist(), []
    for i, shape in enumerate(cells.shapes.tolist()):
        pieces.append(b"".join((header(tuple(shape)), data[at[i] : at[i + 1]])))
    return TensorEncoding.join(pieces)


def cells_of_one_header(
    values: Array, offsets: Array, header: bytes, size: int, shape: tuple[int, ...]
) -> DecodedCells | None:
    """The cells, if each value is this header, which states a shape, and `size` bytes; else None."""
    front, count = np.frombuffer(header, np.uint8), len(offsets) - 1
    if np.any(np.diff(offsets) != len(front) + size):
        return None
    table = values[int(offsets[0]) : int(offsets[-1])].reshape(count, len(front) + size)
    if np.any(table[:, : len(front)] != front):
        return None
    shapes = np.tile(np.array(shape, np.int64), (count, 1))
    return DecodedCells(table[:, len(front) :].flatten(), np.full(count, size, np.int64), shapes)


def check_shapes(shapes: Array | Sequence[tuple[int, ...]], shape: Shape, what: str) -> Array:
    """The shapes that the cells state, as a matrix; RowFault for the first that is not of the column's shape."""
    ranks = np.array([shapes.shape[1]] if isinstance(shapes, np.ndarray) else list(map(len, shapes)))
    bad = np.broadcast_to(ranks != len(shape), len(shapes))
    if not bad.any():
        matrix = np.asarray(shapes, np.int64).reshape(len(shapes), len(shape))
        bad = misfits(matrix, shape)
        if not bad.any():
            return matrix
    at = int(bad.argmax())
    got = tuple(int(axis) for axis in shapes[at])
    raise RowFault(at, f"{what} has the shape {got}, the column {shape}", expected=str(shape), got=str(got))


def refuse_widening(row: int, size: int) -> None:
    """Take `size` bytes for text in cells of one width; RowFault if `Limits.expansion_bytes` has no room for them."""
    TensorEncoding.reserve(row, size, f"its text takes {size} bytes in the column's width")
