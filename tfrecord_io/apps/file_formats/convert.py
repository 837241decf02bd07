"""Convert between TFRecord and other formats: decide formats and keywords, open the rows, and write the target."""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Literal

import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream
from tfrecord_io.apps.file_formats.choose_formats import files_of_shards, formats_of, single, single_or_all
from tfrecord_io.apps.file_formats.embed_files import embed_files
from tfrecord_io.apps.file_formats.tables.table_files import SourceOptions, TableSource, filter_rows, write_table_file
from tfrecord_io.apps.file_formats.tables.table_folders import FOLDER_OPTIONS, write_table_folder
from tfrecord_io.apps.file_formats.tables.table_shards import write_table_shards
from tfrecord_io.base import OnDamage, StorageOptions, TransferOptions, did_you_mean
from tfrecord_io.columns import Projection
from tfrecord_io.errors import FeatureNotFoundError
from tfrecord_io.kit import (
    FORMATS,
    Format,
    ProgressMeter,
    ReadOptions,
    WriteOptions,
    check_keywords,
    for_cli,
    listed,
    printable,
)
from tfrecord_io.read import CallSource, Scan, ScanRows, SkippedRegions
from tfrecord_io.store import Entry, Location, Output, Source
from tfrecord_io.typing import (
    UNSET,
    Compression,
    FilesLike,
    Float64,
    OnErrorCollecting,
    Path,
    ProgressLike,
    Reader,
    SchemaLike,
    SourceFormat,
    StorageLike,
    TargetFormat,
    Unset,
    WriteMode,
    WriteReport,
)
from tfrecord_io.write import ResumableWriter, write

_TFRECORD = FORMATS.tfrecord

_RENAME = "rename"  # an option of every target

_DEFAULTS = {
    f.name: f.default for options in (*FORMATS.own_options(), ReadOptions, WriteOptions) for f in fields(options)
}
_PLACES = frozenset({"storage_options", "filesystem"})
_SHARED = {f.name for f in fields(SourceOptions)}
_PARSING = {"record_type", "filters", "schema", "schema_overrides", "column_encoding", "float64", "partition_by"}


def _options() -> dict[str, str]:
    """Templates for the options of all formats, with formats of plugins."""
    sides: dict[str, list[str]] = {}
    for side, role in (("source", "reads"), ("target", "writes")):
        for name in {name for row in FORMATS for name in getattr(row, role)}:
            sides.setdefault(name, []).append(f"{side}_options={{{name!r}: …}}")
    return {name: " or ".join(texts) for name, texts in sides.items()}


