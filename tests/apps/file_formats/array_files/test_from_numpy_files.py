"""``.npy``, ``.npz`` and IDX files to TFRecord files, and what is rejected."""

from __future__ import annotations

import gzip
import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import tfrecord_io as tfr

numbers = st.one_of(
    nps.boolean_dtypes(),
    nps.integer_dtypes(endianness="?"),
    nps.floating_dtypes(endianness="?"),
    nps.complex_number_dtypes(),
)


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    plain = b.astype(b.dtype.newbyteorder("<"))
    return a.dtype == plain.dtype and a.shape == b.shape and a.tobytes() == plain.tobytes()


@given(st.data(), st.integers(1, 7), st.booleans())
def test_npz_archives_round_trip(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject, rows: int, deflated: bool
) -> None:
    shapes = nps.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)
    arrays = data.draw(
        st.dictionaries(st.sampled_from("abcd"), shapes.flatmap(lambda s: nps.arrays(numbers, (rows, *s))), min_size=1)
    )
    folder = tmp_path_factory.mktemp("npz")
    (np.savez_compressed if deflated else np.savez)(folder / "x.npz", **arrays)
    tfr.write_tfrecord(tfr.formats.open_npz(folder / "x.npz"), folder / "x.tfrecord")
    actual = tfr.read_arrays(folder / "x.tfrecord")
    assert actual.keys() == arrays.keys()
    assert all(equal(actual[name], arrays[name]) for name in arrays)


def test_one_file_one_column(tmp_path: Path) -> None:
    array = np.asfortranarray(np.arange(60, dtype=">i2").reshape(10, 3, 2))
    np.save(tmp_path / "x.npy", array)
    with tfr.formats.open_npy(tmp_path / "x.npy") as stream:
        assert (stream.schema.names, stream.num_rows) == (["x"], 10)
        tfr.write_tfrecord(stream, tmp_path / "x.tfrecord")
    assert equal(tfr.read_arrays(tmp_path / "x.tfrecord")["x"], array)
    (tmp_path / "x.npy").rename(tmp_path / "X.NPY")
    assert tfr.formats.open_npy(tmp_path / "X.NPY").schema.names == ["X"]


def test_files_are_zipped_by_their_leading_axis(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((3, 2)))
    np.save(tmp_path / "y.npy", np.arange(3))
    assert tfr.formats.open_npy([tmp_path / "x.npy", tmp_path / "y.npy"]).schema.names == ["x", "y"]
    assert tfr.formats.open_npy({"a": tmp_path / "y.npy"}).read_all().to_pydict() == {"a": [0, 1, 2]}
    np.save(tmp_path / "y.npy", np.arange(4))
    with pytest.raises(tfr.errors.EncodeError, match=r"has 4 rows, but 'x' .* has 3") as caught:
        tfr.formats.open_npy([tmp_path / "x.npy", tmp_path / "y.npy"])
    assert caught.value.feature == "y"


def test_a_scalar_array_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array(3.0))
    with pytest.raises(tfr.errors.EncodeError, match="no axis that counts rows"):
        tfr.formats.open_npy(tmp_path / "x.npy")


def test_a_structured_array_becomes_a_column_per_field(tmp_path: Path) -> None:
    records = np.array([(1, [0.5, 1.5]), (2, [2.5, 3.5])], [("id", "i4"), ("xy", "f4", (2,))])
    np.save(tmp_path / "x.npy", records)
    tfr.write_tfrecord(tfr.formats.open_npy(tmp_path / "x.npy"), tmp_path / "x.tfrecord")
    actual = tfr.read_arrays(tmp_path / "x.tfrecord")
    assert equal(actual["id"], records["id"])
    assert equal(actual["xy"], records["xy"])


def test_structured_arrays_with_several_axes(tmp_path: Path) -> None:
    records = np.asfortranarray(np.arange(12, dtype=np.int32).view([("id", "i4"), ("x", "f4")]).reshape(3, 2))
    np.save(tmp_path / "x.npy", records)
    tfr.write_tfrecord(tfr.formats.open_npy(tmp_path / "x.npy"), tmp_path / "x.tfrecord")
    actual = tfr.read_arrays(tmp_path / "x.tfrecord")
    assert all(equal(actual[name], records[name]) for name in ("id", "x"))


@pytest.mark.parametrize("other", [np.zeros(3), np.zeros(3, [("id", "i4")])], ids=["a column", "a field"])
def test_a_field_named_like_another_column_is_an_error(tmp_path: Path, other: np.ndarray) -> None:
    np.savez(tmp_path / "x.npz", a=np.zeros(3, [("id", "i4"), ("x", "f4")]), id=other)
    with pytest.raises(tfr.errors.EncodeError, match="two arrays would become columns of this name") as caught:
        tfr.formats.open_npz(tmp_path / "x.npz")
    assert caught.value.feature == "id"


def test_each_object_in_a_folder_is_a_row(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given_arrays = [
        {"a": rng.random((i + 1, 3)), "b": rng.integers(0, 9, (2, 2)), "label": np.array(i)} for i in range(12)
    ]
    for i, arrays in enumerate(given_arrays):
        np.savez(tmp_path / f"{i}.npz", **arrays)
    tfr.write_tfrecord(tfr.formats.open_npz(tmp_path), tmp_path / "x.tfrecord")
    actual = tfr.read_arrays(tmp_path / "x.tfrecord")
    assert actual["label"].tolist() == list(range(12))
    assert all(equal(actual["a"][i], arrays["a"]) for i, arrays in enumerate(given_arrays))
    assert equal(actual["b"], np.stack([arrays["b"] for arrays in given_arrays]))


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"a": np.zeros((2, 2)), "more": np.zeros(1)}, "has an array of this name"),
        ({}, "no .npy members"),
        ({"b": np.zeros((2, 2))}, "has no array of this name"),
        ({"a": np.zeros((2, 2), "f4")}, "dtype"),
        ({"a": np.zeros(2)}, "dimensions"),
    ],
)
def test_objects_that_differ_raise_before_anything_is_written(
    tmp_path: Path, second: dict[str, np.ndarray], reason: str
) -> None:
    np.savez(tmp_path / "1.npz", a=np.zeros((2, 3)))
    np.savez(tmp_path / "2.npz", **second)
    with pytest.raises(tfr.TFRecordError, match=reason) as caught:
        tfr.formats.open_npz(tmp_path)
    assert caught.value.path is not None
    assert "2.npz" in caught.value.path


