"""A progress bar for those who ask for one: ``progress=True``."""

from __future__ import annotations

from typing import Any


class Progress:
    """A bar on the terminal's error stream; where there is no terminal, or nobody asked, nothing.

    Parameters
    ----------
    wanted : bool
    total : int, optional
        What `advance` will add up to.
    unit : str
        "B" for bytes, which are shown as kB and MB.
    """

    def __init__(self, wanted: bool, total: int | None, unit: str) -> None:
        self._bar: Any = None
        if wanted:
            from tqdm.auto import tqdm

            self._bar = tqdm(total=total, unit=unit, unit_scale=True, disable=None)

    def advance(self, count: int) -> None:
        """So much more is done."""
        if self._bar is not None:
            self._bar.update(count)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
