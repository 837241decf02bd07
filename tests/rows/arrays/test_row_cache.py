"""Decoded rows that are kept on disk: those of the files, shared by processes, bounded, and never stale."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from pictures import encoded
from rounds import rounds
from tfrecord_io.rows.arrays import row_cache
from tfrecord_io.rows.arrays.image_arrays import PixelReader

COUNT = 30
SIZE = (2, 3)


def written(folder: Path, offset: int = 0) -> tfr.Dataset:
    """Rows of one size: numbers, some of them missing, tensors, lists that are padded, and images."""
    pytest.importorskip("PIL.Image")
    numbers = np.arange(COUNT * 6, dtype="float32").reshape(COUNT, 2, 3) + offset
    rows = {
        "n": pa.array(range(COUNT)),
        "gap": pa.array([None if n % 4 == 1 else n / 2 for n in range(COUNT)], pa.float32()),
        "t": pa.array([[n] * (n % 4) for n in range(COUNT)], pa.list_(pa.int16())),
        "image": pa.array([encoded(np.full((*SIZE, 3), n + offset, np.uint8)) for n in range(COUNT)]),
    }
    schema = {"image": tfr.image(resize=SIZE), "t": tfr.list_("int16")}
    tensors = {"tensor": numbers, "half": numbers.astype(ml_dtypes.bfloat16)}
    tfr.write_tfrecord({**rows, **tensors}, folder / "a.tfrecord", write_index=True)
    return tfr.dataset(folder / "a.tfrecord", schema_overrides=schema)


def command_with(source: Any, folder: Path, code: str, *arguments: str) -> list[str]:
    """The command of a process that runs code with a source; arguments are in `sys.argv` from the second on."""
    (folder / "source").write_bytes(pickle.dumps(source))
    load = "import pickle, sys\nsource = pickle.load(open(sys.argv[1], 'rb'))\n"
    return [sys.executable, "-c", load + code, str(folder / "source"), *arguments]


KEYWORDS: dict[str, Any] = {"missing": "mask", "pad_to": 4}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The images that are decoded."""
    found, read = list[bytes](), PixelReader.read
    monkeypatch.setattr(PixelReader, "read", lambda self, item: found.append(item[1]) or read(self, item))
    return found


def assert_same(got: dict[str, Any], expected: dict[str, Any]) -> None:
    assert [*got] == [*expected]
    for name, array in expected.items():
        assert type(got[name]) is type(array)
        assert got[name].dtype == array.dtype
        np.testing.assert_array_equal(np.ma.getmaskarray(got[name]), np.ma.getmaskarray(array))
        np.testing.assert_array_equal(np.ma.filled(got[name], 0), np.ma.filled(array, 0))


@settings(max_examples=rounds(50, 5))
@given(
    takes=st.lists(st.lists(st.integers(-COUNT, COUNT - 1), max_size=9), max_size=9),
    most=st.sampled_from([None, 1, 1000, 10**9]),
)
def test_rows_are_those_of_the_files(tmp_path_factory: pytest.TempPathFactory, takes: Any, most: int | None) -> None:
    folder = tmp_path_factory.mktemp("cache")
    data = written(folder)
    cache: Any = folder / "kept" if most is None else (folder / "kept", most)
    cached, plain = data.to_grain(cache=cache, **KEYWORDS), data.to_grain(**KEYWORDS)
    for numbers in takes:
        assert_same(cached.arrays(numbers), plain.arrays(numbers))
    again = pickle.loads(pickle.dumps(cached))
    assert_same(again.arrays(range(COUNT)), plain.arrays(range(COUNT)))
    assert {name: np.asarray(value).tolist() for name, value in again[3].items()} == {
        name: np.asarray(value).tolist() for name, value in plain[3].items()
    }


def test_an_image_is_decoded_once(tmp_path: Path, decoded: list[bytes]) -> None:
    data = written(tmp_path)
    for _ in range(2):
        source = data.select(["image", "n"]).to_grain(cache=tmp_path / "kept")
        for begin in range(0, COUNT, 5):
            source.arrays(range(begin, begin + 5))
    assert len(decoded) == COUNT
    batches = data.select(["image", "n"]).to_grain(batch_size=7, seed=1, cache=tmp_path / "kept")
    assert sorted(n for number in range(len(batches)) for n in batches[number]["n"].tolist()) == [*range(COUNT)]
    assert len(decoded) == COUNT
    data.select(["image"]).to_grain(cache=tmp_path / "kept")[0]  # rows of other columns
    assert len(decoded) == COUNT + 1


