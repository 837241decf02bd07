"""Types of the parameters and of the results of public calls.

Arrow data is described by protocols, as pyarrow has no type information.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from tfrecord_io.base.public_names import attach as _attach

if TYPE_CHECKING:
    import numpy as np

    from tfrecord_io.apps.derived_datasets import MixedDataset as MixedDataset
    from tfrecord_io.apps.derived_datasets import WindowedDataset as WindowedDataset
    from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream as ArrayStream
    from tfrecord_io.apps.follow import Follower as Follower
    from tfrecord_io.apps.lazy_dataset import DatasetPiece as DatasetPiece
    from tfrecord_io.columns.schema.field import Field as Field
    from tfrecord_io.columns.schema.inferred_schema import InferredSchema as InferredSchema
    from tfrecord_io.plugins.browse.browse_server import BrowseServer as BrowseServer
    from tfrecord_io.plugins.report.dataset_report import DatasetReport as DatasetReport
    from tfrecord_io.read.chunks.skipped_region import SkippedRegion as SkippedRegion
    from tfrecord_io.read.explanation import Explanation as Explanation
    from tfrecord_io.read.explanation import FilePlan as FilePlan
    from tfrecord_io.read.explanation import FilterPlan as FilterPlan
    from tfrecord_io.read.random_access import RandomAccess as RandomAccess
    from tfrecord_io.read.random_access import SelectedRecords as SelectedRecords
    from tfrecord_io.read.reader import Reader as Reader
    from tfrecord_io.read.report import ReadReport as ReadReport
    from tfrecord_io.read.type_suggestions import Suggestion as Suggestion
    from tfrecord_io.rows.training.iterator import ArrayIterator as ArrayIterator
    from tfrecord_io.write.deleting import DeleteReport as DeleteReport
    from tfrecord_io.write.writer import Writer as Writer
    from tfrecord_io.write.writer import WriteReport as WriteReport

__all__ = [
    "UNSET",
    "ArrayIterator",
    "ArrayLayout",
    "ArrayStream",
    "ArrowArray",
    "ArrowDataset",
    "ArrowScanner",
    "ArrowSchema",
    "ArrowStream",
    "ArrowTable",
    "BrowseServer",
    "BytesLike",
    "CacheFolder",
    "Compression",
    "DatasetPiece",
    "DatasetReport",
    "DeleteReport",
    "DtypeBackend",
    "Explanation",
    "Field",
    "FileMode",
    "FilePlan",
    "FileSystemLike",
    "FilesLike",
    "FilterPlan",
    "Float64",
    "Follower",
    "ImageFit",
    "ImageLayout",
    "ImageResample",
    "IndexLike",
    "InferredSchema",
    "InputPath",
    "InvalidBoxes",
    "KeepKey",
    "LabelledArrays",
    "LazyTable",
    "Lengths",
    "Masks",
    "MessageClass",
    "Missing",
    "MissingFiles",
    "MixStop",
    "MixedDataset",
    "OnError",
    "OnErrorCollecting",
    "OnErrorName",
    "OnErrorNameCollecting",
    "OnFileError",
    "OnNew",
    "OpenedDataset",
    "OutputPath",
    "Partitions",
    "Path",
    "Progress",
    "ProgressLike",
    "RandomAccess",
    "ReadReport",
    "ReadableFile",
    "Reader",
    "RecordTypeLike",
    "RecordTypeName",
    "SchemaLike",
    "SelectedRecords",
    "SkippedRegion",
    "Suggestion",
    "SourceFormat",
    "StorageLike",
    "Table",
    "TableLike",
    "TargetFormat",
    "UnevenParts",
    "Unset",
    "WindowPad",
    "WindowedDataset",
    "WritableFile",
    "WriteMode",
    "WriteReport",
    "Writer",
]

__getattr__, _names_of_results, _ = _attach("typing", globals())


def __dir__() -> list[str]:
    return sorted({*__all__, *_names_of_results()})


class Unset(Enum):
    """The type of `UNSET`, the default of a keyword that a dataset may have stated.

    A call that passes its own keyword on passes UNSET where its caller states nothing: the option of the dataset holds
    then, and without a dataset the default that the documentation of the keyword states.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> from tfrecord_io.typing import UNSET, ProgressLike, Unset
    >>> def rows(source, progress: ProgressLike | Unset = UNSET):
    ...     return tfr.read_table(source, progress=progress).num_rows
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
    >>> rows(tfr.dataset("three.tfrecord"))
    3
    """

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    __str__ = __repr__


UNSET: Final = Unset.UNSET

# The values of keywords.
ArrayLayout = Literal["object", "offsets", "pad", "csr"]
DtypeBackend = Literal["numpy_nullable", "pyarrow"]
Float64 = Literal["round", "error", "raw"]
ImageFit = Literal["stretch", "contain", "crop", "pad"]
ImageLayout = Literal["HWC", "CHW"]
ImageResample = Literal["bilinear", "nearest"]
InvalidBoxes = Literal["skip", "clip", "keep", "raise"]
KeepKey = Literal["first"]
Masks = Literal["json", "png"]
Missing = Literal["error", "mask"]
MissingFiles = Literal["raise", "null"]
OnErrorName = Literal["raise", "stop", "skip"]
OnErrorNameCollecting = Literal["raise", "stop", "skip", "collect"]
OnFileError = Literal["raise", "skip"]
OnNew = Literal["raise", "ignore"]
MixStop = Literal["first", "all", "never"]
WindowPad = Literal["none", "edge"]
Partitions = Literal["features", "folders", "drop"]
RecordTypeName = Literal["example", "sequence_example", "bytes"]
FileMode = Literal["error", "overwrite"]
WriteMode = Literal["error", "overwrite", "append", "overwrite_partitions"]
_Tables = Literal["csv", "tsv", "jsonl", "json", "parquet", "arrow", "feather", "orc"]
_Arrays = Literal["npy", "npz", "hdf5", "h5", "netcdf", "nc", "zarr"]
_Annotations = Literal["tar", "coco", "voc", "yolo"]
SourceFormat = Literal[
    "tfrecord",
    _Tables,
    _Arrays,
    "idx",
    "libsvm",
    "svmlight",
    _Annotations,
    "lerobot",
    "images",
    "files",
    "elwc",
    "array_record",
    "tfds",
]
TargetFormat = Literal["tfrecord", _Tables, _Arrays, _Annotations, "lerobot", "images", "files", "array_record", "tfds"]
UnevenParts = Literal["keep", "pad", "drop"]
Compression = Literal["infer", "gzip", "zlib", "zstd", "lz4"]
"""Those of this package: rows of `tfrecord_io.bytes.compression.CODECS`."""
OnError = OnErrorName | Callable[[Any], object]
"""What to do at damage; a callable gets the TFRecordError and returns True to go on."""
OnErrorCollecting = OnErrorNameCollecting | Callable[[Any], object]
"""The same for calls whose result has a report: "collect" makes a row of its table of each damaged region."""


IndexLike = bool | str | Sequence[str]
"""True: an index of record offsets. Columns, as `tfrecord_io.build_index` takes them: a column index."""
CacheFolder = str | os.PathLike[str] | tuple[str | os.PathLike[str], int]
"""A local directory, alone or with the most bytes that rows take there."""
Lengths = int | tuple[int, str]
"""A number of values, alone or with a mode: ``(512, "left")`` keeps the last, ``(64, "multiple")`` pads to one."""


class MessageClass(Protocol):
    """A class of protobuf messages, as generated by protoc."""

    DESCRIPTOR: Any


class ReadableFile(Protocol):
    """A binary file object, which is read from its position; one at its end, as writing leaves it, from its start."""

    def read(self, size: int, /) -> bytes: ...


class OpenedDataset(Protocol):
    """A `tfrecord_io.Dataset`, or a piece of one: with its options, and the columns and rows that it selects."""

    @property
    def files(self) -> list[str]: ...

    def count_rows(self) -> int: ...


class FileSystemLike(Protocol):
    """A filesystem of fsspec or of pyarrow.fs; these have one method in common that a dict has not."""

    def move(self, *args: Any, **keywords: Any) -> Any: ...


class WritableFile(Protocol):
    """A binary file object to write to."""

    def write(self, data: bytes, /) -> Any: ...


class ArrowStream(Protocol):
    """A table of Arrow data, such as a pandas or polars DataFrame, a pyarrow Table or a `tfrecord_io.typing.Reader`."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> object: ...


