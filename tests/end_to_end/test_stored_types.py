"""A schema shows which columns of float64 a record has as float32 only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from tfrecord_io.apps.cli import tfr as command

NOTE = "stored as float32"
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "double": ({"x": [0.1]}, {}, True),
    "list": ({"x": [[0.1, 0.2]]}, {}, True),
    "struct": ({"x": pa.array([{"a": 0.1}])}, {}, True),
    "categories": ({"x": pa.array([0.1]).dictionary_encode()}, {}, True),
    "steps": ({"x": pa.array([[[0.1], [0.2]]])}, {"record_type": "sequence_example"}, True),
    "lists of lists": ({"x": pa.array([[[0.1], [0.2]]])}, {}, True),
    "raw": ({"x": [0.1]}, {"float64": "raw"}, False),
    "raw lists": ({"x": [[0.1]]}, {"column_encoding": {"x": "raw"}}, False),
    "json": ({"x": pa.array([[[0.1], [0.2]]])}, {"column_encoding": {"x": "json"}}, False),
    "tensors": ({"x": np.array([[[0.1, 0.2]]])}, {}, False),
    "declared tensors": ({"x": np.array([[[0.1, 0.2]]])}, {"schema": {"x": tfr.tensor("float64", (1, 2))}}, False),
    "listed tensors": ({"x": np.array([[[0.1, 0.2]]])}, {"column_encoding": {"x": "list"}}, True),
    "float32": ({"x": np.array([0.1], "float32")}, {}, False),
    "half": ({"x": np.array([0.5], "float16")}, {}, False),
    "text": ({"x": ["double"]}, {}, False),
}


def shell(*arguments: object) -> str:
    done = CliRunner().invoke(command, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.output


SHOWN: dict[str, Callable[[Path], str]] = {
    "schema": lambda path: repr(tfr.Schema.parse(tfr.dataset(path).schema)),
    "field": lambda path: repr(tfr.Schema.parse(tfr.dataset(path).schema).field("x")),
    "dataset": lambda path: tfr.dataset(path)._repr_html_(),
    "reader": lambda path: repr(tfr.open_reader(path)),
    "metadata": lambda path: repr(tfr.read_metadata(path)),
    "describe": lambda path: repr(tfr.describe(path)),
    "report": lambda path: repr(tfr.report(path)),
    "page": lambda path: tfr.report(path).html,
    "tfr schema": lambda path: shell("schema", path),
    "tfr describe": lambda path: shell("describe", path),
}


@pytest.mark.parametrize("shown", SHOWN)
@pytest.mark.parametrize("case", CASES)
def test_float64_that_a_record_has_as_float32_is_shown_as_such(tmp_path: Path, case: str, shown: str) -> None:
    data, keywords, is_narrow = CASES[case]
    tfr.write_tfrecord(data, tmp_path / "a", **{"float64": "round", **keywords})
    assert (NOTE in SHOWN[shown](tmp_path / "a")) is is_narrow


def test_programs_get_both_types(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [0.1], "n": [1]}, tmp_path / "a", float64="round")
    columns = tfr.describe(tmp_path / "a").to_dict()["columns"]
    assert [(column["type"], column["stored"]) for column in columns] == [("double", "float32"), ("int64", None)]
    fields = json.loads(shell("schema", "--json", tmp_path / "a"))["fields"]
    assert fields == [{"name": "x", "type": "double", "stored": "float32"}, {"name": "n", "type": "int64"}]
