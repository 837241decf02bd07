"""The rows of a scan: opened as batches, read, counted, or narrowed to those that meet a condition.

Tests: tests/read/test_scan.py and tests/read/test_scan_narrowing.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.base import LIMITS
from tfrecord_io.read.call_options import PACE, PLACES
from tfrecord_io.read.index_search import open_indexed
from tfrecord_io.read.reader import Reader, open_as_it_is, plan_read
from tfrecord_io.read.record_checks import warn_of_schema
from tfrecord_io.read.scan import Scan
from tfrecord_io.store import Sources

if TYPE_CHECKING:
    from tfrecord_io.read.absent_columns import AbsentColumns
    from tfrecord_io.read.chunks.interleaved_chunks import InterleavedChunks
    from tfrecord_io.read.chunks.recovery import Recovery
    from tfrecord_io.read.index.indexed_files import IndexedFiles
    from tfrecord_io.read.random_access import RandomAccess
    from tfrecord_io.read.row_filter import RowFilter
    from tfrecord_io.store import Source


@dataclass(frozen=True, slots=True)
class ScanRows:
    """The rows of a scan. Its files are opened by each call."""

    scan: Scan

    @property
    def decoding(self) -> str:
        """A digest that differs if the values of equal records may: of the schema, and of all options that may count.

        It is the same in other processes.
        """
        from hashlib import sha256  # which loads OpenSSL

        scan = self.scan
        digest = sha256(scan.features.to_arrow().serialize())
        digest.update(pa.schema(scan.partitions.fields).serialize())
        others = PACE | PLACES | {"schema", "schema_overrides"}
        options = sorted(item for item in scan.options.changes.items() if item[0] not in others)
        digest.update(repr(options).encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def open(self, *, whole: bool = False, with_index: bool = False, warns: bool = False) -> Reader:
        """Open the files; by their column indexes where these help.

        The reader raises if a file has more columns than the schema. A `whole` read is decoded on all threads, in
        batches as large as possible. `with_index`: with the columns that are the index of a DataFrame. `warns`: of
        declared columns that no record has. SchemaError if files have types for a column that no type has in common.
        """
        scan = self.scan.add_index_levels() if with_index else self.scan
        needed = scan.prune_files().with_required_columns()
        warns = warns and len(needed.sources) == len(scan.sources) and scan.resolved.is_declared
        rows = ScanRows(needed)
        return rows.open_indexed(needed.row_filter, warn_of_schema if warns else None, whole=whole)

    def open_files(self, warn: Callable[[str], object] | None = None) -> Reader:
        """Open all files: no index is searched, and no file left out.

        `warn` takes the text of a warning about declared columns that no record has.
        """
        return open_as_it_is(self.scan, self._absent_columns(warn))

    def _absent_columns(self, warn: Callable[[str], object] | None) -> AbsentColumns | None:
        if warn is None:
            return None
        from tfrecord_io.read.absent_columns import AbsentColumns

        return AbsentColumns(self.scan.features, warn)

    def open_indexed(
        self, row_filter: RowFilter | None, warn: Callable[[str], object] | None = None, *, whole: bool = False
    ) -> Reader:
        """Open the files by their column indexes, which may choose the records that can meet `row_filter`.

        `warn`: see `open_files`.
        """
        return open_indexed(self.scan, row_filter, self._absent_columns(warn), whole=whole)

    def may_be_interleaved(self) -> bool:
        """True if `open_interleaved` may read the scan as one of several parts."""
        from tfrecord_io.read.chunks.interleaved_chunks import InterleavedChunks

        scan, options = self.scan, self.scan.options
        has_values = scan.picked is not None or scan.resolved.observations
        has_columns_of_paths = scan.partitions.fields or options.include_file_paths is not None
        is_plain = scan.row_filter is None and not has_values and not has_columns_of_paths
        return is_plain and InterleavedChunks.may_read(scan.sources, options)

    @staticmethod
    def open_interleaved(scans: Sequence[Scan]) -> tuple[Reader, InterleavedChunks]:
        """Open several parts of the files of a scan, of which rows are read as they are asked for."""
        from tfrecord_io.read.chunks.interleaved_chunks import InterleavedChunks

        chunks = InterleavedChunks([(scan.sources, scan.selection) for scan in scans], scans[0].options)
        is_whole = not any(scan.selection.is_range for scan in scans)
        sources = Sources(chain.from_iterable(scan.sources for scan in scans))
        # Counts of files are compared at the end of a read without a limit.
        scan = scans[0].with_sources(sources, offset=0, limit=None if is_whole else LIMITS.INT64_MAX)
        scan = scan.with_options(batch_bytes=scan.options.batch_bytes * InterleavedChunks.BATCHES)
        return Reader(plan_read(scan, chunks)), chunks

    def read(self, *, warns: bool = False) -> pa.Table:
        """Read all rows as a table; `warns`: of declared columns that no record has."""
        with self.open(whole=True, warns=warns) as reader:
            return reader.read_all()

    def count(self) -> int:
        """The number of rows: from manifests, index files or record headers, or by reading the columns of the filter.

        With an ``on_error`` other than "raise", by reading the rows, as damaged ones do not count.

        Raises
        ------
        CorruptRecordError, TruncatedRecordError, CompressionError
            A file is damaged.
        """
        scan = self.scan
        if scan.row_filter is not None or not scan.options.damage.counts_all:
            return ScanRows(scan.drop_columns())._count_by_reading()
        if (records := scan.sources.stated_records) is not None:
            return scan.rows_within(records)
        from tfrecord_io.read.chunks.count_frames import records_of_files

        counts = records_of_files([source for source in scan.sources if source.span is None], scan.options)
        parts = [source for source in scan.sources if source.span is not None]
        if parts:
            counts.append(ScanRows(scan.only([]).with_sources(parts, limit=None, offset=0))._count_by_reading())
        return scan.rows_within(sum(counts))

    def _count_by_reading(self) -> int:
        with self.open() as reader:
            return sum(batch.num_rows for batch in reader)

    def records_of_files(self) -> list[int]:
        """Count the records of each file, of which a filter, a limit or an offset may leave out some."""
        from tfrecord_io.read.chunks.count_frames import records_of_files

        return records_of_files(self.scan.sources, self.scan.options)

    def indexed_files(self) -> IndexedFiles:
        """The files, whose records are numbered consecutively; with the indexes next to them."""
        from tfrecord_io.read.index.indexed_files import IndexedFiles

        return IndexedFiles.of(self.scan.sources, self.scan.options)

    def random_access(self, files: IndexedFiles, recovery: Recovery | None = None) -> RandomAccess:
        """Access to the records of `files` by number, as the columns of the scan; `recovery` decides at damage."""
        from tfrecord_io.read.random_access import RandomAccess

        return RandomAccess(files, self.scan, recovery)

    @staticmethod
    def selections(sources: Iterable[Source]) -> list[Scan]:
        """The scans of which some sources have only the rows, each once."""
        from tfrecord_io.read.sources import ChosenRecords

        contents = (source.derived for source in sources)
        scans = (content.scan for content in contents if isinstance(content, ChosenRecords))
        return [*{id(scan): scan for scan in scans}.values()]

    def filter(self, filters: Any) -> Scan:
        """Restrict the selected rows to rows that meet a condition: after a limit, of its rows.

        SchemaError if the condition does not apply to the type of a column.
        """
        from tfrecord_io.read.sources import unite_parts

        scan = self.scan if self.scan.selection.limit is None else unite_parts(self.scan)
        return scan.filter(filters)

    def exclude(self, filters: Any) -> Scan:
        """Exclude files, and records of indexed files, that cannot fulfil a condition.

        The caller filters again: rows that fail the condition remain where decoding them takes less time.
        """
        from tfrecord_io.read.narrow_scan import exclude_rows

        return exclude_rows(self.scan, filters)

    def live(self) -> Callable[[], Scan]:
        """A call that looks the files up again and returns their scan; picklable.

        The columns stay as they are now: the call raises SchemaError if one has another type by then, and
        FeatureNotFoundError if one does not exist any more.
        """
        from tfrecord_io.read.live_scan import LiveScan

        return LiveScan(self.scan).current
