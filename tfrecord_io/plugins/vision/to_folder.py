"""Write records as files of a folder: images, or any bytes, and a table of the other columns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.apps.file_formats.tables.table_files import OpenWriter, refuse_types
from tfrecord_io.base import ExportOptions, ReadOptions, check_keywords, ordered
from tfrecord_io.bytes import CSV, IMAGES, JSON, NPY, TIFF_MAGIC, TSV, format_of_name, load
from tfrecord_io.columns import Projection, RawImages, RowFault, is_bytes, short_type_name
from tfrecord_io.errors import EncodeError, FeatureNotFoundError, SchemaError, printable, warn
from tfrecord_io.plugins.vision.folder_files import TABLE_NAME
from tfrecord_io.read import Reader, open_path, options_from_call, plan_source, unwrap_scans
from tfrecord_io.store import Folder, NewFolder, name_fault, open_output
from tfrecord_io.typing import UNSET, FilesLike, Path, ProgressLike, StorageLike, Unset
from tfrecord_io.write import WriteReport

_MAGIC = {
    b"\xff\xd8\xff": ".jpg",
    b"\x89PNG": ".png",
    b"GIF8": ".gif",
    b"BM": ".bmp",
    **dict.fromkeys(TIFF_MAGIC, ".tif"),
    b"fLaC": ".flac",
    b"OggS": ".ogg",
    b"ID3": ".mp3",
    NPY.magic[0]: NPY.suffixes[0],
}
_NUMBERED = "filename=None numbers the files instead"
_NUMBERED_CLI = "--filename none numbers the files instead"
_TABLE_ADVICE = 'exclude the column with columns=, or pass table="metadata.jsonl", which holds lists and bytes'


@check_keywords
def write_image_folder(
    source: FilesLike,
    target: Path,
    *,
    image: str | None = None,
    filename: str | None = "image/filename",
    table: str | None = TABLE_NAME,
    columns: Sequence[str] | str | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport:
    """Write the images of TFRecord files as files of a folder, and the other columns as a CSV file in it.

    >>> import os
    >>> import tfrecord_io as tfr
    >>> data = {
    ...     "image/encoded": [b"GIF89a", b"BM"],
    ...     "image/filename": ["a/1.gif", "b/1.bmp"],
    ...     "label": [0, 1],
    ... }
    >>> _ = tfr.write_tfrecord(data, "two.tfrecord")
    >>> tfr.formats.write_image_folder("two.tfrecord", "two").records
    2
    >>> sorted(os.listdir("two")), open("two/b/1.bmp").read()
    (['a', 'b', 'metadata.csv'], 'BM')
    >>> print(open("two/metadata.csv").read(), end="")
    "image/filename","label"
    "a/1.gif",0
    "b/1.bmp",1

    Parameters
    ----------
    source
        TFRecord files, as for `tfrecord_io.dataset`.
    target : str or PathLike
        A folder, local or in a bucket, that does not exist or is empty. A local one appears when it is complete.
    image : str, optional
        The column with the bytes of the files, which are written as they are; by default ``image/encoded``, or the only
        column of bytes. Of raw pixels, which `tfrecord_io.image` declares, PNG files are made.
    filename : str, optional
        The column with their names, relative to the folder (``cat/1.jpg``). A name without the suffix of an image gets
        that of its content, ``ISIC_0.jpg``, also in the table. None, or without such a column: files are numbered,
        ``00000000.jpg``.
    table : str, optional
        The name of the file with all other columns and the names, with a row for each record: ``.csv``, ``.tsv``, or
        ``.jsonl``, which also holds lists and bytes. None: no table.
    columns : str or sequence of str, optional
        The other columns to write: names, globs and ``!name`` to exclude.
    storage_options, progress
        As for `tfrecord_io.dataset`; `storage_options` also of the target.

    Returns
    -------
    WriteReport
        Its ``bytes`` are those of the image files.

    Raises
    ------
    EncodeError
        A name would leave the folder (``../x``, ``/x``), is not valid on all systems, or is not the first of its kind.
        An image has no bytes; of one that is missing (null) only the row is written, with a warning. A column cannot
        be stored in the table.
    FeatureNotFoundError
        The column does not exist, or it is not clear which one has the images.
    FileExistsError
        The folder exists and is not empty.
    """
    return _write_folder(
        source=source,
        target=target,
        kind=_IMAGES,
        image=image,
        filename=filename,
        table=table,
        columns=columns,
        keywords={"storage_options": storage_options, "progress": progress},
    )


def to_image_folder(
    source: FilesLike, target: Path, *, filename: str | None = "image/filename", columns: Any = None, **keywords: Any
) -> WriteReport:
    """`write_image_folder` with all keywords of reading."""
    return _write_folder(
        source=source,
        target=target,
        kind=_IMAGES,
        image=None,
        filename=filename,
        table=TABLE_NAME,
        columns=columns,
        keywords=keywords,
    )


@check_keywords
def write_file_folder(
    source: FilesLike,
    target: Path,
    *,
    file: str | None = None,
    filename: str | None = "file/name",
    table: str | None = TABLE_NAME,
    columns: Sequence[str] | str | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport:
    """Write a column of bytes, such as audio, as files of a folder: the twin of `open_file_folder`.

    >>> import os
    >>> import tfrecord_io as tfr
    >>> data = {
    ...     "audio": [b"RIFF....WAVE", b"fLaC"],
    ...     "key": ["yes/1.wav", "no/1.flac"],
    ...     "label": [1, 0],
    ... }
    >>> _ = tfr.write_tfrecord(data, "words.tfrecord")
    >>> tfr.formats.write_file_folder("words.tfrecord", "words", filename="key").records
    2
    >>> sorted(os.listdir("words")), open("words/no/1.flac").read()
    (['metadata.csv', 'no', 'yes'], 'fLaC')

    Parameters
    ----------
    source, target
        As in `write_image_folder`.
    file : str, optional
        The column with the bytes of the files, which are written as they are; by default ``file/encoded``, or the only
        column of bytes.
    filename : str, optional
        The column with their names, relative to the folder. None, or if there is no column ``file/name``: files are
        numbered, with a suffix by their content or ``.bin``.
    table, columns, storage_options, progress
        As in `write_image_folder`.

    Returns
    -------
    WriteReport
        Its ``bytes`` are those of the files.

    Raises
    ------
    EncodeError, FeatureNotFoundError, FileExistsError
        As from `write_image_folder`.
    """
    return _write_folder(
        source=source,
        target=target,
        kind=_FILES,
        image=file,
        filename=filename,
        table=table,
        columns=columns,
        keywords={"storage_options": storage_options, "progress": progress},
    )


def to_file_folder(
    source: FilesLike,
    target: Path,
    *,
    file: str | None = None,
    filename: str | None = "file/name",
    columns: Any = None,
    **keywords: Any,
) -> WriteReport:
    """`write_file_folder` with all keywords of reading."""
    return _write_folder(
        source=source,
        target=target,
        kind=_FILES,
        image=file,
        filename=filename,
        table=TABLE_NAME,
        columns=columns,
        keywords=keywords,
    )


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of file to write, and its default columns."""

    keyword: str  # the keyword that names the column of bytes
    encoded: str
    name: str
    are_images: bool


