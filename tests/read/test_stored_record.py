"""Records as stored in their file: their features, of which some are taken."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.kit import Scan
from tfrecord_io.read import stored_record
from tfrecord_io.read.stored_record import StoredBytes, StoredRecord


def stored(data: bytes) -> StoredBytes:
    return StoredBytes.of(lambda begin, end: data[begin:end], len(data))


def record(payload: bytes) -> StoredRecord:
    return StoredRecord(stored(bytes(12) + payload + bytes(4)))


_NAMES = st.text(max_size=5)


@given(
    st.dictionaries(_NAMES, st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), max_size=4),
    st.dictionaries(_NAMES.map("f{}".format), st.lists(st.floats(width=32), max_size=5), max_size=4),
    st.dictionaries(_NAMES.map("b{}".format), st.lists(st.binary(max_size=5), max_size=5), max_size=4),
)
def test_features_are_those_of_protobuf(
    numbers: dict[str, list[int]], floats: dict[str, list[float]], texts: dict[str, list[bytes]]
) -> None:
    example, amounts = tfr.train.Example(), {}
    for part, kind in ((numbers, "int64"), (floats, "float"), (texts, "bytes")):
        for name, values in part.items():
            getattr(example.features.feature[name], f"{kind}_list").value.extend(values)
            amounts[name] = (kind, f"{len(values):,}")
    features = record(example.SerializeToString()).features
    assert {f.name.decode(): (f.kind, f.amount) for f in features if f.name is not None} == amounts
    for feature in features:
        assert feature.name is not None
        content = example.features.feature[feature.name.decode()]
        assert tfr.train.Feature.FromString(feature.content.read()) == content
        if len(content.bytes_list.value) == 1:
            assert feature.value.read() == content.bytes_list.value[0]


def test_fixed_numbers_and_unknown_fields_are_fields() -> None:
    fields = stored(b"\x0d\x01\0\0\0\x11\x02\0\0\0\0\0\0\0\xa2\x06\x01x\x18\x07").fields()
    found = [(number, value.read() if isinstance(value, StoredBytes) else value) for number, value in fields]
    assert found == [(1, b"\x01\0\0\0"), (2, b"\x02" + bytes(7)), (100, b"x"), (3, 7)]


@given(st.binary(max_size=40))
def test_other_bytes_are_an_error_at_most(data: bytes) -> None:
    with suppress(ValueError):
        for feature in record(data).features:
            assert feature.kind is not None
            assert feature.amount is not None


@given(data=st.binary(max_size=200), begin=st.integers(0, 200), end=st.integers(0, 200))
def test_parts_are_those_of_the_bytes(data: bytes, begin: int, end: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored_record, "_PAGE", 7)
        part = stored(data)[begin:end]
        assert part.read() == data[begin:end]
        assert len(part) == len(data[begin:end])
        assert part[1:3].read() == data[begin:end][1:3]


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """Three rows, of which the second has a cell of 9 MB."""
    cells = [b"small", b"large" * 1_800_000, None]
    table = pa.table({"n": [1, 2, 3], "big": pa.array(cells, pa.large_binary()), "list": [[1, 2], [3], []]})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord", embed_schema=False)
    return tmp_path / "a.tfrecord"


def test_small_features_of_a_large_record_are_decoded_alone(large: Path) -> None:
    records = Scan.of(large).map_records()
    assert records.find(3) == 3
    of_second = records.stored(records.address(1))
    assert [*of_second.large] == ["big"]
    assert of_second.large["big"].value[:10].read() == b"largelarge"
    assert len(of_second.frame_of(())) < 200
    stated, actual = of_second.checksums
    assert stated == actual
    ((numbers, batch, wrong),) = records.batches([records.address(1)], ["n", "list"])
    assert (numbers, batch.to_pydict(), wrong) == ([records.address(1)], {"n": [2], "list": [[3]]}, {})
    parts = [(numbers, batch["big"].to_pylist()) for numbers, batch, _ in records.batches([0, 1, 2], ["big"])]
    cells = {at: cell for numbers, values in parts for at, cell in zip(numbers, values, strict=True)}
    assert [len(cells[at] or b"") for at in range(3)] == [5, 9_000_000, 0]
    records.close()


@pytest.mark.parametrize("where", [None, "n > 1", "n != 2", "big is null", "list contains 3"])
def test_rows_of_large_records_are_those_of_a_filter(large: Path, where: str | None) -> None:
    scan = Scan.of(large)
    records = scan.map_records()
    expected = (scan if where is None else scan.filter(where)).only(["n"]).read()["n"].to_pylist()
    read = [*records.read(["n"], where)]
    assert [n for _, batch, _ in read for n in batch["n"].to_pylist()] == expected
    assert [int(a) for addresses, _, _ in read for a in addresses] == [n - 1 for n in expected]
    *_, (found, _) = records.search(where)
    assert found[:] == [n - 1 for n in expected]
    records.close()


@given(
    st.lists(st.integers(0, 300), unique=True, max_size=60), st.integers(1, 9), st.integers(0, 60), st.integers(0, 60)
)
def test_addresses_are_those_that_were_added(numbers: set[int], step: int, begin: int, end: int) -> None:
    from tfrecord_io.read.record_map import _FILE, Addresses

    expected = sorted((number % 3) << _FILE | number for number in numbers)
    found = Addresses()
    for at in range(0, len(expected), step):
        found.add(np.array(expected[at : at + step]))
    assert len(found) == len(expected)
    assert found[begin:end] == expected[begin:end]
