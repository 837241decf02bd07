"""Open the outputs that copied records are written to, and publish all of them together.

Tests: tests/write/rearranging/test_split.py and tests/write/rearranging/test_shuffle.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from operator import attrgetter
from typing import Any

from tfrecord_io.base import CopyOptions, Remark, and_more, printable
from tfrecord_io.columns import EmbeddedSchema
from tfrecord_io.read import ColumnIndexes
from tfrecord_io.store import Location, Output
from tfrecord_io.write.copied_records import CopiedRecords, CopiedSchema, Frames
from tfrecord_io.write.frame_sink import Sink, add_prefix
from tfrecord_io.write.writer import WriteReport, indexed_columns, open_sink, warn_of_lost_schema

_ADVICE = "shards= sets the number of files in each folder"
_MOST_NAMED = 8  # paths in a message


def say_published(paths: Sequence[str], error: BaseException) -> None:
    """State in an error what was published before it."""
    if paths:
        shown = ", ".join(f"'{printable(path)}'" for path in paths[:_MOST_NAMED])
        more = and_more(len(paths) - _MOST_NAMED)
        Remark(f"published before that: {shown}{more}").add_to(error)


class RecordOutput:
    """Writes copied records to a file or a dataset, with the embedded schema in each file's first record."""

    report: WriteReport  # after `commit`

    def __init__(self, path: Any, schema: CopiedSchema, options: CopyOptions, sink: Sink | None = None) -> None:
        self._columns, self._has_schema = schema.columns, schema.content is not None
        if schema.content is not None:
            ColumnIndexes.check(indexed_columns(options), EmbeddedSchema.parse(schema.content, str(path)).schema)
        self._sink = open_sink(path, options) if sink is None else sink
        self.path = self._sink.path
        self._prefix = b"" if schema.content is None else self._sink.begin(schema.content)

    @classmethod
    @contextmanager
    def open_all(
        cls, records: CopiedRecords, path: Any, names: Sequence[str] = ("",)
    ) -> Iterator[list[RecordOutput | FolderOutputs]]:
        """Open outputs for records: `path` itself, or with `names` files in this directory.

        All outputs are published together when the block ends, and discarded after an exception. With
        ``partitions="folders"``, `path` is a directory, each of whose folders gets the names, or shards.
        """
        schema, options = records.schema, records.options
        outputs: list[RecordOutput | FolderOutputs] = []
        opened: list[RecordOutput] = []  # outputs to publish: those of `outputs`, or of their folders
        with ExitStack() as parents:
            try:
                for name in names:
                    inside = path + name if name else path
                    if options.partitions == "folders":
                        directory = Output.directory_of_folders(
                            path, "partitions='folders'", "--partitions folders", _ADVICE
                        )
                        inside = f"{directory}{next(iter(records.folders), '')}{name}"
                    Output.check_outside(
                        records.src, options.source, target=inside, storage=options.target, sources=records.sources
                    )
                    if options.partitions == "folders":
                        outputs.append(
                            FolderOutputs(
                                directory=directory,
                                name=name,
                                schema=schema,
                                options=options,
                                opened=opened,
                                parents=parents,
                            )
                        )
                    else:
                        opened.append(cls(inside, schema, options))
                        outputs.append(opened[-1])
                yield outputs
                if options.partitions == "folders" and names == ("",):
                    for folder in records.folders:  # folders without records are written, too
                        outputs[0].folder(folder)
                    # A directory before its subdirectories, where files would belong to another dataset.
                    opened.sort(key=attrgetter("path"))
                for output in opened:
                    output.finish()
                for output in opened:
                    output.warn()
                for output in opened:
                    output.commit()
            except BaseException as error:
                say_published([path for output in opened for path in output.published], error)
                for output in opened:
                    output.discard_after(error)
                raise

    def folder(self, folder: str) -> RecordOutput:
        """The output for records of this folder."""
        return self

    def expect(self, records: int) -> None:
        """Announce the number of all records, before the first `write`."""
        self._sink.expect(records)

    def write(self, frames: Frames) -> None:
        """Append records."""
        data, sizes = frames
        if self._prefix and len(sizes):
            first = add_prefix(self._prefix, data[: sizes[0]], self._sink.path)
            self._prefix = b""
            self._sink.write(self._sink.prepare(first, 1, 0))
            data, sizes = data[sizes[0] :], sizes[1:]
        if len(sizes):
            self._sink.write(self._sink.prepare(data, len(sizes), self._sink.records))

    def finish(self) -> None:
        """Complete the files, which wait for `commit`."""
        self._sink.finish()

    def warn(self) -> None:
        """Warn if no record can hold the schema: before `commit`, as the warning may be an error."""
        if self._has_schema and not self._sink.records:
            warn_of_lost_schema(self._sink, len(self._columns))

    def commit(self) -> None:
        """Publish the records."""
        sink = self._sink
        sink.commit()
        size = sum(file.bytes for file in sink.files)
        self.report = WriteReport(
            path=sink.path,
            records=sink.records,
            bytes=size,
            compression=sink.compression,
            columns=self._columns,
            rounded={},
            files=sink.files,
        )

    @property
    def published(self) -> list[str]:
        """The path, after `commit`."""
        return [self.path] if self._sink.files else []

    def discard_after(self, error: BaseException) -> None:
        """Remove what was written because of `error`, which stays the exception raised; after `commit`, do nothing."""
        self._sink.discard_after(error)


class FolderOutputs:
    """Writes copied records to the folders of a directory, which ends in a slash, folder by folder.

    Each has a file of this `name`; if it is empty, the folder is written to as a directory. `opened` gets their outputs
    in order; `parents` removes the directories that are made here, after an exception.
    """

    def __init__(
        self,
        directory: str,
        name: str,
        schema: CopiedSchema,
        options: CopyOptions,
        opened: list[RecordOutput],
        parents: ExitStack,
    ) -> None:
        self._directory, self._name, self._schema, self._options = directory, name, schema, options
        self._opened, self._parents = opened, parents
        self._outputs: dict[str, RecordOutput] = {}

    def expect(self, records: int) -> None:
        """Nothing: how many of all records a folder has is not known."""

    def folder(self, folder: str) -> RecordOutput:
        """The output for records of this folder; those of other folders are complete."""
        output = self._outputs.get(folder)
        if output is None:
            for last in [*self._outputs.values()][-1:]:
                last.finish()  # so that many folders do not need as many open files
            path = f"{self._directory}{folder}"
            self._parents.enter_context(Location.of(path, self._options.storage).new_parent())
            output = self._outputs[folder] = RecordOutput(f"{path}{self._name}", self._schema, self._options)
            self._opened.append(output)
            if self._options.shards in (None, 1):
                output.expect(0)  # all are in one shard, however many they are
        return output

    @property
    def report(self) -> WriteReport:
        """Report of all folders together, after their `commit`."""
        reports = [output.report for output in self._outputs.values()]
        records, size = sum(report.records for report in reports), sum(report.bytes for report in reports)
        compression = reports[0].compression if reports else None
        files = tuple(file for report in reports for file in report.files)
        return WriteReport(
            path=self._directory,
            records=records,
            bytes=size,
            compression=compression,
            columns=self._schema.columns,
            rounded={},
            files=files,
        )
