"""Writers store uint8 arrays as encoded images, and readers get them back."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.columns.arrow.image_encoding import arrays_schema, declare_images, encoded_images
from tfrecord_io.columns.arrow.input.batch_source import open_input
from tfrecord_io.columns.schema.image_form import ImageForm
from tfrecord_io.columns.schema.tensor_types import IMAGE_ENCODINGS

Image = pytest.importorskip("PIL.Image")
rng = np.random.default_rng(0)


def arrays(*shape: int) -> np.ndarray:
    return rng.integers(0, 256, shape, np.uint8)


@given(
    st.sampled_from([("png", 1), ("png", 3), ("png", 4), ("webp", 1), ("webp", 3)]),
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)) | st.none(), min_size=1, max_size=6),
    st.booleans(),
)
@settings(max_examples=rounds(60), deadline=None)
def test_lossless_formats_return_the_same_arrays(
    form: tuple[str, int], sides: list[tuple[int, int] | None], flat: bool
) -> None:
    name, channels = form
    inner = () if flat and channels == 1 else (channels,)
    cells = [None if each is None else arrays(*each, *inner) for each in sides]
    if all(cell is None for cell in cells):
        return
    declared = {"x": tfr.tensor("uint8", (None, None, *inner))}
    path = Path("lossless.tfrecord")
    tfr.write_tfrecord({"x": cells}, path, column_encoding={"x": name}, schema=declared)
    for cell, row in zip(cells, tfr.read_arrays(path, ragged="object")["x"], strict=True):
        assert (row is None) == (cell is None)
        assert cell is None or (row == cell.reshape(row.shape)).all()


@pytest.fixture(autouse=True, scope="module")
def _in_a_folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("images"))
        yield


@pytest.mark.parametrize("name", IMAGE_ENCODINGS)
@pytest.mark.parametrize("form", ["array", "list", "pandas", "arrow", "batches"])
def test_inputs(tmp_path: Path, name: str, form: str) -> None:
    pixels = arrays(5, 8, 6, 3)
    table = pa.table({"x": pa.FixedShapeTensorArray.from_numpy_ndarray(pixels)})
    data = {
        "array": {"x": pixels},
        "list": {"x": list(pixels)},
        "pandas": pd.DataFrame({"x": list(pixels)}),
        "arrow": table,
        "batches": iter(table.to_batches(max_chunksize=2)),
    }[form]
    tfr.write_tfrecord(data, tmp_path / "a@2", column_encoding={"x": name})
    (kind,) = {Image.open(io.BytesIO(data.as_py())).format for data in tfr.read_table(tmp_path / "a@2")["x"]}
    assert kind == name.upper()
    images = tfr.read_arrays(tmp_path / "a@2")["x"]
    assert (images.shape, images.dtype) == ((5, 8, 6, 3), np.uint8)
    if name == "jpeg":
        expected = [np.array(Image.open(io.BytesIO(jpeg(each)))) for each in pixels]
        assert (images == np.array(expected)).all()
    else:
        assert (images == pixels).all()
    declared = tfr.read_metadata(tmp_path / "a@2").schema.field("x")
    assert ImageForm.from_metadata(declared.metadata, "x") == ImageForm((8, 6, 3), "RGB")


def jpeg(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "JPEG", quality=95)
    return buffer.getvalue()


def test_a_declared_image_is_embedded_as_declared(tmp_path: Path) -> None:
    pixels = arrays(3, 8, 6, 3)
    schema = {"x": tfr.image(resize=(4, 4), fit="crop", feature="y"), "n": "int32"}
    tfr.write_tfrecord({"x": pixels, "n": [1, 2, 3]}, tmp_path / "a", column_encoding={"y": "png"}, schema=schema)
    assert tfr.read_arrays(tmp_path / "a")["y"].shape == (3, 4, 4, 3)
    assert (tfr.read_arrays(tmp_path / "a", schema={"y": tfr.image()})["y"] == pixels).all()


def test_null_arrays_are_absent(tmp_path: Path) -> None:
    pixels = arrays(2, 2, 2)
    tfr.write_tfrecord({"x": [pixels[0], None, pixels[1]]}, tmp_path / "a", column_encoding={"x": "png"})
    read = tfr.read_arrays(tmp_path / "a", missing="mask")
    assert read["x/mask"].tolist() == [False, True, False]
    assert (read["x"][[0, 2], :, :, 0] == pixels).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 3, 3), np.float32), r'"jpeg" is for uint8 arrays .*not for tensor<float32>\[3,3\]'),
        (arrays(2, 3, 3, 2), r"of 1 or 3 channels, not for tensor<uint8>\[3,3,2\]"),
        (arrays(2, 3, 3, 4), "of 1 or 3 channels"),
        (arrays(2, 3, 3, 3, 3), r"not for tensor<uint8>\[3,3,3,3\]"),
        ([b"\xff\xd8"], "not for binary; leave it out, if its values are encoded already"),
        ([1, 2], "not for int64"),
        ([arrays(2, 2, 3), arrays(2, 2, 1)], r"record 1: .*shape \(2, 2, 1\) does not fit: expected 3 channels"),
        (arrays(1, 0, 3, 3), r"record 0: .*sides of 1 pixel or more"),
        (arrays(1, 1, 70_000, 1), r"record 0: .*cannot be encoded as JPEG"),
    ],
)
def test_other_values_are_errors(tmp_path: Path, values: Any, message: str) -> None:
    with pytest.raises(tfr.errors.EncodeError, match=message):
        tfr.write_tfrecord({"x": values}, tmp_path / "a", column_encoding={"x": "jpeg"})
    assert not (tmp_path / "a").exists()


def test_the_row_of_an_error_counts_all_rows(tmp_path: Path) -> None:
    wide = pa.FixedShapeTensorArray.from_numpy_ndarray(arrays(2, 1, 70_000))
    good = pa.record_batch({"x": pa.nulls(2, wide.type)})
    later = pa.record_batch({"x": pa.concat_arrays([pa.nulls(1, wide.type), wide])})
    with tfr.open_writer(tmp_path / "a", **JPEG) as writer:
        writer.write(good)
        with pytest.raises(tfr.errors.EncodeError, match="record 3"):
            writer.write(later)


JPEG: dict[str, Any] = {"column_encoding": {"x": "jpeg"}}


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        tfr.errors.FeatureNotFoundError, match="'x': the data does not have this column; column_encoding="
    ):
        tfr.write_tfrecord({"y": arrays(2, 3, 3)}, tmp_path / "a", **JPEG)


def test_later_images_have_the_declared_shape(tmp_path: Path) -> None:
    with tfr.open_writer(tmp_path / "a", **JPEG) as writer:
        writer.write({"x": arrays(2, 3, 4, 3)})
        with pytest.raises(
            tfr.errors.SchemaError, match=r"shape \(2, 4, 3\), but the data before it declares \(3, 4, 3\)"
        ):
            writer.write({"x": arrays(2, 2, 4, 3)})
    with tfr.open_writer(tmp_path / "b", schema={"x": tfr.image()}, **JPEG) as writer:
        writer.write({"x": arrays(2, 3, 4, 3)})
        writer.write({"x": arrays(2, 2, 4, 3)})
    assert [row.shape for row in tfr.read_arrays(tmp_path / "b")["x"]] == [(3, 4, 3)] * 2 + [(2, 4, 3)] * 2


def test_other_encodings_are_untouched() -> None:
    schema = tfr.Schema({"x": tfr.image()})
    assert arrays_schema(schema, {"x": "raw"}) is schema
    source = open_input({"x": [1]})
    assert declare_images(source.schema, None) is source.schema
    (batch,) = encoded_images(source.batches, source.schema, None, 0)
    assert batch["x"].to_pylist() == [1]
