"""The parts of a condition that all have to be fulfilled, each as an expression of its own.

pyarrow cannot take an expression apart, but pickles it as an Arrow file: the steps are entries of the schema's
metadata, in order, and the columns of its batch are what the steps refer to by number. A part has some of the steps,
and the batch of the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tfrecord_io.arrow.expression_columns import expression_entries

if TYPE_CHECKING:
    import pyarrow.compute as pc

_AND = (b"call", b"and_kleene")
Entries = list[tuple[bytes, bytes]]


def conjuncts(expression: pc.Expression) -> list[pc.Expression]:
    """The conditions that `expression` connects by ``&``; a row fulfils it where it fulfils all of these.

    >>> import pyarrow.compute as pc
    >>> conjuncts((pc.field("a") > 1) & (pc.field("b").isin(["x"]) | pc.field("c")) & pc.field("c"))
    [<pyarrow.compute.Expression (a > 1)>, <pyarrow.compute.Expression (is_in(b, {value_set=string:[
      "x"
    ], null_matching_behavior=MATCH}) or c)>, <pyarrow.compute.Expression c>]
    >>> conjuncts(~pc.field("a") & pc.field("b").is_valid())
    [<pyarrow.compute.Expression invert(a)>, <pyarrow.compute.Expression is_valid(b)>]
    """
    rebuild, (_, *rest) = expression.__reduce__()
    entries, batch = expression_entries(expression)
    parts = _parts(entries)
    if len(parts) == 1:
        return [expression]
    return [rebuild(_pickled(batch, part), *rest) for part in parts]


def _pickled(batch: pa.RecordBatch, entries: Entries) -> pa.Buffer:
    """The Arrow file of some steps."""
    columns, schema = batch.columns, batch.schema
    if not columns:  # the batch has one row, which needs a column here; no step refers to it
        columns, schema = [pa.nulls(1)], pa.schema({"": pa.null()})
    schema = schema.with_metadata(pa.KeyValueMetadata(entries))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return sink.getvalue()


def _parts(entries: Entries) -> list[Entries]:
    """The steps of each part."""
    if entries[0] != _AND:
        return [entries]
    parts: list[Entries] = []
    at = 1
    while entries[at][0] != b"end":
        end = _end(entries, at)
        parts += _parts(entries[at:end])
        at = end
    return parts


def _end(entries: Entries, at: int) -> int:
    """The number of the first step after the argument of a call that begins at `at`."""
    if entries[at][0] == b"nested_field_ref":
        return at + 1 + int(entries[at][1])
    depth = 0
    while True:
        depth += {b"call": 1, b"end": -1}.get(entries[at][0], 0)
        at += 1
        if depth == 0:
            return at
