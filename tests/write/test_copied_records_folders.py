"""Values in the names of folders (``day=1/``) in all calls that copy records: as features, or as folders again."""

from __future__ import annotations

import io
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from forked import interpreter
from limited import set_limits
from reading import read_by
from records import blobs, entry, example, field, floats, int64s, written
from rounds import rounds
from servers import Bucket
from strategies import sequence_example
from tfrecord_io.store.paths.resolve import resolve_inputs

pytestmark = pytest.mark.matrix

FOLDERS = ["label=cat/year=2020", "label=big%20dog/year=2021", "label=__HIVE_DEFAULT_PARTITION__/year=-5"]
Copy = Callable[..., Any]
COPIES: dict[str, Copy] = {
    "merge": tfr.merge,
    "split": lambda src, dst, **keywords: tfr.split(src, dst, **{"shards": 2, **keywords}),
    "shuffle": lambda src, dst, **keywords: tfr.shuffle(src, dst, seed=1, **keywords),
    "shuffle through files": lambda src, dst, **keywords: tfr.shuffle(src, dst, memory_bytes=100, **keywords),
    "sample": lambda src, dst, **keywords: tfr.sample(src, dst, fraction=1, **keywords),
    "parts": lambda src, dst, **keywords: tfr.split(src, dst, fractions=[0.5, 0.5], **keywords),
    "parts of values": lambda src, dst, **keywords: tfr.split(src, dst, by="a", **keywords),
    "parts of folders": lambda src, dst, **keywords: tfr.split(src, dst, by="year", **keywords),
}


