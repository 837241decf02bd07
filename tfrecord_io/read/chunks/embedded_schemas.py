"""Check the embedded schemas of files against each other while the files are read."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial, reduce
from typing import NamedTuple, TypeGuard

import pyarrow as pa

from tfrecord_io.base import LIMITS, ScanOptions, printable, warn
from tfrecord_io.columns import Column, EmbeddedSchema, Schema, as_stored
from tfrecord_io.errors import DecodeError, FeatureTypeError, SchemaError, SchemaWarning, TFRecordError
from tfrecord_io.read.chunks.block_walker import BlockWalker, RecordFile
from tfrecord_io.store import Source, SourcePrefetcher, Sources


class SchemaRevision(NamedTuple):
    """A record's embedded schema that the plan does not cover."""

    embedded: EmbeddedSchema  # covers both the plan and the record
    path: str
    record: int
    offset: int
    declared: bool = False  # whether it only has the columns of a declared schema that are stored as several features

    def late_error(self) -> SchemaError:
        """The error if rows were already delivered under the plan."""
        at_once, at_once_cli = "read everything at once with read_table", "read everything at once in Python"
        error = partial(SchemaError, path=self.path, record=self.record, offset=self.offset)
        if self.declared:
            reason = "its embedded schema says that the column is stored as several features, unlike in files before"
            advice = f"declare it with encoding={Column.NESTED!r}, or {at_once}"
            advice_cli = f"declare its encoding as {Column.NESTED!r} by --type, or {at_once_cli}"
            return error(reason, feature=self.embedded.schema.names[-1], hint=advice, hint_cli=advice_cli)
        reason = "its embedded schema has more columns or other types than the schema that was fixed when reading began"
        advice = f"pass schema= with all columns, or {at_once}"
        return error(reason, hint=advice, hint_cli=f"declare the other columns by --type, or {at_once_cli}")

    def warn_if_late(self) -> None:
        """Warn if the embedded schema is used although the file's first record does not carry it."""
        if self.record > 0:
            reason = f"the embedded schema was found in record {self.record}, not in the first"
            warn(f"{printable(self.path)}: {reason}; it is used", SchemaWarning)


