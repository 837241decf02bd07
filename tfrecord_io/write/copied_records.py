"""Read records to copy them as whole frames, and decide the embedded schema that each copy begins with."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self, TypeAlias

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, MIB, CopyOptions, ProgressMeter, ScanOptions, WriteOptions, printable, warn
from tfrecord_io.bytes import Array, FrameHeader, Plan, RecordCounts, RecordType, Text, get_engine
from tfrecord_io.bytes import Frames as Extents
from tfrecord_io.columns import Column, Conforming, EmbeddedSchema, NamePattern, Overrides, Projection, Schema
from tfrecord_io.errors import DecodeError, EncodeError, SchemaError, SchemaWarning, TFRecordError
from tfrecord_io.read import AddedColumns, BlockWalker, CallSource, Files
from tfrecord_io.store import ColumnFolder, Source, SourcePrefetcher, Sources
from tfrecord_io.typing import InputPath
from tfrecord_io.write.writer import write

Frames = tuple[Array, Array]
"""Whole frames, one after another, and the bytes of each."""

_FEATURES = 0x0A  # the tag of the features of an Example, and of the context of a SequenceExample
_MOST_VARINT_BYTES = 5  # of a length below 2^31 as it is usually written
_ANY_NUMBER = 2**31 - 1
_VERDICT_BYTES = 64 * MIB  # of records that tell whether they are Examples
_DROP = 'partitions="drop" leaves out the values of folders'
_DROP_CLI = "--partitions drop leaves out the values of folders"


class CopiedRecords:
    """Records of files, in order, with every checksum checked (of a selection, up to its last record).

    Embedded schemas are removed from the records that carry them. With ``partitions="features"``, each record gets the
    values in the names of its file's folders as features.

    `src` is as in `tfrecord_io.merge`; with `folders`, its files are stated by the folder that each is copied to.
    Without ``partitions="folders"``, all go to "". For errors see `CopiedSchema.decide`.
    """

    Frames: TypeAlias = Frames

    def __init__(self, src: InputPath, options: CopyOptions, folders: Mapping[str, list[Source]] | None = None) -> None:
        typed = CallSource(src).add_folder_types(options)
        options = typed if options.partitions == "features" else options
        self.src = CallSource(src).paths
        self.largest = (0, 0, "")  # size, number and path of the largest record that was read
        self.folders: dict[str, list[Source]] = dict(folders or {})
        for source in CallSource(src).files(options, options.source) if folders is None else ():
            folder = ColumnFolder.spelling_in(source.path, source.partitions) if options.partitions == "folders" else ""
            self.folders.setdefault(folder, []).append(source)
        self.sources = Sources(source for of_folder in self.folders.values() for source in of_folder)
        self.options = replace(options, source_metadata=self.sources.metadata)
        if options.partitions == "folders":
            _warn_of_lost_types(self.sources, typed.schema_overrides)
        self._folder_of = {id(source): folder for folder, of_folder in self.folders.items() for source in of_folder}
        stored, without = self._stored_schemas()
        self._fields = tuple(map(EmbeddedSchema.field_of, stored))  # the schemas of the files, as they are stored
        self.schema = CopiedSchema.decide(self.sources, stored, without, options)
        folder_columns = self.schema.folders
        self._features = FolderFeatures(folder_columns, self.sources) if folder_columns.fields else None

    def _stored_schemas(self) -> tuple[dict[bytes, str], str | None]:
        """Collect the embedded schemas, each with the path of a file, and the path of a file without a schema."""
        stored: dict[bytes, str] = {}
        without: str | None = None
        for source in self.sources:
            has_records, content = _first_schema(source, self.options.reading)
            if content is not None:
                stored.setdefault(content, source.path)
            elif has_records:
                without = without or source.path
        return stored, without

    def count(self) -> int:
        """Count the records, by the cheapest method that applies to each file."""
        return sum(Files(self.sources, self.options.reading).count_records())

    def frames(self) -> Iterator[tuple[str, Frames]]:
        """Yield all records, with the folders that they are copied to; the data is valid until the next step.

        Progress is shown as the options say.

        Raises
        ------
        CorruptRecordError, TruncatedRecordError, CompressionError
            A file is damaged.
        SchemaError, DecodeError
            A record cannot have the features of folders.
        """
        with (
            ProgressMeter(self.options.progress, self.sources.bytes, "bytes") as progress,
            SourcePrefetcher(self.sources) as prefetched,
            closing(BlockWalker.from_options(prefetched, self.options.reading, progress=progress)) as walker,
        ):
            for frames in walker.intact_frames():
                source, data = self.sources[walker.number], walker.data[: frames.consumed]
                at = int(frames.lengths.argmax())
                self.largest = max(self.largest, (int(frames.lengths[at]), walker.record + at, source.path))
                self._note_schema(walker, frames)
                if self._features is not None:
                    self._features.check(data, walker, source)
                copied = self._strip_schemas(data, frames.lengths + FrameHeader.FRAME_BYTES)
                if self._features is not None:
                    copied = self._features.add_to(copied, source)
                yield self._folder_of[id(source)], copied
            if self._features is not None:
                self._features.check_record_type()

    def _note_schema(self, walker: BlockWalker, frames: Extents) -> None:
        """Note the schema in the first record of a shard that embeds another schema than its manifest's."""
        shard = self.sources[walker.number].shard
        if walker.record == 0 and shard is not None and shard.manifest.schema is not None:
            content = EmbeddedSchema.content_of(walker.data[: int(frames.lengths[0]) + FrameHeader.FRAME_BYTES])
            if content is not None and _is_readable(content) and EmbeddedSchema.field_of(content) not in self._fields:
                self._fields = (*self._fields, EmbeddedSchema.field_of(content))

    @staticmethod
    def select(frames: Frames, indices: Any) -> Frames:
        """Select records, in the order of their `indices`."""
        data, sizes = frames
        starts, selected_sizes = (np.cumsum(sizes) - sizes)[indices], sizes[indices]
        joined = get_engine().payloads(data, Extents(starts, selected_sizes, 0))  # joins whole frames as if payloads
        return joined, selected_sizes

    def _strip_schemas(self, data: Array, sizes: Array) -> Frames:
        """Remove the embedded schemas from records."""
        ends = np.cumsum(sizes)
        parts: list[Array] = []
        begin, sizes = 0, sizes.copy()
        for index, field in self._find_schemas(data, ends - sizes, sizes):
            start, end = int(ends[index] - sizes[index]), int(ends[index])
            payload = data[start + FrameHeader.BYTES + len(field) : end - FrameHeader.FOOTER_BYTES]
            bare = np.frombuffer(get_engine().frame([payload]), np.uint8)
            parts += [data[begin:start], bare]
            begin, sizes[index] = end, len(bare)
        return (np.concatenate([*parts, data[begin:]]) if parts else data), sizes

    def _find_schemas(self, data: Array, starts: Array, sizes: Array) -> Iterator[tuple[int, bytes]]:
        """Find the records that begin with an embedded schema: the number of each, and the field of the schema."""
        if not self._fields:
            return
        smallest, largest = (
            min(self._fields),
            max(self._fields),
        )  # have the longest common beginning of all: at least the tag
        size = next((i for i, (a, b) in enumerate(zip(smallest, largest, strict=False)) if a != b), len(smallest))
        tag = np.frombuffer(smallest[: min(size, 16)], np.uint8)
        candidates = np.flatnonzero(sizes >= FrameHeader.FRAME_BYTES + len(tag))
        for i, byte in enumerate(tag):
            candidates = candidates[data[starts[candidates] + FrameHeader.BYTES + i] == byte]
        for index in candidates.tolist():
            payload = int(starts[index]) + FrameHeader.BYTES
            length = int(sizes[index]) - FrameHeader.FRAME_BYTES
            for field in self._fields:
                if length >= len(field) and data[payload : payload + len(field)].tobytes() == field:
                    yield index, field
                    break


