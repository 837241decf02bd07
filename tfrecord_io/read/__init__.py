"""Scans: what is known of files without reading them, and their rows out.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names, refuse_calls

_HOMES = {
    "FileIndex": "build_column_index",  # The index of one file
    "files_at_a_time": "build_column_index",  # How many files are read, and their indexes stored, at a time
    "index_columns": "build_column_index",  # Write the column index of each file
    "withdraw_if_replaced": "build_column_index",  # Remove the indexes, and raise ReplacedError
    "check_equal": "call_options",  # Raise ValueError if datasets read together differ in one of these options
    "datasets_in": "call_options",  # The datasets, and the pieces of them, in what a call reads
    "options_from_call": "call_options",  # Make the options of a call
    "refuse_options": "call_options",  # Raise ValueError for options that a dataset states and a call refuses
    "LEAVES_OUT": "chunks.block_walker",  # Advice that leaves out larger records
    "BlockWalker": "chunks.block_walker",  # Walks through files
    "RecordFile": "chunks.block_walker",  # One open file, or a piece of one, read in blocks of `block_bytes`
    "DecodedChunk": "chunks.chunk",  # The columns of consecutive records, of one file or of several small ones
    "ChunkReader": "chunks.chunk_reader",  # Decodes the records of files
    "count_by_reading": "chunks.count_frames",  # The number of records of each file, by reading them
    "count_each": "chunks.count_frames",  # Count the records of each file by the cheapest method that applies
    "records_of_files": "chunks.count_frames",  # Count the records of each file
    "first_contents": "chunks.embedded_schemas",  # The embedded schemas of files
    "first_embedded": "chunks.embedded_schemas",  # The content of the embedded schema of the next record of a walk
    "unite_embedded": "chunks.embedded_schemas",  # The schema that covers `embedded` and others
    "MOST_REGIONS": "chunks.recovery",  # that are kept
    "fitting_parts": "chunks.recovery",  # Make parts of all rows but those that have a fault
    "Recovery": "chunks.recovery",  # Decides at each fault whether reading goes on, moves the walker there
    "recovery_of": "chunks.recovery",  # The recovery for an `on_error`
    "regions_table": "chunks.recovery",  # A row for each region
    "SkippedRegion": "chunks.recovery",  # A damaged part of a file that a reader left out
    "SkippedRegions": "chunks.recovery",  # The regions that were left out, in the order of the files, and sums over all
    "segment_pool": "chunks.segments",  # The threads that work on segments
    "SegmentWalk": "chunks.segments",  # Advances walkers over records of which nothing is kept, a segment at a time
    "find_sources": "dataset_splits",  # Find the files of a path, of a file object, or of a list of those and datasets
    "resolve_sources": "dataset_splits",  # Find the files of a read, by its options or another `storage`
    "tfds_format": "dataset_splits",  # The format of the files of a directory that TFDS wrote, None for TFRecord
    "explain_scan": "explanation",  # The plan of opening a scan
    "Explanation": "explanation",  # The files, columns and filters that a read will open and decode
    "FilePlan": "explanation",  # How a file, or a piece of one, is read
    "FilterPlan": "explanation",  # Where a part of the filter is applied
    "RECORD": "exploding",  # The column with the number of the record
    "STEP": "exploding",  # The column with the number of the step
    "explode": "exploding",  # Turn each row, such as an episode, into a row for each item of its lists, such as a step
    "replace_steps": "exploding",  # Replace the columns of steps by new values
    "rows_and_numbers": "exploding",  # The row of each item of lists with these lengths, and its number in the list
    "step_columns": "exploding",  # The columns of steps
    "step_counts": "exploding",  # How many steps each row has
    "step_values": "exploding",  # The values of all lists, one after the other
    "implode": "imploding",  # Turn consecutive rows that differ in some columns only, such as the boxes of an image
    "COLUMNS_SUFFIX": "index.column_index",  # The suffix of a column index
    "check_fields": "index.column_index",  # The schema of columns that an index can have
    "ColumnIndex": "index.column_index",  # An open column index, or the part for a span of its file
    "expand_scalars": "index.column_index",  # The columns of an index
    "FileMatches": "index.column_search",  # The records of a file, or of a piece of it, that can fulfil a condition
    "find_again": "index.find_index",  # Look up the index of a file again
    "find_indexes": "index.find_index",  # The index file of each data file
    "open_columns": "index.find_index",  # Open a column index that matches its data file, and read the offsets
    "read_index": "index.find_index",  # Read an index file that matches its data file
    "unless_stale": "index.find_index",  # Use an index
    "warn_of_stale": "index.find_index",  # Warn, once, of the indexes that are not used
    "IndexedFiles": "index.indexed_files",  # Plain files whose records are numbered consecutively, from 0 on
    "KnownCounts": "index.known_counts",  # Numbers of records from manifests, slices
    "SUFFIX": "index.record_index",  # The suffix of a record index
    "RecordIndex": "index.record_index",  # The offsets of the records of a file, or of a part of one, without gaps
    "scan_index": "index.record_index",  # The index of a plain file
    "check_indexable": "index.write_index",  # Raise ValueError for a compressed file, or a file object
    "check_uncompressed": "index.write_index",  # Raise ValueError for a compressed file
    "IndexWriter": "index.write_index",  # Collects the sizes of the records written to a file
    "write_index": "index.write_index",  # Write an index file to commit, with the owner and mode of the old index
    "column_search": "index_search",  # The search for the columns that are wanted of a scan, or for its rows
    "open_indexed": "index_search",  # Open the rows of a scan by its column indexes
    "LazyScan": "lazy_scan",  # A scan that finds its schema later
    "LiveScan": "live_scan",  # A scan whose files are looked up again at each use
    "refresh_scan": "live_scan",  # Look up the current files for the same columns and rows
    "apply_filter": "narrow_scan",  # Only the rows that meet a condition, and those of earlier calls
    "exclude_rows": "narrow_scan",  # Exclude files, and records of indexed files, that cannot fulfil a condition
    "skip_rows": "narrow_scan",  # Skip the first rows
    "count_scan": "opening",  # The number of rows
    "open_all": "opening",  # Open all rows of a dataset, under the types that all of them have
    "open_path": "opening",  # Plan a read and open it
    "open_scan": "opening",  # Open the files of a scan
    "read_scan": "opening",  # All rows as a table
    "PartitionColumns": "partition_columns",  # The columns whose values are in directory names
    "open_random": "random_access",  # Open TFRecord files to read any of their records, by number or by key
    "RandomAccess": "random_access",  # Records of TFRecord files by number, and by key
    "SelectedRecords": "random_access",  # The records that meet a condition, numbered from 0 on
    "NumberedRows": "reader",  # The rows of a reader, and their numbers among all records
    "open_as_it_is": "reader",  # Open all files of a scan
    "Reader": "reader",  # Record batches of one schema from TFRecord files
    "AbsentColumns": "record_checks",  # The declared columns without a value so far, in one read of all its records
    "sidecar_schema": "record_checks",  # The description of the datasets that files are of
    "split_folders": "record_checks",  # Split a path into the directory so many folders above its file
    "warn_of_schema": "record_checks",  # Warn about records that the schema does not describe
    "RecordReader": "record_reader",  # Iterate once over the payloads of TFRecord files
    "REGION_HEADINGS": "report",  # Headings of a table of skipped regions
    "end_read": "report",  # End a read at `error`
    "ReadReport": "report",  # The counts of a read so far
    "region_rows": "report",  # A row of text for each region, for the columns `REGION_HEADINGS`
    "plan_scan": "resolve_schema",  # Choose the schema of a read, and compile it
    "RowFaultPolicy": "row_fault_policy",  # The policy of `on_error` for rows that were delivered
    "add_filter_columns": "row_filter",  # The ``columns=`` that selects the columns of a filter, too
    "files_in_folders": "row_filter",  # Select the files of a manifest in the folders that meet a condition on
    "RowFilter": "row_filter",  # A condition on the rows of a read
    "FORMAT": "saved_schema",  # The name of the format in a saved schema
    "VERSION": "saved_schema",  # The version in a saved schema
    "find_saved_schema": "saved_schema",  # The saved schema of files, or None
    "Fingerprint": "saved_schema",  # The features of some records
    "has_named_types": "saved_schema",  # True if the types of a schema, as JSON, are names, and none is serialized
    "place_of_schema": "saved_schema",  # The directory of a file, with its slash
    "sample_features": "saved_schema",  # Decode so many records, up to an error and some megabytes
    "PIECE_BYTES": "scan",  # Bytes of a piece of a dataset
    "ResolvedSchema": "scan",  # The schema of the features, and its source
    "Scan": "scan",  # A read of files under a schema
    "ScanHolder": "scan_holder",  # Base class of datasets and their pieces, which hold a scan
    "unwrap_scans": "scan_holder",  # Take the scans out of datasets and pieces, alone or in a list
    "Files": "source_resolution",  # Files that were looked up, and how to read them
    "plan_dataset": "source_resolution",  # The scan of all columns and rows of files, under one schema
    "plan_source": "source_resolution",  # Plan the scan of a call, to be opened later, once or several times
    "plan_sources": "source_resolution",  # The scan of all columns and rows of files that were looked up
    "resolve_source": "source_resolution",  # Resolve the source of a call
    "add_folder_types": "sources",  # Take over the types of partition columns from a dataset of which a list has pieces
    "as_list": "sources",  # An iterable of sources as a list, which can be gone through again
    "ChosenRecords": "sources",  # The records of a file that are rows of a scan
    "is_source": "sources",  # True if a value that may be data is a path, a dataset, or a list of those
    "made_records": "sources",  # A source of records made of files, as one TFRecord file
    "one_path": "sources",  # The path of a source, for a call that changes the files of one dataset
    "paths_of": "sources",  # The paths by which the files of a source were looked up, or their own
    "PieceStream": "sources",  # A `tfrecord_io.bytes.compression.stream.Stream` that consists of pieces
    "resolve_selection": "sources",  # Resolve the source of a call to files and a selection
    "storage_of": "sources",  # The keywords of the storage of a dataset, for a call that changes its files
    "unite_parts": "sources",  # Make one scan of the rows of parts of a dataset
    "whole_files": "sources",  # The paths of a source, for a call that works on whole files, which `verb` names
    "SAMPLE_ROWS": "type_suggestions",  # Rows of the sample that suggestions look at
    "suggest_types": "type_suggestions",  # The columns of the first records that can be read as something better
    "Suggestion": "type_suggestions",  # How a column of bytes, or of numbers, can be read as what it is
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
refuse_calls(__name__)
