"""Fail if a change of documented behaviour has no fragment in changelog.d/: python .ci/changelog.py [COMMIT]

Documented behaviour is what the pages of docs/ and the generated list of public names say. A change that only words
them better says so in a commit message, by a line ``Changelog: none``. The change is that of `touched`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from touched import change_messages, changed

DOCUMENTED = re.compile(r"docs/.+\.md$|README\.md$")
FRAGMENT = re.compile(r"changelog\.d/[\w.-]+\.(added|changed|deprecated|removed|fixed|security)\.md$|CHANGELOG\.md$")


def missing_fragment(names: Iterable[str], messages: str) -> str | None:
    """Return the error message if a fragment is missing."""
    names = list(names)
    pages = [name for name in names if DOCUMENTED.match(name)]
    is_exempt = re.search(r"^Changelog: none$", messages, re.MULTILINE) is not None
    if not pages or is_exempt or any(FRAGMENT.match(name) for name in names):
        return None
    return (
        f"{', '.join(pages)}: documented behaviour changes, but changelog.d/ has no new fragment; write "
        "changelog.d/<topic>.<added|changed|fixed>.md (changelog.d/README.md), or a line 'Changelog: none' in the "
        "message of the commit if only words change"
    )


if __name__ == "__main__":
    commit = sys.argv[1] if len(sys.argv) > 1 else None
    sys.exit(missing_fragment(changed(commit) or (), change_messages(commit) or ""))
