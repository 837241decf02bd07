"""Several files of tables under the names that a target states, read back by other libraries."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.apps.file_formats.choose_formats import files_of_shards
from tfrecord_io.apps.file_formats.tables import table_shards
from tfrecord_io.store.paths.expand_braces import expand_braces

ROWS = 10


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"jpg": [bytes([i]) * 3 for i in range(ROWS)], "cls": range(ROWS)}, path)
    return path


def samples(paths: list[Path]) -> list[tuple[str, bytes]]:
    """The members of archives, by Python's own reader."""
    found = []
    for path in paths:
        with tarfile.open(path) as archive:
            found += [(member.name, archive.extractfile(member).read()) for member in archive]  # type: ignore[union-attr]
    return found


EXPECTED = [
    (f"{i:08d}.{suffix}", content)
    for i in range(ROWS)
    for suffix, content in (("jpg", bytes([i]) * 3), ("cls", str(i).encode()))
]


@pytest.mark.parametrize("target", ["a@3.jsonl", "a-{0..2}.parquet"])
@pytest.mark.parametrize("options", [{"shards": 2}, {"max_file_bytes": 100}, {"partition_by": ["cls"]}], ids=str)
def test_a_name_that_states_files_is_no_folder(
    records: Path, tmp_path: Path, target: str, options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=f"names the files to write, and {next(iter(options))}= makes a folder"):
        tfr.convert(records, tmp_path / target, target_options=options)
    assert list(tmp_path.iterdir()) == [records]


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("w-{0000..0003}.tar", [f"w-{i:04d}.tar" for i in range(4)]),
        ("w@4.tar", [f"w-{i:05d}-of-00004.tar" for i in range(4)]),
        ("w-{7..10}.tar.gz", [f"w-{i}.tar.gz" for i in range(7, 11)]),
        ("new/w-{08..11}.tar", [f"new/w-{i:02d}.tar" for i in range(8, 12)]),
    ],
)
def test_archives_of_webdataset(records: Path, tmp_path: Path, target: str, names: list[str]) -> None:
    report = tfr.convert(records, tmp_path / target)
    assert [file.path for file in report.files] == [f"{tmp_path}/{name}" for name in names]
    assert [file.records for file in report.files] == [2, 3, 2, 3]
    assert (report.records, report.path) == (ROWS, str(tmp_path / target))
    assert samples([tmp_path / name for name in names]) == EXPECTED  # numbers go on from one to the next
    assert tfr.convert(tmp_path / target, tmp_path / "b.tfrecord").records == ROWS
    assert tfr.read_table(tmp_path / "b.tfrecord", columns=["cls"])["cls"].to_pylist() == [*range(ROWS)]


