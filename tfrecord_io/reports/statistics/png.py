"""Pixels as a PNG file, for thumbnails of uint8 tensors: no image library is needed for that."""

from __future__ import annotations

import struct
import zlib

import numpy as np

from tfrecord_io.engine.contract import Array

_COLOUR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # by number of channels: grey, grey and alpha, RGB, RGBA
_MOST_PIXELS = 320  # of a side; larger images are thinned out


def png_of(pixels: Array) -> bytes:
    """A PNG of uint8 [height, width] or [height, width, channels]; each n-th pixel of a large one.

    >>> png_of(np.zeros((2, 3), np.uint8))[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    step = max(1, -(-max(pixels.shape[:2]) // _MOST_PIXELS))
    pixels = np.ascontiguousarray(pixels[::step, ::step])
    height, width, channels = pixels.shape
    lines = np.zeros((height, 1 + width * channels), np.uint8)  # each line begins with its filter, 0
    lines[:, 1:] = pixels.reshape(height, width * channels)
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOUR_TYPES[channels], 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def is_picture(shape: tuple[int, ...]) -> bool:
    """Whether a uint8 tensor of this shape is shown as a picture.

    >>> is_picture((28, 28)), is_picture((32, 32, 3)), is_picture((4,)), is_picture((100, 2, 7))
    (True, True, False, False)
    """
    if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in _COLOUR_TYPES):
        return False
    return all(4 <= side <= 8192 for side in shape[:2])
