"""WebDataset archives: samples, members, hostile archives, and back."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from servers import Bucket
from tfrecord_io.plugins.vision import webdataset


def archive(path: Path, members: list[tuple[str, bytes]], mode: str = "w") -> None:
    with tarfile.open(path, mode) as file:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            file.addfile(member, io.BytesIO(content))


SAMPLES = [
    ("a/1.jpg", b"\xff\xd8"),
    ("a/1.cls", b"3\n"),
    ("a/1.json", b'{"x": 1}'),
    ("b/1.jpg", b""),
    ("b/1.seg.PNG", b"\x89"),
    ("b/1.txt", "ä".encode()),
]
ROWS = [
    {"__key__": "a/1", "jpg": b"\xff\xd8", "cls": 3, "json": '{"x": 1}', "seg.png": None, "txt": None},
    {"__key__": "b/1", "jpg": b"", "cls": None, "json": None, "seg.png": b"\x89", "txt": "ä"},
]


@pytest.mark.parametrize(("name", "mode"), [("a.tar", "w"), ("a.tar.gz", "w:gz")])
def test_samples_and_back(tmp_path: Path, name: str, mode: Any) -> None:
    archive(tmp_path / name, SAMPLES, mode)
    tfr.convert(tmp_path / name, tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == ROWS
    report = tfr.convert(tmp_path / "a.tfrecord", tmp_path / f"again.{name}")
    assert report.bytes == (tmp_path / f"again.{name}").stat().st_size
    with tarfile.open(tmp_path / f"again.{name}") as file:
        names = [(member.name, file.extractfile(member).read()) for member in file]  # type: ignore[union-attr]
    assert names == [(n.lower(), c.strip()) for n, c in SAMPLES]
    tfr.convert(tmp_path / f"again.{name}", tmp_path / "b.tfrecord")
    assert tfr.read_table(tmp_path / "b.tfrecord").to_pylist() == ROWS


def test_directories_hidden_members_and_several_archives(tmp_path: Path, bucket: Bucket) -> None:
    archive(
        tmp_path / "0.tar",
        [("a/", b""), ("a/.x.jpg", b"x"), ("__info__/x.jpg", b"x"), ("a/README", b"x"), ("a/1.jpg", b"1")],
    )
    archive(tmp_path / "1.tar", [("a/1.jpg", b"2")])
    for i in range(2):
        bucket.fs.pipe(bucket.url(f"w/{i}.tar"), (tmp_path / f"{i}.tar").read_bytes())
    tfr.convert(bucket.url("w"), tmp_path / "a.tfrecord", storage_options=bucket.storage_options)
    assert tfr.read_table(tmp_path / "a.tfrecord", schema={"jpg": "binary"})["jpg"].to_pylist() == [b"1", b"2"]


def test_samples_whose_names_begin_with_underscores(tmp_path: Path) -> None:
    """As the identifiers of YouTube and the names of cameras do, and those of the members of `tar c .` with a dot."""
    rows = [{"__key__": key, "jpg": b"1"} for key in ("_DSC0001", "a/__x", "_/a", "-a", "./1", "./a/1")]
    archive(tmp_path / "a.tar", [(f"{row['__key__']}.jpg", row["jpg"]) for row in rows])
    tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == rows
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b.tar")
    tfr.convert(tmp_path / "b.tar", tmp_path / "b.tfrecord")
    assert tfr.read_table(tmp_path / "b.tfrecord").to_pylist() == rows


def test_a_sample_at_the_root_of_the_file_system_is_not_that_of_the_archive(tmp_path: Path) -> None:
    archive(tmp_path / "a.tar", [("1.jpg", b"a"), ("/1.jpg", b"b")])
    tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["__key__"].to_pylist() == ["1", "/1"]


def test_a_late_member_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webdataset, "_SAMPLE_ROWS", 1)
    archive(tmp_path / "a.tar", SAMPLES)
    with pytest.raises(tfr.errors.DecodeError, match="'b/1' has a member that the first samples do not have"):
        tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()


@pytest.mark.parametrize(
    "member", [("a.cls", b"x"), ("a.cls", b"9" * 30), ("a.cls", b""), ("a.txt", b"\xff"), ("a.json", b"\xff")]
)
def test_members_of_a_wrong_type(tmp_path: Path, member: tuple[str, bytes]) -> None:
    archive(tmp_path / "a.tar", [member])
    with pytest.raises(tfr.errors.DecodeError, match=f"member '{member[0]}'"):
        tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord")
    archive(tmp_path / "a.tar", [("a.jpg", b""), ("a.JPG", b"")])
    with pytest.raises(tfr.errors.DecodeError, match="two members"):
        tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord")


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("a.__key__", tarfile.REGTYPE, "its suffix is __key__"),
        ("a.", tarfile.REGTYPE, "it ends with a dot"),
        ("b.jpg", tarfile.LNKTYPE, "a hard link to 'a.jpg', not a file.*hard-dereference"),
        ("b.jpg", tarfile.SYMTYPE, "a symbolic link to 'a.jpg', not a file.*dereference"),
        ("b.jpg", tarfile.FIFOTYPE, "a device or pipe, not a file"),
    ],
)
def test_members_that_cannot_be_read_are_named(tmp_path: Path, name: str, kind: bytes, reason: str) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        file.addfile(tarfile.TarInfo("a.jpg"))
        member = tarfile.TarInfo(name)
        member.type = kind
        member.linkname = "a.jpg" if kind in (tarfile.LNKTYPE, tarfile.SYMTYPE) else ""
        file.addfile(member)
    with pytest.raises(tfr.errors.DecodeError, match=f"member '{name}': {reason}"):
        tfr.convert(tmp_path / "a.tar", tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()


@pytest.mark.parametrize(
    ("type_", "keys"), [("binary", [b"a", "ä".encode()]), ("string", ["a", "ä"]), ("int64", [1, -2])]
)
def test_keys_are_text_or_integers(tmp_path: Path, type_: str, keys: list[Any]) -> None:
    tfr.write_tfrecord({"jpg": [b"1", b"2"], "__key__": keys}, tmp_path / "a.tfrecord")
    schema = {"jpg": "binary", "__key__": type_}
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.tar", schema=schema)
    with tarfile.open(tmp_path / "a.tar") as file:
        names = [key.decode() if isinstance(key, bytes) else str(key) for key in keys]
        assert file.getnames() == [f"{name}.jpg" for name in names]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"x/y": [b"a"]}, r"has a slash.* target_options=\{'rename': \{'x/y': 'jpg'\}"),
        ({"jpg": [b"a"], "a/b": [1]}, r"has a slash.* target_options=\{'rename': \{'a/b': 'cls'\}"),
        ({"jpg": [b"a"], "X": ["a"]}, r"has capitals.* target_options=\{'rename': \{'X': 'txt'\}"),
        ({"jpg": [b"a"], ".x": ["a"]}, "begins with a dot"),
        ({"cls": ["cat"]}, r"take the members of this suffix for integers; .*\{'rename': \{'cls': 'txt'\}"),
        ({"jpg": [b"a"], "id": [b"7"]}, r"for integers; .*\{'rename': \{'id': 'jpg'\}"),
        ({"jpg": [b"a"], "x": [1.5]}, "name it after a suffix"),
        ({"jpg": [b"a"], "__key__": ["../a"]}, "cannot be used"),
        ({"jpg": [b"a"], "__key__": ["./../a"]}, "cannot be used"),
        ({"jpg": [b"a", b"b"], "__key__": ["a", "a"]}, "that of the sample before it"),
        ({"jpg": [b"a"], "__key__": [b"\xff"]}, "is not text in UTF-8"),
        ({"jpg": [b"a"], "__key__": [1.5]}, "cannot be stored"),
        ({"jpg": [b"a"], "__key__": ["a.b"]}, "its last part has a dot"),
        ({"jpg": [b"a", None]}, "without values"),
        ({"jpg": [b"a"], "__key__": ["__meta__/1"]}, "0: feature 'jpg': '__meta__/1.jpg' is the name of metadata"),
        ({"x__": [b"a"], "__key__": ["__a"]}, "0: feature 'x__': '__a.x__' is the name of metadata"),
    ],
)
def test_what_an_archive_cannot_hold(tmp_path: Path, data: dict[str, Any], reason: str) -> None:
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match=reason):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.tar")
    assert not (tmp_path / "a.tar").exists()


def test_the_way_that_the_error_names_for_a_slash(tmp_path: Path) -> None:
    tfr.write_tfrecord({"image/encoded": [b"a"], "image/class/label": [1]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match="slash") as raised:
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.tar")
    names = {"image/encoded": "jpg", "image/class/label": "cls"}
    assert f"'rename': {{{raised.value.feature!r}: {names[raised.value.feature]!r}}}" in str(raised.value)
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.tar", target_options={"rename": names})
    with tarfile.open(tmp_path / "a.tar") as file:
        assert file.getnames() == ["00000000.jpg", "00000000.cls"]


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("depth", [1, 3])
def test_raw_pixels_become_png_files(tmp_path: Path, dtype: str, depth: int) -> None:
    image = pytest.importorskip("PIL.Image")
    arrays = [np.full((4 + row, 5, depth), 7 * row, dtype) for row in range(3)]
    with tfr.RecordWriter(tmp_path / "a.tfrecord") as writer:
        for row, array in enumerate(arrays):
            sizes = dict(zip(("height", "width", "depth"), array.shape, strict=True))
            writer.write(tfr.encode_example({"image_raw": array.tobytes(), "label": row, **sizes}))
    pixels = tfr.image(tfr.tensor(dtype, ("height", "width", "depth")))
    source = tfr.dataset(tmp_path / "a.tfrecord", schema={"image_raw": pixels, "label": "int64"}, sample="all")
    with pytest.raises(tfr.errors.EncodeError, match=r"'image_raw'.*raw pixels become PNG files.*: 'png'"):
        tfr.convert(source, tmp_path / "a.tar")
    rename = {"image_raw": "png", "label": "cls"}
    tfr.convert(source, tmp_path / "a.tar", target_options={"rename": rename})
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert archive.getnames()[:2] == ["00000000.png", "00000000.cls"]
        for row, array in enumerate(arrays):
            file = archive.extractfile(f"{row:08d}.png")
            assert file is not None
            if dtype == "uint8" or depth == 1:
                np.testing.assert_array_equal(np.asarray(image.open(file)).reshape(array.shape), array)
