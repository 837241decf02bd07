"""Look at the first records of a file and say how columns of bytes can be read: nothing is applied by itself.

In go record batches of the inferred types; out come `Suggestion`s: images and other files, JSON, protobuf messages,
serialized tensors, ``.npy`` arrays, or raw numbers whose count is the product of integer features in every record.
Tests: tests/read/test_type_suggestions.py.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import chain, combinations
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import Expansion, printable
from tfrecord_io.bytes import Array, Dtype, ForeignFile
from tfrecord_io.columns import ArrayBuffers
from tfrecord_io.errors import DecodeError

_MOST_SIZES = 12  # integer features that are tried as sizes
_MOST_TENSORS = 50  # values that are parsed as serialized tensors
_TENSOR_BYTES = 1 << 20  # of one
_MOST_PARSED = 50  # values that are parsed as JSON or messages
_LEAST_MESSAGE = 8  # bytes of a message that is told from others
_MOST_NUMBER, _MOST_FIELDS = 1000, 8  # of fields, that are likely and that are shown
_HEAD_BYTES = 512
_LEAST_RECORDS = 3  # with a number of channels that no feature states
_LEAST_LENGTHS = 3  # different numbers of values that confirm features without a name of a size
# The order of dimensions, by the last word of a feature's name.
_WORDS = (
    ("frames", "num_frames", "n_frames", "time", "steps"),
    ("height", "h", "rows", "n_rows", "num_rows", "ysize", "size_y", "dim_0", "dim0"),
    ("width", "w", "cols", "columns", "n_cols", "num_cols", "xsize", "size_x", "dim_1", "dim1"),
    ("depth", "d", "channels", "channel", "c", "bands", "n_channels", "num_channels", "dim_2", "dim2"),
)
_SHAPE_WORDS = ("shape", "size", "sizes", "dims", "dim", "dimensions")
_KNOWN_WORDS = frozenset(chain(*_WORDS, _SHAPE_WORDS))
_CHANNELS = (3, 4)  # of an image whose file has no feature with their number


@dataclass(frozen=True, slots=True)
class Suggestion:
    """How a column of bytes, or of numbers, can be read as what it is.

    Attributes
    ----------
    column : str
    reason : str
        What the sampled records show.
    schema : str or None
        The field as a line of Python; None if no field reads it.
    type : str or None
        The same as a type for ``--type`` in a shell, if there is one.
    others : tuple of str
        Further fields that fit every sampled record: the bytes do not decide between them.
    """

    column: str
    reason: str
    schema: str | None = None
    type: str | None = None
    others: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Describe the finding, and how to read the column: a line for people, one of Python, and one for a shell."""
        lines = [f"'{printable(self.column)}': {printable(self.reason)}"]
        if self.schema is not None:
            lines.append(f"  tfr.dataset(…, schema_overrides={{{self.column!r}: {self.schema}}})")
        if self.type is not None:
            lines.append(f"  --type {shlex.quote(f'{self.column}={self.type}')}")
        if self.others:
            lines.append(f"  the bytes fit as well: {printable(', '.join(self.others))}")
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """The suggestion in types of JSON."""
        return {**asdict(self), "others": list(self.others)}


