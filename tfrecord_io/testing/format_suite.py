"""The test suite that each file format inherits: what `tfrecord_io.convert` promises of every source and target.

Tests: tests/apps/file_formats/test_all_formats.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tfrecord_io import Limits, count
from tfrecord_io.apps.api import read_table, write_tfrecord
from tfrecord_io.apps.file_formats.convert import convert
from tfrecord_io.errors import FeatureNotFoundError, SchemaError, TFRecordError, TruncatedRecordError
from tfrecord_io.kit import CODECS, FORMATS, Format
from tfrecord_io.typing import Progress

_CSV = FORMATS.csv

F = TypeVar("F", bound=Callable[..., Any])


def needs(fact: str) -> Callable[[F], F]:
    """Skip a test of formats whose row does not have this fact."""

    def check(test: F) -> F:
        test.needed = (fact,)  # type: ignore[attr-defined]
        return test

    return check


class FormatSuite:
    """Tests of the format `name`.

    Attributes
    ----------
    name : str
        Of the row.
    rows : pyarrow.Table
        What such a file holds, with the types that are read back. The values of the first column are unique and not
        null, if there are other columns.
    keywords : dict
        Keywords of `tfrecord_io.convert` that are needed to read `rows` from the file.
    fields : int, optional
        The number of columns that ``Limits.features`` counts, if it is not that of the columns of `rows`.
    damage : str
        What errors of damaged files say, as a regular expression.
    is_repeated : bool
        Whether the same rows are always the same file.
    """

    name: ClassVar[str]
    rows: ClassVar[pa.Table]
    keywords: ClassVar[dict[str, Any]] = {}
    fields: ClassVar[int | None] = None
    damage: ClassVar[str] = ""
    is_repeated = True

    @property
    def format(self) -> Format:
        return FORMATS[self.name]

    @property
    def suffix(self) -> str:
        return self.format.suffixes[0]

    def write(self, rows: pa.Table, path: Path) -> None:
        """Make a file in the format."""
        records = write_tfrecord(rows, "memory://write.tfrecord", float64="raw").path
        name: Any = self.name  # of any package
        convert(records, path, target_format=name)

    def read(self, source: Any, **keywords: Any) -> pa.Table:
        """The rows of a source, as they are in TFRecord."""
        fs = MemoryFileSystem()
        fs.store.pop("/read.tfrecord", None)
        options = {**self.keywords.get("source_options", {}), **keywords.get("source_options", {})}
        keywords = {"float64": "raw", **self.keywords, **keywords, "source_options": options}
        report = convert(source, "memory://read.tfrecord", **keywords)
        table = read_table("memory://read.tfrecord")
        assert report.records == table.num_rows
        return table

    @pytest.fixture(autouse=True)
    def nothing_is_left_open(self, request: pytest.FixtureRequest, tmp_path: Path) -> Any:
        """Skip a test that `needs` a fact which the format lacks; after any other, no file is open."""
        facts = getattr(request.function, "needed", ())
        if missing := [fact for fact in facts if not getattr(self.format, fact)]:
            pytest.skip(f"{self.format.title}: no {missing[0]}")
        yield
        fds = Path("/proc/self/fd")
        left = [os.readlink(fd) for fd in fds.iterdir() if fd.exists()] if fds.exists() else []
        assert [path for path in left if path.startswith(str(tmp_path))] == []

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        """A file in the format, with a name that globs, URLs and shells take for something else."""
        path = tmp_path / f"a file, ä%20#1;{self.suffix}"
        self.write(self.rows, path)
        return path

    def test_what_is_written_is_read_back(self, path: Path) -> None:
        table = self.read(path)
        assert table.to_pylist() == self.rows.to_pylist()
        assert table.schema.equals(self.rows.schema)

    def test_names_in_capitals_are_known(self, path: Path) -> None:
        renamed = path.with_name(f"OTHER{self.suffix.upper()}")
        path.rename(renamed)
        assert self.read(renamed).num_rows == self.rows.num_rows

    def test_columns_are_selected(self, path: Path) -> None:
        names = self.rows.column_names
        for columns in (names[:1], names[::-1]):
            assert self.read(path, columns=columns).column_names == columns
        assert self.read(path, columns=f"{names[0][:2]}*").column_names == names[:1]
        if len(names) > 1:
            assert self.read(path, columns=f"!{names[0]}").column_names == names[1:]
        with pytest.raises(FeatureNotFoundError, match="nonsense"):
            self.read(path, columns=[names[0], "nonsense"])

    def test_filters_keep_rows(self, path: Path) -> None:
        first = self.rows.column_names[0]
        values = self.rows[first].to_pylist()
        table = self.read(path, filters=[(first, "!=", values[1])])
        assert table[first].to_pylist() == [value for value in values if value != values[1]]
        if len(self.rows.column_names) > 1:
            further_columns = self.rows.column_names[1:]
            row = self.read(path, filters=[(first, "==", values[1])], columns=further_columns)
            assert row.to_pylist() == self.rows.select(further_columns).slice(1, 1).to_pylist()

    def test_progress_ends_with_all(self, path: Path) -> None:
        seen: list[Progress] = []
        self.read(path, progress=seen.append)
        done = [progress.done for progress in seen]
        assert done == sorted(done)
        is_bytes = "progress" in self.format.reads
        total = path.stat().st_size if is_bytes else self.rows.num_rows
        assert (seen[-1].done, seen[-1].unit) == (total, "bytes" if is_bytes else "rows")

    def test_damage_is_an_error_with_the_path(self, path: Path, tmp_path: Path) -> None:
        content, target = path.read_bytes(), tmp_path / "x.tfrecord"
        for damaged in self.damaged(content):
            path.write_bytes(damaged)
            with pytest.raises(TFRecordError, match=self.damage or None) as caught:
                convert(path, target, **self.keywords)
            assert str(caught.value.path).startswith(str(path))
            assert not target.exists()

    def damaged(self, content: bytes) -> list[bytes]:
        return [b"", content[:-40], content[: len(content) // 2], b"nonsense" * 20]

    def test_a_source_that_is_not_there(self, tmp_path: Path) -> None:
        for name in (f"none{self.suffix}", f"none*{self.suffix}"):
            with pytest.raises(FileNotFoundError):
                convert(tmp_path / name, tmp_path / "x.tfrecord", **self.keywords)
        assert os.listdir(tmp_path) == []

    def test_buckets_and_folders_of_names_with_spaces(self, path: Path) -> None:
        fs = MemoryFileSystem()
        fs.pipe(f"/a folder/x{self.suffix}", path.read_bytes())
        assert self.read(f"memory://a folder/x{self.suffix}").num_rows == self.rows.num_rows
        assert self.read(f"/a folder/x{self.suffix}", source_options={"filesystem": fs}).num_rows == self.rows.num_rows

    def test_the_named_format_counts_more_than_the_suffix(self, path: Path, tmp_path: Path) -> None:
        for name in ("plain", "x" + (FORMATS.tsv if self.format is _CSV else _CSV).suffixes[0]):
            (tmp_path / name).write_bytes(path.read_bytes())
            for key in self.format.keys:
                table = self.read(tmp_path / name, source_format=key)
                assert list(table.to_pydict().values()) == list(self.rows.to_pydict().values())

    def test_a_compressed_file(self, path: Path) -> None:
        for codec in CODECS.own:
            packed = path.with_name(f"{path.name}{codec.suffixes[0]}")
            compressor = codec.compressor()
            packed.write_bytes(b"".join([*compressor.compress(path.read_bytes()), *compressor.flush()]))
            if self.format.compressed:
                assert self.read(packed).to_pylist() == self.rows.to_pylist()
            else:
                with pytest.raises(ValueError, match=r"are not compressed as a whole"):
                    self.read(packed)

    @needs("plan")
    def test_several_files_a_glob_and_a_folder_are_read_in_order(self, tmp_path: Path) -> None:
        folder = tmp_path / "a folder"
        folder.mkdir()
        for number in (0, 1, 2):
            self.write(self.rows.slice(number, 1), folder / f"{9 + number}{self.suffix}")
        listed = [folder / f"{9 + number}{self.suffix}" for number in range(3)]
        for source in (folder, folder / f"*{self.suffix}", listed):
            assert self.read(source).to_pylist() == self.rows.slice(0, 3).to_pylist()

    @needs("plan")
    def test_files_with_other_columns_are_refused(self, tmp_path: Path) -> None:
        first, *further_columns = self.rows.column_names
        self.write(self.rows, tmp_path / f"1{self.suffix}")
        self.write(self.rows.rename_columns([first, *further_columns[:-1], "png"]), tmp_path / f"2{self.suffix}")
        with pytest.raises(TFRecordError) as caught:
            convert([tmp_path / f"{n}{self.suffix}" for n in (1, 2)], tmp_path / "x.tfrecord", **self.keywords)
        assert str(caught.value.path).endswith(f"2{self.suffix}")
        assert not (tmp_path / "x.tfrecord").exists()

    @needs("plan")
    def test_too_many_columns_are_refused(self, path: Path) -> None:
        count = self.fields or len(self.rows.column_names)
        self.read(path, source_options={"limits": Limits(features=count)})
        with pytest.raises(SchemaError, match=f"more than {count - 1} different columns.*limits.*features"):
            self.read(path, source_options={"limits": Limits(features=count - 1)})

    @needs("plan")
    def test_a_conversion_is_resumed(self, path: Path, tmp_path: Path) -> None:
        report = convert([path], f"{tmp_path}/out/", resume=True, **self.keywords)
        assert (report.records, count(tmp_path / "out")) == (self.rows.num_rows, self.rows.num_rows)

    def test_keywords_of_other_formats_are_refused(self, path: Path, tmp_path: Path) -> None:
        with pytest.raises(
            TypeError, match=r"limit= is only for TFRecord.* sources, and .* is .*; source_format= names"
        ):
            self.read(path, limit=1)
        for target, keyword in ((tmp_path / f"y{self.suffix}", "shards"), (tmp_path / "y.tfrecord", "column")):
            with pytest.raises((TypeError, ValueError)):
                convert(path, target, **{**self.keywords, keyword: 2})
        assert os.listdir(tmp_path) == [path.name]

    # ---- targets

    @pytest.fixture
    def records(self, tmp_path: Path) -> Path:
        write_tfrecord(self.rows, tmp_path / "a.tfrecord", float64="raw")
        return tmp_path / "a.tfrecord"

    @needs("is_target")
    def test_names_decide_about_the_format_and_the_report_tells(self, records: Path, tmp_path: Path) -> None:
        target = tmp_path / f"a b{self.suffix}"
        report = convert(records, target)
        assert (report.records, report.bytes) == (self.rows.num_rows, target.stat().st_size)
        keys: Any = self.format.keys
        for key in keys:
            convert(records, tmp_path / "plain", target_format=key)
            assert self.read(tmp_path / "plain", source_format=key).num_rows == self.rows.num_rows
            assert not self.is_repeated or (tmp_path / "plain").read_bytes() == target.read_bytes()

    @needs("is_target")
    def test_a_compressed_target(self, records: Path, tmp_path: Path) -> None:
        for codec in CODECS.own:
            target = tmp_path / f"a{self.suffix}{codec.suffixes[0]}"
            if not self.format.compressed:
                with pytest.raises(ValueError, match=r"are not compressed as a whole"):
                    convert(records, target)
                continue
            report = convert(records, target)
            assert (report.compression, report.bytes) == (codec.name, target.stat().st_size)
            assert self.read(target).num_rows == self.rows.num_rows

    @needs("is_target")
    def test_an_existing_target_is_replaced_unless_it_must_not_be(self, records: Path, tmp_path: Path) -> None:
        target = tmp_path / f"a{self.suffix}"
        target.write_bytes(b"before")
        with pytest.raises(FileExistsError):
            convert(records, target, mode="error")
        assert target.read_bytes() == b"before"
        for keywords in ({}, {"mode": "overwrite"}):
            convert(records, target, **keywords)  # type: ignore[arg-type]
            assert self.read(target).num_rows == self.rows.num_rows

    @needs("is_target")
    def test_a_failed_conversion_leaves_the_old_file(self, records: Path, tmp_path: Path) -> None:
        records.write_bytes(records.read_bytes()[:-3])
        target = tmp_path / f"a{self.suffix}"
        target.write_bytes(b"before")
        for name in (
            target,
            *([tmp_path / f"b{self.suffix}{CODECS.own[0].suffixes[0]}"] if self.format.compressed else []),
        ):
            with pytest.raises(TruncatedRecordError):
                convert(records, name)
        assert target.read_bytes() == b"before"
        assert sorted(os.listdir(tmp_path)) == sorted([records.name, target.name])

    @needs("is_target")
    def test_columns_filters_and_progress_of_tfrecord(self, records: Path, tmp_path: Path) -> None:
        first, seen = self.rows.column_names[0], list[Progress]()
        value = self.rows[first][1].as_py()
        target, filters = tmp_path / f"a{self.suffix}", [(first, "!=", value)]
        report = convert(records, target, filters=filters, progress=seen.append)
        assert report.records == self.rows.num_rows - 1
        assert seen[-1].done == seen[-1].total
        with pytest.raises(FeatureNotFoundError):
            convert(records, tmp_path / f"b{self.suffix}", columns=["nonsense"])
        with pytest.raises(
            TypeError, match=r"float64= is only for TFRecord .*targets, and .* is .*; target_format= names"
        ):
            convert(records, tmp_path / f"b{self.suffix}", float64="raw")

    @needs("is_target")
    def test_no_rows(self, tmp_path: Path) -> None:
        write_tfrecord(self.rows.slice(0, 0), tmp_path / "a.tfrecord")
        report = convert(tmp_path / "a.tfrecord", tmp_path / f"a{self.suffix}")
        assert report.records == 0
        assert (tmp_path / f"a{self.suffix}").exists()

    @needs("is_target")
    def test_targets_in_buckets(self, records: Path) -> None:
        fs = MemoryFileSystem()
        convert(records, f"memory://out/a b{self.suffix}")
        assert self.read(f"memory://out/a b{self.suffix}").num_rows == self.rows.num_rows
        fs.rm("/out", recursive=True)

    @needs("is_target")
    def test_standard_input_and_output(self, records: Path, tmp_path: Path) -> None:
        command = [sys.executable, "-m", "tfrecord_io", "convert"]
        written = subprocess.run(
            [*command, "--to", self.name, "-", "-"], input=records.read_bytes(), capture_output=True, check=True
        )
        assert f"{self.rows.num_rows} records" in written.stderr.decode()
        read = [*command, "--from", self.name, "--float64", "raw", "-", str(tmp_path / "b.tfrecord")]
        done = subprocess.run(read, input=written.stdout, capture_output=True)
        assert done.returncode == 0, done.stderr
        assert list(read_table(tmp_path / "b.tfrecord").to_pydict().values()) == list(self.rows.to_pydict().values())
