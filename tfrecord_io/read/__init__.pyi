# Written by docs/reference/stub.py.

from tfrecord_io.read.added_columns import AddedColumns as AddedColumns
from tfrecord_io.read.byte_ranges import KnownBoundaries as KnownBoundaries
from tfrecord_io.read.call_options import options_from_call as options_from_call
from tfrecord_io.read.call_source import CallSource as CallSource
from tfrecord_io.read.chunks.block_walker import BlockWalker as BlockWalker
from tfrecord_io.read.chunks.block_walker import RecordFile as RecordFile
from tfrecord_io.read.chunks.recovery import Recovery as Recovery
from tfrecord_io.read.chunks.skipped_region import SkippedRegion as SkippedRegion
from tfrecord_io.read.chunks.skipped_regions import SkippedRegions as SkippedRegions
from tfrecord_io.read.column_indexes import ColumnIndexes as ColumnIndexes
from tfrecord_io.read.derived_records import DerivedRecords as DerivedRecords
from tfrecord_io.read.example_lists.list_rows import ListRows as ListRows
from tfrecord_io.read.exploding import Steps as Steps
from tfrecord_io.read.file_indexes import check_indexes as check_indexes
from tfrecord_io.read.file_indexes import write_indexes as write_indexes
from tfrecord_io.read.index.write_index import IndexWriter as IndexWriter
from tfrecord_io.read.lazy_scan import LazyScan as LazyScan
from tfrecord_io.read.reader import NumberedRows as NumberedRows
from tfrecord_io.read.reader import Reader as Reader
from tfrecord_io.read.record_map import RecordMap as RecordMap
from tfrecord_io.read.report import ReadReport as ReadReport
from tfrecord_io.read.row_fault_policy import RowFaultPolicy as RowFaultPolicy
from tfrecord_io.read.row_filter import RowFilter as RowFilter
from tfrecord_io.read.scan import Scan as Scan
from tfrecord_io.read.scan_holder import ScanHolder as ScanHolder
from tfrecord_io.read.scan_rows import ScanRows as ScanRows
from tfrecord_io.read.source_resolution import Files as Files
from tfrecord_io.read.type_suggestions import TypeSample as TypeSample
from tfrecord_io.read.verifying.verify import check_files as check_files

__all__ = [
    "AddedColumns",
    "BlockWalker",
    "CallSource",
    "ColumnIndexes",
    "DerivedRecords",
    "Files",
    "IndexWriter",
    "KnownBoundaries",
    "LazyScan",
    "ListRows",
    "NumberedRows",
    "ReadReport",
    "Reader",
    "RecordFile",
    "RecordMap",
    "Recovery",
    "RowFaultPolicy",
    "RowFilter",
    "Scan",
    "ScanHolder",
    "ScanRows",
    "SkippedRegion",
    "SkippedRegions",
    "Steps",
    "TypeSample",
    "check_files",
    "check_indexes",
    "options_from_call",
    "write_indexes",
]
