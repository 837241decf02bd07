"""The records of keys: the values of one column, held in memory, each of which is found in constant time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import cached_property, ordered, printable
from tfrecord_io.bytes import Array, get_engine
from tfrecord_io.columns import ArrayBuffers, Column
from tfrecord_io.errors import CorruptRecordError, SchemaError
from tfrecord_io.read.index import THREADS
from tfrecord_io.read.index.column_index import COLUMNS_SUFFIX
from tfrecord_io.read.index.column_search import column_indexes
from tfrecord_io.read.index.find_index import open_columns, unless_stale
from tfrecord_io.read.index.indexed_files import IndexedFiles
from tfrecord_io.store import Source
from tfrecord_io.typing import KeepKey

_MOST_KEYS = 2**32 - 1
_NARROW_KEY_BYTES = 2**31 - 1  # that offsets of 32 bits reach
_SHOWN = 5  # keys in a message


class KeyIndex:
    """Finds records by their keys, one in `chunks` for each; a record without one, null, is not found.

    Threads may share it; it can be pickled. SchemaError if the column is not text, bytes or integers, or a key occurs
    more than once, and `keep` is None.
    """

    def __init__(self, field: pa.Field, chunks: Iterable[pa.Array], keep: KeepKey | None = None) -> None:
        self.name, self.keep, self._type = field.name, keep, key_type(field)
        self._hold(*_key_bytes(list(chunks), self._type))
        if self._table.repeated and keep is None:
            count, examples = self._table.repeated, self._table.examples()
            have = "1 record has" if count == 1 else f"{count:,} records have"
            shown = ", ".join(f"{self._show_key(first)} (records {first} and {row})" for first, row in examples)
            reason = f"{have} the key of an earlier record: {shown}{', …' if count > len(examples) else ''}"
            advice = 'keep="first" finds the first record of each key, and all(key) then finds each of them'
            advice_cli = "--keep first finds the first record of each key"
            raise SchemaError(reason, feature=self.name, got=count, hint=advice, hint_cli=advice_cli)

    def _hold(self, data: Array, offsets: Array | None, valid: Array | None) -> None:
        self._data, self._offsets, self._valid = data, offsets, valid
        self._is_text, self._is_signed = t.is_large_string(self._type), t.is_int64(self._type)
        self._table = get_engine().key_table(data, offsets, valid)
        self._find = self._table.find

    def find(self, key: Any) -> int:
        """The number of the record with a key; −1 if no record has it. TypeError if the key is of another type."""
        if self._offsets is None:
            if isinstance(key, int | np.integer) and not isinstance(key, bool):
                try:
                    return self._find(int(key).to_bytes(8, "little", signed=self._is_signed))
                except OverflowError:
                    return -1
        elif self._is_text and isinstance(key, str):
            try:
                return self._find(key.encode())
            except UnicodeEncodeError:  # a lone surrogate, which no text in a file has
                return -1
        elif isinstance(key, bytes) and not self._is_text:
            return self._find(key)
        noun = "integers" if self._offsets is None else "text" if self._is_text else "bytes"
        raise TypeError(f"the keys in column {self.name!r} are {noun}, not {type(key).__name__}")

    def numbers_of(self, key: Any) -> list[int]:
        """The numbers of all records with a key, ascending; see `find`.

        The first call sorts the keys, which takes about a second for ten million.
        """
        first = self.find(key)
        if first < 0 or not self._table.repeated:
            return [] if first < 0 else [first]
        codes, starts, order = self._groups
        begin, end = starts[codes[first] : codes[first] + 2]
        return order[begin:end].tolist()

    def has_key(self, number: int, key: Any) -> bool:
        """True if a record's key, as it was read, is the one that is held for the record."""
        first = -1 if key is None else self.find(key)
        if first < 0 or not self._table.repeated:
            return first == number
        codes = self._groups[0]
        return bool(codes[first] == codes[number])

    @cached_property
    def _groups(self) -> tuple[Array, Array, Array]:
        """The number of each record's key, where the records of a key begin, and the records sorted by key."""
        if self._offsets is None:
            keys = pa.array(self._data.view(np.int64))
        else:
            type_ = pa.binary() if self._offsets.dtype == np.int32 else pa.large_binary()
            buffers = [None, pa.py_buffer(self._offsets), pa.py_buffer(self._data)]
            keys = pa.Array.from_buffers(type_, len(self._offsets) - 1, buffers)
        encoded = keys.dictionary_encode()
        codes, count = encoded.indices.to_numpy(), len(encoded.dictionary)
        if self._valid is not None:
            codes = np.where(self._valid, codes, count)  # after all keys
        starts = np.append(0, np.cumsum(np.bincount(codes, minlength=count + 1)))
        return codes, starts, np.argsort(codes, kind="stable")

    def is_key_of(self, number: int, key: Any) -> bool:
        """True if looking up a record's key, as it was read, finds the record."""
        return key is not None and self.find(key) == number

    def find_all(self, keys: Iterable[Any], *, each: bool = False) -> Array:
        """The numbers of the records with keys; KeyError if one of them is of no record.

        With `each`, those of all records with each key, else of the one that `find` finds.
        """
        to_list = getattr(keys, "to_pylist", None) or getattr(keys, "tolist", None)  # of Arrow, of NumPy and pandas
        asked = list(keys) if to_list is None else to_list()
        numbers = np.fromiter(map(self.find, asked), np.int64, len(asked))
        missing = np.flatnonzero(numbers < 0)
        if len(missing):
            shown = ", ".join(printable(repr(asked[row]), 80) for row in missing[:_SHOWN].tolist())
            more = ", …" if len(missing) > _SHOWN else ""
            raise KeyError(f"{len(missing)} of {len(asked)} keys not found: {shown}{more}")
        if not each or not self._table.repeated:
            return numbers
        return np.array([number for key in asked for number in self.numbers_of(key)], np.int64)

    def _show_key(self, row: int) -> str:
        if self._offsets is None:
            dtype = np.int64 if self._is_signed else np.uint64
            return str(self._data.view(dtype)[row])
        key = self._data[self._offsets[row] : self._offsets[row + 1]].tobytes()
        return printable(repr(key.decode() if self._is_text else key), 80)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.name, self.keep, self._type, self._data, self._offsets, self._valid

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.name, self.keep, self._type, *arrays = state
        self._hold(*arrays)


