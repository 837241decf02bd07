"""Save the schema of files that carry none next to them: what `tfrecord_io.Schema.save` and ``tfr schema --save`` do.

Tests: tests/read/test_saved_schema.py and tests/apps/cli/test_schema_text.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from tfrecord_io.base import ScanOptions, and_more, printable
from tfrecord_io.columns import Schema, plan_columns
from tfrecord_io.errors import SchemaError, TFRecordError
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import first_contents
from tfrecord_io.read.saved_schema import (
    FORMAT,
    VERSION,
    Fingerprint,
    has_named_types,
    place_of_schema,
    sample_features,
)
from tfrecord_io.store import ColumnFolder, FileName, FileSystem, Kind, Location, Source, open_output, resolve_inputs

_FILES, _RECORDS_OF_FILE = 16, 100  # that a fingerprint is made of
_MOST_NAMED = 4


def save(schema: Schema, source: Any) -> str:
    """Save a schema for the files of a path or a dataset; see `Schema.save`."""
    return save_schema(schema, CallSource(source).one_path("save"), options_from_call(ScanOptions, Schema.save, source))


def save_schema(schema: Schema, path: str | os.PathLike[str], options: ScanOptions) -> str:
    """Save a schema for the files of a path; the path of the saved schema."""
    storage = options.storage
    sources = resolve_inputs(path, storage)
    if any(source.is_file_object or source.pipe is not None for source in sources):
        raise ValueError(f"'{printable(sources[0].path)}' is read once: a schema is saved for files with names")
    embedded = next(first_contents(sources, options), None)
    if embedded is not None:
        reason = f"'{printable(embedded[1])}' states the schema of the files, which goes before a saved one"
        raise SchemaError(
            reason,
            hint="pass schema= or schema_overrides= to calls",
            hint_cli="commands such as tfr convert take --type",
        )
    fingerprint = _fingerprint(sources, options)
    features = {name for _, name in fingerprint.kinds}
    if features.isdisjoint(column.name for column in plan_columns(schema).columns):
        shown = ", ".join(f"'{printable(name)}'" for name in sorted(features)[:_MOST_NAMED])
        reason = (
            f"no record has a feature of the schema; the features are {shown}{and_more(len(features) - _MOST_NAMED)}"
        )
        raise SchemaError(reason, path=sources[0].path)
    fs, name = Location.of(path, storage)
    target = fs.display_path(_target(fs, name, sources))
    described = json.loads(schema.to_json())
    for field, entry in zip(schema.fields, described["fields"], strict=True):
        if not has_named_types({"fields": [entry]}):
            reason = f"its type, {field.type_name}, has no name"
            raise SchemaError(reason, feature=field.feature, got=str(field.type), hint="leave the column out")
    document = {"format": FORMAT, "version": VERSION, "schema": described, "features": fingerprint.to_json()}
    with open_output(target, storage) as output:
        output.write((json.dumps(document, indent=1) + "\n").encode())
    return target


def _fingerprint(sources: Sequence[Source], options: ScanOptions) -> Fingerprint:
    """The fingerprint of the first records of some files, which are spread over all of them."""
    chunks: list[DecodedChunk] = []
    filled = [source for source in sources if source.size != 0]
    step = max(1, -(-len(filled) // _FILES))
    for source in filled[::step]:
        reader = ChunkReader([source], options.changed(threads=1, progress=False), ahead=False)
        try:
            chunks += sample_features(reader, options, _RECORDS_OF_FILE)
        finally:
            reader.close()
        if chunks and isinstance(error := chunks[-1].error, TFRecordError | OSError):
            raise error
    if not any(chunk.rows for chunk in chunks):
        raise SchemaError("no records, so it cannot be known what the schema is of", path=sources[0].path)
    return Fingerprint.from_chunks(chunks)


def _target(fs: FileSystem, name: str, sources: Sequence[Source]) -> str:
    """The name of the file for the schema of these files, to which `name` was resolved."""
    names = [source.location[1] for source in sources]
    places = [*dict.fromkeys(map(place_of_schema, sources))]
    below = f"{name.rstrip('/')}/" if name.rstrip("/") else name
    if names != [name] and all(each.startswith(below) for each in names):
        return below + FileName.saved_schema()
    if len(places) == 1:
        ((parent, stem),) = places
        return parent + FileName.saved_schema(stem)
    roots = {next(iter(ColumnFolder.roots_of(parent)), parent) for parent, _ in places}
    if len(roots) == 1:
        (root,) = roots
        others = [entry for entry in fs.listing(root) if not entry.directory]
        records = {entry.name for entry in others if FileName.parse(entry.basename).kind is Kind.RECORDS}
        if records <= {*names} or any(parent != root for parent, _ in places):
            return root + FileName.saved_schema()
    hint = "save it for their directory, or for one file or the shards of one name at a time"
    raise ValueError(f"these {len(names)} files are neither a directory nor shards of one name: {hint}")
