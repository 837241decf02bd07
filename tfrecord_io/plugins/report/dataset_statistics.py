"""Statistics of a dataset: of each feature, with samples, in one pass over a bounded part of the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.apps.views import FeatureAccumulator, FeatureStatistics, Gallery, Row, galleries
from tfrecord_io.base import hide_secrets
from tfrecord_io.columns import Column
from tfrecord_io.errors import SchemaError, TFRecordError
from tfrecord_io.kit import ProgressMeter, ReadOptions, TensorEncoding, empty_batch, short
from tfrecord_io.plugins.report.report_sample import Reservoir, SampleLimits, SampleReader, Sampling
from tfrecord_io.read import CallSource, Scan, ScanRows, check_files

SAMPLED_ROWS = 24  # records whose images, sounds and texts are shown
FIRST_ROWS = 10
SHOWN_FILES = 50
_SAMPLED_KINDS = 100  # records by which the feature type of a tensor is found
_FIRST_COLUMNS = 50
_FIRST_VALUES = 4  # of a tensor
_TEXTS = 5
_TEXT_LENGTH = 280
_BATCH_ROWS, _BATCH_BYTES = 8192, 8 << 20


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file: path, size if known, compression (None: not compressed), result of verifying."""

    path: str
    bytes: int | None
    compression: str | None
    status: str = ""


@dataclass(frozen=True, slots=True)
class DatasetStatistics:
    """Statistics of a dataset in a report.

    Attributes
    ----------
    files : tuple of FileEntry
        The first `SHOWN_FILES` of `file_count`.
    bytes : int or None
        The size of all files.
    schema_source : str
        As `tfrecord_io.Dataset` has it.
    sampling : Sampling
    checks : str
        What was checked, in a sentence.
    features : tuple of FeatureStatistics
        In the order of the schema; the fields of structs are features ``outer/inner``.
    texts : dict
        Samples of the values of text features, by name.
    galleries : tuple of Gallery
    first : tuple
        Names of columns, and rows of text, None for null: the first records.
    """

    files: tuple[FileEntry, ...]
    file_count: int
    bytes: int | None
    schema_source: str
    sampling: Sampling
    checks: str
    features: tuple[FeatureStatistics, ...]
    texts: dict[str, tuple[str, ...]]
    galleries: tuple[Gallery, ...]
    first: tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]

    def to_dict(self) -> dict[str, Any]:
        return {
            "files": [asdict(file) for file in self.files],
            "file_count": self.file_count,
            "bytes": self.bytes,
            "schema_source": self.schema_source,
            "sampling": asdict(self.sampling),
            "checks": self.checks,
            "features": [feature.to_dict() for feature in self.features],
            "galleries": [gallery.to_dict() for gallery in self.galleries],
        }


def dataset_statistics(
    path: Any, options: ReadOptions, limits: SampleLimits, *, check: bool = False
) -> DatasetStatistics:
    """The statistics of the records of files, which `check` verifies.

    Raises
    ------
    TypeError
        `path` is a file object or a pipe.
    TFRecordError, FileNotFoundError
        As `tfrecord_io.dataset`.
    """
    default, wanted = ReadOptions(), options.progress
    options = replace(options, progress=False)  # of the sample alone, not of each reading
    if (options.batch_size, options.batch_bytes) == (default.batch_size, default.batch_bytes):
        options = replace(options, batch_size=_BATCH_ROWS, batch_bytes=_BATCH_BYTES)
    found = CallSource(path).found_files(options)
    size, of_files = found.sources.bytes, found.options
    if of_files.sample == default.sample and size is not None and size <= limits.bytes:
        of_files = replace(of_files, sample="all")
    scan = found.with_options(of_files).plan()
    reader = SampleReader(scan, limits)
    random = np.random.default_rng(limits.seed)
    nullable = pa.schema([column.with_nullable(True) for column in scan.schema])
    fields = [column for column, _ in leaves(empty_batch(nullable))]
    accumulators = [FeatureAccumulator(column, *_kind_and_part(found, scan, column), random) for column in fields]
    rows = Reservoir(SAMPLED_ROWS, random)
    with ProgressMeter(wanted, reader.expected, "records") as progress:
        for batch in reader:
            for accumulator, (_, array) in zip(accumulators, leaves(batch), strict=True):
                accumulator.add(array)
            rows.add(batch)
            progress.advance(len(batch))
    sampled = [{column.name: Column(column).cell(array, 0) for column, array in leaves(row)} for row in rows.rows]
    features = tuple(accumulator.result() for accumulator in accumulators)
    shown = tuple(galleries(sampled, fields))
    hidden = {gallery.feature for gallery in shown}
    texts = {f.name: _texts(f, sampled) for f in features if f.name not in hidden}
    is_whole = reader.sampling.complete and not reader.sampling.skipped
    statuses, checks = _checks(path, scan, check, is_whole=is_whole)
    by_path = {source.path: source for source in scan.sources}
    files = tuple(
        FileEntry(hide_secrets(name), source.size, found.compression_of(source), statuses.get(name, ""))
        for name, source in [*by_path.items()][:SHOWN_FILES]
    )
    return DatasetStatistics(
        files=files,
        file_count=len(scan.files),
        bytes=scan.bytes,
        schema_source=scan.schema_source,
        sampling=reader.sampling,
        checks=checks,
        features=features,
        texts={name: values for name, values in texts.items() if values},
        galleries=shown,
        first=_first_rows(scan),
    )


