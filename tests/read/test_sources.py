"""Every call takes every source: a path, a dataset with its options and its selection, a piece of one, a list of those.

Each call on each kind of source gives what it gives on the path of files that have the same rows.
"""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from border import FULL_NAMES, PUBLIC, WITHOUT, public
from rounds import COMPLETE
from source_calls import CALLS, KINDS, Run, copied, outcome
from tfrecord_io.base.options.calls_on_datasets import kept_by_dataset


def tried() -> Iterator[tuple[str, str]]:
    """Each call with each kind of source in the complete run; otherwise with one of those that select alike."""
    alike: dict[tuple[bool, bool, bool], list[str]] = {}
    for name, kind in KINDS.items():
        alike.setdefault((kind.rows, kind.columns, kind.piece), []).append(name)
    for number, call in enumerate(CALLS):
        for names in alike.values():
            yield from ((call, name) for name in (names if COMPLETE else [names[number % len(names)]]))


@pytest.mark.parametrize(("call", "name"), [*tried()])
def test_each_call_takes_each_source(
    call: str, name: str, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run, refuses), kind = CALLS[call], KINDS[name]
    monkeypatch.chdir(tmp_path)
    found = outcome(run, lambda: kind.make("a", "b"), files, tmp_path / "found")
    if refuses(kind):
        assert found[0] is ValueError, found
        reasons = ("whole files", "whole records", "offset= or limit=", "records were chosen")
        assert any(reason in found[1] for reason in reasons), found
        return

    def same() -> Any:
        if callable(kind.same):
            return kind.same("a", "b")
        tfr.write_tfrecord(kind.same, "same.tfrecord")
        return "same.tfrecord"

    expected = outcome(run, same, files, tmp_path / "expected")
    if isinstance(expected, tuple) and isinstance(expected[0], type):  # such as compact, of a list
        expected, found = expected[0], found[0]
    assert found == expected


# The calls and methods that CALLS does not have: which of it reads alike, or why none of it can.
ELSEWHERE = {
    "adopt": "it writes a manifest of files that have none, and reads no row",
    "browse": "it serves what open_random reads",
    "follow": "its datasets are those of dataset()",
    "open_elwc": "it reads records of another type",
    "read_earth_engine": "it reads records with a description of Earth Engine",
    "write_file_folder": "it writes a column of bytes: test_a_folder_of_files_is_written_of_a_piece",
    "write_image_folder": "as write_file_folder",
    **dict.fromkeys(("Dataset.count_rows", "Dataset.explain"), "count"),
    **dict.fromkeys(("Dataset.filter", "Dataset.select", "Dataset.limit", "Dataset.offset", "Dataset.take"), "KINDS"),
    **dict.fromkeys(("Dataset.to_batches", "Dataset.to_table", "Dataset.refresh", "Dataset.pieces"), "dataset"),
    "Dataset.to_arrays": "read_arrays",
    **dict.fromkeys(("Dataset.iter_arrays", "Dataset.to_torch", "Dataset.to_tf", "Dataset.to_keras"), "iter_arrays"),
    "Dataset.to_torch_map": "Dataset.to_grain",
    **dict.fromkeys(("Dataset.to_hf", "Dataset.to_dask", "Dataset.to_ray", "Dataset.to_spark"), "dataset, in pieces"),
    "Dataset.to_daft": "dataset, in pieces",
    "Dataset.to_polars": "scan_polars",
    "Dataset.to_duckdb": "register_duckdb",
    "Dataset.to_xarray": "xarray",
}


def test_each_call_that_takes_a_source_is_tried() -> None:
    public_calls = (public(name) for name in PUBLIC if FULL_NAMES[name] in (name, f"formats.{name}"))
    names = {call.__name__ for call in public_calls if callable(call) and kept_by_dataset(call)}
    methods = {
        f"Dataset.{name}" for name in dir(tfr.Dataset) if name[0] != "_" and callable(getattr(tfr.Dataset, name))
    }
    tried = {re.split(r"[, ]", label)[0] for label in CALLS} | ELSEWHERE.keys()
    lacking = sorted((names | methods) - tried)
    assert not lacking, f"add {', '.join(lacking)} to CALLS in tests/support/source_calls.py, or to ELSEWHERE why not"
    assert WITHOUT or not ELSEWHERE.keys() - names - methods


def in_folder(source: Any, out: Path) -> Any:
    tfr.formats.write_file_folder(source, out / "folder", file="file", filename="key")
    return {path.name: path.read_bytes() for path in (out / "folder").iterdir()}


