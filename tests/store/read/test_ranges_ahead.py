"""A remote file read by range requests has the bytes of the file, and requests stay within their limits."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limited import set_limits
from servers import Bucket, Web
from tfrecord_io.base import StorageOptions
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read import ranges_ahead
from tfrecord_io.store.read.files_ahead import SourcePrefetcher
from tfrecord_io.store.read.range_requests import RemoteObject
from tfrecord_io.store.read.ranges_ahead import RangeReader, Window

MIB = 1 << 20


class MemoryObject(RemoteObject):
    """Bytes in memory, served by requests, which are recorded; `script` has the outcomes of the next ones."""

    path = "mem://file"
    most_concurrent = 0  # requests
    seconds = 0.0  # that a request takes

    def __init__(self, data: bytes, script: list[Any] | None = None) -> None:
        import fsspec.asyn

        self.data, self.script = data, script or []
        self.requests: list[tuple[int, int]] = []
        self._loop = fsspec.asyn.get_loop()
        self._now = 0

    def submit(self, request: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(request, self._loop)

    async def read_range(self, begin: int, end: int) -> bytes:
        self.requests.append((begin, end))
        self._now += 1
        self.most_concurrent = max(self.most_concurrent, self._now)
        try:
            await asyncio.sleep(self.seconds)
            step = self.script.pop(0) if self.script else None
            if isinstance(step, Exception):
                raise step
            if isinstance(step, asyncio.Event):
                await step.wait()
            return self.data[begin : end if step is None else begin + step]
        finally:
            self._now -= 1

    async def check_unchanged(self) -> None:
        pass


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, backoff_seconds=0.0001)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    make_small(monkeypatch)


def make_small(patch: pytest.MonkeyPatch) -> None:
    set_limits(patch, first_range_bytes=10, stream_range_bytes=20, largest_range_bytes=40, pending_range_bytes=200)
    patch.setattr(ranges_ahead, "_KEPT_START_BYTES", 50)


def read(raw: Any, size: int) -> bytes:
    buffer = memoryview(bytearray(size))
    done = 0
    while done < size and (n := raw.readinto(buffer[done:])):
        done += n
    return bytes(buffer[:done])


def reader_of(data: bytes, script: list[Any] | None = None, **kwargs: Any) -> tuple[RangeReader, MemoryObject]:
    remote = MemoryObject(data, script)
    return RangeReader(remote, len(data), **kwargs), remote


steps = st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=20)


@given(
    st.integers(0, 400),
    steps,
    st.lists(st.sampled_from([None, None, 3, OSError(5, "broken"), ConnectionResetError()]), max_size=12),
)
def test_reads_and_seeks_give_the_bytes_of_the_file(
    size: int, steps: list[tuple[bool, int]], script: list[Any]
) -> None:
    data = random.Random(size).randbytes(size)
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        set_limits(patch, tries=20)
        reader, _ = reader_of(data, script)
        at = 0
        for go, number in steps:
            if go:
                at = min(number, size)
                assert reader.seek(at) == reader.tell() == at
            else:
                got = read(reader, number)
                assert got == data[at : at + number]
                at += len(got)
        reader.seek(0)
        assert read(reader, size + 1) == data
        reader.close()


@pytest.mark.fault(62)
def test_short_body_is_continued_where_it_ended(small: None) -> None:
    reader, remote = reader_of(bytes(range(10)), [4, ConnectionResetError(), 3])
    assert read(reader, 20) == bytes(range(10))
    assert remote.requests == [(0, 10), (4, 10), (4, 10), (7, 10)]


@pytest.mark.fault(61)
@pytest.mark.fault(62)
@pytest.mark.parametrize(
    "error", [OSError(5, "Input/output error"), ConnectionResetError(), RuntimeError("of some library"), 0]
)
def test_lasting_error_is_raised_after_the_bytes_before_it(small: None, error: Any) -> None:
    reader, remote = reader_of(bytes(100), [10, None, 4, *([error] * 1000)], window=None)
    got = bytearray()
    with pytest.raises(OSError, match="tried 5 times") as caught:  # noqa: PT012
        while piece := read(reader, 1):
            got += piece
    assert caught.value.filename == "mem://file"
    assert len(got) < 100
    assert bytes(got) == bytes(len(got))
    requests = len(remote.requests)
    with pytest.raises(OSError, match="tried 5 times"):
        read(reader, 1)
    assert len(remote.requests) == requests
    reader.close()


def test_permanent_errors_are_not_retried(small: None) -> None:
    refused, gone, invalid = PermissionError("Forbidden"), FileNotFoundError("gone"), OSError(22, "Invalid range")
    for error, text in ((refused, "Forbidden"), (gone, "was replaced"), (invalid, "Invalid range")):
        reader, remote = reader_of(bytes(5), [error])
        with pytest.raises(OSError, match=text) as caught:
            read(reader, 5)
        assert caught.value.filename == "mem://file"
        assert len(remote.requests) == 1


def test_reading_the_start_takes_one_request(small: None) -> None:
    reader, remote = reader_of(bytes(1000))
    read(reader, 3)
    read(reader, 7)
    assert remote.requests == [(0, 10)]
    reader.seek(500)
    read(reader, 3)
    assert remote.requests == [(0, 10), (500, 510)]
    reader.seek(700)
    read(reader, 30)  # a large buffer is filled by one request
    assert remote.requests[2:] == [(700, 730)]
    reader.close()


def test_reading_on_requests_more_and_larger_ranges_within_limits(small: None) -> None:
    reader, remote = reader_of(bytes(5000))
    remote.seconds = 0.002
    assert read(reader, 5000) == bytes(5000)
    assert max(end - begin for begin, end in remote.requests) == 40
    assert remote.most_concurrent > 2
    assert reader._window._ranges == reader._window._bytes == 0


def test_bytes_requested_ahead_are_limited(small: None) -> None:
    reader, remote = reader_of(bytes(5000))
    requested = 0
    for at in range(5000):
        assert read(reader, 1) == b"\0"
        requested = max(requested, max(end for _, end in list(remote.requests)) - at)
    assert requested <= 200 + 40  # the limit, and a range in use


def test_seeking_to_the_start_repeats_no_request(small: None) -> None:
    data = bytes(range(200))
    reader, remote = reader_of(data)
    read(reader, 35)
    reader.seek(0)
    requested = len(remote.requests)
    assert read(reader, 35) == data[:35]
    assert len(remote.requests) == requested
    assert read(reader, 200) == data[35:]
    reader.seek(0)
    assert read(reader, 200) == data


def test_closing_wakes_a_waiting_thread() -> None:
    reader, _ = reader_of(bytes(10), [asyncio.Event()])
    errors: list[Exception] = []
    begun = threading.Event()

    def wait() -> None:
        begun.set()
        try:
            read(reader, 10)
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    begun.wait()
    while not reader._pending:
        pass
    reader.close()
    thread.join(5)
    assert not thread.is_alive()
    assert "closed" in str(errors[0])


def test_consecutive_files_are_requested_concurrently(small: None) -> None:
    remotes = [MemoryObject(bytes([i]) * (i % 30)) for i in range(60)]
    window: Any = None

    def more() -> Iterator[RangeReader]:
        for remote in remotes:
            yield RangeReader(remote, len(remote.data), window)

    window = Window(more(), stream=True)
    readers = []
    while (reader := window.next_reader()) is not None and len(readers) < 1:
        readers.append(reader)
    assert read(readers[0], 100) == remotes[0].data
    assert read(reader, 100) == remotes[1].data
    assert window._ranges > 2


# ---- on servers


def test_a_head_of_a_few_records_is_one_small_range(web: Web, tmp_path: Any) -> None:
    import tfrecord_io as tfr

    tfr.write_tfrecord({"x": list(range(100_000)), "s": ["some words"] * 100_000}, tmp_path / "a")
    web.files["a.tfrecord"] = (tmp_path / "a").read_bytes()
    assert len(web.files["a.tfrecord"]) > 4 * MIB
    assert tfr.read_table(web.url("a.tfrecord"), limit=10).num_rows == 10
    assert [r for r in web.requests if r.startswith("GET")] == ["GET a.tfrecord bytes=0-262143"]


def test_small_files_take_one_request_each(web: Web, tmp_path: Any) -> None:
    import tfrecord_io as tfr

    tfr.write_tfrecord({"x": [1, 2, 3]}, tmp_path / "a")
    web.files.update((f"a-{i:05d}-of-00100", (tmp_path / "a").read_bytes()) for i in range(100))
    assert tfr.read_table(web.url("a@100")).num_rows == 300
    requested = [r for r in web.requests if r.startswith("GET a-0")]
    assert len(requested) == len(set(requested)) == 100
    assert tfr.count(web.url("a-{00000..00099}-of-00100")) == 300


def test_metadata_of_many_files_is_one_request_for_each(web: Web, tmp_path: Any) -> None:
    import tfrecord_io as tfr

    tfr.write_tfrecord({"x": [1] * 10_000}, tmp_path / "a")
    web.files.update((f"a-{i:05d}-of-00040", (tmp_path / "a").read_bytes()) for i in range(40))
    assert len(tfr.read_metadata(web.url("a@40")).files) == 40
    heads = [r for r in web.requests if r.startswith("GET a-0")]
    assert len(heads) == 40
    assert all(r.endswith("bytes=0-65535") for r in heads)


def test_a_server_without_ranges_is_read_as_one_stream(web: Web, tmp_path: Any) -> None:
    import tfrecord_io as tfr

    tfr.write_tfrecord({"x": list(range(50_000))}, tmp_path / "a")
    tfr.write_tfrecord({"x": list(range(50_000))}, tmp_path / "b.gz")
    web.files.update((name, (tmp_path / name).read_bytes()) for name in ("a", "b.gz"))
    web.ranges = False
    for name in web.files:
        assert tfr.read_table(web.url(name))["x"].to_pylist() == list(range(50_000))
    with pytest.raises(OSError, match="does not support range requests"), tfr.open_random(web.url("a")) as records:
        records[1]


def test_records_are_counted_on_a_server_that_does_not_say_it_has_no_ranges(
    web: Web, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tfrecord_io as tfr

    tfr.write_tfrecord({"x": list(range(50_000))}, tmp_path / "a")
    web.files["a"], web.ranges = (tmp_path / "a").read_bytes(), False
    monkeypatch.setattr("tfrecord_io.read.chunks.count_frames._LARGE_REMOTE_BYTES", 1 << 16)
    monkeypatch.setattr("tfrecord_io.store.read.random_access_file._JOINED_BYTES", 1 << 16)
    assert tfr.count(web.url("a")) == 50_000


@pytest.mark.fault(23)
@pytest.mark.parametrize("kind", ["s3", "gcs", "azure", "web"])
def test_an_object_replaced_while_it_is_read_is_an_error(
    kind: str, request: pytest.FixtureRequest, small: None
) -> None:
    where: Any = request.getfixturevalue(kind)

    def put(data: bytes) -> None:
        if isinstance(where, Bucket):
            where.fs.pipe_file(where.url("a"), data)
        else:
            where.files["a"] = data

    options = where.storage_options if isinstance(where, Bucket) else None
    for after in (b"y" * 5000, b"y" * 400, b"y" * 6000):
        put(b"x" * 5000)
        with SourcePrefetcher(resolve_inputs(where.url("a"), StorageOptions(options)), stream=False) as upcoming:
            raw = next(upcoming).open()
            read(raw, 10)
            put(after)
            with pytest.raises(OSError, match=r"was replaced|early|not satisfiable|ange") as caught:
                read(raw, 5001)
            assert caught.value.filename == where.url("a")


@pytest.mark.fault(23)
def test_requests_to_gcs_name_the_generation(gcs: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    gcs.fs.pipe_file(gcs.url("a"), bytes(100))
    (source,) = resolve_inputs(gcs.url("a"), StorageOptions(gcs.storage_options))
    generation = gcs.fs.info(gcs.url("a"))["generation"]
    requested: list[Any] = []

    async def call(method: str, url: str, headers: dict[str, str]) -> tuple[Any, bytes]:
        requested.append(url)
        if len(requested) > 1:
            raise FileNotFoundError(url)  # as gcsfs raises for a deleted generation
        first, last = map(int, headers["Range"].removeprefix("bytes=").split("-"))
        return {}, bytes(last + 1 - first)

    monkeypatch.setattr(source._fsspec, "_call", call)
    set_limits(monkeypatch, first_range_bytes=10)
    raw = source.open()
    read(raw, 5)
    with pytest.raises(OSError, match="was replaced while it was read"):
        read(raw, 95)
    assert all(url.endswith(f"&generation={generation}") for url in requested)


@pytest.mark.fault(23)
def test_filesystem_without_conditional_requests_is_checked_at_the_end(s3: Bucket, small: None) -> None:
    s3.fs.pipe_file(s3.url("a"), b"x" * 100)
    (source,) = resolve_inputs(s3.url("a"), StorageOptions(s3.storage_options))
    remote = RemoteObject(s3.fs, f"{s3.name}/a", source.info or {}, source.path)
    raw = RangeReader(remote, 100)
    assert read(raw, 101) == b"x" * 100
    raw = RangeReader(remote, 100)
    read(raw, 100)
    s3.fs.pipe_file(s3.url("a"), b"y" * 100)
    with pytest.raises(OSError, match="was replaced while it was read"):
        read(raw, 1)
