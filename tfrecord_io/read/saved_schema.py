"""Schemas saved beside files that carry none: found, and compared with the first records.

``_SCHEMA.json`` is of all files of a directory and of its folders of columns, ``_SCHEMA-train.json`` of the shards of
``train``, ``_SCHEMA-a.tfrecord.json`` of one file. The nearest and most exact one applies. It has a `Fingerprint` of
the records that it was made for; records that do not fit it are read as if it were not there, with a warning.
`tfrecord_io.read.saving_schema` writes it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from tfrecord_io.base import MIB, ScanOptions, and_more, printable
from tfrecord_io.bytes import ColumnBuffers, Kind, Plan, RecordType, Text
from tfrecord_io.columns import CONVERSION_ERRORS, Column, Schema
from tfrecord_io.errors import ReplacedError, SchemaError
from tfrecord_io.read.chunks.chunk import DecodedChunk, DecodeSettings, plan_limits
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.record_checks import warn_of_schema
from tfrecord_io.store import ColumnFolder, Entry, FileName, FileSystem, Source

FORMAT, VERSION = "tfrecord_io schema", 1
_MAX_BYTES = 16 * MIB  # as of an embedded schema
_CHECKED_RECORDS = 16  # of a read, to compare with the fingerprint
_SAMPLE_BYTES = 4 * MIB
_MOST_NAMED, _MOST_LOOKED_UP = 4, 4
_KINDS = {kind.name.lower(): kind for kind in Kind if kind is not Kind.NONE}
_PARTS = (Column.CONTEXT, Column.FEATURE_LIST)

_Feature = tuple[str, str]  # part and name


class Fingerprint(NamedTuple):
    """The features of some records: their names, their kinds, and which of them every record has.

    It detects that a feature is new, has values of another kind, or is missing in all records where every record had
    it. It does not detect other sizes, values, orders or numbers of values, nor features that only later records have;
    appending to files, compressing or moving them changes nothing.
    """

    kinds: Mapping[_Feature, frozenset[str]]  # no kind: no record has a value
    always: frozenset[_Feature]

    @classmethod
    def from_chunks(cls, chunks: Iterable[DecodedChunk]) -> Fingerprint:
        """The features of decoded records."""
        kinds: dict[_Feature, set[str]] = {}
        always: set[_Feature] | None = None
        for chunk in chunks:
            if not chunk.rows:
                continue
            everywhere = set()
            for column in chunk.columns.values():
                feature = (Column.CONTEXT if column.steps is None else Column.FEATURE_LIST, column.name)
                present = sum(part.rows - part.null_count for part in (column, *column.others))
                if present:
                    kinds.setdefault(feature, set()).update(_kinds(column))
                if present == chunk.rows:
                    everywhere.add(feature)
            always = everywhere if always is None else always & everywhere
        return cls({feature: frozenset(names) for feature, names in kinds.items()}, frozenset(always or ()))

    def differences(self, current: Fingerprint, *, parts: Sequence[str] = _PARTS) -> list[str]:
        """The differences of the `current` records in the compared parts; empty if they fit."""
        texts = []
        for feature, kinds in current.kinds.items():
            if feature[0] not in parts:
                continue
            name = f"'{printable(feature[1])}'"
            if feature not in self.kinds:
                texts.append(f"expected no feature {name}, got {_describe(kinds)}")
            elif kinds - self.kinds[feature] and self.kinds[feature]:
                texts.append(f"expected {name} as {_describe(self.kinds[feature])}, got {_describe(kinds)}")
        missing = [feature for feature in self.kinds if feature in self.always and feature not in current.kinds]
        texts += [f"expected '{printable(name)}', got records without it" for part, name in missing if part in parts]
        return texts

    def to_json(self) -> list[dict[str, Any]]:
        """A list that JSON has, in the order of the names."""
        return [
            {"name": name, "part": part, "kinds": sorted(kinds), "always": (part, name) in self.always}
            for (part, name), kinds in sorted(self.kinds.items())
        ]

    @classmethod
    def from_json(cls, entries: Any) -> Fingerprint:
        """The fingerprint of `to_json`; ValueError, or what a wrong type raises, for anything else."""
        kinds, always = {}, set()
        for entry in entries:
            feature = (entry["part"], entry["name"])
            names = frozenset(entry["kinds"])
            if feature[0] not in _PARTS or not isinstance(feature[1], str) or not names <= _KINDS.keys():
                raise ValueError(f"{entry!r} is not a feature")
            kinds[feature] = names
            if entry["always"]:
                always.add(feature)
        return cls(kinds, frozenset(always))


def _kinds(column: ColumnBuffers) -> Iterator[str]:
    """The kinds of a column's values, in no record or in some."""
    for each in (column, *column.others):
        inner = each if each.steps is None else each.steps
        yield from (part.kind.name.lower() for part in (inner, *inner.others) if part.kind and part.value_row >= 0)


