"""Read the datasets of HDF5 files as columns, and write columns as datasets. Links to other files are refused."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream, Project, columns_by_array
from tfrecord_io.apps.file_formats.array_files.cf_conventions import Label, plain_attribute, stream_of_group
from tfrecord_io.apps.file_formats.array_files.hdf5_datasets import (
    DatasetWriter,
    Links,
    attributes_of,
    check_dataset_name,
    open_file,
    stored_array,
)
from tfrecord_io.apps.file_formats.array_files.hdf5_episodes import EpisodeGroups, EpisodeWriter, stream_of_episodes
from tfrecord_io.apps.file_formats.array_files.open_array import BLOCK_BYTES
from tfrecord_io.apps.file_formats.array_files.stored_arrays import EXCLUDE, EXCLUDE_CLI, StoredArray, library_errors
from tfrecord_io.apps.file_formats.array_files.to_numpy_files import Export
from tfrecord_io.base import Limits, StorageOptions
from tfrecord_io.columns import Column
from tfrecord_io.errors import DecodeError, EncodeError, SchemaWarning
from tfrecord_io.kit import FORMATS, Options, counted, for_cli, needs, open_output, printable, warn
from tfrecord_io.store import PathMatch, Source, named_temporary_folder
from tfrecord_io.typing import FileMode, WriteReport

if TYPE_CHECKING:
    import h5py

_HDF5 = FORMATS.hdf5

_COPY = f"copy it into the file, or {EXCLUDE}"
_NONE = np.dtype(object)  # instead of a dtype that is not known


def open_hdf5(
    path: Any,
    *,
    project: Project,
    limits: Limits = Limits.DEFAULT,
    record_dim: str | None = None,
    decode_cf: bool = True,
    episodes: str | None = None,
    **keywords: Any,
) -> ArrayStream:
    """The datasets of a file, with a row for each index of their first axis; those of groups are ``group/name``.

    With `episodes`, a row for each of these groups of one or more files: see `hdf5_episodes.py`.

    A dataset has all names that hard and soft links give it and its groups, but those that lead in a circle. A
    SchemaWarning lists links that lead nowhere. If all have names of dimensions, as in NetCDF files, the rows are those
    of one of these.

    Raises
    ------
    DecodeError
        The file is damaged, or a dataset is in another file, or has more further names than `limits` has features.
    EncodeError
        Datasets that are needed differ in length, or have values that no column holds.
    """
    storage = Options.from_keywords(keywords).storage
    paths = [path] if isinstance(path, str | os.PathLike) else path
    if episodes is not None:
        if record_dim is not None:
            raise TypeError("episodes= and record_dim= cannot be used together: an episode is a record")
        sources = [source for item in paths for source in PathMatch.find(item, _HDF5.suffixes, storage).sources]
        return stream_of_episodes(sources, EpisodeGroups.parse(episodes), project=project, limits=limits)
    source = _single_file(paths, storage)
    with ExitStack() as opened:
        raw = opened.enter_context(closing(source.open_file()))
        return stream_of_file(
            raw, source, opened=opened, limits=limits, project=project, record_dim=record_dim, decode_cf=decode_cf
        )


def _single_file(paths: Sequence[Any], storage: StorageOptions) -> Source:
    """The file of a path, which may be a glob of one file."""
    files = PathMatch.find(paths[0], _HDF5.suffixes, storage)
    if len(paths) == 1 and len(files.sources) == 1 and not files.is_directory:
        return files.sources[0]
    what = "a folder" if files.is_directory else counted(max(len(paths), len(files.sources)), "file")
    text = f"'{printable(files.path)}': {what}, and the rows are those of one file: convert them one by one"
    error = ValueError(f"{text}, or pass source_options={{'episodes': '/'}} for a record of each file")
    raise for_cli(error, f"{text}, or pass --episodes / for a record of each file")


def stream_of_file(
    raw: Any, source: Source, opened: ExitStack, limits: Limits, project: Project, **labelled: Any
) -> ArrayStream:
    """`open_hdf5` of an open file; `labelled` are its keywords of `stream_of_group`."""
    with library_errors(source.path):
        file = opened.enter_context(open_file(raw, source))
        links = Links(file)
        datasets = dict(links.datasets(source.path, limits.features))
        labels = _labels(file, datasets)
        dtypes = {name: _NONE if isinstance(item, str) else item.dtype for name, item in datasets.items()}
    size = raw.seek(0, 2)

    def open(name: str) -> StoredArray:
        path, dataset = f"{source.path}: {name}", datasets[name]
        if isinstance(dataset, str):
            raise DecodeError(dataset, path=path, hint=_COPY)
        with library_errors(path):
            return stored_array(dataset, path, size, limits.expansion_bytes)

    if links.nowhere:
        is_needed = project([*chain.from_iterable(columns_by_array(dtypes).values()), *links.nowhere])
        if left_out := Column.column_list([name for name in links.nowhere if is_needed(name)]):
            warn(f"{source.path}: left out {left_out}: soft links of these names lead nowhere", SchemaWarning)
    try:
        return stream_of_group(dtypes, open, files=opened, path=source.path, project=project, labels=labels, **labelled)
    except EncodeError as error:
        groups = _similar_groups(datasets)
        if groups is not None and error.hint is not None and EXCLUDE in error.hint:
            text = f"if the groups '{printable(groups)}' are episodes,"
            hint = f"{text} source_options={{'episodes': {groups!r}}} makes a record of each; else {EXCLUDE}"
            error.set_hint(hint, f"{text} --episodes '{groups}' makes a record of each; else {EXCLUDE_CLI}")
        raise


def _similar_groups(datasets: Mapping[str, h5py.Dataset | str]) -> str | None:
    """The groups with datasets of the same names as their neighbours, as a pattern: ``data/*``; None if there are none.

    >>> _similar_groups(dict.fromkeys(["data/demo_0/x", "data/demo_1/x", "y"], ""))
    'data/*'
    """
    for depth in range(8):
        names: dict[str, dict[str, set[str]]] = {}  # of datasets, by the group around and the group
        for parts in (name.split("/") for name in datasets):
            if len(parts) > depth + 1:
                around = names.setdefault("".join(f"{part}/" for part in parts[:depth]), {})
                around.setdefault(parts[depth], set()).add("/".join(parts[depth + 1 :]))
        for around_name, groups in names.items():
            first, *others = groups.values()
            if others and all(group == first for group in others):
                return f"{around_name}*"
    return None


# NetCDF-4's prefix of a variable named like a dimension without being its coordinate.
_NO_COORDINATE = "_nc4_non_coord_"
_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable"


def _labels(file: h5py.File, found: dict[str, h5py.Dataset | str]) -> dict[str, Label]:
    """The labels of datasets and groups; what NetCDF has for a dimension without a variable is removed."""
    labels = {"/": Label(None, attributes_of(file))}
    scales: dict[int, str] = {}
    for name, dataset in list(found.items()):
        labels[name] = Label() if isinstance(dataset, str) else Label(None, attributes_of(dataset))
        for group in (name[: at + 1] for at, letter in enumerate(name) if letter == "/"):
            if group not in labels:
                labels[group] = Label(None, attributes_of(file[group]))
        if isinstance(dataset, str):
            continue
        if _is_scale(dataset):
            if "_Netcdf4Dimid" in dataset.attrs:
                scales[int(dataset.attrs["_Netcdf4Dimid"])] = name
            if str(plain_attribute(dataset.attrs.get("NAME"))).startswith(_NO_VARIABLE):
                del found[name]
    for name, dataset in list(found.items()):
        if not isinstance(dataset, str):
            labels[name].dims = _dimensions(name, dataset, scales)
        group, slash, local_name = name.rpartition("/")
        dimension_name = group + slash + local_name.removeprefix(_NO_COORDINATE)
        key = dimension_name if scales and dimension_name not in found else name  # NetCDF numbers its dimensions
        found[key], labels[key] = found.pop(name), labels[name]
    return labels


def _dimensions(name: str, dataset: h5py.Dataset, scales: dict[int, str]) -> tuple[str, ...] | None:
    """The paths of the datasets that are the scales of all axes; None if an axis has none."""
    if not dataset.shape:
        return ()
    if "DIMENSION_LIST" in dataset.attrs:
        axes = _scales(dataset)
    elif "_Netcdf4Coordinates" in dataset.attrs:
        axes = [scales.get(int(number)) for number in np.atleast_1d(dataset.attrs["_Netcdf4Coordinates"])]
    else:
        axes = [name] if _is_scale(dataset) and dataset.ndim == 1 else []
    names = tuple(axis for axis in axes if axis is not None)
    return names if len(names) == dataset.ndim and len({*names}) == len(names) else None


def _is_scale(dataset: h5py.Dataset) -> bool:
    return bool(np.all(plain_attribute(dataset.attrs.get("CLASS")) == "DIMENSION_SCALE"))


def _scales(dataset: h5py.Dataset) -> list[str | None]:
    """The path of the first scale of each axis; for other values than references, h5py.dims ends the process."""
    import h5py

    attribute = dataset.attrs.get_id("DIMENSION_LIST")
    items = h5py.check_vlen_dtype(attribute.dtype)
    if attribute.shape != (dataset.ndim,) or items is None or h5py.check_ref_dtype(items) is not h5py.Reference:
        return []
    lists = [list(references) for references in dataset.attrs["DIMENSION_LIST"]]
    targets = [h5py.h5r.dereference(scales[0], dataset.id) if scales and scales[0] else None for scales in lists]
    paths = [b"" if target is None else h5py.h5i.get_name(target) for target in targets]
    return [path.decode("utf-8", "replace").lstrip("/") or None for path in paths]


# ---- writing


def to_hdf5(
    source: Any,
    target: Any,
    *,
    compressed: bool = False,
    episodes: str | None = None,
    mode: FileMode | None = None,
    **keywords: Any,
) -> WriteReport:
    """Write the columns of TFRecord files as datasets, whose first axis is that of the records; ``a/b`` is in a group.

    With `episodes`, each record becomes a group: see `hdf5_episodes.py`.

    Text has no fixed length; bytes are lists of uint8, with an attribute that says so. Lists of one length are arrays
    if the schema says so, and lists otherwise.
    """
    with needs(_HDF5.extra, _HDF5.title):
        import h5py
    export = Export(source, keywords)
    if episodes is not None:
        groups = EpisodeGroups.parse_target(episodes)
    for name in export.names:
        check_dataset_name(name if episodes is None else name.removeprefix("/"), name)

    def write(temporary: TemporaryFile) -> int:
        with h5py.File(temporary, "w", track_order=True) as file:
            writer = DatasetWriter(file, compressed, export.attributes)
            if episodes is None:
                return export.write(temporary.raising_failed_writes(writer.append))
            return EpisodeWriter(file, groups, writer).write(export)

    return write_file(target, export, mode, write)


def write_file(
    target: Any, export: Export, mode: FileMode | None, write: Callable[[TemporaryFile], int]
) -> WriteReport:
    """Write a temporary file, which h5py can read back, and copy it to the target; `write` returns the rows."""
    with open_output(target, export.storage, mode=mode) as output, tempfile.TemporaryFile(buffering=0) as file:
        with named_temporary_folder():
            temporary = TemporaryFile(file)
            rows = temporary.raising_failed_writes(write)(temporary)
        file.seek(0)
        shutil.copyfileobj(file, output.as_stream(), BLOCK_BYTES)
        return WriteReport(
            os.fspath(target), rows, bytes=output.offset, compression=None, columns=export.names, rounded={}
        )


class TemporaryFile(io.RawIOBase):
    """A temporary file that hides failed writes from HDF5, as an error during its close crashes the process.

    What cannot be written is kept in memory until HDF5 has closed the file; `raising_failed_writes` raises the error.
    """

    def __init__(self, file: Any) -> None:
        self._file, self._offset = file, 0
        self._kept: list[tuple[int, bytes]] = []  # offsets and contents
        self._error: OSError | None = None

    def raising_failed_writes(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A function that raises the error of the first failed write after its call."""

        def call_and_check(*arguments: Any) -> Any:
            result = call(*arguments)
            if self._error is not None:
                raise self._error
            return result

        return call_and_check

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_END:
            offset += max(self._file.seek(0, os.SEEK_END), *(begin + len(data) for begin, data in self._kept), 0)
        self._offset = offset
        return offset

    def readinto(self, buffer: Any, /) -> int:
        view = memoryview(buffer).cast("B")
        view[:] = bytes(len(view))
        self._file.seek(self._offset)
        count = self._file.readinto(view)
        for begin, data in self._kept:
            first, last = max(begin, self._offset), min(begin + len(data), self._offset + len(view))
            if first < last:
                view[first - self._offset : last - self._offset] = data[first - begin : last - begin]
                count = max(count, last - self._offset)
        self._offset += count
        return int(count)

    def write(self, data: Any, /) -> int:
        view = memoryview(data).cast("B")
        written = 0
        if self._error is None:
            try:
                self._file.seek(self._offset)
                while written < len(view):
                    written += self._file.write(view[written:])
            except OSError as error:
                self._error = error
        if self._error is not None:
            self._kept.append((self._offset, bytes(view)))
        self._offset += len(view)
        return len(view)

    def truncate(self, size: int | None = None, /) -> int:
        try:
            return int(self._file.truncate(size))
        except OSError as error:
            self._error = self._error or error
            return size or 0
