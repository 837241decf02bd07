"""Limits on the resources of untrusted files (`Limits`), and tuned sizes, such as of blocks (`LIMITS`).

A few bytes can state large values: a tensor of one repeated value, a type whose nulls are large, a name that makes a
column. What is made of them has a budget, an `Expansion`: `Limits.expansion_bytes` bytes, and `RATIO` bytes for each
byte read. Tests read and write small files with smaller tuned limits: `tests/support/limited.py`.

Tests: tests/faults/test_expansion.py and tests/base/options/test_options.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from numbers import Real
from typing import Any, ClassVar, TypeVar

from tfrecord_io.base.options.options_base import INT64_MAX, MIB, check_integer
from tfrecord_io.errors import EncodeError

T = TypeVar("T")
_MAX_RECORD_BYTES = 2**31 - 1
_EXPANSION_BYTES = 256 * MIB
_MOST_LEVELS = 120  # of lists in each other, as many as a type has, at most


def _check_keywords(cls: type[T]) -> type[T]:
    """Make the error for an unknown keyword of a constructor name the one meant."""
    init, names = cls.__init__, cls.__dataclass_fields__.keys()  # type: ignore[attr-defined]

    @wraps(init)
    def check_and_set(self: T, *values: Any, **keywords: Any) -> None:
        for name in keywords.keys() - names:
            from tfrecord_io.base.options.did_you_mean import unknown_keyword  # for mistakes only

            raise unknown_keyword(name, names, cls)
        init(self, *values, **keywords)

    cls.__init__ = check_and_set  # type: ignore[assignment]
    return cls


@_check_keywords
@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits on what an untrusted file may use; exceeding one is an error.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2]}, "foreign.tfrecord")
    >>> limits = tfr.Limits(record_bytes=1 << 20, features=100, decompression_ratio=100)
    >>> tfr.read_table(tfr.dataset("foreign.tfrecord", limits=limits))["x"].to_pylist()
    [1, 2]

    Parameters
    ----------
    record_bytes : int, default 2**31 - 1
        Bytes of a record.
    features : int, default 100,000
        Distinct names of features; in files of other formats, columns and fields.
    expansion_bytes : int, default 256 MiB
        Bytes of memory that data may take beyond 512 times the bytes it is read from: the rows of a batch, or all rows
        if they are read at once. A few bytes can state tensors of a repeated value, wide types or many columns; the
        batches of a stream end earlier. Types in ``schema=`` do not count. Arrays that are padded to the longest list,
        or have rows of missing lists, may take as much beyond their values.
    decompression_ratio : float, optional
        How many times the bytes read of a compressed file it may decompress to, beyond 1 MiB: a CompressionError after
        the records before. None: no limit. Text that repeats may reach 1,000.
    """

    DEFAULT: ClassVar[Limits]  # where a call states none

    record_bytes: int = _MAX_RECORD_BYTES
    features: int = 100_000
    expansion_bytes: int = _EXPANSION_BYTES
    decompression_ratio: float | None = None

    def __post_init__(self) -> None:
        limits = {"record_bytes": _MAX_RECORD_BYTES, "features": INT64_MAX, "expansion_bytes": INT64_MAX}
        for name, maximum in limits.items():
            object.__setattr__(self, name, check_integer(name, getattr(self, name), 1, maximum))
        ratio = self.decompression_ratio
        if isinstance(ratio, bool) or not isinstance(ratio, Real | None):
            raise TypeError(f"decompression_ratio={ratio!r}: expected a number or None")
        if ratio is not None and not float(ratio) >= 1:
            raise ValueError(f"decompression_ratio={ratio!r}: expected at least 1")


Limits.DEFAULT = Limits()


class Expansion:
    """The budget for memory of rows held at a time."""

    DEFAULT_BYTES: ClassVar = _EXPANSION_BYTES
    RATIO: ClassVar = 512  # plain values take at most 8 bytes for each that is read; sparse columns, tensors may more
    BYTES_PER_CELL: ClassVar = 8  # of a column whose type is not known yet

    def __init__(self, limit: int = _EXPANSION_BYTES, bytes_read: int = 0) -> None:
        self.limit = limit  # the option `Limits.expansion_bytes`
        self.room = limit  # bytes left; never negative
        self.add(bytes_read)

    def add(self, bytes_read: int) -> None:
        """Extend the room by what these bytes account for."""
        self.room += self.RATIO * bytes_read

    def take(self, size: int) -> bool:
        """True if `size` bytes fit; they then count as taken."""
        if size > self.room:
            return False
        self.room -= size
        return True

    def excess(self, reason: str) -> str:
        """`reason`, which states a size that does not fit, with the limit."""
        return f"{reason}; tfr.dataset(…, limits=tfr.Limits(expansion_bytes={self.limit})) leaves room for {self.room}"

    def advice(self, size: int) -> str:
        """Advice for a caller who intends `size` bytes that do not fit."""
        return (
            "if this is intended, pass tfr.dataset(…, limits=tfr.Limits(expansion_bytes="
            f"{self.limit + size - self.room})) or more"
        )

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Make this the `current` one."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    @staticmethod
    def current() -> Expansion:
        """The one that the values being decoded count towards."""
        return _current.get() or Expansion()


