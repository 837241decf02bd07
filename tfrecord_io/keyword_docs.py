"""Documentation of the keywords: one description for each, inserted into the docstrings of the public calls."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Set
from dataclasses import Field, fields
from functools import wraps
from typing import Any, Literal, TypeVar, get_args, get_origin

from tfrecord_io import typing
from tfrecord_io.compression import CODECS, INFER
from tfrecord_io.errors import within_message_limit
from tfrecord_io.format.format_registry import FORMATS, keys
from tfrecord_io.options import (
    ArrayOptions,
    CopyOptions,
    FrameOptions,
    IterOptions,
    Options,
    ReadOptions,
    RepresentationOptions,
    SalvageOptions,
    WriteOptions,
    unknown_keyword,
)
from tfrecord_io.options.keyword_names import of_dataset
from tfrecord_io.registry import listed
from tfrecord_io.remedies import Caller, address

F = TypeVar("F", bound=Callable[..., Any])
Moved = Callable[[], Mapping[str, str]]

_NONE: Set[str] = frozenset()
_ADVISED = "_is_advised"  # of functions whose errors name only keywords that they have

_COMPRESSIONS = (INFER, *(codec.name for codec in CODECS.own))
_COMPRESSION = "{" + ", ".join(map('"{}"'.format, _COMPRESSIONS)) + ", None}"
_WRITTEN = f"""{_COMPRESSION}
    "infer" goes by the suffix: {listed("or", *(f"``{each}``" for codec in CODECS.own for each in codec.suffixes))}.
    TensorFlow reads {listed("and", *(codec.name for codec in CODECS.own if codec.tensorflow))} only."""

_SHARED = {
    "storage_options": """dict, optional
    Options for fsspec, as in pandas.""",
    "filesystem": """fsspec filesystem, optional
    The filesystem of all paths.""",
    "progress": """bool or callable, default False
    True shows a progress bar with rate and time left, on stderr if that is a terminal, in notebooks as a widget. A
    callable is called with a `Progress` after each block or batch, in order and by one thread at a time: that of the
    call, or where files are verified side by side, any. An error that it raises ends the call, and nothing is
    published.""",
}

READ = {
    "columns": """sequence of str, optional
    Features to read: names, globs, and ``!name`` to exclude (``["*", "!image"]``). Excluded features are skipped, not
    parsed. An entry that matches nothing is an error. The shape and dtype of a tensor are read with it.""",
    "filters": """pyarrow.compute.Expression, or list of tuples, or list of lists of tuples, optional
    Only rows that fulfil a condition; null counts as false. ``pc.field("label") == 3``, or as in pandas
    ``[("label", "==", 3), ("score", ">", 0.5)]``, which are fulfilled together; of several such lists, one is.
    ``("label", "==", None)`` and ``!=``: is missing, or not; ``("tags", "contains", "cat")``: of lists. It may name
    columns that `columns` or `schema` leave out, and those of partition folders (``label=3/``): files in which no row
    can fulfil it are not opened. `offset` counts records before the filter, `limit` rows after it.""",
    "schema": """Schema, pyarrow.Schema, dict or "infer", optional
    Columns to read, in this order, with their types: a dict has a ``pyarrow.DataType``, a name like ``"int32"`` or a
    Python type for each column; ``float`` is float32. Other features are ignored. A column named like partition folders
    (``label=cat/``) holds their values, cast to its type. By default, the schema embedded in the file is used; a file
    without one has its types inferred from the values, and bytes with companion features ``x/shape`` and ``x/dtype``
    become tensors. "infer" ignores embedded schemas and companion features.""",
    "schema_overrides": """dict, optional
    Types of some columns, by name or glob (``{"image/object/*": "list<float>"}``).""",
    "stable_types": """bool, default False
    Always infer lists and binary, so that a column's type depends only on its feature type.""",
    "infer_text": """bool, default True
    Infer string for bytes features whose values are all text: UTF-8 without control characters except tabs and line
    ends.""",
    "sample": """int or "all", default 10,000
    Number of records from which the schema of a stream is inferred. Calls that return all records use all of them.""",
    "on_new": """{"raise", "ignore"}
    What a stream does with a feature that was not in the sample.""",
    "record_type": """{None, "example", "sequence_example", "bytes"}, message class or (descriptor set, name)
    What each record is; detected by default. "bytes" returns the payloads in one binary column, ``record``. The class
    of a protobuf message returns its fields; a descriptor set, as a path or bytes, with the name of a message, too.""",
    "compression": f"""{_COMPRESSION}
    "infer" detects it from the content; the suffix is ignored. None: not compressed.""",
    "offset": """int, default 0
    Number of records to skip at the start, by their lengths. With an `on_error` other than "raise" they are decoded,
    and damaged ones do not count.""",
    "limit": """int, optional
    Maximum number of rows to read. Types are inferred from exactly these rows.""",
    "include_file_paths": """str, optional
    Name of a column to add, with the path of each row's file.""",
    "split": """str, optional
    Rows of a dataset that TFDS (tensorflow_datasets) wrote, by its splits, such as ``train[:80%]``. Others are
    ``train``, ``train+test``, ``train[-100:]``, ``train[2shard]``, ``all``. `path` is the directory of the dataset; of
    several versions the newest is read, and of several configurations TFDS's default.""",
    "allow_missing_shards": """bool, default False
    Read the existing files if shards are missing or duplicated.""",
    "check_crc": """bool, default True
    Check the CRCs of payloads. The CRCs of lengths are always checked.""",
    "on_error": """{"raise", "stop", "skip"} or callable
    At damaged data, fail, use the records before it, or leave it out. "stop" returns the intact records before the
    first damage, with a StoppedEarlyWarning. "skip" leaves out what is damaged, with a DamagedDataWarning of the sums;
    a reader's ``report.skipped`` has each region. A callable gets each error, with its ``region``, and returns True to
    leave that out, or False to raise the error. Where values of a feature have several feature types, the records with
    the less frequent ones are left out.""",
    "max_record_bytes": """int, default 2**31 - 1
    A longer record is an error.""",
    "max_features": """int, default 100,000
    More distinct feature names are an error.""",
    "max_expansion": """int, default 256 MiB
    Bytes of memory that data may take beyond 512 times the bytes it is read from: the rows of a batch, or all rows if
    they are read at once. More is an error, as a few bytes of an untrusted file can state tensors of a repeated value,
    wide types or many columns; the batches of a stream end earlier. Types in `schema` do not count. Arrays that are
    padded to the longest list, or have rows of missing lists, may take as much beyond their values.""",
    "max_decompression_ratio": """float, optional
    Refuse compressed files that decompress to more than this many times the bytes read of them. It is, beyond 1 MiB, a
    CompressionError after the records before. None: no limit. Text that repeats may reach 1,000.""",
    "large_offsets": """bool, default False
    Infer large_string, large_binary and large_list, which have 64-bit offsets.""",
    "threads": """int, optional
    Number of decoding threads, at most one for each core; by default the number of CPU cores. Nothing that is returned
    or raised depends on it.""",
    **_SHARED,
    "batch_size": """int, default 65,536
    Maximum number of rows in a batch.""",
    "batch_bytes": """int, default 64 MiB
    Limit of the payload bytes of a batch, of the bytes of its integers in lists, which may take 8 times as many as in a
    payload, and of those of its scalars, which absent ones take, too. A batch has at least one row; it may end earlier,
    where the integers of the next record might exceed the limit.""",
}

