"""Check records for more than their columns: that they are Examples, and as many as their sidecars state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from tfrecord_io.base import MIB, ScanOptions, counted, printable, warn
from tfrecord_io.bytes import RecordCounts
from tfrecord_io.columns import Column, Schema
from tfrecord_io.errors import SchemaWarning
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.read.chunks.skipped_regions import SkippedRegions
from tfrecord_io.store import Source

if TYPE_CHECKING:
    from tfrecord_io.read.tfds_schema import SidecarSchema

_VERDICT_BYTES = 64 * MIB

warn_of_schema = partial(warn, category=SchemaWarning)


def check_counts(
    sources: Sequence[Source], rows: Mapping[int, int], skipped: SkippedRegions, sidecar: SidecarSchema | None
) -> None:
    """Compare the number of rows of each file, once all were read, with manifests and sidecars.

    Of files with `skipped` regions the records are known to be fewer.
    """
    if sidecar is None and not any(map(attrgetter("shard"), sources)):
        return
    by_path: dict[str, int] = {}
    for number, source in enumerate(sources):
        if skipped.total and skipped.has_file(number):
            continue
        if source.span is not None or source.derived is not None:  # it has a part of the file's records
            continue
        by_path[source.path] = rows.get(number, 0)
        if source.shard is not None:
            source.shard.check_records(rows.get(number, 0), source.path)
    if sidecar is not None and not skipped.total:
        sidecar.check(by_path)


def warn_of_no_records(sources: Sequence[Source]) -> None:
    """Warn, after a read without a row, that its columns are unknown."""
    more_files = f" and {counted(len(sources) - 1, 'more file')}" if len(sources) > 1 else ""
    reason = f"{printable(sources[0].path)}{more_files}: no records, so the columns are unknown"
    advice = "reads no rows of known columns"
    warn(f"{reason}; read_table(schema=…) {advice}", SchemaWarning, f"{reason}; --schema FILE {advice}")


def check_record_type(counts: RecordCounts, sources: Sequence[Source], options: ScanOptions) -> None:
    """Raise DecodeError if the records are another message: with `record_type`, only if they look like one."""
    if not counts.foreign:
        return

    error = counts.not_examples(sources[0].path, is_declared=options.record_type is not None)
    if error is not None:
        raise error


def warn_of_feature_lists(
    sources: Sequence[Source], options: ScanOptions, columns: Sequence[str] | None, embedded: Schema | None = None
) -> None:
    """Warn that the feature lists of the first record are not read, unless the columns to read were named.

    Its embedded schema, if it has one, states whether it has feature lists.
    """
    has_lists = embedded is None or any(field.part == Column.FEATURE_LIST for field in embedded)
    if options.record_type == "example" and columns is None and has_lists:
        text, text_cli = (
            f"{printable(sources[0].path)}: the records have feature lists, which {option} ignores; "
            "leave it out to read them, or name the columns to read"
            for option in ('record_type="example"', "--record-type example")
        )
        warn(text, SchemaWarning, text_cli)


class RecordTypeVerdict:
    """Decides from the first records whether they are another message, where no sample was decoded to infer a schema.

    Of a whole read, which holds all rows anyway, these are all records of `_VERDICT_BYTES`; of others, those of the
    first chunk. `decided`: there is nothing to decide.
    """

    def __init__(self, sources: Sequence[Source], options: ScanOptions, *, whole: bool, decided: bool) -> None:
        self._sources, self._options = sources, options
        self._counts: RecordCounts | None = None
        self._left = _VERDICT_BYTES if whole else 1  # payload bytes to observe
        self._decided = decided

    def observe(self, chunk: DecodedChunk) -> None:
        """Count the records of a chunk."""
        self._decided |= chunk.batch is not None  # once, when the index was written
        if self._decided or not chunk.rows:
            return
        self._counts = chunk.counts if self._counts is None else self._counts + chunk.counts
        self._left -= max(chunk.payload_bytes, 1)
        if self._left <= 0 or chunk.ends_read:
            self.decide()

    def decide(self) -> None:
        """Raise DecodeError if the records so far are another message."""
        if not self._decided:
            self._decided = True
            if self._counts is not None and self._counts.seen == self._counts.foreign:
                check_record_type(self._counts, self._sources, self._options)
