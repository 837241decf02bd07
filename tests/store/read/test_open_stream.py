"""Opening a file: its compression is detected or checked, and files of other formats are named."""

import gzip
import io
import json
import pickle
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from packed import packed
from records import framed
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.format.foreign_files import SIGNS, ForeignFile
from tfrecord_io.errors import CompressionError
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.paths.resolve import resolve_inputs


def read(path, compression="infer"):
    (source,) = resolve_inputs(path)
    stream = source.open_stream(compression)
    out, buffer = bytearray(), memoryview(bytearray(1000))
    while n := stream.readinto(buffer):
        out += buffer[:n]
    stream.close()
    return bytes(out)


PLAIN = b"".join(framed(bytes([i]) * i * 7) for i in range(100))
CONTENTS = {None: PLAIN, **{name: packed(name, PLAIN) for name in CODECS.names()}}


@pytest.mark.parametrize("codec", CONTENTS)
@pytest.mark.parametrize("suffix", ["", *CODECS.suffixes()])
def test_compression_is_detected_by_content_not_suffix(tmp_path, codec, suffix):
    path = tmp_path / f"a.tfrecord{suffix}"
    path.write_bytes(CONTENTS[codec])
    assert read(path) == PLAIN
    assert read(path, codec) == PLAIN
    assert read(io.BytesIO(CONTENTS[codec])) == PLAIN
    if codec:
        assert read(path, codec.upper()) == PLAIN


@pytest.mark.fault(32)
@pytest.mark.parametrize("codec", CONTENTS)
@pytest.mark.parametrize("passed", CONTENTS)
def test_wrong_compression_names_the_detected_content(tmp_path, codec, passed):
    path = tmp_path / "a.tfrecord"
    path.write_bytes(CONTENTS[codec])
    if codec == passed:
        assert read(path, passed) == PLAIN
        return
    looks = f"{codec} data" if codec else "a plain TFRecord file"
    with pytest.raises(
        CompressionError,
        match=f"the stated compression is {passed!r}, but the file looks like {looks}; compression='infer'",
    ) as caught:
        read(path, passed)
    assert (caught.value.path, caught.value.expected, caught.value.got) == (str(path), passed, looks)


@pytest.mark.fault(32)
def test_wrong_compression_of_another_format_names_it(tmp_path):
    (tmp_path / "a").write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(CompressionError, match="looks like a Parquet file"):
        read(tmp_path / "a", "gzip")


def test_an_unknown_compression_is_refused_before_anything_is_opened(tmp_path):
    with pytest.raises(ValueError, match="unknown compression 'brotli'"):
        resolve_inputs(io.BytesIO())[0].open_stream("brotli")


def test_file_object_is_read_from_its_position():
    for made in CONTENTS.values():
        file = io.BytesIO(b"header" + made)
        file.seek(6)
        assert read(file) == PLAIN
        assert not file.closed


def files(folder):
    """(name of the format, first bytes) of files written by other libraries."""
    table = pa.table({"x": [1, 2]})
    made = {}

    def by(name, write):
        path = folder / "file"
        write(str(path))
        made[name] = path.read_bytes()
        path.unlink()

    by("a Parquet file", lambda p: pa.parquet.write_table(table, p))
    by("an Arrow IPC (Feather) file", lambda p: pa.feather.write_feather(table, p))
    by("a Feather V1 file", lambda p: Path(p).write_bytes(b"FEA1" + bytes(60)))
    by("an ORC file", lambda p: pa.orc.write_table(table, p))
    by("a SQLite database", lambda p: sqlite3.connect(p).execute("create table t(x)"))
    for name, save in (("a NumPy .npy file", np.save), ("a zip archive (such as .npz)", np.savez)):
        buffer = io.BytesIO()
        save(buffer, np.arange(3))
        made[name] = buffer.getvalue()
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, table.schema).close()
    made["an Arrow IPC stream"] = sink.getvalue().to_pybytes()
    made["gzip data"] = gzip.compress(PLAIN)
    made["JSON"] = json.dumps([{"x": 1}], indent=1).encode()
    made["a Python pickle"] = pickle.dumps({"x": 1})
    return made


