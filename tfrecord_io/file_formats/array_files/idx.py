"""IDX, the format of the MNIST files: a magic number with type and rank, the sizes of the axes, the values; big-endian.

Format: http://yann.lecun.com/exdb/mnist, "THE IDX FILE FORMAT".
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from tfrecord_io.errors import DecodeError
from tfrecord_io.file_formats.array_files.array_file import ArrayFile

_TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_IDX = re.compile(r"[-_.]idx[0-9]+[-_.]u?(byte|short|int|float|double)(\.gz)?$|\.idx[0-9]$")
_NAME = re.compile(r"(?:.*[-_.])?(?P<what>[A-Za-z]+)[-_.]idx[0-9]+[-_.]u?(byte|short|int|float|double)")


def open_idx(file: Any, path: str, *, seekable: bool = False) -> ArrayFile:
    """Read the header; `file` is then positioned at the first value."""
    magic = file.read(4)
    if len(magic) < 4 or magic[:2] != b"\0\0" or magic[2] not in _TYPES:
        reason = "not an IDX file: it does not begin with two zeros and a type"
        raise DecodeError(reason, path=path, offset=0, expected="IDX", got=magic.hex())
    sizes = file.read(4 * magic[3])
    if len(sizes) < 4 * magic[3]:
        raise DecodeError("the IDX file ends inside its header", path=path, expected=4 * magic[3], got=len(sizes))
    return ArrayFile(path, np.dtype(_TYPES[magic[2]]), struct.unpack(f">{magic[3]}I", sizes), False, file, seekable)


def is_idx_name(path: str) -> bool:
    """Whether a file has the name of an IDX file.

    >>> is_idx_name("data/train-images-idx3-ubyte.gz")
    True
    """
    return _IDX.search(path) is not None


def idx_name(stem: str) -> str:
    """The column name for an IDX file, from names like those of the MNIST files.

    >>> idx_name("train-images-idx3-ubyte"), idx_name("t10k-labels-idx1-ubyte"), idx_name("depth")
    ('image', 'label', 'depth')
    """
    match = _NAME.fullmatch(stem)
    return match["what"].removesuffix("s") if match else stem
