# Written by docs/reference/stub.py.

from tfrecord_io.columns.arrow.buffers import ArrayBuffers as ArrayBuffers
from tfrecord_io.columns.arrow.buffers import BatchStream as BatchStream
from tfrecord_io.columns.arrow.buffers import arrow_file as arrow_file
from tfrecord_io.columns.arrow.buffers import empty_batch as empty_batch
from tfrecord_io.columns.arrow.buffers import int64_array as int64_array
from tfrecord_io.columns.arrow.buffers import offsets_of as offsets_of
from tfrecord_io.columns.arrow.buffers import runs_within as runs_within
from tfrecord_io.columns.arrow.buffers import selectable as selectable
from tfrecord_io.columns.arrow.buffers import value_bytes as value_bytes
from tfrecord_io.columns.arrow.casts import plain_layout as plain_layout
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder as BatchBuilder
from tfrecord_io.columns.arrow.decode.decode_plan import plan_columns as plan_columns
from tfrecord_io.columns.arrow.decode.decode_plan import reads_companions as reads_companions
from tfrecord_io.columns.arrow.decode.inferred_column import SeenColumns as SeenColumns
from tfrecord_io.columns.arrow.decode.observations import Observations as Observations
from tfrecord_io.columns.arrow.decode.resolve_shapes import OpenShapes as OpenShapes
from tfrecord_io.columns.arrow.encode.lossless_values import Rounding as Rounding
from tfrecord_io.columns.arrow.encode.slice_encoder import EncodedPiece as EncodedPiece
from tfrecord_io.columns.arrow.encode.slice_encoder import PieceMemory as PieceMemory
from tfrecord_io.columns.arrow.encode.slice_encoder import SliceEncoder as SliceEncoder
from tfrecord_io.columns.arrow.encodings.tensor_encoding import DecodedCells as DecodedCells
from tfrecord_io.columns.arrow.encodings.tensor_encoding import TensorEncoding as TensorEncoding
from tfrecord_io.columns.arrow.evaluate_condition import cast_comparable_columns as cast_comparable_columns
from tfrecord_io.columns.arrow.evaluate_condition import evaluate_simple as evaluate_simple
from tfrecord_io.columns.arrow.image_decoder import PixelReader as PixelReader
from tfrecord_io.columns.arrow.image_header import ImageHeader as ImageHeader
from tfrecord_io.columns.arrow.image_header import pillow as pillow
from tfrecord_io.columns.arrow.input.batch_source import BatchSource as BatchSource
from tfrecord_io.columns.arrow.input.batch_source import open_input as open_input
from tfrecord_io.columns.arrow.input.conforming import Conforming as Conforming
from tfrecord_io.columns.arrow.input.from_arrays import refuse_duckdb_types as refuse_duckdb_types
from tfrecord_io.columns.arrow.input.from_arrays import structured_columns as structured_columns
from tfrecord_io.columns.arrow.input.from_arrays import table_of_rows as table_of_rows
from tfrecord_io.columns.arrow.input.from_xarray import record_dimension as record_dimension
from tfrecord_io.columns.arrow.input.row_batches import row_batches as row_batches
from tfrecord_io.columns.arrow.messages.message_batches import MessageBatchBuilder as MessageBatchBuilder
from tfrecord_io.columns.arrow.output.column_statistics import ColumnAccumulator as ColumnAccumulator
from tfrecord_io.columns.arrow.output.column_statistics import ColumnSummary as ColumnSummary
from tfrecord_io.columns.arrow.output.python_rows import RecordDicts as RecordDicts
from tfrecord_io.columns.arrow.output.to_numpy import Dense as Dense
from tfrecord_io.columns.arrow.output.to_numpy import Ragged as Ragged
from tfrecord_io.columns.arrow.output.to_numpy import TensorLists as TensorLists
from tfrecord_io.columns.arrow.output.to_pandas import to_pandas as to_pandas
from tfrecord_io.columns.arrow.output.to_python import JsonRows as JsonRows
from tfrecord_io.columns.arrow.output.to_python import json_value as json_value
from tfrecord_io.columns.arrow.output.to_python import python_values as python_values
from tfrecord_io.columns.arrow.plain_values import plain_array as plain_array
from tfrecord_io.columns.arrow.raw_images import RawImages as RawImages
from tfrecord_io.columns.arrow.row_fault import RowFault as RowFault
from tfrecord_io.columns.arrow.tensor_values import TensorValues as TensorValues
from tfrecord_io.columns.arrow.type_literals import type_literals as type_literals
from tfrecord_io.columns.column import Column as Column
from tfrecord_io.columns.feature_values import FeatureBatch as FeatureBatch
from tfrecord_io.columns.feature_values import FeatureValues as FeatureValues
from tfrecord_io.columns.row_hashes import RowHashes as RowHashes
from tfrecord_io.columns.schema.column_selection import NamePattern as NamePattern
from tfrecord_io.columns.schema.column_selection import Overrides as Overrides
from tfrecord_io.columns.schema.column_selection import Projection as Projection
from tfrecord_io.columns.schema.column_selection import as_stored as as_stored
from tfrecord_io.columns.schema.column_selection import has_open_shapes as has_open_shapes
from tfrecord_io.columns.schema.composite import Composite as Composite
from tfrecord_io.columns.schema.embedded import EmbeddedSchema as EmbeddedSchema
from tfrecord_io.columns.schema.field import CONVERSION_ERRORS as CONVERSION_ERRORS
from tfrecord_io.columns.schema.field import Field as Field
from tfrecord_io.columns.schema.formats.tfds_info import TfdsInfo as TfdsInfo
from tfrecord_io.columns.schema.image_form import ImageForm as ImageForm
from tfrecord_io.columns.schema.image_form import RawImageForm as RawImageForm
from tfrecord_io.columns.schema.inferred_schema import InferredSchema as InferredSchema
from tfrecord_io.columns.schema.inferred_type import KindCount as KindCount
from tfrecord_io.columns.schema.inferred_type import Observation as Observation
from tfrecord_io.columns.schema.merged_schema import fill_in_types as fill_in_types
from tfrecord_io.columns.schema.pandas_metadata import feature_descriptions as feature_descriptions
from tfrecord_io.columns.schema.schema import Schema as Schema
from tfrecord_io.columns.schema.sparse_column import SparseColumn as SparseColumn
from tfrecord_io.columns.schema.types import uncommon_columns as uncommon_columns