@dataclass(frozen=True, slots=True)
class CopiedSchema:
    """Schema of copies."""

    # Schema to embed: the declared one, or one that covers the schemas of all files. None if no schema is declared, and
    # a file with records has none.
    content: bytes | None
    columns: tuple[str, ...]  # of the schema to embed
    united: EmbeddedSchema | None  # all embedded schemas merged
    declared: Schema | None  # the caller's schema, or types of columns
    folders: AddedColumns  # the columns of folders that become features

    @classmethod
    def decide(
        cls, sources: Sequence[Source], stored: Mapping[bytes, str], without: str | None, options: CopyOptions
    ) -> Self:
        """Decide the schema of the copies from the `stored` embedded schemas, each with the path of a file.

        `without` is the path of a file with records but without a schema.

        Raises
        ------
        SchemaError
            A column has two types; both files are named. Or a folder has the name of a column.
        SchemaError, DecodeError
            The declared schema does not describe the records.
        """
        folders = AddedColumns.from_folders(sources if options.partitions == "features" else ())
        folders, overrides = folders.override_types(options.schema_overrides, sources)
        is_declared = options.schema is not None
        united = None if is_declared else _unite_schemas(stored, overrides)
        schema_of_copies = united if without is None else None
        if is_declared:
            schema_of_copies = EmbeddedSchema(
                Conforming.written_schema(Schema.parse(options.schema)), {}, sources[0].path
            )
        elif united is not None and without is not None:
            reason = f"no schema is embedded, as {printable(without)} has none and other files have one"
            reason += "; types will be inferred from the values"
            text, text_cli = (f"{reason}; {way} declares all columns" for way in ("schema=", "--schema"))
            warn(text, SchemaWarning, text_cli)
        if is_declared or overrides:
            described = schema_of_copies or united
            columns = Overrides(overrides).apply(pa.schema([]) if described is None else described.schema)
            folders, features = folders.declare_types(columns, sources)
            if schema_of_copies is not None:
                schema_of_copies = EmbeddedSchema(
                    EmbeddedSchema.of(features.to_arrow()).schema, schema_of_copies.dictionaries, schema_of_copies.path
                )
                _check_described(schema_of_copies, sources, options.reading)
        if schema_of_copies is None:
            return cls(None, (), united=united, declared=None, folders=folders)
        _refuse(folders, schema_of_copies.schema.names, sources)
        schema = folders.extend_schema(schema_of_copies.schema, Projection(None))
        is_stored = len(stored) == 1 and not is_declared and not overrides and not folders.fields
        content = next(iter(stored)) if is_stored else EmbeddedSchema(schema, schema_of_copies.dictionaries).pack()
        declared = Schema.parse(schema) if is_declared or overrides else None
        return cls(content, tuple(schema.names), united=united, declared=declared, folders=folders)

    def drop_range_index(self) -> Self:
        """Return the schema of copies whose records are in another order: no RangeIndex of pandas describes them."""
        if self.content is None:
            return self
        embedded = EmbeddedSchema.parse(self.content)
        other_order = embedded.without_range_index()
        return self if other_order is embedded else replace(self, content=other_order.pack())


