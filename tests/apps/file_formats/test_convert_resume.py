"""``convert(resume=True)``: each source file becomes a shard, and a later call goes on where one was stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from rounds import rounds
from servers import Bucket
from suites.resumed_datasets import contents
from tfrecord_io.bytes.format.known_formats import FORMATS
from tfrecord_io.store import clean
from tfrecord_io.store.read.source import Source
from transfers import convert_flat

TARGETS = [row for row in FORMATS.own if row.plan and row.is_target]
SUFFIXES = {"TFRecord": ".tfrecord", **{row.title: row.suffixes[0] for row in TARGETS}}


class Stopped(Exception):
    pass


def stop_after(calls: int) -> Callable[[tfr.typing.Progress], None]:
    """A `progress` that ends the call when it is called once more."""
    left = iter(range(calls))

    def stop(progress: tfr.typing.Progress) -> None:
        if next(left, None) is None:
            raise Stopped

    return stop


def source_files(folder: Path, suffix: str, numbers: range = range(4)) -> list[str]:
    """A file for each number, whose rows have it; number 2 has no rows, where the format can say so."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        rows = 0 if number == 2 and suffix == ".tfrecord" else 50
        records = folder / f"{number}.records"
        tfr.write_tfrecord({"txt": [f"{number} {i}" for i in range(rows)]}, f"{records}@1")
        if suffix == ".tfrecord":
            records.with_name(f"{records.name}-00000-of-00001").rename(folder / f"{number}{suffix}")
        else:
            tfr.convert(f"{records}@1", folder / f"{number}{suffix}")
        for name in folder.glob("*records*"):
            name.unlink()
    return [str(folder / f"{number}{suffix}") for number in numbers]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened."""
    names: list[str] = []
    open_source = Source.open

    def noted(self: Source) -> Any:
        names.append(os.path.basename(self.path))
        return open_source(self)

    monkeypatch.setattr(Source, "open", noted)
    return names


@pytest.mark.parametrize("format", SUFFIXES)
def test_a_stopped_conversion_goes_on(
    tmp_path: Path, format: str, written: list[int], opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    suffix = SUFFIXES[format]
    if suffix == ".tar":
        monkeypatch.setattr("tfrecord_io.plugins.vision.webdataset._SAMPLE_ROWS", 10)
    sources = source_files(tmp_path / "in", suffix)
    whole, target = tmp_path / "whole", tmp_path / "out"
    report = tfr.convert(sources, whole / "x@*", resume=True)
    done = []
    for calls in count():
        written.clear()
        opened.clear()
        try:
            resumed = tfr.convert(sources, target / "x@*", resume=True, progress=stop_after(2 + 2 * calls))
        except Stopped:
            assert not list(target.glob("x-*"))
            assert calls < 20
        else:
            break
        finally:
            again = {os.path.basename(sources[task]) for task in done[1:]}
            once = format == "TFRecord"  # for the schema in the first record
            assert all(opened.count(name) <= once for name in again)
            assert not set(written) & set(done)
            done = sorted({*done, *written[:-1]})
    assert calls >= 1
    assert contents(target) == contents(whole)
    assert (resumed.records, resumed.bytes, resumed.columns) == (report.records, report.bytes, report.columns)
    assert tfr.verify(target / "x@*").ok
    rows = [f"{number} {i}" for number in range(4) for i in range(50) if number != 2 or report.records == 200]
    assert tfr.read_table(target / "x@*")["txt"].to_pylist() == rows


def test_a_conversion_without_a_stop_is_that_of_all_files(tmp_path: Path) -> None:
    sources = source_files(tmp_path / "in", ".csv")
    tfr.convert(sources, tmp_path / "out" / "x", resume=True)
    tfr.convert(sources, tmp_path / "all.tfrecord")
    assert tfr.read_table(tmp_path / "out" / "x@*").equals(tfr.read_table(tmp_path / "all.tfrecord"))
    assert [file.records for file in tfr.verify(tmp_path / "out" / "x@*").files] == [50] * 4
    manifest = json.loads((tmp_path / "out" / "_MANIFEST-x.json").read_bytes())
    assert [file["source"]["path"] for file in manifest["files"]] == sources


def stopped(sources: Any, target: Any, calls: int = 3, **keywords: Any) -> None:
    with pytest.raises(Stopped):
        convert_flat(sources, target, resume=True, progress=stop_after(calls), **keywords)


@settings(max_examples=rounds(40))
@given(st.data())
def test_what_changed_meanwhile_is_converted_again(tmp_path_factory: Any, data: st.DataObject) -> None:
    """Files that are changed, removed, added or in another order: the result is that of the files as they are now."""
    tmp_path = tmp_path_factory.mktemp("changed")
    sources = source_files(tmp_path / "in", ".jsonl", range(3))
    tfr.convert(sources[0], tmp_path / "out" / "y@*", resume=True)  # another dataset
    with pytest.raises(Stopped):
        tfr.convert(sources, tmp_path / "out" / "x@*", resume=True, progress=stop_after(data.draw(st.integers(0, 2))))
    for source in data.draw(st.lists(st.sampled_from(sources), max_size=2)):
        Path(source).write_text(json.dumps({"txt": "changed"}) + "\n")
    if data.draw(st.booleans()):
        for staged in (tmp_path / "out").glob("_*.staged"):
            damage(staged)
    again = data.draw(st.lists(st.sampled_from(sources), min_size=1, max_size=4))  # some of them twice
    tfr.convert(again, tmp_path / "out" / "x@*", resume=True)
    tfr.convert(again, tmp_path / "whole" / "x@*", resume=True)
    for path in (tmp_path / "out").glob("*y*"):
        path.unlink()
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("harm", [damage, Path.unlink])
@pytest.mark.parametrize("kind", ["_*.staged", "_*-?????.json"])
def test_a_part_that_is_damaged_or_missing_is_converted_again(
    tmp_path: Path, written: list[int], kind: str, harm: Callable[[Path], None]
) -> None:
    sources = source_files(tmp_path / "in", ".jsonl", range(3))
    target = tmp_path / "out" / "x@*"
    stopped(sources, target, 2)
    assert written == [0, 1, 2]
    (first, _second) = sorted((tmp_path / "out").glob(kind))
    harm(first)
    written.clear()
    tfr.convert(sources, target, resume=True)
    assert len(written) == 2
    assert tfr.verify(target).ok
    assert tfr.read_table(target).num_rows == 150


def test_a_schema_that_another_first_file_changes_concerns_all_files(tmp_path: Path, written: list[int]) -> None:
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("a\n1\n2\n")
    stopped(str(tmp_path / "*.csv"), tmp_path / "out/", 2)
    (tmp_path / "0.csv").write_text("a\n0.5\n2\n")
    written.clear()
    tfr.convert(str(tmp_path / "*.csv"), tmp_path / "out/", resume=True)
    assert written == [0, 1, 2]
    assert tfr.read_table(tmp_path / "out/")["a"].to_pylist() == [0.5, 2, 1, 2, 1, 2]


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"columns": ["txt"]}, r"columns is \['txt'\], but it was not given when it was begun; pass the same keywords"),
        ({"float64": "raw"}, "float64 is 'raw', but it was 'error' when"),
        ({"compression": "gzip"}, "compression is 'gzip', but it was None when"),
        ({"schema": {"txt": "string"}}, "schema is"),
        ({"filters": [("txt", ">", "1")]}, "filters is"),
    ],
)
def test_other_keywords_are_refused_and_nothing_is_lost(
    tmp_path: Path, written: list[int], keywords: dict[str, Any], message: str
) -> None:
    sources = source_files(tmp_path / "in", ".jsonl")
    target = tmp_path / "out" / "x@*"
    stopped(sources, target, 3, float64="error")
    before = sorted(os.listdir(tmp_path / "out"))
    with pytest.raises(ValueError, match=f"cannot be resumed: {message}"):
        convert_flat(sources, target, resume=True, **{"float64": "error", **keywords})
    assert sorted(os.listdir(tmp_path / "out")) == before
    written.clear()
    tfr.convert(
        sources, target, resume=True, float64="error", target_options={"threads": 1}, mode="error"
    )  # without effect
    assert written == [3]


@pytest.mark.parametrize(
    ("target", "keywords", "error", "message"),
    [
        ("x@4", {}, ValueError, r"each source file becomes one shard; write '.*x@\*'"),
        ("x@*", {"shards": 2}, TypeError, "shards= cannot be used with resume=True"),
        ("x@*", {"max_shard_bytes": 2}, TypeError, r"max_shard_bytes= cannot be used"),
        ("x@*", {"limit": 2}, TypeError, "limit= cannot be used with resume=True: it counts the rows of all"),
        ("x@*", {"on_error": "stop"}, ValueError, "on_error='stop' cannot be used"),
        ("x.parquet", {}, ValueError, "resume=True converts TFRecord, CSV, .*Parquet"),
        ("x.csv@*", {}, ValueError, "files cannot be written"),
    ],
)
def test_what_does_not_go_with_it(
    tmp_path: Path, target: str, keywords: dict[str, Any], error: type[Exception], message: str
) -> None:
    sources = source_files(tmp_path / "in", ".tfrecord", range(2))
    with pytest.raises(error, match=message):
        convert_flat(sources, tmp_path / "out" / target, resume=True, **keywords)
    assert not (tmp_path / "out").exists()


def test_sources_that_are_not_files_of_rows_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(ValueError, match="resume=True converts TFRecord"):
        tfr.convert(tmp_path / "x.npy", tmp_path / "out/", resume=True)
    fsspec.filesystem("memory").pipe("/without-times.csv", b"a\n1\n")
    with pytest.raises(ValueError, match="resume=True needs files whose changes are seen"):
        tfr.convert("memory://without-times.csv", tmp_path / "out/", resume=True)
    assert not (tmp_path / "out").exists()


def test_an_existing_dataset_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    sources = source_files(tmp_path / "in", ".jsonl")
    target = tmp_path / "out" / "x@*"
    tfr.convert(sources[0], target, resume=True)
    with pytest.raises(FileExistsError):
        tfr.convert(sources, target, resume=True)
    stopped(sources, target, 2, mode="overwrite")
    assert tfr.read_table(target).num_rows == 50
    tfr.convert(sources, target, resume=True, mode="overwrite")
    assert tfr.read_table(target).num_rows == 200
    assert len(os.listdir(tmp_path / "out")) == 5


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    sources = source_files(tmp_path / "in", ".jsonl")

    def change(progress: tfr.typing.Progress) -> None:
        os.utime(sources[1])

    with pytest.raises(OSError, match="changed while it was read") as caught:
        tfr.convert(sources, tmp_path / "out" / "x@*", resume=True, progress=change)
    assert caught.value.filename == sources[1]
    tfr.convert(sources, tmp_path / "out" / "x@*", resume=True)
    assert tfr.read_table(tmp_path / "out" / "x@*").num_rows == 200


def test_only_one_process_at_a_time(tmp_path: Path) -> None:
    sources = source_files(tmp_path / "in", ".jsonl")
    errors = []

    def also(progress: tfr.typing.Progress) -> None:
        with pytest.raises(OSError, match="another process converts to this dataset") as caught:
            tfr.convert(sources, tmp_path / "out" / "x@*", resume=True)
        errors.append(caught.value.filename)

    tfr.convert(sources, tmp_path / "out" / "x@*", resume=True, progress=also)
    assert set(errors) == {str(tmp_path / "out" / "_RESUME-x.json")}
    assert tfr.read_table(tmp_path / "out" / "x@*").num_rows == 200


def test_names_that_are_not_utf8(tmp_path: Path, written: list[int]) -> None:
    sources = [os.fsdecode(os.fsencode(tmp_path / f"{number}-") + b"\xff.csv") for number in range(3)]
    for source in sources:
        Path(source).write_text("a\n1\n")
    stopped(sources, tmp_path / "out" / "x@*", 2)
    tfr.convert(sources, tmp_path / "out" / "x@*", resume=True)
    assert written == [0, 1, 2, 2]
    manifest = json.loads((tmp_path / "out" / "_MANIFEST-x.json").read_bytes())
    assert [file["source"]["path"] for file in manifest["files"]] == sources
    assert tfr.read_table(tmp_path / "out" / "x@*").num_rows == 3


def test_a_damaged_journal_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    sources = source_files(tmp_path / "in", ".jsonl")
    target = tmp_path / "out" / "x@*"
    stopped(sources, target)
    journal = tmp_path / "out" / "_RESUME-x.json"
    for content in (b"", b"{", b"[]", b'{"format": "tfrecord_io resume", "version": 2, "id": "0123456789abcdef"}'):
        journal.write_bytes(content)
        with pytest.raises(tfr.errors.CorruptRecordError, match="delete it to convert all files again") as caught:
            tfr.convert(sources, target, resume=True)
        assert caught.value.path == str(journal)
    journal.unlink()
    tfr.convert(sources, target, resume=True)
    assert tfr.read_table(target).num_rows == 200


def test_clean_finds_what_was_not_resumed(tmp_path: Path) -> None:
    sources = source_files(tmp_path / "in", ".jsonl")
    stopped(sources, tmp_path / "out" / "x@*", 2)
    names = set(os.listdir(tmp_path / "out"))
    assert clean(tmp_path) == []  # they are young
    found = clean(tmp_path, older_than=timedelta(0), remove=True)
    assert {os.path.basename(leftover.path) for leftover in found} == names
    tfr.convert(sources, tmp_path / "out" / "x@*", resume=True)
    assert clean(tmp_path, older_than=timedelta(0)) == []


def test_rounding_is_that_of_all_parts(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("a\n0.1\n0.5\n")
    with pytest.warns(tfr.errors.PrecisionWarning):
        whole = tfr.convert(str(tmp_path / "*.csv"), tmp_path / "whole/", resume=True)
    stopped(str(tmp_path / "*.csv"), tmp_path / "out/", 2)
    with pytest.warns(tfr.errors.PrecisionWarning, match="3 values"):
        resumed = tfr.convert(str(tmp_path / "*.csv"), tmp_path / "out/", resume=True)
    assert resumed.rounded == whole.rounded == {"a": 3}


def test_filters_and_embedded_files_apply_to_each_file(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"content {number}")
        (tmp_path / f"{number}.csv").write_text(f"a,file\n1,{number}.txt\n2,{number}.txt\n")
    keywords: dict[str, Any] = {"filters": [("a", "=", 2)], "embed": {"content": "file"}, "embed_folder": tmp_path}
    stopped(str(tmp_path / "*.csv"), tmp_path / "out/", 2, **keywords)
    convert_flat(str(tmp_path / "*.csv"), tmp_path / "out/", resume=True, **keywords)
    rows = tfr.read_table(tmp_path / "out/").to_pylist()
    assert [(row["a"], row["content"]) for row in rows] == [(2, f"content {i}".encode()) for i in range(3)]


def test_the_columns_of_partitions_and_paths_are_kept(tmp_path: Path) -> None:
    for label in ("cat", "dog"):
        folder = tmp_path / "in" / f"label={label}"
        folder.mkdir(parents=True)
        tfr.write_tfrecord({"x": [1, 2]}, folder / "a.tfrecord")
    stopped(tmp_path / "in", tmp_path / "out/", 1, include_file_paths="path")
    tfr.convert(tmp_path / "in", tmp_path / "out/", resume=True, source_options={"include_file_paths": "path"})
    expected = tfr.read_table(tfr.dataset(tmp_path / "in", include_file_paths="path"))
    assert tfr.read_table(tmp_path / "out/").to_pylist() == expected.to_pylist()


def test_a_changed_object_is_converted_again(s3: Bucket, tmp_path: Path, written: list[int]) -> None:
    storage = {"storage_options": s3.storage_options}
    for i in range(3):
        s3.fs.pipe(s3.url(f"in/{i}.csv"), b"a\n1\n")
    stopped(s3.url("in/*.csv"), s3.url("out/x@*"), 2, **storage)
    assert written == [0, 1, 2]
    s3.fs.pipe(s3.url("in/1.csv"), b"a\n7\n")  # of the same size, perhaps in the same second
    written.clear()
    convert_flat(s3.url("in/*.csv"), s3.url("out/x@*"), resume=True, **storage)
    assert written == [1, 2]
    assert read_by(tfr.read_table, s3.url("out/x@*"), **storage)["a"].to_pylist() == [1, 7, 1]
