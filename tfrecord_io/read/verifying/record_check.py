"""Check the records of a file: their frames, and the type of each feature.

A record is parsed by a `Plan`, which has all features whose type is known: of the embedded schema or, without one, of
the records before. `RecordChecker` checks records in their order; a `RecordPart` checks a segment of a file in another
thread, as long as its records bring nothing new.

Tests: tests/read/verifying/test_record_check.py; of whole files: tests/read/verifying/test_verify.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.bytes import Engine, Fault, Kind, Layout, Plan, PlanColumn, RecordCounts, RecordType, Text, get_engine
from tfrecord_io.columns import EmbeddedSchema, plan_columns
from tfrecord_io.errors import SchemaError

_MAX_EXPANSION = 64 << 20
_PARSED_BYTES = 1 << 20  # of payloads at a time, so that records of many names take little memory
_MOST_PLANNED = 10_000  # features whose types are compared over the whole file


@dataclass(slots=True)
class FileContents:
    """Schema and features of the good records of a file."""

    schema: EmbeddedSchema | None = None  # the embedded schema
    # Feature type of each feature with values that the schema does not have, by name and True for a feature list.
    kinds: dict[tuple[str, bool], Kind] = field(default_factory=dict)
    sequence: bool = False  # True if records are SequenceExamples
    counts: RecordCounts = field(default_factory=RecordCounts)


class RecordPart:
    """Parses the records of a segment by a plan, in a thread, independent of earlier records."""

    def __init__(self, plan: Plan | None, max_record_bytes: int) -> None:
        self.plan = plan  # None: only frames are checked
        self.decoder = None if plan is None else get_engine().decoder(plan)
        self.is_plain = True  # so far no embedded schema, and no values of features outside the plan
        self._max_record_bytes = max_record_bytes

    def __call__(self, data: Any, final: bool) -> tuple[int, int, Fault | None]:
        """Check records as a `tfrecord_io.read.chunks.block_walker.Step`; stops at the first that is not plain."""
        if self.plan is None or self.decoder is None:
            frames, fault = get_engine().scan(data, max_record_bytes=self._max_record_bytes, final=final)
            return len(frames.starts), frames.consumed, fault
        records = consumed = 0
        while self.is_plain:
            progress = self.decoder.feed(data, consumed, max_bytes=_PARSED_BYTES, final=final)
            records, consumed = records + progress.records, consumed + progress.consumed
            kinds = _kinds(self.decoder, self.plan)
            self.is_plain = not progress.embedded and not kinds
            if not progress.consumed or progress.fault is not None:
                return records, consumed, progress.fault
        return records, consumed, None


class RecordChecker:
    """Parses all values of records, and discards them.

    A feature must have one type: that of the embedded schema or, without one, of the first record that has values.
    """

    def __init__(self, contents: FileContents, path: str, record_type: str | None, max_record_bytes: int) -> None:
        self._contents, self._path = contents, path
        self._engine = get_engine()
        self._max_record_bytes = max_record_bytes
        self.plan: Plan | None = None  # None: only frames are checked
        self._decoder: Engine.Decoder | None = None
        if record_type != "bytes":
            self._decode_by(
                Plan(
                    text=Text.NO,
                    record_type=RecordType.by_option()[record_type],
                    max_record_bytes=max_record_bytes,
                    max_expansion=_MAX_EXPANSION,
                    names_in_both=True,
                    stop_at_embedded=True,
                )
            )

    def feed(self, data: Any, final: bool) -> Engine.Progress:
        """Check some of the records in `data`; where this stops at an embedded schema, call `check_schema`."""
        if self._decoder is None:
            frames, fault = self._engine.scan(data, max_record_bytes=self._max_record_bytes, final=final)
            return Engine.Progress(len(frames.starts), frames.consumed, fault)
        progress = self._decoder.feed(data, max_bytes=_PARSED_BYTES, final=final)
        kinds = _kinds(self._decoder, self.plan)
        if kinds and len(self._contents.kinds) < _MOST_PLANNED:
            self._contents.kinds = kinds | self._contents.kinds
            columns = [
                PlanColumn(name, kind, Layout.ANY, Text.NO, steps=steps)
                for (name, steps), kind in self._contents.kinds.items()
            ]
            assert self.plan is not None
            if len(columns) > len(self.plan.columns):
                self._decode_by(self.plan._replace(columns=tuple(columns), record_type=self._record_type()))
        return progress

    def part(self) -> RecordPart:
        """Make a checker of records that follow, to run beside this one; see `join`."""
        return RecordPart(self.plan, self._max_record_bytes)

    def join(self, part: RecordPart) -> bool:
        """True if the records of a faultless part bring nothing new; then they count as checked."""
        if part.plan is not self.plan:
            return False
        if part.decoder is not None and self._decoder is not None:
            is_known = set(part.decoder.new_names) <= set(self._decoder.new_names)
            if not part.is_plain or not is_known or part.decoder.sequence != self._decoder.sequence:
                return False
            self._contents.counts += part.decoder.counts
        return True

    def check_schema(self, content: bytes, record: int, offset: int) -> SchemaError | None:
        """Check the embedded schema of the next record, and decode the record by it; return the fault."""
        assert self._decoder is not None
        schema, error = self._contents.schema, None
        try:
            embedded = EmbeddedSchema.parse(content)
        except EmbeddedSchema.Unreadable as unreadable:
            error = unreadable.reason
        else:
            if schema is None:
                self._contents.schema = embedded
                self._plan_schema(embedded)
            elif not embedded.has_types(schema.schema):
                error = "it carries an embedded schema that differs from that of the file's first record"
        self._decoder.accept_embedded()
        return None if error is None else SchemaError(error, path=self._path, record=record, offset=offset)

    def finish(self) -> None:
        """Add the last records to the contents."""
        if self._decoder is not None:
            self._contents.counts += self._decoder.counts
            self._contents.sequence |= self._decoder.sequence

    def _decode_by(self, plan: Plan) -> None:
        self.finish()
        self.plan, self._decoder = plan, self._engine.decoder(plan)

    def _plan_schema(self, embedded: EmbeddedSchema) -> None:
        assert self.plan is not None
        compiled = plan_columns(embedded.schema)
        self._contents.kinds = {}
        has_steps = any(column.steps for column in compiled.columns)
        record_type = RecordType.SEQUENCE_EXAMPLE if has_steps else self._record_type()
        plan = self.plan._replace(columns=compiled.columns, ignored=compiled.ignored, unknown="fault")
        self._decode_by(plan._replace(record_type=record_type))

    def _record_type(self) -> RecordType:
        assert self.plan is not None
        assert self._decoder is not None
        return RecordType.SEQUENCE_EXAMPLE if self._decoder.sequence else self.plan.record_type


def _kinds(decoder: Engine.Decoder, plan: Plan | None) -> dict[tuple[str, bool], Kind]:
    """Take the rows from a decoder; return the feature types of names outside the plan that have values."""
    columns = decoder.take_columns().values()
    new = [] if plan is None or not decoder.new_names else [*columns][len(plan.columns) :]
    kinds = [(column, column.kind if column.steps is None else column.steps.kind) for column in new]
    return {(column.name, column.steps is not None): Kind(kind) for column, kind in kinds if kind != Kind.NONE}
