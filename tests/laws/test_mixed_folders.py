"""Files with an embedded schema next to files of other tools: what is read does not depend on their order."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import engine_of
from records import blobs, example, field, floats, int64s, written
from strategies import sequence_example

OWN: dict[str, pa.Array] = {  # of two rows
    "a": pa.array([1, -2], pa.int8()),
    "b": pa.array(["x", None]),
    "c": pa.array([[1, 2], []], pa.list_(pa.int64())),
    "s": pa.array([{"x": 1.0}, {"x": 2.0}], pa.struct([("x", pa.float32())])),
    "untyped": pa.nulls(2),
}
FOREIGN = {
    "a": st.integers(-128, 127).map(int64s),
    "b": st.sampled_from(["", "ä"]).map(lambda text: blobs(text.encode())),
    "c": st.lists(st.integers(-9, 9), max_size=3).map(lambda values: int64s(*values)),
    "s/x": st.floats(width=32, allow_nan=False).map(floats),
    "untyped": st.lists(st.integers(0, 9), max_size=2).map(lambda values: int64s(*values) or field(3, b"")),
    "new": st.lists(st.sampled_from([b"cat", b"\xff"]), max_size=2).map(lambda values: blobs(*values)),
}
own = st.lists(st.sampled_from(list(OWN)), min_size=1, unique=True).map(
    lambda names: {name: OWN[name] for name in names}
)
rows = st.fixed_dictionaries({}, optional=FOREIGN).map(lambda features: example(**features))
DEFECTS = {
    "another feature type": example(a=floats(1.0)),
    "a value out of range": example(a=int64s(1000)),
    "text that is none": example(b=blobs(b"\xff")),
}


def outcome(paths: list[Path], **keywords: Any) -> Any:
    """Types by column, and the rows of each file; or the attributes of the error that do not tell of an order."""
    try:
        table = read_by(tfr.read_table, paths, include_file_paths="path", **keywords)
    except tfr.TFRecordError as error:
        return type(error), error.path, error.record, error.feature, error.expected, error.got, error.reason
    table.validate(full=True)
    columns = sorted(table.column_names)
    rows = [str([row[name] for name in columns]) for row in table.sort_by("path").to_pylist()]
    return {name: str(table.schema.field(name).type) for name in columns}, rows


@given(
    frames=st.lists(own, min_size=1, max_size=2),
    foreign=st.lists(st.lists(rows, min_size=1, max_size=3), min_size=1, max_size=2),
    data=st.data(),
    defect=st.none() | st.sampled_from(list(DEFECTS)),
    how=st.sampled_from([("native", 1), ("native", 3), ("reference_engine", 1)]),
)
def test_the_order_of_files_does_not_change_what_is_read(
    native_engine: None,
    frames: list[dict[str, pa.Array]],
    foreign: list[list[bytes]],
    defect: str | None,
    how: Any,
    data: Any,
) -> None:
    frames = [{"a": OWN["a"], "b": OWN["b"], **frame} if at == 0 else frame for at, frame in enumerate(frames)]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"own-{number}" for number in range(len(frames))]
        for frame, path in zip(frames, paths, strict=True):
            tfr.write_tfrecord(frame, path)
        if defect is not None:
            foreign = [*foreign[:1], [*foreign[0][:1], DEFECTS[defect]]]
        paths += [written(Path(folder) / f"foreign-{number}", file) for number, file in enumerate(foreign)]
        with engine_of(how[0]):
            orders = [paths, paths[::-1], data.draw(st.permutations(paths))]
            outcomes = [outcome(order, threads=how[1]) for order in orders]
    assert all(each == outcomes[0] for each in outcomes)
    assert (len(outcomes[0]) > 2) == (defect is not None)
    if defect is None:
        present = {name for frame in frames for name in frame}
        assert present <= outcomes[0][0].keys()
        assert outcomes[0][0]["a"] == "int8"
        assert len(outcomes[0][1]) == 2 * len(frames) + sum(map(len, foreign))


ORDERS = pytest.mark.parametrize("order", list(itertools.permutations(["own", "foreign", "other"])), ids="-".join)


@ORDERS
def test_features_of_files_without_an_embedded_schema_become_columns(
    engine: str, tmp_path: Path, order: tuple[str, ...]
) -> None:
    tfr.write_tfrecord({"a": pa.array([1], pa.int8())}, tmp_path / "own")
    tfr.write_tfrecord({"b": pa.array([True])}, tmp_path / "other")
    written(tmp_path / "foreign", [example(a=int64s(2), x=blobs(b"cat")), example(x=blobs(b"a", b"b"))])
    paths = [tmp_path / name for name in order]
    expected = {"a": pa.int8(), "b": pa.bool_(), "x": pa.list_(pa.string())}
    for table in (tfr.read_table(paths), tfr.open_reader(paths).read_all()):
        assert dict(zip(table.column_names, table.schema.types, strict=True)) == expected
        values = dict(zip(order, [[], [], []], strict=True))
        lengths = {"own": 1, "other": 1, "foreign": 2}
        begins = [sum(lengths[name] for name in order[:at]) for at in range(3)]
        for name, begin in zip(order, begins, strict=True):
            values[name] = table.slice(begin, lengths[name]).select(["a", "b", "x"]).to_pylist()
        assert values == {
            "own": [{"a": 1, "b": None, "x": None}],
            "other": [{"a": None, "b": True, "x": None}],
            "foreign": [{"a": 2, "b": None, "x": ["cat"]}, {"a": None, "b": None, "x": ["a", "b"]}],
        }
    assert sorted(tfr.read_arrays(paths, missing="mask")) == ["a", "b", "x"]
    assert len(tfr.read_table(paths, limit=2)) == 2


@ORDERS
def test_the_error_names_the_file_whose_schema_applies(engine: str, tmp_path: Path, order: tuple[str, ...]) -> None:
    tfr.write_tfrecord({"a": pa.array([1], pa.int8())}, tmp_path / "own")
    tfr.write_tfrecord({"b": pa.array([1], pa.int8())}, tmp_path / "other")
    paths = [tmp_path / name for name in order]
    for name, file in (("a", "own"), ("b", "other")):
        for value in (floats(1.0), int64s(1000)):
            written(tmp_path / "foreign", [example(**{name: value})])
            with pytest.raises(tfr.errors.DecodeError) as caught:
                tfr.read_table(paths)
            assert (caught.value.path, caught.value.feature) == (str(tmp_path / "foreign"), name)
            assert f"no embedded schema, so that of {tmp_path / file} applies" in str(caught.value)
    with pytest.warns(tfr.errors.StoppedEarlyWarning, match="no embedded schema, so that of"):
        tfr.read_table(paths, on_error="stop")


@pytest.mark.parametrize("own_first", [True, False])
def test_a_stream_names_the_file_whose_schema_it_has(engine: str, tmp_path: Path, own_first: bool) -> None:
    tfr.write_tfrecord({"a": [1]}, tmp_path / "own")
    paths = [tmp_path / "own", written(tmp_path / "foreign", [example(x=int64s(2))])]
    with (
        tfr.open_reader(paths if own_first else paths[::-1]) as reader,
        pytest.raises(tfr.errors.SchemaError) as caught,
    ):
        list(reader)
    assert (caught.value.path, caught.value.feature) == (str(paths[1]), "x")
    assert f"no embedded schema, so that of {paths[0]} applies" in str(caught.value)
    assert "schema='infer'" in str(caught.value)


@pytest.mark.parametrize("own_first", [True, False])
def test_a_file_with_an_embedded_schema_keeps_to_it(engine: str, tmp_path: Path, own_first: bool) -> None:
    tfr.write_tfrecord({"a": [1]}, tmp_path / "own")
    written(tmp_path / "own", [*tfr.RecordReader(tmp_path / "own"), example(x=int64s(2))])
    paths = [tmp_path / "own", written(tmp_path / "foreign", [example(x=int64s(2))])]
    with pytest.raises(tfr.errors.SchemaError, match="the embedded schema does not have it") as caught:
        tfr.read_table(paths if own_first else paths[::-1])
    assert (caught.value.path, caught.value.record, caught.value.feature) == (str(paths[0]), 1, "x")
    assert "applies" not in str(caught.value)


@pytest.mark.parametrize("files", [["own"], ["own", "foreign"], ["foreign", "own"]], ids=str)
def test_a_shape_that_an_override_leaves_unread_is_told_what_to_declare(
    engine: str, tmp_path: Path, files: list[str]
) -> None:
    tensor = np.arange(6, dtype=np.uint8).reshape(2, 3)
    for name in files:
        data = {"x": [tensor, tensor[:1]]}
        tfr.write_tfrecord(data, tmp_path / name, column_encoding={"x": "raw"}, embed_schema=name == "own")
    paths, override = [tmp_path / name for name in files], {"x": "binary"}
    advice = "if it belongs to 'x', override that as a tensor, or not at all; columns= .* schema='infer'"
    with pytest.raises(tfr.errors.SchemaError, match=f"'x/shape'.*{advice}"):
        tfr.read_table(tfr.dataset(paths, schema_overrides=override))
    values = [tensor.tobytes(), tensor[:1].tobytes()] * len(files)
    for keywords in ({"columns": ["x"]}, {"schema": "infer"}):
        read = tfr.read_table(tfr.dataset(paths, schema_overrides=override, **keywords))
        assert read["x"].to_pylist() == values
    as_tensor = tfr.read_table(
        tfr.dataset(paths, schema_overrides={"x": tfr.tensor("uint8", (None, None), encoding="raw")})
    )
    assert as_tensor == tfr.read_table(paths)


def test_an_offset_into_a_file_does_not_hide_its_schema(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"a": [1]}, tmp_path / "first")
    tfr.write_tfrecord({"a": [1, 2]}, tmp_path / "own")
    written(tmp_path / "own", [*tfr.RecordReader(tmp_path / "own"), example(x=int64s(2))])
    with pytest.raises(tfr.errors.SchemaError) as caught:
        tfr.read_table(tfr.dataset([tmp_path / "first", tmp_path / "own"], offset=2))
    assert "applies" not in str(caught.value)


@pytest.mark.parametrize("own_first", [True, False])
def test_feature_lists_of_files_without_an_embedded_schema(engine: str, tmp_path: Path, own_first: bool) -> None:
    tfr.write_tfrecord({"a": [1]}, tmp_path / "own", record_type="sequence_example")
    foreign = written(tmp_path / "foreign", [sequence_example({"a": int64s(2)}, {"steps": [int64s(1), int64s(2)]})])
    paths = [tmp_path / "own", foreign]
    table = tfr.read_table(paths if own_first else paths[::-1])
    assert sorted(table.to_pylist(), key=lambda row: row["a"]) == [{"a": 1, "steps": None}, {"a": 2, "steps": [1, 2]}]
