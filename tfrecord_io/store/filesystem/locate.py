"""Find the filesystem of a path: the local one, without fsspec, or any that fsspec supports.

`Location.of` is asked for each path that is read or written. fsspec is imported only for a URL or a `filesystem`: its
import takes longer than reading a small file.

Tests: tests/store/filesystem/test_locate.py, and tests/end_to_end/test_stores.py with a server of each store.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeGuard

from tfrecord_io.base import StorageOptions, for_cli, needs, printable
from tfrecord_io.errors import MissingDependencyError
from tfrecord_io.store import operating_systems
from tfrecord_io.store.filesystem.interface import FileSystem, LocalFileSystem

if TYPE_CHECKING:
    from tfrecord_io.store.filesystem.remote import FsspecFileSystem

IN_MEMORY = "; data in memory is read from io.BytesIO(data)"  # after "not bytes"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(://|::)")  # a single letter is a name, or a drive
_NO_HADOOP = "Unable to load lib(?P<library>jvm|hdfs)|Prior attempt to load libhdfs failed"
_hadoop_failure: list[str] = []  # the library that pyarrow did not load when it first tried, and why


class _Protocol(NamedTuple):
    """Facts about the URLs of one protocol; others are fsspec's alone."""

    extra: str = ""  # the extra of this package that installs what it needs,
    package: str = ""  # or the package
    has_bucket: bool = False  # after the slashes a bucket or container is named


_S3 = _Protocol(extra="s3", has_bucket=True)
_GOOGLE = _Protocol(extra="gcs", has_bucket=True)
_AZURE = _Protocol(extra="azure", has_bucket=True)
_HTTP = _Protocol(package="aiohttp")
_PROTOCOLS = {
    "s3": _S3,
    "s3a": _S3,
    "gs": _GOOGLE,
    "gcs": _GOOGLE,
    "az": _AZURE,
    "abfs": _AZURE,
    "abfss": _AZURE,
    "http": _HTTP,
    "https": _HTTP,
    "hf": _Protocol(package="huggingface_hub"),
    "memory": _Protocol(),
}
_WITH_BUCKET = "|".join(protocol for protocol, row in _PROTOCOLS.items() if row.has_bucket)
_NO_BUCKET = rf"(?:^|::)(?:{_WITH_BUCKET})://(?:/|$)"


