"""Lists as arrays of a chosen length, by column: equal to a plain loop over the rows."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by

Lists = list[list[int]]


def truncated(row: list[int], most: Any) -> list[int]:
    if most is None:
        return row
    if isinstance(most, tuple):
        return row[-most[0] :]
    return row[:most]


def padded(rows: Lists, length: Any, fill: int) -> Lists:
    size = max(map(len, rows), default=0)
    size = -(-size // length[0]) * length[0] if isinstance(length, tuple) else length or size
    return [row + [fill] * (size - len(row)) for row in rows]


lengths = st.none() | st.integers(1, 6) | st.tuples(st.integers(1, 6), st.just("left"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("layouts")


@given(
    rows=st.lists(st.lists(st.integers(0, 99), max_size=9), min_size=1, max_size=12),
    batch_size=st.integers(1, 5),
    most=lengths,
    length=st.none() | st.integers(6, 9) | st.tuples(st.integers(1, 4), st.just("multiple")),
    fill=st.integers(-9, 9),
    alone=st.booleans(),
)
def test_rows_are_truncated_and_padded(
    folder: Path, rows: Lists, batch_size: int, most: Any, length: Any, fill: int, alone: bool
) -> None:
    path = folder / "a.tfrecord"
    tfr.write_tfrecord({"x": rows, "y": [[1.5] * len(row) for row in rows], "n": range(len(rows))}, path)
    most = (most if most is not None else 6) if isinstance(length, int) else most
    options = {"ragged": "pad", "pad_value": fill, "max_length": most, "pad_to": length}
    if alone:
        options = {name: {"x": value} for name, value in options.items()}
        options["ragged"]["y"] = "offsets"
    begin = 0
    for batch in read_by(tfr.iter_arrays, path, batch_size=batch_size, threads=1, **options):
        own = rows[begin : begin + batch_size]
        begin += batch_size
        cut = [truncated(row, most) for row in own]
        assert batch["x"].tolist() == padded(cut, length, fill)
        assert batch["x/length"].tolist() == list(map(len, cut))
        if alone:
            values, offsets = batch["y"]
            assert [values[i:j].tolist() for i, j in pairwise(offsets)] == [[1.5] * len(row) for row in own]
    arrays = read_by(tfr.read_arrays, path, **options)
    assert arrays["x"].tolist() == padded([truncated(row, most) for row in rows], length, fill)


@given(shapes=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=6), most=lengths)
def test_tensors_are_truncated_along_their_first_axis(folder: Path, shapes: Any, most: Any) -> None:
    tensors = [np.arange(np.prod(shape)).reshape(shape) for shape in shapes]
    path = folder / "b.tfrecord"
    tfr.write_tfrecord({"x": tensors}, path, schema={"x": tfr.tensor("int64", (None, None))})
    arrays = tfr.read_arrays(path, ragged="pad", pad_value=-1, max_length=most, pad_to=6)
    expected = np.full((len(tensors), 6, max(shape[1] for shape in shapes)), -1)
    for row, tensor in zip(expected, tensors, strict=True):
        own = tensor[-most[0] :] if isinstance(most, tuple) else tensor[:most]
        row[: len(own), : own.shape[1]] = own
    assert arrays["x"].tolist() == expected.tolist()


def test_lists_of_one_length_are_stacked_after_truncation(folder: Path) -> None:
    path = folder / "c.tfrecord"
    rows = {"x": [[1, 2, 3], [4, 5], [6, 7, 8, 9]], "t": [["a", "b"], [], ["c"]]}
    tfr.write_tfrecord(rows, path, embed_schema=False)  # which would say that lists have any length
    (batch,) = tfr.iter_arrays(path, batch_size=3, max_length={"x": 2}, pad_to={"t": 2}, pad_value={"t": "-"})
    assert batch["x"].tolist() == [[1, 2], [4, 5], [6, 7]]
    assert batch["t"].tolist() == [["a", "b"], ["-", "-"], ["c", "-"]]
    assert tfr.dataset(path).to_arrays(max_length={"x": (2, "left")})["x"].tolist() == [[2, 3], [4, 5], [8, 9]]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"pad_to": {"x": 3}},
            tfr.errors.SchemaError,
            r"it has 4 values, but pad_to=3 has room for 3; .*pass max_length=",
        ),
        (
            {"pad_to": {"z": 3}},
            tfr.errors.FeatureNotFoundError,
            "names a column that is not read; the columns are x, n",
        ),
        ({"max_length": {"n": 3}}, tfr.errors.SchemaError, "not lists of varying length"),
        ({"ragged": "offsets", "pad_to": 3}, ValueError, "ragged='offsets' cannot be combined with pad_to=3"),
        ({"max_length": {"x": 9}, "pad_to": 8}, ValueError, "max_length=9 of 'x' is more than pad_to=8 has room for"),
        ({"pad_to": (3, "left")}, ValueError, "expected a length, or .length, 'multiple'."),
        ({"max_length": {"x": 0}}, ValueError, "max_length=0: expected at least 1"),
        ({"ragged": {"x": "padded"}}, ValueError, "ragged='padded': expected one of"),
        ({"pad_value": {1: 0}}, TypeError, "expected names of columns as keys"),
        ({"pad_value": {"x": -1}}, ValueError, "pad_value= names 'x', which is not padded: pass ragged="),
        ({"pad_value": {"x": -1}, "ragged": "offsets"}, ValueError, "pad_value= names 'x', which is not padded"),
        ({"pad_value": -1}, ValueError, "pad_value=-1 has no effect, as no column is padded: pass ragged='pad'"),
        ({"pad_value": "", "ragged": {"x": "object"}}, ValueError, "pad_value='' has no effect"),
    ],
)
def test_options_that_cannot_be(folder: Path, options: Any, error: type[Exception], message: str) -> None:
    path = folder / "d.tfrecord"
    tfr.write_tfrecord({"x": [[1, 2, 3], [4, 5, 6, 7]], "n": [1, 2]}, path)
    with pytest.raises(error, match=message):
        list(read_by(tfr.iter_arrays, path, batch_size=2, **options))


@pytest.mark.parametrize(("options", "named"), [({"pad_to": 2}, "pad_to=2"), ({"max_length": 1}, "max_length=1")])
def test_lists_of_lists_of_lists_have_no_length(folder: Path, options: Any, named: str) -> None:
    path = folder / "n.tfrecord"
    tfr.write_tfrecord({"n": [[[[1], [2]]], [[[3]]]], "x": [[1, 2], [3]]}, path)
    message = f"'n': {named} cannot represent lists of lists of lists; .*other columns in a dict"
    with pytest.raises(tfr.errors.SchemaError, match=message):
        read_by(tfr.read_arrays, path, **options)
    ((name, value),) = options.items()
    assert len(read_by(tfr.read_arrays, path, **{name: {"x": value}})["x"]) == 2