_IMAGES = _Kind("image", "image/encoded", "image/filename", are_images=True)
_FILES = _Kind("file", "file/encoded", "file/name", are_images=False)


def _write_folder(
    source: Any,
    target: Any,
    kind: _Kind,
    image: str | None,
    filename: str | None,
    table: str | None,
    columns: Any,
    keywords: dict[str, Any],
) -> WriteReport:
    options = options_from_call(ExportOptions, None, source, **keywords)
    storage = options.target
    make_table = None if table is None else _table_format(table)
    options = _select_columns(source, options, columns=columns, kind=kind, image=image, filename=filename)
    with ExitStack() as opened:
        reader = opened.enter_context(open_path(source, options))
        layout = _layout(reader.schema, kind, image=image, filename=filename, table=table)
        table_fields = [field for field in reader.schema if field.name not in (layout.image, layout.filename)]
        table_schema = pa.schema([pa.field(layout.filename or layout.name, pa.string()), *table_fields])
        if make_table is not None:
            refuse_types(table_schema, make_table, _TABLE_ADVICE)
        folder = opened.enter_context(NewFolder.begin(os.fspath(target), storage))
        writer = None
        if table is not None and make_table is not None:
            output = opened.enter_context(open_output(folder.table(table), storage))
            writer = opened.enter_context(make_table(output.as_stream(), table_schema))
        threads = folder.writing_threads(options.thread_count)
        for batch in reader:
            names = _write_files(batch, layout, folder=folder, reader=reader, threads=threads)
            if writer is not None:
                columns_of_table = [pa.array(names, pa.string()), *map(batch.column, table_schema.names[1:])]
                writer.write_batch(pa.RecordBatch.from_arrays(columns_of_table, schema=table_schema))
            layout.rows += len(batch)
        written = tuple(reader.schema.names)
    layout.warn(os.fspath(target))
    return WriteReport(
        os.fspath(target), layout.rows, bytes=folder.bytes, compression=None, columns=written, rounded={}
    )