def test_changed_files_are_decoded_again(tmp_path: Path, decoded: list[bytes]) -> None:
    path, kept = tmp_path / "b.tfrecord", tmp_path / "kept"
    sizes = set()
    for offset in (0, 1):
        tfr.write_tfrecord({"x": np.arange(9.0).reshape(3, 3) + offset, "n": range(3)}, path, float64="round")
        sizes.add(os.stat(path).st_size)
        assert tfr.dataset(path).select(["x"]).to_grain(cache=kept)[2]["x"].tolist() == [
            6 + offset,
            7 + offset,
            8 + offset,
        ]
    assert len(sizes) == 1
    data = written(tmp_path).select(["image", "n"])
    data.to_grain(cache=kept).arrays(range(COUNT))
    assert data.filter([("n", ">", 4)]).to_grain(cache=kept)[0]["image"][0, 0, 0] == 5
    assert len(decoded) == COUNT + 1


@pytest.mark.parametrize("replaces", [True, False])
def test_files_of_one_name_size_and_time_are_kept_apart(tmp_path: Path, replaces: bool) -> None:
    for folder, rows in (("train", [1, 2, 3]), ("test", [7, 8, 9])):
        path = tmp_path / folder / "a.tfrecord"
        path.parent.mkdir()
        tfr.write_tfrecord({"x": rows}, path)
        if replaces:
            path = path.replace(tmp_path / "a.tfrecord")
        os.utime(path, (1_600_000_000,) * 2)
        assert tfr.dataset(path).to_grain(cache=tmp_path / "kept").arrays(range(3))["x"].tolist() == rows
    assert len([*(tmp_path / "kept").iterdir()]) == 2 - replaces


def test_all_rows_in_a_folder_are_within_the_limit(tmp_path: Path) -> None:
    for version in range(3):
        for name in "ab":
            tfr.write_tfrecord({"x": [version] * 20, "y": range(20)}, tmp_path / name)
        data = tfr.dataset([tmp_path / "a", tmp_path / "b"])
        for columns in ("x", "y", "x"):
            found = data.select(columns).to_grain(cache=(tmp_path / "kept", 700)).arrays(range(40))
            assert found[columns].tolist() == ([version] * 40 if columns == "x" else [*range(20)] * 2)
        sizes = sorted(path.stat().st_size for path in (tmp_path / "kept").glob("*/*"))
        assert sum(sizes) <= 700
        assert sizes[-1] == 40 * 12


def test_rows_are_not_kept_under_a_later_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, version = tmp_path / "b.tfrecord", row_cache._version
    tfr.write_tfrecord({"x": [0, 1]}, path)

    def replaced_before(source: Any) -> str:
        tfr.write_tfrecord({"x": [2, 3]}, path)
        return version(source)

    monkeypatch.setattr(row_cache, "_version", replaced_before)
    with pytest.raises(tfr.errors.ReplacedError):
        tfr.dataset(path).to_grain(cache=tmp_path / "kept")


def test_a_process_reads_the_files_that_it_opens(tmp_path: Path) -> None:
    """A source that was pickled before a file was changed neither gives earlier rows nor keeps later ones for them."""
    path, kept = tmp_path / "b.tfrecord", tmp_path / "kept"

    def source(offset: int) -> Any:
        tfr.write_tfrecord({"x": np.arange(9.0).reshape(3, 3) + offset}, path, float64="round")
        return tfr.dataset(path).to_grain(cache=kept)

    before = source(0)
    assert before[0]["x"][0] == 0
    pickled = pickle.dumps(before)
    source(100)
    after = pickle.loads(pickled)
    assert [after[number]["x"][0] for number in range(3)] == [100, 103, 106]
    assert [before[number]["x"][0] for number in range(3)] == [0, 3, 6]


