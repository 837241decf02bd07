"""PyTorch reads TFRecord files: `make test-adapters` runs these tests."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from loaded_rows import seen
from pictures import assert_pictures, written_pictures
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.rows.training import scan_row_source
from tfrecord_io.testing.adapter_suite import ZONE, AdapterSuite

torch = pytest.importorskip("torch")

from torch.utils.data import ChainDataset, DataLoader  # noqa: E402

TYPES = {"time": pa.timestamp("us", ZONE), "day": pa.date32()}


def cells(name: str, values: Any, mask: Any) -> list[Any]:
    """The values of a column in Python: None if missing."""
    found = values.tolist() if isinstance(values, torch.Tensor) else list(values)
    found = [cell.tolist() if isinstance(cell, torch.Tensor) else cell for cell in found]
    if name in TYPES:
        type_ = pa.int32() if name == "day" else pa.int64()
        found = pa.array(found, type_).cast(TYPES[name]).to_pylist()
    missing = [False] * len(found) if mask is None else mask.reshape(len(found), -1).any(1).tolist()
    return [None if is_missing else cell for cell, is_missing in zip(found, missing, strict=True)]


def columns_of(batches: list[dict[str, Any]], names: list[str]) -> dict[str, list[Any]]:
    return {
        name: [cell for batch in batches for cell in cells(name, batch[name], batch.get(f"{name}/mask"))]
        for name in names
    }


class TestTorch(AdapterSuite):
    """Batches, made in this process."""

    def open(self, path: Any, **keywords: Any) -> tfr.Dataset:
        return tfr.dataset(path, **keywords)

    def batches(self, opened: tfr.Dataset) -> list[dict[str, Any]]:
        return list(DataLoader(opened.to_torch(batch_size=4, missing="mask"), batch_size=None))

    def rows(self, opened: tfr.Dataset, names: list[str] | None = None) -> dict[str, list[Any]]:
        chosen = opened if names is None else opened.select(names)
        return columns_of(self.batches(chosen), names or opened.schema.names)

    def above(self, opened: tfr.Dataset, least: int) -> tfr.Dataset:
        return opened.filter([("ints", ">", least)])

    def first(self, opened: tfr.Dataset, n: int) -> tfr.Dataset:
        return opened.limit(n)

    def count(self, opened: tfr.Dataset) -> int:
        return len(self.rows(opened, ["ints"])["ints"])

    def names(self, opened: tfr.Dataset) -> list[str]:
        return opened.schema.names


class TestTorchRows(TestTorch):
    """Single rows, which the loader batches."""

    def batches(self, opened: tfr.Dataset) -> list[dict[str, Any]]:
        loader = DataLoader(opened.to_torch(missing="mask"), batch_size=3, collate_fn=collated)
        return list(loader)


class TestTorchWorkers(TestTorch):
    """Batches, made in a worker."""

    keeps_class = False

    def batches(self, opened: tfr.Dataset) -> list[dict[str, Any]]:
        stream = opened.to_torch(batch_size=4, missing="mask")
        return list(DataLoader(stream, batch_size=None, num_workers=1, multiprocessing_context="fork"))


class TestTorchMap(TestTorch):
    """Rows by number."""

    def batches(self, opened: tfr.Dataset) -> list[dict[str, Any]]:
        rows = opened.to_torch_map(missing="mask")
        loader = DataLoader(rows, batch_size=3, collate_fn=collated)
        batches = list(loader)
        assert len(rows) == sum(len(next(iter(batch.values()))) for batch in batches)
        return batches

    def test_rows_in_any_order(self, path: Path) -> None:
        rows = pickle.loads(pickle.dumps(tfr.dataset(path).select(["ints", "text"]).to_torch_map()))
        assert rows[6] == {"ints": torch.tensor(2, dtype=torch.int16), "text": None}
        assert rows[-1] == rows[14]
        assert [row["text"] for row in rows.__getitems__([3, 0, 3])] == ["é", "a", "é"]
        for number in (15, -16):
            with pytest.raises(IndexError, match="there are 15 rows"):
                rows[number]
        assert rows[3:0:-3] == rows[np.array([3])] == [rows[3]]
        assert rows[[]] == rows[9:3] == []
        assert len(rows[:]) == 15
        for invalid in ([0.5], [True], "ints", [[1]]):
            with pytest.raises(TypeError):
                rows[invalid]
        seen = [n for batch in DataLoader(rows, batch_size=4, shuffle=True, collate_fn=collated) for n in batch["ints"]]
        assert Counter(map(int, seen)) == dict.fromkeys((1, 2, 3, 4, 5), 3)

    def test_rows_of_a_filter_and_a_window(self, path: Path) -> None:
        rows = tfr.dataset(path, offset=2, limit=3).filter([("ints", ">", 3)]).to_torch_map(missing="mask")
        assert [int(rows[i]["ints"]) for i in range(len(rows))] == [4, 5, 4]
        rows = tfr.dataset(path, offset=2, limit=3).to_torch_map(missing="mask")
        assert [int(rows[i]["ints"]) for i in range(len(rows))] == [3, 4, 5]

    def test_a_missing_value_is_named_by_its_record(self, path: Path) -> None:
        rows = tfr.dataset(path).select(["int"]).to_torch_map()
        with pytest.raises(tfr.errors.DecodeError) as caught:
            rows.__getitems__([5, 6])
        assert str(caught.value.path).endswith("b.tfrecord")
        assert caught.value.record == 1

    def test_files_whose_rows_have_no_number(self, path: Path, tmp_path: Path) -> None:
        tfr.write_tfrecord({"x": [1]}, tmp_path / "x.tfrecord.gz")
        with pytest.raises(ValueError, match="is compressed"):
            tfr.dataset(tmp_path / "x.tfrecord.gz").to_torch_map()
        with pytest.raises(ValueError, match="rows that are left out"):
            tfr.dataset(path, on_error="skip").to_torch_map()


def collated(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; masks stay tensors."""
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: torch.stack(values) if isinstance(values[0], torch.Tensor) and name.endswith("/mask") else values
        for name, values in columns.items()
    }


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("uneven", ["keep", "pad"])
def test_the_length_is_the_number_of_batches(
    numbers: tfr.Dataset, tmp_path: Path, workers: int, batch_size: int | None, drop_last: bool, uneven: str
) -> None:
    write_indexes(sorted(tmp_path.glob("*.tfrecord")))
    context = {"multiprocessing_context": "fork"} if workers else {}
    options: dict[str, Any] = {"batch_size": batch_size, "drop_last": drop_last, "uneven": uneven}
    for rank in range(2):
        stream = numbers.to_torch(rank=(rank, 2), workers=workers, **options)
        loader = DataLoader(stream, batch_size=None, num_workers=workers, **context)
        assert len(loader) == len(list(loader)) == len(stream)
        asked = DataLoader(numbers.to_torch(rank=(rank, 2), **options), batch_size=None, num_workers=workers)
        assert len(asked) == len(loader)  # without workers=


