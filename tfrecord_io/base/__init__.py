"""Words, errors, options, registries and threads. Knows no record.

Importing it loads the standard library only; pyarrow, NumPy and tqdm are loaded by the names that need them.

Other rooms import these names, and no module of this package.
"""

from tfrecord_io.base.public_names import lazy_names

_HOMES = {
    "BackgroundThread": "background",  # A daemon thread with a way to stop it, which is started at once
    "Flag": "background",  # Set by one thread, for others to see
    "ordered": "background",  # The results of `calls`, made by up to `threads` threads, this one included, in order
    "Task": "background",  # A call that one thread makes
    "WorkerPool": "background",  # Threads that make calls, started with the first ones
    "cached_property": "closing",  # `functools.cached_property` as from Python 3.12 on
    "Closing": "closing",  # A context manager that returns itself and is closed at the end of its block
    "ConsumedOnce": "closing",  # An iterator whose items can be read once
    "NotCopied": "closing",  # Refuses to be pickled and copied
    "quiet_at_exit": "closing",  # Decorate `__del__`
    "Shared": "closing",  # Threads take turns, under `_lock`
    "undo_after": "closing",  # Remove partial output after an error, which stays the one raised
    "Remark": "closing",  # A clause about written data, for the message of an error
    "and_more": "messages.display",  # The end of a list of which `count` items are not shown
    "byte_size": "messages.display",  # A size in bytes with two digits or more
    "counted": "messages.display",  # A number and its noun
    "did_you_mean": "messages.similar_names",  # The question after a name that does not exist
    "for_cli": "messages.display",  # Give an error or a warning of Python the message that the command shows
    "hide_secrets": "messages.url_secrets",  # Hide passwords, signatures and tokens in URLs
    "printable": "messages.display",  # Hide the secrets of URLs, escape control characters and shorten
    "Report": "messages.printed_results",  # Base of results that print as a line and a table, in notebooks, too
    "secret_url": "messages.url_secrets",  # The filename for an OSError, whose secrets no message shows
    "short": "messages.display",  # Show a value in about `width` characters, control characters escaped
    "Summary": "messages.printed_results",  # Content of a report
    "warn": "messages.caller_warnings",  # Warn at the line of the caller outside this package
    "column_list": "messages.display",  # The names of columns in the line about a file, the first ones of many
    "Adapter": "libraries",  # A library, and the calls that it is used by
    "AdapterMethod": "libraries",  # A method of datasets that an adapter has
    "check_keywords": "options.call_errors",  # Decorate a public call: unknown keywords are TypeErrors
    "Condition": "options.condition",  # A condition on rows, or a part of one
    "OTHER_NAMES": "options.other_names",  # Names of other libraries, and what to use here
    "condition_of": "options.filters",  # The condition of ``filters=``
    "LIMITS": "options.tuned_limits",  # Sizes and counts that the package works with
    "Expansion": "options.limits",  # The budget for memory of rows held at a time
    "Limits": "options.limits",  # Limits on what an untrusted file may use
    "OnDamage": "options.on_damage",  # What a read does at damage: raise, stop, skip, collect or ask
    "Operator": "options.operators",  # An operator of a condition
    "MIB": "options.options_base",  # Bytes of a mebibyte
    "check_choice": "options.options_base",  # Raise ValueError for a value that is not among the choices
    "check_integer": "options.options_base",  # An integer as an `int`, as those of NumPy overflow
    "cpu_count": "options.options_base",  # Processors that this process may use
    "Options": "options.options_base",  # The keywords of all calls that take a path
    "StorageOptions": "options.options_base",  # How paths are accessed
    "TransferOptions": "options.options_base",  # Options of calls that read files and write others
    "DatasetOptions": "options.read",  # Keywords of `tfrecord_io.dataset`, and of `tfrecord_io.open_reader`
    "FrameOptions": "options.read",  # Keywords of calls that go through the frames of records, whatever these contain
    "ReadOptions": "options.read",  # Keywords of all reading calls
    "ScanOptions": "options.read",  # How the rows of files are read, whichever are selected
    "MessageType": "options.record_types",  # A type of messages, which can be pickled
    "Selection": "options.selection",  # The columns and rows that a read selects
    "CopyOptions": "options.transfer",  # Keywords of the calls that copy records as bytes
    "ExportOptions": "options.transfer",  # Keywords of calls that read TFRecord files and write files of another format
    "WriteOptions": "options.write",  # Keywords of all writing calls
    "logger": "messages.log",  # The logger of the package
    "ProgressMeter": "progress",  # Shows how much of a call is done, or calls a function
    "LateTypes": "public_names",  # Types of a module, imported when an annotation that names a type is evaluated
    "listed": "registry",  # Names as in a sentence
    "needs": "registry",  # Turn the ImportError of an import into one that names the extra
    "Point": "registry",  # An entry that a package adds to a group
    "Registry": "registry",  # Rows of one class, by name, alias and suffix
}
__getattr__, __dir__, __all__ = lazy_names(__name__, globals(), _HOMES)
