"""Declared columns that no record has: which they are, and which names were probably meant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.decode.decode_plan import plan_columns
from tfrecord_io.display import counted, did_you_mean
from tfrecord_io.engine.contract import Plan
from tfrecord_io.errors import SchemaError, SchemaWarning, TFRecordError, printable, warn
from tfrecord_io.format.kinds import RecordType, Text
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.read.chunks.chunk import DecodeSettings, plan_limits
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.schema.composite import component_fields
from tfrecord_io.schema.field import CONTEXT, Field
from tfrecord_io.schema.leaf import FEATURE_LIST
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.read.source import Source

_SAMPLE_RECORDS = 100
_SAMPLE_BYTES = 4 * MIB
_MAX_LISTED = 8
_ADVICE = "tfr.scalar(…, required=False) if that is expected"

warn_of_schema = partial(warn, category=SchemaWarning)


class AbsentColumns:
    """The declared columns that had no value so far, in one read of all its records.

    Columns with a default, and those declared with ``required=False``, may be absent. A column with ``required=True``
    that a record lacks is an error of the engine.

    Parameters
    ----------
    columns : Schema
        The declared columns that are read.
    issue : callable
        Takes the text of the warning.
    """

    def __init__(self, columns: Schema, issue: Callable[[str], object]) -> None:
        self._columns = columns
        self._issue = issue
        self._fields = [f for f in columns if f.required is None and f.default is None and not t.is_null(f.type)]

    def observe(self, batch: pa.RecordBatch) -> None:
        """Drop the columns that have a value in the batch."""
        if self._fields:
            rows = len(batch)
            self._fields = [f for f in self._fields if batch.column(f.column).null_count == rows]

    def observe_until_found(self, values_of: Callable[[Sequence[str]], Iterable[pa.RecordBatch]]) -> None:
        """Observe what `values_of` reads of the columns that are left, until each has a value."""
        if not self._fields:
            return
        try:
            for batch in values_of([f.column for f in self._fields]):
                self.observe(batch)
                if not self._fields:
                    return
        except (TFRecordError, OSError):  # a value that does not fit, or a file that is gone: no reason to warn
            self._fields = []

    def finish(self, sources: Sequence[Source], options: ReadOptions, records: int) -> None:
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
            known = set().union(*(_features(f) for f in self._columns))
            candidates = [name for name in names if name not in known]
            notes = [(_quoted(f), _suggestion(f, wanted[f.column], names, candidates)) for f in absent]
            self._issue(_message(notes, records))


def _message(notes: Sequence[tuple[str, str]], records: int) -> str:
    records_read = f"none of {records:,} record{'' if records == 1 else 's'}"
    if len(notes) == 1:
        ((name, suggestion),) = notes
        suggestion = suggestion and f"; {suggestion}"
        end = "" if suggestion.endswith("?") else "."
        return f"{name} occurs in {records_read}{suggestion}{end} Declare it with {_ADVICE}"
    listed = [name + (suggestion and f" ({suggestion})") for name, suggestion in notes[:_MAX_LISTED]]
    more = f" and {len(notes) - _MAX_LISTED:,} more" if len(notes) > _MAX_LISTED else ""
    these = f"{len(notes):,} declared columns occur in {records_read}: {', '.join(listed)}{more}"
    return f"{these}. Declare them with {_ADVICE}"


def _quoted(field: Field) -> str:
    column = "" if field.feature == field.column else f" (column '{printable(field.column)}')"
    return f"'{printable(field.feature)}'{column}"


def _refuse_other_part(
    field: Field, features: frozenset[str], names: Mapping[str, Collection[str]], records: int
) -> None:
    part, other = ("feature lists", "context") if field.part == FEATURE_LIST else ("context", "feature lists")
    makers = "tfr.scalar or tfr.list_" if field.part == FEATURE_LIST else "tfr.sequence"
    for name in features & names.keys():
        raise SchemaError(
            f"the schema declares it in the {part}, where none of {counted(records, 'record')} has it; "
            f"it is in the {other}",
            feature=name,
            expected=field.part,
            got=FEATURE_LIST if field.part == CONTEXT else CONTEXT,
            advice=f"declare it with {makers}, or with tfr.scalar(…, required=False) if it may be missing",
        )


def _suggestion(
    field: Field, features: Collection[str], names: Mapping[str, Collection[str]], candidates: Iterable[str]
) -> str:
    """What was probably meant: a feature list of that name (otherwise that is an error), or similar names."""
    if any(name in names for name in features):
        return 'a feature list has that name, and record_type="example" ignores feature lists'
    return did_you_mean(field.feature, candidates)


def _features(field: Field) -> frozenset[str]:
    """The features that a column is read from, without companions."""
    return plan_columns(Schema(component_fields([field]))).asked_for


def _first_names(sources: Sequence[Source], options: ReadOptions, wanted: Collection[str]) -> dict[str, set[str]]:
    """The features of the first records, and the parts that each of `wanted` is in.

    Empty where the files can be read only once, or the records cannot be read.
    """
    if not all(source.can_be_read_again for source in sources[:1]):
        return {}
    names: dict[str, set[str]] = {}
    parts: dict[str, set[str]] = {}

    def select(name: str) -> bool:
        names[name] = {CONTEXT}
        return name in wanted

    plan = Plan(select=select, text=Text.NO, record_type=RecordType.DETECT, names_in_both=True, **plan_limits(options))
    reader = ChunkReader(sources[:1], replace(options, offset=0, limit=_SAMPLE_RECORDS, threads=1, progress=False))
    reader.settings = DecodeSettings(plan)
    try:
        chunk = reader.read(reader.decoder(), _SAMPLE_RECORDS, _SAMPLE_BYTES)
    except (TFRecordError, OSError):  # the read itself succeeded; only the suggestions are lost
        return names
    finally:
        reader.close()
    for column in chunk.columns.values() if chunk is not None else ():
        parts.setdefault(column.name, set()).add(CONTEXT if column.steps is None else FEATURE_LIST)
    return names | parts
