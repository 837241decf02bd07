"""Rows in, to published files and datasets.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names, refuse_calls

_HOMES = {
    "adopt_files": "adopting",  # Write a manifest for files of another writer, which makes them a dataset
    "CompactReport": "compacting",  # Report of a compaction
    "compact_shards": "compacting",  # Join small neighbouring shards of a dataset
    "CopiedRecords": "copied_records",  # Records of files, in order, with every checksum checked (of a selection
    "Frames": "copied_records",  # Frames of records as bytes, with their sizes
    "selected": "copied_records",  # Select records, in the order of their `indices`
    "DeleteReport": "deleting",  # Rows and files deleted, or to be deleted in a dry run
    "delete_rows": "deleting",  # Remove the rows of a dataset, or of one file, that meet a condition
    "DistributedWriter": "distributed",  # One writing of a sharded dataset by several processes
    "OpenPart": "distributed",  # An attempt at a task, to which tables are written one by one
    "WrittenPart": "distributed",  # The result of an attempt at a task
    "FrameSink": "frame_sink",  # Writes framed records, through a compressor if any
    "PayloadSink": "frame_sink",  # Keeps the payloads of records, for an array of them
    "Piece": "frame_sink",  # Complete frames, and what a sink needs to know about them
    "WrittenFile": "frame_sink",  # A file that was written
    "try_add_prefix": "frame_sink",  # A framed record with fields in front of its payload
    "RecordOutput": "record_output",  # Writes copied records to a file or a dataset
    "record_outputs": "record_output",  # Open outputs for records
    "say_published": "record_output",  # State in an error what was published before it
    "RecordWriter": "record_writer",  # Write payloads to a TFRecord file
    "ResumableWriter": "resumable",  # One writing of a dataset, which a later process may go on with
    "SchemaUnion": "sharded_sink",  # Unites a dataset's schema with the schema of added rows
    "Spool": "sharded_sink",  # Keeps bytes by number until they are read once
    "WriteReport": "writer",  # Report of a writing
    "Writer": "writer",  # Writes tables to one file or to the shards of a dataset
    "write": "writer",  # Write one table
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
refuse_calls(__name__)
