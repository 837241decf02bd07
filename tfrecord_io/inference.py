"""The schema that decoded units show: exact over what they hold."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from tfrecord_io.arrow.observe import observe_all
from tfrecord_io.arrow.physical import cut
from tfrecord_io.decoding import Unit
from tfrecord_io.errors import SchemaError
from tfrecord_io.options import ReadOptions
from tfrecord_io.schema.unify import Observed, arrow_schema, join_columns


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
    return seen


def _cut_before(unit: Unit, error: SchemaError) -> None:
    """Keep the rows before the contradiction."""
    unit.error = error
    unit.rows = max(0, (error.record or 0) - unit.first_record)
    unit.columns = {name: cut(column, 0, unit.rows) for name, column in unit.columns.items()}


def inferred_schema(seen: dict[str, Observed], options: ReadOptions) -> pa.Schema:
    """The Arrow schema of what was seen, under the options that speak about inference."""
    return arrow_schema(seen, infer_text=options.infer_text, stable_types=options.stable_types, large_offsets=options.large_offsets)
