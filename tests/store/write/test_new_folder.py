"""Folders of any files: what an error of writing one of them says, and leaves."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from forked import interpreter
from tfrecord_io.base import StorageOptions
from tfrecord_io.store import operating_systems
from tfrecord_io.store.write.new_folder import NewFolder


@pytest.mark.fault(66)
def test_a_full_disk_names_the_file_and_leaves_nothing(tmp_path: Path) -> None:
    code = f"""
        import errno, resource
        from tfrecord_io.base import StorageOptions
        from tfrecord_io.store.write.new_folder import NewFolder
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            with NewFolder.begin({str(tmp_path / "a")!r}, StorageOptions.DEFAULT) as folder:
                folder.write("sub/b.bin", bytes(100))
                folder.write("sub/c.bin", bytes(10_000))
        except OSError as error:
            assert (error.errno, error.filename) == (errno.EFBIG, {str(tmp_path / "a/sub/c.bin")!r}), repr(error)
        else:
            raise SystemExit("no error")
    """
    subprocess.run([*interpreter(), "-c", textwrap.dedent(code)], check=True)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, mode: int = 0o777) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setattr(os, "makedirs", lambda *_, **__: None)
    with pytest.raises(PermissionError) as caught:
        NewFolder.begin(str(tmp_path / "a"), StorageOptions.DEFAULT)
    assert caught.value.filename == str(tmp_path / "a")


@pytest.mark.skipif(sys.platform != "linux", reason="the names of descriptors and syncfs are those of Linux")
@pytest.mark.parametrize("has_syncfs", [True, False])
def test_the_files_are_durable_before_the_folder_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_syncfs: bool
) -> None:
    calls: list[tuple[str, str]] = []

    def noted(name: str, call: Any) -> Any:
        return lambda fd: (calls.append((name, os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))), call(fd))[1]

    rename = os.rename
    monkeypatch.setattr(os, "rename", lambda *paths: (calls.append(("rename", "a")), rename(*paths)))
    monkeypatch.setattr(os, "fsync", noted("fsync", os.fsync))
    real = operating_systems._syncfs()
    monkeypatch.setattr(operating_systems, "_syncfs", lambda: noted("syncfs", real) if has_syncfs else None)
    with NewFolder.begin(str(tmp_path / "a"), StorageOptions.DEFAULT) as folder:
        folder.write("sub/b.bin", b"b")
        folder.write("c.bin", b"c")
    at = calls.index(("rename", "a"))
    before = {name for _, name in calls[:at]}
    assert {"b.bin", "c.bin", "sub"} <= before or (has_syncfs and calls[0][0] == "syncfs")
    assert calls[at + 1 :] == [("fsync", tmp_path.name)]


def test_a_folder_whose_files_cannot_be_synced_is_not_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(folder: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), folder)

    monkeypatch.setattr(operating_systems.current, "sync_folder", fail)
    with (
        pytest.raises(OSError, match="Input/output error") as caught,
        NewFolder.begin(str(tmp_path / "a"), StorageOptions.DEFAULT),
    ):
        pass
    assert caught.value.filename == str(tmp_path / "a")
    assert os.listdir(tmp_path) == []