def test_rows_that_are_read_in_another_way_are_kept_apart(tmp_path: Path) -> None:
    path, kept = tmp_path / "c.tfrecord", tmp_path / "kept"
    tfr.write_tfrecord({"x": [1, None, 3]}, path)
    for default in (-1, -2, -1):
        filled = tfr.dataset(path, schema={"x": tfr.scalar("int64", default=default)})
        assert filled.to_grain(cache=kept).arrays(range(3))["x"].tolist() == [1, default, 3]
    assert len([*kept.iterdir()]) == 2
    for options in ({"threads": 1}, {"batch_size": 5, "progress": False}):
        same = tfr.dataset(path, schema={"x": tfr.scalar("int64", default=-1)}, **options)
        same.to_grain(cache=kept)
    assert len([*kept.iterdir()]) == 2
    tfr.dataset(path, schema={"x": tfr.scalar("int64", default=-1)}, check_crc=False).to_grain(cache=kept)
    assert len([*kept.iterdir()]) == 3


def test_a_limit_bounds_what_is_kept(tmp_path: Path, decoded: list[bytes]) -> None:
    data, size = written(tmp_path).select(["image"]), 2 * 3 * 3 + 4
    for _ in range(2):
        data.to_grain(cache=(tmp_path / "kept", 10 * size)).arrays(range(COUNT))
    assert len(decoded) == 2 * COUNT - 10
    (path,) = (tmp_path / "kept").glob("*/*")
    assert path.stat().st_size == 10 * size


@pytest.mark.parametrize("what", ["bit of a row", "all bytes", "a shorter file", "no file"])
def test_damage_is_decoded_again(tmp_path: Path, decoded: list[bytes], what: str) -> None:
    data = written(tmp_path).select(["image", "n"])
    expected = data.to_grain().arrays(range(COUNT))
    data.to_grain(cache=tmp_path / "kept").arrays(range(COUNT))
    (folder,) = (tmp_path / "kept").iterdir()
    path = folder / "rows"
    source, content = data.to_grain(cache=tmp_path / "kept"), bytearray(path.read_bytes())
    if what == "a shorter file":
        del content[len(content) // 2 :]
    elif what == "bit of a row":
        content[100] ^= 4
    else:
        content[:] = b"x" * len(content)
    path.write_bytes(content)
    if what == "no file":
        path.unlink()
    decoded.clear()
    if what == "no file":
        with pytest.warns(RuntimeWarning, match="no more rows are cached"):
            assert_same(source.arrays(range(COUNT)), expected)
    else:
        assert_same(source.arrays(range(COUNT)), expected)
    assert len(decoded) == {"bit of a row": 1, "a shorter file": COUNT // 2}.get(what, COUNT)
    assert_same(data.to_grain(cache=tmp_path / "kept").arrays(range(COUNT)), expected)


def test_a_full_disk_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = written(tmp_path).select(["image"]).to_grain(cache=tmp_path / "kept")

    def fail(path: Path, mode: str, **keywords: Any) -> Any:
        if mode == "r+b":
            raise OSError(errno.ENOSPC, "No space left on device")
        return open(path, mode, **keywords)

    with monkeypatch.context() as patch:
        patch.setattr(row_cache, "open", fail, raising=False)
        with pytest.warns(RuntimeWarning, match="No space left on device; no more rows are cached"):
            assert source[1]["image"][0, 0, 0] == 1
    assert source[2]["image"][0, 0, 0] == 2


def test_threads_and_processes_share_it(tmp_path: Path) -> None:
    data = written(tmp_path)
    expected = data.to_grain(**KEYWORDS).arrays(range(COUNT))
    source = data.to_grain(cache=tmp_path / "kept", **KEYWORDS)
    wrong = list[Any]()

    def read(seed: int) -> None:
        order = np.random.default_rng(seed).permutation(COUNT)
        for numbers in order.reshape(-1, 5):
            for name, array in source.arrays(numbers).items():
                if not np.array_equal(np.ma.filled(array, 0), np.ma.filled(expected[name][numbers], 0)):
                    wrong.append((name, numbers))

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    command = command_with(source, tmp_path, "print([source.arrays([n])['n'].tolist() for n in range(30)])")
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed == f"{[[n] for n in range(COUNT)]}\n"
    for thread in threads:
        thread.join()
    assert wrong == []


FILL = """
print("begun", flush=True)
sys.stdin.readline()
for number in eval(sys.argv[2]):
    assert source[number]["image"][0, 0, 0] == number, number
print(sum(source.arrays(range(30))["n"].tolist()))
"""


def test_processes_fill_it_at_the_same_time(tmp_path: Path, decoded: list[bytes]) -> None:
    source = written(tmp_path).select(["image", "n"]).to_grain(cache=tmp_path / "kept")
    command = command_with(source, tmp_path, FILL)
    orders = ["range(30)", "range(29, -1, -1)", "[*range(15, 30), *range(15)]"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, order], **pipes) for order in orders]
    assert [process.stdout.readline() for process in processes] == ["begun\n"] * 3
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert [process.communicate()[0] for process in processes] == [f"{sum(range(COUNT))}\n"] * 3
    assert source.arrays(range(COUNT))["image"][:, 0, 0, 0].tolist() == [*range(COUNT)]
    assert decoded == []


