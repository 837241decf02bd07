"""Resumable writing of a dataset with one part for each source file.

Each source file is a task of a `DistributedWriter`. What a finished part was made of is noted in a journal next to the
dataset; a later process takes over the parts whose sources are unchanged, and whose files have the size and the
checksum that were noted. The files of the dataset appear when all parts are finished.
"""

from __future__ import annotations

import base64
import errno
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from tfrecord_io.base import (
    MessageType,
    ProgressMeter,
    Task,
    WriteOptions,
    and_more,
    cached_property,
    for_cli,
    ordered,
    printable,
    warn,
)
from tfrecord_io.bytes import Checks, FrameHeader, crc32c, get_engine
from tfrecord_io.columns import EmbeddedSchema, Rounding
from tfrecord_io.errors import TFRecordError
from tfrecord_io.store import (
    BlockReader,
    DistributedTarget,
    Location,
    Manifest,
    Output,
    Publication,
    RawFile,
    ResumeJournal,
    ShardName,
    ShardSpec,
    Source,
)
from tfrecord_io.write.distributed import WITHOUT, DistributedWriter, OpenPart, PartContent, WrittenPart, report_of
from tfrecord_io.write.schema_union import SchemaUnion
from tfrecord_io.write.writer import WriteReport

OpenRows = Callable[[Source], AbstractContextManager[Any]]
"""Opens the rows of a source as a stream of Arrow."""
_STORED = 8  # parts in a bucket, next to the one that is made; as many wait
_REST_BYTES = 8 << 10  # that are read at a time after the end of the records
_SHOWN = 60  # characters of a setting, in a message


