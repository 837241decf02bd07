"""Scans: what is known of files without reading them, and their rows out.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names, refuse_calls

_HOMES = {
    "KnownBoundaries": "byte_ranges",  # Record boundaries that were found, for further byte ranges
    "options_from_call": "call_options",  # Make the options of a call
    "BlockWalker": "chunks.block_walker",  # Walks through files
    "RecordFile": "chunks.block_walker",  # One open file, or a piece of one, read in blocks of `block_bytes`
    "Recovery": "chunks.recovery",  # Decides at each fault whether reading goes on, moves the walker there
    "SkippedRegion": "chunks.skipped_region",  # A damaged part of a file that a reader left out
    "SkippedRegions": "chunks.skipped_regions",  # The regions that were left out, their table and texts
    "ColumnIndexes": "column_indexes",  # The column indexes of what is written
    "DerivedRecords": "derived_records",  # Records made of files of other formats
    "ListRows": "example_lists.list_rows",  # The rows of lists in files of ExampleListWithContext
    "Steps": "exploding",  # The steps of the rows of a batch, such as episodes
    "check_indexes": "file_indexes",  # Compare the index of each file with the file
    "write_indexes": "file_indexes",  # Write the index of each file
    "IndexWriter": "index.write_index",  # Collects the sizes of the records written to a file
    "LazyScan": "lazy_scan",  # A scan that finds its schema later
    "CallSource": "call_source",  # The source that a call is given
    "AddedColumns": "added_columns",  # The columns whose values are in directory names, or are paths
    "NumberedRows": "reader",  # The rows of a reader, and their numbers among all records
    "Reader": "reader",  # Record batches of one schema from TFRecord files
    "RecordMap": "record_map",  # The records of files by address, found beside what is shown of them
    "ReadReport": "report",  # The counts of a read so far
    "RowFaultPolicy": "row_fault_policy",  # The policy of `on_error` for rows that were delivered
    "RowFilter": "row_filter",  # A condition on the rows of a read
    "Scan": "scan",  # A read of files under a schema
    "ScanHolder": "scan_holder",  # Base class of datasets and their pieces, which hold a scan
    "ScanRows": "scan_rows",  # The rows of a scan: open, read, count or narrow them
    "Files": "source_resolution",  # Files that were looked up, and how to read them
    "check_files": "verifying.verify",  # Check every record of files, and compare these with schema, manifest and index
    "TypeSample": "type_suggestions",  # The first rows of a read, which show what columns can be read as
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
refuse_calls(__name__)
