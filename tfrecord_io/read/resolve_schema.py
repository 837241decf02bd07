"""One reading of files: which schema governs it, and the units that come of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.arrow.decode.composite import CompositeBatchBuilder, CompositeDecoder
from tfrecord_io.arrow.decode.plan import plan_columns, reads_companions
from tfrecord_io.arrow.output.to_pandas import stored_index
from tfrecord_io.engine.contract import Plan
from tfrecord_io.engine.fault_messages import OTHER_MESSAGE
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import DecodeError, SchemaError, SchemaWarning, printable, warn
from tfrecord_io.format.kinds import RECORD_TYPES, RecordType, Text
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.read import payload_decoder as payloads
from tfrecord_io.read.chunk import DecodedChunk, DecodeSettings
from tfrecord_io.read.chunk_reader import ChunkReader
from tfrecord_io.read.embedded_schemas import EmbeddedSchema, EmbeddedSchemaCheck, LateSchema, schema_of_empty
from tfrecord_io.read.inference import (
    evidence_of,
    folded_columns,
    inferred_schema,
    left_out_companions,
    name_both,
    observe_units,
)
from tfrecord_io.read.partition_columns import PartitionColumns
from tfrecord_io.read.sidecar_schema import SidecarSchema, find_sidecar_schema
from tfrecord_io.schema.column_selection import Projection, apply_overrides, is_glob, matches
from tfrecord_io.schema.inferred_schema import InferredSchema
from tfrecord_io.schema.leaf import companions, feature_of_companion
from tfrecord_io.schema.observation import Observation
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.type_names import schema_summary
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.source import Source

_SAMPLE_BYTES = 16 * MIB
_ALL_ROWS = 2**62
_WHOLE_BATCH_BYTES = 64 * MIB
_MOST_BATCH_BYTES = 2**31 - 1  # offsets have 32 bits; a payload has no more values than bytes


class Session:
    """From paths and options to a schema and decoded units.

    The schema is, first hit wins: ``schema=``, what the files carry, what their values show; bytes beside which a shape and a
    dtype stand are tensors then.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the batches to be built.
    schema_source : str
        "schema=", "embedded", "features.json", "companions", "inferred" or 'record_type="bytes"'.
    units : iterator of Unit
    builder : BatchBuilder
    fixed : Setup
        How any record is decoded once the schema is fixed: what comes behind a sample, or all there is.

    Parameters
    ----------
    whole : bool
        All is read at once: no sample, no batches of a size.
    index : bool
        The columns of a DataFrame's index that the files carry join any projection.
    evidence : bool
        Keep in ``inferred`` what an inferred schema rests on.
    """

    def __init__(
        self, path: Any, options: ReadOptions, *, whole: bool = False, index: bool = False, evidence: bool = False
    ) -> None:
        self._options = replace(options, sample="all") if whole else options
        self._whole = whole
        self._index = index
        self._evidence = evidence
        self.sources = resolve_inputs(path, options.storage, allow_missing_shards=options.allow_missing_shards)
        self._projection = Projection(options.columns)
        self.folders = PartitionColumns(self.sources, self._projection)
        self.builder: BatchBuilder | CompositeBatchBuilder
        self._record_type = RECORD_TYPES.get(options.record_type, RecordType.EXAMPLE)
        self.inferred: InferredSchema | None = None
        asks_plain = _asks_inference(options.schema) and not evidence
        self._folds = not (asks_plain or options.stable_types or options.record_type == "bytes")
        self._open(None)

    def _open(self, governing: EmbeddedSchema | None, before: ChunkReader | None = None) -> None:
        """Find the schema and get ready to read under it; again, after a reader `before`, where a file turns out to say more."""
        declared = self._options.schema
        obey = declared is None
        self.schema_source = "inferred"
        self.beside: SidecarSchema | None = None
        self.failed: Exception | None = None  # what ended a sample
        self.sampled: int | None = None  # records of a sample
        self._begun = (0, 0)  # rows and bytes of the batch that the sample began
        self._seen = self._foreign = 0
        self._shown: Mapping[
            str, Observation
        ] = {}  # by the sample: a record that contradicts it is told with one of these
        self._rows_of: Counter[int] = Counter()  # by number of the file
        judge = EmbeddedSchemaCheck(obey, governing)
        setup = DecodeSettings(get_engine(), Plan(), judge.meet)
        self.reader = ChunkReader(self.sources, self._options, setup) if before is None else before.again(setup)
        try:
            if self._options.record_type == "bytes":
                self._read_bytes()
                return
            if (
                governing is None
                and (obey or _asks_inference(declared))
                and self.reader.peek()
                and self._record_type is RecordType.DETECT
            ):
                self._record_type = RecordType.SEQUENCE_EXAMPLE
            if not obey and not _asks_inference(declared):
                self._govern(self.folders.declared(Schema.parse(declared)), {}, "schema=")
            elif governing is not None:
                self._govern(Schema.parse(governing.schema), governing.dictionaries, "embedded")
            elif obey and (empty := schema_of_empty(self.sources)) is not None:
                self._govern(Schema.parse(empty.schema), empty.dictionaries, "embedded")
            elif obey and (beside := find_sidecar_schema(self.sources, self._options.storage)) is not None:
                self.beside = beside
                self._govern(beside.schema, {}, "features.json")
            else:
                self._infer()
        except LateSchema as late:
            self.restart(late)
        except _LateSequence:
            self._record_type = RecordType.SEQUENCE_EXAMPLE
            self._open(governing, self.reader)
        except _NoCompanion:
            self._folds = False
            self._open(governing, self.reader)
        except BaseException:
            self.reader.close()
            raise

    def over(self, sources: list[Source], options: ReadOptions) -> Session:
        """The same schema over other files, or other records of these: nothing is looked for again.

        `options` may differ in `offset`, `limit`, `threads` and the size of batches.
        """
        other = copy(self)
        other.sources, other.beside, other.failed = sources, None, None
        other.folders, other._rows_of = self.folders.over(sources), Counter()
        other._options, other._begun = options, (0, 0)
        other.reader = ChunkReader(sources, options, self.fixed)
        other.units = other._rest()
        return other

    @property
    def words(self) -> str:
        """Files and columns in a few words."""
        more = f" and {len(self.sources) - 1:,} more files" if len(self.sources) > 1 else ""
        return f"{printable(self.sources[0].path)}{more}: {schema_summary(self.schema)}" if self.sources else "no files"

    def restart(self, late: LateSchema) -> None:
        """Begin anew under an embedded schema that says more."""
        if late.record > 0:
            text = f"{printable(late.governing.path)}: the embedded schema was found in record {late.record}, not in the first; it is used"
            warn(text, SchemaWarning)
        self._open(late.governing, self.reader)

    def _plan(self, **given: Any) -> Plan:
        options = self._options
        return Plan(
            record_type=self._record_type,
            check_crc=options.check_crc,
            max_record_bytes=options.max_record_bytes,
            max_features=options.max_features,
            **given,
        )

    def _read_bytes(self) -> None:
        """Records as they are: nothing is parsed and no schema is looked for."""
        if self._options.schema not in (None, "infer"):
            raise ValueError('record_type="bytes" has one column of its own: schema= does not apply')
        self._check_names(payloads.SCHEMA.names)
        plan = Plan(check_crc=self._options.check_crc, max_record_bytes=self._options.max_record_bytes)
        self.fixed = self.reader.setup = replace(self.reader.setup, plan=plan, as_bytes=True)
        self.schema_source = 'record_type="bytes"'
        self._build(Schema.from_arrow(payloads.SCHEMA), {})
        self.units = self._rest()

    def _govern(self, schema: Schema, dictionaries: Any, source: str) -> None:
        """Read under a schema that is known."""
        self.schema_source = source
        schema = self._overridden(schema)
        self._check_names(schema.names)
        names = self._projection.order(schema.names)
        if self._index and source == "embedded":
            excluded = {name.removeprefix("!") for name in self._options.columns or ()}
            names += [name for name in stored_index(schema.to_arrow()) if name not in names and name not in excluded]
        chosen = schema.select(names)
        assembler = None if source == "embedded" else CompositeDecoder(chosen)
        parts = chosen if assembler is None else assembler.parts
        compiled = plan_columns(parts)
        if source != "embedded":
            named = compiled.asked_for  # met as unknown: in the other part of a SequenceExample
            plan = self._plan(
                columns=compiled.columns, unknown="fault", select=named.__contains__, ignored=compiled.ignored
            )
        else:
            everything = plan_columns(schema)
            left_out = everything.ignored | {c.name for c in everything.columns} - {c.name for c in compiled.columns}
            plan = self._plan(
                columns=compiled.columns, unknown="fault", select=self._projection, ignored=frozenset(left_out)
            )
        self.fixed = self.reader.setup = replace(self.reader.setup, plan=plan)
        self._build(parts, dictionaries, assembler)
        self.units = self._rest()

    def _check_names(self, features: Collection[str]) -> None:
        self.folders.refuse_features(features)
        self._projection.check([*features, *self.folders.names])

    def _overridden(self, schema: Schema) -> Schema:
        overrides = self._options.schema_overrides
        return schema if overrides is None else apply_overrides(schema, overrides)

    def _infer(self) -> None:
        """Decode a sample, fix the schema, and go on under it."""
        options = self._options
        text = Text.TRACK if options.infer_text and not options.stable_types else Text.NO
        self.reader.setup = replace(self.reader.setup, plan=self._plan(unknown="discover", select=self._met, text=text))
        self._names: set[str] = set()
        sample = list(self._sample())
        seen = observe_units(sample)
        failed = next((at for at, unit in enumerate(sample) if unit.error is not None), None)
        if failed is not None:
            self.failed = sample[failed].error
            sample = sample[: failed + 1]
            self._check_companions(self.failed)
        else:
            self._check_names(self._names)
        if self._record_type is RecordType.DETECT and any(unit.sequence for unit in sample):
            raise _LateSequence  # one feature list makes them all SequenceExamples, also those that were read as Examples
        self.check_record_type(sample)
        self.sampled = sum(unit.rows for unit in sample)
        folded = folded_columns(sample, seen, self._is_folded) if self._folds else {}
        if folded:
            self.schema_source = "companions"
        inferred = inferred_schema(seen, options, folded)
        schema = self._overridden(inferred)
        self._companions = self._unshown(schema, sample)
        schema = schema.select(name for name in self._projection.order(inferred.names) if name not in self._companions)
        self.inferred = InferredSchema(schema, evidence_of(sample, seen), self.sampled) if self._evidence else None
        self._build(schema, {}, folded=folded)
        compiled = plan_columns(schema, text=Text.STRICT, folded=folded)
        ignored = compiled.ignored | (self._companions - {column.name for column in compiled.columns})
        unknown = "fault" if options.on_new == "raise" else "skip"
        plan = self._plan(columns=compiled.columns, unknown=unknown, select=self._projection, ignored=ignored)
        self.fixed = replace(self.reader.setup, plan=plan, contradicts_sample=True)
        self._shown = seen
        self.units = self._after(sample)

    def _met(self, name: str) -> bool:
        self._names.add(name)
        return self._projection(name) or self._is_read_along(name)

    def _is_read_along(self, name: str) -> bool:
        """Whether the feature has the name of a companion of one that is wanted."""
        of = feature_of_companion(name)
        return self._folds and of is not None and self._projection(of)

    def _is_folded(self, name: str) -> bool:
        """Whether the feature becomes a tensor if it is one: it is wanted, and no type is asked for it or for its companions."""
        keys = self._options.schema_overrides or {}
        asked = any(
            key == each or (is_glob(key) and matches(key, each)) for key in keys for each in (name, *companions(name))
        )
        return self._projection(name) and not asked

    def _unshown(self, schema: Schema, sample: list[DecodedChunk]) -> set[str]:
        """Companions that are no columns: of tensors that were asked for by an override, and of features that are left out."""
        if not self._folds:
            return set()
        found = {each for f in schema if reads_companions(f) for each in companions(f.feature)}
        found |= left_out_companions(sample, self._names, self._projection.leaves_out)
        return found - set(self._options.columns or ()) - set(self._options.schema_overrides or ())

    def _check_companions(self, error: Exception | None) -> None:
        """Begin anew where what stopped the reading is a feature that nobody asked for."""
        feature = getattr(error, "feature", None)
        if feature is not None and not self._projection(feature) and self._is_read_along(feature):
            raise _NoCompanion

    def _sample(self) -> Iterator[DecodedChunk]:
        options = self._options
        if options.sample == "all":
            yield from self.reader.units(options.thread_count, self._batch_rows, self._batch_bytes)
            return
        worker = self.reader.worker()
        left, left_bytes = options.sample, _SAMPLE_BYTES
        rows = size = 0  # of the batch that is begun
        while left > 0 and left_bytes > 0:
            room, room_bytes = self._batch_rows - rows, self._batch_bytes - size
            unit = self.reader.read(worker, min(left, room), min(left_bytes, room_bytes), begun=rows > 0)
            if unit is None:
                break
            by_batch = room <= left if unit.rows == min(left, room) else room_bytes <= left_bytes
            sample_ends = unit.ends_batch and not by_batch
            unit.ends_batch &= by_batch
            left, left_bytes = left - unit.rows, left_bytes - unit.payload_bytes
            rows, size = rows + unit.rows, size + unit.payload_bytes
            yield unit
            if unit.error is not None or sample_ends:
                break
            if unit.ends_batch:
                rows = size = 0
        self._begun = rows, size

    def _after(self, sample: list[DecodedChunk]) -> Generator[DecodedChunk, None, None]:
        """The sample's units, then the rest under the schema that they gave."""
        failed = bool(sample) and sample[-1].error is not None
        whole = self._options.sample == "all"
        held = [unit for unit in sample if unit.rows or unit.ends_batch or unit.error is not None]
        sample.clear()
        while held:
            yield held.pop(0)
        if failed or whole:
            return
        self.reader.setup = self.fixed
        yield from self._rest()

    def _rest(self) -> Generator[DecodedChunk, None, None]:
        for unit in self.reader.units(self._options.thread_count, self._batch_rows, self._batch_bytes, *self._begun):
            if self._shown:
                name_both(unit, self._shown)
            yield unit

    @property
    def _batch_rows(self) -> int:
        return _ALL_ROWS if self._whole else self._options.batch_size

    @property
    def _batch_bytes(self) -> int:
        asked = min(self._options.batch_bytes, _MOST_BATCH_BYTES)
        return max(asked, _WHOLE_BATCH_BYTES) if self._whole else asked

    def _build(
        self, schema: Schema, dictionaries: Any, assembler: CompositeDecoder | None = None, folded: Collection[str] = ()
    ) -> None:
        self.builder = BatchBuilder(schema, dictionaries, folded)
        if assembler is not None and assembler.needed:
            self.builder = CompositeBatchBuilder(self.builder, assembler)
        self._path_column = self._options.include_file_paths
        self.schema = self.folders.extended(self.builder.schema)
        if self._path_column is not None:
            if self._path_column in self.schema.names:
                raise SchemaError(
                    "include_file_paths names a column that is there already",
                    feature=self._path_column,
                    advice="pass another name",
                )
            self.schema = self.schema.append(pa.field(self._path_column, pa.string()))

    def count(self, unit: DecodedChunk, records: int) -> None:
        """Note rows given, for `check_counts`."""
        self._rows_of[unit.file] += records
        if self.beside is not None:
            self.beside.records[unit.path] += records

    def check_counts(self) -> None:
        """All files have been read: do they hold what stands beside them?"""
        if self._options.offset or self._options.limit is not None:
            return
        for at, source in enumerate(self.sources):
            if source.shard is not None and source.span is None:  # a piece has a part of the file's records
                source.shard.check_records(self._rows_of[at], source.path)
        if self.beside is not None:
            self.beside.check()

    def check_record_type(self, units: list[DecodedChunk]) -> None:
        """Refuse records of which none holds a feature."""
        for unit in units:
            self._seen += unit.seen
            self._foreign += unit.foreign
        if self._options.record_type is None and self._seen and self._seen == self._foreign:
            raise DecodeError(
                "the records are no tf.train.Example: none of them holds a feature",
                path=self.sources[0].path,
                record=0,
                expected="Example",
                got="another message",
                advice=OTHER_MESSAGE,
            )


class _LateSequence(Exception):
    """A feature list was met by records that nobody had said to be SequenceExamples."""


class _NoCompanion(Exception):
    """A feature contradicts itself that was only read along, as a companion of one that is wanted."""


def _asks_inference(declared: Any) -> bool:
    return isinstance(declared, str) and declared == "infer"
