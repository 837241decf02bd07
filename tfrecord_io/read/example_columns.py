"""Columns of serialized Examples to tables: what logs, messages and databases hold instead of files.

A column is decoded as a file is whose records are its values: `RecordColumn` is that file, of which a part is made when
it is read. So types are inferred, values checked and threads used as in `tfrecord_io.read_table`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, Limits, ReadOptions, check_keywords
from tfrecord_io.bytes import Array, FrameHeader, PlainStream, RecordCounts, get_engine
from tfrecord_io.columns import ArrayBuffers
from tfrecord_io.errors import DecodeError, TFRecordError
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.store import OpenPlainFile, Source
from tfrecord_io.typing import OnError, RecordTypeLike, SchemaLike

_BYTES = np.dtype(np.uint8)


@check_keywords
def decode_examples(
    records: Any,
    *,
    columns: Sequence[str] | str | None = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    schema_overrides: Mapping[str, Any] | None = None,
    stable_types: bool = False,
    infer_text: bool = True,
    record_type: RecordTypeLike | None = None,
    on_error: OnError = "raise",
    limits: Limits = Limits.DEFAULT,
    large_offsets: bool = False,
    threads: int | None = None,
) -> pa.Table:
    """Decode a column of serialized Examples or SequenceExamples: of a log, of messages, of a Parquet file.

    >>> import pyarrow as pa, tfrecord_io as tfr
    >>> log = pa.array(
    ...     [
    ...         tfr.encode_example({"user": 3, "query": b"shoes"}),
    ...         None,
    ...         tfr.encode_example({"user": 4}),
    ...     ]
    ... )
    >>> tfr.io.decode_examples(log).to_pydict()
    {'query': ['shoes', None, None], 'user': [3, None, 4]}

    Parameters
    ----------
    records : pyarrow.Array or ChunkedArray of binary, pandas or polars Series of bytes, or sequence of bytes
        Arrow's binary, large_binary, binary_view and fixed_size_binary, dictionaries of them, and anything with
        ``__arrow_c_array__`` or ``__arrow_c_stream__``. A null is decoded as a record without features: each of its
        columns has null, or the default that `schema` declares.
    columns, schema, on_error
        As in `read_tfrecord`.
    schema_overrides, stable_types, infer_text, record_type, limits, large_offsets, threads
        As in `dataset`.

    Returns
    -------
    pyarrow.Table
        A row for each value, as `tfrecord_io.read_table` reads a file of these records. Types are inferred from all of
        them; pass `schema` where several columns, such as batches of a stream, are to have the same.

    Raises
    ------
    TypeError
        `records` is not a column of bytes.
    DecodeError, SchemaError
        As in `tfrecord_io.read_table`; the error's `record` is the row. With ``on_error="skip"`` the table has no row
        for such a value; a function given as `on_error` gets the errors, and the row as `record` of each.
    """
    options = ReadOptions(
        columns=columns,
        schema=schema,
        schema_overrides=schema_overrides,
        stable_types=stable_types,
        infer_text=infer_text,
        record_type=record_type,
        on_error=on_error,
        limits=limits,
        large_offsets=large_offsets,
        threads=threads,
        check_crc=False,
    )
    if options.record_type == "bytes":
        raise ValueError("record_type='bytes': the column is that already")
    column = RecordColumn(_binary_arrays(records), f"<{type(records).__name__}>")
    try:
        with CallSource([column.source()]).open(options, whole=True) as reader:
            return reader.read_all()
    except TFRecordError as error:
        error.path = error.offset = error.records_intact = None  # these are about files
        if error.hint == RecordCounts.OTHER_MESSAGE:
            error.set_hint(None)
        raise


# ---- a column as a file


@dataclass(frozen=True, slots=True)
class _Chunk:
    """An array of a column: the extents of its values in `data`, and the file's offset after the frame of each."""

    data: Array
    starts: Array
    lengths: Array
    ends: Array


