"""Tuned sizes, such as of blocks, ranges and batches, and the limits of the format.

Tests read and write small files with smaller ones: `tests/support/limited.py`.

Tests: tests/base/options/test_options.py.
"""

from __future__ import annotations

from typing import ClassVar

from tfrecord_io.base.options.options_base import INT64_MAX, MIB
from tfrecord_io.errors import EncodeError

_MAX_RECORD_BYTES = 2**31 - 1
_MOST_LEVELS = 120  # of lists in each other, as many as a type has, at most


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

    split_bytes: int = 128 * MIB  # of a piece of a dataset, one of those that parallel tasks read
    decompressed_free_bytes: int = MIB  # that a file may decompress to whatever the ratio: its start may be uniform

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

    # Of partitions that are written at a time, in a bucket, where each has parts in memory, and on a disk.
    open_folders: tuple[int, int] = (4, 32)

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
