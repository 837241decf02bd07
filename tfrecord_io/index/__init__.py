"""Indexes: the offset of each record of a file, computed, stored in a sidecar file, and checked against the file.

The sidecar ``x.tfrecord.index`` has the format of NVIDIA DALI (``tfrecord2idx``) and the ``tfrecord`` package: a text
line ``<offset> <size>`` for each record, of its whole frame, without a header.
"""

from tfrecord_io.index.find_index import find_indexes, read_index
from tfrecord_io.index.record_index import SUFFIX, RecordIndex, scan_index, scan_sizes

__all__ = ["SUFFIX", "RecordIndex", "find_indexes", "read_index", "scan_index", "scan_sizes"]

from tfrecord_io.public_names import refuse_calls

refuse_calls(__name__)
