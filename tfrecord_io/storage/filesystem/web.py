"""What a web server says of a file, by one request if its answer is clear.

fsspec asks by HEAD, then by GET whatever the first answer was, and takes each failure of the second for an absent
file. Here 404 and 410 mean that the file is absent, and only what HEAD leaves open is asked by GET: some servers do not
have HEAD, refuse it (addresses that are signed for GET), or answer it with a length of 0.
"""

from __future__ import annotations

import errno
import os
from typing import Any

_ABSENT = (404, 410)
_WITHOUT_HEAD = (400, 401, 403, 405, 501)  # what servers answer to a HEAD that they would answer as a GET
_VERSIONS = ("ETag", "Content-MD5", "Digest", "Last-Modified")


async def web_info(fs: Any, url: str) -> dict[str, Any]:
    """The description of a file on a web server, as the ``info`` of fsspec gives it.

    Parameters
    ----------
    fs : fsspec.implementations.http.HTTPFileSystem

    Raises
    ------
    FileNotFoundError
        The server says that there is no such file.
    aiohttp.ClientError
        It answers with another error, or not at all.
    """
    session = await fs.set_session()
    options = {"allow_redirects": True, **fs.kwargs}
    options["headers"] = {**options.get("headers", {}), "Accept-Encoding": "identity"}
    info: dict[str, Any] = {}
    for ask in (session.head, session.get):
        async with ask(fs.encode_url(url), **options) as answer:
            if answer.status in _ABSENT:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
            if ask == session.head and answer.status in _WITHOUT_HEAD:
                continue
            answer.raise_for_status()
            info = _described(answer.headers)
            if info.get("size"):
                break
    return {"name": url, "size": None, **info, "type": "file"}


def _described(headers: Any) -> dict[str, Any]:
    info = {name: headers[name] for name in _VERSIONS if headers.get(name)}
    # A server that compresses although it is asked not to states another length.
    if "Content-Length" in headers and headers.get("Content-Encoding", "") in ("", "identity"):
        info["size"] = int(headers["Content-Length"])
    if headers.get("Accept-Ranges") == "none":
        info["partial"] = False
    return info
