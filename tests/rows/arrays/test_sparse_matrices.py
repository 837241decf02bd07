"""Matrices of scipy.sparse are written as indices and values, and read as SparseFeatures and as matrices."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.errors import DecodeError, EncodeError, MissingDependencyError, SchemaError
from tfrecord_io.rows.arrays.array_options import RepresentationOptions

sparse = pytest.importorskip("scipy.sparse")
IO = tfr.io
DTYPES = ["int8", "uint8", "int32", "int64", "float32", "bool"]


def _matrix(rows: int = 5, columns: int = 7, dtype: str = "float32", form: str = "csr") -> Any:
    return sparse.random(rows, columns, 0.4, form, random_state=rows, dtype="float32").astype(dtype)


def _same(matrix: Any, expected: Any) -> None:
    assert type(matrix) is sparse.csr_matrix
    assert matrix.shape == expected.shape
    assert matrix.dtype == expected.dtype
    assert (matrix != sparse.csr_matrix(expected)).nnz == 0
    assert matrix.has_canonical_format


@pytest.mark.plugins("tensorflow")
def test_a_matrix_is_read_back_in_three_ways(tmp_path: Path) -> None:
    matrix, path = _matrix(), tmp_path / "a"
    tfr.write_tfrecord({"id": np.arange(5), "x": matrix}, path)
    assert tfr.read_table(path).column_names == ["id", "x/indices", "x/values"]
    feature = IO.SparseFeature("x/indices", "x/values", "float32", 7)
    parsed = IO.parse_example(list(tfr.RecordReader(path)), {"x": feature})["x"]
    assert np.array_equal(parsed.to_dense(), matrix.toarray())
    arrays = tfr.read_arrays(path, ragged="csr")
    assert [*arrays] == ["id", "x"]
    _same(arrays["x"], matrix)
    description = tfr.Schema.from_arrow(tfr.read_table(path).schema).to_feature_description()
    assert description["x"] == IO.SparseFeature("x/indices", "x/values", "float32", 7, already_sorted=True)
    assert "x/indices" not in description
    _same(tfr.read_arrays(path, schema={"x": feature}, ragged={"x": "csr"})["x"], matrix)


@given(
    shape=st.tuples(st.integers(0, 6), st.integers(1, 6)),
    dtype=st.sampled_from(DTYPES),
    form=st.sampled_from(["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]),
    as_array=st.booleans(),
)
def test_every_form_and_dtype_comes_back(
    shape: tuple[int, int], dtype: str, form: str, as_array: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    matrix = _matrix(*shape, dtype, form)
    data = {"n": np.arange(shape[0]), "x": getattr(sparse, f"{form}_array")(matrix) if as_array else matrix}
    folder = tmp_path_factory.mktemp("a") / "a"
    folder.mkdir()
    tfr.write_tfrecord(data, folder)  # whose manifest keeps the schema of no rows
    _same(tfr.read_arrays(folder, ragged="csr")["x"], matrix)


@pytest.mark.parametrize("size", [2**31 - 1, 2**31, 2**33, 2**63 - 1])
def test_a_matrix_may_have_any_number_of_columns(size: int, tmp_path: Path) -> None:
    matrix = sparse.csr_array(([1.5, 2.5], ([0, 1], [3, size - 1])), (2, size))
    tfr.write_tfrecord({"x": matrix}, tmp_path / "a.tfrecord")
    _same(tfr.read_arrays(tmp_path / "a.tfrecord", ragged="csr")["x"], matrix)
    schema = tfr.Schema({"x": IO.SparseFeature("x/indices", "x/values", np.float32, size)})
    assert schema.to_feature_description()["x"].size == size
    for again in (tfr.Schema.from_json(schema.to_json()), tfr.Schema.from_tfx(schema.to_tfx())):
        assert again == schema
    assert tfr.read_table(tmp_path / "a.tfrecord", schema=schema)["x/indices"].to_pylist() == [[3], [size - 1]]
    with pytest.raises(SchemaError, match="an axis of more than 9223372036854775807 values"):
        IO.SparseFeature("x/indices", "x/values", np.float32, 2**63)


def test_values_that_are_stored_twice_are_added_and_zeros_stay(tmp_path: Path) -> None:
    twice = sparse.coo_matrix(([1, 2, 0], ([0, 0, 1], [3, 3, 2])), (2, 4))
    unsorted = sparse.csr_matrix((np.array([1, 2]), np.array([3, 0]), np.array([0, 2])), (1, 4))
    tfr.write_tfrecord({"x": twice}, tmp_path / "a")
    assert tfr.read_table(tmp_path / "a").to_pydict() == {"x/indices": [[3], [2]], "x/values": [[3], [0]]}
    tfr.write_tfrecord({"x": unsorted}, tmp_path / "b")
    assert tfr.read_table(tmp_path / "b").to_pydict() == {"x/indices": [[0, 3]], "x/values": [[2, 1]]}
    assert unsorted.indices.tolist() == [3, 0]  # the caller's is as it was


def test_float64_is_rounded_or_kept_as_in_other_columns(tmp_path: Path) -> None:
    matrix = sparse.csr_matrix(np.array([[0.1, 0], [0, 0.2]]))
    with pytest.warns(tfr.errors.PrecisionWarning):
        tfr.write_tfrecord({"x": matrix}, tmp_path / "a")
    tfr.write_tfrecord({"x": matrix}, tmp_path / "b", float64="raw")
    _same(tfr.read_arrays(tmp_path / "b", ragged="csr")["x"], matrix)


def test_batches_and_shuffled_batches_are_matrices(tmp_path: Path) -> None:
    matrix = _matrix(20, 9)
    tfr.write_tfrecord({"id": np.arange(20), "x": matrix, "l": np.tile([1, 2], (20, 1))}, tmp_path / "a")
    for keywords in ({}, {"shuffle_buffer": 20, "seed": 1}):
        seen = []
        for batch in tfr.iter_arrays(tmp_path / "a", batch_size=6, ragged="csr", **keywords):
            _same(batch["x"], matrix[batch["id"]])
            assert batch["l"].shape == (len(batch["id"]), 2)
            seen += batch["id"].tolist()
        assert sorted(seen) == list(range(20))


def test_several_files_and_matrices(tmp_path: Path) -> None:
    first, second = _matrix(5, 7), _matrix(8, 3, "int32")[:5]
    tfr.write_tfrecord({"x": first, "y": second}, tmp_path / "t@3")
    arrays = tfr.read_arrays(tmp_path / "t@3", ragged={"x": "csr"})
    _same(arrays["x"], first)
    assert {"y/indices", "y/values"} <= arrays.keys()
    _same(tfr.read_arrays(tmp_path / "t@3", ragged={"y/values": "csr", "x": "csr"})["y"], second)


def test_rows_without_the_features_are_empty(tmp_path: Path) -> None:
    tfr.write_tfrecord({"i": pa.array([[1], None]), "v": pa.array([[5], None])}, tmp_path / "a", embed_schema=False)
    schema = {"x": IO.SparseFeature("i", "v", "int64", 3)}
    matrix = tfr.read_arrays(tmp_path / "a", schema=schema, ragged="csr")["x"]
    assert matrix.toarray().tolist() == [[0, 5, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([[0], [3]], "record 1: feature 'i': the index 3 is out of range for a matrix of 3 columns"),
        ([[0], [-1]], "record 1: feature 'i': the index -1 is out of range"),
        ([[0], [1, 2]], "record 1: feature 'i': expected 1 indices, one per value, got 2"),
    ],
)
def test_indices_that_do_not_fit_are_named(indices: Any, message: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"i": indices, "v": [[5], [6]]}, tmp_path / "a", embed_schema=False)
    schema = {"x": IO.SparseFeature("i", "v", "int64", 3)}
    with pytest.raises(DecodeError, match=message):
        tfr.read_arrays(tmp_path / "a", schema=schema, ragged="csr")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"ragged": {"id": "csr"}}, "feature 'id': ragged='csr' names it, and it is not a sparse column; declare it"),
        ({"ragged": "csr", "columns": ["id"]}, "no column is sparse; declare it: schema="),
        ({"ragged": "csr", "columns": ["x/values"]}, "the indices of its values are not read; read 'x/indices', too"),
        (
            {"ragged": "csr", "schema": {"x": IO.SparseFeature(["i", "j"], "v", "int64", [3, 4])}},
            "a row of a matrix has one axis of a known size",
        ),
        ({"ragged": "csr", "schema": {"x": IO.SparseFeature("i", "v", "string", 3)}}, "a matrix has numbers"),
    ],
)
@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
def test_what_is_no_matrix_says_what_to_do(keywords: Any, message: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": np.arange(5), "x": _matrix()}, tmp_path / "a")
    with pytest.raises(SchemaError, match=message):
        tfr.read_arrays(tmp_path / "a", **keywords)


def test_options_that_a_matrix_does_not_take(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": _matrix()}, tmp_path / "a")
    for keywords in ({"max_length": 3}, {"pad_to": 3}, {"out": {"x": np.zeros(5)}}):
        with pytest.raises(ValueError, match=f"ragged='csr'.*{next(iter(keywords))}="):
            tfr.read_arrays(tmp_path / "a", ragged="csr", **keywords)


def test_libraries_of_tensors_refuse_matrices() -> None:
    for ragged in ("csr", {"x": "csr"}):
        with pytest.raises(
            ValueError, match=r"ragged='csr' makes matrices of scipy, not tensors of torch; pass ragged="
        ):
            RepresentationOptions.refuse_matrices(ragged, "torch")
    RepresentationOptions.refuse_matrices({"x": "pad"}, "torch")


def test_a_matrix_without_a_name_and_names_that_are_taken(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"csr_matrix is one column and has no name: pass a dict, \{'x': matrix\}"):
        tfr.write_tfrecord(_matrix(), tmp_path / "a")
    with pytest.raises(EncodeError, match="'x/values': it is also a feature of the sparse column 'x'"):
        tfr.write_tfrecord({"x": _matrix(), "x/values": [1] * 5}, tmp_path / "a")
    with pytest.raises(EncodeError, match="'y': has 3 values, where 'x/indices' has 5"):
        tfr.write_tfrecord({"x": _matrix(), "y": [1] * 3}, tmp_path / "a")
    with pytest.raises(EncodeError, match="values of dtype complex128 cannot be stored"):
        tfr.write_tfrecord({"x": _matrix().astype(complex)}, tmp_path / "a")


def test_a_missing_scipy_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"x": _matrix()}, tmp_path / "a")
    monkeypatch.setitem(__import__("sys").modules, "scipy.sparse", None)
    with pytest.raises(MissingDependencyError, match=r"tfrecord_io\[sparse\]"):
        tfr.read_arrays(tmp_path / "a", ragged="csr")
