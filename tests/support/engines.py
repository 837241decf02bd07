"""All engines that can be loaded."""

from __future__ import annotations

from tfrecord_io.engine.contract import Engine
from tfrecord_io.engine.reference import ENGINE as REFERENCE
from tfrecord_io.engine.select import native_available


def engines() -> list[Engine]:
    """The native engine, if it was built, and the reference engine."""
    if not native_available():
        return [REFERENCE]
    from tfrecord_io.engine.native import ENGINE as NATIVE

    return [NATIVE, REFERENCE]
