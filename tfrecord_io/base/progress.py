"""Progress of a running call, by a bar on stderr or calls of a function."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from tfrecord_io.typing import Progress, ProgressLike

if TYPE_CHECKING:
    from fractions import Fraction

Unit = Literal["bytes", "rows", "records"]

_BAR_UNITS = {"bytes": "B", "rows": "row", "records": "record"}  # tqdm shows B as kB and MB


class ProgressMeter:
    """Shows how much of a call is done, or calls a function; see the keyword `progress` of `tfrecord_io.read_table`.

    A context manager. Several threads may advance it: the function is called by one at a time. Once it has raised an
    error, every further `advance` raises that error, and so does the end of the block, whatever became of it meanwhile.

    `wanted`: True is a bar on stderr, if that is a terminal. `total` is what `advance` will count to, and `done` what
    earlier calls did of it.
    """

    delay: ClassVar[float] = 0.0  # seconds before the bar appears; of the whole process

    def __init__(self, wanted: ProgressLike, total: int | None, unit: Unit, done: int = 0) -> None:
        self._total, self._unit = total, unit
        self._position: int | Fraction = done  # what is done never decreases, this does in a second reading
        self._done = done
        self._lock = Lock()
        self._error: BaseException | None = None
        self._call: Callable[[Progress], object] | None = None
        self._bar: Any = None
        if callable(wanted):
            self._call = wanted
        elif wanted:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="IProgress not found")  # in a notebook without ipywidgets
                from tqdm.auto import tqdm

            hidden = True if os.environ.get("TERM") == "dumb" else None  # None: unless stderr is a terminal
            options = {"unit": _BAR_UNITS[unit], "unit_scale": True, "disable": hidden, "delay": self.delay}
            self._bar = tqdm(total=total, initial=done, **options)

    @property
    def _is_wanted(self) -> bool:
        return self._bar is not None or self._call is not None

    def advance(self, count: int | Fraction) -> None:
        """Add `count` to what is done."""
        if not self._is_wanted:
            return
        with self._lock:
            if self._error is not None:
                raise self._error
            self._position += count
            added = int(self._position) - self._done
            if added <= 0:
                return
            self._done += added
            if self._bar is not None:
                self._bar.update(added)
            if self._call is not None:
                try:
                    self._call(Progress(self._done, self._total, self._unit))
                except BaseException as error:
                    self._error = error
                    raise

    def restart(self) -> None:
        """Begin a second reading of the same data: it counts from where the first one stopped."""
        self._position = 0

    def part(self, share: int | Fraction = 1) -> ProgressLike:
        """The keyword `progress` for a partial call, whose progress, or a share of it, is added to this progress."""
        if not self._is_wanted:
            return False
        before = 0

        def add(progress: Progress) -> None:
            nonlocal before
            added, before = progress.done - before, progress.done
            self.advance(added * share)

        return add

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        if self._error is not None and error is not self._error:
            raise self._error
