"""What the keywords of the public calls mean: one text for each, put into every call's help and signature."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from tfrecord_io.options import ReadOptions, WriteOptions

F = TypeVar("F", bound=Callable[..., Any])

PATH = """path : str, PathLike, list of those, or binary file object
    A local path or a URL (``s3://``, ``gs://``, ``memory://``, whatever fsspec knows), a glob, ``{a,b}`` or
    ``{0000..0999}``, a directory, a shard spec ``name@8`` or ``name@*``. Files come in natural order, records in
    file order."""

READ = {
    "columns": """sequence of str, optional
    Features to read: names, globs and ``!name`` to leave out (``["*", "!image"]``). A feature that is left out is
    skipped, not parsed. One that matches nothing raises.""",
    "filters": """optional
    Not built yet.""",
    "schema": """Schema, pyarrow.Schema, dict or "infer", optional
    Columns to read, with their types, in this order: a dict of ``pyarrow.DataType`` or names like ``"int32"``; other
    features are ignored. Without it the schema that the file carries governs, else types are inferred from the values;
    "infer" passes over what files carry.""",
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
    "compression": """{"infer", "gzip", "zlib", None}
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

WRITE = {
    "schema": """pyarrow.Schema, Schema or dict, optional
    Columns to write, in this order, cast to these types. Without it the data says.""",
    "record_type": """{None, "example", "sequence_example", "bytes"}
    "sequence_example" writes lists of lists as feature lists, with one step for each inner list. "bytes"
    writes one binary column as records, as they are.""",
    "column_encoding": """dict, optional
    By column: "list" (values, the default) or "raw" (little-endian bytes, with ``x/shape`` and ``x/dtype`` beside them,
    so that nothing is rounded).""",
    "float64": """{None, "round", "error", "raw"}
    TFRecord has no float64. None rounds to float32 with one PrecisionWarning, "round" does so silently, "error"
    refuses values that would change, "raw" keeps the bits of every float64 column.""",
    "nan_to_null": """bool, default True
    NaN in a pandas float column is a missing value. Arrow's and NumPy's NaN are always values.""",
    "index": """bool, optional
    Whether a DataFrame's index is written, as in ``DataFrame.to_parquet``.""",
    "compression": """{"infer", "gzip", "zlib", None}
    "infer" goes by suffix: ``.gz``, ``.zlib``, ``.zz``.""",
    "shards": """int, optional
    Write so many files, ``name-00000-of-00008``, and a manifest beside them. They hold rows that follow each other where
    the number of rows is known (tables, DataFrames, dicts); of a stream, or from ``open_writer``, row ``i`` goes to file
    ``i % shards``: use `max_shard_bytes` to keep the order of a stream.""",
    "max_shard_bytes": """int, optional
    Begin a new file before a record that would bring one above so many bytes, uncompressed. The names have no count,
    ``name-00000.tfrecord``.""",
    "write_index": """bool, default False
    Not built yet.""",
    "overwrite": """bool, optional
    True replaces what is there, False refuses to. None replaces a file and refuses to replace a sharded dataset.""",
    "embed_schema": """bool, default True
    Put the columns' types into the first record of each file, where TensorFlow skips them and this library finds them.""",
    "threads": """int, optional
    Threads that encode. Default: the processor's cores. The file does not depend on it.""",
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


def explained(options: type[ReadOptions] | type[WriteOptions], *, whole: bool = False) -> Callable[[F], F]:
    """Give a function that takes ``**keywords`` of `options` its full signature and docstring.

    In the docstring ``{path}``, ``{dtype_backend}`` and ``{keywords}`` are filled in. `whole`: the call returns a whole, so the
    keywords of streams are left out.
    """
    texts = READ if options is ReadOptions else WRITE
    left_out = _STREAM_ONLY if whole else set()

    def explain(function: F) -> F:
        named = [f for f in fields(options) if f.name not in left_out]
        listed = "\n".join(f"{f.name} : {texts[f.name]}" for f in named)
        doc = inspect.cleandoc(function.__doc__ or "")
        function.__doc__ = doc.replace("{path}", PATH).replace("{dtype_backend}", DTYPE_BACKEND).replace("{keywords}", listed)
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
