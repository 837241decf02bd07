"""Columns of categories are read back equal, whatever the type of the categories and of the column."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.columns.arrow.casts import category_encode, collide_as_float32, has_all
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.merged_schema import join_categories

pytestmark = pytest.mark.filterwarnings("ignore::tfrecord_io.errors.PrecisionWarning")

DAY = dt.date(2024, 2, 29)
CATEGORIES = [
    pa.array([0.1, 1 / 3, -0.0, float("nan"), float("inf"), 0.0], pa.float64()),
    pa.array([0.1, 0.5, float("nan")], pa.float32()),
    pa.array([np.float16(0.1), np.float16(0.5), np.float16(-7)], pa.float16()),
    pa.array([True, False]),
    *(pa.array([3, 1, 2], type_) for type_ in (pa.int8(), pa.uint16(), pa.int64(), pa.uint64())),
    *(
        pa.array([Decimal("1.10"), Decimal("-2.00"), Decimal("3.33")], type_)
        for type_ in (pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(20, 2), pa.decimal256(50, 2))
    ),
    *(pa.array([DAY, dt.date(1969, 1, 1)], type_) for type_ in (pa.date32(), pa.date64())),
    pa.array([3, -1, 2], pa.timestamp("ns", "Asia/Tokyo")),
    pa.array([3, -1, 2], pa.duration("us")),
    pa.array([3, 1, 2], pa.time32("ms")),
    pa.array([3000, 1000, 2000], pa.time64("ns")),
    *(pa.array(["b", "", "a"], type_) for type_ in (pa.string(), pa.large_string(), pa.string_view())),
    *(pa.array([b"b", b"", b"\xff"], type_) for type_ in (pa.binary(), pa.large_binary(), pa.binary_view())),
    pa.array([b"bb", b"\xff\0"], pa.binary(2)),
]
COLUMNS: dict[str, Callable[[pa.Array], pa.Array]] = {
    "plain": lambda values: values,
    "list": lambda values: pa.ListArray.from_arrays(pa.array([0, 1, 1, len(values)]), values),
    "large list": lambda values: pa.LargeListArray.from_arrays(pa.array([0, 2, len(values)]), values),
    "fixed size list": lambda values: pa.FixedSizeListArray.from_arrays(values[: len(values) // 2 * 2], 2),
    "struct": lambda values: pa.StructArray.from_arrays([values], ["inner"]),
    "list of structs": lambda values: pa.ListArray.from_arrays(
        pa.array([0, 1, len(values)]), pa.StructArray.from_arrays([values], ["inner"])
    ),
    "run ends": lambda values: pa.RunEndEncodedArray.from_arrays(pa.array(np.arange(len(values)) + 1), values),
}


def str_of_type(value: Any) -> str:
    return str(value.type if isinstance(value, pa.Array) else value)


@pytest.mark.parametrize("form", COLUMNS)
@pytest.mark.parametrize(
    ("categories", "float64"),
    [*((each, None) for each in CATEGORIES), (CATEGORIES[0], "round"), (CATEGORIES[0], "raw")],
    ids=str_of_type,
)
def test_categories_are_read_back(
    engine: str, tmp_path: Path, categories: pa.Array, form: str, float64: str | None
) -> None:
    indices = pa.array([1, 0, *range(len(categories)), 1], pa.int8())
    column = COLUMNS[form](pa.DictionaryArray.from_arrays(indices, categories))
    table = pa.table({"x": column, "n": pa.array([1.5] * len(column))})
    tfr.write_tfrecord(table, tmp_path / "x.tfrecord", float64=float64)
    found = tfr.read_table(tmp_path / "x.tfrecord")["x"]
    assert repr(found.to_pylist()) == repr(column.to_pylist())


@pytest.mark.parametrize("categories", CATEGORIES, ids=str_of_type)
def test_categories_that_are_not_embedded_are_the_values(engine: str, tmp_path: Path, categories: pa.Array) -> None:
    declared = pa.dictionary(pa.int8(), categories.type)
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, None, 1], pa.int8()), categories)
    tfr.write_tfrecord({"x": column}, tmp_path / "x.tfrecord", embed_schema=False)
    found = tfr.read_table(tmp_path / "x.tfrecord", schema={"x": tfr.scalar(declared)})["x"]
    values = categories.cast(pa.float32()).cast(pa.float64()) if categories.type == pa.float64() else categories
    assert found.to_pylist() == [values[1].as_py(), values[0].as_py(), None, values[1].as_py()]


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("categories", CATEGORIES[2:], ids=str_of_type)
def test_a_default_is_one_of_the_categories(tmp_path: Path, categories: pa.Array, is_known: bool) -> None:
    values, default = (categories if is_known else categories.slice(1)), categories[0].as_py()
    tfr.write_tfrecord(
        {"x": pa.concat_arrays([values, pa.nulls(2, values.type)])}, tmp_path / "x.tfrecord", embed_schema=False
    )
    declared = tfr.scalar(pa.dictionary(pa.int8(), categories.type), default=default)
    found = tfr.read_table(tmp_path / "x.tfrecord", schema={"x": declared})["x"]
    assert found.to_pylist() == [*values.to_pylist(), default, default]
    assert len(found.chunk(0).dictionary) == len(categories)


def test_a_categorical_of_floats_is_read_back(engine: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": pd.Categorical([0.1, 0.2, None], categories=[0.2, 0.1, 7e300])})
    for float64 in (None, "round", "raw"):
        tfr.write_tfrecord(frame, tmp_path / "x.tfrecord", float64=float64)
        pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "x.tfrecord"), frame)
    with pytest.raises(tfr.errors.EncodeError, match="float32"):
        tfr.write_tfrecord(frame, tmp_path / "x.tfrecord", float64="error")


@pytest.mark.parametrize("float64", [None, "raw"])
@pytest.mark.parametrize("form", [pa.scalar(None), [None, None]], ids=["plain", "list"])
def test_a_column_of_nulls_keeps_its_categories(engine: str, tmp_path: Path, form: Any, float64: str | None) -> None:
    type_ = pa.dictionary(pa.int8(), pa.float64())
    nulls = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([0.1, 0.2]))
    if isinstance(form, list):
        none = nulls[:0]
        validity = pa.array([True, True])
        nulls = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), none, mask=validity)
        type_ = pa.list_(type_)
    assert nulls.type == type_
    tfr.write_tfrecord({"x": nulls}, tmp_path / "x.tfrecord", float64=float64)
    found = tfr.read_table(tmp_path / "x.tfrecord")["x"].combine_chunks()
    assert found.null_count == 2
    assert (found.values if isinstance(form, list) else found).dictionary.to_pylist() == [0.1, 0.2]


def test_files_with_other_categories_are_read_together(tmp_path: Path) -> None:
    for name, values in (("a", [0.1, 0.2]), ("b", [0.2, 0.3])):
        tfr.write_tfrecord({"x": pa.array(values).dictionary_encode()}, tmp_path / name)
    found = tfr.read_table([tmp_path / "a", tmp_path / "b"])["x"]
    assert found.to_pylist() == [0.1, 0.2, 0.2, 0.3]


def test_ordered_categories_that_are_too_large_to_embed_are_plain_values(tmp_path: Path) -> None:
    texts = [f"{number:0120d}" for number in range(10_000)]
    chosen = [texts[9000], texts[5], texts[700]]
    for ordered in (True, False):
        frame = pd.DataFrame({"x": pd.Categorical(chosen, categories=texts, ordered=ordered)})
        tfr.write_tfrecord(frame, tmp_path / "x.tfrecord")
        found = tfr.read_tfrecord(tmp_path / "x.tfrecord")["x"]
        assert found.astype(object).tolist() == chosen
        assert (found.dtype == "category") != ordered


def test_ordered_categories_of_a_stream_are_in_the_order_of_the_first(tmp_path: Path) -> None:
    def frame(values: list[str], categories: list[str]) -> pd.DataFrame:
        return pd.DataFrame({"x": pd.Categorical(values, categories=categories, ordered=True)})

    first = frame(["lo", "hi"], ["lo", "mid", "hi"])
    tfr.write_tfrecord([first, frame(["lo"], ["lo", "hi"])], tmp_path / "x.tfrecord")
    assert tfr.read_tfrecord(tmp_path / "x.tfrecord")["x"].max() == "hi"
    with pytest.raises(tfr.errors.EncodeError, match="'x': its ordered categories are in a different order"):
        tfr.write_tfrecord([first, frame(["lo"], ["hi", "lo"])], tmp_path / "x.tfrecord")


@pytest.mark.parametrize("in_struct", [False, True])
def test_categories_of_half_floats_in_several_batches_keep_their_values(tmp_path: Path, in_struct: bool) -> None:
    """Arrow joins the dictionaries of batches by the bits of half floats."""

    def array(indices: list[int | None], categories: list[float]) -> pa.Array:
        values = pa.array(map(np.float16, categories), pa.float16())
        made = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), values, ordered=True)
        return pa.StructArray.from_arrays([made], ["a"]) if in_struct else made

    one = array([0, 1, None], [1.5, 2])
    tfr.write_tfrecord(pa.table({"x": one}), tmp_path / "shards@3")
    assert tfr.read_table(tmp_path / "shards@3")["x"].to_pylist() == one.to_pylist()
    assert tfr.read_tfrecord(tmp_path / "shards@3")["x"].dtype == (object if in_struct else np.float16)
    table = pa.table({"x": pa.chunked_array([one, array([0], [3])])})
    tfr.write_tfrecord(table, tmp_path / "chunks.tfrecord")
    assert tfr.read_table(tmp_path / "chunks.tfrecord")["x"].to_pylist() == table["x"].to_pylist()


@settings(max_examples=rounds(200))
@given(categories=st.lists(st.floats(0.9999999, 1.0000001) | st.floats(), min_size=1, max_size=6, unique_by=repr))
def test_a_stored_value_is_the_nearest_category(categories: list[float]) -> None:
    """Of categories that round to one float32, the nearest: so one that float32 holds is always read as itself."""
    exact = np.array(categories)
    with np.errstate(over="ignore"):
        stored = exact.astype(np.float32)
    fits = ~(np.isinf(stored) & np.isfinite(exact))
    read = stored[fits].astype(np.float64)
    encode = category_encode(pa.dictionary(pa.int8(), pa.float64()), pa.array(categories), rounded=True)
    found = np.asarray(encode(pa.array(read)).dictionary_decode())
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found.astype(np.float32), stored[fits])
    own = np.isnan(read) | np.isinf(read) | (np.abs(found - read) <= np.abs(exact[fits] - read))
    assert own.all()


def test_a_value_that_is_no_category_names_its_row() -> None:
    type_ = pa.dictionary(pa.int8(), pa.float64())
    for rounded in (True, False):
        encode = category_encode(type_, pa.array([1e300, None, 0.5]), rounded=rounded)
        assert encode(pa.array([None, 0.5])).to_pylist() == [None, 0.5]
        with pytest.raises(RowFault) as caught:
            encode(pa.array([0.5, None, float("inf")]))
        assert caught.value.row == 2


@pytest.mark.parametrize("categories", CATEGORIES, ids=str_of_type)
def test_categories_of_later_data_are_compared(categories: pa.Array) -> None:
    if "view" in str(categories.type):
        categories = categories.cast(pa.string() if pa.types.is_string_view(categories.type) else pa.binary())
    first, rest = categories[:1], categories[1:]
    assert has_all(categories, rest)
    assert not has_all(rest[:1], first)
    assert repr(join_categories(first, rest).to_pylist()) == repr(categories.to_pylist())
    assert join_categories(categories, rest) is categories


@given(st.lists(st.floats() | st.sampled_from([0.1, 0.1 + 1e-12, 1e-50, 2e-50, -0.0, 0.0]), unique=True, max_size=5))
def test_categories_collide_if_their_codes_would_change(categories: list[float]) -> None:
    array = pa.array([value for value in categories if abs(value) < 3e38 or value != value], pa.float64())
    encode = category_encode(pa.dictionary(pa.int64(), pa.float64()), array, rounded=True)
    found = np.asarray(array)[np.asarray(encode(array.cast(pa.float32()).cast(pa.float64())).indices)]
    assert collide_as_float32(array) == (not np.array_equal(found, np.asarray(array), equal_nan=True))


@pytest.mark.parametrize("form", ["frame", "list", "struct"])
def test_categories_that_are_equal_as_float32(form: str, tmp_path: Path) -> None:
    data: Any = {"a": pa.array([0.1, 0.1 + 1e-12, 0.1]).dictionary_encode()}
    if form == "frame":
        data = pd.DataFrame({"a": pd.Categorical([0.1, 0.1 + 1e-12, 0.1])})
    elif form != "plain":
        data = {"a": COLUMNS[form](data["a"])}
    path = tmp_path / "x.tfrecord"
    with pytest.raises(tfr.errors.EncodeError, match=r"equal as float32.*float64=\"raw\"") as caught:
        tfr.write_tfrecord(data, path)
    assert caught.value.feature in ("a", "a/inner")
    assert not path.exists()
    tfr.write_tfrecord(data, path, float64="raw")
    if form == "frame":
        assert tfr.read_tfrecord(path)["a"].cat.codes.tolist() == [0, 1, 0]
    tfr.write_tfrecord(data, path, embed_schema=False)


def test_categories_with_a_value_twice_stay_as_they_are(tmp_path: Path) -> None:
    nulls = pa.array([None, None], pa.bool_())
    assert join_categories(nulls, pa.array([None, None], pa.bool_())) is nulls
    column = pa.DictionaryArray.from_arrays(pa.array([None], pa.int8()), nulls)
    tfr.write_tfrecord(pa.table({"c": column}), tmp_path / "c.tfrecord")
    assert tfr.dataset(tmp_path / "c.tfrecord").to_table()["c"].to_pylist() == [None]


def test_categories_in_a_time_zone_have_no_name(tmp_path: Path) -> None:
    times = pa.array([0, 10**12], pa.timestamp("us", "Asia/Tokyo"))
    tfr.write_tfrecord({"x": times.dictionary_encode()}, tmp_path / "x.tfrecord")
    categories = tfr.read_tfrecord(tmp_path / "x.tfrecord")["x"].cat.categories
    assert (categories.name, str(categories.tz)) == (None, "Asia/Tokyo")


def test_labels_that_are_not_text_beside_lists_of_arrow(tmp_path: Path) -> None:
    lists = pd.array([[1]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))
    tfr.write_tfrecord(pd.DataFrame({0: lists, 1: [2]}), tmp_path / "x.tfrecord")
    assert tfr.read_tfrecord(tmp_path / "x.tfrecord").columns.tolist() == [0, 1]


def test_plain_values_with_the_encoding_of_nested_columns_keep_their_bits(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [0.1]}, tmp_path / "x.tfrecord", float64="raw", column_encoding={"x": "nested"})
    assert tfr.read_table(tmp_path / "x.tfrecord")["x"].to_pylist() == [0.1]
