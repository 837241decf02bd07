"""Files: which a path means, opened for reading in blocks, and written whole or not at all."""

from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.paths.resolve_output import Output, resolve_output
from tfrecord_io.storage.paths.shard_names import shard_name
from tfrecord_io.storage.read.block_reader import Block, BlockReader
from tfrecord_io.storage.read.open_stream import open_source
from tfrecord_io.storage.read.source import Source
from tfrecord_io.storage.write.atomic import open_output
from tfrecord_io.storage.write.output_file import OutputFile

__all__ = [
    "Block",
    "BlockReader",
    "Output",
    "OutputFile",
    "Source",
    "open_output",
    "open_source",
    "resolve_inputs",
    "resolve_output",
    "shard_name",
]
