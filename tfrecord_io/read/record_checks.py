"""Check records for more than their columns: that they are Examples, and as many as their sidecars state.

And the declared columns that no record has: which they are, and which names were probably meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import (
    MIB,
    ScanOptions,
    Selection,
    StorageOptions,
    and_more,
    counted,
    did_you_mean,
    printable,
    warn,
)
from tfrecord_io.bytes import Plan, RecordCounts, RecordType, Text
from tfrecord_io.columns import BatchStream, Column, Field, Schema, plan_columns
from tfrecord_io.errors import SchemaError, SchemaWarning, TFRecordError
from tfrecord_io.read.chunks.chunk import DecodedChunk, DecodeSettings, plan_limits
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.skipped_regions import SkippedRegions
from tfrecord_io.store import Location, Source

if TYPE_CHECKING:
    from tfrecord_io.store import Directory

_SAMPLE_RECORDS = 100
_SAMPLE_BYTES = 4 * MIB
_VERDICT_BYTES = 64 * MIB
_MAX_LISTED = 8
_ADVICE = "required=False if that is expected"

warn_of_schema = partial(warn, category=SchemaWarning)


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


class SidecarSchema(NamedTuple):
    """The description of a dataset, or of several that have the same schema, in the directories of their files."""

    schema: Schema
    depth: int  # how many folders a file is below the directory that has the description
    storage: StorageOptions

    def check(self, records: Mapping[str, int]) -> None:
        """Raise CorruptRecordError where the number of records read from a file, by path, is not as described."""
        from tfrecord_io.columns import TfdsInfo

        lengths: dict[str, dict[str, int]] = {}
        for path, count in records.items():
            directory, name = split_folders(path, self.depth)
            if directory not in lengths:
                lengths[directory] = TfdsInfo.lengths_in(directory, Location.storage_for([directory], self.storage))
            TfdsInfo.check_count(path, count, lengths[directory].get(name, count))

    @staticmethod
    def folder_of(sources: Sequence[Source], options: ScanOptions) -> Directory | None:
        """The directory with the description of the datasets that files are of, if that can be used."""
        sidecar, _ = sidecar_schema(sources, options)
        if sidecar is None:
            return None
        from tfrecord_io.store import Directory

        return Directory(split_folders(sources[0].path, sidecar.depth)[0], sidecar.storage)


def split_folders(path: str, depth: int) -> tuple[str, str]:
    """Split a path into the directory so many folders above its file, and the file's name below there."""
    parts = path.split("/")
    folder, name = "/".join(parts[: -1 - depth]), "/".join(parts[-1 - depth :])
    return folder or ("/" if path.startswith("/") else "."), name


def find_sidecar_schema(sources: Sequence[Source], options: ScanOptions) -> SidecarSchema | None:
    """The description of the datasets that files are of, or None; with a warning if it is not used."""
    sidecar, reason = sidecar_schema(sources, options)
    if reason:
        warn(f"{reason}; types are inferred from the values", SchemaWarning)
    return sidecar


def sidecar_schema(sources: Sequence[Source], options: ScanOptions) -> tuple[SidecarSchema | None, str]:
    """The description of the datasets that files are of, or why that of the first file is not used.

    Whether others have one is not looked up where the first file has none.
    """
    if not sources or any(source.is_file_object for source in sources):
        return None, ""
    folders = {source.path.rpartition("/")[0]: source for source in reversed(sources)}
    first, *next_folders = reversed(folders)
    try:
        sidecar = _read_description(folders[first], options)
        for folder in next_folders if sidecar is not None else ():
            if _read_description(folders[folder], options) != sidecar:
                reason = f"'{printable(folder)}' has another features.json than '{printable(first)}', or none"
                return None, f"{reason}: read them one by one, or pass schema="
    except SchemaError as error:
        return None, f"the features.json next to the files cannot be used ({error})"
    return sidecar, ""


