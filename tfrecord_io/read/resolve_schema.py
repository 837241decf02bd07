"""Plan a read: choose the schema that governs it, or infer it from a sample."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import chain
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tfrecord_io.base import ALL, MessageType, ScanOptions, Selection, cached_property, name_advice, takes_payloads
from tfrecord_io.bytes import (
    RECORD_TYPES,
    FeatureName,
    Layout,
    Plan,
    PlanColumn,
    RecordCounts,
    RecordType,
    Text,
    companions,
)
from tfrecord_io.columns import (
    EmbeddedSchema,
    NamePattern,
    Projection,
    Schema,
    apply_overrides,
    as_stored,
    has_open_shapes,
    overridden_by,
    plan_columns,
    reads_companions,
)
from tfrecord_io.errors import FeatureNotFoundError, SchemaError, SchemaWarning, TFRecordError, printable, warn
from tfrecord_io.read.chunks.chunk import (
    PAYLOAD_SCHEMA,
    DecodedChunk,
    DecodeSettings,
    RowBudget,
    plan_limits,
    row_budget,
)
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import (
    EmbeddedSchemaCheck,
    SchemaRevision,
    first_contents,
    schema_of_empty,
    schemas_are_stated,
    unite_embedded,
)
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.read.reader import Planned, plan_read
from tfrecord_io.read.record_checks import (
    AbsentColumns,
    check_record_type,
    find_sidecar_schema,
    warn_of_feature_lists,
    warn_of_schema,
)
from tfrecord_io.read.scan import ResolvedSchema, Scan
from tfrecord_io.store import Source

if TYPE_CHECKING:
    from tfrecord_io.bytes import ColumnBuffers
    from tfrecord_io.columns import KindCount, Observation, Observations
    from tfrecord_io.read.inference import SampledNames
    from tfrecord_io.read.saved_schema import SavedSchema


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions of decoding. The records may disprove each assumption once, in one direction."""

    record_type: RecordType  # DETECT may become SEQUENCE_EXAMPLE
    fold_tensors: bool  # whether companion features are read, and turn bytes into tensors; may become False
    embedded: EmbeddedSchema | None = None  # grows as files have more columns
    # Whether features of files without an embedded schema become columns in addition to those of `embedded`.
    unites: bool = False
    # The features with values of different kinds, where records may be left out: the first kind is read.
    contested: Mapping[FeatureName, Sequence[KindCount]] = field(default_factory=dict)
    # The features with values of different kinds whose type ``schema_overrides=`` declares, and what they showed.
    declared: Mapping[str, Observation] = field(default_factory=dict)


def plan_scan(
    sources: Sequence[Source],
    options: ScanOptions,
    selection: Selection = ALL,
    *,
    whole: bool = False,
    with_index: bool = False,
    with_evidence: bool = False,
    only_sample: bool = False,
    embedded: EmbeddedSchema | None = None,
    has_united: bool = False,
    keeps_conflicts: bool = False,
    uses_saved: bool = True,
) -> Planned:
    """Choose the schema of a read, and compile it.

    The schema is the first of: ``schema=``, the embedded schema of the files or their manifest, the saved schema beside
    them, the ``features.json`` of TFDS, the one inferred from the values, where bytes with companion features become
    tensors.

    `sources` are the files, as `resolve_sources` finds them. `whole` and `with_index`: see `Scan`.
    `with_evidence`: the evidence for an inferred schema is kept in `Planned.inferred`. `only_sample`: the caller closes
    the plan, nothing behind the sample is read in advance. `embedded` is the embedded schema of the files, if known;
    if `has_united`, it covers all files, or they have none if it is None: it is not looked for. `keeps_conflicts`: a
    read `for_inspection` has the columns for which the files have no common type, too; it warns of them. `uses_saved`:
    see `find_saved_schema`.
    """
    stated = options, selection
    if options.declares_schema and not takes_payloads(options.record_type) and has_open_shapes(options):
        from tfrecord_io.columns import close_shapes

        options = close_shapes(options, sources, partial(_first_columns, sources))
    if selection.filters is not None and has_declared_schema(options):
        options, selection = _add_filter_types(sources, options, selection)
    how = {"whole": whole, "with_index": with_index, "with_evidence": with_evidence}
    planner = _Planner(tuple(sources), options, selection, **how)
    planner.narrow = None if options is stated[0] else stated
    planner.uses_saved = uses_saved
    if has_united:
        planner.all_embedded, planner.has_united = embedded, True
    folds = not options.stable_types and (with_evidence or options.schema is None)
    assumptions = Assumptions(RECORD_TYPES.get(options.record_type, RecordType.EXAMPLE), folds, embedded)
    reader = ChunkReader(planner.sources, planner.options, planner.selection, ahead=not only_sample, whole=whole)
    try:
        planned = planner.plan(reader, assumptions)
    except FeatureNotFoundError as missing:
        if selection.filters is not None and missing.feature in selection.filters.columns:
            _list_all_names(missing, sources, options, selection)
        raise
    conflicts = planned.scan.conflicts() if options.inspects else {}
    for error in conflicts.values():
        error.set_hint(None)  # it is about arguments of other calls
        warn(str(error), SchemaWarning)
    if not conflicts or keeps_conflicts:
        return planned
    planned.close()
    selection = replace(selection, columns=(*(selection.columns or ()), *(f"!{name}" for name in conflicts)))
    return plan_scan(sources, options, selection, whole=whole, with_index=with_index, only_sample=only_sample)


