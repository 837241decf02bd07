"""Random access: records by their number, without reading the files."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import to_table
from tfrecord_io.arrow.output.to_python import cell
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array, Fault, Plan
from tfrecord_io.engine.fault_messages import record_error
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.format.kinds import RecordType
from tfrecord_io.index.indexed_files import IndexedFiles
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.read.chunk import ChunkDecoder, DecodeSettings
from tfrecord_io.read.embedded_schemas import EmbeddedSchema, SchemaRevision
from tfrecord_io.read.resolve_schema import Planned, plan_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.block_reader import Bytes

Places = Sequence[tuple[int, int]]  # of records: the number of the file, and the index in it

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

    A sequence and a context manager. Threads may share it, and a forked process may go on with it. It can be pickled; where
    it is unpickled it opens its files, and nothing is inferred again.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the tables.
    schema_source : str
        As in `ReadReport`.
    """

    def __init__(self, files: IndexedFiles, scan: Scan) -> None:
        self._files, self._scan = files, scan
        self._check = scan.embedded_check
        self._closed = False
        self.schema, self.schema_source = scan.schema, scan.resolved.source

    # Records ----------------------------------------------------------------------------------------------------

    def _batches(self, numbers: Array) -> Iterator[pa.RecordBatch]:
        """Batches of records, in the order requested."""
        for chunk in self._files.chunks(numbers, _CHUNK_BYTES):
            yield from self._decode(chunk)

    def _decode(self, numbers: Array) -> Iterator[pa.RecordBatch]:
        parts = self._files.frames(numbers)
        data = parts[0] if len(parts) == 1 else np.concatenate(parts)
        files, records = self._files.locate(numbers)
        places = list(zip(files.tolist(), records.tolist(), strict=True))
        settings = self._scan.settings
        done = at = 0
        while done < len(places):
            decoder = settings.decoder()
            first = done
            while True:
                progress = decoder.feed(data, at, max_records=len(places) - done, max_bytes=_CHUNK_BYTES)
                done, at = done + progress.records, at + progress.consumed
                if progress.fault is not None:
                    raise self._error(progress.fault, places[done], data)
                if not progress.embedded:
                    break
                self._check_embedded(places[done], progress.embedded)
                decoder.accept_embedded()
            columns = {column.name: column for column in decoder.take()}
            batch, row_fault = self._scan.builder.batch(columns, done - first)
            if row_fault is not None:
                raise self._misfit(row_fault, places[first + row_fault.row])
            yield self._with_paths(batch, places[first:done])
        if at != len(data):
            raise self._wrong_size(places[-1])

    def _check_embedded(self, place: tuple[int, int], contents: Sequence[bytes]) -> None:
        file, record = place
        for content in contents:
            offset = self._files.offset(file, record)
            verdict = self._check.check(self._files.sources[file].path, record, offset, content)
            if isinstance(verdict, SchemaRevision):
                raise verdict.late_error()
            if verdict is not None:
                raise verdict

    def _with_paths(self, batch: pa.RecordBatch, places: Places) -> pa.RecordBatch:
        sources = [self._files.sources[file] for file, _ in places]
        batch = self._scan.partitions.add_to(batch, sources, self.schema)
        name = self._scan.options.include_file_paths
        if name is None:
            return batch
        paths = pa.array([source.path for source in sources], pa.string())
        return batch.append_column(self.schema.field(name), paths)

    # Errors -----------------------------------------------------------------------------------------------------

    def _error(self, fault: Fault, place: tuple[int, int], data: Bytes) -> TFRecordError:
        file, number = place
        error = record_error(
            self._files.sources[file].path,
            replace(fault, record=0, offset=0),
            record=number,
            offset=self._files.offset(file, number),
            data=data,
            contradicts_sample=self._scan.settings.contradicts_sample,
            plan=self._scan.settings.plan,
        )
        error.records_intact = None  # the records before it were not read
        return error

    def _misfit(self, fault: RowFault, place: tuple[int, int]) -> TFRecordError:
        file, number = place
        error = fault.to_error(path=self._files.sources[file].path, record=number)
        error.offset = self._files.offset(file, number)
        return error

    def _wrong_size(self, place: tuple[int, int]) -> TFRecordError:
        file, number = place
        return CorruptRecordError(
            "this record, or an earlier one that was requested with it, does not have the size in the index",
            path=self._files.sources[file].path,
            record=number,
            offset=self._files.offset(file, number),
            advice="rebuild the index: tfr index",
        )

    # Public methods -------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"<RandomAccess to {len(self):,} records of {self._scan}>"

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
        return RandomAccess, (self._files, self._scan)


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
    files = IndexedFiles(sources, options.max_record_bytes)
    try:
        return RandomAccess(files, _plan(files, options))
    except BaseException:
        files.close()
        raise


def _plan(files: IndexedFiles, options: ReadOptions) -> Scan:
    """Plan under the embedded schemas of all files: that of a later one may have more columns than the first."""
    embedded: EmbeddedSchema | None = None
    while True:
        planned = plan_scan(files.sources, options, embedded=embedded)
        scan = planned.close()
        if scan.settings.as_bytes:
            return scan
        revision = _check_first_records(files, planned)
        if revision is None:
            return scan
        revision.warn_if_late()
        embedded = revision.embedded


def _check_first_records(files: IndexedFiles, planned: Planned) -> SchemaRevision | None:
    """Look at the first record of each file: the embedded schemas, and whether any has a feature."""
    scan, check = planned.scan, planned.scan.embedded_check
    glance = DecodeSettings(Plan(unknown="skip", record_type=RecordType.DETECT, check_crc=scan.options.check_crc))
    seen = foreign = 0
    nonempty = [file for file, index in enumerate(files.indexes) if len(index)]
    for numbers in files.chunks(files.first[nonempty], _CHUNK_BYTES):
        for file, data in zip(files.locate(numbers)[0].tolist(), files.frames(numbers), strict=True):
            decoder = ChunkDecoder(glance, check)
            step = decoder.feed(data, files.sources[file].path, 0, 0)  # damage is reported when the record is read
            if step.error is not None:
                raise step.error
            if step.revision is not None:
                return step.revision
            seen, foreign = seen + decoder.seen, foreign + decoder.foreign
    planned.opened.check_record_type(seen, foreign)
    return None
