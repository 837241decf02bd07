"""read_arrays with out=: the caller's arrays are filled, or refused with what would fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from records import example, floats, int64s, written

SCHEMA = {"image": tfr.tensor("float32", (28, 28, 1)), "label": tfr.tensor("float64", (10,))}


def test_a_memmap_is_filled_batch_by_batch(data: Path, tmp_path: Path, engine: str) -> None:
    golden = np.load(data / "fashion.npz")
    image = np.memmap(tmp_path / "image.bin", np.float32, "w+", shape=(240, 28, 28, 1))
    out = {"label": np.empty((240, 10)), "image": image}
    paths = [data / "fashion.tfrecord"] * 2
    filled = tfr.read_arrays(paths, schema=SCHEMA, out=out)
    assert list(filled) == ["label", "image"]
    assert all(filled[name] is out[name] for name in out)
    for name in out:
        assert (out[name][:120] == golden[name]).all()
        assert (out[name][120:] == golden[name]).all()
    image.flush()
    again = np.memmap(tmp_path / "image.bin", np.float32, "r", shape=(240, 28, 28, 1))
    assert (again[120:] == golden["image"]).all()


def test_out_selects_the_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(n), y=floats(n), z=int64s(n, n)) for n in range(9)])
    out: dict[str, Any] = {"z": np.zeros((9, 2), np.int64), "x": np.zeros(9, np.int64)}
    assert list(tfr.read_arrays(path, out=out)) == ["z", "x"]
    assert out["z"].tolist() == [[n, n] for n in range(9)]
    with pytest.raises(tfr.errors.SchemaError, match="feature 'y': out= has no array for it"):
        tfr.read_arrays(path, columns=["x", "y"], out={"x": np.zeros(9, np.int64)})
    with pytest.raises(tfr.errors.SchemaError, match="feature 'z': out= has an array for it"):
        tfr.read_arrays(path, columns="x", out=out)
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'w'"):
        tfr.read_arrays(path, out={"w": np.zeros(9)})


@pytest.mark.parametrize(
    ("array", "error", "message"),
    [
        (np.zeros(9, np.int32), tfr.errors.SchemaError, r"is int32 \[9\], but the column is int64 \[rows\]"),
        (np.zeros((9, 1), np.int64), tfr.errors.SchemaError, r"is int64 \[9, 1\], but the column is int64 \[rows\]"),
        (np.zeros(8, np.int64), ValueError, "have 8 rows, but there are more records; pass limit=8"),
        (np.zeros(10, np.int64), ValueError, "have 10 rows, but there are 9 records"),
        ([0] * 9, TypeError, r"out\['x'\]: expected an array.* got list"),
        (np.broadcast_to(np.int64(0), 9), ValueError, "cannot be written to"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path: Path, array: Any, error: type[Exception], message: str) -> None:
    path = written(tmp_path / "a", [example(x=int64s(n)) for n in range(9)])
    with pytest.raises(error, match=message):
        tfr.read_arrays(path, out={"x": array})


def test_lists_must_have_the_length_of_the_array(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1, 2)), example(x=int64s(3))])
    with pytest.raises(
        tfr.errors.SchemaError, match=r"record 1: feature 'x': its shape is \(1,\), but the array of out= has \(2,\)"
    ):
        tfr.read_arrays(path, out={"x": np.zeros((2, 2), np.int64)})
    with pytest.raises(tfr.errors.SchemaError, match=r"the column is int64 \[rows, \?\]"):
        tfr.read_arrays(path, out={"x": np.zeros(2, np.int64)})


@pytest.mark.fault(44)
def test_a_missing_value_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1)), example()])
    with pytest.raises(tfr.errors.DecodeError, match="record 1"):
        tfr.read_arrays(path, out={"x": np.zeros(2, np.int64)})
    with pytest.raises(ValueError, match=r'missing="mask" cannot be combined with out='):
        tfr.read_arrays(path, out={"x": np.zeros(2, np.int64)}, missing="mask")
    out = np.full(2, 7)
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        tfr.read_arrays(path, out={"x": out}, on_error="stop")


def test_arrays_without_a_common_length_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1), y=int64s(1))])
    with pytest.raises(ValueError, match=r"different numbers of rows: \[1, 2\]"):
        tfr.read_arrays(path, out={"x": np.zeros(1, np.int64), "y": np.zeros(2, np.int64)})
    with pytest.raises(ValueError, match="no array"):
        tfr.read_arrays(path, out={})


@pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
def test_rows_are_padded_to_the_shape_of_the_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_bytes: int
) -> None:
    monkeypatch.setattr("tfrecord_io.rows.arrays.read_arrays._OUT_BATCH_BYTES", batch_bytes)
    rng = np.random.default_rng(0)
    clips = [rng.random((n % 3, 2 + n % 2), "float32") for n in range(9)]
    lists = [list(range(n)) for n in range(9)]
    tfr.write_tfrecord({"clip": clips, "ids": lists}, tmp_path / "a.tfrecord")
    expected = tfr.read_arrays(tmp_path / "a.tfrecord", ragged="pad", pad_value=-1)
    out: dict[str, Any] = {
        "clip": np.zeros((9, 4, 3), "float32"),
        "ids": np.zeros((9, 8), np.int64),
        "clip/shape": np.zeros((9, 2), np.int64),
        "ids/length": np.zeros(9, np.int64),
    }
    filled = tfr.read_arrays(tmp_path / "a.tfrecord", ragged="pad", pad_value=-1, out=out)
    assert list(filled) == ["clip", "clip/shape", "ids", "ids/length"]
    assert (filled["clip"][:, :2] == expected["clip"]).all()
    assert (filled["clip"][:, 2:] == -1).all()
    for name in ("ids", "ids/length", "clip/shape"):
        assert (filled[name] == expected[name]).all(), name
    cut = {"ids": np.zeros((9, 3), np.int64)}
    tfr.read_arrays(tmp_path / "a.tfrecord", ragged="pad", max_length=3, out=cut)
    assert cut["ids"].tolist() == [[*range(n), 0, 0, 0][:3] for n in (0, 1, 2, 3, 3, 3, 3, 3, 3)]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.zeros((2, 2), np.int64)}, r"record 0: feature 'x': its shape is \(3,\), but .* has room for \(2,\)"),
        ({"x": np.zeros((2, 3), np.int32)}, r"is int32 \[2, 3\], but the column is int64 \[rows, \?\]"),
        ({"x": np.zeros((2, 3, 1), np.int64)}, r"is int64 \[2, 3, 1\], but the column is int64 \[rows, \?\]"),
        (
            {"x": np.zeros((2, 3), np.int64), "x/length": np.zeros(2)},
            r"'x/length': .* but the column is int64 \[rows\]",
        ),
        ({"x": np.zeros((2, 3), np.int64), "x/shape": np.zeros((2, 1), np.int64)}, "'x/shape': .* are in 'x/length'"),
        ({"x": np.zeros((2, 3), np.int64), "x/lengths": np.zeros(2, np.int64)}, "'x/lengths'"),
    ],
)
def test_padded_rows_that_do_not_fit_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [[1, 2, 3], [4, 5]]}, path)
    with pytest.raises(tfr.errors.SchemaError, match=message):
        tfr.read_arrays(path, ragged="pad", out=arrays)


def test_arrays_to_fill_take_no_other_length(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [[1, 2, 3], [4, 5]]}, path)
    out = {"x": np.zeros((2, 2), np.int64)}
    with pytest.raises(ValueError, match=r"pad_to=2 cannot be combined with out="):
        tfr.read_arrays(path, out=out, max_length=2, pad_to=2)
    assert tfr.read_arrays(path, out=out, max_length=2, schema={"x": tfr.list_("int64")})["x"].tolist() == [
        [1, 2],
        [4, 5],
    ]
