"""WebDataset archives: tar files with the members of a sample in a row, under a shared name.

`Archives` reads samples, in one pass over each archive (`plugins/vision/tar_archive.py`), `TarWriter` writes them.

Tests: tests/plugins/vision/test_webdataset.py.
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

from tfrecord_io import Limits
from tfrecord_io.apps.file_formats.tables.table_files import NumbersRows, SourceOptions, TableFiles, TableSource
from tfrecord_io.columns import Column, row_batches
from tfrecord_io.errors import DecodeError, EncodeError
from tfrecord_io.kit import ProgressMeter, RowFault, printable, warn
from tfrecord_io.plugins.vision.tar_archive import TarArchive, member_error
from tfrecord_io.plugins.vision.to_folder import raw_images_of
from tfrecord_io.plugins.vision.vision_rows import TAR
from tfrecord_io.store import Directory, FileName, Source

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
        self._found: TableSource | None = None  # under the schema of all samples

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

    @property
    def _table(self) -> TableSource:
        if self._found is None:
            self._found = self._find_table()
        return self._found

    def _find_table(self) -> TableSource:
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
        with closing(source.open_decompressed(meter)) as file:
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
    if first and (inside := next((name for name in names if FileName.parse(f"x.{name}").is_records), None)) is not None:
        reason = f"'{printable(first[0][1][KEY])}.{printable(inside)}' is a TFRecord file, and becomes one value"
        text, text_cli = (
            f"{printable(first[0][0])}: {reason}: without {option}, its records are read"
            for option in ("source_format=", "--from")
        )
        warn(text, UserWarning, text_cli)
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
    size, most_bytes = 0, Limits().record_bytes
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
            raise member_error("two members have this name", path, name)
        sample.setdefault(KEY, _text(key.encode("utf-8", "surrogateescape"), path, name))
        size += member.size
        if size > most_bytes:
            raise member_error(f"with it, its sample has {size} bytes, more than a record can have", path, name)
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
        raise member_error(f"a {kind}{target}, not a file", path, member.name, advice)
    if not suffix:
        raise member_error("it ends with a dot, so its column has no name", path, member.name, "rename the member")
    if suffix == KEY:
        reason = f"its suffix is {KEY}, the column with the names of the samples"
        raise member_error(reason, path, member.name, "rename the member")


def _value(content: bytes, member: tarfile.TarInfo, suffix: str, path: str) -> Any:
    name, size = member.name, member.size
    if len(content) < size:
        raise member_error(f"the archive ends after {len(content)} of its {size} bytes", path, name)
    if suffix in _INTEGERS:
        text = content.strip()
        if not text.removeprefix(b"-").isdigit() or len(text) > len(str(-(2**63))) or not -(2**63) <= int(text) < 2**63:
            raise member_error(f"a member .{suffix} is an integer, this is not", path, name)
        return int(text)
    return _text(content, path, name) if suffix in _TEXTS else content


def _text(content: bytes, path: str, name: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise member_error("text is UTF-8, this is not", path, name) from None


def _type(name: str) -> pa.DataType:
    if name in _INTEGERS:
        return pa.int64()
    return pa.string() if name in _TEXTS or name == KEY else pa.binary()


def _size(sample: Sample) -> int:
    return sum(_VALUE_BYTES + len(value) if isinstance(value, bytes | str) else 8 for value in sample.values())


class TarWriter(NumbersRows, AbstractContextManager["TarWriter"]):
    """Writes batches as samples, with a member for each value.

    The column ``__key__`` has the names of the samples; without it they are numbered, through all of several archives.
    """

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        self._raw = raw_images_of(schema)  # raw pixels, which become PNG files
        for field in schema:
            if _encoder(field.type) is None and field.name not in self._raw:
                raise pa.ArrowTypeError("no member of an archive")
            if field.name != KEY:
                _check_suffix(field, is_raw_image=field.name in self._raw)
        self._sink = sink
        self._rows = 0  # so far
        self._last_key = ""

    @property
    def _row(self) -> int:
        """The number of the next row, among those of all files."""
        return self.first_row + self._rows

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None:
            self._sink.write(bytes(2 * tarfile.BLOCKSIZE))  # the end of an archive

    def write_batch(self, batch: pa.RecordBatch) -> None:
        batch, names = self._with_png(batch), batch.schema.names
        keys = batch.column(KEY).to_pylist() if KEY in names else [None] * len(batch)
        columns = [(name, _encoder(batch.schema.field(name).type), batch.column(name)) for name in names if name != KEY]
        for row, key in enumerate(keys):
            key = f"{self._row:08d}" if key is None else _key_text(key, self._row)
            self._check_key(key)
            present = [(name, encode, array[row]) for name, encode, array in columns if array[row].is_valid]
            values = [(name, encode(value.as_py())) for name, encode, value in present if encode]
            if not values:
                raise EncodeError("a sample without values has no member in an archive", record=self._row)
            for name, content in values:
                self._write_member(key, name, content)
            self._rows, self._last_key = self._rows + 1, key

    def _with_png(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with PNG files instead of raw pixels; DecodeError if a row has no pixels of an image."""
        for name, raw in self._raw.items():
            try:
                files = [None if file is None else file.to_pybytes() for file in raw.files(batch[name])]
            except RowFault as fault:
                raise fault.to_error(None, self._row + fault.row) from None
            batch = batch.set_column(batch.schema.get_field_index(name), name, pa.array(files, pa.binary()))
        return batch

    def _check_key(self, key: str) -> None:
        """EncodeError if readers would not find the members of a key, or join them with the sample before."""
        below = key.removeprefix("./")  # as in archives that tar makes of the folder "."
        reason = Directory.name_fault(below) or ("its last part has a dot" if "." in key.rpartition("/")[2] else None)
        if reason is None and key == self._last_key:
            reason = "it is that of the sample before it"
        if reason is not None:
            reason = f"the key '{printable(key)}' cannot be used: {reason}"
            raise EncodeError(reason, record=self._row, feature=KEY)

    def _write_member(self, key: str, suffix: str, content: bytes) -> None:
        name = f"{key}.{suffix}"
        if _META.match(name):
            reason = f"'{printable(name)}' is the name of metadata, which WebDataset leaves out"
            raise EncodeError(reason, record=self._row, feature=suffix, hint="rename the key or the column")
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(content), 0o644
        self._sink.write(member.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        self._sink.write(content + bytes(-len(content) % tarfile.BLOCKSIZE))


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


def _check_suffix(field: pa.Field, *, is_raw_image: bool) -> None:
    """EncodeError if the name of a column cannot be the suffix of a member, or is not that of its PNG files."""
    name, reason = field.name, Directory.name_fault(f"x.{field.name}")
    if "/" in name:
        reason = "it has a slash, which makes folders of a suffix"
    elif name != name.lower():
        reason = "it has capitals, and WebDataset reads suffixes in lower case"
    elif name.startswith("."):
        reason = "it begins with a dot"
    elif is_raw_image and name.rpartition(".")[2] != "png":
        reason = "raw pixels become PNG files, by whose suffix readers decode them"
    elif name in _INTEGERS and not t.is_integer(field.type):
        reason = "readers take the members of this suffix for integers"
    if reason is None:
        return
    column = Column(field.type)
    fitting = (("png", is_raw_image), ("jpg", column.is_bytes), ("txt", column.is_text), ("cls", True))
    suffix = next(suffix for suffix, fits in fitting if fits)
    option = f"target_options={{'rename': {{{printable(name)!r}: {suffix!r}}}}}"
    raise EncodeError(
        f"the name cannot be a suffix in an archive: {reason}",
        feature=name,
        hint=f"{option} gives it another name, or exclude it with columns=",
        hint_cli=f"--rename {printable(name)}={suffix} gives it another name, or exclude it with --columns",
    )