def _unite_schemas(stored: Mapping[bytes, str], overrides: Mapping[str, Any]) -> EmbeddedSchema | None:
    """Merge the embedded schemas, with the types of `overrides`."""
    schemas = [_override_types(EmbeddedSchema.parse(content, path), overrides) for content, path in stored.items()]
    try:
        united = reduce(EmbeddedSchema.merge, schemas) if schemas else None
        if united is not None:
            united.refuse_conflicts()
        return united
    except SchemaError as error:
        types = [field.type for embedded in schemas for field in embedded.schema if field.name == error.feature]
        error.set_hint(hint := "copy the files one by one")
        if len({Column(type_).plain_kind for type_ in types}) == 1 or any(
            Column(type_).plain_kind is None for type_ in types
        ):
            declare = "declare one type for both with"
            error.set_hint(f"{declare} schema_overrides=, or {hint}", f"{declare} --type, or {hint}")
        raise


def _override_types(embedded: EmbeddedSchema, overrides: Mapping[str, Any]) -> EmbeddedSchema:
    """Override types of columns in an embedded schema; the categories of these columns are left out."""
    names = embedded.schema.names
    matching_overrides = {
        key: type_ for key, type_ in overrides.items() if any(NamePattern(key).matches(name) for name in names)
    }
    if not matching_overrides:
        return embedded
    schema = Overrides(matching_overrides).apply(embedded.schema).to_arrow()
    unchanged = {name for name in names if schema.field(name).type == embedded.schema.field(name).type}
    categories = {name: values for name, values in embedded.dictionaries.items() if name in unchanged}
    return EmbeddedSchema(schema, categories, embedded.path)


def _check_described(embedded: EmbeddedSchema, sources: Sequence[Source], reading: ScanOptions) -> None:
    """Raise an error if the records cannot be read by the schema that is to be embedded."""
    files = Files(Sources.of(sources), ScanOptions(compression=reading.compression, limits=reading.limits))
    try:
        files.check_embedded(embedded)
    except (SchemaError, DecodeError) as error:
        error.advice = "the schema to embed has to name all features of the records, with types that fit their values"
        raise


