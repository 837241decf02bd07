# Written by docs/reference/stub.py.

from tfrecord_io.write.distributed import DistributedWriter as DistributedWriter
from tfrecord_io.write.distributed import OpenPart as OpenPart
from tfrecord_io.write.distributed import WrittenPart as WrittenPart
from tfrecord_io.write.frame_sink import FrameSink as FrameSink
from tfrecord_io.write.frame_sink import PayloadSink as PayloadSink
from tfrecord_io.write.frame_sink import WrittenFile as WrittenFile
from tfrecord_io.write.resumable import ResumableWriter as ResumableWriter
from tfrecord_io.write.writer import Writer as Writer
from tfrecord_io.write.writer import WriteReport as WriteReport
from tfrecord_io.write.writer import write as write

__all__ = [
    "DistributedWriter",
    "FrameSink",
    "OpenPart",
    "PayloadSink",
    "ResumableWriter",
    "WriteReport",
    "Writer",
    "WrittenFile",
    "WrittenPart",
    "write",
]