class RecordColumn(OpenPlainFile):
    """The file whose records are the values of binary arrays; see `tfrecord_io.store.read.source.DerivedContent`.

    Its bytes are made when they are read, by any number of threads; it has a name instead of a path.
    """

    can_be_read_again = False
    schema: bytes | None = None

    def __init__(self, arrays: Iterable[pa.Array], name: str) -> None:
        self.size, self._name = 0, name
        self._engine = get_engine()
        self._chunks: list[_Chunk] = []
        row = 0
        for array in filter(len, arrays):
            offsets = ArrayBuffers(array).offsets
            bounds, valid = offsets.astype(np.int64), ArrayBuffers(array).valid
            lengths = np.diff(bounds)
            if valid is not None:
                lengths[~valid] = 0
            longest = int(lengths.argmax())
            if lengths[longest] > LIMITS.MAX_RECORD_BYTES:
                reason = f"a record of {lengths[longest]} bytes is over protobuf's limit of {LIMITS.MAX_RECORD_BYTES}"
                got, expected = int(lengths[longest]), LIMITS.MAX_RECORD_BYTES
                raise DecodeError(reason, record=row + longest, expected=expected, got=got)
            ends = self.size + np.cumsum(lengths + FrameHeader.FRAME_BYTES)
            data = ArrayBuffers(array).content
            self._chunks.append(_Chunk(data, bounds[:-1], lengths, ends))
            self.size = int(ends[-1])
            row += len(array)
        self._ends = np.array([chunk.ends[-1] for chunk in self._chunks], np.int64)

    def source(self) -> Any:
        """The source of the file."""
        return Source.in_memory(self._name, self.size, self)

    def open(self) -> PlainStream:
        return self.stream(self._name)

    def read_once(self) -> None:
        """It can be read any number of times."""

    def read_into(self, buffer: Array, begin: int) -> int:
        done, first = 0, int(self._ends.searchsorted(begin, side="right"))
        for chunk in self._chunks[first:]:
            if done == len(buffer):
                break
            at = begin + done
            row = int(chunk.ends.searchsorted(at, side="right"))
            last = int(chunk.ends.searchsorted(begin + len(buffer))) + 1
            skip = at - int(chunk.ends[row] - chunk.lengths[row] - FrameHeader.FRAME_BYTES)
            starts, lengths = chunk.starts[row:last], chunk.lengths[row:last]
            done += self._engine.frame_window(chunk.data, starts, lengths=lengths, skip=skip, out=buffer[done:])
        return done


def _binary_arrays(records: Any) -> Iterator[pa.Array]:
    """The arrays of a column, of binary or large_binary."""
    column = _arrow_column(records)
    for array in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if t.is_dictionary(array.type):
            array = array.dictionary_decode()
        if not (t.is_binary(array.type) or t.is_large_binary(array.type)):
            if not (t.is_binary_view(array.type) or t.is_fixed_size_binary(array.type) or t.is_null(array.type)):
                raise TypeError(f"expected a column of bytes, got {array.type}")
            array = array.cast(pa.large_binary())
        yield array


def _arrow_column(records: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(records, pa.Array | pa.ChunkedArray):
        return records
    if isinstance(records, str | bytes | bytearray | memoryview):
        advice = "tfr.decode_example decodes a single record, tfr.read_table reads files"
        raise TypeError(f"expected a column of records, got {type(records).__name__}; {advice}")
    if isinstance(records, pa.Table | pa.RecordBatch) or hasattr(records, "columns"):
        raise TypeError(f"expected a column, got {type(records).__name__}; select one of its columns")
    if hasattr(records, "__arrow_c_stream__"):
        return pa.chunked_array(records)
    if hasattr(records, "__arrow_c_array__"):
        return pa.array(records)
    if not isinstance(records, Iterable):
        raise TypeError(f"expected a column of records, got {type(records).__name__}")
    values = records if hasattr(records, "__array__") else list(records)
    if isinstance(values, np.ndarray) and values.dtype.kind == "S":
        lost = "NumPy's values without the zero bytes at their ends"
        raise TypeError(f"expected a column of bytes, got {lost}: pass an array of objects")
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(f"expected a column of bytes: {error}") from error
