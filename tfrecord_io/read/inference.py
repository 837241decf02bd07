"""The schema that decoded units show: exact over what they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from tfrecord_io.arrow.buffers import cut, mask_of
from tfrecord_io.arrow.infer.observe import observe_all
from tfrecord_io.arrow.infer.tensor_folding import FoldedTensor, are_companions, candidates, fold
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import FeatureTypeError, SchemaError
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.options import ReadOptions
from tfrecord_io.read.chunk import DecodedChunk
from tfrecord_io.schema.field import Field
from tfrecord_io.schema.inferred_schema import Evidence
from tfrecord_io.schema.leaf import FEATURE_LIST, RAW, companions
from tfrecord_io.schema.observation import Observation, RecordRef, arrow_schema, contradiction, join, join_columns
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.tensor_types import dtype_metadata, tensor_type


def observe_units(units: Iterable[DecodedChunk]) -> dict[str, Observation]:
    """What the units show together, by feature.

    A unit that contradicts those before it gets the SchemaError as its error, and what it shows does not count.
    """
    seen: dict[str, Observation] = {}
    for unit in units:
        while True:
            found = observe_all(unit.columns.values(), unit.path, unit.first_record, unit.file)
            try:
                seen = join_columns(seen, found)
                break
            except SchemaError as error:  # again without the rows from there on: an earlier one may contradict too
                _cut_before(unit, error)
        name_both(unit, seen)
    return seen


def name_both(unit: DecodedChunk, seen: Mapping[str, Observation]) -> None:
    """Where a record has another kind than those before it: make the unit's error one that names both records."""
    error = unit.error
    if not isinstance(error, (FeatureTypeError, SchemaError)) or str(error.got) not in Kind.__members__:
        return
    name, expected, got = error.feature or "", str(error.expected), Kind[str(error.got)]
    before = seen.get(name, Observation())
    if before.steps is None and before.kind is got:  # it contradicts what was asked for, and no record before it
        return
    here = RecordRef(unit.path, error.record or 0, unit.file)
    found = Observation(got, Layout.LIST, first=here)
    if before.steps is not None:
        found = Observation(layout=Layout.LIST, first=here, steps=found)
    try:
        join(name, before, found)
    except SchemaError as both:
        unit.error = both
        return
    if (
        expected in Kind.__members__ and Kind[expected] is not Kind.NONE
    ):  # the steps of one feature list contradict each other
        unit.error = contradiction(name, here, Kind[expected].description, here, got.description)


def _cut_before(unit: DecodedChunk, error: SchemaError) -> None:
    """Keep the rows before the contradiction."""
    unit.error = error
    unit.rows = max(0, (error.record or 0) - unit.first_record)
    unit.columns = {name: cut(column, 0, unit.rows) for name, column in unit.columns.items()}


def folded_columns(
    units: Sequence[DecodedChunk], seen: Mapping[str, Observation], wanted: Callable[[str], bool]
) -> dict[str, FoldedTensor]:
    """The wanted features that are tensors by their companions, in every record of the units; no companion is one itself."""
    names = [name for name in candidates(seen) if wanted(name)]
    taken = {each for name in names for each in companions(name)}
    found = {name: fold(name, (unit.columns for unit in units)) for name in names if name not in taken}
    return {name: folded for name, folded in found.items() if folded is not None}


def left_out_companions(
    units: Sequence[DecodedChunk], met: AbstractSet[str], is_left_out: Callable[[str], bool]
) -> set[str]:
    """The companions of features that were met and are left out: no columns of their own."""
    found: set[str] = set()
    for name in met:
        if (
            is_left_out(name)
            and met >= set(companions(name))
            and are_companions(name, (unit.columns for unit in units))
        ):
            found.update(companions(name))
    return found


def folded_field(name: str, folded: FoldedTensor) -> Field:
    """The field of a folded column: of single numbers a plain one."""
    of = folded.element
    if not folded.rank and (plain := of.plain) is not None:
        return Field(name, plain, encoding=RAW)
    shape = (None,) * folded.rank if folded.shape is None else folded.shape
    return Field(name, tensor_type(of, shape), encoding=RAW, metadata=dtype_metadata(of))


def inferred_schema(
    seen: dict[str, Observation], options: ReadOptions, folded: Mapping[str, FoldedTensor] | None = None
) -> Schema:
    """The schema of what was seen, under the options that speak about inference; folded columns take their companions in."""
    found = arrow_schema(
        seen, infer_text=options.infer_text, stable_types=options.stable_types, large_offsets=options.large_offsets
    )
    fields = []
    named = set(options.columns or ())
    taken = {each for name in folded or () for each in companions(name)} - named
    for f in found:
        if folded and f.name in folded:
            fields.append(folded_field(f.name, folded[f.name]))
            continue
        if f.name in taken:
            continue
        part = None if seen[f.name].steps is None else FEATURE_LIST
        fields.append(Field(f.name, f.type, part=part))  # type: ignore[arg-type]  # None: the usual one of the type
    return Schema(fields)


def evidence_of(units: Iterable[DecodedChunk], seen: dict[str, Observation]) -> dict[str, Evidence]:
    """What the units, of which `seen` is the sum, show of each feature."""
    counts: dict[str, tuple[int, int | None, int | None]] = dict.fromkeys(seen, (0, None, None))
    for unit in units:
        for name, column in unit.columns.items():
            present, least, most = counts[name]
            lengths = _lengths(column)
            if len(lengths):
                least = min(int(lengths.min()), least if least is not None else 2**62)
                most = max(int(lengths.max()), most or 0)
            counts[name] = (present + len(lengths), least, most)
    return {name: _evidence(seen[name], *counts[name]) for name in seen}


def _lengths(column: ColumnBuffers) -> Array:
    """Number of values (steps) in each row that has the column."""
    if column.layout is Layout.NULL:
        return np.zeros(0, np.int64)
    present = mask_of(column.validity, column.rows)
    if column.offsets is None:
        return np.ones(int(present.sum()), np.int64)
    return np.diff(column.offsets)[present]


def _evidence(seen: Observation, records: int, least: int | None, most: int | None) -> Evidence:
    values = seen if seen.steps is None else seen.steps
    text = values.kind is Kind.BYTES and values.text
    part = "context" if seen.steps is None else FEATURE_LIST
    return Evidence(values.kind.name.lower(), records, least, most, text, part, values.listed, values.binary)
