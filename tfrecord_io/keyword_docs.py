"""What the keywords of the public calls mean: one text for each, put into every call's help and signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Any, TypeVar

from tfrecord_io.options import ArrayOptions, IterOptions, ReadOptions, WriteOptions

F = TypeVar("F", bound=Callable[..., Any])

PATH = """path : str, PathLike, list of those, or binary file object
    A local path or a URL (``s3://``, ``gs://``, ``memory://``, whatever fsspec knows), a glob, ``{a,b}`` or
    ``{0000..0999}``, a directory, a shard spec ``name@8`` or ``name@*``. Files come in natural order, records in
    file order."""

READ = {
    "columns": """sequence of str, optional
    Features to read: names, globs and ``!name`` to leave out (``["*", "!image"]``). A feature that is left out is
    skipped, not parsed. One that matches nothing raises. The shape and dtype beside a tensor are read along with it.""",
    "filters": """optional
    Not built yet.""",
    "schema": """Schema, pyarrow.Schema, dict or "infer", optional
    Columns to read, with their types, in this order: a dict of ``pyarrow.DataType`` or names like ``"int32"``; other
    features are ignored. A column of the name of folders (``label=cat/``) is theirs, cast to its type. Without a schema the
    one that the file carries governs, else types are inferred from the values, where bytes with ``x/shape`` and ``x/dtype``
    beside them become tensors; "infer" passes over all of that.""",
    "schema_overrides": """dict, optional
    Types of some columns, by name or glob (``{"image/object/*": "list<float>"}``); the rest as without it.""",
    "stable_types": """bool, default False
    Infer lists and binary always, so that a type depends on the kind alone.""",
    "infer_text": """bool, default True
    Bytes features whose values are all text (UTF-8 without control characters but tab and line ends) become strings.""",
    "sample": """int or "all", default 10,000
    Records from which a stream's schema is fixed. Calls that return a whole look at all of them anyway.""",
    "on_new": """{"raise", "ignore"}
    What a stream does about a feature that the sample did not have.""",
    "record_type": """{None, "example", "sequence_example", "bytes"}
    None detects Examples and SequenceExamples. "bytes" gives the records as they are, in one binary column ``record``.""",
    "compression": """{"infer", "gzip", "zlib", "zstd", None}
    "infer" goes by content, whatever the suffix.""",
    "offset": """int, default 0
    Records to leave out at the start.""",
    "limit": """int, optional
    Rows to read at most; inference is exact over these.""",
    "include_file_paths": """str, optional
    Name of a column to add, with the path of each row's file.""",
    "allow_missing_shards": """bool, default False
    Accept shard names with an index missing or twice.""",
    "check_crc": """bool, default True
    Check the payloads' CRCs. Those of the lengths are always checked.""",
    "on_error": """{"raise", "stop"}
    "stop" gives what is intact before the first damage, with a StoppedEarlyWarning.""",
    "max_record_bytes": """int, default 2**31 - 1
    Longer records are refused.""",
    "max_features": """int, default 100,000
    More different feature names are refused.""",
    "large_offsets": """bool, default False
    Infer large_string, large_binary and large_list, with 64-bit offsets.""",
    "threads": """int, optional
    Threads that decode. Default: the processor's cores. The result does not depend on it.""",
    "storage_options": """dict, optional
    For fsspec, as in pandas.""",
    "filesystem": """fsspec filesystem, optional
    To be used for all paths.""",
    "progress": """bool, default False
    Show a progress bar.""",
    "batch_size": """int, default 65,536
    Rows of a batch.""",
    "batch_bytes": """int, default 64 MiB
    Payload bytes after which a batch ends, if that comes first.""",
}

FORMS = {
    "ragged": """{None, "object", "offsets", "pad"}
    What becomes of lists whose number of values is not declared, and of tensors whose shapes vary. None: one array where
    all have one shape, else as "object". "object": an object array of arrays. "offsets": a tuple (values, offsets), row i being
    ``values[offsets[i]:offsets[i + 1]]``. "pad": one array, filled up with `pad_value`. With the last two, and where they are
    tensors, an array ``<name>/shape`` of shape [rows, rank] comes along; with "pad", and where they are lists, an
    array ``<name>/length``.""",
    "pad_value": """scalar, default 0
    What "pad" fills up with; text and bytes are filled up with empty ones unless it is text or bytes.""",
    "missing": """{"error", "mask"}
    What becomes of a record without a value, in a column of numbers, bools, times or tensors, which have no place for it.
    "mask" gives a ``numpy.ma.MaskedArray`` for each such column. In object arrays and arrays of text it is None.""",
}

ARRAYS = {
    **READ,
    **FORMS,
    "out": """dict of ndarray, optional
    Arrays to fill, by column, ``numpy.memmap`` as well: of the dtype and shape that the column has, with a row for each record.
    They decide the columns if `columns` does not. The files are then streamed, and no more is held than a few batches.""",
}

