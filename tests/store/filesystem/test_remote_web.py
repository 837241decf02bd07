"""What web servers say of a file, and how often they are asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

import tfrecord_io as tfr
from limited import limited
from servers import Bucket, Web, around_requests


@pytest.fixture
def url(web: Web, tmp_path: Path) -> str:
    tfr.write_tfrecord({"x": list(range(3000))}, tmp_path / "a.tfrecord")
    web.files["a.tfrecord"] = (tmp_path / "a.tfrecord").read_bytes()
    return web.url("a.tfrecord")


@pytest.mark.parametrize("head", [0, 403, 405, 501])
def test_what_head_leaves_open_is_asked_by_get(web: Web, url: str, head: int) -> None:
    web.head = head
    assert tfr.read_table(url).num_rows == 3000


def test_an_empty_file_has_no_rows(web: Web) -> None:
    web.files["empty.tfrecord"] = b""
    with pytest.warns(tfr.errors.SchemaWarning, match="no records"):
        assert tfr.read_table(web.url("empty.tfrecord")).num_rows == 0


def test_a_server_that_is_busy_is_asked_again(web: Web, url: str) -> None:
    with limited(backoff_seconds=0.001):
        web.failures = 3
        assert tfr.read_table(url).num_rows == 3000
        assert tfr.read_table([url, url]).num_rows == 6000
        web.failures = 1000
        with pytest.raises(OSError, match="503"):
            tfr.read_table(url)
    assert 1000 - web.failures <= 8


@pytest.mark.parametrize("status", [404, 410])
def test_an_absent_file_takes_one_request(web: Web, status: int) -> None:
    web.refused = status
    with pytest.raises(FileNotFoundError):
        tfr.read_table(web.url("none.tfrecord"))
    assert web.requests == ["HEAD none.tfrecord None"]


@pytest.mark.parametrize(
    ("form", "sent"),
    [
        ("bytes {}-{}/{}", "asked for the bytes from 4096, the server answered with those from 4089"),
        (None, "the server does not state which it sent"),
        ("7", "the server does not state which it sent"),
        ("bytes={}-{}/{}", "the server answered with those from 4089"),
        ("Bytes {}-{}/*", "the server answered with those from 4089"),
    ],
)
def test_a_range_that_begins_elsewhere_is_an_error_whatever_is_stated(
    web: Web, url: str, form: str | None, sent: str
) -> None:
    with limited(backoff_seconds=0.001, stream_range_bytes=1 << 12, largest_range_bytes=1 << 12):
        web.content_range, web.shift = form, 7
        with pytest.raises(OSError, match=sent):
            tfr.read_table(url)


def test_names_of_indexes_take_one_request_each(web: Web, url: str) -> None:
    assert tfr.count(url) == 3000
    assert len(web.requests) == len(set(web.requests)) <= 13


def test_indexes_of_a_file_in_a_bucket_take_one_request(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names begin with that of the file, up to its suffix: one listing has them all."""
    tfr.write_tfrecord({"x": [1, 2, 3]}, bucket.url("d/a.tfrecord"), storage_options=bucket.storage_options)
    asked = []

    async def counted(name: str, key: str, call: Callable[[], Awaitable[object]]) -> object:
        asked.append(name)
        return await call()

    around_requests(bucket, monkeypatch, counted)
    assert tfr.count(bucket.url("d/a.tfrecord"), storage_options=bucket.storage_options) == 3
    assert len(asked) <= 6, asked
