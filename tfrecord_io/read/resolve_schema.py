"""Plan a read: choose the schema that governs it.

`plan_scan` does that. `_Planner` tries the sources of a schema in order, under assumptions; where the records disprove
one of these, it begins again. `tfrecord_io.read.plan_request` has what all attempts share,
`tfrecord_io.read.plan_inferred` plans by a sample of the records.

Tests: tests/read/test_resolve_schema.py, tests/read/test_reader_schema.py and tests/laws/test_united_schemas.py.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.base import MessageType, ScanOptions, Selection, cached_property, did_you_mean, printable, warn
from tfrecord_io.bytes import RecordType
from tfrecord_io.columns import EmbeddedSchema, NamePattern, Projection, Schema, as_stored, has_open_shapes
from tfrecord_io.errors import FeatureNotFoundError, SchemaError, SchemaWarning, TFRecordError
from tfrecord_io.read.added_columns import AddedColumns
from tfrecord_io.read.chunks.chunk import PAYLOAD_SCHEMA, DecodedChunk
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import (
    EmbeddedSchemaCheck,
    SchemaRevision,
    first_contents,
    schema_of_empty,
)
from tfrecord_io.read.plan_request import Assumptions, PlanRequest, UnitedSchemas, has_declared_schema
from tfrecord_io.read.reader import Planned, plan_read
from tfrecord_io.read.record_checks import warn_of_feature_lists, warn_of_schema
from tfrecord_io.read.scan import ResolvedSchema, Scan
from tfrecord_io.store import Sources

if TYPE_CHECKING:
    from tfrecord_io.bytes import ColumnBuffers
    from tfrecord_io.read.saved_schema import SavedSchema


def plan_scan(
    sources: Sources,
    options: ScanOptions,
    selection: Selection = Selection.ALL,
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
    undecided: Schema | None = None
    if options.declares_schema and not MessageType.takes_payloads(options.record_type) and has_open_shapes(options):
        undecided = None if only_sample else _find_undecided(sources, options, selection, whole=whole)
        if undecided is None:
            options = _sample_shapes(sources, options)
    if selection.filters is not None and has_declared_schema(options):
        options, selection = _add_filter_types(sources, options, selection)

    def plan(selection: Selection, narrow: tuple[ScanOptions, Selection] | None = None) -> Planned:
        request = PlanRequest(
            sources, options, selection, whole=whole, with_index=with_index, with_evidence=with_evidence, narrow=narrow
        )
        folds = not options.stable_types and (with_evidence or options.schema is None)
        assumptions = Assumptions(RecordType.by_option().get(options.record_type, RecordType.EXAMPLE), folds, embedded)
        schemas = UnitedSchemas(request, embedded if has_united else None, is_found=has_united)
        reader = ChunkReader(request.sources, request.options, request.selection, ahead=not only_sample, whole=whole)
        planner = _Planner(request, schemas, uses_saved=uses_saved, undecided=undecided)
        return planner.plan(reader, assumptions)

    try:
        planned = plan(selection, None if options is stated[0] else stated)
    except FeatureNotFoundError as missing:
        if selection.filters is not None and missing.feature in selection.filters.columns:
            _list_all_names(missing, sources, options, selection)
        raise
    conflicts = _warn_of_conflicts(planned.scan) if options.damage.inspects else ()
    if not conflicts or keeps_conflicts:
        return planned
    planned.close()
    return plan(selection._replace(columns=(*(selection.columns or ()), *(f"!{name}" for name in conflicts))))


def _find_undecided(sources: Sources, options: ScanOptions, selection: Selection, *, whole: bool) -> Schema | None:
    """The declared schema if the open shapes of its arrays are decided by the first records that are read; or None.

    These are decoded once then. With ``sample="all"``, only a `whole` read has the memory for all arrays.
    """
    is_part = selection.is_range or selection.filters is not None or options.include_file_paths is not None
    if is_part or not has_declared_schema(options):
        return None
    if (options.sample == "all" and not whole) or not sources.can_be_read_again:
        return None
    from tfrecord_io.columns import OpenShapes

    return OpenShapes(options).declared_schema(Projection(selection.columns))


def _sample_shapes(sources: Sources, options: ScanOptions) -> ScanOptions:
    """Fill in the open shapes of declared types from a sample that is decoded for this."""
    from tfrecord_io.columns import OpenShapes

    return OpenShapes(options).close(sources, partial(_first_columns, sources))


def _warn_of_conflicts(scan: Scan) -> Collection[str]:
    """Warn of the columns for which the files have no common type; returns their names."""
    conflicts = scan.conflicts()
    for error in conflicts.values():
        error.set_hint(None)  # it is about arguments of other calls
        warn(str(error), SchemaWarning)
    return conflicts.keys()


def _first_columns(
    sources: Sources, options: ScanOptions, columns: tuple[str, ...]
) -> list[Mapping[str, ColumnBuffers]]:
    """The first records of the files, if there are any: of these columns only, decoded without a declared type."""
    try:
        planned = plan_scan(sources, options, Selection(columns), only_sample=True)
    except FeatureNotFoundError:
        every = plan_scan(sources, options, only_sample=True)
        has_rows = any(chunk.rows for chunk in every.sample)
        every.close()
        if has_rows:
            raise
        return []
    chunks = list(planned.sample)
    planned.close()
    return [chunk.columns for chunk in chunks if chunk.rows]


def _add_filter_types(sources: Sources, options: ScanOptions, selection: Selection) -> tuple[ScanOptions, Selection]:
    """Add the types of those columns of the filter that ``schema=`` leaves out; they are not delivered."""
    assert selection.filters is not None
    if MessageType.takes_payloads(options.record_type):
        return options, selection
    declared, partitions = Schema.parse(options.schema), AddedColumns.from_folders(sources).names
    known_names = {*declared.names, *partitions, options.include_file_paths}
    missing = [name for name in selection.filters.columns if name not in known_names]
    if not missing or any(NamePattern(name).is_glob for name in missing) or not sources.can_be_read_again:
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
    return options, selection._replace(columns=(*entries, *(f"!{name}" for name in missing)))


def _list_all_names(error: FeatureNotFoundError, sources: Sources, options: ScanOptions, selection: Selection) -> None:
    """Make an error about a column of a filter list all names of the files, not only the selected ones."""
    if selection.columns is None and not has_declared_schema(options):
        return
    if not sources.can_be_read_again:
        if has_declared_schema(options):
            error.set_hint(
                "the source is read once: declare the column in schema=, and leave it out by columns=",
                "the source is read once: declare the column by --type, and leave it out by --columns",
            )
        return
    with suppress(TFRecordError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = plan_scan(sources, _options_of_file(options), only_sample=True).close().schema.names
        error.set_hint(did_you_mean(str(error.feature), names, lists_names=True))


def _options_of_file(options: ScanOptions) -> ScanOptions:
    """Options for planning a read of a file by its stated or inferred types."""
    schema = None if has_declared_schema(options) else options.schema
    return options.changed(schema=schema, schema_overrides=None, progress=False)


class _Planner:
    """Plans a read: attempts a plan under assumptions, and others until they hold."""

    def __init__(
        self, request: PlanRequest, schemas: UnitedSchemas, *, uses_saved: bool, undecided: Schema | None
    ) -> None:
        self._request, self._schemas, self._uses_saved = request, schemas, uses_saved
        self._undecided = undecided  # ``schema=``, until the first records decide the shapes that it leaves open
        self._obeys_embedded = request.options.schema is None  # schemas in and next to the files: not with "infer"
        self._stored_forms: list[Schema] | None = None  # by which declared columns are several features
        self._saved_fits: bool | None = None  # the first records; None: they were not looked at

    @cached_property
    def _saved(self) -> SavedSchema | None:
        from tfrecord_io.read.saved_schema import find_saved_schema

        return find_saved_schema(self._request.sources) if self._uses_saved else None

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
        if self._request.options.schema is not None or MessageType.takes_payloads(self._request.options.record_type):
            return None
        if not self._schemas.is_found:
            united = self._schemas.unite(assumptions.embedded)
            return None if united is None else assumptions._replace(embedded=united)
        if not self._request.whole or assumptions.unites or self._schemas.found is None:
            return None
        files = [source for source in self._request.sources if source.size != 0]
        has_foreign = sum(1 for _ in first_contents(files, self._request.options)) < len(files)
        return assumptions._replace(unites=True) if has_foreign else None

    def _replan(
        self, assumptions: Assumptions, reader: ChunkReader, revision: SchemaRevision | TFRecordError
    ) -> Planned:
        if not isinstance(revision, SchemaRevision):  # an error about a feature of a file that has none
            return self.plan(reader.restart(), assumptions._replace(unites=True))
        revision.warn_if_late()
        embedded = revision.embedded if revision.declared else self._schemas.unite(revision.embedded)
        planned = self.plan(reader.restart(), assumptions._replace(embedded=embedded))
        planned.scan.refuse_conflicts()
        return planned

    def _try_plan(self, reader: ChunkReader, assumptions: Assumptions) -> Planned | Assumptions:
        """Plan the read by the first source of a schema that there is; or return better assumptions, to try again.

        The sources, in this order: the type of records that are not Examples, ``schema=``, the embedded schema, the
        saved schema, ``features.json``, and inference.
        """
        options = self._request.options
        if isinstance(message := options.record_type, MessageType):
            return self._plan_messages(reader, message)
        if options.record_type == "bytes":
            return self._plan_payloads(reader)
        if has_declared_schema(options):
            return self._plan_declared(reader, assumptions)
        reader.check = EmbeddedSchemaCheck(self._obeys_embedded, assumptions.embedded)
        if assumptions.embedded is None:
            assumptions = self._find_embedded(reader, assumptions)
        embedded = assumptions.embedded
        if embedded is None and self._obeys_embedded:
            embedded = schema_of_empty(self._request.sources)
        if embedded is not None:
            return self._plan_embedded(reader, assumptions, embedded)
        attempt = self._try_sidecars(reader, assumptions) if self._obeys_embedded else None
        return self._infer(reader, assumptions) if attempt is None else attempt

    def _find_embedded(self, reader: ChunkReader, assumptions: Assumptions) -> Assumptions:
        """Add what the first record and the sidecars tell: the embedded schema, and that records are sequences."""
        request = self._request
        if self._obeys_embedded and request.sources.have_stated_schemas:
            # Manifests also have columns that no file has yet, and no file has to be opened.
            return assumptions._replace(embedded=self._schemas.unite(None))
        is_sequence, revision = reader.peek()
        if is_sequence and assumptions.record_type is RecordType.DETECT:
            assumptions = assumptions._replace(record_type=RecordType.SEQUENCE_EXAMPLE)
        elif is_sequence:
            warn_of_feature_lists(request.sources, request.options, request.selection.columns)
        if revision is not None:
            revision.warn_if_late()
        embedded = None if revision is None else revision.embedded
        if self._obeys_embedded and len(request.all_sources) > 1:
            find = self._schemas.unite_stated if request.reads_all else partial(self._schemas.unite, begin=1)
            embedded = find(embedded)
        return assumptions._replace(embedded=embedded)

    def _plan_embedded(
        self, reader: ChunkReader, assumptions: Assumptions, embedded: EmbeddedSchema
    ) -> Planned | Assumptions:
        request, record_type = self._request, assumptions.record_type
        if assumptions.unites:
            from tfrecord_io.read.plan_inferred import ForeignFeatures

            return ForeignFeatures(request, self._schemas, reader, assumptions, embedded=embedded).attempt()
        schema = request.override_types(Schema.parse(embedded.schema))
        if request.options.record_type == "example":
            warn_of_feature_lists(request.sources, request.options, request.selection.columns, schema)
        return self._plan_schema(reader, ResolvedSchema(schema, "embedded", record_type, embedded))

    def _try_sidecars(self, reader: ChunkReader, assumptions: Assumptions) -> Planned | Assumptions | None:
        """Plan by the schema in a file next to the data: a saved one that fits, or ``features.json``; None without."""
        request, record_type = self._request, assumptions.record_type
        if self._saved is not None and self._saved_fits is None:
            self._saved_fits = self._saved.fits(reader, request.options)
            return assumptions  # the records are read again
        if self._saved is not None and self._saved_fits:
            schema = request.override_types(self._close_shapes(self._saved.schema))
            return self._plan_schema(reader, ResolvedSchema(schema, "saved", record_type))
        from tfrecord_io.read.tfds_schema import find_sidecar_schema

        sidecar = find_sidecar_schema(request.sources, request.options)
        if sidecar is None:
            return None
        resolved = ResolvedSchema(request.override_types(sidecar.schema), "features.json", record_type)
        return self._plan_schema(reader, resolved, sidecar=sidecar)

    def _close_shapes(self, schema: Schema) -> Schema:
        """The schema, its open shapes filled in by `_sample_shapes`."""
        options = self._request.options.changed(schema=schema, schema_overrides=None)
        if not has_open_shapes(options):
            return schema
        return Schema.parse(_sample_shapes(self._request.sources, options).schema)

    def _infer(self, reader: ChunkReader, assumptions: Assumptions) -> Planned | Assumptions:
        from tfrecord_io.read.plan_inferred import InferredPlan

        attempt = InferredPlan(
            self._request, self._schemas, reader, assumptions, plan_first_records=self._plan_first_records
        )
        try:
            return attempt.attempt()
        except FeatureNotFoundError as error:
            is_any_known = error.hint != did_you_mean(str(error.feature), (), lists_names=True)
            if not is_any_known and (self._request.selection.offset or not reader.bytes):
                text = "no record was read, so no name is known"
                error.set_hint(f"{text}; pass schema=", text)
            raise

    def _plan_first_records(self) -> Scan:
        """Plan a read of the first records of all files, for the schema of a read of no rows."""
        request = self._request
        options, every = request.options.changed(progress=False), request.selection._replace(offset=0, limit=None)
        return plan_scan(request.all_sources, options, every, only_sample=True).close()

    def _plan_declared(self, reader: ChunkReader, assumptions: Assumptions) -> Planned | Assumptions:
        """The plan for ``schema=``; the shapes that it leaves open are those of the first records."""
        if self._undecided is None:
            return self._plan_types(reader, assumptions, Schema.parse(self._request.options.schema))
        from tfrecord_io.columns import OpenShapes
        from tfrecord_io.read.infer_from_sample import sampled_chunks

        declared, options = self._undecided, self._request.options
        begun = self._plan_types(reader, assumptions, OpenShapes.assume(declared))
        chunks = list(sampled_chunks(reader, begun.budget, options.sample, options.limits.expansion_bytes))
        closed = OpenShapes.close_by(declared, [chunk.columns for chunk in chunks if chunk.rows], options)
        self._undecided = None
        self._request = self._request.replace_schema(self._close_shapes(declared) if closed is None else closed)
        planned = None if closed is None else self._plan_types(reader, assumptions, closed)
        if planned is None or planned.scan.settings.plan != begun.scan.settings.plan:
            return assumptions  # the records are read again, by the schema that the request has now
        planned.budget, planned.sample = begun.budget, DecodedChunk.to_deliver(chunks)
        return planned

    def _plan_types(self, reader: ChunkReader, assumptions: Assumptions, declared: Schema) -> Planned:
        """The plan for declared types, whose columns are read as they are stored, where an embedded schema says how."""
        request = self._request
        partitions, schema = request.partitions.declare_types(declared, request.sources)
        schema = request.override_types(schema)
        if assumptions.embedded is not None:
            schema = as_stored(schema, Schema.parse(assumptions.embedded.schema), request.projection)
        if self._stored_forms is None:
            verdicts = self._find_stored_forms(reader, schema)
            self._stored_forms = [Schema.parse(verdict.embedded.schema) for verdict in verdicts]
        for form in self._stored_forms:
            schema = as_stored(schema, form)
        resolved = ResolvedSchema(schema, "schema=", assumptions.record_type)
        return self._plan_schema(reader, resolved, partitions=partitions)

    def _find_stored_forms(self, reader: ChunkReader, declared: Schema) -> Iterator[SchemaRevision]:
        """The embedded schemas, of manifests or the first record, by which declared columns are several features."""
        if all(f.is_common for f in declared):  # which are only checked where the records are read
            return
        check = reader.check = EmbeddedSchemaCheck(False, None, declared, self._request.projection)
        if not self._request.sources.have_stated_schemas:
            if (revision := reader.peek()[1]) is not None:
                yield revision
            return
        for content, path in dict(first_contents(self._request.sources, self._request.options)).items():
            verdict = check.check(path, 0, 0, content)
            if isinstance(verdict, SchemaError):
                verdict.record = verdict.offset = None
                raise verdict
            if verdict is not None:
                yield verdict

    def _plan_payloads(self, reader: ChunkReader) -> Planned:
        """The plan to read records as bytes: nothing is parsed, and no schema is looked for."""
        if self._request.options.schema not in (None, "infer"):
            raise ValueError('record_type="bytes" has one column of its own: schema= does not apply')
        return self._plan_schema(reader, ResolvedSchema(Schema.from_arrow(PAYLOAD_SCHEMA), 'record_type="bytes"'))

    def _plan_messages(self, reader: ChunkReader, type_: MessageType) -> Planned:
        """The plan to read messages: their fields are the columns."""
        request = self._request
        for name in ("schema", "schema_overrides"):
            if getattr(request.options, name) not in (None, "infer"):
                raise ValueError(f"{name}= does not apply to record_type={type_!r}, whose fields are the columns")
        from tfrecord_io.columns import MessageBatchBuilder  # which imports protobuf

        names = [field.name for field in type_.descriptor.fields]
        request.check_names(names)
        order, most = request.projection.order(names), request.options.limits.features
        fields = MessageBatchBuilder(type_, order, max_features=most, threads=1).schema
        schema = Schema.from_arrow(pa.schema([(field.name, field.type) for field in fields]))
        return plan_read(request.scan(ResolvedSchema(schema, f"record_type={type_.name}")), reader, whole=request.whole)

    def _plan_schema(self, reader: ChunkReader, resolved: ResolvedSchema, **known: Any) -> Planned:
        """The plan to read under a schema that needs no sample; `known` are fields of the scan."""
        self._request.check_names(resolved.schema)
        scan = self._request.scan(resolved, **known)
        absent = None
        if resolved.is_declared:
            from tfrecord_io.read.absent_columns import AbsentColumns

            absent = AbsentColumns(scan.features, warn_of_schema)
        return plan_read(scan, reader, whole=self._request.whole, absent=absent)
