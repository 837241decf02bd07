"""The declared columns that no record has: which they are, and which names were probably meant.

Tests: tests/read/test_record_checks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import MIB, ScanOptions, Selection, and_more, counted, did_you_mean, printable
from tfrecord_io.bytes import Plan, RecordType, Text
from tfrecord_io.columns import BatchStream, Column, Field, Schema, plan_columns
from tfrecord_io.errors import SchemaError, TFRecordError
from tfrecord_io.read.chunks.chunk import DecodeSettings, plan_limits
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.store import Source

_SAMPLE_RECORDS = 100
_SAMPLE_BYTES = 4 * MIB
_MAX_LISTED = 8
_ADVICE = "required=False if that is expected"


class AbsentColumns:
    """The declared columns without a value so far, in one read of all its records.

    `columns` are those that are read; `issue` takes the text of the warning. Columns with a default, and those declared
    with ``required=False``, may be absent. A column with ``required=True`` that a record lacks is an error of the
    engine.
    """

    def __init__(self, columns: Schema, issue: Callable[[str], object]) -> None:
        self._columns = columns
        self._issue = issue
        self._fields = [f for f in columns if f.required is None and f.default is None and not t.is_null(f.type)]

    def observe(self, *batches: pa.RecordBatch) -> None:
        """Drop the columns that have a value in one of the batches."""
        for batch in batches if self._fields else ():
            rows = len(batch)
            self._fields = [f for f in self._fields if batch.column(f.column).null_count == rows]

    def observe_until_found(self, open_columns: Callable[[Sequence[str]], BatchStream]) -> None:
        """Read the columns that are left until each has a value."""
        if not self._fields:
            return
        try:
            with open_columns([f.column for f in self._fields]) as batches:
                for batch in batches:
                    self.observe(batch)
                    if not self._fields:
                        return
        except (TFRecordError, OSError):  # a value that does not fit, or a file that is gone: no reason to warn
            self._fields = []

    def finish(self, sources: Sequence[Source], options: ScanOptions, records: int) -> None:
        """Warn of the columns that are left, after a read of `records` records.

        SchemaError if a SequenceExample has such a feature in the other part: the context or the feature lists.
        """
        if not self._fields or not records:
            return
        wanted = {f.column: _features(f) for f in self._fields}
        names = _first_names(sources, options, frozenset().union(*wanted.values()))
        absent = [f for f in self._fields if not any(f.part in names.get(name, ()) for name in wanted[f.column])]
        if options.record_type != "example":
            for f in absent:
                _refuse_other_part(f, wanted[f.column], names, records)
        if absent:
            declared_features = set().union(*(_features(f) for f in self._columns))
            candidates = [name for name in names if name not in declared_features]
            notes = [(_quote_field(f), _suggestion(f, wanted[f.column], names, candidates)) for f in absent]
            self._issue(_message(notes, records, candidates))


def _message(notes: Sequence[tuple[str, str]], records: int, candidates: Collection[str]) -> str:
    records_read = f"none of {records:,} record{'' if records == 1 else 's'}"
    if len(notes) == 1:
        ((name, suggestion),) = notes
        shown = ", ".join(f"'{printable(candidate)}'" for candidate in sorted(candidates)[:_MAX_LISTED])
        suggestion = suggestion or (shown and f"other features are {shown}{and_more(len(candidates) - _MAX_LISTED)}")
        suggestion = suggestion and f"; {suggestion}"
        end = "" if suggestion.endswith("?") else "."
        return f"{name} occurs in {records_read}{suggestion}{end} Declare it with {_ADVICE}"
    listed = [name + (suggestion and f" ({suggestion})") for name, suggestion in notes[:_MAX_LISTED]]
    more = and_more(len(notes) - _MAX_LISTED)
    summary = f"{len(notes):,} declared columns occur in {records_read}: {', '.join(listed)}{more}"
    return f"{summary}. Declare them with {_ADVICE}"


def _quote_field(field: Field) -> str:
    column = "" if field.feature == field.column else f" (column '{printable(field.column)}')"
    return f"'{printable(field.feature)}'{column}"


def _refuse_other_part(
    field: Field, features: frozenset[str], names: Mapping[str, Collection[str]], records: int
) -> None:
    part, other_part = (
        ("feature lists", "context") if field.part == Column.FEATURE_LIST else ("context", "feature lists")
    )
    maker = (
        "tfr.sequence" if field.part == Column.FEATURE_LIST else "tfr.list_" if t.is_list(field.type) else "tfr.scalar"
    )
    makers = "tfr.scalar or tfr.list_" if field.part == Column.FEATURE_LIST else "tfr.sequence"
    for name in features & names.keys():
        raise SchemaError(
            f"the schema declares it in the {part}, where none of {counted(records, 'record')} has it; "
            f"it is in the {other_part}",
            feature=name,
            expected=field.part,
            got=Column.FEATURE_LIST if field.part == Column.CONTEXT else Column.CONTEXT,
            hint=(f"declare it with {makers}, or declare it with {maker}(…, required=False) if it may be missing"),
            hint_cli="leave it out of --type",
        )


def _suggestion(
    field: Field, features: Collection[str], names: Mapping[str, Collection[str]], candidates: Iterable[str]
) -> str:
    """The probable intention: a feature list of that name (otherwise that is an error), or similar names."""
    if any(name in names for name in features):
        return "a feature list has that name, and reading the records as tf.train.Example ignores feature lists"
    if field.feature in candidates:
        example = printable(min(features))
        return f"the records have it, but {field.type_name} is read from other features, such as '{example}'"
    return did_you_mean(field.feature, candidates)


def _features(field: Field) -> frozenset[str]:
    """The features that a column is read from, without companions."""
    plan = plan_columns(Schema([field]))
    return frozenset(column.name for column in plan.columns) - plan.companions


def _first_names(sources: Sequence[Source], options: ScanOptions, wanted: Collection[str]) -> dict[str, set[str]]:
    """The features of the first records, and the parts that each of `wanted` is in.

    Empty where the files can be read only once, or the records cannot be read.
    """
    if not all(source.can_be_read_again for source in sources[:1]):
        return {}
    names: dict[str, set[str]] = {}
    parts: dict[str, set[str]] = {}

    def select(name: str) -> bool:
        names[name] = {Column.CONTEXT}
        return name in wanted

    plan = Plan(select=select, text=Text.NO, record_type=RecordType.DETECT, names_in_both=True, **plan_limits(options))
    reader = ChunkReader(sources[:1], options.changed(threads=1, progress=False), Selection(limit=_SAMPLE_RECORDS))
    reader.settings = DecodeSettings(plan)
    try:
        chunk = reader.read(reader.decoder(), _SAMPLE_RECORDS, _SAMPLE_BYTES)
    except (TFRecordError, OSError):  # the read itself succeeded; only the suggestions are lost
        return names
    finally:
        reader.close()
    for column in chunk.columns.values() if chunk is not None else ():
        parts.setdefault(column.name, set()).add(Column.CONTEXT if column.steps is None else Column.FEATURE_LIST)
    return names | parts
