"""Records by their number, of files that are too large to be read."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.cells import cell
from tfrecord_io.arrow.to_arrow import to_table
from tfrecord_io.engine.contract import Array, Fault, Plan
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.framing import record_error
from tfrecord_io.governing import LateSchema
from tfrecord_io.indexing import Index, find_indexes, read_index, scan_index
from tfrecord_io.keywords import explained
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.schema.kinds import RecordType
from tfrecord_io.session import Session
from tfrecord_io.storage.blocks import Bytes
from tfrecord_io.storage.paths import resolve_inputs
from tfrecord_io.storage.ranges import Ranges, open_plain, open_ranges
from tfrecord_io.storage.sources import Source
from tfrecord_io.units import Unit

_CHUNK_BYTES = 64 * MIB  # of records that are read and decoded together
_MOST_OPEN = 128  # files that are kept open; of more, each is opened when it is read
_REMOTE_FILES = 16  # that are asked at a time
EVERY_RECORD = ("offset", "limit", "on_error", "batch_size", "batch_bytes", "threads", "progress", "filters", "compression")


class RandomAccess:
    """Records of TFRecord files by their number; made by `tfrecord_io.open_random`.

    A sequence and a context manager. Threads may share it; a fork may go on with it; it pickles, and opens its files anew
    where it is unpickled.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the tables.
    schema_source : str
        As in `ReadReport`.
    """

    def __init__(self, sources: list[Source], options: ReadOptions, indexes: list[Index] | None = None) -> None:
        self._sources, self._options = sources, options
        self._closed = False
        self._held: dict[int, Ranges] = {}
        try:
            self._indexes = self._open(indexes)
            self._first = np.concatenate([[0], np.cumsum([len(index) for index in self._indexes], dtype=np.int64)])
            self._session = Session(sources, options)
            self._session.reader.close()
            self._meet_all()
        except BaseException:
            self.close()
            raise
        self.schema, self.schema_source = self._session.schema, self._session.schema_source

    # Files ------------------------------------------------------------------------------------------------------

    def _open(self, indexes: list[Index] | None) -> list[Index]:
        """Open the files, as many as are kept open, and give their indexes."""
        if indexes is not None:
            if len(self._sources) <= _MOST_OPEN:
                self._held = {at: self._checked(open_ranges(source), indexes[at]) for at, source in enumerate(self._sources)}
            return indexes
        besides = find_indexes(self._sources)
        keep = len(self._sources) <= _MOST_OPEN

        def index_of(at: int) -> Index:
            ranges = open_plain(self._sources[at], "random access")
            self._held[at] = ranges
            beside, source = besides[at], self._sources[at]
            if beside is not None:
                index = read_index(beside, source, ranges)
            else:
                index = scan_index(source.path, ranges, self._options.max_record_bytes)
            if not keep:
                self._held.pop(at).close()
            return index

        with ThreadPoolExecutor(_REMOTE_FILES) as pool:
            return list(pool.map(index_of, range(len(self._sources))))

    def _ranges(self, file: int) -> AbstractContextManager[Ranges]:
        held = self._held.get(file)
        if held is not None:
            return nullcontext(held)
        return self._checked(open_ranges(self._sources[file]), self._indexes[file])

    def _checked(self, ranges: Ranges, index: Index) -> Ranges:
        if ranges.size != index.end:
            ranges.close()
            reason = f"the file has {ranges.size} bytes; it had {index.end} when it was opened"
            raise CorruptRecordError(reason, path=getattr(ranges, "path", None), expected=index.end, got=ranges.size, advice="open it anew")
        return ranges

    def _meet_all(self) -> None:
        """See what the first record of each file carries: an embedded schema may say more than the first file's."""
        while True:
            try:
                self._meet_first_records()
                return
            except LateSchema as late:
                self._session.restart(late)
                self._session.reader.close()

    def _meet_first_records(self) -> None:
        setup = self._session.fixed
        if setup.as_bytes:
            return
        met = Unit("", 0, 0, 0, {})
        glance = replace(setup, plan=Plan(unknown="skip", record_type=RecordType.DETECT, check_crc=self._options.check_crc))
        files = [at for at, index in enumerate(self._indexes) if len(index)]
        for file, data in zip(files, self._frames(self._first[files]), strict=True):
            decoder = glance.decoder(partial(self._meet_embedded, [(file, 0)], 0))
            decoder.feed(data)  # damage is told to who reads the record
            met.seen += decoder.seen
            met.foreign += decoder.foreign
        self._session.check_record_type([met])

    def _meet_embedded(self, places: Sequence[tuple[int, int]], done: int, record: int, offset: int, content: bytes) -> None:
        file, number = places[done + record]
        self._session.fixed.on_embedded(self._sources[file].path, number, int(self._indexes[file].bounds[number]), content)

    # Records ----------------------------------------------------------------------------------------------------

    def _frames(self, numbers: Array) -> list[Bytes]:
        """The frames of records, as they stand in the files, in the order asked."""
        files = self._first.searchsorted(numbers, side="right") - 1
        found: list[Any] = [None] * len(numbers)

        def read(file: int) -> None:
            asked = np.flatnonzero(files == file)
            records, places = np.unique(numbers[asked] - self._first[file], return_inverse=True)
            bounds = self._indexes[file].bounds
            with self._ranges(file) as ranges:
                parts = ranges.read_all(bounds[records].tolist(), bounds[records + 1].tolist())
            for at, place in zip(asked.tolist(), places.tolist(), strict=True):
                found[at] = parts[place]

        different = np.unique(files).tolist()
        if len(different) > 1 and self._sources[different[0]].remote is not None:
            with ThreadPoolExecutor(min(_REMOTE_FILES, len(different))) as pool:
                list(pool.map(read, different))
        else:
            for file in different:
                read(file)
        return found

    def _batches(self, numbers: Array) -> Iterator[pa.RecordBatch]:
        """Batches of records, in the order asked."""
        sizes = np.concatenate([[0], np.cumsum(self._sizes(numbers))])
        begin = 0
        while begin < len(numbers):
            end = max(begin + 1, int(sizes.searchsorted(sizes[begin] + _CHUNK_BYTES, side="right")) - 1)
            yield from self._decode(numbers[begin:end])
            begin = end

    def _sizes(self, numbers: Array) -> Array:
        files = self._first.searchsorted(numbers, side="right") - 1
        sizes = np.empty(len(numbers), np.int64)
        for file in np.unique(files).tolist():
            asked = files == file
            records, bounds = numbers[asked] - self._first[file], self._indexes[file].bounds
            sizes[asked] = bounds[records + 1] - bounds[records]
        return sizes

    def _decode(self, numbers: Array) -> Iterator[pa.RecordBatch]:
        parts = self._frames(numbers)
        data = parts[0] if len(parts) == 1 else np.concatenate(parts)
        files = (self._first.searchsorted(numbers, side="right") - 1).tolist()
        places = [(file, number - int(self._first[file])) for file, number in zip(files, numbers.tolist(), strict=True)]
        done = at = 0
        while done < len(places):
            decoder = self._session.fixed.decoder(partial(self._meet_embedded, places, done))
            try:
                progress = decoder.feed(data, at, max_records=len(places) - done, max_bytes=_CHUNK_BYTES)
            except LateSchema as late:
                raise late.too_late() from None
            if progress.fault is not None:
                raise self._error(progress.fault, places[done + progress.fault.record], data)
            columns = {column.name: column for column in decoder.take()}
            batch, row_fault = self._session.builder.batch(columns, progress.records)
            if row_fault is not None:
                raise self._misfit(row_fault, places[done + row_fault.row])
            yield self._with_paths(batch, places[done : done + progress.records])
            done, at = done + progress.records, at + progress.consumed
        if at != len(data):
            file, number = places[-1]
            raise self._wrong_size(file, number)

    def _with_paths(self, batch: pa.RecordBatch, places: Sequence[tuple[int, int]]) -> pa.RecordBatch:
        name = self._options.include_file_paths
        if name is None:
            return batch
        paths = pa.array([self._sources[file].path for file, _ in places], pa.string())
        return batch.append_column(self._session.schema.field(name), paths)

    # Errors -----------------------------------------------------------------------------------------------------

    def _error(self, fault: Fault, place: tuple[int, int], data: Bytes) -> TFRecordError:
        file, number = place
        error = record_error(
            self._sources[file].path,
            replace(fault, record=0, offset=0),
            record=number,
            offset=int(self._indexes[file].bounds[number]),
            data=data,
            contradicts_sample=self._session.fixed.contradicts_sample,
            plan=self._session.fixed.plan,
        )
        error.records_intact = None  # nobody has looked
        return error

    def _misfit(self, fault: Any, place: tuple[int, int]) -> TFRecordError:
        file, number = place
        found: TFRecordError = fault.error(
            fault.reason,
            path=self._sources[file].path,
            record=number,
            offset=int(self._indexes[file].bounds[number]),
            feature=fault.feature,
            expected=fault.expected,
            got=fault.got,
        )
        return found

    def _wrong_size(self, file: int, number: int) -> TFRecordError:
        return CorruptRecordError(
            "a record that was asked for has another size than the index says",
            path=self._sources[file].path,
            record=number,
            offset=int(self._indexes[file].bounds[number]),
            advice="write the index anew: tfr index",
        )

    # What people call -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._first[-1])

    def __getitem__(self, key: Any) -> Any:
        """One record as a dict, by an integer; several as a pyarrow.Table, by a slice or by a sequence or array of integers.

        Raises
        ------
        IndexError
            There is no record of this number.
        TFRecordError
            A record is damaged or does not fit the schema; it is named.
        """
        if self._closed:
            raise ValueError("the file is closed")
        if isinstance(key, slice):
            return self._table(np.arange(*key.indices(len(self)), dtype=np.int64))
        number = _as_integer(key)
        if number is None:
            return self._table(self._inside(_as_integers(key)))
        (batch,) = self._batches(self._inside(np.array([number])))
        return {name: cell(column, 0) for name, column in zip(batch.schema.names, batch.columns, strict=True)}

    def _table(self, numbers: Array) -> pa.Table:
        return to_table(self._batches(numbers), self.schema)

    def _inside(self, numbers: Array) -> Array:
        """Numbers from the start, of records that are there."""
        count = len(self)
        wrong = (numbers < -count) | (numbers >= count)
        if wrong.any():
            raise IndexError(f"record {numbers[wrong.argmax()]} of {count}: there is none")
        return np.where(numbers < 0, numbers + count, numbers)

    def close(self) -> None:
        """Close the files."""
        self._closed = True
        while self._held:
            self._held.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._closed:
            raise ValueError("the file is closed")
        return RandomAccess, (self._sources, self._options, self._indexes)


