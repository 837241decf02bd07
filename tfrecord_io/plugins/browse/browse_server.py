"""The server of a page that browses a dataset: on this machine only, unless another host is named, behind a token."""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from importlib import resources
from threading import Thread, current_thread, main_thread
from typing import Any

from tfrecord_io.plugins.browse.browsed_dataset import BrowsedDataset, Search
from tfrecord_io.plugins.browse.core_names import (
    NULL,
    Damage,
    FilesLike,
    ReadOptions,
    Row,
    ScanHolder,
    StorageLike,
    TFRecordError,
    box_forms_of,
    byte_size,
    check_keywords,
    companions,
    counted,
    element,
    may_be_image,
    media_of,
    needs,
    options_from_call,
    printable,
    query_rows,
    short,
    text,
    value_cell,
    value_mime,
)
from tfrecord_io.plugins.browse.record_page import record_page, summary_page

_PACKAGE = "tfrecord_io.plugins.browse.page"
_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_ANY = {"0.0.0.0", "::", ""}
_MOST_ROWS, _MOST_COLUMNS = 200, 100  # of an answer
_MOST_ENTRIES = 500  # columns on the page of a record
_SQL_ROWS, _SQL_SECONDS = 1000, 120
_CLOSED_SECONDS = 3.0  # without a page, after which a server that was opened for one ends
_FRAME_HEIGHT = 640  # pixels, in a notebook
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_ERRORS = (TFRecordError, ValueError, TypeError, LookupError, OSError)


