"""Conversion of one source file after the other, which goes on after a stop: ``convert(resume=True)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from tfrecord_io.file_formats.tables.table_source import TableSource
from tfrecord_io.options import WriteOptions, stops
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.reader import open_as_it_is
from tfrecord_io.read.scan import Scan
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.read.source import Source, total
from tfrecord_io.storage.write.resume_journal import check_version, version_of
from tfrecord_io.typing import ProgressLike
from tfrecord_io.write.resumable import ResumableWriter
from tfrecord_io.write.writer import WriteReport

# Keywords that a later call may change: the parts do not depend on them.
_WITHOUT_EFFECT = {"overwrite", "progress", "threads", "batch_size", "batch_bytes", "allow_missing_shards"}
_STORAGE = {"filesystem", "storage_options"}
_OF_ALL_FILES = ("limit", "offset")


class FilesOfRows(Protocol):
    """Source files with one schema, which are read each by itself."""

    @property
    def sources(self) -> Sequence[Source]: ...

    @property
    def schema(self) -> pa.Schema: ...

    def rows(self, sources: Sequence[Source], meter: ProgressMeter) -> Any:
        """A context manager with the stream of the rows of some of the files."""


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """TFRecord files, under the schema of a scan."""

    scan: Scan

    @property
    def sources(self) -> Sequence[Source]:
        return self.scan.sources

    @property
    def schema(self) -> pa.Schema:
        return self.scan.schema

    @contextmanager
    def rows(self, sources: Sequence[Source], meter: ProgressMeter) -> Iterator[Any]:
        with open_as_it_is(self.scan.over(sources, progress=meter.part())) as reader:
            yield reader


def convert_by_file(
    files: FilesOfRows | TableSource,
    target: Any,
    options: WriteOptions,
    settings: Mapping[str, str],
    progress: ProgressLike,
    changed: Callable[[Any], Any],
) -> WriteReport:
    """Convert each file to a shard, but for those that an earlier call has converted.

    Parameters
    ----------
    files : FilesOfRows
    target, options
        Of the dataset to write.
    settings : mapping of str to str
        See `settings_of`.
    progress : bool or callable
    changed : callable
        Takes a stream and returns the rows to write.
    """
    versions = [version_of(source) for source in files.sources]
    size = total(source.size for source in files.sources)
    with (
        ResumableWriter.opened(target, options, settings, files.schema, versions) as writer,
        ProgressMeter(progress, size, "bytes") as meter,
    ):
        if writer.published is not None:
            meter.advance(size or 0)
            return writer.published
        parts = []
        for task, (source, version) in enumerate(zip(files.sources, versions, strict=True)):
            part = writer.finished_part(task, version)
            if part is not None:
                meter.advance(source.size or 0)
            else:
                with files.rows([source], meter) as stream:
                    part = writer.write_part(task, [changed(stream)])
                check_version(source, version)
                part = writer.add(part, version)
            parts.append(part)
        return writer.commit(parts)


def settings_of(keywords: Mapping[str, Any]) -> dict[str, str]:
    """What the keywords of a conversion say about the content of its parts, as text that is equal in other processes.

    Raises
    ------
    TypeError, ValueError
        A keyword concerns all files together.
    """
    for name in _OF_ALL_FILES:
        if keywords.get(name):
            raise TypeError(f"{name}= cannot be used with resume=True: it counts the rows of all files")
    if stops(keywords.get("on_error")):
        raise ValueError(
            "on_error='stop' cannot be used with resume=True: it would leave out all files after the first"
        )
    names = keywords.keys() - _WITHOUT_EFFECT - _STORAGE
    given = {name: keywords[name] for name in sorted(names) if keywords[name] is not None}
    return {name: _schema_text(value) if name == "schema" else _text(value) for name, value in given.items()}


def _schema_text(schema: Any) -> str:
    return schema if isinstance(schema, str) else Schema.parse(schema).to_json(indent=None)


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)}: {_text(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, str):
        return repr(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(" at 0x[0-9a-f]+", "", str(value))
