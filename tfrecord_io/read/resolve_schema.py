"""Plan a read: choose the schema that governs it, or infer it from a sample."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from tfrecord_io.arrow.decode.plan import reads_companions
from tfrecord_io.arrow.output.merged_schema import EmbeddedSchema
from tfrecord_io.engine.contract import Plan, RecordCounts
from tfrecord_io.errors import CorruptRecordError, FeatureNotFoundError
from tfrecord_io.format.companions import companions
from tfrecord_io.format.kinds import RECORD_TYPES, RecordType, Text
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.read.chunks import payload_decoder
from tfrecord_io.read.chunks.chunk import DecodedChunk, DecodeSettings, plan_limits
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import (
    EmbeddedSchemaCheck,
    ForeignFeature,
    SchemaRevision,
    schema_of_empty,
)
from tfrecord_io.read.chunks.row_budget import RowBudget, row_budget
from tfrecord_io.read.indexed_rows import opened_by_index
from tfrecord_io.read.inference import (
    SampledNames,
    evidence_of,
    folded_columns,
    inferred_schema,
    left_out_companions,
    observe_chunks,
    refuse_undeclared,
    within_memory,
)
from tfrecord_io.read.open_scan import OpenScan
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.record_type import check_record_type, warn_of_feature_lists
from tfrecord_io.read.row_filter import RowFilter, unfiltered
from tfrecord_io.read.scan import ResolvedSchema, Scan
from tfrecord_io.read.sidecar_schema import find_sidecar_schema
from tfrecord_io.schema.column_selection import Projection, apply_overrides, is_glob, matches
from tfrecord_io.schema.inferred_schema import InferredSchema
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.source import Source

_SAMPLE_BYTES = 16 * MIB


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What decoding takes for granted. The records may disprove each assumption once, in one direction.

    Attributes
    ----------
    record_type : RecordType
        DETECT may become SEQUENCE_EXAMPLE.
    fold_tensors : bool
        Whether companion features are read, and turn bytes into tensors; may become False.
    embedded : EmbeddedSchema or None
        Grows as files have more columns.
    unites : bool
        Whether features of files without an embedded schema become columns in addition to those of `embedded`.
    """

    record_type: RecordType
    fold_tensors: bool
    embedded: EmbeddedSchema | None = None
    unites: bool = False


@dataclass
class Planned:
    """A scan, and the files that were opened to plan it.

    Attributes
    ----------
    opened : OpenScan
        Continues where planning stopped; it has the sample.
    inferred : InferredSchema or None
        With its evidence, if that was requested.
    error : Exception or None
        What ended the sample.
    sampled : int or None
        Number of records in the sample.
    """

    scan: Scan
    opened: OpenScan
    inferred: InferredSchema | None = None
    error: Exception | None = None
    sampled: int | None = None

    def close(self) -> Scan:
        """Close the files, drop the sample, and return the scan."""
        self.opened.sample.clear()
        self.opened.reader.close()
        return self.scan


def plan_scan(
    path: Any,
    options: ReadOptions,
    *,
    whole: bool = False,
    with_index: bool = False,
    with_evidence: bool = False,
    only_sample: bool = False,
    embedded: EmbeddedSchema | None = None,
) -> Planned:
    """Choose the schema of a read, and compile it.

    The schema is the first of: ``schema=``, the embedded schema of the files, that of a sidecar file, the one inferred
    from the values, where bytes with companion features become tensors.

    Parameters
    ----------
    path
        As in `tfrecord_io.read_table`, or a list of `Source`.
    options : ReadOptions
    whole, with_index, with_evidence
        See `Scan`; the evidence for an inferred schema is kept in `Planned.inferred`.
    only_sample : bool
        The caller closes the plan: nothing behind the sample is read in advance.
    embedded : EmbeddedSchema, optional
        The embedded schema of the files, if known.
    """
    sources = resolve_inputs(path, options.storage, allow_missing_shards=options.allow_missing_shards)
    planner = _Planner(tuple(sources), options, whole=whole, with_index=with_index, with_evidence=with_evidence)
    reader = ChunkReader(planner.sources, planner.options, ahead=not only_sample)
    return planner.plan(reader, planner.assumptions(embedded))


