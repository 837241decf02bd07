"""Files that a column of a table names, embedded as bytes."""

from __future__ import annotations

import errno
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.base import LIMITS
from tfrecord_io.columns import Column
from tfrecord_io.errors import EncodeError, FeatureNotFoundError, SchemaError
from tfrecord_io.kit import Options, check_choice, check_keywords, for_cli, open_input, printable
from tfrecord_io.store import Directory, Entry, FileSystem, Folder, Location
from tfrecord_io.typing import MissingFiles, Path, StorageLike, TableLike

_ROWS = 256  # whose files are looked up together


@check_keywords
def embed_files(
    table: TableLike,
    columns: Mapping[str, str],
    *,
    folder: Path | None = None,
    missing: MissingFiles = "raise",
    threads: int | None = None,
    storage_options: StorageLike | None = None,
) -> ArrayStream:
    """Add columns with the content of the files that other columns of a table name.

    >>> import tfrecord_io as tfr
    >>> _ = open("a.txt", "w").write("some text")
    >>> stream = tfr.formats.embed_files(
    ...     {"label": [1], "path": ["a.txt"]}, columns={"text": "path"}
    ... )
    >>> _ = tfr.write_tfrecord(stream, "texts.tfrecord")
    >>> tfr.read_table("texts.tfrecord").to_pylist()
    [{'label': 1, 'path': 'a.txt', 'text': b'some text'}]

    Parameters
    ----------
    table
        Any data that `tfrecord_io.write_tfrecord` accepts.
    columns : dict of str to str
        By the name of the new column: the column with the paths or URLs, for example ``{"image": "image_uri"}``. A new
        column with the name of its paths takes their place. A missing path gives a missing value.
    folder : str or PathLike, optional
        The folder or URL that the paths are relative to. They must then stay below it: absolute paths, URLs and ``..``
        are errors. By default a path may name any file, and relative ones are those of the current directory: pass a
        folder for a table that you do not trust.
    missing : {"raise", "null"}
        Whether a file that does not exist is an error, or gives a missing value.
    threads : int, optional
        Number of threads that read files; by default the number of CPU cores, and 16 where a path is a URL.
    storage_options
        As in `tfrecord_io.read_table`, for all URLs.

    Returns
    -------
    ArrayStream
        For `tfrecord_io.write_tfrecord` or any consumer of Arrow streams: the columns of the table and the new ones, of
        bytes. Memory holds a batch of rows and a few dozen megabytes of files.

    Raises
    ------
    FileNotFoundError
        A file does not exist; its row is named.
    EncodeError
        A path leaves the `folder`, or a file is larger than a record can be.
    FeatureNotFoundError
        The table does not have a column of paths.
    """
    options = _Options(threads=threads, storage_options=storage_options)
    check_choice("missing", missing, get_args(MissingFiles))
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns={columns!r}: expected a dict such as {{'image': 'image_uri'}}")
    source = open_input(table).with_plain_layouts()
    reading = _Embedding(dict(columns), folder, missing, options)
    schema = reading.schema(source.schema)
    batches = reading.batches(source, schema)
    return ArrayStream(schema, batches, source.rows, batches.close, num_files=len(columns))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class _Options(Options):
    """Keywords of `embed_files` that say how files are read."""

    threads: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_integer("threads", 1, optional=True)