class ArrowArray(Protocol):
    """A batch of Arrow data, such as a pyarrow RecordBatch."""

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[object, object]: ...


class ArrowSchema(Protocol):
    """A schema, such as a pyarrow Schema or a `tfrecord_io.Schema`."""

    def __arrow_c_schema__(self) -> object: ...


class LazyTable(Protocol):
    """A polars LazyFrame."""

    def collect(self, *args: Any, **keywords: Any) -> Any: ...


class ArrowDataset(Protocol):
    """A pyarrow Dataset."""

    def scanner(self, *args: Any, **keywords: Any) -> Any: ...


class ArrowScanner(Protocol):
    """A pyarrow Scanner."""

    def to_reader(self) -> Any: ...


class LabelledArrays(Protocol):
    """A Dataset or a DataArray of xarray."""

    def to_dataframe(self, *args: Any, **keywords: Any) -> Any: ...


@dataclass(frozen=True)
class Progress:
    """How much of a call is done: what a function gets that is passed as ``progress=``.

    Attributes
    ----------
    done : int
        It never decreases.
    total : int or None
        What `done` is at the end, unless the call ends early (``limit=``, damage); None if it is not known.
    unit : {"bytes", "rows", "records"}
        Bytes are those of the files that are read, compressed if they are. Rows are counted where data is written that
        is not read from files by the same call.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"x": [1, 2, 3]}, "three.tfrecord", embed_schema=False, progress=print
    ... )
    Progress(done=3, total=3, unit='rows')
    >>> table = tfr.read_table(
    ...     "three.tfrecord",
    ...     progress=lambda p: print(f"{p.done / p.total:.0%} of {p.total} bytes"),
    ... )
    100% of 90 bytes
    """

    done: int
    total: int | None
    unit: Literal["bytes", "rows", "records"]


