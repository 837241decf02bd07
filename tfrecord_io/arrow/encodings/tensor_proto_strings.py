"""A column of serialized tensors of strings, read as text or bytes of one width: NumPy's dtypes S and U."""

from __future__ import annotations

import numpy as np

from tfrecord_io.arrow.encodings.tensor_proto_columns import TensorRows
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError
from tfrecord_io.format.dtype_names import STRING
from tfrecord_io.format.dtypes import element
from tfrecord_io.format.tensor_proto import parsed


def parse_string_protos(offsets: Array, values: Array, name: str) -> TensorRows:
    """The tensors in the slots of a binary column without nulls, as `proto_columns.parse_protos` gives those of numbers.

    Parameters
    ----------
    offsets : int32 or int64 ndarray
        Of rows + 1 items.
    values : uint8 ndarray
        The bytes that the offsets point into.
    name : str
        Of the dtype, for example "S10" or "U10".

    Raises
    ------
    RowFault
        A row is no tensor of strings, or one of them is too long for the dtype, or no text.

    Examples
    --------
    >>> from tfrecord_io.format.tensor_proto_writer import serialize_tensor
    >>> tensor = serialize_tensor(np.array(["ab", "c"]))
    >>> parse_string_protos(np.array([0, len(tensor)]), np.frombuffer(tensor, "uint8"), "S2").contents.tobytes()
    b'abc\\x00'
    """
    dtype = element(name).dtype
    shapes, pieces = [], []
    for row, (begin, end) in enumerate(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)):
        try:
            tensor = parsed(values[begin:end].tobytes(), STRING)
        except DecodeError as error:
            raise RowFault(row, error.reason, expected=error.expected, got=error.got) from error
        shapes.append(tensor.shape)
        pieces.append(_of_one_width(row, tensor.values.tolist(), dtype))
    sizes = np.fromiter((piece.nbytes for piece in pieces), np.int64, len(pieces))
    contents = np.concatenate([np.empty(0, dtype), *pieces]).view(np.uint8)
    ranks = {len(shape) for shape in shapes}
    alike = len(ranks) < 2
    return TensorRows(
        name, np.array(shapes, np.int64).reshape(len(shapes), *ranks) if alike else shapes, contents, sizes
    )


def _of_one_width(row: int, strings: list[bytes], dtype: np.dtype) -> Array:
    """Shorter strings are filled up with NULs."""
    try:
        cells = [string.decode() for string in strings] if dtype.kind == "U" else strings
    except UnicodeDecodeError:
        raise RowFault(row, "a string of the tensor is no text", expected="UTF-8") from None
    width = dtype.itemsize // np.dtype(f"{dtype.kind}1").itemsize
    longest = max(map(len, cells), default=0)
    if longest > width:
        raise RowFault(
            row,
            f"a string of the tensor has {longest} characters, {dtype.str[1:]} has {width}",
            expected=width,
            got=longest,
        )
    return np.array(cells, dtype)
