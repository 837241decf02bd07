"""Rows in, to published files and datasets.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names, refuse_calls

_HOMES = {
    "DistributedWriter": "distributed",  # One writing of a sharded dataset by several processes
    "OpenPart": "distributed",  # An attempt at a task, to which tables are written one by one
    "WrittenPart": "distributed",  # The result of an attempt at a task
    "FrameSink": "frame_sink",  # Writes framed records, through a compressor if any
    "PayloadSink": "frame_sink",  # Keeps the payloads of records, for an array of them
    "WrittenFile": "frame_sink",  # A file that was written
    "ResumableWriter": "resumable",  # One writing of a dataset, which a later process may go on with
    "write": "writer",  # Write one table
    "Writer": "writer",  # Writes tables to one file or to the shards of a dataset
    "WriteReport": "writer",  # Report of a writing
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
refuse_calls(__name__)