class Location(NamedTuple):
    """A file or directory, by its name in a filesystem; it need not exist."""

    fs: FileSystem
    name: str

    @property
    def is_local(self) -> bool:
        return self.fs.is_local

    @property
    def fsspec(self) -> Any:
        """The filesystem of fsspec; None for a local file."""
        return self.fs.fsspec if is_remote(self.fs) else None

    @property
    def identity(self) -> tuple[Any, str]:
        """The identity of the filesystem, and the name of a file or directory there, without a slash at its end."""
        if not is_remote(self.fs):
            return None, os.path.realpath(self.name)
        protocol = self.fs.fsspec.protocol
        options = getattr(self.fs.fsspec, "storage_options", None) or {}
        endpoint = options.get("endpoint_url") or (options.get("client_kwargs") or {}).get("endpoint_url")
        account = getattr(getattr(self.fs.fsspec, "service_client", None), "url", None)  # of Azure
        store = (protocol if isinstance(protocol, str) else tuple(protocol), str(endpoint or account))
        return store, self.name.rstrip("/")

    def identities(self) -> set[tuple[Any, ...]]:
        """What identifies the file: its place and, of a local one, its inode."""
        identities: set[tuple[Any, ...]] = {self.identity}
        if self.is_local:
            with suppress(FileNotFoundError, NotADirectoryError):
                status = os.stat(self.name)
                identities.add((status.st_dev, status.st_ino, None))
        return identities

    def check_writable(self) -> None:
        """Raise OSError, without a request, if a file is to be written to what is read-only, or to an empty path.

        A slash after an empty path, for a name in this directory, would make it the root directory.
        """
        if not self.name and not is_remote(self.fs):
            raise FileNotFoundError(errno.ENOENT, "the path of the target is empty", self.name)
        if is_remote(self.fs) and self.fs.read_only is not None:
            raise OSError(errno.EROFS, self.fs.read_only, self.fs.display_path(self.name))

    def status(self) -> os.stat_result | None:
        """The owner and mode of a local file; None if it does not exist or is remote."""
        if not self.is_local:
            return None
        try:
            return os.stat(operating_systems.current.full_name(self.name))
        except OSError:  # `open_output` reports it
            return None

    def make_parent(self) -> tuple[str, ...]:
        """Make the directory of a local file; buckets have none. Returns the directories this made, deepest first."""
        from tfrecord_io.store.filesystem.directories import create_directories

        return create_directories(os.path.dirname(self.name)) if self.is_local else ()

    @contextmanager
    def new_parent(self) -> Iterator[None]:
        """Make the directory of a local file; an exception in the block removes the directories this made, if empty."""
        from tfrecord_io.store.filesystem.directories import remove_directories

        created = self.make_parent()
        try:
            yield
        except BaseException:
            remove_directories(created)
            raise

    def remove(self) -> None:
        """Remove the file if it exists and may be removed."""
        with suppress(PermissionError, IsADirectoryError):
            self.fs.remove(self.name)

    @staticmethod
    def text_of(path: str | os.PathLike[str]) -> str:
        """The path as text; a TypeError for one of bytes."""
        text = os.fspath(path)
        if isinstance(text, bytes):
            raise TypeError(f"a path is str or PathLike, not bytes{IN_MEMORY}")
        return text

    @staticmethod
    def storage_for(paths: Iterable[str | os.PathLike[str]], storage: StorageOptions) -> StorageOptions:
        """The storage of some paths, without options for URLs where none is one."""
        return storage if any(map(Location.is_url, paths)) else storage._replace(storage_options=None)

    @staticmethod
    def is_url(path: str | os.PathLike[str]) -> bool:
        """True if a path begins with a protocol."""
        return _URL.match(Location.text_of(path)) is not None

    @staticmethod
    def of(path: str | os.PathLike[str], storage: StorageOptions = StorageOptions.DEFAULT) -> Location:
        """Find the filesystem that a path is in, and its name there.

        If the package for this kind of URL is not installed, this is a MissingDependencyError; if the kind of URL is
        unknown, it has no bucket, or one slash after its protocol, `storage_options` are given for a local path, or the
        path has a lone surrogate, a ValueError.
        """
        text = Location.text_of(path)
        if not text.isascii():
            _check_letters(text)
        if storage.filesystem is not None:
            if storage.storage_options:
                raise ValueError("storage_options= is for URLs, and has no effect with filesystem=")
            fsspec_filesystem = _as_fsspec(storage.filesystem)
            return _wrap(fsspec_filesystem, fsspec_filesystem._strip_protocol(text), text)
        if _URL.match(text) is not None:
            return _locate_url(text, storage.storage_options or {})
        protocol, slash, _ = text.partition(":/")
        if slash and protocol in _PROTOCOLS and not os.path.lexists(text.partition("/")[0]):
            reason = "a URL has two slashes after its protocol, of which pathlib.Path keeps one"
            raise ValueError(f"'{printable(text)}': {reason}: pass it as text")
        if storage.storage_options and not storage.of_both:
            reason = f"is for URLs, and '{printable(text)}' is a local path"
            raise for_cli(ValueError(f"storage_options= {reason}"), f"--storage-option {reason}")
        if text.startswith("~") and not os.path.lexists(text):
            text = os.path.expanduser(text)
        # One slash at the end: below "d//" the system lists "d//a", and a walk of "d/" would take it for another file.
        name = operating_systems.current.plain_name(text)
        return Location(LocalFileSystem(), re.sub("(?<=[^/])/+$", "/", name) if name.endswith("//") else name)


def _check_letters(text: str) -> None:
    """Raise ValueError for a path that no file name of this system can be."""
    try:
        os.fsencode(text)  # a name whose bytes are not UTF-8 has surrogates, too, which stand for them (PEP 383)
    except UnicodeEncodeError:
        reason = "the path has a lone surrogate, which no file name can have: pass the name as os.listdir gives it"
        if not re.search("[\ud800-\udfff]", text):
            reason = f"the system's encoding, {sys.getfilesystemencoding()}, lacks a letter of it: set PYTHONUTF8=1"
        raise ValueError(f"'{printable(text)}': {reason}") from None


def _locate_url(url: str, options: Mapping[str, Any]) -> Location:
    """The filesystem of a URL, and the name there; see `Location.of`."""
    is_s3 = _protocol(url) is _S3
    if re.search(_NO_BUCKET, url):
        buckets = "s3://bucket/name, gs://bucket/name, az://container/name"
        raise ValueError(f"'{printable(url)}' names no bucket: expected {buckets}")
    if is_s3 and "?versionId=" in url:
        how = "fsspec.filesystem('s3', version_aware=True).open(path, version_id=…)"
        raise ValueError(f"'{printable(url)}': no URL is that of one version of an object: pass the file {how}")
    from tfrecord_io.store.filesystem.os_errors import refused_option, request_blocking
    from tfrecord_io.store.filesystem.retries import s3_options

    try:
        url_options = s3_options(options) if is_s3 else dict(options)
        for link in url.split("::")[1:]:
            if _protocol(link) is _S3:
                protocol = link.partition("://")[0]
                url_options[protocol] = s3_options(url_options.get(protocol) or {})
        # Some connect here; of a chained URL, the file that another one is in is opened.
        fsspec_filesystem, name = request_blocking(partial(_open_url, url, url_options), url)
        return _wrap(fsspec_filesystem, name, url)
    except MissingDependencyError:
        raise
    except ImportError as error:
        _raise_missing(url, error)
    except ValueError as error:
        raise _refused_url(url, error) or error from error
    except TypeError as error:
        raise refused_option(error, options, url) or error from error


