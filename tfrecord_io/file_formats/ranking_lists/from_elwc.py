"""Lists of TensorFlow Ranking, ExampleListWithContext, as rows."""

from __future__ import annotations

from typing import Any, Literal

from tfrecord_io.errors import printable
from tfrecord_io.file_formats.ranking_lists.example_rows import ListRows
from tfrecord_io.file_formats.ranking_lists.list_block import PARTS
from tfrecord_io.keyword_docs import check_keywords, sign_keywords
from tfrecord_io.options import MAX_RECORD_BYTES, ReadOptions, leaves_out
from tfrecord_io.options.checked_options import check_choice
from tfrecord_io.read.open_scan import open_path
from tfrecord_io.read.reader import Reader
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.source import Source
from tfrecord_io.typing import InputPath

_WITHOUT = {"record_type", "include_file_paths"}


@check_keywords
@sign_keywords(ReadOptions, without=_WITHOUT)
def from_elwc(path: InputPath, *, part: Literal["examples", "context"] | None = None, **keywords: Any) -> Reader:
    """Read the lists of TensorFlow Ranking (ExampleListWithContext) as a stream with a row for each example.

    Parameters
    ----------
    path
        TFRecord files of serialized ExampleListWithContext, as in `tfrecord_io.read_table`.
    part : {"examples", "context"}, optional
        Read only the examples, or only the contexts, with a row for each list. By default a row has the features of an
        example and those of its list's context, which are repeated.
    **keywords
        Those of `tfrecord_io.open_reader`, except ``record_type`` and ``include_file_paths``. ``offset``, ``limit`` and
        ``sample`` count rows. ``on_error`` is "raise" or "stop": to leave out damaged lists, `salvage` the files first.

    Returns
    -------
    Reader
        A stream in bounded memory, which `tfrecord_io.write_tfrecord` and others accept; ``read_all()`` is a table. Its
        columns are the features, sorted by name, and with them ``record``, the number of the list in all files, and
        ``position``, that of the example in its list: int64, both from 0, as in `tfrecord_io.explode`. A list without
        examples has no rows. Features of an absent context are missing values.

    Raises
    ------
    SchemaError
        A feature that is read is in a context and in an example, or is named ``record`` or ``position``.
    DecodeError
        A record is not an ExampleListWithContext; it and the byte are named. Or its context, repeated for each example,
        takes more than `max_expansion` allows.
    ValueError
        The files are in folders such as ``label=3``, which make a column: read one folder.
    Others
        As in `tfrecord_io.open_reader`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> from tfrecord_io.tf_compat.example import encode_example
    >>> def field(number, content):
    ...     return bytes([number << 3 | 2, len(content)]) + content
    >>> examples = [encode_example({"document": b"a", "clicks": 3}), encode_example({"document": b"b", "clicks": 0})]
    >>> with tfr.RecordWriter("ranking.tfrecord") as writer:
    ...     writer.write(b"".join(field(1, e) for e in examples) + field(2, encode_example({"query": b"shoes"})))
    >>> tfr.from_elwc("ranking.tfrecord").read_all().to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [{'clicks': 3, 'document': 'a', 'position': 0, 'query': 'shoes', 'record': 0},
     {'clicks': 0, 'document': 'b', 'position': 1, 'query': 'shoes', 'record': 0}]
    """
    sources, changed = elwc_rows(path, keywords, part)
    return open_path(sources, ReadOptions.of({**keywords, **changed}))


def elwc_rows(
    path: Any, keywords: dict[str, Any], part: Literal["examples", "context"] | None = None
) -> tuple[list[Source], dict[str, Any]]:
    """The rows of lists as a source of Examples, and the keywords with which it is to be read in place of others."""
    for name in _WITHOUT & keywords.keys():
        if keywords[name] is not None:
            raise TypeError(f"{name}= is not possible for ExampleListWithContext")
    check_choice("part", part, (None, *PARTS))
    options = ReadOptions.of(keywords)
    if leaves_out(options.on_error):
        advice = "to leave out damaged lists, salvage the files first"
        raise ValueError(f"on_error={options.on_error!r}: expected 'raise' or 'stop'; {advice}")
    sources = resolve_inputs(path, options.storage, allow_missing_shards=options.allow_missing_shards)
    first = sources[0]
    if (found := next((source for source in sources if source.partitions), None)) is not None:
        column = found.partitions[0][0]
        raise ValueError(f"'{printable(found.path)}': the column '{printable(column)}' of folders: read one of them")
    rows = ListRows(sources, options, part)
    changed = {
        "record_type": "example",
        "compression": None,
        "check_crc": False,
        "max_record_bytes": MAX_RECORD_BYTES,
        "max_decompression_ratio": None,
        "progress": False,
    }
    return [Source(first.path, None, False, origin=rows.origins, derived=rows)], changed
