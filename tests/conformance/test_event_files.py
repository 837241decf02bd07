"""Event files of TensorFlow's summary writer have the scalars that its own iterator finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tfrecord_io as tfr


def test_scalars_written_by_tensorflow(tf: Any, tmp_path: Path) -> None:
    with tf.summary.create_file_writer(str(tmp_path / "train")).as_default():
        for step in range(5):
            tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
            tf.summary.scalar("count", step, step=step)
            tf.summary.histogram("weights", [1.0, 2.0], step=step)
            tf.summary.text("note", "hello", step=step)
    with tf.compat.v1.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(str(tmp_path / "old"))
        summary = tf.compat.v1.Summary(value=[tf.compat.v1.Summary.Value(tag="acc", simple_value=0.5)])
        writer.add_summary(summary, 3)
        writer.close()
    expected = []
    for run in ("old", "train"):
        for file in sorted((tmp_path / run).iterdir()):
            for event in tf.compat.v1.train.summary_iterator(str(file)):
                for value in event.summary.value:
                    if value.tag in ("loss", "count", "acc"):
                        number = value.simple_value if run == "old" else float(tf.make_ndarray(value.tensor))
                        expected.append((run, value.tag, event.step, number))
    table = tfr.read_events(tmp_path)
    columns = [table[name].to_pylist() for name in ("run", "tag", "step", "value")]
    assert list(zip(*columns, strict=True)) == expected
    assert len(expected) == 11
