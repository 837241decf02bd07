"""The members of a tar archive that is read once, in order, whoever made it: memory is bounded by the limits below.

Python's tarfile reads headers of any stated size, follows extension headers by recursion, and takes a damaged header
for the end of the archive. Format: POSIX ustar and pax, and GNU's long names
(https://www.gnu.org/software/tar/manual/html_node/Standard.html).
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tfrecord_io.errors import DecodeError, printable

MAX_HEADER_BYTES = 16 << 20  # of one extension header: a long name, or pax records with extended attributes
_MOST_DIGITS = 20
_CHUNK = 1 << 20

_LONG = {tarfile.GNUTYPE_LONGNAME: "path", tarfile.GNUTYPE_LONGLINK: "linkpath"}
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_KEPT = (b"path", b"linkpath", b"size")  # of the records of pax; all others are about owners, times and access
_SPARSE = b"GNU.sparse."


@dataclass(slots=True)
class Member:
    """A member, whose content is read by `read` before the next one is taken.

    Attributes
    ----------
    info : tarfile.TarInfo
        With the name, the target and the size that extension headers state.
    """

    info: tarfile.TarInfo
    _archive: _Archive

    def read(self) -> bytes:
        """The content, or as much of it as the archive has."""
        return self._archive.read()


def tar_members(file: Any, path: str) -> Iterator[Member]:
    """The members of the archive in a binary file, in order.

    Raises
    ------
    DecodeError
        It is not an archive, is damaged, or an extension header is larger than 16 MiB or contradicts itself.
    """
    return _Archive(file, path).members()


class _Archive:
    def __init__(self, file: Any, path: str) -> None:
        self._file, self._path = file, path
        self.left = self._padding = 0  # of the member at hand
        self._offset = 0

    def members(self) -> Iterator[Member]:
        lasting: dict[str, str] = {}  # by global pax headers
        stated: dict[str, str] = {}  # for the next member
        while (info := self._header()) is not None:
            if info.type in _LONG:
                content = self._extension(info, "a long name")
                name = content.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")
                stated.setdefault(_LONG[info.type], name)
            elif info.type in _PAX:
                stated = self._records(self._extension(info, "a pax header")) | stated
            elif info.type == tarfile.XGLTYPE:
                lasting |= self._records(self._extension(info, "a global pax header"))
            else:
                self._apply(info, lasting | stated)
                stated = {}
                self._begin(info.size if _has_content(info) else 0)
                yield Member(info, self)
                self._skip()
        if stated:
            raise self._error("it ends behind the extension header of a member")

    def read(self) -> bytes:
        """The rest of the member at hand; less at the end of the archive."""
        content = self._take(self.left)
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
        rest = self.left + self._padding
        while rest:
            part = self._take(min(rest, _CHUNK))
            if not part:
                raise self._error(f"it ends {rest} bytes before the next header")
            rest -= len(part)
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
            raise self._damaged(info, f"its size is {info.size}")
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

    def _apply(self, info: tarfile.TarInfo, stated: dict[str, str]) -> None:
        """Give a member what its extension headers state."""
        if name := stated.get("path"):
            info.name = name.rstrip("/")
        info.linkname = stated.get("linkpath") or info.linkname
        if info.type == tarfile.GNUTYPE_SPARSE or "sparse" in stated:
            advice = "write the archive without the option sparse of GNU tar"
            raise self._damaged(info, "a sparse file, of which the archive has parts", advice)
        if size := stated.get("size"):
            if not (size.isascii() and size.isdigit() and len(size) <= _MOST_DIGITS):
                raise self._damaged(info, f"its size is '{printable(size, 40)}'")
            info.size = int(size)

    def _damaged(self, info: tarfile.TarInfo, reason: str, advice: str | None = None) -> DecodeError:
        return DecodeError(f"member '{printable(info.name)}': {reason}", path=self._path, advice=advice)

    def _error(self, reason: str, **numbers: Any) -> DecodeError:
        numbers = {"expected": "tar", **numbers}
        return DecodeError(f"damaged, or not a tar archive: {reason}", path=self._path, **numbers)


def _has_content(info: tarfile.TarInfo) -> bool:
    """Whether content follows the header: not that of a link, directory or device, whatever size it states."""
    return info.isreg() or info.type not in tarfile.SUPPORTED_TYPES