def test_a_length_that_is_unknown(numbers: tfr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError, match="no manifest and no index states"):
        len(numbers.to_torch(batch_size=4, workers=0))
    write_indexes(sorted(tmp_path.glob("*.tfrecord")))
    assert len(numbers.to_torch()) == 61
    assert numbers.to_torch(batch_size=4)
    stream = numbers.to_torch(batch_size=9)
    with pytest.raises(TypeError, match=r"ask the DataLoader for its len\(\), or pass workers="):
        len(stream)
    loaders = [DataLoader(stream, batch_size=None, num_workers=workers) for workers in (0, 3, 1)]
    assert [len(loader) for loader in loaders] == [7, 7, 7]
    monkeypatch.setattr(scan_row_source, "_MOST_INDEXES", 0)  # workers have files of their own
    stream = numbers.to_torch(batch_size=9)
    loaders = [DataLoader(stream, batch_size=None, num_workers=workers) for workers in (0, 3, 1)]
    assert [len(loader) for loader in loaders] == [7, 9, 7]
    assert len(DataLoader(ChainDataset([stream, stream]), batch_size=None)) == 14
    with pytest.raises(ValueError, match=r"workers=2, but the DataLoader has num_workers=0"):
        iter(numbers.to_torch(batch_size=4, workers=2))


