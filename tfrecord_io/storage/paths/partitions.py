"""Partition columns in folder names, as written by Hive and Spark: ``data/label=cat/part-00000.tfrecord``.

Names and values are percent-encoded, a missing value is ``__HIVE_DEFAULT_PARTITION__``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tfrecord_io.errors import SchemaError

_MISSING = "__HIVE_DEFAULT_PARTITION__"
_SPECIAL = re.compile(r"(?![a-zA-Z0-9_.~-])[\x00-\x7f]")
_MAGIC = re.compile(r"[*?\[{]")


def parse_folder(folder: str) -> tuple[str, str | None] | None:
    """The partition column and value that a folder name states; None if it states none, or begins with a dot.

    >>> parse_folder("label=big%20cat"), parse_folder("label=__HIVE_DEFAULT_PARTITION__"), parse_folder("train")
    (('label', 'big cat'), ('label', None), None)
    """
    name, equals, value = folder.partition("=")
    if not name or not equals or folder.startswith("."):
        return None
    from urllib.parse import unquote

    try:
        return unquote(name, errors="strict"), None if value == _MISSING else unquote(value, errors="strict")
    except UnicodeDecodeError as error:
        reason = f"the folder '{folder}' has a partition value that is not UTF-8"
        raise SchemaError(reason, advice="rename it") from error


def column_of(folder: str) -> str | None:
    """The partition column of a folder name; None if it states none, or a name that is not UTF-8."""
    try:
        pair = parse_folder(folder)
    except SchemaError:
        return None
    return None if pair is None else pair[0]


def partition_folder(column: str, value: str | None) -> str:
    """The folder name that states a value, which Spark and pyarrow read alike.

    They differ in what they escape, so this is what one of them does, of ASCII; Spark does not decode other escapes.

    >>> partition_folder("label", "a/b: é"), partition_folder("day", None)
    ('label=a%2Fb%3A%20é', 'day=__HIVE_DEFAULT_PARTITION__')
    """
    name, text = _escaped(column), _MISSING if value is None else _escaped(value)
    if name.startswith(("_", ".")):  # else it would be the name of a file without data
        name = f"%{ord(name[0]):02X}{name[1:]}"
    return f"{name}={'%5F' + text[1:] if value == _MISSING else text}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda match: f"%{ord(match[0]):02X}", text)


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


def root_of_folders(directory: str) -> str | None:
    """The directory, with its slash, above the partition folders that a path ends in; None if it ends in none.

    >>> root_of_folders("data/day=1/label=cat/"), root_of_folders("data")
    ('data/', None)
    """
    folders = directory.rstrip("/").split("/")
    depth = len(folders)
    while depth and column_of(folders[depth - 1]) is not None:
        depth -= 1
    return None if depth == len(folders) else "".join(f"{folder}/" for folder in folders[:depth])


def is_below_folders(path: str, root: str) -> bool:
    """Whether all folders between `root` and a file of this path are partition folders."""
    return all(parse_folder(folder) is not None for folder in path[len(root) :].split("/")[:-1])