@partial(check_keywords, moved=_options)
def convert(
    source: FilesLike,
    target: Path,
    *,
    source_format: SourceFormat | None = None,
    target_format: TargetFormat | None = None,
    source_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    columns: Sequence[str] | str | None = None,
    filters: Any = None,
    schema: SchemaLike | Literal["infer"] | None = None,
    limit: int | None = None,
    on_error: OnErrorCollecting | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
    mode: WriteMode | None = None,
    compression: Compression | None = "infer",
    float64: Float64 | None = None,
    shards: int | None = None,
    files: str | None = None,
    resume: bool = False,
) -> WriteReport:
    """Convert between TFRecord and CSV, JSON, Parquet, Arrow, NumPy, HDF5, NetCDF, Zarr or folders, streaming.

    >>> import numpy as np, tfrecord_io as tfr
    >>> np.save("squares.npy", np.arange(5) ** 2)
    >>> tfr.convert("squares.npy", "squares.tfrecord").records
    5
    >>> _ = open("people.csv", "w").write("name;zip\\nAda;00123\\n")
    >>> options = {"delimiter": ";", "schema_overrides": {"zip": "string"}}
    >>> _ = tfr.convert("people.csv", "people.tfrecord", source_options=options)
    >>> tfr.read_table("people.tfrecord").to_pylist()
    [{'name': 'Ada', 'zip': '00123'}]

    Parameters
    ----------
    source : str, PathLike, Dataset or list of those
        Files of one format; several become columns (``.npy``, IDX) or are concatenated (all others). Each file in a
        folder of ``.npz`` or ``.npy`` files, and with ``episodes="/"`` each HDF5 file, is one row. Values in the names
        of folders of tables and WebDataset archives (``day=1/``) are columns. Any other source is TFRecord.
    target : str or PathLike
        A path with the suffix of a format, with a second one if it is compressed as a whole (``x.csv.gz``). A suffix
        of TFRecord, a name without one, or a directory is TFRecord; any other suffix (``x.xlsx``) is an error unless
        `target_format` is stated. Output is atomic. Of tables, a path that ends in a slash, or a directory, is a folder
        of files; of these and WebDataset, ``x@4.tar`` and ``x-{0000..0003}.tar`` are four files.
    source_format, target_format : str, optional
        For pipes and names without a suffix; by default, names and content decide. Formats, suffixes and options:

        - ``tfrecord``: TFRecord files, in every form that `read_table` accepts
        - ``csv`` (``.csv``): with a header row; bytes and lists cannot be stored; ``delimiter``, ``null_values``,
          ``decimal_point``
        - ``tsv`` (``.tsv``): tab-separated CSV; ``delimiter``, ``null_values``, ``decimal_point``
        - ``jsonl`` or ``json`` (``.jsonl``, ``.ndjson``, ``.json``): JSON lines: an object per line; bytes are base64,
          ``{"base64": "AAE="}``
        - ``parquet`` (``.parquet``, ``.pq``): tables with types, compressed by column
        - ``arrow`` or ``feather`` (``.arrow``, ``.feather``, ``.ipc``): Arrow IPC files and streams, Feather
        - ``orc`` (``.orc``): tables with types, compressed by stripe; times are read in nanoseconds, zones as UTC
        - ``npy`` (``.npy``): an array, with a record for each index of its first axis; several files become columns;
          ``column``
        - ``npz`` (``.npz``): arrays of equal length, or a folder of archives, one record each; ``compressed``
        - ``hdf5`` or ``h5`` (``.h5``, ``.hdf5``): datasets of equal length become columns, those in groups as
          ``group/name``; or groups records; ``compressed``, ``record_dim``, ``decode_cf``, ``episodes``
        - ``netcdf`` or ``nc`` (``.nc``, ``.nc4``, ``.cdf``): variables that share a dimension become columns; xarray
          decodes packed values and times; ``compressed``, ``record_dim``, ``decode_cf``
        - ``zarr`` (``.zarr``): a folder with arrays of equal length, which become columns, those in groups as
          ``group/name``; ``record_dim``, ``decode_cf``
        - ``idx`` (only a source): the format of MNIST, ``train-images-idx3-ubyte.gz``; several files become columns
        - ``libsvm`` or ``svmlight`` (``.libsvm``, ``.svm``, ``.svmlight``; only a source): labels and sparse rows as
          lines of text, ``1 3:0.5 7:2``; ``zero_based``, ``n_features``
        - ``tar`` (``.tar``): WebDataset archives: members that share a name form a sample
        - ``coco``, ``voc``, ``yolo``: images with boxes: `formats.open_coco` and others; ``class_names``,
          ``shuffle_seed``, ``images``, ``image_set``, ``invalid_boxes``, ``check_sizes``, ``orient``, ``masks``
        - ``lerobot``: a LeRobot folder: episodes become frames of it, with ``fps``; frames and videos are read;
          ``task``, ``use_videos``, ``video_frames``
        - ``images``, ``files``: a folder of images, or of any files: `formats.open_image_folder`,
          `formats.open_file_folder`; ``class_names``, ``shuffle_seed``, ``filename``
        - ``elwc`` (only a source): TFRecord files with lists of TensorFlow Ranking: `formats.open_elwc`
        - ``array_record`` (``.array_record``, ``.arrayrecord``): files of Grain and TFDS; records are copied, and
          parsed only for other formats; ``group_size``, ``record_compression``
        - ``tfds``: a split of a TFDS dataset, in ``data_dir/name/1.0.0``: `tfrecord_io.formats.write_tfds`;
          ``target_split``
    source_options, target_options : dict, optional
        Options of the formats. Every target has ``rename``, new names of columns by those that all else about the
        source takes: ``{"image/encoded": "jpg"}``. Those of TFRecord are the other keywords of `dataset` and
        `write_tfrecord`, and ``embed``, ``embed_folder`` and ``missing_files`` (`columns`, `folder` and `missing` of
        `formats.embed_files`); those of folders are the keywords of their calls in `formats`. Tables have
        ``schema_overrides`` and ``limits``. ``storage_options`` here are those of one side only.
    columns, filters, schema, limit, on_error, progress
        As for `dataset`, `limit` and `on_error` of sources that have them; the result has a ``skipped_table()``.
        `schema`: that of the target, and the types of CSV and JSON lines, else inferred from the first 8 MiB.
    storage_options : dict or filesystem, optional
        Options for fsspec, or the filesystem.
    mode, compression, float64, shards
        As for `write_tfrecord`; other files have the modes "error" and "overwrite". Folders of tables have all modes
        and `shards`, and as options ``partition_by`` and ``max_file_bytes``: about so many bytes of uncompressed values
        in a file. pyarrow.dataset writes them.
    files : {"images", "all"} or str, optional
        Read a folder like `formats.open_image_folder` or `formats.open_file_folder`; write one like
        `formats.write_image_folder` or, with the name of a column, `formats.write_file_folder`.
    resume : bool, default False
        Write a shard for each file of TFRecord, tables or WebDataset, and continue where an earlier call with the same
        keywords was stopped: files that it converted, and that have the same size and ETag or times and inode, are not
        read again. `target` is a directory, or a name such as ``train@*``; readers see the dataset when all files are
        converted. If files were changed, added or removed, ``mode="overwrite"`` writes it again, and copies the others.

    Returns
    -------
    WriteReport

    Raises
    ------
    DecodeError
        A source is damaged or holds objects, or a value of CSV or JSON lines does not fit.
    SchemaError, EncodeError
        There are too many columns, leading axes differ in length, or the target cannot store a column or row.
    ValueError
        Sources have different formats, the target cannot be written, or ``resume=True`` and other keywords than before.
    TypeError
        A keyword or option that the format does not have.
    """
    keywords: dict[str, Any] = {
        "filters": filters, "schema": schema, "limit": limit,
        "mode": mode, "compression": compression, "float64": float64, "shards": shards,
        **ReadOptions.stated({"on_error": on_error, "progress": progress}),
    }  # fmt: skip
    for name, options in (("source_options", source_options), ("target_options", target_options)):
        if not isinstance(options, Mapping | None) or not all(isinstance(key, str) for key in options or ()):
            raise TypeError(f"{name}={options!r}: expected a dict of keywords, such as {{'delimiter': ';'}}")
    if not isinstance(files, str | None):
        raise TypeError(f"files={files!r}: expected 'images', 'all' or the name of a column")
    sides = Sides(source_format, target_format, dict(source_options or {}), dict(target_options or {}))
    places = {"storage_options": storage_options, "filesystem": None}
    return convert_given(
        source, target, sides=sides, places=places, keywords=keywords, columns=columns, files=files, resume=resume
    )