def test_workers_that_are_spawned(numbers: tfr.Dataset) -> None:
    stream = numbers.to_torch(batch_size=5, shuffle_buffer=20, seed=1, uneven="pad")
    spawned = {"multiprocessing_context": "spawn", "persistent_workers": True}
    loader = DataLoader(stream, batch_size=None, num_workers=2, **spawned)
    epochs = [[n for batch in loader for n in batch["x"].tolist()] for _ in range(2)]
    assert set(epochs[0]) == set(epochs[1]) == set(range(61))
    assert epochs[0] != epochs[1]
    stream.set_epoch(0)
    assert [n for batch in loader for n in batch["x"].tolist()] == epochs[0]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint16", "uint64", "float16", "float64", "complex64"])
def test_dtypes_of_tensors(tmp_path: Path, dtype: str) -> None:
    values = np.arange(12).reshape(3, 2, 2).astype(dtype)
    tfr.write_tfrecord({"x": values}, tmp_path / "a.tfrecord")
    (batch,) = tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=3)
    assert batch["x"].numpy().dtype == values.dtype
    assert (batch["x"].numpy() == values).all()
    assert (tfr.dataset(tmp_path / "a.tfrecord").to_torch_map()[1]["x"].numpy() == values[1]).all()


@pytest.mark.parametrize("collate", [None, dict, lambda batch: batch], ids=["torch's", "other", "none"])
def test_a_batch_of_a_worker_is_that_of_this_process(tmp_path: Path, collate: Any) -> None:
    lists = [[1], [], [2, 3]]
    structs = [{"a": [1.5], "b": 2}, {"a": [], "b": 1}, {"a": [2.5], "b": 0}]
    of_struct = pa.struct({"a": pa.list_(pa.float32()), "b": pa.int64()})
    days = pa.array([0, 1, 2], pa.date32())
    table = {"name": ["x", None, "z"], "list": lists, "day": days, "struct": pa.array(structs, of_struct)}
    tfr.write_tfrecord(pa.table(table), tmp_path / "x.tfrecord")
    arrays = {
        "b": np.array([True, False, True]),
        "a": np.arange(6, dtype=np.int16).reshape(3, 2),
        "none": np.zeros((3, 0), np.float32),
        "c": np.array([1 + 2j, 3, 4], np.complex64),
    }
    tfr.write_tfrecord(arrays, tmp_path / "y.tfrecord")
    for file in ("x", "y"):
        stream = tfr.dataset(tmp_path / f"{file}.tfrecord").to_torch(batch_size=2)
        expected = list(DataLoader(stream, batch_size=None))
        loader = DataLoader(stream, batch_size=None, num_workers=1, multiprocessing_context="fork", collate_fn=collate)
        for batch, other in zip(loader, expected, strict=True):
            assert type(batch) is dict
            assert list(batch) == list(other)
            for name, value in other.items():
                assert type(batch[name]) is type(value)
                assert plain(batch[name]) == plain(value)
                assert getattr(batch[name], "dtype", None) == getattr(value, "dtype", None)


def test_bfloat16(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tfr.write_tfrecord({"x": np.array([[1.5, 2], [3, -1]], ml_dtypes.bfloat16)}, tmp_path / "a.tfrecord")
    (batch,) = tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=3)
    assert batch["x"].dtype == torch.bfloat16
    assert batch["x"].tolist() == [[1.5, 2], [3, -1]]


