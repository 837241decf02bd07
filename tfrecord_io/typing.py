"""Types of the parameters of public calls. Arrow data is described by protocols, as pyarrow has no type information."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

if TYPE_CHECKING:
    import numpy as np

# The values of keywords. Signatures show these in place of their names.
ArrayLayout = Literal["object", "offsets", "pad"]
DtypeBackend = Literal["numpy_nullable", "pyarrow"]
Float64 = Literal["round", "error", "raw"]
InvalidBoxes = Literal["skip", "clip", "keep", "raise"]
KeepKey = Literal["first"]
Masks = Literal["json", "png"]
Missing = Literal["error", "mask"]
MissingFiles = Literal["raise", "null"]
OnErrorName = Literal["raise", "stop", "skip"]
OnFileError = Literal["raise", "skip"]
OnNew = Literal["raise", "ignore"]
MixStop = Literal["first", "all", "never"]
WindowPad = Literal["none", "edge"]
Overwrite = Literal["in_place"]
Partitions = Literal["features", "folders", "drop"]
RecordTypeName = Literal["example", "sequence_example", "bytes"]
ShardOrder = Literal["keep", "round_robin"]
WriteMode = Literal["error", "overwrite", "append", "overwrite_partitions"]
SourceFormat = str
TargetFormat = str
UnevenParts = Literal["keep", "pad", "drop"]
Compression = str
"""A row of `tfrecord_io.compression.CODECS`, or "infer"; signatures show the names."""
OnError = OnErrorName | Callable[[Any], object]
"""What to do at damage; a callable gets the TFRecordError and returns True to go on."""


Lengths = int | tuple[int, str]
"""A number of values, alone or with a mode: ``(512, "left")`` keeps the last, ``(64, "multiple")`` pads to one."""


class ReadableFile(Protocol):
    """A binary file object to read from."""

    def read(self, size: int, /) -> bytes: ...


class WritableFile(Protocol):
    """A binary file object to write to."""

    def write(self, data: bytes, /) -> Any: ...


class ArrowStream(Protocol):
    """A table of Arrow data, such as a pandas or polars DataFrame, a pyarrow Table or a `tfrecord_io.Reader`."""

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


@dataclass(frozen=True, slots=True)
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
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord", embed_schema=False, progress=print)
    Progress(done=3, total=3, unit='rows')
    >>> table = tfr.read_table("three.tfrecord", progress=lambda p: print(f"{p.done / p.total:.0%} of {p.total} bytes"))
    100% of 90 bytes
    """

    done: int
    total: int | None
    unit: Literal["bytes", "rows", "records"]


ProgressLike = bool | Callable[[Progress], object]
"""Whether to show a bar, or a function that is called."""
BytesLike = bytes | bytearray | memoryview
Path = str | os.PathLike[str]
InputPath = Path | ReadableFile | Iterable[Path | ReadableFile]
OutputPath = Path | WritableFile
SchemaLike = ArrowSchema | Mapping[str, Any]
ArrowTable = ArrowStream | ArrowArray | LazyTable | ArrowDataset | ArrowScanner
Table: TypeAlias = "ArrowTable | Mapping[str, Any] | np.ndarray[Any, np.dtype[np.void]]"
TableLike: TypeAlias = "Table | Iterable[Table | Sequence[Mapping[str, Any]]]"
