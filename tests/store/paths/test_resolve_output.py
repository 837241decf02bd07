"""Paths are resolved to the file or the shards to write."""

import io
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from rounds import COMPLETE
from tfrecord_io.base import StorageOptions
from tfrecord_io.base.registry import Registry
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.format.known_formats import FORMATS
from tfrecord_io.store.paths.file_names import ShardName
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.paths.resolve_output import OtherSuffix, Output
from tfrecord_io.write.record_writer import RecordWriter


def targets(output):
    return [output.shard(i) for i in range(output.count)] if output.sharded else [output.path]


@pytest.mark.parametrize("compression", ["infer", "gzip"])
def test_written_shards_are_named_as_reading_finds_them(tmp_path, compression):
    for path in (
        f"{tmp_path}/d/",
        f"{tmp_path}/e/train@3",
        f"{tmp_path}/f/train.tfrecord.gz@3",
        f"{tmp_path}/g/train_tfrecord@3",
    ):
        names = targets(Output.resolve(path, shards=3, compression=compression))
        os.makedirs(os.path.dirname(names[0]))
        for name in names:
            open(name, "wb").close()
        assert [s.path for s in resolve_inputs(path.rpartition("/")[0])] == names
        assert [s.path for s in resolve_inputs(path)] == names
    assert ShardName.make("x", 3, 8) == "x-00003-of-00008"


@pytest.mark.parametrize("compression", ["infer", "gzip"])
@pytest.mark.parametrize("name", ["", "train@*", "train.tfrecord@*", "train.tfrec.gz@*", "a_tfrecord@*", "b.2@*"])
def test_shards_of_limited_size_are_found_without_a_count(tmp_path, name, compression):
    output = Output.resolve(f"{tmp_path}/{name}", max_shard_bytes=100, compression=compression)
    assert (output.sharded, output.count) == (True, None)
    names = [output.shard(i) for i in range(3)]
    for each in names:
        open(each, "wb").close()
    assert [s.path for s in resolve_inputs(tmp_path)] == names
    assert [s.path for s in resolve_inputs(f"{tmp_path}/{output.stem}@*")] == names


