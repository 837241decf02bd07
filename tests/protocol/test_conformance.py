"""What a store does with requests whose answers are lost does no harm."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from bucket import SimulatedS3, is_manifest
from runs import simulated
from scheduler import GivenSchedule, Scheduler
from worlds import WORLDS, World

import tfrecord_io as tfr


@contextmanager
def world_of(name: str) -> Iterator[tuple[World, dict[str, Any]]]:
    """A simulated store in which one process runs, and the keywords by which it reaches the store."""
    scheduler = Scheduler(GivenSchedule(""))
    world = WORLDS[name](scheduler)
    try:
        with simulated(), scheduler.alone(random.Random(0)):
            yield world, world.options(scheduler.main)
    finally:
        world.close()


def rows_in(path: str, storage: dict[str, Any]) -> list[int]:
    return tfr.read_table(path, **storage)["x"].to_pylist()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_a_manifest_that_is_stored_after_its_writer_gave_up_names_what_is_there(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, late = SimulatedS3._answer, list[dict[str, Any]]()

    def answer(fs: SimulatedS3, method: str, arguments: dict[str, Any], now: float) -> Any:
        is_manifest_put = method == "put_object" and is_manifest(arguments["Key"])
        if is_manifest_put and (not late or arguments["Body"] == late[0]["Body"]):  # it is made several times
            late[:] = [arguments]
            raise ConnectionResetError(104, "Connection reset by peer")
        return real(fs, method, arguments, now)

    with world_of("s3") as (world, storage):
        path = world.path + ("a@1" if mode == "overwrite" else "")
        tfr.write_tfrecord({"x": [1]}, path, mode=mode, **storage)
        with monkeypatch.context() as patch:
            patch.setattr(SimulatedS3, "_answer", answer)
            with pytest.raises(OSError, match="Connection reset"):
                tfr.write_tfrecord({"x": [2]}, path, mode=mode, **storage)
        with suppress(OSError):
            real(storage["storage_options"], "put_object", late[0], 1.0)
        assert rows_in(world.path, storage) == [1]
        assert tfr.verify(world.path, **storage).ok