REPRESENTATION = {
    "ragged": """{None, "object", "offsets", "pad"} or dict
    Representation of lists without a declared length, and of tensors whose shapes vary. None: a regular array if all
    rows have the same shape, else as "object"; in batches, lists that ``schema=`` declares are always as "object".
    "object": an object array of arrays. "offsets": a tuple (values, offsets), where row i is
    ``values[offsets[i]:offsets[i + 1]]``. "pad": a regular array, padded with `pad_value`.
    "offsets" and "pad" add an array ``<name>/shape`` of shape [rows, rank] for tensors, and "pad" an array
    ``<name>/length`` for lists, both int64. A dict says it by column: ``{"tokens": "pad", "boxes": "offsets"}``.""",
    "pad_value": """scalar or dict, default 0
    Padding for "pad", also by column: ``{"labels": -100}``; of columns that are not padded it is an error. Text and
    bytes are padded with empty values unless it is text or bytes.""",
    "max_length": """int, (int, "left") or dict, optional
    Truncate longer lists, and tensors along their first axis, to their first values, or with "left" to their last
    ones; also by column: ``{"tokens": 512}``.""",
    "pad_to": """int, (int, "multiple") or dict, optional
    Pad to this length, or with "multiple" to the next multiple of it, in place of the longest list of a batch; also by
    column: ``{"tokens": 512}``. A longer list is an error, also with ``on_error="skip"``, as no data is damaged;
    `max_length` truncates it.""",
    "missing": """{"error", "mask"}
    What to do with missing values in columns of numbers, bools, times or tensors, which cannot represent them. "mask"
    returns such a column as a ``numpy.ma.MaskedArray``; of images there is an array ``<name>/mask``, a bool for each
    row. In object arrays and text, missing values are None.""",
}

