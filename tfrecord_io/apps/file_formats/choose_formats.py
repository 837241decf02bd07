"""Determine the formats of the source and the target of a conversion: by name, by suffix, or by files of a folder."""

from __future__ import annotations

import errno
import glob
import re
from collections.abc import Iterable, Sequence

from tfrecord_io.base import StorageOptions, TransferOptions
from tfrecord_io.columns import TfdsInfo
from tfrecord_io.kit import FORMATS, Format, check_choice, for_cli, printable, warn
from tfrecord_io.store import Entry, FileName, FileSystem, Folder, Listing, Location, Output

_TFRECORD = FORMATS.tfrecord

_SHARDS = re.compile(r"@(\*|[0-9]+)(?=\.|$)|\{[0-9]+\.\.[0-9]+\}")  # as in train@8.parquet, train-{00..07}.tar
_MOST_FILES = 100_000


def formats_of(
    paths: Sequence[str],
    target: str,
    places: TransferOptions,
    source_format: str | None,
    target_format: str | None,
    files: str | None,
    listings: dict[str, list[Entry]],
) -> tuple[Format, Format]:
    """The formats of the source and the target of a conversion, of which one is TFRecord.

    `listings` gets what was listed of folders, by path. ValueError, TypeError: they cannot be converted, or contradict
    each other.
    """
    if source_format is not None:
        reads = _format_of_keyword("source_format", source_format, *paths)
    else:
        reads = _common_format(paths, places.source, files, listings)
        holds_records = reads.holds_records
        if holds_records is not None and Format.load(holds_records)(paths[0], places.source):
            reads = _TFRECORD  # files of records in a file of another format
    writes: Format | None
    if target_format is not None:
        writes = _format_of_keyword("target_format", target_format, target)
    else:
        writes = format_of_target(target)
    if files is not None:
        if not reads.records:
            check_choice("files", files, (None, *FORMATS.FOLDERS))
        keywords = [("source_format", source_format, reads), ("target_format", target_format, writes)]
        folder = _folder_of_files(files, keywords)
        if reads.records:
            if writes not in (None, folder):
                reason = "keywords and suffixes of other targets do not apply"
                raise TypeError(f"files= writes TFRecord to a folder: {reason}")
            return reads, folder
        if reads is not folder:
            text = f"is for folders, and '{printable(paths[0])}' is {reads.title}"
            raise for_cli(TypeError(f"files= {text}"), f"--files {text}")
    if writes is None:
        other_format = Output.OtherFormat.of_path(target)
        if other_format is not None and (other_format.is_known or not is_directory(target, places.target)):
            raise _unwritable(target, other_format.suffix)
        writes = _TFRECORD
    if writes is not _TFRECORD:
        _refuse_several_files(target, writes)
        if not reads.records:
            raise ValueError(f"{reads.title} to {writes.title}: source or target must be TFRecord")
    return reads, writes


def _folder_of_files(files: str, keywords: Iterable[tuple[str, str | None, Format | None]]) -> Format:
    """The format of the folder that ``files=`` reads or writes; TypeError if a keyword names another folder.

    `keywords` have names, values (None if not passed) and formats.
    """
    folder: Format = FORMATS[FORMATS.FOLDERS.get(files, FORMATS.FOLDERS["all"])]  # or the name of a column
    for keyword, key, format in keywords:
        is_folder = format is not None and format.name in FORMATS.FOLDERS.values()
        if key is not None and is_folder and format is not folder:
            raise TypeError(f"files={files!r} and {keyword}={key!r} contradict each other")
    return folder


def _refuse_several_files(target: str, writes: Format) -> None:
    """Raise ValueError if the name of a target asks for several files, and its format is one file or needs a number."""
    match = _SHARDS.search(target.rstrip("/").rpartition("/")[2])
    if match is None:
        return
    if writes.writer is None or target.endswith("/") or match[1] == "*":
        one = "writes one file or folder" if writes.writer is None else "needs their number"
        reason = f"'{match[0]}' asks for several files, and a conversion to {writes.title} {one}"
        raise ValueError(f"'{printable(target)}': {reason}; leave it out, or convert parts of the source one by one")


def files_of_shards(path: str) -> list[str] | None:
    """The files that a path asks for in the name of its last part; None if it is the name of one file.

    >>> files_of_shards("out/train@2.tar.gz")
    ['out/train-00000-of-00002.tar.gz', 'out/train-00001-of-00002.tar.gz']
    >>> files_of_shards("w-{08..10}.tar"), files_of_shards("me@host.csv")
    (['w-08.tar', 'w-09.tar', 'w-10.tar'], None)
    """
    folder, slash, name = path.rpartition("/")
    match = _SHARDS.search(name)
    if match is None or match[1] == "*":
        return None
    before, after = f"{folder}{slash}{name[: match.start()]}", name[match.end() :]
    if _SHARDS.search(after):
        raise ValueError(f"'{printable(path)}': only one part of a name can state the numbers of files")
    if match[1] is not None:
        first, last = 0, int(match[1]) - 1
        files = (FileName.of_shard(before, number, last + 1) + after for number in range(last + 1))
    else:
        texts = match[0].strip("{}").split("..")
        is_padded = any(len(text) > 1 and text[0] == "0" for text in texts)  # as a shell does, and reading calls
        (first, last), width = map(int, texts), max(map(len, texts)) if is_padded else 0
        files = (f"{before}{number:0{width}d}{after}" for number in range(first, last + 1))
    if not 0 < last - first + 1 <= _MOST_FILES:
        raise ValueError(f"'{printable(path)}': expected 1 to {_MOST_FILES:,} files, in ascending order")
    return list(files)


