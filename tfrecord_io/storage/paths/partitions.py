"""Partition columns in folder names, as written by Hive and Spark: ``data/label=cat/part-00000.tfrecord``.

Names and values are percent-encoded, a missing value is ``__HIVE_DEFAULT_PARTITION__``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from tfrecord_io.errors import SchemaError
from tfrecord_io.storage.paths.file_names import is_hidden

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_MAGIC = re.compile(r"[*?\[{]")


def parse_folder(folder: str) -> tuple[str, str | None] | None:
    """The partition column and value that a folder name states; None if it states none.

    >>> parse_folder("label=big%20cat"), parse_folder("label=__HIVE_DEFAULT_PARTITION__"), parse_folder("train")
    (('label', 'big cat'), ('label', None), None)
    """
    name, equals, value = folder.partition("=")
    if not name or not equals or is_hidden(folder):
        return None
    try:
        return unquote(name, errors="strict"), None if value == _MISSING else unquote(value, errors="strict")
    except UnicodeDecodeError as error:
        reason = f"the folder '{folder}' has a partition value that is not UTF-8"
        raise SchemaError(reason, advice="rename it") from error


def folders_of(path: str, root: str) -> tuple[tuple[str, str | None], ...]:
    """The partition columns and values in the folders between `root` and a file of this path."""
    if not path.startswith(root):
        return ()
    pairs = [pair for folder in path[len(root) :].split("/")[:-1] if (pair := parse_folder(folder)) is not None]
    if len({name for name, _ in pairs}) < len(pairs):
        raise SchemaError("two folders of its path name the same partition column", path=path, advice="move the file")
    return tuple(pairs)


def folder_names(path: str, partitions: Sequence[tuple[str, str | None]]) -> str:
    """The folders of a path that state these columns and values, as they are spelled there, each with its slash.

    >>> folder_names("d/label=big%20cat/new/a.tfrecord", [("label", "big cat")]), folder_names("d/a.tfrecord", [])
    ('label=big%20cat/', '')
    """
    wanted, names = [*partitions], []
    for folder in reversed(path.split("/")[:-1]):
        if wanted and parse_folder(folder) == wanted[-1]:
            names.append(f"{folder}/")
            wanted.pop()
    return "".join(reversed(names))


def root_of(pattern: str) -> str:
    """The part of a pattern before the first name with a wildcard; partition folders are below it.

    >>> root_of("data/label=*/part-*.tfrecord"), root_of("data/label=cat/part-*.tfrecord")
    ('data/', 'data/label=cat/')
    """
    magic = _MAGIC.search(pattern)
    return pattern[: pattern.rfind("/", 0, magic.start() if magic else len(pattern)) + 1]


def is_below_folders(path: str, root: str) -> bool:
    """Whether all folders between `root` and a file of this path are partition folders."""
    return all(parse_folder(folder) is not None for folder in path[len(root) :].split("/")[:-1])
