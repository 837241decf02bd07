"""WebDataset archives: tar files with the members of a sample in a row, under a shared name.

An archive is read once, in order, whatever made it: memory is bounded by the limits below. Python's tarfile reads
headers of any stated size, follows extension headers by recursion, and takes a damaged header for the end.
Format: POSIX ustar and pax, and GNU's long names (https://www.gnu.org/software/tar/manual/html_node/Standard.html).
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.apps.file_formats.tables.table_files import (
    SourceOptions,
    TableFiles,
    TableSource,
    open_decompressed_file,
)
from tfrecord_io.base import ProgressMeter, cached_property
from tfrecord_io.bytes import MAX_RECORD_BYTES
from tfrecord_io.columns import Column, row_batches
from tfrecord_io.errors import DecodeError, EncodeError, printable, warn
from tfrecord_io.plugins.vision.vision_rows import TAR
from tfrecord_io.store import FileName, Kind, Source, name_fault

KEY = "__key__"
_META = re.compile(r"__[^/]*__($|/)")  # as in webdataset.tariterators

_INTEGERS = {"cls", "cls2", "index", "inx", "id"}  # as WebDataset decodes them
_TEXTS = {"txt", "text", "transcript", "json"}
_SAMPLE_BYTES, _SAMPLE_ROWS = 16 << 20, 1000  # from which the columns are found
_VALUE_BYTES = 64  # of an object, besides its content

Sample = dict[str, Any]


class Archives:
    """Archives: the samples of all in one pass, or of each by itself under one schema; see `TableSource`.

    A row for each, with the column ``__key__`` and one for each suffix. Integers: ``cls``, ``index``, ``id``; text:
    ``txt``, ``text``, ``transcript``, ``json``; all others are bytes.
    """

    def __init__(self, paths: list[str], options: SourceOptions) -> None:
        self.files = TableFiles.resolve(paths, (TAR,), options)
        self.sources = self.files.sources

    @contextmanager
    def open(self) -> Iterator[pa.RecordBatchReader]:
        files = self.files
        if files.folders.fields:  # values of folders differ from file to file
            with self._table.open() as rows:
                yield rows
            return
        with (
            files.options.meter(files.sources) as meter,
            closing(_all_samples(files.sources, files.options, meter)) as samples,
        ):
            first, schema = _first(samples, files.options)
            files.select_names(schema.names)
            yield files.rows_to_convert(schema, _batches(first, samples, schema))

    @property
    def schema(self) -> pa.Schema:
        return self._table.schema

    def rows(self, sources: Sequence[Source], meter: ProgressMeter) -> Any:
        return self._table.rows(sources, meter)

    @cached_property
    def _table(self) -> TableSource:
        with closing(_all_samples(self.sources, self.files.options, None)) as all_samples:
            _, schema = _first(all_samples, self.files.options)
        self.files.select_names(schema.names)

        def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
            with closing(_all_samples([source], self.files.options, meter)) as samples:
                yield from _batches([], samples, schema)

        return TableSource(self.files, schema, batches)


def _all_samples(
    sources: Sequence[Source], options: SourceOptions, meter: ProgressMeter | None
) -> Generator[tuple[str, Sample]]:
    """The samples of archives, each with the path of its archive."""
    for source in sources:
        with closing(open_decompressed_file(source, meter)) as file:
            for sample in _samples(file, source.path, options):
                yield source.path, sample


def _first(samples: Iterator[tuple[str, Sample]], options: SourceOptions) -> tuple[list[tuple[str, Sample]], pa.Schema]:
    """The first samples, and the schema of the columns that these have."""
    first, size, names = [], 0, dict[str, None]()
    for path, sample in samples:
        first.append((path, sample))
        names |= dict.fromkeys(sample)
        options.check_count(len(names), path)
        size += _size(sample)
        if size >= _SAMPLE_BYTES or len(first) == _SAMPLE_ROWS:
            break
    if (
        first
        and (inside := next((name for name in names if FileName.parse(f"x.{name}").kind is Kind.RECORDS), None))
        is not None
    ):
        text = f"'{printable(first[0][1][KEY])}.{printable(inside)}' is a TFRecord file, and becomes one value"
        warn(f"{printable(first[0][0])}: {text}: without source_format=, its records are read", UserWarning)
    return first, pa.schema([(name, _type(name)) for name in names])


def _batches(
    first: list[tuple[str, Sample]], samples: Iterator[tuple[str, Sample]], schema: pa.Schema
) -> Generator[pa.RecordBatch]:
    schema_names = set(schema.names)

    def rows() -> Iterator[tuple[list[Any], int]]:
        for path, sample in chain(first, samples):
            if new := sample.keys() - schema_names:
                name = min(new)
                reason = f"the sample '{printable(sample[KEY])}' has a member that the first samples do not have"
                advice = "exclude it, or put a sample with all members first"
                raise DecodeError(reason, path=path, feature=name, expected=sorted(schema_names), got=name, hint=advice)
            yield [sample.get(name) for name in schema.names], _size(sample) + 8 * len(schema)

    yield from row_batches(rows(), schema)


def _samples(file: Any, path: str, options: SourceOptions) -> Generator[Sample]:
    """The samples of one archive."""
    sample: Sample = {}
    size = 0
    archive = TarArchive(file, path)
    for member in archive:
        name = member.name
        folder, slash, base = name.rpartition("/")
        stem, dot, suffix = base.partition(".")
        if member.isdir() or not stem or not dot or _META.match(name):
            continue  # a directory, or a member that WebDataset leaves out: without a suffix or a stem, or metadata
        suffix = suffix.lower()
        _check_member(member, suffix, path)
        key = f"{folder}{slash}{stem}"
        if sample and sample[KEY] != key:
            yield sample
            sample, size = {}, 0
        if suffix in sample:
            raise _damage_error("two members have this name", path, name)
        sample.setdefault(KEY, _text(key.encode("utf-8", "surrogateescape"), path, name))
        size += member.size
        if size > MAX_RECORD_BYTES:
            raise _damage_error(f"with it, its sample has {size} bytes, more than a record can have", path, name)
        sample[suffix] = _value(archive.read(), member, suffix, path)
        options.check_count(len(sample), path)
    if sample:
        yield sample


def _check_member(member: tarfile.TarInfo, suffix: str, path: str) -> None:
    """Refuse a member that has no content, or whose suffix is not the name of a column of its own."""
    if not member.isreg():
        kind = "hard link" if member.islnk() else "symbolic link" if member.issym() else "device or pipe"
        target = f" to '{printable(member.linkname)}'" if member.linkname else ""
        advice = "write the archive with the content of links (options dereference and hard-dereference of GNU tar)"
        raise _damage_error(f"a {kind}{target}, not a file", path, member.name, advice)
    if not suffix:
        raise _damage_error("it ends with a dot, so its column has no name", path, member.name, "rename the member")
    if suffix == KEY:
        reason = f"its suffix is {KEY}, the column with the names of the samples"
        raise _damage_error(reason, path, member.name, "rename the member")


def _value(content: bytes, member: tarfile.TarInfo, suffix: str, path: str) -> Any:
    name, size = member.name, member.size
    if len(content) < size:
        raise _damage_error(f"the archive ends after {len(content)} of its {size} bytes", path, name)
    if suffix in _INTEGERS:
        text = content.strip()
        if not text.removeprefix(b"-").isdigit() or len(text) > len(str(-(2**63))) or not -(2**63) <= int(text) < 2**63:
            raise _damage_error(f"a member .{suffix} is an integer, this is not", path, name)
        return int(text)
    return _text(content, path, name) if suffix in _TEXTS else content


def _text(content: bytes, path: str, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise _damage_error("text is UTF-8, this is not", path, name) from None


def _damage_error(reason: str, path: str, name: str, advice: str | None = None) -> DecodeError:
    return DecodeError(f"member '{printable(name)}': {reason}", path=path, hint=advice)


def _type(name: str) -> pa.DataType:
    if name in _INTEGERS:
        return pa.int64()
    return pa.string() if name in _TEXTS or name == KEY else pa.binary()


def _size(sample: Sample) -> int:
    return sum(_VALUE_BYTES + len(value) if isinstance(value, bytes | str) else 8 for value in sample.values())


class TarWriter(AbstractContextManager["TarWriter"]):
    """Writes batches as samples, with a member for each value.

    The column ``__key__`` has the names of the samples; without it they are numbered.
    """

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        for field in schema:
            if _encoder(field.type) is None:
                raise pa.ArrowTypeError("no member of an archive")
            if field.name != KEY:
                _check_suffix(field)
        self._sink = sink
        self._rows, self._last = 0, ""

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
            self._sink.write(bytes(2 * tarfile.BLOCKSIZE))  # the end of an archive

    def write_batch(self, batch: pa.RecordBatch) -> None:
        names = batch.schema.names
        keys = batch.column(KEY).to_pylist() if KEY in names else [None] * len(batch)
        columns = [(name, _encoder(batch.schema.field(name).type), batch.column(name)) for name in names if name != KEY]
        for row, key in enumerate(keys):
            key = f"{self._rows:08d}" if key is None else _key_text(key, self._rows)
            below = key.removeprefix("./")  # as in archives that tar makes of the folder "."
            reason = name_fault(below) or ("its last part has a dot" if "." in key.rpartition("/")[2] else None)
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
                if _META.match(f"{key}.{name}"):
                    reason = f"'{printable(f'{key}.{name}')}' is the name of metadata, which WebDataset leaves out"
                    raise EncodeError(reason, record=self._rows, feature=name, hint="rename the key or the column")
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
    if Column(type_).is_bytes:
        return bytes
    if Column(type_).is_text:
        return str.encode
    return (lambda value: str(value).encode()) if t.is_integer(type_) else None


def _check_suffix(field: pa.Field) -> None:
    """EncodeError if the name of a column cannot be the suffix of a member."""
    name, reason = field.name, name_fault(f"x.{field.name}")
    if "/" in name:
        reason = "it has a slash, which makes folders of a suffix"
    elif name != name.lower():
        reason = "it has capitals, and WebDataset reads suffixes in lower case"
    elif name.startswith("."):
        reason = "it begins with a dot"
    if reason is None:
        return
    type_ = "binary" if Column(field.type).is_bytes else "string" if Column(field.type).is_text else str(field.type)
    suffix = {"binary": "jpg", "string": "txt"}.get(type_, "cls")
    column = f"{{'{suffix}': tfr.scalar('{type_}', feature={printable(name)!r})}}"
    raise EncodeError(
        f"the name cannot be a suffix in an archive: {reason}",
        feature=name,
        hint=f"read it under a suffix with schema={column}, or exclude it with columns=",
        hint_cli=f"read it under a suffix with --schema {column}, or exclude it with --columns",
    )


MAX_HEADER_BYTES = 16 << 20  # of one extension header: a long name, or pax records with extended attributes
_MOST_DIGITS = 20
_CHUNK = 1 << 20

_LONG = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_KEPT = (b"path", b"linkpath", b"size")  # of the records of pax; all others are about owners, times and access
_SPARSE = b"GNU.sparse."


class TarArchive:
    """The members of the archive in a binary file, in order, with what extension headers state of them.

    `read` returns the content of a member before the next one is taken. DecodeError: it is not an archive, is damaged,
    or an extension header is larger than 16 MiB or contradicts itself.
    """

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path
        self.left = self._padding = 0  # of the member at hand
        self._offset = 0

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        lasting: dict[str, str] = {}  # by global pax headers
        next_headers: dict[str, str] = {}  # for the next member
        while (info := self._header()) is not None:
            if info.type in _LONG:
                content = self._extension(info, "a long name")
                name = content.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
                next_headers.setdefault(_LONG[info.type], name)
            elif info.type in _PAX:
                next_headers = self._records(self._extension(info, "a pax header")) | next_headers
            elif info.type == tarfile.XGLTYPE:
                lasting |= self._records(self._extension(info, "a global pax header"))
            else:
                self._apply(info, lasting | next_headers)
                next_headers = {}
                has_content = info.isreg() or info.type not in tarfile.SUPPORTED_TYPES  # whatever size a link states
                self._begin(info.size if has_content else 0)
                yield info
                self._skip()
        if next_headers:
            raise self._error("it ends behind the extension header of a member")

    def read(self, size: int | None = None) -> bytes:
        """The content of the member at hand, or the next `size` bytes of it, or as much as the archive has."""
        content = self._take(self.left if size is None else min(size, self.left))
        self.left -= len(content)
        return content

    def _take(self, size: int) -> bytes:
        parts, wanted = [], size
        while wanted and (part := self._file.read(min(wanted, _CHUNK))):
            parts.append(part)
            wanted -= len(part)
        self._offset += size - wanted
        return b"".join(parts)

    def _begin(self, size: int) -> None:
        self.left, self._padding = size, -size % tarfile.BLOCKSIZE

    def _skip(self) -> None:
        """Go to the next header."""
        remaining = self.left + self._padding
        while remaining:
            part = self._take(min(remaining, _CHUNK))
            if not part:
                raise self._error(f"it ends {remaining} bytes before the next header")
            remaining -= len(part)
        self.left = self._padding = 0

    def _header(self) -> tarfile.TarInfo | None:
        """The next header; None at the end."""
        at = self._offset
        block = self._take(tarfile.BLOCKSIZE)
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError as error:
            is_end = not block or not any(block)
            if is_end and len(block) in (0, tarfile.BLOCKSIZE) and (at or block):
                return None
            raise self._error(f"at byte {at}: {printable(error)}") from error
        if info.size < 0:
            raise _damage_error(f"its size is {info.size}", self._path, info.name)
        return info

    def _extension(self, info: tarfile.TarInfo, what: str) -> bytes:
        """The content of an extension header, which is bounded before it is read."""
        if info.size > MAX_HEADER_BYTES:
            reason = f"{what} of {info.size} bytes, more than {MAX_HEADER_BYTES >> 20} MiB"
            raise self._error(reason, expected=MAX_HEADER_BYTES, got=info.size)
        self._begin(info.size)
        content = self.read()
        if len(content) < info.size:
            raise self._error(f"{what} ends after {len(content)} of its {info.size} bytes")
        self._skip()
        return content

    def _records(self, content: bytes) -> dict[str, str]:
        """The records of a pax header that are about names and sizes: ``30 path=…``, each with its own length."""
        records, begin = {}, 0
        while begin < len(content) and content[begin]:  # some writers pad with zeros
            space = content.find(b" ", begin, begin + _MOST_DIGITS)
            digits = content[begin : max(space, begin)]
            end = begin + int(digits) if digits.isdigit() else 0
            key, equals, value = content[space + 1 : end - 1].partition(b"=")
            if not (space < end <= len(content) and equals and content[end - 1 : end] == b"\n"):
                raise self._error("a pax header has a record that is none")
            if key in _KEPT:
                records[key.decode()] = value.decode("utf-8", "surrogateescape")
            elif key.startswith(_SPARSE):
                records["sparse"] = ""
            begin = end
        return records

    def _apply(self, info: tarfile.TarInfo, headers: dict[str, str]) -> None:
        """Give a member what its extension headers state."""
        if name := headers.get("path"):
            info.name = name.rstrip("/")
        info.linkname = headers.get("linkpath") or info.linkname
        if info.type == tarfile.GNUTYPE_SPARSE or "sparse" in headers:
            advice = "write the archive without the option sparse of GNU tar"
            raise _damage_error("a sparse file, of which the archive has parts", self._path, info.name, advice)
        if size := headers.get("size"):
            if not (size.isascii() and size.isdigit() and len(size) <= _MOST_DIGITS):
                raise _damage_error(f"its size is '{printable(size, 40)}'", self._path, info.name)
            info.size = int(size)

    def _error(self, reason: str, **numbers: Any) -> DecodeError:
        numbers = {"expected": TAR.name, **numbers}
        return DecodeError(f"damaged, or not a tar archive: {reason}", path=self._path, **numbers)