@dataclass(frozen=True, slots=True)
class Sides:
    """Formats and options of the source and of the target, as the caller states them."""

    source_format: str | None
    target_format: str | None
    source_options: dict[str, Any]
    target_options: dict[str, Any]

    def check(self, keywords: Mapping[str, Any], reads: Format, writes: Format) -> None:
        """Raise TypeError for an option that a format does not have, or that the caller gives twice."""
        for name, format, valid_keys in (
            ("source_options", reads, reads.reads),
            ("target_options", writes, writes.writes),
        ):
            for key in getattr(self, name):
                if key in keywords:
                    raise TypeError(f"{key}= is given twice: leave it out of {name}=")
                if key not in valid_keys:
                    suggestion, valid = did_you_mean(key, valid_keys), f"valid options: {', '.join(sorted(valid_keys))}"
                    reason = f"{name}= has {key!r}, which {format.title} does not have"
                    raise TypeError(f"{reason}; {suggestion} {valid}".replace(";  ", "; "))

    def storage(self, places: Mapping[str, Any], source: FilesLike) -> TransferOptions:
        """The storage of source and target; the options of places are taken out of the format options."""
        place_options = [
            {key: side.pop(key) for key in _PLACES & side.keys()} for side in (self.source_options, self.target_options)
        ]
        both = CallSource(source).options(TransferOptions, **{**places, **place_options[1]})
        if not any(place_options) or CallSource(source).datasets:
            return both
        return both.changed(source_storage=TransferOptions.from_keywords({**places, **place_options[0]}).storage)

    def drop_defaults(self, *, beside_datasets: bool) -> Sides:
        """Drop options equal to their default, unless a dataset may state another value."""
        source, target = (
            {key: value for key, value in side.items() if value is not _DEFAULTS.get(key, ...)}
            for side in (self.source_options, self.target_options)
        )
        return Sides(self.source_format, self.target_format, self.source_options if beside_datasets else source, target)


