"""One row for rows of one key, and that it is the way back from `explode`."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits

ITEMS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int64": (pa.int64(), st.integers(-9, 9)),
    "float32": (pa.float32(), st.sampled_from([0.5, -1.0, 4.0])),
    "text": (pa.string(), st.text(max_size=2)),
    "bytes": (pa.binary(), st.binary(max_size=2)),
    "bool": (pa.bool_(), st.booleans()),
    "time": (pa.timestamp("us"), st.datetimes(datetime.datetime(2000, 1, 1), datetime.datetime(2000, 1, 3))),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 2), max_size=2)),
    "struct": (pa.struct({"a": pa.int64()}), st.fixed_dictionaries({"a": st.integers(0, 2)})),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Rows with lists of equal lengths side by side, also of nulls, and other columns, whose values may be null."""
    lengths = draw(st.lists(st.integers(0, 3), max_size=9))
    columns: dict[str, pa.Array] = {}
    for number, name in enumerate(draw(st.lists(st.sampled_from([*ITEMS]), min_size=1, max_size=3))):
        type_, items = ITEMS[name]
        cells = [draw(st.lists(st.none() | items, min_size=length, max_size=length)) for length in lengths]
        columns[f"objects/{name}/{number}"] = pa.array(cells, pa.list_(type_))
    for number, name in enumerate(draw(st.lists(st.sampled_from([*ITEMS]), max_size=2))):
        type_, items = ITEMS[name]
        columns[f"{name}/{number}"] = pa.array([draw(st.none() | items) for _ in lengths], type_)
    names = draw(st.permutations([*columns]))
    return pa.table({name: columns[name] for name in names})


@given(table=tables(), rows=st.integers(1, 5), most=st.integers(1, 5), again=st.integers(1, 5))
def test_implode_is_the_way_back_from_explode(table: pa.Table, rows: int, most: int, again: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, batch_rows=most)
        batches = table.to_batches(max_chunksize=rows) or table
        exploded = tfr.explode(batches, lists="objects/*", keep_empty=True).read_all()
    imploded = tfr.formats.implode(exploded.to_batches(max_chunksize=again) or exploded, lists="objects/*").read_all()
    assert imploded.equals(table)
    dropped = tfr.explode(batches, lists="objects/*").read_all()
    name = next(name for name in table.column_names if name.startswith("objects/"))
    has_items = [bool(cell) for cell in table[name].to_pylist()]
    assert (
        tfr.formats.implode(dropped, lists="objects/*").read_all().equals(table.filter(pa.array(has_items, pa.bool_())))
    )


@given(
    keys=st.lists(st.tuples(st.none() | st.integers(0, 2), st.sampled_from([None, "a", "b"])), max_size=12),
    rows=st.integers(1, 13),
)
def test_groups_are_runs_of_equal_keys(keys: list[Any], rows: int) -> None:
    table = pa.table(
        {
            "a": pa.array([a for a, _ in keys], pa.int64()),
            "n": pa.array(range(len(keys)), pa.int64()),
            "b": pa.array([b for _, b in keys], pa.string()).dictionary_encode(),
        }
    )
    found = tfr.formats.implode(table.to_batches(max_chunksize=rows) or table, lists="n").read_all()
    expected = [
        {"a": key[0], "n": [number for number, _ in group], "b": key[1]}
        for key, group in itertools.groupby(enumerate(keys), key=lambda item: item[1])
    ]
    assert found.to_pylist() == expected


def test_nan_is_one_key() -> None:
    found = tfr.formats.implode({"k": [np.nan, np.nan, 1.0], "x": [1, 2, 3]}, lists="!k").read_all()
    assert found["x"].to_pylist() == [[1, 2], [3]]


IN_NESTED = {
    "struct": lambda array: pa.StructArray.from_arrays([array], ["t"]),
    "list": lambda array: pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array),
    "list of lists": lambda array: IN_NESTED["list"](IN_NESTED["list"](array)),
    "struct of lists": lambda array: IN_NESTED["struct"](IN_NESTED["list"](array)),
    "map": lambda array: pa.MapArray.from_arrays(range(len(array) + 1), ["k"] * len(array), array),
}


