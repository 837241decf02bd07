"""Remove rows from a dataset: files without matching rows stay, other files are dropped or rewritten.

The rows are found by the names of folders, then by column indexes; of the other files, the columns of the condition are
read. Records that stay are copied as bytes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tfrecord_io.base import (
    ProgressMeter,
    Report,
    ScanOptions,
    Selection,
    Summary,
    byte_size,
    check_keywords,
    condition_of,
    counted,
    logger,
    ordered,
    printable,
)
from tfrecord_io.bytes import Array, FrameHeader
from tfrecord_io.columns import EmbeddedSchema
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read import (
    AddedColumns,
    BlockWalker,
    CallSource,
    ColumnIndexes,
    Files,
    Scan,
    ScanRows,
    options_from_call,
)
from tfrecord_io.store import (
    FileName,
    Location,
    Manifest,
    Publication,
    RandomAccessFile,
    ReplaceableDataset,
    Source,
    SourcePrefetcher,
    Sources,
    find_sidecars,
    resolve_inputs,
)
from tfrecord_io.typing import UNSET, OpenedDataset, Path, ProgressLike, StorageLike, Unset
from tfrecord_io.write.copied_records import CopiedRecords, Frames
from tfrecord_io.write.frame_sink import FrameSink, add_prefix, indexes_of_published

_MOST_FILES = 8  # that are read at a time
_WITHOUT_MANIFEST = (
    "delete changes one file, or the shards of one dataset with a manifest (_MANIFEST.json), "
    "in one step; tfr.adopt writes a manifest for files that have none"
)


@dataclass(frozen=True, repr=False)
class DeleteReport(Report):
    """Rows and files deleted, or to be deleted in a dry run.

    Attributes
    ----------
    path : str
    records : int
        The rows that were removed.
    kept : int
        The rows that remain.
    bytes : int
        The bytes of the files that were removed: dropped, or rewritten.
    written_bytes : int
        The bytes of the files that were written; 0 with `dry_run`.
    dropped : tuple of str
        Files that had no other rows.
    rewritten : tuple of str
        Files that were rewritten without the rows, under the names that they had.
    folders : tuple of str
        Folders of the dataset in which no file remains.
    dry_run : bool
        Nothing was changed.
    """

    path: str
    records: int
    kept: int
    bytes: int
    written_bytes: int
    dropped: tuple[str, ...]
    rewritten: tuple[str, ...]
    folders: tuple[str, ...]
    dry_run: bool

    def _summary(self) -> Summary:
        verb = "would be removed" if self.dry_run else "removed"
        parts = [f"{counted(self.records, 'record')} {verb}", f"{self.kept:,} kept"]
        parts += [f"{counted(len(self.dropped), 'file')} dropped"] * bool(self.dropped)
        parts += [f"{counted(len(self.folders), 'folder')} dropped"] * bool(self.folders)
        parts += [f"{counted(len(self.rewritten), 'file')} rewritten"] * bool(self.rewritten)
        parts += [f"{byte_size(self.bytes)} replaced by {byte_size(self.written_bytes)}"] * (not self.dry_run)
        rows = [[printable(name, None), what] for what in ("dropped", "rewritten") for name in getattr(self, what)]
        return Summary(f"{printable(self.path)}: {', '.join(parts)}", ("file", "change"), rows, paths=("file",))


@check_keywords
def delete(
    source: Path | OpenedDataset,
    *,
    filters: Any,
    dry_run: bool = False,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> DeleteReport:
    """Remove the rows that meet a condition.

    Files with only such rows are dropped; if their folder names tell, they are not opened. Files with some such rows
    are rewritten: the other records are copied as bytes, and their checksums checked. Other files are left alone; a
    column index names them without reading the records.

    Replacing the manifest publishes all changes in one step: if the call is killed, the dataset is as before, or
    without the rows, and `tfr clean` finds leftover files. Rows appended meanwhile are kept, even if they meet the
    condition. The old files are removed at the end: open readers continue, or get a ReplacedError, but never see a
    mixture.

    >>> import tfrecord_io as tfr
    >>> visits = {"day": ["05-01", "05-01", "05-02"], "user": [7, 8, 7]}
    >>> _ = tfr.write_tfrecord(visits, "visits_to_forget/", partition_by="day")
    >>> report = tfr.delete("visits_to_forget/", filters=[("user", "==", 7)])
    >>> report.records, report.kept, report.folders
    (2, 1, ('day=05-02',))
    >>> tfr.read_table("visits_to_forget/").to_pylist()
    [{'user': 8, 'day': '05-01'}]

    Parameters
    ----------
    source : str, PathLike or Dataset
        A dataset with a manifest, one of its folders (``day=1/``) or some of its shards, and only these lose rows; or
        one file without a manifest, which is replaced in one step.
    filters : pyarrow.compute.Expression, str, list of tuples, or list of lists of tuples
        The rows to remove, as in `read_table`. Where the condition is null, as of a missing value, the row is kept, as
        by ``DELETE`` of SQL.
    dry_run : bool, default False
        Report the rows that would be removed, and change nothing.
    storage_options, progress
        As for `dataset`, which takes all other reading options.

    Returns
    -------
    DeleteReport

    Raises
    ------
    ValueError
        Several files without a manifest (see `adopt`), or files of several datasets.
    FeatureNotFoundError, SchemaError
        The condition names no column, or does not apply to its type.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file that has to be read is damaged; nothing is changed. `salvage` repairs it.
    OSError
        Another writer has replaced shards meanwhile, or is about to; nothing is changed.

    Notes
    -----
    A rewritten file gets new index files with the same columns. If no rows remain, the dataset keeps one shard without
    records, and so its columns.
    """
    options = options_from_call(ScanOptions, delete, source, storage_options=storage_options, progress=progress)
    path = CallSource(source).one_path("delete")
    return _delete_rows(path, filters, options, dry_run=bool(dry_run))


def _delete_rows(path: str | os.PathLike[str], filters: Any, options: ScanOptions, *, dry_run: bool) -> DeleteReport:
    """Remove the rows of a dataset, or of one file, that meet a condition; with `dry_run`, only find them."""
    if filters is None:
        raise TypeError("filters=None: expected the condition of the rows to remove")
    sources = resolve_inputs(path, options.storage)
    is_alone = len(sources) == 1 and sources[0].shard is None
    if is_alone and sources[0].is_pipe:
        raise ValueError(f"{printable(sources[0].path)}: delete replaces a regular file, and this is a pipe")
    known = Files(sources, options).known_counts(is_checked=False)
    if is_alone and known.record_count(sources[0], None) is not None:
        text = f"'{printable(sources[0].path)}': a description of TFDS states how many records the file has"
        raise ValueError(f"{text}; write the dataset again without these rows, by tfr.formats.write_tfds")
    dataset = None
    if is_alone:
        _refuse_shard(sources[0], options)
    else:
        version = ReplaceableDataset.manifest_of(sources, path, "changed by delete", _WITHOUT_MANIFEST)
        dataset = ReplaceableDataset(version, path, "deleted")
    with ProgressMeter(options.progress, sources.bytes, "bytes") as meter:
        deletion = _Deletion(os.fspath(path), sources, options, dataset=dataset, meter=meter, dry_run=dry_run)
        deletion.find(filters)
        if not dry_run:
            deletion.apply()
    return deletion.report()


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A file with rows to remove."""

    source: Source
    rows: Array  # their numbers, ascending
    count: int  # of all rows

    @property
    def is_whole(self) -> bool:
        return len(self.rows) == self.count


