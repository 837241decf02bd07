"""The table of file formats, TFRecord among them: all facts of each. Their code is loaded when it is used.

A plugin or another package adds a row by an entry point of the group ``tfrecord_io.formats``.

Tests: tests/apps/file_formats/test_all_formats.py and tests/base/test_registry.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

from tfrecord_io.base import Options, ReadOptions, Registry, WriteOptions
from tfrecord_io.typing import MissingFiles, Path

Code = str | Callable[..., Any]
"""A function, or where it is: ``module:name``."""
_STORAGE = {"storage_options", "filesystem"}
_READING = frozenset(f.name for f in fields(ReadOptions)) - ReadOptions.internal - _STORAGE - {"columns"}
_WRITING = frozenset(f.name for f in fields(WriteOptions)) - WriteOptions.internal - _STORAGE - {"record_dim"}
_INSTEAD = "write an Arrow file (.arrow), or declare another type"


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """A file format: a row of `FORMATS`. It is read by one of `open`, `plan` and `records`, or only written.

    ``open(path, **keywords, storage_options=…)`` returns a stream of Arrow, such as `ArrayStream`;
    ``plan(paths, options, **keywords)`` a `TableSource`, of files that can be read each by itself;
    ``records(paths, keywords)`` what is read instead of TFRecord files, and with which keywords. With ``content(source,
    begin, end, length)``, the records of one file are read by all calls that read TFRecord files. It is written by
    ``writer(file, schema, **keywords)``, a context manager with ``write_batch``, or by ``write(paths, target,
    **keywords)``, which makes a file or a folder of TFRecord files and returns a `WriteReport`.
    """

    name: str  # the value of ``source_format=`` and, if it is written, ``target_format=``
    title: str  # what messages call it
    help: str  # a line for people who choose
    aliases: tuple[str, ...] = ()  # other values
    suffixes: tuple[str, ...] = ()  # of its paths, in lower case
    pattern: str = ""  # of file names, instead of suffixes
    folders: tuple[str, ...] = ()  # a folder with all of these is of this format; ``a|b`` is either
    open: Code | None = None
    several: bool = False  # `open` takes a list of paths, too
    projects: bool = False  # `open` takes ``project=``, a function of all names that selects those which are needed
    plan: Code | None = None
    records: Code | None = None
    content: Code | None = None
    holds_records: Code | None = None  # of a path and its storage: True if its files are read by `content`, not `plan`
    writer: Code | None = None
    write: Code | None = None
    reads: frozenset[str] = frozenset({"filters"})  # keywords of `tfrecord_io.convert` for such a source,
    writes: frozenset[str] = frozenset({"mode"})  # for such a target
    options: type[Any] | None = None  # a dataclass of keywords that are options of ``tfr convert``: `format_option`
    needs: Mapping[str, str] = field(default_factory=dict)  # keywords without which it is not read, and what they are
    named: Mapping[str, Any] = field(default_factory=dict)  # for targets, and named sources
    compressed: bool = False  # whole files may be compressed, with a second suffix: ``x.npy.gz``
    typed: bool = True  # files state the types of columns; else ``schema_overrides=`` declares them
    needs_columns: bool = False  # there are no rows without columns
    instead: str = _INSTEAD  # what to do about columns that it cannot hold
    looks: tuple[str, ...] = ()  # what `ForeignFile.looks_like` calls such files,
    advice: str = ""  # and what reads them
    advice_cli: str | None = None  # the same in the words of the command, where they differ
    magic: tuple[bytes, ...] = ()  # how such files begin,
    magic_at: int = 0  # at this byte
    sql: tuple[str, ...] = ()  # the suffixes with which DuckDB reads it
    copied: bool = False  # it holds records of TFRecord files, which are not parsed between the two
    extra: str = ""  # of this package, without which it is not read

    # What `reads` and `writes` of several formats have in common: keywords
    READING: ClassVar = _READING  # of reading, of a format that holds records
    ORDERED: ClassVar = frozenset({"filters", "progress", "schema", "schema_overrides", "limits"})  # of files in order
    IN_FOLDERS: ClassVar = frozenset({"mode", "shards", "max_file_bytes", "partition_by"})  # of tables in folders
    EMBEDDING: ClassVar = ("embed", "embed_folder", "missing_files")  # that embed the files which columns name

    @staticmethod
    def load(code: Code) -> Any:
        """The function that a row names."""
        from pkgutil import resolve_name

        return resolve_name(code) if isinstance(code, str) else code

    @staticmethod
    def hints(name: str, other: str | None = None, *, where: str = "") -> dict[str, Any]:
        """The `advice` of a row: how to read a file of this format, in Python by `other`, too."""
        other_way = f" or {other}" if other else ""
        return {
            "advice": f"{where}read it with tfr.convert(…, source_format={name!r}){other_way}",
            "advice_cli": f"{where}read it with tfr convert --from {name}",
        }

    @property
    def keys(self) -> tuple[str, ...]:
        """The name and its aliases."""
        return self.name, *self.aliases

    @property
    def is_source(self) -> bool:
        """True if the format is read."""
        return bool(self.open or self.plan or self.records)

    @property
    def is_target(self) -> bool:
        """True if the format is written."""
        return bool(self.writer or self.write) or self is TFRECORD

    @property
    def one_way(self) -> str:
        """The note in a list of formats about a format that is only read, or only written."""
        return "" if self.is_source and self.is_target else "only a target" if self.is_target else "only a source"

    @property
    def option_names(self) -> list[str]:
        """The options that ``tfr convert`` has for this format and few others."""
        format_options = frozenset() if self is TFRECORD else self.reads | self.writes
        classes: list[type[Any]] = [FormatOptions, *([] if self.options is None else [self.options])]
        return [f.name for cls in classes for f in fields(cls) if f.metadata and f.name in format_options]


def format_option(help: str, metavar: str = "", *, default: Any = None, example: str = "") -> Any:
    """A field of a dataclass that is an option of ``tfr convert``; `example` is one of pairs, ``NAME=VALUE``."""
    return field(default=default, metadata={"help": help, "metavar": metavar, "example": example})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class FormatOptions(Options):
    """The keywords of `tfrecord_io.convert` that few formats of the core have, and what ``tfr convert --help`` says."""

    column: str | None = format_option("The column to write to a .npy file, instead of all.", "NAME")
    compressed: bool = format_option("Deflate the arrays of an .npz, HDF5 or NetCDF file.", default=False)
    delimiter: str | None = format_option(
        "Delimiter of CSV files; by default, a comma, in .tsv files a tab.", "CHARACTER"
    )
    decimal_point: str | None = format_option(
        "Character between the digits of floats in CSV files; by default, a point.", "CHARACTER"
    )
    null_values: Sequence[str] | None = format_option(
        "Text of CSV cells that are missing values, instead of empty cells; may be repeated.", "TEXT"
    )
    record_dim: str | None = format_option("The dimension of NetCDF, HDF5 or Zarr that counts the rows.", "NAME")
    max_file_bytes: int | None = format_option(
        "Start a new file of a folder of tables at about this size, in bytes of uncompressed values.", "N"
    )
    decode_cf: bool | None = format_option(
        "Whether to decode packed values and times of NetCDF, HDF5 or Zarr; by default, they are decoded."
    )
    episodes: str | None = format_option(
        "The groups of an HDF5 file that are episodes, such as data/*, a record each; / is a record of each file.",
        "GROUPS",
    )
    zero_based: bool | None = format_option(
        "Whether the indices of libsvm files count from 0; by default, they do if one is 0."
    )
    n_features: int | None = format_option(
        "The number of features of libsvm files; by default, the greatest index decides.", "N"
    )
    embed: Mapping[str, str] | None = format_option(
        "Add a column with the content of the files whose paths or URLs are in COLUMN; may be repeated.",
        "NEW=COLUMN",
        example="image=image_uri",
    )
    embed_folder: Path | None = format_option(
        "The folder that these paths are relative to; paths that leave it are errors.", "DIRECTORY"
    )
    missing_files: MissingFiles | None = format_option(
        "Whether a file that does not exist is an error (the default) or a missing value."
    )


_SHARD_NUMBER = re.compile(r"-[0-9]+-of-[0-9]+$")
_LABELLED = frozenset({"filters", "limits", "record_dim", "decode_cf"})
_CELLS = {"delimiter", "decimal_point", "null_values"}
_CODE = "tfrecord_io.apps.file_formats."


TFRECORD = Format(
    *("tfrecord", "TFRecord", "TFRecord files, in every form that `read_table` accepts"),
    records=lambda paths, keywords: (paths, keywords),
    reads=Format.READING,
    writes=_WRITING | {*Format.EMBEDDING},
)
CSV = Format(
    *("csv", "CSV", "with a header row; bytes and lists cannot be stored"),
    suffixes=(".csv",),
    plan=f"{_CODE}tables.csv_files:csv_source",
    writer=f"{_CODE}tables.csv_files:csv_writer",
    needs_columns=True,
    instead="write JSON lines (.jsonl) or Parquet, which hold lists and bytes",
    reads=Format.ORDERED | _CELLS,
    writes=Format.IN_FOLDERS | {"delimiter"},
    named={"delimiter": ","},
    compressed=True,
    typed=False,
    looks=("plain text",),
    **Format.hints("csv", "pandas.read_csv", where="if it is CSV, "),
    sql=(".csv",),
)
TSV = replace(
    CSV,
    name="tsv",
    title="TSV",
    help="tab-separated CSV",
    suffixes=(".tsv",),
    named={"delimiter": "\t"},
    looks=(),
    advice="",
    sql=(".tsv",),
)
JSON = Format(
    *("jsonl", "JSON", 'JSON lines: an object per line; bytes are base64, ``{"base64": "AAE="}``'),
    aliases=("json",),
    suffixes=(".jsonl", ".ndjson", ".json"),
    plan=f"{_CODE}tables.json_files:json_source",
    writer=f"{_CODE}tables.json_files:JsonWriter",
    reads=Format.ORDERED,
    writes=Format.IN_FOLDERS,
    compressed=True,
    typed=False,
    looks=("JSON",),
    **Format.hints("jsonl", "pandas.read_json(lines=True)", where="if it is JSON lines, "),
    sql=(".json", ".jsonl", ".ndjson"),
)
PARQUET = Format(
    *("parquet", "Parquet", "tables with types, compressed by column"),
    suffixes=(".parquet", ".pq"),
    plan=f"{_CODE}tables.columnar_files:parquet_source",
    writer=f"{_CODE}tables.columnar_files:parquet_writer",
    needs_columns=True,
    reads=Format.ORDERED,
    writes=Format.IN_FOLDERS,
    looks=("a Parquet file",),
    **Format.hints("parquet", "pandas.read_parquet"),
    magic=(b"PAR1", b"PARE"),
    sql=(".parquet",),
)
ARROW = Format(
    *("arrow", "Arrow IPC", "Arrow IPC files and streams, Feather"),
    aliases=("feather",),
    suffixes=(".arrow", ".feather", ".ipc"),
    plan=f"{_CODE}tables.columnar_files:arrow_source",
    writer="pyarrow.ipc:new_file",
    reads=Format.ORDERED,
    writes=Format.IN_FOLDERS,
    looks=("an Arrow IPC (Feather) file",),
    **Format.hints("arrow", "pandas.read_feather"),
    magic=(b"ARROW1",),
)
ORC = Format(
    *("orc", "ORC", "tables with types, compressed by stripe; times are read in nanoseconds, zones as UTC"),
    suffixes=(".orc",),
    plan=f"{_CODE}tables.columnar_files:orc_source",
    writer=f"{_CODE}tables.columnar_files:OrcWriter",
    needs_columns=True,
    reads=Format.ORDERED,
    writes=Format.IN_FOLDERS,
    looks=("an ORC file",),
    **Format.hints("orc", "pandas.read_orc"),
    magic=(b"ORC",),
)
NPY = Format(
    *("npy", ".npy", "an array, with a record for each index of its first axis; several files become columns"),
    suffixes=(".npy",),
    open=f"{_CODE}array_files.from_numpy_files:open_npy",
    several=True,
    write=f"{_CODE}array_files.to_numpy_files:to_npy",
    writes=frozenset({"mode", "column"}),
    compressed=True,
    looks=("a NumPy .npy file",),
    **Format.hints("npy", "numpy.load"),
    magic=(b"\x93NUMPY",),
)
NPZ = Format(
    *("npz", ".npz", "arrays of equal length, or a folder of archives, one record each"),
    suffixes=(".npz",),
    open=f"{_CODE}array_files.from_numpy_files:stream_of_npz",
    several=True,
    projects=True,
    write=f"{_CODE}array_files.to_numpy_files:to_npz",
    writes=frozenset({"mode", "compressed"}),
    looks=("a zip archive (such as .npz)",),
    **Format.hints("npz", "numpy.load", where="if it is .npz, "),
    magic=(b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"),
)
HDF5 = Format(
    *("hdf5", "HDF5", "datasets of equal length become columns, those in groups as ``group/name``; or groups records"),
    aliases=("h5",),
    suffixes=(".h5", ".hdf5"),
    open=f"{_CODE}array_files.hdf5_files:open_hdf5",
    several=True,
    projects=True,
    write=f"{_CODE}array_files.hdf5_files:to_hdf5",
    reads=_LABELLED | {"episodes"},
    writes=frozenset({"mode", "compressed", "episodes"}),
    looks=("an HDF5 file",),
    **Format.hints("hdf5", "h5py.File"),
    magic=(b"\x89HDF\r\n\x1a\n",),
    extra="hdf5",
)
NETCDF = Format(
    *("netcdf", "NetCDF", "variables that share a dimension become columns; xarray decodes packed values and times"),
    aliases=("nc",),
    suffixes=(".nc", ".nc4", ".cdf"),
    open=f"{_CODE}array_files.netcdf_files:open_netcdf",
    projects=True,
    write=f"{_CODE}array_files.netcdf_files:to_netcdf",
    reads=_LABELLED,
    writes=frozenset({"mode", "compressed"}),
    looks=("a NetCDF file",),
    **Format.hints("netcdf", "xarray.open_dataset"),
    magic=(b"CDF\x01", b"CDF\x02", b"CDF\x05"),
    extra="netcdf",
)
ZARR = Format(
    *("zarr", "Zarr", "a folder with arrays of equal length, which become columns, those in groups as ``group/name``"),
    suffixes=(".zarr",),
    folders=(".zgroup|.zarray|zarr.json",),
    open=f"{_CODE}array_files.zarr_folders:open_zarr",
    projects=True,
    write=f"{_CODE}array_files.zarr_folders:to_zarr",
    reads=_LABELLED,
    writes=frozenset(),
    extra="zarr",
)
IDX = Format(
    *("idx", "IDX", "the format of MNIST, ``train-images-idx3-ubyte.gz``; several files become columns"),
    pattern=r"[-_.]idx[0-9]+[-_.]u?(byte|short|int|float|double)(\.gz)?$|\.idx[0-9]$",
    open=f"{_CODE}array_files.from_numpy_files:open_idx",
    several=True,
    compressed=True,
    looks=("an IDX file, the format of MNIST",),
    **Format.hints("idx"),
    magic=tuple(bytes((0, 0, dtype, axes)) for dtype in (0x08, 0x09, *range(0x0B, 0x0F)) for axes in range(1, 6)),
)
LIBSVM = Format(
    *("libsvm", "libsvm", "labels and sparse rows as lines of text, ``1 3:0.5 7:2``"),
    aliases=("svmlight",),
    suffixes=(".libsvm", ".svm", ".svmlight"),
    plan=f"{_CODE}tables.libsvm_files:libsvm_source",
    reads=Format.ORDERED | {"zero_based", "n_features"},
    compressed=True,
    typed=False,
)


class Formats(Registry[Format]):
    """The formats; those of the core are attributes, too."""

    tfrecord, csv, tsv, jsonl, parquet, arrow, orc = TFRECORD, CSV, TSV, JSON, PARQUET, ARROW, ORC
    npy, npz, hdf5, netcdf, zarr, idx, libsvm = NPY, NPZ, HDF5, NETCDF, ZARR, IDX, LIBSVM

    FOLDERS: ClassVar = {"images": "images", "all": "files"}  # the names of formats by ``files=``, where that names one

    def of_name(self, plain: str) -> Format | None:
        """The format of a path in lower case, without the suffix of a compression."""

        def match_pattern(rows: Iterable[Format]) -> Format | None:
            return next((row for row in rows if row.pattern and re.search(row.pattern, plain)), None)

        core_format = match_pattern(self.core) or self.of_path(plain)
        return (
            match_pattern(self) if core_format is None and not plain.endswith(Registry.RECORD_SUFFIXES) else core_format
        )

    def of_records(self, name: str, plain: str | None = None) -> Format | None:
        """The format, with a `content`, of a file of this name; `plain` is without the suffix of a compression.

        The number of a shard may follow the suffix.

        >>> FORMATS.of_records("mine-train.array_record-00000-of-00002").name, FORMATS.of_records("a.tfrecord")
        ('array_record', None)
        """
        row = self.of_path(_SHARD_NUMBER.sub("", name))
        if row is None and plain is not None:
            packed = self.of_path(_SHARD_NUMBER.sub("", plain))
            row = packed if packed is not None and packed.compressed else None
        return row if row is not None and row.content is not None else None

    def choices(self, *, written: bool = False) -> tuple[str, ...]:
        """The values of ``source_format=``, or with `written` of ``target_format=``."""
        return tuple(key for row in self if (row.is_target if written else row.is_source) for key in row.keys)

    def own_options(self) -> list[type[Options]]:
        """The keywords of `tfrecord_io.convert` that the formats of this package have."""
        return [FormatOptions, *dict.fromkeys(row.options for row in self.own if row.options is not None)]


FORMATS = Formats(
    *("file format", Format),
    (TFRECORD, CSV, TSV, JSON, PARQUET, ARROW, ORC, NPY, NPZ, HDF5, NETCDF, ZARR, IDX, LIBSVM),
    "tfrecord_io.formats",
)
