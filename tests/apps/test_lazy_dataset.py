"""`tfr.dataset`: one schema, many forms, in whole, in part, in pieces."""

from __future__ import annotations

import copy
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from limited import set_processors
from records import blobs, example, int64s, written
from tfrecord_io.read.scan import Scan
from tfrecord_io.store.paths.manifest_files import SIZES

f = pc.field


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three shards of a DataFrame with an index, and tensors."""
    frame = pd.DataFrame(
        {"label": [0, 1, 2, 0, 1, 2], "name": ["a", None, "c", "d", "e", "f"]},
        index=pd.Index([10, 11, 12, 13, 14, 15], name="id"),
    )
    frame["image"] = list(np.arange(24, dtype="uint8").reshape(6, 2, 2))
    tfr.write_tfrecord(frame, tmp_path / "train@3")
    return tmp_path / "train@3"


def test_it_knows_files_sizes_rows_and_schema(path: Path) -> None:
    dataset = tfr.dataset(path)
    assert dataset.schema.equals(tfr.open_reader(path).schema, check_metadata=True)
    assert dataset.schema_source == "embedded"
    assert [Path(file).name for file in dataset.files] == [f"train-{i:05d}-of-00003" for i in range(3)]
    assert dataset.bytes == sum(Path(file).stat().st_size for file in dataset.files)
    assert dataset.rows == dataset.count_rows() == 6


def test_nothing_is_read_before_it_is_used(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(n=int64s(n)) for n in range(5)])
    dataset = tfr.dataset(path, schema={"n": "int64"})
    narrowed = dataset.select(["n"]).filter(f("n") > 1)
    path.write_bytes(b"damaged, and too long for the header of a record")
    with pytest.raises(tfr.errors.CorruptRecordError):
        narrowed.to_table()


@pytest.mark.parametrize(
    ("keywords", "source"),
    [
        ({}, "inferred"),
        ({"schema": {"n": "int32"}}, "schema="),
        ({"sample": 2}, "inferred"),
        ({"columns": "n"}, "inferred"),
    ],
)
def test_the_schema_is_fixed_when_it_is_made(tmp_path: Path, keywords: dict[str, Any], source: str) -> None:
    values = [example(n=int64s(n), text=blobs(b"x")) for n in range(5)]
    path = written(tmp_path / "a.tfrecord", [*values, example(n=int64s(1, 2))])
    dataset = (
        tfr.dataset(path, **keywords) if source == "schema=" or "sample" in keywords else tfr.dataset(path, limit=5)
    )
    assert dataset.schema_source == source
    assert dataset.schema.field("n").type in (pa.int64(), pa.int32())
    if "sample" in keywords:
        for selected in (
            dataset.filter(f("n") >= 0).to_table,
            dataset.select("n").to_pandas,
            dataset.to_batches().read_all,
        ):
            with pytest.raises(tfr.errors.SchemaError, match="record 5"):
                selected()
        with pytest.raises(tfr.errors.SchemaError, match="record 2 after byte 135"):
            list(dataset.pieces(2)[-1].to_batches())


@pytest.mark.parametrize("is_asked_for", [False, True])
def test_all_rows_have_the_columns_of_later_files(tmp_path: Path, is_asked_for: bool) -> None:
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    tfr.write_tfrecord({"a": [1, 2, 3]}, paths[0], embed_schema=False)
    tfr.write_tfrecord({"a": [[4, 5]], "b": [0.5]}, paths[1], embed_schema=False, float64="round")
    dataset = tfr.dataset(paths, sample=2)
    if is_asked_for:
        assert dataset.schema.names == ["a"]
    assert dataset.to_table() == tfr.read_table(paths)
    pd.testing.assert_frame_equal(dataset.to_pandas(), tfr.read_tfrecord(paths))
    with pytest.raises(tfr.errors.DecodeError) as caught:
        dataset.to_arrays()
    with pytest.raises(tfr.errors.DecodeError) as expected:
        tfr.read_arrays(paths)
    assert (caught.value.record, caught.value.feature) == (expected.value.record, expected.value.feature) == (0, "b")


def test_every_form_has_the_same_rows(path: Path) -> None:
    dataset = tfr.dataset(path)
    table = tfr.read_table(path)
    assert dataset.to_table() == table == pa.table(dataset)
    with dataset.to_batches() as batches:
        assert batches.schema == dataset.schema
        assert pa.Table.from_batches(batches) == table
    pd.testing.assert_frame_equal(dataset.to_pandas(), tfr.read_tfrecord(path))
    arrays, expected = dataset.to_arrays(), tfr.read_arrays(path)
    assert list(arrays) == list(expected)
    assert all((arrays[name] == expected[name]).all() for name in arrays)
    assert tfr.write_tfrecord(dataset, path.parent / "copy.tfrecord").records == 6
    assert tfr.read_table(path.parent / "copy.tfrecord") == table


def test_a_part_of_it_has_the_index_and_the_shapes(path: Path) -> None:
    part = tfr.dataset(path).filter(f("label") == 2).select(["image"])
    frame = part.to_pandas()
    assert frame.index.tolist() == [12, 15]
    assert frame.index.name == "id"
    assert frame["image"].iloc[1].tolist() == [[20, 21], [22, 23]]
    assert part.to_arrays()["image"].shape == (2, 2, 2)
    assert part.to_pandas("pyarrow").columns.tolist() == ["image"]
    assert tfr.dataset(path).select(["label"]).to_pandas().index.name == "id"


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
def test_an_array_that_cannot_be_made_names_its_record(path: Path) -> None:
    with pytest.raises(tfr.errors.DecodeError) as caught:
        tfr.dataset(path, schema={"label": "int64", "x": pa.int64()}).filter(f("label") == 1).to_arrays()
    assert caught.value.path is not None
    assert caught.value.path.endswith("train-00000-of-00003")
    assert caught.value.record == 1


def test_a_range_index_is_that_of_the_whole_file_alone(tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2, 3]}, index=pd.RangeIndex(5, 11, 2))
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    pd.testing.assert_frame_equal(dataset.to_pandas(), frame)
    assert dataset.filter(f("n") > 0).to_pandas().index.tolist() == [0, 1, 2]


def test_the_first_rows(path: Path) -> None:
    assert tfr.dataset(path).head(2) == tfr.read_table(path, limit=2)
    assert tfr.dataset(path).head().num_rows == 5
    assert tfr.dataset(path).filter(f("label") == 2).head(1)["label"].to_pylist() == [2]
    with pytest.raises(ValueError, match="limit=-1"):
        tfr.dataset(path).head(-1)


def test_tensors_of_several_shapes_are_read_by_other_processes(tmp_path: Path) -> None:
    arrays = np.empty(2, object)
    arrays[:] = [np.zeros((1, 3), "int16"), np.ones((2, 3), "int16")]
    tfr.write_tfrecord({"x": arrays}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    again = pickle.loads(pickle.dumps(dataset))
    assert again.schema.equals(dataset.schema, check_metadata=True)
    assert again.to_table().equals(dataset.to_table())


def test_pieces_belong_to_other_processes(path: Path) -> None:
    dataset = tfr.dataset(path).select(["label"])
    pieces = [pickle.loads(pickle.dumps(piece)) for piece in dataset.pieces(3)]
    assert [piece.read()["label"].to_pylist() for piece in pieces] == [[0, 1], [2, 0], [1, 2]]
    assert all(piece.schema == dataset.schema for piece in pieces)
    assert sum(piece.bytes or 0 for piece in pieces) == dataset.bytes
    assert len(dataset.pieces()) == 1
    assert len(dataset.pieces(max_bytes=1)) >= 3
    assert 3 <= len(dataset.pieces(1_000_000)) <= (dataset.bytes or 0)
    for keywords, text in (
        ({"n": 0}, "n=0: .* at least 1"),
        ({"n": 2**63}, f"n={2**63}: expected at most 1000000"),
        ({"max_bytes": 0}, "max_bytes=0"),
    ):
        with pytest.raises(ValueError, match=text):
            dataset.pieces(**keywords)
    with pytest.raises(ValueError, match="cannot be split"):
        tfr.dataset(path, limit=3).pieces(2)
    with pytest.raises(ValueError, match=r"on_error='stop' cannot be split into pieces: .*; pass on_error='skip'"):
        tfr.dataset(path, on_error="stop").pieces(2)


def test_one_that_is_read_once_is_shown_without_its_columns(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    content = (tmp_path / "a.tfrecord").read_bytes()
    with (tmp_path / "a.tfrecord").open("rb") as opened:
        assert repr(tfr.dataset(opened)) == f"<Dataset of {tmp_path / 'a.tfrecord'}: which is read once>"
    files = tfr.dataset([io.BytesIO(content), io.BytesIO(content)], filters=[("x", ">", 1)], limit=3)
    assert repr(files) == "<Dataset of <BytesIO> and 1 more file: which is read once, rows where x > 1, limit 3>"
    assert str(files) == "Dataset of 2 files, read once\nrows where x > 1, limit 3"
    assert "read once" in files._repr_html_()
    with pytest.raises(TypeError, match=r"is read once, by a call such as tfr\.read_table\(dataset\)"):
        files.explain()
    assert tfr.read_table(files)["x"].to_pylist() == [2, 2]


def test_it_is_shown_in_a_line_and_as_a_table(path: Path) -> None:
    dataset = tfr.dataset(path).filter(f("label") == 2)
    assert repr(dataset).startswith("<Dataset of ")
    assert repr(dataset).endswith("and 2 more files: 4 columns, rows where label == 2>")
    assert "6 rows, schema embedded" in str(tfr.dataset(path))
    assert "label   int64" in str(dataset)
    assert dataset._repr_html_().count("<tr>") == 5
    assert "rows where label == 2" in dataset._repr_html_()
    part = tfr.dataset(path, offset=1).limit(1000)
    assert repr(part).endswith(": 4 columns, offset 1, limit 1,000>")
    assert str(part).endswith("\noffset 1\nlimit 1,000")
    assert repr(dataset.pieces(1)[0]).startswith("<DatasetPiece of ")


def test_no_files_but_a_directory_of_none(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tfr.dataset(tmp_path)
    tfr.write_tfrecord(pa.table({"n": pa.array([], pa.int64())}), f"{tmp_path}/none@2")
    dataset = tfr.dataset(tmp_path / "none@2")
    assert (dataset.rows, dataset.count_rows(), dataset.to_table().num_rows) == (0, 0, 0)
    assert dataset.filter(f("n") > 1).to_table().schema == dataset.schema
    assert [piece.read().num_rows for piece in dataset.pieces(4)] == [0, 0]


@pytest.mark.parametrize("first", [True, False])
def test_a_selection_without_rows_keeps_its_columns_beside_others(path: Path, tmp_path: Path, first: bool) -> None:
    tfr.write_tfrecord(pa.table({"other": [1.5]}), tmp_path / "other.tfrecord")
    none, other = tfr.dataset(path).filter(f("label") > 2), tfr.dataset(tmp_path / "other.tfrecord")
    both = none + other if first else other + none
    assert set(both.schema.names) == {"label", "name", "image", "id", "other"}
    assert both.schema.field("image").equals(none.schema.field("image"))
    assert both.to_table()["other"].to_pylist() == [1.5]
    assert (none + none).to_table().equals(none.to_table())


@pytest.mark.parametrize(
    ("use", "extra", "library"),
    [
        (lambda path: tfr.dataset(path).to_torch(), "torch", "torch"),
        (lambda path: tfr.dataset(path).to_tf(batch_size=2), "tf", "tensorflow"),
        (lambda path: tfr.dataset(path).to_hf(), "hf", "datasets"),
        (lambda path: tfr.dataset(path).to_dask(), "dask", "dask.dataframe"),
        (lambda path: tfr.dataset(path).to_duckdb(), "duckdb", "duckdb"),
        (lambda path: tfr.dataset(path).to_xarray(), "xarray", "xarray"),
        (tfr.scan_polars, "polars", "polars"),
        (lambda path: tfr.convert(path, path.with_name("a.h5")), "hdf5", "h5py"),
        (lambda path: tfr.convert(path, path.with_name("a.zarr")), "zarr", "zarr"),
    ],
)
def test_a_missing_library_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Path], Any], extra: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    text = rf"(cannot be imported|is not installed) .*{library}.*; pip install 'tfrecord_io\[{extra}\]'"
    with pytest.raises(tfr.errors.MissingDependencyError, match=text):
        use(path)


def test_names_of_other_libraries(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": list(range(6)), "y": ["a", "b"] * 3}, path)
    dataset = tfr.dataset(path)
    assert dataset.columns == ["x", "y"]
    assert dataset.select(["y"]).columns == ["y"]
    even = dataset.filter([("y", "==", "a")])
    for first in (even.limit(2), even.take(2), even.take(5).limit(np.int64(2))):
        assert isinstance(first, tfr.Dataset)
        assert first.to_table()["x"].to_pylist() == [0, 2]
    assert dataset.limit(0).to_table().num_rows == 0
    for invalid in (lambda: dataset.take([1, 2]), lambda: dataset.limit("2"), lambda: dataset.take(1.5)):
        with pytest.raises(TypeError):
            invalid()
    with pytest.raises(TypeError, match="open_random"):
        dataset.take([1, 2])
    with pytest.raises(TypeError, match=r"call count_rows\(\)"):
        len(dataset)
    assert dataset
    tfr.write_tfrecord({"x": list(range(6))}, tmp_path / "b@2")
    assert len(tfr.dataset(tmp_path / "b@2")) == 6
    assert len(tfr.dataset(tmp_path / "b@2").limit(4)) == 4
    with pytest.raises(TypeError, match=r"call count_rows\(\)"):
        len(tfr.dataset(tmp_path / "b@2", on_error="skip"))
    with pytest.raises(TypeError, match=r"to_batches\(\)"):
        iter(dataset)
    with pytest.raises(AttributeError, match=r"no attribute 'sample': tfr\.sample"):
        dataset.sample(2)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        _ = dataset.nothing
    assert pickle.loads(pickle.dumps(dataset)).columns == copy.copy(dataset).columns == dataset.columns
    tfr.write_tfrecord(dataset, tmp_path / "c.tfrecord")
    assert tfr.read_table(tmp_path / "c.tfrecord").equals(dataset.to_table())


STREAMS: dict[str, Callable[[str], Iterator[int]]] = {
    "reader": lambda path: chain.from_iterable(batch["x"].to_pylist() for batch in tfr.open_reader(path)),
    "records": lambda path: (tfr.decode_example(record)["x"].item() for record in tfr.RecordReader(path)),
    "epochs": lambda path: (batch["x"].item() for batch in tfr.iter_arrays(path, batch_size=1, epochs=2)),
}


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("is_planned", [False, True])
@pytest.mark.parametrize("path", ["a.tfrecord", "d/", "d/train@2", "d/*-of-*", ["a.tfrecord"], Path("d"), "../here/d"])
def test_relative_paths_stay_those_of_the_directory_in_which_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, is_planned: bool, removed: bool
) -> None:
    """Other files of the same names are in the later one."""
    for name, rows in (("here", [1, 2]), ("there", [3, 4])):
        (tmp_path / name / "d").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        tfr.write_tfrecord({"x": rows}, "a.tfrecord")
        tfr.write_tfrecord({"x": rows}, "d/train@2")
    monkeypatch.chdir(tmp_path / "here")
    data = tfr.dataset(path)
    if is_planned:
        assert data.filter([("x", ">", 1)]).to_table()["x"].to_pylist() == [2]
    assert not any(map(os.path.isabs, data.files))
    parts = [data, data.filter([("x", ">", 0)]), tfr.dataset([data]), pickle.loads(pickle.dumps(data))]
    pieces = data.pieces(1)
    monkeypatch.chdir(tmp_path / "there")
    if removed:
        (tmp_path / "gone").mkdir()
        monkeypatch.chdir(tmp_path / "gone")
        (tmp_path / "gone").rmdir()
    for part in parts:
        assert part.to_table()["x"].to_pylist() == [1, 2]
        assert part.count_rows() == 2
        assert part.refresh().to_table()["x"].to_pylist() == [1, 2]
        assert [batch["x"].tolist() for batch in part.iter_arrays(batch_size=2)] == [[1, 2]]
    assert [piece.read()["x"].to_pylist() for piece in pieces] == [[1, 2]]
    assert tfr.verify(data).ok
    with tfr.open_random(data) as records:
        assert records[:]["x"].to_pylist() == [1, 2]
    assert all(map(os.path.isabs, data.files))


@pytest.mark.parametrize("path", ["plain/", "plain/*.tfrecord", "shards/", "many_shards/"])
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("stream", [*STREAMS])
def test_streams_go_on_in_the_directory_in_which_they_were_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: str, begun: bool, path: str
) -> None:
    """Other files of the same names are in the later one. With several threads, one may open a file just then."""
    set_processors(monkeypatch, 1)
    if path == "many_shards/":
        monkeypatch.setattr(SIZES, "many", 2)
        monkeypatch.setattr(SIZES, "large_bytes", 0)
    for name, first in (("here", 0), ("there", 9)):
        (tmp_path / name / "plain").mkdir(parents=True)
        monkeypatch.chdir(tmp_path / name)
        for shards in ("shards/", "many_shards/"):
            tfr.write_tfrecord({"x": range(first, first + 3)}, shards, shards=3)
        for x in range(first, first + 3):
            tfr.write_tfrecord({"x": [x]}, f"plain/{x - first}.tfrecord")
    monkeypatch.chdir(tmp_path / "here")
    values = STREAMS[stream](path)
    read = [next(values)] if begun else []
    monkeypatch.chdir(tmp_path / "there")
    assert [*read, *values] == [0, 1, 2] * (2 if stream == "epochs" else 1)


def test_a_dataset_and_its_pieces_have_public_names_only(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    whole = tfr.dataset(tmp_path / "a.tfrecord")
    for each in (whole, whole.pieces(1)[0]):
        inner = {name for name in dir(Scan.unwrap(each)) if name[:1] != "_"}
        public = {name for name in dir(type(each)) if name[:1] != "_"}
        assert not isinstance(each, Scan)
        assert public == {name for name in dir(each) if name[:1] != "_"}
        assert public & inner <= {
            "schema",
            "schema_source",
            "files",
            "bytes",
            "rows",
            "version",
            "select",
            "filter",
            "limit",
            "read",
        }
