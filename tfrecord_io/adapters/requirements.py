"""The libraries of adapters: each is imported when it is used, and installed by the extra of the adapter's name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tfrecord_io.errors import MissingDependencyError


@contextmanager
def needs(library: str, *, extra: str | None = None) -> Iterator[None]:
    """Turn the ImportError of an import in its block into one that names the extra to install: by default of that name.

    Examples
    --------
    >>> with needs("polars"):
    ...     import absent_module
    Traceback (most recent call last):
    tfrecord_io.errors.MissingDependencyError: polars cannot be imported (No module named 'absent_module'); ...
    """
    try:
        yield
    except ImportError as error:
        advice = f"pip install 'tfrecord_io[{extra or library}]'"
        raise MissingDependencyError(f"{library} cannot be imported ({error})", advice=advice) from error
