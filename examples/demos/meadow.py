"""Write meadow.tfrec: 64 records with a JPEG image of a meadow, the things on it, and a label, as in competitions.

No schema is embedded, as files of TensorFlow have none.
"""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw

import tfrecord_io as tfr

HEIGHT, WIDTH, RECORDS = 120, 176, 64
THINGS = {"ball": (214, 74, 60), "moon": (240, 220, 130), "plum": (120, 60, 140)}


def scene(number: int, random: np.random.Generator) -> dict[str, object]:
    """A record: a meadow with one to three round things; the label is their number less one."""
    sky = np.linspace((120, 180, 235), (225, 240, 250), HEIGHT)
    sky[84:] = np.linspace((110, 165, 90), (70, 120, 60), HEIGHT - 84)
    image = Image.fromarray(np.repeat(sky[:, None].astype(np.uint8), WIDTH, axis=1))
    draw, boxes, names = ImageDraw.Draw(image), [], []
    for _ in range(1 + number % 3):
        side, name = int(random.integers(24, 48)), str(random.choice([*THINGS]))
        left, top = int(random.integers(4, WIDTH - side - 4)), int(random.integers(4, HEIGHT - side - 4))
        draw.ellipse([left, top, left + side, top + side], fill=THINGS[name])
        boxes.append((top / HEIGHT, left / WIDTH, (top + side) / HEIGHT, (left + side) / WIDTH))
        names.append(name)
    file = io.BytesIO()
    image.save(file, "JPEG", quality=88)
    axes = dict(zip(("ymin", "xmin", "ymax", "xmax"), zip(*boxes, strict=True), strict=True))
    return {
        "image": file.getvalue(),
        "label": len(names) - 1,
        "caption": ", ".join(names),
        "image/object/class/text": names,
        **{f"image/object/bbox/{axis}": list(values) for axis, values in axes.items()},
    }


def main() -> None:
    random = np.random.default_rng(7)
    rows = [scene(number, random) for number in range(RECORDS)]
    tfr.write_tfrecord(rows, "meadow.tfrec", embed_schema=False, float64="round")


if __name__ == "__main__":
    main()