def single_or_all(paths: Sequence[str]) -> str | list[str]:
    """One path alone: only then can it be a directory or a shard spec."""
    return paths[0] if len(paths) == 1 else list(paths)


def single(paths: Sequence[str]) -> str:
    if len(paths) > 1:
        raise ValueError(f"expected one file of this format, got {len(paths)}; convert them one by one")
    return paths[0]


def _format_of_keyword(keyword: str, key: str, *paths: str) -> Format:
    """The format that ``source_format=`` or ``target_format=`` names, for these paths."""
    format, is_target = FORMATS.get(str(key)), keyword == "target_format"
    if format is None or not (format.is_target if is_target else format.is_source):
        names = FORMATS.choices(written=is_target)
        try:
            check_choice(keyword, key, (None, *names))
        except ValueError as error:
            option = "--to" if is_target else "--from"
            raise for_cli(error, f"{option} {key}: expected one of {', '.join(map(repr, names))}") from None
    assert format is not None
    for path in paths:
        _check_compression(path, format)
    return format


def format_of_target(path: str) -> Format | None:
    """The format of a target by its name; None for TFRecord."""
    format = _format_of_name(path)
    if format is None and path.endswith("/"):
        of_folder = FORMATS.of_name(path.lower().rstrip("/"))
        format = None if of_folder is None or of_folder.writer is None else of_folder
    if format is not None and not format.is_target:
        raise _unwritable(path, format.title)
    return format


def is_directory(path: str, storage: StorageOptions) -> bool:
    if path.endswith("/"):
        return True
    fs, name = Location.of(path, storage)
    entry = fs.entry(name)
    return entry is not None and entry.directory


def _unwritable(path: str, what: str) -> ValueError:
    similar = Output.OtherFormat(what, is_known=False).similar
    if similar == what:  # as in x.csv@4
        what, similar = f"shards of {what}", None
    question = "" if similar is None else f"did you mean {similar}? "
    suffixes = ", ".join(suffix for row in FORMATS if row.is_target for suffix in row.suffixes)
    advice = f"{question}use one of {suffixes}, or .tfrecord or no suffix for TFRecord"
    text = f"'{printable(path)}': {what} files cannot be written; {advice};"
    error = ValueError(f"{text} target_format= states the format of other names")
    return for_cli(error, f"{text} --to states the format of other names")


def _common_format(
    paths: Sequence[str], storage: StorageOptions, files: str | None, listings: dict[str, list[Entry]]
) -> Format:
    """The format of all sources. With `files`, a folder without TFRecord files is one of files."""
    if not paths:
        raise ValueError("no path was given")
    formats = [format_of_source(path) or _format_of_files(path, storage, files, listings) for path in paths]
    for path, format in zip(paths, formats, strict=True):
        if format is not formats[0]:
            reason = f"'{printable(paths[0])}' is {formats[0].title} and '{printable(path)}' is {format.title}"
            raise ValueError(f"{reason}: convert them one by one")
    return formats[0]


def _format_of_name(path: str) -> Format | None:
    plain = FileName.without_compression(path)
    format = FORMATS.of_name(plain) or FORMATS.of_name(plain.rstrip("/"))
    if format is not None and plain.endswith("/") and not format.folders:
        return None
    if format is not None:
        _check_compression(path, format)
    return format


def format_of_source(path: str) -> Format | None:
    """The format of a source by its name; of files of records, a number of a shard may follow their suffix."""
    format = _format_of_name(path)
    if format is None:
        directory, slash, base = FileName.without_query(path).rpartition("/")
        shard = FileName.parse(base).shard
        if shard is not None and not shard.suffix:
            of_shards = _format_of_name(directory + slash + shard.base)
            return of_shards if of_shards is not None and of_shards.copied else None
    return format


def _check_compression(path: str, format: Format) -> None:
    if format.compressed or not format.suffixes:
        return
    if FileName.without_compression(path) != FileName.without_query(path).lower():
        reason = f"{format.title} files are not compressed as a whole; they compress their content"
        raise ValueError(f"'{printable(path)}': {reason}")


def _format_of_files(path: str, storage: StorageOptions, files: str | None, listings: dict[str, list[Entry]]) -> Format:
    """The format of the files that a glob matches, or of a folder without TFRecord files, from their names."""
    fs, name = Location.of(path, storage)
    entry = fs.entry(name)
    if entry is None:
        matches = Listing.of_pattern(fs, name).without_descriptions().entries
        matched = {format_of_source(match.basename) for match in matches}
        return (matched.pop() if len(matched) == 1 else None) or _TFRECORD
    if not entry.directory:
        return _TFRECORD
    folder = _SourceFolder(path, storage, Listing.of_directory(fs, entry.name))
    listings[path] = folder.everything.entries
    if (of_layout := folder.format_of_layout(fs, entry.name, files)) is not None:
        return of_layout
    if frames := folder.frames_of_lerobot(fs, entry.name):
        listings[path] = frames
        return _format_of_names(path, [frames[0].basename]) or _TFRECORD
    return folder.format_of_content()


