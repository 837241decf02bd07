"""Compaction: small neighbouring shards of a dataset are joined; its rows and their order stay.

The joined shards replace the small ones by one replacement of the manifest (`tfrecord_io.store.write.replacement`).
"""

from __future__ import annotations

import os
from collections.abc import Container, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tfrecord_io.base import MIB, CopyOptions, check_integer, check_keywords, counted, printable
from tfrecord_io.bytes import CODECS
from tfrecord_io.read import CallSource, ColumnIndexes, options_from_call
from tfrecord_io.store import Manifest, OutputFile, Publication, ReplaceableDataset, resolve_inputs
from tfrecord_io.typing import UNSET, IndexLike, OpenedDataset, Path, ProgressLike, StorageLike, Unset
from tfrecord_io.write.copied_records import CopiedRecords
from tfrecord_io.write.frame_sink import FrameSink, indexes_of_published
from tfrecord_io.write.record_output import RecordOutput
from tfrecord_io.write.writer import WriteReport, indexed_columns

_ONE_DATASET = (
    "compact joins the shards of one dataset with a manifest (_MANIFEST.json), in which it "
    "replaces them at once; merge writes the records of any files to one file, or to the "
    "shards of a new dataset"
)


@check_keywords
def compact(
    source: Path | OpenedDataset,
    *,
    max_shard_bytes: int = 256 * MIB,
    write_index: IndexLike = False,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport:
    """Join small neighbouring shards of a dataset, which keeps its rows and their order.

    Records are copied as bytes, their checksums checked; the schema of the dataset is in the first record of each new
    shard. Shards that have no small neighbour in their folder stay as they are. One replacement of the manifest
    publishes the new shards: a killed call leaves the dataset as it was or compacted, and files that
    `tfr clean` finds. What is appended meanwhile is kept, behind the other rows.

    The old shards are removed at the end. As when a dataset is overwritten, readers that were open before then get an
    OSError that says that the dataset was replaced, and never a mixture; those that start again have all rows.

    >>> import tfrecord_io as tfr
    >>> for day in range(5):
    ...     _ = tfr.write_tfrecord({"day": [day]}, "days/", mode="append")
    >>> report = tfr.compact("days/")
    >>> len(report.files), report.records
    (1, 5)
    >>> tfr.read_table("days/")["day"].to_pylist()
    [0, 1, 2, 3, 4]

    Parameters
    ----------
    source : str, PathLike or Dataset
        A dataset with a manifest, as it was written to a directory or to shards; or a folder of it (``day=1/``) or some
        shards, of which only these are joined.
    max_shard_bytes : int, default 256 MiB
        Neighbours are joined as long as their files have at most so many bytes together, compressed if they are.
    write_index, storage_options, progress
        As for `write_tfrecord`.

    Returns
    -------
    WriteReport
        Of the new shards; without files if there was nothing to join.

    Raises
    ------
    ValueError
        This is not a dataset with a manifest, or several: see `merge`.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A shard is damaged; nothing is changed.
    OSError
        Another writer has replaced the shards meanwhile, or is about to; nothing is changed.

    Notes
    -----
    The new shards have names like those of appended ones, and the manifest names them. ``convert(resume=True)``
    recognises the dataset as long as all of its sources are the same; else it converts those of joined shards again.

    A manifest in parts is sorted by folder, also if there is nothing to join: what was appended to many folders is then
    found in few parts.
    """
    options = options_from_call(
        CopyOptions,
        compact,
        source,
        CallSource(source).storage_keywords,
        max_shard_bytes=max_shard_bytes,
        write_index=write_index,
        storage_options=storage_options,
        progress=progress,
        partitions="drop",
    )
    path = CallSource(source).one_path("compact")
    return _compact_shards(path, options, max_shard_bytes)


def _compact_shards(path: str | os.PathLike[str], options: CopyOptions, max_shard_bytes: int) -> WriteReport:
    """Join small neighbouring shards of a dataset, as long as they have at most so many bytes together."""
    max_shard_bytes = check_integer("max_shard_bytes", max_shard_bytes, 1)
    sources = resolve_inputs(path, options.storage)
    dataset = ReplaceableDataset(
        ReplaceableDataset.manifest_of(sources, path, "compacted", _ONE_DATASET), path, "compacted"
    )
    by_path = {dataset.path_of(source): source for source in sources}
    files = dataset.ask(lambda manifest: manifest.load().files)
    runs = _joined_runs(files, by_path, max_shard_bytes)
    if not runs:
        if not isinstance(files, tuple) and not files.is_order_found:
            _sort_shards(dataset)
        return CompactReport(
            path=os.fspath(path), records=0, bytes=0, compression=dataset.manifest.compression, columns=(), rounded={}
        )
    compaction = dataset.replacement(runs, sorts=True)
    publication = compaction.publication
    indexed = ColumnIndexes(
        path, indexed_columns(options), options.storage, publication, name=f"{publication.output.base}@*"
    )
    indexes = indexed.resolve_columns()
    groups = {new: [by_path[file.path] for file in run] for new, run in zip(compaction.paths, runs, strict=True)}
    copied = CopiedRecords(path, options, groups)
    with ExitStack() as undo:
        undo.callback(compaction.publication.discard)
        sinks = _write(copied, compaction, options, undo)
        published = compaction.publication.publish([shard for _, shard in sinks], Manifest())
        undo.pop_all()
    written = tuple(sink.file for sink, _ in sinks)
    with indexes_of_published():
        for sink, _ in sinks:
            sink.publish_indexes()
        indexes.write({file.path: file.records for file in written})
    published.warn_of_left()
    records, size = sum(file.records for file in written), sum(file.bytes for file in written)
    compression, columns = dataset.manifest.compression, copied.schema.columns
    joined = sum(map(len, runs))
    return CompactReport(
        path=os.fspath(path),
        records=records,
        bytes=size,
        compression=compression,
        columns=columns,
        rounded={},
        files=written,
        joined=joined,
    )


def _sort_shards(dataset: ReplaceableDataset) -> None:
    """Sort the shards of a manifest by folder: few of its parts then have those of one folder."""
    with ExitStack() as undo:
        sorting = dataset.replacement([], sorts=True)
        undo.callback(sorting.publication.discard)
        sorting.publication.publish([], Manifest())
        undo.pop_all()


@dataclass(frozen=True, repr=False)
class CompactReport(WriteReport):
    """Report of a compaction: the shards written, which replace `joined` smaller ones."""

    joined: int = 0

    def _line(self, size: str, done: str = "") -> str:
        if not self.files:
            return f"{printable(self.path)}: nothing to join"
        files = f"{self.joined:,} files joined into {len(self.files):,}"
        return f"{printable(self.path)}: {files}, {counted(self.records, 'record')}, {size}"


def _write(
    copied: CopiedRecords, compaction: ReplaceableDataset.New, options: CopyOptions, undo: ExitStack
) -> list[tuple[FrameSink, Publication.Shard]]:
    """Write the joined shards, one after the other."""
    frames = copied.frames()
    name, block = next(frames, (None, None))
    sinks = []
    for index, shard_name in enumerate(compaction.paths):
        sink = _open_sink(compaction.open(index), options)
        undo.callback(sink.discard)
        output = RecordOutput(sink.path, copied.schema, options, sink)
        while name == shard_name and block is not None:
            output.write(block)
            name, block = next(frames, (None, None))
        output.finish()
        shard = compaction.written_shard(
            index, records=sink.records, size=sink.bytes, crc32c=sink.crc32c, output=sink.output
        )
        sinks.append((sink, shard))
        compaction.publication.store(shard)
    return sinks


def _joined_runs(
    files: Sequence[Publication.File], chosen: Container[str], max_shard_bytes: int
) -> list[list[Publication.File]]:
    """Decide which of the chosen files are joined: neighbours in a folder, as many as `max_shard_bytes` allows."""
    runs: list[list[Publication.File]] = []
    last: dict[str, list[Publication.File]] = {}  # by folder
    sizes: dict[str, int] = {}  # of these
    for file in files:
        folder = os.path.dirname(file.path)
        run = last.get(folder, [])
        if file.path not in chosen:
            last.pop(folder, None)
        elif run and sizes[folder] + file.bytes <= max_shard_bytes:
            run.append(file)
            sizes[folder] += file.bytes
        else:
            last[folder], sizes[folder] = [file], file.bytes
            runs.append(last[folder])
    return [run for run in runs if len(run) > 1]


def _open_sink(output: OutputFile, options: CopyOptions) -> FrameSink:
    """Open the sink of a joined shard, in the compression of the first shard that it replaces."""
    codec = CODECS.of_path(output.path)
    return FrameSink(
        output.path,
        options.storage,
        compression=None if codec is None else codec.name,
        write_index=options.write_index,
        threads=options.thread_count,
        output=output,
    )
