"""Episodes in the layout of LeRobot, version 3.0: Parquet files of frames, and what ``meta/`` says about them.

The layout is that of lerobot/datasets/dataset_metadata.py and io_utils.py: ``data/chunk-000/file-000.parquet`` has a
row for each frame, ``meta/episodes/`` one for each episode, ``meta/tasks.parquet`` one for each task,
``meta/info.json`` the features.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path as LocalPath
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io import explode
from tfrecord_io.base import ExportOptions
from tfrecord_io.columns import Column, ImageForm, ImageHeader, PixelReader, RawImages
from tfrecord_io.errors import DecodeError, EncodeError, FeatureNotFoundError, SchemaError, SchemaWarning
from tfrecord_io.kit import Array, Dtype, RowFault, check_integer, counted, for_cli, printable, warn
from tfrecord_io.plugins.vision.video_files import CODEC_NAME, PIXEL_FORMAT, VideoWriter
from tfrecord_io.read import CallSource, Steps
from tfrecord_io.store import Location, NewFolder
from tfrecord_io.typing import FilesLike, Path, WriteReport

VERSION = "v3.0"
_FILE = "chunk-{chunk:03d}/file-{file:03d}.parquet"
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_VIDEOS = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
_FILES_IN_CHUNK = 1000
_FILE_MB = 100  # from which on the next episodes are in another file
_VIDEO_MB = 200  # the same of videos
_EPISODES = 1024  # to write to meta/ at a time
_QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
_TASKS = ("language_instruction", "natural_language_instruction")  # the second is that of RT-1
_IMAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
_OWN = {"timestamp": "float32", **dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "int64")}
_MOST_AXES = 5  # of a value of a step, as Hugging Face datasets have Array2D to Array5D
_CHANNELS = (1, 3)  # of an array of uint8 that is an image
_ADVICE = "leave it out, as with columns=['!name']"
_ADVICE_CLI = "leave it out, as with --columns '!name'"


@dataclass(slots=True)
class _Feature:
    """A column of frames: name in LeRobot, type and shape."""

    column: str
    name: str
    kind: str  # NumPy's name of a dtype, "string" or "image"
    type: pa.DataType
    shape: tuple[int, ...] = (1,)  # () of images, until `array` gets the first one
    is_video: bool = False  # of images: they are frames of videos

    def array(self, column: pa.Array, rows: Array) -> pa.Array:
        """Convert values of some frames to LeRobot's form; `rows` are their records, for errors."""
        missing = partial(EncodeError, "LeRobot has no missing values", feature=self.column, hint="fill them")
        if column.null_count:
            raise missing(record=int(rows[int(np.asarray(column.is_null()).argmax())]))
        if self.kind == "image":
            if isinstance(column.type, pa.FixedShapeTensorType) and self.is_video:
                self.shape = (*column.type.shape[:2], 3)
                return column
            if isinstance(column.type, pa.FixedShapeTensorType):
                column = pa.array([RawImages.png(pixels) for pixels in column.to_numpy_ndarray()], pa.binary())
            for at, image in enumerate(column):
                self.shape = self._image_shape(image.as_buffer().to_pybytes(), int(rows[at]))
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
        if len(self.shape) < 2:
            return values if self.shape == (1,) else column
        for size in reversed(self.shape):
            offsets = np.arange(0, len(values) + 1, size, dtype=np.int32)
            values = pa.ListArray.from_arrays(pa.array(offsets), values)
        return values

    def _image_shape(self, data: bytes, row: int) -> tuple[int, ...]:
        """The shape of an image; EncodeError if the first has another, or pixels are not colours of 8 bits."""
        try:
            header = ImageHeader.read(data, "", self.column)
        except DecodeError as error:
            raise EncodeError(error.reason, feature=self.column, record=row, expected=error.expected) from None
        shape = (*header.turned_size, header.channels)
        if header.bits > 8 or header.has_palette or header.mode == "CMYK":
            got = "a palette" if header.has_palette else f"{header.mode} of {header.bits} bits"
            expected = "grey or RGB of 8 bits"
            reason = f"the image has {got}; LeRobot has {expected}"
        elif self.is_video and header.channels not in _CHANNELS:
            expected, got = "grey or RGB", f"{header.channels} channels"
            reason = f"the image has {got}; a video has {expected}"
        elif self.is_video and shape[:2] == (self.shape or shape)[:2]:
            return (*shape[:2], 3)
        elif shape != (self.shape or shape):
            (height, width, channels), (h, w, c) = self.shape, shape
            expected, got = f"{height}×{width} with {channels} channels", f"{h}×{w} with {c}"
            reason = f"the image is of {got}, the first of {expected}; LeRobot has one shape for all"
        else:
            return shape
        advice = "convert the images, or leave the column out, as with columns=['!name']"
        advice_cli = "convert the images, or leave the column out, as with --columns '!name'"
        raise EncodeError(
            reason, feature=self.column, record=row, expected=expected, got=got, hint=advice, hint_cli=advice_cli
        )

    def hf_feature(self) -> dict[str, Any]:
        """The feature of Hugging Face datasets, in JSON."""
        if len(self.shape) > 1 and self.kind != "image":
            return {"shape": list(self.shape), "dtype": self.kind, "_type": f"Array{len(self.shape)}D"}
        return _hf_feature(self.type)

    def description(self) -> dict[str, Any]:
        names = ["height", "width", "channels"] if self.kind == "image" else None
        return {"dtype": "video" if self.is_video else self.kind, "shape": list(self.shape), "names": names}

    def pixels(self, array: pa.Array, at: int, row: int) -> Array:
        """The pixels of an image [height, width, channels] of what `array` returned, of the record `row`."""
        if isinstance(array.type, pa.FixedShapeTensorType):  # of grey or RGB
            (image,) = array.slice(at, 1).to_numpy_ndarray()
            return np.ascontiguousarray(np.broadcast_to(image, self.shape))
        data = array.field("bytes")[at].as_py()
        form = ImageForm(mode="RGB" if self.is_video else "unchanged")
        try:
            return PixelReader.from_form(self.column, form).read((row, data))[1]
        except RowFault as fault:
            raise fault.to_error(None, row) from fault