def _as_integer(key: Any) -> int | None:
    """The key as one number; None if it is no number."""
    if isinstance(key, bool | np.bool_):
        raise TypeError("a record's number is an integer, not a bool")
    if getattr(key, "ndim", 0):
        return None
    try:
        return operator.index(key)
    except TypeError:
        return None


def _as_integers(key: Any) -> Array:
    if isinstance(key, str | bytes):
        raise TypeError(f"a record's number is an integer, not {type(key).__name__}")
    numbers = np.asarray(key)
    if numbers.size == 0 and numbers.ndim == 1:
        return np.empty(0, np.int64)
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        kind = "bools" if numbers.dtype.kind == "b" else f"a {type(key).__name__} ({numbers.ndim} dimensions, {numbers.dtype})"
        raise TypeError(f"records are asked for by an integer, a slice, or a sequence of integers, not by {kind}")
    return numbers.astype(np.int64, casting="same_kind" if numbers.dtype.kind == "i" else "unsafe")


@explained(ReadOptions, without=EVERY_RECORD)
def open_random(path: Any, **keywords: Any) -> RandomAccess:
    """Open TFRecord files for reading any of their records, by number.

    The places of the records are those of the index beside a file (``write_index=True``, ``tfr index``); without one all of
    its headers are looked at here. Records are read from the disk one by one, and from a bucket by ranges, several at a time.

    Parameters
    ----------
    {path}
        Plain files: a compressed one can be read from its start only.
    {keywords}

    Returns
    -------
    RandomAccess
        A context manager. ``records[i]`` is a dict: of a scalar its value, of a list or tensor an ndarray, None where it is
        missing. ``records[a:b]`` and ``records[[i, j]]`` are a pyarrow.Table, in the order asked for. ``len(records)``. The schema is
        fixed when this call returns, as by `open_reader`.

    Raises
    ------
    ValueError
        A file is compressed.
    CorruptRecordError
        A file is damaged, or its index does not fit it.
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
    for name in EVERY_RECORD:
        if name in keywords:
            raise TypeError(f"open_random has no keyword argument {name!r}")
    options = ReadOptions.of({**keywords, "threads": 1})
    sources = resolve_inputs(
        path,
        storage_options=dict(options.storage_options or {}),
        filesystem=options.filesystem,
        allow_missing_shards=options.allow_missing_shards,
    )
    return RandomAccess(sources, options)
