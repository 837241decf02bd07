"""What adapters, engines, formats, encodings, compressions and tools are made of, here and in other packages.

Import names from here, never from a module behind it::

    from tfrecord_io.kit import DistributedWriter, Scan, needs

docs/extend.md shows how, and says what may change. Commands are made of `tfrecord_io.apps.cli`, tests of
`tfrecord_io.testing`.
"""

from tfrecord_io.base.public_names import lazy_names

_HOMES = {
    # ---- read
    "Scan": "kit.scan_facade",  # A read as a value: narrow it, split it, send it, open it
    "LiveScan": "kit.scan_facade",  # A scan whose files are looked up again at each use
    "Options": "base",  # Keywords of a call that takes a path, checked: the base of all options
    "ReadOptions": "base",  # Keywords of reading, checked
    "Condition": "base",  # A condition on rows as a tree of calls, columns and literals
    "Operator": "base",  # A row of this table
    "condition_of": "kit.scan_facade",  # The condition of ``filters=`` or of an expression, checked against a schema
    "RowLookup": "rows",  # Rows by number, of `Scan.lookup`
    # ---- files
    "Files": "kit.files_facade",  # The files that a path means
    "File": "kit.files_facade",  # One of them
    # ---- columns
    "Column": "kit.column_facade",  # Answers questions about a column or a type
    "RowFault": "columns",  # Raise it for a row whose value does not fit: the caller knows file and record
    "Dtype": "bytes",  # A row of the table of dtypes of tensors
    "empty_batch": "columns",  # A batch without rows, of any types
    "to_pandas": "columns",  # The DataFrame of a table, with the dtypes and the index that were written
    "feature_descriptions": "columns",  # The features that Hugging Face datasets describe in a schema
    "refuse_duckdb_types": "columns",  # Refuse columns of DuckDB whose values would change in Arrow
    "json_value": "columns",  # A value as JSON has it
    "selectable": "columns",  # Arrow data whose rows can be selected, which of some types they cannot
    # ---- arrays
    "Rows": "kit.rows_facade",  # Rows for training, of datasets, mixtures and windows
    "ArraysByNumber": "rows",  # Rows by number as arrays
    "BatchesByNumber": "rows",  # Batches by number, of ``bucket_by=`` or ``pack=``
    "RepresentationOptions": "rows",  # Keywords of the representation of columns as arrays, checked
    "TableRepresentation": "rows",  # How the columns of a schema become arrays
    "ColumnRepresentation": "rows",  # How one of them does
    "ListLengths": "rows",  # Truncates and pads the lists of tables, by options of arrays
    "Array": "bytes",  # Any NumPy array
    "ModelInputs": "rows",  # Batches as models take them: channels first, pairs of inputs and targets
    "ImageColumns": "rows",  # The columns of images in tables, and their pixels
    "workers_in_state": "rows",  # Among how many workers the rows were split when the state of an iterator was saved
    # ---- write
    "WriteOptions": "base",  # Keywords of writing, checked
    "DistributedWriter": "write",  # One dataset written by several processes, and published once
    "WrittenPart": "write",  # The result of a task of it
    "OpenPart": "write",  # A task of it to which tables are written one by one
    "open_input": "columns",  # The batches of all that `tfrecord_io.write_tfrecord` takes
    # ---- add a library or a format
    "Adapter": "base",  # A row: a library, and the methods that it adds to datasets
    "LateTypes": "base",  # Types of a library in annotations, which is imported when an annotation is evaluated
    "needs": "base",  # Turns a failed import in its block into an error that names the extra
    "check_keywords": "base",  # Decorate a public call: an unknown keyword is a TypeError with the one that is meant
    "check_integer": "base",  # A keyword as an int within bounds
    "check_choice": "base",  # A keyword that is one of several values
    "FORMATS": "bytes",  # The file formats, by name
    "Format": "bytes",  # A row of the table of file formats
    "format_option": "bytes",  # A keyword of a format, which is an option of ``tfr convert``
    # ---- add a compression or an encoding
    "Codec": "bytes",  # A compression
    "Damage": "bytes",  # Raised by a codec for data that cannot be decompressed
    "CODECS": "bytes",  # The compressions, by name
    "TensorEncoding": "columns",  # A way to store the cells of a column of tensors
    "DecodedCells": "columns",  # What it decodes cells to
    # ---- results
    "open_output": "store",  # A file that appears complete, or not at all
    "Report": "base",  # Base of results that print as a line and a table
    "Summary": "base",  # What a report shows
    "ProgressMeter": "base",  # Shows how much of a call is done, by ``progress=``
    # ---- words
    "counted": "base",  # A number and its noun
    "byte_size": "base",  # A size in bytes with two digits or more
    "short": "base",  # A value in about so many characters
    "listed": "base",  # Names as in a sentence
    "printable": "base",  # A text without secrets of URLs and control characters, and not too long
    "warn": "base",  # Warn at the line of the user's code
    "for_cli": "base",  # Give an error the message that the command shows instead of its own
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES, root="tfrecord_io")
