"""Files of an fsspec filesystem. The module does not import fsspec, which calls on local files do not need."""

from __future__ import annotations

import errno
import inspect
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from glob import has_magic
from json import JSONDecodeError
from operator import index
from threading import RLock
from typing import Any

from tfrecord_io.base import hide_secrets, printable, secret_url
from tfrecord_io.store.filesystem.google import ask_over_https, google_info, google_listing, google_page, is_encoded
from tfrecord_io.store.filesystem.interface import PAGE_FILES, Entry, escaped_glob, literal_prefix
from tfrecord_io.store.filesystem.os_errors import raise_os_errors, refused_option
from tfrecord_io.store.filesystem.retries import ARGUMENT_ERRORS, disable_s3fs_retries, retry

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
            info = _info_of_headers(answer.headers)
            if info.get("size"):
                break
    return {"name": url, "size": None, **info, "type": "file"}


def _info_of_headers(headers: Any) -> dict[str, Any]:
    info = {name: headers[name] for name in _VERSIONS if headers.get(name)}
    # A server that compresses although it is asked not to states another length.
    if "Content-Length" in headers and headers.get("Content-Encoding", "") in ("", "identity"):
        info["size"] = int(headers["Content-Length"])
    if headers.get("Accept-Ranges") == "none":
        info["partial"] = False
    return info


_LISTING_PAYS = 64  # names in one directory from which on listing it is cheaper than looking up each
_MOST_LOOKUPS = 16  # at the same time
_STORES = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
    **dict.fromkeys(("az", "abfs", "abfss"), "azure"),
    **dict.fromkeys(("http", "https"), "web"),
}
_CACHES = ("simplecache", "filecache", "blockcache")
_READ_ONLY = {
    **dict.fromkeys(("http", "https"), "a web server is read-only"),
    **{protocol: f"a cache is read-only: write to the URL without '{protocol}::'" for protocol in _CACHES},
}
_PREPARED = "_is_prepared_by_tfrecord_io"  # an attribute of a filesystem: this is looked up at each use
_ONE_CONNECTION = {"ftp", "sftp", "ssh"}  # whose clients mix up the answers to calls of several threads
_REQUESTS = "info ls find glob exists isdir cat_file pipe_file makedirs mv cp_file rm_file".split()
_FILE_REQUESTS = "read readinto write flush seek close commit discard".split()
# Messages of Python about numbers and times that an answer should have; other ValueErrors are about arguments.
_NOT_PARSED = ("invalid literal for", "could not convert", "Invalid isoformat")