def convert_given(
    source: FilesLike,
    target: Path,
    sides: Sides,
    places: Mapping[str, Any],
    keywords: Mapping[str, Any],
    *,
    columns: Sequence[str] | str | None,
    files: str | None,
    resume: bool,
) -> WriteReport:
    """`convert` with keywords that go to the source and the target, if their formats have them; `places` to both."""

    def run(**stated: Any) -> WriteReport:
        try:
            return _convert(source, target, places=places, columns=columns, files=files, resume=resume, **stated)
        except FeatureNotFoundError as error:
            _name_folder_above(error, source)
            raise

    datasets = CallSource(source).datasets
    of_datasets = {"on_error": datasets[0].stated.on_error} if datasets else {}
    stated = {**of_datasets, **sides.source_options, **keywords}.get("on_error")
    if stated is None or not OnDamage.of(OnDamage.check(stated)).hands_over:
        return run(sides=sides, keywords=keywords)
    if resume:
        reason = "files that an earlier call converted are not read again"
        text = f"cannot be used with resume=True: {reason}"
        raise for_cli(
            ValueError(f"on_error={stated!r} {text}"), f"--on-error {stated} cannot be used with --resume: {reason}"
        )
    regions = SkippedRegions(OnDamage.receive_in_reader)
    collecting = {"on_error": OnDamage.collect(regions.unite)}
    if "on_error" in sides.source_options:
        sides = replace(sides, source_options={**sides.source_options, **collecting})
    else:
        keywords = {**keywords, **collecting}
    return replace(run(sides=sides, keywords=keywords), skipped=regions)


def _name_folder_above(error: FeatureNotFoundError, source: FilesLike) -> None:
    """Say which folder to convert, if the path of the source has the missing column."""
    for path in CallSource(source).paths:
        above, _, below = f"/{str(path).replace(os.sep, '/')}".partition(f"/{error.feature}=")
        if below:
            folder, value = f"{above[1:] or '.'}/", below.partition("/")[0]
            reason = f"{error.feature}={value} is a folder in the path of the source, whose values are read from above"
            error.hint = f"{reason}: convert {printable(folder)!r} with filters=[({error.feature!r}, '==', {value!r})]"
            where = f"{error.feature} == '{value}'"
            where = shlex.quote(where) if re.search(r'["$`\\!]', where) else f'"{where}"'
            error.hint_cli = f"{reason}: convert {shlex.quote(printable(folder))} with --where {where}"
            return


def _convert(
    source: FilesLike,
    target: Path,
    *,
    sides: Sides,
    places: Mapping[str, Any],
    keywords: Mapping[str, Any],
    columns: Sequence[str] | str | None,
    files: str | None,
    resume: bool,
) -> WriteReport:
    """`convert_given`, where what is left out by `on_error` is received elsewhere."""
    has_datasets = bool(CallSource(source).datasets)
    # A dataset may state other values: then a keyword with its default counts as stated, too.
    of_datasets = {"on_error", "progress"} if has_datasets else set()
    stated = {
        name: value for name, value in keywords.items() if name in of_datasets or value is not _DEFAULTS.get(name, ...)
    }
    if resume and has_datasets:
        reason = "resume=True compares files and keywords with those of the call that was stopped"
        raise ValueError(f"{reason}: pass the path, and the options of the dataset in source_options=")
    parts: Any = source if isinstance(source, list | tuple) else [source]
    paths, name = _paths(CallSource(source).paths if has_datasets else source), Location.text_of(target)
    storage = sides.storage(places, source)
    read_from, write_to = Location.storage_for(paths, storage.source), Location.storage_for([name], storage.target)

    source_format, has_split = sides.source_format, {**stated, **sides.source_options}.get("split") is not None
    if source_format is None and (has_datasets or has_split):  # a dataset of TFDS, whatever else its directory has
        source_format = _TFRECORD.name
    listings: dict[str, list[Entry]] = {}
    reads, writes = formats_of(
        paths,
        name,
        places=storage,
        source_format=source_format,
        target_format=sides.target_format,
        files=files,
        listings=listings,
    )
    rename = sides.target_options.pop(_RENAME, None) or {}
    if not reads.records:
        paths = [file for path in paths for file in _source_files(path, read_from)]
    sides.check(stated, reads, writes)
    sides = sides.drop_defaults(beside_datasets=has_datasets)
    if (
        columns is None
        and not rename
        and _copies(reads, writes, {**stated, **sides.source_options, **sides.target_options})
    ):
        stated["record_type"] = "bytes"
    settings = None
    if resume:
        settings = _settings(
            reads, writes, sides, {**stated, "source_format": source_format, "columns": columns, "rename": rename}
        )
    is_folder = _is_folder_of_tables(name, writes, {**stated, **sides.target_options}, storage.target)
    _check(stated, reads, source=paths[0], writes=writes, target=name, is_folder=is_folder)

    _refuse_embedded(columns, {**stated, **sides.target_options}.get("embed"))
    reading = _reading_keywords(stated, sides, reads=reads, writes=writes, columns=columns, listings=listings)
    writing = {**{key: value for key, value in stated.items() if key in writes.writes}, **sides.target_options}
    inputs = _Inputs(
        *(reads, parts if has_datasets else paths, read_from),
        named=source_format is not None,
        keywords=reading,
        renamed=_Renamed(rename),
    )
    if writes is not _TFRECORD:
        if files is not None and files not in FORMATS.FOLDERS:
            writing["file"] = files
        is_apart = storage.source_storage is not None and not has_datasets
        writing |= storage.target.keywords
        return _write_other(inputs, target, writes, writing, is_apart=is_apart, is_folder=is_folder)
    embed = _embedding_of({key: writing.pop(key) for key in Format.EMBEDDING if key in writing}, storage.source)
    check_target = partial(Output.check_outside, paths, read_from, target, write_to)
    progress = writing.pop("progress", False) if "progress" in reads.reads else False  # reading counts the bytes
    options = WriteOptions.from_keywords({**write_to.keywords, **writing})
    options = replace(options, any_suffix=sides.target_format is not None)
    return _write_tfrecord(
        inputs, target, options=options, embed=embed, check_target=check_target, settings=settings, progress=progress
    )


