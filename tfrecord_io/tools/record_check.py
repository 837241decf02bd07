"""Check the records of a file: that they parse, and agree with the embedded schema and with each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from tfrecord_io.arrow.decode.decode_plan import plan_columns
from tfrecord_io.engine.contract import Decoder, Fault, FeatureName, Plan, PlanColumn, Progress, RecordCounts
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import SchemaError
from tfrecord_io.format.kinds import RECORD_TYPES, Kind, Layout, RecordType, Text
from tfrecord_io.schema.embedded import Embedded, EmbeddedSchemaUnreadable, equal_types, unpack

_PARSED_BYTES = 1 << 20  # of payloads parsed at a time, so that records of many names take little memory
_MAX_EXPANSION = 64 << 20
_MOST_PLANNED = 10_000  # features whose types are compared over the whole file


@dataclass(slots=True)
class FileContents:
    """What the records of a file are, as far as they are good.

    Attributes
    ----------
    schema : Embedded or None
        The embedded schema.
    kinds : dict
        The feature type of each feature with values, by name and whether it is a feature list; not of the features that
        the schema has.
    sequence : bool
        Whether they are SequenceExamples.
    counts : RecordCounts
    """

    schema: Embedded | None = None
    kinds: dict[tuple[str, bool], Kind] = field(default_factory=dict)
    sequence: bool = False
    counts: RecordCounts = field(default_factory=RecordCounts)


class RecordPart:
    """Parses records by a plan, apart from those before them: the step of a thread that checks a segment.

    Attributes
    ----------
    plan : Plan or None
        None: only frames are checked.
    decoder : Decoder or None
    is_plain : bool
        Whether they have no embedded schema, and no values of features outside the plan.
    """

    def __init__(self, plan: Plan | None, max_record_bytes: int) -> None:
        self.plan = plan
        self.decoder = None if plan is None else get_engine().decoder(plan)
        self.is_plain = True
        self._max_record_bytes = max_record_bytes

    def __call__(self, data: Any, final: bool) -> tuple[int, int, Fault | None]:
        """See `tfrecord_io.read.chunks.block_walker.Step`; takes nothing any more once it is not plain."""
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
        self._decoder: Decoder | None = None
        if record_type != "bytes":
            self._decode_by(
                Plan(
                    text=Text.NO,
                    record_type=RECORD_TYPES[record_type],
                    max_record_bytes=max_record_bytes,
                    max_expansion=_MAX_EXPANSION,
                    names_in_both=True,
                    stop_at_embedded=True,
                )
            )

    def feed(self, data: Any, final: bool) -> Progress:
        """Check some of the records in `data`; where it stops at an embedded schema, call `check_schema`."""
        if self._decoder is None:
            frames, fault = self._engine.scan(data, max_record_bytes=self._max_record_bytes, final=final)
            return Progress(len(frames.starts), frames.consumed, fault)
        progress = self._decoder.feed(data, max_bytes=_PARSED_BYTES, final=final)
        kinds = _kinds(self._decoder, self.plan)
        if kinds and len(self._contents.kinds) < _MOST_PLANNED:
            self._contents.kinds = kinds | self._contents.kinds
            self._plan_known_kinds()
        return progress

    def part(self) -> RecordPart:
        """A checker of records that follow, beside this one; see `join`."""
        return RecordPart(self.plan, self._max_record_bytes)

    def join(self, part: RecordPart) -> bool:
        """Whether the records of a part, which has no fault, would change nothing here; they count as checked then."""
        if part.plan is not self.plan:
            return False
        if part.decoder is not None and self._decoder is not None:
            is_known = set(part.decoder.new_names) <= set(self._decoder.new_names)
            if not part.is_plain or not is_known or part.decoder.sequence != self._decoder.sequence:
                return False
            self._contents.counts += part.decoder.counts
        return True

    def check_schema(self, content: bytes, record: int, offset: int) -> SchemaError | None:
        """Check the embedded schema of the next record, which is decoded by it; returns what is wrong with it."""
        assert self._decoder is not None
        schema, error = self._contents.schema, None
        try:
            embedded = unpack(content)
        except EmbeddedSchemaUnreadable as unreadable:
            error = unreadable.reason
        else:
            if schema is None:
                self._contents.schema = embedded
                self._plan_schema(embedded)
            elif not equal_types(schema.schema, embedded.schema):
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

    def _plan_known_kinds(self) -> None:
        assert self.plan is not None
        columns = [
            PlanColumn(name, kind, Layout.ANY, Text.NO, steps=steps)
            for (name, steps), kind in self._contents.kinds.items()
        ]
        if len(columns) > len(self.plan.columns):
            self._decode_by(replace(self.plan, columns=tuple(columns), record_type=self._record_type()))

    def _plan_schema(self, embedded: Embedded) -> None:
        assert self.plan is not None
        compiled = plan_columns(embedded.schema)
        self._contents.kinds = {}
        has_steps = any(column.steps for column in compiled.columns)
        record_type = RecordType.SEQUENCE_EXAMPLE if has_steps else self._record_type()
        plan = replace(self.plan, columns=compiled.columns, ignored=compiled.ignored, unknown="fault")
        self._decode_by(replace(plan, record_type=record_type))

    def _record_type(self) -> RecordType:
        assert self.plan is not None
        assert self._decoder is not None
        return RecordType.SEQUENCE_EXAMPLE if self._decoder.sequence else self.plan.record_type


def _kinds(decoder: Decoder, plan: Plan | None) -> dict[FeatureName, Kind]:
    """Take the rows; returns the feature types of the new names that have values in them."""
    columns = decoder.take()
    new = [] if plan is None or not decoder.new_names else columns[len(plan.columns) :]
    kinds = [(column, column.kind if column.steps is None else column.steps.kind) for column in new]
    return {(column.name, column.steps is not None): Kind(kind) for column, kind in kinds if kind != Kind.NONE}