def _describe(kinds: Iterable[str]) -> str:
    return " or ".join(_KINDS[kind].description for kind in sorted(kinds)) or "no values"


class SavedSchema(NamedTuple):
    """A saved schema, its place, and the records for which it was made."""

    path: str
    schema: Schema
    fingerprint: Fingerprint
    command: str  # which writes it anew

    def fits(self, reader: ChunkReader, options: ScanOptions) -> bool:
        """True if a reader's first records are like the records of the schema; else with a warning."""
        chunks = sample_features(reader, options, _CHECKED_RECORDS)
        if not any(chunk.rows for chunk in chunks) or any(chunk.revision is not None for chunk in chunks):
            return True  # nothing to compare, or an embedded schema, which the read finds
        parts = (Column.CONTEXT,) if options.record_type == "example" else _PARTS
        texts = self.fingerprint.differences(Fingerprint.from_chunks(chunks), parts=parts)
        if texts:
            shown = "; ".join(texts[:_MOST_NAMED]) + and_more(len(texts) - _MOST_NAMED)
            reason = f"{printable(self.path)}: the saved schema is not used, as it was made for other records: {shown}"
            warn_of_schema(f"{reason}. It is written again by: {self.command}")
        return not texts


def sample_features(reader: ChunkReader, options: ScanOptions, records: int) -> list[DecodedChunk]:
    """Decode so many records, up to an error and some megabytes, with all of their features."""
    record_type = RecordType.EXAMPLE if options.record_type == "example" else RecordType.DETECT
    plan = Plan(text=Text.NO, splits=True, names_in_both=True, record_type=record_type, **plan_limits(options))
    reader.settings = DecodeSettings(plan)
    chunks: list[DecodedChunk] = []
    left, decoder = records, reader.decoder()
    while left > 0 and (chunk := reader.read(decoder, left, _SAMPLE_BYTES)) is not None:
        chunks.append(chunk)
        left -= chunk.rows
        if chunk.rows or chunk.ends_read:
            break
    return chunks


def find_saved_schema(sources: Sequence[Source]) -> SavedSchema | None:
    """The saved schema of files, or None; with a warning where files have different ones.

    It is looked for in the directory of a file, and above the folders of columns that the file is in. In a bucket that
    was listed to find the files this takes no request; else one for the first directory, and for the others only if
    that one has any. A web server is not asked.

    Raises
    ------
    SchemaError
        A saved schema is damaged; its path is that of the saved schema.
    """
    if not sources or any(source.is_file_object or source.pipe is not None for source in sources):
        return None
    folders = _Folders(lists=len(sources) > _MOST_LOOKED_UP)
    found: dict[tuple[str, str], SavedSchema | None] = {}  # by directory and name
    first: SavedSchema | None = None
    for source in sources:
        if found and first is None and source.remote is not None and source.beside is None:
            continue
        place = place_of_schema(source) if folders.may_have(source) else ("", "")
        if place in found:
            continue
        found[place] = saved = None if place == ("", "") else folders.find(source, *place)
        first = saved if len(found) == 1 else first
        if (saved and saved.schema) != (first and first.schema):
            paths = [printable(schema.path) for schema in (first, saved) if schema is not None]
            named = " and ".join(f"'{path}'" for path in paths)
            warn_of_schema(f"{named}: not used, as some of the files have another saved schema or none; pass schema=")
            return None
    return first


def place_of_schema(source: Source) -> tuple[str, str]:
    """The directory of a file, with its slash, and the name by which a schema is saved for the file."""
    parent, slash, name = source.location[1].rpartition("/")
    return parent + slash, FileName.parse(name).dataset or name


class _Folders:
    """Looks for saved schemas in directories, and reads each file once.

    If it `lists`, directories of a disk are listed, which saves a look at each name.
    """

    def __init__(self, *, lists: bool) -> None:
        self._lists = lists
        self._may_have: dict[str, bool] = {}  # by directory
        self._found: dict[str, Mapping[str, Entry]] = {}  # the saved schemas of a directory
        self._beside: dict[int, Mapping[str, Entry]] = {}  # those of a listing of a bucket
        self._read: dict[str, SavedSchema | None] = {}

    def may_have(self, source: Source) -> bool:
        """False if there is no saved schema in the directories where that of a file may be."""
        fs, name = source.location
        if not self._lists:
            return fs.can_list
        parent = name[: name.rfind("/") + 1]
        if parent not in self._may_have:
            self._may_have[parent] = fs.can_list and any(entries for _, entries in self._look(source, ()))
        return self._may_have[parent]

    def find(self, source: Source, parent: str, stem: str) -> SavedSchema | None:
        """The saved schema of a file."""
        names = [name for name in (FileName.saved_schema(stem), FileName.saved_schema()) if _is_short(name)]
        for folder, entries in self._look(source, names):
            for name in names if folder == parent else (FileName.saved_schema(),):
                entry = entries.get(folder + name)
                if entry is None or entry.directory:
                    continue
                if entry.name not in self._read:
                    self._read[entry.name] = read_saved_schema(source.location[0], entry, source)
                if (saved := self._read[entry.name]) is not None:
                    return saved
        return None

    def _look(self, source: Source, names: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Entry]]]:
        """Each directory where a schema may be, with those that it has; of a disk, if not listed, of these names."""
        fs, name = source.location
        parent = name[: name.rfind("/") + 1]
        for depth, folder in enumerate((parent, *ColumnFolder.roots_of(parent)[::-1])):
            if source.beside is not None and depth <= len(source.partitions):
                yield folder, self._in_listing(source.beside)
            elif not self._lists and fs.is_local:
                yield folder, _existing(fs, [folder + name for name in names])
            else:
                if folder not in self._found:
                    self._found[folder] = _saved_schemas_in(fs, folder, names)
                yield folder, self._found[folder]

    def _in_listing(self, beside: Mapping[str, Entry]) -> Mapping[str, Entry]:
        if id(beside) not in self._beside:
            saved = {name: entry for name, entry in beside.items() if f"/{FileName.SCHEMA_PREFIX}" in f"/{name}"}
            self._beside[id(beside)] = saved
        return self._beside[id(beside)]