def _refuse_embedded(columns: Sequence[str] | str | None, embed: Any) -> None:
    """Raise ValueError for columns to read that name a column added afterwards."""
    names = [columns] if isinstance(columns, str) else columns or ()
    for name, path in embed.items() if isinstance(embed, Mapping) else ():
        if name in names and name != path:
            text = f"adds '{printable(name)}' to the columns that are read, also that of the paths"
            error = ValueError(f"embed= {text}: omit it in columns=, or replace the paths: { {path: path}!r}")
            pair = printable(f"{path}={path}")
            raise for_cli(error, f"--embed {text}: omit it in --columns, or replace the paths: --embed {pair}")


def _reading_keywords(
    stated: Mapping[str, Any],
    sides: Sides,
    reads: Format,
    writes: Format,
    columns: Sequence[str] | str | None,
    listings: Mapping[str, list[Entry]],
) -> dict[str, Any]:
    """Choose the keywords to read the source with: those that its format has, and the options of the source."""
    reading = {**{key: value for key, value in stated.items() if key in reads.reads}, **sides.source_options}
    if columns is not None:
        reading["columns"] = columns
    if reads.plan and listings:
        reading["listings"] = listings
    if writes is _TFRECORD:
        reading.pop("compression", None)  # the keyword is for the target; the source shows its own
    return reading


def _write_tfrecord(
    inputs: _Inputs,
    target: Path,
    options: WriteOptions,
    embed: Callable[[Any], Any],
    check_target: Callable[[Sequence[Source]], None],
    settings: Mapping[str, Any] | None,
    progress: ProgressLike,
) -> WriteReport:
    """Write rows as TFRecord; with `settings`, file by file, to be resumed by a call with the same settings."""
    if settings is not None:
        files: TableSource | RecordFiles = RecordFiles(inputs.scan()) if inputs.format.records else inputs.plan_table()
        if isinstance(files, RecordFiles):
            check_target(files.sources)
            options = replace(options, source_metadata=files.scan.sources.metadata)
        return convert_by_file(
            *(files, target, inputs.renamed.schema(files.schema)),
            options=options,
            settings=settings,
            progress=progress,
            changed=lambda stream: embed(inputs.renamed.rows(stream)),
        )
    with inputs.open_rows() as rows:
        if isinstance(rows, Reader):
            check_target(rows.scan.sources)
            options = replace(options, source_metadata=rows.scan.sources.metadata)
        return write(embed(inputs.renamed.rows(rows)), target, options)


def _copies(reads: Format, writes: Format, keywords: Mapping[str, Any]) -> bool:
    """True if the records of a format are written as they are; the schema of a dataset that gets them is compared."""
    is_added = keywords.get("mode") == "append"
    return reads.copied and writes is _TFRECORD and not is_added and not _PARSING & keywords.keys()


