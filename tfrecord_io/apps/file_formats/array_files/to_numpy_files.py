"""Write columns of TFRecord files as ``.npy`` and ``.npz`` files, row by row.

Tests: tests/apps/file_formats/array_files/test_to_numpy_files.py.
"""

from __future__ import annotations

import math
import os
import shlex
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.apps.file_formats.array_files.open_array import BLOCK_BYTES
from tfrecord_io.base import Expansion, ExportOptions, StorageOptions
from tfrecord_io.bytes import NpyHeader
from tfrecord_io.columns import Column, Ragged
from tfrecord_io.errors import DecodeError, EncodeError, FeatureNotFoundError, SchemaWarning
from tfrecord_io.kit import Array, Dtype, ProgressMeter, check_keywords, empty_batch, open_output, printable, warn
from tfrecord_io.read import CallSource, Scan, ScanRows
from tfrecord_io.store import Directory, Source
from tfrecord_io.typing import UNSET, FileMode, FilesLike, Path, ProgressLike, Reader, StorageLike, Unset, WriteReport
from tfrecord_io.write import FrameSink

_EXCLUDE = "exclude the column with columns="
_EXCLUDE_CLI = "exclude the column with --columns"
_MISSING = f'read it with read_arrays(missing="mask"), or {_EXCLUDE}'
_MISSING_CLI = _EXCLUDE_CLI
_RAGGED = "an array holds rows of one shape; read it with read_arrays(ragged=)"
_RAGGED_CLI = "an array holds rows of one shape"

_CHUNK_BYTES = 1 << 20
_CHUNK_ROWS = 4096
_GROUP_BYTES = 64 << 20  # of the columns written in one pass
_LONGEST_NAME = 2**16 - 1  # in a zip file, in bytes

_Form = tuple[np.dtype[Any], tuple[int, ...]]  # the dtype of a column, and the shape of a row


