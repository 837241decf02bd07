"""Every reader and writer takes files in buckets, compressed or not, and every command of `tfr` does."""

from __future__ import annotations

import json
from typing import Any

import fsspec
import pyarrow as pa
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from reading import read_by
from servers import Bucket, Web
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.bytes.compression import CODECS

pytestmark = pytest.mark.matrix

ROWS = 3000
SCHEMA = pa.schema([("id", pa.int32()), ("word", pa.string()), ("scores", pa.list_(pa.float32()))])
TABLE = pa.table(
    [range(ROWS), [f"word {i}" for i in range(ROWS)], [[float(i)] * (i % 3) for i in range(ROWS)]], schema=SCHEMA
)
NAMES = ["a.tfrecord", "a.tfrecord.gz", "a.tfrecord.zlib", "a.tfrecord.zst"]


@pytest.fixture(params=NAMES)
def url(request: pytest.FixtureRequest, bucket: Bucket) -> str:
    return bucket.url(f"data/{request.param}")


@pytest.fixture
def options(bucket: Bucket) -> dict[str, Any]:
    return {"storage_options": bucket.storage_options}


def test_a_table_is_written_and_read_back(url: str, bucket: Bucket, options: dict[str, Any]) -> None:
    report = tfr.write_tfrecord(TABLE, url, **options)
    assert report.records == ROWS
    assert bucket.names() == [url.removeprefix(bucket.url())]
    assert read_by(tfr.read_table, url, **options).equals(TABLE)
    assert read_by(tfr.read_tfrecord, url, **options)["id"].tolist() == list(range(ROWS))
    assert tfr.read_table(tfr.dataset(url, filesystem=bucket.fs)).equals(TABLE)
    for threads in (1, 2, 4):
        with read_by(tfr.open_reader, url, threads=threads, batch_size=1000, **options) as reader:
            assert [len(batch) for batch in reader] == [1000] * 3


def test_a_writer_and_a_reader_of_batches(url: str, bucket: Bucket, options: dict[str, Any]) -> None:
    with tfr.open_writer(url, TABLE.schema, **options) as writer:
        for batch in TABLE.to_batches(max_chunksize=700):
            writer.write(batch)
        assert not bucket.names()
    with read_by(tfr.open_reader, url, **options) as reader:
        assert reader.read_all().equals(TABLE)


def test_records_as_bytes(url: str, options: dict[str, Any]) -> None:
    payloads = [bytes([i % 256]) * i for i in range(200)]
    with tfr.RecordWriter(url, **options) as writer:
        for payload in payloads:
            writer.write(payload)
    with read_by(tfr.RecordReader, url, **options) as reader:
        assert list(reader) == payloads
    with read_by(tfr.RecordReader, url, **options) as reader:
        assert next(reader) == payloads[0]


def test_tools(url: str, options: dict[str, Any]) -> None:
    tfr.write_tfrecord(TABLE, url, **options)
    assert read_by(tfr.count, url, **options) == ROWS
    assert read_by(tfr.verify, url, **options).ok
    assert read_by(tfr.describe, url, **options).records == ROWS
    found = read_by(tfr.read_metadata, url, **options)
    assert found.schema.names == TABLE.schema.names
    assert found.files[0].path == url
    assert read_by(tfr.infer_schema, url, **options).names


def test_all_files_of_a_folder_a_glob_and_a_shard_spec(bucket: Bucket, options: dict[str, Any]) -> None:
    for i in range(3):
        tfr.write_tfrecord(TABLE.slice(i * 1000, 1000), bucket.url(f"d/train-{i:05d}-of-00003"), **options)
    for path in ("d", "d/", "d/train-*", "d/train@3", "d/train@*", "d/train-0000{0..2}-of-00003"):
        assert read_by(tfr.read_table, bucket.url(path), **options).equals(TABLE), path
    listed = [bucket.url(f"d/train-{i:05d}-of-00003") for i in (2, 0)]
    assert read_by(tfr.read_table, listed, **options)["id"].to_pylist() == [*range(2000, 3000), *range(1000)]


@pytest.mark.parametrize("beside", ["", "notes.txt", "c.tfrecord"])
def test_patterns_match_objects_whose_names_begin_those_of_others(s3: Bucket, beside: str) -> None:
    options = {"storage_options": s3.storage_options}
    for name in ("a", "b"):
        tfr.write_tfrecord(TABLE, s3.url(f"d/{name}.tfrecord"), **options)
    s3.fs.call_s3("put_object", Bucket=s3.name, Key=f"d/a.tfrecord/{beside}", Body=b"")
    s3.fs.call_s3("put_object", Bucket=s3.name, Key="d/none.tfrecord/", Body=b"")
    for path in ("d/*.tfrecord", "d/*", "*/*.tfrecord", "d/?.tfrecord", "d"):
        assert tfr.count(s3.url(path), **options) == 2 * ROWS, path