def _write_other(
    inputs: _Inputs, target: Path, writes: Format, writing: Mapping[str, Any], *, is_apart: bool, is_folder: bool
) -> WriteReport:
    """Write another format than TFRecord; `is_apart` if the storage of the source is not that of the target.

    A target that `is_folder` gets several files.
    """
    is_planned = is_apart or bool(inputs.renamed.names)
    source, reading = (inputs.scan().rename(inputs.renamed.names), {}) if is_planned else inputs.records()
    keywords = {**writes.named, **reading, **writing}
    if is_folder:
        return write_table_folder(source, target, writes, keywords)
    if writes.writer is not None and (files := files_of_shards(Location.text_of(target))) is not None:
        return write_table_shards(source, target, files=files, format=writes, keywords=keywords)
    if writes.suffixes and not writes.folders and Location.text_of(target).endswith("/"):
        raise IsADirectoryError(errno.EISDIR, f"a directory, and {writes.title} is written as one file", target)
    if writes.write is None:
        return write_table_file(source, target, writes, keywords)
    report: WriteReport = Format.load(writes.write)(source, target, **keywords)
    return report


@dataclass(frozen=True, slots=True)
class _Renamed:
    """Columns that get other names, by their names in the source."""

    names: Mapping[str, str]

    def schema(self, schema: pa.Schema) -> pa.Schema:
        renamed = Scan.renamed_columns(schema.names, self.names)
        return pa.schema([field.with_name(name) for field, name in zip(schema, renamed, strict=True)], schema.metadata)

    def rows(self, stream: Any) -> Any:
        """A stream of record batches with the new names."""
        if not self.names:
            return stream
        schema = self.schema(stream.schema)
        batches = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in stream)
        return pa.RecordBatchReader.from_batches(schema, batches)


@dataclass(frozen=True, slots=True)
class _Inputs:
    """Files of a format, or datasets of it, and how they are read."""

    format: Format
    paths: Sequence[Any]
    storage: StorageOptions
    named: bool
    keywords: dict[str, Any]
    renamed: _Renamed

    def records(self) -> tuple[Any, dict[str, Any]]:
        """The sources with TFRecord, and the keywords to read them; datasets have their own storage."""
        assert self.format.records is not None
        storage_keywords = {} if CallSource(self.paths).datasets else self.storage.keywords
        inputs, reading = Format.load(self.format.records)(
            single_or_all(self.paths), {**storage_keywords, **self.keywords}
        )
        return inputs, reading

    def scan(self) -> Scan:
        """Plan a scan of TFRecord files under one schema."""
        inputs, reading = self.records()
        call = CallSource(inputs)
        return call.scan(call.options(ReadOptions, **reading))

    def plan_table(self) -> TableSource:
        """The files of a format that has a `plan`."""
        shared = {key: value for key, value in self.keywords.items() if key in _SHARED}
        own_options = {key: value for key, value in self.keywords.items() if key not in _SHARED}
        own_options = {**self.format.named, **own_options} if self.named else own_options
        assert self.format.plan is not None
        options = SourceOptions(self.storage, named=self.named, **shared)
        planned: TableSource = Format.load(self.format.plan)(self.paths, options, **own_options)
        return planned

    @contextmanager
    def open_rows(self) -> Iterator[Any]:
        """The rows of files, or of a folder, as a stream of record batches."""
        format, keywords = self.format, {**self.keywords}
        if format.records:
            inputs, keywords = self.records()
            call = CallSource(inputs)
            with call.open(call.options(ReadOptions, **keywords)) as reader:
                yield reader
            return
        if format.plan:
            with self.plan_table().open() as rows:
                yield rows
            return
        assert format.open is not None
        for key, what in format.needs.items():
            if key not in keywords:
                error = TypeError(f"{format.title} needs {key}=, {what}")
                raise for_cli(error, f"{format.title} needs --{key.replace('_', '-')}, {what}")
        columns, filters = keywords.pop("columns", None), keywords.pop("filters", None)
        if format.projects:
            needed = _NeededColumns(columns, filters)
            keywords["project"] = needed
        path = single_or_all(self.paths) if format.several else single(self.paths)
        stream = Format.load(format.open)(path, **keywords, storage_options=self.storage.given)
        columns = needed.names if format.projects and columns is not None else columns
        with stream if hasattr(stream, "__exit__") else nullcontext():
            if isinstance(stream, ArrayStream) and filters is None:
                yield stream.select(columns)
            else:
                yield filter_rows(pa.RecordBatchReader.from_stream(stream), filters, columns)


