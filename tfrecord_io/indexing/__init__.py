"""Where each record of a file stands: found, kept beside the file, and checked against it.

The file beside, ``x.tfrecord.index``, is that of NVIDIA DALI (``tfrecord2idx``) and of the ``tfrecord`` package: a text
line ``<offset> <size>`` for each record, of its whole frame, without a header.
"""

from tfrecord_io.indexing.fitting import find_indexes, read_index
from tfrecord_io.indexing.index import SUFFIX, SUFFIXES, Index
from tfrecord_io.indexing.output import IndexOutput
from tfrecord_io.indexing.scanning import scan_index, scan_sizes

__all__ = ["SUFFIX", "SUFFIXES", "Index", "IndexOutput", "find_indexes", "read_index", "scan_index", "scan_sizes"]