@dataclass(frozen=True)
class ResumableWriter:
    """One writing of a dataset, which a later process may go on with.

    Attributes
    ----------
    finished : dict of str to list of (dict, Source)
        The descriptions and files of the parts that earlier processes finished, by the path of the source.
    replaced : Manifest or None
        The dataset that is overwritten; its shards are copied where their sources are unchanged.
    published : WriteReport or None
        An earlier process has published the dataset of these sources and settings: nothing is left to do.
    sources, versions : sequence of Source, sequence of dict
        Of the tasks, in order, and as they were when the writing began: see `ResumeJournal.version_of`.
    """

    writer: DistributedWriter
    journal: ResumeJournal
    schema_digest: str  # of the rows
    conversion: str  # a digest of that and of the settings
    finished: dict[str, list[tuple[dict[str, Any], Source]]]
    replaced: Manifest | None = None
    published: WriteReport | None = None
    sources: Sequence[Source] = ()
    versions: Sequence[dict[str, str | int]] = ()

    @classmethod
    @contextmanager
    def begin_or_resume(
        cls, path: Any, options: WriteOptions, settings: Mapping[str, str], schema: pa.Schema, sources: Sequence[Source]
    ) -> Iterator[ResumableWriter]:
        """Begin to write a dataset, or go on; on the local disk, other processes are excluded until the block ends.

        Parameters
        ----------
        path : str, PathLike or URL
            A directory, or the name of a dataset, ``name`` or ``name@*``.
        options : WriteOptions
        settings : mapping of str to str
            What the content of the parts follows from, but for the sources: it must be the same for all of them.
        schema : pyarrow.Schema
            Of the rows of all parts.
        sources : sequence of Source
            Of the tasks, in order.

        Raises
        ------
        ValueError
            Nothing says whether a source has changed, the settings differ from those of the writing that was begun,
            `path` states a number of shards, or there are more sources than a dataset has shards.
        TypeError
            An option that concerns the dataset as a whole.
        FileExistsError
            Another dataset of this name exists, and the mode is not "overwrite".
        CorruptRecordError
            The journal is damaged.
        OSError
            Another process is at work.
        """
        versions = [ResumeJournal.version_of(source) for source in sources]
        request = _Request.of(path, options, settings=settings, schema=schema, sources=versions)
        with ExitStack() as locks:
            continued = request.find_earlier(locks)
            existing = request.existing() if continued is None or request.overwrites else None
            if continued is not None:
                writer = continued.resume(existing, locks)
            elif existing is not None and _is_made_of(existing, versions, request.conversion):
                writer = request.published(existing)
            elif existing is not None and not request.overwrites:
                raise request.other_dataset(existing)
            else:
                writer = request.begin(existing, locks)
            yield replace(writer, sources=sources, versions=versions)

    @cached_property
    def made_before(self) -> dict[str, Publication.File]:
        """The shards of the dataset that is overwritten, by the paths of their sources; the first of each."""
        files = () if self.replaced is None else reversed(self.replaced.files)
        return {str(file.source["path"]): file for file in files if file.source is not None and "path" in file.source}

    def write_parts(self, open_rows: OpenRows, meter: ProgressMeter) -> WriteReport:
        """Write a part of each source that no earlier process has finished, and publish the dataset.

        `open_rows` opens the rows of a source, and shows in `meter` what it reads of it. ReplacedError if a source is
        changed meanwhile.
        """
        return self._commit(list(ordered(self._calls(open_rows, meter), self._stored_at_a_time, "store")))

    def _calls(self, open_rows: OpenRows, meter: ProgressMeter) -> Iterator[Callable[[], WrittenPart]]:
        """The calls that store the parts, in order; one may run while later parts are read."""
        for task, (source, version) in enumerate(zip(self.sources, self.versions, strict=True)):
            try:
                part = self._finished_part(task, version)
                if part is not None:
                    meter.advance(source.size or 0)
                    yield partial(_itself, part)
                    continue
                with open_rows(source) as rows:
                    open_part = self.writer.open_part(task)
                    part = open_part.write_all([rows])
            except Exception as error:  # raised once the earlier parts are stored
                yield Task.failing(error)
                return
            yield partial(self._store, part, open_part, source, version)

    def _store(
        self, part: WrittenPart, open_part: OpenPart, source: Source, version: dict[str, str | int]
    ) -> WrittenPart:
        open_part.commit()
        ResumeJournal.check_version(source, version)
        return self._add(part, version)

    def _finished_part(self, task: int, source: dict[str, str | int]) -> WrittenPart | None:
        """The part of a task that an earlier process finished; None if the source is another by now."""
        candidates = self.finished.get(str(source["path"]), [])
        for document, file in candidates:
            if document["source"] != source or document.get("rows") != self.schema_digest:
                continue
            part = _part_of(document, task)
            if part is None or file.size != part.bytes:
                continue
            content = part.content
            noted = part.bytes, content.crc32c, part.records, content.schema if part.records else None
            if self._content(file, crc32c) == noted:
                candidates.remove((document, file))  # a source that is named twice has two parts
                return replace(part, content=replace(content, source=_made_of(source, self.conversion)))
        copied = self._take_over_copy(task, _made_of(source, self.conversion))
        return None if copied is None else self._add(copied, source)

    def _take_over_copy(self, task: int, made_of: dict[str, str | int]) -> WrittenPart | None:
        """A copy of the shard that the dataset to overwrite has of a source; None if it has none, or it is damaged."""
        old = self.replaced
        file = self.made_before.get(str(made_of["path"]))
        if old is None or old.schema is None or file is None or (file.source or {}) != made_of:
            return None
        fs, directory = self.writer.target.output.location(self.writer.target.storage)
        entry = fs.entry(directory + file.path, is_file=True)
        if entry is None:
            return None
        name, output = self.writer.target.open(task)

        def write(data: memoryview, crc: int) -> int:
            output.write(bytes(data))
            return int(crc32c(data, crc))

        try:
            content = self._content(Source.from_entry(fs, entry), write)
            if content is None or content[:3] != (file.bytes, file.crc32c, file.records):
                return None
            packed = old.schema if content[3] is None else content[3]
            if not _is_readable(packed):
                return None
            output.commit()
        finally:
            output.discard()  # nothing after the commit
        schema = EmbeddedSchema.parse(packed, output.path).schema
        columns, index = tuple(schema.names), tuple(EmbeddedSchema.index_levels(schema))
        stored = PartContent(
            staged=name, crc32c=file.crc32c, schema=packed, columns=columns, index=index, rounding=Rounding()
        )
        return WrittenPart(task, file.records, file.bytes, stored)

    def _content(
        self, file: Source, crc32c: Callable[[memoryview, int], int]
    ) -> tuple[int, int, int, bytes | None] | None:
        """Bytes, checksum and records of a part and, if they embed one, their schema; None if it is damaged.

        The file is read once; `crc32c` takes all of its bytes, in order.
        """
        engine, records, schema = get_engine(), 0, None
        embeds = self.writer.options.embed_schema and not MessageType.takes_payloads(self.writer.options.record_type)
        overflow = memoryview(bytearray(_REST_BYTES))
        try:
            raw = RawFile.Summed(file.open(), crc32c)
            with closing(file.open_stream(self.writer.target.output.compression, raw=raw)) as stream:
                blocks = BlockReader(stream)
                while (block := blocks.next_block()) is not None:
                    frames, fault = engine.scan(block.data, checks=Checks.LENGTHS, final=block.final)
                    if fault is not None:
                        return None
                    if embeds and not records and len(frames.starts):
                        begin, size = int(frames.starts[0]), int(frames.lengths[0])
                        schema = EmbeddedSchema.content_of(
                            block.data[begin - FrameHeader.BYTES : begin + size + FrameHeader.FOOTER_BYTES]
                        )
                    records += len(frames.starts)
                    blocks.consume(frames.consumed)
                while raw.readinto(overflow):  # it is longer than was looked up
                    pass
        except (TFRecordError, FileNotFoundError):  # another process may have removed it since it was listed
            return None
        return raw.size, raw.crc, records, schema

    @property
    def _stored_at_a_time(self) -> int:
        """How many parts may be stored at a time."""
        return 1 if Location.of(self.writer.target.output.base, self.writer.target.storage).is_local else _STORED

    def _add(self, part: WrittenPart, source: dict[str, str | int]) -> WrittenPart:
        """Note a finished part and its source in the journal."""
        self.journal.add_part(part.content.staged, {"source": source, "rows": self.schema_digest, **_description(part)})
        return replace(part, content=replace(part.content, source=_made_of(source, self.conversion)))

    def _commit(self, parts: Iterable[WrittenPart]) -> WriteReport:
        """Publish the dataset, and remove the journal and what is left of earlier attempts."""
        report = self.writer.commit(parts)
        try:
            self.journal.remove()
        except OSError as error:
            reason = f"the dataset is published, but its journal could not be removed ({error.strerror or error})"
            warn(f"{printable(self.journal.path)}: {printable(reason)}; delete it", UserWarning)
        return report


