"""Lists of TensorFlow Ranking, ExampleListWithContext, as a stream: a row for each example, with its context."""

from __future__ import annotations

from typing import Any, Literal

from tfrecord_io.kit import ReadOptions, check_keywords
from tfrecord_io.read import CallSource, ListRows
from tfrecord_io.typing import UNSET, InputPath, ProgressLike, Reader, StorageLike, Unset


@check_keywords
def open_elwc(
    source: InputPath,
    *,
    part: Literal["examples", "context"] | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> Reader:
    """Read the lists of TensorFlow Ranking (ExampleListWithContext) as a stream with a row for each example.

    >>> import tfrecord_io as tfr
    >>> def field(number, content):
    ...     return bytes([number << 3 | 2, len(content)]) + content
    >>> examples = [
    ...     tfr.encode_example({"document": name, "clicks": n})
    ...     for name, n in [(b"a", 3), (b"b", 0)]
    ... ]
    >>> with tfr.RecordWriter("ranking.tfrecord") as writer:
    ...     writer.write(
    ...         b"".join(field(1, e) for e in examples)
    ...         + field(2, tfr.encode_example({"query": b"shoes"}))
    ...     )
    >>> lists = tfr.formats.open_elwc("ranking.tfrecord").read_all()
    >>> lists.to_pylist()  # doctest: +NORMALIZE_WHITESPACE
    [{'clicks': 3, 'document': 'a', 'position': 0, 'query': 'shoes', 'record': 0},
     {'clicks': 0, 'document': 'b', 'position': 1, 'query': 'shoes', 'record': 0}]

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        TFRecord files of serialized ExampleListWithContext, as in `read_tfrecord`. A `dataset` says more of how they
        are read; its ``offset``, ``limit`` and ``sample`` count rows. Its ``on_error`` is "raise" or "stop": to leave
        out damaged lists, `salvage` the files first.
    part : {"examples", "context"}, optional
        Read only the examples, or only the contexts, with a row for each list. By default a row has the features of an
        example and those of its list's context, which are repeated.
    storage_options, progress
        As in `read_tfrecord`.

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
        takes more than `Limits.expansion_bytes` allows.
    ValueError
        The files are in folders such as ``label=3``, which make a column: read one folder.
    Others
        As in `tfrecord_io.open_reader`.
    """
    stated = ReadOptions.stated({"storage_options": storage_options, "progress": progress})
    sources, keywords = ListRows.resolve(source, stated, part)
    return CallSource(sources).open(ReadOptions.from_keywords(keywords))


def elwc_rows(path: Any, keywords: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The rows of lists as a source of Examples, and the keywords with which it is to be read."""
    return ListRows.resolve(path, keywords)
