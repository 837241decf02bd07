"""Hugging Face datasets read and write TFRecord files: `make test-adapters` runs these tests."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, get_overloads

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from pictures import assert_pictures, encoded, written_pictures
from records import example, int64s, written
from tfrecord_io.columns.arrow.input.batch_source import open_input
from tfrecord_io.errors import EncodeError
from tfrecord_io.testing.adapter_suite import AdapterSuite

datasets = pytest.importorskip("datasets")


@pytest.mark.parametrize("shape", [(2, 0), (0,)])
def test_arrays_without_elements_are_refused(shape: tuple[int, ...], tmp_path: Path) -> None:
    tfr.write_tfrecord({"z": np.zeros((3, *shape), "float32"), "a": [1, 2, 3]}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    for streaming in (True, False):
        with pytest.raises(tfr.errors.SchemaError, match=r"feature 'z': datasets has no arrays without elements"):
            dataset.to_hf(streaming=streaming)
    assert dataset.select(["a"]).to_hf(streaming=False)[:] == {"a": [1, 2, 3]}


def test_bfloat16_is_refused(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tfr.write_tfrecord({"b": np.ones((2, 3), ml_dtypes.bfloat16), "a": [1, 2]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="feature 'b': datasets has no bfloat16; leave the column out"):
        tfr.dataset(tmp_path / "a.tfrecord").to_hf()


@pytest.mark.parametrize("dtype", ["U3", "datetime64[D]", "datetime64[h]", "timedelta64[m]"])
def test_arrays_of_which_datasets_would_have_bytes_or_integers_are_refused(tmp_path: Path, dtype: str) -> None:
    tfr.write_tfrecord({"b": np.zeros((2, 3), dtype), "a": [1, 2]}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    for streaming in (True, False):
        with pytest.raises(tfr.errors.SchemaError, match=r"feature 'b': datasets has no .*; leave the column out"):
            dataset.to_hf(streaming=streaming)
    assert dataset.select(["a"]).to_hf(streaming=False)[:] == {"a": [1, 2]}


def test_arrays_of_bools_are_bools(tmp_path: Path) -> None:
    fixed = np.arange(6).reshape(3, 2) % 2 == 0
    data = {"fixed": fixed, "varied": [fixed[:2], None, fixed], "single": pa.array([True, False, None])}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    for streaming in (True, False):
        rows = list(tfr.dataset(tmp_path / "a.tfrecord").to_hf(streaming=streaming))
        assert [row["fixed"] for row in rows] == fixed.tolist()
        assert rows[0]["varied"] == {"data": fixed[:2].ravel().tolist(), "shape": [2, 2]}
        assert all(type(value) is bool for row in rows for value in row["fixed"])
        assert [type(value) for value in rows[0]["varied"]["data"]] == [bool] * 4


class TestHF(AdapterSuite):
    """A stream of three shards."""

    keywords: dict[str, Any] = {"shards": 3}  # noqa: RUF012

    def open(self, path: Any, **keywords: Any) -> tfr.Dataset:
        return tfr.dataset(path, **keywords)

    def rows(self, opened: tfr.Dataset, names: list[str] | None = None) -> dict[str, list[Any]]:
        chosen = (opened if names is None else opened.select(names)).to_hf(**self.keywords)
        found: dict[str, list[Any]] = {name: [] for name in chosen.features}
        for row in chosen:
            for name, value in row.items():
                found[name].append(value)
        return found

    def above(self, opened: tfr.Dataset, least: int) -> tfr.Dataset:
        return opened.filter([("ints", ">", least)])

    def first(self, opened: tfr.Dataset, n: int) -> tfr.Dataset:
        return opened.limit(n)

    def count(self, opened: tfr.Dataset) -> int:
        return sum(1 for _ in opened.to_hf(**self.keywords))

    def names(self, opened: tfr.Dataset) -> list[str]:
        return list(opened.select("*").to_hf(**self.keywords).features)

    def test_features(self, path: Path) -> None:
        features = self.open(path).to_hf(**self.keywords).features
        assert features["ints"] == datasets.Value("int16")
        assert features["text"] == features["team"] == datasets.Value("string")
        assert features["list"] == datasets.List(datasets.Value("int64"))
        assert features["images"] == datasets.List(datasets.List(datasets.Value("uint8"), length=2), length=2)

    def test_what_is_read_is_written_again(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        opened = self.open(path).select(["ints", "text", "list", "time"])
        tfr.write_tfrecord(opened.to_hf(**self.keywords), tmp_path / "out" / "copy.tfrecord")
        assert tfr.read_table(tmp_path / "out" / "copy.tfrecord").equals(opened.to_table())


class TestHFInMemory(TestHF):
    keywords: dict[str, Any] = {"streaming": False}  # noqa: RUF012

    def names(self, opened: tfr.Dataset) -> list[str]:
        return list(opened.to_hf().features)

    def test_a_selection_is_written(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        chosen = self.open(path).select(["ints"]).to_hf(streaming=False).filter(lambda row: row["ints"] > 3)
        tfr.write_tfrecord(chosen, tmp_path / "out" / "copy.tfrecord")
        assert tfr.read_table(tmp_path / "out" / "copy.tfrecord")["ints"].to_pylist() == [4, 5] * 3
        tfr.write_tfrecord(chosen.select([]), tmp_path / "out" / "none@1")
        assert tfr.read_table(tmp_path / "out" / "none@1").schema.names == ["ints"]


@pytest.fixture
def numbers(tmp_path: Path) -> tfr.Dataset:
    """40 rows in four files."""
    for file in range(4):
        written(tmp_path / f"{file}.tfrecord", [example(x=int64s(n)) for n in range(file * 10, file * 10 + 10)])
    return tfr.dataset(tmp_path, schema={"x": "int64"})


def test_shards_are_shared_by_ranks(numbers: tfr.Dataset) -> None:
    from datasets.distributed import split_dataset_by_node

    stream = numbers.to_hf(shards=4)
    assert stream.num_shards == 4
    parts = [list(split_dataset_by_node(stream, rank, 2)) for rank in range(2)]
    assert sorted(row["x"] for part in parts for row in part) == list(range(40))
    assert [len(part) for part in parts] == [20, 20]
    assert sorted(row["x"] for row in stream.shuffle(seed=1, buffer_size=10)) == list(range(40))
    assert numbers.limit(7).to_hf(shards=4).num_shards == 1
    assert tfr.dataset(numbers.files, on_error="stop").to_hf(shards=4).num_shards == 1


def test_a_stream_resumes_and_pickles(numbers: tfr.Dataset) -> None:
    stream = numbers.to_hf(shards=4)
    rows = iter(stream)
    taken = [next(rows)["x"] for _ in range(13)]
    again = pickle.loads(pickle.dumps(numbers.to_hf(shards=4)))
    again.load_state_dict(stream.state_dict())
    assert taken + [row["x"] for row in again] == list(range(40))


@pytest.mark.parametrize("shards", [1, 2])
def test_a_program_that_ends_with_a_half_read_stream_prints_nothing(tmp_path: Path, shards: int) -> None:
    tfr.write_tfrecord({"x": range(10_000)}, tmp_path / "x.tfrecord")
    program = f"rows = iter(__import__('tfrecord_io').dataset('x.tfrecord').to_hf(shards={shards}))\nprint(next(rows))"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("{'x': 0}\n", "")


def test_a_generator_caches(numbers: tfr.Dataset, tmp_path: Path) -> None:
    stream = numbers.to_hf()
    cached = datasets.Dataset.from_generator(
        lambda: iter(stream), features=stream.features, cache_dir=str(tmp_path / "cache")
    )
    assert cached["x"][:] == list(range(40))
    assert cached.cache_files


def test_tensors_keep_their_shape(tmp_path: Path) -> None:
    tensors = np.arange(24, dtype="float32").reshape(2, 3, 2, 2)
    tfr.write_tfrecord({"x": tensors}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    for read in (dataset.to_hf(), dataset.to_hf(streaming=False)):
        assert np.array_equal([row["x"] for row in read.with_format("numpy")], tensors)


def test_tensors_in_structs_keep_their_shape(tmp_path: Path) -> None:
    type_ = pa.fixed_shape_tensor(pa.uint8(), (2, 2))
    images = pa.ExtensionArray.from_storage(type_, pa.array([[1, 2, 3, 4], [5, 6, 7, 8], None], type_.storage_type))
    pairs = pa.StructArray.from_arrays([images, pa.array([1, None, 3])], ["image", "label"])
    lists = pa.ListArray.from_arrays([0, 2, 2, 3], pairs)
    tfr.write_tfrecord(pa.table({"pair": pairs, "pairs": lists}), tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    first, second = {"image": [[1, 2], [3, 4]], "label": 1}, {"image": [[5, 6], [7, 8]], "label": None}
    third = {"image": None, "label": 3}
    for read in (dataset.to_hf(), dataset.to_hf(streaming=False)):
        rows = list(read)
        assert [row["pair"] for row in rows] == [first, second, third]
        assert [row["pairs"] for row in rows] == [[first, second], [], [third]]


def test_tensors_that_are_missing_or_sliced() -> None:
    from tfrecord_io.apps.adapters.hf import _plain_array

    type_ = pa.fixed_shape_tensor(pa.uint8(), (2, 2))
    storage = pa.array([[1, 2, 3, 4], None, [5, 6, 7, 8], [0, 0, 0, 0]], type_.storage_type)
    array = pa.ExtensionArray.from_storage(type_, storage)
    assert _plain_array(array.slice(1, 2), pa.field("x", type_)).to_pylist() == [None, [[5, 6], [7, 8]]]
    assert _plain_array(array.slice(4), pa.field("x", type_)).to_pylist() == []
    single = pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.uint8(), ()), pa.array([[1], None], pa.list_(pa.uint8(), 1))
    )
    assert _plain_array(single, pa.field("x", single.type)).to_pylist() == [1, None]


# ---- written


@pytest.mark.parametrize("streaming", [False, True])
def test_a_dict_of_datasets_is_refused(tmp_path: Path, streaming: bool) -> None:
    rows = datasets.Dataset.from_dict({"x": [1, 2]})
    splits = {"train": rows.to_iterable_dataset() if streaming else rows}
    both = datasets.IterableDatasetDict(splits) if streaming else datasets.DatasetDict(splits)
    with pytest.raises(
        TypeError, match=r"is a dict of datasets, not a table: write one of them, such as data\['train'\]"
    ):
        tfr.write_tfrecord(both, tmp_path / "a.tfrecord")
    tfr.write_tfrecord(both["train"], tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == [{"x": 1}, {"x": 2}]


@pytest.mark.parametrize(
    "rows",
    [
        [{"x": 1}, {"x": None}, {"x": 2}],
        [{"x": None}, {"x": "a"}],
        [{"x": [1]}, {"x": []}, {"x": [2, 3]}],
        [{"x": 1, "y": 2}, {"x": 3, "y": None}],
        [{"x": 1}, {"x": 2.5}],
    ],
)
def test_a_stream_whose_features_are_unknown(tmp_path: Path, rows: list[dict[str, Any]]) -> None:
    stream = datasets.IterableDataset.from_generator(lambda: iter(rows)).map(dict)
    assert stream.features is None
    tfr.write_tfrecord(stream, tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == rows


def test_a_stream_of_images_whose_features_are_unknown(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (4, 3))
    data = datasets.Dataset.from_dict({"image": [image] * 2}, datasets.Features({"image": datasets.Image()}))
    tfr.write_tfrecord(data.to_iterable_dataset().map(lambda row: {"n": 1}), tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == [
        {**row, "n": 1} for row in data.with_format("arrow")[:].to_pylist()
    ]


@pytest.mark.parametrize("kind", ["generator", "filter", "map"])
def test_a_stream_whose_rows_python_makes(tmp_path: Path, kind: str) -> None:
    image = {"bytes": b"not decoded", "path": None}
    rows = [
        {"label": 1, "x": 2.0, "words": [], "box": {"images": [image]}},
        {"label": None, "x": 0.5, "words": ["a"], "box": {"images": []}},
        {"label": 0, "x": None, "words": [], "box": None},
    ]
    features = datasets.Features(
        {
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "x": datasets.Value("float32"),
            "words": datasets.List(datasets.Value("string")),
            "box": {"images": datasets.List(datasets.Image(decode=kind == "generator"))},
        }
    )
    if kind == "generator":  # an integer among floats, as such rows often have
        rows[0]["x"] = 2
        stream = datasets.IterableDataset.from_generator(lambda: iter(rows), features=features)
    else:
        stream = datasets.Dataset.from_list(rows, features=features).to_iterable_dataset()
        stream = stream.filter(lambda row: True) if kind == "filter" else stream.map(dict, features=features)
    tfr.write_tfrecord(stream, tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == rows
    written = tfr.dataset(tmp_path / "a.tfrecord")
    assert written.schema.field("x").type == pa.float32()
    assert written.to_hf().features["label"].names == ["cat", "dog"]


@pytest.mark.skipif(not hasattr(datasets, "Json"), reason="datasets without Json")
def test_json_of_generated_rows_is_that_of_each_row(tmp_path: Path) -> None:
    values = [{"a": 1}, {"b": [1, None, "x"]}, 1, 2.5, "text", True, None, [{}, 1]]
    features = datasets.Features({"j": datasets.Json(decode=False), "l": datasets.List(datasets.Json())})
    stream = datasets.IterableDataset.from_generator(lambda: ({"j": v, "l": [v]} for v in values), features=features)
    tfr.write_tfrecord(stream, tmp_path / "a.tfrecord")
    table = tfr.read_table(tmp_path / "a.tfrecord")
    assert [v and json.loads(v) for v in table["j"].to_pylist()] == values
    assert [v and json.loads(v) for (v,) in table["l"].to_pylist()] == values


@pytest.mark.parametrize("known", [False, True])
def test_a_stream_is_not_held_in_memory(known: bool) -> None:
    taken = 0

    def rows() -> Any:
        nonlocal taken
        for taken in range(1, 5001):
            yield {"x": b"." * 100_000 if taken < 1500 else b"", "frames": [b"." * 1000] * 10}

    features = {"x": datasets.Value("binary"), "frames": datasets.List(datasets.Value("binary"))}
    stream = datasets.IterableDataset.from_generator(rows, features=datasets.Features(features) if known else None)
    batches = iter(open_input(stream))
    next(batches)
    assert taken <= 1001
    assert sum(map(len, batches)) > 3900


def test_rows_in_another_order_are_few_batches() -> None:
    data = datasets.Dataset.from_dict({"x": range(1000)}).shuffle(seed=0)
    (batch,) = open_input(data)
    assert batch["x"].to_pylist() == data["x"][:]


# ---- labels


def labelled(names: list[str], labels: list[int]) -> Any:
    features = {
        "label": datasets.ClassLabel(names=names),
        "tags": datasets.List(datasets.ClassLabel(names=["u", "v"])),
        "box": {"kind": datasets.ClassLabel(names=["p", "q"]), "x": datasets.Value("float32")},
        "n": datasets.Value("int64"),
    }
    rows = [{"label": i, "tags": [i % 2], "box": {"kind": 1, "x": 0.5}, "n": i} for i in labels]
    return datasets.Dataset.from_list(rows, features=datasets.Features(features))


def test_labels_keep_their_names(tmp_path: Path) -> None:
    data = labelled(["cat", "dog"], [0, 1, 1])
    tfr.write_tfrecord(data, tmp_path / "memory.tfrecord")
    tfr.write_tfrecord(data.to_iterable_dataset(), tmp_path / "stream.tfrecord")
    for path in tmp_path.iterdir():
        assert tfr.read_table(path)["label"].to_pylist() == [0, 1, 1]
        dataset = tfr.dataset(path)
        for read in (dataset.to_hf(), dataset.to_hf(streaming=False)):
            assert read.features == data.features
            assert [row["label"] for row in read] == [0, 1, 1]
        assert dataset.select(["label"]).to_hf().features == {"label": data.features["label"]}
        again = tmp_path / "again" / path.name
        again.parent.mkdir(exist_ok=True)
        tfr.write_tfrecord(dataset.to_hf(streaming=False), again)
        assert tfr.dataset(again).to_hf().features == data.features


def test_labels_keep_their_names_where_lists_have_another_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = datasets.ClassLabel(names=["cat", "dog"])
    features = datasets.Features({"pet": names, "pets": datasets.Sequence(names)})
    tfr.write_tfrecord(datasets.Dataset.from_dict({"pet": [1], "pets": [[0, 1]]}, features), tmp_path / "a.tfrecord")
    monkeypatch.delattr(datasets, "List", raising=False)  # datasets 3 has Sequence
    read = tfr.dataset(tmp_path / "a.tfrecord").to_hf()
    assert read.features == features
    assert list(read) == [{"pet": 1, "pets": [0, 1]}]


def test_files_that_disagree_on_labels_have_numbers(tmp_path: Path) -> None:
    tfr.write_tfrecord(labelled(["cat", "dog"], [0]), tmp_path / "a.tfrecord")
    tfr.write_tfrecord(labelled(["cat", "dog"], [1]), tmp_path / "b.tfrecord")
    assert tfr.dataset(tmp_path).to_hf().features["label"].names == ["cat", "dog"]
    tfr.write_tfrecord(labelled(["dog", "cat"], [0]), tmp_path / "c.tfrecord")
    features = tfr.dataset(tmp_path).to_hf(streaming=False).features
    assert features["label"] == datasets.Value("int64")
    assert features["tags"].feature.names == ["u", "v"]


def test_arrays_keep_their_shape(tmp_path: Path) -> None:
    numbers = np.arange(24).reshape(3, 2, 4)
    features = {
        "x": datasets.Array2D((2, 4), "float32"),
        "deep": datasets.Array4D((2, 1, 1, 4), "uint8"),
        "flags": datasets.Array2D((2, 4), "bool"),
        "any": datasets.Array2D((None, 4), "int64"),
        "text": datasets.Array2D((1, 1), "string"),
    }
    columns = {
        "x": [*numbers[:2].tolist(), None],
        "deep": numbers.reshape(3, 2, 1, 1, 4).tolist(),
        "flags": (numbers % 2).astype(bool).tolist(),
        "any": [[[1, 2, 3, 4]], [], [[5, 6, 7, 8]] * 2],
        "text": [[["a"]], [["b"]], [["c"]]],
    }
    data = datasets.Dataset.from_dict(columns, features=datasets.Features(features))
    tfr.write_tfrecord(data, tmp_path / "memory.tfrecord")
    tfr.write_tfrecord(data.to_iterable_dataset(), tmp_path / "stream.tfrecord")
    for path in sorted(tmp_path.iterdir()):
        dataset = tfr.dataset(path)
        assert dataset.schema.field("x").type == pa.fixed_shape_tensor(pa.float32(), (2, 4))
        assert dataset.schema.field("any").type == data.features.arrow_schema.field("any").type
        for read in (dataset.to_hf(), dataset.to_hf(streaming=False)):
            assert {name: read.features[name] for name in ("x", "deep", "flags")} == {
                name: features[name] for name in ("x", "deep", "flags")
            }
            assert {name: [row[name] for row in read] for name in columns} == columns
            assert np.array_equal(next(iter(read.with_format("numpy")))["x"], numbers[0])
            assert read.features["any"] == datasets.List(datasets.List(datasets.Value("int64")))
        tfr.write_tfrecord(dataset.to_hf(streaming=False), tmp_path / "again", mode="overwrite")
        again = tfr.read_table(tmp_path / "again")
        assert again.schema.field("any").type == pa.list_(pa.list_(pa.int64()))
        assert again.equals(tfr.read_table(path).cast(again.schema))


def test_an_array_of_another_shape_is_refused(tmp_path: Path) -> None:
    type_ = datasets.Features({"x": datasets.Array2D((2, 2), "int64")}).arrow_schema.field("x").type
    array = pa.ExtensionArray.from_storage(type_, pa.array([[[1, 2], [3, 4]], [[1, 2, 3]]], type_.storage_type))
    rows = pa.table({"x": array})
    data = datasets.Dataset(
        pa.concat_tables([rows.slice(0, 1), *[rows.slice(0, 1)] * 1500, rows])
    ).to_iterable_dataset()
    with pytest.raises(EncodeError, match=r"shape \(1, 3\) does not fit") as error:
        tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    assert (error.value.feature, error.value.record) == ("x", 1502)


@pytest.mark.parametrize(
    "stated",
    [
        {"_type": "Image"},
        {"_type": "Array2D"},
        {"_type": "Array2D", "shape": [], "dtype": "string"},
        {"_type": ["Array2D"], "shape": [], "dtype": "int64"},
        {"_type": "ClassLabel"},
        {"_type": "ClassLabel", "names": ["a", "a"]},
        {"_type": "ClassLabel", "names": [1]},
        {"_type": "ClassLabel", "names": "ab"},
        ["ClassLabel"],
        None,
    ],
)
def test_only_labels_are_taken_from_a_file(stated: Any, tmp_path: Path) -> None:
    described = json.dumps({"info": {"features": {"x": stated, "image": {"_type": "Image"}}}})
    table = pa.table({"x": [1], "image": [{"bytes": None, "path": "secret.png"}]})
    tfr.write_tfrecord(table.replace_schema_metadata({"huggingface": described}), tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    for read in (dataset.to_hf(), dataset.to_hf(streaming=False)):
        assert read.features["x"] == datasets.Value("int64")
        assert "Image" not in repr(read.features)


@pytest.mark.parametrize("described", [b"", b"[]", b'{"info": 1}', b"\xff", b"[" * 100_000])
def test_a_damaged_description_of_features_is_ignored(described: bytes, tmp_path: Path) -> None:
    table = pa.table({"x": [1]}).replace_schema_metadata({b"huggingface": described})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    assert tfr.dataset(tmp_path / "a.tfrecord").to_hf().features == {"x": datasets.Value("int64")}


def test_a_dataset_in_memory_has_length_and_index(numbers: tfr.Dataset) -> None:
    read = numbers.to_hf(streaming=False)
    assert len(read) == 40
    assert read[39] == {"x": 39}
    returned = {str(overload.__annotations__["streaming"]): overload for overload in get_overloads(tfr.Dataset.to_hf)}
    assert returned["Literal[False]"].__annotations__["return"] == "datasets.Dataset"  # for type checkers


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("texts", [False, True])
def test_lists_of_one_length(tmp_path: Path, streaming: bool, texts: bool) -> None:
    lists: list[Any] = [[1, 2, 3], None, [], [4, 5, 6, 7, 8], [9]]
    fill: Any = -1
    schema = {"x": tfr.list_("int64"), "n": "int64"}
    if texts:
        lists, fill = [own and [str(n) for n in own] for own in lists], "-"
        schema["x"] = tfr.list_("string")
    tfr.write_tfrecord({"x": lists, "n": range(5)}, tmp_path / "a.tfrecord", schema=schema)
    opened = tfr.dataset(tmp_path / "a.tfrecord")
    for left in (False, True):
        cut = [own and (own[-4:] if left else own[:4]) for own in lists]
        options: dict[str, Any] = {"max_length": (4, "left") if left else 4, "streaming": streaming}
        assert [row["x"] for row in opened.to_hf(**options)] == cut
        padded = opened.to_hf(**options, pad_to={"x": 4}, pad_value=fill)
        assert padded.features["x"].length == 4
        expected = [own if own is None else own + [fill] * (4 - len(own)) for own in cut]
        assert [row["x"] for row in padded] == expected
        assert [row["x/length"] for row in padded] == [len(own or []) for own in cut]
        assert [row["n"] for row in padded] == list(range(5))
    with pytest.raises(
        tfr.errors.SchemaError, match="a list has 5 values, but pad_to=4 has room for 4; pass max_length="
    ):
        list(opened.to_hf(pad_to=4, streaming=streaming))
    with pytest.raises(TypeError, match="unexpected keyword argument 'pack'"):
        opened.to_hf(pack={"x": 4})
    with pytest.raises(ValueError, match="a length of its own"):
        opened.to_hf(pad_to=(4, "multiple"))


@pytest.mark.parametrize("streaming", [True, False])
def test_images(tmp_path: Path, streaming: bool) -> None:
    schema, expected = written_pictures(tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord", schema=schema).to_hf(streaming=streaming)
    line = datasets.List(datasets.List(datasets.Value("uint8"), length=3), length=5)
    assert dataset.features["image"] == datasets.List(line, length=4)
    assert_pictures(list(dataset), expected)
    assert_pictures(list(dataset.with_format("numpy")), expected)


@pytest.mark.parametrize("streaming", [True, False])
def test_images_of_any_size_and_damaged_ones(tmp_path: Path, streaming: bool) -> None:
    pixels = [np.full((n, 2, 3), n, np.uint8) for n in (1, 2, 3)]
    files = [*map(encoded, pixels)]
    rows = {"x": [*files, None, b"damaged"], "frames": [files, files[:1], [], None, []]}
    tfr.write_tfrecord(rows, tmp_path / "a.tfrecord")
    schema = {"x": tfr.image(), "frames": tfr.list_(tfr.image())}
    data = tfr.dataset(tmp_path / "a.tfrecord", schema=schema)
    with pytest.raises(tfr.errors.DecodeError, match="record 4: feature 'x': its 7 bytes cannot be identified"):
        list(data.to_hf(streaming=streaming))
    kept = tfr.dataset(tmp_path / "a.tfrecord", schema=schema, on_error="skip")
    with pytest.warns(tfr.errors.DamagedDataWarning, match="1 damaged"):
        found = list(kept.to_hf(streaming=streaming))
    assert [row["x"] for row in found] == [*(image.tolist() for image in pixels), None]
    assert [row["frames"] for row in found] == [[p.tolist() for p in pixels], [pixels[0].tolist()], [], None]
    with pytest.raises(tfr.errors.SchemaError, match="'x': images of mode \"unchanged\" have no type in common"):
        tfr.dataset(tmp_path / "a.tfrecord", schema={"x": tfr.image(mode="unchanged")}).to_hf()


def test_an_integer_beyond_int64_is_named(tmp_path: Path) -> None:
    def rows() -> Any:
        yield {"n": 1, "x": 2}
        yield {"n": 2, "x": 2**63}

    features = datasets.Features({"n": datasets.Value("int64"), "x": datasets.Value("int64")})
    for data in (
        datasets.IterableDataset.from_generator(rows),
        datasets.IterableDataset.from_generator(rows, features=features),
    ):
        with pytest.raises(EncodeError, match="record 1: feature 'x': an integer is outside the range of int64"):
            tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
