"""Verify files: check every checksum, parse every record, and compare the files with their schema, manifest, index."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import pyarrow as pa

from tfrecord_io.base import (
    LIMITS,
    MIB,
    Flag,
    FrameOptions,
    OnDamage,
    Point,
    ProgressMeter,
    Report,
    Summary,
    byte_size,
    check_choice,
    check_keywords,
    counted,
    hide_secrets,
    ordered,
    printable,
)
from tfrecord_io.bytes import Kind, RecordType
from tfrecord_io.columns import EmbeddedSchema
from tfrecord_io.errors import CorruptRecordError, FeatureTypeError, ReplacedError, SchemaError, TFRecordError
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.chunks.skipped_regions import SkippedRegions
from tfrecord_io.read.source_resolution import Files
from tfrecord_io.read.verifying.file_check import FileChecker
from tfrecord_io.read.verifying.file_check_result import FileCheck, Problem
from tfrecord_io.read.verifying.image_check import check_images, refuse_files_read_once
from tfrecord_io.read.verifying.record_check import FileContents
from tfrecord_io.store import BlockReader, ShardName, Source, Sources
from tfrecord_io.typing import UNSET, InputPath, Path, ProgressLike, RecordTypeName, StorageLike, Unset

_WAITING = 32  # remote files at a time
_MEMORY = 256 * MIB  # for them


@dataclass(frozen=True, slots=True, repr=False)
class VerifyReport(Report):
    """The result of `verify`; it prints as a line, a table of the bad files, and a line for each problem.

    Attributes
    ----------
    files : tuple of FileCheck
        In the order of reading.
    anomalies : tuple of Anomaly
        With `schema`: what does not fit it, each with ``feature``, ``kind``, by TFDV's name, and ``text``.
    """

    HEADINGS: ClassVar = ("file", "bytes", "records", "compression", "status", "problems")
    files: tuple[FileCheck, ...]
    anomalies: tuple[Any, ...] = ()

    @property
    def ok(self) -> bool:
        """True if nothing is wrong."""
        return not self.anomalies and all(file.error is None for file in self.files)

    @property
    def records(self) -> int:
        """Number of records before the first damage of each file."""
        return sum(file.records for file in self.files)

    @property
    def bytes(self) -> int:
        """Uncompressed bytes of these records."""
        return sum(file.bytes for file in self.files)

    @property
    def intact(self) -> int:
        """Number of all records without a problem."""
        return sum(file.intact for file in self.files)

    def skipped_table(self) -> pa.Table:
        """The damaged regions of all files as a table, with the columns of `ReadReport.skipped_table`.

        These are the problems of records, frames, compressed data and images, not those of a manifest or an index. Of
        each file there are at most 100; of a dataset with ``on_error="collect"``, all. Damaged frames that follow one
        another are one region.
        """
        return SkippedRegions.table(region for file in self.files for region in file.regions)

    def to_dict(self) -> dict[str, Any]:
        files = [file.to_dict() for file in self.files]
        totals = {"ok": self.ok, "records": self.records, "bytes": self.bytes, "intact": self.intact, "files": files}
        return {**totals, "anomalies": [anomaly.to_dict() for anomaly in self.anomalies]} if self.anomalies else totals

    def rows(self, files: Sequence[FileCheck]) -> list[tuple[str, ...]]:
        """Rows of a table, one for each of `files`, in the order of `HEADINGS`."""
        return [
            (
                printable(file.path, None),
                "" if file.size is None else f"{file.size:,}",
                f"{file.intact:,}",
                file.compression or "none",
                file.status,
                f"{file.problem_count:,}" if file.problem_count else "",
            )
            for file in files
        ]

    def title(self) -> str:
        """Summary in a line."""
        bad = Counter(file.status for file in self.files if file.error is not None)
        files = printable(self.files[0].path) if len(self.files) == 1 else counted(len(self.files), "file")
        good = len(self.files) - bad.total()
        counts = [*bad.items(), *([("good", good)] if good else [])]
        separator = "," if len(counts) == 1 and (good or len(self.files) == 1) else ";"
        state = counts[0][0] if separator == "," else ", ".join(f"{count:,} {status}" for status, count in counts)
        size = Source.total(file.size for file in self.files)
        text = f"{files}: {state}{separator} {counted(self.intact, 'intact record')}"
        if self.anomalies:
            text += f", {len(self.anomalies):,} {'anomaly' if len(self.anomalies) == 1 else 'anomalies'}"
        if any(file.images is not None for file in self.files):
            bad_images = sum(file.bad_images or 0 for file in self.files)
            text += f", {counted(sum(file.images or 0 for file in self.files), 'image')}"
            text += f", {bad_images:,} of them bad" if bad_images else ""
        return text if size is None else f"{text}, {byte_size(size)}"

    def problem_lines(self, text_of: Callable[[Exception], str] | None = None) -> list[str]:
        """Lines of text, one for each problem; `text_of` words an error, if not as Python does.

        A hint is given once for each file; anomalies come last.
        """
        lines = []
        for file in self.files:
            named: list[str] = []
            for problem in file.problems:
                error = problem.error
                if isinstance(error, TFRecordError) and (hint := error.hint) is not None:
                    if hint in named:
                        error = copy(error)
                        error.set_hint(None)
                    else:
                        named.append(hint)
                text = str(error) if text_of is None else text_of(error)
                lines.append(printable(f"{type(error).__name__}: {text}", None))
            if file.problem_count > len(file.problems):
                more = file.problem_count - len(file.problems)
                lines.append(f"{printable(file.path)}: {counted(more, 'more problem')}")
        lines += [f"anomaly: {anomaly}" for anomaly in self.anomalies]
        return lines

    def _summary(self) -> Summary:
        bad = [file for file in self.files if file.error is not None]
        rows = self.rows(bad) if len(self.files) > 1 else []
        return Summary(self.title(), self.HEADINGS, rows, self.problem_lines(), paths=("file",))


@check_keywords
def verify(
    source: InputPath,
    *,
    images: bool | Literal["full"] = False,
    schema: Path | bytes | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> VerifyReport:
    """Check every record of files, and compare the files with their schema, manifest and index.

    Problems are reported, not raised, and checking continues after damage. Checks cover the frames and checksums of all
    records; that records parse; that each feature has one type, the one in the embedded schema if there is one; that
    the embedded schema is valid, and equal in all shards of a dataset; the manifest, with the number of records, size
    and checksum of each file, and files that it does not name; and index files, with every header.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
    >>> report = tfr.verify("three.tfrecord")
    >>> report.ok, report.records, report.files[0].status
    (True, 3, 'good')

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more reading options.
        What a file decompresses to beyond the ``limits=`` of a dataset is a problem of its compression. Its
        ``threads=`` is the number of files checked at a time; if there are fewer files, large ones that are local and
        not compressed are split. By default this is the number of CPU cores, for files that are not local up to 32, as
        256 MiB of memory allow. The report does not depend on it. By default, records must parse as Examples or
        SequenceExamples; with its ``record_type=``, as that type. "bytes" checks only framing.
    images : bool or "full"
        Whether images are checked, too: that they are there, their headers are valid, and the format, the suffix of the
        file name and the size that the record states (``image/format``, ``image/filename``, ``image/height``,
        ``image/width``) are theirs. "full" also decodes their pixels. Columns are found by the schema, by the name
        ``image/encoded``, or by the first records. It needs the package pillow, and reads the files twice.
    schema : str, PathLike or bytes, optional
        A TFX schema (``schema.pbtxt``) that the values must fit, too: its features and their types, presence, numbers
        of values and shapes, the domains of integers, floats, text and booleans, NaN and infinities. What does not is
        an anomaly with the name that TensorFlow Data Validation gives it. The files are read twice more. Environments,
        unique values, skew and drift are not looked at.
    storage_options, progress
        As in `read_tfrecord`.

    Returns
    -------
    VerifyReport
        ``ok``, ``records``, ``bytes``, ``intact``, and a `FileCheck` per file with its problems.

    Raises
    ------
    FileNotFoundError
        Nothing matches `source`, or a shard is missing.
    OSError
        None of the files can be read. If some can, the others have the status "unreadable", also paths of a list that
        match nothing.
    FeatureNotFoundError
        With `images`: no file has a column of images.
    MissingDependencyError
        With `images`: the package pillow is not installed.
    """
    check_choice("images", images, (False, True, "full"))
    record_types = {dataset.stated.record_type for dataset in CallSource(source).datasets}
    record_type: Any = record_types.pop() if len(record_types) == 1 else None
    if record_type not in (*RecordType.by_option(), "bytes"):
        names = ", ".join(map(repr, RecordType.by_option()))
        raise ValueError(f"record_type={record_type!r}: expected one of {names}, 'bytes'")
    options = options_from_call(_Options, verify, source, storage_options=storage_options, progress=progress)
    return check_files(source, options, record_type=record_type, images=images, schema=schema)


class _Options(FrameOptions):
    """Keywords of `verify`."""

    _takes = staticmethod(OnDamage.reports_all)


def check_files(
    source: Any,
    options: FrameOptions,
    *,
    record_type: RecordTypeName | None = None,
    images: bool | Literal["full"] = False,
    schema: Path | bytes | None = None,
) -> VerifyReport:
    """Check every record of the files of paths or datasets; see `verify`."""
    if images and record_type == "bytes":
        raise ValueError("images= looks into records, which record_type='bytes' does not")
    report = _check_paths(CallSource(source).whole_files("verify"), record_type, options, images=images)
    if schema is None:
        return report
    find = Point.load_own("tfrecord_io.schemas", "tfx_validation").find_anomalies
    reading = {name: value for name, value in options.changes.items() if name not in ("on_error", "progress")}
    return replace(report, anomalies=find(source, schema, record_type=record_type, **reading))


def _check_paths(
    paths: Any, record_type: RecordTypeName | None, options: FrameOptions, *, images: bool | Literal["full"]
) -> VerifyReport:
    """Check the files of paths. If a dataset was replaced meanwhile, check its new files, too."""
    earlier_results: _Checked = {}
    try:
        report = _check_files(paths, record_type, options=options, earlier_results=earlier_results, images=images)
    except ReplacedError:
        pass
    else:
        if not any(_was_replaced(file) for file in report.files):
            return report
    return _check_files(
        paths, record_type, options=replace(options, progress=False), earlier_results=earlier_results, images=images
    )


def _check_files(
    paths: Any,
    record_type: RecordTypeName | None,
    options: FrameOptions,
    earlier_results: _Checked,
    images: bool | Literal["full"],
) -> VerifyReport:
    """Check the files present now, except those with earlier results, and add the new results."""
    unnamed: dict[str, str] = {}
    faults: list[CorruptRecordError] = []
    sources_and_results = _resolve_files(paths, options, unnamed=unnamed, manifest_faults=faults)
    sources = [item for item in sources_and_results if isinstance(item, Source)]
    if images:
        refuse_files_read_once(sources)
    indexes = Files(Sources.of(sources), options).find_all_indexes()
    to_check = (source.size for source in sources if _content(source) not in earlier_results)
    with ProgressMeter(options.progress, Source.total(to_check), "bytes") as bar:
        stopped = Flag()
        threads = max(1, options.thread_count // len(sources_and_results))
        make = partial(
            FileChecker,
            record_type=record_type,
            options=replace(options, threads=threads),
            progress=bar,
            stopped=stopped,
        )
        checkers = [make(source=source, indexes=found) for source, found in zip(sources, indexes, strict=True)]
        calls = (partial(_check, checker, earlier_results.get(_content(checker.source))) for checker in checkers)
        at_once = min(_concurrent_files(sources, options), len(checkers))
        results = list(ordered(calls, at_once, "verify", stopped.set))
    checkers, files = [checker for checker, _ in results], [file for _, file in results]
    earlier_results |= {
        _content(checker.source): (checker, file) for checker, file in results if not _was_replaced(file)
    }
    files = _compare_shards(checkers, files)
    if images:
        files = check_images(sources, files, record_type, options, full=images == "full")
    checked = iter(files)
    files = [next(checked) if isinstance(item, Source) else item for item in sources_and_results]
    if all(file.status == "unreadable" for file in files):
        assert files[0].error is not None
        raise files[0].error
    distinct_faults = {(fault.path, str(fault)): fault for fault in faults}.values()
    faults = [*(_unnamed_error(path, manifest) for path, manifest in sorted(unnamed.items())), *distinct_faults]
    return VerifyReport((*files, *(_failed_check(fault.path, "manifest", fault) for fault in faults)))


def _unnamed_error(path: str, manifest: str) -> CorruptRecordError:
    """Make the error of a file in a dataset whose manifest does not name it: no reader of the dataset reads it."""
    reason = f"the manifest of its dataset, '{manifest}', does not name it"
    advice = "move it elsewhere, so that it is not taken for a part of the dataset"
    return CorruptRecordError(reason, path=path, hint=advice)


def _resolve_files(paths: Any, options: FrameOptions, **collected: Any) -> list[Source | FileCheck]:
    """Find the files of a source; in a list, a missing path becomes a result with the error."""
    try:
        return [*CallSource(paths).files(options, check_sizes=False, **collected)]
    except OSError:
        if not isinstance(paths, list) or not paths:
            raise
    files: list[Source | FileCheck] = []
    for path in paths:
        try:
            files += CallSource([path]).files(options, check_sizes=False, **collected)
        except OSError as error:
            if not isinstance(path, str | os.PathLike):
                raise
            files.append(_failed_check(hide_secrets(os.fspath(path)), "storage", error))
    first = files[0]
    if isinstance(first, FileCheck) and first.error is not None and not any(isinstance(item, Source) for item in files):
        raise first.error
    return files


def _concurrent_files(sources: Sequence[Source], options: FrameOptions) -> int:
    """Number of files to check at a time: of remote files, with their long waits, as many as memory allows."""
    if options.threads is not None or any(source.remote is None for source in sources):
        return options.thread_count
    largest = max(source.size or 0 for source in sources)
    record_bytes = (
        2 * min(largest, LIMITS.pending_range_bytes) + BlockReader.BLOCK_BYTES
    )  # for a record larger than a block
    return max(options.thread_count, min(_WAITING, _MEMORY // record_bytes))


_Content = tuple[str, int | None, int | None]
_Checked = dict[_Content, tuple[FileChecker, FileCheck]]


def _content(source: Source) -> _Content:
    """Identity of the content of a file, as far as a dataset states it."""
    return source.path, source.size, None if source.shard is None else source.shard.crc32c


def _was_replaced(file: FileCheck) -> bool:
    return any(isinstance(problem.error, ReplacedError) for problem in file.problems)


def _check(checker: FileChecker, earlier: tuple[FileChecker, FileCheck] | None) -> tuple[FileChecker, FileCheck]:
    if earlier is not None:
        return earlier
    try:
        return checker, checker.check()
    except OSError as error:
        if isinstance(error, TFRecordError):
            raise
        return checker, _failed_check(checker.source.path, "storage", error, checker.source.size)


def _failed_check(path: str | None, part: str, error: OSError | TFRecordError, size: int | None = None) -> FileCheck:
    """Make the result for a file none of whose records could be checked."""
    assert path is not None
    return FileCheck(path, 0, 0, "bytes", size=size).with_problem(Problem(part, error))


def _compare_shards(checkers: Sequence[FileChecker], files: Sequence[FileCheck]) -> list[FileCheck]:
    """Add the contradictions between shards of a dataset: in embedded schemas, and in types of features."""
    schemas: dict[tuple[str, str], EmbeddedSchema] = {}
    kinds: dict[tuple[str, str], dict[tuple[str, bool], tuple[Kind, str]]] = {}
    compared = []
    for checker, file in zip(checkers, files, strict=True):
        dataset = ShardName.dataset_of(file.path)
        if dataset is not None:
            try:
                _join_schema(schemas, dataset, checker.contents, file.path)
                _join_kinds(kinds.setdefault(dataset, {}), checker.contents, file.path)
            except SchemaError as error:
                file = file.with_problem(Problem("schema", error))
            except FeatureTypeError as error:
                file = file.with_problem(Problem("records", error))
        compared.append(file)
    return compared


def _join_schema(
    schemas: dict[tuple[str, str], EmbeddedSchema], dataset: tuple[str, str], contents: FileContents, path: str
) -> None:
    if contents.schema is None:
        return
    schema = EmbeddedSchema(contents.schema.schema, contents.schema.dictionaries, path)
    earlier_schema = schemas.get(dataset)
    schemas[dataset] = united = schema if earlier_schema is None else earlier_schema.merge(schema)
    for column in united.conflicts.keys() - (earlier_schema.conflicts.keys() if earlier_schema is not None else ()):
        raise united.conflicts[column]


def _join_kinds(kinds: dict[tuple[str, bool], tuple[Kind, str]], contents: FileContents, path: str) -> None:
    for (name, steps), kind in contents.kinds.items():
        expected, first = kinds.setdefault((name, steps), (kind, path))
        if kind != expected:
            reason = f"expected {expected.description} as in {printable(first)}, got {kind.description}"
            raise FeatureTypeError(reason, path=path, feature=name, expected=expected.name, got=kind.name)
