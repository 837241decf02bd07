"""The page of a report: one HTML document of bounded size, without scripts, that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from importlib import resources

from tfrecord_io.display import byte_size, counted
from tfrecord_io.reports.page.dataset_tables import drift_table, files_table, first_table
from tfrecord_io.reports.page.feature_cards import card
from tfrecord_io.reports.page.galleries import figures, gallery_frame
from tfrecord_io.reports.page.markup import element, text
from tfrecord_io.reports.statistics.dataset_statistics import DatasetStatistics
from tfrecord_io.reports.statistics.drift import FeatureDrift

MAX_BYTES = 8_000_000  # of a page
_CARDS_BYTES, _IMAGES_BYTES, _SOUNDS_BYTES = 2_500_000, 2_500_000, 1_500_000
_LINKS = 200  # of the table of contents

Datasets = Sequence[DatasetStatistics]  # one, or two that are compared


def document(title: str, datasets: Datasets, drifts: Sequence[FeatureDrift] = (), version: str = "") -> str:
    """The whole page.

    Parameters
    ----------
    title : str
        A line about the data, of any content.
    datasets : sequence of DatasetStatistics
        One, or two that are compared.
    drifts : sequence of FeatureDrift
        Of two datasets.
    version : str
        Of tfrecord_io.
    """
    style = resources.files("tfrecord_io.reports.page").joinpath("style.css").read_text("utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; media-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{text(title, 120)}</title><style>{style}</style>"
    )
    body = "".join(_sections(title, datasets, drifts))
    footer = element("footer", f"{text(_limits())} tfrecord_io {text(version)}")
    main = element("main", body + footer)
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{main}</body></html>\n'


def _limits() -> str:
    return (
        f"This page is smaller than {byte_size(MAX_BYTES)}, contains no scripts and loads nothing. "
        "Control characters are shown as escapes, long values are shortened."
    )


def _sections(title: str, datasets: Datasets, drifts: Sequence[FeatureDrift]) -> Iterable[str]:
    yield _top(title, datasets)
    cards, names = _cards(datasets, drifts)
    yield names
    if len(datasets) == 2:
        words = "A to B; marked from 0.1 on"
        yield _section("Drift", words, drift_table(drifts) + _drift_words())
    count = len(_names(datasets))
    yield _section("Features", f"{count:,}", cards)
    for i, dataset in enumerate(datasets):
        side = f" of {'AB'[i]}" if len(datasets) == 2 else ""
        images, sounds = _Budget(_IMAGES_BYTES // len(datasets)), _Budget(_SOUNDS_BYTES // len(datasets))
        for gallery in dataset.galleries:
            shown = (images if gallery.kind == "image" else sounds).take(figures(gallery))
            noun = "Images" if gallery.kind == "image" else "Sounds"
            left = len(gallery.samples) - len(shown)
            is_all = len(gallery.samples) == dataset.sampling.records
            note = f"of all {len(shown)} records" if is_all and not left else f"of {len(shown)} random records"
            note += f"; {left} more would make the page too large" if left else ""
            yield _section(f"{noun}{side}: {gallery.feature}", note, gallery_frame(gallery, "".join(shown)))
    for i, dataset in enumerate(datasets):
        side = f" of {'AB'[i]}" if len(datasets) == 2 else ""
        yield _section(f"First records{side}", "", first_table(dataset))
        checks = element("p", text(dataset.checks, 500), class_="lead")
        yield _section(f"Files{side}", f"{dataset.file_count:,}", files_table(dataset) + checks)


class _Budget:
    """Takes parts of the page as long as there is room for them."""

    def __init__(self, size: int) -> None:
        self._left = size

    def take(self, parts: Iterable[str]) -> list[str]:
        """The first parts that fit."""
        taken = []
        for part in parts:
            self._left -= len(part.encode())
            if self._left < 0:
                break
            taken.append(part)
        return taken


def _section(heading: str, note: str, content: str) -> str:
    small = element("small", text(note, 200)) if note else ""
    return element("section", element("h2", text(heading, 160) + small) + content)


def _top(title: str, datasets: Datasets) -> str:
    if len(datasets) == 1:
        words = element("p", text(datasets[0].sampling.text, 400), class_="lead")
        return element("header", _kicker("TFRecord report") + element("h1", text(title, 300)) + words) + _tiles(
            datasets[0]
        )
    parts = [_kicker("TFRecord report: two datasets")]
    for i, (name, dataset) in enumerate(zip(title.split("\n"), datasets, strict=True)):
        key = element("span", "", class_=f"key s{i}")
        heading = element("h1", key + element("span", f"{'AB'[i]}: {text(name, 300)}"))
        parts += [heading, element("p", text(dataset.sampling.text, 400), class_="lead"), _tiles(dataset)]
    return element("header", element("div", "".join(parts), class_="pair"))


def _kicker(words: str) -> str:
    return element("p", words, class_="kicker")


def _tiles(dataset: DatasetStatistics) -> str:
    sampling = dataset.sampling
    records = f"{sampling.records if sampling.total is None else sampling.total:,}"
    examined = "" if sampling.complete else f"{sampling.records:,} examined"
    compressions = sorted({file.compression or "not compressed" for file in dataset.files})
    tiles = [
        (
            "Records" if sampling.total is not None else "Records examined",
            records,
            examined if sampling.total is not None else "",
        ),
        ("Features", f"{len(dataset.features):,}", ""),
        ("Size", "unknown" if dataset.bytes is None else byte_size(dataset.bytes), ", ".join(compressions)),
        ("Files", f"{dataset.file_count:,}", ""),
        ("Schema", text(dataset.schema_source), ""),
    ]
    if sampling.skipped:
        tiles.append(("Damaged", counted(sampling.skipped, "region"), "left out"))
    cells = [
        element("div", element("dt", name) + element("dd", value + (element("small", text(note)) if note else "")))
        for name, value, note in tiles
    ]
    return element("dl", "".join(cells), class_="tiles")


def _names(datasets: Datasets) -> list[str]:
    return list(dict.fromkeys(feature.name for dataset in datasets for feature in dataset.features))


def _cards(datasets: Datasets, drifts: Sequence[FeatureDrift]) -> tuple[str, str]:
    """The cards of the features, and the links to them."""
    sides = [{feature.name: feature for feature in dataset.features} for dataset in datasets]
    drift = {each.name: each for each in drifts}
    names = _names(datasets)
    cards = (
        card([side.get(name) for side in sides], datasets[-1].texts.get(name, ()), f"f{i}", drift.get(name))
        for i, name in enumerate(names)
    )
    shown = _Budget(_CARDS_BYTES).take(cards)
    links = "".join(
        element("li", element("a", text(name, 60) or "(empty)", href=f"#f{i}"))
        for i, name in enumerate(names[: len(shown)][:_LINKS])
    )
    rest = names[len(shown) :]
    note = ""
    if rest:
        listed = ", ".join(text(name, 60) for name in rest[:_LINKS])
        note = element(
            "p", f"{len(rest):,} more features, without cards, as the page would be too large: {listed}", class_="note"
        )
    contents = element("nav", element("ul", links, class_="contents"), aria_label="Features") if len(names) > 1 else ""
    return element("div", "".join(shown), class_="cards") + note, contents


def _drift_words() -> str:
    return element(
        "p",
        "L-infinity: the largest difference between the shares of one value. Jensen-Shannon: the divergence of "
        "histograms with 20 bins, in bits. Both are 0 for equal and 1 for disjoint values.",
        class_="note",
    )