class Pages:
    """Answers to the requests of the page, as JSON with HTML in it."""

    def __init__(self, dataset: BrowsedDataset, other: BrowsedDataset | None, key: str | None) -> None:
        self.dataset, self.other, self.key = dataset, other, key

    def info(self, _: Any) -> dict[str, Any]:
        """The columns and the files."""
        dataset = self.dataset
        schema = dataset.schema
        sizes = [source.size for source in dataset.map.sources]
        size = "" if None in sizes else f", {byte_size(sum(s for s in sizes if s is not None))}"
        return {
            "title": _title(dataset),
            "files": f"{counted(len(sizes), 'file')}{size}, schema {dataset.scan.schema_source}",
            "names": [text(name, 120) or "(empty)" for name in dataset.names],
            "plain": [*dataset.names],
            "types": [text(dataset.scan.shown_type(field), 80) for field in schema],
            "kinds": _kinds(dataset),
            "problem": printable(dataset.problem, 1000),
            "compare": self.other is not None,
            "filtered": dataset.is_filtered,
            "sql": _has_duckdb(),
        }

    def status(self) -> dict[str, Any]:
        """How much of the files is known."""
        map_ = self.dataset.map
        unread = map_.unread
        return {
            "total": map_.total,
            "complete": map_.is_complete,
            "progress": round(map_.progress, 3),
            "unread": byte_size(unread) if unread else "",
        }

    def rows(self, query: Any) -> dict[str, Any]:
        """Rows of the table, by number or by number among those found."""
        dataset, where = self.dataset, query.get("where", "")
        first, count = max(0, int(query["first"])), min(int(query["count"]), _MOST_ROWS)
        names = _wanted_columns(dataset, query)[:_MOST_COLUMNS]
        if where or dataset.is_filtered:
            addresses = dataset.search(where).found[first : first + count].tolist()
        else:
            addresses = []
            for number in range(first, first + count):
                try:
                    addresses.append(dataset.map.address(number))
                except IndexError:
                    break
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
        return {"rows": rows, "total": dataset.map.total}

    def _cells(self, dataset: BrowsedDataset, addresses: Sequence[int], names: Sequence[str]) -> dict[int, Any]:
        """The HTML of values by address; of a record that is damaged, why."""
        decoded = _with_companions(dataset, names)
        forms = box_forms_of(dataset.schema)
        cells: dict[int, Any] = {}
        for address, row in dataset.rows(addresses, decoded[: 4 * _MOST_COLUMNS]):
            if isinstance(row, Damage):
                cells[address] = text(f"bytes {row.begin:,} to {row.end:,}: {row.reason}", 500)
                continue
            url = _value_url(dataset, address, is_other=dataset is self.other)
            cells[address] = [value_cell(row, dataset.schema.field(name), forms, url) for name in names]
        return cells

    def _others(self, addresses: Sequence[int], names: Sequence[str]) -> dict[int, Any]:
        """The cells of the partner rows in the other dataset, by the addresses of this dataset."""
        assert self.other is not None
        other, partners = self.other, {}
        if self.key is None:
            for address in addresses:
                try:
                    partners[address] = other.map.address(self.dataset.map.number(address) or 0)
                except IndexError:
                    continue
        else:
            keys = other.keys(self.key)
            for address, row in self.dataset.rows(addresses, [self.key]):
                value = None if isinstance(row, Damage) else row[self.key]
                if value in keys.addresses:
                    partners[address] = keys.addresses[value]
        known = [name for name in names if name in other.names]
        cells = self._cells(other, list(dict.fromkeys(partners.values())), known)
        missing = element("span", "no such column", class_="null")
        found: dict[int, Any] = {}
        for address, partner in partners.items():
            shown = cells[partner]
            by_name = dict(zip(known, shown, strict=True)) if isinstance(shown, list) else {}
            found[address] = shown if isinstance(shown, str) else [by_name.get(name, missing) for name in names]
        return found

    def record(self, query: Any) -> dict[str, Any]:
        """The page of a record."""
        dataset = self.dataset
        address = dataset.find(query["at"])
        names = _wanted_columns(dataset, query) or dataset.names
        names = names[:_MOST_ENTRIES]
        decoded = _with_companions(dataset, names)[: 2 * _MOST_ENTRIES]
        ((_, row),) = dataset.rows([address], decoded, most=2**62)
        url = _value_url(dataset, address)
        page = record_page(dataset, address, row, names=names, url=url, forms=box_forms_of(dataset.schema))
        number = dataset.map.number(address)
        return {"html": page, "at": dataset.label(address), "n": number, "total": dataset.map.total}

    def find(self, query: Any) -> dict[str, Any]:
        """The number of a row that is named as ``file:record``, or by its number."""
        address = self.dataset.find(query["text"])
        return {"n": self.dataset.map.number(address), "at": self.dataset.label(address)}

    def search(self, query: Any) -> dict[str, Any]:
        """How far a search is."""
        if query.get("forget"):
            self.dataset.forget_search(query["forget"])
        where = query.get("where", "")
        job: Search = self.dataset.search(where)
        job.join(0.15)
        return {
            "count": len(job.found),
            "complete": job.is_complete,
            "progress": round(job.progress, 3),
            "error": job.error,
        }

    def lines(self, query: Any) -> dict[str, Any]:
        """The command and the line of Python that give the rows and the columns that are shown."""
        where, dataset = query.get("where", ""), self.dataset
        names = _wanted_columns(dataset, query)
        paths = dataset.scan.files if len(dataset.scan.files) <= 3 else _paths_of(dataset)
        command = ["tfr", "cat", *paths, *(["--where", where] if where else [])]
        command += [part for name in names for part in ("-c", name.replace(",", "?"))]
        source = repr(paths[0] if len(paths) == 1 else paths)
        python = f"tfr.dataset({source})" + (f".filter({where!r})" if where else "")
        python += f".select({names!r})" if names else ""
        return {"command": shlex.join(command), "python": f"{python}.to_table()"}

    def summary(self, query: Any) -> dict[str, Any]:
        """The values of a column."""
        name = self.dataset.names[int(query["column"])]
        job = self.dataset.summary(name, query.get("where", ""), all_rows=query.get("all") == "1")
        job.join(0.3)
        values = [value for value, _ in job.values.most_common(20) if isinstance(value, str | int | float)]
        return {
            "html": summary_page(job),
            "complete": job.is_complete,
            "progress": round(job.progress, 3),
            "values": [value if isinstance(value, str) else short(value) for value in values],
        }

    def sql(self, query: Any) -> dict[str, Any]:
        """The first rows of a query, whose table is ``data``."""
        names, rows = query_rows(self.dataset.source, query["query"], limit=_SQL_ROWS + 1, seconds=_SQL_SECONDS)
        head = "".join(element("th", text(name, 120), scope="col") for name in names)
        body = "".join(
            element("tr", "".join(element("td", NULL if v is None else text(short(v, 80), 120)) for v in row))
            for row in rows[:_SQL_ROWS]
        )
        words = f"the first {_SQL_ROWS:,} rows" if len(rows) > _SQL_ROWS else counted(len(rows), "row")
        return {"html": element("p", words, class_="note") + element("table", f"<tr>{head}</tr>{body}")}

    def value(self, query: Any) -> tuple[bytes, str]:
        """A whole value, and its media type."""
        dataset = self.other if query.get("other") == "1" and self.other is not None else self.dataset
        name = query["column"]
        dataset.schema.field(name)
        ((_, row),) = dataset.rows([int(query["address"])], [name], most=2**62)
        value = None if isinstance(row, Damage) else row[name]
        if isinstance(value, bytes):
            return value, value_mime(value)
        if isinstance(value, str):
            return value.encode("utf-8", "surrogatepass"), "text/plain; charset=utf-8"
        raise ValueError(f"the column {name!r} has neither bytes nor text here")

    def close(self) -> None:
        """Close the files."""
        for dataset in filter(None, (self.dataset, self.other)):
            dataset.close()