def _read_description(source: Source, options: ScanOptions) -> SidecarSchema | None:
    """The description of a file's dataset, or None; SchemaError if it cannot be used.

    That of a split may be in a directory above that of the file: TFDS has templates of names with folders.
    """
    folder, _ = split_folders(source.path, 0)
    is_absent = source.local and not os.path.exists(f"{folder}/{Source.TFDS_FEATURES}")
    if not source.may_be_beside(Source.TFDS_FEATURES) or (is_absent and options.split is None):
        return None
    from tfrecord_io.store import Directory

    for depth in range(1 if options.split is None else 1 + source.path.count("/")):
        directory, _ = split_folders(source.path, depth)
        storage = Location.storage_for([directory], options.storage)
        try:
            schema = Schema.from_tfds(directory, storage_options=storage.given)
            return SidecarSchema(schema, depth, options.storage)
        except FileNotFoundError:
            if options.split is None or Directory(directory, storage).read(Source.TFDS_INFO) is not None:
                return None
    return None


def check_counts(
    sources: Sequence[Source], rows: Mapping[int, int], skipped: SkippedRegions, sidecar: SidecarSchema | None
) -> None:
    """Compare the number of rows of each file, once all were read, with manifests and sidecars.

    Of files with `skipped` regions the records are known to be fewer.
    """
    if sidecar is None and not any(map(attrgetter("shard"), sources)):
        return
    by_path: dict[str, int] = {}
    for number, source in enumerate(sources):
        if skipped.total and skipped.has_file(number):
            continue
        if source.span is not None or source.derived is not None:  # it has a part of the file's records
            continue
        by_path[source.path] = rows.get(number, 0)
        if source.shard is not None:
            source.shard.check_records(rows.get(number, 0), source.path)
    if sidecar is not None and not skipped.total:
        sidecar.check(by_path)


def warn_of_no_records(sources: Sequence[Source]) -> None:
    """Warn, after a read without a row, that its columns are unknown."""
    more_files = f" and {counted(len(sources) - 1, 'more file')}" if len(sources) > 1 else ""
    reason = f"{printable(sources[0].path)}{more_files}: no records, so the columns are unknown"
    advice = "reads no rows of known columns"
    warn(f"{reason}; read_table(schema=…) {advice}", SchemaWarning, f"{reason}; --schema FILE {advice}")


def check_record_type(counts: RecordCounts, sources: Sequence[Source], options: ScanOptions) -> None:
    """Raise DecodeError if the records are another message: with `record_type`, only if they look like one."""
    if not counts.foreign:
        return

    error = counts.not_examples(sources[0].path, is_declared=options.record_type is not None)
    if error is not None:
        raise error


def warn_of_feature_lists(
    sources: Sequence[Source], options: ScanOptions, columns: Sequence[str] | None, embedded: Schema | None = None
) -> None:
    """Warn that the feature lists of the first record are not read, unless the columns to read were named.

    Its embedded schema, if it has one, states whether it has feature lists.
    """
    has_lists = embedded is None or any(field.part == Column.FEATURE_LIST for field in embedded)
    if options.record_type == "example" and columns is None and has_lists:
        text, text_cli = (
            f"{printable(sources[0].path)}: the records have feature lists, which {option} ignores; "
            "leave it out to read them, or name the columns to read"
            for option in ('record_type="example"', "--record-type example")
        )
        warn(text, SchemaWarning, text_cli)


class RecordTypeVerdict:
    """Decides from the first records whether they are another message, where no sample was decoded to infer a schema.

    Of a whole read, which holds all rows anyway, these are all records of `_VERDICT_BYTES`; of others, those of the
    first chunk. `decided`: there is nothing to decide.
    """

    def __init__(self, sources: Sequence[Source], options: ScanOptions, *, whole: bool, decided: bool) -> None:
        self._sources, self._options = sources, options
        self._counts: RecordCounts | None = None
        self._left = _VERDICT_BYTES if whole else 1  # payload bytes to observe
        self._decided = decided

    def observe(self, chunk: DecodedChunk) -> None:
        """Count the records of a chunk."""
        self._decided |= chunk.batch is not None  # once, when the index was written
        if self._decided or not chunk.rows:
            return
        self._counts = chunk.counts if self._counts is None else self._counts + chunk.counts
        self._left -= max(chunk.payload_bytes, 1)
        if self._left <= 0 or chunk.ends_read:
            self.decide()

    def decide(self) -> None:
        """Raise DecodeError if the records so far are another message."""
        if not self._decided:
            self._decided = True
            if self._counts is not None and self._counts.seen == self._counts.foreign:
                check_record_type(self._counts, self._sources, self._options)
