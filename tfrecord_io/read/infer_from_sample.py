"""Infer a schema from decoded chunks: exact over the records they hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Any, Literal

from tfrecord_io.base import MIB, Expansion
from tfrecord_io.bytes import ColumnBuffers, Fault, FaultCode, Kind, Plan, ShapeSource
from tfrecord_io.columns import Field, Observation, Observations, Projection, SeenColumns
from tfrecord_io.errors import FeatureTypeError, SchemaError
from tfrecord_io.read.chunks.chunk import DecodedChunk, RowBudget
from tfrecord_io.read.chunks.chunk_reader import ChunkReader

SAMPLE_BYTES = 16 * MIB  # of the records from which types are inferred


def observe_chunks(
    chunks: Iterable[DecodedChunk],
    known: Collection[str] = (),
    *,
    into: list[DecodedChunk] | None = None,
    may_differ: Callable[[str], bool] = lambda name: False,
) -> SeenColumns:
    """Join the observations of the chunks, by feature, except those of `known` features; append the chunks to `into`.

    A chunk that contradicts itself or those before it gets the SchemaError as its error, and is truncated before the
    contradiction. Features that `may_differ` may have values of different kinds.
    """
    seen = SeenColumns(known, may_differ)
    for chunk in chunks:
        if into is not None:
            into.append(chunk)
        while True:
            try:
                seen.add(chunk.columns, chunk.record_of)
                break
            except SchemaError:  # of several in one record, that of the first name, wherever chunks begin and end
                errors = seen.contradictions(chunk.columns, chunk.record_of)
                rows = [(chunk.row_of(error.path, error.record or 0), error) for error in errors]
                _truncate(chunk, *min(rows, key=itemgetter(0)))
        if getattr(chunk.error, "feature", None) not in known:
            name_contradicted_record(chunk, seen.observations)
    return seen


def _truncate(chunk: DecodedChunk, rows: int, error: Exception) -> None:
    chunk.error, chunk.rows = error, rows
    chunk.columns = ColumnBuffers.cut_all(chunk.columns, 0, rows)


def refuse_undeclared(chunks: Iterable[DecodedChunk], plan: Plan, declares: Callable[[str], bool]) -> None:
    """End the chunks of files with an embedded schema before values of features that the plan does not name.

    `declares` returns whether the file of a path has an embedded schema.
    """
    known = {column.name for column in plan.columns}
    for chunk in chunks:
        unknown = [c for c in chunk.columns.values() if c.name not in known and c.null_count < c.rows]
        for file in chunk.files() if unknown and chunk.rows else ():
            if not declares(file.path):
                continue
            masks = {column.name: column.mask[file.begin : file.end] for column in reversed(unknown)}
            rows = {int(mask.argmax()): name for name, mask in masks.items() if mask.any()}
            if rows:
                fault = Fault(FaultCode.UNKNOWN_FEATURE, min(rows), 0, feature=rows[min(rows)])
                error = fault.to_error(path=file.path, record=file.first_record, plan=plan)
                error.offset = None
                _truncate(chunk, file.begin + min(rows), error)
                break


def sampled_chunks(
    reader: ChunkReader, budget: RowBudget, size: int | Literal["all"], max_expansion: int
) -> Iterator[DecodedChunk]:
    """The chunks of a sample of so many records, which count towards the `budget` of the read."""
    if size == "all":
        yield from within_memory(reader.chunks(budget), max_expansion)
        return
    decoder = reader.decoder()
    left, left_bytes = size, SAMPLE_BYTES
    while left > 0 and left_bytes > 0:
        room, room_bytes = budget.max_rows, budget.max_bytes
        chunk = reader.read(decoder, min(left, room), min(left_bytes, room_bytes), begun=budget.rows > 0)
        if chunk is None:
            break
        by_batch = room <= left if chunk.rows == min(left, room) else room_bytes <= left_bytes
        ends_sample = chunk.full or (chunk.ends_batch and not by_batch)
        chunk.ends_batch &= by_batch
        left, left_bytes = left - chunk.rows, left_bytes - chunk.payload_bytes
        ends_sample |= chunk.ends_read  # the caller may give it another error
        budget.take(chunk)
        yield chunk
        if ends_sample:
            break


def within_memory(chunks: Iterable[DecodedChunk], max_expansion: int) -> Iterator[DecodedChunk]:
    """The chunks, until their rows have more cells in all columns found so far than `max_expansion` allows.

    The first chunk that is too much has no rows, and a SchemaError.
    """
    expansion, names, rows = Expansion(max_expansion), dict[str, None](), 0  # names in order of their first record
    for chunk in chunks:
        names.update(dict.fromkeys(chunk.columns))
        rows += chunk.rows
        expansion.add(chunk.payload_bytes)
        size = rows * len(names) * Expansion.BYTES_PER_CELL
        if size > expansion.room:
            reason = f"{rows} rows of {len(names)} columns take about {size} bytes"
            chunk.error = SchemaError(
                expansion.excess(reason),
                path=chunk.path,
                record=chunk.first_record,
                feature=next(reversed(names)),
                expected=expansion.room,
                got=size,
                hint=f"{expansion.advice(size)}, or select columns=, or read batches by open_reader",
                hint_cli=f"{expansion.advice(size)}, or select --columns",
            )
            chunk.revision, chunk.rows, chunk.columns = None, 0, {}
        ends_read = chunk.ends_read  # the caller may give it another error
        yield chunk
        if ends_read:
            return


def name_contradicted_record(chunk: DecodedChunk, observations: Mapping[str, Observation]) -> None:
    """Where the chunk's error is a feature type that contradicts an earlier record, make it name both records."""
    error = chunk.error
    if not isinstance(error, (FeatureTypeError, SchemaError)) or str(error.got) not in Kind.__members__:
        return
    name, expected, got = error.feature or "", str(error.expected), Kind[str(error.got)]
    at = chunk.record_of(chunk.rows)
    chunk.error = (
        Observations(observations).contradiction(name, got=got, expected=expected, number=error.record or 0, at=at)
        or error
    )


class SampledNames:
    """Selects the features that a sample decodes: the projection, its companions, and what states declared shapes."""

    def __init__(self, projection: Projection, with_companions: bool, overrides: Mapping[str, Any] | None) -> None:
        self._projection = projection
        self._with_companions = with_companions
        fields = [f for name, f in (overrides or {}).items() if isinstance(f, Field) and projection(name)]
        self._stated = {name for f in fields for source in f.shape_sources for name in source.features}

    def __call__(self, name: str) -> bool:
        return self._projection(name) or name in self._stated or self.is_companion(name)

    def is_companion(self, name: str | None) -> bool:
        """True if the feature is read only as a companion of a selected one."""
        if name is None or not self._with_companions or self._projection(name):
            return False
        feature = ShapeSource.described_feature(name)
        return feature is not None and self._projection(feature)
