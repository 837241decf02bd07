"""The calls most people need: tables in, tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import ReadOptions, WriteOptions
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.resolve_schema import Session
from tfrecord_io.schema.inferred_schema import InferredSchema
from tfrecord_io.schema.schema import Schema
from tfrecord_io.write.writer import Writer, WriteReport, write

if TYPE_CHECKING:
    import pandas as pd


@document_keywords(ReadOptions, whole=True)
def read_tfrecord(path: Any, *, dtype_backend: str | None = None, **keywords: Any) -> pd.DataFrame:
    """Read TFRecord files of tf.train.Example into a pandas DataFrame.

    Parameters
    ----------
    {path}
    {dtype_backend}
    {keywords}

    Returns
    -------
    pandas.DataFrame
        One row a record, in file order. A feature with exactly one value wherever it is present is a column of
        scalars, any other one of lists; an absent feature is missing. Columns are sorted by name unless a schema
        says otherwise. Tensors are ndarrays.

    Raises
    ------
    FileNotFoundError
        Nothing matches `path`.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; ``records_intact`` rows before it can be had with ``on_error="stop"``.
    DecodeError
        A record is no Example, or a value does not fit the schema.
    SchemaError
        Records or files contradict each other, or `columns` names what is not there.

    Examples
    --------
    >>> import pandas as pd, tfrecord_io as tfr
    >>> df = pd.DataFrame({"label": [1, 0], "name": ["cat", None]})
    >>> _ = tfr.write_tfrecord(df, "pets.tfrecord")
    >>> tfr.read_tfrecord("pets.tfrecord")
       label name
    0      1  cat
    1      0  NaN
    """
    with Reader(path, ReadOptions.of(keywords), whole=True, index=True) as reader:
        return reader.read_pandas(dtype_backend)


@document_keywords(ReadOptions, whole=True)
def read_table(path: Any, **keywords: Any) -> pa.Table:
    """Read TFRecord files of tf.train.Example into a pyarrow Table.

    Parameters
    ----------
    {path}
    {keywords}

    Returns
    -------
    pyarrow.Table
        Int64List → int64, FloatList → float32, BytesList → binary or, where all values are text, string; lists where
        any record has other than one value; null where a record has no value. Types are exact over the rows returned.
        Bytes with ``x/shape`` and ``x/dtype`` beside them in every record are tensors: a fixed_shape_tensor where all have one
        shape, else a variable_shape_tensor.

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As `read_tfrecord`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2], "tags": [["a"], []]}, "tagged.tfrecord")
    >>> tfr.read_table("tagged.tfrecord", schema="infer").schema.types
    [ListType(list<item: string>), DataType(int64)]
    """
    with Reader(path, ReadOptions.of(keywords), whole=True) as reader:
        return reader.read_all()


@document_keywords(ReadOptions)
def open_reader(path: Any, **keywords: Any) -> Reader:
    """Open TFRecord files as a stream of Arrow record batches, of one schema, in bounded memory.

    Parameters
    ----------
    {path}
    {keywords}

    Returns
    -------
    Reader
        A context manager and iterator of ``pyarrow.RecordBatch``, consumed once; anything that takes
        ``__arrow_c_stream__`` reads from it. The schema is fixed when this call returns: from `schema`, from the
        file, or from a `sample`; what contradicts it later raises and says what to pass.

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As `read_tfrecord`; by the iterator, after all rows before the damage.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": list(range(5))}, "five.tfrecord")
    >>> with tfr.open_reader("five.tfrecord", batch_size=2) as reader:
    ...     [batch.num_rows for batch in reader]
    [2, 2, 1]
    """
    return Reader(path, ReadOptions.of(keywords))


@document_keywords(WriteOptions)
def write_tfrecord(data: Any, path: Any, **keywords: Any) -> WriteReport:
    """Write a table to TFRecord files of tf.train.Example, one record a row, which TensorFlow reads.

    Parameters
    ----------
    data : DataFrame, pyarrow Table, RecordBatch or reader, dict of arrays, iterable of those
        Or anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``: polars, DuckDB, a reader of ours.
    path : str, PathLike, URL or binary file object
        A file; or a sharded dataset: ``name@8`` for ``name-00000-of-00008`` and so on, or a directory, which is there or ends in
        "/". What is written appears whole when the call returns, or not at all. A file object is written to as it is.
    {keywords}

    Returns
    -------
    WriteReport

    Raises
    ------
    EncodeError
        A column or value has no form in a record; ``feature`` and ``record`` say which.
    FileExistsError
        With ``overwrite=False``; of a sharded dataset without ``overwrite=True``.

    Warns
    -----
    PrecisionWarning
        float64 values were rounded to float32; see `float64`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> tfr.write_tfrecord({"x": [1, 2, 3]}, "x.tfrecord").records
    3
    >>> [file.path for file in tfr.write_tfrecord({"x": [1, 2, 3]}, "x@2").files]
    ['x-00000-of-00002', 'x-00001-of-00002']
    """
    return write(data, path, WriteOptions.of(keywords))


@document_keywords(WriteOptions)
def open_writer(path: Any, schema: Any = None, **keywords: Any) -> Writer:
    """Open a TFRecord file, or a sharded dataset, to write tables to, one after the other.

    Parameters
    ----------
    path : str, PathLike, URL or binary file object
        As in `write_tfrecord`. What is written appears whole when the ``with`` block ends, and not at all if it ends by an
        exception.
    {keywords}

    Returns
    -------
    Writer
        Its ``write(data)`` takes what `write_tfrecord` takes.

    Raises
    ------
    EncodeError, SchemaError
        By ``write``.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> with tfr.open_writer("parts.tfrecord") as writer:
    ...     writer.write({"x": [1, 2]})
    ...     writer.write({"x": [3]})
    >>> writer.report.records
    3
    """
    return Writer(path, WriteOptions.of({**keywords, "schema": schema}))


@document_keywords(ReadOptions, whole=True)
def infer_schema(path: Any, **keywords: Any) -> InferredSchema:
    """The schema that the values of TFRecord files show, exactly, and why: all records are decoded.

    Parameters
    ----------
    {path}
    {keywords}

    Returns
    -------
    InferredSchema
        The `Schema` that `read_table` goes by where no file carries one. Its ``evidence`` holds, by feature, the kind, how many
        records have it, the least and most values in one, whether all are text, and which record made it a list or
        binary; it prints as a table of these.

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As `read_tfrecord`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [[1], [2, 3], None]}, "lists.tfrecord")
    >>> tfr.infer_schema("lists.tfrecord")
    Schema inferred from 3 records
    column  type              kind   records  values  because of
    x       list<item: int64>  int64  2        1–2     list: lists.tfrecord record 1
    """
    options = ReadOptions.of({**keywords, "schema": "infer"})
    session = Session(path, options, whole=True, evidence=True)
    try:
        if session.failed is not None and options.on_error == "raise":
            raise session.failed
        return session.inferred or InferredSchema(Schema.from_arrow(session.schema))
    finally:
        session.reader.close()
