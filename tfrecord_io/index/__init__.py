"""Where each record of a file stands: found, kept beside the file, and checked against it.

The file beside, ``x.tfrecord.index``, is that of NVIDIA DALI (``tfrecord2idx``) and of the ``tfrecord`` package: a text
line ``<offset> <size>`` for each record, of its whole frame, without a header.
"""

from tfrecord_io.index.header_scan import scan_index, scan_sizes
from tfrecord_io.index.index_writer import IndexWriter
from tfrecord_io.index.lookup import find_indexes, read_index
from tfrecord_io.index.record_index import SUFFIX, SUFFIXES, Index

__all__ = ["SUFFIX", "SUFFIXES", "Index", "IndexWriter", "find_indexes", "read_index", "scan_index", "scan_sizes"]