def _wanted_columns(dataset: BrowsedDataset, query: Any) -> list[str]:
    """The columns that a query names by their numbers."""
    return [dataset.names[int(at)] for at in query.get("columns", "").split(",") if at]


def _with_companions(dataset: BrowsedDataset, names: Sequence[str]) -> list[str]:
    """The columns, and the companions drawn over their images."""
    images = [name for name in names if may_be_image(dataset.schema.field(name))]
    beside = [other for name in images for other in companions(name, dataset.names)]
    return list(dict.fromkeys([*names, *beside]))


def _kinds(dataset: BrowsedDataset) -> list[str]:
    """For each column "image", "audio", "number" or "text": how wide and high its cells are."""
    names = [name for name in dataset.names[:_MOST_COLUMNS] if may_be_image(dataset.schema.field(name))]
    addresses = [dataset.map.address(number) for number in range(min(3, dataset.map.find(3)))]
    rows = [row for _, row in dataset.rows(addresses, names)] if names else []
    found = {
        name: kind
        for row in rows
        if not isinstance(row, Damage)
        for name in names
        if (kind := _media(row, name, dataset))
    }
    numbers = re.compile(r"u?int\d+|float|double|halffloat|bool")
    return [
        found.get(field.name) or ("number" if numbers.fullmatch(str(field.type)) else "text")
        for field in dataset.schema
    ]


def _media(row: Row, name: str, dataset: BrowsedDataset) -> str | None:
    """ "image" or "audio" for a value that is shown as one."""
    value = row[name]
    is_shown = getattr(value, "ndim", 0) > 1 or (isinstance(value, bytes) and value_mime(value).startswith("video/"))
    shown = None if value is None or is_shown else media_of(row, dataset.schema.field(name), {}, 16)
    return "image" if is_shown else None if shown is None else shown[0]


def _value_url(dataset: BrowsedDataset, address: int, *, is_other: bool = False) -> Callable[[str], str]:
    from urllib.parse import quote

    other = "&other=1" if is_other else ""
    return lambda name: f"value?address={address}&column={quote(name, safe='')}{other}"


