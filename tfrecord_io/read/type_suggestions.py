"""Look at the first records of a file and say how columns of bytes can be read: nothing is applied by itself.

In go record batches of the inferred types; out come `Suggestion`s: images and other files, JSON, protobuf messages,
serialized tensors, ``.npy`` arrays, one-hot bases, or raw numbers whose count is the product of integer features in
every record. The steps of feature lists are looked at as the rows of a column are.
Tests: tests/read/test_type_suggestions.py.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain, combinations
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import Expansion, printable
from tfrecord_io.bytes import Array, Dtype, ForeignFile
from tfrecord_io.columns import ArrayBuffers, Column
from tfrecord_io.errors import DecodeError
from tfrecord_io.read.stored_record import StoredBytes

_MOST_SIZES = 12  # integer features that are tried as sizes
_MOST_TENSORS = 50  # values that are parsed as serialized tensors
_TENSOR_BYTES = 1 << 20  # of one
_MOST_PARSED = 50  # values that are parsed as JSON or messages
_LEAST_MESSAGE = 8  # bytes of a message that is told from others
_MOST_NUMBER, _MOST_FIELDS = 1000, 8  # of fields, that are likely and that are shown
_HEAD_BYTES = 512
_LEAST_RECORDS = 3  # with a number of channels that no feature states
_LEAST_LENGTHS = 3  # different numbers of values that confirm features without a name of a size
_LEAST_RAW = 65  # bytes of raw numbers whose size no feature states: more than identifiers and digests have
_BASES = 4  # of DNA: channels of a one-hot sequence
_LEAST_BASES = 16  # of a sequence
_JUDGED_BYTES = 1 << 16  # that show whether raw numbers are floats or integers
_LEAST_MAGNITUDE, _MOST_MAGNITUDE = 1e-30, 1e30  # of floats that programs write
# The order of dimensions, by the last word of a feature's name.
_WORDS = (
    ("frames", "num_frames", "n_frames", "time", "steps"),
    ("height", "h", "rows", "n_rows", "num_rows", "ysize", "size_y", "dim_0", "dim0"),
    ("width", "w", "cols", "columns", "n_cols", "num_cols", "xsize", "size_x", "dim_1", "dim1"),
    ("depth", "d", "channels", "channel", "c", "bands", "n_channels", "num_channels", "dim_2", "dim2"),
)
_AXES = ("x", "y", "z")  # sizes, in an order that differs between programs
_SHAPE_WORDS = ("shape", "size", "sizes", "dims", "dim", "dimensions")
_KNOWN_WORDS = frozenset(chain(*_WORDS, _AXES, _SHAPE_WORDS))
_WIDTHS = (1, 4, 8)  # of raw numbers
_IMAGE = "tfr.image()"
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

    def in_list(self, maker: str) -> Suggestion:
        """The suggestion for lists of these values, or for the steps of a feature list."""
        python = f"tfr.{'list_' if maker == 'list' else maker}"
        schema = None if self.schema is None else f"{python}({self.schema})"
        fields = (f"{python}({text})" if text.startswith("tfr.") else text for text in self.others)
        type_ = None if self.type is None else f"{maker}({self.type})"
        return replace(self, schema=schema, type=type_, others=tuple(fields))

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
    if Column(field).is_bytes:
        return (
            _suggest_format(field.name, column)
            or sizes.suggestion(field.name, column, is_bytes=True)
            or _suggest_one_hot(field.name, column)
            or _suggest_message(field.name, column)
            or _suggest_raw(field.name, column)
        )
    if t.is_string(field.type) or t.is_large_string(field.type):
        return _suggest_json(field.name, column)
    if t.is_list(field.type) or t.is_large_list(field.type):
        if Column(field.type.value_type).is_bytes:
            return _suggest_list(field, column, sizes)
        if t.is_float32(field.type.value_type) or t.is_int64(field.type.value_type):
            return sizes.suggestion(field.name, column, is_bytes=False)
    return None


def _suggest_list(field: pa.Field, column: pa.Array, sizes: _Sizes) -> Suggestion | None:
    """A suggestion for the steps of a feature list, or for lists of images."""
    values = column.flatten()
    if values.null_count or not len(values):
        return None
    if not Column(field).is_feature_list:
        suggestion = _suggest_format(field.name, values, "values")
        return suggestion.in_list("list") if suggestion is not None and suggestion.schema == _IMAGE else None
    suggestion = (
        _suggest_format(field.name, values, "steps")
        or sizes.repeat_for_steps(column).suggestion(field.name, values, is_bytes=True, noun="steps")
        or _suggest_one_hot(field.name, values, "steps")
        or _suggest_vectors(field.name, values)
    )
    return None if suggestion is None else suggestion.in_list("sequence")


def _suggest_format(name: str, column: pa.Array, noun: str = "records") -> Suggestion | None:
    """A suggestion for values that all begin as files of one format, or are serialized tensors."""
    import pyarrow.compute as pc

    values = column.filter(pc.greater(pc.binary_length(column), 0))
    if not len(values):
        return None
    heads = pc.binary_slice(values, 0, _HEAD_BYTES).to_pylist()
    kinds = set(map(ForeignFile.looks_like, heads))
    kind = kinds.pop() if len(kinds) == 1 else None
    records = f"{len(values)} sampled {noun}"
    if all(head.startswith(b"\x93NUMPY") for head in heads):
        return _self_describing(name, values, "npy", f".npy arrays in {records}")
    if kind is not None and kind.endswith(" image"):
        return Suggestion(name, f"each of {records} has {kind}", _IMAGE, "image")
    if (tensors := _self_describing(name, values, "tensor_proto", f"serialized tensors in {records}")) is not None:
        return tensors
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
        fields = _field_numbers(scalar.as_py())
        if not fields:
            return None
        numbers |= fields
    if not numbers:
        return None
    shown = ", ".join(map(str, sorted(numbers)[:_MOST_FIELDS]))
    return Suggestion(name, f"protobuf messages in {len(values)} sampled records, with the fields {shown}")


def _field_numbers(value: bytes) -> set[int] | None:
    """The numbers of the fields of a protobuf message; None if bytes are none, or too few to tell."""
    numbers = set[int]()
    try:
        for number, _ in StoredBytes.of(lambda begin, end: value[begin:end], len(value)).fields():
            if not 0 < number <= _MOST_NUMBER:
                return None
            numbers.add(number)
    except ValueError:
        return None
    return numbers if len(value) >= _LEAST_MESSAGE else None


def _self_describing(name: str, values: pa.Array, encoding: str, reason: str) -> Suggestion | None:
    """A suggestion for arrays that state dtype and shape themselves; None if a value is not such an array."""
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for scalar in values[:_MOST_TENSORS]:
        value = scalar.as_py()
        dtype_and_shape = _npy(value) if encoding == "npy" else _tensor_proto(value)
        if dtype_and_shape is None:
            return None
        seen.add(dtype_and_shape)
    dtypes, shapes = {dtype for dtype, _ in seen}, {shape for _, shape in seen}
    if len(dtypes) > 1 or len({len(shape) for shape in shapes}) > 1:
        return Suggestion(name, f"{reason}, of several dtypes or numbers of dimensions")
    shape = tuple(axis.pop() if len(axis) == 1 else None for axis in map(set, zip(*shapes, strict=True)))
    dtype = dtypes.pop()
    type_ = f"tensor({dtype},{_shell_shape(shape)},encoding={encoding})"
    return Suggestion(name, reason, f"tfr.tensor({dtype!r}, {shape}, encoding={encoding!r})", type_)


def _suggest_one_hot(name: str, column: pa.Array, noun: str = "records") -> Suggestion | None:
    """A suggestion for sequences of bases, each of which is a row of zeros with a one, or of zeros alone."""
    values = column.drop_null()
    seen: set[int] = set()
    for scalar in values[:_MOST_PARSED]:
        numbers = np.frombuffer(scalar.as_buffer(), np.uint8)
        if len(numbers) < _LEAST_BASES * _BASES or len(numbers) % _BASES or numbers.max() != 1:
            return None
        ones = numbers.reshape(-1, _BASES).sum(axis=1)
        if ones.max() != 1 or np.count_nonzero(ones) * 2 < len(ones):
            return None
        seen.add(len(ones))
    if not seen:
        return None
    shape = (seen.pop() if len(seen) == 1 else None, _BASES)
    reason = f"sequences of one-hot vectors of {_BASES} in {len(values)} sampled {noun}"
    return Suggestion(name, reason, _field_text("uint8", shape), f"tensor(uint8,{_shell_shape(shape)})")


def _suggest_vectors(name: str, steps: pa.Array) -> Suggestion | None:
    """A suggestion for steps that all have the same number of bytes, as the features of frames in a video have."""
    if (size := _common_size(steps)) is None:
        return None
    widths = [width for width in _WIDTHS if size % width == 0]
    fitting = [(dtype, size // width) for width in widths for dtype in Dtype.usual_names(width)[:1]]
    content = _content(steps)
    dtype, count = next((numbers for numbers in fitting if _are_floats(numbers[0], content)), fitting[0])
    alternatives = tuple(_field_text(name, (number,)) for name, number in fitting if name != dtype)
    reason = f"{size:,} bytes in each of {len(steps)} sampled steps, as raw {dtype} have"
    type_ = f"tensor({dtype},{count})"
    return Suggestion(name, reason, schema=_field_text(dtype, (count,)), type=type_, others=alternatives)


def _suggest_raw(name: str, column: pa.Array) -> Suggestion | None:
    """A hint for values of equal length that no feature describes."""
    values = column.drop_null()
    if len(values) < _LEAST_RECORDS or (size := _common_size(values)) is None:
        return None
    reason = f"{size:,} bytes in each of {len(values)} sampled records, perhaps raw numbers: no feature has their shape"
    return Suggestion(name, reason)


def _common_size(values: pa.Array) -> int | None:
    """The number of bytes that all values have; None if they differ, or are too few to be an array."""
    lengths = np.unique(_byte_lengths(values))
    return int(lengths[0]) if len(lengths) == 1 and lengths[0] >= _LEAST_RAW else None


def _content(values: pa.Array) -> bytes:
    """The bytes of the first values, up to a limit, each from its begin."""
    parts, size = list[bytes](), 0
    for scalar in values:
        if size >= _JUDGED_BYTES:
            break
        if scalar.is_valid:
            parts.append(scalar.as_py()[: _JUDGED_BYTES - size] if not parts else scalar.as_py())
            size += len(parts[-1])
    return b"".join(parts)


def _are_floats(dtype: str, content: bytes) -> bool:
    """True if bytes are floats of a likely size: integers and pixels have exponents beyond that, or are not numbers."""
    row = Dtype.of_name(dtype)
    if not dtype.startswith("float") or row.itemsize < 4:
        return False
    numbers = np.frombuffer(content[: len(content) // row.itemsize * row.itemsize], dtype)
    sizes = np.abs(numbers[numbers != 0])
    with np.errstate(invalid="ignore"):
        likely = (sizes >= _LEAST_MAGNITUDE) & (sizes <= _MOST_MAGNITUDE)
    return bool(len(sizes) and np.count_nonzero(likely) >= 0.99 * len(sizes))


def _likely_first(dtypes: tuple[str, ...], content: bytes) -> tuple[str, ...]:
    """The dtypes with integers first, where the values are unlikely to be floats."""
    if len(dtypes) < 2 or not dtypes[0].startswith("float") or not any(content) or _are_floats(dtypes[0], content):
        return dtypes
    return tuple(sorted(dtypes, key=lambda dtype: dtype.startswith("float")))


def _shell_shape(shape: str | Sequence[str | int | None]) -> str:
    """A shape in the text of a type for a shell."""
    return shape if isinstance(shape, str) else f"({','.join(map(str, shape))})"


def _npy(value: bytes) -> tuple[str, tuple[int, ...]] | None:
    from io import BytesIO

    from tfrecord_io.bytes import NpyHeader

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
    steps: Mapping[str, pa.Array]  # feature lists of single integers

    @classmethod
    def from_table(cls, table: pa.Table) -> _Sizes:
        scalars, shapes, steps = {}, {}, {}
        for field in table.schema:
            column = table[field.name].combine_chunks()
            if column.null_count or not len(column):
                continue
            if t.is_int64(field.type):
                values = np.asarray(column)
                if values.min() >= 1:
                    scalars[field.name] = values
            elif t.is_list(field.type) and t.is_int64(field.type.value_type) and Column(field).is_feature_list:
                steps[field.name] = column
            elif t.is_list(field.type) and t.is_int64(field.type.value_type) and _last_word(field.name) in _SHAPE_WORDS:
                lengths = ArrayBuffers(column).lengths
                if lengths.min() == lengths.max() and 1 <= lengths[0] <= 6:
                    shapes[field.name] = np.asarray(column.flatten()).reshape(len(column), -1)
        return cls(scalars, shapes, steps)

    def repeat_for_steps(self, lists: pa.Array) -> _Sizes:
        """The sizes for each step of feature lists: of the steps, or those that the context states for all."""
        lengths = ArrayBuffers(lists).lengths
        scalars = {name: np.repeat(values, lengths) for name, values in self.scalars.items()}
        for name, column in self.steps.items():
            if np.array_equal(ArrayBuffers(column).lengths, lengths):
                values = np.asarray(column.flatten())
                if values.min() >= 1:
                    scalars[name] = values
        return _Sizes(scalars, {name: np.repeat(matrix, lengths, axis=0) for name, matrix in self.shapes.items()}, {})

    def suggestion(self, name: str, column: pa.Array, *, is_bytes: bool, noun: str = "records") -> Suggestion | None:
        """A suggestion for a column whose numbers are as many as sizes say, in every record that has them."""
        present = np.asarray(column.is_valid())
        if not present.any():
            return None
        lengths = _byte_lengths(column) if is_bytes else ArrayBuffers(column).lengths
        lengths = np.asarray(lengths)[present].astype(np.int64)
        if not lengths.min():
            return None
        fitting = [*self._fitting(name, lengths, present, is_bytes=is_bytes)]
        if not fitting:
            return None
        shape, dtypes = fitting[0]
        if is_bytes:
            dtypes = _likely_first(dtypes, _content(column))
        names = shape if isinstance(shape, str) else tuple(shape)
        alternatives = [f"{dtype} instead of {dtypes[0]}" for dtype in dtypes[1:]]
        alternatives += [_field_text(names[0], shape) for shape, names in fitting[1:]]
        dtype = dtypes[0]
        if not is_bytes:
            dtype = "float32" if t.is_float32(column.type.value_type) else "int64"
            alternatives = [_field_text(dtype, shape) for shape, _ in fitting[1:]]
        what = f"raw {dtype}" if is_bytes else f"{dtype} values"
        shape_text = f"whose shape is in '{names}'," if isinstance(names, str) else f"of {' × '.join(map(str, names))}"
        reason = f"{what} {shape_text} in all {len(lengths)} sampled {noun}"
        type_ = f"tensor({dtype},{_shell_shape(names)})"
        return Suggestion(name, reason, schema=_field_text(dtype, names), type=type_, others=tuple(alternatives))

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
        features = [*ranked] or (self._varying(name) if has_many_lengths else [])
        if 2 <= len(features) <= _MOST_SIZES:
            features.sort(key=lambda feature: (ranked.get(feature, 0), not _are_siblings(name, feature)))
            for count in range(min(4, len(features)), 1, -1):
                named = combinations(features, count)
                shapes = [shape for shape in named if _is_shape(shape, ranked, has_many_lengths)]
                fitting = [
                    (shape, dtypes)
                    for shape in shapes
                    if (dtypes := self._fitting_dtypes(shape, lengths, present, is_bytes))
                ]
                if fitting:
                    fitting.sort(key=lambda item: sum(not _are_siblings(name, feature) for feature in item[0]))
                    yield from fitting
                    shape, dtypes = fitting[0]
                    if all(_last_word(feature) in _AXES for feature in shape):
                        yield shape[::-1], dtypes
                    return
                if ranked:
                    yield from self._channel_shapes(shapes, lengths, present, ranked, is_bytes=is_bytes)

    def _varying(self, name: str) -> list[str]:
        """The features whose values differ: sizes, though their names do not say so."""
        return [feature for feature, sizes in self.scalars.items() if feature != name and len(np.unique(sizes)) > 1]

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


def _is_shape(features: Sequence[str], ranked: Mapping[str, int], has_many_lengths: bool) -> bool:
    """True if each feature is another dimension; unless many lengths confirm that, names must be of a pair."""
    ranks = {ranked[feature] for feature in features if feature in ranked}
    if not ranks:
        return True
    is_of_axes = min(ranks) >= len(_WORDS)
    if len(ranks) < len(features) or is_of_axes != (max(ranks) >= len(_WORDS)):
        return False
    return has_many_lengths or ranks >= ({len(_WORDS), len(_WORDS) + 1} if is_of_axes else {1, 2})


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


def _field_text(dtype: str, shape: str | tuple[str | int | None, ...]) -> str:
    return f"tfr.tensor({dtype!r}, {shape!r})"


def _rank(feature: str) -> int | None:
    """Which dimension a feature with this name states, None if the name says nothing."""
    word = _last_word(feature)
    if word in _AXES:
        return len(_WORDS) + _AXES.index(word)
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
