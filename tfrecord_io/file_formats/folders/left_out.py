"""What a stream of files leaves out, and the warning about it."""

from __future__ import annotations

from dataclasses import dataclass

from tfrecord_io.errors import DamagedDataWarning, printable, warn


@dataclass(slots=True)
class LeftOut:
    """How many images, files or annotations are left out, and why the first of them is.

    >>> left_out = LeftOut("images", 1200)
    >>> left_out.add("'a.png' is damaged")
    >>> str(left_out)
    "1 of 1,200 images left out, the first: 'a.png' is damaged"
    """

    kind: str
    total: int
    count: int = 0
    first: str = ""

    def add(self, reason: object, count: int = 1) -> None:
        self.first = self.first or str(reason)
        self.count += count

    def __str__(self) -> str:
        return f"{self.count:,} of {self.total:,} {self.kind} left out, the first: {self.first}"

    def warn(self, path: str) -> None:
        """Warn, if anything is left out."""
        if self.count:
            warn(f"{printable(path)}: {self}", DamagedDataWarning)
