"""Evidence of a decoded column about its type.

Results for parts of the records are joined as observations are. That is associative and commutative, so the order of
files and their division into chunks have no influence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from tfrecord_io.bytes import Array, ColumnBuffers, Dtype, FeatureColumns, Kind, Layout, ShapeSource
from tfrecord_io.columns.arrow.buffers import split_by_kind
from tfrecord_io.columns.schema.inferred_type import KindCount, Observation, earliest, join, join_columns
from tfrecord_io.errors import MissingDependencyError, SchemaError
from tfrecord_io.store import RecordRef

_NO_ROWS = np.zeros(0, np.int64)
_OF_NO_FILE = partial(RecordRef, None)
_MOST_AXES = 32  # of NumPy before version 2
_MOST_NAME = 40  # bytes of a dtype's name


def observe(column: ColumnBuffers, record_of: Callable[[int], RecordRef] = _OF_NO_FILE) -> Observation:
    """Return the evidence of `column`: `record_of` a row is the record that it was decoded from.

    SchemaError if rows have values of different kinds.
    """
    if column.has_others:
        return reduce(partial(join, column.name), [observe(c, record_of) for c in split_by_kind(column)])

    def where(row: int) -> RecordRef | None:
        return record_of(row) if row >= 0 else None

    if column.layout is Layout.NULL or column.null_count == column.rows:
        return Observation()
    if column.steps is None:
        return _observation(column, False, where)
    assert column.offsets is not None
    row = int(ColumnBuffers.mask_of(column.validity, column.rows).argmax()) if column.null_count else 0
    step = _observe_steps(column.steps, column.offsets, where)
    return Observation(
        kind=Kind.NONE,
        layout=Layout.LIST,
        text=True,
        nulls=False,
        first=where(row),
        listed=None,
        binary=None,
        steps=step,
    )


def _observation(column: ColumnBuffers, nulls: bool, where: Callable[[int], RecordRef | None]) -> Observation:
    text = column.kind is not Kind.BYTES or column.text
    rows = column.first_row, column.list_row, column.binary_row, column.value_row
    first, listed, binary, valued = map(where, rows)
    is_empty = column.value_row < 0 and column.kind is not Kind.NONE
    return Observation(
        kind=column.kind,
        layout=column.layout,
        text=text,
        nulls=nulls,
        first=first,
        listed=listed,
        binary=binary,
        steps=None,
        valued=valued,
        empty=is_empty,
    )


class SeenColumns:
    """Evidence of the columns of chunks, added in the order of reading."""

    def __init__(self, known: Collection[str] = (), may_differ: Callable[[str], bool] = lambda name: False) -> None:
        # The features with values of different kinds that `may_differ`, as keys; of others, these are errors.
        self.contested: dict[str, None] = {}
        self._may_differ = may_differ
        self.observations: dict[str, Observation] = {}  # of each feature
        self._known = known
        self._features: list[str] = []  # of the last chunk
        self._seen = _facts_of_seen([])  # of these features
        self._joined = b""  # what they showed in the last chunk, if all of it was joined; see `FeatureColumns.shown`

    def add(self, columns: Mapping[str, ColumnBuffers], record_of: Callable[[int], RecordRef]) -> None:
        """Join what the columns of a chunk show, except `known` ones; see `observe`.

        SchemaError if they contradict earlier ones; nothing was joined then.
        """
        features = list(columns)
        all_shown = columns.distinct_facts() if isinstance(columns, FeatureColumns) else b""
        if features != self._features:
            self._features, self._joined = features, b""
            self._seen = _facts_of_seen(list(map(self.observations.get, features)))
        elif all_shown and all_shown == self._joined:
            return
        facts = FeatureColumns.facts_of(columns)
        shows = _facts_of_shown(facts)
        new = np.flatnonzero(~_add_nothing(shows, self._seen))
        if self._known:
            new = new[[features[at] not in self._known for at in new]]
        if len(new):
            names = list(map(features.__getitem__, new.tolist()))
            shown = dict(zip(names, _observations(facts[new], record_of), strict=True))
            for name in map(names.__getitem__, np.flatnonzero(shows[new, _IS_MORE]).tolist()):
                del shown[name]
                column = columns[name]
                name = column.name if column.steps is not None else name
                if column.has_others and self._may_differ(name):
                    self.contested[name] = None
                    column = split_by_kind(column)[0]
                shown[name] = observe(column, record_of)
            self.observations = join_columns(self.observations, shown, self.contested, self._may_differ)
            self._seen[new] = _facts_of_seen(list(map(self.observations.get, names)))
        self._joined = b"" if shows[:, _IS_MORE].any() else all_shown

    def contradictions(
        self, columns: Mapping[str, ColumnBuffers], record_of: Callable[[int], RecordRef]
    ) -> Iterator[SchemaError]:
        """The error of the first record that contradicts what was seen of a feature: for each such feature, by name."""
        for name in sorted(set(columns) - set(self._known)):
            kinds = split_by_kind(columns[name]) if columns[name].has_others else [columns[name]]
            shown = [observe(column, record_of) for column in kinds]
            joined = {name: self.observations.get(name, Observation())}
            try:
                for observed in sorted(shown, key=lambda seen: seen.first.order() if seen.first is not None else ()):
                    joined = join_columns(joined, {name: observed}, {}, self._may_differ)
            except SchemaError as error:
                yield error


def count_kinds(chunks: Iterable[tuple[ColumnBuffers, Callable[[int], RecordRef]]]) -> list[KindCount]:
    """Count the records of each kind of values of a feature, the most frequent kind first, else the earliest.

    Each chunk is a column with the arguments of `observe`.
    """
    records: dict[Kind, int] = {}
    first: dict[Kind, RecordRef | None] = {}
    for column, record_of in chunks:
        for part in split_by_kind(column):
            kind, rows = _rows_of_kind(part)
            if len(rows) and (part.steps or part).value_row >= 0:
                records[kind] = records.get(kind, 0) + len(rows)
                first[kind] = earliest(first.get(kind), record_of(int(rows[0])))
    counts = [KindCount(kind, count, first[kind] or RecordRef(None, -1)) for kind, count in records.items()]
    return sorted(counts, key=lambda count: (-count.records, count.first.order()))


def _rows_of_kind(column: ColumnBuffers) -> tuple[Kind, Array]:
    """The single kind of a column, and the numbers of the rows with values."""
    if column.steps is None or column.offsets is None:
        return column.kind, np.flatnonzero(column.mask) if column.layout is not Layout.NULL else _NO_ROWS
    kind, steps = _rows_of_kind(column.steps)
    return kind, np.unique(np.searchsorted(column.offsets, steps, side="right") - 1)


def _observations(facts: Array, record_of: Callable[[int], RecordRef]) -> list[Observation]:
    """Observe columns by their facts, without feature lists; columns that show the same share an observation."""
    rows_of = (
        FeatureColumns.Fact.FIRST_ROW,
        FeatureColumns.Fact.LIST_ROW,
        FeatureColumns.Fact.BINARY_ROW,
        FeatureColumns.Fact.VALUE_ROW,
    )
    shown = facts.take(
        (FeatureColumns.Fact.KIND, FeatureColumns.Fact.LAYOUT, FeatureColumns.Fact.TEXT, *rows_of), axis=1
    )
    shown[_is_nothing(facts)] = Kind.NONE, Layout.NULL, True, -1, -1, -1, -1
    keys = shown.view(f"V{shown.itemsize * shown.shape[1]}").ravel().tolist()
    observations: dict[bytes, Observation] = {}
    for key in dict.fromkeys(keys):
        kind, layout, text, *rows = np.frombuffer(key, np.int64).tolist()
        first, listed, binary, valued = (record_of(row) if row >= 0 else None for row in rows)
        is_text, is_empty = kind != Kind.BYTES or bool(text), kind != Kind.NONE and valued is None
        evidence = first, listed, binary, None, valued, is_empty
        observations[key] = Observation(Kind(kind), Layout(layout), is_text, False, *evidence)
    return list(map(observations.__getitem__, keys))


# Columns of what is known of a feature as numbers, in an int64 array.
_KIND, _LAYOUT, _TEXT, _PRESENT, _LISTED, _BINARY, _VALUED, _IS_MORE = range(8)


def _facts_of_seen(observations: Sequence[Observation | None]) -> Array:
    keys = list(map(id, observations))  # many columns share an observation
    distinct = dict(zip(keys, observations, strict=True))
    facts = np.zeros((len(distinct), _IS_MORE + 1), np.int64)
    for at, seen in enumerate(distinct.values()):
        if seen is not None:
            is_present = seen.first is not None and seen.steps is None
            has_rows = is_present, seen.listed is not None, seen.binary is not None, seen.valued is not None
            facts[at] = seen.kind, seen.layout, seen.text, *has_rows, 0
    numbers = {key: at for at, key in enumerate(distinct)}
    return facts[[numbers[key] for key in keys]]


def _is_nothing(facts: Array) -> Array:
    is_nothing: Array = (facts[:, FeatureColumns.Fact.LAYOUT] == Layout.NULL) | (
        facts[:, FeatureColumns.Fact.NULL_COUNT] == facts[:, FeatureColumns.Fact.ROWS]
    )
    return is_nothing


def _facts_of_shown(facts: Array) -> Array:
    """Facts of the columns shown; there is more to feature lists and those with values of several kinds."""
    shown = np.empty((len(facts), _IS_MORE + 1), np.int64)
    shown[:, _KIND : _TEXT + 1] = facts[:, FeatureColumns.Fact.KIND : FeatureColumns.Fact.TEXT + 1]
    shown[:, _TEXT] |= shown[:, _KIND] != Kind.BYTES
    shown[:, _LISTED : _BINARY + 1] = facts[:, FeatureColumns.Fact.LIST_ROW : FeatureColumns.Fact.BINARY_ROW + 1] >= 0
    shown[:, _VALUED] = facts[:, FeatureColumns.Fact.VALUE_ROW] >= 0
    shown[:, _PRESENT] = ~_is_nothing(facts)
    shown[:, _IS_MORE] = facts[:, FeatureColumns.Fact.IS_LIST] | facts[:, FeatureColumns.Fact.HAS_OTHERS]
    return shown


def _add_nothing(shown: Array, seen: Array) -> Array:
    """True for each column whose facts add nothing to the facts seen in earlier records.

    False where that takes more than a look: for feature lists, and columns that were not seen.
    """
    is_same = (shown[:, _KIND] == seen[:, _KIND]) | (shown[:, _VALUED] < seen[:, _VALUED])  # empty lists have no kind
    is_same &= shown[:, _LAYOUT] <= seen[:, _LAYOUT]
    is_same &= shown[:, _TEXT] >= seen[:, _TEXT]
    is_same &= (shown[:, _LISTED:_IS_MORE] <= seen[:, _LISTED:_IS_MORE]).all(axis=1)
    adds_nothing: Array = (seen[:, _PRESENT] != 0) & (shown[:, _IS_MORE] == 0) & ((shown[:, _PRESENT] == 0) | is_same)
    return adds_nothing


def _observe_steps(steps: ColumnBuffers, offsets: Array, where: Callable[[int], RecordRef | None]) -> Observation:
    nulls = steps.null_count > 0 or (steps.layout is Layout.NULL and steps.rows > 0)
    if steps.layout is Layout.NULL or steps.null_count == steps.rows:
        return Observation(nulls=nulls)
    rows = offsets.searchsorted
    return _observation(steps, nulls, lambda step: where(int(rows(step, side="right")) - 1) if step >= 0 else None)


class FoldedTensor(NamedTuple):
    """Common facts of the tensors of a feature."""

    element: Dtype
    rank: int
    shape: tuple[int, ...] | None  # None: it varies


def candidates(seen: Mapping[str, Observation]) -> list[str]:
    """The features that may be tensors, by kinds and numbers of values."""
    named = map(ShapeSource.described_feature, seen)  # few features have names like those of companions
    names = dict.fromkeys(name for name in named if name is not None and name in seen)
    tensors = []
    for name in names:
        shape, dtype = map(seen.get, ShapeSource.companions(name))
        is_shape = shape is not None and shape.kind is Kind.INT64 and shape.steps is None
        if is_shape and dtype is not None and _is_bytes(dtype) and _is_bytes(seen[name]):
            tensors.append(name)
    return tensors


def _is_bytes(seen: Observation) -> bool:
    return seen.kind is Kind.BYTES and seen.layout is Layout.SCALAR and seen.steps is None


def fold(name: str, batches: Iterable[Mapping[str, ColumnBuffers]], *, is_read: bool = True) -> FoldedTensor | None:
    """Common facts of the tensors of feature `name`; None if it is not a tensor in some record.

    If it is not read itself, that is what its companions state.
    """
    from tfrecord_io.columns.arrow.decode.lists import is_nothing  # for features with companions only

    joined: FoldedTensor | None = None
    parts = (name, *ShapeSource.companions(name)) if is_read else ShapeSource.companions(name)
    for columns in batches:
        if all(part not in columns or is_nothing(columns[part]) for part in parts):
            continue
        if any(part not in columns for part in parts):
            return None
        tensor = _fold(name, columns, columns[parts[0]], is_read)
        if tensor is None or (joined is not None and (tensor.element, tensor.rank) != (joined.element, joined.rank)):
            return None
        is_same = joined is None or joined.shape == tensor.shape
        joined = tensor if is_same else FoldedTensor(tensor.element, tensor.rank, None)
    return joined


def _fold(name: str, columns: Mapping[str, ColumnBuffers], column: ColumnBuffers, is_read: bool) -> FoldedTensor | None:
    from tfrecord_io.columns.arrow.decode.companion_checks import Companions, product
    from tfrecord_io.columns.arrow.tensor_values import first_invalid

    pair = Companions(name).columns(columns, column.rows)
    mask = column.mask
    if not mask.any() or not all(np.array_equal(mask, part.mask) for part in (pair.shape, pair.dtype)):
        return None
    element, shapes = _one_dtype(pair.dtype, mask), _shapes(pair.shape, mask)
    if element is None or shapes is None:
        return None
    if is_read:
        if column.layout is not Layout.SCALAR or column.value_offsets is None or column.values is None:
            return None
        sizes = np.diff(column.value_offsets)[mask].astype(np.int64)
        if np.any(product(shapes) * element.itemsize != sizes) or np.any(shapes < 0):
            return None
        if first_invalid(element, column.values) >= 0:
            return None
    is_uniform = np.array_equal(shapes[1:], shapes[:-1])  # each equals the one before
    return FoldedTensor(element, shapes.shape[1], tuple(shapes[0].tolist()) if is_uniform else None)


def _one_dtype(column: ColumnBuffers, mask: Array) -> Dtype | None:
    """The dtype that all rows state; None if they differ or it is not a dtype."""
    names = _matrix(column.values, column.value_offsets, mask, _MOST_NAME)
    if names is None or not names.size or np.any(names != names[0]):
        return None
    try:
        return Dtype.of_name(names[0].tobytes().decode("ascii"))
    except (ValueError, MissingDependencyError):  # not a dtype, or not available: it stays bytes
        return None


def _shapes(column: ColumnBuffers, mask: Array) -> Array | None:
    """The shapes of the rows, None where ranks differ."""
    shapes = _matrix(column.values, column.offsets, mask, _MOST_AXES)
    return None if shapes is None or np.any(shapes > 2**31 - 1) else shapes


def _matrix(values: Array | None, offsets: Array | None, mask: Array, most: int) -> Array | None:
    """The values of the rows in `mask`, each of as many, at `most`; else None. Other rows are null, and empty."""
    assert values is not None
    assert offsets is not None
    sizes = np.diff(offsets)[mask]
    if sizes[0] > most or np.any(sizes != sizes[0]):
        return None
    return values[offsets[0] : offsets[-1]].reshape(len(sizes), int(sizes[0]))