def leaves(batch: pa.RecordBatch) -> Iterator[tuple[pa.Field, pa.Array]]:
    """The columns of a batch; the fields of a struct as columns ``outer/inner``, as the features are called."""
    pending = list(zip(batch.schema, batch.columns, strict=True))[::-1]
    while pending:
        column, array = pending.pop()
        if not pa.types.is_struct(column.type) or not column.type.num_fields:
            yield column, array
            continue
        parts = zip(column.type, Column.struct_fields(array), strict=True)
        pending += [(part.with_name(f"{column.name}/{part.name}"), values) for part, values in parts][::-1]


def _kind_and_part(found: Any, scan: Scan, column: pa.Field) -> tuple[str, str]:
    """The feature type and the part of a record; empty text for a column that is not a feature."""
    if not isinstance(scan.options.record_type, str | None):  # other messages
        return "", ""
    schema, top = scan.features, column.name
    while top not in schema and "/" in top:
        top = top.rpartition("/")[0]
    if top not in schema:
        return "", ""
    field = schema.field(top)
    if TensorEncoding.of(field.encoding).one_value_per_cell or field.encoding == Column.JSON:
        return "bytes_list", field.part
    if TensorEncoding.of(field.encoding).adaptive and (kind := _kind_in_records(found, scan, field.feature)):
        return kind, field.part
    try:
        return Column(Column(column.type).value_type).kind.list_name, field.part
    except (Column.UnsupportedType, SchemaError):
        return "", field.part


def _kind_in_records(found: Any, scan: Scan, feature: str) -> str:
    """The feature type of a feature in the first records; empty if unknown."""
    if feature.startswith("!"):  # it would exclude a feature
        return ""
    options = scan.options.changed(
        schema="infer", schema_overrides=None, include_file_paths=None, stable_types=True,
        sample=_SAMPLED_KINDS, on_error="raise", progress=False,
    )  # fmt: skip
    with suppress(TFRecordError):  # of several types, or damaged: the reading of all rows reports it
        files = found.with_sources(scan.sources).with_options(options).select([feature])
        features = files.plan_scan(only_sample=True).close().features
        if feature in features and not pa.types.is_null(type_ := Column(features.field(feature).type).value_type):
            return Column(type_).kind.list_name
    return ""


def _texts(feature: FeatureStatistics, rows: Sequence[Row]) -> tuple[str, ...]:
    """Some values of a text feature, worth reading as well as the most frequent values."""
    if feature.lengths is None or not Column(feature.value_type).is_text:
        return ()
    if feature.counts is not None and feature.counts.distinct <= len(feature.counts.top):
        return ()
    values: dict[str, None] = {}
    for row in rows:
        items = row.get(feature.name)
        for item in items.reshape(-1) if isinstance(items, np.ndarray) else [items]:
            if isinstance(item, str) and item:
                values[short(item, _TEXT_LENGTH)] = None
                break
    return tuple(values)[:_TEXTS]


def _first_rows(scan: Scan) -> tuple[tuple[str, ...], tuple[tuple[str | None, ...], ...]]:
    """The first records as text; of the first columns."""
    names = scan.schema.names[:_FIRST_COLUMNS]
    with ScanRows(scan.only(names).limit_rows(FIRST_ROWS)).open() as reader:
        table = reader.read_all()
    columns = []
    for column, field in zip(table.columns, table.schema, strict=True):
        if Column(field.type).is_tensor:
            values = [cell for chunk in column.chunks for cell in Column(field).cells(chunk)]
        else:
            values = Column(field).python_rows(column)
        columns.append([_cell(value) for value in values])
    return tuple(names), tuple(zip(*columns, strict=True))


def _cell(value: Any) -> str | None:
    """A value as text; of a tensor, the shape and the first values."""
    if isinstance(value, np.ndarray):
        more = ", …" if value.size > _FIRST_VALUES else ""
        values = ", ".join(map(short, value.reshape(-1)[:_FIRST_VALUES].tolist()))
        return f"{' × '.join(map(str, value.shape)) or 'scalar'}: {values}{more}"
    return None if value is None else short(value, 60)


def _checks(path: Any, scan: Scan, check: bool, *, is_whole: bool) -> tuple[dict[str, str], str]:
    """The status of each file that was verified, and a sentence about what was checked; `is_whole`: all was read."""
    options = scan.options
    if check:
        paths = CallSource(path).whole_files("verify", takes_selection=False)
        record_type: Any = options.record_type if isinstance(options.record_type, str | None) else "bytes"
        report = check_files(paths, options, record_type=record_type)
        problems = sum(file.problem_count for file in report.files)
        outcome = "no problems were found" if report.ok else f"{problems:,} problems were found: run tfr verify"
        return {file.path: file.status for file in report.files}, f"All records of all files were verified: {outcome}."
    if options.check_crc:
        of_records = "all records" if is_whole else "the records that were read"
        rest = "" if is_whole else "; the other records were not checked"
        return {}, f"The checksums of {of_records} are correct{rest}."
    return {}, "Checksums were not checked (check_crc=False)."
