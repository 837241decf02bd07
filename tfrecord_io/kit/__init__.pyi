# Written by docs/reference/stub.py.

from tfrecord_io.base import Adapter as Adapter
from tfrecord_io.base import Condition as Condition
from tfrecord_io.base import LateTypes as LateTypes
from tfrecord_io.base import Operator as Operator
from tfrecord_io.base import Options as Options
from tfrecord_io.base import ProgressMeter as ProgressMeter
from tfrecord_io.base import ReadOptions as ReadOptions
from tfrecord_io.base import Report as Report
from tfrecord_io.base import Summary as Summary
from tfrecord_io.base import WriteOptions as WriteOptions
from tfrecord_io.base import byte_size as byte_size
from tfrecord_io.base import check_choice as check_choice
from tfrecord_io.base import check_integer as check_integer
from tfrecord_io.base import check_keywords as check_keywords
from tfrecord_io.base import counted as counted
from tfrecord_io.base import for_cli as for_cli
from tfrecord_io.base import listed as listed
from tfrecord_io.base import needs as needs
from tfrecord_io.base import printable as printable
from tfrecord_io.base import short as short
from tfrecord_io.base import warn as warn
from tfrecord_io.bytes import CODECS as CODECS
from tfrecord_io.bytes import FORMATS as FORMATS
from tfrecord_io.bytes import Array as Array
from tfrecord_io.bytes import Codec as Codec
from tfrecord_io.bytes import Damage as Damage
from tfrecord_io.bytes import Dtype as Dtype
from tfrecord_io.bytes import Format as Format
from tfrecord_io.bytes import format_option as format_option
from tfrecord_io.columns import DecodedCells as DecodedCells
from tfrecord_io.columns import RowFault as RowFault
from tfrecord_io.columns import TensorEncoding as TensorEncoding
from tfrecord_io.columns import empty_batch as empty_batch
from tfrecord_io.columns import feature_descriptions as feature_descriptions
from tfrecord_io.columns import json_value as json_value
from tfrecord_io.columns import open_input as open_input
from tfrecord_io.columns import refuse_duckdb_types as refuse_duckdb_types
from tfrecord_io.columns import selectable as selectable
from tfrecord_io.columns import to_pandas as to_pandas
from tfrecord_io.kit.column_facade import Column as Column
from tfrecord_io.kit.files_facade import File as File
from tfrecord_io.kit.files_facade import Files as Files
from tfrecord_io.kit.rows_facade import Rows as Rows
from tfrecord_io.kit.scan_facade import LiveScan as LiveScan
from tfrecord_io.kit.scan_facade import Scan as Scan
from tfrecord_io.kit.scan_facade import condition_of as condition_of
from tfrecord_io.rows import ArraysByNumber as ArraysByNumber
from tfrecord_io.rows import BatchesByNumber as BatchesByNumber
from tfrecord_io.rows import ColumnRepresentation as ColumnRepresentation
from tfrecord_io.rows import ImageColumns as ImageColumns
from tfrecord_io.rows import ListLengths as ListLengths
from tfrecord_io.rows import ModelInputs as ModelInputs
from tfrecord_io.rows import RepresentationOptions as RepresentationOptions
from tfrecord_io.rows import RowLookup as RowLookup
from tfrecord_io.rows import TableRepresentation as TableRepresentation
from tfrecord_io.rows import workers_in_state as workers_in_state
from tfrecord_io.store import open_output as open_output
from tfrecord_io.write import DistributedWriter as DistributedWriter
from tfrecord_io.write import OpenPart as OpenPart
from tfrecord_io.write import WrittenPart as WrittenPart

__all__ = [
    "Adapter",
    "Array",
    "ArraysByNumber",
    "BatchesByNumber",
    "CODECS",
    "Codec",
    "Column",
    "ColumnRepresentation",
    "Condition",
    "Damage",
    "DecodedCells",
    "DistributedWriter",
    "Dtype",
    "FORMATS",
    "File",
    "Files",
    "Format",
    "ImageColumns",
    "LateTypes",
    "ListLengths",
    "LiveScan",
    "ModelInputs",
    "OpenPart",
    "Operator",
    "Options",
    "ProgressMeter",
    "ReadOptions",
    "Report",
    "RepresentationOptions",
    "RowFault",
    "RowLookup",
    "Rows",
    "Scan",
    "Summary",
    "TableRepresentation",
    "TensorEncoding",
    "WriteOptions",
    "WrittenPart",
    "byte_size",
    "check_choice",
    "check_integer",
    "check_keywords",
    "condition_of",
    "counted",
    "empty_batch",
    "feature_descriptions",
    "for_cli",
    "format_option",
    "json_value",
    "listed",
    "needs",
    "open_input",
    "open_output",
    "printable",
    "refuse_duckdb_types",
    "selectable",
    "short",
    "to_pandas",
    "warn",
    "workers_in_state",
]
