"""Array files with false sizes, extra data or damage: they raise the library's errors, and no file stays open."""

from __future__ import annotations

import gzip
import io
import os
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr


def npy(text: str, values: bytes = b"") -> bytes:
    """A .npy file with this header."""
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text.encode() + values


def claim(shape: str, values: bytes = b"", descr: str = "<f4", fortran: bool = False) -> bytes:
    return npy(f"{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}}}", values)


def archive(path: Path, members: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> Path:
    with warnings.catch_warnings(), zipfile.ZipFile(path, "w", method) as made:
        warnings.simplefilter("ignore")  # names that come twice
        for name, content in members:
            made.writestr(zipfile.ZipInfo(name), content, method)
    return path


@pytest.fixture(autouse=True)
def nothing_is_left_open(tmp_path: Path) -> Iterator[None]:
    yield
    left = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    assert [path for path in left if path.startswith(str(tmp_path))] == []


@pytest.mark.fault(54)
@pytest.mark.parametrize("fortran", [False, True])
@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ("(2, 4611686018427387904)", "is too large for an array"),
        ("(4611686018427387904, 4611686018427387904, 0)", "is too large for an array"),
        ("(1180591620717411303424, 2)", "is too large for an array"),
        ("(9223372036854775808, 0)", "is too large for an array"),
        ("(1099511627776, 0)", "has 1099511627776 rows without a value"),
        ("(2147483648,)", "ends after 0 bytes of values"),
        ("(3, 1099511627776)", "ends after 0 bytes of values"),
        (f"({'1, ' * 65})", "an array of 65 axes"),
    ],
)
def test_the_stated_shape_is_checked_before_anything_is_allocated(
    tmp_path: Path, shape: str, reason: str, fortran: bool
) -> None:
    (tmp_path / "x.npy").write_bytes(claim(shape, fortran=fortran))
    archive(tmp_path / "x.npz", [("x.npy", claim(shape, fortran=fortran))])
    with pytest.raises(tfr.errors.DecodeError, match=reason):
        tfr.formats.open_npy(tmp_path / "x.npy")
    with pytest.raises(tfr.errors.DecodeError, match=reason):
        tfr.formats.open_npz(tmp_path / "x.npz")


@pytest.mark.parametrize("shape", ["(2, 2000000000)", "(1, 2, 1000000000)"])
def test_a_row_larger_than_any_record(tmp_path: Path, shape: str) -> None:
    """The size of a compressed file is not known in advance."""
    with gzip.open(tmp_path / "x.npy.gz", "wb") as file:
        file.write(claim(shape))
    with pytest.raises(tfr.errors.EncodeError, match="a row has 8000000000 bytes, and a record at most 2147483647"):
        tfr.formats.open_npy(tmp_path / "x.npy.gz")
    with gzip.open(tmp_path / "x-images-idx3-ubyte.gz", "wb") as file:
        file.write(b"\0\0\x08\x03" + struct.pack(">3I", 2, 0xFFFF, 0xFFFF))
    with pytest.raises(tfr.errors.EncodeError, match="a row has 4294836225 bytes"):
        tfr.formats.open_idx(tmp_path / "x-images-idx3-ubyte.gz")


