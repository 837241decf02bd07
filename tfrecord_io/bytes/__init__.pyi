# Written by docs/reference/stub.py.

from tfrecord_io.bytes.compression import CODECS as CODECS
from tfrecord_io.bytes.compression.codec import Codec as Codec
from tfrecord_io.bytes.compression.codec import Damage as Damage
from tfrecord_io.bytes.compression.recovering_stream import Gap as Gap
from tfrecord_io.bytes.compression.recovering_stream import RecoveringStream as RecoveringStream
from tfrecord_io.bytes.compression.stream import DecompressedStream as DecompressedStream
from tfrecord_io.bytes.compression.stream import PlainStream as PlainStream
from tfrecord_io.bytes.compression.stream import Raw as Raw
from tfrecord_io.bytes.compression.stream import Stream as Stream
from tfrecord_io.bytes.compression.stream import open_decompressed as open_decompressed
from tfrecord_io.bytes.engine.contract import PAGE as PAGE
from tfrecord_io.bytes.engine.contract import ArrowReader as ArrowReader
from tfrecord_io.bytes.engine.contract import Checks as Checks
from tfrecord_io.bytes.engine.contract import ColumnBuffers as ColumnBuffers
from tfrecord_io.bytes.engine.contract import Decoder as Decoder
from tfrecord_io.bytes.engine.contract import Encoder as Encoder
from tfrecord_io.bytes.engine.contract import Engine as Engine
from tfrecord_io.bytes.engine.contract import Fact as Fact
from tfrecord_io.bytes.engine.contract import FeatureColumns as FeatureColumns
from tfrecord_io.bytes.engine.contract import FeatureName as FeatureName
from tfrecord_io.bytes.engine.contract import FieldForm as FieldForm
from tfrecord_io.bytes.engine.contract import FieldValues as FieldValues
from tfrecord_io.bytes.engine.contract import FileView as FileView
from tfrecord_io.bytes.engine.contract import Frames as Frames
from tfrecord_io.bytes.engine.contract import Members as Members
from tfrecord_io.bytes.engine.contract import ObjectDecoder as ObjectDecoder
from tfrecord_io.bytes.engine.contract import ObjectForm as ObjectForm
from tfrecord_io.bytes.engine.contract import PlainForm as PlainForm
from tfrecord_io.bytes.engine.contract import PlainValue as PlainValue
from tfrecord_io.bytes.engine.contract import Progress as Progress
from tfrecord_io.bytes.engine.faults import OTHER_MESSAGE as OTHER_MESSAGE
from tfrecord_io.bytes.engine.faults import Fault as Fault
from tfrecord_io.bytes.engine.faults import FaultCode as FaultCode
from tfrecord_io.bytes.engine.faults import Plan as Plan
from tfrecord_io.bytes.engine.faults import PlanColumn as PlanColumn
from tfrecord_io.bytes.engine.faults import RecordCounts as RecordCounts
from tfrecord_io.bytes.engine.filtering_decoder import DecodingChoice as DecodingChoice
from tfrecord_io.bytes.engine.filtering_decoder import FilteringDecoder as FilteringDecoder
from tfrecord_io.bytes.engine.filtering_decoder import Prefilter as Prefilter
from tfrecord_io.bytes.engine.numpy_output import BytesSlots as BytesSlots
from tfrecord_io.bytes.engine.numpy_output import GatheredValues as GatheredValues
from tfrecord_io.bytes.engine.numpy_output import NumberColumn as NumberColumn
from tfrecord_io.bytes.engine.numpy_output import Runs as Runs
from tfrecord_io.bytes.engine.numpy_output import first_fit as first_fit
from tfrecord_io.bytes.engine.select import get_engine as get_engine
from tfrecord_io.bytes.format.companions import SHAPE_SOURCE_KEY as SHAPE_SOURCE_KEY
from tfrecord_io.bytes.format.companions import ShapeSource as ShapeSource
from tfrecord_io.bytes.format.dtypes import Array as Array
from tfrecord_io.bytes.format.dtypes import Dtype as Dtype
from tfrecord_io.bytes.format.example_messages import Feature as Feature
from tfrecord_io.bytes.format.feature_types import Kind as Kind
from tfrecord_io.bytes.format.feature_types import Layout as Layout
from tfrecord_io.bytes.format.feature_types import RecordType as RecordType
from tfrecord_io.bytes.format.feature_types import Text as Text
from tfrecord_io.bytes.format.foreign_files import IMAGES as IMAGES
from tfrecord_io.bytes.format.foreign_files import TIFF_MAGIC as TIFF_MAGIC
from tfrecord_io.bytes.format.foreign_files import ZEROS as ZEROS
from tfrecord_io.bytes.format.foreign_files import looks_like as looks_like
from tfrecord_io.bytes.format.format_registry import FORMATS as FORMATS
from tfrecord_io.bytes.format.format_registry import Format as Format
from tfrecord_io.bytes.format.format_registry import format_option as format_option
from tfrecord_io.bytes.format.framing import FrameHeader as FrameHeader
from tfrecord_io.bytes.format.framing import crc32c as crc32c
from tfrecord_io.bytes.format.missing_values import check_nesting_level as check_nesting_level
from tfrecord_io.bytes.format.missing_values import has_missing as has_missing
from tfrecord_io.bytes.format.missing_values import holds_masked as holds_masked
from tfrecord_io.bytes.format.npy_header import NpyHeader as NpyHeader
from tfrecord_io.bytes.format.protobuf import drop_unknown_fields as drop_unknown_fields
from tfrecord_io.bytes.format.protobuf import is_closed as is_closed
from tfrecord_io.bytes.format.protobuf import is_packed as is_packed
from tfrecord_io.bytes.format.protobuf import message_classes as message_classes
from tfrecord_io.bytes.format.protobuf import parse_message as parse_message
from tfrecord_io.bytes.format.serialized_tensor import ParsedTensor as ParsedTensor
from tfrecord_io.bytes.format.serialized_tensor import parse_tensor as parse_tensor
from tfrecord_io.bytes.format.serialized_tensor import serialize_tensor as serialize_tensor
from tfrecord_io.bytes.format.varint import delimited_field as delimited_field
from tfrecord_io.bytes.format.varint import varint as varint
from tfrecord_io.bytes.format.wire_fields import fields_of as fields_of

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
    "DecodingChoice",
    "DecompressedStream",
    "Dtype",
    "Encoder",
    "Engine",
    "FORMATS",
    "Fact",
    "Fault",
    "FaultCode",
    "Feature",
    "FeatureColumns",
    "FeatureName",
    "FieldForm",
    "FieldValues",
    "FileView",
    "FilteringDecoder",
    "Format",
    "FrameHeader",
    "Frames",
    "Gap",
    "GatheredValues",
    "IMAGES",
    "Kind",
    "Layout",
    "Members",
    "NpyHeader",
    "NumberColumn",
    "OTHER_MESSAGE",
    "ObjectDecoder",
    "ObjectForm",
    "PAGE",
    "ParsedTensor",
    "PlainForm",
    "PlainStream",
    "PlainValue",
    "Plan",
    "PlanColumn",
    "Prefilter",
    "Progress",
    "Raw",
    "RecordCounts",
    "RecordType",
    "RecoveringStream",
    "Runs",
    "SHAPE_SOURCE_KEY",
    "ShapeSource",
    "Stream",
    "TIFF_MAGIC",
    "Text",
    "ZEROS",
    "check_nesting_level",
    "crc32c",
    "delimited_field",
    "drop_unknown_fields",
    "fields_of",
    "first_fit",
    "format_option",
    "get_engine",
    "has_missing",
    "holds_masked",
    "is_closed",
    "is_packed",
    "looks_like",
    "message_classes",
    "open_decompressed",
    "parse_message",
    "parse_tensor",
    "serialize_tensor",
    "varint",
]
