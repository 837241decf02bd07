"""Zarr folders: zarr writes what is read here, and reads what is written here."""

from __future__ import annotations

import json
import os
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import tfrecord_io as tfr
from rounds import COMPLETE, rounds

zarr = pytest.importorskip("zarr")

DTYPES = ["?", "i1", "<i2", ">i4", "u1", "<u4", "f2", ">f4", "f8", "c8", "<M8[us]"]
FINITE = {"allow_nan": False}
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")


def group(path: Path, version: int = 3, **arrays: Any) -> Any:
    made = zarr.open_group(path, mode="w", zarr_format=version)
    for name, values in arrays.items():
        made[name] = np.asarray(values)
    return made


@settings(max_examples=rounds(30))
@given(
    st.sampled_from(DTYPES).flatmap(
        lambda dtype: npst.arrays(
            dtype, npst.array_shapes(max_dims=3, max_side=4), elements=FINITE if dtype[-1] == "]" else None
        )
    ),
    st.sampled_from([2, 3]),
)
def test_arrays_round_trip(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, version: int) -> None:
    folder = tmp_path_factory.mktemp("zarr")
    group(folder / "a.zarr", version, **{"inner/x": array})
    tfr.convert(folder / "a.zarr", folder / "a.tfrecord", float64="raw")
    tfr.convert(folder / "a.tfrecord", folder / "b.zarr")
    actual = zarr.open_group(folder / "b.zarr", mode="r")["inner/x"][:]
    np.testing.assert_array_equal(actual, array.astype(array.dtype.newbyteorder("<")), strict=True)


def test_columns_of_each_kind_round_trip(tmp_path: Path) -> None:
    """Chunks of other numbers of rows than batches; text and bytes of no fixed length."""
    rows = 9000
    data = {
        "blob": [bytes([0, i % 256]) * (i % 3) for i in range(rows)],
        "g/x": np.arange(rows * 4, dtype=np.float32).reshape(rows, 4),
        "text": [f"ä{i}" for i in range(rows)],
    }
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    report = tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.zarr", source_options={"batch_size": 777})
    assert report.bytes == sum(file.stat().st_size for file in (tmp_path / "a.zarr").rglob("*") if file.is_file())
    tfr.convert(tmp_path / "a.zarr", tmp_path / "b.tfrecord")
    before, after = tfr.read_table(tmp_path / "a.tfrecord"), tfr.read_table(tmp_path / "b.tfrecord")
    assert after.select(before.column_names).equals(before)
    opened = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert opened["text"][:].tolist() == data["text"]
    assert opened["blob"][:].tolist() == data["blob"]


