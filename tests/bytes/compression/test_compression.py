"""Each compression passes `CodecSuite` and is detected by name, suffix and content."""

import errno
import gzip
import importlib
import io
import itertools
import struct
import subprocess
import sys
import zlib
from contextlib import suppress
from functools import partial

import lz4.frame
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import framed, header
from tfrecord_io.bytes.compression import CODECS, deflate
from tfrecord_io.bytes.compression.deflate import GzipTrailer
from tfrecord_io.bytes.compression.stream import open_decompressed
from tfrecord_io.bytes.format.framing import FrameHeader
from tfrecord_io.errors import CompressionError
from tfrecord_io.testing.codec_suite import CodecSuite, Unseekable, read, records, write

zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


class TestGzip(CodecSuite):
    name = "gzip"
    trailer = 8

    def elsewhere(self, data):
        return gzip.compress(data)

    def decodable(self, data):
        return zlib.decompressobj(31).decompress(data)

    @pytest.mark.parametrize("flags", range(0, 32, 2))
    def test_headers_with_extra_name_comment_and_crc(self, flags):
        header = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
        if flags & 4:
            header += struct.pack("<H", 5) + b"ab\0cd"
        if flags & 8:
            header += b"name\0"
        if flags & 16:
            header += b"comment\0"
        if flags & 2:
            header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
        made = header + gzip.compress(b"data")[10:]
        for step in (1, 1000):
            assert read(made, self.codec, step)[:2] == (b"data", None)
        for cut in range(3, len(header)):
            assert read(made[:cut], self.codec)[1] is not None

    def test_a_name_without_end_is_refused_and_not_kept(self):
        out, error, _ = read(b"\x1f\x8b\x08\x08" + bytes(6) + b"n" * (4 << 20), self.codec)
        assert out == b""
        assert "over 1 MiB" in str(error)

    def test_zeros_after_and_between_members_are_padding(self):
        made = gzip.compress(b"one") + bytes(700_000) + gzip.compress(b"two") + bytes(3)
        assert read(made, self.codec)[:2] == (b"onetwo", None)
        assert gzip.decompress(made) == b"onetwo"

    def test_zeros_followed_by_other_data_are_an_error(self):
        out, error, _ = read(gzip.compress(b"one") + bytes(700_000) + b"junk", self.codec)
        assert out == b"one"
        assert "other data after" in str(error)

    def test_a_length_above_4_gib_is_compared_as_gzip_does(self):
        trailer = GzipTrailer()
        trailer.crc, trailer.length = 7, (1 << 32) + 5
        trailer.check(struct.pack("<II", 7, 5))
        assert trailer.pack() == struct.pack("<II", 7, 5)


class TestZlib(CodecSuite):
    name = "zlib"
    trailer = 4

    def elsewhere(self, data):
        return zlib.compress(data)

    def decodable(self, data):
        return zlib.decompressobj().decompress(data)

    @pytest.mark.parametrize("wbits", range(9, 16))
    def test_every_window_is_read(self, wbits):
        compressor = zlib.compressobj(wbits=wbits)
        content = framed(*[records(5, seed) for seed in range(200)])
        made = compressor.compress(content) + compressor.flush()
        assert CODECS.sniff(made[: CODECS.SNIFF_BYTES]) is self.codec
        assert read(made, self.codec)[:2] == (content, None)

    @given(st.sampled_from("8HXhx("), st.text("0 4CEGHJKSXbfhjr,(^2\n"))
    def test_text_with_a_small_window_in_its_first_bytes_is_not_detected(self, first, rest):
        assert first == "x" or CODECS.sniff((first + rest).encode()) is None

    def test_a_preset_dictionary_is_named(self):
        compressor = zlib.compressobj(zdict=b"abc")
        made = compressor.compress(b"abcabc") + compressor.flush()
        assert "preset dictionary" in str(read(made, self.codec)[1])


class Stdlib:
    """The same without isal, which has no wheel for some platforms."""

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def stdlib(cls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deflate, "fast", zlib)
            yield


