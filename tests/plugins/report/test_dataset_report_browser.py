"""The page in headless Chromium: no message, no request, nothing wider than the window, light and dark.

Skipped where Chromium is not installed (``apt-get install chromium``).
"""

from __future__ import annotations

import io
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from rounds import COMPLETE

WIDTHS = (360, 768, 1440)
LONG = "a_very_long_name_without_any_place_to_break_it/" * 4


def penguins() -> dict:
    random = np.random.default_rng(0)
    return {
        "species": random.choice(["Adelie", "Gentoo", "Chinstrap"], 300),
        "mass": random.normal(4200, 800, 300).astype("f4"),
        "year": random.integers(2007, 2010, 300),
    }


def images() -> pa.Table:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", (300, 200), (90, 160, 220)).save(out, "JPEG")
    boxes = {
        f"image/object/bbox/{axis}": pa.array([[v]] * 6)
        for axis, v in zip(("ymin", "xmin", "ymax", "xmax"), (0.2, 0.3, 0.6, 0.7), strict=True)
    }
    encoded = [out.getvalue()] * 5 + [b"\xff\xd8\xff broken"]
    digits = pa.FixedShapeTensorArray.from_numpy_ndarray(
        np.random.default_rng(0).integers(0, 256, (6, 28, 28), np.uint8)
    )
    sounds = [b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\0\0\0\0"] * 6
    return pa.table({"image/encoded": encoded, "digit": digits, "audio": sounds, "label": list("abcdef"), **boxes})


def hostile() -> dict:
    texts = [
        "<script>document.title='hacked'</script>",
        "\u202e reversed",
        "x" * 3000,
        "<img src=http://127.0.0.1:9/x>",
    ]
    return {LONG: texts, "<script>document.title='hacked'</script>": [1, 2, 3, 4], "w" * 300: [1e38, -1e-38, 0.0, 5.0]}


DATA = {"penguins": penguins, "images": images, "hostile": hostile}


@pytest.mark.parametrize("name", DATA)
def test_pages_are_quiet_and_fit(page: Any, tmp_path: Path, name: str) -> None:
    tfr.write_tfrecord(DATA[name](), tmp_path / "a.tfrecord", float64="round")
    tfr.report(tmp_path / "a.tfrecord", tmp_path / "one.html")
    tfr.report(tmp_path / "a.tfrecord", tmp_path / "two.html", compare=tmp_path / "a.tfrecord")
    backgrounds = set()
    views = [*product(WIDTHS, (False, True))] if COMPLETE else [(360, False), (768, True), (1440, False)]
    for file in ("one.html", "two.html"):
        for width, dark in views:
            page.open(tmp_path / file, width, dark=dark)
            assert page.messages == []
            assert page.requests == []
            assert page.evaluate("document.title") != "hacked"
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            backgrounds.add((dark, page.evaluate("getComputedStyle(document.body).backgroundColor")))
            page.screenshot(tmp_path / "page.png")
            assert (tmp_path / "page.png").stat().st_size > 10_000
    assert len(backgrounds) == 2


def test_images_are_shown_with_their_boxes(page: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord(images(), tmp_path / "a.tfrecord", float64="round")
    tfr.report(tmp_path / "a.tfrecord", tmp_path / "a.html")
    page.open(tmp_path / "a.html", 1440)
    shown = "[...document.querySelectorAll('img')]"
    assert page.evaluate(f"{shown}.length") == 11
    assert page.evaluate(f"{shown}.every(i => i.complete && i.naturalWidth > 0)")
    assert page.evaluate("document.querySelectorAll('.broken').length") == 1
    assert page.evaluate("document.querySelectorAll('audio').length") == 6
    sides = "['left', 'right', 'top', 'bottom']"
    same = f"""[...document.querySelectorAll('.picture svg')].every(svg => {{
        const [a, b] = [svg, svg.previousSibling].map(e => e.getBoundingClientRect());
        return {sides}.every(side => Math.abs(a[side] - b[side]) < 1)}})"""
    assert page.evaluate(same)


def test_the_frame_of_a_notebook_shows_the_page(page: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord(penguins(), tmp_path / "a.tfrecord")
    shown = tfr.report(tmp_path / "a.tfrecord")._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><meta charset=utf-8>{shown}", "utf-8")
    page.open(tmp_path / "notebook.html", 900)
    assert page.messages == []
    assert [url for url in page.requests if url != "about:srcdoc"] == []
