"""Decide the schema that a manifest is to have, of files of another writer.

Tests: tests/write/test_adopting.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tfrecord_io.base import ScanOptions
from tfrecord_io.columns import EmbeddedSchema, Observations, Schema, plan_columns
from tfrecord_io.read.chunks.embedded_schemas import first_contents, unite_embedded
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.saved_schema import find_saved_schema
from tfrecord_io.store import Source, Sources


def schema_for_manifest(
    sources: Sequence[Source], counts: Sequence[int], options: ScanOptions
) -> tuple[bytes | None, tuple[str, ...]]:
    """Decide the schema to store in the manifest, and the columns.

    Raises
    ------
    SchemaError
        A column has types in two files that no type has in common; both are named.
    """
    filled = Sources(source for source, count in zip(sources, counts, strict=True) if count)
    contents = list(first_contents(filled, options))
    embedded = unite_embedded(None, contents)
    if embedded is not None:
        embedded.refuse_conflicts()
        names = tuple(embedded.schema.names)
        if len(contents) < len(filled):
            return None, names
        schemas = {content for content, _ in contents}
        return (schemas.pop() if len(schemas) == 1 else embedded.pack()), names
    return _saved_schema(filled, options) or _infer_schema(filled, options)


def _saved_schema(sources: Sources, options: ScanOptions) -> tuple[bytes | None, tuple[str, ...]] | None:
    """The schema saved next to the files, if it fits the files.

    It is None where a manifest cannot say all of it, such as other names of columns, or where records have more
    features: each read looks for it then.
    """
    saved = find_saved_schema(sources)
    if saved is None:
        return None
    scan = plan_scan(sources, replace(options, sample="all"), only_sample=True).close()
    if scan.resolved.source != "saved":
        return None
    schema = Schema(scan.features, saved.schema.metadata)  # with the shapes of arrays that all records state alike
    content, names = EmbeddedSchema.of(schema.to_arrow()).pack(), tuple(schema.names)
    if Schema.parse(EmbeddedSchema.parse(content).schema) != schema:
        return None, names
    seen, _ = _observe_all(sources, replace(options, schema="infer"))
    declared = {column.name for column in plan_columns(schema).columns}
    return content if seen.keys() <= declared else None, names


def _infer_schema(sources: Sequence[Source], options: ScanOptions) -> tuple[bytes | None, tuple[str, ...]]:
    """Infer the schema from all records.

    The schema is None where companion features make tensors, or a file next to them describes features: each read looks
    for these.
    """
    seen, is_plain = _observe_all(sources, options)
    schema = seen.schema(options)
    return EmbeddedSchema.of(schema.to_arrow()).pack() if is_plain and sources else None, tuple(schema.names)


def _observe_all(sources: Sequence[Source], options: ScanOptions) -> tuple[Observations, bool]:
    """Observations of the features of all records, and True if these alone decide the types.

    One file is decoded at a time, to bound memory.
    """
    seen = Observations()
    inferring, is_plain = replace(options, sample="all", progress=False), True
    for source in sources:
        planned = plan_scan(Sources([source]), inferring, only_sample=True)
        scan = planned.close()
        if planned.error is not None:
            raise planned.error
        resolved = scan.resolved
        is_plain &= resolved.source == "inferred" and not resolved.companions
        seen = seen.join(resolved.observations)
    return seen, is_plain
