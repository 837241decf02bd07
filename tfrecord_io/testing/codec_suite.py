"""Tests that each compression inherits; another implementation of its format is the reference.

Tests: tests/bytes/compression/test_compression.py and tests/bytes/compression/test_codec_of_packages.py.
"""

from __future__ import annotations

import io
import itertools
import random
import subprocess
import sys
import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tfrecord_io import RecordWriter, dataset, open_reader
from tfrecord_io.bytes import open_decompressed
from tfrecord_io.errors import CompressionError, DamagedDataWarning
from tfrecord_io.kit import CODECS, Codec


@cache
def records(n: int = 2000, seed: int = 0) -> bytes:
    """Moderately compressible bytes."""
    rng = random.Random(seed)
    return b"".join(rng.randbytes(rng.randrange(20)) + b"feature" * rng.randrange(20) for _ in range(n))


def write(codec: Codec | None, parts: Iterable[Any], level: int | None = None, threads: int = 1) -> bytes:
    assert codec is not None
    compressor = codec.compressor(level, threads=threads)
    return b"".join([*(out for part in parts for out in compressor.compress(part)), *compressor.flush()])


def read(
    raw: Any, codec: Codec | None, step: int = 10_000, **kwargs: Any
) -> tuple[bytes, CompressionError | None, Any]:
    """Read a stream to its end or error; return the bytes, the error or None, and the stream."""
    raw = io.BytesIO(raw) if isinstance(raw, bytes) else raw
    stream: Any = open_decompressed(raw, codec, "file.tfrecord", **kwargs)
    out, buffer = bytearray(), memoryview(bytearray(step))
    try:
        while n := stream.readinto(buffer):
            out += buffer[:n]
            assert stream.offset == len(out)
    except CompressionError as error:
        with pytest.raises(CompressionError):  # each later call raises it again
            stream.readinto(buffer)
        return bytes(out), error, stream
    return bytes(out), None, stream


class Unseekable(io.RawIOBase):
    """A file that can be read once."""

    def __init__(self, data: bytes) -> None:
        self._inner = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._inner.readinto(memoryview(buffer)[:1000])


