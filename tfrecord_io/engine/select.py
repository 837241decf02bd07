"""Which engine runs: the compiled one where it was built, else the reference one; an environment variable decides."""

from __future__ import annotations

import importlib
import os

from tfrecord_io.engine.contract import Engine
from tfrecord_io.errors import SlowEngineWarning, warn

_VARIABLE = "TFRECORD_IO_ENGINE"
_MODULES = {"native": "tfrecord_io.engine.native", "reference": "tfrecord_io.engine.reference"}
_warned: set[str] = set()  # the warning is given once a process


def _load(name: str) -> Engine:
    return importlib.import_module(_MODULES[name]).ENGINE


def native_available() -> bool:
    """Whether the compiled kernel was built and loads."""
    try:
        _load("native")
    except ImportError:
        return False
    return True


def get_engine() -> Engine:
    """The engine that runs, looked up at each call.

    ``TFRECORD_IO_ENGINE=reference`` or ``native`` chooses one; without it the native one runs where it is there.

    Raises
    ------
    ValueError
        The variable has another value.
    ImportError
        It asks for the native engine, and that one was not built.
    """
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        if chosen not in _MODULES:
            raise ValueError(f"{_VARIABLE}={chosen!r}: expected one of {', '.join(sorted(_MODULES))}")
        return _load(chosen)
    if native_available():
        return _load("native")
    if "slow" not in _warned:
        _warned.add("slow")
        warn(
            "tfrecord_io runs on its reference engine, many times slower: the compiled one was not built at install. "
            "Install a C++ compiler and reinstall, or use a wheel.",
            SlowEngineWarning,
        )
    return _load("reference")


def engines() -> list[Engine]:
    """All engines that load, the native one first."""
    return [_load(name) for name in _MODULES if name != "native" or native_available()]
