"""A file of images and lists of images, as each library for training has to decode it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

import tfrecord_io as tfr

ROWS = 7


def encoded(pixels: np.ndarray) -> bytes:
    """A PNG image."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def jpeg(width: int = 40, height: int = 20, form: str = "JPEG") -> bytes:
    """A black image."""
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, form)
    return file.getvalue()


def written_pictures(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Write a file; returns the schema to read it with, and the arrays of all rows, in the order of the column n."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (ROWS, 4, 5, 3), np.uint8)
    frames = rng.integers(0, 256, (ROWS, 2, 6, 6, 3), np.uint8)
    columns = {"n": range(ROWS), "image": [*map(encoded, images)], "frames": [[*map(encoded, row)] for row in frames]}
    tfr.write_tfrecord(columns, path, write_index=True)
    schema = {"n": "int64", "image": tfr.image((4, 5, 3)), "frames": tfr.list_(tfr.image(resize=(3, 3), fit="crop"), 2)}
    expected = tfr.read_arrays(path, schema=schema)
    assert (expected["image"] == images).all()
    assert expected["frames"].shape == (ROWS, 2, 3, 3, 3)
    return schema, expected


def assert_pictures(rows: list[dict[str, Any]], expected: dict[str, np.ndarray]) -> None:
    """Check rows, in any order, whose values NumPy makes arrays of."""
    assert sorted(int(row["n"]) for row in rows) == list(range(ROWS))
    for row in rows:
        for name, arrays in expected.items():
            assert (np.asarray(row[name]) == arrays[int(row["n"])]).all(), name