def _warn_of_lost_types(sources: Sequence[Source], types_of_dataset: Mapping[str, Any] | None) -> None:
    """Warn of partition columns whose type in the copy differs from the manifest's, or from that of all folders."""
    folder_columns, _ = AddedColumns.from_folders(sources).override_types(types_of_dataset, sources)
    inferred = AddedColumns.from_folders(sources, stated=False)
    types = {field.name: field.type for field in inferred.fields}
    for field in folder_columns.fields:
        if (other_type := types.get(field.name, field.type)) != field.type:
            types_of_both = f"is {field.type} in the dataset, and {other_type} in the names of the folders"
            advice = "read the copy with schema_overrides=, or pass partitions='features'"
            text = f"'{printable(field.name)}' {types_of_both}, which is its type in the copy; {advice}"
            warn(text, SchemaWarning)


def _refuse(folders: AddedColumns, features: Sequence[str], sources: Sequence[Source]) -> None:
    """Raise SchemaError if a feature has the name of a partition column."""
    try:
        folders.refuse_features(features, sources)
    except SchemaError as error:
        error.advice = f"rename the directories; {_DROP}"
        raise


class FolderFeatures:
    """Adds the values in the names of folders to the records: in ``day=1/`` the feature ``day`` with the value 1."""

    def __init__(self, columns: AddedColumns, sources: Sequence[Source]) -> None:
        self._columns, self._sources = columns, sources
        self._plan = Plan(
            select=frozenset(columns.names).__contains__,
            text=Text.NO,
            record_type=RecordType.DETECT,
            check_crc=False,
            max_features=_ANY_NUMBER,
            names_in_both=True,
        )
        self._counts, self._counted, self._is_decided = RecordCounts(), 0, False  # for `check_record_type`
        folders = {source.partitions: source for source in sources}
        self._entries = dict(zip(folders, self._encode_values([*folders.values()]), strict=True))

    def _encode_values(self, sources: Sequence[Source]) -> Iterator[bytes]:
        """Encode the values of the folders of each file, as entries of a serialized map of features."""
        rows = pa.RecordBatch.from_arrays([pa.nulls(len(sources))], [""]).select([])
        values = self._columns.add_to(rows, sources, pa.schema(self._columns.fields))
        file, engine = io.BytesIO(), get_engine()
        write(values, file, WriteOptions(embed_schema=False, float64="error", threads=1))
        data = np.frombuffer(file.getvalue(), np.uint8)
        frames, _ = engine.scan(data)
        begins, sizes = _features(data, frames.starts, frames.lengths)
        for start, begin, size in zip(frames.starts, begins, sizes, strict=True):
            yield data[start + begin : start + begin + size].tobytes()

    def check(self, data: Array, walker: BlockWalker, source: Source) -> None:
        """Raise an error if a record of `data`, at which the walker is, has such a feature or is not an Example."""
        decoder = get_engine().decoder(self._plan)
        fault = decoder.feed(data).fault
        if fault is not None:
            raise _no_example(walker.fault_error(fault))
        self._counts += decoder.counts
        self._counted += len(data)
        if self._counted > _VERDICT_BYTES:
            self.check_record_type()
        clashing_names = {name for name, _ in decoder.new_names} & set(self._columns.names)
        if clashing_names:
            rows = {column.name: column.first_row for column in decoder.take() if column.first_row >= 0}
            try:
                _refuse(self._columns, sorted(clashing_names), [source, *self._sources])
            except SchemaError as error:
                row = rows.get(error.feature or "")
                error.path, error.record = source.path, None if row is None else walker.record + row
                raise

    def check_record_type(self) -> None:
        """Raise DecodeError if the records so far are another message; the first verdict stands."""
        if not self._is_decided:
            self._is_decided = True
            error = self._counts.not_examples(self._sources[0].path)
            if error is not None:
                raise _no_example(error)

    def add_to(self, frames: Frames, source: Source) -> Frames:
        """Add the values of the folders of a file to its records.

        Raises
        ------
        EncodeError
            A record would be too large.
        """
        entries = np.frombuffer(self._entries[source.partitions], np.uint8)
        if not len(entries):
            return frames
        data, sizes = frames
        starts, lengths = np.cumsum(sizes) - sizes + FrameHeader.BYTES, sizes - FrameHeader.FRAME_BYTES
        begins, feature_lengths = _features(data, starts, lengths)
        has_features = begins >= 0
        tags, tag_sizes = _tagged_lengths(feature_lengths + len(entries))
        if (tag_sizes + len(entries) + lengths).max(initial=0) > LIMITS.MAX_RECORD_BYTES:
            reason = LIMITS.too_large("a record with the features of its folders")
            raise EncodeError(reason, path=source.path, hint=_DROP, hint_cli=_DROP_CLI)
        memory = np.concatenate([data, entries, tags.ravel()])
        at_tags = len(data) + len(entries) + np.arange(len(sizes)) * tags.shape[1]
        at_entries, entry_sizes = np.full(len(sizes), len(data)), np.full(len(sizes), len(entries))
        # A payload becomes: tag and new length, its features, the features of the folder, the rest. A payload that does
        # not begin with features gets a second set at its end, which parsers merge with the first.
        rest_starts = np.where(has_features, begins + feature_lengths, 0)
        extents = [
            (np.where(has_features, at_tags, starts), np.where(has_features, tag_sizes, lengths)),
            (np.where(has_features, starts + begins, at_tags), np.where(has_features, feature_lengths, tag_sizes)),
            (at_entries, entry_sizes),
            (starts + rest_starts, np.where(has_features, lengths - rest_starts, 0)),
        ]
        where, how_many = (np.stack(column, axis=1).astype(np.int64).ravel() for column in zip(*extents, strict=True))
        framed = get_engine().frame_extents(memory, where, how_many, len(extents))
        return framed, how_many.reshape(-1, len(extents)).sum(axis=1) + FrameHeader.FRAME_BYTES


