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
    "ReadOptions": "base",  # Keywords of reading, checked
    "Condition": "base",  # A condition on rows as a tree of calls, columns and literals
    "OPERATORS": "base",  # The operators of conditions, and their names in other libraries
    "Operator": "base",  # A row of this table
    "condition_of": "kit.scan_facade",  # The condition of ``filters=`` or of an expression, checked against a schema
    # ---- columns
    "Column": "kit.column_facade",  # Answers questions about a column or a type
    "RowFault": "columns",  # Raise it for a row whose value does not fit: the caller knows file and record
    "Dtype": "bytes",  # A row of the table of dtypes of tensors
    "empty_batch": "columns",  # A batch without rows, of any types
    "to_pandas": "columns",  # The DataFrame of a table, with the dtypes and the index that were written
    # ---- write
    "WriteOptions": "base",  # Keywords of writing, checked
    "DistributedWriter": "write",  # One dataset written by several processes, and published once
    "WrittenPart": "write",  # The result of a task of it
    "OpenPart": "write",  # A task of it to which tables are written one by one
    # ---- add a library
    "Adapter": "base",  # A row: a library, and the methods that it adds to datasets
    "LateTypes": "base",  # Types of a library in annotations, which is imported when an annotation is evaluated
    "needs": "errors",  # Turns a failed import in its block into an error that names the extra
    "check_keywords": "base",  # Decorates a public call: an error for an unknown keyword names the one that is meant
    "check_integer": "base",  # A keyword as an int within bounds
    # ---- words
    "printable": "errors",  # A text without secrets of URLs and control characters, and not too long
    "warn": "errors",  # Warn at the line of the user's code
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES, root="tfrecord_io")
