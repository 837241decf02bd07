"""Earth Engine: exported images as xarray Datasets, and Datasets as the patches that an upload expects.

An export has a record for each patch, with a feature of floats (of bytes, for bands of bytes) for each band, in the
order channel, row, column; and a mixer file, which says where the patches are:
https://developers.google.com/earth-engine/guides/tfrecord.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io import write_tfrecord
from tfrecord_io.base import StorageOptions
from tfrecord_io.columns import Column
from tfrecord_io.errors import DecodeError, EncodeError, FeatureNotFoundError
from tfrecord_io.kit import Array, LateTypes, ReadOptions, WriteOptions, check_keywords, counted, needs, printable
from tfrecord_io.read import CallSource
from tfrecord_io.store import PathMatch, Source
from tfrecord_io.typing import (
    Compression,
    FileMode,
    FilesLike,
    Float64,
    Path,
    ProgressLike,
    Reader,
    StorageLike,
    WriteReport,
)

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = LateTypes("xarray")
Mixer = Path | Mapping[str, Any]
_PIXELS = 1 << 33  # of an image, at most: Earth Engine exports fewer
_ONE = "pass a mixer file for the files of one export"


@check_keywords
def read_earth_engine(
    source: FilesLike,
    mixer: Mixer,
    *,
    kernel_size: tuple[int, int] = (0, 0),
    channels: Mapping[str, int] | None = None,
    storage_options: StorageLike | None = None,
) -> xr.Dataset:
    """Read an image that Earth Engine has exported as TFRecord: its bands as variables over ``y`` and ``x``.

    >>> import numpy as np, tfrecord_io as tfr
    >>> affine = {"doubleMatrix": [30, 0, 500_000, 0, -30, 4_100_000]}
    >>> mixer = {"projection": {"crs": "EPSG:32610", "affine": affine}}
    >>> mixer |= {"patchDimensions": [2, 2], "patchesPerRow": 2, "totalPatches": 2}
    >>> _ = tfr.write_tfrecord(
    ...     {"B4": [[0.0, 1, 2, 3], [4.0, 5, 6, 7]]}, "image.tfrecord.gz"
    ... )
    >>> image = tfr.formats.read_earth_engine("image.tfrecord.gz", mixer)
    >>> image["B4"].values.tolist()
    [[0.0, 1.0, 4.0, 5.0], [2.0, 3.0, 6.0, 7.0]]
    >>> image["x"].values.tolist(), image.attrs["crs"]
    ([500015.0, 500045.0, 500075.0, 500105.0], 'EPSG:32610')

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` selects bands, and has more reading options.
    mixer : str, PathLike or dict
        The file ``…mixer.json`` of the export, or its content.
    kernel_size : tuple of int, default (0, 0)
        The option ``kernelSize`` of the export, width and height: patches overlap by it, and are cropped.
    channels : dict, optional
        The number of values per pixel of array bands, and of bands that ``collapseBands`` joined:
        ``{"series": 3}``. All other bands have one.
    storage_options
        As in `read_tfrecord`.

    Returns
    -------
    xarray.Dataset
        Patches are in their places; of several files, in the order of the numbers in their names. Floats are float32,
        bands of bytes uint8. An array band has the dimension ``<band>_channel`` before these. The coordinates are those
        of the centres of pixels, unless the projection is rotated; the attributes ``crs`` and ``transform`` are those
        of the mixer file.

    Raises
    ------
    DecodeError
        The mixer file is damaged, or states another number or size of patches than the files have. The names of
        several files do not number them from 0 on.
    MissingDependencyError
        xarray is not installed.
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As in `tfrecord_io.dataset`.
    """
    with needs("earth_engine"):
        import xarray as xr
    options = CallSource(source).options(ReadOptions, of=read_earth_engine, storage_options=storage_options)
    layout = _Layout.from_mixer(mixer, options.storage)
    counts = {} if channels is None else channels
    if not isinstance(counts, Mapping) or any(type(count) is not int or count < 1 for count in counts.values()):
        expected = "the number of values per pixel by band: {'series': 3}"
        raise ValueError(f"channels={channels!r}: expected {expected}")
    found = CallSource(source).found_files(options)
    sources = found.sources
    if len(sources) > 1:
        sources = sources.take(_order_by_number(sources))
    with found.with_sources(sources).open() as reader:
        patches = _patches(reader, layout, kernel_size, counts)
    variables = {}
    for name in list(patches):
        image = layout.join_patches(patches.pop(name), kernel_size, counts.get(name, 1))
        dims = ("y", "x") if image.ndim == 2 else (f"{name}_channel", "y", "x")
        variables[name] = xr.Variable(dims, image)
    return xr.Dataset(variables, layout.coordinates(), {"crs": layout.crs, "transform": layout.affine})


@check_keywords
def write_earth_engine(
    dataset: xr.Dataset,
    path: Path,
    mixer: Mixer,
    *,
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    float64: Float64 | None = None,
    mode: FileMode | None = None,
    threads: int | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> WriteReport:
    """Write an xarray Dataset as patches, in the order of a mixer file: what ``earthengine upload image`` takes.

    >>> import numpy as np, tfrecord_io as tfr, xarray as xr
    >>> mixer = {
    ...     "projection": {
    ...         "crs": "EPSG:4326",
    ...         "affine": {"doubleMatrix": [1, 0, 0, 0, -1, 0]},
    ...     }
    ... }
    >>> mixer |= {"patchDimensions": [2, 1], "patchesPerRow": 2, "totalPatches": 4}
    >>> classes = xr.Dataset({"class": (("y", "x"), np.arange(8).reshape(2, 4))})
    >>> tfr.formats.write_earth_engine(classes, "predictions.tfrecord.gz", mixer).records
    4
    >>> tfr.read_table("predictions.tfrecord.gz")["class"].to_pylist()
    [[0, 1], [2, 3], [4, 5], [6, 7]]

    Parameters
    ----------
    dataset : xarray.Dataset
        Variables over ``y`` and ``x``, with an axis before them if they have channels, of the size of the exported
        image. Where there are coordinates ``y`` and ``x``, they are the centres of its pixels, in any order. Floats are
        written as float lists, integers and bools as int64 lists.
    path : str or PathLike
        The TFRecord file: ``predictions.tfrecord.gz``. It is uploaded together with the mixer file.
    mixer : str, PathLike or dict
        The mixer file of the export that the predictions were made of, or its content.
    compression, compression_level, float64, mode, threads, storage_options, progress
        As in `write_tfrecord`.

    Returns
    -------
    WriteReport

    Raises
    ------
    EncodeError
        A variable has other dimensions, or another size than the image of the mixer file; coordinates or ``crs`` are
        those of another image.
    DecodeError
        The mixer file is damaged.
    EncodeError, FileExistsError
        As in `write_tfrecord`.
    """
    options = WriteOptions(
        compression=compression,
        compression_level=compression_level,
        float64=float64,
        mode=mode,
        threads=threads,
        storage_options=storage_options,
        progress=progress,
        embed_schema=False,
    )
    layout = _Layout.from_mixer(mixer, options.storage)
    for name, variable in dataset.data_vars.items():
        if variable.dims[-2:] != ("y", "x") or variable.ndim > 3 or variable.shape[-2:] != layout.shape:
            got = dict(zip(variable.dims, variable.shape, strict=True))
            reason = f"its dimensions are {got}, and those of the image y: {layout.shape[0]}, x: {layout.shape[1]}"
            advice = 'transpose it with dataset.transpose(..., "y", "x")'
            raise EncodeError(reason, feature=str(name), expected=layout.shape, got=variable.shape, hint=advice)
    dataset = layout.arrange(dataset)
    images = {str(name): variable for name, variable in dataset.data_vars.items()}
    fields = [pa.field(name, pa.large_list(_value_type(image.dtype, name))) for name, image in images.items()]
    schema = pa.schema(fields)

    def batches() -> Iterator[pa.RecordBatch]:
        for row in range(layout.rows):
            columns = []
            for field, image in zip(schema, images.values(), strict=True):
                values = np.asarray(image[..., layout.slice_of_row(row), :])
                channels = values.reshape(-1, layout.height, layout.per_row, layout.width)
                flat = np.ascontiguousarray(channels.transpose(2, 0, 1, 3)).reshape(layout.per_row, -1)
                offsets = np.arange(len(flat) + 1, dtype=np.int64) * flat.shape[1]
                stored = pa.array(flat.astype(flat.dtype.newbyteorder("="), copy=False).reshape(-1)).cast(
                    field.type.value_type
                )
                columns.append(pa.LargeListArray.from_arrays(pa.array(offsets), stored))
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return write_tfrecord(pa.RecordBatchReader.from_batches(schema, batches()), path, **options.changes)


def _value_type(dtype: np.dtype[Any], name: str) -> pa.DataType:
    if dtype.kind in "iub" and dtype != np.uint64:
        return pa.int64()
    if dtype.kind == "f":
        return pa.float64() if dtype == np.float64 else pa.float32()
    raise EncodeError(f"values of dtype {dtype} cannot be uploaded", feature=name, expected="numbers", got=str(dtype))


# ---- where patches are


@dataclass(frozen=True, slots=True)
class _Layout:
    """The content of a mixer file."""

    width: int  # of a patch, without its overlap
    height: int
    per_row: int
    count: int
    crs: str
    affine: tuple[float, ...]  # x and y of a pixel's corner: a · column + b · row + c, d · column + e · row + f

    @classmethod
    def from_mixer(cls, mixer: Mixer, storage: StorageOptions) -> _Layout:
        content: Any
        if isinstance(mixer, Mapping):
            path, content = "mixer", mixer
        else:
            source = PathMatch.find(mixer, "", storage).single(_ONE)
            with source.open_file() as file:
                data = file.read(_MIXER_BYTES + 1)
            path = source.path
            try:
                content = json.loads(data) if len(data) <= _MIXER_BYTES else None
            except (ValueError, RecursionError) as error:
                raise _damage_error(path, "it is not JSON") from error
        try:
            (width, height), projection = content["patchDimensions"], content["projection"]
            numbers = (width, height, content["patchesPerRow"], content["totalPatches"])
            affine = tuple(float(value) for value in projection["affine"]["doubleMatrix"])
            crs = projection.get("crs") or projection["wkt"]
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else "values of other types"
            raise _damage_error(path, f"it has {what}") from error
        if not all(type(number) is int and number > 0 for number in numbers) or content["totalPatches"] % numbers[2]:
            raise _damage_error(path, f"no image has {numbers[3]} patches of {width} x {height}, {numbers[2]} per row")
        if width * height * numbers[3] > _PIXELS:
            raise _damage_error(path, f"an image of {width * height * numbers[3]} pixels is too large")
        if len(affine) != 6 or not all(map(math.isfinite, affine)) or not isinstance(crs, str):
            raise _damage_error(path, "its projection needs a crs and an affine doubleMatrix of six numbers")
        return cls(*numbers, crs, affine)

    @property
    def rows(self) -> int:
        """Number of rows of patches."""
        return self.count // self.per_row

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the image."""
        return self.rows * self.height, self.per_row * self.width

    def slice_of_row(self, row: int) -> slice:
        return slice(row * self.height, (row + 1) * self.height)

    def coordinates(self) -> dict[str, Any]:
        a, b, c, d, e, f = self.affine
        if b or d:
            return {}
        return {"y": f + e * (np.arange(self.shape[0]) + 0.5), "x": c + a * (np.arange(self.shape[1]) + 0.5)}

    def arrange(self, dataset: Any) -> Any:
        """Put the pixels of a Dataset into the order of the image; EncodeError for pixels of another image."""
        crs = dataset.attrs.get("crs")
        if (
            isinstance(crs, str)
            and _AUTHORITY.match(crs)
            and _AUTHORITY.match(self.crs)
            and crs.lower() != self.crs.lower()
        ):
            reason = f"its crs is {printable(crs)}, and that of the mixer file {printable(self.crs)}"
            raise EncodeError(reason, expected=self.crs, got=crs, hint="reproject it")
        centres = self.coordinates()
        for dim in ("y", "x"):
            if dim not in dataset.coords:
                continue
            reason, order = "the projection of the mixer file is rotated: no pixels have one coordinate", None
            if centres:
                reason, order = _order(np.asarray(dataset.coords[dim].values), centres[dim])
            if order is None:
                advice = f"resample it; if its rows and columns are those of the image, pass dataset.drop_vars({dim!r})"
                raise EncodeError(f"its coordinate {reason}", feature=dim, hint=advice)
            if (np.diff(order) < 0).any():
                dataset = dataset.isel({dim: np.argsort(order)})
        return dataset

    def join_patches(self, patches: list[Array], kernel_size: tuple[int, int], channels: int) -> Array:
        """Join patches, flat as they are stored, to an image; the list is emptied to free memory."""
        left, top = kernel_size[0] // 2, kernel_size[1] // 2
        image = np.empty((channels, *self.shape), patches[0].dtype)
        number = 0
        while patches:
            block = patches.pop(0)
            block = block.reshape(len(block), channels, self.height + kernel_size[1], self.width + kernel_size[0])
            for patch in block[:, :, top : top + self.height, left : left + self.width]:
                row, column = divmod(number, self.per_row)
                image[:, self.slice_of_row(row), column * self.width : (column + 1) * self.width] = patch
                number += 1
        return image if channels > 1 else image[0]


_MIXER_BYTES = 1 << 20
_AUTHORITY = re.compile(r"\w+:\w+$")  # EPSG:4326: other texts for the same projection differ
_TOLERANCE = 0.1  # of a pixel: coordinates may be float32


def _order(coordinates: Array, centres: Array) -> tuple[str, Array | None]:
    """The pixels whose centres are the coordinates of an axis; None, and the reason, if they are not all pixels."""
    if coordinates.shape != centres.shape or coordinates.dtype.kind not in "iuf":
        return f"has {coordinates.shape} values of {coordinates.dtype}, and the image {len(centres)} pixels", None
    step = centres[1] - centres[0] if len(centres) > 1 else 1.0
    pixels = (coordinates.astype(np.float64) - centres[0]) / step
    order = np.rint(pixels)
    if (np.sort(order) == np.arange(len(order))).all() and (np.abs(pixels - order) <= _TOLERANCE).all():
        return "", order.astype(np.int64)
    lowest, highest = float(coordinates.min()), float(coordinates.max())
    return (
        f"goes from {lowest} to {highest}, and the centres of the pixels from {centres.min()} to {centres.max()}",
        None,
    )


def _damage_error(path: str, reason: str) -> DecodeError:
    return DecodeError(f"no mixer file of Earth Engine: {reason}", path=path, expected="mixer.json")


# ---- the bands of patches


_NUMBERED = re.compile(r"(?P<stem>.*?)(?P<number>\d+)(?P<rest>(-of-\d+)?(\.[a-z_]+)*)$", re.IGNORECASE)


def _order_by_number(sources: Sequence[Source]) -> Array:
    """The order of the files of one export by the numbers in their names; DecodeError if these do not give it."""
    name_matches = [_NUMBERED.match(source.path.rpartition("/")[2]) for source in sources]
    numbers = [int(match["number"]) for match in name_matches if match is not None]
    of_one = {(match["stem"], match["rest"]) for match in name_matches if match is not None}
    if len(of_one) > 1 or sorted(numbers) != list(range(len(sources))):
        reason = "the names of the files do not give the order of their patches"
        names = [source.path.rpartition("/")[2] for source in sources]
        advice = "pass all files of one export by their names, image-00000.tfrecord.gz, image-00001.tfrecord.gz, …"
        raise DecodeError(reason, path=sources[0].path, expected="numbers from 0 on", got=names[:8], hint=advice)
    return np.argsort(numbers)


def _patches(
    reader: Reader, layout: _Layout, kernel_size: tuple[int, int], channels: Mapping[str, int]
) -> dict[str, list[Array]]:
    """The flat patches of each band, batch by batch."""
    if len(kernel_size) != 2 or any(type(size) is not int or size < 0 or size % 2 for size in kernel_size):
        raise ValueError(f"kernel_size={kernel_size!r}: expected the width and the height, even numbers")
    pixels = (layout.width + kernel_size[0]) * (layout.height + kernel_size[1])
    patches: dict[str, list[Array]] = {name: [] for name in reader.schema.names}
    for name in channels.keys() - patches.keys():
        raise FeatureNotFoundError("channels= names no band", feature=name, expected=list(patches))
    count = 0
    for batch in reader:
        count += len(batch)
        if count > layout.count:
            break
        for field, column in zip(reader.schema, batch.columns, strict=True):
            patches[field.name].append(
                _flat(
                    column,
                    field,
                    pixels=pixels,
                    channels=channels.get(field.name, 1),
                    reader=reader,
                    row=count - len(batch),
                )
            )
    if count != layout.count:
        shown_count = "more" if count > layout.count else str(count)
        reason = f"the mixer file states {layout.count} patches, and the files have {shown_count}"
        raise DecodeError(reason, expected=layout.count, got=count, hint="read all files of the export, of one image")
    return patches


def _flat(column: pa.Array, field: pa.Field, pixels: int, channels: int, reader: Reader, row: int) -> Array:
    """The patches of a band, [rows, values]."""
    where: dict[str, Any] = {"feature": field.name}
    if column.null_count:
        path, record = reader.origin(row + column.is_null().index(True).as_py())
        raise DecodeError("a patch lacks this band", path=path, record=record, **where)
    if Column(field.type).is_bytes:
        data = column.cast(pa.large_binary())
        sizes = np.diff(np.frombuffer(data.buffers()[1], np.int64)[data.offset : data.offset + len(data) + 1])
        values = np.frombuffer(b"".join(data.to_pylist()), np.uint8)
    else:
        rows = Column(field).rows(column)
        sizes, values = rows.lengths, rows.values
    if values.dtype.kind not in "iufb":
        raise DecodeError(
            f"a band of {field.type} has no pixels", expected="numbers", hint=_TABLE, hint_cli=_TABLE_CLI, **where
        )
    expected = pixels * channels
    if (sizes == expected).all():
        return np.asarray(values).reshape(len(column), expected)
    wrong = int((sizes != expected).argmax())
    path, record = reader.origin(row + wrong)
    size = int(sizes[wrong])
    reason = f"a patch of {counted(size, 'value')}, and the mixer file states {pixels} pixels"
    advice = _KERNEL
    if channels > 1:
        reason = f"{reason} of {channels} channels"
    elif size and not size % pixels:
        band = f"channels={ {printable(field.name): size // pixels}!r}"
        advice = f"if it is a band of arrays, pass {band}; {_KERNEL}"
    raise DecodeError(
        reason, path=path, record=record, expected=expected, got=size, hint=advice, hint_cli=_KERNEL_CLI, **where
    )


_KERNEL = (
    "pass kernel_size=, the kernelSize of the export, if patches overlap; exclude what is not a band with columns="
)
_KERNEL_CLI = "exclude what is not a band with --columns"
_TABLE = "exclude it with columns=; a table is read by read_table"
_TABLE_CLI = "exclude it with --columns; a table is read by read_table"
