"""Take pictures of pages in headless Chromium: of `tfr browse`, and demo-report.png of a report."""

from __future__ import annotations

import io
import os
import runpy
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import tfrecord_io as tfr

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))
IMAGES, WIDTH, ROWS = ROOT / "docs" / "images", 1200, 300
NAMES = ("ball", "moon", "plum")
COLOURS = ((214, 74, 60), (240, 220, 130), (120, 60, 140))


def scene(number: int, random: np.random.Generator) -> tuple[bytes, list[list[float]], list[str]]:
    """A meadow with round things: a JPEG, their boxes and names."""
    from PIL import Image, ImageDraw

    width, height = (320, 220) if number % 4 else (220, 300)
    sky = np.linspace((120, 180, 235), (225, 240, 250), height)
    sky[int(height * 0.7) :] = np.linspace((110, 165, 90), (70, 120, 60), height - int(height * 0.7))
    image = Image.fromarray(np.repeat(sky[:, None].astype(np.uint8), width, axis=1))
    draw, boxes, names = ImageDraw.Draw(image), [], []
    for _ in range(1 + number % 3):
        side, kind = int(random.integers(36, 78)), int(random.integers(0, 3))
        left, top = int(random.integers(8, width - side - 8)), int(random.integers(8, height - side - 8))
        draw.ellipse([left, top, left + side, top + side], fill=COLOURS[kind])
        boxes.append([top / height, left / width, (top + side) / height, (left + side) / width])
        names.append(NAMES[kind])
    out = io.BytesIO()
    image.save(out, "JPEG", quality=88)
    return out.getvalue(), boxes, names


def write(folder: Path) -> None:
    """Records with values of several kinds."""
    random = np.random.default_rng(7)
    scenes = [scene(number, random) for number in range(ROWS)]
    steps = np.arange(48) / 5
    waves = np.stack([np.outer(np.sin(np.arange(12) / 2 + n), np.cos(np.arange(20) / 3)) for n in range(ROWS)])
    columns = {
        "image/encoded": [data for data, _, _ in scenes],
        "label": [names[0] for _, _, names in scenes],
        "caption": [
            None if n % 5 == 4 else f"On a meadow, in the morning: {', '.join(names)}"
            for n, (_, _, names) in enumerate(scenes)
        ],
        "score": np.round(random.random(ROWS), 4),
        "embedding": [(np.sin(steps + n) * np.exp(-steps / 9)).tolist() for n in range(ROWS)],
        "attention": pa.FixedShapeTensorArray.from_numpy_ndarray(waves.astype(np.float32)),
        "image/object/class/text": [names for _, _, names in scenes],
    }
    for at, axis in enumerate(("ymin", "xmin", "ymax", "xmax")):
        columns[f"image/object/bbox/{axis}"] = [[box[at] for box in boxes] for _, boxes, _ in scenes]
    tfr.write_tfrecord(pa.table(columns), folder / "train@4", float64="round")


def shrink(path: Path) -> None:
    """Fewer colours: a tenth of the bytes."""
    from PIL import Image

    with Image.open(path) as image:
        image.convert("RGB").quantize(160, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> None:
    from browser import chromium

    with tempfile.TemporaryDirectory() as name, chromium() as page:
        os.chdir(name)
        write(Path("meadow"))
        with tfr.browse("meadow", open_page=False) as server:
            for target, anchor in (("browse.png", ""), ("browse-record.png", "#train-00001:5")):
                page.open(server.url + anchor, WIDTH)
                time.sleep(2)
                page.screenshot(IMAGES / target)
                shrink(IMAGES / target)
        runpy.run_path(str(ROOT / "examples" / "demos" / "meadow.py"), run_name="__main__")
        tfr.report("meadow.tfrec", "page.html")
        page.open(Path("page.html"), 860)
        page.screenshot(IMAGES / "demo-report.png", most=610)
        shrink(IMAGES / "demo-report.png")


if __name__ == "__main__":
    main()
