"""A dataset that is browsed: rows by address, and work beside that finds rows, keys and the values of columns."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import time
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from threading import Lock, Thread
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.apps.views import FeatureAccumulator, FeatureStatistics, LargeValue, Row, value_of
from tfrecord_io.errors import TFRecordError
from tfrecord_io.kit import Scan, byte_size

_JOBS = 8  # that are kept with what they found
_UNASKED_SECONDS = 20  # after which a job that nobody asks for ends
_SHOWN_SECONDS = 0.2  # after which a job shows more of its result
_SAMPLE_PLACES, _SAMPLE_RUN = 50, 40  # rows of a sample
_KEY_BYTES = 48 << 20  # of the values of a key column, with 8 for each address
_HEAD = 20_000  # bytes of a large value that are shown
_FIRST_FILES = 8  # in a bucket, whose schema is that of the first screen
_LOOKED_UP_SECONDS = 5  # after which files in a bucket are listed again


def release_memory() -> None:
    """Give memory that nothing uses back to the system: what Arrow keeps, and on Linux what the C library does."""
    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:  # of glibc
        trim(0)


class Job(Thread):
    """Work of which parts are shown before it ends; it ends early if no page asks for it any more."""

    def __init__(self) -> None:
        super().__init__(daemon=True, name="tfr-browse-job")
        self.progress, self.is_complete, self.error = 0.0, False, ""
        self.asked = time.monotonic()
        self._is_cancelled = False

    def cancel(self) -> None:
        """End soon."""
        self._is_cancelled = True

    @property
    def is_unwanted(self) -> bool:
        """True if it is to end."""
        return self._is_cancelled or time.monotonic() - self.asked > _UNASKED_SECONDS

    def run(self) -> None:
        try:
            with warnings.catch_warnings(action="ignore"):
                self.work()
        except (TFRecordError, OSError, ValueError, TypeError, pa.ArrowException) as error:
            self.error = str(error)
        self.is_complete = True
        release_memory()

    def work(self) -> None:
        """Do it; raise what is shown as its error."""
        raise NotImplementedError


class Search(Job):
    """The records that meet a condition: `found` has the addresses of those met so far, ascending."""

    def __init__(self, dataset: BrowsedDataset, where: str) -> None:
        super().__init__()
        self._matches = dataset.map.search(dataset.check(where))
        self.found: Any = ()
        self.unread: Any = ()  # records with lists that are too large to be looked at

    def work(self) -> None:
        for found, share in self._matches:
            self.found, self.unread, self.progress = found, found.unread, share
            if self.is_unwanted:
                return


class Keys(Job):
    """The address of each record by the value of a column."""

    def __init__(self, dataset: BrowsedDataset, key: str) -> None:
        super().__init__()
        self._rows = dataset.map.read([key])
        self._parts: list[tuple[pa.Array, Any]] = []  # keys, and the addresses of their records

    @property
    def is_unwanted(self) -> bool:
        return self._is_cancelled

    def work(self) -> None:
        left = _KEY_BYTES
        for addresses, batch, share in self._rows:
            self.progress = share
            copied = pa.concat_arrays([batch.column(0), batch.column(0)[:0]])  # decoded buffers have room for more
            self._parts.append((copied, addresses))
            left -= batch.nbytes + addresses.nbytes
            if left < 0:
                raise ValueError(f"keys of more than {byte_size(_KEY_BYTES)}: compare by row, or a part of the files")
            if self.is_unwanted:
                return

    def find(self, values: Sequence[Any]) -> dict[Any, int]:
        """The addresses of the records with these keys, as far as there are some."""
        by_key: dict[Any, int] = {}
        for keys, addresses in self._parts:
            rows = np.flatnonzero(pc.is_in(keys, value_set=pa.array(values, keys.type), skip_nulls=True))
            by_key |= zip(keys.take(pa.array(rows)).to_pylist(), addresses[rows].tolist(), strict=True)
        return by_key


class Summary(Job):
    """The values of a column, of all rows or of a sample: `statistics` of those so far, `words` say of which."""

    def __init__(self, dataset: BrowsedDataset, name: str, where: str, *, all_rows: bool) -> None:
        super().__init__()
        self._dataset, self._name, self._all, self._where = dataset, name, all_rows, dataset.check(where)
        self._accumulator = FeatureAccumulator(dataset.schema.field(name), "", "", np.random.default_rng(0))
        self._rows = self.large = 0  # rows so far, and those whose values are too large to be looked at
        self._shown = time.monotonic()
        self.statistics: FeatureStatistics | None = None
        self.words = ""

    def work(self) -> None:
        map_, most = self._dataset.map, _SAMPLE_PLACES * _SAMPLE_RUN
        is_whole = not self._where and not map_.is_filtered
        if not self._all and is_whole and map_.total > most:
            self._sample(map_.total)
        else:
            for addresses, batch, share in map_.read([self._name], self._where, takes_large=False):
                self.progress = share
                self._add(addresses, batch.column(0) if self._all else batch.column(0)[: most - self._rows])
                if self.is_unwanted or (not self._all and self._rows >= most):
                    break
            what = "rows" if is_whole else "rows that meet the condition"
            whole = self._all or self._rows < most
            self.words = f"all {self._rows:,} {what}" if whole else f"the first {self._rows:,} {what}"
        self.statistics = self._accumulator.result()

    def _sample(self, total: int) -> None:
        starts = np.linspace(0, total - _SAMPLE_RUN, _SAMPLE_PLACES).astype(int).tolist()
        for done, start in enumerate(starts):
            addresses = [self._dataset.map.address(number) for number in range(start, start + _SAMPLE_RUN)]
            for numbers, batch, _ in self._dataset.map.batches(addresses, [self._name], ()):
                self._add(np.array(numbers), batch.column(0))
            self.progress = (done + 1) / len(starts)
            if self.is_unwanted:
                return
        self.words = f"a sample of {self._rows:,} of {total:,} rows, from {len(starts)} places"

    def _add(self, addresses: Any, column: pa.Array) -> None:
        self._rows += len(column)
        nulls = np.flatnonzero(column.is_null()) if column.null_count else ()
        if large := [row for row in nulls if self._dataset.is_large(int(addresses[row]), self._name)]:
            self.large += len(large)
            column = column.take(pa.array(np.setdiff1d(np.arange(len(column)), large)))
        self._accumulator.add(column)
        if time.monotonic() - self._shown > _SHOWN_SECONDS:
            self.words = f"{self._rows:,} rows so far"
            self.statistics = self._accumulator.result()
            self._shown = time.monotonic()


class Problem(str):
    """The error of a record, shown instead of its values."""


class BrowsedDataset:
    """Rows of files under one schema, by address, as of `Scan.map_records`."""

    def __init__(self, source: Any, keywords: dict[str, Any]) -> None:
        self.source, self._keywords = source, keywords
        self.jobs: OrderedDict[tuple[Any, ...], Job] = OrderedDict()
        self._jobs_lock, self._reload_lock = Lock(), Lock()
        self.version, self._is_closed = 0, False  # of the files and columns, each of which is a page of its own
        self._open()

    def _open(self) -> None:
        problem = ""
        as_bytes = {"record_type": "bytes", "schema": None}  # for records of another kind
        for changes in ({}, {"on_error": "skip"}, as_bytes):
            self.problem = f"The records are shown as bytes: {problem}" if changes is as_bytes else ""
            try:
                self._show(self._plan(changes, _FIRST_FILES))
            except TFRecordError as error:
                if changes is as_bytes:
                    raise
                problem = problem or str(error)
                continue
            first = next(self.rows([self.map.address(0)], [])) if not len(self.schema) and self.map.find(1) else None
            if first is None or not isinstance(first[1], Problem):
                break
            problem = problem or first[1]
            self.map.close()
        self.map.begin()
        self._looked_up = time.monotonic()
        if self.map.is_remote and len(self.scan.files) > _FIRST_FILES:
            Thread(target=self._complete, args=(self.map, changes), daemon=True, name="tfr-browse-schema").start()

    def _plan(self, changes: dict[str, Any], first_files: int | None) -> Scan:
        with warnings.catch_warnings(action="ignore"):
            return Scan.of(self.source, first_files=first_files, **self._keywords, **changes)

    def _show(self, scan: Scan) -> None:
        self.scan, self.schema, self.map = scan, scan.schema, scan.map_records()
        self.labels = self.map.labels()
        release_memory()
        self.version += 1

    def _complete(self, shown: Any, changes: dict[str, Any]) -> None:
        """Find the schema of all files while that of the first ones is shown; show it if they differ."""
        shown.wait_until_read()
        try:
            scan, problem = self._plan(changes, None), self.problem
        except (TFRecordError, OSError) as error:
            scan, problem = self.scan, str(error)
        with self._reload_lock:
            is_same = scan.schema.equals(self.schema, check_metadata=True) and problem == self.problem
            if self.map is shown and not self._is_closed and not is_same:
                self._end()
                self._show(scan)
                self.problem = problem
                self.map.begin()

    def reload(self) -> None:
        """Reopen the files if any file was written, replaced, added or removed."""
        with self._reload_lock:
            if self.map.is_remote and time.monotonic() - self._looked_up < _LOOKED_UP_SECONDS:
                return
            self._looked_up = time.monotonic()
            try:
                now = self.scan.live().current()
                is_same = not self.map.is_stale and (now.files, now.bytes) == (self.scan.files, self.scan.bytes)
            except TFRecordError:  # another schema
                is_same = False
            if not is_same:
                self._end()
                self._open()

    def _end(self) -> None:
        for job in self.jobs.values():
            job.cancel()
        self.jobs.clear()
        self.map.close()

    def close(self) -> None:
        """End all work, and close the files."""
        self._is_closed = True
        self._end()

    def check(self, where: str) -> str:
        """A condition that applies to the columns; else its error is raised."""
        if where:
            self.scan.filter(where)
        return where

    def rows(self, addresses: Sequence[int], names: Sequence[str]) -> Iterator[tuple[int, Row | Problem]]:
        """The values of records, or what is wrong with them, with their addresses; in any order."""
        small = []
        for address in addresses:
            damage = self.map.damage(address)
            if damage is not None:
                yield address, self._problem(address, damage.reason)
            elif self.size(address) <= self.map.LARGE:
                small.append(address)
            else:
                yield address, self._large_row(address, names)
        yield from self._decode(small, names)

    def size(self, address: int) -> int:
        """The bytes of a record in its file."""
        begin, end = self.map.extent(address)
        return end - begin

    def is_large(self, address: int, name: str) -> bool:
        """True if the value of a column is not decoded, as it is large in a large record."""
        return self.size(address) > self.map.LARGE and name in self.map.stored(address).large

    def _large_row(self, address: int, names: Sequence[str]) -> Row | Problem:
        """The values of a large record; of its large features the first bytes."""
        try:
            large = self.map.stored(address).large
        except ValueError as error:
            return Problem(f"a record of {byte_size(self.size(address))}, which is not an Example: {error}")
        values = {name: f.value for name, f in large.items()}
        heads: Row = {name: LargeValue(value[:_HEAD].read(), len(value)) for name, value in values.items()}
        ((_, row),) = self._decode([address], [name for name in names if name not in heads])
        return row if isinstance(row, Problem) else {**row, **heads}

    def _decode(self, addresses: Sequence[int], names: Sequence[str]) -> Iterator[tuple[int, Row | Problem]]:
        for numbers, batch, wrong in self.map.batches(addresses, names):
            for at, address in enumerate(numbers):
                columns = zip(batch.columns, map(self.schema.field, names), strict=True)
                yield address, {field.name: value_of(column, at, field) for column, field in columns}
            for address, reason in wrong.items():
                yield address, self._problem(address, reason)

    def _problem(self, address: int, reason: str) -> Problem:
        begin, end = self.map.extent(address)
        return Problem(f"bytes {begin:,} to {end:,}: {reason}")

    def label(self, address: int) -> str:
        """The name of a record in a link."""
        file, record = self.map.place(address)
        return f"{self.labels[file]}:{record}"

    def find(self, text: str) -> int:
        """The address of a row number, or of ``file:record``; ValueError if there is none."""
        number = re.sub(r"[\s,._']", "", text)
        try:
            if number.isdecimal():
                return self.map.address(int(number))
            name, _, record = text.strip().rpartition(":")
            if name in self.labels:
                return self.map.address_in(self.labels.index(name), int(record))
            files = (os.path.basename(source.path) for source in self.map.sources)
            return self.map.address_in(next(at for at, file in enumerate(files) if file.startswith(name)), int(record))
        except (IndexError, StopIteration, ValueError) as error:
            wanted = f"expected a row below {self.map.total:,}, or file:record"
            raise ValueError(f"there is no row {text!r}: {wanted}") from error

    def _job(self, key: tuple[Any, ...], make: Callable[[], Job]) -> Any:
        with self._jobs_lock:
            job = self.jobs.get(key)
            if job is None or (job.is_unwanted and not job.is_complete):
                job = self.jobs[key] = make()
                job.start()
            job.asked = time.monotonic()
            self.jobs.move_to_end(key)
            while len(self.jobs) > _JOBS:
                self.jobs.popitem(last=False)[1].cancel()
            return job

    def search(self, where: str) -> Search:
        """The search for a condition, which runs. The error of a condition that does not apply is raised."""
        return cast(Search, self._job(("search", where), lambda: Search(self, where)))

    def forget_search(self, where: str) -> None:
        """End a search whose condition was changed."""
        job = self.jobs.get(("search", where))
        if job is not None and not job.is_complete:
            job.cancel()

    def summary(self, name: str, where: str, *, all_rows: bool) -> Summary:
        """The summary of a column, which is being made."""
        key = ("summary", name, where, all_rows)
        return cast(Summary, self._job(key, lambda: Summary(self, name, where, all_rows=all_rows)))

    def keys(self, name: str) -> Keys:
        """The addresses by the values of a column, which are being read."""
        return cast(Keys, self._job(("keys", name), lambda: Keys(self, name)))