@pytest.mark.parametrize(
    ("path", "kwargs", "first", "count"),
    [
        ("a.tfrecord", {}, "a.tfrecord", 1),
        ("a*{b,c}.tfrecord", {}, "a*{b,c}.tfrecord", 1),
        ("a@4", {}, "a-00000-of-00004", 4),
        ("a@4", {"shards": 4}, "a-00000-of-00004", 4),
        ("a@4", {"compression": "zlib"}, "a-00000-of-00004.zlib", 4),
        ("a@*", {"shards": 2}, "a-00000-of-00002", 2),
        ("a.tfrecord", {"shards": 2}, "a.tfrecord-00000-of-00002", 2),
        ("d/", {}, "d/part-00000-of-00001.tfrecord", 1),
        ("d/", {"shards": 2, "compression": "gzip"}, "d/part-00000-of-00002.tfrecord.gz", 2),
        ("memory://d/a@2", {}, "memory://d/a-00000-of-00002", 2),
        ("memory://d/", {}, "memory://d/part-00000-of-00001.tfrecord", 1),
    ],
)
def test_output_names(path, kwargs, first, count, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    output = Output.resolve(path, **kwargs)
    names = targets(output)
    assert (names[0], len(names), output.count) == (first, count, count)


def test_an_existing_directory_is_written_as_shards(tmp_path):
    assert targets(Output.resolve(tmp_path)) == [f"{tmp_path}/part-00000-of-00001.tfrecord"]


@pytest.mark.parametrize(
    ("path", "kwargs"),
    [
        ("a@4", {"shards": 2}),
        ("a@4", {"max_shard_bytes": 100}),
        ("a@0", {}),
        ("a@*", {}),
        ("a@100001", {}),
        ("a", {"shards": 2, "max_shard_bytes": 100}),
    ],
)
def test_contradicting_arguments_for_writing_are_refused(path, kwargs):
    with pytest.raises(ValueError):
        Output.resolve(path, **kwargs)
    with pytest.raises(ValueError, match="need a path"):
        Output.resolve(io.BytesIO(), shards=2)


def test_more_shards_than_five_digits_are_refused():
    assert Output.resolve("a", max_shard_bytes=1).shard(99_999) == "a-99999.tfrecord"
    with pytest.raises(ValueError, match="larger max_shard_bytes"):
        Output.resolve("a", max_shard_bytes=1).shard(100_000)


@pytest.mark.parametrize("path", ["d/a\\b@2", os.fsdecode(b"d/a\xff@2")])
def test_names_invalid_in_a_manifest_are_refused_before_anything_is_written(path):
    with pytest.raises(ValueError, match="choose another name"):
        Output.resolve(path)
    assert not Output.resolve(path.removesuffix("@2")).sharded


def test_the_root_of_a_filesystem_is_a_directory_of_it():
    assert Output.resolve("memory://", shards=1).shard(0) == "memory://part-00000-of-00001.tfrecord"
    assert Output.resolve("/", shards=1).shard(0) == "/part-00000-of-00001.tfrecord"


def round_trip(path, storage, **keywords):
    """Write rows, and read what the same path means."""
    data = pa.table({"n": range(8)})
    tfr.write_tfrecord(data, path, **keywords, **storage)
    assert read_by(tfr.read_table, path, **storage) == data
    assert read_by(tfr.count, path, **storage) == 8


FRONTS = ["train", "_hidden", "a[1]", "x{1,2}", "q?*", "p-00000-of-00003", "p-00001", "ä b", "part", "_MANIFEST"]
SUFFIXES = ["", ".tfrecord", "_tfrecord", ".gz", ".tfrecord.gz", "_tfrecord.zlib", ".v2"]
ONE, TWO, MANY = {"shards": 1}, {"shards": 2}, {"max_shard_bytes": 100}
FORMS = [
    *[(form, split) for form in ("", "/") for split in ({}, ONE, TWO, MANY)],
    *[("@2", {}), ("@2", TWO), ("@*", ONE), ("@*", TWO), ("@*", MANY)],
]


@pytest.mark.parametrize(("form", "split"), FORMS, ids=str)
def test_what_a_path_writes_it_reads(tmp_path, form, split):
    names = [(front, suffix, "infer") for front in FRONTS for suffix in ("", ".tfrecord.gz")]
    names += [("train", suffix, compression) for suffix in SUFFIXES for compression in (None, "gzip")]
    if not COMPLETE:  # half of the names with each form, the other half with the next one
        names = names[FORMS.index((form, split)) % 2 :: 2]
    for number, (front, suffix, compression) in enumerate(names):
        (tmp_path / str(number)).mkdir()
        round_trip(f"{tmp_path}/{number}/{front}{suffix}{form}", {}, **split, compression=compression)


@pytest.mark.matrix
@pytest.mark.parametrize(("form", "split"), FORMS, ids=str)
def test_what_a_url_writes_it_reads(s3, form, split):
    for name in ("train", "a[1].tfrecord.gz"):
        round_trip(s3.url(f"{name}{form}"), {"storage_options": s3.storage_options}, **split)


@pytest.mark.parametrize("split", [{}, ONE, TWO, MANY], ids=str)
def test_what_an_existing_directory_is_written_with_it_reads(tmp_path, split):
    (tmp_path / "d").mkdir()
    round_trip(tmp_path / "d", {}, **split)


@pytest.mark.parametrize("suffix", Registry.WRITTEN_SUFFIXES)
def test_each_suffix_that_is_written_is_read_in_all_forms(tmp_path, suffix):
    """A file, shards, and a whole directory of either, by `write_tfrecord`, `open_writer` and `merge`."""
    for number, (form, split) in enumerate(FORMS):
        directory = tmp_path / str(number)
        directory.mkdir()
        round_trip(f"{directory}/train{suffix}{form}", {}, **split)
        if form != "/":  # whose shards are in a folder of that name
            assert tfr.read_table(directory).num_rows == tfr.count(directory) == 8
    with tfr.open_writer(tmp_path / f"a{suffix}.gz") as writer:
        writer.write({"n": [1]})
    tfr.merge([tmp_path / f"a{suffix}.gz"] * 2, tmp_path / f"b{suffix}")
    assert tfr.read_table(tmp_path / f"b{suffix}")["n"].to_pylist() == [1, 1]


def test_a_file_that_only_has_the_name_of_records_is_not_read_with_a_directory(tmp_path):
    tfr.write_tfrecord({"n": [1]}, tmp_path / "a.tfrecord")
    (tmp_path / "config.example").write_text("port = 80")
    (tmp_path / "b.rec").write_bytes(b"\x0a\x23\xd7\xce" * 8)  # MXNet's
    assert tfr.read_table(tmp_path)["n"].to_pylist() == [1]


def test_datasets_are_named_like_files(tmp_path):
    for name in ("train", "val.tfrecord"):
        tfr.write_tfrecord({"n": [1, 2]}, tmp_path / name, shards=2)
    assert tfr.count(f"{tmp_path}/{{train,val}}") == 4
    assert tfr.count([tmp_path / "train", tmp_path / "val"]) == 4
    with pytest.raises(FileNotFoundError, match="no such file"):
        resolve_inputs(tmp_path / "trai")
    os.unlink(tmp_path / "train-00001-of-00002")
    with pytest.raises(FileNotFoundError, match="train-00001-of-00002"):
        tfr.read_table(tmp_path / "train")


@pytest.mark.parametrize("split", [ONE, TWO, MANY], ids=str)
def test_shards_next_to_a_file_of_their_name_are_refused(tmp_path, split):
    (tmp_path / "train").touch()
    with pytest.raises(FileExistsError, match="read instead of the shards"):
        tfr.write_tfrecord({"n": [1]}, tmp_path / "train", **split)


@pytest.mark.parametrize(
    "name",
    [
        *("m.parquet", "m.CSV.gz", "out/m.npy", "m.json@4", "m.arrow/", "a.b/m.nc", "m.xz", "m.parq", "m.geojson.gz"),
        *("m.csv-00000-of-00002", "m.parq@4", "me@host.csv", "m@4.parquet", "m.h5ad", "m.dta", "m.data", "m.7z"),
    ],
)
def test_suffixes_of_other_formats_are_refused(name, tmp_path):
    """`convert` is advised where it makes such files."""
    convertible = any(each in name.lower() for each in (".parq", ".npy", ".arrow", ".csv", ".json", ".geojson", ".nc"))
    for write in (Output.resolve, RecordWriter):
        with pytest.raises(
            ValueError, match=r"this writes TFRecord, and \.\w+ is .*; end the name in \.tfrecord"
        ) as caught:
            write(f"{tmp_path}/{name}")
        assert ("tfr.convert makes" in str(caught.value)) is convertible


@pytest.mark.parametrize(
    "name",
    [
        *(
            "m",
            "m.tfrecord.gz",
            "m.v1",
            "d.json/m.tfrec",
            "train@3",
            "train@8.tfrecord",
            "train.tf_record@3",
            "x_tfrecord",
        ),
        *("data.v2", "train.2024-01-01", "model.1", "p.00.5", "name-00000-of-00010", "a.tfrecord-00000-of-00010"),
        *("x.v2-00003-of-00010", "x.v2@8", "data.full/", "events.out.tfevents.1.host", "a.tfevents", ".hidden", "m.gz"),
    ],
)
def test_other_suffixes_are_no_obstacle(name, tmp_path):
    assert targets(Output.resolve(f"{tmp_path}/{name}"))


def test_an_existing_directory_may_have_any_suffix(tmp_path):
    (tmp_path / "tmp.Xb3dKq").mkdir()
    assert targets(Output.resolve(tmp_path / "tmp.Xb3dKq"))


letters = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=9)


