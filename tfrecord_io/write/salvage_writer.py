"""Write the intact records of damaged files to their targets: single files, and the shards of datasets together.

Tests: tests/write/test_salvaging.py and tests/laws/test_salvage_laws.py.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, ClassVar, get_args

from tfrecord_io.base import (
    FrameOptions,
    OnDamage,
    ProgressMeter,
    Registry,
    ScanOptions,
    StorageOptions,
    TransferOptions,
    check_choice,
    printable,
)
from tfrecord_io.bytes import CODECS, Fault, FrameHeader, Plan, RecordType, get_engine
from tfrecord_io.columns import EmbeddedSchema
from tfrecord_io.errors import (
    CompressionError,
    CorruptRecordError,
    DamagedDataWarning,
    DecodeError,
    SchemaError,
    TFRecordError,
)
from tfrecord_io.read import BlockWalker, Files, RecordFile, Recovery, SkippedRegion, SkippedRegions
from tfrecord_io.store import (
    ColumnFolder,
    FileName,
    Location,
    Manifest,
    Output,
    Publication,
    ShardName,
    ShardSpec,
    Source,
    Sources,
)
from tfrecord_io.typing import FileMode
from tfrecord_io.write.frame_sink import FrameSink, try_add_prefix
from tfrecord_io.write.record_output import say_published
from tfrecord_io.write.schema_union import SchemaUnion

_MOST_SHARDS = 1_000_000  # of a family without a manifest, of which missing ones are looked for


class IntactRecords:
    """The intact records of one file, in order."""

    def __init__(self, source: Source, options: FrameOptions, progress: ProgressMeter | None = None) -> None:
        self.records = self.bytes = 0  # so far, with frames and uncompressed
        # The first 1,000 of what was left out, or all that a report is to have; damaged records that follow one another
        # are one. A region of a compressed file that cannot be read begins and ends at the same uncompressed byte; its
        # reason has the bytes of the file.
        self.regions: list[SkippedRegion] = []
        self.region_count = self.lost = 0  # of all regions, and their bytes
        self.unread = 0  # bytes of a compressed file that cannot be read
        self.compression: str | None = None
        self.lost_first = False  # whether the first record of the file was left out
        self._options = options
        self._file: RecordFile | None = None
        self._gaps = 0  # of the damaged compressed file that were noted
        longest, recovery = options.limits.record_bytes, Recovery("skip")
        self._walker = BlockWalker(
            iter([source]),
            self._open,
            max_record_bytes=longest,
            progress=progress,
            recover=recovery,
            check_crc=options.check_crc,
        )

    def open(self) -> None:
        """Open the file, so that `compression` is known."""
        self._walker.open_next()

    def frames(self) -> Generator[tuple[Any, Any]]:
        """Yield (bytes of whole frames, their sizes): they are valid until the next step.

        Raises
        ------
        CorruptRecordError
            The file is of another format, and no record was found in it.
        OSError
            The file cannot be read.
        """
        engine, walker = get_engine(), self._walker
        other_format: TFRecordError | None = None
        try:
            while walker.load():
                if walker.error is not None:  # a length beyond the end of the file, or the file cannot be read
                    reading = walker.error
                    if not walker.recover(reading) or not isinstance(reading, TFRecordError):
                        raise reading
                    if reading.region is not None:
                        self._add(reading.region)
                    continue
                self._note_gaps(walker.offset)
                frames, fault = walker.frames(engine, check_crc=True)
                if len(frames.starts):
                    self.lost_first |= not self.records and self.region_count > 0
                    self.records += len(frames.starts)
                    self.bytes += frames.consumed
                    data = walker.data[: frames.consumed]
                    if not self._options.check_crc:  # what is stored may be anything
                        data = engine.frame_extents(data, frames.starts, frames.lengths, 1)
                    yield data, frames.lengths + FrameHeader.FRAME_BYTES
                error = None if fault is None else walker.fault_error(fault)
                walker.advance(len(frames.starts), frames.consumed)
                if error is None:
                    walker.read_on()
                    continue
                if Fault.is_other_format(error):
                    other_format = error
                    error = CorruptRecordError(error.reason, path=error.path, record=0, offset=0)
                if not walker.recover(error):
                    raise error
                if error.region is not None:
                    self._add(error.region)
        finally:
            walker.close()
        self._note_gaps(None)
        if other_format is not None and not self.records and not self._gaps:
            raise other_format

    def _open(self, source: Source) -> RecordFile:
        ratio = self._options.limits.decompression_ratio
        self._file = RecordFile(source, self._options.compression, recover=True, max_decompression_ratio=ratio)
        self.compression = self._file.compression
        return self._file

    def _add(self, region: SkippedRegion) -> None:
        last = self.regions[-1] if self.regions else None
        self.lost += region.bytes or 0
        if last is not None and last.end == region.begin and last.bytes and region.bytes:
            self.regions[-1] = replace(last, end=region.end)
        else:
            self.region_count += 1
            if len(self.regions) < SkippedRegions.MOST or self._options.damage.hands_over:
                self.regions.append(region)

    def _note_gaps(self, offset: int | None) -> None:
        """Note what was left out of a compressed file before an uncompressed offset; None: the file's end."""
        if self._file is None:
            return
        for gap in self._file.gaps[self._gaps :]:
            if offset is not None and gap.offset > offset:
                break
            place = self._file.path, gap.offset, gap.offset
            self._add(SkippedRegion(*place, str(gap), self._walker.record, "CompressionError"))
            self.unread += gap.end - gap.begin
            self._gaps += 1