@pytest.fixture(params=[True, False], ids=["schema", "no schema"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for n, folder in enumerate(FOLDERS):
        table = {"x": [n, 10 + n, 20 + n, 30 + n], "a": ["p", "q", "p", "q"]}
        tfr.write_tfrecord(table, tmp_path / "d" / folder / "a@2", embed_schema=request.param)
    return tmp_path / "d"


def put(table: Any, *path: Any, **keywords: Any) -> None:
    """Write a file in a new folder."""
    file = Path(*path)
    file.parent.mkdir(parents=True, exist_ok=True)
    tfr.write_tfrecord(table, file, **keywords)


def rows(path: Any) -> list[dict[str, Any]]:
    return sorted(tfr.read_table(path).to_pylist(), key=lambda row: row["x"])


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_values_of_folders_become_features(root: Path, tmp_path: Path, copy: Copy) -> None:
    out = tmp_path / "out"
    copy(root, f"{out}/")
    original, copied = tfr.read_table(root), tfr.read_table(out)
    assert rows(out) == rows(root)
    names = copied.schema.names
    assert [*names] == (original.schema.names if original.schema.names[0] == "x" else sorted(names))
    assert {f.name: f.type for f in copied.schema} == {f.name: f.type for f in original.schema}
    assert tfr.verify(out).ok


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_records_stay_in_their_folders(root: Path, tmp_path: Path, copy: Copy) -> None:
    out = tmp_path / "out"
    report = copy(root, out, partitions="folders")
    assert rows(out) == rows(root)
    found = {path.relative_to(out).parent.as_posix() for path in out.rglob("*.tfrecord*")}
    assert found == set(FOLDERS)
    reports = report.values() if isinstance(report, dict) else [report]
    assert sum(each.records for each in reports) == 12
    assert {file.path for each in reports for file in each.files} == {
        str(path) for path in out.rglob("*.tfrecord*") if not path.name.startswith("_")
    }
    assert tfr.verify(out).ok


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_values_of_folders_are_dropped_on_request(root: Path, tmp_path: Path, copy: Copy) -> None:
    copy(root, f"{tmp_path}/out/", partitions="drop")
    assert rows(tmp_path / "out") == [{"x": row["x"], "a": row["a"]} for row in rows(root)]


def test_only_folders_below_the_path_are_columns(root: Path, tmp_path: Path) -> None:
    tfr.merge(root / "label=cat", tmp_path / "a")
    assert tfr.read_table(tmp_path / "a").schema.names in (["x", "a", "year"], ["a", "x", "year"])
    tfr.merge(f"{root}/label=*/*/*", tmp_path / "b")
    assert rows(tmp_path / "b") == rows(root)
    tfr.merge([*root.rglob("a-*")], tmp_path / "c")  # files that are named one by one have no folders, as in reading
    assert {*tfr.read_table(tmp_path / "c").schema.names} == {"x", "a"}


UNKNOWN = field(9, b"hi")
PAYLOADS = [
    b"",  # no features
    example(),
    example(x=int64s(1, 2, 3)),
    example(x=floats(0.5)) + example(y=int64s(7)),  # two messages, which parsers merge
    example(x=int64s(*range(200))),  # a length of two bytes
    UNKNOWN,
    UNKNOWN + example(x=int64s(5)),
    example(x=int64s(5)) + UNKNOWN,
    field(1, entry("x", int64s(5)), pad=2),  # a length of more bytes than it needs
    field(1, entry("x", int64s(5)), pad=6),
    sequence_example({"x": int64s(5)}, {"steps": [int64s(1), int64s(2, 3)]}),
    sequence_example({}, {"steps": [floats(0.5)]})[2:],  # feature lists alone
]


@settings(max_examples=rounds(200))
@given(
    st.lists(st.lists(st.sampled_from(PAYLOADS), max_size=6), min_size=1, max_size=3),
    st.lists(st.none() | st.text("aé%/=_\x01 1", max_size=5) | st.integers(-3, 300).map(str), min_size=3, max_size=3),
    st.sampled_from(["native", "reference_engine"]),
)
def test_each_record_gets_the_feature_and_nothing_else_changes(
    files: list[list[bytes]], values: list[str | None], engine: str
) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFRECORD_IO_ENGINE", engine)
        root, copy = Path(folder) / "d", Path(folder) / "copy"
        for number, (payloads, value) in enumerate(zip(files, values, strict=False)):
            inside = root / f"k={'__HIVE_DEFAULT_PARTITION__' if value is None else quote(value, safe='')}"
            inside.mkdir(parents=True, exist_ok=True)
            written(inside / f"{number}.tfrecord", payloads)
        try:
            expected = tfr.read_table(root, columns=["k"])["k"]
        except tfr.errors.DecodeError:  # of records with unknown fields alone, which are another message
            with pytest.raises(tfr.errors.DecodeError, match="have features of folders"):
                tfr.merge(root, copy)
            return
        tfr.merge(root, copy)
        originals = [payload for source in resolve_inputs(root) for payload in tfr.RecordReader(source.path)]
        for got, original, value in zip(tfr.RecordReader(copy), originals, expected.to_pylist(), strict=True):
            wanted, found = tfr.train.SequenceExample.FromString(original), tfr.train.SequenceExample.FromString(got)
            if isinstance(value, int):
                wanted.context.feature["k"].int64_list.value.append(value)
            elif value is not None:
                wanted.context.feature["k"].bytes_list.value.append(value.encode())
            assert found == wanted  # with unknown fields


def test_records_that_fill_blocks(tmp_path: Path, engine: str) -> None:
    rows = 40 if engine == "reference_engine" else 400
    table = pa.table({"x": [bytes([i % 256]) * 50_000 for i in range(rows)], "n": range(rows)})
    for day in (1, 2):
        put(table, tmp_path, "d", f"day={day}", "a.tfrecord.gz")
    tfr.merge(tmp_path / "d", tmp_path / "out")
    assert tfr.read_table(tmp_path / "out").equals(tfr.read_table(tmp_path / "d"))


@pytest.mark.parametrize("present", [int64s(3), blobs(b"x"), b""], ids=["integer", "bytes", "no kind"])
def test_a_feature_with_the_name_of_a_folder_is_refused(engine: str, tmp_path: Path, present: bytes) -> None:
    for day in (1, 2):
        (tmp_path / "d" / f"day={day}").mkdir(parents=True)
        payloads = [example(x=int64s(day))] * 3 + ([example(day=present)] if day == 2 else [])
        written(tmp_path / "d" / f"day={day}" / "a.tfrecord", payloads)
    with pytest.raises(tfr.errors.SchemaError, match="both define this column"):
        tfr.read_table(tmp_path / "d")
    advice = 'rename the directories; partitions="drop" leaves out the values of folders'
    with pytest.raises(tfr.errors.SchemaError, match=rf"day=2/a.tfrecord: .*{advice}") as caught:
        tfr.merge(tmp_path / "d", tmp_path / "out")
    assert caught.value.feature == "day"
    assert caught.value.record == (3 if present else None)
    assert not (tmp_path / "out").exists()
    tfr.merge(tmp_path / "d", tmp_path / "out", partitions="drop")  # the advice works
    put({"day": [1]}, tmp_path, "e", "day=1", "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="both define this column"):
        tfr.merge(tmp_path / "e", tmp_path / "other")


@pytest.mark.parametrize("payload", [b"hello world", b"\x08\x05", field(1, b"\x08\x05")])
def test_other_messages_have_no_features(engine: str, tmp_path: Path, payload: bytes) -> None:
    (tmp_path / "d" / "day=1").mkdir(parents=True)
    written(tmp_path / "d" / "day=1" / "a.tfrecord", [payload] * 3)
    with pytest.raises(
        tfr.errors.DecodeError, match=r'only tf.train.Examples can have features .* partitions="drop" leaves'
    ):
        tfr.merge(tmp_path / "d", tmp_path / "out")
    for partitions in ("drop", "folders"):
        tfr.merge(tmp_path / "d", tmp_path / partitions, partitions=partitions)
    assert [*tfr.RecordReader(tmp_path / "drop")] == [payload] * 3
    assert [*tfr.RecordReader(tmp_path / "folders" / "day=1")] == [payload] * 3


def test_a_record_that_becomes_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put({"x": [b"x" * 80]}, tmp_path, "d", "day=1", "a.tfrecord", embed_schema=False)
    set_limits(monkeypatch, MAX_RECORD_BYTES=100)
    with pytest.raises(tfr.errors.EncodeError, match=r'day=1/a.tfrecord: .* would exceed 100 bytes.*partitions="drop"'):
        tfr.merge(tmp_path / "d", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_features_of_a_record_stay_one_message(tmp_path: Path) -> None:
    for day in (1, 2):
        put({"x": [1, 2]}, tmp_path, "d", f"day={day}", "a.tfrecord", embed_schema=False)
    tfr.merge(tmp_path / "d", tmp_path / "out")
    expected = [example(x=int64s(x), day=int64s(day)) for day in (1, 2) for x in (1, 2)]
    assert [*tfr.RecordReader(tmp_path / "out")] == expected


def test_what_a_directory_for_folders_is(root: Path, tmp_path: Path) -> None:
    for name in ("out.tfrecord", "out@2", "part-00000-of-00002"):
        with pytest.raises(ValueError, match=r"this is a directory, .* shards= sets the number of files"):
            tfr.merge(root, tmp_path / name, partitions="folders")
    with pytest.raises(TypeError, match="writes to a directory, not to a BytesIO"):
        tfr.merge(root, io.BytesIO(), partitions="folders")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="partitions='keep': expected one of 'features', 'folders', 'drop'"):
        tfr.merge(root, tmp_path / "out", partitions="keep")  # type: ignore[arg-type]
    tfr.merge(root, tmp_path / "out", partitions="folders", shards=3, compression="gzip")
    assert len([*(tmp_path / "out").rglob("part-*-of-00003.tfrecord.gz")]) == 9
    with pytest.raises(FileExistsError):
        tfr.merge(root, tmp_path / "out", partitions="folders")
    tfr.merge(root, tmp_path / "out", partitions="folders", mode="overwrite")
    assert rows(tmp_path / "out") == rows(root)


def test_a_file_in_no_folder_after_those_in_folders(tmp_path: Path) -> None:
    put({"x": [1]}, tmp_path, "day=1", "half=am", "a.tfrecord")
    put({"x": [2]}, tmp_path, "day=1", "a.tfrecord")
    put({"x": [3]}, tmp_path, "b.tfrecord")
    source = [f"{tmp_path}/day=*/half=*/a.tfrecord", f"{tmp_path}/day=*/a.tfrecord", tmp_path / "b.tfrecord"]
    tfr.merge(source, tmp_path / "out", partitions="folders")
    assert rows(tmp_path / "out") == rows(source)


def test_files_in_no_folder_and_folders_without_records(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1], pa.uint8())})
    for name in ("a.tfrecord", "day=1/a.tfrecord"):
        put(table, tmp_path, "d", name)
    tfr.write_tfrecord(table[:0], f"{tmp_path}/d/day=2/")
    tfr.merge(tmp_path / "d", tmp_path / "out")
    assert tfr.read_table(tmp_path / "out").to_pydict() == {"x": [1, 1], "day": [None, 1]}
    tfr.merge(tmp_path / "d", tmp_path / "again", partitions="folders")
    assert sorted(path.name for path in (tmp_path / "again").iterdir()) == [
        "_MANIFEST.json",
        "day=1",
        "day=2",
        "part-00000-of-00001.tfrecord",
    ]
    assert tfr.read_table(tmp_path / "again").to_pydict() == {"x": [1, 1], "day": [1, None]}


