"""Folders of any files: what an error of writing one of them says, and leaves."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tfrecord_io.options import DEFAULT_STORAGE
from tfrecord_io.storage.write.new_folder import new_folder


@pytest.mark.fault(66)
def test_a_full_disk_names_the_file_and_leaves_nothing(tmp_path: Path) -> None:
    code = f"""
        import errno, resource
        from tfrecord_io.options import DEFAULT_STORAGE
        from tfrecord_io.storage.write.new_folder import new_folder
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            with new_folder({str(tmp_path / "a")!r}, DEFAULT_STORAGE) as folder:
                folder.write("sub/b.bin", bytes(100))
                folder.write("sub/c.bin", bytes(10_000))
        except OSError as error:
            assert (error.errno, error.filename) == (errno.EFBIG, {str(tmp_path / "a/sub/c.bin")!r}), repr(error)
        else:
            raise SystemExit("no error")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert os.listdir(tmp_path) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, mode: int = 0o777) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(os, "mkdir", refuse)
    monkeypatch.setattr(os, "makedirs", lambda *_, **__: None)
    with pytest.raises(PermissionError) as caught:
        new_folder(str(tmp_path / "a"), DEFAULT_STORAGE)
    assert caught.value.filename == str(tmp_path / "a")
