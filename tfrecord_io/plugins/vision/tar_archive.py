"""Read the members of a tar archive, in one pass and in bounded memory.

Python's tarfile reads headers of any stated size, follows extension headers by recursion, and takes a damaged header
for the end.
Format: POSIX ustar and pax, and GNU's long names (https://www.gnu.org/software/tar/manual/html_node/Standard.html).

Tests: tests/plugins/vision/test_tar_archive.py.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from typing import Any

from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import printable
from tfrecord_io.plugins.vision.vision_rows import TAR

MAX_HEADER_BYTES = 16 << 20  # of one extension header: a long name, or pax records with extended attributes
_MOST_DIGITS = 20
_CHUNK = 1 << 20

_LONG = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_KEPT = (b"path", b"linkpath", b"size")  # of the records of pax; all others are about owners, times and access
_SPARSE = b"GNU.sparse."


class TarArchive:
    """The members of the archive in a binary file, in order, with what extension headers state of them.

    `read` returns the content of a member before the next one is taken. DecodeError: it is not an archive, is damaged,
    or an extension header is larger than 16 MiB or contradicts itself.
    """

    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path
        self.left = self._padding = 0  # of the member at hand
        self._offset = 0

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        lasting: dict[str, str] = {}  # by global pax headers
        next_headers: dict[str, str] = {}  # for the next member
        while (info := self._header()) is not None:
            if info.type in _LONG:
                content = self._extension(info, "a long name")
                name = content.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
                next_headers.setdefault(_LONG[info.type], name)
            elif info.type in _PAX:
                next_headers = self._records(self._extension(info, "a pax header")) | next_headers
            elif info.type == tarfile.XGLTYPE:
                lasting |= self._records(self._extension(info, "a global pax header"))
            else:
                self._apply(info, lasting | next_headers)
                next_headers = {}
                has_content = info.isreg() or info.type not in tarfile.SUPPORTED_TYPES  # whatever size a link states
                self._begin(info.size if has_content else 0)
                yield info
                self._skip()
        if next_headers:
            raise self._error("it ends after the extension header of a member")

    def read(self, size: int | None = None) -> bytes:
        """The content of the member at hand, or the next `size` bytes of it, or as much as the archive has."""
        content = self._take(self.left if size is None else min(size, self.left))
        self.left -= len(content)
        return content

    def _take(self, size: int) -> bytes:
        parts, wanted = [], size
        while wanted and (part := self._file.read(min(wanted, _CHUNK))):
            parts.append(part)
            wanted -= len(part)
        self._offset += size - wanted
        return b"".join(parts)

    def _begin(self, size: int) -> None:
        self.left, self._padding = size, -size % tarfile.BLOCKSIZE

    def _skip(self) -> None:
        """Go to the next header."""
        remaining = self.left + self._padding
        while remaining:
            part = self._take(min(remaining, _CHUNK))
            if not part:
                raise self._error(f"it ends {remaining} bytes before the next header")
            remaining -= len(part)
        self.left = self._padding = 0

    def _header(self) -> tarfile.TarInfo | None:
        """The next header; None at the end."""
        at = self._offset
        block = self._take(tarfile.BLOCKSIZE)
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.TarError as error:
            is_end = not block or not any(block)
            if is_end and len(block) in (0, tarfile.BLOCKSIZE) and (at or block):
                return None
            raise self._error(f"at byte {at}: {printable(error)}") from error
        if info.size < 0:
            raise member_error(f"its size is {info.size}", self._path, info.name)
        return info

    def _extension(self, info: tarfile.TarInfo, what: str) -> bytes:
        """The content of an extension header, which is bounded before it is read."""
        if info.size > MAX_HEADER_BYTES:
            reason = f"{what} of {info.size} bytes, more than {MAX_HEADER_BYTES >> 20} MiB"
            raise self._error(reason, expected=MAX_HEADER_BYTES, got=info.size)
        self._begin(info.size)
        content = self.read()
        if len(content) < info.size:
            raise self._error(f"{what} ends after {len(content)} of its {info.size} bytes")
        self._skip()
        return content

    def _records(self, content: bytes) -> dict[str, str]:
        """The records of a pax header that are about names and sizes: ``30 path=…``, each with its own length."""
        records, begin = {}, 0
        while begin < len(content) and content[begin]:  # some writers pad with zeros
            space = content.find(b" ", begin, begin + _MOST_DIGITS)
            digits = content[begin : max(space, begin)]
            end = begin + int(digits) if digits.isdigit() else 0
            key, equals, value = content[space + 1 : end - 1].partition(b"=")
            if not (space < end <= len(content) and equals and content[end - 1 : end] == b"\n"):
                raise self._error("a pax header has a record that is none")
            if key in _KEPT:
                records[key.decode()] = value.decode("utf-8", "surrogateescape")
            elif key.startswith(_SPARSE):
                records["sparse"] = ""
            begin = end
        return records

    def _apply(self, info: tarfile.TarInfo, headers: dict[str, str]) -> None:
        """Give a member what its extension headers state."""
        if name := headers.get("path"):
            info.name = name.rstrip("/")
        info.linkname = headers.get("linkpath") or info.linkname
        if info.type == tarfile.GNUTYPE_SPARSE or "sparse" in headers:
            advice = "write the archive without the option sparse of GNU tar"
            raise member_error("a sparse file, of which the archive has parts", self._path, info.name, advice)
        if size := headers.get("size"):
            if not (size.isascii() and size.isdigit() and len(size) <= _MOST_DIGITS):
                raise member_error(f"its size is '{printable(size, 40)}'", self._path, info.name)
            info.size = int(size)

    def _error(self, reason: str, **numbers: Any) -> DecodeError:
        numbers = {"expected": TAR.name, **numbers}
        return DecodeError(f"damaged, or not a tar archive: {reason}", path=self._path, **numbers)


def member_error(reason: str, path: str, name: str, advice: str | None = None) -> DecodeError:
    """The error about a member of an archive."""
    return DecodeError(f"member '{printable(name)}': {reason}", path=path, hint=advice)
