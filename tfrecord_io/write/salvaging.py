"""Salvage: write the intact records of damaged files to new files."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import pyarrow as pa

from tfrecord_io.base import (
    ProgressMeter,
    Remark,
    Report,
    StorageOptions,
    Summary,
    byte_size,
    check_keywords,
    counted,
    printable,
)
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read import CallSource, SkippedRegion, SkippedRegions, options_from_call
from tfrecord_io.store import Output, Sources, open_output, resolve_inputs
from tfrecord_io.typing import UNSET, FileMode, InputPath, ProgressLike, StorageLike, Unset
from tfrecord_io.write.salvage_writer import SalvagedFile, SalvageOptions, SalvageWriter, missing_shards, plan_targets


@dataclass(frozen=True, slots=True, repr=False)
class SalvageReport(Report):
    """The result of `salvage`: records kept and regions lost; printed as a table, and a line for each region.

    Attributes
    ----------
    files : tuple of SalvagedFile
        In the order of reading.
    missing : tuple of str
        Paths of the shards of these datasets that do not exist.
    manifests : tuple of str
        What was wrong with the manifests of these datasets, so that they were not used.
    dry_run : bool
        Whether nothing was written.
    """

    HEADINGS: ClassVar = ("file", "records", "bytes", "bytes lost", "regions", "schema")

    files: tuple[SalvagedFile, ...]
    missing: tuple[str, ...] = ()
    manifests: tuple[str, ...] = ()
    dry_run: bool = False

    @property
    def ok(self) -> bool:
        """True if nothing was lost."""
        return not self.missing and not self.manifests and all(not file.region_count for file in self.files)

    @property
    def records(self) -> int:
        """Number of records kept."""
        return sum(file.records for file in self.files)

    @property
    def bytes_lost(self) -> int:
        """Uncompressed bytes that were left out, as far as they are known."""
        return sum(file.bytes_lost for file in self.files)

    @property
    def regions(self) -> list[SkippedRegion]:
        """Regions left out, of all files."""
        return [region for file in self.files for region in file.regions]

    def skipped_table(self) -> pa.Table:
        """The `regions` as a table, with the columns of `ReadReport.skipped_table`.

        Of each file there are at most 1,000; of a dataset with ``on_error="collect"``, all.
        """
        return SkippedRegions.table(self.regions)

    def to_dict(self) -> dict[str, Any]:
        names = ("ok", "dry_run", "records", "bytes_lost", "missing", "manifests")
        values = {name: getattr(self, name) for name in names}
        return {
            **values,
            "missing": list(self.missing),
            "manifests": list(self.manifests),
            "files": [file.to_dict() for file in self.files],
        }

    def rows(self) -> list[tuple[str, ...]]:
        """A row for each file, for the columns `HEADINGS`."""
        return [
            (
                printable(file.path, None),
                f"{file.records:,}",
                f"{file.bytes:,}",
                f"{file.bytes_lost:,}",
                f"{file.region_count:,}",
                file.schema or "",
            )
            for file in self.files
        ]

    def title(self) -> str:
        """The sums."""
        state = "would be kept" if self.dry_run else "kept"
        lost = "nothing lost" if self.ok else f"{byte_size(self.bytes_lost)} lost"
        return f"{counted(len(self.files), 'file')}: {counted(self.records, 'record')} {state}, {lost}"

    def loss_lines(self) -> list[str]:
        """A line for each region, missing file and manifest that could not be used."""
        lines = []
        for file in self.files:
            for region in file.regions:
                where = f"record {region.records_before} at byte {region.begin}"
                size = "" if not region.bytes else f" ({byte_size(region.bytes)} left out)"
                lines.append(f"{printable(region.path)}: {where}: {printable(region.reason, 600)}{size}")
            if file.region_count > len(file.regions):
                more = file.region_count - len(file.regions)
                lines.append(f"{printable(file.path)}: {counted(more, 'more region')}")
        lines += [f"{printable(path)}: the file is missing" for path in self.missing]
        return [*lines, *(printable(text, None) for text in self.manifests)]

    def _summary(self) -> Summary:
        return Summary(self.title(), self.HEADINGS, self.rows(), self.loss_lines(), paths=("file",))


@check_keywords
def salvage(
    source: InputPath,
    target: str | os.PathLike[str],
    *,
    check_crc: bool | Unset = UNSET,
    dry_run: bool = False,
    report: str | os.PathLike[str] | None = None,
    mode: FileMode | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> SalvageReport:
    """Write the intact records of damaged files to new files, and report what was lost.

    Payloads are copied byte for byte, in their order; what they contain is not checked. Reading continues after damage
    where the next record is certain; records of a TFRecord file inside a damaged payload are never taken for those of
    the file. Of a damaged gzip or zlib file the records before the damage are kept, those of the members after it, and
    those of the blocks after it where the compressor made blocks that can be read by themselves, as that of this
    package does (of 1 MiB each); of a zstd or LZ4 file, those of the frames after it.

    If the first record of a file is lost, and with it the embedded schema, the schema of the dataset's manifest or
    of another shard is put in front again.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "damaged.tfrecord")
    >>> with open("damaged.tfrecord", "r+b") as file:
    ...     _ = file.seek(-1, 2)
    ...     _ = file.write(b"?")
    >>> report = tfr.salvage("damaged.tfrecord", "salvaged.tfrecord")
    >>> report.records, report.files[0].regions[0].records_before
    (2, 2)
    >>> tfr.read_table("salvaged.tfrecord")["x"].to_pylist()
    [1, 2]

    Parameters
    ----------
    source : str, os.PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; of a dataset, nothing is selected. Missing shards, and manifests that are damaged or do
        not match, are reported. What a file decompresses to beyond the ratio of a dataset's ``limits=`` is left out.
    target : str or os.PathLike
        A file for one file, compressed by its suffix. For several files, or folders of columns (``day=1/``), a
        directory: each keeps its name and its compression, and the shards of a dataset get a new manifest. Files appear
        atomically, shards together. Those in folders of columns are in the same folders, under new names, in one
        compression.
    check_crc : bool, default True
        False keeps records whatever their checksums are, as some writers store none, and writes them with valid ones.
        Only their lengths say where the next record begins.
    dry_run : bool, default False
        Write nothing but the `report`.
    report : str or os.PathLike, optional
        File for the report as JSON.
    mode : {"error", "overwrite"}, optional
        What happens to existing output. By default a file is replaced, and a sharded dataset is an error.
    storage_options, progress
        As for `dataset`; a source with another storage is ``dataset(path, storage_options=…)``.

    Returns
    -------
    SalvageReport
        ``ok`` if nothing was lost, ``records``, ``bytes_lost``, ``regions``, ``missing``, and a `SalvagedFile` for each
        file.

    Raises
    ------
    FileNotFoundError
        Nothing matches `source`.
    ValueError
        `target` is a file that is read, or `report` one that is read or written.
    FileExistsError
        `target` exists; see `mode`.
    CorruptRecordError
        A file is of another format, such as PNG. Nothing is written.
    """
    options = options_from_call(
        SalvageOptions,
        salvage,
        source,
        check_crc=check_crc,
        mode=mode,
        storage_options=storage_options,
        progress=progress,
    )
    src, dst = CallSource(source).whole_files("salvage"), target
    found = _find_files(src, options.source)
    Output.check_outside(src, options.source, target=dst, storage=options.target, sources=found.sources)
    targets = plan_targets(found.sources, dst, options.target, report)
    with ProgressMeter(options.progress, found.sources.bytes, "bytes") as bar:
        files = SalvageWriter(targets, options, dry_run, bar).run()
    result = SalvageReport(tuple(files), found.missing, found.manifests, dry_run)
    if report is not None:
        try:
            with open_output(report, options.target) as output:
                output.write((json.dumps(result.to_dict(), indent=2) + "\n").encode())
        except Exception as error:
            if not dry_run:
                Remark(f"the records are published in '{printable(os.fspath(dst))}'").add_to(error)
            raise
    return result


class _FoundFiles(NamedTuple):
    """The files of damaged datasets, and what is wrong with these."""

    sources: Sources
    missing: tuple[str, ...]  # paths of shards that do not exist
    manifests: tuple[str, ...]  # what is wrong with manifests, so that they are not used


def _find_files(path: Any, storage: StorageOptions) -> _FoundFiles:
    """Find the files that exist; FileNotFoundError if there is none."""
    faults: list[CorruptRecordError] = []
    missing: list[str] = []
    sources = resolve_inputs(
        path, storage, allow_missing_shards=True, check_sizes=False, manifest_faults=faults, missing=missing
    )
    if (empty := next((source for source in sources if source.has_no_file), None)) is not None:
        raise FileNotFoundError(errno.ENOENT, "the dataset has no rows: its manifest names no file", empty.path)
    missing += missing_shards(sources, path)
    links = (file.path for file in sources if file.is_dangling)
    nowhere = dict.fromkeys(links)
    if len(nowhere) < len(sources):  # else opening one is an error
        missing += nowhere
        sources = Sources(file for file in sources if file.path not in nowhere)
    return _FoundFiles(sources, tuple(missing), tuple(dict.fromkeys(map(str, faults))))
