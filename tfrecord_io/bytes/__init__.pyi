# Written by docs/reference/stub.py.

from tfrecord_io.bytes.compression import CODECS as CODECS
from tfrecord_io.bytes.compression.codec import Codec as Codec
from tfrecord_io.bytes.compression.codec import Damage as Damage
from tfrecord_io.bytes.compression.recovering_stream import RecoveringStream as RecoveringStream
from tfrecord_io.bytes.compression.stream import PlainStream as PlainStream
from tfrecord_io.bytes.compression.stream import Raw as Raw
from tfrecord_io.bytes.compression.stream import Stream as Stream
from tfrecord_io.bytes.compression.stream import open_decompressed as open_decompressed
from tfrecord_io.bytes.engine.contract import Checks as Checks
from tfrecord_io.bytes.engine.contract import ColumnBuffers as ColumnBuffers
from tfrecord_io.bytes.engine.contract import Decoder as Decoder
from tfrecord_io.bytes.engine.contract import Engine as Engine
from tfrecord_io.bytes.engine.contract import FeatureColumns as FeatureColumns
from tfrecord_io.bytes.engine.contract import Frames as Frames
from tfrecord_io.bytes.engine.faults import Fault as Fault
from tfrecord_io.bytes.engine.faults import FaultCode as FaultCode
from tfrecord_io.bytes.engine.faults import Plan as Plan
from tfrecord_io.bytes.engine.faults import PlanColumn as PlanColumn
from tfrecord_io.bytes.engine.faults import RecordCounts as RecordCounts
from tfrecord_io.bytes.engine.numpy_output import NumberColumn as NumberColumn
from tfrecord_io.bytes.engine.numpy_output import Runs as Runs
from tfrecord_io.bytes.engine.select import get_engine as get_engine
from tfrecord_io.bytes.format.companions import ShapeSource as ShapeSource
from tfrecord_io.bytes.format.dtypes import Dtype as Dtype
from tfrecord_io.bytes.format.feature_types import Array as Array
from tfrecord_io.bytes.format.feature_types import Kind as Kind
from tfrecord_io.bytes.format.feature_types import Layout as Layout
from tfrecord_io.bytes.format.feature_types import RecordType as RecordType
from tfrecord_io.bytes.format.feature_types import Text as Text
from tfrecord_io.bytes.format.foreign_files import ForeignFile as ForeignFile
from tfrecord_io.bytes.format.framing import FrameHeader as FrameHeader
from tfrecord_io.bytes.format.framing import crc32c as crc32c
from tfrecord_io.bytes.format.known_formats import FORMATS as FORMATS
from tfrecord_io.bytes.format.known_formats import Format as Format
from tfrecord_io.bytes.format.known_formats import format_option as format_option
from tfrecord_io.bytes.format.missing_values import NestedValues as NestedValues
from tfrecord_io.bytes.format.npy_header import NpyHeader as NpyHeader
from tfrecord_io.bytes.format.protobuf import MessageClasses as MessageClasses
from tfrecord_io.bytes.format.serialized_tensor import ParsedTensor as ParsedTensor
from tfrecord_io.bytes.format.varint import FieldTag as FieldTag

__all__ = [
    "Array",
    "CODECS",
    "Checks",
    "Codec",
    "ColumnBuffers",
    "Damage",
    "Decoder",
    "Dtype",
    "Engine",
    "FORMATS",
    "Fault",
    "FaultCode",
    "FeatureColumns",
    "FieldTag",
    "ForeignFile",
    "Format",
    "FrameHeader",
    "Frames",
    "Kind",
    "Layout",
    "MessageClasses",
    "NestedValues",
    "NpyHeader",
    "NumberColumn",
    "ParsedTensor",
    "PlainStream",
    "Plan",
    "PlanColumn",
    "Raw",
    "RecordCounts",
    "RecordType",
    "RecoveringStream",
    "Runs",
    "ShapeSource",
    "Stream",
    "Text",
    "crc32c",
    "format_option",
    "get_engine",
    "open_decompressed",
]