def _select_columns(
    source: Any, options: ExportOptions, columns: Any, kind: _Kind, image: str | None, filename: str | None
) -> ExportOptions:
    """The options with the `columns` of the table, and those with the images and their names."""
    if columns is None:
        return options
    schema = schema_to_choose_from(source, options)
    layout = _layout(schema, kind, image=image, filename=filename, table=None)
    projection = Projection(columns)
    projection.check(schema.names)
    needed = [layout.image] if layout.filename is None else [layout.image, layout.filename]
    table_columns = [name for name in projection.order(schema.names) if name not in needed]
    return replace(options, columns=(*needed, *table_columns))


def schema_to_choose_from(source: Any, options: ReadOptions) -> pa.Schema:
    """The schema of files that are read again, when the columns are known that are needed.

    Raises
    ------
    TypeError, ValueError
        They can be read only once.
    """
    if hasattr(unwrap_scans(source), "read"):
        raise TypeError("the files are read twice: pass a path, not a file object")
    scan = plan_source(source, replace(options, filters=None, limit=None))
    if once := [source_file.path for source_file in scan.sources if not source_file.can_be_read_again]:
        advice = "save it to a file first"
        raise ValueError(f"'{printable(once[0])}' is a pipe, and the files are read twice: {advice}")
    return scan.schema


@dataclass(slots=True)
class _Layout:
    """Which columns have the files and their names."""

    image: str
    filename: str | None
    table: str | None  # a name that no file may have
    name: str  # of the column of the table with the names, where records have none
    are_images: bool
    raw: RawImages | None  # of pixels, of which PNG files are made
    rows: int = 0  # before the current batch
    missing: int = 0  # rows without an image
    misnamed: int = 0  # images whose name has the suffix of another format
    first: list[str] = field(default_factory=lambda: ["", ""])  # of each of the two

    def warn(self, path: str) -> None:
        """Warn of rows that have no file, or one whose name says something else."""
        if self.missing:
            place = "no file" if self.table is None else f"a row in '{self.table}' and no file"
            text = (
                f"{self.missing:,} of {self.rows:,} records have no image, and get {place}, the first: {self.first[0]}"
            )
            warn(f"{printable(path)}: {text}", UserWarning)
        if self.misnamed:
            text = f"{self.misnamed:,} of {self.rows - self.missing:,} images have the suffix of another format, "
            warn(f"{printable(path)}: {text}the first: {self.first[1]}", UserWarning)