@given(
    stem=st.sampled_from(["a", "a-00001", "a.v2", "a.b"]),
    suffix=letters | st.sampled_from([suffix[1:] for suffix in (*Registry.WRITTEN_SUFFIXES, *FORMATS.suffixes())]),
    compression=st.sampled_from(["", ".gz", ".zst"]),
    end=st.sampled_from(["", "@2", "-00000-of-00002"]),
)
def test_a_name_is_written_only_if_no_suffix_contradicts_tfrecord(stem, suffix, compression, end):
    """Wherever the suffix is, and before that of a compression."""
    is_record, path = f".{suffix}" in Registry.WRITTEN_SUFFIXES, f"memory://{stem}.{suffix}{compression}{end}"
    if f".{suffix}" in CODECS.suffixes():
        return
    is_known = FORMATS.of_path(f"x.{suffix}") is not None
    assert OtherSuffix.of_path(path) == (None if is_record else (f".{suffix}", is_known))
    for stated in (False, True):
        if is_record or (stated and not is_known):
            Output.resolve(path, stated=stated)
        else:
            with pytest.raises(ValueError, match="this writes TFRecord"):
                Output.resolve(path, stated=stated)


@pytest.mark.parametrize("path", ["a//b@2", "a///b", "/a/b@2"])
def test_shards_with_empty_parts_in_their_names_are_refused_in_a_bucket(s3, path):
    """Listings of buckets do not show such objects, so the dataset would not be found again. A single one is."""
    keywords = {"storage_options": s3.storage_options}
    with pytest.raises(ValueError, match="must not have empty parts"):
        tfr.write_tfrecord({"x": [1]}, s3.url(path), shards=None if "@" in path else 2, **keywords)
    assert s3.names() == []
    tfr.write_tfrecord({"x": [1]}, s3.url("a//b.tfrecord"), **keywords)
    assert read_by(tfr.read_table, s3.url("a//b.tfrecord"), **keywords).num_rows == 1


