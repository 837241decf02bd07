"""Tables to columns of serialized Examples, for messages and databases instead of files.

Tests: tests/read/test_example_columns.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from tfrecord_io.base import WriteOptions, check_keywords
from tfrecord_io.typing import Float64, RecordTypeLike, SchemaLike, TableLike
from tfrecord_io.write.frame_sink import PayloadSink
from tfrecord_io.write.writer import Writer


@check_keywords
def encode_examples(
    table: TableLike,
    *,
    schema: SchemaLike | None = None,
    record_type: RecordTypeLike | None = None,
    column_encoding: Mapping[str, str] | None = None,
    float64: Float64 | None = None,
    nan_to_null: bool = True,
    index: bool | None = None,
    embed_schema: bool = True,
    threads: int | None = None,
) -> pa.Array:
    """Encode a table as a column of serialized Examples, one for each row: for messages, requests and databases.

    >>> import tfrecord_io as tfr
    >>> messages = tfr.io.encode_examples(
    ...     {"user": [3, 4], "query": ["shoes", "hats"]}, embed_schema=False
    ... )
    >>> messages.type
    DataType(binary)
    >>> tfr.decode_example(messages[1].as_py())
    {'user': array([4]), 'query': array([b'hats'], dtype=object)}

    Parameters
    ----------
    table : DataFrame, pyarrow Table, RecordBatch or reader, dict of arrays, list of dicts, or iterable of those
        Whatever `tfrecord_io.write_tfrecord` accepts.
    embed_schema : bool, default True
        Store the schema in the first value, so that `decode_examples` of the whole column restores the types. Pass
        False where the values go different ways, such as messages.
    schema, record_type, column_encoding, float64, nan_to_null, index, threads
        As in `write_tfrecord`.

    Returns
    -------
    pyarrow.BinaryArray
        The payloads of the records that `tfrecord_io.write_tfrecord` writes, without nulls; of 2 GiB or more a
        LargeBinaryArray.

    Raises
    ------
    EncodeError, SchemaError
        As in `tfrecord_io.write_tfrecord`; the error's `record` is the row.
    """
    options = WriteOptions(
        schema=schema,
        record_type=record_type,
        column_encoding=column_encoding,
        float64=float64,
        nan_to_null=nan_to_null,
        index=index,
        embed_schema=embed_schema,
        threads=threads,
    )
    sink = PayloadSink()
    with Writer(None, options, sink) as writer:
        writer.write(table)
    return sink.take()
