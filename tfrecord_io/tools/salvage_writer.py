"""Write the intact records of files to their targets: single files, and the shards of datasets together."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from tfrecord_io.errors import SkippedRegion
from tfrecord_io.options import SalvageOptions
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.schema.embedded import embedded_content, field_bytes
from tfrecord_io.storage.paths.shard_names import dataset_of
from tfrecord_io.storage.write.atomic import make_parent, open_sharded_dataset_writer
from tfrecord_io.storage.write.sharded_dataset import WrittenShard
from tfrecord_io.tools.intact_records import IntactRecords, is_message
from tfrecord_io.tools.record_copy import say_published
from tfrecord_io.tools.salvage_targets import NamedShards, Target
from tfrecord_io.write.frame_sink import FrameSink, prefixed


@dataclass(frozen=True, slots=True)
class SalvagedFile:
    """What was kept of a file, and what was lost.

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


@dataclass(slots=True)
class SalvageWriter:
    """Salvages files to their targets; with `dry_run`, only finds what would be written."""

    targets: Sequence[Target]
    options: SalvageOptions
    dry_run: bool
    progress: ProgressMeter
    _schemas: dict[tuple[str, str], bytes | None] = field(default_factory=dict)  # by dataset

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
            make_parent(target.path, self.options.target)
        overwrite = self.options.overwrite
        sink = FrameSink(target.path, self.options.target, compression=compression, overwrite=overwrite)
        try:
            result, _ = self._copy(target, records, sink)
            sink.commit()
        except BaseException:
            sink.discard()
            raise
        return result

    def _write_dataset(self, targets: Sequence[Target]) -> list[SalvagedFile]:
        """Write shards, and publish them together with a manifest."""
        names = tuple(target.path.rpartition("/")[2] for target in targets)
        output = NamedShards(targets[0].path, True, len(names), base=targets[0].path, names=names)
        dataset = open_sharded_dataset_writer(output, self.options.target, overwrite=self.options.overwrite)
        sinks: list[FrameSink] = []
        results, content = [], None
        try:
            for index, target in enumerate(targets):
                records = self._open(target)
                file = dataset.open(index)
                sinks.append(FrameSink(file.path, compression=target.codec(records.compression), output=file))
                result, found = self._copy(target, records, sinks[-1])
                sinks[-1].finish()
                content = content or found
                results.append(result)
            shards = [WrittenShard(i, s.records, s.bytes, s.crc32c, s.output) for i, s in enumerate(sinks)]
            dataset.publish(shards, content)
        except BaseException:
            for sink in sinks:
                sink.discard()
            dataset.discard()
            raise
        dataset.warn_of_left()
        return results

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
                content = embedded_content(first)
                schema = None if content is None else "kept"
                if content is None and records.lost_first:
                    content = self._schema_of(target)
                    prefixed = None if content is None else _with_schema(first, content)
                    if prefixed is not None:
                        schema, data, count = "restored", data[sizes[0] :], count - 1
                        if sink is not None:
                            sink.write(sink.prepare(prefixed, 1, 0))
            if sink is not None and count:
                sink.write(sink.prepare(data, count, sink.records))
        return _result(target, records, schema), content

    def _schema_of(self, target: Target) -> bytes | None:
        """The embedded schema in the manifest of a file's dataset, or in the first record of another of its shards."""
        if target.source.shard is not None and target.source.shard.manifest.schema is not None:
            return target.source.shard.manifest.schema
        dataset = dataset_of(target.source.path)
        if dataset is None:
            return None
        if dataset not in self._schemas:
            shards = (other for other in self.targets if dataset_of(other.source.path) == dataset)
            contents = (self._first_schema(shard) for shard in shards)
            self._schemas[dataset] = next((content for content in contents if content is not None), None)
        return self._schemas[dataset]

    def _first_schema(self, target: Target) -> bytes | None:
        records = IntactRecords(target.source, self.options)
        with closing(records.frames()) as blocks:
            for data, sizes in blocks:
                return None if records.lost_first else embedded_content(data[: sizes[0]])
        return None


def _with_schema(frame: Any, content: bytes) -> bytes | None:
    """A record with an embedded schema in front, framed; None if it is not a message, or would be too large."""
    return prefixed(field_bytes(content), frame) if is_message(frame) else None


def _result(target: Target, records: IntactRecords, schema: str | None) -> SalvagedFile:
    return SalvagedFile(
        target.source.path,
        target.path,
        records.records,
        records.bytes,
        records.lost,
        records.unread,
        records.compression,
        schema,
        tuple(records.regions),
        records.region_count,
    )