class _Deletion:
    """Removes rows from the files of a dataset: finds them, and drops or rewrites the files.

    Without a `dataset`, `sources` is one file without a manifest. `meter` counts a file that is to be rewritten
    then, all others once they were searched.
    """

    def __init__(
        self,
        path: str,
        sources: Sources,
        options: ScanOptions,
        *,
        dataset: ReplaceableDataset | None,
        meter: ProgressMeter,
        dry_run: bool,
    ) -> None:
        self._path, self._sources, self._options, self._dataset = path, sources, options, dataset
        self._meter, self._dry_run = meter, dry_run
        self._dropped: list[_Found] = []
        self._rewritten: list[_Found] = []
        self._records = sources.stated_records or 0
        self._written_bytes = 0
        # The rows of a file without a manifest are found by one read, and removed by another.
        self._state = None if dataset is not None or dry_run else _state_now(sources[0])

    # ---- the rows

    def find(self, filters: Any) -> None:
        """Find the rows that fulfil the condition, in each file."""
        condition = condition_of(filters)
        in_folders = AddedColumns.from_folders(self._sources).names
        is_of_folders = self._dataset is not None and set(condition.columns) <= set(in_folders)
        options = self._options if is_of_folders else replace(self._options, sample="all")  # types of all rows
        planned = Files(self._sources, options, Selection((), condition)).plan_scan(only_sample=True)
        scan = planned.close()
        assert scan.row_filter is not None
        possible = scan.row_filter.possible(self._sources, scan.partitions)
        self._meter.advance((self._sources.bytes or 0) - (possible.bytes or 0))
        files_with_rows = (
            map(partial(self._rows_of_folder, scan), possible) if is_of_folders else self._rows_of_files(scan, possible)
        )
        for file_rows in files_with_rows:
            if self._dry_run or not len(file_rows.rows) or file_rows.is_whole:
                self._meter.advance(file_rows.source.size or 0)
            if file_rows.source.shard is not None:
                file_rows.source.shard.check_records(file_rows.count, file_rows.source.path)
            else:
                self._records = file_rows.count
            if len(file_rows.rows):
                (self._dropped if file_rows.is_whole else self._rewritten).append(file_rows)
        numbers = {id(source): number for number, source in enumerate(possible)}
        for files in (self._dropped, self._rewritten):  # those that were read are after those with an index
            files.sort(key=lambda file_rows: numbers[id(file_rows.source)])
        left = 0 if self._dataset is None else len(self._dataset.manifest.files) - len(self._dropped)
        if self._dropped and not left:  # a dataset has a shard, and a file stays a file
            self._rewritten.append(self._dropped.pop(0))

    @staticmethod
    def _rows_of_folder(scan: Scan, source: Source) -> _Found:
        """All rows of a file, or none, by its folder."""
        assert scan.row_filter is not None
        assert source.shard is not None
        (is_whole,) = scan.row_filter.mask(ColumnIndexes.search(scan).constants(source)).to_pylist()
        return _Found(source, np.arange(source.shard.records if is_whole else 0), source.shard.records)

    def _rows_of_files(self, scan: Scan, sources: Sequence[Source]) -> Iterator[_Found]:
        """The rows of each file: by its column index, or the columns of the condition are read."""
        assert scan.row_filter is not None
        to_read = []
        for source, found in zip(sources, ColumnIndexes.search(scan).certain(sources), strict=True):
            if found is not None:
                yield _Found(source, *found)
            else:
                to_read.append(source)
        files = max(1, min(_MOST_FILES, len(to_read)))
        threads = max(1, self._options.thread_count // files)
        yield from ordered((partial(self._read, scan, source, threads) for source in to_read), files, "delete")

    @staticmethod
    def _read(scan: Scan, source: Source, threads: int) -> _Found:
        assert scan.row_filter is not None
        count, rows = 0, [np.empty(0, np.int64)]
        file = scan.without_filter().with_sources([source]).with_options(threads=threads, progress=False)
        with ScanRows(file).open_files() as reader:
            for batch in reader:
                rows.append(scan.row_filter.rows(batch, np.arange(count, count + len(batch))))
                count += len(batch)
        return _Found(source, np.concatenate(rows), count)

    # ---- the files

    def apply(self) -> None:
        """Drop and rewrite files, in one step; then remake the indexes of the rewritten files."""
        if not self._dropped and not self._rewritten:
            return
        removed = sum(len(file_rows.rows) for file_rows in (*self._dropped, *self._rewritten))
        sources = [file_rows.source for file_rows in self._rewritten]
        columns = ColumnIndexes.of_files(sources)
        published: Publication.Published | None = None
        with ExitStack() as undo:
            replacement = None if self._dataset is None else self._replacement_in(self._dataset)
            if replacement is not None:
                undo.callback(replacement.publication.discard)
            sinks, shards = self._write(replacement, undo)
            if replacement is None:
                if _state_now(self._sources[0]) != self._state:
                    text = "another process has replaced it meanwhile, and nothing is deleted: do so again"
                    raise OSError(errno.EBUSY, text, self._sources[0].path)
                sinks[0].commit()
            else:
                published = replacement.publication.publish(shards, Manifest())
            undo.pop_all()
        logger.info("removed: %s, %s", self._path, counted(removed, "record"))
        self._written_bytes = sum(sink.bytes for sink in sinks)
        with indexes_of_published("the rows are removed"):
            for sink in sinks if published is not None else ():
                sink.publish_indexes()
            self._rebuild(sinks, columns)
        if published is not None:
            published.warn_of_left()

    def _replacement_in(self, dataset: ReplaceableDataset) -> ReplaceableDataset.New:
        """Begin to replace the rewritten files, and to take out the dropped ones."""
        paths = [dataset.path_of(found.source) for found in (*self._rewritten, *self._dropped)]
        files = dataset.ask(lambda manifest: manifest.files_of(paths))
        rewritten, dropped = files[: len(self._rewritten)], files[len(self._rewritten) :]
        removed = [found.rows.tolist() for found in self._rewritten]
        return dataset.replacement([[file] for file in rewritten], removed, dropped)

    def _write(
        self, replacement: ReplaceableDataset.New | None, undo: ExitStack
    ) -> tuple[list[FrameSink], list[Publication.Shard]]:
        """Rewrite the files, one after the other."""
        sinks: list[FrameSink] = []
        shards: list[Publication.Shard] = []
        has_index = [
            index is not None for index in find_sidecars([f.source for f in self._rewritten], (FileName.INDEX_SUFFIX,))
        ]
        for number, compression, (data, sizes) in self._frames():
            if number == len(sinks):
                self._complete(replacement, sinks, shards)
                sinks.append(self._open_sink(replacement, number, compression, write_index=has_index[number]))
                undo.callback(sinks[-1].discard)
            if len(sizes):
                sinks[-1].write(sinks[-1].prepare(data, len(sizes), sinks[-1].records))
        self._complete(replacement, sinks, shards)
        return sinks, shards

    def _complete(
        self, replacement: ReplaceableDataset.New | None, sinks: list[FrameSink], shards: list[Publication.Shard]
    ) -> None:
        """Complete the last file, which is published with the others."""
        if not sinks:
            return
        sink, file_rows = sinks[-1], self._rewritten[len(sinks) - 1]
        sink.finish()
        if replacement is not None:
            shard = replacement.written_shard(
                len(shards), records=sink.records, size=sink.bytes, crc32c=sink.crc32c, output=sink.output
            )
            shards.append(shard)
            replacement.publication.store(shard)
        elif sink.records != file_rows.count - len(file_rows.rows):
            text = f"it has {sink.records + len(file_rows.rows)} records, and had {file_rows.count} before"
            raise OSError(
                errno.EBUSY, f"{text}: it was changed meanwhile, and nothing is deleted", file_rows.source.path
            )

    def _open_sink(
        self, replacement: ReplaceableDataset.New | None, number: int, compression: str | None, *, write_index: bool
    ) -> FrameSink:
        output = None if replacement is None else replacement.open(number)
        return FrameSink(
            self._rewritten[number].source.path if output is None else output.path,
            self._options.storage,
            compression=compression,
            write_index=write_index,
            threads=self._options.thread_count,
            output=output,
        )

    def _frames(self) -> Iterator[tuple[int, str | None, Frames]]:
        """The records that stay, with the number of their file and its compression; of each file at least once."""
        sources = [file_rows.source for file_rows in self._rewritten]
        prefix = b""  # for the next record: the schema of the first one, which is removed
        with (
            SourcePrefetcher(sources) as prefetched,
            closing(BlockWalker.from_options(prefetched, self._options, progress=self._meter)) as walker,
        ):
            for frames in walker.intact_frames():
                data, sizes = walker.data[: frames.consumed], frames.lengths + FrameHeader.FRAME_BYTES
                rows, stay = self._rewritten[walker.number].rows, np.ones(len(sizes), bool)
                begin, end = rows.searchsorted([walker.record, walker.record + len(sizes)])
                stay[rows[begin:end] - walker.record] = False
                if walker.record == 0:
                    content = None if stay[0] else EmbeddedSchema.content_of(data[: int(sizes[0])])
                    prefix = b"" if content is None else EmbeddedSchema.field_of(content)
                kept_frames = (data, sizes) if stay.all() else CopiedRecords.select((data, sizes), np.flatnonzero(stay))
                if prefix and stay.any():
                    kept_frames, prefix = _embed_schema(kept_frames, prefix, sources[walker.number].path), b""
                yield walker.number, walker.opened.compression, kept_frames

    def _rebuild(self, sinks: Sequence[FrameSink], columns: Sequence[tuple[str, ...] | None]) -> None:
        """Write the column indexes of the new files."""
        paths: dict[tuple[str, ...], list[str]] = {}
        for sink, names in zip(sinks, columns, strict=True):
            if names is not None and sink.records:
                paths.setdefault(names, []).append(sink.path)
        options = replace(self._options, on_error="raise", progress=False)
        files = {source.path: source for source in self._files_now(options)} if paths else {}
        for names, index_paths in paths.items():  # a column may be in other files of the dataset only
            # Files that are missing here have been replaced by another writer.
            if rewritten := [files[path] for path in index_paths if path in files]:
                ColumnIndexes.rewrite(rewritten, names, options)

    def _files_now(self, options: ScanOptions) -> Sequence[Source]:
        """The files that are there now; those of the dataset if another one began in the directory of the path."""
        try:
            return CallSource(self._path).files(options)
        except ValueError as error:
            if self._dataset is None or isinstance(error, TFRecordError):
                raise
            return resolve_inputs(f"{self._dataset.base}@*", options.storage)

    def report(self) -> DeleteReport:
        """The report of the deletion, or of a dry run."""
        files_with_rows = [*self._dropped, *self._rewritten]
        removed = sum(len(file_rows.rows) for file_rows in files_with_rows)
        folders: tuple[str, ...] = ()
        if self._dataset is not None:
            gone = sorted({self._dataset.path_of(file_rows.source) for file_rows in self._dropped})
            folders = tuple(self._dataset.ask(lambda manifest: manifest.folders_without(gone)))
        return DeleteReport(
            path=self._path,
            records=removed,
            kept=self._records - removed,
            bytes=sum(file_rows.source.size or 0 for file_rows in files_with_rows),
            written_bytes=self._written_bytes,
            dropped=tuple(file_rows.source.path for file_rows in self._dropped),
            rewritten=tuple(file_rows.source.path for file_rows in self._rewritten),
            folders=folders,
            dry_run=self._dry_run,
        )


def _state_now(source: Source) -> object:
    """The state of the file that has the name now; None if there is none, or its size is unknown."""
    fs, name = source.location
    entry = fs.entry(name, is_file=True)
    return None if entry is None else RandomAccessFile.state_of(Source.from_entry(fs, entry))


def _refuse_shard(source: Source, options: ScanOptions) -> None:
    """Raise ValueError if a manifest names this file, which was given by its own path."""
    manifest = Publication.manifest_naming(Location.of(source.path, options.storage))
    if manifest is not None:
        where = printable(manifest)
        text = f"'{printable(source.path)}': '{where}' names this file: pass the path of the dataset"
        raise ValueError(f"{text}, or of its folder, which loses its rows in one step")


def _embed_schema(frames: Frames, prefix: bytes, path: str) -> Frames:
    """Put the embedded schema into the first record, unless it has a schema already."""
    data, sizes = frames
    first = data[: int(sizes[0])]
    if EmbeddedSchema.content_of(first) is not None:
        return frames
    framed = np.frombuffer(add_prefix(prefix, first, path), np.uint8)
    return np.concatenate([framed, data[int(sizes[0]) :]]), np.concatenate([[len(framed)], sizes[1:]])
