# Written by docs/reference/stub.py.

from tfrecord_io.bytes.compression import CODECS as CODECS
from tfrecord_io.bytes.compression.codec import Codec as Codec
from tfrecord_io.bytes.compression.recovering_stream import Gap as Gap
from tfrecord_io.bytes.compression.recovering_stream import RecoveringStream as RecoveringStream
from tfrecord_io.bytes.compression.stream import DecompressedStream as DecompressedStream
from tfrecord_io.bytes.compression.stream import PlainStream as PlainStream
from tfrecord_io.bytes.compression.stream import Raw as Raw
from tfrecord_io.bytes.compression.stream import Stream as Stream
from tfrecord_io.bytes.compression.stream import open_decompressed as open_decompressed
from tfrecord_io.bytes.engine.contract import LIST_MARK as LIST_MARK
from tfrecord_io.bytes.engine.contract import MAX_RECORD_BYTES as MAX_RECORD_BYTES
from tfrecord_io.bytes.engine.contract import PAGE as PAGE
from tfrecord_io.bytes.engine.contract import ArrowReader as ArrowReader
from tfrecord_io.bytes.engine.contract import Checks as Checks
from tfrecord_io.bytes.engine.contract import ColumnBuffers as ColumnBuffers
from tfrecord_io.bytes.engine.contract import Decoder as Decoder
from tfrecord_io.bytes.engine.contract import Encoder as Encoder
from tfrecord_io.bytes.engine.contract import Engine as Engine
from tfrecord_io.bytes.engine.contract import Fact as Fact
from tfrecord_io.bytes.engine.contract import Fault as Fault
from tfrecord_io.bytes.engine.contract import FaultCode as FaultCode
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
from tfrecord_io.bytes.engine.contract import Plan as Plan
from tfrecord_io.bytes.engine.contract import PlanColumn as PlanColumn
from tfrecord_io.bytes.engine.contract import Progress as Progress
from tfrecord_io.bytes.engine.contract import RecordCounts as RecordCounts
from tfrecord_io.bytes.engine.contract import facts_of as facts_of
from tfrecord_io.bytes.engine.fault_messages import OTHER_MESSAGE as OTHER_MESSAGE
from tfrecord_io.bytes.engine.fault_messages import is_about_no_examples as is_about_no_examples
from tfrecord_io.bytes.engine.fault_messages import is_other_format as is_other_format
from tfrecord_io.bytes.engine.fault_messages import is_wire_fault as is_wire_fault
from tfrecord_io.bytes.engine.fault_messages import no_examples as no_examples
from tfrecord_io.bytes.engine.fault_messages import not_examples as not_examples
from tfrecord_io.bytes.engine.fault_messages import other_kind_hint as other_kind_hint
from tfrecord_io.bytes.engine.fault_messages import record_error as record_error
from tfrecord_io.bytes.engine.fault_messages import to_error as to_error
from tfrecord_io.bytes.engine.fault_messages import wire_reason as wire_reason
from tfrecord_io.bytes.engine.filtering_decoder import DecodingChoice as DecodingChoice
from tfrecord_io.bytes.engine.filtering_decoder import FilteringDecoder as FilteringDecoder
from tfrecord_io.bytes.engine.filtering_decoder import Prefilter as Prefilter
from tfrecord_io.bytes.engine.numpy_output import BytesSlots as BytesSlots
from tfrecord_io.bytes.engine.numpy_output import GatheredValues as GatheredValues
from tfrecord_io.bytes.engine.numpy_output import NumberColumn as NumberColumn
from tfrecord_io.bytes.engine.numpy_output import RunArray as RunArray
from tfrecord_io.bytes.engine.numpy_output import bytes_objects as bytes_objects
from tfrecord_io.bytes.engine.numpy_output import chosen_offsets as chosen_offsets
from tfrecord_io.bytes.engine.numpy_output import copy_runs as copy_runs
from tfrecord_io.bytes.engine.numpy_output import first_fit as first_fit
from tfrecord_io.bytes.engine.numpy_output import gather_objects as gather_objects
from tfrecord_io.bytes.engine.numpy_output import gather_runs as gather_runs
from tfrecord_io.bytes.engine.numpy_output import join_numbers as join_numbers
from tfrecord_io.bytes.engine.numpy_output import padded_rows as padded_rows
from tfrecord_io.bytes.engine.numpy_output import row_views as row_views
from tfrecord_io.bytes.engine.numpy_output import text as text
from tfrecord_io.bytes.engine.select import get_engine as get_engine
from tfrecord_io.bytes.format.companions import SHAPE_SOURCE_KEY as SHAPE_SOURCE_KEY
from tfrecord_io.bytes.format.companions import ShapeSource as ShapeSource
from tfrecord_io.bytes.format.companions import companions as companions
from tfrecord_io.bytes.format.companions import feature_of_companion as feature_of_companion
from tfrecord_io.bytes.format.companions import stated_by as stated_by
from tfrecord_io.bytes.format.dtypes import Array as Array
from tfrecord_io.bytes.format.dtypes import Dtype as Dtype
from tfrecord_io.bytes.format.example_messages import Feature as Feature
from tfrecord_io.bytes.format.feature_types import EMBEDDED_FIELD as EMBEDDED_FIELD
from tfrecord_io.bytes.format.feature_types import RECORD_TYPES as RECORD_TYPES
from tfrecord_io.bytes.format.feature_types import Kind as Kind
from tfrecord_io.bytes.format.feature_types import Layout as Layout
from tfrecord_io.bytes.format.feature_types import RecordType as RecordType
from tfrecord_io.bytes.format.feature_types import Text as Text
from tfrecord_io.bytes.format.feature_types import image_advice as image_advice
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
from tfrecord_io.bytes.format.missing_values import has_inner as has_inner
from tfrecord_io.bytes.format.missing_values import has_missing as has_missing
from tfrecord_io.bytes.format.missing_values import holds_masked as holds_masked
from tfrecord_io.bytes.format.npy_header import header as header
from tfrecord_io.bytes.format.npy_header import read_header as read_header
from tfrecord_io.bytes.format.protobuf import drop_unknown_fields as drop_unknown_fields
from tfrecord_io.bytes.format.protobuf import is_closed as is_closed
from tfrecord_io.bytes.format.protobuf import is_packed as is_packed
from tfrecord_io.bytes.format.protobuf import message_classes as message_classes
from tfrecord_io.bytes.format.protobuf import parse_message as parse_message
from tfrecord_io.bytes.format.serialized_tensor import STORAGE as STORAGE
from tfrecord_io.bytes.format.serialized_tensor import ParsedTensor as ParsedTensor
from tfrecord_io.bytes.format.serialized_tensor import dtype_of_number as dtype_of_number
from tfrecord_io.bytes.format.serialized_tensor import parse_tensor as parse_tensor
from tfrecord_io.bytes.format.serialized_tensor import parse_tensor_proto as parse_tensor_proto
from tfrecord_io.bytes.format.serialized_tensor import proto_prefix as proto_prefix
from tfrecord_io.bytes.format.serialized_tensor import serialize_tensor as serialize_tensor
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
    "Decoder",
    "DecodingChoice",
    "DecompressedStream",
    "Dtype",
    "EMBEDDED_FIELD",
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
    "LIST_MARK",
    "Layout",
    "MAX_RECORD_BYTES",
    "Members",
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
    "RECORD_TYPES",
    "Raw",
    "RecordCounts",
    "RecordType",
    "RecoveringStream",
    "RunArray",
    "SHAPE_SOURCE_KEY",
    "STORAGE",
    "ShapeSource",
    "Stream",
    "TIFF_MAGIC",
    "Text",
    "ZEROS",
    "bytes_objects",
    "check_nesting_level",
    "chosen_offsets",
    "companions",
    "copy_runs",
    "crc32c",
    "delimited_field",
    "drop_unknown_fields",
    "dtype_of_number",
    "facts_of",
    "feature_of_companion",
    "first_fit",
    "format_option",
    "gather_objects",
    "gather_runs",
    "get_engine",
    "has_inner",
    "has_missing",
    "header",
    "holds_masked",
    "image_advice",
    "is_about_no_examples",
    "is_closed",
    "is_other_format",
    "is_packed",
    "is_wire_fault",
    "join_numbers",
    "looks_like",
    "message_classes",
    "no_examples",
    "not_examples",
    "open_decompressed",
    "other_kind_hint",
    "padded_rows",
    "parse_message",
    "parse_tensor",
    "parse_tensor_proto",
    "proto_prefix",
    "read_header",
    "record_error",
    "row_views",
    "serialize_tensor",
    "stated_by",
    "text",
    "to_error",
    "varint",
    "wire_reason",
]
