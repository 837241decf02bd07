"""Records by number equal those of a sequential read, for any key, process and thread."""

from __future__ import annotations

import gc
import gzip
import io
import multiprocessing
import pickle
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from in_processes import sum_of
from limited import set_limits
from records import example, field, framed, int64s, written
from tfrecord_io.read import byte_ranges
from tfrecord_io.read.index import indexed_files
from tfrecord_io.testing.tensor_encoding_suite import NAMES, values_of

ROWS = 20
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "flag": pa.array([None if i % 7 == 3 else i % 2 == 0 for i in range(ROWS)]),
        "grade": pa.array(["abc"[i % 3] for i in range(ROWS)]).dictionary_encode(),
        "when": pa.array([i * 1000 for i in range(ROWS)], pa.timestamp("us")),
        "word": pa.array([None if i % 5 == 0 else f"word {i}" * i for i in range(ROWS)]),
        "blob": pa.array([bytes([i]) * (i * 50) for i in range(ROWS)]),
        "scores": pa.array([[i / 2] * (i % 4) for i in range(ROWS)], pa.list_(pa.float32())),
    }
)


@pytest.fixture(params=["one", "three", "indexed"], scope="module")
def paths(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The table in one file or in three, which no test changes."""
    folder = tmp_path_factory.mktemp(request.param)
    cuts = [0, ROWS] if request.param == "one" else [0, 3, 3, ROWS]
    found = []
    for at, (begin, end) in enumerate(pairwise(cuts)):
        found.append(folder / f"{at}.tfrecord")
        tfr.write_tfrecord(TABLE.slice(begin, end - begin), found[-1], write_index=request.param == "indexed")
    return found


numbers = st.integers(-ROWS, ROWS - 1)


@given(st.lists(numbers, max_size=30))
def test_records_by_number_equal_the_rows_of_the_table(engine: str, paths: list[Path], asked: list[int]) -> None:
    whole = tfr.read_table(paths)
    with tfr.open_random(paths) as records:
        expected = whole.take(pa.array([number % ROWS for number in asked], pa.int64()))
        for form in (asked, np.array(asked, np.int64), tuple(asked), np.array(asked, np.int8)):
            got = records[form]
            got.validate(full=True)
            assert got.schema.equals(whole.schema)
            assert got.to_pylist() == expected.to_pylist()


@given(st.permutations(["id", "word", "part", "path"]), st.integers(1, 4))
def test_columns_have_the_order_in_which_they_are_named(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], count: int
) -> None:
    path = tmp_path_factory.mktemp("ordered") / "part=1" / "a.tfrecord"
    path.parent.mkdir()
    tfr.write_tfrecord(TABLE, path)
    dataset, columns = tfr.dataset(path.parent.parent, include_file_paths="path"), order[:count]
    expected = tfr.read_table(dataset, columns=columns)
    for source, named in ((dataset, columns), (dataset.select(columns), None)):
        with tfr.open_random(source, columns=named) as records:
            assert records.schema.names == list(records[0]) == columns
            assert records[:].equals(expected)


@pytest.mark.parametrize("embed", [True, False])
@pytest.mark.parametrize("columns", [None, ["mark", "values"], ["n"]], ids=str)
def test_pieces_have_the_types_of_their_dataset(tmp_path: Path, embed: bool, columns: list[str] | None) -> None:
    rows = {"n": range(6), "values": [[n] * (1 + n // 4) for n in range(6)], "mark": ["01"] * 4 + ["x"] * 2}
    tfr.write_tfrecord(rows, f"{tmp_path}/d/", partition_by="mark", embed_schema=embed)
    (tmp_path / "d" / "_MANIFEST.json").unlink()
    for count in (2, 5):
        for piece in tfr.dataset(tmp_path / "d").pieces(count):
            expected = tfr.read_table(piece, columns=columns)
            with tfr.open_random(piece, columns=columns) as records, tfr.open_random(piece, key="n") as by_key:
                assert records[:].equals(expected)
                assert list(records[0]) == expected.column_names
                assert by_key.lookup(piece.read()["n"]).equals(piece.read())


def test_pieces_of_a_file_are_one_sequence(tmp_path: Path) -> None:
    names = ["a.tfrecord", "b.tfrecord"]
    tfr.write_tfrecord({"n": np.arange(3000, dtype="i4")}, tmp_path / names[0])
    tfr.write_tfrecord({"n": np.arange(3000), "text": ["x"] * 3000}, tmp_path / names[1])
    pieces = tfr.dataset([tmp_path / name for name in names]).pieces(5)
    for chosen in ([pieces[1]], pieces[::-1], pieces[1::2]):
        expected = pa.concat_tables([piece.read() for piece in chosen])
        assert tfr.read_table(chosen).equals(expected)
        with tfr.open_random(chosen) as records:
            assert records[:].equals(expected)
            assert records[-1] == expected[-1:].to_pylist()[0]


def test_pieces_of_datasets_with_other_schemas_say_what_to_open(tmp_path: Path) -> None:
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    tfr.write_tfrecord({"n": np.arange(3000, dtype="i4")}, paths[0])
    tfr.write_tfrecord({"n": np.arange(3000), "text": ["x"] * 3000}, paths[1])
    first, second = (tfr.dataset(path).pieces(2)[1] for path in paths)
    for pieces in ([first, second], [first, paths[1]]):
        assert tfr.read_table(pieces).num_rows > 1500
        with pytest.raises(ValueError, match=r"beside other sources .*: open it by itself, or pass the whole dataset"):
            tfr.open_random(pieces)
    with tfr.open_random(list(map(tfr.dataset, paths))) as records:
        assert records[[0, 3000]].to_pydict() == {"n": [0, 0], "text": [None, "x"]}


def test_the_records_of_a_piece_are_searched_once(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[object] = []
    find = byte_ranges.find_boundaries
    monkeypatch.setattr(byte_ranges, "find_boundaries", lambda *a, **how: searched.append(a[2]) or find(*a, **how))
    piece = tfr.dataset(paths).pieces(4)[1]
    with tfr.open_random(piece) as records:
        assert len(searched) == 1
        assert records[:].equals(piece.read())


@given(st.slices(ROWS))
def test_slices_equal_those_of_a_list(paths: list[Path], cut: slice) -> None:
    whole = tfr.read_table(paths)
    with tfr.open_random(paths) as records:
        assert records[cut].to_pylist() == whole.to_pylist()[cut]


def test_one_record_is_a_dict_of_values_and_arrays(engine: str, paths: list[Path]) -> None:
    with tfr.open_random(paths) as records:
        assert len(records) == ROWS
        one = records[6]
        assert {name: value for name, value in one.items() if name != "scores"} == {
            name: value for name, value in TABLE.slice(6, 1).to_pylist()[0].items() if name != "scores"
        }
        np.testing.assert_array_equal(one["scores"], np.array([3, 3], np.float32), strict=True)
        one["scores"][0] = 5  # the caller's own
        assert records[np.int64(-1)]["id"] == ROWS - 1
        assert records[3]["flag"] is None
        assert [record["id"] for record in records] == list(range(ROWS))


def test_types_are_those_of_the_given_schema(paths: list[Path]) -> None:
    with tfr.open_random(paths, schema={"id": "int8", "scores": pa.list_(pa.float16())}) as records:
        assert records.schema_source == "schema="
        assert records[:2].schema.types == [pa.int8(), pa.list_(pa.float16())]
        assert list(records[0]) == ["id", "scores"]
    with tfr.open_random(paths, columns=["w*", "!word"]) as records:
        assert records.schema.names == ["when"]
    with tfr.open_random(tfr.dataset(paths, include_file_paths="path"), schema="infer") as records:
        assert records.schema_source == "inferred"
        assert records[[ROWS - 1, 0]]["path"].to_pylist() == [str(paths[-1]), str(paths[0])]
        assert records[0]["path"] == str(paths[0])


def test_records_as_bytes(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "lines.tfrecord", [b"one", b"", b"three"])
    with tfr.open_random(tfr.dataset(path, record_type="bytes")) as records:
        assert records[[2, 1]].to_pydict() == {"record": [b"three", b""]}
        assert records[0] == {"record": b"one"}


def test_one_record_equals_decode_example(data: Path) -> None:
    path = data / "ragged.tfrecord"
    with tfr.open_random(tfr.dataset(path, stable_types=True)) as records, tfr.RecordReader(path) as reader:
        for number, payload in enumerate(reader):
            expected = tfr.decode_example(payload)
            got = records[number]
            for name, values in got.items():
                wanted = expected.get(name)
                assert (values is None) == (wanted is None)
                if values is not None:
                    np.testing.assert_array_equal(values, wanted, strict=True)


def test_sequences(data: Path) -> None:
    whole = tfr.read_table(data / "sequence.tfrecord")
    with tfr.open_random(data / "sequence.tfrecord") as records:
        assert records[[3, 0, 3]].to_pylist() == whole.take([3, 0, 3]).to_pylist()


def test_tensors_have_their_shape(engine: str, tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    path = tmp_path / "images.tfrecord"
    tfr.write_tfrecord({"image": [image.tobytes() for image in images]}, path)
    schema = {"image": tfr.tensor("uint8", (3, 4))}
    with tfr.open_random(path, schema=schema) as records:
        one = records[1]["image"]
        np.testing.assert_array_equal(one, images[1], strict=True)
        one[0, 0] = 99  # the caller's own
        assert records[[1, 1]].schema == tfr.read_table(path, schema=schema).schema


def test_no_records_and_no_columns(engine: str, tmp_path: Path, paths: list[Path]) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    with tfr.open_random(tmp_path / "empty.tfrecord") as records:
        assert len(records) == 0
        assert records[:].num_rows == 0
        assert list(records) == []
    with tfr.open_random(paths, columns=[]) as records:
        assert records[5] == {}
        assert records[2:5].num_rows == 3


@pytest.mark.parametrize(
    "key", [ROWS, -ROWS - 1, [0, ROWS], np.array([2**64 - 1], np.uint64), 2**70, [0, 2**70], [-(2**70)]], ids=str
)
def test_a_number_out_of_range_is_an_index_error(paths: list[Path], key: Any) -> None:
    with (
        tfr.open_random(paths) as records,
        pytest.raises(IndexError, match=f"is out of range: the files have {ROWS} records"),
    ):
        records[key]


@pytest.mark.parametrize("key", [True, np.False_, [True, False], 1.0, [1.5], "1", b"1", None, [[1, 2]], ["a"]], ids=str)
def test_other_keys_are_type_errors(paths: list[Path], key: Any) -> None:
    with tfr.open_random(paths) as records, pytest.raises(TypeError):
        records[key]


def test_files_without_record_offsets_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord.gz").write_bytes(gzip.compress(framed(example(x=int64s(1)))))
    with pytest.raises(ValueError, match=r"compressed \(gzip\): random access needs a plain file.*decompress it"):
        tfr.open_random(tmp_path / "a.tfrecord.gz")
    with pytest.raises(TypeError, match="not file objects"):
        tfr.open_random(io.BytesIO(framed(b"")))
    with pytest.raises(TypeError, match="'limit'"):
        tfr.open_random(tmp_path / "a.tfrecord.gz", limit=5)


# ---- bad data


@pytest.mark.parametrize("index", [False, True])
def test_a_damaged_record_is_named_and_the_others_are_read(engine: str, tmp_path: Path, index: bool) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(10)}, path, embed_schema=False, write_index=index)
    content = bytearray(path.read_bytes())
    content[7 * 30 + 14] ^= 1
    with path.open("r+b") as file:
        file.write(content)
    if index:
        (tmp_path / "a.tfrecord.index").touch()
    with tfr.open_random(tfr.dataset(path, sample=3)) as records:
        assert records[[9, 6]]["x"].to_pylist() == [9, 6]
        for key in (7, [2, 7, 1], slice(None, None, -1)):
            with pytest.raises(
                tfr.errors.CorruptRecordError, match=r"a\.tfrecord: record 7 at byte 210: payload CRC"
            ) as caught:
                records[key]
            assert (caught.value.record, caught.value.offset, caught.value.records_intact) == (7, 210, None)


def test_values_that_contradict_the_sample_are_named(engine: str, tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.tfrecord", [example(x=int64s(1)), example(x=int64s(1, 2)), example(x=int64s(1), y=int64s(2))]
    )
    with tfr.open_random(tfr.dataset(path, sample=1)) as records:
        for number in (1, 2):
            with pytest.raises(tfr.TFRecordError, match=f"record {number} at byte "):
                records[[0, number]]
    with tfr.open_random(tfr.dataset(path, sample=1, on_new="ignore")) as records:
        assert records[2] == {"x": 1}


def test_values_that_do_not_fit_the_schema_are_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(1)), example(x=int64s(300))])
    with tfr.open_random(path, schema={"x": "int8"}) as records:
        with pytest.raises(tfr.TFRecordError, match=r"record 1 at byte \d+: feature 'x'") as caught:
            records[[0, 1]]
        assert caught.value.feature == "x"


@pytest.mark.fault(70)
def test_other_messages_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [field(7, b"frame")] * 3)
    for schema in (None, {"x": "int64"}):
        with pytest.raises(tfr.errors.DecodeError, match='record_type="bytes"'):
            tfr.open_random(path, schema=schema)


def test_a_later_file_may_have_more_columns(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": pa.array([1, 2], pa.int8())}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"x": pa.array([3], pa.int8()), "y": ["new"]}, tmp_path / "b.tfrecord")
    with tfr.open_random(tmp_path) as records:
        assert records.schema.equals(tfr.read_table(tmp_path).schema)
        assert records[::-1].to_pydict() == {"x": [3, 2, 1], "y": ["new", None, None]}


def test_files_that_contradict_each_other_are_refused_and_closed(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": pa.array([1, 2], pa.int8())}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"x": ["3"]}, tmp_path / "b.tfrecord")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        with pytest.raises(tfr.errors.SchemaError, match=r"a\.tfrecord.*b\.tfrecord"):
            tfr.open_random(tmp_path)
        gc.collect()
    assert not [warning for warning in caught if str(tmp_path) in str(warning.message)]


@pytest.mark.fault(56)
def test_an_index_of_another_file_is_skipped_or_an_error_if_it_was_named(tmp_path: Path) -> None:
    path, index = tmp_path / "a.tfrecord", tmp_path / "a.tfrecord.index"
    tfr.write_tfrecord({"x": range(10)}, path, write_index=True)
    content = index.read_bytes()
    tfr.write_tfrecord({"x": range(11)}, path)
    index.write_bytes(content)
    message = r"a\.tfrecord\.index: the index does not match"
    with pytest.warns(tfr.errors.StaleIndexWarning, match=rf"{message}.*the index is not used") as caught:
        records = tfr.open_random(path)
    with records:
        assert len(records) == 11
        assert records[10] == {"x": 10}
    assert {warning.filename for warning in caught if warning.category is tfr.errors.StaleIndexWarning} == {__file__}
    with pytest.raises(tfr.errors.CorruptRecordError, match=message):
        tfr.open_random(path, index=index)


@pytest.mark.fault(56)
@pytest.mark.parametrize("key", [1, [0, 1], slice(1, 3)], ids=str)
def test_wrong_offsets_in_an_index_are_detected_when_used(
    engine: str, tmp_path: Path, key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a large file may be, of which not all are compared."""
    monkeypatch.setattr("tfrecord_io.read.index.find_index.SMALL_BYTES", 0)
    ends = "tfrecord_io.read.index.fingerprint.some_records"
    monkeypatch.setattr(ends, lambda count, most: np.array([0, count - 1]))
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(4)}, path, embed_schema=False)
    (tmp_path / "a.tfrecord.index").write_text("0 30\n30 60\n90 30\n")
    with tfr.open_random(path) as records, pytest.raises(tfr.errors.CorruptRecordError):
        records[key]


