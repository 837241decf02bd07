"""The compiled kernel, ``_kernel``; where it cannot be loaded, importing anything of here says how to get it."""

from tfrecord_io.errors import MissingDependencyError

try:
    from tfrecord_io.bytes._native import _kernel as _kernel
except ImportError as _error:
    raise MissingDependencyError(
        f"the compiled engine cannot be loaded ({_error})",
        hint="install a C++ compiler, and then build it: "
        "pip install --force-reinstall --no-deps --no-cache-dir --no-binary tfrecord_io tfrecord_io",
    ) from _error