def _no_example(error: TFRecordError) -> TFRecordError:
    error.advice = f"only tf.train.Examples can have features of folders; {_DROP}"
    return error


def _features(data: Array, starts: Array, lengths: Array) -> tuple[Array, Array]:
    """Find the features in each payload that begins with them: offset and size; −1 and 0 in other payloads.

    Lengths of more than five bytes, which no writer makes, do not count.
    """
    begins, sizes = np.full(len(starts), -1, np.int64), np.zeros(len(starts), np.int64)
    rows = np.flatnonzero(lengths > 0)
    rows = rows[data[starts[rows]] == _FEATURES]
    values = np.zeros(len(starts), np.int64)
    for position in range(_MOST_VARINT_BYTES):
        rows = rows[lengths[rows] > 1 + position]
        digits = data[starts[rows] + 1 + position].astype(np.int64)
        values[rows] |= (digits & 0x7F) << (7 * position)
        ended = rows[(digits < 0x80)]
        ended = ended[2 + position + values[ended] <= lengths[ended]]
        begins[ended], sizes[ended] = 2 + position, values[ended]
        rows = rows[digits >= 0x80]
    return begins, sizes


def _tagged_lengths(lengths: Array) -> tuple[Array, Array]:
    """Encode the tag of features and a length as rows of bytes, with the number of bytes that count in each."""
    shifted = lengths[:, np.newaxis] >> (7 * np.arange(_MOST_VARINT_BYTES))
    sizes = 1 + np.maximum(1, np.count_nonzero(shifted, axis=1))
    more = np.concatenate([shifted[:, 1:] > 0, np.zeros((len(lengths), 1), bool)], axis=1)
    tags = np.full((len(lengths), 1), _FEATURES, np.uint8)
    return np.concatenate([tags, ((shifted & 0x7F) | (more << 7)).astype(np.uint8)], axis=1), sizes


def _first_schema(source: Source, reading: ScanOptions) -> tuple[bool, bytes | None]:
    """Look at the first record: True if a file has one, and its embedded schema if readable."""
    if source.shard is not None and (source.shard.records == 0 or source.shard.manifest.schema is not None):
        content = source.shard.manifest.schema
        return source.shard.records > 0, content if _is_readable(content) else None
    with closing(BlockWalker.from_options(iter([source]), reading)) as walker:
        if not walker.load():  # a selection without rows has the columns of its dataset
            return False, None if source.derived is None else source.derived.schema
        content = walker.first_embedded()
        return True, content if _is_readable(content) else None


def _is_readable(content: bytes | None) -> bool:
    try:
        return content is not None and EmbeddedSchema.parse(content) is not None
    except EmbeddedSchema.Unreadable:
        return False