def test_shards_arrays_without_a_group_and_buckets(tmp_path: Path) -> None:
    values = np.arange(5000).reshape(1000, 5)
    zarr.create_array(tmp_path / "x.zarr", data=values, chunks=(10, 5), shards=(250, 5))
    tfr.convert(tmp_path / "x.zarr", tmp_path / "a.tfrecord")
    assert (tfr.read_arrays(tmp_path / "a.tfrecord")["x"] == values).all()
    fs = MemoryFileSystem()
    fs.put(f"{tmp_path}/x.zarr/", "/bucket/x.zarr/", recursive=True)
    assert tfr.convert("memory://bucket/x.zarr", tmp_path / "b.tfrecord").records == 1000
    tfr.convert(tmp_path / "a.tfrecord", "memory://bucket/y.zarr")
    assert tfr.convert("memory://bucket/y.zarr", tmp_path / "b.tfrecord").records == 1000
    fs.rm("/bucket", recursive=True)


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    for data, reason in (
        ({"x": [1, None]}, "has no value"),
        ({"x": [[1], [1, 2]]}, "differ in length"),
        ({"a": [1], "a/b": [2]}, "name of a column, and of a group"),
        ({"../x": [1]}, "its name cannot be that of an array"),
    ):
        tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
        with pytest.raises(tfr.errors.EncodeError, match=reason):
            tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.zarr")
        assert os.listdir(tmp_path) == ["a.tfrecord"]
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    group(tmp_path / "a.zarr", x=[1])
    with pytest.raises(FileExistsError, match="the folder exists and is not empty"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.zarr")


def test_sources_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tfr.convert(tmp_path / "none.zarr", tmp_path / "a.tfrecord")
    (tmp_path / "file.zarr").write_bytes(b"PK")
    with pytest.raises(NotADirectoryError, match="is a folder"):
        tfr.convert(tmp_path / "file.zarr", tmp_path / "a.tfrecord")
    (tmp_path / "empty.zarr").mkdir()
    with pytest.raises(tfr.errors.DecodeError):
        tfr.convert(tmp_path / "empty.zarr", tmp_path / "a.tfrecord")


# ---- hostile folders


@pytest.mark.fault(54)
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(range(8)))
    path = tmp_path / "a.zarr"
    made = zarr.open_group(path, mode="w", zarr_format=2)
    made.create_array("x", data=np.arange(8, dtype=np.uint8), compressors=None)
    (path / "x" / "0").unlink()
    (path / "x" / "0").symlink_to(tmp_path / "secret")
    with pytest.raises(tfr.errors.DecodeError, match="a symbolic link leads out of the folder"):
        tfr.convert(path, tmp_path / "a.tfrecord")
    (path / "x" / "0").unlink()
    os.mkfifo(path / "x" / "0")
    with pytest.raises(tfr.errors.DecodeError, match="not a regular file"):
        tfr.convert(path, tmp_path / "a.tfrecord")
    array = json.loads((path / "x" / ".zarray").read_text())
    for name in ("../secret", "/etc", "x/../../secret"):
        metadata = {".zgroup": {"zarr_format": 2}, f"{name}/.zarray": array}
        (path / ".zmetadata").write_text(json.dumps({"zarr_consolidated_format": 1, "metadata": metadata}))
        with pytest.raises(tfr.TFRecordError):
            tfr.convert(path, tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()


@pytest.mark.fault(54)
def test_shapes_without_values(tmp_path: Path) -> None:
    made = group(tmp_path / "a.zarr")
    made.create_array("x", shape=(2**40, 1000), chunks=(1, 1000), dtype="f8")
    made.create_array("chunk", shape=(2**40,), chunks=(2**36,), dtype="f8")
    made.create_array("row", shape=(1, 2**40), chunks=(1, 1000), dtype="u1")
    for name, reason in (("x", r"1000000\)\) leaves"), ("chunk", "is too large"), ("row", "a record at most")):
        with pytest.raises(tfr.TFRecordError, match=reason):
            tfr.convert(
                tmp_path / "a.zarr",
                tmp_path / "a.tfrecord",
                columns=[name],
                source_options={"limits": tfr.Limits(expansion_bytes=1_000_000)},
            )


TEXTS = b"\x08\x00\x00\x00"  # their number, in a chunk


@pytest.mark.fault(54)
@pytest.mark.parametrize("version", [2, 3])
def test_damaged_metadata_and_chunks_raise_errors_of_this_package(tmp_path: Path, version: int) -> None:
    path, count = tmp_path / "a.zarr", 20_000 if COMPLETE else 100
    made = group(path, version, x=np.arange(8, dtype=">i4"), row=np.zeros(8, [("a", "f4"), ("b", "i2")]))
    made.create_array("g/z", data=np.arange(32).reshape(8, 4), chunks=(3, 2))
    made.create_array("text", shape=(8,), dtype="string", compressors=None)[:] = np.array(["a"] * 8, object)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    draw = random.Random(version)
    for number in range(count):
        file = draw.choice(files)
        intact = file.read_bytes()
        content = bytearray(intact)
        for _ in range(draw.choice((1, 1, 2, 4))):
            content[draw.randrange(len(content))] = draw.choice((0, 48, 57, 255, draw.randrange(256)))
        if "text" in file.parts and (at := intact.find(TEXTS)) >= 0:  # zarr allocates as many (SECURITY.md)
            content[at : at + 4] = TEXTS
        if draw.random() < 0.1:
            del content[draw.randrange(len(content)) :]
        file.write_bytes(content)
        try:
            with warnings.catch_warnings(action="ignore"):
                tfr.convert(
                    path, tmp_path / "a.tfrecord", source_options={"limits": tfr.Limits(expansion_bytes=1 << 24)}
                )
        except tfr.TFRecordError:
            pass
        except Exception as error:
            error.add_note(f"mutant {number} of {file.relative_to(path)}")
            raise
        file.write_bytes(intact)


@pytest.mark.fault(54)
def test_codecs_may_raise_anything(tmp_path: Path) -> None:
    """A negative size in the header of Blosc is a SystemError of its binding."""
    made = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    numcodecs = pytest.importorskip("numcodecs")
    made.create_array("x", data=np.arange(1000), chunks=(1000,), compressors=numcodecs.Blosc())
    chunk = tmp_path / "a.zarr" / "x" / "0"
    content = bytearray(chunk.read_bytes())
    content[4:8] = b"\0\0\0\xf0"
    chunk.write_bytes(content)
    with pytest.raises(tfr.errors.DecodeError, match=r"a\.zarr: x.*damaged"):
        tfr.convert(tmp_path / "a.zarr", tmp_path / "a.tfrecord")


def test_empty_text_is_not_missing_where_zarr_fills_with_it(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    for name, dtype, values in [("text", str, ["a", ""]), ("bytes", "S1", [b"a", b""])]:
        array = group.create_array(name, shape=(2,), dtype=dtype, chunks=(2,))
        array[:] = np.array(values, object)
        array.attrs["_ARRAY_DIMENSIONS"] = ["t"]
    tfr.convert(tmp_path / "a.zarr", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"bytes": [b"a", b""], "text": ["a", ""]}


def test_the_attribute_for_missing_values_goes_before_what_zarr_fills_with(tmp_path: Path) -> None:
    array = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2).create_array(
        "x", shape=(3,), dtype="i4", chunks=(3,), fill_value=7, attributes={"_ARRAY_DIMENSIONS": ["t"], "_FillValue": 8}
    )
    array[:] = [6, 7, 8]
    tfr.convert(tmp_path / "a.zarr", tmp_path / "a.tfrecord")
    np.testing.assert_equal(tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist(), [6, 7, np.nan])


@pytest.mark.parametrize("version", [2, 3])
def test_a_folder_of_any_name_is_known_by_its_metadata(tmp_path: Path, version: int) -> None:
    """Else the JSON of version 3 would be a table with one row."""
    zarr.open_group(tmp_path / "group", mode="w", zarr_format=version)["x"] = np.arange(3)
    zarr.create_array(tmp_path / "x", data=np.arange(3), zarr_format=version)
    for name in ("group", "x"):
        tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", mode="overwrite")
        assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"x": [0, 1, 2]}
