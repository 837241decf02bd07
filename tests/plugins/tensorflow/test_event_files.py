"""The scalars of TensorBoard's event files; tests/conformance compares with TensorFlow's own."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.plugins.tensorflow.event_files import SCHEMA, _Event

TIME = 1_700_000_000.25


def scalar(tag: str, step: int, value: float, seconds: float = TIME) -> Any:
    event = _Event(wall_time=seconds, step=step)
    event.summary.value.add(tag=tag, simple_value=value)
    return event


def tensor(tag: str, step: int, array: Any, plugin: str | None = None) -> Any:
    event = _Event(wall_time=TIME, step=step)
    value = event.summary.value.add(tag=tag, tensor=tfr.io.serialize_tensor(array))
    if plugin is not None:
        value.metadata.plugin_data.plugin_name = plugin
    return event


def write(path: Path, *events: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tfr.RecordWriter(path) as writer:
        for event in (_Event(wall_time=TIME), *events):  # the first event states the version of the file
            writer.write(event.SerializeToString())
    return path


def test_both_kinds_of_scalars(tmp_path: Path) -> None:
    path = write(
        tmp_path / "events.out.tfevents.1.host",
        scalar("loss", 1, 0.5),
        tensor("acc", 1, np.float32(0.25), "scalars"),
        tensor("acc", 2, np.float32(0.75)),  # only the first value of a tag states the plugin
        tensor("hist", 2, np.zeros((3, 3)), "histograms"),
        tensor("text", 2, np.array(b"hello"), "text"),
        tensor("note", 2, np.array(b"hello")),
        tensor("written", 3, np.array([1.5], np.float32)),  # as by tf.summary.write
        tensor("bits", 3, np.array(2.5, ml_dtypes.bfloat16), "scalars"),
    )
    table = tfr.formats.read_events(path)
    assert table.schema == SCHEMA
    assert table.select(["tag", "step", "value"]).to_pylist() == [
        {"tag": "loss", "step": 1, "value": 0.5},
        {"tag": "acc", "step": 1, "value": 0.25},
        {"tag": "acc", "step": 2, "value": 0.75},
        {"tag": "written", "step": 3, "value": 1.5},
        {"tag": "bits", "step": 3, "value": 2.5},
    ]
    assert table["wall_time"][0].as_py() == dt.datetime.fromtimestamp(TIME, dt.UTC)


def test_each_directory_of_a_log_directory_is_a_run(tmp_path: Path) -> None:
    write(tmp_path / "logs/events.out.tfevents.1", scalar("a", 0, 1.0))
    write(tmp_path / "logs/run 10/train/events.out.tfevents.2", scalar("a", 0, 3.0))
    write(tmp_path / "logs/run 2/events.out.tfevents.1", scalar("a", 0, 2.0))
    (tmp_path / "logs/notes.txt").write_text("x")
    table = tfr.formats.read_events(tmp_path / "logs")
    assert table["run"].to_pylist() == [".", "run 2", "run 10/train"]
    assert table["value"].to_pylist() == [1.0, 2.0, 3.0]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no event files"):
        tfr.formats.read_events(tmp_path / "empty")


def test_a_record_that_is_still_written_ends_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "events.out.tfevents.1", scalar("a", 0, 1.0), scalar("a", 1, 2.0))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert tfr.formats.read_events(path)["value"].to_pylist() == [1.0]
    with pytest.raises(tfr.errors.TruncatedRecordError):
        tfr.formats.read_events(path, on_error="raise")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with tfr.RecordWriter(tmp_path / "a.tfevents") as writer:
        writer.write(b"\xff\xff")
    with pytest.raises(tfr.errors.DecodeError, match="not an Event") as caught:
        tfr.formats.read_events(tmp_path / "a.tfevents")
    assert caught.value.record == 0
    damaged = tensor("a", 0, np.float32(1), "scalars")
    damaged.summary.value[0].tensor = b"\xff"
    path = write(tmp_path / "b.tfevents", damaged)
    with pytest.raises(tfr.errors.DecodeError) as caught:
        tfr.formats.read_events(path)
    assert (caught.value.path, caught.value.record) == (str(path), 1)


@given(st.lists(st.tuples(st.text(max_size=3), st.integers(-(2**63), 2**63 - 1), st.floats(width=32), st.floats())))
def test_values_of_any_kind(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int, float, float]]
) -> None:
    path = write(tmp_path_factory.mktemp("x") / "tfevents", *(scalar(*row) for row in rows))
    table = tfr.formats.read_events(path)
    assert table.num_rows == len(rows)
    np.testing.assert_array_equal(table["value"].to_numpy(), [value for _, _, value, _ in rows])
    assert table["step"].to_pylist() == [step for _, step, _, _ in rows]