class TypeSample:
    """The first rows of a read, which show what columns can be read as.

    >>> rows = {"image_raw": [bytes(6), bytes(12)], "height": [1, 2], "width": [2, 2], "depth": [3, 3]}
    >>> sample = TypeSample()
    >>> sample.add(pa.RecordBatch.from_pydict(rows))
    >>> suggestion, = sample.suggestions()
    >>> suggestion.schema, suggestion.type
    ("tfr.tensor('uint8', ('height', 'width', 'depth'))", 'tensor(uint8,(height,width,depth))')
    """

    ROWS = 1000  # to look at

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self._rows = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the next rows, unless there are enough."""
        if self._rows < self.ROWS:
            self._batches.append(batch)
            self._rows += len(batch)

    def suggestions(self) -> tuple[Suggestion, ...]:
        """The columns that can be read as something better, with one suggestion each."""
        if not self._rows:
            return ()
        table = pa.Table.from_batches(self._batches).slice(0, self.ROWS)
        sizes = _Sizes.from_table(table)
        return tuple(
            suggestion
            for field in table.schema
            if (suggestion := _suggest(field, table[field.name].combine_chunks(), sizes)) is not None
        )


def _suggest(field: pa.Field, column: pa.Array, sizes: _Sizes) -> Suggestion | None:
    if t.is_binary(field.type) or t.is_large_binary(field.type):
        found = _suggest_format(field.name, column) or sizes.suggestion(field.name, column, is_bytes=True)
        return found or _suggest_message(field.name, column)
    if t.is_string(field.type) or t.is_large_string(field.type):
        return _suggest_json(field.name, column)
    is_list = t.is_list(field.type) or t.is_large_list(field.type)
    if is_list and (t.is_float32(field.type.value_type) or t.is_int64(field.type.value_type)):
        return sizes.suggestion(field.name, column, is_bytes=False)
    return None


def _suggest_format(name: str, column: pa.Array) -> Suggestion | None:
    """A suggestion for values that all begin as files of one format, or are serialized tensors."""
    import pyarrow.compute as pc

    values = column.filter(pc.greater(pc.binary_length(column), 0))
    if not len(values):
        return None
    heads = pc.binary_slice(values, 0, _HEAD_BYTES).to_pylist()
    kinds = set(map(ForeignFile.looks_like, heads))
    kind = kinds.pop() if len(kinds) == 1 else None
    records = f"{len(values)} sampled records"
    if all(head.startswith(b"\x93NUMPY") for head in heads):
        return _self_describing(name, values, "npy", f".npy arrays in {records}")
    if kind is not None and kind.endswith(" image"):
        return Suggestion(name, f"each of {records} has {kind}", "tfr.image()")
    if (found := _self_describing(name, values, "tensor_proto", f"serialized tensors in {records}")) is not None:
        return found
    if kind in (None, ForeignFile.ZEROS, "plain text", "UTF-16 text"):
        return None
    return Suggestion(name, f"each of {records} has {kind}")


def _suggest_json(name: str, column: pa.Array) -> Suggestion | None:
    """A suggestion for texts that are all objects or arrays of JSON."""
    values = column.drop_null()
    for scalar in values[:_MOST_PARSED]:
        text = scalar.as_py()
        if not text.lstrip().startswith(("{", "[")):
            return None
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return None
    return Suggestion(name, f"JSON in {len(values)} sampled records") if len(values) else None


def _suggest_message(name: str, column: pa.Array) -> Suggestion | None:
    """A suggestion for values that all are protobuf messages, such as Examples inside a record."""
    values = column.drop_null()
    numbers: set[int] = set()
    for scalar in values[:_MOST_PARSED]:
        found = _field_numbers(scalar.as_py())
        if not found:
            return None
        numbers |= found
    if not numbers:
        return None
    shown = ", ".join(map(str, sorted(numbers)[:_MOST_FIELDS]))
    return Suggestion(name, f"protobuf messages in {len(values)} sampled records, with the fields {shown}")


def _field_numbers(value: bytes) -> set[int] | None:
    """The numbers of the fields of a protobuf message; None if bytes are none, or too few to tell."""
    numbers, at = set[int](), 0
    while at < len(value):
        tag, at = _varint(value, at)
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= _MOST_NUMBER or wire_type not in (0, 1, 2, 5):
            return None
        if wire_type == 0:
            _, at = _varint(value, at)
        elif wire_type == 2:
            length, at = _varint(value, at)
            at += length
        else:
            at += 8 if wire_type == 1 else 4
        numbers.add(number)
    return numbers if at == len(value) and len(value) >= _LEAST_MESSAGE else None


def _varint(value: bytes, at: int) -> tuple[int, int]:
    """A number in base 128 and where it ends; behind the end if it does not end."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(value):
            break
        number |= (value[at] & 0x7F) << shift
        at += 1
        if value[at - 1] < 0x80:
            return number, at
    return 0, len(value) + 1