def _itself(part: WrittenPart) -> WrittenPart:
    return part


@dataclass(frozen=True)
class _Request:
    """The writing that a process was asked for; earlier ones may have begun, finished or published it.

    The locks that a method takes, it leaves to the caller's `ExitStack`.
    """

    output: Output
    options: WriteOptions
    journal: ResumeJournal
    settings: Mapping[str, str]
    sources: Sequence[dict[str, str | int]]
    schema_digest: str
    id: str  # of the writing
    is_noted: bool = False  # the journal states all of that

    @classmethod
    def of(
        cls,
        path: Any,
        options: WriteOptions,
        settings: Mapping[str, str],
        schema: pa.Schema,
        sources: Sequence[dict[str, str | int]],
    ) -> _Request:
        output = _resolve_output(path, options).absolute(options.storage)
        if len(sources) > Output.MOST_SHARDS:
            text = f"'{output.path}': {len(sources)} files, each of which becomes a shard"
            text += f"; expected at most {Output.MOST_SHARDS}"
            raise ValueError(f"{text}; convert them in several calls, or without resume=True")
        return cls(
            output,
            replace(options, threads=options.thread_count),
            ResumeJournal(output, options.storage),
            settings={**settings, "compression": repr(output.compression)},
            sources=list(sources),
            schema_digest=hashlib.sha256(schema.serialize().to_pybytes()).hexdigest(),
            id=ShardName.new_id(),
        )

    @property
    def overwrites(self) -> bool:
        return self.options.mode == "overwrite"

    @cached_property
    def conversion(self) -> str:
        """A digest of what the content of the parts follows from, but for the sources."""
        follows_from = json.dumps([sorted(self.settings.items()), self.schema_digest])
        return hashlib.sha256(follows_from.encode()).hexdigest()[:16]

    def find_earlier(self, locks: ExitStack) -> _Request | None:
        """Find what an earlier process began and did not publish, and lock it; None if there is none.

        ValueError if that has other settings.
        """
        earlier = self.journal.read()
        if earlier is None:
            return None
        locks.enter_context(self.journal.hold_lock())
        if self._target(earlier.id).complete() is not None:  # only its journal is left
            self.journal.remove()
            return None
        _check_settings(earlier.settings, self.settings, self.journal.path)
        is_noted = (earlier.settings, earlier.sources) == (self.settings, self.sources)
        return replace(self, id=earlier.id, is_noted=is_noted)

    def existing(self) -> Manifest | None:
        """The published dataset of this name."""
        return Publication.find_whole(self.output, self.options.storage)

    def begin(self, replaced: Manifest | None, locks: ExitStack) -> ResumableWriter:
        """Begin a writing, with a new journal."""
        target = self._begin_target()
        self._note(locks, overwrite=False)
        return self._writer(target, {}, replaced)

    def resume(self, replaced: Manifest | None, locks: ExitStack) -> ResumableWriter:
        """Go on with a writing, with the parts that are finished; its journal states the sources of this request."""
        target = self._begin_target()
        finished: dict[str, list[tuple[dict[str, Any], Source]]] = {}
        for document, file in self.journal.parts(self.id):
            source = document.get("source")
            path = str(source.get("path")) if isinstance(source, dict) else ""
            finished.setdefault(path, []).append((document, file))
        if not self.is_noted:
            self._note(locks, overwrite=True)
        return self._writer(target, finished, replaced)

    def published(self, existing: Manifest) -> ResumableWriter:
        """The writer that has nothing to do."""
        writer = self._writer(self._target(existing.id), {}, None)
        return replace(writer, published=report_of(writer.writer.target, existing))

    def other_dataset(self, existing: Manifest) -> Exception:
        """The error that a dataset of this name exists, and was made of something else."""
        made_of = [_made_of(source, self.conversion) for source in self.sources]
        reason, effect = _why_other(existing, made_of)
        text = f"the dataset exists, {reason}"
        error = FileExistsError(errno.EEXIST, f"{text}; mode='overwrite' {effect}", self.output.path)
        return for_cli(error, f"{text}; --mode overwrite {effect}")

    def _note(self, locks: ExitStack, *, overwrite: bool) -> None:
        """Write the journal, and lock the new file."""
        begun = ResumeJournal.new(self.settings, self.sources)
        self.journal.write(replace(begun, id=self.id), overwrite=overwrite)
        locks.enter_context(self.journal.hold_lock())

    def _target(self, id: str) -> DistributedTarget:
        change = Publication.change_of(self.options.mode, SchemaUnion(self.options.evolve), grows=self.output.grows)
        return DistributedTarget(self.output, self.options.storage, change, id, resumable=True)

    def _begin_target(self) -> DistributedTarget:
        target = self._target(self.id)
        return DistributedTarget.begin(target.output, target.storage, target.change, id=target.id, resumable=True)

    def _writer(
        self,
        target: DistributedTarget,
        finished: dict[str, list[tuple[dict[str, Any], Source]]],
        replaced: Manifest | None,
    ) -> ResumableWriter:
        writer = DistributedWriter(target, self.options)
        return ResumableWriter(
            writer,
            self.journal,
            schema_digest=self.schema_digest,
            conversion=self.conversion,
            finished=finished,
            replaced=replaced,
        )


