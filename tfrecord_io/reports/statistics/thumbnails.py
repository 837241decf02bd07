"""Small copies of encoded images, made by Pillow if it is installed; without it, small images as they are."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

from tfrecord_io.display import byte_size
from tfrecord_io.format.magic import looks_like

SIDE = 320  # pixels of the longer side
MOST_BYTES = 192 << 10  # of an image that is embedded as it is
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF")  # a closed list: some of Pillow's formats run other programs
_MIMES = {
    "a PNG image": "image/png",
    "a JPEG image": "image/jpeg",
    "a GIF image": "image/gif",
    "a WebP image": "image/webp",
}


@dataclass(frozen=True, slots=True)
class Thumbnail:
    """An image to show, and the size of the original; without `data`, `problem` says why there is none."""

    data: bytes | None
    mime: str = ""
    width: int | None = None
    height: int | None = None
    problem: str | None = None


def image_mime(data: bytes) -> str | None:
    """The media type of an encoded image by its first bytes; None for anything else.

    >>> image_mime(b"GIF89a..."), image_mime(b"text")
    ('image/gif', None)
    """
    return _MIMES.get(looks_like(data[:16]) or "")


def thumbnail(data: bytes) -> Thumbnail:
    """A small copy of an encoded image of untrusted content."""
    mime = image_mime(data)
    if mime is None:
        form = looks_like(data)
        return Thumbnail(None, problem=f"cannot be decoded: {f'looks like {form}' if form else 'not a known format'}")
    try:
        import PIL.Image
    except ImportError:
        if len(data) <= MOST_BYTES:
            return Thumbnail(data, mime)
        return Thumbnail(None, problem=f"{byte_size(len(data))}: thumbnails need the package pillow")
    return _by_pillow(PIL.Image, data)


def _by_pillow(pillow: Any, data: bytes) -> Thumbnail:
    try:
        with pillow.open(io.BytesIO(data), formats=_FORMATS) as image:
            width, height = image.size
            limit = pillow.MAX_IMAGE_PIXELS
            if limit is not None and width * height > limit:
                problem = f"not decoded: {width} × {height} pixels are more than PIL.Image.MAX_IMAGE_PIXELS, {limit}"
                return Thumbnail(None, width=width, height=height, problem=problem)
            image.draft("RGB", (2 * SIDE, 2 * SIDE))  # decodes a large JPEG at a fraction of its size
            keeps_alpha = "A" in image.mode or "transparency" in image.info
            small = image.convert("RGBA" if keeps_alpha else "L" if image.mode in ("1", "L") else "RGB")
            small.thumbnail((SIDE, SIDE))
    except MemoryError:
        raise
    except Exception as error:  # Pillow's decoders raise exceptions of any type, some with the image's bytes
        return Thumbnail(None, problem=f"cannot be decoded: {type(error).__name__}")
    is_lossless = keeps_alpha or max(small.size) <= SIDE // 4
    out = io.BytesIO()
    small.save(out, "PNG" if is_lossless else "JPEG", **({} if is_lossless else {"quality": 80}))
    return Thumbnail(out.getvalue(), "image/png" if is_lossless else "image/jpeg", width, height)
