"""Recognition of files that are not TFRecord files by their first bytes, for error messages.

Tests: tests/store/read/test_open_stream.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar

from tfrecord_io.bytes.format.known_formats import FORMATS, Format

_JSONL = FORMATS.jsonl

Predicate = Callable[[bytes], bool]


class ForeignFile:
    """The marks by which files of other formats are recognized."""

    IMAGES: ClassVar = {  # the formats of images that are imported and decoded, by name, with their suffixes
        "jpeg": (".jpg", ".jpeg", ".jpe", ".jfif"),
        "png": (".png",),
        "gif": (".gif",),
        "bmp": (".bmp",),
        "webp": (".webp",),
        "tiff": (".tif", ".tiff"),
    }
    TIFF_MAGIC: ClassVar = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")  # the last two are of BigTIFF
    HEAD_BYTES: ClassVar = 512  # the number of bytes that `looks_like` uses
    ZEROS: ClassVar = "a file of zeros: a sparse file or an incomplete download"

    @staticmethod
    def looks_like(head: bytes) -> str | None:
        """Name the format of a file by its first `HEAD_BYTES` bytes: a phrase after "looks like", None if unknown.

        >>> ForeignFile.looks_like(b"PAR1...")
        'a Parquet file'
        """
        head = bytes(head[: ForeignFile.HEAD_BYTES])
        format_name = next((name for name, matches in SIGNS if matches(head)), None)
        if format_name is not None and format_name not in _INEXACT:
            return format_name
        return next((name for name, matches in _signs_of(FORMATS) if matches(head)), format_name)


def _begins(*magics: bytes, at: int = 0) -> Predicate:
    return lambda head: head.startswith(magics, at)


def _riff(kind: bytes) -> Predicate:
    return lambda head: head[:4] == b"RIFF" and head[8:12] == kind


def _regex(pattern: bytes) -> Predicate:
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda head: compiled.match(head) is not None


def _is_text(head: bytes) -> bool:
    """True if bytes are UTF-8 (perhaps truncated inside the last character) of printable characters and line ends."""
    if not head:
        return False
    for dropped in range(min(4, len(head))):
        try:
            text = head[: len(head) - dropped].decode("utf-8")
        except UnicodeDecodeError:
            continue
        return all(c.isprintable() or c in "\t\n\r\f" for c in text)
    return False


# riegeli_records_file_format.md: hashes of the first block's header and of the signature chunk's header after it
_RIEGELI = (bytes.fromhex("83af70d10d884a3f"), bytes.fromhex("91bac23c9287e1a9"))


def reader_hints(kind: str) -> tuple[str | None, str | None]:
    """Hints on reading a format that `looks_like` has named, in Python and for the command; None if nothing reads it.

    >>> reader_hints("a NumPy .npy file")
    ("read it with tfr.convert(…, source_format='npy') or numpy.load", 'read it with tfr convert --from npy')
    """
    return next(((row.advice, row.advice_cli) for row in FORMATS if kind in row.looks), (None, None))


def _signs_of(rows: Iterable[Format]) -> Iterator[tuple[str, Predicate]]:
    """How files of these formats begin; each is called by its first name."""
    return ((row.looks[0], _begins(*row.magic, at=row.magic_at)) for row in rows if row.magic and row.looks)


# What is named so may be of a format of a plugin or another package.
_INEXACT = (_JSONL.looks[0], "plain text", "UTF-16 text", ForeignFile.ZEROS)
# The first match wins, so exact tests are before inexact ones.
SIGNS: tuple[tuple[str, Predicate], ...] = (
    ("a PNG image", _begins(b"\x89PNG")),
    ("a JPEG image", _begins(b"\xff\xd8\xff")),
    ("a GIF image", _begins(b"GIF87a", b"GIF89a")),
    ("a WebP image", _riff(b"WEBP")),
    ("a WAV file", _riff(b"WAVE")),
    ("a FLAC file", _begins(b"fLaC")),
    ("an Ogg file", _begins(b"OggS")),
    ("a TIFF image", _begins(*ForeignFile.TIFF_MAGIC)),
    ("a BMP image", _regex(rb"BM.{12}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0")),  # the size of its second header
    ("an AVIF image", _begins(b"ftypavif", b"ftypavis", at=4)),
    ("a HEIC image", _begins(b"ftyphei", b"ftyphev", b"ftypmif1", at=4)),
    ("an MP4 video", _begins(b"ftyp", at=4)),
    *_signs_of(FORMATS.core),
    ("a Feather V1 file", _begins(b"FEA1")),
    (
        "an Arrow IPC stream",
        lambda h: h[:4] == b"\xff\xff\xff\xff" and len(h) >= 8 and 0 < int.from_bytes(h[4:8], "little") < 1 << 24,
    ),
    ("a Riegeli or ArrayRecord file", lambda h: h.startswith(_RIEGELI[0]) or h[24:32] == _RIEGELI[1]),
    ("an Avro file", _begins(b"Obj\x01")),
    ("a SQLite database", _begins(b"SQLite format 3\0")),
    ("gzip data", _begins(b"\x1f\x8b")),
    ("zstd data", _begins(b"\x28\xb5\x2f\xfd")),
    ("bzip2 data; decompress it first, with bunzip2", _regex(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)")),
    ("xz data; decompress it first, with unxz", _begins(b"\xfd7zXZ\0")),
    ("LZ4 data", _begins(b"\x04\x22\x4d\x18")),
    ("Snappy data", _begins(b"\xff\x06\0\0sNaPpY")),
    ("7-Zip data", _begins(b"7z\xbc\xaf\x27\x1c")),
    ("a PDF document", _begins(b"%PDF-")),
    ("an ELF program", _begins(b"\x7fELF")),
    ("an LMDB database", _begins(b"\xde\xc0\xef\xbe", at=16)),
    ("a Python pickle", _regex(rb"\x80[\x02-\x05][\x95}\](\x8cc]")),
    ("a Git LFS pointer: the data was not downloaded; run git lfs pull", _begins(b"version https://git-lfs")),
    (  # `fence` of `tfrecord_io.store.paths.file_names.FileName`, a copy of which replaces a shard in S3
        "the mark of a shard that a writer is removing; read the dataset again",
        _regex(rb"_[0-9a-f]{16}-00000-00000\.staged$"),
    ),
    (
        "an HTML page, perhaps a server's error page",
        _regex(rb"(\xef\xbb\xbf)?\s*(<!--.*?-->\s*)*<(!doctype html|html|head|body)\b"),
    ),
    (
        "an XML document, perhaps a bucket's error message",
        _regex(rb"(\xef\xbb\xbf)?\s*<(\?xml|error>|[a-z][\w:.-]*[\s/>])"),
    ),
    (
        _JSONL.looks[0],
        lambda h: _regex(rb'(\xef\xbb\xbf)?\s*(\{\s*(["}]|$)|\[\s*(["\[{\]\d-]|true|false|null|$))')(h) and _is_text(h),
    ),
    ("plain text", _is_text),
    ("UTF-16 text", lambda h: h[:2] in (b"\xff\xfe", b"\xfe\xff") and len(h) >= 4),
    (ForeignFile.ZEROS, lambda h: len(h) >= 12 and not any(h)),
)
