"""Version information for bug reports."""

from __future__ import annotations

import platform
import re
import sys
from importlib import metadata
from importlib.util import find_spec

from tfrecord_io.base import check_keywords
from tfrecord_io.bytes.engine.select import get_engine

# Distributions whose module has another name.
_MODULES = {"protobuf": "google.protobuf", "pillow": "PIL"}


@check_keywords
def show_versions() -> None:
    """Print the engine in use and the versions of tfrecord_io, Python and the modules that it uses.

    Optional modules are found whether imported or not, and whatever distribution they come from.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> tfr.show_versions()  # doctest: +ELLIPSIS
    tfrecord_io: ...
    """
    try:
        engine = get_engine().name
    except ImportError as error:
        engine = f"missing: {error}"
    print(f"tfrecord_io: {_version('tfrecord_io', 'tfrecord_io')}")
    print(f"engine: {engine}")
    print(f"python: {sys.version.split()[0]} ({platform.machine()}, {platform.system()})")
    for name in _requirements():
        print(f"{name}: {_version(name, _MODULES.get(name, name))}")


def _requirements() -> list[str]:
    """Distributions that tfrecord_io depends on, optional ones last."""
    try:
        requirements = metadata.requires("tfrecord_io") or []
    except metadata.PackageNotFoundError:  # a source tree that is not installed
        requirements = []
    used = [text for text in requirements if not re.search(r"extra == .(test|dev)\b", text)]
    names = dict.fromkeys(re.split(r"[^\w.-]", text)[0] for text in used)
    return [name for name in names if name != "tfrecord_io"]  # the extra "all" requires the package with its extras


def _version(distribution: str, module: str) -> str:
    """The version of a module that can be imported, without importing it.

    It may come from another distribution than the usual one (tensorflow-cpu), or from none (a source tree).
    """
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        pass
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # of the package around it
        spec = None
    if spec is None or spec.origin is None:  # without an origin: a folder of that name, not a module
        return "not installed"
    distributions = [] if "." in module else metadata.packages_distributions().get(module, [])
    if distributions:
        return ", ".join(f"{metadata.version(name)} ({name})" for name in sorted(set(distributions)))
    return f"{getattr(sys.modules.get(module), '__version__', 'version unknown')} ({spec.origin})"
