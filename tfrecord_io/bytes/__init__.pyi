# Written by docs/reference/stub.py.

from tfrecord_io.bytes.compression import CODECS as CODECS
from tfrecord_io.bytes.compression.codec import Codec as Codec
from tfrecord_io.bytes.compression.codec import Damage as Damage
from tfrecord_io.bytes.compression.recovering_stream import RecoveringStream as RecoveringStream
from tfrecord_io.bytes.compression.stream import PlainStream as PlainStream
from tfrecord_io.bytes.compression.stream import Raw as Raw
from tfrecord_io.bytes.compression.stream import Stream as Stream
from tfrecord_io.bytes.compression.stream import open_decompressed as open_decompressed
from tfrecord_io.bytes.engine.contract import ArrowReader as ArrowReader
from tfrecord_io.bytes.engine.contract import Checks as Checks
from tfrecord_io.bytes.engine.contract import ColumnBuffers as ColumnBuffers
from tfrecord_io.bytes.engine.contract import Decoder as Decoder
from tfrecord_io.bytes.engine.contract import Encoder as Encoder
from tfrecord_io.bytes.engine.contract import Engine as Engine
from tfrecord_io.bytes.engine.contract import EngineDecoder as EngineDecoder
from tfrecord_io.bytes.engine.contract import FeatureColumns as FeatureColumns
from tfrecord_io.bytes.engine.contract import FieldForm as FieldForm
from tfrecord_io.bytes.engine.contract import FieldValues as FieldValues
from tfrecord_io.bytes.engine.contract import FileView as FileView
from tfrecord_io.bytes.engine.contract import Frames as Frames
from tfrecord_io.bytes.engine.contract import Members as Members
from tfrecord_io.bytes.engine.contract import ObjectDecoder as ObjectDecoder
from tfrecord_io.bytes.engine.contract import ObjectForm as ObjectForm
from tfrecord_io.bytes.engine.contract import PlainForm as PlainForm
from tfrecord_io.bytes.engine.contract import Progress as Progress
from tfrecord_io.bytes.engine.faults import Fault as Fault
from tfrecord_io.bytes.engine.faults import FaultCode as FaultCode
from tfrecord_io.bytes.engine.faults import Plan as Plan
from tfrecord_io.bytes.engine.faults import PlanColumn as PlanColumn
from tfrecord_io.bytes.engine.faults import RecordCounts as RecordCounts
from tfrecord_io.bytes.engine.numpy_output import BytesSlots as BytesSlots
from tfrecord_io.bytes.engine.numpy_output import GatheredValues as GatheredValues
from tfrecord_io.bytes.engine.numpy_output import NumberColumn as NumberColumn
from tfrecord_io.bytes.engine.numpy_output import Runs as Runs
from tfrecord_io.bytes.engine.numpy_output import first_fit as first_fit
from tfrecord_io.bytes.engine.select import get_engine as get_engine
from tfrecord_io.bytes.format.companions import ShapeSource as ShapeSource
from tfrecord_io.bytes.format.dtypes import Array as Array
from tfrecord_io.bytes.format.dtypes import Dtype as Dtype
from tfrecord_io.bytes.format.example_messages import Feature as Feature
from tfrecord_io.bytes.format.feature_types import Kind as Kind
from tfrecord_io.bytes.format.feature_types import Layout as Layout
from tfrecord_io.bytes.format.feature_types import RecordType as RecordType
from tfrecord_io.bytes.format.feature_types import Text as Text
from tfrecord_io.bytes.format.foreign_files import ForeignFile as ForeignFile
from tfrecord_io.bytes.format.format_registry import FORMATS as FORMATS
from tfrecord_io.bytes.format.format_registry import Format as Format
from tfrecord_io.bytes.format.format_registry import format_option as format_option
from tfrecord_io.bytes.format.framing import FrameHeader as FrameHeader
from tfrecord_io.bytes.format.framing import crc32c as crc32c
from tfrecord_io.bytes.format.missing_values import check_nesting_level as check_nesting_level
from tfrecord_io.bytes.format.missing_values import has_missing as has_missing
from tfrecord_io.bytes.format.missing_values import holds_masked as holds_masked
from tfrecord_io.bytes.format.npy_header import NpyHeader as NpyHeader
from tfrecord_io.bytes.format.protobuf import message_classes as message_classes
from tfrecord_io.bytes.format.protobuf import parse_message as parse_message
from tfrecord_io.bytes.format.serialized_tensor import ParsedTensor as ParsedTensor
from tfrecord_io.bytes.format.varint import delimited_field as delimited_field
from tfrecord_io.bytes.format.varint import varint as varint

__all__ = [
    "Array",
    "ArrowReader",
    "BytesSlots",
    "CODECS",
    "Checks",
    "Codec",
    "ColumnBuffers",
    "Damage",
    "Decoder",
    "Dtype",
    "Encoder",
    "Engine",
    "EngineDecoder",
    "FORMATS",
    "Fault",
    "FaultCode",
    "Feature",
    "FeatureColumns",
    "FieldForm",
    "FieldValues",
    "FileView",
    "ForeignFile",
    "Format",
    "FrameHeader",
    "Frames",
    "GatheredValues",
    "Kind",
    "Layout",
    "Members",
    "NpyHeader",
    "NumberColumn",
    "ObjectDecoder",
    "ObjectForm",
    "ParsedTensor",
    "PlainForm",
    "PlainStream",
    "Plan",
    "PlanColumn",
    "Progress",
    "Raw",
    "RecordCounts",
    "RecordType",
    "RecoveringStream",
    "Runs",
    "ShapeSource",
    "Stream",
    "Text",
    "check_nesting_level",
    "crc32c",
    "delimited_field",
    "first_fit",
    "format_option",
    "get_engine",
    "has_missing",
    "holds_masked",
    "message_classes",
    "open_decompressed",
    "parse_message",
    "varint",
]
