"""The build backend: that of scikit-build-core, which packs the stub of the package, too, once it is written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403 - the hooks that are not below


def _write_stub() -> None:
    subprocess.run([sys.executable, "-B", Path(__file__).with_name("stub.py")], check=True)


def build_wheel(*arguments: Any, **keywords: Any) -> str:
    _write_stub()
    return build.build_wheel(*arguments, **keywords)


def build_sdist(*arguments: Any, **keywords: Any) -> str:
    _write_stub()  # so that the sdist is the same from a clone and where a wheel was built before
    return build.build_sdist(*arguments, **keywords)


def build_editable(*arguments: Any, **keywords: Any) -> str:
    _write_stub()
    return build.build_editable(*arguments, **keywords)