# ---- processes and threads


@pytest.mark.parametrize("kept_open", [128, 0])
def test_unpickling_opens_the_files_again(paths: list[Path], monkeypatch: pytest.MonkeyPatch, kept_open: int) -> None:
    monkeypatch.setattr(indexed_files, "_OPEN_FILES", kept_open)
    with tfr.open_random(paths, columns=["id"]) as records:
        copy = pickle.loads(pickle.dumps(records))
    assert copy[[5, 1]].to_pydict() == {"id": [5, 1]}
    assert len(copy) == ROWS
    copy.close()
    with pytest.raises(ValueError, match="closed"):
        copy[0]
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(copy)


@pytest.mark.matrix
@pytest.mark.fault(65)
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_can_read(paths: list[Path], method: str) -> None:
    processes = {"fork": 2, "spawn": 1}  # a spawned one imports all modules again
    with tfr.open_random(paths) as records, multiprocessing.get_context(method).Pool(processes[method]) as pool:
        asked = [list(range(at, ROWS, 2)) for at in range(2)]
        assert pool.starmap(sum_of, [(records, each) for each in asked]) == [sum(each) for each in asked]


def _in_fork(records: Any, answers: Any) -> None:
    answers.put(sum_of(records, list(range(ROWS)) * 20))


@pytest.mark.fault(65)
def test_a_fork_uses_the_open_files(paths: list[Path]) -> None:
    """Its reads at an offset do not move the position of the parent."""
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    with tfr.open_random(paths) as records:
        children = [context.Process(target=_in_fork, args=(records, answers)) for _ in range(2)]
        for child in children:
            child.start()
        assert sum_of(records, list(range(ROWS)) * 20) == 190 * 20
        assert [answers.get() for _ in children] == [190 * 20] * 2
        for child in children:
            child.join()