@pytest.mark.parametrize("nested", IN_NESTED)
@pytest.mark.parametrize(
    ("type_", "numbers"),
    [
        (pa.time64("ns"), [1, 2, 2, None]),
        (pa.timestamp("ns"), [10**18 + 1, 10**18 + 2, 10**18 + 2, None]),
        (pa.timestamp("s"), [2**50, 2**50 + 1, 2**50 + 1, None]),
        (pa.timestamp("s", tz="Europe/Paris"), [1603585800, 1603589400, 1603589400, None]),  # 02:30 twice
        (pa.duration("s"), [2**50, 2**50 + 1, 2**50 + 1, None]),
        (pa.date32(), [2**30, 2**30 + 1, 2**30 + 1, None]),
    ],
    ids=str,
)
def test_times_in_nested_keys_are_grouped_as_plain_ones(nested: str, type_: pa.DataType, numbers: list[Any]) -> None:
    times = pa.array(numbers, pa.int32() if type_ == pa.date32() else pa.int64()).view(type_)
    for keys in (times, IN_NESTED[nested](times)):
        found = tfr.formats.implode(pa.table({"k": keys, "v": [1, 2, 3, 4]}), lists="v").read_all()
        assert found["v"].to_pylist() == [[1], [2, 3], [4]]


def test_null_lists_become_empty_ones() -> None:
    """`explode` gives both a row without a step."""
    table = pa.table({"id": [1, 2], "steps/x": pa.array([None, []], pa.list_(pa.int64()))})
    exploded = tfr.explode(table, keep_empty=True).read_all()
    assert exploded.to_pylist() == [
        {"record": 0, "step": None, "id": 1, "steps/x": None},
        {"record": 1, "step": None, "id": 2, "steps/x": None},
    ]
    assert tfr.formats.implode(exploded).read_all()["steps/x"].to_pylist() == [[], []]


def test_tensors_become_lists_of_tensors(tmp_path: Path) -> None:
    images = np.arange(24, dtype="uint8").reshape(2, 3, 2, 2)
    flags = np.arange(12).reshape(2, 3, 2) % 2 == 0
    tfr.write_tfrecord({"steps/image": images, "steps/flags": flags, "id": [7, 8]}, tmp_path / "a.tfrecord")
    imploded = tfr.formats.implode(tfr.explode(tmp_path / "a.tfrecord")).read_all()
    tfr.write_tfrecord(imploded, tmp_path / "b.tfrecord", record_type="sequence_example")
    found = tfr.read_arrays(tmp_path / "b.tfrecord", ragged="object")
    assert [np.stack(list(cell)).tolist() for cell in found["steps/image"]] == images.tolist()
    assert [np.stack(list(cell)).tolist() for cell in found["steps/flags"]] == flags.tolist()
    assert np.stack(list(found["steps/flags"][0])).dtype == bool


def test_boxes_of_a_record_are_exploded_to_a_table_and_back(tmp_path: Path) -> None:
    boxes = {f"image/object/bbox/{side}": [[0.25, 0.5], [], [0.75]] for side in ("xmin", "ymin", "xmax", "ymax")}
    data = {"image/source_id": ["a", "b", "c"], **boxes, "image/object/class/text": [["x", "y"], [], ["z"]]}
    tfr.write_tfrecord({**data, "tags": [[1], [2, 3], []]}, tmp_path / "a.tfrecord")
    lists = ["image/object/bbox/*", "image/object/class/*"]
    rows = tfr.explode(tmp_path / "a.tfrecord", lists=lists).read_all()
    assert rows["image/object/class/text"].to_pylist() == ["x", "y", "z"]
    assert rows["tags"].to_pylist() == [[1], [1], []]
    tfr.write_tfrecord(tfr.explode(tmp_path / "a.tfrecord", lists=lists, keep_empty=True), tmp_path / "b.tfrecord")
    back = tfr.formats.implode(tmp_path / "b.tfrecord", lists=lists).read_all()
    assert back.equals(tfr.read_table(tmp_path / "a.tfrecord"))


