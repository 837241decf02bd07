"""Batches of arrays for training."""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from tfrecord_io.arrays.representation import TableRepresentation, reader_options, slice_columns
from tfrecord_io.arrow.output.to_numpy import leaf_fields
from tfrecord_io.keyword_docs import document_keywords
from tfrecord_io.options import MIB, IterOptions
from tfrecord_io.read.on_error import end_read
from tfrecord_io.read.resolve_schema import plan_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.training.batching import Batching, Chunk
from tfrecord_io.training.checkpoint import Identity, Position
from tfrecord_io.training.epochs import Epochs
from tfrecord_io.training.fixed_lengths import sample_lengths
from tfrecord_io.training.prefetch import BackgroundGenerator

_CHUNK_ROWS = 65_536
_CHUNK_BYTES = 4 * MIB  # read at a time: for each, the shuffle buffer is copied once
_SEED_BITS = 48
_READY = 2  # chunks that are made ahead


class ArrayIterator:
    """Batches of arrays; made by `tfrecord_io.iter_arrays`.

    An iterator and a context manager. Its batches are dicts of arrays as `read_arrays` gives them; each belongs to who got it.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the records, fixed when the iterator was made.
    seed : int
        The one given, or the one that was drawn.

    Notes
    -----
    It may be pickled, and used in a forked process, until the first batch was asked for.
    """

    def __init__(self, scan: Scan, options: IterOptions, lengths: Mapping[str, int], damage: Exception | None) -> None:
        """See `iter_arrays`.

        Parameters
        ----------
        scan : Scan
        options : IterOptions
        lengths : mapping of str to int
            Lists that have one length, see `sample_lengths`.
        damage : Exception or None
            What kept the schema from having any column.
        """
        self._scan, self._options, self._lengths, self._damage = scan, options, lengths, damage
        self._forms = TableRepresentation(scan.schema, options, complete=False, lengths=lengths)
        self.schema: pa.Schema = scan.schema
        self._identity = Identity.of(scan.sources, options)
        self.seed = secrets.randbits(_SEED_BITS) if options.seed is None else int(options.seed)
        self._lock = threading.RLock()  # threads may take batches from one iterator: each gets others
        self._source: Generator[Chunk] | BackgroundGenerator[Chunk] | None = None
        self._started_in: int | None = None
        self._begin(Position(0, 0, 0))
        if options.state is not None:
            self.restore(options.state)

    def __repr__(self) -> str:
        return f"<ArrayIterator of {self._scan}>"

    def _begin(self, position: Position) -> None:
        self._end()
        self._position = position
        self._chunk: Chunk | None = None
        self._given = 0  # rows of the chunk
        self._error: Exception | None = None
        self._closed = False

    def _end(self) -> None:
        if self._source is not None:
            self._source.close()
        self._source = None

    def state(self) -> dict[str, Any]:
        """Where the iterator stands, after the last batch that it gave: a dict that JSON can hold.

        Whatever was read ahead does not count. It holds the seed, the epoch, the numbers of the records in the shuffle buffer, and
        what `restore` needs to know the files and options again.
        """
        with self._lock:
            return self._identity.state(self.seed, self._here())

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on with the batch after the one that a state was taken behind.

        The records before are passed over; those that were in the shuffle buffer are read again.

        Raises
        ------
        ValueError
            The state is that of other files or options; the message says which.
        """
        seed, position = self._identity.restored(state, self._options.seed)
        self._begin(position)
        self.seed = seed

    def _here(self) -> Position:
        return self._position if self._chunk is None or not self._given else self._chunk.position(self._given)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return self

    def __next__(self) -> dict[str, Any]:
        """The next batch.

        Raises
        ------
        StopIteration
            After the last epoch.
        TFRecordError
            After all records before the damage were given; those of the shuffle buffer are before it.
        """
        with self._lock:
            while self._chunk is None or self._given == self._chunk.rows:
                self._advance()
            begin = self._given
            end = min(begin + self._options.batch_size, self._chunk.rows)
            batch = slice_columns(self._chunk.columns, begin, end)
            self._given = end
            return batch

    def _advance(self) -> None:
        """Take the next chunk; what ended the last one is told now."""
        if self._error is not None:
            raise self._error
        if self._closed:
            raise StopIteration
        if self._damage is not None:
            self._finish(self._damage)
        chunk = self._chunk
        if chunk is not None and chunk.error is not None:
            self._finish(chunk.error)
        try:
            following = next(self._chunks())
        except StopIteration:
            self._finish(None)
            raise
        except Exception as error:
            self._finish(error, told=True)
            raise
        self._position = self._here()
        self._chunk, self._given = following, 0

    def _finish(self, error: Exception | None, *, told: bool = False) -> None:
        """Iteration is over, by an error or without."""
        self._position = self._here()
        self._chunk, self._given = None, 0
        self._end()
        self._closed = True
        if error is None:
            return
        policy = "raise" if told else self._options.on_error
        if policy == "raise":
            self._error = error
        end_read(error, policy)
        raise StopIteration

    def _chunks(self) -> Iterator[Chunk]:
        if self._source is None:
            self._started_in = os.getpid()
            epochs = Epochs(self._scan, self._options, self.seed)
            make = partial(Batching(epochs, self._forms, self._options, self.seed).chunks, self._position)
            self._source = make() if self._options.thread_count == 1 else BackgroundGenerator(make, _READY)
        elif self._started_in != os.getpid():
            raise RuntimeError("the iterator was started in another process; make one in each, with worker=(i, n)")
        return self._source

    def close(self) -> None:
        """End reading; no more batches."""
        self._end()
        self._position = self._here()
        self._chunk = None
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._source is not None or self._closed:
            raise TypeError("the iterator has begun; pickle what state() gives, and pass it as state= to a new one")
        return _unpickled, (self._scan, self._options, self._lengths, self._damage, self.state())


def _unpickled(scan: Scan, options: IterOptions, lengths: Any, damage: Any, state: Mapping[str, Any]) -> ArrayIterator:
    return ArrayIterator(scan, replace(options, state=state), lengths, damage)


def _planned(path: Any, options: IterOptions) -> ArrayIterator:
    """Fix the schema and the lengths of lists; the files are closed again."""
    plain = replace(reader_options(options), threads=options.thread_count)
    planned = plan_scan(path, plain)
    scan = planned.close()
    if any(source.is_file_object for source in scan.sources):
        raise TypeError("iter_arrays opens files more than once: pass paths, not a file object")
    scan = scan.over(batch_size=_CHUNK_ROWS, batch_bytes=_CHUNK_BYTES)
    has_columns = bool(leaf_fields(scan.schema))
    damage = None if has_columns else planned.error
    if not has_columns and damage is None and planned.sampled != 0:  # without records nothing is known
        raise ValueError("there is no column to read: pass columns= or schema= with a feature that the records have")
    return ArrayIterator(scan, options, sample_lengths(scan, options), damage)


@document_keywords(IterOptions)
def iter_arrays(path: Any, *, batch_size: int, **keywords: Any) -> ArrayIterator:
    """Iterate over TFRecord files in batches of NumPy arrays, shuffled by a seed, over epochs and workers.

    Parameters
    ----------
    {path}
        No file object: files are opened in each epoch.
    {keywords}

    Returns
    -------
    ArrayIterator
        An iterator of dicts of arrays, as `read_arrays` gives them, of `batch_size` rows each; the last batch of an epoch
        may have fewer. All batches have the same columns and dtypes: text is of ``StringDType(na_object=None)``, as any batch may
        lack a value, unless the schema requires the column (`read_arrays` knows, and says ``StringDType()`` where none is missing).
        ``state()`` says where it stands, in a form for JSON, and ``restore(state)`` goes on from there, with the very batches
        that would have come.

    Raises
    ------
    FileNotFoundError, CorruptRecordError, DecodeError, SchemaError
        As `read_tfrecord`; by the iterator, after all records before the damage.
    FeatureNotFoundError
        A record has no value for a column of numbers, bools, times or tensors; see `missing`.
    ValueError
        `state` is that of other files or options.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": list(range(10))}, "ten.tfrecord")
    >>> for batch in tfr.iter_arrays("ten.tfrecord", batch_size=4, shuffle_buffer=8, seed=1):
    ...     print(len(batch["x"]))
    4
    4
    2
    >>> batches = tfr.iter_arrays("ten.tfrecord", batch_size=4, shuffle_buffer=8, seed=1)
    >>> first, state = next(batches), batches.state()
    >>> again = tfr.iter_arrays("ten.tfrecord", batch_size=4, shuffle_buffer=8, seed=1, state=state)
    >>> all((next(again)["x"] == batch["x"]).all() for batch in batches)
    True
    """
    if "batch_bytes" in keywords:
        raise TypeError("unexpected keyword argument 'batch_bytes': batches for training have batch_size rows each")
    return _planned(path, IterOptions.of({**keywords, "batch_size": batch_size}))