class _SourceFolder:
    """A folder whose files are to be converted, and what their names say."""

    def __init__(self, path: str, storage: StorageOptions, everything: Listing) -> None:
        self.path, self.storage, self.everything = path, storage, everything
        self.listing = everything.without_descriptions()
        self.names = sorted({child.basename for child in self.listing.entries})
        self.has_named_records = any(FileName.parse(name).is_records for name in self.names)

    def format_of_layout(self, fs: FileSystem, directory: str, files: str | None) -> Format | None:
        """The format that descriptions, `files` or the names of certain files state; None if they state none."""
        if not self.has_named_records:
            has_descriptions = len(self.listing.entries) < len(self.everything.entries)
            if has_descriptions and (of_tfds := TfdsInfo.format_of(fs, directory)) is not None:
                return of_tfds
            if files in FORMATS.FOLDERS:
                return FORMATS[FORMATS.FOLDERS[files]]
        present = {*self.names}
        for row in FORMATS:
            if row.folders and all(present & {*alternatives.split("|")} for alternatives in row.folders):
                return row
        return None

    def frames_of_lerobot(self, fs: FileSystem, directory: str) -> list[Entry]:
        """The files of frames of a dataset of LeRobot, version 2 or 3; empty if the folder is none. Warns of videos."""
        root = directory.rstrip("/")
        if not {"meta", "data"} <= {*self.names} or fs.entry(f"{root}/meta/info.json", is_file=True) is None:
            return []
        frames = fs.glob(f"{glob.escape(root)}/data/**/*.parquet")
        if frames and "videos" in self.names:
            text = f"{printable(self.path)}: the frames of a LeRobot dataset are converted, left out: 'videos'"
            warn(f"{text}; source_format='lerobot' reads them", UserWarning, f"{text}; --from lerobot reads them")
        return frames

    def format_of_content(self) -> Format:
        """The format of the files: images, records or tables. FileNotFoundError if there are none of them."""
        formats = [_format_of_name(name) for name in self.names]
        may_be_images = not self.has_named_records and not any(named is not None and named.typed for named in formats)
        if may_be_images and Folder.has_image(self.path, self.storage, by_content=False):
            return FORMATS[FORMATS.FOLDERS["images"]]  # before the content of thousands of files is looked at
        if self.listing.has_records():
            return _TFRECORD
        is_data = (not name.startswith("metadata.") for name in self.names)
        has_tables = any(named and data for named, data in zip(formats, is_data, strict=True))
        if may_be_images and not has_tables and Folder.has_image(self.path, self.storage, by_content=True):
            return FORMATS[FORMATS.FOLDERS["images"]]
        format = _format_of_names(self.path, self.names)
        if format is None and not self.has_named_records:
            raise self._no_files()
        return format or _TFRECORD

    def _no_files(self) -> Exception:
        reason = f"this folder has no TFRecord files, no images, and no {', '.join(FORMATS.suffixes())} files"
        advice = self.listing.clause_about_folders(_is_of_a_format)
        embeds = "embeds files of any kind"
        hint = advice or f'files="all" {embeds}'
        error = FileNotFoundError(errno.ENOENT, f"{reason}; {hint}", self.path)
        return for_cli(error, f"{reason}; {advice or f'--files all {embeds}'}")


def _is_of_a_format(name: str) -> bool:
    return FileName.parse(name).is_records or _format_of_name(name) is not None


def _format_of_names(path: str, names: Sequence[str]) -> Format | None:
    """The format of the files of a folder that are not hidden; None if none is known.

    Files of records may have sidecars, which need not be of a format: ``features.json``.

    Raises
    ------
    ValueError
        They are of several, of which one would be read without the others, such as ``metadata.json`` without the data.
    """
    formats: dict[str, tuple[str, Format]] = {}
    named_formats = [
        (name, format)
        for name in names
        if not FileName.parse(name).is_hidden and (format := format_of_source(name)) is not None
    ]
    has_records = any(format.copied for _, format in named_formats)
    for name, format in named_formats:
        if not (has_records and FileName.parse(name).is_sidecar):
            formats.setdefault(str(format.plan or format.name), (name, format))
    if len(formats) > 1:
        (name, format), (other_name, other_format), *_ = formats.values()
        reason = f"'{printable(name)}' is {format.title} and '{printable(other_name)}' is {other_format.title}"
        text = f"'{printable(path)}' has files of several formats: {reason}"
        advice = "names the one to convert, or pass a glob that matches its files"
        error = ValueError(f'{text}; source_format= {advice}, or files="all" embeds files of any kind')
        raise for_cli(error, f"{text}; --from {advice}, or --files all embeds files of any kind")
    return next((format for _, format in formats.values()), None)
