"""Write records as files of a folder: images, or any bytes, and a table of the other columns.

`_find_layout` finds the columns with the files and their names, `_FolderFiles` names and writes the files of each
batch, and counts those that have none, or a misleading name. The names of files are checked before they are written:
`NewFolder` refuses those that lead out of the folder, or are taken.

Tests: tests/plugins/vision/test_to_folder.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.apps.file_formats.tables.table_files import OpenWriter, refuse_types
from tfrecord_io.base import ExportOptions, ordered
from tfrecord_io.columns import Column, ImageHeader, Projection, RawImages
from tfrecord_io.errors import EncodeError, FeatureNotFoundError, SchemaError
from tfrecord_io.kit import FORMATS, Format, ReadOptions, RowFault, check_keywords, open_output, printable, warn
from tfrecord_io.plugins.vision.folder_files import TABLE_NAME
from tfrecord_io.plugins.vision.tiff_files import TiffFiles
from tfrecord_io.read import CallSource
from tfrecord_io.store import Directory, Folder, NewFolder
from tfrecord_io.typing import UNSET, FilesLike, Path, ProgressLike, Reader, StorageLike, Unset, WriteReport

_NPY = FORMATS.npy

_MAGIC = {
    b"\xff\xd8\xff": ".jpg",
    b"\x89PNG": ".png",
    b"GIF8": ".gif",
    b"BM": ".bmp",
    **dict.fromkeys(ImageHeader.TIFF_MAGIC, ".tif"),
    b"fLaC": ".flac",
    b"OggS": ".ogg",
    b"ID3": ".mp3",
    _NPY.magic[0]: _NPY.suffixes[0],
}
_NUMBERED = "filename=None numbers the files instead"
_NUMBERED_CLI = "--filename none numbers the files instead"
_TABLE_ADVICE = 'call tfr.formats.write_{}_folder with table="metadata.jsonl", which holds lists and bytes'
_TABLE_ADVICE_CLI = "write it with another tfr convert, to a file such as metadata.jsonl, which holds lists and bytes"


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
        column of bytes. Of raw pixels, which `tfrecord_io.image` declares, PNG files are made; of arrays, TIFF files,
        as `write_file_folder` does.
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
        column of bytes. Of a column of arrays [height, width] or [height, width, channels], TIFF files are made, with
        any number of channels, of 8 to 64 bits; it needs the extra ``tiff``.
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
    options = CallSource(source).options(ExportOptions, **keywords)
    storage = options.target
    make_table = None if table is None else _table_format(table)
    options = _select_columns(source, options, columns=columns, kind=kind, image=image, filename=filename)
    with ExitStack() as opened:
        reader = opened.enter_context(CallSource(source).open(options))
        layout = _find_layout(reader.schema, kind, image=image, filename=filename)
        table_fields = [field for field in reader.schema if field.name not in (layout.image, layout.filename)]
        table_schema = pa.schema([pa.field(layout.filename or layout.name, pa.string()), *table_fields])
        if make_table is not None:
            refuse_types(table_schema, make_table, _TABLE_ADVICE.format(kind.keyword), _TABLE_ADVICE_CLI)
        folder = opened.enter_context(NewFolder.begin(os.fspath(target), storage))
        writer = None
        if table is not None and make_table is not None:
            output = opened.enter_context(open_output(folder.table(table), storage))
            writer = opened.enter_context(make_table(output.as_stream(), table_schema))
        threads = folder.writing_threads(options.thread_count)
        files = _FolderFiles(layout, folder, reader, table=table, threads=threads)
        for batch in reader:
            names = files.write(batch)
            if writer is not None:
                columns_of_table = [pa.array(names, pa.string()), *map(batch.column, table_schema.names[1:])]
                writer.write_batch(pa.RecordBatch.from_arrays(columns_of_table, schema=table_schema))
        written = tuple(reader.schema.names)
    files.warn(os.fspath(target))
    return WriteReport(os.fspath(target), files.rows, bytes=folder.bytes, compression=None, columns=written, rounded={})


def _select_columns(
    source: Any, options: ExportOptions, columns: Any, kind: _Kind, image: str | None, filename: str | None
) -> ExportOptions:
    """The options with the `columns` of the table, and those with the images and their names."""
    if columns is None:
        return options
    schema = schema_to_choose_from(source, options)
    layout = _find_layout(schema, kind, image=image, filename=filename)
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
    if hasattr(source, "read") and not CallSource(source).datasets:
        raise TypeError("the files are read twice: pass a path, not a file object")
    scan = CallSource(source).scan(replace(options, filters=None, limit=None))
    if once := [source_file.path for source_file in scan.sources if not source_file.can_be_read_again]:
        advice = "save it to a file first"
        raise ValueError(f"'{printable(once[0])}' is a pipe, and the files are read twice: {advice}")
    return scan.schema


@dataclass(frozen=True, slots=True)
class _Layout:
    """Which columns have the files and their names."""

    image: str
    filename: str | None
    name: str  # of the column of the table with the names, where records have none
    are_images: bool
    arrays: RawImages | TiffFiles | None  # of pixels, of which files are made


def _find_layout(schema: pa.Schema, kind: _Kind, *, image: str | None, filename: str | None) -> _Layout:
    """Find the columns with the files and their names, by what the caller stated or by their default names."""
    raw = raw_images_of(schema) if kind.are_images else {}
    image = _image_column(schema, kind, image, raw)
    filename = _filename_column(schema, kind, filename)
    field = schema.field(image)
    arrays = raw.get(image) or (TiffFiles(field) if Column(field).is_tensor else None)
    return _Layout(image, filename, name=kind.name, are_images=kind.are_images, arrays=arrays)


def _image_column(schema: pa.Schema, kind: _Kind, image: str | None, raw: Mapping[str, RawImages]) -> str:
    """The column of the content of files: `image`, which may have arrays, or the only one that can be."""
    of_bytes = [field.name for field in schema if Column(field.type).is_bytes or field.name in raw]
    if image is None:
        if kind.encoded in of_bytes:
            return kind.encoded
        if len(raw) == 1:
            return next(iter(raw))
        if len(of_bytes) == 1:
            return of_bytes[0]
        names = f"columns of bytes: {', '.join(of_bytes) or 'none'}"
        raise FeatureNotFoundError(
            "it is not clear which column has the files",
            expected=kind.encoded,
            got=of_bytes,
            hint=f"pass {kind.keyword}=; {names}",
            hint_cli=f"pass --files COLUMN; {names}",
        )
    if image not in schema.names:
        raise FeatureNotFoundError("no such column", feature=image, hint=f"it has: {', '.join(schema.names)}")
    field = schema.field(image)
    if image not in of_bytes and not Column(field).is_tensor:
        casts = [f"{way} reads text as bytes" for way in Column.declaration(printable(image), "binary")]
        hint, hint_cli = casts if t.is_string(field.type) else (None, None)
        got = Column(field).short_name
        raise SchemaError("files are bytes", feature=image, expected="binary", got=got, hint=hint, hint_cli=hint_cli)
    return image


def _filename_column(schema: pa.Schema, kind: _Kind, filename: str | None) -> str | None:
    """The column of the names of files; None if there is none of the default name, and files are numbered."""
    if filename is None or (filename == kind.name and filename not in schema.names):
        return None
    if filename not in schema.names:
        names = f"it has: {', '.join(schema.names)}"
        raise FeatureNotFoundError(
            "no such column", feature=filename, hint=f"{names}; {_NUMBERED}", hint_cli=f"{names}; {_NUMBERED_CLI}"
        )
    if not t.is_string(type_ := schema.field(filename).type):
        raise SchemaError(
            "names of files are text",
            feature=filename,
            expected="string",
            got=Column(type_).short_name,
            hint=_NUMBERED,
            hint_cli=_NUMBERED_CLI,
        )
    return filename


def raw_images_of(schema: pa.Schema) -> dict[str, RawImages]:
    """The columns of raw pixels, of which each row has one image."""
    found = {field.name: RawImages.from_field(field) for field in schema}
    return {name: raw for name, raw in found.items() if raw is not None and not raw.in_lists}


def image_contents(
    images: pa.Array, arrays: RawImages | TiffFiles | None, reader: Reader, first: int
) -> Iterator[pa.Buffer | None]:
    """The content of each file of a column of images, whose first row is `first`: PNG or TIFF of arrays."""
    if arrays is None:
        yield from (scalar.as_buffer() for scalar in images)
        return
    try:
        yield from arrays.files(images)
    except RowFault as fault:
        raise fault.to_error(*reader.origin(first + fault.row)) from None


class _FolderFiles:
    """Writes the files of batches, and counts those whose names or contents are missing or misleading."""

    def __init__(self, layout: _Layout, folder: NewFolder, reader: Reader, *, table: str | None, threads: int) -> None:
        self._layout, self._folder, self._reader = layout, folder, reader
        self._table = table  # a name that no file may have
        self._threads = threads
        self.rows = 0  # of all batches
        self.missing = 0  # rows without an image
        self.misnamed = 0  # images whose name has the suffix of another format
        self._first_missing = self._first_misnamed = ""  # as a warning names them

    def write(self, batch: pa.RecordBatch) -> list[str | None]:
        """Write the files of a batch; return the names of all rows, None for a row without file and name."""
        names: list[str | None] = []
        write_files(self._folder, self._files(batch, names), self._threads)
        self.rows += len(batch)
        return names

    def warn(self, path: str) -> None:
        """Warn of rows that have no file, or one whose name says something else."""
        if self.missing:
            place = "no file" if self._table is None else f"a row in '{self._table}' and no file"
            text = f"{self.missing:,} of {self.rows:,} records have no image, and get {place}, the first: "
            warn(f"{printable(path)}: {text}{self._first_missing}", UserWarning)
        if self.misnamed:
            text = f"{self.misnamed:,} of {self.rows - self.missing:,} images have the suffix of another format, "
            warn(f"{printable(path)}: {text}the first: {self._first_misnamed}", UserWarning)

    def _files(self, batch: pa.RecordBatch, names: list[str | None]) -> Iterator[NewFile]:
        """The files of a batch; the name of each row is added to `names`."""
        layout = self._layout
        contents = image_contents(batch.column(layout.image), layout.arrays, self._reader, self.rows)
        filenames = batch.column(layout.filename).to_pylist() if layout.filename is not None else [None] * len(batch)
        for row, (content, name) in enumerate(zip(contents, filenames, strict=True), self.rows):
            if content is None:
                self._first_missing = self._first_missing or _record_text(self._reader, row)
                self.missing += 1
                names.append(name)
                continue
            if layout.are_images and not content.size:
                advice = "filters= leaves the record out"
                raise row_error(self._reader, row, "it has no image bytes", feature=layout.image, advice=advice)
            error = partial(
                row_error, self._reader, row, feature=layout.filename, advice=_NUMBERED, advice_cli=_NUMBERED_CLI
            )
            name = self._name(f"{row:08d}{file_suffix(content)}" if name is None else name, content, error)
            names.append(name)
            self._folder.bytes += content.size
            yield name, content, error

    def _name(self, name: str, content: pa.Buffer, error: Callable[[str], EncodeError]) -> str:
        """The name of a file, with a suffix by which readers find images."""
        is_taken = name.partition("/")[0] == self._table
        reason = "the table of the folder has this name" if is_taken else Directory.name_fault(name)
        if reason is not None:
            raise error(f"the name '{printable(name)}' of a file cannot be used: {reason}")
        if self._layout.are_images or isinstance(self._layout.arrays, TiffFiles):
            name = named_as_image(name, content)
            if (suffix := _other_suffix(name, content)) is not None:
                self._first_misnamed = self._first_misnamed or f"'{printable(name)}' is {suffix}"
                self.misnamed += 1
        return name


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
    advice_cli: str | None = None,
    expected: Any = None,
    got: Any = None,
) -> EncodeError:
    """The error about the record of a row."""
    path, record = reader.origin(row)
    return EncodeError(
        reason, path=path, record=record, feature=feature, expected=expected, got=got, hint=advice, hint_cli=advice_cli
    )


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
    of_name = next((suffixes for suffixes in ImageHeader.SUFFIXES.values() if name.lower().endswith(suffixes)), ())
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
    if (wrong := "it has a slash" if "/" in table else Directory.name_fault(table)) is not None:
        raise ValueError(f"table={table!r}: expected the name of a file in the folder; {wrong}")
    format = FORMATS.of_name(table.lower())
    if format in (FORMATS.csv, FORMATS.tsv, FORMATS.jsonl):
        assert format.writer is not None
        return partial(Format.load(format.writer), **format.named)
    raise ValueError(f"table={table!r}: expected a name that ends in .csv, .tsv or .jsonl")
