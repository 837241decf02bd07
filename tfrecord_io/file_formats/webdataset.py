"""WebDataset archives: tar files in which the members of one sample follow each other and share a name."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from typing import Any, Self

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.compression import CODECS
from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.errors import DecodeError, EncodeError, printable
from tfrecord_io.file_formats.folders.read_files import row_batches
from tfrecord_io.file_formats.tables.source_options import SourceOptions
from tfrecord_io.file_formats.tables.table_files import open_decompressed_file, selected, write_table_file
from tfrecord_io.file_formats.tables.table_source import TableFiles, TableSource
from tfrecord_io.file_formats.tar_members import Member, tar_members
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.schema.types import is_bytes, is_text
from tfrecord_io.storage.paths.file_names import refused
from tfrecord_io.storage.read.source import Source
from tfrecord_io.write.writer import WriteReport

TAR = (".tar",)
KEY = "__key__"

_INTEGERS = {"cls", "cls2", "index", "inx", "id"}  # as WebDataset decodes them
_TEXTS = {"txt", "text", "transcript", "json"}
_SAMPLE_BYTES, _SAMPLE_ROWS = 16 << 20, 1000  # from which the columns are found
_VALUE_BYTES = 64  # of an object, besides its content
_ADVICE = "names of columns become suffixes, such as jpg and cls; exclude others with columns="

Sample = dict[str, Any]


@contextmanager
def open_webdataset(paths: list[str], options: SourceOptions) -> Iterator[pa.RecordBatchReader]:
    """The samples of archives, one after the other: a row each, with the column ``__key__`` and one for each suffix.

    Integers: ``cls``, ``index``, ``id``; text: ``txt``, ``text``, ``transcript``, ``json``; all others are bytes.
    """
    files = _files(paths, options)
    if files.folders.fields:  # which differ from file to file
        with _source(files).open() as rows:
            yield rows
        return
    with options.meter(files.sources) as meter, closing(_all_samples(files.sources, options, meter)) as found:
        first, schema = _first(found, options)
        files.selected(schema.names)
        yield selected(schema, _batches(first, found, schema), options.projection(schema.names))


def webdataset_source(paths: list[str], options: SourceOptions) -> TableSource:
    """The same, for archives that are read each by itself."""
    return _source(_files(paths, options))


def _source(files: TableFiles) -> TableSource:
    with closing(_all_samples(files.sources, files.options, None)) as found:
        _, schema = _first(found, files.options)
    files.selected(schema.names)

    def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
        with closing(_all_samples([source], files.options, meter)) as samples:
            yield from _batches([], samples, schema)

    return TableSource(files, schema, batches)


def _files(paths: list[str], options: SourceOptions) -> TableFiles:
    suffixes = tuple(suffix + packed for suffix in TAR for packed in ("", *CODECS.suffixes()))
    return TableFiles.of(paths, suffixes, options, typed=True)


def _all_samples(
    sources: Sequence[Source], options: SourceOptions, meter: ProgressMeter | None
) -> Generator[tuple[str, Sample]]:
    """The samples of archives, each with the path of its archive."""
    for source in sources:
        with closing(open_decompressed_file(source, meter)) as file:
            for sample in _samples(file, source.path, options):
                yield source.path, sample


def _first(found: Iterator[tuple[str, Sample]], options: SourceOptions) -> tuple[list[tuple[str, Sample]], pa.Schema]:
    """The first samples, and the schema of the columns that these have."""
    first, size, names = [], 0, dict[str, None]()
    for path, sample in found:
        first.append((path, sample))
        names |= dict.fromkeys(sample)
        options.check_count(len(names), path)
        size += _size(sample)
        if size >= _SAMPLE_BYTES or len(first) == _SAMPLE_ROWS:
            break
    return first, pa.schema([(name, _type(name)) for name in names])


def _batches(
    first: list[tuple[str, Sample]], rest: Iterator[tuple[str, Sample]], schema: pa.Schema
) -> Generator[pa.RecordBatch]:
    known = set(schema.names)

    def rows() -> Iterator[tuple[list[Any], int]]:
        for path, sample in chain(first, rest):
            if new := sample.keys() - known:
                name = min(new)
                reason = f"the sample '{printable(sample[KEY])}' has a member that the first samples do not have"
                advice = "exclude it, or put a sample with all members first"
                raise DecodeError(reason, path=path, feature=name, expected=sorted(known), got=name, advice=advice)
            yield [sample.get(name) for name in schema.names], _size(sample) + 8 * len(schema)

    yield from row_batches(rows(), schema)


def _samples(file: Any, path: str, options: SourceOptions) -> Generator[Sample]:
    """The samples of one archive."""
    sample: Sample = {}
    size = 0
    for member in tar_members(file, path):
        name = member.info.name
        folder, _, base = name.rpartition("/")
        stem, dot, suffix = base.partition(".")
        if member.info.isdir() or not stem or not dot or base.startswith("_"):
            continue  # a directory, or a member without a suffix or with a hidden name, as WebDataset does
        suffix = suffix.lower()
        _check_member(member.info, suffix, path)
        key = f"{folder}/{stem}" if folder else stem
        if sample and sample[KEY] != key:
            yield sample
            sample, size = {}, 0
        if suffix in sample:
            raise _damaged("two members have this name", path, name)
        sample.setdefault(KEY, _text(key.encode("utf-8", "surrogateescape"), path, name))
        size += member.info.size
        if size > MAX_RECORD_BYTES:
            raise _damaged(f"with it, its sample has {size} bytes, more than a record can have", path, name)
        sample[suffix] = _value(member, suffix, path)
        options.check_count(len(sample), path)
    if sample:
        yield sample


def _check_member(member: tarfile.TarInfo, suffix: str, path: str) -> None:
    """Refuse a member that has no content, or whose suffix is not the name of a column of its own."""
    if not member.isreg():
        kind = "hard link" if member.islnk() else "symbolic link" if member.issym() else "device or pipe"
        target = f" to '{printable(member.linkname)}'" if member.linkname else ""
        advice = "write the archive with the content of links (options dereference and hard-dereference of GNU tar)"
        raise _damaged(f"a {kind}{target}, not a file", path, member.name, advice)
    if not suffix:
        raise _damaged("it ends with a dot, so its column has no name", path, member.name, "rename the member")
    if suffix == KEY:
        reason = f"its suffix is {KEY}, the column with the names of the samples"
        raise _damaged(reason, path, member.name, "rename the member")


def _value(member: Member, suffix: str, path: str) -> Any:
    name, size = member.info.name, member.info.size
    content = member.read()
    if len(content) < size:
        raise _damaged(f"the archive ends after {len(content)} of its {size} bytes", path, name)
    if suffix in _INTEGERS:
        text = content.strip()
        if not text.removeprefix(b"-").isdigit() or len(text) > len(str(-(2**63))) or not -(2**63) <= int(text) < 2**63:
            raise _damaged(f"a member .{suffix} is an integer, this is not", path, name)
        return int(text)
    return _text(content, path, name) if suffix in _TEXTS else content


def _text(content: bytes, path: str, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _damaged("text is UTF-8, this is not", path, name) from None


def _damaged(reason: str, path: str, name: str, advice: str | None = None) -> DecodeError:
    return DecodeError(f"member '{printable(name)}': {reason}", path=path, advice=advice)


def _type(name: str) -> pa.DataType:
    if name in _INTEGERS:
        return pa.int64()
    return pa.string() if name in _TEXTS or name == KEY else pa.binary()


def _size(sample: Sample) -> int:
    return sum(_VALUE_BYTES + len(value) if isinstance(value, bytes | str) else 8 for value in sample.values())


def write_webdataset(source: Any, target: Any, **keywords: Any) -> WriteReport:
    """Write TFRecord files as one archive, with a member for each value.

    The column ``__key__`` has the names of the samples; without it they are numbered. Keywords: those of `to_npy`,
    except ``column``.
    """
    return write_table_file(source, target, _TarWriter, keywords, compressed=True, advice=_ADVICE)


class _TarWriter:
    """Writes batches as samples."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        for field in schema:
            if _encoder(field.type) is None or (field.name != KEY and not _is_suffix(field.name)):
                raise pa.ArrowTypeError("no member of an archive")
        self._sink = sink
        self._rows, self._last = 0, ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
            self._sink.write(bytes(2 * tarfile.BLOCKSIZE))  # the end of an archive

    def write_batch(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        keys = batch.column(KEY).to_pylist() if KEY in names else [None] * len(batch)
        columns = [(name, _encoder(batch.schema.field(name).type), batch.column(name)) for name in names if name != KEY]
        for row, key in enumerate(keys):
            key = f"{self._rows:08d}" if key is None else _key_text(key, self._rows)
            reason = refused(key) or ("its last part has a dot" if "." in key.rpartition("/")[2] else None)
            if reason is None and key == self._last:
                reason = "it is that of the sample before it"
            if reason is not None:
                reason = f"the key '{printable(key)}' cannot be used: {reason}"
                raise EncodeError(reason, record=self._rows, feature=KEY)
            present = [(name, encode, array[row]) for name, encode, array in columns if array[row].is_valid]
            values = [(name, encode(value.as_py())) for name, encode, value in present if encode]
            if not values:
                raise EncodeError("a sample without values has no member in an archive", record=self._rows)
            for name, content in values:
                member = tarfile.TarInfo(f"{key}.{name}")
                member.size, member.mode = len(content), 0o644
                self._sink.write(member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
                self._sink.write(content + bytes(-len(content) % tarfile.BLOCKSIZE))
            self._rows, self._last = self._rows + 1, key


def _key_text(key: bytes | str | int, row: int) -> str:
    try:
        return key.decode() if isinstance(key, bytes) else str(key)
    except UnicodeDecodeError:
        reason = f"the key {printable(repr(key), 100)} is not text in UTF-8"
        raise EncodeError(reason, record=row, feature=KEY) from None


def _encoder(type_: pa.DataType) -> Callable[[Any], bytes] | None:
    """The function that makes a member of a value; None if the type is not one of members."""
    if is_bytes(type_):
        return bytes
    if is_text(type_):
        return str.encode
    return (lambda value: str(value).encode()) if t.is_integer(type_) else None


def _is_suffix(name: str) -> bool:
    return name == name.lower() and "/" not in name and refused(f"x.{name}") is None and not name.startswith(".")
