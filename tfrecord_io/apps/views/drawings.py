"""Images and sounds as HTML, with what is drawn over images."""

from __future__ import annotations

import base64
import io
import wave
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tfrecord_io.apps.views.elements import element, text
from tfrecord_io.apps.views.media import MediaSample
from tfrecord_io.columns import RawImages
from tfrecord_io.kit import printable


def figure(sample: MediaSample, kind: str, source: str | None = None, *, caption: bool = True) -> str:
    """An image or a sound with its captions; the reason where it cannot be shown. `source`: the URL of a sound."""
    if sample.data is None and (source is None or kind != "audio"):
        content = element("div", text(sample.problem or "no data", 300), class_="broken")
    elif kind == "image":
        content = picture(sample)
    else:
        content = f'<audio controls preload="metadata" src="{source or data_url(sample.mime, sample.data)}"></audio>'
    framed = element("div", content, class_="frame")
    if not caption:
        return element("figure", framed)
    captions = [element("b", text(value, 80), title=printable(name)) for name, value in sample.captions]
    note = [element("span", text(sample.note, 120))] if sample.note else []
    return element("figure", framed + element("figcaption", "".join(captions + note)))


def picture(sample: MediaSample) -> str:
    """An image with its masks, boxes and key points over it."""
    label = ", ".join(f"{value}" for _, value in sample.captions) or "image"
    kind = ' class="pixels"' if sample.pixelated else ""
    image = f'<img src="{data_url(sample.mime, sample.data)}" alt="{text(label, 80)}"{kind}>'
    rects = "".join(
        f'<rect x="{box.xmin:.4f}" y="{box.ymin:.4f}" width="{box.xmax - box.xmin:.4f}" '
        f'height="{box.ymax - box.ymin:.4f}"><title>{text(box.label or "box", 60)}</title></rect>'
        for box in sample.boxes
    )
    rects += "".join(f'<path class="point" d="M{x:.4f} {y:.4f}h0"/>' for x, y in sample.points)
    if sample.mask is not None:
        image += f'<img class="mask" src="{data_url("image/png", sample.mask)}" alt="">'
    if rects:  # in the unit square that is stretched over the image
        image += element("svg", rects, viewBox="0 0 1 1", preserveAspectRatio="none", role="img", aria_label="Boxes")
    return element("div", image, class_="picture")


def data_url(mime: str, data: bytes | None) -> str:
    """The URL of bytes that the page itself contains."""
    return f"data:{mime};base64,{base64.b64encode(data or b'').decode()}"


_LINE_POINTS = 120
_LINE_HEIGHT = 24.0
_COLD, _WARM = np.array([68, 1, 84.0]), np.array([253, 231, 37.0])  # the ends of viridis
_MIDDLE = np.array([33, 145, 140.0])


def line(values: NDArray[Any], label: str = "Values in their order") -> str:
    """Numbers as a line, of many the mean of each part; empty where there are not two finite ones.

    >>> line(np.array([1.0])), "<path" in line(np.arange(5))
    ('', True)
    """
    finite = np.asarray(values, np.float64).reshape(-1)
    finite = finite[np.isfinite(finite)]
    if len(finite) < 2:
        return ""
    low, high = float(finite.min() / 2), float(finite.max() / 2)  # the range itself may overflow
    heights = (finite / 2 - low) / (high - low) if high > low else np.full(len(finite), 0.5)
    if len(heights) > _LINE_POINTS:
        bounds = np.linspace(0, len(heights), _LINE_POINTS + 1).astype(int)
        heights = np.add.reduceat(heights, bounds[:-1]) / np.diff(bounds)
    ys = _LINE_HEIGHT - 1 - heights.clip(0, 1) * (_LINE_HEIGHT - 2)
    xs = np.linspace(0, 100, len(heights))
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, ys, strict=True))
    return _drawing(f'<path d="M{path}"/>', "line", label)


def waveform(sound: bytes) -> str:
    """The loudness of a WAV file over its time; empty for another one."""
    try:
        with wave.open(io.BytesIO(sound)) as file:
            width, channels = file.getsampwidth(), file.getnchannels()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError, ValueError):
        return ""
    if width not in (1, 2, 4) or len(data) < 2 * width * channels:
        return ""
    dtype = np.dtype("u1" if width == 1 else f"<i{width}")
    samples = np.frombuffer(data, dtype, len(data) // width)[::channels].astype(np.float64)
    samples = np.abs(samples - (128 if width == 1 else 0)) / 256.0**width * 2
    parts = np.maximum.reduceat(samples, np.linspace(0, len(samples), _LINE_POINTS + 1).astype(int)[:-1].clip(0))
    half = _LINE_HEIGHT / 2
    bars = "".join(
        f"M{100 * at / len(parts):.1f} {half - peak * half:.1f}v{max(0.4, 2 * peak * half):.1f}"
        for at, peak in enumerate(parts.clip(0, 1))
    )
    return _drawing(f'<path d="{bars}"/>', "line wave", "Waveform")


def _drawing(content: str, kind: str, label: str) -> str:
    box = {"viewBox": f"0 0 100 {_LINE_HEIGHT:g}", "preserveAspectRatio": "none"}
    return element("svg", content, **box, class_=kind, role="img", aria_label=label)


def heat_map(values: NDArray[Any], side: int) -> bytes | None:
    """Numbers of two dimensions or more as a PNG from dark (the least) to bright; None if they are none.

    >>> heat_map(np.arange(6).reshape(2, 3), 32)[:8]
    b'\\x89PNG\\r\\n\\x1a\\n'
    """
    if values.ndim < 2 or not values.size or values.dtype.kind not in "biuf":
        return None
    flat = values.reshape(values.shape[0], -1)
    rows, columns = (-(-length // side) for length in flat.shape)
    flat = flat[::rows, ::columns].astype(np.float64) / 2
    finite = flat[np.isfinite(flat)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    share = np.nan_to_num((flat - low) / ((high - low) or 1.0), nan=0.0, posinf=1.0, neginf=0.0).clip(0, 1)[..., None]
    below = _COLD + (_MIDDLE - _COLD) * share * 2
    above = _MIDDLE + (_WARM - _MIDDLE) * (share * 2 - 1)
    return RawImages.png(np.where(share < 0.5, below, above).astype(np.uint8))
