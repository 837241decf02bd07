"""A record by its key is that of a dict of all records, with and without column indexes, in every process."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from in_processes import rows_of_keys
from reading import read_by
from servers import Bucket
from tfrecord_io.read.index import indexed_files

ROWS = 40
TABLE = pa.table(
    {
        "id": [f"img-{number * 7 % ROWS:02}" for number in range(ROWS)],
        "number": pa.array([number * 10**12 for number in range(ROWS)]),
        "raw": [bytes([number, 255]) for number in range(ROWS)],
        "sometimes": [None if number % 3 else f"s{number}" for number in range(ROWS)],
        "label": [number % 4 for number in range(ROWS)],
        "scores": pa.array([[number / 2] * (number % 3) for number in range(ROWS)], pa.list_(pa.float32())),
    }
)
KEYS = ["id", "number", "raw", "sometimes"]


def written(folder: Path, indexed: str) -> list[Path]:
    """The table in three files, of which all, some or none have a column index."""
    paths = [folder / f"{at}.tfrecord" for at in range(3)]
    for path, begin, end in zip(paths, [0, 11, 12], [11, 12, ROWS], strict=True):
        tfr.write_tfrecord(TABLE.slice(begin, end - begin), path, write_index=indexed == "some")
    if indexed != "none":
        tfr.build_index(paths if indexed == "all" else paths[1:], columns=KEYS)
    return paths


@pytest.fixture(params=["none", "some", "all"], scope="module")
def paths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files that no test changes."""
    return written(tmp_path_factory.mktemp(request.param), request.param)


def by_key(table: pa.Table, key: str) -> dict[Any, dict[str, Any]]:
    return {row[key]: row for row in table.to_pylist() if row[key] is not None}


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in row.items()}


@given(key=st.sampled_from(KEYS), data=st.data())
def test_records_by_key_equal_those_of_a_dict(engine: str, paths: list[Path], key: str, data: st.DataObject) -> None:
    expected = by_key(tfr.read_table(paths), key)
    asked = data.draw(st.lists(st.sampled_from(sorted(expected)), max_size=10))
    with tfr.open_random(paths, key=key) as records:
        assert records.key == key
        for one in asked:
            assert one in records
            assert plain(records.lookup(one)) == plain(records.get(one)) == expected[one]
        assert records.lookup(asked).to_pylist() == [expected[one] for one in asked]
        assert records.lookup(pa.array(asked, TABLE[key].type)).schema == records.schema


def test_keys_that_no_record_has(paths: list[Path]) -> None:
    with tfr.open_random(paths, key="id") as records:
        assert "img-99" not in records
        assert records.get("img-99") is None
        assert records.get("img-99", 5) == 5
        with pytest.raises(KeyError) as caught:
            records.lookup("img-99")
        assert caught.value.args == ("img-99",)
        with pytest.raises(KeyError, match="1 of 2 keys not found: 'img-99'"):
            records.lookup(["img-01", "img-99"])
        for call in (records.lookup, records.get, records.__contains__):
            with pytest.raises(TypeError, match="the keys in column 'id' are text, not int"):
                call(3)
        with pytest.raises(TypeError, match="not NoneType"):
            records.lookup(None)  # type: ignore[call-overload]


def test_the_key_need_not_be_selected(paths: list[Path]) -> None:
    with tfr.open_random(paths, key="id", columns=["label", "scores"]) as records:
        assert plain(records.lookup("img-07")) == {"label": 1, "scores": [0.5]}
        assert records.schema.names == ["label", "scores"]


