"""Read the frames of a LeRobot dataset, version 2 or 3, with those of its videos as images: a record for each frame.

Tests: tests/plugins/vision/test_lerobot_videos.py.
"""

from __future__ import annotations

import errno
import glob
import io
import json
import math
import os
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream, Project
from tfrecord_io.apps.file_formats.tables.table_files import arrow_errors, check_schema
from tfrecord_io.base import StorageOptions
from tfrecord_io.columns import Column, RawImages
from tfrecord_io.errors import DecodeError, FeatureNotFoundError
from tfrecord_io.kit import FORMATS, Array, Options, check_choice, needs, printable
from tfrecord_io.plugins.vision.video_files import VideoReader
from tfrecord_io.store import Directory, PathMatch, Source

_PARQUET = FORMATS.parquet
FRAME_FORMATS = ("png", "jpeg")
_QUALITY = 95  # of JPEG
_ROWS = 32  # of a batch, with an image of each camera
_FIELD = re.compile(r"\{([a-z_]+)(?::(0[1-9]d))?\}")  # of the path of a video, such as ``{chunk_index:03d}``
_EPISODE, _TIMESTAMP = "episode_index", "timestamp"


def open_lerobot(path: Any, *, project: Project, video_frames: str = "png", **keywords: Any) -> ArrayStream:
    """The frames of a dataset, in order, with a column of encoded images for each camera.

    Only videos whose columns are needed are decoded.

    Raises
    ------
    DecodeError
        ``meta/info.json``, a table or a video is damaged, or a video has no frame at the time of a row.
    """
    check_choice("video_frames", video_frames, FRAME_FORMATS)
    storage = Options.from_keywords(keywords).storage
    dataset = _Dataset.read(os.fspath(path).rstrip("/"), storage)
    first = _table_schema(dataset.tables[0])
    names = [*first.names, *(name for name in dataset.cameras if name not in first.names)]
    is_needed = project(names)
    columns = [name for name in first.names if is_needed(name)]
    cameras = [name for name in dataset.cameras if is_needed(name) and name not in first.names]
    if not columns and not cameras:
        columns = [_EPISODE]  # without columns, there are still rows
    forms = {name: dataset.form_of(first.field(name)) for name in columns}
    fields = [pa.field(name, forms[name].type) for name in columns]
    schema = pa.schema([*fields, *(pa.field(name, pa.binary()) for name in cameras)])

    def batches() -> Generator[pa.RecordBatch]:
        read = list(dict.fromkeys([*columns, *([_EPISODE, _TIMESTAMP] if cameras else [])]))
        with ExitStack() as opened:
            videos = {name: opened.enter_context(_Camera(name, dataset, video_frames)) for name in cameras}
            for source in dataset.tables:
                for batch in _table_batches(source, first, read, rows=_ROWS if cameras else 1 << 16):
                    arrays = [forms[name].array(batch[name], name, source.path) for name in columns]
                    arrays += [videos[name].images(batch[_EPISODE], batch[_TIMESTAMP]) for name in cameras]
                    yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    rows = batches()
    return ArrayStream(schema, rows, dataset.frames, rows.close, num_files=len(dataset.tables))


@dataclass(frozen=True, slots=True)
class _Form:
    """The form of a column of a table: arrays of one shape, encoded images, or what it is."""

    type: pa.DataType
    shape: tuple[int, ...] = ()  # of arrays that the table has as nested lists
    is_image: bool = False  # a struct with bytes

    def array(self, column: pa.Array, name: str, path: str) -> pa.Array:
        """Convert values of some frames; DecodeError if an array has another shape than ``meta/info.json`` states."""
        column = getattr(column, "storage", column)
        if self.is_image:
            return column.field("bytes")
        values = column
        for size in self.shape:
            lengths = np.asarray(values.value_lengths().fill_null(-1))
            if np.any(bad := lengths != size):
                at = int(bad.argmax())
                reason = f"an array has not the shape {self.shape} that meta/info.json states"
                raise DecodeError(reason, path=path, feature=name, expected=size, got=int(lengths[at]))
            values = values.flatten()
        if not self.shape:
            return column
        if values.null_count:
            raise DecodeError("an array has a missing number", path=path, feature=name)
        return self.type.wrap_array(pa.FixedSizeListArray.from_arrays(values, math.prod(self.shape)))


