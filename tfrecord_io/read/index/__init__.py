"""Indexes: the offset of each record of a file, computed, stored in a sidecar file, and checked against the file.

The sidecar ``x.tfrecord.index`` has the format of NVIDIA DALI (``tfrecord2idx``) and the ``tfrecord`` package: a text
line ``<offset> <size>`` for each record, of its whole frame, without a header.
"""

SMALL_BYTES = 256 << 10  # a file up to this size is compared by all of its records: they are one range
THREADS = 16  # that read indexes of several files, or records by them