def test_the_key_need_not_be_selected_where_types_are_inferred(tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord", embed_schema=False)
    with tfr.open_random(tmp_path / "a.tfrecord", key="id", columns=["label", "scores"]) as records:
        assert plain(records.lookup("img-07")) == {"label": 1, "scores": [0.5]}
        assert records.lookup(["img-07"]).schema == records.schema
        with pytest.raises(tfr.errors.FeatureNotFoundError, match="'nothing': the column of the keys"):
            tfr.open_random(tmp_path / "a.tfrecord", key="nothing", columns=["label"])


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("type_", [pa.binary(2), pa.dictionary(pa.int8(), pa.binary(2))], ids=str)
def test_bytes_of_a_fixed_number_are_keys(tmp_path: Path, type_: pa.DataType, indexed: bool) -> None:
    digests = pa.array([b"ab", None, b"\xff\x00", b"ab"], pa.binary(2))
    column = digests if type_ == digests.type else digests.dictionary_encode().cast(type_)
    tfr.write_tfrecord(pa.table({"digest": column, "n": range(4)}), tmp_path / "a.tfrecord")
    if indexed:
        tfr.build_index(tmp_path / "a.tfrecord", columns=["digest"])
    with tfr.open_random(tmp_path / "a.tfrecord", key="digest", keep="first") as records:
        assert records.lookup(b"\xff\x00") == {"digest": b"\xff\x00", "n": 2}
        assert records.lookup_all([b"ab"])["n"].to_pylist() == [0, 3]
        assert b"abc" not in records


def test_an_array_without_axes_is_one_key_and_lookup_all_takes_several(paths: list[Path]) -> None:
    with tfr.open_random(paths, key="id") as records:
        assert plain(records.lookup(np.array("img-07"))) == plain(records.lookup("img-07"))
        for one in ("img-07", b"img-07", 7, np.array("img-07")):
            with pytest.raises(TypeError, match=r"lookup_all takes several keys, not \w+; all\(key\) has"):
                records.lookup_all(one)  # type: ignore[arg-type]


def test_columns_that_are_no_key(paths: list[Path]) -> None:
    with pytest.raises(
        tfr.errors.FeatureNotFoundError, match="'nothing': the column of the keys does not exist; valid names: id"
    ):
        tfr.open_random(paths, key="nothing")
    with pytest.raises(tfr.errors.SchemaError, match="'scores': a key is text, bytes or an integer, not list"):
        tfr.open_random(paths, key="scores")
    with pytest.raises(
        tfr.errors.SchemaError, match=r"'label': 36 records have the key of an earlier .*\(records 0 and 4\)"
    ):
        tfr.open_random(paths, key="label")
    with tfr.open_random(paths, key="label", keep="first") as records:
        assert records.lookup([3, 0])["number"].to_pylist() == [3 * 10**12, 0]
    for keywords in ({"keep": "first"}, {"keep": "last", "key": "id"}):
        with pytest.raises(ValueError, match='expected "first", with key='):
            read_by(tfr.open_random, paths, **keywords)  # type: ignore[arg-type]


def test_without_a_key(paths: list[Path]) -> None:
    with tfr.open_random(paths, columns=["label"]) as records:
        assert records.key is None
        for call in (records.lookup, records.get):
            with pytest.raises(ValueError, match=r"open_random is given its column: key="):
                call("img-01")
        assert {"label": 3} in records
        assert {"label": 4} not in records
    with tfr.open_random(paths, key="id") as records:
        pass
    with pytest.raises(ValueError, match="closed"):
        records.lookup("img-01")
    with pytest.raises(ValueError, match="closed"):
        assert "img-01" in records


def test_no_records(tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": ["a"], "x": [1]}, tmp_path / "a.tfrecord")
    (tmp_path / "b.tfrecord").write_bytes(b"")
    with tfr.open_random([tmp_path / "b.tfrecord", tmp_path / "a.tfrecord"], key="id") as records:
        assert records.lookup("a") == {"id": "a", "x": 1}
        assert records.lookup([]).num_rows == 0


def test_partition_folders(tmp_path: Path) -> None:
    for at, day in enumerate(["mon", "tue"]):
        (tmp_path / f"day={day}").mkdir()
        tfr.write_tfrecord(TABLE.slice(20 * at, 20), tmp_path / f"day={day}" / "a.tfrecord")
    tfr.build_index(tmp_path, columns=["id"])
    with tfr.open_random(tmp_path, key="id", columns=["id", "day"]) as records:
        assert records.lookup("img-07") == {"id": "img-07", "day": "mon"}
        assert records.lookup(["img-33", "img-00"])["day"].to_pylist() == ["tue", "mon"]


# ---- indexes that do not match, and damage


@pytest.mark.fault(56)
def test_a_stale_column_index_is_not_used(tmp_path: Path) -> None:
    path, index = tmp_path / "a.tfrecord", tmp_path / "a.tfrecord.column_index"
    tfr.write_tfrecord({"id": ["a", "b"]}, path)
    tfr.build_index(path, columns=["id"])
    content = index.read_bytes()
    tfr.write_tfrecord({"id": ["b", "a"]}, path)  # of the same sizes
    index.write_bytes(content)
    with pytest.warns(tfr.errors.StaleIndexWarning, match=r"checksums .* others; rewrite it") as caught:
        records = tfr.open_random(path, key="id")
    assert len(caught) == 1
    with records:
        assert records.lookup("b") == {"id": "b"} == records[0]


@pytest.mark.fault(56)
def test_an_index_of_other_types_is_not_used(tmp_path: Path) -> None:
    """It has the values of another reader."""
    tfr.write_tfrecord({"id": ["1", "2"]}, tmp_path / "a.tfrecord")
    tfr.build_index(tmp_path / "a.tfrecord", columns=["id"])
    with tfr.open_random(tmp_path / "a.tfrecord", key="id", schema={"id": "binary"}) as records:
        assert records.lookup(b"2") == {"id": b"2"}


@pytest.mark.fault(23)
@pytest.mark.parametrize("kept_open", [128, 1])
def test_a_file_that_is_replaced_while_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_open: int
) -> None:
    """The record is that of the file that was opened, or an error: never another one of the same size."""
    monkeypatch.setattr(indexed_files, "_OPEN_FILES", kept_open)
    for at in range(2):
        tfr.write_tfrecord({"id": [f"{at}a", f"{at}b"]}, tmp_path / f"{at}.tfrecord")
    with tfr.open_random(tmp_path, key="id") as records:
        tfr.write_tfrecord({"id": ["0b", "0a"]}, tmp_path / "0.tfrecord")
        os.utime(tmp_path / "0.tfrecord", ns=(1, 1))
        if kept_open == 1:
            with pytest.raises(tfr.errors.ReplacedError, match="was replaced while it was read; read it again"):
                records.lookup("0b")
        else:
            assert records.lookup("0b") == {"id": "0b"}


@pytest.mark.parametrize("index", [False, True])
def test_damaged_records_are_left_out_and_named(engine: str, tmp_path: Path, index: bool) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"id": [f"k{number}" for number in range(9)]}, path, embed_schema=False)
    if index:
        tfr.build_index(path, columns=["id"])
    status, size = path.stat(), path.stat().st_size // 9
    content = bytearray(path.read_bytes())
    content[5 * size + 14] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # as after a fault of the disk
    if not index:
        with pytest.raises(tfr.errors.CorruptRecordError, match="record 5 at byte"):
            tfr.open_random(path, key="id")
    with tfr.open_random(path, key="id", on_error="skip") as records:
        assert ("k5" in records) == index
        assert records.lookup(["k8", "k4"])["id"].to_pylist() == ["k8", "k4"]
        if index:
            with pytest.raises(tfr.errors.CorruptRecordError, match="record 5 at byte"):
                records.lookup("k5")
        assert records[:].num_rows == 8
        assert records.report.skipped.total == 1


