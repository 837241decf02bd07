"""The question after a name that does not exist: which names are similar.

Tests: tests/base/messages/test_display.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tfrecord_io.base.messages.display import LISTED, printable

_SIMILARITY = 0.78  # of difflib: "lable" and "label" have 0.8
_LEAST_PART = 3  # characters of a name that is a part of another


def did_you_mean(
    name: str, names: Iterable[str], shown: Callable[[str], str] = str, *, lists_names: bool = False
) -> str:
    """The question after a name that does not exist; empty if no name is similar.

    Similar are a slip of the keyboard, and the only name that begins with `name` or has it after a slash. `shown`
    is what to write instead of a name. If asked, the first of the names follow in order.

    >>> did_you_mean("lable", ["label", "image"]), did_you_mean("x", ["label"])
    ("did you mean 'label'?", '')
    >>> did_you_mean("lable", ["label", "image"], lists_names=True)
    "did you mean 'label'? valid names: image, label"
    """
    from difflib import get_close_matches

    if lists_names:
        valid = sorted(names)
        listed = ", ".join(candidate or '""' for candidate in valid[:LISTED])
        return f"{did_you_mean(name, valid, shown)} valid names: {listed or 'none'}".lstrip()
    by_key = {candidate.casefold(): candidate for candidate in names}
    key = name.casefold()
    similar = get_close_matches(key, by_key, 1, _SIMILARITY)
    if not similar and len(key) >= _LEAST_PART:
        longer = [candidate for candidate in by_key if candidate.startswith(key) or candidate.endswith(f"/{key}")]
        similar = longer if len(longer) == 1 else []
    return f"did you mean '{printable(shown(by_key[similar[0]]))}'?" if similar else ""