class TestGzipByStdlib(Stdlib, TestGzip):
    pass


class TestZlibByStdlib(Stdlib, TestZlib):
    pass


@given(
    st.sampled_from(["gzip", "zlib"]),
    st.integers(0, 9),
    st.integers(0, 10_000),
    st.one_of(st.none(), st.integers(0, 1 << 20)),
)
def test_isal_and_zlib_return_the_same_bytes_and_errors(name, level, cut, flip):
    made = bytearray(write(CODECS.find(name), [records(200)], level))
    del made[len(made) - cut % len(made) :]
    if flip is not None:
        made[flip % len(made)] ^= 1 << flip % 8
    results = []
    for library in (deflate.fast, zlib):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(deflate, "fast", library)
            out, error, _ = read(bytes(made), CODECS.find(name), 1000)
            results.append((out, None if error is None else str(error)))
    (out, error), (other, other_error) = results
    if flip is None:
        assert (out, error) == (other, other_error)
    else:  # isal may read on after an invalid code, unlike zlib; a checksum detects it
        assert (error is None) == (other_error is None)
        assert out.startswith(other) or other.startswith(out)
        assert error is not None or out == other


class Frames(CodecSuite):
    """The formats of zstd and lz4 have the same frames that are skipped."""

    @given(st.lists(st.lists(st.sampled_from([0, 5, 600_000]), max_size=3), min_size=3, max_size=3))
    def test_frames_to_skip_are_skipped(self, sizes):
        """Any number of them in a row, before the first frame, between frames and at the end."""
        before, between, after = (
            b"".join(struct.pack("<II", 0x184D2A50 + size % 16, size) + bytes(size) for size in row) for row in sizes
        )
        made = before + self.elsewhere(b"one") + between + self.elsewhere(b"two") + after
        assert CODECS.sniff(made) is self.codec
        assert read(made, self.codec)[:2] == (b"onetwo", None)
        assert read(Unseekable(made), self.codec)[:2] == (b"onetwo", None)


class TestZstd(Frames):
    name = "zstd"
    libraries = ("backports.zstd", "compression.zstd")
    trailer = 4

    def elsewhere(self, data):
        return zstd.compress(data, options={zstd.CompressionParameter.checksum_flag: 1})

    def decodable(self, data):
        return zstd.ZstdDecompressor().decompress(data)

    def test_frames_without_checksum_or_with_a_size_are_read(self):
        data = records()
        for options in (
            {},
            {zstd.CompressionParameter.content_size_flag: 0},
            {zstd.CompressionParameter.window_log: 10},
        ):
            for part in (data, data[:1], b"", bytes(1 << 20)):
                made = zstd.compress(part, options=options)
                assert read(made, self.codec)[:2] == (part, None)
                assert read(made + made, self.codec, 100_000)[:2] == (2 * part, None)

    def test_a_window_beyond_the_limit_and_a_missing_dictionary_are_named(self):
        made = bytearray(zstd.compress(records(), options={zstd.CompressionParameter.content_size_flag: 0}))
        made[5] = 0xFF  # the window
        error = read(bytes(made), self.codec)[1]
        assert "a zstd window of 4123168604160 bytes, over the limit of 134217728; compress it again" in str(error)
        trained = zstd.train_dict([records(3, seed) for seed in range(200)], 1000)
        assert "ictionary" in str(read(zstd.compress(records(3), zstd_dict=trained), self.codec)[1])