def _layout(schema: pa.Schema, kind: _Kind, image: str | None, filename: str | None, table: str | None) -> _Layout:
    """Find the columns."""
    raw = raw_images_of(schema) if kind.are_images else {}
    of_bytes = [field.name for field in schema if is_bytes(field.type) or field.name in raw]
    if kind.encoded not in of_bytes and image is None and len(raw) == 1:
        image = next(iter(raw))
    if image is None:
        if kind.encoded not in of_bytes and len(of_bytes) != 1:
            reason = "it is not clear which column has the files"
            advice = f"pass {kind.keyword}=; columns of bytes: {', '.join(of_bytes) or 'none'}"
            advice_cli = f"pass {kind.keyword}=; columns of bytes: {', '.join(of_bytes) or 'none'}"
            raise FeatureNotFoundError(reason, expected=kind.encoded, got=of_bytes, hint=advice, hint_cli=advice_cli)
        image = kind.encoded if kind.encoded in of_bytes else of_bytes[0]
    elif image not in schema.names:
        raise FeatureNotFoundError("no such column", feature=image, hint=f"it has: {', '.join(schema.names)}")
    elif image not in of_bytes:
        got = short_type_name(schema.field(image).type, schema.field(image).metadata)
        is_text = t.is_string(schema.field(image).type)
        cast = f"schema_overrides={ {printable(image): 'binary'}!r} reads text as bytes" if is_text else None
        raise SchemaError("files are bytes", feature=image, expected="binary", got=got, hint=cast)
    if filename is not None and filename not in schema.names:
        if filename != kind.name:
            advice = f"it has: {', '.join(schema.names)}; {_NUMBERED}"
            advice_cli = f"it has: {', '.join(schema.names)}; {_NUMBERED_CLI}"
            raise FeatureNotFoundError("no such column", feature=filename, hint=advice, hint_cli=advice_cli)
        filename = None
    if filename is not None and not t.is_string(schema.field(filename).type):
        got = short_type_name(schema.field(filename).type)
        raise SchemaError(
            "names of files are text",
            feature=filename,
            expected="string",
            got=got,
            hint=_NUMBERED,
            hint_cli=_NUMBERED_CLI,
        )
    return _Layout(image, filename, table=table, name=kind.name, are_images=kind.are_images, raw=raw.get(image))


def raw_images_of(schema: pa.Schema) -> dict[str, RawImages]:
    """The columns of raw pixels, of which each row has one image."""
    found = {field.name: RawImages.from_field(field) for field in schema}
    return {name: raw for name, raw in found.items() if raw is not None and not raw.in_lists}


def image_contents(images: pa.Array, raw: RawImages | None, reader: Reader, first: int) -> Iterator[pa.Buffer | None]:
    """The content of each file of a column of images, whose first row is `first`: PNG of raw pixels."""
    if raw is None:
        yield from (scalar.as_buffer() for scalar in images)
        return
    try:
        yield from raw.files(images)
    except RowFault as fault:
        raise fault.to_error(*reader.origin(first + fault.row)) from None


def _write_files(
    batch: pa.RecordBatch, layout: _Layout, folder: NewFolder, reader: Reader, threads: int
) -> list[str | None]:
    """Write the files of a batch; return the names of all rows, None for a row without file and name."""
    images = batch.column(layout.image)
    filenames = batch.column(layout.filename).to_pylist() if layout.filename is not None else [None] * len(batch)
    names: list[str | None] = []

    def files() -> Iterator[NewFile]:
        contents = image_contents(images, layout.raw, reader, layout.rows)
        for at, (content, name) in enumerate(zip(contents, filenames, strict=True), layout.rows):
            if content is None:
                names.append(name)
                layout.first[0] = layout.first[0] or _record_text(reader, at)
                layout.missing += 1
                continue
            if layout.are_images and not content.size:
                advice = "filters= leaves the record out"
                raise row_error(reader, at, reason="it has no image bytes", feature=layout.image, advice=advice)
            if name is None:
                name = f"{at:08d}{file_suffix(content)}"
            reason = (
                "the table of the folder has this name" if name.partition("/")[0] == layout.table else name_fault(name)
            )
            error = partial(row_error, reader, at, feature=layout.filename, advice=_NUMBERED)
            if reason is not None:
                raise error(f"the name '{printable(name)}' of a file cannot be used: {reason}")
            if layout.are_images:
                name = named_as_image(name, content)
                if (suffix := _other_suffix(name, content)) is not None:
                    layout.first[1] = layout.first[1] or f"'{printable(name)}' is {suffix}"
                    layout.misnamed += 1
            names.append(name)
            folder.bytes += content.size
            yield name, content, error

    write_files(folder, files(), threads)
    return names