ARRAYS = {
    **READ,
    **REPRESENTATION,
    "out": """dict of ndarray, optional
    Arrays to fill, by column, such as ``numpy.memmap``: with the dtype and shape of the column, and a row for each
    record. Without `columns`, only these columns are read. The files are streamed: memory holds a few batches.""",
}

ITERATION = {
    **READ,
    **REPRESENTATION,
    "sample": """int or "all", default 10,000
    Number of records from which the schema is inferred, and with ``ragged=None`` also which lists have a fixed
    length, unless the schema is declared.""",
    "batch_size": """int
    Number of records in a batch.""",
    "offset": """int, default 0
    Number of records to skip at the start of the files. Files are then read in order.""",
    "limit": """int, optional
    Number of records in an epoch, for all workers together. Files are then read in order.""",
    "threads": """int, optional
    Number of threads; by default the number of CPU cores. With 1, all work is done in the calling thread; with more,
    background threads read, decode and prepare batches. The batches do not depend on it.""",
    "shuffle_buffer": """int, default 0
    Number of records to draw from: each record is drawn uniformly from a buffer of this size, and replaced by the next
    one read, as in ``tf.data.Dataset.shuffle``. The order of files is shuffled too. 0 keeps the order of the files.""",
    "seed": """int, optional
    Of `shuffle_buffer`, without which nothing is shuffled. The same seed gives the same order, for any `threads`. None
    draws a seed; see the attribute ``seed``.""",
    "epochs": """int or None, default 1
    Number of passes over the records, each in a different order; None never ends.""",
    "drop_last": """bool, default False
    Omit the last batch of an epoch if it is not full.""",
    "worker": """(int, int), optional
    ``(i, n)``: read the i-th of n disjoint parts, which together hold all records. With at least n files, a part
    consists of whole files, else of every n-th record; the order of the files is then that of the epoch alone, whatever
    the `seed` is.""",
    "uneven": """{"keep", "pad", "drop"}
    Whether the parts of several workers may differ in size. With "pad" and "drop" all have the same number of records
    and batches in each epoch, as synchronous training needs: part i is the i-th run of consecutive records. "pad"
    repeats records from the start of the epoch to fill up the last parts, "drop" omits the last records, fewer than n;
    torch's ``DistributedSampler`` does the same. The records are counted when the iterator is made: from manifests and
    indexes, else from record headers; a compressed file without a manifest is read for it. With `shuffle_buffer`, all
    workers need the same `seed`.""",
    "bucket_by": """str or sequence of str, optional
    Columns of lists: batches have rows of like length, that of the longest of these lists. A row waits for others of
    its bucket; at the end of an epoch, buckets give batches that are not full. The lists are padded to the size of
    their bucket.""",
    "bucket_sizes": """sequence of int, optional
    The greatest length of each bucket, ascending; a longer list is an error, as for `pad_to`. Batches of the
    last bucket have `batch_size` rows, those of others as many as have about the same number of values.""",
    "pack": """dict, optional
    Pack the lists of several records into one row, by column its length: ``{"tokens": 2048}``. A batch has `batch_size`
    such rows; a record goes to the first that has room for it, in every column, and begins the next batch where none
    has. Arrays ``<name>/segment_ids`` and ``<name>/positions``, int32, state which record of its row, from 1, a value
    is of, and which value of the record, from 0; both are 0 where `pad_value` is. All columns have to be packed. A
    missing list is an error; with ``missing="mask"`` it counts as empty, and nothing is masked.""",
    "state": """dict, optional
    The result of an iterator's ``state()``: continue with the batch after it.""",
}

