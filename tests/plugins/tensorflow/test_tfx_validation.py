"""Records against a TFX schema: each anomaly has the name of TFDV, and good records have none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.errors import SchemaError

SCHEMA = """
feature { name: "age" type: INT presence { min_fraction: 1.0 min_count: 1 } shape { dim { size: 1 } }
          int_domain { min: 0 max: 120 } }
feature { name: "score" type: FLOAT presence { min_fraction: 0.5 } value_count { min: 1 max: 3 }
          float_domain { min: 0 max: 1 disallow_nan: true disallow_inf: true } }
feature { name: "country" type: BYTES domain: "countries" presence { min_count: 2 } }
feature { name: "flag" type: INT bool_domain { } }
feature { name: "mostly" type: BYTES string_domain { value: "a" value: "b" }
          distribution_constraints { min_domain_mass: 0.7 } }
feature { name: "yes" type: BYTES bool_domain { true_value: "yes" false_value: "no" } }
feature { name: "old" type: INT lifecycle_stage: DEPRECATED presence { min_count: 1 } }
feature { name: "##SEQUENCE##" type: STRUCT struct_domain {
          feature { name: "step" type: INT int_domain { max: 9 } } } }
string_domain { name: "countries" value: "de" value: "nl" }
"""
GOOD: dict[str, list[Any]] = {
    "age": [[1], [2], [3], [4]],
    "score": [[0.5], [0.25, 1.0], None, [0.0]],
    "country": [["de"], ["nl"], None, ["de"]],
    "flag": [[0], [1], [1], None],
    "mostly": [["a"], ["b"], ["a"], ["c"]],
    "yes": [["yes"], ["no"], None, None],
    "old": [None, None, [1], None],
}
TYPES = {"age": pa.int64(), "score": pa.float32(), "country": pa.string(), "flag": pa.int64()}
CASES: dict[str, tuple[dict[str, list[Any] | None], dict[str, str]]] = {
    "good": ({}, {}),
    "missing": ({"age": None}, {"SCHEMA_MISSING_COLUMN": "age"}),
    "low fraction": (
        {"age": [[1], None, [3], [4]]},
        {"FEATURE_TYPE_LOW_FRACTION_PRESENT": "expected in 1 of the records, found in 3 of 4"},
    ),
    "low number": (
        {"country": [["de"], None, None, None]},
        {"FEATURE_TYPE_LOW_NUMBER_PRESENT": "expected in at least 2 records, found in 1"},
    ),
    "shape": ({"age": [[1], [2, 3], [3], [4]]}, {"INVALID_FEATURE_SHAPE": "expected 1 value, found 1 to 2"}),
    "few values": ({"score": [[], [0.5], [0.5], [0.5]]}, {"FEATURE_TYPE_LOW_NUMBER_VALUES": "found 0 to 1"}),
    "many values": ({"score": [[0.5] * 4] * 4}, {"FEATURE_TYPE_HIGH_NUMBER_VALUES": "at most 3 values, found 4"}),
    "type": ({"age": [[0.5]] * 4}, {"UNEXPECTED_DATA_TYPE": "expected INT, found FLOAT"}),
    "small int": ({"age": [[-1], [2], [3], [4]]}, {"INT_TYPE_SMALL_INT": "expected at least 0, found -1"}),
    "big int": ({"age": [[1], [2], [3], [121]]}, {"INT_TYPE_BIG_INT": "expected at most 120, found 121"}),
    "small float": ({"score": [[-0.5]] * 4}, {"FLOAT_TYPE_SMALL_FLOAT": "found -0.5"}),
    "big float": ({"score": [[1.5]] * 4}, {"FLOAT_TYPE_BIG_FLOAT": "found 1.5"}),
    "nan": ({"score": [[float("nan")], [0.5], [0.5], [0.5]]}, {"FLOAT_TYPE_HAS_NAN": "expected no NaN, found 1"}),
    "infinity": (
        {"score": [[float("inf")], [0.5], [0.5], [0.5]]},
        {"FLOAT_TYPE_HAS_INF": "found 1", "FLOAT_TYPE_BIG_FLOAT": "found inf"},
    ),
    "text": (
        {"country": [["de"], ["xx"], ["xx"], ["yy"]]},
        {"ENUM_TYPE_UNEXPECTED_STRING_VALUES": "3 of 4 of the values are not in the domain, such as 'xx' and 'yy'"},
    ),
    "mass": ({"mostly": [["a"], ["b"], ["x"], ["c"]]}, {"ENUM_TYPE_UNEXPECTED_STRING_VALUES": "2 of 4"}),
    "bool": ({"flag": [[2], [1], [1], [-1]]}, {"BOOL_TYPE_BIG_INT": "found 2", "BOOL_TYPE_SMALL_INT": "found -1"}),
    "bool text": ({"yes": [["maybe"], ["no"], None, None]}, {"BOOL_TYPE_UNEXPECTED_STRING": "such as 'maybe'"}),
    "new": ({"extra": [[1], None, None, None]}, {"SCHEMA_NEW_COLUMN": "new feature of the type INT, in 1 of 4"}),
}


def write(path: Path, changes: dict[str, list[Any] | None]) -> None:
    columns = {name: values for name, values in {**GOOD, **changes}.items() if values is not None}
    rows = next(iter(columns.values()))
    types = {
        name: tfr.list_("float32" if name == "score" or values == [[0.5]] * len(rows) else value)
        for name, values in columns.items()
        for value in ["string" if name in ("country", "mostly", "yes") else "int64"]
    }
    tfr.write_tfrecord(columns, path, schema=types)


@pytest.mark.parametrize("name", CASES)
def test_an_anomaly_has_the_name_of_tfdv(name: str, tmp_path: Path) -> None:
    changes, expected = CASES[name]
    write(tmp_path / "a.tfrecord", changes)
    (tmp_path / "schema.pbtxt").write_text(SCHEMA)
    report = tfr.verify(tmp_path / "a.tfrecord", schema=tmp_path / "schema.pbtxt")
    found = {anomaly.kind: str(anomaly) for anomaly in report.anomalies}
    assert found.keys() == expected.keys()
    for kind, text in expected.items():
        assert text in found[kind]
        assert f"anomaly: {found[kind]}" in str(report)
    assert report.ok == (not expected)
    assert all(file.error is None for file in report.files)


def test_values_are_read_as_the_other_checks_read_the_files(tmp_path: Path) -> None:
    """From the same filesystem, and with the same options."""
    write(tmp_path / "a.tfrecord", {"extra": [[1], None, None, None]})
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/anomalies/a.tfrecord", (tmp_path / "a.tfrecord").read_bytes())
    report = tfr.verify("/anomalies/a.tfrecord", schema=SCHEMA.encode(), storage_options=memory)
    assert [anomaly.feature for anomaly in report.anomalies] == ["extra"]
    source = tfr.dataset(tmp_path / "a.tfrecord", compression=None, limits=tfr.Limits(features=50), threads=1)
    assert len(tfr.verify(source, schema=SCHEMA.encode()).anomalies) == 1


def test_the_command_reads_values_with_its_options(tmp_path: Path) -> None:
    write(tmp_path / "x-00000-of-00002", {"extra": [[1], None, None, None]})
    (tmp_path / "schema.pbtxt").write_text(SCHEMA)
    arguments = ["verify", "--schema", f"{tmp_path}/schema.pbtxt", "--allow-missing-shards", f"{tmp_path}/x@2"]
    shown = CliRunner().invoke(command, arguments)
    assert "SCHEMA_NEW_COLUMN" in shown.output, shown.output


def test_feature_lists_are_those_of_the_struct(tmp_path: Path) -> None:
    steps = {"age": [[1], [2]], "step": [[[1], [2, 3]], [[10]]]}
    tfr.write_tfrecord(steps, tmp_path / "a.tfrecord", record_type="sequence_example")
    report = tfr.verify(tmp_path / "a.tfrecord", schema=SCHEMA.encode())
    found = {(anomaly.feature, anomaly.kind) for anomaly in report.anomalies}
    assert found == {
        ("step", "INT_TYPE_BIG_INT"),
        ("score", "SCHEMA_MISSING_COLUMN"),
        ("country", "SCHEMA_MISSING_COLUMN"),
    }


def test_folders_are_no_features(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2], "day": ["a", "b"]}, tmp_path / "d", partition_by="day")
    assert tfr.verify(tmp_path / "d", schema=b'feature { name: "x" type: INT }').ok


def test_a_schema_of_the_records_fits_them(tmp_path: Path) -> None:
    table = {"n": [1, None], "word": ["a", "b"], "v": [[0.5], [1.0, 2.0]]}
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord", schema={"n": "int64", "word": "string", "v": "list<float32>"})
    text = tfr.dataset(tmp_path / "a.tfrecord")
    schema = tfr.Schema.from_arrow(text.schema).to_tfx()
    assert tfr.verify(tmp_path / "a.tfrecord", schema=schema).anomalies == ()


def test_what_is_no_schema_is_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    (tmp_path / "bad.pbtxt").write_text("feature { name: }")
    with pytest.raises(SchemaError, match="it is not a TFX schema"):
        tfr.verify(tmp_path / "a.tfrecord", schema=tmp_path / "bad.pbtxt")
    with pytest.raises(FileNotFoundError):
        tfr.verify(tmp_path / "a.tfrecord", schema=tmp_path / "none.pbtxt")


def test_the_command_ends_with_1(run: Any, tmp_path: Path) -> None:
    write(tmp_path / "a.tfrecord", {"age": [[1], [2], [3], [121]]})
    (tmp_path / "schema.pbtxt").write_text(SCHEMA)
    shown = run("verify", tmp_path / "a.tfrecord", "--schema", tmp_path / "schema.pbtxt")
    assert (shown.exit_code, "anomaly: age: expected at most 120, found 121 (INT_TYPE_BIG_INT)" in shown.stdout) == (
        1,
        True,
    )
    shown = run("verify", tmp_path / "a.tfrecord", "--schema", tmp_path / "schema.pbtxt", "--json")
    assert json.loads(shown.stdout)["anomalies"] == [
        {"feature": "age", "kind": "INT_TYPE_BIG_INT", "text": "expected at most 120, found 121"}
    ]
    write(tmp_path / "a.tfrecord", {})
    assert run("verify", tmp_path / "a.tfrecord", "--schema", tmp_path / "schema.pbtxt").exit_code == 0
