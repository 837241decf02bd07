"""Random access: read records by number, without reading whole files."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfrecord_io.arrow.buffers import cut
from tfrecord_io.arrow.decode.batch_builder import Columns, to_table
from tfrecord_io.arrow.output.to_python import cell
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.closing import Closing, Shared
from tfrecord_io.engine.contract import Array, Fault, RecordCounts
from tfrecord_io.engine.decoded_columns import by_feature
from tfrecord_io.engine.fault_messages import record_error
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import CorruptRecordError, SkippedRegion, TFRecordError
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.index import find_indexes
from tfrecord_io.index.indexed_files import IndexedFiles
from tfrecord_io.index.record_index import RecordIndex
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import LIMITS, ReadOptions, check_on_error
from tfrecord_io.options.expansion import Expansion
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.chunks.chunk import ChunkDecoder, first_record_settings
from tfrecord_io.read.chunks.embedded_schemas import SchemaRevision
from tfrecord_io.read.chunks.record_file import RecordFile
from tfrecord_io.read.chunks.recovery import Recovery, is_damage, recovery_of
from tfrecord_io.read.fitting_parts import fitting_parts
from tfrecord_io.read.open_scan import column_search, filtered, matching_numbers
from tfrecord_io.read.record_checks import check_record_type
from tfrecord_io.read.report import ReadReport
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.schema.merged_schema import EmbeddedSchema
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.block_reader import Bytes
from tfrecord_io.storage.read.random_access_file import open_random_access
from tfrecord_io.storage.read.source import Source
from tfrecord_io.typing import OnError, Path

Location = tuple[int, int]  # of a record: the number of its file, and its record index

_OMITTED = ("filters", "offset", "limit", "on_error", "batch_size", "batch_bytes", "threads", "progress", "compression")


class RandomAccess(Closing, Shared):
    """Records of TFRecord files by number; made by `tfrecord_io.open_random`.

    A sequence and a context manager. Threads may share it, and a forked process may use it. It can be pickled;
    unpickling opens the files again, and infers nothing again.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the tables.
    schema_source : str
        As in `ReadReport`.
    report : ReadReport
        The records and bytes read so far, and the regions that were ``skipped``: when the files were opened, and of the
        records in tables.
    """

    def __init__(self, files: IndexedFiles, scan: Scan, recovery: Recovery | None = None) -> None:
        self._files, self._scan, self._recovery = files, scan, recovery
        self._check = scan.embedded_check
        self._closed = False
        self._left_out: set[Location] = set()  # of the records that were left out of a table
        self.schema, self.schema_source = scan.schema, scan.resolved.source
        self.report = ReadReport(files=len(files.sources), schema_source=self.schema_source)
        if recovery is not None:
            self.report.skipped = recovery.skipped
        self._share()

    # Records ----------------------------------------------------------------------------------------------------

    def batches(self, numbers: Array, *, leaves_out: bool = False) -> Iterator[tuple[Array, pa.RecordBatch]]:
        """Batches of records, in the order requested, with the numbers of their rows.

        `leaves_out`: but for damaged ones, if `on_error` allows it.
        """
        for chunk in self._files.chunks(numbers, LIMITS.picked_chunk_bytes):
            yield from self._decode(chunk, leaves_out=leaves_out)

    def _decode(self, numbers: Array, *, leaves_out: bool) -> Iterator[tuple[Array, pa.RecordBatch]]:
        frames = self._files.frames(numbers)
        ends = np.cumsum([len(frame) for frame in frames])
        data = frames[0] if len(frames) == 1 else np.concatenate(frames)
        files, records = self._files.locate(numbers)
        locations = list(zip(files.tolist(), records.tolist(), strict=True))
        settings = self._scan.settings
        done = consumed = 0
        while done < len(locations):
            expansion = Expansion(self._scan.options.max_expansion)
            decoder = settings.decoder()
            first, error = done, None
            while True:
                progress = decoder.feed(
                    data, consumed, max_records=len(locations) - done, max_bytes=LIMITS.picked_chunk_bytes
                )
                done, consumed = done + progress.records, consumed + progress.consumed
                if progress.fault is not None:
                    error = self._fault_error(progress.fault, locations[done], data)
                    if not leaves_out or not self._leave_out(error, locations[done]):
                        raise error
                    break
                if not progress.embedded:
                    break
                self._check_embedded(locations[done], progress.embedded)
                decoder.accept_embedded()
            expansion.add(decoder.value_bytes)
            columns = by_feature(decoder.take())
            built = self._built(columns, locations[first:done], expansion, leaves_out=leaves_out)
            yield from ((numbers[first:done][rows], batch) for rows, batch in built)
            if error is not None:
                done, consumed = done + 1, int(ends[done])
        if consumed != len(data):
            path, record, offset = self._origin(locations[-1])
            raise CorruptRecordError(
                "this record, or an earlier one that was requested with it, does not have the size in the index",
                path=path,
                record=record,
                offset=offset,
                advice="rebuild the index: tfr index",
            )

    def _built(
        self, columns: Columns, locations: Sequence[Location], expansion: Expansion, *, leaves_out: bool
    ) -> Iterator[tuple[slice, pa.RecordBatch]]:
        """Batches of decoded records and their places, but for those whose values do not fit, if they are left out."""
        rows = len(locations)

        def make(begin: int, end: int) -> pa.RecordBatch | RowFault:
            room = expansion.room
            part = columns if end - begin == rows else {name: cut(c, begin, end) for name, c in columns.items()}
            batch, fault = self._scan.compiled.builder.batch(part, end - begin, expansion)
            if fault is None:
                return batch
            expansion.room = room
            return fault

        def error_of(fault: RowFault) -> TFRecordError:
            path, record, offset = self._origin(locations[fault.row])
            error = fault.to_error(path, record)
            error.offset = offset
            return error

        def passes(fault: RowFault) -> bool:
            return leaves_out and self._leave_out(error_of(fault), locations[fault.row])

        for begin, end, part in fitting_parts(rows, make, passes):
            if isinstance(part, RowFault):
                raise error_of(part)
            with self._lock:
                self.report.records += end - begin
                self.report.bytes += sum(self._size(location) for location in locations[begin:end])
            sources = [self._files.sources[file] for file, _ in locations[begin:end]]
            path_column = self._scan.options.include_file_paths
            yield slice(begin, end), self._scan.partitions.add_to(part, sources, self.schema, path_column)

    def _leave_out(self, error: TFRecordError, location: Location) -> bool:
        """Whether a record may be left out of a table; it counts as skipped, once."""
        if self._recovery is None or not is_damage(error):
            return False
        path, record, offset = self._origin(location)
        region = SkippedRegion(path, offset, offset + self._size(location), error.detail, record, type(error).__name__)
        with self._lock:
            if location not in self._left_out and self._recovery.accept(region, location[0], error):
                self._left_out.add(location)
            return location in self._left_out

    def _size(self, location: Location) -> int:
        """The bytes of a record with its frame."""
        file, record = location
        return self._files.offset(file, record + 1) - self._files.offset(file, record)

    def _check_embedded(self, location: Location, contents: Sequence[bytes]) -> None:
        path, record, offset = self._origin(location)
        for content in contents:
            verdict = self._check.check(path, record, offset, content)
            if verdict is not None:
                raise verdict.late_error() if isinstance(verdict, SchemaRevision) else verdict

    def _origin(self, location: Location) -> tuple[str, int, int]:
        """Path, record index and offset of a record, for errors."""
        file, record = location
        return self._files.sources[file].path, record, self._files.offset(file, record)

    def _fault_error(self, fault: Fault, location: Location, data: Bytes) -> TFRecordError:
        path, record, offset = self._origin(location)
        fault = replace(fault, record=0, offset=0)
        context = self._scan.settings.fault_context
        error = record_error(path, fault, record=record, offset=offset, data=data, **context)
        error.records_intact = None  # the records before it were not read
        return error

    # Public methods -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"<RandomAccess to {len(self):,} records of {self._scan.files_and_columns()}>"

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | npt.NDArray[np.integer[Any]]) -> pa.Table: ...

    def __getitem__(self, key: Any) -> Any:
        """One record as a dict, for an integer; several as a pyarrow.Table, for a slice, sequence or array of integers.

        Raises
        ------
        IndexError
            A number is out of range.
        TFRecordError
            A record is damaged or does not fit the schema; the message names it. Of several records, ``on_error``
            may leave it out.
        """
        if self._closed:
            raise ValueError("the file is closed")
        if isinstance(key, slice):
            return self._table(np.arange(*key.indices(len(self)), dtype=np.int64))
        number = as_integer(key)
        if number is None:
            return self._table(normalized(as_integers(key), len(self)))
        ((_, batch),) = self.batches(normalized(np.array([number]), len(self)))
        return {field.name: cell(column, 0, field) for field, column in zip(batch.schema, batch.columns, strict=True)}

    def _table(self, numbers: Array) -> pa.Table:
        skipped, before = self.report.skipped, self.report.skipped.total
        batches = (batch for _, batch in self.batches(numbers, leaves_out=True))
        table = to_table(batches, self.schema)
        if skipped.total > before:
            skipped.warn()
        return table

    def select(self, filters: Any) -> SelectedRecords:
        """The records that fulfil a condition; one that is null is not fulfilled.

        Parameters
        ----------
        filters : pyarrow.compute.Expression, or list of tuples, or list of lists of tuples
            As in `Dataset.filter`. The column index of a file (``tfr index --columns``, `build_index`) tells which of
            its records to read; the columns of the condition are read where no index has them.

        Returns
        -------
        SelectedRecords
            With ``len``, ``[i]``, ``[a:b]`` and ``[[i, j]]`` as here, ``numbers``, and ``to_table()``.

        Raises
        ------
        CorruptRecordError
            A column index does not match its file.
        FeatureNotFoundError, SchemaError
            As `Dataset.filter`.

        Examples
        --------
        >>> import tfrecord_io as tfr
        >>> _ = tfr.write_tfrecord({"label": [3, 1, 3], "name": ["a", "b", "c"]}, "chosen.tfrecord")
        >>> _ = tfr.build_index("chosen.tfrecord", columns=["label"])
        >>> with tfr.open_random("chosen.tfrecord") as records:
        ...     threes = records.select([("label", "==", 3)])
        ...     len(threes), threes[-1], threes.numbers
        (2, {'label': 3, 'name': 'c'}, array([0, 2]))
        """
        if self._closed:
            raise ValueError("the file is closed")
        scan = filtered(self._scan.over(columns=None), filters).only([])
        row_filter, scan = scan.row_filter, scan.decoded()
        assert row_filter is not None
        exact, others = matching_numbers(self._files, column_search(scan, row_filter))
        before, batches = self.report.skipped.total, RandomAccess(self._files, scan, self._recovery).batches
        passing = [row_filter.rows(batch, numbers) for numbers, batch in batches(others, leaves_out=True)]
        if self.report.skipped.total > before:
            self.report.skipped.warn()
        return SelectedRecords(self, np.sort(np.concatenate([exact, *passing])))

    def close(self) -> None:
        """Close the files."""
        self._closed = True
        self._files.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._closed:
            raise ValueError("the file is closed")
        return RandomAccess, (self._files, self._scan, self._recovery)

    def _after_fork(self) -> None:
        self._share()


@document_keywords(ReadOptions, without=_OMITTED)
def open_random(
    path: Path | Iterable[Path],
    *,
    index: Path | Iterable[Path] | None = None,
    on_error: OnError = "raise",
    **keywords: Any,
) -> RandomAccess:
    """Open TFRecord files for reading any of their records, by number.

    The offsets of the records are read from a file's index (``write_index=True``, ``tfr index``), which is next to it
    or named by `index`; without one, all headers of the file are read here. Records are read from a disk one by one,
    and from a bucket by several range requests at a time.

    Parameters
    ----------
    {path}
        Plain files: a compressed one can only be read from its start.
    index : str, PathLike or list of those, optional
        The path or URL of the index file; for several data files a list with one for each, in the order in which they
        are read. By default, ``x.tfrecord.index``, ``.tfindex`` or ``.idx``, or ``x.index`` and so on, next to
        ``x.tfrecord``.
    on_error : {"raise", "skip"} or callable
        "skip" leaves damaged records out of tables, which are shorter by them, with a DamagedDataWarning; of a file
        whose headers are damaged, and that has no index, only the records that can be found have a number.
        ``report.skipped`` has each region. ``records[i]`` raises the error. A callable gets each error, with its
        ``region``, and returns True to leave that out, or False to raise the error.
    {keywords}

    Returns
    -------
    RandomAccess
        A context manager. ``records[i]`` is a dict: a scalar is its value, a list or tensor an ndarray, a missing value
        None; a time that Python cannot hold is a datetime64 or timedelta64. ``records[a:b]`` and ``records[[i, j]]``
        are pyarrow.Tables, in the order requested. ``len(records)`` is their number. The schema is fixed when this call
        returns, as by `open_reader`.

    Raises
    ------
    ValueError
        A file is compressed, or `index` names more or fewer files than `path`.
    CorruptRecordError
        A file is damaged, or `index` does not match it. Other index files that do not match are skipped with a
        StaleIndexWarning.
    FileNotFoundError, DecodeError, SchemaError
        As `read_tfrecord`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3], "word": ["a", "b", None]}, "words.tfrecord", write_index=True)
    >>> with tfr.open_random("words.tfrecord") as records:
    ...     len(records), records[-1], records[[1, 0, 1]]["word"].to_pylist()
    (3, {'x': 3, 'word': None}, ['b', 'a', 'b'])
    """
    check_on_error(on_error, ("raise", "skip"))
    recovery = recovery_of(on_error)
    sampling: OnError = "raise" if recovery is None else "skip"  # a callable is asked when records are read
    options = replace(ReadOptions.of(keywords, open_random), threads=1, on_error=sampling)
    sources = resolve_inputs(path, options.storage, allow_missing_shards=options.allow_missing_shards)
    index_sources = find_indexes(sources, index, options.storage)
    recover = None if recovery is None else partial(index_around_damage, recovery, options.max_record_bytes)
    files = IndexedFiles(sources, index_sources, options.max_record_bytes, named=index is not None, recover=recover)
    try:
        records = RandomAccess(files, plan_records(files, options), recovery)
    except BaseException:
        files.close()
        raise
    records.report.skipped.warn()
    return records


def plan_records(files: IndexedFiles, options: ReadOptions) -> Scan:
    """Plan under the embedded schemas of all files: a later one may have more columns than the first."""
    embedded: EmbeddedSchema | None = None
    while True:
        planned = plan_scan(files.sources, options, embedded=embedded)
        planned.scan.refuse_conflicts()
        scan = planned.close()
        if scan.settings.as_bytes:
            return scan
        revision = _check_first_records(files, scan)
        if revision is None:
            return scan
        revision.warn_if_late()
        embedded = revision.embedded


def _check_first_records(files: IndexedFiles, scan: Scan) -> SchemaRevision | None:
    """Check the embedded schemas in the first record of each file, and that any of these records has a feature."""
    settings, check = first_record_settings(scan.options), scan.embedded_check
    counts = RecordCounts()
    nonempty = [file for file in range(len(files.sources)) if files.count(file)]
    for numbers in files.chunks(files.first[nonempty], LIMITS.picked_chunk_bytes):
        for file, data in zip(files.locate(numbers)[0].tolist(), files.frames(numbers), strict=True):
            decoder = ChunkDecoder(settings, check)
            result = decoder.feed(data, files.sources[file].path, 0, 0)  # damage is reported when the record is read
            if result.error is not None:
                raise result.error
            if result.revision is not None:
                return result.revision
            counts += decoder.engine_decoder.counts
    check_record_type(counts, scan.sources, scan.options)
    return None


class Records(Protocol):
    """Records by number: `RandomAccess`."""

    @property
    def schema(self) -> pa.Schema: ...

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: npt.NDArray[np.integer[Any]]) -> pa.Table: ...


class SelectedRecords:
    """The records that fulfil a condition, numbered from 0 on; made by `RandomAccess.select`.

    It can be used while the files of the `RandomAccess` are open. It can be pickled with them.

    Attributes
    ----------
    numbers : int64 array
        Their numbers in the `RandomAccess`, ascending.
    schema : pyarrow.Schema
        Of the tables.
    """

    def __init__(self, records: Records, numbers: Array) -> None:
        self._records, self.numbers = records, numbers
        self.schema = records.schema

    def __len__(self) -> int:
        return len(self.numbers)

    def __repr__(self) -> str:
        return f"<SelectedRecords: {len(self):,} of {self._records!r}>"

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice | Sequence[int] | npt.NDArray[np.integer[Any]]) -> pa.Table: ...

    def __getitem__(self, key: Any) -> Any:
        """One record as a dict, or several as a pyarrow.Table; see `RandomAccess`."""
        if isinstance(key, slice):
            return self._records[self.numbers[key]]
        number = as_integer(key)
        if number is None:
            return self._records[self.numbers[normalized(as_integers(key), len(self), "the selection has")]]
        return self._records[int(self.numbers[normalized(np.array([number]), len(self), "the selection has")][0])]

    def to_table(self) -> pa.Table:
        """All of them as a pyarrow.Table, in their order."""
        return self._records[self.numbers]


def as_integer(key: Any) -> int | None:
    """The key as one number; None if it is not a number."""
    if isinstance(key, bool | np.bool_):
        raise TypeError("a record index is an integer, not a bool")
    if getattr(key, "ndim", 0):
        return None
    try:
        return operator.index(key)
    except TypeError:
        return None


def as_integers(key: Any) -> Array:
    """The key as an array of numbers."""
    if isinstance(key, str | bytes):
        raise TypeError(f"a record index is an integer, not {type(key).__name__}")
    numbers = np.asarray(key)
    if numbers.size == 0 and numbers.ndim == 1:
        return np.empty(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        got = f"a {type(key).__name__} ({numbers.ndim} dimensions, {numbers.dtype})"
        got = "bools" if numbers.dtype.kind == "b" else got
        raise TypeError(f"records are selected by an integer, a slice, or a sequence of integers, not by {got}")
    if numbers.dtype.kind == "u":  # large numbers must not wrap around to negative ones
        numbers = np.minimum(numbers.astype(np.uint64), np.uint64(2**63 - 1))
    return numbers.astype(np.int64)


def normalized(numbers: Array, count: int, owner: str = "the files have") -> Array:
    """Numbers counted from the start, of `count` records; raises IndexError if one is out of range."""
    invalid = (numbers < -count) | (numbers >= count)
    if invalid.any():
        raise IndexError(f"record {numbers[invalid.argmax()]} is out of range: {owner} {count} records")
    return np.where(numbers < 0, numbers + count, numbers)


def index_around_damage(
    recovery: Recovery, max_record_bytes: int, source: Source, file: int
) -> tuple[RecordIndex, Array]:
    """The index of the records and the damaged regions of a file, and which of its entries are records.

    Payloads are not checked: a record whose payload is damaged has a number.
    """
    with open_random_access(source) as opened:
        size = opened.size
    open_file = partial(RecordFile, compression=None)
    walker = BlockWalker(iter([source]), open_file, max_record_bytes=max_record_bytes, recover=recovery)
    walker.number = file - 1
    sizes, intact, end = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
    entries = 0
    try:
        while walker.load():
            error = walker.error
            if error is None:
                frames, fault = walker.frames(get_engine())
                error = None if fault is None else walker.fault_error(fault)
                walker.advance(len(frames.starts), frames.consumed)
                sizes.append(frames.lengths + FRAME_BYTES)
                intact.append(np.arange(entries, entries + len(frames.starts)))
                entries, end = entries + len(frames.starts), end + frames.consumed
            if error is None:
                walker.read_on()
                continue
            if not walker.recover(error):
                raise walker.fail(error)
            assert isinstance(error, TFRecordError)
            assert error.region is not None
            begin, end = end, size if error.region.end is None else error.region.end
            sizes.append(np.array([end - begin]))
            entries += 1
    finally:
        walker.close()
    return RecordIndex.of_sizes(np.concatenate(sizes)), np.concatenate(intact)
