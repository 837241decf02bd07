"""Splits in the names of files: those of training, validation and test in one folder, which are read as one dataset."""

from __future__ import annotations

import glob
import re
from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from tfrecord_io.base import and_more, counted, printable, warn
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.paths.file_names import FileName, natural_key

_WORDS = {
    "train": ("train", "training", "trn"),
    "validation": ("valid", "validation", "val", "dev"),
    "test": ("test", "testing", "tst"),
    "evaluation": ("eval", "evaluation"),
    "holdout": ("holdout",),
}
_SPLITS = {word: split for split, words in _WORDS.items() for word in words}
_WORD = re.compile("[A-Za-z]+")
_ALNUM = re.compile("^[A-Za-z0-9]+")


def warn_of_splits(fs: FileSystem, directory: str, files: Sequence[Entry], listing: Iterable[Entry]) -> None:
    """Warn if the files of a directory are of several splits by their names, with what reads each: a glob, or its file.

    `listing` has all entries of the directory, of which a glob must match no other.
    """
    splits = files_by_split([entry.basename for entry in files])
    if len(splits) < 2:
        return
    entries = [entry for entry in listing if not (entry.directory or FileName.parse(entry.basename).is_hidden)]
    names = {entry.basename for entry in (*entries, *files) if not FileName.parse(entry.basename).is_sidecar}
    folder = next(iter(files)).parent if len({entry.parent for entry in files}) == 1 else None
    root = glob.escape(fs.display_path(directory if folder is None else folder).rstrip("/"))
    root = f"{root}/" if folder is not None else f"{root}/**/"
    named = []
    for word, members in splits.items():
        pattern = glob_of(word, members, names)
        what = f"'{root}{pattern}'" if pattern else f"'{min(members, key=natural_key)}'{and_more(len(members) - 1)}"
        named.append(f"{printable(what)} ({counted(len(members), 'file')})")
    text = f"files of {len(splits)} splits are read as one dataset: {', '.join(named)}; name one of them"
    warn(f"{printable(fs.display_path(directory))}: {text}, or all by the glob '{printable(root)}*'", UserWarning)


def files_by_split(names: Iterable[str]) -> dict[str, list[str]]:
    """The names with the word of a split, by this word as the first name spells it; the first word of a name counts.

    >>> files_by_split(["train-0.tfr", "train-1.tfr", "x_val.tfr", "notes.tfr"])
    {'train': ['train-0.tfr', 'train-1.tfr'], 'val': ['x_val.tfr']}
    """
    members: dict[str, list[str]] = {}
    spelled: dict[str, str] = {}
    for name in sorted(names, key=natural_key):
        if (match := _split_word(name)) is not None:
            split = _SPLITS[match[0].lower()]
            members.setdefault(spelled.setdefault(split, match[0]), []).append(name)
    return members


def _split_word(name: str) -> re.Match[str] | None:
    return next((match for match in _WORD.finditer(name) if match[0].lower() in _SPLITS), None)


def glob_of(word: str, members: Sequence[str], names: Collection[str]) -> str:
    """A glob matching exactly the names `members` of a split; empty if there is no plain glob.

    >>> glob_of("train", ["train-0-0.tfr", "train-0-1.tfr"], {"train-0-0.tfr", "train-0-1.tfr", "train-notes"})
    'train-*.tfr'
    """
    if len(set(members)) == 1:
        return glob.escape(members[0])
    ends = [match.end() for match in map(_split_word, members) if match is not None]
    before = {name[:end] for name, end in zip(members, ends, strict=True)}
    behind = [name[end:] for name, end in zip(members, ends, strict=True)]
    separators = {text[:1] for text in behind}
    separator = separators.pop() if len(separators) == 1 else ""
    ends_of_first = (behind[0][at:] for at in range(len(behind[0]) + 1))
    same_end = next(end for end in ends_of_first if all(text.endswith(end) for text in behind))
    suffix = glob.escape(_ALNUM.sub("", same_end))
    begin = glob.escape(before.pop()) if len(before) == 1 else ""
    patterns = [f"{begin}{separator if separator in ('-', '_') else ''}*{suffix}"] if begin else []
    for pattern in (*patterns, f"*{word}*{suffix}", f"*{word}*"):
        if {name for name in names if fnmatchcase(name, pattern)} == set(members):
            return pattern
    return ""
