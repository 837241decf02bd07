"""The server of a page that browses a dataset: on this machine only, unless another host is named, behind a token."""

from __future__ import annotations

import asyncio
import html
import json
import os
import re
import secrets
import shutil
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import resources
from threading import Thread, current_thread, main_thread
from typing import Any

from tfrecord_io.apps.views import style
from tfrecord_io.errors import TFRecordError
from tfrecord_io.kit import check_keywords, needs
from tfrecord_io.plugins.browse.pages import Pages
from tfrecord_io.typing import FilesLike, StorageLike

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_ANY = {"0.0.0.0", "::", ""}
_CLOSED_SECONDS = 3.0  # without a page, after which a server that was opened for one ends
_MOST_UNSENT = 20  # looks at an unchanged state, after which it is sent again
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
_ERRORS = (TFRecordError, ValueError, TypeError, LookupError, OSError, NotImplementedError)


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
                reason = str(
                    getattr(error, "message_cli", error)
                )  # without the keyword that a caller would have passed
                return JSONResponse({"error": reason or type(error).__name__}, 400)
            if not isinstance(content, tuple):
                return JSONResponse(content)
            pieces, status, headers = _part(content[0], request.headers.get("range", ""))
            return StreamingResponse(pieces, status, headers, media_type=content[1])

        return respond

    routes = [Route(f"/{token}/{name}", answer(getattr(pages, name)), methods=["GET"]) for name in Pages.ANSWERS]
    routes += [
        Route(f"/{token}/", lambda _: Response(_asset("page.html"), media_type="text/html")),
        Route(f"/{token}/page.js", lambda _: Response(_asset("page.js"), media_type="text/javascript")),
        Route(f"/{token}/page.css", lambda _: Response(style() + _asset("page.css"), media_type="text/css")),
        Route(f"/{token}/events", lambda r: StreamingResponse(server.follow(r), media_type="text/event-stream")),
        Route(f"/{token}/all", answer(pages.find_all), methods=["POST"]),
    ]
    return _Guard(Starlette(routes=routes), host, server)


def _part(value: Any, wanted: str) -> tuple[Iterator[bytes], int, dict[str, str]]:
    """The range of a value that a player asks for, or all of it; the status and headers of the answer.

    >>> pieces, status, headers = _part(b"abcdef", "bytes=2-3")
    >>> [*pieces], status, headers["Content-Range"]
    ([b'cd'], 206, 'bytes 2-3/6')
    """
    size, status = len(value), 200
    headers = {"Content-Security-Policy": "sandbox", "Accept-Ranges": "bytes"}
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
    if match is not None and int(match[1]) < size:
        begin, end = int(match[1]), min(size, int(match[2] or size) + 1)
        value, status = value[begin:end], 206
        headers["Content-Range"] = f"bytes {begin}-{end - 1}/{size}"
    headers["Content-Length"] = str(len(value))
    return iter([value]) if isinstance(value, bytes) else value.pieces(), status, headers


def _asset(name: str) -> str:
    return resources.files("tfrecord_io.plugins.browse").joinpath("page", name).read_text("utf-8")


class _Guard:
    """Answers requests of the page alone, and refuses those with another Host or another Origin.

    A Host of another name is a sign of DNS rebinding: a foreign page's name now leads to this server.
    """

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
        sent, unsent_looks = "", 0
        try:
            while not self._server.should_exit and not await request.is_disconnected():
                status = json.dumps(self._pages.status())
                unsent_looks += 1
                if status != sent or unsent_looks == _MOST_UNSENT:
                    yield f"data: {status}\n\n"
                    sent, unsent_looks = status, 0
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
        """Serve until Ctrl-C, until the terminal is closed or, with `ends_with_page`, until the page is closed.

        Files that are not open yet are opened meanwhile; if that fails, the server ends, and the error is raised.
        """
        self._ends_with_page = ends_with_page
        Thread(target=self._open, daemon=True, name="tfr-browse-open").start()
        if hasattr(signal, "SIGHUP") and current_thread() is main_thread():
            signal.signal(signal.SIGHUP, lambda *_: setattr(self._server, "should_exit", True))
        try:
            self._server.run([self._socket])
        except KeyboardInterrupt:
            pass
        finally:
            self._pages.close()
        if self._pages.opened.done():
            self._pages.opened.result()

    def _open(self) -> None:
        try:
            self._pages.open()
        except _ERRORS:
            self._server.should_exit = True  # `run` raises it

    def wait(self) -> None:
        """Wait until the server is closed, or Ctrl-C."""
        while self._thread is not None and self._thread.is_alive():
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
    keywords: dict[str, Any],
    other: Any = None,
    *,
    key: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    is_framed: bool = False,
) -> BrowseServer:
    """Make the server of a dataset and its counterpart, by keywords of `dataset`, without starting it.

    They are opened now, unless one is in a bucket: then `BrowseServer.run` or `Pages.open` opens them later.
    """
    pages = Pages(source, keywords, other, key)
    if not pages.is_remote:
        pages.open()
    return BrowseServer(pages, host, port, is_framed=is_framed)


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
    is shown, and finds the records' offsets meanwhile; it writes nothing into their folder. A notebook shows the page
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
    # Their paths are looked at more than once.
    shown, compared = (list(side) if isinstance(side, Iterator) else side for side in (source, compare))
    keywords = {} if storage_options is None else {"storage_options": storage_options}
    in_notebook = "ipykernel" in sys.modules  # which shows the page in the cell
    server = make_server(shown, keywords, compared, key=key, host=host, port=port, is_framed=in_notebook)
    server.start()
    if open_page or (open_page is None and not in_notebook):
        print(server.url)
        webbrowser.open(server.url)
    try:
        server._pages.open()
    except BaseException:
        server.close()
        raise
    return server


def has_browser() -> bool:
    """True if this machine may show a page: it has a screen, and a program for it."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return bool(os.environ.get("BROWSER"))
    return sys.platform != "linux" or any(map(shutil.which, ("xdg-open", "x-www-browser", "firefox")))
