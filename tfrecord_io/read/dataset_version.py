"""The version of a dataset, after which followers find the rows that appends add.

Tests: tests/apps/test_follow.py.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from tfrecord_io.base import for_cli
from tfrecord_io.read.scan import Scan


class Version(NamedTuple):
    """A version of a dataset: the writing since which no rows were replaced, and the number of the last change."""

    line: str
    commit: int

    @classmethod
    def parse(cls, text: object, keyword: str = "since") -> Version:
        """Parse the text of a keyword; TypeError or ValueError if it is not a version."""
        if not isinstance(text, str):
            raise TypeError(f"{keyword}={text!r}: expected a text, as `Dataset.version` has it")
        match = re.fullmatch("([0-9a-f]{16})[.]([0-9]{1,18})", text)
        if match is None:
            error = ValueError(f"{keyword}={text!r}: expected a version, as `Dataset.version` states it")
            raise for_cli(error, f"--{keyword} {text}: expected a version, as tfr tail -f prints it")
        return cls(match[1], int(match[2]))

    def __str__(self) -> str:
        return f"{self.line}.{self.commit}"


def version_of(scan: Scan) -> Version | None:
    """The version of the dataset of a scan; None if no manifest states one for all of its files, or several do."""
    manifests = scan.sources.manifest_versions
    manifest = manifests[0] if len(manifests) == 1 else None
    return None if manifest is None else Version(manifest.line, manifest.commit)
