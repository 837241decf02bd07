"""Apache Beam in two processes: each row is read and written once, and what fails leaves a dataset as it was."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr

beam = pytest.importorskip("apache_beam")

from apache_beam.options.pipeline_options import PipelineOptions  # noqa: E402

from tfrecord_io.beam import ReadTable, WriteTable  # noqa: E402


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> PipelineOptions:
    """A DirectRunner whose two workers are processes, which find the package where this one has found it."""
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(tfr.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    )
    return PipelineOptions(["--direct_running_mode=multi_processing", "--direct_num_workers=2"])


@pytest.mark.parametrize(
    "keywords", [{}, {"shards": 3}, {"partition_by": ["third"]}], ids=["bundles", "shards", "folders"]
)
def test_a_copy_has_the_same_rows(tmp_path: Path, options: PipelineOptions, keywords: dict[str, Any]) -> None:
    table = pa.table({"n": range(1000), "third": [f"{n % 3}/3" for n in range(1000)]})
    tfr.write_tfrecord(table, tmp_path / "in@6")
    with beam.Pipeline(options=options) as pipeline:
        _ = pipeline | ReadTable(tmp_path / "in@6", batch_size=100) | WriteTable(f"{tmp_path}/out/", **keywords)
    assert sorted(tfr.read_table(tmp_path / "out")["n"].to_pylist()) == [*range(1000)]
    assert tfr.verify(tmp_path / "out").ok
    assert not [path for path in (tmp_path / "out").rglob("*") if path.name.endswith((".staged", ".tmp"))]
    if "shards" in keywords:
        assert len(tfr.read_metadata(tmp_path / "out").files) == 3


def test_a_bundle_that_fails_leaves_the_dataset_as_it_was(tmp_path: Path, options: PipelineOptions) -> None:
    tfr.write_tfrecord({"n": [-1]}, f"{tmp_path}/out/")
    tfr.write_tfrecord({"n": range(1000)}, tmp_path / "in@6")
    pipeline = beam.Pipeline(options=options)
    batches = pipeline | ReadTable(tmp_path / "in@6", batch_size=100)
    checked = batches | beam.Map(lambda batch: batch if 777 not in batch["n"].to_pylist() else 1 / 0)
    _ = checked | WriteTable(f"{tmp_path}/out/", mode="overwrite")
    with pytest.raises(Exception, match="division by zero"):
        pipeline.run().wait_until_finish()
    assert tfr.read_table(tmp_path / "out")["n"].to_pylist() == [-1]
