"""Schemas that files carry, or that are next to them, mutated: calls succeed, or raise an error of the package."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from hostile_metadata import CALLS, TABLES, mutated, mutated_schema
from records import blobs, example, floats, int64s, written
from rounds import COMPLETE, rounds
from tfrecord_io.columns.schema.embedded import field_bytes, pack
from tfrecord_io.columns.schema.formats.tfds_info import TfdsInfo

ROUNDS = rounds(1000 if COMPLETE else 60)


def check(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in CALLS:
            with suppress(tfr.TFRecordError):
                call(path)


@pytest.mark.parametrize("number", range(len(TABLES)))
def test_embedded_schemas(engine: str, tmp_path: Path, number: int) -> None:
    rng, table, path = random.Random(number), TABLES[number], tmp_path / "a"
    tfr.write_tfrecord(table, path, embed_schema=False, float64="round")
    first, *rest = tfr.RecordReader(path)
    for _ in range(ROUNDS // 2):
        schema = mutated_schema(rng, table.schema)
        try:
            content = bytearray(pack(schema))
        except (tfr.TFRecordError, pa.ArrowInvalid, ValueError):  # Arrow does not write it
            continue
        if rng.random() < 0.2:
            content[rng.randrange(6, len(content))] = rng.randrange(256)
        written(path, [field_bytes(bytes(content)) + first, *rest])
        check(path)


FEATURES = json.loads((Path(__file__).parent.parent / "data/tfds/everything/features.json").read_text())


def test_features_json(tmp_path: Path) -> None:
    rng = random.Random(1)
    path = written(tmp_path / "data-train.tfrecord-00000-of-00001", [example(label=int64s(1), bbox=floats(1, 2, 3, 4))])
    for _ in range(ROUNDS // 2):
        document = mutated(rng, mutated(rng, FEATURES))
        (tmp_path / "features.json").write_text(json.dumps(document))
        with suppress(tfr.errors.SchemaError):
            tfr.Schema.from_tfds(tmp_path)
        check(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ({"shape": [2], "dtype": "int8", "encoding": "lzma"}, "feature 'n': the TFDS encoding 'lzma' is not supported"),
        ({"shape": [10**30], "dtype": "int8"}, "more than a record can hold"),
        ({"shape": [1e400], "dtype": "int8"}, "OverflowError"),
        ({"shape": [2], "dtype": ["x"]}, "has no Arrow type"),
    ],
)
def test_nonsense_in_features_json_is_named(tmp_path: Path, content: dict[str, Any], reason: str) -> None:
    features = {"type": "x.FeaturesDict", "content": {"n": {"type": "x.Tensor", "content": content}}}
    (tmp_path / "features.json").write_text(json.dumps(features))
    with pytest.raises(tfr.errors.SchemaError, match=reason) as caught:
        tfr.Schema.from_tfds(tmp_path)
    assert caught.value.path == str(tmp_path / "features.json")


@pytest.mark.parametrize("length", [-1, 2**63, "9" * 30, 10**400, None, "x", [1]])
def test_nonsense_in_dataset_info_is_refused(tmp_path: Path, length: Any) -> None:
    info = {"name": "d", "splits": [{"name": "train", "shardLengths": [length]}]}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    written(tmp_path / "d-train.tfrecord-00000-of-00001", [example(x=int64s(1))])
    with pytest.raises(tfr.errors.SchemaError, match=r"not a dataset_info\.json of TFDS"):
        TfdsInfo.lengths_in(tmp_path)
    with pytest.warns(UserWarning, match=r"dataset_info\.json cannot be used"):
        assert tfr.count(tmp_path) == 1
    check(tmp_path)


def test_the_fuzzer_of_metadata_finds_nothing() -> None:
    """``make fuzz`` runs more rounds of it."""
    script = Path(__file__).parent.parent / "fuzz" / "metadata.py"
    run = subprocess.run(
        [sys.executable, script, "--rounds", str(rounds(60, 20))], capture_output=True, text=True, timeout=300
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    assert run.stdout.count(" 0 findings") == 8


def test_images_declared_for_other_columns(tmp_path: Path) -> None:
    note = {b"tfrecord_io.image": b'{"mode": "RGB", "resize": [2]}'}
    for type_, reason in (
        (pa.binary(), "metadata is damaged: tfrecord_io.image"),
        (pa.int64(), "the column is of int64"),
    ):
        schema = pa.schema([pa.field("x", type_, metadata=note)])
        table = pa.table({"x": pa.array([None, None], type_)}, schema=schema)
        tfr.write_tfrecord(table, tmp_path / "a", mode="overwrite")
        with pytest.raises(tfr.errors.SchemaError, match=f"feature 'x': .*{reason}"):
            tfr.read_arrays(tmp_path / "a", missing="mask")
        assert tfr.read_table(tmp_path / "a").num_rows == 2


DECIMALS = [pa.decimal32(9, 2), pa.decimal64(18, 2), pa.decimal128(38, 2), pa.decimal256(76, 76)]


@pytest.mark.parametrize("type_", [*DECIMALS, pa.list_(pa.decimal128(38, 2))], ids=str)
@pytest.mark.parametrize("text", ["1e-999999999", "1e-199", "1e999999999", "1e-99999999999", "NaN", "1_0"])
def test_decimals_out_of_range(tmp_path: Path, type_: pa.DataType, text: str) -> None:
    """Some of them make Arrow's cast crash, or return another number."""
    path = written(tmp_path / "a", [example(), example(x=blobs(text.encode()))])
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*feature 'x': the bytes are not a valid decimal"):
        tfr.read_table(path, schema={"x": type_})


@pytest.mark.parametrize("scale", [-(2**31), 2**31 - 1, 39])
def test_an_embedded_decimal_of_a_far_scale(tmp_path: Path, scale: int) -> None:
    schema = pa.schema([("x", pa.decimal128(38, scale))])
    path = written(tmp_path / "a", [field_bytes(pack(schema)) + example(x=blobs(b"1"))])
    with pytest.warns(tfr.errors.SchemaWarning, match="embedded schema"):
        assert tfr.read_table(path)["x"].to_pylist() == ["1"]
    check(path)


def test_decimals_of_text_with_exponents(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=blobs(text)) for text in (b"1e-1", b"1.50", b"-2E+1", b".5", b"0E-40")])
    values = tfr.read_table(path, schema={"x": pa.decimal128(38, 2)})["x"].to_pylist()
    assert list(map(str, values[:4])) == ["0.10", "1.50", "-20.00", "0.50"]
    assert values[4] == 0


@pytest.mark.plugins("tensorflow")
def test_a_language_with_a_lone_surrogate(tmp_path: Path) -> None:
    path = written(tmp_path / "data-train.tfrecord-00000-of-00001", [example(label=int64s(1))])
    document = json.dumps(FEATURES).replace('"en"', '"\\ud800"')
    assert "ud800" in document
    (tmp_path / "features.json").write_text(document)
    with pytest.warns(tfr.errors.SchemaWarning, match=r"caption/\\ud800.*lone surrogate"):
        tfr.describe(path)
