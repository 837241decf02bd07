"""Selection of the engine: the one an environment variable names, else the compiled one, else the reference one."""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from functools import cache

from tfrecord_io.engine.contract import Engine
from tfrecord_io.errors import SlowEngineWarning, warn
from tfrecord_io.log import logger

_VARIABLE = "TFRECORD_IO_ENGINE"
_MODULES = {"native": "tfrecord_io.engine.native", "reference": "tfrecord_io.engine.reference"}
_BUILD = "pip install --force-reinstall --no-deps --no-cache-dir --no-binary tfrecord_io tfrecord_io"
_warned: set[str] = set()  # the warning is issued once per process


@cache
def _load(name: str) -> Engine:
    return importlib.import_module(_MODULES[name]).ENGINE


def native_available() -> bool:
    """Whether the compiled kernel was built and loads."""
    with suppress(ImportError):
        return bool(_load("native"))
    return False


def get_engine() -> Engine:
    """The engine to use, looked up at each call.

    ``TFRECORD_IO_ENGINE=reference`` or ``native`` selects one; by default it is the native one if it was built.
    ValueError if the variable has another value, ImportError if it names the native engine, which was not built.
    """
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        if chosen not in _MODULES:
            raise ValueError(f"{_VARIABLE}={chosen!r}: expected one of {', '.join(sorted(_MODULES))}")
        return _load(chosen)
    with suppress(ImportError):
        return _load("native")
    if "slow" not in _warned:
        _warned.add("slow")
        logger.debug("engine: reference, in place of native, which cannot be imported")
        reason = (
            "tfrecord_io uses its reference engine, many times slower: the compiled one was not built at installation"
        )
        warn(f"{reason}. Install a C++ compiler, and then build it: {_BUILD}", SlowEngineWarning)
    return _load("reference")


# Now, so that the first read takes no longer than the next ones; no ENGINE: it is importing this module.
with suppress(ImportError, AttributeError):
    _load("native")
