"""The base class of datasets and their pieces: what distinguishes them from other arguments of a call.

Calls that get a path or a table import this module, and not `tfrecord_io.read.scan`.

Tests: tests/read/test_sources_selections.py and tests/read/test_scan_narrowing.py.
"""

from __future__ import annotations

import os
from typing import Any


class ScanHolder:
    """Base class of datasets and their pieces, which hold a scan, and show public names only."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        if isinstance(held, str | bytes | os.PathLike | list | tuple):  # the source, which `tfrecord_io.dataset` takes
            raise TypeError(f"{type(self).__name__} is not made from paths: call tfrecord_io.dataset(source)")
        self._held = held