@pytest.mark.parametrize("compression", [None, *CODECS.names()])
@pytest.mark.parametrize("how", ["d/train@4", "d/", "d/train@*"])
def test_sharded_datasets(bucket: Bucket, options: dict[str, Any], compression: str | None, how: str) -> None:
    size = {"max_shard_bytes": 40_000} if how.endswith("*") else {} if how.endswith("4") else {"shards": 3}
    report = tfr.write_tfrecord(TABLE, bucket.url(how), compression=compression, **size, **options)
    assert len(report.files) == {"4": 4, "/": 3}.get(how[-1], len(report.files)) > 2
    assert sum(name.startswith("d/_MANIFEST") for name in bucket.names()) == 1
    path = bucket.url(how)
    assert read_by(tfr.read_table, path, **options).equals(TABLE)
    assert read_by(tfr.count, path, **options) == ROWS
    assert read_by(tfr.verify, path, **options).ok
    assert read_by(tfr.read_metadata, path, **options).records == ROWS
    with pytest.raises(FileExistsError):
        tfr.write_tfrecord(TABLE, path, compression=compression, **size, **options)
    tfr.write_tfrecord(TABLE.slice(0, 100), path, compression=compression, mode="overwrite", **size, **options)
    assert read_by(tfr.read_table, path, **options).equals(TABLE.slice(0, 100))
    with read_by(tfr.open_reader, path, threads=4, **options) as reader:
        assert reader.read_all().num_rows == 100


@pytest.mark.fault(24)
def test_missing_files_are_named_by_url(bucket: Bucket, options: dict[str, Any]) -> None:
    for path in ("none.tfrecord", "none*", "none@2", "none-{0..3}"):
        with pytest.raises(FileNotFoundError) as caught:
            read_by(tfr.read_table, bucket.url(path), **options)
        assert caught.value.filename.startswith(bucket.url("none"))


def run(*arguments: str) -> Any:
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_commands_take_what_fsspec_is_configured_for(url: str, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fsspec.config.conf, bucket.protocol, bucket.storage_options)
    tfr.write_tfrecord(TABLE, url)
    assert json.loads(run("head", "-n", "1", "--json", url)) == [{"id": 0, "word": "word 0", "scores": []}]
    assert "int32" in run("schema", url)
    assert run("count", url).strip() == str(ROWS)
    assert json.loads(run("verify", "--json", url))["ok"]
    assert "3,000 records" in run("describe", url)
    target = bucket.url("shards/train@2")
    run("convert", url, target)
    assert run("count", target).strip() == str(ROWS)