class _Statistics:
    """The statistics of a feature: of each episode, and of all so far."""

    def __init__(self, feature: _Feature) -> None:
        self._feature = feature
        self._count = 0  # of frames
        self._rows = 0  # of values: pixels of images
        self._mean: Any = 0.0
        self._squares: Any = 0.0  # the sum of squared differences from the mean
        self._quantiles: Any = 0.0  # the mean of those of episodes, as in compute_stats.py of LeRobot
        self._minimum: Any = math.inf
        self._maximum: Any = -math.inf

    def episodes(self, array: pa.Array, begins: Array, ends: Array, rows: Array) -> dict[str, pa.Array]:
        """The statistics of some episodes, which are added to those of all, as columns of ``meta/episodes/``."""
        feature = self._feature
        if feature.kind == "string":
            return {}
        if feature.kind == "image":
            middles = ((begins + ends) // 2).tolist()
            statistics = [self._add(self._pixels(array, at, int(rows[at])), 1) for at in middles]
        else:
            flat = array
            while t.is_nested(flat.type):
                flat = flat.flatten()
            numbers = flat.to_numpy(zero_copy_only=False).reshape(len(array), -1)
            spans = zip(begins.tolist(), ends.tolist(), strict=True)
            statistics = [self._add(numbers[begin:end], end - begin) for begin, end in spans]
        axes = 3 if feature.kind == "image" else len(feature.shape)
        types = {**dict.fromkeys(statistics[0], _lists(pa.float64(), axes)), "count": pa.list_(pa.int64())}
        if feature.kind.startswith(("bool", "int", "uint")):  # as LeRobot writes them: merging does not mix types
            exact = pa.int64() if feature.kind not in ("bool", "uint64") else flat.type
            types |= dict.fromkeys(("min", "max"), _lists(exact, axes))
        return {
            f"stats/{feature.name}/{key}": pa.array([episode[key] for episode in statistics], types[key])
            for key in types
        }

    def describe_all(self) -> dict[str, Any]:
        """The statistics of all episodes, for ``meta/stats.json``."""
        deviation = np.sqrt(self._squares / self._rows)
        return self._describe((self._minimum, self._maximum, self._mean, deviation, *self._quantiles), self._count)

    def _pixels(self, array: pa.Array, at: int, row: int) -> Array:
        """The pixels of an image, by their channels from 0 to 1."""
        return self._feature.pixels(array, at, row).reshape(-1, self._feature.shape[-1]) / 255

    def _add(self, numbers: Array, count: int) -> dict[str, Any]:
        """The statistics of an episode, which are added to those of all."""
        minimum, maximum, numbers = numbers.min(0), numbers.max(0), numbers.astype(np.float64)
        mean, deviation = numbers.mean(0), numbers.std(0)
        quantiles = np.quantile(numbers, [*_QUANTILES.values()], axis=0)
        rows = self._rows + len(numbers)
        apart, weight = mean - self._mean, len(numbers) / rows
        self._squares += deviation**2 * len(numbers) + apart**2 * (self._rows * weight)
        self._mean += apart * weight
        self._quantiles += (quantiles - self._quantiles) * weight
        self._count, self._rows = self._count + count, rows
        self._minimum, self._maximum = np.minimum(self._minimum, minimum), np.maximum(self._maximum, maximum)
        return self._describe((minimum, maximum, mean, deviation, *quantiles), count)

    def _describe(self, statistics: Iterable[Array], count: int) -> dict[str, Any]:
        feature = self._feature
        shape = (feature.shape[-1], 1, 1) if feature.kind == "image" else feature.shape
        names = ("min", "max", "mean", "std", *_QUANTILES)
        return {
            **{key: values.reshape(shape).tolist() for key, values in zip(names, statistics, strict=True)},
            "count": [count],
        }


def convert_to_lerobot(
    source: FilesLike,
    target: Path,
    *,
    fps: int | None = None,
    prefix: str = "steps",
    task: str | None = None,
    use_videos: bool = False,
    **keywords: Any,
) -> WriteReport:
    """Write the episodes of TFRecord files as a local folder in LeRobot's layout, a file of frames after the other.

    The columns of steps are those named ``<prefix>/…``, as for `tfrecord_io.explode`, or all lists if there are none.
    `task` is the column with the task of a step or an episode, text or its bytes, with or without the names before a
    slash; by default one of `_TASKS`. Without one, tasks are empty, with a warning. With `use_videos`, images are
    frames of videos.
    """
    if fps is None:
        needed = "the frames per second"
        raise for_cli(TypeError(f"LeRobot needs fps=, {needed}"), f"LeRobot needs --fps, {needed}")
    fps = check_integer("fps", fps, 1)
    if Location.is_url(target):
        raise ValueError(f"'{os.fspath(target)}': a folder of LeRobot is written locally; upload it from there")
    options = CallSource(source).options(ExportOptions, **keywords)
    with ExitStack() as opened:
        reader = opened.enter_context(CallSource(source).open(options))
        seen = [0]
        names = _step_columns(reader.schema, prefix)
        steps = explode(pa.RecordBatchReader.from_batches(reader.schema, _count_rows(reader, seen)), lists=names)
        folder = opened.enter_context(NewFolder.begin(os.fspath(target), options.target))
        frames = opened.enter_context(
            _Frames(folder, steps.schema, of_steps=names, prefix=prefix, task=task, fps=fps, use_videos=use_videos)
        )
        for batch in steps:
            if len(batch):
                frames.write(batch)
        frames.finish(seen[0])
    return WriteReport(
        os.fspath(target),
        frames.rows,
        bytes=frames.bytes,
        compression=None,
        columns=tuple(f.name for f in frames.features),
        rounded={},
    )


def _step_columns(schema: pa.Schema, prefix: str) -> list[str]:
    """The columns of steps: those with the prefix; if there are none, all lists of any length."""
    with suppress(FeatureNotFoundError):
        return Steps.columns(schema, prefix)
    names = [f.name for f in schema if Column(f.type).is_list and not t.is_fixed_size_list(f.type)]
    if names:
        return names
    advice = advice_cli = f"the columns are {', '.join(schema.names) or 'none'}"
    if "episode_index" in schema.names:
        numbers = [name for name in ("timestamp", "frame_index", "index", "task_index") if name in schema.names]
        advice = "gather the frames of each episode by tfr.formats.implode(frames, lists='!episode_index'), without"
        advice_cli = "gather the frames of each episode by tfr implode --lists '!episode_index', and leave out"
        advice, advice_cli = (
            f"{text} {', '.join(numbers)}; then leave out episode_index" for text in (advice, advice_cli)
        )
    reason = "no column has this prefix, and none is a list with a value for each step"
    raise FeatureNotFoundError(reason, feature=f"{prefix.rstrip('/')}/", hint=advice, hint_cli=advice_cli)


def _count_rows(batches: Iterable[pa.RecordBatch], seen: list[int]) -> Iterator[pa.RecordBatch]:
    """The batches; their rows are added to the number in `seen`."""
    for batch in batches:
        seen[0] += len(batch)
        yield batch


class _Frames(AbstractContextManager["_Frames"]):
    """Writes frames, and what is in ``meta/``; a context manager that closes the files."""

    def __init__(
        self,
        folder: NewFolder,
        schema: pa.Schema,
        of_steps: Sequence[str],
        prefix: str,
        task: str | None,
        fps: int,
        use_videos: bool,
    ) -> None:
        self._folder, self._fps, self._prefix = folder, fps, f"{prefix.rstrip('/')}/"
        self._use_videos = use_videos
        self._of_episodes = [name for name in schema.names if name not in (*of_steps, Steps.RECORD, Steps.STEP)]
        self._task = self._task_column(schema, task)
        self.features = [self._feature(schema.field(name)) for name in of_steps if name != self._task]
        self._own = [_Feature(name, name, kind, pa.type_for_alias(kind)) for name, kind in _OWN.items()]
        _refuse_twice([feature.name for feature in (*self.features, *self._own)])
        self._statistics = [_Statistics(feature) for feature in (*self.features, *self._own)]
        self._videos = [_Video(feature, fps, self._local) for feature in self.features if feature.is_video]
        self._tasks: dict[str, int] = {}
        self._episodes: list[pa.RecordBatch] = []  # to be written
        self._episode_writer: Any = None
        self.rows = self.bytes = self._count = 0
        self._file = -1
        self._writer: Any = None

    def __exit__(self, *_: object) -> None:
        for writer in (self._writer, self._episode_writer):
            if writer is not None:
                with suppress(OSError):
                    writer.close()
        for video in self._videos:
            video.abort()

    def _task_column(self, schema: pa.Schema, task: str | None) -> str | None:
        """The column of text with this name, or one of the known names: of steps, inside them, or of episodes."""
        texts = [column.name for column in schema if Column(column.type).is_text or Column(column.type).is_bytes]
        inside = sorted(texts, key=lambda name: not name.startswith(self._prefix))
        for wanted in _TASKS if task is None else (task,):
            for name in (f"{self._prefix}{wanted}", wanted, *inside):
                if name in texts and f"/{name}".endswith(f"/{wanted}"):
                    return name
        if task is not None:
            raise FeatureNotFoundError("no column of text has the tasks", feature=task, expected=schema.names)
        reason = f"no column is named {' or '.join(_TASKS)}, so the tasks of LeRobot are empty"
        texts_of = (f"{reason}: {way} names a column of text with them" for way in ("task=", "--task"))
        warn(next(texts_of), SchemaWarning, next(texts_of))
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
                advice = "task= names the column of text with the tasks"
                advice_cli = "--task names the column of text with the tasks"
                raise EncodeError(
                    reason, feature=self._task, record=int(records[row]), hint=advice, hint_cli=advice_cli
                ) from None
        return texts

    def _feature(self, column: pa.Field) -> _Feature:
        name, type_ = column.name.removeprefix(self._prefix).replace("/", "."), column.type
        if Column(type_).is_bytes:
            return self._image(column.name, name)
        if Column(type_).is_text:
            return _Feature(column.name, name, "string", pa.string())
        is_plain, shape, inner = Dtype.KEY not in (column.metadata or {}), [], type_
        if isinstance(type_, pa.FixedShapeTensorType) and is_plain:
            shape, inner = list(type_.shape), type_.value_type
            type_ = type_.storage_type
            if len(shape) == 3 and inner == pa.uint8() and shape[-1] in _CHANNELS:
                return self._image(column.name, name)
        while t.is_fixed_size_list(inner):
            shape.append(inner.list_size)
            inner = inner.value_type
        is_number = (Column(inner).is_number and not t.is_decimal(inner)) or t.is_boolean(inner)
        if not is_number or len(shape) > _MOST_AXES or 0 in shape:
            reason = (
                "a feature of LeRobot is a number, text, an image, or an array of numbers of one shape of 1 to 5 axes"
            )
            raise SchemaError(reason, feature=column.name, got=str(type_), hint=_ADVICE, hint_cli=_ADVICE_CLI)
        kind = str(np.dtype(inner.to_pandas_dtype()))
        if len(shape) > 1:
            return _Feature(column.name, name, kind=kind, type=_lists(inner, len(shape)), shape=tuple(shape))
        is_single = shape in ([], [1])
        return _Feature(column.name, name, kind=kind, type=inner if is_single else type_, shape=tuple(shape) or (1,))

    def _image(self, column: str, name: str) -> _Feature:
        front, _, last = name.rpartition(".")
        name = f"{front}.images.{last}" if front == "observation" else name
        return _Feature(column, name, kind="image", type=_IMAGE, shape=(), is_video=self._use_videos)

    def write(self, batch: pa.RecordBatch) -> None:
        """Write the frames of whole episodes."""
        records, steps = batch[Steps.RECORD].to_numpy(), batch[Steps.STEP].to_numpy()
        begins = np.flatnonzero(steps == 0)
        ends = np.append(begins[1:], len(batch))
        texts = self._texts(batch, records)
        tasks = [self._tasks.setdefault(text, len(self._tasks)) for text in texts]
        writer = self._open_file()
        numbers = np.repeat(self._count + np.arange(len(begins)), ends - begins)
        frame_columns = {
            "timestamp": pa.array((steps / self._fps).astype(np.float32)),
            "frame_index": pa.array(steps, pa.int64()),
            "episode_index": pa.array(numbers, pa.int64()),
            "index": pa.array(np.arange(self.rows, self.rows + len(batch)), pa.int64()),
            "task_index": pa.array(tasks, pa.int64()),
        }
        arrays = [
            *(feature.array(batch[feature.column], records) for feature in self.features),
            *frame_columns.values(),
        ]
        columns = [
            array for feature, array in zip((*self.features, *self._own), arrays, strict=True) if not feature.is_video
        ]
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema()))
        episodes = self._places(begins, ends, texts)
        for video in self._videos:
            episodes |= video.write(arrays[self.features.index(video.feature)], begins, ends, records)
        for statistics, array in zip(self._statistics, arrays, strict=True):
            episodes |= statistics.episodes(array, begins, ends, records)
        more = {name: batch[name].take(pa.array(begins, pa.int64())) for name in self._of_episodes}
        _refuse_twice([*episodes, *more])
        episodes |= {name: getattr(column, "storage", column) for name, column in more.items()}
        self._episodes.append(pa.RecordBatch.from_pydict(episodes))
        self.rows, self._count = self.rows + len(batch), self._count + len(begins)
        if sum(map(len, self._episodes)) >= _EPISODES:
            self._write_episodes()

    def _places(self, begins: Array, ends: Array, texts: Sequence[str]) -> dict[str, pa.Array]:
        """Which frames are those of some episodes, and where."""
        spans = zip(begins.tolist(), ends.tolist(), strict=True)
        chunk, file = divmod(np.full(len(begins), self._file), _FILES_IN_CHUNK)
        numbers = {
            "episode_index": self._count + np.arange(len(begins)),
            "length": ends - begins,
            "data/chunk_index": chunk,
            "data/file_index": file,
            "dataset_from_index": self.rows + begins,
            "dataset_to_index": self.rows + ends,
            "meta/episodes/chunk_index": np.zeros_like(begins),
            "meta/episodes/file_index": np.zeros_like(begins),
        }
        tasks = [list(dict.fromkeys(texts[begin:end])) for begin, end in spans]
        return {
            **{name: pa.array(array, pa.int64()) for name, array in numbers.items()},
            "tasks": pa.array(tasks, pa.list_(pa.string())),
        }

    def _write_episodes(self) -> None:
        from pyarrow import parquet

        table = pa.Table.from_batches(self._episodes)
        if self._episode_writer is None:
            path = self._local("meta/episodes/" + _FILE.format(chunk=0, file=0))
            self._episode_writer = parquet.ParquetWriter(path, table.schema)
        self._episode_writer.write_table(table.combine_chunks())
        self._episodes = []

    def _schema(self) -> pa.Schema:
        stored = [feature for feature in self.features if not feature.is_video]
        fields = [pa.field(feature.name, feature.type) for feature in stored]
        frame_fields = [pa.field(name, pa.type_for_alias(kind)) for name, kind in _OWN.items()]
        features = {feature.name: feature.hf_feature() for feature in stored}
        features |= {name: {"dtype": kind, "_type": "Value"} for name, kind in _OWN.items()}
        metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        return pa.schema([*fields, *frame_fields], metadata)

    def _open_file(self) -> Any:
        """The writer of the file that the next episodes are written to."""
        from pyarrow import parquet

        if self._writer is None or self._path().stat().st_size > _FILE_MB << 20:
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

        self._close_file()
        if not self._count:
            raise EncodeError("no episode has steps to write")
        for video in self._videos:
            self.bytes += video.close()
        if records > self._count:
            left_out = counted(records - self._count, "episode")
            warn(f"{left_out} without steps: LeRobot has no such episodes, so they are left out", SchemaWarning)
        if self._episodes:
            self._write_episodes()
        self._episode_writer.close()
        tasks = pd.DataFrame({"task_index": list(self._tasks.values())}, index=pd.Index(self._tasks, name="task"))
        tasks.to_parquet(self._local("meta/tasks.parquet"))
        features = (*self.features, *self._own)
        info: dict[str, Any] = {
            "codebase_version": VERSION,
            "robot_type": None,
            "total_episodes": self._count,
            "total_frames": self.rows,
            "total_tasks": len(self._tasks),
            "chunks_size": _FILES_IN_CHUNK,
            "data_files_size_in_mb": _FILE_MB,
            "video_files_size_in_mb": _VIDEO_MB,
            "fps": self._fps,
            "splits": {"train": f"0:{self._count}"},
            "data_path": _DATA,
            "video_path": _VIDEOS if self._videos else None,
            "features": {feature.name: feature.description() for feature in features},
        }
        for video in self._videos:
            info["features"][video.feature.name]["info"] = video.description()
        pairs = zip(features, self._statistics, strict=True)
        statistics = {feature.name: summary.describe_all() for feature, summary in pairs if feature.kind != "string"}
        for name, document in (("meta/info.json", info), ("meta/stats.json", statistics)):
            self._local(name).write_text(json.dumps(document, indent=4, ensure_ascii=False), encoding="utf-8")