def _resolve_output(path: Any, options: WriteOptions) -> Output:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"resume=True needs a path, not a {type(path).__name__}")
    text = printable(os.fspath(path))
    spec = ShardSpec.parse(os.fspath(path))
    if spec is not None and spec.shards is not None:
        reason = "with resume=True, each source file becomes one shard"
        raise ValueError(f"'{text}' states the number of shards: {reason}; write '{printable(spec.stem)}@*'")
    for name in sorted({*WITHOUT, "partition_by"}):
        if getattr(options, name) != getattr(WriteOptions, name):
            text = "cannot be used with {}, where each source file becomes one shard"
            error = TypeError(f"{name}= {text.format('resume=True')}")
            raise for_cli(error, f"--{name.replace('_', '-')} {text.format('--resume')}")
    if options.mode == "append":
        raise ValueError("mode='append' cannot be used with resume=True, which compares all sources with the dataset")
    return Output.resolve(path, options.storage, shards=1, compression=options.compression, stated=options.any_suffix)


def _made_of(source: dict[str, str | int], conversion: str) -> dict[str, str | int]:
    """The manifest's entry for the source of a shard."""
    return {**source, "conversion": conversion}


def _is_made_of(manifest: Manifest, sources: Sequence[dict[str, str | int]], conversion: str) -> bool:
    """True if a dataset was made of these sources in this order by this conversion, and its schema is readable."""
    without_rows = list(manifest.sources_without_rows)
    wanted = [_made_of(source, conversion) for source in sources]
    by_path = {str(noted.get("path")): noted for noted in without_rows}
    with_rows = [source for source in wanted if by_path.get(str(source["path"]), {}) != source]
    made_of = [source for file in manifest.files for source in file.sources]
    if not all(file.sources for file in manifest.files) or len(wanted) != len(with_rows) + len(without_rows):
        return False
    return made_of == with_rows and _is_readable(manifest.schema)


