"""Embedded schemas that disagree inside of a file are found, whichever file showed them before."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecord_io as tfr


def test_a_schema_known_from_another_file_is_compared_with_the_first_of_its_file(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1], "x": [2]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"n": [3]}, tmp_path / "b.tfrecord")
    joined = tmp_path / "joined.tfrecord"
    joined.write_bytes((tmp_path / "a.tfrecord").read_bytes() + (tmp_path / "b.tfrecord").read_bytes())
    for paths in ([joined], [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord", joined]):
        with pytest.raises(tfr.errors.SchemaError, match="differs from that of the file's first record") as caught:
            tfr.read_table(paths)
        assert (caught.value.path, caught.value.record) == (str(joined), 1)