@pytest.mark.fault(14)
@pytest.mark.fault(15)
@pytest.mark.fault(16)
@pytest.mark.fault(17)
def test_files_of_other_formats_are_named(tmp_path):
    made = files(tmp_path)
    for name, data in made.items():
        assert ForeignFile.looks_like(data) == name


RIEGELI = bytes.fromhex(
    "83af70d10d884a3f0000000000000000400000000000000091bac23c9287e1a90000000000000000e19f13c0e9b1c37273"
) + bytes(15)


@pytest.mark.fault(14)
@pytest.mark.fault(15)
@pytest.mark.fault(17)
@pytest.mark.fault(25)
@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF\0", "a JPEG image"),
        (b"\0\0\0\x1cftypavif\0\0\0\0", "an AVIF image"),
        (b"\0\0\0\x18ftypheic\0\0\0\0", "a HEIC image"),
        (b"\0\0\0\x20ftypisom\0\0\2\0", "an MP4 video"),
        (RIEGELI, "a Riegeli or ArrayRecord file"),
        (b"Obj\x01\x04\x14avro.codec", "an Avro file"),
        (b"\x89HDF\r\n\x1a\n\0\0", "an HDF5 file"),
        (b"\x28\xb5\x2f\xfd\x04\x58", "zstd data"),
        (b"BZh91AY&SY", "bzip2 data; decompress it first, with bunzip2"),
        (b"\xfd7zXZ\0\0\4", "xz data; decompress it first, with unxz"),
        pytest.param(bytes(257) + b"ustar\x0000", "a tar archive", marks=pytest.mark.plugins("vision")),
        (b"RIFF\x24\0\0\0WAVEfmt ", "a WAV file"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 12\n",
            "a Git LFS pointer: the data was not downloaded; run git lfs pull",
        ),
        (
            FileName.fence("0123456789abcdef").encode(),
            "the mark of a shard that a writer is removing; read the dataset again",
        ),
        (b"<!DOCTYPE html>\n<html>", "an HTML page, perhaps a server's error page"),
        (b"\n <HTML><head><title>404</title>", "an HTML page, perhaps a server's error page"),
        (b'<?xml version="1.0"?><Error><Code>AccessDenied</Code>', "an XML document, perhaps a bucket's error message"),
        (b"<Error><Code>NoSuchKey</Code></Error>", "an XML document, perhaps a bucket's error message"),
        (b'{"error": {"code": 404}}', "JSON"),
        (b"{}", "JSON"),
        (b"[1, 2, 3]", "JSON"),
        (b"label,path\ncat,a.png\n", "plain text"),
        ("größe,länge\n".encode() * 60, "plain text"),
        ("a,b\n".encode("utf-16"), "UTF-16 text"),
        (bytes(100), "a file of zeros: a sparse file or an incomplete download"),
        (b"", None),
        (b"\x01\x02\x03\x04", None),
    ],
)
def test_formats_detected_by_head(head, name):
    assert ForeignFile.looks_like(head) == name


def test_damaged_tfrecord_files_are_not_taken_for_other_formats():
    for seed in range(200):
        rng = np.random.default_rng(seed)
        head = bytearray(
            framed(b"\n\x10\n\x0e\n\x05label\x12\x05\x1a\x03\n\x01" + rng.bytes(int(rng.integers(1, 400))))
        )
        head[int(rng.integers(12))] ^= 1 << int(rng.integers(8))
        assert ForeignFile.looks_like(bytes(head)) is None, seed


@given(st.binary(max_size=600))
def test_any_head_is_handled(head):
    assert ForeignFile.looks_like(head) in {None, *(name for name, _ in SIGNS)}


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("compress", [False, True])
def test_a_file_that_is_replaced_before_it_is_opened_is_read_whole(tmp_path, size, compress):
    """Its size is that of the open file, not of the one that had the name earlier."""
    path, new = tmp_path / "a", tmp_path / "b"
    form = gzip.compress if compress else bytes
    path.write_bytes(form(framed(bytes(1000))))
    (source,) = resolve_inputs(path)
    new.write_bytes(form(framed(bytes(size))))
    new.rename(path)
    stream = source.open_stream()
    buffer = bytearray(200_000)
    done = 0
    while n := stream.readinto(memoryview(buffer)[done:]):
        done += n
    stream.close()
    assert bytes(buffer[:done]) == framed(bytes(size))