class _NeededColumns:
    """Selects the columns to open in a file, including the filter's."""

    def __init__(self, columns: Any, filters: Any) -> None:
        self._options = SourceOptions(columns=columns, filters=filters)
        self.names: list[str] = []  # of the selected columns

    def __call__(self, names: Sequence[str]) -> Projection:
        selected = Projection(self._options.columns)
        selected.check(names)
        self.names = selected.order(names)
        return self._options.projection(names)


def _paths(source: Any) -> list[str]:
    paths = [source] if isinstance(source, str | os.PathLike) else source
    if isinstance(paths, Sequence) and all(isinstance(path, str | os.PathLike) for path in paths):
        return [*map(Location.text_of, paths)]
    parts = paths if isinstance(paths, Sequence) and not isinstance(paths, bytes | bytearray | memoryview) else [source]
    first_other = next(part for part in parts if not isinstance(part, str | os.PathLike))
    advice = "write_tfrecord takes data, such as tfr.open_reader(source)"
    raise TypeError(f"expected a path or a list of paths, got a {type(first_other).__name__}; {advice}")


def _source_files(path: str, storage: StorageOptions) -> list[str]:
    """The files of a path that states their numbers, unless there is a file of this name; else the path."""
    files = files_of_shards(path)
    if files is None:
        return [path]
    fs, name = Location.of(path, storage)
    return files if fs.entry(name) is None else [path]


def _is_folder_of_tables(path: str, writes: Format, keywords: Mapping[str, Any], storage: StorageOptions) -> bool:
    """True if a target is a folder of files of a format of tables: by its slash, its keywords, or on the disk.

    ValueError if the keywords of a folder are given with a name that states the numbers of files.
    """
    if not writes.writes >= Format.IN_FOLDERS:
        return False
    of_folder = [key for key in sorted(FOLDER_OPTIONS) if keywords.get(key)]
    if of_folder and files_of_shards(path) is not None:
        names, others = (
            f"'{printable(path)}' names the files to write",
            "makes a folder of others: pass only one of them",
        )
        error = ValueError(f"{names}, and {of_folder[0]}= {others}")
        raise for_cli(error, f"{names}, and --{of_folder[0].replace('_', '-')} {others}")
    if path.endswith("/") or of_folder:
        return True
    location = Location.of(path, storage)
    return location.is_local and os.path.isdir(location.name)


def _check(
    keywords_of_call: Mapping[str, Any], reads: Format, source: str, writes: Format, target: str, *, is_folder: bool
) -> None:
    """Raise TypeError for a keyword that neither the format of the source nor that of the target has."""
    mode = keywords_of_call.get("mode")
    adds_to_file = not is_folder and mode in WriteOptions.ADDING
    if adds_to_file and writes.writes >= Format.IN_FOLDERS:
        text = f"adds to a folder, and '{printable(target)}' is one file; end the target in a slash"
        raise for_cli(TypeError(f"mode={mode!r} {text}"), f"--mode {mode} {text}")
    if adds_to_file and writes is not _TFRECORD:
        reason = f"is only for TFRecord targets, and '{printable(target)}' is {writes.title}"
        error = TypeError(f"mode={mode!r} {reason}; target_format= names another format")
        raise for_cli(error, f"--mode {mode} {reason}; --to names another format")
    for key in keywords_of_call:
        if key in reads.reads or key in writes.writes:
            continue
        where, actual, advice = {}, [], []
        for role, path, format, keyword in (
            ("reads", source, reads, "source_format"),
            ("writes", target, writes, "target_format"),
        ):
            if titles := dict.fromkeys(row.title for row in FORMATS if key in getattr(row, role)):
                shown, kind = listed("and", *titles), "sources" if role == "reads" else "targets"
                where[shown] = "files" if shown in where else kind
                actual.append(f"'{printable(path)}' is {format.title}")
                advice.append(keyword)
        only = " and ".join(f"{shown} {kind}" for shown, kind in where.items())
        text = f"is only for {only}, and {', '.join(actual)}"
        names = " or ".join(f"{keyword}=" for keyword in advice)
        options = " or ".join({"source_format": "--from", "target_format": "--to"}[keyword] for keyword in advice)
        error = TypeError(f"{key}= {text}; {names} names another format")
        raise for_cli(error, f"--{key.replace('_', '-')} {text}; {options} names another format")