WRITE = {
    "schema": """pyarrow.Schema, Schema or dict, optional
    Columns to write, in this order, cast to these types; a SchemaWarning names the others. A value that cannot be cast
    back, such as a timestamp with a time of day declared as date, is an EncodeError; floats declared as narrower floats
    are rounded as `float64` says, numbers in text are parsed if Python or Arrow would write them so. By default, the
    data's own schema.""",
    "record_type": """{None, "example", "sequence_example", "bytes"}, message class or (descriptor set, name)
    "sequence_example" writes lists of lists as feature lists, one step for each inner list. "bytes" writes the values
    of one binary column as payloads. The class of a protobuf message, or a descriptor set (a path or bytes) with the
    name of one, writes columns as its fields.""",
    "column_encoding": """dict, optional
    By column: "list" (the values; default of plain columns), "raw" (little-endian bytes in C order, with companion
    features ``x/shape`` and ``x/dtype``; lossless, and the default of arrays with two or more dimensions),
    "tensor_proto" (as ``tf.io.serialize_tensor``) or "npy" (as ``numpy.save``); "nested" (several features) or "json"
    (text) of structs and lists of lists; "jpeg" (of quality 95), "png" or "webp" (lossless): uint8 arrays
    [height, width] or [height, width, channels] as encoded images, which are declared as `tfrecord_io.image`.""",
    "float64": """{None, "round", "error", "raw"}
    TFRecord has no float64. None rounds to float32 with one PrecisionWarning, "round" rounds silently, "error" raises
    if a value would change, "raw" stores all float64 columns as raw bytes, losslessly.""",
    "nan_to_null": """bool, default True
    Treat NaN in the float columns of pandas as missing. NaN in Arrow and NumPy data is always a value; that of
    ``decimal.Decimal`` is always missing, as Arrow's decimals have none.""",
    "index": """bool, optional
    Whether to write the index of a DataFrame, as in ``DataFrame.to_parquet``. None: a RangeIndex without a name is kept
    in the embedded schema, any other index is written as columns, of which `WriteReport.index` has the names. Of files
    that are read together, an index that some lack becomes ordinary columns; levels without a name are left out.""",
    "record_dim": """str, optional
    The dimension of xarray objects whose positions are the rows; by default the first that all variables share.
    Coordinates are columns; those without this dimension are repeated in each row, as single values are.""",
    "compression": _WRITTEN,
    "shards": """int, optional
    Number of files to write, ``name-00000-of-00008``, with a manifest. Each file holds consecutive rows.
    A stream of unknown length (also with ``open_writer``) is spooled to a temporary file until its rows are counted;
    `max_shard_bytes` needs none.""",
    "max_shard_bytes": """int, optional
    Begin a new file before a record that would make one larger than this, uncompressed. The files are named without
    their number, ``name-00000.tfrecord``.""",
    "write_index": """bool or sequence of str, default False
    Write the record offsets of the file to ``<path>.index``, for random access and counting. Names of columns, globs or
    "*scalars": write its column index, as `build_index` does, from the published file. What is appended to a dataset
    gets the column index of its last shard in any case. Not for compressed files.""",
    "mode": """{"error", "overwrite", "append", "overwrite_partitions"}, optional
    What happens to existing output: it is an error, or it is replaced. By default a file is replaced, and a sharded
    dataset is an error. If a writer is killed while it replaces a sharded dataset, readers get the old or the new one.
    In a bucket the store copies the new shards, which are not sent again. "append" adds shards to a dataset, or begins
    one: its rows follow those that are there, and are read once all are written. They may have other columns or wider
    types only with `evolve`. A single file cannot be appended to. "overwrite_partitions" replaces the folders of
    `partition_by` that the data has rows for, all at once, and leaves the others.""",
    "evolve": """bool, default False
    Allow what is appended to have columns that the dataset lacks, or wider types. Rows without a column have null.""",
    "partition_by": """str or sequence of str, optional
    Columns whose values become folders, ``day=1/country=nl/``, instead of features; `path` is a directory. Values are
    escaped so that Spark and pyarrow read them, null is ``__HIVE_DEFAULT_PARTITION__``. Rows may come in any order: few
    files are open at a time, and what does not fit in memory waits in a temporary file.""",
    "overwrite_where": """dict, optional
    With ``mode="overwrite_partitions"``: values of some columns of `partition_by`, such as ``{"day": "2026-11-24"}``.
    All folders that have them are replaced, those that the data has no rows for too; rows of other folders are an
    error.""",
    "embed_schema": """bool, default True
    Store the schema in the first record of each file, in a field that TensorFlow ignores.""",
    "threads": """int, optional
    Number of encoding and compressing threads; by default the number of CPU cores. The output does not depend on
    it.""",
    **_SHARED,
}