class _Video:
    """The videos of a camera; a video has whole episodes, one after another."""

    def __init__(self, feature: _Feature, fps: int, local: Callable[[str], LocalPath]) -> None:
        self.feature, self._fps, self._local = feature, fps, local
        self._file, self._bytes = -1, 0
        self._writer: VideoWriter | None = None

    def write(self, images: pa.Array, begins: Array, ends: Array, rows: Array) -> dict[str, pa.Array]:
        """Append the frames of some episodes; where they are, as columns of ``meta/episodes/``."""
        places: dict[str, list[float]] = {"chunk_index": [], "file_index": [], "from_timestamp": [], "to_timestamp": []}
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            writer = self._open_file()
            first = writer.frames
            for row in range(begin, end):
                writer.write(self.feature.pixels(images, row, int(rows[row])))
            chunk, file = divmod(self._file, _FILES_IN_CHUNK)
            for values, value in zip(
                places.values(), (chunk, file, first / self._fps, writer.frames / self._fps), strict=True
            ):
                values.append(value)
        return {f"videos/{self.feature.name}/{name}": pa.array(values) for name, values in places.items()}

    def _open_file(self) -> VideoWriter:
        """The file for the next episode."""
        if self._writer is not None and self._writer.bytes > _VIDEO_MB << 20:
            self.close()
        if self._writer is None:
            self._file += 1
            height, width, _ = self.feature.shape
            try:
                self._writer = VideoWriter(str(self._path()), self._fps, height, width)
            except EncodeError as error:
                error.feature = self.feature.column
                raise
        return self._writer

    def _path(self) -> LocalPath:
        chunk, file = divmod(self._file, _FILES_IN_CHUNK)
        return self._local(_VIDEOS.format(video_key=self.feature.name, chunk_index=chunk, file_index=file))

    def close(self) -> int:
        """Complete the last file; returns the bytes of all."""
        if self._writer is not None:
            self._writer.close()
            self._bytes += self._path().stat().st_size
            self._writer = None
        return self._bytes

    def abort(self) -> None:
        """Close a file that is not complete."""
        if self._writer is not None:
            self._writer.discard()
            self._writer = None

    def description(self) -> dict[str, Any]:
        """The entry about the videos in ``meta/info.json``."""
        height, width, channels = self.feature.shape
        return {
            "video.height": height,
            "video.width": width,
            "video.codec": CODEC_NAME,
            "video.pix_fmt": PIXEL_FORMAT,
            "video.is_depth_map": False,
            "video.fps": self._fps,
            "video.channels": channels,
            "has_audio": False,
        }


def _refuse_twice(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SchemaError("two columns have this name in LeRobot", feature=twice, hint=_ADVICE, hint_cli=_ADVICE_CLI)


def _lists(type_: pa.DataType, axes: int) -> pa.DataType:
    """Lists in lists, one for each axis."""
    return pa.list_(_lists(type_, axes - 1)) if axes else type_


def _hf_feature(type_: pa.DataType) -> dict[str, Any]:
    """The feature of Hugging Face datasets of a type, in JSON."""
    if type_ == _IMAGE:
        return {"_type": "Image"}
    if t.is_fixed_size_list(type_):
        return {"feature": _hf_feature(type_.value_type), "length": type_.list_size, "_type": "List"}
    names = {"float": "float32", "double": "float64", "halffloat": "float16"}
    return {"dtype": names.get(str(type_), str(type_)), "_type": "Value"}
