"""Values as cells of a table, and on the page of a record."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.apps.views.value_cells import companions, value_cell, value_mime


def shown(value: Any, type_: pa.DataType | None = None, *, large: bool = False, **others: Any) -> str:
    field = pa.field("x", type_ or pa.string())
    return value_cell({"x": value, **others}, field, {}, lambda name: f"value?{name}", large=large)


def text_of(cell: str) -> str:
    return re.sub("<[^>]*>", "", cell)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        ("", "empty text"),
        (b"", "0 bytes"),
        (np.empty(0, np.int64), "empty list"),
        (np.empty((0, 3), np.float32), "empty, 0 × 3"),
        (True, "true"),
        (0, "0"),
        (0.1, "0.1"),
        (float("nan"), "nan"),
        ("a\nb", "a"),
        (b"ab", "2 bytesab"),
        (bytes(range(128, 150)), "22 bytes80 81 82 83 84 85 86 87 88 89 8a 8b 8c 8d 8e 8f …"),
        (np.array([1, 2]), "1, 22 values"),
        (np.array(["a", None], object), "a, null2 values"),
    ],
)
def test_missing_and_empty_values_are_told_apart(value: Any, text: str) -> None:
    assert text_of(shown(value)) == text


@given(st.text() | st.binary() | st.floats() | st.integers() | st.lists(st.text() | st.binary(), min_size=1))
def test_no_value_becomes_markup(value: Any) -> None:
    value = np.fromiter(value, object, len(value)) if isinstance(value, list) else value
    plain = {"span", "pre", "code", "div", "a", "details", "summary", "ul", "li", "b"}
    for large in (False, True):
        cell = shown(value, large=large)
        assert {tag.strip("/") for tag in re.findall(r"<(/?\w+)", cell)} <= plain
        assert all(c.isprintable() or c == "\n" for c in cell)


def test_lists_have_a_line_and_tensors_a_heat_map() -> None:
    assert "<svg" in shown(np.arange(20))
    assert "<svg" not in shown(np.arange(4))
    tensor = shown(np.ones((3, 4), np.float32))
    assert "data:image/png;base64," in tensor
    assert "3 × 4 float32" in tensor


def test_json_is_folded_on_the_page_of_a_record() -> None:
    value = json.dumps({"a": {"b": [1, 2]}, "<b>": 1})
    assert "<details" not in shown(value)
    page = shown(value, large=True)
    assert page.count("<details") == 3
    assert "&lt;b&gt;" in page
    assert "<pre" in shown("{no json", large=True)


def test_long_texts_are_shortened_with_a_link_to_all() -> None:
    page = shown("x" * 50_000, large=True)
    assert len(page) < 25_000
    assert '<a href="value?x" download="">all 50,000 characters</a>' in page
    assert len(shown("x" * 50_000)) < 300


def test_images_are_drawn_with_what_stands_beside_them() -> None:
    image = pytest.importorskip("PIL.Image")
    out, mask = io.BytesIO(), io.BytesIO()
    image.new("RGB", (40, 20)).save(out, "PNG")
    image.new("L", (40, 20), 255).save(mask, "PNG")
    field = pa.field("image/encoded", pa.binary())
    row = {
        "image/encoded": out.getvalue(),
        **{f"image/object/bbox/{axis}": np.array([0.25]) for axis in ("ymin", "xmin", "ymax", "xmax")},
        "image/object/mask": np.array([mask.getvalue()], object),
        "image/object/keypoint/x": np.array([0.5, 0.7]),
        "image/object/keypoint/y": np.array([0.5, 0.7]),
        "image/object/keypoint/visibility": np.array([2, 0]),
    }
    cell = value_cell(row, field, {}, str)
    assert (cell.count("<img"), cell.count("<rect"), cell.count('class="point"')) == (2, 1, 1)
    assert set(companions("image/encoded", [*row, "image/height", "other/object/mask"])) == {
        *row.keys() - {"image/encoded"},
        "image/height",
    }
    steps = {"image/encoded": np.fromiter([out.getvalue()] * 9, object, 9)}
    strip = value_cell(steps, pa.field("image/encoded", pa.list_(pa.binary())), {}, str)
    assert strip.count("<img") == 6
    assert "9 images" in strip


@pytest.mark.parametrize(
    ("data", "mime"),
    [
        (b"\x89PNG\r\n\x1a\n....", "image/png"),
        (b"fLaC....", "audio/flac"),
        (b"\0\0\0\x18ftypmp42", "video/mp4"),
        (b"\x1a\x45\xdf\xa3....", "video/webm"),
        (b"<html><script>", "application/octet-stream"),
        (b"<svg onload=alert(1)>", "application/octet-stream"),
    ],
)
def test_bytes_are_what_they_begin_with(data: bytes, mime: str) -> None:
    assert value_mime(data) == mime
