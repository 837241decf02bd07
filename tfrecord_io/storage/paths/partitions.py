"""Folders that stand for a column's value, as Hive and Spark lay out a dataset: ``data/label=cat/part-00000.tfrecord``.

Names and values are percent-encoded, a missing value is ``__HIVE_DEFAULT_PARTITION__``.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from tfrecord_io.errors import SchemaError
from tfrecord_io.storage.paths.shard_names import is_hidden

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_MAGIC = re.compile(r"[*?\[{]")


def parse_folder(folder: str) -> tuple[str, str | None] | None:
    """Name and value that a folder stands for; None if it is a folder like any other.

    >>> parse_folder("label=big%20cat"), parse_folder("label=__HIVE_DEFAULT_PARTITION__"), parse_folder("train")
    (('label', 'big cat'), ('label', None), None)
    """
    name, equals, value = folder.partition("=")
    if not name or not equals or is_hidden(folder):
        return None
    try:
        return unquote(name, errors="strict"), None if value == _MISSING else unquote(value, errors="strict")
    except UnicodeDecodeError as error:
        raise SchemaError(f"the folder '{folder}' stands for a value that is not UTF-8", advice="rename it") from error


def folders_of(path: str, root: str) -> tuple[tuple[str, str | None], ...]:
    """What the folders between `root` and a file of this path stand for.

    Raises
    ------
    SchemaError
        Two of them name one column.
    """
    if not path.startswith(root):
        return ()
    found = [pair for folder in path[len(root) :].split("/")[:-1] if (pair := parse_folder(folder)) is not None]
    if len({name for name, _ in found}) < len(found):
        raise SchemaError("two folders of its path stand for one column", path=path, advice="move the file")
    return tuple(found)


def root_of(pattern: str) -> str:
    """The part of a pattern below which folders may stand for values: what is in front of the first name with a wildcard.

    >>> root_of("data/label=*/part-*.tfrecord"), root_of("data/label=cat/part-*.tfrecord")
    ('data/', 'data/label=cat/')
    """
    magic = _MAGIC.search(pattern)
    return pattern[: pattern.rfind("/", 0, magic.start() if magic else len(pattern)) + 1]


def is_below_folders(path: str, root: str) -> bool:
    """Whether all folders between `root` and a file of this path stand for values."""
    return all(parse_folder(folder) is not None for folder in path[len(root) :].split("/")[:-1])
