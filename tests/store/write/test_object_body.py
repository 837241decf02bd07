"""An upload that begins before all bytes are there ends only with all of them, and may be made again."""

from __future__ import annotations

import asyncio
import io
import random
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

import tfrecord_io as tfr
from chaos import Chaos, Schedule
from limited import set_limits
from servers import Bucket
from tfrecord_io.base import StorageOptions
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.write.atomic import open_named
from tfrecord_io.store.write.object_body import ObjectBody, sign_without_body

CONTENT = random.Random(0).randbytes(3 << 20)
HALF = len(CONTENT) // 2
SIGNED = pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed"])


def options(bucket: Bucket, *, signed: bool, **more: Any) -> dict[str, Any]:
    """A signature of a body needs all of it; over TLS none is made."""
    config = {"s3": {"payload_signing_enabled": signed}}
    return {**bucket.storage_options, "config_kwargs": config, **more}


def opened(bucket: Bucket, name: str, *, signed: bool, size: int = len(CONTENT), **more: Any) -> Any:
    storage = StorageOptions(options(bucket, signed=signed, **more))
    output = open_named(*Location.of(bucket.url(name), storage), exclusive=True, looks=False)
    output.states_crc32c = True
    output.expect(size, get_engine().crc32c(CONTENT))
    return output


async def sent(body: ObjectBody, count: int, seconds: float = 0.05) -> bytes:
    """What a request can send, up to so many bytes, until it waits."""
    pieces = bytearray()

    async def take() -> None:
        async for piece in body:
            pieces.extend(piece)
            if len(pieces) >= count:
                return

    with suppress(TimeoutError):
        await asyncio.wait_for(take(), seconds)
    return bytes(pieces)


def test_the_last_byte_waits_until_the_content_is_complete() -> None:
    async def run() -> None:
        body = ObjectBody(len(CONTENT), asyncio.get_running_loop())
        assert await sent(body, 1) == b""
        body.append(memoryview(CONTENT)[:HALF])
        assert await sent(body, len(CONTENT)) == CONTENT[:HALF]
        body.append(memoryview(CONTENT)[HALF:])
        assert await sent(body, len(CONTENT)) == CONTENT[:-1]
        with pytest.raises(io.UnsupportedOperation):
            body.read(1)
        waiting = asyncio.ensure_future(sent(body, len(CONTENT), 10))
        await asyncio.sleep(0.01)
        body.complete()
        assert await waiting == CONTENT
        assert await sent(body, len(CONTENT)) == CONTENT  # again
        assert body.read(10) + body.read() == CONTENT
        assert body.seek(0) == 0
        assert body.tell() == 0

    asyncio.run(run())


@pytest.mark.parametrize("url", ["https://bucket.s3.amazonaws.com/a", "http://127.0.0.1:1/a"])
def test_a_signature_over_tls_leaves_out_the_body(url: str) -> None:
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    body = ObjectBody(10, asyncio.new_event_loop())
    request = AWSRequest("PUT", url, {"x-amz-checksum-crc32c": "AAAAAA=="}, body)
    request.context = {"has_streaming_input": True, "client_config": None, "timestamp": "20260101T000000Z"}
    sign_without_body(request)
    signer = auth.S3SigV4Auth(Credentials("k", "s"), "s3", "us-east-1")
    if url.startswith("https"):
        assert signer.payload(request) == "UNSIGNED-PAYLOAD"
    else:
        with pytest.raises(io.UnsupportedOperation):
            signer.payload(request)


@SIGNED
def test_the_object_appears_at_commit(s3: Bucket, signed: bool) -> None:
    with opened(s3, "a", signed=signed) as output:
        output.write(CONTENT[:HALF])
        output.write(CONTENT[HALF:])
        assert not s3.names()
    assert s3.fs.cat_file(s3.url("a")) == CONTENT


@SIGNED
@pytest.mark.parametrize("written", [0, HALF, len(CONTENT)])
def test_an_upload_that_is_discarded_stores_nothing(s3: Bucket, signed: bool, written: int) -> None:
    output = opened(s3, "a", signed=signed)
    output.write(CONTENT[:written])
    begin = time.monotonic()
    output.discard()
    assert time.monotonic() - begin < 5
    assert not s3.names()


@SIGNED
def test_an_upload_of_another_size_or_of_other_bytes_stores_nothing(s3: Bucket, signed: bool) -> None:
    output = opened(s3, "a", signed=signed)
    output.write(CONTENT[:HALF])
    with pytest.raises(OSError, match=f"{HALF} bytes instead of {len(CONTENT)}"):
        output.commit()
    output = opened(s3, "a", signed=signed, size=HALF)
    with pytest.raises(OSError, match=f"more than the {HALF} bytes"), output:
        output.write(CONTENT)
    assert not s3.names()


@SIGNED
def test_an_object_that_exists_is_not_replaced(s3: Bucket, signed: bool) -> None:
    s3.fs.pipe_file(s3.url("a"), b"other")
    with pytest.raises(FileExistsError), opened(s3, "a", signed=signed) as output:
        output.write(CONTENT)
    assert s3.fs.cat_file(s3.url("a")) == b"other"


@SIGNED
@pytest.mark.parametrize("seed", range(5))
def test_a_request_that_failed_is_made_again(
    s3: Bucket, chaos: Chaos, monkeypatch: pytest.MonkeyPatch, seed: int, signed: bool
) -> None:
    set_limits(monkeypatch, backoff_seconds=0.001)
    chaos.schedules["a"] = Schedule(seed, faults=1, odds=1)
    with opened(s3, "a", signed=signed, endpoint_url=chaos.endpoint) as output:
        output.write(CONTENT)
    assert s3.fs.cat_file(s3.url("a")) == CONTENT


def test_damage_that_is_found_at_the_end_publishes_no_file(s3: Bucket, tmp_path: Any) -> None:
    table = {"x": [CONTENT[i * 1000 : (i + 1) * 1000] for i in range(2000)]}
    tfr.write_tfrecord(table, f"{tmp_path}/d/train@2")
    path = tmp_path / "d" / "train-00001-of-00002"
    content = bytearray(path.read_bytes())
    content[-500] ^= 1
    path.write_bytes(content)
    with pytest.raises(tfr.errors.CorruptRecordError, match="train-00001-of-00002: record 999"):
        tfr.copy(f"{tmp_path}/d/", s3.url("d"), storage_options=options(s3, signed=False), threads=1)
    assert s3.names() == ["d/_MANIFEST-train.json", "d/train-00000-of-00002"]


def test_the_upload_begins_before_the_file_was_read(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    real = ObjectBody.__aiter__

    def note(self: ObjectBody) -> Any:
        begun.set()
        return real(self)

    monkeypatch.setattr(ObjectBody, "__aiter__", note)
    with opened(s3, "a", signed=False) as output:
        output.write(CONTENT[:HALF])
        assert begun.wait(10)
        output.write(CONTENT[HALF:])
    assert s3.fs.cat_file(s3.url("a")) == CONTENT


@SIGNED
def test_parts_of_a_large_object_arrive_as_they_are(s3: Bucket, monkeypatch: pytest.MonkeyPatch, signed: bool) -> None:
    set_limits(monkeypatch, s3_part_bytes=5 << 20)
    with opened(s3, "a", signed=signed, size=4 * len(CONTENT)) as output:
        for _ in range(4):
            output.write(CONTENT)
    assert s3.fs.cat_file(s3.url("a")) == 4 * CONTENT
    assert not s3.uploads()
