"""The schema in force: what files carry with them, checked against each other as they are read."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tfrecord_io.errors import SchemaError, SchemaWarning, printable, warn
from tfrecord_io.schema.embedded import Embedded, EmbeddedSchemaUnreadable, equal_types, unpack
from tfrecord_io.storage.read.source import Source


@dataclass(frozen=True)
class EmbeddedSchema:
    """An embedded schema that governs what is read, and the file it came from."""

    schema: pa.Schema
    dictionaries: Mapping[str, pa.Array]
    path: str


class LateSchema(Exception):
    """An embedded schema was met that the plan in force does not cover: read again under `governing`."""

    def __init__(self, governing: EmbeddedSchema, record: int) -> None:
        super().__init__()
        self.governing = governing
        self.record = record

    def too_late(self) -> SchemaError:
        """What to raise where rows were given already."""
        return SchemaError(
            "its embedded schema says more than the schema that was fixed when reading began",
            path=self.governing.path,
            record=self.record,
            advice="pass schema= with all columns, or read the whole with read_table",
        )


@dataclass
class EmbeddedSchemaCheck:
    """Judge of the embedded schemas that a decoder meets; used by several threads.

    Parameters
    ----------
    obey : bool
        False: a schema was declared or inference asked for; what files carry is passed over.
    """

    obey: bool
    governing: EmbeddedSchema | None = None
    _known: set[bytes] = field(default_factory=set)  # contents that were accepted
    _of_file: dict[str, pa.Schema] = field(default_factory=dict)  # by path: what record 0 carries
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def meet(self, path: str, record: int, offset: int, content: bytes) -> None:
        """Judge the copy that a record carries.

        Raises
        ------
        SchemaError
            It contradicts the one in force.
        LateSchema
            It says more than the one in force.
        """
        if not self.obey:
            return
        with self._lock:
            if content in self._known and (record > 0 or path in self._of_file):
                return
            embedded = self._unpack(path, record, content)
            if embedded is None:
                return
            self._check(path, record, offset, embedded)
            self._known.add(content)
            if record == 0:
                self._of_file[path] = embedded.schema

    def _unpack(self, path: str, record: int, content: bytes) -> Embedded | None:
        try:
            return unpack(content)
        except EmbeddedSchemaUnreadable as error:
            if content not in self._known:
                self._known.add(content)
                where = f"{printable(path)}: record {record}"
                text = (
                    f"{where}: its embedded schema cannot be used ({error.reason}); types are inferred from the values"
                )
                warn(text, SchemaWarning)
            return None

    def _check(self, path: str, record: int, offset: int, embedded: Embedded) -> None:
        of_file = self._of_file.get(path)
        if record > 0 and of_file is not None and not equal_types(of_file, embedded.schema):
            raise SchemaError(
                "it carries an embedded schema that differs from that of the file's first record",
                path=path,
                record=record,
                offset=offset,
                advice="read the file with schema='infer', or the parts it was made of one by one",
            )
        found = EmbeddedSchema(embedded.schema, embedded.dictionaries, path)
        if self.governing is None:
            raise LateSchema(found, record)
        merged = merge(self.governing, found)
        if merged is not self.governing:
            raise LateSchema(merged, record)


def schema_of_empty(sources: Sequence[Source]) -> Embedded | None:
    """What the manifest of a dataset without records carries, as no record can; None where that is not what is read."""
    shards = [source.shard for source in sources]
    if not shards or any(shard is None or shard.records for shard in shards):
        return None
    contents = {shard.manifest.schema for shard in shards if shard is not None}
    if len(contents) != 1 or None in contents:
        return None
    try:
        return unpack(contents.pop() or b"")
    except EmbeddedSchemaUnreadable as error:
        warn(f"the schema in the manifest cannot be used ({error.reason})", SchemaWarning)
        return None


def merge(a: EmbeddedSchema, b: EmbeddedSchema) -> EmbeddedSchema:
    """The schema that covers both: `a` itself where it says all that `b` says.

    Compared by names and types: the null type unifies with any, a missing column is null.

    Raises
    ------
    SchemaError
        A column has two types; both files are named.
    """
    theirs_too = set(b.schema.names)
    fields = {
        f.name: f if f.name in theirs_too else f.with_nullable(True) for f in a.schema
    }  # null in the file that lacks it
    changed = any(f.nullable != a.schema.field(f.name).nullable for f in fields.values())
    for theirs in b.schema:
        mine = fields.get(theirs.name)
        if mine is None or (pa.types.is_null(mine.type) and not pa.types.is_null(theirs.type)):
            fields[theirs.name] = theirs.with_nullable(True)
            changed = True
        elif not pa.types.is_null(theirs.type) and not equal_types(pa.schema([mine]), pa.schema([theirs])):
            raise SchemaError(
                f"its type is {mine.type} in {printable(a.path)} and {theirs.type} in {printable(b.path)}",
                path=b.path,
                feature=theirs.name,
                expected=str(mine.type),
                got=str(theirs.type),
                advice="read the files apart, or pass schema=",
            )
    dictionaries = dict(a.dictionaries)
    for name, values in b.dictionaries.items():
        joined = _join_categories(dictionaries.get(name), values)
        changed |= joined is not dictionaries.get(name)
        dictionaries[name] = joined
    return (
        EmbeddedSchema(pa.schema(list(fields.values()), metadata=a.schema.metadata), dictionaries, a.path)
        if changed
        else a
    )


def _join_categories(mine: pa.Array | None, theirs: pa.Array) -> pa.Array:
    """`mine`, and behind them those of `theirs` that are new."""
    if mine is None:
        return theirs
    joined = pa.concat_arrays([mine, theirs.cast(mine.type)]).unique()
    return mine if len(joined) == len(mine) else joined
