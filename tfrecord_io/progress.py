"""The progress bar of ``progress=True``."""

from __future__ import annotations

import os
from typing import Any, ClassVar


class Progress:
    """A bar on stderr; nothing if it is not enabled, or stderr is not a terminal.

    Parameters
    ----------
    enabled : bool
    total : int, optional
        The sum of all `advance` calls.
    unit : str
        "B" for bytes, which are shown as kB and MB.

    Attributes
    ----------
    delay : float
        Seconds before the bar appears; of the whole process.
    """

    delay: ClassVar[float] = 0.0

    def __init__(self, enabled: bool, total: int | None, unit: str) -> None:
        self._bar: Any = None
        if enabled:
            from tqdm.auto import tqdm

            hidden = True if os.environ.get("TERM") == "dumb" else None  # None: unless stderr is a terminal
            self._bar = tqdm(total=total, unit=unit, unit_scale=True, disable=hidden, delay=self.delay)

    def advance(self, count: int) -> None:
        """Add `count` to the progress."""
        if self._bar is not None:
            self._bar.update(count)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
