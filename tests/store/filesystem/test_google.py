"""Google Cloud Storage: what reading takes, what a refusal is, and objects that are stored compressed."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from gcs_server import Fault, GcsServer
from reading import read_by
from servers import Bucket
from tfrecord_io.store.filesystem.google import ask_over_https

TABLE = pa.table({"x": range(640)})
SHARDS = 40


def options_of(bucket: Bucket) -> dict[str, Any]:
    return {"storage_options": bucket.storage_options}


def opened(bucket: Bucket, name: str) -> int:
    with read_by(tfr.open_random, bucket.url(name), **options_of(bucket)) as records:
        return int(records[3]["x"])


CALLS: dict[str, Callable[[Bucket, str], Any]] = {
    "count": lambda bucket, name: read_by(tfr.count, bucket.url(name), **options_of(bucket)),
    "verify": lambda bucket, name: read_by(tfr.verify, bucket.url(name), **options_of(bucket)).ok,
    "open_random": opened,
    "read_table": lambda bucket, name: read_by(tfr.read_table, bucket.url(name), **options_of(bucket)).num_rows,
    "write_tfrecord": lambda bucket, name: tfr.write_tfrecord(TABLE, bucket.url(name), **options_of(bucket)).records,
}


@pytest.fixture
def one(google: Bucket, gcs_server: GcsServer) -> str:
    tfr.write_tfrecord(TABLE, google.url("one/a.tfrecord"), **options_of(google))
    gcs_server.reset()
    return "one/a.tfrecord"


# ---- requests


@pytest.mark.parametrize(("call", "most"), [("count", 2), ("verify", 3), ("open_random", 5), ("read_table", 2)])
def test_one_object_takes_a_handful_of_requests(
    google: Bucket, gcs_server: GcsServer, one: str, call: str, most: int
) -> None:
    CALLS[call](google, one)
    assert len(gcs_server.requests) <= most, gcs_server.requests


@pytest.mark.parametrize("call", ["verify", "open_random", "read_table"])
def test_each_file_of_a_dataset_is_one_request(google: Bucket, gcs_server: GcsServer, call: str) -> None:
    tfr.write_tfrecord(TABLE, google.url(f"d/train@{SHARDS}"), **options_of(google))
    gcs_server.reset()
    CALLS[call](google, "d/")
    most = SHARDS + (12 if call == "open_random" else 8)
    assert len(gcs_server.requests) <= most, gcs_server.counted()


def test_column_indexes_take_a_read_and_an_upload_each(google: Bucket, gcs_server: GcsServer) -> None:
    tfr.write_tfrecord(TABLE, google.url(f"d/train@{SHARDS}"), **options_of(google))
    gcs_server.reset()
    read_by(tfr.build_index, google.url("d/"), columns=["x"], **options_of(google))
    assert gcs_server.counted()["upload"] == SHARDS
    assert len(gcs_server.requests) <= 2 * SHARDS + 12, gcs_server.counted()
    gcs_server.reset()
    found = read_by(tfr.read_table, google.url("d/"), filters=[("x", "==", 77)], **options_of(google))
    assert found["x"].to_pylist() == [77]
    assert len(gcs_server.requests) <= SHARDS + 12, gcs_server.counted()


# ---- refusals


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("refused", [".", "GET"])
def test_what_is_forbidden_is_a_permissionerror_at_once(
    google: Bucket, gcs_server: GcsServer, one: str, call: str, refused: str
) -> None:
    gcs_server.faults.append(Fault(refused, "403", times=1000, message="ann does not have storage.objects.get access"))
    with pytest.raises(PermissionError):
        CALLS[call](google, one)
    assert len(gcs_server.requests) <= 4, gcs_server.requests


@pytest.mark.parametrize("status", ["401", "403"])
@pytest.mark.parametrize("call", ["count", "verify", "open_random", "read_table"])
def test_an_object_of_a_bucket_that_may_not_be_listed(
    google: Bucket, gcs_server: GcsServer, one: str, call: str, status: str
) -> None:
    """Of absent objects the store says there, too, that access is denied."""
    expected = CALLS[call](google, one)
    absent = rf"GET /storage/v1/b/[^/]+/o(\?|/(?!{one}))|alt=media.*\.index"
    gcs_server.faults.append(Fault(absent, status, times=1000, message="ann does not have storage.objects.list access"))
    gcs_server.requests.clear()
    assert CALLS[call](google, one) == expected
    assert len(gcs_server.requests) <= 32, gcs_server.requests


def test_an_upload_that_is_forbidden(google: Bucket, gcs_server: GcsServer) -> None:
    gcs_server.faults.append(Fault("^POST /upload", "403", times=1000, message="no storage.objects.create access"))
    for name in ("a.tfrecord", "d/train@4"):
        with pytest.raises(PermissionError):
            CALLS["write_tfrecord"](google, name)
    assert gcs_server.buckets[google.name] == {}


# ---- faults


@pytest.mark.parametrize("kind", ["reset", "short", "503"])
def test_a_request_that_fails_once(google: Bucket, gcs_server: GcsServer, one: str, kind: str) -> None:
    gcs_server.faults.append(Fault("alt=media", kind))
    assert read_by(tfr.read_table, google.url(one), **options_of(google)).equals(TABLE)
    assert gcs_server.faults[0].times == 0


@pytest.mark.parametrize("overwrite", [False, True])
def test_uploads_whose_answers_are_lost(google: Bucket, gcs_server: GcsServer, overwrite: bool) -> None:
    """Each is made again, and refused then: the objects are those of this writer."""
    if overwrite:
        tfr.write_tfrecord(TABLE.slice(0, 10), google.url("d/train@3"), **options_of(google))
        gcs_server.reset()
    gcs_server.faults += [Fault("^POST /upload", "lost", skip=skip) for skip in (1, 2, 3)]
    tfr.write_tfrecord(TABLE, google.url("d/train@3"), mode="overwrite" if overwrite else "error", **options_of(google))
    assert read_by(tfr.read_table, google.url("d/"), **options_of(google)).equals(TABLE)
    assert len(gcs_server.buckets[google.name]) == 4


def test_an_object_is_copied_by_several_calls(google: Bucket, gcs_server: GcsServer) -> None:
    gcs_server.rewrite_bytes = 1000
    for _ in range(2):
        tfr.write_tfrecord(TABLE, google.url("d/train@3"), mode="overwrite", **options_of(google))
    assert gcs_server.counted()["rewrite"] > 6
    assert read_by(tfr.read_table, google.url("d/"), **options_of(google)).equals(TABLE)


# ---- names, and stored forms


@pytest.mark.parametrize("kind", ["s3", "google"])
@pytest.mark.parametrize(
    "name", ["50%/a.tfrecord", "p%20q/a.tfrecord", "a%2Fb/t@4", "a%zz/t@4", "q#1/a b@2", "q?1+/t@2"]
)
def test_names_with_characters_of_urls(request: pytest.FixtureRequest, kind: str, name: str) -> None:
    bucket: Bucket = request.getfixturevalue(kind)
    for overwrite in (False, True):
        tfr.write_tfrecord(TABLE, bucket.url(name), mode="overwrite" if overwrite else "error", **options_of(bucket))
        for path in (name, f"{name.partition('/')[0]}/"):
            assert read_by(tfr.read_table, bucket.url(path), **options_of(bucket)).equals(TABLE)
    assert {key.partition("/")[0] for key in bucket.names()} == {name.partition("/")[0]}


@pytest.mark.parametrize("size", [10, 100_000])
def test_an_object_with_content_encoding_gzip(google: Bucket, gcs_server: GcsServer, size: int) -> None:
    """As ``gsutil cp -Z`` stores it: the client decodes it, and ranges are those of the stored bytes."""
    table = pa.table({"x": [os.urandom(size) for _ in range(20)]})
    tfr.write_tfrecord(table, google.url("d/train@2"), **options_of(google))
    for key, stored in gcs_server.buckets[google.name].items():
        gcs_server.put(google.name, key, gzip.compress(stored.data), contentEncoding="gzip")
    assert read_by(tfr.read_table, google.url("d/"), **options_of(google)).equals(table)
    assert read_by(tfr.read_table, google.url("d/train-00000-of-00002"), **options_of(google)).equals(
        table.slice(0, 10)
    )
    assert read_by(tfr.count, google.url("d/"), **options_of(google)) == 20
    assert read_by(tfr.verify, google.url("d/"), **options_of(google)).ok
    with pytest.raises(ValueError, match="Content-Encoding"):
        read_by(tfr.open_random, google.url("d/"), **options_of(google))


def test_an_encoded_object_in_s3_is_read_as_it_is_stored(s3: Bucket) -> None:
    tfr.write_tfrecord(TABLE, s3.url("a.tfrecord"), **options_of(s3))
    data = gzip.compress(s3.fs.cat_file(s3.url("a.tfrecord")))
    s3.fs.call_s3("put_object", Bucket=s3.name, Key="a.tfrecord", Body=data, ContentEncoding="gzip")
    assert read_by(tfr.read_table, s3.url("a.tfrecord"), **options_of(s3)).equals(TABLE)


def test_the_kind_of_a_bucket_is_asked_over_https(google: Bucket, gcs_server: GcsServer) -> None:
    extended = pytest.importorskip("gcsfs.extended_gcsfs")
    fs = extended.ExtendedGcsFileSystem(**google.storage_options, skip_instance_cache=True)
    ask_over_https(fs)
    kinds = extended.BucketType
    assert fs._sync_lookup_bucket_type(google.name) == kinds.NON_HIERARCHICAL
    assert gcs_server.requests == [f"GET /storage/v1/b/{google.name}/storageLayout?"]
    for status in ("401", "403", "404"):
        fs._storage_layout_cache.clear()
        gcs_server.faults[:] = [Fault("storageLayout", status)]
        assert fs._sync_lookup_bucket_type(google.name) == kinds.NON_HIERARCHICAL
    assert tfr.write_tfrecord(TABLE, f"{google.name}/a@2", filesystem=fs).records == 640
    assert tfr.count(tfr.dataset(f"{google.name}/a@2", filesystem=fs)) == 640