class TestLz4(Frames):
    name = "lz4"
    trailer = 4
    libraries = ("lz4", "lz4.frame")

    def elsewhere(self, data):
        return lz4.frame.compress(data, content_checksum=True)

    def decodable(self, data):
        found, step = [], 1 if len(data) < 10_000 else 10_000  # a read that fails has no bytes
        with pa.CompressedInputStream(pa.BufferReader(data), "lz4") as stream, suppress(OSError):
            found += iter(partial(stream.read, step), b"")
        return b"".join(found)

    def test_frames_of_all_forms_are_read(self):
        data = records(8000)
        sizes = (lz4.frame.BLOCKSIZE_MAX64KB, lz4.frame.BLOCKSIZE_MAX4MB)
        for size, linked, block_checksum, store_size in itertools.product(sizes, *[(False, True)] * 3):
            options = {"block_size": size, "block_linked": linked, "block_checksum": block_checksum}
            for checksum in (False, True):
                made = lz4.frame.compress(data, **options, store_size=store_size, content_checksum=checksum)
                assert read(made, self.codec)[:2] == (data, None)
                assert read(made + made, self.codec, 100_000)[:2] == (2 * data, None)

    def test_a_missing_dictionary_is_named(self):
        made = bytearray(self.elsewhere(b"one"))
        made[4] |= 1
        assert "needs a dictionary" in str(read(bytes(made), self.codec)[1])

    def test_places_behind_damage_are_certain_behind_the_largest_block(self):
        for size, least in ((lz4.frame.BLOCKSIZE_MAX64KB, 512 << 10), (lz4.frame.BLOCKSIZE_MAX4MB, 8 << 20)):
            assert self.codec.certain_bytes(lz4.frame.compress(b"x" * (8 << 20), block_size=size)) == least
        assert self.codec.certain_bytes(b"damaged") == 8 << 20