def written(source: Any, out: Path) -> Any:
    with tfr.open_writer(out / "written.tfrecord") as writer:
        writer.write(source)
        writer.write(source)
    return tfr.read_table(out / "written.tfrecord")


def appended(source: Any, out: Path) -> Any:
    for _ in range(2):
        tfr.write_tfrecord(source, f"{out}/appended/", mode="append")
    return tfr.read_table(out / "appended")


def of_tfds(source: Any, out: Path) -> Any:
    tfr.formats.write_tfds(source, out / "named/1.0.0")
    return tfr.read_table(out / "named/1.0.0")


def joined(source: Any, out: Path) -> Any:
    return tfr.join(out / "keys.tfrecord", source, on="key").read_all()


AS_DATA: dict[str, Run] = {
    "write_tfrecord": copied(tfr.write_tfrecord),
    "write_tfrecord, appended": appended,
    "open_writer": written,
    "write_tfds": of_tfds,
    "write_elwc": lambda s, out: [
        tfr.formats.write_elwc(s, out / "lists", by="key").records,
        tfr.formats.open_elwc(out / "lists").read_all(),
    ],
    "join": joined,
}


@pytest.mark.parametrize("call", AS_DATA)
def test_a_dataset_and_a_piece_are_tables_to_calls_that_take_data(call: str, tmp_path: Path) -> None:
    rows = pa.table({"key": ["a", "b", "c", "d"], "file": [b"1", b"2", b"3", b"4"]})
    found = []
    sources = (lambda whole: whole.pieces(2)[1], lambda whole: whole.offset(1), lambda _: rows[1:])
    for number, make in enumerate(sources):
        (place := tmp_path / str(number)).mkdir()
        tfr.write_tfrecord(rows, place / "all.tfrecord")
        tfr.write_tfrecord(rows.select(["key"]), place / "keys.tfrecord")
        found.append(AS_DATA[call](make(tfr.dataset(place / "all.tfrecord")), place))
    assert found[0] == found[1] == found[2]


def test_a_folder_of_files_is_written_of_a_piece(tmp_path: Path) -> None:
    rows = pa.table({"key": ["a", "b", "c"], "file": [b"1", b"2", b"3"]})
    tfr.write_tfrecord(rows, tmp_path / "all.tfrecord")
    second = tfr.dataset(tmp_path / "all.tfrecord").pieces(2)[1]
    assert len(in_folder(second, tmp_path)) == second.count_rows() + 1


def test_a_piece_names_the_dataset_that_has_a_method(files: Path) -> None:
    piece = tfr.dataset(files / "a").pieces(2)[1]
    with pytest.raises(AttributeError, match=r"no attribute 'to_pandas': tfr\.dataset\(piece\)\.to_pandas has it"):
        piece.to_pandas()
    assert tfr.dataset(piece).to_pandas()["n"].tolist() == list(range(8, 16))
    with pytest.raises(AttributeError, match="no attribute 'colums'"):
        piece.colums  # noqa: B018
    assert pickle.loads(pickle.dumps(piece)).read() == piece.read()
    with pytest.raises(ValueError, match="adopt works on whole files, and not on a piece"):
        tfr.adopt(piece)


_ONCE = "more than once|only once|any number of times|several times"


_ONCE += "|takes (the )?path|a path or a list|expected (a table|datasets)"


def at_its_start(content: bytes) -> io.BytesIO:
    return io.BytesIO(content)


def at_its_end(content: bytes) -> io.BytesIO:
    """The buffer as a writer leaves it."""
    file = io.BytesIO()
    file.write(content)
    return file


def behind_other_bytes(content: bytes) -> io.BytesIO:
    file = io.BytesIO(b"other" + content)
    file.seek(5)
    return file


@pytest.mark.parametrize("make", [at_its_start, at_its_end, behind_other_bytes])
@pytest.mark.parametrize("call", CALLS)
def test_each_call_takes_a_file_object_or_says_that_it_needs_paths(
    call: str, make: Callable[[bytes], io.BytesIO], files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CALLS[call][0] if call != "verify" else lambda source, out: tfr.verify(source).records
    found = outcome(run, lambda: make(Path("all.tfrecord").read_bytes()), files, tmp_path / "found")
    if isinstance(found, tuple) and found[0] is TypeError:
        assert re.search(_ONCE, found[1]), found
        assert call not in ("read_table", "read_tfrecord", "read_arrays", "open_reader", "count", "merge", "salvage")
    else:
        assert found == outcome(run, lambda: "all.tfrecord", files, tmp_path / "expected")
