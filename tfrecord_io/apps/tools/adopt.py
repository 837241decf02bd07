"""Adopt files of other tools as a dataset.

Tests: tests/write/test_adopting.py.
"""

from __future__ import annotations

from tfrecord_io.base import ScanOptions, check_keywords
from tfrecord_io.read import CallSource, options_from_call
from tfrecord_io.typing import UNSET, OpenedDataset, Path, ProgressLike, StorageLike, Unset
from tfrecord_io.write import WriteReport, adopt_files


@check_keywords
def adopt(
    source: Path | OpenedDataset, *, storage_options: StorageLike | None = None, progress: ProgressLike | Unset = UNSET
) -> WriteReport:
    """Make files of another writer, such as spark-tfrecord, a dataset: write a manifest for them.

    The files are read for it, and stay as they are: their records are counted, and their checksums computed. Afterwards
    rows can be appended, ``mode="overwrite_partitions"``, `delete` and `compact` work, and readers see one version of
    the dataset. Reading gives the same rows as before.

    The schema of the dataset is the one that covers the embedded schemas of the files; if none has one, it is the one
    saved beside them (`Schema.save`), else it is inferred from all records. Folders such as ``day=2026-01-01/`` become
    its partition columns.

    >>> import os
    >>> import tfrecord_io as tfr
    >>> for day in (1, 2):
    ...     os.makedirs(f"from_spark/day={day}")
    ...     path = f"from_spark/day={day}/part-00000-5d3f0b3b-c000.tfrecord.gz"
    ...     _ = tfr.write_tfrecord({"user": [day, 7]}, path, embed_schema=False)
    >>> tfr.adopt("from_spark").records
    4
    >>> _ = tfr.write_tfrecord(
    ...     {"user": [9], "day": [3]}, "from_spark", mode="append", partition_by="day"
    ... )
    >>> tfr.delete("from_spark", filters=[("day", "==", 1)]).folders
    ('day=1',)
    >>> tfr.read_table("from_spark").to_pylist()
    [{'user': 2, 'day': 2}, {'user': 7, 'day': 2}, {'user': 9, 'day': 3}]

    Parameters
    ----------
    source : str, PathLike or Dataset
        A directory. The files are those that `read_table` reads of it: names such as ``_SUCCESS`` and ``_temporary/``
        are left out. Or ``train@*``, where a directory has shards of several names. Rows are appended to ``train@*``
        where the files have names such as ``train-00000-of-00008``, else to the directory.
    storage_options, progress
        As for `dataset`.

    Returns
    -------
    WriteReport
        Of the files, none of which was written.

    Raises
    ------
    FileExistsError
        A manifest names the files, or some of them, already.
    SchemaError
        Two files have types of a column that no type has in common, or folders of different columns.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; nothing is written. `salvage` repairs it.
    OSError
        Files were changed meanwhile; nothing is written.

    Notes
    -----
    Files that another tool adds later are not read, with a warning, until a manifest names them: delete the manifest
    and adopt the directory again, or append by this package. If some files have an embedded schema and others do not,
    the dataset has none, and each read decides as before.
    """
    options = options_from_call(ScanOptions, adopt, source, storage_options=storage_options, progress=progress)
    path = CallSource(source).one_path("adopt")
    return adopt_files(path, options)
