"""The page: well-formed, escaped, bounded, without scripts, whatever the files contain."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tempfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import batches
from rounds import rounds
from tfrecord_io.plugins.report.report_html import MAX_BYTES

TAGS = set(
    "html head meta title style body main header footer section article nav div p h1 h2 h3 h4 span small a ul li dl dt "
    "dd b br table thead tbody tr th td svg g rect figure figcaption img audio".split()
)
ATTRIBUTES = set(
    "lang charset http-equiv content name class id href title src alt controls preload scope tabindex viewbox x y "
    "width height preserveaspectratio role aria-label aria-hidden".split()
)
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</style><script>alert(1)</script>",
    "' onmouseover='alert(1)",
    "a\u202eb\u2066c",
    "\x1b[31m\x07\x00",
    "]]>--><!--",
    "&lt;b&gt;",
    "x" * 5000,
    "é\u0301\u0301",
    "",
]
NAMES = st.sampled_from(HOSTILE[:-1]) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
TEXTS = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


class Checker(HTMLParser):
    """Checks that tags are balanced, and known; collects the text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.text: list[str] = []
        self.styles: list[str] = []
        self.policy = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attributes:
            assert name in ATTRIBUTES, (tag, name)
            if name == "src":
                assert re.fullmatch(r"data:(image|audio)/[a-z]+;base64,[A-Za-z0-9+/=]*", value or "")
            if name == "href":
                assert re.fullmatch(r"#f\d+", value or "")
            assert_printable(value or "")
        if dict(attributes).get("http-equiv") == "Content-Security-Policy":
            self.policy = dict(attributes)["content"] or ""
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag == "rect"
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            self.styles.append(data)
        else:
            assert_printable(data)
            self.text.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)


def assert_printable(text: str) -> None:
    assert all(character.isprintable() or character == "\n" for character in text), text


def checked(page: str) -> Checker:
    """The parsed page, after the checks that hold for every page."""
    assert len(page.encode()) <= MAX_BYTES
    result = Checker(page)
    digest = base64.b64encode(hashlib.sha256("".join(result.styles).encode()).digest()).decode()
    assert result.policy == (
        f"default-src 'none'; img-src data:; media-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert not re.search(r"https?:|url\(|@import", page)
    return result


@settings(max_examples=rounds(60))
@given(
    st.dictionaries(NAMES, st.lists(TEXTS, min_size=3, max_size=3), min_size=1, max_size=4),
    st.lists(st.floats(width=32), min_size=3, max_size=3),
)
def test_hostile_names_and_texts_are_escaped(columns: dict[str, list[str]], numbers: list[float]) -> None:
    table = {name: pa.array(values) for name, values in columns.items()}
    table["number"] = pa.array(numbers, pa.float32())
    table["bytes"] = pa.array([value.encode() for value in next(iter(columns.values()))])
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(pa.table(table), f"{folder}/<b>.tfrecord")
        report = tfr.report(f"{folder}/<b>.tfrecord", compare=f"{folder}/<b>.tfrecord")
        single = tfr.report(f"{folder}/<b>.tfrecord")
    for page in (report.html, single.html):
        text = "".join(checked(page).text)
        assert "<b>.tfrecord" in text
    assert all(drift.distance in (None, 0.0) for drift in report.drift)


@pytest.mark.parametrize(
    "name", ["sequence", "images", "extremes", "ragged", "tensors", "tutorial", "empty", "fashion"]
)
@pytest.mark.filterwarnings("ignore:.*no records:tfrecord_io.errors.SchemaWarning")
def test_pages_of_the_golden_files_are_well_formed(data: Path, name: str) -> None:
    checked(tfr.report(data / f"{name}.tfrecord").html)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
@settings(max_examples=rounds(40))
@given(batches())
def test_columns_of_any_type_have_a_page(batch: pa.RecordBatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/a.tfrecord"
        try:
            tfr.write_tfrecord(batch, path, float64="round")
        except tfr.errors.EncodeError:
            assume(False)
        report = tfr.report(path, compare=path) if len(batch) else tfr.report(tfr.dataset(path, schema={"x": "int64"}))
    checked(report.html)
    json.dumps(report.to_dict(), allow_nan=False)
    assert all(drift.distance in (None, 0.0) for drift in report.drift)


def test_a_page_of_many_features_is_bounded(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    columns = {f"feature {i:04}": random.normal(size=200).astype("f4") for i in range(1500)}
    tfr.write_tfrecord(columns, tmp_path / "wide.tfrecord")
    page = checked(tfr.report(tmp_path / "wide.tfrecord").html)
    assert re.search(r"[\d,]+ more features, without cards, as the page would be too large", "".join(page.text))


def test_a_page_of_large_pictures_is_bounded(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 300, 300, 3), np.uint8)
    tfr.write_tfrecord({"noise": pixels}, tmp_path / "noise.tfrecord")
    page = checked(tfr.report(tmp_path / "noise.tfrecord").html)
    assert "more would make the page too large" in "".join(page.text)


def test_broken_images_are_named_and_not_embedded(tmp_path: Path) -> None:
    tfr.write_tfrecord({"image/encoded": [b"\xff\xd8\xff<script>alert(1)</script>"] * 2}, tmp_path / "a.tfrecord")
    report = tfr.report(tmp_path / "a.tfrecord")
    assert "cannot be decoded: " in "".join(checked(report.html).text)
    assert "<img" not in report.html