def test_tensors_of_bfloat16_are_written(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    x = torch.tensor([[1.5, 2], [3, -1]], dtype=torch.bfloat16)
    tfr.write_tfrecord({"x": x, "row": x.T[1]}, tmp_path / "a.tfrecord")
    (batch,) = tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=3)
    assert torch.equal(batch["x"], x)
    assert torch.equal(batch["row"], x.T[1])
    with pytest.raises(tfr.errors.EncodeError, match=r"\[v\.float\(\)\.numpy\(\) for v in values\]"):
        tfr.write_tfrecord({"x": list(x)}, tmp_path / "b.tfrecord")


@pytest.mark.parametrize("dtype", ["float32", "bool", "datetime64[us]", "complex128"])
def test_tensors_share_memory_with_arrays(dtype: str) -> None:
    from tfrecord_io.apps.adapters.torch_batches import tensor_of

    array = np.zeros((3, 2), dtype)
    assert tensor_of(array).data_ptr() == array.ctypes.data
    array.flags.writeable = False
    assert tensor_of(array).data_ptr() != array.ctypes.data


def test_lists_of_each_form(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1, 2], [], [3]], "y": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    (batch,) = dataset.to_torch(batch_size=3)
    assert [cell.tolist() for cell in batch["x"]] == [[1, 2], [], [3]]
    assert [cell.tolist() for cell in batch["y"]] == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    (batch,) = dataset.to_torch(batch_size=3, ragged="pad", pad_value=-1)
    assert batch["x"].tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert batch["x/length"].tolist() == [2, 0, 1]
    (batch,) = dataset.to_torch(batch_size=3, ragged="offsets")
    assert [part.tolist() for part in batch["x"]] == [[1, 2, 3], [0, 2, 2, 3]]
    rows = list(dataset.to_torch(ragged="offsets"))
    assert [row["x"].tolist() for row in rows] == [[1, 2], [], [3]]


def test_lists_of_one_length_are_stacked_where_it_is_stated_or_no_schema_tells(tmp_path: Path) -> None:
    columns = {"y": [[1, 2], [3, 4], [5, 6]]}
    fixed = {"y": tfr.list_("int64", length=2)}
    tfr.write_tfrecord(columns, tmp_path / "any.tfrecord")
    tfr.write_tfrecord(columns, tmp_path / "fixed.tfrecord", schema=fixed)
    tfr.write_tfrecord(columns, tmp_path / "bare.tfrecord", embed_schema=False)
    for dataset in (
        tfr.dataset(tmp_path / "any.tfrecord", schema_overrides=fixed),
        tfr.dataset(tmp_path / "fixed.tfrecord"),
        tfr.dataset(tmp_path / "bare.tfrecord"),
    ):
        (batch,) = dataset.to_torch(batch_size=3)
        assert batch["y"].tolist() == columns["y"]
    (batch,) = tfr.dataset(tmp_path / "any.tfrecord").to_torch(batch_size=3)
    assert [cell.tolist() for cell in batch["y"]] == columns["y"]


def test_static_shapes(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1, 2, 3], [4], [5, 6]]}, tmp_path / "a.tfrecord")
    opened = tfr.dataset(tmp_path / "a.tfrecord")
    options: dict[str, Any] = {"pad_to": 4, "max_length": {"x": (2, "left")}, "pad_value": -1}
    expected = [[2, 3, -1, -1], [4, -1, -1, -1], [5, 6, -1, -1]]
    assert [row["x"].tolist() for row in opened.to_torch_map(**options)[:]] == expected
    assert [row["x"].tolist() for row in opened.to_torch(**options)] == expected
    assert next(iter(DataLoader(opened.to_torch_map(**options), batch_size=3)))["x"].tolist() == expected
    assert [row["x"].tolist() for row in opened.to_torch(pack={"x": 4})] == [[1, 2, 3, 4], [5, 6, 0, 0]]
    with pytest.raises(ValueError, match="a length of its own"):
        opened.to_torch_map(pad_to=(8, "multiple"))
    with pytest.raises(ValueError, match="pass batch_size="):
        opened.to_torch(bucket_by="x", bucket_sizes=[4])


def plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else [*map(plain, value)] if isinstance(value, list) else value


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_by_number_as_one_batch(tmp_path: Path, workers: int) -> None:
    columns = {
        "n": range(20),
        "x": np.arange(60, dtype=np.float32).reshape(20, 3),
        "t": [[1] * (n % 3) for n in range(20)],
    }
    schema = {"n": "int32", "x": tfr.tensor("float32", (3,)), "t": tfr.list_("int64"), "s": "string"}
    tfr.write_tfrecord({**columns, "s": ["a", "b"] * 10}, tmp_path / "a.tfrecord", schema=schema)
    data = tfr.dataset(tmp_path / "a.tfrecord")
    rows = data.to_torch_map()
    context = {"num_workers": workers, **({"multiprocessing_context": "spawn"} if workers else {})}
    batches = list(DataLoader(rows, batch_size=8, collate_fn=rows.collate_fn, **context))
    for got, expected in zip(batches, data.to_torch(batch_size=8), strict=True):
        assert got.keys() == expected.keys()
        for name, value in expected.items():
            assert plain(got[name]) == plain(value)
            assert getattr(got[name], "dtype", None) == getattr(value, "dtype", None)
    for numbers in ([5, 3, 3], [-1], np.arange(20)[::-1], torch.tensor([4, 2]), []):
        arrays = rows.arrays(numbers)
        at = np.asarray(numbers, np.int64)
        assert arrays["n"].dtype == np.int32
        assert arrays["n"].tolist() == np.arange(20)[at].tolist()
        assert arrays["x"].tolist() == columns["x"][at].tolist()
        assert plain(data.to_grain().arrays(numbers)["x"]) == plain(arrays["x"])
    subset = torch.utils.data.Subset(rows, [7, 5, 1])
    (batch,) = DataLoader(subset, batch_size=3, collate_fn=rows.collate_fn)
    assert batch["n"].tolist() == [7, 5, 1]
    with pytest.raises(TypeError, match="it takes the rows that a DataLoader gets of to_torch_map by one call"):
        rows.collate_fn([rows[1]])
    joined = torch.utils.data.ConcatDataset([rows, rows])
    with pytest.raises(TypeError, match=r"leave it out where rows come one by one, as from a ConcatDataset"):
        next(iter(DataLoader(joined, batch_size=3, collate_fn=rows.collate_fn)))
    with pytest.raises(IndexError, match="row 20 is out of range"):
        rows.arrays([20])
    with pytest.raises(TypeError, match="expected numbers of rows, got list of float64"):
        rows.arrays([1.5])
    with pytest.raises(TypeError, match="the items are batches: take them by number"):
        data.select(["t"]).to_torch_map(batch_size=2, pack={"t": 4}).arrays([0])


@pytest.mark.parametrize("missing", ["error", "mask"])
def test_a_row_by_its_number_is_that_of_several(tmp_path: Path, missing: Any) -> None:
    """In values and in dtypes, whichever way it is made."""
    columns: dict[str, Any] = {
        "i": np.arange(6, dtype=np.int16),
        "f": np.arange(6, dtype=np.float32),
        "b": np.arange(6) % 2 == 0,
        "m": np.arange(6).astype("M8[s]"),
        "x": np.arange(6 * 4, dtype=np.uint8).reshape(6, 2, 2),
        "one": np.arange(6 * 3, dtype=np.float32).reshape(6, 3),
        "l": [[n] * (n + 1) for n in range(6)],
        "s": ["a", None] * 3,
        "y": [b"a", b""] * 3,
    }
    tfr.write_tfrecord(columns, tmp_path / "a.tfrecord")
    for names in (["i", "f", "b", "x", "one", "l", "y"], [*columns]):
        rows = tfr.dataset(tmp_path / "a.tfrecord").select(names).to_torch_map(missing=missing)
        for number, expected in enumerate(rows[:]):
            row = rows[number]
            assert list(row) == list(expected)
            for name, value in expected.items():
                assert type(row[name]) is type(value)
                assert plain(row[name]) == plain(value)
                if isinstance(value, torch.Tensor):
                    assert (row[name].dtype, row[name].shape) == (value.dtype, value.shape)


