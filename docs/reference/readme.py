"""README.md as the package index shows it: links lead to the repository, and the package is installed by its name.

The build takes it as the description (pyproject.toml). ``TFRECORD_IO_ADDRESS`` is the address of the repository, such
as ``https://host/owner/name``, and ``TFRECORD_IO_REF`` a tag or branch of it, by default the tag of the version; the
hosted workflows set both. Without an address links stay as they are, which ``dev/dist check`` refuses.

``python docs/reference/readme.py --release`` writes the line that installs a release into the repository's pages, in
place of the one for a clone, and extras of the package (``'tfrecord_io[s3]'``) in place of those of a clone
(``'.[s3]'``); ``--clone`` does the reverse.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLONE = "pip install .  # in a clone (no release yet); needs Python 3.11+ and a C++20 compiler"
RELEASE = "pip install tfrecord_io    # Python 3.11 or later"
PAGES = ("README.md", "docs/index.md", "docs/installation.md")
_INSTALL = re.compile(rf"^(?:{re.escape(RELEASE)}|{re.escape(CLONE)})$", re.MULTILINE)
_EXTRAS = re.compile(r"'(?:\.|tfrecord_io)(\[[a-z0-9,-]+\]')")
_LINK = re.compile(r"(\]\(|\b(?:src|srcset|href)=\")(?!https?:|#|mailto:)([^)\"\s]+)")
_PICTURES = (".svg", ".png")


def with_install(text: str, line: str) -> str:
    """The text of a page with this as its line that installs the package."""
    changed, count = _INSTALL.subn(line, text)
    if count != 1:
        raise ValueError(f"expected one line '{CLONE}' or '{RELEASE}', found {count}")
    return with_extras(changed, line)


def with_extras(text: str, line: str) -> str:
    """The text of a page whose extras are of the package, or of a clone, as in the line that installs it."""
    name = "tfrecord_io" if line == RELEASE else "."
    return _EXTRAS.sub(rf"'{name}\1", text)


def with_absolute_links(text: str, address: str, ref: str) -> str:
    """The text of a page in the root of the repository, with links and pictures that lead to the repository's host."""

    def absolute(match: re.Match[str]) -> str:
        kind = "raw" if match[2].partition("#")[0].endswith(_PICTURES) else "blob"
        return f"{match[1]}{address.rstrip('/')}/{kind}/{ref}/{match[2]}"

    return _LINK.sub(absolute, text)


def relative_links(text: str) -> list[str]:
    """What a page links to that only the repository has."""
    return [match[2] for match in _LINK.finditer(text)]


def for_the_index(address: str, ref: str) -> str:
    text = with_install((ROOT / "README.md").read_text(encoding="utf-8"), RELEASE)
    return with_absolute_links(text, address, ref) if address else text


def dynamic_metadata(settings: Mapping[str, object], project: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """The hook of the build for the field ``readme``: a wheel of the sdist has the sdist's text."""
    of_sdist = ROOT / "PKG-INFO"
    if of_sdist.exists():
        text = str(message_from_string(of_sdist.read_text(encoding="utf-8")).get_payload())
    else:
        ref = os.environ.get("TFRECORD_IO_REF") or f"v{project['version']}"
        text = for_the_index(os.environ.get("TFRECORD_IO_ADDRESS", ""), ref)
    return {"readme": {"text": text, "content-type": "text/markdown"}}


def pages_with_extras() -> list[Path]:
    """All pages, and the notebook, which say what to install for a library."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.ipynb"))]


def main() -> None:
    line = {"--release": RELEASE, "--clone": CLONE}[sys.argv[1]]
    for page in PAGES:
        path = ROOT / page
        path.write_text(with_install(path.read_text(encoding="utf-8"), line), encoding="utf-8")
    for path in pages_with_extras():
        path.write_text(with_extras(path.read_text(encoding="utf-8"), line), encoding="utf-8")


if __name__ == "__main__":
    main()