def has_declared_schema(options: ScanOptions) -> bool:
    """True if ``schema=`` declares the types."""
    return options.schema is not None and not (isinstance(options.schema, str) and options.schema == "infer")


def _first_columns(
    sources: Sequence[Source], options: ScanOptions, columns: tuple[str, ...]
) -> list[Mapping[str, ColumnBuffers]]:
    """The first records of the files, of these columns only, decoded without a declared type."""
    planned = plan_scan(sources, options, Selection(columns), only_sample=True)
    chunks = list(planned.sample)
    planned.close()
    return [chunk.columns for chunk in chunks if chunk.rows]


def _add_filter_types(
    sources: Sequence[Source], options: ScanOptions, selection: Selection
) -> tuple[ScanOptions, Selection]:
    """Add the types of those columns of the filter that ``schema=`` leaves out; they are not delivered."""
    assert selection.filters is not None
    if takes_payloads(options.record_type):
        return options, selection
    declared, partitions = Schema.parse(options.schema), PartitionColumns.from_folders(sources).names
    known_names = {*declared.names, *partitions, options.include_file_paths}
    missing = [name for name in selection.filters.columns if name not in known_names]
    if (
        not missing
        or any(NamePattern(name).is_glob for name in missing)
        or not all(source.can_be_read_again for source in sources)
    ):
        return options, selection
    Projection(selection.columns).check(filter(None, [*known_names]))
    try:
        scan = plan_scan(sources, _options_of_file(options), Selection(tuple(missing)), only_sample=True).close()
    except FeatureNotFoundError:  # the next one lists all names
        return options, selection
    added = [field for field in scan.features if field.column in missing]
    for feature in added:
        owner = next((f for f in declared if (f.feature, f.part) == (feature.feature, feature.part)), None)
        if owner is not None:
            reason = f"the filter names the feature, which is the column '{printable(owner.column)}' of schema="
            raise FeatureNotFoundError(reason, feature=feature.feature, hint="name the column")
    entries = ("*",) if selection.columns is None else selection.columns
    options = options.changed(schema=Schema([*declared, *added], declared.metadata))
    return options, replace(selection, columns=(*entries, *(f"!{name}" for name in missing)))


