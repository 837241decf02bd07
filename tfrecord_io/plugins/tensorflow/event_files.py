"""TensorBoard's event files: TFRecord files of Event messages, of which the scalars are read as a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from google.protobuf.message import DecodeError as ProtobufError

from tfrecord_io import RecordReader
from tfrecord_io.apps.file_formats.choose_formats import is_directory
from tfrecord_io.apps.lazy_dataset import dataset
from tfrecord_io.base import StorageOptions
from tfrecord_io.bytes import MessageClasses
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import Dtype, ProgressMeter, ReadOptions, check_keywords
from tfrecord_io.store import Folder, Source, resolve_inputs
from tfrecord_io.typing import OnError, Path, ProgressLike, StorageLike

# From tensorflow/core/util/event.proto and tensorflow/core/framework/summary.proto; the fields of other content are
# left out here, and skipped.
_MESSAGES = {
    "PluginData": "plugin_name 1 string",
    "SummaryMetadata": "plugin_data 1 PluginData",
    "Value": "tag 1 string, simple_value 2 float|value, tensor 8 bytes|value, metadata 9 SummaryMetadata",
    "Summary": "value 1 *Value",
    "Event": "wall_time 1 double, step 2 int64, summary 5 Summary",
}
_Event = MessageClasses("tfrecord_io/event.proto", "tensorflow", _MESSAGES)["Event"]

SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "tag": pa.string(),
        "step": pa.int64(),
        "wall_time": pa.timestamp("us", "UTC"),
        "value": pa.float64(),
    }
)
_PART = "tfevents"  # of the names of all event files
_PLUGIN = "scalars"


class _Scalar(NamedTuple):
    tag: str
    step: int
    seconds: float  # since 1970
    value: float


@check_keywords
def read_events(
    path: Path | Iterable[Path],
    *,
    on_error: OnError = "stop",
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> pa.Table:
    """Read the scalars of TensorBoard's event files as a table, with a row for each value.

    >>> import tfrecord_io as tfr
    >>> loss = bytes.fromhex("09000000000065da41 1007 2a0d0a0b 0a046c6f7373 150000003f")
    >>> with tfr.RecordWriter("events.out.tfevents.1") as writer:
    ...     writer.write(loss)
    >>> tfr.formats.read_events("events.out.tfevents.1").select(
    ...     ["tag", "step", "value"]
    ... ).to_pylist()
    [{'tag': 'loss', 'step': 7, 'value': 0.5}]

    Parameters
    ----------
    path : str, PathLike or list of those
        A log directory, below which all files with ``tfevents`` in their names are read, each directory being a run;
        or event files, as in `read_table`.
    on_error : {"stop", "raise", "skip"} or callable
        At damaged records. "stop", the default, uses the records before them, with a StoppedEarlyWarning: a process
        that still writes leaves its last record incomplete for a while. The others are as in `RecordReader`.
    storage_options, progress
        As in `read_table`.

    Returns
    -------
    pyarrow.Table
        With the columns ``run`` (the directory of the file relative to `path`, "." for `path` itself; of files that are
        given directly, their directory), ``tag``, ``step``, ``wall_time`` (microseconds, in UTC; null if it is out of
        range) and ``value`` (float64), in the order of runs, files and records. Scalars of TensorFlow 1
        (`simple_value`) and 2 (tensors of the plugin ``scalars``) are read, also as written by PyTorch and others;
        images, histograms and graphs are not.

    Raises
    ------
    DecodeError
        A record is not an Event.
    CorruptRecordError, TruncatedRecordError
        A file is damaged, and `on_error` is "raise".
    FileNotFoundError
        Nothing matches `path`, or the directory has no event files.
    """
    options = ReadOptions.from_keywords(
        {"on_error": on_error, "storage_options": storage_options, "progress": progress}
    )
    storage = options.storage
    runs: list[str] = []
    scalars: list[_Scalar] = []
    files = list(_event_files(path, storage))
    with ProgressMeter(options.progress, Source.total(size for _, _, size in files), "bytes") as meter:
        for run, file, size in files:
            with RecordReader(dataset(file, **storage.keywords), on_error=on_error) as records:
                for scalar in _scalars(records, file):
                    runs.append(run)
                    scalars.append(scalar)
            meter.advance(size or 0)
    columns = [list(column) for column in zip(*scalars, strict=True)] or [[], [], [], []]
    tags, steps, seconds, values = columns
    return pa.table([runs, tags, steps, _times(seconds), values], schema=SCHEMA)


def _event_files(path: Path | Iterable[Path], storage: StorageOptions) -> Iterator[tuple[str, str, int | None]]:
    """(run, path, bytes) of each event file."""
    if not isinstance(path, str | os.PathLike) or not is_directory(os.fspath(path), storage):
        for source in resolve_inputs(path, storage):
            yield source.path.rpartition("/")[0] or ".", source.path, source.size
        return
    folder = Folder.list_files(os.fspath(path), storage)
    event_files = [file for file in folder.files if _PART in file.entry.basename]
    if not event_files:
        raise FileNotFoundError(f"no event files, whose names contain '{_PART}', below '{folder.path}'")
    for file in event_files:
        yield file.name.rpartition("/")[0] or ".", folder.fs.display_path(file.entry.name), file.entry.size


def _scalars(records: RecordReader, path: str) -> Iterator[_Scalar]:
    plugins: dict[str, str] = {}  # by tag: only the first value of a tag states its plugin
    for number, payload in enumerate(records):
        try:
            event = MessageClasses.parse(_Event, payload)
        except ProtobufError as error:
            reason = "the record is not an Event: these are not TensorBoard's files"
            raise DecodeError(reason, path=path, record=number) from error
        for value in event.summary.value:
            if value.HasField("metadata"):
                plugins.setdefault(value.tag, value.metadata.plugin_data.plugin_name)
            number_of = _value(value, plugins.get(value.tag), path, number)
            if number_of is not None:
                yield _Scalar(value.tag, event.step, event.wall_time, number_of)


def _value(value: Any, plugin: str | None, path: str, record: int) -> float | None:
    """The number of a Summary.Value; None if it is not a scalar."""
    if value.WhichOneof("value") == "simple_value":
        return float(value.simple_value)
    if value.WhichOneof("value") != "tensor" or plugin not in (None, "", _PLUGIN):
        return None
    import tfrecord_io as tfr

    try:
        array = tfr.io.parse_tensor(value.tensor)
    except DecodeError as error:
        if plugin != _PLUGIN:
            return None  # of a kind that holds no numbers
        error.path, error.record = path, record
        raise
    is_number = array.dtype.kind in "fiub" or Dtype.extension_of(array.dtype) is not None
    return float(array.item()) if array.size == 1 and is_number else None


def _times(seconds: list[float]) -> pa.Array:
    """Microseconds; null where they are out of range."""
    exact = np.array(seconds, np.float64)
    in_range = np.abs(exact) < 2**62 / 1e6
    return pa.array(np.where(in_range, np.rint(exact * 1e6), 0).astype("int64"), mask=~in_range).cast(
        pa.timestamp("us", "UTC")
    )
