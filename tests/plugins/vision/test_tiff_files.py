"""TIFF files of columns of arrays, which tifffile and Pillow read, and folders of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr

tifffile = pytest.importorskip("tifffile")
DTYPES = ["uint8", "uint16", "uint32", "int8", "int16", "int32", "float32", "float64"]


def values(dtype: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "shape", [(5, 4), (5, 4, 1), (5, 4, 2), (5, 4, 3), (5, 4, 4), (5, 4, 13), (1, 1, 7), (3, 5, 3)]
)
def test_arrays_become_files_and_come_back(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    bands = values(dtype, 3, *shape)
    tfr.write_tfrecord({"bands": bands, "file/name": ["a/1.tif", "a/2", "b/3.tiff"]}, tmp_path / "a.tfrecord")
    report = tfr.convert(tmp_path / "a.tfrecord", tmp_path / "scenes", files="bands")
    names = ["a/1.tif", "a/2.tif", "b/3.tiff"]
    assert report.bytes == sum((tmp_path / "scenes" / name).stat().st_size for name in names)
    for name, expected in zip(names, bands, strict=True):
        found = tifffile.imread(tmp_path / "scenes" / name)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected.reshape(found.shape))
        assert found.squeeze().shape == expected.squeeze().shape
    tfr.convert(tmp_path / "scenes", tmp_path / "b.tfrecord", source_format="images")
    read = tfr.read_arrays(tmp_path / "b.tfrecord", schema={"image/encoded": tfr.image(mode="unchanged")})
    again = read["image/encoded"]
    assert again.dtype == dtype
    np.testing.assert_array_equal(again.reshape(bands.shape), bands)


def test_pillow_reads_what_it_knows(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    columns = {"grey": values("uint16", 1, 6, 5), "colour": values("uint8", 1, 6, 5, 3)}
    tfr.write_tfrecord(columns, tmp_path / "a.tfrecord")
    for name, array in columns.items():
        tfr.formats.write_file_folder(tmp_path / "a.tfrecord", tmp_path / name, file=name, columns=[])
        np.testing.assert_array_equal(np.asarray(image.open(tmp_path / name / "00000000.tif")), array[0])


@pytest.mark.parametrize(("photometric", "channels"), [("minisblack", 2), ("rgb", 4)])
def test_channels_that_pillow_leaves_out(tmp_path: Path, photometric: str, channels: int) -> None:
    """8 bits of grey or colour with one more channel, such as infrared."""
    array = values("uint8", 5, 4, channels)
    (tmp_path / "scenes").mkdir()
    tifffile.imwrite(tmp_path / "scenes" / "a.tif", array, photometric=photometric, extrasamples=["unspecified"])
    tfr.convert(tmp_path / "scenes", tmp_path / "a.tfrecord", source_format="images")
    read = tfr.read_arrays(tmp_path / "a.tfrecord", schema={"image/encoded": tfr.image(mode="unchanged")})
    np.testing.assert_array_equal(read["image/encoded"][0], array)
    colour = tfr.read_arrays(tmp_path / "a.tfrecord", schema={"image/encoded": tfr.image(mode="RGB")})
    assert colour["image/encoded"].shape == (1, 5, 4, 3)


def test_shapes_that_vary_and_missing_arrays(tmp_path: Path) -> None:
    arrays = [values("uint16", 2, 3, 5), None, values("uint16", 4, 2, 6)]
    tfr.write_tfrecord({"bands": arrays}, tmp_path / "a.tfrecord")
    with pytest.warns(UserWarning, match="1 of 3 records have no image"):
        tfr.formats.write_image_folder(tmp_path / "a.tfrecord", tmp_path / "scenes", image="bands")
    assert tifffile.imread(tmp_path / "scenes" / "00000002.tif").shape == (4, 2, 6)


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.zeros((1, 2, 3, 4, 5), "uint8"), r"record 0.*has the shape \(2, 3, 4, 5\)"),
        (np.zeros((1, 2, 3), "complex64"), r"record 0.*array of complex64"),
        (np.zeros((1, 2, 0), "uint8"), r"record 0.*shape \(2, 0\)"),
    ],
)
def test_arrays_that_are_no_images(tmp_path: Path, array: Any, reason: str) -> None:
    tfr.write_tfrecord({"bands": array}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.TFRecordError, match=reason):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "scenes", files="bands")
    assert not (tmp_path / "scenes").exists()


def test_columns_of_lists_are_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord(pa.table({"x": [[1, 2]]}), tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="files are bytes"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "scenes", files="x")
