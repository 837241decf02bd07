"""The metadata of a column of encoded images: how its bytes become arrays."""

from __future__ import annotations

import json
from typing import Any

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.field import IMAGE_KEY, Field
from tfrecord_io.schema.tensor_types import Shape

MODES = ("RGB", "L", "RGBA", "unchanged")
_CHANNELS = {"RGB": 3, "L": 1, "RGBA": 4}
_MODE_OF = {channels: mode for mode, channels in _CHANNELS.items()}
_MAX_SIDE = 2**16  # pixels


def image_metadata(mode: str | None, resize: tuple[int, int] | None, shape: Shape | None) -> dict[bytes, bytes]:
    """The metadata of an image column; without a mode it follows from the channels of the shape.

    SchemaError if the mode is unknown, or mode, size and shape contradict each other.
    """
    if shape is not None and len(shape) != 3:
        raise SchemaError(f"an image has the shape (height, width, channels), not {shape}", expected=3, got=len(shape))
    channels = None if shape is None else shape[2]
    mode = mode or _MODE_OF.get(channels or 3, "unchanged")
    if mode not in MODES:
        raise SchemaError(f"unknown image mode {mode!r}", expected=MODES, got=mode)
    metadata = {"mode": mode} if resize is None else {"mode": mode, "resize": _size(resize)}
    if channels not in (None, _CHANNELS.get(mode, channels)):
        reason = f"the mode {mode!r} has {_CHANNELS[mode]} channels, the shape has {channels}"
        raise SchemaError(reason, expected=_CHANNELS[mode])
    return {IMAGE_KEY: json.dumps(metadata).encode()}


def is_image(field: Field) -> bool:
    """Whether `tfrecord_io.image` made the field."""
    return IMAGE_KEY in field.metadata


def image_keywords(field: Field) -> dict[str, Any]:
    """The arguments of `tfrecord_io.image` besides the shape that are not the default."""
    metadata = json.loads(field.metadata.get(IMAGE_KEY, b"{}"))
    default_mode = json.loads(image_metadata(None, None, field.shape)[IMAGE_KEY])["mode"]
    keywords = {} if metadata.get("mode", default_mode) == default_mode else {"mode": metadata["mode"]}
    return keywords if metadata.get("resize") is None else {**keywords, "resize": tuple(metadata["resize"])}


def _size(resize: tuple[int, int]) -> list[int]:
    try:
        height, width = (int(side) for side in resize)
    except (TypeError, ValueError):
        reason = f"resize={resize!r}: expected (height, width)"
        raise SchemaError(reason, expected="(height, width)", got=resize) from None
    if not (0 < height <= _MAX_SIDE and 0 < width <= _MAX_SIDE):
        reason = f"resize={resize!r}: expected sides from 1 to {_MAX_SIDE}"
        raise SchemaError(reason, expected=f"1 to {_MAX_SIDE}", got=resize)
    return [height, width]
