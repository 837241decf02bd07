"""The directories of sharded datasets on the local disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tfrecord_io as tfr


def test_a_directory_that_another_process_creates_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exists = os.path.lexists

    def created_meanwhile(path: str) -> bool:
        (tmp_path / "d").mkdir(exist_ok=True)
        return exists(path)

    monkeypatch.setattr(os.path, "lexists", created_meanwhile)
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "d" / "train@2", threads=1)
    assert tfr.read_table(tmp_path / "d")["x"].to_pylist() == [1, 2]