def _embedding_of(keywords_of_embedding: Mapping[str, Any], storage: StorageOptions) -> Callable[[Any], Any]:
    """The function that embeds files into a stream, made of ``embed``, ``embed_folder`` and ``missing_files``."""
    if keywords_of_embedding and "embed" not in keywords_of_embedding:
        keyword = next(iter(keywords_of_embedding))
        error = TypeError(f"{keyword}= has no effect without embed=")
        raise for_cli(error, f"--{keyword.replace('_', '-')} has no effect without --embed")
    columns, folder, missing = (keywords_of_embedding.get(key) for key in Format.EMBEDDING)
    keywords: dict[str, Any] = {"folder": folder, "missing": missing or "raise", "storage_options": storage.given}
    return lambda stream: stream if columns is None else embed_files(stream, columns, **keywords)


# ---- convert(resume=True): file by file, to go on after a stop

# Keywords without effect on the parts: a later call may change them.
_WITHOUT_EFFECT = {"mode", "progress", "threads", "batch_size", "batch_bytes", "allow_missing_shards"}
_OF_ALL_FILES = ("limit", "offset")


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """TFRecord files, under the schema of a scan."""

    scan: Scan

    @property
    def sources(self) -> Sequence[Source]:
        return self.scan.sources

    @property
    def schema(self) -> pa.Schema:
        return self.scan.schema

    @contextmanager
    def rows(self, sources: Sequence[Source], meter: ProgressMeter) -> Iterator[Any]:
        with ScanRows(self.scan.with_sources(sources).with_options(progress=meter.part())).open_files() as reader:
            yield reader


def convert_by_file(
    files: TableSource | RecordFiles,
    target: Any,
    schema: pa.Schema,
    options: WriteOptions,
    settings: Mapping[str, str],
    progress: ProgressLike,
    changed: Callable[[Any], Any],
) -> WriteReport:
    """Convert each file to a shard, but for those that an earlier call has converted.

    `schema` is that of the rows to write, of `_settings` the `settings`; `changed` returns these rows of a stream.
    """
    size = Source.total(source.size for source in files.sources)
    with (
        ResumableWriter.begin_or_resume(
            target, options, settings=settings, schema=schema, sources=files.sources
        ) as writer,
        ProgressMeter(progress, size, "bytes") as meter,
    ):
        if writer.published is not None:
            meter.advance(size or 0)
            return writer.published

        @contextmanager
        def open_rows(source: Source) -> Iterator[Any]:
            with files.rows([source], meter) as stream:
                yield changed(stream)

        return writer.write_parts(open_rows, meter)


def _settings(reads: Format, writes: Format, sides: Sides, keywords_of_parts: Mapping[str, Any]) -> dict[str, str]:
    """Keywords of a conversion that decide the content of the parts, as text, equal in all processes.

    Raises
    ------
    TypeError, ValueError
        The formats do not go with ``resume=True``, or a keyword concerns all files together.
    """
    can_resume = [row for row in FORMATS if row.plan or row is _TFRECORD]
    if writes is not _TFRECORD or reads not in can_resume:
        titles = ", ".join(row.title for row in can_resume)
        text = f"converts {titles} files to shards of TFRecord, a shard for each file"
        raise for_cli(ValueError(f"resume=True {text}"), f"--resume {text}")
    keywords = {**keywords_of_parts, **sides.source_options}
    twice = sides.target_options.keys() & sides.source_options.keys()
    keywords |= {f"target {key}" if key in twice else key: value for key, value in sides.target_options.items()}
    for name in _OF_ALL_FILES:
        if keywords.get(name):
            raise TypeError(f"{name}= cannot be used with resume=True: it counts the rows of all files")
    if OnDamage.of(OnDamage.check(keywords.get("on_error") or "raise")).ends_quietly:
        reason = "it would leave out all files after the first"
        raise ValueError(f"on_error='stop' cannot be used with resume=True: {reason}")
    names = keywords.keys() - _WITHOUT_EFFECT
    settings = {name: keywords[name] for name in sorted(names) if keywords[name] is not None}
    if not isinstance(schema := settings.get("schema", ""), str):
        import tfrecord_io

        settings["schema"] = tfrecord_io.Schema.parse(schema).to_json(indent=None)
    return {name: value if name == "schema" else _text(value) for name, value in settings.items()}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, str):
        return repr(value)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return re.sub(" at 0x[0-9a-f]+", "", str(value))
