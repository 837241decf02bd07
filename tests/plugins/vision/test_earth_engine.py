"""Images and tables as Earth Engine exports them: tests/data/earth_engine has files that TensorFlow wrote."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.plugins.vision import earth_engine

xr = pytest.importorskip("xarray")

DATA = Path(__file__).parents[2] / "data" / "earth_engine"
MIXER = json.loads((DATA / "image-mixer.json").read_text())
EXPECTED = (np.arange(8)[:, None] * 100 + np.arange(24) + 0.5).astype(np.float32)


def test_patches_are_in_their_places() -> None:
    image = tfr.formats.read_earth_engine(
        DATA / "image-*.tfrecord.gz", DATA / "image-mixer.json", channels={"series": 3}
    )
    assert {name: band.dims for name, band in image.data_vars.items()} == {
        **dict.fromkeys(["B4", "B5", "cloud"], ("y", "x")),
        "series": ("series_channel", "y", "x"),
    }
    np.testing.assert_array_equal(image["B4"], EXPECTED, strict=True)
    np.testing.assert_array_equal(image["B5"], EXPECTED + 1000)
    np.testing.assert_array_equal(image["cloud"], EXPECTED.astype(np.uint8), strict=True)
    np.testing.assert_array_equal(image["series"], np.stack([EXPECTED, EXPECTED * 2, EXPECTED * 3]))
    np.testing.assert_array_equal(image["x"], 500_000 + 30 * (np.arange(24) + 0.5))
    np.testing.assert_array_equal(image["y"], 4_100_000 - 30 * (np.arange(8) + 0.5))
    assert image.attrs == {"crs": "EPSG:32610", "transform": (30, 0, 500_000, 0, -30, 4_100_000)}
    one = tfr.formats.read_earth_engine(tfr.dataset(DATA / "image-*.tfrecord.gz", columns=["B5"]), MIXER)
    assert one.equals(image[["B5"]])


def test_overlaps_are_cut() -> None:
    image = tfr.formats.read_earth_engine(DATA / "overlapping.tfrecord.gz", MIXER, kernel_size=(4, 2))
    np.testing.assert_array_equal(image["B4"], EXPECTED, strict=True)
    with pytest.raises(tfr.errors.DecodeError, match=r"a patch of 72 values, .* 32 pixels; pass kernel_size="):
        tfr.formats.read_earth_engine(DATA / "overlapping.tfrecord.gz", MIXER)
    with pytest.raises(ValueError, match="even numbers"):
        tfr.formats.read_earth_engine(DATA / "overlapping.tfrecord.gz", MIXER, kernel_size=(3, 2))


def test_channels_are_asked_for(tmp_path: Path) -> None:
    """A kernel that is forgotten, of which the sizes divide, does not become channels."""
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"B4": np.zeros((6, 16 * 8), "f4")}, path, column_encoding={"B4": "list"})
    advice = r"a patch of 128 values, .*; if it is a band of arrays, pass channels=\{'B4': 4\}; pass kernel_size="
    with pytest.raises(tfr.errors.DecodeError, match=advice):
        tfr.formats.read_earth_engine(path, MIXER)
    assert tfr.formats.read_earth_engine(path, MIXER, kernel_size=(8, 4))["B4"].dims == ("y", "x")
    assert tfr.formats.read_earth_engine(path, MIXER, channels={"B4": 4})["B4"].dims == ("B4_channel", "y", "x")
    with pytest.raises(tfr.errors.DecodeError, match=r"32 pixels of 3 channels"):
        tfr.formats.read_earth_engine(path, MIXER, channels={"B4": 3})
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"channels= names no band"):
        tfr.formats.read_earth_engine(path, MIXER, channels={"B5": 4})
    with pytest.raises(ValueError, match=r"channels=\{'B4': 0\}"):
        tfr.formats.read_earth_engine(path, MIXER, channels={"B4": 0})


def test_files_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    files = sorted(DATA.glob("image-0*.tfrecord.gz"))
    image = tfr.formats.read_earth_engine(tfr.dataset(files[::-1], columns=["B4"]), MIXER)
    np.testing.assert_array_equal(image["B4"], EXPECTED, strict=True)
    for names in (
        ["a-00000.tfrecord.gz", "b-00001.tfrecord.gz"],
        ["a.tfrecord.gz", "b.tfrecord.gz"],
        ["a-00001.tfrecord.gz", "a-00002.tfrecord.gz"],
        ["a-1/a-00000.tfrecord.gz", "a-0/a-00000.tfrecord.gz"],
    ):
        renamed = [tmp_path / name for name in names]
        for source, target in zip(files, renamed, strict=True):
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(source.read_bytes())
        with pytest.raises(tfr.errors.DecodeError, match="do not give the order of their patches"):
            tfr.formats.read_earth_engine(tfr.dataset(renamed, columns=["B4"]), MIXER)


@settings(max_examples=rounds(40))
@given(
    orders=st.tuples(st.permutations(range(8)), st.permutations(range(24))),
    shift=st.sampled_from([0, 0, 0.5, 1, -1, 24]),
    axis=st.sampled_from(["x", "y"]),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_pixels_are_written_where_their_coordinates_are(
    tmp_path_factory: pytest.TempPathFactory, orders: Any, shift: float, axis: str, dtype: str
) -> None:
    image = tfr.formats.read_earth_engine(tfr.dataset(DATA / "image-*.tfrecord.gz", columns=["B4", "cloud"]), MIXER)
    image = image.assign_coords({name: image[name].astype(dtype) for name in ("x", "y")})
    shuffled = image.isel(y=list(orders[0]), x=list(orders[1]))
    path = tmp_path_factory.mktemp("ee") / "a.tfrecord"
    if shift:
        shuffled = shuffled.assign_coords({axis: shuffled[axis] + 30 * shift})
        with pytest.raises(
            tfr.errors.EncodeError, match=rf"'{axis}': its coordinate goes from .* centres of the pixels from"
        ):
            tfr.formats.write_earth_engine(shuffled, path, MIXER)
        shuffled = shuffled.assign_coords({axis: shuffled[axis] - 30 * shift})
    tfr.formats.write_earth_engine(shuffled, path, MIXER)
    written = tfr.formats.read_earth_engine(path, MIXER)
    np.testing.assert_array_equal(written["B4"], EXPECTED)
    tfr.formats.write_earth_engine(image.drop_vars(["x", "y"]), path, MIXER)
    np.testing.assert_array_equal(tfr.formats.read_earth_engine(path, MIXER)["B4"], EXPECTED)


def test_images_of_other_projections_are_refused(tmp_path: Path) -> None:
    image = tfr.formats.read_earth_engine(tfr.dataset(DATA / "image-*.tfrecord.gz", columns=["B4"]), MIXER)
    with pytest.raises(tfr.errors.EncodeError, match="its crs is EPSG:4326, and that of the mixer file EPSG:32610"):
        tfr.formats.write_earth_engine(image.assign_attrs(crs="EPSG:4326"), tmp_path / "a.tfrecord", MIXER)
    rotated = {"crs": "EPSG:32610", "affine": {"doubleMatrix": [30, 1, 0, 1, -30, 0]}}
    with pytest.raises(tfr.errors.EncodeError, match=r"is rotated.*drop_vars"):
        tfr.formats.write_earth_engine(image, tmp_path / "a.tfrecord", {**MIXER, "projection": rotated})
    tfr.formats.write_earth_engine(
        image.drop_vars(["x", "y"]), tmp_path / "a.tfrecord", {**MIXER, "projection": rotated}
    )


def test_tables_are_read_as_tables() -> None:
    types = {"landcover": "float", "array": tfr.tensor("float32", [2, 2]), "geo": "string"}
    table = tfr.read_table(DATA / "table.tfrecord.gz", schema=types)
    assert table["landcover"].to_pylist() == [0, 1, 2]
    assert json.loads(table["geo"][1].as_py())["coordinates"] == [-121, 37.5]
    assert tfr.read_arrays(DATA / "table.tfrecord.gz", schema=types)["array"][2].tolist() == [[2, 3], [4, 5]]


@st.composite
def layouts(draw: Any) -> dict[str, Any]:
    width, height, per_row, rows = (draw(st.integers(1, 4)) for _ in range(4))
    return {**MIXER, "patchDimensions": [width, height], "patchesPerRow": per_row, "totalPatches": per_row * rows}


@settings(max_examples=rounds(40))
@given(mixer=layouts(), channels=st.integers(1, 3), dtype=st.sampled_from(["f4", "i2", "?", ">i8", "u1"]))
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, mixer: dict[str, Any], channels: int, dtype: str
) -> None:
    (width, height), per_row = mixer["patchDimensions"], mixer["patchesPerRow"]
    shape = (channels, height * (mixer["totalPatches"] // per_row), width * per_row)
    values = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    plain = {"a": (("y", "x"), values[0])} | ({"b": (("z", "y", "x"), values)} if channels > 1 else {})
    path = tmp_path_factory.mktemp("ee") / "predictions.tfrecord.gz"
    report = tfr.formats.write_earth_engine(xr.Dataset(plain), path, mixer)
    assert (report.records, report.compression) == (mixer["totalPatches"], "gzip")
    image = tfr.formats.read_earth_engine(path, mixer, channels={"b": channels} if channels > 1 else None)
    for name, (_, expected) in plain.items():
        np.testing.assert_array_equal(image[name], expected)


def test_a_row_of_patches_may_have_more_values_than_32_bits_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """The array of so many values would take 16 GiB."""
    taken: list[pa.RecordBatch] = []
    monkeypatch.setattr(earth_engine, "write_tfrecord", lambda batches, path, **_: taken.extend(batches))
    mixer = {**MIXER, "patchDimensions": [2, 1], "patchesPerRow": 2, "totalPatches": 2}
    tfr.formats.write_earth_engine(xr.Dataset({"b": (("y", "x"), np.arange(4).reshape(1, 4))}), "none", mixer)
    assert [batch["b"].to_pylist() for batch in taken] == [[[0, 1], [2, 3]]]
    assert {batch["b"].offsets.type for batch in taken} == {pa.int64()}


def test_exports_are_written_back_as_they_were(tmp_path: Path) -> None:
    image = tfr.formats.read_earth_engine(DATA / "image-*.tfrecord.gz", MIXER, channels={"series": 3})
    tfr.formats.write_earth_engine(image[["B4", "series"]], tmp_path / "a.tfrecord", MIXER)
    before = tfr.read_table(DATA / "image-*.tfrecord.gz", columns=["B4", "series"])
    assert tfr.read_table(tmp_path / "a.tfrecord").equals(before)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"patchDimensions": [8]}, "values of other types"),
        ({"patchDimensions": [0, 4]}, "no image has 6 patches of 0 x 4"),
        ({"patchDimensions": ["8", 4]}, "no image has"),
        ({"patchesPerRow": 4}, "no image has"),
        ({"patchesPerRow": True}, "no image has"),
        ({"totalPatches": 3 << 60}, "is too large"),
        ({"totalPatches": 3}, "states 3 patches, and the files have more"),
        ({"totalPatches": 9}, "states 9 patches, and the files have 6"),
        ({"projection": None}, "values of other types"),
        ({"projection": {"crs": "EPSG:4326", "affine": {"doubleMatrix": [1, 2]}}}, "six numbers"),
        ({"projection": {"crs": "x", "affine": {"doubleMatrix": [math.nan] * 6}}}, "six numbers"),
        ({"projection": {"affine": {"doubleMatrix": [1] * 6}}}, "it has no 'wkt'"),
    ],
)
def test_damaged_mixer_files(tmp_path: Path, change: dict[str, Any], reason: str) -> None:
    (tmp_path / "mixer.json").write_text(json.dumps({**MIXER, **change}))
    with pytest.raises(tfr.errors.DecodeError, match=reason):
        tfr.formats.read_earth_engine(
            tfr.dataset(DATA / "image-*.tfrecord.gz", columns=["B4", "B5", "cloud"]), tmp_path / "mixer.json"
        )


@pytest.mark.parametrize("content", [b"", b"[" * 100_000, b"[]", b"1", b"\xff", b'{"x": 1' + b" " * (1 << 20)])
def test_mixer_files_that_are_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "mixer.json").write_bytes(content)
    with pytest.raises(tfr.errors.DecodeError, match=r"mixer\.json: no mixer file of Earth Engine"):
        tfr.formats.read_earth_engine(DATA / "image-*.tfrecord.gz", tmp_path / "mixer.json")


def test_rotated_projections_have_no_coordinates() -> None:
    projection = {"crs": "EPSG:32610", "affine": {"doubleMatrix": [30, 1, 0, 1, -30, 0]}}
    mixer = {**MIXER, "projection": projection}
    image = tfr.formats.read_earth_engine(tfr.dataset(DATA / "image-*.tfrecord.gz", columns=["B4"]), mixer)
    assert list(image.coords) == []
    assert image.attrs["transform"] == (30, 1, 0, 1, -30, 0)


def test_patches_that_are_no_image(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    for band, reason in (
        ([[1.0] * 32] * 5 + [[1.0] * 31], r"record 5.*a patch of 31 values"),
        ([[1.0] * 32] * 5 + [None], r"record 5.*lacks this band"),
        ([b"x" * 32] * 5 + [b"x"], r"record 5.*a patch of 1 value,"),
        ([["a"] * 32] * 6, "has no pixels"),
    ):
        tfr.write_tfrecord({"B4": band}, path)
        with pytest.raises(tfr.errors.DecodeError, match=reason):
            tfr.formats.read_earth_engine(path, MIXER)
    for variable in ((("x", "y"), np.zeros((24, 8))), (("y", "x"), np.zeros((8, 23))), (("t",), np.zeros(3))):
        with pytest.raises(tfr.errors.EncodeError, match="its dimensions are"):
            tfr.formats.write_earth_engine(xr.Dataset({"a": variable}), path, MIXER)
    with pytest.raises(tfr.errors.EncodeError, match="cannot be uploaded"):
        tfr.formats.write_earth_engine(xr.Dataset({"a": (("y", "x"), np.zeros((8, 24), "M8[s]"))}), path, MIXER)


def test_mutants_of_mixer_files_raise_errors_or_do_no_harm(tmp_path: Path) -> None:
    """An image of other dimensions would need as many patches."""
    intact, count = (DATA / "image-mixer.json").read_bytes(), rounds(100_000) if rounds(100_000) == 100_000 else 150
    draw = random.Random(3)
    for _ in range(count):
        content = bytearray(intact)
        for _ in range(draw.choice((1, 1, 2, 4))):
            content[draw.randrange(len(content))] = draw.choice((*b'0159-.e"[]{},', 255, draw.randrange(256)))
        if draw.random() < 0.1:
            del content[draw.randrange(len(content)) :]
        (tmp_path / "mixer.json").write_bytes(content)
        try:
            image = tfr.formats.read_earth_engine(
                tfr.dataset(DATA / "image-*.tfrecord.gz", columns=["B4"]), tmp_path / "mixer.json"
            )
        except tfr.errors.DecodeError:
            continue
        assert image["B4"].size == EXPECTED.size
