"""A report about a dataset, or about two: statistics and samples as one HTML page."""

from __future__ import annotations

import html
import importlib.metadata
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tfrecord_io.apps.views import number, percent
from tfrecord_io.kit import (
    ProgressMeter,
    ReadOptions,
    Report,
    Summary,
    byte_size,
    check_keywords,
    counted,
    open_output,
    printable,
)
from tfrecord_io.plugins.report.dataset_statistics import DatasetStatistics, dataset_statistics
from tfrecord_io.plugins.report.drift import FeatureDrift, drifts
from tfrecord_io.plugins.report.report_html import document
from tfrecord_io.plugins.report.report_sample import SAMPLE_BYTES, SAMPLE_RECORDS, SampleLimits
from tfrecord_io.read import CallSource
from tfrecord_io.typing import UNSET, FileMode, FilesLike, OutputPath, ProgressLike, StorageLike, Unset

_FRAME_HEIGHT = 700  # pixels, in a notebook


@dataclass(frozen=True, slots=True, repr=False)
class DatasetReport(Report):
    """The result of `report`; it prints as a table of the features, and shows the page in notebooks.

    Attributes
    ----------
    path : str or None
        The file written.
    html : str
        The page.
    statistics : tuple of DatasetStatistics
        Of the dataset and, with `compare`, of the other one.
    drift : tuple of FeatureDrift
        With `compare`: how each feature differs, those that differ most first.
    """

    path: str | None
    html: str = field(repr=False)
    statistics: tuple[DatasetStatistics, ...]
    drift: tuple[FeatureDrift, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The statistics, without images and sounds, as `tfr report --json` prints them; see `Description.to_dict`."""
        first, *compared = self.statistics
        values = {"path": self.path, **first.to_dict()}
        if compared:
            values["compare"] = compared[0].to_dict()
            values["drift"] = [feature_drift.to_dict() for feature_drift in self.drift]
        return values

    def _summary(self) -> Summary:
        written = "" if self.path is None else f"{printable(self.path)}: {byte_size(len(self.html.encode()))}, "
        features = counted(len(self.statistics[0].features), "feature")
        title = f"{written}{features}, {self.statistics[0].sampling.text.rstrip('.').lower()}"
        if self.drift:
            drifted = []
            for feature_drift in self.drift:
                distance = "" if feature_drift.distance is None else f"{feature_drift.distance:.3f}"
                presence = " → ".join("none" if share is None else percent(share) for share in feature_drift.presence)
                drifted.append((printable(feature_drift.name), distance, feature_drift.measure or "", presence))
            return Summary(title, ("feature", "distance", "measure", "presence"), drifted)
        rows = [
            (
                printable(f.name),
                f.summary.shown_type,
                percent(f.presence),
                "" if f.numbers is None or f.is_temporal else number(f.numbers.mean),
            )
            for f in self.statistics[0].features
        ]
        return Summary(title, ("feature", "type", "presence", "mean"), rows)

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" sandbox width="100%" height="{_FRAME_HEIGHT}" frameborder="0"></iframe>'


@check_keywords
def report(
    source: FilesLike,
    target: OutputPath | None = None,
    *,
    compare: FilesLike | None = None,
    sample_records: int = SAMPLE_RECORDS,
    sample_bytes: int = SAMPLE_BYTES,
    seed: int = 0,
    verify: bool = False,
    mode: FileMode | None = None,
    columns: Sequence[str] | str | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> DatasetReport:
    """Write one HTML page about a dataset: statistics and histograms of each feature, images, sounds, first records.

    The page contains everything that it shows, no scripts, and loads nothing; everything in it that comes from the
    files is escaped. It has at most 8 MB.

    Of large data a sample is read, and the page says which: pieces of the files that are chosen at random, each from
    its beginning; compressed files from their start. Extremes, means and counts are exact for the records that are
    read; quantiles and histograms are those of at most 32,768 values of a feature, chosen at random. Types are inferred
    from all records of files that are not larger than `sample_bytes`.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"x": [1, 2, 3, 3], "word": ["a", "b", "a", None]}, "words.tfrecord"
    ... )
    >>> report = tfr.report("words.tfrecord", "words.html")
    >>> report.statistics[0].features[0].numbers.mean
    2.25
    >>> print(tfr.report("words.tfrecord"))
    2 features, all 4 records
    feature  type    presence  mean
    x        int64   100 %     2.25
    word     string  75 %

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` has more reading options.
    target : str, PathLike, URL or binary file object, optional
        The page, ``.html``; it appears complete or not at all. None: nothing is written.
    compare : str, PathLike, Dataset, or list of those, optional
        Another dataset. The page has both side by side, and how much each feature differs: the L-infinity distance of
        the shares of categories, and the Jensen-Shannon divergence of numbers. The keywords hold for both.
    sample_records : int, default 50,000
        Maximum number of records to read.
    sample_bytes : int, default 64 MiB
        Approximate number of uncompressed bytes of records to read.
    seed : int, default 0
        Seed of the choice of pieces, and of the records whose images, sounds and texts are shown.
    verify : bool, default False
        Verify all files completely, as `tfrecord_io.verify`, and show the result.
    mode : {"error", "overwrite"}, optional
        "error" raises if `target` exists; else it is replaced.
    columns, storage_options, progress
        As in `read_tfrecord`.

    Returns
    -------
    DatasetReport
        ``path``, ``html``, ``statistics``, ``drift``, and ``to_dict()`` for JSON.

    Raises
    ------
    ValueError
        The name of `target` does not end in ``.html`` or ``.htm``.
    FileExistsError
        `target` exists, with ``mode="error"``.
    TypeError
        `source` is a file object or a pipe, which can be read only once.
    TFRecordError
        As in `dataset`: a file is damaged, or records contradict each other.
    """
    source, compare = CallSource(source).materialize().given, CallSource(compare).materialize().given
    limits = SampleLimits(sample_records, sample_bytes, seed)
    sources = [source] if compare is None else [source, compare]
    keywords = {"columns": columns, "storage_options": storage_options, "progress": progress}
    options = [CallSource(side).options(ReadOptions, of=report, **keywords).for_inspection() for side in sources]
    if target is None:
        return _make_report(None, sources, options=options, limits=limits, check=verify)
    if isinstance(target, str | os.PathLike) and not is_page(os.fspath(target)):
        raise ValueError(f"{printable(target)}: the name of a report ends in .html")
    with open_output(target, options[0].storage, mode=mode) as file:
        page = _make_report(file.path, sources, options=options, limits=limits, check=verify)
        file.write(page.html.encode())
    return page


def is_page(name: str) -> bool:
    """True if a name is one for HTML pages.

    >>> is_page("words.html"), is_page("words.tfrecord")
    (True, False)
    """
    return name.lower().endswith((".html", ".htm"))


def _make_report(
    out: str | None, paths: list[Any], options: list[ReadOptions], limits: SampleLimits, check: bool
) -> DatasetReport:
    examine = partial(dataset_statistics, limits=limits, check=check)
    datasets: tuple[DatasetStatistics, ...]
    if len(paths) == 1:
        datasets = (examine(paths[0], options[0]),)
    else:  # one progress bar for both sides; the total is known once the second is open
        with ProgressMeter(options[0].progress, None, "records") as meter:
            both = zip(paths, options, strict=True)
            datasets = tuple(examine(path, replace(its, progress=meter.part())) for path, its in both)
    feature_drifts = drifts(datasets[0].features, datasets[1].features) if len(paths) > 1 else ()
    titles = []
    for path in paths:
        side_paths = CallSource(path).paths
        more = f" and {counted(len(side_paths) - 1, 'more path')}" if len(side_paths) > 1 else ""
        titles.append(f"{printable(os.fspath(side_paths[0])) if side_paths else 'no files'}{more}")
    page = document("\n".join(titles), datasets, feature_drifts, importlib.metadata.version("tfrecord_io"))
    return DatasetReport(out, page, datasets, feature_drifts)
