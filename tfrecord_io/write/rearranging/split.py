"""Split and merge: records are copied as bytes from any number of files to any number of others."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, overload
from urllib.parse import quote

from tfrecord_io.base import CopyOptions, check_integer, check_keywords, counted, for_cli, printable, warn
from tfrecord_io.bytes import CODECS, Array
from tfrecord_io.read import options_from_call
from tfrecord_io.store import FileName, Location, ShardName, ShardSpec
from tfrecord_io.typing import (
    UNSET,
    Compression,
    FileMode,
    IndexLike,
    InputPath,
    Partitions,
    Path,
    ProgressLike,
    StorageLike,
    Unset,
)
from tfrecord_io.write.copied_records import CopiedRecords
from tfrecord_io.write.rearranging.split_assignment import (
    MOST_PARTS,
    group_labels,
    random_labels,
    split_by_label,
    stratified_labels,
    value_labels,
)
from tfrecord_io.write.record_output import RecordOutput
from tfrecord_io.write.writer import WriteReport

_NAMES = {2: ("train", "test"), 3: ("train", "validation", "test")}
_MISSING = "%missing"


@check_keywords
def merge(
    source: InputPath,
    target: Path,
    *,
    partitions: Partitions = "features",
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: IndexLike = False,
    mode: FileMode | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport:
    """Write the records of several files to one file, or to shards, in their order.

    Records are copied as bytes, and their checksums checked. The embedded schemas of the files are united, and the
    result is stored in the first record of each file. Values in the names of folders (``day=1/``) become features. The
    manifest of shards gets the metadata of the datasets, without those that contradict each other.

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
    >>> for file in tfr.merge("days", "compact/", partitions="folders").files:
    ...     print(file.path)
    compact/day=1/part-00000-of-00001.tfrecord
    compact/day=2/part-00000-of-00001.tfrecord

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As for `dataset`. The ``schema=`` of a dataset is embedded instead of those of the files, whose records are
        read with it first: it has to name all their features, with types that fit the values. Its
        ``schema_overrides=`` are types of some columns, where the files disagree or have others.
    target : str, PathLike or binary file object
        As for `write_tfrecord`.
    partitions : {"features", "folders", "drop"}
        What values in the names of folders (``day=1/``) become. "features": one of each record, with the type that
        `read_table` gives the column; records must be Examples without a feature of this name. "folders": `target` is a
        directory, in which the records of ``day=1/`` are written to ``day=1/``. "drop": nothing.
    compression, compression_level, shards, max_shard_bytes, write_index, storage_options, progress
        As for `write_tfrecord`; a source with another storage is ``dataset(path, storage_options=…)``.
    mode : {"error", "overwrite"}, optional
        What happens to existing output. By default a file is replaced, and a sharded dataset is an error.

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
        The schema of the dataset does not describe the records, or records in folders are not Examples.
    FileExistsError
        As `write_tfrecord`.

    Warns
    -----
    SchemaWarning
        Some files have an embedded schema and others do not, so that the output has none.
    """
    options = options_from_call(
        CopyOptions,
        merge,
        source,
        partitions=partitions,
        compression=compression,
        compression_level=compression_level,
        shards=shards,
        max_shard_bytes=max_shard_bytes,
        write_index=write_index,
        mode=mode,
        storage_options=storage_options,
        progress=progress,
    )
    return _copy_all(CopiedRecords(source, options), target)


@overload
def split(
    source: InputPath,
    target: Path,
    *,
    by: str,
    seed: int = 0,
    partitions: Partitions = "features",
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: IndexLike = False,
    mode: FileMode | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> dict[str, WriteReport]: ...
@overload
def split(
    source: InputPath,
    target: Path,
    *,
    fractions: Sequence[float] | Mapping[str, float],
    group: str | None = None,
    stratify: str | None = None,
    seed: int = 0,
    partitions: Partitions = "features",
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: IndexLike = False,
    mode: FileMode | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> dict[str, WriteReport]: ...
@overload
def split(
    source: InputPath,
    target: Path,
    *,
    by: None = None,
    fractions: None = None,
    partitions: Partitions = "features",
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: IndexLike = False,
    mode: FileMode | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike = False,
) -> WriteReport: ...
@check_keywords
def split(
    source: InputPath,
    target: Path,
    *,
    by: str | None = None,
    fractions: Sequence[float] | Mapping[str, float] | None = None,
    group: str | None = None,
    stratify: str | None = None,
    seed: int = 0,
    partitions: Partitions = "features",
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: IndexLike = False,
    mode: FileMode | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport | dict[str, WriteReport]:
    """Split the records of files: into shards, by the values of a column, or into parts of given sizes.

    Records are copied as bytes and keep their order; the embedded schema is in the first record of each file written.
    Values in the names of folders (``day=1/``) become features. With `by` or `fractions`, the files are read twice, and
    the part of each record takes a byte of memory.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"x": list(range(10)), "label": ["cat", "dog"] * 5}, "pets.tfrecord"
    ... )
    >>> parts = tfr.split("pets.tfrecord", "parts", fractions=[0.8, 0.1, 0.1], seed=1)
    >>> {name: report.records for name, report in parts.items()}
    {'train': 8, 'validation': 1, 'test': 1}
    >>> sorted(tfr.split("pets.tfrecord", "folds", fractions=[0.2] * 5))
    ['part0', 'part1', 'part2', 'part3', 'part4']
    >>> sorted(tfr.split("pets.tfrecord", "by_label", by="label"))
    ['cat', 'dog']
    >>> tfr.split("pets.tfrecord", "shards/pets.tfrecord", shards=5).records
    10
    >>> parts = tfr.split("pets.tfrecord", "even", fractions=[0.6, 0.4], stratify="label")
    >>> sorted(tfr.read_table("even/train.tfrecord")["label"].to_pylist())
    ['cat', 'cat', 'cat', 'dog', 'dog', 'dog']

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As for `dataset`.
    target : str or PathLike
        Without `by` and `fractions`, as in `write_tfrecord`, with `shards` or `max_shard_bytes`. With them, a directory
        for the parts: ``<target>/<name>.tfrecord``, each a dataset of shards if `shards` or `max_shard_bytes` is given.
    by : str, optional
        A column of texts, bytes, integers or bools, of at most 200 distinct values. The value is the name of its part,
        with characters other than letters, digits and ``_.-~`` as ``%`` and two hexadecimal digits, as are a first
        ``.`` or ``_`` (files that readers of a directory leave out) and ``-`` in names of shards
        (``a-00000-of-00002``); records without a value are in ``%missing``. The names are not those of partition
        folders (``label=3/``), as the column stays in the records. The column may be that of partition folders.
    fractions : sequence of float, or dict of str to float, optional
        The size of each part. If the sum is less than 1, the remaining records are left out. Two parts are named train
        and test, three train, validation and test, five part0 to part4; a dict gives other names. Without `group` and
        `stratify`, records are assigned at random; of n records the first k parts have ``floor(n * sum(fractions[:k]) +
        1/2)``.
    group : str, optional
        A column whose values stay together, such as a user: all records with one value are in one part of `fractions`,
        by the BLAKE2b hash of the value. Records that are added later do not move others to another part. The sizes of
        parts are those of `fractions` on average over the values: a part of few values may be empty, with a warning.
        Records without a value are one group.
    stratify : str, optional
        A column each of whose values has its share in each part of `fractions`: of the n records of a class, a part
        has its fraction up to a few records. Records that are added after the others change the part of no other.
    seed : int, default 0
        The same seed gives the same parts of the same records; without `group` and `stratify`, of the same number.
    partitions, compression, compression_level, shards, max_shard_bytes, write_index, mode
        As for `merge`.
    storage_options, progress
        As for `write_tfrecord`; a source with others is a `dataset`.

    Returns
    -------
    WriteReport, or dict of str to WriteReport
        With `by` or `fractions`, one for each part by name. Each part appears atomically, after all records were read.

    Raises
    ------
    ValueError
        None or several of the ways to split are given, a column `by` has more than 200 distinct values, `fractions` has
        none or more than 200 parts, or a name in it is empty or that of a shard, has a slash or backslash, or begins
        with ``.`` or ``_``.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; nothing is written.
    FeatureNotFoundError
        The column does not exist.
    FileExistsError
        As `write_tfrecord`.
    """
    options = options_from_call(
        CopyOptions,
        split,
        source,
        partitions=partitions,
        compression=compression,
        compression_level=compression_level,
        shards=shards,
        max_shard_bytes=max_shard_bytes,
        write_index=write_index,
        mode=mode,
        storage_options=storage_options,
        progress=progress,
    )
    copied = CopiedRecords(source, options)
    if by is not None and fractions is not None:
        error = ValueError("by= and fractions= are two ways to split: pass only one of them")
        raise for_cli(error, "--by and --fractions are two ways to split: pass only one of them")
    if (group is not None or stratify is not None) and (fractions is None or None not in (group, stratify)):
        error = ValueError("pass either group= or stratify=, not both, together with fractions=")
        raise for_cli(error, "pass either --group or --stratify, not both, together with --fractions")
    seed = check_integer("seed", seed, 0)
    if by is not None:
        values, labels = value_labels(copied, by)
        return _copy_parts(copied, os.fspath(target), [_part_name(value) for value in values], labels)
    if fractions is None:
        is_spec = isinstance(target, str | os.PathLike) and ShardSpec.parse(os.fspath(target)) is not None
        if copied.options.shards is None and copied.options.max_shard_bytes is None and not is_spec:
            error = ValueError("say how to split: pass one of shards=, max_shard_bytes=, by=, fractions=")
            raise for_cli(error, "say how to split: pass one of --shards, --max-shard-bytes, --by, --fractions")
        return _copy_all(copied, target)
    shares = _shares(fractions)
    parts = list(shares.values())
    if group is not None:
        labels = group_labels(copied, group, parts, seed)
    elif stratify is not None:
        labels = stratified_labels(copied, stratify, parts, seed)
    else:
        count = copied.count()
        labels = random_labels(_sizes(parts, count), count, seed)
    return _copy_parts(copied, os.fspath(target), list(shares), labels)


def _copy_all(copied: CopiedRecords, dst: Any) -> WriteReport:
    """Copy all records in their order."""
    with RecordOutput.open_all(copied, dst) as (output,):
        for folder, frames in copied.frames():
            output.folder(folder).write(frames)
    return output.report


def _shares(fractions: Sequence[float] | Mapping[str, float]) -> dict[str, Fraction]:
    """The share of each part, by name."""
    if isinstance(fractions, str):
        raise TypeError(f"fractions={fractions!r}: expected numbers, such as [0.8, 0.2], not a text")
    if not isinstance(fractions, Mapping):
        count = len(fractions)
        if count < 2:
            text = f"has {counted(count, 'number')}: expected 2 (train, test), 3 (train, validation, test) or more, or"
            error = ValueError(f"fractions= {text} a dict with a name for each part")
            raise for_cli(error, f"--fractions {text} a name for each part, as in train=0.9,eval=0.1")
        names = _NAMES.get(count) or [f"part{i:0{len(str(count - 1))}}" for i in range(count)]
        fractions = dict(zip(names, fractions, strict=True))
    if not 0 < len(fractions) <= MOST_PARTS:
        raise ValueError(f"fractions= has {len(fractions)} parts: expected 1 to {MOST_PARTS}")
    for name in map(str, fractions):
        is_path = not name or "/" in name or "\\" in name
        if is_path or FileName.parse(name).is_hidden or ShardName.parse(name) is not None:
            reason = 'expected a name that no shard has, without "/" and "\\", which does not begin with "." or "_"'
            raise ValueError(f"fractions= has a part named {name!r}: {reason}")
    exact = {name: exact_fraction("fractions", value) for name, value in fractions.items()}
    if sum(exact.values()) > 1:
        text = f"{list(fractions.values())!r}: their sum is more than 1"
        raise for_cli(ValueError(f"fractions={text}"), f"--fractions {text}")
    return exact


def _sizes(shares: Iterable[Fraction], count: int) -> list[int]:
    """The number of records of each part."""
    ends = [math.floor(count * end + Fraction(1, 2)) for end in accumulate(shares, initial=Fraction(0))]
    return [end - begin for begin, end in pairwise(ends)]


def exact_fraction(name: str, value: float) -> Fraction:
    """A fraction as it is written in decimal digits: 0.1 is one tenth."""
    text = f"{value!r}: expected a number from 0 to 1"
    try:
        fraction = Fraction(str(value))
    except ValueError:
        raise TypeError(f"{name}={text}") from None
    if not 0 <= fraction <= 1:
        raise for_cli(ValueError(f"{name}={text}"), f"--{name} {text}")
    return fraction


def _part_name(value: Any) -> str:
    """The name of the part for a value, which is the name of a file.

    >>> _part_name("a/b"), _part_name(3), _part_name(b"cat"), _part_name(None)
    ('a%2Fb', '3', 'cat', '%missing')
    >>> _part_name(".."), _part_name("_a")  # readers of a directory leave out hidden files
    ('%2E.', '%5Fa')
    >>> _part_name("a-b"), _part_name("a-00000"), _part_name("a-00000-of-00002")  # a part is not a shard of a dataset
    ('a-b', 'a%2D00000', 'a%2D00000%2Dof%2D00002')
    """
    if value is None:
        return _MISSING
    name = quote(value if isinstance(value, bytes) else str(value), safe="")
    if ShardName.parse(name) is not None or ShardName.parse(f"{name}.tfrecord") is not None:
        name = name.replace("-", "%2D")
    return {".": "%2E", "_": "%5F", "": "%"}.get(name[:1], name[:1]) + name[1:]


def _copy_parts(copied: CopiedRecords, dst: str, names: Sequence[str], labels: Array) -> dict[str, WriteReport]:
    """Write each part to a file or dataset of its name in the directory `dst`."""
    codec = None if copied.options.compression in (None, "infer") else CODECS.find(copied.options.compression)
    suffix = ".tfrecord" + (codec.suffixes[0] if codec is not None else "")
    Location.of(dst, copied.options.target).check_writable()
    directory = dst if dst.endswith("/") else f"{dst}/"
    files = [f"{name}{suffix}" for name in names]
    with (
        Location.of(directory, copied.options.target).new_parent(),
        RecordOutput.open_all(copied, directory, files) as outputs,
    ):
        for number, folder, frames in split_by_label(copied, labels):
            outputs[number].folder(folder).write(frames)
    reports = {name: output.report for name, output in zip(names, outputs, strict=True)}
    _warn_of_empty_parts(dst, reports)
    return reports


def _warn_of_empty_parts(dst: str, reports: Mapping[str, WriteReport]) -> None:
    """Warn of parts that got no record, although others did: an evaluation on them would have no result."""
    empty = [printable(name) for name, report in reports.items() if not report.records]
    if empty and len(empty) < len(reports):
        text = f"{printable(dst)}: no records in {', '.join(empty)}: too few records or groups for its share"
        warn(f"{text}; try another seed=", UserWarning, f"{text}; try another --seed")
