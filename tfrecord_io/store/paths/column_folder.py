"""Folders whose names state the value of a column, ``label=cat``: made and parsed here alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.errors import SchemaError

FEW_FOLDERS = 64  # so many are looked at one by one: to prepare for columns of them takes longer
_MISSING = "__HIVE_DEFAULT_PARTITION__"
_SPECIAL = r"(?![a-zA-Z0-9_.~-])[\x00-\x7f]"
_MAGIC = r"[*?\[{]"


class ColumnFolder(NamedTuple):
    """A partition column and its value, as the name of a folder states them.

    Attributes
    ----------
    column : str
        Without escapes.
    value : str or None
        Without escapes; None for a missing value.

    Examples
    --------
    >>> ColumnFolder.parse("label=big%20cat"), ColumnFolder.parse("train")
    (ColumnFolder(column='label', value='big cat'), None)
    """

    column: str
    value: str | None

    @classmethod
    def parse(cls, name: str) -> ColumnFolder | None:
        """Parse the name of a folder; None if it states no value, or begins with a dot; a path is a ValueError.

        >>> ColumnFolder.parse("label=__HIVE_DEFAULT_PARTITION__")
        ColumnFolder(column='label', value=None)
        """
        if "/" in name:
            raise ValueError(f"'{name}' is a path: expected the name of a folder in its directory")
        pair = _parse(name)
        return None if pair is None else cls(*pair)

    @property
    def name(self) -> str:
        """The name of the folder, which Spark and pyarrow read alike.

        They differ in what they escape, so this is what one of them does, of ASCII; Spark does not decode other
        escapes.

        >>> ColumnFolder("label", "a/b: é").name, ColumnFolder("day", None).name
        ('label=a%2Fb%3A%20é', 'day=__HIVE_DEFAULT_PARTITION__')
        """
        column, text = _escape(self.column), _MISSING if self.value is None else _escape(self.value)
        if column.startswith(("_", ".")):  # else it would be the name of a file without data
            column = f"%{ord(column[0]):02X}{column[1:]}"
        return f"{column}={'%5F' + text[1:] if self.value == _MISSING else text}"

    @classmethod
    def column_of(cls, name: str) -> str | None:
        """The column in the name of a folder; None if it states none, or a name that is not UTF-8."""
        try:
            folder = cls.parse(name)
        except SchemaError:
            return None
        return None if folder is None else folder.column

    # ---- several of them, in a path

    @staticmethod
    def pairs_in(path: str, root: str) -> tuple[tuple[str, str | None], ...]:
        """The columns and values of the folders between `root` and a file of this path."""
        if "=" not in path or not path.startswith(root):
            return ()
        pairs = [pair for folder in path[len(root) :].split("/")[:-1] if (pair := _parse(folder)) is not None]
        if len({name for name, _ in pairs}) < len(pairs):
            raise SchemaError("two folders of its path name the same partition column", path=path, hint="move the file")
        return tuple(pairs)

    @classmethod
    def texts_in(cls, folders: Sequence[str], columns: Sequence[str]) -> dict[str, pa.StringArray]:
        """The values of columns in each of these paths of folders, relative to the dataset; null where there is none.

        >>> ColumnFolder.texts_in(["label=cat/day=1", "label=big%20cat"], ["day", "label"])["day"].to_pylist()
        ['1', None]
        """
        names = [folder.partition("=")[0] for folder in folders[0].split("/")] if folders else []
        if len(folders) > FEW_FOLDERS and cls.are_plain(folders, names).all():
            import pyarrow.compute as pc

            parts = pc.split_pattern(pa.array(folders, pa.string()), "/")
            stated = {name: pc.list_element(parts, at) for at, name in enumerate(names)}
            nothing = pa.nulls(len(folders), pa.string())
            return {
                name: pc.utf8_slice_codeunits(stated[name], len(name) + 1) if name in stated else nothing
                for name in columns
            }
        values = [dict(cls.pairs_in(f"/{folder}/", "/")) for folder in folders]
        return {name: pa.array([value.get(name) for value in values], pa.string()) for name in columns}

    @classmethod
    def are_plain(cls, folders: Sequence[str], columns: Sequence[str]) -> Array:
        """A boolean for each path of folders: true if it states a value of each column, in order, without escapes.

        A missing value is an escape. What is not plain may be right, too.
        """
        import pyarrow.compute as pc

        if (
            not columns
            or [cls.column_of(f"{name}=x") for name in columns] != [*columns]
            or len({*columns}) < len(columns)
        ):
            return np.zeros(len(folders), bool)
        paths = pa.array(folders, pa.string())
        if len(columns) == 1:  # without a regular expression, as there are many folders
            is_escaped = pc.or_(pc.match_substring(paths, "/"), pc.match_substring(paths, "%"))
            is_plain = pc.and_not(pc.starts_with(paths, f"{columns[0]}="), is_escaped)
            return pc.and_not(is_plain, pc.match_substring(paths, _MISSING)).to_numpy(zero_copy_only=False)
        pattern = "^" + "/".join(f"{re.escape(name)}=[^/%]*" for name in columns) + "$"
        is_plain = pc.and_not(pc.match_substring_regex(paths, pattern), pc.match_substring(paths, _MISSING))
        return is_plain.to_numpy(zero_copy_only=False)

    @staticmethod
    def spelling_in(path: str, pairs: Sequence[tuple[str, str | None]]) -> str:
        """The folders in a path for these columns and values, in the path's spelling, with slashes.

        >>> ColumnFolder.spelling_in("d/label=big%20cat/new/a.tfrecord", [("label", "big cat")])
        'label=big%20cat/'
        """
        wanted, names = [*pairs], []
        for folder in reversed(path.split("/")[:-1]):
            if wanted and _parse(folder) == wanted[-1]:
                names.append(f"{folder}/")
                wanted.pop()
        return "".join(reversed(names))

    @staticmethod
    def root_of(pattern: str) -> str:
        """The part of a pattern before the first name with a wildcard; folders of columns are below it.

        >>> ColumnFolder.root_of("data/label=*/part-*.tfrecord"), ColumnFolder.root_of("data/label=cat/part-*.tfrecord")
        ('data/', 'data/label=cat/')
        """
        magic = re.search(_MAGIC, pattern)
        return pattern[: pattern.rfind("/", 0, magic.start() if magic else len(pattern)) + 1]

    @classmethod
    def roots_of(cls, directory: str) -> list[str]:
        """The directories, with their slashes, above the folders of columns that a path ends in, the outermost first.

        That is the one of the dataset, unless its own name is that of such a folder.

        >>> ColumnFolder.roots_of("data/day=1/label=cat/"), ColumnFolder.roots_of("data")
        (['data/', 'data/day=1/'], [])
        """
        folders = directory.rstrip("/").split("/")
        depth = len(folders)
        while depth and cls.column_of(folders[depth - 1]) is not None:
            depth -= 1
        return ["".join(f"{folder}/" for folder in folders[:end]) for end in range(depth, len(folders))]

    @staticmethod
    def has_only(path: str, root: str) -> bool:
        """True if all folders between `root` and a file of this path are folders of columns."""
        return all(_parse(folder) is not None for folder in path[len(root) :].split("/")[:-1])


def _parse(folder: str) -> tuple[str, str | None] | None:
    name, equals, value = folder.partition("=")
    if not name or not equals or folder.startswith("."):
        return None
    if "%" not in folder:
        return name, None if value == _MISSING else value
    from urllib.parse import unquote

    try:
        return unquote(name, errors="strict"), None if value == _MISSING else unquote(value, errors="strict")
    except UnicodeDecodeError as error:
        reason = f"the folder '{folder}' has a partition value that is not UTF-8"
        raise SchemaError(reason, hint="rename it") from error


def _escape(text: str) -> str:
    return re.sub(_SPECIAL, lambda match: f"%{ord(match[0]):02X}", text)