def _protocol(link: str) -> _Protocol | None:
    """The protocol at the start of a URL, or of a part of a chained URL."""
    protocol, slashes, _ = link.partition("://")
    return _PROTOCOLS.get(protocol) if slashes else None


def is_remote(fs: FileSystem) -> TypeGuard[FsspecFileSystem]:
    """True if the filesystem is an `FsspecFileSystem`; that class is not imported for local files."""
    return type(fs) is not LocalFileSystem


def _open_url(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The filesystem of fsspec of a URL, and the name there.

    Raises
    ------
    MissingDependencyError
        pyarrow finds no libjvm or libhdfs for an ``hdfs://`` URL. It looks for them once in a process, so the reason
        is that of the first time.
    """
    import fsspec

    try:
        fsspec_filesystem, name = fsspec.core.url_to_fs(_plain_file_names(url), **options)
    except OSError as error:
        tried = re.match(_NO_HADOOP, str(error))
        if tried is None:
            raise
        if tried["library"] is not None:
            details = (line for line in str(error).splitlines()[1:] if not line.endswith(os.strerror(errno.ENOENT)))
            _hadoop_failure[:] = [f"lib{tried['library']}", *details][:2]
        failure = ": ".join(_hadoop_failure or ["libjvm, or libhdfs"])
        text = f"hdfs:// needs Java and Hadoop's client, and pyarrow cannot load {failure}"
        how = "set JAVA_HOME, HADOOP_HOME and CLASSPATH before Python starts (docs/howto/hdfs.md)"
        raise MissingDependencyError(f"{text}; {how}; webhdfs:// needs neither", path=url) from None
    return fsspec_filesystem, name


def _plain_name(name: str) -> str:
    """The name of a file in a URL, as `pathlib.Path.as_uri` writes it (RFC 8089), and fsspec does not decode it."""
    from urllib.parse import unquote_to_bytes

    return os.fsdecode(unquote_to_bytes(os.fsencode(name)))


def _plain_file_names(url: str) -> str:
    """A chained URL whose ``file://`` links, of files that archives are in, have plain names.

    >>> _plain_file_names("zip://a%20b::file:///data/a%20b.zip")
    'zip://a%20b::file:///data/a b.zip'
    """
    first, *links = url.split("::")
    return "::".join([first, *(_plain_name(link) if link.startswith("file://") else link for link in links)])


def _raise_missing(url: str, error: ImportError) -> NoReturn:
    """Raise the error that names what to install for a URL; each part of a chained URL has a protocol."""
    protocols = [part.partition("://")[0] for part in url.split("::")]
    rows = [(name, row) for name in protocols if (row := _PROTOCOLS.get(name)) and (row.extra or row.package)]
    if not rows:
        raise MissingDependencyError(str(error), path=url) from error
    protocol, row = next((found for found in rows if found[1].extra), rows[0])
    with needs(row.extra, f"{protocol}://", requirement=row.package, path=url):
        raise error


def _refused_url(url: str, error: ValueError) -> ValueError | None:
    """The error that names the protocol that was probably meant, or says how to name the account of Azure."""
    from fsspec import available_protocols

    protocols = available_protocols()
    unknown = next((part for part in re.findall(r"(?:^|::)([^:/]+)(?:://|(?=::))", url) if part not in protocols), None)
    if unknown is not None:
        from tfrecord_io.base import did_you_mean  # for mistakes only

        question = did_you_mean(unknown, protocols)
        return ValueError(f"'{printable(url)}': unknown protocol '{printable(unknown)}'{question and f'; {question}'}")
    if "account_name" not in str(error):
        return None
    advice = f"pass storage_options={ {'account_name': '…'}!r}, with a key or a token"
    reason = f"'{printable(url)}': no account of Azure is named"
    return ValueError(f"{reason}; {advice}, or set AZURE_STORAGE_ACCOUNT_NAME or AZURE_STORAGE_CONNECTION_STRING")


def _as_fsspec(filesystem: Any) -> Any:
    """Return an fsspec filesystem unchanged, and wrap one of pyarrow."""
    if type(filesystem).__module__.partition(".")[0] == "pyarrow":
        from tfrecord_io.store.filesystem.arrow_filesystem import ArrowFileSystem

        return ArrowFileSystem(filesystem)
    import fsspec

    if not isinstance(filesystem, fsspec.AbstractFileSystem):
        raise TypeError(f"filesystem= takes one of fsspec or pyarrow.fs, not {type(filesystem).__name__}")
    return filesystem


def _wrap(fsspec_filesystem: Any, name: str, path: str) -> Location:
    from fsspec.implementations import local

    from tfrecord_io.store.filesystem.remote import FsspecFileSystem

    if isinstance(fsspec_filesystem, local.LocalFileSystem):
        return Location(LocalFileSystem(), _plain_name(name) if path.startswith("file://") else name)
    return Location(FsspecFileSystem(fsspec_filesystem), name)