def _why_other(manifest: Manifest, wanted: Sequence[dict[str, str | int]]) -> tuple[str, str]:
    """Say why a dataset does not match these sources, and what ``mode="overwrite"`` does."""
    if not all(file.sources for file in manifest.files):
        return "and does not state what all of its shards were made of", "converts all sources again"
    noted = {str(source.get("path")): source for file in manifest.files for source in file.sources}
    noted |= {str(source.get("path")): source for source in manifest.sources_without_rows}
    paths = {str(source["path"]) for source in wanted}
    changed = [source for source in wanted if noted.get(str(source["path"]), {}) != source]
    if changed and all(source["path"] in noted for source in changed):
        names = [str(source["path"]) for source in changed]
        what = "was changed since it was made, or is converted by other keywords"
    elif changed:
        names = [str(source["path"]) for source in changed if source["path"] not in noted]
        what = "is not among the sources that it was made of"
    else:
        names, what = [name for name in noted if name not in paths], "is among the sources that it was made of, only"
    if not names:
        return "and was made of these sources in another order", "replaces it"
    effect = "converts what is new or changed, takes over the other shards, and replaces the dataset"
    return f"and '{printable(names[0])}'{and_more(len(names) - 1)} {what}", effect


def _is_readable(schema: bytes | None) -> bool:
    try:
        return schema is None or bool(EmbeddedSchema.parse(schema))
    except EmbeddedSchema.Unreadable:
        return False


def _check_settings(earlier: Mapping[str, str], settings: Mapping[str, str], journal: str) -> None:
    for name in sorted({*earlier, *settings}):
        before, now = earlier.get(name, "not given"), settings.get(name, "not given")
        if before != now:
            reason = f"{name} is {printable(now, _SHOWN)}, but it was {printable(before, _SHOWN)} when it was begun"
            advice = f"pass the same keywords, or delete '{printable(journal)}' to convert all files again"
            raise ValueError(f"the conversion cannot be resumed: {reason}; {advice}")


def _description(part: WrittenPart) -> dict[str, Any]:
    content = part.content
    return {
        "records": part.records,
        "bytes": part.bytes,
        "crc32c": content.crc32c,
        "schema": None if content.schema is None else base64.b64encode(content.schema).decode(),
        "columns": list(content.columns),
        "index": list(content.index),
        "rounding": content.rounding.to_dict(),
    }


def _part_of(document: dict[str, Any], task: int) -> WrittenPart | None:
    """The part that is described; None if the description is damaged."""
    try:
        schema = None if document["schema"] is None else base64.b64decode(document["schema"], validate=True)
        if not _is_readable(schema):
            return None
        content = PartContent(
            staged=document["staged"],
            crc32c=int(document["crc32c"]),
            schema=schema,
            columns=tuple(map(str, document["columns"])),
            index=tuple(map(str, document["index"])),
            rounding=Rounding.from_document(document["rounding"]),
            source=document["source"],
        )
        return WrittenPart(task, int(document["records"]), int(document["bytes"]), content)
    except (LookupError, TypeError, ValueError, AttributeError):
        return None
