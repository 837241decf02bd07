"""The schema of records of very many features, inferred from some of the features at a time.

A decoder that finds 10^5 features takes 250 MB, whatever they hold. What is inferred of a feature depends on no other
one but its companions, so the first records are split: each part has the entries of some features, with which the read
is planned as if the records had no more.

Tests: tests/read/test_plan_many_features.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from zlib import crc32

import numpy as np

from tfrecord_io.base import ScanOptions, Selection
from tfrecord_io.bytes import Array, Engine, FieldTag, get_engine
from tfrecord_io.columns import Schema
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.first_values import FirstRecords
from tfrecord_io.read.infer_from_sample import SAMPLE_BYTES
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.saved_schema import find_saved_schema
from tfrecord_io.read.scan import ResolvedSchema, Scan
from tfrecord_io.store import Source, SourcePrefetcher, Sources

_WIDE = 256 << 10  # bytes that a record of so many features has at least
_PART = 4096  # features that are decoded together: a list takes 4 kB in a decoder
_FEATURES, _ENTRY, _KEY = 1, 1, 1  # fields of an Example, of its Features, and of their entries
_COMPANIONS = (b"/shape", b"/dtype")


def plan_many_features(sources: Sources, options: ScanOptions, selection: Selection) -> Scan | None:
    """The scan of files on a disk that begin with Examples of very many features, whose schema is to be inferred.

    None for other files, if the call says anything about columns, or if something is wrong with the first records:
    planned as usual, the read says what. Where a feature of a record contradicts earlier ones, the sample ends for the
    features of its part, and not for all.
    """
    says_columns = selection.columns is not None or selection.filters is not None or options.schema_overrides
    if says_columns or options.schema is not None or options.record_type not in (None, "example"):
        return None
    if options.sample == "all" or any(s.remote is not None or not s.can_be_read_again for s in sources):
        return None
    try:
        parts = _Splitter(options).split(sources)
        if parts is None or find_saved_schema(sources) is not None:
            return None
        sampled = options.changed(sample=max(1, sum(len(frames) for frames in parts[0])))
        first = _plan_part(sources, parts[0], sampled, selection, is_alone=False)
        later_parts = [_plan_part(sources, frames, sampled, selection, is_alone=True).resolved for frames in parts[1:]]
    except (TFRecordError, OSError):
        return None
    del parts
    resolved = _join([first.resolved, *later_parts])
    if resolved is None or len(resolved.observations) > options.limits.features:
        return None
    return replace(first, sources=sources, options=options, resolved=resolved, compiled=None)  # type: ignore[arg-type]


def _plan_part(
    sources: Sources, frames: Sequence[Sequence[Array]], options: ScanOptions, selection: Selection, *, is_alone: bool
) -> Scan:
    """The scan of a part of the first records of files, the frames of each; unless `is_alone`, followed by all files.

    Those are looked at for their schema only: the options limit the sample to the first records.
    """
    first = [
        source.replace(derived=FirstRecords(of_file), size=sum(map(len, of_file)))
        for source, of_file in zip(sources, frames, strict=False)
    ]
    later_files: list[Source] = [] if is_alone else [*sources][len(first) :]
    return plan_scan(Sources.of([*first, *later_files]), options, selection, only_sample=True).close()


def _join(parts: Sequence[ResolvedSchema]) -> ResolvedSchema | None:
    """The schema of all parts, sorted by name as the schema of each; None if one is not inferred."""
    if any(part.source not in ("inferred", "companions") for part in parts):
        return None
    names = [name for part in parts for name in part.schema.names]
    types = [type_ for part in parts for type_ in part.schema.types]
    others = {field.column: field for part in parts for field in part.schema.others.values()}
    order = sorted(range(len(names)), key=names.__getitem__)
    names, types = [names[at] for at in order], [types[at] for at in order]
    fields = {at: others[name] for at, name in enumerate(names) if name in others}
    schema = Schema.from_common_types(names, types, others=fields)
    folded = frozenset[str]().union(*(part.folded for part in parts))
    return replace(
        parts[0],
        schema=schema,
        source="companions" if folded else "inferred",
        folded=folded,
        companions=frozenset[str]().union(*(part.companions for part in parts)),
        observations={name: seen for part in parts for name, seen in part.observations.items()},
    )


class _Splitter:
    """Splits the first records of files into records of some of their features each."""

    def __init__(self, options: ScanOptions) -> None:
        self._options, self._engine = options, get_engine()
        self._count = 0  # parts

    def split(self, sources: Sources) -> list[list[list[Array]]] | None:
        """The frames of each part by file, of the files that have some of the first records.

        None if the first record has not very many features, or one of them is not an Example alone.
        """
        parts: list[list[list[Array]]] = []
        left, left_bytes = int(self._options.sample), SAMPLE_BYTES
        with (
            SourcePrefetcher(sources) as prefetcher,
            closing(BlockWalker.from_options(prefetcher, self._options)) as walker,
        ):
            for frames in walker.intact_frames(check_crc=self._options.check_crc):
                for start, length in zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True):
                    if left == 0 or left_bytes <= 0:
                        return parts
                    split = self._split_record(walker.data[start : start + length])
                    if split is None:
                        return None
                    parts = parts or [[] for _ in split]
                    for files, frame in zip(parts, split, strict=True):
                        files += [[] for _ in range(walker.number + 1 - len(files))]
                        files[-1].append(frame)
                    left, left_bytes = left - 1, left_bytes - length
        return parts or None

    def _split_record(self, payload: Array) -> list[Array] | None:
        """The frames of the parts of a record."""
        if not self._count and len(payload) < _WIDE:
            return None
        size = np.array([len(payload)])
        features = self._members(payload, np.zeros(1, np.int64), size, _FEATURES)
        entries = None if features is None else self._members(payload, features.starts, features.lengths, _ENTRY)
        if entries is None:
            return None
        keys, fault = self._engine.members(payload, Engine.Frames(entries.starts, entries.lengths, 0), _KEY)
        self._count = self._count or len(entries.starts) // _PART
        if fault is not None or self._count < 2:
            return None
        heads = _head_sizes(entries.lengths)
        starts, lengths = entries.starts - heads, entries.lengths + heads
        part_of = self._parts_of(payload, keys, len(starts))
        frames = []
        for part in range(self._count):
            members = np.flatnonzero(part_of == part)
            head = np.frombuffer(FieldTag.of(_FEATURES).head(int(lengths[members].sum())), np.uint8)
            data = np.concatenate([payload, head])
            extents = np.array([len(payload), *starts[members]]), np.array([len(head), *lengths[members]])
            frames.append(self._engine.frame_extents(data, *extents, len(members) + 1))
        return frames

    def _members(self, payload: Array, starts: Array, lengths: Array, number: int) -> Engine.Members | None:
        """The fields of one number in messages; None if a message has a field of another number."""
        members, fault = self._engine.members(payload, Engine.Frames(starts, lengths, 0), number)
        is_all = fault is None and (members.lengths + _head_sizes(members.lengths)).sum() == lengths.sum()
        return members if is_all else None

    def _parts_of(self, payload: Array, keys: Engine.Members, count: int) -> Array:
        """The part of each entry: a feature and its companions are in one."""
        part_of, data = np.zeros(count, np.int64), payload.data
        places = zip(keys.records.tolist(), keys.starts.tolist(), keys.lengths.tolist(), strict=True)
        for entry, start, length in places:  # of several keys, the last one counts
            name = bytes(data[start : start + length])
            while name.endswith(_COMPANIONS):
                name = name[: -len(_COMPANIONS[0])]
            part_of[entry] = crc32(name) % self._count
        return part_of


def _head_sizes(lengths: Array) -> Array:
    """The bytes of the tag and the length before contents of so many bytes, as writers make them."""
    return 2 + np.searchsorted(1 << np.arange(7, 63, 7), lengths, side="right")
