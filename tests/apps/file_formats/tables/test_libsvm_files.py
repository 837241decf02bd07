"""libsvm text files as a source of conversions; scikit-learn's load_svmlight_file says what is right."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.apps.file_formats.tables import libsvm_files
from tfrecord_io.errors import DecodeError, SchemaError

svmlight = pytest.importorskip("sklearn.datasets")
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=64)


def _read(path: Path, target: Path, **keywords: Any) -> dict[str, Any]:
    options = {"source_options": keywords} if keywords else {}
    tfr.convert(path, target, float64="raw", **options)
    return tfr.read_arrays(target, ragged="csr")


def _same(arrays: dict[str, Any], features: Any, labels: Any) -> None:
    matrix = arrays["features"]
    assert matrix.shape == features.shape
    assert np.array_equal(matrix.indptr, features.indptr)
    assert np.array_equal(matrix.indices, features.indices)
    assert np.array_equal(matrix.data, features.data)
    assert np.array_equal(arrays["label"], labels)


def test_the_lines_of_the_format_are_read_as_scikit_learn_reads_them(tmp_path: Path) -> None:
    (tmp_path / "a.libsvm").write_text("1 3:0.5 7:2 # c\n-1 1:1e-3\n\n# only a comment\n0\n+1.5\t2:-.5  4:+3.\r\n")
    arrays = _read(tmp_path / "a.libsvm", tmp_path / "a.tfrecord")
    _same(arrays, *svmlight.load_svmlight_file(str(tmp_path / "a.libsvm")))
    table = tfr.read_table(tmp_path / "a.tfrecord")
    assert table.column_names == ["label", "features/indices", "features/values"]
    assert table["features/indices"].to_pylist() == [[2, 6], [0], [], [1, 3]]
    assert table["label"].to_pylist() == [1, -1, 0, 1.5]


ROWS = st.lists(st.tuples(NUMBERS, st.dictionaries(st.integers(0, 40), NUMBERS, max_size=5)), min_size=1, max_size=12)


@given(rows=ROWS, base=st.sampled_from([0, 1]), block=st.sampled_from([1, 30, 1 << 20]), packed=st.booleans())
def test_any_file_is_read_as_scikit_learn_reads_it(
    rows: Any, base: int, block: int, packed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("a") / ("a.svm.gz" if packed else "a.svm")
    lines = [
        " ".join([repr(label), *(f"{index + base}:{value!r}" for index, value in sorted(row.items()))])
        for label, row in rows
    ]
    path.write_bytes(gzip.compress("\n".join(lines).encode()) if packed else "\n".join(lines).encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(libsvm_files, "_BLOCK_BYTES", block)
        arrays = _read(path, path.with_name("a.tfrecord"))
    if any(row for _, row in rows):  # scikit-learn gives no row a feature, a table one
        _same(arrays, *svmlight.load_svmlight_file(str(path)))


@pytest.mark.parametrize("zero_based", [True, False])
def test_options_state_where_indices_begin_and_how_many_there_are(tmp_path: Path, zero_based: bool) -> None:
    (tmp_path / "a.svm").write_text("1 1:2 3:4\n")
    arrays = _read(tmp_path / "a.svm", tmp_path / "a.tfrecord", zero_based=zero_based, n_features=9)
    expected = svmlight.load_svmlight_file(str(tmp_path / "a.svm"), zero_based=zero_based, n_features=9)
    _same(arrays, *expected)
    with pytest.raises(SchemaError, match=rf"the files have {3 + zero_based} features, more than .*n_features.*2"):
        _read(tmp_path / "a.svm", tmp_path / "a.tfrecord", zero_based=zero_based, n_features=2)
    (tmp_path / "a.svm").write_text("1 0:2\n")
    if not zero_based:
        with pytest.raises(SchemaError, match=r"zero_based.*False.*: the files have an index 0"):
            _read(tmp_path / "a.svm", tmp_path / "a.tfrecord", zero_based=False)


def test_queries_and_several_labels(tmp_path: Path) -> None:
    (tmp_path / "q.svm").write_text("3 qid:1 1:0.5\n2 qid:1 2:1\n1 qid:7\n")
    arrays = _read(tmp_path / "q.svm", tmp_path / "q.tfrecord")
    features, labels, queries = svmlight.load_svmlight_file(str(tmp_path / "q.svm"), query_id=True)
    _same(arrays, features, labels)
    assert arrays["qid"].tolist() == queries.tolist()
    (tmp_path / "m.svm").write_text("1,2 1:0.5\n 2:1\n3 1:2\n")
    table = tfr.read_table(tfr.convert(tmp_path / "m.svm", tmp_path / "m.tfrecord").path)
    _, many = svmlight.load_svmlight_file(str(tmp_path / "m.svm"), multilabel=True)
    assert table["label"].to_pylist() == [list(labels) for labels in many] == [[1, 2], [], [3]]


def test_several_files_have_the_features_of_all(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "a.svm").write_text("1 0:1\n")
    (folder / "b.svm").write_text("2 5:1\n")
    arrays = _read(folder, tmp_path / "a.tfrecord")
    assert arrays["features"].toarray().tolist() == [[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1]]


def test_the_format_can_be_named_and_columns_chosen(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1 1:1\n2 2:1\n")
    tfr.convert(tmp_path / "a.txt", tmp_path / "b.tfrecord", source_format="libsvm", filters=[("label", ">", 1)])
    assert tfr.read_table(tmp_path / "b.tfrecord")["features/indices"].to_pylist() == [[1]]
    options = {"schema_overrides": {"label": "int64", "features/values": "list<float32>"}}
    tfr.convert(tmp_path / "a.txt", tmp_path / "b.tfrecord", source_format="svmlight", source_options=options)
    arrays = tfr.read_arrays(tmp_path / "b.tfrecord", ragged="csr")
    assert (arrays["label"].dtype, arrays["features"].dtype) == (np.int64, np.float32)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 2 3:4", "'2' is not expected here"),
        ("1:2 3", "'3' is not expected here"),
        ("1 a:3", "'a:3' is not expected here"),
        ("x 1:2", "'x' is not expected here"),
        ("1 1:2:3", "'1:2:3' is not expected here"),
        ("1 1:2 qid:3", "'qid:3' is not expected here"),
        ("1 -1:2", "'-1:2' is not expected here"),
        ("1 2:3 1:1", "the index 1 follows 2"),
        ("1 2:3 2:1", "the index 2 follows 2"),
        ("1 9007199254740993:1", "an index is 9007199254740992 or more"),
        ("1 qid:4 1:1", "it has no qid:"),
    ],
)
def test_a_line_that_scikit_learn_refuses_is_named(line: str, reason: str, tmp_path: Path) -> None:
    first = line if "no qid" in reason else "1 1:1"
    (tmp_path / "a.svm").write_text(f"{first}\n\n{'1 1:1' if first == line else line}\n")
    if "9007" not in line and "no qid" not in reason:
        with pytest.raises(ValueError, match=r"."):
            svmlight.load_svmlight_file(str(tmp_path / "a.svm"))
    with pytest.raises(DecodeError, match=rf"a\.svm: line 3: {reason}"):
        tfr.convert(tmp_path / "a.svm", tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()
