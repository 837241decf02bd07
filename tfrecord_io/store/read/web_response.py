"""A file on a web server as one response, with its content decoded."""

from __future__ import annotations

from collections.abc import Mapping
from gzip import GzipFile
from io import BufferedReader, RawIOBase
from typing import Any

_READ_BYTES = 256 << 10  # of what is stored, at a time: each read is a turn of fsspec's thread
_BY_AIOHTTP = ("deflate", "br", "zstd")


def open_response(fs: Any, name: str, headers: Mapping[str, str] | None = None) -> Any:
    """Open a file on a web server, without a request for its size.

    What the server compressed by gzip is decompressed here: aiohttp takes content that ends early for all of it, and
    before 3.14 the first of several members, too.

    Parameters
    ----------
    fs : fsspec.implementations.http.HTTPFileSystem
    headers
        Those of the filesystem by default.
    """
    options: dict[str, Any] = {"block_size": 0, "size": 1, **({} if headers is None else {"headers": headers})}
    response = fs.open(name, "rb", auto_decompress=False, **options)
    encoding = response.r.headers.get("Content-Encoding", "").lower()
    if encoding == "gzip":
        return _Decompressed(response)
    if encoding in _BY_AIOHTTP:
        response.close()
        return fs.open(name, "rb", **options)
    return response


class _Decompressed(GzipFile):
    """The content of a response that was compressed by gzip."""

    def __init__(self, response: Any) -> None:
        super().__init__(fileobj=BufferedReader(_Stored(response), _READ_BYTES), mode="rb")
        self._response = response

    def close(self) -> None:
        super().close()
        self._response.close()


class _Stored(RawIOBase):
    """The bytes of a response; aiohttp warns of reads after the end."""

    def __init__(self, response: Any) -> None:
        self._response, self._ended = response, False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        data = b"" if self._ended else self._response.read(len(buffer))
        self._ended = not data
        buffer[: len(data)] = data
        return len(data)