def is_message(frame: Any) -> bool:
    """True if a record parses as an Example or SequenceExample."""
    plan = Plan(unknown="skip", record_type=RecordType.DETECT)
    return get_engine().decoder(plan).feed(frame).fault is None


@dataclass(frozen=True, slots=True)
class Target:
    """A file to write, and the file that its records are from."""

    source: Source
    path: str
    dataset: tuple[str, str] | None  # the directory and the name of the dataset that it is a shard of
    same_name: bool  # True: name and compression of the source; else the suffix of `path` decides
    # The folders of columns between directory and file, with slashes, if a manifest names the file.
    folder: str = ""

    def codec(self, source_compression: str | None) -> str | None:
        """Name of the compression to write with."""
        codec = CODECS.of_path(self.path)
        return source_compression if codec is None and self.same_name else None if codec is None else codec.name


def plan_targets(
    sources: Sequence[Source],
    dst: str | os.PathLike[str],
    storage: StorageOptions,
    report: str | os.PathLike[str] | None = None,
) -> list[Target]:
    """The target of each source. Nothing is created.

    A single file is written to `dst`, unless that is a directory or ends in "/", or columns are in its folders; several
    files go to the directory `dst`, below which they are where they are below their common directory.

    Raises
    ------
    ValueError
        A target is its own source, `report` is a source or a target, or `dst` has the suffix of another format, or is
        a shard spec.
    FileExistsError
        A file that is not a shard would be put into the directory of a dataset with a manifest.
    """
    text = os.fspath(dst)
    location = Location.of(dst, storage)
    location.check_writable()
    entry = location.fs.entry(location.name)
    has_folders = any(source.partitions for source in sources)
    into_directory = len(sources) > 1 or has_folders or text.endswith("/") or (entry is not None and entry.directory)
    if entry is None and ShardSpec.parse(text) is not None:
        raise ValueError(f"'{printable(text)}' is a shard spec: shards keep their names, so pass a directory")
    if not into_directory:
        Output.OtherFormat.check_none(text)
        targets = [Target(sources[0], text, None, same_name=False)]
    else:
        root = text.rstrip("/") + "/"
        targets = []
        folders = [ColumnFolder.spelling_in(s.path, s.partitions) if s.shard is not None else "" for s in sources]
        ends = list(map(_end_of, sources))
        relatives = _relative_paths([(s.path[: -len(end)], end) for s, end in zip(sources, ends, strict=True)])
        for source, folder, end, relative in zip(sources, folders, ends, relatives, strict=True):
            path = root + relative
            dataset = ShardName.dataset_of(path)
            if source.shard is not None:  # `adopt` leaves files the names that they have
                manifest = FileName.of_path(source.shard.manifest.path)
                dataset = path.removesuffix(end).rstrip("/"), manifest.dataset or ""
            targets.append(Target(source, path, dataset, same_name=True, folder=folder))
        if any(target.dataset is None for target in targets):  # a new manifest would hide the files that are not shards
            targets = [replace(target, dataset=None) if target.source.shard is None else target for target in targets]
    paths = [target.path for target in targets]
    if (twice := next((path for path, count in Counter(paths).items() if count > 1), None)) is not None:
        raise ValueError(f"two files would be written to '{printable(twice)}': name each file once")
    files = (source for source in sources if source.local or source.remote is not None)
    read = {place for source in files for place in source.location.identities()}
    reported = set() if report is None else Location.of(report, storage).identities()
    for target in targets:
        target_places = Location.of(target.path, storage).identities()
        if target_places & read:
            raise ValueError(f"'{printable(target.path)}' is a file that is read: choose another target")
        if reported & target_places or reported & read:
            text = f"'{printable(os.fspath(report or ''))}' is a file that is read or written"
            raise ValueError(f"{text}: choose another file for the report")
    for target in [target for target in targets if target.dataset is None][:1]:
        Output.check_named(target.path, storage)
    return targets


