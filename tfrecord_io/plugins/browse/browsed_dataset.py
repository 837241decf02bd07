"""A dataset that is browsed: its rows by address, searches, summaries of columns, and rows of another one beside."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.plugins.browse.core_names import (
    Array,
    ArrayBuffers,
    CallSource,
    Column,
    Damage,
    NumberAccumulator,
    RandomAccess,
    Reader,
    ReadOptions,
    RecordMap,
    Recovery,
    Registry,
    Row,
    Scan,
    ScanRows,
    ShardName,
    TFRecordError,
    byte_size,
)

LARGE = 32 << 20  # bytes of a record that is decoded on its own page only
_SELECTIONS = 16  # of columns, whose decoders are kept
_JOBS = 16
_UNASKED_SECONDS = 20  # after which a job that nobody asks for ends
_SAMPLE_PLACES, _SAMPLE_RUN = 50, 40  # rows of a sample
_KEPT_VALUES = 20_000  # distinct values that are counted
_MOST_KEYS = 5_000_000


class Job(Thread):
    """Work of which parts are shown before it ends; it ends early if nobody asks for it any more."""

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

    def work(self) -> None:
        """Do it; raise what is shown as its error."""
        raise NotImplementedError

    def restart(self) -> None:
        """Forget what was found: all is read again."""

    def batches(self, scan: Scan) -> Iterator[tuple[Reader, pa.RecordBatch]]:
        """The batches of a scan, with its reader; those behind damage, too."""
        for on_error in ("raise", "skip"):  # column indexes are searched by the first alone
            self.restart()
            try:
                with ScanRows(scan.with_options(on_error=on_error)).open() as reader:
                    for batch in reader:
                        yield reader, batch
                        self.progress = min(1.0, reader.report.bytes / max(1, scan.bytes or reader.report.bytes))
                        if self.is_unwanted:
                            return
                return
            except TFRecordError:
                if on_error == "skip":
                    raise


class Search(Job):
    """The records that meet a condition: `found` has the addresses of those met so far, ascending."""

    def __init__(self, dataset: BrowsedDataset, where: str) -> None:
        super().__init__()
        self._dataset = dataset
        self._scan = dataset.scan.filter(where) if where else dataset.scan
        self.found: Array = np.empty(0, np.int64)

    def work(self) -> None:
        shown, cost, reader = time.monotonic(), 0.0, None
        for reader, _ in self.batches(self._scan.drop_columns()):
            begin = time.monotonic()
            if begin - shown > max(0.2, 10 * cost):
                self.found = self._dataset.addresses_of(reader)
                shown = time.monotonic()
                cost = shown - begin
        if reader is not None:
            self.found = self._dataset.addresses_of(reader)


class Keys(Job):
    """The address of each record by the value of a column."""

    def __init__(self, dataset: BrowsedDataset, key: str) -> None:
        super().__init__()
        self._dataset, self._key = dataset, key
        self.addresses: dict[Any, int] = {}
        self._values: list[Any] = []

    @property
    def is_unwanted(self) -> bool:
        return False

    def restart(self) -> None:
        self._values = []

    def work(self) -> None:
        reader: Reader | None = None
        for current, batch in self.batches(self._dataset.scan.only([self._key])):
            reader = current
            self._values += batch.column(0).to_pylist()
            if len(self._values) > _MOST_KEYS:
                raise ValueError(f"more than {_MOST_KEYS:,} keys: compare by row, or a part of the files")
        if reader is not None:
            addresses = self._dataset.addresses_of(reader).tolist()
            self.addresses = dict(zip(self._values, addresses, strict=True))


class Summary(Job):
    """The values of a column: counts, the most frequent ones, numbers for a histogram."""

    def __init__(self, dataset: BrowsedDataset, name: str, where: str, *, all_rows: bool) -> None:
        super().__init__()
        self._dataset, self.name, self._all = dataset, name, all_rows
        scan = dataset.scan.filter(where) if where else dataset.scan
        self._scan = scan.only([name])
        self._where, self.words = where, ""
        self.restart()

    def restart(self) -> None:
        self.rows = self.nulls = 0
        self.values: Counter[Any] = Counter()
        self.numbers = NumberAccumulator(np.random.default_rng(0))
        self.has_numbers = self.has_more = False

    def work(self) -> None:
        total = self._dataset.map.total
        is_whole = not self._where and not self._dataset.is_filtered
        if not self._all and is_whole and total > _SAMPLE_PLACES * _SAMPLE_RUN:
            self._sample(total)
            return
        limit = None if self._all else _SAMPLE_PLACES * _SAMPLE_RUN
        for _, batch in self.batches(self._scan if limit is None else self._scan.limit_rows(limit)):
            self._add(batch.column(0))
        what = "rows" if is_whole else "rows that meet the condition"
        whole = limit is None or self.rows < limit
        self.words = f"all {self.rows:,} {what}" if whole else f"the first {self.rows:,} {what}"

    def _sample(self, total: int) -> None:
        starts = np.linspace(0, total - _SAMPLE_RUN, _SAMPLE_PLACES).astype(int).tolist()
        for done, start in enumerate(starts):
            addresses = [self._dataset.map.address(number) for number in range(start, start + _SAMPLE_RUN)]
            for _, batch, _ in self._dataset.batches(addresses, [self.name]):
                self._add(batch.column(0))
            self.progress = (done + 1) / len(starts)
            if self.is_unwanted:
                return
        self.words = f"a sample of {self.rows:,} of {total:,} rows, from {len(starts)} places"

    def _add(self, column: Any) -> None:
        self.rows, self.nulls = self.rows + len(column), self.nulls + column.null_count
        column = column.drop_null()
        while pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            column = column.flatten()
        if isinstance(column.type, pa.BaseExtensionType):
            column = column.storage
        if pa.types.is_fixed_size_list(column.type):
            column = column.flatten()
        if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            self.has_numbers = True
            self.numbers.add(column.to_numpy(zero_copy_only=False))
        with suppress(pa.ArrowNotImplementedError):
            counted = pc.value_counts(column)
            values = Counter(self.values)  # another one, as the page shows these meanwhile
            values.update(dict(zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True)))
            if len(values) > _KEPT_VALUES:
                self.has_more = True
                values = Counter(dict(values.most_common(_KEPT_VALUES // 2)))
            self.values = values


class BrowsedDataset:
    """Rows of files under one schema, by address; see `RecordMap`.

    `command` and `python` are how the same rows are read elsewhere.
    """

    def __init__(self, source: Any, options: ReadOptions) -> None:
        self.source, self._options = source, options
        self.jobs: OrderedDict[tuple[Any, ...], Job] = OrderedDict()
        self._jobs_lock = Lock()
        self._open()

    def _open(self) -> None:
        problem = ""
        as_bytes = {"record_type": "bytes", "schema": None}  # for records of another kind
        for changes in ({}, {"on_error": "skip"}, as_bytes):
            self.problem = f"The records are shown as bytes: {problem}" if changes is as_bytes else ""
            try:
                self._plan(self._options.changed(**changes))
            except TFRecordError as error:
                if changes is as_bytes:
                    raise
                problem = problem or str(error)
                continue
            first = next(self.rows([self.map.address(0)], [])) if not self.names and self.map.find(1) else None
            if first is None or not isinstance(first[1], Damage):
                break
            problem = problem or first[1].reason
            self.map.close()
        self.labels = _short_names([source.path for source in self.map.sources])
        self._by_label = {label: file for file, label in enumerate(self.labels)}
        self._files = {source.path: file for file, source in enumerate(self.map.sources)}
        self.map.begin()

    def _plan(self, options: ReadOptions) -> None:
        with warnings.catch_warnings(action="ignore"):
            self.scan: Scan = CallSource(self.source).dataset(options)
            self.schema = self.scan.schema
        if self.scan.selection.is_range:
            raise ValueError("browse shows all rows of files: pass the dataset without limit() and offset()")
        self.names: list[str] = list(self.schema.names)
        self._accesses: OrderedDict[tuple[str, ...], RandomAccess] = OrderedDict()
        self.map = RecordMap(self.scan.sources, self.scan.options)

    def reload(self) -> None:
        """Reopen the files if any file was written, replaced, added or removed."""
        if self.map.is_stale or self._list_files() != [(s.path, s.size) for s in self.scan.sources]:
            self.close()
            self._open()

    def _list_files(self) -> list[tuple[str, int | None]]:
        with warnings.catch_warnings(action="ignore"):
            return [(source.path, source.size) for source in CallSource(self.source).dataset(self._options).sources]

    def close(self) -> None:
        """End all work, and close the files."""
        for job in self.jobs.values():
            job.cancel()
        self.jobs.clear()
        self.map.close()

    # Rows ---------------------------------------------------------------------------------------------------------

    def _access(self, names: Sequence[str]) -> RandomAccess:
        key = tuple(names)
        access = self._accesses.get(key)
        if access is None:
            scan = self.scan.only(names).without_filter()
            access = ScanRows(scan).random_access(cast(Any, self.map), Recovery.of("skip", self.map.sources))
            self._accesses[key] = access
            if len(self._accesses) > _SELECTIONS:
                self._accesses.popitem(last=False)
        return access

    def batches(
        self, addresses: Sequence[int], names: Sequence[str]
    ) -> Iterator[tuple[list[int], pa.RecordBatch, dict[int, str]]]:
        """Batches of records with their addresses; and what is wrong with others, by address."""
        access, wanted = self._access(names), np.array(addresses, np.int64)
        left: dict[int, None] = dict.fromkeys(addresses)
        try:
            for numbers, batch in access.batches(wanted, leaves_out=True):
                yield numbers.tolist(), batch, {}
                for address in numbers.tolist():
                    left.pop(address, None)
        except TFRecordError as error:
            if len(addresses) == 1:
                yield [], self._no_rows(names), {addresses[0]: error.detail}
                return
        for address in left:
            try:
                for numbers, batch in access.batches(np.array([address])):
                    yield numbers.tolist(), batch, {}
            except TFRecordError as error:
                yield [], self._no_rows(names), {address: error.detail}

    def _no_rows(self, names: Sequence[str]) -> pa.RecordBatch:
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)

    def rows(
        self, addresses: Sequence[int], names: Sequence[str], *, most: int = LARGE
    ) -> Iterator[tuple[int, Row | Damage]]:
        """The values of records, or what is wrong with them, with their addresses; in any order."""
        plain = []
        for address in addresses:
            damage = self.map.damage(address)
            if damage is not None:
                yield address, damage
                continue
            begin, end = self.map.extent(address)
            if end - begin > most:
                size = byte_size(end - begin)
                yield address, Damage(begin, end, f"a record of {size}, which is shown on its own page")
            else:
                plain.append(address)
        if not plain:
            return
        for numbers, batch, wrong in self.batches(plain, names):
            for at, address in enumerate(numbers):
                fields = map(self.schema.field, names)
                values = [_value(column, at, field) for column, field in zip(batch.columns, fields, strict=True)]
                yield address, dict(zip(names, values, strict=True))
            for address, reason in wrong.items():
                yield address, Damage(*self.map.extent(address), reason)

    def addresses_of(self, reader: Reader) -> Array:
        """The addresses of the rows that a reader has read."""
        picked = [file for file in reader.scan.picked or () if file.source is not None]
        sources, parts = reader.scan.sources, [np.empty(0, np.int64)]
        for file, records in reader.origins.numbers():
            if picked and (chosen := picked[file].records) is not None:
                records = chosen[records]
            parts.append(self.map.addresses(self._files[sources[file].path], records))
        return np.concatenate(parts)

    # Places -------------------------------------------------------------------------------------------------------

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
            file = self._by_label.get(name)
            if file is None:
                file = next(i for i, path in enumerate(self._files) if os.path.basename(path).startswith(name))
            self.map.files[file].bounds(int(record), int(record) + 1)
            return int(self.map.addresses(file, np.array([int(record)]))[0])
        except (IndexError, StopIteration, ValueError) as error:
            wanted = f"expected a row below {self.map.total:,}, or file:record"
            raise ValueError(f"there is no row {text!r}: {wanted}") from error

    # Work beside --------------------------------------------------------------------------------------------------

    def _job(self, key: tuple[Any, ...], make: Any) -> Any:
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

    @property
    def is_filtered(self) -> bool:
        """True if the dataset has a filter of its own."""
        return self.scan.row_filter is not None


def _value(column: pa.Array, at: int, field: pa.Field) -> Any:
    """A value as of `cell`; of text, bytes and lists without an import of pandas, which takes longer than a screen."""
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if Column(column.type).is_text or Column(column.type).is_bytes:
        return column[at].as_py()
    items = column[at].values if is_list and column[at].is_valid else None
    if items is None:
        return Column(field).cell(column, at)
    if Column(items.type).is_text or Column(items.type).is_bytes:
        return np.fromiter(items.to_pylist(), object, len(items))
    if (pa.types.is_integer(items.type) or pa.types.is_floating(items.type)) and not items.null_count:
        return ArrayBuffers(items).numbers.copy()
    return Column(field).cell(column, at)


def _short_names(paths: Sequence[str]) -> list[str]:
    """Names of files for links: without what all have in common.

    >>> _short_names(["a/train-00000-of-00002.tfrecord", "a/train-00001-of-00002.tfrecord"])
    ['train-00000', 'train-00001']
    """

    def shorten(path: str) -> str:
        name = os.path.basename(path)
        shard, (stem, suffix) = ShardName.parse(name), os.path.splitext(name)
        return (
            f"{shard.base}-{shard.index:0{shard.width}}"
            if shard
            else stem
            if suffix in Registry.RECORD_SUFFIXES
            else name
        )

    forms: tuple[Callable[[str], str], ...] = (shorten, os.path.basename, lambda path: "/".join(path.split("/")[-2:]))
    for form in forms:
        formed = [form(path) for path in paths]
        if len(set(formed)) == len(formed):
            return formed
    return [f"{at}-{os.path.basename(path)}" for at, path in enumerate(paths)]
