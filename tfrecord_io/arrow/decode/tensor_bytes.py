"""Raw bytes that are no values of their dtype: NumPy would take them, and break later."""

from __future__ import annotations

from tfrecord_io.engine.contract import Array
from tfrecord_io.format.dtypes import Element

_LAST_CHARACTER = 0x10FFFF  # of Unicode


def first_unreal(of: Element, data: Array) -> int:
    """Where the first bytes stand that are no value: a bool other than 0 and 1, a number that is no character. −1: nowhere.

    >>> import numpy as np
    >>> from tfrecord_io.format.dtypes import element
    >>> first_unreal(element("bool"), np.array([0, 1, 2], np.uint8))
    2
    """
    if of.name == "bool":
        bad, width = data > 1, 1
    elif of.dtype.kind == "U":
        bad, width = data[: len(data) // 4 * 4].view("<u4") > _LAST_CHARACTER, 4
    else:
        return -1
    return int(bad.argmax()) * width if bad.any() else -1
