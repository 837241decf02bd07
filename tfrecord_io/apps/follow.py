"""Follow a dataset: the rows that appends add to it, each once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Self

from tfrecord_io.apps.lazy_dataset import Dataset, dataset
from tfrecord_io.kit import check_keywords
from tfrecord_io.typing import OpenedDataset, Path


class Follower(Iterator[Dataset]):
    """An iterator of the rows that appends add to a dataset; made by `tfrecord_io.follow`.

    Attributes
    ----------
    version : str or None
        The version of the dataset with all rows that were returned so far; None before the first of them, if all rows
        are to come. ``follow(path, since=version)`` goes on after them, in any process.
    """

    def __init__(self, opened: Dataset, since: str | None, until: str | None, every: float | None) -> None:
        self._dataset, self.version, self._until, self._every = opened, since, until, every

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Dataset:
        """The next rows, as a dataset; without any, wait for them, or end if the follower does not wait."""
        while self._until is None or self.version != self._until:
            added, self.version = self._dataset._held.added_since(self.version, self._until)
            if added is not None:
                return Dataset(added)
            if self._every is None or self._until is not None:
                break
            time.sleep(self._every)
        raise StopIteration

    def __repr__(self) -> str:
        return f"<Follower of {self._dataset!r} since {self.version}>"


@check_keywords
def follow(
    source: Path | OpenedDataset, since: str | None = None, *, until: str | None = None, every: float | None = 1.0
) -> Follower:
    """Follow a dataset: return the rows that appends add to it, each once, in the order of the appends.

    `tfrecord_io.Dataset.version` states the version of a dataset, and ``Follower.version`` the one that has all rows
    returned so far: kept with what was made of them, it lets the next run go on after them.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2]}, "events/", mode="append")
    >>> version = tfr.dataset("events/").version
    >>> _ = tfr.write_tfrecord({"x": [3]}, "events/", mode="append")
    >>> _ = tfr.compact("events/")
    >>> rows = tfr.follow("events/", since=version, every=None)
    >>> [added.to_table()["x"].to_pylist() for added in rows]
    [[3]]
    >>> rows.version == tfr.dataset("events/").version
    True

    Folders of partition columns, `compact`, and `delete`, which takes out rows of any age, do not disturb it. Rows that
    are written by ``mode="overwrite_partitions"`` to folders without rows count as appended.

    Parameters
    ----------
    source : str, PathLike or Dataset
        A dataset with a manifest, or a part of its files. A `Dataset` has its columns, filters and options; its `limit`
        and `offset` are a ValueError.
    since : str, optional
        The version whose rows are not returned; by default all rows are, at first.
    until : str, optional
        The version whose rows are the last ones, also if the dataset has a later version: the same two versions have
        the same rows, except those that were deleted since. The iterator does not wait.
    every : float, optional
        Seconds from one look at the manifest to the next one while there are no new rows. None: the iterator ends then.

    Returns
    -------
    Follower
        An iterator of `Dataset`: of each look, the rows that were added since the one before. Their files are read when
        the dataset is: if `compact` or `delete` has replaced them by then, this raises `ReplacedError`, and ``follow``
        since the version before has the same rows in the new files.

    Raises
    ------
    ReplacedError
        By the iterator: rows were replaced since, by ``mode="overwrite"`` or "overwrite_partitions"; or the version is
        too old: the last 3,000 appends, or about so many pieces of them in joined shards, are distinguished. Read the
        dataset again, and follow its version.
    ValueError
        The files have no manifest, or `since` or `until` is not a version of the dataset, or `until` the older one.
    """
    if every is not None and not every >= 0:
        raise ValueError(f"every={every!r}: expected seconds, or None to end where there are no new rows")
    opened = source if isinstance(source, Dataset) else dataset(source)
    opened._held.check_followed(since)
    opened._held.check_followed(until, "until")
    return Follower(opened, since, until, every)
