"""The main calls: read and write tables.

Each call takes a path or data and options, and returns a table, a reader, a writer or a report. The work is done in
`read/` and `write/`.

Tests: tests/end_to_end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from tfrecord_io import typing as results
from tfrecord_io.base import DatasetOptions, LateTypes, Point, ReadOptions, StorageOptions, check_keywords
from tfrecord_io.read import ScanHolder, options_from_call
from tfrecord_io.typing import (
    UNSET,
    Compression,
    DtypeBackend,
    Float64,
    IndexLike,
    InputPath,
    OnError,
    OnErrorCollecting,
    OutputPath,
    ProgressLike,
    RecordTypeLike,
    SchemaLike,
    StorageLike,
    TableLike,
    Unset,
    WriteMode,
)

if TYPE_CHECKING:
    import pandas as pd

    from tfrecord_io.write import WriteReport
else:
    pd = LateTypes("pandas")


@check_keywords
def read_tfrecord(
    source: InputPath,
    *,
    columns: Sequence[str] | str | None = None,
    filters: Any = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    limit: int | None = None,
    on_error: OnError | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
    progress: ProgressLike | Unset = UNSET,
    dtype_backend: DtypeBackend | None = None,
) -> pd.DataFrame:
    """Read TFRecord files of tf.train.Example into a pandas DataFrame.

    >>> import pandas as pd, tfrecord_io as tfr
    >>> df = pd.DataFrame({"label": [1, 0], "name": ["cat", None]})
    >>> _ = tfr.write_tfrecord(df, "pets.tfrecord")
    >>> tfr.read_tfrecord("pets.tfrecord")
       label name
    0      1  cat
    1      0  NaN

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        A local path or URL (``s3://``, ``gs://``, ``memory://`` or any other that fsspec supports), a glob, a brace
        pattern ``{a,b}`` or ``{0000..0999}``, a directory, or a shard spec ``name@8``, ``name@8.tfrecord`` or
        ``name@*``. Files are read in natural order, records in file order. A `dataset` has more reading options,
        and may select columns and rows. A file object is read from its position, and left open; one at its end, as
        writing or reading leaves it, from its start.
    columns : str or sequence of str, optional
        Features to read: names, globs, and ``!name`` to exclude (``["*", "!image"]``). Excluded features are skipped,
        not parsed. An entry that matches nothing is an error. The shape and dtype of a tensor are read with it.
        ``[*]`` and ``[!]a`` are the columns of the names ``*`` and ``!a``.
    filters : pyarrow.compute.Expression, str, list of tuples, or list of lists of tuples, optional
        Only rows that meet a condition; null counts as false. Pass ``pc.field("label") == 3`` or, as in pandas, a list
        of tuples, ``[("label", "==", 3), ("score", ">", 0.5)]``, all of which must hold, or a list of such lists, one
        of which must hold; or the text that ``--where`` of the command takes, ``"label = 3 and day >= DATE
        '2026-01-31'"``. ``("label", "is null")`` finds missing values, ``("name", "startswith", "ca")`` text that
        begins so, ``("tags", "contains", "cat")`` lists with a value. The condition may name columns
        that are not read, and partition folders (``label=3/``): files without matching rows are not opened.
    schema : Schema, pyarrow.Schema, dict or "infer", optional
        Columns to read, in this order, with their types: a dict maps each column to a ``pyarrow.DataType``, a name such
        as ``"int32"`` or a Python type; ``float`` is float32. Other features are ignored. A column named like partition
        folders (``label=cat/``) has their values, cast to its type. By default, the schema embedded in the file is
        used. Without one, types are inferred from the values, and bytes with companion features ``x/shape`` and
        ``x/dtype`` become tensors. "infer" ignores embedded schemas and companion features.
    limit : int, optional
        Maximum number of rows to read. Types are inferred from exactly these rows.
    on_error : {"raise", "stop", "skip"} or callable, optional
        What to do about damaged data; by default, as the dataset says, else "raise". "stop" returns the intact records
        before the damage, with a StoppedEarlyWarning. "skip" skips damaged regions, with a DamagedDataWarning at the
        end; ``report.skipped`` of a reader lists them. A callable gets each error once, with its ``region``, and
        returns True to skip the region, or False to raise the error; a dataset remembers the answers. Where a feature
        has values of several feature types, "skip" leaves out the records with the less frequent types.
    storage_options : dict or filesystem, optional
        Options for fsspec, as in pandas; or the filesystem of all paths, of fsspec or pyarrow.
    filesystem : filesystem, optional
        The same as passing it as `storage_options`.
    progress : bool or callable, default False
        True shows a progress bar on stderr, if it is a terminal, or a widget in notebooks. A callable gets a
        `Progress` after each block or batch, in order and from one thread at a time. An error that it raises ends the
        call.
    dtype_backend : {None, "numpy_nullable", "pyarrow"}
        As in pandas. None gives NumPy dtypes, except ``Int64`` for integers with missing values, ``boolean`` for bools
        and ``str`` for text. If the file stores the dtypes of the DataFrame it was written from, these are restored.

    Returns
    -------
    pandas.DataFrame
        One row per record, in file order. A feature that has exactly one value in every record that has it becomes a
        column of scalars, any other feature a column of lists; absent features are missing values. Without a schema,
        columns are sorted by name. Lists and tensors are ndarrays, structs dicts, complex numbers a column of
        their dtype. Values are exact at any depth: missing integers of a list are None in an array of objects. Lists
        of timestamps are in UTC, as NumPy has no time zones.

    Raises
    ------
    FileNotFoundError
        Nothing matches `source`.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; the ``records_intact`` rows before the damage can be read with ``on_error="stop"``.
    DecodeError
        A record is not an Example, or a value does not fit the schema.
    SchemaError
        Records or files contradict each other, or an entry of `columns` matches nothing.
    """
    from tfrecord_io.read import CallSource  # a program that only writes does not need it

    options = options_from_call(
        ReadOptions,
        read_tfrecord,
        source,
        columns=columns,
        filters=filters,
        schema=schema,
        limit=limit,
        on_error=on_error,
        storage_options=storage_options,
        filesystem=filesystem,
        progress=progress,
    )
    with CallSource(source).open(options, whole=True, with_index=True) as reader:
        return reader.read_pandas(dtype_backend)


@check_keywords
def read_table(
    source: InputPath,
    *,
    columns: Sequence[str] | str | None = None,
    filters: Any = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    limit: int | None = None,
    on_error: OnError | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
    progress: ProgressLike | Unset = UNSET,
) -> pa.Table:
    """Read TFRecord files of tf.train.Example into a pyarrow Table.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2], "tags": [["a"], []]}, "tagged.tfrecord")
    >>> tfr.read_table("tagged.tfrecord", schema="infer").schema.types
    [ListType(list<item: string>), DataType(int64)]

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more reading options.
    columns, filters, schema, limit, on_error, storage_options, filesystem, progress
        As in `read_tfrecord`.

    Returns
    -------
    pyarrow.Table
        int64_list → int64, float_list → float32, bytes_list → binary or, if all values are text, string. A list if any
        record has more or fewer than one value; null where a record lacks the feature. Types are inferred from exactly
        the rows returned. Bytes with companion features ``x/shape`` and ``x/dtype`` in every record are tensors: a
        fixed_shape_tensor if all have the same shape, else a variable_shape_tensor.

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `read_tfrecord`.
    """
    from tfrecord_io.read import CallSource  # a program that only writes does not need it

    options = options_from_call(
        ReadOptions,
        read_table,
        source,
        columns=columns,
        filters=filters,
        schema=schema,
        limit=limit,
        on_error=on_error,
        storage_options=storage_options,
        filesystem=filesystem,
        progress=progress,
    )
    with CallSource(source).open(options, whole=True) as reader:
        return reader.read_all()


@check_keywords
def open_reader(
    source: InputPath,
    *,
    columns: Sequence[str] | str | None = None,
    filters: Any = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    limit: int | None = None,
    on_error: OnErrorCollecting | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
    progress: ProgressLike | Unset = UNSET,
    batch_size: int | Unset = UNSET,
    batch_bytes: int | Unset = UNSET,
) -> results.Reader:
    """Open TFRecord files as a stream of Arrow record batches with one schema, in bounded memory.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": list(range(5))}, "five.tfrecord")
    >>> with tfr.open_reader("five.tfrecord", batch_size=2) as reader:
    ...     [batch.num_rows for batch in reader]
    [2, 2, 1]

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more options, such as the number of records from which the schema is
        inferred. A pipe (FIFO, ``/dev/stdin``) is opened once and read like a file.
    columns, filters, schema, limit, storage_options, filesystem, progress
        As in `read_tfrecord`.
    on_error : {"raise", "stop", "skip", "collect"} or callable, optional
        As in `read_tfrecord`. "collect" skips damaged regions, too: ``report.skipped_table()`` of the reader has a row
        for each of them, instead of a warning.
    batch_size : int, default 65,536
        Maximum number of rows in a batch.
    batch_bytes : int, default 64 MiB
        Maximum size of a batch in bytes. It limits the payloads, the integers in lists (which may take 8 times as many
        bytes as in a payload) and the scalars (including absent ones) separately. A batch has at least one row, and may
        end earlier if the integers of the next record might exceed the limit.

    Returns
    -------
    Reader
        A context manager and iterator of ``pyarrow.RecordBatch``, consumed once. It implements ``__arrow_c_stream__``.
        Its schema is fixed when this call returns: from `schema`, from the file, or from a sample. A later record
        that contradicts it raises an error that states the keyword to pass.

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `read_tfrecord`; the iterator raises them after all rows before the damage.
    """
    from tfrecord_io.read import CallSource  # a program that only writes does not need it

    options = options_from_call(
        DatasetOptions,
        open_reader,
        source,
        columns=columns,
        filters=filters,
        schema=schema,
        limit=limit,
        on_error=on_error,
        storage_options=storage_options,
        filesystem=filesystem,
        progress=progress,
        batch_size=batch_size,
        batch_bytes=batch_bytes,
    )
    return CallSource(source).open(options.with_report())


@check_keywords
def write_tfrecord(
    data: TableLike,
    path: OutputPath,
    *,
    schema: SchemaLike | None = None,
    record_type: RecordTypeLike | None = None,
    column_encoding: Mapping[str, str] | None = None,
    float64: Float64 | None = None,
    nan_to_null: bool = True,
    index: bool | None = None,
    record_dim: str | None = None,
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: IndexLike = False,
    mode: WriteMode | None = None,
    evolve: bool = False,
    partition_by: str | Sequence[str] | None = None,
    overwrite_where: Mapping[str, Any] | None = None,
    embed_schema: bool = True,
    metadata: Mapping[str, str] | None = None,
    txn: tuple[str, int] | None = None,
    threads: int | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
    progress: ProgressLike = False,
) -> results.WriteReport:
    """Write a table to TFRecord files of tf.train.Example, one record per row.

    >>> import tfrecord_io as tfr
    >>> tfr.write_tfrecord({"x": [1, 2, 3]}, "x.tfrecord").records
    3
    >>> [file.path for file in tfr.write_tfrecord({"x": [1, 2, 3]}, "x@2").files]
    ['x-00000-of-00002', 'x-00001-of-00002']

    Parameters
    ----------
    data : DataFrame, pyarrow Table, RecordBatch, reader or Dataset, dict of arrays, list of dicts, or iterable of those
        In a list or an iterable, a dict of single values is a row, a dict of arrays is a table, and a dict of lists,
        which may be either, is refused. An iterable is read in parts of at most 65,536 rows or about 64 MiB; the first
        part determines the types, unless ``schema=`` declares them. Also any object with ``__arrow_c_stream__`` or
        ``__arrow_c_array__``, such as those of polars (LazyFrames, too), DuckDB and `open_reader`; a Dataset, a
        DataArray or a dict of DataArrays of xarray, with a row for each position of one dimension (see `record_dim`); a
        DataFrame of Dask or Daft, or a dataset of Ray. The processes of these engines write one shard for each
        partition, under hidden names, and this process publishes all together: `path` is then a directory or ``name@*``
        that all machines can reach.
    path : str, PathLike, URL or binary file object
        A file, or a sharded dataset: ``name@8`` for ``name-00000-of-00008`` and so on, ``name@8.tfrecord`` for
        ``name-00000-of-00008.tfrecord``, or a directory, which exists or ends in "/". Output is atomic: it appears
        complete when the call returns, or not at all. A file object is written to directly. The suffix of another
        format (``.parquet``, ``.data``) is a ValueError; versions (``.v2``), numbers and dates are not suffixes.
    schema : pyarrow.Schema, Schema or dict, optional
        Columns to write, in this order, cast to these types; a SchemaWarning names the others. A value that cannot be
        cast back, such as a timestamp with a time of day declared as date, is an EncodeError; floats declared as
        narrower floats are rounded as `float64` says, numbers in text are parsed if Python or Arrow would write them
        so. By default, the data's own schema.
    record_type : {None, "example", "sequence_example", "bytes"}, message class or (descriptor set, name)
        "sequence_example" writes lists of lists as feature lists, one step for each inner list. "bytes" writes the
        values of one binary column as payloads. The class of a protobuf message, or a descriptor set (a path or bytes)
        with the name of one, writes columns as its fields.
    column_encoding : dict, optional
        By column: "list" (the values; default of plain columns), "raw" (little-endian bytes in C order, with companion
        features ``x/shape`` and ``x/dtype``; lossless, and the default of arrays with two or more dimensions),
        "tensor_proto" (as ``tf.io.serialize_tensor``) or "npy" (as ``numpy.save``); "nested" (several features) or
        "json" (text) of structs and lists of lists; "jpeg" (of quality 95), "png" or "webp" (lossless): uint8 arrays
        [height, width] or [height, width, channels] as encoded images, which are declared as `tfrecord_io.image`.
    float64 : {None, "round", "error", "raw"}
        TFRecord has no float64. None rounds to float32 with one PrecisionWarning, "round" rounds silently, "error"
        raises if a value would change, "raw" stores all float64 columns as raw bytes, losslessly.
    nan_to_null : bool, default True
        Treat NaN in the float columns of pandas as missing. NaN in Arrow and NumPy data is always a value. A NaN of
        ``decimal.Decimal``, which Arrow's decimals do not have, is missing in pandas, and an EncodeError elsewhere.
    index : bool, optional
        Whether to write the index of a DataFrame, as in ``DataFrame.to_parquet``. None: a RangeIndex without a name is
        kept in the embedded schema, any other index is written as columns, of which `WriteReport.index` has the names.
        If files are read together and some lack the index, it becomes ordinary columns; levels without a name are left
        out.
    record_dim : str, optional
        The dimension of xarray objects whose positions are the rows; by default the first that all variables share.
        Coordinates are columns; those without this dimension are repeated in each row, as single values are.
    compression : str or None, default "infer"
        "infer" goes by the suffix: ``.gz``, ``.gzip``, ``.zlib``, ``.zz``, ``.zst``, ``.zstd`` or ``.lz4``. TensorFlow
        reads gzip and zlib only.
    compression_level : int, optional
        From fast to small: 0 to 9 of gzip and zlib, 1 to 19 of zstd, 0 to 12 of lz4. By default, a fast one. A file
        that is not compressed has none.
    shards : int, optional
        Number of files to write, ``name-00000-of-00008``, with a manifest. Each file holds consecutive rows. A stream
        of unknown length (also with ``open_writer``) is spooled to a temporary file until its rows are counted;
        `max_shard_bytes` needs none.
    max_shard_bytes : int, optional
        Start a new file before this size is exceeded, in uncompressed bytes. File names do not have the number of
        files: ``name-00000.tfrecord``.
    write_index : bool or sequence of str, default False
        Write an index of record offsets, ``<path>.index``, for random access and counting. Names of columns, globs or
        "*scalars" write a column index instead, as `build_index` does. Shards that are appended get the column index
        of the last shard in any case. Compressed files have no index.
    mode : {"error", "overwrite", "append", "overwrite_partitions"}, optional
        What to do if the output exists. By default, a file is replaced, and a dataset is a FileExistsError. "overwrite"
        replaces a dataset in one step: readers get the old or the new one, even if the writer is killed. In a bucket
        the store copies the new shards; they are not sent again. "append" adds rows at the end of a dataset, or starts
        a new one; readers see all of them or none. New columns and wider types need `evolve`. A single file cannot be
        appended to. "overwrite_partitions" replaces the folders of `partition_by` for which the data has rows, in one
        step, and keeps the others.
    evolve : bool, default False
        Allow appended rows to add columns, or to widen types. Rows without a column have null.
    partition_by : str or sequence of str, optional
        Columns whose values become folders, ``day=1/country=nl/``, instead of features; `path` is a directory. Values
        are escaped as Spark and pyarrow expect, null is ``__HIVE_DEFAULT_PARTITION__``, and 0.0 and -0.0 are two
        folders. Rows may come in any order: few files are open at a time, and rows that do not fit in memory wait in a
        temporary file.
    overwrite_where : dict, optional
        With ``mode="overwrite_partitions"``: values of some columns of `partition_by`, such as ``{"day":
        "2026-11-24"}``. All folders with these values are replaced, even if the data has no rows for them; rows that
        belong to other folders are an error.
    embed_schema : bool, default True
        Store the schema in the first record of each file, in a field that TensorFlow ignores. ``mode="append"``
        compares it with that of the dataset, and needs it.
    metadata : dict of str to str, optional
        Texts by name, such as ``{"source": "crawl of 2026-11"}``, which the manifest of a dataset keeps and
        `read_metadata` returns. Rows that are appended, or replace folders, add theirs: an entry with a name that the
        dataset has replaces it. "overwrite" leaves none of the old ones. One file has no manifest: with a path of one,
        this is a ValueError. Other values than texts are a TypeError.
    txn : (str, int), optional
        With ``mode="append"``: the name of a job and a number that rises from one of its writings to the next, such as
        ``("daily", 17)``. If this number of the job, or a later one, is in the dataset, nothing is written, and the
        report is `repeated`; so a job that is tried again, or runs twice at a time, adds its rows once. The manifest
        keeps the number of each job as long as the dataset is not overwritten, of at most 1,000 jobs: those that have
        not written for 30 days are forgotten first; if there are none, a new job is a ValueError.
    threads : int, optional
        Number of encoding and compressing threads; by default the number of CPU cores. The output does not depend on
        it.
    storage_options : dict or filesystem, optional
        As in `read_tfrecord`.
    filesystem : filesystem, optional
        Of fsspec or pyarrow: the same as passing it as `storage_options`.
    progress : bool or callable, default False
        True shows a progress bar on stderr, if it is a terminal, or a widget in notebooks. A callable gets a
        `Progress` after each block or batch, in order and from one thread at a time. If it raises an error, the call
        ends, and nothing is published.

    Returns
    -------
    WriteReport

    Raises
    ------
    EncodeError
        A column or value cannot be stored in a TFRecord; see its attributes ``feature`` and ``record``.
    FileExistsError
        The output exists, and `mode` does not replace it; or the directory has other TFRecord files.

    Warns
    -----
    PrecisionWarning
        float64 values were rounded to float32; see `float64`. It is issued before the output appears: if warnings are
        errors, nothing is published.
    SchemaWarning
        Data without rows was written to one file, which cannot keep the columns; a sharded dataset can.
    """
    from tfrecord_io.base import WriteOptions
    from tfrecord_io.write import write  # for a program that only reads, it would be half of what is imported

    options = WriteOptions(
        schema=schema,
        record_type=record_type,
        column_encoding=column_encoding,
        float64=float64,
        nan_to_null=nan_to_null,
        index=index,
        record_dim=record_dim,
        compression=compression,
        compression_level=compression_level,
        shards=shards,
        max_shard_bytes=max_shard_bytes,
        write_index=write_index,
        mode=mode,
        evolve=evolve,
        partition_by=partition_by,
        overwrite_where=overwrite_where,
        embed_schema=embed_schema,
        metadata=metadata,
        txn=txn,
        threads=threads,
        storage_options=storage_options,
        filesystem=filesystem,
        progress=progress,
    )
    for class_ in type(data).__mro__[:-1]:  # some tables are written by several processes
        package = class_.__module__.partition(".")[0]
        point = (
            None if package in _IN_THIS_PROCESS else Point.find("tfrecord_io.frames", f"{package}.{class_.__name__}")
        )
        if point is not None:
            report: WriteReport = point.load()(data, path, options)
            return report
    if isinstance(data, ScanHolder):
        from tfrecord_io.read import Scan
        from tfrecord_io.store import Output

        scan = Scan.unwrap(data)
        origin = scan.origin
        whole, storage = (None, StorageOptions.DEFAULT) if origin is None else (origin.path, origin.options.storage)
        Output.check_outside(whole, storage, target=path, storage=options.storage, sources=scan.sources)
    return write(data, path, options)


_IN_THIS_PROCESS = ("builtins", "numpy", "pandas", "polars", "pyarrow", "tfrecord_io")  # packages of tables


@check_keywords
def open_writer(
    path: OutputPath,
    schema: SchemaLike | None = None,
    *,
    record_type: RecordTypeLike | None = None,
    column_encoding: Mapping[str, str] | None = None,
    float64: Float64 | None = None,
    nan_to_null: bool = True,
    index: bool | None = None,
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: IndexLike = False,
    mode: WriteMode | None = None,
    evolve: bool = False,
    partition_by: str | Sequence[str] | None = None,
    embed_schema: bool = True,
    metadata: Mapping[str, str] | None = None,
    txn: tuple[str, int] | None = None,
    threads: int | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
    progress: ProgressLike = False,
) -> results.Writer:
    """Open a TFRecord file or a sharded dataset, and write one table after another to it.

    >>> import tfrecord_io as tfr
    >>> with tfr.open_writer("parts.tfrecord") as writer:
    ...     writer.write({"x": [1, 2]})
    ...     writer.write({"x": [3]})
    >>> writer.report.records
    3

    Parameters
    ----------
    path : str, PathLike, URL or binary file object
        As in `write_tfrecord`. The output appears complete when the ``with`` block ends, and not at all if an
        exception ends it.
    schema, record_type, column_encoding, float64, nan_to_null, index, compression, compression_level, shards
        As in `write_tfrecord`.
    max_shard_bytes, write_index, mode, evolve, partition_by, embed_schema, metadata, txn, threads, storage_options
        As in `write_tfrecord`.
    filesystem, progress
        As in `write_tfrecord`.

    Returns
    -------
    Writer
        Its ``write(data)`` accepts the same data as `write_tfrecord`.

    Warns
    -----
    ResourceWarning
        The writer was dropped without ``close()``: its records are discarded. Python hides this unless it is run with
        ``-W default``.

    Raises
    ------
    EncodeError, SchemaError
        By ``write``.
    """
    from tfrecord_io.base import WriteOptions

    options = WriteOptions(
        schema=schema,
        record_type=record_type,
        column_encoding=column_encoding,
        float64=float64,
        nan_to_null=nan_to_null,
        index=index,
        compression=compression,
        compression_level=compression_level,
        shards=shards,
        max_shard_bytes=max_shard_bytes,
        write_index=write_index,
        mode=mode,
        evolve=evolve,
        partition_by=partition_by,
        embed_schema=embed_schema,
        metadata=metadata,
        txn=txn,
        threads=threads,
        storage_options=storage_options,
        filesystem=filesystem,
        progress=progress,
    )
    from tfrecord_io.write import Writer

    return Writer(path, options, may_move=True)


@check_keywords
def infer_schema(
    source: InputPath,
    *,
    columns: Sequence[str] | str | None = None,
    limit: int | None = None,
    on_error: OnError | None = None,
    storage_options: StorageLike | None = None,
    filesystem: Any = None,
    progress: ProgressLike | Unset = UNSET,
) -> results.InferredSchema:
    """Infer the exact schema of TFRecord files, with the evidence for it, by decoding all records.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [[1], [2, 3], None]}, "lists.tfrecord")
    >>> tfr.infer_schema("lists.tfrecord")
    Schema inferred from 3 records
    column  type               feature type  records  values  evidence
    x       list<item: int64>  int64_list    2        1–2     list: lists.tfrecord record 1

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more reading options.
    columns, limit, on_error, storage_options, filesystem, progress
        As in `read_tfrecord`.

    Returns
    -------
    InferredSchema
        The `Schema` that `read_table` uses for files without an embedded schema. Its ``evidence`` has, for each
        feature, its type, the number of records that have it, the smallest and largest number of values, whether all
        are text, and the record that made it a list or binary. Where records have values of another feature type than
        most, it states how many and which is the first; the schema is that of the other records. It prints as a table
        of these. Its ``suggestions`` are as in `describe`.

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `read_tfrecord`.
    """
    from tfrecord_io.bytes import ColumnBuffers
    from tfrecord_io.columns import InferredSchema, Schema
    from tfrecord_io.read import Files, TypeSample

    asked = options_from_call(
        ReadOptions,
        infer_schema,
        source,
        columns=columns,
        limit=limit,
        on_error=on_error,
        storage_options=storage_options,
        filesystem=filesystem,
        progress=progress,
    )
    files = Files.from_source(source, replace(asked.for_inspection(), schema="infer"), as_records=True)
    planned = files.plan_scan(whole=True, with_evidence=True)
    inferred = planned.inferred
    if inferred is not None and planned.error is None and planned.scan.resolved.source == "inferred":
        sample = TypeSample()
        for chunk in planned.sample[:1]:
            rows = min(chunk.rows, TypeSample.ROWS)
            sample.add(planned.scan.compiled.builder.batch(ColumnBuffers.cut_all(chunk.columns, 0, rows), rows)[0])
        inferred = InferredSchema(inferred, inferred.evidence, inferred.records, sample.suggestions())
    planned.close()
    if planned.error is not None and not asked.damage.ends_quietly:
        raise planned.error
    if not asked.damage.is_strict and planned.chunk_reader.recovery is not None:
        planned.chunk_reader.recovery.skipped.warn()
    return InferredSchema(Schema.from_arrow(planned.scan.schema)) if inferred is None else inferred