def _end_of(source: Source) -> str:
    """The end of a path to keep below another directory: its folders of columns, and its name."""
    folders = ColumnFolder.spelling_in(source.path, source.partitions)
    if source.shard is None and folders:  # other folders may be among them
        return source.path[f"/{source.path}".rindex(f"/{folders.partition('/')[0]}/") :]
    return folders + source.path.rpartition("/")[2]


def _relative_paths(paths: Sequence[tuple[str, str]]) -> list[str]:
    """The paths below their common directory, each of which is given as a directory and its end."""
    parents = [directory.split("/")[:-1] for directory, _ in paths]
    common = 0
    while all(len(parent) > common and parent[common] == parents[0][common] for parent in parents):
        common += 1
    return [
        "".join(f"{name}/" for name in parent[common:]) + end for parent, (_, end) in zip(parents, paths, strict=True)
    ]


def missing_shards(sources: Sequence[Source], src: Any) -> list[str]:
    """The paths of shards without a manifest that do not exist, although the count in the names includes them.

    Files that `src` names one by one need no others.
    """
    source_paths = src if isinstance(src, list | tuple) else [src]
    named = {os.fspath(item) for item in source_paths if isinstance(item, str | os.PathLike)}
    sources = [source for source in sources if source.path not in named]
    families: dict[tuple[Any, ...], tuple[str, ShardName, int, set[int]]] = {}  # as shards may differ in compression
    for source in sources:
        directory, slash, base = source.path.rpartition("/")
        shard = ShardName.parse(base)
        if source.shard is None and shard is not None and shard.count is not None:
            family = directory, *shard.family, shard.count
            families.setdefault(family, (directory + slash, shard, shard.count, set()))[-1].add(shard.index)
    missing: list[str] = []
    for folder, shard, count, present in families.values():
        if count > _MOST_SHARDS:
            text = f"the name states {count} shards, expected at most {_MOST_SHARDS:,}; name the files one by one"
            raise ValueError(f"'{printable(folder + shard.sibling(0))}': {text}")
        missing += [folder + shard.sibling(i) for i in ShardName.numbers_of(present, count) if i not in present]
    return missing


@dataclass(frozen=True, slots=True)
class SalvagedFile:
    """Records kept of a file, and regions lost.

    Attributes
    ----------
    path, target : str
        The file, and where its records were written.
    records, bytes : int
        Number of records kept, and their bytes with frames, uncompressed.
    bytes_lost : int
        Uncompressed bytes of the file that were left out, as far as they are known.
    compressed_bytes_lost : int
        Bytes of a compressed file that could not be read.
    compression : str or None
        Of the file; None: not compressed.
    schema : {"kept", "restored", None}
        Whether the first record kept carries an embedded schema, or was given that of the dataset; None: none is known.
    regions : tuple of SkippedRegion
        The first 1,000 of what was left out.
    region_count : int
        Number of all regions.
    """

    path: str
    target: str
    records: int
    bytes: int
    bytes_lost: int
    compressed_bytes_lost: int
    compression: str | None
    schema: str | None
    regions: tuple[SkippedRegion, ...]
    region_count: int

    def to_dict(self) -> dict[str, Any]:
        names = ("begin", "end", "records_before", "reason", "error")
        regions = [{"file": r.path, **{name: getattr(r, name) for name in names}} for r in self.regions]
        return {**{name: getattr(self, name) for name in self.__slots__}, "regions": regions}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class SalvageOptions(TransferOptions, FrameOptions):
    """Keywords of `tfrecord_io.salvage`."""

    mode: FileMode | None = None

    internal: ClassVar[frozenset[str]] = frozenset({"split", "allow_missing_shards", "threads", "source_storage"})
    _takes = staticmethod(OnDamage.reports_all)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("mode", self.mode, (None, *get_args(FileMode)))