def test_webdataset_reads_them(records: Path, tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    tfr.convert(records, tmp_path / "w-{0000..0003}.tar")
    found = list(webdataset.WebDataset(str(tmp_path / "w-{0000..0003}.tar"), shardshuffle=False))
    assert [(each["__key__"], each["jpg"], each["cls"]) for each in found] == [
        (f"{i:08d}", bytes([i]) * 3, str(i).encode()) for i in range(ROWS)
    ]


def test_other_tables(records: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"filters": [("cls", ">", 3)], "columns": ["cls"]}
    tfr.convert(records, tmp_path / "p@3.parquet", **options)
    tables = [pq.read_table(tmp_path / f"p-0000{i}-of-00003.parquet") for i in range(3)]
    assert [table["cls"].to_pylist() for table in tables] == [[4, 5], [6, 7], [8, 9]]
    tfr.convert(records, tmp_path / "c-{1..2}.csv.gz", **options)
    texts = [gzip.decompress((tmp_path / f"c-{i}.csv.gz").read_bytes()) for i in (1, 2)]
    assert texts == [b'"cls"\n4\n5\n6\n', b'"cls"\n7\n8\n9\n']
    tfr.convert(records, tmp_path / "e@12.arrow")
    read = [pa.ipc.open_file(path).read_all() for path in sorted(tmp_path.glob("e-*.arrow"))]
    assert len(read) == 12
    assert pa.concat_tables(read).num_rows == ROWS  # some are empty, and have the columns


@given(rows=st.integers(0, 30), files=st.integers(1, 9), batch=st.integers(1, 7))
def test_rows_are_in_order(tmp_path_factory: pytest.TempPathFactory, rows: int, files: int, batch: int) -> None:
    folder = tmp_path_factory.mktemp("shards")
    tfr.write_tfrecord(pa.table({"n": pa.array(range(rows), pa.int64())}), folder / "a.tfrecord")
    keywords: dict[str, Any] = {"schema": {"n": "int64"}, "source_options": {"batch_size": batch}}
    report = tfr.convert(folder / "a.tfrecord", folder / f"b@{files}.jsonl", **keywords)
    sizes = [file.records for file in report.files]
    assert len(sizes) == files
    assert max(sizes) - min(sizes) <= 1
    lines = b"".join(Path(file.path).read_bytes() for file in report.files)
    assert lines == b"".join(b'{"n": %d}\n' % n for n in range(rows))


def test_existing_files(records: Path, tmp_path: Path) -> None:
    last = tmp_path / "w-2.tar"
    last.write_bytes(b"mine")
    with pytest.raises(FileExistsError, match=r"w-2\.tar"):
        tfr.convert(records, tmp_path / "w-{0..2}.tar")
    assert {path.name for path in tmp_path.iterdir()} == {"a.tfrecord", "w-2.tar"}
    tfr.convert(records, tmp_path / "w-{0..2}.tar", mode="overwrite")
    assert len(samples([tmp_path / f"w-{i}.tar" for i in range(3)])) == 2 * ROWS
    with pytest.raises(TypeError, match="adds to a folder"):
        tfr.convert(records, tmp_path / "p@2.parquet", mode="append")


@pytest.mark.parametrize("mode", ["error", "overwrite"])
def test_nothing_is_left_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any) -> None:
    tfr.write_tfrecord({"__key__": ["a", "b", "c", "c.d"], "cls": [1, 2, 3, 4]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match=r"record 3.*its last part has a dot"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "new" / "w@2.tar", mode=mode)
    assert [path.name for path in tmp_path.iterdir()] == ["a.tfrecord"]
    tfr.write_tfrecord({"cls": [1, 2, 3, 4]}, tmp_path / "b.tfrecord")
    commit = table_shards.TableTarget.commit

    def fail(self: Any) -> None:
        if self.path.endswith("1.tar"):
            raise OSError(28, "No space left on device")
        commit(self)

    monkeypatch.setattr(table_shards.TableTarget, "commit", fail)
    with pytest.raises(OSError, match="No space left"):
        tfr.convert(tmp_path / "b.tfrecord", tmp_path / "w-{0..2}.tar", mode=mode)
    names = {path.name for path in tmp_path.iterdir()} - {"a.tfrecord", "b.tfrecord"}
    assert names == (set() if mode == "error" else {"w-0.tar"})


def test_a_source_that_is_read_once_is_refused(records: Path, tmp_path: Path) -> None:
    file = io.BytesIO(records.read_bytes())
    with pytest.raises((ValueError, TypeError), match=r"pass a path|expected a path"):
        tfr.convert(file, tmp_path / "w@2.tar")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a/x@2.tar", ["a/x-00000-of-00002.tar", "a/x-00001-of-00002.tar"]),
        ("x-{9..11}.tar", ["x-9.tar", "x-10.tar", "x-11.tar"]),
        ("x-{09..11}.tar", ["x-09.tar", "x-10.tar", "x-11.tar"]),
        ("x-{8..010}.tar", ["x-008.tar", "x-009.tar", "x-010.tar"]),
        ("x-{0..2}.tar", ["x-0.tar", "x-1.tar", "x-2.tar"]),
        ("x-{00..2}.tar", ["x-00.tar", "x-01.tar", "x-02.tar"]),
        ("{0..1}/x.tar", None),
        ("x@*.tar", None),
        ("me@example.com.tar", None),
        ("x-{a..b}.tar", None),
    ],
)
def test_names_of_files(path: str, expected: list[str] | None) -> None:
    assert files_of_shards(path) == expected
    assert expected is None or "@" in path or expand_braces(path) == expected


@pytest.mark.parametrize("path", ["x@0.tar", "x-{3..1}.tar", "x@100001.tar", "x-{0..1}-{0..1}.tar"])
def test_names_that_state_no_files(path: str) -> None:
    with pytest.raises(ValueError, match=r"expected 1 to|only one part"):
        files_of_shards(path)
