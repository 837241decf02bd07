"""Split and merge: records are copied as bytes from any number of files to any number of others."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, overload
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from tfrecord_io.compression import get_codec
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import FeatureNotFoundError, FeatureTypeError, printable
from tfrecord_io.keyword_docs import document_keywords, rename_keywords
from tfrecord_io.options import CopyOptions, ReadOptions, check_integer
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.storage.paths.file_names import parse_shard, parse_spec
from tfrecord_io.storage.write.atomic import new_parent
from tfrecord_io.tools.copied_records import CopiedRecords, Frames, selected
from tfrecord_io.tools.record_copy import record_outputs
from tfrecord_io.typing import InputPath, Path
from tfrecord_io.write.writer import WriteReport

MOST_PARTS = 200  # each has an open file
LEFT_OUT = 255  # the label of a record that is in no part
_NAMES = {2: ("train", "test"), 3: ("train", "validation", "test")}
_MISSING = "%missing"


@document_keywords(CopyOptions)
def merge(src: InputPath, dst: Path, **keywords: Any) -> WriteReport:
    """Write the records of files to one file, or to other shards, in their order.

    Records are copied as bytes, their checksums checked. The embedded schemas of the files are united, and the result
    is in the first record of each file written. Values in the names of folders (``day=1/``) become features.

    Parameters
    ----------
    src : str, PathLike, list of those, or binary file object
        As in `read_tfrecord`.
    dst : str, PathLike or binary file object
        As in `write_tfrecord`.
    {keywords}

    Returns
    -------
    WriteReport

    Raises
    ------
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; nothing is written.
    SchemaError
        The embedded schemas of two files state different types of a column, or a feature and a folder have one name.
    SchemaError, DecodeError
        `schema` does not describe the records, or records in folders are no Examples.
    FileExistsError
        As `write_tfrecord`.

    Warns
    -----
    SchemaWarning
        Some files have an embedded schema and others do not, so that the output has none.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3, 4]}, "parts/x@2")
    >>> tfr.merge("parts", "whole.tfrecord").records
    4
    >>> tfr.read_table("whole.tfrecord")["x"].to_pylist()
    [1, 2, 3, 4]
    >>> _ = tfr.write_tfrecord({"x": [1, 2]}, "days/day=1/", shards=2)
    >>> _ = tfr.write_tfrecord({"x": [3]}, "days/day=2/")
    >>> _ = tfr.merge("days", "days.tfrecord")
    >>> tfr.read_table("days.tfrecord").to_pylist()
    [{'x': 1, 'day': 1}, {'x': 2, 'day': 1}, {'x': 3, 'day': 2}]
    >>> [file.path for file in tfr.merge("days", "compact/", partitions="folders").files]
    ['compact/day=1/part-00000-of-00001.tfrecord', 'compact/day=2/part-00000-of-00001.tfrecord']
    """
    return _copy_all(CopiedRecords(src, CopyOptions.of(keywords, merge)), dst)


@overload
def split(src: InputPath, dst: Path, *, by: str, **keywords: Any) -> dict[str, WriteReport]: ...
@overload
def split(
    src: InputPath, dst: Path, *, fractions: Sequence[float] | Mapping[str, float], **keywords: Any
) -> dict[str, WriteReport]: ...
@overload
def split(src: InputPath, dst: Path, *, by: None = None, fractions: None = None, **keywords: Any) -> WriteReport: ...
@document_keywords(CopyOptions)
def split(
    src: InputPath,
    dst: Path,
    *,
    by: str | None = None,
    fractions: Sequence[float] | Mapping[str, float] | None = None,
    seed: int = 0,
    **keywords: Any,
) -> WriteReport | dict[str, WriteReport]:
    """Split the records of files: into shards, by the values of a column, or at random into parts of given sizes.

    Records are copied as bytes and keep their order; the embedded schema is in the first record of each file written.
    Values in the names of folders (``day=1/``) become features. With `by` or `fractions`, the files are read twice, and
    the part of each record takes a byte of memory.

    Parameters
    ----------
    src : str, PathLike, list of those, or binary file object
        As in `read_tfrecord`.
    dst : str or PathLike
        Without `by` and `fractions`, as in `write_tfrecord`, with `shards` or `max_shard_bytes`. With them, a directory
        for the parts: ``<dst>/<name>.tfrecord``, each a dataset of shards if `shards` or `max_shard_bytes` is given.
    by : str, optional
        A column of texts, bytes, integers or bools, of at most 200 distinct values. The value is the name of its part,
        with characters other than letters, digits and ``_.-~`` as ``%`` and two hexadecimal digits, as are a first
        ``.`` or ``_`` (files that readers of a directory leave out) and ``-`` in names of shards
        (``a-00000-of-00002``); records without a value are in ``%missing``. Such files have no name of a partition
        (``label=3/``), as the column stays in the records. It may be one of folders.
    fractions : sequence of float, or dict of str to float, optional
        The size of each part; their sum is at most 1, and records that remain are left out. Two are named train and
        test, three train, validation and test; a dict has the names. Which records are in a part is random. Of n
        records, the first k parts together have exactly ``floor(n * sum(fractions[:k]) + 1/2)``.
    seed : int, default 0
        The same seed, and number of records, gives the same parts.
    {keywords}

    Returns
    -------
    WriteReport, or dict of str to WriteReport
        With `by` or `fractions`, one for each part by name. Each part appears atomically, after all records were read.

    Raises
    ------
    ValueError
        None or several of the ways to split are given, a column has more than 200 distinct values, or a name in
        `fractions` is empty, has a slash or backslash, or begins with ``.``.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; nothing is written.
    FeatureNotFoundError
        There is no column `by`.
    FileExistsError
        As `write_tfrecord`.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": list(range(10)), "label": ["cat", "dog"] * 5}, "pets.tfrecord")
    >>> parts = tfr.split("pets.tfrecord", "parts", fractions=[0.8, 0.1, 0.1], seed=1)
    >>> {name: report.records for name, report in parts.items()}
    {'train': 8, 'validation': 1, 'test': 1}
    >>> sorted(tfr.split("pets.tfrecord", "by_label", by="label"))
    ['cat', 'dog']
    >>> tfr.split("pets.tfrecord", "shards/pets.tfrecord", shards=5).records
    10
    """
    copied = CopiedRecords(src, CopyOptions.of(keywords, split))
    if by is not None and fractions is not None:
        raise ValueError("by= and fractions= are two ways to split: pass only one of them")
    if by is None and fractions is None:
        if copied.options.shards is None and copied.options.max_shard_bytes is None and not _is_spec(dst):
            raise ValueError("pass shards=, max_shard_bytes=, by= or fractions=: how to split")
        return _copy_all(copied, dst)
    if by is not None:
        names, labels = _labels_by_value(copied, by)
    else:
        assert fractions is not None
        count = copied.count()
        sizes = _part_sizes(fractions, count)
        names, labels = list(sizes), random_labels(list(sizes.values()), count, seed)
    return _copy_parts(copied, os.fspath(dst), names, labels)


def _copy_all(copied: CopiedRecords, dst: Any) -> WriteReport:
    """Copy all records in their order."""
    with record_outputs(copied, dst) as (output,):
        for folder, frames in copied.frames():
            output.folder(folder).write(frames)
    return output.report


def _is_spec(dst: object) -> bool:
    return isinstance(dst, str | os.PathLike) and parse_spec(os.fspath(dst)) is not None


def random_labels(sizes: Sequence[int], count: int, seed: int) -> Array:
    """The number of the part of each of `count` records: random, with parts of these sizes; the rest is `LEFT_OUT`."""
    check_integer("seed", seed, 0)
    labels = np.full(count, LEFT_OUT, np.uint8)
    ends = np.cumsum(sizes)
    for number, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        labels[begin:end] = number
    np.random.Generator(np.random.PCG64(seed)).shuffle(labels)
    return labels


def labelled(copied: CopiedRecords, labels: Array) -> Iterator[tuple[int, str, Frames]]:
    """The records of each part, with the number of the part and the folder that they are copied to.

    Raises
    ------
    OSError
        The files have another number of records than before.
    """
    row = 0
    for folder, frames in copied.frames():
        own = labels[row : row + len(frames[1])]
        row += len(frames[1])
        numbers = np.unique(own).tolist()
        for number in numbers if row <= len(labels) else ():
            if number != LEFT_OUT:
                part = frames if len(numbers) == 1 else selected(frames, np.flatnonzero(own == number))
                yield number, folder, part
    if row != len(labels):
        raise OSError(f"the files have {row} records, and had {len(labels)} before: they were changed meanwhile")


def _part_sizes(fractions: Sequence[float] | Mapping[str, float], count: int) -> dict[str, int]:
    """The number of records of each part, by name."""
    if not isinstance(fractions, Mapping):
        if len(fractions) not in _NAMES:
            text = f"fractions= has {len(fractions)} numbers: expected 2 (train, test) or 3 (train, validation, test)"
            raise ValueError(f"{text}, or a dict with a name for each part")
        fractions = dict(zip(_NAMES[len(fractions)], fractions, strict=True))
    if not 0 < len(fractions) <= MOST_PARTS:
        raise ValueError(f"fractions= has {len(fractions)} parts: expected 1 to {MOST_PARTS}")
    for name in map(str, fractions):
        if name[:1] in ("", ".", "_") or "/" in name or "\\" in name or parse_shard(name) is not None:
            reason = 'expected a name that no shard has, without "/" and "\\", which does not begin with "." or "_"'
            raise ValueError(f"fractions= has a part named {name!r}: {reason}")
    exact = {name: exact_fraction("fractions", value) for name, value in fractions.items()}
    if sum(exact.values()) > 1:
        raise ValueError(f"fractions={list(fractions.values())!r}: their sum is more than 1")
    sums = [sum(list(exact.values())[:k], Fraction(0)) for k in range(len(exact) + 1)]
    ends = [math.floor(count * part + Fraction(1, 2)) for part in sums]
    return {name: end - begin for name, (begin, end) in zip(exact, pairwise(ends), strict=True)}


def exact_fraction(name: str, value: float) -> Fraction:
    """A fraction as it is written in decimal digits: 0.1 is one tenth."""
    try:
        fraction = Fraction(str(value))
    except ValueError:
        raise TypeError(f"{name}={value!r}: expected a number from 0 to 1") from None
    if not 0 <= fraction <= 1:
        raise ValueError(f"{name}={value!r}: expected a number from 0 to 1")
    return fraction


@rename_keywords({"columns": "by"})
def _labels_by_value(copied: CopiedRecords, by: str) -> tuple[list[str], Array]:
    """The names of the parts for the values of a column, and the number of the part of each record."""
    values: dict[Any, int] = {}
    labels: list[Array] = [np.empty(0, np.uint8)]
    schema = copied.schema
    keywords = {"columns": [by], "sample": "all", "schema": schema.declared, **copied.options.source.keywords}
    if schema.declared is None:
        keywords["schema_overrides"] = copied.options.schema_overrides
    with Reader(plan_scan(copied.sources, ReadOptions.of(keywords), embedded=schema.united)) as batches:
        for field in batches.schema:  # none if the files have no Examples: the first batch is an error then
            if field.name != by:  # columns= would take it for a glob
                reason = "by= takes the name of one column, and no pattern"
                raise FeatureNotFoundError(reason, feature=by, advice=f"did you mean '{printable(field.name)}'?")
            _check_type(by, field.type)
        for batch in batches:
            column = batch.column(0)
            encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
            indices = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
            used = np.unique(indices)
            numbers = np.zeros(len(encoded.dictionary) + 1, np.uint8)
            for index in used.tolist():
                value = encoded.dictionary[index].as_py() if index < len(encoded.dictionary) else None
                number = values.setdefault(value, len(values))
                if number == MOST_PARTS:
                    raise ValueError(f"by={by!r}: the column has more than {MOST_PARTS} distinct values")
                numbers[index] = number
            labels.append(numbers[indices])
    return [_part_name(value) for value in values], np.concatenate(labels)


def _check_type(by: str, type_: pa.DataType) -> None:
    value = type_.value_type if pa.types.is_dictionary(type_) else type_
    t = pa.types
    kinds = (t.is_integer, t.is_boolean, t.is_string, t.is_large_string, t.is_binary, t.is_large_binary, t.is_null)
    if not any(is_kind(value) for is_kind in kinds):
        reason = f"its type is {type_}, and by= needs a column of single texts, bytes, integers or bools"
        raise FeatureTypeError(reason, feature=by)


def _part_name(value: Any) -> str:
    """The name of the part for a value, which is the name of a file.

    >>> _part_name("a/b"), _part_name(3), _part_name(b"cat"), _part_name(None)
    ('a%2Fb', '3', 'cat', '%missing')
    >>> _part_name(".."), _part_name("_a")  # readers of a directory leave out hidden files
    ('%2E.', '%5Fa')
    >>> _part_name("a-b"), _part_name("a-00000-of-00002")  # a part is no shard of a dataset
    ('a-b', 'a%2D00000%2Dof%2D00002')
    """
    if value is None:
        return _MISSING
    name = quote(value if isinstance(value, bytes) else str(value), safe="")
    if parse_shard(name) is not None:
        name = name.replace("-", "%2D")
    return {".": "%2E", "_": "%5F", "": "%"}.get(name[:1], name[:1]) + name[1:]


def _copy_parts(copied: CopiedRecords, dst: str, names: Sequence[str], labels: Array) -> dict[str, WriteReport]:
    """Write each part to a file or dataset of its name in the directory `dst`."""
    codec = None if copied.options.compression in (None, "infer") else get_codec(copied.options.compression)
    suffix = ".tfrecord" + (codec.suffixes[0] if codec is not None else "")
    directory = dst if dst.endswith("/") else f"{dst}/"
    files = [f"{name}{suffix}" for name in names]
    with new_parent(directory, copied.options.target), record_outputs(copied, directory, files) as outputs:
        for number, folder, frames in labelled(copied, labels):
            outputs[number].folder(folder).write(frames)
    return {name: output.report for name, output in zip(names, outputs, strict=True)}
