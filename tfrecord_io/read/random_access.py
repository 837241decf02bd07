"""Records by their number, of files that are too large to be read."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import to_table
from tfrecord_io.arrow.output.to_python import cell
from tfrecord_io.engine.contract import Array, Fault, Plan
from tfrecord_io.engine.fault_messages import record_error
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.format.kinds import RecordType
from tfrecord_io.index.indexed_files import IndexedFiles
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.read.chunk import DecodedChunk
from tfrecord_io.read.embedded_schemas import LateSchema
from tfrecord_io.read.resolve_schema import Session
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.block_reader import Bytes

Places = Sequence[tuple[int, int]]  # of records: the number of the file, and theirs in it

_CHUNK_BYTES = 64 * MIB  # of records that are read and decoded together
_NOT_HERE = (
    "offset",
    "limit",
    "on_error",
    "batch_size",
    "batch_bytes",
    "threads",
    "progress",
    "filters",
    "compression",
)


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

    def __init__(self, files: IndexedFiles, options: ReadOptions) -> None:
        self._files, self._options = files, options
        self._closed = False
        try:
            self._session = Session(files.sources, options)
            self._meet_all()
        except BaseException:
            self.close()
            raise
        self.schema, self.schema_source = self._session.schema, self._session.schema_source

    # The schema -------------------------------------------------------------------------------------------------

    def _meet_all(self) -> None:
        """See what the first record of each file carries: an embedded schema may say more than the first file's."""
        while True:
            self._session.units.close()  # a sample is held there
            self._session.reader.close()
            try:
                self._meet_first_records()
                return
            except LateSchema as late:
                self._session.restart(late)

    def _meet_first_records(self) -> None:
        setup = self._session.fixed
        if setup.as_bytes:
            return
        met = DecodedChunk("", 0, 0, 0, {})
        glance = replace(
            setup, plan=Plan(unknown="skip", record_type=RecordType.DETECT, check_crc=self._options.check_crc)
        )
        nonempty = [file for file, index in enumerate(self._files.indexes) if len(index)]
        for numbers in self._files.chunks(self._files.first[nonempty], _CHUNK_BYTES):
            files = self._files.locate(numbers)[0].tolist()
            for file, data in zip(files, self._files.frames(numbers), strict=True):
                decoder = glance.decoder(partial(self._meet_embedded, [(file, 0)], 0))
                decoder.feed(data)  # damage is told to who reads the record
                met.seen += decoder.seen
                met.foreign += decoder.foreign
        self._session.check_record_type([met])

    def _meet_embedded(self, places: Places, done: int, record: int, offset: int, content: bytes) -> None:
        file, number = places[done + record]
        self._session.fixed.on_embedded(
            self._files.sources[file].path, number, self._files.offset(file, number), content
        )

    # Records ----------------------------------------------------------------------------------------------------

    def _batches(self, numbers: Array) -> Iterator[pa.RecordBatch]:
        """Batches of records, in the order asked."""
        for chunk in self._files.chunks(numbers, _CHUNK_BYTES):
            yield from self._decode(chunk)

    def _decode(self, numbers: Array) -> Iterator[pa.RecordBatch]:
        parts = self._files.frames(numbers)
        data = parts[0] if len(parts) == 1 else np.concatenate(parts)
        files, records = self._files.locate(numbers)
        places = list(zip(files.tolist(), records.tolist(), strict=True))
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
            raise self._wrong_size(places[-1])

    def _with_paths(self, batch: pa.RecordBatch, places: Places) -> pa.RecordBatch:
        batch = self._session.folders.add_to(batch, [file for file, _ in places])
        name = self._options.include_file_paths
        if name is None:
            return batch
        paths = pa.array([self._files.sources[file].path for file, _ in places], pa.string())
        return batch.append_column(self._session.schema.field(name), paths)

    # Errors -----------------------------------------------------------------------------------------------------

    def _error(self, fault: Fault, place: tuple[int, int], data: Bytes) -> TFRecordError:
        file, number = place
        error = record_error(
            self._files.sources[file].path,
            replace(fault, record=0, offset=0),
            record=number,
            offset=self._files.offset(file, number),
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
            path=self._files.sources[file].path,
            record=number,
            offset=self._files.offset(file, number),
            feature=fault.feature,
            expected=fault.expected,
            got=fault.got,
        )
        return found

    def _wrong_size(self, place: tuple[int, int]) -> TFRecordError:
        file, number = place
        return CorruptRecordError(
            "this record, or one before it that was asked for as well, has another size than the index says",
            path=self._files.sources[file].path,
            record=number,
            offset=self._files.offset(file, number),
            advice="write the index anew: tfr index",
        )

    # What people call -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"<RandomAccess to {len(self):,} records of {self._session.words}>"

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
        return {field.name: cell(column, 0, field) for field, column in zip(batch.schema, batch.columns, strict=True)}

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
        self._files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._closed:
            raise ValueError("the file is closed")
        return RandomAccess, (self._files, self._options)


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
        kind = (
            "bools"
            if numbers.dtype.kind == "b"
            else f"a {type(key).__name__} ({numbers.ndim} dimensions, {numbers.dtype})"
        )
        raise TypeError(f"records are asked for by an integer, a slice, or a sequence of integers, not by {kind}")
    if numbers.dtype.kind == "u":
        numbers = np.minimum(
            numbers.astype(np.uint64), np.uint64(2**63 - 1)
        )  # no number wraps around to a negative one
    return numbers.astype(np.int64)


@document_keywords(ReadOptions, without=_NOT_HERE)
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
    for name in _NOT_HERE:
        if name in keywords:
            raise TypeError(f"open_random has no keyword argument {name!r}")
    options = ReadOptions.of({**keywords, "threads": 1})
    sources = resolve_inputs(path, options.storage, allow_missing_shards=options.allow_missing_shards)
    return RandomAccess(IndexedFiles(sources, options.max_record_bytes), options)
