"""Remove rows from a dataset.

Tests: tests/write/test_deleting.py.
"""

from __future__ import annotations

from typing import Any

from tfrecord_io.base import ScanOptions, check_keywords
from tfrecord_io.read import CallSource, options_from_call
from tfrecord_io.typing import UNSET, OpenedDataset, Path, ProgressLike, StorageLike, Unset
from tfrecord_io.write import DeleteReport, delete_rows


@check_keywords
def delete(
    source: Path | OpenedDataset,
    *,
    filters: Any,
    dry_run: bool = False,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> DeleteReport:
    """Remove the rows that meet a condition.

    Files with only such rows are dropped; if their folder names tell, they are not opened. Files with some such rows
    are rewritten: the other records are copied as bytes, and their checksums checked. Other files are left alone; a
    column index names them without reading the records.

    Replacing the manifest publishes all changes in one step: if the call is killed, the dataset is as before, or
    without the rows, and `tfr clean` finds leftover files. Rows appended meanwhile are kept, even if they meet the
    condition. The old files are removed at the end: open readers continue, or get a ReplacedError, but never see a
    mixture.

    >>> import tfrecord_io as tfr
    >>> visits = {"day": ["05-01", "05-01", "05-02"], "user": [7, 8, 7]}
    >>> _ = tfr.write_tfrecord(visits, "visits_to_forget/", partition_by="day")
    >>> report = tfr.delete("visits_to_forget/", filters=[("user", "==", 7)])
    >>> report.records, report.kept, report.folders
    (2, 1, ('day=05-02',))
    >>> tfr.read_table("visits_to_forget/").to_pylist()
    [{'user': 8, 'day': '05-01'}]

    Parameters
    ----------
    source : str, PathLike or Dataset
        A dataset with a manifest, one of its folders (``day=1/``) or some of its shards, and only these lose rows; or
        one file without a manifest, which is replaced in one step.
    filters : pyarrow.compute.Expression, str, list of tuples, or list of lists of tuples
        The rows to remove, as in `read_table`. Where the condition is null, as of a missing value, the row is kept, as
        by ``DELETE`` of SQL.
    dry_run : bool, default False
        Report the rows that would be removed, and change nothing.
    storage_options, progress
        As for `dataset`, which takes all other reading options.

    Returns
    -------
    DeleteReport

    Raises
    ------
    ValueError
        Several files without a manifest (see `adopt`), or files of several datasets.
    FeatureNotFoundError, SchemaError
        The condition names no column, or does not apply to its type.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file that has to be read is damaged; nothing is changed. `salvage` repairs it.
    OSError
        Another writer has replaced shards meanwhile, or is about to; nothing is changed.

    Notes
    -----
    A rewritten file gets new index files with the same columns. If no rows remain, the dataset keeps one shard without
    records, and so its columns.
    """
    options = options_from_call(ScanOptions, delete, source, storage_options=storage_options, progress=progress)
    path = CallSource(source).one_path("delete")
    return delete_rows(path, filters, options, dry_run=bool(dry_run))