@pytest.mark.fault(65)
def test_threads_can_share_one_reader(engine: str, paths: list[Path]) -> None:
    with tfr.open_random(paths) as records, ThreadPoolExecutor(8) as pool:
        asked = [[(17 * n) % ROWS, n % ROWS] for n in range(200)]
        assert [table["id"].to_pylist() for table in pool.map(records.__getitem__, asked)] == asked


@pytest.mark.fault(23)
def test_a_file_that_changed_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(10)}, path)
    with tfr.open_random(path) as records:
        pickled = pickle.dumps(records)
        with path.open("r+b") as file:
            file.truncate(100)
        with pytest.raises(OSError, match="it was truncated since it was opened"):
            records[5]
    with pytest.raises(tfr.errors.ReplacedError, match="read it again"):
        pickle.loads(pickled)


def test_large_requests_are_read_in_parts(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, batch_bytes=500)
    with tfr.open_random(paths) as records:
        assert records[::-1].to_pylist() == TABLE.to_pylist()[::-1]


@pytest.mark.parametrize("shapes", [[(2, 2)] * 3, [(2, 2), (1, 3), (0, 2)]], ids=["fixed", "varying"])
def test_tensors_are_the_arrays_that_were_written(tmp_path: Path, shapes: list[tuple[int, ...]]) -> None:
    cells = {name: [values_of(name, shape, at) for at, shape in enumerate(shapes)] for name in NAMES}
    path = tmp_path / "x.tfrecord"
    tfr.write_tfrecord({name: [*arrays, None] for name, arrays in cells.items()}, path)
    with tfr.open_random(path) as records:
        for at in range(3):
            for name, value in records[at].items():
                found, expected = ((cell.dtype, cell.shape, cell.tobytes()) for cell in (value, cells[name][at]))
                assert found == expected
                assert value.flags.writeable
                assert value.base is None
        assert records[3] == dict.fromkeys(NAMES)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_no_more_files_stay_open_than_the_system_allows(tmp_path: Path) -> None:
    tfr.write_tfrecord({"k": range(100), "x": range(100)}, tmp_path / "d", partition_by="k")
    code = "import resource, sys; import tfrecord_io as tfr; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64));"
    code += "records = tfr.open_random(sys.argv[1]); print(records[[99, 1, 50]]['x'].to_pylist(), records[98]['x'])"
    run = subprocess.run([sys.executable, "-c", code, tmp_path / "d"], capture_output=True, text=True)
    assert run.stdout.strip() == "[99, 1, 50] 98", run.stderr