@dataclass(frozen=True, slots=True)
class FsspecFileSystem:
    """Files of an fsspec filesystem; see `FileSystem`. Cached listings are invalidated before each use."""

    _opened: Any

    @property
    def fsspec(self) -> Any:
        """The filesystem of fsspec, as this process can use it."""
        return reopen_if_forked(self._opened)

    is_local = False

    @property
    def can_list(self) -> bool:
        return can_list(self._opened)

    @property
    def read_only(self) -> str | None:
        """Why no file can be written to the filesystem; None if files can."""
        from fsspec.archive import AbstractArchiveFileSystem

        inner = unwrap(self._opened, "")[0]
        if isinstance(inner, AbstractArchiveFileSystem):
            return "an archive is read-only: write the file elsewhere, and add it"
        return next((_READ_ONLY[protocol] for protocol in protocols(inner) if protocol in _READ_ONLY), None)

    def entry(self, name: str, *, is_file: bool = False) -> Entry | None:
        self.fsspec.invalidate_cache(self.fsspec._parent(name))
        return self._entry(name, is_file)

    def _entry(self, name: str, is_file: bool) -> Entry | None:
        with self._os_errors(name):
            try:
                return self._from_info(name, retry(lambda: self._info(name, is_file)))
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                if error.errno == errno.EINVAL and self.can_list:  # the answer to HEAD has no body, which says why
                    self.fsspec.ls(self.fsspec._parent(name))
                raise

    def describe(self, name: str) -> Mapping[str, Any]:
        """fsspec's current description of a file, by one request."""
        self.fsspec.invalidate_cache(self.fsspec._parent(name))
        return self._entry_of(name, self._info(name, is_file=True)).info or {}

    def _info(self, name: str, is_file: bool) -> dict[str, Any]:
        """fsspec's description of a name."""
        is_object = is_file and self.is_s3
        if (self.can_list and not self._is_google and not is_object) or not self._has_loop:
            return dict(self.fsspec.info(name))
        from fsspec.asyn import sync

        return dict(sync(self.fsspec.loop, self._describe, name, is_file))

    async def _describe(self, name: str, is_file: bool) -> dict[str, Any]:
        """Description of a name by an asynchronous filesystem; `web_info` describes files of web servers."""
        if self._is_google:
            return await google_info(self.fsspec, name, is_file=is_file)
        if is_file and self.is_s3:
            return await _s3_object(self.fsspec, name)
        return dict(await (self.fsspec._info(name) if self.can_list else web_info(self.fsspec, name)))

    async def _described_within(self, limit: Any, name: str, is_file: bool) -> dict[str, Any]:
        async with limit:
            return await self._describe(name, is_file)

    @property
    def _has_loop(self) -> bool:
        """True if requests are made in the loop of fsspec's thread."""
        return bool(self._opened.async_impl) and not self._opened.asynchronous

    @property
    def _is_google(self) -> bool:
        """True if requests are made as in `tfrecord_io.store.filesystem.google`."""
        return store_of(self._opened) == "gcs" and self._has_loop

    @property
    def is_s3(self) -> bool:
        """True if requests are made by s3fs."""
        return store_of(self._opened) == "s3" and self._has_loop

    def entries(self, names: Sequence[str], *, are_files: bool = False) -> list[Entry | None]:
        """Look up many names: by a listing where very many are in one directory, else several at a time."""
        parents = Counter(self.fsspec._parent(name) for name in names)
        listed: dict[str, Entry] = {}
        for parent, count in parents.items():
            self.fsspec.invalidate_cache(parent)
            if count >= _LISTING_PAYS and self.can_list:
                with suppress(OSError, NotImplementedError):  # without permission to list, single look-ups may work
                    listed.update({entry.name: entry for entry in self.listing(parent)})
        unlisted = [name for name in names if name not in listed]
        looked_up = dict(zip(unlisted, self._look_up(unlisted, are_files), strict=True))
        return [listed.get(name) or looked_up.get(name) for name in names]

    def _look_up(self, names: list[str], are_files: bool) -> list[Entry | None]:
        import asyncio  # as slow to import as fsspec, and only needed for remote files

        from fsspec.asyn import AsyncFileSystem, sync

        if not isinstance(self.fsspec, AsyncFileSystem) or self.fsspec.asynchronous:
            return [self._entry(name, are_files) for name in names]

        async def look_up() -> list[Any]:
            limit = asyncio.Semaphore(_MOST_LOOKUPS)
            described = (self._described_within(limit, name, are_files) for name in names)
            return await asyncio.gather(*described, return_exceptions=True)

        entries: list[Entry | None] = []
        for name, answer in zip(names, sync(self.fsspec.loop, look_up), strict=True):
            if isinstance(answer, FileNotFoundError | NotADirectoryError):
                entries.append(None)
            else:
                is_error = isinstance(answer, Exception)
                entries.append(self._entry(name, are_files) if is_error else self._entry_of(name, answer))
        return entries

    def _entry_of(self, name: str, info: Any) -> Entry:
        with self._os_errors(name):
            return self._from_info(name, info)

    def _from_info(self, name: str, info: dict[str, Any]) -> Entry:
        """The entry of a name; before fsspec 2025.3, a DirFileSystem describes its files by their names outside it."""
        return _from_info({**info, "name": name} if "dir" in protocols(self.fsspec) else info)

    def listing(self, directory: str) -> list[Entry]:
        self._check_can_list(directory)
        for name in {directory, directory.rstrip("/")}:  # adlfs keeps what it lists by the second one alone
            self.fsspec.invalidate_cache(name)
        return self._list(directory)

    def _list(self, directory: str, prefix: str = "") -> list[Entry]:
        """The entries of a directory; of S3 those whose names begin with a prefix."""
        with self._os_errors(directory):
            entries = [*map(_from_info, retry(lambda: self._ls(directory, prefix)))]
        itself = directory.rstrip("/")  # S3 lists an empty object for the directory itself
        return [entry for entry in entries if entry.name.rstrip("/") != itself]

    def _ls(self, directory: str, prefix: str) -> list[dict[str, Any]]:
        if not self._is_google and not self.is_s3:
            return list(self.fsspec.ls(directory, detail=True))
        from fsspec.asyn import sync

        if self._is_google:
            return list(sync(self.fsspec.loop, google_listing, self.fsspec, directory))
        return list(sync(self.fsspec.loop, _s3_listing, self.fsspec, directory, prefix))

    def glob(self, pattern: str, literal: int | None = None) -> list[Entry]:
        self._check_can_list(pattern)
        literal = literal_prefix(self, pattern) if literal is None else literal
        escaped = escaped_glob(pattern, literal)
        return self._search(pattern, escaped, lambda fsspec: fsspec.glob(escaped, detail=True))

    def files_in_partition_folders(self, directory: str) -> list[Entry]:
        return self._search(directory, f"{directory}**", lambda fsspec: fsspec.find(directory, detail=True))

    def _search(self, name: str, pattern: str, find: Callable[[Any], dict[str, Any]]) -> list[Entry]:
        """Search a filesystem of fsspec by a function; by our listings, if fsspec passes over errors of folders."""
        from tfrecord_io.store.filesystem.search_by_folder import SearchByFolder

        self.fsspec.invalidate_cache()  # folders below may have listings, too
        with self._os_errors(name):
            if _is_searched_by_folder(self.fsspec, pattern):
                infos = find(SearchByFolder(self._list))
            else:
                infos = retry(lambda: find(self.fsspec))
            return [self._from_info(name, info) for name, info in infos.items()]

    def pages_below(self, directory: str) -> Iterator[tuple[list[Entry], bool]]:
        list_page = google_page if self._is_google else _s3_page if self.is_s3 else None
        if list_page is None or "/" not in directory.rstrip("/"):
            return
        from fsspec.asyn import sync

        token: str | None = ""
        while token is not None:
            call = partial(sync, self.fsspec.loop, list_page, self.fsspec, directory, token, PAGE_FILES)
            try:
                with self._os_errors(directory):
                    page = retry(call)
                    if page is None:
                        return
                    infos, following = page
                    if not (infos or token or following):
                        raise FileNotFoundError(directory)
                    entries, token = [*map(_from_info, infos)], following
            except PermissionError:  # there are policies that allow the listing of folders alone
                if token:
                    raise
                return
            yield [entry for entry in entries if entry.name != directory], token is not None

    @property
    def is_object_store(self) -> bool:
        """True if the store's errors tell an absent object from other failures, without a lookup before."""
        return store_of(self._opened) not in ("web", None)

    def content(self, name: str) -> bytes | None:
        """All bytes of a small file in an object store, by one request; None if it is absent or access is denied."""
        with suppress(FileNotFoundError, IsADirectoryError, PermissionError):
            return self.read_object(name)
        return None

    def read_object(self, name: str) -> bytes:
        """All bytes of a small file, by one request; OSError if it cannot be read."""
        kind: Any = type(self.fsspec)
        is_async = hasattr(kind, "_cat_file")
        one_request = (
            {"max_concurrency": 1} if _takes(kind, "_cat_file" if is_async else "cat_file", "max_concurrency") else {}
        )
        with raise_os_errors(self.display_path(name)):
            return bytes(
                retry(lambda: self.fsspec.cat_file(name, **one_request))
            )  # by one request: no look at its size

    def beginning(self, prefix: str) -> list[Entry] | None:
        """The files whose names begin with a prefix, by one request; None if the store has no such listing."""
        kind: Any = type(self.fsspec)
        if not self.can_list or not hasattr(kind, "_find") or not _takes(kind, "_find", "prefix"):
            return None
        parent, _, base = prefix.rpartition("/")
        self.fsspec.invalidate_cache(parent)
        with self._os_errors(prefix):
            infos = retry(lambda: self.fsspec.find(parent, prefix=base, detail=True))
            return [self._from_info(name, info) for name, info in infos.items()]

    def read_range(self, name: str, begin: int, end: int | None) -> bytes:
        """Bytes of a file, by one request: to its end if `end` is None, or the last ones if `begin` is negative."""
        with self._os_errors(name):
            return bytes(self.fsspec.cat_file(name, start=begin, end=end))

    def make_directory(self, name: str) -> None:
        """Make a directory, which buckets have not; some filesystems miss it only when a file in it is closed."""
        inner = unwrap(self.fsspec, "")[0]
        if name and not inner.async_impl:
            with raise_os_errors(self.display_path(name)):
                self.fsspec.makedirs(name, exist_ok=True)

    def move_file(self, name: str, target: str) -> None:
        """Give a file another name, in one step where the filesystem can.

        fsspec's own `mv`, which most inherit, takes "[", "*" and "?" in a name for a pattern.
        """
        from fsspec import AbstractFileSystem

        inner = unwrap(self.fsspec, "")[0]
        if getattr(type(inner), "mv", None) is not AbstractFileSystem.mv:
            self.fsspec.mv(name, target)
            return
        self.fsspec.cp_file(name, target)
        self.fsspec.rm_file(name)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with raise_os_errors(self.display_path(name)):
            retry(lambda: self._remove(name))

    def _remove(self, name: str) -> None:
        try:
            self.fsspec.rm_file(name)
        except FileNotFoundError:
            pass
        except (OSError, *ARGUMENT_ERRORS):
            raise
        except Exception:  # of any library: that of FTP has one class for all that a server refuses
            if self.entry(name) is not None:
                raise

    def _check_can_list(self, name: str) -> None:
        if not self.can_list:
            reason = "a web server has no listing of its files, so there is nothing to match"
            advice = "name each file, or write {a,b}, {0000..0999} or name@8"
            raise ValueError(f"'{hide_secrets(self.display_path(name))}': {reason}; {advice}")

    def display_path(self, name: str) -> str:
        return secret_url(self._opened.unstrip_protocol(name))  # which makes no request: any process may ask

    @contextmanager
    def _os_errors(self, name: str) -> Iterator[None]:
        """Make errors OSErrors, also those about the form of a server's answer, by fsspec or `_from_info`."""
        path = self.display_path(name)
        with raise_os_errors(path):
            try:
                yield
            except (NotImplementedError, ImportError):
                raise
            except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as error:
                parameters = inspect.signature(type(self.fsspec).__init__).parameters
                if refused := refused_option(error, self.fsspec.storage_options, path, parameters):
                    raise refused from error
                is_argument = isinstance(error, ValueError) and not isinstance(error, JSONDecodeError)
                if is_argument and not str(error).startswith(_NOT_PARSED):
                    raise ValueError(f"'{printable(path)}': {error}") from error
                reason = f"the storage's description of it is damaged ({type(error).__name__}: {printable(error, 100)})"
                raise OSError(errno.EIO, reason, path) from error


