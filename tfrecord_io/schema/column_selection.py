"""Which columns are wanted: names, globs and ``!name``; a literal name wins over a pattern."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Sequence

from tfrecord_io.errors import FeatureNotFoundError


class Projection:
    """The ``columns=`` of a call.

    Parameters
    ----------
    columns : sequence of str, str or None
        None: all. A name or a glob (``*``, ``?``, ``[…]``) takes in, one with ``!`` before it leaves out.
        Only ``!…`` entries: all but those.

    Examples
    --------
    >>> wanted = Projection(["*", "!image"])
    >>> [wanted("label"), wanted("image")]
    [True, False]
    """

    def __init__(self, columns: Sequence[str] | str | None) -> None:
        entries = [columns] if isinstance(columns, str) else columns
        if entries is not None and not all(isinstance(entry, str) for entry in entries):
            raise TypeError(f"columns={columns!r}: expected names, globs and !names")
        self.takes_all = entries is None
        self._entries = list(entries or ())
        self._wanted = {e for e in self._entries if not e.startswith("!")}
        unwanted = [e[1:] for e in self._entries if e.startswith("!")]
        self._unwanted = set(unwanted)
        self._patterns = [_pattern(e) for e in self._wanted if is_glob(e)]
        self._unwanted_patterns = [_pattern(e) for e in unwanted if is_glob(e)]
        self._all_but = bool(unwanted) and not self._wanted

    def __call__(self, name: str) -> bool:
        """Is the column wanted?"""
        if self.takes_all:
            return True
        if name in self._unwanted:
            return False
        if name in self._wanted:
            return True
        if any(p.match(name) for p in self._unwanted_patterns):
            return False
        return self._all_but or any(p.match(name) for p in self._patterns)

    def leaves_out(self, name: str) -> bool:
        """Does an entry with ``!`` take the column away?

        Examples
        --------
        >>> Projection(["a", "!b*"]).leaves_out("bc"), Projection(["a"]).leaves_out("bc")
        (True, False)
        """
        return (
            not self.takes_all
            and not self(name)
            and (name in self._unwanted or any(p.match(name) for p in self._unwanted_patterns))
        )

    def check(self, names: Iterable[str]) -> None:
        """Every entry must have met a name.

        Raises
        ------
        FeatureNotFoundError
            One has not; the message lists what there is.
        """
        there = set(names)
        for entry in self._entries:
            bare = entry.removeprefix("!")
            if entry in there or bare in there or (is_glob(bare) and any(_pattern(bare).match(n) for n in there)):
                continue
            listed = ", ".join(sorted(there)[:20]) or "none"
            raise FeatureNotFoundError(
                f"columns names '{entry}', and no feature matches", feature=bare, advice=f"there are: {listed}"
            )

    def order(self, names: Sequence[str]) -> list[str]:
        """The wanted ones of `names`: in the order asked for where only names were given."""
        chosen = [name for name in names if self(name)]
        if self.takes_all or self._patterns or self._all_but:
            return chosen
        place = {entry: at for at, entry in enumerate(self._entries)}
        return sorted(chosen, key=lambda name: place.get(name, len(place)))


def is_glob(entry: str) -> bool:
    """Whether an entry is a pattern."""
    return any(c in entry for c in "*?[")


def matches(glob: str, name: str) -> bool:
    """Whether the whole name fits the pattern."""
    return _pattern(glob).match(name) is not None


def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))
