"""Version information for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from tfrecord_io.engine.select import get_engine, native_available

_DEPENDENCIES = ("numpy", "pandas", "pyarrow", "protobuf", "crc32c", "fsspec", "isal", "s3fs", "gcsfs", "tensorflow")


def show_versions() -> None:
    """Print the engine in use and the versions of tfrecord_io, Python and the dependencies.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> tfr.show_versions()  # doctest: +ELLIPSIS
    tfrecord_io: ...
    """
    print(f"tfrecord_io: {_version('tfrecord_io')}")
    print(f"engine: {get_engine().name} (native: {'built' if native_available() else 'not built'})")
    print(f"python: {sys.version.split()[0]} ({platform.machine()}, {platform.system()})")
    for name in _DEPENDENCIES:
        print(f"{name}: {_version(name)}")


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
