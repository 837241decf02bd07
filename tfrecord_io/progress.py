"""The progress bar of ``progress=True``."""

from __future__ import annotations

from typing import Any


class Progress:
    """A bar on stderr; nothing if it is not enabled, or stderr is not a terminal.

    Parameters
    ----------
    enabled : bool
    total : int, optional
        The sum of all `advance` calls.
    unit : str
        "B" for bytes, which are shown as kB and MB.
    """

    def __init__(self, enabled: bool, total: int | None, unit: str) -> None:
        self._bar: Any = None
        if enabled:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, unit=unit, unit_scale=True, disable=None)

    def advance(self, count: int) -> None:
        """Add `count` to the progress."""
        if self._bar is not None:
            self._bar.update(count)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