class _Embedding:
    """Options and state of embedding files."""

    def __init__(self, columns: dict[str, str], folder: Path | None, missing: str, options: _Options) -> None:
        self._columns, self._missing, self._options = columns, missing, options
        self._folder = None if folder is None else Directory(folder, options.storage)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """The schema with the new columns."""
        for new, path in self._columns.items():
            if path not in schema.names:
                advice = f"it has: {', '.join(schema.names)}"
                raise FeatureNotFoundError("the table has no such column of paths", feature=path, hint=advice)
            field = schema.field(path)
            plain = field.type.value_type if t.is_dictionary(field.type) else field.type
            if not (t.is_string(plain) or t.is_large_string(plain) or t.is_null(plain)):
                got = Column(field.type, field.metadata).short_name
                raise SchemaError("paths are text", feature=path, expected="string", got=got)
            if new != path and new in schema.names:
                raise SchemaError("the table has a column of this name", feature=new, hint="choose another name")
            content_field = pa.field(new, pa.binary())
            schema = (
                schema.set(schema.get_field_index(new), content_field) if new == path else schema.append(content_field)
            )
        return schema

    def batches(self, source: Iterable[pa.RecordBatch], schema: pa.Schema) -> Generator[pa.RecordBatch]:
        row = 0
        for batch in source:
            for begin in range(0, len(batch), _ROWS):
                part = batch.slice(begin, _ROWS)
                yield from self._embed_batch(part, schema, row)
                row += len(part)

    def _embed_batch(self, batch: pa.RecordBatch, schema: pa.Schema, row: int) -> Iterator[pa.RecordBatch]:
        """The rows with their files, in parts of about 32 MiB."""
        located = {new: self._locate_files(batch.column(path), path, row) for new, path in self._columns.items()}
        order = [(new, at) for at in range(len(batch)) for new in located]
        files: Iterator[tuple[tuple[str, int], Any, Entry | None]] = (
            ((new, at), *located[new][at]) for new, at in order
        )
        filesystems = [fs for found_files in located.values() for fs, _ in found_files]
        contents: dict[str, list[bytes | None]] = {new: [] for new in located}
        size = begin = 0
        with closing(Folder.read_files(files, self._options.threads, filesystems)) as read:
            for (new, at), content in read:
                contents[new].append(content)
                size += len(content or b"")
                if size >= LIMITS.file_batch_bytes and len(contents[order[-1][0]]) == at + 1 - begin:
                    yield _add_contents(batch.slice(begin, at + 1 - begin), contents, schema)
                    contents, size, begin = {new: [] for new in located}, 0, at + 1
        if begin < len(batch):
            yield _add_contents(batch.slice(begin), contents, schema)

    def _locate_files(
        self, paths: pa.Array, feature: str, row: int
    ) -> list[tuple[FileSystem, Entry | None] | tuple[None, None]]:
        """The file of each path; no entry where a path or a file is missing."""
        by_fs: dict[int, tuple[FileSystem, list[tuple[int, str]]]] = {}
        for at, text in enumerate(pc.cast(paths, pa.string()).to_pylist()):
            if text is not None:
                fs, name = self._locate(text, feature, row + at)
                by_fs.setdefault(id(getattr(fs, "fsspec", None)), (fs, []))[1].append((at, name))
        located: list[Any] = [(None, None)] * len(paths)
        for fs, names in by_fs.values():
            for (at, name), entry in zip(names, fs.entries([name for _, name in names]), strict=True):
                if (entry is None or entry.directory) and self._missing == "raise":
                    what = "no such file" if entry is None else "a directory, not a file"
                    number = errno.ENOENT if entry is None else errno.EISDIR
                    text = f"{what} (row {row + at}, column '{printable(feature)}')"
                    error = OSError(number, f'{text}; missing="null" makes it a missing value', fs.display_path(name))
                    raise for_cli(error, f"{text}; --missing-files null makes it a missing value")
                located[at] = (fs, None if entry is None or entry.directory else entry)
        return located

    def _locate(self, text: str, feature: str, row: int) -> tuple[FileSystem, str]:
        if self._folder is None:
            return Location.of(text, self._options.storage)
        reason, name = Directory.leads_out(text), self._folder.join(text)
        if reason is None and self._folder.is_left_by(name):
            reason = "a link leads out of it"
        if reason is not None:
            raise EncodeError(
                f"the path '{printable(text)}' does not stay below the folder: {reason}", record=row, feature=feature
            )
        return self._folder.fs, name


def _add_contents(
    batch: pa.RecordBatch, contents: Mapping[str, list[bytes | None]], schema: pa.Schema
) -> pa.RecordBatch:
    columns = [
        pa.array(contents[name], pa.binary()) if name in contents else batch.column(name) for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
