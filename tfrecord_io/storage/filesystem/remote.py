"""Where files are that fsspec reaches."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tfrecord_io.storage.filesystem.errors import to_os_error, told_as_os_error, tried_again
from tfrecord_io.storage.filesystem.local import Entry, lists, literal_prefix

_LISTING_PAYS = 64  # so many names in one directory are looked up by listing it
_TOGETHER = 16  # names that are looked up at the same time
_ABSENT_STATUS = (404, 410)


@dataclass(frozen=True, slots=True)
class FsspecFileSystem:
    """Files of an fsspec filesystem. Its listings may be old ones: they are fetched anew."""

    fs: Any

    @property
    def lists(self) -> bool:
        return lists(self.fs)

    def entry(self, name: str) -> Entry | None:
        self.fs.invalidate_cache(self.fs._parent(name))
        return self._entry(name)

    def _entry(self, name: str) -> Entry | None:
        with told_as_os_error(self.shown(name)):
            try:
                return _from_info(tried_again(lambda: self.fs.info(name)))
            except (FileNotFoundError, NotADirectoryError) as error:
                self._refuse_no_answer(name, error)
                return None

    def _refuse_no_answer(self, name: str, error: OSError) -> None:
        """Raise OSError where a web server said something else than that there is no such file."""
        cause = error.__cause__
        if self.lists or not isinstance(cause, Exception) or getattr(cause, "status", None) in _ABSENT_STATUS:
            return
        raise to_os_error(cause, self.shown(name)) from error

    def entries(self, names: Sequence[str]) -> list[Entry | None]:
        """Look up many names: by a listing where very many are in one directory, else several at a time."""
        parents = Counter(self.fs._parent(name) for name in names)
        known: dict[str, Entry] = {}
        for parent, count in parents.items():
            self.fs.invalidate_cache(parent)
            if count >= _LISTING_PAYS and self.lists:
                with suppress(OSError, NotImplementedError):  # a server that cannot list can still answer for each name
                    known.update({e.name: e for e in self.listing(parent)})
        unknown = [name for name in names if name not in known]
        found = dict(zip(unknown, self._each(unknown), strict=True))
        return [known.get(name) or found.get(name) for name in names]

    def _each(self, names: list[str]) -> list[Entry | None]:
        import asyncio  # as slow to import as fsspec, and needed by remote files alone

        from fsspec.asyn import AsyncFileSystem, sync

        if not isinstance(self.fs, AsyncFileSystem) or self.fs.asynchronous:
            return [self._entry(name) for name in names]

        async def look_up() -> list[Any]:
            turn = asyncio.Semaphore(_TOGETHER)

            async def info(name: str) -> Any:
                async with turn:
                    return await self.fs._info(name)

            return await asyncio.gather(*(info(name) for name in names), return_exceptions=True)

        found: list[Entry | None] = []
        for name, said in zip(names, sync(self.fs.loop, look_up), strict=True):
            if isinstance(said, FileNotFoundError | NotADirectoryError):
                self._refuse_no_answer(name, said)
                found.append(None)
            else:
                found.append(self._entry(name) if isinstance(said, Exception) else _from_info(said))
        return found

    def listing(self, directory: str) -> list[Entry]:
        self._refuse_listing(directory)
        self.fs.invalidate_cache(directory)
        with told_as_os_error(self.shown(directory)):
            found = [_from_info(i) for i in tried_again(lambda: self.fs.ls(directory, detail=True))]
        return [
            e for e in found if e.name.rstrip("/") != directory.rstrip("/")
        ]  # S3's empty object for the directory itself

    def glob(self, pattern: str) -> list[Entry]:
        self._refuse_listing(pattern)
        cut = literal_prefix(self, pattern)
        self.fs.invalidate_cache(pattern[:cut])
        with told_as_os_error(self.shown(pattern)):
            found = tried_again(lambda: self.fs.glob(glob.escape(pattern[:cut]) + pattern[cut:], detail=True))
        return [_from_info(i) for i in found.values()]

    def _refuse_listing(self, name: str) -> None:
        if not self.lists:
            raise ValueError(
                f"'{self.shown(name)}': a web server has no listing of its files, so there is nothing to match; "
                "name each file, or write {a,b}, {0000..0999} or name@8"
            )

    def shown(self, name: str) -> str:
        return str(self.fs.unstrip_protocol(name))


def _from_info(info: dict[str, Any]) -> Entry:
    return Entry(info["name"], info.get("size"), info["type"] == "directory", info)
