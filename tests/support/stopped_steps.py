"""Stop a process before one of its changes to a directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest


def stopping(monkeypatch: pytest.MonkeyPatch, steps: int) -> list[int]:
    """After so many changes of a directory, none is made any more."""
    left = [steps]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **keywords: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
            return call(*args, **keywords)

        return step

    for name in ("replace", "unlink", "fsync", "link"):
        monkeypatch.setattr(os, name, counted(getattr(os, name)))
    return left
