"""Event files of TensorFlow's summary writer have the scalars that its own iterator finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tfrecord_io as tfr


def test_scalars_written_by_tensorflow(tf: Any, tmp_path: Path) -> None:
    metadata = {name: tf.compat.v1.SummaryMetadata() for name in ("scalars", "histograms", "text")}
    for name, message in metadata.items():
        message.plugin_data.plugin_name = name
    with tf.summary.create_file_writer(str(tmp_path / "train")).as_default():  # tf.summary.scalar needs TensorBoard
        for step in range(5):
            tf.summary.write("loss", tf.constant(1.0 / (step + 1)), step, metadata["scalars"])
            tf.summary.write("count", tf.constant(float(step)), step, metadata["scalars"])
            tf.summary.write("weights", tf.constant([[1.0, 2.0, 3.0]]), step, metadata["histograms"])
            tf.summary.write("note", tf.constant("hello"), step, metadata["text"])
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
    table = tfr.formats.read_events(tmp_path)
    columns = [table[name].to_pylist() for name in ("run", "tag", "step", "value")]
    assert list(zip(*columns, strict=True)) == expected
    assert len(expected) == 11
