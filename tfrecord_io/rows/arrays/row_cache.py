"""Keep decoded rows on the local disk, where processes share them.

All rows have one size, so that its number gives the offset of a row, and a checksum: a row that is being written,
or was when the machine stopped, is decoded again.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfrecord_io.base import check_integer, printable, warn
from tfrecord_io.bytes import Array, get_engine
from tfrecord_io.errors import SchemaError
from tfrecord_io.rows.arrays.rows_by_number import ArraysByNumber, row_numbers
from tfrecord_io.rows.arrays.stacked_or_ragged import BatchForm
from tfrecord_io.store import RandomAccessFile, Source

_FORMAT = 1  # of the files
_ROWS, _CHECKSUM = "rows", np.dtype("<u4")
_SHARE = 2  # without a limit, rows take at most the free space divided by this


@dataclass(frozen=True, slots=True)
class _Part:
    """An array of each row; of a masked array, the values or the mask."""

    name: str
    is_mask: bool
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))


class CachedRows(ArraysByNumber):
    """Rows by number as arrays of one shape, which are decoded once and then read from a folder.

    `identity` says which rows of the `sources` they are; the versions of the files are looked up in each process, as
    the files are opened there.
    """

    def __init__(
        self, rows: ArraysByNumber, identity: str, sources: tuple[Source, ...], folder: str, most_bytes: int | None
    ) -> None:
        super().__init__(*rows.__reduce__()[1])
        self._of_cache = identity, sources, folder, most_bytes
        self._parts = _parts_of(super().arrays(np.empty(0, np.int64)))
        parts = [(part.name, part.dtype, part.shape) for part in self._parts]
        which = _digest(_FORMAT, identity, [source.path for source in sources])
        version = _digest([*map(_version, sources)], len(rows), parts)
        self.rows.check_unchanged()  # the versions are those of the files that `rows` has open
        row_bytes = sum(part.size for part in self._parts)
        self._cache = _RowFile(
            Path(folder), which, version, count=len(rows), row_bytes=row_bytes, most_bytes=most_bytes
        )

    def row(self, number: int) -> None:
        """Return None: `arrays` reads the row."""

    def arrays(
        self, rows: Any, form: BatchForm | None = None, cuts: tuple[Array, Array] | None = None
    ) -> dict[str, Any]:
        assert form is None
        assert cuts is None
        numbers = row_numbers(rows, len(self))
        stored, missing = self._cache.read(numbers)
        if missing.any():
            decoded = super().arrays(numbers[missing])
            packed = self._pack(decoded, int(missing.sum()))
            if packed is None:
                return super().arrays(numbers)
            stored[missing] = packed
            self._cache.write(numbers[missing], packed)
        return self._unpack(stored)

    def _pack(self, arrays: Mapping[str, Any], count: int) -> Array | None:
        """Rows as bytes [rows, bytes]; None if they have another shape than rows had at first."""
        if _parts_of(arrays) != self._parts:
            return None
        columns = [_values(arrays[part.name], part).reshape(count, -1).view(np.uint8) for part in self._parts]
        return np.concatenate(columns, axis=1)

    def _unpack(self, stored: Array) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        begin = 0
        for part in self._parts:
            # A copy also of a single row, which is contiguous where it is, but not aligned for its values.
            columns = np.array(stored[:, begin : begin + part.size], order="C")
            values = columns.view(part.dtype).reshape(len(stored), *part.shape)
            arrays[part.name] = np.ma.MaskedArray(arrays[part.name], values) if part.is_mask else values
            begin += part.size
        return arrays

    def __reduce__(self) -> tuple[Any, ...]:
        rows = ArraysByNumber(*super().__reduce__()[1])
        return CachedRows, (rows, *self._of_cache)


def _digest(*values: Any) -> str:
    return hashlib.sha256(repr(values).encode("utf-8", "surrogateescape")).hexdigest()[:32]


def _parts_of(arrays: Mapping[str, Any]) -> list[_Part]:
    """The parts of rows; SchemaError if rows of a column have no shape in common."""
    parts = []
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.kind in "OTUS":
            reason = "cache= keeps rows of one size, and its values have none"
            advice = "leave it out by select(), or declare its shape, such as tfr.image(resize=…), or pad_to="
            raise SchemaError(reason, feature=name, hint=advice)
        shape = array.shape[1:]
        parts.append(_Part(name, False, array.dtype, shape))
        if isinstance(array, np.ma.MaskedArray):
            parts.append(_Part(name, True, np.dtype(np.bool_), shape))
    return parts


def _values(array: Array, part: _Part) -> Array:
    values = np.ma.getmaskarray(array) if part.is_mask else np.ma.getdata(array)
    return np.ascontiguousarray(values)


class _RowFile:
    """Rows of one size in a file, each after its checksum; threads and processes may share it.

    It is read, not mapped, as files are: another process may have removed or shortened it.
    """

    def __init__(
        self, cache: Path, which: str, version: str, *, count: int, row_bytes: int, most_bytes: int | None
    ) -> None:
        """Make the file in the folder of `which` rows and their `version`, and remove that of other versions."""
        folder = cache / f"{which}-{version}"
        folder.mkdir(parents=True, exist_ok=True)
        for earlier in cache.glob(f"{which}-*"):
            if earlier != folder:
                shutil.rmtree(earlier, ignore_errors=True)
        self._path, self._size, self._is_full = folder / _ROWS, _CHECKSUM.itemsize + row_bytes, False
        if most_bytes is None:
            most_bytes = shutil.disk_usage(folder).free // _SHARE
        else:
            most_bytes -= sum(os.stat(path).st_size for path in cache.glob(f"*/{_ROWS}") if path != self._path)
        self._kept = min(count, max(most_bytes, 0) // self._size)  # rows; which ones does not matter
        with open(self._path, "ab") as file:  # never shortened: another process may make it, too
            if file.tell() < self._kept * self._size:
                file.truncate(self._kept * self._size)  # zeros, which take no space before they are written

    def read(self, numbers: Array) -> tuple[Array, Array]:
        """Rows as bytes, and which are not there."""
        found, missing = np.zeros((len(numbers), self._size), np.uint8), np.ones(len(numbers), np.bool_)
        crc = get_engine().crc32c
        with suppress(FileNotFoundError), open(self._path, "rb", buffering=0) as file:
            for at, number in enumerate(numbers.tolist()):
                file.seek(number * self._size)
                file.readinto(found[at].data)
                checksum, row = found[at, : _CHECKSUM.itemsize].view(_CHECKSUM)[0], found[at, _CHECKSUM.itemsize :]
                missing[at] = checksum == 0 or checksum != _checksum(crc(row))
        return found[:, _CHECKSUM.itemsize :], missing

    def write(self, numbers: Array, rows: Array) -> None:
        """Keep rows, unless there is no room for more."""
        if self._is_full:
            return
        crc = get_engine().crc32c
        try:
            with open(self._path, "r+b", buffering=0) as file:
                for number, row in zip(numbers.tolist(), rows, strict=True):
                    if number < self._kept:
                        file.seek(number * self._size)
                        file.write(np.array(_checksum(crc(row)), _CHECKSUM).tobytes() + row.tobytes())
        except OSError as error:
            self._is_full = True
            if isinstance(error, FileNotFoundError) and not self._path.parent.exists():
                return  # another process reads a later version of the files
            warn(f"{printable(self._path)}: {error}; no more rows are cached", RuntimeWarning)


def _checksum(crc: int) -> int:
    return crc or 1  # 0: there is no row


def cached_rows(
    rows: ArraysByNumber, identity: Any, sources: tuple[Source, ...], cache: Any, representation: Any
) -> CachedRows:
    """Rows that are kept in the folder of ``cache=``, a path or (path, bytes); `identity` says which rows they are.

    TypeError or ValueError if it is neither, or it cannot be detected whether a file was changed.
    """
    folder, most_bytes = cache if isinstance(cache, tuple | list) and len(cache) == 2 else (cache, None)
    if not isinstance(folder, str | os.PathLike):
        raise TypeError(f"cache={cache!r}: expected a local directory, or (directory, most bytes)")
    most_bytes = check_integer("cache", most_bytes, 1, optional=True)
    decoder = None
    with suppress(ImportError):  # other versions may decode images to other pixels
        import PIL

        decoder = PIL.__version__
    which = repr((identity, decoder, representation, str(rows.schema)))
    return CachedRows(rows, which, sources, folder=os.fspath(folder), most_bytes=most_bytes)


def _version(source: Source) -> str:
    """A text that differs if the content of a file does."""
    if source.shard is not None and source.shard.crc32c is not None:
        return f"crc32c={source.shard.crc32c}"
    with closing(RandomAccessFile.open(source)) as file:
        if not file.version:
            reason = "it has neither an ETag nor a time of change, by which a change could be detected"
            raise ValueError(f"cache=: {printable(source.path)}: {reason}; copy it first")
        # A file that replaces another one may have its size and its time of change.
        return f"{file.version} {file.identity}"
