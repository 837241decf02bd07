"""Masks: polygons and runs as pycocotools draws and encodes them."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tfrecord_io.plugins.vision.masks_and_keypoints import (
    check_segmentation,
    counts_of,
    decode_counts,
    draw,
    encode_counts,
    encode_mask,
    mask_of_png,
    png_of,
)

SIZES = st.tuples(st.integers(1, 40), st.integers(1, 40))
COORDINATES = st.one_of(
    st.integers(-10, 50), st.floats(-10, 50).map(lambda x: round(x, 2)), st.floats(-10, 50, width=32)
)
POLYGONS = st.lists(
    st.integers(3, 8).flatmap(lambda n: st.lists(COORDINATES, min_size=2 * n, max_size=2 * n)), max_size=3
)


@st.composite
def masks(draw_: st.DrawFn) -> np.ndarray:
    height, width = draw_(SIZES)
    bits = draw_(st.integers(0, 2 ** (height * width) - 1))
    return np.array([bits >> at & 1 for at in range(height * width)], np.uint8).reshape(height, width)


@given(POLYGONS, SIZES)
def test_polygons_are_drawn_as_pycocotools_draws_them(polygons: list[list[float]], size: tuple[int, int]) -> None:
    coco = pytest.importorskip("pycocotools.mask")
    drawn = draw(polygons, *size)
    assert drawn.shape == size
    if not polygons:
        assert not drawn.any()
        return
    runs = coco.frPyObjects([[float(value) for value in polygon] for polygon in polygons], *size)
    assert (drawn == coco.decode(coco.merge(runs))).all()


@given(masks())
def test_masks_are_encoded_as_pycocotools_encodes_them(mask: np.ndarray) -> None:
    coco = pytest.importorskip("pycocotools.mask")
    expected = coco.encode(np.asfortranarray(mask))
    encoded = encode_mask(mask)
    assert encoded == {"size": expected["size"], "counts": expected["counts"].decode()}
    assert (draw(encoded, *mask.shape) == mask).all()
    assert (draw({"size": encoded["size"], "counts": counts_of(encoded)}, *mask.shape) == mask).all()


@given(st.lists(st.integers(0, 2**40), max_size=20))
def test_counts_come_back(counts: list[int]) -> None:
    assert decode_counts(encode_counts(counts)) == counts


@given(masks())
def test_png_masks_come_back(mask: np.ndarray) -> None:
    assert (mask_of_png(png_of(mask), *mask.shape) == mask).all()


def png(mode: str, size: tuple[int, int] = (4, 3), form: str = "PNG") -> bytes:
    file = io.BytesIO()
    Image.new(mode, size, 1).save(file, form)
    return file.getvalue()


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
def test_masks_of_other_programs(mode: str) -> None:
    assert mask_of_png(png(mode), 3, 4).shape == (3, 4)


@pytest.mark.parametrize("data", [b"", png("L")[:45], png("L", (3, 4)), png("L", form="JPEG"), b"\x89PNG" + b"\0" * 99])
def test_what_is_no_mask_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"PNG image|pixels|truncated"):
        mask_of_png(data, 3, 4)


RLE = {"size": [2, 3], "counts": [1, 3, 2]}


@pytest.mark.parametrize(
    ("segmentation", "reason"),
    [
        (3, "neither polygons"),
        ([[1, 2, 3, 4]], "neither polygons"),
        ([[1, 2, 3, 4, 5, 6, 7]], "neither polygons"),
        ([[1, 2, 3, 4, 5, "6"]], "neither polygons"),
        ([[1, 2, 3, 4, 5, True]], "neither polygons"),
        ([[1, 2, 3, 4, 5, float("nan")]], "neither polygons"),
        ([1, 2, 3, 4, 5, 6], "neither polygons"),
        ({}, "'size'"),
        (RLE | {"size": [2, -3]}, "'size'"),
        (RLE | {"size": [3, 2]}, "that of the image"),
        (RLE | {"counts": [1, 3]}, "do not add up"),
        (RLE | {"counts": [7, -1]}, "not lengths"),
        (RLE | {"counts": [1.0, 3, 2]}, "not lengths"),
        (RLE | {"counts": None}, "not lengths"),
        (RLE | {"counts": "\u20ac"}, "not text of COCO"),
        (RLE | {"counts": "P" * 20}, "not text of COCO"),
        (RLE | {"counts": "13P"}, "truncated"),
    ],
)
def test_what_is_no_segmentation_is_an_error(segmentation: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_segmentation(segmentation, 2, 3)


def test_masks_that_would_fill_memory_are_not_drawn() -> None:
    with pytest.raises(ValueError, match="too large to be drawn"):
        draw([[0, 0, 2e9, 0, 0, 2e9]], 2, 3)
    with pytest.raises(ValueError, match="too large to be drawn"):
        draw([], 2**20, 2**20)
    with pytest.raises(ValueError, match="do not add up"):
        draw({"size": [2, 3], "counts": [0, 2**60]}, 2, 3)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.sampled_from(["size", "counts", "x"]), inner),
    max_leaves=20,
)


@given(JSON)
def test_any_json_is_drawn_or_refused(value: Any) -> None:
    try:
        check_segmentation(value, 2, 3)
    except ValueError:
        return
    with suppress(ValueError):  # too large
        assert draw(value, 2, 3).shape == (2, 3)
