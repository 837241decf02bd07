"""Facts that tests of resumed writes compare: the files of a dataset, and the parts that were written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tfrecord_io.write.distributed import DistributedWriter, OpenPart


def contents(folder: Path) -> dict[str, Any]:
    """The files of a dataset, its manifest without what differs for each writing."""
    files: dict[str, Any] = {path.name: path.read_bytes() for path in folder.iterdir()}
    manifest = json.loads(files.pop("_MANIFEST-x.json"))
    return {**files, "manifest": {**manifest, "id": None}}


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The tasks whose parts are written."""
    tasks: list[int] = []
    open_part = DistributedWriter.open_part

    def noted(self: DistributedWriter, task: int) -> OpenPart:
        tasks.append(task)
        return open_part(self, task)

    monkeypatch.setattr(DistributedWriter, "open_part", noted)
    return tasks
