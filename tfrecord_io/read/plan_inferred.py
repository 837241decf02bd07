"""Plan a read by a sample: infer all of its schema, or what the embedded schemas of its files leave out.

Each attempt goes three steps: `decode` a sample, `revise` the assumptions that it disproves, or else `plan` the read.
`InferredPlan` samples the first records of files without a schema. `ForeignFeatures` decodes all records of files of
which only some have an embedded schema. `tfrecord_io.read.infer_from_sample` concludes types from decoded records.

Tests: tests/read/test_infer_from_sample.py, tests/read/test_resolve_schema.py and tests/laws/test_united_schemas.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from itertools import chain
from operator import itemgetter

import pyarrow as pa

from tfrecord_io.base import cached_property
from tfrecord_io.bytes import Layout, Plan, PlanColumn, RecordCounts, RecordType, ShapeSource, Text
from tfrecord_io.columns import EmbeddedSchema, Observations, Overrides, Schema, plan_columns, reads_companions
from tfrecord_io.errors import FeatureNotFoundError
from tfrecord_io.read.chunks.chunk import DecodedChunk, DecodeSettings, RowBudget, plan_limits, row_budget
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.infer_from_sample import SampledNames, observe_chunks, refuse_undeclared, sampled_chunks
from tfrecord_io.read.plan_request import Assumptions, PlanRequest, UnitedSchemas
from tfrecord_io.read.reader import Planned, plan_read
from tfrecord_io.read.record_checks import check_record_type
from tfrecord_io.read.scan import ResolvedSchema, Scan


@dataclass(eq=False, repr=False)
class _Sample:
    """Decoded records, and what they show of features that are not known."""

    chunks: Sequence[DecodedChunk]
    contested: Collection[str]  # features that have values of different kinds
    observations: Observations  # of all features, also of those that are declared
    budget: RowBudget

    @property
    def error(self) -> Exception | None:
        """The error that ends the sample, if any."""
        return next((chunk.error for chunk in self.chunks if chunk.error is not None), None)

    @property
    def until_error(self) -> Sequence[DecodedChunk]:
        """The chunks up to the first that has an error, and with it."""
        ends = (number for number, chunk in enumerate(self.chunks, 1) if chunk.error is not None)
        return self.chunks[: next(ends, None)]

    @cached_property
    def new_names(self) -> set[str]:
        """The features that no plan named, also those that are left out."""
        return set(map(itemgetter(0), chain.from_iterable(chunk.new_names for chunk in self.chunks)))


class _SampledPlan(ABC):
    """One attempt to plan a read by a sample, which `reader` decodes."""

    def __init__(
        self, request: PlanRequest, schemas: UnitedSchemas, reader: ChunkReader, assumptions: Assumptions
    ) -> None:
        self.request, self.schemas, self.reader, self.assumptions = request, schemas, reader, assumptions
        self.text = Text.TRACK if request.options.infer_text and not request.options.stable_types else Text.NO
        self._is_overridden = Overrides(request.options.schema_overrides).names

    def attempt(self) -> Planned | Assumptions:
        """The plan, or better assumptions, to try again."""
        sample = self.decode()
        revised = self.revise(sample)
        return self.plan(sample) if revised is None else revised

    @abstractmethod
    def decode(self) -> _Sample:
        """Decode the sample."""

    @abstractmethod
    def revise(self, sample: _Sample) -> Assumptions | None:
        """The assumptions without those that the sample disproves; None if all hold."""

    @abstractmethod
    def plan(self, sample: _Sample) -> Planned:
        """The plan under assumptions that hold."""

    def revise_embedded(self, sample: _Sample) -> Assumptions | None:
        """The assumptions with an embedded schema that the plan does not cover, at which decoding stopped."""
        if not sample.chunks or (revision := sample.chunks[-1].revision) is None:
            return None
        revision.warn_if_late()
        return self.assumptions._replace(embedded=self.schemas.unite(revision.embedded))

    def is_newly_declared(self, name: str) -> bool:
        """True if ``schema_overrides=`` declares the type of a feature that is not yet decoded as declared."""
        return name not in self.assumptions.declared and self._is_overridden(name)

    def declared_columns(self) -> list[PlanColumn]:
        """How features are decoded in the sample whose type ``schema_overrides=`` declares."""
        declared = self.assumptions.declared
        if not declared:
            return []
        schema = self.request.override_types(Observations(declared).schema(self.request.options), of=declared)
        steps = frozenset(name for name, seen in declared.items() if seen.steps is not None)
        compiled = plan_columns(schema, text=Text.STRICT, steps=steps)
        return [column for column in compiled.columns if column.name in declared]


class InferredPlan(_SampledPlan):
    """An attempt to plan a read by the schema that the first records show; all of them, if the read is `whole`.

    `plan_first_records` plans a read of the first records of all files.
    """

    def __init__(
        self,
        request: PlanRequest,
        schemas: UnitedSchemas,
        reader: ChunkReader,
        assumptions: Assumptions,
        plan_first_records: Callable[[], Scan],
    ) -> None:
        super().__init__(request, schemas, reader, assumptions)
        self._plan_first_records = plan_first_records
        overrides = request.options.schema_overrides
        self._sampled_names = SampledNames(request.projection, assumptions.fold_tensors, overrides)

    def decode(self) -> _Sample:
        """Decode a sample, of columns that are not known but for those whose type was contested or is declared."""
        request, options, assumptions = self.request, self.request.options, self.assumptions
        declared = self.declared_columns()
        contested = [
            PlanColumn(name, counts[0].kind, Layout.ANY, self.text, steps=steps)
            for (name, steps), counts in assumptions.contested.items()
        ]
        plan = Plan(
            (*contested, *declared),
            unknown="discover",
            # Each segment asks for the same names.
            select=None if request.projection.takes_all else cache(self._sampled_names),
            text=self.text,
            splits=True,
            record_type=assumptions.record_type,
            **plan_limits(options),
        )
        self.reader.settings = DecodeSettings(plan)
        budget, chunks = row_budget(options, request.selection, whole=request.whole), list[DecodedChunk]()
        size = "all" if request.whole else options.sample
        seen = observe_chunks(  # while others are decoded
            sampled_chunks(self.reader, budget, size, options.limits.expansion_bytes),
            {column.name for column in declared},
            into=chunks,
            may_differ=lambda name: self.reader.recovery is not None or self.is_newly_declared(name),
        )
        return _Sample(chunks, seen.contested, Observations({**assumptions.declared, **seen.observations}), budget)

    def revise(self, sample: _Sample) -> Assumptions | None:
        """The assumptions without those that the sample disproves; None if all hold.

        DecodeError if the records are not Examples, FeatureNotFoundError if they do not have the requested columns.
        """
        assumptions, options = self.assumptions, self.request.options
        if (revised := self.revise_embedded(sample)) is not None:
            return revised
        if sample.error is not None and options.schema is None and (united := self.schemas.unite(None)) is not None:
            return assumptions._replace(embedded=united)
        if any(map(self._sampled_names.is_companion, sample.contested)):
            return assumptions._replace(fold_tensors=False)
        if sample.contested:
            return self._revise_kinds(sample)
        if self._is_of_no_rows(sample):
            return None
        if sample.error is None:
            check_record_type(_record_counts(sample), self.request.sources, options)
            self.request.check_names(self._seen_names(sample))
        elif self._sampled_names.is_companion(getattr(sample.error, "feature", None)):
            return assumptions._replace(fold_tensors=False)  # it was not selected, and may be anything
        if assumptions.record_type is RecordType.DETECT and any(chunk.sequence for chunk in sample.until_error):
            # One feature list makes all records SequenceExamples, also those that were decoded as Examples.
            return assumptions._replace(record_type=RecordType.SEQUENCE_EXAMPLE)
        return None

    def _revise_kinds(self, sample: _Sample) -> Assumptions:
        """The assumptions with the features that have values of different kinds, as contested or as declared."""
        declared = {name: sample.observations[name] for name in filter(self.is_newly_declared, sample.contested)}
        contested = dict(self.assumptions.contested)
        for name in (name for name in sample.contested if name not in declared):
            columns = [(c.columns[name], c.record_of) for c in sample.chunks if name in c.columns]
            contested[name, columns[0][0].steps is not None] = Observations.count_kinds(columns)
        return self.assumptions._replace(contested=contested, declared={**self.assumptions.declared, **declared})

    def plan(self, sample: _Sample) -> Planned:
        """The plan under the schema of the sample."""
        if self._is_of_no_rows(sample):
            return self._plan_no_rows(sample)
        request, chunks = self.request, sample.until_error
        try:
            scan = request.scan(self._resolve(sample))
        except FeatureNotFoundError:
            if sample.error is not None and request.options.damage.counts_all:
                raise sample.error from None  # without which the name may be known
            raise
        planned = plan_read(scan, self.reader, whole=request.whole)
        check_record_type(_record_counts(sample), request.sources, request.options)
        planned.budget, planned.error = sample.budget, sample.error
        planned.sampled = sum(chunk.rows for chunk in chunks)
        if request.with_evidence:
            from tfrecord_io.columns import InferredSchema

            evidence = sample.observations.evidence((chunk.columns for chunk in chunks), self.assumptions.contested)
            planned.inferred = InferredSchema(scan.features, evidence, planned.sampled)
        planned.sample = DecodedChunk.to_deliver(chunks)
        return planned

    def _resolve(self, sample: _Sample) -> ResolvedSchema:
        """The schema of the sample; features are tensors where their companions say so in every record."""
        request, folds, chunks = self.request, self.assumptions.fold_tensors, sample.until_error
        seen_names, observations = self._seen_names(sample), sample.observations
        folded = observations.fold_companions([chunk.columns for chunk in chunks], self._may_fold) if folds else {}
        schema = request.override_types(
            observations.schema(request.options, folded, request.selection.columns), left_out=seen_names
        )
        return ResolvedSchema(
            schema,
            "companions" if folded else "inferred",
            self.assumptions.record_type,
            folded=frozenset(folded),
            companions=self._hidden_companions(schema, chunks, seen_names) if folds else frozenset(),
            observations=observations,
        )

    def _seen_names(self, sample: _Sample) -> set[str]:
        """The features of the sample, also those that are left out."""
        contested = (name for name, _ in self.assumptions.contested)
        return sample.new_names.union(contested, self.assumptions.declared)

    def _is_of_no_rows(self, sample: _Sample) -> bool:
        """True if a read of no rows names columns of an unknown schema: they are those of the first records."""
        request, requested = self.request, self.request.requested
        names_any = (
            requested.columns is not None or requested.filters is not None or bool(request.options.schema_overrides)
        )
        if not names_any or sample.error is not None or self._seen_names(sample):
            return False
        is_part = requested.offset > 0 or requested.limit == 0 or request.is_pruned
        return is_part and not request.with_evidence and request.all_sources.can_be_read_again

    def _plan_no_rows(self, sample: _Sample) -> Planned:
        scan = self.request.scan(self._plan_first_records().resolved)
        planned = plan_read(scan, self.reader, whole=self.request.whole)
        planned.budget = sample.budget
        return planned

    def _may_fold(self, name: str) -> bool:
        """True if a feature may become a tensor: selected and without a declared type, as are its companions."""
        return self.request.projection(name) and not any(
            map(self._is_overridden, (name, *ShapeSource.companions(name)))
        )

    def _hidden_companions(
        self, schema: Schema, chunks: Sequence[DecodedChunk], names: AbstractSet[str]
    ) -> frozenset[str]:
        """Companions that are not columns: of tensors that an override declares, and of features that are left out."""
        tensors = filter(reads_companions, schema.others.values())
        hidden = {name for f in tensors for name in ShapeSource.companions(f.feature)}
        hidden |= Observations.left_out_companions([chunk.columns for chunk in chunks], names, self.request.projection)
        overrides = self.request.options.schema_overrides or ()
        return frozenset(hidden - set(self.request.selection.columns or ()) - set(overrides))


class ForeignFeatures(_SampledPlan):
    """An attempt to plan a whole read of files of which some have no embedded schema, and other features.

    These become columns in addition to those of the schema that is `embedded` in the other files. All records are
    decoded for that.
    """

    def __init__(
        self,
        request: PlanRequest,
        schemas: UnitedSchemas,
        reader: ChunkReader,
        assumptions: Assumptions,
        embedded: EmbeddedSchema,
    ) -> None:
        super().__init__(request, schemas, reader, assumptions)
        self._embedded = embedded
        declared = Schema.parse(embedded.schema)
        self._declared = request.override_types(declared, of={*declared.names})
        self._check = EmbeddedSchemaCheck(True, embedded)

    def decode(self) -> _Sample:
        """Decode all records: the columns of the embedded schema, and any other feature."""
        request, assumptions = self.request, self.assumptions
        untyped = {field.feature for field in self._declared if pa.types.is_null(field.type)}
        resolved = ResolvedSchema(self._declared, "embedded", assumptions.record_type, self._embedded)
        known = Scan(request.sources, request.options, request.selection, resolved, partitions=request.partitions)
        known_plan = known.settings.plan
        typed = (column for column in known_plan.columns if column.name not in untyped)
        plan = known_plan._replace(
            columns=(*typed, *self.declared_columns()),
            unknown="discover",
            splits=True,
            select=request.projection.filter,
            text=self.text,
        )
        known_names = {column.name for column in plan.columns}
        self.reader.check, self.reader.settings = self._check, DecodeSettings(plan)
        budget = row_budget(request.options, request.selection, whole=True)
        chunks = list(self.reader.chunks(budget))
        refuse_undeclared(chunks, plan, lambda path: not self._check.is_foreign(path))
        seen = observe_chunks(chunks, known_names, may_differ=self.is_newly_declared)
        return _Sample(chunks, seen.contested, Observations({**assumptions.declared, **seen.observations}), budget)

    def revise(self, sample: _Sample) -> Assumptions | None:
        """The assumptions without those that the records disprove; None if all hold."""
        assumptions = self.assumptions
        if (revised := self.revise_embedded(sample)) is not None:
            return revised
        if assumptions.record_type is RecordType.DETECT and any(chunk.sequence for chunk in sample.chunks):
            return assumptions._replace(record_type=RecordType.SEQUENCE_EXAMPLE)
        if sample.contested:
            declared = {name: sample.observations[name] for name in sample.contested}
            return assumptions._replace(declared={**assumptions.declared, **declared})
        if sample.error is not None and (united := self.schemas.unite(self._embedded)) is not self._embedded:
            return assumptions._replace(embedded=united)
        return None

    def plan(self, sample: _Sample) -> Planned:
        """The plan under the embedded schema and the types of the other features."""
        request, declared = self.request, self._declared
        added = {field.column: field for field in sample.observations.schema(request.options)}
        fields = [added.pop(field.column, field) for field in declared]
        schema = Schema([*fields, *added.values()], declared.metadata)
        schema = request.override_types(schema, left_out=sample.new_names)
        if sample.error is None:
            request.check_names({*schema.names, *sample.new_names})  # also those that are left out
        scan = request.scan(ResolvedSchema(schema, "embedded", self.assumptions.record_type, self._embedded))
        planned = plan_read(scan, self.reader, whole=request.whole)
        self.reader.check, planned.budget = self._check, sample.budget
        planned.sample = DecodedChunk.to_deliver(sample.until_error)
        return planned


def _record_counts(sample: _Sample) -> RecordCounts:
    return sum((chunk.counts for chunk in sample.chunks), RecordCounts())
