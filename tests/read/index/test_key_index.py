"""A key finds the record that a dict of all keys has, whatever the keys are."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.read.index import key_index
from tfrecord_io.read.index.key_index import KeyIndex, key_type

texts = st.text(st.characters(codec="utf-8"), max_size=20)
TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), texts),
    (pa.large_string(), texts),
    (pa.binary(), st.binary(max_size=20)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
]
keyed = st.sampled_from(TYPES).flatmap(
    lambda pair: st.tuples(
        st.just(pair[0]), st.lists(pair[1] | st.none(), max_size=60), st.lists(pair[1], max_size=10), st.integers(1, 7)
    )
)


def index_of(keys: list[Any], type_: pa.DataType, rows: int = 1 << 20, **keywords: Any) -> KeyIndex:
    chunks = [pa.array(keys[at : at + rows], type_) for at in range(0, len(keys), rows)]
    return KeyIndex(pa.field("id", type_), chunks, **keywords)


@given(keyed)
def test_a_key_finds_the_first_record_that_a_dict_has(
    engine: str, drawn: tuple[pa.DataType, list[Any], list[Any], int]
) -> None:
    type_, keys, others, rows = drawn
    expected: dict[Any, int] = {}
    for number, key in enumerate(keys):
        if key is not None:
            expected.setdefault(key, number)
    index = index_of(keys, type_, rows, keep="first")
    for one in (index, pickle.loads(pickle.dumps(index))):
        assert {key: one.find(key) for key in expected} == expected
        assert [one.find(key) for key in others] == [expected.get(key, -1) for key in others]
        known = [key for key in keys if key is not None]
        for asked in (known, tuple(known), pa.array(known, type_), pa.chunked_array([pa.array(known, type_)])):
            assert one.find_all(asked).tolist() == [expected[key] for key in known]
    repeated = len(known) - len(expected)
    if repeated:
        message = rf"feature 'id': {repeated} records? ha(s|ve) the key of an earlier record: .*keep=\"first\""
        with pytest.raises(tfr.errors.SchemaError, match=message) as caught:
            index_of(keys, type_)
        assert (caught.value.feature, caught.value.got) == ("id", repeated)


@pytest.mark.parametrize("wide", [False, True])
def test_many_keys(engine: str, monkeypatch: pytest.MonkeyPatch, wide: bool) -> None:
    monkeypatch.setattr(key_index, "_NARROW_KEY_BYTES", 0 if wide else 2**31 - 1)
    keys = [f"image/{number * 7919}" for number in range(20_000)]
    index = index_of(keys, pa.string(), 3000)
    assert [index.find(key) for key in keys] == list(range(20_000))
    assert [index.find(key + "0x") for key in keys[:100]] == [-1] * 100


def test_the_message_names_the_keys_that_occur_more_than_once(engine: str) -> None:
    keys = [f"k{number}" for number in range(100)]
    keys[50], keys[70], keys[90] = "k3", "k3", "k4"
    message = r"3 records have .*: 'k3' \(records 3 and 50\), 'k3' \(records 3 and 70\), 'k4' \(records 4 and 90\);"
    with pytest.raises(tfr.errors.SchemaError, match=message):
        index_of(keys, pa.string())
    with pytest.raises(tfr.errors.SchemaError, match=r"99 records have .*: 7 \(records 0 and 1\).*, …;"):
        index_of([7] * 100, pa.int8())
    with pytest.raises(tfr.errors.SchemaError, match=r"1 record has .*: b'\\xff' \(records 0 and 2\);"):
        index_of([b"\xff", b"", b"\xff"], pa.binary())


@pytest.mark.parametrize(
    ("type_", "key"),
    [
        *[(pa.string(), key) for key in (b"a", 1, None, 1.5, np.int64(1), ("a",))],
        *[(pa.binary(), key) for key in ("a", 1, None)],
        *[(pa.int64(), key) for key in ("a", b"a", None, 1.0, True)],
    ],
    ids=str,
)
def test_keys_of_another_type_are_type_errors(engine: str, type_: pa.DataType, key: Any) -> None:
    index = index_of([], type_)
    with pytest.raises(TypeError, match=r"the keys in column 'id' are (text|bytes|integers), not "):
        index.find(key)
    with pytest.raises(TypeError, match="the keys in column 'id' are"):
        index.find_all([key])


def test_keys_of_numpy_and_beyond_the_range(engine: str) -> None:
    index = index_of([-1, 5, 2**40], pa.int64())
    assert [index.find(key) for key in (np.int8(5), np.uint64(2**40), 2**63, -(2**63) - 1, 2**64 - 1)] == [
        1,
        2,
        -1,
        -1,
        -1,
    ]
    assert index.find_all(np.array([2**40, -1])).tolist() == [2, 0]
    assert index.find_all(np.array([], np.int64)).tolist() == []
    texts = index_of(["a", "b"], pa.dictionary(pa.int8(), pa.string()))
    assert texts.find_all(np.array(["b", "a"])).tolist() == [1, 0]
    assert [texts.find(np.str_("b")), texts.find("\ud800")] == [1, -1]


def test_missing_keys_are_counted_and_named(engine: str) -> None:
    index = index_of(["a", "b"], pa.string())
    with pytest.raises(KeyError, match=r"2 of 4 keys not found: 'x', 'y'"):
        index.find_all(["a", "x", "b", "y"])
    with pytest.raises(KeyError, match=r"9 of 9 keys not found: '0', '1', '2', '3', '4', …"):
        index.find_all(list("012345678"))


@pytest.mark.parametrize("type_", [pa.float32(), pa.timestamp("s"), pa.bool_(), pa.list_(pa.string())], ids=str)
def test_other_columns_are_no_keys(type_: pa.DataType) -> None:
    with pytest.raises(tfr.errors.SchemaError, match="feature 'x': a key is text, bytes or an integer, not "):
        key_type(pa.field("x", type_))


def test_memory_of_a_key(native_engine: None) -> None:
    """Besides its bytes: 4 for the offset, 4 for the row, 1 to 2 for the buckets."""
    for rows in (10_000, 16_384, 16_385, 100_000):
        index = index_of([f"{number:020}" for number in range(rows)], pa.string())
        size = index._data.nbytes + index._offsets.nbytes + index._table.nbytes
        assert index._valid is None
        assert size / rows < 20 + 4 + 4 + 2.1


def test_a_table_borrows_arrays_only_as_they_are() -> None:
    """A converted copy would be freed while the table still reads it."""
    if (engine := get_engine()).name != "native":
        pytest.skip("the kernel borrows the arrays")
    data, offsets = np.frombuffer(b"abc", np.uint8), np.array([0, 1, 3])
    assert engine.key_table(data, offsets, np.array([True, True])).find(b"bc") == 1
    for wrong in (offsets.astype(np.uint64), offsets.astype(np.float64), np.zeros(6, np.int64)[::2], offsets[:0]):
        with pytest.raises((RuntimeError, ValueError)):
            engine.key_table(data, wrong, None)
    for valid in (np.ones(2, np.uint8), np.ones(4, np.bool_)[::2], np.ones(1, np.bool_)):
        with pytest.raises((RuntimeError, ValueError)):
            engine.key_table(data, offsets, valid)
