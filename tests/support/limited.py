"""Set small limits instead of the tuned ones, so that small files are read and written in many parts."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

import pytest

from tfrecord_io.base import LIMITS


def set_limits(patch: pytest.MonkeyPatch, **values: Any) -> None:
    """Change some limits of this process, until `patch` is undone."""
    for name, value in values.items():
        patch.setattr(LIMITS, name, value)


def limited(**values: Any) -> AbstractContextManager[Any]:
    """A context with other limits."""
    return mock.patch.multiple(LIMITS, **values)


def set_processors(patch: pytest.MonkeyPatch, count: int) -> None:
    """Let this process have so many processors, until `patch` is undone."""
    patch.setattr(os, "sched_getaffinity", lambda _: range(count), raising=False)