def _list_all_names(
    error: FeatureNotFoundError, sources: Sequence[Source], options: ScanOptions, selection: Selection
) -> None:
    """Make an error about a column of a filter list all names of the files, not only the selected ones."""
    if selection.columns is None and not has_declared_schema(options):
        return
    if not all(source.can_be_read_again for source in sources):
        if has_declared_schema(options):
            error.advice = "the source is read once: declare the column in schema=, and leave it out by columns="
        return
    with suppress(TFRecordError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = plan_scan(sources, _options_of_file(options), only_sample=True).close().schema.names
        error.advice = name_advice(str(error.feature), names)


def _options_of_file(options: ScanOptions) -> ScanOptions:
    """The options to plan a read of a file with the types that it states, or that are inferred."""
    schema = None if has_declared_schema(options) else options.schema
    return options.changed(schema=schema, schema_overrides=None, progress=False)


class _Sample(NamedTuple):
    """The first records, decoded to infer a schema."""

    chunks: list[DecodedChunk]
    names: SampledNames  # which features are decoded
    contested: Collection[str]  # features that have values of different kinds
    observations: Observations  # of all features, also of those that are declared
    budget: RowBudget
    failed: int | None  # the first chunk that has an error
    error: Exception | None


def _remove_filter(
    options: ScanOptions, selection: Selection, sources: tuple[Source, ...], partitions: PartitionColumns
) -> tuple[Selection, tuple[Source, ...]]:
    """The selection to decode all rows before ``filters=``, and the files that can have rows which pass."""
    from tfrecord_io.read.row_filter import RowFilter, add_filter_columns

    assert selection.filters is not None
    names = selection.filters.columns
    if has_declared_schema(options):
        partitions, _ = partitions.declare_types(Schema.parse(options.schema), sources)
    if partitions.fields and not selection.offset:  # which counts the records of all files
        possible = RowFilter(selection.filters, names).possible(sources, partitions)
        sources = possible or sources[:1]  # a file has the schema of no rows
    columns = selection.columns
    if columns is not None:
        columns = add_filter_columns(columns, [name for name in names if name != options.include_file_paths])
    return replace(selection, columns=columns, filters=None, limit=None), sources


class _Planner:
    """The common part of all attempts at a plan; it does not change."""

    def __init__(
        self,
        sources: tuple[Source, ...],
        options: ScanOptions,
        selection: Selection,
        *,
        whole: bool,
        with_index: bool,
        with_evidence: bool,
    ) -> None:
        self.sources = sources
        self._partitions = PartitionColumns()
        if any(map(attrgetter("partitions"), sources)):
            self._partitions, overrides = PartitionColumns.from_folders(sources).override_types(
                options.schema_overrides, sources
            )
            options = options.changed(schema_overrides=overrides or None)
        self._delivered: Projection | None = None  # of all columns, where `columns=` names that of the paths of files
        entries, paths = selection.columns or (), options.include_file_paths
        if paths is not None and (paths in entries or f"!{paths}" in entries):
            self._delivered = Projection(entries)
            of_columns = tuple(entry for entry in entries if entry.removeprefix("!") != paths)
            selection = replace(selection, columns=of_columns if of_columns or paths in entries else None)
        self._requested = selection
        self._whole, self._with_index, self._with_evidence = whole, with_index, with_evidence
        if selection.filters is not None:
            selection, self.sources = _remove_filter(options, selection, sources, self._partitions)
        self.options, self.selection = options, selection
        self._text = Text.TRACK if options.infer_text and not options.stable_types else Text.NO
        self._all_sources = sources
        self.all_embedded: EmbeddedSchema | None = None
        self.narrow: tuple[ScanOptions, Selection] | None = None  # see `Scan`
        self.has_united = False  # what `_unite_files` found, if it has looked
        self.uses_saved = True
        self._saved_fits: bool | None = None  # the first records; None: they were not looked at

    @property
    def _reads_all(self) -> bool:
        """True if all records are read: a file that the schema does not cover is found in time to begin again."""
        requested, is_pruned = self._requested, len(self.sources) < len(self._all_sources)
        is_part = requested.offset or requested.limit is not None or not self.options.damage.is_strict or is_pruned
        return self._whole and not is_part

    @cached_property
    def _projection(self) -> Projection:
        return Projection(self.selection.columns)

    @cached_property
    def _saved(self) -> SavedSchema | None:
        from tfrecord_io.read.saved_schema import find_saved_schema

        return find_saved_schema(self.sources) if self.uses_saved else None

    def _close_shapes(self, schema: Schema) -> Schema:
        """A saved schema, with the shapes that the first records state where it leaves them open."""
        options = self.options.changed(schema=schema, schema_overrides=None)
        if not has_open_shapes(options):
            return schema
        from tfrecord_io.columns import close_shapes

        return Schema.parse(close_shapes(options, self.sources, partial(_first_columns, self.sources)).schema)

    def plan(self, reader: ChunkReader, assumptions: Assumptions) -> Planned:
        """Attempt a plan, with changed assumptions until they hold."""
        try:
            while True:
                try:
                    attempt = self._try_plan(reader, assumptions)
                except SchemaError as error:  # a later file may have the column, or its type if this one has no value
                    is_of_argument = isinstance(error, FeatureNotFoundError) or error.of_argument
                    wider = self._widen(assumptions) if is_of_argument else None
                    if wider is None:
                        raise
                    attempt = wider
                if isinstance(attempt, Planned):
                    break
                assumptions = attempt
                reader = reader.restart()
        except BaseException:
            reader.close()
            raise
        attempt.replan = partial(self._replan, assumptions)
        return attempt

    def _widen(self, assumptions: Assumptions) -> Assumptions | None:
        """The assumptions by which columns of further files may be found; None if there are none."""
        if self.options.schema is not None or takes_payloads(self.options.record_type):
            return None
        if not self.has_united:
            united = self._unite_files(assumptions.embedded)
            return None if united is None else replace(assumptions, embedded=united)
        if not self._whole or assumptions.unites or self.all_embedded is None:
            return None
        files = [source for source in self.sources if source.size != 0]
        has_foreign = sum(1 for _ in first_contents(files, self.options)) < len(files)
        return replace(assumptions, unites=True) if has_foreign else None

    def _replan(
        self, assumptions: Assumptions, reader: ChunkReader, revision: SchemaRevision | TFRecordError
    ) -> Planned:
        if not isinstance(revision, SchemaRevision):  # an error about a feature of a file that has none
            return self.plan(reader.restart(), replace(assumptions, unites=True))
        revision.warn_if_late()
        embedded = revision.embedded if revision.declared else self._unite_files(revision.embedded)
        planned = self.plan(reader.restart(), replace(assumptions, embedded=embedded))
        planned.scan.refuse_conflicts()
        return planned

    def _try_plan(self, reader: ChunkReader, assumptions: Assumptions) -> Planned | Assumptions:
        """Plan the read by the first source of a schema that there is; or return better assumptions, to try again.

        The sources, in this order: the type of records that are no Examples, ``schema=``, the embedded schema, the
        saved schema, ``features.json``, and inference.
        """
        options = self.options
        uses_embedded = options.schema is None
        if isinstance(message := options.record_type, MessageType):
            return self._messages(reader, message)
        if options.record_type == "bytes":
            return self._payloads(reader)
        if has_declared_schema(options):
            return self._plan_declared(reader, assumptions)
        reader.check = EmbeddedSchemaCheck(uses_embedded, assumptions.embedded)
        if assumptions.embedded is None:
            assumptions = self._find_embedded(reader, assumptions, uses_embedded)
        record_type = assumptions.record_type
        embedded = assumptions.embedded or (schema_of_empty(self.sources) if uses_embedded else None)
        if embedded is not None and assumptions.unites:
            return self._add_foreign_features(reader, assumptions, embedded)
        if embedded is not None:
            schema = self._override_types(Schema.parse(embedded.schema))
            if options.record_type == "example":
                warn_of_feature_lists(self.sources, options, self.selection.columns, schema)
            return self._plan_schema(reader, ResolvedSchema(schema, "embedded", record_type, embedded))
        if uses_embedded and (saved := self._saved) is not None:
            if self._saved_fits is None:
                self._saved_fits = saved.fits(reader, options)
                return assumptions  # the records are read again
            if self._saved_fits:
                schema = self._override_types(self._close_shapes(saved.schema))
                return self._plan_schema(reader, ResolvedSchema(schema, "saved", record_type))
        sidecar = find_sidecar_schema(self.sources, options) if uses_embedded else None
        if sidecar is not None:
            resolved = ResolvedSchema(self._override_types(sidecar.schema), "features.json", record_type)
            return self._plan_schema(reader, resolved, sidecar=sidecar)
        try:
            return self._plan_inferred(reader, assumptions)
        except FeatureNotFoundError as error:
            is_any_known = error.advice != name_advice(str(error.feature), ())
            if not is_any_known and (self.selection.offset or not reader.bytes):
                error.advice = "no record was read, so no name is known; pass schema="
            raise

    def _find_embedded(self, reader: ChunkReader, assumptions: Assumptions, uses_embedded: bool) -> Assumptions:
        """Add what the first record and the sidecars tell: the embedded schema, and that records are sequences."""
        if uses_embedded and schemas_are_stated(self.sources):  # also columns that no file has yet; opens no file
            return replace(assumptions, embedded=self._unite_files(None))
        is_sequence, revision = reader.peek()
        if is_sequence and assumptions.record_type is RecordType.DETECT:
            assumptions = replace(assumptions, record_type=RecordType.SEQUENCE_EXAMPLE)
        elif is_sequence:
            warn_of_feature_lists(self.sources, self.options, self.selection.columns)
        if revision is not None:
            revision.warn_if_late()
        embedded = None if revision is None else revision.embedded
        if uses_embedded and len(self._all_sources) > 1 and not self._reads_all:
            embedded = self._unite_files(embedded, begin=1)
        return replace(assumptions, embedded=embedded)

    def _plan_declared(self, reader: ChunkReader, assumptions: Assumptions) -> Planned:
        """The plan for ``schema=``, whose columns are read as they are stored, where an embedded schema says how."""
        partitions, schema = self._partitions.declare_types(Schema.parse(self.options.schema), self.sources)
        schema = self._override_types(schema)
        if assumptions.embedded is not None:
            schema = as_stored(schema, Schema.parse(assumptions.embedded.schema), self._projection)
        for verdict in self._find_stored_forms(reader, schema):
            schema = as_stored(schema, Schema.parse(verdict.embedded.schema))
        resolved = ResolvedSchema(schema, "schema=", assumptions.record_type)
        return self._plan_schema(reader, resolved, partitions=partitions)

    def _find_stored_forms(self, reader: ChunkReader, declared: Schema) -> Iterator[SchemaRevision]:
        """The embedded schemas, of manifests or the first record, by which declared columns are several features."""
        if all(f.is_common for f in declared):  # which are only checked where the records are read
            return
        check = reader.check = EmbeddedSchemaCheck(False, None, declared, self._projection)
        if not schemas_are_stated(self.sources):
            if (revision := reader.peek()[1]) is not None:
                yield revision
            return
        for content, path in dict(first_contents(self.sources, self.options)).items():
            verdict = check.check(path, 0, 0, content)
            if isinstance(verdict, SchemaError):
                verdict.record = verdict.offset = None
                raise verdict
            if verdict is not None:
                yield verdict

    def _payloads(self, reader: ChunkReader) -> Planned:
        """The plan to read records as bytes: nothing is parsed, and no schema is looked for."""
        if self.options.schema not in (None, "infer"):
            raise ValueError('record_type="bytes" has one column of its own: schema= does not apply')
        return self._plan_schema(reader, ResolvedSchema(Schema.from_arrow(PAYLOAD_SCHEMA), 'record_type="bytes"'))

    def _messages(self, reader: ChunkReader, type_: MessageType) -> Planned:
        """The plan to read messages: their fields are the columns."""
        for name in ("schema", "schema_overrides"):
            if getattr(self.options, name) not in (None, "infer"):
                raise ValueError(f"{name}= does not apply to record_type={type_!r}, whose fields are the columns")
        from tfrecord_io.columns import message_tree  # which imports protobuf

        names = [field.name for field in type_.descriptor.fields]
        self._check_names(names)
        tree = message_tree(type_.descriptor, self._projection.order(names), self.options.limits.features)
        schema = Schema.from_arrow(pa.schema([(field.name, field.type) for field in tree.fields]))
        return plan_read(self._scan(ResolvedSchema(schema, f"record_type={type_.name}")), reader, whole=self._whole)

    def _plan_schema(self, reader: ChunkReader, resolved: ResolvedSchema, **known: Any) -> Planned:
        """The plan to read under a schema that needs no sample; `known` are fields of the scan."""
        self._check_names(resolved.schema)
        scan = self._scan(resolved, **known)
        absent = AbsentColumns(scan.features, warn_of_schema) if resolved.source == "schema=" else None
        return plan_read(scan, reader, whole=self._whole, absent=absent)

    def _scan(self, resolved: ResolvedSchema, **known: Any) -> Scan:
        fields = {"partitions": self._partitions, "with_index": self._with_index, **known}
        scan = Scan(self.sources, self.options, self.selection, resolved, **fields)
        filters = self._requested.filters
        if filters is None and self._delivered is None:
            return scan
        from tfrecord_io.read.row_filter import RowFilter

        columns, requested = self._requested.columns, scan
        if columns != self.selection.columns:  # else nothing else is compiled
            requested = Scan(self.sources, self.options, replace(self.selection, columns=columns), resolved, **fields)
        names = requested.schema.names
        if self._delivered is not None:
            names = [*self._delivered.order(names), *requested.compiled.added_index]
        return replace(
            scan,
            selection=replace(self.selection, limit=self._requested.limit),
            narrow=self.narrow,
            selected=None if names == scan.schema.names else tuple(names),
            index_levels=tuple(requested.compiled.added_index),
            row_filter=None if filters is None else RowFilter.for_schema(filters, scan.schema),
        )

    def _check_names(self, features: Schema | Collection[str]) -> None:
        if self._requested.columns is None and not self._partitions.fields:
            return
        names = features.names if isinstance(features, Schema) else list(features)
        if self._partitions.fields:
            self._partitions.refuse_features(names, self.sources)
            names = [*names, *self._partitions.names]
        Projection(self._requested.columns).check(names)

    def _override_types(
        self, schema: Schema, *, of: Collection[str] | None = None, left_out: Iterable[str] = ()
    ) -> Schema:
        """Apply ``schema_overrides=`` to the schema, or only its keys that match a column in `of`.

        Keys that name only features that are `left_out` by ``columns=`` declare no column.
        """

        overrides, names = self.options.schema_overrides or {}, {*schema.names}
        if of is not None:
            overrides = {key: type_ for key, type_ in overrides.items() if NamePattern(key).matches_any(of)}
        elif left_out := set(left_out) - names:
            keys = [
                key
                for key in overrides
                if NamePattern(key).matches_any(names) or not NamePattern(key).matches_any(left_out)
            ]
            overrides = {key: overrides[key] for key in keys}
        if not overrides:
            return schema
        return apply_overrides(schema, overrides, of_records=True)

    def _add_foreign_features(
        self, reader: ChunkReader, assumptions: Assumptions, embedded: EmbeddedSchema
    ) -> Planned | Assumptions:
        """Decode everything, and add columns for the features that only files without an embedded schema have."""
        from tfrecord_io.columns import Observations
        from tfrecord_io.read.inference import observe_chunks, refuse_undeclared

        declared = Schema.parse(embedded.schema)
        declared = self._override_types(declared, of={*declared.names})
        untyped = {field.feature for field in declared if pa.types.is_null(field.type)}
        resolved = ResolvedSchema(declared, "embedded", assumptions.record_type, embedded)
        known = Scan(self.sources, self.options, self.selection, resolved, partitions=self._partitions)
        known_plan = known.settings.plan
        plan = replace(
            known_plan,
            columns=(
                *(column for column in known_plan.columns if column.name not in untyped),
                *self._declared_columns(assumptions.declared),
            ),
            unknown="discover",
            splits=True,
            select=self._projection.filter,
            text=self._text,
        )
        known_names = {column.name for column in plan.columns}
        check = reader.check = EmbeddedSchemaCheck(True, embedded)
        reader.settings = DecodeSettings(plan)
        budget = row_budget(self.options, self.selection, whole=True)
        sample = list(reader.chunks(budget))
        if sample and (revision := sample[-1].revision) is not None:
            revision.warn_if_late()
            return replace(assumptions, embedded=self._unite_files(revision.embedded))
        if assumptions.record_type is RecordType.DETECT and any(chunk.sequence for chunk in sample):
            return replace(assumptions, record_type=RecordType.SEQUENCE_EXAMPLE)
        refuse_undeclared(sample, known_names, lambda path: not check.is_foreign(path))
        is_declared = self._newly_declared(assumptions)
        seen = observe_chunks(sample, known_names, may_differ=is_declared)
        if seen.contested:
            declared_now = {name: seen.observations[name] for name in seen.contested}
            return replace(assumptions, declared={**assumptions.declared, **declared_now})
        observations = Observations({**assumptions.declared, **seen.observations})
        failed = next((at + 1 for at, chunk in enumerate(sample) if chunk.error is not None), None)
        if failed is not None and (united := self._unite_files(embedded)) is not embedded:
            return replace(assumptions, embedded=united)
        added = {field.column: field for field in observations.schema(self.options)}
        fields = [added.pop(field.column, field) for field in declared]
        new_names = set(map(itemgetter(0), chain.from_iterable(chunk.new_names for chunk in sample)))
        columns = self._override_types(Schema([*fields, *added.values()], declared.metadata), left_out=new_names)
        if failed is None:
            self._check_names({*columns.names, *new_names})  # also those that are left out
        scan = self._scan(ResolvedSchema(columns, "embedded", assumptions.record_type, embedded))
        planned = plan_read(scan, reader, whole=self._whole)
        reader.check, planned.budget = check, budget
        planned.sample = [chunk for chunk in sample[:failed] if chunk.rows or chunk.ends_batch or chunk.ends_read]
        return planned

    # Inference --------------------------------------------------------------------------------------------------

    def _decode_sample(self, reader: ChunkReader, assumptions: Assumptions) -> _Sample:
        """Decode a sample, of columns that are not known but for those whose type was contested or is declared."""
        from tfrecord_io.columns import Observations
        from tfrecord_io.read.inference import SampledNames, observe_chunks, sampled_chunks

        names = SampledNames(self._projection, assumptions.fold_tensors, self.options.schema_overrides)
        declared = self._declared_columns(assumptions.declared)
        contested = [
            PlanColumn(name, counts[0].kind, Layout.ANY, self._text, steps=steps)
            for (name, steps), counts in assumptions.contested.items()
        ]
        plan = Plan(
            (*contested, *declared),
            unknown="discover",
            select=None if self._projection.takes_all else cache(names),  # each segment asks for the same names
            text=self._text,
            splits=True,
            record_type=assumptions.record_type,
            **plan_limits(self.options),
        )
        reader.settings = DecodeSettings(plan)
        budget, sample = row_budget(self.options, self.selection, whole=self._whole), list[DecodedChunk]()
        size = "all" if self._whole else self.options.sample
        chunks = sampled_chunks(reader, budget, size, self.options.limits.expansion_bytes)
        is_declared = self._newly_declared(assumptions)
        columns = observe_chunks(  # while others are decoded
            chunks,
            {column.name for column in declared},
            into=sample,
            may_differ=lambda name: reader.recovery is not None or is_declared(name),
        )
        failed, error = next(((i, c.error) for i, c in enumerate(sample) if c.error is not None), (None, None))
        observations = Observations({**assumptions.declared, **columns.observations})
        return _Sample(
            sample,
            names,
            contested=columns.contested,
            observations=observations,
            budget=budget,
            failed=failed,
            error=error,
        )

    def _revise(self, assumptions: Assumptions, sample: _Sample) -> Assumptions | None:
        """The assumptions without those that the schemas or the types in a sample disprove; None if none is."""
        from tfrecord_io.columns import Observations

        if sample.chunks and (revision := sample.chunks[-1].revision) is not None:
            revision.warn_if_late()
            return replace(assumptions, embedded=self._unite_files(revision.embedded))
        if (
            sample.failed is not None
            and self.options.schema is None
            and (embedded := self._unite_files(None)) is not None
        ):
            return replace(assumptions, embedded=embedded)
        if any(map(sample.names.is_companion, sample.contested)):
            return replace(assumptions, fold_tensors=False)
        if not sample.contested:
            return None
        declared = {
            name: sample.observations[name] for name in filter(self._newly_declared(assumptions), sample.contested)
        }
        contested = dict(assumptions.contested)
        for name in (name for name in sample.contested if name not in declared):
            columns = [(c.columns[name], c.record_of) for c in sample.chunks if name in c.columns]
            contested[name, columns[0][0].steps is not None] = Observations.count_kinds(columns)
        return replace(assumptions, contested=contested, declared={**assumptions.declared, **declared})

    def _plan_inferred(self, reader: ChunkReader, assumptions: Assumptions) -> Planned | Assumptions:
        """Plan the read by the schema that a sample of records shows; or return better assumptions, to try again."""
        from tfrecord_io.columns import InferredSchema

        sample = self._decode_sample(reader, assumptions)
        if (revised := self._revise(assumptions, sample)) is not None:
            return revised
        chunks, names, observations = sample.chunks, sample.names, sample.observations
        counts = sum((chunk.counts for chunk in chunks), RecordCounts())
        new_names = chain(assumptions.contested, *(chunk.new_names for chunk in chunks))
        seen = set(map(itemgetter(0), new_names)) | assumptions.declared.keys()
        if sample.failed is None and not seen and self._names_columns_of_no_rows():
            return self._plan_no_rows(reader, sample)
        if sample.failed is None:
            check_record_type(counts, self.sources, self.options)
            self._check_names(seen)
        else:
            chunks = chunks[: sample.failed + 1]
            if names.is_companion(getattr(sample.error, "feature", None)):
                return replace(assumptions, fold_tensors=False)  # it was not selected, and may be anything
        if assumptions.record_type is RecordType.DETECT and any(chunk.sequence for chunk in chunks):
            # One feature list makes all records SequenceExamples, also those that were decoded as Examples.
            return replace(assumptions, record_type=RecordType.SEQUENCE_EXAMPLE)
        folded = (
            observations.folded([chunk.columns for chunk in chunks], self._may_fold())
            if assumptions.fold_tensors
            else {}
        )
        schema = self._override_types(observations.schema(self.options, folded, self.selection.columns), left_out=seen)
        resolved = ResolvedSchema(
            schema,
            "companions" if folded else "inferred",
            assumptions.record_type,
            folded=frozenset(folded),
            companions=self._hidden_companions(schema, chunks, seen) if assumptions.fold_tensors else frozenset(),
            observations=observations,
        )
        try:
            scan, sampled = self._scan(resolved), sum(chunk.rows for chunk in chunks)
        except FeatureNotFoundError:
            if sample.error is not None and self.options.damage.counts_all:
                raise sample.error from None  # without which the name may be known
            raise
        planned = plan_read(scan, reader, whole=self._whole)
        check_record_type(counts, self.sources, self.options)
        if self._with_evidence:
            evidence = observations.evidence((chunk.columns for chunk in chunks), assumptions.contested)
            planned.inferred = InferredSchema(scan.features, evidence, sampled)
        planned.budget, planned.error, planned.sampled = sample.budget, sample.error, sampled
        planned.sample = [chunk for chunk in chunks if chunk.rows or chunk.ends_batch or chunk.ends_read]
        return planned

    def _plan_no_rows(self, reader: ChunkReader, sample: _Sample) -> Planned:
        """Plan a read of no rows by the schema that the first records of all files show."""
        options, every = self.options.changed(progress=False), replace(self.selection, offset=0, limit=None)
        first = plan_scan(self._all_sources, options, every, only_sample=True)
        planned = plan_read(self._scan(first.close().resolved), reader, whole=self._whole)
        planned.budget = sample.budget
        return planned

    def _names_columns_of_no_rows(self) -> bool:
        """True if a read of no rows names columns of an unknown schema: they are those of the first records."""
        requested = self._requested
        names_any = (
            requested.columns is not None or requested.filters is not None or bool(self.options.schema_overrides)
        )
        is_part = requested.offset > 0 or requested.limit == 0 or len(self.sources) < len(self._all_sources)
        can_be_planned_again = all(source.can_be_read_again for source in self._all_sources)
        return names_any and is_part and not self._with_evidence and can_be_planned_again

    def _newly_declared(self, assumptions: Assumptions) -> Callable[[str], bool]:
        """A predicate: ``schema_overrides=`` declares the type of a feature that is not yet decoded as declared."""
        is_overridden = overridden_by(self.options.schema_overrides)
        return lambda name: name not in assumptions.declared and is_overridden(name)

    def _declared_columns(self, declared: Mapping[str, Observation]) -> list[PlanColumn]:
        """How features are decoded in the sample whose type ``schema_overrides=`` declares."""
        from tfrecord_io.columns import Observations

        if not declared:
            return []
        schema = self._override_types(Observations(declared).schema(self.options), of=declared)
        steps = frozenset(name for name, seen in declared.items() if seen.steps is not None)
        compiled = plan_columns(schema, text=Text.STRICT, steps=steps)
        return [column for column in compiled.columns if column.name in declared]

    def _unite_files(self, embedded: EmbeddedSchema | None, begin: int = 0) -> EmbeddedSchema | None:
        """The schema that covers `embedded` and the embedded schemas of all files, which are looked for once.

        So a type and the order of the columns do not depend on which files are read: it begins with the manifest, or
        else with the first of all files. Where these have no common type for a column, it has that of the files which
        the filter leaves. The first `begin` files have been looked at: one that is open is not opened again.
        """
        from tfrecord_io.columns import merge_embedded, prefer_read_files

        if not self.has_united:
            self.has_united = True
            are_stated = schemas_are_stated(self._all_sources)
            begins = not are_stated and self._all_sources[:begin] == self.sources[:begin]
            sources = self._all_sources[begin:] if begins else self._all_sources
            self.all_embedded = unite_embedded(embedded if begins else None, first_contents(sources, self.options))
            has_conflicts = self.all_embedded is not None and bool(self.all_embedded.conflicts)
            if self.all_embedded is not None and has_conflicts and len(self.sources) < len(self._all_sources):
                schema = unite_embedded(None, first_contents(self.sources, self.options))
                self.all_embedded = (
                    self.all_embedded if schema is None else prefer_read_files(self.all_embedded, schema)
                )
        if self.all_embedded is None or embedded is None:
            return embedded or self.all_embedded
        return merge_embedded(self.all_embedded, embedded)

    def _may_fold(self) -> Callable[[str], bool]:
        """A predicate: a feature may become a tensor, if selected and without a declared type (its companions, too)."""
        is_overridden = overridden_by(self.options.schema_overrides)
        return lambda name: self._projection(name) and not any(map(is_overridden, (name, *companions(name))))

    def _hidden_companions(
        self, schema: Schema, sample: Sequence[DecodedChunk], names: Collection[str]
    ) -> frozenset[str]:
        """Companions that are not columns: of tensors that an override declares, and of features that are left out."""
        from tfrecord_io.columns import Observations

        fields = schema if schema.plain is None else ()
        hidden = {name for f in fields if reads_companions(f) for name in companions(f.feature)}
        hidden |= Observations.left_out_companions([chunk.columns for chunk in sample], set(names), self._projection)
        return frozenset(hidden - set(self.selection.columns or ()) - set(self.options.schema_overrides or ()))
