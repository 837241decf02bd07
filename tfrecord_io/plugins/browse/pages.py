"""Answers of the server to the requests of the page: JSON with HTML in it, and values as they are.

Tests: tests/plugins/browse/test_browse_server.py.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

from tfrecord_io.apps.views import (
    NULL,
    box_forms_of,
    cell_forms,
    companions,
    element,
    may_be_image,
    table,
    text,
    value_cell,
    value_mime,
)
from tfrecord_io.errors import FeatureNotFoundError
from tfrecord_io.kit import byte_size, counted, printable
from tfrecord_io.plugins.browse.browsed_dataset import BrowsedDataset, Problem
from tfrecord_io.plugins.browse.duckdb_query import query_rows
from tfrecord_io.plugins.browse.record_page import record_page, summary_page

_FIRST_ROWS, _MOST_ROWS, _MOST_COLUMNS = 25, 200, 100  # of an answer
_MOST_ENTRIES = 500  # columns on the page of a record
_SQL_ROWS = 1000


class Pages:
    """Answers to the requests of the page; the methods of `ANSWERS` take the parameters of a request.

    `opened` has the dataset and its counterpart, or the error of `open`.
    """

    ANSWERS = ("info", "rows", "record", "find", "search", "lines", "summary", "sql", "value")

    def __init__(self, source: Any, keywords: dict[str, Any], other: Any, key: str | None) -> None:
        self._source, self._other, self._keywords, self.key = source, other, keywords, key
        self.opened: Future[tuple[BrowsedDataset, BrowsedDataset | None]] = Future()
        parts = [*_parts(source), *_parts(other)]
        # True if a path is a URL, whose files take a while to be opened.
        self.is_remote = any(isinstance(part, str | os.PathLike) and "://" in os.fspath(part) for part in parts)

    def open(self) -> None:
        """Open the dataset and its counterpart, unless they are; requests wait for it."""
        if self.opened.done():
            return
        try:
            dataset = BrowsedDataset(self._source, self._keywords)
            other = None if self._other is None else BrowsedDataset(self._other, self._keywords)
            for side in filter(None, (dataset, other)):
                if self.key is not None and self.key not in (names := side.schema.names):
                    raise FeatureNotFoundError("the key is not a column", feature=self.key, got=f"columns {names[:10]}")
            self.opened.set_result((dataset, other))
        except BaseException as error:
            self.opened.set_exception(error)
            raise

    @property
    def dataset(self) -> BrowsedDataset:
        """The dataset, once it is opened, or the error of that."""
        return self.opened.result()[0]

    @property
    def other(self) -> BrowsedDataset | None:
        """The dataset that it is compared with."""
        return self.opened.result()[1]

    def info(self, _: Any) -> dict[str, Any]:
        """The columns and the files, as they are now."""
        for side in filter(None, (self.dataset, self.other)):
            side.reload()
        dataset = self.dataset
        size = "" if dataset.scan.bytes is None else f", {byte_size(dataset.scan.bytes)}"
        compared = "" if self.other is None else f"; + is {_title(self.other)}, by {printable(self.key or 'row', 80)}"
        addresses = [dataset.map.address(number) for number in range(min(3, dataset.map.find(3)))]
        names = dataset.schema.names
        images = [name for name in names[:_MOST_COLUMNS] if may_be_image(dataset.schema.field(name))]
        rows = [row for _, row in dataset.rows(addresses, images) if not isinstance(row, Problem)] if images else []
        values = {name: next((row for row in rows if row[name] is not None), None) for name in images}
        return {
            "title": _title(dataset),
            "files": f"{counted(len(dataset.scan.files), 'file')}{size}, schema {dataset.map.schema_source}{compared}",
            "plain": names,
            "headings": {at: shown for at, name in enumerate(names) if (shown := text(name, 120) or "(empty)") != name},
            **cell_forms(dataset.schema, values),
            "problem": printable(dataset.problem, 1000),
            "compare": self.other is not None,
            "filtered": dataset.map.is_filtered,
            "sql": find_spec("duckdb") is not None,
            "version": dataset.version,
            "total": dataset.map.find(_FIRST_ROWS),
        }

    def status(self) -> dict[str, Any]:
        """How much of the files is known."""
        if not self.opened.done() or self.opened.exception():
            return {"total": 0, "complete": False, "progress": 0, "unread": "", "version": None}
        map_ = self.dataset.map
        state = {"complete": map_.is_complete, "progress": round(map_.progress, 3), "version": self.dataset.version}
        return {"total": map_.total, "unread": byte_size(map_.unread) if map_.unread else "", **state}

    def find_all(self, _: Any) -> dict[str, Any]:
        """Read files in a bucket, which nobody has asked for so far, to find their records."""
        self.dataset.map.may_read_all = True
        return {}

    def rows(self, query: Any) -> dict[str, Any]:
        """Rows of the table, by number or by number among those found."""
        dataset, where = self.dataset, query.get("where", "")
        first, count = max(0, int(query["first"])), min(int(query["count"]), _MOST_ROWS)
        names = _wanted_columns(dataset, query)[:_MOST_COLUMNS]
        if where or dataset.map.is_filtered:
            addresses = list(dataset.search(where).found[first : first + count])
        else:
            end = min(first + count, dataset.map.find(first + count))
            addresses = [dataset.map.address(number) for number in range(first, end)]
        cells = self._cells(dataset, addresses, names)
        others = None if self.other is None else self._others(addresses, names)
        rows = []
        for address in addresses:
            shown = cells[address]
            row: dict[str, Any] = {"at": dataset.label(address), "n": dataset.map.number(address)}
            if isinstance(shown, str):
                row["damage"] = shown
            else:
                row["cells"] = shown if others is None else _compare_cells(shown, others.get(address))
            rows.append(row)
        return {"rows": rows}

    def _cells(self, dataset: BrowsedDataset, addresses: Sequence[int], names: Sequence[str]) -> dict[int, Any]:
        """The HTML of values by address; of a record that is damaged, why."""
        wanted = _with_companions(dataset, names)
        forms = box_forms_of(map(dataset.schema.field, wanted))
        fields = [dataset.schema.field(name) for name in names]
        cells: dict[int, Any] = {}
        for address, row in dataset.rows(addresses, wanted):
            if isinstance(row, Problem):
                cells[address] = text(row, 500)
                continue
            url = self._url(dataset, address)
            cells[address] = [value_cell(row, field, forms, url) for field in fields]
        return cells

    def _others(self, addresses: Sequence[int], names: Sequence[str]) -> dict[int, Any]:
        """The cells of the partner rows in the other dataset, by the addresses of this dataset."""
        assert self.other is not None
        other = self.other
        if self.key is None:
            numbers = {address: self.dataset.map.number(address) for address in addresses}
            end = other.map.find(max(filter(None, numbers.values()), default=0) + 1)
            partners = {a: other.map.address(n) for a, n in numbers.items() if n is not None and n < end}
        else:
            keys = other.keys(self.key)
            keys.join(1)
            if keys.error or not keys.is_complete:
                raise ValueError(keys.error or f"The keys of {_title(other)} are being read: {keys.progress:.0%}")
            rows = self.dataset.rows(addresses, [self.key])
            values = {address: row[self.key] for address, row in rows if not isinstance(row, Problem)}
            found = keys.find([*values.values()])
            partners = {address: found[value] for address, value in values.items() if value in found}
        shared = [name for name in names if other.schema.get_field_index(name) >= 0]
        cells = self._cells(other, list(dict.fromkeys(partners.values())), shared)
        missing = element("span", "no such column", class_="null")
        shown_cells: dict[int, Any] = {}
        for address, partner in partners.items():
            shown = cells[partner]
            by_name = dict(zip(shared, shown, strict=True)) if isinstance(shown, list) else {}
            shown_cells[address] = shown if isinstance(shown, str) else [by_name.get(name, missing) for name in names]
        return shown_cells

    def record(self, query: Any) -> dict[str, Any]:
        """The page of a record."""
        dataset = self.dataset
        address = dataset.find(query["at"])
        names = (_wanted_columns(dataset, query) or dataset.schema.names)[:_MOST_ENTRIES]
        ((_, row),) = dataset.rows([address], _with_companions(dataset, names))
        page = record_page(dataset, address, row, names=names, url=self._url(dataset, address))
        return {"html": page, **self._place(address)}

    def find(self, query: Any) -> dict[str, Any]:
        """The number of a row that is named as ``file:record``, or by its number."""
        return self._place(self.dataset.find(query["text"]))

    def _place(self, address: int) -> dict[str, Any]:
        return {"n": self.dataset.map.number(address), "at": self.dataset.label(address)}

    def search(self, query: Any) -> dict[str, Any]:
        """How far a search is."""
        if query.get("forget"):
            self.dataset.forget_search(query["forget"])
        job = self.dataset.search(query.get("where", ""))
        job.join(0.3)
        state = {"complete": job.is_complete, "progress": round(job.progress, 3), "error": job.error}
        return {"count": len(job.found), "unread": len(job.unread), **state}

    def summary(self, query: Any) -> dict[str, Any]:
        """The values of a column."""
        name = self.dataset.schema.field(int(query["column"])).name
        job = self.dataset.summary(name, query.get("where", ""), all_rows=query.get("all") == "1")
        job.join(0.3)
        counts = None if job.statistics is None else job.statistics.counts
        values = [] if counts is None else [value for value, _ in counts.top if isinstance(value, str | int)]
        state = {"complete": job.is_complete, "progress": round(job.progress, 3)}
        return {"html": summary_page(job), "values": list(map(str, values)), **state}

    def lines(self, query: Any) -> dict[str, Any]:
        """The command and the line of Python that give the rows and the columns that are shown."""
        where, dataset = query.get("where", ""), self.dataset
        names = list(map(_entry, _wanted_columns(dataset, query)))
        paths = dataset.scan.files if len(dataset.scan.files) <= 3 else _paths_of(dataset)
        command = ["tfr", "cat", *paths, *(["--where", where] if where else [])]
        command += [part for name in names for part in ("-c", name.replace(",", "?"))]
        changes = dataset.scan.options.changes
        how = {n: changes[n] for n in ("record_type", "compression", "split") if isinstance(changes.get(n), str)}
        command += [part for name, value in how.items() for part in (f"--{name.replace('_', '-')}", value)]
        keywords = (f"{name}={value!r}" for name, value in how.items())
        source = ", ".join([repr(paths[0] if len(paths) == 1 else paths), *keywords])
        python = f"tfr.dataset({source})" + (f".filter({where!r})" if where else "")
        python += f".select({names!r})" if names else ""
        return {"command": shlex.join(command), "python": f"{python}.to_table()"}

    def sql(self, query: Any) -> dict[str, Any]:
        """The first rows of a query, whose table is ``data``."""
        names, rows = query_rows(self.dataset.scan, query["query"], _SQL_ROWS + 1)
        cells = [[NULL if value is None else value for value in row] for row in rows[:_SQL_ROWS]]
        words = f"the first {_SQL_ROWS:,} rows" if len(rows) > _SQL_ROWS else counted(len(rows), "row")
        headings = [(text(name, 120), "") for name in names]
        return {"html": element("p", words, class_="note") + table(headings, cells)}

    def value(self, query: Any) -> tuple[Any, str]:
        """A whole value, as bytes or as a part of the file, and its media type."""
        dataset = self.other if query.get("other") == "1" and self.other is not None else self.dataset
        name, address = query["column"], int(query["address"])
        dataset.schema.field(name)
        if dataset.map.damage(address) is None and dataset.is_large(address, name):
            whole = dataset.map.stored(address).large[name].value
            return whole, value_mime(whole[:32].read())
        ((_, row),) = dataset.rows([address], [name])
        value = None if isinstance(row, Problem) else row[name]
        if isinstance(value, bytes):
            return value, value_mime(value)
        if isinstance(value, str):
            return value.encode("utf-8", "surrogatepass"), "text/plain; charset=utf-8"
        raise ValueError(f"the column {name!r} has neither bytes nor text here")

    def _url(self, dataset: BrowsedDataset, address: int) -> Callable[[str], str]:
        other = "&other=1" if dataset is self.other else ""
        return lambda name: f"value?address={address}&column={quote(name, safe='')}{other}"

    def close(self) -> None:
        """Close the files."""
        for side in filter(None, self.opened.result() if self.opened.done() and not self.opened.exception() else ()):
            side.close()


def _wanted_columns(dataset: BrowsedDataset, query: Any) -> list[str]:
    """The columns that a query names by their numbers."""
    return [dataset.schema.field(int(at)).name for at in query.get("columns", "").split(",") if at]


def _entry(name: str) -> str:
    """What ``columns=`` takes for a column, and for no other that its name fits as a pattern.

    >>> _entry("a*"), _entry("!a")
    ('a[*]', '[!]a')
    """
    entry = re.sub(r"[*?[]", r"[\g<0>]", name)
    return f"[!]{entry[1:]}" if entry.startswith("!") else entry


def _with_companions(dataset: BrowsedDataset, names: Sequence[str]) -> list[str]:
    """The columns, and the companions drawn over their images, of which there are not more than a page shows."""
    images = [name for name in names if may_be_image(dataset.schema.field(name))]
    every = dataset.schema.names if images else []
    beside = [other for name in images for other in companions(name, every)]
    return list(dict.fromkeys([*names, *beside[: 3 * _MOST_COLUMNS]]))


def _compare_cells(cells: list[str], others: Any) -> list[str]:
    """The cells of two rows, the second where it differs."""
    if not isinstance(others, list):
        why = others if isinstance(others, str) else "no such row"
        return [cells[0] + element("ins", why, class_="null"), *cells[1:]] if cells else cells
    pairs = zip(cells, others, strict=True)
    without_url = partial(re.sub, r"value\?[^\"]*", "")
    return [a if without_url(a) == without_url(b) else element("del", a) + element("ins", b) for a, b in pairs]


def _paths_of(dataset: BrowsedDataset) -> list[str]:
    parts = _parts(dataset.source)
    if all(isinstance(part, str | os.PathLike) for part in parts):
        return [os.fspath(part) for part in parts]
    return list(dataset.scan.files)


def _title(dataset: BrowsedDataset) -> str:
    paths = _paths_of(dataset)
    name = os.path.basename(paths[0].rstrip("/")) if paths else "no files"
    return name if len(paths) < 2 else f"{name} and {counted(len(paths) - 1, 'more path')}"


def _parts(source: Any) -> list[Any]:
    return list(source) if isinstance(source, list | tuple) else [source]