_FILE_MODE = """{"error", "overwrite"}, optional
    What happens to existing output: it is an error, or it is replaced. By default a file is replaced, and a sharded
    dataset is an error."""

COPY = {
    **WRITE,
    "mode": _FILE_MODE,
    "schema": """pyarrow.Schema, Schema or dict, optional
    The schema to embed, in place of those of the files; the records stay as they are. They are read with it first: it
    has to name all their features, with types that fit the values. By default the schemas of the files are united.""",
    "schema_overrides": """dict, optional
    Types of some columns of the embedded schema, by name or glob, where the files disagree or have others; the records
    are checked as with `schema`.""",
    "partitions": """{"features", "folders", "drop"}
    What values in the names of folders (``day=1/``) become: features, folders, or nothing. "features": one of each
    record, with the type that `read_table` gives the column; records must be Examples without a feature of this name.
    "folders": `dst` is a directory, in which the records of ``day=1/`` are written to ``day=1/``.""",
    "split": READ["split"],
    "allow_missing_shards": READ["allow_missing_shards"],
    "storage_options": """dict, optional
    Options for fsspec, as in pandas, of source and target. A source with others is ``dataset(path,
    storage_options=…)``.""",
}

_STREAM_ONLY = frozenset({"sample", "on_new", "batch_size", "batch_bytes"})
_DESCRIPTIONS = {
    FrameOptions: READ,
    ReadOptions: READ,
    RepresentationOptions: REPRESENTATION,
    ArrayOptions: ARRAYS,
    IterOptions: ITERATION,
    WriteOptions: WRITE,
    CopyOptions: COPY,
    SalvageOptions: {**READ, **COPY, "compression": READ["compression"]},
}
_CHOICES = {name: get_args(value) for name, value in vars(typing).items() if get_origin(value) is Literal}
_CHOICES["Compression"] = _COMPRESSIONS
_PATH = """path : str, PathLike, Dataset, list of those, or binary file object
    A local path or URL (``s3://``, ``gs://``, ``memory://`` or any other that fsspec supports), a glob, a brace
    pattern ``{a,b}`` or ``{0000..0999}``, a directory, or a shard spec ``name@8``, ``name@8.tfrecord`` or ``name@*``.
    Files are read in natural order, records in file order. A pipe (FIFO, ``/dev/stdin``) is opened once and read like
    a file. A `Dataset`, or a piece of one, brings its options, and the columns and rows that it selects."""


def document_keywords(
    options: type[Options], *, streaming: bool = True, only: Collection[str] = (), without: Collection[str] = ()
) -> Callable[[F], F]:
    """Give a function or class that takes ``**keywords`` of `options` its full signature and docstring.

    In the docstring, ``{path}`` is replaced, and ``{keywords}`` by descriptions of those that it does not describe.
    They are all keywords of `options`, or `only` some; with ``streaming=False``, without those that concern streams.
    ``docs/reference/stub.py`` copies the results to the stubs ``*.pyi``.
    """
    omitted = frozenset(without) if streaming else _STREAM_ONLY.union(without)
    names = [name for name in _fields(options) if name not in omitted and name in (only or _fields(options))]

    def document(function: F) -> F:
        doc, texts = inspect.cleandoc(function.__doc__ or ""), _DESCRIPTIONS[options]
        keywords = "\n".join(f"{name} : {texts[name]}" for name in names if f"\n{name} : " not in doc)
        function.__doc__ = doc.replace("{path}", _PATH).replace("{keywords}", keywords)
        if not inspect.isclass(function):
            return _with_parameters(_advised(function), options, names)
        init = _with_parameters(_advised(function.__init__), options, names)
        function.__init__ = init  # type: ignore[method-assign]
        return function

    return document


