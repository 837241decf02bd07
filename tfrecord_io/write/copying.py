"""Copy files and datasets from any place to any other: the bytes unchanged, each record checked on the way.

Tests: tests/store/copies/test_copy_files.py, tests/store/copies/test_copy_files_all.py and
tests/store/copies/test_copy_files_stores.py.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from tfrecord_io.base import check_keywords
from tfrecord_io.read import CallSource, RowFilter, options_from_call
from tfrecord_io.store import CopyReport, FileCopyOptions
from tfrecord_io.typing import FileMode, FilesLike, Path, ProgressLike, StorageLike


@check_keywords
def copy(
    source: FilesLike,
    target: Path,
    *,
    verify: Literal["records", "bytes"] = "records",
    update: bool = False,
    mode: FileMode | None = None,
    all_files: bool = False,
    filters: Any = None,
    dry_run: bool = False,
    limit_rate: float | str | None = None,
    threads: int | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> CopyReport:
    """Copy files or whole datasets between disks and buckets, and check every record on the way.

    Files are copied unchanged, with their compression, embedded schemas and indexes. A dataset with a manifest arrives
    as exactly one version, even if the source changes meanwhile: the manifest is replaced in one step after all files
    are stored, so readers of the target see the old dataset or the new one. Files without a manifest appear one by one,
    each when it is complete. Within one store, the store copies the files.

    A copy that failed or was killed leaves its checked files under names that readers ignore: the same call continues
    there, and `tfr clean` removes them.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": range(100)}, "train@4")
    >>> print(tfr.copy("train@4", "backup/"))
    backup/: 4 files, 3.6 kB, 100 records
    >>> tfr.copy("train@4", "backup/", update=True).kept
    4

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        Files, globs, shards or directories, as in `read_table`; the directory of a dataset is copied with its manifest,
        its folders, the indexes of its files, and the files of TFDS (``features.json``, ``dataset_info.json``, names of
        classes).
    target : str or PathLike
        A directory or, for a single file, also the name of a file.
    verify : {"records", "bytes"}
        "records" checks the checksums of all records, also in compressed files; "bytes" checks only the files. Both
        compare each file with the size and the CRC32C in the manifest of its dataset, and let stores check what
        arrives. Files that a store copies itself are not read: the CRC32C that the store reports is compared with the
        manifest. If a store reports none, as Ceph and older releases of MinIO, the size is compared with the manifest
        and the MD5 with that of the source; files without an MD5, such as those stored in parts, are read.
    update : bool, default False
        Copy only files that are missing in the target or have another checksum, and remove those that the source no
        longer has. A dataset changes in one step.
    mode : {"error", "overwrite"}, optional
        "overwrite" copies all files, even those that the target has; an existing dataset is replaced in one step.
    all_files : bool, default False
        Also copy all other files below directories.
    filters : pyarrow.compute.Expression, str, list of tuples, or list of lists of tuples, optional
        A condition on the columns of partition folders, as in `read_table`: only matching folders are copied. With
        `update`, the other folders of the target are kept.
    dry_run : bool, default False
        Write nothing: report what would be copied and removed.
    limit_rate : int or str, optional
        Maximum bytes per second, such as ``"100MB"``.
    threads : int, optional
        Number of files that are copied at a time; by default up to 32 from or to a store, and the number of CPU cores
        on a disk, and fewer of large files, so that memory holds about 160 MiB of what is under way.
    storage_options, progress
        As for `write_tfrecord`; a source with others is a `dataset`.

    Returns
    -------
    CopyReport
        ``copied``, ``bytes``, ``records``, ``kept``, ``removed`` and ``retries``.

    Raises
    ------
    TFRecordError
        A file of the source is damaged, or is not what its manifest states: the error has the file, and the record and
        byte where they are known. Nothing of its dataset is published.
    FileExistsError
        The target has the dataset, or a file, and neither `update` nor ``mode="overwrite"`` is given.
    OSError
        A store refuses a request, or another writer has written the target meanwhile.
    """
    options = options_from_call(
        FileCopyOptions,
        copy,
        source,
        {"threads": None},  # those of a dataset are for reading it
        verify=verify,
        update=update,
        mode=mode,
        all_files=all_files,
        dry_run=dry_run,
        limit_rate=limit_rate,
        threads=threads,
        storage_options=storage_options,
        progress=progress,
    )
    source = CallSource(source).whole_files("copy")
    paths = list(source) if isinstance(source, list | tuple) else [source]
    choose = None if filters is None else partial(RowFilter.files_in_folders, filters)
    return options.copy_files(paths, target, choose)
