"""Folders of images, or of any files, as streams of record batches."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.columns import ImageHeader, row_batches
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import check_choice, check_keywords
from tfrecord_io.plugins.vision.folder_files import TABLE_NAME, FolderOptions, LeftOut, shuffle_files
from tfrecord_io.store import Folder
from tfrecord_io.typing import OnFileError, Path, StorageLike

_IMAGE = [
    ("image/encoded", pa.binary()),
    ("image/format", pa.string()),
    ("image/height", pa.int64()),
    ("image/width", pa.int64()),
    ("image/filename", pa.string()),
]
_FILE = [("file/encoded", pa.binary()), ("file/name", pa.string())]
_LABEL = [("label", pa.int64()), ("label/text", pa.string())]


@check_keywords
def open_image_folder(
    path: Path,
    *,
    labels: bool | None = None,
    class_names: Sequence[str] | None = None,
    shuffle_seed: int | None = None,
    on_error: OnFileError = "raise",
    threads: int | None = None,
    storage_options: StorageLike | None = None,
) -> ArrayStream:
    """Read a folder of images, or of folders of images for each class, as a stream of record batches.

    >>> import os
    >>> import tfrecord_io as tfr
    >>> from PIL import Image
    >>> for name in ["photos/cat/1.png", "photos/dog/1.png"]:
    ...     os.makedirs(os.path.dirname(name))
    ...     Image.new("RGB", (4, 3)).save(name)
    >>> tfr.write_tfrecord(
    ...     tfr.formats.open_image_folder("photos"), "photos.tfrecord"
    ... ).records
    2
    >>> table = tfr.read_table("photos.tfrecord", columns=["!image/encoded"])
    >>> table.to_pylist()[1]  # doctest: +NORMALIZE_WHITESPACE
    {'image/format': 'png', 'image/height': 3, 'image/width': 4, 'image/filename': 'dog/1.png',
     'label': 1, 'label/text': 'dog'}

    Parameters
    ----------
    path : str or PathLike
        A folder, local or in a bucket, with JPEG, PNG, GIF, BMP, WebP or TIFF files at any depth, found by their
        suffix, or without one by their content. Files of other kinds are left out with a warning, and hidden ones
        without: ``.x``, and what systems and tools leave, such as ``__MACOSX``, ``_SUCCESS`` and ``Thumbs.db``.
    labels : bool, optional
        Whether the folders directly below `path` are classes. By default they are if all images are in folders.
    class_names : sequence of str, optional
        The classes in the order of their labels; by default the sorted names of the folders with images. Pass the same
        names for training and test images if a class may be missing in one of them.
    shuffle_seed : int, optional
        Read the files in a random order, which depends on their names and the seed alone. By default in natural order:
        class by class, ``2.png`` before ``10.png``.
    on_error : {"raise", "skip"}
        Whether a file that is not an image ends the stream, or is left out, with a warning.
    threads : int, optional
        Number of threads that read files; by default the number of CPU cores, and 16 in a bucket.
    storage_options
        As in `tfrecord_io.read_table`.

    Returns
    -------
    ArrayStream
        For `tfrecord_io.write_tfrecord` or any consumer of Arrow streams, with the columns ``image/encoded`` (the bytes
        of the file), ``image/format`` ("jpeg", "png", …), ``image/height`` and ``image/width`` in pixels, as stored,
        and ``image/filename`` (relative to `path`); with classes also ``label`` (int64, from 0) and ``label/text``.
        Memory holds a few dozen megabytes of files. Pixels are not decoded: only the header of an image is checked.

    Raises
    ------
    DecodeError
        A file is not an image; it is named.
    ValueError
        It is not clear whether folders are classes, or a folder is not among `class_names`.
    MissingDependencyError
        The package pillow is not installed.
    FileNotFoundError, NotADirectoryError
    """
    ImageHeader.pillow("reading the sizes of images")
    options = FolderOptions(
        shuffle_seed=shuffle_seed, on_error=on_error, threads=threads, storage_options=storage_options
    )
    return _Reading(labels, class_names, options, Folder.IMAGE_SUFFIXES).open(path)


@check_keywords
def open_file_folder(
    path: Path,
    *,
    labels: bool | None = None,
    class_names: Sequence[str] | None = None,
    shuffle_seed: int | None = None,
    threads: int | None = None,
    storage_options: StorageLike | None = None,
) -> ArrayStream:
    """Read a folder of files of any kind, such as audio, as a stream of record batches with a row for each file.

    >>> import os
    >>> import tfrecord_io as tfr
    >>> os.mkdir("sounds")
    >>> _ = open("sounds/1.wav", "wb").write(b"RIFF")
    >>> tfr.formats.open_file_folder("sounds").read_all().to_pylist()
    [{'file/encoded': b'RIFF', 'file/name': '1.wav'}]

    Parameters
    ----------
    path : str or PathLike
        A folder, local or in a bucket. All files at any depth are read, except hidden ones, as in
        `open_image_folder`, and ``metadata.csv``, with a warning, if all others are in folders.
    labels, class_names, shuffle_seed, threads, storage_options
        As in `open_image_folder`.

    Returns
    -------
    ArrayStream
        With the columns ``file/encoded`` (the bytes of the file) and ``file/name`` (relative to `path`); with classes
        also ``label`` and ``label/text``, as from `open_image_folder`.

    Raises
    ------
    EncodeError
        A file is larger than a record can be (2 GiB); it is named.
    ValueError, FileNotFoundError, NotADirectoryError
        As in `open_image_folder`.
    """
    options = FolderOptions(shuffle_seed=shuffle_seed, threads=threads, storage_options=storage_options)
    return _Reading(labels, class_names, options, None).open(path)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Options to read a folder; `suffixes` None: all files, else images."""

    labels: bool | None
    class_names: Sequence[str] | None
    options: FolderOptions
    suffixes: tuple[str, ...] | None

    def open(self, path: Path) -> ArrayStream:
        check_choice("labels", self.labels, (None, False, True))
        name, storage = os.fspath(path), self.options.storage
        folder = Folder.list_images(name, storage) if self.suffixes else Folder.list_files(name, storage)
        if not folder.files:
            what = "files" if self.suffixes is None else f"{', '.join(Folder.IMAGE_SUFFIXES)} files"
            raise FileNotFoundError(errno.ENOENT, f"the folder has no {what}", folder.path)
        outside = [file for file in folder.files if file.top is None]
        if self.labels is None and len(folder.files) > 1 and [file.name for file in outside] == [TABLE_NAME]:
            folder.files.remove(outside[0])
            folder.other_files.append(outside[0])
        names = folder.classes(self.labels, self.class_names)
        folder.warn_of_others("not an image" if self.suffixes else "the table of the files")
        schema = pa.schema([*(_FILE if self.suffixes is None else _IMAGE), *(_LABEL if names is not None else ())])
        batches = self._batches(folder, schema, names)
        rows = None if self.options.damage.goes_on else len(folder.files)
        return ArrayStream(schema, batches, rows, batches.close, num_files=len(folder.files))

    def _batches(self, folder: Folder, schema: pa.Schema, names: list[str] | None) -> Generator[pa.RecordBatch]:
        numbers = {name: number for number, name in enumerate(names or ())}
        seed = self.options.shuffle_seed
        files = folder.files if seed is None else shuffle_files(folder.files, seed)
        left_out = LeftOut("files", len(files))
        entries = ((file, folder.fs, file.entry) for file in files)
        contents = Folder.read_files(entries, self.options.threads, [folder.fs])

        def rows() -> Iterator[tuple[tuple[Any, ...], int]]:
            for file, content in contents:
                assert content is not None
                try:
                    row = self._row(file.name, folder.fs.display_path(file.entry.name), content)
                except DecodeError as error:
                    left_out.add_or_raise(error, self.options.on_error)
                    continue
                if names is not None:
                    row += (None, None) if file.top is None else (numbers[file.top], file.top)
                yield row, len(content)

        with closing(contents):
            yield from row_batches(rows(), schema)
        left_out.warn(folder.path)

    def _row(self, name: str, path: str, content: bytes) -> tuple[Any, ...]:
        """The row of a file with this name and path."""
        if self.suffixes is None:
            return content, name
        header = ImageHeader.read(content, path)
        return content, header.format, header.height, header.width, name
