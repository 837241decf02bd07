"""What runs: for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib import metadata

from tfrecord_io.engine.select import get_engine, native_available

_PACKAGES = ("numpy", "pandas", "pyarrow", "protobuf", "crc32c", "fsspec", "isal", "s3fs", "gcsfs", "tensorflow")


def show_versions() -> None:
    """Print which engine and which versions run.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> tfr.show_versions()  # doctest: +ELLIPSIS
    tfrecord_io: ...
    """
    from tfrecord_io import __version__

    built = "built" if native_available() else "not built"
    print(f"tfrecord_io: {__version__}")
    print(f"engine: {get_engine().name} (native: {built})")
    print(f"python: {sys.version.split()[0]} ({platform.machine()}, {platform.system()})")
    for name in _PACKAGES:
        try:
            print(f"{name}: {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            print(f"{name}: not installed")
