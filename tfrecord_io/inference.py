"""The schema that decoded units show: exact over what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from tfrecord_io.arrow.observe import observe_all
from tfrecord_io.arrow.physical import cut
from tfrecord_io.errors import FeatureTypeError, SchemaError
from tfrecord_io.options import ReadOptions
from tfrecord_io.schema.kinds import Kind, Layout
from tfrecord_io.schema.unify import Observed, Where, arrow_schema, join, join_columns
from tfrecord_io.units import Unit


def observe_units(units: Iterable[Unit]) -> dict[str, Observed]:
    """What the units show together, by feature.

    A unit that contradicts those before it gets the SchemaError as its error, and what it shows does not count.
    """
    seen: dict[str, Observed] = {}
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


def name_both(unit: Unit, seen: Mapping[str, Observed]) -> None:
    """Where a record has another kind than those before it: make the unit's error one that names both records."""
    error = unit.error
    if not isinstance(error, (FeatureTypeError, SchemaError)) or str(error.got) not in Kind.__members__:
        return
    before = seen.get(error.feature or "")
    if before is None:
        return
    here = Where(unit.path, error.record or 0, unit.file)
    found = Observed(Kind[str(error.got)], Layout.LIST, first=here)
    if before.steps is not None:
        found = Observed(layout=Layout.LIST, first=here, steps=found)
    try:
        join(error.feature or "", before, found)
    except SchemaError as both:
        unit.error = both


def _cut_before(unit: Unit, error: SchemaError) -> None:
    """Keep the rows before the contradiction."""
    unit.error = error
    unit.rows = max(0, (error.record or 0) - unit.first_record)
    unit.columns = {name: cut(column, 0, unit.rows) for name, column in unit.columns.items()}


def inferred_schema(seen: dict[str, Observed], options: ReadOptions) -> pa.Schema:
    """The Arrow schema of what was seen, under the options that speak about inference."""
    return arrow_schema(seen, infer_text=options.infer_text, stable_types=options.stable_types, large_offsets=options.large_offsets)