_current: ContextVar[Expansion | None] = ContextVar("expansion", default=None)


class TunedLimits:
    """The limits of this process; each was chosen by measuring, its comment says what it balances.

    Tests alone assign others. A dataclass with as many fields would take a millisecond of each import.
    """

    MAX_RECORD_BYTES: ClassVar = _MAX_RECORD_BYTES  # the most bytes of a record: protobuf's limit
    INT64_MAX: ClassVar = INT64_MAX

    # reading files: blocks, segments and parts
    block_bytes: int = 4 * MIB  # of a file that is decoded, or walked over by a thread; a file of two is worth threads
    # Of a file at a time, which stays in the processor's cache; smaller ones would make threads wait for the GIL. A
    # segment has at least one; one whose rows become a part of a batch has one.
    window_bytes: int = 2 * MIB
    ahead_bytes: int = 16 * MIB  # of a record, or a file, that a thread reads in advance: each takes memory
    skipped_record_bytes: int = 128 << 10  # reading only headers is faster for larger records
    decoded_file_bytes: int = MIB // 4  # a file with fewer is not worth a task
    segment_records: int = 4  # at least, as the search of its first record reads half a record
    segment_column_bytes: int = 24 << 10  # for each column: making one takes as long as decoding several KiB
    copied_share: float = 0.5  # of the bytes of a record: appending them to a batch takes as long as decoding them
    whole_object_bytes: int = 256 << 10  # of a bucket that is read whole, which takes about as long as a request

    # column indexes: values by whether a file is on a disk
    least_piece_bytes: int = 32 * MIB  # a smaller piece of a file is read in the time that opening the index takes
    # of a file, in a bucket and on a disk, take the time of a row of an index
    index_row_bytes: tuple[int, int] = (16, 128)
    task_ranges: int = 32  # of one file; twice as many are read ahead, of one or several
    # of a file, in a bucket and on a disk: reading it whole is as fast
    largest_share: tuple[float, float] = (0.5, 0.25)

    # requests to stores
    tries: int = 5
    backoff_seconds: float = 0.1  # before the second try; doubled before each further one
    pending_range_bytes: int = 64 * MIB  # requested or received but unused, over all files of a window
    head_bytes: int = 64 << 10  # of a file whose first record is read, for its schema
    first_range_bytes: int = 256 << 10  # if reading on is uncertain
    stream_range_bytes: int = MIB  # first ranges, if all will be read
    largest_range_bytes: int = 8 * MIB
    s3_part_bytes: int = 6 * MIB

    gap_bytes: tuple[int, int] = (256 << 10, 32 << 10)  # read to save a request, in a bucket and on a disk

    # writing
    piece_bytes: int = MIB  # about; a record that is larger is a piece
    spool_memory_bytes: int = 64 * MIB  # more of a pipe, or of rows of unknown number, is kept on disk
    compression_block_bytes: int = MIB

    batch_rows: int = 65_536  # of a batch that is made of other data, or that a shuffle buffer takes at a time
    batch_bytes: int = 64 * MIB  # of arrays in such a batch, or of records that are read by number together

    # arrays
    joined_bytes: int = 8 * MIB  # fewer are copied in about the time that it takes to start threads

    # files of other formats
    text_block_bytes: int = 8 * MIB  # of CSV and JSON lines; types are inferred from the first one
    file_batch_bytes: int = 32 * MIB  # of files in a batch

    def check_nesting(self, level: int) -> None:
        """Refuse values that are nested deeper than those of any column, with an EncodeError."""
        if level > _MOST_LEVELS:
            raise EncodeError(f"its values are nested more than {_MOST_LEVELS} levels deep", hint="flatten them")

    def too_large(self, what: str = "the record") -> str:
        """The reason of an error about what would be larger than a record can be."""
        return f"{what} would exceed {self.MAX_RECORD_BYTES} bytes, protobuf's limit"


LIMITS = TunedLimits()