def _from_info(info: dict[str, Any]) -> Entry:
    """The entry that fsspec describes; TypeError or LookupError if the description is not one."""
    name, size = info["name"], info.get("size")
    if not isinstance(name, str) or not isinstance(info["type"], str):
        raise TypeError("a name or a type is not text")
    if is_encoded(info):
        info, size = {**info, "size": None}, None
    size = None if size is None else index(size)
    if size is not None and not 0 <= size < 2**63:
        raise TypeError(f"the size {printable(size, 40)}")
    return Entry(name, size, info["type"] == "directory", info)


async def _s3_object(fs: Any, name: str) -> dict[str, Any]:
    """The description of an object, as the ``info`` of s3fs gives it, but without a look for a folder of that name."""
    bucket, key, version = fs.split_path(name)
    if not key:
        return dict(await fs._info(name))
    of_version = {"VersionId": version} if version else {}
    head = await fs._call_s3("head_object", fs.kwargs, fs.req_kw, Bucket=bucket, Key=key, **of_version)
    attributes = {name: head.get(name) for name in ("ETag", "LastModified", "StorageClass", "VersionId", "ContentType")}
    return {**attributes, "size": head["ContentLength"], "name": f"{bucket}/{key}", "type": "file"}


async def _s3_listing(fs: Any, folder: str, prefix: str) -> list[dict[str, Any]]:
    """The objects and folders in a folder whose names begin with a prefix, without a look above an empty folder."""
    folder = folder.rstrip("/")
    if "/" not in folder and not prefix:
        return list(await fs._ls(folder, detail=True))
    infos = list(await fs._lsdir(folder, prefix=prefix))
    if prefix:
        fs.invalidate_cache(folder)  # before 2026, s3fs keeps these names as those of the whole folder
    if not infos:
        raise FileNotFoundError(folder)
    return infos


