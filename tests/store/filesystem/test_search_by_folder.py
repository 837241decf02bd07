"""Searches for files in filesystems that list one folder at a time."""

from __future__ import annotations

import errno
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest
from fsspec import AbstractFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given
from hypothesis import strategies as st

from limited import limited
from servers import Bucket, around_requests, requests_of
from tfrecord_io.store.filesystem.interface import Entry
from tfrecord_io.store.filesystem.remote import FsspecFileSystem

NAMES = st.sampled_from(["a", "b", "ab", "a.b", ".a", "p=1", "[a]"])
PARTS = st.sampled_from(["a", "b", "*", "a*", "?", "[ab]", "[!a]", "p=*", "*b", ".*", "**", "[[]a]"])


class ByFolder(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory, found by a listing of each folder."""

    cachable = False
    find = AbstractFileSystem.find


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=8), st.lists(PARTS, min_size=1, max_size=4))
def test_a_search_by_folder_finds_what_fsspec_finds(files: list[list[str]], parts: list[str]) -> None:
    fs = ByFolder()
    fs.store.clear()
    fs.pseudo_dirs[:] = [""]
    names = {"/d/" + "/".join(file) for file in files}
    fs.pipe({name: b"x" for name in names if not any(other.startswith(f"{name}/") for other in names)})
    pattern = "/d/" + "/".join(parts)
    found = [entry.name for entry in FsspecFileSystem(fs).glob(pattern, literal=len("/d"))]
    assert found == [name for name in fs.glob(pattern) if name != "/d"]


@pytest.mark.parametrize("wrap", [lambda fs: fs, lambda fs: DirFileSystem("/", fs=fs)], ids=["memory", "dir"])
@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "Permission denied"), OSError(errno.EIO, "broken")])
def test_a_folder_that_cannot_be_listed_is_an_error(
    monkeypatch: pytest.MonkeyPatch, error: OSError, wrap: Callable[[Any], Any]
) -> None:
    fs = _memory(monkeypatch, error)
    files = FsspecFileSystem(wrap(fs))
    patterns = ("/d/*/part-*", "/d/**", "/d/q=2/*", "/d/q=2/p*")
    searches: list[Callable[[], list[Entry]]] = [partial(files.glob, pattern) for pattern in patterns]
    searches.append(lambda: files.files_in_partition_folders("/d/"))
    for search in searches:
        with limited(tries=1), pytest.raises(type(error)) as caught:
            search()
        assert caught.value.errno == error.errno
        assert "d/q=2" in str(caught.value.filename)
    assert [entry.name for entry in files.glob("/d/p=1/part-*")] == ["/d/p=1/part-0"]


def test_a_folder_that_is_removed_during_the_search_has_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    fs = _memory(monkeypatch, FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)))
    assert [entry.name for entry in FsspecFileSystem(fs).glob("/d/*/part-*")] == ["/d/p=1/part-0"]
    assert FsspecFileSystem(fs).glob("/e/*") == []


@pytest.mark.parametrize("path", ["d/*.tfrecord", "d/a*", "d/*/*", "d/p=*/b*", "d/**"])
def test_no_file_is_missing_after_an_error_of_any_request(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Each request of a search fails once: a connection that was reset while a folder was listed left it out."""
    names = [f"{bucket.name}/d/{folder}{name}.tfrecord" for folder in ("", "p=1/", "p=2/") for name in ("a", "b")]
    bucket.fs.pipe(dict.fromkeys(names, b"x"))
    failing, made = -1, 0

    async def handle(_name: str, _key: str, request: Callable[[], Awaitable[Any]]) -> Any:
        nonlocal made
        made += 1
        if made - 1 == failing:
            raise ConnectionResetError(errno.ECONNRESET, "reset by a test")
        return await request()

    around_requests(bucket, monkeypatch, handle)
    with limited(backoff_seconds=0.0):
        expected = FsspecFileSystem(bucket.fs).glob(f"{bucket.name}/{path}")
        assert {entry.name for entry in expected} & {*names}
        for failing in range(made):
            made = 0
            assert FsspecFileSystem(bucket.fs).glob(f"{bucket.name}/{path}") == expected, failing


def test_s3_lists_the_names_with_the_prefix_of_a_pattern(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    s3.fs.pipe({f"{s3.name}/d/{name}": b"x" for name in ("p=1/a", "p=2/a", "q=1/a")})
    listed: list[str] = []
    real = s3.fs._lsdir

    async def lsdir(path: str, *arguments: Any, prefix: str = "", **keywords: Any) -> Any:
        listed.append(f"{path}/{prefix}".removeprefix(s3.name))
        return await real(path, *arguments, prefix=prefix, **keywords)

    monkeypatch.setattr(type(s3.fs), "_lsdir", lambda fs, *arguments, **keywords: lsdir(*arguments, **keywords))
    found = FsspecFileSystem(s3.fs).glob(f"{s3.name}/d/p=*/a", literal=len(f"{s3.name}/d"))
    assert [entry.name.removeprefix(s3.name) for entry in found] == ["/d/p=1/a", "/d/p=2/a"]
    assert listed == ["/d/p=", "/d/p=1/", "/d/p=2/"]


def test_wildcards_in_the_name_of_a_bucket_are_refused(s3: Bucket) -> None:
    with pytest.raises(ValueError, match="Cannot traverse all of S3"):
        FsspecFileSystem(s3.fs).glob("*/a", literal=0)


def test_a_filesystem_that_matches_patterns_itself_does() -> None:
    class Own(ByFolder):
        def glob(self, path: str, **options: Any) -> Any:
            return {"/own": {"name": "/own", "size": 1, "type": "file"}}

    assert [entry.name for entry in FsspecFileSystem(Own()).glob("/d/*")] == ["/own"]


@pytest.mark.parametrize("pattern", ["*.tfrecord", "**"])
def test_stores_that_list_all_files_by_one_request_are_searched_so(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    bucket.fs.pipe({f"{bucket.name}/d/p={folder}/a.tfrecord": b"x" for folder in range(5)})
    path = f"{bucket.name}/d/{'' if pattern == '**' else '*/'}{pattern}"
    asked = requests_of(bucket, monkeypatch, lambda: FsspecFileSystem(bucket.fs).glob(path, len(f"{bucket.name}/d")))
    assert asked.total() <= (6 if bucket.protocol == "s3" and pattern != "**" else 3)


def _memory(monkeypatch: pytest.MonkeyPatch, error: OSError) -> ByFolder:
    """Two folders with a file each, of which the second one cannot be listed."""
    fs = ByFolder()
    fs.store.clear()
    fs.pipe({"/d/p=1/part-0": b"x", "/d/q=2/part-0": b"x"})

    def list_folder(path: str, detail: bool = True, **options: Any) -> Any:
        if path.rstrip("/") == "/d/q=2":
            raise error
        return ByFolder.ls(fs, path, detail=detail, **options)

    monkeypatch.setattr(fs, "ls", list_folder)
    return fs
