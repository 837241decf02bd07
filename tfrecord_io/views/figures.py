"""Images and sounds as HTML, with what is drawn over images."""

from __future__ import annotations

import base64

from tfrecord_io.errors import printable
from tfrecord_io.views.elements import element, text
from tfrecord_io.views.media import MediaSample


def figure(sample: MediaSample, kind: str) -> str:
    """An image or a sound with its captions; the reason where it cannot be shown."""
    if sample.data is None:
        content = element("div", text(sample.problem or "no data", 300), class_="broken")
    elif kind == "image":
        content = picture(sample)
    else:
        content = f'<audio controls preload="metadata" src="{data_url(sample.mime, sample.data)}"></audio>'
    captions = [element("b", text(value, 80), title=printable(name)) for name, value in sample.captions]
    note = [element("span", text(sample.note, 120))] if sample.note else []
    return element("figure", element("div", content, class_="frame") + element("figcaption", "".join(captions + note)))


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
    if rects:  # in the unit square that is stretched over the image
        image += element("svg", rects, viewBox="0 0 1 1", preserveAspectRatio="none", role="img", aria_label="Boxes")
    return element("div", image, class_="picture")


def data_url(mime: str, data: bytes | None) -> str:
    """The URL of bytes that stand in the page itself."""
    return f"data:{mime};base64,{base64.b64encode(data or b'').decode()}"