@pytest.mark.parametrize("fortran", [False, True])
def test_two_arrays_in_one_file_are_an_error(tmp_path: Path, fortran: bool) -> None:
    twice = claim("(2, 2)", bytes(16), fortran=fortran) + claim("(2, 2)", bytes(16))
    (tmp_path / "x.npy").write_bytes(twice)
    (tmp_path / "x.npy.gz").write_bytes(gzip.compress(twice))
    reason = r"continues after the 16 bytes of its shape \(2, 2\) of float32; save each array in a separate file"
    for name in ("x.npy", "x.npy.gz"):
        with pytest.raises(tfr.errors.DecodeError, match=reason):
            tfr.convert(tmp_path / name, tmp_path / "x.tfrecord")
    archive(tmp_path / "x.npz", [("x.npy", twice)])
    with pytest.raises(tfr.errors.DecodeError, match=reason):
        tfr.formats.open_npz(tmp_path / "x.npz")
    (tmp_path / "x-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + struct.pack(">I", 2) + b"abc")
    with pytest.raises(tfr.errors.DecodeError, match="continues after the 2 bytes"):
        tfr.formats.open_idx(tmp_path / "x-idx1-ubyte")
    assert not (tmp_path / "x.tfrecord").exists()


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (0, 0, 2), (2, 0, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_without_values(tmp_path: Path, shape: tuple[int, ...], order: str) -> None:
    np.save(tmp_path / "x.npy", np.asarray(np.zeros(shape, np.int16), order=order))
    assert tfr.convert(tmp_path / "x.npy", tmp_path / "x.tfrecord").records == shape[0]
    actual = tfr.read_arrays(tmp_path / "x.tfrecord")
    assert {name: (array.dtype, array.shape) for name, array in actual.items()} == (
        {"x": (np.dtype(np.int16), shape)} if shape[0] else {}
    )


@pytest.mark.parametrize("descr", ["|S0", "<U0", "|V0"])
def test_values_of_no_bytes(tmp_path: Path, descr: str) -> None:
    (tmp_path / "x.npy").write_bytes(claim("(2,)", descr=descr))
    with pytest.raises(tfr.errors.DecodeError, match="values of no bytes"):
        tfr.formats.open_npy(tmp_path / "x.npy")


@pytest.mark.parametrize("descr", ["|V4", "<M8", "<m8[25s]", "<f16"])
def test_dtypes_that_cannot_be_stored(tmp_path: Path, descr: str) -> None:
    for shape, count in (("(2,)", 2), ("(2, 2)", 4)):
        (tmp_path / "x.npy").write_bytes(claim(shape, bytes(count * np.dtype(descr).itemsize), descr))
        with pytest.raises(tfr.errors.EncodeError, match="cannot be stored in a TFRecord"):
            tfr.formats.open_npy(tmp_path / "x.npy")


def test_names_of_members_are_names_of_columns(tmp_path: Path) -> None:
    names = [
        "../x.npy",
        "/etc/x.npy",
        "d/x.npy",
        ".npy",
        "größe.npy",
        "x\n.npy",
        "x.npy.npy",
        "x/shape.npy",
        "\x1b[31m.npy",
    ]
    archive(tmp_path / "x.npz", [*((name, claim("(1,)", bytes(4))) for name in names), ("readme.txt", b"text")])
    assert tfr.convert(tmp_path / "x.npz", tmp_path / "x.tfrecord").records == 1
    assert list(tfr.read_arrays(tmp_path / "x.tfrecord")) == [name.removesuffix(".npy") for name in names]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["x.npz", "x.tfrecord"]


@pytest.mark.fault(54)
def test_archives_that_are_refused(tmp_path: Path) -> None:
    good = claim("(1,)", bytes(4))
    twice = archive(tmp_path / "x.npz", [("a.npy", good), ("a.npy", good)])
    with pytest.raises(tfr.errors.DecodeError, match=r"2 members of the archive are called 'a\.npy'"):
        tfr.formats.open_npz(twice)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with pytest.raises(
            tfr.errors.DecodeError, match=f"compressed by method {method}; archives are read as NumPy writes them"
        ):
            tfr.formats.open_npz(archive(tmp_path / "x.npz", [("a.npy", good)], method))
    content = bytearray(archive(tmp_path / "x.npz", [("a.npy", good)]).read_bytes())
    content[6] |= 1
    content[content.rindex(b"PK\1\2") + 8] |= 1
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(tfr.errors.DecodeError, match=r"cannot be opened: .* is encrypted"):
        tfr.formats.open_npz(tmp_path / "x.npz")


@pytest.mark.fault(54)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_flipped_bit_in_an_archive_raises_or_does_no_harm(tmp_path: Path, method: int) -> None:
    tensors, values, raised = bytes(range(24)), bytes(12), 0
    members = [("x.npy", claim("(3, 2)", tensors)), ("y.npy", claim("(3,)", values))]
    content = archive(tmp_path / "x.npz", members, method).read_bytes()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 1 << at % 8
        (tmp_path / "x.npz").write_bytes(damaged)
        try:
            table = tfr.formats.open_npz(tmp_path / "x.npz").read_all()
        except tfr.errors.DecodeError:
            raised += 1
        else:  # in a name or a date
            for column in table.columns:
                tensor = hasattr(column.type, "storage_type")
                actual = column.combine_chunks().storage.flatten() if tensor else column
                assert np.asarray(actual).tobytes() == (tensors if tensor else values), at
    assert raised > len(content) // 3


def test_a_member_longer_than_stated_raises(tmp_path: Path) -> None:
    """The CRC is at its end, which must be reached."""
    content = bytearray(archive(tmp_path / "x.npz", [("x.npy", claim("(3,)", bytes(12)))]).read_bytes())
    content[content.index(b"(3,)") + 1] = ord("2")
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(tfr.errors.DecodeError):
        tfr.formats.open_npz(tmp_path / "x.npz").read_all()


def test_an_archive_beyond_32_bit_sizes_is_read(tmp_path: Path) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as made, made.open("x.npy", "w", force_zip64=True) as member:
        member.write(claim("(2,)", bytes(8)))
    (tmp_path / "x.npz").write_bytes(whole.getvalue())
    assert tfr.formats.open_npz(tmp_path / "x.npz").read_all()["x"].to_pylist() == [0.0, 0.0]


# ---- streams


def test_files_are_closed_at_the_end_of_the_batches(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.arange(3))
    np.save(tmp_path / "x.npy", np.arange(3))
    for stream in (tfr.formats.open_npz(tmp_path / "x.npz"), tfr.formats.open_npy(tmp_path / "x.npy")):
        assert stream.read_all().num_rows == 3
        with pytest.raises(ValueError, match="consumed"):
            stream.read_all()
        stream.close()
        with pytest.raises(ValueError, match="closed"):
            stream.read_all()


def test_a_folder_is_not_zipped_as_a_file(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    for make in (
        lambda: tfr.formats.open_npy([tmp_path]),
        lambda: tfr.formats.open_npy({"x": tmp_path}),
        lambda: tfr.formats.open_idx(tmp_path),
    ):
        with pytest.raises(IsADirectoryError):
            make()


def test_file_objects_are_not_converted_to_array_files(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "x.tfrecord")
    file = io.BytesIO((tmp_path / "x.tfrecord").read_bytes())
    with pytest.raises(TypeError, match="read several times"):
        tfr.formats.write_npy(file, tmp_path / "x.npy")
    with pytest.raises(TypeError, match="read several times"):
        tfr.formats.write_npz([file], tmp_path / "x.npz")


@pytest.mark.parametrize("length", [0, 15, 17, 100_000_000])
def test_a_compressed_array_in_fortran_order_is_spooled_only_as_far_as_its_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    written = []

    def temporary_file() -> Any:
        file = tempfile.SpooledTemporaryFile(1 << 20)  # noqa: SIM115
        real = file.write
        file.write = lambda data: written.append(len(data)) or real(data)  # type: ignore[method-assign,assignment]
        return file

    monkeypatch.setattr(tempfile, "TemporaryFile", temporary_file)
    (tmp_path / "x.npy.gz").write_bytes(gzip.compress(claim("(2, 2)", bytes(length), fortran=True), 1))
    with pytest.raises(
        tfr.errors.DecodeError, match="continues after the 16" if length > 16 else f"ends after {length} bytes"
    ):
        tfr.convert(tmp_path / "x.npy.gz", tmp_path / "x.tfrecord")
    assert sum(written) <= 17


def test_an_array_larger_than_the_disk_is_not_spooled(tmp_path: Path) -> None:
    (tmp_path / "x.npy.gz").write_bytes(gzip.compress(claim(f"(2, {2**57})", fortran=True, descr="|u1")))
    with pytest.raises((OSError, tfr.errors.EncodeError), match=r"a record at most|are free: decompress it first"):
        tfr.convert(tmp_path / "x.npy.gz", tmp_path / "x.tfrecord")
    (tmp_path / "y.npy.gz").write_bytes(gzip.compress(claim(f"({2**50}, 2)", fortran=True)))
    with pytest.raises(OSError, match="are free: decompress it first"):
        tfr.convert(tmp_path / "y.npy.gz", tmp_path / "y.tfrecord")