def test_a_name_of_a_mask_that_is_taken(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2], "x/mask": [3, 4]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="x/mask"):
        next(iter(tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=2, missing="mask")))


def test_an_error_in_a_worker_keeps_its_text(numbers: tfr.Dataset, tmp_path: Path) -> None:
    content = bytearray((tmp_path / "2.tfrecord").read_bytes())
    content[-6] ^= 1
    (tmp_path / "2.tfrecord").write_bytes(content)
    with pytest.raises(
        tfr.errors.CorruptRecordError,
        match=r"in DataLoader worker process \d: .*2\.tfrecord: .*record 18 at byte \d+: payload CRC mismatch",
    ):
        seen(numbers.to_torch(batch_size=4), 2)


def test_invalid_keywords(numbers: tfr.Dataset) -> None:
    with pytest.raises(TypeError, match=r"to_torch\(\) got an unexpected keyword argument 'shuffle': .*shuffle_buffer"):
        numbers.to_torch(shuffle=100)
    with pytest.raises(ValueError, match="expected an index from 0 to 1"):
        numbers.to_torch(rank=(2, 2))
    with pytest.raises(ValueError, match="needs the same seed="):
        numbers.to_torch(rank=(0, 2), uneven="drop", shuffle_buffer=5)
    with pytest.raises(ValueError, match="batch_size=0: expected at least 1"):
        numbers.to_torch(batch_size=0)
    with pytest.raises(ValueError, match="cu_seqlens=True counts the tokens of a batch: pass batch_size="):
        numbers.to_torch(pack={"x": 4}, cut=True, cu_seqlens=True)


@pytest.mark.parametrize("workers", [0, 2])
def test_images(tmp_path: Path, workers: int) -> None:
    schema, expected = written_pictures(tmp_path / "a.tfrecord")
    data = tfr.dataset(tmp_path / "a.tfrecord", schema=schema)
    rows = list(DataLoader(data.to_torch(missing="mask"), batch_size=None, num_workers=workers))
    assert_pictures(rows, expected)
    assert not any(bool(row["image/mask"]) for row in rows)
    assert_pictures(list(DataLoader(data.to_torch_map(), batch_size=None, num_workers=workers)), expected)


@pytest.mark.parametrize("workers", [0, 2])
def test_forked_workers_read_a_bucket(request: pytest.FixtureRequest, workers: int) -> None:
    pytest.importorskip("moto")
    bucket = request.getfixturevalue("s3")
    tfr.write_tfrecord({"x": list(range(50))}, bucket.url("d@3"), storage_options=bucket.storage_options)
    dataset = tfr.dataset(bucket.url("d@3"), storage_options=bucket.storage_options)
    stream = dataset.to_torch(batch_size=4, shuffle_buffer=9, seed=0, uneven="pad", workers=workers)
    assert set(seen(stream, workers)) == set(range(50))


def test_values_of_bfloat16_are_floats_of_an_example() -> None:
    values = torch.tensor([0.5, -2], dtype=torch.bfloat16)
    payload = tfr.encode_example({"x": values, "y": values[0]})
    assert {name: cell.tolist() for name, cell in tfr.decode_example(payload).items()} == {"x": [0.5, -2], "y": [0.5]}
