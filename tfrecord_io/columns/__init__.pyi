# Written by docs/reference/stub.py.

from tfrecord_io.columns.arrow.buffers import BatchStream as BatchStream
from tfrecord_io.columns.arrow.buffers import arrow_file as arrow_file
from tfrecord_io.columns.arrow.buffers import column_mask as column_mask
from tfrecord_io.columns.arrow.buffers import cut_columns as cut_columns
from tfrecord_io.columns.arrow.buffers import empty_batch as empty_batch
from tfrecord_io.columns.arrow.buffers import empty_table as empty_table
from tfrecord_io.columns.arrow.buffers import export_stream as export_stream
from tfrecord_io.columns.arrow.buffers import int64_array as int64_array
from tfrecord_io.columns.arrow.buffers import list_array as list_array
from tfrecord_io.columns.arrow.buffers import list_lengths as list_lengths
from tfrecord_io.columns.arrow.buffers import numpy_dtype as numpy_dtype
from tfrecord_io.columns.arrow.buffers import offset_dtype as offset_dtype
from tfrecord_io.columns.arrow.buffers import offset_view as offset_view
from tfrecord_io.columns.arrow.buffers import offsets_of as offsets_of
from tfrecord_io.columns.arrow.buffers import refuse_nuls as refuse_nuls
from tfrecord_io.columns.arrow.buffers import runs_within as runs_within
from tfrecord_io.columns.arrow.buffers import scatter as scatter
from tfrecord_io.columns.arrow.buffers import selectable as selectable
from tfrecord_io.columns.arrow.buffers import struct_fields as struct_fields
from tfrecord_io.columns.arrow.buffers import typed_view as typed_view
from tfrecord_io.columns.arrow.buffers import valid_mask as valid_mask
from tfrecord_io.columns.arrow.buffers import value_bytes as value_bytes
from tfrecord_io.columns.arrow.buffers import variable_width as variable_width
from tfrecord_io.columns.arrow.buffers import writable as writable
from tfrecord_io.columns.arrow.casts import can_unify as can_unify
from tfrecord_io.columns.arrow.casts import has_all as has_all
from tfrecord_io.columns.arrow.casts import one_dictionary as one_dictionary
from tfrecord_io.columns.arrow.casts import plain_layout as plain_layout
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder as BatchBuilder
from tfrecord_io.columns.arrow.decode.batch_builder import Columns as Columns
from tfrecord_io.columns.arrow.decode.batch_builder import batch_of as batch_of
from tfrecord_io.columns.arrow.decode.batch_builder import to_table as to_table
from tfrecord_io.columns.arrow.decode.decode_plan import other_part as other_part
from tfrecord_io.columns.arrow.decode.decode_plan import plan_columns as plan_columns
from tfrecord_io.columns.arrow.decode.decode_plan import reads_companions as reads_companions
from tfrecord_io.columns.arrow.decode.inferred_column import FoldedTensor as FoldedTensor
from tfrecord_io.columns.arrow.decode.inferred_column import SeenColumns as SeenColumns
from tfrecord_io.columns.arrow.decode.inferred_column import candidates as candidates
from tfrecord_io.columns.arrow.decode.inferred_column import count_kinds as count_kinds
from tfrecord_io.columns.arrow.decode.inferred_column import fold as fold
from tfrecord_io.columns.arrow.decode.lists import absent as absent
from tfrecord_io.columns.arrow.decode.lists import is_nothing as is_nothing
from tfrecord_io.columns.arrow.decode.lists import widen as widen
from tfrecord_io.columns.arrow.decode.stated_shapes import dtype_of as dtype_of
from tfrecord_io.columns.arrow.decode.stated_shapes import stated_dtypes as stated_dtypes
from tfrecord_io.columns.arrow.decode.stated_shapes import text_of as text_of
from tfrecord_io.columns.arrow.encode.composite_columns import component_columns as component_columns
from tfrecord_io.columns.arrow.encode.composite_columns import component_fields as component_fields
from tfrecord_io.columns.arrow.encode.composite_columns import written_composite as written_composite
from tfrecord_io.columns.arrow.encode.encode_columns import dictionaries as dictionaries
from tfrecord_io.columns.arrow.encode.encode_columns import encode_columns as encode_columns
from tfrecord_io.columns.arrow.encode.encode_plan import Rounding as Rounding
from tfrecord_io.columns.arrow.encode.encode_plan import WritePlan as WritePlan
from tfrecord_io.columns.arrow.encode.encode_plan import plan_writing as plan_writing
from tfrecord_io.columns.arrow.encodings.tensor_encoding import TensorEncoding as TensorEncoding
from tfrecord_io.columns.arrow.encodings.tensor_encoding import tensor_encoding as tensor_encoding
from tfrecord_io.columns.arrow.evaluate_condition import COMPARISONS as COMPARISONS
from tfrecord_io.columns.arrow.evaluate_condition import cast_comparable_columns as cast_comparable_columns
from tfrecord_io.columns.arrow.evaluate_condition import is_compared_as_storage as is_compared_as_storage
from tfrecord_io.columns.arrow.evaluate_condition import values_of as values_of
from tfrecord_io.columns.arrow.image_encoding import arrays_schema as arrays_schema
from tfrecord_io.columns.arrow.image_header import BITS_PER_SAMPLE as BITS_PER_SAMPLE
from tfrecord_io.columns.arrow.image_header import DEPTH as DEPTH
from tfrecord_io.columns.arrow.image_header import EXIF_FIRST as EXIF_FIRST
from tfrecord_io.columns.arrow.image_header import IMAGE_FORMATS as IMAGE_FORMATS
from tfrecord_io.columns.arrow.image_header import KNOWN_FORMATS as KNOWN_FORMATS
from tfrecord_io.columns.arrow.image_header import ORIENTATION as ORIENTATION
from tfrecord_io.columns.arrow.image_header import PNG as PNG
from tfrecord_io.columns.arrow.image_header import QUARTER_TURNED as QUARTER_TURNED
from tfrecord_io.columns.arrow.image_header import TURNS as TURNS
from tfrecord_io.columns.arrow.image_header import ImageHeader as ImageHeader
from tfrecord_io.columns.arrow.image_header import bits_of as bits_of
from tfrecord_io.columns.arrow.image_header import image_header as image_header
from tfrecord_io.columns.arrow.image_header import is_turned as is_turned
from tfrecord_io.columns.arrow.image_header import orientation_of as orientation_of
from tfrecord_io.columns.arrow.image_header import pillow as pillow
from tfrecord_io.columns.arrow.image_header import png_chunks as png_chunks
from tfrecord_io.columns.arrow.image_header import tiff_form as tiff_form
from tfrecord_io.columns.arrow.input.batch_source import BatchSource as BatchSource
from tfrecord_io.columns.arrow.input.batch_source import open_input as open_input
from tfrecord_io.columns.arrow.input.batch_source import use_plain_layouts as use_plain_layouts
from tfrecord_io.columns.arrow.input.from_arrays import check_name as check_name
from tfrecord_io.columns.arrow.input.from_arrays import fields_of as fields_of
from tfrecord_io.columns.arrow.input.from_arrays import map_types as map_types
from tfrecord_io.columns.arrow.input.from_arrays import refuse_duckdb_types as refuse_duckdb_types
from tfrecord_io.columns.arrow.input.from_arrays import table_of_rows as table_of_rows
from tfrecord_io.columns.arrow.input.from_xarray import record_dimension as record_dimension
from tfrecord_io.columns.arrow.input.row_batches import row_batches as row_batches
from tfrecord_io.columns.arrow.input.schema_cast import cast_columns as cast_columns
from tfrecord_io.columns.arrow.input.tensor_cast import native as native
from tfrecord_io.columns.arrow.input.tensor_cast import tensor_cast as tensor_cast
from tfrecord_io.columns.arrow.messages.encode_messages import MessageEncoder as MessageEncoder
from tfrecord_io.columns.arrow.messages.encode_messages import PayloadEncoder as PayloadEncoder
from tfrecord_io.columns.arrow.messages.encode_messages import encoded_fields as encoded_fields
from tfrecord_io.columns.arrow.messages.message_batches import AnyBatchBuilder as AnyBatchBuilder
from tfrecord_io.columns.arrow.messages.message_batches import MessageBatchBuilder as MessageBatchBuilder
from tfrecord_io.columns.arrow.messages.message_tree import MessageField as MessageField
from tfrecord_io.columns.arrow.messages.message_tree import message_tree as message_tree
from tfrecord_io.columns.arrow.output.column_statistics import HEADINGS as HEADINGS
from tfrecord_io.columns.arrow.output.column_statistics import ColumnAccumulator as ColumnAccumulator
from tfrecord_io.columns.arrow.output.column_statistics import ColumnSummary as ColumnSummary
from tfrecord_io.columns.arrow.output.column_statistics import is_ordered as is_ordered
from tfrecord_io.columns.arrow.output.column_statistics import lengths_of as lengths_of
from tfrecord_io.columns.arrow.output.column_statistics import temporal_value as temporal_value
from tfrecord_io.columns.arrow.output.column_statistics import times_to_integers as times_to_integers
from tfrecord_io.columns.arrow.output.python_rows import PayloadDicts as PayloadDicts
from tfrecord_io.columns.arrow.output.python_rows import RecordDicts as RecordDicts
from tfrecord_io.columns.arrow.output.to_numpy import Dense as Dense
from tfrecord_io.columns.arrow.output.to_numpy import Ragged as Ragged
from tfrecord_io.columns.arrow.output.to_numpy import Rows as Rows
from tfrecord_io.columns.arrow.output.to_numpy import bytes_rows as bytes_rows
from tfrecord_io.columns.arrow.output.to_numpy import declared_shape as declared_shape
from tfrecord_io.columns.arrow.output.to_numpy import is_plain as is_plain
from tfrecord_io.columns.arrow.output.to_numpy import join_rows as join_rows
from tfrecord_io.columns.arrow.output.to_numpy import joined_objects as joined_objects
from tfrecord_io.columns.arrow.output.to_numpy import leaf_arrays as leaf_arrays
from tfrecord_io.columns.arrow.output.to_numpy import leaf_fields as leaf_fields
from tfrecord_io.columns.arrow.output.to_numpy import memory_errors as memory_errors
from tfrecord_io.columns.arrow.output.to_numpy import missing_step as missing_step
from tfrecord_io.columns.arrow.output.to_numpy import number_dtype as number_dtype
from tfrecord_io.columns.arrow.output.to_numpy import number_items as number_items
from tfrecord_io.columns.arrow.output.to_numpy import rows_of_equal_tensors as rows_of_equal_tensors
from tfrecord_io.columns.arrow.output.to_numpy import shape_of_all as shape_of_all
from tfrecord_io.columns.arrow.output.to_numpy import to_rows as to_rows
from tfrecord_io.columns.arrow.output.to_pandas import to_pandas as to_pandas
from tfrecord_io.columns.arrow.output.to_python import BYTES_KEY as BYTES_KEY
from tfrecord_io.columns.arrow.output.to_python import cell as cell
from tfrecord_io.columns.arrow.output.to_python import json_line as json_line
from tfrecord_io.columns.arrow.output.to_python import json_lines as json_lines
from tfrecord_io.columns.arrow.output.to_python import json_value as json_value
from tfrecord_io.columns.arrow.output.to_python import python_columns as python_columns
from tfrecord_io.columns.arrow.output.to_python import python_values as python_values
from tfrecord_io.columns.arrow.output.to_python import record_dicts as record_dicts
from tfrecord_io.columns.arrow.output.to_python import rows_of as rows_of
from tfrecord_io.columns.arrow.plain_forms import from_plain_form as from_plain_form
from tfrecord_io.columns.arrow.plain_forms import plain_form as plain_form
from tfrecord_io.columns.arrow.plain_forms import to_plain_form as to_plain_form
from tfrecord_io.columns.arrow.raw_images import COLOUR_TYPES as COLOUR_TYPES
from tfrecord_io.columns.arrow.raw_images import RawImages as RawImages
from tfrecord_io.columns.arrow.raw_images import encode_png as encode_png
from tfrecord_io.columns.arrow.row_fault import RowFault as RowFault
from tfrecord_io.columns.arrow.row_fault import faults_of_lists as faults_of_lists
from tfrecord_io.columns.arrow.row_fault import first_refused as first_refused
from tfrecord_io.columns.arrow.tensor_values import TensorValues as TensorValues
from tfrecord_io.columns.arrow.tensor_values import array_to_tensors as array_to_tensors
from tfrecord_io.columns.arrow.tensor_values import cells_to_column as cells_to_column
from tfrecord_io.columns.arrow.tensor_values import column_to_cells as column_to_cells
from tfrecord_io.columns.arrow.tensor_values import column_to_tensors as column_to_tensors
from tfrecord_io.columns.arrow.tensor_values import element_of_dtype as element_of_dtype
from tfrecord_io.columns.arrow.tensor_values import flat_values as flat_values
from tfrecord_io.columns.arrow.tensor_values import plain_array as plain_array
from tfrecord_io.columns.arrow.tensor_values import shape_of_cells as shape_of_cells
from tfrecord_io.columns.arrow.tensor_values import shapes_of_counts as shapes_of_counts
from tfrecord_io.columns.arrow.tensor_values import tensors_to_cells as tensors_to_cells
from tfrecord_io.columns.arrow.tensor_values import tensors_to_column as tensors_to_column
from tfrecord_io.columns.arrow.tensor_values import tensors_to_values as tensors_to_values
from tfrecord_io.columns.arrow.type_literals import type_literals as type_literals
from tfrecord_io.columns.schema.array_attributes import RECORD as RECORD
from tfrecord_io.columns.schema.array_attributes import TYPE as TYPE
from tfrecord_io.columns.schema.array_attributes import add_attributes as add_attributes
from tfrecord_io.columns.schema.array_attributes import add_dimensions as add_dimensions
from tfrecord_io.columns.schema.array_attributes import attributes_of as attributes_of
from tfrecord_io.columns.schema.array_attributes import dimension_names as dimension_names
from tfrecord_io.columns.schema.array_attributes import dimensions_of as dimensions_of
from tfrecord_io.columns.schema.array_attributes import is_other_time as is_other_time
from tfrecord_io.columns.schema.column_advice import declaration as declaration
from tfrecord_io.columns.schema.column_features import BY_WIRE as BY_WIRE
from tfrecord_io.columns.schema.column_features import ENCODING_KEY as ENCODING_KEY
from tfrecord_io.columns.schema.column_features import FEATURE_LIST as FEATURE_LIST
from tfrecord_io.columns.schema.column_features import LIST as LIST
from tfrecord_io.columns.schema.column_features import RAW as RAW
from tfrecord_io.columns.schema.column_features import encoding_of as encoding_of
from tfrecord_io.columns.schema.column_features import fixed_part as fixed_part
from tfrecord_io.columns.schema.column_features import leaves as leaves
from tfrecord_io.columns.schema.column_features import nested_handed as nested_handed
from tfrecord_io.columns.schema.column_features import set_encoding as set_encoding
from tfrecord_io.columns.schema.column_features import shown_type as shown_type
from tfrecord_io.columns.schema.column_features import stored_as as stored_as
from tfrecord_io.columns.schema.column_selection import Projection as Projection
from tfrecord_io.columns.schema.column_selection import apply_overrides as apply_overrides
from tfrecord_io.columns.schema.column_selection import as_stored as as_stored
from tfrecord_io.columns.schema.column_selection import entries_of as entries_of
from tfrecord_io.columns.schema.column_selection import is_glob as is_glob
from tfrecord_io.columns.schema.column_selection import matches as matches
from tfrecord_io.columns.schema.column_selection import matches_any as matches_any
from tfrecord_io.columns.schema.column_selection import overridden_by as overridden_by
from tfrecord_io.columns.schema.column_selection import refuse_other_features as refuse_other_features
from tfrecord_io.columns.schema.composite import VALUES as VALUES
from tfrecord_io.columns.schema.composite import Composite as Composite
from tfrecord_io.columns.schema.composite import composite_of as composite_of
from tfrecord_io.columns.schema.embedded import EmbeddedSchema as EmbeddedSchema
from tfrecord_io.columns.schema.embedded import EmbeddedSchemaUnreadable as EmbeddedSchemaUnreadable
from tfrecord_io.columns.schema.embedded import embedded_content as embedded_content
from tfrecord_io.columns.schema.embedded import embedded_dictionaries as embedded_dictionaries
from tfrecord_io.columns.schema.embedded import embedded_schema as embedded_schema
from tfrecord_io.columns.schema.embedded import equal_types as equal_types
from tfrecord_io.columns.schema.embedded import field_bytes as field_bytes
from tfrecord_io.columns.schema.embedded import pack as pack
from tfrecord_io.columns.schema.embedded import unpack as unpack
from tfrecord_io.columns.schema.field import BOXES_KEY as BOXES_KEY
from tfrecord_io.columns.schema.field import COMPOSITE_KEY as COMPOSITE_KEY
from tfrecord_io.columns.schema.field import CONTEXT as CONTEXT
from tfrecord_io.columns.schema.field import CONVERSION_ERRORS as CONVERSION_ERRORS
from tfrecord_io.columns.schema.field import IMAGE_KEY as IMAGE_KEY
from tfrecord_io.columns.schema.field import PARTS as PARTS
from tfrecord_io.columns.schema.field import RAW_IMAGE_KEY as RAW_IMAGE_KEY
from tfrecord_io.columns.schema.field import Field as Field
from tfrecord_io.columns.schema.field import check_names as check_names
from tfrecord_io.columns.schema.field_makers import as_field as as_field
from tfrecord_io.columns.schema.field_makers import is_call as is_call
from tfrecord_io.columns.schema.field_makers import list_ as list_
from tfrecord_io.columns.schema.field_makers import scalar as scalar
from tfrecord_io.columns.schema.field_makers import sequence as sequence
from tfrecord_io.columns.schema.field_makers import tensor as tensor
from tfrecord_io.columns.schema.formats.text_forms import from_json as from_json
from tfrecord_io.columns.schema.formats.text_forms import to_json as to_json
from tfrecord_io.columns.schema.formats.tf_features import DTYPES as DTYPES
from tfrecord_io.columns.schema.formats.tf_features import KINDS as KINDS
from tfrecord_io.columns.schema.formats.tf_features import Feature as Feature
from tfrecord_io.columns.schema.formats.tf_features import FixedLenFeature as FixedLenFeature
from tfrecord_io.columns.schema.formats.tf_features import FixedLenSequenceFeature as FixedLenSequenceFeature
from tfrecord_io.columns.schema.formats.tf_features import Partition as Partition
from tfrecord_io.columns.schema.formats.tf_features import RaggedFeature as RaggedFeature
from tfrecord_io.columns.schema.formats.tf_features import RowLengths as RowLengths
from tfrecord_io.columns.schema.formats.tf_features import RowLimits as RowLimits
from tfrecord_io.columns.schema.formats.tf_features import RowSplits as RowSplits
from tfrecord_io.columns.schema.formats.tf_features import RowStarts as RowStarts
from tfrecord_io.columns.schema.formats.tf_features import SparseFeature as SparseFeature
from tfrecord_io.columns.schema.formats.tf_features import UniformRowLength as UniformRowLength
from tfrecord_io.columns.schema.formats.tf_features import ValueRowIds as ValueRowIds
from tfrecord_io.columns.schema.formats.tf_features import VarLenFeature as VarLenFeature
from tfrecord_io.columns.schema.formats.tf_features import as_description as as_description
from tfrecord_io.columns.schema.formats.tfds_info import FEATURES as FEATURES
from tfrecord_io.columns.schema.formats.tfds_info import FILE_NAME as FILE_NAME
from tfrecord_io.columns.schema.formats.tfds_info import INFO as INFO
from tfrecord_io.columns.schema.formats.tfds_info import TfdsInfo as TfdsInfo
from tfrecord_io.columns.schema.formats.tfds_info import TfdsSplit as TfdsSplit
from tfrecord_io.columns.schema.formats.tfds_info import check_length as check_length
from tfrecord_io.columns.schema.formats.tfds_info import dataset_directory as dataset_directory
from tfrecord_io.columns.schema.formats.tfds_info import read_info as read_info
from tfrecord_io.columns.schema.formats.tfds_info import shard_lengths as shard_lengths
from tfrecord_io.columns.schema.image_form import CHANNELS as CHANNELS
from tfrecord_io.columns.schema.image_form import CHW as CHW
from tfrecord_io.columns.schema.image_form import CONTAIN as CONTAIN
from tfrecord_io.columns.schema.image_form import CROP as CROP
from tfrecord_io.columns.schema.image_form import HWC as HWC
from tfrecord_io.columns.schema.image_form import INDEX as INDEX
from tfrecord_io.columns.schema.image_form import MODE_OF as MODE_OF
from tfrecord_io.columns.schema.image_form import NEAREST as NEAREST
from tfrecord_io.columns.schema.image_form import PAD as PAD
from tfrecord_io.columns.schema.image_form import ImageForm as ImageForm
from tfrecord_io.columns.schema.image_form import RawImageForm as RawImageForm
from tfrecord_io.columns.schema.image_form import is_image as is_image
from tfrecord_io.columns.schema.inferred_schema import Evidence as Evidence
from tfrecord_io.columns.schema.inferred_schema import InferredSchema as InferredSchema
from tfrecord_io.columns.schema.inferred_type import KindCount as KindCount
from tfrecord_io.columns.schema.inferred_type import Observation as Observation
from tfrecord_io.columns.schema.inferred_type import RecordRef as RecordRef
from tfrecord_io.columns.schema.inferred_type import arrow_type as arrow_type
from tfrecord_io.columns.schema.inferred_type import contradiction as contradiction
from tfrecord_io.columns.schema.inferred_type import join as join
from tfrecord_io.columns.schema.inferred_type import join_columns as join_columns
from tfrecord_io.columns.schema.merged_schema import common_field as common_field
from tfrecord_io.columns.schema.merged_schema import fill_in_types as fill_in_types
from tfrecord_io.columns.schema.merged_schema import lacks_only_values as lacks_only_values
from tfrecord_io.columns.schema.merged_schema import lacks_type as lacks_type
from tfrecord_io.columns.schema.merged_schema import merge as merge
from tfrecord_io.columns.schema.merged_schema import prefer_read_files as prefer_read_files
from tfrecord_io.columns.schema.pandas_metadata import copy_index as copy_index
from tfrecord_io.columns.schema.pandas_metadata import drop_index as drop_index
from tfrecord_io.columns.schema.pandas_metadata import drop_range_index as drop_range_index
from tfrecord_io.columns.schema.pandas_metadata import feature_descriptions as feature_descriptions
from tfrecord_io.columns.schema.pandas_metadata import stored_index as stored_index
from tfrecord_io.columns.schema.schema import Schema as Schema
from tfrecord_io.columns.schema.sparse_column import SparseColumn as SparseColumn
from tfrecord_io.columns.schema.tensor_types import JSON as JSON
from tfrecord_io.columns.schema.tensor_types import NESTED as NESTED
from tfrecord_io.columns.schema.tensor_types import TENSOR_ENCODINGS as TENSOR_ENCODINGS
from tfrecord_io.columns.schema.tensor_types import Shape as Shape
from tfrecord_io.columns.schema.tensor_types import axes_of as axes_of
from tfrecord_io.columns.schema.tensor_types import check_column_encodings as check_column_encodings
from tfrecord_io.columns.schema.tensor_types import dtype_metadata as dtype_metadata
from tfrecord_io.columns.schema.tensor_types import element_and_shape as element_and_shape
from tfrecord_io.columns.schema.tensor_types import encoding_rules as encoding_rules
from tfrecord_io.columns.schema.tensor_types import image_encodings as image_encodings
from tfrecord_io.columns.schema.tensor_types import is_any_tensor as is_any_tensor
from tfrecord_io.columns.schema.tensor_types import is_composed as is_composed
from tfrecord_io.columns.schema.tensor_types import is_fixed_shape_tensor as is_fixed_shape_tensor
from tfrecord_io.columns.schema.tensor_types import is_variable_shape_tensor as is_variable_shape_tensor
from tfrecord_io.columns.schema.tensor_types import permutation_of as permutation_of
from tfrecord_io.columns.schema.tensor_types import refuse_unknown_dtypes as refuse_unknown_dtypes
from tfrecord_io.columns.schema.tensor_types import register_variable_shape_tensor as register_variable_shape_tensor
from tfrecord_io.columns.schema.tensor_types import tensor_field as tensor_field
from tfrecord_io.columns.schema.tensor_types import tensor_type as tensor_type
from tfrecord_io.columns.schema.tensor_types import tensor_value_type as tensor_value_type
from tfrecord_io.columns.schema.tensor_types import unknown_dtype as unknown_dtype
from tfrecord_io.columns.schema.tensor_types import written_encodings as written_encodings
from tfrecord_io.columns.schema.type_names import as_arrow_type as as_arrow_type
from tfrecord_io.columns.schema.type_names import logical_name as logical_name
from tfrecord_io.columns.schema.type_names import short_type_name as short_type_name
from tfrecord_io.columns.schema.type_names import summary_of as summary_of
from tfrecord_io.columns.schema.type_names import type_name as type_name
from tfrecord_io.columns.schema.types import UnsupportedType as UnsupportedType
from tfrecord_io.columns.schema.types import has_dictionary as has_dictionary
from tfrecord_io.columns.schema.types import hashable as hashable
from tfrecord_io.columns.schema.types import is_bytes as is_bytes
from tfrecord_io.columns.schema.types import is_list_like as is_list_like
from tfrecord_io.columns.schema.types import is_number as is_number
from tfrecord_io.columns.schema.types import is_text as is_text
from tfrecord_io.columns.schema.types import is_text_or_bytes as is_text_or_bytes
from tfrecord_io.columns.schema.types import kind_of as kind_of
from tfrecord_io.columns.schema.types import map_fields as map_fields
from tfrecord_io.columns.schema.types import plain_kind as plain_kind
from tfrecord_io.columns.schema.types import relist as relist
from tfrecord_io.columns.schema.types import replace_fields as replace_fields
from tfrecord_io.columns.schema.types import types_within as types_within
from tfrecord_io.columns.schema.types import uncommon as uncommon
from tfrecord_io.columns.schema.types import value_type as value_type