def test_chained_urls(bucket: Bucket, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord(TABLE, bucket.url("a.tfrecord"), storage_options=bucket.storage_options)
    options = {bucket.protocol: bucket.storage_options, "simplecache": {"cache_storage": str(tmp_path)}}
    for _ in range(2):
        assert tfr.read_table(f"simplecache::{bucket.url('a.tfrecord')}", storage_options=options).equals(TABLE)
    assert len(list(tmp_path.iterdir())) == 1


def test_a_folder_of_a_bucket_as_a_filesystem(bucket: Bucket) -> None:
    from fsspec.implementations.dirfs import DirFileSystem

    fs = DirFileSystem(f"{bucket.name}/inner", fs=bucket.fs)
    tfr.write_tfrecord(TABLE, "a.tfrecord", filesystem=fs)
    assert bucket.names() == ["inner/a.tfrecord"]
    assert tfr.read_table(tfr.dataset("a.tfrecord", filesystem=fs)).equals(TABLE)


def test_pyarrow_filesystems(s3: Bucket) -> None:
    from pyarrow import fs

    scheme, _, host = s3.storage_options["endpoint_url"].partition("://")
    arrow = fs.S3FileSystem(access_key="k", secret_key="s", endpoint_override=host, scheme=scheme, region="us-east-1")
    tfr.write_tfrecord(TABLE, f"{s3.name}/a.tfrecord", filesystem=arrow)
    assert s3.names() == ["a.tfrecord"]
    with tfr.open_reader(tfr.dataset(f"{s3.name}/a.tfrecord", filesystem=arrow)) as reader:
        assert reader.read_all().equals(TABLE)
    assert tfr.count(tfr.dataset(f"{s3.name}/", filesystem=arrow)) == ROWS


def test_client_kwargs_as_s3fs_takes_them(s3: Bucket) -> None:
    options = {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": s3.storage_options["endpoint_url"]}}
    tfr.write_tfrecord(TABLE, s3.url("a.tfrecord"), storage_options=options)
    assert tfr.read_table(s3.url("a.tfrecord"), storage_options=options).equals(TABLE)


def test_public_buckets_are_read_without_an_account(s3: Bucket) -> None:
    tfr.write_tfrecord(TABLE, s3.url("a.tfrecord"), storage_options=s3.storage_options)
    s3.fs.call_s3("put_object_acl", Bucket=s3.name, Key="a.tfrecord", ACL="public-read")
    options = {"anon": True, "endpoint_url": s3.storage_options["endpoint_url"]}
    assert tfr.read_table(s3.url("a.tfrecord"), storage_options=options).equals(TABLE)


# ---- the web: no listings


@pytest.fixture
def shards(web: Web, tmp_path: Any) -> Web:
    for i in range(3):
        tfr.write_tfrecord(TABLE.slice(i * 1000, 1000), tmp_path / "a")
        web.files[f"d/train.tfrecord-{i:05d}-of-00003"] = (tmp_path / "a").read_bytes()
    return web


@pytest.mark.parametrize("refused", [404, 403])
@pytest.mark.parametrize(
    "path", ["train.tfrecord-0000{0,1,2}-of-00003", "train.tfrecord-{00000..00002}-of-00003", "train.tfrecord@3"]
)
def test_explicit_names_are_read_from_the_web(shards: Web, path: str, refused: int) -> None:
    shards.refused = refused
    assert tfr.read_table(shards.url(f"d/{path}")).equals(TABLE)


def test_shards_of_the_web_by_a_bare_stem_and_query_strings(shards: Web) -> None:
    assert tfr.read_table(shards.url("d/train@3")).equals(TABLE)
    assert tfr.read_table(shards.url("d/train.tfrecord-00000-of-00003?signature=a@b%2F1")).num_rows == 1000


@pytest.mark.parametrize("refused", [404, 403])
@pytest.mark.parametrize("shards", [2, 40])
def test_a_dataset_of_the_web_that_was_appended_to_is_read_by_its_manifest(
    web: Web, tmp_path: Any, shards: int, refused: int
) -> None:
    web.refused = refused
    tfr.write_tfrecord({"x": range(100)}, tmp_path / f"t@{shards}")
    for begin in (100, 200):
        tfr.write_tfrecord({"x": range(begin, begin + 100)}, tmp_path / "t@*", mode="append")
    web.files.update((path.name, path.read_bytes()) for path in tmp_path.iterdir())
    assert tfr.count(web.url(f"t@{shards}")) == 300
    for name in (f"t@{shards}", "t@*"):
        assert tfr.read_table(web.url(name)).equals(tfr.read_table(tmp_path / name))
    with pytest.raises((FileNotFoundError, PermissionError), match="t"):
        tfr.read_table(web.url("t@3"))


def test_any_number_of_shards_is_looked_up_on_the_web_by_the_first(shards: Web) -> None:
    count = 10**17
    with pytest.raises(FileNotFoundError, match="no shard such as 'train-00000-of-1"):
        tfr.read_table(shards.url(f"d/train@{count}"))
    shards.files[f"d/train-00000-of-{count}"] = b"?"
    with pytest.raises(ValueError, match="expected at most 1,000,000 shards on a web server"):
        tfr.read_table(shards.url(f"d/train@{count}"))


@pytest.mark.parametrize("path", ["d/*", "d/train@*", "d/", "d/train.tfrecord-0000[01]-of-00003"])
def test_listings_are_refused_on_the_web(shards: Web, path: str) -> None:
    with pytest.raises(ValueError, match="a web server has no listing of its files") as caught:
        tfr.read_table(shards.url(path))
    assert shards.url("d/") in str(caught.value)


@pytest.mark.fault(24)
def test_errors_of_a_web_server_are_reported(shards: Web) -> None:
    with pytest.raises(FileNotFoundError):
        tfr.read_table(shards.url("d/none.tfrecord"))
    shards.files.update((f"d/x-0000{i}-of-00004", b"") for i in range(3))
    with pytest.raises(FileNotFoundError, match="shard 3 of 4 is missing") as caught:
        tfr.read_table(shards.url("d/x@4"))
    assert caught.value.filename == shards.url("d/x-00003-of-00004")
    assert tfr.count(tfr.dataset(shards.url("d/x@4"), allow_missing_shards=True)) == 0
    shards.refused = 403
    with pytest.raises(PermissionError):
        tfr.read_table(shards.url("d/none.tfrecord"))
    shards.refused = 500
    with pytest.raises(OSError, match="500"):
        tfr.read_table(shards.url("d/none.tfrecord"))
    with pytest.raises(OSError, match="onnect"):
        tfr.read_table("http://127.0.0.1:9/a.tfrecord")
    with pytest.raises(OSError, match="web server is read-only"):
        tfr.write_tfrecord(TABLE, shards.url("d/new.tfrecord"))
    with pytest.raises(OSError, match="web server is read-only"):
        tfr.write_tfrecord(TABLE, shards.url("d/new@2"))