class EmbeddedSchemaCheck:
    """Checks the embedded schemas that decoders find; shared by threads.

    With `obey`, types and columns are those that are embedded; else a schema was declared, or inference requested. The
    plan was made from the `governing` one. Columns of a `declared` schema, of which `selects` says which are read, may
    be stored as several features.
    """

    def __init__(
        self,
        obey: bool,
        governing: EmbeddedSchema | None = None,
        declared: Schema | None = None,
        selects: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self.obey, self.governing, self.declared, self.selects = obey, governing, declared, selects
        self._accepted: dict[bytes, pa.Schema] = {}  # by content
        self._unreadable: set[bytes] = set()
        self._as_declared: set[bytes] = set()  # which say of no declared column that it is stored otherwise
        self._by_path: dict[str, pa.Schema] = {}  # what each file's record 0 carries
        self._paths: set[str] = set()  # of the files that carry a readable schema
        self._index_differs = False
        self._lock = threading.Lock()
        if governing is not None and governing.content is not None:
            self._accepted[governing.content] = governing.schema

    def check(self, path: str, record: int, offset: int, content: bytes) -> SchemaError | SchemaRevision | None:
        """Check the embedded schema that a record carries; None if the plan covers it.

        Returns a SchemaError if the schema contradicts the governing schema or the one of the file's first record, and
        a SchemaRevision if it has columns that the governing schema lacks.
        """
        if not self.obey:
            return self._compare_stored_form(path, record, offset, content)
        with self._lock:
            schema = self._accepted.get(content)
            if schema is None or (record > 0 and self._by_path.get(path, schema) is not schema):
                embedded = self._unpack(path, record, content)
                if embedded is None:
                    return None
                self._paths.add(path)
                verdict = self._compare(path, record, offset=offset, embedded=embedded, content=content)
                if verdict is not None:
                    return verdict
                schema = self._accepted.setdefault(content, embedded.schema)
                if self.governing is not None and _has_other_index(schema, self.governing.schema):
                    self._index_differs = True
            self._paths.add(path)
            if record == 0:
                self._by_path[path] = schema
            return None

    def index_is_in(self, paths: Collection[str]) -> bool:
        """True if the governing index is in these files, read from their first record on, and in all others."""
        with self._lock:
            return not self._index_differs and self._paths.issuperset(paths)

    def is_foreign(self, path: str | None) -> bool:
        """True if a file has been read without finding an embedded schema, so that another file's schema governs it."""
        with self._lock:
            return self.governing is not None and path not in self._paths and path != self.governing.path

    def is_of_foreign_feature(self, error: Exception) -> TypeGuard[TFRecordError]:
        """True if an error names a feature that the governing schema lacks, in a file without an embedded schema.

        A column of the null type, of which no value was written, has no type yet either.
        """
        if not isinstance(error, TFRecordError) or error.feature is None or not self.is_foreign(error.path):
            return False
        assert self.governing is not None
        fields = {field.name: field.type for field in self.governing.schema}
        is_unknown = type(error) is SchemaError and error.feature not in fields
        is_untyped = isinstance(error, FeatureTypeError) and pa.types.is_null(fields.get(error.feature, pa.int64()))
        return is_unknown or is_untyped

    def name_governing_file(self, error: Exception) -> None:
        """Make an error about a feature of a file without an embedded schema name the file whose schema applies."""
        is_about_feature = isinstance(error, SchemaError | DecodeError) and error.feature is not None
        if isinstance(error, TFRecordError) and is_about_feature and self.is_foreign(error.path):
            assert self.governing is not None
            origin = printable(self.governing.origin(error.feature or ""))
            reason = f"this file has no embedded schema, so that of {origin} applies"
            hint, hint_cli = (text and f"{reason}: {text}" for text in (error.hint, error.hint_cli))
            error.set_hint(hint or reason, hint_cli)

    def _compare_stored_form(
        self, path: str, record: int, offset: int, content: bytes
    ) -> SchemaError | SchemaRevision | None:
        """Check how declared columns are stored; a revision has only those that are stored as several features."""
        with self._lock:
            if self.declared is None or content in self._as_declared:
                return None
            try:
                stored = Schema.parse(EmbeddedSchema.parse(content).schema)
            except (EmbeddedSchema.Unreadable, SchemaError):  # what is declared is read without it
                stored = Schema()
            try:
                stored_schema = as_stored(self.declared, stored, self.selects)
            except SchemaError as error:
                error.path, error.record, error.offset = path, record, offset
                return error
            if stored_schema == self.declared:
                self._as_declared.add(content)
                return None
        declared_fields = set(self.declared)
        composed = sorted(
            (f for f in stored_schema if (f.encoding in (Column.NESTED, Column.JSON))),
            key=lambda f: f not in declared_fields,
        )
        schema = pa.schema([replace(f, column=f.feature).to_arrow() for f in composed])
        return SchemaRevision(EmbeddedSchema(schema, {}, path), path, record, offset, declared=True)

    def _unpack(self, path: str, record: int, content: bytes) -> EmbeddedSchema | None:
        try:
            return EmbeddedSchema.parse(content, path)
        except EmbeddedSchema.Unreadable as error:
            if content not in self._unreadable:
                self._unreadable.add(content)
                where = f"{printable(path)}: record {record}"
                reason = f"its embedded schema cannot be used ({error.reason})"
                warn(f"{where}: {reason}; types are inferred from the values", SchemaWarning)
            return None

    def _compare(
        self, path: str, record: int, offset: int, embedded: EmbeddedSchema, content: bytes
    ) -> SchemaError | SchemaRevision | None:
        first = self._by_path.get(path)
        if record > 0 and first is not None and not embedded.has_types(first):
            return SchemaError(
                "it carries an embedded schema that differs from that of the file's first record",
                path=path,
                record=record,
                offset=offset,
                hint="read the file with schema='infer', or read the files it was merged from one by one",
                hint_cli="read the files it was merged from one by one",
            )
        if self.governing is None:
            return SchemaRevision(embedded, path, record, offset)
        if _digest(content) in self.governing.united:
            return None

        merged = self.governing.merge(embedded)
        return None if merged is self.governing else SchemaRevision(merged, path, record, offset)


def _has_other_index(schema: pa.Schema, other: pa.Schema) -> bool:

    return EmbeddedSchema.index_levels(schema) != EmbeddedSchema.index_levels(other)


def schema_of_empty(sources: Sequence[Source]) -> EmbeddedSchema | None:
    """The schema in the manifest of a dataset without records, as no record carries it; None for other sources."""
    if Sources.of(sources).stated_records:
        return None
    shards = [source.shard for source in sources if source.shard is not None]
    if not shards or len(shards) < len(sources) or any(shard.records for shard in shards):
        return None
    contents = {shard.manifest.schema for shard in shards}
    if len(contents) != 1 or None in contents:
        return None
    try:
        return EmbeddedSchema.parse(contents.pop() or b"", shards[0].manifest.path)
    except EmbeddedSchema.Unreadable as error:
        warn(f"the schema in the manifest cannot be used ({error.reason})", SchemaWarning)
        return None


def unite_embedded(embedded: EmbeddedSchema | None, contents: Iterable[tuple[bytes, str]]) -> EmbeddedSchema | None:
    """The schema that covers `embedded` and others, given by their contents and the paths of their files.

    One that cannot be read is ignored: that is reported where the file is read.
    """

    schemas = [] if embedded is None else [embedded]
    seen = {None if embedded is None else embedded.content}
    for content, path in contents:
        if content not in seen:
            seen.add(content)
            with suppress(EmbeddedSchema.Unreadable):
                schemas.append(EmbeddedSchema.parse(content, path))
    if len(schemas) < 2:
        return schemas[0] if schemas else None
    united = schemas
    while len(united) > 1:  # in pairs: to join many categories with one schema after the other takes quadratic time
        united = [*map(EmbeddedSchema.merge, united[::2], united[1::2]), *united[len(united) // 2 * 2 :]]
    covered = frozenset(_digest(schema.content) for schema in schemas if schema.content is not None)
    if united[0].conflicts:  # each names the first file that differs from the files before
        return reduce(EmbeddedSchema.merge, schemas)
    return united[0]._replace(united=united[0].united | covered)


def _digest(content: bytes) -> bytes:
    from hashlib import blake2b  # which loads OpenSSL

    return blake2b(content, digest_size=16).digest()


def first_contents(sources: Sequence[Source], options: ScanOptions) -> Iterator[tuple[bytes, str]]:
    """The embedded schemas of files, as stated without reading them or else of their first record, and the paths.

    Of remote files, the first bytes are requested side by side.
    """
    if (stated := _stated_of_all(Sources.of(sources))) is not None:
        yield stated
        return
    unknown = [source for source in sources if source.stated_schema is None and _has_first_record(source)]
    recover = options.damage.goes_on
    open_file = partial(RecordFile, compression=options.compression, block_bytes=LIMITS.head_bytes, recover=recover)
    with SourcePrefetcher(unknown, heads=True) as prefetched:
        for source in sources:
            content, path = source.stated_schema or (None, source.path)
            if content is None and _has_first_record(source):
                with (
                    suppress(TFRecordError, OSError),
                    closing(BlockWalker(iter([next(prefetched)]), open_file, check_crc=options.check_crc)) as walker,
                ):
                    content = walker.first_embedded()
            if content is not None:
                yield content, path


def _stated_of_all(sources: Sources) -> tuple[bytes, str] | None:
    """The schema that the manifest of a large dataset states for all files, and the path of the manifest."""
    for manifest in sources.manifest_versions if sources.are_of_manifest else ():
        if manifest is not None and manifest.schema is not None:
            return manifest.schema, manifest.path
    return None


def _has_first_record(source: Source) -> bool:
    """True if the source begins with the first record of its file, and can be opened once more."""
    return source.begins_file and source.can_be_read_again and source.size != 0