def test_empty_parts_of_local_names(tmp_path):
    tfr.write_tfrecord({"x": [1]}, f"{tmp_path}//a@2")
    assert tfr.read_table(f"{tmp_path}//a@2").num_rows == 1


@pytest.mark.parametrize("suffix", [".tfrecord", ".tfrecord.gz", ".tfrec"])
def test_a_spec_before_the_suffix_names_shards_that_end_with_it(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"out@3{suffix}"
    tfr.write_tfrecord({"x": list(range(10))}, path)
    names = {p.name for p in tmp_path.glob(f"out-*{suffix}")}
    assert names == {f"out-{i:05}-of-00003{suffix}" for i in range(3)}
    assert tfr.read_table(path)["x"].to_pylist() == list(range(10))
    assert tfr.read_table(tmp_path / "out@3").num_rows == 10
    assert tfr.read_table(tmp_path / f"out{suffix}@3").num_rows == 10


def test_a_file_of_the_name_of_a_spec_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "out@3.tfrecord"
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    (tmp_path / "a.tfrecord").rename(path)
    assert tfr.read_table(path).num_rows == 1
    tfr.write_tfrecord({"x": [1, 2]}, path)
    assert tfr.read_table(path).num_rows == 2
    assert [p.name for p in tmp_path.iterdir()] == ["out@3.tfrecord"]


@pytest.mark.parametrize("protocol", ["", "memory://"])
def test_a_directory_below_the_one_that_is_read_is_not_read_with_it(protocol: str, tmp_path: Path) -> None:
    folder = f"{protocol}{tmp_path}/d"
    storage = StorageOptions()
    Output.check_outside(f"{folder}/", storage, f"{folder}/merged/", storage)
    for target in (f"{folder}/merged", f"{folder}/merged@2", f"{folder}/p=1/"):
        with pytest.raises(ValueError, match="would be read with it from then on"):
            Output.check_outside(f"{folder}/", storage, target, storage)