KILLED = """
import os, signal
from tfrecord_io.rows.arrays import row_cache
source.arrays(range(5))
class Killed:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *error): pass
    def seek(self, offset): self.file.seek(offset)
    def write(self, data):
        self.file.write(data[:int(sys.argv[2])])
        os.kill(os.getpid(), signal.SIGKILL)
opened = open
row_cache.open = lambda path, mode, **k: (Killed if mode == "r+b" else lambda f: f)(opened(path, mode, **k))
source.arrays(range(10))
"""


@pytest.mark.parametrize("kept", [0, 3, 4, 20, 21])
def test_a_process_is_killed_while_it_writes_a_row(tmp_path: Path, decoded: list[bytes], kept: int) -> None:
    """A row that was written in part is not read, whether bytes of it are there or not."""
    source = written(tmp_path).select(["image"]).to_grain(cache=tmp_path / "kept")
    killed = subprocess.run(command_with(source, tmp_path, KILLED, str(kept)), capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert source.arrays(range(COUNT))["image"][:, 0, 0, 0].tolist() == [*range(COUNT)]
    assert len(decoded) == COUNT - 5
    assert source.arrays(range(COUNT))["image"][:, 0, 0, 0].tolist() == [*range(COUNT)]
    assert len(decoded) == COUNT - 5


def test_windows_and_mixtures(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1, 2, 3], [4, 5]]}, tmp_path / "a.tfrecord", write_index=True)
    windows = tfr.windows(tmp_path / "a.tfrecord", {"x": range(-1, 1)})
    mixture = tfr.mix([windows, windows], seed=1)
    for data in (windows, mixture):
        expected = data.to_grain().arrays(range(4))
        for _ in range(2):
            assert_same(data.to_grain(cache=tmp_path / "kept").arrays(range(4)), expected)
    other = tfr.windows(tmp_path / "a.tfrecord", {"x": range(2)})
    assert_same(other.to_grain(cache=tmp_path / "kept").arrays(range(4)), other.to_grain().arrays(range(4)))


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"cache": 3}, TypeError, "expected a local directory"),
        ({"cache": ("x", 0)}, ValueError, "cache=0"),
        ({"cache": "x"}, tfr.errors.SchemaError, "'text': cache= keeps rows of one size"),
        ({"cache": "x", "batch_size": 2, "pack": {"t": 4}}, ValueError, "cache= keeps rows, and bucket_by="),
    ],
)
def test_caches_that_cannot_be(tmp_path: Path, keywords: Any, error: type[Exception], message: str) -> None:
    tfr.write_tfrecord(
        {"t": [[1], [2]], "text": ["a", "b"]}, tmp_path / "a", schema={"t": tfr.list_("int64"), "text": "string"}
    )
    data = tfr.dataset(tmp_path / "a").select(["t"] if "pack" in keywords else ["text"])
    if isinstance(keywords["cache"], str):
        keywords = {**keywords, "cache": str(tmp_path / "x")}
    with pytest.raises(error, match=message):
        data.to_grain(**keywords)


def test_arrays_of_one_row_are_aligned(tmp_path: Path) -> None:
    """As torch takes them: rows are stored in the file one after the other, whatever the sizes of their values."""
    tfr.write_tfrecord({"flag": [True, False, True], "x": np.arange(9.0).reshape(3, 3)}, tmp_path / "a.tfrecord")
    rows = tfr.dataset(tmp_path / "a.tfrecord").to_grain(cache=tmp_path / "kept")
    for _ in range(2):
        for array in rows.arrays([1]).values():
            assert array.flags.aligned
            assert all(stride % array.itemsize == 0 for stride in array.strides)
