"""Reading: from paths to Arrow record batches of one schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from tfrecord_io import payloads
from tfrecord_io.arrow.plan import plan_columns
from tfrecord_io.arrow.stream import export_stream
from tfrecord_io.arrow.to_arrow import BatchBuilder, to_table
from tfrecord_io.arrow.to_pandas import to_pandas
from tfrecord_io.decoding import Setup, Unit, UnitReader
from tfrecord_io.engine.contract import Plan
from tfrecord_io.engine.select import get_engine
from tfrecord_io.engine.wording import OTHER_MESSAGE
from tfrecord_io.errors import DecodeError, SchemaError, SchemaWarning, StoppedEarlyWarning, TFRecordError, printable, warn
from tfrecord_io.governing import EmbeddedSchemas, Governing, LateSchema
from tfrecord_io.inference import inferred_schema, name_both, observe_units
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.schema.fields import Schema
from tfrecord_io.schema.kinds import RecordType, Text
from tfrecord_io.schema.projection import Projection
from tfrecord_io.schema.unify import Observed
from tfrecord_io.storage.paths import resolve_inputs

if TYPE_CHECKING:
    import pandas as pd

_SAMPLE_BYTES = 16 * MIB
_ALL_ROWS = 2**62
_WHOLE_BATCH_BYTES = 64 * MIB
_MOST_BATCH_BYTES = 2**31 - 1  # offsets have 32 bits; a payload has no more values than bytes
_RECORD_TYPES = {None: RecordType.DETECT, "example": RecordType.EXAMPLE, "sequence_example": RecordType.SEQUENCE_EXAMPLE}


@dataclass
class ReadReport:
    """What a reader has read so far.

    Attributes
    ----------
    records, bytes : int
        Rows given, and uncompressed bytes of the records read.
    files : int
        Files opened.
    schema_source : str
        "schema=", "embedded" or "inferred".
    stopped : str or None
        Why reading ended early, with ``on_error="stop"``.
    """

    records: int = 0
    bytes: int = 0
    files: int = 0
    schema_source: str = "inferred"
    stopped: str | None = None


class Reader:
    """Record batches of one schema from TFRecord files; made by `tfrecord_io.open_reader`.

    A context manager and an iterator, consumed once. Anything that takes ``__arrow_c_stream__`` reads from it:
    polars, DuckDB, pyarrow.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of every batch.
    report : ReadReport
    fault : Exception or None
        What stopped the reading; across ``__arrow_c_stream__`` a consumer sees only its text.
    """

    def __init__(self, path: Any, options: ReadOptions, *, whole: bool = False) -> None:
        self._options = replace(options, sample="all") if whole else options
        self._whole = whole
        self._sources = resolve_inputs(
            path,
            storage_options=dict(options.storage_options or {}),
            filesystem=options.filesystem,
            allow_missing_shards=options.allow_missing_shards,
        )
        self._projection = Projection(options.columns)
        self.report = ReadReport()
        self.fault: Exception | None = None
        self._seen = self._foreign = 0
        self._closed = self._started = self._ended = False
        self._begun = (0, 0)  # rows and bytes of the batch that the sample began
        self._units: Iterator[Unit] = iter(())
        self._open(None)
        self._batches = self._joined()

    # Which schema governs -------------------------------------------------------------------------------------

    def _open(self, governing: Governing | None) -> None:
        """Find the schema and get ready to read under it; again, where a file turns out to say more."""
        declared = self._options.schema
        obey = declared is None
        judge = EmbeddedSchemas(obey, governing)
        setup = Setup(get_engine(), Plan(), judge.meet)
        self._reader = UnitReader(self._sources, self._options, setup)
        try:
            if self._options.record_type == "bytes":
                self._read_bytes()
                return
            if obey and governing is None:
                self._reader.peek()
            if declared is not None and declared != "infer":
                self._govern(Schema.parse(declared), {}, "schema=")
            elif governing is not None:
                self._govern(Schema.parse(governing.schema), governing.dictionaries, "embedded")
            else:
                self._infer()
        except LateSchema as late:
            self._restart(late)
        except BaseException:
            self._reader.close()
            raise

    def _restart(self, late: LateSchema) -> None:
        self._reader.close()
        self._seen = self._foreign = 0
        self.report.records = self.report.bytes = self.report.files = 0
        if late.record > 0:
            text = f"{printable(late.governing.path)}: the embedded schema was found in record {late.record}, not in the first; it is used"
            warn(text, SchemaWarning)
        self._open(late.governing)

    def _plan(self, **given: Any) -> Plan:
        options = self._options
        return Plan(
            record_type=_RECORD_TYPES[options.record_type],
            check_crc=options.check_crc,
            max_record_bytes=options.max_record_bytes,
            max_features=options.max_features,
            **given,
        )

    def _read_bytes(self) -> None:
        """Records as they are: nothing is parsed and no schema is looked for."""
        if self._options.schema not in (None, "infer"):
            raise ValueError('record_type="bytes" has one column of its own: schema= does not apply')
        self._projection.check(payloads.SCHEMA.names)
        plan = Plan(check_crc=self._options.check_crc, max_record_bytes=self._options.max_record_bytes)
        self._reader.setup = replace(self._reader.setup, plan=plan, as_bytes=True)
        self.report.schema_source = 'record_type="bytes"'
        self._build(Schema.from_arrow(payloads.SCHEMA), {})
        self._units = self._rest()

    def _govern(self, schema: Schema, dictionaries: Any, source: str) -> None:
        """Read under a schema that is known."""
        self.report.schema_source = source
        self._projection.check(schema.names)
        chosen = schema.select(self._projection.order(schema.names))
        compiled = plan_columns(chosen)
        if source == "schema=":
            plan = self._plan(columns=compiled.columns, unknown="skip", ignored=compiled.ignored)
        else:
            everything = plan_columns(schema)
            left_out = everything.ignored | {c.name for c in everything.columns} - {c.name for c in compiled.columns}
            plan = self._plan(columns=compiled.columns, unknown="fault", ignored=frozenset(left_out))
        self._reader.setup = replace(self._reader.setup, plan=plan)
        self._build(chosen, dictionaries)
        self._units = self._rest()

    def _infer(self) -> None:
        """Decode a sample, fix the schema, and go on under it."""
        options = self._options
        text = Text.TRACK if options.infer_text and not options.stable_types else Text.NO
        self._reader.setup = replace(self._reader.setup, plan=self._plan(unknown="discover", select=self._met, text=text))
        self._names: set[str] = set()
        sample = list(self._sample())
        seen = observe_units(sample)
        failed = next((at for at, unit in enumerate(sample) if unit.error is not None), None)
        if failed is not None:
            sample = sample[: failed + 1]
        else:
            self._projection.check(self._names)
        self._check_record_type(sample)
        inferred = inferred_schema(seen, options)
        schema = pa.schema([inferred.field(name) for name in self._projection.order(inferred.names)])
        self._build(Schema.from_arrow(schema), {})
        self._units = self._after(sample, schema, seen)

    def _met(self, name: str) -> bool:
        self._names.add(name)
        return self._projection(name)

    def _sample(self) -> Iterator[Unit]:
        options = self._options
        if options.sample == "all":
            yield from self._reader.units(options.thread_count, self._batch_rows, self._batch_bytes)
            return
        worker = self._reader.worker()
        left, left_bytes = options.sample, _SAMPLE_BYTES
        rows = size = 0  # of the batch that is begun
        while left > 0 and left_bytes > 0:
            room, room_bytes = self._batch_rows - rows, self._batch_bytes - size
            unit = self._reader.read(worker, min(left, room), min(left_bytes, room_bytes), begun=rows > 0)
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

    def _after(self, sample: list[Unit], schema: pa.Schema, seen: Mapping[str, Observed]) -> Iterator[Unit]:
        """The sample's units, then the rest under the schema that they gave."""
        failed = bool(sample) and sample[-1].error is not None
        whole = self._options.sample == "all"
        held = [unit for unit in sample if unit.rows or unit.error is not None]
        sample.clear()
        while held:
            yield held.pop(0)
        if failed or whole:
            return
        compiled = plan_columns(schema, text=Text.STRICT, steps={name for name, what in seen.items() if what.steps is not None})
        unknown = "fault" if self._options.on_new == "raise" else "skip"
        plan = self._plan(columns=compiled.columns, unknown=unknown, select=self._projection, ignored=compiled.ignored)
        self._reader.setup = replace(self._reader.setup, plan=plan, contradicts_sample=True)
        for unit in self._rest():
            name_both(unit, seen)
            yield unit

    def _rest(self) -> Iterator[Unit]:
        return self._reader.units(self._options.thread_count, self._batch_rows, self._batch_bytes, *self._begun)

    @property
    def _batch_rows(self) -> int:
        return _ALL_ROWS if self._whole else self._options.batch_size

    @property
    def _batch_bytes(self) -> int:
        return _WHOLE_BATCH_BYTES if self._whole else min(self._options.batch_bytes, _MOST_BATCH_BYTES)

    def _build(self, schema: Schema, dictionaries: Any) -> None:
        self._builder = BatchBuilder(schema, dictionaries)
        self._path_column = self._options.include_file_paths
        self.schema = self._builder.schema
        if self._path_column is not None:
            if self._path_column in self.schema.names:
                raise SchemaError(
                    "include_file_paths names a column that is there already", feature=self._path_column, advice="pass another name"
                )
            self.schema = self.schema.append(pa.field(self._path_column, pa.string()))

    # Units to batches -----------------------------------------------------------------------------------------

    def _check_record_type(self, units: list[Unit]) -> None:
        """Refuse records of which none holds a feature."""
        for unit in units:
            self._seen += unit.seen
            self._foreign += unit.foreign
        if self._options.record_type is None and self._seen and self._seen == self._foreign:
            raise DecodeError(
                "the records are no tf.train.Example: none of them holds a feature",
                path=self._sources[0].path,
                record=0,
                expected="Example",
                got="another message",
                advice=OTHER_MESSAGE,
            )

    def _built(self) -> Iterator[tuple[pa.RecordBatch, bool]]:
        """(batch, whether it ends a joined one), one for each unit; then raises what stopped the reading."""
        first = True
        for unit in self._units:
            if first and unit.rows:
                self._check_record_type([unit] if self.report.schema_source != "inferred" else [])
                first = False
            batch, fault = self._builder.batch(unit.columns, unit.rows)
            error = unit.error
            if fault is not None:
                error = fault.error(
                    fault.reason,
                    path=unit.path,
                    record=unit.first_record + fault.row,
                    feature=fault.feature,
                    expected=fault.expected,
                    got=fault.got,
                )
            if self._path_column is not None:
                batch = batch.append_column(self.schema.field(self._path_column), pa.repeat(unit.path, len(batch)))
            self.report.records += len(batch)
            self.report.bytes, self.report.files = self._reader.bytes, self._reader.files
            yield batch, unit.ends_batch
            if error is not None:
                self._stop(error)
                return

    def _stop(self, error: Exception) -> None:
        if isinstance(error, TFRecordError):
            error.records_intact = self.report.records
        if self._options.on_error == "raise":
            raise error
        self.report.stopped = str(error)
        warn(f"reading stopped early: {error}", StoppedEarlyWarning)

    def _joined(self) -> Iterator[pa.RecordBatch]:
        """Batches of the size asked for: those of small files are joined."""
        held: list[pa.RecordBatch] = []
        try:
            for batch, ends in self._built():
                if len(batch):
                    held.append(batch)
                if ends and held:
                    yield _join(held)
                    held = []
        except Exception as error:
            if held:
                yield _join(held)
            if isinstance(error, LateSchema):
                raise _too_late(error) from None
            raise
        if held:
            yield _join(held)

    # What people call -----------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._refuse_used()
        return self

    def __next__(self) -> pa.RecordBatch:
        return self.read_next_batch()

    def read_next_batch(self) -> pa.RecordBatch:
        """The next batch.

        Raises
        ------
        StopIteration
            At the end.
        TFRecordError
            After all rows before the damage were given.
        """
        if self._closed:
            raise ValueError("the reader is closed")
        if self.fault is not None:
            raise self.fault
        self._started = True
        try:
            return next(self._batches)
        except StopIteration:
            self._ended = True
            raise
        except Exception as error:
            self._ended, self.fault = True, error
            raise

    def read_all(self) -> pa.Table:
        """All rows that are left, as one table.

        Raises
        ------
        TFRecordError
            With ``records_intact``, the rows before the damage.
        """
        while True:
            try:
                return to_table(self._all(), self.schema)
            except LateSchema as late:
                if self._started:
                    raise _too_late(late) from None
                self._restart(late)

    def read_pandas(self, dtype_backend: str | None = None) -> pd.DataFrame:
        """All rows that are left, as a DataFrame; see `tfrecord_io.read_tfrecord`."""
        started = self._started
        return to_pandas(self.read_all(), dtype_backend, whole_file=self.is_one_whole_file and not started)

    def _all(self) -> list[pa.RecordBatch]:
        self._refuse_used()
        if self._started:
            return list(self)
        try:
            batches = [batch for batch, _ in self._built() if len(batch)]
        except LateSchema:
            raise
        except Exception as error:
            self._ended, self.fault = True, error
            raise
        self._started = self._ended = True
        return batches

    def _refuse_used(self) -> None:
        if self._closed:
            raise ValueError("the reader is closed")
        if self._ended:
            raise ValueError("the reader has been consumed; open it again")

    @property
    def is_one_whole_file(self) -> bool:
        """Whether all rows of one file are read: only then its RangeIndex may be theirs."""
        return len(self._sources) == 1 and self._options.offset == 0 and self._options.limit is None

    def close(self) -> None:
        """Close the files; reading is over."""
        self._closed = True
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        self._refuse_used()
        if self._started:
            raise ValueError("a part of the reader has been consumed; open it again")
        return export_stream(self.schema, self, requested_schema)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _too_late(late: LateSchema) -> SchemaError:
    return SchemaError(
        "its embedded schema says more than the schema that was fixed when reading began",
        path=late.governing.path,
        record=late.record,
        advice="pass schema= with all columns, or read the whole with read_table",
    )
