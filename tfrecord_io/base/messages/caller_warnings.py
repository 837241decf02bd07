"""Warnings, which name the line of the caller outside this package.

Tests: tests/laws/test_secrets_of_urls.py.
"""

from __future__ import annotations

import sys
import warnings
from types import FrameType

from tfrecord_io.base.messages.display import for_cli
from tfrecord_io.base.messages.url_secrets import hide_secrets

_INSIDE = (__name__.partition(".")[0], "contextlib")  # modules whose frames are between a warning and the caller


def warn(text: str, category: type[Warning], text_cli: str | None = None) -> None:
    """Warn at the line of the caller outside this package, at any depth of calls."""
    warning = category(hide_secrets(text, shorten=True))
    if text_cli is not None:
        for_cli(warning, text_cli)
    warnings.warn(warning, stacklevel=_caller()[1])


def caller_line() -> tuple[str, int]:
    """The file and line of the caller outside this package, at any depth of calls."""
    frame, _ = _caller()
    return frame.f_code.co_filename, frame.f_lineno


def _caller() -> tuple[FrameType, int]:
    """The frame of the caller outside this package, and its level above the caller of this function."""
    level = 0
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame = frame.f_back
        level += 1
    return frame, level