__all__ = [
    "AnyBatchBuilder",
    "BITS_PER_SAMPLE",
    "BOXES_KEY",
    "BYTES_KEY",
    "BY_WIRE",
    "BatchBuilder",
    "BatchSource",
    "BatchStream",
    "CHANNELS",
    "CHW",
    "COLOUR_TYPES",
    "COMPARISONS",
    "COMPOSITE_KEY",
    "CONTAIN",
    "CONTEXT",
    "CONVERSION_ERRORS",
    "CROP",
    "ColumnAccumulator",
    "ColumnSummary",
    "Columns",
    "Composite",
    "DEPTH",
    "DTYPES",
    "Dense",
    "ENCODING_KEY",
    "EXIF_FIRST",
    "EmbeddedSchema",
    "EmbeddedSchemaUnreadable",
    "Evidence",
    "FEATURES",
    "FEATURE_LIST",
    "FILE_NAME",
    "Feature",
    "Field",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "FoldedTensor",
    "HEADINGS",
    "HWC",
    "IMAGE_FORMATS",
    "IMAGE_KEY",
    "INDEX",
    "INFO",
    "ImageForm",
    "ImageHeader",
    "InferredSchema",
    "JSON",
    "KINDS",
    "KNOWN_FORMATS",
    "KindCount",
    "LIST",
    "MODE_OF",
    "MessageBatchBuilder",
    "MessageEncoder",
    "MessageField",
    "NEAREST",
    "NESTED",
    "ORIENTATION",
    "Observation",
    "PAD",
    "PARTS",
    "PNG",
    "Partition",
    "PayloadDicts",
    "PayloadEncoder",
    "Projection",
    "QUARTER_TURNED",
    "RAW",
    "RAW_IMAGE_KEY",
    "RECORD",
    "Ragged",
    "RaggedFeature",
    "RawImageForm",
    "RawImages",
    "RecordDicts",
    "RecordRef",
    "Rounding",
    "RowFault",
    "RowLengths",
    "RowLimits",
    "RowSplits",
    "RowStarts",
    "Rows",
    "Schema",
    "SeenColumns",
    "Shape",
    "SparseColumn",
    "SparseFeature",
    "TENSOR_ENCODINGS",
    "TURNS",
    "TYPE",
    "TensorEncoding",
    "TensorValues",
    "TfdsInfo",
    "TfdsSplit",
    "UniformRowLength",
    "UnsupportedType",
    "VALUES",
    "ValueRowIds",
    "VarLenFeature",
    "WritePlan",
    "absent",
    "add_attributes",
    "add_dimensions",
    "apply_overrides",
    "array_to_tensors",
    "arrays_schema",
    "arrow_file",
    "arrow_type",
    "as_arrow_type",
    "as_description",
    "as_field",
    "as_stored",
    "attributes_of",
    "axes_of",
    "batch_of",
    "bits_of",
    "bytes_rows",
    "can_unify",
    "candidates",
    "cast_columns",
    "cast_comparable_columns",
    "cell",
    "cells_to_column",
    "check_column_encodings",
    "check_length",
    "check_name",
    "check_names",
    "column_mask",
    "column_to_cells",
    "column_to_tensors",
    "common_field",
    "component_columns",
    "component_fields",
    "composite_of",
    "contradiction",
    "copy_index",
    "count_kinds",
    "cut_columns",
    "dataset_directory",
    "declaration",
    "declared_shape",
    "dictionaries",
    "dimension_names",
    "dimensions_of",
    "drop_index",
    "drop_range_index",
    "dtype_metadata",
    "dtype_of",
    "element_and_shape",
    "element_of_dtype",
    "embedded_content",
    "embedded_dictionaries",
    "embedded_schema",
    "empty_batch",
    "empty_table",
    "encode_columns",
    "encode_png",
    "encoded_fields",
    "encoding_of",
    "encoding_rules",
    "entries_of",
    "equal_types",
    "export_stream",
    "faults_of_lists",
    "feature_descriptions",
    "field_bytes",
    "fields_of",
    "fill_in_types",
    "first_refused",
    "fixed_part",
    "flat_values",
    "fold",
    "from_json",
    "from_plain_form",
    "has_all",
    "has_dictionary",
    "hashable",
    "image_encodings",
    "image_header",
    "int64_array",
    "is_any_tensor",
    "is_bytes",
    "is_call",
    "is_compared_as_storage",
    "is_composed",
    "is_fixed_shape_tensor",
    "is_glob",
    "is_image",
    "is_list_like",
    "is_nothing",
    "is_number",
    "is_ordered",
    "is_other_time",
    "is_plain",
    "is_text",
    "is_text_or_bytes",
    "is_turned",
    "is_variable_shape_tensor",
    "join",
    "join_columns",
    "join_rows",
    "joined_objects",
    "json_line",
    "json_lines",
    "json_value",
    "kind_of",
    "lacks_only_values",
    "lacks_type",
    "leaf_arrays",
    "leaf_fields",
    "leaves",
    "lengths_of",
    "list_",
    "list_array",
    "list_lengths",
    "logical_name",
    "map_fields",
    "map_types",
    "matches",
    "matches_any",
    "memory_errors",
    "merge",
    "message_tree",
    "missing_step",
    "native",
    "nested_handed",
    "number_dtype",
    "number_items",
    "numpy_dtype",
    "offset_dtype",
    "offset_view",
    "offsets_of",
    "one_dictionary",
    "open_input",
    "orientation_of",
    "other_part",
    "overridden_by",
    "pack",
    "permutation_of",
    "pillow",
    "plain_array",
    "plain_form",
    "plain_kind",
    "plain_layout",
    "plan_columns",
    "plan_writing",
    "png_chunks",
    "prefer_read_files",
    "python_columns",
    "python_values",
    "read_info",
    "reads_companions",
    "record_dicts",
    "record_dimension",
    "refuse_duckdb_types",
    "refuse_nuls",
    "refuse_other_features",
    "refuse_unknown_dtypes",
    "register_variable_shape_tensor",
    "relist",
    "replace_fields",
    "row_batches",
    "rows_of",
    "rows_of_equal_tensors",
    "runs_within",
    "scalar",
    "scatter",
    "selectable",
    "sequence",
    "set_encoding",
    "shape_of_all",
    "shape_of_cells",
    "shapes_of_counts",
    "shard_lengths",
    "short_type_name",
    "shown_type",
    "stated_dtypes",
    "stored_as",
    "stored_index",
    "struct_fields",
    "summary_of",
    "table_of_rows",
    "temporal_value",
    "tensor",
    "tensor_cast",
    "tensor_encoding",
    "tensor_field",
    "tensor_type",
    "tensor_value_type",
    "tensors_to_cells",
    "tensors_to_column",
    "tensors_to_values",
    "text_of",
    "tiff_form",
    "times_to_integers",
    "to_json",
    "to_pandas",
    "to_plain_form",
    "to_rows",
    "to_table",
    "type_literals",
    "type_name",
    "typed_view",
    "types_within",
    "uncommon",
    "unknown_dtype",
    "unpack",
    "use_plain_layouts",
    "valid_mask",
    "value_bytes",
    "value_type",
    "values_of",
    "variable_width",
    "widen",
    "writable",
    "written_composite",
    "written_encodings",
]