async def _s3_page(fs: Any, folder: str, token: str, most: int) -> tuple[list[dict[str, Any]], str | None] | None:
    """As `google_page`. The listing of versions has no such pages."""
    if fs.version_aware:
        return None
    bucket, key, _ = fs.split_path(folder)
    more = {"Prefix": f"{key.rstrip('/')}/", "MaxKeys": most, **({"ContinuationToken": token} if token else {})}
    page = await fs._call_s3("list_objects_v2", fs.kwargs, fs.req_kw, Bucket=bucket, **more)
    infos = [
        {**item, "Key": (name := f"{bucket}/{item['Key']}"), "name": name, "size": item["Size"], "type": "file"}
        for item in page.get("Contents", ())
    ]
    return infos, page["NextContinuationToken"] if page.get("IsTruncated") else None


@lru_cache(maxsize=64)
def _takes(kind: Any, method: str, keyword: str) -> bool:
    """True if a method of a class has a keyword."""
    return keyword in inspect.signature(getattr(kind, method)).parameters


def _is_searched_by_folder(fsspec: Any, pattern: str) -> bool:
    """True if a filesystem of fsspec may list one folder after another to find what matches the pattern.

    gcsfs and adlfs list all files below a folder at once, and many filesystems do so for ``**``; s3fs refuses wildcards
    in the name of a bucket; some filesystems match patterns by themselves.
    """
    while hasattr(inner := getattr(fsspec, "fs", None), "storage_options"):  # around another filesystem
        fsspec = inner
    store = store_of(fsspec)
    if not has_magic(pattern) or store in ("gcs", "azure") or (store == "s3" and has_magic(pattern.partition("/")[0])):
        return False
    methods = ("glob", "_glob", "find", "_find") if "**" in pattern else ("glob", "_glob")
    homes = {getattr(type(fsspec), name).__module__ for name in methods if hasattr(type(fsspec), name)}
    return homes <= {"fsspec.spec", "fsspec.asyn"} | ({"s3fs.core"} if "**" not in pattern else set())


