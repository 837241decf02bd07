"""Names of files that records ask for: they stay below the folder that is written.

Tests: tests/laws/test_hostile_metadata.py and tests/apps/file_formats/test_embed_files.py.
"""

from __future__ import annotations

import os
import re
import unicodedata

from tfrecord_io.store.paths.file_names import FileName

ABSOLUTE = re.compile(r"/|[A-Za-z][A-Za-z0-9+.-]*:")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)  # devices, on Windows
_REFUSED = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_MOST_PATH_BYTES = 2048


def name_fault(name: str) -> str | None:
    """A clause about why a name is unsafe below a folder; None for a plain relative name.

    >>> name_fault("cat/1.jpg"), name_fault("../1.jpg"), name_fault("/etc/passwd")
    (None, "it has the part '..'", 'it is absolute')
    """
    parts = name.split("/")
    if not name:
        return "it is empty"
    if ABSOLUTE.match(name):
        return "it is absolute"
    if "\\" in name:
        return "it has a backslash"
    if (character := _REFUSED.search(name)) is not None:
        return f"it has the character U+{ord(character[0]):04X}, {_kind(character[0])}"
    if len(os.fsencode(name)) > _MOST_PATH_BYTES or any(len(os.fsencode(part)) > FileName.MOST_BYTES for part in parts):
        return "it is too long"
    for part in parts:
        if part in ("", ".", ".."):
            return f"it has the part '{part}'"
        if part.startswith(".") or part.endswith((".", " ")):
            return "a part of it begins with a dot, or ends with a dot or a space"
        if _RESERVED.fullmatch(part):
            return f"'{part}' is the name of a device on Windows"
    return None


def _kind(character: str) -> str:
    """The kind of a refused character, in words."""
    if character in "\u2028\u2029":
        return "a line separator"
    category = unicodedata.category(character)
    return {"Cc": "a control character", "Cs": "a surrogate"}.get(category, "which changes the direction of text")
