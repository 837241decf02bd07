"""Selection of the engine: the compiled one, or that of the module which an environment variable names (for tests)."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from functools import cache

from tfrecord_io.bytes.engine.contract import Engine

_VARIABLE, _NATIVE = "TFRECORD_IO_ENGINE", "native"


@cache
def _load(name: str) -> Engine:
    return importlib.import_module("tfrecord_io.bytes.engine.native" if name == _NATIVE else name).ENGINE


def get_engine() -> Engine:
    """The engine to use, looked up at each call.

    MissingDependencyError if the compiled one cannot be loaded.
    """
    return _load(os.environ.get(_VARIABLE) or _NATIVE)


# Now, so that the first read takes no longer than the next ones; no ENGINE: it is importing this module.
with suppress(ImportError, AttributeError):
    _load(_NATIVE)