@dataclass(slots=True)
class SalvageWriter:
    """Salvages files to their targets; with `dry_run`, only finds what would be written."""

    targets: Sequence[Target]
    options: SalvageOptions
    dry_run: bool
    progress: ProgressMeter
    _schemas: dict[tuple[str, str], list[bytes]] = field(default_factory=dict)  # of the shards, by dataset

    def run(self) -> list[SalvagedFile]:
        """Salvage all files; returns a result for each, in order."""
        done: dict[str, SalvagedFile] = {}
        ordered = sorted(self.targets, key=lambda target: target.dataset or ("", ""))
        for dataset, group in groupby(ordered, key=lambda target: target.dataset):
            targets = list(group)
            try:
                if dataset is not None and not self.dry_run:
                    results = self._write_dataset(targets)
                    done.update(zip((target.path for target in targets), results, strict=True))
                else:
                    for target in targets:
                        done[target.path] = self._write_file(target)
            except BaseException as error:
                say_published([] if self.dry_run else [*done], error)
                raise
        return [done[target.path] for target in self.targets]

    def _write_file(self, target: Target) -> SalvagedFile:
        records = self._open(target)
        if self.dry_run:
            return self._copy(target, records, None)[0]
        compression = target.codec(records.compression)
        if target.same_name:
            Location.of(target.path, self.options.target).make_parent()
        sink = FrameSink(target.path, self.options.target, compression=compression, mode=self.options.mode)
        try:
            result, _ = self._copy(target, records, sink)
            sink.commit()
        except BaseException:
            sink.discard()
            raise
        return result

    def _write_dataset(self, targets: Sequence[Target]) -> list[SalvagedFile]:
        """Write shards, and publish them together with a manifest."""
        dataset = self._open_dataset(targets)
        sinks: list[FrameSink] = []
        shards: list[Publication.Shard] = []
        results, contents = [], set[bytes | None]()
        numbers: Counter[str] = Counter()  # of shards in each folder
        try:
            for target in targets:
                records, index = self._open(target), numbers[target.folder]
                numbers[target.folder] += 1
                in_folder = (target.folder,) if target.folder else ()
                file = dataset.open(index, *in_folder)
                codec = dataset.output.compression if target.folder else target.codec(records.compression)
                sinks.append(sink := FrameSink(file.path, compression=codec, output=file))
                result, content = self._copy(target, records, sink)
                sink.finish()
                contents.update(() if content is None and not records.lost_first else (content,))
                results.append(replace(result, target=sink.path) if target.folder else result)
                shard = Publication.Shard(
                    index, sink.records, bytes=sink.bytes, crc32c=sink.crc32c, output=sink.output, folder=target.folder
                )
                shards.append(shard)
                if target.folder:
                    dataset.store(shard)
            # Of shards with several schemas, but no manifest, each read decides.
            stated = targets[0].source.shard
            only_schema = next(iter(contents)) if len(contents) == 1 else None
            facts = Manifest(schema=only_schema)
            if stated is not None:
                types = stated.manifest.partition_schema if targets[0].folder else None
                version = stated.manifest
                facts = (Manifest.read(version) or Manifest()).facts
                facts = facts._replace(schema=version.schema, partition_schema=types, metadata=version.metadata)
            published = dataset.publish(shards, facts)
        except BaseException:
            for sink in sinks:
                sink.discard()
            dataset.discard()
            raise
        published.warn_of_left()
        return results

    def _open_dataset(self, targets: Sequence[Target]) -> Publication:
        """The writer of a dataset: of one with folders, new shards in the same folders."""
        first, storage = targets[0], self.options.target
        mode = self.options.mode
        assert first.dataset is not None
        base = "/".join(first.dataset)
        if not first.folder:
            names = tuple(target.path.rpartition("/")[2] for target in targets)
            output = Output.of_names(first.path, base, names)
            return Publication.start(output, Publication.change_of(mode, SchemaUnion(), grows=False), storage)
        assert first.source.shard is not None
        codec = CODECS.of_path(first.path)
        suffix = Registry.RECORD_SUFFIXES[0] + ("" if codec is None else codec.suffixes[0])
        compression = None if codec is None else codec.name
        output = Output(base, True, None, compression=compression, base=base, suffix=suffix, grows=True)
        columns = tuple(name for name, _ in first.source.partitions)
        return Publication.start(output, Publication.change_of(mode, SchemaUnion(), columns, grows=True), storage)

    def _open(self, target: Target) -> IntactRecords:
        records = IntactRecords(target.source, self.options, self.progress)
        records.open()
        return records

    def _copy(
        self, target: Target, records: IntactRecords, sink: FrameSink | None
    ) -> tuple[SalvagedFile, bytes | None]:
        """Copy the records to `sink`, if there is one; returns the result, and the content of the embedded schema."""
        content: bytes | None = None
        schema: str | None = None
        is_first = True
        for frames, sizes in records.frames():
            data, count = frames, len(sizes)
            if is_first:
                is_first = False
                first = data[: sizes[0]]
                content = EmbeddedSchema.content_of(first)
                schema = None if content is None else "kept"
                if content is None and records.lost_first:
                    content = self._schema_of(target)
                    whole = (
                        try_add_prefix(EmbeddedSchema.field_of(content), first)
                        if content is not None and is_message(first)
                        else None
                    )
                    if whole is not None:  # not where it would be too large
                        schema, data, count = "restored", data[sizes[0] :], count - 1
                        if sink is not None:
                            sink.write(sink.prepare(whole, 1, 0))
            if sink is not None and count:
                sink.write(sink.prepare(data, count, sink.records))
        file = SalvagedFile(
            path=target.source.path,
            target=target.path,
            records=records.records,
            bytes=records.bytes,
            bytes_lost=records.lost,
            compressed_bytes_lost=records.unread,
            compression=records.compression,
            schema=schema,
            regions=tuple(records.regions),
            region_count=records.region_count,
        )
        return file, content

    def _schema_of(self, target: Target) -> bytes | None:
        """The embedded schema in the manifest of a file's dataset, or in the first record of another of its shards.

        Without a manifest, the shards of a dataset to which columns were added have several schemas: the schema has to
        describe the records that are kept.
        """
        if target.source.shard is not None and target.source.shard.manifest.schema is not None:
            return target.source.shard.manifest.schema
        dataset = ShardName.dataset_of(target.source.path)
        if dataset is None:
            return None
        if dataset not in self._schemas:
            shards = (candidate for candidate in self.targets if ShardName.dataset_of(candidate.source.path) == dataset)
            contents = (self._first_schema(shard) for shard in shards)
            self._schemas[dataset] = list(dict.fromkeys(content for content in contents if content is not None))
        candidates = self._schemas[dataset]
        return next((content for content in candidates if _is_described(target.source, content, self.options)), None)

    def _first_schema(self, target: Target) -> bytes | None:
        records = IntactRecords(target.source, self.options)
        with closing(records.frames()) as blocks:
            for data, sizes in blocks:
                return None if records.lost_first else EmbeddedSchema.content_of(data[: sizes[0]])
        return None


def _is_described(source: Source, content: bytes, options: FrameOptions) -> bool:
    """True if an embedded schema names all features of the intact records of a file, with types that fit."""
    try:
        embedded = EmbeddedSchema.parse(content, source.path)
    except EmbeddedSchema.Unreadable:
        return False
    reading = ScanOptions(compression=options.compression, limits=options.limits, on_error=_loses_bytes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DamagedDataWarning)  # the report of the call has it
        try:
            Files(Sources([source]), reading).check_embedded(embedded)
        except (SchemaError, DecodeError):
            return False
    return True


def _loses_bytes(error: Exception) -> bool:
    """True if an error means lost bytes, and not a record that does not fit a schema."""
    return isinstance(error, CorruptRecordError | CompressionError)