def open_scan(path: Any, options: ReadOptions, *, whole: bool = False, with_index: bool = False) -> Reader:
    """Plan a read and open it; see `plan_scan`."""
    planned = plan_scan(path, options, whole=whole, with_index=with_index)
    if whole and planned.scan.resolved.is_inferred:  # from all records
        return Reader(planned.opened)
    return Reader(opened_by_index(planned.scan, planned.opened) or planned.opened)


class _Planner:
    """What all attempts at a plan share; it does not change."""

    def __init__(
        self, sources: tuple[Source, ...], options: ReadOptions, *, whole: bool, with_index: bool, with_evidence: bool
    ) -> None:
        self.sources = sources
        self._infers = isinstance(options.schema, str) and options.schema == "infer"
        self._filters, self._requested = options.filters, replace(options, filters=None)
        self._whole, self._with_index, self._with_evidence = whole, with_index, with_evidence
        self._partitions = PartitionColumns.of(sources)
        if self._filters is not None:
            options, self.sources = unfiltered(options, sources, self._partitions)
        self.options = replace(options, sample="all") if whole else options
        self._projection = Projection(options.columns)
        self._text = Text.TRACK if options.infer_text and not options.stable_types else Text.NO

    def assumptions(self, embedded: EmbeddedSchema | None) -> Assumptions:
        """The initial assumptions."""
        options = self.options
        plain = (self._infers and not self._with_evidence) or options.stable_types or options.record_type == "bytes"
        return Assumptions(RECORD_TYPES.get(options.record_type, RecordType.EXAMPLE), not plain, embedded)

    def plan(self, reader: ChunkReader, assumptions: Assumptions) -> Planned:
        """Attempt a plan, with changed assumptions until they hold."""
        try:
            while not isinstance(attempt := self._attempt(reader, assumptions), Planned):
                assumptions = attempt
                reader = reader.restarted()
        except BaseException:
            reader.close()
            raise
        attempt.opened.replan = lambda revision: self._replan(attempt.opened.reader, assumptions, revision)
        return attempt

    def _replan(
        self, reader: ChunkReader, assumptions: Assumptions, revision: SchemaRevision | ForeignFeature
    ) -> OpenScan:
        if isinstance(revision, ForeignFeature):
            return self.plan(reader.restarted(), replace(assumptions, unites=True)).opened
        revision.warn_if_late()
        return self.plan(reader.restarted(), replace(assumptions, embedded=revision.embedded)).opened

    def _attempt(self, reader: ChunkReader, assumptions: Assumptions) -> Planned | Assumptions:
        options = self.options
        uses_embedded = options.schema is None
        if options.record_type == "bytes":
            return self._payloads(reader)
        reader.check = EmbeddedSchemaCheck(uses_embedded, assumptions.embedded)
        if assumptions.embedded is None and (uses_embedded or self._infers):
            is_sequence, revision = reader.peek()
            if is_sequence and assumptions.record_type is RecordType.DETECT:
                assumptions = replace(assumptions, record_type=RecordType.SEQUENCE_EXAMPLE)
            elif is_sequence:
                warn_of_feature_lists(self.sources, options)
            if revision is not None:
                revision.warn_if_late()
                assumptions = replace(assumptions, embedded=revision.embedded)
        record_type = assumptions.record_type
        if not uses_embedded and not self._infers:
            partitions, schema = self._partitions.declared(Schema.parse(options.schema), self.sources)
            resolved = ResolvedSchema(self._overridden(schema), "schema=", record_type)
            return self._planned(reader, resolved, partitions=partitions)
        embedded = assumptions.embedded or (schema_of_empty(self.sources) if uses_embedded else None)
        if embedded is not None and assumptions.unites:
            return self._united(reader, assumptions, embedded)
        if embedded is not None:
            schema = self._overridden(Schema.parse(embedded.schema))
            warn_of_feature_lists(self.sources, options, schema)
            return self._planned(reader, ResolvedSchema(schema, "embedded", record_type, embedded))
        sidecar = find_sidecar_schema(self.sources, options.storage) if uses_embedded else None
        if sidecar is not None:
            resolved = ResolvedSchema(self._overridden(sidecar.schema), "features.json", record_type)
            return self._planned(reader, resolved, sidecar=sidecar)
        try:
            return self._inferred(reader, assumptions)
        except FeatureNotFoundError as error:
            if not reader.bytes:
                error.advice = "no record was read, so no name is known: pass schema="
            raise

    def _payloads(self, reader: ChunkReader) -> Planned:
        """The plan to read records as bytes: nothing is parsed, and no schema is looked for."""
        if self.options.schema not in (None, "infer"):
            raise ValueError('record_type="bytes" has one column of its own: schema= does not apply')
        return self._planned(reader, ResolvedSchema(Schema.from_arrow(payload_decoder.SCHEMA), 'record_type="bytes"'))

    def _planned(self, reader: ChunkReader, resolved: ResolvedSchema, **known: Any) -> Planned:
        """The plan to read under a schema that needs no sample; `known` are fields of the scan."""
        self._check_names(resolved.schema.names)
        scan = self._scan(resolved, **known)
        return Planned(scan, scan.opened(reader, scan.absent_columns()))

    def _scan(self, resolved: ResolvedSchema, **known: Any) -> Scan:
        fields = {"partitions": self._partitions, "with_index": self._with_index, "whole": self._whole, **known}
        scan = Scan(self.sources, self.options, resolved, **fields)
        if self._filters is None:
            return scan
        requested = Scan(self.sources, self._requested, resolved, **fields)
        return scan.delivering(RowFilter.of(self._filters, scan.schema), self._requested.limit, requested)

    def _check_names(self, features: Collection[str]) -> None:
        self._partitions.refuse_features(features, self.sources)
        Projection(self._requested.columns).check([*features, *self._partitions.names])

    def _overridden(self, schema: Schema) -> Schema:
        overrides = self.options.schema_overrides
        return schema if overrides is None else apply_overrides(schema, overrides)

    def _united(self, reader: ChunkReader, assumptions: Assumptions, embedded: EmbeddedSchema) -> Planned | Assumptions:
        """Decode everything, and add columns for the features that only files without an embedded schema have."""
        declared = self._overridden(Schema.parse(embedded.schema))
        untyped = {field.feature for field in declared if pa.types.is_null(field.type)}
        scan = self._scan(ResolvedSchema(declared, "embedded", assumptions.record_type, embedded))
        plan = replace(
            scan.settings.plan,
            columns=tuple(column for column in scan.settings.plan.columns if column.name not in untyped),
            unknown="discover",
            select=self._projection.filter,
            text=self._text,
        )
        known = {column.name for column in plan.columns}
        check = reader.check = EmbeddedSchemaCheck(True, embedded)
        reader.settings = DecodeSettings(plan)
        budget = row_budget(self.options, whole=True)
        sample = list(reader.chunks(budget))
        if sample and (revision := sample[-1].revision) is not None:
            revision.warn_if_late()
            return replace(assumptions, embedded=revision.embedded)
        if assumptions.record_type is RecordType.DETECT and any(chunk.sequence for chunk in sample):
            return replace(assumptions, record_type=RecordType.SEQUENCE_EXAMPLE)
        refuse_undeclared(sample, known, lambda path: not check.is_foreign(path))
        observations = observe_chunks(sample, known)
        failed = next((at + 1 for at, chunk in enumerate(sample) if chunk.error is not None), None)
        if failed is not None and (later := self._with_later(embedded, sample[failed - 1].file)) is not embedded:
            return replace(assumptions, embedded=later)
        added = {field.column: field for field in inferred_schema(observations, self.options, {})}
        fields = [added.pop(field.column, field) for field in declared]
        united = Schema([*fields, *added.values()], declared.metadata)
        self._check_names(united.names)
        scan = self._scan(ResolvedSchema(united, "embedded", assumptions.record_type, embedded))
        opened = scan.opened(reader)
        reader.check, opened.budget = check, budget
        opened.sample = [chunk for chunk in sample[:failed] if chunk.rows or chunk.ends_batch or chunk.ends_read]
        return Planned(scan, opened)

    # Inference --------------------------------------------------------------------------------------------------

    def _inferred(self, reader: ChunkReader, assumptions: Assumptions) -> Planned | Assumptions:
        """Decode a sample and infer the schema from it."""
        options = self.options
        names = SampledNames(self._projection, assumptions.fold_tensors)
        plan = Plan(
            unknown="discover",
            select=None if self._projection.takes_all else names,
            text=self._text,
            record_type=assumptions.record_type,
            **plan_limits(options),
        )
        reader.settings = DecodeSettings(plan)
        budget = row_budget(options, whole=self._whole)
        sample: list[DecodedChunk] = []
        observations = observe_chunks(self._sample(reader, budget), into=sample)  # while others are decoded
        if sample and (revision := sample[-1].revision) is not None:
            revision.warn_if_late()
            return replace(assumptions, embedded=revision.embedded)
        failed, error = next(((i, c.error) for i, c in enumerate(sample) if c.error is not None), (None, None))
        if failed is not None and (embedded := self._with_later(None, sample[failed].file)) is not None:
            return replace(assumptions, embedded=embedded)
        counts = sum((chunk.counts for chunk in sample), RecordCounts())
        seen = {name for chunk in sample for name, _ in chunk.new_names}
        if failed is None:
            check_record_type(counts, self.sources, options)
            self._check_names(seen)
        else:
            sample = sample[: failed + 1]
            if names.is_companion(getattr(error, "feature", None)):
                return replace(assumptions, fold_tensors=False)  # it was not selected, and may be anything
        if assumptions.record_type is RecordType.DETECT and any(chunk.sequence for chunk in sample):
            # One feature list makes all records SequenceExamples, also those that were decoded as Examples.
            return replace(assumptions, record_type=RecordType.SEQUENCE_EXAMPLE)
        folded = folded_columns(sample, observations, self._may_fold) if assumptions.fold_tensors else {}
        schema = self._overridden(inferred_schema(observations, options, folded))
        hidden = self._hidden_companions(schema, sample, seen) if assumptions.fold_tensors else frozenset()
        resolved = ResolvedSchema(
            schema,
            "companions" if folded else "inferred",
            assumptions.record_type,
            folded=frozenset(folded),
            companions=hidden,
            observations=observations,
        )
        sampled = sum(chunk.rows for chunk in sample)
        scan = self._scan(resolved)
        opened = scan.opened(reader)
        opened.check_record_type(counts)
        inferred = None
        if self._with_evidence:
            inferred = InferredSchema(scan.columns, evidence_of(sample, observations), sampled)
        opened.budget = budget
        opened.sample = [chunk for chunk in sample if chunk.rows or chunk.ends_batch or chunk.ends_read]
        return Planned(scan, opened, inferred, error, sampled)

    def _with_later(self, embedded: EmbeddedSchema | None, file: int) -> EmbeddedSchema | None:
        """The schema that also covers the embedded ones of the files after number `file`, which was read with an error.

        They govern the files before them, too: so an error does not depend on the order of the files.
        """
        later = self.sources[file + 1 :] if self._whole and self.options.schema is None else ()
        for source in (source for source in later if not source.is_file_object):
            reader = ChunkReader([source], replace(self.options, offset=0, progress=False))
            reader.check = EmbeddedSchemaCheck(True, embedded)
            with closing(reader), suppress(CorruptRecordError, OSError):
                _, revision = reader.peek()
                embedded = embedded if revision is None else revision.embedded
        return embedded

    def _sample(self, reader: ChunkReader, budget: RowBudget) -> Iterator[DecodedChunk]:
        """The chunks of the sample, which count towards the `budget` of the read."""
        if self.options.sample == "all":
            yield from within_memory(reader.chunks(budget), self.options.max_expansion)
            return
        decoder = reader.decoder()
        left, left_bytes = self.options.sample, _SAMPLE_BYTES
        while left > 0 and left_bytes > 0:
            room, room_bytes = budget.max_rows, budget.max_bytes
            chunk = reader.read(decoder, min(left, room), min(left_bytes, room_bytes), begun=budget.begun)
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

    def _may_fold(self, name: str) -> bool:
        """Whether a feature may become a tensor: it is selected, and neither it nor a companion has a declared type."""
        keys = self.options.schema_overrides or {}
        names = (name, *companions(name))
        declared = any(key == other or (is_glob(key) and matches(key, other)) for key in keys for other in names)
        return self._projection(name) and not declared

    def _hidden_companions(
        self, schema: Schema, sample: Sequence[DecodedChunk], names: Collection[str]
    ) -> frozenset[str]:
        """Companions that are not columns: of tensors that an override declares, and of features that are left out."""
        hidden = {name for f in schema if reads_companions(f) for name in companions(f.feature)}
        hidden |= left_out_companions(sample, set(names), self._projection)
        return frozenset(hidden - set(self.options.columns or ()) - set(self.options.schema_overrides or ()))