def reopen_if_forked(fsspec: Any) -> Any:
    """A filesystem, or in a forked process a copy of one that the parent opened: its event loop is a thread there.

    Those that it wraps, as an ``fs``, are looked at, too. `disable_s3fs_retries`, `ask_over_https` and
    `_use_in_turn` say what else is done.
    """
    fsspec = disable_s3fs_retries(fsspec)
    process, inner = os.getpid(), fsspec
    while inner is not None:
        if getattr(inner, "async_impl", False):
            if inner._pid != process:
                return reopen_if_forked(_opened_again(fsspec, process))
            if not getattr(inner, _PREPARED, False):
                ask_over_https(inner)
                setattr(inner, _PREPARED, True)
        elif hasattr(inner, "protocol") and not _ONE_CONNECTION.isdisjoint(protocols(inner)):
            if getattr(inner, _PREPARED, process) != process:
                return reopen_if_forked(_opened_again(fsspec, process))
            if not hasattr(inner, _PREPARED):
                _use_in_turn(inner)
                setattr(inner, _PREPARED, process)
        inner = getattr(inner, "fs", None)
    return fsspec


def _use_in_turn(fsspec: Any) -> None:
    """Let the calls of a filesystem, and of its files, wait for each other."""
    lock = RLock()

    def lock_calls(instance: Any, names: Sequence[str]) -> None:
        for name in names:
            if hasattr(instance, name):
                setattr(instance, name, partial(call_in_turn, getattr(instance, name)))

    def call_in_turn(call: Any, *arguments: Any, **keywords: Any) -> Any:
        with lock:
            return call(*arguments, **keywords)

    def open_file(call: Any, *arguments: Any, **keywords: Any) -> Any:
        file = call_in_turn(call, *arguments, **keywords)
        lock_calls(file, _FILE_REQUESTS)
        return file

    lock_calls(fsspec, _REQUESTS)
    fsspec._open = partial(open_file, fsspec._open)


@lru_cache(maxsize=64)
def _opened_again(fsspec: Any, process: int) -> Any:
    """A filesystem with the arguments of another one, in a process."""
    arguments, options = fsspec.storage_args, fsspec.storage_options
    return type(fsspec)(*map(_argument, arguments), **{name: _argument(value) for name, value in options.items()})


def _argument(value: Any) -> Any:
    return reopen_if_forked(value) if hasattr(value, "storage_options") else value


def protocols(fsspec: Any) -> tuple[str, ...]:
    """The URL protocols of an fsspec filesystem."""
    return (fsspec.protocol,) if isinstance(fsspec.protocol, str) else tuple(fsspec.protocol)


def unwrap(fsspec: Any, name: str) -> tuple[Any, str]:
    """The filesystem, and the name there, below wrappers that only prepend a directory to names."""
    while "dir" in protocols(fsspec):
        fsspec, name = fsspec.fs, fsspec._join(name)
    return fsspec, name


def store_of(fsspec: Any) -> str | None:
    """The kind of store that an fsspec filesystem is of: "s3", "gcs", "azure" or "web"; None for others."""
    return next((_STORES[protocol] for protocol in protocols(fsspec) if protocol in _STORES), None)


def is_cache(fsspec: Any) -> bool:
    """True if an fsspec filesystem keeps copies of another's files."""
    return not set(_CACHES).isdisjoint(protocols(unwrap(fsspec, "")[0]))


def can_list(fsspec: Any) -> bool:
    """True if an fsspec filesystem can list directories: web servers cannot."""
    return store_of(fsspec) != "web"
