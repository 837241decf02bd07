"""Reading from and writing to a bucket. Needs s3fs and moto."""

import uuid

import pytest

s3fs = pytest.importorskip("s3fs")
moto_server = pytest.importorskip("moto.server")

from tfrecord_io.storage.blocks import BlockReader  # noqa: E402
from tfrecord_io.storage.commit import open_output  # noqa: E402
from tfrecord_io.storage.opening import open_source  # noqa: E402
from tfrecord_io.storage.paths import resolve_inputs  # noqa: E402

BIG = bytes(range(256)) * (12 << 12)  # 12 MiB: with small parts an upload of several


@pytest.fixture(scope="module")
def server():
    server = moto_server.ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def options(server):
    s3fs.S3FileSystem.clear_instance_cache()
    return {"key": "k", "secret": "s", "endpoint_url": server, "default_block_size": 5 << 20}


@pytest.fixture
def fs(options):
    return s3fs.S3FileSystem(**options)


@pytest.fixture
def bucket(fs):
    name = f"bucket-{uuid.uuid4().hex[:8]}"
    fs.mkdir(name)
    return name


def uploads(fs, bucket):
    return fs.call_s3("list_multipart_uploads", Bucket=bucket).get("Uploads", [])


def read(path, **kwargs):
    out = bytearray()
    for source in resolve_inputs(path, **kwargs):
        reader = BlockReader(open_source(source, None), 1 << 20)
        while (block := reader.next_block()) is not None:
            out += bytes(block.data)
            reader.consume(len(block.data))
    return bytes(out)


@pytest.mark.parametrize("data", [b"", b"small", BIG])
@pytest.mark.parametrize("overwrite", [None, False])
def test_what_is_written_is_read(fs, bucket, options, data, overwrite):
    url = f"s3://{bucket}/dir/a.tfrecord"
    with open_output(url, storage_options=options, overwrite=overwrite) as out:
        for i in range(0, len(data), 1 << 20):
            out.write(data[i : i + (1 << 20)])
        assert not fs.exists(url)
    fs.invalidate_cache()
    assert read(url, storage_options=options) == data == read(f"{bucket}/dir/a.tfrecord", filesystem=fs)
    assert not uploads(fs, bucket)
    assert not fs.transaction.files


@pytest.mark.fault(69)
@pytest.mark.parametrize("data", [b"", b"small", BIG])
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_exception_in_the_block_publishes_nothing_and_leaves_no_upload(fs, bucket, options, data, error):
    import gc

    url = f"s3://{bucket}/a.tfrecord"
    with pytest.raises(error), open_output(url, storage_options=options) as out:  # noqa: PT012
        out.write(data)
        raise error
    del out
    gc.collect()
    fs.invalidate_cache()
    assert not fs.exists(url)
    assert not uploads(fs, bucket)


@pytest.mark.fault(68)
@pytest.mark.parametrize("data", [b"", b"mine", BIG])
def test_overwrite_false_refuses_a_file_that_came_meanwhile(fs, bucket, options, data):
    url = f"s3://{bucket}/a.tfrecord"
    out = open_output(url, storage_options=options, overwrite=False)
    out.write(data)
    fs.pipe_file(url, b"theirs")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        out.commit()
    assert fs.cat_file(url) == b"theirs"
    assert not uploads(fs, bucket)
    with pytest.raises(FileExistsError):
        open_output(url, storage_options=options, overwrite=False)
    with open_output(url, storage_options=options) as out:
        out.write(b"new")
    assert fs.cat_file(url) == b"new"


def test_path_forms(fs, bucket, options):
    names = [f"train-{i:05d}-of-00012" for i in range(12)]
    for name in (*names, "train.json", "_SUCCESS", "sub/x.tfrecord"):
        fs.pipe_file(f"{bucket}/d/{name}", b"x")
    for path in ("d", "d/", "d/train-*", "d/train@12", "d/train@*", "d/train-000{00..11}-of-00012"):
        found = resolve_inputs(f"s3://{bucket}/{path}", storage_options=options)
        assert [s.path for s in found] == [f"s3://{bucket}/d/{n}" for n in names], path
        assert {(s.size, s.local) for s in found} == {(1, False)}
    with pytest.raises(FileNotFoundError) as caught:
        resolve_inputs(f"s3://{bucket}/e*", storage_options=options)
    assert caught.value.filename == f"s3://{bucket}/e*"


def test_files_that_came_after_a_listing_are_found(fs, bucket, options):
    fs.pipe_file(f"{bucket}/d/a.tfrecord", b"x")
    other = s3fs.S3FileSystem(**options, skip_instance_cache=True)
    for path in ("d", "d/*"):
        before = len(resolve_inputs(f"s3://{bucket}/{path}", storage_options=options))
        other.pipe_file(f"{bucket}/d/b{path[-1]}.tfrecord", b"x")
        assert len(resolve_inputs(f"s3://{bucket}/{path}", storage_options=options)) == before + 1
    other.pipe_file(f"{bucket}/d/a.tfrecord", b"longer")
    assert read(f"s3://{bucket}/d/a.tfrecord", storage_options=options) == b"longer"


@pytest.mark.fault(23)
def test_a_file_replaced_while_read_is_an_error(fs, bucket, options):
    url = f"s3://{bucket}/a.tfrecord"
    fs.pipe_file(url, BIG)
    (source,) = resolve_inputs(url, storage_options={**options, "default_block_size": 1 << 20})
    stream = open_source(source, None)
    buffer = memoryview(bytearray(1 << 20))
    stream.readinto(buffer)
    fs.pipe_file(url, BIG[::-1])
    with pytest.raises(OSError):  # noqa: PT012
        while stream.readinto(buffer):
            pass


@pytest.mark.fault(24)
def test_missing_buckets_and_unknown_protocols(options):
    with pytest.raises(FileNotFoundError):
        resolve_inputs("s3://no-such-bucket-anywhere/a*", storage_options=options)
    with pytest.raises((FileNotFoundError, OSError)), open_output("s3://no-such-bucket-anywhere/a", storage_options=options) as out:
        out.write(b"x")