class CodecSuite(ABC):
    """Base class of the tests of a compression; a subclass names one of the registry.

    Attributes
    ----------
    name : str
    has_magic : bool, default True
        False for members that may begin with any bytes, whose compression is known by the suffix of a file.
    trailer : int
        Bytes of checksums after the data.
    libraries : tuple of str
        Modules that need not be installed.
    """

    name: str
    has_magic = True
    trailer = 0
    libraries: tuple[str, ...] = ()

    @abstractmethod
    def elsewhere(self, data: bytes) -> bytes:
        """Compress `data` with another implementation."""

    @abstractmethod
    def decodable(self, data: bytes) -> bytes:
        """Decompress a truncated member with another implementation, as far as possible."""

    @property
    def codec(self) -> Codec:
        return CODECS[self.name]

    def check_detected(self, made: bytes) -> None:
        """Check that a file is recognized by its content, or by its suffix if the format has no magic bytes."""
        if self.has_magic:
            assert CODECS.sniff(made) is self.codec
        else:
            assert not self.codec.looks_like(made[: CODECS.SNIFF_BYTES])
            assert CODECS.sniff(made) is not None or CODECS.infer(made, f"a{self.codec.suffixes[0]}") is self.codec

    def test_names_of_tensorflow_are_known(self) -> None:
        assert CODECS.find(self.name.upper()) is self.codec

    def test_its_suffixes_are_detected(self) -> None:
        for suffix in self.codec.suffixes:
            assert CODECS.of_path("dir.x/train.tfrecord" + suffix) is self.codec

    def test_reads_what_it_writes_at_every_level(self) -> None:
        data = records()
        for level in (None, *self.codec.levels):
            compressed = write(self.codec, [data[i : i + 5000] for i in range(0, len(data), 5000)], level)
            self.check_detected(compressed)
            out, error, stream = read(compressed, self.codec)
            assert (out, error, stream.raw_offset) == (data, None, len(compressed))

    def test_a_missing_library_is_named(self, tmp_path: Path) -> None:
        """In a separate process, where it cannot be imported."""
        if not self.libraries:
            pytest.skip("its library is always there")
        code = (
            "import os, sys; sys.modules.update(dict.fromkeys(sys.argv[4:]))\n"
            "import tfrecord_io as tfr\n"
            "folder, suffix, requirement = sys.argv[1:4]\n"
            "there, new = (os.path.join(folder, name) for name in ('a.tfrecord', 'new' + suffix))\n"
            "readers = [lambda: tfr.read_table(there, on_error='stop'), lambda: list(tfr.RecordReader(there))]\n"
            "for call in [lambda: tfr.RecordWriter(new), *readers]:\n"
            "    try:\n"
            "        call()\n"
            "    except tfr.errors.MissingDependencyError as error:\n"
            "        assert f\"'{requirement}'\" in error.hint, error\n"
            "    else:\n"
            "        raise AssertionError\n"
        )
        (tmp_path / "a.tfrecord").write_bytes(self.elsewhere(b"x"))
        arguments: list[Any] = [tmp_path, self.codec.suffixes[0], self.codec.requirement, *self.libraries]
        subprocess.run([sys.executable, "-c", code, *arguments], check=True)
        assert [p.name for p in tmp_path.iterdir()] == ["a.tfrecord"]

    def test_invalid_level_is_refused(self) -> None:
        levels = self.codec.levels
        with pytest.raises(ValueError, match=f"{levels[0]} to {levels[-1]}"):
            self.codec.compressor(levels[-1] + 1)

    @pytest.mark.parametrize("sizes", [[20_000_000], [300_000, 7, 0, 3_000_000, 100_000], [100_000]])
    def test_output_is_read_by_others_and_independent_of_threads(self, sizes: list[int]) -> None:
        data = records(80_000)
        parts, at = [], 0
        for size in itertools.cycle(sizes):
            parts.append(memoryview(data)[at : at + size])
            at += size
            if at >= len(data):
                break
        compressed = write(self.codec, parts)
        assert self.decodable(compressed) == data
        assert read(compressed, self.codec)[:2] == (data, None)
        for threads in (2, 4):
            assert write(self.codec, parts, threads=threads) == compressed

    @pytest.mark.parametrize("threads", [1, 2])
    def test_writing_nothing_gives_an_empty_member(self, threads: int) -> None:
        compressed = write(self.codec, [], threads=threads)
        assert self.decodable(compressed) == b""
        self.check_detected(compressed)
        assert read(compressed, self.codec)[:2] == (b"", None)

    def test_output_is_at_most_a_tenth_larger_than_that_of_others(self) -> None:
        data = records(40_000)
        assert len(write(self.codec, [data], threads=2)) < 1.1 * len(self.elsewhere(data))

    @settings(deadline=None)  # of a machine that is busy
    @given(st.binary(max_size=5000), st.integers(1, 6000))
    def test_reads_what_others_write(self, data: bytes, step: int) -> None:
        compressed = self.elsewhere(data)
        self.check_detected(compressed)
        assert read(compressed, self.codec, step)[:2] == (data, None)

    def test_unseekable_files_are_read(self) -> None:
        data = records()
        assert read(Unseekable(self.elsewhere(data)), self.codec)[:2] == (data, None)

    def test_an_empty_file_has_no_bytes(self) -> None:
        assert read(b"", self.codec)[:2] == (b"", None)

    @settings(deadline=None)  # of a machine that is busy
    @given(st.lists(st.binary(max_size=100), min_size=1, max_size=6), st.integers(1, 200))
    def test_members_are_read_one_after_the_other(self, parts: list[bytes], step: int) -> None:
        compressed = b"".join(self.elsewhere(p) for p in parts)
        assert read(compressed, self.codec, step)[:2] == (b"".join(parts), None)

    def test_truncation_anywhere_returns_all_decodable_bytes_then_an_error_with_both_offsets(self) -> None:
        data = records(40)
        compressed = self.elsewhere(data)
        for cut in range(1, len(compressed)):
            out, error, stream = read(compressed[:cut], self.codec)
            assert out == self.decodable(compressed[:cut])
            assert error is not None
            assert error.offset == len(out)
            assert f"byte {len(out)}:" in str(error)
            assert f"byte {stream.raw_offset} of the compressed file" in str(error)
            assert cut - 10 <= stream.raw_offset <= cut
            assert isinstance(error, OSError)
            assert error.path == "file.tfrecord"

    def test_every_flipped_bit_of_the_trailer_is_detected_after_all_bytes(self) -> None:
        data = records(40)
        compressed = self.elsewhere(data)
        for bit in range(8 * self.trailer):
            bad = bytearray(compressed)
            bad[-1 - bit // 8] ^= 1 << bit % 8
            out, error, _ = read(bytes(bad), self.codec)
            assert out == data
            assert error is not None
            assert "mismatch (stored" in str(error)

    def test_damaged_trailer_in_the_middle_ends_the_file_there(self) -> None:
        first, second = records(40), records(40, seed=1)
        for byte in range(self.trailer):
            bad = bytearray(self.elsewhere(first))
            bad[-1 - byte] ^= 1
            out, error, _ = read(bytes(bad) + self.elsewhere(second), self.codec)
            assert out == first
            assert error is not None

    @pytest.mark.parametrize("seekable", [True, False])
    def test_damaged_data_returns_the_bytes_before_the_damage(self, seekable: bool) -> None:
        data = records(4000)
        compressed = self.elsewhere(data)
        rng = random.Random(5)
        for _ in range(30):
            at = rng.randrange(len(compressed) // 2, len(compressed) - 10)
            bad = compressed[:at] + b"\xff" * 8 + compressed[at + 8 :]
            expected = self.decodable(compressed[: at - 1])
            out, error, _ = read(io.BytesIO(bad) if seekable else Unseekable(bad), self.codec, 1000)
            assert error is not None
            if seekable:
                assert out[: len(expected)] == expected
            else:
                assert data[: len(out)] == out or out[: len(expected)] == expected

    @pytest.mark.parametrize("junk", [b"junk", b"\1", b"PK\3\4" * 1000])
    def test_other_data_after_the_last_member_is_an_error_after_all_bytes(self, junk: bytes) -> None:
        data = records(40)
        compressed = self.elsewhere(data)
        out, error, stream = read(compressed + junk, self.codec)
        assert out == data
        assert error is not None
        if self.has_magic:  # else the other data begins another member, which is damaged
            assert "other data after" in str(error)
            assert stream.raw_offset == len(compressed)

    def test_damage_is_passed_over(self, tmp_path: Path) -> None:
        """By readers with ``on_error="skip"``, which have all records before it."""
        payloads = [records(20, seed=n) for n in range(200)]
        with RecordWriter(tmp_path / "plain") as writer:
            for payload in payloads:
                writer.write(payload)
        compressed = bytearray(self.elsewhere((tmp_path / "plain").read_bytes()))
        middle = len(compressed) // 2
        compressed[middle : middle + 8] = b"\xff" * 8
        path = tmp_path / f"a.tfrecord{self.codec.suffixes[0]}"
        path.write_bytes(compressed)
        intact = len(self.decodable(bytes(compressed[: middle - 1])))
        ends = itertools.accumulate(len(payload) + 16 for payload in payloads)  # with lengths and checksums
        before = payloads[: sum(end <= intact for end in ends)]
        reader = open_reader(dataset(path, record_type="bytes"), on_error="skip")
        with pytest.warns(DamagedDataWarning):
            read_records = reader.read_all().column(0).to_pylist()
        assert read_records[: len(before)] == before
        assert {*read_records} <= {*payloads}
        begins = [region.begin or 0 for region in reader.report.skipped]
        assert begins
        assert begins == sorted(begins)

    def test_decompression_bomb_is_streamed_in_bounded_memory(self) -> None:
        size = 256 << 20
        compressed = write(self.codec, [bytes(1 << 20)] * (size >> 20))
        assert len(compressed) < size // 200
        stream = open_decompressed(io.BytesIO(compressed), self.codec, "bomb")
        buffer = memoryview(bytearray(1 << 20))
        tracemalloc.start()
        total = 0
        while n := stream.readinto(buffer):
            total += n
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == size
        assert peak < 8 << 20
