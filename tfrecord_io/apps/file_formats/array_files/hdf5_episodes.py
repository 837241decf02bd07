"""Episodes in HDF5 files: a record of each group, as in robomimic's files, or of each file, as in those of ALOHA.

A group ``data/demo_0`` has datasets whose first axis counts the steps, which become the columns ``steps/…`` as in RLDS;
its attributes, and datasets of another length, become columns of the episode. ``mask/train`` lists names of episodes.
https://robomimic.github.io/docs/datasets/overview.html
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream, Project
from tfrecord_io.apps.file_formats.array_files.hdf5_datasets import (
    DatasetWriter,
    Links,
    attributes_of,
    open_file,
    stored_array,
)
from tfrecord_io.apps.file_formats.array_files.open_array import BLOCK_BYTES
from tfrecord_io.apps.file_formats.array_files.stored_arrays import (
    EXCLUDE,
    EXCLUDE_CLI,
    StoredArray,
    bytes_column,
    library_errors,
)
from tfrecord_io.apps.file_formats.array_files.to_numpy_files import Export
from tfrecord_io.base import Limits
from tfrecord_io.columns import Column, Ragged, TensorValues, plain_array
from tfrecord_io.errors import DecodeError, EncodeError, SchemaWarning, TFRecordError
from tfrecord_io.kit import Array, printable, warn
from tfrecord_io.store import FileName, Source

if TYPE_CHECKING:
    import h5py

EPISODE = "episode"  # the column with the name of the group
STEPS = "steps/"
MASKS = "mask/"
NUM_SAMPLES, TOTAL = "num_samples", "total"  # attributes of robomimic that count steps
_MAX_ROWS = 4096

_Type: TypeAlias = "pa.DataType | np.dtype[Any]"
"""The Arrow type of a column without the lists of its axes, or the dtype of tensors."""


@dataclass(frozen=True, slots=True)
class EpisodeGroups:
    """The groups that are episodes, by their paths: ``data/*``, or ``/`` for a file as a whole."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError if it is not a path of groups.

        >>> EpisodeGroups.parse("data/*").fixed
        'data/'
        """
        parts = tuple(text.strip("/").split("/")) if text.strip("/") else ()
        if not text or any(part in ("", ".", "..") for part in parts):
            raise ValueError(f"episodes={text!r}: expected the path of groups, such as 'data/*', or '/' for each file")
        return cls(parts)

    @classmethod
    def parse_target(cls, text: str) -> Self:
        """The groups to write; ValueError if the names of episodes would have no place."""
        groups = cls.parse(text)
        if not groups.parts or groups.parts[-1].count("*") != 1:
            raise ValueError(f"episodes={text!r}: the episodes of a file need names, as in 'data/*' or 'demo_*'")
        return groups

    @property
    def fixed(self) -> str:
        """The path of the group in which all episodes are; empty if it is the root."""
        patterns = [at for at, part in enumerate(self.parts) if re.search(r"[*?\[]", part)]
        return "".join(f"{part}/" for part in self.parts[: patterns[0] if patterns else len(self.parts) - 1])

    def split(self, name: str) -> tuple[str, str] | None:
        """The group of a dataset, and its name there; None if the dataset is in none of these groups."""
        parts = name.split("/")
        if len(parts) <= len(self.parts) or not all(map(fnmatchcase, parts, self.parts)):
            return None
        return "/".join(parts[: len(self.parts)]), "/".join(parts[len(self.parts) :])

    def path(self, name: str) -> str | None:
        """The group of an episode of this name; None if it is not one of these."""
        parts = f"{self.fixed}{name}".split("/")
        has_place = len(parts) == len(self.parts) and all(map(fnmatchcase, parts, self.parts))
        return "/".join(parts) if has_place and not {"", ".", ".."} & {*parts} and "\0" not in name else None

    def name_episode(self, number: int) -> str:
        """Name an episode that has no name.

        >>> EpisodeGroups.parse("data/*").name_episode(3), EpisodeGroups.parse("run_*").name_episode(3)
        ('demo_3', 'run_3')
        """
        last = self.parts[-1]
        return f"demo_{number}" if last == "*" else last.replace("*", str(number))


def stream_of_episodes(
    sources: Sequence[Source], groups: EpisodeGroups, *, project: Project, limits: Limits
) -> ArrayStream:
    """A stream with a row for each of the groups in files.

    The headers of all files are read first: they show which datasets have a value for each step and whether shapes
    vary, and conflicts are raised before anything is written.

    Raises
    ------
    DecodeError
        A file is damaged or has no such group, or a dataset that is needed is in another file.
    EncodeError
        An episode lacks a dataset that others have, or has one of another dtype or number of axes.
    """
    survey = _Survey(groups)
    for source in sources:
        with _File.open(source, groups, limits) as file:
            survey.add(file)
    columns = survey.columns(project)
    schema = pa.schema([Column(column.field()).add_labels(column.attributes) for column in columns])

    def batches() -> Generator[pa.RecordBatch]:
        rows: list[list[Any]] = [[] for _ in columns]
        count = size = 0
        for source in sources:
            with _File.open(source, groups, limits) as file:
                for episode in file.episodes:
                    for values, column in zip(rows, columns, strict=True):
                        values.append(column.read(episode))
                        size += 0 if values[-1] is None else values[-1].nbytes
                    count += 1
                    if count == _MAX_ROWS or size >= BLOCK_BYTES:
                        yield _batch(columns, rows, schema)
                        rows, count, size = [[] for _ in columns], 0, 0
        if count:
            yield _batch(columns, rows, schema)

    rows = batches()
    return ArrayStream(schema, rows, survey.count, rows.close, num_files=len(sources))


def _batch(columns: Sequence[_Column], rows: Sequence[list[Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [column.array(values) for column, values in zip(columns, rows, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass(frozen=True, slots=True)
class _Value:
    """A dataset or an attribute of an episode, as a column gets it."""

    type: _Type
    shape: tuple[int, ...]
    read: Callable[[], Any]  # an array of Arrow with an item for each index of the first axis; of tensors, of NumPy
    attributes: Mapping[str, Any] = field(default_factory=dict)  # of the dataset


@dataclass(slots=True)
class _Episode:
    """One group: its name as an episode, the shapes of its datasets, and all its values by name, read on demand."""

    name: str
    path: str  # for messages
    steps: int  # the length of the first axis that most datasets have
    shapes: dict[str, tuple[int, ...] | None]  # of datasets; None if one is in another file
    values: Mapping[str, Callable[[], _Value]]
    attributes: dict[str, _Value]


class _File:
    """An open file, as its episodes."""

    def __init__(self, source: Source, groups: EpisodeGroups, limits: Limits, opened: ExitStack) -> None:
        self.path = source.path
        self.others: list[str] = []  # names of what no column has
        raw = opened.enter_context(closing(source.open_file()))
        self._size, self._expansion = raw.seek(0, 2), limits.expansion_bytes
        raw.seek(0)
        with library_errors(self.path):
            self._file = opened.enter_context(open_file(raw, source))
            links = Links(self._file)
            datasets = dict(links.datasets(self.path, limits.features))
            self.masks = self._read_masks(datasets)
            self.episodes = self._find_episodes(datasets, groups)
        self.others += links.nowhere

    @classmethod
    @contextmanager
    def open(cls, source: Source, groups: EpisodeGroups, limits: Limits) -> Iterator[Self]:
        with ExitStack() as opened:
            yield cls(source, groups, limits, opened)

    def _find_episodes(self, datasets: Mapping[str, h5py.Dataset | str], groups: EpisodeGroups) -> list[_Episode]:
        members: dict[str, dict[str, h5py.Dataset | str]] = {}  # of each episode, by path
        for name, dataset in datasets.items():
            place = groups.split(name)
            if place is not None:
                members.setdefault(place[0], {})[place[1]] = dataset
            elif name not in self.masks:
                self.others.append(name)
        if not members:
            shown = "/".join(groups.parts)
            names = f"the file has {Column.column_list([*datasets][:8])}" if datasets else "the file has none"
            raise DecodeError(f"no group '{printable(shown)}' has datasets: {names}", path=self.path, expected=shown)
        shared = self._shared_attributes(groups)
        episodes = [self._episode(path, members[path], groups, shared) for path in sorted(members, key=_natural_key)]
        steps = sum(episode.steps for episode in episodes)
        total = f"{groups.fixed}{TOTAL}"
        if (
            (stated_total := shared.get(total)) is not None
            and stated_total.shape == ()
            and stated_total.read()[0].as_py() == steps
        ):
            for episode in episodes:  # it is written again for the episodes that remain
                del episode.attributes[total]
        return episodes

    def _shared_attributes(self, groups: EpisodeGroups) -> dict[str, _Value]:
        """The attributes of the groups around the episodes: of ``data``, as ``data/env_args``."""
        attributes: dict[str, _Value] = {}
        if groups.parts:
            parts = groups.fixed.rstrip("/").split("/") if groups.fixed else []
            for depth in range(len(parts) + 1):
                path = "/".join(parts[:depth])
                attributes |= self._attributes(path or "/", f"{path}/")
        return attributes

    def _attributes(self, path: str, prefix: str = "") -> dict[str, _Value]:
        values = {f"{prefix}{name}": _attribute_value(v) for name, v in attributes_of(self._file[path]).items()}
        self.others += [name for name, value in values.items() if value is None]
        return {name: value for name, value in values.items() if value is not None}

    def _episode(
        self, path: str, datasets: Mapping[str, h5py.Dataset | str], groups: EpisodeGroups, shared: Mapping[str, _Value]
    ) -> _Episode:
        shapes = {name: None if isinstance(item, str) else tuple(item.shape) for name, item in datasets.items()}
        lengths = Counter(shape[0] for shape in shapes.values() if shape)
        steps = lengths.most_common(1)[0][0] if lengths else 0
        attributes = self._attributes(path or "/")
        count = attributes.get(NUM_SAMPLES)
        if count is not None and count.shape == () and count.read()[0].as_py() == steps:
            del attributes[NUM_SAMPLES]
        name = path.removeprefix(groups.fixed) if groups.parts else FileName.of_path(self.path).name.rpartition(".")[0]
        shown = f"{self.path}: {path}" if path else self.path
        values = {name: partial(self._value, f"{shown}/{name}", dataset) for name, dataset in datasets.items()}
        return _Episode(name, shown, steps, shapes=shapes, values=values, attributes={**shared, **attributes})

    def _value(self, path: str, dataset: h5py.Dataset | str) -> _Value:
        if isinstance(dataset, str):
            raise DecodeError(dataset, path=path, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
        with library_errors(path):
            array = stored_array(dataset, path, self._size, self._expansion)
            array.check_record(array.size)
            return replace(_dataset_value(array), attributes=attributes_of(dataset))

    def _read_masks(self, datasets: Mapping[str, h5py.Dataset | str]) -> dict[str, frozenset[str]]:
        """The lists of names of episodes, by the names of their datasets."""
        masks = {}
        for name, dataset in datasets.items():
            if name.startswith(MASKS) and not isinstance(dataset, str) and len(dataset.shape) == 1:
                value = self._value(f"{self.path}: {name}", dataset)
                if isinstance(value.type, pa.DataType) and Column(value.type).is_text | Column(value.type).is_bytes:
                    masks[name] = frozenset(value.read().cast(pa.string()).to_pylist())
        return masks


def _natural_key(path: str) -> list[tuple[int, str]]:
    """Sort key by which ``demo_9`` comes before ``demo_10``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", path)]


# ---- values


def _dataset_value(array: StoredArray) -> _Value:
    """The values of a dataset; EncodeError if no column of episodes has them."""
    empty = array.empty()
    if isinstance(empty, Mapping) or (isinstance(empty, np.ndarray) and empty.dtype.names):
        reason = "its values have fields (a compound type), and columns of episodes have none"
        raise EncodeError(reason, path=array.path, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
    type_ = _type_of(empty)
    if isinstance(type_, np.dtype):
        try:
            TensorValues.dtype_of(type_)
        except EncodeError as error:
            reason = f"values of the dtype {type_} cannot be stored in a TFRecord"
            raise EncodeError(reason, path=array.path, hint=EXCLUDE, hint_cli=EXCLUDE_CLI) from error

    def read() -> Any:
        values: Any
        if array.shape:
            values = next(iter(array.blocks(max(1, array.rows))), empty)
        else:
            assert array.read_part is not None
            cell = np.empty(1, array.dtype)
            cell[0] = array.read_part(())
            values = array.convert(cell)
        return values.reshape(array.shape) if isinstance(type_, np.dtype) else _plain(values)

    return _Value(type_, array.shape, read)


def _attribute_value(value: Any) -> _Value | None:
    """An attribute, as `attributes_of` returns it; None if no column has it."""
    if isinstance(value, str):
        return _Value(pa.string(), (), lambda: pa.array([value], pa.string()))
    array = np.asarray(value)
    if array.dtype.kind in "OSU" and array.ndim == 1:
        texts = [item.decode("utf-8", "replace") if isinstance(item, bytes) else item for item in array.tolist()]
        is_text = all(isinstance(item, str) for item in texts)
        return _Value(pa.string(), array.shape, lambda: pa.array(texts, pa.string())) if is_text else None
    if array.dtype.kind not in "biufc":
        return None
    type_ = _type_of(array if array.ndim else array.reshape(1))
    if isinstance(type_, np.dtype):
        return _Value(type_, array.shape, lambda: array)
    return _Value(type_, array.shape, lambda: _plain(array.reshape(-1)))


def _type_of(values: Any) -> _Type:
    if not isinstance(values, np.ndarray):
        return values.type
    is_plain = values.ndim == 1 and values.dtype.kind not in "cV"
    return _plain(values[:0]).type if is_plain or values.dtype.kind == "S" else values.dtype.newbyteorder("=")


def _plain(values: Any) -> pa.Array:
    """Values of one axis, or bytes of fixed length of two, as an array of Arrow."""
    if not isinstance(values, np.ndarray):
        return values
    if values.ndim > 1:
        return bytes_column(values)
    plain = plain_array(values.astype(values.dtype.newbyteorder("="), copy=False))
    return plain.combine_chunks() if isinstance(plain, pa.ChunkedArray) else plain


# ---- columns


@dataclass(slots=True)
class _Column:
    """A column of episodes; the type and the shape are those of all of them."""

    name: str
    read: Callable[[_Episode], Any]  # None if an episode has no such attribute
    type: _Type = field(default_factory=pa.string)
    shape: tuple[int | None, ...] = ()  # None: it varies
    attributes: Mapping[str, Any] = field(default_factory=dict)  # of the dataset in the first episode

    def field(self) -> pa.Field:
        if isinstance(self.type, np.dtype):
            return Column.of_tensors(self.name, TensorValues.dtype_of(self.type), self.shape).field
        return pa.field(self.name, pa.list_(self.type) if self.shape else self.type)

    def array(self, values: Sequence[Any]) -> pa.Array:
        """The column with the values of some episodes."""
        if isinstance(self.type, np.dtype):
            return self._tensors(self.type, values)
        parts = [pa.nulls(1, self.type) if value is None else value for value in values]
        flat = pa.concat_arrays(parts)
        if not self.shape:
            return flat
        return pa.ListArray.from_arrays(pa.array(np.cumsum([0, *map(len, values)]), pa.int32()), flat)

    def _tensors(self, dtype: np.dtype[Any], values: Sequence[Array]) -> pa.Array:
        element = TensorValues.dtype_of(dtype)
        data = [np.ascontiguousarray(v.astype(element.dtype, copy=False)).reshape(-1).view(np.uint8) for v in values]
        shapes: Any = self.shape
        if None in self.shape:
            shapes = np.array([value.shape for value in values], np.int64).reshape(len(values), len(self.shape))
        tensors = TensorValues(element, np.concatenate(data), np.cumsum([0, *map(len, data)]), shapes)
        array, type_ = tensors.to_array(len(values)), self.field().type
        return array if array.type == type_ else pa.ExtensionArray.from_storage(type_, array.storage)


@dataclass(slots=True)
class _Common:
    """Common facts of the values of one name in all episodes so far."""

    path: str  # of the first one
    type: _Type | None = None
    shape: tuple[int | None, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    count: int = 0  # of episodes that have it
    is_of_steps: bool = True
    fault: TFRecordError | None = None  # raised if the column is needed

    def add(self, value: _Value, path: str, name: str) -> None:
        if self.type is None:
            self.type, self.shape, self.attributes = value.type, value.shape, value.attributes
            return
        if value.type != self.type or len(value.shape) != len(self.shape):
            got, expected = _describe_dimensions(value.type, value.shape), _describe_dimensions(self.type, self.shape)
            reason = f"it is {got} in this episode, and {expected} in '{printable(self.path)}'"
            self.fault = self.fault or EncodeError(
                reason, path=path, feature=name, expected=expected, got=got, hint=EXCLUDE, hint_cli=EXCLUDE_CLI
            )
            return
        self.shape = tuple(a if a == b else None for a, b in zip(self.shape, value.shape, strict=True))


def _describe_dimensions(type_: _Type, shape: Sequence[int | None]) -> str:
    return f"{type_} of {len(shape)} dimension{'s' * (len(shape) != 1)}"


class _Survey:
    """Common facts of all episodes, and the columns that follow."""

    def __init__(self, groups: EpisodeGroups) -> None:
        self._groups = groups
        self.count = 0
        self._datasets: dict[str, _Common] = {}
        self._attributes: dict[str, _Common] = {}
        self._masks: dict[str, set[str]] = {}
        self._left_out: dict[str, list[str]] = {}  # by path
        self._names: dict[str, str] = {}  # of episodes, with their paths

    def add(self, file: _File) -> None:
        for episode in file.episodes:
            self._add_name(episode)
            self.count += 1
            for name, make in episode.values.items():
                common = self._datasets.setdefault(name, _Common(episode.path))
                common.count += 1
                shape = episode.shapes[name]
                common.is_of_steps &= shape is None or shape[:1] == (episode.steps,)
                if common.fault is None:
                    try:
                        common.add(make(), episode.path, name)
                    except TFRecordError as error:
                        common.fault = error
            for name, value in episode.attributes.items():
                common = self._attributes.setdefault(name, _Common(episode.path))
                common.count += 1
                common.add(value, episode.path, name)
        for name, listed in file.masks.items():
            self._masks.setdefault(name, set()).update(listed)
        if file.others:
            self._left_out[file.path] = file.others

    def _add_name(self, episode: _Episode) -> None:
        if (first := self._names.setdefault(episode.name, episode.path)) != episode.path:
            reason = f"two episodes have the name '{printable(episode.name)}', the other one is '{printable(first)}'"
            raise EncodeError(reason, path=episode.path, hint="convert the files one by one")

    def columns(self, project: Project) -> list[_Column]:
        """The columns that are needed; EncodeError if one of them is not the same in all episodes."""
        columns = {EPISODE: _Column(EPISODE, lambda episode: pa.array([episode.name], pa.string()))}
        commons: dict[str, _Common] = {}

        def add(name: str, common: _Common, read: Callable[[_Episode], Any]) -> None:
            if name in columns:
                reason = "two columns of episodes have this name: the group's name, an attribute or a dataset"
                raise EncodeError(reason, path=common.path, feature=name, hint="rename it in the file")
            columns[name] = _Column(
                name, read, common.type or pa.string(), shape=common.shape, attributes=common.attributes
            )
            commons[name] = common

        for name, common in self._attributes.items():
            add(name, common, partial(_read_attribute, name))
        for is_of_steps in (False, True):
            for name, common in self._datasets.items():
                if common.is_of_steps == is_of_steps:
                    add(f"{STEPS}{name}" if is_of_steps else name, common, partial(_read_dataset, name))
        for name, listed in self._masks.items():
            mask = _Common("", pa.bool_(), count=self.count)
            add(name, mask, lambda episode, listed=listed: pa.array([episode.name in listed]))  # type: ignore[misc]
        is_needed = project([*columns])
        self._warn()
        needed = [column for name, column in columns.items() if is_needed(name)]
        for column in needed:
            if column.name in commons:
                self._check(column, commons[column.name])
        return needed or [columns[EPISODE]]

    def _check(self, column: _Column, common: _Common) -> None:
        if common.fault is not None:
            raise common.fault
        is_optional = column.name in self._attributes and not column.shape and isinstance(column.type, pa.DataType)
        if common.count < self.count and not is_optional:
            reason = (
                f"{self.count - common.count} of {self.count} episodes lack it, and '{printable(common.path)}' has it"
            )
            raise EncodeError(reason, path=common.path, feature=column.name, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)

    def _warn(self) -> None:
        for path, names in self._left_out.items():
            text = f"left out {Column.column_list(names)}: no value of an episode"
            warn(f"{printable(path)}: {text}", SchemaWarning)


def _read_attribute(name: str, episode: _Episode) -> Any:
    value = episode.attributes.get(name)
    return None if value is None else value.read()


def _read_dataset(name: str, episode: _Episode) -> Any:
    return episode.values[name]().read()


# ---- writing


class EpisodeWriter:
    """Writes records as groups of an open file, in the form that `stream_of_episodes` reads.

    The groups get the attributes ``num_samples``, and the group around them ``total``, without which robomimic reads no
    steps.
    """

    def __init__(self, file: h5py.File, groups: EpisodeGroups, datasets: DatasetWriter) -> None:
        self._file, self._groups, self._datasets = file, groups, datasets
        self._masks: dict[str, list[str]] = {}
        self._shared: dict[str, Any] = {}
        self._steps = 0

    def write(self, export: Export) -> int:
        """Write all records; returns their number."""
        rows = 0
        for record, values in export.records():
            self._write_episode(record, rows, values)
            rows += 1
        for name, listed in self._masks.items():
            self._datasets.add(name, np.array(listed, np.dtypes.StringDType()), is_bytes=False, column=name)
        total = f"{self._groups.fixed}{TOTAL}"
        for name, value in ({total: self._steps} | self._shared).items():
            path, _, attribute = name.removeprefix("/").rpartition("/")
            _set_attribute(self._file.require_group(path or "/"), attribute, value, column=name)
        return rows

    def _write_episode(self, record: int, number: int, values: dict[str, Array]) -> None:
        name = str(values.pop(EPISODE)) if EPISODE in values else self._groups.name_episode(number)
        path = self._groups.path(name)
        if path is None or path in self._file:
            shown = "/".join(self._groups.parts)
            reason = "two episodes have it" if path else f"no group '{printable(shown)}' has it"
            reason = f"the name '{printable(name)}' of the episode cannot be used: {reason}"
            raise EncodeError(reason, feature=EPISODE, record=record, expected=shown, got=name)
        group, steps = self._file.create_group(path, track_order=True), dict[str, int]()
        for column, array in values.items():
            if column.startswith(STEPS):
                if not array.ndim:
                    reason = "a single value, and the columns of steps have a value for each step"
                    raise EncodeError(reason, feature=column, record=record, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
                steps[column] = len(array)
                self._write_array(f"{path}/{column.removeprefix(STEPS)}", array, column, record)
            elif column.startswith(MASKS) and array.shape == () and array.dtype == np.bool_:
                self._masks.setdefault(column, []).extend([name] if array else [])
            elif not array.ndim and column.startswith(self._groups.fixed or "/"):
                self._share(column, array, record)
            elif not array.ndim and array.dtype.kind in "biufcTU":
                _set_attribute(group, column, array, column=column, record=record)
            else:
                self._write_array(f"{path}/{column}", array, column, record)
        if len({*steps.values()}) > 1:
            (first, expected), *other_files = steps.items()
            column, got = next((name, count) for name, count in other_files if count != expected)
            reason = f"it has {got} steps here, and '{printable(first)}' has {expected}"
            raise EncodeError(reason, feature=column, record=record, expected=expected, got=got)
        if steps and NUM_SAMPLES not in group.attrs:
            count = next(iter(steps.values()))
            group.attrs[NUM_SAMPLES] = count
            self._steps += count

    def _share(self, column: str, array: Array, record: int) -> None:
        """Keep a value of the group around the episodes, which all of them have."""
        value = self._shared.setdefault(column, array)
        if value != array:
            reason = f"an attribute of the group '{self._groups.fixed or '/'}', of which this record has another value"
            raise EncodeError(reason, feature=column, record=record, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)

    def _write_array(self, path: str, array: Array, column: str, record: int) -> None:
        if path in self._file:
            reason = "two columns would become this dataset"
            raise EncodeError(reason, feature=column, record=record, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
        items = array.reshape(-1).tolist() if array.dtype.kind == "O" else []
        is_bytes = bool(items) and all(isinstance(item, bytes) for item in items)
        values: Array | Ragged = array
        if items and not is_bytes:
            parts = [np.asarray(item) for item in items]
            values = Ragged(np.concatenate(parts), np.cumsum([0, *map(len, parts)]))
        try:
            self._datasets.add(path, values, is_bytes, column)
        except EncodeError as error:
            error.record = record
            raise


def _set_attribute(group: h5py.Group, name: str, value: Any, *, column: str, record: int | None = None) -> None:
    """Set an attribute to a single value."""
    value = np.asarray(value)
    try:
        group.attrs[name] = value.item() if value.dtype.kind in "TU" else value[()]
    except ValueError as error:
        reason = f"an attribute of HDF5 cannot have this value: {printable(str(error), 120)}"
        raise EncodeError(reason, feature=column, record=record, hint=EXCLUDE, hint_cli=EXCLUDE_CLI) from error
