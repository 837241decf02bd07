"""Images with boxes, and sounds, embedded as ``data:`` URLs."""

from __future__ import annotations

import base64

from tfrecord_io.errors import printable
from tfrecord_io.reports.page.markup import element, text
from tfrecord_io.reports.statistics.media import Box, Gallery, MediaSample


def figures(gallery: Gallery) -> list[str]:
    """A figure for each sample."""
    show = _picture if gallery.kind == "image" else _player
    return [_figure(sample, show(sample)) for sample in gallery.samples]


def gallery_frame(gallery: Gallery, content: str) -> str:
    """The grid of the figures of a gallery."""
    return element("div", content, class_="gallery" if gallery.kind == "image" else "gallery sounds")


def _figure(sample: MediaSample, content: str) -> str:
    if sample.data is None:
        content = element("div", text(sample.problem or "no data", 300), class_="broken")
    captions = [element("b", text(value, 80), title=name) for name, value in _safe_names(sample)]
    note = [element("span", text(sample.note, 120))] if sample.note else []
    return element("figure", element("div", content, class_="frame") + element("figcaption", "".join(captions + note)))


def _safe_names(sample: MediaSample) -> list[tuple[str, str]]:
    """Captions; their features as tooltips, without control characters."""
    return [(printable(name), value) for name, value in sample.captions]


def _picture(sample: MediaSample) -> str:
    if sample.data is None:
        return ""
    label = ", ".join(f"{value}" for _, value in sample.captions) or "image"
    kind = ' class="pixels"' if sample.pixelated else ""
    image = f'<img src="{_url(sample)}" alt="{text(label, 80)}"{kind}>'
    boxes = _drawn(sample.boxes) if sample.boxes else ""
    return element("div", image + boxes, class_="picture")


def _drawn(boxes: tuple[Box, ...]) -> str:
    """Boxes over an image, in the unit square that is stretched over it."""
    rects = [
        f'<rect x="{box.xmin:.4f}" y="{box.ymin:.4f}" width="{box.xmax - box.xmin:.4f}" '
        f'height="{box.ymax - box.ymin:.4f}"><title>{text(box.label or "box", 60)}</title></rect>'
        for box in boxes
    ]
    return element("svg", "".join(rects), viewBox="0 0 1 1", preserveAspectRatio="none", role="img", aria_label="Boxes")


def _player(sample: MediaSample) -> str:
    return "" if sample.data is None else f'<audio controls preload="metadata" src="{_url(sample)}"></audio>'


def _url(sample: MediaSample) -> str:
    return f"data:{sample.mime};base64,{base64.b64encode(sample.data or b'').decode()}"
