"""Episodes in the layout of LeRobot, version 3.0: Parquet files of frames, and what ``meta/`` says about them.

The layout is that of lerobot/datasets/dataset_metadata.py and io_utils.py: ``data/chunk-000/file-000.parquet`` has a
row for each frame, ``meta/episodes/`` one for each episode, ``meta/tasks.parquet`` one for each task,
``meta/info.json`` the features.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path as LocalPath
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrays.image_decoding import PixelReader
from tfrecord_io.arrow.buffers import int64_array
from tfrecord_io.arrow.image_header import image_header
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.display import counted
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import (
    DecodeError,
    EncodeError,
    FeatureNotFoundError,
    SchemaError,
    SchemaWarning,
    printable,
    say,
    warn,
)
from tfrecord_io.format.dtypes import DTYPE_KEY
from tfrecord_io.options import MIB, check_integer
from tfrecord_io.options.write import ExportOptions
from tfrecord_io.read.explode import RECORD, STEP, explode, step_columns
from tfrecord_io.read.open_scan import open_path
from tfrecord_io.schema.image_form import ImageForm
from tfrecord_io.schema.types import is_bytes, is_number, is_text
from tfrecord_io.storage.filesystem.locate import is_url
from tfrecord_io.storage.write.new_folder import NewFolder, new_folder
from tfrecord_io.typing import FilesLike, Path
from tfrecord_io.write.writer import WriteReport

VERSION = "v3.0"
_FILE = "chunk-{chunk:03d}/file-{file:03d}.parquet"
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_FILES_IN_CHUNK = 1000
_FILE_MB = 100  # from which on the next episodes are in another file
_TASKS = ("language_instruction", "natural_language_instruction")  # the second is that of RT-1
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_OWN = {"timestamp": "float32", **dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "int64")}
_ADVICE = say("leave it out, as with {columns=['!name']}")


@dataclass(slots=True)
class _Feature:
    """A column of frames: its name in LeRobot, its type and shape, and what was found in its values."""

    column: str
    name: str
    kind: str  # NumPy's name of a dtype, "string" or "image"
    type: pa.DataType
    shape: tuple[int, ...] = (1,)  # () of images, until there is one
    count: int = 0  # of frames
    rows: int = 0  # of values: pixels of images
    mean: Any = 0.0
    squares: Any = 0.0  # the sum of squared differences from the mean
    least: Any = math.inf
    most: Any = -math.inf

    def array(self, column: pa.Array, rows: Array) -> pa.Array:
        """The values of some frames, as LeRobot stores them, and the records that they are of."""
        missing = partial(EncodeError, "LeRobot has no missing values", feature=self.column, advice="fill them")
        if column.null_count:
            raise missing(record=int(rows[int(np.asarray(column.is_null()).argmax())]))
        if self.kind == "image":
            for at, image in enumerate(column):
                self._check_image(image.as_buffer().to_pybytes(), int(rows[at]))
            paths = pa.nulls(len(column), pa.string())
            return pa.StructArray.from_arrays([column.cast(pa.binary()), paths], fields=list(_IMAGE))
        if self.kind == "string":
            return column.cast(pa.string())
        column = getattr(column, "storage", column)
        values = column
        while t.is_fixed_size_list(values.type):
            values = values.flatten()
        if values.null_count:
            raise missing(record=int(rows[int(np.asarray(values.is_null()).argmax()) // (len(values) // len(rows))]))
        numbers = values.to_numpy(zero_copy_only=False)
        self._note(numbers.reshape(len(column), -1).astype(np.float64), len(column))
        return values if self.shape == (1,) else column

    def note_image(self, data: bytes, row: int) -> None:
        """Take an image into the statistics, by its channels from 0 to 1."""
        self._check_image(data, row)
        try:
            _, pixels = PixelReader.for_column(self.column, ImageForm(mode="unchanged")).read((row, data))
        except RowFault as fault:
            raise fault.to_error(None, row) from fault
        self._note(pixels.reshape(-1, self.shape[-1]) / 255, 1)

    def _check_image(self, data: bytes, row: int) -> None:
        """Refuse an image that is not like the first, or has pixels that are not colours of 8 bits."""
        try:
            header = image_header(data, "", self.column)
        except DecodeError as error:
            raise EncodeError(error.reason, feature=self.column, record=row, expected=error.expected) from None
        shape = (*header.turned_size, header.channels)
        if header.bits > 8 or header.has_palette or header.mode == "CMYK":
            got = "a palette" if header.has_palette else f"{header.mode} of {header.bits} bits"
            expected = "grey or RGB of 8 bits"
            reason = f"the image has {got}; LeRobot has {expected}"
        elif shape != (self.shape or shape):
            (height, width, channels), (h, w, c) = self.shape, shape
            expected, got = f"{height}×{width} with {channels} channels", f"{h}×{w} with {c}"
            reason = f"the image is of {got}, the first of {expected}; LeRobot has one shape for all"
        else:
            self.shape = shape
            return
        advice = "convert the images" | say("leave the column out, as with {columns=['!name']}")
        raise EncodeError(reason, feature=self.column, record=row, expected=expected, got=got, advice=advice)

    def _note(self, numbers: Any, count: int) -> None:
        if len(numbers):
            rows, mean = self.rows + len(numbers), numbers.mean(0)
            apart = mean - self.mean
            self.squares += ((numbers - mean) ** 2).sum(0) + apart**2 * (self.rows * len(numbers) / rows)
            self.mean += apart * (len(numbers) / rows)
            self.count, self.rows = self.count + count, rows
            self.least, self.most = np.minimum(self.least, numbers.min(0)), np.maximum(self.most, numbers.max(0))

    def statistics(self) -> dict[str, Any]:
        deviation = np.sqrt(self.squares / self.rows)
        found = {"min": self.least, "max": self.most, "mean": self.mean, "std": deviation}
        shape = (self.shape[-1], 1, 1) if self.kind == "image" else self.shape
        return {**{key: each.reshape(shape).tolist() for key, each in found.items()}, "count": [self.count]}

    def description(self) -> dict[str, Any]:
        names = ["height", "width", "channels"] if self.kind == "image" else None
        return {"dtype": self.kind, "shape": list(self.shape), "names": names}


def convert_to_lerobot(
    source: FilesLike,
    target: Path,
    *,
    fps: int | None = None,
    prefix: str = "steps",
    task: str | None = None,
    **keywords: Any,
) -> WriteReport:
    """Write the episodes of TFRecord files as a local folder in LeRobot's layout, a file of frames after the other.

    The columns of steps are those named ``<prefix>/…``, as for `tfrecord_io.explode`. `task` is the column with the
    task of a step or an episode, text or its bytes, with or without the names before a slash; by default one of
    `_TASKS`. Without one, tasks are empty, with a warning.
    """
    if fps is None:
        raise TypeError(say("LeRobot needs {fps=}, the frames per second"))
    fps = check_integer("fps", fps, 1)
    if is_url(target):
        raise ValueError(f"'{os.fspath(target)}': a folder of LeRobot is written locally; upload it from there")
    options = ExportOptions.from_keywords(keywords, None, source)
    with ExitStack() as opened:
        reader = opened.enter_context(open_path(source, options))
        seen = [0]
        steps = explode(pa.RecordBatchReader.from_batches(reader.schema, _counted(reader, seen)), prefix=prefix)
        folder = opened.enter_context(new_folder(os.fspath(target), options.target))
        names = step_columns(reader.schema, prefix)
        frames = opened.enter_context(_Frames(folder, steps.schema, names, prefix, task, fps))
        for batch in steps:
            if len(batch):
                frames.write(batch)
        frames.finish(seen[0])
    return WriteReport(os.fspath(target), frames.rows, frames.bytes, None, tuple(f.name for f in frames.features), {})


def _counted(batches: Iterable[pa.RecordBatch], seen: list[int]) -> Iterator[pa.RecordBatch]:
    """The batches; their rows are added to the number in `seen`."""
    for batch in batches:
        seen[0] += len(batch)
        yield batch


class _Frames(AbstractContextManager["_Frames"]):
    """Writes frames, and collects what is in ``meta/``; a context manager that closes the file."""

    def __init__(
        self, folder: NewFolder, schema: pa.Schema, of_steps: Sequence[str], prefix: str, task: str | None, fps: int
    ) -> None:
        self._folder, self._fps, self._prefix = folder, fps, f"{prefix.rstrip('/')}/"
        self._of_episodes = [name for name in schema.names if name not in (*of_steps, RECORD, STEP)]
        self._task = self._task_column(schema, task)
        self.features = [self._feature(schema.field(name)) for name in of_steps if name != self._task]
        _refuse_twice([*(feature.name for feature in self.features), *_OWN])
        self._tasks: dict[str, int] = {}
        self._episodes: list[dict[str, Any]] = []
        self.rows = self.bytes = 0
        self._file = -1
        self._writer: Any = None

    def __exit__(self, *_: object) -> None:
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()

    def _task_column(self, schema: pa.Schema, task: str | None) -> str | None:
        """The column of text with this name, or one of the known names: of steps, inside them, or of episodes."""
        texts = [column.name for column in schema if is_text(column.type) or is_bytes(column.type)]
        inside = sorted(texts, key=lambda name: not name.startswith(self._prefix))
        for wanted in _TASKS if task is None else (task,):
            for name in (f"{self._prefix}{wanted}", wanted, *inside):
                if name in texts and f"/{name}".endswith(f"/{wanted}"):
                    return name
        if task is not None:
            raise FeatureNotFoundError("no column of text has the tasks", feature=task, expected=schema.names)
        reason = f"no column is named {' or '.join(_TASKS)}, so the tasks of LeRobot are empty"
        warn(say("{}: {task=} (--task) names a column of text with them", reason), SchemaWarning)
        return None

    def _texts(self, batch: pa.RecordBatch, records: Array) -> list[str]:
        """The task of each frame."""
        if self._task is None:
            return [""] * len(batch)
        texts = []
        for row, text in enumerate(batch[self._task].to_pylist()):
            try:
                texts.append(text.decode() if isinstance(text, bytes) else text or "")
            except UnicodeDecodeError as error:
                reason = f"a task is not text: {printable(str(error), 120)}"
                advice = say("{task=} (--task) names the column of text with the tasks")
                raise EncodeError(reason, feature=self._task, record=int(records[row]), advice=advice) from None
        return texts

    def _feature(self, column: pa.Field) -> _Feature:
        name, type_ = column.name.removeprefix(self._prefix).replace("/", "."), column.type
        if is_bytes(type_):
            front, _, last = name.rpartition(".")
            return _Feature(
                column.name, f"{front}.images.{last}" if front == "observation" else name, "image", _IMAGE, ()
            )
        if is_text(type_):
            return _Feature(column.name, name, "string", pa.string())
        is_vector = isinstance(type_, pa.FixedShapeTensorType) and len(type_.shape) == 1
        if is_vector and DTYPE_KEY not in (column.metadata or {}):
            type_ = type_.storage_type
        inner, shape = type_, []
        while t.is_fixed_size_list(inner):
            shape.append(inner.list_size)
            inner = inner.value_type
        if not (is_number(inner) or t.is_boolean(inner)) or t.is_decimal(inner) or len(shape) > 1 or 0 in shape:
            reason = "a feature of LeRobot is a number, text, an image, or a list of numbers of one length"
            raise SchemaError(reason, feature=column.name, got=str(type_), advice=_ADVICE)
        kind = str(np.dtype(inner.to_pandas_dtype()))
        is_single = shape in ([], [1])
        return _Feature(column.name, name, kind, inner if is_single else type_, tuple(shape) or (1,))

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the frames of whole episodes."""
        records, steps = batch[RECORD].to_numpy(), batch[STEP].to_numpy()
        begins = np.flatnonzero(steps == 0)
        ends = np.append(begins[1:], len(batch))
        texts = self._texts(batch, records)
        tasks = [self._tasks.setdefault(text, len(self._tasks)) for text in texts]
        writer = self._open_file()
        first = len(self._episodes)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            episode = {
                "episode_index": len(self._episodes),
                "tasks": list(dict.fromkeys(texts[begin:end])),
                "length": end - begin,
                "data/chunk_index": self._file // _FILES_IN_CHUNK,
                "data/file_index": self._file % _FILES_IN_CHUNK,
                "dataset_from_index": self.rows + begin,
                "dataset_to_index": self.rows + end,
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
            }
            for feature in self.features:
                if feature.kind == "image":
                    middle = (begin + end) // 2
                    feature.note_image(batch[feature.column][middle].as_py() or b"", int(records[middle]))
            more = {name: batch[name][begin].as_py() for name in self._of_episodes}
            _refuse_twice([*episode, *more])
            self._episodes.append(episode | more)
        numbers = np.repeat(np.arange(first, len(self._episodes)), ends - begins)
        own = {
            "timestamp": pa.array((steps / self._fps).astype(np.float32)),
            "frame_index": int64_array(steps),
            "episode_index": int64_array(numbers),
            "index": int64_array(np.arange(self.rows, self.rows + len(batch))),
            "task_index": pa.array(tasks, pa.int64()),
        }
        arrays = [feature.array(batch[feature.column], records) for feature in self.features]
        writer.write_batch(pa.RecordBatch.from_arrays([*arrays, *own.values()], schema=self._schema()))
        self.rows += len(batch)

    def _schema(self) -> pa.Schema:
        fields = [pa.field(feature.name, feature.type) for feature in self.features]
        own = [pa.field(name, pa.type_for_alias(kind)) for name, kind in _OWN.items()]
        features = {feature.name: _hf_feature(feature.type) for feature in self.features}
        features |= {name: {"dtype": kind, "_type": "Value"} for name, kind in _OWN.items()}
        metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        return pa.schema([*fields, *own], metadata)

    def _open_file(self) -> Any:
        """The writer of the file that the next episodes are written to."""
        from pyarrow import parquet

        if self._writer is None or self._path().stat().st_size > _FILE_MB * MIB:
            self._close_file()
            self._file += 1
            self._writer = parquet.ParquetWriter(self._path(), self._schema())
        return self._writer

    def _path(self) -> LocalPath:
        place = _FILE.format(chunk=self._file // _FILES_IN_CHUNK, file=self._file % _FILES_IN_CHUNK)
        return self._local(f"data/{place}")

    def _close_file(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self.bytes += self._path().stat().st_size
            self._writer = None

    def _local(self, name: str) -> LocalPath:
        path = LocalPath(self._folder.table(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def finish(self, records: int) -> None:
        """Write ``meta/``."""
        import pandas as pd
        from pyarrow import parquet

        self._close_file()
        if not self._episodes:
            raise EncodeError("there is no episode with steps to write")
        if records > len(self._episodes):
            left_out = counted(records - len(self._episodes), "episode")
            warn(f"{left_out} without steps: LeRobot has no such episodes, so they are left out", SchemaWarning)
        episodes = self._local("meta/episodes/" + _FILE.format(chunk=0, file=0))
        parquet.write_table(pa.Table.from_pylist(self._episodes), episodes)
        tasks = pd.DataFrame({"task_index": list(self._tasks.values())}, index=pd.Index(self._tasks, name="task"))
        tasks.to_parquet(self._local("meta/tasks.parquet"))
        described = {feature.name: feature.description() for feature in self.features}
        described |= {name: {"dtype": kind, "shape": [1], "names": None} for name, kind in _OWN.items()}
        info = {
            "codebase_version": VERSION,
            "robot_type": None,
            "total_episodes": len(self._episodes),
            "total_frames": self.rows,
            "total_tasks": len(self._tasks),
            "chunks_size": _FILES_IN_CHUNK,
            "data_files_size_in_mb": _FILE_MB,
            "video_files_size_in_mb": 200,
            "fps": self._fps,
            "splits": {"train": f"0:{len(self._episodes)}"},
            "data_path": _DATA,
            "video_path": None,
            "features": described,
        }
        statistics = {f.name: f.statistics() for f in self.features if f.kind != "string"}
        for name, document in (("meta/info.json", info), ("meta/stats.json", statistics)):
            self._local(name).write_text(json.dumps(document, indent=4, ensure_ascii=False), encoding="utf-8")


def _refuse_twice(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaError("two columns have this name in LeRobot", feature=twice, advice=_ADVICE)


def _hf_feature(type_: pa.DataType) -> dict[str, Any]:
    """The feature of Hugging Face datasets of a type, in JSON."""
    if type_ == _IMAGE:
        return {"_type": "Image"}
    if t.is_fixed_size_list(type_):
        return {"feature": _hf_feature(type_.value_type), "length": type_.list_size, "_type": "List"}
    names = {"float": "float32", "double": "float64", "halffloat": "float16"}
    return {"dtype": names.get(str(type_), str(type_)), "_type": "Value"}
