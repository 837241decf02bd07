"""Encoded images of every mode, for tests of what their headers state."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest

RNG = np.random.default_rng(7)
HEIGHT, WIDTH = 4, 6


def saved(image: Any, form: str = "PNG", **options: Any) -> bytes:
    """An image of Pillow, encoded."""
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def pixels(channels: int = 0, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """Random pixels, without a third axis for 0 channels."""
    return RNG.integers(0, 256, (height, width, channels) if channels else (height, width), dtype=np.uint8)


def png_of_16_bits(values: np.ndarray) -> bytes:
    """A PNG of values [height, width, channels] of 16 bits, which Pillow does not write of several channels."""
    height, width, channels = values.shape
    lines = b"".join(b"\0" + line.astype(">u2").tobytes() for line in values)
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0))]
    chunks += [(b"IDAT", zlib.compress(lines)), (b"IEND", b"")]
    made = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + made


def mask(form: str = "PNG", **options: Any) -> tuple[bytes, np.ndarray]:
    """A mask of classes as a palette, and the numbers."""
    image = pytest.importorskip("PIL.Image")
    numbers = RNG.integers(0, 4, (HEIGHT, WIDTH), dtype=np.uint8)
    numbers[0, :4] = range(4)
    made = image.fromarray(numbers).convert("P")
    made.putdata(numbers.ravel().tolist())
    made.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 90])
    return saved(made, form, **options), numbers


def image_of(mode: str, form: str = "PNG") -> bytes:
    """An image of a mode of Pillow, or of 16 bits: "L16", "RGB16"."""
    image = pytest.importorskip("PIL.Image")
    if mode.endswith("16"):
        channels = len(mode) - 2
        return png_of_16_bits(RNG.integers(0, 1 << 16, (HEIGHT, WIDTH, channels)))
    if mode == "P":
        return mask(form)[0]
    return saved(image.fromarray(pixels(3)).convert(mode), form)