# ---- processes and threads


@pytest.mark.matrix
@pytest.mark.fault(65)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_can_look_up(paths: list[Path], method: str) -> None:
    expected = by_key(TABLE, "id")
    processes = {"fork": 2, "spawn": 1}  # a spawned one imports all modules again
    with (
        tfr.open_random(paths, key="id") as records,
        multiprocessing.get_context(method).Pool(processes[method]) as pool,
    ):
        asked = [sorted(expected)[at::2] for at in range(2)]
        found = pool.starmap(rows_of_keys, [(records, keys) for keys in asked])
        assert found == [[expected[key]["number"] for key in keys] for keys in asked]


def test_unpickling_reads_no_key_again(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexed_files, "_OPEN_FILES", 1)
    with tfr.open_random(paths, key="id") as records:
        copy = pickle.loads(pickle.dumps(records))
    with copy:
        assert copy.lookup("img-07")["number"] == 10**12
        assert copy.report.records == 1


@pytest.mark.fault(65)
@pytest.mark.parametrize("kept_open", [128, 1])
def test_threads_can_share_one_reader(paths: list[Path], monkeypatch: pytest.MonkeyPatch, kept_open: int) -> None:
    monkeypatch.setattr(indexed_files, "_OPEN_FILES", kept_open)
    expected = by_key(TABLE, "id")
    asked = sorted(expected) * 20
    with tfr.open_random(paths, key="id") as records, ThreadPoolExecutor(8) as pool:
        assert [plain(row) for row in pool.map(records.lookup, asked)] == [expected[key] for key in asked]


# ---- buckets