def sign_keywords(*options: type[Options], only: Set[str] = _NONE, without: Set[str] = _NONE) -> Callable[[F], F]:
    """Give a function that takes ``**keywords`` of all `options`, whose docstring refers to other calls, its signature.

    Where several options have a keyword, the first one's default applies. It is all keywords, or `only` some.
    """

    def sign(function: F) -> F:
        for cls in options:
            function = _with_parameters(function, cls, (only or _fields(cls).keys()) - without)
        return function

    return sign


def _fields(options: type[Options]) -> dict[str, Field[Any]]:
    """The keywords of options, in the order of their descriptions, if these are here."""
    known = {f.name: f for f in fields(options) if f.name not in options.internal}
    return {name: known[name] for name in _DESCRIPTIONS.get(options, known) if name in known}


def check_keywords(function: F, *, moved: Moved | None = None) -> F:
    """Make a function word the error for a keyword that it does not have as the calls with options do.

    `moved` returns how those are written that are options: see `Caller.elsewhere`.
    """
    parameters = inspect.signature(function).parameters
    advised = function if hasattr(function, _ADVISED) else _advised(function, moved)

    @wraps(advised)
    def checked(*args: Any, **keywords: Any) -> Any:
        for name in keywords:
            if name not in parameters:
                form = None if moved is None else moved().get(name)
                instead = form and form.format(within_message_limit(repr(keywords[name])))
                raise unknown_keyword(name, parameters, function, keywords[name], instead)
        return advised(*args, **keywords)

    return checked  # type: ignore[return-value]


def rename_keywords(names: Mapping[str, str]) -> Callable[[F], F]:
    """Make errors of the functions that a function calls name the keywords of its caller, in place of theirs."""

    return lambda function: _read_by(function, lambda: Caller(names=names))


def _advised(function: F, moved: Moved | None = None) -> F:
    """Leave out of the errors of a function the advice to pass keywords that it does not have."""
    call = _read_by(function, lambda: own_keywords(call, moved))
    setattr(call, _ADVISED, True)
    return call


def own_keywords(function: Callable[..., Any], moved: Moved | None = None) -> Caller:
    """A caller who has the keywords of a function, and passes others to `dataset`, or as `moved` says."""
    elsewhere = of_dataset(function) if moved is None else moved()
    return Caller(frozenset(inspect.signature(function).parameters), elsewhere=elsewhere)


def _read_by(function: F, caller: Callable[[], Caller]) -> F:
    """Make errors name keywords as the caller of a function writes them."""

    @wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        try:
            return function(*args, **keywords)
        except Exception as error:
            address(error, caller())
            raise

    return call  # type: ignore[return-value]


def _with_parameters(function: F, options: type[Options], names: Collection[str]) -> F:
    """Put the fields of options with these names in place of ``**keywords`` in the signature of a function."""
    signature = inspect.signature(function)
    parameters = {
        p.name: p if p.annotation is p.empty else p.replace(annotation=_spelled_out(p.annotation))
        for p in signature.parameters.values()
        if p.kind is not p.VAR_KEYWORD
    }
    kind = inspect.Parameter.KEYWORD_ONLY
    for name, f in _fields(options).items():
        if name in names and name not in parameters:
            parameters[name] = inspect.Parameter(name, kind, default=f.default, annotation=_spelled_out(f.type))
    function.__signature__ = signature.replace(parameters=[*parameters.values()])  # type: ignore[attr-defined]
    return function


def _spelled_out(annotation: Any) -> str:
    """An annotation with the values of keywords in place of the names of their types."""

    def values(match: re.Match[str]) -> str:
        name = match[0]
        is_format = name in ("SourceFormat", "TargetFormat")  # those of plugins, too, which are loaded for it
        names = keys(FORMATS.own, written=name == "TargetFormat") if is_format else _CHOICES.get(name)
        return match[0] if names is None else f"Literal[{', '.join(map(repr, names))}]"

    return re.sub(r"\w+", values, annotation).replace("'", '"')