ProgressLike = bool | Callable[[Progress], object]
"""Whether to show a bar, or a function that is called."""
StorageLike = Mapping[str, Any] | FileSystemLike
"""Options of the filesystem that a URL names, or a filesystem that paths are in."""
BytesLike = bytes | bytearray | memoryview
Path = str | os.PathLike[str]
RecordTypeLike = RecordTypeName | type[MessageClass] | tuple[Path | bytes, str]
"""What a record is; of a message that has no class, a descriptor set and the name."""
FilesLike = Path | OpenedDataset | Iterable[Path | OpenedDataset]
"""What is read more than once: paths, datasets, or a list of those."""
InputPath = Path | ReadableFile | OpenedDataset | Iterable[Path | ReadableFile | OpenedDataset]
OutputPath = Path | WritableFile
SchemaLike = ArrowSchema | Mapping[str, Any]
ArrowTable = ArrowStream | ArrowArray | LazyTable | ArrowDataset | ArrowScanner | LabelledArrays
if TYPE_CHECKING:
    _StructuredArray: TypeAlias = np.ndarray[Any, np.dtype[np.void]]
else:
    _StructuredArray = Any  # importing numpy takes longer than the rest of `tfr --help`
Table: TypeAlias = ArrowTable | Mapping[str, Any] | _StructuredArray
TableLike: TypeAlias = Table | Iterable[Table | Sequence[Mapping[str, Any]]]