def test_features_of_frames_side_by_side() -> None:
    """As YouTube-8M has them, beside other lists."""
    data = {"id": ["v"], "labels": [[3, 4, 5]], "rgb": [[b"a", b"b"]], "audio": [[b"c", b"d"]]}
    assert tfr.explode(data, lists=["rgb", "audio"]).read_all().to_pylist()[1] == {
        "record": 0,
        "step": 1,
        "id": "v",
        "labels": [3, 4, 5],
        "rgb": b"b",
        "audio": b"d",
    }


@pytest.mark.parametrize("keep_empty", [False, True])
def test_a_file_with_one_box_in_each_image(tmp_path: Path, keep_empty: bool) -> None:
    """Its columns are single values, as nothing says that other images have several boxes."""
    data = {"file": ["a", "b", "c"], "box/x": [0.5, None, 0.25], "box/label": ["cat", None, "dog"]}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord", embed_schema=False, float64="round")
    rows = tfr.explode(tmp_path / "a.tfrecord", lists="box/*", keep_empty=keep_empty).read_all()
    expected = [("a", "cat", 0.5), ("b", None, None), ("c", "dog", 0.25)]
    kept = [row for row in expected if keep_empty or row[1] is not None]
    assert [(row["file"], row["box/label"], row["box/x"]) for row in rows.to_pylist()] == kept
    lists = tfr.formats.implode(rows, lists="box/*").read_all()
    assert lists["box/label"].to_pylist() == [[] if row[1] is None else [row[1]] for row in kept]


def test_lists_of_other_lengths_are_named() -> None:
    data = {"id": [1, 2], "xmin": [[1], [1, 2]], "xmax": [[1], [3]], "tags": [[], [1]]}
    with pytest.raises(tfr.errors.SchemaError, match=r"'xmax': row 1 has 1 value in this column, but 2 in 'xmin'"):
        tfr.explode(data, lists=["xmin", "xmax"]).read_all()
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'ymin'"):
        tfr.explode(data, lists=["xmin", "ymin"])
    with pytest.raises(tfr.errors.SchemaError, match="'id': a column of steps is a list"):
        tfr.explode(data, lists=["xmin", "id"])
    with pytest.raises(tfr.errors.SchemaError, match="lists= names no column"):
        tfr.explode(data, lists="!*")


@pytest.mark.parametrize("rows", [1, 2, 9])
@pytest.mark.parametrize("values", [[1, 1, 2, 2, 9], ["a", "a", "b", None, None], [[1], [1], [2], [2], [3]]])
def test_several_values_of_a_column_in_one_record_are_named(values: list[Any], rows: int) -> None:
    table = pa.table({"record": [1, 1, 2, 2, 2], "step": [0, 1, 0, 1, 2], "x": [1, 2, 3, 4, 5], "width": values})
    row = next(at for at in (3, 4) if values[at] != values[at - 1])
    message = f"'width': row {row} has another value than the row before it, of the same record 2; name the column in"
    with pytest.raises(tfr.errors.SchemaError, match=re.escape(message)):
        tfr.formats.implode(table.to_batches(max_chunksize=rows), lists="x").read_all()


def test_lists_that_do_not_exist_are_named() -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError) as caught:
        tfr.formats.implode({"y": [2]}, lists="z")
    assert caught.value.feature == "z"
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'steps/\\*'"):
        tfr.formats.implode({"y": [2]})
    with pytest.raises(tfr.errors.SchemaError, match="lists= names all columns"):
        tfr.formats.implode({"y": [2]}, lists="*")
    with pytest.raises(tfr.errors.SchemaError, match="lists= names no column"):
        tfr.formats.implode({"record": [0], "step": [0], "y": [2]}, lists="step")


def test_batches_are_not_held() -> None:
    """Only those of the last group are."""
    before, rows = pa.total_allocated_bytes(), 100_000

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(40):
            assert pa.total_allocated_bytes() - before < 10 * 16 * rows
            keys = pa.concat_arrays([pa.repeat(number, rows - 1), pa.array([number + 1])])
            yield pa.record_batch({"k": keys, "x": pa.repeat(1, rows)})

    stream = pa.RecordBatchReader.from_batches(pa.schema({"k": pa.int64(), "x": pa.int64()}), batches())
    lengths = [len(cell) for batch in tfr.formats.implode(stream, lists="x") for cell in batch["x"]]
    assert lengths == [rows - 1, *[rows] * 39, 1]