@pytest.mark.fault(54)
def test_objects_and_pickles_are_never_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", x=np.array([{"a": 1}], object))
    with pytest.raises(tfr.errors.DecodeError, match="objects, which are pickles"):
        tfr.formats.open_npy(tmp_path / "x.npy")
    with pytest.raises(tfr.errors.DecodeError, match="objects, which are pickles") as caught:
        tfr.formats.open_npz(tmp_path / "x.npz")
    assert caught.value.path.endswith("x.npz: x.npy")


@pytest.mark.fault(54)
def test_arrays_of_an_archive_are_excluded_by_columns(tmp_path: Path) -> None:
    """Such as a number next to the arrays, which is common, and objects; in a folder, also those that not all have."""
    others = {"epoch": np.array(5), "names": np.array(["a", None], object), "short": np.arange(2)}
    path, target = tmp_path / "a.npz", tmp_path / "a.tfrecord"
    np.savez(path, x=np.arange(3), pair=np.ones(3, [("a", "i4"), ("b", "f4")]), **others)
    with pytest.raises(tfr.errors.EncodeError, match=r"a single value: .*exclude it with columns="):
        tfr.convert(path, target, columns=["!names"])
    with pytest.raises(tfr.errors.DecodeError, match="objects"):
        tfr.convert(path, target, columns=["x", "names"])
    tfr.convert(path, target, columns=["b"], filters=[("x", ">", 0)])
    assert tfr.read_table(target).to_pydict() == {"b": [1.0, 1.0]}
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="nonsense"):
        tfr.convert(path, target, columns=["nonsense"])
    (tmp_path / "folder").mkdir()
    np.savez(tmp_path / "folder/1.npz", x=np.arange(3), **others)
    np.savez(tmp_path / "folder/2.npz", x=np.arange(2))
    tfr.convert(tmp_path / "folder", target, columns=["x"], source_format="npz", mode="overwrite")
    assert tfr.read_table(target).to_pydict() == {"x": [[0, 1, 2], [0, 1]]}


def test_damaged_archives_raise(tmp_path: Path) -> None:
    (tmp_path / "x.npz").write_bytes(b"PK nonsense")
    with pytest.raises(tfr.errors.DecodeError, match=r"not an \.npz archive"):
        tfr.formats.open_npz(tmp_path / "x.npz")
    whole = io.BytesIO()
    np.savez(whole, x=np.arange(1000))
    damaged = bytearray(whole.getvalue())
    damaged[400] ^= 1
    (tmp_path / "x.npz").write_bytes(damaged)
    with pytest.raises(tfr.errors.DecodeError, match="damaged"):
        tfr.formats.open_npz(tmp_path / "x.npz").read_all()
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(tfr.errors.DecodeError, match=r"no \.npy members"):
        tfr.formats.open_npz(tmp_path / "x.npz")


def test_idx_files_of_the_golden_data(data: Path, tmp_path: Path) -> None:
    stream = tfr.formats.open_idx(data / "train-images-idx3-ubyte.gz", data / "train-labels-idx1-ubyte.gz")
    tfr.write_tfrecord(stream, tmp_path / "x.tfrecord")
    actual = tfr.read_arrays(tmp_path / "x.tfrecord")
    with gzip.open(data / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 28, 28)
    assert equal(actual["image"], images)
    assert actual["label"].dtype == np.uint8
    assert len(actual["label"]) == len(images)


def test_lists_of_files(data: Path, tmp_path: Path) -> None:
    files = [data / "train-images-idx3-ubyte.gz", data / "train-labels-idx1-ubyte.gz"]
    assert tfr.formats.open_idx(files).schema.names == tfr.formats.open_idx(*files).schema.names == ["image", "label"]
    assert tfr.formats.open_idx(files, names=["a", "b"]).schema.names == ["a", "b"]
    np.savez(tmp_path / "x.npz", x=np.arange(3))
    with pytest.raises(TypeError, match=r"one archive or a folder of them, not a list.*tfr\.open_writer"):
        tfr.formats.open_npz([tmp_path / "x.npz", tmp_path / "x.npz"])  # type: ignore[arg-type]
    with tfr.open_writer(tmp_path / "x.tfrecord") as writer:
        for _ in range(2):
            writer.write(tfr.formats.open_npz(tmp_path / "x.npz"))
    assert tfr.read_arrays(tmp_path / "x.tfrecord")["x"].tolist() == [0, 1, 2] * 2


def test_missing_files_raise(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        tfr.formats.open_npy(tmp_path / "none.npy")
    with pytest.raises(FileNotFoundError, match=r"no \.npz files"):
        tfr.formats.open_npz(tmp_path)


@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, order: str) -> None:
    array = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (120_000, 256), fortran_order=order == "F")
    array[:] = 1
    array.flush()
    del array
    tracemalloc.start()
    try:
        assert (
            tfr.write_tfrecord(tfr.formats.open_npy(tmp_path / "x.npy"), tmp_path / "x.tfrecord", threads=2).records
            == 120_000
        )
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()