class TestStdlibInPlaceOfIsal:
    def test_everything_works_without_isal(self):
        """In a separate process, where isal cannot be imported."""
        code = (
            "import sys; sys.modules['isal'] = None\n"
            "import io, gzip, zlib\n"
            "from tfrecord_io.bytes.compression import CODECS, deflate\n"
            "from tfrecord_io.bytes.compression.stream import open_decompressed\n"
            "assert deflate.fast is zlib\n"
            "for name in ('gzip', 'zlib'):\n"
            "    codec = CODECS.find(name)\n"
            "    for level in (None, 1, 9):\n"
            "        c = codec.compressor(level, threads=2)\n"
            "        made = b''.join([*c.compress(b'abc' * 1000), *c.flush()])\n"
            "        buffer = memoryview(bytearray(5000))\n"
            "        assert open_decompressed(io.BytesIO(made), codec, 'x').readinto(buffer) == 3000\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.fault(34)
@pytest.mark.parametrize(
    "magic", [b"\x1f\x8b\x08\x00", b"\x78\x9c\x00\x00", b"\x78\x01\x01\x00", b"\x78\xda\xed\xc1", b"\x78\x5e"]
)
def test_a_plain_file_whose_first_length_looks_like_a_magic_is_plain(magic):
    begin = header(int.from_bytes(magic, "little"))
    assert begin.startswith(magic)
    assert FrameHeader(begin).is_intact
    assert CODECS.sniff(begin + b"payload") is None
    assert CODECS.infer(begin + b"payload", "a.tfrecord.gz") is None


@pytest.mark.parametrize("bit", range(96))
def test_a_plain_file_with_a_damaged_header_is_not_taken_for_zlib(bit):
    head = bytearray(header(0x9C78) + b"payload")
    head[bit // 8] ^= 1 << bit % 8
    assert CODECS.sniff(bytes(head)) is None


def test_text_is_not_taken_for_zlib():
    assert CODECS.sniff(b"x^2 + y^2 = z^2, as everybody knows") is None


@given(st.binary(max_size=64))
def test_sniffing_takes_any_bytes(head):
    CODECS.sniff(head)
    CODECS.infer(head, "a.gz")


def test_content_takes_precedence_over_the_suffix():
    assert CODECS.infer(gzip.compress(b"x"), "a.zlib") is CODECS.find("gzip")
    assert CODECS.infer(header(5), "a.gz") is None
    assert CODECS.infer(b"nothing of the kind", "a.gz") is None


@pytest.mark.fault(26)
@pytest.mark.fault(33)
def test_suffix_is_used_for_short_content():
    assert CODECS.infer(b"\x1f", "a.tfrecord.gz") is CODECS.find("gzip")
    assert CODECS.infer(b"\x78", "a.tfrecord.zlib") is CODECS.find("zlib")
    assert CODECS.infer(b"", "a.tfrecord.gz") is CODECS.find("gzip")
    assert CODECS.infer(b"\x1f", "a.tfrecord") is None


def test_names():
    for plain in (None, "", "none", "NONE"):
        assert CODECS.find(plain) is None
    names = ", ".join(map(repr, ("infer", *CODECS.names())))
    with pytest.raises(ValueError, match=f"unknown compression 'zip'; expected {names}, or 'none' for"):
        CODECS.find("zip")
    with pytest.raises(TypeError):
        CODECS.find(3)
    assert CODECS.of_path("gz") is None
    assert CODECS.of_path("a.tfrecord") is None


def test_golden_files_of_tensorflow(data):
    plain = (data / "tutorial.tfrecord").read_bytes()
    for name, codec in (("tutorial_gzip.tfrecord.gz", "gzip"), ("tutorial_zlib.tfrecord.zlib", "zlib")):
        made = (data / name).read_bytes()
        assert CODECS.sniff(made) is CODECS.find(codec)
        assert read(made, CODECS.find(codec))[:2] == (plain, None)
    assert CODECS.sniff(plain) is None


class Failing(io.RawIOBase):
    """A raw file that fails at a byte."""

    def __init__(self, data, at, error):
        self.inner, self.at, self.error = io.BytesIO(data), at, error

    def readable(self):
        return True

    def readinto(self, buffer):
        room = self.at - self.inner.tell()
        if not room:
            if isinstance(self.error, Exception):
                raise self.error
            return self.error
        return self.inner.readinto(memoryview(buffer)[: min(room, 1000)])


@pytest.mark.fault(61)
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_a_failing_disk_is_an_error_with_the_offset_and_not_the_end(codec):
    data = records(3000)
    made = gzip.compress(data) if codec else data
    stream = open_decompressed(
        Failing(made, 5000, OSError(errno.EIO, "Input/output error")), CODECS.find(codec), "a.tfrecord"
    )
    out, buffer = b"", memoryview(bytearray(700))
    with pytest.raises(OSError, match=r"Input/output error, at byte 5000.*a\.tfrecord") as caught:  # noqa: PT012
        while n := stream.readinto(buffer):
            out += bytes(buffer[:n])
    assert caught.value.errno == errno.EIO
    assert not isinstance(caught.value, CompressionError)
    assert data.startswith(out)
    assert len(out) >= 4000


@pytest.mark.fault(61)
def test_a_nonblocking_file_without_data_is_not_at_its_end():
    with pytest.raises(BlockingIOError, match="no data yet"):
        read(Failing(b"abc", 3, None), None)


@pytest.mark.fault(23)
@pytest.mark.fault(62)
@pytest.mark.parametrize("codec", [None, "gzip"])
def test_a_file_that_ends_before_its_size_is_an_error(codec):
    made = gzip.compress(b"data") if codec else b"data"
    with pytest.raises(
        OSError, match=rf"ended at byte {len(made)}, before byte {len(made) + 6}: it was truncated while being read"
    ):
        read(made, CODECS.find(codec), size=len(made) + 6)


def test_a_head_that_was_read_before_comes_first():
    raw = io.BytesIO(b"abcdef")
    head = raw.read(3)
    assert read(raw, None, 2, head=head)[0] == b"abcdef"
    made = gzip.compress(records())
    raw = io.BytesIO(b"before" + made)
    raw.seek(6)
    bad = made[:5000] + b"\xff" * 30 + made[5030:]
    whole, _, _ = read(bad, CODECS.find("gzip"))
    raw = io.BytesIO(b"before" + bad)
    raw.seek(6)
    assert read(raw, CODECS.find("gzip"), head=raw.read(100))[0] == whole
