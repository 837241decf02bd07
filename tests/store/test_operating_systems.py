"""The part for Windows, on this system: without the calls that Windows lacks, and with a stand-in for ``msvcrt``.

And how files are replaced.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.base.background import Task
from tfrecord_io.store import operating_systems
from tfrecord_io.store.operating_systems import WindowsSystem

MISSING = ("preadv", "pread", "posix_fadvise", "fchmod", "fchown", "link", "O_CLOEXEC", "O_DIRECTORY", "O_NONBLOCK")
TABLE = pa.table({"id": pa.array(range(1000)), "name": [f"n{i}" for i in range(1000)]})


class Msvcrt:
    """Locks of one byte of a file, each of one descriptor."""

    LK_UNLCK, LK_NBLCK = 0, 2

    def __init__(self) -> None:
        self.holders: dict[tuple[int, int, int], int] = {}
        self.refused = 0

    def locking(self, fd: int, mode: int, count: int) -> None:
        assert count == 1
        status, at = os.fstat(fd), os.lseek(fd, 0, os.SEEK_CUR)
        assert status.st_size <= at < 2**31, "a locked byte cannot be read"
        key = (status.st_dev, status.st_ino, at)
        holder = self.holders.get(key)
        if mode == self.LK_UNLCK:
            if holder != fd:
                raise PermissionError(errno.EACCES, "not locked")
            del self.holders[key]
        elif holder is not None:
            self.refused += 1
            raise PermissionError(errno.EACCES, "locked")
        else:
            self.holders[key] = fd


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> Iterator[Msvcrt]:
    calls = Msvcrt()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    for name in MISSING:
        monkeypatch.delattr(os, name)
    with operating_systems.use(WindowsSystem(calls)):
        yield calls
    assert not calls.holders, "a lock is held for ever"


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("path", "plain", "full"),
    [
        ("C:\\data\\a.tfrecord", "C:/data/a.tfrecord", "C:\\data\\a.tfrecord"),
        ("\\\\server\\share\\a.tfrecord", "//server/share/a.tfrecord", "\\\\server\\share\\a.tfrecord"),
        ("\\\\?\\C:\\a.tfrecord", "\\\\?\\C:\\a.tfrecord", "\\\\?\\C:\\a.tfrecord"),
        ("C:/" + "d/" * 130 + "a", "C:/" + "d/" * 130 + "a", "\\\\?\\C:\\" + "d\\" * 130 + "a"),
        ("//server/share/" + "d/" * 130, None, "\\\\?\\UNC\\server\\share\\" + "d\\" * 129 + "d"),
        ("C:/a/../" + "d/" * 130 + "a", None, "\\\\?\\C:\\" + "d\\" * 130 + "a"),
    ],
)
def test_names(path: str, plain: str | None, full: str) -> None:
    own = WindowsSystem(Msvcrt())
    assert own.plain_name(path) == (path if plain is None else plain)
    assert own.full_name(path) == full


def test_files(windows: Msvcrt, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(TABLE, path)
    with pytest.raises(FileExistsError):
        tfr.write_tfrecord(TABLE, path, mode="error")
    tfr.write_tfrecord(TABLE.slice(0, 10), path, mode="overwrite")
    assert tfr.read_table(tfr.dataset(path, threads=2)).equals(TABLE.slice(0, 10))
    tfr.write_tfrecord(TABLE, tmp_path / "b.tfrecord", mode="error")
    assert _names(tmp_path) == ["a.tfrecord", "b.tfrecord"]


def test_backslashes_separate_the_parts_of_a_path(windows: Msvcrt, tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, f"{tmp_path}\\new.tfrecord")
    assert _names(tmp_path) == ["new.tfrecord"]
    assert tfr.read_table(f"{tmp_path}\\*.tfrecord").equals(TABLE)


def test_sharded_datasets(windows: Msvcrt, tmp_path: Path) -> None:
    folder = tmp_path / "set"
    for rows in (1000, 500):
        tfr.write_tfrecord(TABLE.slice(0, rows), folder, shards=4, mode="overwrite")
    tfr.write_tfrecord(TABLE.slice(500), folder, mode="append")
    assert tfr.read_table(folder).sort_by("id").equals(TABLE)
    assert not [name for name in _names(folder) if ".lock" in name or ".tmp" in name]


def test_random_access(windows: Msvcrt, tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord")
    with tfr.open_random(tmp_path / "a.tfrecord") as records, ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda i: records[i]["name"], range(0, 1000, 3))
        assert list(found) == [f"n{i}" for i in range(0, 1000, 3)]
        assert records[[3, 999, 0]].column("id").to_pylist() == [3, 999, 0]


def test_new_folders(windows: Msvcrt, tmp_path: Path) -> None:
    tfr.write_tfrecord({"image": [b"1", b"2"], "label": ["x", "y"]}, tmp_path / "a.tfrecord")
    (tmp_path / "out").mkdir()  # a rename replaces no folder there
    tfr.formats.write_file_folder(tmp_path / "a.tfrecord", tmp_path / "out", file="image")
    assert len(_names(tmp_path / "out")) >= 2


@pytest.mark.parametrize("failures", [2, 100])
def test_a_file_that_is_open_cannot_be_replaced(
    failures: int, windows: Msvcrt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, replace, left = tmp_path / "a.tfrecord", os.replace, [failures]

    def refuse(source: Any, target: Any) -> None:
        if left[0]:
            left[0] -= 1
            raise PermissionError(errno.EACCES, "Access is denied", source)
        replace(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    if failures == 2:
        tfr.write_tfrecord(TABLE, path)
        assert tfr.read_table(path).equals(TABLE)
    else:
        with pytest.raises(
            PermissionError, match=r"a file that a program has open cannot be replaced: close it"
        ) as info:
            tfr.write_tfrecord(TABLE, path)
        assert info.value.filename == str(path)
        assert _names(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="a directory that is locked is not empty")
def test_a_locked_directory_is_not_removed_and_the_lock_is_of_the_one_that_is_there(tmp_path: Path) -> None:
    path, taken = tmp_path / "d", threading.Event()
    path.mkdir()

    def take() -> None:
        with operating_systems.current.lock_directory(str(path)) as locked:
            assert locked
            with pytest.raises(BlockingIOError):
                operating_systems.current.remove_directory(str(path))
            taken.set()

    with ThreadPoolExecutor(1) as pool:
        with operating_systems.current.lock_directory(str(path)):
            waiting = pool.submit(take)
            assert not taken.wait(0.05)
            path.rename(tmp_path / "removed")
            path.mkdir()
        waiting.result()
    operating_systems.current.remove_directory(str(path))
    assert not path.exists()


def test_one_writer_at_a_time_has_the_lock_of_a_directory(
    windows: Msvcrt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside, most = [0], [0]

    def work(_: int) -> None:
        with operating_systems.current.lock_directory(str(tmp_path)) as locked:
            assert locked
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            threading.Event().wait(0.002)
            inside[0] -= 1

    def refuse(path: str) -> None:
        raise PermissionError(errno.EACCES, "another program has it open", path)

    with monkeypatch.context() as patch, ThreadPoolExecutor(4) as pool:
        patch.setattr(os, "unlink", refuse)
        list(pool.map(work, range(20)))
    assert most == [1]
    assert windows.refused


def test_the_lock_of_a_file_does_not_wait(windows: Msvcrt, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    path.write_bytes(b"{}")
    with ExitStack() as first:
        first.enter_context(operating_systems.current.lock_file(str(path)))
        with pytest.raises(BlockingIOError), operating_systems.current.lock_file(str(path)):
            raise AssertionError
    with operating_systems.current.lock_file(str(path)):
        pass


def test_threads_read_at_their_own_offsets(windows: Msvcrt, tmp_path: Path) -> None:
    data = np.random.default_rng(0).bytes(1 << 20)
    (tmp_path / "a").write_bytes(data)
    fd = os.open(tmp_path / "a", os.O_RDONLY)

    def read(begin: int) -> bool:
        piece = bytearray(4096)
        n = operating_systems.current.read_at(fd, memoryview(piece), begin)
        return piece[:n] == data[begin : begin + 4096]

    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(read, range(0, (1 << 20) + 1, 1000)))
        assert operating_systems.current.read_at(fd, memoryview(bytearray(8)), 1 << 20) == 0
    finally:
        os.close(fd)


class TestReplacedFiles:
    """A large file that is replaced is freed by another thread."""

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(operating_systems, "_LARGE", 1000)

    @staticmethod
    def replace(folder: Path) -> tuple[Path, int]:
        """Replace a file; its path, and the number of descriptors that are open beyond those of before."""
        before = len(os.listdir("/proc/self/fd"))
        (folder / "old").write_bytes(b"old" * 1000)
        (folder / "new").write_bytes(b"new")
        operating_systems.current.replace(str(folder / "new"), str(folder / "old"))
        for _ in range(500):
            if (more := len(os.listdir("/proc/self/fd")) - before) == 0:
                break
            time.sleep(0.01)
        return folder / "old", more

    @pytest.mark.skipif(sys.platform != "linux", reason="/proc")
    def test_the_old_file_is_closed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        closed: list[bytes] = []

        def noted(call: Any, name: str) -> Any:
            closed.append(call.__self__.readall())
            return start(call, name)

        start = Task.start
        monkeypatch.setattr(Task, "start", noted)
        monkeypatch.setattr(
            operating_systems, "_REPLACES_OPEN_FILES", (operating_systems._filesystem(tmp_path.stat().st_dev),)
        )
        path, more = self.replace(tmp_path)
        assert (path.read_bytes(), more, closed) == (b"new", 0, [b"old" * 1000])

    @pytest.mark.skipif(sys.platform != "linux", reason="/proc")
    def test_without_a_thread_it_is_closed_at_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def no_thread(*_: object) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", no_thread)
        path, more = self.replace(tmp_path)
        assert (path.read_bytes(), more) == (b"new", 0)

    def test_what_cannot_be_opened_is_replaced(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def refused(*_: object) -> None:
            raise PermissionError(errno.EACCES, "refused")

        (tmp_path / "a").write_bytes(b"old" * 1000)
        (tmp_path / "b").write_bytes(b"new")
        with monkeypatch.context() as patch:
            patch.setattr(os, "open", refused)
            operating_systems.current.replace(str(tmp_path / "b"), str(tmp_path / "a"))
        assert (tmp_path / "a").read_bytes() == b"new"

    def test_other_filesystems_get_no_open_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """NFS and FUSE rename an open file first, so that for a moment no file has its name."""
        (tmp_path / "a").write_bytes(b"old" * 1000)
        for kind in (b"nfs4", b"fuse.sshfs", b""):
            monkeypatch.setattr(operating_systems, "_filesystem", lambda _, kind=kind: kind)
            assert operating_systems._opened_if_large(str(tmp_path / "a"), 0) is None

    @pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/mountinfo")
    def test_the_type_of_a_filesystem(self) -> None:
        assert operating_systems._filesystem(os.stat("/proc").st_dev) == b"proc"
        assert operating_systems._filesystem(os.makedev(4095, 1)) == b""