def _compare_cells(cells: list[str], others: Any) -> list[str]:
    """The cells of two rows, the second where it differs."""
    if not isinstance(others, list):
        why = others if isinstance(others, str) else "no such row"
        return [cells[0] + element("ins", why, class_="null"), *cells[1:]] if cells else cells
    pairs = zip(cells, others, strict=True)
    return [a if _without_url(a) == _without_url(b) else element("del", a) + element("ins", b) for a, b in pairs]


def _without_url(cell: str) -> str:
    return re.sub(r"value\?[^\"]*", "", cell)


def _paths_of(dataset: BrowsedDataset) -> list[str]:
    source = dataset.source
    parts = source if isinstance(source, list | tuple) else [source]
    if all(isinstance(part, str | os.PathLike) for part in parts):
        return [os.fspath(part) for part in parts]
    return list(dataset.scan.files)


def _title(dataset: BrowsedDataset) -> str:
    paths = _paths_of(dataset)
    name = os.path.basename(paths[0].rstrip("/")) if paths else "no files"
    return name if len(paths) < 2 else f"{name} and {counted(len(paths) - 1, 'more path')}"


def _has_duckdb() -> bool:
    from importlib.util import find_spec

    return find_spec("duckdb") is not None


# ---- the application


def application(pages: Pages, token: str, host: str, server: BrowseServer) -> Any:
    """The ASGI application: everything is below the token, for one host, and by GET."""
    with needs("browse"):
        from starlette.applications import Starlette
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import JSONResponse, Response, StreamingResponse
        from starlette.routing import Route

    def answer(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def respond(request: Any) -> Any:
            try:
                content = await run_in_threadpool(call, request.query_params)
            except _ERRORS as error:
                return JSONResponse({"error": str(error) or type(error).__name__}, 400)
            if isinstance(content, tuple):
                data, status, headers = _part(content[0], request.headers.get("range", ""))
                return Response(data, status, headers, media_type=content[1])
            return JSONResponse(content)

        return respond

    def show(_: Any) -> tuple[str, str]:
        for dataset in filter(None, (pages.dataset, pages.other)):
            dataset.reload()
        return _asset("page.html"), "text/html"

    async def page(request: Any) -> Any:
        try:
            content, kind = await run_in_threadpool(show, request)
        except _ERRORS as error:
            content, kind = f"<!doctype html><title>browse</title><p>{html.escape(str(error))}", "text/html"
        return Response(content, media_type=kind)

    async def events(request: Any) -> Any:
        return StreamingResponse(server.follow(request), media_type="text/event-stream")

    async def find_all(request: Any) -> Any:
        pages.dataset.map.may_read_all = True
        return JSONResponse({})

    names = ("info", "rows", "record", "find", "search", "lines", "summary", "sql", "value")
    routes = [Route(f"/{token}/{name}", answer(getattr(pages, name)), methods=["GET"]) for name in names]
    routes += [
        Route(f"/{token}/", page),
        Route(f"/{token}/page.js", lambda _: Response(_asset("page.js"), media_type="text/javascript")),
        Route(f"/{token}/page.css", lambda _: Response(_style(), media_type="text/css")),
        Route(f"/{token}/events", events),
        Route(f"/{token}/all", find_all, methods=["POST"]),
    ]
    return _Guard(Starlette(routes=routes), host, server)


def _part(value: bytes, wanted: str) -> tuple[bytes, int, dict[str, str]]:
    """The range of a value that a player asks for, or all of it; the status and headers of the answer.

    >>> _part(b"abcdef", "bytes=2-3")[:2], _part(b"abcdef", "bytes=4-")[0], _part(b"abcdef", "")[:2]
    ((b'cd', 206), b'ef', (b'abcdef', 200))
    """
    headers = {"Content-Security-Policy": "sandbox", "Accept-Ranges": "bytes"}
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
    if match is None or int(match[1]) >= len(value):
        return value, 200, headers
    begin, end = int(match[1]), min(len(value), int(match[2] or len(value)) + 1)
    return value[begin:end], 206, headers | {"Content-Range": f"bytes {begin}-{end - 1}/{len(value)}"}


def _asset(name: str) -> str:
    return resources.files(_PACKAGE.rpartition(".")[0]).joinpath("page", name).read_text("utf-8")


def _style() -> str:
    return resources.files("tfrecord_io.apps.views").joinpath("style.css").read_text("utf-8") + _asset("page.css")


class _Guard:
    """Answers requests of the page alone: of another Host, as of a rebound name, or another Origin, none."""

    def __init__(self, app: Any, host: str, server: BrowseServer) -> None:
        self._app, self._host, self._server = app, host, server

    def _refuses(self, headers: dict[str, str]) -> bool:
        host = headers.get("host", "")
        name, port = host.rpartition(":")[::2]
        names = _LOOPBACK | {self._host}
        if self._host not in _ANY and (name.strip("[]") not in names or port != str(self._server.port)):
            return True
        origin = headers.get("origin")
        is_foreign = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        return origin not in (None, f"http://{host}") or (is_foreign and headers.get("sec-fetch-mode") != "navigate")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope.get("headers", ())}
        if scope["type"] != "http" or self._refuses(headers):
            await send({"type": "http.response.start", "status": 403, "headers": []})
            await send({"type": "http.response.body", "body": b"forbidden"})
            return

        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                present = {key.lower() for key, _ in message["headers"]}
                added = _HEADERS | ({} if self._server.is_framed else {"X-Frame-Options": "DENY"})
                pairs = [(key.lower().encode(), value.encode()) for key, value in added.items()]
                message["headers"] = [*message["headers"], *(pair for pair in pairs if pair[0] not in present)]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class BrowseServer:
    """The result of `browse`: a server that runs until it is closed; a notebook shows its page.

    A context manager.

    Attributes
    ----------
    url : str
        The address of the page, with the token that it needs.
    """

    def __init__(self, pages: Pages, host: str, port: int, *, is_framed: bool = False) -> None:
        with needs("browse"):
            import uvicorn

        self.is_framed = is_framed
        self._pages, self._readers, self._ends_with_page = pages, 0, False
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family)
        # Inherited by connections, for which asyncio sets it only where a socket names its protocol: else an answer
        # waits 40 ms for the acknowledgement of its headers.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._socket.getsockname()[1]
        token = secrets.token_urlsafe(24)
        shown = "127.0.0.1" if host in _ANY else f"[{host}]" if ":" in host else host
        self.url = f"http://{shown}:{self.port}/{token}/"
        app = application(pages, token, host, self)
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", ws="none")
        config.timeout_graceful_shutdown = 1
        self._server = uvicorn.Server(config)
        self._thread: Thread | None = None

    def __repr__(self) -> str:
        return f"<BrowseServer at {self.url}>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{html.escape(self.url)}" width="100%" height="{_FRAME_HEIGHT}" frameborder="0"></iframe>'

    async def follow(self, request: Any) -> AsyncIterator[str]:
        """Events with the state of the files, as long as the page is open and the server runs."""
        self._readers += 1
        before, silent = "", 0
        try:
            while not self._server.should_exit and not await request.is_disconnected():
                status = json.dumps(self._pages.status())
                silent = 0 if status != before else silent + 1
                if status != before or silent == 20:
                    yield f"data: {status}\n\n"
                    before, silent = status, 0
                await asyncio.sleep(0.2 if '"complete": false' in status else 0.5)
        finally:
            self._readers -= 1
            if self._ends_with_page and not self._readers:
                asyncio.get_running_loop().call_later(_CLOSED_SECONDS, self._end_if_closed)

    def _end_if_closed(self) -> None:
        if not self._readers:
            self._server.should_exit = True

    def start(self) -> None:
        """Serve in a thread."""
        self._thread = Thread(target=self._server.run, args=([self._socket],), daemon=True, name="tfr-browse")
        self._thread.start()

    def run(self, *, ends_with_page: bool = False) -> None:
        """Serve until Ctrl-C, or until the terminal is closed; with `ends_with_page`, or until the page is."""
        self._ends_with_page = ends_with_page
        if hasattr(signal, "SIGHUP") and current_thread() is main_thread():
            signal.signal(signal.SIGHUP, lambda *_: setattr(self._server, "should_exit", True))
        try:
            self._server.run([self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._pages.close()

    def wait(self) -> None:
        """Wait until the server is closed, or Ctrl-C."""
        if self._thread is not None:
            while self._thread.is_alive():
                self._thread.join(0.5)

    def close(self) -> None:
        """End the server and close the files."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(5)
        self._socket.close()
        self._pages.close()

    def __enter__(self) -> BrowseServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def make_server(
    source: Any,
    options: ReadOptions,
    other: Any = None,
    *,
    key: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    is_framed: bool = False,
) -> BrowseServer:
    """Open a dataset and its counterpart, and make the server without starting it."""
    dataset = BrowsedDataset(source, options)
    second = None if other is None else BrowsedDataset(other, options)
    for side in filter(None, (dataset, second)):
        if key is not None:
            side.scan.select([key])  # FeatureNotFoundError
    if key is not None and second is not None:
        second.keys(key)
    return BrowseServer(Pages(dataset, second, key), host, port, is_framed=is_framed)


def is_notebook() -> bool:
    """True in a notebook, which shows the page in a cell."""
    return "ipykernel" in sys.modules


@check_keywords
def browse(
    source: FilesLike,
    *,
    compare: FilesLike | None = None,
    key: str | None = None,
    open_page: bool | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    storage_options: StorageLike | None = None,
) -> BrowseServer:
    """Look at records in a browser: any row of any number, images with their boxes, sounds, filters, damage.

    A server of this process shows the files on this machine alone, under an address with a random token. It reads what
    is shown, and finds the records' offsets meanwhile; it writes nothing beside the files. A notebook shows the page
    in the cell.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
    >>> with tfr.browse("three.tfrecord", open_page=False) as server:
    ...     server.url.startswith("http://127.0.0.1:")
    True

    Parameters
    ----------
    source : str, PathLike, Dataset, or list of those
        As in `read_tfrecord`; a `dataset` has more reading options.
    compare : str, PathLike, Dataset, or list of those, optional
        Another dataset, whose values are shown where they differ: those of the same row, or of the same `key`.
    key : str, optional
        A column that names rows, for `compare`.
    open_page : bool, optional
        Open the page in the browser; by default, unless a notebook shows it.
    host : str, default "127.0.0.1"
        The address to serve at. Another one than that of this machine alone lets others who know the token read the
        files, over a connection that is not encrypted.
    port : int, default 0
        The port; 0 is any that is free.
    storage_options
        As in `read_tfrecord`.

    Returns
    -------
    BrowseServer
        With ``url``, ``close()`` and ``wait()``; also a context manager.

    Raises
    ------
    MissingDependencyError
        Starlette and uvicorn are not installed: the extra ``browse``.
    FileNotFoundError
        Nothing matches `source`.
    OSError
        The port is taken.
    """
    source, compare = _as_list(source), _as_list(compare)
    options = options_from_call(ReadOptions, browse, source, storage_options=storage_options)
    shown = is_notebook()
    server = make_server(source, options, compare, key=key, host=host, port=port, is_framed=shown)
    server.start()
    if open_page or (open_page is None and not shown):
        print(server.url)
        webbrowser.open(server.url)
    return server


def has_browser() -> bool:
    """True if this machine may show a page: it has a screen, and a program for it."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return bool(os.environ.get("BROWSER"))
    return sys.platform != "linux" or any(map(shutil.which, ("xdg-open", "x-www-browser", "firefox")))


def _as_list(source: Any) -> Any:
    """An iterable of sources as a list, which can be gone through again; anything else, and a set, as it is."""
    is_one = isinstance(source, str | os.PathLike | ScanHolder | set | frozenset) or hasattr(source, "read")
    return source if is_one or not isinstance(source, Iterable) else list(source)
