"""What a schema says about a column of encoded images: how its bytes become arrays."""

from __future__ import annotations

import json
from typing import Any

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.field import IMAGE_KEY, Field
from tfrecord_io.schema.shapes import Shape

MODES = ("RGB", "L", "RGBA", "unchanged")
_CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4}
_MODE_OF = {channels: mode for mode, channels in _CHANNELS.items()}
_MOST = 2**16  # pixels of a side


def image_metadata(mode: str | None, resize: tuple[int, int] | None, shape: Shape | None) -> dict[bytes, bytes]:
    """The metadata of an image column; without a mode the channels of the shape say it.

    Raises
    ------
    SchemaError
        There is no such mode, or it, the size and the shape contradict each other.
    """
    if shape is not None and len(shape) != 3:
        raise SchemaError(f"an image has the shape (height, width, channels), not {shape}", expected=3, got=len(shape))
    channels = None if shape is None else shape[2]
    mode = mode or _MODE_OF.get(channels or 3, "unchanged")
    if mode not in MODES:
        raise SchemaError(f"there is no image mode {mode!r}", expected=MODES, got=mode)
    said: dict[str, object] = {"mode": mode}
    if resize is not None:
        said["resize"] = _size(resize)
    if channels not in (None, _CHANNELS.get(mode, channels)):
        raise SchemaError(
            f"the mode {mode!r} has {_CHANNELS[mode]} channels, and the shape says {channels}", expected=_CHANNELS[mode]
        )
    return {IMAGE_KEY: json.dumps(said).encode()}


def is_image(field: Field) -> bool:
    """Whether `tfrecord_io.image` made the field."""
    return IMAGE_KEY in field.metadata


def image_keywords(field: Field) -> dict[str, Any]:
    """What `tfrecord_io.image` was told besides the shape, where it does not go without saying."""
    said = json.loads(field.metadata.get(IMAGE_KEY, b"{}"))
    usual = json.loads(image_metadata(None, None, field.shape)[IMAGE_KEY])["mode"]
    words = {} if said.get("mode", usual) == usual else {"mode": said["mode"]}
    return words if said.get("resize") is None else {**words, "resize": tuple(said["resize"])}


def _size(resize: tuple[int, int]) -> list[int]:
    try:
        height, width = (int(side) for side in resize)
    except (TypeError, ValueError):
        raise SchemaError(
            f"resize={resize!r}: expected (height, width)", expected="(height, width)", got=resize
        ) from None
    if not (0 < height <= _MOST and 0 < width <= _MOST):
        raise SchemaError(f"resize={resize!r}: expected sides from 1 to {_MOST}", expected=f"1 to {_MOST}", got=resize)
    return [height, width]