@dataclass(frozen=True, slots=True)
class _Dataset:
    """Facts of a dataset from ``meta/``."""

    path: str
    storage: StorageOptions
    tables: Sequence[Source]
    fps: float
    frames: int | None
    cameras: Sequence[str]
    shapes: Mapping[str, tuple[int, ...]]  # of features that are arrays of several axes
    video_path: str  # with fields in braces
    chunk_size: int
    places: Mapping[int, Mapping[str, Any]]  # of the videos of each episode, of version 3

    @classmethod
    def read(cls, path: str, storage: StorageOptions) -> _Dataset:
        folder = Directory(path, storage)
        info_path = f"{path}/meta/info.json"
        content = folder.read("meta/info.json")
        if content is None:
            raise FileNotFoundError(errno.ENOENT, "a LeRobot dataset has this file", info_path)
        try:
            info = json.loads(content)
            features, fps = info["features"], float(info["fps"])
            cameras = [name for name, feature in features.items() if feature["dtype"] == "video"]
            shapes = {name: tuple(map(int, feature.get("shape") or ())) for name, feature in features.items()}
            video_path, chunk_size = info.get("video_path") or "", int(info.get("chunks_size", 1000))
            frames = info.get("total_frames")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"not the description of a LeRobot dataset: {printable(repr(error), 120)}"
            raise DecodeError(reason, path=info_path, expected="features and fps") from error
        tables = _find_tables(f"{path}/data", storage)
        places = _read_places(path, storage) if cameras and "{file_index" in video_path else {}
        return cls(
            *(path, storage, tables),
            fps=fps,
            frames=frames,
            cameras=cameras,
            shapes=shapes,
            video_path=video_path,
            chunk_size=chunk_size,
            places=places,
        )

    def form_of(self, field: pa.Field) -> _Form:
        """The form that a column of the tables gets."""
        type_, shape = getattr(field.type, "storage_type", field.type), self.shapes.get(field.name, ())
        if t.is_struct(type_) and {"bytes", "path"} == {child.name for child in type_}:
            return _Form(pa.binary(), is_image=True)
        inner, axes = type_, 0
        while Column(inner).is_list:
            inner, axes = inner.value_type, axes + 1
        if axes > 1 and axes == len(shape) and Column(inner).is_number and 0 not in shape:
            return _Form(pa.fixed_shape_tensor(inner, shape), shape)
        return _Form(type_)

    def video_of(self, camera: str, episode: int) -> tuple[str, float]:
        """The path of the video of an episode, and where the episode begins in it, in seconds."""
        place = self.places.get(episode, {})
        prefix = f"videos/{camera}/"
        fields = {"video_key": camera, "episode_index": episode, "episode_chunk": episode // self.chunk_size}
        if self.places:
            if place.get(f"{prefix}from_timestamp") is None:
                reason = f"meta/episodes does not say where the video of episode {episode} is"
                raise DecodeError(reason, path=self.path, feature=camera)
            fields |= {name: place[f"{prefix}{name}"] for name in ("chunk_index", "file_index")}
        try:
            relative = _FIELD.sub(lambda field: f"{fields[field[1]]:{field[2] or ''}}", self.video_path)
        except (KeyError, ValueError) as error:
            reason = f"video_path '{printable(self.video_path)}' has other fields than those of a dataset"
            raise DecodeError(reason, path=f"{self.path}/meta/info.json", feature=camera) from error
        if (leads := Directory.leads_out(relative)) is not None:
            reason = f"the path '{printable(relative)}' of a video cannot be used: {leads}"
            raise DecodeError(reason, path=f"{self.path}/meta/info.json", feature=camera)
        return f"{self.path}/{relative}", float(place.get(f"{prefix}from_timestamp", 0))


def _find_tables(path: str, storage: StorageOptions) -> list[Source]:
    """The Parquet files below a folder, in natural order."""
    return PathMatch.find(f"{glob.escape(path)}/**/*{_PARQUET.suffixes[0]}", _PARQUET.suffixes, storage).sources


def _read_places(path: str, storage: StorageOptions) -> dict[int, dict[str, Any]]:
    """The rows of ``meta/episodes/``, with the positions of videos only, by episode."""
    from pyarrow import parquet as pq

    places: dict[int, dict[str, Any]] = {}
    for source in _find_tables(f"{path}/meta/episodes", storage):
        with closing(source.open_file()) as raw, arrow_errors(source.path, _PARQUET.title):
            file = pq.ParquetFile(raw)
            names = [name for name in file.schema_arrow.names if name.startswith("videos/") or name == _EPISODE]
            places |= {row[_EPISODE]: row for row in file.read(names).to_pylist() if _EPISODE in row}
    return places


def _table_schema(source: Source) -> pa.Schema:
    from pyarrow import parquet as pq

    with closing(source.open_file()) as raw, arrow_errors(source.path, _PARQUET.title):
        schema = pq.ParquetFile(raw).schema_arrow
    for name in (_EPISODE, _TIMESTAMP):
        if name not in schema.names:
            reason = "frames of LeRobot have this column"
            raise FeatureNotFoundError(reason, path=source.path, feature=name, expected=name, got=schema.names)
    return schema.remove_metadata()


def _table_batches(source: Source, first: pa.Schema, names: list[str], rows: int) -> Generator[pa.RecordBatch]:
    from pyarrow import parquet as pq

    with closing(source.open_file()) as raw, arrow_errors(source.path, _PARQUET.title):
        file = pq.ParquetFile(raw)
        check_schema(file.schema_arrow.remove_metadata(), first, source.path, source.path)
        yield from file.iter_batches(batch_size=rows, columns=names)


class _Camera(ExitStack):
    """The videos of a camera, of which one is open."""

    def __init__(self, name: str, dataset: _Dataset, frames: str) -> None:
        super().__init__()
        self._name, self._dataset, self._frames = name, dataset, frames
        self._path = ""
        self._reader: VideoReader | None = None
        self._episode: int | None = None
        self._begin = 0.0  # of the episode, in seconds of the video

    def images(self, episodes: pa.Array, timestamps: pa.Array) -> pa.Array:
        """The encoded images of some rows, in order."""
        tolerance = 0.5 / self._dataset.fps
        images = []
        for episode, timestamp in zip(episodes.to_pylist(), timestamps.to_pylist(), strict=True):
            if episode != self._episode:
                self._open(episode)
            assert self._reader is not None
            try:
                images.append(_encode(self._reader.frame(self._begin + timestamp, tolerance), self._frames))
            except DecodeError as error:
                error.feature = self._name
                raise
        return pa.array(images, pa.binary())

    def _open(self, episode: int) -> None:
        """Open the video of an episode, unless it is open, and go to its first frame."""
        path, begin = self._dataset.video_of(self._name, episode)
        if path != self._path or self._reader is None:
            self.close()
            source = PathMatch.find(path, "", self._dataset.storage).single("a video")
            raw = self.enter_context(closing(source.open_file()))
            self._reader, self._path = self.enter_context(VideoReader(raw, path)), path
        if begin:
            self._reader.seek(begin)
        self._episode, self._begin = episode, begin


def _encode(pixels: Array, form: str) -> bytes:
    """An image [height, width, 3] as a PNG, without a further loss, or as a JPEG."""
    if form == "png":
        return RawImages.png(pixels)
    with needs("image", "JPEG images of videos"):
        import PIL.Image
    file = io.BytesIO()
    PIL.Image.fromarray(np.ascontiguousarray(pixels)).save(file, "JPEG", quality=_QUALITY)
    return file.getvalue()
