"""tfx_bsl decodes Examples by C++ protobuf: our engines give the same columns, types and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from wire_forms import WireForms, delimited

SEEDS_PER_TEST = 20


def _read(path: str) -> pa.Table:
    return tfr.read_table(tfr.dataset(path, record_type="example", stable_types=True, large_offsets=True))


def _bits(values: pa.Array) -> list[Any]:
    if pa.types.is_floating(values.type):
        return list(np.asarray(values).view(np.uint32))
    return list(values.to_pylist())


def assert_same_column(name: str, actual: pa.ChunkedArray, reference: pa.Array, context: str) -> None:
    """Equal types, nulls, lengths and values, floats by their bits."""
    where = f"{context}, column {name!r}"
    mine = actual.combine_chunks() if actual.num_chunks != 1 else actual.chunk(0)
    assert mine.type == reference.type, where
    assert mine.is_valid().to_pylist() == reference.is_valid().to_pylist(), where
    if pa.types.is_null(mine.type):
        return
    assert mine.value_lengths().to_pylist() == reference.value_lengths().to_pylist(), where
    assert _bits(mine.flatten()) == _bits(reference.flatten()), where


def assert_same(actual: pa.Table, reference: pa.RecordBatch, context: str) -> None:
    assert sorted(actual.schema.names) == sorted(reference.schema.names), context
    for name in reference.schema.names:
        assert_same_column(name, actual.column(name), reference.column(name), context)


@pytest.mark.parametrize("group", range(10))
@pytest.mark.parametrize("plain", [True, False], ids=["plain", "odd"])
def test_same_columns_of_random_records(
    engine: str, plain: bool, group: int, tfx_decode: Any, write_records: Any, tmp_path: Path
) -> None:
    for seed in range(group * SEEDS_PER_TEST, (group + 1) * SEEDS_PER_TEST):
        payloads = WireForms(seed, plain).records(40)
        actual = _read(write_records(tmp_path / f"{seed}.tfrecord", payloads))
        assert actual.num_rows == len(payloads)
        assert_same(actual, tfx_decode(payloads), f"seed {seed}")


@pytest.mark.parametrize("group", range(6))
def test_same_answer_to_mutated_records(
    engine: str, group: int, tfx_decode: Any, write_records: Any, tmp_path: Path
) -> None:
    path = tmp_path / "mutated.tfrecord"
    refused = 0
    for seed in range(group * 100, (group + 1) * 100):
        forms = WireForms(seed)
        payload = forms.mutated(forms.records(1)[0])
        write_records(path, [payload])
        try:
            reference = tfx_decode([payload])
        except Exception:  # tfx_bsl has no class of its own for it
            refused += 1
            with pytest.raises(tfr.errors.DecodeError):
                _read(str(path))
            continue
        actual = _read(str(path))
        if not any("\0" in name for name in actual.schema.names):  # tfx_bsl truncates names at NUL
            assert_same(actual, reference, f"seed {seed}, payload {payload.hex()}")
    assert 5 < refused < 95  # the mutations reach both answers


def test_a_length_of_more_than_five_bytes_is_refused_by_both(
    engine: str, tfx_decode: Any, write_records: Any, tmp_path: Path
) -> None:
    for size in range(1, 10):
        payload = delimited(1, b"", padding=size - 1)
        path = write_records(tmp_path / f"{size}.tfrecord", [payload])
        if size <= 5:
            assert tfx_decode([payload]).num_columns == 0
            assert _read(path).num_rows == 1
        else:
            with pytest.raises(Exception, match="parse"):
                tfx_decode([payload])
            with pytest.raises(tfr.errors.DecodeError):
                _read(path)


def test_two_kinds_in_one_feature_are_refused_by_both(
    engine: str, tf: Any, tfx_decode: Any, write_records: Any, tmp_path: Path
) -> None:
    whole, text = tf.train.Example(), tf.train.Example()
    whole.features.feature["x"].int64_list.value.append(1)
    text.features.feature["x"].bytes_list.value.append(b"1")
    payloads = [whole.SerializeToString(), text.SerializeToString()]
    with pytest.raises(Exception, match="x"):
        tfx_decode(payloads)
    with pytest.raises(tfr.errors.SchemaError):
        _read(write_records(tmp_path / "kinds.tfrecord", payloads))


def test_tfx_bsl_reads_written_files(tf: Any, tfx_decode: Any, tmp_path: Path) -> None:
    table = pa.table(
        {
            "counts": pa.array([[1, 2], [], None, [-(2**63)]], pa.large_list(pa.int64())),
            "label": pa.array([[1], [2], [3], [2**63 - 1]], pa.large_list(pa.int64())),
            "name": pa.array([["cat"], ["größe"], [""], None], pa.large_list(pa.large_string())),
            "score": pa.array([[0.5], [-0.0, 1e-45], [float("inf")], []], pa.large_list(pa.float32())),
        }
    )
    for embed_schema in (True, False):
        path = tmp_path / f"a-{embed_schema}.tfrecord"
        tfr.write_tfrecord(table, path, embed_schema=embed_schema)
        reference = tfx_decode([record.numpy() for record in tf.data.TFRecordDataset(str(path))])
        expected = table.set_column(2, "name", table["name"].cast(pa.large_list(pa.large_binary())))
        assert_same(expected, reference, f"embed_schema={embed_schema}")
