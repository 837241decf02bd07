"""IDX, the format of MNIST's files: a magic number with type and rank, the sizes of the axes, the values, all big-endian.

Format: http://yann.lecun.com/exdb/mnist, "THE IDX FILE FORMAT".
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from tfrecord_io.errors import DecodeError
from tfrecord_io.file_formats.array_file import ArrayFile

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_IDX = re.compile(r"[-_.]idx[0-9]+[-_.]u?(byte|short|int|float|double)(\.gz)?$|\.idx[0-9]$")
_NAME = re.compile(r"(?:.*[-_.])?(?P<what>[A-Za-z]+)[-_.]idx[0-9]+[-_.]u?(byte|short|int|float|double)")


def open_idx(file: Any, path: str, *, seekable: bool = False) -> ArrayFile:
    """Read the header; the file stands at the first value then.

    Raises
    ------
    DecodeError
        It is no IDX file.
    """
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES:
        reason = "not an IDX file: it does not begin with two zeros and a type"
        raise DecodeError(reason, path=path, offset=0, expected="IDX", got=magic.hex())
    sizes = file.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise DecodeError("the IDX file ends inside its header", path=path, expected=4 * magic[3], got=len(sizes))
    return ArrayFile(path, np.dtype(_TYPES[magic[2]]), struct.unpack(f">{magic[3]}I", sizes), False, file, seekable)


def looks_like_idx(head: bytes) -> bool:
    """Whether a file begins as IDX files do.

    >>> looks_like_idx(bytes([0, 0, 8, 3, 0, 0, 0, 9]))
    True
    """
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in _TYPES and 0 < head[3] < 8


def is_idx_name(path: str) -> bool:
    """Whether the name of a file is one that IDX files have.

    >>> is_idx_name("data/train-images-idx3-ubyte.gz")
    True
    """
    return _IDX.search(path) is not None


def idx_name(stem: str) -> str:
    """Name of the column that an IDX file becomes, by the words of MNIST's files.

    >>> idx_name("train-images-idx3-ubyte"), idx_name("t10k-labels-idx1-ubyte"), idx_name("depth")
    ('image', 'label', 'depth')
    """
    match = _NAME.fullmatch(stem)
    what = match["what"] if match else stem
    return what.removesuffix("s") if match else what