def _self_describing(name: str, values: pa.Array, encoding: str, reason: str) -> Suggestion | None:
    """A suggestion for arrays that state dtype and shape themselves; None if a value is no such array."""
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for scalar in values[:_MOST_TENSORS]:
        value = scalar.as_py()
        found = _npy(value) if encoding == "npy" else _tensor_proto(value)
        if found is None:
            return None
        seen.add(found)
    dtypes, shapes = {dtype for dtype, _ in seen}, {shape for _, shape in seen}
    if len(dtypes) > 1 or len({len(shape) for shape in shapes}) > 1:
        return Suggestion(name, f"{reason}, of several dtypes or numbers of dimensions")
    shape = tuple(axis.pop() if len(axis) == 1 else None for axis in map(set, zip(*shapes, strict=True)))
    return Suggestion(name, reason, f"tfr.tensor({dtypes.pop()!r}, {shape}, encoding={encoding!r})")


def _npy(value: bytes) -> tuple[str, tuple[int, ...]] | None:
    from io import BytesIO

    from tfrecord_io.bytes import Dtype, NpyHeader

    try:
        dtype, _, shape = NpyHeader.read(BytesIO(value))
        return Dtype.name_of(dtype), shape
    except (DecodeError, ValueError, EOFError):
        return None


def _tensor_proto(value: bytes) -> tuple[str, tuple[int, ...]] | None:
    from tfrecord_io.bytes import ParsedTensor

    if len(value) < 4 or value[0] != 0x08:  # the field of the dtype, which every writer of tensors has first
        return None
    with suppress(DecodeError):
        tensor = ParsedTensor.parse(value, expansion=Expansion(_TENSOR_BYTES, len(value)))
        return tensor.name, tensor.shape
    return None


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The integer features of a sample: single values, and lists that may be shapes."""

    scalars: Mapping[str, Array]
    shapes: Mapping[str, Array]  # int64 [rows, rank]

    @classmethod
    def from_table(cls, table: pa.Table) -> _Sizes:
        scalars, shapes = {}, {}
        for field in table.schema:
            column = table[field.name].combine_chunks()
            if column.null_count or not len(column):
                continue
            if t.is_int64(field.type):
                values = np.asarray(column)
                if values.min() >= 1:
                    scalars[field.name] = values
            elif t.is_list(field.type) and t.is_int64(field.type.value_type) and _last_word(field.name) in _SHAPE_WORDS:
                lengths = ArrayBuffers(column).lengths
                if lengths.min() == lengths.max() and 1 <= lengths[0] <= 6:
                    shapes[field.name] = np.asarray(column.flatten()).reshape(len(column), -1)
        return cls(scalars, shapes)

    def suggestion(self, name: str, column: pa.Array, *, is_bytes: bool) -> Suggestion | None:
        """A suggestion for a column whose numbers are as many as sizes say, in every record that has them."""
        present = np.asarray(column.is_valid())
        if not present.any():
            return None
        lengths = _byte_lengths(column) if is_bytes else ArrayBuffers(column).lengths
        lengths = np.asarray(lengths)[present].astype(np.int64)
        if not lengths.min():
            return None
        found = [*self._fitting(name, lengths, present, is_bytes=is_bytes)]
        if not found:
            return None
        shape, dtypes = found[0]
        names = shape if isinstance(shape, str) else tuple(shape)
        others = [f"{dtype} in place of {dtypes[0]}" for dtype in dtypes[1:]]
        others += [_field_text(more[0], other) for other, more in found[1:]]
        dtype = dtypes[0]
        if not is_bytes:
            dtype = "float32" if t.is_float32(column.type.value_type) else "int64"
            others = [_field_text(dtype, other) for other, _ in found[1:]]
        what = f"raw {dtype}" if is_bytes else f"{dtype} values"
        shape_text = f"whose shape is in '{names}'," if isinstance(names, str) else f"of {' × '.join(map(str, names))}"
        reason = f"{what} {shape_text} in all {len(lengths)} sampled records"
        axes = f"({','.join(map(str, names))})" if isinstance(names, tuple) else names
        return Suggestion(
            name, reason, schema=_field_text(dtype, names), type=f"tensor({dtype},{axes})", others=tuple(others)
        )

    def _fitting(
        self, name: str, lengths: Array, present: Array, *, is_bytes: bool
    ) -> Iterator[tuple[str | tuple[str | int, ...], tuple[str, ...]]]:
        """Shapes whose product, times the size of a number, is the length in every record; the best first."""
        for feature, matrix in sorted(self.shapes.items(), key=lambda item: not _are_siblings(name, item[0])):
            if dtypes := _dtypes(lengths, matrix[present].prod(axis=1), is_bytes=is_bytes):
                yield feature, dtypes
                return
        ranked = {feature: rank for feature in self.scalars if (rank := _rank(feature)) is not None and feature != name}
        has_many_lengths = len(np.unique(lengths)) >= _LEAST_LENGTHS
        features = [*ranked] or ([*self.scalars] if has_many_lengths else [])
        if 2 <= len(features) <= _MOST_SIZES:
            features.sort(key=lambda feature: (ranked.get(feature, 0), not _are_siblings(name, feature)))
            for count in range(min(4, len(features)), 1, -1):
                shapes = [each for each in combinations(features, count) if _is_shape(each, ranked)]
                fitting = [
                    (each, dtypes)
                    for each in shapes
                    if (dtypes := self._fitting_dtypes(each, lengths, present, is_bytes))
                ]
                if fitting:
                    fitting.sort(key=lambda item: sum(not _are_siblings(name, feature) for feature in item[0]))
                    yield from fitting
                    return
                if ranked:
                    yield from self._channel_shapes(shapes, lengths, present, ranked, is_bytes=is_bytes)

    def _channel_shapes(
        self,
        shapes: Sequence[tuple[str, ...]],
        lengths: Array,
        present: Array,
        ranked: Mapping[str, int],
        *,
        is_bytes: bool,
    ) -> Iterator[tuple[tuple[str | int, ...], tuple[str, ...]]]:
        """Shapes of height and width with a number of channels that no feature states."""
        if len(lengths) < _LEAST_RECORDS:
            return
        for shape in shapes:
            if {ranked[feature] for feature in shape} != {1, 2}:
                continue
            for channels in _CHANNELS:
                values = self._product(shape, present) * channels
                if dtypes := _dtypes(lengths, values, is_bytes=is_bytes):
                    yield (*shape, channels), dtypes

    def _fitting_dtypes(self, shape: Sequence[str], lengths: Array, present: Array, is_bytes: bool) -> tuple[str, ...]:
        return _dtypes(lengths, self._product(shape, present), is_bytes=is_bytes)

    def _product(self, shape: Sequence[str], present: Array) -> Array:
        return np.prod([self.scalars[feature][present].astype(np.float64) for feature in shape], axis=0)


def _is_shape(features: Sequence[str], ranked: Mapping[str, int]) -> bool:
    """True if each feature is another dimension."""
    ranks = [ranked[feature] for feature in features if feature in ranked]
    return len(set(ranks)) == len(ranks)


def _dtypes(lengths: Array, values: Array, *, is_bytes: bool) -> tuple[str, ...]:
    """The dtypes of arrays of so many values in so many bytes, the same in all records; the usual one first."""
    if (values <= 0).any():
        return ()
    widths = np.unique(lengths / values)
    if len(widths) != 1:
        return ()
    return Dtype.usual_names(int(widths[0])) if is_bytes and widths[0] % 1 == 0 else ("",) if widths[0] == 1 else ()


def _byte_lengths(column: pa.Array) -> Array:
    import pyarrow.compute as pc

    return np.asarray(pc.binary_length(column).fill_null(0))


def _field_text(dtype: str, shape: str | tuple[str | int, ...]) -> str:
    return f"tfr.tensor({dtype!r}, {shape!r})"


def _rank(feature: str) -> int | None:
    """Which dimension a feature with this name states, None if the name says nothing."""
    word = _last_word(feature)
    return next((rank for rank, words in enumerate(_WORDS) if word in words), None)


def _last_word(feature: str) -> str:
    """The part of a name that says what it is: ``height`` of image/height, img_height and imageHeight."""
    last = re.split(r"[/.:]", feature)[-1]
    last = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).lower()
    return last if last in _KNOWN_WORDS else last.rpartition("_")[2]


def _are_siblings(column: str, feature: str) -> bool:
    """True if both names begin with the same folder or word."""
    first, second = (re.split(r"[/._]", name)[0] for name in (column, feature))
    return first == second
