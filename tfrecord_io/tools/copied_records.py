"""The records of files as whole frames, to be copied, without the embedded schemas, which go into each copy's start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from tfrecord_io.arrow.output.merged_schema import EmbeddedSchema, merge
from tfrecord_io.engine.contract import Array
from tfrecord_io.engine.contract import Frames as Extents
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import SchemaWarning, printable, warn
from tfrecord_io.format.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.schema.embedded import EmbeddedSchemaUnreadable, field_bytes, pack, unpack
from tfrecord_io.storage.read.prefetch import SourcePrefetcher
from tfrecord_io.storage.read.source import Source
from tfrecord_io.tools.intact_records import embedded_content

Frames = tuple[Array, Array]
"""Whole frames, one after another, and the bytes of each."""


class CopiedRecords:
    """The records of files, in order; every checksum is checked.

    Embedded schemas are taken off the records that carry them.

    Attributes
    ----------
    schema : bytes or None
        The content of the embedded schema that covers those of all files; None if a file with records has none.
    columns : tuple of str
        Its columns.
    united : EmbeddedSchema or None
        The schema that covers the embedded schemas of the files that have one.
    """

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self.schema: bytes | None = None
        self.columns: tuple[str, ...] = ()
        self.united: EmbeddedSchema | None = None
        self._fields: tuple[bytes, ...] = ()  # the embedded schemas of the files, as they are stored
        self._find_schema()

    def _find_schema(self) -> None:
        """Unite the embedded schemas.

        Raises
        ------
        SchemaError
            A column has two types; both files are named.
        """
        contents: dict[bytes, str] = {}
        without: str | None = None
        for source in self._sources:
            found, content = _first_schema(source)
            if content is not None:
                contents.setdefault(content, source.path)
            elif found:
                without = without or source.path
        united: EmbeddedSchema | None = None
        for content, path in contents.items():
            other = EmbeddedSchema.of(content, path)
            united = other if united is None else merge(united, other)
        if united is None:
            return
        self.united = united
        self._fields = tuple(map(field_bytes, contents))
        if without is not None:
            reason = f"no schema is embedded, as {printable(without)} has none and other files have one"
            warn(f"{reason}; types will be inferred from the values", SchemaWarning)
            return
        self.columns = tuple(united.schema.names)
        self.schema = next(iter(contents)) if len(contents) == 1 else pack(united.schema, united.dictionaries)

    def frames(self, progress: ProgressMeter | None = None) -> Iterator[Frames]:
        """Yield all records; the data is valid until the next step.

        Raises
        ------
        CorruptRecordError, TruncatedRecordError, CompressionError
            A file is damaged.
        """
        engine = get_engine()
        with (
            SourcePrefetcher(list(self._sources)) as prefetched,
            closing(BlockWalker(prefetched, progress=progress)) as walker,
        ):
            while walker.load():
                error = walker.error
                if error is None:
                    frames, fault = walker.frames(engine, check_crc=True)
                    error = None if fault is None else walker.fault_error(fault)
                    if len(frames.starts):
                        sizes = frames.lengths + FRAME_BYTES
                        yield self._without_schemas(walker.data[: frames.consumed], sizes)
                    walker.advance(len(frames.starts), frames.consumed)
                if error is not None:
                    raise walker.fail(error)
                walker.read_on()

    def _without_schemas(self, data: Array, sizes: Array) -> Frames:
        ends = np.cumsum(sizes)
        parts: list[Array] = []
        begin, sizes = 0, sizes.copy()
        for index, field in self._with_schema(data, ends - sizes, sizes):
            start, end = int(ends[index] - sizes[index]), int(ends[index])
            payload = data[start + HEADER_BYTES + len(field) : end - FOOTER_BYTES]
            bare = np.frombuffer(get_engine().frame([payload]), np.uint8)
            parts += [data[begin:start], bare]
            begin, sizes[index] = end, len(bare)
        return (np.concatenate([*parts, data[begin:]]) if parts else data), sizes

    def _with_schema(self, data: Array, starts: Array, sizes: Array) -> Iterator[tuple[int, bytes]]:
        """The records that begin with an embedded schema, and its field."""
        if not self._fields:
            return
        tag = np.frombuffer(_common_start(self._fields), np.uint8)
        candidates = np.flatnonzero(sizes >= FRAME_BYTES + len(tag))
        for i, byte in enumerate(tag):
            candidates = candidates[data[starts[candidates] + HEADER_BYTES + i] == byte]
        for index in candidates.tolist():
            payload = int(starts[index]) + HEADER_BYTES
            length = int(sizes[index]) - FRAME_BYTES
            for field in self._fields:
                if length >= len(field) and data[payload : payload + len(field)].tobytes() == field:
                    yield index, field
                    break


def _common_start(fields: Sequence[bytes]) -> bytes:
    """The bytes with which all fields begin: at least the tag."""
    least, most = min(fields), max(fields)
    size = next((i for i, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), len(least))
    return least[: min(size, 16)]


def _first_schema(source: Source) -> tuple[bool, bytes | None]:
    """Whether a file has records, and the content of the embedded schema of the first one, if it is readable."""
    if source.shard is not None and (source.shard.records == 0 or source.shard.manifest.schema is not None):
        content = source.shard.manifest.schema
        return source.shard.records > 0, content if _is_readable(content) else None
    engine = get_engine()
    with closing(BlockWalker(iter([source]))) as walker:
        while walker.load():
            if walker.error is not None:
                raise walker.fail(walker.error)
            frames, fault = walker.frames(engine, 1)
            if len(frames.starts):
                content = embedded_content(walker.data[: frames.consumed])
                return True, content if _is_readable(content) else None
            if fault is not None:
                raise walker.fail(walker.fault_error(fault))
            walker.read_on()
    return False, None


def _is_readable(content: bytes | None) -> bool:
    try:
        return content is not None and unpack(content) is not None
    except EmbeddedSchemaUnreadable:
        return False


def selected(frames: Frames, indices: Any) -> Frames:
    """Some of the records, in the order of their `indices`."""
    data, sizes = frames
    starts, chosen = (np.cumsum(sizes) - sizes)[indices], sizes[indices]
    return get_engine().payloads(data, Extents(starts, chosen, 0)), chosen  # joins whole frames as if payloads