def _is_short(name: str) -> bool:
    return len(os.fsencode(name)) <= FileName.MOST_BYTES


def _saved_schemas_in(fs: FileSystem, folder: str, names: Sequence[str]) -> Mapping[str, Entry]:
    """The saved schemas of a directory; of a bucket that must not be listed, those of these names."""
    prefix = folder + FileName.SCHEMA_PREFIX
    with suppress(PermissionError):
        entries = fs.beginning(prefix)
        return {entry.name: entry for entry in (fs.glob(f"{prefix}*", len(folder)) if entries is None else entries)}
    with suppress(PermissionError):
        return _existing(fs, [folder + name for name in names])
    return {}


def _existing(fs: FileSystem, names: Sequence[str]) -> Mapping[str, Entry]:
    return {entry.name: entry for entry in fs.entries(names, are_files=True) if entry is not None}


def has_named_types(document: Any) -> bool:
    """True if the types of a schema, as JSON, are names, or structs of such fields, and none is serialized."""
    return all(_is_named(entry["type"]) for entry in document["fields"])


def _is_named(type_: Any) -> bool:
    if isinstance(type_, str):
        return True
    fields = type_.get("struct", type_.get("structs"))
    return len(type_) == 1 and fields is not None and has_named_types({"fields": fields})


def _read_latest(fs: FileSystem, entry: Entry) -> bytes | None:
    """Read a file, in a store also if it was saved again since it was looked up; None if it was deleted."""
    try:
        return Source.from_entry(fs, entry).read(_MAX_BYTES)
    except (FileNotFoundError, ReplacedError):
        latest = fs.entry(entry.name, is_file=True)
        return None if latest is None else Source.from_entry(fs, latest).read(_MAX_BYTES)


def read_saved_schema(fs: FileSystem, entry: Entry, source: Source) -> SavedSchema | None:
    """Read a saved schema, which was found for a file; None if the file is of another program, or gone by now.

    SchemaError if it is damaged, or of another version.
    """
    import json  # for files with a saved schema only
    import shlex

    path = fs.display_path(entry.name)
    parent, _, name = entry.name.rpartition("/")
    command = "tfr schema "
    if name == FileName.saved_schema():
        command += shlex.quote(fs.display_path(parent) if parent else ".")
    elif FileName.of_path(source.location[1]).dataset is not None:
        stem = FileName.parse(name).dataset
        command += shlex.quote(f"{fs.display_path(parent)}/{stem}@*" if parent else f"{stem}@*")
    else:
        command += shlex.quote(source.path)
    command = printable(f"{command} --save", 1024)
    try:
        text = _read_latest(fs, entry)
        if text is None:
            return None
        if len(text) > _MAX_BYTES:
            raise ValueError(f"it has more than {_MAX_BYTES} bytes")
        document = json.loads(text)
        if isinstance(document, dict) and document.get("format") != FORMAT:
            return None
        if document["version"] != VERSION:
            raise ValueError(f"it is of version {document['version']!r}, this version reads {VERSION}")
        if not has_named_types(document["schema"]):  # a file beside data is not trusted with Arrow's own bytes
            raise ValueError("a type in it has no name")
        schema = Schema.from_json(json.dumps(document["schema"]))
        return SavedSchema(path, schema, Fingerprint.from_json(document["features"]), command)
    except (*CONVERSION_ERRORS, SchemaError) as error:
        reason = f"the saved schema is damaged ({printable(f'{type(error).__name__}: {error}', 200)})"
        hint_cli = f"write it again by: {command}; or delete it"
        raise SchemaError(
            reason, path=path, hint=f"{hint_cli}, or read with schema='infer'", hint_cli=hint_cli
        ) from error