@check_keywords
def write_npy(
    source: FilesLike,
    target: Path,
    column: str | None = None,
    *,
    mode: FileMode | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport:
    """Write a column of TFRecord files, or several as a structured array, as a ``.npy`` file, row by row.

    >>> import numpy as np, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": np.eye(3, dtype=np.float32)}, "eye.tfrecord")
    >>> tfr.formats.write_npy("eye.tfrecord", "eye.npy").records
    3
    >>> np.load("eye.npy").shape
    (3, 3)

    Parameters
    ----------
    source
        TFRecord files, as for `tfrecord_io.dataset`.
    target : str or PathLike
        Written atomically; compressed according to its suffix (``x.npy.gz``).
    column : str, optional
        The column to write. Without it, several columns are written as a structured array, whose fields they are.
    mode : {"error", "overwrite"}, optional
        "error": an existing file is an error.
    storage_options, progress
        As for `tfrecord_io.dataset`; `storage_options` also of the target.

    Returns
    -------
    WriteReport

    Raises
    ------
    EncodeError
        Rows differ in shape or are missing (missing dates and times are written as NaT), the values are bytes, which
        a ``.npy`` file can only store as pickles, or a text ends in a NUL, which NumPy takes for padding.
    DecodeError
        One long text makes the array larger than `Limits.expansion_bytes`: each row has the width of the longest.
    FeatureNotFoundError
        The column does not exist, or the source has no columns.
    """
    return to_npy(source, target, column, mode=mode, storage_options=storage_options, progress=progress)


def to_npy(
    source: FilesLike, target: Path, column: str | None = None, *, mode: FileMode | None = None, **keywords: Any
) -> WriteReport:
    """`write_npy` with all keywords of reading."""
    scan, storage = _scan(source, keywords)
    names = [field.name for field in Column.leaf_fields(scan.schema)]
    if not names:
        advice = "the files have no column: they hold no records and no schema"
        raise FeatureNotFoundError("a .npy file holds one array", expected="column=", got=names, hint=advice)
    columns = tuple(names) if column is None else (column,)
    _warn_of_times(field for field in Column.leaf_fields(scan.schema) if field.name in columns)
    sink = FrameSink(target, storage, mode=mode)
    try:
        with _meter(scan) as meter:
            forms, rows = _measure_columns(scan, columns, meter.part())
            if len(columns) == 1:
                [(name, blocks)] = _arrays(scan, columns, forms, meter.part())
                _write_rows(sink.write_bytes, forms[name], rows=rows, blocks=blocks, column=name)
            else:
                dtype = np.dtype([(name, *form) for name, form in forms.items()])
                blocks = _structure_blocks(dtype, _blocks(scan, columns, meter.part()))
                _write_rows(sink.write_bytes, (dtype, ()), rows=rows, blocks=blocks, column=None)
    except BaseException:
        sink.discard()
        raise
    sink.commit()
    return WriteReport(
        os.fspath(target), rows, bytes=sink.bytes, compression=sink.compression, columns=columns, rounded={}
    )


@check_keywords
def write_npz(
    source: FilesLike,
    target: Path,
    *,
    compressed: bool = False,
    mode: FileMode | None = None,
    columns: Sequence[str] | str | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport:
    """Write the columns of TFRecord files as the arrays of an ``.npz`` archive.

    The files are read once to find the shapes, and once for each group of columns of up to 64 MiB.

    >>> import numpy as np, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"x": np.eye(3), "y": np.arange(3)}, "pair.tfrecord", float64="raw"
    ... )
    >>> tfr.formats.write_npz("pair.tfrecord", "pair.npz").columns
    ('x', 'y')
    >>> sorted(np.load("pair.npz"))
    ['x', 'y']

    Parameters
    ----------
    source, target, mode, columns, storage_options, progress
        As in `write_npy`.
    compressed : bool
        Deflate the arrays, as ``numpy.savez_compressed`` does.

    Returns
    -------
    WriteReport

    Raises
    ------
    EncodeError, DecodeError
        As in `write_npy`; or the name of a column leads out of the archive (``../x``, ``/x``).
    """
    return to_npz(
        source,
        target,
        compressed=compressed,
        mode=mode,
        columns=columns,
        storage_options=storage_options,
        progress=progress,
    )


def to_npz(
    source: FilesLike, target: Path, *, compressed: bool = False, mode: FileMode | None = None, **keywords: Any
) -> WriteReport:
    """`write_npz` with all keywords of reading."""
    scan, storage = _scan(source, keywords)
    fields = Column.leaf_fields(scan.schema)
    names = [field.name for field in fields]
    for name in names:
        _check_member(name)
    _warn_of_times(fields)
    with _meter(scan) as meter, open_output(target, storage, mode=mode) as output:
        forms, rows = _measure_columns(scan, names, meter.part())
        groups = _groups(forms, rows)
        method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
        with zipfile.ZipFile(output.as_stream(), "w", method) as archive:
            for group in groups:
                for name, blocks in _arrays(scan, group, forms, meter.part(Fraction(1, len(groups)))):
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        _write_rows(member.write, forms[name], rows=rows, blocks=blocks, column=name)
        return WriteReport(
            os.fspath(target), rows, bytes=output.offset, compression=None, columns=tuple(names), rounded={}
        )


def _warn_of_times(fields: Iterable[pa.Field]) -> None:
    """Warn of columns whose times NumPy cannot hold, and reads back as another type."""
    for field in fields:
        if (
            unknown_type := next((part for part in Column(field).types_within() if Column(part).is_other_time), None)
        ) is not None:
            become = "durations" if pa.types.is_time(unknown_type) else "times in UTC without a zone"
            text = f"column '{printable(field.name)}': NumPy has no {unknown_type}, so these values become {become}"
            warn(text, SchemaWarning)


def _check_member(name: str) -> None:
    """Refuse a name that zip files cannot hold, or that leads out of the folder when the archive is unpacked."""
    member = f"{name}.npy"
    reason = Directory.leads_out(member.replace("\\", "/"))
    if reason is None and len(member.encode()) > _LONGEST_NAME:
        reason = "it is too long"
    if reason is not None:
        reason = f"its name cannot be that of a file in an archive: {reason}"
        raise EncodeError(
            reason,
            feature=name,
            hint="rename it, or exclude it with columns=",
            hint_cli="rename it, or exclude it with --columns",
        )


def _scan(source: Any, keywords: Mapping[str, Any]) -> tuple[Scan, StorageOptions]:
    """Plan a read that is opened several times; and the storage of the target."""
    paths = [source] if isinstance(source, str) or not isinstance(source, Sequence) else source
    if any(hasattr(Scan.unwrap(path), "read") and not isinstance(path, Source) for path in paths):
        raise TypeError("the files are read several times: pass a path, not a file object")
    options = CallSource(source).options(ExportOptions, {"batch_bytes": BLOCK_BYTES}, **keywords)
    return CallSource(source).scan(options), options.target


def _meter(scan: Scan) -> ProgressMeter:
    """The progress of reading all files twice: to measure, as a header has the number of rows, and to write."""
    size = scan.bytes
    return ProgressMeter(scan.options.progress, None if size is None else 2 * size, "bytes")


def _measure_columns(scan: Scan, columns: Sequence[str], progress: ProgressLike) -> tuple[dict[str, _Form], int]:
    """The dtype and the shape of all rows of each column, and the number of rows."""
    forms: dict[str, _Form] = {}
    rows = row = 0
    for blocks, reader in _blocks(scan, columns, progress):
        for name, block in blocks.items():
            dtype, shape = forms[name] if row else (_stored_dtype(block), block.shape[1:])
            _check_shape(block, shape, column=name, reader=reader, row=row)
            if block.dtype.kind == "T" and len(block):
                _refuse_last_nuls(block, row, name, reader)
                expansion = Expansion(scan.options.limits.expansion_bytes, reader.payload_bytes)
                _refuse_padding(block, row, width=dtype.itemsize, expansion=expansion, column=name)
            forms[name] = np.promote_types(dtype, _stored_dtype(block)), shape  # the widest dtype of text
            rows = row + len(block)
        row = rows
    return forms, rows


def _groups(forms: Mapping[str, _Form], rows: int) -> list[list[str]]:
    """Group columns for one pass each over the files: as many as memory holds, a larger column alone."""
    groups: list[list[str]] = []
    room = -1
    for name, (dtype, shape) in forms.items():
        size = rows * math.prod(shape) * dtype.itemsize
        if size > room:
            groups.append([])
            room = _GROUP_BYTES
        groups[-1].append(name)
        room -= size
    return groups


def _arrays(
    scan: Scan, group: Sequence[str], forms: Mapping[str, _Form], progress: ProgressLike
) -> Iterator[tuple[str, Iterable[Array]]]:
    """Columns of a group with their blocks; the blocks of a single column are not kept in memory."""
    blocks_and_rows = _blocks(scan, group, progress)
    if len(group) == 1:
        yield group[0], (blocks[group[0]] for blocks, _ in blocks_and_rows)
    else:
        stored_blocks = [
            {name: block.astype(forms[name][0], copy=False) for name, block in blocks.items()}
            for blocks, _ in blocks_and_rows
        ]
        yield from ((name, (blocks[name] for blocks in stored_blocks)) for name in group)


def _structure_blocks(dtype: np.dtype[Any], blocks: Iterable[tuple[Mapping[str, Array], Reader]]) -> Iterator[Array]:
    """Blocks as structured arrays, whose fields are the columns."""
    for arrays, _ in blocks:
        block = np.empty(len(next(iter(arrays.values()))), dtype)
        for name, array in arrays.items():
            block[name] = array
        yield block


def _write_rows(
    write: Callable[[Any], object], form: _Form, rows: int, blocks: Iterable[Array], column: str | None
) -> None:
    dtype, shape = form
    write(NpyHeader.to_bytes(dtype, (rows, *shape)))
    written, per_write = 0, max(1, BLOCK_BYTES // max(1, math.prod(shape) * dtype.itemsize))
    for block in blocks:
        written += len(block)
        for begin in range(0, len(block) if block.size and dtype.itemsize else 0, per_write):
            values = np.ascontiguousarray(block[begin : begin + per_write], dtype)
            write(values.reshape(-1).view(np.uint8).data)
    if written != rows:
        reason = f"the files had {rows} rows, but {written} when they were read again"
        advice = "try again when no program writes to them"
        raise EncodeError(reason, feature=column, expected=rows, got=written, hint=advice)


def _stored_dtype(block: Array) -> np.dtype[Any]:
    """The dtype of an array in a file: of text, its longest value decides."""
    if block.dtype.kind != "T":
        return block.dtype
    return np.dtype(f"U{int(np.strings.str_len(block).max(initial=1))}")


def _refuse_last_nuls(block: Array, rows: int, column: str, reader: Reader) -> None:
    """Refuse text that ends in a NUL, which NumPy takes for padding; there are `rows` before the block."""
    more, end = np.array(["x", "\0x"], block.dtype)  # NumPy takes a NUL at the end of both texts for padding
    ends = np.strings.endswith(np.strings.add(block, more), end)
    if ends.any():
        row = int(ends.reshape(len(block), -1).any(axis=1).argmax())
        reason = "a text ends in a NUL, which arrays of text of one width do not keep"
        raise EncodeError(
            reason, feature=column, record=_record(reader, rows + row), hint=_EXCLUDE, hint_cli=_EXCLUDE_CLI
        )


def _refuse_padding(block: Array, rows: int, width: int, expansion: Expansion, column: str) -> None:
    """Refuse text whose longest value makes all others too wide; the `rows` before it have `width` bytes each."""
    lengths = np.strings.str_len(block).reshape(len(block), -1).max(axis=1, initial=1)
    widths = np.maximum.accumulate(np.maximum(4.0 * lengths, width))
    sizes = widths * math.prod(block.shape[1:]) * (rows + np.arange(1, len(block) + 1))
    if not (sizes > expansion.room).any():
        return
    row = int((sizes > expansion.room).argmax())
    size = int(sizes[row])
    reason = f"an array of {rows + row + 1} rows of text, each as wide as the longest of them, takes {size} bytes"
    reason = expansion.excess(reason)
    advice = f"{expansion.advice(size)}, or {_EXCLUDE}"
    advice_cli = f"{expansion.advice(size)}, or {_EXCLUDE_CLI}"
    raise DecodeError(
        reason, feature=column, record=rows + row, expected=expansion.room, got=size, hint=advice, hint_cli=advice_cli
    )


def _blocks(scan: Scan, columns: Sequence[str], progress: ProgressLike) -> Iterator[tuple[dict[str, Array], Reader]]:
    """The columns of each batch, and its reader; without batches, empty arrays of their dtypes."""
    names = {*columns}
    outer = [
        field.name
        for field in scan.schema
        if not names.isdisjoint(f.name for f in Column.leaf_fields(pa.schema([field])))
    ]
    selected = scan.only(outer) if outer else scan.select(columns)  # `select` refuses unknown names
    with ScanRows(selected.with_options(progress=progress)).open() as reader:
        fields = Column.leaf_fields(reader.schema)
        row = 0
        for batch in chain(reader, [empty_batch(reader.schema)]):
            if len(batch) or not row:
                leaves = zip(Column.leaf_arrays(batch), fields, strict=True)
                yield {f.name: _array(array, f, reader, row) for array, f in leaves if f.name in names}, reader
            row += len(batch)


def _array(array: pa.Array, field: pa.Field, reader: Reader, row: int, *, group: bool = False) -> Any:
    """The rows of a column as one array; of a `group`, lists remain, and bytes are objects. `row`: the first one."""
    _refuse_missing(array, field, reader, row)
    rows = Column(field).rows(array)
    keeps_bytes = group and Column(field.type).is_bytes
    _refuse_dtype(rows.values.dtype, field, allows_objects=keeps_bytes)
    if isinstance(rows, Ragged):
        if keeps_bytes or (group and rows.has_plain_values):
            return rows
        values = _stack(rows, field.name, row)
    else:
        values = rows.values
    if array.null_count:
        values[np.asarray(array.is_null())] = "NaT"
    return values


def _refuse_missing(array: pa.Array, field: pa.Field, reader: Reader, row: int) -> None:
    """Raise EncodeError for the first missing value; a missing time is NaT."""
    if array.null_count:
        is_nested = pa.types.is_nested(array.type) or isinstance(array.type, pa.BaseExtensionType)
        dtype = None if is_nested else Column(array.type).numpy_dtype
        if dtype is None or dtype.kind not in "mM":
            record = _record(reader, row + array.is_null().index(True).as_py())
            reason = "it has no value, and an array cannot mark missing values"
            raise EncodeError(reason, feature=field.name, record=record, hint=_MISSING, hint_cli=_MISSING_CLI)
    if (missing := Column(field).missing_step(array)) is not None:
        record = _record(reader, row + missing)
        reason = "an item of its list has no value, and an array cannot mark missing values"
        raise EncodeError(reason, feature=field.name, record=record, hint=_EXCLUDE, hint_cli=_EXCLUDE_CLI)


def _refuse_dtype(dtype: np.dtype[Any], field: pa.Field, *, allows_objects: bool) -> None:
    """Raise EncodeError for values that NumPy would store without their type."""
    hint, hint_cli = _EXCLUDE, _EXCLUDE_CLI
    if dtype.kind == "V" or Dtype.extension_of(dtype) is not None:
        reason = f"the file format has no {dtype}: NumPy would store it as bytes of no type"
    elif dtype.kind == "O" and not allows_objects:
        reason = f"the file format has no {field.type}: in NumPy its values are objects, which are stored as pickles"
        if Column(field.type).is_bytes:
            name, are_arrays = printable(field.name), "if its bytes are arrays, state their dtype and shape, as in"
            written = "to restore bytes of fixed width (S3), write them with"
            hint = f'{are_arrays} schema_overrides={{"{name}": tfr.tensor("uint8", (28, 28))}}; else {hint}'
            hint += f'; {written} write_tfrecord(…, column_encoding={{"{name}": "raw"}})'
            hint_cli = f"{are_arrays} --type {shlex.quote(f'{name}=tensor(uint8,(28,28))')}; else {hint_cli}"
            hint_cli += f"; {written} tfr convert --column-encoding {shlex.quote(f'{name}=raw')}"
    else:
        return
    raise EncodeError(reason, feature=field.name, hint=hint, hint_cli=hint_cli)


def _stack(rows: Ragged, column: str, row: int) -> Array:
    """Rows of one shape as one array; EncodeError if they have several. `row`: the first one."""
    shape = rows.common_shape()
    if shape is not None:
        return rows.stack(shape)
    if len(rows):
        reason = f"from row {row} on, the rows have several shapes"
        raise EncodeError(reason, feature=column, record=row, hint=_RAGGED, hint_cli=_RAGGED_CLI)
    return np.empty((0, 0), rows.values.dtype)


class Export:
    """Columns of TFRecord files to write as arrays of a file, in one pass; `storage` is the target's."""

    def __init__(self, source: Any, keywords: Mapping[str, Any]) -> None:
        self._scan, self.storage = _scan(source, keywords)
        fields = Column.leaf_fields(self._scan.schema)
        self.names = tuple(field.name for field in fields)
        types = {
            field.name: {Column.TYPE_ATTRIBUTE: str(field.type)} for field in fields if Column(field.type).is_other_time
        }
        self.attributes = {field.name: Column(field).attributes | types.get(field.name, {}) for field in fields}
        _warn_of_times(field for field in fields if field.name not in types)
        self._columns = {field.name: Column(field.with_name(field.name.rpartition("/")[2])) for field in fields}
        self._sizes: dict[str, int] = {}
        outer = {name.rpartition("/")[0] for name in self.names if "/" in name}
        if both := outer.intersection(self.names):
            reason = "it is the name of a column, and of a group of others"
            raise EncodeError(
                reason,
                feature=min(both),
                hint="rename it, or exclude it with columns=",
                hint_cli="rename it, or exclude it with --columns",
            )

    def dimensions(self, name: str, shape: Sequence[int]) -> list[str]:
        """Names for all dimensions of a column, whose rows have this shape."""
        return [Column.ROW_DIMENSION, *self._columns[name].name_dimensions(shape, self._sizes)]

    def write(self, append: Callable[[str, Array | Ragged, bool], None]) -> int:
        """Pass the rows of each column, batch by batch, with whether they are bytes; returns their number.

        The record of an EncodeError of `append` is a row of the batch.
        """
        shapes: dict[str, tuple[int, ...]] = {}
        row = 0
        with ScanRows(self._scan).open() as reader:
            fields = Column.leaf_fields(reader.schema)
            for batch in chain(reader, [empty_batch(reader.schema)]):
                if not len(batch) and row:
                    continue
                for array, field in zip(Column.leaf_arrays(batch), fields, strict=True):
                    values = _array(array, field, reader, row, group=True)
                    if isinstance(values, np.ndarray):
                        _check_shape(
                            values,
                            shapes.setdefault(field.name, values.shape[1:]),
                            column=field.name,
                            reader=reader,
                            row=row,
                        )
                    try:
                        append(field.name, values, Column(field.type).is_bytes)
                    except EncodeError as error:
                        error.record = None if error.record is None else _record(reader, row + error.record)
                        raise
                row += len(batch)
        return row

    def records(self) -> Iterator[tuple[int, dict[str, Array]]]:
        """Each record, with its number: an array by column, without an axis for a single value.

        A missing single value is left out. Bytes are objects, and so are lists in lists of several lengths.
        """
        row = 0
        with ScanRows(self._scan).open() as reader:
            fields = Column.leaf_fields(reader.schema)
            for batch in reader:
                columns = {}
                for array, field in zip(Column.leaf_arrays(batch), fields, strict=True):
                    is_single = not pa.types.is_nested(array.type) and not isinstance(array.type, pa.BaseExtensionType)
                    if not is_single:
                        _refuse_missing(array, field, reader, row)
                    rows = Column(field).rows(array, missing=is_single)
                    _refuse_dtype(rows.values.dtype, field, allows_objects=True)
                    columns[field.name] = list(_cells(rows)), np.asarray(array.is_valid())
                for at in range(len(batch)):
                    yield (
                        _record(reader, row + at),
                        {name: cells[at] for name, (cells, valid) in columns.items() if valid[at]},
                    )
                row += len(batch)


def _cells(rows: Any) -> Iterator[Array]:
    """Each row as an array of the dtype of all; `rows` are those of a `Column`."""
    if isinstance(rows, Ragged):
        yield from rows.objects(0, len(rows))
    else:
        for at in range(len(rows.values)):
            yield rows.values[at : at + 1].reshape(rows.values.shape[1:])


def chunk_of(shape: Sequence[int], item_bytes: int) -> tuple[int, ...]:
    """The shape of the chunks of an array whose rows have this one: about a MiB of whole rows."""
    row_bytes = max(1, item_bytes * math.prod(shape))
    return max(1, min(_CHUNK_ROWS, _CHUNK_BYTES // row_bytes)), *(max(1, size) for size in shape)


def require_one_shape(values: Array | Ragged, name: str, title: str) -> Array:
    """Rows as an array; EncodeError if they are lists of several lengths, which `title` does not have."""
    if not isinstance(values, Ragged):
        return values
    shape = values.common_shape()
    if shape is None and len(values):
        reason = f"its lists differ in length, and an array of {title} has one length for all"
        raise EncodeError(
            reason,
            feature=name,
            hint="convert to HDF5, or exclude it with columns=",
            hint_cli="convert to HDF5, or exclude it with --columns",
        )
    return values.stack(shape or (0,))


def _check_shape(block: Array, shape: tuple[int, ...], column: str, reader: Reader, row: int) -> None:
    if block.shape[1:] == shape:
        return
    reason = f"from here on, the rows have the shape {block.shape[1:]}; the rows before have {shape}"
    details: dict[str, Any] = {"expected": shape, "got": block.shape[1:], "hint": _RAGGED, "hint_cli": _RAGGED_CLI}
    raise EncodeError(reason, feature=column, record=_record(reader, row), **details)


def _record(reader: Reader, row: int) -> int:
    """The record of a row: rows that a filter left out are records, too."""
    return reader.origin(row)[1]