ITERATION = {
    **READ,
    **FORMS,
    "sample": """int or "all", default 10,000
    Records from which the schema is fixed; with ``ragged=None`` also which lists are of one length throughout.""",
    "batch_size": """int
    Records of a batch.""",
    "offset": """int, default 0
    Records to leave out at the start of the files; the files of such a window are not permuted.""",
    "limit": """int, optional
    Records of an epoch, for all workers together; the files of such a window are not permuted.""",
    "threads": """int, optional
    Default: the processor's cores. 1: all is done in the thread that asks for batches. More: others read, decode and prepare
    batches meanwhile. The batches do not depend on it.""",
    "shuffle_buffer": """int, default 0
    Records to draw from: each record given is a uniform draw from a buffer of so many, and the next one read takes its
    place, as in ``tf.data.Dataset.shuffle``. Files are permuted as well. 0: file order.""",
    "seed": """int, optional
    The same seed gives the same order, whatever `threads`. None draws one, which the iterator's ``seed`` shows.""",
    "epochs": """int or None, default 1
    Passes over the records, each in an order of its own; None: no end.""",
    "drop_last": """bool, default False
    Leave out the records at the end of an epoch that do not fill a batch.""",
    "worker": """(int, int), optional
    ``(i, n)``: the i-th part of the records, of n that share none and miss none. By file where there are at least n, else
    every n-th record; then the files are not permuted.""",
    "state": """dict, optional
    What ``state()`` of an iterator gave: go on with the batch after.""",
}

WRITE = {
    "schema": """pyarrow.Schema, Schema or dict, optional
    Columns to write, in this order, cast to these types: a value that would be cut or become infinite is an EncodeError, a
    float64 that is rounded to a declared float32 goes by `float64`. Without it the data says.""",
    "record_type": """{None, "example", "sequence_example", "bytes"}
    "sequence_example" writes lists of lists as feature lists, with one step for each inner list. "bytes"
    writes one binary column as records, as they are.""",
    "column_encoding": """dict, optional
    By column: "list" (values, the default of plain columns), "raw" (little-endian bytes in C order, with ``x/shape`` and
    ``x/dtype`` beside them, so that nothing is rounded: the default of arrays of two and more dimensions) or "tensor_proto"
    (what ``tf.io.serialize_tensor`` gives).""",
    "float64": """{None, "round", "error", "raw"}
    TFRecord has no float64. None rounds to float32 with one PrecisionWarning, "round" does so silently, "error"
    refuses values that would change, "raw" keeps the bits of every float64 column.""",
    "nan_to_null": """bool, default True
    NaN in a pandas float column is a missing value. Arrow's and NumPy's NaN are always values.""",
    "index": """bool, optional
    Whether a DataFrame's index is written, as in ``DataFrame.to_parquet``.""",
    "compression": """{"infer", "gzip", "zlib", "zstd", None}
    "infer" goes by suffix: ``.gz``, ``.zlib``, ``.zz``, ``.zst``. TensorFlow reads gzip and zlib, and not zstd.""",
    "shards": """int, optional
    Write so many files, ``name-00000-of-00008``, and a manifest beside them. They hold rows that follow each other where
    the number of rows is known (tables, DataFrames, dicts); of a stream, or from ``open_writer``, row ``i`` goes to file
    ``i % shards``: use `max_shard_bytes` to keep the order of a stream.""",
    "max_shard_bytes": """int, optional
    Begin a new file before a record that would bring one above so many bytes, uncompressed. The names have no count,
    ``name-00000.tfrecord``.""",
    "write_index": """bool, default False
    Write the places of the records beside the file, as ``<path>.index``: random access, counting and splitting go by it. Not
    for compressed files.""",
    "overwrite": """bool, optional
    True replaces what is there, False refuses to. None replaces a file and refuses to replace a sharded dataset.""",
    "embed_schema": """bool, default True
    Put the columns' types into the first record of each file, where TensorFlow skips them and this library finds them.""",
    "threads": """int, optional
    Threads that encode and compress. Default: the processor's cores. The file does not depend on it.""",
    "storage_options": """dict, optional
    For fsspec, as in pandas.""",
    "filesystem": """fsspec filesystem, optional
    To be used for the path.""",
    "progress": """bool, default False
    Show a progress bar.""",
}

DTYPE_BACKEND = """dtype_backend : {None, "numpy_nullable", "pyarrow"}
    As in pandas' readers. None: NumPy dtypes, ``Int64`` for integers with missing values, ``boolean`` for bools,
    ``str`` for text; a file that carries its DataFrame's dtypes gives those back."""

_STREAM_ONLY = {"sample", "on_new", "batch_size", "batch_bytes"}


_TEXTS = {ReadOptions: READ, WriteOptions: WRITE, ArrayOptions: ARRAYS, IterOptions: ITERATION}


def document_keywords(
    options: type[ReadOptions] | type[WriteOptions], *, whole: bool = False, without: Collection[str] = ()
) -> Callable[[F], F]:
    """Give a function that takes ``**keywords`` of `options` its full signature and docstring.

    In the docstring ``{path}``, ``{dtype_backend}`` and ``{keywords}`` are filled in. `whole`: the call returns a whole, so the
    keywords of streams are left out, as those in `without` are.
    """
    texts = _TEXTS[options]
    left_out = {*without, *(_STREAM_ONLY if whole else {"batch_bytes"} if options is IterOptions else ())}

    def explain(function: F) -> F:
        named = [f for f in fields(options) if f.name not in left_out]
        listed = "\n".join(f"{f.name} : {texts[f.name]}" for f in named)
        doc = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = (
            doc.replace("{path}", PATH).replace("{dtype_backend}", DTYPE_BACKEND).replace("{keywords}", listed)
        )
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        more = [
            inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default)
            for f in named
            if f.name not in signature.parameters
        ]
        function.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
        return function

    return explain
