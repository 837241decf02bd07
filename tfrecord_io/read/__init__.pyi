# Written by docs/reference/stub.py.

from tfrecord_io.read.build_column_index import FileIndex as FileIndex
from tfrecord_io.read.build_column_index import files_at_a_time as files_at_a_time
from tfrecord_io.read.build_column_index import index_columns as index_columns
from tfrecord_io.read.build_column_index import withdraw_if_replaced as withdraw_if_replaced
from tfrecord_io.read.call_options import check_equal as check_equal
from tfrecord_io.read.call_options import datasets_in as datasets_in
from tfrecord_io.read.call_options import options_from_call as options_from_call
from tfrecord_io.read.call_options import refuse_options as refuse_options
from tfrecord_io.read.chunks.block_walker import LEAVES_OUT as LEAVES_OUT
from tfrecord_io.read.chunks.block_walker import BlockWalker as BlockWalker
from tfrecord_io.read.chunks.block_walker import RecordFile as RecordFile
from tfrecord_io.read.chunks.chunk import DecodedChunk as DecodedChunk
from tfrecord_io.read.chunks.chunk_reader import ChunkReader as ChunkReader
from tfrecord_io.read.chunks.count_frames import count_by_reading as count_by_reading
from tfrecord_io.read.chunks.count_frames import count_each as count_each
from tfrecord_io.read.chunks.count_frames import records_of_files as records_of_files
from tfrecord_io.read.chunks.embedded_schemas import first_contents as first_contents
from tfrecord_io.read.chunks.embedded_schemas import first_embedded as first_embedded
from tfrecord_io.read.chunks.embedded_schemas import unite_embedded as unite_embedded
from tfrecord_io.read.chunks.recovery import MOST_REGIONS as MOST_REGIONS
from tfrecord_io.read.chunks.recovery import Recovery as Recovery
from tfrecord_io.read.chunks.recovery import SkippedRegion as SkippedRegion
from tfrecord_io.read.chunks.recovery import SkippedRegions as SkippedRegions
from tfrecord_io.read.chunks.recovery import fitting_parts as fitting_parts
from tfrecord_io.read.chunks.recovery import recovery_of as recovery_of
from tfrecord_io.read.chunks.recovery import regions_table as regions_table
from tfrecord_io.read.chunks.segments import SegmentWalk as SegmentWalk
from tfrecord_io.read.chunks.segments import segment_pool as segment_pool
from tfrecord_io.read.dataset_splits import find_sources as find_sources
from tfrecord_io.read.dataset_splits import resolve_sources as resolve_sources
from tfrecord_io.read.dataset_splits import tfds_format as tfds_format
from tfrecord_io.read.explanation import Explanation as Explanation
from tfrecord_io.read.explanation import FilePlan as FilePlan
from tfrecord_io.read.explanation import FilterPlan as FilterPlan
from tfrecord_io.read.explanation import explain_scan as explain_scan
from tfrecord_io.read.exploding import RECORD as RECORD
from tfrecord_io.read.exploding import STEP as STEP
from tfrecord_io.read.exploding import explode as explode
from tfrecord_io.read.exploding import replace_steps as replace_steps
from tfrecord_io.read.exploding import rows_and_numbers as rows_and_numbers
from tfrecord_io.read.exploding import step_columns as step_columns
from tfrecord_io.read.exploding import step_counts as step_counts
from tfrecord_io.read.exploding import step_values as step_values
from tfrecord_io.read.imploding import implode as implode
from tfrecord_io.read.index.column_index import COLUMNS_SUFFIX as COLUMNS_SUFFIX
from tfrecord_io.read.index.column_index import ColumnIndex as ColumnIndex
from tfrecord_io.read.index.column_index import check_fields as check_fields
from tfrecord_io.read.index.column_index import expand_scalars as expand_scalars
from tfrecord_io.read.index.column_search import FileMatches as FileMatches
from tfrecord_io.read.index.find_index import find_again as find_again
from tfrecord_io.read.index.find_index import find_indexes as find_indexes
from tfrecord_io.read.index.find_index import open_columns as open_columns
from tfrecord_io.read.index.find_index import read_index as read_index
from tfrecord_io.read.index.find_index import unless_stale as unless_stale
from tfrecord_io.read.index.find_index import warn_of_stale as warn_of_stale
from tfrecord_io.read.index.indexed_files import IndexedFiles as IndexedFiles
from tfrecord_io.read.index.known_counts import KnownCounts as KnownCounts
from tfrecord_io.read.index.record_index import SUFFIX as SUFFIX
from tfrecord_io.read.index.record_index import RecordIndex as RecordIndex
from tfrecord_io.read.index.record_index import scan_index as scan_index
from tfrecord_io.read.index.write_index import IndexWriter as IndexWriter
from tfrecord_io.read.index.write_index import check_indexable as check_indexable
from tfrecord_io.read.index.write_index import check_uncompressed as check_uncompressed
from tfrecord_io.read.index.write_index import write_index as write_index
from tfrecord_io.read.index_search import column_search as column_search
from tfrecord_io.read.index_search import open_indexed as open_indexed
from tfrecord_io.read.lazy_scan import LazyScan as LazyScan
from tfrecord_io.read.live_scan import LiveScan as LiveScan
from tfrecord_io.read.live_scan import refresh_scan as refresh_scan
from tfrecord_io.read.narrow_scan import apply_filter as apply_filter
from tfrecord_io.read.narrow_scan import exclude_rows as exclude_rows
from tfrecord_io.read.narrow_scan import skip_rows as skip_rows
from tfrecord_io.read.opening import count_scan as count_scan
from tfrecord_io.read.opening import open_all as open_all
from tfrecord_io.read.opening import open_path as open_path
from tfrecord_io.read.opening import open_scan as open_scan
from tfrecord_io.read.opening import read_scan as read_scan
from tfrecord_io.read.partition_columns import PartitionColumns as PartitionColumns
from tfrecord_io.read.random_access import RandomAccess as RandomAccess
from tfrecord_io.read.random_access import SelectedRecords as SelectedRecords
from tfrecord_io.read.random_access import open_random as open_random
from tfrecord_io.read.reader import NumberedRows as NumberedRows
from tfrecord_io.read.reader import Reader as Reader
from tfrecord_io.read.reader import open_as_it_is as open_as_it_is
from tfrecord_io.read.record_checks import AbsentColumns as AbsentColumns
from tfrecord_io.read.record_checks import sidecar_schema as sidecar_schema
from tfrecord_io.read.record_checks import split_folders as split_folders
from tfrecord_io.read.record_checks import warn_of_schema as warn_of_schema
from tfrecord_io.read.record_reader import RecordReader as RecordReader
from tfrecord_io.read.report import REGION_HEADINGS as REGION_HEADINGS
from tfrecord_io.read.report import ReadReport as ReadReport
from tfrecord_io.read.report import end_read as end_read
from tfrecord_io.read.report import region_rows as region_rows
from tfrecord_io.read.resolve_schema import plan_scan as plan_scan
from tfrecord_io.read.row_fault_policy import RowFaultPolicy as RowFaultPolicy
from tfrecord_io.read.row_filter import RowFilter as RowFilter
from tfrecord_io.read.row_filter import add_filter_columns as add_filter_columns
from tfrecord_io.read.row_filter import files_in_folders as files_in_folders
from tfrecord_io.read.saved_schema import FORMAT as FORMAT
from tfrecord_io.read.saved_schema import VERSION as VERSION
from tfrecord_io.read.saved_schema import Fingerprint as Fingerprint
from tfrecord_io.read.saved_schema import find_saved_schema as find_saved_schema
from tfrecord_io.read.saved_schema import has_named_types as has_named_types
from tfrecord_io.read.saved_schema import place_of_schema as place_of_schema
from tfrecord_io.read.saved_schema import sample_features as sample_features
from tfrecord_io.read.scan import PIECE_BYTES as PIECE_BYTES
from tfrecord_io.read.scan import ResolvedSchema as ResolvedSchema
from tfrecord_io.read.scan import Scan as Scan
from tfrecord_io.read.scan_holder import ScanHolder as ScanHolder
from tfrecord_io.read.scan_holder import unwrap_scans as unwrap_scans
from tfrecord_io.read.source_resolution import Files as Files
from tfrecord_io.read.source_resolution import plan_dataset as plan_dataset
from tfrecord_io.read.source_resolution import plan_source as plan_source
from tfrecord_io.read.source_resolution import plan_sources as plan_sources
from tfrecord_io.read.source_resolution import resolve_source as resolve_source
from tfrecord_io.read.sources import ChosenRecords as ChosenRecords
from tfrecord_io.read.sources import PieceStream as PieceStream
from tfrecord_io.read.sources import add_folder_types as add_folder_types
from tfrecord_io.read.sources import as_list as as_list
from tfrecord_io.read.sources import is_source as is_source
from tfrecord_io.read.sources import made_records as made_records
from tfrecord_io.read.sources import one_path as one_path
from tfrecord_io.read.sources import paths_of as paths_of
from tfrecord_io.read.sources import resolve_selection as resolve_selection
from tfrecord_io.read.sources import storage_of as storage_of
from tfrecord_io.read.sources import unite_parts as unite_parts
from tfrecord_io.read.sources import whole_files as whole_files
from tfrecord_io.read.type_suggestions import SAMPLE_ROWS as SAMPLE_ROWS
from tfrecord_io.read.type_suggestions import Suggestion as Suggestion
from tfrecord_io.read.type_suggestions import suggest_types as suggest_types