@pytest.fixture
def requests(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the bucket."""
    import aiohttp

    seen: list[str] = []
    request = aiohttp.ClientSession._request

    async def noted(self: Any, method: str, url: Any, **keywords: Any) -> Any:
        seen.append(f"{method} {url}")
        return await request(self, method, url, **keywords)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", noted)
    return seen


@pytest.mark.parametrize("indexed", [False, True], ids=["plain", "indexed"])
def test_a_look_up_is_one_request(s3: Bucket, requests: list[str], indexed: bool) -> None:
    options = {"storage_options": s3.storage_options}
    for at in range(2):
        table = {"id": [f"{at}-{number}" for number in range(50)], "blob": [bytes(20_000)] * 50}
        tfr.write_tfrecord(table, s3.url(f"{at}.tfrecord"), **options)
        if indexed:
            read_by(tfr.build_index, s3.url(f"{at}.tfrecord"), columns=["id"], **options)
    with read_by(tfr.open_random, s3.url("*.tfrecord"), key="id", **options) as records:
        requests.clear()
        assert records.lookup("1-30")["id"] == "1-30"
        assert len(requests) == 1
        assert records.get("nothing") is None
        assert "0-1" in records
        assert len(requests) == 1
        requests.clear()
        assert records.lookup(["1-3", "1-1", "1-3", "1-2"])["id"].to_pylist() == ["1-3", "1-1", "1-3", "1-2"]
        assert len(requests) == 1  # near each other
        requests.clear()
        assert records.lookup(["1-0", "0-0"]).num_rows == 2
        assert len(requests) == 2  # of two files


REPEATED = pa.table(
    {
        "text": [None if number % 11 == 5 else f"k{number * number % 7}" for number in range(ROWS)],
        "raw": [bytes([number % 3]) for number in range(ROWS)],
        "int": pa.array([number % 5 - 2 for number in range(ROWS)], pa.int64()),
        "uint": pa.array([2**62 + number % 4 for number in range(ROWS)], pa.uint64()),
        "once": [number * 10 for number in range(ROWS)],
        "x": [*range(ROWS)],
    }
)


@pytest.mark.parametrize("indexed", ["none", "some", "all"])
@pytest.mark.parametrize("key", ["text", "raw", "int", "uint", "once"])
def test_all_records_of_a_key(engine: str, key: str, indexed: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{at}.tfrecord" for at in range(3)]
    for at, path in enumerate(paths):
        tfr.write_tfrecord(REPEATED.slice(at * 15, 15), path)
    if indexed != "none":
        tfr.build_index(paths if indexed == "all" else paths[1:], columns=[key])
    expected: dict[Any, list[int]] = {}
    for number, value in enumerate(REPEATED[key].to_pylist()):
        expected.setdefault(value, []).append(number)
    expected.pop(None, None)
    with tfr.open_random(paths, key=key, keep="first") as records:
        for value, numbers in expected.items():
            assert [row["x"] for row in records.all(value)] == numbers
            assert records.all(value)[0] == records.lookup(value)
        asked = [*expected, next(iter(expected))]
        assert records.lookup_all(asked)["x"].to_pylist() == [x for value in asked for x in expected[value]]
        assert records.lookup_all(pa.array(asked, REPEATED[key].type)).schema == records.schema
        assert records.all({"text": "none", "raw": b"none"}.get(key, 77)) == []
        with pytest.raises(KeyError, match="1 of 2 keys not found"):
            records.lookup_all([asked[0], {"text": "none", "raw": b"none"}.get(key, 77)])
        with pytest.raises(TypeError, match="keys in column"):
            records.all(1.5)  # type: ignore[arg-type]
        again = pickle.loads(pickle.dumps(records))
        assert again.all(asked[0]) == records.all(asked[0])
        again.close()
    with tfr.open_random(paths, key=key, keep="first", columns=["x"]) as records:
        assert records.all(asked[0]) == [{"x": x} for x in expected[asked[0]]]


def test_all_records_of_a_key_after_the_keys_have_changed(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"k": ["a", "b", "a"], "x": [1, 2, 3]}, path, write_index=["k"])
    with tfr.open_random(path, key="k", keep="first") as records:
        body = path.read_bytes()
        assert [row["x"] for row in records.all("a")] == [1, 3]
    index = path.with_name("a.tfrecord.column_index").read_bytes()
    tfr.write_tfrecord({"k": ["a", "b", "b"], "x": [1, 2, 3]}, path)
    assert len(path.read_bytes()) == len(body)
    path.with_name("a.tfrecord.column_index").write_bytes(index)
    with pytest.warns(tfr.errors.StaleIndexWarning):
        found = [tfr.open_random(path, key="k", keep="first").all(key) for key in ("b", "a")]
    assert [[row["x"] for row in rows] for rows in found] == [[2, 3], [1]]


def test_a_record_is_among_the_records(tmp_path: Path) -> None:
    """Without a key, a record is compared by its values, also lists; other values are no records."""
    tfr.write_tfrecord({"id": ["a", "b"], "l": [[1, 2], [3]]}, tmp_path / "a.tfrecord")
    with tfr.open_random(tmp_path / "a.tfrecord") as records:
        assert records[1] in records
        assert {**records[1], "l": [4]} not in records
        assert {"id": "a"} not in records
        with pytest.raises(ValueError, match="only if open_random is given its column"):
            assert "a" in records


def test_records_with_other_columns_share_the_account(tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": ["a", "b"], "n": [1, 2]}, tmp_path / "a.tfrecord")
    with tfr.open_random(tmp_path / "a.tfrecord", columns=["n"], key="id") as records:
        assert records._with_keys._account is records._account