def key_type(field: pa.Field) -> pa.DataType:
    """The type of keys in a column: large_string, large_binary, int64 or uint64; SchemaError if it can have none."""
    value = field.type.value_type if t.is_dictionary(field.type) else field.type
    if Column(value).is_text:
        return pa.large_string()
    if Column(value).is_bytes or t.is_fixed_size_binary(value):
        return pa.large_binary()
    if t.is_integer(value):
        return pa.uint64() if t.is_uint64(value) else pa.int64()
    reason = f"a key is text, bytes or an integer, not {Column(field).logical_name}"
    raise SchemaError(
        reason, feature=field.name, hint="name another column by key=", hint_cli="name another column by --key"
    )


def _key_bytes(chunks: Sequence[pa.Array], type_: pa.DataType) -> tuple[Array, Array | None, Array | None]:
    """The bytes of keys, the offsets of text and bytes, and which rows have a key if some have none."""
    rows = sum(map(len, chunks))
    if rows > _MOST_KEYS:
        raise ValueError(f"{rows:,} records are more than can be found by a key: {_MOST_KEYS:,}")
    is_wide = not t.is_integer(type_) and sum(chunk.nbytes for chunk in chunks) > _NARROW_KEY_BYTES
    narrow = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
    key_type = type_ if is_wide else narrow.get(type_, type_)
    keys = pa.concat_arrays([pa.nulls(0, key_type), *(chunk.cast(key_type) for chunk in chunks)])
    valid = ArrayBuffers(keys).valid
    if t.is_integer(type_):
        numbers = keys.fill_null(0) if keys.null_count else keys
        return ArrayBuffers(numbers).numbers.view(np.uint8), None, valid
    _, offsets, data = keys.buffers()
    ends = np.frombuffer(offsets, np.int64 if is_wide else np.int32)[keys.offset : keys.offset + rows + 1]
    return np.frombuffer(data, np.uint8) if data else np.empty(0, np.uint8), ends, valid


def indexed_keys(files: IndexedFiles, field: pa.Field) -> list[list[pa.Array] | None]:
    """The column of each file, as its column index has it; None for a file whose column has to be read.

    An index that is damaged or does not match its file is not used, with a StaleIndexWarning unless the offsets of the
    same index were refused before.
    """

    def chunks_of_file(file: int, index_source: Source | None) -> list[pa.Array] | None:
        if index_source is None or len(files.indexes[file]) != files.count(file):  # some of its entries are damaged
            return None
        opened, record_index = files.open_file(file), files.indexes[file]
        with open_columns(index_source, files.sources[file], opened, known=record_index) as (columns, index):
            if not columns.has(field):
                return None
            if index is not record_index and (index is None or not np.array_equal(index.bounds, record_index.bounds)):
                reason = f"it has {len(columns.numbers)} records, the file {len(record_index)}, or at other offsets"
                raise CorruptRecordError(f"the column index does not match its file: {reason}", path=columns.path)
            return list(columns.columns([field]).column(0).chunks)

    found_before = [index for index in files.index_sources if index is None or index.path.endswith(COLUMNS_SUFFIX)]
    is_known = len(found_before) == len(files.sources)  # else a file has another index, and perhaps this one, too
    indexes = enumerate(found_before if is_known else column_indexes(files.sources))
    calls = (partial(unless_stale, partial(chunks_of_file, *numbered)) for numbered in indexes)
    results = list(ordered(calls, min(THREADS, max(1, len(files.sources))), "keys"))
    files.warn_of_stale(text for _, text in results)
    return [keys for keys, _ in results]
