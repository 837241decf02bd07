"""Check the images of files: those that are empty, broken, mislabelled, or of another size than the record states.

`check_images` finds the columns of images of all files first, as a file alone may have none in its first records.
`_faults` finds what is wrong with one image; `_ImageCheck` reads one file, and adds its problems to the result.

Tests: tests/read/verifying/test_image_check.py.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import pyarrow as pa

from tfrecord_io.base import FrameOptions, ScanOptions, ordered, printable
from tfrecord_io.bytes import ForeignFile
from tfrecord_io.columns import Column, ImageForm, ImageHeader, PixelReader, RowFault, pillow
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, MissingDependencyError, ReplacedError, TFRecordError
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.scan_rows import ScanRows
from tfrecord_io.read.source_resolution import Files
from tfrecord_io.read.verifying.file_check_result import FileCheck, ProblemList
from tfrecord_io.store import Source, Sources
from tfrecord_io.typing import RecordTypeName

_SAMPLE = 100  # records by whose values columns of images are found
_ENCODED = "image/encoded"  # of TensorFlow's scripts
_STATED = {  # facts in records about an image, with their names after a prefix
    "height": ("height",),
    "width": ("width",),
    "format": ("format",),
    "filename": ("filename", "file_name", "name", "path"),
}
_SUFFIXES = {suffix: name for name, suffixes in ForeignFile.IMAGES.items() for suffix in suffixes}


def check_images(
    sources: Sequence[Source],
    files: Sequence[FileCheck],
    record_type: RecordTypeName | None,
    options: FrameOptions,
    *,
    full: bool,
) -> list[FileCheck]:
    """The results for files, with the problems of their images: of headers, or with `full` of all pixels.

    Raises
    ------
    FeatureNotFoundError
        No file has a column of images.
    """
    keeps_all = options.damage.hands_over
    options = options.changed(on_error=_goes_on, progress=False)
    inherited = {f.name: getattr(options, f.name) for f in fields(FrameOptions)}
    reading = ScanOptions(**inherited, record_type=record_type, sample=_SAMPLE, on_new="ignore", infer_text=False)
    checks = [
        _ImageCheck(source, file, decodes_pixels=full, problems=ProblemList(keeps_all=keeps_all))
        for source, file in zip(sources, files, strict=True)
    ]
    images: set[str] = set().union(*(check.find_columns(reading) for check in checks))
    scans = [check.scan for check in checks if check.scan is not None]
    if not images and scans and len(scans) == len(checks):
        candidates = dict.fromkeys(name for scan in scans for name in _byte_columns(scan))
        advice = f"columns of bytes: {printable(', '.join(candidates), 400)}" if candidates else "there are no bytes"
        reason = "no column has images, by the schema or the first records"
        raise FeatureNotFoundError(reason, path=sources[0].path, expected=_ENCODED, got=[*candidates], hint=advice)
    return [check.result(images, options.thread_count) for check in checks]


def refuse_files_read_once(sources: Sequence[Source]) -> None:
    """Raise ValueError for files that can be read only once, MissingDependencyError without Pillow."""
    pillow("checking images")
    for source in sources:
        if not source.can_be_read_again:
            reason = f"images=: '{printable(source.path)}' is a file object or a pipe, and files are read twice"
            raise ValueError(f"{reason}; save it to a file first")


def _goes_on(error: Exception) -> bool:
    """True, for an ``on_error``: damage of the file is reported elsewhere."""
    return True


def _byte_columns(scan: Scan) -> list[str]:
    """The columns of bytes, and of lists of them."""
    return [f.name for f in scan.schema if Column(f.type.value_type if Column(f.type).is_list else f.type).is_bytes]


def _image_columns(scan: Scan) -> set[str]:
    """The columns that are declared as images, are called so, or have one in the first records."""
    possible = _byte_columns(scan)
    columns = {
        name for name in possible if name == _ENCODED or ImageForm.KEY in (scan.schema.field(name).metadata or {})
    }
    untyped_names = [name for name in possible if name not in columns]
    if not untyped_names:
        return columns
    with ScanRows(scan.only(untyped_names).limit_rows(_SAMPLE)).open_files() as reader:
        reader.warns_of_damage = False
        for batch in reader:
            for name in untyped_names:
                column = batch.column(name)
                values = column.flatten() if Column(column.type).is_list else column
                if name not in columns and any(_begins_as_image(scalar) for scalar in values):
                    columns.add(name)
    return columns


def _begins_as_image(scalar: pa.Scalar) -> bool:
    content = scalar.as_buffer()
    form = None if content is None else ForeignFile.looks_like(content.slice(0, min(content.size, 64)).to_pybytes())
    return form is not None and form.endswith(" image")


def _stated_columns(image: str, names: Sequence[str], *, is_only: bool) -> dict[str, str]:
    """The columns that state something of the images of a column.

    >>> _stated_columns("image/encoded", ["image/height", "height", "image/filename"], is_only=True)
    {'height': 'image/height', 'filename': 'image/filename'}
    >>> _stated_columns("mask", ["height", "mask_height"], is_only=False)
    {'height': 'mask_height'}
    """
    folder = image.rpartition("/")[0]
    prefixes = [f"{folder}/"] if folder else [f"{image}/", f"{image}_", *([""] if is_only else [])]
    columns = {}
    for what, words in _STATED.items():
        possible = (f"{prefix}{word}" for prefix in prefixes for word in words)
        if (name := next((name for name in possible if name in names), None)) is not None:
            columns[what] = name
    return columns


Fault = tuple[str, Any, Any]
"""What is wrong with an image, in a clause; what was expected, and what the image is."""


@dataclass(slots=True)
class _ImageCheck:
    """Checks the images of one file."""

    source: Source
    file: FileCheck  # the result, to which problems are added
    decodes_pixels: bool  # False: only headers are read
    problems: ProblemList  # of images, and of the reading
    scan: Scan | None = None  # set by `find_columns`; None: the file cannot be read
    images: int = 0
    bad_images: int = 0

    def find_columns(self, options: ScanOptions) -> set[str]:
        """The columns of images of the file, and how it is read."""
        if not self.file.intact or any(problem.part == "storage" for problem in self.file.problems):
            return set()
        with self._errors_as_problems():
            scan = Files(Sources([self.source]), options).plan_scan().close()
            columns = _image_columns(scan)
            self.scan = scan
            return columns
        return set()

    def result(self, names: set[str], threads: int) -> FileCheck:
        """The result for the file, with the problems of the images in these columns."""
        scan = self.scan
        columns = [] if scan is None else [name for name in _byte_columns(scan) if name in names]
        if scan is not None and columns:
            of_all = scan.schema.names
            stated_columns = {name: _stated_columns(name, of_all, is_only=len(columns) == 1) for name in columns}
            needed = dict.fromkeys(
                [*columns, *(name for of_image in stated_columns.values() for name in of_image.values())]
            )
            with self._errors_as_problems(), ScanRows(scan.only([*needed])).open_files() as reader:
                reader.warns_of_damage = False  # of damage, which is reported
                first = 0
                for batch in reader:
                    for row, column, faults in ordered(self._tasks(batch, stated_columns), threads, "images"):
                        path, record = reader.origin(first + row)
                        self._add(faults, path, record, column)
                    first += len(batch)
        found = self.problems
        file = self.file.with_problems(found.kept, found.count, keeps_all=found.keeps_all)
        return replace(file, images=self.images, bad_images=self.bad_images)

    def _add(self, faults: Sequence[Fault], path: str, record: int, column: str) -> None:
        self.images += 1
        self.bad_images += bool(faults)
        for reason, expected, got in faults:
            error = DecodeError(reason, path=path, record=record, feature=column, expected=expected, got=got)
            self.problems.add("images", error)

    @contextmanager
    def _errors_as_problems(self) -> Iterator[None]:
        """Add an error of reading to the problems, except faults of records, which are reported already."""
        try:
            yield
        except (ReplacedError, MissingDependencyError):
            raise
        except TFRecordError as error:
            if not self.file.problem_count and not self.problems.count:
                self.problems.add("images", error)
        except OSError as error:
            self.problems.add("storage", error)

    def _tasks(
        self, batch: pa.RecordBatch, stated: Mapping[str, Mapping[str, str]]
    ) -> Iterator[Callable[[], tuple[int, str, list[Fault]]]]:
        """Functions that check one image of a batch each, and return row, column and faults."""
        values = {name: batch.column(name).to_pylist() for of_image in stated.values() for name in of_image.values()}
        for row in range(len(batch)):
            for column, of_image in stated.items():
                facts = {what: values[name][row] for what, name in of_image.items()}
                scalar = batch.column(column)[row]
                if not Column(scalar.type).is_list:
                    yield partial(self._check, row, column, scalar=scalar, facts=facts, where="")
                    continue
                for number, item in enumerate(scalar.values or ()):
                    yield partial(
                        self._check, row, column, scalar=item, facts=facts, where=f"image {number} of its list: "
                    )

    def _check(
        self, row: int, column: str, scalar: pa.Scalar, facts: Mapping[str, Any], where: str
    ) -> tuple[int, str, list[Fault]]:
        faults = _faults(scalar.as_py(), column, facts, full=self.decodes_pixels)
        return row, column, [(where + reason, expected, got) for reason, expected, got in faults]


def _faults(data: bytes | None, column: str, facts: Mapping[str, Any], *, full: bool) -> Iterator[Fault]:
    """Find faults of an image, against facts that its record states."""
    if not data:
        yield "there is no image" if data is None else "it has no bytes", "an image", data
        return
    try:
        header = ImageHeader.read(data, "", column)
        header.check_size()
        if full:
            PixelReader.check(data, column)
    except DecodeError as error:
        yield error.reason, error.expected, error.got
        return
    except RowFault as fault:
        yield fault.reason, fault.expected, fault.got
    yield from _wrong_labels(header, facts)
    stored, turned = (header.height, header.width), header.turned_size
    height, width = (
        side if isinstance(side := facts.get(name), int) and side else None for name in ("height", "width")
    )
    if not any(height in (None, size[0]) and width in (None, size[1]) for size in (stored, turned)):
        reason = f"the image has {stored[1]}×{stored[0]} pixels, but the record states {width or '?'}×{height or '?'}"
        yield reason, (height, width), stored


def _wrong_labels(header: ImageHeader, facts: Mapping[str, Any]) -> Iterator[Fault]:
    """The formats that are stated of an image, by a label or the suffix of a name, and are not its own."""
    for what in ("format", "filename"):
        text = facts.get(what)
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        if not isinstance(text, str) or not text:
            continue
        if what == "format":
            label = text.strip().lower().removeprefix("image/").removeprefix(".")
            format = _SUFFIXES.get(f".{label}", label)
        else:
            format = _SUFFIXES.get(os.path.splitext(text.lower())[1], header.format)  # of another suffix says nothing
        if format != header.format:
            yield f"its {what} is '{printable(text, 80)}', but the image is {header.format}", text, header.format
