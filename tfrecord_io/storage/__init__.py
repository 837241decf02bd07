"""Files: which a path means, opened for reading in blocks, and written whole or not at all."""

from tfrecord_io.storage.blocks import Block, BlockReader, BufferPool
from tfrecord_io.storage.commit import open_output
from tfrecord_io.storage.opening import open_source
from tfrecord_io.storage.output_file import OutputFile
from tfrecord_io.storage.outputs import Output, resolve_output
from tfrecord_io.storage.paths import resolve_inputs
from tfrecord_io.storage.shards import shard_name
from tfrecord_io.storage.sources import Source

__all__ = [
    "Block",
    "BlockReader",
    "BufferPool",
    "Output",
    "OutputFile",
    "Source",
    "open_output",
    "open_source",
    "resolve_inputs",
    "resolve_output",
    "shard_name",
]