@pytest.mark.parametrize("root", [True], indirect=True)
@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("partitions", ["features", "folders"])
def test_a_damaged_file_leaves_nothing(root: Path, tmp_path: Path, copy: Copy, partitions: str) -> None:
    last = max(root.rglob("a-*"))
    last.write_bytes(last.read_bytes()[:-1] + b"x")
    with pytest.raises(tfr.errors.CorruptRecordError):
        copy(root, tmp_path / "out", partitions=partitions)
    assert not (tmp_path / "out").exists()


def test_more_folders_than_open_files(tmp_path: Path) -> None:
    for day in range(150):
        written(tmp_path / f"day={day}.tfrecord", [example(x=int64s(day))])
        (tmp_path / "d" / f"day={day}").mkdir(parents=True)
        (tmp_path / f"day={day}.tfrecord").rename(tmp_path / "d" / f"day={day}" / "a.tfrecord")
    script = "import resource, sys, tfrecord_io as tfr; resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100)); "
    script += "print(tfr.merge(sys.argv[1], sys.argv[2], partitions='folders').records)"
    command = [*interpreter(), "-c", script, str(tmp_path / "d"), str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("150\n", "")
    assert tfr.read_table(tmp_path / "out").equals(tfr.read_table(tmp_path / "d"))


def test_folders_of_buckets(bucket: Bucket) -> None:
    keywords = {"storage_options": bucket.storage_options}
    for day in (1, 2):
        tfr.write_tfrecord({"x": [day]}, bucket.url(f"d/day={day}/a.tfrecord"), **keywords)
    tfr.merge(bucket.url("d"), bucket.url("one.tfrecord"), **keywords)
    tfr.shuffle(bucket.url("d"), bucket.url("folders/"), partitions="folders", **keywords)
    expected = read_by(tfr.read_table, bucket.url("d"), **keywords)
    assert read_by(tfr.read_table, bucket.url("one.tfrecord"), **keywords).equals(expected)
    assert read_by(tfr.read_table, bucket.url("folders/"), **keywords).equals(expected)


def test_salvage_keeps_the_folders(root: Path, tmp_path: Path) -> None:
    tfr.salvage(root, tmp_path / "out")
    assert rows(tmp_path / "out") == rows(root)


def test_a_warning_names_columns_that_have_another_type_in_the_copy(tmp_path: Path) -> None:
    table = pa.table({"zip": ["01234", "00001"], "day": [1, 2], "x": [1, 2]})
    tfr.write_tfrecord(table, f"{tmp_path}/a/", partition_by=["zip", "day"])
    with pytest.warns(
        tfr.errors.SchemaWarning, match="'zip' is string in the dataset, and int64 in the names"
    ) as caught:
        tfr.merge(tmp_path / "a", tmp_path / "b", partitions="folders")
    assert len(caught) == 1
    declared = tfr.read_table(tfr.dataset(tmp_path / "b", schema_overrides={"zip": "string"}))
    assert sorted(declared["zip"].to_pylist()) == ["00001", "01234"]


def test_a_warning_of_a_piece_names_columns_whose_folders_alone_have_another_type(tmp_path: Path) -> None:
    for folder in ("k=01", "k=x"):
        (tmp_path / "a" / folder).mkdir(parents=True)
        tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a" / folder / "b.tfrecord")
    piece = tfr.dataset(tmp_path / "a").pieces(2)[0]
    with pytest.warns(tfr.errors.SchemaWarning, match="'k' is string in the dataset, and int64 in the names"):
        tfr.merge(piece, tmp_path / "b", partitions="folders")
