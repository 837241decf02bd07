"""Whether the records are another message than Example or SequenceExample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tfrecord_io.engine.contract import RecordCounts
from tfrecord_io.engine.fault_messages import not_examples
from tfrecord_io.errors import SchemaWarning, printable, warn
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.read.chunks.chunk import DecodedChunk
from tfrecord_io.schema.leaf import FEATURE_LIST
from tfrecord_io.schema.schema import Schema
from tfrecord_io.storage.read.source import Source

_VERDICT_BYTES = 64 * MIB


def check_record_type(counts: RecordCounts, sources: Sequence[Source], options: ReadOptions) -> None:
    """Raise DecodeError if the records are another message: with `record_type`, only if they look like one."""
    error = not_examples(counts, sources[0].path, is_declared=options.record_type is not None)
    if error is not None:
        raise error


def warn_of_feature_lists(sources: Sequence[Source], options: ReadOptions, embedded: Schema | None = None) -> None:
    """Warn that the feature lists of the first record are not read, unless the columns to read were named.

    Its embedded schema, if it has one, tells whether it has feature lists.
    """
    has_lists = embedded is None or any(field.part == FEATURE_LIST for field in embedded)
    if options.record_type == "example" and options.columns is None and has_lists:
        reason = 'the records have feature lists, which record_type="example" ignores'
        advice = "leave it out to read them, or name the columns to read"
        warn(f"{printable(sources[0].path)}: {reason}; {advice}", SchemaWarning)


class RecordTypeVerdict:
    """Decides from the first records whether they are another message, where no sample was decoded to infer a schema.

    Of a whole read, which holds all rows anyway, these are all records of `_VERDICT_BYTES`; of others, those of the
    first chunk.

    Parameters
    ----------
    check : callable
        Raises DecodeError if the records that were counted are another message.
    whole : bool
    decided : bool
        There is nothing to decide.
    """

    def __init__(self, check: Callable[[RecordCounts], None], *, whole: bool, decided: bool) -> None:
        self._check = check
        self._counts = RecordCounts()
        self._left = _VERDICT_BYTES if whole else 1  # payload bytes to observe
        self._decided = decided

    def observe(self, chunk: DecodedChunk) -> None:
        """Count the records of a chunk."""
        if self._decided or not chunk.rows:
            return
        self._counts += chunk.counts
        self._left -= max(chunk.payload_bytes, 1)
        if self._left <= 0 or chunk.ends_read:
            self.decide()

    def decide(self) -> None:
        """Raise DecodeError if the records so far are another message."""
        if not self._decided:
            self._decided = True
            self._check(self._counts)
