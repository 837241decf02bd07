"""Compaction: small neighbouring shards of a dataset are joined; its rows and their order stay.

The joined shards are written under names that no reader reads (see `tfrecord_io.storage.write.publication`), and
replace the small ones by one replacement of the manifest, which also names the files to be removed after it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from tfrecord_io.compression import CODECS
from tfrecord_io.display import Summary
from tfrecord_io.errors import CorruptRecordError, printable
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import MIB, CopyOptions, check_integer
from tfrecord_io.storage.paths.file_names import parse_shard, shard_name, split_suffixes, stem_of
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.read.source import ManifestVersion, Source
from tfrecord_io.storage.write.atomic import place_of
from tfrecord_io.storage.write.publication import Publication, WrittenShard
from tfrecord_io.tools.copied_records import CopiedRecords
from tfrecord_io.tools.record_copy import RecordOutput
from tfrecord_io.typing import Path
from tfrecord_io.write.frame_sink import FrameSink
from tfrecord_io.write.writer import WriteReport

_KEYWORDS = {"write_index", "threads", "progress", "storage_options", "filesystem"}
_ONE_DATASET = (
    "compact joins the shards of one dataset with a manifest (_MANIFEST.json), in which it replaces them at once; "
    "tfr.merge writes the records of any files to one file, or to the shards of a new dataset"
)


@document_keywords(CopyOptions, only=_KEYWORDS)
def compact(path: Path, *, max_shard_bytes: int = 256 * MIB, **keywords: object) -> WriteReport:
    """Join small neighbouring shards of a dataset, which keeps its rows and their order.

    Records are copied as bytes, their checksums checked; the schema of the dataset is in the first record of each new
    shard. Shards that have no small neighbour in their folder stay as they are. One replacement of the manifest
    publishes the new shards: a killed call leaves the dataset as it was or compacted, and files that
    `tfr clean` finds. What is appended meanwhile is kept, behind the other rows.

    The old shards are removed at the end. As when a dataset is overwritten, readers that were open before then get an
    OSError that says that the dataset was replaced, and never a mixture; those that start again have all rows.

    Parameters
    ----------
    path : str or PathLike
        A dataset with a manifest, as it was written to a directory or to shards; or a folder of it (``day=1/``) or some
        shards, of which only these are joined.
    max_shard_bytes : int, default 256 MiB
        Neighbours are joined as long as their files have at most so many bytes together, compressed if they are.
    {keywords}

    Returns
    -------
    WriteReport
        Of the new shards; without files if there was nothing to join.

    Raises
    ------
    ValueError
        This is no dataset with a manifest, or several: see `merge`.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A shard is damaged; nothing is changed.
    OSError
        Another writer has replaced the shards meanwhile, or is about to; nothing is changed.

    Notes
    -----
    The new shards have names like those of appended ones, so the dataset is read by its directory, ``train`` or
    ``train@*``, and no longer by the number of its shards (``train@8``). ``convert(resume=True)`` recognises the
    dataset as long as all of its sources are the same; else it converts those of joined shards again.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> for day in range(5):
    ...     _ = tfr.write_tfrecord({"day": [day]}, "days/", mode="append")
    >>> report = tfr.compact("days/")
    >>> len(report.files), report.records
    (1, 5)
    >>> tfr.read_table("days/")["day"].to_pylist()
    [0, 1, 2, 3, 4]
    """
    options = replace(CopyOptions.from_keywords(keywords, compact), partitions="drop")
    check_integer("max_shard_bytes", max_shard_bytes, 1)
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path is the str or PathLike of a dataset, not a {type(path).__name__}")
    sources = resolve_inputs(path, options.storage)
    compaction = _Compaction(_manifest_of(sources, path), path)
    compaction.plan(sources, max_shard_bytes)
    if not compaction.groups:
        return _NothingJoined(os.fspath(path), 0, 0, compaction.compression, (), {})
    copied = CopiedRecords(compaction.groups, options)
    with ExitStack() as undo:
        undo.callback(compaction.discard)
        sinks = _write(copied, compaction, options, undo)
        compaction.publish([shard for _, shard in sinks], None)
        undo.pop_all()
    for sink, _ in sinks:
        sink.publish_indexes()
    compaction.warn_of_left()
    files = tuple(sink.file for sink, _ in sinks)
    records, size = sum(file.records for file in files), sum(file.bytes for file in files)
    return WriteReport(os.fspath(path), records, size, compaction.compression, copied.schema.columns, {}, files)


@dataclass(frozen=True, repr=False)
class _NothingJoined(WriteReport):
    """The report of a compaction that changed nothing."""

    def _summary(self) -> Summary:
        return Summary(f"{printable(self.path)}: nothing to join")


def _manifest_of(sources: Sequence[Source], path: str | os.PathLike[str]) -> ManifestVersion:
    """The manifest that names all of these files."""
    found = {source.shard.manifest.name: source.shard.manifest for source in sources if source.shard is not None}
    if len(found) != 1 or any(source.shard is None for source in sources):
        what = "a single file" if len(sources) == 1 else "these files have no manifest"
        what = f"{len(found)} datasets, each of which can be compacted" if len(found) > 1 else what
        if len(found) == 1:
            other = next(source.path for source in sources if source.shard is None)
            what = f"its manifest does not name '{printable(other)}', which must be moved first"
        raise ValueError(f"'{printable(os.fspath(path))}': {what}: {_ONE_DATASET}")
    return next(iter(found.values()))


def _write(
    copied: CopiedRecords, compaction: _Compaction, options: CopyOptions, undo: ExitStack
) -> list[tuple[FrameSink, WrittenShard]]:
    """Write the joined shards, one after the other."""
    frames = copied.frames()
    name, block = next(frames, (None, None))
    sinks = []
    for index, joined in enumerate(compaction.groups):
        sink = compaction.open_sink(index, options)
        undo.callback(sink.discard)
        output = RecordOutput(sink.path, copied.schema, options, sink)
        while name == joined and block is not None:
            output.write(block)
            name, block = next(frames, (None, None))
        output.finish()
        sinks.append((sink, compaction.written(index, sink)))
        compaction.store(sinks[-1][1])
    return sinks


class _Compaction(Publication):
    """Replaces shards of a dataset by joined ones.

    Attributes
    ----------
    groups : dict of str to list of Source
        The shards to join, by the path of the new shard below the dataset's directory.
    """

    def __init__(self, version: ManifestVersion, path: str | os.PathLike[str]) -> None:
        directory, slash, base = version.name.rpartition("/")
        self._root, self._version, stem = directory + slash, version, stem_of(base) or ""
        self.groups: dict[str, list[Source]] = {}
        self._joined: dict[str, list[ManifestFile]] = {}  # by the same path
        self._names: list[str] = []  # these paths, by the number of the new shard
        text = os.fspath(path)
        shown = version.path[: len(version.path) - len(base)]
        output = Output(text, True, None, base=f"{shown}{stem}", suffix=".tfrecord", grows=True)
        super().__init__(version.fs, f"{self._root}{stem}", output, place_of(version.fs, self._root, stem), "append")

    def _check_existing(self) -> list[str]:
        self._known = self._place.read()
        if self._known is None or self._known.id != self._version.id:
            raise self._replaced()
        self._check_settled(self._known)
        return []

    @property
    def compression(self) -> str | None:
        """That of the dataset; None also if shards differ."""
        return None if self._known is None else self._known.compression

    def plan(self, sources: Sequence[Source], most: int) -> None:
        """Decide which of the files are joined: neighbours, as many as have no more than `most` bytes."""
        assert self._known is not None
        by_path = {_name_of(source).removeprefix(self._root): source for source in sources}
        runs: list[list[ManifestFile]] = []
        last: dict[str, list[ManifestFile]] = {}  # by folder
        sizes: dict[str, int] = {}  # of these
        for file in self._known.files:
            folder = os.path.dirname(file.path)
            run = last.get(folder, [])
            if file.path not in by_path:
                last.pop(folder, None)
            elif run and sizes[folder] + file.bytes <= most:
                run.append(file)
                sizes[folder] += file.bytes
            else:
                last[folder], sizes[folder] = [file], file.bytes
                runs.append(last[folder])
        for run in runs:
            if len(run) > 1:
                name = self._new_name(run[0].path)
                self._joined[name], self.groups[name] = run, [by_path[file.path] for file in run]
        self._names = list(self.groups)

    def _new_name(self, path: str) -> str:
        """A name that comes after those of the shards before it, also for programs that go by names."""
        folder, slash, base = path.rpartition("/")
        shard = parse_shard(base)
        assert shard is not None, "checked by the manifest's parser"
        _, record, packed = split_suffixes(shard.base + shard.suffix)
        suffix = (record if record.startswith(".") else ".tfrecord") + packed
        number = shard.index
        while True:
            name = f"{folder}{slash}{shard_name(self._stem, number, None, self._id)}{suffix}"
            if name not in self.groups:
                return name
            number += 1

    def _shard_name(self, index: int) -> str:
        return self._names[index].rpartition("/")[2]

    def open_sink(self, index: int, options: CopyOptions) -> FrameSink:
        """The file of a joined shard, in the compression of the first of those that it replaces."""
        name = self._names[index]
        codec = CODECS.of_path(name)
        output = self._place.open(name, None, ())
        return FrameSink(
            output.path,
            options.storage,
            compression=None if codec is None else codec.name,
            write_index=options.write_index,
            threads=options.thread_count,
            output=output,
        )

    def written(self, index: int, sink: FrameSink) -> WrittenShard:
        """A joined shard, after it was checked to have all records."""
        name = self._names[index]
        expected = sum(file.records for file in self._joined[name])
        if sink.records != expected:
            reason = f"{len(self._joined[name])} shards from '{printable(self._joined[name][0].path)}' on"
            text = f"{reason} have {sink.records} records, and the manifest states {expected}; nothing is changed"
            raise CorruptRecordError(text, path=self._place.path, expected=expected, got=sink.records)
        folder = name[: len(name) - len(name.rpartition("/")[2])]
        return WrittenShard(index, sink.records, sink.bytes, sink.crc32c, sink.output, folder=folder)

    def _grown(self, files: tuple[ManifestFile, ...], schema: bytes | None, manifest: Manifest | None) -> Manifest:
        """The manifest with the joined shards, each in the place of the first that it replaces."""
        if manifest is None:
            raise self._replaced()
        self._check_settled(manifest)
        current = {file.path: file for file in manifest.files}
        replaced = [file for run in self._joined.values() for file in run]
        if any(current.get(file.path) != file for file in replaced):
            raise self._replaced()
        new = {run[0].path: _of(run, file) for run, file in zip(self._joined.values(), files, strict=True)}
        gone = {file.path for file in replaced}
        kept = [new.get(file.path, file) for file in manifest.files if file.path in new or file.path not in gone]
        names = tuple(file.path for file in replaced)
        return replace(manifest, id=self._id, files=tuple(kept), replaces=(*manifest.replaces, *names))

    def _replaced(self) -> OSError:
        text = "another writer has replaced this dataset meanwhile; nothing of it is compacted: do so again"
        return OSError(errno.EBUSY, text, self._place.path)

    def _check_settled(self, manifest: Manifest) -> None:
        """Raise an error if the files of the manifest do not have their names yet."""
        if any(file.staged is not None for file in manifest.files):
            text = "a writer is replacing this dataset, or died while doing so; compact it when it is written"
            raise OSError(errno.EBUSY, text, self._place.path)


def _of(run: Sequence[ManifestFile], file: ManifestFile) -> ManifestFile:
    """The file in which a run is joined, with the sources of all, if each of them states its own."""
    is_known = all(each.sources for each in run)
    return replace(file, joined=tuple(source for each in run for source in each.sources) if is_known else ())


def _name_of(source: Source) -> str:
    """The name of a file in its filesystem."""
    return source.path if source.remote is None else source.remote[1]
