"""Archives read once in order: what tarfile writes comes back, and hostile headers need little memory."""

from __future__ import annotations

import gzip
import io
import tarfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.plugins.vision.tar_archive import TarArchive

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=300).map(
    lambda name: name.strip("/") or "x"
)


def header(name: str, size: int, type_: bytes = tarfile.REGTYPE) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, type_
    return info.tobuf(tarfile.GNU_FORMAT)


def padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % 512)


def pax(**records: str) -> bytes:
    lines = [f" {key.replace('__', '.')}={value}\n".encode() for key, value in records.items()]
    content = b"".join(str(len(line) + 2).encode() + line for line in lines)
    return header("x", len(content), tarfile.XHDTYPE) + padded(content)


@settings(max_examples=rounds(100))
@given(st.lists(st.tuples(NAMES, st.binary(max_size=2000))), st.sampled_from([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]))
def test_members_are_those_that_tarfile_reads(members: list[tuple[str, bytes]], form: int) -> None:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    made = TarArchive(io.BytesIO(file.getvalue()), "a.tar")
    found = [(member.name, member.size, made.read()) for member in made]
    with tarfile.open(fileobj=io.BytesIO(file.getvalue())) as archive:
        expected = [(m.name, m.size, archive.extractfile(m).read()) for m in archive]  # type: ignore[union-attr]
    assert found == expected
    skipped = [member.name for member in TarArchive(io.BytesIO(file.getvalue()), "a.tar")]
    assert skipped == [name for name, _, _ in expected]


def hostile() -> dict[str, tuple[bytes, str]]:
    member = header("a.txt", 1) + padded(b"x")
    base256 = bytearray(header("a.txt", 0))
    base256[124:136] = b"\xff" * 12
    base256[148:156] = b"%06o\0 " % (sum(base256[:148]) + 8 * 32 + sum(base256[156:]))
    return {
        "nothing": (b"", "at byte 0: "),
        "text": (b"no archive" * 200, "at byte 0: "),
        "a member of 1 TiB": (header("a.jpg", 1 << 40) + b"x" * 512, "its sample has 1099511627776 bytes"),
        "a cut member": (header("a.jpg", 1000) + b"x" * 300, "'a.jpg': the archive ends after 300 of its 1000 bytes"),
        "a long name of 5 GiB": (header("x", 5 << 30, tarfile.GNUTYPE_LONGNAME), "long name of 5368709120 bytes"),
        "a pax header of 6 GiB": (header("x", 6 << 30, tarfile.XHDTYPE), "pax header of 6442450944 bytes"),
        "a global one": (header("x", 6 << 30, tarfile.XGLTYPE), "pax header of 6442450944 bytes"),
        "a cut long name": (header("x", 999, tarfile.GNUTYPE_LONGNAME) + b"abc", "ends after 3 of its 999 bytes"),
        "a negative size": (bytes(base256) + member, "member 'a.txt': its size is -1"),
        "a negative size in pax": (pax(size="-5") + member, "member 'a.txt': its size is '-5'"),
        "other digits": (pax(size="1٣") + member, "its size is"),
        "sparse": (pax(GNU__sparse__map="a,b,c") + member, "a sparse file"),
        "sparse numbers": (pax(GNU__sparse__major="1", GNU__sparse__minor="x") + member, "a sparse file"),
        "an old sparse file": (header("a.txt", 1, tarfile.GNUTYPE_SPARSE), "a sparse file"),
        "records without a length": (header("x", 9, tarfile.XHDTYPE) + padded(b"path=abc\n"), "record that is none"),
        "a record that is too long": (header("x", 9, tarfile.XHDTYPE) + padded(b"99 path=a"), "record that is none"),
        "a damaged header": (member + b"x" * 512, "at byte 1024: "),
        "a cut header": (member + header("b.txt", 0)[:100], "at byte 1024: truncated header"),
        "nothing behind a pax header": (pax(path="b"), "ends after the extension header"),
        "a hidden member that is truncated": (header(".a.txt", 99999) + b"x", "before the next header"),
    }


@pytest.mark.fault(9)
@pytest.mark.parametrize("kind", hostile())
def test_hostile_archives(tmp_path: Path, kind: str) -> None:
    content, message = hostile()[kind]
    (tmp_path / "a.tar").write_bytes(content)
    with pytest.raises(tfr.errors.DecodeError, match=message) as caught:
        tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord")
    assert caught.value.path == str(tmp_path / "a.tar")
    assert not (tmp_path / "a.tfrecord").exists()


@pytest.mark.parametrize("type_", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_any_number_of_extension_headers(tmp_path: Path, type_: bytes) -> None:
    content = b"b.txt\0" if type_ == tarfile.GNUTYPE_LONGNAME else b"14 path=b.txt\n"
    one = header("x", len(content), type_) + padded(content)
    (tmp_path / "a.tar").write_bytes(one * 3000 + header("a.txt", 1) + padded(b"x"))
    tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == [{"__key__": "b", "txt": "x"}]


def peak_of(call: Any) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(tfr.TFRecordError):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.tar.gz", "wb", 1) as file:
        file.write(header("x", 200 << 20, tarfile.GNUTYPE_LONGNAME) + bytes(200 << 20))
    assert peak_of(lambda: tfr.convert(tmp_path / "a.tar.gz", tmp_path / "a.tfrecord")) < 32 << 20
    (tmp_path / "b.tar").write_bytes(header("a.jpg", 2**31 - 1) + b"x" * 512)
    assert peak_of(lambda: tfr.convert(tmp_path / "b.tar", tmp_path / "a.tfrecord")) < 32 << 20


def test_samples_have_limits(tmp_path: Path) -> None:
    many = b"".join(header(f"a.{i}", 0) for i in range(11))
    (tmp_path / "a.tar").write_bytes(many)
    with pytest.raises(tfr.errors.SchemaError, match=r"more than 10 different columns.*limits.*features"):
        tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord", source_options={"limits": tfr.Limits(features=10)})
    twelve = {"limits": tfr.Limits(features=12)}
    assert len(tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord", source_options=twelve).columns) == 12
    (tmp_path / "b.tar").write_bytes(header("a.x", 5) + padded(b"12345") + header("a.y", 2**31 - 5))
    with pytest.raises(tfr.errors.DecodeError, match=r"'a\.y': with it, its sample has 2147483648 bytes"):
        tfr.convert(tmp_path / "b.tar", tmp_path / "a.tfrecord")
