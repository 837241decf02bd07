"""Statistics of datasets, compared with pandas."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.apps.views.feature_statistics import FeatureStatistics
from tfrecord_io.base import ReadOptions
from tfrecord_io.columns.arrow.output.column_statistics import temporal_value
from tfrecord_io.plugins.report.dataset_statistics import DatasetStatistics, dataset_statistics
from tfrecord_io.plugins.report.report_sample import SampleLimits


def examined(path: Path, **keywords: object) -> DatasetStatistics:
    return dataset_statistics(path, ReadOptions(**keywords), SampleLimits())


def features(path: Path, **keywords: object) -> dict[str, FeatureStatistics]:
    return {feature.name: feature for feature in examined(path, **keywords).features}


def test_statistics_are_those_of_pandas(tmp_path: Path) -> None:
    random = np.random.default_rng(5)
    df = pd.DataFrame(
        {
            "x": random.normal(3, 2, 500).astype("f4"),
            "n": pd.array(random.integers(0, 9, 500), dtype="Int64"),
            "word": random.choice(["a", "bb", "ccc"], 500),
        }
    )
    df.loc[::7, "n"] = None
    df.loc[::11, "word"] = None
    tfr.write_tfrecord(df, tmp_path / "a.tfrecord")
    found = features(tmp_path / "a.tfrecord")
    for name in ("x", "n"):
        numbers, column = found[name].numbers, df[name].dropna().astype("f8")
        assert numbers is not None
        assert numbers.mean == pytest.approx(column.mean())
        assert numbers.deviation == pytest.approx(column.std(ddof=0))
        assert (numbers.minimum, numbers.maximum) == (column.min(), column.max())
        assert numbers.quantiles[1:6] == pytest.approx(column.quantile([0.05, 0.25, 0.5, 0.75, 0.95]).tolist())
        assert found[name].presence == pytest.approx(df[name].notna().mean())
    assert found["n"].numbers.zeros == (df["n"] == 0).sum()
    assert dict(found["word"].counts.top) == df["word"].value_counts().to_dict()
    assert found["word"].lengths.mean == pytest.approx(df["word"].str.len().mean())
    assert [found[name].kind for name in df] == ["float_list", "int64_list", "bytes_list"]


def test_declared_tensors_have_the_feature_type_of_the_records(tmp_path: Path) -> None:
    """Each record says whether a tensor that `tensor` declares is raw bytes or a list of numbers."""
    pixels, weights = np.arange(4, dtype=np.int32), np.arange(4, dtype=np.float32)
    rows = [{"bytes": pixels.tobytes(), "weights": weights.tobytes(), "list": pixels, "floats": weights}] * 3
    with tfr.RecordWriter(tmp_path / "a.tfrecord") as writer:
        for row in rows:
            writer.write(tfr.encode_example(row))
    types = {"bytes": tfr.tensor("int32", (2, 2)), "weights": tfr.tensor("float32", (4,))}
    types |= {"list": tfr.tensor("int32", (2, 2)), "floats": tfr.tensor("float32", (4,))}
    found = features(tmp_path / "a.tfrecord", schema=types)
    kinds = {name: found[name].kind for name in types}
    assert kinds == {"bytes": "bytes_list", "weights": "bytes_list", "list": "int64_list", "floats": "float_list"}
    assert found["bytes"].numbers.mean == 1.5


def test_lists_tensors_and_times(tmp_path: Path) -> None:
    when = [datetime.datetime(2024, 1, 1), None, datetime.datetime(2024, 1, 3)]
    data = {
        "tags": [["a"], [], ["b", "a"]],
        "pixels": np.arange(3 * 4 * 5, dtype="u1").reshape(3, 4, 5),
        "when": pa.array(when, pa.timestamp("s")),
        "outer": pa.array([{"inner": 1}, None, {"inner": 3}]),
        "flag": [True, False, True],
    }
    tfr.write_tfrecord(pa.table({**data, "pixels": tfr_tensor(data["pixels"])}), tmp_path / "a.tfrecord")
    found = features(tmp_path / "a.tfrecord")
    assert (found["tags"].values_per_record.minimum, found["tags"].values_per_record.maximum) == (0, 2)
    assert found["tags"].counts.counts == {"a": 2, "b": 1}
    assert found["pixels"].summary.min_shape == (4, 5)
    assert found["pixels"].numbers.count == 60
    assert found["pixels"].counts is None
    assert found["when"].is_temporal
    assert found["when"].summary.maximum == when[2]
    assert temporal_value(found["when"].value_type, found["when"].numbers.maximum) == when[2]
    assert (found["outer/inner"].summary.nulls, found["outer/inner"].numbers.mean) == (1, 2.0)
    assert found["outer/inner"].kind == "int64_list"
    assert found["flag"].counts.counts == {True: 2, False: 1}
    assert found["flag"].numbers is None


def tfr_tensor(values: np.ndarray) -> pa.Array:
    return pa.FixedShapeTensorArray.from_numpy_ndarray(values)


def test_sequences_say_what_is_a_feature_list(data: Path) -> None:
    found = examined(data / "sequence.tfrecord")
    assert {feature.part for feature in found.features} == {"context", "feature_list"}


def test_sides_of_a_dataset(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": list(range(30))}, tmp_path / "d" / "a@3", compression="gzip")
    found = dataset_statistics(tmp_path / "d", ReadOptions(), SampleLimits(), check=True)
    assert found.file_count == 3
    assert [file.compression for file in found.files] == ["gzip"] * 3
    assert [file.status for file in found.files] == ["good"] * 3
    assert found.checks == "All records of all files were verified: no problems were found."
    assert found.first[0] == ("x",)
    assert found.first[1] == tuple((str(n),) for n in range(10))


def test_rare_features_are_inferred_from_all_records(tmp_path: Path) -> None:
    rows = [{"x": 1.0} for _ in range(12_000)] + [{"x": 1.0, "late": "text"}]
    tfr.write_tfrecord(pa.Table.from_pylist(rows[::-1]), tmp_path / "a.tfrecord", embed_schema=False, float64="round")
    lines = list(tfr.RecordReader(tmp_path / "a.tfrecord"))[::-1]
    with tfr.RecordWriter(tmp_path / "b.tfrecord") as writer:
        for line in lines:
            writer.write(line)
    found = features(tmp_path / "b.tfrecord")
    assert found["late"].summary.nulls == 12_000


def test_the_names_of_all_columns_are_not_listed_for_each_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = tfr.Schema.names.fget
    times: list[int] = []

    def counted(schema: tfr.Schema) -> list[str]:
        times[-1] += 1
        return listed(schema)

    for columns in (5, 50):
        tfr.write_tfrecord({f"x{number}": [1] for number in range(columns)}, tmp_path / f"{columns}.tfrecord")
    monkeypatch.setattr(tfr.Schema, "names", property(counted))
    for columns in (5, 50):
        times.append(0)
        assert len(features(tmp_path / f"{columns}.tfrecord")) == columns
    assert times[0] == times[1]


def test_the_page_speaks_of_other_records_only_where_there_are_any(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": list(range(30))}, tmp_path / "a.tfrecord")
    assert examined(tmp_path / "a.tfrecord").checks == "The checksums of all records are correct."
    part = dataset_statistics(tmp_path / "a.tfrecord", ReadOptions(), SampleLimits(records=2))
    assert part.checks.endswith("correct; the other records were not checked.")