NewFile = tuple[str, Any, Callable[[str], EncodeError]]
"""The name of a file, its content, and the error about its record for a reason."""


def write_files(folder: NewFolder, files: Iterable[NewFile], threads: int) -> None:
    """Write files, several at a time; an error for the first, in this order, whose name another one has."""

    def write(name: str, content: Any, error: Callable[[str], EncodeError]) -> None:
        with _explain_name_clash(name, error):
            folder.write(name, content)

    def tasks() -> Iterator[Callable[[], None]]:
        for file in files:
            with _explain_name_clash(file[0], file[2]):
                folder.reserve(file[0])
            yield partial(write, *file)

    with closing(ordered(tasks(), threads)) as written:
        for _ in written:
            pass


@contextmanager
def _explain_name_clash(name: str, error: Callable[[str], EncodeError]) -> Iterator[None]:
    """Name the record of a file whose name is taken: `write` finds what only the file system knows, such as case."""
    try:
        yield
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise error(f"a file or folder named '{printable(name)}' has been written for another record") from None


def row_error(
    reader: Reader,
    row: int,
    reason: str,
    feature: str | None,
    advice: str | None = None,
    *,
    expected: Any = None,
    got: Any = None,
) -> EncodeError:
    """The error about the record of a row."""
    path, record = reader.origin(row)
    return EncodeError(reason, path=path, record=record, feature=feature, expected=expected, got=got, hint=advice)


def named_as_image(name: str, content: pa.Buffer) -> str:
    """The name of the file of an image, by whose suffix readers find it: that of its content is added where it is none.

    >>> named_as_image("ISIC_0", pa.py_buffer(b"GIF89a")), named_as_image("a.jpg", pa.py_buffer(b"GIF89a"))
    ('ISIC_0.gif', 'a.jpg')
    """
    suffix = file_suffix(content)
    is_named = name.lower().endswith(Folder.IMAGE_SUFFIXES) or suffix not in Folder.IMAGE_SUFFIXES
    return name if is_named else name + suffix


def _other_suffix(name: str, content: pa.Buffer) -> str | None:
    """The suffix of the content, if the name has that of another format of images."""
    suffix = file_suffix(content)
    of_name = next((suffixes for suffixes in IMAGES.values() if name.lower().endswith(suffixes)), ())
    return suffix if of_name and suffix in Folder.IMAGE_SUFFIXES and suffix not in of_name else None


def _record_text(reader: Reader, row: int) -> str:
    path, record = reader.origin(row)
    return f"record {record} of '{printable(path)}'"


def file_suffix(content: pa.Buffer) -> str:
    """The suffix of a file by its first bytes: ``.bin`` if they are of no known kind."""
    head = content.slice(0, min(12, content.size)).to_pybytes()
    if head[:4] == b"RIFF":
        return {b"WEBP": ".webp", b"WAVE": ".wav"}.get(head[8:], ".bin")
    return next((suffix for magic, suffix in _MAGIC.items() if head.startswith(magic)), ".bin")


def _table_format(table: str) -> OpenWriter:
    """The writer of a table by its name."""
    if (wrong := "it has a slash" if "/" in table else name_fault(table)) is not None:
        raise ValueError(f"table={table!r}: expected the name of a file in the folder; {wrong}")
    format = format_of_name(table.lower())
    if format in (CSV, TSV, JSON):
        assert format.writer is not None
        return partial(load(format.writer), **format.named)
    raise ValueError(f"table={table!r}: expected a name that ends in .csv, .tsv or .jsonl")