__all__ = [
    "AbsentColumns",
    "BlockWalker",
    "COLUMNS_SUFFIX",
    "ChosenRecords",
    "ChunkReader",
    "ColumnIndex",
    "DecodedChunk",
    "Explanation",
    "FORMAT",
    "FileIndex",
    "FileMatches",
    "FilePlan",
    "Files",
    "FilterPlan",
    "Fingerprint",
    "IndexWriter",
    "IndexedFiles",
    "KnownCounts",
    "LEAVES_OUT",
    "LazyScan",
    "LiveScan",
    "MOST_REGIONS",
    "NumberedRows",
    "PIECE_BYTES",
    "PartitionColumns",
    "PieceStream",
    "RECORD",
    "REGION_HEADINGS",
    "RandomAccess",
    "ReadReport",
    "Reader",
    "RecordFile",
    "RecordIndex",
    "RecordReader",
    "Recovery",
    "ResolvedSchema",
    "RowFaultPolicy",
    "RowFilter",
    "SAMPLE_ROWS",
    "STEP",
    "SUFFIX",
    "Scan",
    "ScanHolder",
    "SegmentWalk",
    "SelectedRecords",
    "SkippedRegion",
    "SkippedRegions",
    "Suggestion",
    "VERSION",
    "add_filter_columns",
    "add_folder_types",
    "apply_filter",
    "as_list",
    "check_equal",
    "check_fields",
    "check_indexable",
    "check_uncompressed",
    "column_search",
    "count_by_reading",
    "count_each",
    "count_scan",
    "datasets_in",
    "end_read",
    "exclude_rows",
    "expand_scalars",
    "explain_scan",
    "explode",
    "files_at_a_time",
    "files_in_folders",
    "find_again",
    "find_indexes",
    "find_saved_schema",
    "find_sources",
    "first_contents",
    "first_embedded",
    "fitting_parts",
    "has_named_types",
    "implode",
    "index_columns",
    "is_source",
    "made_records",
    "one_path",
    "open_all",
    "open_as_it_is",
    "open_columns",
    "open_indexed",
    "open_path",
    "open_random",
    "open_scan",
    "options_from_call",
    "paths_of",
    "place_of_schema",
    "plan_dataset",
    "plan_scan",
    "plan_source",
    "plan_sources",
    "read_index",
    "read_scan",
    "records_of_files",
    "recovery_of",
    "refresh_scan",
    "refuse_options",
    "region_rows",
    "regions_table",
    "replace_steps",
    "resolve_selection",
    "resolve_source",
    "resolve_sources",
    "rows_and_numbers",
    "sample_features",
    "scan_index",
    "segment_pool",
    "sidecar_schema",
    "skip_rows",
    "split_folders",
    "step_columns",
    "step_counts",
    "step_values",
    "storage_of",
    "suggest_types",
    "tfds_format",
    "unite_embedded",
    "unite_parts",
    "unless_stale",
    "unwrap_scans",
    "warn_of_schema",
    "warn_of_stale",
    "whole_files",
    "withdraw_if_replaced",
    "write_index",
]
