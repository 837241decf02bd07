"""Archives of TFRecord files: members are read as what they are, and WebDataset archives as before."""

from __future__ import annotations

import io
import pickle
import tarfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from servers import Bucket

TABLE = pa.table({"n": range(30), "s": [f"t{n}" for n in range(30)]})
NAMES = ["a.tfrecord", "deep/er/b.tfrecord.gz", "segment-with_camera_labels.tfrecord", "no-suffix", "e.tfrecord.zst"]


def archive(path: Path, extra: dict[str, bytes] | None = None, names: list[str] = NAMES) -> Path:
    """An archive of files with a part of `TABLE` each."""
    mode: Any = {".gz": "w:gz"}.get(path.suffix, "w")
    folder = path.parent / f"{path.name}-files"
    with tarfile.open(path, mode) as file:
        for name, content in (extra or {}).items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
        for number, name in enumerate(names):
            member = folder / str(number) / name.rpartition("/")[2]
            member.parent.mkdir(parents=True)
            begin, end = (at * len(TABLE) // len(names) for at in (number, number + 1))
            tfr.write_tfrecord(TABLE[begin:end], member)
            file.add(member, name)
    return path


@pytest.mark.parametrize("name", ["waymo.tar", "waymo.tar.gz", "waymo.tar-00000-of-00001"])
def test_the_records_of_members_are_read(tmp_path: Path, name: str) -> None:
    extra = {
        "LICENSE": b"Terms of use: you may read this.\n",
        "._a.tfrecord": b"x",
        "a.tfrecord.index": b"y",
        "d/": b"",
    }
    path = archive(tmp_path / name, extra)
    assert tfr.read_table(path).equals(TABLE)
    assert tfr.read_table(pickle.loads(pickle.dumps(tfr.dataset(path)))).equals(TABLE)
    assert tfr.count(path) == 30
    assert [n for batch in tfr.iter_arrays(path, batch_size=7) for n in batch["n"].tolist()] == [*range(30)]
    with tfr.RecordReader(path) as reader:
        assert sum(1 for _ in reader) == 30
    assert "30 intact records" in str(tfr.verify(path))
    for target in ("out.parquet", "out.tfrecord"):
        assert tfr.convert(path, tmp_path / target).records == 30
    assert pq.read_table(tmp_path / "out.parquet").equals(TABLE)
    assert tfr.read_table(tmp_path / "out.tfrecord").equals(TABLE)
    tfr.merge([path, path], tmp_path / "merged.tfrecord")
    assert tfr.count(tmp_path / "merged.tfrecord") == 60


def test_several_archives_and_folders_of_them(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    paths = [archive(folder / f"{name}.tar", names=NAMES[:2]) for name in "ab"]
    both = pa.concat_tables([TABLE, TABLE])
    for number, source in enumerate((paths, folder, f"{folder}/*.tar")):
        assert tfr.read_table(source).equals(both)
        tfr.convert(source, tmp_path / f"{number}.tfrecord")
        assert tfr.read_table(tmp_path / f"{number}.tfrecord").equals(both)


def test_archives_in_buckets(s3: Bucket, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar")
    s3.fs.pipe_file(s3.url("a.tar").removeprefix("s3://"), path.read_bytes())
    assert tfr.read_table(s3.url("a.tar"), storage_options=s3.storage_options).equals(TABLE)
    options = {"storage_options": s3.storage_options}
    assert tfr.convert(s3.url("a.tar"), tmp_path / "b.tfrecord", source_options=options).records == 30


def test_webdataset_archives_are_samples(tmp_path: Path) -> None:
    """Also where a sample has a TFRecord file beside others; reading them as TFRecord names the call."""
    tfr.write_tfrecord({"n": [1]}, tmp_path / "m.tfrecord")
    record = (tmp_path / "m.tfrecord").read_bytes()
    for name, members in (("a", {"0.txt": b"x", "1.txt": b"y"}), ("b", {"0.txt": b"x", "0.tfrecord": record})):
        path = archive(tmp_path / f"{name}.tar", members, names=[])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            report = tfr.convert(path, tmp_path / f"{name}.tfrecord")
        assert "__key__" in report.columns
        assert len(caught) == (name == "b")
    with pytest.raises(tfr.errors.CorruptRecordError, match=r"a tar archive, and none of its members .*'tar'"):
        tfr.read_table(tmp_path / "a.tar")


@pytest.mark.parametrize("options", [{}, {"on_error": "skip"}], ids=str)
@pytest.mark.parametrize("call", [tfr.describe, tfr.infer_schema, tfr.read_table, tfr.count])
def test_other_archives_are_refused_as_another_format(
    tmp_path: Path, call: Callable[..., object], options: dict[str, str]
) -> None:
    path = archive(tmp_path / "a.tar", {"0.txt": b"x", "1.txt": b"y"}, names=[])
    with pytest.raises(tfr.errors.CorruptRecordError, match="not TFRecord: looks like a tar archive") as caught:
        call(tfr.dataset(path, **options))
    assert (caught.value.expected, caught.value.got) == ("TFRecord", "a tar archive")
    assert "read it with tfr convert --from tar" in caught.value.text_cli()
    assert "not TFRecord: looks like a tar archive" in str(tfr.verify(path))


def test_the_stated_format_makes_values_of_whole_files_with_a_warning(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", names=["x.tfrecord", "y.tfrecord"])
    with pytest.warns(UserWarning, match=r"'x\.tfrecord' is a TFRecord file, and becomes one value"):
        report = tfr.convert(path, tmp_path / "out.tfrecord", source_format="tar")
    assert report.records == 2


def test_damage_is_an_error_with_the_archive_and_the_record(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", names=["x.tfrecord", "y.tfrecord"])
    content = bytearray(path.read_bytes())
    at = content.rindex(b"t20")
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.raises(tfr.errors.CorruptRecordError) as caught:
        tfr.read_table(path)
    assert (caught.value.path, caught.value.record) == (str(path), 20)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.read_table(tfr.dataset(path, on_error="skip"))["n"].to_pylist() == [n for n in range(30) if n != 20]


def test_a_truncated_archive_keeps_the_records_before_its_end(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": list(range(1000))}, tmp_path / "x.tfrecord")
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as file:
        file.add(tmp_path / "x.tfrecord", "x.tfrecord")
    content, records = path.read_bytes(), (tmp_path / "x.tfrecord").read_bytes()
    assert tfr.count(path) == 1000
    begin = content.index(records)
    for lost, intact in ((len(records) // 2 + 3, 499), (4, 999)):
        path.write_bytes(content[: begin + len(records) - lost])
        for call in (tfr.count, tfr.read_table, tfr.describe):
            with pytest.raises(
                tfr.errors.TruncatedRecordError, match=r"a\.tar: record \d+: the archive ends \d+ bytes"
            ):
                call(path)
        (checked,) = tfr.verify(path).files
        assert (checked.status, checked.intact) == ("damaged", intact)
        with pytest.warns(tfr.errors.StoppedEarlyWarning):
            table = tfr.read_table(path, on_error="stop")
        assert table["x"].to_pylist() == list(range(intact))


def test_a_damaged_compressed_member_is_a_problem(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.tar", names=["x.tfrecord", "y.tfrecord.gz"])
    content = bytearray(path.read_bytes())
    content[content.rindex(b"\x1f\x8b") + 30] ^= 0xFF
    path.write_bytes(content)
    for call in (tfr.read_table, tfr.describe):
        with pytest.raises(tfr.errors.CompressionError):
            call(path)
    (checked,) = tfr.verify(path).files
    assert (checked.status, checked.intact, type(checked.error)) == ("damaged", 15, tfr.errors.CompressionError)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.read_table(path, on_error="skip").num_rows == 15