__all__ = [
    "ArrayBuffers",
    "BatchBuilder",
    "BatchSource",
    "BatchStream",
    "CONVERSION_ERRORS",
    "Column",
    "ColumnAccumulator",
    "ColumnSummary",
    "Composite",
    "Conforming",
    "DecodedCells",
    "Dense",
    "EmbeddedSchema",
    "EncodedPiece",
    "FeatureBatch",
    "FeatureValues",
    "Field",
    "ImageForm",
    "ImageHeader",
    "InferredSchema",
    "JsonRows",
    "KindCount",
    "MessageBatchBuilder",
    "NamePattern",
    "Observation",
    "Observations",
    "OpenShapes",
    "Overrides",
    "PieceMemory",
    "PixelReader",
    "Projection",
    "Ragged",
    "RawImageForm",
    "RawImages",
    "RecordDicts",
    "Rounding",
    "RowFault",
    "RowHashes",
    "Schema",
    "SeenColumns",
    "SliceEncoder",
    "SparseColumn",
    "TensorEncoding",
    "TensorLists",
    "TensorValues",
    "TfdsInfo",
    "arrow_file",
    "as_stored",
    "cast_comparable_columns",
    "empty_batch",
    "evaluate_simple",
    "feature_descriptions",
    "fill_in_types",
    "has_open_shapes",
    "int64_array",
    "json_value",
    "offsets_of",
    "open_input",
    "pillow",
    "plain_array",
    "plain_layout",
    "plan_columns",
    "python_values",
    "reads_companions",
    "record_dimension",
    "refuse_duckdb_types",
    "row_batches",
    "runs_within",
    "selectable",
    "structured_columns",
    "table_of_rows",
    "to_pandas",
    "type_literals",
    "uncommon_columns",
    "value_bytes",
]
